/* SPDX-License-Identifier: Apache-2.0 */
/* Creation of tables: action data, exact match, and the two kinds of ternary match. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_errno.h>
#include <rte_hash_crc.h>
#include <rte_malloc.h>

#include "tables.h"

#define MAX_KEY_BYTES 512

int
tables_create(struct table *tables, unsigned int n, const char *role, const uint64_t *entries)
{
	unsigned int t;

	for (t = 0; t < n; t++) {
		char name[32];
		int result;

		snprintf(name, sizeof(name), "%s_%u", role, t);
		tables[t].count = tables[t].rows != NULL ? tables[t].n_rows : (uint32_t)entries[t];
		if (tables[t].create == NULL)
			continue; /* without a key nothing is looked up */
		result = tables[t].create(&tables[t], name);
		if (result != 0)
			return result;
	}
	return 0;
}

int
action_data_create(struct table *table, uint64_t n)
{
	uint64_t i;

	if (table->fill == NULL)
		return 0;
	table->entries = rte_zmalloc("entries", (n == 0 ? 1 : n) * table->entry_bytes, RTE_CACHE_LINE_SIZE);
	if (table->entries == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		table->fill(table->entries + i * table->entry_bytes, i, table->port);
	return 0;
}

/* How far the number of an entry is shifted in its key as bytes. */
static unsigned int
key_shift(const struct table *table)
{
	return table->free_bits + KEY_BYTES(table->key_bits) * 8 - table->key_bits;
}

void
entry_key(const struct table *table, uint64_t i, uint8_t *key)
{
	const unsigned int shift = key_shift(table);
	__uint128_t value = (__uint128_t)i << shift % 8;
	int at;

	if (table->rows != NULL) {
		memcpy(key, table->rows[i].key, KEY_BYTES(table->key_bits));
		return;
	}
	memset(key, 0, KEY_BYTES(table->key_bits));
	for (at = (int)KEY_BYTES(table->key_bits) - 1 - (int)(shift / 8); at >= 0 && value != 0; at--, value >>= 8)
		key[at] = (uint8_t)value;
}

unsigned int
entry_prefix(const struct table *table, uint64_t i)
{
	return table->rows != NULL ? table->rows[i].prefix_bits : (unsigned int)table->key_bits - table->free_bits;
}

void
entry_mask(const struct table *table, uint64_t i, uint8_t *mask)
{
	const unsigned int shift = key_shift(table), bytes = KEY_BYTES(table->key_bits);
	unsigned int free_bytes = shift / 8;

	if (table->rows != NULL) {
		memcpy(mask, table->rows[i].mask, bytes);
		return;
	}
	memset(mask, 0xff, bytes);
	memset(mask + bytes - free_bytes, 0, free_bytes);
	if (shift % 8 != 0)
		mask[bytes - free_bytes - 1] = (uint8_t)(0xff << shift % 8);
}

int
table_exact(struct table *table, const char *name)
{
	const struct rte_hash_parameters parameters = {
		.name = name,
		.entries = RTE_MAX(table->count + table->count / 4, 64u),
		.key_len = KEY_BYTES(table->key_bits),
		.hash_func = rte_hash_crc,
		.socket_id = SOCKET_ID_ANY,
	};
	uint8_t key[MAX_KEY_BYTES];
	uint64_t n;

	table->lookup = rte_hash_create(&parameters);
	if (table->lookup == NULL)
		return -rte_errno;
	if (table->fill != NULL) {
		const uint64_t positions = (uint64_t)rte_hash_max_key_id(table->lookup) + 1;

		table->entries = rte_zmalloc("entries", positions * table->entry_bytes, RTE_CACHE_LINE_SIZE);
		if (table->entries == NULL)
			return -ENOMEM;
	}
	for (n = 0; n < table->count; n++) {
		/* Of equal keys among rows the first counts, so it comes last. */
		const uint64_t i = table->rows != NULL ? table->count - 1 - n : n;
		int32_t position;

		entry_key(table, i, key);
		position = rte_hash_add_key(table->lookup, key);
		if (position < 0)
			return position;
		if (table->fill != NULL)
			table->fill(table->entries + (size_t)position * table->entry_bytes, i, table->port);
	}
	return 0;
}

/* Key or mask of up to 64 bit as a number. */
static uint64_t
entry_word(const struct table *table, uint64_t i, bool mask)
{
	const unsigned int bytes = KEY_BYTES(table->key_bits);
	uint8_t text[8];
	uint64_t word = 0;
	unsigned int b;

	if (mask)
		entry_mask(table, i, text);
	else
		entry_key(table, i, text);
	for (b = 0; b < bytes; b++)
		word = word << 8 | text[b];
	return word >> (bytes * 8 - table->key_bits);
}

/* Room for the list; also what follows from an empty one. */
static int
list_create(struct table *table, size_t entry_bytes)
{
	table->lookup = rte_zmalloc("list", RTE_MAX(table->count, 1u) * entry_bytes, RTE_CACHE_LINE_SIZE);
	return table->lookup == NULL ? -ENOMEM : action_data_create(table, table->count);
}

int
table_list32(struct table *table, const char *name)
{
	const int result = list_create(table, sizeof(struct list32_entry));
	struct list32_entry *list = table->lookup;
	uint32_t i;

	(void)name;
	for (i = 0; result == 0 && i < table->count; i++) {
		list[i].value = (uint32_t)entry_word(table, i, false);
		list[i].mask = (uint32_t)entry_word(table, i, true);
	}
	return result;
}

int
table_list64(struct table *table, const char *name)
{
	const int result = list_create(table, sizeof(struct list64_entry));
	struct list64_entry *list = table->lookup;
	uint32_t i;

	(void)name;
	for (i = 0; result == 0 && i < table->count; i++) {
		list[i].value = entry_word(table, i, false);
		list[i].mask = entry_word(table, i, true);
	}
	return result;
}

int
table_list(struct table *table, const char *name)
{
	const unsigned int words = (table->key_bits + 63) / 64;
	const int result = list_create(table, words * sizeof(struct list64_entry));
	struct list64_entry *list = table->lookup;
	uint8_t key[MAX_KEY_BYTES + 8] = {0}, mask[MAX_KEY_BYTES + 8] = {0};
	uint32_t i, w;

	(void)name;
	for (i = 0; result == 0 && i < table->count; i++) {
		entry_key(table, i, key);
		entry_mask(table, i, mask);
		for (w = 0; w < words; w++, list++) {
			memcpy(&list->value, key + 8 * w, 8);
			memcpy(&list->mask, mask + 8 * w, 8);
		}
	}
	return result;
}

int
table_acl(struct table *table, const char *name)
{
	const unsigned int fields = 1 + (table->key_bits + 31) / 32;
	const struct rte_acl_param parameters = {
		.name = name,
		.socket_id = SOCKET_ID_ANY,
		.rule_size = RTE_ACL_RULE_SZ(fields),
		.max_rule_num = RTE_MAX(table->count, 1u),
	};
	struct rte_acl_config config = {.num_categories = 1, .num_fields = fields};
	uint8_t key[RTE_ACL_MAX_FIELDS * 4] = {0}, mask[RTE_ACL_MAX_FIELDS * 4] = {0};
	struct rte_acl_rule *rule;
	unsigned int f;
	uint32_t i;
	int result = 0;

	if (fields > RTE_ACL_MAX_FIELDS)
		return -E2BIG;
	for (f = 0; f < fields; f++) {
		config.defs[f].type = RTE_ACL_FIELD_TYPE_BITMASK;
		config.defs[f].size = f == 0 ? 1 : 4;
		config.defs[f].field_index = (uint8_t)f;
		config.defs[f].input_index = (uint8_t)f;
		config.defs[f].offset = 4 * f;
	}
	table->lookup = rte_acl_create(&parameters);
	if (table->lookup == NULL)
		return -rte_errno;
	rule = calloc(1, RTE_ACL_RULE_SZ(fields));
	if (rule == NULL)
		return -ENOMEM;
	for (i = 0; result == 0 && i < table->count; i++) {
		entry_key(table, i, key);
		entry_mask(table, i, mask);
		rule->data.category_mask = 1;
		rule->data.priority = RTE_ACL_MAX_PRIORITY - (int32_t)i;
		rule->data.userdata = i + 1;
		for (f = 1; f < fields; f++) {
			uint32_t value, bits;

			memcpy(&value, key + 4 * (f - 1), 4);
			memcpy(&bits, mask + 4 * (f - 1), 4);
			rule->field[f].value.u32 = rte_be_to_cpu_32(value);
			rule->field[f].mask_range.u32 = rte_be_to_cpu_32(bits);
		}
		result = rte_acl_add_rules(table->lookup, rule, 1);
	}
	free(rule);
	if (result == 0 && table->count != 0)
		result = rte_acl_build(table->lookup, &config);
	return result != 0 ? result : action_data_create(table, table->count);
}
