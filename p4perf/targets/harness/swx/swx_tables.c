/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filling the tables of a pipeline.
 *
 * The control library of SWX compares every new entry with all others; a table of a million entries is filled by the
 * operations of the table itself instead. Each table is made anew with as many slots as it gets entries, so that one
 * compiled pipeline serves tables of all sizes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "swx.h"

#define ENTRY_MULTIPLIER 0x9E3779B1u
#define LINE_ROOM 8192

/* One table as the pipeline has it. */
struct layout {
	const char *name;
	uint32_t id;
	struct rte_swx_ctl_table_info info;
	struct rte_swx_table_ops ops;
	struct rte_swx_table_params params;
	struct rte_swx_ctl_table_match_field_info *fields;
};

static void *
zeroes(size_t count, size_t size)
{
	void *memory = calloc(count + 1, size);

	if (memory == NULL)
		fail("memory", "no memory to fill a table");
	return memory;
}

static size_t
action_bytes(struct rte_swx_pipeline *p, uint32_t action)
{
	struct rte_swx_ctl_action_info info;
	struct rte_swx_ctl_action_arg_info argument;
	uint32_t a;
	size_t bits = 0;

	if (rte_swx_ctl_action_info_get(p, action, &info) != 0)
		fail("spec", "action %u is unknown", action);
	for (a = 0; a < info.n_args; a++)
		if (rte_swx_ctl_action_arg_info_get(p, action, a, &argument) == 0)
			bits += argument.n_bits;
	return bits / 8;
}

static void
find_table(struct rte_swx_pipeline *p, const char *name, struct layout *l)
{
	struct rte_swx_ctl_pipeline_info info;
	struct rte_swx_ctl_table_action_info action;
	uint32_t first = UINT32_MAX, end = 0, i;
	int is_stub = 0;

	memset(l, 0, sizeof(*l));
	l->name = name;
	rte_swx_ctl_pipeline_info_get(p, &info);
	for (l->id = 0; l->id < info.n_tables; l->id++)
		if (rte_swx_ctl_table_info_get(p, l->id, &l->info) == 0 && strcmp(l->info.name, name) == 0)
			break;
	if (l->id == info.n_tables)
		fail("spec", "the pipeline has no table %s", name);
	if (rte_swx_ctl_table_ops_get(p, l->id, &l->ops, &is_stub) != 0 || is_stub)
		fail("spec", "table %s has no key: it takes no entries", name);
	l->fields = zeroes(l->info.n_match_fields, sizeof(*l->fields));
	for (i = 0; i < l->info.n_match_fields; i++) {
		rte_swx_ctl_table_match_field_info_get(p, l->id, i, &l->fields[i]);
		first = RTE_MIN(first, l->fields[i].offset);
		end = RTE_MAX(end, l->fields[i].offset + l->fields[i].n_bits);
	}
	/* A table that takes no entries one by one is a wildcard table: it is always built of all of them. */
	l->params.match_type = l->ops.add != NULL ? RTE_SWX_TABLE_MATCH_EXACT : RTE_SWX_TABLE_MATCH_WILDCARD;
	l->params.key_offset = first / 8;
	l->params.key_size = (end - first) / 8;
	l->params.key_mask0 = zeroes(l->params.key_size, 1);
	for (i = 0; i < l->info.n_match_fields; i++)
		memset(l->params.key_mask0 + (l->fields[i].offset - first) / 8, 0xff, l->fields[i].n_bits / 8);
	for (i = 0; i < l->info.n_actions; i++)
		if (rte_swx_ctl_table_action_info_get(p, l->id, i, &action) == 0)
			l->params.action_data_size = RTE_MAX(l->params.action_data_size,
							     (uint32_t)action_bytes(p, action.action_id));
	l->params.hash_func = l->info.hash_func;
}

/* A number of any width, big-endian or little-endian, right behind the bytes before it. */
static void
store(uint8_t *at, unsigned int bytes, __uint128_t value, bool big_endian)
{
	unsigned int i;

	for (i = 0; i < bytes; i++)
		at[big_endian ? bytes - 1 - i : i] = i < sizeof(value) ? (uint8_t)(value >> (8 * i)) : 0;
}

/* Headers are big-endian, metadata is as the processor has it, but for fields that SWX only ever copies. */
static bool
is_big_endian(const struct rte_swx_ctl_table_match_field_info *field)
{
	return field->is_header || field->n_bits > 64;
}

static __uint128_t
cut(__uint128_t value, unsigned int shift, unsigned int bits)
{
	value = shift < 128 ? value >> shift : 0;
	return bits < 128 ? value & (((__uint128_t)1 << bits) - 1) : value;
}

