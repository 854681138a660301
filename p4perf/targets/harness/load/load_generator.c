/* SPDX-License-Identifier: Apache-2.0 */
/* Sends by a schedule, receives, and accounts for every packet. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "load.h"
#include "load_histogram.h"
#include "load_schedule.h"
#include "options.h"
#include "thread.h"

/* Packets that a segment can account for. */
#define MAX_SEGMENT_PACKETS (UINT64_C(1) << 28)

/* After the last packet the device gets so long for the next one to come back. */
#define QUIET_MS 5
#define DRAIN_MS 500

/* A segment ends when it has taken this multiple of its duration, whether all was sent or not. */
#define OVERTIME 1.5

struct receiver {
	uint64_t expected; /* one more than the highest number so far */
	bool latency;
	uint64_t ns_per_cycle; /* fixed point, 32 bits of fraction */
};

int
generator_init(struct generator *g)
{
	g->seen_bits = MAX_SEGMENT_PACKETS;
	g->seen = calloc(g->seen_bits / 64, sizeof(*g->seen)); /* pages are taken when they are used */
	histogram_reset(&g->histogram);
	return g->seen == NULL ? -ENOMEM : 0;
}

/* Packets in hand that will be sent next. */
struct batch {
	struct rte_mbuf *packets[BURST_PACKETS];
	unsigned int at; /* BURST_PACKETS: none is left */
	uint32_t frame, size;
};

static inline void
prepare(struct generator *g, struct batch *b)
{
	unsigned int i;

	source_receive(g->source, b->packets);
	b->at = 0;
	for (i = 0; g->frames != NULL && i < BURST_PACKETS; i++) {
		const uint16_t length = g->frames->lengths[b->frame];

		b->packets[i]->data_off = PACKET_HEADROOM;
		memcpy(rte_pktmbuf_mtod(b->packets[i], void *), g->frames->data[b->frame], length);
		b->packets[i]->data_len = length;
		b->packets[i]->pkt_len = length;
		b->frame = b->frame + 1 == g->frames->n ? 0 : b->frame + 1;
	}
	for (i = 0; g->sizes != NULL && i < BURST_PACKETS; i++) {
		b->packets[i]->data_len = g->sizes[b->size];
		b->packets[i]->pkt_len = g->sizes[b->size];
		b->size = b->size + 1 == g->n_sizes ? 0 : b->size + 1;
	}
}

static inline void
stamp(struct rte_mbuf *packet, uint64_t now, uint32_t number, uint32_t tag)
{
	const struct stamp s = {now, number, tag};

	memcpy(rte_pktmbuf_mtod_offset(packet, uint8_t *, packet->data_len - sizeof(s)), &s, sizeof(s));
}

static inline void
account(struct generator *g, struct segment *s, struct receiver *r, const struct rte_mbuf *packet, uint64_t now)
{
	struct stamp got;
	uint64_t *word, bit;

	if (unlikely(g->unstamped)) {
		s->received++;
		return;
	}
	if (unlikely(packet->data_len < sizeof(got))) {
		s->foreign++;
		return;
	}
	memcpy(&got, rte_pktmbuf_mtod_offset(packet, const uint8_t *, packet->data_len - sizeof(got)), sizeof(got));
	if (unlikely(got.tag != g->tag || got.number >= s->sent)) {
		s->foreign++;
		return;
	}
	word = &g->seen[got.number / 64];
	bit = UINT64_C(1) << (got.number % 64);
	if (unlikely((*word & bit) != 0)) {
		s->duplicated++;
		return;
	}
	*word |= bit;
	s->received++;
	if (unlikely(got.number < r->expected))
		s->reordered++; /* RFC 4737: a packet with a lower number came after one with a higher one */
	else
		r->expected = got.number + 1;
	if (r->latency)
		histogram_record(&g->histogram, (uint64_t)(((__uint128_t)(now - got.sent_tsc) * r->ns_per_cycle) >> 32));
}

