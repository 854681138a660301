"""Ratios of one run to another, where their curves cross, and which of two runs is faster.

Points are paired by x. At each of them the ratio is that of the medians over process starts; its interval comes from a
bootstrap over the starts of both sides, drawn independently, in logarithms, so that exchanging the sides gives the
reciprocal interval: the standard deviation of the redrawn ratios (:func:`p4perf.results.table.redrawn_medians`), times
the quantile of t (Efron and Tibshirani 1993, chapter 12). Percentiles would do for many starts, but three cannot make
them: an interval between the extremes of three and three starts covers 88 %.

The ratio over all points is their geometric mean (the ratio of a run to another is one number only as a geometric mean:
Fleming and Wallace 1986, How Not to Lie with Statistics, CACM 29(3)). Its interval comes from the same resamples; its
degrees of freedom are those of Welch and Satterthwaite. Points are not drawn: the interval is about these points, and
about the machine as it was during the two runs.

The ratio of two models is that of their curves. Its band joins the bands of both curves by MOVER, square and add (Zou
and Donner 2008, Statistics in Medicine 27, 1693), in logarithms: with curves ``a``, ``b`` and bands ``[l, u]``,

    low  = log(a / b) - sqrt(log(a / l_a)^2 + log(u_b / b)^2)
    high = log(a / b) + sqrt(log(u_a / a)^2 + log(b / l_b)^2)

All crossings within the shared domain are found as long as two of them, within the same segments, are further apart
than a step of the search: each segment is searched at :data:`STEPS` places. Curves that touch do not cross.

The interval of a crossing is what the bands do not exclude (a test, inverted): all x around it, without a gap, at which
the band of the ratio of the curves holds 1. If that reaches an end of the shared domain, the interval is open there. A
crossing is sure if the bands exclude 1 on both sides of its interval, on one side with one curve above and on the other
side with the other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from p4perf.errors import UsageError
from p4perf.models.component import ComponentModel
from p4perf.models.estimate import Estimate
from p4perf.models.templates import FloatArray
from p4perf.results.table import LEVEL, RESAMPLES, SEED, Samples, redrawn_medians

GRID = 101
"""Abscissae of the ratio of two models, besides the ends of their segments."""


@dataclass(frozen=True)
class PointRatio:
    """The ratio of the medians at one point.

    ``deviation`` is the standard deviation of its logarithm. Where a side has one start only there is neither that nor
    an interval.
    """

    x: float
    ratio: Estimate
    starts: int
    reference_starts: int
    deviation: float | None = None


@dataclass(frozen=True)
class MeasuredRatios:
    """Ratios at the points that both runs measured, and their geometric mean over the points with an interval.

    ``undefined`` are shared abscissae where a start was not positive, so that there is no ratio.
    """

    points: tuple[PointRatio, ...]
    mean: Estimate | None
    undefined: tuple[float, ...]

    @property
    def usable(self) -> tuple[PointRatio, ...]:
        """The points with an interval: those of which the mean consists."""
        return tuple(point for point in self.points if point.ratio.bounded)


@dataclass(frozen=True)
class ModelRatio:
    """The ratio of two curves over their shared domain, with its band; arrays of one shape.

    NaN stands where a curve is not positive, and in the band where a model has none or it reaches zero.
    """

    x: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray


def measured_ratios(
    run: Samples, reference: Samples, *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = SEED
) -> MeasuredRatios:
    """Ratios of a run to a reference at the points that both have."""
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
            points.append(PointRatio(x, Estimate(math.exp(centre)), len(a), len(b)))
            continue
        new = redrawn_medians(np.log(a), resamples, generator, disagree=x in run.disagreeing)
        drawn = new - redrawn_medians(np.log(b), resamples, generator, disagree=x in reference.disagreeing)
        freedoms.append(len(a) + len(b) - 2)
        replicates.append(drawn)
        ratio = _interval(centre, drawn, freedoms[-1], level)
        points.append(PointRatio(x, ratio, len(a), len(b), float(np.std(drawn))))
    mean = None
    if replicates:
        centre = float(np.mean([math.log(p.ratio.value) for p in points if p.ratio.bounded]))
        drawn = np.mean(replicates, axis=0)
        mean = _interval(centre, drawn, satterthwaite(np.var(replicates, axis=1), freedoms), level)
    return MeasuredRatios(tuple(points), mean, tuple(undefined))


def satterthwaite(variances: npt.ArrayLike, freedoms: npt.ArrayLike) -> float:
    """Degrees of freedom of a sum of estimates with these variances and degrees of freedom (Satterthwaite 1946)."""
    v, f = np.asarray(variances, dtype=np.float64), np.asarray(freedoms, dtype=np.float64)
    squares = float(np.sum(v**2 / f))
    return float(np.sum(v)) ** 2 / squares if squares > 0 else float(f.sum())


def _interval(centre: float, drawn: FloatArray, freedom: float, level: float) -> Estimate:
    half = float(np.std(drawn) * stdtrit(freedom, (1 + level) / 2))
    return Estimate(math.exp(centre), math.exp(centre - half), math.exp(centre + half))


def shared_domain(run: ComponentModel, reference: ComponentModel) -> tuple[float, float] | None:
    """First and last x that both models were fitted to; None if there is no such range."""
    first, last = max(run.domain[0], reference.domain[0]), min(run.domain[1], reference.domain[1])
    return (first, last) if first < last else None


def grid(run: ComponentModel, reference: ComponentModel) -> FloatArray:
    """Abscissae of the shared domain, even on the axis of the models, with the ends of all segments; may be empty."""
    domain = shared_domain(run, reference)
    if domain is None:
        return np.empty(0)
    even = np.geomspace if run.x.scale == "log" and domain[0] > 0 else np.linspace
    ends = [x for model in (run, reference) for segment in model.fitting.segments for x in (segment.start, segment.end)]
    inner = [x for x in ends if domain[0] < x < domain[1]]
    return np.unique(np.clip([*even(*domain, GRID), *inner], *domain))


def model_ratio(run: ComponentModel, reference: ComponentModel, x: FloatArray) -> ModelRatio:
    """Ratio of the curve of a run to that of a reference, with its band (see above)."""
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


STEPS = 400
EQUAL = 1e-9
"""Curves that differ by less than this share of their size are equal there."""


@dataclass(frozen=True)
class Crossing:
    """A place where two curves cross.

    Args:
        x: where; an end of its interval is infinite if it is open, or if a model has no band.
        above: whether the curve of the run lies above that of the reference beyond x.
        sure: whether the bands exclude that the curves do not cross.
        step: whether a curve steps over the other at a breakpoint.
    """

    x: Estimate
    above: bool
    sure: bool
    step: bool


def crossings(run: ComponentModel, reference: ComponentModel) -> tuple[Crossing, ...]:
    """All crossings of two curves in their shared domain, by ascending x; none if they share no domain."""
    domain = shared_domain(run, reference)
    if domain is None:
        return ()
    x, segment = _places(run, reference, domain)
    sign = _signs(run, reference, x)
    ratio = model_ratio(run, reference, x)
    known = np.isfinite(ratio.low) & np.isfinite(ratio.high)
    excluded = np.where(known, (ratio.low > 1).astype(int) - (ratio.high < 1), 0)
    found = []
    places = np.flatnonzero(sign)
    for i, j in itertools.pairwise(places):
        if sign[i] == sign[j]:
            continue
        step = bool(j == i + 1 and segment[i] != segment[j])
        at = float(x[j]) if step else _root(run, reference, x, int(i), int(j))
        where, sure = Estimate(at), False
        if known.any():
            where, sure = _crossing_interval(at, x, excluded, int(i), int(j))
        if step:
            where = _with_breakpoint(where, (run, reference))
        found.append(Crossing(where, above=bool(sign[j] > 0), sure=sure, step=step))
    return tuple(found)


def _places(
    run: ComponentModel, reference: ComponentModel, domain: tuple[float, float]
) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Where to look: dense in each segment in which both curves are smooth; and the number of the segment."""
    breakpoints = {x for model in (run, reference) for x in model.fitting.breakpoint_x if domain[0] < x < domain[1]}
    edges = [domain[0], *sorted(breakpoints), domain[1]]
    measured = np.concatenate([_abscissae(run), _abscissae(reference)])
    pieces = []
    for number, (start, end) in enumerate(itertools.pairwise(edges)):
        last = end if number == len(edges) - 2 else float(np.nextafter(end, start))
        even = np.geomspace if run.x.scale == "log" and start > 0 else np.linspace
        inner = measured[(measured > start) & (measured < last)]
        pieces.append(np.unique(np.clip([*even(start, last, STEPS), *inner, start, last], start, last)))
    segment = np.concatenate([np.full(len(piece), number) for number, piece in enumerate(pieces)])
    return np.concatenate(pieces), segment


