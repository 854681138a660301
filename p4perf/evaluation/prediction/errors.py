"""Errors of predictions, relative to what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p4perf.errors import UsageError


def relative_error(predicted: float, measured: float) -> float:
    """``(predicted - measured) / measured``: positive where the prediction is too high."""
    return (predicted - measured) / measured


@dataclass(frozen=True, slots=True)
class PredictionErrors:
    """Errors of several predictions; shares, not per cent.

    Args:
        programs: how many there are.
        median: of the absolute relative errors.
        p90: their 90th percentile.
        largest: of them.
        bias: mean of the signed errors; positive where predictions are too high.
        coverage: share of programs inside of their intervals; None without intervals.
    """

    programs: int
    median: float
    p90: float
    largest: float
    bias: float
    coverage: float | None = None


def prediction_errors(
    predicted: Sequence[float], measured: Sequence[float], intervals: Sequence[tuple[float, float]] | None = None
) -> PredictionErrors:
    """Summarise errors.

    Args:
        predicted: cycles per packet, or any other unit.
        measured: in the same unit and order.
        intervals: of the predictions, lower and upper end.

    Raises:
        UsageError: there are no programs, or the sequences have different lengths.
    """
    if not predicted or len(predicted) != len(measured):
        raise UsageError("errors of predictions need as many predictions as measurements, and one at least")
    errors = np.asarray([relative_error(p, m) for p, m in zip(predicted, measured, strict=True)])
    inside = None
    if intervals is not None:
        inside = float(np.mean([low <= m <= high for (low, high), m in zip(intervals, measured, strict=True)]))
    absolute = np.abs(errors)
    return PredictionErrors(
        programs=len(errors),
        median=float(np.median(absolute)),
        p90=float(np.percentile(absolute, 90)),
        largest=float(absolute.max()),
        bias=float(errors.mean()),
        coverage=inside,
    )
