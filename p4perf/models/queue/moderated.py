"""A processor behind a card that moderates interrupts: processing time and loss by discrete-time analysis.

Gebert et al. 2016, "Performance Modeling of Softwarized Network Functions Using Discrete-Time Analysis", with
corrections (docs/queue.md). The card makes batches (:mod:`p4perf.models.queue.batches`), the processor is a queue
GI[X]/GI/1-L with bounded delay (:mod:`p4perf.models.queue.work`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from p4perf.errors import UsageError
from p4perf.models.queue.batches import Batches, collect
from p4perf.models.queue.lattice import Lattice
from p4perf.models.queue.path import follow
from p4perf.models.queue.printed import printed_result
from p4perf.models.queue.results import RESOLUTION, QueueResult
from p4perf.models.queue.shapes import check_lattice
from p4perf.models.queue.stationary import MAX_STATES, decay, reach, stationary_work
from p4perf.models.queue.work import batch_kernel

Profile = Literal["exact", "printed"]
RESIDUAL = 1e-10
"""A stationary distribution that misses its equations by more is not given out."""
_ZERO = Lattice(np.ones(1))


@dataclass(frozen=True, eq=False)
class ModeratedQueue:
    """One operating point; all times in steps.

    Args:
        arrival: interarrival time of packets.
        service: service time of a packet.
        moderation: aggregation interval tau, a number of steps or a distribution.
        overhead: work o of an interrupt, which stands in front of its batch, also if all of it is refused.
        limit: L: a packet that finds work of L or more in front of it is refused; None: never.
        step_us: length of a step [us].

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
        object.__setattr__(self, "moderation", _constant(self.moderation, "moderation interval"))
        object.__setattr__(self, "overhead", _constant(self.overhead, "overhead"))

    @property
    def tau(self) -> Lattice:
        """Distribution of the aggregation interval."""
        assert isinstance(self.moderation, Lattice)  # noqa: S101 - made so above
        return self.moderation

    @property
    def interrupt(self) -> Lattice:
        """Distribution of the work of an interrupt."""
        assert isinstance(self.overhead, Lattice)  # noqa: S101 - made so above
        return self.overhead

    def load(self) -> float:
        """Offered load, interrupts included: E[B] / E[A] + E[o] / E[S]."""
        interval = collect(self.arrival, self.tau).mean_interval
        return self.service.mean / self.arrival.mean + self.interrupt.mean / interval

    def solve(self, profile: Profile = "exact") -> QueueResult:
        """Processing time, loss and load.

        Args:
            profile: ``exact``, or ``printed``: the equations as they stand in the paper, which do not describe the
                system of its text. For comparison only.

        Raises:
            UsageError: the load is one or more without a limit, or the system is too large for this lattice.
        """
        if profile == "printed":
            if self.limit is None:
                raise UsageError("the printed equations need a limit of the buffer")
            return printed_result(self.arrival, self.service, self.tau, self.limit, self.step_us)
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
            raise UsageError(
                f"the stationary distribution could not be found (residual {found.residual:.2g})",
                hint="change the lattice or the load a little, or simulate",
            )
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
            batch_loss=found.batch_refused if found.batch_refused >= RESOLUTION else 0.0,
            seen=Lattice(work / work.sum()),
        )


def _constant(value: Lattice | int, what: str) -> Lattice:
    if isinstance(value, Lattice):
        return value
    if value < 0:
        raise UsageError(f"the {what} is negative: {value} steps")
    return _ZERO.shifted(value)


def _endless(batches: Batches, queue: ModeratedQueue, load: float) -> int:
    """A limit that is never met."""
    if load >= 1:
        raise UsageError(
            f"the load is {load:.4g}: without a limit of the buffer the queue grows for ever",
            hint="give a limit, or a lower rate, a longer moderation interval or a shorter service time",
        )
    free = batch_kernel(batches, queue.service, queue.interrupt, 1 << 40)
    change, first = free.unlimited()
    length = reach(decay(change, first))
    if not length + free.rooms < MAX_STATES:
        raise UsageError(
            f"at a load of {load:.6g} the queue is too long for this lattice", hint="a coarser lattice, or a limit"
        )
    return math.ceil(length) + free.rooms + queue.interrupt.last + 1


def _stretched(result: QueueResult, factor: int, step_us: float) -> QueueResult:
    """The result in a unit that is ``factor`` times smaller."""
    return replace(
        result,
        delay=result.delay.stretched(factor),
        mean_interval=result.mean_interval * factor,
        step_us=step_us,
        seen=None if result.seen is None else result.seen.stretched(factor),
    )
