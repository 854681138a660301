/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows inside of runs of BPF_PROG_TEST_RUN: one run is one real-time burst of some windows of one program, and the
 * programs take turns. The programs themselves record the edges of their windows, and calibrate there (xdp_program.h).
 *
 * A run with more than one repeat waits for grace periods before and after its loop, 20 to 30 ms. Real-time processes
 * rest meanwhile, so there is no other gap. The caches are cold after it: with 100,000 entries the cost of a packet fell
 * from 600 to 300 cycles within 12 ms. So every run begins with a time without windows, as real-time process too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/bpf.h>

#include <bpf/bpf.h>

#include "clock.h"
#include "quantiles.h"
#include "thread.h"
#include "xdp.h"

#define WARM_US 2000       /* before the first window of a run, at least */
#define WARM_MOST_US 25000 /* and at most: as long as it takes to touch every entry twice */
#define STREAM_SAMPLE 256
#define CALIBRATION_US 30  /* what the two calibrators take, about */

void
stream_config(const struct options *options, struct p4perf_config *config)
{
	unsigned int i;

	memset(config, 0, sizeof(*config));
	config->distribution = (uint32_t)options->distribution;
	if (options->hit_ratio < 1.0)
		config->miss_threshold = options->hit_ratio * 4294967296.0 < 1.0
						 ? 1
						 : (uint32_t)(options->hit_ratio * 4294967296.0);
	for (i = 0; i < options->n_entries; i++)
		config->entries[i] = options->entries[i];
	for (i = 0; i < P4PERF_MAX_DRAWS; i++) {
		config->draws[i].keys = i < options->n_draws ? (uint32_t)options->keys[i] : 1;
		if (options->distribution == DRAW_ZIPF && i < options->n_draws)
			fill_quantiles(config->draws[i].keys, options->zipf_exponent, P4PERF_QUANTILES,
				       config->draws[i].quantile_low, config->draws[i].quantile_width);
	}
}

/* Run a program a number of times on one packet; nanoseconds of one run by the kernel, 0 if it was interrupted. */
static uint32_t
run(const struct loaded *program, const struct options *options, uint32_t repeat, uint32_t *verdict)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = options->frame, .data_size_in = options->frame_length,
		    .repeat = (int)repeat);

	if (bpf_prog_test_run_opts(program->fd, &opts) != 0) {
		if (errno == EINTR)
			return 0;
		fail("run", "the kernel does not run %s: %s", program->name, strerror(errno));
	}
	if (opts.retval == XDP_ABORTED)
		fail("run", "%s ends with XDP_ABORTED: a packet could not be restored or sent", program->name);
	*verdict = opts.retval;
	return opts.duration;
}

/* Nanoseconds per packet in one window of that many packets after as many to warm up. */
static double
ns_per_packet(const struct loaded *program, const struct options *options, uint32_t packets)
{
	struct p4perf_shared *s = program->shared;
	uint32_t verdict;

	s->left = s->edges = 0;
	s->window_packets = packets;
	run(program, options, 2 * packets + 1, &verdict);
	return s->edges < 3 ? 0 : (double)(s->edge[2].end_ns - s->edge[1].start_ns) / packets;
}

/* Packets of a window of the wanted length. */
static uint32_t
window_packets(const struct loaded *program, const struct options *options)
{
	double ns = 0;
	unsigned int i;

	for (i = 0; i < 10 && ns <= 0; i++)
		ns = ns_per_packet(program, options, 2000);
	if (ns <= 0)
		fail("run", "the kernel does not finish a run of %s", program->name);
	return ns * 2 > options->window_us * 1000.0 ? 2 : (uint32_t)(options->window_us * 1000.0 / ns);
}

static void
edge_calibration(const struct p4perf_edge *edge, double *chain, double *mix)
{
	*chain = (double)(edge->middle_ns - edge->begin_ns) / (P4PERF_CHAIN_LOOPS * P4PERF_CHAIN_UNROLLED);
	*mix = (double)(edge->start_ns - edge->middle_ns) / (P4PERF_MIX_LOOPS * P4PERF_MIX_UNROLLED);
}

/* Packets to warm the caches with at the start of a run of a program with that many packets in a window. */
static uint32_t
warm_packets(const struct options *options, bool tables, uint32_t packets)
{
	const double least = (double)packets * WARM_US / options->window_us;
	const double most = (double)packets * WARM_MOST_US / options->window_us;
	double wanted = 0;
	unsigned int i;

	for (i = 0; tables && i < options->n_entries; i++)
		wanted = fmax(wanted, 2.0 * options->entries[i]);
	return (uint32_t)fmin(fmax(wanted, least), most);
}

/* One burst: run a program and keep its windows. */
static void
burst(const struct loaded *program, uint8_t number, uint32_t packets, int cpu, const struct options *options,
      struct measurement *result)
{
	const uint32_t warm = warm_packets(options, number == 0, packets);
	struct p4perf_shared *s = program->shared;
	uint32_t n_windows = options->burst_us / (options->window_us + CALIBRATION_US), i, verdict, duration;
	uint64_t switches;

