"""A processor behind a card that moderates interrupts: processing time and loss by discrete-time analysis.

Gebert et al. 2016, "Performance Modeling of Softwarized Network Functions Using Discrete-Time Analysis", with
corrections (docs/estimates.md). The card makes batches (:mod:`p4perf.models.queue.work`), the processor is a queue
GI[X]/GI/1-L with bounded delay (:mod:`p4perf.models.queue.work`).

Which moderation interval is best at a load: the one that makes the mean or a percentile smallest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import fft

from p4perf.errors import NoVerdictError, UsageError
from p4perf.models.queue.distributions import (
    RESOLUTION,
    FloatArray,
    Lattice,
    QueueResult,
    as_lattice,
    check_lattice,
    objective_us,
)
from p4perf.models.queue.stationary import MAX_STATES, decay, reach, stationary_by_iteration, stationary_work
from p4perf.models.queue.work import Batches, batch_kernel, collect, follow

RESIDUAL = 1e-10
"""A stationary distribution that misses its equations by more is not given out."""


@dataclass(frozen=True, eq=False)
class ModeratedQueue:
    """One operating point; all times in steps.

    Args:
        moderation: aggregation interval tau, a number of steps or a distribution.
        overhead: work o of an interrupt, which stands in front of its batch, also if all of it is refused.
        limit: L: a packet that finds work of L or more in front of it is refused; None: never.

    Raises:
        UsageError: a time is negative, the lattice is too coarse, or the load is one or more without a limit.
    """

    arrival: Lattice
    service: Lattice
    moderation: Lattice | int
    overhead: Lattice | int = 0
    limit: int | None = None
    step_us: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.step_us < math.inf:
            raise UsageError(f"a step of the lattice is longer than zero, not {self.step_us:g} us")
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"the limit of the buffer is one step at least, not {self.limit}")
        check_lattice(self.arrival.mean, "interarrival time")
        check_lattice(self.service.mean, "service time")
        if self.service.last == 0:
            raise UsageError("the service time is zero", hint="is the lattice too coarse?")
        _ = self.tau, self.interrupt  # refuses what is negative

    @cached_property
    def tau(self) -> Lattice:
        return as_lattice(self.moderation, "moderation interval")

    @cached_property
    def interrupt(self) -> Lattice:
        return as_lattice(self.overhead, "overhead")

    def load(self) -> float:
        """Offered load, interrupts included: E[B] / E[A] + E[o] / E[S]."""
        interval = collect(self.arrival, self.tau).mean_interval
        return self.service.mean / self.arrival.mean + self.interrupt.mean / interval

    def solve(self) -> QueueResult:
        """Processing time, loss and load.

        Raises:
            UsageError: the load is one or more without a limit, or the system is too large for this lattice.
        """
        small, factor = self._compressed()
        solved = small._solve()
        return solved if factor == 1 else _stretched(solved, factor, self.step_us)

    def _compressed(self) -> tuple[ModeratedQueue, int]:
        """The same with common divisors of all times taken out: fewer states, and none that is never reached."""
        parts = (self.arrival, self.service, self.tau, self.interrupt)
        factor = math.gcd(*(part.divisor() for part in parts))
        if factor <= 1:
            return self, 1
        # u <= L - 1 holds for multiples of the factor up to floor((L - 1) / factor).
        limit = None if self.limit is None else (self.limit - 1) // factor + 1
        arrival, service, tau, overhead = (part.compressed(factor) for part in parts)
        return ModeratedQueue(arrival, service, tau, overhead, limit), factor

    def _solve(self) -> QueueResult:
        batches = collect(self.arrival, self.tau)
        packet_load = self.service.mean / self.arrival.mean
        load = packet_load + self.interrupt.mean / batches.mean_interval
        limit = self.limit
        if limit is None:
            limit = _endless(batches, self, load)
        kernel = batch_kernel(batches, self.service, self.interrupt, limit)
        work = stationary_work(kernel)
        found = follow(work, kernel, batches)
        if found.residual > RESIDUAL:
            message = f"the stationary distribution could not be found (residual {found.residual:.2g})"
            raise UsageError(message, hint="change the lattice or the load a little, or simulate")
        loss = found.refused / float(batches.reached.sum())
        utilisation = 1 - found.idle / batches.mean_interval
        implied = 1 - (utilisation - self.interrupt.mean / batches.mean_interval) / packet_load
        return QueueResult(
            delay=found.delay,
            loss=loss if loss >= RESOLUTION else 0.0,
            load=load,
            packet_load=batches.mean_size * self.service.mean / batches.mean_interval,
            utilisation=utilisation,
            mean_batch=batches.mean_size,
            mean_interval=batches.mean_interval,
            step_us=self.step_us,
            residual=found.residual,
            balance=loss - implied,
            seen=Lattice(work / work.sum()),
        )


def _endless(batches: Batches, queue: ModeratedQueue, load: float) -> int:
    if load >= 1:
        hint = "give a limit (--buffer), or a lower rate, a longer moderation interval or a shorter service time"
        raise UsageError(f"the load is {load:.4g}: without a limit of the buffer the queue grows for ever", hint=hint)
    free = batch_kernel(batches, queue.service, queue.interrupt, 1 << 40)
    change, first = free.unlimited
    length = reach(decay(change, first))
    if not length + free.batch.rooms < MAX_STATES:
        hint = "a coarser lattice, or a limit"
        raise UsageError(f"at a load of {load:.6g} the queue is too long for this lattice", hint=hint)
    return math.ceil(length) + free.batch.rooms + queue.interrupt.last + 1


def _stretched(result: QueueResult, factor: int, step_us: float) -> QueueResult:
    return replace(
        result,
        delay=result.delay.stretched(factor),
        mean_interval=result.mean_interval * factor,
        step_us=step_us,
        seen=None if result.seen is None else result.seen.stretched(factor),
    )


GRID = 20
"""Intervals that are tried first, evenly on a logarithmic axis."""


@dataclass(frozen=True, eq=False)
class Tuned:
    """The best interval [steps]; of all tried ones [steps] the objective [us], infinite in overload, and the loss."""

    moderation: int
    objective_us: float
    result: QueueResult
    tried: tuple[tuple[int, float, float], ...]


def tune(queue: ModeratedQueue, objective: str, *, max_loss: float = 0.0, low: int, high: int) -> Tuned:
    """Search the interval with the smallest objective whose loss is not above a bound.

    The objective is computed on a grid and then around the best point, down to single steps.

    Args:
        queue: the system; its own moderation interval does not matter.
        objective: ``mean``, or a percentile such as ``p99``.

    Raises:
        UsageError: the bounds are no interval, or the objective is unknown.
        NoVerdictError: no interval keeps the loss below the bound.
    """
    if not 1 <= low <= high:
        raise UsageError(f"the moderation interval is tuned within 1 step at least, not {low} to {high}")
    if not 0 <= max_loss < 1:
        raise UsageError(f"a loss is 0 to 1, not {max_loss:g}")
    known: dict[int, tuple[float, QueueResult | None]] = {}

    def value(steps: int) -> float:
        if steps not in known:
            known[steps] = _value(replace(queue, moderation=Lattice(np.ones(1), steps)), objective, max_loss)
        return known[steps][0]

    grid = sorted({round(v) for v in np.geomspace(low, high, GRID)})
    best = min(grid, key=value)
    at = grid.index(best)
    left, right = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    while right - left > 2:
        third = max((right - left) // 3, 1)
        a, b = left + third, right - third
        if a >= b:
            break
        if value(a) <= value(b):
            right = b
        else:
            left = a
    for steps in range(left, right + 1):
        value(steps)
    best = min(known, key=lambda steps: (known[steps][0], steps))
    found = known[best][1]
    if found is None or not math.isfinite(known[best][0]):
        message = f"no moderation interval of {low} to {high} steps keeps the loss at {max_loss:g} or below"
        raise NoVerdictError(message, hint="a lower rate, a larger bound, or a wider range")
    tried = tuple((s, v, math.nan if r is None else r.loss) for s, (v, r) in sorted(known.items()))
    return Tuned(best, known[best][0], found, tried)


def _value(queue: ModeratedQueue, objective: str, max_loss: float) -> tuple[float, QueueResult | None]:
    if queue.limit is None and queue.load() >= 1:
        return math.inf, None
    result = queue.solve()
    return (objective_us(result, objective) if result.loss <= max_loss else math.inf), result


@dataclass(frozen=True, slots=True)
class SecondMethod:
    """How far Eq. 6-8, applied again and again to an empty and to a full system, are from the direct solve.

    It uses neither the transition matrix nor its factors. Agreement of both starts with the direct solve shows that the
    distribution is the stationary one, and that there is only one. ``largest`` is the largest absolute difference of
    the distribution functions over both starts.
    """

    largest: float
    residual: float


def second_method(queue: ModeratedQueue, seen: Lattice) -> SecondMethod:
    """Compare the work that batches find, as :meth:`ModeratedQueue.solve` found it, with that of the second method.

    Raises:
        UsageError: the system has no limit.
    """
    if queue.limit is None:
        raise UsageError("the second method needs a limit of the buffer")
    batches = collect(queue.arrival, queue.tau)
    states = max(queue.limit + max(queue.service.last, queue.interrupt.last), seen.last + 1)
    image = _Image(batches, queue.service, queue.interrupt, queue.limit, states)
    exact = np.cumsum(seen.dense(image.states))
    largest = worst = 0.0
    for start in (0, min(queue.limit, image.states) - 1):
        first = np.zeros(image.states)
        first[start] = 1.0
        found, residual = stationary_by_iteration(image, first)
        largest = max(largest, float(np.abs(np.cumsum(found) - exact).max()))
        worst = max(worst, residual)
    return SecondMethod(largest, worst)


class _Image:
    """One batch later."""

    def __init__(self, batches: Batches, service: Lattice, overhead: Lattice, limit: int, states: int) -> None:
        self._limit, self._overhead = limit, overhead
        self.states = states
        top = self.states + overhead.last + service.last
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
