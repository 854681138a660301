"""Deparser: the number and the size of headers that an action adds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field as Bounds

from p4perf.generators.base import Component, ComponentParameters
from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.components.layout import data_fields, pattern
from p4perf.generators.program import Action, AddHeader, CallAction, Const, Header


class AddedHeaders(Component):
    """One action adds ``headers`` headers of ``header_bytes`` bytes each, every field of which it sets.

    Scaled: the headers that become valid and are emitted; the packet is sent with as many bytes more. Held: the
    packets that come in, the parser. The fields are constants, each byte another one; a compiler may merge neighbouring
    constants into wide stores.
    """

    name = "added_headers"
    summary = "an action that adds a number of headers"

    class Parameters(ComponentParameters):
        """Parameters of the headers."""

        headers: Annotated[int, Bounds(ge=0, le=256, description="headers added")]
        header_bytes: Annotated[int, Bounds(ge=1, le=256, description="size of each header, in bytes")] = 1

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Declare the headers, add the action and its call."""
        body = []
        for n in range(parameters.headers):
            header = Header(builder.unique("added"), data_fields(parameters.header_bytes))
            builder.declare_header(header)
            values = pattern(header.fields, first=1 + n * parameters.header_bytes)
            body.append(AddHeader(header.name, tuple((f, Const(v)) for f, v in values.items())))
        action = builder.unique("add_headers")
        builder.add_action(Action(action, body=tuple(body)))
        builder.add_control(CallAction(action))
