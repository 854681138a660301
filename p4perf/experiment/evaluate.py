"""From a run directory to its model, plots and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from p4perf.errors import NoVerdictError
from p4perf.evaluation.fitting.component import DerivedModel, derive_model
from p4perf.evaluation.fitting.options import MIN_POINTS, FitOptions
from p4perf.evaluation.fitting.working_set import CacheMark, WorkingSet, cache_marks, explain
from p4perf.evaluation.plots import PlotInfo, model_figure
from p4perf.evaluation.plots.outcome import Evaluation, Picture, draw, save
from p4perf.experiment.record import imported_by, origin, run_record
from p4perf.results import RunDirectory
from p4perf.results.table import summarise
from p4perf.specs import ExperimentSpec, ModelSpec, load_experiment
from p4perf.targets.base import NodeFacts

COST = "cost_cycles_per_packet"
BASELINE = "baseline_cycles_per_packet"


def evaluate_run(
    run: RunDirectory,
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
        run: the run directory.
        changes: fields of :class:`~p4perf.evaluation.fitting.component.FitOptions` that override the spec.
        plots: draw them.
        every_plot: draw a figure of its own for every number of parts.
        progress: called now and then with the finished share of the search.

    Raises:
        DataError: the run has no measurements, or they are damaged.
        NoVerdictError: no trial was accepted.
        UsageError: a change is wrong.
    """
    spec = load_experiment(str(run.path / "spec.yaml")).spec
    variable = swept_variable(spec)
    if spec.model is None or variable is None:
        return None
    manifest = run_record(run)
    table = run.read_measurements()
    if table.groupby(variable)["point"].nunique().max() > 1:
        return None
    facts = NodeFacts(manifest["node"])
    options = fit_options(spec, table, variable, whole="max_parts" in (changes or {}))

    def derived(metric: str) -> DerivedModel:
        return derive_model(
            table,
            x=variable,
            y=metric,
            name=spec.name,
            target=manifest["target"],
            x_scale=spec.model.x_scale if spec.model else "linear",
            options=replace(options, **(changes or {})),
            provenance=_provenance(run, manifest),
            progress=progress,
        )

    found = derived(spec.model.y)
    run.write_model(found.model.to_json())
    if not plots:
        return Evaluation(found, (), ())
    marks = run_marks(manifest, facts, variable)
    info = PlotInfo(
        title=spec.title or spec.name, machine=machine_text(manifest, facts), date=str(manifest["created"])[:10]
    )
    baseline = _baseline(table) if spec.model.y == "cycles_per_packet" else None
    picture = Picture(marks, baseline, info)
    drawn = draw(found, lambda name: run.plot_path(f"{found.model.y.name}{name}"), picture, every=every_plot)
    if spec.asks_load and imported_by(manifest) is None:
        from p4perf.experiment.load_figures import load_figures

        drawn += load_figures(run, run.plot_path, info)
    if spec.model.y != COST and COST in set(table["metric"]):
        cost = model_figure((other := derived(COST)).model, other.samples, marks=marks, info=info)
        drawn += save(cost, lambda name: run.plot_path(f"{COST}{name}"), "")
    return Evaluation(found, explain(found.model.fitting.split_x, marks) if marks else (), drawn)


def fit_options(spec: ExperimentSpec, table: pd.DataFrame, variable: str, *, whole: bool = False) -> FitOptions:
    """What the spec of a run says of its model; the defaults if it says nothing.

    Args:
        spec: the spec of the run.
        table: its measurements.
        variable: the swept variable.
        whole: leave the number of parts to be chosen, whatever the spec fixes.
    """
    model = spec.model or ModelSpec()
    return FitOptions(
        max_parts=model.max_parts,
        parts=None if whole else _parts_of_spec(model, table, variable),
        min_points=model.min_points,
        error=model.error,
        loss=model.loss,
        split_finder=model.split_finder,
        profile=model.profile,
        seed=spec.trials.seed,
    )


