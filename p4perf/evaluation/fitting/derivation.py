"""Model derivation (Scholz et al. 2021, section 2.2): from samples to the best piecewise curve per number of segments.

Two profiles:

``exact``
    In each segment the lowest rank among all templates whose error is within the margin of the best one; the
    breakpoints of the lowest combined error, without and with a price of parameters, found exactly by dynamic
    programming; at least ``min_points`` samples per segment.
``scholz2021``
    The paper to the letter: ranks as its code counts them, parameters capped at gamma (Eq. 2), Eq. 3 pairwise in
    template order within segments and again in lexicographic order between combinations, segments of any length.

In both, another split finder can be asked for, and the profile decides what it optimises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.fitting import split_finders
from p4perf.evaluation.fitting.error_metrics import error_metric
from p4perf.evaluation.fitting.intervals import FitProblem, IntervalTable, interval_table
from p4perf.evaluation.fitting.noise import FEW_POINTS, error_floor, off_curve, outliers
from p4perf.evaluation.fitting.selection import (
    EVIDENCE,
    GAMMA,
    KAPPA,
    KAPPA_REL,
    TINY,
    Criteria,
    ExactRule,
    PairwiseRule,
    criteria,
    l1_bic,
)
from p4perf.evaluation.fitting.split_finders.base import Candidates
from p4perf.models.component import PiecewiseFitting
from p4perf.models.spline import SplineTemplate
from p4perf.models.templates import SCHOLZ2021_RANKS, FloatArray, Template, registered_templates, scholz2021_templates
from p4perf.results.table import LEVEL, SEED, without_traces

Profile = Literal["exact", "scholz2021"]
Loss = Literal["auto", "squares", "l1"]
Search = Literal["auto", "exact", "coarse"]
Repetitions = Sequence[Sequence[float]]
MIN_POINTS = 5
COARSE_POINTS = 1000
"""Longer series are searched from coarse to fine unless an exact search is asked for."""
RESAMPLES = 200


@dataclass(frozen=True)
class FitOptions:
    """How a curve and its intervals are derived.

    Args:
        segments: take this number of segments instead of choosing one.
        error: error metric: ``smape``, ``smape_pooled``, ``mape``, ``rmse``, ``emd`` or another registered one.
        loss: what parameters minimise: ``squares``, or relative distances (``l1``), which outliers hardly move.
            Default ``auto``: squares; where there are outliers (:mod:`p4perf.evaluation.fitting.noise`), ``l1`` without
            them; where samples come near zero (there is a floor), ``l1``. In the profile scholz2021, squares.
        floor: size below which samples count as this large in the error metric smape, in units of y. Default: where
            samples come near zero, what their noise says; 0 in the profile scholz2021.
        min_points: smallest number of samples of a segment. Default: 5, of fewer than ten samples half (two at least);
            1 in the profile scholz2021.
        templates: function templates; default all registered ones, in the profile scholz2021 those of the paper.
        kappa: absolute margin of Eq. 3 (for an error metric with a unit: as a fraction of the RMS of y).
        gamma: smallest magnitude of a parameter (Eq. 2); only in the profile scholz2021.
        split_finder: name of a split finder, or one with options. Default: ``dynamic``; in the profile scholz2021
            ``second-derivative``, which tries everything up to three segments.
        search: ``exact``; ``coarse`` (from coarse to fine); or ``auto``: coarse for more than
            :data:`COARSE_POINTS` samples. Only with the default split finder of the profile exact.
        threads: number of threads; default all processors of this process. The result does not depend on it.
        level: intended coverage of intervals.
        resamples: bootstrap resamples; 0 leaves the uncertainty out.
    """

    max_segments: int = 5
    segments: int | None = None
    error: str = "smape"
    profile: Profile = "exact"
    loss: Loss = "auto"
    floor: float | None = None
    min_points: int | None = None
    templates: tuple[Template, ...] | None = None
    kappa: float = KAPPA
    kappa_rel: float = KAPPA_REL
    gamma: float = GAMMA
    split_finder: str | split_finders.SplitFinder | None = None
    search: Search = "auto"
    threads: int | None = None
    level: float = LEVEL
    resamples: int = RESAMPLES
    seed: int = SEED

    def check(self) -> None:
        """Raise a UsageError for an option that is wrong whatever the samples are."""
        if any(number is not None and number < 1 for number in (self.max_segments, self.segments, self.min_points)):
            raise UsageError("max_segments, segments and min_points must be at least 1")
        if self.floor is not None and not 0 <= self.floor < math.inf:
            raise UsageError(f"the floor must be zero or a positive number, not {self.floor}")
        if not 0 < self.level < 1:
            raise UsageError(f"the level must lie between 0 and 1, not {self.level}")
        for name, value, kind in (
            ("profile", self.profile, Profile), ("loss", self.loss, Loss), ("search", self.search, Search),
        ):  # fmt: skip
            if value not in get_args(kind):
                raise UsageError(f"there is no {name} {value!r}", hint=f"known: {', '.join(get_args(kind))}")
        if self.templates is not None and not self.templates:
            raise UsageError("at least one template is required")
        error_metric(self.error)
        if isinstance(self.split_finder, str):
            split_finders.open_split_finder(self.split_finder)


PLACES = 300
"""Number of places for breakpoints in the first round."""
SHARES = (0.0, 0.42, 0.5, 0.92, 1.0)
"""About the shares of the time after which each of the four rounds ends, for progress."""


def coarse_to_fine(
    problem: FitProblem, segments: int, min_points: int
) -> tuple[IntervalTable, tuple[split_finders.Breakpoints | None, ...]]:
    """About the best breakpoints for 1 to ``segments`` segments, and their table.

    First a segment may end only after every g-th sample; then, for each number of segments, within g samples of the
    breakpoints that were found. A number of segments can miss a breakpoint there because it spent its segments on what
    the grid shows badly; so each is searched once more on the grid with all breakpoints that any number of segments has
    found, and within g samples of what that gives. Fittings and errors always take all samples. The result is the best
    of the places that were looked at: within 2 % of the exact error in all tested cases, but that is no guarantee.
    """
    n = len(problem.x)
    step = max(1, math.ceil(n / PLACES))
    grid = np.arange(step - 1, n - 1, step)
    around = np.arange(-step, step + 1)

    def near(*founds: tuple[split_finders.Breakpoints | None, ...]) -> Candidates:
        """For each number of segments, what is near the breakpoints that were found for it."""
        centres = [np.array([s for found in founds for s in found[k] or ()], dtype=np.intp) for k in range(segments)]
        return tuple(np.unique(np.clip(np.add.outer(c, around), 0, n - 1)) if c.size else grid for c in centres)

    def search(
        number: int, candidates: Candidates
    ) -> tuple[IntervalTable, tuple[split_finders.Breakpoints | None, ...]]:
        return _search(
            _scaled(problem, *SHARES[number : number + 2]),
            split_finders.DynamicProgramming(),
            segments,
            min_points,
            candidates,
        )

    _, first = search(0, (grid,) * segments)
    _, second = search(1, near(first))
    known = np.array([s for breakpoints in second for s in breakpoints or ()], dtype=np.intp)
    _, third = search(2, (np.union1d(grid, known),) * segments)
    return search(3, near(second, third))


def _scaled(problem: FitProblem, begin: float, end: float) -> FitProblem:
    report = problem.progress
    if report is None:
        return problem
    return replace(problem, progress=lambda share: report(begin + (end - begin) * share))


MAX_POINTS = 6000
"""Longer series are refused: tables of all segments would not fit into memory."""


@dataclass(frozen=True)
class Derivation:
    """Every curve that was derived from samples (medians of repetitions), and the chosen one.

    Args:
        fittings: best piecewise fitting of each number of segments that the samples allow, ascending. In the profile
            exact, a number of segments whose error is above that of fewer segments is left out unless it was asked for:
            the margin of Eq. 3 within segments makes that possible, and the breakpoint is unwanted.
        criteria: L1-BIC (the lowest is chosen), AIC, AICc and BIC of each of them.
        x, y: the samples that count.
        loss: what the parameters minimise.
        floor: size below which samples count as this large in relative errors.
        outliers: abscissae of samples that do not count.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    fittings: tuple[PiecewiseFitting, ...]
    criteria: tuple[Criteria, ...]
    chosen: int
    error: str
    profile: Profile
    settings: tuple[tuple[str, float | str], ...]
    loss: Loss = "squares"
    floor: float = 0.0
    outliers: tuple[float, ...] = ()

    @property
    def best(self) -> PiecewiseFitting:
        return self.fittings[self.chosen]

    def of_segments(self, segments: int) -> PiecewiseFitting:
        """The best fitting of that number of segments.

        Raises:
            UsageError: it was not derived, or the samples are too few.
        """
        for fitting in self.fittings:
            if len(fitting.segments) == segments:
                return fitting
        known = ", ".join(str(len(f.segments)) for f in self.fittings)
        raise UsageError(f"there is no fitting of {segments} segments", hint=f"derived: {known}")


