/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a measured XDP program and the harness that loads it have in common: the layout of two of its sections. */
#ifndef P4PERF_XDP_SHARED_H
#define P4PERF_XDP_SHARED_H

#include <linux/types.h>

#define P4PERF_MAX_TABLES 1024
#define P4PERF_MAX_DRAWS 64
#define P4PERF_QUANTILES 1024
#define P4PERF_MAX_EDGES 256

/* Iterations of the two calibrators, and how they are cut into loops (see clock.h, which has the same two loops). */
#define P4PERF_CHAIN_LOOPS 750
#define P4PERF_CHAIN_UNROLLED 4
#define P4PERF_MIX_LOOPS 120
#define P4PERF_MIX_UNROLLED 50

enum p4perf_distribution { P4PERF_UNIFORM, P4PERF_SEQUENTIAL, P4PERF_SINGLE, P4PERF_ZIPF };

/* One field that varies from packet to packet, drawn independently of the others. */
struct p4perf_draw {
	__u32 keys; /* keys 0 .. keys-1 are in the table, keys .. 2*keys-1 are not */
	__u32 quantile_low[P4PERF_QUANTILES];
	__u32 quantile_width[P4PERF_QUANTILES];
};

/* Section .rodata.config: set before the program is loaded, so that the verifier removes what is not used. */
struct p4perf_config {
	__u32 count_hits;     /* tables count their hits */
	__u32 distribution;
	__u32 miss_threshold; /* a 32-bit draw at or above it is a miss; 0: every packet hits */
	__u32 entries[P4PERF_MAX_TABLES];
	struct p4perf_draw draws[P4PERF_MAX_DRAWS];
};

/* The edge of two windows: nanoseconds of CLOCK_MONOTONIC; the calibrators run between end and start. */
struct p4perf_edge {
	__u64 end_ns;    /* of the window before */
	__u64 begin_ns;  /* latency chain begins */
	__u64 middle_ns; /* latency chain done */
	__u64 start_ns;  /* throughput mix done, the window after begins */
};

/* Section .bss: shared with user space while the program runs. */
struct p4perf_shared {
	__u32 port;           /* of the packet that was sent last */
	__u32 edges;
	__u64 left;           /* packets until the next edge */
	__u64 state;          /* of the generator of random numbers */
	__u64 window_packets;
	__u64 sink;
	__u64 given;          /* stands for the time and for random bits while results are compared; else 0 */
	__u32 next[P4PERF_MAX_DRAWS]; /* keys, for sequential keys */
	struct p4perf_edge edge[P4PERF_MAX_EDGES];
	__u64 hits[P4PERF_MAX_TABLES];
};

#endif
