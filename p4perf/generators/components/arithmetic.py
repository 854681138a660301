"""Actions: the number of arithmetic operations."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field as Bounds

from p4perf.generators.base import Component, ComponentParameters
from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.components.layout import append_header
from p4perf.generators.program import (
    Action,
    Assign,
    BinaryOp,
    BinaryOperator,
    CallAction,
    Const,
    Field,
    FieldRef,
    Header,
)

VALUE = 0x0123456789ABCDEF
SPARSE = 0x8040201008040201
OPERANDS: Mapping[BinaryOperator, int] = MappingProxyType(
    {"+": 0xF1BBCDCBFA53E0F5, "-": 0xF1BBCDCBFA53E0F5, "^": 0xF1BBCDCBFA53E0F5, "&": ~SPARSE, "|": SPARSE}
)
MIXED_IN = 0x5A3C96B5E1872DFE
"""What the packets carry and what is mixed in, cut to the width: so that a hundred operations give as many values."""


class Arithmetic(Component):
    """``operations`` operations on a header field, each of which needs the result of the one before.

    Scaled: assignments of the form ``value = (value operator operand) mix constant``, where ``operand`` is another
    header field. Held: the header. ``mix`` is ``^`` for sums and differences and ``+`` for the others: two operations
    of one kind in a row could be folded into one, and now they cannot. The cost of one is that of the operation, of the
    mixing, and of whatever the target does to read and write a header field.
    """

    name = "arithmetic"
    summary = "a number of arithmetic operations on a header field"

    class Parameters(ComponentParameters):
        """Parameters of the operations."""

        operations: Annotated[int, Bounds(ge=0, le=1024, description="operations, one after another")]
        operator: Annotated[Literal["+", "-", "&", "|", "^"], Bounds(description="what is computed")] = "+"
        width_bits: Annotated[Literal[8, 16, 32, 48, 64], Bounds(description="width of the operands, in bits")] = 32

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Add the header, the action and its call."""
        bits = parameters.width_bits
        mask = (1 << bits) - 1
        header = Header(builder.unique("operands"), (Field("value", bits), Field("operand", bits)))
        append_header(builder, header, {"value": VALUE & mask, "operand": OPERANDS[parameters.operator] & mask})
        value, operand = FieldRef(header.name, "value"), FieldRef(header.name, "operand")
        mix: BinaryOperator = "^" if parameters.operator in ("+", "-") else "+"
        step = Assign(value, BinaryOp(mix, BinaryOp(parameters.operator, value, operand), Const(MIXED_IN & mask)))
        action = builder.unique("compute")
        builder.add_action(Action(action, body=(step,) * parameters.operations))
        builder.add_control(CallAction(action))
