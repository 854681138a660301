"""What a target or P4 dialect can do, as data: missing constructs with the reason, limits with their source.

A :class:`Capabilities` is one table. :func:`refusal` holds a program against it, before anything is generated or run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, get_args

from p4perf.errors import CapabilityError
from p4perf.programs import analysis, ir

if TYPE_CHECKING:
    from p4perf.programs.component import TrafficPlan

Construct = Literal[
    "exact",
    "lpm",
    "ternary",
    "repeated table",
    "conditional",
    "added header",
    "removed header",
    "hash crc16",
    "hash crc32",
    "hash checksum16",
    "checksum verify",
    "checksum update",
    "counter",
    "meter",
    "register read",
    "register write",
    "random",
    "recirculate",
    "resubmit",
    "clone",
    "multicast",
    "operator",
    "fence",
    "range",
    "optional",
    "entries one by one",
    "action selector",
    "control flow by table result",
    "exit",
    "branch in an action",
    "general expression",
    "compound condition",
    "parser computation",
    "noted parser error",
    "varying field",
    "signed field",
    "intrinsic metadata",
    "metadata kept for another pass",
    "byte counter",
    "hash of the payload",
    "digest",
    "truncation",
    "egress",
    "virtual I/O",
    "offered load",
]
"""Language constructs that a target may lack; the last one is a property of the traffic."""

CONSTRUCTS: tuple[Construct, ...] = get_args(Construct)

OF_OWN_PROGRAMS = CONSTRUCTS[CONSTRUCTS.index("range") : CONSTRUCTS.index("virtual I/O")]
"""Those that no component has, only programs that are read."""

_COMPONENTS = "what p4perf writes for it is what the programs of its components need"

NOT_OF_THE_LANGUAGE: Mapping[Construct, str] = MappingProxyType(
    {
        **dict.fromkeys(OF_OWN_PROGRAMS, _COMPONENTS),
        "operator": "operators are C functions of the libraries that dpdk-c is made of",
        "fence": "no language but C can order the instructions of a processor; dpdk-c does",
        "virtual I/O": "queues between a host and a program are nothing that the program says; target vio has them",
    }
)
"""Constructs that a target must offer explicitly, and why others do not have them."""

Quantity = Literal[
    "frame bytes",
    "headers",
    "header bytes",
    "bytes of all headers",
    "bytes of added headers",
    "metadata bytes",
    "field bits",
    "computed field bits",
    "parser states",
    "select cases",
    "tables",
    "exact entries",
    "lpm entries",
    "ternary entries",
    "exact key bits",
    "lpm key bits",
    "ternary key bits",
    "keys of a table",
    "action data bytes",
    "statements of an action",
    "nested conditionals",
    "hashed bytes",
    "checksummed bytes",
    "register bits",
    "copies",
    "passes",
    "varying fields",
]
"""What is counted in a program, for limits."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that a target takes of something, and where that comes from (documentation, source, measurement)."""

    most: int
    source: str


@dataclass(frozen=True, slots=True)
class Capabilities:
    """One table: constructs that are missing, with the reason, and limits; what is not named is available."""

    owner: str
    """Name of the target or dialect, for messages."""
    missing: Mapping[Construct, str] = field(default_factory=dict)
    limits: Mapping[Quantity, Limit] = field(default_factory=dict)
    remarks: Mapping[Construct, str] = field(default_factory=dict)
    """Constructs that are available, but not quite as a program means them, or unverified: what to know of them."""
    offers: frozenset[Construct] = frozenset()
    """What it has of :data:`NOT_OF_THE_LANGUAGE`."""
    requires: Mapping[Construct, str] = field(default_factory=dict)
    """Constructs without which there is nothing to do for it, with the reason."""

    def refusal(
        self, program: ir.Program, packets: ir.PacketSpec | None = None, traffic: TrafficPlan | None = None
    ) -> str | None:
        """Why this program cannot be expressed or run; None if nothing is known against it."""
        used = (*constructs(program), *(("offered load",) if _has_load(traffic) else ()))
        for construct in used:
            if construct in self.missing:
                return f"{self.owner} has no {construct}: {self.missing[construct]}"
            if construct in NOT_OF_THE_LANGUAGE and construct not in self.offers:
                return f"{self.owner} has no {construct}: {NOT_OF_THE_LANGUAGE[construct]}"
        for construct, reason in self.requires.items():
            if construct not in used:
                return f"{self.owner} runs nothing without {construct}: {reason}"
        for quantity, amount in quantities(program, packets).items():
            limit = self.limits.get(quantity)
            if limit is not None and amount > limit.most:
                return (
                    f"{amount:,} {quantity} are more than the {limit.most:,} that {self.owner} takes ({limit.source})"
                )
        return None

    def check(
        self, program: ir.Program, packets: ir.PacketSpec | None = None, traffic: TrafficPlan | None = None
    ) -> None:
        """Refuse a program that is beyond the table.

        Raises:
            CapabilityError: the message names the construct or the limit and where it comes from.
        """
        reason = self.refusal(program, packets, traffic)
        if reason is not None:
            raise CapabilityError(reason)


