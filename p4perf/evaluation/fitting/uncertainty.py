"""Bootstrap replicates, and the intervals of a derived model.

Every resample gives each point another median (:mod:`p4perf.evaluation.fitting.uncertainty`). Then the derivation is
repeated
in the neighbourhood of the curve: each breakpoint may move by some samples, each segment may get another template, by
the same rule as before, and the breakpoints of the lowest combined error win. The percentiles of the curves are the
band, those of the breakpoints their intervals. So both cover the choice of the template and of the breakpoints, not
only the scatter of the measurements; they do not cover the choice of the number of segments.

Parameters only have a meaning for the template and the segment that they belong to: their intervals come from fitting
that template to that segment of every resample.

Percentiles are those of the bootstrap corrected twice, so that few resamples and few samples do not make intervals too
short: they are taken at ``p (resamples + 1)``, and their tails are those that a t interval has on the scale of a normal
one (the expanded percentile interval of Hesterberg 2015, What Teachers Should Know About the Bootstrap).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final

import numpy as np

from p4perf.evaluation.fitting import engine
from p4perf.evaluation.fitting.derivation import MIN_POINTS, RESAMPLES
from p4perf.evaluation.fitting.engine import BatchFit, IndexArray, SegmentBatch
from p4perf.evaluation.fitting.error_metrics import ErrorMetric, error_metric
from p4perf.evaluation.fitting.intervals import fit_general
from p4perf.evaluation.fitting.selection import ExactRule
from p4perf.models.component import ConfidenceInterval, Fitting, PiecewiseFitting, Uncertainty
from p4perf.models.templates import BasisTemplate, FloatArray, Template
from p4perf.results.table import LEVEL, SEED, Samples, redrawn_medians

PRIOR_FREEDOM = 8.0
"""A segment's own spread of residuals weighs as its degrees of freedom, that of all segments together as this many."""

SILENCE = 1e-9
"""Where a curve is below this share of the largest sample, a relative residual has no meaning and is zero."""


def resampled(
    samples: Samples, fitting: PiecewiseFitting, resamples: int, generator: np.random.Generator, floor: float = 0.0
) -> FloatArray:
    """Replicates of the medians, shape (resamples, n).

    A point with several repetitions gets those of :func:`~p4perf.results.table.redrawn_medians`. A point with one gets
    its sample plus the size of the curve (the floor at least) times a relative residual, drawn from those of all such
    points.
    Residuals are small where a segment has many parameters for its samples, and a few of them say little of their
    spread: so they are taken in units of the spread of their segment, which is estimated with its degrees of freedom
    and drawn towards that of all segments.
    """
    medians = samples.medians()
    out = np.empty((resamples, len(samples.x)))
    single = np.array([len(values) == 1 for values in samples.values])
    for index in np.flatnonzero(~single):
        disagree = samples.x[index] in samples.disagreeing
        out[:, index] = redrawn_medians(samples.values[index], resamples, generator, disagree=disagree)
    if single.any():
        curve = fitting.evaluate(np.asarray(samples.x))[single]
        segment = fitting.segment_of(np.asarray(samples.x))[single]
        size = _sizes(medians[single], curve, floor)
        standard, spread = _residuals(medians[single] - curve, size, segment, fitting)
        drawn = standard[generator.integers(0, len(standard), size=(resamples, len(standard)))]
        out[:, single] = medians[single] + size * spread * drawn
    return out


def _sizes(y: FloatArray, curve: FloatArray, floor: float) -> FloatArray:
    """What residuals are relative to: the magnitude of the curve, the floor at least; zero where that is nothing."""
    size = np.maximum(np.abs(curve), floor)
    return np.where(size <= SILENCE * np.abs(y).max(initial=0.0), 0.0, size)


def _residuals(
    off: FloatArray, size: FloatArray, segment: IndexArray, fitting: PiecewiseFitting
) -> tuple[FloatArray, FloatArray]:
    """Relative residuals in units of the spread of their segment, about zero, and that spread at every sample."""
    relative = np.where(size > 0, off / np.where(size > 0, size, 1.0), 0.0)
    squares = np.array([np.sum(relative[segment == k] ** 2) for k in range(len(fitting.segments))])
    points = np.array([np.sum(segment == k) for k in range(len(fitting.segments))])
    parameters = np.array([len(p.parameters) for p in fitting.segments])
    freedom = np.maximum(points - parameters, 0.5)
    pooled = squares.sum() / max(freedom.sum(), 1.0)
    variance = (squares + PRIOR_FREEDOM * pooled) / (freedom + PRIOR_FREEDOM)
    own = np.sqrt(np.where(points > 0, squares / np.maximum(points, 1), 1.0))
    standard = relative / np.where(own[segment] > 0, own[segment], 1.0)
    return standard - standard.mean(), np.sqrt(variance)[segment]


