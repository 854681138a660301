"""Exact searches for breakpoints: dynamic programming, enumeration, and the front of error against rank.

For every number of segments and every end, the combinations that no other one beats in both cost and rank are kept, as
sorted arrays: the states of a dynamic programme. Combinations that cannot end within the margin, or not below the rank
of one that is known to be within it, are dropped on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from typing import ClassVar

import numpy as np
from typing_extensions import override

from p4perf.errors import UsageError
from p4perf.evaluation.fitting.selection import PairwiseRule
from p4perf.evaluation.fitting.split_finders.base import Breakpoints, IndexArray, SplitFinder, SplitGrid, SplitProblem
from p4perf.models.templates import FloatArray

SLACK = 1e-9
"""Sums of the same costs in another order differ by rounding; bounds are loosened by this fraction."""


@dataclass(frozen=True, eq=False)
class _Level:
    """Combinations of one number of segments, ordered by their end, then by rank.

    Args:
        first: for every position the first row of the combinations that end there or later; one entry more.
    """

    end: IndexArray
    cost: FloatArray
    rank: FloatArray
    parent: IndexArray
    first: IndexArray


def lowest_ranks(
    problem: SplitProblem, grid: SplitGrid, lowest_error: Sequence[Sequence[int] | None]
) -> list[list[int] | None]:
    """Positions of the breakpoints of the lowest rank within the margin; of equal ranks, the lower error.

    Args:
        lowest_error: positions of the breakpoints of the lowest cost for every number of segments from 1.
    """
    segments, last = len(lowest_error), len(grid.ends) - 1
    limit = np.full(segments, -np.inf)
    known = np.full(segments, -np.inf)
    for k, positions in enumerate(lowest_error):
        if positions is not None:
            cost, known[k] = _totals(grid, positions)
            limit[k] = problem.points * problem.margin(cost / problem.points)
    to_go = _to_go(grid.cost, segments), _to_go(np.where(np.isfinite(grid.cost), grid.weight, np.inf), segments)
    loose = limit * (1 + SLACK), known * (1 + SLACK)
    levels: list[_Level] = []
    found: list[list[int] | None] = []
    for used in range(1, segments + 1):
        levels.append(_next_level(grid, levels[-1] if levels else None, used, to_go, loose))
        level = levels[-1]
        rows = np.arange(level.first[last], level.first[last + 1])
        rows = rows[level.cost[rows] <= limit[used - 1] * (1 + 1e-12)]
        found.append(_trace(levels, int(rows[0])) if rows.size else None)
    return found


def _next_level(
    grid: SplitGrid,
    previous: _Level | None,
    used: int,
    to_go: tuple[FloatArray, FloatArray],
    most: tuple[FloatArray, FloatArray],
) -> _Level:
    """Undominated combinations of ``used`` segments, from those of one segment less.

    Args:
        to_go: lowest cost and lowest rank of completing a combination, as of :func:`_to_go`.
        most: highest cost and highest rank of a complete combination, for every number of segments from 1.
    """
    m = len(grid.ends)
    pieces: list[tuple[IndexArray, FloatArray, FloatArray, IndexArray]] = []
    for end in range(m):
        if previous is None:
            parent = np.zeros(1, dtype=np.intp)
            cost, rank = grid.cost[:1, end], grid.weight[:1, end]
        else:
            parent = np.arange(previous.first[end])
            start = previous.end[parent] + 1
            cost = previous.cost[parent] + grid.cost[start, end]
            rank = previous.rank[parent] + grid.weight[start, end]
        keep = np.zeros(len(cost), dtype=np.bool_)
        for more in range(len(most[0]) - used + 1):
            keep |= (cost + to_go[0][more, end] <= most[0][used + more - 1]) & (
                rank + to_go[1][more, end] <= most[1][used + more - 1]
            )
        parent, cost, rank = parent[keep], cost[keep], rank[keep]
        order = np.lexsort((cost, rank))
        parent, cost, rank = parent[order], cost[order], rank[order]
        lowest = np.minimum.accumulate(cost)
        front = np.append(True, cost[1:] < lowest[:-1])[: len(cost)]
        pieces.append((np.full(int(front.sum()), end), cost[front], rank[front], parent[front]))
    ends, costs, ranks, parents = (np.concatenate(column) for column in zip(*pieces, strict=True))
    return _Level(ends, costs, ranks, parents, np.searchsorted(ends, np.arange(m + 1)))


def _to_go(cost: FloatArray, segments: int) -> FloatArray:
    """Lowest cost of exactly k more segments after each end: matrix (segments, m) with a row for every k from 0."""
    m = len(cost)
    rows = np.full((segments, m), np.inf)
    rows[0, -1] = 0.0
    for k in range(1, segments):
        rows[k, :-1] = (cost[1:] + rows[k - 1]).min(axis=1)
    return rows


def _totals(grid: SplitGrid, positions: Sequence[int]) -> tuple[float, float]:
    starts, ends = [0, *(p + 1 for p in positions)], [*positions, len(grid.ends) - 1]
    return float(grid.cost[starts, ends].sum()), float(grid.weight[starts, ends].sum())


def _trace(levels: Sequence[_Level], row: int) -> list[int]:
    positions = []
    for level, before in zip(levels[:0:-1], levels[-2::-1], strict=True):
        row = int(level.parent[row])
        positions.append(int(before.end[row]))
    return positions[::-1]


@dataclass(frozen=True)
class DynamicProgramming(SplitFinder):
    """Dynamic programming over the samples.

    With :class:`~p4perf.evaluation.fitting.selection.ExactRule` it finds the lowest theta: ``D[k][j] = min_i
    D[k-1][i-1] + cost[i][j]`` in O(k n^2). Of equal sums, that whose last segment begins first is taken.

    Eq. 3 compared in pairs depends on the order of comparison, so no dynamic programme can follow it. With
    :class:`~p4perf.evaluation.fitting.selection.PairwiseRule`, or where ``joint`` asks for it, the same rule is
    applied without
    an order: of all combinations with theta within the margin of the lowest theta, that of the lowest rank Phi, of
    equal ranks that of the lowest theta.

    Args:
        joint: apply Eq. 3 to combinations also with ``ExactRule``. It makes curves simpler and moves breakpoints:
            segments chosen by Eq. 3 are weighed a second time.
    """

    joint: bool = False

    summary: ClassVar[str] = "dynamic programming: exact"

    @override
    def find(self, problem: SplitProblem) -> tuple[Breakpoints | None, ...]:
        joint = self.joint or isinstance(problem.rule, PairwiseRule)
        found: list[Breakpoints | None] = []
        for numbers, grid in problem.grids():
            best = lowest_errors(grid, numbers.stop - 1)
            if joint:
                best = lowest_ranks(problem, grid, best)
            found.extend(grid.breakpoints(positions) for positions in best[numbers.start - 1 :])
        return tuple(found)


def lowest_errors(grid: SplitGrid, segments: int) -> list[list[int] | None]:
    """Positions of the breakpoints of the lowest cost for every number of segments from 1, or None."""
    last = len(grid.ends) - 1
    best = grid.cost[0]
    back: list[list[int]] = []
    found: list[list[int] | None] = [[] if np.isfinite(best[last]) else None]
    for _ in range(2, segments + 1):
        if last == 0:
            found.append(None)
            continue
        total = best[:-1, None] + grid.cost[1:]
        choice = total.argmin(axis=0)
        best = total[choice, np.arange(last + 1)]
        back.append(choice.tolist())
        found.append(_trace_back(back, last) if np.isfinite(best[last]) else None)
    return found


def _trace_back(back: list[list[int]], last: int) -> list[int]:
    positions, at = [], last
    for level in reversed(back):
        at = level[at]
        positions.append(at)
    return positions[::-1]


CHUNK = 50_000
"""Combinations that are looked at together; about what stays in a cache."""


@dataclass(frozen=True)
class BruteForce(SplitFinder):
    """Enumeration of all combinations, in lexicographic order of their breakpoints.

    With :class:`~p4perf.evaluation.fitting.selection.ExactRule` the first of the lowest theta wins. With
    :class:`~p4perf.evaluation.fitting.selection.PairwiseRule` every combination challenges the winner of those
    before it, by Eq. 3 as printed in Scholz et al. 2021.

    Args:
        joint: apply Eq. 3 to combinations without an order instead, whatever the rule: of all combinations with theta
            within the margin of the lowest theta, that of the lowest rank Phi, of equal ranks that of the lowest theta.
        max_combinations: refuse problems with more combinations of one number of segments.
    """

    joint: bool = False
    max_combinations: int = 1_000_000

    summary: ClassVar[str] = "enumeration of all combinations: exact, follows Eq. 3 to the letter, small problems only"

    def __post_init__(self) -> None:
        if self.max_combinations < 1:
            raise UsageError("max_combinations must be at least 1")

    @override
    def find(self, problem: SplitProblem) -> tuple[Breakpoints | None, ...]:
        wanted = [(segments, grid) for numbers, grid in problem.grids() for segments in numbers]
        for segments, grid in wanted:
            ends = len(grid.ends) - 1
            if (count := comb(ends, segments - 1)) > self.max_combinations:
                raise UsageError(
                    f"{segments} segments with {ends} possible breakpoints have {count} combinations, "
                    "too many to enumerate",
                    hint="use fewer segments, or the split finder dynamic, which has no such limit",
                )
        return tuple(grid.breakpoints(self._best(problem, grid, segments)) for segments, grid in wanted)

    def _best(self, problem: SplitProblem, grid: SplitGrid, segments: int) -> IndexArray | None:
        if self.joint:
            return _joint(problem, grid, segments)
        if isinstance(problem.rule, PairwiseRule):
            return _pairwise(problem, grid, segments, problem.rule)
        return _lowest_error(grid, segments)


def combinations_of(grid: SplitGrid, segments: int) -> Iterator[tuple[IndexArray, FloatArray, FloatArray]]:
    """Combinations of known segments in lexicographic order, in chunks.

    Yields:
        Positions of the breakpoints (c, segments - 1), sums of the costs (c,) and of the weights (c,).
    """
    last = len(grid.ends) - 1
    rows = combinations(range(last), segments - 1)
    while chunk := list(islice(rows, CHUNK)):
        breakpoints = np.array(chunk, dtype=np.intp).reshape(len(chunk), segments - 1)
        cost, weight, start = np.zeros(len(chunk)), np.zeros(len(chunk)), np.zeros(len(chunk), dtype=np.intp)
        for end in (*breakpoints.T, np.full(len(chunk), last)):
            cost += grid.cost[start, end]
            weight += grid.weight[start, end]
            start = end + 1
        known = np.isfinite(cost)
        yield breakpoints[known], cost[known], weight[known]


def _lowest_error(grid: SplitGrid, segments: int) -> IndexArray | None:
    winner, lowest = None, np.inf
    for breakpoints, cost, _ in combinations_of(grid, segments):
        if cost.size and cost.min() < lowest:
            winner, lowest = breakpoints[cost.argmin()], cost.min()
    return winner


def _pairwise(problem: SplitProblem, grid: SplitGrid, segments: int, rule: PairwiseRule) -> IndexArray | None:
    winner, champion = None, (np.inf, np.inf)
    for breakpoints, cost, weight in combinations_of(grid, segments):
        rivals = zip((cost / problem.points).tolist(), (weight / problem.points).tolist(), strict=True)
        for index, rival in enumerate(rivals):
            if winner is None or rule.challenger_wins(champion, rival):
                winner, champion = breakpoints[index], rival
    return winner


def _joint(problem: SplitProblem, grid: SplitGrid, segments: int) -> IndexArray | None:
    lowest = min((cost.min(initial=np.inf) for _, cost, _ in combinations_of(grid, segments)), default=np.inf)
    limit = problem.points * problem.margin(lowest / problem.points) * (1 + 1e-12)
    winner, score = None, (np.inf, np.inf)
    for breakpoints, cost, weight in combinations_of(grid, segments):
        order = np.lexsort((cost, np.where(cost <= limit, weight, np.inf)))[:1]
        for index in order[cost[order] <= limit]:
            rival = (float(weight[index]), float(cost[index]))
            if rival < score:
                winner, score = breakpoints[index], rival
    return winner
