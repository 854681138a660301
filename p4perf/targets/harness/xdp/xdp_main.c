/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One trial of one point of target xdp: load the program and its baseline, fill the maps, check the program against its
 * oracle, measure, print one line of JSON. Exit status: 0 measured, 1 anything else; the line then has a key "error".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "clock.h"
#include "xdp.h"

#define LOADS 3 /* of the program as a user would load it, for the time that takes */

struct clock_pair {
	uint64_t tsc, ns;
};

static struct clock_pair
both_clocks(void)
{
	struct timespec ts;
	struct clock_pair pair;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	pair.tsc = clock_tsc();
	pair.ns = (uint64_t)ts.tv_sec * 1000000000u + ts.tv_nsec;
	return pair;
}

/* Rate of the TSC against CLOCK_MONOTONIC, from the start of this process until now, at least 50 ms. */
static double
tsc_hz(const struct clock_pair *start)
{
	struct clock_pair now;

	do
		now = both_clocks();
	while (now.ns - start->ns < 50000000);
	return (double)(now.tsc - start->tsc) / (double)(now.ns - start->ns) * 1e9;
}

static double
ms_since(const struct clock_pair *start)
{
	return (double)(both_clocks().ns - start->ns) * 1e-6;
}

/* The time that the compiler took, which the build left in a file, in ms; 0 if it did not. */
static double
compile_ms(const char *folder)
{
	char path[4096];
	double ns = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/compile_ns", folder);
	file = fopen(path, "r");
	if (file != NULL) {
		if (fscanf(file, "%lf", &ns) != 1)
			ns = 0;
		fclose(file);
	}
	return ns * 1e-6;
}

static double tsc_per_ns;

#define VALUE(key, field)                                      \
	static double key(const void *window)                      \
	{                                                          \
		return ((const struct window *)window)->field;     \
	}

VALUE(window_program, program)
VALUE(window_cpu, cpu)
VALUE(window_preemptions, preemptions)
VALUE(window_tsc_per_packet, ns_per_packet * tsc_per_ns)
VALUE(window_chain_before_tsc, chain_before * tsc_per_ns)
VALUE(window_mix_before_tsc, mix_before * tsc_per_ns)
VALUE(window_chain_after_tsc, chain_after * tsc_per_ns)
VALUE(window_mix_after_tsc, mix_after * tsc_per_ns)

static const struct column columns[] = {
	{"program", "%.0f", window_program},
	{"cpu", "%.0f", window_cpu},
	{"preemptions", "%.0f", window_preemptions},
	{"tsc_per_packet", "%.4f", window_tsc_per_packet},
	{"chain_before_tsc", "%.4f", window_chain_before_tsc},
	{"mix_before_tsc", "%.4f", window_mix_before_tsc},
	{"chain_after_tsc", "%.4f", window_chain_after_tsc},
	{"mix_after_tsc", "%.4f", window_mix_after_tsc},
	{0},
};

int
main(int argc, char **argv)
{
	static struct options options;
	static struct p4perf_config config;
	static struct loaded checked, deployed, programs[MAX_PROGRAMS];
	struct measurement measurement = {0};
	struct clock_pair start = both_clocks(), setup;
	double load_ms[LOADS], setup_ms, hz;
	uint64_t verified = 0, too_short = 0;
	struct rusage usage;
	unsigned int i, k;
	cpu_set_t cpus;

	parse_options(&options, argc, argv);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	stream_config(&options, &config);

	config.count_hits = 1;
	load_program(&checked, &options, "program.o", "xdp_program", &config, NULL);
	setup = both_clocks();
	fill_tables(&checked, &options);
	setup_ms = ms_since(&setup);
	if (options.verify_path != NULL)
		verified = verify(&checked, options.verify_path, &too_short);

	config.count_hits = 0;
	for (i = 0; i < LOADS; i++) {
		load_program(&deployed, &options, "program.o", "xdp_program", &config, &checked);
		for (k = i; k > 0 && load_ms[k - 1] > deployed.load_ms; k--)
			load_ms[k] = load_ms[k - 1];
		load_ms[k] = deployed.load_ms;
	}
	if (options.device_fd >= 0) {
		load_program(&programs[1], &options, "baseline.o", "xdp_program", &config, NULL);
		serve_device(&options, &deployed, &programs[1], verified);
		_Exit(0);
	}
	if (!options.verify_only) {
		load_program(&programs[0], &options, "program.o", "xdp_measure", &config, &checked);
		load_program(&programs[1], &options, "baseline.o", "xdp_measure", &config, NULL);
		if (options.with_empty)
			load_program(&programs[2], &options, "baseline.o", "xdp_empty", &config, NULL);
		measure(programs, options.with_empty ? 3 : 2, &options, &cpus, &measurement);
	}

	hz = tsc_hz(&start);
	getrusage(RUSAGE_SELF, &usage);
	printf("{\"harness_version\": %d, \"programs\": [\"program\", \"baseline\"%s]", XDP_HARNESS_VERSION,
	       options.with_empty ? ", \"empty\"" : "");
	printf(", \"tsc_hz\": %.0f, \"chain_core_cycles\": %g, \"gated\": %s, \"gate_ratio\": %.5f, "
	       "\"gate_tolerance\": %g, \"drift_tolerance\": %g",
	       hz, CHAIN_CORE_CYCLES, options.gated ? "true" : "false", measurement.gate_ratio, options.gate_tolerance,
	       options.drift_tolerance);
	printf(", \"realtime\": %s, \"timed_out\": %s, \"hops\": %u, \"runs\": %u",
	       measurement.realtime ? "true" : "false", measurement.timed_out ? "true" : "false", measurement.hops,
	       measurement.runs);
	printf(", \"window_us\": %u, \"packets\": %lu, \"stream_packets\": %lu, \"stream_sent\": %lu", options.window_us,
	       measurement.packets, measurement.stream_packets, measurement.stream_sent);
	printf(", \"verified_packets\": %lu, \"too_short_packets\": %lu, \"memory_bytes\": %lu", verified, too_short,
	       tables_bytes(&checked));
	printf(", \"program_instructions\": %u, \"code_bytes\": %u, \"load_ms\": %.4f, \"compile_ms\": %.3f",
	       deployed.instructions, deployed.code_bytes, load_ms[LOADS / 2], compile_ms(options.folder));
	printf(", \"kernel_ns_per_packet\": [%g, %g], \"setup_ms\": %.3f, \"peak_rss_bytes\": %lu",
	       measurement.kernel_ns[0], measurement.kernel_ns[1], setup_ms, usage.ru_maxrss * 1024);
	printf(", \"windows\": {\"n\": %u", measurement.n_windows);
	tsc_per_ns = hz * 1e-9;
	print_columns(columns, measurement.windows, sizeof(*measurement.windows), measurement.n_windows);
	printf("}}\n");
	fflush(stdout);
	_Exit(0);
}
