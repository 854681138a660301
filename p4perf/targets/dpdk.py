"""What targets dpdk-c, dpdk-swx and t4p4s share: the harness on DPDK in one process, packets from memory, no NIC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from typing_extensions import override

from p4perf.generators.c.dpdk import MAX_FRAME_BYTES, MAX_VARYING
from p4perf.programs.capabilities import Limit, Quantity
from p4perf.targets.base import Job, MetricValue, NodeFacts, TrialRecord
from p4perf.targets.dpdk_c_build import calibration_job
from p4perf.targets.process import (
    COMPILER,
    HUGEPAGES,
    REALTIME,
    HarnessTarget,
    Need,
    has,
    hugepages_hold,
    recorded,
)
from p4perf.targets.roles import Calibrates
from p4perf.targets.windows import (
    COST_METRICS,
    WindowStatistics,
    core_frequency,
    cost_metrics,
    counter_metrics,
    detectable_difference,
    packet_rate,
)

HARNESS_VERSION = 2

HARNESS_LIMITS: Mapping[Quantity, Limit] = {
    "frame bytes": Limit(MAX_FRAME_BYTES, "one mbuf a packet"),
    "varying fields": Limit(MAX_VARYING, "packet source of the harness"),
}

PATIENCE = 0.1
"""Share of the time limit for filling the tables that filling them usually takes."""

POOL_BYTES = 32 << 20
"""Packet pool and the EAL's own structures, generously."""

PKG_CONFIG = Need(has("pkg_config_version"), "no pkg-config on the PATH", "install pkg-config")
DPDK = Need(
    lambda facts: bool(facts.text("dpdk_version") or not facts.text("pkg_config_version")),
    "pkg-config does not find libdpdk",
    "install the package libdpdk-dev",
)


class DpdkTarget(HarnessTarget, Calibrates):
    """Measured from memory to memory on one core, by the harness of dpdk-c."""

    harness_version = HARNESS_VERSION
    needs: ClassVar[tuple[Need, ...]] = (COMPILER, PKG_CONFIG, DPDK, REALTIME, HUGEPAGES)
    metrics: ClassVar[tuple[str, ...]] = (
        *COST_METRICS,
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

    @override
    def values(self, record: TrialRecord, *statistics: WindowStatistics) -> Sequence[MetricValue]:
        program, baseline = statistics
        return (
            *cost_metrics(program, baseline),
            MetricValue("cost_tsc_cycles_per_packet", program.tsc_cycles - baseline.tsc_cycles, "TSC cycles/packet"),
            MetricValue("cost_resolution_cycles_per_packet", detectable_difference(program, baseline), "cycles/packet"),
            packet_rate("packet_rate", record, program),
            packet_rate("baseline_packet_rate", record, baseline),
            core_frequency(record, program),
            MetricValue("tsc_frequency", float(record["tsc_hz"]) / 1e9, "GHz"),
            *recorded(record, "memory_bytes", "code_bytes", "compile_time"),
            MetricValue("load_time", float(record["setup_ms"]), "ms"),
            *counter_metrics(program),
        )

    @override
    def calibration(self) -> Job:
        return calibration_job()

    @override
    def use_hugepages(self, memory_bytes: int, facts: NodeFacts) -> bool:
        return hugepages_hold(memory_bytes * 5 // 4 + (66 << 20), facts)


def eal_arguments(memory_bytes: int, facts: NodeFacts, *, hugepages: bool, further: Sequence[str] = ()) -> list[str]:
    """Arguments of the EAL for tables and buffers of that size, up to the ``--`` before those of the harness."""
    mebibytes = memory_bytes * 5 // 4 // 2**20 + 64
    arguments = ["-l", facts.text("measuring_cpu", "0"), "--no-pci", "--no-telemetry", "--no-shconf", "--log-level=4"]
    return [*arguments, "-m", str(mebibytes), "--in-memory" if hugepages else "--no-huge", *further, "--"]
