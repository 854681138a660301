/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a trial. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "options.h"

/* N, or N*COUNT: COUNT tables with N entries each. */
static void
parse_entries(struct options *o, const char *name, const char *text)
{
	char entries[32];
	const char *const star = strchr(text, '*');
	const size_t length = star == NULL ? strlen(text) : (size_t)(star - text);
	unsigned int count = star == NULL ? 1 : (unsigned int)number(name, star + 1, 1, MAX_TABLES);

	snprintf(entries, sizeof(entries), "%.*s", (int)length, text);
	for (; count != 0; count--) {
		if (o->n_entries == MAX_TABLES)
			fail("usage", "--entries: more than %d tables", MAX_TABLES);
		o->entries[o->n_entries++] = (uint64_t)number(name, entries, 0, 1e9);
	}
}

/* A file that holds a number of nanoseconds. */
static double
read_time_ms(const char *name, const char *path)
{
	FILE *const file = fopen(path, "r");
	double ns = -1;

	if (file == NULL || fscanf(file, "%lf", &ns) != 1 || ns < 0)
		fail("usage", "--%s: %s holds no time", name, path);
	fclose(file);
	return ns * 1e-6;
}

/* The field that options describe: each --key-offset begins another one. */
static struct varying *
this_field(struct options *o, const char *name)
{
	if (o->traffic.n_varying == 0)
		fail("usage", "--%s: --key-offset comes first", name);
	return &o->traffic.varying[o->traffic.n_varying - 1];
}

enum option_code {
	OPT_FRAME = 1,
	OPT_RESTORE,
	OPT_KEY_OFFSET,
	OPT_KEY_LENGTH,
	OPT_KEYS,
	OPT_HIT_RATIO,
	OPT_DISTRIBUTION,
	OPT_ZIPF,
	OPT_SEED,
	OPT_ENTRIES,
	OPT_PACKETS,
	OPT_COMPILE_TIME,
	OPT_VERIFY,
	OPT_VERIFY_ONLY,
	OPT_WITH_EMPTY,
	OPT_PLAIN,
	OPT_GATE_RATIO,
	OPT_GATE_TOLERANCE,
	OPT_DRIFT_TOLERANCE,
	OPT_WINDOWS,
	OPT_WINDOW_US,
	OPT_BURST_US,
	OPT_GAP_US,
	OPT_TIMEOUT_MS,
	OPT_WARMUP_MS,
	OPT_WARMUP_PACKETS,
	OPT_PRIORITY,
};

static const struct option long_options[] = {
	{"frame", required_argument, NULL, OPT_FRAME},
	{"restore", required_argument, NULL, OPT_RESTORE},
	{"key-offset", required_argument, NULL, OPT_KEY_OFFSET},
	{"key-length", required_argument, NULL, OPT_KEY_LENGTH},
	{"keys", required_argument, NULL, OPT_KEYS},
	{"hit-ratio", required_argument, NULL, OPT_HIT_RATIO},
	{"distribution", required_argument, NULL, OPT_DISTRIBUTION},
	{"zipf", required_argument, NULL, OPT_ZIPF},
	{"seed", required_argument, NULL, OPT_SEED},
	{"entries", required_argument, NULL, OPT_ENTRIES},
	{"packets", required_argument, NULL, OPT_PACKETS},
	{"compile-time", required_argument, NULL, OPT_COMPILE_TIME},
	{"verify", required_argument, NULL, OPT_VERIFY},
	{"verify-only", no_argument, NULL, OPT_VERIFY_ONLY},
	{"with-empty", no_argument, NULL, OPT_WITH_EMPTY},
	{"plain", no_argument, NULL, OPT_PLAIN},
	{"gate-ratio", required_argument, NULL, OPT_GATE_RATIO},
	{"gate-tolerance", required_argument, NULL, OPT_GATE_TOLERANCE},
	{"drift-tolerance", required_argument, NULL, OPT_DRIFT_TOLERANCE},
	{"windows", required_argument, NULL, OPT_WINDOWS},
	{"window-us", required_argument, NULL, OPT_WINDOW_US},
	{"burst-us", required_argument, NULL, OPT_BURST_US},
	{"gap-us", required_argument, NULL, OPT_GAP_US},
	{"timeout-ms", required_argument, NULL, OPT_TIMEOUT_MS},
	{"warmup-ms", required_argument, NULL, OPT_WARMUP_MS},
	{"warmup-packets", required_argument, NULL, OPT_WARMUP_PACKETS},
	{"priority", required_argument, NULL, OPT_PRIORITY},
	{NULL, 0, NULL, 0},
};

