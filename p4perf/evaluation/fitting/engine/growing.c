/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a segment while it grows sample by sample: triangles of Givens rotations for the polynomials and
 * their reciprocals, moments for logarithm and power law, and for the shaped templates moments at every point of a
 * grid of shapes. All of it costs the same for every sample, however long the segment is.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "vector_math.h"

#define POINTS_PER_DECADE 8
#define STEP (2.302585092994046 / POINTS_PER_DECADE)

static int
grid_size(double low, double high)
{
	double points = high > low ? ceil(log(high / low) / STEP) + 1 : 1;
	return points < MAX_GRID ? (int)points : MAX_GRID;
}

bool
rates_init(struct rates *r, const struct series *s, const struct template *ts, int count)
{
	const int n = s->n;

	memset(r, 0, sizeof(*r));
	for (int k = 0; k < count; k++) {
		r->polynomials |= ts[k].kind == POLYNOMIAL && !ts[k].inverse;
		r->reciprocals |= ts[k].kind == POLYNOMIAL && ts[k].inverse;
		r->exponentials |= ts[k].kind == EXPONENTIAL;
		r->shifts |= ts[k].kind == SHIFTED_LOGARITHM;
	}
	if (!r->exponentials)
		return true;
	double span = n > 1 ? s->x[n - 1] - s->x[0] : 1.0, gap = span;

	for (int i = 1; i < n; i++)
		gap = s->x[i] - s->x[i - 1] < gap ? s->x[i] - s->x[i - 1] : gap;
	r->size = grid_size(0.1 / span, 1.0 / gap);
	r->log_first = log(0.1 / span);
	r->log_step = STEP;
	for (int g = 0; g < MAX_GRID; g++)
		r->rate[g] = exp(r->log_first + g * STEP);
	r->ratio = calloc((size_t)n * MAX_GRID, sizeof(double));
	if (r->ratio == NULL)
		return false;
	for (int i = 1; i < n; i++)
		for (int g = 0; g < r->size; g++) {
			double power = r->rate[g] * (s->x[i] - s->x[i - 1]);
			r->ratio[(size_t)i * MAX_GRID + g] = power < 150.0 ? exp(-power) : 0.0;
		}
	return true;
}

/* Turn one weighted row into the triangle. */
static void
rotate(struct triangle *t, double u, double weight, double target)
{
	double row[MAX_COLUMNS];

	row[0] = weight;
	for (int k = 1; k < MAX_COLUMNS; k++)
		row[k] = row[k - 1] * u;
	target *= weight;
	for (int k = 0; k < MAX_COLUMNS; k++) {
		if (row[k] == 0.0)
			continue;
		double length = sqrt(t->r[k][k] * t->r[k][k] + row[k] * row[k]);
		if (length == 0.0)
			continue;
		double c = t->r[k][k] / length, s = row[k] / length;
		t->r[k][k] = length;
		for (int j = k + 1; j < MAX_COLUMNS; j++) {
			double upper = t->r[k][j];
			t->r[k][j] = c * upper + s * row[j];
			row[j] = c * row[j] - s * upper;
		}
		double upper = t->d[k];
		t->d[k] = c * upper + s * target;
		target = c * target - s * upper;
	}
}

void
growing_start(struct growing *g, const struct series *s, const struct rates *r, int first)
{
	const int n = s->n;

	memset(g, 0, sizeof(*g));
	g->s = s;
	g->first = first;
	g->last = first - 1;
	g->low = INFINITY;
	g->high = -INFINITY;
	g->span0 = first < n - 1 ? s->x[n - 1] - s->x[first] : 1.0;
	g->growth.size = g->decay.size = r->size;
	g->growth.log_first = g->decay.log_first = r->log_first;
	g->growth.log_step = g->decay.log_step = r->log_step;
	memcpy(g->growth.shape, r->rate, sizeof(r->rate));
	memcpy(g->decay.shape, r->rate, sizeof(r->rate));
	for (int k = 0; k < MAX_GRID; k++)
		g->decay.now[k] = 1.0;
	if (r->shifts && first < n - 1) {
		double low = (s->x[first + 1] - s->x[first]) / 4, high = 10 * g->span0;
		g->shift.size = grid_size(low, high);
		g->shift.log_first = log(low);
		g->shift.log_step = STEP;
		for (int k = 0; k < g->shift.size; k++)
			g->shift.shape[k] = exp(g->shift.log_first + k * STEP);
	}
}

