"""What the C text of a program has in common on DPDK and in XDP: words of 64 bit, expressions, statements.

How fields, headers and state are reached is up to the target: the verifier of eBPF has a say in that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from p4perf.errors import CapabilityError
from p4perf.programs import ir
from p4perf.programs.capabilities import standing_at, unsupported
from p4perf.programs.ranges import Range, signed, unsigned, value_range

WORD_BITS = 64
"""Widest number that is computed with."""

_WORD, _SIGNED_WORD = unsigned(WORD_BITS), signed(WORD_BITS)


def _parameter_bits(program: ir.Program) -> dict[str, int]:
    """Widths of the parameters of all actions; of those with one name the widest."""

    def find() -> dict[str, int]:
        found: dict[str, int] = {}
        for action in program.actions:
            for p in action.parameters:
                found[p.name] = max(p.width_bits, found.get(p.name, 0))
        return found

    return program.once("parameter bits", find)


@dataclass(frozen=True)
class CWriter(ABC):
    """One program as C text; ``p`` is the packet, ``d`` the action data."""

    program: ir.Program

    owner: ClassVar[str]
    """The generator, for messages."""
    word_type: ClassVar[str]
    signed_type: ClassVar[str]
    zero: ClassVar[str]
    limit: ClassVar[str]
    """What is said of a wider computation."""

    @staticmethod
    @abstractmethod
    def constant(value: int) -> str:
        """A C constant of 64 bit, unsigned."""

    @abstractmethod
    def load(self, ref: ir.FieldRef, low: int = 0) -> str:
        """The value of a field, or of up to 64 bits of it from bit ``low`` (counted from the lowest) on."""

    @abstractmethod
    def is_valid(self, header: str) -> str:
        """Whether a packet has a header."""

    @abstractmethod
    def assign(self, ref: ir.FieldRef, value: ir.Expression) -> Iterator[str]:
        """Statements that write the value of an expression to a field, of any width."""

    @abstractmethod
    def store(self, ref: ir.FieldRef, value: str) -> Iterator[str]:
        """Statements that write a number to a field."""

    @abstractmethod
    def add_header(self, statement: ir.AddHeader) -> Iterator[str]:
        """Statements that add a header. Its values come first, since they may be of the header itself."""

    @abstractmethod
    def hash_fields(self, statement: ir.Hash) -> Iterator[str]:
        """Statements that write the hash of fields to a field."""

    @abstractmethod
    def random(self, ref: ir.FieldRef) -> Iterator[str]:
        """Statements that write random bits to a field."""

    @abstractmethod
    def colour(self, meter: str, index: ir.Expression) -> str:
        """The colour that a meter gives the packet."""

    @abstractmethod
    def register(self, name: str, index: ir.Expression) -> str:
        """The value of a cell of a register."""

    @abstractmethod
    def effect(self, statement: ir.Statement) -> Iterator[str]:
        """Statements for what writes no field."""

    def expression(self, e: ir.Expression, low: int = 0) -> str:
        """The value of an expression, modulo two to the 64, shifted to the right by ``low`` (a multiple of 64) bits.

        Raises:
            CapabilityError: it would have to be computed in more than one word.
        """
        if low:
            whole = self.range(e)
            if whole.low >= 0 and not whole.high >> low:
                return self.zero
            if whole.within(_SIGNED_WORD):
                return f"({self.word_type})(({self.signed_type}){self.expression(e)} >> {WORD_BITS - 1})"
        match e:
            case ir.Const(value):
                return self.constant((value >> low) & ((1 << WORD_BITS) - 1))
            case ir.FieldRef():
                declared = self.program.declared(e)
                if not declared.signed or declared.width_bits >= WORD_BITS:
                    return self.load(e, low)
                rest = WORD_BITS - declared.width_bits
                return f"({self.word_type})(({self.signed_type})({self.load(e)} << {rest}) >> {rest})"
            case ir.ParameterRef(name):
                return self.data_above(name, low) if low else f"({self.word_type})d->{name}"
            case ir.BinaryOp():
                return self._operation(e, low)
            case ir.PassNumber():
                return f"({self.word_type})p->pass"
            case ir.Cast():
                return self._cast(e, low)
            case ir.Conditional(condition, then, otherwise):
                return (
                    f"({self.condition(condition)} ? {self.expression(then, low)} : {self.expression(otherwise, low)})"
                )
            case ir.Truth(condition):
                return f"({self.word_type})({self.condition(condition)})"
            case ir.Lookahead():
                return self.lookahead(e, low)
            case ir.Intrinsic(name):
                return self.intrinsic(name)

    def range(self, e: ir.Expression) -> Range:
        return value_range(self.program, e, _parameter_bits(self.program))

    def _exact(self, *sides: ir.Expression) -> bool:
        """Whether words hold the values of all sides as signed numbers, not as unsigned ones.

        Raises:
            CapabilityError: they hold them neither so nor so.
        """
        ranges = [self.range(side) for side in sides]
        for whole in (_WORD, _SIGNED_WORD):
            if all(r.within(whole) for r in ranges):
                return whole is _SIGNED_WORD
        raise CapabilityError(self.limit)

    def _operation(self, e: ir.BinaryOp, low: int) -> str:
        operator, first, second = e.operator, e.left, e.right
        whole = self.range(first)
        if operator in ("<<", ">>") and isinstance(second, ir.Const) and whole.low >= 0 and (low or whole.high >> 64):
            return self._moved(first, low + (second.value if operator == ">>" else -second.value))
        if low and operator not in ("&", "|", "^"):
            raise CapabilityError(self.limit)
        left, right = self.expression(first, low), self.expression(second, low)
        if operator in ("<<", ">>"):
            return self._shift(e, left, right)
        if operator in ("/", "%") and self._exact(first, second):
            raise CapabilityError(f"{self.owner} divides unsigned numbers only")
        if operator in ("/", "%") and self.range(second).low < 1:
            right = f"({right} != 0 ? {right} : 1)"
        return f"({left} {operator} {right})"

    def _moved(self, e: ir.Expression, first: int) -> str:
        """64 bits of a number that is not negative, from any bit on; those below the lowest are zero."""
        if first <= -WORD_BITS or not self.range(e).high >> max(first, 0):
            return self.zero
        if first < 0:
            return f"({self.expression(e)} << {-first})"
        if isinstance(e, ir.FieldRef):
            return self.load(e, first)
        low, rest = first - first % WORD_BITS, first % WORD_BITS
        found = self.expression(e, low)
        if not rest:
            return found
        above = low + WORD_BITS
        if not self.range(e).high >> above:
            return f"({found} >> {rest})"
        return f"({found} >> {rest} | {self.expression(e, above)} << {WORD_BITS - rest})"

    def _shift(self, e: ir.BinaryOp, left: str, right: str) -> str:
        by = self.range(e.right)
        if by.low < 0:
            raise CapabilityError(f"{self.owner} shifts by unsigned numbers only")
        far = by.high >= WORD_BITS
        if e.operator == ">>" and self._exact(e.left):
            amount = f"({right} < {WORD_BITS} ? {right} : {WORD_BITS - 1})" if far else right
            return f"({self.word_type})(({self.signed_type}){left} >> {amount})"
        shifted = f"({left} {e.operator} {right})"
        return f"({right} < {WORD_BITS} ? {shifted} : {self.zero})" if far else shifted

    def _cast(self, e: ir.Cast, low: int) -> str:
        inner, width = self.range(e.value), e.width_bits
        value = self.expression(e.value, low)
        whole = signed(width) if e.signed else unsigned(width)
        if inner.within(whole):
            return value
        if e.saturating:
            return self._saturated(e, value, whole)
        if width - low >= WORD_BITS and not (e.signed and width > WORD_BITS):
            return value
        if e.signed and width < WORD_BITS:
            rest = WORD_BITS - width
            return f"({self.word_type})(({self.signed_type})({value} << {rest}) >> {rest})"
        if e.signed and width > WORD_BITS:
            raise CapabilityError(self.limit)
        return f"({value} & {self.constant((1 << max(width - low, 0)) - 1)})"

    def _saturated(self, e: ir.Cast, value: str, whole: Range) -> str:
        if not whole.within(_WORD if not e.signed else _SIGNED_WORD):
            raise CapabilityError(self.limit)
        number = self.signed_type if self._exact(e.value) else self.word_type
        found = f"({number}){value}"
        text = f"{found} > ({number}){self.constant(whole.high)} ? {self.constant(whole.high)} : {value}"
        if number == self.signed_type:
            text = f"{found} < ({number}){self.constant(whole.low)} ? {self.constant(whole.low)} : {text}"
        return f"({text})"

    def condition(self, condition: ir.Condition) -> str:
        match condition:
            case ir.Compare():
                return self._comparison(condition)
            case ir.IsValid(header):
                return self.is_valid(header)
            case ir.Not(inner):
                return f"!({self.condition(inner)})"
            case ir.And(left, right):
                return f"(({self.condition(left)}) && ({self.condition(right)}))"
            case ir.Or(left, right):
                return f"(({self.condition(left)}) || ({self.condition(right)}))"

    def _comparison(self, c: ir.Compare) -> str:
        ranges = [self.range(side) for side in (c.left, c.right)]
        if (
            c.comparator in ("==", "!=")
            and any(r.high > _WORD.high for r in ranges)
            and min(r.low for r in ranges) >= 0
        ):
            lows = range(0, max(r.high for r in ranges).bit_length(), WORD_BITS)
            pairs = [f"{self.expression(c.left, low)} {c.comparator} {self.expression(c.right, low)}" for low in lows]
            return "(" + (" && " if c.comparator == "==" else " || ").join(pairs) + ")"
        left, right = self.expression(c.left), self.expression(c.right)
        if self._exact(c.left, c.right):
            return f"({self.signed_type}){left} {c.comparator} ({self.signed_type}){right}"
        return f"{left} {c.comparator} {right}"

    def data_above(self, name: str, low: int) -> str:
        """Action data from bit ``low``, which is 64 or more, on; those that follow a rule are zero there."""
        return self.zero

    def lookahead(self, e: ir.Lookahead, low: int) -> str:
        """Bits of the packet behind the place of the parser."""
        raise unsupported(self.owner, e)

    def intrinsic(self, name: str) -> str:
        """What :class:`~p4perf.programs.ir.Intrinsic` names."""
        raise unsupported(self.owner, ir.Intrinsic("unknown"))

    def action(self, action: ir.Action) -> Iterator[str]:
        """The body of an action."""
        for place, statement in action.placed:
            with standing_at(place):
                yield from self.statement(statement)

    def statement(self, statement: ir.Statement) -> Iterator[str]:
        match statement:
            case ir.Assign(ref, value):
                yield from self.assign(ref, value)
            case ir.AddHeader():
                yield from self.add_header(statement)
            case ir.Hash():
                yield from self.hash_fields(statement)
            case ir.Random(ref):
                yield from self.random(ref)
            case ir.MeterPacket(ref, meter, index):
                yield from self.store(ref, self.colour(meter, index))
            case ir.ReadRegister(ref, register, index):
                yield from self.store(ref, self.register(register, index))
            case ir.Branch(condition, then, otherwise):
                yield f"if ({self.condition(condition)}) {{"
                yield from (f"\t{line}" for s in then for line in self.statement(s))
                if otherwise:
                    yield "} else {"
                    yield from (f"\t{line}" for s in otherwise for line in self.statement(s))
                yield "}"
            case ir.Digest():
                pass
            case _:
                yield from self.effect(statement)
