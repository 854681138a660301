"""Operands and instructions of SWX as expressions and statements of a :class:`~p4perf.programs.ir.Program`.

They mean what DPDK 22.11 makes of them (rte_swx_pipeline_internal.h): numbers are cut to the field that takes them, and
compared in 64 bit; the order of bytes, which differs between headers and metadata, shows only where memory is hashed. A
header that is never extracted, sent or asked for is memory in which a program computes: its fields are metadata here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce

from p4perf.formats.swx_spec import COMPARE, COMPUTE, IMMEDIATE_BITS, Specification, SpecLine, number
from p4perf.programs import ir
from p4perf.programs.reading.values import distinct, identifier, sent_by

IN_PARSER = ("extract", "lookahead", "mov", "validate", "invalidate", "ckadd", "cksub", "recircid", *COMPUTE)
"""Instructions that a parser can have."""

_HASHES: Mapping[str, ir.HashAlgorithm] = {"crc16": "crc16", "crc32": "crc32"}
"""Hash functions by their name: crc32 of DPDK, and the one that p4perf registers with its pipelines."""

_WORD = (1 << IMMEDIATE_BITS) - 1

_ENOUGH = 0xFFFF00000
"""A multiple of 0xFFFF that is larger than what is ever subtracted from a checksum."""


@dataclass
class Operands:
    """What the operands of a specification are in the program."""

    spec: Specification
    memory: frozenset[str]
    """Headers that are only memory."""
    own: dict[str, ir.Field] = field(default_factory=dict)
    """Metadata fields that the specification does not have."""
    _refs: dict[str, ir.FieldRef] = field(default_factory=dict)
    _declared: list[ir.Field] = field(default_factory=list)

    def __post_init__(self) -> None:
        taken: set[str] = set()
        self._declare("m", self.spec.structs.get(self.spec.metadata, ()), ir.METADATA, "", taken)
        for name in self.spec.headers:
            if name in self.memory:
                self._declare(f"h.{name}", self.fields(name), ir.METADATA, f"{name}_", taken)
            else:
                self._declare(f"h.{name}", self.fields(name), self.header_name(name), "", set())

    def _declare(
        self, prefix: str, fields: Iterable[tuple[str, int]], header: str, before: str, taken: set[str]
    ) -> None:
        for name, bits in fields:
            known = distinct(identifier(before + name), taken)
            taken.add(known)
            self._refs[f"{prefix}.{name}"] = ir.FieldRef(header, known)
            if header == ir.METADATA:
                self._declared.append(ir.Field(known, bits))

    def fields(self, header: str) -> tuple[tuple[str, int], ...]:
        return self.spec.structs[self.spec.headers[header]]

    def header_name(self, header: str) -> str:
        return f"_{header}" if header == ir.METADATA else identifier(header)

    def metadata(self) -> Iterator[ir.Field]:
        """All fields of the metadata."""
        yield from (*self._declared, *self.own.values())

    def scratch(self, name: str, bits: int) -> ir.FieldRef:
        """A metadata field of the reader's own; specifications that p4perf wrote have fields of other readers."""
        name = f"own_swx_{name}"
        self.own.setdefault(name, ir.Field(name, bits))
        return ir.FieldRef(ir.METADATA, name)

    def ref(self, operand: str, line: SpecLine) -> ir.FieldRef:
        """A field of a header or of the metadata."""
        if operand not in self._refs:
            raise line.error(f"{operand!r} is no field of a header or of the metadata")
        return self._refs[operand]

    def refs(self, header: str) -> list[ir.FieldRef]:
        return [self._refs[f"h.{header}.{name}"] for name, _ in self.fields(header)]

    def header(self, operand: str, line: SpecLine) -> str:
        """The name of a header, ``h.NAME``, in the specification."""
        self.spec.header_bits(operand, line)
        return operand.removeprefix("h.")

    def value(self, operand: str, line: SpecLine, action: str = "") -> ir.Expression:
        """A field, an argument of the action, or a constant."""
        constant = number(operand)
        if constant is not None:
            return ir.Const(constant & _WORD)
        if operand.startswith("t."):
            self.spec.bits(operand, line, self.spec.arguments(action))
            return ir.ParameterRef(identifier(operand[2:]))
        return self.ref(operand, line)

    def condition(self, line: SpecLine, action: str = "") -> ir.Condition:
        """The condition on which a jump is taken."""
        op = line.word(0)
        if op in ("jmpv", "jmpnv"):
            valid = ir.IsValid(self.header_name(self.header(line.word(2), line)))
            return valid if op == "jmpv" else ir.Not(valid)
        left, right = (self.value(line.word(n), line, action) for n in (2, 3))
        if isinstance(right, ir.Const) and isinstance(left, ir.FieldRef) and op in ("jmpeq", "jmpneq"):
            bits = self.spec.bits(line.word(2), line)
            if line.word(2).startswith("h."):
                right = ir.Const(right.value & ((1 << bits) - 1))
        return ir.Compare(COMPARE[op], left, right)  # type: ignore[arg-type]


