"""From a run directory to its model, figures and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.fitting.component import DerivedModel, derive_model, known_options
from p4perf.evaluation.fitting.datafiles import read_series
from p4perf.evaluation.fitting.derivation import MIN_POINTS, FitOptions
from p4perf.evaluation.fitting.working_set import cache_marks, explain, parse_cache, parse_working_set, run_marks
from p4perf.evaluation.load import LatencyHistogram
from p4perf.evaluation.plots import PlotInfo, load, model_figure, save
from p4perf.evaluation.plots.load import RateBound
from p4perf.experiment.ledger import two_states
from p4perf.models.component import Scale
from p4perf.records import counted
from p4perf.results import Manifest, Run
from p4perf.results.files import write_text_atomically
from p4perf.results.table import STARTS_DISAGREE, flags_in, summarise
from p4perf.specs import ExperimentSpec, ModelSpec

COST = "cost_cycles_per_packet"
BASELINE = "baseline_cycles_per_packet"


def evaluate_run(
    run: Run,
    *,
    changes: Mapping[str, Any] | None = None,
    plots: bool = True,
    every_plot: bool = False,
    output: Path | None = None,
    progress: Callable[[float], Any] | None = None,
) -> DerivedModel | None:
    """Derive the model of a run, write ``model.json`` and, unless ``plots`` is false, the plots.

    None if the spec asks for no model, or if several variables are swept, which one curve cannot describe. That of
    chosen points (:meth:`~p4perf.results.Run.at`) is written to ``output`` only.

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
    if variable is None or (run.is_whole and spec.model is None):
        return None
    manifest, table, y = run.manifest, run.measured, run.headline
    if run.is_whole and table.groupby(variable)["point"].nunique().max() > 1:
        return None
    accepted = table.loc[(table["metric"] == y) & table["accepted"], variable].nunique()
    options = fit_options(spec, None if "max_segments" in (changes or {}) else accepted)

    def derived(metric: str) -> DerivedModel:
        return derive_model(
            table,
            x=variable,
            y=metric,
            name=run.title,
            target=manifest.target,
            x_scale=spec.model.x_scale if spec.model else "linear",
            options=replace(options, **(changes or {})),
            provenance=_provenance(run),
            progress=progress,
        )

    found = derived(y)
    marks = run_marks(run) if run.is_whole else ()
    if run.is_whole:
        run.directory.write_model(found.model.to_json())
    elif output is not None:
        write_text_atomically(output / "model.json", found.model.to_json())
    if not plots or not (run.is_whole or output):
        return found
    title = spec.title or spec.name if run.is_whole else run.title
    info = PlotInfo(title=title, machine=machine_text(manifest), date=manifest.created[:10])
    bases = table.loc[(table["metric"] == BASELINE) & table["accepted"], "value"]
    baseline = float(bases.median()) if y == "cycles_per_packet" and not bases.empty else None
    place = output.joinpath if output else run.directory.plot_path
    drawn = found.draw(place, found.model.y.name, info, marks=marks, baseline=baseline, every=every_plot)
    if spec.asks_load and manifest.imported is None and run.is_whole:
        drawn += load_figures(run, info)
    if y != COST and COST in set(table["metric"]):
        cost = model_figure((other := derived(COST)).model, other.samples, marks=marks, info=info)
        drawn += save(cost, place, COST)
    return replace(found, explanations=explain(found.breakpoints, marks) if marks else (), plots=drawn)


def evaluate_file(
    path: Path,
    y: str | None,
    x: str | None,
    *,
    region: str | None = None,
    x_scale: Scale = "linear",
    working_set: str | None = None,
    caches: Sequence[str] = (),
    output: Path | None = None,
    changes: Mapping[str, Any] | None = None,
    every_plot: bool = False,
    progress: Callable[[float], Any] | None = None,
) -> DerivedModel:
    """Derive the model of a file (``-`` is the standard input), and write it and its plots if a folder is named.

    Args:
        y: column of the samples; of a file of Extra-P the metric.
        x: column of the abscissae; of a file of Extra-P the parameter.
        working_set: bytes that grow with x, for :func:`parse_working_set`; with ``caches``, breakpoints are explained.
        changes: fields of :class:`~p4perf.evaluation.fitting.component.FitOptions`.

    Raises:
        UsageError: an option or column is wrong.
        DataError: the file cannot be used.
    """
    if (working_set is None) != (not caches):
        hint = "such as --working-set 128+80 --cache L2=256KiB"
        raise UsageError("--working-set and --cache belong together", hint=hint)
    sizes = dict(parse_cache(text) for text in caches)
    marks = () if working_set is None else cache_marks(parse_working_set(working_set), sizes)
    name, source = ("stdin", Path("/dev/stdin")) if str(path) == "-" else (path.stem, path)
    samples = read_series(source, x, y, region=region)
    derived = derive_model(samples, name=name, x_scale=x_scale, options=known_options(changes or {}), progress=progress)
    plots: tuple[Path, ...] = ()
    if output is not None:
        write_text_atomically(output / "model.json", derived.model.to_json())
        plots = derived.draw(output.joinpath, name, PlotInfo(title=source.name), marks=marks, every=every_plot)
    return replace(derived, explanations=explain(derived.breakpoints, marks) if marks else (), plots=plots)


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


