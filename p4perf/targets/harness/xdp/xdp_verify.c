/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functional check of an XDP program: packets with their expected outcomes, computed by the reference interpreter. The
 * layout of the file is described in verify.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/bpf.h>

#include <bpf/bpf.h>

#include "words.h"
#include "xdp.h"

static void
check_packet(const struct loaded *loaded, const uint8_t *packet, uint16_t length, bool sent,
	     const struct expectation *expected, uint32_t n)
{
	static uint8_t out[MAX_FRAME];
	/* The kernel makes no frame shorter than an Ethernet header. */
	const unsigned int wanted = !sent ? XDP_DROP : expected->length < MIN_FRAME ? XDP_ABORTED : XDP_TX;
	unsigned int i;
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = packet, .data_size_in = length, .data_out = out,
		    .data_size_out = sizeof(out), .repeat = 1);

	if (bpf_prog_test_run_opts(loaded->fd, &run) != 0)
		fail("run", "packet %u of %u bytes was not processed: %s", n, length, strerror(errno));
	if (run.retval != wanted)
		fail("verify", "packet %u has verdict %u, expected %u (%u aborted, %u drop, %u sent)", n, run.retval,
		     wanted, XDP_ABORTED, XDP_DROP, XDP_TX);
	if (wanted != XDP_TX)
		return;
	if (loaded->shared->port != expected->port)
		fail("verify", "packet %u left by port %u, expected %u", n, loaded->shared->port, expected->port);
	if (run.data_size_out != expected->length)
		fail("verify", "packet %u has %u bytes, expected %u", n, run.data_size_out, expected->length);
	for (i = 0; i < expected->length; i++)
		if (((out[i] ^ expected->data[i]) & expected->mask[i]) != 0)
			fail("verify", "packet %u differs at byte %u: %02x, expected %02x", n, i, out[i],
			     expected->data[i]);
}

/* Sum of (index + 1) * value over the cells of a counter or register, modulo 2^64. */
static uint64_t
state_sum(const struct loaded *loaded, const struct state_layout *state)
{
	const int map = bpf_map__fd(bpf_object__find_map_by_name(loaded->object, state->map));
	const unsigned int copies = state->per_cpu ? (unsigned int)libbpf_num_possible_cpus() : 1;
	uint64_t sum = 0, values[1024];
	unsigned int c;
	uint32_t i;

	if (map < 0 || copies > 1024)
		fail("verify", "state %s cannot be read", state->name);
	for (i = 0; i < state->size; i++) {
		uint64_t value = 0;

		memset(values, 0, sizeof(values[0]));
		if (bpf_map_lookup_elem(map, &i, values) != 0)
			fail("verify", "cell %u of state %s cannot be read: %s", i, state->name, strerror(errno));
		for (c = 0; c < copies; c++)
			value += values[c];
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		value >>= 64 - 8 * state->cell_bytes;
#endif
		sum += (i + 1) * value;
	}
	return sum;
}

static void
check_sums(const struct loaded *loaded, FILE *file)
{
	const struct state_layout *state;
	uint64_t wanted, got;
	unsigned int i;

	for (i = 0; i < n_tables; i++) {
		read_all(file, &wanted, sizeof(wanted));
		if (loaded->shared->hits[i] != wanted)
			fail("verify", "table %s counted %llu hits, expected %lu", table_names[i],
			     (unsigned long long)loaded->shared->hits[i], wanted);
	}
	for (state = state_layouts; state->name != NULL; state++) {
		read_all(file, &wanted, sizeof(wanted));
		got = state_sum(loaded, state);
		if (got != wanted && wanted != UNKNOWN_SUM)
			fail("verify", "state %s sums up to %lu, expected %lu", state->name, got, wanted);
	}
}

uint64_t
verify(const struct loaded *loaded, const char *path, uint64_t *too_short)
{
	static struct expectation expected;
	static uint8_t packet[MAX_FRAME];
	FILE *file = fopen(path, "rb");
	uint32_t counts[4], n;
	uint16_t head[2];
	char magic[8];

	if (file == NULL)
		fail("verify", "cannot open %s: %s", path, strerror(errno));
	read_all(file, magic, sizeof(magic));
	read_all(file, counts, sizeof(counts));
	if (memcmp(magic, "P4PVRFY2", 8) != 0 || counts[1] != n_tables || counts[2] != n_states)
		fail("verify", "%s is not a verification file of this program", path);
	*too_short = 0;
	for (n = 0; n < counts[0]; n++) {
		read_all(file, head, sizeof(head));
		if (head[0] > MAX_FRAME || head[1] > 1)
			fail("verify", "packet %u is too long or has %u copies", n, head[1]);
		read_all(file, packet, head[0]);
		if (head[1] != 0)
			read_expectation(file, &expected, counts[3] != 0);
		loaded->shared->given = given_to(n);
		if (head[0] < MIN_FRAME && head[1] == 0)
			++*too_short;
		else
			check_packet(loaded, packet, head[0], head[1] != 0, &expected, n);
	}
	loaded->shared->given = 0;
	check_sums(loaded, file);
	fclose(file);
	return counts[0] - *too_short;
}
