"""The queues of virtual network I/O as C: sizes and switches that a harness is compiled with."""

from __future__ import annotations

from p4perf.errors import CapabilityError
from p4perf.generators.packets import FCS_BYTES
from p4perf.generators.rendering import render
from p4perf.generators.virtual_io import VirtualIo

CONFIGURATION = "vio_config.h"

PACKET_HEADER_BYTES = 16
"""What the host writes in front of the body of a packet: its number and its length."""


def packet_bytes(frame_size_bytes: int) -> int:
    """Bytes of a packet in memory: a frame without its FCS."""
    return frame_size_bytes - FCS_BYTES


def configuration(queues: VirtualIo, frame_size_bytes: int) -> str:
    """The header :data:`CONFIGURATION`.

    Raises:
        CapabilityError: a packet is too large for a buffer, or its body smaller than what is done with it.
    """
    size = packet_bytes(frame_size_bytes)
    if size > queues.data_room_bytes:
        raise CapabilityError(
            f"a packet of {size} B does not fit into a data room of {queues.data_room_bytes} B",
            key="traffic.frame_size",
            hint="make data_room_bytes larger",
        )
    body = max(queues.body_read_bytes, queues.body_write_bytes)
    if body > size - PACKET_HEADER_BYTES:
        raise CapabilityError(
            f"{body} B of the body are more than a packet of {size} B has behind its number and its length "
            f"({PACKET_HEADER_BYTES} B)",
            key="traffic.frame_size",
        )
    # A queue of free buffers that goes around: a power of two.
    waiting = 1 << (queues.buffers - 1).bit_length()
    return render("c/vio_config.h.j2", io=queues, packet_bytes=size, waiting=waiting)
