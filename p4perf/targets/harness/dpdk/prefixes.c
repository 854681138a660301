/* SPDX-License-Identifier: Apache-2.0 */
/* Creation of tables for the longest prefix match. Entry i is the prefix of key_bits - free_bits bits with that number. */
#include <errno.h>

#include <rte_byteorder.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include "tables.h"

#define ADDRESS_BYTES 16 /* of rte_lpm6 and rte_fib6 */

/* How many prefixes of some length the entries of a table have among them. */
static uint32_t
distinct(const struct table *table, unsigned int length)
{
	if (table->rows != NULL)
		return table->count + 1;
	const unsigned int depth = table->key_bits - table->free_bits, more = depth > length ? depth - length : 0;

	return more >= 32 ? 1 : (uint32_t)(((uint64_t)table->count + (UINT64_C(1) << more) - 1) >> more);
}

/* Add one prefix: the number of the entry is its next hop. */
typedef int (*add_prefix)(void *lookup, const uint8_t *key, uint8_t depth, uint64_t i);

/* Add all entries. Of equal rows the first counts, so it comes last; one that takes every key is added in two halves. */
static int
fill_prefixes(struct table *table, add_prefix add)
{
	uint8_t key[ADDRESS_BYTES] = {0};
	int result = 0;
	uint64_t n;

	for (n = 0; result == 0 && n < table->count; n++) {
		const uint64_t i = table->rows != NULL ? table->count - 1 - n : n;
		const uint8_t depth = (uint8_t)entry_prefix(table, i);

		entry_key(table, i, key);
		if (depth != 0) {
			result = add(table->lookup, key, depth, i);
			continue;
		}
		result = add(table->lookup, key, 1, i);
		key[0] = 0x80;
		if (result == 0)
			result = add(table->lookup, key, 1, i);
		key[0] = 0;
	}
	return result != 0 ? result : action_data_create(table, table->count);
}

static uint32_t
address(const uint8_t *key)
{
	uint32_t value;

	memcpy(&value, key, sizeof(value));
	return rte_be_to_cpu_32(value);
}

static int
add_lpm(void *lookup, const uint8_t *key, uint8_t depth, uint64_t i)
{
	return rte_lpm_add(lookup, address(key), depth, (uint32_t)i);
}

static int
add_lpm6(void *lookup, const uint8_t *key, uint8_t depth, uint64_t i)
{
	return rte_lpm6_add(lookup, key, depth, (uint32_t)i);
}

static int
add_fib(void *lookup, const uint8_t *key, uint8_t depth, uint64_t i)
{
	return rte_fib_add(lookup, address(key), depth, i);
}

static int
add_fib6(void *lookup, const uint8_t *key, uint8_t depth, uint64_t i)
{
	return rte_fib6_add(lookup, key, depth, i);
}

/* The longest prefix among the entries. */
static unsigned int
longest(const struct table *table)
{
	return table->rows != NULL ? table->key_bits : (unsigned int)table->key_bits - table->free_bits;
}

int
table_lpm(struct table *table, const char *name)
{
	const struct rte_lpm_config config = {
		.max_rules = table->count + 1,
		.number_tbl8s = longest(table) > 24 ? distinct(table, 24) : 1,
	};

	table->lookup = rte_lpm_create(name, SOCKET_ID_ANY, &config);
	if (table->lookup == NULL)
		return -rte_errno;
	return fill_prefixes(table, add_lpm);
}

int
table_lpm6(struct table *table, const char *name)
{
	struct rte_lpm6_config config = {.max_rules = table->count + 1, .number_tbl8s = 1};
	unsigned int length;

	for (length = 24; length < longest(table); length += 8)
		config.number_tbl8s += distinct(table, length);
	table->lookup = rte_lpm6_create(name, SOCKET_ID_ANY, &config);
	if (table->lookup == NULL)
		return -rte_errno;
	return fill_prefixes(table, add_lpm6);
}

int
table_fib(struct table *table, const char *name)
{
	struct rte_fib_conf config = {
		.type = RTE_FIB_DIR24_8,
		.default_nh = FIB_MISS,
		.max_routes = (int)table->count + 1,
		.dir24_8 = {.nh_sz = RTE_FIB_DIR24_8_4B, .num_tbl8 = longest(table) > 24 ? distinct(table, 24) + 1 : 1},
	};

	table->lookup = rte_fib_create(name, SOCKET_ID_ANY, &config);
	if (table->lookup == NULL)
		return -rte_errno;
	return fill_prefixes(table, add_fib);
}

int
table_fib6(struct table *table, const char *name)
{
	struct rte_fib6_conf config = {
		.type = RTE_FIB6_TRIE,
		.default_nh = FIB_MISS,
		.max_routes = (int)table->count + 1,
		.trie = {.nh_sz = RTE_FIB6_TRIE_4B, .num_tbl8 = 1},
	};

	/* rte_fib6 reserves a group for every byte of the first prefix in each block of its last whole byte. */
	config.trie.num_tbl8 += (longest(table) + 7u) / 8 * distinct(table, longest(table) / 8 * 8);
	table->lookup = rte_fib6_create(name, SOCKET_ID_ANY, &config);
	if (table->lookup == NULL)
		return -rte_errno;
	return fill_prefixes(table, add_fib6);
}
