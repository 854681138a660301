/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short windows between calibrations, in real-time bursts with gaps.
 *
 * The bursts are short because a real-time process that never sleeps is throttled by the kernel (50 ms a second) and
 * starves its neighbours; the windows are short because a disturbance then spoils few of them. Which windows count is
 * decided by the calibrations around them; all windows are reported.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include <rte_cycles.h>

#include "clock.h"
#include "harness.h"
#include "thread.h"

/*
 * Hardware counters of this thread in user space, on whatever CPU it runs, where the kernel offers them (in most virtual
 * machines it does not).
 */
struct counters {
	uint64_t instructions;
	uint64_t cache_misses; /* of the last level */
};

static int leader = -1;

static int
open_event(uint64_t config, int group)
{
	struct perf_event_attr attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.type = PERF_TYPE_HARDWARE;
	attributes.size = sizeof(attributes);
	attributes.config = config;
	attributes.read_format = PERF_FORMAT_GROUP;
	attributes.disabled = group == -1;
	attributes.exclude_kernel = 1;
	attributes.exclude_hv = 1;
	return (int)syscall(SYS_perf_event_open, &attributes, 0, -1, group, 0);
}

/* False: there are none. */
static bool
counters_open(void)
{
	leader = open_event(PERF_COUNT_HW_INSTRUCTIONS, -1);
	if (leader == -1)
		return false;
	if (open_event(PERF_COUNT_HW_CACHE_MISSES, leader) == -1) {
		close(leader);
		leader = -1;
		return false;
	}
	ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	return true;
}

/* Their values by now; all zero if there are none. */
static struct counters
counters_read(void)
{
	uint64_t values[3] = {0};
	struct counters result = {0};

	if (leader != -1 && read(leader, values, sizeof(values)) == sizeof(values)) {
		result.instructions = values[1];
		result.cache_misses = values[2];
	}
	return result;
}

uint64_t
run_bursts(const struct program *program, struct source *source, uint64_t bursts)
{
	struct rte_mbuf *packets[BURST_PACKETS];
	uint64_t sent = 0;

	if (program->stream != NULL)
		return program->stream(source, bursts);
	while (bursts-- != 0) {
		source_receive(source, packets);
		program->run(packets, BURST_PACKETS);
		sent += sink_transmit(source, packets);
	}
	return sent;
}

/* Run a program for some time; returns the TSC cycles per burst. */
static double
run_for(const struct program *program, struct source *source, uint64_t us)
{
	const uint64_t end = now_us() + us;
	uint64_t bursts = 0, step = 1, start = clock_tsc();

	do {
		run_bursts(program, source, step);
		bursts += step;
		step = step < 16 ? 2 * step : 16;
	} while (now_us() < end);
	return (double)(clock_tsc() - start) / bursts;
}

