/* SPDX-License-Identifier: Apache-2.0 */
/* Exponential and logarithm that a compiler can vectorise. */
#ifndef P4PERF_VECTOR_MATH_H
#define P4PERF_VECTOR_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "engine.h"

/* e^x for |x| <= 700, to 1 ulp or so, without branches. */
INLINE double
fast_exp(double x)
{
	const double log2e = 0x1.71547652b82fep0, ln2_high = 0x1.62e42fefa0000p-1, ln2_low = 0x1.cf79abc9e3b3ap-40;
	x = x < -700.0 ? -700.0 : x;
	x = x > 700.0 ? 700.0 : x;
	double n = nearbyint(x * log2e);
	double r = (x - n * ln2_high) - n * ln2_low;
	double sum = 1.0 / 479001600.0;
	sum = sum * r + 1.0 / 39916800.0;
	sum = sum * r + 1.0 / 3628800.0;
	sum = sum * r + 1.0 / 362880.0;
	sum = sum * r + 1.0 / 40320.0;
	sum = sum * r + 1.0 / 5040.0;
	sum = sum * r + 1.0 / 720.0;
	sum = sum * r + 1.0 / 120.0;
	sum = sum * r + 1.0 / 24.0;
	sum = sum * r + 1.0 / 6.0;
	sum = sum * r + 0.5;
	sum = sum * r + 1.0;
	sum = sum * r + 1.0;
	int64_t bits = ((int64_t)(int32_t)n + 1023) << 52;
	double power;
	memcpy(&power, &bits, sizeof(power));
	return sum * power;
}

/* ln x for finite x > 0 that is not subnormal, to 1 ulp or so, without branches. */
INLINE double
fast_log(double x)
{
	const double ln2 = 0x1.62e42fefa39efp-1, two52 = 0x1p52;
	int64_t bits;
	memcpy(&bits, &x, sizeof(bits));
	/* m in [sqrt(1/2), sqrt(2)): shift the exponent by one where the mantissa is large. */
	int64_t moved = bits + (0x3ff0000000000000LL - 0x3fe6a09e667f3bcdLL);
	int64_t exponent = (int64_t)((uint64_t)moved >> 52);
	int64_t mantissa = (moved & 0x000fffffffffffffLL) + 0x3fe6a09e667f3bcdLL;
	int64_t spread = exponent | 0x4330000000000000LL;
	double m, e;
	memcpy(&m, &mantissa, sizeof(m));
	memcpy(&e, &spread, sizeof(e));
	e = e - (two52 + 1023.0);
	double s = (m - 1.0) / (m + 1.0), t = s * s;
	double sum = 1.0 / 21.0;
	sum = sum * t + 1.0 / 19.0;
	sum = sum * t + 1.0 / 17.0;
	sum = sum * t + 1.0 / 15.0;
	sum = sum * t + 1.0 / 13.0;
	sum = sum * t + 1.0 / 11.0;
	sum = sum * t + 1.0 / 9.0;
	sum = sum * t + 1.0 / 7.0;
	sum = sum * t + 1.0 / 5.0;
	sum = sum * t + 1.0 / 3.0;
	return e * ln2 + (2.0 * s + 2.0 * s * t * sum);
}

#endif
