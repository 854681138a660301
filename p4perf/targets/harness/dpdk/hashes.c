/* SPDX-License-Identifier: Apache-2.0 */
/* The table of CRC-16/ARC, filled before main() runs. */
#include <stdbool.h>

#include <rte_common.h>

#include "hashes.h"

#define CRC16_POLYNOMIAL 0xA001 /* x^16 + x^15 + x^2 + 1, lowest bit first */

uint16_t crc16_slices[8][256];

RTE_INIT(fill_crc16_slices)
{
	unsigned int byte, bit, slice;

	for (byte = 0; byte < 256; byte++) {
		uint16_t crc = (uint16_t)byte;

		for (bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ CRC16_POLYNOMIAL : crc >> 1;
		crc16_slices[0][byte] = crc;
	}
	for (slice = 1; slice < 8; slice++)
		for (byte = 0; byte < 256; byte++) {
			const uint16_t crc = crc16_slices[slice - 1][byte];

			crc16_slices[slice][byte] = crc >> 8 ^ crc16_slices[0][crc & 0xff];
		}
}
