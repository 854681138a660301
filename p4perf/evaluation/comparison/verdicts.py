"""Whether a run is faster or slower than another, the same, or without a verdict.

The rule. R is the geometric mean of the ratio (run / reference) over the shared accepted points, [L, H] its interval
(:mod:`p4perf.evaluation.comparison.ratios`); a point counts if both sides have two accepted starts or more. The margin
m is the smallest difference that matters; the borders are 1 / (1 + m) and 1 + m, so that a verdict does not depend on
which of two runs is the reference. In this order:

1. *No verdict* if fewer than :data:`LEAST_POINTS` points count, or if the interval crosses both borders.
2. *Same* if the interval lies within the borders: equivalence by two one-sided tests (Schuirmann 1987), each with half
   of the complement of the level. Not if more points lie beyond a border, each with its whole interval, than chance
   explains (binomial, 5 %): then the ratio depends on x, and its mean hides that; no verdict.
3. *Different* if R is beyond a border and the interval does not hold 1.
4. *No verdict* otherwise: the starts scatter too much to tell a difference of the margin from none.

The metric decides which of two is faster: fewer cycles, less latency, more packets per second. For metrics other than
speed, such as memory, a run is *lower* or *higher*.

The detectable difference is the larger of the margin and of the half-width of the interval: smaller differences than
that this comparison would hardly have found.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from p4perf.errors import UsageError
from p4perf.evaluation.comparison.ratios import MeasuredRatios
from p4perf.models.estimate import Estimate

MARGIN = 0.05
LEAST_POINTS = 3
CHANCE = 0.05
_LESS_IS_FASTER = frozenset(
    {
        "cycles_per_packet",
        "tsc_cycles_per_packet",
        "baseline_cycles_per_packet",
        "cost_cycles_per_packet",
        "latency",
        "instructions",
    }
)
_MORE_IS_FASTER = frozenset({"packet_rate", "throughput_ndr"})


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
        detectable: smallest difference that could be found, as a share (0.05 is 5 %); None without an interval.
    """

    outcome: ComparisonOutcome
    ratio: Estimate | None
    detectable: float | None
    points: int
    reason: str


def verdict(ratios: MeasuredRatios, *, metric: str, x_name: str = "x", margin: float = MARGIN) -> ComparisonVerdict:
    """Judge by the rule above.

    Args:
        metric: what was measured; decides whether less is faster.

    Raises:
        UsageError: the margin is not above 0, or 1 or more.
    """
    if not 0 < margin < 1:
        raise UsageError(f"the margin must lie between 0 and 1, not {margin:g}", hint="such as 0.05 for 5 %")
    usable, mean = ratios.usable, ratios.mean
    if mean is None or not mean.bounded:
        return ComparisonVerdict(ComparisonOutcome.NO_VERDICT, mean, None, len(usable), _too_few(ratios))
    detectable = max(margin, mean.high / mean.value - 1)

    def say(outcome: ComparisonOutcome, reason: str) -> ComparisonVerdict:
        return ComparisonVerdict(outcome, mean, detectable, len(usable), reason)

    if len(usable) < LEAST_POINTS:
        return say(ComparisonOutcome.NO_VERDICT, _too_few(ratios))
    low, high = 1 / (1 + margin), 1 + margin
    beyond = [point.ratio.side_of(low, high) for point in usable]
    more, less = beyond.count(1), beyond.count(-1)
    if mean.low < low and mean.high > high:
        return say(
            ComparisonOutcome.NO_VERDICT, f"the starts scatter too much: the interval reaches beyond 1 ± {margin:g}"
        )
    if low <= mean.low and mean.high <= high:
        if _more_than_chance(more + less, len(usable)):
            where = f"above at {more} and below at {less} of {len(usable)} points"
            return say(ComparisonOutcome.NO_VERDICT, f"the ratio depends on {x_name}: {where}")
        return say(ComparisonOutcome.SAME, f"the interval lies within 1 ± {margin:g}")
    side = int(mean.value > high and mean.low > 1) - int(mean.value < low and mean.high < 1)
    if side == 0:
        return say(ComparisonOutcome.NO_VERDICT, f"neither a difference of {margin:g} nor its absence can be shown")
    against = less if side > 0 else more
    share = f", but the other way at {against} of {len(usable)} points" if against else ""
    return say(outcome_of(metric, side), f"on average over {len(usable)} points{share}")


def outcome_of(metric: str, side: int) -> ComparisonOutcome:
    """The outcome of a metric that is larger (side 1) or smaller (-1) than that of the reference."""
    if metric in _LESS_IS_FASTER:
        return ComparisonOutcome.SLOWER if side > 0 else ComparisonOutcome.FASTER
    if metric in _MORE_IS_FASTER:
        return ComparisonOutcome.FASTER if side > 0 else ComparisonOutcome.SLOWER
    return ComparisonOutcome.HIGHER if side > 0 else ComparisonOutcome.LOWER


def _too_few(ratios: MeasuredRatios) -> str:
    single, undefined = len(ratios.points) - len(ratios.usable), len(ratios.undefined)
    text = f"{len(ratios.usable)} shared points with two accepted starts on both sides, {LEAST_POINTS} are needed"
    text += f"; {single} have one start on a side" if single else ""
    return text + (f"; {undefined} have values of zero or less" if undefined else "")


def _more_than_chance(count: int, points: int) -> bool:
    from scipy.stats import binom

    return count > 0 and float(binom.sf(count - 1, points, CHANCE)) < CHANCE
