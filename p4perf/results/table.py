"""From the tidy measurement table to one number per point: medians with bootstrap intervals.

The table has one row per point, repetition and metric, with the columns ``point``, ``point_index``, ``repetition``,
``attempt``, one per swept variable, ``metric``, ``value``, ``unit``, ``accepted`` and ``flags``; measured ones have a
``testbed``, too.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from p4perf.errors import DataError, NoVerdictError, UsageError
from p4perf.models.templates import FloatArray

if TYPE_CHECKING:
    import pandas as pd

RESAMPLES = 2000
LEVEL = 0.95
SEED = 1
NO_ACCEPTED = "no_accepted_rows"
TRIAL_COLUMNS = ("point", "point_index", "repetition", "attempt")
"""Columns before the swept variables; measured tables have :data:`TESTBED` behind them."""
TESTBED = "testbed"
VALUE_COLUMNS = ("metric", "value", "unit", "accepted", "flags")
FIXED_COLUMNS = (*TRIAL_COLUMNS, TESTBED, *VALUE_COLUMNS)
"""All columns but the swept variables."""


def without_traces(values: FloatArray) -> FloatArray:
    """The same with zeros for values that are lost to rounding beside the largest of them, such as 1e-300 beside 1."""
    size = np.abs(values)
    return np.where(size < np.finfo(np.float64).eps * size.max(initial=0.0), 0.0, values)


def median_interval(
    values: npt.ArrayLike, *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float, float]:
    """Median with a percentile bootstrap interval (Efron and Tibshirani 1993, chapter 13).

    Returns:
        Median, lower and upper end. Of a single value all three are that value: one trial says nothing of the spread.

    Raises:
        DataError: there is no value, or one is not finite.
    """
    data = np.asarray(values, dtype=np.float64).ravel()
    if data.size == 0 or not np.isfinite(data).all():
        raise DataError("a median needs one value at least, and all must be finite")
    generator = np.random.default_rng(seed)
    drawn = data[generator.integers(0, data.size, size=(resamples, data.size))]
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(np.median(drawn, axis=1), [tail, 100 - tail])
    return float(np.median(data)), float(low), float(high)


def rows_of_metric(measurements: pd.DataFrame, metric: str, by: Sequence[str]) -> pd.DataFrame:
    """The rows of one metric.

    Raises:
        DataError: a column is missing, or there is no row of that metric; names the nearest.
    """
    for column in ("metric", "value", "accepted", *by):
        if column not in measurements.columns:
            near = difflib.get_close_matches(column, [str(c) for c in measurements.columns], n=1)
            hint = f"did you mean {near[0]}?" if near else None
            raise DataError(f"the measurements have no column {column!r}", hint=hint)
    rows = measurements[measurements["metric"] == metric]
    if rows.empty:
        known = sorted({str(m) for m in measurements["metric"]})
        near = difflib.get_close_matches(metric, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"measured: {', '.join(known)}"
        raise DataError(f"there are no measurements of {metric!r}", hint=hint)
    return rows


def unit_of(rows: pd.DataFrame) -> str:
    """The unit of measurements of one metric.

    Raises:
        DataError: there are several.
    """
    units = sorted({str(u) for u in rows["unit"]}) if "unit" in rows.columns else [""]
    if len(units) > 1:
        raise DataError(f"measurements of one metric have several units: {', '.join(units)}")
    return units[0]


def summarise(measurements: pd.DataFrame, metric: str, by: Sequence[str]) -> pd.DataFrame:
    """Median of the accepted rows of every point.

    Returns:
        One row per point, ascending: the variables, ``median``, ``low``, ``high`` (in ``unit``), ``n`` accepted and
        ``rejected`` rows, and ``flags``, the union of the quality flags of the accepted rows. A point without
        accepted rows has n = 0, no numbers (NaN), the flags of its rejected rows and ``no_accepted_rows``.
    """
    rows = rows_of_metric(measurements, metric, by)
    unit = unit_of(rows)
    out = []
    for key, group in rows.groupby(list(by), sort=True):
        accepted = group[group["accepted"].astype(bool)]
        values = accepted["value"].to_numpy(dtype=np.float64)
        judged = accepted if values.size else group
        cells = [cell for cell in judged["flags"] if isinstance(cell, str)] if "flags" in judged.columns else []
        flags = {flag.strip() for cell in cells for flag in cell.split(",") if flag.strip()}
        numbers = (float("nan"),) * 3
        if values.size:
            numbers = median_interval(values)
        else:
            flags = flags | {NO_ACCEPTED}
        record = dict(zip(by, key, strict=True))
        record |= dict(zip(("median", "low", "high"), numbers, strict=True))
        record |= {"unit": unit, "n": values.size, "rejected": len(group) - values.size}
        out.append(record | {"flags": ",".join(sorted(flags))})
    import pandas as pd  # here, so that fitting files of numbers starts at once

    return pd.DataFrame(out)


@dataclass(frozen=True)
class Samples:
    """Repetitions of one metric over one variable.

    Args:
        x: ascending abscissae, without duplicates.
        values: accepted repetitions at each abscissa, at least one.
        missing: abscissae that were measured without an accepted repetition.
    """

    x: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    x_name: str = "x"
    y_name: str = "y"
    y_unit: str = ""
    missing: tuple[float, ...] = ()

    def medians(self) -> FloatArray:
        return np.array([np.median(v) for v in self.values])

    def intervals(self, *, level: float = LEVEL) -> FloatArray:
        """Bootstrap intervals of the medians, shape (n, 2)."""
        return np.array([median_interval(v, level=level)[1:] for v in self.values])

    def without_traces(self) -> Samples:
        """The same with zeros for x and values that are lost to rounding beside the largest of them."""
        x = np.repeat(self.x, [len(values) for values in self.values])
        y = np.concatenate([np.asarray(values, dtype=np.float64) for values in self.values])
        at, of = without_traces(x), without_traces(y)
        if (at == x).all() and (of == y).all():
            return self
        found = Samples.from_arrays(at, of)
        return replace(self, x=found.x, values=found.values)

    def without(self, x: Sequence[float]) -> Samples:
        """The same without these abscissae."""
        kept = [k for k, at in enumerate(self.x) if at not in x]
        return replace(self, x=tuple(self.x[k] for k in kept), values=tuple(self.values[k] for k in kept))

    @classmethod
    def from_arrays(
        cls, x: npt.ArrayLike, y: npt.ArrayLike, *, x_name: str = "x", y_name: str = "y", y_unit: str = ""
    ) -> Samples:
        """Samples in any order; several with the same x are repetitions.

        Raises:
            DataError: there are none, the lengths differ, or a value is not finite.
        """
        xs, ys = np.asarray(x, dtype=np.float64).ravel(), np.asarray(y, dtype=np.float64).ravel()
        if xs.size == 0 or xs.size != ys.size:
            raise DataError(f"x and y must have the same number of values, one at least, not {xs.size} and {ys.size}")
        if not (np.isfinite(xs).all() and np.isfinite(ys).all()):
            raise DataError("x and y must be finite")
        unique = np.unique(xs)
        values = tuple(tuple(float(v) for v in ys[xs == at]) for at in unique)
        return cls(tuple(unique.tolist()), values, x_name, y_name, y_unit)

    @classmethod
    def from_measurements(cls, measurements: pd.DataFrame, metric: str, x: str) -> Samples:
        """Accepted rows of one metric over one swept variable.

        Raises:
            DataError: a column or the metric is missing, x is not a number, or a value is not finite.
            UsageError: another variable is swept as well, so that points would be mixed.
            NoVerdictError: there are no accepted rows at all.
        """
        rows = rows_of_metric(measurements, metric, [x])
        others = [str(c) for c in rows.columns if c not in FIXED_COLUMNS and c != x]
        varied = [c for c in others if rows.groupby(x)[c].nunique(dropna=False).max() > 1]
        if varied:
            raise UsageError(
                f"{', '.join(varied)} varies at the same {x}: one curve cannot describe it",
                hint="select the rows of one combination first",
            )
        try:
            abscissae = rows[x].astype(float)
        except (TypeError, ValueError) as exc:
            raise DataError(f"the variable {x!r} is not numeric, so no curve over it can be fitted") from exc
        good = rows["accepted"].astype(bool)
        if not good.any():
            raise NoVerdictError(f"no measurement of {metric!r} was accepted", hint="look at the quality flags")
        found = cls.from_arrays(
            abscissae[good].to_numpy(),
            rows.loc[good, "value"].to_numpy(dtype=np.float64),
            x_name=x,
            y_name=metric,
            y_unit=unit_of(rows),
        )
        missing = sorted({float(v) for v in abscissae} - set(found.x))
        return cls(found.x, found.values, x, metric, found.y_unit, tuple(missing))
