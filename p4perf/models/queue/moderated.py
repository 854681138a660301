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
from scipy import fft

from p4perf.errors import UsageError
from p4perf.models.queue.batches import Batches, collect
from p4perf.models.queue.lattice import FloatArray, Lattice, convolve
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
        found = _follow(work, batches, self.service, self.interrupt, limit)
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


@dataclass(frozen=True, eq=False)
class _Path:
    """What a stationary batch goes through."""

    delay: Lattice
    refused: float
    batch_refused: float
    idle: float
    residual: float


def _follow(work: FloatArray, batches: Batches, service: Lattice, overhead: Lattice, limit: int) -> _Path:
    """Packet by packet through a batch that finds ``work``: delays, refusals, and the work that the next batch finds.

    Eq. 7: the work in front of packet i+1 is that in front of packet i, plus a service time where that is below L.
    Delay of packet i (replaces Eq. 12, 13): W_i + work in front, given that it is below L, + own service; weight
    P(X >= i) P(accepted). Refused packets (replaces Eq. 11): sum_i P(X >= i) P(work in front of packet i >= L).
    This does not use the transition matrix, so the residual checks the whole solution.
    """
    b = service.dense(service.last + 1)
    kept = np.flatnonzero(work)
    low = int(kept[0])
    seen = np.convolve(work[low : int(kept[-1]) + 1], overhead.probabilities)
    low += overhead.first
    # Accepted packets find the work low .. L - 1 in front of them, refused ones L and more.
    room = max(limit - low, 0)
    count = batches.sizes.size
    accepted, current = [], seen[:room]
    refused = np.zeros((count, max(service.last, seen.size - room, 1)))
    refused[0, : max(seen.size - room, 0)] = seen[room:]
    for i in range(1, count + 1):
        accepted.append(current)
        if i < count:
            behind = convolve(current, b) if current.size else current
            current, over = behind[:room], behind[room:]
            refused[i] = refused[i - 1]
            refused[i, : over.size] += over
    if not any(front.size for front in accepted):
        raise UsageError("every packet is refused: an interrupt alone takes as long as the buffer allows")
    delay, after = _transforms(accepted, b, batches)
    idle, residual = _next(work, after, low, refused, limit, batches)
    distribution = np.trim_zeros(delay)
    lost = refused.sum(axis=1)
    weights = np.cumsum((batches.sizes / np.arange(1, count + 1))[::-1])[::-1]
    return _Path(
        delay=Lattice(distribution / distribution.sum(), low + int(np.flatnonzero(delay)[0])),
        refused=float(batches.reached @ lost),
        batch_refused=float(weights @ lost),
        idle=idle,
        residual=residual,
    )


def _transforms(fronts: list[FloatArray], b: FloatArray, batches: Batches) -> tuple[FloatArray, FloatArray]:
    """Sums over the packets of a batch, by FFT: delays, and the accepted work less the time until the next batch.

    Args:
        fronts: work in front of packet i where it is accepted, from the lowest work on.
        b: service time, from 0 on.
        batches: of X and S.

    Returns:
        Delays less the lowest work; and sum_i P(work after packet i = low + k, X = i, S = s0 + r) at ``k - r``, where
        element -k counts from the end of the array.
    """
    widest = max(front.size for front in fronts)
    intervals = batches.size_interval.shape[1]
    size = fft.next_fast_len(widest + b.size + max(batches.waiting.shape[1], intervals) + 1, real=True)
    service = fft.rfft(b, size)
    delays = np.zeros(service.size, dtype=np.complex128)
    next_work = np.zeros(service.size, dtype=np.complex128)
    block = max(1, 4_000_000 // size)
    for at in range(0, len(fronts), block):
        part = fronts[at : at + block]
        rows = np.zeros((len(part), size))
        for row, front in zip(rows, part, strict=True):
            row[: front.size] = front
        spectra = fft.rfft(rows, axis=1)
        stop = at + len(part)
        delays += np.einsum("ij,ij->j", spectra, fft.rfft(batches.waiting[at:stop], size, axis=1))
        joint = fft.rfft(batches.size_interval[at:stop], size, axis=1)
        next_work += np.einsum("ij,ij->j", spectra, np.conj(joint))
    delay = fft.irfft(delays * service, size)
    # What is shorter than the shortest delay, or longer than the longest, is rounding.
    longest = widest - 1 + b.size - 1 + batches.waiting.shape[1] - 1
    delay[longest + 1 :] = 0.0
    delay[: int(np.flatnonzero(b)[0]) + 1] = 0.0
    delay[delay < np.finfo(np.float64).eps * float(delay.max())] = 0.0
    return delay, np.asarray(fft.irfft(next_work * service, size))


def _next(
    work: FloatArray, after: FloatArray, low: int, refused: FloatArray, limit: int, batches: Batches
) -> tuple[float, float]:
    """Mean idle time of the processor in an interval, and how far the work of the next batch is from this one's.

    ``after`` is of the batches whose last packet was accepted, ``refused`` row i the work L + k before packet i of
    those where it was not: the work then stays as it is.
    """
    width = batches.size_interval.shape[1]
    lowest = min(low, limit) - (width - 1) - batches.first_interval
    highest = max(max(low + after.size - width, limit + refused.shape[1]) - batches.first_interval, 0)
    out = np.zeros(highest - lowest + 1)
    begin = low - batches.first_interval - lowest
    out[begin : begin + after.size - width] += after[: after.size - width]
    if width > 1:
        out[begin - width + 1 : begin] += after[1 - width :]
    stays = refused.T @ batches.size_interval
    begin = limit - batches.first_interval - lowest
    for k, row in enumerate(stays):
        out[begin + k - width + 1 : begin + k + 1] += row[::-1]
    zero = -lowest
    idle = float(out[: max(zero, 0)] @ np.arange(-lowest, -lowest - max(zero, 0), -1)) if zero > 0 else 0.0
    found = np.zeros(work.size + 1)
    positive = out[zero:] if zero >= 0 else np.concatenate([np.zeros(-zero), out])
    found[: min(positive.size, work.size)] = positive[: work.size]
    found[-1] = positive[work.size :].sum()
    found[0] += out[: max(zero, 0)].sum()
    return idle, float(np.abs(found[:-1] - work).sum() + abs(found[-1]))


def _stretched(result: QueueResult, factor: int, step_us: float) -> QueueResult:
    """The result in a unit that is ``factor`` times smaller."""
    return replace(
        result,
        delay=result.delay.stretched(factor),
        mean_interval=result.mean_interval * factor,
        step_us=step_us,
        seen=None if result.seen is None else result.seen.stretched(factor),
    )
