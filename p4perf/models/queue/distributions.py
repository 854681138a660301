"""Probability distributions on a lattice of time steps: their convolution, those that have names, and queues' results.

Means are in steps of the lattice. The paper calls three interarrival distributions by names that are easily taken for
something else. Its "Poisson" has the *interarrival time* distributed with a Poisson pmf, which is nearly constant; it
is :func:`poisson_pmf` here. A Poisson process has exponential interarrival times: :func:`exponential`. Its "negative
binomial" has a standard deviation equal to its mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import fft, special

from p4perf.errors import UsageError
from p4perf.models.queue.direct import SHORT, powers_direct

FloatArray = npt.NDArray[np.float64]

SUM_TOLERANCE = 1e-6
"""Probabilities that are given may miss the sum of one by so much; they are then scaled."""
TAIL = 1e-17
"""Probability in an infinite tail that is cut off."""
MAX_STEPS = 4_000_000
"""Longest support of a distribution [steps]."""
_VECTOR = 512
"""Powers of so short a factor are summed directly: many rows, no allocation in between."""
_FFT_TOLERANCE = 1e-13


@dataclass(frozen=True, eq=False)
class Lattice:
    """The distribution of a time that is a whole number of steps, zero or more.

    Raises:
        UsageError: a probability is negative or not finite, the sum is not one, or a time is negative.
    """

    probabilities: FloatArray
    first: int = 0

    def __post_init__(self) -> None:
        given = np.asarray(self.probabilities, dtype=np.float64)
        if given.ndim != 1 or not given.size:
            raise UsageError("a distribution needs at least one probability")
        if not np.isfinite(given).all() or (given < 0).any():
            raise UsageError("a probability is negative or not finite")
        total = float(given.sum())
        if abs(total - 1) > SUM_TOLERANCE:
            raise UsageError(f"the probabilities sum to {total:.9g}, not to 1", hint="divide them by their sum")
        if self.first < 0:
            raise UsageError(f"a time is negative: {self.first} steps")
        occupied = np.flatnonzero(given)
        begin, end = int(occupied[0]), int(occupied[-1]) + 1
        kept = np.ascontiguousarray(given[begin:end] / total)
        kept.setflags(write=False)
        object.__setattr__(self, "probabilities", kept)
        object.__setattr__(self, "first", self.first + begin)

    @property
    def last(self) -> int:
        return self.first + self.probabilities.size - 1

    @cached_property
    def values(self) -> FloatArray:
        return np.asarray(np.arange(self.first, self.last + 1), dtype=np.float64)

    @cached_property
    def mean(self) -> float:
        return math.fsum(self.probabilities * self.values)

    @cached_property
    def variance(self) -> float:
        return math.fsum(self.probabilities * (self.values - self.mean) ** 2)

    @property
    def std(self) -> float:
        return math.sqrt(self.variance)

    @property
    def cv(self) -> float:
        """Coefficient of variation: standard deviation over mean; 0 where the mean is 0."""
        return self.std / self.mean if self.mean else 0.0

    @cached_property
    def cumulative(self) -> FloatArray:
        """P(T <= k) for k = first .. last; the last one is 1."""
        running = np.cumsum(self.probabilities)
        return np.asarray(np.minimum(running / running[-1], 1.0))

    def quantile(self, share: float) -> int:
        """The smallest number of steps that is not exceeded with that probability."""
        if not 0 < share < 1:
            raise UsageError(f"a quantile is between 0 and 1, not {share:g}")
        return self.first + int(np.searchsorted(self.cumulative, share * (1 - 1e-13), side="left"))

    def dense(self, length: int) -> FloatArray:
        """P(T = k) for k = 0 .. length - 1; what lies beyond is left out."""
        out = np.zeros(length)
        end = min(length, self.last + 1)
        if end > self.first:
            out[self.first : end] = self.probabilities[: end - self.first]
        return out

    def plus(self, other: Lattice) -> Lattice:
        """The distribution of the sum of two independent times."""
        return Lattice(convolve(self.probabilities, other.probabilities), self.first + other.first)

    def shifted(self, steps: int) -> Lattice:
        return Lattice(self.probabilities, self.first + steps)

    def stretched(self, factor: int) -> Lattice:
        """The same times in a unit that is ``factor`` times smaller."""
        out = np.zeros((self.probabilities.size - 1) * factor + 1)
        out[::factor] = self.probabilities
        return Lattice(out, self.first * factor)

    def divisor(self) -> int:
        """Greatest common divisor of all times; 0 if the only time is 0."""
        return int(np.gcd.reduce(self.first + np.flatnonzero(self.probabilities)))

    def compressed(self, factor: int) -> Lattice:
        """The same times in a unit that is ``factor`` times larger; all times must be multiples of it."""
        return Lattice(self.probabilities[::factor], self.first // factor)


def convolve(a: FloatArray, b: FloatArray) -> FloatArray:
    """Convolution of two arrays of probabilities (sums up to one), by FFT where that is faster.

    The error of each element of an FFT convolution is at most about ``eps log2(n) |a|_2 |b|_2`` (Higham 2002, section
    24.1); what is below that is rounding, negative or not, and set to zero. If the sum of the result is then not the
    product of the sums to 1e-13, the direct sum is taken.

    Returns:
        Array of length ``a.size + b.size - 1``, not negative.
    """
    if min(a.size, b.size) <= SHORT:
        return np.convolve(a, b)
    length = a.size + b.size - 1
    size = fft.next_fast_len(length, real=True)
    out = fft.irfft(fft.rfft(a, size) * fft.rfft(b, size), size)[:length]
    noise = np.finfo(np.float64).eps * math.log2(size) * float(np.linalg.norm(a) * np.linalg.norm(b))
    out[out < noise] = 0.0
    wanted = float(a.sum() * b.sum())
    if abs(float(out.sum()) - wanted) > _FFT_TOLERANCE * max(wanted, 1e-3) + noise * length:
        return np.convolve(a, b)
    return np.asarray(out, dtype=np.float64)


def powers(base: FloatArray, count: int, length: int, negligible: float = 0.0) -> FloatArray:
    """Convolutions of an array with itself, cut to a length.

    Args:
        base: P(T = k) for k = 0, 1, ...
        count: how many powers beside the zeroth.
        length: elements that are kept.
        negligible: the first row whose sum is less is left out, and all after it.

    Returns:
        Row i is the distribution of the sum of i times (row 0 is the constant 0); (count + 1 or less, length).
    """
    factor = np.trim_zeros(base[:length], "b")
    if factor.size <= _VECTOR:
        return powers_direct(factor if factor.size else np.zeros(1), count + 1, length, negligible)
    out = np.zeros((count + 1, length))
    out[0, 0] = 1.0
    have = 1
    while have <= count:
        # With the rows 0 .. n - 1 and the n-th come n rows at once.
        last = convolve(out[have - 1], factor)[:length]
        more = min(have, count + 1 - have)
        out[have : have + more] = _products(out[:more], last)[:, :length]
        small = np.flatnonzero(out[have : have + more].sum(axis=1) < negligible)
        if small.size:
            return out[: have + int(small[0])]
        have += more
    return out


def _products(rows: FloatArray, factor: FloatArray) -> FloatArray:
    """:func:`convolve` of each row with the same factor; the first row is the constant 0."""
    length = rows.shape[1] + factor.size - 1
    out = np.zeros((rows.shape[0], length))
    out[0, : factor.size] = factor
    if rows.shape[0] == 1:
        return out
    size = fft.next_fast_len(length, real=True)
    spectrum = fft.rfft(factor, size)
    out[1:] = fft.irfft(fft.rfft(rows[1:], size, axis=1) * spectrum, size, axis=1)[:, :length]
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows)) * float(np.linalg.norm(factor))
    noise = np.finfo(np.float64).eps * math.log2(size) * norms
    noise[0] = 0.0
    out[out < noise[:, None]] = 0.0
    wanted = rows.sum(axis=1) * float(factor.sum())
    missed = np.abs(out.sum(axis=1) - wanted) > _FFT_TOLERANCE * np.maximum(wanted, 1e-3) + noise * length
    for i in np.flatnonzero(missed):
        out[i] = np.convolve(rows[i], factor)
    return out


COARSE = 0.5
"""Smallest mean in steps; below it the lattice is too coarse."""


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
    """Geometric on 1, 2, ..., CV = sqrt(1 - 1 / mean): "geo". It is the only one without memory on the lattice."""
    _check_mean(mean)
    if mean < 1:
        raise UsageError(f"a geometric time has a mean of 1 step at least, not {mean:g}", hint="take a finer lattice")
    if mean == 1:
        return Lattice(np.ones(1), 1)
    p = 1 / mean
    return _cut(lambda k: p * np.exp((k - 1) * math.log1p(-p)), 1 + math.log(TAIL) / math.log1p(-p), 1)


def negative_binomial(mean: float) -> Lattice:
    """Negative binomial on 0, 1, ... whose standard deviation is its mean: "nbin", p = 1/mean, r = mean/(mean - 1)."""
    _check_mean(mean)
    if mean <= 1:
        hint = "take a finer lattice"
        raise UsageError(f"a negative binomial time with CV 1 has a mean of more than 1 step, not {mean:g}", hint=hint)
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
    """Gamma distribution with that mean and coefficient of variation, on the lattice with its mean preserved."""
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
    """
    count = _length(end) + 2
    at = np.asarray(excess(np.arange(count + 1, dtype=np.float64)), dtype=np.float64)
    out = np.empty(count)
    out[0] = 1.0 - at[0] + at[1]
    out[1:] = at[2:] - 2 * at[1:-1] + at[:-2]
    return _normalised(np.maximum(out, 0.0), 0)


