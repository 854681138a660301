/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Specifications of SWX pipelines as text (.spec), as DPDK 22.11 reads them: blocks and statements of one line each.
 *
 * DPDK 22.11 reads them to generate code only. Here they are read so that the public functions of librte_pipeline can make
 * a pipeline that is interpreted. Reading an erroneous file ends in fail(), with the line and the token.
 */
#ifndef P4PERF_SWX_SPEC_H
#define P4PERF_SWX_SPEC_H

#include <stdbool.h>

#include <rte_common.h>
#include <rte_swx_pipeline.h>

/* A list of names or instructions, with the lines that they stand in. */
struct spec_list {
	unsigned int n;
	const char **items;
	unsigned int *lines;
};

struct spec_struct {
	const char *name;
	struct rte_swx_field_params *fields;
	unsigned int n_fields;
	bool variable; /* the last field is */
};

/* An instance of a structure, or of a type of extern objects. */
struct spec_instance {
	const char *name;
	const char *type;   /* NULL: none */
	const char *pragma; /* NULL: none */
	unsigned int line;
	struct spec_list instructions; /* of an action */
};

enum spec_kind { SPEC_TABLE, SPEC_SELECTOR, SPEC_LEARNER };

/* A table, selector or learner. */
struct spec_table {
	enum spec_kind kind;
	const char *name;
	unsigned int line;
	struct spec_list keys;      /* match fields, or fields of a selector */
	enum rte_swx_table_match_type *matches;
	struct spec_list actions;
	int *for_entries, *for_default;
	const char *default_action, *default_arguments;
	int default_is_const;
	const char *hash, *type, *pragma;
	uint32_t size;
	const char *group_id, *member_id;
	uint32_t n_groups, n_members;
	uint32_t *timeouts;
	unsigned int n_timeouts;
};

/* A register array or meter array. */
struct spec_array {
	const char *name;
	uint32_t size;
	uint64_t initial;
	unsigned int line;
};

struct spec {
	const char *path;
	struct spec_struct *structs;
	struct spec_instance *headers, *actions, *objects;
	struct spec_table *tables;
	struct spec_array *registers, *meters;
	unsigned int n_structs, n_headers, n_actions, n_objects, n_tables, n_registers, n_meters;
	const char *metadata; /* its structure; NULL: none yet */
	struct spec_list apply;
};

/* Give up because of a line; token may be NULL. */
__attribute__((noreturn)) void spec_fail(const struct spec *spec, unsigned int line, const char *token, const char *what);

/* Read a file. */
void spec_read(struct spec *spec, const char *path);

/* Check the instructions of all actions and of the pipeline: names, number and kind of operands, labels. */
void spec_check(const struct spec *spec);

/* Make the pipeline of it. drop_port takes the packets that instruction drop drops. */
void spec_configure(const struct spec *spec, struct rte_swx_pipeline *pipeline, unsigned int drop_port);

#endif
