"""How far one run is from another: a shift of all points, shifts of stretches of points, and what could be found.

All of this is about logarithms of ratios, ``d_i`` at point i, with standard deviations ``u_i`` that come from the
starts. A few starts may agree by chance, so a variance that is smaller than that of an ordinary point (the median over
the points, for the degrees of freedom ``f_i``) is drawn towards it, which weighs as :data:`PRIOR_FREEDOM` degrees of
freedom: a moderated t (Smyth 2004, Statistical Applications in Genetics and Molecular Biology 3(1)). Larger ones stay:
some points, such as tables beyond the caches, do scatter more than others.

The common shift is the median of all pairwise means (Hodges and Lehmann 1963, Annals of Mathematical Statistics 34,
598): more than a quarter of the points may be anything. Its standard deviation is that over draws of all ``d_i`` within
their ``u_i``; its degrees of freedom are those of Satterthwaite (1946).

A stretch is a number of neighbouring points. The mean of its ``d_i`` is compared with its standard deviation, and the
p-value of the best stretch is multiplied by the number of stretches (Bonferroni).

What is constant during a run and differs between two of them (neighbours in a shared cache, the layout of memory) the
starts of a run do not show. Where starts scatter more, runs differ more: so each stretch also gets a deviation that it
has as a whole, the scatter of a single start there (:data:`DRIFT_OF_A_STRETCH`), and all points together a smaller one
(:data:`DRIFT_OF_ALL`), since not all of them drift in the same direction. Both shrink with the number of runs.

A component as a whole drifts, too, and so do all components together; how far runs show that were made at other times
(:mod:`p4perf.evaluation.comparison.drift`): ``between`` is a deviation of the component, and ``floor`` is what a shift
has to exceed before it counts. Starts in pairs, one of each side right after the other, have none of this: what the
machine does to both of a pair is not in their ratio (:func:`paired_shifts`).

What could be found, the detectable shift, is computed without looking at the shift itself: with a chance
:data:`POWER` a shift of ``(t(1 - alpha) + t(power)) u`` is called one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv, stdtr, stdtrit

from p4perf.evaluation.comparison.ratios import MeasuredRatios, satterthwaite
from p4perf.models.estimate import Estimate
from p4perf.models.templates import FloatArray
from p4perf.results.table import SEED

PRIOR_FREEDOM = 4.0
"""Degrees of freedom that the ordinary scatter weighs beside that of a point's own starts."""

POWER = 0.9
"""Chance with which a shift of the detectable size is found."""

DRIFT_OF_A_STRETCH = 1.0
"""Deviation between runs of a stretch of points, in units of the scatter of its starts. Measured on a shared virtual
machine, minutes apart: tables in the L2 cache below 0.5, tables in a shared L3 cache 1 to 1.5."""

DRIFT_OF_ALL = 0.35
"""The same of all points together, in units of the median scatter of their starts. Measured: 0.05 to 0.45."""

MEDIAN_OVER_MEAN = 1.2
"""Deviation of a median of few values over that of their mean; 1.16 for three, 1.25 for many, of normal ones."""

NO_DOUBT = 1e-9
"""P-values below this one are all the same."""

ENOUGH_PAIRS = 5
"""Pairs of a point from which on their pairwise means are taken: of fewer, a single odd one would move them."""

CUT = 5.0
"""Largest deviation of a pair from the median of its point, in ordinary ones, that counts as scatter."""

BOUND = 4.0
"""Largest variance of a point for the degrees of freedom of the common shift, as a multiple of the median."""

DRAWS = 1000
PAIRS_AT_ONCE = 2_000_000
LARGEST = 100.0
"""Logarithm of a ratio beyond which everything is infinite."""


@dataclass(frozen=True)
class Shift:
    """The logarithm of a ratio, and how well it is known.

    ``floor`` is what drift alone moves it by at most; it holds with a chance that is not in p-values and intervals.
    """

    centre: float
    deviation: float
    freedom: float
    points: int
    floor: float = 0.0

    def ratio(self, level: float) -> Estimate:
        half = min(self.floor + self.deviation * _quantile(self.freedom, (1 + level) / 2), LARGEST)
        return Estimate(math.exp(self.centre), math.exp(self.centre - half), math.exp(self.centre + half))

    def p_value(self, side: int) -> float:
        """Probability of a shift so far to a side (1 up, -1 down), or further, where there is drift only."""
        beyond = side * self.centre - self.floor
        if self.deviation <= 0:
            return 0.0 if beyond > 0 else 1.0
        return float(stdtr(self.freedom, -beyond / self.deviation))

    def detectable(self, alpha: float) -> float:
        """The smallest shift up, as a share, that a one-sided test at ``alpha`` finds with a chance :data:`POWER`."""
        size = self.floor + self.deviation * (_quantile(self.freedom, 1 - alpha) + _quantile(self.freedom, POWER))
        return math.expm1(size) if size < LARGEST else math.inf


