"""Memory of the tables and states of a program on DPDK 22.11, in bytes, from the layouts of its libraries.

Target dpdk-c: generated C on DPDK in one process, packets from memory, no NIC.

Built from the same pieces as t4p4s: rte_mempool buffers, bursts of 32, rte_hash with single-packet lookups, action data
indexed by position. What it leaves out is the NIC: there is no PCIe, no descriptor ring and no driver in its numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.generators.c.dpdk import MAX_FRAME_BYTES, VARIANTS, DpdkC, capabilities, operators, table_kind
from p4perf.generators.c.dpdk_layout import layout
from p4perf.programs.analysis import needs_restore
from p4perf.programs.capabilities import Capabilities
from p4perf.programs.component import TrafficPlan
from p4perf.programs.ir import Program, Table, Workload
from p4perf.targets.base import (
    Job,
    JobResult,
    MetricValue,
    NodeFacts,
    PointPlan,
    Problem,
    Target,
    TrialOptions,
    TrialRecord,
    TrialSummary,
)
from p4perf.targets.counters import METRICS as SIMULATED
from p4perf.targets.counters import simulated_metrics, simulation_jobs
from p4perf.targets.dpdk_c_build import COMPILE_TIME_FILE, PORTABLE, build_plan, calibration_job
from p4perf.targets.link import LinkPlan, link_files, load_arguments, no_port
from p4perf.targets.oracle import PACKETS, source_arguments, verification_file
from p4perf.targets.outcome import harness_record
from p4perf.targets.windows import (
    WindowStatistics,
    core_frequency,
    cost_metrics,
    detectable_difference,
    gate_ratio_of,
    packet_rate,
    program_and_baseline,
    trial_summary,
)

TBL24_BYTES = 4 << 24
"""First stage of rte_lpm, rte_lpm6, rte_fib and rte_fib6: four bytes for every value of 24 bits."""

_GROUP_BYTES = 4 << 8
_METER_BYTES = 32
_TABLE_BYTES = 16 << 10
"""What is set aside for a table beside its entries: descriptors, ring of free slots, names."""

_SEEN_BYTES = {"exact": 1984, "list": 256, "list32": 256}
"""What it takes of that, by the kind of table: seen with one table in the heap."""

_SEEN_OTHERWISE_BYTES = 2224


def program_bytes(program: Program, variants: Collection[str] = ()) -> int:
    """Memory to set aside for all tables, counters, registers and meters, in bytes."""
    return sum(item_bytes(program, variants).values()) + _TABLE_BYTES * len(program.tables)


def item_bytes(program: Program, variants: Collection[str] = ()) -> dict[str, int]:
    """Memory of each table, counter, register and meter, in bytes, by its name."""
    found = {}
    for table in program.tables:
        beside = _SEEN_BYTES.get(table_kind(program, table, variants), _SEEN_OTHERWISE_BYTES)
        found[table.name] = table_bytes(program, table, variants) + beside
    found |= {c.name: 8 * c.size for c in program.counters} | {r.name: 8 * r.size for r in program.registers}
    return found | {m.name: _METER_BYTES * m.size for m in program.meters}


def table_bytes(program: Program, table: Table, variants: Collection[str] = ()) -> int:
    """Memory of one table with its action data, in bytes."""
    kind, count = table_kind(program, table, variants), max(table.entries.count, 1)
    bits = program.key_bits(table)
    if kind == "exact":
        slots = max(count * 5 // 4, 64)
        buckets = 64 * max(_power_of_two(slots) // 8, 1)
        return buckets + slots * (_key_slot(bits) + entry_bytes(program, table)) + 4 * _power_of_two(slots + 1)
    data = count * entry_bytes(program, table)
    if kind in ("lpm", "lpm6", "fib", "fib6"):
        return data + _prefix_bytes(kind, count, bits - table.entries.free_bits)
    if kind == "acl":
        # Rules, and transitions: rarely more than two nodes of 1 KiB at the bottom of a trie for 256 rules.
        fields = 1 + -(-bits // 32)
        return data + count * (12 + 16 * fields) + count * 16 * fields + (1 << 20)
    words = -(-bits // 64)
    return data + count * (8 if kind == "list32" else 16 * words)


def entry_bytes(program: Program, table: Table) -> int:
    """Action data of one entry, in bytes: whole cache lines, none if the action has no parameters."""
    data = program.action(table.entries.action).data_bits // 8
    return -(-data // 64) * 64


def touched_bytes(program: Program, table: Table, entries: int) -> float:
    """Bytes of cache lines that lookups of all entries of an exact table touch: buckets, key slots, action data."""
    buckets = 64 * _power_of_two(entries * 5 // 4) / 8
    return buckets + entries * (_key_slot(program.key_bits(table)) + entry_bytes(program, table))


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
    """How many prefixes of some length ``count`` neighbouring prefixes of ``depth`` bits have among them."""
    return -(-count >> max(depth - length, 0))


def _key_slot(key_bits: int) -> int:
    return -(-(8 + -(-key_bits // 8)) // 16) * 16


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 1).bit_length()


HARNESS_VERSION = 2
HUGEPAGE_BYTES = 2 << 20
OPERATOR_PACKETS = 256
"""Packets that operators are checked with: they work on all bytes, and the packets may be large."""

PATIENCE = 0.1
"""Share of the time that a start may fill its tables in which it usually does."""

POOL_BYTES = 32 << 20
"""Packet pool and the EAL's own structures, generously."""


