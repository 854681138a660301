"""Prices that are not negative, from measured points: weighted least squares that no single point decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from p4perf.evaluation.prediction.design import Design, PriceRow, parts_of
from p4perf.models.bases import FloatArray

FLOOR_CYCLES = 3.0
"""Errors count relative to the cost of a point and so many cycles, so that tiny costs do not decide."""

MANY = 8
"""A point with more of one construct counts less: programs have few of each, and what costs less (or more) in hundreds
says little of them."""

HUBER = 1.5
"""Beyond so many robust standard deviations an error counts linearly (Huber 1964)."""

ROUNDS = 8
RIDGE = 1e-3
RELUCTANT = {"set egress": 30.0, "mispredicted branch": 3.0}
"""Where points do not tell prices apart, a cost is given to the others rather than to these, so many times rather."""

FOLDS = 4
ALWAYS = -1
"""Fold of points that are never left out."""


@dataclass(frozen=True)
class Problem:
    """Measured points and how they count.

    Args:
        rows: the points.
        cycles: their cost over the baseline.
        scale: what their errors are relative to, in cycles.
        folds: which points are left out together, for errors at points that prices do not know.
    """

    rows: Sequence[PriceRow]
    cycles: FloatArray
    scale: FloatArray
    folds: npt.NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[PriceRow]) -> Problem:
        """The problem of some points, those of one experiment in the order of its sweep."""
        cycles = np.array([row.cycles for row in rows])
        count = np.array([_most(row) for row in rows])
        noise = np.array([row.noise for row in rows])
        scale = (np.maximum(np.abs(cycles), noise) + FLOOR_CYCLES) / np.minimum(1.0, MANY / np.maximum(count, 1.0))
        return cls(rows, cycles, scale, _folds(rows))

    def errors(self, predicted: FloatArray) -> FloatArray:
        """Errors in units of the scale."""
        found: FloatArray = (predicted - self.cycles) / self.scale
        return found


def _most(row: PriceRow) -> float:
    """How often the packets of a point meet what they meet most."""
    return max((sum(abs(item.times) for item in items) for items in parts_of(row).values()), default=0.0)


def _folds(rows: Sequence[PriceRow]) -> npt.NDArray[np.int64]:
    """The first and the last point of every experiment stay: without them the others would be extrapolated."""
    folds = np.full(len(rows), ALWAYS, dtype=np.int64)
    for name in dict.fromkeys(row.experiment for row in rows):
        places = [n for n, row in enumerate(rows) if row.experiment == name]
        for k, n in enumerate(places[1:-1]):
            folds[n] = k % FOLDS
    return folds


def solve(
    design: Design, problem: Problem, used: npt.NDArray[np.bool_] | None = None, *, rounds: int = 1
) -> FloatArray:
    """The numbers of all prices, as :meth:`Design.columns` orders them.

    Args:
        design: the system.
        problem: the points.
        used: which of them; None: all.
        rounds: more than one: points with large errors count less from round to round.
    """
    matrix = design.matrix
    kept = np.ones(len(problem.rows), dtype=bool) if used is None else used
    a, b = matrix[kept] / problem.scale[kept, None], problem.cycles[kept] / problem.scale[kept]
    penalty = _penalty(design, matrix / problem.scale[:, None])
    weight = np.ones(len(b))
    for _ in range(rounds):
        numbers = _nonnegative(a * weight[:, None], b * weight, penalty)
        errors = np.abs(a @ numbers - b)
        spread = 1.4826 * float(np.median(errors)) or 1.0
        weight = np.sqrt(np.minimum(1.0, HUBER * spread / np.maximum(errors, 1e-12)))
    return numbers


def _penalty(design: Design, weighted: FloatArray) -> FloatArray:
    """A small price on every number, so that those are told that the points do not tell."""
    norms = RIDGE * np.linalg.norm(weighted, axis=0)
    norms[norms == 0] = RIDGE
    for key, columns in design.columns.items():
        norms[columns] *= RELUCTANT.get(key, 1.0)
    found: FloatArray = norms
    return found


def _nonnegative(a: FloatArray, b: FloatArray, penalty: FloatArray) -> FloatArray:
    """The numbers, none negative, with the least ``|a x - b|^2 + |penalty x|^2`` (Lawson and Hanson 1974, chapter 23).

    With the triangle of Cholesky in place of the system this takes as many rows as there are numbers.
    """
    unit = 1 / penalty
    scaled = a * unit
    triangle = np.linalg.cholesky(scaled.T @ scaled + np.eye(len(penalty)))
    numbers, _ = nnls(triangle.T, np.linalg.solve(triangle, scaled.T @ b), maxiter=50 * len(penalty) + 100)
    found: FloatArray = numbers * unit
    return found


def left_out(design: Design, problem: Problem) -> FloatArray:
    """What prices say of every point that were learnt without it; of the ends of sweeps, with it."""
    predicted = design.matrix @ solve(design, problem)
    for fold in range(FOLDS):
        inside = problem.folds == fold
        if inside.any():
            predicted[inside] = design.matrix[inside] @ solve(design, problem, ~inside)
    return predicted


def loss(design: Design, problem: Problem) -> float:
    """Sum of the errors at points that prices do not know, each one counted as 1 at most."""
    errors = np.abs(problem.errors(left_out(design, problem)))
    return float(np.sum(np.minimum(errors, 1.0)))


def told_apart(matrix: FloatArray, columns: slice) -> bool:
    """Whether the points determine each of some columns, whatever the others are.

    Column j is determined if its unit vector lies in the row space of the matrix.
    """
    norms = np.linalg.norm(matrix, axis=0)
    if not matrix.size or (norms[columns] == 0).any():
        return False
    _, values, rows = np.linalg.svd(matrix / np.where(norms == 0, 1.0, norms), full_matrices=False)
    space = rows[values > 1e-9 * values[0]]
    # The squared length of what the row space holds of each unit vector.
    held = np.sum(space**2, axis=0)
    return bool((held[columns] > 1 - 1e-6).all())