static void
parse_option(struct options *o, int code, const char *name, const char *text)
{
	static const char *const distributions[] = {"uniform", "sequential", "single", "zipf"};
	unsigned int i;

	switch (code) {
	case OPT_FRAME:
		o->traffic.frame = o->frame;
		o->traffic.frame_length = (uint16_t)hexadecimal_frame(text, o->frame, FRAME_ROOM);
		break;
	case OPT_RESTORE:
		o->traffic.restore = (uint16_t)number(name, text, 0, 2048);
		break;
	case OPT_KEY_OFFSET:
		if (o->traffic.n_varying == MAX_VARYING)
			fail("usage", "--%s: more than %d fields", name, MAX_VARYING);
		o->traffic.n_varying++;
		this_field(o, name)->offset = (uint16_t)number(name, text, 0, FRAME_ROOM);
		break;
	case OPT_KEY_LENGTH:
		this_field(o, name)->length = (uint16_t)number(name, text, 1, FRAME_ROOM);
		break;
	case OPT_KEYS:
		this_field(o, name)->keys = (uint64_t)number(name, text, 1, 1e9);
		break;
	case OPT_HIT_RATIO:
		o->traffic.hit_ratio = number(name, text, 0, 1);
		break;
	case OPT_DISTRIBUTION:
		for (i = 0; i < 4 && strcmp(text, distributions[i]) != 0; i++)
			;
		if (i == 4)
			fail("usage", "--distribution: %s is not uniform, sequential, single or zipf", text);
		o->traffic.distribution = i;
		break;
	case OPT_ZIPF:
		o->traffic.zipf_exponent = number(name, text, 0, 10);
		break;
	case OPT_SEED:
		o->traffic.seed = (uint64_t)number(name, text, 0, 9e15);
		break;
	case OPT_ENTRIES:
		parse_entries(o, name, text);
		break;
	case OPT_PACKETS:
		o->packets = (uint64_t)number(name, text, 1, 1e12);
		break;
	case OPT_COMPILE_TIME:
		o->compile_ms = read_time_ms(name, text);
		break;
	case OPT_VERIFY:
		o->verify_path = text;
		break;
	case OPT_VERIFY_ONLY:
		o->verify_only = true;
		break;
	case OPT_WITH_EMPTY:
		o->with_empty = true;
		break;
	case OPT_PLAIN:
		o->measure.gated = false;
		break;
	case OPT_GATE_RATIO:
		o->measure.gate_ratio = number(name, text, 0, 100);
		break;
	case OPT_GATE_TOLERANCE:
		o->measure.gate_tolerance = number(name, text, 0, 10);
		break;
	case OPT_DRIFT_TOLERANCE:
		o->measure.drift_tolerance = number(name, text, 0, 10);
		break;
	case OPT_WINDOWS:
		o->measure.windows = (unsigned int)number(name, text, 1, MAX_WINDOWS / 4);
		break;
	case OPT_WINDOW_US:
		o->measure.window_us = (unsigned int)number(name, text, 10, 1e6);
		break;
	case OPT_BURST_US:
		o->measure.burst_us = (unsigned int)number(name, text, 100, 1e6);
		break;
	case OPT_GAP_US:
		o->measure.gap_us = (unsigned int)number(name, text, 0, 1e6);
		break;
	case OPT_TIMEOUT_MS:
		o->measure.timeout_ms = (unsigned int)number(name, text, 1, 3.6e6);
		break;
	case OPT_WARMUP_MS:
		o->measure.warmup_ms = (unsigned int)number(name, text, 0, 1e5);
		break;
	case OPT_WARMUP_PACKETS:
		o->measure.warmup_packets = (uint64_t)number(name, text, 0, 1e12);
		break;
	case OPT_PRIORITY:
		o->measure.realtime_priority = (int)number(name, text, 0, 99);
		break;
	default:
		fail("usage", "unknown option");
	}
}

void
parse_options(struct options *o, int argc, char **argv)
{
	int code, index;

	optind = 1;
	memset(o, 0, sizeof(*o));
	o->traffic.hit_ratio = 1.0;
	o->traffic.zipf_exponent = 1.0;
	o->traffic.seed = 1;
	o->compile_ms = -1;
	o->measure = (struct measure_options){
		.gated = P4PERF_HAVE_GATE,
		.gate_tolerance = 0.15,
		.drift_tolerance = 0.05,
		.windows = 40,
		.window_us = 500,
		.burst_us = 15000,
		.gap_us = 3000,
		.timeout_ms = 2500,
		.warmup_ms = 10,
		.realtime_priority = 50,
	};
	while ((code = getopt_long(argc, argv, "", long_options, &index)) != -1)
		parse_option(o, code, code == '?' ? "" : long_options[index].name, optarg);
	if (optind != argc)
		fail("usage", "unexpected argument %s", argv[optind]);
	if (o->traffic.frame_length == 0)
		fail("usage", "--frame is missing");
	if (o->n_entries != program_under_test.n_tables)
		fail("usage", "%u times --entries for %u tables", o->n_entries, program_under_test.n_tables);
}
