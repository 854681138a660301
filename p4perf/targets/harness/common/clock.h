/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Software core clock and neighbour detector.
 *
 * On a shared machine without hardware counters two things change under a measurement: the core clock, and what runs on
 * the other hyperthread of the core. Two short loops tell them apart:
 *
 *   latency chain   four dependent 64-bit multiplications, 12 core cycles an iteration whoever else uses the core.
 *                   Its time in TSC cycles is the core clock.
 *   throughput mix  18 independent additions and exclusive ors, limited by the width of the core. Its time rises when
 *                   another thread takes a share of the core.
 *
 * mix / chain depends on the kind of CPU only, as long as the core is ours.
 */
#ifndef P4PERF_CLOCK_H
#define P4PERF_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Core cycles of one iteration of the latency chain: 4 multiplications of 3 cycles (Intel since 2008, AMD since Zen). */
#define CHAIN_CORE_CYCLES 12.0
#define CHAIN_ITERATIONS 3000
#define MIX_ITERATIONS 6000

struct calibration {
	double chain_tsc; /* TSC cycles per iteration of the latency chain */
	double mix_tsc;   /* TSC cycles per iteration of the throughput mix */
};

/*
 * Lower mode of ratios of mix and chain in ascending order: the lowest one that many others are next to, and most of
 * those around it. What lies below comes from disturbed chains, which spread, by a few percent at least; an undisturbed
 * core repeats itself to a few parts in a thousand.
 */
static inline double
lower_mode(const float *ratios, unsigned int n)
{
	const unsigned int others = n / 20 > 3 ? n / 20 : 3;
	unsigned int i, from = 0, next = 0, to = 0;

	for (i = 0; i + others < n; i++) {
		if (ratios[i + others] > 1.005f * ratios[i])
			continue;
		while (ratios[from] * 1.03f < ratios[i])
			from++;
		while (next < n && ratios[next] <= 1.005f * ratios[i])
			next++;
		while (to < n && ratios[to] <= 1.03f * ratios[i])
			to++;
		if (next - i >= 0.6f * (to - from))
			return ratios[i];
	}
	return ratios[n / 10];
}

/* Whether mix over chain is that of an undisturbed core; below it the chain was disturbed. */
static inline bool
undisturbed_ratio(double ratio, double gate_ratio, double tolerance)
{
	return ratio > gate_ratio * 0.95 && ratio < gate_ratio * (1 + tolerance);
}

#if defined(__x86_64__)
#define P4PERF_HAVE_GATE 1

static inline uint64_t
clock_tsc(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

static inline struct calibration
calibrate(void)
{
	struct calibration result;
	uint64_t value = 3, count = CHAIN_ITERATIONS, start, middle, end;
	uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8, i = 9;

	start = clock_tsc();
	__asm__ volatile(".p2align 5\n"
			 "1:\n\t"
			 "imul %0, %0\n\timul %0, %0\n\timul %0, %0\n\timul %0, %0\n\t"
			 "dec %1\n\tjnz 1b"
			 : "+r"(value), "+r"(count)
			 :
			 : "cc");
	middle = clock_tsc();
	count = MIX_ITERATIONS;
	__asm__ volatile(".p2align 5\n"
			 "1:\n\t"
			 "add $1, %0\n\txor $3, %1\n\tadd $1, %2\n\txor $3, %3\n\tadd $1, %4\n\txor $3, %5\n\t"
			 "add $1, %6\n\txor $3, %7\n\tadd $1, %8\n\t"
			 "xor $5, %0\n\tadd $7, %1\n\txor $5, %2\n\tadd $7, %3\n\txor $5, %4\n\tadd $7, %5\n\t"
			 "xor $5, %6\n\tadd $7, %7\n\txor $5, %8\n\t"
			 "dec %9\n\tjnz 1b"
			 : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h), "+r"(i),
			   "+r"(count)
			 :
			 : "cc");
	end = clock_tsc();
	result.chain_tsc = (double)(middle - start) / CHAIN_ITERATIONS;
	result.mix_tsc = (double)(end - middle) / MIX_ITERATIONS;
	return result;
}

#else
#define P4PERF_HAVE_GATE 0

/* Elsewhere the harness knows the counter of the architecture only: plain mode, counter cycles. */
static inline uint64_t
clock_tsc(void)
{
#if defined(__aarch64__)
	uint64_t value;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(value) : : "memory");
	return value;
#else
#error "p4perf: no cycle counter known for this architecture"
#endif
}

static inline struct calibration
calibrate(void)
{
	struct calibration result = {CHAIN_CORE_CYCLES, CHAIN_CORE_CYCLES};

	return result;
}
#endif

#endif
