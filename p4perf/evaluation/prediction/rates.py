"""From cycles to packets a second, bits on a line, latency and loss.

    packets/s = cores * clock / cycles,    at most line rate / (8 * (frame + 20 bytes))

Cores are taken to share nothing, so that several do the multiple of one. A frame takes 20 bytes on Ethernet besides
itself: preamble and start delimiter 8, gap 12.

The service time of a packet is the cost of its path through the program over the clock. Packets on different paths have
different service times, so the law of the service time is the distribution of the cost over all paths. Arrivals are a
Poisson process that is spread evenly over the cores; each has a ring of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from p4perf.errors import UsageError
from p4perf.evaluation.prediction.breakdown import CostSpread
from p4perf.models.eo.mapping import MAX_FRAME_BYTES, MIN_FRAME_BYTES, OVERHEAD_BYTES
from p4perf.models.estimate import Estimate, exactly

FRAME_SIZES_BYTES = (64, 128, 256, 512, 1024, 1280, 1518)
"""Frame sizes of Ethernet with FCS (RFC 2544, section 9.1)."""

RateBound = Literal["cpu", "line"]


@dataclass(frozen=True, slots=True)
class SizeRate:
    """What is reached with frames of one size.

    Args:
        mpps: million packets a second of all cores.
        gbps: 10**9 bit a second on the line, with preamble and gap.
    """

    frame_bytes: int
    mpps: Estimate
    gbps: Estimate
    line_mpps: float
    bound: RateBound


def per_core(cycles: Estimate, clock_hz: float) -> Estimate:
    return cycles.map(lambda x: clock_hz / 1e6 / x if x > 0 else math.inf)


def line_mpps(line_rate_bps: float, frame_bytes: int) -> float:
    return line_rate_bps / (8 * (frame_bytes + OVERHEAD_BYTES)) / 1e6


def size_rate(core_mpps: Estimate, cores: int, line_rate_bps: float, frame_bytes: int) -> SizeRate:
    line = line_mpps(line_rate_bps, frame_bytes)
    all_cores = core_mpps * cores
    mpps = all_cores.map(lambda x: min(x, line))
    wire_kbit = 8 * (frame_bytes + OVERHEAD_BYTES) / 1e3
    return SizeRate(frame_bytes, mpps, mpps * wire_kbit, line, "cpu" if all_cores.value < line else "line")


def line_rate_from_bytes(mpps: float, line_rate_bps: float) -> int | None:
    """The smallest frame with which a line is full, None if the largest of Ethernet is not enough [bytes]."""
    if not mpps > 0:
        return None
    smallest = MIN_FRAME_BYTES
    if math.isfinite(mpps):
        smallest = max(math.ceil(line_rate_bps / (8e6 * mpps) - OVERHEAD_BYTES - 1e-9), MIN_FRAME_BYTES)
    return smallest if smallest <= FRAME_SIZES_BYTES[-1] else None


def check_frame(frame_bytes: int) -> None:
    """Refuse a size that Ethernet has not."""
    if not MIN_FRAME_BYTES <= frame_bytes <= MAX_FRAME_BYTES:
        raise UsageError(
            f"a frame of {frame_bytes} B is none: it has {MIN_FRAME_BYTES} to {MAX_FRAME_BYTES} B with its FCS"
        )


QUANTILES: tuple[tuple[str, float], ...] = (("p50_us", 0.5), ("p90_us", 0.9), ("p99_us", 0.99), ("p999_us", 0.999))
STEPS = 8
"""Steps of the lattice in the mean service time: quantiles are exact to that."""

MAX_LOAD = 1.5
"""Largest load of a core: beyond it, loss makes latencies meaningless."""


@dataclass(frozen=True, slots=True)
class Offered:
    """What is offered to the program.

    Args:
        load: share of what cores and line allow at the expected cost; None if a rate is given.
        rate_mpps: million packets a second over all cores; None if a share is given.
    """

    load: float | None = 0.7
    rate_mpps: float | None = None
    ring: int = 1024
    burst: int = 32

    def __post_init__(self) -> None:
        if (self.load is None) == (self.rate_mpps is None):
            raise UsageError("latency needs a load or a rate, and not both")
        if self.load is not None and not 0 < self.load <= MAX_LOAD:
            raise UsageError(f"a load is a share of what the program can do, above 0 and up to {MAX_LOAD:g}")
        if self.rate_mpps is not None and not self.rate_mpps > 0:
            raise UsageError("a rate is more than zero")


@dataclass(frozen=True)
class LatencyAnswer:
    """Latency and loss at a load.

    Args:
        overloaded: whether the expected cost, or the upper end of its interval, is more than the cores can do.
    """

    rate_mpps: float
    load: Estimate
    loss: Estimate
    mean_us: Estimate
    quantiles_us: tuple[tuple[str, Estimate], ...]
    overloaded: bool


@dataclass(frozen=True, slots=True)
class _Solved:
    loss: float
    mean_us: float
    quantiles_us: tuple[float, ...]

    def slower(self, factor: float) -> _Solved:
        """The same system with all times multiplied by a factor."""
        return _Solved(self.loss, self.mean_us * factor, tuple(q * factor for q in self.quantiles_us))


def latency_at(
    spread: CostSpread, cycles: Estimate, clock_hz: float, cores: int, offered: Offered, possible_mpps: float
) -> LatencyAnswer:
    """Latency and loss of a program.

    The ends of the intervals come of the ends of the interval of the cost. With a load, a share of what the cores can
    do, the rate is another one where the cost is: all times grow with the cost. With a rate, or where the line is full
    before the cores are, the rate stays, and a higher cost is a higher load.

    Args:
        spread: distribution of the cost of packets [cycles]; its mean is the expected cost.
        possible_mpps: what cores and line allow at the expected cost.

    Raises:
        UsageError: more than :data:`MAX_LOAD` of what the cores can do is offered, or the queue cannot be solved.
    """
    mhz = clock_hz / 1e6
    most_mpps = cores * mhz / cycles.value
    rate_mpps = possible_mpps * offered.load if offered.load is not None else offered.rate_mpps or 0.0
    own_mpps = rate_mpps / cores
    load = cycles * (own_mpps / mhz)
    if load.value > MAX_LOAD:
        who = "one core" if cores == 1 else f"{cores} cores"
        message = f"{rate_mpps:.4g} Mpps are {load.value:.3g} times what {who} can do"
        raise UsageError(message, hint="offer less, or give more --cores")
    middle = _solve(spread, mhz, own_mpps, offered)
    if offered.load is not None and possible_mpps >= most_mpps * (1 - 1e-9):
        load = exactly(load.value)
        low, high = (middle.slower(end / cycles.value) for end in (cycles.low, cycles.high))
    else:
        # Both ends are kept within what the queue model can solve.
        lowest = max(cycles.low, 0.02 * cycles.value)
        highest = max(min(cycles.high, MAX_LOAD * mhz / own_mpps), cycles.value)
        low, high = (_solve(spread.scaled(end / cycles.value), mhz, own_mpps, offered) for end in (lowest, highest))
    return LatencyAnswer(
        rate_mpps=rate_mpps,
        load=load,
        loss=Estimate(middle.loss, low.loss, high.loss),
        mean_us=Estimate(middle.mean_us, low.mean_us, high.mean_us),
        quantiles_us=tuple(
            (name, Estimate(*ends))
            for (name, _), *ends in zip(QUANTILES, *(s.quantiles_us for s in (middle, low, high)), strict=True)
        ),
        overloaded=load.high > 1,
    )


def _solve(spread: CostSpread, mhz: float, own_mpps: float, offered: Offered) -> _Solved:
    from p4perf.evaluation.load.queue_sources import Law, data_law
    from p4perf.evaluation.load.queueing import System, operating_points

    step_us = spread.mean / mhz / STEPS
    # A packet takes one step at least, on a lattice that is made for the average one.
    times_us = np.maximum(spread.cycles / mhz, step_us)
    service = data_law(times_us.tolist(), spread.weights.tolist(), "service time")
    system = System(service, "poll", step_us, ring=offered.ring, burst=offered.burst, empty_poll_us=step_us)
    (point,) = operating_points(system, [Law("exponential", 1 / own_mpps)], [])
    result = point.result
    assert result is not None  # noqa: S101 - only traces have none
    return _Solved(result.loss, result.mean_us, tuple(result.quantile_us(share) for _, share in QUANTILES))
