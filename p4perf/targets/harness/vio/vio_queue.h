/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors, buffers and what is done with them: everything that depends on vio_config.h and both sides share. */
#ifndef P4PERF_VIO_QUEUE_H
#define P4PERF_VIO_QUEUE_H

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "vio.h"

#define COPY_NONE 0
#define COPY_PLAIN 1
#define COPY_SIMD 2
#define COPY_STREAM 3

#define ACCESS_FULL 0
#define ACCESS_READ 1
#define ACCESS_WRITE 2

#define HINT_NONE 0
#define HINT_PREFETCH 1
#define HINT_DEMOTE 2
#define HINT_FLUSH 3

#define ORDER_LIFO 0
#define ORDER_FIFO 1

#include "vio_config.h"

/* Whose turn it is, in the flags of a descriptor: at the places of a packed virtqueue. */
#define AVAIL (1 << 7) /* the host's */
#define USED (1 << 15) /* the function's */

#if DESCRIPTOR_BYTES == 4
struct descriptor {
	uint16_t buffer;
	_Atomic uint16_t flags;
};
#define HAS_LENGTH 0
#elif DESCRIPTOR_BYTES == 8
struct descriptor {
	uint32_t buffer;
	uint16_t length;
	_Atomic uint16_t flags;
};
#define HAS_LENGTH 1
#else
struct descriptor {
	uint64_t buffer;
	uint32_t length;
	uint16_t id;
	_Atomic uint16_t flags;
} __attribute__((aligned(DESCRIPTOR_BYTES)));
#define HAS_LENGTH 1
#endif

_Static_assert(sizeof(struct descriptor) == DESCRIPTOR_BYTES, "a descriptor has another size");

/* The body of a packet begins behind its number and its length. */
struct packet {
	uint64_t number;
	uint32_t length;
	uint32_t check;
	uint8_t body[];
};

#define BODY_BYTES (PACKET_BYTES - sizeof(struct packet))
#define MARK 0x5A
#define LOOK_AHEAD 4

#define inlined static inline __attribute__((always_inline))

/* What is in memory has to be there now, and what is there may be anything. */
#define settled(address) __asm__ volatile("" : : "r"(address) : "memory")

#define POOL_BYTES ((size_t)BUFFERS * STRIDE_BYTES)
#define QUEUE_BYTES ((size_t)QUEUE * DESCRIPTOR_BYTES)
#define QUEUE_MASK (QUEUE - 1)

/* Memory that both sides see, in this order. */
struct shared {
	struct control *control;
	uint8_t *pool;
	struct descriptor *rx, *tx;
	uint8_t *directory; /* which caches hold a line; only if VIO_TRACE */
	size_t traced;      /* lines from the pool on that the directory knows */
};

#ifndef VIO_TRACE
#define VIO_TRACE 0
#endif

#define TRACED_BYTES (POOL_BYTES + 2 * QUEUE_BYTES)
#define HOST 1
#define FUNCTION 2

inlined struct shared
shared_of(void *memory)
{
	struct shared s = {.control = memory, .pool = (uint8_t *)memory + CONTROL_BYTES};

	s.rx = (struct descriptor *)(s.pool + POOL_BYTES);
	s.tx = s.rx + QUEUE;
	s.directory = (uint8_t *)(s.tx + QUEUE);
	s.traced = TRACED_BYTES / LINE_BYTES;
	return s;
}

/*
 * The directory of a machine with two caches without limits: a line that this one has not got is fetched; before it is
 * written, the other one has to give it up. Processes have to take turns.
 */
inlined void
touch(const struct shared *s, struct requests *requests, uint8_t side, const void *address, size_t bytes, bool write)
{
#if VIO_TRACE
	const size_t begin = (const uint8_t *)address - s->pool;
	size_t line;

	if (begin >= TRACED_BYTES)
		return;
	for (line = begin / LINE_BYTES; line <= (begin + bytes - 1) / LINE_BYTES; line++) {
		if ((s->directory[line] & side) == 0)
			requests->fetched++;
		else if (write && s->directory[line] != side)
			requests->upgraded++;
		s->directory[line] = write ? side : s->directory[line] | side;
	}
#else
	(void)s, (void)requests, (void)side, (void)address, (void)bytes, (void)write;
#endif
}

