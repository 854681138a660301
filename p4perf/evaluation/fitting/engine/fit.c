/* SPDX-License-Identifier: Apache-2.0 */
/* One template on one segment: least squares, refinement by Gauss-Newton steps, error; and the choice among all. */
#include <math.h>
#include <string.h>

#include "engine.h"

#define STEPS 16
#define ROBUST_STEPS 12
#define SETTLED 1e-6 /* refinement ends when a step promises to take less than this share off the sum of squares */
#define PERFECT 1e-28
#define UNSURE 0.9 /* of what a grid of shapes promises, so much may be true; for reciprocals it is an approximation */
#define UNSURE_INVERSE 0.5
#define STRIDE 2.0      /* a shape moves by a factor of exp(2) in one step at the most */
#define NEAR 1e-3       /* relative distances below this weigh alike in a robust fit */
#define COOLING 0.3
#define MAX_POWER 300.0  /* a power of x stays below exp(300) */
#define CANCELLATION 1e8 /* terms of a sum are larger than the sum by this factor at the most */
#define LEAST 1e-300     /* parameters are zero, or not below this */
#define MOST 1e304       /* terms of a sum stay below this */

/* What is minimised: the sum of squares, or of relative distances. */
static double
objective(const struct sums *s, enum pass which)
{
	return !isfinite(s->rss) ? INFINITY : which == ROBUST ? s->smape : s->rss;
}

/*
 * The best coefficients for the present shape of a direct shaped template, from the normal equations at p. They are
 * linear, so what a pass would find there is known without one.
 */
static void
project(const struct template *t, double *p, struct sums *s)
{
	static const double stay[2] = { 0.0, 0.0 };
	double step[MAX_COLUMNS];
	double promised = solve_step(t, s, stay, step), ratio = p[1] != 0.0 ? (p[1] + step[1]) / p[1] : 0.0;

	if (!isfinite(promised) || ratio == 0.0)
		return;
	s->rss = fmax(s->rss - promised, 0.0);
	s->b[2] = ratio * (s->b[2] - step[0] * s->h[3] - step[1] * s->h[4]);
	s->b[0] = s->b[1] = 0.0;
	s->h[3] *= ratio;
	s->h[4] *= ratio;
	s->h[5] *= ratio * ratio;
	p[0] += step[0];
	p[1] += step[1];
}

/* How far the logarithm of a shape may move in one step; NULL for templates without one, and for powers. */
static const double *
room_of(const struct template *t, const double *range, const double *p, double room[2])
{
	if (t->parameters == t->columns || t->kind == POWER)
		return NULL;
	room[0] = fmax(range[0] - log(fabs(p[t->columns])), -STRIDE);
	room[1] = fmin(range[1] - log(fabs(p[t->columns])), STRIDE);
	return room;
}

/* Steps of a robust fit while its weights go from all alike to those that tell outliers from other samples. */
static void
anneal(const struct segment *segment, const struct template *t, const double *range, double *p)
{
	struct segment loose = *segment;
	struct sums s;
	double step[MAX_COLUMNS], room[2];

	for (loose.near = 1.0; loose.near > NEAR; loose.near *= COOLING) {
		find_pass(t, ROBUST)(&loose, p, &s);
		solve_step(t, &s, room_of(t, range, p, room), step);
		if (!isfinite(s.rss) || !take_step(t, p, step, 1.0, p))
			return;
	}
}

/* Gauss-Newton steps until they promise nothing more; each is shortened up to twice if it does not improve. */
static void
refine(const struct segment *segment, const struct template *t, enum pass which, int steps, const double *range, double *p,
       struct sums *s)
{
	static const double factors[] = { 1.0, 0.3, 0.05 }, stay[] = { 0.0, 0.0 };
	pass_fn pass = find_pass(t, which);
	struct sums trial_sums;
	double step[MAX_COLUMNS], step2[MAX_COLUMNS], trial[MAX_COLUMNS], room[2];
	const bool shaped = t->parameters > t->columns && t->kind != POWER;

	const bool projects = shaped && !t->inverse && which == NORMAL;

