"""The queues of virtual network I/O as C: sizes and switches that a harness is compiled with."""

from __future__ import annotations

from p4perf.errors import CapabilityError
from p4perf.generators.rendering import render
from p4perf.programs.packets import FCS_BYTES
from p4perf.programs.virtual_io import VirtualIo

CONFIGURATION = "vio_config.h"

PACKET_HEADER_BYTES = 16
"""What the host writes in front of the body of a packet: its number and its length."""


def packet_bytes(frame_size_bytes: int) -> int:
    """Bytes of a packet in memory: a frame without its FCS."""
    return frame_size_bytes - FCS_BYTES


def configuration(queues: VirtualIo, frame_size_bytes: int) -> str:
    """The header :data:`CONFIGURATION`.

    Raises:
        CapabilityError: sizes that do not go together (the key is the parameter); a packet that is too large for a
            buffer, or a body smaller than what is done with it.
    """
    _check_sizes(queues)
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


def _check_sizes(q: VirtualIo) -> None:
    for name in ("rx_batch", "function_batch", "tx_batch", "queue"):
        size = getattr(q, name)
        if size & (size - 1):
            raise _refusal(f"{name}: {size} is no power of two", name)
        if size > q.queue:
            raise _refusal(f"a batch of {size} packets does not fit into a queue of {q.queue} entries", name)
    if q.stuck + q.rx_batch > q.queue:
        raise _refusal(
            f"batches of {q.rx_batch}, {q.function_batch} and {q.tx_batch} packets would wait for each other in queues "
            f"of {q.queue} entries",
            "queue",
        )
    if q.buffers < q.buffers_needed:
        raise _refusal(
            f"{q.buffers} buffers are fewer than the {q.buffers_needed} that are in queues, rings and batches at once",
            "buffers",
        )
    if q.descriptor_bytes == 4 and q.buffers > 1 << 16:
        raise _refusal(
            f"a descriptor of 4 B has 16 bits for the number of a buffer, not {q.buffers} buffers", "buffers"
        )


def _refusal(message: str, name: str) -> CapabilityError:
    return CapabilityError(f"vio: {message}", key=f"program.parameters.{name}")
