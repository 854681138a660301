"""Frames from a :class:`~p4perf.generators.program.PacketSpec`: what a load generator sends, byte by byte."""

from __future__ import annotations

from p4perf.errors import CapabilityError
from p4perf.generators.program import FieldRef, PacketSpec, Program

FCS_BYTES = 4
"""Frame check sequence, counted in the frame size of RFC 2544 and absent from memory."""


def field_offset_bits(program: Program, packets: PacketSpec, ref: FieldRef) -> int:
    """Offset of a field from the start of the frame, in bits.

    Raises:
        KeyError: the packets carry no such header, or the header has no such field.
    """
    offset = 0
    for carried in packets.headers:
        header = program.header(carried.header)
        if header.name == ref.header:
            return offset + header.offset_bits(ref.field)
        offset += header.width_bits
    raise KeyError(f"{ref.header}.{ref.field}")


def headers_size_bytes(program: Program, packets: PacketSpec) -> int:
    """Size of all headers that the packets carry, in bytes."""
    return sum(program.header(h.header).size_bytes for h in packets.headers)


def frame(program: Program, packets: PacketSpec, drawn: int = 0) -> bytes:
    """One frame without FCS; every varying field holds ``drawn`` above its free bits. The rest of the frame is zero.

    Raises:
        CapabilityError: the headers do not fit into the frame size.
    """
    size = packets.frame_size_bytes - FCS_BYTES
    needed = headers_size_bytes(program, packets)
    if needed > size:
        raise CapabilityError(
            f"the headers take {needed} B, but a frame of {packets.frame_size_bytes} B has room for {size} B "
            "without its FCS",
            key="traffic.frame_size",
            hint=f"use a frame size of at least {needed + FCS_BYTES} B",
        )
    free_bits = {v.field: v.free_bits for v in packets.varying}
    value = 0
    for carried in packets.headers:
        header = program.header(carried.header)
        values = dict(carried.values)
        for f in header.fields:
            number = values.get(f.name, 0)
            if (free := free_bits.get(FieldRef(header.name, f.name))) is not None:
                number = drawn << free | number & ((1 << free) - 1)
            value = (value << f.width_bits) | (number & ((1 << f.width_bits) - 1))
    return value.to_bytes(needed, "big") + bytes(size - needed)
