"""From a run directory to its model, plots and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from p4perf.evaluation.fitting.component import DerivedModel, Evaluation, derive_model
from p4perf.evaluation.fitting.derivation import MIN_POINTS, FitOptions
from p4perf.evaluation.fitting.working_set import CacheMark, WorkingSet, cache_marks, explain
from p4perf.evaluation.plots import PlotInfo, model_figure, save
from p4perf.results import Manifest, Run
from p4perf.results.table import summarise
from p4perf.specs import ExperimentSpec, ModelSpec

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
        from p4perf.experiment.load_figures import load_figures

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

    Args:
        columns: those that distinguish points; a slope needs a single one that is ``numeric``.
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
