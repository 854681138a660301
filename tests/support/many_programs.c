/* SPDX-License-Identifier: Apache-2.0 */
/* Checks many generated programs in one process: arguments are pairs of a verification file and numbers of entries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>

#include "harness.h"

extern const struct program *const programs[];

int
main(int argc, char **argv)
{
	static uint64_t entries[MAX_TABLES];
	const int used = rte_eal_init(argc, argv);
	struct rte_mempool *pool;
	int i;

	if (used < 0)
		return 2;
	pool = rte_pktmbuf_pool_create("packets", 4095, 0, 0, PACKET_HEADROOM + 2048, SOCKET_ID_ANY);
	if (pool == NULL)
		return 2;
	for (i = 1; i + 1 < argc - used; i += 2) {
		const struct program *const program = programs[i / 2];
		char error[256] = "", *number = argv[used + i + 1];
		uint64_t packets = 0;
		unsigned int t;

		for (t = 0; t < program->n_tables; t++)
			entries[t] = strtoull(number, &number, 10), number++;
		if (program->setup(entries) != 0)
			snprintf(error, sizeof(error), "setup failed");
		else
			verify_file(program, pool, argv[used + i], error, sizeof(error), &packets);
		printf("%lu %s\n", packets, error);
	}
	fflush(stdout);
	_Exit(0);
}
