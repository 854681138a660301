"""Whether two measurements of the same operators agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p4perf.evaluation.operators.costs import OperatorCosts, Platform

SHARE = 0.10
"""Costs may differ by this share of the smaller one ..."""
CYCLES = 2.0
"""... or by so many cycles, whichever is more."""
LEAST_CYCLES = 5.0
"""Operators that cost no more than this in both measurements are not compared."""


@dataclass(frozen=True)
class Agreement:
    """One operator at one size in two measurements; cycles per packet.

    Args:
        operator: name of the operator.
        size_bytes: size of the packets.
        first: median in the first measurement.
        second: median in the second.
        allowed: how far they may be apart.
        compared: whether one of them is above :data:`LEAST_CYCLES`.
    """

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
    """Every operator and pair at every size that both measured: within 10 % or 2 cycles.

    Args:
        first: one measurement.
        second: another one, on the same machine.
    """
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
