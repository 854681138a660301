"""Factor analysis: what each of several design choices does to a metric, in all combinations.

ln y = b_0 + sum_i b_i x_i (+ sum_{i<j} b_ij x_i x_j), with x_i = 1 where factor i is there and 0 where not. exp(b_i) is
the factor by which i alone multiplies the metric (with interactions: from the base; without: on average), and exp(b_ij)
by how much more the two multiply it together than one by one (Box, Hunter and Hunter 2005, chapters 5 and 6; their
contrasts are -1 and 1, of which the interaction is a quarter of this one in the logarithm).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from p4perf.errors import DataError, NoVerdictError, UsageError
from p4perf.evaluation.fitting.datafiles import cell_number, csv_records
from p4perf.models.estimate import Estimate
from p4perf.models.templates import FloatArray
from p4perf.results.files import read_text
from p4perf.results.table import FIXED_COLUMNS, LEVEL, RESAMPLES, SEED, rows_of_metric, rows_where, unit_of

if TYPE_CHECKING:
    import pandas as pd


MAX_FACTORS = 16
"""Most factors of an analysis."""

Combination = frozenset[str]

_ABSENT, _PRESENT = ("0", "0.0", "False"), ("1", "1.0", "True")


@dataclass(frozen=True, slots=True)
class FactorialCell:
    """A combination of factors: repetitions of the metric (above 0), and its cache use where that was measured."""

    values: tuple[float, ...]
    cache: float | None = None

    @property
    def median(self) -> float:
        return float(np.median(self.values))


@dataclass(frozen=True, slots=True)
class Factorial:
    """A factorial experiment, whole or in part; combinations that were not measured have no cell.

    ``cache`` is what the cache use of the cells is, empty if it is not known.
    """

    factors: tuple[str, ...]
    cells: Mapping[Combination, FactorialCell]
    metric: str = ""
    unit: str = ""
    higher_is_better: bool = True
    cache: str = ""
    skipped: tuple[str, ...] = field(default=())
    """Combinations of which no value was accepted."""

    def __post_init__(self) -> None:
        if len(self.factors) < 2 or len(self.cells) < 2:
            raise DataError(
                f"a factor analysis needs two factors and two of their combinations at least, there are "
                f"{len(self.factors)} and {len(self.cells)}"
            )
        if len(self.factors) > MAX_FACTORS:
            raise DataError(f"{len(self.factors)} factors are more than the limit of {MAX_FACTORS}")
        for present, cell in self.cells.items():
            if not all(math.isfinite(value) and value > 0 for value in cell.values) or not cell.values:
                raise DataError(f"{self.name(present)} has a value of {self.metric} that is not above 0")

    @property
    def repetitions(self) -> tuple[int, int]:
        counts = [len(cell.values) for cell in self.cells.values()]
        return min(counts), max(counts)

    def name(self, present: Iterable[str]) -> str:
        """A combination for people: ``a + c``, or ``base``."""
        wanted = set(present)
        return " + ".join(name for name in self.factors if name in wanted) or "base"

    def value(self, present: Iterable[str]) -> float | None:
        """Median of a cell, None if it was not measured."""
        cell = self.cells.get(frozenset(present))
        return None if cell is None else cell.median

    def gain(self, present: Iterable[str], over: Iterable[str] = ()) -> float | None:
        """How much better one cell is than another, as a factor; None if one was not measured."""
        new, old = self.value(present), self.value(over)
        if new is None or old is None:
            return None
        return new / old if self.higher_is_better else old / new


def factorial_from_table(
    measurements: pd.DataFrame,
    metric: str,
    factors: Sequence[str],
    *,
    where: Mapping[str, str] | None = None,
    cache: str | None = None,
    higher_is_better: bool = True,
) -> Factorial:
    """The cells of a run.

    Args:
        where: which value other swept variables have, as text.
        cache: metric for the axis of cache use; its median is taken.

    Raises:
        DataError: a column or metric is missing, a factor is not 0 or 1, a value is not above 0.
        UsageError: another variable is swept and ``where`` does not say which value is meant, or names one that is not.
        NoVerdictError: no value was accepted.
    """
    rows = _selected(rows_of_metric(measurements, metric, factors), factors, where or {})
    accepted = rows[rows["accepted"].astype(bool)]
    if accepted.empty:
        raise NoVerdictError(f"no measurement of {metric!r} was accepted", hint="look at the quality flags")
    used = _selected(rows_of_metric(measurements, cache, factors), factors, where or {}) if cache else None
    caches: dict[Combination, float] = {}
    if used is not None:
        for present, group in _grouped(used[used["accepted"].astype(bool)], factors):
            caches[present] = float(group["value"].median())
    cells = {
        present: FactorialCell(tuple(float(v) for v in group["value"]), caches.get(present))
        for present, group in _grouped(accepted, factors)
    }
    every = [present for present, _ in _grouped(rows, factors)]
    names = tuple(factors)
    skipped = tuple(" + ".join(f for f in names if f in present) or "base" for present in every if present not in cells)
    return Factorial(names, cells, metric, unit_of(rows), higher_is_better, cache or "", skipped)


def _selected(rows: pd.DataFrame, factors: Sequence[str], where: Mapping[str, str]) -> pd.DataFrame:
    others = [str(c) for c in rows.columns if c not in (*FIXED_COLUMNS, *factors)]
    for name in where:
        if name not in others:
            hint = f"there are: {', '.join(others)}"
            raise UsageError(f"{name} is not a swept variable besides the factors", hint=hint)
    rows = rows_where(rows, where)
    varied = [name for name in others if rows[name].nunique(dropna=False) > 1]
    if varied:
        hint = f"say which value is meant, such as --where {varied[0]}={rows[varied[0]].iloc[0]}"
        raise UsageError(f"{', '.join(varied)} varies besides the factors", hint=hint)
    return rows


def _grouped(rows: pd.DataFrame, factors: Sequence[str]) -> Iterable[tuple[Combination, pd.DataFrame]]:
    for name in factors:
        if not set(rows[name].astype(str)) <= {*_ABSENT, *_PRESENT}:
            raise DataError(f"{name} is not a factor: its values are not 0 and 1")
    for key, group in rows.groupby(list(factors), sort=False):
        values = key if isinstance(key, tuple) else (key,)
        yield frozenset(name for name, value in zip(factors, values, strict=True) if str(value) in _PRESENT), group


def factorial_from_csv(
    path: Path, metric: str, factors: Sequence[str] = (), *, cache: str | None = None, higher_is_better: bool = True
) -> Factorial:
    """The cells of a CSV file with a header line; rows with the same factors are repetitions.

    Without factors they are all other columns that hold 0 and 1 and nothing else.

    Raises:
        DataError: the file cannot be read, has no such column, no factors, or a cell that is no number; with file and
            line.
    """
    columns, place, records = csv_records(read_text(path).removeprefix("\ufeff"), str(path))
    rows = list(records)
    if not rows:
        raise DataError("has no rows", location=place)
    for name in (metric, *factors, *((cache,) if cache else ())):
        if columns.count(name) != 1:
            raise DataError(f"there is no column {name!r}", location=place, hint=f"columns: {', '.join(columns)}")
    free = [name for name in columns if name not in (metric, cache)]
    chosen = tuple(factors) or tuple(name for name in free if {row[name] for _, row in rows} == {"0", "1"})
    if not chosen:
        raise DataError("has no column that is 0 or 1", location=place, hint="name the factors with --factors a,b")
    values: dict[Combination, list[float]] = {}
    caches: dict[Combination, list[float]] = {}
    for at, row in rows:
        for name in chosen:
            if row[name] not in ("0", "1"):
                raise DataError(f"{name} is {row[name]!r}, not 0 or 1", location=at)
        present = frozenset(name for name in chosen if row[name] == "1")
        if row[metric]:
            values.setdefault(present, []).append(cell_number(row[metric], metric, at))
        if cache and row[cache]:
            caches.setdefault(present, []).append(cell_number(row[cache], cache, at))
    cells = {
        present: FactorialCell(tuple(found), float(np.median(caches[present])) if present in caches else None)
        for present, found in values.items()
    }
    return Factorial(chosen, cells, metric, "", higher_is_better, cache or "")


@dataclass(frozen=True, slots=True)
class Effect:
    """What a factor, or two of them together, multiply the metric by; above 1 is better.

    The interval of ``ratio`` comes from repetitions.
    """

    factors: tuple[str, ...]
    ratio: Estimate

    @property
    def strength(self) -> float:
        """How far from no effect, whichever way: |ln ratio|."""
        return abs(math.log(self.ratio.value))


@dataclass(frozen=True, slots=True)
class EffectModel:
    """A fitted model of effects: of the factors in their order, then of their pairs if it has pairs.

    ``base`` is in the unit of the metric, ``r_squared`` the share of the variance of the logarithms that it explains.
    """

    base: float
    effects: tuple[Effect, ...]
    r_squared: float

    def of(self, *factors: str) -> Effect:
        return next(effect for effect in self.effects if set(effect.factors) == set(factors))


def fit_effects(
    factorial: Factorial,
    *,
    pairs: bool = False,
    resampled: Mapping[Combination, FloatArray] | None = None,
    level: float = 0.95,
) -> EffectModel:
    """Fit main effects and those of pairs; ``resampled`` are replicates by cell, of which intervals are made."""
    terms: list[tuple[str, ...]] = [(name,) for name in factorial.factors]
    if pairs:
        terms += itertools.combinations(factorial.factors, 2)
    order = list(factorial.cells)
    design = np.array([[1.0, *(float(set(term) <= present) for term in terms)] for present in order])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        raise DataError(
            f"{len(order)} combinations do not tell {len(terms)} effects apart{', pairs included' if pairs else ''}",
            hint="measure more of them; all subsets do",
        )
    logs = np.log([factorial.cells[present].median for present in order])
    solve = np.linalg.pinv(design)
    found = solve @ logs
    residual = logs - design @ found
    total = float(np.sum((logs - logs.mean()) ** 2))
    sign = 1.0 if factorial.higher_is_better else -1.0
    drawn = [None] * len(found) if resampled is None else solve @ np.stack([resampled[present] for present in order])
    ratios = [_ratio(float(np.exp(sign * value)), logs, level) for value, logs in zip(found, drawn, strict=True)]
    effects = tuple(Effect(term, ratio) for term, ratio in zip(terms, ratios[1:], strict=True))
    explained = 1 - float(residual @ residual) / total if total > 0 else 1.0
    return EffectModel(float(np.exp(found[0])), effects, explained)


@dataclass(frozen=True, slots=True)
class Rung:
    """One step of a ladder: the factor that is added, the metric that is reached, and the gain over the step before."""

    factor: str
    value: float
    gain: float


@dataclass(frozen=True, slots=True)
class Ladder:
    """Factors in the order in which each is the best of those that are left.

    Args:
        untried: for each step the factors that could not compete, since their combination was not measured.
    """

    base: float
    rungs: tuple[Rung, ...]
    untried: tuple[tuple[str, ...], ...]


def greedy_ladder(factorial: Factorial) -> Ladder | None:
    """The greedy order: always the factor that makes it best next; None if the base was not measured."""
    base = factorial.value(())
    if base is None:
        return None
    present: Combination = frozenset()
    rungs: list[Rung] = []
    untried: list[tuple[str, ...]] = []
    while left := [name for name in factorial.factors if name not in present]:
        gains = {name: factorial.gain({*present, name}, present) for name in left}
        known = {name: gain for name, gain in gains.items() if gain is not None}
        if not known:
            break
        best = max(known, key=lambda name: known[name])
        untried.append(tuple(name for name in left if name not in known))
        present |= {best}
        rungs.append(Rung(best, factorial.value(present) or 0.0, known[best]))
    return Ladder(base, tuple(rungs), tuple(untried))


Additivity = Literal["super-additive", "sub-additive", "as if independent", "unknown"]


@dataclass(frozen=True, slots=True)
class FactorAnalysis:
    """What the factors do.

    Args:
        pairs: main effects and interactions; None where the cells do not tell them apart.
        single: gain of each factor alone over the base (above 1 is better), None where it was not measured.
        last: gain of each factor as the last one (leave-one-out ratio), None where it was not measured.
        product: product of the single gains, None if one is missing.
        synergy: full gain over that product; above 1 the factors do more together than one by one.
    """

    factorial: Factorial
    main: EffectModel
    pairs: EffectModel | None
    single: Mapping[str, Estimate | None]
    last: Mapping[str, Estimate | None]
    full: Estimate | None
    product: Estimate | None
    synergy: Estimate | None
    ladder: Ladder | None

    @property
    def additivity(self) -> Additivity:
        """Whether the factors do more together than one by one; with repetitions only if the interval excludes 1."""
        if self.synergy is None:
            return "unknown"
        low, high = self.synergy.drawn_ends
        return "super-additive" if low > 1 else "sub-additive" if high < 1 else "as if independent"

    @property
    def without_single(self) -> tuple[str, ...]:
        return tuple(name for name, gain in self.single.items() if gain is None)

    def best_without(self, factor: str) -> float | None:
        """The best value of the metric that was reached without a factor."""
        values = [cell.median for present, cell in self.factorial.cells.items() if factor not in present]
        return (max if self.factorial.higher_is_better else min)(values, default=None)


def analyse(
    factorial: Factorial, *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = SEED
) -> FactorAnalysis:
    """Analyse a factorial experiment.

    Intervals are percentiles of a bootstrap over the repetitions of each cell. With single repetitions there are none,
    and a cell with one among others with several adds nothing to their width.
    """
    drawn = _resampled(factorial, resamples, seed) if factorial.repetitions[1] > 1 else None
    main = fit_effects(factorial, resampled=drawn, level=level)
    try:
        pairs = fit_effects(factorial, pairs=True, resampled=drawn, level=level)
    except DataError:
        pairs = None

    def gain(present: Iterable[str], over: Iterable[str] = ()) -> Estimate | None:
        new, old = frozenset(present), frozenset(over)
        ratio = factorial.gain(new, old)
        return None if ratio is None else _ratio(ratio, None if drawn is None else drawn[new] - drawn[old], level)

    factors = factorial.factors
    single = {name: gain((name,)) for name in factors}
    last = {name: gain(factors, [other for other in factors if other != name]) for name in factors}
    full = gain(factors)
    alone = [found.value for found in single.values() if found is not None]
    product = synergy = None
    if full is not None and len(alone) == len(factors):
        together = rest = None
        if drawn is not None:
            base = drawn[frozenset()]
            together = np.sum([drawn[frozenset((name,))] - base for name in factors], axis=0)
            rest = drawn[frozenset(factors)] - base - together
        product = _ratio(math.prod(alone), together, level)
        synergy = _ratio(full.value / product.value, rest, level)
    return FactorAnalysis(factorial, main, pairs, single, last, full, product, synergy, greedy_ladder(factorial))


def _resampled(factorial: Factorial, resamples: int, seed: int) -> Mapping[Combination, FloatArray]:
    """Logarithms of the medians of resampled repetitions, by cell; the larger, the better."""
    generator = np.random.default_rng(seed)
    sign = 1.0 if factorial.higher_is_better else -1.0
    found: dict[Combination, FloatArray] = {}
    for present, cell in factorial.cells.items():
        values = np.log(np.asarray(cell.values))
        picked = values[generator.integers(0, values.size, size=(resamples, values.size))]
        found[present] = sign * np.median(picked, axis=1)
    return found


def _ratio(value: float, logs: FloatArray | None, level: float) -> Estimate:
    """A ratio with the percentiles of its replicates, of which these are the logarithms; without any, alone."""
    if logs is None:
        return Estimate(value)
    tail = 50 * (1 - level)
    low, high = np.exp(np.percentile(logs, [tail, 100 - tail]))
    return Estimate(value, float(low), float(high))
