"""Searches for the splits of a piecewise curve over an interval table.

A combination of parts is described by the indices of the last sample of each part but the last. Its error theta is
the mean of the errors of its parts weighted by their numbers of samples, its rank Phi likewise.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from math import comb

import numpy as np

from p4perf.errors import UsageError
from p4perf.evaluation.selection import PairwiseRule
from p4perf.models.bases import FloatArray

MAX_COMBINATIONS = 1_000_000


def lowest_error_splits(cost: FloatArray, parts: int, min_points: int) -> list[tuple[int, ...] | None]:
    """Splits of the lowest combined error, for every number of parts up to ``parts``.

    Dynamic programme over ``D[k][j] = min_i D[k-1][i-1] + cost[i][j]``. It is exact, because the cost of an interval
    does not depend on the others. Of equal sums, that whose last part begins first is taken.

    Args:
        cost: matrix of error times number of samples of the interval from row to column, both included; infinite
            where there is no fitting.
        parts: largest number of parts.
        min_points: smallest number of samples of a part.

    Returns:
        One entry per number of parts from 1; None where the samples are too few.
    """
    n = len(cost)
    gap = np.arange(n)[None, :] - np.arange(n)[:, None] + 1
    cost = np.where((gap >= min_points) | (gap == n), cost, np.inf)
    best = cost[0].copy()
    back: list[list[int]] = []
    found: list[tuple[int, ...] | None] = [() if np.isfinite(best[-1]) else None]
    for _ in range(2, parts + 1):
        total = best[:-1, None] + cost[1:]
        back.append([int(i) for i in total.argmin(axis=0)])
        best = total.min(axis=0)
        if not np.isfinite(best[-1]):
            found.append(None)
            continue
        splits, at = [], n - 1
        for level in reversed(back):
            at = level[at]
            splits.append(at)
        found.append(tuple(reversed(splits)))
    return found


def pairwise_splits(
    cost: FloatArray, ranks: FloatArray, parts: int, min_points: int, rule: PairwiseRule
) -> list[tuple[int, ...] | None]:
    """Splits that win the pairwise rule of the paper over all combinations, in lexicographic order.

    Args:
        cost: as in :func:`lowest_error_splits`.
        ranks: matrix of the ranks of the chosen templates.
        parts: largest number of parts.
        min_points: smallest number of samples of a part.
        rule: Eq. 3.

    Raises:
        UsageError: there are more than a million combinations.
    """
    n = len(cost)
    if comb(n - 1, parts - 1) > MAX_COMBINATIONS:
        raise UsageError(
            f"{parts} parts of {n} samples have {comb(n - 1, parts - 1)} combinations, too many to compare in pairs",
            hint="use fewer parts, or the profile exact, which has no such limit",
        )
    weighted = np.where(np.isfinite(ranks), ranks, 0.0) * (np.arange(n)[None, :] - np.arange(n)[:, None] + 1)
    costs, weights = cost.tolist(), weighted.tolist()
    found: list[tuple[int, ...] | None] = [() if np.isfinite(cost[0, -1]) else None]
    for k in range(2, parts + 1):
        champion: tuple[int, ...] | None = None
        score = (np.inf, np.inf)
        for splits in combinations(range(min_points - 1, n - min_points), k - 1):
            bounds = [-1, *splits, n - 1]
            pairs = list(pairwise(bounds))
            if any(b - a < min_points for a, b in pairs):
                continue
            error = sum(costs[a + 1][b] for a, b in pairs) / n
            if error == np.inf:
                continue
            rival = (error, sum(weights[a + 1][b] for a, b in pairs) / n)
            if champion is None or rule.challenger_wins(score, rival):
                champion, score = splits, rival
        found.append(champion)
    return found
