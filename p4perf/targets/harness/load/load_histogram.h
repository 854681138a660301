/* SPDX-License-Identifier: Apache-2.0 */
/* Counts in the layout of HdrHistogram: 1024 equal steps in every power of two above 2048 ns, steps of 1 ns below. */
#ifndef P4PERF_LOAD_HISTOGRAM_H
#define P4PERF_LOAD_HISTOGRAM_H

#include "load.h"

static inline void
histogram_reset(struct histogram *h)
{
	memset(h, 0, sizeof(*h));
	h->min_ns = UINT64_MAX;
}

static inline void
histogram_record(struct histogram *h, uint64_t ns)
{
	/* Position of the highest bit, at least that of the first bucket. */
	const unsigned int bucket = 53 - (unsigned int)__builtin_clzll(ns | (2 * HISTOGRAM_HALF - 1));

	if (unlikely(ns > HISTOGRAM_HIGHEST_NS)) {
		h->overflow++;
		return;
	}
	h->counts[bucket * HISTOGRAM_HALF + (ns >> bucket)]++;
	if (ns < h->min_ns)
		h->min_ns = ns;
	if (ns > h->max_ns)
		h->max_ns = ns;
}

#endif
