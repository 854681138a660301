"""The fit engine: least squares of function templates on the segments of a series, compiled.

Two questions can be asked. :func:`chosen_templates` names for every segment the template that the order-free reading of
Eq. 3 (Scholz et al. 2021) chooses, and its error; higher ranks are not even fitted where they cannot change the
choice. :func:`fitted_templates` gives the parameters of every template on every segment.

Linear templates are solved by Givens rotations that grow with the segment; a shape parameter is searched on a
logarithmic grid with the coefficients eliminated (variable projection); shapes and reciprocals are refined by
Gauss-Newton steps on the true residuals. Threads share the starts of segments; a result depends neither on their number
nor on the order of the templates.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p4perf.errors import UsageError
from p4perf.evaluation.fitting.engine import _kernel
from p4perf.models.spline import SplineTemplate
from p4perf.models.templates import (
    Basis,
    BasisTemplate,
    Exponential,
    FloatArray,
    Logarithm,
    Polynomial,
    Power,
    ShiftedLogarithm,
    Template,
)

IndexArray = npt.NDArray[np.intp]
Progress = Callable[[float], object]

MAX_COLUMNS = 6
METRICS = {"smape": 0, "smape_pooled": 1, "mape": 2, "rmse": 3}
"""Error metrics that the engine computes itself."""
_KINDS: dict[type[Basis], int] = {
    Polynomial: 0, Logarithm: 1, ShiftedLogarithm: 2, Exponential: 3, Power: 4,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Choice:
    """How one template is chosen for each segment.

    Args:
        metric: one of :data:`METRICS`.
        kappa: absolute margin of Eq. 3, in units of the metric.
        kappa_rel: margin relative to the lowest error.
        kappa_points: number of samples up to which kappa holds; in longer segments it is ``kappa * kappa_points / n``.
        bulge: how far a curve may leave the range of its samples between them, as a fraction of that range.
        samples_per_parameter: smallest number of samples for each parameter of a template that can bulge.
        floor: size below which samples count as this large in the metric smape, in units of y.
    """

    metric: str
    kappa: float
    kappa_rel: float
    kappa_points: float
    bulge: float
    samples_per_parameter: int
    floor: float = 0.0


def can_bulge(template: Template) -> bool:
    """Whether the curve of a template may leave the range of its samples between them: degree two and more."""
    return isinstance(template, BasisTemplate) and isinstance(template.basis, Polynomial) and template.basis.degree >= 2


def knows(template: Template) -> bool:
    """Whether the engine can fit a template; others are left to a general solver."""
    if not isinstance(template, BasisTemplate):
        return False
    basis = template.basis
    if type(basis) not in _KINDS:
        return False
    if isinstance(basis, Polynomial):
        return basis.degree < MAX_COLUMNS and not (template.inverse and basis.degree == 0)
    return not (isinstance(basis, Power) and template.inverse)


def threads_available() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def least_samples(template: Template) -> int:
    """Fewest samples for a template: one more than parameters; a constant needs one, a spline as many as knots."""
    if isinstance(template, SplineTemplate):
        return template.knots
    count = len(template.parameter_names)
    return 1 if count == 1 else count + 1


def _rows(templates: Sequence[Template], ranks: Sequence[float]) -> FloatArray:
    rows = []
    for template, rank in zip(templates, ranks, strict=True):
        if not knows(template):
            raise UsageError(f"the fit engine does not know the template {template.name}")
        assert isinstance(template, BasisTemplate)  # noqa: S101 - knows() has checked
        basis = template.basis
        rows.append(
            (_KINDS[type(basis)], len(basis.linear_names), template.inverse, can_bulge(template),
             least_samples(template), rank)
        )  # fmt: skip
    return np.array(rows, dtype=np.float64)


def _runs(row: IndexArray, starts: IndexArray, ends: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Order of the segments, and runs of equal row and start: columns row, first, from, to."""
    order = np.lexsort((ends, starts, row))
    new = np.flatnonzero((np.diff(row[order]) != 0) | (np.diff(starts[order]) != 0)) + 1
    begin = np.concatenate([[0], new]) if len(order) else np.zeros(0, dtype=np.int64)
    stop = np.concatenate([begin[1:], [len(order)]]) if len(order) else begin
    first = order[begin]
    return order, np.ascontiguousarray(np.stack([row[first], starts[first], begin, stop], axis=1), dtype=np.int64)


