"""Metrics that specs can ask for: name, unit, meaning. A target states which of them it gives.

A set of metrics is a function without arguments that returns a tuple of :class:`Metric`, with an entry point in the
group ``p4perf.metrics``; those of p4perf are one such set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from typing_extensions import override

from p4perf.errors import UsageError
from p4perf.plugins import load_plugin, plugin_names

GROUP = "p4perf.metrics"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric; ``derived_from`` names the metric that it is calculated from, if it is not measured itself."""

    name: str
    unit: str
    description: str
    derived_from: str | None = None


_STANDARD = (
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
        "smallest cost that a trial distinguishes from zero (95 %), from the spread of windows of program and baseline",
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


def standard_metrics() -> tuple[Metric, ...]:
    return _STANDARD


@cache
def _registered() -> Mapping[str, Metric]:
    found = {metric.name: metric for metric in _STANDARD}
    for source in plugin_names(GROUP):
        for metric in load_plugin(GROUP, source)():
            if found.setdefault(metric.name, metric) != metric:
                raise UsageError(f"duplicate metric {metric.name!r} in the set of metrics {source!r}")
    return MappingProxyType(found)


class _Metrics(Mapping[str, Metric]):
    """Reads the registered sets at the first look-up: their modules may import this one."""

    @override
    def __getitem__(self, name: str) -> Metric:
        return _registered()[name]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(_registered())

    @override
    def __len__(self) -> int:
        return len(_registered())


METRICS: Mapping[str, Metric] = _Metrics()
"""Every registered metric, by name: those of p4perf first."""

LOAD_METRICS: tuple[str, ...] = ("throughput_ndr", "throughput_pdr", "receive_rate", "loss_ratio", "latency")
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
