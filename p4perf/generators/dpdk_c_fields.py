"""Fields, expressions and keys of a program as C text. Values are ``uint64_t``; wider fields are treated in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from p4perf.errors import CapabilityError
from p4perf.generators.program import (
    METADATA,
    BinaryOp,
    Compare,
    Condition,
    Const,
    Expression,
    FieldRef,
    Header,
    IsValid,
    ParameterRef,
    PassNumber,
    Program,
)

WORD_BITS = 64
"""Widest number that is computed with."""

_WORD = (1 << WORD_BITS) - 1


def c_type(width_bits: int) -> str:
    """The unsigned C type that holds a value of that width, up to 64 bit."""
    return next(f"uint{size}_t" for size in (8, 16, 32, 64) if width_bits <= size)


def mask(width_bits: int) -> str:
    """A C constant with the lowest ``width_bits`` bits set."""
    return number((1 << width_bits) - 1, "0x{:x}")


def number(value: int, form: str = "{}") -> str:
    """A C constant of 64 bit, unsigned."""
    return f"{form.format(value & _WORD)}ull"


class FieldWriter:
    """Fields of one program as C text; ``p`` is the packet, ``d`` the action data."""

    def __init__(self, program: Program, always_valid: frozenset[str]) -> None:
        self.program = program
        self.always_valid = always_valid

    def in_memory(self, ref: FieldRef) -> bool:
        """Whether a field is kept as bytes (all but metadata of up to 64 bit)."""
        return ref.header != METADATA or self.program.width_bits(ref) > WORD_BITS

    def place(self, ref: FieldRef) -> tuple[str, int]:
        """Pointer to the bytes in which a field lies, for reading, and the offset of its first bit there."""
        if ref.header == METADATA:
            return f"p->m_{ref.field}", -self.program.width_bits(ref) % 8
        return f"p->h_{ref.header}", self.program.header(ref.header).offset_bits(ref.field)

    def load(self, ref: FieldRef, low: int = 0) -> str:
        """The value of a field, or of up to 64 bits of it from bit ``low`` (counted from the lowest) on."""
        width = self.program.width_bits(ref)
        if low >= width:
            return "0"
        if not self.in_memory(ref):
            return f"p->m_{ref.field}"
        base, offset = self.place(ref)
        taken = min(WORD_BITS, width - low)
        return _load(base, offset + width - low - taken, taken)

    def expression(self, e: Expression, low: int = 0) -> str:
        """The value of an expression, modulo two to the 64, shifted to the right by ``low`` (a multiple of 64) bits."""
        match e:
            case Const(value):
                return number(value >> low)
            case FieldRef():
                return self.load(e, low)
            case ParameterRef(name):
                return "0" if low else f"(uint64_t)d->{name}"
            case BinaryOp(operator, left, right):
                if low:
                    raise CapabilityError(f"dpdk-c computes with up to {WORD_BITS} bit")
                return f"({self.expression(left)} {operator} {self.expression(right)})"
            case PassNumber():
                return "0" if low else "(uint64_t)p->pass"

    def condition(self, condition: Condition) -> str:
        """A condition, without brackets around it."""
        match condition:
            case Compare(comparator, left, right):
                return f"{self.expression(left)} {comparator} {self.expression(right)}"
            case IsValid(header):
                return self.is_valid(header)

    def is_valid(self, header: str) -> str:
        """Whether a packet has a header."""
        return "true" if header in self.always_valid else f"p->h_{header} != absent"

    def target(self, ref: FieldRef) -> str:
        """Pointer to the bytes in which a field lies, for writing."""
        base, _ = self.place(ref)
        return base if ref.header == METADATA or ref.header in self.always_valid else f"writable({base})"

    def store(self, ref: FieldRef, values: Sequence[str], pointer: str | None = None) -> Iterator[str]:
        """Statements that write a field: the value in words of 64 bit, the lowest first; those that lack are zero."""
        width = self.program.width_bits(ref)
        if not self.in_memory(ref):
            yield f"p->m_{ref.field} = {values[0]} & {mask(width)};"
            return
        _, offset = self.place(ref)
        base = pointer or self.target(ref)
        for n, low in enumerate(range(0, width, WORD_BITS)):
            taken = min(WORD_BITS, width - low)
            yield _store(base, offset + width - low - taken, taken, values[n] if n < len(values) else "0")

    def assign(self, ref: FieldRef, value: Expression, pointer: str | None = None) -> Iterator[str]:
        """Statements that write an expression to a field."""
        words = [self.expression(value, low) for low in range(0, self.program.width_bits(ref), WORD_BITS)]
        yield from self.store(ref, words, pointer)

    def bits(self, refs: Sequence[FieldRef]) -> int:
        """Width of fields together."""
        return sum(self.program.width_bits(ref) for ref in refs)

    def number(self, refs: Sequence[FieldRef]) -> str:
        """Fields one after another as a number, the first the most significant: at most 64 bit together."""
        parts, below = [], self.bits(refs)
        for ref in refs:
            below -= self.program.width_bits(ref)
            parts.append(f"{self.load(ref)} << {below}" if below else self.load(ref))
        return " | ".join(f"({part})" if len(parts) > 1 and "<<" in part else part for part in parts)

    def gather(self, refs: Sequence[FieldRef], into: str) -> Iterator[str]:
        """Statements that write fields one after another to bytes, which are zero before."""
        at = 0
        for ref in refs:
            width = self.program.width_bits(ref)
            base, offset = self.place(ref) if self.in_memory(ref) else ("", 0)
            if base and width % 8 == offset % 8 == at % 8 == 0:
                yield f"memcpy({into} + {at // 8}, {_plus(base, offset // 8)}, {width // 8});"
            else:
                for low in range(0, width, WORD_BITS):
                    taken = min(WORD_BITS, width - low)
                    yield _store(into, at + width - low - taken, taken, self.load(ref, low))
            at += width

    def together(self, refs: Sequence[FieldRef]) -> str | None:
        """Pointer to fields that already stand one after another in a header, on whole bytes; None if they do not."""
        if any(ref.header != refs[0].header or not self.in_memory(ref) for ref in refs):
            return None
        base, first = self.place(refs[0])
        at = first
        for ref in refs:
            if self.place(ref)[1] != at:
                return None
            at += self.program.width_bits(ref)
        return _plus(base, first // 8) if first % 8 == 0 else None


def _plus(base: str, count: int) -> str:
    return f"{base} + {count}" if count else base


def _load(base: str, offset: int, width: int) -> str:
    if offset % 8 == width % 8 == 0:
        return f"load_bytes({_plus(base, offset // 8)}, {width // 8})"
    return f"load_bits({base}, {offset}, {width})"


def _store(base: str, offset: int, width: int, value: str) -> str:
    if offset % 8 == width % 8 == 0:
        return f"store_bytes({_plus(base, offset // 8)}, {width // 8}, {value});"
    return f"store_bits({base}, {offset}, {width}, {value});"


def is_aligned(header: Header, field: str) -> bool:
    """Whether a field of 16 bit lies on a word of the internet checksum."""
    return header.offset_bits(field) % 16 == 0
