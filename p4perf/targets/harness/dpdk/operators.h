/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators: functions of the bytes of a packet whose cost is measured. Each returns a number that goes into the packet,
 * so that it has to be computed; operator_setup_NAME() makes what it needs. One program has its own copies of all state.
 *
 * Everything is inlined into the program. The bytes come from memory anew for each packet, so nothing can be hoisted.
 */
#ifndef P4PERF_OPERATORS_H
#define P4PERF_OPERATORS_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_jhash.h>
#include <rte_lcore.h>
#include <rte_log.h>

#include "hashes.h"

#define OPERATOR static inline __attribute__((always_inline, unused))
#define OPERATOR_STATE static __attribute__((unused))

/* An operator of the user, in a file of its own. */
uint64_t operate(uint8_t *packet, uint32_t length);
int operate_setup(void) __attribute__((weak));

/*
 * Nothing behind it begins before everything before it is done. Address and length of the packet are in registers then,
 * whether somebody needs them or not, so that programs with and without an operator are alike.
 */
OPERATOR void
fence(const uint8_t *packet, uint32_t length)
{
#if defined(__x86_64__)
	__asm__ volatile("lfence" : : "r"(packet), "r"(length) : "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dsb sy\n\tisb" : : "r"(packet), "r"(length) : "memory");
#else
#error "p4perf: no fence known for this architecture"
#endif
}

#define FENCE_CHAIN 8

/* The same after a chain of that many dependent multiplications by one, which begins with the value. */
OPERATOR uint64_t
fence_after(uint64_t value, const uint8_t *packet, uint32_t length)
{
	unsigned int i;

	for (i = 0; i < FENCE_CHAIN; i++) {
#if defined(__x86_64__)
		__asm__ volatile("imul $1, %0, %0" : "+r"(value) : : "cc");
#else
		__asm__ volatile("" : "+r"(value));
#endif
	}
	fence(packet, length);
	return value;
}

#define OPERATOR_NO_SETUP(name)                                                                                        \
	OPERATOR int operator_setup_##name(unsigned int flows)                                                         \
	{                                                                                                              \
		(void)flows;                                                                                           \
		return 0;                                                                                              \
	}

/* --- over all bytes */

OPERATOR_NO_SETUP(rte_hash_crc)

OPERATOR uint64_t
operator_rte_hash_crc(const uint8_t *packet, uint32_t length)
{
	return rte_hash_crc(packet, length, 0);
}

OPERATOR_NO_SETUP(rte_net_crc)

OPERATOR uint64_t
operator_rte_net_crc(const uint8_t *packet, uint32_t length)
{
	return rte_net_crc_calc(packet, length, RTE_NET_CRC32_ETH);
}

OPERATOR_NO_SETUP(checksum)

OPERATOR uint64_t
operator_checksum(const uint8_t *packet, uint32_t length)
{
	return hash_checksum16(packet, length);
}

OPERATOR_NO_SETUP(jhash)

OPERATOR uint64_t
operator_jhash(const uint8_t *packet, uint32_t length)
{
	return rte_jhash(packet, length, 0);
}

OPERATOR_NO_SETUP(htons_words)

/* One by one: the empty statement keeps the compiler from doing several at once. */
OPERATOR uint64_t
operator_htons_words(const uint8_t *packet, uint32_t length)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i + 2 <= length; i += 2) {
		uint16_t word;

		memcpy(&word, packet + i, 2);
		word = rte_cpu_to_be_16(word);
		__asm__ volatile("" : "+r"(word));
		sum += word;
	}
	return sum;
}

OPERATOR_STATE uint8_t operator_copy[16384] __rte_cache_aligned;

OPERATOR_NO_SETUP(memcpy)

OPERATOR uint64_t
operator_memcpy(const uint8_t *packet, uint32_t length)
{
	uint64_t last;

	memcpy(operator_copy, packet, length);
	__asm__ volatile("" : : "r"(operator_copy) : "memory");
	memcpy(&last, operator_copy + length - 8, 8);
	return rte_be_to_cpu_64(last);
}

/* --- one number */

OPERATOR_NO_SETUP(htons)

OPERATOR uint64_t
operator_htons(const uint8_t *packet, uint32_t length)
{
	uint16_t word;

	(void)length;
	memcpy(&word, packet + 12, 2);
	word = rte_cpu_to_be_16(word);
	__asm__ volatile("" : "+r"(word));
	return word;
}

OPERATOR_NO_SETUP(multiply_chain)

/* Each multiplication takes three core cycles on Intel since 2008 and on AMD since Zen, and waits for the one before. */
OPERATOR uint64_t
operator_multiply_chain(uint64_t value, const unsigned int count)
{
#if defined(__x86_64__)
	__asm__ volatile(".rept %c1\n\timul $3, %0, %0\n\t.endr" : "+r"(value) : "i"(count) : "cc");
#else
	unsigned int i;

	for (i = 0; i < count; i++) {
		value *= 3;
		__asm__ volatile("" : "+r"(value));
	}
#endif
	return value;
}

/* --- flows */

/* A flow is identified by source address and EtherType, in 16 bytes; stored at once, since they are loaded at once. */
typedef uint64_t operator_key __attribute__((vector_size(16)));

OPERATOR operator_key
operator_key_of(const uint8_t *packet)
{
	uint64_t first;

	memcpy(&first, packet + 6, 8);
	return (operator_key){first, 0};
}

