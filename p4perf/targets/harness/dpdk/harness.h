/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measuring harness of the local targets: packets from memory through a data-plane program and back.
 *
 * A program is a table of functions. The harness links two of them, the program under test and its baseline, feeds both
 * with the same packets and times them in short windows, in turn.
 */
#ifndef P4PERF_HARNESS_H
#define P4PERF_HARNESS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_random.h>

#define BURST_PACKETS 32
#define PORT_DROP UINT16_MAX
#define MAX_TABLES 1024
#define MAX_STATES 64

/* Room before a packet, in bytes: headers may be added there. */
#define PACKET_HEADROOM 512

struct source;
struct device;

/* A data-plane program. */
struct program {
	const char *name;
	unsigned int n_tables;
	const char *const *table_names;
	unsigned int n_states;
	const char *const *state_names; /* counters and registers */
	/* Create and fill the tables; entries[t] is the number of entries of table t. 0, or a negative errno. */
	int (*setup)(const uint64_t *entries);
	/* Process packets in place: set mbuf->port to the output port, or to PORT_DROP; further copies: send_copy(). */
	void (*run)(struct rte_mbuf **packets, unsigned int n);
	/* Hits of each table since the last call. */
	void (*take_hits)(uint64_t *hits);
	/* Sum of (index + 1) * value over the cells of a state, modulo 2^64. May be NULL if there are no states. */
	uint64_t (*state_sum)(unsigned int state);
	/*
	 * For a program that does not work in bursts of its own: take that many bursts from the source and send them,
	 * packets of several bursts in flight at once. Returns how many packets were not dropped. NULL: run() is called
	 * with one burst after the other.
	 */
	uint64_t (*stream)(struct source *source, uint64_t bursts);
	/*
	 * The same behind a port: take what there is (device_receive), send what is through (device_send). NULL: run() is
	 * called with what the port gives.
	 */
	void (*forward)(struct device *device);
	/* Where the machine code that packets run through begins and ends; NULL if that is not known. */
	const char *code_begin, *code_end;
};

/* Packets that were sent in addition to those of the burst (clones, multicast): at most this many for a packet. */
#define MAX_COPIES 64

struct copies {
	unsigned int n;
	struct rte_mbuf *packets[BURST_PACKETS * MAX_COPIES];
	uint8_t origin[BURST_PACKETS * MAX_COPIES]; /* index of the packet in the burst that it was made of */
};

/* The copies of the burst that is being processed; sink_transmit() frees them. */
extern struct copies copies;

/* Send a copy by the port that is set in it; origin is the index of the packet of the burst. The harness owns it now. */
static inline void
send_copy(struct rte_mbuf *copy, unsigned int origin)
{
	copies.packets[copies.n] = copy;
	copies.origin[copies.n++] = (uint8_t)origin;
}

/* What stands for the time and for random bits while results are compared; else 0. */
extern uint64_t given;

/* The time in units of 2048 cycles: about a microsecond, as v1model has it. */
static inline uint64_t
time_now(void)
{
	return unlikely(given != 0) ? given : rte_rdtsc() >> 11;
}

static inline uint64_t
random_bits(void)
{
	return unlikely(given != 0) ? given : rte_rand();
}

extern const struct program program_under_test;
extern const struct program program_baseline;
extern const struct program program_empty;

#define MAX_VARYING 8

/* A field that changes from packet to packet. Offset and length in bytes. */
struct varying {
	uint16_t offset;
	uint16_t length;
	uint64_t keys; /* keys 0 .. keys-1 are in the table, keys .. 2*keys-1 are not */
};

/* What is sent: one frame and the fields of it that change, each drawn for itself. */
struct traffic {
	const uint8_t *frame;
	uint16_t frame_length;
	uint16_t restore; /* bytes from the start that are written anew for every packet; 0: none */
	const uint8_t *frames; /* frames of that length, drawn or in turn, each written anew; NULL: the one above */
	uint32_t n_frames;
	unsigned int n_varying;
	struct varying varying[MAX_VARYING];
	double hit_ratio;
	enum { DRAW_UNIFORM, DRAW_SEQUENTIAL, DRAW_SINGLE, DRAW_ZIPF } distribution;
	double zipf_exponent;
	uint64_t seed;
};

