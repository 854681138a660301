"""Poll mode with any renewal arrivals: a chain on the packets in the ring and the time until the next arrival.

A poll finds Q packets, and the next arrival is r steps away, r = 1, 2, ... If the cycle takes T < r, nothing comes.
Else the first packet comes after r steps, and in the s = T - r steps that are left k more come, with the next one r'
steps after the end, with probability sum_(t <= s) f(k)(t) a(s - t + r'). Polls that find an empty ring are skipped up
to the one that finds a packet. The chain is large, so its distribution is found by iteration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import fft

from p4perf.errors import UsageError
from p4perf.models.queue.fixedpoint import stationary_by_iteration
from p4perf.models.queue.lattice import TAIL, FloatArray, Lattice, powers
from p4perf.models.queue.poll import Cycle, PollQueue

MAX_STATES = 400_000
_RESIDUAL = 1e-9
_EMPTY = 1e-18


@dataclass(frozen=True, eq=False)
class _Steps:
    """What a cycle does.

    Args:
        more: element [k, s, r - 1]: k more arrivals in s steps after the first, the next one r steps after.
        sums: f(k), rows k = 0, 1, ...
        work: row n is the distribution of T_n.
        residuals: largest r.
        idle: length of an idle cycle by r, element r - 1.
        places: of the ring.
        spectra: real transforms of the rows of ``work``, of even length.
    """

    more: FloatArray
    sums: FloatArray
    work: FloatArray
    residuals: int
    idle: FloatArray
    places: int
    spectra: npt.NDArray[np.complex128]

    @property
    def most(self) -> int:
        """Most packets of a batch."""
        return int(self.work.shape[0]) - 1

    def cycles(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What cycles come to, by the packets that stay in the ring.

        Returns:
            Element [left, s]: weight of the cycles that have s steps left when their first packet comes; and element
            [left, r - 1]: weight of those that end r steps before the next packet.
        """
        most, length = self.most, self.more.shape[1]
        rows = np.flatnonzero(state[most:].sum(axis=1) > _EMPTY)
        active = max(int(rows[-1]) + 1 if rows.size else 0, 1)
        size = (self.spectra.shape[1] - 1) * 2
        ahead = np.zeros((most + active, size))
        ahead[:, 1 : self.residuals + 1] = state[: most + active]
        waiting = np.conj(fft.rfft(ahead, axis=1))
        product = self.spectra[most] * waiting[most:]
        product[0] += np.einsum("ij,ij->j", self.spectra[1:most], waiting[1:most])
        lags = np.maximum(fft.irfft(product, size, axis=1), 0.0)
        lags[lags < _EMPTY] = 0.0
        came = np.ascontiguousarray(lags[:, :length])
        np.add.at(came[0], (self.idle - np.arange(1, self.residuals + 1)).astype(np.int64), state[0])
        return came, lags[:, : -self.residuals - 1 : -1]

    def step(self, state: FloatArray) -> FloatArray:
        """The distribution at the next poll."""
        places = self.places
        out = np.zeros_like(state)
        came, without = self.cycles(state)
        out[: came.shape[0]] = without
        for k in range(self.more.shape[0]):
            gained = came @ self.more[k]
            room = max(min(places - k - 1, gained.shape[0]), 0)
            out[k + 1 : k + 1 + room] += gained[:room]
            out[places] += gained[room:].sum(axis=0)
        return np.asarray(out / out.sum())


def follow_renewal(queue: PollQueue, arrival: Lattice, work: FloatArray) -> Cycle:
    """A stationary cycle.

    Args:
        queue: the system.
        arrival: interarrival time [steps].
        work: row n is the distribution of T_n.

    Raises:
        UsageError: there are too many states, or the stationary distribution could not be found.
    """
    steps = _steps(queue, arrival, work)
    state = np.zeros((queue.ring + 1, steps.residuals))
    ahead = np.maximum(1.0 - np.cumsum(arrival.dense(steps.residuals)), 0.0)
    state[queue.ring if queue.load >= 1 else 0] = ahead / ahead.sum()
    state, residual, _ = stationary_by_iteration(steps.step, state)
    if residual > _RESIDUAL:
        raise UsageError(
            f"the stationary distribution of the ring could not be found (residual {residual:.2g})",
            hint="change the load a little, or simulate",
        )
    return _cycle(queue, steps, state, residual)


def _steps(queue: PollQueue, arrival: Lattice, work: FloatArray) -> _Steps:
    residuals = arrival.last
    if (queue.ring + 1) * residuals > MAX_STATES:
        raise UsageError(
            f"ring and interarrival times give {(queue.ring + 1) * residuals} states, more than {MAX_STATES}",
            hint="a coarser lattice, a smaller ring, or arrivals without memory (poisson)",
        )
    r = np.arange(1, residuals + 1)
    idle = queue.empty_poll * -(-r // queue.empty_poll)
    length = max(work.shape[1], queue.empty_poll)
    a = arrival.dense(length + residuals + 1)
    count = int(2 * length / arrival.mean) + 32
    while True:
        sums = powers(a[:length], count, length)
        small = np.flatnonzero(sums.sum(axis=1) < TAIL)
        if small.size:
            sums = sums[: int(small[0])]
            break
        count *= 2
    s = np.arange(length)
    ahead = a[s[:, None] + r[None, :]]
    back = s[:, None] - s[None, :]
    more = np.stack([np.where(back >= 0, row[np.maximum(back, 0)], 0.0) @ ahead for row in sums])
    size = 2 * fft.next_fast_len((length + residuals + 2) // 2 + 1)
    spectra = fft.rfft(work, size, axis=1)
    return _Steps(more, sums, work, residuals, idle.astype(np.float64), queue.ring, spectra)


def _cycle(queue: PollQueue, steps: _Steps, state: FloatArray, residual: float) -> Cycle:
    """What an average cycle from one poll to the next that finds a packet, or from such a poll on, does."""
    came, _ = steps.cycles(state)
    sums, places, most = steps.sums, steps.places, steps.most
    length = came.shape[1]
    size = fft.next_fast_len(2 * length, real=True)
    spectra = fft.rfft(came, size, axis=1)
    back = np.conj(fft.rfft(sums, size, axis=1))
    placed = np.zeros((places, spectra.shape[1]), dtype=np.complex128)
    below = np.cumsum(sums, axis=1)
    lost = 0.0
    for left in np.flatnonzero(came.any(axis=1)):
        # Arrival k + 1 of the cycle comes s - t steps before its end, with t distributed as f(k).
        fit = max(min(places - left, sums.shape[0]), 0)
        placed[left : left + fit] += spectra[left] * back[:fit]
        lost += float((below[fit:] @ came[left]).sum())
    arrivals = np.maximum(fft.irfft(placed, size, axis=1)[:, :length], 0.0)
    mean_work = steps.work @ np.arange(steps.work.shape[1])
    taken = np.minimum(np.arange(places + 1), most)
    ring = state.sum(axis=1)
    busy = float(ring[1:] @ mean_work[taken[1:]])
    return Cycle(
        arrivals=arrivals,
        lost=lost,
        mean_time=busy + float(state[0] @ steps.idle),
        busy=busy,
        taken=float(ring @ taken),
        full_cycles=float(ring[1:].sum()),
        ring=ring,
        residual=residual,
    )
