/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One trial of one point: start the EAL, fill the tables, check the program against its oracle, measure, print one line of
 * JSON. Exit status: 0 measured, 1 anything else; the line then has a key "error".
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "clock.h"
#include "harness.h"

#define POOL_MBUFS 4095
#define POOL_CACHE 256
#define FRAME_ROOM 9216

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
teardown_nothing(void)
{
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
	.teardown = teardown_nothing,
	.run = run_nothing,
	.take_hits = take_nothing,
};

struct options {
	const char *verify_path;
	uint64_t entries[MAX_TABLES];
	unsigned int n_entries;
	bool with_empty;
	bool verify_only;
	uint8_t frame[FRAME_ROOM];
	struct traffic traffic;
	struct measure_options measure;
};

__attribute__((noreturn, format(printf, 2, 3))) static void
fail(const char *kind, const char *format, ...)
{
	va_list arguments;
	char text[512], *c;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (c = text; *c != '\0'; c++)
		if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
			*c = '\'';
	printf("{\"error\": \"%s\", \"kind\": \"%s\"}\n", text, kind);
	fflush(stdout);
	_Exit(1);
}

static double
number(const char *name, const char *text, double low, double high)
{
	char *end;
	const double value = strtod(text, &end);

	if (*text == '\0' || *end != '\0' || !(value >= low && value <= high))
		fail("usage", "--%s: %s is not a number from %g to %g", name, text, low, high);
	return value;
}

static void
parse_frame(struct options *options, const char *text)
{
	const size_t digits = strlen(text);
	unsigned int byte;
	size_t i;

	if (digits % 2 != 0 || digits / 2 > FRAME_ROOM)
		fail("usage", "--frame: %zu hexadecimal digits are no frame", digits);
	for (i = 0; i < digits / 2; i++) {
		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			fail("usage", "--frame: not hexadecimal at digit %zu", 2 * i);
		options->frame[i] = (uint8_t)byte;
	}
	options->traffic.frame = options->frame;
	options->traffic.frame_length = (uint16_t)(digits / 2);
}

enum option_code {
	OPT_FRAME = 1,
	OPT_KEY_OFFSET,
	OPT_KEY_LENGTH,
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
	OPT_GAP_US,
	OPT_TIMEOUT_MS,
	OPT_WARMUP_MS,
	OPT_WARMUP_PACKETS,
	OPT_PRIORITY,
};

