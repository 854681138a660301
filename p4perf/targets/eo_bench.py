"""Micro-benchmarks of elementary operations on the harness of target dpdk-c: cases, builds and runs.

A case is a program with one operation and a baseline without, measured side by side as programs of that target are:
packets in cache, bursts of 32, packets independent of each other, so that the processor overlaps them. The difference
is what an operation adds, which is less than its latency. None of the programs that are estimated with these costs
takes part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from p4perf.errors import MeasurementError
from p4perf.generators.base import render
from p4perf.targets.base import BuildPlan, Job, NodeFacts, TrialOptions, TrialRecord
from p4perf.targets.builds import DPDK_C, dpdk_c_plan, small_plan
from p4perf.targets.dpdk import POOL_BYTES, eal_arguments, trial_arguments
from p4perf.targets.process import warmup_packets
from p4perf.targets.windows import window_statistics
from p4perf.version import __version__

HEADER_BYTES = 14
FRAME_BYTES = 60
"""Of most cases, without FCS."""


@dataclass(frozen=True, slots=True)
class Case:
    """One micro-benchmark.

    Attributes:
        name: what it measures, unique.
        operation: which code is compiled: see ``c/operation.c.j2``.
        count: how often the operation is there.
        size: bytes of one operation.
        frame_bytes: of the packets, without FCS.
        vary_bytes, keys: length of a field behind Ethernet that holds a number below ``keys``; 0: no such field.
        restore: bytes of headers that the source writes anew for every packet.
        table, key_bits, free_bits, data_bytes, entries: the table, if there is one.
        cells: of the array, a power of two; 0: there is none.
        per: the cost is divided by this.
        memory_bytes: what the tables take.
        setup_s: time to fill them on a busy machine, in seconds.
    """

    name: str
    operation: str = "nothing"
    count: int = 1
    size: int = 8
    frame_bytes: int = FRAME_BYTES
    vary_bytes: int = 0
    keys: int = 1
    restore: int = 0
    table: str = ""
    key_bits: int = 0
    free_bits: int = 0
    data_bytes: int = 0
    entries: int = 0
    cells: int = 0
    per: int = 1
    memory_bytes: int = 0
    setup_s: float = 0.0

    @property
    def context(self) -> dict[str, object]:
        names = ("operation", "count", "size", "table", "key_bits", "free_bits", "data_bytes", "cells")
        return {name: getattr(self, name) for name in names}


BASELINE = Case("baseline", count=0, size=0)

CURVE_BYTES = (16, 64, 256, 1024)
"""Sizes at which checksums and hashes are measured."""

TABLE_BYTES_PER_ENTRY = 16 + 8 + 16 + 64 + 13
"""What an entry of the hash table of :func:`hash_case` takes, roughly: key slot, action data, buckets."""

LIST_ENTRIES = (8, 128)

MANY_ENTRIES = 100
"""Entries of tables in L1 among which the packets choose."""


def hash_case(
    name: str, entries: int, *, key_bytes: int = 16, data_bytes: int = 64, operation: str = "ht_lookup"
) -> Case:
    """A lookup in an exact match table (rte_hash, CRC-32C) with entries that are read."""
    return Case(
        name,
        operation,
        vary_bytes=min(key_bytes, 16),
        keys=entries,
        table="exact",
        key_bits=8 * key_bytes,
        data_bytes=data_bytes,
        entries=entries,
        frame_bytes=max(FRAME_BYTES, HEADER_BYTES + key_bytes),
        memory_bytes=2 * entries * (32 + key_bytes + data_bytes + 16),
        setup_s=4e-6 * entries,
    )


def prefix_case(table: str, key_bits: int, free_bits: int, memory_bytes: int) -> Case:
    """A lookup in a longest prefix match table (rte_lpm, rte_lpm6)."""
    return Case(
        table,
        "lpm_lookup",
        vary_bytes=(key_bits - free_bits) // 8,
        keys=MANY_ENTRIES,
        table=table,
        key_bits=key_bits,
        free_bits=free_bits,
        entries=MANY_ENTRIES,
        data_bytes=64,
        memory_bytes=memory_bytes,
    )


def array_case(name: str, cells: int) -> Case:
    """Four accesses to cells of 8 bytes of an array, in different places."""
    keys = min(cells, 1 << 30)
    return Case(name, "array_access", count=4, vary_bytes=4, keys=keys, cells=cells, per=4, memory_bytes=8 * cells)


def level_bytes(caches: Mapping[str, int], memory_bytes: int) -> dict[str, int]:
    """Working sets that lie in each level of the memory hierarchy and are larger than the level before, in bytes.

    Half of a cache for caches of a core; of the last level, which may be shared with others, eight times the level
    before. For memory four times the largest cache, up to a tenth of what is available.
    """
    found = {"L1": caches["L1"] // 2} if "L1" in caches else {"L1": 16 << 10}
    if "L2" in caches:
        found["L2"] = caches["L2"] // 2
    if "L3" in caches:
        found["L3"] = min(8 * caches.get("L2", 256 << 10), caches["L3"] // 2)
    largest = max(caches.values(), default=1 << 20)
    found["DRAM"] = min(4 * largest, memory_bytes // 10)
    return found


def cases(caches: Mapping[str, int], memory_bytes: int) -> tuple[Case, ...]:
    """All micro-benchmarks for a machine with these caches and so much memory available."""
    found = [
        Case("io"),
        Case("draw_8", vary_bytes=8, keys=1 << 20),
        Case("draw_16", vary_bytes=16, keys=1 << 20),
        Case("restore_16", restore=16),
        Case("restore_256", restore=256, frame_bytes=508),
        Case("parse", "parse", count=8, size=4, per=8),
        Case("parse_8", "parse", count=4, size=8, per=4),
        Case("deparse", "deparse", count=8, size=4, per=8),
        Case("deparse_8", "deparse", count=4, size=8, per=4),
        Case("increase", "increase", count=32, per=32),
        Case("sum", "sum", count=32, per=32),
        Case("extract", "extract", count=8, size=4, per=8),
        Case("branch", "branch", count=16, per=16),
        Case("miss", "miss", vary_bytes=1, keys=256),
        Case("move_1", "move", count=16, size=1, per=16, frame_bytes=316),
        Case("move_8", "move", count=8, size=8, per=8, frame_bytes=316),
        Case("move_64", "move", count=4, size=64, per=4, frame_bytes=316),
        Case("resize", "resize", per=2),
        Case("meter", "meter"),
        Case("random", "random", count=4, per=4),
        Case("clone_64", "clone"),
        Case("clone_1024", "clone", frame_bytes=1024),
        Case("multicast", "multicast", count=4, per=4),
    ]
    for name in ("checksum", "crc16", "crc32"):
        found += [
            Case(f"{name}_{size}", name, size=size, frame_bytes=max(FRAME_BYTES, HEADER_BYTES + size + 2))
            for size in CURVE_BYTES
        ]
    for bits, table in ((32, "list32"), (128, "list")):
        found += [
            Case(f"list_{bits}_{n}", "list_lookup", vary_bytes=bits // 8, keys=n, table=table, key_bits=bits, entries=n)
            for n in LIST_ENTRIES
        ]
    found += [
        prefix_case("lpm", 32, 8, memory_bytes=80 << 20),
        prefix_case("lpm6", 128, 64, memory_bytes=160 << 20),
        hash_case("hash_1", 1),
        hash_case("hash", MANY_ENTRIES),
        hash_case("hash_key_8", MANY_ENTRIES, key_bytes=8),
        hash_case("hash_key_64", MANY_ENTRIES, key_bytes=64),
        hash_case("hash_data_8", MANY_ENTRIES // 2, data_bytes=8),
        hash_case("hash_data_256", MANY_ENTRIES // 2, data_bytes=256),
        hash_case("ct", MANY_ENTRIES, operation="ct_insertion"),
    ]
    for level, size in level_bytes(caches, memory_bytes).items():
        found.append(array_case(f"array_{level}", 1 << (max(size // 8, 2).bit_length() - 1)))
        if level != "L1":
            found.append(hash_case(f"hash_{level}", max(size // TABLE_BYTES_PER_ENTRY, 64)))
    return tuple(found)


_ETHERNET = bytes.fromhex("02000000000202000000000188b5")


def case_build(case: Case, facts: NodeFacts) -> BuildPlan:
    """The program with the operation, the baseline without it, on the harness of dpdk-c."""
    sources = {
        "program.c": render("c/operation.c.j2", role="under_test", version=__version__, **case.context),
        "baseline.c": render("c/operation.c.j2", role="baseline", version=__version__, **BASELINE.context),
    }
    return dpdk_c_plan(sources, facts)


def case_job(case: Case, options: TrialOptions, facts: NodeFacts) -> Job:
    eal = eal_arguments(POOL_BYTES + case.memory_bytes, facts, hugepages=options.hugepages)
    argv = ["{build}/" + DPDK_C, *eal]
    frame = _ETHERNET + bytes((n % 199) + 1 for n in range(case.frame_bytes - HEADER_BYTES))
    if case.vary_bytes:
        # What does not change of a key is zero.
        zeros = max(case.vary_bytes, case.key_bits // 8)
        frame = frame[:HEADER_BYTES] + bytes(zeros) + frame[HEADER_BYTES + zeros :]
    argv += ["--frame", frame.hex()]
    if case.restore:
        argv += ["--restore", str(case.restore)]
    if case.vary_bytes:
        # A key is a number, its last bytes change; of an lpm key those before the free bits.
        end = HEADER_BYTES + max(case.vary_bytes, (case.key_bits - case.free_bits) // 8)
        argv += ["--key-offset", str(end - case.vary_bytes), "--key-length", str(case.vary_bytes)]
        argv += ["--keys", str(case.keys)]
    if case.table:
        argv += ["--entries", str(case.entries)]
    argv += trial_arguments(options, warmup_packets(max(case.entries, case.cells)))
    timeout_s = 60 + case.setup_s + 4e-3 * options.timeout_ms
    return Job(tuple(argv), timeout_s, case_build(case, facts))


def case_cycles(record: TrialRecord, gate_ratio: float | None) -> tuple[float, float]:
    """Core cycles of a packet with the operation, and without."""
    statistics = window_statistics(record, gate_ratio)
    program, baseline = (statistics[name] for name in record["programs"])
    broken = sorted({*program.failures(), *baseline.failures()})
    if broken:
        raise MeasurementError(f"not accepted: {', '.join(broken)}")
    return program.core_cycles, baseline.core_cycles


def chase_job(sizes_bytes: list[int], facts: NodeFacts) -> Job:
    """Latencies of loads that depend on each other, over working sets of these sizes, without DPDK."""
    build = small_plan("chase", "clock.h", "eo_chase.c")
    return Job(("{build}/chase", *map(str, sizes_bytes)), 60 + 10 * len(sizes_bytes), build)
