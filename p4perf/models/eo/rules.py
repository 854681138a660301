"""What an operation costs on a machine, as formulas of its parameters and of the machine's constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from p4perf.models.eo.expressions import Expression


@dataclass(frozen=True, slots=True)
class CostRule:
    """The cost of one operation on one machine.

    Names in the formulas are the parameters of the operation, the constants of the machine, and ``L1``, ``L2``, ``L3``,
    ``DRAM``: the latencies of these levels in cycles.

    Attributes:
        cycles: core cycles of one execution.
        cycles_cached: the same where the table lies in the caches that may hold it; None: no difference.
        accesses: accesses to memory beyond the caches that hold tables; of an operation with a table these are made
            where the table lies.
        table_bytes: size of the table, in bytes; None: there is none.
        stalls: cycles that one access costs on top, by the level where it hits.
        remote_cycles, remote_accesses: the same of a packet that the NIC put into the cache of another socket.
    """

    cycles: Expression
    cycles_cached: Expression | None = None
    accesses: Expression | None = None
    table_bytes: Expression | None = None
    stalls: Mapping[str, Expression] = field(default_factory=dict)
    remote_cycles: Expression | None = None
    remote_accesses: Expression | None = None