static const struct option long_options[] = {
	{"frame", required_argument, NULL, OPT_FRAME},
	{"key-offset", required_argument, NULL, OPT_KEY_OFFSET},
	{"key-length", required_argument, NULL, OPT_KEY_LENGTH},
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
		parse_frame(o, text);
		break;
	case OPT_KEY_OFFSET:
		o->traffic.key_offset = (uint16_t)number(name, text, 0, FRAME_ROOM);
		break;
	case OPT_KEY_LENGTH:
		o->traffic.key_length = (uint16_t)number(name, text, 0, 64);
		break;
	case OPT_KEYS:
		o->traffic.keys = (uint64_t)number(name, text, 1, 1e9);
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
		if (o->n_entries == MAX_TABLES)
			fail("usage", "--entries: more than %d tables", MAX_TABLES);
		o->entries[o->n_entries++] = (uint64_t)number(name, text, 0, 1e9);
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

static void
parse_options(struct options *o, int argc, char **argv)
{
	int code, index;

	memset(o, 0, sizeof(*o));
	o->traffic.hit_ratio = 1.0;
	o->traffic.zipf_exponent = 1.0;
	o->traffic.seed = 1;
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

/*
 * A packet pool. With 4 KiB pages the ordinary constructor puts one mbuf on each page, all at the same offset, so that
 * their headers share a few cache sets; without the demand for contiguous bus addresses they lie back to back.
 */
static struct rte_mempool *
create_pool(void)
{
	struct rte_pktmbuf_pool_private private = {.mbuf_data_room_size = RTE_PKTMBUF_HEADROOM + 2048};
	const unsigned int size = sizeof(struct rte_mbuf) + private.mbuf_data_room_size;
	struct rte_mempool *pool;

	pool = rte_mempool_create_empty("packets", POOL_MBUFS, size, POOL_CACHE, sizeof(private), SOCKET_ID_ANY,
					RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	if (pool == NULL)
		return NULL;
	rte_pktmbuf_pool_init(pool, &private);
	if (rte_mempool_populate_default(pool) < 0) {
		rte_mempool_free(pool);
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}

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

static void
print_windows(const struct measurement *m, const char *key, int which)
{
	unsigned int i;

	printf(", \"%s\": [", key);
	for (i = 0; i < m->n_windows; i++) {
		const struct window *w = &m->windows[i];
		const char *comma = i == 0 ? "" : ",";

		switch (which) {
		case 0:
			printf("%s%u", comma, w->program);
			break;
		case 1:
			printf("%s%u", comma, w->cpu);
			break;
		case 2:
			printf("%s%u", comma, w->preemptions);
			break;
		case 3:
			printf("%s%.3f", comma, w->tsc_per_packet);
			break;
		case 4:
			printf("%s%.4f", comma, w->calibration.chain_before);
			break;
		case 5:
			printf("%s%.4f", comma, w->calibration.mix_before);
			break;
		case 6:
			printf("%s%.4f", comma, w->calibration.chain_after);
			break;
		default:
			printf("%s%.4f", comma, w->calibration.mix_after);
			break;
		}
	}
	printf("]");
}

static void
print_result(const struct options *o, const struct measurement *m, uint64_t verified, uint64_t memory_bytes,
	     double setup_ms, double start_ms)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("{\"harness_version\": 1, \"programs\": [\"%s\", \"%s\"%s]", program_under_test.name,
	       program_baseline.name, o->with_empty ? ", \"empty\"" : "");
	printf(", \"tsc_hz\": %lu, \"chain_core_cycles\": %g, \"gated\": %s, \"gate_ratio\": %.5f, "
	       "\"gate_tolerance\": %g, \"drift_tolerance\": %g",
	       rte_get_tsc_hz(), CHAIN_CORE_CYCLES, o->measure.gated ? "true" : "false", m->gate_ratio,
	       o->measure.gate_tolerance, o->measure.drift_tolerance);
	printf(", \"realtime\": %s, \"hugepages\": %s, \"timed_out\": %s, \"hops\": %u", m->realtime ? "true" : "false",
	       rte_eal_has_hugepages() ? "true" : "false", m->timed_out ? "true" : "false", m->hops);
	printf(", \"window_us\": %u, \"packets\": %lu, \"sent\": %lu, \"verified_packets\": %lu, \"memory_bytes\": %lu",
	       o->measure.window_us, m->packets, m->sent, verified, memory_bytes);
	printf(", \"setup_ms\": %.3f, \"start_ms\": %.3f, \"peak_rss_bytes\": %lu, \"windows\": {\"n\": %u", setup_ms,
	       start_ms, usage.ru_maxrss * 1024, m->n_windows);
	print_windows(m, "program", 0);
	print_windows(m, "cpu", 1);
	print_windows(m, "preemptions", 2);
	print_windows(m, "tsc_per_packet", 3);
	print_windows(m, "chain_before_tsc", 4);
	print_windows(m, "mix_before_tsc", 5);
	print_windows(m, "chain_after_tsc", 6);
	print_windows(m, "mix_after_tsc", 7);
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
	uint64_t verified = 0, before, memory, start, setup;
	double start_ms, setup_ms;
	cpu_set_t cpus;
	char error[256];
	int used, result;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	start = clock_tsc();
	used = rte_eal_init(argc, argv);
	if (used < 0)
		fail("eal", "the DPDK environment did not start: %s", rte_strerror(rte_errno));
	start_ms = (double)(clock_tsc() - start) * 1e3 / rte_get_tsc_hz();
	optind = 1;
	parse_options(&options, argc - used, argv + used);
	options.measure.cpus = &cpus;

	pool = create_pool();
	if (pool == NULL)
		fail("memory", "no memory for the packet pool: %s", rte_strerror(rte_errno));
	before = heap_bytes();
	setup = clock_tsc();
	result = program_under_test.setup(options.entries);
	if (result != 0)
		fail("memory", "the tables could not be created or filled: %s", rte_strerror(-result));
	setup_ms = (double)(clock_tsc() - setup) * 1e3 / rte_get_tsc_hz();
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
		result = measure(programs, options.with_empty ? 3 : 2, &source, &options.measure, &measurement);
		if (result != 0)
			fail("memory", "the measurement could not start: %s", rte_strerror(-result));
	}
	print_result(&options, &measurement, verified, memory, setup_ms, start_ms);
	fflush(stdout);
	/* The kernel frees everything at once, which is faster than table by table. */
	_Exit(0);
}
