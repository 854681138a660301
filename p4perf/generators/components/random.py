"""Externs: random numbers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field as Bounds

from p4perf.errors import CapabilityError
from p4perf.generators.base import Component, ComponentParameters
from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.components.layout import append_header, pattern
from p4perf.generators.program import Action, CallAction, Field, FieldRef, Header, Random


class RandomNumbers(Component):
    """``numbers`` random numbers, each written into a field of its own of one header.

    Scaled: the numbers. Held: the header of ``fields`` fields. The bits of the numbers are not checked, only that
    nothing else changes.
    """

    name = "random"
    summary = "a number of random numbers that are written into a header"

    class Parameters(ComponentParameters):
        """Parameters of the random numbers."""

        numbers: Annotated[int, Bounds(ge=0, le=64, description="random numbers")]
        fields: Annotated[int, Bounds(ge=1, le=64, description="fields of the header")] = 16
        width_bits: Annotated[Literal[8, 16, 32], Bounds(description="width of a number, in bits")] = 32

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Add the header, the action and its call."""
        if parameters.numbers > parameters.fields:
            raise CapabilityError(
                f"{parameters.numbers} numbers need as many fields, but the header has {parameters.fields}",
                key="program.parameters.numbers",
                hint="use more fields",
            )
        fields = tuple(Field(f"number_{n}", parameters.width_bits) for n in range(parameters.fields))
        header = Header(builder.unique("drawn"), fields)
        append_header(builder, header, pattern(fields))
        action = builder.unique("draw_numbers")
        body = tuple(Random(FieldRef(header.name, f.name)) for f in fields[: parameters.numbers])
        builder.add_action(Action(action, body=body))
        builder.add_control(CallAction(action))
