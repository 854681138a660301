"""A comparison as data and as files: ``comparison.json``, ``comparison.csv`` and plots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p4perf.evaluation.comparison import Pair, RankPair
from p4perf.evaluation.comparison.subjects import Correlation
from p4perf.experiment.compare import ComparedExperiment, ComparedRun, RunComparison
from p4perf.models.component import ComponentModel
from p4perf.results.files import csv_text, interval_columns, json_number, strict_json, write_text_atomically
from p4perf.results.folders import dated_name, file_word, filled_folder, new_folder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA_VERSION = 1
"""Version of ``comparison.json``; it rises when a key changes its meaning or goes."""

KIND = "comparison"
PARENT = Path("comparisons")


def write_comparison(found: RunComparison, folder: Path | None, now: datetime) -> tuple[Path, tuple[Path, ...]]:
    """Write everything into a folder.

    Args:
        found: the comparison.
        folder: where; None makes a new one below ``comparisons``, named after what is compared and the time. A folder
            that is not there yet appears all at once; in one that is there, files of the same names are replaced.
        now: the time for its name.

    Returns:
        The folder, and the plots in it.

    Raises:
        StorageError: it cannot be written.
        UsageError: ``folder`` is a file.
    """
    figures = dict(_figures(found, now))

    def fill(place: Path) -> None:
        from p4perf.evaluation.plots import save_figure

        write_text_atomically(place / "comparison.json", strict_json(file_record(found), indent=2) + "\n")
        write_text_atomically(place / "comparison.csv", csv_text(rows(found)))
        for name, figure in figures.items():
            save_figure(figure, place / name)

    path = new_folder(PARENT / _name(found, now), fill) if folder is None else filled_folder(folder, fill)
    return path, tuple(path / name for name in figures)


def _name(found: RunComparison, now: datetime) -> str:
    experiments = [e.comparison.experiment for e in found.experiments]
    labels = list(dict.fromkeys(run.label for e in found.experiments for run in e.runs))
    what = experiments[0] if len(experiments) == 1 else f"{len(experiments)}-experiments"
    runs = "-vs-".join(file_word(label) for label in labels) if len(labels) <= 3 else f"{len(labels)}-runs"
    return dated_name((what, runs), now)


def _figures(found: RunComparison, now: datetime) -> Iterator[tuple[str, Figure]]:
    """Figures by file name, each as SVG and as PNG."""
    from p4perf.evaluation.plots import PlotInfo
    from p4perf.evaluation.plots.comparison import comparison_figure, overview_figure

    options, date = found.options, now.strftime("%Y-%m-%d")
    taken: set[str] = set()
    for experiment in found.experiments:
        info = PlotInfo(date=date, machine=_machine(experiment.runs))
        figure = comparison_figure(experiment.comparison, margin=options.margin, level=options.level, info=info)
        stem = file_word(experiment.comparison.experiment)
        while stem in taken or stem == "overview":
            stem += "-"
        taken.add(stem)
        yield from ((f"{stem}.{kind}", figure) for kind in ("svg", "png"))
    if len(found.experiments) > 1:
        every = [e.comparison for e in found.experiments]
        info = PlotInfo(date=date, machine=_machine([run for e in found.experiments for run in e.runs]))
        figure = overview_figure(every, margin=options.margin, level=options.level, info=info)
        yield from ((f"overview.{kind}", figure) for kind in ("svg", "png"))


def _machine(runs: Sequence[ComparedRun]) -> str:
    models = list(dict.fromkeys(run.manifest.machine["cpu_model"] for run in runs))
    return models[0] if len(models) == 1 else f"{len(models)} kinds of processors"


# --- rows of points


def rows(found: RunComparison) -> list[dict[str, Any]]:
    """One row for each point of each run, with the ratio to the reference where both have the point."""
    return [row for experiment in found.experiments for row in _experiment_rows(experiment)]


def _experiment_rows(experiment: ComparedExperiment) -> Iterator[dict[str, Any]]:
    comparison = experiment.comparison
    ratios = {pair.run: {p.x: p.ratio for p in pair.measured.points} for pair in comparison.pairs}
    by_x: dict[float, list[tuple[ComparedRun, Mapping[str, Any]]]] = {}
    for run in experiment.runs:
        for point in run.points:
            by_x.setdefault(float(point[comparison.x.name]), []).append((run, point))
    for x in sorted(by_x):
        for run, point in by_x[x]:
            ratio = ratios.get(run.label, {}).get(x)
            yield {
                "experiment": comparison.experiment,
                "variable": comparison.x.name,
                "x": point[comparison.x.name],
                "run": run.label,
                "median": json_number(point["median"]),
                "low": json_number(point["low"]),
                "high": json_number(point["high"]),
                "unit": comparison.y.unit,
                "n": point["n"],
                "rejected": point["rejected"],
                "flags": point["flags"],
                **interval_columns("ratio", ratio),
            }


# --- records


def file_record(found: RunComparison) -> dict[str, Any]:
    """The content of ``comparison.json``."""
    return {"schema_version": SCHEMA_VERSION, "kind": KIND, **record(found), "rows": rows(found)}


def record(found: RunComparison) -> dict[str, Any]:
    """Everything but the rows of points, as JSON values."""
    return {
        "margin": found.options.margin,
        "level": found.options.level,
        "resamples": found.options.resamples,
        "seed": found.options.seed,
        "warnings": list(found.warnings),
        "experiments": [_experiment_record(e) for e in found.experiments],
        "rank_correlations": [_rank_record(r) for r in found.ranks],
    }


def _experiment_record(experiment: ComparedExperiment) -> dict[str, Any]:
    comparison = experiment.comparison
    return {
        "experiment": comparison.experiment,
        "variable": comparison.x.name,
        "metric": comparison.y.name,
        "unit": comparison.y.unit,
        "reference": comparison.reference,
        "shared_points": list(comparison.shared),
        "runs": [_run_record(run) for run in experiment.runs],
        "differences": [{"kind": d.kind, "key": d.key, "values": dict(d.values)} for d in experiment.differences],
        "pairs": [_pair_record(pair) for pair in comparison.pairs],
    }


def _run_record(run: ComparedRun) -> dict[str, Any]:
    return {
        "label": run.label,
        "run": str(run.path),
        "target": run.manifest.target,
        "testbed": run.manifest.testbed,
        "created": run.manifest.created,
        "spec_hash": run.manifest.spec_hash or "",
        "planned_points": len(run.manifest.planned_points),
        "accepted_points": len(run.subject.samples.x),
        "machine": run.manifest.machine,
        "model": None if run.subject.model is None else _model_record(run.subject.model),
    }


def _model_record(model: ComponentModel) -> dict[str, Any]:
    return {
        "domain": list(model.domain),
        "error_metric": model.error,
        "error": json_number(model.fitting.error),
        "breakpoint_x": list(model.fitting.breakpoint_x),
        "formulas": list(model.formulas()),
    }


def _pair_record(pair: Pair) -> dict[str, Any]:
    said = pair.verdict
    mean = said.ratio
    return {
        "run": pair.run,
        "reference": pair.reference,
        "verdict": str(said.outcome),
        "reason": said.reason,
        **interval_columns("ratio", mean),
        "detectable": said.detectable,
        "points": said.points,
        "undefined_points": list(pair.measured.undefined),
        "ratios": [
            {"x": p.x, **interval_columns("ratio", p.ratio), "n": p.starts, "n_reference": p.reference_starts}
            for p in pair.measured.points
        ],
        "model_ratios": _curve_record(pair),
        "crossings": None
        if pair.crossings is None
        else [
            {"x": c.x, "low": c.low, "high": c.high, "above": c.above, "sure": c.sure, "step": c.step}
            for c in pair.crossings
        ],
    }


def _curve_record(pair: Pair) -> list[dict[str, Any]]:
    if pair.curve is None:
        return []
    columns = (pair.curve.x, pair.curve.value, pair.curve.low, pair.curve.high)
    names = ("x", "ratio", "ratio_low", "ratio_high")
    return [
        {name: json_number(value) for name, value in zip(names, row, strict=True)}
        for row in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _rank_record(ranks: RankPair) -> dict[str, Any]:
    found = ranks.correlation
    return {
        "a": ranks.a,
        "b": ranks.b,
        "cost": ranks.definition,
        "components": found.components,
        "costs": [
            {"experiment": name, "a": a, "b": b}
            for name, a, b in zip(ranks.experiments, ranks.costs_a, ranks.costs_b, strict=True)
        ],
        **_correlation("spearman", found.spearman),
        **_correlation("kendall", found.kendall),
        "verdict": found.verdict,
        "reason": found.reason,
    }


def _correlation(name: str, found: Correlation | None) -> dict[str, float | None]:
    if found is None:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high", f"{name}_p_value"))
    return {
        name: found.value,
        f"{name}_low": found.low,
        f"{name}_high": found.high,
        f"{name}_p_value": json_number(found.p_value),
    }
