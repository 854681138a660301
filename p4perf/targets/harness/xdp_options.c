/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a trial of target xdp. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "xdp.h"

static void
parse_distribution(struct options *options, const char *text)
{
	static const char *const names[] = {"uniform", "sequential", "single", "zipf"};
	unsigned int i;

	for (i = 0; i < 4 && strcmp(text, names[i]) != 0; i++)
		;
	if (i == 4)
		fail("usage", "--distribution: %s is not uniform, sequential, single or zipf", text);
	options->distribution = i;
}

enum option_code {
	OPT_FOLDER = 1,
	OPT_FRAME,
	OPT_KEYS,
	OPT_HIT_RATIO,
	OPT_DISTRIBUTION,
	OPT_ZIPF,
	OPT_SEED,
	OPT_ENTRIES,
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
	OPT_TIMEOUT_MS,
	OPT_WARMUP_PACKETS,
	OPT_PRIORITY,
	OPT_DEVICE,
	OPT_CPU,
};

static const struct option long_options[] = {
	{"folder", required_argument, NULL, OPT_FOLDER},
	{"frame", required_argument, NULL, OPT_FRAME},
	{"keys", required_argument, NULL, OPT_KEYS},
	{"hit-ratio", required_argument, NULL, OPT_HIT_RATIO},
	{"distribution", required_argument, NULL, OPT_DISTRIBUTION},
	{"zipf", required_argument, NULL, OPT_ZIPF},
	{"seed", required_argument, NULL, OPT_SEED},
	{"entries", required_argument, NULL, OPT_ENTRIES},
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
	{"timeout-ms", required_argument, NULL, OPT_TIMEOUT_MS},
	{"warmup-packets", required_argument, NULL, OPT_WARMUP_PACKETS},
	{"priority", required_argument, NULL, OPT_PRIORITY},
	{"device", required_argument, NULL, OPT_DEVICE},
	{"cpu", required_argument, NULL, OPT_CPU},
	{NULL, 0, NULL, 0},
};

static void
parse_option(struct options *o, int code, const char *name, const char *text)
{
	switch (code) {
	case OPT_FOLDER:
		o->folder = text;
		break;
	case OPT_FRAME:
		o->frame_length = hexadecimal_frame(text, o->frame, MAX_FRAME);
		break;
	case OPT_KEYS:
		if (o->n_draws == P4PERF_MAX_DRAWS)
			fail("usage", "--keys: more than %d fields", P4PERF_MAX_DRAWS);
		o->keys[o->n_draws++] = (uint64_t)number(name, text, 1, 2e9);
		break;
	case OPT_HIT_RATIO:
		o->hit_ratio = number(name, text, 0, 1);
		break;
	case OPT_DISTRIBUTION:
		parse_distribution(o, text);
		break;
	case OPT_ZIPF:
		o->zipf_exponent = number(name, text, 0, 10);
		break;
	case OPT_SEED:
		o->seed = (uint64_t)number(name, text, 0, 9e15);
		break;
	case OPT_ENTRIES:
		if (o->n_entries == P4PERF_MAX_TABLES)
			fail("usage", "--entries: more than %d tables", P4PERF_MAX_TABLES);
		o->entries[o->n_entries++] = (uint32_t)number(name, text, 0, 1e9);
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
		o->gated = false;
		break;
	case OPT_GATE_RATIO:
		o->gate_ratio = number(name, text, 0, 100);
		break;
	case OPT_GATE_TOLERANCE:
		o->gate_tolerance = number(name, text, 0, 10);
		break;
	case OPT_DRIFT_TOLERANCE:
		o->drift_tolerance = number(name, text, 0, 10);
		break;
	case OPT_WINDOWS:
		o->windows = (unsigned int)number(name, text, 1, MAX_WINDOWS / 4);
		break;
	case OPT_WINDOW_US:
		o->window_us = (unsigned int)number(name, text, 10, 1e6);
		break;
	case OPT_BURST_US:
		o->burst_us = (unsigned int)number(name, text, 100, 1e6);
		break;
	case OPT_TIMEOUT_MS:
		o->timeout_ms = (unsigned int)number(name, text, 1, 3.6e6);
		break;
	case OPT_WARMUP_PACKETS:
		o->warmup_packets = (uint64_t)number(name, text, 0, 1e9);
		break;
	case OPT_PRIORITY:
		o->realtime_priority = (int)number(name, text, 0, 99);
		break;
	case OPT_DEVICE:
		o->device_fd = (int)number(name, text, 0, 1e6);
		break;
	case OPT_CPU:
		o->device_cpu = (int)number(name, text, 0, CPU_SETSIZE - 1);
		break;
	default:
		fail("usage", "unknown option");
	}
}

void
parse_options(struct options *o, int argc, char **argv)
{
	int code, index;

	*o = (struct options){
		.hit_ratio = 1.0,
		.zipf_exponent = 1.0,
		.seed = 1,
		.gated = P4PERF_HAVE_GATE,
		.gate_tolerance = 0.15,
		.drift_tolerance = 0.05,
		.windows = 40,
		.window_us = 500,
		.burst_us = 15000,
		.timeout_ms = 2500,
		.realtime_priority = 50,
		.device_fd = -1,
	};
	while ((code = getopt_long(argc, argv, "", long_options, &index)) != -1)
		parse_option(o, code, code == '?' ? "" : long_options[index].name, optarg);
	if (optind != argc)
		fail("usage", "unexpected argument %s", argv[optind]);
	if (o->frame_length < MIN_FRAME)
		fail("usage", "--frame is missing or shorter than an Ethernet header");
	if (o->folder == NULL)
		fail("usage", "--folder is missing");
	if (o->n_entries != n_tables)
		fail("usage", "%u times --entries for %u tables", o->n_entries, n_tables);
}
