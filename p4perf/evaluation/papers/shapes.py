"""Checks of what was measured again: order, ratios, functions and breakpoints, and no absolute numbers.

Every check takes a :class:`MeasuredRun` first. Costs are medians over the accepted trials of a point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np

from p4perf.errors import DataError, NoVerdictError
from p4perf.evaluation.fitting.derivation import MIN_POINTS, FitOptions, derive
from p4perf.evaluation.fitting.working_set import CacheMark
from p4perf.evaluation.papers.claims import Quantity, number_of
from p4perf.evaluation.papers.ren2025 import profiles
from p4perf.evaluation.papers.takeya2024.factors import Factorial
from p4perf.models.component import PiecewiseFitting
from p4perf.models.templates import FloatArray
from p4perf.results.table import Samples

if TYPE_CHECKING:
    import pandas as pd

OPERATOR, PACKET_SIZE = "operator", "packet_size"
NEAR = 2.0
"""A breakpoint within this factor of where a table fills a cache is there because of it."""
SHORTEST = 3
"""Fewest points of a line between two breakpoints."""
FOLDS = 5
"""One of this number of points is left out of a fit."""


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """A run as checks see it; several swept variables count as none.

    ``marks`` are where a growing table fills the caches of the machine.
    """

    table: pd.DataFrame
    variable: str | None
    options: FitOptions
    log_x: bool = False
    marks: tuple[CacheMark, ...] = ()
    factorial: Factorial | None = None

    def curve(self, metric: str) -> tuple[FloatArray, FloatArray]:
        """Abscissae and medians of a metric over the swept variable."""
        if self.variable is None:
            raise NoVerdictError("several variables are swept, so there is no curve")
        samples = Samples.from_measurements(self.table, metric, self.variable)
        return np.array(samples.x), samples.medians()


def curve_segments(run: MeasuredRun, metric: str = "cycles_per_packet") -> dict[str, Quantity]:
    """Segments, functions and breakpoints of the model that is nearest to points that it was not fitted to.

    ``left_out_gain`` is the error of a single function at such points over that of the model. ``l1_detected`` is
    whether a breakpoint is within a factor of :data:`NEAR` of where the table fills the first level of cache.
    """
    model, errors = _nearest_model(run, metric)
    segments = len(model.segments)
    found: dict[str, Quantity] = {
        "segments": segments,
        "families": tuple(segment.template.family for segment in model.segments),
        "breakpoints": tuple(float(v) for v in model.breakpoint_x),
        "left_out_percent": 100 * errors[segments],
        "left_out_gain": errors[1] / max(errors[segments], 1e-12),
    }
    if l1 := [mark.x for mark in run.marks if mark.level == "L1"]:
        found["l1_detected"] = any(1 / NEAR <= at / l1[0] <= NEAR for at in model.breakpoint_x)
    return found


def breaks_at_caches(run: MeasuredRun, metric: str = "cycles_per_packet") -> dict[str, Quantity]:
    """Whether a growing table costs more from where it fills caches on, or just as well from anywhere.

    Straight lines over the logarithms of both are fitted between breakpoints: one wherever it fits best, and one where
    the table fills each of the caches beyond the first. ``share_as_good`` is the share of all other places for these
    that fit no worse. ``left_out_gain`` is that of :func:`curve_segments`.
    """
    x, y = run.curve(metric)
    n = len(x)
    full = sorted({int(np.searchsorted(x, mark.x, side="right")) for mark in run.marks if mark.level != "L1"})
    if len(full) != 2 or min(b - a for a, b in pairwise((0, *full, n))) < SHORTEST:
        raise NoVerdictError("the sweep has too few points before, between or after the tables that fill L2 and L3")
    one = _line_squares(np.log(x), np.log(y))
    two = np.minimum(one, np.min(one[:, :, None] + one[None, :, :], axis=1))

    def squares(first: int, second: int) -> float:
        pieces = ((0, first), (first, second), (second, n))
        straight = sum(one[piece] for piece in pieces)
        return float(straight + min(two[piece] - one[piece] for piece in pieces))

    pairs = combinations(range(SHORTEST, n - SHORTEST + 1), 2)
    every = np.array([squares(a, b) for a, b in pairs if b - a >= SHORTEST])
    return {
        "places": tuple(float(x[place]) for place in full),
        "share_as_good": float(np.mean(every <= squares(*full) * (1 + 1e-9))),
        "left_out_gain": number_of(curve_segments(run, metric), "left_out_gain"),
    }


def growth_at_caches(run: MeasuredRun, factor: float, metric: str = "cycles_per_packet") -> dict[str, Quantity]:
    """The metric where a table is ``factor`` times as large as a cache, over that where it is as much smaller."""
    grown = {
        mark.level: number_of(curve_ratio(run, mark.x / factor, mark.x * factor, metric), "ratio") for mark in run.marks
    }
    if not {"L1", "L2", "L3"} <= grown.keys():
        raise NoVerdictError("it is not known where the table fills L1, L2 and L3")
    return {
        **{level.lower(): ratio for level, ratio in grown.items()},
        "l1_over_l2": grown["L1"] / grown["L2"],
        "l2_over_l3": grown["L2"] / grown["L3"],
    }


def curve_ratio(run: MeasuredRun, low: float, high: float, metric: str = "cycles_per_packet") -> dict[str, Quantity]:
    """The metric where the variable is nearest to one value, over that nearest to another."""
    x, y = run.curve(metric)
    at = [int(np.argmin(np.abs(_axis(x, run) - _axis(np.array([v]), run)[0]))) for v in (low, high)]
    return {"ratio": float(y[at[1]] / y[at[0]]), "low": float(y[at[0]]), "high": float(y[at[1]])}


def curve_order(run: MeasuredRun, metric: str = "cycles_per_packet") -> dict[str, Quantity]:
    """Rank correlation of the metric with the variable (Spearman)."""
    x, y = run.curve(metric)
    if len(x) < 3:
        raise NoVerdictError("there are fewer than three points")
    ranks = [np.argsort(np.argsort(v)).astype(float) for v in (x, y)]
    return {"rank_correlation": float(np.corrcoef(ranks[0], ranks[1])[0, 1])}


def curve_line(
    run: MeasuredRun, metric: str = "cycles_per_packet", start: float | None = None, end: float | None = None
) -> dict[str, Quantity]:
    """A straight line through the medians: R2, slope, growth, and how much of that is off it at most.

    ``best`` is which of a line, a logarithm, a square and a step leaves the smallest squares of relative residuals.
    """
    x, y = run.curve(metric)
    chosen = (x >= (-math.inf if start is None else start)) & (x <= (math.inf if end is None else end))
    x, y = x[chosen], y[chosen]
    if len(x) < 3:
        raise NoVerdictError("there are fewer than three points for a line")
    slope, base = np.polyfit(x, y, 1)
    fitted = base + slope * x
    return {
        "r_squared": _r_squared(y, fitted),
        "slope": float(slope),
        "growth": float((y[-1] - y[0]) / y[0]),
        "off_line": float(np.abs(y - fitted).max() / max(np.ptp(y), 1e-12)),
        "best": _best_shape(x, y),
    }


def cost_per_step(
    run: MeasuredRun, metric: str = "cost_cycles_per_packet", end: float | None = None
) -> dict[str, Quantity]:
    """The cost of the last point by its steps over that of the first by its own: 1 if steps add up."""
    x, y = run.curve(metric)
    steps = (x > 0) & (x <= (math.inf if end is None else end))
    per_step = y[steps] / x[steps]
    if len(per_step) < 2 or not per_step[0] > 0:
        raise NoVerdictError("there are fewer than two points with a cost")
    return {"ratio": float(per_step[-1] / per_step[0])}


def operator_law(run: MeasuredRun, operator: str, metric: str = "cost_cycles_per_packet") -> dict[str, Quantity]:
    """Power law and line over packet sizes: exponent, R2 of the logarithms, R2 of the line, base cost."""
    sizes, costs = _operator(run, operator, metric)
    power, line = profiles.power_by_logarithms(sizes, costs), profiles.affine(sizes, costs)
    return {
        "exponent": power.exponent,
        "r_squared": _r_squared(np.log(costs), np.log(power.evaluate(sizes))),
        "line_r_squared": _r_squared(costs, line.evaluate(sizes)),
        "fixed_cycles": line.fixed_cycles,
        "base_cycles": power.base_cycles,
    }


def operator_exponents(
    run: MeasuredRun, operators: tuple[str, ...], metric: str = "cost_cycles_per_packet"
) -> dict[str, Quantity]:
    found = [profiles.power_by_logarithms(*_operator(run, name, metric)).exponent for name in operators]
    return {"exponents": tuple(found), "highest": max(found), "lowest": min(found)}


def operator_ratio(
    run: MeasuredRun, dear: str, cheap: str, size: int = 64, metric: str = "cost_cycles_per_packet"
) -> dict[str, Quantity]:
    """The cost of one operator over that of another, at a packet size."""
    found = []
    for name in (dear, cheap):
        sizes, costs = _operator(run, name, metric)
        at = np.flatnonzero(sizes == size)
        if not at.size:
            raise DataError(f"{name} has no cost for packets of {size} B above zero")
        found.append(float(costs[at[0]]))
    return {"ratio": found[0] / found[1]}


def operator_dearest(run: MeasuredRun, size: int = 64, metric: str = "cost_cycles_per_packet") -> dict[str, Quantity]:
    """The operator that costs most at a packet size, and how many times as much as the next one."""
    medians = _medians(run, metric)
    here = {name: cost for (name, at), cost in medians.items() if at == size}
    if len(here) < 2:
        raise NoVerdictError(f"fewer than two operators were accepted for packets of {size} B")
    second, first = sorted(here, key=lambda name: here[name])[-2:]
    return {"operator": first, "ratio": here[first] / here[second] if here[second] > 0 else math.inf}


def cell_ratio(run: MeasuredRun, cell: str, over: str) -> dict[str, Quantity]:
    """The rate of one combination of factors over that of another; ``base`` has no factor."""
    return {"ratio": _cell(run, cell) / _cell(run, over)}


def cell_synergy(run: MeasuredRun, whole: str) -> dict[str, Quantity]:
    """The gain of all factors of a combination over the product of their gains alone."""
    base = _cell(run, "base")
    single = math.prod(_cell(run, factor) / base for factor in whole)
    return {"synergy": _cell(run, whole) / base / single, "full": _cell(run, whole) / base, "product": single}


def largest_loss_of(run: MeasuredRun, whole: str, factors: str) -> dict[str, Quantity]:
    """The factor with the largest gain as the last one, of some."""
    ratios = {f: _cell(run, whole) / _cell(run, whole.replace(f, "")) for f in factors}
    return {"first": max(ratios, key=lambda f: ratios[f]), **{f"without_{f}": ratio for f, ratio in ratios.items()}}


@lru_cache(maxsize=1)  # several claims are about one run
def _nearest_model(run: MeasuredRun, metric: str) -> tuple[PiecewiseFitting, Mapping[int, float]]:
    """The model that is nearest to points that were left out, and errors at these by number of segments."""
    x, y = run.curve(metric)
    options = replace(run.options, segments=None)
    errors = _left_out_errors(x, y, options, log_x=run.log_x)
    best = min(errors, key=lambda number: errors[number])
    return derive(x, y, replace(options, segments=best), log_x=run.log_x).best, errors


def _left_out_errors(x: FloatArray, y: FloatArray, options: FitOptions, *, log_x: bool) -> dict[int, float]:
    """Mean relative error of curves by number of segments, at points that they were not fitted to.

    Every fifth point is left out in turn, but for both ends, where a curve would have to be continued.
    """
    if len(x) < FOLDS * 2:
        raise NoVerdictError("there are too few points to leave some out")
    most = min(options.max_segments, (len(x) - -(-len(x) // FOLDS)) // MIN_POINTS)
    off: dict[int, list[FloatArray]] = {number: [] for number in range(1, most + 1)}
    for fold in range(FOLDS):
        out = np.arange(1, len(x) - 1)[fold::FOLDS]
        fittings = derive(np.delete(x, out), np.delete(y, out), options, log_x=log_x).fittings
        for number, errors in off.items():
            fitting = [each for each in fittings if len(each.segments) <= number][-1]
            errors.append(np.abs(np.asarray(fitting.evaluate(x[out])) / y[out] - 1))
    return {number: float(np.mean(np.concatenate(errors))) for number, errors in off.items()}


def _line_squares(x: FloatArray, y: FloatArray) -> FloatArray:
    """Squared residuals of the straight line through the samples from one index up to another; infinite if few."""
    sums = [np.concatenate([[0.0], np.cumsum(v)]) for v in (x, y, x * x, y * y, x * y)]
    sx, sy, sxx, syy, sxy = (s[None, :] - s[:, None] for s in sums)
    n = np.arange(len(x) + 1)[None, :] - np.arange(len(x) + 1)[:, None]
    enough = n >= SHORTEST
    n, spread = np.where(enough, n, 1), np.where(enough, sxx - sx * sx / np.where(enough, n, 1), 1.0)
    return np.where(enough, np.maximum(syy - sy * sy / n - (sxy - sx * sy / n) ** 2 / spread, 0.0), np.inf)


def _best_shape(x: FloatArray, y: FloatArray) -> str:
    bends = {"line": x, "logarithm": np.log(x) if x[0] > 0 else np.log1p(x), "square": x * x}
    steps = [(x >= at).astype(float) for at in x[1:]]
    off = {name: _relative_squares(bend, y) for name, bend in bends.items()}
    off["step"] = min(_relative_squares(step, y) for step in steps)
    return min(off, key=lambda name: off[name])


def _relative_squares(bend: FloatArray, y: FloatArray) -> float:
    """Squared relative residuals of the best multiple of a shape and a constant."""
    rows = np.stack([np.ones_like(y), bend / bend.max()], axis=1) / y[:, None]
    found = np.linalg.lstsq(rows, np.ones_like(y), rcond=None)[0]
    return float(np.sum((rows @ found - 1) ** 2))


def _axis(x: FloatArray, run: MeasuredRun) -> FloatArray:
    return np.log(np.maximum(x, 1e-12)) if run.log_x else x


def _cell(run: MeasuredRun, text: str) -> float:
    if run.factorial is None:
        raise DataError("the run combines no variants")
    present = frozenset() if text == "base" else frozenset(text)
    if present not in run.factorial.cells:
        raise NoVerdictError(f"nothing was accepted of the combination {text}")
    return run.factorial.cells[present].median


def _medians(run: MeasuredRun, metric: str) -> dict[tuple[str, int], float]:
    table = run.table
    rows = table[(table["metric"] == metric) & table["accepted"].astype(bool)]
    if rows.empty:
        raise NoVerdictError(f"no {metric} was accepted")
    medians = rows.groupby([OPERATOR, PACKET_SIZE], sort=False)["value"].median()
    return {(str(n), int(str(size))): float(value) for (n, size), value in zip(medians.index, medians, strict=True)}


def _operator(run: MeasuredRun, operator: str, metric: str) -> tuple[FloatArray, FloatArray]:
    found = sorted(
        (size, cost) for (name, size), cost in _medians(run, metric).items() if name == operator and cost > 0
    )
    if len(found) < 2:
        raise NoVerdictError(f"{operator} has a cost at fewer than two packet sizes")
    return np.array([float(size) for size, _ in found]), np.array([cost for _, cost in found])


def _r_squared(observed: FloatArray, fitted: FloatArray) -> float:
    found = profiles.r_squared(observed, fitted)
    return 1.0 if found is None else found
