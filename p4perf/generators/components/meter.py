"""Externs: the number and the size of meters."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field as Bounds

from p4perf.generators.base import Component, ComponentParameters
from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.components.layout import append_indexed_header
from p4perf.generators.program import Action, CallAction, Field, FieldRef, Meter, MeterPacket

COLOUR_BITS = 32


class Meters(Component):
    """``executions`` meters, in an array of ``size`` cells each; the packets choose the cells.

    Scaled: the arrays, each of which one action executes once, their cells, and the fields of the header that take
    the colours. Held: the index, which is the same for all arrays. Every packet conforms, so every colour is green;
    the packets come with another one in each field.
    """

    name = "meter"
    summary = "a number of meters, indexed by a header field"

    class Parameters(ComponentParameters):
        """Parameters of the meters."""

        executions: Annotated[int, Bounds(ge=0, le=64, description="meters executed, each in an array of its own")]
        size: Annotated[int, Bounds(ge=1, le=1048576, description="cells of each array, a power of two")] = 1024

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Add the header, the meters, the action and its call."""
        colours = tuple(Field(f"colour_{n}", COLOUR_BITS) for n in range(parameters.executions))
        index = append_indexed_header(builder, "metered", colours, parameters.size)
        body = []
        for colour in colours:
            meter = Meter(builder.unique("rate"), parameters.size)
            builder.add_meter(meter)
            body.append(MeterPacket(FieldRef(index.header, colour.name), meter.name, index))
        action = builder.unique("meter_packet")
        builder.add_action(Action(action, body=tuple(body)))
        builder.add_control(CallAction(action))
