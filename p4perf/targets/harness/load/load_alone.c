/* SPDX-License-Identifier: Apache-2.0 */
/* A load generator whose device under test is another program: what would be a program here does nothing. */
#include "harness.h"

static int
set_up_nothing(const uint64_t *entries)
{
	(void)entries;
	return 0;
}

static void
run_nothing(struct rte_mbuf **packets, unsigned int n)
{
	(void)packets;
	(void)n;
}

static void
take_nothing(uint64_t *hits)
{
	(void)hits;
}

const struct program program_under_test = {
	.name = "program",
	.setup = set_up_nothing,
	.run = run_nothing,
	.take_hits = take_nothing,
};

const struct program program_baseline = {
	.name = "baseline",
	.setup = set_up_nothing,
	.run = run_nothing,
	.take_hits = take_nothing,
};
