"""Fitting the two laws of an operator to its medians: the power law in two ways, and the line."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize_scalar

from p4perf.models.bases import FloatArray
from p4perf.models.operator import BASE_SIZE_BYTES, AffineLaw, Better, PowerLaw

EXPONENT_REACH = 8.0
"""Least squares look for k no farther than this from the k of the logarithms."""

CLEARLY = 1.25
"""One law is better than the other if the error of the other is so many times larger."""

NEGLIGIBLE = 0.02
"""Errors of both laws that are below this share of the cost decide nothing: a constant is both."""


def slopes(sizes: FloatArray) -> FloatArray:
    """Weights w with ``k = sum(w_i ln C_i)``: the regression of ``ln C`` on ``ln s``, shape (n,)."""
    x = np.log(sizes)
    centred = x - x.mean()
    return np.asarray(centred / np.sum(centred**2))


def logarithmic(sizes: FloatArray, cycles: FloatArray) -> tuple[FloatArray, FloatArray]:
    """C(64) and k by ordinary least squares on logarithms.

    Args:
        sizes: bytes, shape (n,), two at least.
        cycles: positive costs, shape (..., n).

    Returns:
        C(64) and k, each of shape (...).
    """
    logs = np.log(cycles)
    k = logs @ slopes(sizes)
    base = np.exp(logs.mean(axis=-1) - k * (np.log(sizes / BASE_SIZE_BYTES)).mean())
    return np.asarray(base), np.asarray(k)


def power_by_logarithms(sizes: FloatArray, cycles: FloatArray) -> PowerLaw:
    """The power law whose logarithm is nearest to the logarithms of the costs."""
    base, k = logarithmic(sizes, cycles)
    return PowerLaw(float(base), float(k))


def power_by_squares(sizes: FloatArray, cycles: FloatArray) -> PowerLaw:
    """The power law with the least sum of squares in cycles; large packets weigh most.

    For a given k the best C(64) is known, so only k is searched.
    """
    u = sizes / BASE_SIZE_BYTES
    start = power_by_logarithms(sizes, cycles).exponent

    def base(k: float) -> float:
        shape = u**k
        return float(cycles @ shape / (shape @ shape))

    def squares(k: float) -> float:
        return float(np.sum((cycles - base(k) * u**k) ** 2))

    found = minimize_scalar(
        squares, bounds=(start - EXPONENT_REACH, start + EXPONENT_REACH), method="bounded", options={"xatol": 1e-9}
    )
    k = float(found.x) if squares(float(found.x)) < squares(start) else start
    return PowerLaw(base(k), k)


def affine(sizes: FloatArray, cycles: FloatArray) -> AffineLaw:
    """The line with the least sum of squared relative residuals, so that every size weighs the same."""
    columns = np.stack([1 / cycles, sizes / cycles], axis=1)
    (fixed, per_byte), *_ = np.linalg.lstsq(columns, np.ones(len(sizes)), rcond=None)
    return AffineLaw(float(fixed), float(per_byte))


def r_squared(observed: FloatArray, predicted: FloatArray) -> float | None:
    """Share of the scatter over sizes that a law explains; None where there is no scatter at all."""
    total = float(np.sum((observed - observed.mean()) ** 2))
    if total <= 1e-24 * float(np.sum(observed**2)):
        return None
    return 1 - float(np.sum((observed - predicted) ** 2)) / total


def log_error(cycles: FloatArray, predicted: FloatArray) -> float:
    """Root mean square of ``ln(C / law)``; infinite where the law is not positive."""
    if not bool((predicted > 0).all()):
        return math.inf
    return float(np.sqrt(np.mean(np.log(cycles / predicted) ** 2)))


def better_law(error_power: float, error_affine: float, sizes: int, noise: float) -> Better:
    """Which law is nearer; both have two parameters, so their errors compare as they are.

    Args:
        error_power: of the power law, as :func:`log_error`.
        error_affine: of the line.
        sizes: number of sizes; with two, both laws go through them.
        noise: standard error of the logarithm of a median; what is smaller than that decides nothing.
    """
    worse = max(error_power, error_affine)
    if sizes < 3 or worse <= max(noise, NEGLIGIBLE) or worse <= CLEARLY * min(error_power, error_affine):
        return "undecided"
    return "power" if error_power < error_affine else "affine"
