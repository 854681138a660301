/* SPDX-License-Identifier: Apache-2.0 */
/* Ports from memory to memory, and the three modes in which the harness uses a pipeline. */
#include <string.h>

#include "load.h"
#include "options.h"
#include "swx.h"

/* Instructions between two looks at the clock of the harness: many for most of a stream, few for its last packets. */
#define INSTRUCTIONS 512
#define LAST_INSTRUCTIONS 32

/* Behind a port: packets that are through do not wait for more instructions than these. */
#define PORT_INSTRUCTIONS 256

static __attribute__((noinline)) bool
refill(struct swx *swx)
{
	if (swx->device != NULL) {
		if (!swx->look)
			return false;
		swx->n_in = device_receive(swx->device, swx->in);
		swx->next_in = 0;
		swx->taken += swx->n_in;
		swx->look = swx->n_in == BURST_PACKETS;
		return swx->n_in != 0;
	}
	if (swx->bursts == 0)
		return false;
	swx->bursts--;
	source_receive(swx->source, swx->in);
	swx->n_in = BURST_PACKETS;
	swx->next_in = 0;
	return true;
}

static int
receive(void *object, struct rte_swx_pkt *packet)
{
	struct swx *const swx = object;
	struct rte_mbuf *mbuf;

	if (unlikely(swx->next_in == swx->n_in) && !refill(swx))
		return 0;
	mbuf = swx->in[swx->next_in++];
	packet->handle = mbuf;
	packet->pkt = mbuf->buf_addr;
	packet->offset = mbuf->data_off;
	packet->length = mbuf->data_len;
	return 1;
}

static inline struct rte_mbuf *
take(const struct rte_swx_pkt *packet)
{
	struct rte_mbuf *const mbuf = packet->handle;

	mbuf->data_off = (uint16_t)packet->offset;
	mbuf->data_len = (uint16_t)packet->length;
	mbuf->pkt_len = packet->length;
	return mbuf;
}

static __attribute__((noinline)) void
flush_burst(struct swx *swx)
{
	if (swx->device != NULL) {
		device_send(swx->device, swx->out, (uint16_t)swx->n_out);
		swx->done += swx->n_out;
		swx->n_out = 0;
		return;
	}
	swx->n_out = 0;
	swx->done += BURST_PACKETS;
	if (swx->source != NULL)
		swx->sent += sink_transmit(swx->source, swx->out);
}

static void
transmit(void *object, struct rte_swx_pkt *packet)
{
	const struct swx_port_out *const port = object;
	struct swx *const swx = port->swx;
	/* What is dropped stays as it came: SWX takes off what the packet before it in the thread emitted. */
	struct rte_mbuf *const mbuf = port->port == PORT_DROP ? packet->handle : take(packet);

	mbuf->port = port->port;
	swx->out[swx->n_out] = mbuf;
	if (unlikely(++swx->n_out == BURST_PACKETS))
		flush_burst(swx);
}

/* A copy of the packet as it is now. Both kinds of clones of SWX are copies here, as the packet may go on changing. */
static void
clone_packet(void *object, struct rte_swx_pkt *packet, uint32_t length)
{
	const struct swx_port_out *const port = object;
	struct rte_mbuf *const mbuf = take(packet);
	struct rte_mbuf *copy;

	if (port->port == PORT_DROP)
		return;
	copy = rte_pktmbuf_copy(mbuf, mbuf->pool, 0, length);
	if (copy == NULL || copies.n == RTE_DIM(copies.packets))
		fail("run", "there is no room for another copy of a packet");
	copy->port = port->port;
	send_copy(copy, mbuf->hash.usr % BURST_PACKETS);
}

static void
fast_clone_packet(void *object, struct rte_swx_pkt *packet)
{
	clone_packet(object, packet, UINT32_MAX);
}

static void *
create(void *arguments)
{
	return arguments;
}

static void
release(void *object)
{
	(void)object;
}

static void
read_stats_in(void *object, struct rte_swx_port_in_stats *stats)
{
	(void)object;
	memset(stats, 0, sizeof(*stats));
}

static void
read_stats_out(void *object, struct rte_swx_port_out_stats *stats)
{
	(void)object;
	memset(stats, 0, sizeof(*stats));
}