static inline uint16_t
receive(struct generator *g, struct segment *s, struct receiver *r)
{
	struct rte_mbuf *packets[BURST_PACKETS];
	const uint16_t n = rte_eth_rx_burst(g->port, 0, packets, BURST_PACKETS);
	const uint64_t now = rte_rdtsc();
	uint16_t i;

	if (n == 0)
		return 0;
	for (i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod_offset(packets[i], uint8_t *, packets[i]->data_len - sizeof(struct stamp)));
	for (i = 0; i < n; i++)
		account(g, s, r, packets[i], now);
	rte_mempool_put_bulk(packets[0]->pool, (void *const *)packets, n);
	return n;
}

/* Send what is due of the batch. */
static inline void
send_due(struct generator *g, struct segment *s, struct batch *b, struct departures *d, uint64_t elapsed, uint64_t end,
	 uint64_t now)
{
	const uint64_t due = elapsed << FRACTION_BITS;
	const unsigned int begin = b->at;
	uint16_t sent;

	if (due - d->next > s->max_lag_tsc << FRACTION_BITS)
		s->max_lag_tsc = (due - d->next) >> FRACTION_BITS;
	while (b->at < BURST_PACKETS && d->next <= due && d->next < end) {
		if (likely(!g->unstamped))
			stamp(b->packets[b->at], now, (uint32_t)s->sent, g->tag);
		s->sent++;
		b->at++;
		departures_advance(d);
	}
	sent = rte_eth_tx_burst(g->port, 0, b->packets + begin, (uint16_t)(b->at - begin));
	if (unlikely(sent < b->at - begin)) {
		s->link_full += b->at - begin - sent;
		rte_pktmbuf_free_bulk(b->packets + begin + sent, b->at - begin - sent);
	}
}

/* Whether everything that the device did not lose has come back. */
static inline bool
complete(const struct generator *g, const struct segment *s)
{
	return s->received + s->link_full + g->device->counters.dropped == s->sent;
}

static void
drain(struct generator *g, struct segment *s, struct receiver *r, uint64_t tsc_hz)
{
	const uint64_t begin = rte_rdtsc();
	uint64_t last = begin, now = begin;

	while (now - last < QUIET_MS * tsc_hz / 1000 && now - begin < DRAIN_MS * tsc_hz / 1000) {
		/* A moment longer than needed, for what may come twice. */
		if (complete(g, s) && now - last > tsc_hz / 20000)
			break;
		now = rte_rdtsc();
		if (receive(g, s, r) != 0)
			last = now;
	}
	s->draining_tsc = last - begin;
}

static void
run_segment(struct generator *g, struct segment *s, const struct offer *o, double duration_ms, struct batch *b)
{
	const uint64_t tsc_hz = rte_get_tsc_hz();
	const uint64_t duration = (uint64_t)(duration_ms * 1e-3 * (double)tsc_hz);
	const uint64_t end = duration << FRACTION_BITS, limit = (uint64_t)((double)duration * OVERTIME);
	const uint64_t gap_tsc = (uint64_t)(o->gap_threshold_us * 1e-6 * (double)tsc_hz);
	const uint64_t stall_tsc = tsc_hz / 1000000 * STALL_US;
	struct receiver receiver = {.latency = o->latency};
	uint64_t start, now, elapsed, last, first_sent = 0, last_sent = 0, sent;
	struct departures d;

	receiver.ns_per_cycle = (uint64_t)(1e9 / (double)tsc_hz * 4294967296.0);
	departures_begin(&d, &o->schedule, (double)tsc_hz, g->tag);
	s->planned = d.interval != 0 && o->schedule.pattern == SPACED_CBR ? (end + d.interval - 1) / d.interval : 0;
	s->before = calibrate();
	s->switches = preemptions();
	start = last = rte_rdtsc();
	do {
		now = rte_rdtsc();
		elapsed = now - start;
		if (unlikely(now - last > s->max_gap_tsc))
			s->max_gap_tsc = now - last;
		if (unlikely(now - last > 3 * stall_tsc))
			stall_record(&s->stalls, now - last);
		if (unlikely(now - last > gap_tsc))
			s->gaps++;
		last = now;
		if (d.next <= elapsed << FRACTION_BITS) {
			if (b->at == BURST_PACKETS)
				prepare(g, b);
			if (o->schedule.rate_pps == 0 && o->schedule.pattern == SPACED_CBR)
				d.next = elapsed << FRACTION_BITS;
			sent = s->sent;
			send_due(g, s, b, &d, elapsed, end, now);
			if (s->sent != sent) {
				if (first_sent == 0)
					first_sent = now;
				last_sent = now;
			}
		}
		receive(g, s, &receiver);
	} while (d.next < end && elapsed < limit && s->sent + BURST_PACKETS <= g->seen_bits);
	s->received_while_sending = s->received;
	s->sending_tsc = last_sent - first_sent;
	drain(g, s, &receiver, tsc_hz);
	s->switches = preemptions() - s->switches;
	s->after = calibrate();
}

