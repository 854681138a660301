/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of buffers by number: a cache of free ones in front of a queue that all of them go around in. */
#ifndef P4PERF_VIO_POOL_H
#define P4PERF_VIO_POOL_H

#include <stdlib.h>

#include "vio_queue.h"

struct pool {
	uint8_t *memory;
	uint32_t *cache; /* free buffers: a stack, or a queue */
	uint32_t n_cached, cache_first;
	uint32_t *waiting; /* free buffers behind the cache, in the order in which they came */
	uint32_t first, last;
};

#define WAITING_MASK (WAITING - 1)

/* Room that a pool needs for its lists. */
#define LIST_BYTES(cached) (((size_t)(cached) + WAITING) * sizeof(uint32_t))

/* Give n buffers back. What does not fit into the cache goes behind it. */
inlined void
pool_put(struct pool *restrict pool, const uint32_t *restrict buffers, uint32_t n, uint32_t cached, int order)
{
	const uint32_t room = cached - pool->n_cached, kept = n < room ? n : room;
	uint32_t i, at = pool->n_cached, last = pool->last;

	if (order == ORDER_FIFO)
		at += pool->cache_first;
	for (i = 0; i < kept; i++)
		pool->cache[order == ORDER_LIFO || at + i < cached ? at + i : at + i - cached] = buffers[i];
	for (i = kept; i < n; i++)
		pool->waiting[last++ & WAITING_MASK] = buffers[i];
	pool->n_cached += kept;
	pool->last = last;
}

/* Take n buffers: those of the cache first. There are enough: the sizes were checked. */
inlined void
pool_get(struct pool *restrict pool, uint32_t *restrict buffers, uint32_t n, uint32_t cached, int order)
{
	const uint32_t taken = n < pool->n_cached ? n : pool->n_cached;
	uint32_t i, at = order == ORDER_LIFO ? pool->n_cached - taken : pool->cache_first, first = pool->first;

	for (i = 0; i < taken; i++)
		buffers[i] = pool->cache[order == ORDER_LIFO || at + i < cached ? at + i : at + i - cached];
	for (i = taken; i < n; i++)
		buffers[i] = pool->waiting[first++ & WAITING_MASK];
	if (order == ORDER_FIFO)
		pool->cache_first = at + taken < cached ? at + taken : at + taken - cached;
	pool->n_cached -= taken;
	pool->first = first;
}

inlined uint8_t *
buffer_at(const uint8_t *pool, uint64_t buffer)
{
	return (uint8_t *)pool + buffer * STRIDE_BYTES;
}

/* All buffers are free, in the order of memory, or in one that the seed decides. False: no memory for the lists. */
static inline bool
pool_init(struct pool *pool, uint8_t *memory, uint32_t cached, int order, bool shuffled, uint64_t seed)
{
	uint32_t *numbers = malloc(BUFFERS * sizeof(*numbers)), i;

	*pool = (struct pool){.memory = memory, .cache = malloc((cached + 1) * sizeof(uint32_t))};
	pool->waiting = malloc(WAITING * sizeof(uint32_t));
	if (numbers == NULL || pool->cache == NULL || pool->waiting == NULL)
		return false;
	for (i = 0; i < BUFFERS; i++)
		numbers[i] = i;
	for (i = BUFFERS - 1; shuffled && i > 0; i--) {
		/* SplitMix64; the modulo is uneven by less than one in 2^46. */
		uint64_t z = seed += 0x9E3779B97F4A7C15;
		uint32_t other, kept = numbers[i];

		z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
		z = (z ^ z >> 27) * 0x94D049BB133111EB;
		other = (uint32_t)((z ^ z >> 31) % (i + 1));
		numbers[i] = numbers[other];
		numbers[other] = kept;
	}
	pool_put(pool, numbers, BUFFERS, cached, order);
	free(numbers);
	return true;
}

#endif
