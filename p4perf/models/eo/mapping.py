"""From a sequence of operations and a machine to a cost breakdown, to rates, and to the machines that can run it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from p4perf.errors import UsageError
from p4perf.models.eo.expressions import Expression
from p4perf.models.eo.hardware import DRAM, LEVELS, Hardware, Side, accesses_per_s
from p4perf.models.eo.operations import Call, CostRule, NetworkFunction
from p4perf.models.estimate import Estimate, exactly
from p4perf.models.notation import size_text

RECEIVE, SEND = "I/O_mem", "mem_I/O"

_SIDES: tuple[Side, ...] = ("value", "low", "high")


@dataclass(frozen=True, slots=True)
class BreakdownLine:
    """What one operation of a function costs a packet.

    Attributes:
        times: average number of times that a packet meets it.
        cycles: core cycles of all of these, with every constant of the machine at the ends of its interval.
        accesses: accesses to memory, by the level where they hit.
    """

    function: str
    call: Call
    times: float
    cycles: Estimate
    accesses: Mapping[str, float]
    table_bytes: float


@dataclass(frozen=True, slots=True)
class OperationBreakdown:
    """All operations of a function, or of several after one another, and the bytes of their tables together."""

    lines: tuple[BreakdownLine, ...]
    table_bytes: float
    shares: Mapping[str, float]
    """Share of the accesses to tables that each level serves."""

    @property
    def cycles(self) -> Estimate:
        """Core cycles of one packet."""
        return sum((line.cycles for line in self.lines), exactly(0.0))

    @property
    def accesses(self) -> dict[str, float]:
        totals = {level: sum(line.accesses.get(level, 0.0) for line in self.lines) for level in LEVELS}
        return {level: total for level, total in totals.items() if total}

    @property
    def dram_accesses(self) -> float:
        """Accesses of one packet that miss all caches."""
        return self.accesses.get(DRAM, 0.0)


def make_breakdown(
    functions: Sequence[NetworkFunction],
    hardware: Hardware,
    *,
    frame_bytes: int,
    symbols: Mapping[str, Fraction] | None = None,
    remote: float = 0.0,
    others_bytes: float = 0.0,
    keep_io: bool = False,
) -> OperationBreakdown:
    """Map functions that a packet goes through one after another on one core.

    Args:
        remote: share of packets that come into the cache of another socket.
        others_bytes: tables of other functions in the caches that cores share, in bytes.
        keep_io: each function receives and sends; otherwise only the first receives and only the last sends.

    Raises:
        UsageError: an operation that the machine does not know, a latency that is missing, a negative size, a table
            larger than the memory, or a remote share that the machine has no rule for.
    """
    met = _calls(functions, frame_bytes, symbols, keep_io)
    rules = {call.operation.name: hardware.rule(call.operation) for _, call, _ in met}
    if remote and all(rule.remote_cycles is None for rule in rules.values()):
        raise UsageError(f"hardware {hardware.name} says nothing of packets in the cache of another socket")
    share = Fraction(str(remote))
    costs = [_CallCost(hardware, share, owner, call, rules[call.operation.name], values) for owner, call, values in met]
    sizes = [cost.table_bytes() for cost in costs]
    tables: dict[tuple[str, str] | int, Fraction] = {}
    for number, (cost, size) in enumerate(zip(costs, sizes, strict=True)):
        key = (cost.owner, cost.call.table) if cost.call.table else number
        tables[key] = max(tables.get(key, Fraction(0)), size)
    total = sum(tables.values(), Fraction(0))
    if total > hardware.memory.size_bytes:
        raise UsageError(
            f"the tables of {', '.join(f.name for f in functions)} take {size_text(float(total), 4)} together, "
            f"but the memory of {hardware.name} has {size_text(hardware.memory.size_bytes, 4)}"
        )
    shares = _shares(hardware, total, Fraction(others_bytes))
    lines = [cost.line(size, shares) for cost, size in zip(costs, sizes, strict=True)]
    return OperationBreakdown(tuple(lines), float(total), {level: float(share) for level, share in shares.items()})


def _calls(
    functions: Sequence[NetworkFunction], frame_bytes: int, symbols: Mapping[str, Fraction] | None, keep_io: bool
) -> list[tuple[str, Call, dict[str, Fraction]]]:
    given, met = symbols or {}, []
    for number, function in enumerate(functions):
        # One that no function has is refused by the first.
        own = {s.name for s in function.symbols} | (given.keys() - {s.name for f in functions for s in f.symbols})
        values = function.values(frame_bytes, {n: v for n, v in given.items() if n in own})
        between = ({RECEIVE} if number else set()) | ({SEND} if number < len(functions) - 1 else set())
        met += [
            (function.name, call, call.values(values))
            for call in function.calls
            if keep_io or call.operation.name not in between
        ]
    return met


def _shares(hardware: Hardware, total: Fraction, others: Fraction) -> dict[str, Fraction]:
    """Which share of the accesses to tables each level serves."""
    shares: dict[str, Fraction] = {}
    served = Fraction(0)
    for cache in hardware.caches:
        capacity = hardware.capacity_bytes(cache.level)
        wanted = total + others if cache.shared else total
        reached = (
            Fraction(1) if wanted <= capacity else Fraction(capacity) / wanted if hardware.fit == "share" else served
        )
        if capacity and reached > served:
            shares[cache.level] = reached - served
            served = reached
    if served < 1:
        shares[DRAM] = 1 - served
    return shares


@dataclass(frozen=True, slots=True)
class _CallCost:
    """Evaluates the rule of one operation on one machine."""

    hardware: Hardware
    remote: Fraction
    owner: str
    call: Call
    rule: CostRule
    values: Mapping[str, Fraction]

    def table_bytes(self) -> Fraction:
        if self.rule.table_bytes is None:
            return Fraction(0)
        size = self._value(self.rule.table_bytes)
        if size > self.hardware.memory.size_bytes:
            raise UsageError(
                f"{self.call}: the table takes {size_text(float(size), 4)}, but the memory of {self.hardware.name} has "
                f"{size_text(self.hardware.memory.size_bytes, 4)}",
                hint="use fewer or smaller entries, or another machine",
            )
        return size

    def line(self, size: Fraction, shares: Mapping[str, Fraction]) -> BreakdownLine:
        call = self.call
        cycles = Estimate(*(float(call.times * self._cycles(shares, side)) for side in _SIDES))
        if cycles.value < 0:
            raise UsageError(
                f"hardware {self.hardware.name}: the rule of {call.operation.name} gives {cycles.value:g} cycles for "
                f"{call}",
                hint="no operation costs less than nothing; max(0, ...) cuts a formula off",
            )
        where = shares if self.rule.table_bytes is not None else {DRAM: Fraction(1)}
        count = call.times * self._accesses()
        accesses = {level: float(count * share) for level, share in where.items() if count}
        return BreakdownLine(self.owner, call, float(call.times), cycles, accesses, float(size))

    def _cycles(self, shares: Mapping[str, Fraction], side: Side) -> Fraction:
        rule = self.rule
        cached = None if DRAM in shares else rule.cycles_cached
        cycles = self._value(rule.cycles if cached is None else cached, side)
        if rule.stalls:
            count = self._accesses()
            for level, share in shares.items():
                if level in rule.stalls:
                    cycles += count * share * self._value(rule.stalls[level], side)
        return self._mixed(cycles, rule.remote_cycles, side)

    def _accesses(self) -> Fraction:
        count = self._value(self.rule.accesses) if self.rule.accesses is not None else Fraction(0)
        return self._mixed(count, self.rule.remote_accesses)

    def _mixed(self, near: Fraction, away: Expression | None, side: Side = "value") -> Fraction:
        """The mean over packets in the cache of this socket and of another one."""
        if not self.remote or away is None:
            return near
        return (1 - self.remote) * near + self.remote * self._value(away, side)

    def _value(self, formula: Expression, side: Side = "value") -> Fraction:
        operation = self.call.operation.name
        try:
            return formula.value({**self.hardware.names(side), **self.values})
        except UsageError as error:
            name = error.key
            if name is None:
                raise
            if name in LEVELS:
                raise UsageError(
                    f"hardware {self.hardware.name} gives no latency of {name}, which {operation} needs ({formula})",
                    hint=f"add latency_cycles to {'memory' if name == DRAM else name} of its description",
                ) from error
            raise UsageError(
                f"hardware {self.hardware.name}, rule of {operation}: {name} in {formula} is neither a "
                "constant nor a parameter"
            ) from error


OVERHEAD_BYTES = 20
"""What a frame takes on Ethernet besides itself: preamble and start delimiter 8, gap 12 bytes."""

MIN_FRAME_BYTES = 64
MAX_FRAME_BYTES = 9216

Bound = Literal["cpu", "memory", "link"]


def check_frame(frame_bytes: int) -> None:
    """Refuse a size that Ethernet has not."""
    if not MIN_FRAME_BYTES <= frame_bytes <= MAX_FRAME_BYTES:
        message = f"a frame of {frame_bytes} B is none: it has {MIN_FRAME_BYTES} to {MAX_FRAME_BYTES} B with its FCS"
        raise UsageError(message)


@dataclass(frozen=True, slots=True)
class RateEstimate:
    """What a machine does with a function.

    Attributes:
        frame_bytes: frame size with the FCS.
        wire_bytes: the same with preamble and gap: what :attr:`gbps` counts.
        mpps_per_core: million packets a second of one core, if nothing but cycles counted.
        limits: million packets a second that each resource allows: ``cpu``, ``memory``, ``link``.
    """

    functions: tuple[str, ...]
    hardware: Hardware
    frame_bytes: int
    wire_bytes: int
    cores: int
    remote: float
    breakdown: OperationBreakdown
    mpps_per_core: float
    limits: Mapping[Bound, float]

    @property
    def bound(self) -> Bound:
        return min(self.limits, key=lambda resource: self.limits[resource])

    @property
    def mpps(self) -> float:
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
) -> RateEstimate:
    """Estimate functions that packets go through one after another, every core all of them.

    The frame size, with FCS, is by default that of the first function.

    Raises:
        UsageError: no function, a frame size that Ethernet has not, more cores than there are, a remote share outside
            of 0 to 1, a cost of zero, or one of the errors of the mapping.
    """
    if not functions:
        raise UsageError("there is no function to estimate")
    size = functions[0].frame_bytes if frame_bytes is None else frame_bytes
    check_frame(size)
    if not 1 <= cores <= hardware.total_cores:
        raise UsageError(f"{cores} cores are not possible: {hardware.name} has {hardware.total_cores}")
    if not 0 <= remote <= 1:
        raise UsageError(f"the remote share is {remote:g}, but it lies between 0 and 1")
    breakdown = make_breakdown(
        functions,
        hardware,
        frame_bytes=size,
        symbols=symbols,
        remote=remote,
        others_bytes=others_bytes,
        keep_io=keep_io,
    )
    if breakdown.cycles.value <= 0:
        raise UsageError(f"{functions[0].name} costs nothing on {hardware.name}: there is no rate to tell")
    per_core = hardware.clock_hz / breakdown.cycles.value / 1e6
    wire = size + OVERHEAD_BYTES
    limits: dict[Bound, float] = {"cpu": cores * per_core}
    if breakdown.dram_accesses:
        sockets = math.ceil(cores / hardware.cores)
        limits["memory"] = accesses_per_s(hardware.memory, cores, sockets) / breakdown.dram_accesses / 1e6
    if hardware.links is not None:
        limits["link"] = hardware.links.ports * hardware.links.rate_bps / (8 * wire) / 1e6
    names = tuple(f.name for f in functions)
    return RateEstimate(names, hardware, size, wire, cores, remote, breakdown, per_core, limits)


@dataclass(frozen=True, slots=True)
class Demand:
    """Functions in a row and their load. ``remote``: share of packets that come into the cache of another socket."""

    name: str
    functions: tuple[NetworkFunction, ...]
    load_mpps: float
    frame_bytes: int | None = None
    remote: float = 0.0


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that could run them, and how many of its cores are free for that."""

    name: str
    hardware: Hardware
    cores: int


