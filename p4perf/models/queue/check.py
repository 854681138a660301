"""The stationary work by a second method: Eq. 6-8 applied again and again, from an empty and from a full system.

It uses neither the transition matrix nor its factors. Agreement of both starts with the direct solve shows that the
distribution is the stationary one, and that there is only one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import fft

from p4perf.errors import UsageError
from p4perf.models.queue.distributions import FloatArray, Lattice
from p4perf.models.queue.moderated import ModeratedQueue
from p4perf.models.queue.stationary import stationary_by_iteration
from p4perf.models.queue.work import Batches, collect


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far the second method is from the direct solve.

    Args:
        largest: largest absolute difference of the distribution functions, over both starts.
        iterations: steps of both starts together.
    """

    largest: float
    residual: float
    iterations: int


def second_method(queue: ModeratedQueue, seen: Lattice, *, tolerance: float = 1e-13) -> Agreement:
    """Compare the work that batches find with that of the second method.

    Args:
        seen: what :meth:`ModeratedQueue.solve` found.
        tolerance: residual at which the iteration ends.

    Raises:
        UsageError: the system has no limit.
    """
    if queue.limit is None:
        raise UsageError("the second method needs a limit of the buffer")
    batches = collect(queue.arrival, queue.tau)
    states = max(queue.limit + max(queue.service.last, queue.interrupt.last), seen.last + 1)
    image = _Image(batches, queue.service, queue.interrupt, queue.limit, states)
    exact = np.cumsum(seen.dense(image.states))
    largest, worst, count = 0.0, 0.0, 0
    for start in (0, min(queue.limit, image.states) - 1):
        first = np.zeros(image.states)
        first[start] = 1.0
        found, residual, steps = stationary_by_iteration(image, first, tolerance=tolerance)
        largest = max(largest, float(np.abs(np.cumsum(found) - exact).max()))
        worst, count = max(worst, residual), count + steps
    return Agreement(largest, worst, count)


class _Image:
    """One batch later."""

    def __init__(self, batches: Batches, service: Lattice, overhead: Lattice, limit: int, states: int) -> None:
        self._limit, self._overhead = limit, overhead
        self.states = states
        top = self.states + overhead.last + service.last
        self._length = top
        width = batches.size_interval.shape[1]
        self._size = fft.next_fast_len(top + width + 1, real=True)
        self._service = fft.rfft(service.dense(self._size))
        self._joint = np.conj(fft.rfft(batches.size_interval, self._size, axis=1))
        self._first, self._width = batches.first_interval, width

    def __call__(self, work: FloatArray) -> FloatArray:
        front = np.zeros(self._size)
        begun = np.convolve(work, self._overhead.probabilities)
        front[self._overhead.first : self._overhead.first + begun.size] = begun
        total = np.zeros(self._service.size, dtype=np.complex128)
        for joint in self._joint:
            accepted = front.copy()
            accepted[self._limit :] = 0.0
            front[: self._limit] = 0.0
            front += np.maximum(fft.irfft(fft.rfft(accepted) * self._service, self._size), 0.0)
            total += fft.rfft(front) * joint
        later = fft.irfft(total, self._size)
        # Element k is the work k before the interval s0 + r ends at k - r; the last ones are negative.
        ordered = np.concatenate([later[-self._width :], later[: -self._width]])
        zero = self._width + self._first
        out = np.zeros(self.states)
        rest = ordered[zero + 1 : zero + self.states]
        out[1 : 1 + rest.size] = np.maximum(rest, 0.0)
        out[0] = ordered[: zero + 1].sum()
        return np.asarray(out / out.sum())
