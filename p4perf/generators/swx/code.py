"""Expressions and statements as instructions of SWX."""

from __future__ import annotations

from collections.abc import Callable

from p4perf.errors import CapabilityError
from p4perf.generators.swx.layout import WORD_BITS, FieldPlace, Model
from p4perf.programs import ir
from p4perf.programs.analysis import destination, subexpressions
from p4perf.programs.capabilities import standing_at


class Assembler:
    """Collects instructions. A label is placed before the instruction that it names."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._lines: list[tuple[str | None, list[str]]] = []
        self._waiting: str | None = None
        self._same: dict[str, str] = {}
        self._count = 0

    def label(self, stem: str) -> str:
        self._count += 1
        return f"{self._prefix}_{stem.upper()}_{self._count}"

    def place(self, label: str) -> None:
        """Let a label name the next instruction. Several labels of one instruction become one.

        A jump to the next instruction is left out.
        """
        while self._lines and self._waiting is None and self._lines[-1][1] == ["jmp", label]:
            self._waiting, _ = self._lines.pop()
        if self._waiting is None:
            self._waiting = label
        else:
            self._same[label] = self._waiting

    def op(self, name: str, *operands: str) -> None:
        self._lines.append((self._waiting, [name, *operands]))
        self._waiting = None

    @property
    def ended(self) -> bool:
        """Whether the next instruction can only be reached by a jump."""
        return bool(self._lines) and self._waiting is None and self._lines[-1][1][0] in ("jmp", "tx", "drop", "return")

    def lines(self) -> list[str]:
        if self._waiting is not None:
            raise ValueError(f"label {self._waiting} names no instruction")
        used = {self._same.get(w, w) for _, words in self._lines for w in words[1:2] if words[0].startswith("jmp")}
        found = []
        for label, words in self._lines:
            text = " ".join(self._same.get(word, word) for word in words)
            found.append(f"{label} : {text}" if label in used else text)
        return found


HASH_OFFSET_BITS = 256
"""A hash can only be written to the first 32 bytes of the metadata."""

OPERATIONS = {"+": "add", "-": "sub", "&": "and", "|": "or", "^": "xor"}


def number(value: int, bits: int = WORD_BITS) -> str:
    """An immediate value, cut to a width."""
    return f"0x{value & ((1 << bits) - 1):x}"


class Statements:
    """Writes expressions and statements into one list of instructions."""

    def __init__(self, model: Model, code: Assembler, action: str) -> None:
        self._model = model
        self._code = code
        self._action = action
        self._temporaries = 0

    def clear_absent(self, header: str) -> None:
        """Let the fields of a header that is not valid lie in memory of their own, and be zero if they are read."""
        findings = self._model.findings
        if header not in findings.maybe_invalid:
            return
        self._code.op("validate", f"h.{header}")
        zeroed = [
            p.operand
            for f in self._model.program.header(header).fields
            if ir.FieldRef(header, f.name) in findings.unsafe_reads
            for p in self._model.layout.places(ir.FieldRef(header, f.name))
        ]
        for operand in dict.fromkeys(zeroed):
            self._code.op("mov", operand, "0x0")
        self._code.op("invalidate", f"h.{header}")

    def temporary(self) -> str:
        """A metadata field of 64 bit, for this statement."""
        self._temporaries += 1
        return self._model.helper(f"swx_temporary_{self._temporaries}", WORD_BITS)

    def operand(self, e: ir.Expression) -> str:
        """An operand that has the value of an expression; instructions may be needed to get it."""
        if isinstance(e, ir.Const):
            return number(e.value)
        if isinstance(e, ir.PassNumber):
            return self._model.helper("swx_pass")
        if isinstance(e, ir.ParameterRef):
            return self._model.argument(self._action, e.name)
        if isinstance(e, ir.FieldRef):
            place = self._model.layout.places(e)[-1]
            if place.alone and not place.word:
                return place.operand
        at = self.temporary()
        self.evaluate(e, at)
        return at

    def evaluate(self, e: ir.Expression, target: str) -> None:
        """Let a target have the value of an expression, in as many bits as it has."""
        if isinstance(e, ir.BinaryOp):
            self._operation(e, target)
            return
        if isinstance(e, ir.FieldRef):
            place = self._model.layout.places(e)[-1]
            if not place.alone:
                wanted = target
                if self._model.layout.operand_bits(target) < place.field_bits:
                    target = self.temporary()
                self._code.op("mov", target, place.operand)
                if place.shift:
                    self._code.op("shr", target, number(place.shift))
                if place.shift + place.bits < place.field_bits:
                    self._code.op("and", target, number((1 << place.bits) - 1))
                if wanted != target:
                    self._code.op("mov", wanted, target)
                return
        source = self.operand(e)
        if source != target:
            self._code.op("mov", target, source)

    def _operation(self, e: ir.BinaryOp, target: str) -> None:
        left, right = e.left, e.right
        if e.operator != "-" and (isinstance(left, ir.Const) or self._is(right, target)):
            left, right = right, left
        if isinstance(right, ir.BinaryOp) or self._is(right, target):
            saved = self.temporary()
            self.evaluate(right, saved)
        else:
            saved = self.operand(right)
        self.evaluate(left, target)
        self._code.op(OPERATIONS[e.operator], target, saved)

    def _is(self, e: ir.Expression, target: str) -> bool:
        return isinstance(e, ir.FieldRef) and self._model.layout.places(e)[-1].operand == target

    def _fits(self, e: ir.Expression, bits: int) -> bool:
        """Whether a value always fits into a width."""
        if isinstance(e, ir.Const):
            return e.value < 1 << bits
        if isinstance(e, ir.FieldRef):
            return self._model.width_bits(e) <= bits
        return isinstance(e, ir.ParameterRef) and self._model.parameter(self._action, e.name).width_bits <= bits

    def assign(self, ref: ir.FieldRef, value: ir.Expression) -> None:
        places = self._model.layout.places(ref)
        if len(places) > 1 or places[0].bits > WORD_BITS:
            self._assign_long(places, value)
        elif isinstance(value, ir.FieldRef) and self._model.width_bits(value) > WORD_BITS:
            self._code.op("mov", places[0].operand, self._model.layout.places(value)[-1].operand)
            self._cut(places[0])
        else:
            self._assign(places[0], value)

    def _assign(self, place: FieldPlace, value: ir.Expression) -> None:
        if place.alone:
            if isinstance(value, ir.Const):
                self._code.op("mov", place.operand, number(value.value, place.bits))
                return
            self.evaluate(value, place.operand)
            if not self._fits(value, place.bits):
                self._cut(place)
            return
        ones = (1 << place.bits) - 1
        around = number(~(ones << place.shift), place.field_bits)
        if isinstance(value, ir.Const):
            constant = value.value & ones
            if constant != ones:
                self._code.op("and", place.operand, around)
            if constant:
                self._code.op("or", place.operand, number(constant << place.shift))
            return
        at = self.temporary()
        self.evaluate(value, at)
        if not self._fits(value, place.bits):
            self._code.op("and", at, number(ones))
        if place.shift:
            self._code.op("shl", at, number(place.shift))
        self._code.op("and", place.operand, around)
        self._code.op("or", place.operand, at)

    def _cut(self, place: FieldPlace) -> None:
        """Clear the bits above a field that is not whole bytes."""
        if place.bits < place.field_bits:
            self._code.op("and", place.operand, number((1 << place.bits) - 1))

    def _assign_long(self, places: tuple[FieldPlace, ...], value: ir.Expression) -> None:
        if isinstance(value, ir.BinaryOp):
            raise CapabilityError(f"dpdk-swx computes with up to {WORD_BITS} bit")
        sources: dict[int, str] = {}
        if isinstance(value, ir.FieldRef):
            sources = {p.word: p.operand for p in self._model.layout.places(value)}
        elif isinstance(value, ir.ParameterRef):
            sources = {word: f"t.{name}" for name, _, word in self._model.argument_words(self._action, value.name)}
        elif isinstance(value, ir.PassNumber):
            sources = {0: self._model.helper("swx_pass")}
        for place in places:
            if isinstance(value, ir.Const):
                source = number(value.value >> place.word * WORD_BITS, place.bits)
            else:
                source = sources.get(place.word, "0x0")
            self._code.op("mov", place.operand, source)

    def _into(self, ref: ir.FieldRef, write: Callable[[str], None]) -> None:
        """Write a field by an instruction that takes an operand: in place if it is whole bytes, else by a detour."""
        places = self._model.layout.places(ref)
        direct = len(places) == 1 and places[0].alone and places[0].bits <= WORD_BITS
        if direct:
            write(places[0].operand)
            self._cut(places[0])
            return
        at = self.temporary()
        write(at)
        self._assign_from(ref, at)

    def _assign_from(self, ref: ir.FieldRef, operand: str) -> None:
        """``ref`` = an operand that was written before."""
        self.assign(ref, self._model.as_field(operand))

    # Statements

    def action(self, action: ir.Action) -> None:
        """Write the statements of an action."""
        self.body(action.body, tuple(place for place, _ in action.placed))

    def body(self, statements: tuple[ir.Statement, ...], places: tuple[str, ...] = ()) -> None:
        """Write statements, up to one that ends the packet; ``places`` are theirs, where they are known."""
        guard, after = None, ""
        for n, statement in enumerate(statements):
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
            with standing_at(places[n] if places else ""):
                self._statement(statement)
        if guard is not None:
            self._code.place(after)

    def _guard(self, statement: ir.Statement) -> str | None:
        """The header that has to be valid for a statement: one of which it writes a field that is read later on."""
        ref = destination(statement)
        findings = self._model.findings
        if ref is None or (self._action, ref) not in findings.unsafe_writes or ref not in findings.read_again:
            return None
        return ref.header

    def _statement(self, statement: ir.Statement) -> None:
        model, code = self._model, self._code
        self._temporaries = 0
        match statement:
            case ir.Assign(ref, value):
                self.assign(ref, value)
            case ir.SetEgress(port):
                self.evaluate(port, self._model.layout.port_out)
            case ir.AddHeader():
                self._add_header(statement)
            case ir.RemoveHeader(name):
                self._code.op("invalidate", f"h.{name}")
                self.clear_absent(name)
            case ir.Hash():
                self._hash(statement)
            case ir.CountPacket(counter, index):
                self._code.op("regadd", counter, self._index(index), "0x1")
            case ir.ReadRegister(ref, register, index):
                self._into(ref, lambda at: self._code.op("regrd", at, register, self._index(index)))
            case ir.WriteRegister():
                self._write_register(statement)
            case ir.MeterPacket(ref, meter, index):
                self._meter(ref, meter, index)
            case ir.Drop() if self._action in model.findings.flagged_drops:
                code.op("mov", model.helper("swx_dropped"), "0x1")
            case ir.Drop():
                code.op("drop")
            case ir.Recirculate() if model.recirculates_by_flag:
                code.op("mov", model.helper("swx_again"), "0x1")
            case ir.Recirculate():
                code.op("recirculate")
            case ir.Clone(port):
                self.mirror(port)
            case ir.Multicast(ports):
                group = model.groups.index(ports) + 1 if ports else 0
                code.op("mov", model.helper("swx_group"), number(group))
            case _:
                raise CapabilityError(f"dpdk-swx has no {type(statement).__name__}")

    def mirror(self, port: int) -> None:
        """A copy of the packet, as it is sent, by another port."""
        session = self._model.helper("swx_session")
        self._code.op("mov", session, number(self._model.mirrors.index(port)))
        self._code.op("mirror", self._model.helper("swx_slot"), session)
        self._code.op("add", self._model.helper("swx_slot"), "0x1")

    # Headers

    def _add_header(self, statement: ir.AddHeader) -> None:
        model, header = self._model, self._model.program.header(statement.header)
        given = dict(statement.values)
        for name, value in given.items():
            # Values of the header's own fields are those before.
            if any(isinstance(e, ir.FieldRef) and e.header == header.name for e in subexpressions(value)):
                at = self.temporary()
                self.evaluate(value, at)
                given[name] = model.as_field(at)
        self._code.op("validate", f"h.{header.name}")
        done: set[str] = set()
        for f in header.fields:
            ref = ir.FieldRef(header.name, f.name)
            places = model.layout.places(ref)
            value = given.get(f.name, ir.Const(0))
            if len(places) > 1:
                self._assign_long(places, value)
            elif places[0].alone:
                self._assign(places[0], value)
            else:
                if places[0].operand not in done:
                    self._code.op("mov", places[0].operand, number(model.constant_segment(header, places[0], given)))
                    done.add(places[0].operand)
                if not isinstance(value, ir.Const):
                    self._assign(places[0], value)

    # Counters, registers, meters

    def _index(self, index: ir.Expression) -> str:
        """An operand for the index of an array; it is never an immediate value.

        22.11 forgets which array is meant if both index and value are immediate.
        """
        if isinstance(index, ir.Const):
            at = self.temporary()
            self._code.op("mov", at, number(index.value))
            return at
        return self.operand(index)

    def _write_register(self, statement: ir.WriteRegister) -> None:
        register = self._model.program.register(statement.register)
        index = self._index(statement.index)
        value = statement.value
        if isinstance(value, ir.Const):
            source = number(value.value, register.width_bits)
        elif self._fits(value, register.width_bits) or register.width_bits == WORD_BITS:
            source = self.operand(value)
        else:
            source = self.temporary()
            self.evaluate(value, source)
            self._code.op("and", source, number((1 << register.width_bits) - 1))
        self._code.op("regwr", register.name, index, source)

    def _meter(self, ref: ir.FieldRef, meter: str, index: ir.Expression) -> None:
        length, at, colour = self.temporary(), self._index(index), self.temporary()
        self._code.op("mov", length, number(self._model.packet_bytes))
        self._code.op("meter", meter, at, length, "0x0", colour)
        self._assign_from(ref, colour)

    # Hashes and checksums

    def _hash(self, statement: ir.Hash) -> None:
        if statement.algorithm == "checksum16":
            result = self._model.sum
            self._code.op("mov", result, "0x0")
            self._sum(result, statement.fields)
            self._assign_from(statement.destination, result)
            return
        first, last = self._contiguous(statement.fields)
        place = self._model.layout.places(statement.destination)[-1]
        near = False
        if statement.destination.header == ir.METADATA and place.alone:
            field = self._model.layout.metadata.struct_field(place.operand)
            near = field.first < HASH_OFFSET_BITS and place.bits == place.field_bits
        at = place.operand if near else self._model.layout.hash_result
        self._code.op("hash", "crc32", at, first, last)
        if not near:
            self._assign_from(statement.destination, at)

    def _contiguous(self, fields: tuple[ir.FieldRef, ...]) -> tuple[str, str]:
        """First and last operand of memory that holds the fields one behind the other, big-endian."""
        layout, one_header = self._model.layout, len({f.header for f in fields}) == 1
        if one_header and fields[0].header != ir.METADATA:
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

    def _sum(self, result: str, fields: tuple[ir.FieldRef, ...]) -> None:
        """Add fields to a checksum, word by word of 16 bit; those that do not lie on such words are laid out first."""
        at, aligned = 0, True
        for f in fields:
            width = self._model.width_bits(f)
            aligned &= at % 16 == 0 and width % 16 == 0 and f.header != ir.METADATA
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

    def header_checksum(self, checksum: ir.HeaderChecksum) -> None:
        """Calculate the checksum of a header that is valid, over all of its other fields."""
        header = self._model.program.header(checksum.header)
        place = self._model.layout.places(ir.FieldRef(header.name, checksum.field))[0]
        self._code.op("mov", place.operand, "0x0")
        if header.size_bytes % 4 == 0:
            self._code.op("ckadd", place.operand, f"h.{header.name}")
            return
        self._temporaries = 0
        names = [f.name for f in header.fields if f.name != checksum.field]
        self._sum(place.operand, tuple(ir.FieldRef(header.name, n) for n in names))
