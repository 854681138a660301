"""Packet paths: recirculation, a number of times."""

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
    Recirculate,
)

PASSES_BITS = 32


class Recirculation(Component):
    """The packet is deparsed and goes through the program again, ``times`` times, before it is sent.

    Scaled: the passes. Held: a header with one field, to which every pass adds one, and one conditional. A pass is the
    whole program: parser, control flow, deparser.
    """

    name = "recirculate"
    summary = "packets that go through the program again after the deparser, a number of times"

    class Parameters(ComponentParameters):
        """Parameters of the recirculation."""

        times: Annotated[int, Bounds(ge=0, le=255, description="recirculations of every packet")]

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Add the header, the actions and the conditional."""
        header = Header(builder.unique("looped"), (Field("passes", PASSES_BITS),))
        append_header(builder, header)
        passes = FieldRef(header.name, "passes")
        count, again = builder.unique("count_pass"), builder.unique("send_round")
        builder.add_action(Action(count, body=(Assign(passes, BinaryOp("+", passes, Const(1))),)))
        builder.add_action(Action(again, body=(Recirculate(),)))
        builder.add_control(CallAction(count))
        builder.add_control(If(Compare("<", PassNumber(), Const(parameters.times)), (CallAction(again),)))
