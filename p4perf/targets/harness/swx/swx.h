/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipelines of DPDK's SWX (librte_pipeline) as programs of the measuring harness.
 *
 * A pipeline gets its packets from the harness and gives them back through a port type of its own, which costs next to
 * nothing. How a pipeline comes from its specification is the matter of one function, swx_create(): swx_interpreter.c
 * reads the text, swx_codegen.c loads the library that was compiled of it.
 */
#ifndef P4PERF_SWX_H
#define P4PERF_SWX_H

#include <rte_swx_ctl.h>
#include <rte_swx_pipeline.h>
#include <rte_swx_port.h>

#include "harness.h"

/* Where an argument of an action comes from: bits of a parameter of the entry's action, counted from the lowest one. */
struct swx_argument {
	unsigned int parameter;
	unsigned int shift;
	unsigned int width_bits;
};

/* A table that is filled by a rule: entry i has the key i << free_bits, in as many bits as its fields have together. */
struct swx_table {
	const char *name;
	const char *action;
	uint64_t port;               /* parameter 0 of every entry; parameter j > 0 is a hash of i and j */
	unsigned int free_bits;      /* lowest bits of the key that match anything */
	unsigned int n_keys;
	const unsigned int *key_bits; /* of each match field, in the order of the specification, most significant first */
	unsigned int n_arguments;
	const struct swx_argument *arguments;
};

/* A register array or a meter array. */
struct swx_array {
	const char *name;
	uint64_t size;
};

/* What the harness has to know of a pipeline. */
struct swx_config {
	const char *specification;  /* file, in the working directory */
	const char *library;        /* file, beside this program */
	const char *entries;        /* file with entries in the format of DPDK, in the working directory; NULL: none */
	unsigned int n_ports;       /* the last one drops */
	unsigned int n_tables;
	const struct swx_table *tables;
	unsigned int n_states;
	const struct swx_array *states;
	unsigned int n_meters;
	const struct swx_array *meters;
	unsigned int n_mirrors;        /* mirroring session i sends by port mirrors[i] */
	const uint32_t *mirrors;
	bool in_order;                 /* packets have to be processed one after another when they are checked */
};

struct swx;

struct swx_port_out {
	struct swx *swx;
	uint16_t port;
};

/* A pipeline at work. */
struct swx {
	const struct swx_config *config;
	struct rte_swx_pipeline *pipeline;
	struct source *source;      /* NULL while packets are checked */
	struct device *device;      /* behind a port; NULL: from memory */
	uint64_t bursts;            /* that may still be taken from the source */
	unsigned int n_in, next_in; /* packets that wait, the next one */
	unsigned int n_out;         /* packets that are through, of less than a burst */
	uint64_t taken;             /* packets from the port of the device */
	bool look;                  /* whether the port may be looked at: more packets may be there */
	uint64_t done;              /* packets that are through */
	uint64_t sent;              /* of these and their copies, not dropped */
	const char *name;
	struct rte_mbuf *in[BURST_PACKETS];
	struct rte_mbuf *out[BURST_PACKETS];
	struct swx_port_out *ports;
	uint64_t *hits; /* of each table, as of the last time that somebody asked */
	uint64_t *action_packets;
};

/* Port operations. args of an output port is a struct swx_port_out, of the input port a struct swx. */
extern struct rte_swx_port_in_ops swx_port_in_ops;
extern struct rte_swx_port_out_ops swx_port_out_ops;

/* Make the pipeline with its ports, ready to be filled. Whatever is wrong ends in fail(). */
void swx_create(struct swx *swx, const char *name);

/* How large the program of a pipeline is. */
struct swx_size {
	unsigned int instructions; /* of the pipeline and its actions, after SWX optimised them; 0: not known */
	size_t code_bytes;         /* of the functions that were compiled of them; 0: they are interpreted */
};

/* It may take a while. */
struct swx_size swx_size(const struct swx *swx);

/* Number of mirroring sessions and slots that a pipeline needs: powers of two. */
struct rte_swx_pipeline_mirroring_params swx_mirroring(const struct swx_config *config);

/* Fill the tables: counts[t] entries into table t by its rule. Whatever is wrong ends in fail(). */
void swx_fill(struct swx *swx, const uint64_t *counts);

/* Add the entries that stand in the file of the configuration. Whatever is wrong ends in fail(). */
void swx_add_entries(struct swx *swx);

int swx_setup(struct swx *swx, const struct swx_config *config, const char *name, const uint64_t *counts);
void swx_run(struct swx *swx, struct rte_mbuf **packets, unsigned int n);
uint64_t swx_stream(struct swx *swx, struct source *source, uint64_t bursts);
void swx_forward(struct swx *swx, struct device *device);
void swx_take_hits(struct swx *swx, uint64_t *hits);
uint64_t swx_state_sum(struct swx *swx, unsigned int state);

/* Functions of struct program for one pipeline, which has a static struct swx and a static struct swx_config. */
#define SWX_PROGRAM(role)                                                                                              \
	static struct swx swx_##role;                                                                                  \
	static int setup_##role(const uint64_t *entries)                                                               \
	{                                                                                                              \
		return swx_setup(&swx_##role, &config_##role, #role, entries);                                         \
	}                                                                                                              \
	static void run_##role(struct rte_mbuf **packets, unsigned int n)                                              \
	{                                                                                                              \
		swx_run(&swx_##role, packets, n);                                                                      \
	}                                                                                                              \
	static void take_hits_##role(uint64_t *hits)                                                                   \
	{                                                                                                              \
		swx_take_hits(&swx_##role, hits);                                                                      \
	}                                                                                                              \
	static uint64_t state_sum_##role(unsigned int state)                                                           \
	{                                                                                                              \
		return swx_state_sum(&swx_##role, state);                                                              \
	}                                                                                                              \
	static uint64_t stream_##role(struct source *source, uint64_t bursts)                                          \
	{                                                                                                              \
		return swx_stream(&swx_##role, source, bursts);                                                        \
	}                                                                                                              \
	static void forward_##role(struct device *device)                                                              \
	{                                                                                                              \
		swx_forward(&swx_##role, device);                                                                      \
	}

#endif
