"""Differences between platforms and between operators: quadrant shifts, ratios, interactions, agreement.

Ren et al. 2025 take it for granted that the baseline costs the same with an operator as without (section II-B). On a
core that works out of order it need not: what one operator waits for, another can fill. The interaction is what the
pair costs beyond the sum of both,

    I = C(a + b) - (C(a) + C(b)),

negative where they overlap, positive where they are in each other's way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from p4perf.evaluation.comparison.ratios import satterthwaite
from p4perf.evaluation.papers.ren2025.costs import OperatorCosts, Platform, pair_of, same_operator
from p4perf.evaluation.papers.ren2025.profiles import OperatorProfile, interval, redrawn_medians
from p4perf.evaluation.papers.ren2025.quadrants import Placement
from p4perf.models.estimate import Estimate
from p4perf.models.operator import BASE_SIZE_BYTES
from p4perf.results.table import LEVEL, RESAMPLES, SEED


@dataclass(frozen=True)
class Shift:
    """The same operator on two platforms, the arrow of the chart."""

    start: Placement
    end: Placement

    @property
    def changed(self) -> bool | None:
        """Whether the quadrants differ (the quadrant shift of Ren et al. 2025, section III-C); None if one has none."""
        if self.start.quadrant is None or self.end.quadrant is None:
            return None
        return self.start.quadrant is not self.end.quadrant

    @property
    def probability(self) -> float | None:
        """That the quadrants differ; None if neither side has repetitions, or one has no quadrant."""
        if self.changed is None or (self.start.draws is None and self.end.draws is None):
            return None
        names = list(type(self.start.quadrant)) if self.start.quadrant is not None else []
        sides = [
            place.draws if place.draws is not None else np.full(1, names.index(place.quadrant))
            for place in (self.start, self.end)
            if place.quadrant is not None
        ]
        return float(np.mean(sides[0] != sides[1]))

    @property
    def base_ratio(self) -> float | None:
        """Base cost at the end over that at the start; None if one is not known."""
        bases = (self.start.profile.base, self.end.profile.base)
        return None if bases[0] is None or bases[1] is None else bases[1].value / bases[0].value


def shifts(platforms: Sequence[Platform], placements: Sequence[Placement]) -> tuple[Shift, ...]:
    """From each platform to the next that has the operator, in the order of the platforms.

    An operator of one platform may be several on the next (two ways to calculate a CRC): there is a shift to each.
    """
    by_row = {(p.profile.platform, p.profile.operator): p for p in placements}
    found = []
    for at, platform in enumerate(platforms):
        for row in platform.operators:
            for later in platforms[at + 1 :]:
                matches = [other for other in later.operators if same_operator(row, other)]
                start = by_row[platform.name, row.operator]
                found += [Shift(start, by_row[later.name, other.operator]) for other in matches]
                if matches:
                    break
    return tuple(found)


@dataclass(frozen=True)
class Contrast:
    """Two operators of one platform beside each other (Fig. 2 of Ren et al. 2025).

    Args:
        dear: base cost of the operator that is asked about.
        cheap: base cost of the one that it is compared with.
        ratio: dear over cheap with its interval; None if the cheap one is below the resolution.
        at_least: dear over the resolution, if the cheap one is below that.
    """

    platform: str
    dear: OperatorProfile
    cheap: OperatorProfile
    ratio: Estimate | None
    at_least: float | None


def contrast(dear: OperatorProfile, cheap: OperatorProfile, *, level: float) -> Contrast | None:
    """The ratio of two base costs; None if the dear one has none.

    The interval is calculated in logarithms from the bootstrap replicates of both.
    """
    if dear.base is None or cheap.rank_cycles is None:
        return None
    if cheap.base is None:
        at_least = dear.base.value / cheap.rank_cycles if cheap.rank_cycles else None
        return Contrast(dear.platform, dear, cheap, None, at_least)
    ratio = dear.base.value / cheap.base.value
    return Contrast(dear.platform, dear, cheap, _interval(ratio, dear, cheap, level), None)


def _interval(ratio: float, dear: OperatorProfile, cheap: OperatorProfile, level: float) -> Estimate:
    if dear.replicates is None or cheap.replicates is None:
        return Estimate(ratio)
    variances, freedoms = [], []
    for each in (dear, cheap):
        values = each.replicates[:, 0] if each.replicates is not None else np.ones(1)
        variances.append(float(np.var(np.log(np.maximum(values, 1e-9)))))
        known = [s.repetitions for s in each.sizes if s.size_bytes == BASE_SIZE_BYTES]
        freedoms.append(float(max(1, (known[0] if known else min(s.repetitions for s in each.sizes)) - 1)))
    half = float(np.sqrt(sum(variances)) * stdtrit(satterthwaite(variances, freedoms), (1 + level) / 2))
    return Estimate(ratio, ratio * float(np.exp(-half)), ratio * float(np.exp(half)))


SLACK_CYCLES = 2.0
"""The bound of an interaction is no closer to zero than this: so much the layout of code is worth."""


@dataclass(frozen=True)
class Interaction:
    """A pair at one size; all costs in cycles per packet. ``alone`` is the sum of both measured by themselves."""

    platform: str
    first: str
    second: str
    size_bytes: int
    together: Estimate
    alone: Estimate
    extra: Estimate
    resolution_cycles: float

    @property
    def additive(self) -> bool:
        """Whether no interaction is seen: it is not above the resolution, or its interval holds zero."""
        return abs(self.extra.value) <= self.resolution_cycles or (self.extra.bounded and 0.0 in self.extra)


def interactions(
    pairs: Sequence[OperatorCosts],
    operators: Sequence[OperatorCosts],
    *,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Interaction, ...]:
    """The interaction of each pair (``a+b``) of a platform at each size at which all three were measured."""
    known: Mapping[str, OperatorCosts] = {each.operator: each for each in operators}
    generator = np.random.default_rng(seed)
    found = []
    for pair in pairs:
        names = pair_of(pair.operator, known)
        if names is None:
            continue
        first, second = known[names[0]], known[names[1]]
        for size in pair.packet_size_bytes:
            sides = [each.at(size) for each in (pair, first, second)]
            if any(values is None for values in sides):
                continue
            costs = [values for values in sides if values is not None]
            resolution = max(
                each.resolution_cycles[each.packet_size_bytes.index(size)] for each in (pair, first, second)
            )
            together, alone, extra = _terms(costs, level, resamples, generator)
            found.append(Interaction(pair.platform, *names, size, together, alone, extra, resolution))
    return tuple(found)


def bound_cycles(first_cycles: float, second_cycles: float, resolution_cycles: float) -> float:
    """The bound of an interaction, either way: the cheaper operator costs between nothing and twice."""
    return max(min(first_cycles, second_cycles), SLACK_CYCLES) + resolution_cycles


def _terms(
    costs: Sequence[Sequence[float]], level: float, resamples: int, generator: np.random.Generator
) -> tuple[Estimate, Estimate, Estimate]:
    """The pair, the sum, and their difference; variances of medians add."""
    together, first, second = (float(np.median(values)) for values in costs)
    extra = together - first - second
    if any(len(values) < 2 for values in costs):
        return Estimate(together), Estimate(first + second), Estimate(extra)
    variances = [float(np.var(redrawn_medians(values, resamples, generator))) for values in costs]
    freedoms = [len(values) - 1.0 for values in costs]
    return (
        interval(together, variances[0], freedoms[0], level),
        interval(first + second, sum(variances[1:]), satterthwaite(variances[1:], freedoms[1:]), level),
        interval(extra, sum(variances), satterthwaite(variances, freedoms), level),
    )


SHARE = 0.10
"""Costs may differ by this share of the smaller one ..."""
CYCLES = 2.0
"""... or by so many cycles, whichever is more."""
LEAST_CYCLES = 5.0
"""Operators that cost no more than this in both measurements are not compared."""


@dataclass(frozen=True)
class Agreement:
    """One operator at one size in two measurements [cycles per packet], compared above :data:`LEAST_CYCLES`."""

    operator: str
    size_bytes: int
    first: float
    second: float
    allowed: float
    compared: bool

    @property
    def agrees(self) -> bool:
        """Whether they are near enough, or too small to be compared."""
        return not self.compared or abs(self.first - self.second) <= self.allowed


def agreement(first: Platform, second: Platform) -> tuple[Agreement, ...]:
    """Every operator and pair at every size that both measured: within 10 % or 2 cycles."""
    other = {each.operator: each for each in _measured(second)}
    found = []
    for each in _measured(first):
        if each.operator not in other:
            continue
        for size in each.packet_size_bytes:
            values = other[each.operator].at(size)
            if values is not None:
                found.append(_agreement(each.operator, size, each.at(size) or values, values))
    return tuple(found)


def _measured(platform: Platform) -> Sequence[OperatorCosts]:
    return [row for row in (*platform.operators, *platform.pairs) if isinstance(row, OperatorCosts)]


def _agreement(operator: str, size: int, first: Sequence[float], second: Sequence[float]) -> Agreement:
    a, b = float(np.median(first)), float(np.median(second))
    return Agreement(operator, size, a, b, max(CYCLES, SHARE * min(abs(a), abs(b))), max(a, b) > LEAST_CYCLES)
