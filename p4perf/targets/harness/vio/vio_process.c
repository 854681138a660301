/* SPDX-License-Identifier: Apache-2.0 */
/* What both processes do: commands and their answers, conditions, hardware counters, turns. */
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "thread.h"
#include "vio.h"
#include "words.h"

#define IDLE_SPINS 200000
#define SPIN_S 0.2
#define PATIENCE_S 10.0

static int leader = -1;

static int
open_event(uint32_t type, uint64_t config, int group)
{
	struct perf_event_attr attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.type = type;
	attributes.size = sizeof(attributes);
	attributes.config = config;
	attributes.read_format = PERF_FORMAT_GROUP;
	attributes.disabled = group == -1;
	attributes.exclude_kernel = 1;
	attributes.exclude_hv = 1;
	return (int)syscall(SYS_perf_event_open, &attributes, 0, -1, group, 0);
}

bool
counters_open(void)
{
	const uint64_t l1_read_misses = PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8 |
					PERF_COUNT_HW_CACHE_RESULT_MISS << 16;

	leader = open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, -1);
	if (leader == -1)
		return false;
	if (open_event(PERF_TYPE_HW_CACHE, l1_read_misses, leader) == -1 ||
	    open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, leader) == -1) {
		close(leader);
		leader = -1;
		return false;
	}
	ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	return true;
}

struct counters
counters_read(void)
{
	uint64_t values[4] = {0};
	struct counters result = {0};

	if (leader != -1 && read(leader, values, sizeof(values)) == sizeof(values)) {
		result.instructions = values[1];
		result.l1_misses = values[2];
		result.llc_misses = values[3];
	}
	return result;
}

struct condition
condition_now(void)
{
	struct condition result;

	result.counters = counters_read();
	result.calibration = calibrate();
	result.preemptions = preemptions();
	return result;
}

void
function_main(struct function *function, struct control *control, const struct turns *turns)
{
	uint32_t last = 0, argument, spins = 0;
	char turn;

	control->counted = counters_open();
	if (turns->from != -1 && read(turns->from, &turn, 1) != 1)
		return;
	for (;;) {
		const uint32_t number = atomic_load_explicit(&control->number, memory_order_acquire);

		if (number == last) {
			/* The next command comes at once, or not for long. */
			if (!turns_pass(turns) && ++spins > IDLE_SPINS)
				usleep(20);
			continue;
		}
		last = number;
		spins = 0;
		switch (control->command) {
		case COMMAND_RUN:
			atomic_store_explicit(&control->done, number, memory_order_release);
			function_stream(function, number);
			continue;
		case COMMAND_CONDITION:
			function_report(function);
			control->condition = condition_now();
			break;
		case COMMAND_REALTIME:
			control->granted = realtime((int)control->argument);
			break;
		case COMMAND_REST:
			argument = control->argument;
			atomic_store_explicit(&control->done, number, memory_order_release);
			usleep(argument);
			continue;
		case COMMAND_STOP:
			atomic_store_explicit(&control->done, number, memory_order_release);
			return;
		}
		atomic_store_explicit(&control->done, number, memory_order_release);
	}
}

static double
now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

uint32_t
command_begin(struct control *control, enum command what, uint32_t argument)
{
	const uint32_t number = atomic_load_explicit(&control->number, memory_order_relaxed) + 1;

	control->command = what;
	control->argument = argument;
	atomic_store_explicit(&control->number, number, memory_order_release);
	return number;
}

void
command_wait(struct control *control, const struct turns *turns, uint32_t number)
{
	double begin = 0;
	unsigned int spins = 0;

	/* The function has a core of its own and is hardly ever slow to answer. If it is, this one is not kept from others. */
	while (atomic_load_explicit(&control->done, memory_order_acquire) != number) {
		if (turns_pass(turns) || ++spins % 1024 != 0)
			continue;
		if (begin == 0)
			begin = now_s();
		if (now_s() - begin > SPIN_S)
			usleep(1000);
		if (now_s() - begin > PATIENCE_S)
			fail("function", "the network function does not answer any more");
	}
}

void
command(struct control *control, const struct turns *turns, enum command what, uint32_t argument)
{
	command_wait(control, turns, command_begin(control, what, argument));
}
