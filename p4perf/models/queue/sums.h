/* SPDX-License-Identifier: Apache-2.0 */
#ifndef P4PERF_SUMS_H
#define P4PERF_SUMS_H

#include <stdint.h>

/* Probabilities that are given value by value, from 0 on. */
struct pmf {
	const double *values;
	int64_t count;
};

/* Rows of the changes of work, by how much room there is; see sums_cumulate(). */
struct changes {
	const double *refused; /* row of room 0; width */
	const double *steps;   /* row d is what one more step of room, d to d + 1, changes; depth, span */
	int64_t width, depth, span;
};

int64_t sums_powers(struct pmf base, double *out, int64_t rows, int64_t length, double negligible);
int64_t sums_mixture(const double *rows, int64_t count, int64_t width, struct pmf base, double *out, double *scratch);
void sums_admit(struct pmf base, double *accepted, double *refused, int64_t rows, int64_t room, int64_t over);
void sums_smear(const double *rows, int64_t count, int64_t width, struct pmf base, double *out);
void sums_cumulate(const struct changes *c, double *row, const int64_t *rooms, const double *weights,
		   const int64_t *cells, const int64_t *shifts, int64_t count, double *out, int64_t length);
int64_t sums_cross(double *rest, int64_t count, int64_t width, double tolerance, double *columns, double *crossed,
		   int64_t most);
void sums_bands(const double *running, int64_t width, const int64_t *which, const int64_t *first, const int64_t *cells,
		int64_t count, const int64_t *bounds, int64_t last, int64_t down, int64_t span, double *bands,
		int64_t stride);

#endif
