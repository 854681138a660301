"""Whether two targets find the same components expensive: rank correlation of component costs.

The cost of a component on a target is one number for each experiment, from the points that both targets of a pair
measured: the median, over these points, of the medians of ``cost_cycles_per_packet``, where both targets have this
metric in all experiments; else the increase of the modelled metric from the first to the last of these points. One
definition holds for all experiments of a pair.

Spearman's rho and Kendall's tau-b, each with the p-value of no relation (of rho exact up to :data:`EXACT` components,
by all permutations; beyond by t) and an interval by Fisher's transformation: the variance of its value is
``(1 + rho^2 / 2) / (n - 3)`` for rho (Bonett and Wright 2000, Psychometrika 65, 23) and ``0.437 / (n - 4)`` for tau
(Fieller, Hartley and Pearson 1957, Biometrika 44, 470). Where all ranks agree these have no interval.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from scipy import stats

from p4perf.evaluation.statistics import LEVEL, Samples
from p4perf.models.bases import FloatArray

LEAST_COMPONENTS = 5
EXACT = 8
SIGNIFICANT = 0.05
COST_METRIC = "cost_cycles_per_packet"


@dataclass(frozen=True)
class Correlation:
    """A rank correlation.

    Args:
        value: from -1 to 1.
        low: lower end of its interval, None if there is none.
        high: upper end.
        p_value: probability of a value as far from 0, or further, if there is no relation.
    """

    value: float
    low: float | None
    high: float | None
    p_value: float


@dataclass(frozen=True)
class RankCorrelation:
    """How alike two targets rank components.

    Args:
        components: number of components.
        spearman: None without a verdict.
        kendall: None without a verdict.
        verdict: ``same order``, ``opposite order``, ``no relation shown`` or ``no verdict``.
        reason: one sentence.
    """

    components: int
    spearman: Correlation | None
    kendall: Correlation | None
    verdict: str
    reason: str


def rank_correlation(a: Sequence[float], b: Sequence[float], *, level: float = LEVEL) -> RankCorrelation:
    """Correlate the costs of the same components on two targets.

    Args:
        a: costs on one target, finite.
        b: costs on the other one, in the same order.
        level: coverage that the intervals aim at.
    """
    n = len(a)
    if n < LEAST_COMPONENTS:
        return RankCorrelation(n, None, None, "no verdict", f"{n} components in common, {LEAST_COMPONENTS} are needed")
    if len(set(a)) == 1 or len(set(b)) == 1:
        return RankCorrelation(n, None, None, "no verdict", "all components cost the same on one of them")
    first, second = stats.rankdata(a), stats.rankdata(b)
    rho, found = float(np.corrcoef(first, second)[0, 1]), stats.kendalltau(a, b)
    tau = float(found.statistic)
    spearman = _correlation(rho, (1 + rho**2 / 2) / (n - 3), _p_value(first, second, rho), level)
    kendall = _correlation(tau, 0.437 / (n - 4), float(found.pvalue), level)
    verdict = "same order" if rho > 0 else "opposite order"
    if spearman.p_value >= SIGNIFICANT:
        verdict = "no relation shown"
    return RankCorrelation(n, spearman, kendall, verdict, f"Spearman's rho over {n} components")


def _correlation(value: float, variance: float, p_value: float, level: float) -> Correlation:
    if abs(value) > 1 - 1e-9:
        return Correlation(math.copysign(1.0, value), None, None, p_value)
    half = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(variance)
    return Correlation(value, math.tanh(math.atanh(value) - half), math.tanh(math.atanh(value) + half), p_value)


def _p_value(first: FloatArray, second: FloatArray, rho: float) -> float:
    if len(first) > EXACT:
        return float(stats.spearmanr(first, second).pvalue)
    every = np.array(list(itertools.permutations(second)))
    centred = first - first.mean()
    rhos = (every - second.mean()) @ centred / math.sqrt((centred**2).sum() * ((second - second.mean()) ** 2).sum())
    return float(np.mean(np.abs(rhos) >= abs(rho) - 1e-12))


def component_costs(a: Samples, b: Samples, *, increase: bool) -> tuple[float, float] | None:
    """The cost of a component on two targets, from the points that both measured; None if these are too few.

    Args:
        a: what one target measured.
        b: what the other one measured, of the same metric.
        increase: whether the cost is the increase from the first to the last shared point (two at least); else it is
            the median over the shared points.
    """
    mine, other = (dict(zip(s.x, s.medians().tolist(), strict=True)) for s in (a, b))
    shared = sorted(mine.keys() & other.keys())
    if len(shared) < (2 if increase else 1):
        return None
    if increase:
        return mine[shared[-1]] - mine[shared[0]], other[shared[-1]] - other[shared[0]]
    return float(np.median([mine[x] for x in shared])), float(np.median([other[x] for x in shared]))
