/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host: fills queue RX with packets, empties queue TX, whichever is possible. Its own buffers are private; they come
 * from and go to dummy rings of a network card, so that a buffer is not used again at once.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#include "vio_pool.h"

/* Whole batches of everybody: after that many packets none is left in a queue. */
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))
#define WHOLE MAX_OF(RX_BATCH, MAX_OF(FUNCTION_BATCH, TX_BATCH))

#define PATIENCE_S 10
#define IDLE_TURNS (1 << 22)

const struct vio_sizes vio_sizes = {
	.shared_bytes = CONTROL_BYTES + POOL_BYTES + 2 * QUEUE_BYTES + (VIO_TRACE ? TRACED_BYTES / LINE_BYTES + 1 : 0),
	.private_bytes = 2 * POOL_BYTES,
	.queue = QUEUE,
	.rx_batch = RX_BATCH,
	.tx_batch = TX_BATCH,
};

/* The side of the host that fills a queue, or the one that empties it. */
struct side {
	struct pool pool;
	uint32_t next; /* descriptor */
	uint32_t at;   /* place in the ring */
	uint32_t *ring; /* buffers in the dummy ring of a network card */
};

struct host {
	struct shared shared;
	struct turns turns;
	struct side rx, tx;
	uint64_t sent, received;
	uint64_t sink, witness, body_witness;
	struct requests requests;
	uint32_t sending[RX_BATCH], receiving[TX_BATCH]; /* buffers of the host */
	char *error;                                     /* of a check; empty as long as nothing is wrong */
	size_t error_size;
};

#define touched(address, bytes, write) touch(&h->shared, &h->requests, HOST, address, bytes, write)

static bool
side_init(struct side *side, uint8_t *memory, uint32_t ring, bool shuffled, uint64_t seed)
{
	if (!pool_init(&side->pool, memory, HOST_CACHE, HOST_CACHE_ORDER, shuffled, seed))
		return false;
	side->ring = malloc(ring * sizeof(*side->ring));
	if (side->ring == NULL)
		return false;
	pool_get(&side->pool, side->ring, ring, HOST_CACHE, HOST_CACHE_ORDER);
	return true;
}

/* Put n buffers into a ring; in their place are then those that are in it for the longest time. */
inlined void
through_ring(struct side *side, uint32_t *restrict buffers, uint32_t n, uint32_t length)
{
	uint32_t done = 0, i;

	while (done < n) {
		const uint32_t rest = length - side->at, some = n - done < rest ? n - done : rest;
		uint32_t *restrict ring = &side->ring[side->at];

		for (i = 0; i < some; i++) {
			const uint32_t out = ring[i];

			ring[i] = buffers[done + i];
			buffers[done + i] = out;
		}
		done += some;
		side->at = side->at + some == length ? 0 : side->at + some;
	}
}