def _abscissae(model: ComponentModel) -> FloatArray:
    return np.asarray(model.uncertainty.x if model.uncertainty is not None else model.domain, dtype=np.float64)


def _signs(run: ComponentModel, reference: ComponentModel, x: FloatArray) -> FloatArray:
    """Sign of the difference of the curves, 0 where they are equal or not defined."""
    a, b = run.evaluate(x), reference.evaluate(x)
    difference = a - b
    same = np.abs(difference) <= EQUAL * np.maximum(np.abs(a), np.abs(b))
    return np.where(same | ~np.isfinite(difference), 0.0, np.sign(difference))


def _root(run: ComponentModel, reference: ComponentModel, x: FloatArray, i: int, j: int) -> float:
    """The crossing between two places; where the curves are equal over a stretch, its middle."""
    if j > i + 1:
        return float((x[i + 1] + x[j - 1]) / 2)
    from scipy.optimize import brentq

    root = brentq(lambda at: float(run.evaluate(at) - reference.evaluate(at)), float(x[i]), float(x[j]))
    return float(root)


def _crossing_interval(
    at: float, x: FloatArray, excluded: npt.NDArray[np.int_], i: int, j: int
) -> tuple[Estimate, bool]:
    """The stretch around places i and j in which 1 is not excluded, and whether it is with opposite signs beyond."""
    before, after = np.flatnonzero(excluded[: i + 1]), np.flatnonzero(excluded[j:])
    low = float(x[before[-1]]) if len(before) else -math.inf
    high = float(x[j + after[0]]) if len(after) else math.inf
    sure = bool(len(before) and len(after)) and int(excluded[before[-1]]) == -int(excluded[j + after[0]])
    return Estimate(at, low, high), sure


