"""A packet on its way through one pass of a program, as the reference interpreter knows it: fields, and bytes of them.

The fields of a header that is not valid, which P4 leaves undefined, read as zero here. Of every field is known whether
a random number is in it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from p4perf.generators.hashes import internet_checksum
from p4perf.generators.program import (
    METADATA,
    BinaryOp,
    Const,
    Expression,
    FieldRef,
    Header,
    HeaderChecksum,
    ParameterRef,
    Program,
    Recirculate,
    Resubmit,
)


@dataclass(slots=True)
class PacketState:
    """One packet in one pass.

    Args:
        program: the program.
        frame: its bytes when the pass began.
        pass_number: from 0.
    """

    program: Program
    frame: bytes
    pass_number: int
    fields: dict[FieldRef, int] = field(default_factory=dict)
    random: set[FieldRef] = field(default_factory=set)
    valid: set[str] = field(default_factory=set)
    parsed_bytes: int = 0
    egress: int | None = None
    ports: tuple[int, ...] = ()
    dropped: bool = False
    opaque: bool = False
    """Whether something that is not known here may have written to any of its bytes."""
    again: Recirculate | Resubmit | None = None

    def extract(self, header: Header) -> bool:
        """Take a header from the bytes that are not parsed yet; False if they are too few."""
        chunk = self.frame[self.parsed_bytes : self.parsed_bytes + header.size_bytes]
        if len(chunk) < header.size_bytes:
            return False
        value, left = int.from_bytes(chunk, "big"), header.width_bits
        for f in header.fields:
            left -= f.width_bits
            self.fields[FieldRef(header.name, f.name)] = (value >> left) & ((1 << f.width_bits) - 1)
        self.valid.add(header.name)
        self.parsed_bytes += header.size_bytes
        return True

    def read(self, ref: FieldRef) -> int:
        """The value of a field."""
        if ref.header != METADATA and ref.header not in self.valid:
            return 0
        return self.fields.get(ref, 0)

    def write(self, ref: FieldRef, value: int, *, random: bool = False) -> None:
        """Give a field a value, of which it takes as many bits as it has."""
        self.fields[ref] = value & ((1 << self.program.width_bits(ref)) - 1)
        (self.random.add if random else self.random.discard)(ref)

    def evaluate(self, expression: Expression, arguments: Mapping[str, int]) -> tuple[int, bool]:
        """Value of an expression, and whether a random number is in it; ``arguments`` are those of the action."""
        if isinstance(expression, Const):
            return expression.value, False
        if isinstance(expression, FieldRef):
            return self.read(expression), expression in self.random
        if isinstance(expression, BinaryOp):
            left, left_random = self.evaluate(expression.left, arguments)
            right, right_random = self.evaluate(expression.right, arguments)
            return _OPERATORS[expression.operator](left, right), left_random or right_random
        if isinstance(expression, ParameterRef):
            return arguments[expression.name], False
        return self.pass_number, False

    def joined(self, refs: Iterable[FieldRef]) -> bytes:
        """The bytes of fields, one after the other."""
        value, bits = 0, 0
        for ref in refs:
            width = self.program.width_bits(ref)
            value, bits = value << width | self.read(ref), bits + width
        return value.to_bytes(bits // 8, "big")

    def checksum(self, checksum: HeaderChecksum) -> int:
        """What the checksum of a valid header has to be."""
        header = self.program.header(checksum.header)
        value = 0
        for f in header.fields:
            number = 0 if f.name == checksum.field else self.fields[FieldRef(header.name, f.name)]
            value = value << f.width_bits | number
        return internet_checksum(value.to_bytes(header.size_bytes, "big"))

    def verified(self, checksum: HeaderChecksum) -> bool:
        """Whether the checksum of a header is right, if that is valid."""
        if checksum.header not in self.valid:
            return True
        return self.fields[FieldRef(checksum.header, checksum.field)] == self.checksum(checksum)

    def deparse(self) -> tuple[bytes, bytes | None]:
        """The bytes as they would be sent, and a mask with zeros where bits are random (None: none are)."""
        out, known = b"", b""
        for name in self.program.emit:
            if name not in self.valid:
                continue
            header = self.program.header(name)
            value, mask = 0, 0
            for f in header.fields:
                ref = FieldRef(name, f.name)
                value = (value << f.width_bits) | self.fields[ref]
                mask = (mask << f.width_bits) | (0 if ref in self.random else (1 << f.width_bits) - 1)
            out += value.to_bytes(header.size_bytes, "big")
            known += mask.to_bytes(header.size_bytes, "big")
        payload = self.frame[self.parsed_bytes :]
        if self.opaque:
            return out + payload, bytes(len(out + payload))
        has_random = any(byte != 0xFF for byte in known)
        return out + payload, known + b"\xff" * len(payload) if has_random else None


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
