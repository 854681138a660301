/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fit engine: least squares of function templates on every segment of a series.
 *
 * A segment is the samples first..last of the series. A template is q(x) = sum(c_k * column_k(x; shape)), or its
 * reciprocal; see p4perf/models/templates.py. In here parameters are local: the abscissa of a segment is scaled to u = (x -
 * x_first) / span, ordinates by the largest |y| of the series, so that no unit can overflow or change a choice.
 */
#ifndef P4PERF_ENGINE_H
#define P4PERF_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_COLUMNS 6
#define MAX_GRID 96
#define MAX_TEMPLATES 32

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)
/* The loops over samples exist for several generations of vector units; the loader picks one. */
#define HOT __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define HOT
#endif
#define INLINE static inline __attribute__((always_inline))

enum kind { POLYNOMIAL, LOGARITHM, SHIFTED_LOGARITHM, EXPONENTIAL, POWER };

enum metric { SMAPE, SMAPE_POOLED, MAPE, RMSE };

struct template {
	enum kind kind;
	int columns;    /* linear coefficients */
	int parameters; /* with the shape */
	int least;      /* fewest samples that it is fitted to */
	bool inverse;
	bool bulges; /* whether it may leave the range of its samples between them */
	double rank; /* psi of Eq. 3 */
};

/* A series, x ascending. */
struct series {
	int n;
	const double *x;
	const double *y;         /* divided by scale */
	const double *log_x;     /* ln x; NaN where x <= 0 */
	const double *inverse_y; /* 1 / |y|, 1e300 where y is zero */
	double floor; /* smallest sum of magnitudes that a relative distance is taken of; divided by scale */
	double scale;
};

/* What one pass over the samples of a segment adds up. h and b are the normal equations of a Gauss-Newton step. */
struct sums {
	double rss;
	double smape;
	double mape;
	double off;       /* sum |y - f| */
	double magnitude; /* sum |f| */
	double h[2 * MAX_COLUMNS - 1];
	double b[MAX_COLUMNS];
};

/* A segment as the passes see it. */
struct segment {
	int m;
	const double *x, *y, *log_x, *inverse_y;
	double origin;      /* of u, in units of x */
	double inverse_span; /* u = (x - origin) * inverse_span */
	double log_origin;
	double near; /* relative distances below this weigh alike in a robust fit */
	double floor; /* that of the series */
};

/* p: coefficients, then the shape (power: factor, exponent); about segment->origin. */
typedef void (*pass_fn)(const struct segment *segment, const double *p, struct sums *out);

enum pass { PLAIN, NORMAL, ROBUST, PASSES };

/*
 * The pass for a template: PLAIN evaluates, NORMAL adds the normal equations of the squares. ROBUST adds those of the
 * relative distances: squares weighted by the reciprocal of the distance.
 */
pass_fn find_pass(const struct template *t, enum pass which);

/*
 * Solve the step from the normal equations; returns the promised decrease of the sum of squares. The last parameter
 * moves by room[0] to room[1] at the most (NULL: freely).
 */
double solve_step(const struct template *t, const struct sums *s, const double *room, double *step);

/*
 * The parameters after a step, or part of one: a shape moves by a factor, the coefficients follow it such that the sum at
 * both ends of the segment goes where the step says, for they may be next to interchangeable with the shape. False if a
 * parameter is not finite then. out may be p.
 */
bool take_step(const struct template *t, const double *p, const double *step, double factor, double *out);

/*
 * Values of the curve halfway between samples: lowest, highest, and whether the denominator keeps its sign, to the next
 * sample behind the segment (next; NULL: there is none), because the curve is read up to there.
 */
bool look_between(const struct segment *segment, const struct template *t, const double *p, const double *next, double *low,
		  double *high);

/* A triangle of Givens rotations: least squares of columns u^0 .. u^5, all degrees at once. */
struct triangle {
	double r[MAX_COLUMNS][MAX_COLUMNS];
	double d[MAX_COLUMNS];
};

/* Running sums of one family of shapes over the samples of the growing segment, one element a grid point. */
struct grid {
	int size;
	double log_first, log_step;
	double shape[MAX_GRID], now[MAX_GRID];
	double z[MAX_GRID], zz[MAX_GRID], zy[MAX_GRID];
	double wz[MAX_GRID], wzz[MAX_GRID], wzq[MAX_GRID];
};