@dataclass(frozen=True, slots=True)
class CoreNeed:
    """What one demand takes of a host: cores, and the estimate for one core."""

    demand: Demand
    cores: float
    estimate: RateEstimate


@dataclass(frozen=True, slots=True)
class PlacementVerdict:
    """Whether a host can run all demands at once.

    Attributes:
        use: share of each resource that they take: ``cpu``, ``memory`` (accesses a second), ``link``, ``capacity``
            (bytes of tables). Above 1 it is not possible.
    """

    host: Host
    possible: bool
    bound: str
    use: dict[str, float]
    needs: tuple[CoreNeed, ...]
    reason: str = ""


def place(
    hosts: Sequence[Host], demands: Sequence[Demand], *, share_cores: bool = False
) -> tuple[PlacementVerdict, ...]:
    """A verdict for each host, in order, if all demands run on it at the same time.

    Args:
        share_cores: a core may run several demands; otherwise each gets whole cores of its own.

    Raises:
        UsageError: no hosts or demands, or a load that is none.
    """
    if not hosts or not demands:
        raise UsageError("placing takes at least one host and one function")
    for demand in demands:
        if not demand.load_mpps > 0 or math.isinf(demand.load_mpps):
            raise UsageError(f"{demand.name}: a load of {demand.load_mpps:g} Mpps is none", hint="give a positive rate")
    return tuple(_judge(host, demands, share_cores) for host in hosts)