static void
check(const struct segment *s)
{
	if (s->sent == 0)
		fail("usage", "the segment is too short for a single packet at this rate");
	if (s->received == 0 && s->device.received == 0)
		fail("device", "none of %lu packets reached the device under test", s->sent);
	if (s->received == 0 && s->device.dropped < s->device.received)
		fail("device", "none of %lu packets came back from the device under test", s->sent);
}

void
generator_offer(struct generator *g, const struct offer *o)
{
	const uint64_t gap_tsc = (uint64_t)(o->gap_threshold_us * 1e-6 * (double)rte_get_tsc_hz());
	struct batch batch = {.at = BURST_PACKETS};
	double left_ms = o->duration_ms;

	histogram_reset(&g->histogram);
	g->device->faulty_packets = 0;
	for (g->n_segments = 0; g->n_segments < MAX_SEGMENTS && left_ms > 1e-6; g->n_segments++) {
		struct segment *const s = &g->segments[g->n_segments];
		const double duration_ms = RTE_MIN(left_ms, o->segment_ms);

		memset(s, 0, sizeof(*s));
		g->tag++;
		device_start(g->device, o->mode, &o->faults, gap_tsc);
		s->realtime = realtime(g->priority) && g->device->realtime;
		run_segment(g, s, o, duration_ms, &batch);
		realtime(0);
		device_stop(g->device);
		s->device = g->device->counters;
		memset(g->seen, 0, (s->sent / 64 + 1) * sizeof(*g->seen));
		check(s);
		left_ms -= duration_ms;
		usleep((unsigned int)(o->rest_ms * 1000));
	}
	if (batch.at < BURST_PACKETS)
		rte_mempool_put_bulk(batch.packets[0]->pool, (void *const *)(batch.packets + batch.at),
				     BURST_PACKETS - batch.at);
}

static void
print_histogram(const struct histogram *h)
{
	bool first = true;
	unsigned int i;

	printf(", \"histogram\": {\"lowest\": 1, \"highest\": %lu, \"digits\": 3, \"min_ns\": %lu, \"max_ns\": %lu, "
	       "\"overflow\": %lu, \"counts\": [",
	       HISTOGRAM_HIGHEST_NS, h->max_ns == 0 ? 0 : h->min_ns, h->max_ns, h->overflow);
	for (i = 0; i < HISTOGRAM_COUNTS; i++) {
		if (h->counts[i] != 0) {
			printf("%s[%u,%lu]", first ? "" : ",", i, h->counts[i]);
			first = false;
		}
	}
	printf("]}");
}

/* Batches behind others, then those behind a look that found nothing: how many, and their time, by their packets. */
static void
print_batches(const struct generator *g, double us)
{
	unsigned int n, k, idle;

	for (idle = 0; idle < 2; idle++) {
		printf(", \"%s\": [", idle ? "batches_after_idle" : "batches_after_work");
		for (k = 0; k <= MAX_BATCH; k++) {
			uint64_t batches = 0, tsc = 0;

			for (n = 0; n < g->n_segments; n++) {
				batches += g->segments[n].device.batches[idle][k];
				tsc += g->segments[n].device.batch_tsc[idle][k];
			}
			printf("%s[%lu,%.3f]", k == 0 ? "" : ",", batches, (double)tsc * us);
		}
		printf("]");
	}
}

static void
print_stalls(const char *name, const struct generator *g, const struct stalls *first, double us)
{
	unsigned int n, k;

	printf(", \"%s\": [", name);
	for (k = 0; k < STALL_BITS; k++) {
		uint64_t number = 0, tsc = 0;

		for (n = 0; n < g->n_segments; n++) {
			const struct stalls *const s = (const void *)((const char *)first + n * sizeof(g->segments[0]));

			number += s->number[k];
			tsc += s->tsc[k];
		}
		printf("%s[%lu,%.3f]", k == 0 ? "" : ",", number, (double)tsc * us);
	}
	printf("]");
}