REACH = 4
"""A breakpoint is moved by at most this many samples to either side."""
MARGIN = 0.8
"""Resamples choose templates with an absolute margin (kappa) of at most this share of the error of the curve: that two
templates are about equal is a reason to show the simpler one, not to be sure of it. Like any kappa it shrinks in long
segments. With less, resamples choose functions that follow the noise, and bands become needlessly wide; with more,
those of curves of many segments become too narrow: benchmarks/fitting_coverage.py shows it."""
PERCENTILE: Final = "weibull"
"""Of m resamples, the share p lies below the value of rank p (m + 1): an interval between two of them then holds a
further one with its nominal frequency. numpy's default makes 90 % intervals of 200 resamples hold 89 %."""


@dataclass(frozen=True, eq=False)
class _Replicates:
    """What is refitted: replicates y, shape (resamples, n); without templates, segments keep their own."""

    x: FloatArray
    y: FloatArray
    metric: ErrorMetric
    templates: tuple[Template, ...] | None
    rule: ExactRule
    robust: bool
    threads: int | None

    def fit(
        self, template: Template, starts: IndexArray, ends: IndexArray, row: IndexArray
    ) -> tuple[SegmentBatch, BatchFit]:
        batch = SegmentBatch.of_segments(self.x, self.y, starts, ends, row)
        if not engine.knows(template):
            return batch, fit_general(batch, template, robust=self.robust)
        fits = engine.fitted_templates(
            self.x, self.y, starts, ends, (template,), row=row, floor=self.metric.floor, robust=self.robust,
            threads=self.threads,
        )  # fmt: skip
        return batch, fits.of(0)

    def choose(
        self, segment: Fitting, starts: IndexArray, ends: IndexArray, row: IndexArray
    ) -> tuple[FloatArray, IndexArray]:
        """Error and index of the template for each of many segments of replicates; index -1 is the segment's own."""
        if self.templates is not None:
            return engine.chosen_templates(
                self.x, self.y, starts, ends, self.templates, self.rule.choice(self.metric), row=row,
                robust=self.robust, threads=self.threads,
            )  # fmt: skip
        batch, fit = self.fit(segment.template, starts, ends, row)
        errors = self.metric.errors(batch.x, batch.y, fit.values(segment.template, batch.x), batch.mask)
        return np.where(np.isfinite(errors), errors, np.inf), np.full(len(starts), -1)


def bootstrap(
    samples: Samples,
    fitting: PiecewiseFitting,
    *,
    error: str = "smape",
    templates: tuple[Template, ...] | None = None,
    rule: ExactRule | None = None,
    robust: bool = False,
    floor: float = 0.0,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    threads: int | None = None,
) -> Uncertainty:
    """Intervals of the parameters, of the breakpoints and of the curve.

    Args:
        error: metric by which breakpoints and templates are chosen.
        templates: what segments may be refitted with; without them, and where the fit engine does not know one of them
            or the metric, segments keep their templates.
        robust: minimise relative distances instead of squares.
        floor: size below which samples count as this large in relative errors and residuals, in units of y.
    """
    metric = error_metric(error).at_least(floor)
    x = np.asarray(samples.x)
    y = resampled(samples, fitting, resamples, np.random.default_rng(seed), floor)
    free = templates is not None and metric.name in engine.METRICS and all(engine.knows(t) for t in templates)
    rule = rule or ExactRule()
    rule = replace(rule, kappa=min(rule.kappa, MARGIN * fitting.error))
    replicates = _Replicates(x, y, metric, templates if free else None, rule, robust, threads)
    tail = 100 * expanded_tail((1 - level) / 2, _freedom(samples, fitting))
    ends = [tail, 100 - tail]
    breakpoints, choice = _moved_breakpoints(replicates, fitting)
    curves = _curves(replicates, fitting, breakpoints, choice)
    usable = np.isfinite(curves).all(axis=1)
    centre = fitting.evaluate(x)
    low, high = np.percentile(curves[usable], ends, axis=0, method=PERCENTILE) if usable.any() else (centre, centre)
    intervals = []
    for at, chosen in zip(fitting.breakpoints, breakpoints[usable].T if usable.any() else breakpoints.T, strict=True):
        first = min(float(np.percentile(x[chosen], ends[0], method="lower")), float(x[at]))
        last = max(float(np.percentile(x[chosen + 1], ends[1], method="higher")), float(x[at + 1]))
        intervals.append(ConfidenceInterval(first, last))
    return Uncertainty(
        level=level,
        parameters=tuple(
            _parameters(replicates, segment, start, end, ends)
            for segment, (start, end) in zip(fitting.segments, _bounds(fitting), strict=True)
        ),
        breakpoints=tuple(intervals),
        x=tuple(x.tolist()),
        low=tuple(np.asarray(low).tolist()),
        high=tuple(np.asarray(high).tolist()),
        resamples=resamples,
        seed=seed,
    )


def expanded_tail(tail: float, freedom: float) -> float:
    """Tail of a normal interval that is as wide as a t interval with these degrees of freedom and that tail.

    The quantile of t is that of Abramowitz and Stegun 1964, 26.7.5: right to 1 % from three degrees of freedom on.
    """
    z, v = NormalDist().inv_cdf(tail), freedom
    t = z + (z**3 + z) / (4 * v) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
    t += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    return NormalDist().cdf(t)


