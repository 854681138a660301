"""Where the fields of a program lie in the structures of SWX.

A field of SWX is a whole number of bytes. Header fields that are not share one, a *container*, with their neighbours;
metadata fields are rounded up, with zeros on top. SWX computes with up to 64 bit: it can copy and match a longer field,
but not write constants or arguments to it. Where a program needs that, its long fields are split into words of 64 bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from p4perf.errors import CapabilityError
from p4perf.generators.analysis import destination, statements, used_actions
from p4perf.generators.program import (
    METADATA,
    AddHeader,
    Assign,
    Field,
    FieldRef,
    Hash,
    Header,
    HeaderChecksum,
    Program,
)

WORD_BITS = 64

SCRATCH = "swx"
"""Header that no packet carries: big-endian memory, in which what is hashed or summed is laid out."""


OPERAND = ""
"""Stands for a header in references to an operand of SWX itself, which is named instead of the field."""


@dataclass(frozen=True, slots=True)
class Place:
    """Bits of a field of SWX: ``bits`` of them, ``shift`` above its lowest; ``field_bits`` is its whole width.

    ``word`` counts the words of 64 bit of a long field that was split, from its lowest one. The bits are ``alone`` if
    all others of the field are always zero.
    """

    operand: str
    field_bits: int
    bits: int
    shift: int = 0
    word: int = 0
    alone: bool = True


@dataclass(frozen=True, slots=True)
class StructField:
    """A field of a structure of SWX."""

    name: str
    bits: int
    first: int
    """Offset in the structure, in bits."""


def whole_bytes(bits: int) -> int:
    """The width rounded up to whole bytes, in bits."""
    return -(-bits // 8) * 8


def split_words(field: Field) -> list[tuple[str, int, int]]:
    """Name, width and number of the words of a long field, the most significant one first."""
    count = -(-field.width_bits // WORD_BITS)
    return [
        (f"{field.name}_w{n}", min(WORD_BITS, field.width_bits - n * WORD_BITS), n) for n in range(count - 1, -1, -1)
    ]


def splits_long_fields(program: Program) -> bool:
    """Whether something has to be done with fields of more than 64 bit that SWX cannot do with the whole field."""

    def is_long(ref: FieldRef) -> bool:
        return program.width_bits(ref) > WORD_BITS

    if any(f.width_bits > WORD_BITS for f in program.metadata):
        return True
    if any(p.width_bits > WORD_BITS for name in used_actions(program) for p in program.action(name).parameters):
        return True
    for statement in statements(program):
        if isinstance(statement, AddHeader):
            if any(f.width_bits > WORD_BITS for f in program.header(statement.header).fields):
                return True
        elif isinstance(statement, Assign):
            source = statement.value if isinstance(statement.value, FieldRef) else None
            widths = {program.width_bits(statement.destination), program.width_bits(source) if source else 0}
            if max(widths) > WORD_BITS and len(widths) > 1:
                return True
        elif isinstance(statement, Hash):
            if any(is_long(f) for f in (statement.destination, *statement.fields)):
                return True
        elif (ref := destination(statement)) is not None and is_long(ref):
            return True
    checked: tuple[HeaderChecksum, ...] = (*program.verified, *program.updated)
    return any(f.width_bits > WORD_BITS for c in checked for f in program.header(c.header).fields)


class StructLayout:
    """The fields of one structure of SWX, and where the fields of the program are in it."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.fields: list[StructField] = []
        self.places: dict[str, tuple[Place, ...]] = {}

    @property
    def bits(self) -> int:
        """Width of the structure."""
        return self.fields[-1].first + self.fields[-1].bits if self.fields else 0

    def struct_field(self, operand: str) -> StructField:
        """The field that an operand names.

        Raises:
            KeyError: the structure has no such field.
        """
        for f in self.fields:
            if f"{self.prefix}.{f.name}" == operand:
                return f
        raise KeyError(operand)

    def append(self, name: str, bits: int) -> str:
        """Append a field of SWX; its operand. The name gets a number if it is taken."""
        taken = {f.name for f in self.fields}
        free = next(n for n in (name, *(f"{name}_{i}" for i in range(1, len(taken) + 2))) if n not in taken)
        self.fields.append(StructField(free, bits, self.bits))
        return f"{self.prefix}.{free}"

    def add(self, field: Field, *, split: bool) -> None:
        """Append a field that shares its bytes with none; zeros fill it up to whole bytes."""
        if field.width_bits <= WORD_BITS or not split:
            bits = whole_bytes(field.width_bits)
            self.places[field.name] = (Place(self.append(field.name, bits), bits, field.width_bits),)
            return
        self.places[field.name] = tuple(
            Place(self.append(name, whole_bytes(bits)), whole_bytes(bits), bits, word=word)
            for name, bits, word in split_words(field)
        )

    def add_container(self, run: list[Field]) -> None:
        """Append one field for several that are whole bytes together only."""
        bits = sum(f.width_bits for f in run)
        operand = self.append(f"{run[0].name}_to_{run[-1].name}", bits)
        above = bits
        for f in run:
            above -= f.width_bits
            self.places[f.name] = (Place(operand, bits, f.width_bits, above, alone=False),)