def _with_breakpoint(crossing: Estimate, models: Sequence[ComponentModel]) -> Estimate:
    """The interval of a step is at least as wide as that of the breakpoint that makes it."""
    low, high = crossing.low, crossing.high
    for model in models:
        breakpoints = model.uncertainty.breakpoints if model.uncertainty is not None else ()
        for at, known in zip(model.fitting.breakpoint_x, breakpoints, strict=False):
            if at == crossing.value:
                low, high = min(low, known.low), max(high, known.high)
    return Estimate(crossing.value, low, high)


MARGIN = 0.05
LEAST_POINTS = 3
CHANCE = 0.05
_LESS_IS_FASTER = (
    *("cycles_per_packet", "tsc_cycles_per_packet", "baseline_cycles_per_packet", "cost_cycles_per_packet"),
    *("latency", "instructions"),
)
_MORE_IS_FASTER = ("packet_rate", "throughput_ndr")


class ComparisonOutcome(StrEnum):
    FASTER = "faster"
    SLOWER = "slower"
    LOWER = "lower"
    HIGHER = "higher"
    SAME = "same"
    NO_VERDICT = "no verdict"


@dataclass(frozen=True)
class ComparisonVerdict:
    """A verdict with what it rests on.

    Args:
        ratio: geometric mean over the points that count, None without any.
        detectable: the larger of margin and half-width of the interval, as a share (0.05 is 5 %): smaller differences
            would hardly have been found. None without an interval.
    """

    outcome: ComparisonOutcome
    ratio: Estimate | None
    detectable: float | None
    points: int
    reason: str


UNSWEPT = "point_index"
"""The variable of runs that sweep nothing: the number of their only point, of which a verdict is then."""


