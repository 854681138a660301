/* SPDX-License-Identifier: Apache-2.0 */
/* Creation of tables for the longest prefix match. Entry i is the prefix of key_bits - free_bits bits with that number. */
#include <errno.h>

#include <rte_errno.h>
#include <rte_malloc.h>

#include "tables.h"

#define ADDRESS_BYTES 16 /* of rte_lpm6 and rte_fib6 */

/* How many prefixes of some length the entries of a table have among them. */
static uint32_t
distinct(const struct table *table, unsigned int length)
{
	const unsigned int depth = table->key_bits - table->free_bits, more = depth > length ? depth - length : 0;

	return more >= 32 ? 1 : (uint32_t)(((uint64_t)table->count + (UINT64_C(1) << more) - 1) >> more);
}

static uint32_t
address(const struct table *table, uint64_t i)
{
	return (uint32_t)(i << (table->free_bits + 32 - table->key_bits));
}

int
table_lpm(struct table *table, const char *name)
{
	const uint8_t depth = (uint8_t)(table->key_bits - table->free_bits);
	const struct rte_lpm_config config = {
		.max_rules = RTE_MAX(table->count, 1u),
		.number_tbl8s = depth > 24 ? distinct(table, 24) : 1,
	};
	int result = 0;
	uint64_t i;

	table->lookup = rte_lpm_create(name, SOCKET_ID_ANY, &config);
	if (table->lookup == NULL)
		return -rte_errno;
	for (i = 0; result == 0 && i < table->count; i++)
		result = rte_lpm_add(table->lookup, address(table, i), depth, (uint32_t)i);
	return result != 0 ? result : action_data_create(table, table->count);
}

int
table_lpm6(struct table *table, const char *name)
{
	const uint8_t depth = (uint8_t)(table->key_bits - table->free_bits);
	struct rte_lpm6_config config = {.max_rules = RTE_MAX(table->count, 1u), .number_tbl8s = 1};
	uint8_t key[ADDRESS_BYTES] = {0};
	unsigned int length;
	int result = 0;
	uint64_t i;

	for (length = 24; length < depth; length += 8)
		config.number_tbl8s += distinct(table, length);
	table->lookup = rte_lpm6_create(name, SOCKET_ID_ANY, &config);
	if (table->lookup == NULL)
		return -rte_errno;
	for (i = 0; result == 0 && i < table->count; i++) {
		entry_key(table, i, key);
		result = rte_lpm6_add(table->lookup, key, depth, (uint32_t)i);
	}
	return result != 0 ? result : action_data_create(table, table->count);
}

int
table_fib(struct table *table, const char *name)
{
	const uint8_t depth = (uint8_t)(table->key_bits - table->free_bits);
	struct rte_fib_conf config = {
		.type = RTE_FIB_DIR24_8,
		.default_nh = FIB_MISS,
		.max_routes = (int)RTE_MAX(table->count, 1u),
		.dir24_8 = {.nh_sz = RTE_FIB_DIR24_8_4B, .num_tbl8 = depth > 24 ? distinct(table, 24) + 1 : 1},
	};
	int result = 0;
	uint64_t i;

	table->lookup = rte_fib_create(name, SOCKET_ID_ANY, &config);
	if (table->lookup == NULL)
		return -rte_errno;
	for (i = 0; result == 0 && i < table->count; i++)
		result = rte_fib_add(table->lookup, address(table, i), depth, i);
	return result != 0 ? result : action_data_create(table, table->count);
}

int
table_fib6(struct table *table, const char *name)
{
	const uint8_t depth = (uint8_t)(table->key_bits - table->free_bits);
	struct rte_fib6_conf config = {
		.type = RTE_FIB6_TRIE,
		.default_nh = FIB_MISS,
		.max_routes = (int)RTE_MAX(table->count, 1u),
		.trie = {.nh_sz = RTE_FIB6_TRIE_4B, .num_tbl8 = 1},
	};
	uint8_t key[ADDRESS_BYTES] = {0};
	int result = 0;
	uint64_t i;

	/* rte_fib6 reserves a group for every byte of the first prefix in each block of its last whole byte. */
	config.trie.num_tbl8 += (depth + 7u) / 8 * distinct(table, depth / 8 * 8);
	table->lookup = rte_fib6_create(name, SOCKET_ID_ANY, &config);
	if (table->lookup == NULL)
		return -rte_errno;
	for (i = 0; result == 0 && i < table->count; i++) {
		entry_key(table, i, key);
		result = rte_fib6_add(table->lookup, key, depth, i);
	}
	return result != 0 ? result : action_data_create(table, table->count);
}
