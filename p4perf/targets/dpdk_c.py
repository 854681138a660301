"""Target dpdk-c: generated C on DPDK in one process, packets from memory, no NIC.

Built from the same pieces as t4p4s: rte_mempool buffers, bursts of 32, rte_hash with single-packet lookups, action data
indexed by position. What it leaves out is the NIC: there is no PCIe, no descriptor ring and no driver in its numbers.
Memory of tables and states follows from the layouts of the libraries of DPDK 22.11.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar

from typing_extensions import override

from p4perf.generators.c.dpdk import MAX_FRAME_BYTES, VARIANTS, DpdkC, capabilities, operators, table_kind
from p4perf.generators.c.dpdk_text import layout
from p4perf.programs.capabilities import Capabilities
from p4perf.programs.component import TrafficPlan
from p4perf.programs.entries import rows_of
from p4perf.programs.ir import EntryList, Program, Table, Workload
from p4perf.targets.base import BuildPlan, NodeFacts, PointPlan
from p4perf.targets.builds import NATIVE, dpdk_c_plan
from p4perf.targets.dpdk import HARNESS_VERSION, POOL_BYTES, LinkedDpdkTarget
from p4perf.targets.link import check_frame_size
from p4perf.targets.oracle import PACKETS, frame_files, given_to, verification_file

TBL24_BYTES = 4 << 24
"""First stage of rte_lpm, rte_lpm6, rte_fib and rte_fib6: four bytes for every value of 24 bits."""

_GROUP_BYTES = 4 << 8
_METER_BYTES = 32
_TABLE_BYTES = 16 << 10
"""Set aside for a table beside its entries: descriptors, ring of free slots, names."""

_OVERHEAD_BYTES = {"exact": 1984, "list": 256, "list32": 256}
"""How much of that is used, by the kind of table: measured with one table in the heap."""

_OTHER_OVERHEAD_BYTES = 2224


def program_bytes(program: Program, variants: Collection[str] = ()) -> int:
    """Memory to set aside for all tables, counters, registers and meters, in bytes."""
    return sum(item_bytes(program, variants).values()) + _TABLE_BYTES * len(program.tables)


def item_bytes(program: Program, variants: Collection[str] = ()) -> dict[str, int]:
    """Memory of each table, counter, register and meter, in bytes, by its name."""
    found = {}
    for table in program.tables:
        overhead = _OVERHEAD_BYTES.get(table_kind(program, table, variants), _OTHER_OVERHEAD_BYTES)
        found[table.name] = table_bytes(program, table, variants) + overhead
    found |= {c.name: 8 * c.size for c in program.counters} | {r.name: 8 * r.size for r in program.registers}
    return found | {m.name: _METER_BYTES * m.size for m in program.meters}


def table_bytes(program: Program, table: Table, variants: Collection[str] = ()) -> int:
    """Memory of one table with its action data, in bytes."""
    kind, bits = table_kind(program, table, variants), program.key_bits(table)
    if kind == "none":
        return 0
    count = max(len(rows_of(program, table)) if isinstance(table.entries, EntryList) else table.entries.count, 1)
    if kind == "exact":
        slots = max(count * 5 // 4, 64)
        buckets = 64 * max(_power_of_two(slots) // 8, 1)
        return buckets + slots * (key_slot_bytes(bits) + entry_bytes(program, table)) + 4 * _power_of_two(slots + 1)
    data = count * entry_bytes(program, table)
    if kind in ("lpm", "lpm6", "fib", "fib6"):
        if isinstance(table.entries, EntryList):
            return data + TBL24_BYTES + count * (384 + -(-bits // 8) * _GROUP_BYTES)
        return data + _prefix_bytes(kind, count, bits - table.rule.free_bits)
    if kind == "acl":
        # Rules, and transitions: rarely more than two nodes of 1 KiB at the bottom of a trie for 256 rules.
        fields = 1 + -(-bits // 32)
        return data + count * (12 + 16 * fields) + count * 16 * fields + (1 << 20)
    words = -(-bits // 64)
    return data + count * (8 if kind == "list32" else 16 * words)


def entry_bytes(program: Program, table: Table) -> int:
    """Action data of one entry, in bytes: whole cache lines, none if the action has no parameters."""
    if isinstance(table.entries, EntryList):
        largest = max(program.action(name).data_bits // 8 for name in table.taken)
        return (-(-largest // 64) + 1) * 64
    data = program.action(table.rule.action).data_bits // 8
    return -(-data // 64) * 64


def _prefix_bytes(kind: str, count: int, depth: int) -> int:
    if kind in ("lpm", "fib"):
        groups = _distinct(count, depth, 24) if depth > 24 else 0
        return TBL24_BYTES + groups * _GROUP_BYTES + count * (8 if kind == "lpm" else 256)
    if kind == "lpm6":
        groups = sum(_distinct(count, depth, length) for length in range(24, depth, 8))
        return TBL24_BYTES + groups * (_GROUP_BYTES + 16) + count * 80
    groups = -(-depth // 8) * _distinct(count, depth, depth // 8 * 8)
    return TBL24_BYTES + groups * _GROUP_BYTES + count * 384


def _distinct(count: int, depth: int, length: int) -> int:
    """Number of distinct prefixes of some length among ``count`` neighbouring prefixes of ``depth`` bits."""
    return -(-count >> max(depth - length, 0))


def key_slot_bytes(key_bits: int) -> int:
    """Bytes of a slot of rte_hash: its data, and the key."""
    return -(-(8 + -(-key_bits // 8)) // 16) * 16


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 1).bit_length()


OPERATOR_PACKETS = 256
"""Packets that operators are checked with: they work on all bytes, and the packets may be large."""


class DpdkCTarget(LinkedDpdkTarget):
    name = "dpdk-c"
    summary = "generated C on DPDK (rte_hash, bursts of 32), memory to memory on one core"
    variants: ClassVar[Mapping[str, str]] = VARIANTS
    capabilities: ClassVar[Capabilities] = capabilities()
    no_load = "dpdk-c reads packets from memory as fast as the program takes them: it has no offered load"

    def __init__(self, variants: Sequence[str] = ()) -> None:
        super().__init__(variants)
        vars(self)["capabilities"] = capabilities(self.chosen)

    @override
    def check(self, workload: Workload, traffic: TrafficPlan) -> None:
        check_frame_size("dpdk-c", traffic.frame_size_bytes, MAX_FRAME_BYTES)
        super().check(workload, traffic)

    @override
    def memory_bytes(self, workload: Workload) -> int:
        return POOL_BYTES + program_bytes(workload.program, self.chosen)

    @override
    def build(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts) -> tuple[BuildPlan, Sequence[Any]]:
        build = self.build_for(workload, traffic, facts, NATIVE)
        entries = _entries(workload.program)
        return build, (build.key, self.traffic_arguments(workload, traffic), HARNESS_VERSION, entries)

    @override
    def build_for(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts, march: str) -> BuildPlan:
        sources = {f.path: f.text() for f in DpdkC(self.chosen).generate(workload, traffic)}
        return dpdk_c_plan(sources, facts, march)

    @override
    def restored(self, program: Program) -> bool:
        return super().restored(program) or layout(program).deparses

    @override
    def point_arguments(self, plan: PointPlan) -> list[str]:
        entries = [word for text in _entries(plan.workload.program) for word in ("--entries", text)]
        return super().point_arguments(plan) + entries

    @override
    def job_files(self, workload: Workload) -> dict[str, bytes]:
        packets = OPERATOR_PACKETS if operators(workload.program) else PACKETS
        return {"verify.bin": verification_file(workload, packets=packets, given=given_to), **frame_files(workload)}

    @override
    def warmup_packets(self, program: Program) -> int:
        """Fewer than elsewhere where a list would take a second for them."""
        listed = [t.entries.count for t in program.tables if table_kind(program, t, self.chosen).startswith("list")]
        return min(super().warmup_packets(program), max(500_000_000 // max(sum(listed), 1), 1000))

    @override
    def population_s(self, program: Program) -> float:
        seconds = 0.0
        for table in program.tables:
            kind, count = table_kind(program, table, self.chosen), table.entries.count
            seconds += 4e-6 * count
            if kind == "lpm":
                seconds += 4e-9 * count**2
            elif kind == "acl":
                seconds += 1e-3 * count
        return seconds

    @override
    def memory(self, program: Program) -> Mapping[str, float]:
        return item_bytes(program, self.chosen)

    @override
    def bytes_per_exact_entry(self, program: Program, table: Table) -> float:
        big = 1 << 20
        buckets = 64 * _power_of_two(big * 5 // 4) / 8
        return buckets / big + key_slot_bytes(program.key_bits(table)) + entry_bytes(program, table)


def _entries(program: Program) -> list[str]:
    """Numbers of entries, table by table: ``1000``, or ``1000*3`` for three tables of that size."""
    runs = ((count, len(list(same))) for count, same in groupby(t.entries.count for t in program.tables))
    return [f"{count}*{times}" if times > 1 else str(count) for count, times in runs]
