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
#define MAX_POWER 300.0  /* a power of x stays below exp(300) */
#define CANCELLATION 1e8 /* terms of a sum are larger than the sum by this factor at the most */
#define LEAST 1e-300     /* parameters are zero, or not below this */
#define MOST 1e304       /* terms of a sum stay below this */

struct crew {
	struct task *task;
	atomic_llong next, finished;
	atomic_bool stop;
	atomic_int working;
	pthread_mutex_t lock;
	pthread_cond_t idle;
};

/* Whether a + b (ln x - ln x_first) can be written as a + b ln x: the two terms must not cancel. */
static bool
can_move(const double *p, double first, double last, bool inverse)
{
	double one = fabs(p[0]), other = fabs(p[0] + p[1] * (last - first));
	double terms = fabs(p[0]) + fabs(p[1]) * fmax(fabs(first), fabs(last));

	return terms <= CANCELLATION * (inverse ? fmin(one, other) : fmax(one, other));
}

bool
to_units(const struct growing *g, const struct template *t, const struct fitted *f, double *p, double *origin)
{
	const double *x = g->s->x, *log_x = g->s->log_x, scale = t->inverse ? 1.0 / g->s->scale : g->s->scale;
	const double inverse_span = g->last > g->first ? 1.0 / (x[g->last] - x[g->first]) : 1.0;
	double factor = 1.0, terms = 0.0;
	bool good = true;

	for (int k = 0; k < t->columns && t->parameters > 1; k++)
		terms += fabs(f->p[k]);
	*origin = t->kind == LOGARITHM || t->kind == POWER ? 0.0 : f->origin;
	switch (t->kind) {
	case POLYNOMIAL:
		for (int k = 0; k < t->columns; k++, factor *= inverse_span) {
			p[k] = f->p[k] * factor * scale;
			good = good && isfinite(1.0 / factor);
		}
		break;
	case LOGARITHM:
		good = can_move(f->p, log_x[g->first], log_x[g->last], t->inverse);
		p[0] = (f->p[0] - f->p[1] * log_x[g->first]) * scale;
		p[1] = f->p[1] * scale;
		break;
	case SHIFTED_LOGARITHM:
		p[0] = (f->p[0] + f->p[1] * log(inverse_span)) * scale;
		p[1] = f->p[1] * scale;
		p[2] = f->p[2] / inverse_span;
		good = p[2] > 0.0 && isfinite(x[g->last] - x[g->first] + p[2]);
		break;
	case EXPONENTIAL:
		p[0] = f->p[0] * scale;
		p[1] = f->p[1] * scale;
		p[2] = f->p[2] * inverse_span;
		break;
	case POWER:
		p[0] = f->p[0] * exp(-f->p[1] * log_x[g->first]) * scale;
		p[1] = f->p[1];
		good = fabs(p[1]) * fmax(fabs(log_x[g->first]), fabs(log_x[g->last])) < MAX_POWER;
		break;
	}
	for (int k = 0; k < t->parameters; k++)
		good = good && isfinite(p[k]) && (t->columns == 1 || f->p[k] == 0.0 || fabs(p[k]) >= LEAST);
	return good && terms <= MOST / scale;
}

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
