"""Latency over rings from what the device itself says: the time of its batches, and the time that was stolen from it.

A device that polls counts its batches and their time by the number of packets in them, apart behind other work and
behind a look at the ring that found nothing. Both are lines: a batch of n packets takes a + b n, and c more behind an
empty look, when nothing of it is in caches and pipeline yet.

Something else has the core now and then: an interrupt, the machine below, another process. A look that finds nothing
and takes long shows for how long. While the device stands still for S, packets wait; the ring is worked off again after
S / (1 - l), l the load, and the packets of that time wait for something between 0 and S, uniformly. While the generator
stands still for S, packets become due that it then sends at once: they wait for something between 0 and l S.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from p4perf.errors import NoVerdictError
from p4perf.evaluation.load.histogram import LatencyHistogram
from p4perf.models.queue import Lattice, Poisson, PollQueue, distributions
from p4perf.models.templates import FloatArray

BURST = 32
FEWEST = 100
"""A mean over fewer batches says nothing of their time."""
SELDOM, LONG_US = 3, 500.0
"""Stolen times that are longer, and came less often, say little of the next moment."""
OUTLIER = 3.0
"""Latencies without a program of more times their median are those of stolen time."""

_CELLS = ("batches_after_work", "batches_after_idle")
_LONGEST_LOAD = 0.95
_SMALLEST_US = 1e-3
_SLOWER = (1.0, 1.1, 1.2, 1.35, 1.5, 1.7, 2.0, 2.5, 3.0)

Records = Sequence[Mapping[str, Any]]
"""What the native load generator says of loads; see :mod:`p4perf.testbeds.loadgen.native`."""


@dataclass(frozen=True, slots=True)
class BatchCost:
    """Time of a batch of n packets: ``batch_us + n * packet_us``, ``idle_us`` more behind a look that finds nothing.

    Such a look takes ``empty_us``.
    """

    batch_us: float
    packet_us: float
    idle_us: float
    empty_us: float

    @classmethod
    def of(cls, records: Records) -> BatchCost:
        """The lines through the mean times of batches, by least squares of the relative errors of all batches.

        Raises:
            NoVerdictError: there are too few batches of one size, or of two.
        """
        cells = [
            (behind, size, count, time_us / count)
            for record in records
            for behind, key in enumerate(_CELLS)
            for size, (count, time_us) in enumerate(record[key])
            if count >= FEWEST
        ]
        batches = [cell for cell in cells if cell[1] > 0]
        empty = [time_us for behind, size, _, time_us in cells if behind and not size]
        if len({size for _, size, _, _ in batches}) < 2 or not empty:
            raise NoVerdictError("there are too few batches to determine the cost of one", hint="offer load for longer")
        idle, sizes, counts, times = (np.array(column, dtype=np.float64) for column in zip(*batches, strict=True))
        weights = np.sqrt(counts) / times
        design = np.stack([np.ones_like(sizes), sizes, idle], axis=1)
        found, *_ = np.linalg.lstsq(design * weights[:, None], times * weights, rcond=None)
        batch, packet, more = (max(float(value), 0.0) for value in found)
        return cls(max(batch, _SMALLEST_US), packet, more, min(empty))

    def queue(self, rate_pps: float, ring: int, step_us: float) -> PollQueue:
        """The device under Poisson traffic of a rate."""
        packet_us = self.packet_us if self.packet_us > step_us else 0.0  # a lattice cannot tell it from nothing
        batch, packet, more = (
            distributions.from_samples([value / step_us]) for value in (self.batch_us, packet_us, self.idle_us)
        )
        empty = max(round(self.empty_us / step_us), 1)
        return PollQueue(Poisson(1e6 / rate_pps / step_us), packet, batch, ring, BURST, empty, step_us, more)


@dataclass(frozen=True, slots=True)
class StolenTime:
    """What share of its time a core stands still, by how long it does so at once [us]: device, and load generator."""

    device: tuple[tuple[float, float], ...]
    generator: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, records: Records) -> StolenTime:
        sending_us = sum(sum(record["sending_us"]) for record in records)
        idle_us = sum(record[key][0][1] for record in records for key in _CELLS)
        stood, stopped = _added(records, "device_stalls"), _added(records, "stalls")
        return cls(_shares(stood, idle_us), _shares(stopped, sending_us))

    @property
    def share(self) -> float:
        """Of both together."""
        return sum(share for share, _ in (*self.device, *self.generator))

    def delay(self, load: float, step_us: float) -> Lattice:
        """What it adds to the latency of a packet at a load [steps]."""
        load = min(load, _LONGEST_LOAD)
        spans = [(share / (1 - load), us) for share, us in self.device]
        spans += [(share / (1 - load), us * load) for share, us in self.generator]
        found = np.zeros(int(max((us for _, us in spans), default=0.0) / step_us) + 2)
        for share, us in spans:
            steps = max(round(us / step_us), 1)
            found[:steps] += share / steps
        found[0] += max(1 - found.sum(), 0.0)
        return Lattice(found / found.sum())


def _added(records: Records, key: str) -> list[tuple[int, float]]:
    return [
        (sum(n for n, _ in cells), sum(t for _, t in cells)) for cells in zip(*(r[key] for r in records), strict=True)
    ]


def _shares(cells: Sequence[tuple[int, float]], whole_us: float) -> tuple[tuple[float, float], ...]:
    return tuple((time_us / whole_us, time_us / count) for count, time_us in cells if _counts(count, time_us))


def _counts(count: int, time_us: float) -> bool:
    return count > 0 and (count >= SELDOM or time_us / count <= LONG_US)


def latency(
    program: BatchCost,
    nothing: BatchCost,
    floor: LatencyHistogram,
    stolen: StolenTime,
    *,
    rate_pps: float,
    most_pps: float,
    ring: int,
    step_us: float,
    slower: float = 1.0,
) -> Lattice:
    """The latency over rings at a rate [steps].

    Args:
        nothing: cost of batches of a device that sends packets back as they are, through the same rings.
        floor: latency through that device at the rate.
        most_pps: rate at which the program works off a ring that is never empty. A long batch may cost more than the
            lines of short ones say, and it is long batches that follow on stolen time.
        slower: how much slower than that it works behind stolen time, see :func:`slower_behind_stolen`.
    """
    own = nothing.queue(rate_pps, ring, step_us).solve().delay
    link_us = _without_stolen(floor) - own.mean * step_us
    times = np.maximum(link_us, 0.0) / step_us
    link = distributions.from_samples(times, [float(count) for _, count in floor.counts[: len(times)]])
    delayed = stolen.delay(slower * rate_pps / most_pps, step_us)
    return program.queue(rate_pps, ring, step_us).solve().delay.plus(link).plus(delayed)


def slower_behind_stolen(p99_us: float, predicted: Callable[[float], Lattice], step_us: float) -> float:
    """How much slower a program works behind stolen time, when caches are cold: by its latency at some load.

    Args:
        p99_us: 99th percentile that was measured [us].
        predicted: the latency at that load for a factor [steps].
    """
    enough = (factor for factor in _SLOWER if predicted(factor).quantile(0.99) * step_us >= p99_us)
    return next(enough, _SLOWER[-1])


def _without_stolen(floor: LatencyHistogram) -> FloatArray:
    """Middles of the buckets that are no later than what is usual without a program [us]."""
    middles = np.array([(low + high) / 2 / 1e3 for low, high in floor.edges()])
    return np.asarray(middles[middles < OUTLIER * floor.percentile_us(50)])