def _prepared(
    x: FloatArray, y: FloatArray, starts: IndexArray, ends: IndexArray, row: IndexArray | None
) -> tuple[FloatArray, FloatArray, IndexArray, IndexArray, IndexArray]:
    """Samples, order and runs of the segments as :func:`_runs` has them, and the ends of the segments in that order."""
    starts, ends = np.asarray(starts, dtype=np.int64), np.asarray(ends, dtype=np.int64)
    xs = np.ascontiguousarray(x, dtype=np.float64)
    ys = np.ascontiguousarray(np.atleast_2d(y), dtype=np.float64)
    if xs.ndim != 1 or ys.shape[1:] != xs.shape or not len(xs) or not (np.diff(xs) > 0).all():
        raise UsageError("the fit engine needs ascending x and as many y")
    if not (np.isfinite(xs).all() and np.isfinite(ys).all()):
        raise UsageError("the fit engine needs finite samples")
    if len(starts) and (starts.min() < 0 or (ends < starts).any() or ends.max() >= len(xs)):
        raise UsageError("a segment must lie within the samples")
    series = np.zeros(len(starts), dtype=np.int64) if row is None else np.asarray(row, dtype=np.int64)
    if len(series) and not (series.min() >= 0 and series.max() < len(ys)):
        raise UsageError("a segment must belong to one of the series")
    order, runs = _runs(series, starts, ends)
    return xs, ys, order, runs, np.ascontiguousarray(ends[order])