def _judge(host: Host, demands: Sequence[Demand], share_cores: bool) -> PlacementVerdict:
    try:
        alone = [_estimate(host, demand, 0.0) for demand in demands]
        bytes_ = [e.breakdown.table_bytes for e in alone]
        needs = []
        for demand, own in zip(demands, bytes_, strict=True):
            found = _estimate(host, demand, sum(bytes_) - own)
            cores = demand.load_mpps / found.mpps_per_core
            needs.append(CoreNeed(demand, cores if share_cores else math.ceil(cores - 1e-9), found))
    except UsageError as error:
        return PlacementVerdict(
            host, False, "capacity" if "memory of" in error.message else "unknown", {}, (), error.message
        )
    use = _use(host, needs, sum(bytes_))
    bound = max(use, key=lambda resource: use[resource])
    possible = use[bound] <= 1 + 1e-9
    reason = "" if possible else f"{bound} is taken {100 * use[bound]:.0f} %"
    return PlacementVerdict(host, possible, bound, use, tuple(needs), reason)


def _estimate(host: Host, demand: Demand, others_bytes: float) -> RateEstimate:
    return estimate(
        demand.functions, host.hardware, frame_bytes=demand.frame_bytes, remote=demand.remote, others_bytes=others_bytes
    )


def _use(host: Host, needs: Sequence[CoreNeed], table_bytes: float) -> dict[str, float]:
    hardware = host.hardware
    use = {"cpu": sum(need.cores for need in needs) / host.cores}
    accesses = sum(need.demand.load_mpps * 1e6 * need.estimate.breakdown.dram_accesses for need in needs)
    if accesses:
        sockets = math.ceil(host.cores / hardware.cores)
        use["memory"] = accesses / accesses_per_s(hardware.memory, host.cores, sockets)
    if hardware.links is not None:
        bits = sum(need.demand.load_mpps * 1e6 * 8 * need.estimate.wire_bytes for need in needs)
        use["link"] = bits / (hardware.links.ports * hardware.links.rate_bps)
    use["capacity"] = table_bytes / hardware.memory.size_bytes
    return use