def from_samples(values: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Lattice:
    """The distribution of data: measured times, or the times and counts, or probabilities, of a histogram.

    A time between two points of the lattice is shared between them so that the mean stays exact.

    Args:
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


def as_lattice(value: Lattice | int, what: str) -> Lattice:
    """A distribution as it is, a number of steps as a constant time."""
    if isinstance(value, Lattice):
        return value
    if value < 0:
        raise UsageError(f"the {what} is negative: {value} steps")
    return Lattice(np.ones(1), value)


def check_lattice(mean: float, what: str) -> None:
    """Refuse a lattice that is too coarse for a mean [steps]."""
    if 0 < mean < COARSE:
        hint = "take a finer lattice"
        raise UsageError(f"the lattice is too coarse: the mean {what} is {mean:.3g} of its steps", hint=hint)


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
        hint = "take a coarser lattice, or cap the times"
        raise UsageError(f"a time has {end:.3g} steps, more than {MAX_STEPS}", hint=hint)
    return math.ceil(end)


def _cut(pmf: Callable[[FloatArray], FloatArray], end: float, first: int) -> Lattice:
    at = np.arange(first, _length(end) + 1, dtype=np.float64)
    out = np.asarray(pmf(at), dtype=np.float64)
    beyond = np.cumsum(out[::-1])[::-1]
    return _normalised(out[beyond > TAIL], first)


def _normalised(out: FloatArray, first: int) -> Lattice:
    return Lattice(out / out.sum(), first)


RESOLUTION = 1e-14
"""A smaller loss cannot be distinguished from rounding and is 0."""
QUANTILES = (0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True, eq=False)
class QueueResult:
    """One operating point.

    Args:
        delay: processing time of accepted packets, from their arrival to the end of their service [steps].
        loss: share of the packets that are refused.
        load: work offered in a unit of time, interrupts and polls included (rho).
        packet_load: work of the packets alone in a unit of time; Eq. 10 of the paper.
        utilisation: share of the time in which the processor works on packets, interrupts or batches.
        mean_interval: mean time between the beginnings of batches [steps].
        residual: sum of the absolute differences between the stationary distribution and its image under the equations.
        balance: difference between the loss and what the idle time of the processor implies for it.
        seen: distribution of what a batch finds: unfinished work [steps], or packets in the ring.
    """

    delay: Lattice
    loss: float
    load: float
    packet_load: float
    utilisation: float
    mean_batch: float
    mean_interval: float
    step_us: float
    residual: float
    balance: float
    seen: Lattice | None = None
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def mean_us(self) -> float:
        return self.delay.mean * self.step_us

    @property
    def std_us(self) -> float:
        return self.delay.std * self.step_us

    @property
    def max_us(self) -> float:
        """Largest processing time that is more probable than rounding [us]."""
        return self.delay.last * self.step_us

    def quantile_us(self, share: float) -> float:
        """The smallest processing time that is not exceeded with that probability [us]."""
        return self.delay.quantile(share) * self.step_us

    def cdf(self) -> tuple[FloatArray, FloatArray]:
        """Times [us] and the probability that the processing time is not longer."""
        return self.delay.values * self.step_us, self.delay.cumulative


def objective_us(result: QueueResult, what: str) -> float:
    """The mean, or a percentile such as ``p99`` or ``p99.9``, of the processing time [us]."""
    if what == "mean":
        return result.mean_us
    try:
        percent = float(what.removeprefix("p"))
    except ValueError:
        percent = -1.0
    if not what.startswith("p") or not 0 < percent < 100:
        raise UsageError(f"{what!r} is neither mean nor a percentile such as p99")
    return result.quantile_us(percent / 100)