	pass(segment, p, s);
	if (projects)
		project(t, p, s);
	for (int round = 0; round < steps && isfinite(objective(s, which)); round++) {
		const double now = objective(s, which);
		double promised = solve_step(t, s, room_of(t, range, p, room), step);
		if (s->rss <= PERFECT * segment->m || (which == NORMAL && promised <= SETTLED * now))
			break;
		bool better = false;
		for (int k = 0; k < 3 && !better; k++) {
			if (!take_step(t, p, step, factors[k], trial))
				continue;
			pass(segment, trial, &trial_sums);
			if (projects)
				project(t, trial, &trial_sums);
			if (shaped && t->inverse && !(objective(&trial_sums, which) < now) && isfinite(trial_sums.rss)) {
				/* The coefficients have not followed the shape: one step of theirs alone. */
				solve_step(t, &trial_sums, stay, step2);
				if (!take_step(t, trial, step2, 1.0, trial))
					continue;
				pass(segment, trial, &trial_sums);
			}
			if (objective(&trial_sums, which) < now) {
				memcpy(p, trial, sizeof(trial));
				*s = trial_sums;
				better = true;
			}
		}
		if (!better || objective(s, which) > now * (1 - SETTLED))
			break;
	}
	if (projects)
		find_pass(t, PLAIN)(segment, p, s);
}

static double
error_of(const struct segment *segment, const struct sums *s, enum metric metric, double magnitude)
{
	double value;
	switch (metric) {
	case SMAPE:
		value = s->smape / segment->m;
		break;
	case SMAPE_POOLED:
		value = s->magnitude + magnitude > 0.0 ? s->off / (s->magnitude + magnitude) : 0.0;
		break;
	case MAPE:
		value = s->mape / segment->m;
		value = value > 1e200 ? INFINITY : value;
		break;
	default:
		value = sqrt(s->rss / segment->m);
	}
	return isfinite(value) ? value : INFINITY;
}

static void
segment_of(const struct growing *g, double origin, struct segment *segment)
{
	const struct series *s = g->s;
	const double span = g->last > g->first ? s->x[g->last] - s->x[g->first] : 1.0;

	segment->m = g->last - g->first + 1;
	segment->x = s->x + g->first;
	segment->y = s->y + g->first;
	segment->log_x = s->log_x + g->first;
	segment->inverse_y = s->inverse_y + g->first;
	segment->origin = origin;
	segment->inverse_span = 1.0 / span;
	segment->log_origin = s->log_x[g->first];
	segment->near = NEAR;
	segment->floor = s->floor;
}

static bool
applicable(const struct growing *g, const struct template *t)
{
	if (g->last - g->first + 1 < t->least)
		return false;
	if ((t->kind == LOGARITHM || t->kind == POWER) && !(g->s->x[g->first] > 0.0))
		return false;
	if (t->inverse || t->kind == POWER)
		return g->low > 0.0 || g->high < 0.0;
	return true;
}

/* Reciprocals of polynomials have a second start, whose weights trust large samples less. */
static void
better_start(const struct growing *g, const struct segment *segment, const struct template *t, double *p)
{
	double other[MAX_COLUMNS];
	struct sums mine, rival;

	back_substitute(g, &g->gentle_poly, t->columns, other);
	find_pass(t, PLAIN)(segment, p, &mine);
	find_pass(t, PLAIN)(segment, other, &rival);
	if (objective(&rival, PLAIN) < objective(&mine, PLAIN))
		memcpy(p, other, sizeof(other));
}

/* A constant of about the size of most samples, whatever the outliers are; the shape is that of p. */
static void
level(const struct growing *g, const struct template *t, const double *p, double *out)
{
	const double m = g->last - g->first + 1;
	double size = g->low < 0.0 && g->high > 0.0 ? g->sy / m : copysign(exp(g->log_y / m), g->sy);

	memset(out, 0, MAX_COLUMNS * sizeof(*out));
	out[0] = t->inverse ? 1.0 / size : size;
	if (t->parameters > t->columns && t->kind != POWER)
		out[t->columns] = p[t->columns];
}

