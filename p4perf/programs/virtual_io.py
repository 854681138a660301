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

from typing import Annotated, Literal

from pydantic import Field as Bounds

from p4perf.programs.component_parameters import ComponentParameters

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


MAX_BATCH = 4096
MAX_QUEUE = 32768
MAX_BUFFERS = 1 << 18
MAX_CACHE = 65536

_Batch = Annotated[int, Bounds(ge=0, le=MAX_BATCH)]
_Cache = Annotated[int, Bounds(ge=0, le=MAX_CACHE)]
_Ring = Annotated[int, Bounds(ge=1, le=MAX_CACHE)]
_Body = Annotated[int, Bounds(ge=0, le=1024, multiple_of=4)]


class VirtualIo(ComponentParameters):
    """The queues, their buffers, and what is done with a packet. Sizes in bytes, lengths in entries.

    ``rx_*`` is the host filling queue RX, ``function_*`` the network function, ``tx_*`` the host emptying queue TX.
    """

    virtio_header_bytes: int = Bounds(12, ge=0, le=64, multiple_of=4, description="virtio-net header")
    descriptor_bytes: Literal[4, 8, 16, 32, 64] = Bounds(16, description="entry of a queue")
    header_bytes: Literal[0, 32, 64, 128, 256, 512, 1024] = Bounds(
        128, description="buffer header, written by every process"
    )
    headroom_bytes: int = Bounds(128, ge=0, le=4096, multiple_of=64, description="between buffer header and packet")
    data_room_bytes: int = Bounds(2048, ge=64, le=16384, multiple_of=64, description="room for a packet in a buffer")
    rx_copy: Copy = Bounds("plain", description="copy of packets into the buffers of the function")
    tx_copy: Copy = Bounds("plain", description="copy of packets out of the buffers of the function")
    batch: int = Bounds(32, ge=1, le=MAX_BATCH, description="packets handled at once, a power of two")
    rx_batch: _Batch = Bounds(0, description="batch of the host that fills queue RX; 0: as batch")
    function_batch: _Batch = Bounds(0, description="batch of the network function; 0: as batch")
    tx_batch: _Batch = Bounds(0, description="batch of the host that empties queue TX; 0: as batch")
    queue: int = Bounds(256, ge=2, le=MAX_QUEUE, description="entries of a queue, a power of two")
    buffers: int = Bounds(16384, ge=64, le=MAX_BUFFERS, description="buffers of each of the three pools")
    host_cache: _Cache = Bounds(512, description="free buffers cached in front of each pool of the host")
    function_cache: _Cache = Bounds(512, description="free buffers cached in front of the pool of the function")
    host_cache_order: Order = Bounds("lifo", description="which free buffer is taken first")
    function_cache_order: Order = Bounds("lifo", description="which free buffer is taken first")
    rx_ring: _Ring = Bounds(128, description="dummy ring of a network card, from which packets come")
    tx_ring: _Ring = Bounds(128, description="dummy ring of a network card, to which packets go")
    rx_shuffled: bool = Bounds(False, description="scatter the buffers of that pool in memory")
    function_shuffled: bool = Bounds(False, description="scatter the buffers of that pool in memory")
    tx_shuffled: bool = Bounds(False, description="scatter the buffers of that pool in memory")
    body_read_bytes: _Body = Bounds(0, description="bytes of a packet that the function reads")
    body_write_bytes: _Body = Bounds(0, description="bytes of a packet that the function writes")
    rx_header_access: Access = Bounds("full", description="access to the buffer header")
    function_header_access: Access = Bounds("full", description="access to the buffer header")
    tx_header_access: Access = Bounds("full", description="access to the buffer header")
    rx_hint: Hint = Bounds("none", description="cache hint for the line of the packet")
    tx_hint: Hint = Bounds("none", description="cache hint for the line of the packet")

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
