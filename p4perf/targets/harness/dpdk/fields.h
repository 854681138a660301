/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Big-endian fields in packets: any width up to 64 bit, at any bit. All numbers but the address are constants where these
 * are called, so that what remains is one load, a shift and a mask. No more bytes are touched than the field has: a load
 * that is wider than the store before it waits until that store is in the cache.
 */
#ifndef P4PERF_FIELDS_H
#define P4PERF_FIELDS_H

#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

/* Not those of rte_byteorder.h: they are volatile assembly, which no compiler merges or leaves out. */
#if RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN
#define SWAPPED(bits, number) __builtin_bswap##bits(number)
#else
#define SWAPPED(bits, number) (number)
#endif

#define FIELD_INLINE static inline __attribute__((always_inline, unused))

FIELD_INLINE uint64_t
load_bytes(const uint8_t *at, unsigned int bytes)
{
	uint16_t two;
	uint32_t four;
	uint64_t eight;

	switch (bytes) {
	case 1:
		return *at;
	case 2:
		memcpy(&two, at, 2);
		return SWAPPED(16, two);
	case 3:
		memcpy(&two, at, 2);
		return (uint64_t)SWAPPED(16, two) << 8 | at[2];
	case 4:
		memcpy(&four, at, 4);
		return SWAPPED(32, four);
	case 5:
		memcpy(&four, at, 4);
		return (uint64_t)SWAPPED(32, four) << 8 | at[4];
	case 6:
		memcpy(&four, at, 4);
		memcpy(&two, at + 4, 2);
		return (uint64_t)SWAPPED(32, four) << 16 | SWAPPED(16, two);
	case 7:
		memcpy(&four, at, 4);
		memcpy(&two, at + 4, 2);
		return (uint64_t)SWAPPED(32, four) << 24 | (uint64_t)SWAPPED(16, two) << 8 | at[6];
	default:
		memcpy(&eight, at, 8);
		return SWAPPED(64, eight);
	}
}

FIELD_INLINE void
store_bytes(uint8_t *at, unsigned int bytes, uint64_t value)
{
	uint16_t two;
	uint32_t four;

	switch (bytes) {
	case 1:
		*at = (uint8_t)value;
		break;
	case 2:
		two = SWAPPED(16, (uint16_t)value);
		memcpy(at, &two, 2);
		break;
	case 3:
		store_bytes(at, 2, value >> 8);
		at[2] = (uint8_t)value;
		break;
	case 4:
		four = SWAPPED(32, (uint32_t)value);
		memcpy(at, &four, 4);
		break;
	case 5:
		store_bytes(at, 4, value >> 8);
		at[4] = (uint8_t)value;
		break;
	case 6:
		store_bytes(at, 4, value >> 16);
		store_bytes(at + 4, 2, value);
		break;
	case 7:
		store_bytes(at, 4, value >> 24);
		store_bytes(at + 4, 2, value >> 8);
		at[6] = (uint8_t)value;
		break;
	default:
		value = SWAPPED(64, value);
		memcpy(at, &value, 8);
		break;
	}
}

/* The lowest bits of a number; width is 1 to 64. */
#define LOW_BITS(width) (UINT64_MAX >> (64 - (width)))

FIELD_INLINE uint64_t
load_bits(const uint8_t *at, unsigned int offset, unsigned int width)
{
	const unsigned int bytes = (offset % 8 + width + 7) / 8;
	const unsigned int below = bytes * 8 - offset % 8 - width;

	at += offset / 8;
	if (bytes <= 8)
		return load_bytes(at, bytes) >> below & LOW_BITS(width);
	return ((uint64_t)at[0] << (64 - below) | load_bytes(at + 1, 8) >> below) & LOW_BITS(width);
}

FIELD_INLINE void
store_bits(uint8_t *at, unsigned int offset, unsigned int width, uint64_t value)
{
	const unsigned int bytes = (offset % 8 + width + 7) / 8;
	const unsigned int below = bytes * 8 - offset % 8 - width;

	at += offset / 8;
	value &= LOW_BITS(width);
	if (bytes <= 8) {
		store_bytes(at, bytes, (load_bytes(at, bytes) & ~(LOW_BITS(width) << below)) | value << below);
	} else {
		const unsigned int high = width + below - 64; /* bits of the field in the first byte */

		at[0] = (uint8_t)((at[0] & (0xffu << high)) | value >> (64 - below));
		store_bytes(at + 1, 8, (load_bytes(at + 1, 8) & LOW_BITS(below)) | value << below);
	}
}

#endif
