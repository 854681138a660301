/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a trial. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "options.h"

/* N, or N*COUNT: COUNT tables with N entries each. */
static void
parse_entries(void *options, const char *name, char *text)
{
	struct options *const o = options;
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
static void
read_compile_time(void *options, const char *name, char *path)
{
	FILE *const file = fopen(path, "r");
	double ns = -1;

	if (file == NULL || fscanf(file, "%lf", &ns) != 1 || ns < 0)
		fail("usage", "--%s: %s holds no time", name, path);
	fclose(file);
	((struct options *)options)->compile_ms = ns * 1e-6;
}

static void
parse_frame(void *options, const char *name, char *text)
{
	struct options *const o = options;

	(void)name;
	o->traffic.frame = o->frame;
	o->traffic.frame_length = (uint16_t)hexadecimal_frame(text, o->frame, FRAME_ROOM);
}

/* A file of frames, one after the other, each as long as that of --frame. */
static void
parse_frames(void *options, const char *name, char *path)
{
	struct traffic *const traffic = &((struct options *)options)->traffic;
	FILE *const file = fopen(path, "rb");
	uint8_t *bytes;
	long size;

	if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) <= 0 || traffic->frame_length == 0 ||
	    size % traffic->frame_length != 0)
		fail("usage", "--%s: %s holds no frames of %u bytes (--frame comes first)", name, path,
		     traffic->frame_length);
	rewind(file);
	bytes = malloc((size_t)size);
	if (bytes == NULL || fread(bytes, 1, (size_t)size, file) != (size_t)size)
		fail("usage", "--%s: %s cannot be read", name, path);
	fclose(file);
	traffic->frames = bytes;
	traffic->n_frames = (uint32_t)(size / traffic->frame_length);
}

static void
parse_restore(void *options, const char *name, char *text)
{
	((struct options *)options)->traffic.restore = (uint16_t)number(name, text, 0, 2048);
}

static void
parse_distribution(void *options, const char *name, char *text)
{
	(void)name;
	((struct options *)options)->traffic.distribution = distribution(text);
}

/* Each --key-offset begins another field that varies; what follows describes it. */
static void
parse_key_offset(void *options, const char *name, char *text)
{
	struct traffic *const traffic = &((struct options *)options)->traffic;

	if (traffic->n_varying == MAX_VARYING)
		fail("usage", "--%s: more than %d fields", name, MAX_VARYING);
	traffic->varying[traffic->n_varying++].offset = (uint16_t)number(name, text, 0, FRAME_ROOM);
}

static struct varying *
this_field(void *options, const char *name)
{
	struct traffic *const traffic = &((struct options *)options)->traffic;

	if (traffic->n_varying == 0)
		fail("usage", "--%s: --key-offset comes first", name);
	return &traffic->varying[traffic->n_varying - 1];
}

static void
parse_key_length(void *options, const char *name, char *text)
{
	this_field(options, name)->length = (uint16_t)number(name, text, 1, FRAME_ROOM);
}

static void
parse_keys(void *options, const char *name, char *text)
{
	this_field(options, name)->keys = (uint64_t)number(name, text, 1, 1e9);
}

#define AT(field) .offset = offsetof(struct options, field)

static const struct rule rules[] = {
	{"frame", RULE_CALL, .call = parse_frame},
	{"frames", RULE_CALL, .call = parse_frames},
	{"restore", RULE_CALL, .call = parse_restore},
	{"key-offset", RULE_CALL, .call = parse_key_offset},
	{"key-length", RULE_CALL, .call = parse_key_length},
	{"keys", RULE_CALL, .call = parse_keys},
	{"hit-ratio", RULE_REAL, AT(traffic.hit_ratio), 0, 1},
	{"distribution", RULE_CALL, .call = parse_distribution},
	{"zipf", RULE_REAL, AT(traffic.zipf_exponent), 0, 10},
	{"seed", RULE_UINT64, AT(traffic.seed), 0, 9e15},
	{"entries", RULE_CALL, .call = parse_entries},
	{"packets", RULE_UINT64, AT(packets), 1, 1e12},
	{"compile-time", RULE_CALL, .call = read_compile_time},
	{"verify", RULE_TEXT, AT(verify_path)},
	{"verify-only", RULE_ON, AT(verify_only)},
	{"with-empty", RULE_ON, AT(with_empty)},
	{"plain", RULE_OFF, AT(measure.gated)},
	{"gate-ratio", RULE_REAL, AT(measure.gate_ratio), 0, 100},
	{"gate-tolerance", RULE_REAL, AT(measure.gate_tolerance), 0, 10},
	{"drift-tolerance", RULE_REAL, AT(measure.drift_tolerance), 0, 10},
	{"windows", RULE_UINT, AT(measure.windows), 1, MAX_WINDOWS / 4},
	{"window-us", RULE_UINT, AT(measure.window_us), 10, 1e6},
	{"burst-us", RULE_UINT, AT(measure.burst_us), 100, 1e6},
	{"gap-us", RULE_UINT, AT(measure.gap_us), 0, 1e6},
	{"timeout-ms", RULE_UINT, AT(measure.timeout_ms), 1, 3.6e6},
	{"warmup-ms", RULE_UINT, AT(measure.warmup_ms), 0, 1e5},
	{"warmup-packets", RULE_UINT64, AT(measure.warmup_packets), 0, 1e12},
	{"priority", RULE_INT, AT(measure.realtime_priority), 0, 99},
	{0},
};

void
parse_options(struct options *o, int argc, char **argv)
{
	memset(o, 0, sizeof(*o));
	o->traffic.hit_ratio = 1.0;
	o->traffic.zipf_exponent = 1.0;
	o->traffic.seed = 1;
	o->compile_ms = -1;
	o->measure = (struct measure_options){
		.gated = P4PERF_HAVE_GATE,
		.gate_tolerance = 0.05,
		.drift_tolerance = 0.05,
		.windows = 40,
		.window_us = 500,
		.burst_us = 15000,
		.gap_us = 3000,
		.timeout_ms = 2500,
		.warmup_ms = 10,
		.realtime_priority = 50,
	};
	read_options(rules, o, argc, argv);
	if (o->traffic.frame_length == 0)
		fail("usage", "--frame is missing");
	if (o->n_entries != program_under_test.n_tables)
		fail("usage", "%u times --entries for %u tables", o->n_entries, program_under_test.n_tables);
}
