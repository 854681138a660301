"""Target dpdk-c: generated C on DPDK in one process, packets from memory, no NIC.

Built from the same pieces as t4p4s: rte_mempool buffers, bursts of 32, rte_hash with single-packet lookups, action data
indexed by position. What it leaves out is the NIC: there is no PCIe, no descriptor ring and no driver in its numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files as package_files
from typing import Any, ClassVar

from p4perf.errors import CapabilityError, MeasurementError
from p4perf.generators.analysis import spoils_packets
from p4perf.generators.base import TrafficPlan
from p4perf.generators.capabilities import Capabilities, Limit
from p4perf.generators.dpdk_c import DpdkC
from p4perf.generators.packets import field_offset_bits, frame, headers_size_bytes
from p4perf.generators.program import Program, Table, Workload
from p4perf.targets.base import (
    BuildPlan,
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
from p4perf.targets.oracle import verification_file
from p4perf.targets.windows import window_statistics

HARNESS_FILES = ("clock.h", "harness.h", "options.h", "main.c", "options.c", "source.c", "verify.c", "measure.c")
HARNESS_VERSION = 2
HUGEPAGE_BYTES = 2 << 20
POOL_BYTES = 32 << 20
"""Packet pool and the EAL's own structures, generously."""

MAX_ENTRIES = 100_000_000
"""Beyond it the 32-bit ring and bucket arithmetic of rte_hash in DPDK 22.11 comes near its limit of 2**30 slots."""

MAX_FRAME_BYTES = 2048

_BUILD = (
    'set -e; exec "${CC:-cc}" -std=gnu11 -O3 -Wall -Wextra -D_GNU_SOURCE $(pkg-config --cflags libdpdk) -march=native '
    '-o "$1" program.c baseline.c main.c options.c source.c verify.c measure.c $(pkg-config --libs libdpdk) -lm'
)
"""``-march=native`` comes after the flags of pkg-config, which name an old CPU and would win."""


