"""From the costs of an operator to its profile: cost at each size, base cost, exponent, and both laws.

Medians are redrawn (:func:`p4perf.results.table.redrawn_medians`). Intervals are the standard deviation of the redrawn
values times the quantile of t (Efron and Tibshirani 1993, chapter 12): percentiles of three repetitions cover too
little.

The base cost is the cost for packets of 64 bytes (Ren et al. 2025, section II-C): the median that was measured there,
or what the power law says where that size was not measured. The exponent is that of the power law in logarithms.

A cost below the resolution is not a number: such a size is reported as "below x cycles" and left out of the fit; an
operator that is below it everywhere has no laws.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import stdtrit

from p4perf.evaluation.comparison.ratios import satterthwaite
from p4perf.evaluation.fitting.engine import IndexArray
from p4perf.evaluation.papers.ren2025.costs import OperatorCosts, StatedLaw
from p4perf.models.estimate import Estimate
from p4perf.models.operator import BASE_SIZE_BYTES, LINEAR, AffineLaw, Better, OperatorModel, PowerLaw
from p4perf.models.templates import FloatArray
from p4perf.results.table import LEVEL, RESAMPLES, SEED, redrawn_medians


def interval(value: float, variance: float, degrees: float, level: float) -> Estimate:
    """The interval of a value whose estimate has that variance."""
    half = float(np.sqrt(variance) * stdtrit(degrees, (1 + level) / 2))
    return Estimate(value, value - half, value + half)


EXPONENT_REACH = 8.0
"""Least squares look for k no farther than this from the k of the logarithms."""

CLEARLY = 1.25
"""One law is better than the other if the error of the other is this many times larger."""

NEGLIGIBLE = 0.02
"""Errors of both laws that are below this share of the cost decide nothing: a constant is both."""


def slopes(sizes: FloatArray) -> FloatArray:
    """Weights w with ``k = sum(w_i ln C_i)``: the regression of ``ln C`` on ``ln s``, shape (n,)."""
    x = np.log(sizes)
    centred = x - x.mean()
    return np.asarray(centred / np.sum(centred**2))


def logarithmic(sizes: FloatArray, cycles: FloatArray) -> tuple[FloatArray, FloatArray]:
    """C(64) and k, each of shape (...), by least squares on the logarithms of costs above zero of shape (..., n)."""
    logs = np.log(cycles)
    k = logs @ slopes(sizes)
    base = np.exp(logs.mean(axis=-1) - k * (np.log(sizes / BASE_SIZE_BYTES)).mean())
    return np.asarray(base), np.asarray(k)


def power_by_logarithms(sizes: FloatArray, cycles: FloatArray) -> PowerLaw:
    """The power law whose logarithm is nearest to the logarithms of the costs."""
    base, k = logarithmic(sizes, cycles)
    return PowerLaw(float(base), float(k))


def power_by_squares(sizes: FloatArray, cycles: FloatArray) -> PowerLaw:
    """The power law with the least sum of squares in cycles; large packets weigh most.

    For a given k the best C(64) is known, so only k is searched.
    """
    u = sizes / BASE_SIZE_BYTES
    start = power_by_logarithms(sizes, cycles).exponent

    def base(k: float) -> float:
        shape = u**k
        return float(cycles @ shape / (shape @ shape))

    def squares(k: float) -> float:
        return float(np.sum((cycles - base(k) * u**k) ** 2))

    found = minimize_scalar(
        squares, bounds=(start - EXPONENT_REACH, start + EXPONENT_REACH), method="bounded", options={"xatol": 1e-9}
    )
    k = float(found.x) if squares(float(found.x)) < squares(start) else start
    return PowerLaw(base(k), k)


def affine(sizes: FloatArray, cycles: FloatArray) -> AffineLaw:
    """The line with the least sum of squared relative residuals, so that every size weighs the same."""
    columns = np.stack([1 / cycles, sizes / cycles], axis=1)
    (fixed, per_byte), *_ = np.linalg.lstsq(columns, np.ones(len(sizes)), rcond=None)
    return AffineLaw(float(fixed), float(per_byte))


def r_squared(observed: FloatArray, predicted: FloatArray) -> float | None:
    """Share of the scatter over sizes that a law explains; None where there is no scatter at all."""
    total = float(np.sum((observed - observed.mean()) ** 2))
    if total <= 1e-24 * float(np.sum(observed**2)):
        return None
    return 1 - float(np.sum((observed - predicted) ** 2)) / total


def log_error(cycles: FloatArray, predicted: FloatArray) -> float:
    """Root mean square of ``ln(C / law)``; infinite where the law is not positive."""
    if not bool((predicted > 0).all()):
        return math.inf
    return float(np.sqrt(np.mean(np.log(cycles / predicted) ** 2)))


def better_law(error_power: float, error_affine: float, sizes: int, noise: float) -> Better:
    """Which law is nearer; both have two parameters, so their errors compare as they are.

    Two sizes decide nothing, for both laws go through them, and neither do differences below ``noise``, the standard
    error of the logarithm of a median.
    """
    worse = max(error_power, error_affine)
    if sizes < 3 or worse <= max(noise, NEGLIGIBLE) or worse <= CLEARLY * min(error_power, error_affine):
        return "undecided"
    return "power" if error_power < error_affine else "affine"


FLOOR = 0.01
"""Redrawn medians are not taken below this share of the median: they need a logarithm."""


@dataclass(frozen=True)
class SizeCost:
    """The median cost at one size, or the resolution that it is below; a published law has no repetitions."""

    size_bytes: int
    cycles: Estimate | None
    below_cycles: float | None
    repetitions: int


@dataclass(frozen=True, eq=False)
class OperatorProfile:
    """One operator on one platform, as a row of Table II of Ren et al. 2025, with what that table leaves out.

    Args:
        base: C(64) in cycles per packet; None if it is below the resolution or cannot be known.
        base_measured: whether C(64) was measured, and not taken from the law.
        below_cycles: the resolution at the base size, if the base cost is below it.
        exponent: k with its interval; None where nothing was fitted.
        interval_from: ``repetitions``, ``residuals`` of the fit, or empty without an interval.
        power_squares: power law by least squares in cycles.
        r_squared: of the power law, in logarithms; published rows: as published.
        error_power: root mean square of the logarithm of cost over power law.
        replicates: bootstrap replicates of C(64) and k, shape (resamples, 2); None without repetitions. C(64) is the
            resolution where the base cost is below it.
        warning: what a reader should know before believing it, or empty.
        note: what an exponent above 1 may come from, or empty.
    """

    operator: str
    platform: str
    published: bool
    sizes: tuple[SizeCost, ...]
    base: Estimate | None
    base_measured: bool
    below_cycles: float | None
    exponent: Estimate | None
    interval_from: str
    power: PowerLaw | None
    power_squares: PowerLaw | None
    affine: AffineLaw | None
    r_squared: float | None
    r_squared_squares: float | None
    error_power: float | None
    error_affine: float | None
    model: OperatorModel
    replicates: FloatArray | None = None
    warning: str = ""
    note: str = ""

    @property
    def unseen(self) -> bool:
        return all(size.cycles is None for size in self.sizes)

    @property
    def rank_cycles(self) -> float | None:
        """Where the base cost stands among others: its value, or the resolution it is below; None if unknown."""
        return self.base.value if self.base is not None else self.below_cycles


def profile(
    costs: OperatorCosts | StatedLaw, *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = SEED
) -> OperatorProfile:
    return _stated(costs) if isinstance(costs, StatedLaw) else _measured(costs, level, resamples, seed)


def _stated(row: StatedLaw) -> OperatorProfile:
    sizes = tuple(
        SizeCost(size, Estimate(float(value)), None, 0)
        for size, value in zip(row.sizes_bytes, row.law.evaluate(row.sizes_bytes), strict=True)
    )
    domain = (float(min(row.sizes_bytes)), float(max(row.sizes_bytes)))
    return OperatorProfile(
        row.operator, row.platform, True, sizes, Estimate(row.law.base_cycles), True, None,
        Estimate(row.law.exponent), "", row.law, None, None, row.r_squared, None, None, None,
        OperatorModel(row.operator, row.platform, domain, row.law),
    )  # fmt: skip


def _measured(costs: OperatorCosts, level: float, resamples: int, seed: int) -> OperatorProfile:
    generator = np.random.default_rng([seed, zlib.crc32(f"{costs.platform}/{costs.operator}".encode())])
    seen = np.array(costs.seen())
    medians = costs.medians()
    repeated = {index: values for index, values in enumerate(costs.cycles) if len(values) > 1}
    drawn = {index: redrawn_medians(values, resamples, generator) for index, values in repeated.items()}
    sizes = tuple(
        SizeCost(
            size,
            _known(float(medians[i]), drawn.get(i), len(costs.cycles[i]), level) if seen[i] else None,
            None if seen[i] else float(costs.resolution_cycles[i]),
            len(costs.cycles[i]),
        )
        for i, size in enumerate(costs.packet_size_bytes)
    )
    return _fitted(costs, sizes, np.flatnonzero(seen), drawn, level)


def _known(median: float, drawn: FloatArray | None, repetitions: int, level: float) -> Estimate:
    if drawn is None:
        return Estimate(median)
    return interval(median, float(np.var(drawn)), repetitions - 1, level)


def _fitted(
    costs: OperatorCosts, sizes: tuple[SizeCost, ...], seen: IndexArray, drawn: dict[int, FloatArray], level: float
) -> OperatorProfile:
    """The parts of a profile that need costs above the resolution."""
    x, y = costs.sizes[seen], costs.medians()[seen]
    at_base = costs.packet_size_bytes.index(BASE_SIZE_BYTES) if BASE_SIZE_BYTES in costs.packet_size_bytes else None
    fits = len(seen) >= 2
    power = power_by_logarithms(x, y) if fits else None
    squares = power_by_squares(x, y) if fits else None
    line = affine(x, y) if fits else None
    logs: FloatArray | None = None
    if fits and all(int(i) in drawn for i in seen):
        logs = np.log(np.stack([np.maximum(drawn[int(i)], FLOOR * m) for i, m in zip(seen, y, strict=True)])).T
    error_power = log_error(y, power.evaluate(x)) if power else None
    error_affine = log_error(y, line.evaluate(x)) if line else None
    noise = float(np.sqrt(np.mean(np.var(logs, axis=0)))) if logs is not None else 0.0
    undecided = error_power is None or error_affine is None
    better: Better = "undecided" if undecided else better_law(error_power or 0.0, error_affine or 0.0, len(x), noise)
    exponent, source = _exponent(costs, seen, power, logs, level)
    base, below = _base(costs, sizes, at_base, power, logs, level)
    unseen = float(max(costs.resolution_cycles)) if not len(seen) else None
    domain = (float(x[0]), float(x[-1])) if len(x) else (float(costs.sizes[0]), float(costs.sizes[-1]))
    return OperatorProfile(
        costs.operator, costs.platform, False, sizes, base, at_base is not None, below, exponent, source,
        power, squares, line,
        r_squared(np.log(y), np.log(power.evaluate(x))) if power else None,
        r_squared(y, squares.evaluate(x)) if squares else None,
        error_power, error_affine,
        OperatorModel(costs.operator, costs.platform, domain, power, line, better, unseen),
        _replicates(at_base, x, logs, drawn, below), _warning(costs), _note(power, line, better),
    )  # fmt: skip


def _exponent(
    costs: OperatorCosts, seen: IndexArray, power: PowerLaw | None, logs: FloatArray | None, level: float
) -> tuple[Estimate | None, str]:
    """The exponent is a weighted sum of logarithms of medians, so its variance and its degrees of freedom are known."""
    if power is None:
        return None, ""
    x = costs.sizes[seen]
    weights = slopes(x)
    if logs is not None:
        parts = weights**2 * np.var(logs, axis=0)
        degrees = satterthwaite(parts, [len(costs.cycles[int(i)]) - 1.0 for i in seen])
        return interval(power.exponent, float(parts.sum()), degrees, level), "repetitions"
    if len(x) < 3:
        return Estimate(power.exponent), ""
    residuals = np.log(costs.medians()[seen]) - np.log(power.evaluate(x))
    variance = float(np.sum(residuals**2) / (len(x) - 2) * np.sum(weights**2))
    return interval(power.exponent, variance, len(x) - 2, level), "residuals"


def _base(
    costs: OperatorCosts,
    sizes: tuple[SizeCost, ...],
    at_base: int | None,
    power: PowerLaw | None,
    logs: FloatArray | None,
    level: float,
) -> tuple[Estimate | None, float | None]:
    """The base cost, or the resolution it is below."""
    if at_base is not None:
        return sizes[at_base].cycles, sizes[at_base].below_cycles
    if power is None:
        return None, float(max(costs.resolution_cycles)) if not any(costs.seen()) else None
    if logs is None:
        return Estimate(power.base_cycles), None
    seen = np.flatnonzero(costs.seen())
    base, _ = logarithmic(costs.sizes[seen], np.exp(logs))
    degrees = min(len(costs.cycles[int(i)]) - 1.0 for i in seen)
    found = interval(float(np.log(power.base_cycles)), float(np.var(np.log(base))), degrees, level)
    return Estimate(power.base_cycles, float(np.exp(found.low)), float(np.exp(found.high))), None


def _replicates(
    at_base: int | None, x: FloatArray, logs: FloatArray | None, drawn: dict[int, FloatArray], below: float | None
) -> FloatArray | None:
    if logs is None:
        return None
    law_base, exponent = logarithmic(x, np.exp(logs))
    base = law_base
    if below is not None:
        base = np.full(len(exponent), below)
    elif at_base is not None:
        base = drawn[at_base]
    return np.stack([base, exponent], axis=1)


def _warning(costs: OperatorCosts) -> str:
    """A warning about costs below zero, which cannot be; empty without any."""
    rows = zip(costs.packet_size_bytes, costs.medians(), costs.resolution_cycles, strict=True)
    negative = [str(size) for size, median, resolution in rows if median < -resolution]
    if not negative:
        return ""
    return f"the program is faster with it than without at {', '.join(negative)} B: the baseline was not the same"


def _note(power: PowerLaw | None, line: AffineLaw | None, better: Better) -> str:
    """Why a cost may grow faster than the packet."""
    if power is None or line is None or power.exponent <= LINEAR:
        return ""
    if better == "affine" and line.fixed_cycles < 0:
        return (
            f"super-linear at small sizes only: the line is nearer, each byte costs {line.cycles_per_byte:.3g} cycles "
            "at every size, and out-of-order execution hides the first ones behind the baseline"
        )
    return (
        "super-linear: out-of-order execution hides a larger share of a small packet than of a large one behind the "
        "baseline, so the cost per byte can grow though every byte takes the same work"
    )
