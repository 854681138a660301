"""The peripheral queue: the card that collects packets until its interrupt.

The first packet after an interrupt, at time t0, starts the aggregation interval; all packets in [t0, t0 + tau) form a
batch, which the interrupt at t0 + tau hands over. A packet at exactly t0 + tau is the first of the next batch.

Symbols: ``a`` interarrival time; ``f(i)`` its i-fold convolution (f(0) is the constant 0); ``tau`` aggregation
interval; ``X`` batch size; ``S`` time from t0 to the t0 of the next batch; ``W_i`` time that the i-th packet of a batch
waits for the interrupt. Source: Gebert et al. 2016, Eq. 1-5, corrected: the batch includes the packet that starts the
interval, S is joint with X, and W_i is conditioned on the batch having an i-th packet. See docs/queue.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import fft

from p4perf.errors import UsageError
from p4perf.models.queue.lattice import FloatArray, Lattice, powers

NEGLIGIBLE = 1e-17
"""Batches of i packets or more are left out where they are less probable than this."""
MAX_BATCH = 20_000
"""Most packets of a batch."""
_FIRST_GUESS = 32
_DEVIATIONS = 12
"""Standard deviations of a number of packets that are hardly ever exceeded."""
_MATRIX = 4_000_000
"""Up to so many elements a matrix product is faster than transforms."""


@dataclass(frozen=True, eq=False)
class Batches:
    """What the card hands over.

    Args:
        size_interval: P(X = i + 1, S = first_interval + r); (largest batch, number of intervals).
        first_interval: smallest S [steps].
        waiting: P(X > i, W_(i+1) = k); (largest batch, longest interval + 1).
    """

    size_interval: FloatArray
    first_interval: int
    waiting: FloatArray

    @cached_property
    def sizes(self) -> FloatArray:
        """P(X = i + 1)."""
        return np.asarray(self.size_interval.sum(axis=1))

    @cached_property
    def reached(self) -> FloatArray:
        """P(X > i): that a batch has an (i + 1)-th packet."""
        return np.asarray(self.waiting.sum(axis=1))

    @cached_property
    def mean_size(self) -> float:
        """E[X] [packets]."""
        return float(self.sizes @ np.arange(1, self.sizes.size + 1))

    @cached_property
    def mean_interval(self) -> float:
        """E[S] [steps]."""
        marginal = self.size_interval.sum(axis=0)
        return float(marginal @ (self.first_interval + np.arange(marginal.size)))

    @cached_property
    def interval(self) -> Lattice:
        """Distribution of S."""
        marginal = self.size_interval.sum(axis=0)
        return Lattice(marginal / marginal.sum(), self.first_interval)


def collect(arrival: Lattice, moderation: Lattice) -> Batches:
    """The batches of renewal arrivals under interrupt moderation.

    Joint distribution of size and interval (replaces Eq. 1, 3 and 4):
    P(X = i, S = s) = sum_m tau(m) sum_(t < m) f(i-1)(t) a(s - t), s >= m;
    waiting time (replaces Eq. 5): P(X >= i, W_i = k) = sum_m tau(m) f(i-1)(m - k), k = 1 .. m.

    Args:
        arrival: interarrival time [steps].
        moderation: aggregation interval, one step at least.

    Raises:
        UsageError: packets come all at once, the interval is zero, or a batch has too many packets.
    """
    if arrival.last == 0:
        raise UsageError("all interarrival times are zero")
    if moderation.first < 1:
        raise UsageError("the moderation interval has one step at least", hint="take a finer lattice")
    sums = _sums(arrival, moderation.last)
    first, end = moderation.first, moderation.last + arrival.last
    a = arrival.dense(end + 1)
    if first == moderation.last:
        joint = _residual(sums, a, arrival.last)
        waiting = np.zeros((sums.shape[0], first + 1))
        waiting[:, 1:] = sums[:, ::-1]
    else:
        joint = np.zeros((sums.shape[0], end - first))
        waiting = np.zeros((sums.shape[0], moderation.last + 1))
        for m, share in zip(range(first, moderation.last + 1), moderation.probabilities, strict=True):
            if share > 0:
                joint[:, m - first : m - first + arrival.last] += share * _residual(sums[:, :m], a, arrival.last)
                waiting[:, 1 : m + 1] += share * sums[:, :m][:, ::-1]
    used = np.flatnonzero(joint.any(axis=0))
    return Batches(np.ascontiguousarray(joint[:, used[0] : used[-1] + 1]), first + int(used[0]), waiting)


def _residual(sums: FloatArray, a: FloatArray, width: int) -> FloatArray:
    """Row i: probability of i more packets before the interrupt, and the next one r = 0 .. width - 1 steps after it."""
    m = sums.shape[1]
    recent = min(m, width)
    if recent * width <= _MATRIX:
        # Row s of the windows is a(s + 1 + r): the last packet came s + 1 steps before the interrupt.
        windows = np.lib.stride_tricks.as_strided(a[1:], (recent, width), (a.itemsize, a.itemsize))
        return np.asarray(sums[:, m - recent :][:, ::-1] @ np.ascontiguousarray(windows))
    size = fft.next_fast_len(m + width + 1, real=True)
    spectrum = fft.rfft(a[: width + 1], size)
    rows = [fft.irfft(fft.rfft(row, size) * spectrum, size)[m : m + width] for row in sums]
    return np.maximum(np.stack(rows), 0.0)


def _sums(arrival: Lattice, length: int) -> FloatArray:
    """Rows f(0), f(1), ... on 0 .. length - 1, until a batch almost never has so many packets."""
    a = arrival.dense(length)
    mean = length / max(arrival.mean, 1e-9)
    count = int(mean + _DEVIATIONS * arrival.cv * math.sqrt(mean)) + _FIRST_GUESS
    while True:
        if count > MAX_BATCH:
            raise UsageError(
                f"a batch can have more than {MAX_BATCH} packets", hint="a shorter moderation interval, or a lower rate"
            )
        sums = powers(a, count, length, NEGLIGIBLE)
        if sums.shape[0] <= count:
            return sums
        count *= 2
