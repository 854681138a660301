/* SPDX-License-Identifier: Apache-2.0 */
/* A device under test as its load generator sees it: orders and answers in memory that both share. */
#ifndef P4PERF_DEVICE_H
#define P4PERF_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

/* Packets that a device takes at a time, at most. */
#define MAX_BATCH 32

/* What the device does with its packets. */
enum device_mode {
	DEVICE_PROGRAM,  /* the program under test */
	DEVICE_BASELINE, /* its baseline */
	DEVICE_NULL,     /* nothing: every packet goes back as it came, which shows what generator and link can do */
	DEVICE_FAULTY,   /* the same, but loses, doubles and reorders some of them */
};

/* Packets of which one is lost, doubled, or sent after the one behind it; 0: none. */
struct faults {
	uint64_t lose, duplicate, swap;
};

/* Times that are longer than what was to do, by the logarithm (base 2) of their ns. */
#define STALL_BITS 40
#define STALL_US 1

struct stalls {
	uint64_t number[STALL_BITS], tsc[STALL_BITS];
};

/* What became of the packets of a segment in the device, and how undisturbed it was. */
struct device_counters {
	uint64_t received;
	uint64_t sent;      /* copies included */
	uint64_t dropped;   /* because the program said so */
	uint64_t copies;    /* clones and multicast */
	uint64_t tx_full;   /* because the generator did not take them */
	uint64_t lost, duplicated, swapped; /* by faults */
	uint64_t max_gap_tsc; /* longest time between two looks at the port, work excluded as far as gap_tsc covers it */
	uint64_t gaps;        /* of more than gap_tsc */
	uint64_t switches;    /* involuntary */
	uint64_t busy_ns;     /* CPU time of a device that is another program; 0: unknown */
	/*
	 * Batches and their time: behind other work, behind a look that found nothing; by their packets. Those that took
	 * longer than gap_tsc are left out; 0: looks that found nothing, all of them.
	 */
	uint64_t batches[2][MAX_BATCH + 1], batch_tsc[2][MAX_BATCH + 1];
	struct stalls stalls; /* looks that found nothing */
	struct calibration before, after;
};

/* The device, in memory that it shares with the generator, whether it is a thread or a process. */
struct device {
	/* Orders. */
	enum device_mode mode;
	struct faults faults;
	uint64_t faulty_packets; /* that came since the offer began, which faults are counted by */
	int batch; /* packets that were taken and worked off since the last look at the clock; -1: some are on their way */
	uint64_t gap_tsc;
	int priority;
	volatile bool stop;
	/* Answers. */
	volatile bool ready;
	volatile bool running;
	volatile bool realtime;
	struct device_counters counters;
	/* Where it is and how it is woken. */
	uint16_t port;
	uint64_t verified; /* packets that the program was checked with */
	int memory;        /* file descriptor of this structure */
	int wake[2], moved[2];
	int pid; /* 0: a thread of this process */
};

#endif
