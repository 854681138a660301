"""Virtual network I/O: queues in shared memory between a host and a network function, as data.

The host fills queue RX with packets for the function and empties queue TX of those that come back. The structure and
the numbers of the base are those of EIVU, the evaluation items of which the six factors a to f are combinations
(Takeya 2024; https://github.com/sdnnitech/EIVUv1): descriptors in the style of a packed virtqueue, one pool of buffers
in shared memory, a virtio header before and a buffer header in front of each packet, copies into and out of the
buffers of the function.

A buffer is ``header | headroom | data room``, all of them whole cache lines. The virtio header is the end of the
headroom, so that it has a line of its own in front of the packet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LINE_BYTES = 64

Copy = Literal["plain", "none", "simd", "stream"]
"""How a packet gets from one buffer to another: by ``memcpy``, not at all (zero-copy), by loads and stores of 256 bit,
or by stores of 256 bit that go around the caches."""

Access = Literal["full", "read", "write"]
"""What a process does with a buffer header: all of it is written (the host reads two words before), or its first 4 B
are read, or written."""

Hint = Literal["none", "prefetch", "demote", "flush"]
"""Instruction for the line of a packet: ``prefetcht0`` before the copy, ``cldemote`` or ``clflushopt`` after it."""

Order = Literal["lifo", "fifo"]
"""In which order a cache of free buffers gives them back."""


@dataclass(frozen=True, slots=True)
class VirtualIo:
    """The queues, their buffers, and what is done with a packet. Sizes in bytes, lengths in entries.

    ``rx_*`` is the host filling queue RX, ``function_*`` the network function, ``tx_*`` the host emptying queue TX.
    """

    virtio_header_bytes: int
    descriptor_bytes: int
    header_bytes: int
    headroom_bytes: int
    data_room_bytes: int
    rx_copy: Copy
    tx_copy: Copy
    rx_batch: int
    function_batch: int
    tx_batch: int
    queue: int
    buffers: int
    host_cache: int
    function_cache: int
    host_cache_order: Order
    function_cache_order: Order
    rx_ring: int
    tx_ring: int
    rx_shuffled: bool
    function_shuffled: bool
    tx_shuffled: bool
    body_read_bytes: int
    body_write_bytes: int
    rx_header_access: Access
    function_header_access: Access
    tx_header_access: Access
    rx_hint: Hint
    tx_hint: Hint

    @property
    def header_room_bytes(self) -> int:
        """Room of the buffer header: whole lines."""
        return lines(self.header_bytes)

    @property
    def data_offset_bytes(self) -> int:
        """Where the packet begins in its buffer; the virtio header, if there is one, ends there."""
        return self.header_room_bytes + max(self.headroom_bytes, lines(self.virtio_header_bytes))

    @property
    def stride_bytes(self) -> int:
        """Distance from one buffer to the next."""
        return self.data_offset_bytes + self.data_room_bytes

    @property
    def lag(self) -> int:
        """Batches that the function has in queue TX at most: as many as the host waits for, one at least."""
        return max(1, self.tx_batch // self.function_batch)

    @property
    def shared_bytes(self) -> int:
        """Memory that both processes use: the pool of the function and the two queues."""
        return self.buffers * self.stride_bytes + 2 * self.queue * self.descriptor_bytes

    @property
    def private_bytes(self) -> int:
        """Memory of the two pools of the host, and of the lists of free buffers of all three pools."""
        return 2 * self.buffers * self.stride_bytes + 3 * 4 * 2 * self.buffers

    @property
    def buffers_needed(self) -> int:
        """Buffers that a pool needs so that it never runs out of them: those on their way and those in its cache."""
        function = self.queue + (self.lag + 1) * self.function_batch
        host = max(self.rx_ring + self.rx_batch, self.tx_ring + self.tx_batch)
        return max(function, host)

    @property
    def stuck(self) -> int:
        """Packets that wait in both queues at most, because they are no whole batch for who takes them."""
        return max(self.function_batch - self.rx_batch, 0) + max(self.tx_batch - self.function_batch, 0)


def lines(size_bytes: int) -> int:
    """That size, rounded up to whole cache lines."""
    return -(-size_bytes // LINE_BYTES) * LINE_BYTES
