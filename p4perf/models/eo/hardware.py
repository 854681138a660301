"""A machine as the mapping sees it: clock, cores, caches, memory, links, constants, and what each operation costs.

The time of one access is the textbook one that Baldi 2018 uses, ``(2 CAS + n - 1) / data rate`` for ``n`` transfers:
the CAS latency counts cycles of the memory clock, of which each has two transfers. Its "+ 3" is the fourth transfer, 32
bytes on a bus of eight. Two bounds follow: accesses in flight (Little's law), and transfers on the channels. The
numbers that the paper prints for memory follow from no grade of memory; see the page on elementary operations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

from p4perf.errors import UsageError
from p4perf.models.eo.operations import CostRule, Operation

DRAM = "DRAM"
"""The level behind all caches."""

LEVELS = ("L1", "L2", "L3", DRAM)
"""Levels of the memory hierarchy; their names stand for latencies in formulas."""

Fit = Literal["whole", "share"]
"""How tables lie in caches: ``whole``, in the first level that holds all of them, or each level its ``share``."""

Side = Literal["value", "low", "high"]


@dataclass(frozen=True, slots=True)
class HardwareValue:
    """A number with its interval (both ends None: none is known), unit and meaning."""

    value: Fraction
    low: Fraction | None = None
    high: Fraction | None = None
    unit: str = "cycles"
    description: str = ""

    def side(self, side: Side) -> Fraction:
        """The value or an end of its interval, which is the value where there is none."""
        found = getattr(self, side)
        return self.value if found is None else Fraction(found)


@dataclass(frozen=True, slots=True)
class Cache:
    """A level of cache.

    Attributes:
        size_bytes: what one core sees of it, or all cores of a socket if it is ``shared``.
        latency: cycles of a load that hits it, None: not known.
        holds_tables: whether tables may lie there; False where it is left to packets.
    """

    level: str
    size_bytes: int
    latency: HardwareValue | None = None
    holds_tables: bool = True
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Memory:
    """Main memory of one socket.

    Attributes:
        size_bytes: of all sockets together.
        latency: cycles of a load that misses all caches, None: not known.
        data_rate_mts: million transfers a second on a channel.
        cas_cycles: CAS latency, in cycles of the memory clock (half the data rate).
        bus_bytes: bytes of one transfer.
        access_bytes: bytes that one access moves.
        outstanding: accesses that one core has in flight at once.
        accesses_per_s: accesses a second of one core where they were measured; else they are calculated.
    """

    size_bytes: int
    latency: HardwareValue | None = None
    data_rate_mts: float | None = None
    cas_cycles: float | None = None
    channels: int = 1
    bus_bytes: int = 8
    access_bytes: int = 64
    outstanding: float = 1.0
    accesses_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Links:
    """Network interfaces: how many ports, and the rate of each in bit/s."""

    ports: int
    rate_bps: float


@dataclass(frozen=True, slots=True)
class Profile:
    """Another way to read the same machine: what it changes of latencies, constants and rules."""

    name: str
    title: str = ""
    latencies: Mapping[str, HardwareValue] = field(default_factory=dict)
    constants: Mapping[str, HardwareValue] = field(default_factory=dict)
    rules: Mapping[str, CostRule] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hardware:
    """A machine. Cores are per socket; ``exclusive``: a line is in one level only, so that sizes of caches add up."""

    name: str
    clock_hz: float
    caches: tuple[Cache, ...]
    memory: Memory
    rules: Mapping[str, CostRule]
    title: str = ""
    source: str = ""
    sockets: int = 1
    cores: int = 1
    links: Links | None = None
    constants: Mapping[str, HardwareValue] = field(default_factory=dict)
    fit: Fit = "whole"
    exclusive: bool = False
    profiles: tuple[Profile, ...] = ()
    profile: str = ""
    remarks: tuple[str, ...] = ()

    def with_profile(self, name: str | None) -> Hardware:
        """The machine as a profile reads it; without a name as its first profile does, if it has one.

        Raises:
            UsageError: it has no such profile.
        """
        if name is None and not self.profiles:
            return self
        found = [p for p in self.profiles if name in (p.name, None)]
        if not found:
            known = ", ".join(p.name for p in self.profiles) or "none"
            raise UsageError(f"hardware {self.name} has no profile {name!r}", hint=f"it has {known}")
        chosen = found[0]
        latencies = chosen.latencies
        return replace(
            self,
            caches=tuple(replace(c, latency=latencies.get(c.level, c.latency)) for c in self.caches),
            memory=replace(self.memory, latency=latencies.get(DRAM, self.memory.latency)),
            constants={**self.constants, **chosen.constants},
            rules={**self.rules, **chosen.rules},
            profile=chosen.name,
        )

    def rule(self, operation: Operation) -> CostRule:
        """What an operation costs here."""
        rule = self.rules.get(operation.name) or operation.rule
        if rule is None:
            message = f"hardware {self.name} says nothing of {operation.name}, and there is no default"
            hint = f"add a rule for {operation.signature} to its description"
            raise UsageError(message, key=f"operations.{operation.name}", hint=hint)
        return rule

    def names(self, side: Side = "value") -> dict[str, Fraction]:
        known = {name: value.side(side) for name, value in self.constants.items()}
        for level, latency in (*((c.level, c.latency) for c in self.caches), (DRAM, self.memory.latency)):
            if latency is not None:
                known[level] = latency.side(side)
        return known

    def capacity_bytes(self, level: str) -> int:
        """What caches up to a level hold of tables, in bytes; those that hold none do not count."""
        total = 0
        for cache in self.caches:
            if cache.holds_tables:
                total = total + cache.size_bytes if self.exclusive else cache.size_bytes
            if cache.level == level:
                return total if cache.holds_tables else 0
        return 0

    @property
    def total_cores(self) -> int:
        return self.sockets * self.cores


def transfers(memory: Memory) -> int:
    return math.ceil(memory.access_bytes / memory.bus_bytes)


def access_time_s(memory: Memory) -> float:
    """Time from an access to its last byte, in seconds."""
    if memory.cas_cycles is None or memory.data_rate_mts is None:
        what = "CAS latency" if memory.cas_cycles is None else "data rate"
        raise UsageError(f"the {what} of the memory is not known", hint="give cas_cycles and data_rate_mts of memory")
    return (2 * memory.cas_cycles + transfers(memory) - 1) / (memory.data_rate_mts * 1e6)


def accesses_per_s(memory: Memory, cores: int = 1, sockets: int = 1) -> float:
    """Accesses a second that these cores on these sockets get.

    The lower of what their outstanding misses allow and what the channels carry. Where accesses of one core were
    measured, these take the place of the former.

    Raises:
        UsageError: neither measured nor to be calculated.
    """
    if memory.accesses_per_s is not None:
        in_flight = cores * memory.accesses_per_s
        if memory.data_rate_mts is None:
            return in_flight
    else:
        in_flight = cores * memory.outstanding / access_time_s(memory)
    carried = sockets * memory.channels * (memory.data_rate_mts or 0.0) * 1e6 / transfers(memory)
    return min(in_flight, carried)