HOT static void
grow_grids(struct growing *g, const double *restrict ratio, double distance, double y)
{
	const double w = y * y * y * y, wq = y * y * y;
	struct grid *restrict a = &g->growth, *restrict d = &g->decay, *restrict s = &g->shift;

	for (int k = 0; k < a->size; k++) {
		double r = ratio[k], r2 = r * r;
		a->z[k] = a->z[k] * r + 1.0;
		a->zz[k] = a->zz[k] * r2 + 1.0;
		a->zy[k] = a->zy[k] * r + y;
		a->wz[k] = a->wz[k] * r + w;
		a->wzz[k] = a->wzz[k] * r2 + w;
		a->wzq[k] = a->wzq[k] * r + wq;
	}
	for (int k = 0; k < d->size; k++) {
		double z = d->now[k] * ratio[k];
		z = z < 1e-150 ? 0.0 : z;
		d->now[k] = z;
		d->z[k] += z;
		d->zz[k] += z * z;
		d->zy[k] += z * y;
		d->wz[k] += w * z;
		d->wzz[k] += w * z * z;
		d->wzq[k] += wq * z;
	}
	for (int k = 0; k < s->size; k++) {
		double z = fast_log(distance + s->shape[k]);
		s->z[k] += z;
		s->zz[k] += z * z;
		s->zy[k] += z * y;
		s->wz[k] += w * z;
		s->wzz[k] += w * z * z;
		s->wzq[k] += wq * z;
	}
}

void
growing_add(struct growing *g, const struct rates *r)
{
	static const double ones[MAX_GRID] = { [0 ... MAX_GRID - 1] = 1.0 };
	const struct series *s = g->s;
	const int j = ++g->last;
	const double x = s->x[j], y = s->y[j], y2 = y * y;
	const double u = (x - s->x[g->first]) / g->span0;

	g->low = y < g->low ? y : g->low;
	g->high = y > g->high ? y : g->high;
	if (r->polynomials)
		rotate(&g->poly, u, 1.0, y);
	if (r->reciprocals && y != 0.0) {
		rotate(&g->inverse_poly, u, y2, 1.0 / y);
		rotate(&g->gentle_poly, u, fabs(y), 1.0 / y);
	}
	g->sy += y;
	g->log_y += y != 0.0 ? log(fabs(y)) : 0.0;
	g->syy += y2;
	g->w += y2 * y2;
	g->wq += y2 * y;
	g->wqq += y2;
	if (s->x[g->first] > 0.0) {
		double z = s->log_x[j] - s->log_x[g->first];
		g->lz += z;
		g->lzz += z * z;
		g->lzy += z * y;
		g->lwz += y2 * y2 * z;
		g->lwzz += y2 * y2 * z * z;
		g->lwzq += y2 * y * z;
		if (y != 0.0) {
			double t = log(fabs(y));
			g->p += y2;
			g->pl += y2 * z;
			g->pll += y2 * z * z;
			g->pt += y2 * t;
			g->plt += y2 * z * t;
		}
	}
	if (r->exponentials || r->shifts)
		grow_grids(g, j > g->first && r->exponentials ? r->ratio + (size_t)j * MAX_GRID : ones, x - s->x[g->first], y);
}

/* Best line t = base + slope * z from weighted moments; gain is what it takes off the sum of squares. */
static bool
line(double w, double t, double z, double zz, double zt, double *base, double *slope, double *gain)
{
	double spread = zz - z * z / w, together = zt - z * t / w;
	if (!(spread > 1e-14 * zz) || !(w > 0.0))
		return false;
	*slope = together / spread;
	*base = (t - *slope * z) / w;
	*gain = together * *slope;
	return isfinite(*gain);
}

HOT static void
gains(const struct grid *restrict a, double m, double t, bool inverse, int from, int to, double *restrict out)
{
	const double *restrict z = inverse ? a->wz : a->z, *restrict zz = inverse ? a->wzz : a->zz;
	const double *restrict zt = inverse ? a->wzq : a->zy;
	for (int k = from; k < to; k++) {
		double spread = zz[k] - z[k] * z[k] / m, together = zt[k] - z[k] * t / m;
		double ok = spread > 1e-14 * zz[k] ? 1.0 : 0.0;
		out[k] = ok * together * together / (ok * spread + (1.0 - ok));
	}
}

/* A position in a grid, from 0 to most. */
static int
place(double position, int most)
{
	return position >= most ? most : position > 0.0 ? (int)position : 0;
}

/* Start of a shaped template from its grid, refined by a parabola through the three best points. */
static bool
grid_start(const struct growing *g, const struct grid *a, bool inverse, const double *log_range, double *p,
	   double *best)
{
	const double log_low = log_range[0], log_high = log_range[1];
	double gain[MAX_GRID];
	const double m = inverse ? g->w : (double)(g->last - g->first + 1), t = inverse ? g->wq : g->sy;
	int from = place(ceil((log_low - a->log_first) / a->log_step - 1e-9), a->size);
	int to = place(floor((log_high - a->log_first) / a->log_step + 1e-9) + 1, a->size);
	if (from >= to) {
		from = place(round(((log_low + log_high) / 2 - a->log_first) / a->log_step), a->size - 1);
		to = from + 1;
	}
	if (a->size == 0)
		return false;
	gains(a, m, t, inverse, from, to, gain);
	int peak = from;
	for (int k = from + 1; k < to; k++)
		peak = gain[k] > gain[peak] ? k : peak;

	double base[3], slope[3], value[3];
	bool inner = peak > from && peak < to - 1;
	for (int k = inner ? -1 : 0; k <= (inner ? 1 : 0); k++) {
		int at = peak + k;
		if (!line(m, t, inverse ? a->wz[at] : a->z[at], inverse ? a->wzz[at] : a->zz[at],
			  inverse ? a->wzq[at] : a->zy[at], &base[k + 1], &slope[k + 1], &value[k + 1]))
			return false;
	}
	double v = a->log_first + peak * a->log_step, offset = 0.0;
	p[0] = base[1];
	p[1] = slope[1];
	*best = value[1];
	if (inner) {
		double bend = value[0] - 2 * value[1] + value[2];
		if (bend < 0.0)
			offset = (value[0] - value[2]) / (2 * bend);
		offset = offset < -1.0 ? -1.0 : offset > 1.0 ? 1.0 : offset;
		*best += offset * ((value[2] - value[0]) + offset * bend) / 2;
		p[0] += offset * ((base[2] - base[0]) / 2 + offset * (base[0] - 2 * base[1] + base[2]) / 2);
		p[1] += offset * ((slope[2] - slope[0]) / 2 + offset * (slope[0] - 2 * slope[1] + slope[2]) / 2);
	}
	v += offset * a->log_step;
	v = v < log_low ? log_low : v > log_high ? log_high : v;
	p[2] = exp(v);
	return isfinite(p[0]) && isfinite(p[1]);
}