/* Everything that is known of the segment first..last, kept up to date as last grows. */
struct growing {
	const struct series *s;
	int first, last;
	double span0; /* scale of the abscissa in the triangles */
	double low, high;
	struct triangle poly, inverse_poly, gentle_poly; /* rows weigh 1, y^2, |y| */
	double sy, syy;     /* sum y, sum y^2 */
	double log_y;       /* sum ln |y| */
	double w, wq, wqq;  /* sums of y^4, y^3, y^2: weights of reciprocals */
	double lz, lzz, lzy, lwz, lwzz, lwzq;
	double p, pl, pll, pt, plt; /* of y^2: log-log regression */
	struct grid growth, decay, shift;
};

/* Ratios exp(-k dx) of the grid of rates for every step between samples; shared by all threads. */
struct rates {
	bool polynomials, reciprocals, exponentials, shifts; /* what is wanted at all */
	int size;
	double log_first, log_step;
	double rate[MAX_GRID];
	double *ratio; /* n x MAX_GRID */
};

bool rates_init(struct rates *r, const struct series *s, const struct template *ts, int count);
void growing_start(struct growing *g, const struct series *s, const struct rates *r, int first);
void growing_add(struct growing *g, const struct rates *r);

/* Coefficients of the leading block of a triangle, for the span of the grown segment. */
void back_substitute(const struct growing *g, const struct triangle *t, int columns, double *p);

/* Where the fit of a template begins. */
struct start {
	double p[MAX_COLUMNS];
	double origin;
	double log_range[2]; /* of the shape */
	double expected;     /* sum of squares that the grid of shapes promises; 0 where there is no grid */
};

/* Starts of a template on a grown segment, the most promising first. Returns their number: none, one or two. */
int start_values(const struct growing *g, const struct template *t, struct start starts[2]);

struct options {
	enum metric metric;
	double kappa, kappa_rel;
	double kappa_points; /* kappa holds for segments of this number of samples, and less for longer ones */
	double bulge;           /* largest excursion between samples, as a fraction of their range */
	int samples_per_parameter; /* of templates that can bulge */
	double floor; /* size below which samples count as this large in sMAPE, in units of y */
	bool robust;
};

/* One fitted template; error is infinite where it does not apply. */
struct fitted {
	double p[MAX_COLUMNS];
	double origin;
	double error;
	double rss;
};

void fit_template(const struct growing *g, const struct template *t, const struct options *o, struct fitted *out);
bool admitted(const struct growing *g, const struct template *t, const struct options *o, const struct fitted *f);

/* An error in the unit of y where the metric has one. */
double in_units(const struct growing *g, const struct options *o, double error);

/* The lowest rank within the margin of the best error; returns the index of the template, -1 if none applies. */
int choose(const struct growing *g, const struct template *ts, int count, const struct options *o, double *error);

/* Parameters in units of x and y, written about *origin. False if they or the curve about the origin overflow. */
bool to_units(const struct growing *g, const struct template *t, const struct fitted *f, double *p, double *origin);

/* All segments that begin at one sample of one row: the ends are ends[from..to), ascending. */
struct run {
	int64_t row, first, from, to;
};

/* Fit or choose for every segment of every run. Arrays have one element (or one per template) for every end. */
struct task {
	const struct series *rows;
	const struct template *templates;
	int templates_count;
	struct options options;
	struct rates rates;
	const struct run *runs;
	int64_t runs_count;
	const int64_t *ends;
	double *error;      /* of the chosen template; or ends x templates */
	int64_t *choice;    /* index of the chosen template, -1 if none; NULL: fit every template instead */
	double *parameters; /* ends x templates x MAX_COLUMNS, in units of x and y */
	double *origins;    /* ends x templates */
};

/* Uses this number of threads; calls progress(context, share) now and then, which may return false to give up. */
enum outcome { DONE, GIVEN_UP, NO_THREADS };
enum outcome carry_out(struct task *task, int threads, bool (*progress)(void *context, double share), void *context);

#endif
