/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual network I/O: a host and a network function, two processes on a core each, hand packets to each other through
 * two queues in shared memory. No network card, no kernel on the way.
 *
 *   host      fills the buffers that the function posted in queue RX, and empties queue TX, whichever is possible
 *   function  takes packets from RX, posts new buffers there, and puts the packets into TX
 *
 * The queues are compiled for one set of sizes (vio_config.h); the rest of the harness does not know them. Nobody waits
 * in the kernel: both processes poll, as in vhost-user and DPDK.
 */
#ifndef P4PERF_VIO_H
#define P4PERF_VIO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>
#include <unistd.h>
#include <unistd.h>

#include "clock.h"

#define LINE_BYTES 64

/* What the harness has to know of the queues that it is linked with. */
struct vio_sizes {
	size_t shared_bytes;  /* pool of the function, queues; behind the control block */
	size_t private_bytes; /* both pools of the host */
	unsigned int queue, rx_batch, tx_batch;
};

extern const struct vio_sizes vio_sizes;

/* Hardware counters of one process, in user space. All zero where there are none. */
struct counters {
	uint64_t instructions, l1_misses, llc_misses;
};

/* What a side says of itself between windows. */
struct condition {
	struct calibration calibration;
	uint64_t preemptions;
	struct counters counters;
};

enum command {
	COMMAND_RUN,       /* forward packets until there is another command */
	COMMAND_CONDITION, /* calibrate and report */
	COMMAND_REALTIME,  /* real-time scheduling with that priority; 0: ordinary scheduling */
	COMMAND_REST,      /* sleep for a number of microseconds */
	COMMAND_STOP,
};

/* Lines that a core asks for: it has not got them, or it writes them and the other one has them, too. */
struct requests {
	uint64_t fetched, upgraded;
};

/* The beginning of the shared memory. The host writes the first line, the function the others. */
struct control {
	_Alignas(LINE_BYTES) _Atomic uint32_t number; /* of the last command */
	enum command command;
	uint32_t argument;
	_Alignas(LINE_BYTES) _Atomic uint32_t done; /* number of the last command that was carried out */
	bool granted;                               /* real-time scheduling */
	bool counted;                               /* there are hardware counters */
	uint64_t witness;                           /* sum of what the function read of virtio headers */
	uint64_t body_witness;                      /* and of bodies */
	struct condition condition;
	struct requests requests;
};

#define CONTROL_BYTES 4096

/*
 * Both sides in turn, for simulations: one runs until it can do nothing more. They are two processes that talk through
 * pipes, or two contexts of one process. Unused: the pipes are -1 and the contexts NULL.
 */
struct turns {
	int to, from;
	ucontext_t *own, *other;
};

#define NO_TURNS ((struct turns){-1, -1, NULL, NULL})

/* Let the other side run until it can do nothing more. False: there are no turns to take, or no other side. */
static inline bool
turns_pass(const struct turns *turns)
{
	char turn = 'x';

	if (turns->other != NULL)
		return swapcontext(turns->own, turns->other) == 0;
	return turns->to != -1 && write(turns->to, &turn, 1) == 1 && read(turns->from, &turn, 1) == 1;
}

struct host;
struct function;

/* The shared memory begins with the control block. NULL: no memory. */
struct host *host_create(void *shared, const struct turns *turns, bool hugepages, uint64_t seed);
struct function *function_create(void *shared, const struct turns *turns, uint64_t seed);

/*
 * Send and receive until that many packets have come back in all, or, with drain, until none is on its way. False: nothing
 * has come back for seconds.
 */
bool host_stream(struct host *host, uint64_t until);
bool host_drain(struct host *host);

uint64_t host_received(const struct host *host);

/*
 * Send and receive packets, each with its number and filled to the end, and look at every byte of those that
 * come back. False: there is something wrong with them, and error says what.
 */
bool host_check(struct host *host, uint64_t packets, char *error, size_t error_size);

/* What the function has to have read of the packets that were checked; see struct control. */
void host_expected(const struct host *host, uint64_t *witness, uint64_t *body_witness);

struct requests host_requests(const struct host *host);

/* Forward packets until the number of the command is another one than that. */
void function_stream(struct function *function, uint32_t number);

/* Say in the control block what was read so far. */
void function_report(struct function *function);

/* The function's process: carry out commands until COMMAND_STOP. */
void function_main(struct function *function, struct control *control, const struct turns *turns);

/* Hardware counters of this process. False: there are none. */
bool counters_open(void);
struct counters counters_read(void);

/* The state of this process and its core now. */
struct condition condition_now(void);

struct measure_options {
	bool gated;
	double gate_ratio;      /* mix/chain of an undisturbed core; 0: not known yet */
	double gate_tolerance;  /* a window counts below gate_ratio * (1 + tolerance) */
	double drift_tolerance; /* and if the core clock moved by less than this share */
	unsigned int windows;   /* windows wanted that count */
	unsigned int packets;   /* of a window */
	unsigned int burst_us;  /* length of one real-time burst */
	unsigned int gap_us;    /* pause after a burst */
	unsigned int timeout_ms;
	unsigned int warmup_ms;
	int realtime_priority;
};

#define MAX_WINDOWS 8192

struct window {
	double tsc_per_packet;
	double span_packets; /* packets between the two conditions: counters are per packet of these */
	struct condition host[2], function[2]; /* before and after */
};

struct measurement {
	struct window *windows;
	unsigned int n_windows;
	double gate_ratio; /* the one in force at the end */
	double tsc_hz;
	bool realtime;
	bool counters;
	bool timed_out;
};

/* Give the function a command; its number. A command must not begin before the last one is carried out, or COMMAND_RUN. */
uint32_t command_begin(struct control *control, enum command what, uint32_t argument);

/* Wait until a command is carried out; ends in fail() if the function is gone or silent. */
void command_wait(struct control *control, const struct turns *turns, uint32_t number);

/* Both. */
void command(struct control *control, const struct turns *turns, enum command what, uint32_t argument);

int measure(struct host *host, struct control *control, const struct measure_options *options,
	    struct measurement *result);

#endif
