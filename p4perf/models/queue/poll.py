"""A core that polls: batches of packets from a ring, without interrupts, as DPDK's programs do.

Whenever it is free, the core takes up to ``burst`` packets from a ring of ``ring`` places and works on them for
T_n = c0 + B_1 + .. + B_n; a poll that finds nothing takes ``empty_poll``. Packets that find the ring full are lost. A
packet leaves when its own service ends. The load is (c0 / burst + E[B]) / E[A]: near saturation all batches are full.

What a poll finds is a Markov chain on the number of packets in the ring if the arrivals have no memory, else on that
number and the time until the next arrival. Then the k-th arrival of a cycle, at offset x, at position
pos = Q - n + k behind what stays in the ring, has the delay

    D = (T_n - x) + floor((pos - 1) / burst) full batches + c0 + B_1 + .. + B_j,  j = (pos - 1) mod burst + 1.

On the lattice a packet that comes at the very moment of a poll is left to the next one, as one that comes when an
aggregation interval ends is left to the next interval. A Poisson process has no such moments.

No outside source: derived here, and compared with simulation (docs/queue.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import fft

from p4perf.errors import UsageError
from p4perf.models.queue.lattice import TAIL, FloatArray, Lattice, powers
from p4perf.models.queue.results import RESOLUTION, QueueResult
from p4perf.models.queue.shapes import check_lattice

MAX_RING = 16_384
MAX_BURST = 1024
_ZERO = Lattice(np.ones(1))


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """Arrivals without memory on the lattice: one in a step with probability 1 / mean (geometric interarrival times).

    Args:
        mean: mean interarrival time [steps], one at least.

    Raises:
        UsageError: the mean is below one.
    """

    mean: float

    def __post_init__(self) -> None:
        if not 1 <= self.mean < math.inf:
            raise UsageError(f"geometric times have a mean of 1 step at least, not {self.mean:g}")


@dataclass(frozen=True, slots=True)
class Poisson:
    """A Poisson process: arrivals without memory in continuous time.

    Args:
        mean: mean interarrival time [steps].

    Raises:
        UsageError: the mean is not positive.
    """

    mean: float

    def __post_init__(self) -> None:
        if not 0 < self.mean < math.inf:
            raise UsageError(f"a mean time is positive and finite, not {self.mean:g} steps")


Arrivals = Lattice | Bernoulli | Poisson


@dataclass(frozen=True, eq=False)
class PollQueue:
    """One operating point; all times in steps.

    Args:
        arrival: interarrival time, or a process without memory.
        service: work for one packet.
        batch_cost: work for one batch, c0.
        ring: places of the ring.
        burst: most packets of a batch.
        empty_poll: time of a poll that finds nothing, one step at least.
        step_us: length of a step [us].

    Raises:
        UsageError: something is negative or out of range, or the lattice is too coarse.
    """

    arrival: Arrivals
    service: Lattice
    batch_cost: Lattice | int = 0
    ring: int = 1024
    burst: int = 32
    empty_poll: int = 1
    step_us: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.step_us < math.inf:
            raise UsageError(f"a step of the lattice is longer than zero, not {self.step_us:g} us")
        if not 1 <= self.ring <= MAX_RING:
            raise UsageError(f"a ring has 1 to {MAX_RING} places, not {self.ring}")
        if not 1 <= self.burst <= MAX_BURST:
            raise UsageError(f"a batch has 1 to {MAX_BURST} packets, not {self.burst}")
        if self.empty_poll < 1:
            raise UsageError("an empty poll takes one step at least", hint="take a finer lattice")
        check_lattice(self.arrival.mean, "interarrival time")
        check_lattice(self.service.mean, "service time")
        if isinstance(self.batch_cost, int):
            if self.batch_cost < 0:
                raise UsageError(f"the work for a batch is negative: {self.batch_cost} steps")
            object.__setattr__(self, "batch_cost", _ZERO.shifted(self.batch_cost))
        if self.service.last + self.cost.last == 0 or self.service.first + self.cost.first == 0:
            raise UsageError("a batch takes one step at least", hint="take a finer lattice")

    @property
    def cost(self) -> Lattice:
        """Distribution of the work for a batch."""
        assert isinstance(self.batch_cost, Lattice)  # noqa: S101 - made so above
        return self.batch_cost

    @property
    def load(self) -> float:
        """Offered load: the work of full batches over the time between arrivals."""
        return (self.cost.mean / self.burst + self.service.mean) / self.arrival.mean

    def solve(self) -> QueueResult:
        """Processing time, loss and load.

        Raises:
            UsageError: the stationary distribution could not be found.
        """
        from p4perf.models.queue.poll_memoryless import follow_memoryless
        from p4perf.models.queue.poll_renewal import follow_renewal

        work = batch_work(self)
        if isinstance(self.arrival, Lattice):
            cycle = follow_renewal(self, self.arrival, work)
        else:
            cycle = follow_memoryless(self, self.arrival, work)
        offered = cycle.mean_time / self.arrival.mean
        loss = cycle.lost / offered
        # The chain counts a packet at the moment of a poll as seen: one step earlier than it comes here.
        delay = _delays(self, cycle.arrivals).shifted(0 if isinstance(self.arrival, Poisson) else 1)
        accepted = float(cycle.arrivals.sum())
        return QueueResult(
            delay=delay,
            loss=loss if loss >= RESOLUTION else 0.0,
            load=self.load,
            packet_load=self.service.mean / self.arrival.mean,
            utilisation=cycle.busy / cycle.mean_time,
            mean_batch=cycle.taken / cycle.full_cycles if cycle.full_cycles > 0 else 0.0,
            mean_interval=cycle.mean_time,
            step_us=self.step_us,
            residual=cycle.residual,
            balance=(accepted - cycle.taken) / offered,
            seen=Lattice(cycle.ring / cycle.ring.sum()),
        )


@dataclass(frozen=True, eq=False)
class Cycle:
    """A stationary cycle, from one poll to the next.

    Args:
        arrivals: expected accepted arrivals at position pos + 1 of the ring, y steps before the next poll;
            (ring, steps).
        lost: expected arrivals that found the ring full.
        mean_time: mean length of a cycle [steps].
        busy: mean time of it that is work [steps].
        taken: mean number of packets that the poll took.
        full_cycles: share of the polls that found packets.
        ring: distribution of what a poll finds [packets].
        residual: as in :class:`~p4perf.models.queue.results.QueueResult`.
    """

    arrivals: FloatArray
    lost: float
    mean_time: float
    busy: float
    taken: float
    full_cycles: float
    ring: FloatArray
    residual: float


def batch_work(queue: PollQueue) -> FloatArray:
    """Row n is the distribution of T_n, n = 0 .. burst; row 0 is that of an empty poll."""
    most = min(queue.burst, queue.ring)
    longest = queue.cost.last + most * queue.service.last
    length = max(longest, queue.empty_poll) + 1
    cost = queue.cost.dense(queue.cost.last + 1)
    out = powers(queue.service.dense(queue.service.last + 1), most, length)
    for n in range(1, most + 1):
        out[n] = np.convolve(out[n], cost)[:length] if cost.size < 64 else _with_cost(out[n], cost)
    out[0] = 0.0
    out[0, queue.empty_poll] = 1.0
    tail = np.cumsum(out[:, ::-1], axis=1)[:, ::-1].max(axis=0)
    kept = out[:, : max(int(np.flatnonzero(tail > TAIL)[-1]), queue.empty_poll) + 1]
    return np.ascontiguousarray(kept / kept.sum(axis=1, keepdims=True))


def _with_cost(row: FloatArray, cost: FloatArray) -> FloatArray:
    size = fft.next_fast_len(row.size + cost.size, real=True)
    both = fft.irfft(fft.rfft(row, size) * fft.rfft(cost, size), size)[: row.size]
    return np.maximum(both, 0.0)


def _delays(queue: PollQueue, arrivals: FloatArray) -> Lattice:
    """The delay of accepted packets, by FFT."""
    most = min(queue.burst, queue.ring)
    full = queue.cost.last + most * queue.service.last
    groups = -(-arrivals.shape[0] // most)
    size = fft.next_fast_len(arrivals.shape[1] + groups * full + 1, real=True)
    cost = fft.rfft(queue.cost.dense(size))
    service = fft.rfft(queue.service.dense(size))
    batch = cost * service**most
    total = np.zeros(service.size, dtype=np.complex128)
    for group in reversed(range(groups)):
        # Horner: what stands behind one full batch more waits for one more.
        total *= batch
        own = np.ones_like(service)
        for position in range(group * most, min((group + 1) * most, arrivals.shape[0])):
            own = own * service
            if arrivals[position].any():
                total += fft.rfft(arrivals[position], size) * own
    delay = fft.irfft(total * cost, size)
    delay[delay < 1e-16 * float(delay.max())] = 0.0
    return Lattice(delay / delay.sum())