class DpdkCTarget(Target):
    """Compiled C on DPDK, measured from memory to memory on one core."""

    name = "dpdk-c"
    summary = "generated C on DPDK (rte_hash, bursts of 32), memory to memory on one core"
    metrics = (
        "cycles_per_packet",
        "tsc_cycles_per_packet",
        "baseline_cycles_per_packet",
        "cost_cycles_per_packet",
        "packet_rate",
        "memory_bytes",
    )
    capabilities: ClassVar[Capabilities] = Capabilities(
        "dpdk-c",
        limits={
            "exact entries": Limit(MAX_ENTRIES, "rte_hash of DPDK 22.11 has at most 2**30 slots"),
            "exact key bits": Limit(512, "key comparison of rte_hash and of the generated code"),
            "computed field bits": Limit(64, "generated code"),
            "frame bytes": Limit(MAX_FRAME_BYTES, "one mbuf a packet"),
            "varying fields": Limit(1, "packet source of the harness"),
        },
    )

    def problems(self, facts: NodeFacts) -> tuple[Problem, ...]:
        """A compiler, pkg-config, DPDK; and, not fatal, the right to real-time scheduling and hugepages."""
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

    def plan(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts) -> PointPlan:
        """Generate the sources, estimate the memory, check the limits."""
        memory = self._check(workload, traffic, facts)
        sources = {f.path: f.text() for f in DpdkC().generate(workload, traffic)}
        harness = package_files("p4perf.targets") / "harness"
        sources |= {name: (harness / name).read_text(encoding="utf-8") for name in HARNESS_FILES}
        context = {key: facts.text(key) for key in ("cc_version", "dpdk_version", "cpu_model", "cpu_id", "machine")}
        build = BuildPlan(sources, (("sh", "-c", _BUILD, "sh", "dpdk-c"),), "dpdk-c", context)
        identity = [build.key, self._traffic_arguments(workload, traffic), HARNESS_VERSION]
        key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
        return PointPlan(key, build, workload, traffic, memory)

    def _check(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts) -> int:
        """Refuse what is beyond the limits; the memory that tables and buffers take, in bytes."""
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
        memory = POOL_BYTES
        for table in workload.program.tables:
            if table.entries.count > MAX_ENTRIES:
                raise CapabilityError(
                    f"{table.entries.count:,} entries are more than the {MAX_ENTRIES:,} that dpdk-c takes (rte_hash)",
                    key="entries",
                )
            memory += table_bytes(workload.program, table)
        available = facts.number("memory_available_bytes")
        if available is not None and memory > 0.9 * available:
            raise CapabilityError(
                f"the tables take about {memory / 2**30:.1f} GiB, but {available / 2**30:.1f} GiB are available",
                key="entries",
                hint="use fewer entries or less action data",
            )
        return memory

    def trial(self, plan: PointPlan, options: TrialOptions, facts: NodeFacts) -> Job:
        """One process start: EAL arguments, then those of the harness."""
        mebibytes = plan.memory_bytes * 5 // 4 // 2**20 + 64
        cpu = facts.text("measuring_cpu", "0")
        eal = ["-l", cpu, "--no-pci", "--no-telemetry", "--no-shconf", "--log-level=4", "-m", str(mebibytes)]
        eal += ["--in-memory"] if options.hugepages else ["--no-huge"]
        entries = [t.entries.count for t in plan.workload.program.tables]
        arguments = self._traffic_arguments(plan.workload, plan.traffic)
        arguments += [item for count in entries for item in ("--entries", str(count))]
        arguments += ["--verify", "{folder}/verify.bin", "--seed", str(options.seed)]
        arguments += ["--windows", str(options.windows), "--window-us", str(options.window_us)]
        arguments += ["--timeout-ms", str(options.timeout_ms), "--warmup-ms", str(options.warmup_ms)]
        arguments += ["--warmup-packets", str(min(max(2 * max(entries, default=0), 20_000), 3_000_000))]
        if options.mode == "plain":
            arguments.append("--plain")
        elif options.gate_ratio:
            arguments += ["--gate-ratio", f"{options.gate_ratio:.5f}"]
        # Start, population (about 0.3 us an entry, several times that on a busy machine), windows.
        timeout_s = 30 + 4e-6 * sum(entries) + 4e-3 * options.timeout_ms
        files = {"verify.bin": verification_file(plan.workload)}
        return Job(("{build}/dpdk-c", *eal, "--", *arguments), timeout_s, plan.build, files)

    @staticmethod
    def _traffic_arguments(workload: Workload, traffic: TrafficPlan) -> list[str]:
        program, packets = workload.program, workload.packets
        arguments = ["--frame", frame(program, packets).hex()]
        if spoils_packets(program):
            arguments += ["--restore", str(headers_size_bytes(program, packets))]
        if len(packets.varying) > 1:
            raise CapabilityError("dpdk-c varies one header field from packet to packet, this program needs more")
        for varying in packets.varying:
            offset = field_offset_bits(program, packets, varying.field)
            length = (program.width_bits(varying.field) - varying.free_bits) // 8
            arguments += ["--key-offset", str(offset // 8), "--key-length", str(length), "--keys", str(varying.count)]
            arguments += ["--hit-ratio", repr(traffic.hit_ratio), "--distribution", traffic.distribution]
            if traffic.distribution == "zipf":
                arguments += ["--zipf", repr(traffic.zipf_s)]
        return arguments

    def parse(self, result: JobResult) -> TrialRecord:
        """The JSON line of the harness."""
        lines = [line for line in result.stdout.splitlines() if line.startswith("{")]
        if result.timed_out:
            raise MeasurementError(f"the program was stopped after {result.duration_s:.0f} s without a result")
        if not lines:
            tail = " / ".join((result.stderr or result.stdout).strip().splitlines()[-3:]) or "no output"
            raise MeasurementError(f"the program ended with status {result.returncode} and no result: {tail}")
        try:
            record = json.loads(lines[-1])
        except json.JSONDecodeError as error:
            raise MeasurementError(f"the program printed damaged JSON: {error}") from error
        if "error" in record:
            raise MeasurementError(str(record["error"]), key=str(record.get("kind", "")) or None)
        if result.returncode != 0 or record.get("harness_version") != HARNESS_VERSION:
            raise MeasurementError(f"the program ended with status {result.returncode} or speaks another version")
        window_statistics(record)
        return dict(record)

    def summarise(self, record: TrialRecord, gate_ratio: float | None) -> TrialSummary:
        """Medians over the counted windows, cost as program minus baseline of the same process."""
        statistics = window_statistics(record, gate_ratio)
        names = list(record["programs"])
        program, baseline = statistics[names[0]], statistics[names[1]]
        flags = {flag for s in (program, baseline) for flag in s.failures()}
        accepted = not flags
        flags |= _environment_flags(record)
        if not (program.counted and baseline.counted):
            return TrialSummary((), False, tuple(sorted(flags)))
        values = (
            MetricValue("cycles_per_packet", program.core_cycles, "cycles/packet"),
            MetricValue("tsc_cycles_per_packet", program.tsc_cycles, "TSC cycles/packet"),
            MetricValue("baseline_cycles_per_packet", baseline.core_cycles, "cycles/packet"),
            MetricValue("cost_cycles_per_packet", program.core_cycles - baseline.core_cycles, "cycles/packet"),
            MetricValue("packet_rate", float(record["tsc_hz"]) / program.tsc_cycles / 1e6, "Mpps"),
            MetricValue("memory_bytes", float(record["memory_bytes"]), "B"),
            MetricValue("windows_counted", float(program.counted), "windows"),
            MetricValue("windows_tried", float(program.tried), "windows"),
        )
        return TrialSummary(values, accepted, tuple(sorted(flags)))

    def calibration(self) -> Job:
        """Both calibrators on every CPU for 0.2 s, without DPDK."""
        harness = package_files("p4perf.targets") / "harness"
        sources = {name: (harness / name).read_text(encoding="utf-8") for name in ("clock.h", "calibrate.c")}
        command = ("sh", "-c", 'exec "${CC:-cc}" -std=gnu11 -O2 -Wall -Wextra -o calibrate calibrate.c')
        return Job(("{build}/calibrate", "0.2"), 60.0, BuildPlan(sources, (command,), "calibrate"))

    def gate_ratio(self, record: TrialRecord) -> float | None:
        """Of a trial: the ratio in force at its end. Of a calibration line: the tenth percentile."""
        ratio = record.get("gate_ratio")
        if isinstance(ratio, list):
            return float(ratio[10])
        return float(ratio) if ratio and record.get("gated") else None

    def use_hugepages(self, memory_bytes: int, facts: NodeFacts) -> bool:
        """If the free 2 MiB pages hold the largest point with a quarter to spare."""
        if facts.number("hugepage_bytes") != HUGEPAGE_BYTES:
            return False
        free = (facts.number("hugepages_free") or 0) * HUGEPAGE_BYTES
        return free >= memory_bytes * 5 // 4 + (66 << 20)

    def bytes_per_entry(self, workload: Workload) -> tuple[float, float] | None:
        """Hash buckets and key slots at their mean load, and action data, per entry."""
        if len(workload.program.tables) != 1:
            return None
        table = workload.program.tables[0]
        big = 1 << 20
        return 0.0, _touched_bytes(workload.program, table, big) / big


def table_bytes(program: Program, table: Table) -> int:
    """Memory of one table in bytes, from the layout of rte_hash in DPDK 22.11 and of the generated entries."""
    slots = max(table.entries.count * 5 // 4, 64)
    key_slot = -(-(8 + program.key_bits(table) // 8) // 16) * 16
    buckets = 64 * max(_power_of_two(slots) // 8, 1)
    free_list = 4 * _power_of_two(slots + 1)
    return buckets + slots * (key_slot + _entry_bytes(program, table)) + free_list


def _touched_bytes(program: Program, table: Table, entries: int) -> float:
    """Bytes of cache lines that lookups of all entries touch: a bucket share, the key slot, the action data."""
    key_slot = -(-(8 + program.key_bits(table) // 8) // 16) * 16
    buckets = 64 * _power_of_two(entries * 5 // 4) / 8
    return buckets + entries * (key_slot + _entry_bytes(program, table))


def _entry_bytes(program: Program, table: Table) -> int:
    data = program.action(table.entries.action).data_bits // 8
    return -(-max(data, 1) // 64) * 64


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 1).bit_length()


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
