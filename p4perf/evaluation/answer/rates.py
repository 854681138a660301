"""From cycles to packets a second, of one core and of several, and to bits on a line.

    packets/s = cores * clock / cycles,    at most line rate / (8 * (frame + 20 bytes))

Cores are taken to share nothing, so that several do the multiple of one. A frame takes 20 bytes on Ethernet besides
itself: preamble and start delimiter 8, gap 12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from p4perf.errors import UsageError
from p4perf.models.eo.composition import MAX_FRAME_BYTES, MIN_FRAME_BYTES, OVERHEAD_BYTES

FRAME_SIZES_BYTES = (64, 128, 256, 512, 1024, 1280, 1518)
"""Frame sizes of Ethernet with FCS (RFC 2544, section 9.1)."""

RateBound = Literal["cpu", "line"]


@dataclass(frozen=True, slots=True)
class Band:
    """A value with its interval."""

    value: float
    low: float
    high: float

    def inverse(self, numerator: float) -> Band:
        """``numerator / x``; an end that is not above zero becomes infinity."""
        return Band(*(numerator / x if x > 0 else math.inf for x in (self.value, self.high, self.low)))

    def times(self, factor: float) -> Band:
        """Multiplied by something positive."""
        return Band(self.value * factor, self.low * factor, self.high * factor)

    def at_most(self, limit: float) -> Band:
        """No part of it above a limit."""
        return Band(*(min(x, limit) for x in (self.value, self.low, self.high)))


@dataclass(frozen=True, slots=True)
class SizeRate:
    """What is reached with frames of one size.

    Args:
        frame_bytes: frame size with FCS.
        mpps: million packets a second of all cores.
        gbps: 10**9 bit a second on the line, with preamble and gap.
        line_mpps: what the line carries.
        bound: what limits: the cores, or the line.
    """

    frame_bytes: int
    mpps: Band
    gbps: Band
    line_mpps: float
    bound: RateBound


def per_core(cycles: Band, clock_hz: float) -> Band:
    """Million packets a second of one core."""
    return cycles.inverse(clock_hz / 1e6)


def line_mpps(line_rate_bps: float, frame_bytes: int) -> float:
    """Million frames of a size that a line carries in a second."""
    return line_rate_bps / (8 * (frame_bytes + OVERHEAD_BYTES)) / 1e6


def size_rate(core_mpps: Band, cores: int, line_rate_bps: float, frame_bytes: int) -> SizeRate:
    """What cores reach with frames of a size on a line."""
    line = line_mpps(line_rate_bps, frame_bytes)
    all_cores = core_mpps.times(cores)
    mpps = all_cores.at_most(line)
    wire_kbit = 8 * (frame_bytes + OVERHEAD_BYTES) / 1e3
    return SizeRate(frame_bytes, mpps, mpps.times(wire_kbit), line, "cpu" if all_cores.value < line else "line")


def line_rate_from_bytes(mpps: float, line_rate_bps: float) -> int | None:
    """The smallest frame with which a line is full, None if the largest of Ethernet is not enough [bytes]."""
    if not mpps > 0:
        return None
    smallest = MIN_FRAME_BYTES
    if math.isfinite(mpps):
        smallest = max(math.ceil(line_rate_bps / (8e6 * mpps) - OVERHEAD_BYTES - 1e-9), MIN_FRAME_BYTES)
    return smallest if smallest <= FRAME_SIZES_BYTES[-1] else None


def check_frame(frame_bytes: int) -> None:
    """Refuse a size that Ethernet has not.

    Raises:
        UsageError: it is none.
    """
    if not MIN_FRAME_BYTES <= frame_bytes <= MAX_FRAME_BYTES:
        raise UsageError(
            f"a frame of {frame_bytes} B is none: it has {MIN_FRAME_BYTES} to {MAX_FRAME_BYTES} B with its FCS"
        )
