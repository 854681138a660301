"""What a batch does to the unfinished work of the processor: the kernel of the central queue GI[X]/GI/1-L.

The state is the work u that is left when a batch comes. The interrupt itself takes o. Packet after packet is accepted
if the work in front of it is at most L - 1, and adds its service time; work never falls within a batch, so all packets
behind the first that is refused are refused as well. Until the next batch the processor works off S.

Let q(j, r) be the probability that some packet of the batch would begin its service behind j of work of the same batch
and that S = s0 + r: q(j, r) = sum_i P(X >= i, S = s0 + r) b(i-1)(j), with b(i) the i-fold convolution of the service
time. With room for d = L - o - u, the change z = w - r of the work w of the batch less r has the distribution

    row_d(z) = P(S = s0 - z) + sum_(j < d) [ (q(j, j - .) * b)(z) - q(j, j - z) ]

because each service that begins takes the work from j to j + B. Without a limit j runs over all values, and the change
does not depend on u. Source: Gebert et al. 2016, Eq. 6-8, with the corrections of docs/queue.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import fft

from p4perf.models.queue.batches import NEGLIGIBLE, Batches
from p4perf.models.queue.lattice import FloatArray, Lattice, convolve, powers

_TAPS = 48
"""Service times with so many values are convolved tap by tap."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """Transition probabilities of the unfinished work, before the boundary at zero.

    Args:
        limited: row d is the distribution of z with room d = 0, 1, ..; (rooms, changes).
        first_change: z of column 0.
        interval: smallest S, s0 [steps].
        overhead: work of the interrupt.
        limit: L [steps].
        service_last: longest service time [steps].
    """

    limited: FloatArray
    first_change: int
    interval: int
    overhead: Lattice
    limit: int
    service_last: int

    @property
    def rooms(self) -> int:
        """With so much room or more, no packet of a batch is ever refused."""
        return int(self.limited.shape[0]) - 1

    @property
    def admitted(self) -> int:
        """Largest unfinished work at a batch that packets and one interrupt can make."""
        most = self.limit - 1 + max(self.service_last, self.overhead.last)
        return max(most - self.interval, 0)

    def refused(self) -> tuple[FloatArray, int]:
        """Change of the unfinished work where all packets are refused: o - S; and the change of the first one."""
        kept = np.flatnonzero(self.limited[0])
        change = convolve(self.limited[0, kept[0] : kept[-1] + 1], self.overhead.probabilities)
        return change, self.first_change + int(kept[0]) + self.overhead.first - self.interval

    def unlimited(self) -> tuple[FloatArray, int]:
        """Change of the unfinished work far from both boundaries: probabilities, and the change of the first one.

        Changes that are only possible at a boundary are among them, with probability zero.
        """
        kept = np.flatnonzero(self.limited[[0, -1]].any(axis=0))
        change = convolve(self.limited[-1, kept[0] : kept[-1] + 1], self.overhead.probabilities)
        return change, self.first_change + int(kept[0]) + self.overhead.first - self.interval

    def rows(self, first: int, last: int) -> FloatArray:
        """Transitions from the states first .. last; column k is the change ``unlimited()[1] + k``."""
        change, offset = self.unlimited()
        out = np.zeros((last - first + 1, change.size))
        states = np.arange(first, last + 1)
        width = self.limited.shape[1]
        for extra, share in zip(
            range(self.overhead.first, self.overhead.last + 1), self.overhead.probabilities, strict=True
        ):
            if share > 0:
                room = np.clip(self.limit - extra - states, 0, self.rooms)
                begin = self.first_change + extra - self.interval - offset
                skip = max(-begin, 0)
                end = min(width, change.size - begin)
                out[:, begin + skip : begin + end] += share * self.limited[room, skip:end]
        return out


def batch_kernel(batches: Batches, service: Lattice, overhead: Lattice, limit: int) -> Kernel:
    """The kernel of batches of packets.

    Args:
        batches: sizes and intervals.
        service: service time of a packet [steps].
        overhead: work of an interrupt [steps].
        limit: L; a packet is accepted if the work in front of it is less [steps].
    """
    later = np.cumsum(batches.size_interval[::-1], axis=0)[::-1]
    longest = service.last
    reach = min(later.shape[0] * longest, limit) + 1
    starts = powers(service.dense(reach), later.shape[0] - 1, reach)
    q = starts.T @ later
    used = np.flatnonzero(q.sum(axis=1) >= NEGLIGIBLE)
    q = q[: int(used[-1]) + 1]
    table, first = _changes(q, later[0], service)
    return Kernel(table, first, batches.first_interval, overhead, limit, longest)


def _changes(q: FloatArray, interval: FloatArray, service: Lattice) -> tuple[FloatArray, int]:
    """Rows for room 0, 1, .. and the change of the first column."""
    rooms, width = q.shape
    longest = service.last
    reverse = np.ascontiguousarray(q[:, ::-1])
    step = _convolved_rows(reverse, service)
    step[:, :width] -= reverse
    columns = width + longest + rooms
    table = np.zeros((rooms + 1, columns))
    table[0, :width] = interval[::-1]
    # Row j of the steps begins at change j - (width - 1): a skewed view of the table takes them all at once.
    stride = table.strides
    skewed = np.lib.stride_tricks.as_strided(
        table[1:], shape=(rooms, width + longest), strides=(stride[0] + stride[1], stride[1])
    )
    skewed += step
    np.cumsum(table, axis=0, out=table)
    np.maximum(table, 0.0, out=table)
    table[table < NEGLIGIBLE] = 0.0
    table /= table.sum(axis=1, keepdims=True)
    return table, -(width - 1)


def _convolved_rows(rows: FloatArray, service: Lattice) -> FloatArray:
    """Each row convolved with the service time from zero on."""
    width = rows.shape[1]
    longest = service.last
    if service.probabilities.size <= _TAPS:
        out = np.zeros((rows.shape[0], width + longest))
        for k, share in enumerate(service.probabilities, service.first):
            if share > 0:
                out[:, k : k + width] += share * rows
        return out
    size = fft.next_fast_len(width + longest, real=True)
    spectrum = fft.rfft(service.dense(longest + 1), size)
    return np.asarray(fft.irfft(fft.rfft(rows, size, axis=1) * spectrum, size, axis=1)[:, : width + longest])
