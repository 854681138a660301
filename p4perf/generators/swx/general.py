"""Any expression, condition and statement of a program as instructions of SWX, in words of 64 bit.

Values are computed in metadata fields of p4perf's own, modulo two to the 64; ranges tell where that is the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.generators.swx.code import OPERATIONS, Assembler, Statements, number
from p4perf.generators.swx.layout import MAX_PORT, OPERAND, SCRATCH, WORD_BITS, FieldPlace, Model
from p4perf.programs import ir
from p4perf.programs.analysis import destination, masked_values
from p4perf.programs.interpreter import RECIRCULATED
from p4perf.programs.ranges import Range, signed, unsigned, value_range

_SIGN = 1 << (WORD_BITS - 1)
_LIMIT = f"dpdk-swx computes with up to {WORD_BITS} bit"
_NEGATED: dict[ir.Comparator, ir.Comparator] = {"==": "!=", "!=": "==", "<": ">=", ">": "<=", "<=": ">", ">=": "<"}
_JUMPS = {"==": "jmpeq", "!=": "jmpneq", "<": "jmplt", ">": "jmpgt"}

MAX_ROWS = 4096
"""Most entries that ranges of one entry are made of."""


class GeneralStatements(Statements):
    """Writes statements of programs that were read.

    Args:
        exit_to: where an exit jumps; empty in the actions of tables, which can only set a flag.
    """

    def __init__(self, model: Model, code: Assembler, action: str, exit_to: str = "") -> None:
        super().__init__(model, code, action)
        self._exit_to = exit_to

    def _range(self, e: ir.Expression) -> Range:
        widths = (
            {p.name: p.width_bits for p in self._model.program.action(self._action).parameters} if self._action else {}
        )
        return value_range(self._model.program, e, widths)

    def _is_signed(self, *sides: ir.Expression) -> bool:
        """Whether words hold the values of all sides as signed numbers only."""
        ranges = [self._range(side) for side in sides]
        for whole in (unsigned(WORD_BITS), signed(WORD_BITS)):
            if all(r.within(whole) for r in ranges):
                return whole.low < 0
        raise CapabilityError(_LIMIT)

    # Expressions

    def word(self, e: ir.Expression, low: int = 0) -> str:
        """A field of p4perf's own that holds 64 bits of a value from bit ``low`` on."""
        at = self.temporary()
        before = self._temporaries
        self._compute(e, at, low)
        self._temporaries = before
        return at

    def source(self, e: ir.Expression, low: int = 0) -> str:
        """The same as an operand that is only read."""
        return number(e.value >> low) if isinstance(e, ir.Const) else self.word(e, low)

    def _compute(self, e: ir.Expression, at: str, low: int) -> None:
        op, model = self._code.op, self._model
        match e:
            case ir.Const(value):
                op("mov", at, number(value >> low))
            case ir.FieldRef():
                self._load(e, at, low)
            case ir.ParameterRef(name):
                words = {word: f"t.{n}" for n, _, word in model.argument_words(self._action, name)}
                op("mov", at, words.get(low // WORD_BITS, "0x0"))
            case ir.PassNumber():
                op("mov", at, "0x0" if low else model.helper("swx_pass"))
            case ir.Truth(condition):
                self._choose(condition, ir.Const(1), ir.Const(0), at, low)
            case ir.Conditional(condition, then, otherwise):
                self._choose(condition, then, otherwise, at, low)
            case ir.Intrinsic(name):
                if name == "instance_type" and self._model.recirculates_by_flag:
                    first = ir.Compare("==", ir.PassNumber(), ir.Const(0))
                    self._choose(first, ir.Const(0), ir.Const(RECIRCULATED), at, low)
                else:
                    op("mov", at, "0x0" if low else self._intrinsic(name))
            case ir.Lookahead():
                self._look_ahead(e, at, low)
            case ir.Cast():
                self._cast(e, at, low)
            case ir.BinaryOp():
                self._binary(e, at, low)

    def _load(self, ref: ir.FieldRef, at: str, low: int) -> None:
        op, own = self._code.op, ref.header in (OPERAND, SCRATCH)
        place = next((p for p in self._model.layout.places(ref) if p.word == low // WORD_BITS), None)
        is_signed = not own and self._model.program.declared(ref).signed
        if place is None:
            if is_signed:
                raise CapabilityError(_LIMIT)
            op("mov", at, "0x0")
            return
        op("mov", at, place.operand)
        if place.shift:
            op("shr", at, number(place.shift))
        if place.shift + place.bits < place.field_bits:
            op("and", at, number((1 << place.bits) - 1))
        if is_signed:
            self._extend(at, place.bits)

    def _extend(self, at: str, bits: int) -> None:
        """Let the lowest bits be a signed number of 64 bit."""
        if bits < WORD_BITS:
            self._code.op("and", at, number((1 << bits) - 1))
            self._code.op("xor", at, number(1 << (bits - 1)))
            self._code.op("sub", at, number(1 << (bits - 1)))

    def _choose(self, c: ir.Condition, then: ir.Expression, otherwise: ir.Expression, at: str, low: int) -> None:
        other, after = self._code.label("other"), self._code.label("after")
        self.jump(c, False, other)
        self._compute(then, at, low)
        self._code.op("jmp", after)
        self._code.place(other)
        self._compute(otherwise, at, low)
        self._code.place(after)

    def _intrinsic(self, name: str) -> str:
        match name:
            case "ingress_port":
                return number(self._model.program.port)
            case "egress_port":
                return self._model.helper("swx_leave")
            case "packet_length":
                raise CapabilityError("dpdk-swx does not know how long a packet is: no instruction says it")
            case _:
                return "0x0"

    def _look_ahead(self, e: ir.Lookahead, at: str, low: int) -> None:
        width = min(e.width_bits - low, WORD_BITS)
        first = e.offset_bits + e.width_bits - low - width
        begin, end = first // 8, -(-(first + width) // 8)
        if width <= 0:
            self._code.op("mov", at, "0x0")
            return
        if end - begin > WORD_BITS // 8:
            raise CapabilityError(f"{_LIMIT}, and what is looked at ahead lies in more bytes")
        header, field = self._model.bytes_ahead(begin, end)
        self._code.op("lookahead", f"h.{header}")
        self._code.op("mov", at, f"h.{header}.{field}")
        if rest := 8 * end - first - width:
            self._code.op("shr", at, number(rest))
        self._code.op("and", at, number((1 << width) - 1))

    def _cast(self, e: ir.Cast, at: str, low: int) -> None:
        width, whole = e.width_bits, signed(e.width_bits) if e.signed else unsigned(e.width_bits)
        self._compute(e.value, at, low)
        if self._range(e.value).within(whole):
            return
        if (low and (e.saturating or e.signed)) or (e.signed and width > WORD_BITS):
            raise CapabilityError(_LIMIT)
        if e.saturating:
            self._saturate(e, at, whole)
        elif e.signed:
            self._extend(at, width)
        elif width - low < WORD_BITS:
            self._code.op("and", at, number((1 << max(width - low, 0)) - 1))

    def _saturate(self, e: ir.Cast, at: str, whole: Range) -> None:
        found, flip = self._range(e.value), _SIGN if self._is_signed(e.value) else 0
        before, shifted = self._temporaries, self.temporary()
        for jump, beyond, end, needed in (
            ("jmplt", whole.high + 1, whole.high, found.high > whole.high),
            ("jmpgt", whole.low - 1, whole.low, found.low < whole.low),
        ):
            if needed:
                within = self._code.label("within")
                self._code.op("mov", shifted, at)
                self._code.op("xor", shifted, number(flip))
                self._code.op(jump, within, shifted, number(beyond ^ flip))
                self._code.op("mov", at, number(end))
                self._code.place(within)
        self._temporaries = before

    def _binary(self, e: ir.BinaryOp, at: str, low: int) -> None:
        operator = e.operator
        if operator in ("<<", ">>") and isinstance(e.right, ir.Const) and self._range(e.left).low >= 0:
            self._move(e.left, low + (e.right.value if operator == ">>" else -e.right.value), at)
            return
        if low and operator not in ("&", "|", "^"):
            raise CapabilityError(_LIMIT)
        self._compute(e.left, at, low)
        before = self._temporaries
        match operator:
            case "<<" | ">>":
                self._shift(e, at)
            case "*":
                self._multiply(e, at)
            case "/" | "%":
                self._divide(e, at)
            case _:
                self._code.op(OPERATIONS[operator], at, self.source(e.right, low))
        self._temporaries = before

    def _move(self, e: ir.Expression, first: int, at: str) -> None:
        """64 bits of a number that is not negative, from any bit on; those below the lowest are zero."""
        low, rest = first - first % WORD_BITS, first % WORD_BITS
        if first <= -WORD_BITS:
            self._code.op("mov", at, "0x0")
        elif low < 0:
            self._compute(e, at, 0)
            self._code.op("shl", at, number(WORD_BITS - rest))
        else:
            self._compute(e, at, low)
            if rest:
                self._code.op("shr", at, number(rest))
                if self._range(e).high >> low + WORD_BITS:
                    above = self.word(e, low + WORD_BITS)
                    self._code.op("shl", above, number(WORD_BITS - rest))
                    self._code.op("or", at, above)

    def _shift(self, e: ir.BinaryOp, at: str) -> None:
        op, by = self._code.op, self._range(e.right)
        if by.low < 0:
            raise CapabilityError("dpdk-swx shifts by unsigned numbers only")
        keeps_sign = e.operator == ">>" and self._is_signed(e.left)
        amount = self.word(e.right)
        if by.high >= WORD_BITS:
            near = self._code.label("near")
            op("jmplt", near, amount, number(WORD_BITS))
            op("mov", amount, number(WORD_BITS - 1))
            if not keeps_sign:
                op("mov", at, "0x0")
            self._code.place(near)
        if keeps_sign:
            sign = self.temporary()
            op("mov", sign, number(_SIGN))
            op("xor", at, sign)
            op("shr", sign, amount)
            op("shr", at, amount)
            op("sub", at, sign)
        else:
            op("shl" if e.operator == "<<" else "shr", at, amount)

    def _multiply(self, e: ir.BinaryOp, at: str) -> None:
        """As on paper, for every bit of the right side."""
        op, factor, rest, bit = self._code.op, self.word(e.right), self.temporary(), self.temporary()
        r = self._range(e.right)
        op("mov", rest, at)
        op("mov", at, "0x0")
        for _ in range(r.high.bit_length() if r.low >= 0 else WORD_BITS):
            skip = self._code.label("zero")
            op("mov", bit, factor)
            op("and", bit, "0x1")
            op("jmpeq", skip, bit, "0x0")
            op("add", at, rest)
            self._code.place(skip)
            op("shl", rest, "0x1")
            op("shr", factor, "0x1")

    def _divide(self, e: ir.BinaryOp, at: str) -> None:
        """As on paper, for every bit of the dividend."""
        if self._is_signed(e.left, e.right):
            raise CapabilityError("dpdk-swx divides unsigned numbers only")
        op, divisor, rest, bit, found = self._code.op, self.word(e.right), *(self.temporary() for _ in range(3))
        positive = self._code.label("positive")
        op("jmpgt", positive, divisor, "0x0")
        op("mov", divisor, "0x1")
        self._code.place(positive)
        op("mov", rest, "0x0")
        op("mov", found, "0x0")
        for n in reversed(range(self._range(e.left).high.bit_length())):
            smaller = self._code.label("smaller")
            op("mov", bit, at)
            op("shr", bit, number(n))
            op("and", bit, "0x1")
            op("shl", rest, "0x1")
            op("or", rest, bit)
            op("jmplt", smaller, rest, divisor)
            op("sub", rest, divisor)
            op("or", found, number(1 << n))
            self._code.place(smaller)
        op("mov", at, found if e.operator == "/" else rest)

    # Conditions

    def jump(self, condition: ir.Condition, wanted: bool, label: str) -> None:
        """Go to a label if a condition holds, or if it does not where that is ``wanted``."""
        match condition:
            case ir.IsValid(header):
                self._code.op("jmpv" if wanted else "jmpnv", label, f"h.{header}")
            case ir.Not(inner):
                self.jump(inner, not wanted, label)
            case ir.And(left, right) | ir.Or(left, right):
                if wanted == isinstance(condition, ir.Or):
                    self.jump(left, wanted, label)
                    self.jump(right, wanted, label)
                else:
                    skip = self._code.label("skip")
                    self.jump(left, not wanted, skip)
                    self.jump(right, wanted, label)
                    self._code.place(skip)
            case ir.Compare():
                before = self._temporaries
                self._compare(condition, wanted, label)
                self._temporaries = before

    def _compare(self, c: ir.Compare, wanted: bool, label: str) -> None:
        op, comparator = self._code.op, c.comparator if wanted else _NEGATED[c.comparator]
        ranges = [self._range(c.left), self._range(c.right)]
        bits = max(r.high for r in ranges).bit_length()
        if comparator in ("==", "!=") and bits > WORD_BITS and min(r.low for r in ranges) >= 0:
            skip = self._code.label("skip")
            for low in range(0, bits, WORD_BITS):
                sides = self.word(c.left, low), self.source(c.right, low)
                op("jmpneq", label if comparator == "!=" else skip, *sides)
            if comparator == "==":
                op("jmp", label)
            self._code.place(skip)
            return
        flip = _SIGN if self._is_signed(c.left, c.right) else 0
        left, right = self.word(c.left), self.word(c.right)
        if flip and comparator not in ("==", "!="):
            op("xor", left, number(flip))
            op("xor", right, number(flip))
        if comparator in _JUMPS:
            op(_JUMPS[comparator], label, left, right)
        else:
            skip = self._code.label("skip")
            op(_JUMPS[_NEGATED[comparator]], skip, left, right)
            op("jmp", label)
            self._code.place(skip)

    # Statements

    @override
    def assign(self, ref: ir.FieldRef, value: ir.Expression) -> None:
        before, places = self._temporaries, self._model.layout.places(ref)
        for place, at in [(p, self.word(value, p.word * WORD_BITS)) for p in places]:
            self._store(place, at)
        self._temporaries = before

    def _store(self, place: FieldPlace, at: str) -> None:
        op, ones = self._code.op, (1 << place.bits) - 1
        if place.bits < WORD_BITS:
            op("and", at, number(ones))
        if place.alone:
            op("mov", place.operand, at)
            return
        if place.shift:
            op("shl", at, number(place.shift))
        op("and", place.operand, number(~(ones << place.shift), place.field_bits))
        op("or", place.operand, at)

    @override
    def _guard(self, statement: ir.Statement) -> str | None:
        ref = destination(statement)
        if ref is None or ref.header == ir.METADATA:
            return None
        return ref.header if not self._action or (self._action, ref) in self._model.findings.unsafe_writes else None

    @override
    def _statement(self, statement: ir.Statement) -> None:
        op, model = self._code.op, self._model
        self._temporaries = 0
        match statement:
            case ir.SetEgress(port):
                if not self._range(port).within(Range(0, MAX_PORT)):
                    raise CapabilityError(f"dpdk-swx has ports up to {MAX_PORT}, and an action calculates others")
                op("mov", model.layout.port_out, self.word(port))
            case ir.Drop():
                op("mov", model.helper("swx_dropped"), "0x1")
            case ir.ReadRegister(ref, name, index):
                at, register = self.word(index), model.program.register(name)
                op("regrd", at, name, at)
                if register.signed:
                    self._extend(at, register.width_bits)
                self._assign_from(ref, at)
            case ir.Branch(condition, then, otherwise):
                other, after = self._code.label("other"), self._code.label("after")
                self.jump(condition, False, other)
                self.body(then)
                if not self._code.ended:
                    op("jmp", after)
                self._code.place(other)
                self.body(otherwise)
                self._code.place(after)
            case ir.Exit() if self._exit_to:
                op("jmp", self._exit_to)
            case ir.Exit():
                op("mov", model.helper("swx_exit"), "0x1")
                op("return")
            case ir.Digest():
                pass
            case ir.Hash(algorithm=algorithm) if algorithm not in ("crc32", "checksum16"):
                raise CapabilityError(f"dpdk-swx has no hash {algorithm}")
            case _:
                super()._statement(statement)

    @override
    def _add_header(self, statement: ir.AddHeader) -> None:
        model = self._model
        given = {
            (name, p.word): self.word(value, p.word * WORD_BITS)
            for name, value in statement.values
            for p in model.layout.places(ir.FieldRef(statement.header, name))
        }
        self._code.op("validate", f"h.{statement.header}")
        fields = model.program.header(statement.header).fields
        places = [(f.name, p) for f in fields for p in model.layout.places(ir.FieldRef(statement.header, f.name))]
        for operand in dict.fromkeys(p.operand for _, p in places):
            self._code.op("mov", operand, "0x0")
        for name, place in places:
            if (name, place.word) in given:
                self._store(place, given[name, place.word])

    @override
    def _index(self, index: ir.Expression) -> str:
        return self.word(index)

    @override
    def _write_register(self, statement: ir.WriteRegister) -> None:
        bits, at = self._model.program.register(statement.register).width_bits, self.word(statement.value)
        self._code.op("and", at, number((1 << bits) - 1))
        self._code.op("regwr", statement.register, self.word(statement.index), at)

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
                self.assign(error, ir.Const(value))
                self._code.op("jmp", failed)
                self._code.place(right)
            case ir.Extract() | ir.Advance() | ir.Verify():
                raise CapabilityError(f"dpdk-swx has no {type(statement).__name__} of this form")
            case _:
                self.body((statement,))

    def select(self, state: ir.ParserState, targets: dict[str, str]) -> None:
        """Go to the state that fits."""
        op, self._temporaries = self._code.op, 0
        if self._is_signed(*state.selected):
            raise CapabilityError("dpdk-swx selects on unsigned numbers only")
        values = [self.word(e) for e in state.selected]
        at = self.temporary()
        for case in state.cases:
            other = self._code.label("other")
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
        op("jmp", targets[state.default])


def entries_text(model: Model) -> str:
    """The entries of all tables, in the format of DPDK, with a line ``table NAME`` before those of each."""
    return "".join(f"{line}\n" for t in model.program.tables if t.listing and t.keys for line in _entries(model, t))


def _entries(model: Model, table: ir.Table) -> Iterator[str]:
    yield f"table {table.name}"
    exact, seen = model.program.match_kind(table) == "exact", set()
    for priority, entry in enumerate(table.listing):
        fields = []
        for key, match in zip(table.keys, entry.matches, strict=True):
            masks = list(masked_values(match, model.program.width_bits(key.field)))
            for p in model.layout.places(key.field):
                low, ones = p.word * WORD_BITS, (1 << p.bits) - 1
                fields.append([(n, (v >> low) & ones, (m >> low) & ones) for n, (v, m) in enumerate(masks)])
        if prod(len({n for n, _, _ in f}) for f in fields) > MAX_ROWS:
            raise CapabilityError(f"table {table.name} has ranges of more than {MAX_ROWS} prefixes")
        for row in product(*fields):
            words = [f"0x{v & m:x}" if exact else f"0x{v & m:x}/0x{m:x}" for _, v, m in row]
            if exact and tuple(words) in seen:
                continue
            seen.add(tuple(words))
            order = [] if exact else ["priority", str(priority)]
            yield " ".join(
                ["match", *words, *order, "action", entry.action, *data_words(model, entry.action, entry.data)]
            )


def data_words(model: Model, action: str, data: tuple[int, ...]) -> list[str]:
    """Names and values of the data of an action."""
    arguments: list[Any] = model.arguments(action)
    return [w for name, bits, n, low in arguments for w in (name, number(data[n] >> low, bits))]
