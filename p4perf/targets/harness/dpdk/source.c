/* SPDX-License-Identifier: Apache-2.0 */
/* Packets from memory: mbufs of a pool whose frames are filled once; only what varies is written for each packet. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_memcpy.h>

#include "harness.h"
#include "quantiles.h"

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

/* Bytes of the frame; those before its start are zero. */
static void
read_frame(const struct traffic *traffic, int32_t offset, uint8_t *bytes)
{
	int32_t i;

	for (i = 0; i < 8; i++)
		bytes[i] = offset + i >= 0 && offset + i < traffic->frame_length ? traffic->frame[offset + i] : 0;
}

static int
draw_init(struct draw *draw, const struct varying *varying, const struct traffic *traffic)
{
	const int32_t end = varying->offset + varying->length;
	uint64_t last;

	if (end > traffic->frame_length || varying->length == 0 || varying->keys == 0 || varying->keys > UINT32_MAX / 2)
		return -EINVAL;
	draw->keys = (uint32_t)varying->keys;
	draw->wide = varying->length > 8;
	/* One store of 8 or 16 bytes that ends with the key: no later load straddles a younger store. */
	draw->window_offset = end - (draw->wide ? 16 : 8);
	read_frame(traffic, draw->window_offset, (uint8_t *)&draw->window_prefix);
	read_frame(traffic, end - 8, (uint8_t *)&last);
	last = rte_be_to_cpu_64(last);
	draw->window_keep = varying->length >= 8 ? 0 : last & ~((UINT64_C(1) << (8 * varying->length)) - 1);
	if (traffic->distribution == DRAW_ZIPF)
		fill_quantiles(draw->keys, traffic->zipf_exponent, QUANTILES, draw->quantile_low,
			       draw->quantile_width);
	return 0;
}

static int
by_falling_offset(const void *a, const void *b)
{
	return (int)((const struct varying *)b)->offset - (int)((const struct varying *)a)->offset;
}

int
source_init(struct source *source, struct rte_mempool *pool, const struct traffic *traffic)
{
	unsigned int f;
	int result;

	memset(source, 0, sizeof(*source));
	source->pool = pool;
	source->traffic = *traffic;
	source->state = traffic->seed * 0xD1342543DE82EF95u + 1;
	if (traffic->frame_length > rte_pktmbuf_data_room_size(pool) - PACKET_HEADROOM)
		return -EMSGSIZE;
	qsort(source->traffic.varying, traffic->n_varying, sizeof(struct varying), by_falling_offset);
	for (f = 0; f < traffic->n_varying; f++) {
		result = draw_init(&source->draws[f], &source->traffic.varying[f], traffic);
		if (result != 0)
			return result;
	}
	if (traffic->hit_ratio < 1.0) {
		const double threshold = traffic->hit_ratio * 4294967296.0;

		source->miss_threshold = threshold < 1.0 ? 1 : (uint32_t)threshold;
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

/*
 * The next frames, as they came before any program wrote to them: drawn, unless they are to be sent in turn. A processor
 * learns the branches of a few hundred packets in turn, which no traffic repeats.
 */
static void
copy_frames(struct source *source, struct rte_mbuf **packets)
{
	const uint16_t length = source->traffic.frame_length;
	const uint32_t n = source->traffic.n_frames;
	const bool in_turn = source->traffic.distribution == DRAW_SEQUENTIAL;
	unsigned int i;

	for (i = 0; i < BURST_PACKETS; i++) {
		const uint32_t drawn = scale32((uint32_t)draw64(&source->state), n);
		const uint32_t frame = in_turn ? source->next_frame : drawn;

		packets[i]->data_off = PACKET_HEADROOM;
		rte_memcpy(rte_pktmbuf_mtod(packets[i], void *), source->traffic.frames + (size_t)frame * length, length);
		source->next_frame = source->next_frame + 1 == n ? 0 : source->next_frame + 1;
	}
}

/* Draw one field of the packets of a burst and write it; the first time, the lengths of the packets too. */
static inline __attribute__((always_inline)) void
vary(struct source *source, struct draw *draw, struct rte_mbuf **packets, bool first, int distribution, bool misses,
     bool wide)
{
	const uint16_t length = source->traffic.frame_length;
	const uint32_t keys = draw->keys, threshold = source->miss_threshold;
	const uint64_t keep = draw->window_keep, prefix = draw->window_prefix;
	const int32_t offset = draw->window_offset;
	uint64_t state = source->state;
	uint32_t next = draw->next;
	unsigned int i;

	for (i = 0; i < BURST_PACKETS; i++) {
		uint8_t *const at = rte_pktmbuf_mtod(packets[i], uint8_t *) + offset;
		const uint64_t drawn = draw64(&state);
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
			key = draw->quantile_low[(drawn >> 32) & (QUANTILES - 1)] +
			      scale32((uint32_t)drawn, draw->quantile_width[(drawn >> 32) & (QUANTILES - 1)]);
			break;
		default:
			key = scale32((uint32_t)drawn, keys);
			break;
		}
		if (misses)
			key += keys & -(uint32_t)((uint32_t)(drawn >> 32) >= threshold); /* no branch */
		last = rte_cpu_to_be_64(key | keep);
		if (wide) {
			const uint64_t both[2] = {prefix, last};

			memcpy(at, both, 16);
		} else {
			memcpy(at, &last, 8);
		}
		if (first) {
			packets[i]->data_len = length;
			packets[i]->pkt_len = length;
		}
	}
	source->state = state;
	draw->next = next;
}

static inline __attribute__((always_inline)) void
vary_any(struct source *source, struct draw *draw, struct rte_mbuf **packets, bool first)
{
	const bool misses = source->miss_threshold != 0;

	if (source->traffic.distribution == DRAW_UNIFORM && !misses && draw->wide)
		vary(source, draw, packets, first, DRAW_UNIFORM, false, true);
	else if (source->traffic.distribution == DRAW_UNIFORM && !misses)
		vary(source, draw, packets, first, DRAW_UNIFORM, false, false);
	else if (source->traffic.distribution == DRAW_UNIFORM)
		vary(source, draw, packets, first, DRAW_UNIFORM, true, draw->wide);
	else if (source->traffic.distribution == DRAW_SEQUENTIAL)
		vary(source, draw, packets, first, DRAW_SEQUENTIAL, misses, draw->wide);
	else if (source->traffic.distribution == DRAW_SINGLE)
		vary(source, draw, packets, first, DRAW_SINGLE, misses, draw->wide);
	else
		vary(source, draw, packets, first, DRAW_ZIPF, misses, draw->wide);
}

void
source_receive(struct source *source, struct rte_mbuf **packets)
{
	const uint16_t length = source->traffic.frame_length;
	unsigned int f, i;

	if (unlikely(rte_mempool_get_bulk(source->pool, (void **)packets, BURST_PACKETS) != 0))
		rte_panic("the packet pool ran empty: a packet was lost\n");
	if (unlikely(source->traffic.restore != 0))
		restore(source, packets);
	if (unlikely(source->traffic.n_frames != 0))
		copy_frames(source, packets);
	if (source->traffic.n_varying != 0) {
		vary_any(source, &source->draws[0], packets, true);
		for (f = 1; f < source->traffic.n_varying; f++)
			vary_any(source, &source->draws[f], packets, false);
		return;
	}
	for (i = 0; i < BURST_PACKETS; i++) {
		packets[i]->data_len = length;
		packets[i]->pkt_len = length;
	}
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
