"""The command that sets runs of the same experiment, or models of one component, side by side: compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p4perf.cli.app import app
from p4perf.cli.output import Format, FormatOption, emit, print_table, say, with_interval
from p4perf.errors import UsageError
from p4perf.records import Interval

if TYPE_CHECKING:
    from p4perf.evaluation.comparison import ComparedPair
    from p4perf.evaluation.comparison.curves import CurvePair
    from p4perf.evaluation.comparison.subjects import Correlation
    from p4perf.experiment.compare import ComparedExperiment, RunComparison
    from p4perf.experiment.subjects import ComparedModel, ComponentComparison, CurvesDocument


def compare_models(found: ComponentComparison, output: Path | None, fmt: Format) -> None:
    """Print the comparison, and write it as JSON if a folder is named."""
    from p4perf.experiment.subjects import curves_document
    from p4perf.results.files import json_text, write_text_atomically

    document = curves_document(found)
    if fmt is Format.TABLE:
        _print_component(found, document)
    else:
        emit(fmt, document)
    if output is not None:
        write_text_atomically(output / "curves.json", json_text(document.as_dict()))
        say(f"written: {output / 'curves.json'}")


def _print_component(found: ComponentComparison, document: CurvesDocument) -> None:
    curves = found.curves
    for subject in found.subjects:
        mark = " (reference)" if subject.label == curves.reference else ""
        say(f"{subject.label}{mark}: {subject.source}")
    for difference in found.differences:
        say(f"  {difference.text()}")
    for caution in found.cautions:
        say(f"note: {caution}")
    print_table([row for s in found.subjects for row in _part_rows(s)], title=f"models of {curves.component}")
    table: dict[float, dict[str, Any]] = {}
    for row in document.rows:
        line = table.setdefault(row.x, {curves.x.name: row.x})
        line[row.subject] = _cell(Interval.read(row), row.extrapolated)
        if row.subject != curves.reference:
            line[f"{row.subject} / {curves.reference}"] = _cell(row.ratio, row.ratio_extrapolated)
    print_table(list(table.values()), title="values; * is extrapolated")
    for pair in curves.pairs:
        say(_sentence(pair))
    for subject in found.subjects:
        for remark in subject.model.provenance.get("remarks", ()) if subject.published else ():
            say(f"{subject.label}: {remark}")


def _part_rows(subject: ComparedModel) -> list[dict[str, Any]]:
    """The segments of a curve; of a published one also those whose parameters are not printed."""
    from p4perf.evaluation.fitting.error_metrics import error_text

    model = subject.model
    name = model.y.name
    rows: list[dict[str, Any]] = [
        {
            "subject": subject.label,
            "from": f"{segment.start:.4g}",
            "to": f"{segment.end:.4g}",
            "function": formula.removeprefix(f"{name} = "),
            "unit": model.y.label(),
            "error": error_text(model.error, segment.error) if segment.error else "",
        }
        for segment, formula in zip(model.fitting.segments, model.formulas(), strict=True)
    ]
    said = model.provenance.get("segments", []) if subject.published else []
    for segment in said[len(rows) :]:
        function = f"{segment['function']}: {segment['printed']}"
        empty = {"unit": "", "error": f"not printed: {segment['not_printed']}"}
        ends = {"from": segment["from"], "to": segment["to"]}
        rows.append({"subject": subject.label, **ends, "function": function, **empty})
    return rows


def _sentence(pair: CurvePair) -> str:
    who = f"{pair.run} and {pair.reference}"
    if pair.compared is None:
        return f"{who}: no ratio: {pair.reason}"
    if pair.domain is None:
        return f"{who}: {pair.reason}"
    what = pair.compared.label()
    if pair.increase_from is not None:
        what += f" over the value at {pair.increase_from:g}"
    ratios = [r for x in (pair.domain[0], pair.domain[1]) if (r := pair.ratio(x)) is not None]
    said = ", ratio " + " to ".join(f"{ratio.value:.3g}" for ratio in ratios) if ratios else ""
    places = "; ".join(f"{c.x.value:.4g}{'' if c.sure else ' (unsure)'}" for c in pair.crossings or ())
    cross = f"the curves cross at {places}" if places else "the curves do not cross"
    return f"{who}: {what} from {pair.domain[0]:g} to {pair.domain[1]:g}{said}; {cross}"


def _cell(found: Interval | None, extrapolated: bool) -> str:
    text = "" if found is None else with_interval(found.value, found.low, found.high)
    return f"{text} *" if text and extrapolated else text


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
        list[float] | None, typer.Option("--at", help="With --component: an x at which to compare. Repeatable.")
    ] = None,
    folder: Annotated[
        Path, typer.Option("--in", help="With --component: folder of the runs, for subjects that are targets.")
    ] = Path("runs"),
    reference: Annotated[
        str | None,
        typer.Option("--reference", help="What the others are compared with: a target or a run; default: the first."),
    ] = None,
    metric: Annotated[str | None, typer.Option("--metric", help="Metric; default: the modelled one.")] = None,
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
        from p4perf.experiment.subjects import compare_component

        names = [str(run) for run in runs]
        curves = compare_component(component, names, folder=folder, reference=reference, metric=metric, at=at or [])
        compare_models(curves, output, fmt)
        return
    if at:
        raise UsageError("--at goes with --component")
    from p4perf.evaluation.comparison import ComparisonOptions
    from p4perf.experiment.compare import compare_runs
    from p4perf.experiment.comparison_files import comparison_document, write_comparison

    found = compare_runs(runs, reference=reference, metric=metric, options=ComparisonOptions(margin=margin))
    made, plots = write_comparison(found, output, datetime.now(UTC))
    for warning in found.warnings:
        say(f"warning: {warning}")
    if fmt is Format.TABLE:
        _print(found)
    else:
        emit(fmt, comparison_document(found, output=made, plots=plots))
    say(f"written: {made}")


def _print(found: RunComparison) -> None:
    for experiment in found.experiments:
        _say_machines(experiment)
        comparison = experiment.comparison
        title = f"{comparison.experiment}: {comparison.y.label()}, median with {100 * found.options.level:g} % interval"
        print_table(_point_rows(experiment), title=title)
        print_table(_model_rows(experiment), title=f"models over {comparison.x.label()}")
    print_table(_verdict_rows(found), title="verdicts")
    for experiment in found.experiments:
        for pair in experiment.comparison.pairs:
            say(f"{experiment.comparison.experiment}, {pair.run}: {pair.verdict.outcome}: {pair.verdict.reason}")
    if found.ranks:
        print_table(_rank_rows(found), title="order of the components")
        for ranks in found.ranks:
            say(f"{ranks.a} and {ranks.b}: {ranks.correlation.reason}; cost: {ranks.definition}")


def _say_machines(experiment: ComparedExperiment) -> None:
    """Which runs these are, and what differs between their machines."""
    reference = experiment.comparison.reference
    for run in experiment.runs:
        mark = " (reference)" if run.label == reference else ""
        flags = sorted({flag for point in run.points for flag in str(point["flags"]).split(",") if flag})
        say(f"{run.label}{mark}: {run.path}" + (f"; quality flags: {', '.join(flags)}" if flags else ""))
    machine = [d.text() for d in experiment.differences if d.kind == "machine"]
    imported = any(run.manifest.imported is not None for run in experiment.runs)
    same = (
        "of imported runs the machine is not known"
        if imported
        else "the machines do not differ in what is compared of them"
    )
    for text in machine or [same]:
        say(f"  {text}")


def _point_rows(experiment: ComparedExperiment) -> list[dict[str, Any]]:
    comparison = experiment.comparison
    x_name = comparison.x.name
    cells = {
        run.label: {float(p[x_name]): with_interval(p["median"], p["low"], p["high"]) for p in run.points if p["n"]}
        for run in experiment.runs
    }
    for pair in comparison.pairs:
        cells[f"{pair.run} / {pair.reference}"] = {p.x: p.ratio.text() for p in pair.measured.points}
    shown = {float(p[x_name]): p[x_name] for run in experiment.runs for p in run.points}
    return [{x_name: shown[x], **{name: known.get(x, "") for name, known in cells.items()}} for x in sorted(shown)]


def _model_rows(experiment: ComparedExperiment) -> list[dict[str, Any]]:
    from p4perf.evaluation.fitting.error_metrics import error_text

    rows = []
    for subject in experiment.comparison.subjects:
        model = subject.model
        if model is None:
            rows.append({"run": subject.label, "from": "", "to": "", "function": "no model", "error": ""})
            continue
        for segment, formula in zip(model.fitting.segments, model.formulas(), strict=True):
            rows.append(
                {
                    "run": subject.label,
                    "from": f"{segment.start:g}",
                    "to": f"{segment.end:g}",
                    "function": formula.removeprefix(f"{model.y.name} = "),
                    "error": error_text(model.error, segment.error),
                }
            )
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
                    "ratio": "" if ratio is None else ratio.text(),
                    "points": said.points,
                    "detectable": "" if said.detectable is None else f"{100 * said.detectable:.3g} %",
                    "models cross at": _crossings(pair),
                }
            )
    return rows


def _crossings(pair: ComparedPair) -> str:
    """Such as ``1200 [900, 1500], 40 (unsure)``; ``none`` if there are none."""
    if pair.crossings is None:
        return "no models to compare"
    texts = []
    for crossing in pair.crossings:
        ends = [f"{end:.3g}" if end is not None else "open" for end in crossing.x.ends]
        texts.append(f"{crossing.x.value:.4g} [{ends[0]}, {ends[1]}]{'' if crossing.sure else ' (unsure)'}")
    return "; ".join(texts) or "none"


def _rank_rows(found: RunComparison) -> list[dict[str, Any]]:
    def text(found: Correlation | None) -> str:
        return "" if found is None else f"{found.value.text()}, p = {found.p_value:.2g}"

    return [
        {
            "run": ranks.a,
            "other": ranks.b,
            "n": ranks.correlation.components,
            "Spearman's rho": text(ranks.correlation.spearman),
            "Kendall's tau": text(ranks.correlation.kendall),
            "verdict": ranks.correlation.verdict,
        }
        for ranks in found.ranks
    ]
