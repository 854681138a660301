"""The command that sets runs of the same experiment side by side: compare."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p4perf.cli.app import app
from p4perf.cli.output import Format, FormatOption, emit, say
from p4perf.errors import UsageError

if TYPE_CHECKING:
    from p4perf.evaluation.comparison import Pair
    from p4perf.evaluation.comparison.ranks import Correlation
    from p4perf.experiment.compare import ComparedExperiment, RunComparison


@app.command()
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Run directories: two or more of each experiment; with --component, what has a model."),
    ],
    component: Annotated[
        str | None,
        typer.Option(
            "--component",
            help="Compare models of this component: published ones (t4p4s@scholz2021), model files, runs, targets.",
        ),
    ] = None,
    at: Annotated[
        list[float] | None, typer.Option("--at", help="With --component: an x at which to compare. May be repeated.")
    ] = None,
    folder: Annotated[
        Path, typer.Option("--in", help="With --component: folder of the runs, for subjects that are targets.")
    ] = Path("runs"),
    reference: Annotated[
        str | None,
        typer.Option("--reference", help="What the others are compared with: a target or a run; default: the first."),
    ] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", help="Metric to compare; default: the modelled one.")
    ] = None,
    margin: Annotated[
        float, typer.Option("--margin", min=0.001, max=0.9, help="Smallest difference that matters; 0.05 is 5 %.")
    ] = 0.05,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the data and the plots; default: a new one.")
    ] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Compare runs of the same experiments on several targets or machines, or models of one component."""
    from datetime import UTC, datetime

    if component is not None:
        from p4perf.cli.compare_component import compare_models

        names = [str(run) for run in runs]
        compare_models(
            component, names, folder=folder, reference=reference, metric=metric, at=at or [], output=output, fmt=fmt
        )
        return
    if at:
        raise UsageError("--at goes with --component")
    from p4perf.evaluation.comparison import ComparisonOptions
    from p4perf.experiment.compare import compare_runs
    from p4perf.experiment.comparison_files import record, rows, write_comparison

    found = compare_runs(runs, reference=reference, metric=metric, options=ComparisonOptions(margin=margin))
    made, plots = write_comparison(found, output, datetime.now(UTC))
    for warning in found.warnings:
        say(f"warning: {warning}")
    if fmt is Format.TABLE:
        _print(found)
    else:
        more = {"output": str(made), "plots": [str(plot) for plot in plots], **record(found)}
        emit(fmt, "comparison", rows(found), **more)
    say(f"written: {made}")


def _print(found: RunComparison) -> None:
    for experiment in found.experiments:
        _say_machines(experiment)
        comparison = experiment.comparison
        title = f"{comparison.experiment}: {comparison.y.label()}, median with {_percent(found)} interval"
        emit(Format.TABLE, "", _point_rows(experiment), title=title)
        emit(Format.TABLE, "", _model_rows(experiment), title=f"models over {comparison.x.label()}")
    emit(Format.TABLE, "", _verdict_rows(found), title="verdicts")
    for experiment in found.experiments:
        for pair in experiment.comparison.pairs:
            say(f"{experiment.comparison.experiment}, {pair.run}: {pair.verdict.outcome}: {pair.verdict.reason}")
    if found.ranks:
        emit(Format.TABLE, "", _rank_rows(found), title="order of the components")
        for ranks in found.ranks:
            say(f"{ranks.a} and {ranks.b}: {ranks.correlation.reason}; cost: {ranks.definition}")


def _percent(found: RunComparison) -> str:
    return f"{100 * found.options.level:g} %"


def _say_machines(experiment: ComparedExperiment) -> None:
    """Which runs these are, and what differs between their machines."""
    from p4perf.experiment.record import imported_by

    reference = experiment.comparison.reference
    for run in experiment.runs:
        mark = " (reference)" if run.label == reference else ""
        flags = sorted({flag for point in run.points for flag in str(point["flags"]).split(",") if flag})
        say(f"{run.label}{mark}: {run.path}" + (f"; quality flags: {', '.join(flags)}" if flags else ""))
    machine = [d.text() for d in experiment.differences if d.kind == "machine"]
    imported = any(imported_by(run.manifest) is not None for run in experiment.runs)
    same = (
        "of imported runs the machine is not known"
        if imported
        else "the machines do not differ in what is compared of them"
    )
    for text in machine or [same]:
        say(f"  {text}")


