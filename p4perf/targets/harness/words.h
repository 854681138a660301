/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a command line, and the way to give up: what all harnesses share. */
#ifndef P4PERF_WORDS_H
#define P4PERF_WORDS_H

#include <stdint.h>

/*
 * Print an error as one line of JSON and exit with status 1. kind is usage, memory, verify, or what went wrong in the
 * place that the harness works in: eal, load, verifier, run, device, link, library, refused.
 */
__attribute__((noreturn, format(printf, 2, 3))) void fail(const char *kind, const char *format, ...);

/* The number that the option --NAME has, from low to high; else it ends in fail(). */
double number(const char *name, const char *text, double low, double high);

/* Read the hexadecimal digits of --frame into room bytes; how many they are. What is wrong with them ends in fail(). */
unsigned int hexadecimal_frame(const char *text, uint8_t *frame, unsigned int room);

#endif
