"""How uncertain medians of few repetitions are, and what is calculated from them.

Medians are redrawn by the bootstrap; what it over- or underestimates with few repetitions is corrected
(:func:`p4perf.evaluation.resampling.median_factor`). Intervals are the standard deviation of the redrawn values times
the quantile of t (Efron and Tibshirani 1993, chapter 12): percentiles of three repetitions cover too little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from p4perf.evaluation.resampling import median_factor
from p4perf.models.bases import FloatArray


@dataclass(frozen=True)
class Known:
    """A number with its interval; both ends are None if nothing is known of the scatter."""

    value: float
    low: float | None = None
    high: float | None = None

    def holds(self, value: float) -> bool | None:
        """Whether a value lies in the interval; None without one."""
        return None if self.low is None or self.high is None else self.low <= value <= self.high


def redrawn_medians(values: Sequence[float], resamples: int, generator: np.random.Generator) -> FloatArray:
    """Replicates of the median of repetitions, shape (resamples,), in their unit.

    Args:
        values: two repetitions at least.
        resamples: number of replicates.
        generator: where chance comes from.
    """
    data = np.asarray(values, dtype=np.float64)
    drawn = np.median(data[generator.integers(0, data.size, size=(resamples, data.size))], axis=1)
    return np.asarray(np.median(data) + median_factor(data.size) * (drawn - drawn.mean()))


def freedom(variances: Sequence[float], freedoms: Sequence[float]) -> float:
    """Degrees of freedom of a sum of estimates with these variances and degrees of freedom (Satterthwaite 1946)."""
    v, f = np.asarray(variances, dtype=np.float64), np.asarray(freedoms, dtype=np.float64)
    squares = float(np.sum(v**2 / f))
    return float(v.sum()) ** 2 / squares if squares > 0 else float(f.sum())


def interval(value: float, variance: float, degrees: float, level: float) -> Known:
    """The interval of a value whose estimate has that variance."""
    half = float(np.sqrt(variance) * stdtrit(degrees, (1 + level) / 2))
    return Known(value, value - half, value + half)
