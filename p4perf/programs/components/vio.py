"""Virtual network I/O: queues in shared memory between a host and a network function."""

from __future__ import annotations

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.programs.builder import ProgramBuilder
from p4perf.programs.component import Component
from p4perf.programs.virtual_io import VirtualIo

_BATCHES = ("rx_batch", "function_batch", "tx_batch")


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

    Parameters = VirtualIo

    @override
    def extend(self, builder: ProgramBuilder, parameters: VirtualIo) -> None:
        """Put the queues around the baseline. Whether their sizes go together is seen when they are generated."""
        if builder.virtual_io is not None:
            raise CapabilityError("a program has one host, with one pair of queues", key="program.component")
        batches = {name: getattr(parameters, name) or parameters.batch for name in _BATCHES}
        builder.virtual_io = parameters.model_copy(update=batches)
