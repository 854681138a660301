"""The metrics that a spec can ask for: name, unit, meaning. A target says which of them it can give."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

MetricName = Literal[
    "cycles_per_packet",
    "tsc_cycles_per_packet",
    "baseline_cycles_per_packet",
    "cost_cycles_per_packet",
    "cost_tsc_cycles_per_packet",
    "cost_resolution_cycles_per_packet",
    "packet_rate",
    "baseline_packet_rate",
    "throughput_ndr",
    "throughput_pdr",
    "receive_rate",
    "loss_ratio",
    "latency",
    "memory_bytes",
    "cache_misses",
    "instructions",
    "host_l1_misses",
    "function_l1_misses",
    "program_instructions",
    "core_frequency",
    "tsc_frequency",
    "code_bytes",
    "compile_time",
    "load_time",
    "simulated_instructions",
    "simulated_l1_misses",
    "simulated_l2_misses",
    "simulated_llc_misses",
    "simulated_host_l1_misses",
    "simulated_function_l1_misses",
    "simulated_host_l2_misses",
    "simulated_function_l2_misses",
    "simulated_host_line_requests",
    "simulated_function_line_requests",
]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric; ``derived_from`` names the metric that it is calculated from, where it is not measured itself."""

    name: str
    unit: str
    description: str
    derived_from: MetricName | None = None


_ALL = (
    Metric(
        "cycles_per_packet",
        "cycles/packet",
        "core clock cycles that the program takes for a packet, at whatever frequency the core runs",
    ),
    Metric(
        "tsc_cycles_per_packet",
        "TSC cycles/packet",
        "cycles of the time stamp counter for a packet; the counter has a constant rate, so this is a time",
    ),
    Metric(
        "baseline_cycles_per_packet",
        "cycles/packet",
        "core clock cycles per packet of the baseline, measured beside the program in the same process",
    ),
    Metric(
        "cost_cycles_per_packet",
        "cycles/packet",
        "cycles per packet over the baseline measured beside it: what the component costs",
        derived_from="cycles_per_packet",
    ),
    Metric(
        "cost_tsc_cycles_per_packet",
        "TSC cycles/packet",
        "the same in cycles of the time stamp counter, which is a time",
        derived_from="tsc_cycles_per_packet",
    ),
    Metric(
        "cost_resolution_cycles_per_packet",
        "cycles/packet",
        "least cost that a trial tells from none (95 %), from how far the windows of program and baseline are spread",
        derived_from="cycles_per_packet",
    ),
    Metric("packet_rate", "Mpps", "packets processed in a second, in millions, at the offered load"),
    Metric("baseline_packet_rate", "Mpps", "packets that the baseline processes in a second, in millions"),
    Metric("throughput_ndr", "Mpps", "highest offered load without loss (non-drop rate), found by search"),
    Metric(
        "throughput_pdr", "Mpps", "highest offered load with at most 0.5 % loss (partial drop rate), found by search"
    ),
    Metric("receive_rate", "Mpps", "packets that come back in a second when more are offered than the device takes"),
    Metric("loss_ratio", "lost/sent", "lost packets over sent packets (RFC 2544) at the offered load"),
    Metric("latency", "us", "time from sending to receiving a packet, as percentiles at the loads of latency_at"),
    Metric("memory_bytes", "B", "memory that the tables of the program take"),
    Metric("cache_misses", "misses/packet", "misses of the last-level cache for a packet"),
    Metric("instructions", "instructions/packet", "instructions retired for a packet"),
    Metric("host_l1_misses", "misses/packet", "misses of the L1 data cache by reads of the host (vio) for a packet"),
    Metric(
        "function_l1_misses",
        "misses/packet",
        "misses of the L1 data cache by reads of the network function (vio) for a packet",
    ),
    Metric(
        "program_instructions",
        "instructions",
        "size of the program in instructions of its target: eBPF as the verifier left it, SWX as its optimiser did",
    ),
    Metric("core_frequency", "GHz", "frequency of the core during the measurement"),
    Metric("tsc_frequency", "GHz", "rate of the time stamp counter"),
    Metric("code_bytes", "B", "machine code of the program that packets run through, without the libraries it calls"),
    Metric("compile_time", "ms", "time that the compiler took for the program when it was built"),
    Metric("load_time", "ms", "time in which the tables of the program are created and filled"),
    Metric(
        "simulated_instructions",
        "instructions/packet",
        "instructions for a packet, counted by cachegrind in a simulation, packet source of the harness included",
    ),
    Metric(
        "simulated_l1_misses",
        "misses/packet",
        "misses of the first-level caches (instructions and data) for a packet, simulated by cachegrind",
    ),
    Metric(
        "simulated_l2_misses",
        "misses/packet",
        "misses of a last-level cache of the size of the second level for a packet, simulated by cachegrind",
    ),
    Metric(
        "simulated_llc_misses",
        "misses/packet",
        "misses of a cache of the size of the last level for a packet, simulated by cachegrind",
    ),
    *(
        Metric(
            f"simulated_{side}_{level}_misses",
            "misses/packet",
            f"misses of the {level.upper()} cache by the {who} (vio) for a packet, simulated by cachegrind, which "
            "knows no other core",
        )
        for level in ("l1", "l2")
        for side, who in (("host", "host"), ("function", "network function"))
    ),
    *(
        Metric(
            f"simulated_{side}_line_requests",
            "lines/packet",
            f"cache lines that the core of the {who} (vio) asks for, for a packet, because the other core wrote them, "
            "or has them when they are written; counted with caches without limits",
        )
        for side, who in (("host", "host"), ("function", "network function"))
    ),
)

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _ALL})
"""Every metric, by name."""

LOAD_METRICS: tuple[MetricName, ...] = ("throughput_ndr", "throughput_pdr", "receive_rate", "loss_ratio", "latency")
"""Metrics that need a load generator."""

PERCENTILES: Mapping[str, float] = MappingProxyType(
    {"p50": 50.0, "p75": 75.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9, "p9999": 99.99}
)
"""Percentiles of latency by the name that metrics use."""

_STATISTICS = f"(?:{'|'.join(PERCENTILES)}|min|max|mean|stddev)"
MODELLED_PATTERN = (
    rf"^(latency(_floor)?_{_STATISTICS}(_at_[0-9]{{1,3}}(_[0-9]{{1,3}})?)?|loss_ratio_at_[0-9]{{1,3}}(_[0-9]{{1,3}})?)$"
)
"""Names of metrics that a collected one falls into, such as ``latency_p99`` and ``latency_p50_at_70`` (per cent)."""


def at_load(name: str, fraction: float) -> str:
    """The name of a metric at a load that is a fraction of the maximum: ``latency_p50_at_70``, ``..._at_0_5``."""
    return f"{name}_at_{100 * fraction:.3f}".rstrip("0").rstrip(".").replace(".", "_")


def metric_named(name: str) -> Metric | None:
    """A metric by its name, or what a collected one falls into; None if there is no such metric."""
    if name in METRICS:
        return METRICS[name]
    if not re.fullmatch(MODELLED_PATTERN[1:-1], name):
        return None
    if name.startswith("loss_ratio"):
        return Metric(name, "lost/sent", "lost packets over sent packets at that load", "loss_ratio")
    what = "of the link without a device" if "_floor" in name else "of the device"
    return Metric(name, "us", f"latency {what}", "latency")
