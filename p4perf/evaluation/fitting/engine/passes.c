/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes over the samples of a segment: values, errors and normal equations in one loop that vectorises.
 * Everything that differs between templates is a constant after inlining.
 */
#include <math.h>

#include "engine.h"
#include "vector_math.h"

#define SILENCE 1e-13 /* values below this share of the largest sample are zero: rounding is no error */

/* The last column of a template with a shape or a logarithm, and its derivative with respect to the shape. */
INLINE double
column(enum kind kind, const struct segment *segment, double x, double log_x, double shape, double *slope)
{
	double u, z;
	switch (kind) {
	case LOGARITHM:
		*slope = 0.0;
		return log_x - segment->log_origin;
	case SHIFTED_LOGARITHM: /* shape s, moved by factors */
		u = (x - segment->origin) * segment->inverse_span + shape;
		*slope = shape / u;
		return fast_log(u);
	case EXPONENTIAL: /* shape k, moved by factors */
		u = shape * ((x - segment->origin) * segment->inverse_span);
		z = fast_exp(u);
		*slope = u * z;
		return z;
	case POWER: /* exponent, moved by sums */
		u = log_x - segment->log_origin;
		z = fast_exp(shape * u);
		*slope = u * z;
		return z;
	default:
		*slope = 0.0;
		return 0.0;
	}
}

INLINE void
accumulate(const struct segment *segment, const double *p, enum kind kind, int columns, bool inverse, enum pass which,
	   struct sums *out)
{
	const double *restrict xs = segment->x, *restrict ys = segment->y, *restrict ls = segment->log_x;
	const double *restrict inverse_ys = segment->inverse_y;
	const int m = segment->m;
	const double near = segment->near, least = segment->floor;
	double rss = 0.0, smape = 0.0, mape = 0.0, off = 0.0, magnitude = 0.0;
	double h0 = 0, h1 = 0, h2 = 0, h3 = 0, h4 = 0, h5 = 0, h6 = 0, h7 = 0, h8 = 0, h9 = 0, h10 = 0;
	double b0 = 0, b1 = 0, b2 = 0, b3 = 0, b4 = 0, b5 = 0;
	const double c0 = p[0], c1 = p[1], c2 = p[2], c3 = p[3], c4 = p[4], c5 = p[5];

	for (int i = 0; i < m; i++) {
		double y = ys[i], q, u = 0.0, z = 0.0, slope = 0.0;
		if (kind == POLYNOMIAL) {
			u = (xs[i] - segment->origin) * segment->inverse_span;
			q = columns > 5 ? c5 : 0.0;
			q = columns > 4 ? q * u + c4 : q;
			q = columns > 3 ? q * u + c3 : q;
			q = columns > 2 ? q * u + c2 : q;
			q = columns > 1 ? q * u + c1 : q;
			q = columns > 1 ? q * u + c0 : c0;
		} else if (kind == POWER) {
			z = column(kind, segment, xs[i], ls[i], c1, &slope);
			q = c0 * z;
			slope *= c0;
		} else {
			z = column(kind, segment, xs[i], ls[i], c2, &slope);
			q = c0 + c1 * z;
			slope *= c1;
		}
		double f = inverse ? 1.0 / q : q;
		double size = fabs(f);
		f = size < SILENCE ? 0.0 : f;
		size = size < SILENCE ? 0.0 : size;
		double r = y - f, distance = fabs(r), whole = fabs(y) + size;
		whole = whole < least ? least : whole;
		whole = whole == 0.0 ? 1.0 : whole;
		double share = distance / whole;
		rss += r * r;
		smape += share;
		mape += distance * inverse_ys[i];
		off += distance;
		magnitude += size;
		if (which == PLAIN)
			continue;
		/* f = q or 1 / q: df/dq = 1 or -f^2. */
		double g = inverse ? -f * f : 1.0, weight = 1.0;
		if (which == ROBUST) {
			/*
			 * A relative distance is the same between y q and 1, which is linear in the coefficients, and it is a
			 * function of the distance of logarithms, which for a power is linear in everything.
			 */
			share = share < near ? near : share;
			if (inverse) {
				g = y;
				r = 1.0 - y * q;
				whole = 1.0 + fabs(y * q);
			} else if (kind == POWER) {
				g = 1.0 / f;
				r = fast_log(y * g);
				whole = fabs(r) < 2.0 * near ? 2.0 : fabs(r) / share;
			}
			weight = 1.0 / (share * whole * whole);
		}
		double gw = g * weight, rg = r * gw, w = g * gw;
		if (kind == POLYNOMIAL) {
			double u2 = u * u, u3 = u2 * u, u4 = u2 * u2, u5 = u4 * u;
			h0 += w;
			b0 += rg;
			if (columns > 1) {
				h1 += w * u;
				h2 += w * u2;
				b1 += rg * u;
			}
			if (columns > 2) {
				h3 += w * u3;
				h4 += w * u4;
				b2 += rg * u2;
			}
			if (columns > 3) {
				h5 += w * u5;
				h6 += w * (u3 * u3);
				b3 += rg * u3;
			}
			if (columns > 4) {
				h7 += w * (u3 * u4);
				h8 += w * (u4 * u4);
				b4 += rg * u4;
			}
			if (columns > 5) {
				h9 += w * (u4 * u5);
				h10 += w * (u5 * u5);
				b5 += rg * u5;
			}
		} else if (kind == POWER) {
			h0 += w * z * z;
			h1 += w * z * slope;
			h2 += w * slope * slope;
			b0 += rg * z;
			b1 += rg * slope;
		} else {
			h0 += w;
			h1 += w * z;
			h2 += w * z * z;
			b0 += rg;
			b1 += rg * z;
			if (kind != LOGARITHM) {
				h3 += w * slope;
				h4 += w * z * slope;
				h5 += w * slope * slope;
				b2 += rg * slope;
			}
		}
	}
	out->rss = rss;
	out->smape = smape;
	out->mape = mape;
	out->off = off;
	out->magnitude = magnitude;
	if (which == PLAIN)
		return;
	out->h[0] = h0, out->h[1] = h1, out->h[2] = h2, out->h[3] = h3, out->h[4] = h4, out->h[5] = h5;
	out->h[6] = h6, out->h[7] = h7, out->h[8] = h8, out->h[9] = h9, out->h[10] = h10;
	out->b[0] = b0, out->b[1] = b1, out->b[2] = b2, out->b[3] = b3, out->b[4] = b4, out->b[5] = b5;
}

