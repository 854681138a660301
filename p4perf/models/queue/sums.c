/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over arrays of probabilities, term by term: all terms are positive, so that small results are as exact as large
 * ones, and what is zero is left out. */
#include "sums.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* What is less is no probability that matters, and would make the ends of rows longer and slower. */
#define TINY 1e-40
/* Differences of sums that are less are rounding. */
#define ROUNDING 1e-18

/* Compiled for several processors, and chosen at run time, where GCC and the C library can. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define WIDE
#endif

struct support {
	int64_t low, high;
};

static inline __attribute__((always_inline)) void
axpy(double *restrict to, const double *restrict from, double factor, int64_t count)
{
	for (int64_t k = 0; k < count; k++)
		to[k] += factor * from[k];
}

/* Adds the elements of `from`, k places further and weighted, to `to`, which has `length` elements; the rest goes to
 * `over`. */
static inline __attribute__((always_inline)) void
shift_onto(double *restrict to, int64_t length, double *restrict over, int64_t over_length, const double *restrict from,
	   struct support s, int64_t k, double share)
{
	if (share == 0.0)
		return;
	int64_t stop = s.high + k <= length ? s.high : length - k;
	if (stop < s.low)
		stop = s.low;
	axpy(to + s.low + k, from + s.low, share, stop - s.low);
	int64_t end = s.high + k - length < over_length ? s.high : over_length + length - k;
	if (over != NULL && end > stop)
		axpy(over + stop + k - length, from + stop, share, end - stop);
}

/* Adds the convolution of `from` with the base to `to` and `over`: four elements of the base at a time as far as that
 * goes, so that `to` is loaded and stored less often. */
static inline __attribute__((always_inline)) void
convolve_onto(double *restrict to, int64_t length, double *restrict over, int64_t over_length, const double *restrict from,
	      struct support s, struct pmf base)
{
	int64_t k = 0;

	while (k < base.count) {
		const double *b = base.values + k, *in = from + s.low;
		int64_t room = length - (s.low + k + 3), count = s.high - s.low < room ? s.high - s.low : room;
		if (count < 8 || k + 4 > base.count || (b[0] == 0.0) + (b[1] == 0.0) + (b[2] == 0.0) + (b[3] == 0.0) > 1) {
			shift_onto(to, length, over, over_length, from, s, k++, b[0]);
			continue;
		}
		double b0 = b[0], b1 = b[1], b2 = b[2], b3 = b[3], *out = to + s.low + k;
		out[0] += b0 * in[0];
		out[1] += b0 * in[1] + b1 * in[0];
		out[2] += b0 * in[2] + b1 * in[1] + b2 * in[0];
		for (int64_t i = 3; i < count; i++)
			out[i] += b0 * in[i] + b1 * in[i - 1] + b2 * in[i - 2] + b3 * in[i - 3];
		out[count] += b1 * in[count - 1] + b2 * in[count - 2] + b3 * in[count - 3];
		out[count + 1] += b2 * in[count - 1] + b3 * in[count - 2];
		out[count + 2] += b3 * in[count - 1];
		struct support rest = { s.low + count, s.high };
		if (rest.high > rest.low)
			for (int64_t j = 0; j < 4; j++)
				shift_onto(to, length, over, over_length, from, rest, k + j, b[j]);
		k += 4;
	}
}

static inline __attribute__((always_inline)) double
largest_of(const double *row, int64_t count)
{
	double lanes[8] = { 0.0 }, found = 0.0;
	int64_t k = 0;

	for (; k + 8 <= count; k += 8)
		for (int64_t l = 0; l < 8; l++)
			lanes[l] = fabs(row[k + l]) > lanes[l] ? fabs(row[k + l]) : lanes[l];
	for (; k < count; k++)
		found = fabs(row[k]) > found ? fabs(row[k]) : found;
	for (int64_t l = 0; l < 8; l++)
		found = lanes[l] > found ? lanes[l] : found;
	return found;
}

static struct support
trimmed(double *row, int64_t low, int64_t high)
{
	while (high > low && row[high - 1] < TINY)
		row[--high] = 0.0;
	while (low < high && row[low] < TINY)
		row[low++] = 0.0;
	return (struct support){ low, high };
}

/* Row i is the i-fold convolution of the base, cut to a length, until its sum is negligible; returns how many rows
 * are not. Rows come as zeros. */
WIDE int64_t
sums_powers(struct pmf base, double *out, int64_t rows, int64_t length, double negligible)
{
	struct support s = { 0, 1 };

	out[0] = 1.0;
	for (int64_t i = 1; i < rows; i++) {
		double *row = out + i * length, total = 0.0;
		convolve_onto(row, length, NULL, 0, row - length, s, base);
		int64_t high = s.high + base.count - 1;
		s = trimmed(row, s.low, high < length ? high : length);
		for (int64_t k = s.low; k < s.high; k++)
			total += row[k];
		if (total < negligible)
			return i;
	}
	return rows;
}

/* Sum over i of row i convolved with the i-fold convolution of the base, by Horner's scheme. `out` and `scratch` have
 * width + (count - 1) (base.count - 1) elements and come as zeros; returns how many are used. */
