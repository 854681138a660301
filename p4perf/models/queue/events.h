/* SPDX-License-Identifier: Apache-2.0 */
#ifndef P4PERF_EVENTS_H
#define P4PERF_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct generator {
	uint64_t s[4];
};

struct sampler {
	double *keep;
	int64_t *other;
	int64_t count, first;
};

struct system {
	struct generator random;
	struct sampler arrival, service, moderation, overhead;
	const int64_t *trace; /* gaps instead of drawn interarrival times, or NULL */
	int64_t trace_length, at;
	int64_t limit; /* L, 0: none */
	int64_t ring, burst, empty_poll;
	int64_t batch_room;
	int64_t *histogram; /* delays, the last element takes all longer ones */
	int64_t histogram_length;
};

struct counts {
	int64_t offered, accepted, lost, batches, delay_max;
	double delay_sum, idle, time;
	bool failed;
};

void generator_seed(struct generator *g, uint64_t seed);
bool sampler_init(struct sampler *s, const double *probability, int64_t count, int64_t first);
void sampler_free(struct sampler *s);
void simulate_moderated(struct system *q, int64_t packets, int64_t warmup, struct counts *c);
void simulate_polled(struct system *q, int64_t packets, int64_t warmup, struct counts *c);

#endif
