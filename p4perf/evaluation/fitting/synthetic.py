"""Series with known truth: piecewise curves of random shape with relative noise, to judge derivations by.

>>> series = piecewise_series(1, 60, 3, noise=0.01)
>>> len(series.x), series.breakpoints, series.families
(60, (21, 37), ('log', 'log', 'const'))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from p4perf.errors import UsageError
from p4perf.models.templates import FloatArray

Scale = Literal["lin", "log"]
MIN_POINTS = 5
"""Smallest number of samples of a segment."""
LARGEST_X = 1e6
"""Last abscissa of a logarithmic scale; the first is 1."""
SHARP_SIGMA = 4.0
"""A breakpoint is sharp if a boundary two samples off costs more than this many standard deviations of the noise."""

Curve = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class SyntheticSeries:
    """Samples and what they were made of.

    Args:
        x: n abscissae, ascending, without unit: 1 to n, or from 1 to a million in equal ratios.
        y: n samples, ``truth * (1 + noise * normal deviate)``.
        truth: n values of the curve without noise, all positive; of the order of 100.
        breakpoints: index of the last sample of each segment but the last.
        sharp: for every breakpoint, whether it can be found to within a sample: the curve of the left segment,
            continued, is off by more than :data:`SHARP_SIGMA` standard deviations at the second sample of the right
            segment, and that of the right segment at the last sample but one of the left segment.
        noise: standard deviation of the noise as a fraction of the truth.
    """

    x: FloatArray
    y: FloatArray
    truth: FloatArray
    breakpoints: tuple[int, ...]
    sharp: tuple[bool, ...]
    families: tuple[str, ...]
    noise: float


def piecewise_series(
    seed: int,
    n: int,
    segments: int,
    *,
    noise: float = 0.01,
    families: Sequence[str] | None = None,
    x_scale: Scale = "lin",
) -> SyntheticSeries:
    """Draw a piecewise curve and samples of it.

    Every segment begins at the end of the one before (a bend) or off it by a factor of 1.25 to 2 (a step), and falls or
    rises by a factor of 1.25 to 2.5. Neighbouring segments are not both constant without a step.

    Args:
        segments: number of segments, each of :data:`MIN_POINTS` samples at least.
        families: names of function templates to draw from; by default all of :data:`FAMILIES`.

    Raises:
        UsageError: an argument is wrong, or the samples are too few for the segments.
    """
    known = tuple(FAMILIES)
    drawn_from = known if families is None else tuple(families)
    for family in drawn_from:
        if family not in FAMILIES:
            raise UsageError(f"there are no synthetic series of {family!r}", hint=f"known: {', '.join(known)}")
    if not drawn_from:
        raise UsageError("there must be one family at least")
    if x_scale not in ("lin", "log"):
        raise UsageError(f"there is no scale {x_scale!r}", hint="known: lin, log")
    if segments < 1 or n < segments * MIN_POINTS:
        raise UsageError(f"{n} samples cannot make {segments} segments of {MIN_POINTS} samples at least")
    if not 0 <= noise < 1:
        raise UsageError(f"noise is a fraction from 0 to below 1, not {noise:g}")
    rng = np.random.default_rng(seed)
    x = np.arange(1.0, n + 1) if x_scale == "lin" else np.geomspace(1.0, LARGEST_X, n)
    lengths = MIN_POINTS + rng.multinomial(n - segments * MIN_POINTS, rng.dirichlet(np.full(segments, 4.0)))
    bounds = np.append(0, np.cumsum(lengths))
    chosen = tuple(str(name) for name in rng.choice(drawn_from, segments))
    level, curves = float(rng.uniform(50, 200)), []
    for k, family in enumerate(chosen):
        step = rng.random() < 0.5 or (k > 0 and family == "const" == chosen[k - 1])
        level *= _factor(rng, level, 2.0) if step and k else 1.0
        end = level if family == "const" else level * _factor(rng, level, 2.5)
        curves.append(FAMILIES[family](x[bounds[k]], x[bounds[k + 1] - 1], level, end, rng))
        level = end
    truth = np.concatenate([curve(x[a:b]) for curve, a, b in zip(curves, bounds, bounds[1:], strict=False)])
    y = truth * (1 + noise * rng.standard_normal(n))
    breakpoints = tuple(int(b) - 1 for b in bounds[1:-1])
    sharp = tuple(
        _is_sharp(x, s, left, right, noise) for s, left, right in zip(breakpoints, curves, curves[1:], strict=False)
    )
    return SyntheticSeries(x, y, truth, breakpoints, sharp, chosen, noise)


def _factor(rng: np.random.Generator, level: float, most: float) -> float:
    """A factor from 1.25 to ``most``, or the inverse of one; it leads back where levels are extreme."""
    factor = float(rng.uniform(1.25, most))
    up = rng.random() < 0.5 if 25 <= level <= 400 else level < 25
    return factor if up else 1 / factor


def _is_sharp(x: FloatArray, breakpoint: int, left: Curve, right: Curve, noise: float) -> bool:
    inside_right, inside_left = x[breakpoint + 2 : breakpoint + 3], x[breakpoint - 1 : breakpoint]
    off_right = np.abs(left(inside_right) / right(inside_right) - 1)
    off_left = np.abs(right(inside_left) / left(inside_left) - 1)
    return bool(min(off_right[0], off_left[0]) > SHARP_SIGMA * max(noise, 1e-9))


def _constant(first: float, last: float, begin: float, end: float, rng: np.random.Generator) -> Curve:
    return lambda x: np.full_like(x, begin)


def _line(first: float, last: float, begin: float, end: float, rng: np.random.Generator) -> Curve:
    return lambda x: begin + (end - begin) * (x - first) / (last - first)


def _parabola(first: float, last: float, begin: float, end: float, rng: np.random.Generator) -> Curve:
    line = _line(first, last, begin, end, rng)
    bow = float(rng.uniform(0.15, 0.4)) * (begin + end) / 2 * (1 if rng.random() < 0.5 else -1)
    return lambda x: line(x) + bow * 4 * (x - first) * (last - x) / (last - first) ** 2


def _logarithm(first: float, last: float, begin: float, end: float, rng: np.random.Generator) -> Curve:
    return lambda x: begin + (end - begin) * np.log(x / first) / np.log(last / first)


def _exponential(first: float, last: float, begin: float, end: float, rng: np.random.Generator) -> Curve:
    rate = float(rng.uniform(1.5, 3.0)) * (1 if rng.random() < 0.5 else -1)
    return lambda x: begin + (end - begin) * np.expm1(rate * (x - first) / (last - first)) / np.expm1(rate)


def _hyperbola(first: float, last: float, begin: float, end: float, rng: np.random.Generator) -> Curve:
    reciprocal = _line(first, last, 1 / begin, 1 / end, rng)
    return lambda x: 1 / reciprocal(x)


FAMILIES: dict[str, Callable[[float, float, float, float, np.random.Generator], Curve]] = {
    "const": _constant,
    "poly1": _line,
    "poly2": _parabola,
    "log": _logarithm,
    "exp": _exponential,
    "inv_poly1": _hyperbola,
}
"""For the name of a function template, what draws a curve of it through its values at both ends of a segment."""
