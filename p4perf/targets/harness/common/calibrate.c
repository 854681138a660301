/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How good can a measurement be here? Runs the two calibrators on every CPU in turn, without DPDK, and prints one line of
 * JSON per CPU: the sorted samples thinned to 101 quantiles, and the longest interruption seen.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "clock.h"

#define SAMPLES 4000

static double
now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static int
compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
print_quantiles(const char *name, double *values, int n)
{
	int i;

	qsort(values, n, sizeof(*values), compare);
	printf(", \"%s\": [", name);
	for (i = 0; i <= 100; i++)
		printf("%s%.5f", i == 0 ? "" : ",", values[(n - 1) * i / 100]);
	printf("]");
}

int
main(int argc, char **argv)
{
	static double chain[SAMPLES], ratio[SAMPLES];
	const double seconds = argc > 1 ? atof(argv[1]) : 0.2;
	cpu_set_t allowed, one;
	int cpu, n;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		double start, gap = 0, last;
		uint64_t tsc;

		if (!CPU_ISSET(cpu, &allowed))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (sched_setaffinity(0, sizeof(one), &one) != 0)
			continue;
		start = last = now_s();
		tsc = clock_tsc();
		for (n = 0; n < SAMPLES && now_s() - start < seconds; n++) {
			const struct calibration c = calibrate();
			const double now = now_s();

			chain[n] = c.chain_tsc;
			ratio[n] = c.mix_tsc / c.chain_tsc;
			gap = now - last > gap ? now - last : gap;
			last = now;
		}
		tsc = clock_tsc() - tsc;
		printf("{\"cpu\": %d, \"samples\": %d, \"tsc_hz\": %.0f, \"longest_sample_us\": %.1f", cpu, n,
		       tsc / (now_s() - start), gap * 1e6);
		print_quantiles("chain_tsc", chain, n);
		print_quantiles("gate_ratio", ratio, n);
		printf("}\n");
	}
	return 0;
}
