"""The stationary work of large systems whose changes are smooth: Krylov's method with a coarse grid.

Far from both boundaries the changes of the work do not depend on it, so that a step of the chain is a convolution; near
the limit it is a sum of rows that follow from each other (:class:`~p4perf.models.queue.direct.Changes`). A step is
therefore cheap, and it wipes out whatever is shorter than the standard deviation of a change. What it hardly changes is
long, and found on cells of several states, whose chain is solved by banded LU. The residual of the balance equations is
made as small as it gets by conjugate residuals (GCR) with that solution as preconditioner: a few steps, whatever the
load. This is the two-grid method of Brakhage (1960) and Atkinson (1973) for equations of the second kind.

The probability of work falls like exp(-theta u) (see :mod:`p4perf.models.queue.stationary`). All that is computed here
is x(u) = exp(theta u) P(u), and all changes are weighted alike, so that small probabilities are as exact as large ones.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import fft
from scipy.linalg import lapack

from p4perf.models.queue.direct import FloatArray, IntArray, bands
from p4perf.models.queue.work import Kernel

FINE = 3.0
"""Cells in a standard deviation of a change."""
_UNEVEN = 0.05
"""How far a change may be from uniform over the states of a cell."""
_EDGE = 32
"""Cells of one state below the largest work, at most."""
_COARSE = 1e-8
"""Less probable changes are left out on the coarse grid."""
_SMALLEST = 3e-14
_ROUNDING = 1e-12
"""A residual that is less and hardly falls any more is rounding."""
_WRONG = 1e-12
"""A solution that is not its own image but for so much is none."""
_MOST = 24
_SLOW = 0.5
"""A residual that does not fall by this factor in each step is left to a direct solution."""
_KEPT = 1 << 21
"""Elements of all arrays of a large system together, about."""
_STEEP, _MILD = 80.0, 4.0
"""Largest exponents of the weights of a change, below and above a load of one."""


class Chain:
    """The states low .. high, with weights.

    Attributes:
        low: first state; an empty system if it is zero.
        theta: rate of the weights.
        change: exp(theta d) P(D = d) far from the limit.
        first: d of its first element.
        plain: number of states, from the first one, that are far from the limit.
        near: changes before the interrupt's work and the shortest interval, near the limit.
        overhead: exp(theta k) P(o = k).
    """

    def __init__(self, kernel: Kernel, low: int, high: int, theta: float) -> None:
        self.kernel, self.low, self.high, self.theta = kernel, low, high, theta
        self.states = high - low + 1
        change, self.first = kernel.unlimited
        self.change = change * np.exp(theta * (self.first + np.arange(change.size)))
        over, limit = kernel.overhead, kernel.limit
        self.overhead = over.probabilities * np.exp(theta * np.arange(over.first, over.last + 1))
        self.plain = min(max(limit - over.last - kernel.batch.rooms + 1 - low, 0), self.states)
        depth = limit - over.first - low - self.plain if self.plain < self.states else 0
        self.near = kernel.batch.changes(max(depth, 0), theta)


def stationary_by_two_grids(kernel: Kernel, low: int, high: int, theta: float) -> FloatArray | None:
    """P(u = k) for k = low .. high, up to a factor; None where changes are not smooth, or it does not converge."""
    change, first = kernel.unlimited
    width = _cell_width(change, first)
    if width < 2:
        return None
    extent = max(-first, first + change.size - 1)
    if theta * extent > _STEEP:
        return None
    # Never touched: the C library keeps as much memory for the next system as was once freed in one piece.
    np.empty(_KEPT)
    # In overload it is the work at the limit that matters; what is far below it would outweigh it.
    chain = Chain(kernel, low, high, max(theta, -_MILD / extent))
    step, coarse = _Step(chain), _Coarse(chain, width)
    x = coarse.start()
    residual = step(x) - x
    size, before, slow = float(np.linalg.norm(x)), math.inf, math.inf
    directions: list[FloatArray] = []
    images: list[FloatArray] = []
    for _ in range(_MOST):
        left = float(np.linalg.norm(residual)) / size
        if left <= _SMALLEST or (left <= _ROUNDING and left > before / 4):
            return _accepted(chain, x, step(x))
        if not left < slow:
            return None
        before, slow = left, _SLOW * min(slow, left)
        p = coarse.correction(residual)
        image = p - step(p)
        for direction, its in zip(directions, images, strict=True):
            share = float(its @ image)
            image -= share * its
            p -= share * direction
        length = float(np.linalg.norm(image))
        if not length > 0 or not math.isfinite(length):
            return None
        image /= length
        p /= length
        share = float(image @ residual)
        x += share * p
        residual -= share * image
        directions.append(p)
        images.append(image)
    return None


def _accepted(chain: Chain, x: FloatArray, after: FloatArray) -> FloatArray | None:
    """The probabilities without weights, if they are those after one more batch."""
    weights = np.exp(-chain.theta * (np.arange(x.size) - (0 if chain.theta > 0 else x.size - 1)))
    found = x * weights
    missed = float(np.abs(after * weights - found).sum())
    return found if missed <= _WRONG * float(found.sum()) else None


def _cell_width(change: FloatArray, first: int) -> int:
    """States of a cell: a share of the standard deviation of a change, which is to be smooth on that scale."""
    at = first + np.arange(change.size)
    mean = float(change @ at)
    width = int(math.sqrt(max(float(change @ (at - mean) ** 2), 0.0)) / FINE)
    while width > 1:
        padded = np.zeros(-(-change.size // width) * width)
        padded[: change.size] = change
        if np.abs(padded.reshape(-1, width).sum(axis=0) * width - 1).max() < _UNEVEN:
            break
        width -= 1
    return width


class _Step:
    """One batch later: x P."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        kernel, change = chain.kernel, chain.change
        self._n = chain.states
        if chain.plain:
            self._size = fft.next_fast_len(chain.plain + change.size - 1, real=True)
            self._spectrum = fft.rfft(change, self._size)
            # What leads to an empty system or below.
            below = np.cumsum(change * np.exp(-chain.theta * (chain.first + np.arange(change.size))))
            down = min(max(1 - chain.first, 0), chain.plain) if chain.low == 0 else 0
            index = np.minimum(-np.arange(down) - chain.first, change.size - 1)
            self._empty = below[index] * np.exp(-chain.theta * np.arange(down))
        # Near the limit: rooms of the work after the interrupt, which come in descending order.
        self._lowest = chain.low + chain.plain + kernel.overhead.first
        count = self._n - chain.plain + chain.overhead.size - 1 if chain.plain < self._n else 0
        front = self._lowest + np.arange(count)[::-1]
        self._rooms = np.maximum(kernel.limit - front, 0).astype(np.int64)
        self._shifts = (front - self._lowest).astype(np.int64)
        self._cells = np.zeros(count, dtype=np.int64)
        self._length = chain.near.length + count

    def __call__(self, x: FloatArray) -> FloatArray:
        chain = self._chain
        out = np.zeros(self._n)
        if chain.plain:
            ahead = x[: chain.plain]
            moved = fft.irfft(fft.rfft(ahead, self._size) * self._spectrum, self._size)
            self._add(out, moved[: chain.plain + chain.change.size - 1], chain.low + chain.first, fold=False)
            if self._empty.size:
                out[0] = float(ahead[: self._empty.size] @ self._empty)
        if self._cells.size:
            front = x[chain.plain :]
            front = np.convolve(front, chain.overhead) if chain.overhead.size > 1 else front * chain.overhead[0]
            shape = (1, self._length)
            weights = np.ascontiguousarray(front[::-1])
            moved = chain.near.sums(self._rooms, weights, self._cells, self._shifts, shape)[0]
            kernel = chain.kernel
            self._add(out, moved, self._lowest + kernel.first_change - kernel.batch.interval, fold=chain.low == 0)
        return out

    def _add(self, out: FloatArray, moved: FloatArray, first: int, *, fold: bool) -> None:
        """Add what leads to the states from ``first`` on."""
        low = self._chain.low
        skip = max(low - first, 0)
        end = min(moved.size, self._chain.high + 1 - first)
        if end > skip:
            out[first + skip - low : first + end - low] += moved[skip:end]
        if fold and skip:
            below = min(skip, moved.size)
            out[0] += float(moved[:below] @ np.exp(-self._chain.theta * (first + np.arange(below))))


