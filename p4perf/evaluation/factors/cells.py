"""The cells of a factorial experiment: which factors are there, and what was measured."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from p4perf.errors import DataError, Location, NoVerdictError, UsageError
from p4perf.evaluation.statistics import FIXED_COLUMNS, rows_of_metric, unit_of
from p4perf.results.files import read_text

if TYPE_CHECKING:
    import pandas as pd

MAX_FACTORS = 16
"""Most factors of an analysis."""

Combination = frozenset[str]

_ABSENT, _PRESENT = ("0", "0.0", "False"), ("1", "1.0", "True")


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of factors.

    Args:
        present: the factors that are there.
        values: repetitions of the metric, all above 0.
        cache: what stands on the axis of cache use, such as misses per packet; None where it was not measured.
    """

    present: Combination
    values: tuple[float, ...]
    cache: float | None = None

    @property
    def median(self) -> float:
        """Median of the repetitions."""
        return float(np.median(self.values))


@dataclass(frozen=True, slots=True)
class Factorial:
    """A factorial experiment, whole or in part.

    Args:
        factors: names, in order.
        cells: by combination; those that were not measured are not there.
        metric: what the values are.
        unit: their unit.
        higher_is_better: whether a gain is a rise; else it is a fall.
        cache: what the cache use of the cells is, empty if it is not known.

    Raises:
        DataError: fewer than two factors or cells, or a value that is not above 0 or not finite.
    """

    factors: tuple[str, ...]
    cells: Mapping[Combination, Cell]
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
        for cell in self.cells.values():
            if not all(math.isfinite(value) and value > 0 for value in cell.values) or not cell.values:
                raise DataError(f"{self.name(cell.present)} has a value of {self.metric} that is not above 0")

    @property
    def complete(self) -> bool:
        """Whether all combinations were measured."""
        return len(self.cells) == 1 << len(self.factors)

    @property
    def repetitions(self) -> tuple[int, int]:
        """Fewest and most repetitions of a cell."""
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
        measurements: its tidy table.
        metric: which metric; its accepted values are the repetitions.
        factors: columns that are 0 or 1.
        where: which value other swept variables have, as text.
        cache: metric for the axis of cache use; its median is taken.
        higher_is_better: whether more of the metric is better.

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
        present: Cell(present, tuple(float(v) for v in group["value"]), caches.get(present))
        for present, group in _grouped(accepted, factors)
    }
    every = [present for present, _ in _grouped(rows, factors)]
    names = tuple(factors)
    skipped = tuple(" + ".join(f for f in names if f in present) or "base" for present in every if present not in cells)
    return Factorial(names, cells, metric, unit_of(rows), higher_is_better, cache or "", skipped)


def _selected(rows: pd.DataFrame, factors: Sequence[str], where: Mapping[str, str]) -> pd.DataFrame:
    others = [str(c) for c in rows.columns if c not in (*FIXED_COLUMNS, *factors)]
    for name, wanted in where.items():
        if name not in others:
            raise UsageError(f"{name} is no swept variable besides the factors", hint=f"there are: {', '.join(others)}")
        kept = rows[rows[name].astype(str) == wanted]
        if kept.empty:
            known = ", ".join(sorted({str(v) for v in rows[name]}))
            raise UsageError(f"there are no measurements at {name} = {wanted}", hint=f"there are: {known}")
        rows = kept
    varied = [name for name in others if rows[name].nunique(dropna=False) > 1]
    if varied:
        raise UsageError(
            f"{', '.join(varied)} varies besides the factors",
            hint=f"say which value is meant, such as --where {varied[0]}={rows[varied[0]].iloc[0]}",
        )
    return rows


def _grouped(rows: pd.DataFrame, factors: Sequence[str]) -> Iterable[tuple[Combination, pd.DataFrame]]:
    for name in factors:
        if not set(rows[name].astype(str)) <= {*_ABSENT, *_PRESENT}:
            raise DataError(f"{name} is no factor: its values are not 0 and 1")
    for key, group in rows.groupby(list(factors), sort=False):
        values = key if isinstance(key, tuple) else (key,)
        yield frozenset(name for name, value in zip(factors, values, strict=True) if str(value) in _PRESENT), group


def factorial_from_csv(
    path: Path,
    metric: str,
    factors: Sequence[str] = (),
    *,
    cache: str | None = None,
    higher_is_better: bool = True,
) -> Factorial:
    """The cells of a CSV file with a header line; rows with the same factors are repetitions.

    Args:
        path: the file.
        metric: column of the metric; rows where it is empty are left out.
        factors: columns that are 0 or 1; without them all columns but these that hold both and nothing else.
        cache: column for the axis of cache use.
        higher_is_better: whether more of the metric is better.

    Raises:
        DataError: the file cannot be read, has no such column, no factors, or a cell that is no number; with file and
            line.
    """
    text = read_text(path).removeprefix("\ufeff")
    place = Location(str(path))
    reader = csv.DictReader(io.StringIO(text), strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise DataError(f"is not CSV: {error}", location=place) from error
    columns = list(reader.fieldnames or ())
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
    for line, row in rows:
        at = Location(str(path), line)
        for name in chosen:
            if row[name] not in ("0", "1"):
                raise DataError(f"{name} is {row[name]!r}, not 0 or 1", location=at)
        present = frozenset(name for name in chosen if row[name] == "1")
        if (row[metric] or "").strip():
            values.setdefault(present, []).append(_number(row[metric], metric, at))
        if cache and (row[cache] or "").strip():
            caches.setdefault(present, []).append(_number(row[cache], cache, at))
    cells = {
        present: Cell(present, tuple(found), float(np.median(caches[present])) if present in caches else None)
        for present, found in values.items()
    }
    return Factorial(chosen, cells, metric, "", higher_is_better, cache or "")


def _number(text: str, column: str, place: Location) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"column {column!r}: {text!r} is not a finite number", location=place)
    return value
