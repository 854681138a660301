"""Which moderation interval is best at a load: the one that makes the mean or a percentile smallest."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from p4perf.errors import NoVerdictError, UsageError
from p4perf.models.queue.lattice import Lattice
from p4perf.models.queue.moderated import ModeratedQueue
from p4perf.models.queue.results import QueueResult, objective_us

GRID = 20
"""Intervals that are tried first, evenly on a logarithmic axis."""


@dataclass(frozen=True, eq=False)
class Tuned:
    """The best interval.

    Args:
        moderation: the interval [steps].
        objective_us: what was made smallest [us].
        result: the operating point.
        tried: intervals [steps], their objective [us] and their loss, ascending; infinite where the load is too high.
    """

    moderation: int
    objective_us: float
    result: QueueResult
    tried: tuple[tuple[int, float, float], ...]


def tune(queue: ModeratedQueue, objective: str, *, max_loss: float = 0.0, low: int, high: int) -> Tuned:
    """Search the interval with the smallest objective whose loss is not above a bound.

    The objective is computed on a grid and then around the best point, down to single steps.

    Args:
        queue: the system; its own moderation interval does not matter.
        objective: ``mean``, or a percentile such as ``p99``.
        max_loss: largest loss that is allowed.
        low: smallest interval [steps].
        high: largest interval [steps].

    Raises:
        UsageError: the bounds are no interval, or the objective is unknown.
        NoVerdictError: no interval keeps the loss below the bound.
    """
    if not 1 <= low <= high:
        raise UsageError(f"the moderation interval is tuned within 1 step at least, not {low} to {high}")
    if not 0 <= max_loss < 1:
        raise UsageError(f"a loss is 0 to 1, not {max_loss:g}")
    known: dict[int, tuple[float, QueueResult | None]] = {}

    def value(steps: int) -> float:
        if steps not in known:
            known[steps] = _value(replace(queue, moderation=Lattice(np.ones(1), steps)), objective, max_loss)
        return known[steps][0]

    grid = sorted({round(v) for v in np.geomspace(low, high, GRID)})
    best = min(grid, key=value)
    at = grid.index(best)
    left, right = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    while right - left > 2:
        third = max((right - left) // 3, 1)
        a, b = left + third, right - third
        if a >= b:
            break
        if value(a) <= value(b):
            right = b
        else:
            left = a
    for steps in range(left, right + 1):
        value(steps)
    best = min(known, key=lambda steps: (known[steps][0], steps))
    found = known[best][1]
    if found is None or not math.isfinite(known[best][0]):
        raise NoVerdictError(
            f"no moderation interval of {low} to {high} steps keeps the loss at {max_loss:g} or below",
            hint="a lower rate, a larger bound, or a wider range",
        )
    tried = tuple((s, v, math.nan if r is None else r.loss) for s, (v, r) in sorted(known.items()))
    return Tuned(best, known[best][0], found, tried)


def _value(queue: ModeratedQueue, objective: str, max_loss: float) -> tuple[float, QueueResult | None]:
    if queue.limit is None and queue.load() >= 1:
        return math.inf, None
    result = queue.solve()
    return (objective_us(result, objective) if result.loss <= max_loss else math.inf), result