def chosen_templates(
    x: FloatArray,
    y: FloatArray,
    starts: IndexArray,
    ends: IndexArray,
    templates: Sequence[Template],
    choice: Choice,
    *,
    row: IndexArray | None = None,
    robust: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[FloatArray, IndexArray]:
    """Error and index of the chosen template for every segment.

    Args:
        x: ascending abscissae, shape (n,).
        y: samples, shape (n,), or (rows, n) for several series over the same x.
        row: which series each segment belongs to; by default the first.

    Returns:
        Errors, infinite where no template applies, and indices into ``templates``, -1 there.
    """
    xs, ys, order, runs, sorted_ends = _prepared(x, y, starts, ends, row)
    ranks = [t.rank for t in templates]
    by_rank = sorted(range(len(templates)), key=lambda k: (ranks[k], templates[k].name))
    rows = _rows([templates[k] for k in by_rank], [ranks[k] for k in by_rank])
    error, index = np.empty(len(order)), np.empty(len(order), dtype=np.int64)
    none = np.empty(0)
    margins = (
        choice.kappa,
        choice.kappa_rel,
        choice.kappa_points,
        choice.bulge,
        choice.samples_per_parameter,
        choice.floor,
    )
    _kernel.run(
        xs, ys, rows, runs, sorted_ends, True, METRICS[choice.metric], *margins, robust,
        threads or threads_available(), progress, error, index, none, none,
    )  # fmt: skip
    errors, chosen = np.empty_like(error), np.empty_like(index)
    errors[order] = error
    chosen[order] = np.where(index >= 0, np.array(by_rank)[index], -1)
    return errors, chosen


@dataclass(frozen=True, slots=True)
class Fits:
    """Every template on every segment.

    Args:
        parameters: shape (segments, templates, 6), in units of x and y, about ``origins``; NaN beyond the parameters of
            a template and where it does not apply.
        origins: abscissae about which the parameters are written, shape (segments, templates).
        errors: error metric, shape (segments, templates); infinite where a template does not apply.
    """

    parameters: FloatArray
    origins: FloatArray
    errors: FloatArray
    counts: tuple[int, ...]

    def of(self, template: int) -> BatchFit:
        return BatchFit(self.parameters[:, template, : self.counts[template]], self.origins[:, template])


def fitted_templates(
    x: FloatArray,
    y: FloatArray,
    starts: IndexArray,
    ends: IndexArray,
    templates: Sequence[Template],
    *,
    row: IndexArray | None = None,
    metric: str = "smape",
    floor: float = 0.0,
    robust: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Fits:
    """Fit every template to every segment; arguments as of :func:`chosen_templates`."""
    xs, ys, order, runs, sorted_ends = _prepared(x, y, starts, ends, row)
    shape = (len(order), len(templates))
    error, parameters, origins = np.empty(shape), np.empty((*shape, MAX_COLUMNS)), np.empty(shape)
    _kernel.run(
        xs, ys, _rows(templates, [0.0] * len(templates)), runs, sorted_ends, False, METRICS[metric], 0.0, 0.0, 0.0, 0.0,
        0, floor, robust, threads or threads_available(), progress, error,
        np.empty(0, dtype=np.int64), parameters, origins,
    )  # fmt: skip
    counts = tuple(len(t.parameter_names) for t in templates)
    unused = (np.arange(MAX_COLUMNS) >= np.array(counts)[:, None]) | ~np.isfinite(error)[..., None]
    parameters[unused] = np.nan
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return Fits(parameters[back], origins[back], error[back], counts)


@dataclass(frozen=True, eq=False)
class SegmentBatch:
    """Samples of many segments, shape (segments, longest), x ascending.

    ``mask`` is false on the padding, which repeats the last sample.
    """

    x: FloatArray
    y: FloatArray
    mask: npt.NDArray[np.bool_]
    points: IndexArray
    after: FloatArray
    """Abscissa of the sample behind each segment, of its own last sample where there is none."""

    @classmethod
    def of_segments(
        cls, x: FloatArray, y: FloatArray, starts: IndexArray, ends: IndexArray, row: IndexArray | None = None
    ) -> SegmentBatch:
        """Rows are the samples ``starts[r]`` to ``ends[r]``, both included.

        Of several series over the same x, shape (series, n), ``row`` is the one that each segment belongs to.
        """
        points = ends - starts + 1
        columns = np.arange(int(points.max()))
        index = np.minimum(starts[:, None] + columns, ends[:, None])
        values = y[index] if row is None else y[row[:, None], index]
        return cls(x[index], values, columns < points[:, None], points, x[np.minimum(ends + 1, len(x) - 1)])

    def between(self) -> FloatArray:
        """Abscissae halfway between samples; the last of them once more where there is only padding."""
        middle = (self.x[:, 1:] + self.x[:, :-1]) / 2
        if middle.shape[1] == 0:
            return self.x
        last = np.take_along_axis(middle, np.maximum(self.points - 2, 0)[:, None], axis=1)
        return np.where(self.mask[:, 1:], middle, last)


@dataclass(frozen=True, eq=False)
class BatchFit:
    """One template fitted to every row of a batch.

    Args:
        parameters: shape (segments, parameters); not finite where the template does not apply.
        origin: abscissa about which the parameters of each row are written.
    """

    parameters: FloatArray
    origin: FloatArray

    def values(self, template: Template, x: FloatArray) -> FloatArray:
        """Values of the curves at x, shape (segments, abscissae)."""
        return template.evaluate(x, self.parameters[:, None, :], self.origin[:, None])

    def only(self, rows: npt.NDArray[np.bool_]) -> BatchFit:
        """The same with NaN in all other rows."""
        return BatchFit(np.where(rows[:, None], self.parameters, np.nan), self.origin)
