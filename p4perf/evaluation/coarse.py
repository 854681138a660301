"""Search from coarse to fine, for long series: exact dynamic programming, but over fewer places for splits.

First a part may end only after every g-th sample; then, for each number of parts, within g samples of the splits that
were found. Fittings and errors always take all samples. The result is the best of the places that were looked at: a
split that moves by more than g samples in the second round was missed in the first.
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
FIRST_SHARE = 0.85
"""About the share of the time that the first round takes, for progress."""


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
    first: Candidates = (grid,) * parts
    _, found = _round(_scaled(problem, 0.0, FIRST_SHARE), rule, parts, min_points, first)
    around = np.arange(-step, step + 1)
    second: Candidates = tuple(
        grid if splits is None else np.unique(np.clip(np.add.outer(splits, around), 0, n - 1)) if splits else grid[:0]
        for splits in found
    )
    return _round(_scaled(problem, FIRST_SHARE, 1.0), rule, parts, min_points, second)


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
