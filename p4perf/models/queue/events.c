/* SPDX-License-Identifier: Apache-2.0 */
/* Discrete-event simulation of one processor: batches by interrupt moderation, or polls of a ring. It follows packets
 * and clocks, and shares nothing with the analysis. Times are whole steps. */
#include "events.h"

#include <stdlib.h>
#include <string.h>

/* xoshiro256** (Blackman and Vigna 2021), seeded by splitmix64. */
static uint64_t
next_random(struct generator *g)
{
	uint64_t *s = g->s, result = s[1] * 5, t = s[1] << 17;

	result = ((result << 7) | (result >> 57)) * 9;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = (s[3] << 45) | (s[3] >> 19);
	return result;
}

void
generator_seed(struct generator *g, uint64_t seed)
{
	for (int i = 0; i < 4; i++) {
		uint64_t z = (seed += 0x9E3779B97F4A7C15u);
		z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
		z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
		g->s[i] = z ^ (z >> 31);
	}
}

static double
uniform(struct generator *g)
{
	return (double)(next_random(g) >> 11) * 0x1.0p-53;
}

/* Alias tables (Walker 1977, in the form of Vose 1991). */
bool
sampler_init(struct sampler *s, const double *probability, int64_t count, int64_t first)
{
	int64_t *queue = malloc((size_t)count * sizeof(*queue));

	*s = (struct sampler){ .count = count, .first = first };
	s->keep = malloc((size_t)count * sizeof(*s->keep));
	s->other = malloc((size_t)count * sizeof(*s->other));
	if (queue == NULL || s->keep == NULL || s->other == NULL) {
		free(queue);
		sampler_free(s);
		return false;
	}
	int64_t small = 0, large = count;
	for (int64_t i = 0; i < count; i++) {
		s->keep[i] = probability[i] * (double)count;
		s->other[i] = i;
		if (s->keep[i] < 1.0)
			queue[small++] = i;
		else
			queue[--large] = i;
	}
	while (small > 0 && large < count) {
		int64_t low = queue[--small], high = queue[large];
		s->other[low] = high;
		s->keep[high] -= 1.0 - s->keep[low];
		if (s->keep[high] < 1.0) {
			large++;
			queue[small++] = high;
		}
	}
	while (small > 0)
		s->keep[queue[--small]] = 1.0;
	while (large < count)
		s->keep[queue[large++]] = 1.0;
	free(queue);
	return true;
}

void
sampler_free(struct sampler *s)
{
	free(s->keep);
	free(s->other);
	s->keep = NULL;
	s->other = NULL;
}

static int64_t
draw(const struct sampler *s, struct generator *g)
{
	if (s->count == 1)
		return s->first;
	double at = uniform(g) * (double)s->count;
	int64_t i = (int64_t)at;
	return s->first + (at - (double)i < s->keep[i] ? i : s->other[i]);
}

/* The time from one packet to the next: drawn, or the gaps of a trace again and again. */
static int64_t
gap(struct system *q)
{
	if (q->trace == NULL)
		return draw(&q->arrival, &q->random);
	int64_t value = q->trace[q->at];
	if (++q->at == q->trace_length)
		q->at = 0;
	return value;
}

static void
count_delay(struct counts *c, const struct system *q, int64_t delay)
{
	c->delay_sum += (double)delay;
	c->accepted++;
	if (delay > c->delay_max)
		c->delay_max = delay;
	q->histogram[delay < q->histogram_length ? delay : q->histogram_length - 1]++;
}

/* The card opens an interval of tau with the first packet; at its end the batch goes to the processor, which takes the
 * overhead first. A packet whose work in front is `limit` or more is refused. */
void
simulate_moderated(struct system *q, int64_t packets, int64_t warmup, struct counts *c)
{
	int64_t clock = 0, arrival = 0, seen = 0, free_at = 0, size = 0, begun = 0;
	int64_t *batch = malloc((size_t)q->batch_room * sizeof(*batch));

	*c = (struct counts){ .failed = batch == NULL };
	while (!c->failed && seen < packets) {
		bool counted = seen >= warmup;
		int64_t opened = arrival, closes = opened + draw(&q->moderation, &q->random);
		/* All packets before the interval closes; the next one opens the next interval. */
		size = 0;
		do {
			if (size == q->batch_room) {
				int64_t *more = realloc(batch, 2 * (size_t)size * sizeof(*batch));
				if (more == NULL) {
					c->failed = true;
					break;
				}
				batch = more;
				q->batch_room *= 2;
			}
			batch[size++] = arrival;
			arrival += gap(q);
		} while (arrival < closes);
		clock = closes;
		int64_t idle = clock > free_at ? clock - free_at : 0, over = draw(&q->overhead, &q->random);
		if (free_at < clock)
			free_at = clock;
		free_at += over;
		for (int64_t i = 0; i < size; i++) {
			if (q->limit > 0 && free_at - clock >= q->limit) {
				c->lost += counted;
				continue;
			}
			free_at += draw(&q->service, &q->random);
			if (counted)
				count_delay(c, q, free_at - batch[i]);
		}
		if (counted) {
			c->offered += size;
			if (c->batches++ == 0)
				begun = closes;
			else
				c->idle += (double)idle;
			c->time = (double)(closes - begun);
		}
		seen += size;
	}
	free(batch);
}

/* The processor looks at the ring, takes up to `burst` of the packets that came before, works on them and sends them
 * together; packets that come meanwhile wait in the ring while it has room. Behind a look that found nothing a batch takes
 * what else is the time of a moderation interval more. */
void
simulate_polled(struct system *q, int64_t packets, int64_t warmup, struct counts *c)
{
	int64_t clock = 0, arrival = gap(q), seen = 0, head = 0, waiting = 0, begun = 0, room = q->ring;
	int64_t *ring = malloc((size_t)room * sizeof(*ring));
	bool counting = false, looked = false;

	*c = (struct counts){ .failed = ring == NULL };
	while (!c->failed && seen < packets) {
		for (; arrival < clock; arrival += gap(q)) {
			seen++;
			if (counting)
				c->offered++;
			if (waiting == room) {
				c->lost += counting;
				continue;
			}
			ring[(head + waiting++) % room] = arrival;
		}
		if (!counting && seen >= warmup) {
			counting = true;
			begun = clock;
		}
		int64_t take = waiting < q->burst ? waiting : q->burst;
		if (take == 0) {
			/* Polls that find nothing, up to the first one that finds the next packet. */
			int64_t idle = ((arrival - clock) / q->empty_poll + 1) * q->empty_poll;
			clock += idle;
			looked = true;
			c->idle += counting ? (double)idle : 0.0;
			continue;
		}
		clock += draw(&q->overhead, &q->random) + (looked ? draw(&q->moderation, &q->random) : 0);
		looked = false;
		for (int64_t i = 0; i < take; i++)
			clock += draw(&q->service, &q->random);
		for (int64_t i = 0; i < take; i++) {
			if (counting)
				count_delay(c, q, clock - ring[head]);
			head = (head + 1) % room;
		}
		waiting -= take;
		c->batches += counting;
	}
	c->time = (double)(clock - begun);
	free(ring);
}
