"""Sums over arrays of probabilities that are taken term by term, in C (sums.c).

Where one factor is short this is faster than transforms, and, as all terms are positive, small results are as exact as
large ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import fft

from p4perf.models.queue import _sums

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

SHORT = 64
"""Most elements of a short factor."""


def powers_direct(base: FloatArray, count: int, length: int, negligible: float) -> FloatArray:
    """Convolutions of an array with itself, ``count`` rows at most, for :func:`~.distributions.powers`."""
    out = np.zeros((count, length))
    used = _sums.powers(np.ascontiguousarray(base[:length]), out, length, negligible)
    return out[:used]


def mixture(rows: FloatArray, base: FloatArray, most: int) -> FloatArray:
    """Sum over i of row i convolved with the i-fold convolution of an array.

    Args:
        rows: weights of each power; (powers, width).
        base: P(T = k) for k = 0, 1, ...
        most: elements that matter; all further ones are negligible together.

    Returns:
        Array from the first element of the rows on, as long as it has anything.
    """
    count, width = rows.shape
    longest = width + (count - 1) * (base.size - 1)
    if base.size > SHORT:
        return _mixture_by_transform(rows, base, max(min(longest, most), width))
    out, scratch = np.zeros(longest), np.zeros(longest)
    used = _sums.mixture(np.ascontiguousarray(rows), width, base, out, scratch)
    return out[:used]


def _mixture_by_transform(rows: FloatArray, base: FloatArray, length: int) -> FloatArray:
    size = fft.next_fast_len(max(length, base.size), real=True)
    factor = fft.rfft(base, size)
    total = np.zeros(factor.size, dtype=np.complex128)
    for row in rows[::-1]:
        total *= factor
        total += fft.rfft(row, size)
    out = np.asarray(fft.irfft(total, size)[:length])
    out[out < np.finfo(np.float64).eps * max(float(out.max()), 0.0)] = 0.0
    return out


def smear(rows: FloatArray, base: FloatArray, out: FloatArray) -> None:
    """Each row of (rows, width) convolved with an array, into contiguous zeros (rows, width + base.size - 1)."""
    width = rows.shape[1]
    if base.size > SHORT:
        length = width + base.size - 1
        size = fft.next_fast_len(length, real=True)
        out[:] = fft.irfft(fft.rfft(rows, size, axis=1) * fft.rfft(base, size), size, axis=1)[:, :length]
    elif rows.size:
        _sums.smear(np.ascontiguousarray(rows), width, base, out)


def admit(front: FloatArray, beyond: FloatArray, service: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """What the packets of a batch find in front of them, of whom there is room for some.

    Args:
        front: P(work in front of the first packet = k) where it is accepted, k from some work to the limit less one.
        beyond: the same from the limit on, where it is refused.
        service: P(service time = k), k = 0, 1, ...
        count: packets.

    Returns:
        Row i of each is of packet i + 1. Work stays as it is once a packet is refused.
    """
    accepted = np.zeros((count, front.size))
    refused = np.zeros((count, max(beyond.size, service.size - 1, 1)))
    accepted[0], refused[0, : beyond.size] = front, beyond
    if front.size:
        _sums.admit(service, accepted, refused, count)
    else:
        refused[1:] = refused[0]
    return accepted, refused


def cross(matrix: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Two factors of a contiguous matrix, which is overwritten: columns and rows of crosses through it.

    They are exact up to rounding of its largest element; None where they would not be much smaller.
    """
    count, width = matrix.shape
    most = min(count, width) // 3
    columns, crossed = np.empty((most, count)), np.empty((most, width))
    rank = _sums.cross(matrix, width, np.finfo(np.float64).eps, columns, crossed) if most else 1
    return (columns[:rank], crossed[:rank]) if rank <= most else None


def bands(
    running: FloatArray, which: IntArray, first: IntArray, cells: IntArray, bounds: IntArray,
    down: int, span: int, out: FloatArray,
) -> None:  # fmt: skip
    """Less the probabilities that cells lead to others.

    Args:
        running: running sums of distributions; (distributions, states).
        which: the distribution of each cell.
        first: the state of its first element.
        cells: their numbers.
        bounds: where all cells begin, and where the last one ends.
        down: the first number is that of the cell that many before.
        span: how many numbers.
        out: takes them in its last columns; (all cells, columns).
    """
    stride = out.shape[1]
    _sums.bands(
        running, running.shape[1], np.ascontiguousarray(which), np.ascontiguousarray(first),
        np.ascontiguousarray(cells), bounds, down, span, out, stride - span, stride,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Changes:
    """Distributions of a change by how much room there is.

    Args:
        refused: the row of room 0; (width,).
        steps: row d is what the row of room d + 1 has more than that of room d, from element d on; (rooms, span).
    """

    refused: FloatArray
    steps: FloatArray

    @property
    def length(self) -> int:
        depth, span = self.steps.shape
        return max(self.refused.size, depth - 1 + span if depth else 0)

    def sums(
        self, rooms: IntArray, weights: FloatArray, cells: IntArray, shifts: IntArray, shape: tuple[int, int]
    ) -> FloatArray:
        """Weighted sums of rows.

        Args:
            rooms: room of each entry, ascending; more than there are steps is as good as that many.
            weights: factor of each row.
            cells: row of the result that it is added to.
            shifts: element of the result that takes its first one.
            shape: of the result.
        """
        out = np.zeros(shape)
        if out.size:
            integers = (np.ascontiguousarray(given, dtype=np.int64) for given in (rooms, cells, shifts))
            rooms, cells, shifts = integers
            weights = np.ascontiguousarray(weights)
            _sums.cumulate(
                self.refused, self.steps, self.steps.shape[1], np.zeros(self.length), rooms, weights, cells, shifts,
                out, shape[1],
            )  # fmt: skip
        return out
