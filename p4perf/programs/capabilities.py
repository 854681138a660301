"""What a target or P4 dialect can do, as data: missing constructs with the reason, limits with their source.

A :class:`Capabilities` is one table. :func:`refusal` holds a program against it, before anything is generated or run.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, get_args

from p4perf.errors import CapabilityError, Location
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
    "counter of entries",
    "control flow by table result",
    "exit",
    "branch in an action",
    "general expression",
    "compound condition",
    "parser computation",
    "noted parser error",
    "header of varying length",
    "signed field",
    "intrinsic metadata",
    "metadata kept for another pass",
    "byte counter",
    "hash of the payload",
    "digest",
    "truncation",
    "egress",
    "copies through egress",
    "virtual I/O",
    "offered load",
]
"""Language constructs that a target may lack; the last one is a property of the traffic."""

CONSTRUCTS: tuple[Construct, ...] = get_args(Construct)

OF_OWN_PROGRAMS = CONSTRUCTS[CONSTRUCTS.index("range") : CONSTRUCTS.index("virtual I/O")]
"""Those that no component has, only programs that are read."""

_COMPONENTS = "p4perf generates no code for it there"

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
    "filled tables",
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
        try:
            self.check(program, packets, traffic)
        except CapabilityError as error:
            return str(error)
        return None

    def check(
        self, program: ir.Program, packets: ir.PacketSpec | None = None, traffic: TrafficPlan | None = None
    ) -> None:
        """Refuse a program that is beyond the table.

        Raises:
            CapabilityError: the message names the construct or the limit and where it comes from; its location is
                where that stands in the text of the program.
        """
        used: dict[Construct, str] = dict(places(program))
        if _has_load(traffic):
            used["offered load"] = ""
        with of_program(program):
            for construct, place in used.items():
                reason = self.missing.get(construct)
                if reason is None and construct not in self.offers:
                    reason = NOT_OF_THE_LANGUAGE.get(construct)
                if reason is not None:
                    raise CapabilityError(f"{self.owner} has no {construct}: {reason}", location=_location(place))
            for construct, reason in self.requires.items():
                if construct not in used:
                    raise CapabilityError(f"{self.owner} runs nothing without {construct}: {reason}")
            for quantity, amount in quantities(program, packets).items():
                limit = self.limits.get(quantity)
                if limit is not None and amount > limit.most:
                    too_many = f"{amount:,} {quantity} are more than the {limit.most:,} that {self.owner} takes"
                    _, place = _measured(program).get(quantity, (0, ""))
                    raise CapabilityError(f"{too_many} ({limit.source})", location=_location(place))


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


def _location(place: str) -> Location | None:
    file, _, line = place.rpartition(":")
    return Location(file, int(line)) if file else None


def _file(program: ir.Program) -> Location | None:
    """The text of the program; None if nothing says where it is."""
    named = (item.place for group in (program.actions, program.tables, program.parser) for item in group)
    location = next(filter(None, map(_location, named)), None)
    return Location(location.file) if location else None


def of_program(program: ir.Program) -> AbstractContextManager[None]:
    """Let a refusal name at least the file of the program, where it does not name a place in it."""
    return standing_at(_file(program))


@contextmanager
def standing_at(place: str | Location | None) -> Iterator[None]:
    """Let a refusal of what is written inside say where that stands in the text of the program."""
    try:
        yield
    except CapabilityError as error:
        error.location = error.location or (_location(place) if isinstance(place, str) else place)
        raise


def _has_load(traffic: TrafficPlan | None) -> bool:
    """Whether the traffic is anything but as many packets as the target takes."""
    return traffic is not None and (
        traffic.pattern != "cbr" or traffic.offered_load_mpps is not None or bool(traffic.latency_at)
    )


_HASH: Mapping[ir.HashAlgorithm, Construct] = {
    "crc16": "hash crc16",
    "crc32": "hash crc32",
    "checksum16": "hash checksum16",
}

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
    return tuple(places(program))


@ir.once
def places(program: ir.Program) -> Mapping[Construct, str]:
    """The constructs that a program uses, in the order of :data:`CONSTRUCTS`, and where each stands in its text.

    A place is ``router.p4:53``, or empty where the program does not say it.
    """
    found: dict[str, str] = {}
    for construct, place in _used(program):
        found[construct] = found.get(construct) or place
    return {c: found[c] for c in CONSTRUCTS if c in found}


def _statements(program: ir.Program) -> Iterator[tuple[str, ir.Statement]]:
    """All statements of the actions that can run, with their places."""
    for name in analysis.used_actions(program):
        for place, statement in program.action(name).placed:
            yield from ((place, inner) for inner in analysis.flattened((statement,)))


def _place(program: ir.Program, node: ir.ControlNode) -> str:
    match node:
        case ir.ApplyTable(table):
            return program.table(table).place
        case ir.CallAction(action):
            return program.action(action).place
        case ir.If():
            return node.place
        case ir.Block(body):
            return next(filter(None, (_place(program, inner) for inner in body)), "")


def _used(program: ir.Program) -> Iterator[tuple[Construct, str]]:
    """The constructs of a program and their places, in any order."""
    applied: set[str] = set()
    for node in analysis.control_nodes(program.control + program.egress):
        if isinstance(node, ir.ApplyTable):
            table = program.table(node.table)
            yield from _of_table(table, repeated=table.name in applied, branches=any(node.branches))
            applied.add(table.name)
        elif isinstance(node, ir.If):
            yield "conditional", node.place
            yield from _of_condition(node.condition, node.place)
    for place, statement in _statements(program):
        yield from _of_statement(program, statement, place)
    for state in program.parser:
        if len(state.extracts) < len(state.body) or (state.selected and state.select is None):
            yield "parser computation", state.place
    for fields in (program.metadata, *(header.fields for header in program.headers)):
        if any(f.varying for f in fields):
            yield "header of varying length", ""
        if any(f.signed for f in fields):
            yield "signed field", ""
    if program.egress:
        copies = (place for place, s in _statements(program) if isinstance(s, ir.Clone | ir.Multicast))
        yield from (("copies through egress", place) for place in copies)
        yield "egress", next(filter(None, (_place(program, node) for node in program.egress)), "")
    whole: dict[Construct, object] = {
        "checksum verify": program.verified,
        "checksum update": program.updated,
        "virtual I/O": program.virtual_io,
        "noted parser error": program.parser_error,
        "intrinsic metadata": program.initial,
        "signed field": any(r.signed for r in program.registers),
    }
    yield from ((construct, "") for construct, there in whole.items() if there)


def _of_table(table: ir.Table, *, repeated: bool, branches: bool) -> Iterator[tuple[Construct, str]]:
    yield from ((key.match_kind, table.place) for key in table.keys)
    of_table: dict[Construct, object] = {
        "repeated table": repeated,
        "entries one by one": isinstance(table.entries, ir.EntryList) or table.default_data,
        "action selector": table.selector,
        "control flow by table result": branches,
        "counter of entries": table.counter,
    }
    yield from ((construct, table.place) for construct, there in of_table.items() if there)


def _of_condition(condition: ir.Condition, place: str) -> Iterator[tuple[Construct, str]]:
    if isinstance(condition, ir.Not | ir.And | ir.Or):
        yield "compound condition", place
    yield from _of_expressions(analysis.condition_operands(condition), place)


def _of_expressions(wholes: Sequence[ir.Expression], place: str) -> Iterator[tuple[Construct, str]]:
    for e in (inside for whole in wholes for inside in analysis.subexpressions(whole)):
        if isinstance(e, ir.Cast | ir.Conditional | ir.Truth):
            yield "general expression", place
        elif isinstance(e, ir.Intrinsic):
            yield "intrinsic metadata", place


def _of_statement(program: ir.Program, statement: ir.Statement, place: str) -> Iterator[tuple[Construct, str]]:
    if type(statement) in _OF_STATEMENT:
        yield _OF_STATEMENT[type(statement)], place
    match statement:
        case ir.Branch(condition):
            yield from _of_condition(condition, place)
        case ir.Recirculate(keep) | ir.Resubmit(keep) | ir.Clone(_, keep) if keep:
            yield "metadata kept for another pass", place
        case ir.CountPacket(counter) if program.counter(counter).of_bytes:
            yield "byte counter", place
        case ir.Hash():
            yield _HASH[statement.algorithm], place
            if statement.payload:
                yield "hash of the payload", place
    yield from _of_expressions(analysis.operands(statement), place)


def quantities(program: ir.Program, packets: ir.PacketSpec | None = None) -> dict[Quantity, int]:
    """How much of everything a program has; quantities that it has nothing of are left out."""
    of_packets: dict[Quantity, int] = {}
    if packets is not None:
        of_packets["frame bytes"] = packets.frame_size_bytes
        if packets.varying:
            of_packets["varying fields"] = len(packets.varying)
    return of_packets | {quantity: amount for quantity, (amount, _) in _measured(program).items()}


@ir.once
def _measured(program: ir.Program) -> Mapping[Quantity, tuple[int, str]]:
    """The quantities, and where the greatest of each stands."""
    found: dict[Quantity, tuple[int, str]] = {}

    def most(quantity: Quantity, *amounts: int | tuple[int, str]) -> None:
        pairs = [amount if isinstance(amount, tuple) else (amount, "") for amount in amounts]
        greatest = max(pairs, key=operator.itemgetter(0), default=(0, ""))
        if greatest[0]:
            found[quantity] = greatest

    body, headers, tables = list(_statements(program)), program.headers, program.tables
    most("headers", len(headers))
    most("header bytes", *(h.size_bytes for h in headers))
    most("bytes of all headers", sum(h.size_bytes for h in headers))
    added = {s.header: place for place, s in reversed(body) if isinstance(s, ir.AddHeader)}
    added_bytes = sum(program.header(name).size_bytes for name in added)
    most("bytes of added headers", (added_bytes, next(iter(added.values()), "")))
    most("metadata bytes", sum((f.width_bits + 7) // 8 for f in program.metadata))
    most("field bits", *(f.width_bits for h in headers for f in h.fields))
    most("computed field bits", *_computed_bits(program))
    most("parser states", len(program.parser))
    most("select cases", *((len(state.cases), state.place) for state in program.parser))
    most("tables", (len(tables), tables[-1].place if tables else ""))
    filled = [t for t in tables if t.keys and t.entries.count]
    most("filled tables", (len(filled), filled[-1].place if filled else ""))
    kinds: Mapping[str, tuple[Quantity, Quantity]] = {
        "exact": ("exact entries", "exact key bits"),
        "lpm": ("lpm entries", "lpm key bits"),
        "ternary": ("ternary entries", "ternary key bits"),
    }
    for kind, (entries, key_bits) in kinds.items():
        of_kind = [t for t in tables if program.match_kind(t) == kind]
        most(entries, *((t.entries.count, t.place) for t in of_kind))
        most(key_bits, *((program.key_bits(t), t.place) for t in of_kind))
    most("keys of a table", *((len(t.keys), t.place) for t in tables))
    most("action data bytes", *(((a.data_bits + 7) // 8, a.place) for a in program.actions))
    most("statements of an action", *((len(a.body), a.place) for a in program.actions))
    most("nested conditionals", analysis.nesting_depth(program.control))
    hashes = [(place, s) for place, s in body if isinstance(s, ir.Hash)]
    most("hashed bytes", *((sum(map(program.width_bits, s.fields)) // 8, place) for place, s in hashes))
    most("checksummed bytes", *(program.header(c.header).size_bytes for c in (*program.verified, *program.updated)))
    most("register bits", *(r.width_bits for r in program.registers))
    most("passes", *_passes(program))
    most("copies", *((len(s.ports), place) for place, s in body if isinstance(s, ir.Multicast)))
    return found


def _passes(program: ir.Program) -> Iterator[int]:
    for node in analysis.control_nodes(program.control):
        if isinstance(node, ir.If) and ir.PassNumber() in analysis.condition_operands(node.condition):
            yield from (e.value for e in analysis.condition_operands(node.condition) if isinstance(e, ir.Const))


def _computed_bits(program: ir.Program) -> Iterator[tuple[int, str]]:
    """Widths of the fields that take part in arithmetic or comparisons; plain copies and constants do not count."""
    for place, statement in _statements(program):
        inside = [e for whole in analysis.operands(statement) for e in analysis.subexpressions(whole)]
        if any(isinstance(e, ir.BinaryOp) for e in inside):
            yield from ((program.width_bits(e), place) for e in inside if isinstance(e, ir.FieldRef))
            if (ref := analysis.destination(statement)) is not None:
                yield program.width_bits(ref), place
    for node in analysis.control_nodes(program.control):
        if isinstance(node, ir.If):
            compared = analysis.condition_operands(node.condition)
            yield from ((program.width_bits(e), node.place) for e in compared if isinstance(e, ir.FieldRef))