struct rte_swx_port_in_ops swx_port_in_ops = {
	.create = create,
	.free = release,
	.pkt_rx = receive,
	.stats_read = read_stats_in,
};

struct rte_swx_port_out_ops swx_port_out_ops = {
	.create = create,
	.free = release,
	.pkt_tx = transmit,
	.pkt_fast_clone_tx = fast_clone_packet,
	.pkt_clone_tx = clone_packet,
	.flush = NULL,
	.stats_read = read_stats_out,
};

struct rte_swx_pipeline_mirroring_params
swx_mirroring(const struct swx_config *config)
{
	return (struct rte_swx_pipeline_mirroring_params){
		.n_slots = MAX_COPIES,
		.n_sessions = rte_align32pow2(RTE_MAX(config->n_mirrors, 1u)),
	};
}

/* Run the pipeline until a number of packets is through. */
static void
run_until(struct swx *swx, uint64_t done)
{
	while (swx->bursts != 0)
		rte_swx_pipeline_run(swx->pipeline, INSTRUCTIONS);
	while (swx->done + swx->n_out < done)
		rte_swx_pipeline_run(swx->pipeline, LAST_INSTRUCTIONS);
}

void
swx_run(struct swx *swx, struct rte_mbuf **packets, unsigned int n)
{
	const unsigned int step = swx->config->in_order ? 1 : n;
	unsigned int i;

	swx->source = NULL;
	swx->bursts = 0;
	swx->done = 0;
	swx->n_out = 0;
	for (i = 0; i < n; i++)
		packets[i]->hash.usr = i;
	for (i = 0; i < n; i += step) {
		memcpy(swx->in, packets + i, step * sizeof(packets[0]));
		swx->n_in = step;
		swx->next_in = 0;
		run_until(swx, i + step);
	}
	swx->n_out = 0;
}

uint64_t
swx_stream(struct swx *swx, struct source *source, uint64_t bursts)
{
	swx->source = source;
	swx->bursts = bursts;
	swx->n_in = 0;
	swx->next_in = 0;
	swx->done = 0;
	swx->sent = 0;
	run_until(swx, bursts * BURST_PACKETS);
	return swx->sent;
}

/* A batch that is not full is worked off. Behind a full one there may be more, which the pipeline takes as it goes on. */
void
swx_forward(struct swx *swx, struct device *device)
{
	uint64_t before;
	bool idle;

	if (swx->device == NULL) {
		swx->n_in = 0;
		swx->next_in = 0;
		swx->n_out = 0;
		swx->taken = 0;
		swx->done = 0;
	}
	swx->device = device;
	before = swx->taken;
	idle = swx->done == before;
	if (idle) {
		swx->look = true;
		if (!refill(swx)) {
			device->batch = 0;
			return;
		}
	}
	if (swx->look)
		rte_swx_pipeline_run(swx->pipeline, PORT_INSTRUCTIONS);
	while (!swx->look && swx->done + swx->n_out < swx->taken)
		rte_swx_pipeline_run(swx->pipeline, LAST_INSTRUCTIONS);
	if (swx->n_out != 0)
		flush_burst(swx);
	if (idle && swx->done == swx->taken && swx->taken - before <= MAX_BATCH)
		device->batch = (int)(swx->taken - before);
}

void
swx_take_hits(struct swx *swx, uint64_t *hits)
{
	struct rte_swx_table_stats stats = {.n_pkts_action = swx->action_packets};
	unsigned int t;

	for (t = 0; t < swx->config->n_tables; t++) {
		if (rte_swx_ctl_pipeline_table_stats_read(swx->pipeline, swx->config->tables[t].name, &stats) != 0)
			fail("run", "table %s has no statistics", swx->config->tables[t].name);
		hits[t] = stats.n_pkts_hit - swx->hits[t];
		swx->hits[t] = stats.n_pkts_hit;
	}
}

uint64_t
swx_state_sum(struct swx *swx, unsigned int state)
{
	const struct swx_array *const array = &swx->config->states[state];
	uint64_t cell, value, sum = 0;

	for (cell = 0; cell < array->size; cell++) {
		if (rte_swx_ctl_pipeline_regarray_read(swx->pipeline, array->name, (uint32_t)cell, &value) != 0)
			fail("run", "register array %s cannot be read", array->name);
		sum += (cell + 1) * value;
	}
	return sum;
}
