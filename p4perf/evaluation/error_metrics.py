"""Error metrics: how far a curve is from its samples, as one number.

All metrics here are means over samples (RMSE excepted), so that the error of a piecewise curve is the mean of the
errors of its parts weighted by their numbers of samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p4perf.errors import UsageError
from p4perf.models.bases import FloatArray

MaskArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ErrorMetric:
    """A metric and what a margin of it means.

    Args:
        name: name in specs and files.
        title: name for people.
        compute: maps samples y, curve values f and a mask of the same shape to one error per row (last axis reduced).
        relative: whether the metric is a ratio; else it has the unit of y, and margins are taken as fractions of the
            root mean square of y.
    """

    name: str
    title: str
    compute: Callable[[FloatArray, FloatArray, MaskArray], FloatArray]
    relative: bool = True

    def __call__(self, y: npt.ArrayLike, f: npt.ArrayLike) -> float:
        """Error of the values f against the samples y."""
        a, b = np.asarray(y, dtype=np.float64), np.asarray(f, dtype=np.float64)
        return float(self.compute(a, b, np.ones(a.shape, dtype=np.bool_)))

    def scale(self, y: FloatArray) -> float:
        """Unit of margins: 1 for ratios, else the root mean square of y."""
        return 1.0 if self.relative else float(np.sqrt(np.mean(y * y)))


def _mean(values: FloatArray, mask: MaskArray) -> FloatArray:
    total: FloatArray = np.where(mask, values, 0.0).sum(axis=-1) / np.maximum(mask.sum(axis=-1), 1)
    return total


def _smape(y: FloatArray, f: FloatArray, mask: MaskArray) -> FloatArray:
    with np.errstate(all="ignore"):
        whole = np.abs(f) + np.abs(y)
        return _mean(np.where(whole > 0, np.abs(f - y) / whole, np.where(whole == 0, 0.0, np.nan)), mask)


def _mape(y: FloatArray, f: FloatArray, mask: MaskArray) -> FloatArray:
    with np.errstate(all="ignore"):
        off = np.abs(f - y)
        return _mean(np.where(off == 0, 0.0, off / np.abs(y)), mask)


def _rmse(y: FloatArray, f: FloatArray, mask: MaskArray) -> FloatArray:
    with np.errstate(all="ignore"):
        root: FloatArray = np.sqrt(_mean((f - y) ** 2, mask))
    return root


SMAPE = ErrorMetric("smape", "sMAPE", _smape)
"""Mean of ``|f - y| / (|f| + |y|)``, with 0/0 as 0: Eq. 1 of Scholz et al. 2021 divided by the number of samples.

The sum as printed there grows with the number of samples and could not be compared between parts. A relative error
of 1 % is a sMAPE of about 0.5 %."""
MAPE = ErrorMetric("mape", "MAPE", _mape)
"""Mean of ``|f - y| / |y|``; infinite where y is 0 and f is not."""
RMSE = ErrorMetric("rmse", "RMSE", _rmse, relative=False)
"""Root of the mean of ``(f - y)^2``, in the unit of y; of several parts, the weighted mean of theirs."""

METRICS = {metric.name: metric for metric in (SMAPE, MAPE, RMSE)}


def error_metric(name: str) -> ErrorMetric:
    """The metric of that name.

    Raises:
        UsageError: there is none.
    """
    if name not in METRICS:
        raise UsageError(f"there is no error metric {name!r}", hint=f"known: {', '.join(METRICS)}")
    return METRICS[name]