def header_layout(header: Header, *, split: bool) -> StructLayout:
    """The structure of a header: as on the wire, fields that are not whole bytes together with their neighbours."""
    layout = StructLayout(f"h.{header.name}")
    run: list[Field] = []
    for f in header.fields:
        run.append(f)
        if sum(part.width_bits for part in run) % 8:
            continue
        if len(run) == 1:
            layout.add(f, split=split)
        else:
            layout.add_container(run)
        run = []
    return layout


class Layout:
    """All structures of a program.

    Args:
        program: the program.
        zeroed: fields that have to be zero where their header is not valid.
    """

    def __init__(self, program: Program, zeroed: Iterable[FieldRef]) -> None:
        self.split = splits_long_fields(program) or any(program.width_bits(ref) > WORD_BITS for ref in zeroed)
        self.headers = {h.name: header_layout(h, split=self.split) for h in program.headers}
        self.metadata = StructLayout("m")
        self.scratch = StructLayout(f"h.{SCRATCH}")
        # What a hash is written to comes first: 22.11 cuts the offset of that operand to 8 bit, in bits, not bytes.
        hashed = {s.destination for s in statements(program) if isinstance(s, Hash)}
        self.port_in = self.metadata.append("swx_port_in", 32)
        self.port_out = self.metadata.append("swx_port_out", 32)
        self.hash_result = self.metadata.append("swx_hash", 32) if hashed else ""
        for f in sorted(program.metadata, key=lambda f: FieldRef(METADATA, f.name) not in hashed):
            self.metadata.add(f, split=self.split)

    def struct(self, ref: FieldRef) -> StructLayout:
        """The structure that a field is in."""
        if ref.header == METADATA:
            return self.metadata
        return self.scratch if ref.header == SCRATCH else self.headers[ref.header]

    def operand_bits(self, operand: str) -> int:
        """Width of a field of SWX, in bits.

        Raises:
            KeyError: there is no such field.
        """
        for struct in (self.metadata, self.scratch, *self.headers.values()):
            if operand.startswith(f"{struct.prefix}."):
                return struct.struct_field(operand).bits
        raise KeyError(operand)

    def places(self, ref: FieldRef) -> tuple[Place, ...]:
        """Where a field lies: one place, or one a word, the most significant first.

        Raises:
            CapabilityError: it shares a field of SWX with neighbours that together are too long.
        """
        if ref.header == OPERAND:
            return (Place(ref.field, WORD_BITS, WORD_BITS),)
        places = self.struct(ref).places[ref.field]
        if not places[0].alone and places[0].field_bits > WORD_BITS:
            raise CapabilityError(
                f"{ref.header}.{ref.field} does not begin and end with a byte, and {places[0].field_bits} bit lie "
                f"between the fields around it that do: SWX reads up to {WORD_BITS}"
            )
        return places

    def scratch_fields(self, widths: list[int], *, align_bits: int) -> list[FieldRef]:
        """Fields in the scratch header, one behind the other, as a header with these widths would have them.

        Args:
            widths: of the fields, in bits; together a multiple of ``align_bits``.
            align_bits: every field of SWX begins and ends at a multiple of it; 8, or 16 for what is summed.

        Raises:
            CapabilityError: fields lie so that more than 64 bit would have to become one field of SWX.
        """
        base = len(self.scratch.places)
        found = [Field(f"part_{base + n}", w) for n, w in enumerate(widths)]
        run: list[Field] = []
        for f in found:
            run.append(f)
            bits = sum(part.width_bits for part in run)
            if bits % align_bits:
                continue
            if len(run) == 1:
                self.scratch.add(f, split=True)
            elif bits > WORD_BITS:
                raise CapabilityError(
                    f"dpdk-swx sums and hashes fields of {WORD_BITS} bit, and {bits} bit lie between two boundaries of "
                    f"{align_bits} bit"
                )
            else:
                self.scratch.add_container(run)
            run = []
        return [FieldRef(SCRATCH, f.name) for f in found]
