"""Expressions and conditions of a program as instructions of SWX, in words of 64 bit.

What a field holds is used where it is, and computed there if its lowest bits depend on the lowest bits of the operands
only. Other values are computed in metadata fields of p4perf's own, modulo two to the 64; ranges tell where that is the
value.
"""

from __future__ import annotations

from p4perf.errors import CapabilityError
from p4perf.generators.swx.layout import OPERAND, SCRATCH, WORD_BITS, FieldPlace, Model, split_words
from p4perf.programs import ir
from p4perf.programs.analysis import COMPARE, MIRRORED, NEGATED
from p4perf.programs.interpreter import RECIRCULATED
from p4perf.programs.ranges import Range, signed, unsigned, value_range


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


OPERATIONS = {"+": "add", "-": "sub", "&": "and", "|": "or", "^": "xor"}

_SIGN = 1 << (WORD_BITS - 1)
_LIMIT = f"dpdk-swx computes with up to {WORD_BITS} bit"
_JUMPS = {"==": "jmpeq", "!=": "jmpneq", "<": "jmplt", ">": "jmpgt"}
"""Jumps of SWX: there is none for "not less than" and none for "not greater than"."""


def number(value: int, bits: int = WORD_BITS) -> str:
    """An immediate value, cut to a width."""
    return f"0x{value & ((1 << bits) - 1):x}"


