"""Frames from a :class:`~p4perf.programs.ir.PacketSpec`: what a load generator sends, byte by byte."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from p4perf.errors import CapabilityError, SpecError
from p4perf.programs.ir import FieldRef, PacketSpec, Program

FCS_BYTES = 4
"""Frame check sequence, counted in the frame size of RFC 2544 and absent from memory."""


def field_offset_bits(program: Program, packets: PacketSpec, ref: FieldRef) -> int:
    offset = 0
    for carried in packets.headers:
        header = program.header(carried.header)
        if header.name == ref.header:
            return offset + header.offset_bits(ref.field)
        offset += header.width_bits
    raise KeyError(f"{ref.header}.{ref.field}")


def headers_size_bytes(program: Program, packets: PacketSpec) -> int:
    return sum(program.header(h.header).size_bytes for h in packets.headers)


def check_frame_size(program: Program, packets: PacketSpec) -> None:
    """Check that a frame has room for all headers that the packets carry."""
    size = packets.frame_size_bytes - (0 if packets.keeps_fcs else FCS_BYTES)
    needed = headers_size_bytes(program, packets)
    if needed > size:
        raise CapabilityError(
            f"the headers take {needed} B, but a frame of {packets.frame_size_bytes} B has room for {size} B"
            f"{'' if packets.keeps_fcs else ' without its FCS'}",
            key="traffic.frame_size",
            hint=f"use a frame size of at least {needed + FCS_BYTES} B",
        )


def frame(program: Program, packets: PacketSpec, drawn: int = 0) -> bytes:
    """One frame without FCS, or with its place; every varying field holds ``drawn`` above its free bits.

    Raises:
        CapabilityError: the headers do not fit into the frame size.
    """
    check_frame_size(program, packets)
    size = packets.frame_size_bytes - (0 if packets.keeps_fcs else FCS_BYTES)
    needed = headers_size_bytes(program, packets)
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
    filling = packets.payload * -(-(size - needed) // len(packets.payload))
    return value.to_bytes(needed, "big") + filling[: size - needed]


def with_contents(program: Program, packets: PacketSpec, fields: Mapping[str, int], payload: bytes) -> PacketSpec:
    """The same packets with other contents.

    Args:
        fields: constant values of header fields, by names such as ``ethernet.src``.
        payload: at least one byte, repeated behind the headers.

    Raises:
        SpecError: the packets have no such field, the value is too large for it, or it varies from packet to packet.
    """
    given: dict[str, dict[str, int]] = {}
    for name, value in fields.items():
        header, _, field = name.partition(".")
        width_bits = _width_bits(program, packets, header, field)
        if value >> width_bits:
            raise SpecError(f"{value} does not fit into the {width_bits} bits of {name}", key=f"traffic.fields.{name}")
        if any(v.field == FieldRef(header, field) for v in packets.varying):
            raise SpecError(f"{name} varies from packet to packet", key=f"traffic.fields.{name}")
        given.setdefault(header, {})[field] = value
    headers = tuple(
        replace(h, values=tuple({**dict(h.values), **given.get(h.header, {})}.items())) for h in packets.headers
    )
    return replace(packets, headers=headers, payload=payload)


def _width_bits(program: Program, packets: PacketSpec, header: str, field: str) -> int:
    known = {h.header: {f.name: f.width_bits for f in program.header(h.header).fields} for h in packets.headers}
    if field not in known.get(header, {}):
        names = [f"{h}.{f}" for h, fields in known.items() for f in fields][:12]
        raise SpecError(
            f"the packets have no field {header}.{field}",
            key=f"traffic.fields.{header}.{field}",
            hint=f"they have {', '.join(names)}",
        )
    return known[header][field]
