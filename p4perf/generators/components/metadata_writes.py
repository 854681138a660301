"""Actions: the number of metadata fields written."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field as Bounds

from p4perf.generators.base import Component, ComponentParameters
from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.components.layout import append_header, pattern
from p4perf.generators.program import (
    METADATA,
    Action,
    Assign,
    BinaryOp,
    CallAction,
    Const,
    Expression,
    Field,
    FieldRef,
    Header,
)

ADDEND = 0x9E3779B1
MASK = 0x5A5A5A5A
"""Constants of the chain, cut to the width of the fields. Neither operation can be expressed by the other one."""


class MetadataWrites(Component):
    """One action writes ``writes`` metadata fields, each once.

    Scaled: the assignments and the metadata. Held: a header with two fields. With ``operation`` ``chain`` the first
    metadata field is computed from a header field, each other one from the one before, alternately by adding and by
    exclusive or of a constant, and the last goes into the packet: the computations cannot be folded, but a compiler may
    keep the fields in a processor register instead of memory. ``set`` writes constants that nobody reads, as Scholz
    2021 has it: dead code, which an optimising compiler removes.
    """

    name = "metadata_writes"
    summary = "an action that writes a number of metadata fields"

    class Parameters(ComponentParameters):
        """Parameters of the writes."""

        writes: Annotated[int, Bounds(ge=0, le=1024, description="metadata fields written")]
        field_bits: Annotated[Literal[8, 16, 32, 64], Bounds(description="width of each field, in bits")] = 32
        operation: Annotated[Literal["chain", "set"], Bounds(description="each from the last, or constants")] = "chain"

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Add the header, the metadata, the action and its call."""
        bits = parameters.field_bits
        fields = (Field("seed", bits), Field("result", bits))
        header = Header(builder.unique("chained"), fields)
        append_header(builder, header, pattern(fields))
        last: Expression = FieldRef(header.name, "seed")
        body = []
        for n in range(parameters.writes):
            ref = FieldRef(METADATA, builder.unique("written"))
            builder.add_metadata(Field(ref.field, bits))
            if parameters.operation == "set":
                body.append(Assign(ref, Const(255)))
            else:
                constant = Const((MASK if n % 2 else ADDEND) & (1 << bits) - 1)
                body.append(Assign(ref, BinaryOp("^" if n % 2 else "+", last, constant)))
                last = ref
        action = builder.unique("write_metadata")
        builder.add_action(Action(action, body=(*body, Assign(FieldRef(header.name, "result"), last))))
        builder.add_control(CallAction(action))
