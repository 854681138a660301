"""The same systems by discrete-event simulation, for what has no analysis and as an independent check.

It follows single packets and clocks (events.c) and uses nothing of the analysis but the distributions. Interarrival
times are drawn, or are those of a trace again and again, with all its bursts and dependencies: a packet capture, say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p4perf.errors import UsageError
from p4perf.models.queue import _events
from p4perf.models.queue.distributions import QUANTILES, Lattice, exponential, geometric
from p4perf.models.queue.moderated import ModeratedQueue
from p4perf.models.queue.poll import Bernoulli, Poisson, PollQueue

REPLICATIONS = 16
"""Independent ones, from which the intervals come."""
LEVEL = 0.95
MAX_TRACE = 10_000_000
FINER = 8
"""Steps of a simulated Poisson process in one of the analysis, in poll mode."""
_HISTOGRAM = 1 << 21
_WARMUP = 0.1

Counts = tuple[int, int, int, int, int, float, float, float]
"""What a replication counts, as events.c gives it."""


@dataclass(frozen=True, slots=True)
class Estimated:
    """A mean over replications and the half-width of its 95 % interval (Student's t)."""

    value: float
    half_width: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimated:
        if len(values) < 2:
            return cls(float(np.mean(values)), math.inf)
        from scipy import stats  # slow to load, and seldom needed

        width = float(stats.t.ppf((1 + LEVEL) / 2, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values)))
        return cls(float(np.mean(values)), width)


@dataclass(frozen=True, eq=False)
class Simulated:
    """What a simulation saw of so many packets, without warming up; delays of all of them in steps of ``step_us``."""

    mean_us: Estimated
    std_us: Estimated
    quantiles_us: dict[float, Estimated]
    loss: Estimated
    utilisation: Estimated
    mean_batch: Estimated
    delay: Lattice
    packets: int
    step_us: float


def simulate(
    queue: ModeratedQueue | PollQueue, packets: int = 10_000_000, *, gaps: npt.ArrayLike | None = None, seed: int = 1
) -> Simulated:
    """Simulate an operating point.

    Args:
        queue: the system. A Poisson process comes on a finer lattice, with its mean preserved.
        packets: packets in all :data:`REPLICATIONS` together; each warms up with a tenth more.
        gaps: interarrival times of a trace [steps of the queue], used again and again instead of the distribution; each
            replication begins somewhere else.

    Raises:
        UsageError: a number is not positive, or the trace is empty, negative or all at once.
    """
    if packets < REPLICATIONS:
        raise UsageError(f"a simulation needs one packet for each replication at least, not {packets}")
    if gaps is None and isinstance(queue, PollQueue) and isinstance(queue.arrival, Poisson):
        queue = _finer(queue)
    trace = _trace(gaps)
    each = packets // REPLICATIONS
    warmup = max(int(_WARMUP * each), 1)
    rows, histograms = [], []
    for index in range(REPLICATIONS):
        histogram = np.zeros(_HISTOGRAM, dtype=np.int64)
        random = np.random.SeedSequence([seed, index]).generate_state(1, np.uint64)
        counts = _run(queue, trace, each + warmup, warmup, int(random[0]), histogram)
        if counts[1] == 0:
            raise UsageError("no packet was accepted in a replication", hint="simulate more packets")
        if counts[4] >= _HISTOGRAM:
            hint = "a coarser lattice, or a limit"
            raise UsageError(f"a processing time of {counts[4]} steps is too long to count", hint=hint)
        rows.append(counts)
        histograms.append(histogram)
    return _summary(queue, rows, histograms)


def _run(
    queue: ModeratedQueue | PollQueue,
    trace: npt.NDArray[np.int64],
    packets: int,
    warmup: int,
    seed: int,
    histogram: npt.NDArray[np.int64],
) -> Counts:
    if isinstance(queue, ModeratedQueue):
        arrival, tau, over = queue.arrival, queue.tau, queue.interrupt
        limit, ring, burst, empty = queue.limit or 0, 1, 1, 1
    else:
        arrival, tau, over = _interarrival(queue.arrival), queue.extra, queue.cost
        limit, ring, burst, empty = 0, queue.ring, queue.burst, queue.empty_poll
    service = queue.service
    return _events.simulate(
        isinstance(queue, PollQueue), np.array(arrival.probabilities), arrival.first, np.array(service.probabilities),
        service.first, np.array(tau.probabilities), tau.first, np.array(over.probabilities), over.first, trace, limit,
        ring, burst, empty, packets, warmup, seed, histogram,
    )  # fmt: skip


def _finer(queue: PollQueue) -> PollQueue:
    """The same on a finer lattice, where hardly any packet of a Poisson process comes at the moment of a poll."""
    return PollQueue(
        Poisson(queue.arrival.mean * FINER),
        queue.service.stretched(FINER),
        queue.cost.stretched(FINER),
        queue.ring,
        queue.burst,
        queue.empty_poll * FINER,
        queue.step_us / FINER,
        queue.extra.stretched(FINER),
    )


def _interarrival(arrival: Lattice | Bernoulli | Poisson) -> Lattice:
    if isinstance(arrival, Bernoulli):
        return geometric(arrival.mean)
    return exponential(arrival.mean) if isinstance(arrival, Poisson) else arrival


def _trace(gaps: npt.ArrayLike | None) -> npt.NDArray[np.int64]:
    if gaps is None:
        return np.zeros(0, dtype=np.int64)
    given = np.asarray(gaps, dtype=np.float64).ravel()
    if not 0 < given.size <= MAX_TRACE:
        raise UsageError(f"a trace has 1 to {MAX_TRACE} interarrival times, not {given.size}")
    if not np.isfinite(given).all() or (given < 0).any():
        raise UsageError("an interarrival time of the trace is negative or not finite")
    # The epochs are rounded, not the gaps: so no error adds up, and the mean stays.
    steps = np.diff(np.rint(np.concatenate([[0.0], np.cumsum(given)]))).astype(np.int64)
    if not steps.any():
        raise UsageError("all packets of the trace come at once", hint="take a finer lattice")
    return np.asarray(steps, dtype=np.int64)


def _summary(
    queue: ModeratedQueue | PollQueue, rows: Sequence[Counts], histograms: Sequence[npt.NDArray[np.int64]]
) -> Simulated:
    step = queue.step_us
    longest = max(row[4] for row in rows) + 1
    delays = [Lattice(histogram[:longest] / histogram[:longest].sum()) for histogram in histograms]
    total = np.sum([h[:longest] for h in histograms], axis=0)
    return Simulated(
        mean_us=Estimated.of([delay.mean * step for delay in delays]),
        std_us=Estimated.of([delay.std * step for delay in delays]),
        quantiles_us={q: Estimated.of([delay.quantile(q) * step for delay in delays]) for q in QUANTILES},
        loss=Estimated.of([row[2] / row[0] for row in rows]),
        utilisation=Estimated.of([1 - row[6] / row[7] for row in rows]),
        mean_batch=Estimated.of([(row[1] if isinstance(queue, PollQueue) else row[0]) / row[3] for row in rows]),
        delay=Lattice(total / total.sum()),
        packets=sum(row[0] for row in rows),
        step_us=step,
    )
