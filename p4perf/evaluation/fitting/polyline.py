"""Straights through the measured points of a sweep, and how far from the truth they can be: quick, while measuring.

Every place of the grid gets an estimate and a bound of its relative error, from the starts so far. The curve is
a chain of straights, on the axes (linear, logarithmic in x, or in both) on which ``k`` straights have the least
``n ln(1 + S/n) + (3 k - 1) ln(n + 1)``; ``S`` are the squares of the distances of ``n`` points, in units of their
variance. Around its straight the curve wiggles: what scatters more than starts of a point do among each other. A cost
is a sum of parts that wiggle by themselves, so the variance of the wiggle grows with the curve, not with its square; on
logarithmic axes of both it is relative. At the standard deviations ``w`` of the wiggle, ``s`` of the median of a point
and ``l`` of the straight there,

* a measured point is known to ``z sqrt((1 - a)^2 l^2 + a s^2)``, with the share ``a = w^2 / (w^2 + s^2)`` of its own;
  one that is ``d > c s`` from its straight has a wiggle of at least ``d^2 - (c s)^2``,
* a place between points of a straight to ``z sqrt(l^2 + w^2)``,
* a place between two straights lies on one of them: half of their distance is added. A straight of two points is no
  evidence: half of their distance is added there;
* a point without a straight of its own may be a bad start, until a second one agrees: half of its distance is added;
* of two starts that are far apart one is bad, until a third one says which: half of their distance is added.

As long as few starts were repeated, any scatter counts as noise and as wiggle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

Z = 2.8
"""Standard deviations of a bound: the largest error of nine in ten recorded sweeps is within."""

APART = 2.2
"""A point that many standard deviations from its straight wiggles by itself."""

NOISE, NOISE_WEIGHT = 0.01, 2.0
"""Relative standard deviation of starts before anything is known of it, and the degrees of freedom this counts for."""

OUTLIER = 2.5
"""Starts this many standard deviations from the median of their point are far apart from the others."""

AROUND = 3
"""Points to either side whose starts say how far those of a point scatter: beyond a cache they scatter more."""

SIGMA_PER_DEVIATION = 1.5
"""Standard deviation over the median of absolute deviations, of normally distributed values."""

WIGGLE, WIGGLE_WEIGHT = 0.01, 2.0
"""The same of the curve around its straights, where it has its median."""

LEAST_WIGGLE = 0.1
"""Share of this variance that no evidence takes away."""

MOST_SEGMENTS = 12

LEAST_SHARE = 0.1
"""Errors are relative to the curve, but at least to this share of its median: a cost of zero has no relative error."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Polyline:
    """Estimates at all places, NaN beyond the measured points, and bounds of their relative errors, at 90 %."""

    values: Array
    bounds: Array


def polyline(x: Sequence[float], starts: Sequence[Sequence[float]]) -> Polyline:
    """The polyline of a sweep: values of the starts at every place of an ascending grid."""
    grid = np.array(x, dtype=float)
    known = np.flatnonzero([len(s) for s in starts])
    values, bounds = np.full(len(grid), np.nan), np.full(len(grid), np.inf)
    if not len(known):
        return Polyline(values, bounds)
    points = _Points.of(grid, known, [starts[int(n)] for n in known])
    axes = [a for a in AXES if a.fits(points)]
    found = [(_segments(points, a), a) for a in axes]
    segments, chosen = min(found, key=lambda pair: pair[0].criterion)
    return _bounded(points, segments, chosen, values, bounds)


