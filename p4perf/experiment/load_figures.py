"""The figures of a run with a load generator: latencies, loss, throughput over frame size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from p4perf.errors import DataError
from p4perf.evaluation.load import LatencyHistogram
from p4perf.evaluation.plots import PlotInfo, load, save
from p4perf.evaluation.plots.load import RateBound, array, repetitions
from p4perf.results import Run

DRAWN = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99.9": 99.9}
"""Percentiles of the figure over load."""

MOST_CURVES = 6
FEWEST_LOADS = 3
"""Fewer loads than this are no figure over load."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """One offered load in one repetition of one point."""

    where: str
    fraction: float | None
    rate_mpps: float
    loss_ratio: float
    sent: int
    flagged: bool
    latency: LatencyHistogram | None
    floor: LatencyHistogram | None


def load_figures(run: Run, info: PlotInfo) -> tuple[Path, ...]:
    """Draw the figures of the load generator of a run; none without one."""
    table = run.table
    place = run.directory.plot_path
    accepted = {(str(p), int(a)) for p, a in table.loc[table["accepted"], ["point", "attempt"]].itertuples(index=False)}
    try:
        seen = list(_seen(run, accepted))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"missing or invalid field {error} in the load records of {run.path}") from error
    drawn: tuple[Path, ...] = ()
    with_latency = _by_load([s for s in seen if s.latency is not None])
    if with_latency:
        curves = _curves(with_latency)
        drawn += save(load.latency_distribution_figure(curves, info=info), place, "latency")
        tail = load.latency_distribution_figure(curves, complementary=True, info=info)
        drawn += save(tail, place, "latency-tail")
    shares = {key: some for key, some in _by_load(seen).items() if key[1] is not None}
    loads = sorted({key[1] for key in shares if key[1] is not None})
    one_program = len({key[0] for key in shares}) == 1 or len(loads) == len(shares)
    if one_program and len(loads) >= FEWEST_LOADS:
        at = [next(some for key, some in shares.items() if key[1] == load) for load in loads]
        if with_latency:
            lines = [_line(label, percentile, loads, at) for label, percentile in DRAWN.items()]
            figure = load.latency_over_load_figure(lines, info=info)
            drawn += save(figure, place, "latency-over-load")
        drawn += save(_loss(loads, at, _bounds(table), info), place, "loss")
    if curves_over_size := _throughputs(table):
        drawn += save(load.throughput_figure(curves_over_size, info=info), place, "throughput")
    return drawn


def _seen(run: Run, accepted: set[tuple[str, int]]) -> Iterator[_Seen]:
    for point in run.directory.points():
        for entry in run.directory.trials(point):
            if "load" not in entry or (point, entry["trial"]["attempt"]) not in accepted:
                continue
            for offered in entry["load"]["offered"]:
                account = offered["program"]
                yield _Seen(
                    point,
                    offered["fraction"],
                    account["rate_pps"] / 1e6,
                    account["lost"] / account["sent"],
                    account["sent"],
                    bool(account["flags"]),
                    _histogram(account),
                    _histogram(offered.get("floor", {"raw": {}})),
                )


def _histogram(account: Mapping[str, Any]) -> LatencyHistogram | None:
    record = account["raw"].get("histogram")
    return None if record is None else LatencyHistogram.from_record(record)


_Key = tuple[str, float | None]


def _by_load(seen: Sequence[_Seen]) -> dict[_Key, list[_Seen]]:
    """Repetitions together, by point and load, ascending loads."""
    found: dict[_Key, list[_Seen]] = {}
    for one in sorted(seen, key=lambda s: s.fraction or s.rate_mpps):
        found.setdefault((one.where, one.fraction), []).append(one)
    return found


def _curves(by_load: Mapping[_Key, Sequence[_Seen]]) -> list[load.LatencyCurve]:
    """The distributions of a few loads, evenly chosen."""
    items = list(by_load.items())
    if len(items) > MOST_CURVES:
        items = [items[round(n * (len(items) - 1) / (MOST_CURVES - 1))] for n in range(MOST_CURVES)]
    curves = []
    for (_, fraction), some in items:
        rate = f"{sum(s.rate_mpps for s in some) / len(some):.3g} Mpps"
        label = rate if fraction is None else f"{100 * fraction:g} % ({rate})"
        latency, floor = _merged([s.latency for s in some]), _merged([s.floor for s in some])
        if latency is not None:
            curves.append(load.LatencyCurve(label, latency, floor))
    return curves


def _merged(histograms: Sequence[LatencyHistogram | None]) -> LatencyHistogram | None:
    there = [h for h in histograms if h is not None]
    return there[0].merge(*there[1:]) if there else None


def _line(label: str, percentile: float, loads: Sequence[float], at: Sequence[Sequence[_Seen]]) -> load.LatencyLine:
    def supported(histogram: LatencyHistogram | None) -> list[float]:
        if histogram is None:
            return []
        value = histogram.percentiles((percentile,))[percentile]
        return [] if value is None or value <= 0 else [value]

    floors = [_merged([s.floor for s in some]) for some in at]
    return load.LatencyLine(
        label,
        array(loads),
        repetitions([v for s in some for v in supported(s.latency)] for some in at),
        tuple(any(s.flagged for s in some) for some in at),
        array([next(iter(supported(floor)), float("nan")) for floor in floors]),
    )


def _loss(loads: Sequence[float], at: Sequence[Sequence[_Seen]], bounds: Sequence[RateBound], info: PlotInfo) -> Any:
    curve = load.LossCurve(
        "loss",
        array(loads),
        repetitions([s.loss_ratio for s in some] for some in at),
        tuple(any(s.flagged for s in some) for some in at),
        min(s.sent for some in at for s in some),
    )
    return load.loss_figure([curve], bounds=bounds, info=info)


def _bounds(table: pd.DataFrame) -> list[RateBound]:
    """NDR and PDR as fractions of the NDR, which offered loads are fractions of."""
    medians = table[table["accepted"]].groupby("metric")["value"].median()
    if "throughput_ndr" not in medians:
        return []
    ndr, found = float(medians["throughput_ndr"]), []
    for label, name, loss in (("NDR", "throughput_ndr", 0.0), ("PDR", "throughput_pdr", 0.005)):
        if name in medians and f"{name}_upper" in medians:
            low, high = float(medians[name]) / ndr, float(medians[f"{name}_upper"]) / ndr
            found.append(RateBound(label, low, low, max(low, high), loss))
    return found


def _throughputs(table: pd.DataFrame) -> list[load.ThroughputCurve]:
    """NDR and PDR over the frame size, if that is what is swept."""
    if "frame_size" not in table.columns or table["frame_size"].nunique() < FEWEST_LOADS:
        return []
    curves = []
    for label, name in (("NDR", "throughput_ndr"), ("PDR", "throughput_pdr")):
        rows = table[table["accepted"] & (table["metric"] == name)]
        if rows["frame_size"].nunique() < FEWEST_LOADS:
            continue
        by_size = rows.groupby("frame_size")["value"]
        flagged = rows.groupby("frame_size")["flags"].agg(
            lambda all_flags: any("generator_bound" in f for f in all_flags)
        )
        middle = by_size.median()
        curves.append(
            load.ThroughputCurve(
                label,
                array(middle.index.to_numpy()),
                array(middle.to_numpy()),
                array(by_size.min().to_numpy()),
                array(by_size.max().to_numpy()),
                tuple(bool(f) for f in flagged),
            )
        )
    return curves