@dataclass
class InstructionReader:
    """Statements of instructions that neither jump nor look a packet up.

    Args:
        counted: register arrays to which only one is ever added: counters.
        hidden: by the number of the line of each ``tx`` the headers that it does not send although they may be valid.
    """

    operands: Operands
    counted: frozenset[str]
    hidden: dict[int, tuple[str, ...]]

    def of(self, line: SpecLine, action: str = "") -> Iterator[ir.Statement]:
        """What one instruction does."""
        op, operands = line.word(0), self.operands
        if op in COMPUTE:
            yield self._computed(line, action)
        elif op == "mov":
            yield from self._moved(line, action)
        elif op in ("validate", "invalidate"):
            header = operands.header(line.word(1), line)
            if header not in operands.memory:
                name = operands.header_name(header)
                removed, absent = ir.RemoveHeader(name), ir.Not(ir.IsValid(name))
                yield removed if op == "invalidate" else ir.Branch(absent, (ir.AddHeader(name),))
        elif op in ("ckadd", "cksub"):
            yield from self._checksum(line, subtract=op == "cksub")
        elif op == "hash":
            yield from self._hash(line)
        elif op in ("regrd", "regwr", "regadd"):
            yield from self._register(line, action)
        elif op == "meter":
            self._array(self.operands.spec.meters, line, 1)
            index = operands.value(line.word(2), line, action)
            yield ir.MeterPacket(operands.ref(line.words[-1], line), identifier(line.word(1)), index)
        elif op == "tx":
            yield from (ir.RemoveHeader(operands.header_name(h)) for h in self.hidden.get(line.number, ()))
            yield sent_by(operands.value(line.word(1), line))
        elif op == "drop":
            yield from (ir.Drop(), ir.Exit()) if action else (ir.Drop(),)
        elif op == "recirculate":
            yield ir.Recirculate(tuple(ir.FieldRef(ir.METADATA, f.name) for f in operands.metadata()))
        elif op == "recircid":
            yield ir.Assign(operands.ref(line.word(1), line), ir.PassNumber())
        elif op not in ("emit", "return", "regprefetch", "metprefetch"):
            name = " ".join(line.words[:2]) if op == "extern" else op
            raise line.error(f"the instruction {name} is not supported{' here' if op in IN_PARSER else ''}")

    def in_parser(self, line: SpecLine) -> Iterator[ir.ParserStatement]:
        """What an instruction of the parser does."""
        op, operands = line.word(0), self.operands
        if op in ("extract", "lookahead"):
            header = operands.header(line.word(1), line)
            if op == "lookahead":
                yield from self._looked_at(header)
            else:
                bits = operands.value(line.word(2), line) if len(line.words) > 2 else None
                yield ir.Extract(
                    operands.header_name(header), None if bits is None else ir.BinaryOp("<<", bits, ir.Const(3))
                )
        elif op in IN_PARSER:
            yield from self.of(line)  # type: ignore[misc]
        else:
            raise line.error(f"{op} before headers are extracted is not supported")

    def _computed(self, line: SpecLine, action: str) -> ir.Assign:
        operands = self.operands
        ref, right = operands.ref(line.word(1), line), operands.value(line.word(2), line, action)
        if line.word(0) in ("shl", "shr") and not isinstance(right, ir.Const):
            right = ir.BinaryOp("&", right, ir.Const(IMMEDIATE_BITS - 1))
        return ir.Assign(ref, ir.BinaryOp(COMPUTE[line.word(0)], ref, right))  # type: ignore[arg-type]

    def _moved(self, line: SpecLine, action: str) -> Iterator[ir.Statement]:
        operands, target, source = self.operands, line.word(1), line.word(2)
        if target.count(".") == 1 and target.startswith("h."):
            pair = [operands.refs(operands.header(word, line)) for word in (target, source)]
            if len(pair[0]) != len(pair[1]):
                raise line.error("moves a header to one of another type")
            yield from (ir.Assign(to, of) for to, of in zip(*pair, strict=True))
        else:
            yield ir.Assign(operands.ref(target, line), operands.value(source, line, action))

    def _looked_at(self, header: str) -> Iterator[ir.ParserStatement]:
        """A header becomes valid with bytes that stay in the packet."""
        at, values = 0, []
        for ref, (_, bits) in zip(self.operands.refs(header), self.operands.fields(header), strict=True):
            values.append((ref, ir.Lookahead(at, bits)))
            at += bits
        if header in self.operands.memory:
            yield from (ir.Assign(ref, value) for ref, value in values)
        else:
            yield ir.AddHeader(self.operands.header_name(header), tuple((ref.field, value) for ref, value in values))

    def _checksum(self, line: SpecLine, *, subtract: bool) -> Iterator[ir.Statement]:
        """Add 16-bit words to an internet checksum, or take them away (RFC 1624). It is never 0."""
        operands, total = self.operands, self.operands.scratch("checksum", IMMEDIATE_BITS)
        ref, ones = operands.ref(line.word(1), line), ir.Const(0xFFFF)
        yield ir.Assign(total, ir.BinaryOp("^", ref, ones))
        if subtract:
            yield ir.Assign(total, ir.BinaryOp("+", total, ir.Const(_ENOUGH)))
        for word in self._words(line.word(2), line):
            yield ir.Assign(total, ir.BinaryOp("-" if subtract else "+", total, word))
        for _ in range(3):
            folded = ir.BinaryOp("&", total, ones), ir.BinaryOp(">>", total, ir.Const(16))
            yield ir.Assign(total, ir.BinaryOp("+", *folded))
        inverted = ir.BinaryOp("^", total, ones)
        yield ir.Assign(ref, ir.Conditional(ir.Compare("==", total, ones), ones, inverted))

    def _words(self, operand: str, line: SpecLine) -> Iterator[ir.Expression]:
        """The 16-bit words of a header, as far as it is whole words of 32 bit, or of a field, filled with zeros."""
        if operand.count(".") > 1:
            yield from _words_of(self.operands.ref(operand, line), self.operands.spec.bits(operand, line), 0)
            return
        header, at = self.operands.header(operand, line), 0
        end = self.operands.spec.header_bits(operand, line) // 32 * 32
        for ref, (_, bits) in zip(self.operands.refs(header), self.operands.fields(header), strict=True):
            value: ir.Expression = ref
            if at + bits > end:
                bits, value = max(end - at, 0), ir.BinaryOp(">>", ref, ir.Const(at + bits - max(end, at)))
            if bits:
                yield from _words_of(value, bits, at % 16)
            at += bits

    def _hash(self, line: SpecLine) -> Iterator[ir.Statement]:
        """Hash memory from one field to another one; metadata lie in it with the lowest byte first."""
        algorithm = _HASHES.get(line.word(1))
        if algorithm is None:
            raise line.error(f"the hash function {line.word(1)} is not supported")
        operands, first, last = self.operands, line.word(3), line.words[-1]
        prefix, wanted = first.rpartition(".")[0], {word.rpartition(".")[2] for word in (first, last)}
        operands.spec.span_bits(first, last, line)
        fields = operands.spec.structs.get(operands.spec.metadata, ()) if prefix == "m" else operands.fields(prefix[2:])
        at = [n for n, (name, _) in enumerate(fields) if name in wanted]
        refs = []
        for n, (name, bits) in enumerate(fields[at[0] : at[-1] + 1]):
            ref = operands.ref(f"{prefix}.{name}", line)
            if prefix == "m" and 8 < bits <= IMMEDIATE_BITS:
                swapped = operands.scratch(f"hashed_{n}_{bits}", bits)
                yield ir.Assign(swapped, _swapped(ref, bits))
                ref = swapped
            refs.append(ref)
        yield ir.Hash(operands.ref(line.word(2), line), algorithm, tuple(refs))

    def _register(self, line: SpecLine, action: str) -> Iterator[ir.Statement]:
        op, operands = line.word(0), self.operands
        name, index_at = (line.word(2), 3) if op == "regrd" else (line.word(1), 2)
        self._array(operands.spec.registers, line, 2 if op == "regrd" else 1)
        index = operands.value(line.word(index_at), line, action)
        if op == "regrd":
            yield ir.ReadRegister(operands.ref(line.word(1), line), identifier(name), index)
            return
        value = operands.value(line.word(3), line, action)
        if op == "regwr":
            yield ir.WriteRegister(identifier(name), index, value)
        elif name in self.counted:
            yield ir.CountPacket(identifier(name), index)
        else:
            read = operands.scratch("cell", IMMEDIATE_BITS)
            yield ir.ReadRegister(read, identifier(name), index)
            yield ir.WriteRegister(identifier(name), index, ir.BinaryOp("+", read, value))

    @staticmethod
    def _array(known: dict[str, int], line: SpecLine, n: int) -> None:
        if line.word(n) not in known:
            raise line.error(f"there is no array {line.word(n)!r}")


def _words_of(value: ir.Expression, bits: int, offset: int) -> Iterator[ir.Expression]:
    """What a field adds to a sum of 16-bit words, if it begins so many bits after the beginning of one."""
    fill = -(offset + bits) % 16
    for low in range(-fill, bits, 16):
        word = ir.BinaryOp(">>", value, ir.Const(low)) if low > 0 else value
        if low + 16 < bits:
            word = ir.BinaryOp("&", word, ir.Const(0xFFFF if low >= 0 else 0xFFFF >> -low))
        yield ir.BinaryOp("<<", word, ir.Const(-low)) if low < 0 else word


def _swapped(ref: ir.FieldRef, bits: int) -> ir.Expression:
    """A value with its bytes in the other order."""
    found: list[ir.Expression] = []
    for low in range(0, bits, 8):
        byte: ir.Expression = ir.BinaryOp(">>", ref, ir.Const(low)) if low else ref
        byte = ir.BinaryOp("&", byte, ir.Const(0xFF))
        found.append(ir.BinaryOp("<<", byte, ir.Const(bits - 8 - low)) if low + 8 < bits else byte)
    return reduce(lambda a, b: ir.BinaryOp("|", a, b), found)
