/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One trial of one point: start the EAL, fill the tables, check the program against its oracle, measure, print one line of
 * JSON. Exit status: 0 measured, 1 anything else; the line then has a key "error". With "load" as the first argument it is
 * the conversation of load_main.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "clock.h"
#include "harness.h"
#include "load.h"
#include "options.h"
#include "thread.h"

#define POOL_MBUFS 4095
#define SHORT_NS 10000000

/* Whether the EAL of a trial is starting. */
static bool starting;

/*
 * What DPDK calls instead of that of the C library. Where neither processor nor kernel says the rate of the TSC, the EAL
 * sleeps for 0.1 s to measure it, which is a third of a trial. Windows need only about their length, so a tenth of that
 * does; the rate in the record is that over the whole trial.
 */
int
nanosleep(const struct timespec *wanted, struct timespec *left)
{
	const struct timespec brief = {.tv_nsec = SHORT_NS};
	const bool shorten = starting && (wanted->tv_sec != 0 || wanted->tv_nsec > SHORT_NS);

	errno = clock_nanosleep(CLOCK_MONOTONIC, 0, shorten ? &brief : wanted, left);
	return errno == 0 ? 0 : -1;
}

static void
run_nothing(struct rte_mbuf **packets, unsigned int n)
{
	(void)packets;
	(void)n;
}

static int
setup_nothing(const uint64_t *entries)
{
	(void)entries;
	return 0;
}

static void
take_nothing(uint64_t *hits)
{
	(void)hits;
}

/* Receives and sends only: what the harness itself costs. */
const struct program program_empty = {
	.name = "empty",
	.setup = setup_nothing,
	.run = run_nothing,
	.take_hits = take_nothing,
};

static uint64_t
heap_bytes(void)
{
	struct rte_malloc_socket_stats stats;
	uint64_t bytes = 0;
	int socket;

	for (socket = 0; socket < RTE_MAX_NUMA_NODES; socket++)
		if (rte_malloc_get_socket_stats(socket, &stats) == 0)
			bytes += stats.heap_allocsz_bytes;
	return bytes;
}

#define VALUE(key, field)                                      \
	static double key(const void *window)                      \
	{                                                          \
		return ((const struct window *)window)->field;     \
	}

VALUE(window_program, program)
VALUE(window_cpu, cpu)
VALUE(window_preemptions, preemptions)
VALUE(window_tsc_per_packet, tsc_per_packet)
VALUE(window_chain_before_tsc, calibration.chain_before)
VALUE(window_mix_before_tsc, calibration.mix_before)
VALUE(window_chain_after_tsc, calibration.chain_after)
VALUE(window_mix_after_tsc, calibration.mix_after)
VALUE(window_instructions, instructions)
VALUE(window_cache_misses, cache_misses)

static const struct column columns[] = {
	{"program", "%.0f", window_program},
	{"cpu", "%.0f", window_cpu},
	{"preemptions", "%.0f", window_preemptions},
	{"tsc_per_packet", "%.3f", window_tsc_per_packet},
	{"chain_before_tsc", "%.4f", window_chain_before_tsc},
	{"mix_before_tsc", "%.4f", window_mix_before_tsc},
	{"chain_after_tsc", "%.4f", window_chain_after_tsc},
	{"mix_after_tsc", "%.4f", window_mix_after_tsc},
	{0},
};

/* Where there are hardware counters. */
static const struct column counter_columns[] = {
	{"instructions", "%.4f", window_instructions},
	{"cache_misses", "%.6f", window_cache_misses},
	{0},
};