def both(first: Capabilities, second: Capabilities) -> Capabilities:
    """The table of a tool chain: what both of its parts can do, under the name of the first."""
    limits = {**first.limits, **second.limits}
    for quantity in first.limits.keys() & second.limits.keys():
        limits[quantity] = min(first.limits[quantity], second.limits[quantity], key=lambda limit: limit.most)
    missing, remarks = {**second.missing, **first.missing}, {**second.remarks, **first.remarks}
    offers = first.offers & second.offers
    return Capabilities(first.owner, missing, limits, remarks, offers, {**second.requires, **first.requires})


def unsupported(owner: str, what: object) -> CapabilityError:
    """The refusal of a part of a program, to be raised."""
    return CapabilityError(f"{owner} has no {type(what).__name__}: {_COMPONENTS}")


def _has_load(traffic: TrafficPlan | None) -> bool:
    """Whether the traffic is anything but as many packets as the target takes."""
    return traffic is not None and (
        traffic.pattern != "cbr" or traffic.offered_load_mpps is not None or bool(traffic.latency_at)
    )


_OF_STATEMENT: Mapping[type, Construct] = {
    ir.AddHeader: "added header",
    ir.RemoveHeader: "removed header",
    ir.CountPacket: "counter",
    ir.MeterPacket: "meter",
    ir.ReadRegister: "register read",
    ir.WriteRegister: "register write",
    ir.Random: "random",
    ir.Recirculate: "recirculate",
    ir.Resubmit: "resubmit",
    ir.Clone: "clone",
    ir.Multicast: "multicast",
    ir.RunOperator: "operator",
    ir.Fence: "fence",
    ir.Branch: "branch in an action",
    ir.Exit: "exit",
    ir.Digest: "digest",
    ir.Truncate: "truncation",
}


def constructs(program: ir.Program) -> tuple[Construct, ...]:
    """The constructs that a program uses, in the order of :data:`CONSTRUCTS`."""
    return program.once("constructs", lambda: _constructs(program))


def _constructs(program: ir.Program) -> tuple[Construct, ...]:
    used: set[str] = set()
    nodes = list(analysis.control_nodes(program.control + program.egress))
    applied = [node.table for node in nodes if isinstance(node, ir.ApplyTable)]
    used |= {key.match_kind for name in applied for key in program.table(name).keys}
    if len(set(applied)) < len(applied):
        used.add("repeated table")
    if any(isinstance(node, ir.If) for node in nodes):
        used.add("conditional")
    for statement in analysis.statements(program):
        if isinstance(statement, ir.Hash):
            used.add(f"hash {statement.algorithm}")
        elif type(statement) in _OF_STATEMENT:
            used.add(_OF_STATEMENT[type(statement)])
    if program.verified:
        used.add("checksum verify")
    if program.updated:
        used.add("checksum update")
    if program.virtual_io is not None:
        used.add("virtual I/O")
    used.update(_general(program, nodes))
    return tuple(c for c in CONSTRUCTS if c in used)


def _general(program: ir.Program, nodes: Sequence[ir.ControlNode]) -> Iterator[Construct]:
    """What programs of components have no need of."""
    applied = [node for node in nodes if isinstance(node, ir.ApplyTable)]
    tables = [program.table(node.table) for node in applied]
    states, body = program.parser, list(analysis.statements(program))
    conditions = [n.condition for n in nodes if isinstance(n, ir.If)]
    conditions += [s.condition for s in body if isinstance(s, ir.Branch)]
    inside = {type(e) for e in analysis.expressions(program)}
    fields = [*program.metadata, *(f for h in program.headers for f in h.fields)]
    uses: Mapping[Construct, bool] = {
        "entries one by one": any(isinstance(t.entries, ir.EntryList) or t.default_data for t in tables),
        "action selector": any(t.selector is not None for t in tables),
        "control flow by table result": any(any(node.branches) for node in applied),
        "general expression": not inside.isdisjoint((ir.Cast, ir.Conditional, ir.Truth)),
        "compound condition": any(isinstance(c, ir.Not | ir.And | ir.Or) for c in conditions),
        "parser computation": any(len(s.extracts) < len(s.body) or (s.selected and s.select is None) for s in states),
        "noted parser error": program.parser_error is not None,
        "varying field": any(f.varying for f in fields),
        "signed field": any(f.signed for f in fields) or any(r.signed for r in program.registers),
        "intrinsic metadata": bool(program.initial) or ir.Intrinsic in inside,
        "metadata kept for another pass": any(
            s.keep for s in body if isinstance(s, ir.Recirculate | ir.Resubmit | ir.Clone)
        ),
        "byte counter": any(c.of_bytes for c in program.counters) or any(t.counter for t in tables),
        "hash of the payload": any(s.payload for s in body if isinstance(s, ir.Hash)),
        "egress": bool(program.egress),
    }
    return (construct for construct, used in uses.items() if used)


