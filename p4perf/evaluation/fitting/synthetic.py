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

from p4perf.models.templates import FloatArray

Scale = Literal["lin", "log"]
MIN_POINTS = 5
"""Smallest number of samples of a segment."""
LARGEST_X = 1e6
"""Last abscissa of a logarithmic scale; the first is 1."""
SHARP_SIGMA = 4.0
"""A breakpoint is sharp if a boundary two samples off costs more than this many standard deviations of the noise."""

FAMILIES = ("const", "poly1", "poly2", "log", "exp", "inv_poly1")
"""Names of the function templates of which there are series."""

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
    """
    drawn_from = tuple(families or FAMILIES)
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
        curves.append(_curve(family, x[bounds[k]], x[bounds[k + 1] - 1], level, end, rng))
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


def _curve(family: str, first: float, last: float, begin: float, end: float, rng: np.random.Generator) -> Curve:
    """A curve of a family that has the value ``begin`` at the abscissa ``first`` and ``end`` at ``last``."""

    def line(x: FloatArray) -> FloatArray:
        return begin + (end - begin) * (x - first) / (last - first)

    match family:
        case "const":
            return lambda x: np.full_like(x, begin)
        case "poly2":
            bow = float(rng.uniform(0.15, 0.4)) * (begin + end) / 2 * (1 if rng.random() < 0.5 else -1)
            return lambda x: line(x) + bow * 4 * (x - first) * (last - x) / (last - first) ** 2
        case "log":
            return lambda x: begin + (end - begin) * np.log(x / first) / np.log(last / first)
        case "exp":
            rate = float(rng.uniform(1.5, 3.0)) * (1 if rng.random() < 0.5 else -1)
            return lambda x: begin + (end - begin) * np.expm1(rate * (x - first) / (last - first)) / np.expm1(rate)
        case "inv_poly1":
            return lambda x: 1 / (1 / begin + (1 / end - 1 / begin) * (x - first) / (last - first))
    return line