class _Coarse:
    """The chain of cells: as if the weights within a cell were equal."""

    def __init__(self, chain: Chain, width: int) -> None:
        self._bounds = _cells(chain, width)
        self._widths = np.diff(self._bounds)
        self._n = chain.states
        self._middle = (self._bounds[:-1] + self._bounds[1:] - 1) / 2
        self._states = np.arange(self._n)
        # The equation that is left out is one of likely states: these are where all others lead.
        near = max(chain.kernel.limit - chain.kernel.batch.interval - chain.low, 0)
        likely = 0 if chain.theta > 0 else min(near, self._n - 1)
        self._pin = int(np.searchsorted(self._bounds, likely, side="right")) - 1
        storage, up, down = _cell_bands(chain, self._bounds, self._widths)
        count = self._widths.size
        # LAPACK's storage of the transposed system, as in stationary.py; the equation of one cell is left out.
        around = np.arange(max(self._pin - up, 0), min(self._pin + down, count - 1) + 1)
        storage[around, up + down + self._pin - around] = 0.0
        storage[self._pin, up + down] = 1.0
        self._up, self._down = up, down
        self._factors, self._pivots, _ = lapack.dgbtrf(storage.T, up, down, overwrite_ab=True)

    def _solve(self, right: FloatArray) -> FloatArray:
        found, _ = lapack.dgbtrs(self._factors, self._up, self._down, right, self._pivots)
        return np.asarray(found)

    def _interpolated(self, cells: FloatArray) -> FloatArray:
        return np.asarray(np.interp(self._states, self._middle, cells / self._widths))

    def start(self) -> FloatArray:
        """The stationary solution of the cells."""
        right = np.zeros(self._widths.size)
        right[self._pin] = 1.0
        return self._interpolated(self._solve(right))

    def correction(self, residual: FloatArray) -> FloatArray:
        """About e with e - e P = residual: the residual itself, and its images on the coarse grid."""
        cells = np.add.reduceat(residual, self._bounds[:-1])
        right = cells.copy()
        right[self._pin] = 0.0
        return residual + self._interpolated(self._solve(right) - cells)