static void
print_result(const struct options *o, const struct measurement *m, uint64_t verified, uint64_t memory_bytes,
	     double setup_ms, double start_ms, double tsc_hz)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("{\"harness_version\": 2, \"programs\": [\"%s\", \"%s\"%s]", program_under_test.name,
	       program_baseline.name, o->with_empty ? ", \"empty\"" : "");
	printf(", \"tsc_hz\": %.0f, \"chain_core_cycles\": %g, \"gated\": %s, \"gate_ratio\": %.5f, "
	       "\"gate_tolerance\": %g, \"drift_tolerance\": %g",
	       tsc_hz, CHAIN_CORE_CYCLES, o->measure.gated ? "true" : "false", m->gate_ratio,
	       o->measure.gate_tolerance, o->measure.drift_tolerance);
	printf(", \"realtime\": %s, \"hugepages\": %s, \"timed_out\": %s, \"hops\": %u", m->realtime ? "true" : "false",
	       rte_eal_has_hugepages() ? "true" : "false", m->timed_out ? "true" : "false", m->hops);
	printf(", \"window_us\": %u, \"packets\": %lu, \"sent\": %lu, \"verified_packets\": %lu, \"memory_bytes\": %lu",
	       o->measure.window_us, m->packets, m->sent, verified, memory_bytes);
	if (program_under_test.code_end != NULL)
		printf(", \"code_bytes\": %td", program_under_test.code_end - program_under_test.code_begin);
	if (o->compile_ms >= 0)
		printf(", \"compile_ms\": %.3f", o->compile_ms);
	printf(", \"setup_ms\": %.3f, \"start_ms\": %.3f, \"peak_rss_bytes\": %lu, \"windows\": {\"n\": %u", setup_ms,
	       start_ms, usage.ru_maxrss * 1024, m->n_windows);
	print_columns(columns, m->windows, sizeof(*m->windows), m->n_windows);
	if (m->counters)
		print_columns(counter_columns, m->windows, sizeof(*m->windows), m->n_windows);
	printf("}}\n");
}

int
main(int argc, char **argv)
{
	static const struct program *programs[3] = {&program_under_test, &program_baseline, &program_empty};
	static struct options options;
	static struct source source;
	struct measurement measurement = {0};
	struct rte_mempool *pool;
	uint64_t verified = 0, before, memory, start, start_us, setup_us;
	double start_ms, setup_ms, tsc_hz;
	cpu_set_t cpus;
	char error[256];
	int used, result;

	if (argc > 1 && strcmp(argv[1], "load") == 0)
		return load_main(argc - 1, argv + 1);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	start_us = now_us();
	start = clock_tsc();
	starting = true;
	used = rte_eal_init(argc, argv);
	starting = false;
	if (used < 0)
		fail("eal", "the DPDK environment did not start: %s", rte_strerror(rte_errno));
	start_ms = (double)(now_us() - start_us) * 1e-3;
	parse_options(&options, argc - used, argv + used);
	options.measure.cpus = &cpus;

	pool = load_pool("packets", POOL_MBUFS);
	if (pool == NULL)
		fail("memory", "no memory for the packet pool: %s", rte_strerror(rte_errno));
	before = heap_bytes();
	setup_us = now_us();
	result = program_under_test.setup(options.entries);
	if (result != 0)
		fail("memory", "the tables could not be created or filled: %s", rte_strerror(-result));
	setup_ms = (double)(now_us() - setup_us) * 1e-3;
	memory = heap_bytes() - before;
	result = program_baseline.setup(NULL);
	if (result != 0)
		fail("memory", "the baseline could not be set up: %s", rte_strerror(-result));

	if (options.verify_path != NULL &&
	    verify_file(&program_under_test, pool, options.verify_path, error, sizeof(error), &verified) != 0)
		fail("verify", "%s", error);
	if (!options.verify_only) {
		result = source_init(&source, pool, &options.traffic);
		if (result != 0)
			fail("usage", "the frame and its key do not fit together: %s", rte_strerror(-result));
	}
	if (options.packets != 0) {
		measurement.packets = options.packets / BURST_PACKETS * BURST_PACKETS;
		measurement.sent = run_bursts(&program_under_test, &source, options.packets / BURST_PACKETS);
	} else if (!options.verify_only) {
		result = measure(programs, options.with_empty ? 3 : 2, &source, &options.measure, &measurement);
		if (result != 0)
			fail("memory", "the measurement could not start: %s", rte_strerror(-result));
	}
	tsc_hz = (double)(clock_tsc() - start) * 1e6 / (double)(now_us() - start_us);
	print_result(&options, &measurement, verified, memory, setup_ms, start_ms, tsc_hz);
	fflush(stdout);
	/* The kernel frees everything at once, which is faster than table by table. */
	_Exit(0);
}
