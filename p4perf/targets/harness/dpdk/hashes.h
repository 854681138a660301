/* SPDX-License-Identifier: Apache-2.0 */
/* The hash algorithms of P4's v1model, from what DPDK offers; CRC-16, which it lacks, eight bytes at a time. */
#ifndef P4PERF_HASHES_H
#define P4PERF_HASHES_H

#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ip.h>
#include <rte_net_crc.h>

/* crc16_slices[k][b]: the CRC-16/ARC of byte b and k zeros after it. */
extern uint16_t crc16_slices[8][256];

/* CRC-16/ARC: reflected, initially zero. */
static inline __rte_unused uint64_t
hash_crc16(const uint8_t *data, unsigned int length)
{
	uint16_t crc = 0;

	for (; length >= 8; length -= 8, data += 8) {
		uint64_t x;

		memcpy(&x, data, 8);
		x = rte_le_to_cpu_64(x) ^ crc;
		crc = crc16_slices[7][x & 0xff] ^ crc16_slices[6][x >> 8 & 0xff] ^ crc16_slices[5][x >> 16 & 0xff] ^
		      crc16_slices[4][x >> 24 & 0xff] ^ crc16_slices[3][x >> 32 & 0xff] ^
		      crc16_slices[2][x >> 40 & 0xff] ^ crc16_slices[1][x >> 48 & 0xff] ^ crc16_slices[0][x >> 56];
	}
	while (length-- != 0)
		crc = crc >> 8 ^ crc16_slices[0][(crc ^ *data++) & 0xff];
	return crc;
}

/* CRC-32/ISO-HDLC, the one of Ethernet, with carry-less multiplications where the processor has them. */
static inline __rte_unused uint64_t
hash_crc32(const uint8_t *data, unsigned int length)
{
	return rte_net_crc_calc(data, length, RTE_NET_CRC32_ETH);
}

/* RFC 1071, of a sum of words of 16 bit. */
static inline __rte_unused uint64_t
checksum16_of(uint32_t sum)
{
	return rte_be_to_cpu_16((uint16_t)~__rte_raw_cksum_reduce(sum));
}

static inline __rte_unused uint64_t
hash_checksum16(const uint8_t *data, unsigned int length)
{
	return rte_be_to_cpu_16((uint16_t)~rte_raw_cksum(data, length));
}

/*
 * Whether a header is correct whose checksum, 16 bit in its byte number at, is the one of all other bytes. A sum over
 * everything of 0xffff says so, with one exception: the checksum of bytes whose sum is 0xffff is 0 and not 0xffff.
 */
static inline __rte_unused bool
checksum_holds(const uint8_t *header, unsigned int length, unsigned int at)
{
	uint16_t kept;

	memcpy(&kept, header + at, 2);
	if (unlikely(kept == 0xffff))
		return rte_raw_cksum(header, at) == 0 && rte_raw_cksum(header + at + 2, length - at - 2) == 0;
	return rte_raw_cksum(header, length) == 0xffff;
}

#endif