def _cells(chain: Chain, width: int) -> IntArray:
    """Where cells begin, and where the last one ends: single states at the boundaries, and then wider ones."""
    n = chain.states
    graded = [w for w in (1, 2, 4, 8, 16, 32, 64, 128, 256) if w < width for _ in range(2)]
    begin = np.cumsum([0, *graded]) if chain.low == 0 else np.zeros(1, dtype=np.int64)
    end = np.zeros(1, dtype=np.int64)
    if chain.plain < n:
        kernel = chain.kernel
        sharp = min(kernel.batch.service.size + kernel.batch.closed.size - 1, _EDGE)
        end = np.cumsum([0, *([1] * sharp), *graded])
    begin, end = begin[begin < n // 3], end[end < n // 3]
    # The last one before the upper boundary takes what is left.
    middle = np.arange(int(begin[-1]) + width, n - int(end[-1]) - width + 1, width)
    return np.concatenate([begin, middle, (n - end)[::-1]]).astype(np.int64)


def _cell_bands(chain: Chain, bounds: IntArray, widths: IntArray) -> tuple[FloatArray, int, int]:
    """The unit less P, of cells: ``storage[I, up + down + (J - I)]``, and both widths."""
    starts = bounds[:-1]
    plain = int(np.searchsorted(bounds, chain.plain, side="right")) - 1 if chain.plain < chain.states else starts.size
    # Cells of the same width far from the limit have the same row; near it each has its own.
    kinds, kind = np.unique(widths[:plain], return_inverse=True)
    far = np.zeros((kinds.size, chain.change.size + int(kinds.max(initial=0))))
    for row, width in zip(far, kinds, strict=True):
        row[: chain.change.size + width - 1] = np.convolve(chain.change, np.full(width, 1 / width))
    lowest, highest = _extent(chain)
    cells = np.arange(starts.size)
    begin = np.searchsorted(bounds, starts + lowest, side="right") - 1
    end = np.searchsorted(bounds, bounds[1:] - 1 + highest, side="right") - 1
    down = max(int((cells - np.maximum(begin, 0)).max()), 0)
    up = max(int((np.minimum(end, starts.size - 1) - cells).max()), 0)
    storage = np.zeros((starts.size, 2 * up + down + 1))
    within = storage[:, up:]
    # Cells in the midst of others of the same width have the same row.
    same = np.flatnonzero(widths != np.bincount(widths).argmax())
    after = int(same[same < widths.size // 2].max(initial=-1)) + down + 2
    until = min(plain, int(same[same >= widths.size // 2].min(initial=widths.size)) - up - 1)
    at = cells[:plain]
    if after < until and (widths[after - down - 1 : until + up + 1] == widths[after]).all():
        at = np.concatenate([cells[: after + 1], cells[until:plain]])
    _fill(chain, bounds, far, kind[at], starts[at] + chain.first, at, (down, up), storage)
    if at.size < plain:
        within[after + 1 : until] = within[after]
    if plain < starts.size:
        near, first = _near_rows(chain, bounds, widths, plain)
        at = cells[plain:]
        _fill(chain, bounds, near, at - plain, starts[plain:] + first, at, (down, up), storage)
    within[:, down] += 1.0
    return storage, up, down


def _fill(
    chain: Chain, bounds: IntArray, rows: FloatArray, which: IntArray, first: IntArray, cells: IntArray,
    widths: tuple[int, int], storage: FloatArray,
) -> None:  # fmt: skip
    """The bands of some cells, which lead to states by the rows ``which`` from ``first`` on; rows become sums."""
    down, up = widths
    # What leads to an empty system or below, which is the first cell.
    some = np.flatnonzero((cells <= down) & (first <= 0)) if chain.low == 0 else cells[:0]
    lost = np.zeros(some.size)
    if some.size:
        kinds, kind = np.unique(which[some], return_inverse=True)
        at, weights = first[some], np.exp(-chain.theta * np.arange(rows.shape[1]))
        below = np.cumsum(rows[kinds] * weights, axis=1)
        lost = below[kind, np.minimum(-at, weights.size - 1)] * np.exp(-chain.theta * at)
    np.cumsum(rows, axis=1, out=rows)
    bands(rows, which, first, cells, bounds, down, down + up + 1, storage)
    storage[cells[some], up + down - cells[some]] = -lost


def _extent(chain: Chain) -> tuple[int, int]:
    """The lowest and the highest change that matter on the coarse grid."""
    running = np.cumsum(chain.change)
    matter = np.flatnonzero((running > _COARSE * running[-1]) & (running < (1 - _COARSE) * running[-1]))
    lowest, highest = chain.first + int(matter[0]), chain.first + int(matter[-1]) + 1
    if chain.plain < chain.states:
        kernel = chain.kernel
        refused = np.cumsum(chain.near.refused)
        first = kernel.first_change - kernel.batch.interval + kernel.overhead.first
        lowest = min(lowest, first + int(np.searchsorted(refused, _COARSE * refused[-1])))
        highest = max(highest, kernel.overhead.last - kernel.batch.interval)
    return lowest, highest


def _near_rows(chain: Chain, bounds: IntArray, widths: IntArray, plain: int) -> tuple[FloatArray, int]:
    """Rows of the cells near the limit, from the change ... of their first state on; the interrupt takes its mean."""
    kernel = chain.kernel
    over = round(kernel.overhead.mean)
    state = np.arange(int(bounds[plain]), chain.states)[::-1]
    cell = np.searchsorted(bounds, state, side="right") - 1
    rooms = np.maximum(kernel.limit - over - chain.low - state, 0)
    shape = (widths.size - plain, chain.near.length + int(widths[plain:].max()))
    weights = float(chain.overhead.sum()) / widths[cell]
    rows = chain.near.sums(rooms, weights, cell - plain, state - bounds[cell], shape)
    return rows, kernel.first_change + over - kernel.batch.interval
