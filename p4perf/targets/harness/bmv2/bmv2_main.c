/* SPDX-License-Identifier: Apache-2.0 */
/* From the command line to two switches that are ready; what goes wrong is one line of JSON with a key "error". */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "bmv2.h"

/* NAME=NUMBER: what is behind the sign, of which a zero byte takes the place. */
static uint64_t
parse_size(const char *option, char *text)
{
	char *const equals = strrchr(text, '=');

	if (equals == NULL || equals == text)
		fail("usage", "--%s: %s is not NAME=NUMBER", option, text);
	*equals = '\0';
	return (uint64_t)number(option, equals + 1, 0, 1e12);
}

static void
parse_table(void *options, const char *name, char *text)
{
	struct options *const o = options;

	o->tables[o->n_tables++] = (struct table){.entries = parse_size(name, text), .name = text};
}

static void
parse_state(void *options, const char *name, char *text)
{
	struct options *const o = options;
	struct state *const state = &o->states[o->n_states++];

	state->cells = parse_size(name, text);
	state->name = text;
	state->kind = name[0] == 'r' ? OF_REGISTER : name[0] == 'b' ? OF_BYTES : OF_PACKETS;
}

static void
parse_sink(void *options, const char *name, char *text)
{
	struct options *const o = options;

	if (o->n_sinks == MAX_SINKS)
		fail("usage", "--sink: more than %d ports", MAX_SINKS);
	o->sinks[o->n_sinks++] = (unsigned int)number(name, text, 0, MAX_PORT);
}

static void
parse_frame(void *options, const char *name, char *text)
{
	struct options *const o = options;

	(void)name;
	o->frame_length = hexadecimal_frame(text, o->frame, MAX_FRAME);
}

#define AT(field) .offset = offsetof(struct options, field)

static const struct rule rules[] = {
	{"switch", RULE_TEXT, AT(switch_path)},
	{"cli", RULE_TEXT, AT(cli_path)},
	{"folder", RULE_TEXT, AT(folder)},
	{"commands", RULE_TEXT, AT(commands)},
	{"baseline-commands", RULE_TEXT, AT(baseline_commands)},
	{"verify", RULE_TEXT, AT(verify_path)},
	{"table", RULE_CALL, .call = parse_table},
	{"counter", RULE_CALL, .call = parse_state},
	{"byte-counter", RULE_CALL, .call = parse_state},
	{"register", RULE_CALL, .call = parse_state},
	{"port", RULE_UINT, AT(port), 0, MAX_PORT},
	{"baseline-port", RULE_INT, AT(baseline_port), 0, MAX_PORT},
	{"sink", RULE_CALL, .call = parse_sink},
	{"frame", RULE_CALL, .call = parse_frame},
	{"drops", RULE_ON, AT(drops)},
	{"device", RULE_INT, AT(device_fd), 0, 1e6},
	{"cpu", RULE_INT, AT(device_cpu), 0, CPU_SETSIZE - 1},
	{0},
};

void
parse_options(struct options *o, int argc, char **argv)
{
	*o = (struct options){.port = 1, .baseline_port = -1, .device_fd = -1, .device_cpu = -1};
	o->tables = calloc((size_t)argc, sizeof(*o->tables));
	o->states = calloc((size_t)argc, sizeof(*o->states));
	if (o->tables == NULL || o->states == NULL)
		fail("memory", "no memory for the names of tables");
	read_options(rules, o, argc, argv);
	if (o->switch_path == NULL || o->cli_path == NULL || o->folder == NULL || o->verify_path == NULL)
		fail("usage", "--switch, --cli, --folder and --verify have to be given");
	if (o->frame_length < MIN_FRAME)
		fail("usage", "--frame is missing or shorter than an Ethernet header");
}

/* Switches look for their interfaces in /sys, which shows those of the namespace in which it was mounted. */
static void
own_view(void)
{
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("sysfs", "/sys", "sysfs", 0, NULL) != 0)
		fail("device", "no view of the interfaces of the namespace (root or CAP_SYS_ADMIN is needed)");
}

static void
stay_on(int cpu)
{
	cpu_set_t cpus;

	if (cpu < 0)
		return;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0)
		fail("usage", "--cpu: there is no CPU %d for this process", cpu);
}

static void
tell(const struct switch_process *process)
{
	printf("{\"pipeline\": \"%s\", \"load_ms\": %.3f, \"resident_bytes\": %lu, \"path_threads\": %u}\n",
	       process->name, process->load_ms, switch_resident_bytes(process), process->n_path);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	static struct options options;
	static struct switch_process program = {.name = "program", .thrift_port = 9090};
	static struct switch_process baseline = {.name = "baseline", .thrift_port = 9091};
	uint64_t verified, too_short = 0;

	parse_options(&options, argc, argv);
	stay_on(options.device_cpu);
	own_view();
	links_up(&options);
	switch_start(&program, &options, true);
	switch_await(&program);
	switch_load(&program, &options, options.commands, options.tables, options.n_tables);
	switch_start(&baseline, &options, false);
	switch_await(&baseline);
	if (options.baseline_commands != NULL)
		switch_load(&baseline, &options, options.baseline_commands, NULL, 0);
	socket_find(&program);
	socket_find(&baseline);
	socket_listen(program.socket, false);
	exercise(&baseline, &options);
	socket_listen(baseline.socket, false);
	socket_listen(program.socket, true);
	verified = verify(&program, &options, &too_short);
	socket_listen(program.socket, false);
	tell(&program);
	tell(&baseline);
	if (options.device_fd >= 0)
		serve_device(&options, &program, &baseline, verified);
	else
		printf("{\"verified_packets\": %lu, \"too_short_packets\": %lu}\n", verified, too_short);
	fflush(stdout);
	_Exit(0);
}
