"""Statements and parser states of a program as instructions of SWX."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from p4perf.errors import CapabilityError
from p4perf.generators.swx.code import Assembler, Expressions, number
from p4perf.generators.swx.layout import MAX_PORT, OPERAND, WORD_BITS, FieldPlace, Model
from p4perf.programs import ir
from p4perf.programs.analysis import destination, operands, subexpressions
from p4perf.programs.capabilities import standing_at
from p4perf.programs.ranges import Range

HASH_OFFSET_BITS = 256
"""A hash can only be written to the first 32 bytes of the metadata."""


class Statements(Expressions):
    """Writes statements into one list of instructions.

    Args:
        exit_to: where an exit jumps; empty in the actions of tables, which can only set a flag.
    """

    def __init__(self, model: Model, code: Assembler, action: str, exit_to: str = "") -> None:
        super().__init__(model, code, action)
        self._exit_to = exit_to

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

    # Fields

    def assign(self, ref: ir.FieldRef, value: ir.Expression) -> None:
        """Write a value to a field, of any width."""
        before, places = self._temporaries, self._model.layout.places(ref)
        width = self._model.width_bits(ref)
        while isinstance(value, ir.Cast) and not value.saturating and value.width_bits >= width:
            value = value.value
        if len(places) == 1 or self._is_plain(value):
            for place in places:
                self._assign(place, value)
        else:
            for place, at in [(p, self.word(value, p.word * WORD_BITS)) for p in places]:
                self._store(place, at, value)
        self._temporaries = before

    def _assign(self, place: FieldPlace, value: ir.Expression) -> None:
        """Write a word of a value, where the field is if that can be."""
        low, ones = place.word * WORD_BITS, (1 << place.bits) - 1
        if isinstance(value, ir.Const):
            constant = value.value >> low & ones
            if place.alone:
                self._code.op("mov", place.operand, number(constant))
                return
            if constant != ones:
                self._code.op("and", place.operand, _around(place))
            if constant:
                self._code.op("or", place.operand, number(constant << place.shift))
        elif place.alone and self._is_plain(value):
            self.compute(value, place.operand, low)
            if not self._fits(value, place.bits, low):
                self._cut(place)
        else:
            self._store(place, self.word(value, low), value)

    def _store(self, place: FieldPlace, at: str, value: ir.Expression) -> None:
        """Write a word of a value that was computed in a field of p4perf's own."""
        op = self._code.op
        if not self._fits(value, place.bits, place.word * WORD_BITS):
            op("and", at, number((1 << place.bits) - 1))
        if place.alone:
            op("mov", place.operand, at)
            return
        if place.shift:
            op("shl", at, number(place.shift))
        op("and", place.operand, _around(place))
        op("or", place.operand, at)

    def _fits(self, value: ir.Expression, bits: int, low: int = 0) -> bool:
        """Whether what a value has from bit ``low`` on always fits into a width; where it is cut to a word, it does."""
        found = self._range(value)
        return bits == WORD_BITS or (found.low >= 0 and not found.high >> low + bits)

    def _cut(self, place: FieldPlace) -> None:
        """Clear the bits above a field that is not whole bytes."""
        if place.bits < place.field_bits:
            self._code.op("and", place.operand, number((1 << place.bits) - 1))

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
        self.assign(ref, ir.FieldRef(OPERAND, operand))

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
        ref, findings = destination(statement), self._model.findings
        if ref is None or ref.header == ir.METADATA:
            return None
        unsafe = (self._action, ref) in findings.unsafe_writes
        return ref.header if unsafe and (self._model.general or ref in findings.read_again) else None

    def _ports(self, port: ir.Expression) -> Range:
        """The values of a port; where action data have it, those of the entries, if these are listed."""
        program = self._model.program
        tables = [table for table in program.tables if self._action in table.taken]
        if not isinstance(port, ir.ParameterRef) or not all(isinstance(t.entries, ir.EntryList) for t in tables):
            return self._range(port)
        n = [p.name for p in program.action(self._action).parameters].index(port.name)
        taken = [(t.default_action, t.default_data) for t in tables]
        taken += [each for t in tables for e in t.listing for each in ((e.action, e.data), *e.choices)]
        found = [data[n] for action, data in taken if action == self._action]
        return Range(min(found), max(found)) if found else self._range(port)

    def _statement(self, statement: ir.Statement) -> None:
        model, code = self._model, self._code
        self._temporaries = 0
        match statement:
            case ir.Assign(ref) | ir.Hash(ref) | ir.ReadRegister(ref) if ref in model.findings.unused:
                pass
            case ir.Assign(ref, value):
                self.assign(ref, value)
            case ir.SetEgress(port):
                if model.general and not self._ports(port).within(Range(0, MAX_PORT)):
                    raise CapabilityError(f"dpdk-swx has ports up to {MAX_PORT}, and an action calculates others")
                self._assign(FieldPlace(model.layout.port_out, 32, 32), port)
            case ir.AddHeader():
                self._add_header(statement)
            case ir.RemoveHeader(name):
                code.op("invalidate", f"h.{name}")
                self.clear_absent(name)
            case ir.Hash():
                self._hash(statement)
            case ir.CountPacket(counter, index):
                code.op("regadd", counter, self._index(index), "0x1")
            case ir.ReadRegister(ref, register, index):
                self._read_register(ref, model.program.register(register), index)
            case ir.WriteRegister():
                self._write_register(statement)
            case ir.MeterPacket(ref, meter, index):
                self._meter(ref, meter, index)
            case ir.Drop() if model.general or self._action in model.findings.flagged_drops:
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
            case ir.Branch():
                self._branch(statement)
            case ir.Exit() if self._exit_to:
                code.op("jmp", self._exit_to)
            case ir.Exit():
                code.op("mov", model.helper("swx_exit"), "0x1")
                code.op("return")
            case ir.Digest():
                pass
            case _:
                raise CapabilityError(f"dpdk-swx has no {type(statement).__name__}")

    def _branch(self, branch: ir.Branch) -> None:
        other, after = self._code.label("other"), self._code.label("after")
        self.jump(branch.condition, False, other)
        self.body(branch.then)
        if not self._code.ended:
            self._code.op("jmp", after)
        self._code.place(other)
        self.body(branch.otherwise)
        self._code.place(after)

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
        places = [(f.name, p) for f in header.fields for p in model.layout.places(ir.FieldRef(header.name, f.name))]
        parts = (e for whole in operands(statement) for e in subexpressions(whole))
        saved: dict[FieldPlace, str] = {}
        if any(isinstance(e, ir.FieldRef) and e.header == header.name for e in parts):
            # Values of the header's own fields are those before.
            saved = {p: self.word(given[name], p.word * WORD_BITS) for name, p in places if name in given}
        self._code.op("validate", f"h.{header.name}")
        done: set[str] = set()
        for name, place in places:
            value = given.get(name, ir.Const(0))
            if not place.alone and place.operand not in done:
                self._code.op("mov", place.operand, number(model.constant_segment(header, place, given)))
                done.add(place.operand)
            if place in saved:
                self._store(place, saved[place], value)
            elif place.alone or not isinstance(value, ir.Const):
                self._assign(place, value)

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

    def _read_register(self, ref: ir.FieldRef, register: ir.Register, index: ir.Expression) -> None:
        if not register.signed:
            self._into(ref, lambda at: self._code.op("regrd", at, register.name, self._index(index)))
            return
        at = self.word(index)
        self._code.op("regrd", at, register.name, at)
        self._extend(at, register.width_bits)
        self._assign_from(ref, at)

    def _write_register(self, statement: ir.WriteRegister) -> None:
        register = self._model.program.register(statement.register)
        index, value = self._index(statement.index), statement.value
        if isinstance(value, ir.Const):
            source = number(value.value, register.width_bits)
        elif self._fits(value, register.width_bits):
            source = self.operand(value)
        else:
            source = self.word(value)
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
        (place, *others), near = self._model.layout.places(statement.destination), False
        if statement.destination.header == ir.METADATA and place.alone and not others:
            field = self._model.layout.metadata.struct_field(place.operand)
            near = field.first < HASH_OFFSET_BITS and place.bits == place.field_bits
        at = place.operand if near else self._model.layout.hash_result
        self._code.op("hash", statement.algorithm, at, first, last)
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
                self.assign(copy, source)
            operands = [p.operand for f in copies for p in self._model.layout.places(f)]
        for operand in dict.fromkeys(operands):
            self._code.op("ckadd", result, operand)

    def header_checksum(self, checksum: ir.FieldRef) -> None:
        """Calculate the checksum of a header that is valid, over all of its other fields."""
        header = self._model.program.header(checksum.header)
        place = self._model.layout.places(checksum)[0]
        self._code.op("mov", place.operand, "0x0")
        if header.size_bytes % 4 == 0:
            self._code.op("ckadd", place.operand, f"h.{header.name}")
            return
        self._temporaries = 0
        names = [f.name for f in header.fields if f.name != checksum.field]
        self._sum(place.operand, tuple(ir.FieldRef(header.name, n) for n in names))

    # Parser

    def parse(self, statement: ir.ParserStatement, failed: str) -> None:
        """A statement of the parser; where a parser error is found, it is noted, and ``failed`` comes next."""
        self._temporaries = 0
        error = self._model.program.parser_error
        match statement:
            case ir.Extract(header, None):
                self._code.op("extract" if self._model.program.header(header).fields else "validate", f"h.{header}")
            case ir.Advance(ir.Const(bits)):
                for n in range(0, bits // 8, 128):
                    header, _ = self._model.bytes_ahead(0, min(bits // 8 - n, 128))
                    self._code.op("extract", f"h.{header}")
            case ir.Verify(condition, value) if error is not None:
                right = self._code.label("right")
                self.jump(condition, True, right)
                if error not in self._model.findings.unused:
                    self.assign(error, ir.Const(value))
                self._code.op("jmp", failed)
                self._code.place(right)
            case ir.Extract() | ir.Advance() | ir.Verify():
                raise CapabilityError(f"dpdk-swx has no {type(statement).__name__} of this form")
            case _:
                self.body((statement,))

    def select(self, state: ir.ParserState, targets: Mapping[str, str], follows: str | None) -> None:
        """Go to the state that fits, where it does not stand next, at ``follows``."""
        op, default, self._temporaries = self._code.op, targets[state.default], 0
        if self._is_signed(*state.selected):
            raise CapabilityError("dpdk-swx selects on unsigned numbers only")
        cases = [case for case in state.cases if all(map(self._is_met, state.selected, case.matches))]
        values = [self.operand(e) for e in state.selected] if cases else []
        if [targets[case.next_state] for case in cases] == [follows] and _is_value(cases[0]):
            op("jmpneq", default, *values, number(cases[0].value))
            return
        at = ""
        seen: set[tuple[ir.Match, ...]] = set()
        for case in cases:
            if case.matches in seen:
                continue
            seen.add(case.matches)
            if _is_value(case):
                op("jmpeq", targets[case.next_state], *values, number(case.value))
                continue
            other, at = self._code.label("other"), at or self.temporary()
            for value, match in zip(values, case.matches, strict=True):
                if not match.mask:
                    continue
                op("mov", at, value)
                op("and", at, number(match.mask))
                if match.low == match.high:
                    op("jmpneq", other, at, number(match.low))
                else:
                    op("jmplt", other, at, number(match.low))
                    op("jmpgt", other, at, number(match.high))
            op("jmp", targets[case.next_state])
            self._code.place(other)
        if default != follows:
            op("jmp", default)

    def _is_met(self, e: ir.Expression, match: ir.Match) -> bool:
        """Whether any value of an expression fits: SWX cuts an immediate value to the width of a field."""
        return match.low <= min(match.high, self._range(e).high)


def _is_value(case: ir.SelectCase) -> bool:
    """Whether a case is one value of one field."""
    return len(case.matches) == 1 and case.matches[0].mask == -1 and case.matches[0].low == case.matches[0].high


def _around(place: FieldPlace) -> str:
    """A mask that keeps what else is in the field of a place."""
    return number(~(((1 << place.bits) - 1) << place.shift), place.field_bits)
