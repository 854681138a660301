/* SPDX-License-Identifier: Apache-2.0 */
/* Packets from memory: mbufs of a pool whose frames are filled once; only the key changes from packet to packet. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_memcpy.h>

#include "harness.h"

struct copies copies;

/* Counter-based generator (a multiply-fold of a Weyl sequence): consecutive draws do not wait for each other. */
static inline uint64_t
draw64(uint64_t *state)
{
	__uint128_t product;

	*state += 0x9E3779B97F4A7C15u;
	product = (__uint128_t)*state * (*state ^ 0xE7037ED1A0B428DBu);
	return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

static inline uint32_t
scale32(uint32_t draw, uint32_t range)
{
	return (uint32_t)(((uint64_t)draw * range) >> 32);
}

/*
 * Zipf law over ranks 1..keys, approximated by QUANTILES bins of equal probability, uniform inside a bin. The inverse of
 * the continuous distribution function of x^-s gives the bin edges.
 */
static void
fill_quantiles(struct source *source)
{
	const double s = source->traffic.zipf_exponent;
	const double n = (double)source->traffic.keys;
	uint32_t edge = 0, next;
	unsigned int i;

	for (i = 0; i < QUANTILES; i++) {
		const double u = (i + 1.0) / QUANTILES;
		double x;

		if (fabs(s - 1.0) < 1e-9)
			x = exp(u * log(n + 1.0));
		else
			x = pow(u * (pow(n + 1.0, 1.0 - s) - 1.0) + 1.0, 1.0 / (1.0 - s));
		next = x - 1.0 >= n ? (uint32_t)source->traffic.keys : (uint32_t)(x - 1.0);
		if (i == QUANTILES - 1)
			next = (uint32_t)source->traffic.keys;
		source->quantile_low[i] = edge < source->traffic.keys ? edge : (uint32_t)source->traffic.keys - 1;
		source->quantile_width[i] = next > source->quantile_low[i] ? next - source->quantile_low[i] : 1;
		edge = next;
	}
}

static void
fill_mbuf(struct rte_mempool *pool, void *context, void *object, unsigned int index)
{
	const struct source *source = context;
	struct rte_mbuf *mbuf = object;

	(void)pool;
	(void)index;
	rte_pktmbuf_reset(mbuf);
	mbuf->data_off = PACKET_HEADROOM;
	memcpy(rte_pktmbuf_mtod(mbuf, void *), source->traffic.frame, source->traffic.frame_length);
	mbuf->data_len = source->traffic.frame_length;
	mbuf->pkt_len = source->traffic.frame_length;
}

void
source_fill(struct source *source)
{
	rte_mempool_obj_iter(source->pool, fill_mbuf, source);
}

int
source_init(struct source *source, struct rte_mempool *pool, const struct traffic *traffic)
{
	const unsigned int key_end = traffic->key_offset + traffic->key_length;
	const bool wide = traffic->key_length > 8;
	uint64_t last;

	memset(source, 0, sizeof(*source));
	source->pool = pool;
	source->traffic = *traffic;
	source->state = traffic->seed * 0xD1342543DE82EF95u + 1;
	if (traffic->frame_length > rte_pktmbuf_data_room_size(pool) - PACKET_HEADROOM)
		return -EMSGSIZE;
	if (traffic->key_length != 0) {
		if (key_end > traffic->frame_length || key_end < (wide ? 16 : 8) || traffic->keys == 0 ||
		    traffic->keys > UINT32_MAX / 2)
			return -EINVAL;
		/* One store of 8 or 16 bytes that ends with the key: no later load straddles a younger store. */
		source->window_offset = key_end - (wide ? 16 : 8);
		memcpy(&source->window_prefix, traffic->frame + source->window_offset, 8);
		memcpy(&last, traffic->frame + key_end - 8, 8);
		last = rte_be_to_cpu_64(last);
		source->window_keep =
			traffic->key_length >= 8 ? 0 : last & ~((UINT64_C(1) << (8 * traffic->key_length)) - 1);
		if (traffic->hit_ratio < 1.0) {
			const double threshold = traffic->hit_ratio * 4294967296.0;

			source->miss_threshold = threshold < 1.0 ? 1 : (uint32_t)threshold;
		}
		if (traffic->distribution == DRAW_ZIPF)
			fill_quantiles(source);
	}
	source_fill(source);
	return 0;
}

/* Undo what the program did to the packets when these buffers were used last. */
static void
restore(struct source *source, struct rte_mbuf **packets)
{
	const uint16_t length = source->traffic.restore;
	unsigned int i;

	for (i = 0; i < BURST_PACKETS; i++) {
		packets[i]->data_off = PACKET_HEADROOM;
		rte_memcpy(rte_pktmbuf_mtod(packets[i], void *), source->traffic.frame, length);
	}
}

static inline __attribute__((always_inline)) void
receive(struct source *source, struct rte_mbuf **packets, int distribution, bool misses, bool wide)
{
	const uint32_t keys = (uint32_t)source->traffic.keys;
	const uint64_t keep = source->window_keep, prefix = source->window_prefix;
	const uint32_t offset = source->window_offset;
	const uint16_t length = source->traffic.frame_length;
	uint64_t state = source->state;
	uint32_t next = (uint32_t)source->next;
	unsigned int i;

	if (unlikely(rte_mempool_get_bulk(source->pool, (void **)packets, BURST_PACKETS) != 0))
		rte_panic("the packet pool ran empty: a packet was lost\n");
	if (unlikely(source->traffic.restore != 0))
		restore(source, packets);
	for (i = 0; i < BURST_PACKETS; i++) {
		uint8_t *const data = rte_pktmbuf_mtod(packets[i], uint8_t *);
		const uint64_t draw = draw64(&state);
		uint32_t key;
		uint64_t last;

		switch (distribution) {
		case DRAW_SEQUENTIAL:
			key = next;
			next = next + 1 == keys ? 0 : next + 1;
			break;
		case DRAW_SINGLE:
			key = 0;
			break;
		case DRAW_ZIPF:
			key = source->quantile_low[(draw >> 32) & (QUANTILES - 1)] +
			      scale32((uint32_t)draw, source->quantile_width[(draw >> 32) & (QUANTILES - 1)]);
			break;
		default:
			key = scale32((uint32_t)draw, keys);
			break;
		}
		if (misses)
			key += keys & -(uint32_t)((uint32_t)(draw >> 32) >= source->miss_threshold); /* no branch */
		last = rte_cpu_to_be_64(key | keep);
		if (wide) {
			const uint64_t both[2] = {prefix, last};

			memcpy(data + offset, both, 16);
		} else {
			memcpy(data + offset, &last, 8);
		}
		packets[i]->data_len = length;
		packets[i]->pkt_len = length;
	}
	source->state = state;
	source->next = next;
}

static void
receive_constant(struct source *source, struct rte_mbuf **packets)
{
	const uint16_t length = source->traffic.frame_length;
	unsigned int i;

	if (unlikely(rte_mempool_get_bulk(source->pool, (void **)packets, BURST_PACKETS) != 0))
		rte_panic("the packet pool ran empty: a packet was lost\n");
	if (unlikely(source->traffic.restore != 0))
		restore(source, packets);
	for (i = 0; i < BURST_PACKETS; i++) {
		packets[i]->data_len = length;
		packets[i]->pkt_len = length;
	}
}

void
source_receive(struct source *source, struct rte_mbuf **packets)
{
	const bool misses = source->miss_threshold != 0;
	const bool wide = source->traffic.key_length > 8;

	if (source->traffic.key_length == 0)
		receive_constant(source, packets);
	else if (source->traffic.distribution == DRAW_UNIFORM && !misses && wide)
		receive(source, packets, DRAW_UNIFORM, false, true);
	else if (source->traffic.distribution == DRAW_UNIFORM && !misses)
		receive(source, packets, DRAW_UNIFORM, false, false);
	else if (source->traffic.distribution == DRAW_UNIFORM)
		receive(source, packets, DRAW_UNIFORM, true, wide);
	else if (source->traffic.distribution == DRAW_SEQUENTIAL)
		receive(source, packets, DRAW_SEQUENTIAL, misses, wide);
	else if (source->traffic.distribution == DRAW_SINGLE)
		receive(source, packets, DRAW_SINGLE, misses, wide);
	else
		receive(source, packets, DRAW_ZIPF, misses, wide);
}

void
source_rotate(struct source *source)
{
	struct rte_mempool_cache *cache = rte_mempool_default_cache(source->pool, rte_lcore_id());

	if (cache != NULL)
		rte_mempool_cache_flush(cache, source->pool);
}

unsigned int
sink_transmit(struct source *source, struct rte_mbuf **packets)
{
	unsigned int i, sent = 0;

	for (i = 0; i < BURST_PACKETS; i++)
		sent += packets[i]->port != PORT_DROP;
	if (unlikely(copies.n != 0)) {
		sent += copies.n;
		rte_pktmbuf_free_bulk(copies.packets, copies.n);
		copies.n = 0;
	}
	rte_mempool_put_bulk(source->pool, (void *const *)packets, BURST_PACKETS);
	return sent;
}
