"""Externs: the checksum of a header, verified or updated."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field as Bounds

from p4perf.errors import CapabilityError
from p4perf.generators.base import Component, ComponentParameters
from p4perf.generators.builder import ProgramBuilder
from p4perf.generators.components.layout import append_header, data_fields, pattern
from p4perf.generators.hashes import internet_checksum
from p4perf.generators.program import Field, FieldRef, Header, HeaderChecksum

CHECKSUM_BITS = 16

WRONG = 0xDEAD
"""What the field of a packet holds whose checksum is to be updated."""


class Checksum(Component):
    """The internet checksum over the ``size_bytes`` bytes of one header, which hold the checksum itself.

    Scaled: the bytes. Held: one header, the control flow. ``verify`` drops packets whose checksum is wrong; those that
    are sent have a right one, except for those that miss, whose last bytes are others. ``update`` writes the checksum
    of the packet before it is sent; the packets come with a wrong one. Either way the outcome depends on the sum.
    """

    name = "checksum"
    summary = "the checksum of a header, verified or updated"

    class Parameters(ComponentParameters):
        """Parameters of the checksum."""

        operation: Annotated[Literal["verify", "update"], Bounds(description="what is done with the checksum")] = (
            "verify"
        )
        size_bytes: Annotated[
            int, Bounds(ge=4, le=1480, multiple_of=4, description="size of the header, the checksum included, in bytes")
        ]
        hit_ratio: Annotated[float, Bounds(ge=0, le=1, description="share of packets whose checksum is right")] = 1.0

    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Add the header and its checksum."""
        if parameters.operation == "update" and parameters.hit_ratio < 1:
            raise CapabilityError(
                "an update does not ask whether the checksum was right",
                key="program.parameters.hit_ratio",
                hint="leave hit_ratio out, or set operation to verify",
            )
        data = data_fields(parameters.size_bytes - CHECKSUM_BITS // 8)
        name = builder.unique("summed")
        header = Header(name, (Field("sum", CHECKSUM_BITS), *data))
        checksum = HeaderChecksum(name, "sum")
        values = pattern(data)
        if parameters.operation == "update":
            append_header(builder, header, values | {"sum": WRONG})
            builder.update(checksum)
            return
        values[data[-1].name] = 0
        content = b"".join(values[f.name].to_bytes(f.width_bits // 8, "big") for f in data)
        append_header(builder, header, values | {"sum": internet_checksum(content)})
        builder.verify(checksum)
        builder.vary(FieldRef(name, data[-1].name), 1)
