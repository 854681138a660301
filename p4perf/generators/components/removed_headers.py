"""Deparser: the number and the size of headers that an action removes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field as Bounds

from p4perf.generators.base import Component, ComponentParameters
from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.components.layout import append_header, data_fields, pattern
from p4perf.generators.program import Action, CallAction, Header, RemoveHeader


class RemovedHeaders(Component):
    """The packets carry ``removed`` and ``kept`` headers, all of which are parsed; one action removes the first ones.

    Scaled: the headers that are removed; the packet is sent with as many bytes less. With ``kept`` at zero the parser
    grows as well, as published; sweep both so that their sum is constant to hold the parser. Each header is extracted
    by a state of its own; the states follow each other without a select, so a compiler may merge their length checks.
    """

    name = "removed_headers"
    summary = "an action that removes a number of parsed headers"

    class Parameters(ComponentParameters):
        """Parameters of the headers."""

        removed: Annotated[int, Bounds(ge=0, le=256, description="headers parsed and removed")]
        kept: Annotated[int, Bounds(ge=0, le=256, description="headers parsed after them and kept")] = 0
        header_bytes: Annotated[int, Bounds(ge=1, le=256, description="size of each header, in bytes")] = 1

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Append the headers, add the action and its call."""
        body = []
        for n in range(parameters.removed + parameters.kept):
            header = Header(
                builder.unique("removed" if n < parameters.removed else "kept"), data_fields(parameters.header_bytes)
            )
            append_header(builder, header, pattern(header.fields, first=1 + n * parameters.header_bytes))
            if n < parameters.removed:
                body.append(RemoveHeader(header.name))
        action = builder.unique("remove_headers")
        builder.add_action(Action(action, body=tuple(body)))
        builder.add_control(CallAction(action))
