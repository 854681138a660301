/* SPDX-License-Identifier: Apache-2.0 */
/* Command line, columns of output, and errors: what all harnesses share. */
#ifndef P4PERF_WORDS_H
#define P4PERF_WORDS_H

#include <stddef.h>
#include <stdint.h>

/* In a verification file, in the place of a sum of a state: it depends on random numbers and is not compared. */
#define UNKNOWN_SUM UINT64_MAX

/*
 * Timestamp and random bits of a packet while results are compared, by its number: those of the reference interpreter.
 * Never zero.
 */
#define GIVEN_PACKETS 32 /* of a burst, which have the same */

static inline uint64_t
given_to(uint64_t packet)
{
	const uint64_t bits = (packet / GIVEN_PACKETS + 1) * UINT64_C(0x9E3779B97F4A7C15);

	return bits ^ bits >> 32;
}

/*
 * Print an error as one line of JSON and exit with status 1. kind is usage, memory, verify, or what went wrong in the
 * place that the harness works in: eal, load, verifier, run, device, link, library, refused.
 */
__attribute__((noreturn, format(printf, 2, 3))) void fail(const char *kind, const char *format, ...);

/* The number that the option --NAME has, from low to high; else it ends in fail(). */
double number(const char *name, const char *text, double low, double high);

/* Read the hexadecimal digits of --frame into room bytes; how many they are. What is wrong with them ends in fail(). */
unsigned int hexadecimal_frame(const char *text, uint8_t *frame, unsigned int room);

/* The place of --distribution among uniform, sequential, single and zipf. */
unsigned int distribution(const char *text);

/* One option of a command line: --NAME, and what its argument becomes. */
struct rule {
	const char *name;
	enum {
		RULE_ON, /* a flag that sets a bool */
		RULE_OFF, /* a flag that clears it */
		RULE_TEXT, /* const char * */
		RULE_INT,
		RULE_UINT,
		RULE_UINT64,
		RULE_REAL,
		RULE_CALL,
	} kind;
	size_t offset; /* of the field in the struct of all options */
	double low, high;
	void (*call)(void *options, const char *name, char *text);
};

/* Read all arguments by rules, which end with an empty one; whatever is wrong with them ends in fail(). */
void read_options(const struct rule *rules, void *options, int argc, char **argv);

/* One column of the windows that a trial prints: its key, how printf() writes a number, its value in a window. */
struct column {
	const char *key;
	const char *format;
	double (*value)(const void *window);
};

/* Print , "KEY": [...] for each column (up to one without a key) of n windows, of size bytes each. */
void print_columns(const struct column *columns, const void *windows, size_t size, unsigned int n);

#endif
