"""Expressions and conditions as P4 text of a wanted width."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from p4perf.errors import CapabilityError
from p4perf.generators.p4.names import p4_name
from p4perf.generators.program import (
    METADATA,
    Action,
    BinaryOp,
    Compare,
    Condition,
    Const,
    Expression,
    FieldRef,
    ParameterRef,
    Program,
)


@dataclass(frozen=True, slots=True)
class Typed:
    """A piece of P4 text and its width in bits."""

    text: str
    width_bits: int


@dataclass(frozen=True, slots=True)
class Scope:
    """Everything that an expression may name, as text: fields, the number of the pass, parameters of the action."""

    fields: Mapping[FieldRef, Typed]
    pass_number: Typed | None = None
    parameters: Mapping[str, Typed] = field(default_factory=dict)

    def of_action(self, action: Action) -> Scope:
        """The scope inside of that action."""
        return replace(self, parameters={p.name: Typed(p4_name(p.name), p.width_bits) for p in action.parameters})


def program_scope(program: Program, pass_number: Typed | None = None) -> Scope:
    """The scope of a whole program."""
    fields = {
        FieldRef(header.name, f.name): Typed(f"hdr.{p4_name(header.name)}.{p4_name(f.name)}", f.width_bits)
        for header in program.headers
        for f in header.fields
    }
    for f in program.metadata:
        fields[FieldRef(METADATA, f.name)] = Typed(f"meta.{p4_name(f.name)}", f.width_bits)
    return Scope(fields, pass_number)


def constant_text(value: int, width_bits: int) -> str:
    """A constant of type ``bit<width_bits>``, cut to it."""
    cut = value & ((1 << width_bits) - 1)
    return f"{width_bits}w{cut}" if cut < 10 else f"{width_bits}w{cut:#x}"


def expression_text(scope: Scope, expression: Expression, width_bits: int) -> str:
    """An expression as P4 text of type ``bit<width_bits>``.

    Operands are cast to that width before they are combined. As all operators are congruent modulo a power of two,
    that gives the same as computing without limit and cutting the result, which is what a Program means.

    Raises:
        KeyError: a field or parameter does not exist.
    """
    if isinstance(expression, Const):
        return constant_text(expression.value, width_bits)
    if not isinstance(expression, BinaryOp):
        return _cast(_leaf(scope, expression), width_bits)
    operands = []
    left: Expression = expression
    while isinstance(left, BinaryOp) and left.operator == expression.operator:
        operands.append(_operand(scope, left.right, width_bits))
        left = left.left
    operands.append(_operand(scope, left, width_bits))
    return f" {expression.operator} ".join(reversed(operands))


def _operand(scope: Scope, expression: Expression, width_bits: int) -> str:
    text = expression_text(scope, expression, width_bits)
    return f"({text})" if isinstance(expression, BinaryOp) else text


def _leaf(scope: Scope, expression: Expression) -> Typed:
    if isinstance(expression, FieldRef):
        return scope.fields[expression]
    if isinstance(expression, ParameterRef):
        return scope.parameters[expression.name]
    if scope.pass_number is None:
        raise CapabilityError("the number of the pass has no form in this dialect")
    return scope.pass_number


def _cast(typed: Typed, wanted_bits: int) -> str:
    return typed.text if typed.width_bits == wanted_bits else f"(bit<{wanted_bits}>){typed.text}"


_MIRRORED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def condition_text(scope: Scope, condition: Condition) -> str | bool:
    """A condition as P4 text, or what it always is.

    Both sides get the width of the wider one; a constant stands on the right, where all compilers take it, and one
    that the other side can never reach decides the comparison here.

    Raises:
        CapabilityError: a side of it is not a field, a constant or the number of the pass.
    """
    if not isinstance(condition, Compare):
        return f"hdr.{p4_name(condition.header)}.isValid()"
    left, right, comparator = condition.left, condition.right, condition.comparator
    if isinstance(left, Const):
        left, right, comparator = right, left, _MIRRORED[comparator]  # type: ignore[assignment]
    if isinstance(left, Const) and isinstance(right, Const):
        return _holds(comparator, left.value, right.value)
    if isinstance(left, BinaryOp) or isinstance(right, BinaryOp):
        raise CapabilityError("a condition compares fields, constants and the number of the pass only")
    first = _leaf(scope, left)
    if isinstance(right, Const):
        if right.value >> first.width_bits:
            return _holds(comparator, 0, right.value)
        return f"{first.text} {comparator} {constant_text(right.value, first.width_bits)}"
    second = _leaf(scope, right)
    width = max(first.width_bits, second.width_bits)
    return f"{_cast(first, width)} {comparator} {_cast(second, width)}"


def _holds(comparator: str, left: int, right: int) -> bool:
    return {
        "==": left == right,
        "!=": left != right,
        "<": left < right,
        ">": left > right,
        "<=": left <= right,
        ">=": left >= right,
    }[comparator]


def index_text(scope: Scope, index: Expression, size: int, *, masked: bool = True) -> str:
    """An index of an array as ``bit<32>``, modulo its size, which is a power of two.

    Args:
        scope: what the index may name.
        index: the index.
        size: the size of the array.
        masked: whether the text has to take the modulus, because the target does not.
    """
    if isinstance(index, Const):
        return constant_text(index.value % size, 32)
    text = expression_text(scope, index, 32)
    if isinstance(index, BinaryOp):
        text = f"({text})"
    elif _leaf(scope, index).width_bits < size.bit_length() or not masked:
        return text
    return f"{text} & {constant_text(size - 1, 32)}" if masked else text
