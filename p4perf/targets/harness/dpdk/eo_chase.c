/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Latency of loads by pointer chase. The arguments are sizes of working sets in bytes. For each one a random cycle
 * through all of its cache lines is followed in short windows between calibrations, by one chain (latency) and by as
 * many chains at once as CHAINS (accesses in flight). One line of JSON per size and number of chains: for every window
 * TSC cycles of one load and the calibrators around it.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"

#define LINE 64
#define CHAINS 16
#define WINDOWS 60
#define WINDOW_TSC 1000000
#define HUGE (UINT64_C(2) << 20)

struct line {
	struct line *next;
	char rest[LINE - sizeof(struct line *)];
};

static uint64_t state = 1;

static uint64_t
draw(uint64_t range)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint64_t)(((__uint128_t)state * range) >> 64);
}

/* One random cycle through all lines (Sattolo). */
static void
connect(struct line *lines, uint32_t *order, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	for (i = n - 1; i > 0; i--) {
		const uint64_t j = draw(i);
		const uint32_t other = order[j];

		order[j] = order[i];
		order[i] = other;
	}
	for (i = 0; i < n; i++)
		lines[order[i]].next = &lines[order[(i + 1) % n]];
}

static struct line *at[CHAINS];

static void
follow(unsigned int chains, uint64_t steps)
{
	unsigned int c;

	if (chains == 1) {
		struct line *p = at[0];

		for (; steps != 0; steps--)
			p = p->next;
		at[0] = p;
		return;
	}
	for (; steps != 0; steps--)
		for (c = 0; c < CHAINS; c++)
			at[c] = at[c]->next;
}

static void
measure(uint64_t size, struct line *lines, uint64_t n, unsigned int chains)
{
	const char *const names[] = {"tsc", "chain_before", "mix_before", "chain_after", "mix_after"};
	static double values[5][WINDOWS];
	uint64_t steps = 1000, tsc;
	unsigned int c, w, v;

	for (c = 0; c < CHAINS; c++)
		at[c] = &lines[n / CHAINS * c];
	follow(chains, n / chains < 20000000 ? n / chains + 1 : 20000000);
	tsc = clock_tsc();
	follow(chains, steps);
	tsc = clock_tsc() - tsc;
	steps = steps * WINDOW_TSC / (tsc + 1) + 1;
	for (w = 0; w < WINDOWS; w++) {
		struct calibration before, after;

		if (w % 10 == 0)
			usleep(2000);
		before = calibrate();
		tsc = clock_tsc();
		follow(chains, steps);
		tsc = clock_tsc() - tsc;
		after = calibrate();
		values[0][w] = (double)tsc / ((double)steps * chains);
		values[1][w] = before.chain_tsc;
		values[2][w] = before.mix_tsc;
		values[3][w] = after.chain_tsc;
		values[4][w] = after.mix_tsc;
	}
	printf("{\"size_bytes\": %lu, \"chains\": %u, \"chain_core_cycles\": %g", size, chains, CHAIN_CORE_CYCLES);
	for (v = 0; v < 5; v++) {
		printf(", \"%s\": [", names[v]);
		for (w = 0; w < WINDOWS; w++)
			printf("%s%.5f", w == 0 ? "" : ",", values[v][w]);
		printf("]");
	}
	printf("}\n");
}

int
main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		const uint64_t size = strtoull(argv[i], NULL, 10), n = size / LINE;
		const uint64_t room = (size + HUGE - 1) / HUGE * HUGE;
		struct line *lines;
		uint32_t *order;

		if (n < 2 * CHAINS || n > UINT32_MAX) {
			fprintf(stderr, "a working set of %lu bytes is not possible\n", size);
			return 1;
		}
		lines = aligned_alloc(HUGE, room);
		order = malloc(n * sizeof(*order));
		if (lines == NULL || order == NULL) {
			fprintf(stderr, "no memory for a working set of %lu bytes\n", size);
			return 1;
		}
		madvise(lines, room, MADV_HUGEPAGE);
		connect(lines, order, n);
		free(order);
		measure(size, lines, n, 1);
		measure(size, lines, n, CHAINS);
		free(lines);
	}
	return 0;
}
