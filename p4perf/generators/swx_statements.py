"""Statements as instructions of SWX."""

from __future__ import annotations

from p4perf.errors import CapabilityError
from p4perf.generators.analysis import destination
from p4perf.generators.program import (
    METADATA,
    AddHeader,
    Assign,
    Clone,
    Const,
    CountPacket,
    Drop,
    Expression,
    FieldRef,
    Hash,
    HeaderChecksum,
    MeterPacket,
    Multicast,
    ReadRegister,
    Recirculate,
    RemoveHeader,
    SetEgress,
    Statement,
    WriteRegister,
)
from p4perf.generators.swx_expressions import Expressions, number
from p4perf.generators.swx_layout import WORD_BITS

HASH_OFFSET_BITS = 256
"""A hash can only be written to the first 32 bytes of the metadata."""


class Statements(Expressions):
    """Writes statements into one list of instructions."""

    def body(self, statements: tuple[Statement, ...]) -> None:
        """Write statements, up to one that ends the packet."""
        guard, after = None, ""
        for statement in statements:
            if self._code.ended:
                break
            header = self._guard(statement)
            if header != guard:
                if guard is not None:
                    self._code.place(after)
                if header is not None:
                    after = self._code.label("absent")
                    self._code.op("jmpnv", after, f"h.{header}")
                guard = header
            self._statement(statement)
        if guard is not None:
            self._code.place(after)

    def _guard(self, statement: Statement) -> str | None:
        """The header that has to be valid for a statement: one of which it writes a field that is read later on."""
        ref = destination(statement)
        findings = self._model.findings
        if ref is None or (self._action, ref) not in findings.loose_writes or ref not in findings.read_again:
            return None
        return ref.header

    def _statement(self, statement: Statement) -> None:
        self._temporaries = 0
        match statement:
            case Assign(ref, value):
                self.assign(ref, value)
            case SetEgress(port):
                self._evaluate(port, self._model.layout.port_out)
            case AddHeader():
                self._add_header(statement)
            case RemoveHeader(name):
                self._code.op("invalidate", f"h.{name}")
                self.clear_absent(name)
            case Hash():
                self._hash(statement)
            case CountPacket(counter, index):
                self._code.op("regadd", counter, self._index(index), "0x1")
            case ReadRegister(ref, register, index):
                self._into(ref, lambda at: self._code.op("regrd", at, register, self._index(index)))
            case WriteRegister():
                self._write_register(statement)
            case MeterPacket(ref, meter, index):
                self._meter(ref, meter, index)
            case _:
                self._path(statement)

    def _path(self, statement: Statement) -> None:
        """Statements that decide where the packet goes."""
        model, code = self._model, self._code
        match statement:
            case Drop() if self._action in model.findings.flagged_drops:
                code.op("mov", model.flag("swx_dropped"), "0x1")
            case Drop():
                code.op("drop")
            case Recirculate() if model.recirculates_by_flag:
                code.op("mov", model.flag("swx_again"), "0x1")
            case Recirculate():
                code.op("recirculate")
            case Clone(port):
                code.op("mov", model.session, number(model.mirrors.index(port)))
                code.op("mirror", model.slot, model.session)
                code.op("add", model.slot, "0x1")
            case Multicast(ports):
                group = model.groups.index(ports) + 1 if ports else 0
                code.op("mov", model.flag("swx_group"), number(group))
            case _:
                raise CapabilityError(f"dpdk-swx has no {type(statement).__name__}")

    # Headers

    def _add_header(self, statement: AddHeader) -> None:
        model, header = self._model, self._model.program.header(statement.header)
        given = dict(statement.values)
        for name, value in given.items():
            # Values of the header's own fields are those before.
            if any(e.header == header.name for e in model.fields_in(value)):
                at = self.temporary()
                self._evaluate(value, at)
                given[name] = model.as_field(at)
        self._code.op("validate", f"h.{header.name}")
        done: set[str] = set()
        for f in header.fields:
            ref = FieldRef(header.name, f.name)
            places = model.layout.places(ref)
            value = given.get(f.name, Const(0))
            if len(places) > 1:
                self._assign_long(places, value)
            elif places[0].alone:
                self._assign(places[0], value)
            else:
                if places[0].operand not in done:
                    self._code.op("mov", places[0].operand, number(model.constant_part(header, places[0], given)))
                    done.add(places[0].operand)
                if not isinstance(value, Const):
                    self._assign(places[0], value)

    # Counters, registers, meters

    def _index(self, index: Expression) -> str:
        """An operand for the index of an array; it is never an immediate value.

        22.11 forgets which array is meant if both index and value are immediate.
        """
        if isinstance(index, Const):
            at = self.temporary()
            self._code.op("mov", at, number(index.value))
            return at
        return self.operand(index)

    def _write_register(self, statement: WriteRegister) -> None:
        register = self._model.program.register(statement.register)
        index = self._index(statement.index)
        value = statement.value
        if isinstance(value, Const):
            source = number(value.value, register.width_bits)
        elif self._fits(value, register.width_bits) or register.width_bits == WORD_BITS:
            source = self.operand(value)
        else:
            source = self.temporary()
            self._evaluate(value, source)
            self._code.op("and", source, number((1 << register.width_bits) - 1))
        self._code.op("regwr", register.name, index, source)

    def _meter(self, ref: FieldRef, meter: str, index: Expression) -> None:
        length, at, colour = self.temporary(), self._index(index), self.temporary()
        self._code.op("mov", length, number(self._model.packet_bytes))
        self._code.op("meter", meter, at, length, "0x0", colour)
        self._assign_from(ref, colour)

    # Hashes and checksums

    def _hash(self, statement: Hash) -> None:
        if statement.algorithm == "checksum16":
            result = self._model.sum
            self._code.op("mov", result, "0x0")
            self._sum(result, statement.fields)
            self._assign_from(statement.destination, result)
            return
        first, last = self._contiguous(statement.fields)
        place = self._model.layout.places(statement.destination)[-1]
        near = False
        if statement.destination.header == METADATA and place.alone:
            field = self._model.layout.metadata.struct_field(place.operand)
            near = field.first < HASH_OFFSET_BITS and place.bits == place.field_bits
        at = place.operand if near else self._model.layout.hash_result
        self._code.op("hash", "crc32", at, first, last)
        if not near:
            self._assign_from(statement.destination, at)

    def _contiguous(self, fields: tuple[FieldRef, ...]) -> tuple[str, str]:
        """First and last operand of memory that holds the fields one behind the other, big-endian."""
        layout, one_header = self._model.layout, len({f.header for f in fields}) == 1
        if one_header and fields[0].header != METADATA:
            struct, header = layout.struct(fields[0]), self._model.program.header(fields[0].header)
            at = header.offset_bits(fields[0].field)
            begins, adjacent = at, True
            for f in fields:
                adjacent &= header.offset_bits(f.field) == at
                at += header.field(f.field).width_bits
            first = struct.struct_field(layout.places(fields[0])[0].operand)
            last = struct.struct_field(layout.places(fields[-1])[-1].operand)
            if adjacent and first.first == begins and last.first + last.bits == at:
                return f"{struct.prefix}.{first.name}", f"{struct.prefix}.{last.name}"
        copies = self._model.scratch_copy(fields, align_bits=8)
        for copy, source in zip(copies, fields, strict=True):
            self._temporaries = 0
            self.assign(copy, source)
        return layout.places(copies[0])[0].operand, layout.places(copies[-1])[-1].operand

    def _sum(self, result: str, fields: tuple[FieldRef, ...]) -> None:
        """Add fields to a checksum, word by word of 16 bit; those that do not lie on such words are laid out first."""
        at, aligned = 0, True
        for f in fields:
            width = self._model.width_bits(f)
            aligned &= at % 16 == 0 and width % 16 == 0 and f.header != METADATA
            at += width
        operands = [p.operand for f in fields for p in self._model.layout.places(f)]
        if not aligned:
            copies = self._model.scratch_copy(fields, align_bits=16)
            for copy, source in zip(copies, fields, strict=False):
                self._temporaries = 0
                self.assign(copy, source)
            operands = [p.operand for f in copies for p in self._model.layout.places(f)]
        for operand in dict.fromkeys(operands):
            self._code.op("ckadd", result, operand)

    def header_checksum(self, checksum: HeaderChecksum) -> None:
        """Calculate the checksum of a header that is valid, over all of its other fields."""
        header = self._model.program.header(checksum.header)
        place = self._model.layout.places(FieldRef(header.name, checksum.field))[0]
        self._code.op("mov", place.operand, "0x0")
        if header.size_bytes % 4 == 0:
            self._code.op("ckadd", place.operand, f"h.{header.name}")
            return
        self._temporaries = 0
        names = [f.name for f in header.fields if f.name != checksum.field]
        self._sum(place.operand, tuple(FieldRef(header.name, n) for n in names))
