"""Virtual network I/O: queues in shared memory between a host and a network function."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field as Bounds
from typing_extensions import override

from p4perf.programs.builder import ProgramBuilder
from p4perf.programs.component import Component, ComponentParameters
from p4perf.programs.virtual_io import Access, Copy, Hint, Order, VirtualIo

MAX_BATCH = 4096
MAX_QUEUE = 32768
MAX_BUFFERS = 1 << 18
MAX_CACHE = 65536

_BATCHES = ("rx_batch", "function_batch", "tx_batch")

_Batch = Annotated[int, Bounds(ge=0, le=MAX_BATCH)]
_Cache = Annotated[int, Bounds(ge=0, le=MAX_CACHE)]
_Ring = Annotated[int, Bounds(ge=1, le=MAX_CACHE)]
_Body = Annotated[int, Bounds(ge=0, le=1024, multiple_of=4)]


class VirtualIoQueues(Component):
    """The host hands packets to a network function and takes them back, through two queues in shared memory.

    Scaled: any size of queues, buffers and batches. Held: all the others, at the base of EIVU (Takeya 2024).
    Its six factors are

    * a ``virtio_header_bytes: 0``
    * b ``descriptor_bytes: 4``
    * c ``header_bytes: 0``
    * d ``headroom_bytes: 0``, ``data_room_bytes: 64``
    * e ``rx_copy: none``, ``tx_copy: none``
    * f ``batch: 1024``, ``queue: 2048``, ``host_cache: 1024``, ``function_cache: 1024``, ``rx_ring: 1024``,
      ``tx_ring: 1024``

    The function forwards packets unread. Pools are smaller here, 16,384 buffers where EIVU has 163,456: which of them
    are used is decided by the caches in front of the pools.
    """

    name = "vio"
    summary = "virtual network I/O: queues in shared memory between a host and a network function"

    class Parameters(ComponentParameters):
        virtio_header_bytes: int = Bounds(12, ge=0, le=64, multiple_of=4, description="virtio-net header")
        descriptor_bytes: Literal[4, 8, 16, 32, 64] = Bounds(16, description="entry of a queue")
        header_bytes: Literal[0, 32, 64, 128, 256, 512, 1024] = Bounds(
            128, description="buffer header, written by every process"
        )
        headroom_bytes: int = Bounds(128, ge=0, le=4096, multiple_of=64, description="between buffer header and packet")
        data_room_bytes: int = Bounds(
            2048, ge=64, le=16384, multiple_of=64, description="room for a packet in a buffer"
        )
        rx_copy: Copy = Bounds("plain", description="of packets into the buffers of the function")
        tx_copy: Copy = Bounds("plain", description="of packets out of the buffers of the function")
        batch: int = Bounds(32, ge=1, le=MAX_BATCH, description="packets handled at once, a power of two")
        rx_batch: _Batch = Bounds(0, description="of the host that fills queue RX; 0: as batch")
        function_batch: _Batch = Bounds(0, description="of the network function; 0: as batch")
        tx_batch: _Batch = Bounds(0, description="of the host that empties queue TX; 0: as batch")
        queue: int = Bounds(256, ge=2, le=MAX_QUEUE, description="entries of a queue, a power of two")
        buffers: int = Bounds(16384, ge=64, le=MAX_BUFFERS, description="buffers of each of the three pools")
        host_cache: _Cache = Bounds(512, description="free buffers in front of each pool of the host")
        function_cache: _Cache = Bounds(512, description="free buffers in front of the pool of the function")
        host_cache_order: Order = Bounds("lifo", description="which free buffer is taken first")
        function_cache_order: Order = Bounds("lifo", description="which free buffer is taken first")
        rx_ring: _Ring = Bounds(128, description="ring of a network card that packets come from, a dummy")
        tx_ring: _Ring = Bounds(128, description="ring of a network card that packets go to, a dummy")
        rx_shuffled: bool = Bounds(False, description="buffers of that pool are scattered in memory")
        function_shuffled: bool = Bounds(False, description="buffers of that pool are scattered in memory")
        tx_shuffled: bool = Bounds(False, description="buffers of that pool are scattered in memory")
        body_read_bytes: _Body = Bounds(0, description="of a packet that the function reads")
        body_write_bytes: _Body = Bounds(0, description="of a packet that the function writes")
        rx_header_access: Access = Bounds("full", description="to the buffer header")
        function_header_access: Access = Bounds("full", description="to the buffer header")
        tx_header_access: Access = Bounds("full", description="to the buffer header")
        rx_hint: Hint = Bounds("none", description="to the caches, for the line of the packet")
        tx_hint: Hint = Bounds("none", description="to the caches, for the line of the packet")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Put the queues around the baseline. Whether their sizes go together is seen when they are generated."""
        sizes: dict[str, Any] = parameters.model_dump(exclude={"batch"})
        sizes |= {name: sizes[name] or parameters.batch for name in _BATCHES}
        builder.surround(VirtualIo(**sizes))
