/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The harness of target bmv2: brings simple_switch up with a program and once more with its baseline, fills their tables
 * through simple_switch_CLI, checks the program against its oracle, and is the device of a load generator.
 *
 * Both switches listen at one end of a veth pair, at whose other end the generator is. Which of them gets the packets is
 * decided by a filter at its packet socket: a muted one sees none.
 */
#ifndef P4PERF_BMV2_H
#define P4PERF_BMV2_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "device.h"
#include "expectation.h"
#include "words.h"

#define MIN_FRAME 14 /* ETH_HLEN: a packet socket sends no shorter frame */
#define MAX_PORT 510
#define MAX_SINKS 512
#define INTERFACE "device"
#define OTHER_END "generator"
#define LINK_MTU 3000

struct table {
	const char *name;
	uint64_t entries;
};

/* A counter or register, as simple_switch_CLI shows it. */
struct state {
	const char *name;
	uint64_t cells; /* 0: it is not asked for them */
	enum { OF_PACKETS, OF_BYTES, OF_REGISTER } kind;
};

struct options {
	const char *switch_path, *cli_path;
	const char *folder; /* of program.json and baseline.json */
	const char *commands, *baseline_commands; /* NULL: there are none */
	const char *verify_path;
	struct table *tables;
	unsigned int n_tables;
	struct state *states; /* in the order of the verification file */
	unsigned int n_states; /* 0: they are not compared */
	unsigned int port; /* towards the generator */
	int baseline_port; /* the same of the baseline; -1: that of the program */
	unsigned int sinks[MAX_SINKS]; /* ports that copies leave by */
	unsigned int n_sinks;
	uint8_t frame[MAX_FRAME];
	unsigned int frame_length;
	bool drops;     /* the program drops some of the packets of the generator */
	int device_fd;  /* memory that is shared with the generator; -1: there is none */
	int device_cpu; /* that the switches run on; -1: any */
};

void parse_options(struct options *options, int argc, char **argv);

#define MAX_THREADS 256

/* A thread, and how often it went to sleep. */
struct thread {
	int id;
	uint64_t sleeps;
};

/* One simple_switch. */
struct switch_process {
	const char *name; /* program or baseline */
	unsigned int thrift_port;
	pid_t pid;
	FILE *log;
	int socket; /* its packet socket at the interface, which this process has, too */
	int path[MAX_THREADS]; /* the threads that a packet passes, the last one first; none: they are not known */
	unsigned int n_path;
	double load_ms; /* from the start until all entries are in their tables */
};

/*
 * Start it; whatever goes wrong ends in fail(). Only one of two switches may have the ports that copies leave by: a switch
 * takes what another one sends at the same interface for a packet that came in.
 */
void switch_start(struct switch_process *process, const struct options *options, bool copies);

/* Wait until it takes commands. */
void switch_await(struct switch_process *process);

/* Run the commands of a file and compare the numbers of entries. */
void switch_load(struct switch_process *process, const struct options *options, const char *commands,
		 const struct table *tables, unsigned int n_tables);

/* The sum of (index + 1) * value over the cells of a counter or register, modulo 2^64. */
uint64_t switch_state(struct switch_process *process, const struct options *options, const struct state *state);

uint64_t switch_resident_bytes(const struct switch_process *process);

/* CPU time of all of its threads. */
uint64_t switch_busy_ns(const struct switch_process *process);

/* Fails, with an error of that kind, if it has died. */
void switch_check(struct switch_process *process, const char *kind);

/* Run a program; its output is in the file. Returns the pid; the caller closes neither input nor output. */
pid_t start_program(char *const *words, int input, int output);

/* Set up the interfaces of the namespace: loopback, and one for every port by which copies leave. */
void links_up(const struct options *options);

/* Packets since the interfaces exist. */
struct link_counters {
	uint64_t sent, not_sent; /* towards the generator */
	uint64_t copies;         /* by the other ports */
};

struct link_counters links_read(void);

/* A packet socket at an interface, of the namespace of the parent process or of our own. */
int link_socket(const char *interface, bool of_parent);

/* Find the packet socket of a switch. */
void socket_find(struct switch_process *process);

/* Whether a socket gets packets. */
void socket_listen(int socket, bool listen);

/* Packets that came to the socket since this was asked last, and those of them for which its ring had no room. */
struct socket_counters {
	uint64_t arrived, refused;
};

struct socket_counters socket_read(int socket);

unsigned int threads_read(const struct switch_process *process, struct thread *threads);

/* Find the threads that packets pass: those that slept at least so often more than before. */
void threads_find(struct switch_process *process, const struct thread *before, unsigned int n_before, uint64_t sleeps);

/* Give the threads real-time priorities that rise along the path of a packet, or 0: none. False: not granted. */
bool threads_order(const struct switch_process *process, int priority);

/* Involuntary switches of the thread that packets pass last, which no other thread of the switch preempts. */
uint64_t threads_switches(const struct switch_process *process);

/* Send the packets of the verification file through the switch, one after the other; how many were compared. */
uint64_t verify(struct switch_process *process, const struct options *options, uint64_t *too_short);

/* Send a frame through it again and again, so that it is warm. */
void exercise(struct switch_process *process, const struct options *options);

/* Be the device under test of a load generator until it has gone. */
void serve_device(const struct options *options, struct switch_process *program, struct switch_process *baseline,
		  uint64_t verified);

#endif
