"""Target dpdk-swx: the P4 pipeline of DPDK (SWX) in one process, packets from memory, no NIC.

SWX is what p4c-dpdk compiles to. Its instructions are either interpreted or, by default, compiled: SWX generates C, gcc
makes a library of it, and the pipeline is built from that. Program and baseline are two pipelines in one process; each
works on up to 16 packets at once, one instruction of this and one of that, to hide the time that memory takes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from typing_extensions import override

from p4perf.errors import UsageError
from p4perf.generators.c.dpdk import MAX_FRAME_BYTES
from p4perf.generators.p4.dpdk import Pna
from p4perf.generators.swx.spec import CAPABILITIES, Pipeline
from p4perf.programs.analysis import needs_restore
from p4perf.programs.capabilities import Capabilities
from p4perf.programs.component import TrafficPlan
from p4perf.programs.hashes import crc32c_raw, internet_checksum
from p4perf.programs.ir import Program, Table, Workload
from p4perf.programs.packets import FCS_BYTES
from p4perf.targets.base import (
    BuildPlan,
    Job,
    JobResult,
    MetricValue,
    NodeFacts,
    PointPlan,
    Problem,
    TrialOptions,
    TrialRecord,
    TrialSummary,
)
from p4perf.targets.counters import METRICS as SIMULATED
from p4perf.targets.counters import simulated_metrics, simulation_jobs
from p4perf.targets.dpdk import (
    HARNESS_LIMITS,
    HARNESS_VERSION,
    PATIENCE,
    POOL_BYTES,
    DpdkTarget,
    eal_arguments,
)
from p4perf.targets.dpdk_c_build import COMPILE_TIME_FILE, NATIVE, PORTABLE
from p4perf.targets.dpdk_swx_build import (
    PRODUCT,
    as_p4c_names_it,
    build_plan,
    config_text,
    p4c_capabilities,
    pipeline_files,
    unnumbered,
)
from p4perf.targets.link import LinkPlan, check_link, link_files, load_arguments
from p4perf.targets.oracle import Hashes, source_arguments, verification_file
from p4perf.targets.process import entries_arguments, most_entries, warmup_packets, window_arguments
from p4perf.targets.roles import Connects, Simulates, SizesMemory

WILDCARD_ENTRY_BYTES = 4096
"""Memory of an entry while rte_acl compiles its rules: 3,640 B were seen with 2e5 to 5e6 prefixes."""

COMPILED_TABLE_BYTES, COMPILED_ENTRY_BYTES, COMPILED_FIELD_BYTES = 12_000, 80, 32
"""Memory of a wildcard table afterwards: within 1 % of what was seen with 10 to 50,000 neighbouring prefixes of 32-bit
keys. How it is divided among entries and their fields is a guess."""

HEADERS_HINT = "sh tools/fetch-dpdk-headers.sh fetches them; dpdk-swx:interpreter needs none"


def swx_checksum(data: bytes) -> int:
    """The internet checksum as ckadd of SWX has it: 0xFFFF where RFC 1071 says 0, which is the same number to it."""
    return internet_checksum(data) or 0xFFFF


HASHES: Hashes = (("crc32", crc32c_raw), ("checksum16", swx_checksum))
"""What the hash functions of SWX calculate: its crc32 is ``rte_hash_crc``, CRC-32C that starts with zero."""


class DpdkSwxTarget(DpdkTarget, Connects, Simulates, SizesMemory):
    """The SWX pipeline of DPDK 22.11, measured from memory to memory on one core."""

    name = "dpdk-swx"
    summary = "the SWX pipeline of DPDK, compiled from the C that it generates, memory to memory on one core"
    metrics: ClassVar[tuple[str, ...]] = (*DpdkTarget.metrics, "program_instructions")
    simulates = SIMULATED
    links: ClassVar[tuple[str, ...]] = ("ring", "memif", "af-packet")
    layout: ClassVar[str] = "DPDK 22.11"
    variants: ClassVar[Mapping[str, str]] = {
        "interpreter": "SWX interprets the instructions; needs no headers of DPDK's source package",
        "p4c": "P4 (PNA) that p4c-dpdk compiles, instead of specifications of p4perf's own",
    }
    capabilities: ClassVar[Capabilities] = Capabilities(
        CAPABILITIES.owner,
        CAPABILITIES.missing,
        {**CAPABILITIES.limits, **HARNESS_LIMITS},
        CAPABILITIES.remarks,
    )

    def __init__(self, variants: Sequence[str] = ()) -> None:
        """Choose variants; with ``p4c`` a program has to be within what both P4 and SWX can do.

        Raises:
            UsageError: there is no such variant, or they exclude each other.
        """
        super().__init__(variants)
        own = type(self).capabilities
        vars(self)["capabilities"] = p4c_capabilities(own) if self.from_p4 else own
        if self.interpreted:
            vars(self)["metrics"] = tuple(m for m in type(self).metrics if m != "code_bytes")
        if self.from_p4 and self.interpreted:
            raise UsageError("what p4c-dpdk compiles is compiled further: p4c and interpreter exclude each other")

    @property
    def from_p4(self) -> bool:
        """Whether p4c-dpdk makes the specifications."""
        return "p4c" in self.chosen

    @property
    def interpreted(self) -> bool:
        """Whether instructions are interpreted."""
        return "interpreter" in self.chosen

    @override
    def problems(self, facts: NodeFacts) -> tuple[Problem, ...]:
        found = list(super().problems(facts))
        if not self.interpreted and facts.text("dpdk_version") and not facts.text("dpdk_source_headers"):
            found.append(Problem("two headers of the source package of DPDK are missing", HEADERS_HINT))
        if self.from_p4 and not facts.text("tool_p4c_dpdk"):
            found.append(Problem("no p4c-dpdk on the PATH", "build p4c, release 1.2.3.7 or another of early 2023"))
        return tuple(found)

    @override
    def memory_bytes(self, workload: Workload) -> int:
        return POOL_BYTES + program_bytes(workload.program)

    @override
    def build(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts) -> tuple[BuildPlan, Sequence[Any]]:
        specifications, build = self._texts_and_build(workload, traffic, facts, NATIVE)
        entries = [t.entries.count for t in workload.program.tables]
        return build, (build.key, specifications, _traffic_arguments(workload, traffic), entries, HARNESS_VERSION)

    @override
    def setup_s(self, program: Program) -> float:
        return PATIENCE * _population_s(program)

    def _texts_and_build(
        self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts, march: str
    ) -> tuple[Mapping[str, str], BuildPlan]:
        """The specifications, or the P4 that they are made of, and the build of them."""
        if self.from_p4:
            source = replace(workload, program=unnumbered(workload.program))
            texts = {f.path: f.text() for f in Pna().generate(source, traffic) if f.path.endswith(".p4")}
            config = config_text([as_p4c_names_it(p) for p in self._pipelines(source)])
        else:
            texts, config = pipeline_files(self._pipelines(workload))
        return texts, build_plan(texts, config, facts, interpreted=self.interpreted, march=march)

    @staticmethod
    def _pipelines(workload: Workload) -> tuple[Pipeline, Pipeline]:
        size = workload.packets.frame_size_bytes - FCS_BYTES
        return Pipeline(workload.program, "program", size), Pipeline(workload.baseline, "baseline", size)

    @override
    def trial(self, plan: PointPlan, options: TrialOptions, facts: NodeFacts) -> Job:
        entries = most_entries(plan.workload.program)
        argv = ["{build}/" + PRODUCT, *eal_arguments(plan.memory_bytes, facts, hugepages=options.hugepages)]
        argv += [*_point_arguments(plan), "--verify", "{folder}/verify.bin"]
        argv += ["--warmup-packets", str(warmup_packets(entries)), *trial_arguments(options)]
        seconds = _population_s(plan.workload.program)
        # What fields of absent headers hold is up to the compiler of P4.
        expected = verification_file(
            plan.workload, hashes=HASHES, short_packets=False, foreign_packets=not self.from_p4
        )
        files = {"verify.bin": expected}
        if self.interpreted:
            specifications, _ = pipeline_files(self._pipelines(plan.workload))
            files |= {name: text.encode() for name, text in specifications.items()}
        return Job(tuple(argv), 30 + seconds + 4e-3 * options.timeout_ms, plan.build, files)

    @override
    def load(self, plan: PointPlan, link: LinkPlan, facts: NodeFacts) -> Job:
        check_link(self.label, self.links, link)
        job = self.trial(plan, TrialOptions(), facts)
        argv = ["{build}/" + PRODUCT, "load", *load_arguments(link, plan.memory_bytes, facts)]
        argv += [*_point_arguments(plan), "--verify", "{folder}/verify.bin"]
        return replace(job, argv=tuple(argv), files={**job.files, **link_files(link, MAX_FRAME_BYTES)})

    @override
    def simulation(self, plan: PointPlan, options: TrialOptions, facts: NodeFacts) -> tuple[Job, ...]:
        program = plan.workload.program
        _, build = self._texts_and_build(plan.workload, plan.traffic, facts, PORTABLE)
        narrow = ("--force-max-simd-bitwidth=256",)
        eal = eal_arguments(plan.memory_bytes, facts, hugepages=False, further=narrow)
        traffic = _traffic_arguments(plan.workload, plan.traffic)
        command = ["{build}/" + PRODUCT, *eal, *traffic, "--seed", str(options.seed), *entries_arguments(program)]
        seconds = _population_s(program)
        return simulation_jobs(command, build, facts, entries=most_entries(program), population_s=seconds)

    @override
    def simulated(self, results: Sequence[JobResult]) -> tuple[MetricValue, ...]:
        return simulated_metrics(results)

    @override
    def parse(self, result: JobResult) -> TrialRecord:
        record = dict(super().parse(result))
        lines = [line for line in result.stdout.splitlines() if line.startswith('{"pipeline"')]
        record["pipelines"] = {p["pipeline"]: p for p in map(json.loads, lines)}
        return record

    @override
    def summarise(self, record: TrialRecord, gate_ratio: float | None) -> TrialSummary:
        pipeline = record["pipelines"]["program"]
        summary = super().summarise({**record, "code_bytes": pipeline.get("code_bytes", 0)}, gate_ratio)
        given = tuple(m for m in summary.metrics if m.metric != "code_bytes" or not self.interpreted)
        if given and "instructions" in pipeline:
            given += (MetricValue("program_instructions", float(pipeline["instructions"]), "instructions"),)
        return replace(summary, metrics=given)

    @override
    def memory(self, program: Program) -> Mapping[str, float]:
        return item_bytes(program)

    @override
    def bytes_per_entry(self, workload: Workload) -> tuple[float, float] | None:
        program = workload.program
        if len(program.tables) != 1 or program.match_kind(program.tables[0]) != "exact":
            return None
        table, big = program.tables[0], 1 << 20
        bucket = 32 * _power_of_two(-(-big // 4)) / big
        return 0.0, bucket + _key_bytes(program, table) + _data_bytes(program, table)


def trial_arguments(options: TrialOptions) -> list[str]:
    """Arguments of the harness that do not depend on the point."""
    seed_and_time = ["--seed", str(options.seed), "--compile-time", "{build}/" + COMPILE_TIME_FILE]
    return seed_and_time + window_arguments(options)


def _point_arguments(plan: PointPlan) -> list[str]:
    return _traffic_arguments(plan.workload, plan.traffic) + entries_arguments(plan.workload.program)


def _traffic_arguments(workload: Workload, traffic: TrafficPlan) -> list[str]:
    return source_arguments(workload, traffic, "dpdk-swx", restored=needs_restore(workload.program))


def program_bytes(program: Program) -> int:
    """Memory of tables, registers and meters in bytes, from the layout of the tables of SWX in DPDK 22.11."""
    wildcards = [t for t in program.tables if program.match_kind(t) != "exact"]
    compiling = sum(table_bytes(program, t) for t in wildcards) - sum(_compiled_bytes(program, t) for t in wildcards)
    return sum(item_bytes(program).values()) + max(compiling, 0)


def item_bytes(program: Program) -> dict[str, int]:
    """Memory of each table, counter, register and meter in bytes, by its name, once the tables are filled."""
    exact = {t.name for t in program.tables if program.match_kind(t) == "exact"}
    found = {
        t.name: table_bytes(program, t) if t.name in exact else _compiled_bytes(program, t) for t in program.tables
    }
    found |= {c.name: 8 * c.size for c in program.counters} | {r.name: 8 * r.size for r in program.registers}
    return found | {m.name: 256 * m.size for m in program.meters}


def table_bytes(program: Program, table: Table) -> int:
    """Memory of one table in bytes. That of a wildcard table is what rte_acl takes while it compiles its rules."""
    count = max(table.entries.count, 1)
    if program.match_kind(table) != "exact":
        return count * (WILDCARD_ENTRY_BYTES + _data_bytes(program, table))
    buckets = 2 * 36 * _power_of_two(-(-count // 4))
    return buckets + count * (4 + _key_bytes(program, table) + _data_bytes(program, table))


def _compiled_bytes(program: Program, table: Table) -> int:
    """Memory of a wildcard table in bytes, after rte_acl has compiled its rules."""
    fields = 1 + -(-program.key_bits(table) // 32)
    entry = COMPILED_ENTRY_BYTES + COMPILED_FIELD_BYTES * fields + _data_bytes(program, table)
    return COMPILED_TABLE_BYTES + max(table.entries.count, 1) * entry


def _population_s(program: Program) -> float:
    """Time limit for filling the tables, in seconds; rte_acl compiles its rules."""
    exact = sum(t.entries.count for t in program.tables if program.match_kind(t) == "exact")
    return 4e-6 * exact + 1e-4 * (sum(t.entries.count for t in program.tables) - exact)


def _key_bytes(program: Program, table: Table) -> int:
    return _power_of_two(-(-program.key_bits(table) // 8))


def _data_bytes(program: Program, table: Table) -> int:
    data = sum(-(-p.width_bits // 8) for p in program.action(table.entries.action).parameters)
    return _power_of_two(8 + data)


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()
