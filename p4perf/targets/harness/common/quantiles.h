/* SPDX-License-Identifier: Apache-2.0 */
/* Keys by Zipf's law, for sources of packets that have to draw them fast. */
#ifndef P4PERF_QUANTILES_H
#define P4PERF_QUANTILES_H

#include <math.h>
#include <stdint.h>

/*
 * Zipf law over ranks 1..keys, approximated by bins of equal probability, uniform inside a bin. The inverse of the
 * continuous distribution function of x^-s gives the bin edges.
 */
static inline void
fill_quantiles(uint32_t keys, double s, unsigned int bins, uint32_t *low, uint32_t *width)
{
	const double n = (double)keys;
	uint32_t edge = 0, next;
	unsigned int i;

	for (i = 0; i < bins; i++) {
		const double u = (i + 1.0) / bins;
		const double x = fabs(s - 1.0) < 1e-9 ? exp(u * log(n + 1.0))
						      : pow(u * (pow(n + 1.0, 1.0 - s) - 1.0) + 1.0, 1.0 / (1.0 - s));

		next = x - 1.0 >= n || i == bins - 1 ? keys : (uint32_t)(x - 1.0);
		low[i] = edge < keys ? edge : keys - 1;
		width[i] = next > low[i] ? next - low[i] : 1;
		edge = next;
	}
}

#endif