@dataclass(frozen=True, slots=True)
class _Points:
    """Measured points; variances are relative."""

    grid: Array
    known: NDArray[np.int_]
    medians: Array
    counts: NDArray[np.int_]
    squares: Array
    """Sums of the squared relative deviations of the starts of every point from their median.

    An outlier hardly moves the median of three and more: there it counts as :data:`OUTLIER` standard deviations of the
    starts around it.
    """
    least: float
    """What errors are relative to at least."""

    @classmethod
    def of(cls, grid: Array, known: NDArray[np.int_], starts: Sequence[Sequence[float]]) -> _Points:
        medians = np.array([median(s) for s in starts])
        least = LEAST_SHARE * float(np.median(np.abs(medians))) or 1.0
        scale = np.maximum(np.abs(medians), least)
        deviations = [np.sort(np.abs(np.array(s) - m)) / c for s, m, c in zip(starts, medians, scale, strict=True)]
        # The median of three and more is one of them, or lies between two.
        others = [own[len(own) > 2 :] if len(own) > 1 else own[:0] for own in deviations]
        around = [np.concatenate(others[max(0, n - AROUND) : n + AROUND + 1]) for n in range(len(others))]
        sigmas = [max(NOISE, SIGMA_PER_DEVIATION * float(np.median(d)) if len(d) else 0.0) for d in around]
        squares = [
            float(np.sum(np.minimum(d, OUTLIER * sigma if len(d) > 2 else np.inf) ** 2))
            for d, sigma in zip(deviations, sigmas, strict=True)
        ]
        return cls(grid, known, medians, np.array([len(s) for s in starts]), np.array(squares), least)

    def scale(self, values: Array) -> Array:
        return np.maximum(np.abs(values), self.least)

    def wiggle(self, variance: float, axes: _Axes, values: Array) -> Array:
        """Relative variance of the wiggle at some values of the curve, from that at their median."""
        at_median = variance * np.ones(len(values))
        return at_median if axes.log_y else at_median * self.least / LEAST_SHARE / self.scale(values)

    def start_variances(self, prior: float) -> Array:
        """Variance of a start of each point: its evidence, shrunk to that of the points around it, and that to all."""
        freedom = self.counts - 1
        pooled = (NOISE_WEIGHT * prior + float(self.squares.sum())) / (NOISE_WEIGHT + float(freedom.sum()))
        near = np.abs(np.subtract.outer(np.arange(len(freedom)), np.arange(len(freedom)))) <= AROUND
        around = (NOISE_WEIGHT * pooled + near @ self.squares) / (NOISE_WEIGHT + near @ freedom)
        return (NOISE_WEIGHT * around + self.squares) / (NOISE_WEIGHT + freedom)


@dataclass(frozen=True, slots=True)
class _Axes:
    log_x: bool
    log_y: bool

    def fits(self, points: _Points) -> bool:
        return not (self.log_x and points.grid[0] <= 0) and not (self.log_y and float(points.medians.min()) <= 0)

    def u(self, x: Array) -> Array:
        return np.log(x) if self.log_x else x

    def v(self, y: Array) -> Array:
        return np.log(y) if self.log_y else y

    def back(self, v: Array) -> Array:
        return np.exp(v) if self.log_y else v


AXES = (_Axes(False, False), _Axes(True, False), _Axes(True, True))


@dataclass(frozen=True, slots=True)
class _Segments:
    """The segments of a series of points: where each ends (exclusive), and the weighted squares of all."""

    criterion: float
    ends: tuple[int, ...]
    squares: float
    weights: Array

    @property
    def ranges(self) -> list[tuple[int, int]]:
        return list(zip((0, *self.ends[:-1]), self.ends, strict=True))


def _segments(points: _Points, axes: _Axes) -> _Segments:
    """The segments of least criterion, by dynamic programming over the sums of squares of all intervals."""
    u, v, n = axes.u(points.grid[points.known]), axes.v(points.medians), len(points.known)
    noise = points.start_variances(NOISE**2) / points.counts
    weights = (
        1
        / (noise + points.wiggle(WIGGLE**2, axes, points.medians))
        / (1.0 if axes.log_y else points.scale(points.medians) ** 2)
    )
    a, b = (u - u[0]) / (float(u[-1] - u[0]) or 1.0), v - float(np.mean(v))
    sums = np.array([np.concatenate([[0.0], np.cumsum(weights * f)]) for f in (np.ones(n), a, b, a * a, a * b, b * b)])
    w, su, sv, suu, suv, svv = sums[:, None, :] - sums[:, :, None]
    longer = np.arange(n + 1)[None, :] - np.arange(n + 1)[:, None] > 2  # two points lie on a straight
    with np.errstate(divide="ignore", invalid="ignore"):
        left = svv - sv * sv / w - (suv - su * sv / w) ** 2 / (suu - su * su / w)
    squares = np.where(longer, np.maximum(left, 0.0), 0.0)
    squares[np.tril_indices(n + 1)] = np.inf
    best, origins = squares[0], []
    found: _Segments | None = None
    for k in range(1, min(MOST_SEGMENTS, n) + 1):
        if k > 1:
            totals = best[:, None] + squares
            origins.append(np.argmin(totals, axis=0))
            best = np.min(totals, axis=0)
        total = float(best[n])
        criterion = n * math.log1p(total / n) + (3 * k - 1) * math.log(n + 1)
        if found is None or criterion < found.criterion:
            ends = [n]
            for origin in reversed(origins):
                ends.append(int(origin[ends[-1]]))
            found = _Segments(criterion, tuple(reversed(ends)), total, weights)
    assert found is not None  # noqa: S101 - there is at least one segment
    return found