def _freedom(samples: Samples, fitting: PiecewiseFitting) -> float:
    """Degrees of freedom of what is known of the scatter: repetitions about their medians, singles about the curve."""
    counts = [len(values) for values in samples.values]
    within = sum(count - 1 for count in counts)
    about = counts.count(1) - fitting.free_parameters
    return float(max(within + max(about, 0), 1))


def _bounds(fitting: PiecewiseFitting) -> list[tuple[int, int]]:
    """First and last sample of every segment."""
    starts = [0, *(s + 1 for s in fitting.breakpoints)]
    ends = [*fitting.breakpoints, fitting.points - 1]
    return list(zip(starts, ends, strict=True))


def _parameters(
    replicates: _Replicates, segment: Fitting, start: int, end: int, ends: list[float]
) -> tuple[ConfidenceInterval, ...]:
    """Intervals of the parameters of one segment, template and breakpoints fixed; each holds its value."""
    row = np.arange(len(replicates.y))
    _, fit = replicates.fit(segment.template, np.full(len(row), start), np.full(len(row), end), row)
    values = fit.parameters
    if isinstance(segment.template, BasisTemplate):
        values = segment.template.basis.about(values, fit.origin, segment.origin)
    values = values[np.isfinite(values).all(axis=1)]
    if not len(values):
        return tuple(ConfidenceInterval(p, p) for p in segment.parameters)
    low, high = np.percentile(values, ends, axis=0, method=PERCENTILE)
    return tuple(
        ConfidenceInterval(min(float(a), v), max(float(b), v))
        for a, b, v in zip(low, high, segment.parameters, strict=True)
    )


def _moved_breakpoints(replicates: _Replicates, fitting: PiecewiseFitting) -> tuple[IndexArray, list[IndexArray]]:
    """Breakpoints of the lowest combined error in the neighbourhood of those of the curve, for every replicate.

    Returns:
        Breakpoints, shape (resamples, breakpoints), and for every segment the index of its template in every resample,
        -1 for its own.
    """
    rows, n = len(replicates.y), fitting.points
    bounds = _bounds(fitting)
    least = min(MIN_POINTS, *(end - start + 1 for start, end in bounds))
    reach = [np.arange(max(s - REACH, least - 1), min(s + REACH, n - 1 - least) + 1) for s in fitting.breakpoints]
    windows = [np.array([-1]), *reach, np.array([n - 1])]
    total = np.zeros((rows, 1))
    back: list[IndexArray] = []
    tables: list[IndexArray] = []
    for segment, before, after in zip(fitting.segments, windows, windows[1:], strict=False):
        cost = np.full((rows, len(before), len(after)), np.inf)
        index = np.full(cost.shape, -1)
        a, b = np.nonzero(after[None, :] - before[:, None] >= least)
        starts, ends = np.tile(before[a] + 1, rows), np.tile(after[b], rows)
        row = np.repeat(np.arange(rows), len(a))
        error, chosen = replicates.choose(segment, starts, ends, row)
        cost[row, np.tile(a, rows), np.tile(b, rows)] = error * (ends - starts + 1)
        index[row, np.tile(a, rows), np.tile(b, rows)] = chosen
        sums = total[:, :, None] + cost
        back.append(sums.argmin(axis=1))
        total = sums.min(axis=1)
        tables.append(index)
    every = np.arange(rows)
    position = np.zeros(rows, dtype=np.intp)
    breakpoints, choice = np.empty((rows, len(fitting.breakpoints)), dtype=np.intp), []
    for k in range(len(fitting.segments) - 1, -1, -1):
        before = back[k][every, position]
        choice.append(tables[k][every, before, position])
        position = before
        if k:
            breakpoints[:, k - 1] = windows[k][position]
    lost = ~np.isfinite(total[:, 0])
    breakpoints[lost] = fitting.breakpoints
    return breakpoints, [np.where(lost, -1, c) for c in reversed(choice)]


def _curves(
    replicates: _Replicates, fitting: PiecewiseFitting, breakpoints: IndexArray, choice: list[IndexArray]
) -> FloatArray:
    """Values of the refitted curve of every replicate at the samples, shape (resamples, n); NaN where it failed."""
    rows, n = len(replicates.y), fitting.points
    curves = np.full((rows, n), np.nan)
    edges = np.concatenate([np.full((rows, 1), -1), breakpoints, np.full((rows, 1), n - 1)], axis=1)
    for k, segment in enumerate(fitting.segments):
        for number in np.unique(choice[k]):
            row = np.flatnonzero(choice[k] == number)
            known = replicates.templates
            template = segment.template if number < 0 or known is None else known[number]
            starts, ends = edges[row, k] + 1, edges[row, k + 1]
            batch, fit = replicates.fit(template, starts, ends, row)
            values = fit.values(template, batch.x)
            places = starts[:, None] + np.arange(batch.x.shape[1])
            which = np.broadcast_to(row[:, None], places.shape)
            curves[which[batch.mask], places[batch.mask]] = values[batch.mask]
    return curves
