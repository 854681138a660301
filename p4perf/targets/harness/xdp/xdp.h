/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The harness of target xdp: loads a program and its baseline with libbpf, fills the maps, checks the program against
 * its oracle and measures both with BPF_PROG_TEST_RUN.
 */
#ifndef P4PERF_XDP_H
#define P4PERF_XDP_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "expectation.h"
#include "words.h"
#include "xdp_shared.h"

#define XDP_HARNESS_VERSION 2
#define MIN_FRAME 14 /* ETH_HLEN: the kernel hands no shorter frame to an XDP program */

enum table_kind { TABLE_EXACT, TABLE_LPM, TABLE_TERNARY };

/* One key in the key bytes of an entry, in whole bytes, big-endian. */
struct key_part {
	uint16_t offset, bytes;
	uint32_t bits;
};

/* One parameter in the action data of an entry, a C integer. */
struct data_part {
	uint16_t offset, bytes;
	uint32_t bits;
};

/* An entry of a table that has them one by one: what it matches, and the number of its action data. */
struct listed_row {
	const uint8_t *key, *mask;
	uint32_t prefix_bits, entry;
};

struct table_layout {
	const char *name;
	const char *map;
	unsigned int index; /* among the tables of the program */
	enum table_kind kind;
	const struct key_part *keys;
	unsigned int n_keys;
	uint32_t key_bytes;
	uint32_t free_bits;   /* of the key as one number */
	uint32_t prefix_bits; /* of the key bytes, for tries */
	const struct data_part *data;
	unsigned int n_data;
	uint32_t data_bytes;
	uint32_t port;
	const struct listed_row *rows; /* NULL: the entries follow a rule */
	uint32_t n_rows;
	const void *found; /* action data of the entries, each of data_bytes */
};

struct state_layout {
	const char *name;
	const char *map;
	uint32_t size;
	uint32_t cell_bytes;
	bool per_cpu;
};

/* Of the program under test, from layout.c; the arrays end with an empty element. */
extern const struct table_layout table_layouts[];
extern const unsigned int n_tables;
extern const char *const table_names[];
extern const struct state_layout state_layouts[];
extern const unsigned int n_states;

enum distribution { DRAW_UNIFORM, DRAW_SEQUENTIAL, DRAW_SINGLE, DRAW_ZIPF };

struct options {
	const char *folder; /* of program.o, baseline.o and compile_ns */
	const char *verify_path;
	uint32_t entries[P4PERF_MAX_TABLES];
	unsigned int n_entries;
	bool verify_only;
	bool with_empty;
	uint8_t frame[MAX_FRAME];
	uint32_t frame_length;
	uint64_t keys[P4PERF_MAX_DRAWS]; /* of every field that varies */
	unsigned int n_draws;
	double hit_ratio;
	enum distribution distribution;
	double zipf_exponent;
	uint64_t seed;
	bool gated;
	double gate_ratio;
	double gate_tolerance;
	double drift_tolerance;
	unsigned int windows;
	unsigned int window_us;
	unsigned int burst_us;
	unsigned int timeout_ms;
	uint64_t warmup_packets;
	int realtime_priority;
	int device_fd;  /* memory that is shared with a load generator; -1: there is none */
	int device_cpu; /* that the packets of the load generator are processed on */
};

void parse_options(struct options *options, int argc, char **argv);

/* One program of an object, loaded. */
struct loaded {
	const char *name;
	struct bpf_object *object;
	int fd;
	struct p4perf_shared *shared; /* the object's .bss, mapped */
	double load_ms;               /* verifier and JIT */
	uint32_t instructions;
	uint32_t code_bytes;
};

/* The configuration of the key stream, for the program's .rodata. */
void stream_config(const struct options *options, struct p4perf_config *config);

/*
 * Load one program of an object file; whatever is refused ends in fail(). The maps of tables and states are those of
 * the other program if there is one.
 */
void load_program(struct loaded *loaded, const struct options *options, const char *file, const char *program,
		  const struct p4perf_config *config, const struct loaded *other);

void fill_tables(const struct loaded *loaded, const struct options *options);

/* Memory that the maps of the tables take, in bytes, as the kernel accounts for it. */
uint64_t tables_bytes(const struct loaded *loaded);

/* Check a program against a verification file; the packets that were checked. What differs ends in fail(). */
uint64_t verify(const struct loaded *loaded, const char *path, uint64_t *too_short);

/* Be the device under test of a load generator until it has gone. */
void serve_device(const struct options *options, const struct loaded *program, const struct loaded *baseline,
		  uint64_t verified);

#define MAX_WINDOWS 8192
#define MAX_PROGRAMS 3

struct window {
	uint8_t program;
	uint8_t cpu;
	uint16_t preemptions; /* involuntary context switches in the run that it is part of */
	double ns_per_packet;
	double chain_before, mix_before, chain_after, mix_after; /* ns per iteration */
};

struct measurement {
	struct window *windows;
	unsigned int n_windows;
	unsigned int accepted[MAX_PROGRAMS];
	double gate_ratio;
	double kernel_ns[MAX_PROGRAMS]; /* duration of the last run of each program by the kernel, ns per packet */
	bool realtime;
	bool timed_out;
	unsigned int hops;
	unsigned int runs;
	uint64_t packets;
	uint64_t stream_packets, stream_sent; /* a sample of the packet stream, and how much of it was sent */
};

void measure(const struct loaded *programs, unsigned int n_programs, const struct options *options,
	     const cpu_set_t *cpus, struct measurement *result);

#endif