def derive(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    options: FitOptions | None = None,
    *,
    log_x: bool = False,
    repetitions: Repetitions = (),
    progress: Callable[[float], object] | None = None,
) -> Derivation:
    """Derive the best piecewise curve for every number of segments up to ``options.max_segments``, and choose one.

    Args:
        x: abscissae in any order; where one occurs more than once, the median of its samples is used.
        options: how to derive; level, resamples and seed do not matter here.
        repetitions: for every x in ascending order, what its y is the median of, if that is known.
        log_x: whether split finders look at x on a logarithmic axis; fitting never does.

    Raises:
        UsageError: an option is wrong.
        DataError: there are no samples or more than :data:`MAX_POINTS`, x and y differ in length, or a value is not
            finite.
    """
    options = options or FitOptions()
    options.check()
    metric = error_metric(options.error)
    xs, ys = checked_samples(x, y)
    metric.check(ys)
    if len(xs) > MAX_POINTS:
        hint = "thin them out, evenly"
        raise DataError(f"{len(xs)} different x are more than the {MAX_POINTS} that can be searched", hint=hint)
    if options.profile == "scholz2021":
        loss: Loss = "l1" if options.loss == "l1" else "squares"
        return _derive(xs, ys, replace(options, loss=loss, floor=options.floor or 0.0), log_x, progress)
    if options.loss != "auto":
        return _derive(xs, ys, _with_floor(options, xs, ys, repetitions), log_x, progress)
    return _without_outliers(xs, ys, options, repetitions, log_x, progress)


