"""What targets dpdk-c, dpdk-swx and t4p4s share: the harness on DPDK in one process, packets from memory, no NIC."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from typing_extensions import override

from p4perf.generators.c.dpdk import MAX_FRAME_BYTES, MAX_VARYING
from p4perf.programs import analysis
from p4perf.programs.capabilities import Limit, Quantity
from p4perf.programs.component import TrafficPlan
from p4perf.programs.ir import Program, Workload
from p4perf.targets import counters, process, windows
from p4perf.targets.base import BuildPlan, Job, JobResult, MetricValue, NodeFacts, PointPlan, TrialOptions, TrialRecord
from p4perf.targets.builds import COMPILE_TIME_FILE, PORTABLE
from p4perf.targets.link import LinkPlan, check_link, link_files, load_arguments
from p4perf.targets.oracle import source_arguments
from p4perf.targets.process import HarnessTarget
from p4perf.targets.roles import Calibrates, Connects, Simulates, SizesMemory
from p4perf.targets.windows import WindowStatistics

HARNESS_VERSION = 2

HARNESS_LIMITS: Mapping[Quantity, Limit] = {
    "frame bytes": Limit(MAX_FRAME_BYTES, "one mbuf a packet"),
    "varying fields": Limit(MAX_VARYING, "packet source of the harness"),
}

PATIENCE = 0.1
"""Share of the time limit for filling the tables that filling them usually takes."""

POOL_BYTES = 32 << 20
"""Packet pool and the EAL's own structures, generously."""

PKG_CONFIG = process.Need(process.has("pkg_config_version"), "no pkg-config on the PATH", "install pkg-config")
DPDK = process.Need(
    lambda facts: bool(facts.text("dpdk_version") or not facts.text("pkg_config_version")),
    "pkg-config does not find libdpdk",
    "install the package libdpdk-dev",
)


