"""Information criteria: is a better fit worth its parameters? Of several curves for the same samples, the lowest wins.

Each is minus twice the logarithm of a likelihood plus a penalty for the number of free parameters. Values have no
meaning by themselves; differences between curves for the same samples do.

The number of free parameters ``m`` counts the parameters of all parts and two for every split: its place, and that it
is there at all.

Two likelihoods are in use:

- Errors with a Laplace distribution, whose likelihood depends on the mean absolute error, here the error metric itself
  (theta): :func:`l1_bic`. It is robust against outliers, and is what chooses the number of parts.
- Independent Gaussian errors: AIC, AICc and BIC. For relative metrics with a standard deviation proportional to the
  curve, ``y_i ~ N(f_i, (c |f_i|)^2)`` (a constant coefficient of variation c); for metrics in the unit of y, and for
  masses, with a constant one, ``y_i ~ N(f_i, s^2)``. The estimate of c or s is one more parameter, so ``K = m + 1``.
  With the maximum-likelihood estimates, ``s^2 = mean (y_i - f_i)^2`` and ``c^2 = mean ((y_i - f_i) / f_i)^2``,

      -2 ln L = n ln(2 pi s^2) + n                          constant standard deviation
      -2 ln L = n ln(2 pi c^2) + n + 2 sum ln |f_i|         constant coefficient of variation
      AIC     = -2 ln L + 2 K                               Akaike 1974
      AICc    = AIC + 2 K (K + 1) / (n - K - 1)             Hurvich and Tsai 1989
      BIC     = -2 ln L + K ln n                            Schwarz 1978

The curves were fitted by least squares and chosen by the error metric, not by either likelihood, so the values are not
quite the smallest that their parameters could give. AIC and AICc tend to more parts than there are: their penalty does
not know that the places of the splits were searched for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p4perf.errors import DataError
from p4perf.evaluation.error_metrics import ErrorMetric
from p4perf.models.bases import FloatArray
from p4perf.models.fitting import PiecewiseFitting

ERROR_FLOOR = 1e-6
"""Relative errors below one in a million are all the same when the number of parts is chosen."""
TINY = 1e-300


@dataclass(frozen=True)
class Criteria:
    """The criteria of one curve; infinite where the samples are too few for its parameters.

    Args:
        l1_bic: see :func:`l1_bic`; needs two samples more than free parameters.
        aic: Akaike's criterion; needs one sample more than free parameters.
        aicc: AIC corrected for few samples; needs three more.
        bic: Schwarz's criterion; needs one more.
    """

    l1_bic: float
    aic: float
    aicc: float
    bic: float


def criteria(fitting: PiecewiseFitting, x: npt.ArrayLike, y: npt.ArrayLike, metric: ErrorMetric) -> Criteria:
    """All criteria of a curve.

    Args:
        fitting: the curve.
        x: abscissae of the samples that it was fitted to.
        y: these samples.
        metric: error metric of the fitting; it decides which Gaussian likelihood is taken.

    Raises:
        DataError: x and y differ in length, or are not as many as the curve was fitted to.
    """
    at, samples = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    n = fitting.points
    if at.shape != (n,) or samples.shape != (n,):
        raise DataError(f"the curve was fitted to {n} samples, not to {at.size} abscissae and {samples.size} samples")
    m = free_parameters(fitting)
    k = m + 1
    aic = aicc = bic = math.inf
    if n > m:
        deviance = _deviance(samples, fitting.evaluate(at), proportional=metric.relative and not metric.masses)
        aic, bic = deviance + 2 * k, deviance + k * math.log(n)
    if n > k + 1:
        aicc = aic + 2 * k * (k + 1) / (n - k - 1)
    return Criteria(l1_bic(fitting, metric, samples), aic, aicc, bic)


def free_parameters(fitting: PiecewiseFitting) -> int:
    """Parameters of all parts, and two for every split."""
    return fitting.free_parameters + 2 * len(fitting.splits)


def l1_bic(fitting: PiecewiseFitting, metric: ErrorMetric, y: FloatArray) -> float:
    """Criterion by which the number of parts is chosen: ``2 n ln(theta) + m ln(n) n / (n - m - 1)``.

    It is the Bayesian information criterion (Schwarz 1978) for errors with a Laplace distribution, whose likelihood
    depends on the mean absolute error theta. The factor ``n / (n - m - 1)`` is what the correction of Hurvich and Tsai
    1989 makes of the penalty of AIC (McQuarrie 1999 gives the like for BIC); it matters for few samples only: without
    it, seven samples and six parameters would look like a discovery.

    Args:
        fitting: the curve with its error theta.
        metric: its error metric.
        y: the samples; they give the unit in which an error is negligible (:data:`ERROR_FLOOR`).

    Returns:
        The criterion; infinite if there are not two samples more than free parameters.
    """
    n, m = fitting.points, free_parameters(fitting)
    if n <= m + 1:
        return math.inf
    theta = max(fitting.error, ERROR_FLOOR * metric.scale(y), TINY)
    return 2 * n * math.log(theta) + m * math.log(n) * n / (n - m - 1)


def _deviance(y: FloatArray, f: FloatArray, *, proportional: bool) -> float:
    """Minus twice the logarithm of the Gaussian likelihood, with the spread floored.

    Where the curve is (almost) zero, its value is replaced by a millionth of the largest sample: a spread of zero would
    make a single sample infinitely likely or unlikely.
    """
    largest = float(np.abs(y).max())
    size = np.maximum(np.abs(f), max(ERROR_FLOOR * largest, TINY)) if proportional else np.ones_like(f)
    floor = ERROR_FLOOR if proportional else max(ERROR_FLOOR * float(np.sqrt(np.mean(y * y))), TINY)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = max(float(np.sqrt(np.mean(((y - f) / size) ** 2))), floor)
    if not math.isfinite(spread):
        return math.inf
    return len(y) * (math.log(2 * math.pi) + 2 * math.log(spread) + 1) + 2 * float(np.log(size).sum())