#define PASS(name, kind, columns, inverse)                                                                             \
	HOT static void name##_plain(const struct segment *segment, const double *p, struct sums *out)                       \
	{                                                                                                              \
		accumulate(segment, p, kind, columns, inverse, PLAIN, out);                                               \
	}                                                                                                              \
	HOT static void name##_normal(const struct segment *segment, const double *p, struct sums *out)                      \
	{                                                                                                              \
		accumulate(segment, p, kind, columns, inverse, NORMAL, out);                                              \
	}                                                                                                              \
	HOT static void name##_robust(const struct segment *segment, const double *p, struct sums *out)                      \
	{                                                                                                              \
		accumulate(segment, p, kind, columns, inverse, ROBUST, out);                                              \
	}

PASS(poly0, POLYNOMIAL, 1, false)
PASS(poly1, POLYNOMIAL, 2, false)
PASS(poly2, POLYNOMIAL, 3, false)
PASS(poly3, POLYNOMIAL, 4, false)
PASS(poly4, POLYNOMIAL, 5, false)
PASS(poly5, POLYNOMIAL, 6, false)
PASS(inv_poly1, POLYNOMIAL, 2, true)
PASS(inv_poly2, POLYNOMIAL, 3, true)
PASS(inv_poly3, POLYNOMIAL, 4, true)
PASS(inv_poly4, POLYNOMIAL, 5, true)
PASS(inv_poly5, POLYNOMIAL, 6, true)
PASS(log, LOGARITHM, 2, false)
PASS(inv_log, LOGARITHM, 2, true)
PASS(shift, SHIFTED_LOGARITHM, 2, false)
PASS(inv_shift, SHIFTED_LOGARITHM, 2, true)
PASS(exp, EXPONENTIAL, 2, false)
PASS(inv_exp, EXPONENTIAL, 2, true)
PASS(power, POWER, 1, false)

#define ROW(name) { name##_plain, name##_normal, name##_robust }

static const pass_fn polynomials[2][MAX_COLUMNS][PASSES] = {
	{ ROW(poly0), ROW(poly1), ROW(poly2), ROW(poly3), ROW(poly4), ROW(poly5) },
	{ { NULL }, ROW(inv_poly1), ROW(inv_poly2), ROW(inv_poly3), ROW(inv_poly4), ROW(inv_poly5) },
};
static const pass_fn others[2][POWER + 1][PASSES] = {
	{ { NULL }, ROW(log), ROW(shift), ROW(exp), ROW(power) },
	{ { NULL }, ROW(inv_log), ROW(inv_shift), ROW(inv_exp), { NULL } },
};

pass_fn
find_pass(const struct template *t, enum pass which)
{
	if (t->kind == POLYNOMIAL)
		return polynomials[t->inverse][t->columns - 1][which];
	return others[t->inverse][t->kind][which];
}

/* Element (a, b) of the normal matrix, a <= b. */
static double
element(const struct template *t, const struct sums *s, int a, int b)
{
	if (t->kind == POLYNOMIAL)
		return s->h[a + b];
	return s->h[b == 0 ? 0 : b == 1 ? 1 + a : 3 + a];
}

