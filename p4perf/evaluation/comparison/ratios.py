"""Ratios of one run to another: at the points that both measured, over all of them, and of their models.

Points are paired by x. At each of them the ratio is that of the medians over process starts; its interval comes from a
bootstrap over the starts of both sides, drawn independently, in logarithms, so that exchanging the sides gives the
reciprocal interval: the standard deviation of the redrawn ratios, times the quantile of t (Efron and Tibshirani 1993,
chapter 12). Percentiles would do for many starts, but three cannot make them: an interval between the extremes of three
and three starts covers 88 %. What the bootstrap of few values over- or underestimates is corrected
(:func:`p4perf.evaluation.resampling.median_factor`).

The ratio over all points is their geometric mean (the ratio of a run to another is one number only as a geometric mean:
Fleming and Wallace 1986, How Not to Lie with Statistics, CACM 29(3)). Its interval comes from the same resamples; its
degrees of freedom are those of Welch and Satterthwaite. Points are not drawn: the interval is about these points, and
about the machine as it was during the two runs.

The ratio of two models is that of their curves. Its band joins the bands of both curves by MOVER, square and add (Zou
and Donner 2008, Statistics in Medicine 27, 1693), in logarithms: with curves ``a``, ``b`` and bands ``[l, u]``,

    low  = log(a / b) - sqrt(log(a / l_a)^2 + log(u_b / b)^2)
    high = log(a / b) + sqrt(log(u_a / a)^2 + log(b / l_b)^2)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from p4perf.evaluation.resampling import median_factor
from p4perf.evaluation.statistics import LEVEL, RESAMPLES, SEED, Samples
from p4perf.models.bases import FloatArray
from p4perf.models.component import ComponentModel

GRID = 101
"""Abscissae of the ratio of two models, besides the ends of their parts."""


@dataclass(frozen=True)
class Ratio:
    """A ratio with its interval; without a unit.

    Args:
        value: the ratio.
        low: lower end, None if nothing is known of the scatter.
        high: upper end, likewise.
    """

    value: float
    low: float | None
    high: float | None

    def excludes(self, low: float, high: float) -> int:
        """1 if the whole interval lies above ``high``, -1 if below ``low``, else 0."""
        if self.low is None or self.high is None:
            return 0
        return int(self.low > high) - int(self.high < low)


@dataclass(frozen=True)
class PointRatio:
    """The ratio at one point.

    Args:
        x: abscissa.
        ratio: ratio of the medians; without an interval where a side has one start only.
        starts: accepted starts of the run.
        reference_starts: those of the reference.
        deviation: standard deviation of the logarithm of the ratio; None without an interval.
    """

    x: float
    ratio: Ratio
    starts: int
    reference_starts: int
    deviation: float | None = None


@dataclass(frozen=True)
class MeasuredRatios:
    """Ratios at the points that both runs measured.

    Args:
        points: by ascending x.
        mean: geometric mean over the points with an interval; None if there is no such point.
        undefined: shared abscissae where a start was not positive, so that there is no ratio.
    """

    points: tuple[PointRatio, ...]
    mean: Ratio | None
    undefined: tuple[float, ...]

    @property
    def usable(self) -> tuple[PointRatio, ...]:
        """The points with an interval: those of which the mean consists."""
        return tuple(point for point in self.points if point.ratio.low is not None)


@dataclass(frozen=True)
class ModelRatio:
    """The ratio of two curves; arrays of one shape.

    Args:
        x: abscissae, ascending, from the first to the last x of the shared domain.
        value: ratio of the curves, NaN where one of them is not positive.
        low: lower end of its band, NaN where a model has no band or the band reaches zero.
        high: upper end, likewise.
    """

    x: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray


def measured_ratios(
    run: Samples, reference: Samples, *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = SEED
) -> MeasuredRatios:
    """Ratios of two runs at the points that both have.

    Args:
        run: what is compared; the numerator.
        reference: what it is compared with.
        level: coverage that the intervals aim at.
        resamples: bootstrap resamples.
        seed: seed of the generator; equal seeds give equal intervals.
    """
    generator = np.random.default_rng(seed)
    mine, other = dict(zip(run.x, run.values, strict=True)), dict(zip(reference.x, reference.values, strict=True))
    points, undefined, replicates, freedoms = [], [], [], []
    for x in sorted(mine.keys() & other.keys()):
        a, b = np.asarray(mine[x]), np.asarray(other[x])
        if min(a.min(), b.min()) <= 0:
            undefined.append(x)
            continue
        centre = math.log(np.median(a)) - math.log(np.median(b))
        if min(len(a), len(b)) < 2:
            points.append(PointRatio(x, Ratio(math.exp(centre), None, None), len(a), len(b)))
            continue
        drawn = centre + _deviations(a, resamples, generator) - _deviations(b, resamples, generator)
        freedoms.append(len(a) + len(b) - 2)
        replicates.append(drawn)
        ratio = _interval(centre, drawn, freedoms[-1], level)
        points.append(PointRatio(x, ratio, len(a), len(b), float(np.std(drawn))))
    mean = None
    if replicates:
        centre = float(np.mean([math.log(p.ratio.value) for p in points if p.ratio.low is not None]))
        drawn = np.mean(replicates, axis=0)
        mean = _interval(centre, drawn, satterthwaite(np.var(replicates, axis=1), np.array(freedoms)), level)
    return MeasuredRatios(tuple(points), mean, tuple(undefined))


def _deviations(values: FloatArray, resamples: int, generator: np.random.Generator) -> FloatArray:
    """Logarithms of redrawn medians about their mean, corrected for the small number of values."""
    drawn = values[generator.integers(0, len(values), size=(resamples, len(values)))]
    medians = np.log(np.median(drawn, axis=1))
    return np.asarray(median_factor(len(values)) * (medians - medians.mean()))


def satterthwaite(variances: FloatArray, freedoms: FloatArray) -> float:
    """Degrees of freedom of a sum of estimates with these variances and degrees of freedom (Satterthwaite 1946)."""
    squares = float(np.sum(variances**2 / freedoms))
    return float(np.sum(variances)) ** 2 / squares if squares > 0 else float(freedoms.sum())


def _interval(centre: float, drawn: FloatArray, freedom: float, level: float) -> Ratio:
    half = float(np.std(drawn) * stdtrit(freedom, (1 + level) / 2))
    return Ratio(math.exp(centre), math.exp(centre - half), math.exp(centre + half))


def shared_domain(run: ComponentModel, reference: ComponentModel) -> tuple[float, float] | None:
    """First and last x that both models were fitted to; None if there is no such range."""
    first, last = max(run.domain[0], reference.domain[0]), min(run.domain[1], reference.domain[1])
    return (first, last) if first < last else None


def grid(run: ComponentModel, reference: ComponentModel, points: int = GRID) -> FloatArray:
    """Abscissae of the shared domain, even on the axis of the models, with the ends of all parts; may be empty."""
    domain = shared_domain(run, reference)
    if domain is None:
        return np.empty(0)
    even = np.geomspace if run.x.scale == "log" and domain[0] > 0 else np.linspace
    ends = [x for model in (run, reference) for part in model.fitting.parts for x in (part.start, part.end)]
    inner = [x for x in ends if domain[0] < x < domain[1]]
    return np.unique(np.clip([*even(*domain, points), *inner], *domain))


def model_ratio(run: ComponentModel, reference: ComponentModel, x: FloatArray) -> ModelRatio:
    """The ratio of two curves with its band, see above.

    Args:
        run: the model of what is compared; the numerator.
        reference: the model of what it is compared with.
        x: abscissae.
    """
    a, b = run.estimate(x), reference.estimate(x)
    with np.errstate(invalid="ignore", divide="ignore"):
        top, bottom = _log(a.value), _log(b.value)
        below = np.hypot(top - _log(a.low), _log(b.high) - bottom)
        above = np.hypot(_log(a.high) - top, bottom - _log(b.low))
        centre = top - bottom
        return ModelRatio(x, np.exp(centre), np.exp(centre - below), np.exp(centre + above))


def _log(values: FloatArray) -> FloatArray:
    """Logarithms, NaN where there is none."""
    return np.log(np.where(values > 0, values, np.nan))