class Expressions:
    """Writes expressions and conditions into one list of instructions."""

    def __init__(self, model: Model, code: Assembler, action: str) -> None:
        self._model = model
        self._code = code
        self._action = action
        self._temporaries = 0

    def temporary(self) -> str:
        """A metadata field of 64 bit, for this statement."""
        self._temporaries += 1
        return self._model.helper(f"swx_temporary_{self._temporaries}", WORD_BITS)

    def _range(self, e: ir.Expression) -> Range:
        if isinstance(e, ir.FieldRef) and e.header in (OPERAND, SCRATCH):
            return unsigned(self._model.width_bits(e))
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

    def _is_plain(self, e: ir.Expression) -> bool:
        """Whether the lowest bits of a value depend on those of its operands only, in each word of 64 bit."""
        if isinstance(e, ir.BinaryOp):
            return e.operator in OPERATIONS and self._is_plain(e.left) and self._is_plain(e.right)
        if isinstance(e, ir.FieldRef):
            return not self._holds_sign(e)
        return isinstance(e, ir.Const | ir.ParameterRef | ir.PassNumber)

    def _holds_sign(self, ref: ir.FieldRef) -> bool:
        return ref.header not in (OPERAND, SCRATCH) and self._model.program.declared(ref).signed

    def word(self, e: ir.Expression, low: int = 0) -> str:
        """A field of p4perf's own that holds 64 bits of a value from bit ``low`` on."""
        at = self.temporary()
        before = self._temporaries
        self.compute(e, at, low)
        self._temporaries = before
        return at

    def operand(self, e: ir.Expression, low: int = 0) -> str:
        """The same as an operand that is only read; instructions may be needed to get it."""
        direct = self._direct(e, low)
        return self.word(e, low) if direct is None else direct

    def _direct(self, e: ir.Expression, low: int) -> str | None:
        """The operand that has 64 bits of a value, if there is one without any instruction."""
        model = self._model
        match e:
            case ir.Const(value):
                return number(value >> low)
            case ir.PassNumber():
                return "0x0" if low else model.helper("swx_pass")
            case ir.ParameterRef(name):
                field = next(p for p in model.program.action(self._action).parameters if p.name == name)
                return next((f"t.{n}" for n, _, word in split_words(field) if word == low // WORD_BITS), "0x0")
            case ir.FieldRef() if not self._holds_sign(e):
                place = self._place(e, low)
                return "0x0" if place is None else place.operand if place.alone else None
        return None

    def _place(self, ref: ir.FieldRef, low: int) -> FieldPlace | None:
        return next((p for p in self._model.layout.places(ref) if p.word == low // WORD_BITS), None)

    def compute(self, e: ir.Expression, at: str, low: int = 0) -> None:
        """Let a field have 64 bits of a value from bit ``low`` on; a narrower field its lowest ones, if it is plain."""
        op, direct = self._code.op, self._direct(e, low)
        if direct is not None:
            if direct != at:
                op("mov", at, direct)
            return
        match e:
            case ir.FieldRef():
                if (place := self._place(e, low)) is None:
                    raise CapabilityError(_LIMIT)
                self.load(place, at)
                if self._holds_sign(e):
                    self._extend(at, place.bits)
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

    def load(self, place: FieldPlace, at: str) -> None:
        """Let a field have the bits of another one, which may be some of a wider one."""
        op, wanted = self._code.op, at
        if self._model.layout.operand_bits(at) < place.field_bits and not place.alone:
            at = self.temporary()
        op("mov", at, place.operand)
        if place.shift:
            op("shr", at, number(place.shift))
        if place.shift + place.bits < place.field_bits:
            op("and", at, number((1 << place.bits) - 1))
        if wanted != at:
            op("mov", wanted, at)

    def _extend(self, at: str, bits: int) -> None:
        """Let the lowest bits be a signed number of 64 bit."""
        if bits < WORD_BITS:
            self._code.op("and", at, number((1 << bits) - 1))
            self._code.op("xor", at, number(1 << (bits - 1)))
            self._code.op("sub", at, number(1 << (bits - 1)))

    def _choose(self, c: ir.Condition, then: ir.Expression, otherwise: ir.Expression, at: str, low: int) -> None:
        other, after = self._code.label("other"), self._code.label("after")
        self.jump(c, False, other)
        self.compute(then, at, low)
        self._code.op("jmp", after)
        self._code.place(other)
        self.compute(otherwise, at, low)
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
        self.compute(e.value, at, low)
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
        before = self._temporaries
        long = {"<<": self._shift, ">>": self._shift, "*": self._multiply, "/": self._divide, "%": self._divide}
        if operator in long:
            self.compute(e.left, at)
            long[operator](e, at)
        else:
            self._operation(e, at, low)
        self._temporaries = before

    def _operation(self, e: ir.BinaryOp, at: str, low: int) -> None:
        """What SWX has an instruction for: the field may be one of those that are read."""
        left, right = e.left, e.right
        if e.operator != "-" and (isinstance(left, ir.Const) or self._direct(right, low) == at):
            left, right = right, left
        saved = self.word(right, low) if self._direct(right, low) == at else self.operand(right, low)
        self.compute(left, at, low)
        self._code.op(OPERATIONS[e.operator], at, saved)

    def _move(self, e: ir.Expression, first: int, at: str) -> None:
        """64 bits of a number that is not negative, from any bit on; those below the lowest are zero."""
        low, rest = first - first % WORD_BITS, first % WORD_BITS
        if first <= -WORD_BITS:
            self._code.op("mov", at, "0x0")
        elif low < 0:
            self.compute(e, at, 0)
            self._code.op("shl", at, number(WORD_BITS - rest))
        else:
            self.compute(e, at, low)
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

    def decided(self, condition: ir.Condition) -> bool | None:
        """What a comparison comes to where that does not depend on the packet; None if it does.

        SWX cuts an immediate value to the width of the header field that it is compared with.
        """
        if not isinstance(condition, ir.Compare):
            return None
        left, right = self._range(condition.left), self._range(condition.right)
        constant = left.low == left.high and right.low == right.high
        if constant or left.high < right.low or left.low > right.high:
            return COMPARE[condition.comparator](left.low, right.low)
        return None

    def _compare(self, c: ir.Compare, wanted: bool, label: str) -> None:
        op, comparator = self._code.op, c.comparator if wanted else NEGATED[c.comparator]
        if (decided := self.decided(c)) is not None:
            if decided == wanted:
                op("jmp", label)
            return
        ranges = [self._range(c.left), self._range(c.right)]
        bits = max(r.high for r in ranges).bit_length()
        if comparator in ("==", "!=") and bits > WORD_BITS and min(r.low for r in ranges) >= 0:
            skip = self._code.label("skip")
            for low in range(0, bits, WORD_BITS):
                words = self.word(c.left, low), self.operand(c.right, low)
                op("jmpneq", label if comparator == "!=" else skip, *words)
            if comparator == "==":
                op("jmp", label)
            self._code.place(skip)
            return
        sides = [c.left, c.right]
        if isinstance(c.left, ir.Const):
            comparator, sides = MIRRORED[comparator], [c.right, c.left]
        if self._is_signed(*sides) and comparator not in ("==", "!="):
            operands = [self.word(side) for side in sides]
            for word in operands:
                op("xor", word, number(_SIGN))
        else:
            operands = [self.operand(side) for side in sides]
        if comparator in _JUMPS:
            op(_JUMPS[comparator], label, *operands)
        else:
            skip = self._code.label("skip")
            op(_JUMPS[NEGATED[comparator]], skip, *operands)
            op("jmp", label)
            self._code.place(skip)