double
solve_step(const struct template *t, const struct sums *s, const double *room, double *step)
{
	const int size = t->parameters, last = size - 1;
	double l[MAX_COLUMNS][MAX_COLUMNS], scale[MAX_COLUMNS], v[MAX_COLUMNS], promised = 0.0;

	/* Cholesky of the matrix with a unit diagonal; a column that depends on those before it gets no step. */
	for (int a = 0; a < size; a++) {
		double diagonal = element(t, s, a, a);
		scale[a] = diagonal > 0.0 ? 1.0 / sqrt(diagonal) : 0.0;
	}
	for (int b = 0; b < size; b++) {
		double pivot = scale[b] > 0.0 ? 1.0 : 0.0, right = s->b[b] * scale[b];
		for (int a = 0; a < b; a++) {
			double value = element(t, s, a, b) * scale[a] * scale[b];
			for (int k = 0; k < a; k++)
				value -= l[a][k] * l[b][k];
			l[b][a] = l[a][a] > 0.0 ? value / l[a][a] : 0.0;
			pivot -= l[b][a] * l[b][a];
			right -= l[b][a] * v[a];
		}
		l[b][b] = pivot > 1e-13 ? sqrt(pivot) : 0.0;
		v[b] = l[b][b] > 0.0 ? right / l[b][b] : 0.0;
		promised += v[b] * v[b];
	}
	for (int b = last; b >= 0; b--) {
		double value = v[b];
		for (int k = b + 1; k < size; k++)
			value -= l[k][b] * step[k];
		step[b] = l[b][b] > 0.0 ? value / l[b][b] : 0.0;
		if (b == last && room != NULL && scale[b] > 0.0) {
			/* The shape stays in its range; the coefficients answer to where it goes. */
			double go = step[b] * scale[b];
			go = go < room[0] ? room[0] : go > room[1] ? room[1] : go;
			step[b] = go / scale[b];
			double missed = v[b] - l[b][b] * step[b];
			promised -= missed * missed;
		}
	}
	for (int b = 0; b < size; b++)
		step[b] *= scale[b];
	return promised;
}

/* The last column of a shaped template at both ends of its segment, and its slope with respect to the shape. */
static void
at_ends(const struct template *t, double shape, double z[2], double slope[2])
{
	for (int k = 0; k < 2; k++) {
		double u = t->kind == EXPONENTIAL ? k * -fabs(shape) : k + shape;
		z[k] = t->kind == EXPONENTIAL ? exp(u) : log(u);
		slope[k] = t->kind == EXPONENTIAL ? u * z[k] : shape / u;
	}
}

bool
take_step(const struct template *t, const double *p, const double *step, double factor, double *out)
{
	const bool shaped = t->parameters > t->columns && t->kind != POWER;
	double z[2], slope[2], to[2], q[2];

	if (shaped) {
		double shape = p[2] * exp(factor * step[2]);
		at_ends(t, p[2], z, slope);
		at_ends(t, shape, to, q);
		for (int k = 0; k < 2; k++)
			q[k] = p[0] + p[1] * z[k] + factor * (step[0] + step[1] * z[k] + step[2] * p[1] * slope[k]);
		out[1] = (q[1] - q[0]) / (to[1] - to[0]);
		out[0] = q[0] - out[1] * to[0];
		out[2] = shape;
	} else if (t->kind == POWER) {
		out[0] = p[0] * exp(factor * step[0] / p[0]);
		out[1] = p[1] + factor * step[1];
	} else {
		for (int k = 0; k < t->parameters; k++)
			out[k] = p[k] + factor * step[k];
	}
	for (int k = t->parameters; k < MAX_COLUMNS; k++)
		out[k] = p[k];
	for (int k = 0; k < t->parameters; k++)
		if (!isfinite(out[k]))
			return false;
	return true;
}

bool
look_between(const struct segment *segment, const struct template *t, const double *p, const double *next, double *low,
	     double *high)
{
	double least = INFINITY, most = -INFINITY, q_low = INFINITY, q_high = -INFINITY;
	const int last = 2 * segment->m - 1, end = last + (t->inverse && next != NULL ? 2 : 0);
	for (int i = 0; i < end; i++) {
		double right = i / 2 + 1 < segment->m ? segment->x[i / 2 + 1] : next != NULL ? *next : segment->x[i / 2];
		double x = i > last ? right : i % 2 ? (segment->x[i / 2] + right) / 2 : segment->x[i / 2], slope, q = 0.0;
		double u = (x - segment->origin) * segment->inverse_span;
		if (t->kind == POLYNOMIAL) {
			for (int k = t->columns - 1; k >= 0; k--)
				q = q * u + p[k];
		} else if (t->kind == POWER) {
			q = p[0] * column(t->kind, segment, x, log(x), p[1], &slope);
		} else {
			q = p[0] + p[1] * column(t->kind, segment, x, t->kind == LOGARITHM ? log(x) : 0.0, p[2], &slope);
		}
		double f = t->inverse ? 1.0 / q : q;
		q_low = q < q_low ? q : q_low;
		q_high = q > q_high ? q : q_high;
		if (i % 2 && i < last) {
			least = f < least ? f : least;
			most = f > most ? f : most;
		}
	}
	*low = least;
	*high = most;
	/* Where rounding may bring the denominator to zero, its sign is not known. */
	return !t->inverse || q_low > SILENCE * fabs(q_high) || q_high < -SILENCE * fabs(q_low);
}
