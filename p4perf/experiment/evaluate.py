"""From a run directory to its model, figures and tables, and to the factors of combined variants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.fitting.component import DerivedModel, Evaluation, derive_model
from p4perf.evaluation.fitting.derivation import MIN_POINTS, FitOptions
from p4perf.evaluation.fitting.working_set import CacheMark, WorkingSet, cache_marks, explain
from p4perf.evaluation.load import LatencyHistogram
from p4perf.evaluation.papers.takeya2024.factors import FactorAnalysis, Factorial, factorial_from_table
from p4perf.evaluation.plots import PlotInfo, load, model_figure, save
from p4perf.evaluation.plots.load import RateBound, array, repetitions
from p4perf.results import Manifest, Run
from p4perf.results.table import summarise
from p4perf.specs import ExperimentSpec, ModelSpec
from p4perf.specs.metrics import metric_named

COST = "cost_cycles_per_packet"
BASELINE = "baseline_cycles_per_packet"


def evaluate_run(
    run: Run,
    *,
    changes: Mapping[str, Any] | None = None,
    plots: bool = True,
    every_plot: bool = False,
    progress: Callable[[float], Any] | None = None,
) -> Evaluation | None:
    """Derive the model of a run, write ``model.json`` and, unless ``plots`` is false, the plots.

    None if the spec asks for no model, or if several variables are swept, which one curve cannot describe.

    The cost over the baseline is plotted as well, where the target gives it.

    Args:
        changes: fields of :class:`~p4perf.evaluation.fitting.component.FitOptions` that override the spec.
        every_plot: draw a figure of its own for every number of segments.

    Raises:
        DataError: the run has no measurements, or they are damaged.
        NoVerdictError: no trial was accepted.
        UsageError: a change is wrong.
    """
    spec, variable = run.spec, run.variable
    if spec.model is None or variable is None:
        return None
    manifest, table = run.manifest, run.measured
    if table.groupby(variable)["point"].nunique().max() > 1:
        return None
    accepted = table.loc[(table["metric"] == spec.model.y) & table["accepted"], variable].nunique()
    options = fit_options(spec, None if "max_segments" in (changes or {}) else accepted)

    def derived(metric: str) -> DerivedModel:
        return derive_model(
            table,
            x=variable,
            y=metric,
            name=spec.name,
            target=manifest.target,
            x_scale=spec.model.x_scale if spec.model else "linear",
            options=replace(options, **(changes or {})),
            provenance=_provenance(run),
            progress=progress,
        )

    found = derived(spec.model.y)
    run.directory.write_model(found.model.to_json())
    if not plots:
        return Evaluation(found, (), ())
    marks = run_marks(run)
    info = PlotInfo(title=spec.title or spec.name, machine=machine_text(manifest), date=manifest.created[:10])
    bases = table.loc[(table["metric"] == BASELINE) & table["accepted"], "value"]
    baseline = float(bases.median()) if spec.model.y == "cycles_per_packet" and not bases.empty else None
    place = run.directory.plot_path
    drawn = found.draw(place, found.model.y.name, info, marks=marks, baseline=baseline, every=every_plot)
    if spec.asks_load and manifest.imported is None:
        drawn += load_figures(run, info)
    if spec.model.y != COST and COST in set(table["metric"]):
        cost = model_figure((other := derived(COST)).model, other.samples, marks=marks, info=info)
        drawn += save(cost, place, COST)
    return Evaluation(found, explain(found.model.fitting.breakpoint_x, marks) if marks else (), drawn)


def fit_options(spec: ExperimentSpec, points: int | None) -> FitOptions:
    """The fit options of the spec of a run, by default those of a spec without a model.

    Args:
        points: number of points with accepted trials: a thinned sweep may have too few for the segments that the spec
            fixes. None leaves the number of segments to be chosen, whatever the spec fixes.
    """
    model = spec.model or ModelSpec()
    enough = model.segments is not None and points is not None and points >= model.segments * MIN_POINTS
    return FitOptions(
        max_segments=model.max_segments,
        segments=model.segments if enough else None,
        min_points=model.min_points,
        error=model.error,
        loss=model.loss,
        split_finder=model.split_finder,
        profile=model.profile,
        seed=spec.trials.seed,
    )


def point_rows(run: Run, metric: str | None = None) -> tuple[list[dict[str, Any]], str, str]:
    """Points of a run with median, 95 % interval, accepted and rejected trials and flags; the metric and its unit.

    Raises:
        DataError: the run has no measurements of that metric; the message names the nearest.
        NoVerdictError: no trial ran to its end.
    """
    table = run.measured
    chosen = metric or run.headline
    summary = summarise(table, chosen, run.columns)
    unit = str(summary["unit"].iloc[0])
    return [{str(k): plain(v) for k, v in row.items()} for row in summary.to_dict("records")], chosen, unit


def metric_ends(
    table: pd.DataFrame, metric: str, columns: Sequence[str], *, numeric: bool = True
) -> tuple[float | None, float | None, float | None]:
    """Medians of a metric at the first and last accepted point, and the slope between them; None where there is none.

    ``columns`` distinguish points; a slope needs a single one that is ``numeric``.
    """
    rows = table[(table["metric"] == metric) & table["accepted"].astype(bool)]
    if rows.empty:
        return None, None, None
    medians = rows.groupby(list(columns))["value"].median().sort_index()
    first, last = float(medians.iloc[0]), float(medians.iloc[-1])
    try:
        width = float(medians.index[-1]) - float(medians.index[0]) if numeric and len(columns) == 1 else 0.0
    except (TypeError, ValueError):  # words
        width = 0.0
    return first, last, (last - first) / width if width else None


def plain(value: Any) -> Any:
    """A number of numpy or pandas as one of Python."""
    return value.item() if hasattr(value, "item") else value


def run_marks(run: Run) -> tuple[CacheMark, ...]:
    """Where the tables fill the caches, if the number of entries is what is swept."""
    figures = run.manifest.working_set
    if figures is None or run.variable != "entries":
        return ()
    return cache_marks(WorkingSet(figures["fixed_bytes"], figures["bytes_per_entry"]), run.node.cache_bytes)


def machine_text(manifest: Manifest) -> str:
    """The machine of a run in a line: processor, DPDK, pages; or that the run is imported."""
    if manifest.imported is not None:
        return f"imported by {manifest.imported.importer}"
    pages = "hugepages" if manifest.hugepages else "4 KiB pages"
    dpdk = manifest.node.text("dpdk_version")
    return ", ".join(part for part in (manifest.node.text("cpu_model"), f"DPDK {dpdk}" if dpdk else "", pages) if part)


def _provenance(run: Run) -> dict[str, Any]:
    manifest = run.manifest
    known = {
        "run": run.name,
        "spec_hash": manifest.spec_hash,
        "versions": dict(manifest.versions),
        "node": dict(manifest.node.values),
        "hugepages": manifest.hugepages,
        "gate_ratio": manifest.gate_ratio,
        "trials": manifest.trials,
        "created": manifest.created,
        "testbed": manifest.testbed,
        "working_set": manifest.working_set,
        "flags": run.flag_counts,
    }
    return known if manifest.origin is None else {**known, "imported": manifest.origin}


RISING = ("packet_rate", "throughput_ndr", "throughput_pdr", "receive_rate", "core_frequency")
"""Metrics of which more is better; of all others it is less."""

CACHE_METRICS = (
    *("function_l1_misses", "cache_misses", "simulated_function_line_requests"),
    *("simulated_l1_misses", "simulated_l2_misses", "simulated_llc_misses"),
)
"""Metrics for the axis of cache use; the first that was measured is taken."""


def run_factorial(
    run: Run,
    *,
    metric: str | None = None,
    factors: Sequence[str] = (),
    where: Mapping[str, str] | None = None,
    cache: str | None = None,
) -> tuple[Factorial, dict[str, str]]:
    """The cells of a run, and the titles of its factors.

    Args:
        metric: by default the modelled one, or the first that its spec asks for.
        factors: by default the variants whose subsets its spec sweeps.
        cache: metric of cache use; by default the first of :data:`CACHE_METRICS` that was measured.

    Raises:
        NoVerdictError: nothing was measured, or nothing accepted.
        UsageError: the run has no factors, or other variables are swept that ``where`` does not fix.
        DataError: the metric was not measured, or a column is no factor.
    """
    spec, table = run.spec, run.measured
    chosen = tuple(factors) or spec.sweep.combined.subsets_of
    if not chosen:
        raise UsageError(
            f"{spec.name} combines no variants, so it has no factors",
            key="sweep.multiplex",
            hint="name variables that are 0 or 1 with --factors a,b",
        )
    wanted = metric or run.headline
    measured = {str(name) for name in table["metric"].unique()}
    shown = cache or next((name for name in CACHE_METRICS if name in measured and name != wanted), None)
    cells = factorial_from_table(table, wanted, chosen, where=where, cache=shown, higher_is_better=wanted in RISING)
    titles = {name: spec.variants[name].title if name in spec.variants else "" for name in chosen}
    return cells, titles


def run_title(run: Run) -> tuple[str, str]:
    """Title of a run, and its target and processor, for figures."""
    machine = (f"target {run.manifest.target}", run.node.text("cpu_model"), run.manifest.created[:10])
    return run.spec.title or run.spec.name, ", ".join(text for text in machine if text)


def draw_factors(
    analysis: FactorAnalysis, path: Callable[[str], Path], *, title: str, machine: str = ""
) -> tuple[Path, ...]:
    """Write the figures: the ladder, and the metric over cache use where that is known."""
    from p4perf.evaluation.plots.factors import cache_figure, ladder_figure

    note = f"R² {analysis.main.r_squared:.2f}" + (
        "" if analysis.pairs is None else f", with pairs {analysis.pairs.r_squared:.2f}"
    )
    metric = metric_named(analysis.factorial.cache)
    unit = f" [{metric.unit}]" if metric is not None else ""
    x_label = f"{analysis.factorial.cache.replace('_', ' ')}{unit}"
    info = PlotInfo(title=title, machine=machine, note=note, x_label=x_label)
    drawn: list[Path] = []
    for name, figure_of in (("ladder", ladder_figure), ("cache", cache_figure)):
        with suppress(DataError):
            drawn += save(figure_of(analysis, info=info), path, f"factors_{analysis.factorial.metric}_{name}")
    return tuple(drawn)


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
        rows = rows.assign(bound=rows["flags"].str.contains("generator_bound"))
        values = rows.groupby("frame_size")["value"].agg(["median", "min", "max"])
        flagged = tuple(bool(bound) for bound in rows.groupby("frame_size")["bound"].any())
        middle, low, high = (array(values[end].to_numpy()) for end in ("median", "min", "max"))
        curves.append(load.ThroughputCurve(label, array(values.index.to_numpy()), middle, low, high, flagged))
    return curves
