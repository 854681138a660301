/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What all generated XDP programs have in common: fields in network order, the keys of the next packet, and the edges of
 * the windows in which the program is measured.
 *
 * BPF_PROG_TEST_RUN runs a program on one packet buffer again and again. So the measured program draws the keys itself,
 * and takes the time itself: the system call waits for some grace periods of RCU (20 to 30 ms), in steps of 4 ms, which
 * no difference of two calls resolves, and its own duration is in whole nanoseconds a packet. At every edge of a window
 * the program reads the clock and runs the two calibrators of clock.h, in the kernel, on the CPU on which it runs.
 */
#ifndef P4PERF_XDP_PROGRAM_H
#define P4PERF_XDP_PROGRAM_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "xdp_shared.h"

#define PASSES 256 /* a packet that goes through more often is dropped */

const volatile struct p4perf_config p4perf_config SEC(".rodata.config");
struct p4perf_shared p4perf SEC(".bss");

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define swap16(x) __builtin_bswap16(x)
#define swap32(x) __builtin_bswap32(x)
#define swap64(x) __builtin_bswap64(x)
#else
#define swap16(x) (x)
#define swap32(x) (x)
#define swap64(x) (x)
#endif

/* Big-endian numbers of 1 to 8 bytes at any address, in accesses of 1, 2, 4 and 8 bytes. */
#define LOAD_16(at) ((__u64)swap16(*(const __u16 *)(at)))
#define LOAD_32(at) ((__u64)swap32(*(const __u32 *)(at)))
#define STORE_16(at, value) (*(__u16 *)(at) = swap16((__u16)(value)))
#define STORE_32(at, value) (*(__u32 *)(at) = swap32((__u32)(value)))

static __always_inline __u64
load_be(const __u8 *at, const int bytes)
{
	switch (bytes) {
	case 1:
		return *at;
	case 2:
		return LOAD_16(at);
	case 3:
		return LOAD_16(at) << 8 | at[2];
	case 4:
		return LOAD_32(at);
	case 5:
		return LOAD_32(at) << 8 | at[4];
	case 6:
		return LOAD_32(at) << 16 | LOAD_16(at + 4);
	case 7:
		return LOAD_32(at) << 24 | LOAD_16(at + 4) << 8 | at[6];
	default:
		return swap64(*(const __u64 *)at);
	}
}

static __always_inline void
store_be(__u8 *at, const int bytes, const __u64 value)
{
	switch (bytes) {
	case 1:
		*at = (__u8)value;
		break;
	case 2:
		STORE_16(at, value);
		break;
	case 3:
		STORE_16(at, value >> 8);
		at[2] = (__u8)value;
		break;
	case 4:
		STORE_32(at, value);
		break;
	case 5:
		STORE_32(at, value >> 8);
		at[4] = (__u8)value;
		break;
	case 6:
		STORE_32(at, value >> 16);
		STORE_16(at + 4, value);
		break;
	case 7:
		STORE_32(at, value >> 24);
		STORE_16(at + 4, value >> 8);
		at[6] = (__u8)value;
		break;
	default:
		*(__u64 *)at = swap64(value);
		break;
	}
}

/*
 * A header that may be absent has a pointer that may be NULL. The compiler would rather test again what the parser
 * tested than compare the pointer, and the verifier would not see that both are the same.
 */
#define HIDE(pointer) asm volatile("" : "+r"(pointer))

/* A number that the compiler does not know. */
static __always_inline __attribute__((unused)) __u64
hidden(__u64 number)
{
	HIDE(number);
	return number;
}

/* The time in units of 1024 ns. */
static __always_inline __attribute__((unused)) __u64
time_now(void)
{
	return p4perf.given ? p4perf.given : bpf_ktime_get_ns() >> 10;
}

static __always_inline __attribute__((unused)) __u64
random_32_bits(void)
{
	return p4perf.given ? p4perf.given : bpf_get_prandom_u32();
}

