"""Whether something became slower: verdicts on many components at once, for scripts that have to stop at one.

The rule. A component is an experiment on a target; there are K of them. ``R`` is the common ratio of the new runs to
the baseline with its 95 % interval ``[L, H]``; every component is also searched for the stretch of points that is most
clearly shifted by more than the margin (both: :mod:`p4perf.evaluation.comparison.shifts`). The chance of a false alarm
is to be 2.5 % in one direction. Where several runs show the drift, its floor has 1.25 % of this
(:mod:`p4perf.evaluation.comparison.drift`); the rest, ``a``, is for the tests. With the margin m, in this order:

1. What could be found is computed first, from the scatter of the starts, their number and the drift alone: the shift
   that the strictest of the tests below, at a / 2K, finds with a chance of 90 %. If it is above the margin, the answer
   is *no verdict*, unless an interval of ``R`` at a / 2K lies wholly beyond 1 + m or 1 / (1 + m): noise is no excuse
   for what cannot be missed.
2. *Slower* if the common shift is significant and its interval is not within the margin, or if the shift of a stretch
   that is more than the margin is significant. *Faster* likewise, if nothing is slower.
3. *Same* if the interval lies within the margin: two one-sided tests (Schuirmann 1987), each at 2.5 %.
4. *No verdict* otherwise.

Significant is a shift beyond the floor, and meant for all components together: the 2K p-values of one direction (common
and stretch of each) are adjusted after Holm (1979, Scandinavian Journal of Statistics 6, 65). If nothing changed, a
gate of any number of components calls one of them slower with a chance of 2.5 % at most. For starts in pairs this holds
however far runs drift; a gate that measures more of them where it has no verdict judges twice, so with a chance of 5 %
at most. For three runs of the baseline or more it holds if the drift is about normally distributed and the runs were
made as far apart as the new ones: a rare jump of all components, which no run of the baseline has, is beyond the floor.
With fewer runs it holds if they drift no further than is assumed. *Same* needs no such correction: all of K components
are said to be the same only if each of them is (an intersection-union test, Berger 1982).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from p4perf.errors import UsageError
from p4perf.evaluation.comparison.drift import CHANCE
from p4perf.evaluation.comparison.ratios import MARGIN, ComparisonOutcome, outcome_of
from p4perf.evaluation.comparison.shifts import PointShifts, Shift, Stretch
from p4perf.models.estimate import Estimate
from p4perf.results.table import LEVEL

ALPHA = (1 - LEVEL) / 2
"""Chance of a false alarm, in one direction; of this the floor of the drift takes its share where there is one."""

TESTS = 2
"""Tests of one direction on a component: of the common shift, and of the most shifted stretch."""

MORE_IS_BETTER = ("packet_rate", "throughput_")
"""Beginnings of the names of metrics that are better if they are larger; all others are better if smaller."""


@dataclass(frozen=True)
class ComponentShifts:
    """A component that both sides measured; no shifts, with a reason, where there is nothing to compare.

    The metric decides which direction is worse; ``labels`` are the points, as text for people.
    """

    metric: str
    shifts: PointShifts | None
    labels: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class LocalShift:
    """A stretch of points whose shift is significant and beyond the margin; the p-value is adjusted for all of them.

    The most shifted stretch was looked for, so its ratio is somewhat too far from 1.
    """

    first: str
    last: str
    points: int
    ratio: Estimate
    p_value: float


@dataclass(frozen=True)
class GateVerdict:
    """The verdict of a gate on a component.

    Args:
        ratio: the common ratio, None where there is nothing to compare.
        detectable: smallest change that would have been found, as a share.
        detectable_at_a_point: the same, of a change at one point only.
        p_value: adjusted, of the common shift in its direction.
        local: a stretch that is shifted beyond the margin, in the direction of the outcome.
    """

    outcome: ComparisonOutcome
    worse: bool
    ratio: Estimate | None
    detectable: float | None
    detectable_at_a_point: float | None
    p_value: float | None
    local: LocalShift | None
    points: int
    reason: str


@dataclass(frozen=True)
class _Judged:
    """A component with its common shift, and its most shifted stretch to each side (1 up, -1 down)."""

    component: ComponentShifts
    shifts: PointShifts
    common: Shift
    stretches: Mapping[int, Stretch | None]


def judge(components: Sequence[ComponentShifts], margin: float = MARGIN) -> tuple[GateVerdict, ...]:
    """Judge components by the rule above, in their order. The more are gated together, the more each has to show.

    Args:
        margin: the smallest change that matters, as a share.

    Raises:
        UsageError: the margin is not above 0, or 1 or more.
    """
    if not 0 < margin < 1:
        raise UsageError(f"the margin must lie between 0 and 1, not {margin:g}", hint="such as 5%")
    least = math.log1p(margin)
    judged = [
        _Judged(c, c.shifts, c.shifts.common(), {side: c.shifts.stretch(side, least) for side in (1, -1)})
        for c in components
        if c.shifts is not None
    ]
    adjusted = {side: _adjusted(judged, side) for side in (1, -1)}
    chance = ALPHA - CHANCE if any(j.common.floor for j in judged) else ALPHA
    found = (
        _verdict(each, {side: adjusted[side][at] for side in adjusted}, chance, len(judged), margin)
        for at, each in enumerate(judged)
    )
    return tuple(no_verdict(c.reason) if c.shifts is None else next(found) for c in components)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values, adjusted for their number after Holm (1979)."""
    p = np.asarray(p_values, dtype=np.float64)
    order, adjusted = np.argsort(p, kind="stable"), np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(np.arange(len(p), 0, -1) * p[order]))
    return [float(value) for value in adjusted]


