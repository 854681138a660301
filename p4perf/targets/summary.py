"""From the windows of a trial to its summary: what all targets that measure in windows say, and say in the same way."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from p4perf.targets.base import MetricValue, TrialSummary
from p4perf.targets.windows import WindowStatistics, window_statistics


def program_and_baseline(
    record: Mapping[str, Any], gate_ratio: float | None
) -> tuple[WindowStatistics, WindowStatistics]:
    """The first two programs of a record, medians over the counted windows.

    Raises:
        MeasurementError: see :func:`~p4perf.targets.windows.window_statistics`.
    """
    program, baseline, *_ = window_statistics(record, gate_ratio).values()
    return program, baseline


def cost_metrics(program: WindowStatistics, baseline: WindowStatistics) -> tuple[MetricValue, ...]:
    """What a packet takes; its cost is program minus baseline of the same start."""
    return (
        MetricValue("cycles_per_packet", program.core_cycles, "cycles/packet"),
        MetricValue("tsc_cycles_per_packet", program.tsc_cycles, "TSC cycles/packet"),
        MetricValue("baseline_cycles_per_packet", baseline.core_cycles, "cycles/packet"),
        MetricValue("cost_cycles_per_packet", program.core_cycles - baseline.core_cycles, "cycles/packet"),
    )


def packet_rate(metric: str, record: Mapping[str, Any], statistics: WindowStatistics) -> MetricValue:
    """Packets in a second by the TSC, in Mpps."""
    return MetricValue(metric, float(record["tsc_hz"]) / statistics.tsc_cycles / 1e6, "Mpps")


def core_frequency(record: Mapping[str, Any], statistics: WindowStatistics) -> MetricValue:
    """Clock of the core, from the latency chain around the counted windows, in GHz."""
    hz = float(record["tsc_hz"]) * float(record["chain_core_cycles"]) / statistics.chain_tsc
    return MetricValue("core_frequency", hz / 1e9, "GHz")


def trial_summary(
    statistics: Sequence[WindowStatistics], values: Iterable[MetricValue], circumstances: Collection[str]
) -> TrialSummary:
    """Metrics, acceptance and flags of a trial.

    Args:
        statistics: of all programs, the one under test first.
        values: the metrics; without counted windows of every program none is given.
        circumstances: flags of what does not spoil a trial.
    """
    failures = {flag for each in statistics for flag in each.failures()}
    flags = tuple(sorted(failures.union(circumstances)))
    if not all(each.counted for each in statistics):
        return TrialSummary((), False, flags)
    windows = (
        MetricValue("windows_counted", float(statistics[0].counted), "windows"),
        MetricValue("windows_tried", float(statistics[0].tried), "windows"),
    )
    return TrialSummary((*values, *windows), not failures, flags)
