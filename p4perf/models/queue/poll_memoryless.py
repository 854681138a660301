"""Poll mode with arrivals without memory: a chain on the number of packets in the ring, solved directly."""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import sparse, special
from scipy.sparse import linalg

from p4perf.errors import UsageError
from p4perf.models.queue.lattice import TAIL, FloatArray
from p4perf.models.queue.poll import Bernoulli, Cycle, Poisson, PollQueue

_RESIDUAL = 1e-9


def follow_memoryless(queue: PollQueue, arrival: Bernoulli | Poisson, work: FloatArray) -> Cycle:
    """A stationary cycle.

    Args:
        queue: the system.
        arrival: the process.
        work: row n is the distribution of T_n.

    Raises:
        UsageError: the stationary distribution could not be found.
    """
    places, most = queue.ring, work.shape[0] - 1
    length = work.shape[1]
    mean = length / arrival.mean
    count = math.ceil(mean + 10 * math.sqrt(mean) + 40)
    times = np.arange(length)
    number = np.arange(count + 1)
    if isinstance(arrival, Bernoulli):
        from scipy import stats  # slow to load, and seldom needed

        given = stats.binom.pmf(number[None, :], times[:, None], 1 / arrival.mean)
    else:
        expected = times[:, None] / arrival.mean
        given = np.exp(special.xlogy(number, expected) - special.gammaln(number + 1) - expected)
    arrivals = work @ given
    arrivals[arrivals < TAIL] = 0.0
    arrivals /= arrivals.sum(axis=1, keepdims=True)
    ring, residual = _stationary(arrivals, places, most, overload=queue.load >= 1)
    if residual > _RESIDUAL:
        raise UsageError(f"the stationary distribution of the ring could not be found (residual {residual:.2g})")
    mean_work = work @ times
    taken = np.minimum(np.arange(places + 1), most)
    later = _later(arrival, work, min(count, places))
    placed = np.zeros((places, length))
    lost = 0.0
    for q in np.flatnonzero(ring > 0):
        n, left = int(taken[q]), int(q - taken[q])
        fit = min(places - left, later.shape[1])
        if n < most or left == 0:
            placed[left : left + fit] += ring[q] * later[n, :fit]
        beyond = number - (places - left)
        lost += float(ring[q] * (arrivals[n] @ np.maximum(beyond, 0)))
    # Behind full batches all cycles are alike: one pass over what is left in the ring.
    left_before = np.arange(places)[:, None] - np.arange(later.shape[1])[None, :]
    there = (left_before >= 1) & (left_before <= places - most)
    placed += np.where(there, ring[np.where(there, left_before + most, 0)], 0.0) @ later[most]
    return Cycle(
        arrivals=placed,
        lost=lost,
        mean_time=float(ring @ mean_work[taken]),
        busy=float(ring[1:] @ mean_work[taken[1:]]),
        taken=float(ring @ taken),
        full_cycles=float(ring[1:].sum()),
        ring=ring,
        residual=residual,
    )


def _stationary(arrivals: FloatArray, places: int, most: int, *, overload: bool) -> tuple[FloatArray, float]:
    """Distribution of the ring at polls, and its residual; sparse LU with one equation replaced."""
    q = np.arange(places + 1)
    taken = np.minimum(q, most)
    count = arrivals.shape[1]
    source = np.repeat(q, count)
    goal = np.minimum((q - taken)[:, None] + np.arange(count)[None, :], places).ravel()
    chain = sparse.csr_array((arrivals[taken].ravel(), (source, goal)), shape=(places + 1, places + 1))
    chain.sum_duplicates()
    pin = places if overload else 0
    system = (sparse.eye_array(places + 1, format="csr") - chain.T).tolil()
    system[[pin], :] = 0.0
    system[pin, pin] = 1.0
    right = np.zeros(places + 1)
    right[pin] = 1.0
    u = np.maximum(linalg.splu(system.tocsc()).solve(right), 0.0)
    u /= u.sum()
    return u, float(np.abs(chain.T @ u - u).sum())


def _later(arrival: Bernoulli | Poisson, work: FloatArray, count: int) -> FloatArray:
    """Element [n, k, y]: probability that arrival k + 1 of a cycle with T_n comes y steps before its end."""
    length = work.shape[1]
    x = np.arange(length, dtype=np.float64)
    out = np.zeros((work.shape[0], count, length))
    if isinstance(arrival, Bernoulli):
        from scipy import stats  # slow to load, and seldom needed

        p = 1 / arrival.mean
        at = np.asarray(p * stats.binom.pmf(np.arange(count)[None, :], x[:, None] - 1, p))
        at[0] = 0.0
        last = at
    else:
        at, last = _poisson_epochs(arrival.mean, length, count)
    padded = np.concatenate([work, np.zeros((work.shape[0], length - 1))], axis=1)
    before_end = np.ascontiguousarray(at.T)
    for n in range(work.shape[0]):
        # y = T - x for x = 0 .. T: a correlation of T with the epoch of the arrival, element [x, y] that of T = x + y.
        np.matmul(before_end, np.ascontiguousarray(sliding_window_view(padded[n], length)), out=out[n])
        out[n, :, 0] = work[n] @ last
    return out


def _poisson_epochs(mean: float, length: int, count: int) -> tuple[FloatArray, FloatArray]:
    """The epoch of arrival k + 1 of a Poisson process, shared between the steps around it so that its mean stays.

    Returns:
        Element [x, k] of the epochs around x, and of those before x only (of which none is behind the end x).
    """
    k = np.arange(1, count + 1, dtype=np.float64)[None, :]
    x = np.arange(length + 1, dtype=np.float64)[:, None]
    below = special.gammainc(k, x / mean)
    integral = x * below - k * mean * special.gammainc(k + 1, x / mean)
    rise = np.diff(integral, axis=0)
    right = np.maximum(rise - below[:-1], 0.0)
    left = np.zeros_like(right)
    left[1:] = np.maximum(below[1:-1] - rise[:-1], 0.0)
    return left + right, left
