"""Parser: the number of parsed headers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field as Bounds

from p4perf.generators.base import Component, ComponentParameters
from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.components.l2fwd import ETHERNET, ETHERTYPE_EXPERIMENTAL
from p4perf.generators.program import Field, Header

NEXT_BITS = 8
"""Width of the field that announces the following header."""


class ParserHeaders(Component):
    """``headers`` headers of ``header_bits`` bits after Ethernet, one parser state each.

    Scaled: the number of states, extractions and emissions. Held: the frame, the control flow. Each header starts
    with an 8-bit field on which the parser selects the next state, so that no compiler can merge the states.
    """

    name = "parser_headers"
    summary = "a chain of parsed headers, one parser state and one select each"

    class Parameters(ComponentParameters):
        """Parameters of the header chain."""

        headers: Annotated[int, Bounds(ge=0, le=64, description="headers parsed after Ethernet")]
        header_bits: Annotated[int, Bounds(ge=16, le=1024, multiple_of=8, description="width of each, in bits")] = 32

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Append the chain to the parser."""
        follows_ethernet = builder.last_header.name == ETHERNET.name
        width = parameters.header_bits - NEXT_BITS
        for n in range(parameters.headers):
            fields = [Field("next", NEXT_BITS)]
            fields += [Field(f"data_{k}", min(64, width - 64 * k)) for k in range((width + 63) // 64)]
            builder.add_header(
                Header(builder.unique(f"chain_{n}"), tuple(fields)),
                {"next": 0, "data_0": n},
                select=_announcing(n, follows_ethernet=follows_ethernet),
                select_value=1 if n else ETHERTYPE_EXPERIMENTAL,
            )


def _announcing(n: int, *, follows_ethernet: bool) -> str | None:
    """The field of the header before that announces header ``n`` of the chain."""
    if n:
        return "next"
    return "ether_type" if follows_ethernet else None
