/* SPDX-License-Identifier: Apache-2.0 */
/* Threads over the runs of a task. What one run yields depends on nothing else, so their order does not matter. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "engine.h"

#define MAX_THREADS 256
#define REPORT_NS 100000000L

struct crew {
	struct task *task;
	atomic_llong next, finished;
	atomic_bool stop;
	atomic_int working;
	pthread_mutex_t lock;
	pthread_cond_t idle;
};

static void
carry_out_run(const struct task *task, const struct run *run)
{
	const int count = task->templates_count;
	struct growing g;
	struct fitted f;

	growing_start(&g, &task->rows[run->row], &task->rates, (int)run->first);
	for (int64_t at = run->from; at < run->to; at++) {
		while (g.last < task->ends[at])
			growing_add(&g, &task->rates);
		if (task->choice != NULL) {
			task->choice[at] = choose(&g, task->templates, count, &task->options, &task->error[at]);
			continue;
		}
		for (int k = 0; k < count; k++) {
			int64_t place = at * count + k;
			fit_template(&g, &task->templates[k], &task->options, &f);
			bool good = to_units(&g, &task->templates[k], &f, task->parameters + place * MAX_COLUMNS,
					     &task->origins[place]);
			task->error[place] = good ? in_units(&g, &task->options, f.error) : INFINITY;
		}
	}
}

static void *
work(void *argument)
{
	struct crew *crew = argument;
	long long at;

	while (!atomic_load(&crew->stop) && (at = atomic_fetch_add(&crew->next, 1)) < crew->task->runs_count) {
		carry_out_run(crew->task, &crew->task->runs[at]);
		atomic_fetch_add(&crew->finished, crew->task->runs[at].to - crew->task->runs[at].from);
	}
	pthread_mutex_lock(&crew->lock);
	if (atomic_fetch_sub(&crew->working, 1) == 1)
		pthread_cond_signal(&crew->idle);
	pthread_mutex_unlock(&crew->lock);
	return NULL;
}

enum outcome
carry_out(struct task *task, int threads, bool (*progress)(void *context, double share), void *context)
{
	struct crew crew = { .task = task };
	pthread_t members[MAX_THREADS];
	pthread_condattr_t clock;
	long long total = 0;
	int started = 0;

	for (int64_t at = 0; at < task->runs_count; at++)
		total += task->runs[at].to - task->runs[at].from;
	pthread_mutex_init(&crew.lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&crew.idle, &clock);
	threads = threads > MAX_THREADS ? MAX_THREADS : threads < 1 ? 1 : threads;
	atomic_store(&crew.working, threads);
	while (started < threads && pthread_create(&members[started], NULL, work, &crew) == 0)
		started++;
	atomic_fetch_sub(&crew.working, threads - started);

	pthread_mutex_lock(&crew.lock);
	while (atomic_load(&crew.working) > 0) {
		struct timespec until;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += REPORT_NS;
		if (until.tv_nsec >= 1000000000L) {
			until.tv_nsec -= 1000000000L;
			until.tv_sec++;
		}
		if (pthread_cond_timedwait(&crew.idle, &crew.lock, &until) != ETIMEDOUT)
			continue;
		pthread_mutex_unlock(&crew.lock);
		/* Who gave up is not asked again while threads finish what they are at. */
		if (!atomic_load(&crew.stop) &&
		    !progress(context, total > 0 ? (double)atomic_load(&crew.finished) / (double)total : 1.0))
			atomic_store(&crew.stop, true);
		pthread_mutex_lock(&crew.lock);
	}
	pthread_mutex_unlock(&crew.lock);
	for (int k = 0; k < started; k++)
		pthread_join(members[k], NULL);
	pthread_cond_destroy(&crew.idle);
	pthread_condattr_destroy(&clock);
	pthread_mutex_destroy(&crew.lock);
	return started == 0 ? NO_THREADS : atomic_load(&crew.stop) ? GIVEN_UP : DONE;
}
