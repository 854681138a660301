/* SPDX-License-Identifier: Apache-2.0 */
/* What a verification file, whose layout is described in verify.c, says of a packet that leaves. */
#ifndef P4PERF_EXPECTATION_H
#define P4PERF_EXPECTATION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "words.h"

#define MAX_FRAME 4096

struct expectation {
	uint16_t port;
	uint16_t length;
	uint8_t data[MAX_FRAME];
	uint8_t mask[MAX_FRAME];
};

static inline void
read_all(FILE *file, void *destination, size_t size)
{
	if (fread(destination, 1, size, file) != size)
		fail("verify", "the verification file ends early");
}

static inline void
read_expectation(FILE *file, struct expectation *expected, bool masks)
{
	read_all(file, &expected->port, 2);
	read_all(file, &expected->length, 2);
	if (expected->length > MAX_FRAME)
		fail("verify", "the verification file is damaged");
	read_all(file, expected->data, expected->length);
	memset(expected->mask, 0xff, expected->length);
	if (masks)
		read_all(file, expected->mask, expected->length);
}

#endif