	n_windows = n_windows < 1 ? 1 : n_windows > P4PERF_MAX_EDGES - 2 ? P4PERF_MAX_EDGES - 2 : n_windows;
	s->left = warm;
	s->edges = 0;
	s->window_packets = packets;
	switches = preemptions();
	duration = run(program, options, warm + n_windows * packets + 1, &verdict);
	switches = preemptions() - switches;
	result->runs++;
	if (duration == 0 || s->edges < 2)
		return;
	result->kernel_ns[number] = duration;
	for (i = 0; i + 1 < s->edges && result->n_windows < MAX_WINDOWS; i++) {
		struct window *w = &result->windows[result->n_windows];

		w->program = number;
		w->cpu = (uint8_t)cpu;
		w->preemptions = switches > UINT16_MAX ? UINT16_MAX : (uint16_t)switches;
		w->ns_per_packet = (double)(s->edge[i + 1].end_ns - s->edge[i].start_ns) / packets;
		edge_calibration(&s->edge[i], &w->chain_before, &w->mix_before);
		edge_calibration(&s->edge[i + 1], &w->chain_after, &w->mix_after);
		result->n_windows++;
		result->packets += number == 0 ? packets : 0;
	}
}

static int
compare_float(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static bool
steady(const struct window *w, const struct options *options)
{
	return w->preemptions == 0 && fabs(w->chain_after / w->chain_before - 1) < options->drift_tolerance;
}

/* Lower mode of mix/chain in this process, of windows whose chains agree. */
static double
own_gate_ratio(const struct measurement *result, const struct options *options)
{
	static float ratios[MAX_WINDOWS];
	unsigned int i, n = 0;

	for (i = 0; i < result->n_windows; i++)
		if (steady(&result->windows[i], options))
			ratios[n++] = (float)(result->windows[i].mix_after / result->windows[i].chain_after);
	if (n < 10)
		return 0;
	qsort(ratios, n, sizeof(ratios[0]), compare_float);
	return lower_mode(ratios, n);
}

static bool
accepted(const struct window *w, const struct options *options, double gate_ratio)
{
	const double tolerance = options->gate_tolerance;

	if (!options->gated)
		return w->preemptions == 0;
	return steady(w, options) && undisturbed_ratio(w->mix_before / w->chain_before, gate_ratio, tolerance) &&
	       undisturbed_ratio(w->mix_after / w->chain_after, gate_ratio, tolerance);
}

/* Count the accepted windows of each program under the gate ratio known by now; the lowest count. */
static unsigned int
recount(struct measurement *result, unsigned int n_programs, const struct options *options)
{
	const double own = own_gate_ratio(result, options);
	unsigned int i, least = UINT32_MAX;

	result->gate_ratio = options->gate_ratio;
	if (own > 0 && (result->gate_ratio == 0 || own < result->gate_ratio))
		result->gate_ratio = own;
	memset(result->accepted, 0, sizeof(result->accepted));
	for (i = 0; i < result->n_windows; i++)
		result->accepted[result->windows[i].program] +=
			result->gate_ratio > 0 && accepted(&result->windows[i], options, result->gate_ratio);
	for (i = 0; i < n_programs; i++)
		least = result->accepted[i] < least ? result->accepted[i] : least;
	return least;
}

/* What becomes of packets of the stream, one by one: those that are sent say that the keys are those of the table. */
static void
sample_stream(const struct loaded *program, const struct options *options, struct measurement *result)
{
	uint32_t verdict = XDP_DROP;

	program->shared->left = UINT64_MAX;
	for (; result->stream_packets < STREAM_SAMPLE; result->stream_packets++) {
		run(program, options, 1, &verdict);
		result->stream_sent += verdict == XDP_TX;
	}
}

void
measure(const struct loaded *programs, unsigned int n_programs, const struct options *options, const cpu_set_t *cpus,
	struct measurement *result)
{
	const bool fifo = options->gated && options->realtime_priority > 0;
	uint32_t packets[MAX_PROGRAMS], verdict;
	unsigned int p, least, before, useful;
	int cpu = CPU_SETSIZE - 1;
	uint64_t deadline;

	result->windows = calloc(MAX_WINDOWS, sizeof(*result->windows));
	if (result->windows == NULL)
		fail("memory", "no memory for the windows");
	while (cpu > 0 && !CPU_ISSET(cpu, cpus))
		cpu--;
	pin(cpu); /* the last one, as the other local targets */
	for (p = 0; p < n_programs; p++)
		programs[p].shared->state = options->seed * 0xD1342543DE82EF95u + 1;
	sample_stream(&programs[0], options, result);
	run(&programs[0], options, options->warmup_packets > 1 ? (uint32_t)options->warmup_packets : 1, &verdict);
	for (p = 0; p < n_programs; p++)
		packets[p] = window_packets(&programs[p], options);
	deadline = now_us() + (uint64_t)options->timeout_ms * 1000;

	do {
		before = result->n_windows;
		useful = result->accepted[0];
		for (p = 0; p < n_programs; p++) {
			if (fifo)
				result->realtime = realtime(options->realtime_priority);
			burst(&programs[p], (uint8_t)p, packets[p], cpu, options, result);
			if (fifo)
				realtime(0);
		}
		least = recount(result, n_programs, options);
		/* Fewer than a quarter of the windows of this round count: the other CPU may be better. */
		if (options->gated && 4 * n_programs * (result->accepted[0] - useful) < result->n_windows - before)
			result->hops += hop(cpus, &cpu);
	} while (least < options->windows && result->n_windows < MAX_WINDOWS && now_us() < deadline);
	result->timed_out = least < options->windows;
}
