"""What a packet meets at statements, conditions and tables of a :class:`~p4perf.programs.ir.Program`.

Programs for v1model keep in metadata what becomes of a packet. What is written there is what the architecture makes of
it: a port is set, the packet is dropped, cloned or goes through the program again. The fields in which a reader keeps
results on their way, and the control flow that it adds, cost nothing: they belong to what they are for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from p4perf.models.program.graph import Construct, Kind, construct
from p4perf.models.program.prices import WORD_BITS
from p4perf.programs import ir
from p4perf.programs.analysis import operands, subexpressions
from p4perf.programs.decisions import INDEX_BITS, width_bits
from p4perf.programs.reading.actions import DROP_PORT

_OUT, _LEAVING = "psa_ingress_output_metadata", "psa_egress_output_metadata"

PORTS = ("standard_metadata__egress_spec", f"{_OUT}__egress_port")
GROUPS = ("standard_metadata__mcast_grp", f"{_OUT}__multicast_group")
"""Metadata of architectures that say where a packet goes."""

EGRESS_PORT = "psa_egress_input_metadata__egress_port"
"""Metadata that says in egress where it goes: where ingress said."""

_OWN = "own_"
_ARCHITECTURE: Mapping[str, Kind | None] = {
    **dict.fromkeys(PORTS, "set egress"),
    **dict.fromkeys(GROUPS),
    **dict.fromkeys((f"{_OUT}__drop", f"{_LEAVING}__drop"), "drop"),
    **dict.fromkeys(("own_clone", "own_egress_clone", f"{_OUT}__clone", f"{_LEAVING}__clone"), "clone"),
    **dict.fromkeys(("own_clone_list", "own_egress_clone_list", "own_resubmit", "own_recirculate")),
    **dict.fromkeys((f"{_OUT}__resubmit", f"{_OUT}__clone_session_id", f"{_LEAVING}__clone_session_id")),
}
"""Metadata that say what becomes of a packet, and what writing them means; None: what is counted where it takes
effect, or has no price."""


def of_statement(program: ir.Program, statement: ir.Statement, where: str, packet_bytes: int) -> tuple[Construct, ...]:
    """What a packet meets at one statement, what it computes first; of a branch its condition only.

    The writing of a result belongs to externs, and that of its fields to adding a header. A fence costs nothing that
    anybody asks for.
    """
    if isinstance(statement, ir.Branch):
        return of_condition(program, statement.condition, where)
    if isinstance(statement, ir.Assign) and statement.destination.header == ir.METADATA:
        name = statement.destination.field
        if name in _ARCHITECTURE:
            return tuple(_of_architecture(program, name, statement.value, where, packet_bytes))
        if name.startswith(_OWN):
            return tuple(computed(program, statement.value, program.width_bits(statement.destination), where))
    if isinstance(statement, ir.Assign) and _on_its_way(statement.value):
        return ()
    bits = program.width_bits(statement.destination) if isinstance(statement, ir.Assign) else INDEX_BITS
    before = tuple(c for o in operands(statement) for c in computed(program, o, bits, where))
    own = _itself(program, statement, where, packet_bytes)
    return before if own is None else (*before, *_in_words(own))


def _in_words(what: Construct) -> tuple[Construct, ...]:
    """A write of several words is a write of each."""
    words = math.ceil(what.number("bits") / WORD_BITS) if what.kind == "write" else 1
    return (what,) if words == 1 else (replace(what, sizes=(("bits", WORD_BITS), *what.sizes[1:])),) * words


def _of_architecture(
    program: ir.Program, name: str, value: ir.Expression, where: str, packet_bytes: int
) -> Iterator[Construct]:
    kind = _ARCHITECTURE[name]
    if kind == "set egress":
        yield from computed(program, value, INDEX_BITS, where)
        yield construct("drop" if value == ir.Const(DROP_PORT) else kind, where)
    elif kind is not None and value != ir.Const(0):
        yield construct("clone", where, bytes=packet_bytes) if kind == "clone" else construct(kind, where)


def _on_its_way(value: ir.Expression) -> bool:
    """Whether a value is the result of an extern, which the reader keeps in a field of its own."""
    refs = (e.field for e in subexpressions(value) if isinstance(e, ir.FieldRef) and e.header == ir.METADATA)
    return any(name.startswith(("own_hash_", "own_random", "own_colour", "own_read_")) for name in refs)


def for_lookup(statement: ir.Statement) -> bool:
    """Whether a statement that a reader added is a part of a lookup: its key, its choice or its meter."""
    if isinstance(statement, ir.Assign | ir.Hash):
        return statement.destination.field.startswith(("own_key_", "own_choice_of_"))
    return isinstance(statement, ir.MeterPacket)


def _itself(program: ir.Program, statement: ir.Statement, where: str, packet_bytes: int) -> Construct | None:
    match statement:
        case ir.Assign(ref):
            to = "metadata" if ref.header == ir.METADATA else "header"
            return construct("write", where, bits=program.width_bits(ref), to=to)
        case ir.SetEgress():
            return construct("set egress", where)
        case ir.Drop():
            return construct("drop", where)
        case ir.AddHeader(header):
            return construct("add header", where, bytes=program.header(header).size_bytes)
        case ir.RemoveHeader(header):
            return construct("remove header", where, bytes=program.header(header).size_bytes)
        case ir.Hash(_, algorithm):
            return construct("hash", where, algorithm=algorithm, bytes=hashed_bytes(program, statement))
        case ir.CountPacket(name):
            return construct("counter", where, cells=program.counter(name).size)
        case ir.MeterPacket(_, name):
            return construct("meter", where, cells=program.meter(name).size)
        case ir.ReadRegister(_, name):
            register = program.register(name)
            return construct("register read", where, cells=register.size, bits=register.width_bits)
        case ir.WriteRegister(name):
            register = program.register(name)
            return construct("register write", where, cells=register.size, bits=register.width_bits)
        case ir.Random(ref):
            return construct("random", where, bits=program.width_bits(ref))
        case ir.Recirculate():
            return construct("recirculate", where)
        case ir.Resubmit():
            return construct("resubmit", where)
        case ir.Clone():
            return construct("clone", where, bytes=packet_bytes)
        case ir.Multicast(ports):
            return construct("multicast", where, ports=len(ports))
        case ir.RunOperator(_, operator):
            return construct("unknown", where, name=f"operator {operator.name}")
        case ir.Digest():
            return construct("unknown", where, name="digest")
        case ir.Truncate():
            return construct("unknown", where, name="truncate")
        case ir.Fence() | ir.Branch() | ir.Exit():
            return None


def hashed_bytes(program: ir.Program, statement: ir.Hash | ir.Assign) -> int:
    """How many bytes a hash or checksum goes over, without the payload; it may be written as an expression."""
    if isinstance(statement, ir.Hash):
        return sum(program.width_bits(f) for f in statement.fields) // 8
    fields = {e for e in subexpressions(statement.value) if isinstance(e, ir.FieldRef)}
    return sum(program.width_bits(f) for f in fields) // 8


def copied_header(statement: ir.Statement) -> tuple[str, str] | None:
    """The header to which another one is copied, and that one, if a branch does that."""
    match statement:
        case ir.Branch(ir.IsValid(source), (ir.AddHeader(target, values), *_), (ir.RemoveHeader(other),)):
            same = all(value == ir.FieldRef(source, name) for name, value in values)
            return (target, source) if target == other and same and values else None
        case ir.Branch(ir.IsValid(source), (ir.Branch() as added, *assigned), (ir.RemoveHeader(other),)):
            refs = [s.value.header for s in assigned if isinstance(s, ir.Assign) and isinstance(s.value, ir.FieldRef)]
            whole = len(refs) == len(assigned) and set(refs) == {source}
            return (other, source) if added_header(added) == other and whole else None
    return None


def added_header(statement: ir.Statement) -> str | None:
    """The header that a branch adds unless it is there."""
    match statement:
        case ir.Branch(ir.Not(ir.IsValid(asked)), (ir.AddHeader(header, ()),), ()) if asked == header:
            return header
    return None


def sends(statement: ir.Branch) -> bool:
    """Whether a branch sends a packet by a port if there is such a port; packets are counted as if there is."""
    return (
        isinstance(statement.then[0], ir.SetEgress) and statement.otherwise == (ir.Drop(),) if statement.then else False
    )


def computed(program: ir.Program, expression: ir.Expression, bits: int, where: str) -> Iterator[Construct]:
    """What is computed for a value of that width.

    A cast that keeps less than the width is a mask; one to more bits, or to a signed type, is not counted.
    """
    match expression:
        case ir.BinaryOp(operator, left, right):
            yield construct("compute", where, operator=operator, bits=bits)
            yield from computed(program, left, bits, where)
            yield from computed(program, right, bits, where)
        case ir.Cast(value, width_bits, signed, saturating):
            if saturating:
                yield construct("condition", where, bits=width_bits)
            elif not signed and width_bits < bits:
                yield construct("compute", where, operator="&", bits=bits)
            yield from computed(program, value, bits, where)
        case ir.Conditional(condition, then, otherwise):
            yield from of_condition(program, condition, where)
            yield from computed(program, then, bits, where)
            yield from computed(program, otherwise, bits, where)
        case ir.Truth(condition):
            yield from of_condition(program, condition, where)


def of_condition(program: ir.Program, condition: ir.Condition, where: str) -> tuple[Construct, ...]:
    """What a packet meets at a condition, what it computes first; whether a header is valid is one bit."""
    match condition:
        case ir.Not(inner):
            return of_condition(program, inner, where)
        case ir.And(left, right) | ir.Or(left, right):
            return of_condition(program, left, where) + of_condition(program, right, where)
        case ir.IsValid():
            return (construct("condition", where, bits=1),)
        case ir.Compare(_, ir.Const(), ir.Const()):
            return ()
        case ir.Compare(_, first, second):
            bits = max(width_bits(program, first), width_bits(program, second)) or INDEX_BITS
            before = (*computed(program, first, bits, where), *computed(program, second, bits, where))
            return (*before, construct("condition", where, bits=bits))


GATHERED = construct("overlap", code="gathered", earlier=0.0, swaps=0.0)


def is_gathered(program: ir.Program, fields: Sequence[ir.FieldRef]) -> bool:
    """Whether bytes are put together of several places, and then read again in words.

    Fields that do not fill their bytes are put together in words already.
    """
    if any(program.width_bits(ref) % 8 for ref in fields):
        return False
    ends: set[tuple[str, int]] = set()
    for number, ref in enumerate(fields):
        if ref.header == ir.METADATA:
            if number:
                return True
            continue
        first = program.header(ref.header).offset_bits(ref.field)
        if number and (ref.header, first) not in ends:
            return True
        ends = {(ref.header, first + program.width_bits(ref))}
    return len(fields) > 1 and not ends


def of_table(program: ir.Program, table: ir.Table, where: str, entries: int | None = None) -> tuple[Construct, ...]:
    """What a packet meets at a table, before its action.

    What entries have of an action profile stands in them, so that nothing more is looked up.

    Args:
        entries: how many it holds; None: those of the program.
    """
    data = max((-(-program.action(name).data_bits // 8) for name in table.actions), default=0)
    count = table.entries.count if entries is None else entries
    found = []
    if table.keys:
        if program.match_kind(table) == "exact" and is_gathered(program, [key.field for key in table.keys]):
            found.append(replace(GATHERED, where=where))
        found.append(
            construct(
                "lookup",
                where,
                match_kind=_match_kind(program, table),
                entries=count,
                key_bits=program.key_bits(table),
                action_data_bytes=data,
                hit=0.5,
            )
        )
    if table.counter:
        found.append(construct("counter", where, cells=max(count, 1)))
    return tuple(found)


def _match_kind(program: ir.Program, table: ir.Table) -> str:
    if table.label and any(key.match_kind == "range" for key in table.keys):
        return "range"
    kind = program.match_kind(table)
    return "ternary" if kind == "lpm" and not is_prefixes(program, table) else kind


def is_prefixes(program: ir.Program, table: ir.Table) -> bool:
    """Whether the keys together are prefixes: the others are searched as ternary ones."""
    return program.match_kind(table) == "lpm" and table.keys[-1].match_kind == "lpm"