/* The key of a flow; its first byte is above all that packets have if it is one that no packet has. */
OPERATOR operator_key
operator_key_of_flow(uint32_t flow, bool foreign)
{
	uint8_t bytes[8] = {foreign ? 0xff : 0, 0, 0, 0, 0, 0, 0x88, 0xb5};
	const uint32_t big = rte_cpu_to_be_32(flow);
	uint64_t first;

	memcpy(bytes + 2, &big, 4);
	memcpy(&first, bytes, 8);
	return (operator_key){first, 0};
}

/* A table with one key for each flow and a spare place, half empty as such tables are. */
OPERATOR struct rte_hash *
operator_table(const char *name, unsigned int flows, bool foreign)
{
	const struct rte_hash_parameters parameters = {
		.name = name,
		.entries = 2 * (flows < 32 ? 32 : flows),
		.key_len = sizeof(operator_key),
		.hash_func = rte_hash_crc,
		.socket_id = (int)rte_socket_id(),
	};
	struct rte_hash *const table = rte_hash_create(&parameters);
	uint32_t i;

	for (i = 0; table != NULL && i < flows; i++) {
		const operator_key key = operator_key_of_flow(i, foreign);

		if (rte_hash_add_key_data(table, &key, (void *)(uintptr_t)(uint32_t)(i * 0x9E3779B1u + 1)) != 0)
			return NULL;
	}
	return table;
}

OPERATOR_STATE struct rte_hash *operator_lookup_table;

OPERATOR int
operator_setup_hash_lookup(unsigned int flows)
{
	operator_lookup_table = operator_table("operator_lookup", flows, false);
	return operator_lookup_table == NULL ? -ENOMEM : 0;
}

OPERATOR uint64_t
operator_hash_lookup(const uint8_t *packet, uint32_t length)
{
	const operator_key key = operator_key_of(packet);
	void *data = NULL;

	(void)length;
	return rte_hash_lookup_data(operator_lookup_table, &key, &data) < 0 ? 0 : (uintptr_t)data;
}

OPERATOR_STATE struct rte_hash *operator_insert_table;

OPERATOR int
operator_setup_hash_insert(unsigned int flows)
{
	operator_insert_table = operator_table("operator_insert", flows, true);
	return operator_insert_table == NULL ? -ENOMEM : 0;
}

/* A new key comes and goes again, so that the table stays as full as it is. */
OPERATOR uint64_t
operator_hash_insert(const uint8_t *packet, uint32_t length)
{
	const operator_key key = operator_key_of(packet);
	const int32_t place = rte_hash_add_key(operator_insert_table, &key);

	(void)length;
	return place >= 0 && rte_hash_del_key(operator_insert_table, &key) == place;
}

/* --- output */

#define OPERATOR_LINE "packet of %4u bytes\n"

/* A file that is written from its beginning again after a number of lines, so that it does not fill the disk. */
#define OPERATOR_FILE_LINES 65536

/* Line buffered, as a terminal is: a system call for each line. */
OPERATOR int
operator_lines(FILE *stream)
{
	return stream == NULL || setvbuf(stream, NULL, _IOLBF, BUFSIZ) != 0 ? -EIO : 0;
}

OPERATOR_STATE FILE *operator_file;
OPERATOR_STATE unsigned int operator_file_lines;

OPERATOR int
operator_setup_printf_file(unsigned int flows)
{
	(void)flows;
	operator_file = tmpfile();
	return operator_lines(operator_file);
}

OPERATOR uint64_t
operator_printf_file(const uint8_t *packet, uint32_t length)
{
	(void)packet;
	if (unlikely(++operator_file_lines == OPERATOR_FILE_LINES)) {
		operator_file_lines = 0;
		rewind(operator_file);
	}
	return (uint64_t)fprintf(operator_file, OPERATOR_LINE, length);
}

OPERATOR_STATE FILE *operator_null;

OPERATOR int
operator_setup_printf_null(unsigned int flows)
{
	(void)flows;
	operator_null = fopen("/dev/null", "w");
	return operator_lines(operator_null);
}

OPERATOR uint64_t
operator_printf_null(const uint8_t *packet, uint32_t length)
{
	(void)packet;
	return (uint64_t)fprintf(operator_null, OPERATOR_LINE, length);
}

/* The log of this process goes to /dev/null from here on, down to the level of information. */
OPERATOR int
operator_setup_rte_log(unsigned int flows)
{
	FILE *const null = fopen("/dev/null", "w");

	(void)flows;
	if (null == NULL || rte_openlog_stream(null) != 0)
		return -EIO;
	rte_log_set_global_level(RTE_LOG_INFO);
	return rte_log_set_level(RTE_LOGTYPE_USER1, RTE_LOG_INFO);
}

OPERATOR int
operator_setup_rte_log_suppressed(unsigned int flows)
{
	return operator_setup_rte_log(flows);
}

/* What the macro RTE_LOG(level, USER1, ...) calls. */
OPERATOR uint64_t
operator_rte_log(const uint8_t *packet, uint32_t length)
{
	(void)packet;
	return (uint64_t)rte_log(RTE_LOG_INFO, RTE_LOGTYPE_USER1, "USER1: " OPERATOR_LINE, length);
}

OPERATOR uint64_t
operator_rte_log_suppressed(const uint8_t *packet, uint32_t length)
{
	(void)packet;
	return (uint64_t)rte_log(RTE_LOG_DEBUG, RTE_LOGTYPE_USER1, "USER1: " OPERATOR_LINE, length);
}

#endif
