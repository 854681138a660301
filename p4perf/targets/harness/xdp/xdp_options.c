/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a trial of target xdp. */
#include <stddef.h>

#include "clock.h"
#include "xdp.h"

static void
parse_frame(void *options, const char *name, char *text)
{
	struct options *const o = options;

	(void)name;
	o->frame_length = hexadecimal_frame(text, o->frame, MAX_FRAME);
}

static void
parse_distribution(void *options, const char *name, char *text)
{
	(void)name;
	((struct options *)options)->distribution = distribution(text);
}

static void
parse_keys(void *options, const char *name, char *text)
{
	struct options *const o = options;

	if (o->n_draws == P4PERF_MAX_DRAWS)
		fail("usage", "--keys: more than %d fields", P4PERF_MAX_DRAWS);
	o->keys[o->n_draws++] = (uint64_t)number(name, text, 1, 2e9);
}

static void
parse_entries(void *options, const char *name, char *text)
{
	struct options *const o = options;

	if (o->n_entries == P4PERF_MAX_TABLES)
		fail("usage", "--entries: more than %d tables", P4PERF_MAX_TABLES);
	o->entries[o->n_entries++] = (uint32_t)number(name, text, 0, 1e9);
}

#define AT(field) .offset = offsetof(struct options, field)

static const struct rule rules[] = {
	{"folder", RULE_TEXT, AT(folder)},
	{"frame", RULE_CALL, .call = parse_frame},
	{"keys", RULE_CALL, .call = parse_keys},
	{"hit-ratio", RULE_REAL, AT(hit_ratio), 0, 1},
	{"distribution", RULE_CALL, .call = parse_distribution},
	{"zipf", RULE_REAL, AT(zipf_exponent), 0, 10},
	{"seed", RULE_UINT64, AT(seed), 0, 9e15},
	{"entries", RULE_CALL, .call = parse_entries},
	{"verify", RULE_TEXT, AT(verify_path)},
	{"verify-only", RULE_ON, AT(verify_only)},
	{"with-empty", RULE_ON, AT(with_empty)},
	{"plain", RULE_OFF, AT(gated)},
	{"gate-ratio", RULE_REAL, AT(gate_ratio), 0, 100},
	{"gate-tolerance", RULE_REAL, AT(gate_tolerance), 0, 10},
	{"drift-tolerance", RULE_REAL, AT(drift_tolerance), 0, 10},
	{"windows", RULE_UINT, AT(windows), 1, MAX_WINDOWS / 4},
	{"window-us", RULE_UINT, AT(window_us), 10, 1e6},
	{"burst-us", RULE_UINT, AT(burst_us), 100, 1e6},
	{"timeout-ms", RULE_UINT, AT(timeout_ms), 1, 3.6e6},
	{"warmup-packets", RULE_UINT64, AT(warmup_packets), 0, 1e9},
	{"priority", RULE_INT, AT(realtime_priority), 0, 99},
	{"device", RULE_INT, AT(device_fd), 0, 1e6},
	{"cpu", RULE_INT, AT(device_cpu), 0, CPU_SETSIZE - 1},
	{0},
};

void
parse_options(struct options *o, int argc, char **argv)
{
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
	read_options(rules, o, argc, argv);
	if (o->frame_length < MIN_FRAME)
		fail("usage", "--frame is missing or shorter than an Ethernet header");
	if (o->folder == NULL)
		fail("usage", "--folder is missing");
	if (o->n_entries != n_tables)
		fail("usage", "%u times --entries for %u tables", o->n_entries, n_tables);
}
