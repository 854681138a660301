"""Parser: the number of fields of one header."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field as Bounds

from p4perf.generators.base import Component, ComponentParameters
from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.components.layout import append_header, pattern
from p4perf.generators.program import Field, Header


class ParsedFields(Component):
    """One header of ``fields`` fields of ``field_bits`` bits, extracted by one state and emitted again.

    Scaled: the fields, and with them the bytes of the header. Held: one parser state, the frame, the control flow. No
    action touches a field, so a compiler that sees that may leave the header where it is in the packet; the cost is
    then that of one length check.
    """

    name = "parsed_fields"
    summary = "one header with a number of fields that is parsed and deparsed"

    class Parameters(ComponentParameters):
        """Parameters of the header."""

        fields: Annotated[int, Bounds(ge=0, le=1400, description="fields of the header; without any it is left out")]
        field_bits: Annotated[Literal[8, 16, 32, 48, 64], Bounds(description="width of each field, in bits")] = 8

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Add the header."""
        if parameters.fields:
            fields = tuple(Field(f"f{n}", parameters.field_bits) for n in range(parameters.fields))
            append_header(builder, Header(builder.unique("parsed"), fields), pattern(fields))
