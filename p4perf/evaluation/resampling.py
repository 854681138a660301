"""Bootstrap replicates of the medians of a sweep."""

from __future__ import annotations

import numpy as np

from p4perf.evaluation.batch import IndexArray
from p4perf.evaluation.statistics import Samples
from p4perf.models.bases import FloatArray
from p4perf.models.fitting import PiecewiseFitting

PRIOR_FREEDOM = 8.0
"""A part's own spread of residuals weighs as its degrees of freedom, that of all parts together as so many."""

MEDIAN_FACTORS = (
    1.0, 1.411, 0.913, 0.933, 0.862, 0.903, 0.873, 0.908, 0.884, 0.911, 0.888, 0.917, 0.897, 0.920, 0.901, 0.923, 0.903,
    0.923, 0.908, 0.926, 0.913,
)  # fmt: skip
"""For 1 to 21 values; see :func:`median_factor`. The weights that resamples give to order statistics are exact, the
covariances of normal order statistics simulated (400,000 samples)."""

SILENCE = 1e-9
"""Where a curve is below this share of the largest sample, a relative residual has no meaning and is zero."""


def resampled(
    samples: Samples, fitting: PiecewiseFitting, resamples: int, generator: np.random.Generator
) -> FloatArray:
    """Replicates of the medians, shape (resamples, n).

    A point with several repetitions gets the median of as many, drawn anew with replacement; how far that is from the
    mean of all such medians is corrected for what the bootstrap of few values over- or underestimates
    (:func:`median_factor`), and added to the median: the mean lies elsewhere, but the curve was fitted to medians. A
    point with one gets its sample plus the curve times a relative residual, drawn from those of all such points.
    Residuals are small where a part has many parameters for its samples, and a few of them say little of their spread:
    so they are taken in units of the spread of their part, which is estimated with its degrees of freedom and drawn
    towards that of all parts.
    """
    medians = samples.medians()
    out = np.empty((resamples, len(samples.x)))
    single = np.array([len(values) == 1 for values in samples.values])
    for index in np.flatnonzero(~single):
        data = np.asarray(samples.values[index])
        drawn = data[generator.integers(0, len(data), size=(resamples, len(data)))]
        redrawn = np.median(drawn, axis=1)
        out[:, index] = medians[index] + median_factor(len(data)) * (redrawn - redrawn.mean())
    if single.any():
        curve = fitting.evaluate(np.asarray(samples.x))[single]
        part = fitting.part_of(np.asarray(samples.x))[single]
        standard, spread = _residuals(medians[single], curve, part, fitting)
        drawn = standard[generator.integers(0, len(standard), size=(resamples, len(standard)))]
        out[:, single] = medians[single] + curve * spread * drawn
    return out


def median_factor(repetitions: int) -> float:
    """Standard deviation of the median of so many normal values over that of its bootstrap (root of the mean variance).

    Of two values the bootstrap takes half the variance; of more it takes too much, most of it where their number is
    odd and small. Up to 21 from :data:`MEDIAN_FACTORS`, beyond by 0.93, which is right to 2 % up to 100.
    """
    return MEDIAN_FACTORS[repetitions - 1] if repetitions <= len(MEDIAN_FACTORS) else 0.93


def _residuals(
    y: FloatArray, curve: FloatArray, part: IndexArray, fitting: PiecewiseFitting
) -> tuple[FloatArray, FloatArray]:
    """Relative residuals in units of the spread of their part, about zero, and that spread at every sample."""
    silent = np.abs(curve) <= SILENCE * np.abs(y).max(initial=0.0)
    relative = np.where(silent, 0.0, (y - curve) / np.where(silent, 1.0, curve))
    squares = np.array([np.sum(relative[part == k] ** 2) for k in range(len(fitting.parts))])
    points = np.array([np.sum(part == k) for k in range(len(fitting.parts))])
    parameters = np.array([len(p.parameters) for p in fitting.parts])
    freedom = np.maximum(points - parameters, 0.5)
    pooled = squares.sum() / max(freedom.sum(), 1.0)
    variance = (squares + PRIOR_FREEDOM * pooled) / (freedom + PRIOR_FREEDOM)
    own = np.sqrt(np.where(points > 0, squares / np.maximum(points, 1), 1.0))
    standard = relative / np.where(own[part] > 0, own[part], 1.0)
    return standard - standard.mean(), np.sqrt(variance)[part]