static int
compare_float(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* Lower mode of mix/chain in this process. */
static double
own_gate_ratio(const struct measurement *result)
{
	static float ratios[MAX_WINDOWS];
	unsigned int i;

	if (result->n_windows < 10)
		return 0;
	for (i = 0; i < result->n_windows; i++)
		ratios[i] = result->windows[i].calibration.mix_after / result->windows[i].calibration.chain_after;
	qsort(ratios, result->n_windows, sizeof(ratios[0]), compare_float);
	return lower_mode(ratios, result->n_windows);
}

static bool
accepted(const struct window *w, const struct measure_options *options, double gate_ratio)
{
	const double tolerance = options->gate_tolerance;
	const double drift = w->calibration.chain_after / w->calibration.chain_before - 1;

	if (w->preemptions != 0)
		return false;
	if (!options->gated)
		return true;
	return undisturbed_ratio(w->calibration.mix_before / w->calibration.chain_before, gate_ratio, tolerance) &&
	       undisturbed_ratio(w->calibration.mix_after / w->calibration.chain_after, gate_ratio, tolerance) &&
	       drift < options->drift_tolerance && -drift < options->drift_tolerance;
}

/* Count the accepted windows of each program under the gate ratio known by now; the lowest count. */
static unsigned int
recount(struct measurement *result, unsigned int n_programs, const struct measure_options *options)
{
	const double own = own_gate_ratio(result);
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

int
measure(const struct program *const *programs, unsigned int n_programs, struct source *source,
	const struct measure_options *options, struct measurement *result)
{
	const bool fifo = options->gated && options->realtime_priority > 0;
	uint64_t deadline, bursts[4];
	unsigned int p, least;
	int cpu = sched_getcpu();

	memset(result, 0, sizeof(*result));
	result->counters = counters_open();
	if (n_programs > 4)
		return -EINVAL;
	result->windows = calloc(MAX_WINDOWS, sizeof(*result->windows));
	if (result->windows == NULL)
		return -ENOMEM;

	run_bursts(programs[0], source, options->warmup_packets / BURST_PACKETS + 1);
	for (p = 0; p < n_programs; p++) {
		run_for(programs[p], source, options->warmup_ms * 1000 / 4);
		bursts[p] = 0;
	}
	run_for(programs[0], source, options->warmup_ms * 1000);
	deadline = now_us() + (uint64_t)options->timeout_ms * 1000;

	do {
		const uint64_t burst_end = now_us() + options->burst_us;
		struct calibration before, after;

		if (fifo)
			result->realtime = realtime(options->realtime_priority);
		before = calibrate();
		if (options->gated && result->gate_ratio > 0 &&
		    before.mix_tsc / before.chain_tsc >= result->gate_ratio * (1 + options->gate_tolerance) &&
		    hop(options->cpus, &cpu)) {
			result->hops++;
			run_for(programs[0], source, 2000);
		}
		run_for(programs[0], source, 300);
		before = calibrate();
		do {
			for (p = 0; p < n_programs && result->n_windows < MAX_WINDOWS; p++) {
				struct window *w = &result->windows[result->n_windows];
				struct counters first, last;
				uint64_t start, end, sent, switches;

				if (bursts[p] == 0) {
					/* TSC cycles of a burst -> bursts of a window; the TSC runs at rte_get_tsc_hz. */
					const double cycles = run_for(programs[p], source, 200);
					const double window = rte_get_tsc_hz() * 1e-6 * options->window_us;

					bursts[p] = window > cycles ? (uint64_t)(window / cycles) : 1;
					before = calibrate();
				}
				source_rotate(source);
				run_bursts(programs[p], source, bursts[p] < 64 ? bursts[p] : 64);
				before = calibrate();
				switches = preemptions();
				first = counters_read();
				start = clock_tsc();
				sent = run_bursts(programs[p], source, bursts[p]);
				end = clock_tsc();
				last = counters_read();
				switches = preemptions() - switches;
				after = calibrate();
				result->packets += p == 0 ? bursts[p] * BURST_PACKETS : 0;
				result->sent += p == 0 ? sent : 0;
				w->program = p;
				w->cpu = cpu;
				w->preemptions = switches > UINT16_MAX ? UINT16_MAX : (uint16_t)switches;
				w->tsc_per_packet = (float)((double)(end - start) / (bursts[p] * BURST_PACKETS));
				w->instructions = (float)((double)(last.instructions - first.instructions) /
							  (bursts[p] * BURST_PACKETS));
				w->cache_misses = (float)((double)(last.cache_misses - first.cache_misses) /
							  (bursts[p] * BURST_PACKETS));
				w->calibration.chain_before = (float)before.chain_tsc;
				w->calibration.mix_before = (float)before.mix_tsc;
				w->calibration.chain_after = (float)after.chain_tsc;
				w->calibration.mix_after = (float)after.mix_tsc;
				result->n_windows++;
				before = after;
			}
		} while (now_us() < burst_end && result->n_windows < MAX_WINDOWS);
		if (fifo)
			realtime(0);
		least = recount(result, n_programs, options);
		if (least < options->windows && options->gated)
			usleep(options->gap_us);
	} while (least < options->windows && result->n_windows < MAX_WINDOWS && now_us() < deadline);
	result->timed_out = least < options->windows;
	return 0;
}