/* From the least squares p to the least relative distances; outliers may have led the former astray. */
static void
refine_robust(const struct segment *segment, const struct template *t, const double *range, double *start, double *p,
	      struct sums *s)
{
	struct sums rival;

	anneal(segment, t, range, start);
	refine(segment, t, ROBUST, ROBUST_STEPS, range, start, &rival);
	if (objective(&rival, ROBUST) < objective(s, ROBUST)) {
		memcpy(p, start, MAX_COLUMNS * sizeof(*p));
		*s = rival;
	} else {
		refine(segment, t, ROBUST, ROBUST_STEPS, range, p, s);
	}
}

void
fit_template(const struct growing *g, const struct template *t, const struct options *o, struct fitted *out)
{
	double robust_start[MAX_COLUMNS], magnitude = 0.0;
	struct start starts[2];
	struct segment segment;
	struct sums s;
	bool linear = t->kind == POLYNOMIAL || t->kind == LOGARITHM;

	out->error = out->rss = INFINITY;
	out->origin = 0.0;
	memset(out->p, 0, sizeof(out->p));
	if (!applicable(g, t))
		return;
	int count = start_values(g, t, starts);
	double best = INFINITY;
	for (int k = 0; k < count; k++) {
		double *p = starts[k].p;
		const double *range = starts[k].log_range;
		/* The grid knows the sum of squares of each of its shapes; the best between them is a little lower. */
		if (k > 0 && !o->robust && (t->inverse ? UNSURE_INVERSE : UNSURE) * starts[k].expected > out->rss)
			continue;
		segment_of(g, starts[k].origin, &segment);
		if (t->inverse && t->kind == POLYNOMIAL)
			better_start(g, &segment, t, p);
		if (o->robust)
			level(g, t, p, robust_start);
		if (t->inverse || !linear)
			refine(&segment, t, NORMAL, STEPS, range, p, &s);
		else
			find_pass(t, PLAIN)(&segment, p, &s);
		if (o->robust)
			refine_robust(&segment, t, range, robust_start, p, &s);
		double value = objective(&s, o->robust ? ROBUST : NORMAL);
		if (!(value < best))
			continue;
		best = value;
		if (o->metric == SMAPE_POOLED) {
			magnitude = 0.0;
			for (int i = 0; i < segment.m; i++)
				magnitude += fabs(segment.y[i]);
		}
		out->rss = s.rss;
		out->error = error_of(&segment, &s, o->metric, magnitude);
		out->origin = starts[k].origin;
		memcpy(out->p, p, sizeof(out->p));
	}
}

/* Whether a + b (ln x - ln x_first) can be written as a + b ln x: the two terms must not cancel. */
static bool
can_move(const double *p, double first, double last, bool inverse)
{
	double one = fabs(p[0]), other = fabs(p[0] + p[1] * (last - first));
	double terms = fabs(p[0]) + fabs(p[1]) * fmax(fabs(first), fabs(last));

	return terms <= CANCELLATION * (inverse ? fmin(one, other) : fmax(one, other));
}