def _with_floor(options: FitOptions, x: FloatArray, y: FloatArray, repetitions: Repetitions) -> FitOptions:
    return options if options.floor is not None else replace(options, floor=error_floor(x, y, repetitions))


def _without_outliers(
    x: FloatArray,
    y: FloatArray,
    options: FitOptions,
    repetitions: Repetitions,
    log_x: bool,
    progress: Callable[[float], object] | None,
) -> Derivation:
    """The derivation from all samples by squares; near zero, or from all but the outliers, by relative distances.

    A sample that was taken for an outlier and lies near the curve of the others is none: with those of them that
    are left, the curve is derived once more.
    """
    settled = _with_floor(options, x, y, repetitions)
    one_sign = bool((y > 0).all() or (y < 0).all())
    found = outliers(x, y, 0.0 if one_sign else settled.floor or 0.0)  # outliers of one sign look like a floor
    for _ in range(2):
        kept = ~found
        if kept.all():
            break
        some = tuple(values for values, counts in zip(repetitions, kept, strict=True) if counts) if repetitions else ()
        robust = _with_floor(replace(options, loss="l1"), x[kept], y[kept], some)
        derivation = _derive(x[kept], y[kept], robust, log_x, progress)
        left = found & off_curve(y, derivation.best.evaluate(x), found, robust.floor or 0.0)
        if (left == found).all():
            return replace(derivation, outliers=tuple(x[found].tolist()))
        found = left
    near_zero = bool(settled.floor) and len(x) >= FEW_POINTS
    return _derive(x, y, replace(settled, loss="l1" if near_zero else "squares"), log_x, progress)