def states_of(run: Run, metric: str) -> Iterator[str]:
    """Of points whose starts disagree, the two states that describe them better than one."""
    table = run.measured
    rows = table[(table["metric"] == metric) & table["accepted"].astype(bool)]
    for at, part in rows.groupby(list(run.columns)) if run.columns else [((), rows)]:
        found = two_states(part["value"].tolist()) if STARTS_DISAGREE in flags_in(part) else None
        if found is not None:
            place = ", ".join(f"{name}={plain(value)}" for name, value in zip(run.columns, at, strict=True))
            both = " and ".join(f"{np.median(each):.4g} ({counted(each.size, 'start')})" for each in found)
            yield f"{f'{place}: ' if place else ''}two states of {metric}: {both}"


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


def run_title(run: Run) -> tuple[str, str]:
    """Title of a run, and its target and processor, for figures."""
    machine = (f"target {run.manifest.target}", run.node.text("cpu_model"), run.manifest.created[:10])
    return run.spec.title or run.spec.name, ", ".join(text for text in machine if text)


MOST_CURVES = 6
FEWEST_LOADS = 3
"""Fewer loads than this are no figure over load."""


def load_figures(run: Run, info: PlotInfo) -> tuple[Path, ...]:
    """Draw the figures of the load generator of a run; none without one."""
    table = run.table
    place = run.directory.plot_path
    accepted = {(str(p), int(a)) for p, a in table.loc[table["accepted"], ["point", "attempt"]].itertuples(index=False)}
    try:
        loads = _offered_loads(run, accepted)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"missing or invalid field {error} in the load records of {run.path}") from error
    drawn: tuple[Path, ...] = ()
    with_latency = [each for _, each in loads if each.latencies]
    if with_latency:
        last = min(len(with_latency), MOST_CURVES) - 1
        few = [with_latency[round(n * (len(with_latency) - 1) / max(last, 1))] for n in range(last + 1)]
        drawn += save(load.latency_distribution_figure(few, info=info), place, "latency")
        tail = load.latency_distribution_figure(few, complementary=True, info=info)
        drawn += save(tail, place, "latency-tail")
    shares = [(point, each) for point, each in loads if each.fraction is not None]
    one_program = len({point for point, _ in shares}) == 1 or len({e.fraction for _, e in shares}) == len(shares)
    if one_program and len(shares) >= FEWEST_LOADS:
        ascending = [each for _, each in shares]
        if with_latency:
            drawn += save(load.latency_over_load_figure(ascending, info=info), place, "latency-over-load")
        drawn += save(load.loss_figure(ascending, bounds=_bounds(table), info=info), place, "loss")
    if curves_over_size := _throughputs(table):
        drawn += save(load.throughput_figure(curves_over_size, info=info), place, "throughput")
    return drawn


def _offered_loads(run: Run, accepted: set[tuple[str, int]]) -> list[tuple[str, load.OfferedLoad]]:
    """Points and their loads, ascending loads, each with all of its accepted repetitions."""
    found: dict[tuple[str, float | None], list[Mapping[str, Any]]] = {}
    for point in run.directory.points():
        for entry in run.directory.trials(point):
            if "load" in entry and (point, entry["trial"]["attempt"]) in accepted:
                for offered in entry["load"]["offered"]:
                    found.setdefault((point, offered["fraction"]), []).append(offered)
    loads = [(key[0], _offered_load(key[1], some)) for key, some in found.items()]
    return sorted(loads, key=lambda each: each[1].fraction or each[1].rate_mpps)


def _offered_load(fraction: float | None, offered: Sequence[Mapping[str, Any]]) -> load.OfferedLoad:
    accounts = [each["program"] for each in offered]
    floors = _histograms([each["floor"] for each in offered if "floor" in each])
    return load.OfferedLoad(
        fraction,
        sum(account["rate_pps"] for account in accounts) / len(accounts) / 1e6,
        tuple(account["lost"] / account["sent"] for account in accounts),
        min(account["sent"] for account in accounts),
        any(account["flags"] for account in accounts),
        _histograms(accounts),
        floors[0].merge(*floors[1:]) if floors else None,
    )


def _histograms(accounts: Sequence[Mapping[str, Any]]) -> tuple[LatencyHistogram, ...]:
    records = [account["raw"].get("histogram") for account in accounts]
    return tuple(LatencyHistogram.from_record(record) for record in records if record is not None)


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
        middle, low, high = (values[end].to_numpy(dtype=float) for end in ("median", "min", "max"))
        curves.append(load.ThroughputCurve(label, values.index.to_numpy(dtype=float), middle, low, high, flagged))
    return curves
