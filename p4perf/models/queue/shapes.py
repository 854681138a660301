"""Distributions by name: those of Gebert et al. (2016), processes as network engineers know them, and data.

Means are in steps of the lattice. The paper calls three interarrival distributions by names that are easily taken for
something else. Its "Poisson" has the *interarrival time* distributed with a Poisson pmf, which is nearly constant; it
is :func:`poisson_pmf` here. A Poisson process has exponential interarrival times: :func:`exponential`. Its "negative
binomial" has a standard deviation equal to its mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special

from p4perf.errors import UsageError
from p4perf.models.queue.lattice import MAX_STEPS, TAIL, FloatArray, Lattice

COARSE = 0.5
"""A mean below so many steps cannot be told from zero: the lattice is too coarse."""


def deterministic(mean: float) -> Lattice:
    """A constant time. One that is no whole number of steps is split between its neighbours, so that its mean stays."""
    _check_mean(mean)
    return from_samples(np.array([mean]))


def poisson_pmf(mean: float) -> Lattice:
    """Poisson pmf, CV = 1 / sqrt(mean): "pois" of the paper. Not a Poisson process, see :func:`exponential`."""
    from scipy import stats  # slow to load, and seldom needed

    _check_mean(mean)
    return _cut(lambda k: stats.poisson.pmf(k, mean), mean + 12 * math.sqrt(mean) + 60, 0)


def geometric(mean: float) -> Lattice:
    """Geometric on 1, 2, ..., CV = sqrt(1 - 1 / mean): "geo". It is the only one without memory on the lattice.

    Raises:
        UsageError: the mean is less than one step.
    """
    _check_mean(mean)
    if mean < 1:
        raise UsageError(f"a geometric time has a mean of 1 step at least, not {mean:g}", hint="take a finer lattice")
    if mean == 1:
        return Lattice(np.ones(1), 1)
    p = 1 / mean
    return _cut(lambda k: p * np.exp((k - 1) * math.log1p(-p)), 1 + math.log(TAIL) / math.log1p(-p), 1)


def negative_binomial(mean: float) -> Lattice:
    """Negative binomial on 0, 1, ... whose standard deviation is its mean: "nbin", p = 1/mean, r = mean/(mean - 1).

    Raises:
        UsageError: the mean is not more than one step.
    """
    _check_mean(mean)
    if mean <= 1:
        raise UsageError(
            f"a negative binomial time with CV 1 has a mean of more than 1 step, not {mean:g}",
            hint="take a finer lattice",
        )
    from scipy import stats  # slow to load, and seldom needed

    p, r = 1 / mean, mean / (mean - 1)
    return _cut(lambda k: stats.nbinom.pmf(k, r, p), -1.2 * mean * math.log(TAIL) + 60, 0)


def exponential(mean: float) -> Lattice:
    """Exponential interarrival times, those of a Poisson process, put on the lattice with their mean preserved.

    Rounding to the lattice shifts the mean by up to half a step, which is much at high loads: near a load of one, times
    that are rounded up or down give delays that are off by tens of per cent. See :func:`discretise`.
    """
    _check_mean(mean)
    return discretise(lambda t: mean * np.exp(-t / mean), -mean * math.log(TAIL))


def gamma(mean: float, cv: float) -> Lattice:
    """Gamma distribution with that mean and coefficient of variation, on the lattice with its mean preserved.

    Raises:
        UsageError: the coefficient of variation is negative.
    """
    _check_mean(mean)
    if not 0 <= cv < math.inf:
        raise UsageError(f"a coefficient of variation is zero or more, not {cv:g}")
    if cv == 0:
        return deterministic(mean)
    shape, scale = 1 / cv**2, mean * cv**2

    def excess(t: FloatArray) -> FloatArray:
        return np.asarray(
            mean * special.gammaincc(shape + 1, t / scale) - t * special.gammaincc(shape, t / scale), dtype=np.float64
        )

    return discretise(excess, mean + 12 * cv * mean - 1.2 * scale * math.log(TAIL))


def discretise(excess: Callable[[FloatArray], FloatArray], end: float) -> Lattice:
    """A continuous time on the lattice, each moment shared between its two neighbours so that the mean stays exact.

    With J(t) = E[max(T - t, 0)], the probability of k steps is J(k-1) - 2 J(k) + J(k+1), that of none
    1 - J(0) + J(1). The variance grows by a quarter of a step squared at most.

    Args:
        excess: J(t), for t >= 0 [steps].
        end: time beyond which the tail is negligible [steps].

    Raises:
        UsageError: it is longer than the longest support, or has no mass.
    """
    count = _length(end) + 2
    at = np.asarray(excess(np.arange(count + 1, dtype=np.float64)), dtype=np.float64)
    out = np.empty(count)
    out[0] = 1.0 - at[0] + at[1]
    out[1:] = at[2:] - 2 * at[1:-1] + at[:-2]
    return _normalised(np.maximum(out, 0.0), 0)


def from_pmf(values: npt.ArrayLike, probabilities: npt.ArrayLike) -> Lattice:
    """A distribution whose times are whole numbers of steps.

    Args:
        values: times [steps].
        probabilities: theirs; they sum to one.

    Raises:
        UsageError: a time is negative, not whole or there twice, or the probabilities are none.
    """
    at = np.asarray(values, dtype=np.float64).ravel()
    given = np.asarray(probabilities, dtype=np.float64).ravel()
    if at.size != given.size or not at.size:
        raise UsageError(f"there are {at.size} times but {given.size} probabilities")
    _check_times(at)
    if (at != np.rint(at)).any():
        raise UsageError(f"{at[at != np.rint(at)][0]:g} is no whole number of steps", hint="take a finer lattice")
    if np.unique(at).size != at.size:
        raise UsageError("a time is there twice")
    out = np.zeros(_length(float(at.max())) + 1)
    out[at.astype(np.int64)] = given
    return Lattice(out)


def from_samples(values: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Lattice:
    """The distribution of data: measured times, or the times and counts of a histogram.

    A time between two points of the lattice is shared between them so that the mean stays exact.

    Args:
        values: times [steps], whole or not.
        weights: how often each was seen; once by default.

    Raises:
        UsageError: a time is negative or not finite, or there is none.
    """
    at = np.asarray(values, dtype=np.float64).ravel()
    count = np.ones(at.size) if weights is None else np.asarray(weights, dtype=np.float64).ravel()
    if at.size != count.size or not at.size:
        raise UsageError(f"there are {at.size} times but {count.size} counts")
    if not np.isfinite(count).all() or (count < 0).any() or not count.sum() > 0:
        raise UsageError("how often a time was seen is negative, not finite, or never")
    _check_times(at)
    near = np.rint(at)
    at = np.where(np.abs(at - near) < 1e-9 * np.maximum(near, 1.0), near, at)
    below = np.floor(at)
    share = at - below
    out = np.zeros(_length(float(at.max())) + 2)
    np.add.at(out, below.astype(np.int64), count * (1 - share))
    np.add.at(out, below.astype(np.int64) + 1, count * share)
    return _normalised(out, 0)


def check_lattice(mean: float, what: str) -> None:
    """Refuse a lattice that is too coarse for a mean [steps].

    Raises:
        UsageError: the mean is below half a step.
    """
    if 0 < mean < COARSE:
        raise UsageError(
            f"the lattice is too coarse: the mean {what} is {mean:.3g} of its steps", hint="take a finer lattice"
        )


def _check_mean(mean: float) -> None:
    if not 0 < mean < math.inf:
        raise UsageError(f"a mean time is positive and finite, not {mean:g} steps")


def _check_times(at: FloatArray) -> None:
    if not np.isfinite(at).all():
        raise UsageError("a time is not finite")
    if (at < 0).any():
        raise UsageError(f"a time is negative: {at.min():g}")


def _length(end: float) -> int:
    if not end <= MAX_STEPS:
        raise UsageError(
            f"a time has {end:.3g} steps, more than {MAX_STEPS}", hint="take a coarser lattice, or cap the times"
        )
    return math.ceil(end)


def _cut(pmf: Callable[[FloatArray], FloatArray], end: float, first: int) -> Lattice:
    at = np.arange(first, _length(end) + 1, dtype=np.float64)
    out = np.asarray(pmf(at), dtype=np.float64)
    beyond = np.cumsum(out[::-1])[::-1]
    return _normalised(out[beyond > TAIL], first)


def _normalised(out: FloatArray, first: int) -> Lattice:
    return Lattice(out / out.sum(), first)