def _derive(
    xs: FloatArray, ys: FloatArray, options: FitOptions, log_x: bool, progress: Callable[[float], object] | None
) -> Derivation:
    """The derivation from samples that all count, with options whose loss and floor are settled."""
    floor = options.floor or 0.0
    metric = error_metric(options.error).at_least(floor)
    n = len(xs)
    published, segments = options.profile == "scholz2021", options.segments
    min_points = options.min_points
    if min_points is None:
        min_points = 1 if published else MIN_POINTS if n >= 2 * MIN_POINTS else max(2, n // 2)
    if segments is not None and segments > 1 and segments * min_points > n:
        raise UsageError(f"{n} samples cannot make {segments} segments of {min_points} samples at least")
    most = max(1, min(max(options.max_segments, segments or 1), n // min_points))
    margin = options.kappa * metric.scale(ys)
    templates = options.templates
    cautious = templates is None and n < FEW_POINTS
    if templates is None:
        templates = scholz2021_templates() if published else registered_templates()
    templates = tuple(t.of_samples(n) if isinstance(t, SplineTemplate) else t for t in templates)
    if all(isinstance(t, SplineTemplate) for t in templates):
        most = 1
    ranks: Mapping[str, float] = SCHOLZ2021_RANKS if published else {}
    kappa_rel, gamma = options.kappa_rel, options.gamma
    rule = PairwiseRule(margin, kappa_rel, gamma) if published else ExactRule(margin, kappa_rel, cautious)
    problem = FitProblem(
        x=xs,
        y=ys,
        templates=templates,
        ranks=tuple(ranks.get(t.name, t.rank) for t in templates),
        metric=metric,
        rule=rule,
        robust=options.loss == "l1",
        threads=options.threads,
        progress=progress,
    )
    split_finder, search = options.split_finder, options.search
    coarse = split_finder is None and not published and (search == "coarse" or (search == "auto" and n > COARSE_POINTS))
    finder = split_finder or ("second-derivative" if published else "dynamic")
    finder = split_finders.open_split_finder(finder) if isinstance(finder, str) else finder
    if coarse:
        table, found = coarse_to_fine(problem, most, min_points)
    else:
        table, found = _search(problem, finder, most, min_points, finder.candidates(xs, ys, most, log_x))
    fittings = _fittings(table, found)
    if not published:
        fittings = _improving(fittings, segments)
    if not fittings:
        raise DataError("no template fits the samples", hint="add the template const")
    judged = tuple(criteria(f, xs, ys, metric) for f in fittings)
    chosen = int(np.argmin([c.l1_bic for c in judged]))
    if segments is not None:
        chosen = next((i for i, f in enumerate(fittings) if len(f.segments) == segments), -1)
        if chosen < 0:
            raise DataError(f"no template fits the samples in {segments} segments", hint="add the template const")
    settings: dict[str, float | str] = {"kappa": options.kappa, "kappa_rel": kappa_rel, "min_points": min_points}
    settings |= {"loss": options.loss, "floor": floor}
    settings |= {"gamma": gamma} if published else {}
    settings |= {"split_finder": split_finder if isinstance(split_finder, str) else repr(finder)}
    settings |= {"search": "coarse" if coarse else "exact"}
    return Derivation(
        x=tuple(xs.tolist()),
        y=tuple(ys.tolist()),
        fittings=fittings,
        criteria=judged,
        chosen=chosen,
        error=metric.name,
        profile=options.profile,
        settings=tuple(settings.items()),
        loss=options.loss,
        floor=floor,
    )


def _search(
    problem: FitProblem, finder: split_finders.SplitFinder, segments: int, min_points: int, candidates: Candidates
) -> tuple[IntervalTable, tuple[split_finders.Breakpoints | None, ...]]:
    """Best breakpoints for each number of segments, and the table to read them with.

    The profile exact searches once more, with a price of parameters and, where noise is large, a larger margin in
    segments: of the lowest errors, a wavy curve may win that is little better than lines. The first search counts where
    its L1-BIC is as good.
    """
    intervals = split_finders.wanted_intervals(len(problem.x), min_points, candidates)
    table = interval_table(problem, intervals)
    search = split_finders.SplitProblem(
        problem.x, problem.y, table.cost(), table.ranks(), segments, min_points, problem.rule, candidates
    )
    found = finder.find(search)
    if isinstance(problem.rule, ExactRule) and (fittings := _fittings(table, found)):
        score = partial(l1_bic, metric=problem.metric, y=problem.y)
        best = min(fittings, key=score)
        price, rule = max(best.error, TINY), problem.rule.in_noise(best.error)
        plain = table if rule == problem.rule else interval_table(replace(problem, rule=rule, progress=None), intervals)
        ranks = plain.ranks()
        priced = finder.find(replace(search, cost=plain.cost() + price * ranks, ranks=ranks))
        if min(map(score, _fittings(plain, priced))) < score(best) - EVIDENCE:
            return plain, priced
    return table, found


def _fittings(table: IntervalTable, found: Sequence[split_finders.Breakpoints | None]) -> tuple[PiecewiseFitting, ...]:
    fittings = []
    for breakpoints in found:
        if breakpoints is not None:
            bounds = [-1, *breakpoints, len(table.problem.x) - 1]
            fittings.append(PiecewiseFitting.join(tuple(table.fitting(a + 1, b) for a, b in pairwise(bounds))))
    return tuple(fittings)


def _improving(fittings: tuple[PiecewiseFitting, ...], wanted: int | None) -> tuple[PiecewiseFitting, ...]:
    """Those that are no worse than all with fewer segments, and the wanted one."""
    kept: list[PiecewiseFitting] = []
    lowest = float("inf")
    for fitting in fittings:
        if fitting.error <= lowest + 1e-12 or len(fitting.segments) == wanted:
            kept.append(fitting)
        lowest = min(lowest, fitting.error)
    return tuple(kept)


def checked_samples(x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Samples in ascending order of x, one per abscissa (the median of its samples)."""
    try:
        xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as exc:
        raise DataError("x and y must be numbers") from exc
    if xs.ndim != 1 or xs.shape != ys.shape:
        raise DataError(f"x and y must be of the same length, not {xs.shape} and {ys.shape}")
    if xs.size == 0:
        raise DataError("there are no samples")
    for name, values in (("x", xs), ("y", ys)):
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise DataError(f"sample {bad[0]}: {name} is {values[bad[0]]}, not a finite number")
    xs, ys = without_traces(xs), without_traces(ys)
    unique, where = np.unique(xs, return_inverse=True)
    if len(unique) == len(xs):
        order = np.argsort(xs)
        return xs[order], ys[order]
    return unique, np.array([np.median(ys[where == k]) for k in range(len(unique))])
