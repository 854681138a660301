"""Parameters of CESim from measured pairs of hit ratio and throughput."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from p4perf.errors import DataError
from p4perf.models.bases import FloatArray
from p4perf.models.cesim import CacheModel

MAX_ALPHA = 0.999
MIN_POWER, MAX_POWER = -3.0, 6.0
"""Bounds of log10(beta - 1)."""

AT_BOUND = 1e-4
"""A parameter that is so near to a bound, as a share of its range, was not determined."""

_ROUNDS = 11
_STEPS = 11
_SHRINK = 0.3


@dataclass(frozen=True, slots=True)
class CacheFit:
    """A fitted model.

    Args:
        model: with the alpha found, and the accesses per packet that make the beta found.
        rms_log_error: root of the mean square of ln(model / measured).
        n: pairs that were fitted.
        at_bounds: parameters that ended at a bound of their search, which the data do not determine.
    """

    model: CacheModel
    rms_log_error: float
    n: int
    at_bounds: tuple[str, ...]

    @property
    def beta(self) -> float:
        """Acceleration by overlap."""
        return self.model.beta

    @property
    def factor(self) -> float:
        """The error as a factor: the model is off by this much."""
        return math.exp(self.rms_log_error)


def log_error(model: CacheModel, hit_ratio: npt.ArrayLike, throughput_mpps: npt.ArrayLike) -> float:
    """Root of the mean square of ln(model / measured)."""
    measured = np.asarray(throughput_mpps, dtype=float)
    return float(np.sqrt(np.mean(np.log(model.throughput_mpps(hit_ratio) / measured) ** 2)))


def fit_cache_model(
    hit_ratio: npt.ArrayLike, throughput_mpps: npt.ArrayLike, start: CacheModel, *, fit_beta: bool = True
) -> CacheFit:
    """Find alpha, and beta with it, so that the squares of log errors are least.

    The best throughput, the caches, the variant and the revision are those of ``start``. With ``fit_beta`` the accesses
    per packet follow from beta (N0 = beta N), else they are those of ``start``. The search is deterministic: the best
    beta for every alpha, and the best alpha of these, each by a grid that contracts around its best point.

    Args:
        hit_ratio: hit ratios of L1, 0 to 1.
        throughput_mpps: throughput measured at each, in Mpps.
        start: what stays.
        fit_beta: whether beta is free.

    Raises:
        DataError: not as many values of both, fewer than three pairs or than two hit ratios, or values that are no
            ratios or not positive.
    """
    r, measured = np.asarray(hit_ratio, dtype=float), np.asarray(throughput_mpps, dtype=float)
    if r.ndim != 1 or r.shape != measured.shape:
        raise DataError("as many hit ratios as throughputs are needed")
    if r.size < 3 or len(np.unique(r)) < 2:
        raise DataError(f"a fit needs three pairs with two hit ratios at least, there are {r.size}")
    if not (np.all((r >= 0) & (r <= 1)) and np.all(np.isfinite(measured)) and np.all(measured > 0)):
        raise DataError("hit ratios have to be 0 to 1, and throughputs above 0")
    search = _Search(r, measured, start, fit_beta)
    alpha, _, chosen = _contracted(search.over_beta, 0.0, MAX_ALPHA)
    if chosen is None:
        raise DataError("no alpha goes with so few accesses per packet", hint="start from a model with more of them")
    bounds = {"alpha": (alpha, 0.0, MAX_ALPHA)}
    if fit_beta:
        bounds["beta"] = (math.log10(chosen.beta - 1), MIN_POWER, MAX_POWER)
    at_bounds = tuple(
        name for name, (at, low, high) in bounds.items() if min(at - low, high - at) < AT_BOUND * (high - low)
    )
    return CacheFit(chosen, log_error(chosen, r, measured), int(r.size), at_bounds)


class _Search:
    """Errors over alpha, and over beta at an alpha."""

    def __init__(self, r: FloatArray, measured: FloatArray, start: CacheModel, fit_beta: bool) -> None:
        self._r, self._logs, self._start, self._fit_beta = r, np.log(measured), start, fit_beta

    def over_beta(self, alpha: float) -> tuple[float, CacheModel | None]:
        """The least error at an alpha, and its model."""
        if not self._fit_beta:
            return self._error(_with(self._start, alpha, None))
        _, error, model = _contracted(
            lambda power: self._error(_with(self._start, alpha, 1 + 10.0**power)), MIN_POWER, MAX_POWER
        )
        return error, model

    def _error(self, model: CacheModel | None) -> tuple[float, CacheModel | None]:
        if model is None:
            return math.inf, None
        distance = np.log(model.throughput_mpps(self._r)) - self._logs
        return float(distance @ distance), model


def _contracted(
    error_at: Callable[[float], tuple[float, CacheModel | None]], low: float, high: float
) -> tuple[float, float, CacheModel | None]:
    """Where an error is least, the error, and its model: a grid that contracts around its best point."""
    lowest, highest = low, high
    best: tuple[float, float, CacheModel | None] = (low, math.inf, None)
    for _ in range(_ROUNDS):
        for at in np.linspace(low, high, _STEPS):
            error, model = error_at(float(at))
            if error < best[1]:
                best = float(at), error, model
        half = _SHRINK * (high - low) / 2
        low, high = max(best[0] - half, lowest), min(best[0] + half, highest)
    return best


def _with(start: CacheModel, alpha: float, beta: float | None) -> CacheModel | None:
    """The model with another alpha and beta; None if its accesses would be too few for that alpha."""
    serial = (1 - alpha) * start.packet_ns / start.hierarchy.l1_ns
    accesses = start.accesses_per_packet if beta is None else beta * serial
    return replace(start, alpha=alpha, accesses_per_packet=accesses) if accesses >= serial else None
