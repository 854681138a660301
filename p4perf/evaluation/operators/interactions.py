"""Two operators together: does the pair cost what both cost alone?

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

from p4perf.evaluation.operators.costs import OperatorCosts, pair_of
from p4perf.evaluation.operators.spread import Known, freedom, interval, redrawn_medians
from p4perf.evaluation.statistics import LEVEL, RESAMPLES, SEED

SLACK_CYCLES = 2.0
"""The bound of an interaction is no closer to zero than this: so much the layout of code is worth."""


@dataclass(frozen=True)
class Interaction:
    """A pair at one size; all costs in cycles per packet.

    Args:
        platform: name of the platform.
        first: one operator.
        second: the other.
        size_bytes: size of the packets.
        together: cost of the pair, with its interval.
        alone: sum of the costs of both, each measured by itself, with its interval.
        extra: the interaction, with its interval.
        resolution_cycles: the largest resolution of the three.
    """

    platform: str
    first: str
    second: str
    size_bytes: int
    together: Known
    alone: Known
    extra: Known
    resolution_cycles: float

    @property
    def additive(self) -> bool:
        """Whether no interaction is seen: it is not above the resolution, or its interval holds zero."""
        return abs(self.extra.value) <= self.resolution_cycles or bool(self.extra.holds(0.0))


def interactions(
    pairs: Sequence[OperatorCosts],
    operators: Sequence[OperatorCosts],
    *,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Interaction, ...]:
    """The interaction of each pair at each size at which all three were measured.

    Args:
        pairs: costs of pairs, named ``a+b``.
        operators: costs of single operators, on the same platform.
        level: coverage that intervals aim at.
        resamples: bootstrap resamples.
        seed: seed of the generator.
    """
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
    """What an interaction is stated to be within, either way: the cheaper operator costs between nothing and twice.

    Args:
        first_cycles: cost of one operator by itself.
        second_cycles: cost of the other.
        resolution_cycles: the largest resolution of the two and of both together.
    """
    return max(min(first_cycles, second_cycles), SLACK_CYCLES) + resolution_cycles


def _terms(
    costs: Sequence[Sequence[float]], level: float, resamples: int, generator: np.random.Generator
) -> tuple[Known, Known, Known]:
    """The pair, the sum, and their difference; variances of medians add."""
    together, first, second = (float(np.median(values)) for values in costs)
    extra = together - first - second
    if any(len(values) < 2 for values in costs):
        return Known(together), Known(first + second), Known(extra)
    variances = [float(np.var(redrawn_medians(values, resamples, generator))) for values in costs]
    freedoms = [len(values) - 1.0 for values in costs]
    return (
        interval(together, variances[0], freedoms[0], level),
        interval(first + second, sum(variances[1:]), freedom(variances[1:], freedoms[1:]), level),
        interval(extra, sum(variances), freedom(variances, freedoms), level),
    )
