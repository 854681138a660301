"""Control flow: the number of conditionals, in sequence or one inside the other."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field as Bounds

from p4perf.errors import CapabilityError
from p4perf.generators.base import Component, ComponentParameters
from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.components.layout import append_header
from p4perf.generators.program import (
    METADATA,
    Action,
    Assign,
    BinaryOp,
    CallAction,
    Compare,
    Const,
    ControlNode,
    Field,
    FieldRef,
    Header,
    If,
)

VALUE_BITS = 32
MODULUS = 1 << VALUE_BITS
FIRST_VALUE = 0x12345678

ADDEND = 0x9E3779B1
MASK = 0x5A5A5A5A
"""What the two actions do to the value: one adds first, the other one takes the exclusive or first."""

MAX_NESTED = 64


class Conditionals(Component):
    """``conditionals`` comparisons of a value with constants, and an action for either outcome.

    Scaled: the conditionals. Held: a header with two fields, and two actions. The value is a copy of one field; both
    actions change it, by an addition and an exclusive or in either order, and what it is at last goes into the other
    field. Each comparison is therefore of another value, and none follows from those before. All packets are alike, so
    that a processor predicts every branch; a compiler may replace a branch by a conditional move. ``taken`` is the
    share of conditionals that hold, spread evenly. With ``nested`` each conditional stands inside the one before, where
    that holds; the first ones hold, up to the share ``taken``.
    """

    name = "conditionals"
    summary = "a number of conditionals, in sequence or nested"

    class Parameters(ComponentParameters):
        """Parameters of the conditionals."""

        conditionals: Annotated[int, Bounds(ge=0, le=1024, description="conditionals, 64 if they are nested")]
        nested: Annotated[bool, Bounds(description="each inside the one before")] = False
        taken: Annotated[float, Bounds(ge=0, le=1, description="share of the conditionals that hold")] = 0.5

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Add the header, the two actions and the conditionals."""
        if parameters.nested and parameters.conditionals > MAX_NESTED:
            raise CapabilityError(
                f"{parameters.conditionals} conditionals are too many to be nested, {MAX_NESTED} are possible",
                key="program.parameters.conditionals",
                hint="set nested to false, or use fewer",
            )
        header = Header(builder.unique("decided"), (Field("given", VALUE_BITS), Field("result", VALUE_BITS)))
        append_header(builder, header, {"given": FIRST_VALUE})
        value = FieldRef(METADATA, builder.unique("value"))
        builder.add_metadata(Field(value.field, VALUE_BITS))
        added, mask = Const(ADDEND), Const(MASK)
        start, held, other, end = (builder.unique(n) for n in ("take_value", "held", "not_held", "give_value"))
        builder.add_action(Action(start, body=(Assign(value, FieldRef(header.name, "given")),)))
        builder.add_action(Action(held, body=(Assign(value, BinaryOp("^", BinaryOp("+", value, added), mask)),)))
        builder.add_action(Action(other, body=(Assign(value, BinaryOp("+", BinaryOp("^", value, mask), added)),)))
        builder.add_action(Action(end, body=(Assign(FieldRef(header.name, "result"), value),)))
        inner: tuple[ControlNode, ...] = ()
        for condition in reversed(_conditions(value, parameters)):
            if parameters.nested:
                inner = (If(condition, (CallAction(held), *inner), (CallAction(other),)),)
            else:
                inner = (If(condition, (CallAction(held),), (CallAction(other),)), *inner)
        for node in (CallAction(start), *inner, CallAction(end)):
            builder.add_control(node)


def _conditions(value: FieldRef, parameters: Conditionals.Parameters) -> list[Compare]:
    """The comparisons, with constants next to the value that the packets have by then."""
    found, at, count = [], FIRST_VALUE, parameters.conditionals
    for n in range(count):
        if parameters.nested:
            holds = n < round(parameters.taken * count)
        else:
            holds = int((n + 1) * parameters.taken) > int(n * parameters.taken)
        found.append(Compare("<", value, Const(at + 1 if holds else at)))
        # Where a nested conditional does not hold, those inside of it are never reached.
        at = (at + ADDEND) % MODULUS ^ MASK if holds else ((at ^ MASK) + ADDEND) % MODULUS
    return found