def _parts_of_spec(model: ModelSpec, table: pd.DataFrame, variable: str) -> int | None:
    """The number of parts that the spec fixes, unless a thinned sweep has too few points for it."""
    points = table.loc[(table["metric"] == model.y) & table["accepted"], variable].nunique()
    return model.parts if model.parts is not None and points >= model.parts * MIN_POINTS else None


def _baseline(table: pd.DataFrame) -> float | None:
    """Median of the baseline over all accepted trials, in cycles per packet."""
    rows = table[(table["metric"] == BASELINE) & table["accepted"]]
    return None if rows.empty else float(rows["value"].median())


def swept_variable(spec: ExperimentSpec) -> str | None:
    """The variable on the abscissa: the one that the model names, or the only one; None if there is none."""
    if spec.model is not None and spec.model.x is not None:
        return spec.model.x
    variables = list(spec.sweep.variables)
    return variables[0] if len(variables) == 1 and not spec.sweep.combined.subsets_of else None


def point_rows(run: RunDirectory, metric: str | None = None) -> tuple[list[dict[str, Any]], str, str]:
    """Points of a run with median, 95 % interval, accepted and rejected trials and flags; the metric and its unit.

    Raises:
        DataError: the run has no measurements of that metric; the message names the nearest.
    """
    spec = load_experiment(str(run.path / "spec.yaml")).spec
    table = run.read_measurements()
    if table.empty:
        raise NoVerdictError(f"{run.path} has no trial that ran to its end")
    chosen = metric or headline(spec, table)
    variables = list(_swept(run)) or ["point_index"]
    summary = summarise(table, chosen, variables)
    unit = str(summary["unit"].iloc[0])
    return [{str(k): _plain(v) for k, v in row.items()} for row in summary.to_dict("records")], chosen, unit


def headline(spec: ExperimentSpec, table: pd.DataFrame) -> str:
    """The modelled metric; without a model the first that the spec asks for, or one that falls into it."""
    if spec.model is not None:
        return spec.model.y
    asked = spec.metrics.collect[0]
    measured = [str(metric) for metric in table["metric"].unique()]
    return next((m for m in measured if m == asked), next((m for m in measured if m.startswith(f"{asked}_")), asked))


def _swept(run: RunDirectory) -> Mapping[str, Any]:
    """The swept values of the first point."""
    first = next(iter(run_record(run)["points"]), None)
    values = first.get("values") if isinstance(first, Mapping) else None
    return values if isinstance(values, Mapping) else {}


def flag_counts(run: RunDirectory) -> dict[str, int]:
    """How many accepted trials of a run carry each quality flag, most frequent first."""
    table = run.read_measurements()
    trials = table[table["accepted"].astype(bool)].drop_duplicates(["point", "attempt"])["flags"]
    counts = Counter(flag for flags in trials for flag in str(flags).split(",") if flag)
    return dict(counts.most_common())


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def run_marks(manifest: Mapping[str, Any], facts: NodeFacts, variable: str) -> tuple[CacheMark, ...]:
    """Where the tables fill the caches, if the number of entries is what is swept."""
    figures = manifest.get("working_set")
    if not figures or variable != "entries":
        return ()
    return cache_marks(WorkingSet(figures["fixed_bytes"], figures["bytes_per_entry"]), facts.cache_bytes)


def machine_text(manifest: Mapping[str, Any], facts: NodeFacts) -> str:
    """The machine of a run in a line: processor, DPDK, pages; or that the run is imported."""
    if (importer := imported_by(manifest)) is not None:
        return f"imported by {importer}"
    pages = "hugepages" if manifest["hugepages"] else "4 KiB pages"
    parts = [facts.text("cpu_model"), f"DPDK {facts.text('dpdk_version')}" if facts.text("dpdk_version") else "", pages]
    return ", ".join(part for part in parts if part)


def _provenance(run: RunDirectory, manifest: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("spec_hash", "versions", "node", "hugepages", "gate_ratio", "trials", "created", "testbed", "working_set")
    known = {"run": run.path.name, **{key: manifest.get(key) for key in keys}, "flags": flag_counts(run)}
    return known if (said := origin(manifest)) is None else {**known, "imported": said}
