"""The baseline, and what components share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.programs import ir
from p4perf.programs.builder import ProgramBuilder
from p4perf.programs.component import Component, ComponentParameters

ETHERTYPE_EXPERIMENTAL = 0x88B5
"""IEEE 802 local experimental EtherType 1: announces the headers of a component."""

ETHERNET = ir.Header("ethernet", (ir.Field("dst", 48), ir.Field("src", 48), ir.Field("ether_type", 16)))

ETHERNET_VALUES = {"dst": 0x020000000002, "src": 0x020000000001, "ether_type": ETHERTYPE_EXPERIMENTAL}
"""Locally administered addresses; they never change."""


class L2Forward(Component):
    """Extract the Ethernet header, send the packet out of port 1, deparse. Every cost is a difference to this."""

    name = "l2fwd"
    summary = "the baseline: extract Ethernet, set a constant output port"

    @override
    def extend(self, builder: ProgramBuilder, parameters: ComponentParameters) -> None:
        if ETHERNET in builder.headers:
            return
        builder.add_header(ETHERNET, ETHERNET_VALUES)
        builder.call("forward", [ir.SetEgress(ir.Const(1))])


LARGEST_FIELD_BITS = 64
"""Widest field that any dialect calculates with."""

INDEX_BITS = 32
"""Width of fields that hold an index of a counter, meter or register."""


def append_header(
    builder: ProgramBuilder,
    stem: str,
    fields: Sequence[ir.Field],
    values: Mapping[str, int] | None = None,
    select: tuple[str, int] | None = None,
) -> ir.Header:
    """Let a header, named after ``stem``, follow the last one; after Ethernet the EtherType announces it."""
    header = ir.Header(builder.unique(stem), tuple(fields))
    after_ethernet = builder.last_header.name == ETHERNET.name
    builder.add_header(header, values, select=("ether_type", ETHERTYPE_EXPERIMENTAL) if after_ethernet else select)
    return header


def data_fields(size_bytes: int) -> tuple[ir.Field, ...]:
    """Fields ``data_0``, ``data_1``, ... of 64 bit, the last as wide as needed, of a total size."""
    bits = size_bytes * 8
    widths = (min(LARGEST_FIELD_BITS, bits - at) for at in range(0, bits, LARGEST_FIELD_BITS))
    return tuple(ir.Field(f"data_{n}", width) for n, width in enumerate(widths))


def pattern(fields: Sequence[ir.Field], first: int = 1) -> dict[str, int]:
    """Values for fields of whole bytes: their bytes count up from ``first``, so that a byte out of place shows."""
    values, at = {}, first
    for field in fields:
        size = field.width_bits // 8
        values[field.name] = int.from_bytes(bytes((at + n) % 256 for n in range(size)), "big")
        at += size
    return values


def append_indexed_header(builder: ProgramBuilder, name: str, others: Sequence[ir.Field], size: int) -> ir.FieldRef:
    """Append a header whose first field runs over the cells of an array of that size; the others follow a pattern."""
    if size & (size - 1):
        below = 1 << (size.bit_length() - 1)
        raise CapabilityError(
            f"an array of {size} cells is not possible: indices are taken modulo a power of two",
            key="program.parameters.size",
            hint=f"use {below} or {2 * below}",
        )
    header = append_header(builder, name, (ir.Field("index", INDEX_BITS), *others), pattern(others))
    index = ir.FieldRef(header.name, "index")
    builder.vary(index, size)
    return index
