"""Bootstrap intervals of a derived model.

Every resample draws the repetitions of each point anew with replacement and takes their median; a point with a single
repetition gets the curve times one plus a relative residual of its part drawn at random. The chosen templates are
fitted again to each resample: parameters and band with the splits where they are, splits by moving each one among its
neighbours for the lowest error. The percentiles of what comes out are the intervals. They cover the scatter of the
measurements, not the choice of the template.
"""

from __future__ import annotations

import numpy as np

from p4perf.evaluation import engine
from p4perf.evaluation.batch import Batch, BatchFit, IndexArray
from p4perf.evaluation.derivation import MIN_POINTS
from p4perf.evaluation.error_metrics import ErrorMetric, error_metric
from p4perf.evaluation.general import fit_general
from p4perf.evaluation.statistics import LEVEL, SEED, Samples
from p4perf.models.bases import FloatArray
from p4perf.models.fitting import Fitting, PiecewiseFitting
from p4perf.models.quantities import Interval, Uncertainty
from p4perf.models.templates import BasisTemplate, Template

RESAMPLES = 200
REACH = 4
"""A split is moved by at most this many samples to either side."""


def resampled(
    samples: Samples, fitting: PiecewiseFitting, resamples: int, generator: np.random.Generator
) -> FloatArray:
    """Bootstrap replicates of the medians, shape (resamples, n)."""
    out = np.empty((resamples, len(samples.x)))
    x, y = np.asarray(samples.x), samples.medians()
    curve = fitting.evaluate(x)
    part = fitting.part_of(x)
    with np.errstate(all="ignore"):
        relative = np.where(curve != 0, (y - curve) / np.where(curve == 0, 1.0, curve), 0.0)
    for index, values in enumerate(samples.values):
        if len(values) > 1:
            data = np.asarray(values)
            out[:, index] = np.median(data[generator.integers(0, len(data), size=(resamples, len(data)))], axis=1)
        else:
            mine = relative[part == part[index]]
            freedom = max(mine.size - len(fitting.parts[part[index]].parameters), 1)
            drawn = mine[generator.integers(0, mine.size, size=resamples)] * np.sqrt(mine.size / freedom)
            out[:, index] = curve[index] * (1 + drawn)
    return out


def bootstrap(
    samples: Samples,
    fitting: PiecewiseFitting,
    *,
    error: str = "smape",
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Uncertainty:
    """Intervals of the parameters, of the splits and of the curve.

    Args:
        samples: what the curve was fitted to.
        fitting: the curve.
        error: metric by which splits are moved.
        level: coverage that the intervals aim at.
        resamples: number of resamples.
        seed: seed of the generator; equal seeds give equal intervals.
    """
    metric = error_metric(error)
    generator = np.random.default_rng(seed)
    x = np.asarray(samples.x)
    replicates = resampled(samples, fitting, resamples, generator)
    bounds = _bounds(fitting)
    tail = 100 * (1 - level) / 2
    ends = [tail, 100 - tail]
    parameters, band = [], np.empty((2, len(x)))
    for part, (start, end) in zip(fitting.parts, bounds, strict=True):
        values, curves = _refit(x, replicates, part, start, end)
        if values.size == 0:
            parameters.append(tuple(Interval(p, p) for p in part.parameters))
            band[:, start : end + 1] = part.evaluate(x[start : end + 1])
            continue
        low, high = np.percentile(values, ends, axis=0)
        ends_and_value = zip(low, high, part.parameters, strict=True)
        parameters.append(tuple(Interval(min(float(a), v), max(float(b), v)) for a, b, v in ends_and_value))
        band[:, start : end + 1] = np.percentile(curves, ends, axis=0)
    splits = []
    for index in range(len(fitting.splits)):
        left, right = fitting.parts[index], fitting.parts[index + 1]
        chosen = _moved_split(x, replicates, left, right, bounds[index], bounds[index + 1], metric)
        at = bounds[index][1]
        first = min(float(np.percentile(x[chosen], ends[0], method="lower")), float(x[at]))
        last = max(float(np.percentile(x[chosen + 1], ends[1], method="higher")), float(x[at + 1]))
        splits.append(Interval(first, last))
    return Uncertainty(
        level=level,
        parameters=tuple(parameters),
        splits=tuple(splits),
        x=tuple(x.tolist()),
        low=tuple(band[0].tolist()),
        high=tuple(band[1].tolist()),
        resamples=resamples,
        seed=seed,
    )


def _bounds(fitting: PiecewiseFitting) -> list[tuple[int, int]]:
    """First and last sample of every part."""
    starts = [0, *(s + 1 for s in fitting.splits)]
    ends = [*fitting.splits, fitting.points - 1]
    return list(zip(starts, ends, strict=True))


def _refit(x: FloatArray, replicates: FloatArray, part: Fitting, start: int, end: int) -> tuple[FloatArray, FloatArray]:
    """Parameters and curves of the template of one part for every replicate that it can be fitted to."""
    rows = np.arange(len(replicates))
    starts, ends = np.full(len(rows), start), np.full(len(rows), end)
    batch = Batch.of_parts(x, replicates, starts, ends, rows)
    fit = _fit(batch, x, replicates, part.template, starts, ends, rows)
    if isinstance(part.template, BasisTemplate):
        fit = BatchFit(
            part.template.basis.about(fit.parameters, fit.origin, part.origin), np.full(len(rows), part.origin)
        )
    usable = np.isfinite(fit.parameters).all(axis=1)
    return fit.parameters[usable], fit.values(part.template, batch.x)[usable]


def _fit(
    batch: Batch,
    x: FloatArray,
    y: FloatArray,
    template: Template,
    starts: IndexArray,
    ends: IndexArray,
    row: IndexArray,
) -> BatchFit:
    if engine.knows(template):
        return engine.fitted_templates(x, y, starts, ends, (template,), row=row).of(0)
    return fit_general(batch, template)


def _moved_split(
    x: FloatArray,
    replicates: FloatArray,
    left: Fitting,
    right: Fitting,
    left_bounds: tuple[int, int],
    right_bounds: tuple[int, int],
    metric: ErrorMetric,
) -> IndexArray:
    """Index of the last sample of the left part that gives the lowest error, for every replicate."""
    start, split, end = left_bounds[0], left_bounds[1], right_bounds[1]
    least_left = min(split - start + 1, max(MIN_POINTS, len(left.parameters) + 1))
    least_right = min(end - split, max(MIN_POINTS, len(right.parameters) + 1))
    places = np.arange(max(split - REACH, start + least_left - 1), min(split + REACH, end - least_right) + 1)
    rows = len(replicates)
    row = np.repeat(np.arange(rows), len(places))
    at = np.tile(places, rows)
    cost = np.zeros(len(at))
    sides = ((left, np.full_like(at, start), at), (right, at + 1, np.full_like(at, end)))
    for part, starts, ends in sides:
        batch = Batch.of_parts(x, replicates, starts, ends, row)
        fit = _fit(batch, x, replicates, part.template, starts, ends, row)
        errors = metric.compute(batch.x, batch.y, fit.values(part.template, batch.x), batch.mask)
        cost += errors * batch.points
    finite = np.where(np.isfinite(cost), cost, np.inf).reshape(rows, len(places))
    best = places[finite.argmin(axis=1)]
    return np.where(np.isfinite(finite.min(axis=1)), best, split)