def _point_rows(experiment: ComparedExperiment) -> list[dict[str, Any]]:
    """The points side by side."""
    comparison = experiment.comparison
    x_name = comparison.x.name
    cells = {
        run.label: {float(p[x_name]): _with_interval(p["median"], p["low"], p["high"]) for p in run.points if p["n"]}
        for run in experiment.runs
    }
    for pair in comparison.pairs:
        cells[f"{pair.run} / {pair.reference}"] = {
            p.x: _with_interval(p.ratio.value, p.ratio.low, p.ratio.high) for p in pair.measured.points
        }
    shown = {float(p[x_name]): p[x_name] for run in experiment.runs for p in run.points}
    return [{x_name: shown[x], **{name: known.get(x, "") for name, known in cells.items()}} for x in sorted(shown)]


def _model_rows(experiment: ComparedExperiment) -> list[dict[str, Any]]:
    from p4perf.evaluation.error_metrics import error_text

    rows = []
    for subject in experiment.comparison.subjects:
        model = subject.model
        if model is None:
            rows.append({"run": subject.label, "from": "", "to": "", "function": "no model", "error": ""})
            continue
        for part, formula in zip(model.fitting.parts, model.formulas(), strict=True):
            row: Mapping[str, Any] = {
                "run": subject.label,
                "from": f"{part.start:g}",
                "to": f"{part.end:g}",
                "function": formula.removeprefix(f"{model.y.name} = "),
                "error": error_text(model.error, part.error),
            }
            rows.append(dict(row))
    return rows


def _verdict_rows(found: RunComparison) -> list[dict[str, Any]]:
    rows = []
    for experiment in found.experiments:
        for pair in experiment.comparison.pairs:
            said = pair.verdict
            ratio = said.ratio
            rows.append(
                {
                    "experiment": experiment.comparison.experiment,
                    "run": pair.run,
                    "reference": pair.reference,
                    "verdict": str(said.outcome),
                    "ratio": "" if ratio is None else _with_interval(ratio.value, ratio.low, ratio.high),
                    "points": said.points,
                    "detectable": "" if said.detectable is None else f"{100 * said.detectable:.3g} %",
                    "models cross at": _crossings(pair),
                }
            )
    return rows


def _crossings(pair: Pair) -> str:
    """Such as ``1200 [900, 1500], 40 (unsure)``; ``none`` if there are none."""
    if pair.crossings is None:
        return "no models to compare"
    texts = []
    for crossing in pair.crossings:
        ends = [f"{end:.3g}" if end is not None else "open" for end in (crossing.low, crossing.high)]
        texts.append(f"{crossing.x:.4g} [{ends[0]}, {ends[1]}]{'' if crossing.sure else ' (unsure)'}")
    return "; ".join(texts) or "none"


def _rank_rows(found: RunComparison) -> list[dict[str, Any]]:
    return [
        {
            "run": ranks.a,
            "other": ranks.b,
            "n": ranks.correlation.components,
            "Spearman's rho": _correlation(ranks.correlation.spearman),
            "Kendall's tau": _correlation(ranks.correlation.kendall),
            "verdict": ranks.correlation.verdict,
        }
        for ranks in found.ranks
    ]


def _correlation(found: Correlation | None) -> str:
    if found is None:
        return ""
    return f"{_with_interval(found.value, found.low, found.high)}, p = {found.p_value:.2g}"


def _with_interval(value: float, low: float | None, high: float | None) -> str:
    """Such as ``12.3 [12.1, 12.6]``."""
    return f"{value:.4g}" if low is None or high is None else f"{value:.4g} [{low:.4g}, {high:.4g}]"