def no_verdict(reason: str) -> GateVerdict:
    return GateVerdict(ComparisonOutcome.NO_VERDICT, False, None, None, None, None, None, 0, reason)


def worse_side(metric: str) -> int:
    """1 if more of a metric is worse, -1 if less of it is."""
    return -1 if metric.startswith(MORE_IS_BETTER) else 1


def _adjusted(judged: Sequence[_Judged], side: int) -> list[tuple[float, float]]:
    """Adjusted p-values of common shift and stretch of every component, in one direction."""
    flat = []
    for j in judged:
        stretch = j.stretches[side]
        flat += [j.common.p_value(side), 1.0 if stretch is None else stretch.p_value]
    adjusted = holm(flat)
    return list(zip(adjusted[::TESTS], adjusted[1::TESTS], strict=True))


def _verdict(
    judged: _Judged, p_values: Mapping[int, tuple[float, float]], chance: float, components: int, margin: float
) -> GateVerdict:
    """The verdict on one of some components, by adjusted p-values; ``chance`` is that of a false alarm of them all."""
    metric, common = judged.component.metric, judged.common
    ratio = common.ratio(1 - 2 * chance)
    alpha = chance / (TESTS * components)
    detectable = common.detectable(alpha)
    worse = worse_side(metric)
    inside = 1 / (1 + margin) <= ratio.low <= ratio.high <= 1 + margin

    def say(outcome: ComparisonOutcome, reason: str, side: int = 0, local: LocalShift | None = None) -> GateVerdict:
        p_value = p_values[1 if common.centre >= 0 else -1][0]
        point = judged.shifts.detectable_at_a_point(alpha)
        return GateVerdict(outcome, side == worse, ratio, detectable, point, p_value, local, common.points, reason)

    if detectable > margin:
        side = common.ratio(1 - 2 * alpha).side_of(1 / (1 + margin), 1 + margin)
        if side:
            return say(outcome_of(metric, side), "beyond the margin, however much the starts scatter", side)
        return say(
            ComparisonOutcome.NO_VERDICT,
            f"a change of {_percent(margin)} could have been missed: only {_percent(detectable)} would be found",
        )
    for side in (worse, -worse):
        common_p, local_p = p_values[side]
        local = _local(judged, side, local_p, chance)
        if common_p <= chance and not inside:
            return say(outcome_of(metric, side), f"all {common.points} points together", side, local)
        if local is not None:
            where = local.first if local.points == 1 else f"{local.first} to {local.last}"
            number = "1 point" if local.points == 1 else f"{local.points} points"
            reason = f"at {where} ({number} of {common.points}) by a ratio of {local.ratio.value:.3f}"
            return say(outcome_of(metric, side), reason, side, local)
    if inside:
        return say(ComparisonOutcome.SAME, f"the interval lies within 1 ± {_percent(margin)}")
    return say(ComparisonOutcome.NO_VERDICT, f"neither a change of {_percent(margin)} nor its absence can be shown")


def _local(judged: _Judged, side: int, p_value: float, chance: float) -> LocalShift | None:
    stretch = judged.stretches[side]
    if stretch is None or p_value > chance:
        return None
    labels, ratio = judged.component.labels, stretch.shift.ratio(1 - 2 * chance)
    return LocalShift(labels[stretch.first], labels[stretch.last], stretch.shift.points, ratio, p_value)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