void
back_substitute(const struct growing *g, const struct triangle *t, int columns, double *p)
{
	double stretch = g->last > g->first ? (g->s->x[g->last] - g->s->x[g->first]) / g->span0 : 1.0, factor = 1.0;

	for (int k = columns - 1; k >= 0; k--) {
		double value = t->d[k];
		for (int j = k + 1; j < columns; j++)
			value -= t->r[k][j] * p[j];
		p[k] = t->r[k][k] > 0.0 ? value / t->r[k][k] : 0.0;
	}
	for (int k = 0; k < columns; k++, factor *= stretch)
		p[k] *= factor;
}

int
start_values(const struct growing *g, const struct template *t, struct start starts[2])
{
	const struct series *s = g->s;
	const double *x = s->x, m = g->last - g->first + 1;
	const double span = g->last > g->first ? x[g->last] - x[g->first] : 1.0;
	/* What is left of the squares with a constant alone. */
	const double total = t->inverse ? g->wqq - g->wq * g->wq / g->w : g->syy - g->sy * g->sy / m;
	double base, slope, gain, first_gap, last_gap;
	int count = 0;

	memset(starts, 0, 2 * sizeof(starts[0]));
	starts[0].origin = starts[1].origin = x[g->first];
	switch (t->kind) {
	case POLYNOMIAL:
		back_substitute(g, t->inverse ? &g->inverse_poly : &g->poly, t->columns, starts[0].p);
		return 1;
	case LOGARITHM:
		if (!line(t->inverse ? g->w : m, t->inverse ? g->wq : g->sy, t->inverse ? g->lwz : g->lz,
			  t->inverse ? g->lwzz : g->lzz, t->inverse ? g->lwzq : g->lzy, &base, &slope, &gain))
			return 0;
		starts[0].p[0] = base;
		starts[0].p[1] = slope;
		return 1;
	case POWER:
		if (!line(g->p, g->pt, g->pl, g->pll, g->plt, &base, &slope, &gain))
			return 0;
		starts[0].p[0] = g->high > 0.0 ? exp(base) : -exp(base);
		starts[0].p[1] = slope;
		return 1;
	case SHIFTED_LOGARITHM:
		first_gap = x[g->first + 1] - x[g->first];
		/* A pole nearer than a quarter of the first gap bends one sample only; ten spans away it makes a line. */
		starts[0].log_range[0] = log(first_gap / 4);
		starts[0].log_range[1] = log(10 * span);
		if (!grid_start(g, &g->shift, t->inverse, starts[0].log_range, starts[0].p, &gain))
			return 0;
		/* ln(u span + s) = ln(u + s / span) + ln span */
		starts[0].p[0] += starts[0].p[1] * log(span);
		starts[0].p[2] /= span;
		starts[0].log_range[0] -= log(span);
		starts[0].log_range[1] -= log(span);
		return 1;
	case EXPONENTIAL:
		first_gap = x[g->first + 1] - x[g->first];
		last_gap = x[g->last] - x[g->last - 1];
		for (int sign = 1; sign >= -1; sign -= 2) {
			/* A tenth over the span makes a line; beyond one over the gap at the steep end one sample is bent. */
			struct start *at = &starts[count];
			at->log_range[0] = log(0.1 / span);
			at->log_range[1] = fmax(log(1.0 / (sign > 0 ? last_gap : first_gap)), at->log_range[0] + 0.01);
			if (!grid_start(g, sign > 0 ? &g->growth : &g->decay, t->inverse, at->log_range, at->p, &gain))
				continue;
			at->p[2] *= sign * span;
			at->origin = sign > 0 ? x[g->last] : x[g->first];
			at->log_range[0] += log(span);
			at->log_range[1] += log(span);
			at->expected = total - gain;
			count++;
		}
		if (count == 2 && starts[1].expected < starts[0].expected) {
			struct start better = starts[1];
			starts[1] = starts[0];
			starts[0] = better;
		}
		return count;
	}
	return 0;
}