struct host *
host_create(void *memory, const struct turns *turns, bool hugepages, uint64_t seed)
{
	struct host *h = aligned_alloc(LINE_BYTES, (sizeof(*h) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES);
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | (hugepages ? MAP_HUGETLB : 0);
	const size_t page = 2 << 20, bytes = (2 * POOL_BYTES + page - 1) / page * page;
	uint8_t *pools = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (h == NULL || pools == MAP_FAILED)
		return NULL;
	memset(h, 0, sizeof(*h));
	h->shared = shared_of(memory);
	h->turns = *turns;
	if (!side_init(&h->rx, pools, RX_RING, RX_SHUFFLED, seed + 1) ||
	    !side_init(&h->tx, pools + POOL_BYTES, TX_RING, TX_SHUFFLED, seed + 2))
		return NULL;
	return h;
}

/* What byte of a body is checked for. */
inlined uint8_t
filler(uint64_t number, unsigned int at)
{
	return (uint8_t)(number * 167 + at * 31 + (number >> 8));
}

static void
fill(struct host *h, uint8_t *place, uint64_t number)
{
	struct packet *packet = (struct packet *)place;
	unsigned int i;

	packet->number = number;
	packet->length = PACKET_BYTES;
	packet->check = (uint32_t)(number * 2654435761);
	for (i = 0; i < BODY_BYTES; i++)
		packet->body[i] = filler(number, i);
	for (i = 0; i < BODY_READ_BYTES; i += 4) {
		uint32_t word;

		memcpy(&word, packet->body + i, sizeof(word));
		h->body_witness += word;
	}
	settled(place);
}

/* Compare a packet that came back with the one that was sent; notes what is wrong with it, unless something was before. */
static void
verify(struct host *h, const uint8_t *place, uint32_t length, uint64_t number)
{
	const struct packet *packet = (const struct packet *)place;
	unsigned int i;

	if (h->error[0] != '\0')
		return;
	if (packet->number != number)
		snprintf(h->error, h->error_size, "packet %lu came back where packet %lu was expected", packet->number,
			 number);
	else if (length != PACKET_BYTES || packet->length != PACKET_BYTES)
		snprintf(h->error, h->error_size, "packet %lu came back with a length of %u B and says %u B, not %u B",
			 number, length, packet->length, (unsigned int)PACKET_BYTES);
	else if (packet->check != (uint32_t)(number * 2654435761))
		snprintf(h->error, h->error_size, "packet %lu came back with another header", number);
	for (i = 0; i < BODY_BYTES && h->error[0] == '\0'; i++) {
		const uint8_t expected = i < BODY_WRITE_BYTES ? MARK : filler(number, i);

		if (packet->body[i] != expected)
			snprintf(h->error, h->error_size,
				 "byte %u of the body of packet %lu came back as 0x%02x, not 0x%02x", i, number,
				 packet->body[i], expected);
	}
}

/* A packet from the network card, in a buffer of the host. */
inlined void
create(struct host *h, uint32_t buffer, uint64_t number, bool check)
{
	uint8_t *const start = buffer_at(h->rx.pool.memory, buffer), *const packet = start + DATA_OFFSET_BYTES;

	prefetch_header(start);
	if (check && RX_COPY != COPY_NONE)
		fill(h, packet, number);
	else
		*(volatile uint64_t *)packet = number;
	h->sink += access_header(start, RX_HEADER_ACCESS, true, number);
}

inlined void
send_packet(struct host *h, struct descriptor *d, const uint8_t *from, uint64_t number, bool check)
{
	uint8_t *const packet = buffer_at(h->shared.pool, d->buffer) + DATA_OFFSET_BYTES;

	touched(d, DESCRIPTOR_BYTES, true);
#if VIRTIO_HEADER_BYTES > 0
	{
		uint32_t *words = (uint32_t *)(packet - VIRTIO_HEADER_BYTES);
		unsigned int i;

		touched(words, VIRTIO_HEADER_BYTES, true);
		for (i = 0; i < VIRTIO_HEADER_BYTES / 4; i++) {
			h->sink += ((volatile uint32_t *)words)[i];
			words[i] = (uint32_t)number + i;
			h->witness += (uint32_t)number + i;
		}
	}
#endif
	hint(packet, RX_HINT, true);
	if (RX_COPY != COPY_NONE) {
		touched(packet, PACKET_BYTES, true);
		copy_packet(packet, from, RX_COPY);
	} else if (check) {
		fill(h, packet, number);
	}
	hint(packet, RX_HINT, false);
#if HAS_LENGTH
	d->length = PACKET_BYTES;
#endif
#if DESCRIPTOR_BYTES >= 16
	d->id = (uint16_t)number;
#endif
}

inlined void
send_batch(struct host *h, bool check)
{
	struct side *rx = &h->rx;
	struct descriptor *const queue = &h->shared.rx[rx->next & QUEUE_MASK];
	uint32_t i;

	/* The card gets new buffers for those that have a packet. */
	pool_get(&rx->pool, h->sending, RX_BATCH, HOST_CACHE, HOST_CACHE_ORDER);
	through_ring(rx, h->sending, RX_BATCH, RX_RING);
	for (i = 0; i < RX_BATCH; i++)
		create(h, h->sending[i], h->sent + i, check);
	for (i = 0; i < RX_BATCH; i++)
		send_packet(h, &queue[i], buffer_at(rx->pool.memory, h->sending[i]) + DATA_OFFSET_BYTES, h->sent + i,
			    check);
	order_copies(RX_COPY);
	for (i = 0; i < RX_BATCH; i++)
		hand_over(&queue[i]);
	pool_put(&rx->pool, h->sending, RX_BATCH, HOST_CACHE, HOST_CACHE_ORDER);
	rx->next += RX_BATCH;
	h->sent += RX_BATCH;
}

/* A packet from queue TX, into a buffer of the host. */
inlined void
receive_packet(struct host *h, const struct descriptor *d, uint32_t buffer, uint64_t number, bool check)
{
	uint8_t *const start = buffer_at(h->tx.pool.memory, buffer), *const own = start + DATA_OFFSET_BYTES;
	const uint8_t *const packet = buffer_at(h->shared.pool, d->buffer) + DATA_OFFSET_BYTES;
#if HAS_LENGTH
	const uint32_t length = d->length;
#else
	const uint32_t length = PACKET_BYTES;
#endif

	touched(d, DESCRIPTOR_BYTES, true);
	hint(packet, TX_HINT, true);
#if VIRTIO_HEADER_BYTES > 0
	{
		volatile uint32_t *words = (volatile uint32_t *)(own - VIRTIO_HEADER_BYTES);
		unsigned int i;

		for (i = 0; i < VIRTIO_HEADER_BYTES / 4; i++) {
			h->sink += words[i];
			words[i] = (uint32_t)number;
		}
	}
#endif
	if (TX_COPY != COPY_NONE) {
		touched(packet, PACKET_BYTES, false);
		copy_packet(own, packet, TX_COPY);
	}
	h->sink += length + access_header(start, TX_HEADER_ACCESS, true, number);
	hint(packet, TX_HINT, false);
	if (check)
		verify(h, TX_COPY != COPY_NONE ? own : packet, length, number);
}

inlined void
receive_batch(struct host *h, bool check)
{
	struct side *tx = &h->tx;
	struct descriptor *const queue = &h->shared.tx[tx->next & QUEUE_MASK];
	uint32_t i;

	pool_get(&tx->pool, h->receiving, TX_BATCH, HOST_CACHE, HOST_CACHE_ORDER);
	for (i = 0; i < TX_BATCH; i++)
		receive_packet(h, &queue[i], h->receiving[i], h->received + i, check);
	order_copies(TX_COPY);
	for (i = 0; i < TX_BATCH; i++)
		hand_over(&queue[i]);
	/* The card sends them, and gives back those that it has sent. */
	through_ring(tx, h->receiving, TX_BATCH, TX_RING);
	pool_put(&tx->pool, h->receiving, TX_BATCH, HOST_CACHE, HOST_CACHE_ORDER);
	tx->next += TX_BATCH;
	h->received += TX_BATCH;
}

/* One round: receive if a batch is there, send if a batch may be on its way. False: neither. */
inlined bool
round_trip(struct host *h, bool sending, bool check)
{
	const struct descriptor *back = &h->shared.tx[(h->tx.next + TX_BATCH - 1) & QUEUE_MASK];
	const struct descriptor *free = &h->shared.rx[(h->rx.next + RX_BATCH - 1) & QUEUE_MASK];
	bool done = false;

	if (ready(back, AVAIL)) {
		touched(back, DESCRIPTOR_BYTES, false);
		receive_batch(h, check);
		done = true;
	}
	if (sending && h->sent - h->received <= QUEUE - RX_BATCH && ready(free, AVAIL)) {
		touched(free, DESCRIPTOR_BYTES, false);
		send_batch(h, check);
		done = true;
	}
	return done;
}

struct patience {
	uint64_t idle;
	time_t since;
};

/* Nothing could be done: wait a little, or let the other process run. False: for too long. */
static bool
patient(const struct host *h, struct patience *patience)
{
	struct timespec now;

	if (turns_pass(&h->turns))
		return true;
#if defined(__x86_64__)
	_mm_pause();
#endif
	if (++patience->idle % IDLE_TURNS != 0)
		return true;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (patience->since == 0)
		patience->since = now.tv_sec;
	return now.tv_sec - patience->since < PATIENCE_S;
}

inlined bool
stream(struct host *h, uint64_t until, bool check)
{
	struct patience patience = {0};

	while (h->received < until) {
		if (round_trip(h, true, check))
			patience.since = 0;
		else if (!patient(h, &patience))
			return false;
	}
	return true;
}

inlined bool
drain(struct host *h, bool check)
{
	struct patience patience = {0};

	while (h->received < h->sent || h->sent % WHOLE != 0)
		if (!round_trip(h, h->sent % WHOLE != 0, check) && !patient(h, &patience))
			return false;
	return true;
}

bool
host_stream(struct host *h, uint64_t until)
{
	return stream(h, until, false);
}

bool
host_drain(struct host *h)
{
	return drain(h, false);
}

bool
host_check(struct host *h, uint64_t packets, char *error, size_t error_size)
{
	const uint64_t until = h->received + packets;

	h->error = error;
	h->error_size = error_size;
	error[0] = '\0';
	if (!stream(h, until, true) || !drain(h, true))
		snprintf(error, error_size, "packet %lu of %lu that were sent did not come back", h->received, h->sent);
	return error[0] == '\0';
}

uint64_t
host_received(const struct host *h)
{
	return h->received;
}

void
host_expected(const struct host *h, uint64_t *witness, uint64_t *body_witness)
{
	*witness = h->witness;
	*body_witness = h->body_witness;
}

struct requests
host_requests(const struct host *h)
{
	return h->requests;
}