static __always_inline __attribute__((unused)) __u64
random_64_bits(void)
{
	return p4perf.given ? p4perf.given : (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
}

/* Copy or clear a constant number of bytes. */
static __always_inline void
copy_bytes(__u8 *to, const __u8 *from, const int bytes)
{
	int i = 0;

#pragma clang loop unroll(full)
	for (; i + 8 <= bytes; i += 8)
		*(__u64 *)(to + i) = *(const __u64 *)(from + i);
	if (bytes & 4) {
		*(__u32 *)(to + i) = *(const __u32 *)(from + i);
		i += 4;
	}
	if (bytes & 2) {
		*(__u16 *)(to + i) = *(const __u16 *)(from + i);
		i += 2;
	}
	if (bytes & 1)
		to[i] = from[i];
}

static __always_inline void
clear_bytes(__u8 *to, const int bytes)
{
	int i = 0;

#pragma clang loop unroll(full)
	for (; i + 8 <= bytes; i += 8)
		*(__u64 *)(to + i) = 0;
	for (; i < bytes; i++)
		to[i] = 0;
}

/* One's complement sum of the 16-bit words of a number, and its end: RFC 1071. */
static __always_inline __u64
sum16(const __u64 sum, const __u64 words)
{
	return sum + (words >> 32) + (words & 0xffffffff);
}

static __always_inline __u64
sum16_end(__u64 sum)
{
	sum = (sum >> 32) + (sum & 0xffffffff);
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	return ~sum & 0xffff;
}

static __always_inline void
count_hit(const __u32 table)
{
	if (p4perf_config.count_hits)
		p4perf.hits[table]++;
}

/* Scale a 32-bit draw to 0 .. range-1. */
static __always_inline __u32
scale32(const __u32 draw, const __u32 range)
{
	return (__u32)(((__u64)draw * range) >> 32);
}

/* A random number (splitmix64 on a Weyl sequence: consecutive draws do not wait for each other). */
static __always_inline __u64
draw64(void)
{
	__u64 draw = p4perf.state += 0x9E3779B97F4A7C15ull;

	draw = (draw ^ draw >> 30) * 0xBF58476D1CE4E5B9ull;
	draw = (draw ^ draw >> 27) * 0x94D049BB133111EBull;
	return draw ^ draw >> 31;
}

/* A key of the next packet. */
static __always_inline __u32
draw_key(const int field)
{
	const volatile struct p4perf_draw *d = &p4perf_config.draws[field];
	const __u64 draw = draw64();
	__u32 key;

	if (p4perf_config.distribution == P4PERF_SEQUENTIAL) {
		key = p4perf.next[field];
		p4perf.next[field] = key + 1 == d->keys ? 0 : key + 1;
	} else if (p4perf_config.distribution == P4PERF_SINGLE) {
		key = 0;
	} else if (p4perf_config.distribution == P4PERF_ZIPF) {
		const __u32 bin = draw >> 32 & (P4PERF_QUANTILES - 1);

		key = d->quantile_low[bin] + scale32((__u32)draw, d->quantile_width[bin]);
	} else {
		key = scale32((__u32)draw, d->keys);
	}
	if (p4perf_config.miss_threshold)
		key += d->keys & -(__u32)((__u32)(draw >> 32) >= p4perf_config.miss_threshold);
	return key;
}

/*
 * Throughput mix of clock.h: 18 independent additions and exclusive ors an iteration. Its code is short, so that it is
 * decoded once: what a large program before it displaced from the caches is no sign of a neighbour.
 */
static long
throughput_mix(__u32 loop, void *context)
{
	__u64 a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8, i = 9;
	int j;

#pragma clang loop unroll(disable)
	for (j = 0; j < P4PERF_MIX_UNROLLED / 5; j++)
		asm volatile(".rept 5\n"
			     "%0 += 1\n%1 ^= 3\n%2 += 1\n%3 ^= 3\n%4 += 1\n%5 ^= 3\n%6 += 1\n%7 ^= 3\n%8 += 1\n"
			     "%0 ^= 5\n%1 += 7\n%2 ^= 5\n%3 += 7\n%4 ^= 5\n%5 += 7\n%6 ^= 5\n%7 += 7\n%8 ^= 5\n"
			     ".endr"
			     : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h), "+r"(i));
	return 0;
}

/* The edge of two windows: a function of its own, which the verifier checks once. */
__attribute__((noinline)) int
window_edge(void)
{
	const __u64 end = bpf_ktime_get_ns();
	const __u32 edge = p4perf.edges;
	__u64 value = 3, begin, middle;
	int i;

	bpf_loop(1, throughput_mix, NULL, 0);
	begin = bpf_ktime_get_ns();
	/* Latency chain of clock.h: four dependent multiplications an iteration, 12 core cycles. */
	for (i = 0; i < P4PERF_CHAIN_LOOPS; i++)
		asm volatile(".rept 16\n%0 *= %0\n.endr" : "+r"(value));
	p4perf.sink = value;
	middle = bpf_ktime_get_ns();
	bpf_loop(P4PERF_MIX_LOOPS, throughput_mix, NULL, 0);
	p4perf.left = p4perf.window_packets - 1;
	if (edge < P4PERF_MAX_EDGES) {
		p4perf.edge[edge].end_ns = end;
		p4perf.edge[edge].begin_ns = begin;
		p4perf.edge[edge].middle_ns = middle;
		p4perf.edge[edge].start_ns = bpf_ktime_get_ns();
		p4perf.edges = edge + 1;
	}
	return 0;
}

static __always_inline void
count_packet(void)
{
	if (p4perf.left-- == 0)
		window_edge();
}

#endif