@dataclass(frozen=True)
class Stretch:
    """Neighbouring points that are shifted together; ``p_value`` is that of the shift times the number of stretches."""

    first: int
    last: int
    shift: Shift
    p_value: float


@dataclass(frozen=True)
class PointShifts:
    """Shifts of points, arrays of one shape.

    Args:
        centre: logarithms of the ratios, by ascending x.
        drift: standard deviation of what a run as a whole adds to each of them.
        shared: a deviation that all points have in common, such as that of a curve they are compared with.
        least_drift: deviation that a run as a whole adds to all points at least.
        between: deviation of all points together as several runs show it, which holds the scatter of their starts, too.
        floor: what a shift has to exceed, because all components alike may drift as far.
    """

    centre: FloatArray
    deviation: FloatArray
    freedom: FloatArray
    drift: FloatArray
    shared: float = 0.0
    least_drift: float = 0.0
    between: float = 0.0
    between_freedom: float = 1.0
    floor: float = 0.0

    def common(self) -> Shift:
        generator = np.random.default_rng(SEED)
        drawn = self.centre + self.deviation * generator.standard_normal((DRAWS, len(self.centre)))
        own = float(np.std(hodges_lehmann(drawn)))
        variances = self.deviation**2
        # A point that scatters much has little influence on this estimate, and so has what is not known of its scatter.
        bounded = np.minimum(variances, BOUND * np.median(variances))
        centre = float(hodges_lehmann(self.centre[None, :])[0])
        drift = max(DRIFT_OF_ALL * float(np.median(self.drift)), self.least_drift)
        within, all_of_it = satterthwaite(bounded, self.freedom), float(self.freedom.sum())
        parts, freedoms = [own**2, drift**2, self.shared**2], [within, all_of_it, all_of_it]
        if self.between**2 > own**2 + drift**2:
            parts, freedoms = [self.between**2, self.shared**2], [self.between_freedom, all_of_it]
        freedom = satterthwaite(parts, freedoms)
        return Shift(centre, math.sqrt(sum(parts)), freedom, len(self.centre), self.floor)

    def stretch(self, side: int, least: float = 0.0) -> Stretch | None:
        """The stretch most clearly shifted to a side (1 up, -1 down) by more than ``least``, in logarithms."""
        first, last = np.triu_indices(len(self.centre))
        count = last - first + 1
        mean = _sums(self.centre, first, last) / count
        variances = self.deviation**2
        total = _sums(variances, first, last)
        between = self.between**2 * count**2
        squares = _sums(variances**2 / self.freedom, first, last) + between**2 / self.between_freedom
        beyond = side * mean - self.floor
        with np.errstate(divide="ignore", invalid="ignore"):
            freedom = np.where(squares > 0, (total + between) ** 2 / squares, _sums(self.freedom, first, last))
            drift = np.maximum(DRIFT_OF_A_STRETCH * _sums(self.drift, first, last) / count, self.least_drift)
            deviation = np.sqrt((total + between) / count**2 + self.shared**2 + drift**2)
            t = np.where(deviation > 0, beyond / deviation, np.sign(beyond) * np.inf)
        p = np.where(side * mean > least, stdtr(freedom, -t), np.inf)
        if not np.isfinite(p).any():
            return None
        # Where there is no doubt, the size of the shift ranks it better than the degrees of freedom do.
        best = int(np.lexsort((-t, np.maximum(p, NO_DOUBT)))[0])
        shift = Shift(float(mean[best]), float(deviation[best]), float(freedom[best]), int(count[best]), self.floor)
        return Stretch(int(first[best]), int(last[best]), shift, min(1.0, float(p[best]) * len(first)))

    def detectable_at_a_point(self, alpha: float) -> float:
        """The smallest shift, as a share, that is found where only one ordinary point has it."""
        number = len(self.centre) * (len(self.centre) + 1) / 2
        own = float(np.median(self.deviation))
        drift = max(DRIFT_OF_A_STRETCH * float(np.median(self.drift)), self.least_drift)
        freedom = satterthwaite([own**2, self.between**2], [float(np.median(self.freedom)), self.between_freedom])
        shift = Shift(0.0, math.hypot(own, self.shared, drift, self.between), freedom, 1, self.floor)
        return shift.detectable(alpha / number)


