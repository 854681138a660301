"""From a bill to rates: packets a second of one core and of several, bit/s on the wire, and what binds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from p4perf.errors import UsageError
from p4perf.models.eo.hardware import Hardware
from p4perf.models.eo.mapping import Bill, make_bill
from p4perf.models.eo.memory import accesses_per_s
from p4perf.models.eo.notation import NetworkFunction

OVERHEAD_BYTES = 20
"""What a frame takes on Ethernet besides itself: preamble and start delimiter 8, gap 12 bytes."""

MIN_FRAME_BYTES = 64
MAX_FRAME_BYTES = 9216

Bound = Literal["cpu", "memory", "link"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a machine does with a function.

    Attributes:
        functions: their names, in the order in which packets meet them.
        frame_bytes: frame size with the FCS.
        wire_bytes: the same with preamble and gap: what :attr:`gbps` counts.
        cores: that run the function.
        bill: cost of every operation.
        mpps_per_core: million packets a second of one core, if nothing but cycles counted.
        limits: million packets a second that each resource allows: ``cpu``, ``memory``, ``link``.
    """

    functions: tuple[str, ...]
    hardware: Hardware
    frame_bytes: int
    wire_bytes: int
    cores: int
    remote: float
    bill: Bill
    mpps_per_core: float
    limits: Mapping[Bound, float]

    @property
    def bound(self) -> Bound:
        """The resource that allows least."""
        return min(self.limits, key=lambda resource: self.limits[resource])

    @property
    def mpps(self) -> float:
        """Million packets a second of all cores together."""
        return self.limits[self.bound]

    @property
    def gbps(self) -> float:
        """10**9 bit a second on the wire, with preamble and gap."""
        return self.mpps * self.wire_bytes * 8 / 1e3


def estimate(
    functions: Sequence[NetworkFunction],
    hardware: Hardware,
    *,
    frame_bytes: int | None = None,
    cores: int = 1,
    symbols: Mapping[str, Fraction] | None = None,
    remote: float = 0.0,
    others_bytes: float = 0.0,
    keep_io: bool = False,
) -> Estimate:
    """Estimate functions that packets go through one after another, every core all of them.

    Args:
        functions: at least one.
        hardware: the machine, with the profile that is meant.
        frame_bytes: frame size with the FCS, in bytes; by default that of the first function.
        cores: cores that run them.
        symbols: values of symbols of the functions.
        remote: share of packets that come into the cache of another socket.
        others_bytes: tables of other functions in the caches that cores share, in bytes.
        keep_io: each function receives and sends; otherwise only the first receives and only the last sends.

    Raises:
        UsageError: no function, a frame size that Ethernet has not, more cores than there are, a remote share outside
            of 0 to 1, a cost of zero, or one of the errors of the mapping.
    """
    if not functions:
        raise UsageError("there is no function to estimate")
    size = functions[0].frame_bytes if frame_bytes is None else frame_bytes
    if not MIN_FRAME_BYTES <= size <= MAX_FRAME_BYTES:
        raise UsageError(f"a frame of {size} B is none: it has {MIN_FRAME_BYTES} to {MAX_FRAME_BYTES} B with its FCS")
    if not 1 <= cores <= hardware.total_cores:
        raise UsageError(f"{cores} cores are not possible: {hardware.name} has {hardware.total_cores}")
    if not 0 <= remote <= 1:
        raise UsageError(f"the remote share is {remote:g}, but it lies between 0 and 1")
    bill = make_bill(
        functions,
        hardware,
        frame_bytes=size,
        symbols=symbols,
        remote=remote,
        others_bytes=others_bytes,
        keep_io=keep_io,
    )
    if bill.cycles <= 0:
        raise UsageError(f"{functions[0].name} costs nothing on {hardware.name}: there is no rate to tell")
    per_core = hardware.clock_hz / bill.cycles / 1e6
    wire = size + OVERHEAD_BYTES
    limits: dict[Bound, float] = {"cpu": cores * per_core}
    if bill.dram_accesses:
        sockets = math.ceil(cores / hardware.cores)
        limits["memory"] = accesses_per_s(hardware.memory, cores, sockets) / bill.dram_accesses / 1e6
    if hardware.links is not None:
        limits["link"] = hardware.links.ports * hardware.links.rate_bps / (8 * wire) / 1e6
    names = tuple(f.name for f in functions)
    return Estimate(names, hardware, size, wire, cores, remote, bill, per_core, limits)
