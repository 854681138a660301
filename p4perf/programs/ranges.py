"""The integers between which the value of an expression lies, whatever the packet: backends compute in words."""

from __future__ import annotations

from dataclasses import dataclass

from p4perf.programs import ir

PASSES = 256
INTRINSIC_BITS = 32


@dataclass(frozen=True, slots=True)
class Range:
    """Integers from ``low`` to ``high``, both included."""

    low: int
    high: int

    def within(self, other: Range) -> bool:
        return other.low <= self.low and self.high <= other.high

    def joined(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))


def unsigned(width_bits: int) -> Range:
    return Range(0, (1 << width_bits) - 1)


def signed(width_bits: int) -> Range:
    return Range(-(1 << (width_bits - 1)), (1 << (width_bits - 1)) - 1)


def value_range(program: ir.Program, expression: ir.Expression, parameters: dict[str, int]) -> Range:
    """The range of an expression; ``parameters`` are the widths of the parameters that it may name, in bits."""
    match expression:
        case ir.Const(value):
            return Range(value, value)
        case ir.FieldRef():
            declared = program.declared(expression)
            return signed(declared.width_bits) if declared.signed else unsigned(declared.width_bits)
        case ir.ParameterRef(name):
            return unsigned(parameters[name])
        case ir.Cast(value, width_bits, is_signed):
            whole = signed(width_bits) if is_signed else unsigned(width_bits)
            inner = value_range(program, value, parameters)
            return inner if inner.within(whole) else whole
        case ir.Conditional(_, then, otherwise):
            return value_range(program, then, parameters).joined(value_range(program, otherwise, parameters))
        case ir.Truth():
            return Range(0, 1)
        case ir.Lookahead(_, width_bits):
            return unsigned(width_bits)
        case ir.PassNumber():
            return Range(0, PASSES)
        case ir.Intrinsic():
            return unsigned(INTRINSIC_BITS)
        case ir.BinaryOp(operator, left, right):
            sides = (value_range(program, side, parameters) for side in (left, right))
            return _combined(operator, *sides)


def _combined(operator: ir.BinaryOperator, a: Range, b: Range) -> Range:
    match operator:
        case "+":
            return Range(a.low + b.low, a.high + b.high)
        case "-":
            return Range(a.low - b.high, a.high - b.low)
        case "*":
            products = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            return Range(min(products), max(products))
        case "/":
            return Range(min(a.low, 0), max(a.high, 0))
        case "%":
            return Range(0, max(min(a.high, b.high - 1), 0))
        case "<<":
            most = min(max(b.high, 0), 4096)
            return Range(min(a.low << most, a.low), max(a.high << most, a.high))
        case ">>":
            least = max(b.low, 0)
            return Range(min(a.low >> least, 0), max(a.high >> least, 0))
        case "&" | "|" | "^":
            return _bitwise(operator, a, b)


def _bitwise(operator: ir.BinaryOperator, a: Range, b: Range) -> Range:
    if operator == "&" and (a.low >= 0 or b.low >= 0):
        return Range(0, min(x.high for x in (a, b) if x.low >= 0))
    bits = max(abs(end).bit_length() for x in (a, b) for end in (x.low, x.high))
    return unsigned(bits) if a.low >= 0 and b.low >= 0 else signed(bits + 1)
