"""Series with known truth, what their intervals say, and whether the truth is in them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from p4perf.evaluation.fitting import engine
from p4perf.evaluation.fitting.component import uncertainty
from p4perf.evaluation.fitting.derivation import FitOptions, derive
from p4perf.evaluation.fitting.synthetic import Scale, SyntheticSeries, piecewise_series
from p4perf.models.component import PiecewiseFitting, Uncertainty
from p4perf.models.templates import BasisTemplate, Template, registered_templates
from p4perf.results.table import Samples

MAX_SEGMENTS = 4
NORMAL = {0.5: 0.6745, 0.9: 1.6449, 0.95: 1.9600}
"""Half width of a central interval of the normal distribution, for the levels that can be studied."""
TRUTH_ERROR = 1e-6
"""The template of a true segment follows it at least so closely, or its parameters are not judged."""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """One series to be drawn.

    Args:
        seed: of the series and of its noise.
        noise: standard deviation of one repetition as a fraction of the truth.
        repetitions: samples at each abscissa.
        segments: true number of segments.
        points: number of abscissae.
        x_scale: ``lin`` or ``log``.
    """

    seed: int
    noise: float
    repetitions: int
    segments: int
    points: int
    x_scale: Scale


@dataclass(frozen=True)
class Design:
    """What series a study consists of: every combination in turn.

    Args:
        noises: see :class:`Case`, like all that follow.
        repetitions: numbers of them.
        segments: numbers of them.
        points: numbers of them.
        scales: of x.
        families: what true segments may be; None for all that :mod:`p4perf.evaluation.fitting.synthetic` knows.
        noisy_segment: in one segment of every series, drawn at random, the noise is so many times as large.
        level: what intervals aim at.
    """

    noises: tuple[float, ...] = (0.003, 0.01, 0.02)
    repetitions: tuple[int, ...] = (1, 3)
    segments: tuple[int, ...] = (1, 2, 3)
    points: tuple[int, ...] = (40, 65, 100)
    scales: tuple[Scale, ...] = ("lin", "log")
    families: tuple[str, ...] | None = None
    noisy_segment: float = 1.0
    level: float = 0.9

    def cases(self, count: int, first_seed: int = 0) -> list[Case]:
        """So many cases; a seed always belongs to the same combination, neighbours to different ones."""
        grid = list(itertools.product(self.noises, self.repetitions, self.segments, self.points, self.scales))
        order = np.random.default_rng(0).permutation(len(grid))
        return [Case(seed, *grid[order[seed % len(grid)]]) for seed in range(first_seed, first_seed + count)]


@dataclass(frozen=True)
class SplitRecord:
    """A true breakpoint and the interval that belongs to it.

    Args:
        sharp: whether the noise lets it be found to within a sample.
        found: whether the breakpoint of the model is that very one.
        covered: whether the interval overlaps the gap between its two samples.
        width: width of the interval in samples, 1 if it is certain; None if the number of segments is wrong, so that no
            interval belongs to it, and any may cover it.
    """

    sharp: bool
    found: bool
    covered: bool
    width: int | None


@dataclass(frozen=True)
class Record:
    """What came of one series.

    Args:
        case: the series.
        found_segments: number of segments that was chosen.
        curve: whether, besides their number, all functions and breakpoints are the true ones.
        inside: fraction of the abscissae at which the band holds the truth.
        width: width of the band as a fraction of the truth, median over the abscissae.
        oracle_width: the same for somebody who knows functions, breakpoints and noise.
        breakpoints: true breakpoints.
        split_widths: widths of the intervals of all breakpoints that were found, in samples.
        parameters: (held, all) intervals of parameters of segments whose function and breakpoints are the true ones.
    """

    case: Case
    found_segments: int
    curve: bool
    inside: float
    width: float
    oracle_width: float
    breakpoints: tuple[SplitRecord, ...]
    split_widths: tuple[int, ...]
    parameters: tuple[int, int]


@dataclass(frozen=True)
class Drawn:
    """A series with its repetitions; ``scatter`` is the noise at every abscissa, as a fraction of the truth."""

    series: SyntheticSeries
    samples: Samples
    scatter: Array


def draw(case: Case, design: Design) -> Drawn:
    """The series of a case and its samples."""
    s = piecewise_series(
        case.seed, case.points, case.segments, noise=case.noise, families=design.families, x_scale=case.x_scale
    )
    rng = np.random.default_rng((case.seed, case.repetitions))
    segment = np.searchsorted(np.array(s.breakpoints) + 1, np.arange(case.points), side="right")
    scatter = case.noise * np.where(segment == rng.integers(case.segments), design.noisy_segment, 1.0)
    y = s.truth * (1 + scatter * rng.standard_normal((case.repetitions, case.points)))
    return Drawn(s, Samples.from_arrays(np.tile(s.x, case.repetitions), y.ravel()), scatter)


def study(design: Design, cases: list[Case], processes: int) -> Iterator[Record]:
    """Records of all cases in their order."""
    if processes == 1:
        yield from map(partial(examine, design=design), cases)
        return
    with ProcessPoolExecutor(processes, initializer=_settle) as pool:
        yield from pool.map(partial(examine, design=design), cases, chunksize=5)


def _settle() -> None:
    """One processor for each worker: threads would only compete with the other workers."""
    if hasattr(os, "sched_setaffinity"):
        known = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {known[os.getpid() % len(known)]})


def examine(case: Case, design: Design) -> Record:
    """Derive the model of one series, with its intervals, and compare them with the truth."""
    drawn = draw(case, design)
    series, samples = drawn.series, drawn.samples
    options = FitOptions(max_segments=MAX_SEGMENTS, level=design.level, threads=1, seed=case.seed)
    best = derive(samples.x, samples.medians(), options, log_x=case.x_scale == "log").best
    known = uncertainty(samples, best, options)
    assert known is not None
    low, high = np.array(known.low), np.array(known.high)
    found = tuple(segment.template.name for segment in best.segments)
    return Record(
        case=case,
        found_segments=len(best.segments),
        curve=found == series.families and best.breakpoints == series.breakpoints,
        inside=float(np.mean((low <= series.truth) & (series.truth <= high))),
        width=float(np.median((high - low) / series.truth)),
        oracle_width=float(np.median(oracle_widths(drawn, case.repetitions, design.level) / series.truth)),
        breakpoints=true_breakpoints(series, best.breakpoints, known),
        split_widths=tuple(_samples_between(series.x, i.low, i.high) for i in known.breakpoints),
        parameters=judged_parameters(series, best, known),
    )


def true_breakpoints(series: SyntheticSeries, found: tuple[int, ...], known: Uncertainty) -> tuple[SplitRecord, ...]:
    """Whether true boundaries, which lie somewhere between two samples, may lie in the intervals.

    Where the number of segments is right, each breakpoint has its interval; else any interval will do.
    """
    records = []
    same = len(known.breakpoints) == len(series.breakpoints)
    for k, (breakpoint, sharp) in enumerate(zip(series.breakpoints, series.sharp, strict=True)):
        left, right = series.x[breakpoint], series.x[breakpoint + 1]
        mine = known.breakpoints[k : k + 1] if same else known.breakpoints
        covered = any(i.low < right and i.high > left for i in mine)
        width = _samples_between(series.x, mine[0].low, mine[0].high) if same else None
        records.append(SplitRecord(sharp, breakpoint in found, covered, width))
    return tuple(records)


def _samples_between(x: Array, low: float, high: float) -> int:
    return int(np.searchsorted(x, high) - np.searchsorted(x, low))


def judged_parameters(series: SyntheticSeries, best: PiecewiseFitting, known: Uncertainty) -> tuple[int, int]:
    """How many intervals hold the true parameter, and of how many, where function and breakpoints are the true ones."""
    held = judged = 0
    if best.breakpoints != series.breakpoints:
        return held, judged
    for segment, intervals, family, (start, end) in zip(
        best.segments, known.parameters, series.families, _bounds(series), strict=True
    ):
        if segment.template.name != family or not isinstance(segment.template, BasisTemplate):
            continue
        truth = _true_parameters(series, segment.template, start, end, segment.origin)
        if truth is not None:
            judged += len(intervals)
            held += sum(value in interval for value, interval in zip(truth, intervals, strict=True))
    return held, judged


def _bounds(series: SyntheticSeries) -> list[tuple[int, int]]:
    """First and last sample of every segment."""
    ends = [*series.breakpoints, len(series.x) - 1]
    return list(zip([0, *(s + 1 for s in series.breakpoints)], ends, strict=True))


def _true_parameters(
    series: SyntheticSeries, template: BasisTemplate, start: int, end: int, origin: float
) -> Array | None:
    fits = engine.fitted_templates(series.x, series.truth, np.array([start]), np.array([end]), (template,))
    if not fits.errors[0, 0] < TRUTH_ERROR:
        return None
    own = fits.of(0)
    return np.asarray(template.basis.about(own.parameters, own.origin, origin)[0])


def oracle_widths(drawn: Drawn, repetitions: int, level: float) -> Array:
    """Width of the band of somebody who knows functions, breakpoints and noise, and need not care for bias.

    Least squares with the noise that there is: ``J (J'J)^-1 J' S J (J'J)^-1 J'``, J being the derivatives of the true
    curve by its parameters.
    """
    series = drawn.series
    known: dict[str, Template] = {t.name: t for t in registered_templates()}
    deviation = np.empty_like(series.truth)
    for family, (start, end) in zip(series.families, _bounds(series), strict=True):
        x, truth = series.x[start : end + 1], series.truth[start : end + 1]
        sigma = median_deviation(repetitions) * drawn.scatter[start : end + 1] * truth
        template = known[family]
        fits = engine.fitted_templates(series.x, series.truth, np.array([start]), np.array([end]), (template,)).of(0)
        parameters, origin = fits.parameters[0], float(fits.origin[0])
        columns = []
        for k, value in enumerate(parameters):
            step = np.zeros_like(parameters)
            step[k] = 1e-5 * (abs(value) or 1.0)
            ahead, behind = (template.evaluate(x, parameters + sign * step, origin) for sign in (1, -1))
            columns.append((ahead - behind) / (2 * step[k]))
        hat = np.stack(columns, axis=1) @ np.linalg.pinv(np.stack(columns, axis=1))
        deviation[start : end + 1] = np.sqrt(hat**2 @ sigma**2)
    return 2 * NORMAL[level] * deviation


def median_deviation(repetitions: int) -> float:
    """Standard deviation of the median of so many standard normal values, simulated."""
    if repetitions == 1:
        return 1.0
    return float(np.median(np.random.default_rng(1).standard_normal((100_000, repetitions)), axis=1).std())
