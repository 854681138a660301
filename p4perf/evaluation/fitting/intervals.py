"""The interval table: the chosen fit of every segment of the samples that a search may ask for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from p4perf.evaluation.fitting import engine
from p4perf.evaluation.fitting.engine import BatchFit, IndexArray, SegmentBatch, least_samples
from p4perf.evaluation.fitting.error_metrics import ErrorMetric
from p4perf.evaluation.fitting.selection import ExactRule, PairwiseRule
from p4perf.models.component import Fitting
from p4perf.models.spline import SplineTemplate
from p4perf.models.templates import BasisTemplate, FloatArray, FunctionTemplate, Template

MAX_CALLS_PER_PARAMETER = 200


def fit_general(batch: SegmentBatch, template: Template, *, robust: bool = False) -> BatchFit:
    """Fit a template to every row of a batch with Levenberg-Marquardt, or a trust region where it has bounds.

    This is what Scholz et al. 2021 use for every template (section 2.2), some thousand times slower than the engine.
    With ``robust`` it minimises a soft L1 loss of relative residuals. Rows with too few samples, and those on which the
    solver fails, get NaN.
    """
    rows, count = len(batch.points), len(template.parameter_names)
    parameters = np.full((rows, count), np.nan)
    for row in np.flatnonzero(batch.points >= least_samples(template)):
        points = int(batch.points[row])
        parameters[row] = _fit_one(template, batch.x[row, :points], batch.y[row, :points], robust)
    return BatchFit(parameters, np.zeros(rows))


def _fit_one(template: Template, x: FloatArray, y: FloatArray, robust: bool) -> FloatArray:
    if isinstance(template, SplineTemplate):
        return template.through(x, y)
    from scipy.optimize import OptimizeWarning, curve_fit

    count = len(template.parameter_names)
    start: tuple[float, ...] = (1.0,) * count
    bounds: Any = (-np.inf, np.inf)
    if isinstance(template, FunctionTemplate):
        start = template.start_values(x, y)
        if template.bounds is not None:
            low, high = np.array(template.bounds).T
            start, bounds = tuple(np.clip(start, low, high)), (low, high)
    options: dict[str, Any] = {"maxfev": MAX_CALLS_PER_PARAMETER * (count + 1), "check_finite": False}
    scale = np.abs(y)
    scale[scale == 0] = scale.max() or 1.0
    distances: dict[str, Any] = {"method": "trf", "loss": "soft_l1", "f_scale": 1e-3, "sigma": scale, "x_scale": "jac"}

    def curve(at: FloatArray, *p: float) -> FloatArray:
        return template.evaluate(at, p)

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error", OptimizeWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            found, _ = curve_fit(curve, x, y, p0=start, bounds=bounds, **options)
            if robust:
                # From anywhere else the distances lead astray.
                found, _ = curve_fit(curve, x, y, p0=found, bounds=bounds, **options, **distances)
        except (RuntimeError, ValueError, OptimizeWarning, np.linalg.LinAlgError):
            return np.full(count, np.nan)
    return np.asarray(found, dtype=np.float64)


CELLS = 150_000
"""Samples (with padding) that one batch holds; about what stays in a cache."""
SILENCE = 1e-13
"""Curve values below this share of the largest sample count as zero: rounding is no error where y is zero."""


@dataclass(frozen=True, eq=False)
class FitProblem:
    """What is fitted to segments, and how one fitting is chosen; ``robust`` minimises relative distances."""

    x: FloatArray
    y: FloatArray
    templates: tuple[Template, ...]
    ranks: tuple[float, ...]
    metric: ErrorMetric
    rule: ExactRule | PairwiseRule
    robust: bool = False
    threads: int | None = None
    progress: Callable[[float], object] | None = None

    @property
    def compiled(self) -> bool:
        """Whether the engine can make the choice itself: it knows the rule, the metric and all templates."""
        known = isinstance(self.rule, ExactRule) and not self.rule.cautious and self.metric.name in engine.METRICS
        ranked = zip(self.templates, self.ranks, strict=True)
        return known and all(engine.knows(template) and template.rank == rank for template, rank in ranked)


@dataclass(frozen=True, eq=False)
class IntervalTable:
    """For every ``(start, end)`` (indices of the first and last sample, both included) the chosen fitting.

    Args:
        row: maps (start, end) to a row of the arrays below; -1 where the interval was not asked for.
        error: error metric of the chosen fitting of each row; infinite if there is none.
        choice: index of its template, -1 if there is none.
    """

    problem: FitProblem
    row: IndexArray
    error: FloatArray
    choice: IndexArray

    def cost(self) -> FloatArray:
        """Matrix of error times number of samples; infinite where the interval is not in the table."""
        n = len(self.problem.x)
        points = np.arange(n)[None, :] - np.arange(n)[:, None] + 1
        cost = np.append(self.error, np.inf)[self.row]
        np.multiply(cost, points, out=cost, where=self.row >= 0)
        return cost

    def ranks(self) -> FloatArray:
        """Matrix of the ranks of the chosen templates; infinite where the interval is not in the table."""
        rank = np.append(np.array(self.problem.ranks, dtype=np.float64), np.inf)[self.choice]
        return np.append(rank, np.inf)[self.row]

    def fitting(self, start: int, end: int) -> Fitting:
        row, problem = int(self.row[start, end]), self.problem
        index = int(self.choice[row])
        template = problem.templates[index]
        starts, ends = np.array([start]), np.array([end])
        batch = SegmentBatch.of_segments(problem.x, problem.y, starts, ends)
        fit = problem.rule.admit(template, fit_segments(problem, (template,), starts, ends, batch)[0], batch)
        return Fitting(
            template=template,
            parameters=tuple(float(v) for v in fit.parameters[0]),
            start=float(problem.x[start]),
            end=float(problem.x[end]),
            error=float(self.error[row]),
            points=end - start + 1,
            origin=float(fit.origin[0]),
            rank=problem.ranks[index],
        )


def interval_table(problem: FitProblem, intervals: tuple[IndexArray, IndexArray]) -> IntervalTable:
    starts, ends = intervals
    n = len(problem.x)
    row = np.full((n, n), -1, dtype=np.intp)
    row[starts, ends] = np.arange(len(starts))
    if problem.compiled:
        assert isinstance(problem.rule, ExactRule)  # noqa: S101 - compiled says so
        error, choice = engine.chosen_templates(
            problem.x, problem.y, starts, ends, problem.templates, problem.rule.choice(problem.metric),
            robust=problem.robust, threads=problem.threads, progress=problem.progress,
        )  # fmt: skip
    else:
        error, choice = _choose_in_batches(problem, starts, ends)
    return IntervalTable(problem, row, error, choice)


def _choose_in_batches(problem: FitProblem, starts: IndexArray, ends: IndexArray) -> tuple[FloatArray, IndexArray]:
    """Errors and choices where the engine only fits: metrics, templates and rules that it does not know."""
    error, choice = np.full(len(starts), np.inf), np.full(len(starts), -1, dtype=np.intp)
    ranks = np.array(problem.ranks, dtype=np.float64)
    silence = SILENCE * float(np.abs(problem.y).max(initial=0.0))
    order = np.argsort(ends - starts, kind="stable")
    chunks = _chunks(order, ends - starts + 1)
    for number, chunk in enumerate(chunks):
        batch = SegmentBatch.of_segments(problem.x, problem.y, starts[chunk], ends[chunk])
        errors = np.full((len(chunk), len(problem.templates)), np.nan)
        fits = fit_segments(problem, problem.templates, starts[chunk], ends[chunk], batch)
        for index, (template, fit) in enumerate(zip(problem.templates, fits, strict=True)):
            values = problem.rule.admit(template, fit, batch).values(template, batch.x)
            values[np.abs(values) < silence] = 0.0
            errors[:, index] = problem.metric.errors(batch.x, batch.y, values, batch.mask)
        chosen = problem.rule.choose(errors, ranks, batch.points)
        error[chunk] = errors[np.arange(len(chunk)), chosen]
        choice[chunk] = chosen
        if problem.progress is not None:
            problem.progress((number + 1) / len(chunks))
    error[~np.isfinite(error)] = np.inf
    choice[np.isinf(error)] = -1
    return error, choice


def fit_segments(
    problem: FitProblem, templates: Sequence[Template], starts: IndexArray, ends: IndexArray, batch: SegmentBatch
) -> list[BatchFit]:
    """Every template fitted to every segment, with parameters about zero wherever that is numerically harmless."""
    known = [t for t in templates if engine.knows(t)]
    fits: Iterator[BatchFit] = iter(())
    if known:
        found = engine.fitted_templates(
            problem.x, problem.y, starts, ends, known, floor=problem.metric.floor, robust=problem.robust,
            threads=problem.threads,
        )  # fmt: skip
        fits = iter(readable(t, found.of(k), problem.x[starts], problem.x[ends]) for k, t in enumerate(known))
    return [next(fits) if engine.knows(t) else fit_general(batch, t, robust=problem.robust) for t in templates]


def readable(template: Template, fit: BatchFit, first: FloatArray, last: FloatArray) -> BatchFit:
    """The same curves written about zero, wherever that is numerically harmless: formulas about zero read best."""
    if not isinstance(template, BasisTemplate):
        return fit
    with np.errstate(all="ignore"):
        moved, harmless = template.basis.about_zero(fit.parameters, fit.origin, first, last)
    harmless = harmless & np.isfinite(moved).all(axis=1)
    return BatchFit(np.where(harmless[:, None], moved, fit.parameters), np.where(harmless, 0.0, fit.origin))


def _chunks(order: IndexArray, points: IndexArray) -> list[IndexArray]:
    """Cut intervals, ordered by length, into batches of at most :data:`CELLS` padded samples."""
    chunks, begin = [], 0
    for at in range(1, len(order) + 1):
        if at == len(order) or (at - begin + 1) * max(int(points[order[at]]), 8) > CELLS:
            chunks.append(order[begin:at])
            begin = at
    return chunks
