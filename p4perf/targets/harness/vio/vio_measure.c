/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows of a fixed number of packets in a stream, in real-time bursts with gaps.
 *
 * Before and after a window both processes calibrate their cores at the same time, with no packet on its way; the window
 * itself begins after a lead-in and ends while packets are still sent, so that it holds nothing but a steady stream. All
 * windows are reported.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "thread.h"
#include "vio.h"
#include "words.h"

static const struct turns no_turns = {-1, -1, NULL, NULL};

static int
compare_float(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static double
ratio(const struct condition *c)
{
	return c->calibration.mix_tsc / c->calibration.chain_tsc;
}

/* Lower mode of mix/chain of both cores in this start. */
static double
own_gate_ratio(const struct measurement *result)
{
	static float ratios[2 * MAX_WINDOWS];
	unsigned int i;

	if (result->n_windows < 10)
		return 0;
	for (i = 0; i < result->n_windows; i++) {
		ratios[2 * i] = (float)ratio(&result->windows[i].host[1]);
		ratios[2 * i + 1] = (float)ratio(&result->windows[i].function[1]);
	}
	qsort(ratios, 2 * result->n_windows, sizeof(ratios[0]), compare_float);
	return lower_mode(ratios, 2 * result->n_windows);
}

static bool
undisturbed(const struct condition side[2], const struct measure_options *options, double gate_ratio)
{
	const double tolerance = options->gate_tolerance;
	const double drift = side[1].calibration.chain_tsc / side[0].calibration.chain_tsc - 1;

	if (side[1].preemptions != side[0].preemptions)
		return false;
	return !options->gated || (undisturbed_ratio(ratio(&side[0]), gate_ratio, tolerance) &&
				   undisturbed_ratio(ratio(&side[1]), gate_ratio, tolerance) &&
				   drift < options->drift_tolerance && -drift < options->drift_tolerance);
}

/* Windows that count under the gate ratio known by now. */
static unsigned int
counted(struct measurement *result, const struct measure_options *options)
{
	const double own = own_gate_ratio(result);
	unsigned int i, n = 0;

	result->gate_ratio = options->gate_ratio;
	if (own > 0 && (result->gate_ratio == 0 || own < result->gate_ratio))
		result->gate_ratio = own;
	for (i = 0; result->gate_ratio > 0 && i < result->n_windows; i++)
		n += undisturbed(result->windows[i].host, options, result->gate_ratio) &&
		     undisturbed(result->windows[i].function, options, result->gate_ratio);
	return n;
}

static void
stream(struct host *host, uint64_t packets)
{
	if (!host_stream(host, host_received(host) + packets))
		fail("function", "packets do not come back any more");
}

static void
drain(struct host *host)
{
	if (!host_drain(host))
		fail("function", "packets do not come back any more");
}

/* Both calibrate at once. */
static void
conditions(struct control *control, struct condition *host, struct condition *function)
{
	const uint32_t number = command_begin(control, COMMAND_CONDITION, 0);

	*host = condition_now();
	command_wait(control, &no_turns, number);
	*function = control->condition;
}

static void
one_window(struct host *host, struct control *control, const struct measure_options *options, struct window *w)
{
	uint64_t first, last, begin, end, before = host_received(host);

	command_begin(control, COMMAND_RUN, 0);
	stream(host, 2 * vio_sizes.queue + options->packets / 2);
	first = host_received(host);
	begin = clock_tsc();
	stream(host, options->packets);
	end = clock_tsc();
	last = host_received(host);
	drain(host);
	conditions(control, &w->host[1], &w->function[1]);
	w->tsc_per_packet = (double)(end - begin) / (last - first);
	w->span_packets = host_received(host) - before;
}

int
measure(struct host *host, struct control *control, const struct measure_options *options, struct measurement *result)
{
	const bool fifo = options->gated && options->realtime_priority > 0;
	struct condition host_before, function_before;
	uint64_t begin_us, end_us, deadline;
	uint64_t begin_tsc;
	unsigned int enough;

	memset(result, 0, sizeof(*result));
	result->windows = calloc(MAX_WINDOWS, sizeof(*result->windows));
	if (result->windows == NULL)
		return -ENOMEM;
	result->counters = counters_open() && control->counted;

	begin_us = now_us();
	begin_tsc = clock_tsc();
	command_begin(control, COMMAND_RUN, 0);
	end_us = begin_us + options->warmup_ms * 1000;
	do
		stream(host, options->packets);
	while (now_us() < end_us);
	drain(host);
	deadline = now_us() + (uint64_t)options->timeout_ms * 1000;

	do {
		const uint64_t burst_end = now_us() + options->burst_us;

		if (fifo) {
			result->realtime = realtime(options->realtime_priority);
			command(control, &no_turns, COMMAND_REALTIME, options->realtime_priority);
			result->realtime = result->realtime && control->granted;
		}
		conditions(control, &host_before, &function_before);
		do {
			struct window *w = &result->windows[result->n_windows];

			w->host[0] = host_before;
			w->function[0] = function_before;
			one_window(host, control, options, w);
			host_before = w->host[1];
			function_before = w->function[1];
			result->n_windows++;
		} while (now_us() < burst_end && result->n_windows < MAX_WINDOWS);
		enough = counted(result, options);
		if (fifo) {
			command(control, &no_turns, COMMAND_REALTIME, 0);
			realtime(0);
		}
		if (enough < options->windows && options->gated) {
			command(control, &no_turns, COMMAND_REST, options->gap_us);
			usleep(options->gap_us);
		}
	} while (enough < options->windows && result->n_windows < MAX_WINDOWS && now_us() < deadline);
	result->timed_out = enough < options->windows;
	result->tsc_hz = (double)(clock_tsc() - begin_tsc) * 1e6 / (now_us() - begin_us);
	return 0;
}
