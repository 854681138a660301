"""The packets of an experiment, whatever program they go through."""

from __future__ import annotations

from dataclasses import dataclass

from p4perf.generators.statements import FieldRef


@dataclass(frozen=True, slots=True)
class HeaderValues:
    """The values that the fields of one header carry in the generated packets; what is not named is zero."""

    header: str
    values: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class VaryingField:
    """A header field that changes from packet to packet.

    It holds the integer ``i`` drawn for the packet, ``free_bits`` bits to the left: ``0 .. count-1`` hit the entries of
    a table, ``count .. 2*count-1`` miss them. The lowest ``free_bits`` bits (whole bytes) are those of the header's
    values.
    """

    field: FieldRef
    count: int
    free_bits: int = 0


@dataclass(frozen=True, slots=True)
class PacketSpec:
    """The packets of an experiment: headers in wire order, fields that vary, and the frame size.

    ``frame_size_bytes`` counts the FCS (RFC 2544); the bytes in memory are four fewer, unless ``keeps_fcs``: then the
    place of the FCS is a part of the packet, as on ports that keep it. ``payload`` is repeated behind the headers.
    """

    headers: tuple[HeaderValues, ...]
    varying: tuple[VaryingField, ...]
    frame_size_bytes: int
    payload: bytes = b"\0"
    keeps_fcs: bool = False
