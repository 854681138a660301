"""What a packet meets at statements, conditions and tables of a :class:`~p4perf.programs.ir.Program`.

Programs for v1model keep in metadata what becomes of a packet. What is written there is what the architecture makes of
it: a port is set, the packet is dropped, cloned or goes through the program again. The fields in which a reader keeps
results on their way, and the control flow that it adds, cost nothing: they belong to what they are for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace

from p4perf.models.program.graph import Construct, Kind, construct
from p4perf.models.program.prices import WORD_BITS
from p4perf.programs import ir
from p4perf.programs.analysis import destination, operands, subexpressions
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


def of_statement(values: Values, statement: ir.Statement, where: str, packet_bytes: int) -> tuple[Construct, ...]:
    """What a packet meets at one statement, what it computes first; of a branch its condition only.

    The writing of a result belongs to externs, and that of its fields to adding a header. A fence costs nothing that
    anybody asks for.
    """
    program = values.program
    if isinstance(statement, ir.Branch):
        return tuple(values.condition(statement.condition, where))
    if isinstance(statement, ir.Assign) and statement.destination.header == ir.METADATA:
        name = statement.destination.field
        if name in _ARCHITECTURE:
            return tuple(_of_architecture(values, name, statement.value, where, packet_bytes))
        if name.startswith(_OWN):
            return tuple(values.computed(statement.value, program.width_bits(statement.destination), where))
    if isinstance(statement, ir.Assign) and _on_its_way(statement.value):
        return ()
    bits = program.width_bits(statement.destination) if isinstance(statement, ir.Assign) else INDEX_BITS
    before = tuple(c for o in operands(statement) for c in values.computed(o, bits, where))
    own = _itself(program, statement, where, packet_bytes)
    return before if own is None else (*before, *_in_words(own))


def _in_words(what: Construct) -> tuple[Construct, ...]:
    """A write of several words is a write of each."""
    words = math.ceil(what.number("bits") / WORD_BITS) if what.kind == "write" else 1
    return (what,) if words == 1 else (replace(what, sizes=(("bits", WORD_BITS), *what.sizes[1:])),) * words


def _of_architecture(
    values: Values, name: str, value: ir.Expression, where: str, packet_bytes: int
) -> Iterator[Construct]:
    kind = _ARCHITECTURE[name]
    if kind == "set egress":
        yield from values.computed(value, INDEX_BITS, where)
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


_ANY = ""
"""In place of the name of a header: any of them."""


class Values:
    """What statements in a row compute for values and conditions; what one has computed costs nothing more.

    Compilers number values in the same way (Cocke 1970). A store to a header may change every other header for them,
    as both are bytes of the packet.
    """

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.numbers: dict[object, int] = {}
        self.writes: Counter[ir.FieldRef | str] = Counter()
        self.validity: Counter[str] = Counter()

    def after(self, statement: ir.Statement) -> None:
        """What stands after a statement is computed with what it has written."""
        if isinstance(statement, ir.AddHeader | ir.RemoveHeader):
            self.validity[statement.header] += 1
            self.writes.update((statement.header, _ANY))
        elif (ref := destination(statement)) is not None:
            self.writes.update((ref, ref.header) if ref.header == ir.METADATA else (ref, ref.header, _ANY))

    def computed(self, expression: ir.Expression, bits: int, where: str) -> Iterator[Construct]:
        """What is computed for a value of that width.

        A cast that keeps less than the width is a mask; one to more bits, or to a signed type, is not counted.
        """
        yield from self._value(expression, bits, where)

    def condition(self, condition: ir.Condition, where: str) -> Iterator[Construct]:
        """What a packet meets at a condition, what it computes first; whether a header is valid is one bit."""
        yield from self._asked(condition, where)

    def _new(self, what: object, *costs: Construct) -> Generator[Construct, None, int]:
        """The number of a value, and what it costs if it has none yet."""
        if what not in self.numbers:
            self.numbers[what] = len(self.numbers)
            yield from costs
        return self.numbers[what]

    def _value(self, expression: ir.Expression, bits: int, where: str) -> Generator[Construct, None, int]:
        match expression:
            case ir.BinaryOp(operator, left, right):
                first = yield from self._value(left, bits, where)
                second = yield from self._value(right, bits, where)
                what = construct("compute", where, operator=operator, bits=bits)
                return (yield from self._new((operator, first, second), what))
            case ir.Cast(value, width_bits, signed, saturating):
                inner = yield from self._value(value, bits, where)
                costs = []
                if saturating:
                    costs = [construct("condition", where, bits=width_bits)]
                elif not signed and width_bits < bits:
                    costs = [construct("compute", where, operator="&", bits=bits)]
                return (yield from self._new((width_bits, signed, saturating, inner), *costs))
            case ir.Conditional(condition, then, otherwise):
                asked = yield from self._asked(condition, where)
                first = yield from self._value(then, bits, where)
                second = yield from self._value(otherwise, bits, where)
                return (yield from self._new(("?", asked, first, second)))
            case ir.Truth(condition):
                return (yield from self._asked(condition, where))
            case ir.FieldRef(ir.METADATA):
                return (yield from self._new((expression, self.writes[expression])))
            case ir.FieldRef(header):
                others = self.writes[_ANY] - self.writes[header]
                return (yield from self._new((expression, self.writes[expression], others, self.validity[header])))
            case ir.Intrinsic("unknown"):
                return (yield from self._new(object()))
        return (yield from self._new(expression))

    def _asked(self, condition: ir.Condition, where: str) -> Generator[Construct, None, int]:
        match condition:
            case ir.Not(inner):
                return (yield from self._asked(inner, where))
            case ir.And(left, right) | ir.Or(left, right):
                first = yield from self._asked(left, where)
                second = yield from self._asked(right, where)
                return (yield from self._new((type(condition), first, second)))
            case ir.IsValid(header):
                return (yield from self._new((condition, self.validity[header]), construct("condition", where, bits=1)))
            case ir.Compare(_, ir.Const(), ir.Const()):
                return (yield from self._new(condition))
            case ir.Compare(comparator, left, right):
                bits = max(width_bits(self.program, left), width_bits(self.program, right)) or INDEX_BITS
                first = yield from self._value(left, bits, where)
                second = yield from self._value(right, bits, where)
                return (yield from self._new((comparator, first, second), construct("condition", where, bits=bits)))


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
