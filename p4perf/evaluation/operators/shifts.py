"""What differs between platforms, and between operators of one platform: quadrant shifts and ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from p4perf.evaluation.operators.costs import Platform, same_operator
from p4perf.evaluation.operators.profiles import OperatorProfile
from p4perf.evaluation.operators.quadrants import Placement
from p4perf.evaluation.operators.spread import Known, freedom
from p4perf.models.operator import BASE_SIZE_BYTES


@dataclass(frozen=True)
class Shift:
    """The same operator on two platforms, the arrow of the chart.

    Args:
        start: on the platform that was given first.
        end: on the other one.
    """

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
        platform: name of the platform.
        dear: base cost of the operator that is asked about.
        cheap: base cost of the one that it is compared with.
        ratio: dear over cheap with its interval; None if the cheap one is below the resolution.
        at_least: dear over the resolution, if the cheap one is below that.
    """

    platform: str
    dear: OperatorProfile
    cheap: OperatorProfile
    ratio: Known | None
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


def _interval(ratio: float, dear: OperatorProfile, cheap: OperatorProfile, level: float) -> Known:
    if dear.replicates is None or cheap.replicates is None:
        return Known(ratio)
    variances, freedoms = [], []
    for each in (dear, cheap):
        values = each.replicates[:, 0] if each.replicates is not None else np.ones(1)
        variances.append(float(np.var(np.log(np.maximum(values, 1e-9)))))
        known = [s.repetitions for s in each.sizes if s.size_bytes == BASE_SIZE_BYTES]
        freedoms.append(float(max(1, (known[0] if known else min(s.repetitions for s in each.sizes)) - 1)))
    half = float(np.sqrt(sum(variances)) * stdtrit(freedom(variances, freedoms), (1 + level) / 2))
    return Known(ratio, ratio * float(np.exp(-half)), ratio * float(np.exp(half)))
