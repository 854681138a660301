"""What operators cost, from the measurements of a run: cost and resolution.

The cost of an operator is a difference of two rates (Ren 2025, equation 3)::

    C_op = F (1 / R_op - 1 / R_base)

with the clock rate F in cycles/s, and R_base and R_op in packets/s of the baseline without and with the operator.
In core cycles, F is the rate of the core at that moment; in TSC cycles, that of the time stamp counter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p4perf.errors import DataError
from p4perf.evaluation.statistics import median_interval

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
    """One operator on packets of one size. Costs are in core cycles for a packet unless their name says otherwise.

    ``low`` and ``high`` are the ends of a 95 % interval over starts. A cost below ``resolution_cycles`` is not told
    from none.
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
        """Whether the cost is told from none."""
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
