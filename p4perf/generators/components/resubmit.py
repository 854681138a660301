"""Packet paths: resubmission, a number of times."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field as Bounds

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
    Field,
    FieldRef,
    Header,
    If,
    PassNumber,
    Resubmit,
)

PASSES_BITS = 32


class Resubmission(Component):
    """The packet goes through the program again as it came, ``times`` times, before it is sent.

    Scaled: the passes. Held: a header with one field, to which every pass adds its number (what the passes before the
    last one wrote is lost with them), and one conditional. A pass is the parser and the control flow; a target that
    sees that nothing else of a pass remains may do less.
    """

    name = "resubmit"
    summary = "packets that go through the program again as they came, a number of times"

    class Parameters(ComponentParameters):
        """Parameters of the resubmission."""

        times: Annotated[int, Bounds(ge=0, le=255, description="resubmissions of every packet")]

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Add the header, the actions and the conditional."""
        header = Header(builder.unique("looped"), (Field("passes", PASSES_BITS),))
        append_header(builder, header, {"passes": 1})
        passes = FieldRef(header.name, "passes")
        count, again = builder.unique("note_pass"), builder.unique("send_again")
        builder.add_action(Action(count, body=(Assign(passes, BinaryOp("+", passes, PassNumber())),)))
        builder.add_action(Action(again, body=(Resubmit(),)))
        builder.add_control(CallAction(count))
        builder.add_control(If(Compare("<", PassNumber(), Const(parameters.times)), (CallAction(again),)))
