"""Error metrics: how far a curve is from its samples, as one number.

The error of a piecewise curve is the mean of the errors of its segments weighted by their numbers of samples. For means
over samples (sMAPE, MAPE) that is the metric of the whole curve; for the others it is a definition, chosen because it
adds up over segments: only then are the best breakpoints found by dynamic programming, without trying all combinations.

Another package adds a metric with an entry point of the group ``p4perf.error_metrics`` that names an
:class:`ErrorMetric` of the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from p4perf.errors import DataError, UsageError
from p4perf.models.notation import number
from p4perf.models.templates import FloatArray
from p4perf.plugins import load_plugin, plugin_names

GROUP = "p4perf.error_metrics"
MaskArray = npt.NDArray[np.bool_]
Compute = Callable[..., FloatArray]


@dataclass(frozen=True)
class ErrorMetric:
    """A metric and what a margin of it means.

    Args:
        compute: maps abscissae x, samples y, curve values f and a mask to one error per row: the last axis is reduced,
            rows are independent of each other. All four have the same shape. Each row ascends in x; the mask is false
            on the padding at its end, which must not count whatever it holds. An error is zero for the best and grows;
            NaN where it is not defined, or where f is not finite.
        relative: whether the metric is a ratio; else it has the unit of y, and margins are taken as fractions of the
            root mean square of y.
        floored: whether ``compute`` takes a keyword ``floor``.
        floor: size below which samples count as this large, in the unit of y: they are nearer to zero than they are
            known (:mod:`p4perf.evaluation.fitting.noise`).
        masses: whether samples are masses or counts over bins x: none negative, and not all zero.
    """

    name: str
    title: str
    compute: Compute
    relative: bool = True
    masses: bool = False
    floored: bool = False
    floor: float = 0.0

    def __call__(self, y: npt.ArrayLike, f: npt.ArrayLike, x: npt.ArrayLike | None = None) -> float:
        """Error of the values f against the samples y; metrics of distributions look at x, by default 0, 1, ..."""
        a, b = np.asarray(y, dtype=np.float64), np.asarray(f, dtype=np.float64)
        at = np.arange(a.size, dtype=np.float64) if x is None else np.asarray(x, dtype=np.float64)
        self.check(a)
        return float(self.errors(at, a, b, np.ones(a.shape, dtype=np.bool_)))

    def errors(self, x: FloatArray, y: FloatArray, f: FloatArray, mask: MaskArray) -> FloatArray:
        """Errors of many rows, with the floor; arguments as of ``compute``."""
        return self.compute(x, y, f, mask, floor=self.floor) if self.floored else self.compute(x, y, f, mask)

    def at_least(self, floor: float) -> ErrorMetric:
        """The same metric with a floor, if it takes one."""
        return replace(self, floor=floor) if self.floored else self

    def scale(self, y: FloatArray) -> float:
        """Unit of margins: 1 for ratios, else the root mean square of y."""
        return 1.0 if self.relative else float(np.sqrt(np.mean(y * y)))

    def check(self, y: FloatArray) -> None:
        """See whether this metric can judge such samples at all.

        Raises:
            DataError: it compares distributions, and a sample is negative or all are zero.
        """
        if not self.masses:
            return
        negative = np.flatnonzero(y < 0)
        if negative.size:
            at = int(negative[0])
            raise DataError(
                f"sample {at} is {y[at]:g}: the error metric {self.name} compares distributions, "
                "and a mass cannot be negative",
                hint="take smape or rmse for samples that are no distribution",
            )
        if not y.any():
            raise DataError(f"all samples are zero: the error metric {self.name} has no distribution to compare")


def _mean(values: FloatArray, mask: MaskArray) -> FloatArray:
    total: FloatArray = np.where(mask, values, 0.0).sum(axis=-1) / np.maximum(mask.sum(axis=-1), 1)
    return total


def _smape(x: FloatArray, y: FloatArray, f: FloatArray, mask: MaskArray, floor: float = 0.0) -> FloatArray:
    with np.errstate(all="ignore"):
        whole = np.maximum(np.abs(f) + np.abs(y), 2 * floor)
        return _mean(np.where(whole > 0, np.abs(f - y) / whole, np.where(whole == 0, 0.0, np.nan)), mask)


def _smape_pooled(x: FloatArray, y: FloatArray, f: FloatArray, mask: MaskArray) -> FloatArray:
    with np.errstate(all="ignore"):
        off, whole = _mean(np.abs(f - y), mask), _mean(np.abs(f) + np.abs(y), mask)
        return np.where(whole > 0, off / whole, np.where(whole == 0, 0.0, np.nan))


def _mape(x: FloatArray, y: FloatArray, f: FloatArray, mask: MaskArray) -> FloatArray:
    with np.errstate(all="ignore"):
        off = np.abs(f - y)
        return _mean(np.where(off == 0, 0.0, off / np.abs(y)), mask)


def _rmse(x: FloatArray, y: FloatArray, f: FloatArray, mask: MaskArray) -> FloatArray:
    with np.errstate(all="ignore"):
        root: FloatArray = np.sqrt(_mean((f - y) ** 2, mask))
    return root


def _emd(x: FloatArray, y: FloatArray, f: FloatArray, mask: MaskArray) -> FloatArray:
    have, want = np.where(mask, y, 0.0), np.where(mask, f, 0.0)
    widths = np.where(mask[..., 1:], np.diff(x, axis=-1), 0.0)
    with np.errstate(all="ignore"):
        total_have, total_want = have.sum(axis=-1), want.sum(axis=-1)
        shares = have / total_have[..., None] - want / total_want[..., None]
        carried = np.abs(np.cumsum(shares, axis=-1)[..., :-1])
        span = widths.sum(axis=-1)
        way = np.where(span > 0, (carried * widths).sum(axis=-1) / span, 0.0)
    one_is_empty = np.where((total_have == 0) & (total_want == 0), 0.0, 1.0)
    error = np.where((total_have > 0) & (total_want > 0), way, one_is_empty)
    valid = (have >= 0).all(axis=-1) & (want >= 0).all(axis=-1) & np.isfinite(total_want)
    return np.where(valid, error, np.nan)


SMAPE = ErrorMetric("smape", "sMAPE", _smape, floored=True)
"""Mean of ``|f - y| / max(|f| + |y|, 2 floor)``, with 0/0 as 0. Without a floor that is Eq. 1 of Scholz et al. 2021,
divided by the number of samples.

