/* SPDX-License-Identifier: Apache-2.0 */
/* Match-action tables of generated programs: what they are made of, how they are filled, and the lookups. */
#ifndef P4PERF_TABLES_H
#define P4PERF_TABLES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_acl.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_hash.h>
#include <rte_lpm.h>
#include <rte_lpm6.h>

/* An entry: its key and its mask as bytes, and how many bits of the key it compares. */
struct row {
	const char *key, *mask;
	uint32_t prefix_bits;
};

/*
 * A table. Entry i matches the key i << free_bits, whatever the lowest free_bits bits of a packet's key are; or the
 * entries are rows, of which the first that matches counts. Keys as bytes are big-endian; if key_bits is no multiple of
 * 8, zeros follow the last bit.
 */
struct table {
	void *lookup;     /* what is searched: an rte_hash, an rte_lpm, a list, ... */
	uint8_t *entries; /* action data, by the index that the lookup returns; NULL if actions have none */
	uint64_t hits;
	const struct row *rows; /* NULL: the entries follow the rule */
	uint32_t n_rows;
	uint32_t count;
	uint32_t entry_bytes;
	uint32_t port;
	uint16_t key_bits;
	uint16_t free_bits;
	void (*fill)(void *entry, uint64_t i, uint32_t port); /* action data of entry i; NULL if actions have none */
	int (*create)(struct table *table, const char *name); /* one of the functions below; 0 or a negative errno */
} __rte_cache_aligned;

/* Create and fill all tables of a program; entries[t] is the number of entries of table t. 0, or a negative errno. */
int tables_create(struct table *tables, unsigned int n, const char *role, const uint64_t *entries);

/* Kinds of tables. The index is the number of the entry, but for table_exact: the position in the hash. */
int table_exact(struct table *table, const char *name);   /* rte_hash: cuckoo, CRC-32C */
int table_lpm(struct table *table, const char *name);     /* rte_lpm: keys of up to 32 bit */
int table_lpm6(struct table *table, const char *name);    /* rte_lpm6: keys of up to 128 bit */
int table_fib(struct table *table, const char *name);     /* rte_fib, DIR24_8: keys of up to 32 bit */
int table_fib6(struct table *table, const char *name);    /* rte_fib6, trie: keys of up to 128 bit */
int table_list32(struct table *table, const char *name);  /* list of values and masks: keys of up to 32 bit */
int table_list64(struct table *table, const char *name);  /* the same: keys of up to 64 bit */
int table_list(struct table *table, const char *name);    /* the same: longer keys, word by word */
int table_acl(struct table *table, const char *name);     /* rte_acl */

/* Helpers of these. Entries are created by action_data_create() where the index is the number of the entry. */
int action_data_create(struct table *table, uint64_t n);
void entry_key(const struct table *table, uint64_t i, uint8_t *key);
void entry_mask(const struct table *table, uint64_t i, uint8_t *mask);
unsigned int entry_prefix(const struct table *table, uint64_t i);

#define KEY_BYTES(bits) (((bits) + 7) / 8)

/* Lookups return the index, or a negative number on a miss. */
#define LOOKUP_INLINE static inline __attribute__((always_inline, unused))

LOOKUP_INLINE int64_t
lookup_exact(const struct table *table, const uint8_t *key)
{
	return rte_hash_lookup(table->lookup, key);
}

/* The key in the highest bits. */
LOOKUP_INLINE int64_t
lookup_lpm(const struct table *table, uint32_t key)
{
	uint32_t next_hop;

	return rte_lpm_lookup(table->lookup, key, &next_hop) == 0 ? (int64_t)next_hop : -1;
}

LOOKUP_INLINE int64_t
lookup_lpm6(const struct table *table, const uint8_t *key)
{
	uint32_t next_hop;

	return rte_lpm6_lookup(table->lookup, key, &next_hop) == 0 ? (int64_t)next_hop : -1;
}

#define FIB_MISS 0x7fffffffu /* largest next hop of 4 bytes */

LOOKUP_INLINE int64_t
lookup_fib(const struct table *table, uint32_t key)
{
	uint64_t next_hop;

	rte_fib_lookup_bulk(table->lookup, &key, &next_hop, 1);
	return next_hop != FIB_MISS ? (int64_t)next_hop : -1;
}

LOOKUP_INLINE int64_t
lookup_fib6(const struct table *table, uint8_t *key)
{
	uint64_t next_hop;

	rte_fib6_lookup_bulk(table->lookup, (uint8_t (*)[RTE_FIB6_IPV6_ADDR_SIZE])key, &next_hop, 1);
	return next_hop != FIB_MISS ? (int64_t)next_hop : -1;
}

struct list32_entry {
	uint32_t value, mask;
};

struct list64_entry {
	uint64_t value, mask;
};

/* Lists: the first entry that matches, tried one after the other. Where a loop of two branches crosses a cache line, a
 * round takes two cycles instead of one, so that the same list would cost twice as much in another program. */
#define ALIGNED_LOOP() __asm__ volatile(".p2align 6")

LOOKUP_INLINE int64_t
lookup_list32(const struct table *table, uint32_t key)
{
	const struct list32_entry *list = table->lookup;
	const uint32_t count = table->count;
	uint32_t i = 0;

	if (count == 0)
		return -1;
	ALIGNED_LOOP();
	do
		if ((key & list[i].mask) == list[i].value)
			return i;
	while (++i < count);
	return -1;
}

LOOKUP_INLINE int64_t
lookup_list64(const struct table *table, uint64_t key)
{
	const struct list64_entry *list = table->lookup;
	const uint32_t count = table->count;
	uint32_t i = 0;

	if (count == 0)
		return -1;
	ALIGNED_LOOP();
	do
		if ((key & list[i].mask) == list[i].value)
			return i;
	while (++i < count);
	return -1;
}

/* Keys of several words, padded with zeros; an entry is that many pairs of value and mask. Few entries have the first
 * word of a key and not the rest. */
LOOKUP_INLINE int64_t
lookup_list(const struct table *table, const uint8_t *key, unsigned int words)
{
	const struct list64_entry *list = table->lookup;
	const uint32_t count = table->count;
	uint64_t first, word;
	uint32_t i = 0, w;

	if (count == 0)
		return -1;
	memcpy(&first, key, 8);
	ALIGNED_LOOP();
	do {
		if (unlikely((first & list->mask) == list->value)) {
			for (w = 1; w < words; w++) {
				memcpy(&word, key + 8 * w, 8);
				if ((word & list[w].mask) != list[w].value)
					break;
			}
			if (w == words)
				return i;
		}
		list += words;
	} while (++i < count);
	return -1;
}

/* rte_acl wants a field of one byte first and groups of four bytes then. */
#define ACL_KEY_BYTES(bits) (4 + ((bits) + 31) / 32 * 4)

LOOKUP_INLINE int64_t
lookup_acl(const struct table *table, const uint8_t *key)
{
	uint32_t found;

	rte_acl_classify(table->lookup, &key, &found, 1, 1);
	return (int64_t)found - 1;
}

#endif
