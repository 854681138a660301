"""Eq. 3 of Scholz et al. 2021 over combinations without an order: the exact front of error against rank.

For every number of parts and every end, the combinations that no other one beats in both cost and rank are kept, as
sorted arrays: the states of a dynamic programme. Combinations that cannot end within the margin, or not below the rank
of one that is known to be within it, are dropped on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p4perf.evaluation.split_finders.base import Grid, IndexArray, SplitProblem
from p4perf.models.bases import FloatArray

SLACK = 1e-9
"""Sums of the same costs in another order differ by rounding; bounds are loosened by this fraction."""


@dataclass(frozen=True, eq=False)
class _Level:
    """Combinations of one number of parts, ordered by their end, then by rank.

    Args:
        end: position of the last end of each.
        cost: sum of the costs of its parts.
        rank: sum of their weights.
        parent: its row in the level of one part less.
        first: for every position the first row of the combinations that end there or later; one entry more.
    """

    end: IndexArray
    cost: FloatArray
    rank: FloatArray
    parent: IndexArray
    first: IndexArray


def lowest_ranks(
    problem: SplitProblem, grid: Grid, lowest_error: Sequence[Sequence[int] | None]
) -> list[list[int] | None]:
    """Positions of the splits of the lowest rank within the margin of the lowest error, of equal ranks the lower error.

    Args:
        problem: margins and number of samples.
        grid: the reduced problem.
        lowest_error: positions of the splits of the lowest cost for every number of parts from 1.
    """
    parts, last = len(lowest_error), len(grid.ends) - 1
    limit = np.full(parts, -np.inf)
    known = np.full(parts, -np.inf)
    for k, positions in enumerate(lowest_error):
        if positions is not None:
            cost, known[k] = _totals(grid, positions)
            limit[k] = problem.points * problem.margin(cost / problem.points)
    to_go = _to_go(grid.cost, parts), _to_go(np.where(np.isfinite(grid.cost), grid.weight, np.inf), parts)
    loose = limit * (1 + SLACK), known * (1 + SLACK)
    levels: list[_Level] = []
    found: list[list[int] | None] = []
    for used in range(1, parts + 1):
        levels.append(_next_level(grid, levels[-1] if levels else None, used, to_go, loose))
        level = levels[-1]
        rows = np.arange(level.first[last], level.first[last + 1])
        rows = rows[level.cost[rows] <= limit[used - 1] * (1 + 1e-12)]
        found.append(_trace(levels, int(rows[0])) if rows.size else None)
    return found


def _next_level(
    grid: Grid,
    previous: _Level | None,
    used: int,
    to_go: tuple[FloatArray, FloatArray],
    most: tuple[FloatArray, FloatArray],
) -> _Level:
    """Undominated combinations of ``used`` parts, from those of one part less.

    Args:
        grid: the reduced problem.
        previous: combinations of one part less; None for the first part.
        used: number of parts.
        to_go: lowest cost and lowest rank of completing a combination, as of :func:`_to_go`.
        most: highest cost and highest rank of a complete combination, for every number of parts from 1.
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


def _to_go(cost: FloatArray, parts: int) -> FloatArray:
    """Lowest cost of exactly k more parts after each end: matrix (parts, m) with a row for every k from 0."""
    m = len(cost)
    rows = np.full((parts, m), np.inf)
    rows[0, -1] = 0.0
    for k in range(1, parts):
        rows[k, :-1] = (cost[1:] + rows[k - 1]).min(axis=1)
    return rows


def _totals(grid: Grid, positions: Sequence[int]) -> tuple[float, float]:
    """Cost and rank of one combination."""
    starts, ends = [0, *(p + 1 for p in positions)], [*positions, len(grid.ends) - 1]
    return float(grid.cost[starts, ends].sum()), float(grid.weight[starts, ends].sum())


def _trace(levels: Sequence[_Level], row: int) -> list[int]:
    positions = []
    for level, before in zip(levels[:0:-1], levels[-2::-1], strict=True):
        row = int(level.parent[row])
        positions.append(int(before.end[row]))
    return positions[::-1]
