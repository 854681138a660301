"""From the tidy measurement table to one number per point: medians over process starts, with intervals.

The table has one row per point, repetition and metric, with the columns ``point``, ``point_index``, ``repetition``,
``attempt``, one per swept variable, ``metric``, ``value``, ``unit``, ``accepted`` and ``flags``; measured ones have a
``testbed``, too.

Everything that has an interval takes it from :func:`redrawn_medians`: the points of a run, the ratios of two of them,
the band of a model. Percentiles of the redrawn medians of three starts would be the range of these, which holds the
median of all starts in 75 % only. So intervals are the standard deviation of redrawn medians times the quantile of t
(Efron and Tibshirani 1993, chapter 12). Starts that disagree (:data:`STARTS_DISAGREE`) are in two states or more, and
which of them another measurement meets is not known: there single starts are redrawn, not medians, and the interval
holds every start.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
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
STARTS_DISAGREE = "starts_disagree"
"""Flag of the accepted trials of a point whose starts are further apart than their windows explain."""
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


MEDIAN_FACTORS = (
    1.0, 1.411, 0.913, 0.933, 0.862, 0.903, 0.873, 0.908, 0.884, 0.911, 0.888, 0.917, 0.897, 0.920, 0.901, 0.923, 0.903,
    0.923, 0.908, 0.926, 0.913,
)  # fmt: skip
"""For 1 to 21 values; see :func:`median_factor`. The weights that resamples give to order statistics are exact, the
covariances of normal order statistics simulated (400,000 samples)."""


def median_factor(repetitions: int) -> float:
    """Standard deviation of the median of n normal values over that of its bootstrap (root of the mean variance).

    Of two values the bootstrap takes half the variance; of more it takes too much, most of it where their number is
    odd and small. Up to 21 from :data:`MEDIAN_FACTORS`, beyond by 0.93, which is right to 2 % up to 100.
    """
    return MEDIAN_FACTORS[repetitions - 1] if repetitions <= len(MEDIAN_FACTORS) else 0.93


def redrawn_medians(
    values: npt.ArrayLike, resamples: int, generator: np.random.Generator, *, disagree: bool = False
) -> FloatArray:
    """Replicates of the median of some starts, shape (resamples,), in their unit.

    Each is the median of as many starts, drawn with replacement. How far that is from the mean of all such medians is
    corrected for what the bootstrap of few values over- or underestimates (:func:`median_factor`), and added to the
    median, because the mean lies elsewhere. If the starts ``disagree``, each is a single start instead.
    """
    data = np.asarray(values, dtype=np.float64)
    draws = 1 if disagree else data.size
    drawn = np.median(data[generator.integers(0, data.size, size=(resamples, draws))], axis=1)
    factor = np.sqrt(data.size / max(data.size - 1, 1)) if disagree else median_factor(data.size)
    return np.asarray(np.median(data) + factor * (drawn - drawn.mean()))


def median_interval(
    values: npt.ArrayLike, *, disagree: bool = False, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float, float]:
    """Median of process starts with its interval, see above.

    Args:
        disagree: whether the starts are further apart than their windows explain; the interval then holds all of them.

    Returns:
        Median, lower and upper end. Of a single value all three are that value: one trial says nothing of the spread.

    Raises:
        DataError: there is no value, or one is not finite.
    """
    data = np.asarray(values, dtype=np.float64).ravel()
    if data.size == 0 or not np.isfinite(data).all():
        raise DataError("a median needs one value at least, and all must be finite")
    median = float(np.median(data))
    if data.size == 1:
        return median, median, median
    from scipy.special import stdtrit  # here, so that what only reads tables starts at once

    drawn = redrawn_medians(data, resamples, np.random.default_rng(seed), disagree=disagree)
    half = float(np.std(drawn) * stdtrit(data.size - 1, (1 + level) / 2))
    low, high = median - half, median + half
    return (median, min(low, float(data.min())), max(high, float(data.max()))) if disagree else (median, low, high)


def flags_in(rows: pd.DataFrame) -> set[str]:
    """All quality flags of some rows."""
    cells = [cell for cell in rows["flags"] if isinstance(cell, str)] if "flags" in rows.columns else []
    return {flag.strip() for cell in cells for flag in cell.split(",") if flag.strip()}


def interval_of(accepted: pd.DataFrame) -> tuple[float, float, float]:
    """Median and interval of the accepted rows of one metric of one point, by their values and flags."""
    values = accepted["value"].to_numpy(dtype=np.float64)
    return median_interval(values, disagree=STARTS_DISAGREE in flags_in(accepted))


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


def rows_where(rows: pd.DataFrame, where: Mapping[str, str]) -> pd.DataFrame:
    """The rows at which variables have values that are given as text.

    Raises:
        UsageError: there are none; names the values that there are.
    """
    for name, wanted in where.items():
        same = rows[name].map(lambda value, wanted=wanted: is_at(value, wanted)).astype(bool)
        if not same.any():
            known = ", ".join(map(str, sorted(rows[name].unique().tolist(), key=lambda v: (isinstance(v, str), v))))
            raise UsageError(f"there are no measurements at {name} = {wanted}", hint=f"values of {name}: {known}")
        rows = rows[same]
    return rows


def is_at(value: object, text: str) -> bool:
    """Whether a value is what a text says, as a word or as a number."""
    if str(value) == text:
        return True
    try:
        return float(str(value)) == float(text)
    except ValueError:
        return False


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
        flags, numbers = flags_in(group) | {NO_ACCEPTED}, (float("nan"),) * 3
        if len(accepted):
            flags, numbers = flags_in(accepted), interval_of(accepted)
        record = dict(zip(by, key, strict=True))
        record |= dict(zip(("median", "low", "high"), numbers, strict=True))
        record |= {"unit": unit, "n": len(accepted), "rejected": len(group) - len(accepted)}
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
        disagreeing: abscissae whose repetitions disagree, see :data:`STARTS_DISAGREE`.
    """

    x: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    x_name: str = "x"
    y_name: str = "y"
    y_unit: str = ""
    missing: tuple[float, ...] = ()
    disagreeing: tuple[float, ...] = ()

    def medians(self) -> FloatArray:
        return np.array([np.median(v) for v in self.values])

    def intervals(self, *, level: float = LEVEL) -> FloatArray:
        """Intervals of the medians, shape (n, 2)."""
        points = zip(self.x, self.values, strict=True)
        return np.array([median_interval(v, disagree=x in self.disagreeing, level=level)[1:] for x, v in points])

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
        try:
            xs, ys = np.asarray(x, dtype=np.float64).ravel(), np.asarray(y, dtype=np.float64).ravel()
        except (TypeError, ValueError) as error:
            raise DataError(f"x and y must be numbers: {error}") from error
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
                hint=f"choose values: {' '.join(f'--where {c}={rows[c].iloc[0]}' for c in varied)}",
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
        kept = rows[good].groupby(abscissae[good])
        disagreeing = tuple(float(at) for at, of in kept if STARTS_DISAGREE in flags_in(of))
        return replace(found, missing=tuple(missing), disagreeing=disagreeing)
