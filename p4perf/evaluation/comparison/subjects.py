"""Comparing the runs of one experiment, and the order of components on pairs of targets.

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

from p4perf.evaluation.comparison import ratios
from p4perf.models.component import ComponentModel, Quantity
from p4perf.models.estimate import Estimate
from p4perf.models.templates import FloatArray
from p4perf.records import Interval, Record, doc, interval
from p4perf.results.table import LEVEL, Samples

LEAST_COMPONENTS = 5
EXACT = 8
SIGNIFICANT = 0.05
COST_METRIC = "cost_cycles_per_packet"


@dataclass(frozen=True)
class Correlation:
    """A rank correlation, unbounded where all ranks agree, and the probability of one so far from 0 by chance."""

    value: Estimate
    p_value: float


@dataclass(frozen=True)
class RankCorrelation:
    """How alike two targets rank components.

    The verdict is ``same order``, ``opposite order``, ``no relation shown`` or ``no verdict``.
    """

    components: int
    spearman: Correlation | None
    kendall: Correlation | None
    verdict: str
    reason: str


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> RankCorrelation:
    """Correlate the costs of the same components on two targets."""
    n = len(a)
    if n < LEAST_COMPONENTS:
        return RankCorrelation(n, None, None, "no verdict", f"{n} components in common, {LEAST_COMPONENTS} are needed")
    if len(set(a)) == 1 or len(set(b)) == 1:
        return RankCorrelation(n, None, None, "no verdict", "all components cost the same on one of them")
    first, second = stats.rankdata(a), stats.rankdata(b)
    rho, found = float(np.corrcoef(first, second)[0, 1]), stats.kendalltau(a, b)
    tau = float(found.statistic)
    spearman = _correlation(rho, (1 + rho**2 / 2) / (n - 3), _p_value(first, second, rho))
    kendall = _correlation(tau, 0.437 / (n - 4), float(found.pvalue))
    verdict = "same order" if rho > 0 else "opposite order"
    if spearman.p_value >= SIGNIFICANT:
        verdict = "no relation shown"
    return RankCorrelation(n, spearman, kendall, verdict, f"Spearman's rho over {n} components")


def _correlation(value: float, variance: float, p_value: float) -> Correlation:
    if abs(value) > 1 - 1e-9:
        return Correlation(Estimate(math.copysign(1.0, value)), p_value)
    half = NormalDist().inv_cdf((1 + LEVEL) / 2) * math.sqrt(variance)
    ends = (math.tanh(math.atanh(value) + shift) for shift in (-half, half))
    return Correlation(Estimate(value, *ends), p_value)


def _p_value(first: FloatArray, second: FloatArray, rho: float) -> float:
    if len(first) > EXACT:
        return float(stats.spearmanr(first, second).pvalue)
    every = np.array(list(itertools.permutations(second)))
    centred = first - first.mean()
    rhos = (every - second.mean()) @ centred / math.sqrt((centred**2).sum() * ((second - second.mean()) ** 2).sum())
    return float(np.mean(np.abs(rhos) >= abs(rho) - 1e-12))


def component_costs(a: Samples, b: Samples, *, increase: bool) -> tuple[float, float] | None:
    """Costs of a component on two targets, from the points that both measured; None if there are too few of them."""
    mine, other = (dict(zip(s.x, s.medians().tolist(), strict=True)) for s in (a, b))
    shared = sorted(mine.keys() & other.keys())
    if len(shared) < (2 if increase else 1):
        return None
    if increase:
        return mine[shared[-1]] - mine[shared[0]], other[shared[-1]] - other[shared[0]]
    return float(np.median([mine[x] for x in shared])), float(np.median([other[x] for x in shared]))


@dataclass(frozen=True)
class ComparedSamples:
    """A run with its model and the accepted starts of ``cost_cycles_per_packet``, each None where it has none."""

    label: str
    samples: Samples
    model: ComponentModel | None = None
    cost: Samples | None = None


@dataclass(frozen=True)
class ComparedPair:
    """A run beside the reference; ``curve`` and ``crossings`` are None without models that share a domain."""

    run: str
    reference: str
    measured: ratios.MeasuredRatios
    curve: ratios.ModelRatio | None
    crossings: tuple[ratios.Crossing, ...] | None
    verdict: ratios.ComparisonVerdict


@dataclass(frozen=True)
class ExperimentComparison:
    """The runs of one experiment, in the order given, compared with that labelled ``reference``."""

    experiment: str
    title: str
    x: Quantity
    y: Quantity
    subjects: tuple[ComparedSamples, ...]
    reference: str
    pairs: tuple[ComparedPair, ...]

    @property
    def shared(self) -> tuple[float, ...]:
        return tuple(sorted(set.intersection(*(set(s.samples.x) for s in self.subjects))))


class ComponentCost(Record):
    experiment: str = doc("experiment of a component")
    a: float = doc("its cost on one target", "of the metric")
    b: float = doc("its cost on the other one", "of the metric")


class RankPair(Record):
    """The order of components on two targets."""

    a: str = doc("label of one target; no items with one experiment")
    b: str = doc("label of the other one")
    cost: str = doc("what the cost of a component is")
    components: int = doc("number of components")
    costs: tuple[ComponentCost, ...] = doc("")
    spearman: Interval | None = interval("Spearman's rho; null without a verdict", of="spearman.value")
    spearman_p_value: float | None = doc("its p-value", of="spearman.p_value")
    kendall: Interval | None = interval("Kendall's tau-b", of="kendall.value")
    kendall_p_value: float | None = doc("its p-value", of="kendall.p_value")
    verdict: str = doc("`same order`, `opposite order`, `no relation shown` or `no verdict`")
    reason: str = doc("one sentence, for people")


def compare_subjects(
    experiment: str,
    subjects: Sequence[ComparedSamples],
    *,
    reference: str,
    x: Quantity,
    title: str = "",
    margin: float = ratios.MARGIN,
) -> ExperimentComparison:
    """Compare two runs or more of one experiment, of the same variable and metric, with one of them.

    Args:
        margin: the smallest difference that matters, as a share.
    """
    base = next(s for s in subjects if s.label == reference)
    pairs = tuple(_pair(s, base, margin) for s in subjects if s is not base)
    y = Quantity(base.samples.y_name, base.samples.y_unit)
    return ExperimentComparison(experiment, title, x, y, tuple(subjects), reference, pairs)


def _pair(run: ComparedSamples, base: ComparedSamples, margin: float) -> ComparedPair:
    measured = ratios.measured_ratios(run.samples, base.samples)
    curve, places = None, None
    if run.model is not None and base.model is not None and len(at := ratios.grid(run.model, base.model)):
        curve, places = ratios.model_ratio(run.model, base.model, at), ratios.crossings(run.model, base.model)
    judged = ratios.verdict(measured, metric=run.samples.y_name, x_name=run.samples.x_name, margin=margin)
    return ComparedPair(run.label, base.label, measured, curve, places, judged)


def rank_pairs(comparisons: Sequence[ExperimentComparison]) -> tuple[RankPair, ...]:
    """The order of the components of several experiments on every pair of labels."""
    labels = list(dict.fromkeys(s.label for c in comparisons for s in c.subjects))
    pairs = [(a, b) for index, a in enumerate(labels) for b in labels[index + 1 :]]
    return tuple(_rank_pair(comparisons, a, b) for a, b in pairs)


def _rank_pair(comparisons: Sequence[ExperimentComparison], a: str, b: str) -> RankPair:
    both: list[tuple[str, ComparedSamples, ComparedSamples]] = []
    for comparison in comparisons:
        known = {s.label: s for s in comparison.subjects}
        if a in known and b in known:
            both.append((comparison.experiment, known[a], known[b]))
    by_cost = bool(both) and all(one.cost is not None and other.cost is not None for _, one, other in both)
    metrics = list(dict.fromkeys(one.samples.y_name for _, one, _ in both))
    if by_cost:
        definition = f"median of {COST_METRIC} over the shared points"
    else:
        definition = f"increase of {' or '.join(metrics)} from the first to the last shared point"
    costs: list[ComponentCost] = []
    for name, one, other in both:
        mine, theirs = (one.cost, other.cost) if by_cost else (one.samples, other.samples)
        found = component_costs(mine, theirs, increase=not by_cost) if mine and theirs else None
        if found is not None:
            costs.append(ComponentCost(experiment=name, a=found[0], b=found[1]))
    correlation = rank_correlation([cost.a for cost in costs], [cost.b for cost in costs])
    if not by_cost and len(metrics) > 1:
        reason = f"the experiments model several metrics ({', '.join(metrics)}), whose increases cannot be ranked"
        correlation = RankCorrelation(len(costs), None, None, "no verdict", reason)
    return RankPair.read(correlation, a=a, b=b, cost=definition, costs=tuple(costs))
