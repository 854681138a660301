"""Costs of operators: measured with repetitions, or published laws.

The cost of an operator is a difference of two rates (Ren 2025, equation 3)::

    C_op = F (1 / R_op - 1 / R_base)

with the clock rate F in cycles/s, and R_base and R_op in packets/s of the baseline without and with the operator.
In core cycles, F is the rate of the core at that moment; in TSC cycles, that of the time stamp counter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p4perf.errors import DataError
from p4perf.models.operator import PowerLaw
from p4perf.models.templates import FloatArray
from p4perf.results.table import median_interval

if TYPE_CHECKING:
    import pandas as pd


COST = "cost_cycles_per_packet"
RESOLUTION = "cost_resolution_cycles_per_packet"
COST_TSC = "cost_tsc_cycles_per_packet"
BASELINE = "baseline_cycles_per_packet"

OPERATOR, PACKET_SIZE = "operator", "packet_size"
"""The swept variables."""

TOGETHER = "+"
"""Joins the names of two operators that run together."""


def cost_cycles(clock_hz: float, operator_pps: float, baseline_pps: float) -> float:
    """Equation 3: cycles for a packet, from rates in packets a second and a clock in Hz."""
    return clock_hz * (1 / operator_pps - 1 / baseline_pps)


@dataclass(frozen=True, slots=True)
class OperatorCost:
    """One operator on packets of one size. Costs are in core cycles per packet unless their name has another unit.

    ``low`` and ``high`` are the ends of a 95 % interval over starts. A cost below ``resolution_cycles`` cannot be
    distinguished from zero.
    """

    operator: str
    packet_size_bytes: int
    cost_cycles: float
    low: float
    high: float
    resolution_cycles: float
    cost_tsc_cycles: float
    baseline_cycles: float
    starts: int

    @property
    def resolved(self) -> bool:
        """Whether the cost can be distinguished from zero."""
        return self.cost_cycles >= self.resolution_cycles

    def text(self) -> str:
        """The cost, or below what it is, in words."""
        return f"{self.cost_cycles:.1f}" if self.resolved else f"below {self.resolution_cycles:.1f} cycles"


def operator_costs(measurements: pd.DataFrame) -> tuple[OperatorCost, ...]:
    """Costs of all operators of a run that have accepted starts, by operator in the order of the run, then by size.

    The resolution is the largest of two: the least difference that the windows of one start tell from none (median over
    starts), and half the range of the costs of the starts.

    Raises:
        DataError: the run sweeps no operators, or has no accepted cost.
    """
    for column in (OPERATOR, PACKET_SIZE):
        if column not in measurements.columns:
            raise DataError(f"the run does not sweep {column}: it has no costs of operators")
    accepted = measurements[measurements["accepted"].astype(bool)]
    if not (accepted["metric"] == COST).any():
        raise DataError(f"the run has no accepted {COST}")
    found = []
    for (name, size), rows in accepted.groupby([OPERATOR, PACKET_SIZE], sort=False):
        values = {m: of["value"].to_numpy(dtype=np.float64) for m, of in rows.groupby("metric")}
        if COST not in values:
            continue
        costs = values[COST]
        median, low, high = median_interval(costs)
        within = float(np.median(values[RESOLUTION])) if RESOLUTION in values else 0.0
        found.append(
            OperatorCost(
                operator=str(name),
                packet_size_bytes=int(str(size)),
                cost_cycles=median,
                low=low,
                high=high,
                resolution_cycles=max(within, float(np.ptp(costs)) / 2),
                cost_tsc_cycles=float(np.median(values[COST_TSC])) if COST_TSC in values else math.nan,
                baseline_cycles=float(np.median(values[BASELINE])) if BASELINE in values else math.nan,
                starts=len(costs),
            )
        )
    order = {name: n for n, name in enumerate(dict.fromkeys(measurements.sort_values("point_index")[OPERATOR]))}
    return tuple(sorted(found, key=lambda c: (order[c.operator], c.packet_size_bytes)))


@dataclass(frozen=True)
class OperatorCosts:
    """Measured costs of one operator on one platform, each the difference to a baseline measured beside it.

    Args:
        packet_size_bytes: ascending sizes, without duplicates; n of them.
        cycles: for each size the accepted repetitions, one at least, in cycles per packet. A cost can be negative.
        resolution_cycles: for each size the cost below which it cannot be distinguished from zero.
        same_as: what the operator is called on other platforms, if not by its own name.
    """

    operator: str
    platform: str
    packet_size_bytes: tuple[int, ...]
    cycles: tuple[tuple[float, ...], ...]
    resolution_cycles: tuple[float, ...]
    same_as: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        what = f"the costs of {self.operator} on {self.platform}"
        if not len(self.packet_size_bytes) == len(self.cycles) == len(self.resolution_cycles) >= 1:
            raise DataError(f"{what} need sizes, repetitions and resolutions of the same number, one at least")
        if any(b <= a for a, b in zip((0, *self.packet_size_bytes), self.packet_size_bytes, strict=False)):
            raise DataError(f"{what} have sizes that are not positive and ascending")
        if any(not values for values in self.cycles):
            raise DataError(f"{what} have a size without repetitions")
        every = [v for values in self.cycles for v in values]
        if not all(math.isfinite(v) for v in (*every, *self.resolution_cycles)) or min(self.resolution_cycles) < 0:
            raise DataError(f"{what} are not finite, or a resolution is negative")

    @property
    def sizes(self) -> FloatArray:
        return np.asarray(self.packet_size_bytes, dtype=np.float64)

    def medians(self) -> FloatArray:
        """Median cost at each size in cycles, shape (n,)."""
        return np.array([np.median(values) for values in self.cycles])

    def seen(self) -> tuple[bool, ...]:
        """For each size, whether the median differs from zero: positive, and not below the resolution."""
        return tuple(bool(m >= r and m > 0) for m, r in zip(self.medians(), self.resolution_cycles, strict=True))

    def at(self, size_bytes: int) -> tuple[float, ...] | None:
        known = dict(zip(self.packet_size_bytes, self.cycles, strict=True))
        return known.get(size_bytes)


@dataclass(frozen=True)
class StatedLaw:
    """A published law of an operator; ``same_as`` are its names on other platforms, if not its own."""

    operator: str
    platform: str
    law: PowerLaw
    r_squared: float | None
    sizes_bytes: tuple[int, ...]
    same_as: tuple[str, ...] = ()


@dataclass(frozen=True)
class Platform:
    """A machine with its operators.

    Args:
        source: where the numbers come from: a run directory, or a publication.
        pairs: two operators together, named ``a+b``.
    """

    name: str
    title: str
    source: str
    published: bool
    operators: tuple[OperatorCosts | StatedLaw, ...]
    pairs: tuple[OperatorCosts, ...] = ()

    def __post_init__(self) -> None:
        names = [row.operator for row in (*self.operators, *self.pairs)]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise DataError(f"{self.name} has a duplicate operator {twice[0]}")
        if others := [row for row in (*self.operators, *self.pairs) if row.platform != self.name]:
            raise DataError(f"{others[0].operator} belongs to {others[0].platform}, not to {self.name}")

    def named(self, wanted: str) -> tuple[OperatorCosts | StatedLaw, ...]:
        """Operators that are called so, here or elsewhere."""
        return tuple(o for o in self.operators if wanted == o.operator or wanted in o.same_as)


def same_operator(a: OperatorCosts | StatedLaw, b: OperatorCosts | StatedLaw) -> bool:
    """Whether rows of two platforms are about the same operator: their names elsewhere have one in common."""
    return not {*(a.same_as or (a.operator,))}.isdisjoint(b.same_as or (b.operator,))


def pair_of(name: str, operators: Mapping[str, OperatorCosts] | Sequence[str]) -> tuple[str, str] | None:
    """The two operators that a name joins; None if it joins no two of those that are there."""
    first, sign, second = name.partition(TOGETHER)
    return (first, second) if sign and first in operators and second in operators else None