/* Whether the batch that ends with this descriptor is there. */
inlined bool
ready(const struct descriptor *last, uint16_t whose)
{
	return (atomic_load_explicit(&last->flags, memory_order_acquire) & whose) != 0;
}

/* Give a descriptor to the other side: everything written before is there for it. */
inlined void
hand_over(struct descriptor *d)
{
	const uint16_t flags = atomic_load_explicit(&d->flags, memory_order_relaxed);

	atomic_store_explicit(&d->flags, flags ^ (AVAIL | USED), memory_order_release);
}

inlined void
prefetch_header(const uint8_t *buffer)
{
#if HEADER_BYTES > 0
	unsigned int i;

	for (i = 0; i < HEADER_BYTES && i < 2 * LINE_BYTES; i += LINE_BYTES)
		__builtin_prefetch(buffer + i);
#endif
	(void)buffer;
}

/*
 * All of a buffer header is written, field by field of 8 B, as structs of metadata are; with read_first two of them are
 * read before. Returns what was read.
 */
inlined uint64_t
access_header(uint8_t *buffer, int access, bool read_first, uint64_t value)
{
#if HEADER_BYTES > 0
	volatile uint64_t *fields = (volatile uint64_t *)buffer;
	uint64_t seen = 0;
	unsigned int i;

	if (access == ACCESS_READ)
		return *(volatile uint32_t *)buffer;
	if (access == ACCESS_WRITE) {
		*(volatile uint32_t *)buffer = (uint32_t)value;
		return 0;
	}
	if (read_first)
		seen = fields[0] + fields[1];
	for (i = 0; i < HEADER_BYTES / 8; i++)
		fields[i] = value + i;
	return seen;
#else
	(void)buffer, (void)access, (void)read_first, (void)value;
	return 0;
#endif
}

inlined void
copy_packet(uint8_t *to, const uint8_t *from, int how)
{
	if (how == COPY_NONE)
		return;
	if (how == COPY_PLAIN)
		memcpy(to, from, PACKET_BYTES);
#if defined(__AVX__)
	if (how == COPY_SIMD || how == COPY_STREAM) {
		unsigned int i;

		for (i = 0; i < PACKET_BYTES; i += 32) {
			const __m256i piece = _mm256_load_si256((const __m256i *)(from + i));

			if (how == COPY_SIMD)
				_mm256_store_si256((__m256i *)(to + i), piece);
			else
				_mm256_stream_si256((__m256i *)(to + i), piece);
		}
	}
#endif
	settled(to);
}

/* Stores that go around the caches are not in order with the others. */
inlined void
order_copies(int how)
{
#if defined(__AVX__)
	if (how == COPY_STREAM)
		_mm_sfence();
#endif
	(void)how;
}

#if (RX_COPY > COPY_PLAIN || TX_COPY > COPY_PLAIN) && !defined(__AVX__)
#error "p4perf: copies of 256 bit need a processor with AVX"
#endif
#if (RX_HINT > HINT_PREFETCH || TX_HINT > HINT_PREFETCH) && !defined(__x86_64__)
#error "p4perf: cldemote and clflushopt are instructions of x86-64"
#endif

inlined void
hint(const uint8_t *packet, int what, bool before)
{
	if (what == HINT_PREFETCH && before)
		__builtin_prefetch(packet);
#if defined(__x86_64__)
	/* Both in bytes: a processor without cldemote takes it for a no-operation. */
	if (what == HINT_DEMOTE && !before)
		__asm__ volatile(".byte 0x0f, 0x1c, 0x07" : : "D"(packet) : "memory");
	if (what == HINT_FLUSH && !before)
		__asm__ volatile(".byte 0x66, 0x0f, 0xae, 0x3f" : : "D"(packet) : "memory");
#endif
}

#endif