def verdict(ratios: MeasuredRatios, *, metric: str, x_name: str = "x", margin: float = MARGIN) -> ComparisonVerdict:
    """Whether a run is faster or slower than another, the same, or without a verdict.

    R is the mean ratio over the points that both measured, with two accepted starts or more on each side, and [L, H]
    its interval. The margin m is the smallest difference that matters; the borders are 1 / (1 + m) and 1 + m, so that a
    verdict does not depend on which of two runs is the reference. In this order:

    1. *No verdict* if fewer than :data:`LEAST_POINTS` points count (of runs that sweep nothing: the one that there is),
       or if the interval crosses both borders.
    2. *Same* if the interval lies within the borders: equivalence by two one-sided tests (Schuirmann 1987), each with
       half of the complement of the level. Not if more points lie beyond a border, each with its whole interval, than
       chance explains (binomial, 5 %): then the ratio depends on x, and its mean hides that; no verdict.
    3. *Different* if R is beyond a border and the interval does not hold 1.
    4. *No verdict* otherwise: the starts scatter too much to tell a difference of the margin from none.

    Args:
        metric: decides which of two is faster: fewer cycles, less latency, more packets per second. For metrics other
            than speed, such as memory, a run is *lower* or *higher*.

    Raises:
        UsageError: the margin is not above 0, or 1 or more.
    """
    if not 0 < margin < 1:
        raise UsageError(f"the margin must lie between 0 and 1, not {margin:g}", hint="such as 0.05 for 5 %")
    usable, mean = ratios.usable, ratios.mean
    if mean is None or not mean.bounded:
        return ComparisonVerdict(ComparisonOutcome.NO_VERDICT, mean, None, len(usable), _too_few(ratios, x_name))
    detectable = max(margin, mean.high / mean.value - 1)

    def say(outcome: ComparisonOutcome, reason: str) -> ComparisonVerdict:
        return ComparisonVerdict(outcome, mean, detectable, len(usable), reason)

    if len(usable) < LEAST_POINTS and x_name != UNSWEPT:
        return say(ComparisonOutcome.NO_VERDICT, _too_few(ratios, x_name))
    low, high = 1 / (1 + margin), 1 + margin
    beyond = [point.ratio.side_of(low, high) for point in usable]
    more, less = beyond.count(1), beyond.count(-1)
    limits = f"1 ± {100 * margin:g} %"
    if mean.low < low and mean.high > high:
        return say(ComparisonOutcome.NO_VERDICT, f"the starts scatter too much: the interval reaches beyond {limits}")
    if low <= mean.low and mean.high <= high:
        if _more_than_chance(more + less, len(usable)):
            where = f"above at {more} and below at {less} of {len(usable)} points"
            return say(ComparisonOutcome.NO_VERDICT, f"the ratio depends on {x_name}: {where}")
        return say(ComparisonOutcome.SAME, f"the interval lies within {limits}")
    side = int(mean.value > high and mean.low > 1) - int(mean.value < low and mean.high < 1)
    if side == 0:
        return say(
            ComparisonOutcome.NO_VERDICT, f"neither a difference of {100 * margin:g} % nor its absence can be shown"
        )
    against = less if side > 0 else more
    share = f", but the other way at {against} of {len(usable)} points" if against else ""
    where = "" if x_name == UNSWEPT else f"on average over {len(usable)} points{share}"
    return say(outcome_of(metric, side), where or f"{mean.value:.3g} times the value of the reference")


def outcome_of(metric: str, side: int) -> ComparisonOutcome:
    """The outcome of a metric that is larger (side 1) or smaller (-1) than that of the reference."""
    if metric in _LESS_IS_FASTER:
        return ComparisonOutcome.SLOWER if side > 0 else ComparisonOutcome.FASTER
    if metric in _MORE_IS_FASTER:
        return ComparisonOutcome.FASTER if side > 0 else ComparisonOutcome.SLOWER
    return ComparisonOutcome.HIGHER if side > 0 else ComparisonOutcome.LOWER


def _too_few(ratios: MeasuredRatios, x_name: str) -> str:
    single, undefined = len(ratios.points) - len(ratios.usable), len(ratios.undefined)
    text = f"{len(ratios.usable)} shared points with two accepted starts on both sides, "
    text += "1 is needed" if x_name == UNSWEPT else f"{LEAST_POINTS} are needed"
    text += f"; {single} have one start on a side" if single else ""
    return text + (f"; {undefined} have values of zero or less" if undefined else "")


def _more_than_chance(count: int, points: int) -> bool:
    from scipy.stats import binom

    return count > 0 and float(binom.sf(count - 1, points, CHANCE)) < CHANCE
