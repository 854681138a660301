"""Dynamic programming: the exact optimum in polynomial time, because the cost of a part does not depend on others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from p4perf.evaluation.selection import PairwiseRule
from p4perf.evaluation.split_finders.base import Grid, SplitFinder, SplitProblem, Splits
from p4perf.evaluation.split_finders.front import lowest_ranks


@dataclass(frozen=True)
class DynamicProgramming(SplitFinder):
    """Dynamic programming over the samples.

    With :class:`~p4perf.evaluation.selection.ExactRule` it finds the lowest theta: ``D[k][j] = min_i D[k-1][i-1] +
    cost[i][j]`` in O(k n^2). Of equal sums, that whose last part begins first is taken.

    Eq. 3 compared in pairs depends on the order of comparison, so no dynamic programme can follow it. With
    :class:`~p4perf.evaluation.selection.PairwiseRule`, or where ``joint`` asks for it, the same rule is applied without
    an order: of all combinations with theta within the margin of the lowest theta, that of the lowest rank Phi, of
    equal ranks that of the lowest theta.

    Args:
        joint: apply Eq. 3 to combinations also with ``ExactRule``. It makes curves simpler and moves splits: parts
            chosen by Eq. 3 are weighed a second time.
    """

    joint: bool = False

    summary: ClassVar[str] = "dynamic programming: exact"

    def find(self, problem: SplitProblem) -> tuple[Splits | None, ...]:
        """The best splits for every number of parts."""
        joint = self.joint or isinstance(problem.rule, PairwiseRule)
        found: list[Splits | None] = []
        for numbers, grid in problem.grids():
            best = lowest_errors(grid, numbers.stop - 1)
            if joint:
                best = lowest_ranks(problem, grid, best)
            found.extend(grid.splits(positions) for positions in best[numbers.start - 1 :])
        return tuple(found)


def lowest_errors(grid: Grid, parts: int) -> list[list[int] | None]:
    """Positions of the splits of the lowest cost for every number of parts from 1; None where there are none."""
    last = len(grid.ends) - 1
    best = grid.cost[0]
    back: list[list[int]] = []
    found: list[list[int] | None] = [[] if np.isfinite(best[last]) else None]
    for _ in range(2, parts + 1):
        if last == 0:
            found.append(None)
            continue
        total = best[:-1, None] + grid.cost[1:]
        choice = total.argmin(axis=0)
        best = total[choice, np.arange(last + 1)]
        back.append(choice.tolist())
        found.append(_trace(back, last) if np.isfinite(best[last]) else None)
    return found


def _trace(back: list[list[int]], last: int) -> list[int]:
    positions, at = [], last
    for level in reversed(back):
        at = level[at]
        positions.append(at)
    return positions[::-1]