static void
store_key(const struct layout *l, const struct swx_table *table, uint64_t entry, uint8_t *key)
{
	const __uint128_t value = (__uint128_t)entry << table->free_bits;
	unsigned int f = table->n_keys, shift = 0;

	while (f-- != 0) {
		const struct rte_swx_ctl_table_match_field_info *const field = &l->fields[f];

		store(key + field->offset / 8 - l->params.key_offset, field->n_bits / 8,
		      cut(value, shift, table->key_bits[f]), is_big_endian(field));
		shift += table->key_bits[f];
	}
}

static void
store_mask(const struct layout *l, const struct swx_table *table, uint8_t *mask)
{
	unsigned int f = table->n_keys, shift = 0;

	memset(mask, 0, l->params.key_size);
	while (f-- != 0) {
		const struct rte_swx_ctl_table_match_field_info *const field = &l->fields[f];
		const unsigned int open = table->free_bits <= shift ? 0 : RTE_MIN(table->free_bits - shift, table->key_bits[f]);
		uint8_t *const at = mask + field->offset / 8 - l->params.key_offset;
		unsigned int bit;

		memset(at, 0xff, field->n_bits / 8);
		for (bit = 0; bit < open; bit++)
			at[is_big_endian(field) ? field->n_bits / 8 - 1 - bit / 8 : bit / 8] &= (uint8_t)~(1u << bit % 8);
		shift += table->key_bits[f];
	}
}

/* Where the arguments of an action lie in the action data, and how. */
struct slot {
	unsigned int at, bytes;
	bool big_endian;
};

static uint32_t
find_action(struct rte_swx_pipeline *p, const struct swx_table *table, struct slot *slots)
{
	struct rte_swx_ctl_pipeline_info pipeline;
	struct rte_swx_ctl_action_info info;
	struct rte_swx_ctl_action_arg_info argument;
	uint32_t action, a, bits = 0;

	rte_swx_ctl_pipeline_info_get(p, &pipeline);
	for (action = 0; action < pipeline.n_actions; action++)
		if (rte_swx_ctl_action_info_get(p, action, &info) == 0 && strcmp(info.name, table->action) == 0)
			break;
	if (action == pipeline.n_actions || info.n_args != table->n_arguments)
		fail("spec", "action %s of table %s is not as it was described", table->action, table->name);
	for (a = 0; a < info.n_args; a++) {
		rte_swx_ctl_action_arg_info_get(p, action, a, &argument);
		slots[a] = (struct slot){bits / 8, argument.n_bits / 8,
					 argument.is_network_byte_order || argument.n_bits > 64};
		bits += argument.n_bits;
	}
	return action;
}

static void
store_arguments(const struct swx_table *table, const struct slot *slots, uint64_t entry, uint8_t *data)
{
	unsigned int a;

	for (a = 0; a < table->n_arguments; a++) {
		const struct swx_argument *const argument = &table->arguments[a];
		const uint64_t word = argument->parameter == 0 ?
					      table->port :
					      (uint32_t)(entry * ENTRY_MULTIPLIER + argument->parameter);

		store(data + slots[a].at, slots[a].bytes, cut(word, argument->shift, argument->width_bits),
		      slots[a].big_endian);
	}
}

static void
replace_table(struct rte_swx_pipeline *p, const struct layout *l, struct rte_swx_table_entry_list *entries,
	      uint64_t count, struct rte_swx_table_state **state)
{
	struct rte_swx_table_params params = l->params;
	void *table;

	params.n_keys_max = (uint32_t)RTE_MAX(count, UINT64_C(1));
	rte_swx_pipeline_table_state_get(p, state);
	table = l->ops.create(&params, entries, l->info.args, 0);
	if (table == NULL)
		fail("memory", "SWX cannot create table %s with %lu entries", l->name, count);
	if (l->ops.free != NULL)
		l->ops.free((*state)[l->id].obj);
	(*state)[l->id].obj = table;
}

static void
fill_exact(struct swx *swx, const struct swx_table *table, const struct layout *l, uint64_t count)
{
	struct slot *const slots = zeroes(table->n_arguments, sizeof(*slots));
	struct rte_swx_table_entry entry = {
		.key = zeroes(l->params.key_size, 1),
		.action_id = find_action(swx->pipeline, table, slots),
		.action_data = zeroes(l->params.action_data_size, 1),
	};
	struct rte_swx_table_state *state;
	uint64_t i;

	replace_table(swx->pipeline, l, NULL, count, &state);
	for (i = 0; i < count; i++) {
		store_key(l, table, i, entry.key);
		store_arguments(table, slots, i, entry.action_data);
		if (l->ops.add(state[l->id].obj, &entry) != 0)
			fail("memory", "table %s takes only %lu of %lu entries", table->name, i, count);
	}
	free(entry.key);
	free(entry.action_data);
	free(slots);
}