WIDE int64_t
sums_mixture(const double *rows, int64_t count, int64_t width, struct pmf base, double *out, double *scratch)
{
	double *now = (count & 1) != 0 ? out : scratch, *next = (count & 1) != 0 ? scratch : out;
	int64_t high = width;

	memcpy(now, rows + (count - 1) * width, (size_t)width * sizeof(*now));
	for (int64_t i = count - 2; i >= 0; i--) {
		struct support s = trimmed(now, 0, high);
		int64_t longer = s.high > s.low ? s.high + base.count - 1 : 0;
		high = longer > width ? longer : width;
		memset(next, 0, (size_t)high * sizeof(*next));
		convolve_onto(next, high, NULL, 0, now, s, base);
		axpy(next, rows + i * width, 1.0, width);
		double *other = now;
		now = next;
		next = other;
	}
	return high;
}

/* Packet after packet: row i of `accepted` is what is in front of packet i + 1 where there is room, row i of `refused`
 * what is beyond, of all packets before as well. Row 0 of both is given, all others come as zeros. */
WIDE void
sums_admit(struct pmf base, double *accepted, double *refused, int64_t rows, int64_t room, int64_t over)
{
	struct support s = { 0, room };

	for (int64_t i = 1; i < rows; i++) {
		double *now = accepted + i * room, *beyond = refused + i * over;
		s = trimmed(now - room, s.low, s.high);
		memcpy(beyond, beyond - over, (size_t)over * sizeof(*beyond));
		if (s.high == s.low)
			continue;
		convolve_onto(now, room, beyond, over, now - room, s, base);
		int64_t high = s.high + base.count - 1;
		s.high = high < room ? high : room;
	}
}

/* Each row convolved with the base; rows of `out` have width + base.count - 1 elements and come as zeros. */
WIDE void
sums_smear(const double *rows, int64_t count, int64_t width, struct pmf base, double *out)
{
	int64_t length = width + base.count - 1;

	for (int64_t i = 0; i < count; i++)
		convolve_onto(out + i * length, length, NULL, 0, rows + i * width, (struct support){ 0, width }, base);
}

/* Adds rows of the changes of work, weighted, to cells of `out`. The row of room d is that of refusal plus the steps
 * 0 .. d - 1, of which step j begins at element j. Entries come in ascending order of their room; `row` has
 * max(width, depth - 1 + span) elements and comes as zeros. */
WIDE void
sums_cumulate(const struct changes *c, double *row, const int64_t *rooms, const double *weights, const int64_t *cells,
	      const int64_t *shifts, int64_t count, double *out, int64_t length)
{
	int64_t depth = 0, low = 0, high = c->width;

	memcpy(row, c->refused, (size_t)c->width * sizeof(*row));
	for (int64_t i = 0; i < count; i++) {
		for (; depth < rooms[i] && depth < c->depth; depth++) {
			axpy(row + depth, c->steps + depth * c->span, 1.0, c->span);
			if (depth + c->span > high)
				high = depth + c->span;
			/* Elements before the next step do not change any more. */
			while (low < depth && fabs(row[low]) < ROUNDING)
				low++;
		}
		if (weights[i] != 0.0)
			axpy(out + cells[i] * length + shifts[i] + low, row + low, weights[i], high - low);
	}
}

/* A matrix as the sum of few products of a column and a row: crosses through its largest element (adaptive cross
 * approximation), until none is larger than `tolerance` times the largest of all. `rest` is overwritten; `columns` has
 * `most` rows of `count` elements, `crossed` as many of `width`. Returns how many products, or `most` + 1 if those do
 * not do. */
WIDE int64_t
sums_cross(double *rest, int64_t count, int64_t width, double tolerance, double *columns, double *crossed, int64_t most)
{
	int64_t pivot = 0;
	double largest = 0.0, least = 0.0;

	for (int64_t i = 0; i < count; i++) {
		double top = largest_of(rest + i * width, width);
		if (top > largest) {
			largest = top;
			pivot = i;
		}
	}
	least = tolerance * largest;
	for (int64_t rank = 0;; rank++) {
		if (!(largest > least))
			return rank;
		if (rank == most)
			return most + 1;
		double *column = columns + rank * count, *row = crossed + rank * width;
		int64_t at = 0;
		memcpy(row, rest + pivot * width, (size_t)width * sizeof(*row));
		while (at < width - 1 && fabs(row[at]) != largest)
			at++;
		double by = 1.0 / row[at];
		for (int64_t k = 0; k < width; k++)
			row[k] *= by;
		largest = 0.0;
		for (int64_t i = 0; i < count; i++) {
			column[i] = rest[i * width + at];
			axpy(rest + i * width, row, -column[i], width);
			double top = largest_of(rest + i * width, width);
			if (top > largest) {
				largest = top;
				pivot = i;
			}
		}
	}
}

/* Less the probabilities that each cell leads to others: of cell c to c - down .. c + up, that is `span` of them, into
 * `bands` from c * stride on. `running` has rows of running sums of distributions, `which` and `first` the row of each cell and
 * the state of its first element; cell b has the states bounds[b] .. bounds[b + 1] - 1. */
void
sums_bands(const double *running, int64_t width, const int64_t *which, const int64_t *first, const int64_t *cells,
	   int64_t count, const int64_t *bounds, int64_t last, int64_t down, int64_t span, double *bands,
	   int64_t stride)
{
	for (int64_t i = 0; i < count; i++) {
		const double *row = running + which[i] * width;
		double *to = bands + cells[i] * stride, before = 0.0;
		for (int64_t k = 0; k <= span; k++) {
			int64_t cell = cells[i] - down + k;
			cell = cell < 0 ? 0 : cell > last ? last : cell;
			int64_t at = bounds[cell] - first[i];
			double sum = at <= 0 ? 0.0 : row[at <= width ? at - 1 : width - 1];
			if (k > 0)
				to[k - 1] = before - sum;
			before = sum;
		}
	}
}