The sum as printed there grows with the number of samples and could not be compared between segments. A relative error
of 1 % is a sMAPE of about 0.5 %."""
SMAPE_POOLED = ErrorMetric("smape_pooled", "pooled sMAPE", _smape_pooled)
"""``sum |f - y| / sum (|f| + |y|)``, with 0/0 as 0: how the published code of Scholz et al. 2021 computes its sMAPE.

Samples count by their size: where y spans decades, only the largest matter. The ratio does not add up over segments,
since each has its own denominator; a combined curve takes the mean of the ratios of its segments, weighted by their
numbers of samples, as that code does. It differs from the ratio over all samples, which large segments would decide
alone."""
MAPE = ErrorMetric("mape", "MAPE", _mape)
"""Mean of ``|f - y| / |y|``; infinite where y is 0 and f is not."""
RMSE = ErrorMetric("rmse", "RMSE", _rmse, relative=False)
"""Root of the mean of ``(f - y)^2``, in the unit of y; of several segments, the weighted mean of theirs."""
EMD = ErrorMetric("emd", "EMD", _emd, masses=True)
"""Earth mover's distance (Rubner, Tomasi and Guibas 1998) as a fraction of the span of x: 1 % means that on average
each unit of mass has to be moved by 1 % of the span to make one distribution from the other.

For samples that are masses or counts over ordered bins x, such as a histogram of latencies. In one dimension the
distance has a closed form: with both sides normalised to a mass of one, the sum of ``|F_y - F_f|`` of the cumulated
masses times the distance to the next bin. Divided by the span it has no unit, lies between 0 and 1 and can be compared
between segments; each segment is normalised by itself. Normalising makes it blind to a common factor: that the curve
has the right size is left to the least squares that fitted it. Curves with a negative value are no distributions (NaN,
never chosen); samples with one are refused by :meth:`ErrorMetric.check`. If just one side has no mass the error is
1."""


def error_metric(name: str) -> ErrorMetric:
    """The metric of that name, ours or another package's.

    Raises:
        UsageError: there is none, or what another package registered is no metric of that name.
    """
    metric = load_plugin(GROUP, name)
    if not isinstance(metric, ErrorMetric) or metric.name != name:
        message = f"the entry point {name!r} of {GROUP} names {metric!r}, not an error metric {name!r}"
        raise UsageError(message, hint="the package that provides it needs a fix")
    return metric


def registered_metrics() -> tuple[ErrorMetric, ...]:
    return tuple(error_metric(name) for name in plugin_names(GROUP))


def error_text(name: str, error: float, digits: int = 3) -> str:
    """An error with the title of its metric, such as ``sMAPE 0.42 %``; in the unit of y if the metric has it.

    The metric may be unknown here, in a model that came from elsewhere: its name stands then, without a unit.
    """
    if name not in plugin_names(GROUP):
        return f"{name} {number(error, digits)}"
    metric = error_metric(name)
    if not metric.relative:
        return f"{metric.title} {number(error, digits)}"
    percent = 100 * error
    return f"{metric.title} {'< 0.0001' if 0 < percent < 1e-4 else number(percent, digits)} %"
