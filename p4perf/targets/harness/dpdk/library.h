/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a shared library offers that is measured as a program: a data plane whose own tools made it.
 *
 * Program and baseline are two libraries in one process, each with the same symbols inside. They are loaded with
 * RTLD_NOW and RTLD_LOCAL: neither sees the other, and one with an undefined symbol is refused.
 */
#ifndef P4PERF_LIBRARY_H
#define P4PERF_LIBRARY_H

#include <stdint.h>

struct rte_mbuf;

/* The output port of a packet that is dropped. */
#define P4PERF_LIBRARY_DROP UINT16_MAX

struct p4perf_library {
	/* After the start of the EAL, on the measuring lcore: create and fill the tables. 0, or a negative errno. */
	int (*setup)(void);
	/*
	 * Process at most 32 packets of one segment that came by port 0, in place and in order. The library sets
	 * mbuf->port to the output port or to P4PERF_LIBRARY_DROP, and data_off, data_len and pkt_len where headers came
	 * or went. It neither frees nor keeps a packet.
	 */
	void (*run)(struct rte_mbuf **packets, unsigned int n);
};

/* The one symbol that is looked up. */
#define P4PERF_LIBRARY_SYMBOL "p4perf_library"
extern const struct p4perf_library p4perf_library;

#endif
