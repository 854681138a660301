"""Actions: the number of header fields written."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field as Bounds

from p4perf.errors import CapabilityError
from p4perf.generators.base import Component, ComponentParameters
from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.components.layout import append_header
from p4perf.generators.program import Action, Assign, BinaryOp, CallAction, Const, Expression, Field, FieldRef, Header


class HeaderFieldWrites(Component):
    """``writes`` of the ``fields`` fields of one header are written by one action.

    Scaled: the number of assignments. Held: the header, which is parsed and deparsed whole at every point.
    ``operation`` is ``set`` (a constant, 255 as in Scholz 2021; a compiler may merge neighbouring constants into one
    store, and which constant it is may decide about the instructions that it takes) or ``increment`` (read, add one,
    write: what a program does with a counter or a time to live).
    """

    name = "header_field_writes"
    summary = "an action that writes a number of header fields"

    class Parameters(ComponentParameters):
        """Parameters of the writes."""

        writes: Annotated[int, Bounds(ge=0, le=470, description="fields written")]
        fields: Annotated[int, Bounds(ge=1, le=470, description="fields of the header")] = 16
        field_bits: Annotated[Literal[8, 16, 32, 64], Bounds(description="width of each field, in bits")] = 32
        operation: Annotated[Literal["set", "increment"], Bounds(description="constants, or each field plus one")] = (
            "increment"
        )
        constant: Annotated[int, Bounds(ge=0, le=255, description="what `set` writes")] = 255

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Add the header, the action and its call."""
        if parameters.writes > parameters.fields:
            raise CapabilityError(
                f"{parameters.writes} writes need as many fields, but the header has {parameters.fields}",
                key="program.parameters.writes",
            )
        header = builder.unique("written")
        fields = tuple(Field(f"f{n}", parameters.field_bits) for n in range(parameters.fields))
        append_header(builder, Header(header, fields), {f.name: n for n, f in enumerate(fields)})
        body = []
        for n in range(parameters.writes):
            ref = FieldRef(header, f"f{n}")
            value: Expression = (
                Const(parameters.constant) if parameters.operation == "set" else BinaryOp("+", ref, Const(1))
            )
            body.append(Assign(ref, value))
        action = builder.unique("write_fields")
        builder.add_action(Action(action, body=tuple(body)))
        builder.add_control(CallAction(action))
