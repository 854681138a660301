"""Search from coarse to fine, for long series: exact dynamic programming, but over fewer places for splits.

First a part may end only after every g-th sample; then, for each number of parts, within g samples of the splits that
were found. A number of parts can miss a split there because it spent its parts on what the grid shows badly; so each
is searched once more on the grid with all splits that any number of parts has found, and within g samples of what that
gives. Fittings and errors always take all samples. The result is the best of the places that were looked at: it is
within 2 % of the exact error in all tested cases, but that is no guarantee.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from p4perf.evaluation.intervals import IntervalTable, Problem, interval_table
from p4perf.evaluation.selection import ExactRule
from p4perf.evaluation.split_finders import DynamicProgramming, SplitProblem, Splits, wanted_intervals
from p4perf.evaluation.split_finders.base import Candidates

PLACES = 300
"""Number of places for splits in the first round."""
SHARES = (0.0, 0.42, 0.5, 0.92, 1.0)
"""About the shares of the time after which each of the four rounds ends, for progress."""


def coarse_to_fine(
    problem: Problem, rule: ExactRule, parts: int, min_points: int
) -> tuple[IntervalTable, tuple[Splits | None, ...]]:
    """Splits of about the lowest combined error for every number of parts from 1, and the table to read them with.

    Args:
        problem: samples, templates and rule.
        rule: the rule of the problem.
        parts: largest number of parts.
        min_points: smallest number of samples of a part.
    """
    n = len(problem.x)
    step = max(1, math.ceil(n / PLACES))
    grid = np.arange(step - 1, n - 1, step)
    around = np.arange(-step, step + 1)

    def near(*founds: tuple[Splits | None, ...]) -> Candidates:
        """For each number of parts, what is near the splits that were found for it."""
        centres = [np.array([s for found in founds for s in found[k] or ()], dtype=np.intp) for k in range(parts)]
        return tuple(np.unique(np.clip(np.add.outer(c, around), 0, n - 1)) if c.size else grid for c in centres)

    def search(number: int, candidates: Candidates) -> tuple[IntervalTable, tuple[Splits | None, ...]]:
        return _round(_scaled(problem, *SHARES[number : number + 2]), rule, parts, min_points, candidates)

    _, first = search(0, (grid,) * parts)
    _, second = search(1, near(first))
    known = np.array([s for splits in second for s in splits or ()], dtype=np.intp)
    _, third = search(2, (np.union1d(grid, known),) * parts)
    return search(3, near(second, third))


def _round(
    problem: Problem, rule: ExactRule, parts: int, min_points: int, candidates: Candidates
) -> tuple[IntervalTable, tuple[Splits | None, ...]]:
    table = interval_table(problem, wanted_intervals(len(problem.x), min_points, candidates))
    search = SplitProblem(problem.x, problem.y, table.cost(), table.ranks(), parts, min_points, rule, candidates)
    return table, DynamicProgramming().find(search)


def _scaled(problem: Problem, begin: float, end: float) -> Problem:
    """The problem with progress from ``begin`` to ``end``."""
    report = problem.progress
    if report is None:
        return problem
    return replace(problem, progress=lambda share: report(begin + (end - begin) * share))
