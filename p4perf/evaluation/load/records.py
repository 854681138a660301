"""From the record of a load generator to metrics and quality flags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from p4perf.errors import MeasurementError
from p4perf.evaluation.load import LatencyHistogram, LoggedHistogram, hlog_text
from p4perf.specs.metrics import PERCENTILES, at_load
from p4perf.targets.base import MetricValue, TrialSummary

GENERATOR_BOUND_SHARE = 0.85
"""What comes closer than this to the generator without a device may be the generator's own limit."""


def summarise_load(record: Mapping[str, Any], metrics: tuple[str, ...], *, single: bool) -> TrialSummary:
    """Metric values of one repetition, and its flags. It is accepted unless a search found nothing.

    Args:
        record: what :class:`p4perf.experiment.load.LoadMeasurement` returned.
        single: whether the point has one offered load, whose metrics are then named without it.

    Raises:
        MeasurementError: the record is damaged, or has no latency sample.
    """
    try:
        flags: set[str] = set()
        generator_pps = _generator_pps(record)
        if record["alone"] is not None:
            flags |= set(record["alone"]["flags"]) & {"no_realtime"}
            if not record["ready"].get("hugepages"):
                flags.add("no_hugepages")
            if not record["ready"].get("invariant_tsc"):
                flags.add("clock_unknown")
        values = [MetricValue("generator_rate", generator_pps / 1e6, "Mpps")]
        accepted = True
        if "search" in record:
            found, problems = _searched(record, metrics)
            values += found
            flags |= problems
            accepted = not problems & {"below_minimum", "no_lower_bound"}
        if "overload" in record:
            overload = record["overload"]
            values.append(MetricValue("receive_rate", overload["receive_rate_pps"] / 1e6, "Mpps"))
            flags |= set(overload["flags"])
            if overload["receive_rate_pps"] > GENERATOR_BOUND_SHARE * generator_pps:
                flags.add("generator_bound")
        values += [MetricValue(str(m), float(v), str(u)) for m, v, u in record.get("served", [])]
        for offered in record["offered"]:
            values += _offered(offered, metrics, single=single)
            flags |= set(offered["program"]["flags"])
            if offered["program"]["lost"]:
                flags.add("lost_at_offered_load")
            if (offered["program"]["raw"].get("histogram") or {}).get("overflow"):
                flags.add("latency_overflow")
            if "latency" in metrics:
                histogram = LatencyHistogram.from_record(offered["program"]["raw"].get("histogram"))
                if not histogram.supports(99.0):
                    flags.add("few_samples")
    except (KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise MeasurementError(f"missing or invalid field in the record of the load generator: {error}") from error
    return TrialSummary(tuple(values), accepted, tuple(sorted(flags)))


def latency_log(record: Mapping[str, Any], started_s: float) -> str | None:
    """The latencies of one repetition as a log of HdrHistogram; None if there are none.

    It began ``started_s`` seconds after the epoch. Tags are ``load-F`` and ``floor-F`` with the fraction F of the
    maximum, or ``load`` and ``floor``.
    """
    logged = [
        LoggedHistogram(
            LatencyHistogram.from_record(offered[part]["raw"]["histogram"]),
            tag if offered["fraction"] is None else f"{tag}-{offered['fraction']:g}",
            started_s,
            1e-3 * float(offered[part]["raw"]["duration_ms"]),
        )
        for offered in record["offered"]
        for part, tag in (("program", "load"), ("floor", "floor"))
        if part in offered and "histogram" in offered[part]["raw"]
    ]
    return hlog_text(logged) if logged else None


def _generator_pps(record: Mapping[str, Any]) -> float:
    """What the load generator reaches: without a device, or where it cannot do without, what it sent at the most."""
    alone = record["alone"]
    return float(record["overload"]["rate_pps"] if alone is None else alone["receive_rate_pps"])


def _searched(record: Mapping[str, Any], metrics: tuple[str, ...]) -> tuple[list[MetricValue], set[str]]:
    values, flags = [], set()
    generator_pps = _generator_pps(record)
    for name, bounds in record["search"]["bounds"].items():
        lower_pps = float(bounds["lower_pps"])
        flags |= set(bounds["flags"])
        if lower_pps > 0 and f"throughput_{name}" in metrics:
            values.append(MetricValue(f"throughput_{name}", lower_pps / 1e6, "Mpps"))
            if bounds["upper_pps"] is not None:
                values.append(MetricValue(f"throughput_{name}_upper", bounds["upper_pps"] / 1e6, "Mpps"))
        if lower_pps > GENERATOR_BOUND_SHARE * generator_pps or "at_maximum" in bounds["flags"]:
            flags.add("generator_bound")
    values.append(MetricValue("search_trials", float(len(record["search"]["trials"])), "trials"))
    return values, flags


def _offered(offered: Mapping[str, Any], metrics: tuple[str, ...], *, single: bool) -> Iterator[MetricValue]:
    def named(name: str) -> str:
        return name if single else at_load(name, float(offered["fraction"]))

    account = offered["program"]
    if single:
        yield MetricValue("packet_rate", account["receive_rate_pps"] / 1e6, "Mpps")
    yield MetricValue(named("offered_rate"), account["rate_pps"] / 1e6, "Mpps")
    yield MetricValue(named("loss_ratio"), account["lost"] / account["sent"], "lost/sent")
    if "latency" in metrics:
        yield from _latencies(account["raw"].get("histogram"), "latency", named)
        if "floor" in offered:
            yield from _latencies(offered["floor"]["raw"].get("histogram"), "latency_floor", named)


def _latencies(histogram: Any, prefix: str, named: Any) -> Iterator[MetricValue]:
    latencies = LatencyHistogram.from_record(histogram)
    found = latencies.percentiles()
    for name, percentile in PERCENTILES.items():
        if (value := found[percentile]) is not None:
            yield MetricValue(named(f"{prefix}_{name}"), value, "us")
    for name in ("min", "max", "mean", "stddev"):
        yield MetricValue(named(f"{prefix}_{name}"), getattr(latencies, f"{name}_us"), "us")
    yield MetricValue(named(f"{prefix}_samples"), float(latencies.samples), "packets")
