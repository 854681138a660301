"""Enumeration of all combinations of splits: the oracle of the other finders; the paper's way up to three parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from typing import ClassVar

import numpy as np

from p4perf.errors import UsageError
from p4perf.evaluation.selection import PairwiseRule
from p4perf.evaluation.split_finders.base import Grid, IndexArray, SplitFinder, SplitProblem, Splits
from p4perf.models.bases import FloatArray

CHUNK = 50_000
"""Combinations that are looked at together; about what stays in a cache."""


@dataclass(frozen=True)
class BruteForce(SplitFinder):
    """Enumeration of all combinations, in lexicographic order of their splits.

    With :class:`~p4perf.evaluation.selection.ExactRule` the first of the lowest theta wins. With
    :class:`~p4perf.evaluation.selection.PairwiseRule` every combination challenges the winner of those before it, by
    Eq. 3 as printed in Scholz et al. 2021.

    Args:
        joint: apply Eq. 3 to combinations without an order instead, whatever the rule: of all combinations with theta
            within the margin of the lowest theta, that of the lowest rank Phi, of equal ranks that of the lowest theta.
        max_combinations: refuse problems with more combinations of one number of parts.
    """

    joint: bool = False
    max_combinations: int = 1_000_000

    summary: ClassVar[str] = "enumeration of all combinations: exact, follows Eq. 3 to the letter, small problems only"

    def __post_init__(self) -> None:
        """Check options."""
        if self.max_combinations < 1:
            raise UsageError("max_combinations must be 1 at least")

    def find(self, problem: SplitProblem) -> tuple[Splits | None, ...]:
        """The best splits for every number of parts.

        Raises:
            UsageError: there are more than ``max_combinations`` combinations of one number of parts.
        """
        grids = list(problem.grids())
        for numbers, grid in grids:
            self._require_few(numbers, len(grid.ends) - 1)
        return tuple(grid.splits(self._best(problem, grid, parts)) for numbers, grid in grids for parts in numbers)

    def _require_few(self, numbers: range, ends: int) -> None:
        for parts in numbers:
            count = comb(ends, parts - 1)
            if count > self.max_combinations:
                raise UsageError(
                    f"{parts} parts with {ends} possible splits have {count} combinations, too many to enumerate",
                    hint="use fewer parts, or the split finder dynamic, which has no such limit",
                )

    def _best(self, problem: SplitProblem, grid: Grid, parts: int) -> IndexArray | None:
        if self.joint:
            return _joint(problem, grid, parts)
        if isinstance(problem.rule, PairwiseRule):
            return _pairwise(problem, grid, parts, problem.rule)
        return _lowest_error(grid, parts)


def combinations_of(grid: Grid, parts: int) -> Iterator[tuple[IndexArray, FloatArray, FloatArray]]:
    """Combinations of known parts in lexicographic order, in chunks.

    Args:
        grid: the reduced problem.
        parts: number of parts.

    Yields:
        Positions of the splits (c, parts - 1), sums of the costs (c,) and of the weights (c,).
    """
    last = len(grid.ends) - 1
    rows = combinations(range(last), parts - 1)
    while chunk := list(islice(rows, CHUNK)):
        splits = np.array(chunk, dtype=np.intp).reshape(len(chunk), parts - 1)
        cost, weight, start = np.zeros(len(chunk)), np.zeros(len(chunk)), np.zeros(len(chunk), dtype=np.intp)
        for end in (*splits.T, np.full(len(chunk), last)):
            cost += grid.cost[start, end]
            weight += grid.weight[start, end]
            start = end + 1
        known = np.isfinite(cost)
        yield splits[known], cost[known], weight[known]


def _lowest_error(grid: Grid, parts: int) -> IndexArray | None:
    winner, lowest = None, np.inf
    for splits, cost, _ in combinations_of(grid, parts):
        if cost.size and cost.min() < lowest:
            winner, lowest = splits[cost.argmin()], cost.min()
    return winner


def _pairwise(problem: SplitProblem, grid: Grid, parts: int, rule: PairwiseRule) -> IndexArray | None:
    winner, champion = None, (np.inf, np.inf)
    for splits, cost, weight in combinations_of(grid, parts):
        rivals = zip((cost / problem.points).tolist(), (weight / problem.points).tolist(), strict=True)
        for index, rival in enumerate(rivals):
            if winner is None or rule.challenger_wins(champion, rival):
                winner, champion = splits[index], rival
    return winner


def _joint(problem: SplitProblem, grid: Grid, parts: int) -> IndexArray | None:
    lowest = min((cost.min(initial=np.inf) for _, cost, _ in combinations_of(grid, parts)), default=np.inf)
    limit = problem.points * problem.margin(lowest / problem.points) * (1 + 1e-12)
    winner, score = None, (np.inf, np.inf)
    for splits, cost, weight in combinations_of(grid, parts):
        order = np.lexsort((cost, np.where(cost <= limit, weight, np.inf)))[:1]
        for index in order[cost[order] <= limit]:
            rival = (float(weight[index]), float(cost[index]))
            if rival < score:
                winner, score = splits[index], rival
    return winner
