"""Parser: the number of cases of a select, and of such selects one after another."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field as Bounds

from p4perf.errors import CapabilityError
from p4perf.generators.base import Component, ComponentParameters
from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.components.layout import append_header, data_fields, pattern
from p4perf.generators.program import Field, FieldRef, Header

TAG_BITS = 16
"""Width of the field that a state selects on."""

MAX_HEADERS = 1024
"""Most headers of all branches together."""


class ParserBranches(Component):
    """``depth`` selects of ``branches`` cases each; every case leads to a state that extracts a header of its own.

    Scaled: cases, selects, and with both the headers that the deparser has to ask for. Held: the bytes of the packets
    over ``branches``, the control flow. The packets take the last case of every select but the last one, where
    they choose among all cases evenly: that branch cannot be predicted. The other cases of the selects before end the
    parser. The bytes of a packet are the same whichever branch it takes, so a compiler that leaves unchanged headers
    where they are might merge the branches of the last select.
    """

    name = "parser_branches"
    summary = "parser states that select among a number of headers"

    class Parameters(ComponentParameters):
        """Parameters of the selects."""

        branches: Annotated[int, Bounds(ge=1, le=256, description="cases of each select")]
        depth: Annotated[int, Bounds(ge=0, le=64, description="selects one after another")] = 1
        header_bits: Annotated[
            int, Bounds(ge=16, le=1024, multiple_of=8, description="width of the header of each case, in bits")
        ] = 32

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Add a header with the first tag, then one fork after the other."""
        branches, depth = parameters.branches, parameters.depth
        if branches * depth > MAX_HEADERS:
            raise CapabilityError(
                f"{depth} selects of {branches} cases lead to {branches * depth} headers, more than {MAX_HEADERS}",
                key="program.parameters.depth",
                hint="use fewer selects or cases",
            )
        if not depth:
            return
        tag = Field("tag", TAG_BITS)
        append_header(builder, Header(builder.unique("selector"), (tag,)))
        rest = data_fields((parameters.header_bits - TAG_BITS) // 8)
        for level in range(depth):
            select = FieldRef(builder.last_header.name, tag.name)
            cases = [(case, Header(f"branch_{level}_{case}", (tag, *rest))) for case in range(branches)]
            builder.add_branches(tag.name, cases, pattern(rest, first=level), continued=level < depth - 1)
        builder.vary(select, branches)
