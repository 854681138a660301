"""Checks of what was measured again: order, ratios, functions and breakpoints, and no absolute numbers.

Every check takes a :class:`MeasuredRun` first. Costs are medians over the accepted trials of a point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from p4perf.errors import DataError, NoVerdictError
from p4perf.evaluation.fitting.derivation import MIN_POINTS, FitOptions, derive
from p4perf.evaluation.fitting.working_set import CacheMark
from p4perf.evaluation.papers.claims import Quantity, number_of
from p4perf.evaluation.papers.ren2025 import profiles
from p4perf.evaluation.papers.takeya2024.factors import Factorial
from p4perf.models.templates import FloatArray
from p4perf.results.table import Samples

if TYPE_CHECKING:
    import pandas as pd

OPERATOR, PACKET_SIZE = "operator", "packet_size"
NEAR = 2.0
"""A breakpoint within this factor of where a table fills a cache is there because of it."""


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


def curve_segments(
    run: MeasuredRun, metric: str = "cycles_per_packet", max_segments: int = 5, segments: int | None = None
) -> dict[str, Quantity]:
    """Segments, functions and breakpoints of the derived model, and its breakpoint nearest to a full cache.

    The first level of cache does not count there: where it is full hardly shows. ``l1_detected`` is whether a
    breakpoint is within a factor of :data:`NEAR` of that. ``gain`` is how many times the error of a single function is
    that of the model. With few points the criterion that chooses the number of segments is cautious; ``segments`` fixes
    it, or what the points allow.
    """
    x, y = run.curve(metric)
    wanted = None if segments is None else max(1, min(segments, len(x) // MIN_POINTS))
    chosen = derive(x, y, replace(run.options, max_segments=max_segments, segments=wanted), log_x=run.log_x)
    best, one = chosen.best, chosen.of_segments(1)
    found: dict[str, Quantity] = {
        "segments": len(best.segments),
        "families": tuple(segment.template.family for segment in best.segments),
        "breakpoints": tuple(float(v) for v in best.breakpoint_x),
        "error_percent": 100 * best.error,
        "gain": one.error / max(best.error, 1e-12),
    }
    pairs = [(max(s / m.x, m.x / s), m.level) for s in best.breakpoint_x for m in run.marks if s > 0]
    if beyond := [pair for pair in pairs if pair[1] != "L1"]:
        found["breakpoint_over_cache"], found["cache"] = min(beyond)
    if any(mark.level == "L1" for mark in run.marks):
        found["l1_detected"] = any(ratio <= NEAR for ratio, level in pairs if level == "L1")
    return found


def growth_at_caches(run: MeasuredRun, factor: float, metric: str = "cycles_per_packet") -> dict[str, Quantity]:
    """The metric where a table is ``factor`` times as large as L1 or L2, over that where it is as much smaller."""
    grown = {
        mark.level: number_of(curve_ratio(run, mark.x / factor, mark.x * factor, metric), "ratio")
        for mark in run.marks
        if mark.level in ("L1", "L2")
    }
    if len(grown) < 2:
        raise NoVerdictError("it is not known where the table fills L1 and L2")
    return {"l1": grown["L1"], "l2": grown["L2"], "l1_over_l2": grown["L1"] / grown["L2"]}


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
    """A straight line through the medians: R2, slope, and how much of the whole growth is off it at most."""
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
    """The operator that costs most at a packet size."""
    medians = _medians(run, metric)
    here = {name: cost for (name, at), cost in medians.items() if at == size}
    if not here:
        raise NoVerdictError(f"nothing was accepted for packets of {size} B")
    return {"operator": max(here, key=lambda name: here[name])}


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
    groups = rows.groupby([OPERATOR, PACKET_SIZE], sort=False)["value"]
    return {(str(name), int(str(size))): float(np.median(values)) for (name, size), values in groups}


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
