/* SPDX-License-Identifier: Apache-2.0 */
/* This thread: the time, its scheduling, its CPU. What all harnesses share that measure in windows. */
#ifndef P4PERF_THREAD_H
#define P4PERF_THREAD_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

static inline uint64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* Involuntary context switches. */
static inline uint64_t
preemptions(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_nivcsw;
}

/* Switch to SCHED_FIFO, or back with priority 0. False: not granted. */
static inline bool
realtime(int priority)
{
	struct sched_param parameters = {.sched_priority = priority};

	return sched_setscheduler(0, priority > 0 ? SCHED_FIFO : SCHED_OTHER, &parameters) == 0 && priority > 0;
}

/* False: there is no such CPU for this thread. */
static inline bool
pin(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one) == 0;
}

/* Move to the next CPU that it may use. False: there is no other. */
static inline bool
hop(const cpu_set_t *allowed, int *cpu)
{
	int next = *cpu;

	do
		next = (next + 1) % CPU_SETSIZE;
	while (!CPU_ISSET(next, allowed));
	if (next == *cpu || !pin(next))
		return false;
	*cpu = next;
	return true;
}

#endif
