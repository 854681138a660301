/* SPDX-License-Identifier: Apache-2.0 */
/* The network function: takes packets from queue RX, posts new buffers there, and puts the packets into queue TX. */
#include "vio_pool.h"

struct function {
	struct shared shared;
	struct pool pool;
	struct turns turns;
	uint32_t rx, tx; /* next descriptor of each queue */
	uint64_t batches;
	uint64_t witness, body_witness, sink;
	struct requests requests;
	uint32_t sent[QUEUE];             /* buffers in queue TX, by descriptor */
	uint32_t lengths[FUNCTION_BATCH]; /* of the packets that were just received */
	uint32_t batch[FUNCTION_BATCH];   /* their buffers */
	uint32_t fresh[FUNCTION_BATCH];   /* buffers that are posted instead */
};

#define touched(address, bytes, write) touch(&f->shared, &f->requests, FUNCTION, address, bytes, write)

struct function *
function_create(void *memory, const struct turns *turns, uint64_t seed)
{
	struct function *f = aligned_alloc(LINE_BYTES, (sizeof(*f) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES);
	uint32_t i, posted[QUEUE];

	if (f == NULL)
		return NULL;
	memset(f, 0, sizeof(*f));
	f->shared = shared_of(memory);
	f->turns = *turns;
	if (!pool_init(&f->pool, f->shared.pool, FUNCTION_CACHE, FUNCTION_CACHE_ORDER, FUNCTION_SHUFFLED, seed))
		return NULL;
	pool_get(&f->pool, posted, QUEUE, FUNCTION_CACHE, FUNCTION_CACHE_ORDER);
	for (i = 0; i < QUEUE; i++) {
		f->shared.rx[i].buffer = posted[i];
		atomic_store_explicit(&f->shared.rx[i].flags, AVAIL, memory_order_release);
		atomic_store_explicit(&f->shared.tx[i].flags, USED, memory_order_release);
	}
	return f;
}

/* The lines of a buffer that will be needed soon. */
inlined void
prefetch(const uint8_t *start)
{
	prefetch_header(start);
#if VIRTIO_HEADER_BYTES > 0
	__builtin_prefetch(start + DATA_OFFSET_BYTES - VIRTIO_HEADER_BYTES);
#endif
}

/* Receive a packet, the one of that number of its batch; its buffer. */
inlined uint32_t
receive(struct function *f, const struct descriptor *d, uint32_t number)
{
	const uint64_t buffer = d->buffer;
	uint8_t *const start = buffer_at(f->shared.pool, buffer), *const packet = start + DATA_OFFSET_BYTES;
#if HAS_LENGTH
	const uint32_t length = d->length;
#else
	const uint32_t length = PACKET_BYTES;
#endif

	touched(d, DESCRIPTOR_BYTES, false);
#if VIRTIO_HEADER_BYTES > 0
	{
		const uint32_t *words = (const uint32_t *)(packet - VIRTIO_HEADER_BYTES);
		unsigned int i;

		touched(words, VIRTIO_HEADER_BYTES, false);
		for (i = 0; i < VIRTIO_HEADER_BYTES / 4; i++)
			f->witness += words[i];
	}
#endif
#if HEADER_BYTES > 0
	touched(start, FUNCTION_HEADER_ACCESS == ACCESS_FULL ? HEADER_BYTES : 4, FUNCTION_HEADER_ACCESS != ACCESS_READ);
	f->sink += access_header(start, FUNCTION_HEADER_ACCESS, false, buffer << 32 | length);
#endif
#if BODY_READ_BYTES > 0
	{
		const uint32_t *words = (const uint32_t *)((struct packet *)packet)->body;
		unsigned int i;

		touched(words, BODY_READ_BYTES, false);
		for (i = 0; i < BODY_READ_BYTES / 4; i++)
			f->body_witness += words[i];
	}
#endif
#if BODY_WRITE_BYTES > 0
	touched(((struct packet *)packet)->body, BODY_WRITE_BYTES, true);
	memset(((struct packet *)packet)->body, MARK, BODY_WRITE_BYTES);
	settled(packet);
#endif
	(void)packet;
	f->lengths[number] = length;
	return (uint32_t)buffer;
}

/* Take back the buffers of the oldest batch in queue TX: the lengths in their headers become invalid. */
inlined void
reclaim(struct function *f)
{
	const uint32_t *oldest = &f->sent[(f->tx - LAG * FUNCTION_BATCH) & QUEUE_MASK];
#if HEADER_BYTES > 0
	const size_t bytes = HEADER_BYTES < LINE_BYTES ? HEADER_BYTES : LINE_BYTES;
	uint32_t i, field;

	for (i = 0; i < FUNCTION_BATCH; i++) {
		volatile uint64_t *fields = (volatile uint64_t *)buffer_at(f->shared.pool, oldest[i]);

		touched((const void *)fields, bytes, true);
		for (field = 0; field < bytes / 8; field++)
			fields[field] = UINT64_MAX;
	}
#endif
	/* A batch does not go around the end of a queue: both are powers of two. */
	pool_put(&f->pool, oldest, FUNCTION_BATCH, FUNCTION_CACHE, FUNCTION_CACHE_ORDER);
}

inlined void
idle(struct function *f)
{
	if (!turns_pass(&f->turns)) {
#if defined(__x86_64__)
		_mm_pause();
#endif
	}
}

static void
forward_batch(struct function *f)
{
	struct descriptor *const rx = &f->shared.rx[f->rx & QUEUE_MASK], *const tx = &f->shared.tx[f->tx & QUEUE_MASK];
	uint32_t i;

	for (i = 0; i < FUNCTION_BATCH; i++) {
#if HEADER_BYTES > 0 || VIRTIO_HEADER_BYTES > 0
		if (i + LOOK_AHEAD < FUNCTION_BATCH)
			prefetch(buffer_at(f->shared.pool, rx[i + LOOK_AHEAD].buffer));
#endif
		f->batch[i] = receive(f, &rx[i], i);
	}
	pool_get(&f->pool, f->fresh, FUNCTION_BATCH, FUNCTION_CACHE, FUNCTION_CACHE_ORDER);
	for (i = 0; i < FUNCTION_BATCH; i++) {
		touched(&rx[i], DESCRIPTOR_BYTES, true);
		rx[i].buffer = f->fresh[i];
		hand_over(&rx[i]);
	}
	f->rx += FUNCTION_BATCH;

	if (f->batches >= LAG) {
		/* The host has to return it: it empties the queue whatever else it does. */
		const struct descriptor *last =
			&f->shared.tx[(f->tx - (LAG - 1) * FUNCTION_BATCH - 1) & QUEUE_MASK];

		while (!ready(last, USED))
			idle(f);
		touched(last, DESCRIPTOR_BYTES, false);
		reclaim(f);
	}
	memcpy(&f->sent[f->tx & QUEUE_MASK], f->batch, sizeof(f->batch));
	for (i = 0; i < FUNCTION_BATCH; i++) {
		touched(&tx[i], DESCRIPTOR_BYTES, true);
		tx[i].buffer = f->batch[i];
#if HAS_LENGTH
		tx[i].length = f->lengths[i];
#endif
		hand_over(&tx[i]);
	}
	f->tx += FUNCTION_BATCH;
	f->batches++;
}

void
function_stream(struct function *f, uint32_t number)
{
	for (;;) {
		const struct descriptor *last = &f->shared.rx[(f->rx + FUNCTION_BATCH - 1) & QUEUE_MASK];

		if (ready(last, USED)) {
			touched(last, DESCRIPTOR_BYTES, false);
			forward_batch(f);
		} else if (atomic_load_explicit(&f->shared.control->number, memory_order_acquire) != number) {
			return;
		} else {
			idle(f);
		}
	}
}

void
function_report(struct function *f)
{
	f->shared.control->witness = f->witness;
	f->shared.control->body_witness = f->body_witness;
	f->shared.control->requests = f->requests;
}
