"""Packet by packet through a stationary batch: delays, refusals, and the work that the next batch finds.

Eq. 7: the work in front of packet i+1 is that in front of packet i, plus a service time where that is below L. Delay of
packet i (replaces Eq. 12, 13): W_i + work in front, given that it is below L, + own service; weight P(X >= i)
P(accepted). Refused packets (replaces Eq. 11): sum_i P(X >= i) P(work in front of packet i >= L).

Batches that find so little work that none of their packets can be refused need not be followed packet by packet. With
v the work they find and the interrupt, delays are v * sum_i P(W_i, X >= i) * b(i), and the work of the next batch is
v * sum_i P(X = i, S) * b(i), where S counts downwards. For the others nothing is used of the transitions from which
the stationary work was found, so that the residual checks these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import fft

from p4perf.errors import UsageError
from p4perf.models.queue.direct import admit, mixture
from p4perf.models.queue.distributions import FloatArray, Lattice, convolve
from p4perf.models.queue.work import Batches, Kernel

_ROWS = 32
"""Rows that are transformed at a time: what they take stays in the cache."""


@dataclass(frozen=True, eq=False)
class Path:
    """What a stationary batch goes through.

    Args:
        delay: processing time of accepted packets [steps].
        refused: mean number of refused packets of a batch.
        batch_refused: mean over batches of the refused share.
        idle: mean time in an interval in which the processor has nothing to do [steps].
        residual: sum of the absolute differences between the work of this batch and of the next.
    """

    delay: Lattice
    refused: float
    batch_refused: float
    idle: float
    residual: float


def follow(work: FloatArray, kernel: Kernel, batches: Batches) -> Path:
    """Follow a batch that finds the work k with probability ``work[k]``."""
    kept = np.flatnonzero(work)
    low = int(kept[0])
    front = np.convolve(work[low : int(kept[-1]) + 1], kernel.overhead.probabilities)
    low += kernel.overhead.first
    count = batches.sizes.size
    split = min(max(kernel.limit - kernel.batch.rooms + 1 - low, 0), front.size)
    far, rest = front[:split], front[split:]
    if rest.size and split and not rest.any():
        rest = rest[:0]
    delays, works = _Sum(), _Sum()
    # Time that packets wait for the interrupt and for those before them, where nothing is refused.
    waiting = np.zeros(1)
    if kernel.ample:
        most = batches.waiting.shape[1] + kernel.batch.rooms + kernel.batch.service.size
        waiting = mixture(batches.waiting, kernel.batch.service, most)
    refused = np.zeros((count, 1))
    if rest.size:
        room = max(kernel.limit - low - split, 0)
        start = np.pad(rest[:room], (0, max(room - rest.size, 0)))
        accepted, refused = admit(start, rest[room:], kernel.batch.service, count)
        _follow_near(low + split, accepted, refused, waiting, kernel, batches, delays, works)
    if far.size:
        delays.add(low, convolve(far, waiting))
        works.add(low + kernel.first_change - kernel.batch.interval, convolve(far, kernel.free))
    if delays.empty or not delays.total()[1].any():
        raise UsageError("every packet is refused: an interrupt alone takes as long as the buffer allows")
    idle, residual = _next(work, works)
    lost = refused.sum(axis=1)
    weights = np.cumsum((batches.sizes / np.arange(1, count + 1))[::-1])[::-1]
    shortest, before = delays.total()
    delay = convolve(before, kernel.batch.service)
    return Path(
        delay=Lattice(delay / delay.sum(), shortest),
        refused=float(batches.reached @ lost),
        batch_refused=float(weights @ lost),
        idle=idle,
        residual=residual,
    )


class _Sum:
    """Arrays of probabilities that begin at different values."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, FloatArray]] = []

    @property
    def empty(self) -> bool:
        return not self._parts

    def add(self, first: int, values: FloatArray) -> None:
        if values.size:
            self._parts.append((first, values))

    def total(self) -> tuple[int, FloatArray]:
        first = min(at for at, _ in self._parts)
        out = np.zeros(max(at + values.size for at, values in self._parts) - first)
        for at, values in self._parts:
            out[at - first : at - first + values.size] += values
        return first, out


def _follow_near(
    low: int, accepted: FloatArray, refused: FloatArray, waiting: FloatArray, kernel: Kernel, batches: Batches,
    delays: _Sum, works: _Sum,
) -> None:  # fmt: skip
    """Sums over the packets of batches near the limit, without their own service, and over those that are refused.

    Row i of what is accepted is P(work in front of packet i + 1 = low + k), of what is refused P(that work is L + k).

    Work only grows in a batch, so that what ends below the limit never met it. Sums of which that can be said are those
    of batches far from it; all others are taken packet by packet, of the highest work only.
    """
    interval, limit = batches.first_interval, kernel.limit
    width = batches.size_interval.shape[1]
    room = accepted.shape[1]
    if room:
        start = accepted[0]
        longest, tail = batches.waiting.shape[1] - 1, width - 1 + kernel.batch.service.size - 1
        if kernel.ample:
            # Waiting time and work together are less than the limit.
            delays.add(low, convolve(start, waiting)[:room])
            # What is left when the next batch comes is so little that the work was less than the limit, whatever S is.
            works.add(low + kernel.first_change - interval, convolve(start, kernel.free)[:room])
        else:
            longest = tail = room
        top = accepted[:, max(room - longest, 0) :]
        skip = top.shape[1] if kernel.ample else 0
        delays.add(limit - top.shape[1] + skip, _summed(top, batches.waiting)[skip:])
        top = accepted[:, max(room - tail, 0) :]
        skip = top.shape[1] if kernel.ample else 0
        later = convolve(_summed(top, batches.size_interval[:, ::-1]), kernel.batch.service)
        works.add(limit - top.shape[1] - (width - 1) - interval + skip, later[skip:])
    # Work stays as it is where the last packet was refused.
    stays = refused.T @ batches.size_interval
    for k in np.flatnonzero(stays.any(axis=1)):
        works.add(limit - interval + int(k) - width + 1, stays[k, ::-1])


def _summed(a: FloatArray, b: FloatArray) -> FloatArray:
    """Sum over i of the convolutions of row i of both, by FFT."""
    length = a.shape[1] + b.shape[1] - 1
    size = fft.next_fast_len(length, real=True)
    total = np.zeros(size // 2 + 1, dtype=np.complex128)
    for at in range(0, a.shape[0], _ROWS):
        some = slice(at, at + _ROWS)
        total += np.einsum("ij,ij->j", fft.rfft(a[some], size, axis=1), fft.rfft(b[some], size, axis=1))
    out = np.asarray(fft.irfft(total, size)[:length])
    out[out < np.finfo(np.float64).eps * max(float(out.max()), 0.0)] = 0.0
    return out


def _next(work: FloatArray, works: _Sum) -> tuple[float, float]:
    """Mean idle time of the processor in an interval, and how far the work of the next batch is from this one's."""
    first, later = works.total()
    below = later[: max(-first, 0)]
    idle = float(below @ np.arange(-first, -first - below.size, -1)) if below.size else 0.0
    found = np.zeros(work.size + 1)
    positive = later[below.size :]
    at = max(first, 0)
    end = min(positive.size, max(work.size - at, 0))
    found[at : at + end] = positive[:end]
    found[-1] = positive[end:].sum()
    found[0] += below.sum()
    return idle, float(np.abs(found[:-1] - work).sum() + abs(found[-1]))
