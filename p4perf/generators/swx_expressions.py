"""Expressions and assignments as instructions of SWX."""

from __future__ import annotations

from collections.abc import Callable

from p4perf.errors import CapabilityError
from p4perf.generators.program import BinaryOp, Const, Expression, FieldRef, ParameterRef, PassNumber
from p4perf.generators.swx_assembler import Assembler
from p4perf.generators.swx_layout import WORD_BITS, Place
from p4perf.generators.swx_model import Model

_OPERATIONS = {"+": "add", "-": "sub", "&": "and", "|": "or", "^": "xor"}


def number(value: int, bits: int = WORD_BITS) -> str:
    """An immediate value, cut to so many bits."""
    return f"0x{value & ((1 << bits) - 1):x}"


class Expressions:
    """Writes expressions and assignments into one list of instructions.

    Args:
        model: names, places and findings of the program.
        code: where the instructions go.
        action: the action that they stand in.
    """

    def __init__(self, model: Model, code: Assembler, action: str) -> None:
        self._model = model
        self._code = code
        self._action = action
        self._temporaries = 0

    def clear_absent(self, header: str) -> None:
        """Let the fields of a header that is not valid lie in memory of their own, and be zero if they are read."""
        findings = self._model.findings
        if header not in findings.loose:
            return
        self._code.op("validate", f"h.{header}")
        zeroed = [
            p.operand
            for f in self._model.program.header(header).fields
            if FieldRef(header, f.name) in findings.loose_reads
            for p in self._model.layout.places(FieldRef(header, f.name))
        ]
        for operand in dict.fromkeys(zeroed):
            self._code.op("mov", operand, "0x0")
        self._code.op("invalidate", f"h.{header}")

    def temporary(self) -> str:
        """A metadata field of 64 bit, for this statement."""
        self._temporaries += 1
        return self._model.temporary(self._temporaries)

    def operand(self, e: Expression) -> str:
        """An operand that has the value of an expression; instructions may be needed to get it."""
        if isinstance(e, Const):
            return number(e.value)
        if isinstance(e, PassNumber):
            return self._model.pass_number
        if isinstance(e, ParameterRef):
            return self._model.argument(self._action, e.name)
        if isinstance(e, FieldRef):
            place = self._model.layout.places(e)[-1]
            if place.alone and not place.word:
                return place.operand
        at = self.temporary()
        self._evaluate(e, at)
        return at

    def copy(self, ref: FieldRef, target: str) -> None:
        """Let an operand of SWX have the value of a field."""
        self._evaluate(ref, target)

    def _evaluate(self, e: Expression, target: str) -> None:
        """Let a target have the value of an expression, in as many bits as it has."""
        if isinstance(e, BinaryOp):
            self._operation(e, target)
            return
        if isinstance(e, FieldRef):
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

    def _operation(self, e: BinaryOp, target: str) -> None:
        left, right = e.left, e.right
        if e.operator != "-" and (isinstance(left, Const) or self._is(right, target)):
            left, right = right, left
        if isinstance(right, BinaryOp) or self._is(right, target):
            saved = self.temporary()
            self._evaluate(right, saved)
        else:
            saved = self.operand(right)
        self._evaluate(left, target)
        self._code.op(_OPERATIONS[e.operator], target, saved)

    def _is(self, e: Expression, target: str) -> bool:
        return isinstance(e, FieldRef) and self._model.layout.places(e)[-1].operand == target

    def _fits(self, e: Expression, bits: int) -> bool:
        """Whether a value surely has no more than so many bits."""
        if isinstance(e, Const):
            return e.value < 1 << bits
        if isinstance(e, FieldRef):
            return self._model.width_bits(e) <= bits
        return isinstance(e, ParameterRef) and self._model.parameter_bits(self._action, e.name) <= bits

    def assign(self, ref: FieldRef, value: Expression) -> None:
        """``ref = value``."""
        places = self._model.layout.places(ref)
        if len(places) > 1 or places[0].bits > WORD_BITS:
            self._assign_long(places, value)
        elif isinstance(value, FieldRef) and self._model.width_bits(value) > WORD_BITS:
            self._code.op("mov", places[0].operand, self._model.layout.places(value)[-1].operand)
            self._cut(places[0])
        else:
            self._assign(places[0], value)

    def _assign(self, place: Place, value: Expression) -> None:
        if place.alone:
            if isinstance(value, Const):
                self._code.op("mov", place.operand, number(value.value, place.bits))
                return
            self._evaluate(value, place.operand)
            if not self._fits(value, place.bits):
                self._cut(place)
            return
        ones = (1 << place.bits) - 1
        around = number(~(ones << place.shift), place.field_bits)
        if isinstance(value, Const):
            constant = value.value & ones
            if constant != ones:
                self._code.op("and", place.operand, around)
            if constant:
                self._code.op("or", place.operand, number(constant << place.shift))
            return
        at = self.temporary()
        self._evaluate(value, at)
        if not self._fits(value, place.bits):
            self._code.op("and", at, number(ones))
        if place.shift:
            self._code.op("shl", at, number(place.shift))
        self._code.op("and", place.operand, around)
        self._code.op("or", place.operand, at)

    def _cut(self, place: Place) -> None:
        """Clear the bits above a field that is not whole bytes."""
        if place.bits < place.field_bits:
            self._code.op("and", place.operand, number((1 << place.bits) - 1))

    def _assign_long(self, places: tuple[Place, ...], value: Expression) -> None:
        if isinstance(value, BinaryOp):
            raise CapabilityError(f"dpdk-swx computes with up to {WORD_BITS} bit")
        sources: dict[int, str] = {}
        if isinstance(value, FieldRef):
            sources = {p.word: p.operand for p in self._model.layout.places(value)}
        elif isinstance(value, ParameterRef):
            sources = {word: f"t.{name}" for name, _, word in self._model.argument_words(self._action, value.name)}
        elif isinstance(value, PassNumber):
            sources = {0: self._model.pass_number}
        for place in places:
            if isinstance(value, Const):
                source = number(value.value >> place.word * WORD_BITS, place.bits)
            else:
                source = sources.get(place.word, "0x0")
            self._code.op("mov", place.operand, source)

    def _into(self, ref: FieldRef, write: Callable[[str], None]) -> None:
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

    def _assign_from(self, ref: FieldRef, operand: str) -> None:
        """``ref`` = an operand that was written before."""
        self.assign(ref, self._model.as_field(operand))