class DpdkCTarget(Target):
    """Compiled C on DPDK, measured from memory to memory on one core."""

    name = "dpdk-c"
    summary = "generated C on DPDK (rte_hash, bursts of 32), memory to memory on one core"
    metrics = (
        "cycles_per_packet",
        "tsc_cycles_per_packet",
        "baseline_cycles_per_packet",
        "cost_cycles_per_packet",
        "cost_tsc_cycles_per_packet",
        "cost_resolution_cycles_per_packet",
        "packet_rate",
        "baseline_packet_rate",
        "core_frequency",
        "tsc_frequency",
        "memory_bytes",
        "code_bytes",
        "compile_time",
        "load_time",
    )
    simulates = SIMULATED
    links: ClassVar[tuple[str, ...]] = ("ring", "memif", "af-packet")
    variants: ClassVar[Mapping[str, str]] = VARIANTS
    capabilities: ClassVar[Capabilities] = capabilities()

    def __init__(self, variants: Sequence[str] = ()) -> None:
        """Choose variants; an instance has the table of capabilities that goes with its choice."""
        super().__init__(variants)
        vars(self)["capabilities"] = capabilities(self.chosen)

    @override
    def problems(self, facts: NodeFacts) -> tuple[Problem, ...]:
        found = []
        if not facts.text("cc_version"):
            found.append(Problem("no C compiler (cc) on the PATH", "install gcc"))
        if not facts.text("pkg_config_version"):
            found.append(Problem("no pkg-config on the PATH", "install pkg-config"))
        elif not facts.text("dpdk_version"):
            found.append(Problem("pkg-config does not find libdpdk", "install the package libdpdk-dev"))
        if facts.text("realtime") != "yes":
            found.append(Problem("no right to real-time scheduling", "run as root or grant CAP_SYS_NICE", fatal=False))
        if not (facts.number("hugepages_free") or 0):
            found.append(Problem("no free hugepages", "p4perf doctor --fix reserves some (root)", fatal=False))
        return tuple(found)

    @override
    def plan(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts) -> PointPlan:
        self._check(workload, traffic)
        sources = {f.path: f.text() for f in DpdkC(self.chosen).generate(workload, traffic)}
        memory = self._memory(workload.program, facts)
        build = build_plan(sources, facts)
        identity = [build.key, _traffic_arguments(workload, traffic), HARNESS_VERSION]
        identity += [_entries(workload.program)]
        key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
        return PointPlan(key, build, workload, traffic, memory, PATIENCE * self._population_s(workload.program))

    def _check(self, workload: Workload, traffic: TrafficPlan) -> None:
        """Refuse what is beyond the limits."""
        if traffic.frame_size_bytes > MAX_FRAME_BYTES:
            raise CapabilityError(
                f"dpdk-c takes frames of at most {MAX_FRAME_BYTES} B (one mbuf), not {traffic.frame_size_bytes} B",
                key="traffic.frame_size",
            )
        if traffic.pattern != "cbr" or traffic.offered_load_mpps is not None:
            raise CapabilityError(
                "dpdk-c reads packets from memory as fast as the program takes them: it has no offered load",
                key="traffic",
                hint="use pattern: cbr and offered_load: max",
            )
        self.capabilities.check(workload.program, workload.packets, traffic)

    def _memory(self, program: Program, facts: NodeFacts) -> int:
        """Memory that tables, states and buffers take, in bytes; refused if the machine has less."""
        memory = POOL_BYTES + program_bytes(program, self.chosen)
        available = facts.number("memory_available_bytes")
        if available is not None and memory > 0.9 * available:
            raise CapabilityError(
                f"the tables take about {memory / 2**30:.1f} GiB, but {available / 2**30:.1f} GiB are available",
                key="entries",
                hint="use fewer entries or less action data",
            )
        return memory

    @override
    def trial(self, plan: PointPlan, options: TrialOptions, facts: NodeFacts) -> Job:
        program = plan.workload.program
        eal = _eal_arguments(plan, facts)
        eal += ["--in-memory"] if options.hugepages else ["--no-huge"]
        arguments = ["--verify", "{folder}/verify.bin", "--compile-time", "{build}/" + COMPILE_TIME_FILE]
        arguments += ["--seed", str(options.seed)]
        arguments += ["--windows", str(options.windows), "--window-us", str(options.window_us)]
        arguments += ["--timeout-ms", str(options.timeout_ms), "--warmup-ms", str(options.warmup_ms)]
        arguments += ["--warmup-packets", str(self._warmup_packets(program))]
        if options.mode == "plain":
            arguments.append("--plain")
        elif options.gate_ratio:
            arguments += ["--gate-ratio", f"{options.gate_ratio:.5f}"]
        timeout_s = 30 + self._population_s(program) + 4e-3 * options.timeout_ms
        files = {"verify.bin": _verification(plan.workload)}
        argv = ("{build}/dpdk-c", *eal, "--", *_point_arguments(plan), *arguments)
        return Job(argv, timeout_s, plan.build, files)

    @override
    def load(self, plan: PointPlan, link: LinkPlan, facts: NodeFacts) -> Job:
        if link.kind not in self.links:
            raise no_port(self, link)
        argv = ("{build}/dpdk-c", "load", *load_arguments(link, plan.memory_bytes, facts), *_point_arguments(plan))
        argv += ("--verify", "{folder}/verify.bin")
        files = {"verify.bin": _verification(plan.workload), **link_files(link, MAX_FRAME_BYTES)}
        return Job(argv, 30 + self._population_s(plan.workload.program), plan.build, files)

    @override
    def simulation(self, plan: PointPlan, options: TrialOptions, facts: NodeFacts) -> tuple[Job, ...]:
        program = plan.workload.program
        sources = {f.path: f.text() for f in DpdkC(self.chosen).generate(plan.workload, plan.traffic)}
        eal = [*_eal_arguments(plan, facts), "--no-huge", "--force-max-simd-bitwidth=256"]
        command = ["{build}/dpdk-c", *eal, "--", *_point_arguments(plan), "--seed", str(options.seed)]
        entries = max((t.entries.count for t in program.tables), default=0)
        build = build_plan(sources, facts, PORTABLE)
        return simulation_jobs(command, build, facts, entries=entries, population_s=self._population_s(program))

    @override
    def simulated(self, results: Sequence[JobResult]) -> tuple[MetricValue, ...]:
        return simulated_metrics(results)

    def _warmup_packets(self, program: Program) -> int:
        """Packets before the first window: two for an entry, fewer where a list would take a second for them."""
        entries = max((t.entries.count for t in program.tables), default=0)
        packets = min(max(2 * entries, 20_000), 3_000_000)
        listed = [t.entries.count for t in program.tables if table_kind(program, t, self.chosen).startswith("list")]
        return min(packets, max(500_000_000 // max(sum(listed), 1), 1000))

    def _population_s(self, program: Program) -> float:
        """Time within which even a busy machine fills the tables, in seconds: several times that of an idle one."""
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
    def parse(self, result: JobResult) -> TrialRecord:
        return harness_record(result, HARNESS_VERSION)

    @override
    def summarise(self, record: TrialRecord, gate_ratio: float | None) -> TrialSummary:
        program, baseline = program_and_baseline(record, gate_ratio)
        values = (
            *cost_metrics(program, baseline),
            MetricValue("cost_tsc_cycles_per_packet", program.tsc_cycles - baseline.tsc_cycles, "TSC cycles/packet"),
            MetricValue("cost_resolution_cycles_per_packet", detectable_difference(program, baseline), "cycles/packet"),
            packet_rate("packet_rate", record, program),
            packet_rate("baseline_packet_rate", record, baseline),
            core_frequency(record, program),
            MetricValue("tsc_frequency", float(record["tsc_hz"]) / 1e9, "GHz"),
            MetricValue("memory_bytes", float(record["memory_bytes"]), "B"),
            MetricValue("code_bytes", float(record["code_bytes"]), "B"),
            MetricValue("compile_time", float(record["compile_ms"]), "ms"),
            MetricValue("load_time", float(record["setup_ms"]), "ms"),
            *_counter_metrics(program),
        )
        return trial_summary((program, baseline), values, _environment_flags(record))

    @override
    def calibration(self) -> Job:
        return calibration_job()

    @override
    def gate_ratio(self, record: TrialRecord) -> float | None:
        return gate_ratio_of(record)

    @override
    def use_hugepages(self, memory_bytes: int, facts: NodeFacts) -> bool:
        if facts.number("hugepage_bytes") != HUGEPAGE_BYTES:
            return False
        free = (facts.number("hugepages_free") or 0) * HUGEPAGE_BYTES
        return free >= memory_bytes * 5 // 4 + (66 << 20)

    layout: ClassVar[str] = "DPDK 22.11"

    @override
    def memory(self, program: Program) -> Mapping[str, float]:
        return item_bytes(program, self.chosen)

    @override
    def bytes_per_entry(self, workload: Workload) -> tuple[float, float] | None:
        if len(workload.program.tables) != 1:
            return None
        table = workload.program.tables[0]
        if table_kind(workload.program, table, self.chosen) != "exact":
            return None
        big = 1 << 20
        return 0.0, touched_bytes(workload.program, table, big) / big


def _counter_metrics(program: WindowStatistics) -> tuple[MetricValue, ...]:
    """What hardware counters say, where the kernel offers them."""
    values = (
        ("instructions", program.instructions, "instructions/packet"),
        ("cache_misses", program.cache_misses, "misses/packet"),
    )
    return tuple(MetricValue(name, value, unit) for name, value, unit in values if value is not None)


def _verification(workload: Workload) -> bytes:
    """Packets and what the reference interpreter says of them."""
    packets = OPERATOR_PACKETS if operators(workload.program) else PACKETS
    return verification_file(workload, packets=packets)


def _entries(program: Program) -> list[str]:
    """Numbers of entries, table by table: ``1000``, or ``1000*3`` for three tables of that size."""
    runs = ((count, len(list(same))) for count, same in groupby(t.entries.count for t in program.tables))
    return [f"{count}*{times}" if times > 1 else str(count) for count, times in runs]


def _eal_arguments(plan: PointPlan, facts: NodeFacts) -> list[str]:
    mebibytes = plan.memory_bytes * 5 // 4 // 2**20 + 64
    cpu = facts.text("measuring_cpu", "0")
    return ["-l", cpu, "--no-pci", "--no-telemetry", "--no-shconf", "--log-level=4", "-m", str(mebibytes)]


def _point_arguments(plan: PointPlan) -> list[str]:
    """What the point is: its packets and its tables."""
    entries = [item for text in _entries(plan.workload.program) for item in ("--entries", text)]
    return _traffic_arguments(plan.workload, plan.traffic) + entries


def _traffic_arguments(workload: Workload, traffic: TrafficPlan) -> list[str]:
    program = workload.program
    restored = needs_restore(program) or layout(program).deparses
    return source_arguments(workload, traffic, "dpdk-c", restored=restored)


def _environment_flags(record: Mapping[str, Any]) -> set[str]:
    gated = bool(record.get("gated"))
    conditions = {
        "no_hugepages": not record.get("hugepages"),
        "no_realtime": gated and not record.get("realtime"),
        "ungated": not gated,
        "hopped": int(record.get("hops", 0)) > 0,
        "timed_out": bool(record.get("timed_out")),
    }
    return {flag for flag, present in conditions.items() if present}
