"""Probability distributions on a lattice 0, 1, 2, ... of time steps, and their convolution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import fft

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

    Args:
        probabilities: probability of ``first``, ``first + 1``, ... steps.
        first: smallest number of steps.

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
        """Largest number of steps."""
        return self.first + self.probabilities.size - 1

    @cached_property
    def values(self) -> FloatArray:
        """The numbers of steps, ascending."""
        return np.asarray(np.arange(self.first, self.last + 1), dtype=np.float64)

    @cached_property
    def mean(self) -> float:
        """Mean [steps]."""
        return math.fsum(self.probabilities * self.values)

    @cached_property
    def variance(self) -> float:
        """Variance [steps^2]."""
        return math.fsum(self.probabilities * (self.values - self.mean) ** 2)

    @property
    def std(self) -> float:
        """Standard deviation [steps]."""
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
        """The smallest number of steps that is not exceeded with that probability.

        Raises:
            UsageError: the share is not between 0 and 1.
        """
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
        """The same, so many steps later."""
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

    Args:
        a: one array.
        b: the other.

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
