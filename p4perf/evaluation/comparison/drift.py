"""How far runs of the same programs are apart because they were made at different times.

Let ``y_cr`` be the logarithm of the level of component c in its r-th run, less the mean over its n runs (r counts in
the order of time). What all K components have in common drifts by ``D_r``, the mean of ``y_cr`` over c; each component
drifts by ``y_cr - D_r`` on its own. Both variances are sums of squares over their degrees of freedom,

    shared^2 = sum_r D_r^2 / (n - 1)
    own^2    = sum_cr (y_cr - D_r)^2 / ((n - 1)(K - 1)),

and several such estimates, of other runs or from other days, are pooled by their degrees of freedom. They hold the
scatter of the starts, too, so they are rather too large. A single component says nothing of what is shared: all of its
drift counts as shared. A component that drifts more than the others keeps its own, larger variance.

How a new run drifts is not known, only how far runs do. With m new runs, their difference to the baseline has the
variance ``(1 / m + k / n)`` times that of a run, k = :data:`~p4perf.evaluation.comparison.shifts.MEDIAN_OVER_MEAN`
squared for the median over the starts of three runs or more. What is shared moves all components at once, so it needs
no correction for their number, but it has few degrees of freedom: with a chance of :data:`CHANCE` in one direction it
exceeds

    floor = t(1 - CHANCE; n - 1) * shared * sqrt(1 / m + k / n).

A shift counts only beyond this floor; what each component drifts on its own is part of the deviation of its shift. If
the chances of both add up to that of the gate, so does the chance of a false alarm, whatever share of the drift the
components have in common (Bonferroni).

Without several runs a deviation is assumed. It is one of the component, so the correction for the number of
components covers it, and there is no floor: Bonferroni needs no independence.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from p4perf.evaluation.comparison.shifts import MEDIAN_OVER_MEAN, PointShifts, hodges_lehmann
from p4perf.models.templates import FloatArray
from p4perf.results.table import Samples

CHANCE = 0.0125
"""Chance with which what all components have in common drifts beyond the floor, in one direction."""

ASSUMED = 0.005
"""Deviation between runs that is assumed where nothing shows it."""

LEAST_FREEDOM = 2.0
"""Degrees of freedom, which three runs have, from which on a drift is estimated and not assumed."""


@dataclass(frozen=True)
class Drift:
    """Standard deviations between runs, of logarithms, with their degrees of freedom: see above."""

    shared: float
    freedom: float
    own: float = 0.0
    own_freedom: float = 0.0

    @property
    def total(self) -> float:
        """Standard deviation of a run of one component."""
        return math.hypot(self.shared, self.own)


def run_levels(runs: Sequence[Samples]) -> FloatArray:
    """Logarithms of the levels of several runs of a component, less their mean; empty where they share no point."""
    shared = sorted(set.intersection(*(set(run.x) for run in runs)))
    medians = [dict(zip(run.x, run.medians().tolist(), strict=True)) for run in runs]
    rows = np.array([[found[x] for x in shared] for found in medians])
    rows = rows[:, (rows > 0).all(axis=0)] if len(shared) else rows
    if rows.size == 0:
        return np.empty(0)
    logs = np.log(rows)
    levels = hodges_lehmann(logs - logs.mean(axis=0))
    return np.asarray(levels - levels.mean())


def drift_of(levels: Sequence[FloatArray]) -> Drift | None:
    """The drift that the levels of several runs of components show, an array for each; None without two runs."""
    levels = [each for each in levels if len(each) > 1]
    if not levels:
        return None
    runs, components = max(map(len, levels)), len(levels)
    table = np.full((components, runs), np.nan)
    for row, each in zip(table, levels, strict=True):
        row[: len(each)] = each
    common = np.nanmean(table, axis=0)
    freedom = runs - 1.0
    shared = math.sqrt(float(np.sum(common**2)) / freedom)
    own_freedom = float(sum(len(each) - 1 for each in levels)) - freedom
    if own_freedom <= 0:
        return Drift(shared, freedom)
    return Drift(shared, freedom, math.sqrt(float(np.nansum((table - common) ** 2)) / own_freedom), own_freedom)


def pooled(drifts: Iterable[Drift]) -> Drift:
    """One estimate from several."""
    every = list(drifts)
    freedom, own_freedom = sum(d.freedom for d in every), sum(d.own_freedom for d in every)
    shared = sum(d.freedom * d.shared**2 for d in every)
    own = sum(d.own_freedom * d.own**2 for d in every)
    return Drift(
        math.sqrt(shared / freedom) if freedom else 0.0,
        freedom,
        math.sqrt(own / own_freedom) if own_freedom else 0.0,
        own_freedom,
    )


def with_drift(
    shifts: PointShifts, drift: Drift, runs: int, reference_runs: int, levels: FloatArray, chance: float = CHANCE
) -> PointShifts:
    """Shifts that drift explains as far as it was estimated.

    Args:
        runs, reference_runs: number of runs of the component, new ones and those of the baseline.
        levels: what :func:`run_levels` says of the component, as far as it has several runs.
        chance: with which the floor does not hold, in one direction.
    """
    number = _of_runs(runs, reference_runs)
    floor = float(stdtrit(drift.freedom, 1 - chance)) * drift.shared * number
    if not drift.own_freedom:
        return replace(shifts, floor=floor)
    alone = math.sqrt(float(np.sum(levels**2)) / (len(levels) - 1)) if len(levels) > 1 else 0.0
    own = drift.own if alone <= drift.total else math.sqrt(max(alone**2 - drift.shared**2, drift.own**2))
    return replace(shifts, between=own * number, between_freedom=drift.own_freedom, floor=floor)


def with_assumed_drift(shifts: PointShifts, deviation: float, runs: int, reference_runs: int) -> PointShifts:
    """Shifts of runs that are assumed to drift by a standard deviation."""
    return replace(shifts, least_drift=deviation * _of_runs(runs, reference_runs))


def _of_runs(runs: int, reference_runs: int) -> float:
    """Deviation of the difference of two sides, in those of a run."""
    return math.sqrt(sum((MEDIAN_OVER_MEAN**2 if n > 2 else 1.0) / n for n in (runs, reference_runs)))