def quantities(program: ir.Program, packets: ir.PacketSpec | None = None) -> dict[Quantity, int]:
    """How much of everything a program has; quantities that it has nothing of are left out."""
    of_packets: dict[Quantity, int] = {}
    if packets is not None:
        of_packets["frame bytes"] = packets.frame_size_bytes
        if packets.varying:
            of_packets["varying fields"] = len(packets.varying)
    return of_packets | program.once("quantities", lambda: _quantities(program))


def _quantities(program: ir.Program) -> dict[Quantity, int]:
    found: dict[Quantity, int] = {}

    def most(quantity: Quantity, *amounts: int) -> None:
        if value := max(amounts, default=0):
            found[quantity] = value

    body = list(analysis.statements(program))
    most("headers", len(program.headers))
    most("header bytes", *(h.size_bytes for h in program.headers))
    most("bytes of all headers", sum(h.size_bytes for h in program.headers))
    added = {s.header for s in body if isinstance(s, ir.AddHeader)}
    most("bytes of added headers", sum(program.header(name).size_bytes for name in added))
    most("metadata bytes", sum((f.width_bits + 7) // 8 for f in program.metadata))
    most("field bits", *(f.width_bits for h in program.headers for f in h.fields))
    most("computed field bits", *_computed_bits(program))
    most("parser states", len(program.parser))
    most("select cases", *(len(state.cases) for state in program.parser))
    most("tables", len(program.tables))
    for kind in ("exact", "lpm", "ternary"):
        of_kind = [t for t in program.tables if program.match_kind(t) == kind]
        most(f"{kind} entries", *(t.entries.count for t in of_kind))  # type: ignore[arg-type]
        most(f"{kind} key bits", *(program.key_bits(t) for t in of_kind))  # type: ignore[arg-type]
    most("keys of a table", *(len(t.keys) for t in program.tables))
    most("action data bytes", *((a.data_bits + 7) // 8 for a in program.actions))
    most("statements of an action", *(len(a.body) for a in program.actions))
    most("nested conditionals", analysis.nesting_depth(program.control))
    most("hashed bytes", *(sum(program.width_bits(f) for f in s.fields) // 8 for s in body if isinstance(s, ir.Hash)))
    most("checksummed bytes", *(program.header(c.header).size_bytes for c in (*program.verified, *program.updated)))
    most("register bits", *(r.width_bits for r in program.registers))
    most("passes", *_passes(program))
    most("copies", *(len(s.ports) for s in body if isinstance(s, ir.Multicast)))
    return found


def _passes(program: ir.Program) -> Iterator[int]:
    for node in analysis.control_nodes(program.control):
        if isinstance(node, ir.If) and ir.PassNumber() in analysis.condition_operands(node.condition):
            yield from (e.value for e in analysis.condition_operands(node.condition) if isinstance(e, ir.Const))


def _computed_bits(program: ir.Program) -> Iterator[int]:
    """Widths of the fields that take part in arithmetic or comparisons; plain copies and constants do not count."""
    for statement in analysis.statements(program):
        inside = [e for whole in analysis.operands(statement) for e in analysis.subexpressions(whole)]
        if any(isinstance(e, ir.BinaryOp) for e in inside):
            yield from (program.width_bits(e) for e in inside if isinstance(e, ir.FieldRef))
            if (ref := analysis.destination(statement)) is not None:
                yield program.width_bits(ref)
    for node in analysis.control_nodes(program.control):
        if isinstance(node, ir.If):
            yield from (
                program.width_bits(e) for e in analysis.condition_operands(node.condition) if isinstance(e, ir.FieldRef)
            )
