/* SPDX-License-Identifier: Apache-2.0 */
/* When packets leave: TSC cycles since the begin of a segment, with a fraction, so that rates are exact over any time. */
#ifndef P4PERF_LOAD_SCHEDULE_H
#define P4PERF_LOAD_SCHEDULE_H

#include <math.h>

#include "load.h"

#define FRACTION_BITS 20
#define FIXED(cycles) ((uint64_t)((cycles) * (double)(1 << FRACTION_BITS)))

struct departures {
	int pattern;
	uint64_t next; /* cycles, fixed point */
	uint64_t interval;
	uint64_t random;
	uint32_t burst, left;
	uint64_t spacing, gap;
	const uint64_t *gaps_ns;
	uint32_t n_gaps, at;
	double cycles_per_ns;
};

static inline void
departures_begin(struct departures *d, const struct schedule *s, double tsc_hz, uint64_t segment)
{
	*d = (struct departures){
		.pattern = s->pattern,
		.interval = s->rate_pps > 0 ? FIXED(tsc_hz / s->rate_pps) : 0,
		.random = (s->seed * UINT64_C(0x9E3779B97F4A7C15) + segment) * UINT64_C(0xD1342543DE82EF95) + 1,
		.burst = s->burst_packets != 0 ? s->burst_packets : 1,
		.gaps_ns = s->gaps_ns,
		.n_gaps = s->n_gaps,
		.cycles_per_ns = tsc_hz * 1e-9,
	};
	d->left = d->burst;
	d->spacing = FIXED(s->burst_spacing_ns * 1e-9 * tsc_hz);
	if (s->burst_gap_us > 0)
		d->gap = FIXED(s->burst_gap_us * 1e-6 * tsc_hz);
	else if (d->interval * d->burst > d->spacing * (d->burst - 1))
		d->gap = d->interval * d->burst - d->spacing * (d->burst - 1);
}

/* A number above 0 and up to 1. */
static inline double
departures_random(struct departures *d)
{
	__uint128_t product;

	d->random += UINT64_C(0x9E3779B97F4A7C15);
	product = (__uint128_t)d->random * (d->random ^ UINT64_C(0xE7037ED1A0B428DB));
	return (double)((((uint64_t)(product >> 64) ^ (uint64_t)product) >> 11) + 1) * 0x1p-53;
}

static inline void
departures_advance(struct departures *d)
{
	switch (d->pattern) {
	case SPACED_POISSON:
		d->next += (uint64_t)(-log(departures_random(d)) * (double)d->interval);
		break;
	case SPACED_BURST:
		if (--d->left != 0) {
			d->next += d->spacing;
		} else {
			d->left = d->burst;
			d->next += d->gap;
		}
		break;
	case SPACED_RECORDED:
		d->next += FIXED((double)d->gaps_ns[d->at] * d->cycles_per_ns);
		d->at = d->at + 1 == d->n_gaps ? 0 : d->at + 1;
		break;
	default:
		d->next += d->interval;
		break;
	}
}

#endif