static void
fill_wildcard(struct swx *swx, const struct swx_table *table, const struct layout *l, uint64_t count)
{
	struct slot *const slots = zeroes(table->n_arguments, sizeof(*slots));
	struct rte_swx_table_entry *const entries = zeroes(count, sizeof(*entries));
	uint8_t *const keys = zeroes(count, l->params.key_size);
	uint8_t *const data = zeroes(count, l->params.action_data_size);
	uint8_t *const mask = zeroes(l->params.key_size, 1);
	const uint32_t action = find_action(swx->pipeline, table, slots);
	struct rte_swx_table_entry_list list = TAILQ_HEAD_INITIALIZER(list);
	struct rte_swx_table_state *state;
	uint64_t i;

	store_mask(l, table, mask);
	for (i = 0; i < count; i++) {
		entries[i] = (struct rte_swx_table_entry){
			.key = keys + i * l->params.key_size,
			.key_mask = mask,
			.action_id = action,
			.action_data = data + i * l->params.action_data_size,
		};
		store_key(l, table, i, entries[i].key);
		store_arguments(table, slots, i, entries[i].action_data);
		TAILQ_INSERT_TAIL(&list, &entries[i], node);
	}
	replace_table(swx->pipeline, l, &list, count, &state);
	free(mask);
	free(data);
	free(keys);
	free(entries);
	free(slots);
}

void
swx_fill(struct swx *swx, const uint64_t *counts)
{
	struct layout l;
	unsigned int t;

	for (t = 0; t < swx->config->n_tables; t++) {
		const struct swx_table *const table = &swx->config->tables[t];

		if (table->action == NULL)
			continue;
		find_table(swx->pipeline, table->name, &l);
		if (l.info.n_match_fields != table->n_keys)
			fail("spec", "table %s has %u match fields, not %u", table->name, l.info.n_match_fields,
			     table->n_keys);
		if (l.params.match_type == RTE_SWX_TABLE_MATCH_EXACT)
			fill_exact(swx, table, &l, counts[t]);
		else
			fill_wildcard(swx, table, &l, counts[t]);
		free(l.fields);
	}
}

/* The entries of one table that stood in the file. */
static void
finish_table(struct swx *swx, const char *name, struct rte_swx_table_entry_list *list, uint64_t count)
{
	struct rte_swx_table_state *state;
	struct layout l;

	if (name[0] == '\0' || count == 0)
		return;
	find_table(swx->pipeline, name, &l);
	replace_table(swx->pipeline, &l, list, RTE_MAX(count, (uint64_t)l.info.size), &state);
	free(l.fields);
	TAILQ_INIT(list);
}

void
swx_add_entries(struct swx *swx)
{
	struct rte_swx_table_entry_list list = TAILQ_HEAD_INITIALIZER(list);
	struct rte_swx_ctl_pipeline *const control = rte_swx_ctl_pipeline_create(swx->pipeline);
	static char line[LINE_ROOM];
	char name[RTE_SWX_NAME_SIZE] = "", next[RTE_SWX_NAME_SIZE], rest[2];
	uint64_t number = 0, count = 0;
	FILE *const file = fopen(swx->config->entries, "r");

	if (control == NULL)
		fail("memory", "no memory for the entries of the tables");
	if (file == NULL)
		fail("spec", "cannot open %s", swx->config->entries);
	while (fgets(line, sizeof(line), file) != NULL) {
		struct rte_swx_table_entry *entry;
		int blank = 0;

		number++;
		if (sscanf(line, " table %63s %1s", next, rest) == 1) {
			finish_table(swx, name, &list, count);
			strcpy(name, next);
			count = 0;
			continue;
		}
		entry = rte_swx_ctl_pipeline_table_entry_read(control, name, line, &blank);
		if (entry != NULL) {
			TAILQ_INSERT_TAIL(&list, entry, node);
			count++;
		} else if (strspn(line, " \t\r\n") != strlen(line) && !blank) {
			fail("spec", "%s:%lu: no entry of table %s", swx->config->entries, number, name);
		}
	}
	finish_table(swx, name, &list, count);
	fclose(file);
}
