"""Metrics that specs can ask for: name, unit, meaning. A target states which of them it gives.

A set of metrics is a function without arguments that returns a tuple of :class:`Metric`, with an entry point in the
group ``p4perf.metrics``; those of p4perf are one such set.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
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


@cache
def standard_metrics() -> tuple[Metric, ...]:
    """Those of p4perf, from ``metrics.csv``."""
    text = files("p4perf.specs").joinpath("metrics.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return tuple(Metric(r["name"], r["unit"], r["description"], r["derived_from"] or None) for r in rows)


@cache
def _registered() -> Mapping[str, Metric]:
    found = {metric.name: metric for metric in standard_metrics()}
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
