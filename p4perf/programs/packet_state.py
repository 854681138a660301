"""One packet in the reference interpreter: its bytes, headers and metadata, and what expressions are for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from p4perf.programs import ir
from p4perf.programs.analysis import COMPARE, OPERATE
from p4perf.programs.operators import internet_checksum

NO_ARGUMENTS: Mapping[str, int] = MappingProxyType({})
"""Of what stands in no action."""

Kept = Mapping[ir.FieldRef, tuple[int, bool]]
"""Metadata for a later pass or a copy: values, and whether random numbers are in them."""


class ParserError(Exception):
    """A packet that the parser rejects, with the number of the error."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass(slots=True)
class PacketState:
    """One packet in one pass, or one copy of it in egress.

    Args:
        frame: its bytes when the pass began.
        pass_number: from 0.
        known: what :class:`~p4perf.programs.ir.Intrinsic` names, as far as it is not ``unknown``.
        mask: zeros where bits of the frame are random; None: none are.
    """

    program: ir.Program
    frame: bytes
    pass_number: int
    known: dict[str, int] = field(default_factory=dict)
    fields: dict[ir.FieldRef, int] = field(default_factory=dict)
    random: set[ir.FieldRef] = field(default_factory=set)
    mask: bytes | None = None
    valid: set[str] = field(default_factory=set)
    varying_bits: dict[str, int] = field(default_factory=dict)
    """Width of the varying field of a header."""
    parsed_bytes: int = 0
    egress: int | None = None
    copies: tuple[tuple[int, int], ...] = ()
    """Port and replication id of each copy of a multicast."""
    clones: list[tuple[int, Kept]] = field(default_factory=list)
    """Port of each clone, and the metadata that it keeps."""
    dropped: bool = False
    opaque: bool = False
    """Whether something that is not known here may have written to any of its bytes."""
    again: ir.Recirculate | ir.Resubmit | None = None
    size_bytes: int | None = None
    """Bytes after which it is cut off; None: it is not."""

    def copied(self, **known: int) -> PacketState:
        """A copy of the packet for egress, and what is known of it there."""
        return replace(
            self,
            known={**self.known, **known},
            fields=dict(self.fields),
            random=set(self.random),
            valid=set(self.valid),
            varying_bits=dict(self.varying_bits),
            clones=[],
        )

    def kept(self, refs: Iterable[ir.FieldRef]) -> Kept:
        """The values of metadata fields, for a later pass or a copy."""
        return {ref: (self.fields.get(ref, 0), ref in self.random) for ref in refs}

    def keep(self, kept: Kept) -> None:
        """Take over metadata of an earlier pass or of the packet that this is a copy of."""
        for ref, (value, random) in kept.items():
            self.write(ref, value, random=random)

    def _widths(self, header: ir.Header) -> Iterator[tuple[ir.FieldRef, int]]:
        """The fields of a header, and how wide they are in this packet."""
        varying_bits = self.varying_bits.get(header.name, 0)
        for f in header.fields:
            yield ir.FieldRef(header.name, f.name), varying_bits if f.varying else f.width_bits

    def bits_ahead(self, offset_bits: int, width_bits: int) -> tuple[int, int]:
        """Bits that are not parsed yet, and ones where they are random.

        Raises:
            ParserError: the packet is too short.
        """
        first = 8 * self.parsed_bytes + offset_bits
        last = first + width_bits
        if last > 8 * len(self.frame):
            raise ParserError(ir.PACKET_TOO_SHORT)
        every = (1 << width_bits) - 1
        value, known = (
            every if of is None else int.from_bytes(of[first // 8 : -(-last // 8)], "big") >> (-last % 8) & every
            for of in (self.frame, self.mask)
        )
        return value, known ^ every

    def extract(self, header: ir.Header, varying_bits: int = 0) -> None:
        """Take a header from the bytes that are not parsed yet.

        Raises:
            ParserError: they are too few, or the varying field would be wider than it can be.
        """
        room = sum(f.width_bits for f in header.fields if f.varying)
        if varying_bits > room:
            raise ParserError(ir.HEADER_TOO_SHORT)
        if varying_bits % 8 or varying_bits < 0:
            raise ParserError(ir.PARSER_INVALID_ARGUMENT)
        self.varying_bits[header.name] = varying_bits
        left = header.width_bits - room + varying_bits
        value, unknown = self.bits_ahead(0, left)
        self.parsed_bytes += left // 8
        for ref, width in self._widths(header):
            left -= width
            every = (1 << width) - 1
            self.fields[ref] = (value >> left) & every
            (self.random.add if unknown >> left & every else self.random.discard)(ref)
        self.valid.add(header.name)

    def advance(self, bits: int) -> None:
        """Skip bytes.

        Raises:
            ParserError: they are too few, or it is no whole number of them.
        """
        if bits % 8 or bits < 0:
            raise ParserError(ir.PARSER_INVALID_ARGUMENT)
        if self.parsed_bytes + bits // 8 > len(self.frame):
            raise ParserError(ir.PACKET_TOO_SHORT)
        self.parsed_bytes += bits // 8

    def read(self, ref: ir.FieldRef) -> int:
        if ref.header != ir.METADATA and ref.header not in self.valid:
            return 0
        value, declared = self.fields.get(ref, 0), self.program.declared(ref)
        return twos_complement(value, declared.width_bits) if declared.signed else value

    def write(self, ref: ir.FieldRef, value: int, *, random: bool = False) -> None:
        """Give a field a value, of which it takes as many bits as it has."""
        self.fields[ref] = value & ((1 << self.program.width_bits(ref)) - 1)
        (self.random.add if random else self.random.discard)(ref)

    def evaluate(self, expression: ir.Expression, arguments: Mapping[str, int]) -> tuple[int, bool]:
        """Value of an expression, and whether a random number is in it; ``arguments`` are those of the action.

        Raises:
            ParserError: it looks ahead further than the packet goes.
        """
        match expression:
            case ir.Const(value):
                return value, False
            case ir.FieldRef():
                return self.read(expression), expression in self.random
            case ir.BinaryOp(operator, left_side, right_side):
                left, left_random = self.evaluate(left_side, arguments)
                right, right_random = self.evaluate(right_side, arguments)
                return OPERATE[operator](left, right), left_random or right_random
            case ir.ParameterRef(name):
                return arguments[name], False
            case ir.Cast(inner, width_bits, signed, saturating):
                value, random = self.evaluate(inner, arguments)
                return _cast(value, width_bits, signed, saturating), random
            case ir.Conditional(condition, then, otherwise):
                holds, condition_random = self.holds(condition, arguments)
                value, random = self.evaluate(then if holds else otherwise, arguments)
                return value, random or condition_random
            case ir.Truth(condition):
                holds, random = self.holds(condition, arguments)
                return int(holds), random
            case ir.Lookahead(offset_bits, width_bits):
                value, unknown = self.bits_ahead(offset_bits, width_bits)
                return value, unknown != 0
            case ir.Intrinsic(name):
                return self.known.get(name, 0), name == "unknown" and name not in self.known
            case ir.PassNumber():
                return self.pass_number, False

    def holds(self, condition: ir.Condition, arguments: Mapping[str, int]) -> tuple[bool, bool]:
        """Whether a condition holds, and whether that depends on a random number."""
        match condition:
            case ir.IsValid(header):
                return header in self.valid, False
            case ir.Compare(comparator, left_side, right_side):
                left, left_random = self.evaluate(left_side, arguments)
                right, right_random = self.evaluate(right_side, arguments)
                return COMPARE[comparator](left, right), left_random or right_random
            case ir.Not(inner):
                holds, random = self.holds(inner, arguments)
                return not holds, random
            case ir.And(first, second) | ir.Or(first, second):
                holds, random = self.holds(first, arguments)
                if holds == isinstance(condition, ir.Or) and not random:
                    return holds, False
                other, other_random = self.holds(second, arguments)
                both = holds and other if isinstance(condition, ir.And) else holds or other
                return both, random or other_random

    def joined(self, refs: Iterable[ir.FieldRef]) -> bytes:
        """Fields one after another."""
        value, bits = 0, 0
        for ref in refs:
            declared = self.program.declared(ref)
            width = self.varying_bits.get(ref.header, 0) if declared.varying else declared.width_bits
            value, bits = value << width | self.read(ref) & ((1 << width) - 1), bits + width
        return value.to_bytes(bits // 8, "big")

    def checksum(self, ref: ir.FieldRef) -> tuple[int, bool]:
        """What the checksum of a header has to be, which is in one of its fields, and whether that is random."""
        header = self.program.header(ref.header)
        value, random = 0, False
        for f in header.fields:
            each = ir.FieldRef(header.name, f.name)
            number = 0 if each == ref else self.fields[each]
            value, random = value << f.width_bits | number, random or (each != ref and each in self.random)
        return internet_checksum(value.to_bytes(header.size_bytes, "big")), random

    def deparse(self) -> tuple[bytes, bytes | None]:
        """The bytes as they would be sent, and a mask with zeros where bits are random (None: none are)."""
        out, known = b"", b""
        for name in self.program.emit:
            if name not in self.valid:
                continue
            value, mask, bits = 0, 0, 0
            for ref, width in self._widths(self.program.header(name)):
                value = (value << width) | self.fields.get(ref, 0)
                mask = (mask << width) | (0 if ref in self.random else (1 << width) - 1)
                bits += width
            out += value.to_bytes(bits // 8, "big")
            known += mask.to_bytes(bits // 8, "big")
        data = (out + self.frame[self.parsed_bytes :])[: self.size_bytes]
        if self.opaque:
            return data, bytes(len(data))
        known += b"" if self.mask is None else self.mask[self.parsed_bytes :]
        known = known.ljust(len(data), b"\xff")[: len(data)]
        return data, known if any(byte != 0xFF for byte in known) else None


def twos_complement(value: int, width_bits: int) -> int:
    """An unsigned number read as two's complement."""
    return value - (1 << width_bits) if value >> (width_bits - 1) else value


def _cast(value: int, width_bits: int, signed: bool, saturating: bool) -> int:
    if saturating:
        low, high = (-(1 << (width_bits - 1)), (1 << (width_bits - 1)) - 1) if signed else (0, (1 << width_bits) - 1)
        return min(max(value, low), high)
    value &= (1 << width_bits) - 1
    return twos_complement(value, width_bits) if signed else value
