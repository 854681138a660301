"""ActionReader of the JSON of bmv2 as statements of a :class:`~p4perf.programs.ir.Program`.

What bmv2 decides at the end of a pipeline is left to fields of the metadata, at which
:mod:`~p4perf.programs.reading.v1model` looks there: the egress port, the multicast group, :data:`CLONE`,
:data:`RESUBMIT` and :data:`RECIRCULATE`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeVar

from p4perf.programs import ir
from p4perf.programs.operators import HASH_BITS, STANDARD_HASHES
from p4perf.programs.reading.tree import Tree
from p4perf.programs.reading.values import (
    TRUE,
    Names,
    ValueReader,
    identifier,
    place,
    truth,
    unwrapped,
)

DROP_PORT = 511
"""Port of v1model that no packet leaves by."""

CLONE, CLONE_LIST, EGRESS_CLONE, EGRESS_CLONE_LIST = "clone", "clone_list", "egress_clone", "egress_clone_list"
"""Fields with the session of a clone plus one, and with the number of the list of the metadata that it keeps."""

RESUBMIT, RECIRCULATE = "resubmit", "recirculate"
"""Fields with the number of the list of the metadata that is kept, plus one; 0: the packet is not parsed again."""

RANDOM_BITS = 32
"""Bits of which a random number within bounds is made."""

_NOTHING = ("log_msg", "no_op", "assert", "assume", "assert_", "assume_")
_HASHES: Mapping[str, ir.HashAlgorithm] = {
    "crc16": "crc16",
    "crc16_custom": "crc16",
    "crc32": "crc32",
    "crc32_custom": "crc32",
    "csum16": "checksum16",
    "cksum16": "checksum16",
}
"""What bmv2 calls them; the custom ones as they are before somebody changes their polynomials."""

_FOLDED_BITS = {"identity": 64, "xor16": 16}
"""Hashes that are written as expressions, and their widths."""


N = TypeVar("N")


@dataclass
class ActionReader:
    """The actions of a program, converted when they are asked for."""

    names: Names
    registers: Mapping[str, ir.Register]
    counters: Mapping[str, ir.Counter]
    meters: dict[str, ir.Meter]
    calculations: Mapping[str, Tree]
    learn_lists: Mapping[int, Tree]
    unknown: bool = False
    """Whether a primitive that is not supported is read as an operator of which nothing but its name is known."""
    constants: dict[ir.FieldRef, int] = field(default_factory=dict)
    """Metadata fields that hold a constant from the beginning."""
    algorithms: dict[str, Tree] = field(default_factory=dict)
    """Those of hashes that are externs, as PSA has them."""

    def action(self, name: str, tree: Tree) -> ir.Action:
        parameters = tuple(ir.Field(identifier(p.text("name")), p.whole("bitwidth")) for p in tree.each("runtime_data"))
        calls = list(tree.each("primitives"))
        body = list(self.body(calls, 0, len(calls), ValueReader(self.names, parameters)))
        places = tuple(where for where, _ in body)
        first = place(tree) or next(filter(None, places), "")
        statements = tuple(statement for _, statement in body)
        return ir.Action(name, parameters, statements, places, place=first, label=tree.text("name"))

    def body(self, calls: Sequence[Tree], at: int, end: int, values: ValueReader) -> Iterator[tuple[str, ir.Statement]]:
        """Statements of the primitives from ``at`` to ``end``, with their places.

        Jumps, those of conditional statements, become branches; they name a primitive by its number in the action.
        """
        while at < end:
            call, where = calls[at], place(calls[at])
            if call.text("op") != "_jump_if_zero":
                yield from ((where, statement) for statement in self.statements(call, values))
                at += 1
                continue
            given = list(call.each("parameters"))
            other = after = last = unwrapped(given[1])[1].number()
            if at + 1 < other <= end and calls[other - 1].text("op") == "_jump":
                last, after = other - 1, unwrapped(calls[other - 1].at("parameters").item(0))[1].number()
            if not at < other <= after <= end:
                raise call.error("jumps out of a conditional statement")
            sides = [list(self.body(calls, *side, values)) for side in ((at + 1, last), (other, after))]
            if not where:
                where = next((place(each) for each in calls[at + 1 : after] if place(each)), "")
            then, otherwise = (tuple(statement for _, statement in side) for side in sides)
            yield where, ir.Branch(values.condition(given[0]), then, otherwise)
            at = after

    def statements(self, call: Tree, values: ValueReader) -> Iterator[ir.Statement]:
        """What one primitive does."""
        op, given = call.text("op"), list(call.each("parameters"))
        value = values.value
        match op, given:
            case (("assign" | "modify_field" | "assign_VL"), [target, source]):
                yield from self.assign(target, source, values)
            case (("add_to_field" | "subtract_from_field"), [target, source]):
                sum_or_difference = ir.BinaryOp("+" if op == "add_to_field" else "-", value(target), value(source))
                yield from self.stored(values.places(target), sum_or_difference)
            case (("assign_header" | "copy_header"), [target, source]):
                yield from self._copy(target, source, values)
            case (("assign_header_stack" | "assign_union" | "assign_union_stack"), [target, source]):
                parts = self._parts(target, values), self._parts(source, values)
                for to, of in self._paired(*parts, call):
                    yield from self.copied(to, of, call)
            case (("add_header" | "add_header_fast"), [target]):
                for name, condition in values.headers(target):
                    yield from guarded(condition, self._added(name))
            case "remove_header", [target]:
                for name, condition in values.headers(target):
                    yield from guarded(condition, (ir.RemoveHeader(name),))
            case (("push" | "pop"), [stack, count]):
                yield from self._shifted(stack, unwrapped(count)[1].number() * (1 if op == "push" else -1))
            case (("mark_to_drop" | "drop"), _):
                of = given[0].text("value") if given else "standard_metadata"
                yield ir.Assign(self.names.ref(of, "egress_spec", call), ir.Const(DROP_PORT))
                yield ir.Assign(self.names.ref(of, "mcast_grp", call), ir.Const(0))
            case "count", [counter, index]:
                yield ir.CountPacket(one_of(self.counters, counter, "counter").name, value(index))
            case "execute_meter", [meter, index, target]:
                colour = self.names.scratch("colour", 2)
                yield ir.MeterPacket(colour, one_of(self.meters, meter, "meter").name, value(index))
                yield from self.stored(values.places(target), colour)
            case "register_read", [target, register, index]:
                array = one_of(self.registers, register, "register")
                read = self.names.scratch(f"read_{array.width_bits}", array.width_bits)
                places = values.places(target)
                if len(places) == 1 and isinstance(places[0][0], ir.FieldRef):
                    yield ir.ReadRegister(places[0][0], array.name, value(index))
                else:
                    yield ir.ReadRegister(read, array.name, value(index))
                    yield from self.stored(places, read)
            case "register_write", [register, index, source]:
                array = one_of(self.registers, register, "register")
                yield ir.WriteRegister(array.name, value(index), value(source))
            case "modify_field_rng_uniform", [target, low, high]:
                yield from self._random(call, target, low, high, values)
            case "modify_field_with_hash_based_offset", [target, base, calculation, size]:
                yield from self._hash(target, base, calculation, size, values)
            case "generate_digest", [_, number]:
                fields = self.learn_lists.get(unwrapped(number)[1].number())
                yield ir.Digest(tuple(self.pieces(fields, "elements", call)[0]) if fields is not None else ())
            case (("clone_ingress_pkt_to_egress" | "clone_egress_pkt_to_egress"), [session, fields]):
                clone, kept = (CLONE, CLONE_LIST) if "ingress" in op else (EGRESS_CLONE, EGRESS_CLONE_LIST)
                yield ir.Assign(self.names.scratch(clone, 16), ir.BinaryOp("+", value(session), ir.Const(1)))
                yield ir.Assign(self.names.scratch(kept, 16), value(fields))
            case (("resubmit" | "recirculate"), [fields]):
                flag = self.names.scratch(RESUBMIT if op == "resubmit" else RECIRCULATE, 16)
                yield ir.Assign(flag, ir.BinaryOp("+", value(fields), ir.Const(1)))
            case "truncate", [size]:
                yield ir.Truncate(value(size))
            case "exit", _:
                yield ir.Exit()
            case _ if self.unknown and op not in _NOTHING:
                yield ir.RunOperator(self.names.scratch("unknown", 32), ir.Operator(op, code="unknown"))
            case _ if op not in _NOTHING:
                raise call.error(f"the primitive {op} is not supported")

    def assign(self, target: Tree, source: Tree, values: ValueReader) -> Iterator[ir.Statement]:
        yield from self.stored(values.places(target), values.value(source))

    @staticmethod
    def _paired(to: tuple[N, ...], of: tuple[N, ...], at: Tree) -> Iterator[tuple[N, N]]:
        if len(to) != len(of):
            raise at.error("copies what has another type")
        return zip(to, of, strict=True)

    def copied(self, to: str, of: str, at: Tree) -> Iterator[ir.Statement]:
        """A header takes over validity and fields of another one."""
        pairs = self._paired(self.names.refs(to), self.names.refs(of), at)
        if to in self.names.metadata:
            yield from (ir.Assign(a, b) for a, b in pairs)
            return
        values = tuple((a.field, b) for a, b in pairs)
        fields = self.names.headers[to]
        if any(f.varying for f in fields):
            assigned = (ir.Assign(ir.FieldRef(to, name), b) for name, b in values)
            yield ir.Branch(ir.IsValid(of), (*self._added(to), *assigned), (ir.RemoveHeader(to),))
        else:
            removed = tuple(ir.RemoveHeader(other) for other in self.names.others(to) if other != of)
            yield ir.Branch(ir.IsValid(of), (ir.AddHeader(to, values), *removed), (ir.RemoveHeader(to),))

    def pieces(self, tree: Tree, key: str, at: Tree) -> tuple[list[ir.FieldRef], bool]:
        """The fields of a list, and whether it ends with the payload; constants become fields of the metadata."""
        found: list[ir.FieldRef] = []
        payload = False
        for part in tree.each(key):
            kind = part.text("type")
            if kind == "field":
                found.append(self.names.field(part.at("value")))
            elif kind == "hexstr":
                found.append(self.constant(part.at("value").number(), part.whole("bitwidth")))
            elif kind == "header":
                found += self.names.refs(ValueReader(self.names).header(part))
            elif kind == "payload":
                payload = True
            else:
                raise part.error(f"{kind} in a list of fields is not supported")
        rest = -sum(self.names.width_bits(ref) for ref in found) % 8
        return [*found, *([self.constant(0, rest)] if rest else [])], payload

    def constant(self, number: int, width_bits: int) -> ir.FieldRef:
        """A metadata field that holds a constant."""
        ref = self.names.scratch(f"constant_{number:x}_{width_bits}", width_bits)
        self.constants[ref] = number
        return ref

    def hashed(self, ref: ir.FieldRef, calculation: Tree) -> ir.Hash | ir.Assign:
        """A calculation, to a field; over nothing it is a constant."""
        algorithm = calculation.text("algo")
        if algorithm not in _HASHES:
            raise calculation.error(f"the algorithm {algorithm} is not supported here")
        fields, payload = self.pieces(calculation, "input", calculation)
        if not fields and not payload:
            return ir.Assign(ref, ir.Const(STANDARD_HASHES[_HASHES[algorithm]](b"")))
        return ir.Hash(ref, _HASHES[algorithm], tuple(fields), payload)

    def calculated(self, ref: ir.FieldRef, calculation: Tree) -> ir.Hash | ir.Assign:
        """A calculation, to a field; of the first eight bytes or of words of 16 bit as an expression."""
        algorithm = calculation.text("algo")
        if algorithm not in _FOLDED_BITS:
            return self.hashed(ref, calculation)
        fields, payload = self.pieces(calculation, "input", calculation)
        if payload:
            raise calculation.error(f"the algorithm {algorithm} over the payload is not supported")
        widths = [self.names.width_bits(f) for f in fields]
        return ir.Assign(ref, first_bytes(fields, widths) if algorithm == "identity" else folded(fields, widths))

    def hash_bits(self, calculation: Tree) -> int:
        algorithm = calculation.text("algo")
        return _FOLDED_BITS.get(algorithm) or HASH_BITS[_HASHES.get(algorithm, "crc32")]

    def stored(
        self, places: Sequence[tuple[ir.FieldRef | str, ir.Condition]], value: ir.Expression
    ) -> Iterator[ir.Statement]:
        """A value goes to the one of the places whose condition holds."""
        for ref, condition in places:
            if not isinstance(ref, str):
                body: ir.Statements = (ir.Assign(ref, value),)
            elif isinstance(value, ir.Const):
                body = self._added(ref) if value.value else (ir.RemoveHeader(ref),)
            else:
                body = (ir.Branch(truth(value), self._added(ref), (ir.RemoveHeader(ref),)),)
            yield from guarded(condition, body)

    def _added(self, name: str) -> ir.Statements:
        """A header becomes valid; one that is keeps its fields."""
        added = ir.Branch(ir.Not(ir.IsValid(name)), (ir.AddHeader(name),))
        return (added, *(ir.RemoveHeader(other) for other in self.names.others(name)))

    def _copy(self, target: Tree, source: Tree, values: ValueReader) -> Iterator[ir.Statement]:
        for to, there in values.headers(target):
            for of, here in values.headers(source):
                yield from guarded(here, guarded(there, tuple(self.copied(to, of, target))))

    def _parts(self, tree: Tree, values: ValueReader) -> tuple[str, ...]:
        """The headers of a stack, a union or a stack of unions."""
        kind, value = unwrapped(tree)
        if kind == "header_stack":
            return self.names.elements(value)
        if kind == "header_union_stack":
            unions = self.names.union_stacks.get(value.text(), ())
            return tuple(h for union in unions for h in self.names.unions[union])
        return values.union(tree)

    def _shifted(self, stack: Tree, count: int) -> Iterator[ir.Statement]:
        """The elements of a stack move; those that come in are not valid."""
        elements = self.names.elements(unwrapped(stack)[1])
        order = range(len(elements)) if count < 0 else reversed(range(len(elements)))
        for n in order:
            if 0 <= n - count < len(elements):
                yield from self.copied(elements[n], elements[n - count], stack)
            else:
                yield ir.RemoveHeader(elements[n])

    def _random(self, call: Tree, target: Tree, low: Tree, high: Tree, values: ValueReader) -> Iterator[ir.Statement]:
        """``low + random % (high - low + 1)``; 0 choices are taken for one."""
        first, last = values.value(low), values.value(high)
        choices: ir.Expression
        if isinstance(first, ir.Const) and isinstance(last, ir.Const):
            if last.value < first.value:
                raise call.error(f"there is no random number from {first.value} to {last.value}")
            choices = ir.Const(last.value - first.value + 1)
        else:
            choices = ir.Cast(ir.BinaryOp("+", ir.BinaryOp("-", last, first), ir.Const(1)), RANDOM_BITS)
        drawn = self.names.scratch("random", RANDOM_BITS)
        yield ir.Random(drawn)
        among = ir.BinaryOp("%", drawn, choices)
        yield from self.stored(values.places(target), ir.BinaryOp("+", first, among))

    def _hash(
        self, target: Tree, base: Tree, calculation: Tree, size: Tree, values: ValueReader
    ) -> Iterator[ir.Statement]:
        """``base + hash % size``; 0 choices are taken for one."""
        tree = self.calculations.get(unwrapped(calculation)[1].text())
        if tree is None:
            raise calculation.error("there is no calculation of this name")
        choices = values.value(size)
        bits = self.hash_bits(tree)
        result = self.names.scratch(f"hash_{identifier(tree.text('algo'))}", bits)
        yield self.calculated(result, tree)
        number: ir.Expression = result
        if not isinstance(choices, ir.Const) or choices.value < 1 << bits:
            number = ir.BinaryOp("%", result, choices)
        first = values.value(base)
        total = number if first == ir.Const(0) else ir.BinaryOp("+", number, first)
        yield from self.stored(values.places(target), total)


def guarded(condition: ir.Condition, body: ir.Statements) -> ir.Statements:
    """Statements that run where a condition holds."""
    return body if condition == TRUE else (ir.Branch(condition, body),)


def _shifted(ref: ir.FieldRef, width_bits: int, by: int) -> ir.Expression:
    """A field as an unsigned number, shifted to the left, or to the right where ``by`` is negative."""
    number = ir.Cast(ref, width_bits)
    return ir.BinaryOp("<<" if by > 0 else ">>", number, ir.Const(abs(by))) if by else number


def first_bytes(fields: Sequence[ir.FieldRef], widths: Sequence[int]) -> ir.Expression:
    """The first eight bytes of fields one after another, as one number."""
    below = min(sum(widths), 64)
    parts: list[ir.Expression] = []
    for ref, width in zip(fields, widths, strict=True):
        if below > 0:
            below -= width
            parts.append(_shifted(ref, width, below))
    return _joined("|", parts)


def folded(fields: Sequence[ir.FieldRef], widths: Sequence[int]) -> ir.Expression:
    """The words of 16 bit of fields one after another, combined by exclusive or; the last is filled up with zeros."""
    below = sum(widths) + -sum(widths) % 16
    parts: list[ir.Expression] = []
    for ref, width in zip(fields, widths, strict=True):
        below -= width
        places = range(below % 16, -width, -16)
        parts += [ir.Cast(_shifted(ref, width, place), 16) for place in places]
    return _joined("^", parts)


def _joined(operator: ir.BinaryOperator, parts: Sequence[ir.Expression]) -> ir.Expression:
    return reduce(lambda left, right: ir.BinaryOp(operator, left, right), parts) if parts else ir.Const(0)


def one_of(known: Mapping[str, N], tree: Tree, noun: str) -> N:
    name = unwrapped(tree)[1].text()
    if name not in known:
        raise tree.error(f"there is no {noun} {name!r}")
    return known[name]
