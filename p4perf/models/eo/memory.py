"""How many accesses a second the memory serves: what bounds a function that misses the caches often.

The time of one access is the textbook one that Baldi 2018 uses, ``(2 CAS + n - 1) / data rate`` for ``n`` transfers:
the CAS latency counts cycles of the memory clock, of which each has two transfers. Its "+ 3" is the fourth transfer, 32
bytes on a bus of eight. Two bounds follow: accesses in flight (Little's law), and transfers on the channels. The
numbers that the paper prints for memory follow from no grade of memory; see the page on elementary operations.
"""

from __future__ import annotations

import math

from p4perf.errors import UsageError
from p4perf.models.eo.hardware import Memory


def transfers(memory: Memory) -> int:
    """Transfers of one access."""
    return math.ceil(memory.access_bytes / memory.bus_bytes)


def access_time_s(memory: Memory) -> float:
    """Time from an access to its last byte, in seconds.

    Raises:
        UsageError: CAS latency or data rate are not known.
    """
    if memory.cas_cycles is None or memory.data_rate_mts is None:
        what = "CAS latency" if memory.cas_cycles is None else "data rate"
        raise UsageError(f"the {what} of the memory is not known", hint="give cas_cycles and data_rate_mts of memory")
    return (2 * memory.cas_cycles + transfers(memory) - 1) / (memory.data_rate_mts * 1e6)


def accesses_per_s(memory: Memory, cores: int = 1, sockets: int = 1) -> float:
    """Accesses a second that so many cores on so many sockets get.

    The lower of what their outstanding misses allow and what the channels carry. Where accesses of one core were
    measured, these take the place of the former.

    Raises:
        UsageError: neither measured nor to be calculated.
    """
    if memory.accesses_per_s is not None:
        in_flight = cores * memory.accesses_per_s
        if memory.data_rate_mts is None:
            return in_flight
    else:
        in_flight = cores * memory.outstanding / access_time_s(memory)
    carried = sockets * memory.channels * (memory.data_rate_mts or 0.0) * 1e6 / transfers(memory)
    return min(in_flight, carried)
