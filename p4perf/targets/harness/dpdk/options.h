/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a trial. */
#ifndef P4PERF_OPTIONS_H
#define P4PERF_OPTIONS_H

#include "harness.h"
#include "words.h"

#define FRAME_ROOM 9216

struct options {
	const char *verify_path;
	uint64_t entries[MAX_TABLES];
	unsigned int n_entries;
	bool with_empty;
	bool verify_only;
	uint64_t packets;  /* run this number of packets and measure nothing; 0: measure */
	double compile_ms; /* what --compile-time says; negative: nothing */
	uint8_t frame[FRAME_ROOM];
	struct traffic traffic;
	struct measure_options measure;
};

/* Read the options behind the EAL's; whatever is wrong with them ends in fail(). */
void parse_options(struct options *options, int argc, char **argv);

#endif