#define QUANTILES 1024

/* How one field is drawn and written. */
struct draw {
	bool wide;             /* 16 bytes are written per packet, not 8 */
	uint32_t keys;
	uint32_t next;         /* of sequential draws */
	int32_t window_offset; /* of the bytes that are written; may begin before the frame */
	uint64_t window_prefix; /* constant bytes before the changing ones, as they stand in memory */
	uint64_t window_keep;   /* bits of the last 8 bytes that do not belong to the key, host order */
	uint32_t quantile_low[QUANTILES];
	uint32_t quantile_width[QUANTILES];
};

/* The packet source: where mbufs come from and which key each one carries. */
struct source {
	struct rte_mempool *pool;
	struct traffic traffic;
	uint64_t state;
	uint32_t miss_threshold; /* a 32-bit draw at or above it is a miss; 0 means that every packet hits */
	uint32_t next_frame;
	struct draw draws[MAX_VARYING]; /* by falling offset: a window may reach into the fields before it */
};

/* Prepare the source and fill the frames of all mbufs of the pool. 0, or a negative errno. */
int source_init(struct source *source, struct rte_mempool *pool, const struct traffic *traffic);

/* Fill every mbuf of the pool with the frame of the traffic. */
void source_fill(struct source *source);

/* Take BURST_PACKETS packets with fresh keys; every call of one source uses the same kind of key. */
void source_receive(struct source *source, struct rte_mbuf **packets);

/*
 * Go on with other packet buffers than before. Where 32 buffers lie decides the cost of a short program: about one
 * placement in ten is slow (6 against 18 cycles for the baseline), for as long as it is used.
 */
void source_rotate(struct source *source);

/* Send (count) and free the packets of a burst. Returns how many were not dropped. */
unsigned int sink_transmit(struct source *source, struct rte_mbuf **packets);

/* Compare the program with the recorded outcomes in a file. 0 if all agree, else a message in error. */
int verify_file(const struct program *program, struct rte_mempool *pool, const char *path, char *error,
		size_t error_size, uint64_t *packets);

struct measure_options {
	bool gated;
	double gate_ratio;        /* mix/chain of an undisturbed core; 0: not known yet */
	double gate_tolerance;    /* a window counts below gate_ratio * (1 + tolerance) */
	double drift_tolerance;   /* and if the core clock moved by less than this share */
	unsigned int windows;     /* accepted windows wanted for every program */
	unsigned int window_us;
	unsigned int burst_us;    /* length of one real-time burst */
	unsigned int gap_us;      /* pause after a burst */
	unsigned int timeout_ms;
	unsigned int warmup_ms;
	uint64_t warmup_packets;
	const cpu_set_t *cpus;    /* that the measuring thread may move to */
	int realtime_priority;    /* SCHED_FIFO priority in bursts; 0: ordinary scheduling */
};

#define MAX_WINDOWS 8192

/* One timed window. */
struct window {
	uint8_t program;       /* index into the list of programs */
	uint8_t cpu;           /* index into the list of CPUs */
	uint16_t preemptions;  /* involuntary context switches inside */
	float tsc_per_packet;
	float instructions, cache_misses; /* per packet, if there are counters */
	struct calibration_pair {
		float chain_before, mix_before, chain_after, mix_after;
	} calibration;
};

struct measurement {
	struct window *windows;
	unsigned int n_windows;
	unsigned int accepted[4];
	double gate_ratio; /* the one in force at the end */
	bool realtime;     /* SCHED_FIFO was granted */
	bool counters;     /* there are hardware counters */
	bool timed_out;
	unsigned int hops; /* moves to another CPU */
	uint64_t packets;  /* packets that the first program got in windows */
	uint64_t sent;     /* of these, not dropped */
};

/* Run bursts of a program; returns how many packets were not dropped. */
uint64_t run_bursts(const struct program *program, struct source *source, uint64_t bursts);

int measure(const struct program *const *programs, unsigned int n_programs, struct source *source,
	    const struct measure_options *options, struct measurement *result);

#endif