bool
to_units(const struct growing *g, const struct template *t, const struct fitted *f, double *p, double *origin)
{
	const double *x = g->s->x, *log_x = g->s->log_x, scale = t->inverse ? 1.0 / g->s->scale : g->s->scale;
	const double inverse_span = g->last > g->first ? 1.0 / (x[g->last] - x[g->first]) : 1.0;
	double factor = 1.0, terms = 0.0;
	bool good = true;

	for (int k = 0; k < t->columns && t->parameters > 1; k++)
		terms += fabs(f->p[k]);
	*origin = t->kind == LOGARITHM || t->kind == POWER ? 0.0 : f->origin;
	switch (t->kind) {
	case POLYNOMIAL:
		for (int k = 0; k < t->columns; k++, factor *= inverse_span) {
			p[k] = f->p[k] * factor * scale;
			good = good && isfinite(1.0 / factor);
		}
		break;
	case LOGARITHM:
		good = can_move(f->p, log_x[g->first], log_x[g->last], t->inverse);
		p[0] = (f->p[0] - f->p[1] * log_x[g->first]) * scale;
		p[1] = f->p[1] * scale;
		break;
	case SHIFTED_LOGARITHM:
		p[0] = (f->p[0] + f->p[1] * log(inverse_span)) * scale;
		p[1] = f->p[1] * scale;
		p[2] = f->p[2] / inverse_span;
		good = p[2] > 0.0 && isfinite(x[g->last] - x[g->first] + p[2]);
		break;
	case EXPONENTIAL:
		p[0] = f->p[0] * scale;
		p[1] = f->p[1] * scale;
		p[2] = f->p[2] * inverse_span;
		break;
	case POWER:
		p[0] = f->p[0] * exp(-f->p[1] * log_x[g->first]) * scale;
		p[1] = f->p[1];
		good = fabs(p[1]) * fmax(fabs(log_x[g->first]), fabs(log_x[g->last])) < MAX_POWER;
		break;
	}
	for (int k = 0; k < t->parameters; k++)
		good = good && isfinite(p[k]) && (t->columns == 1 || f->p[k] == 0.0 || fabs(p[k]) >= LEAST);
	return good && terms <= MOST / scale;
}

bool
admitted(const struct growing *g, const struct template *t, const struct options *o, const struct fitted *f)
{
	struct segment segment;
	double low, high, p[MAX_COLUMNS], origin;

	segment_of(g, f->origin, &segment);
	if (!to_units(g, t, f, p, &origin))
		return false;
	if (!t->inverse && !t->bulges)
		return true;
	if (t->bulges && segment.m < o->samples_per_parameter * t->parameters)
		return false;
	if (!look_between(&segment, t, f->p, g->last + 1 < g->s->n ? &g->s->x[g->last + 1] : NULL, &low, &high))
		return false;
	if (!t->bulges)
		return true;
	double most = fmax(fabs(g->low), fabs(g->high));
	double room = o->bulge * (g->high - g->low) + 1e-9 * most;
	return low >= g->low - room && high <= g->high + room;
}

static double
limit(const struct options *o, double kappa, double best)
{
	return best + fmax(o->kappa_rel * best, kappa);
}

double
in_units(const struct growing *g, const struct options *o, double error)
{
	return o->metric == RMSE ? error * g->s->scale : error;
}

/* The absolute margin, in the unit in which errors are compared; it shrinks as samples become many. */
static double
margin(const struct growing *g, const struct options *o)
{
	const double points = g->last - g->first + 1;
	double kappa = o->metric == RMSE ? o->kappa / g->s->scale : o->kappa;

	return points > o->kappa_points ? kappa * o->kappa_points / points : kappa;
}

int
choose(const struct growing *g, const struct template *ts, int count, const struct options *o, double *error)
{
	const double kappa = margin(g, o);
	double errors[MAX_TEMPLATES], best = INFINITY;
	struct fitted f;
	int chosen = -1, tried = 0;

	/* ts ascends in rank. Higher ranks are left out once they cannot change the choice any more. */
	while (tried < count) {
		const struct template *t = &ts[tried];
		double value = INFINITY;
		if (!t->bulges || g->last - g->first + 1 >= o->samples_per_parameter * t->parameters) {
			fit_template(g, t, o, &f);
			value = f.error;
			/* Beyond the margin of the best it can never be chosen, admitted or not. */
			if (value <= limit(o, kappa, best) && !admitted(g, t, o, &f))
				value = INFINITY;
		}
		errors[tried++] = value;
		best = value < best ? value : best;
		if (tried < count && ts[tried].rank == t->rank)
			continue;
		chosen = -1;
		for (int k = 0; k < tried && best < INFINITY; k++) {
			if (errors[k] > limit(o, kappa, best))
				continue;
			if (chosen < 0 || (ts[k].rank == ts[chosen].rank && errors[k] < errors[chosen]))
				chosen = k;
		}
		/* An error of kappa at most stays within the margin whatever the best becomes. */
		if (chosen >= 0 && errors[chosen] <= kappa)
			break;
	}
	*error = chosen >= 0 ? in_units(g, o, errors[chosen]) : INFINITY;
	return chosen;
}
