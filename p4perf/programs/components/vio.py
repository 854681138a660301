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
        virtio_header_bytes: Annotated[int, Bounds(ge=0, le=64, multiple_of=4, description="virtio-net header")] = 12
        descriptor_bytes: Annotated[Literal[4, 8, 16, 32, 64], Bounds(description="entry of a queue")] = 16
        header_bytes: Annotated[
            Literal[0, 32, 64, 128, 256, 512, 1024], Bounds(description="buffer header, written by every process")
        ] = 128
        headroom_bytes: Annotated[
            int, Bounds(ge=0, le=4096, multiple_of=64, description="between buffer header and packet")
        ] = 128
        data_room_bytes: Annotated[
            int, Bounds(ge=64, le=16384, multiple_of=64, description="room for a packet in a buffer")
        ] = 2048
        rx_copy: Annotated[Copy, Bounds(description="of packets into the buffers of the function")] = "plain"
        tx_copy: Annotated[Copy, Bounds(description="of packets out of the buffers of the function")] = "plain"
        batch: Annotated[int, Bounds(ge=1, le=MAX_BATCH, description="packets handled at once, a power of two")] = 32
        rx_batch: Annotated[_Batch, Bounds(description="of the host that fills queue RX; 0: as batch")] = 0
        function_batch: Annotated[_Batch, Bounds(description="of the network function; 0: as batch")] = 0
        tx_batch: Annotated[_Batch, Bounds(description="of the host that empties queue TX; 0: as batch")] = 0
        queue: Annotated[int, Bounds(ge=2, le=MAX_QUEUE, description="entries of a queue, a power of two")] = 256
        buffers: Annotated[int, Bounds(ge=64, le=MAX_BUFFERS, description="buffers of each of the three pools")] = 16384
        host_cache: Annotated[_Cache, Bounds(description="free buffers in front of each pool of the host")] = 512
        function_cache: Annotated[_Cache, Bounds(description="free buffers in front of the pool of the function")] = 512
        host_cache_order: Annotated[Order, Bounds(description="which free buffer is taken first")] = "lifo"
        function_cache_order: Annotated[Order, Bounds(description="which free buffer is taken first")] = "lifo"
        rx_ring: Annotated[_Ring, Bounds(description="ring of a network card that packets come from, a dummy")] = 128
        tx_ring: Annotated[_Ring, Bounds(description="ring of a network card that packets go to, a dummy")] = 128
        rx_shuffled: Annotated[bool, Bounds(description="buffers of that pool are scattered in memory")] = False
        function_shuffled: Annotated[bool, Bounds(description="buffers of that pool are scattered in memory")] = False
        tx_shuffled: Annotated[bool, Bounds(description="buffers of that pool are scattered in memory")] = False
        body_read_bytes: Annotated[_Body, Bounds(description="of a packet that the function reads")] = 0
        body_write_bytes: Annotated[_Body, Bounds(description="of a packet that the function writes")] = 0
        rx_header_access: Annotated[Access, Bounds(description="to the buffer header")] = "full"
        function_header_access: Annotated[Access, Bounds(description="to the buffer header")] = "full"
        tx_header_access: Annotated[Access, Bounds(description="to the buffer header")] = "full"
        rx_hint: Annotated[Hint, Bounds(description="to the caches, for the line of the packet")] = "none"
        tx_hint: Annotated[Hint, Bounds(description="to the caches, for the line of the packet")] = "none"

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        """Put the queues around the baseline. Whether their sizes go together is seen when they are generated."""
        sizes: dict[str, Any] = parameters.model_dump(exclude={"batch"})
        sizes |= {name: sizes[name] or parameters.batch for name in _BATCHES}
        builder.surround(VirtualIo(**sizes))