@dataclass(frozen=True, slots=True)
class _Straight:
    """``v + slope (u - centre)`` with the variances of its height and slope."""

    centre: float
    height: float
    slope: float
    height_variance: float
    slope_variance: float

    @classmethod
    def of(cls, u: Array, v: Array, weights: Array) -> _Straight:
        mass = float(weights.sum())
        centre, height = float(weights @ u) / mass, float(weights @ v) / mass
        width = float(weights @ (u - centre) ** 2)
        slope = float(weights @ ((u - centre) * (v - height))) / width if width > 0 else 0.0
        return cls(centre, height, slope, 1 / mass, 1 / width if width > 0 else 0.0)

    def at(self, u: Array) -> tuple[Array, Array]:
        return self.height + self.slope * (u - self.centre), self.height_variance + self.slope_variance * (
            u - self.centre
        ) ** 2


def _bounded(points: _Points, segments: _Segments, axes: _Axes, values: Array, bounds: Array) -> Polyline:
    u, v, known = axes.u(points.grid), axes.v(points.medians), points.known
    ranges = segments.ranges
    freedom = WIGGLE_WEIGHT + sum(max(0, end - begin - 2) for begin, end in ranges)
    excess = (WIGGLE_WEIGHT + segments.squares) / freedom
    noise = points.start_variances(NOISE**2) / points.counts
    scatter = excess * float(np.mean(noise + WIGGLE**2))
    wiggle = max(scatter - float(np.mean(noise)), LEAST_WIGGLE * WIGGLE**2)
    noise = points.start_variances(max(NOISE**2, scatter)) / points.counts
    widened = math.sqrt(1 + 2 / freedom)
    z, odd = Z * widened, APART * widened
    straights = [_Straight.of(u[known[b:e]], v[b:e], segments.weights[b:e]) for b, e in ranges]

    def on(straight: _Straight, places: Array | NDArray[np.int_]) -> tuple[Array, Array]:
        """Values and relative variances of a straight."""
        at, variance = straight.at(u[places])
        at = axes.back(at)
        return at, excess * variance / (1.0 if axes.log_y else points.scale(at) ** 2)

    for (begin, end), straight in zip(ranges, straights, strict=True):
        inside = np.arange(known[begin], known[end - 1] + 1)
        values[inside], variance = on(straight, inside)
        bounds[inside] = z * np.sqrt(variance + points.wiggle(wiggle, axes, values[inside]))
        if end - begin == 2:
            bounds[inside] += abs(points.medians[begin] - points.medians[begin + 1]) / 2 / points.scale(values[inside])
        here = known[begin:end]
        beside = (points.medians[begin:end] - values[here]) / points.scale(values[here])
        own = points.wiggle(wiggle, axes, points.medians[begin:end])
        own = np.maximum(own, beside**2 - odd**2 * noise[begin:end])
        share = own / (own + noise[begin:end])
        variance = variance[here - known[begin]]
        values[here] += share * (points.medians[begin:end] - values[here])
        bounds[here] = z * np.sqrt((1 - share) ** 2 * variance + share * noise[begin:end])
    for (_, end), (one, two) in zip(ranges, pairwise(straights), strict=False):
        gap = np.arange(known[end - 1] + 1, known[end])
        low, high = sorted(points.medians[end - 1 : end + 1])
        ways = [on(straight, gap) for straight in (one, two)]
        reached = [np.clip(way, 2 * low - high, 2 * high - low) for way, _ in ways]
        values[gap] = (reached[0] + reached[1]) / 2
        apart = np.abs(reached[0] - reached[1]) / 2 / points.scale(values[gap])
        bounds[gap] = apart + z * np.sqrt(np.maximum(ways[0][1], ways[1][1]) + points.wiggle(wiggle, axes, values[gap]))
    apart = np.where(points.counts == 2, np.sqrt(points.squares / 2), 0.0)
    bounds[known] += np.where(apart > OUTLIER * NOISE, apart, 0.0)
    for begin, end in ranges:
        if end - begin == 1 and points.counts[begin] == 1 and len(known) > 1:
            near = [n for n in (begin - 1, begin + 1) if 0 <= n < len(known)]
            expected = np.interp(u[known[begin]], u[known[near]], points.medians[near])
            bounds[known[begin]] += abs(points.medians[begin] - expected) / 2 / points.scale(points.medians[begin])
    return Polyline(values, bounds)