#define EACH(format, ...)                                                                                              \
	do {                                                                                                           \
		unsigned int n_;                                                                                       \
		for (n_ = 0; n_ < g->n_segments; n_++) {                                                               \
			const struct segment *const s = &g->segments[n_];                                              \
			printf("%s" format, n_ == 0 ? "" : ",", __VA_ARGS__);                                          \
		}                                                                                                      \
		printf("]");                                                                                           \
	} while (0)

#define COLUMN(name, format, ...)                                                                                      \
	do {                                                                                                           \
		printf(", \"" name "\": [");                                                                           \
		EACH(format, __VA_ARGS__);                                                                             \
	} while (0)

void
generator_print(const struct generator *g, const struct offer *o)
{
	const double us = 1e6 / (double)rte_get_tsc_hz();

	printf("{\"load_version\": %d, \"rate_pps\": %.3f, \"duration_ms\": %g, \"segments\": %u", LOAD_VERSION,
	       o->schedule.rate_pps, o->duration_ms, g->n_segments);
	COLUMN("planned", "%lu", s->planned);
	COLUMN("sent", "%lu", s->sent);
	COLUMN("received", "%lu", s->received);
	COLUMN("received_while_sending", "%lu", s->received_while_sending);
	COLUMN("link_full", "%lu", s->link_full);
	COLUMN("duplicated", "%lu", s->duplicated);
	COLUMN("reordered", "%lu", s->reordered);
	COLUMN("foreign", "%lu", s->foreign);
	COLUMN("sending_us", "%.3f", (double)s->sending_tsc * us);
	COLUMN("draining_us", "%.3f", (double)s->draining_tsc * us);
	COLUMN("max_lag_us", "%.3f", (double)s->max_lag_tsc * us);
	COLUMN("max_gap_us", "%.3f", (double)s->max_gap_tsc * us);
	COLUMN("gaps", "%lu", s->gaps);
	COLUMN("switches", "%lu", s->switches);
	COLUMN("realtime", "%s", s->realtime ? "true" : "false");
	COLUMN("chain_before_tsc", "%.4f", s->before.chain_tsc);
	COLUMN("mix_before_tsc", "%.4f", s->before.mix_tsc);
	COLUMN("chain_after_tsc", "%.4f", s->after.chain_tsc);
	COLUMN("mix_after_tsc", "%.4f", s->after.mix_tsc);
	COLUMN("device_received", "%lu", s->device.received);
	COLUMN("device_sent", "%lu", s->device.sent);
	COLUMN("device_dropped", "%lu", s->device.dropped);
	COLUMN("device_copies", "%lu", s->device.copies);
	COLUMN("device_tx_full", "%lu", s->device.tx_full);
	COLUMN("device_max_gap_us", "%.3f", (double)s->device.max_gap_tsc * us);
	COLUMN("device_gaps", "%lu", s->device.gaps);
	COLUMN("device_switches", "%lu", s->device.switches);
	COLUMN("device_busy_us", "%.3f", (double)s->device.busy_ns * 1e-3);
	COLUMN("device_chain_before_tsc", "%.4f", s->device.before.chain_tsc);
	COLUMN("device_mix_before_tsc", "%.4f", s->device.before.mix_tsc);
	COLUMN("device_chain_after_tsc", "%.4f", s->device.after.chain_tsc);
	COLUMN("device_mix_after_tsc", "%.4f", s->device.after.mix_tsc);
	if (o->mode == DEVICE_FAULTY) {
		COLUMN("injected_losses", "%lu", s->device.lost);
		COLUMN("injected_duplicates", "%lu", s->device.duplicated);
		COLUMN("injected_swaps", "%lu", s->device.swapped);
	}
	print_batches(g, us);
	print_stalls("stalls", g, &g->segments[0].stalls, us);
	print_stalls("device_stalls", g, &g->segments[0].device.stalls, us);
	if (o->latency)
		print_histogram(&g->histogram);
	printf("}\n");
	fflush(stdout);
}