def point_shifts(ratios: MeasuredRatios, runs: int = 1, reference_runs: int = 1) -> PointShifts | None:
    """Shifts of the points that two sides measured; None without a point.

    Points with two starts or more on both sides count. If there are none, but three points or more, the scatter over
    the points takes the place of that over the starts.
    """
    usable = [point for point in ratios.points if point.deviation is not None]
    if not usable:
        return scattered([math.log(point.ratio.value) for point in ratios.points])
    centre = np.array([math.log(point.ratio.value) for point in usable])
    deviation = np.array([point.deviation or 0.0 for point in usable])
    freedom = np.array([float(point.starts + point.reference_starts - 2) for point in usable])
    moderated, freedom = _moderated(deviation**2, freedom)
    deviation = np.sqrt(moderated)
    starts = np.array([1 / point.starts + 1 / point.reference_starts for point in usable])
    scatter = deviation / (MEDIAN_OVER_MEAN * np.sqrt(starts))
    return PointShifts(centre, deviation, freedom, scatter * math.sqrt(1 / runs + 1 / reference_runs))


def paired_shifts(pairs: Sequence[FloatArray]) -> PointShifts | None:
    """Shifts of points from logarithms of the ratios of pairs of starts, an array for each point.

    Points with two pairs or more count; without any, their scatter is that over the points. The shift of a point is the
    median of its pairs, or of all pairwise means from :data:`ENOUGH_PAIRS` on, which is better known. One start in
    hundreds takes twice as long for no reason that it shows. Neither follows it, so the scatter should not: deviations
    are cut at :data:`CUT` times what is ordinary, of the point or of all of them.
    """
    usable = [ratios for ratios in pairs if len(ratios) > 1]
    if not usable:
        return scattered([float(ratios[0]) for ratios in pairs])
    centre = np.array([_middle(ratios) for ratios in usable])
    number = np.array([len(ratios) for ratios in usable])
    widened = np.where((number > 2) & (number < ENOUGH_PAIRS), MEDIAN_OVER_MEAN**2, 1.0) / number
    apart = [np.abs(ratios - middle) for ratios, middle in zip(usable, centre, strict=True)]
    every = np.concatenate(apart)
    ordinary = float(np.median(every[every > 0])) if every.any() else 0.0
    cut = [np.minimum(each, CUT * max(ordinary, float(np.median(each)))) for each in apart]
    variances = np.array([float(np.sum(each**2)) for each in cut]) / (number - 1) * widened
    moderated, freedom = _moderated(variances, number - 1.0)
    return PointShifts(centre, np.sqrt(moderated), freedom, np.zeros(len(usable)))


def _middle(ratios: FloatArray) -> float:
    return float(hodges_lehmann(ratios[None, :])[0] if len(ratios) >= ENOUGH_PAIRS else np.median(ratios))


def scattered(centres: Sequence[float], shared: float = 0.0) -> PointShifts | None:
    """Shifts of points whose scatter is that about their common shift; None of fewer than three."""
    if len(centres) < 3:
        return None
    centre = np.asarray(centres, dtype=np.float64)
    freedom = float(len(centre) - 1)
    deviation = np.full(len(centre), float(np.std(centre, ddof=1)))
    # The degrees of freedom of a sum over the points are to be those of the scatter: each point has its share of them.
    return PointShifts(centre, deviation, np.full(len(centre), freedom / len(centre)), np.zeros(len(centre)), shared)


def hodges_lehmann(values: FloatArray) -> FloatArray:
    """The median of the means of all pairs, of every value with itself too, of each row; shape (rows,)."""
    first, second = np.triu_indices(values.shape[1])
    rows = max(1, PAIRS_AT_ONCE // len(first))
    parts = [values[at : at + rows] for at in range(0, len(values), rows)]
    return np.concatenate([np.median((part[:, first] + part[:, second]) / 2, axis=1) for part in parts])


def _moderated(variances: FloatArray, freedom: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variances raised towards an ordinary one, and their degrees of freedom; of fewer than three as they are."""
    if len(variances) < 3:
        return variances, freedom
    # The median of a scaled chi-square lies below its mean.
    below = 2 * gammaincinv(freedom / 2, 0.5) / freedom
    ordinary = float(np.median(variances / below))
    moderated = (freedom * variances + PRIOR_FREEDOM * ordinary) / (freedom + PRIOR_FREEDOM)
    quiet = moderated >= variances
    return np.where(quiet, moderated, variances), np.where(quiet, freedom + PRIOR_FREEDOM, freedom)


def _sums(values: FloatArray, first: np.ndarray, last: np.ndarray) -> FloatArray:
    total = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(total[last + 1] - total[first])


def _quantile(freedom: float, probability: float) -> float:
    return float(stdtrit(freedom, probability))
