"""The interval table: the chosen fitting of every part of the samples that a search may ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from p4perf.evaluation.error_metrics import ErrorMetric
from p4perf.evaluation.least_squares import Batch, BatchFit, fit_template, fitted_values
from p4perf.models.bases import FloatArray
from p4perf.models.fitting import Fitting
from p4perf.models.templates import Template

IndexArray = npt.NDArray[np.intp]
CELLS = 150_000
"""Samples (with padding) that one batch holds; about what stays in a cache."""


class SelectionRule(Protocol):
    """How one template is chosen among the fitted ones."""

    def admit(self, template: Template, fit: BatchFit, batch: Batch) -> BatchFit:
        """Change or refuse (with NaN) parameters before the error is taken (Eq. 2)."""

    def choose(self, errors: FloatArray, ranks: FloatArray) -> IndexArray:
        """Index of the chosen template for every row of errors (rows, templates); NaN is never chosen (Eq. 3)."""


@dataclass(frozen=True)
class IntervalTable:
    """For every ``(start, end)`` (indices of the first and last sample, both included) the chosen fitting.

    Args:
        x: ascending abscissae.
        templates: what was fitted.
        row: maps (start, end) to a row of the arrays below; -1 where the interval was not asked for.
        error: error metric of the chosen fitting of each row.
        choice: index of its template.
        parameters: its parameters, padded with NaN.
        origin: its origin.
        errors: error of every template of each row; not finite where it does not apply.
    """

    x: FloatArray
    templates: tuple[Template, ...]
    row: IndexArray
    error: FloatArray
    choice: IndexArray
    parameters: FloatArray
    origin: FloatArray
    errors: FloatArray

    def cost(self) -> FloatArray:
        """Matrix of error times number of samples; infinite where the interval is not in the table."""
        n = len(self.x)
        points = np.arange(n)[None, :] - np.arange(n)[:, None] + 1
        known = self.row >= 0
        return np.where(known, self.error[np.where(known, self.row, 0)] * points, np.inf)

    def ranks(self) -> FloatArray:
        """Matrix of the ranks of the chosen templates; infinite where the interval is not in the table."""
        rank = np.array([t.rank for t in self.templates], dtype=np.float64)[self.choice]
        known = self.row >= 0
        return np.where(known, rank[np.where(known, self.row, 0)], np.inf)

    def fitting(self, start: int, end: int) -> Fitting:
        """The chosen fitting of one interval."""
        row = int(self.row[start, end])
        template = self.templates[int(self.choice[row])]
        values = self.parameters[row, : len(template.parameter_names)]
        return Fitting(
            template=template,
            parameters=tuple(float(v) for v in values),
            start=float(self.x[start]),
            end=float(self.x[end]),
            error=float(self.error[row]),
            points=end - start + 1,
            origin=float(self.origin[row]),
        )


def all_intervals(n: int, min_points: int) -> tuple[IndexArray, IndexArray]:
    """Every interval of at least ``min_points`` of n samples, and that of all samples."""
    starts, ends = np.triu_indices(n, k=min(min_points, n) - 1)
    return starts, ends


def prefixes_and_suffixes(n: int, min_points: int) -> tuple[IndexArray, IndexArray]:
    """What a search for one and two parts needs."""
    cut = np.arange(min_points, n - min_points + 1)
    starts = np.concatenate([[0], np.zeros(len(cut), dtype=np.intp), cut])
    ends = np.concatenate([[n - 1], cut - 1, np.full(len(cut), n - 1)])
    return starts.astype(np.intp), ends.astype(np.intp)


def interval_table(
    x: FloatArray,
    y: FloatArray,
    intervals: tuple[IndexArray, IndexArray],
    templates: Sequence[Template],
    metric: ErrorMetric,
    rule: SelectionRule,
) -> IntervalTable:
    """Fit all templates to all intervals and choose one for each.

    Curve values below 1e-13 of the largest sample count as zero, so that rounding is no error where y is zero.
    """
    starts, ends = intervals
    n, width = len(x), max(len(t.parameter_names) for t in templates)
    row = np.full((n, n), -1, dtype=np.intp)
    row[starts, ends] = np.arange(len(starts))
    errors = np.full((len(starts), len(templates)), np.nan)
    parameters = np.full((len(starts), width), np.nan)
    origin, choice = np.zeros(len(starts)), np.zeros(len(starts), dtype=np.intp)
    ranks = np.array([t.rank for t in templates], dtype=np.float64)
    silence = 1e-13 * float(np.abs(y).max(initial=0.0))
    order = np.argsort(ends - starts, kind="stable")
    for part in _chunks(order, ends - starts + 1):
        batch = Batch.of_intervals(x, y, starts[part], ends[part])
        fits = []
        for index, template in enumerate(templates):
            fit = rule.admit(template, fit_template(batch, template), batch)
            values = fitted_values(batch, template, fit)
            values[np.abs(values) < silence] = 0.0
            errors[part, index] = metric.compute(batch.x, batch.y, values, batch.mask)
            fits.append(fit)
        choice[part] = rule.choose(errors[part], ranks)
        for index, fit in enumerate(fits):
            mine = choice[part] == index
            parameters[part[mine], : fit.parameters.shape[1]] = fit.parameters[mine]
            origin[part[mine]] = fit.origin[mine]
    error = errors[np.arange(len(starts)), choice]
    return IntervalTable(x, tuple(templates), row, error, choice, parameters, origin, errors)


def _chunks(order: IndexArray, points: IndexArray) -> list[IndexArray]:
    """Cut intervals, ordered by length, into batches of at most :data:`CELLS` padded samples."""
    chunks, begin = [], 0
    for at in range(1, len(order) + 1):
        if at == len(order) or (at - begin + 1) * max(int(points[order[at]]), 8) > CELLS:
            chunks.append(order[begin:at])
            begin = at
    return chunks