class DpdkTarget(HarnessTarget, Calibrates, SizesMemory):
    """Measured from memory to memory on one core by the harness on DPDK, which is linked to a program of its name."""

    harness_version = HARNESS_VERSION
    layout: ClassVar[str] = "DPDK 22.11"
    needs: ClassVar[tuple[process.Need, ...]] = (
        process.COMPILER,
        process.COMPILER_RUNS,
        PKG_CONFIG,
        DPDK,
        process.REALTIME,
        process.HUGEPAGES,
    )
    metrics: ClassVar[tuple[str, ...]] = (
        *windows.COST_METRICS,
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

    def restored(self, program: Program) -> bool:
        """Whether the source has to write all headers anew before it uses a packet again."""
        return analysis.needs_restore(program)

    def traffic_arguments(self, workload: Workload, traffic: TrafficPlan) -> list[str]:
        return source_arguments(workload, traffic, self.name, restored=self.restored(workload.program))

    def point_arguments(self, plan: PointPlan) -> list[str]:
        """Arguments of the harness for the packets and tables of a point."""
        return self.traffic_arguments(plan.workload, plan.traffic)

    @abstractmethod
    def job_files(self, workload: Workload) -> dict[str, bytes]:
        """Files of a job, among them ``verify.bin``."""

    @abstractmethod
    def population_s(self, program: Program) -> float:
        """Time limit for filling the tables, in seconds: several times what an idle machine takes."""

    def warmup_packets(self, program: Program) -> int:
        return process.warmup_packets(process.most_entries(program))

    @override
    def setup_s(self, program: Program) -> float:
        return PATIENCE * self.population_s(program)

    @override
    def trial(self, plan: PointPlan, options: TrialOptions, facts: NodeFacts) -> Job:
        program = plan.workload.program
        argv = ["{build}/" + self.name, *eal_arguments(plan.memory_bytes, facts, hugepages=options.hugepages)]
        argv += [*self.point_arguments(plan), "--verify", "{folder}/verify.bin"]
        argv += trial_arguments(options, self.warmup_packets(program))
        timeout_s = 30 + self.population_s(program) + 4e-3 * options.timeout_ms
        return Job(tuple(argv), timeout_s, plan.build, self.job_files(plan.workload))

    @override
    def values(self, record: TrialRecord, *statistics: WindowStatistics) -> Sequence[MetricValue]:
        program, baseline = statistics
        return (
            *windows.cost_metrics(program, baseline),
            MetricValue("cost_tsc_cycles_per_packet", program.tsc_cycles - baseline.tsc_cycles, "TSC cycles/packet"),
            MetricValue(
                "cost_resolution_cycles_per_packet", windows.detectable_difference(program, baseline), "cycles/packet"
            ),
            windows.packet_rate("packet_rate", record, program),
            windows.packet_rate("baseline_packet_rate", record, baseline),
            windows.core_frequency(record, program),
            MetricValue("tsc_frequency", float(record["tsc_hz"]) / 1e9, "GHz"),
            *process.recorded(record, "memory_bytes", "code_bytes", "compile_time"),
            MetricValue("load_time", float(record["setup_ms"]), "ms"),
            *windows.counter_metrics(program),
        )

    @override
    def use_hugepages(self, memory_bytes: int, facts: NodeFacts) -> bool:
        return process.hugepages_hold(memory_bytes * 5 // 4 + (66 << 20), facts)


class LinkedDpdkTarget(DpdkTarget, Connects, Simulates):
    """Besides, it converses with the load generator of the same machine, and cachegrind can simulate it."""

    simulates = counters.METRICS
    links: ClassVar[tuple[str, ...]] = ("ring", "memif", "af-packet")

    @abstractmethod
    def build_for(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts, march: str) -> BuildPlan:
        """The build for an architecture, as the compiler names it."""

    @override
    def load(self, plan: PointPlan, link: LinkPlan, facts: NodeFacts) -> Job:
        check_link(self.label, self.links, link)
        argv = ["{build}/" + self.name, "load", *load_arguments(link, plan.memory_bytes, facts)]
        argv += [*self.point_arguments(plan), "--verify", "{folder}/verify.bin"]
        files = self.job_files(plan.workload) | link_files(link, MAX_FRAME_BYTES)
        return Job(tuple(argv), 40 + self.population_s(plan.workload.program), plan.build, files)

    @override
    def simulation(self, plan: PointPlan, options: TrialOptions, facts: NodeFacts) -> tuple[Job, ...]:
        program = plan.workload.program
        narrow = ("--force-max-simd-bitwidth=256",)
        eal = eal_arguments(plan.memory_bytes, facts, hugepages=False, further=narrow)
        command = ["{build}/" + self.name, *eal, *self.point_arguments(plan), "--seed", str(options.seed)]
        build = self.build_for(plan.workload, plan.traffic, facts, PORTABLE)
        seconds = self.population_s(program)
        return counters.simulation_jobs(
            command, build, facts, entries=process.most_entries(program), population_s=seconds
        )

    @override
    def simulated(self, results: Sequence[JobResult]) -> tuple[MetricValue, ...]:
        return counters.simulated_metrics(results)


def eal_arguments(memory_bytes: int, facts: NodeFacts, *, hugepages: bool, further: Sequence[str] = ()) -> list[str]:
    """Arguments of the EAL for tables and buffers of that size, up to the ``--`` before those of the harness."""
    mebibytes = memory_bytes * 5 // 4 // 2**20 + 64
    arguments = ["-l", facts.text("measuring_cpu", "0"), "--no-pci", "--no-telemetry", "--no-shconf", "--log-level=4"]
    return [*arguments, "-m", str(mebibytes), "--in-memory" if hugepages else "--no-huge", *further, "--"]


def trial_arguments(options: TrialOptions, warmup: int) -> list[str]:
    """Arguments of the harness for one trial with that many packets before the first window."""
    arguments = ["--compile-time", "{build}/" + COMPILE_TIME_FILE, "--seed", str(options.seed)]
    return arguments + process.window_arguments(options, "--warmup-packets", str(warmup))
