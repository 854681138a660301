"""Control flow: the number of conditionals, in sequence or one inside the other."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field as Bounds

from p4perf.errors import CapabilityError
from p4perf.generators.base import Component, ComponentParameters
from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.components.layout import append_header
from p4perf.generators.program import (
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
"""What the two actions do to the value: one adds, the other one takes the exclusive or."""

MAX_NESTED = 64


class Conditionals(Component):
    """``conditionals`` comparisons of a header field with constants, and an action for either outcome.

    Scaled: the conditionals. Held: one header field and two actions: what holds adds a constant to the field, what does
    not hold changes it by exclusive or. Each comparison is therefore of another value, and none follows from those
    before. All packets are alike, so that a processor predicts every branch; a compiler may replace a branch by a
    conditional move. ``taken`` is the share of conditionals that hold, spread evenly. With ``nested`` each conditional
    stands inside the one before, where that holds; the first ones hold, up to the share ``taken``.
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
        header = Header(builder.unique("decided"), (Field("value", VALUE_BITS),))
        append_header(builder, header, {"value": FIRST_VALUE})
        value = FieldRef(header.name, "value")
        held, other = builder.unique("held"), builder.unique("not_held")
        builder.add_action(Action(held, body=(Assign(value, BinaryOp("+", value, Const(ADDEND))),)))
        builder.add_action(Action(other, body=(Assign(value, BinaryOp("^", value, Const(MASK))),)))
        conditions = _conditions(value, parameters)
        if not parameters.nested:
            for condition in conditions:
                builder.add_control(If(condition, (CallAction(held),), (CallAction(other),)))
            return
        inner: tuple[ControlNode, ...] = ()
        for condition in reversed(conditions):
            inner = (If(condition, (CallAction(held), *inner), (CallAction(other),)),)
        for node in inner:
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
        at = (at + ADDEND) % MODULUS if holds else at ^ MASK
    return found
