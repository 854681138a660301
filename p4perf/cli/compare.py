"""The commands that set results against others: compare, and reproduce (claims of papers)."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from p4perf.cli.app import (
    Format,
    FormatOption,
    QuietOption,
    WhereOption,
    app,
    emit,
    measured_text,
    print_table,
    refuse,
    say,
    told_by,
    with_interval,
)
from p4perf.errors import UsageError
from p4perf.records import Interval, counted
from p4perf.results.files import json_text, write_text_atomically

if TYPE_CHECKING:
    from p4perf.evaluation.comparison import ComparedPair
    from p4perf.evaluation.comparison.curves import CurveComparison, CurvePair, CurveSubject
    from p4perf.evaluation.papers import Finding
    from p4perf.experiment.compare import ComparedExperiment, RunComparison
    from p4perf.experiment.subjects import CurvesDocument
    from p4perf.models.component import ComponentModel


def _print_component(curves: CurveComparison, document: CurvesDocument) -> None:
    for subject in curves.subjects:
        mark = " (reference)" if subject.label == curves.reference else ""
        say(f"{subject.label}{mark}: {subject.source}")
    for difference in document.differences:
        say(f"  {difference.text()}")
    for caution in document.cautions:
        say(f"note: {caution}")
    print_table([row for s in curves.subjects for row in _part_rows(s)], title=f"models of {curves.component}")
    table: dict[float, dict[str, Any]] = {}
    for row in document.rows:
        line = table.setdefault(row.x, {curves.x.name: row.x})
        line[row.subject] = _cell(Interval.read(row), row.extrapolated)
        if row.subject != curves.reference:
            line[f"{row.subject} / {curves.reference}"] = _cell(row.ratio, row.ratio_extrapolated)
    print_table(list(table.values()), title="values; * is extrapolated")
    for pair in curves.pairs:
        say(_sentence(pair))
    for subject in curves.subjects:
        for remark in subject.model.provenance.get("remarks", ()) if subject.published else ():
            say(f"{subject.label}: {remark}")


def _part_rows(subject: CurveSubject) -> list[dict[str, Any]]:
    """The segments of a curve; of a published one also those whose parameters are not printed."""
    model = subject.model
    head = {"subject": subject.label, "from": "", "to": "", "function": "", "unit": model.y.label()}
    rows = [head | row for row in _segment_rows(model)]
    said = model.provenance.get("segments", []) if subject.published else []
    for segment in said[len(rows) :]:
        function = f"{segment['function']}: {segment['printed']}"
        empty = {"unit": "", "error": f"not printed: {segment['not_printed']}"}
        ends = {"from": segment["from"], "to": segment["to"]}
        rows.append({"subject": subject.label, **ends, "function": function, **empty})
    return rows


def _segment_rows(model: ComponentModel) -> list[dict[str, Any]]:
    """The segments of a curve. Of a published one, an error of 0 is one that is not printed."""
    from p4perf.evaluation.fitting.error_metrics import error_text
    from p4perf.models.published import is_published

    return [
        {
            "from": f"{segment.start:g}",
            "to": f"{segment.end:g}",
            "function": formula.removeprefix(f"{model.y.name} = "),
            "error": "" if is_published(model) and not segment.error else error_text(model.error, segment.error),
        }
        for segment, formula in zip(model.fitting.segments, model.formulas(), strict=True)
    ]


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
        list[str],
        Argument(help="Campaigns, or two or more runs of each experiment; with --component, anything with a model."),
    ],
    component: Annotated[
        str | None,
        Option(help="Compare models of this component: published (t4p4s@scholz2021), model files, runs, targets."),
    ] = None,
    at: Annotated[list[float] | None, Option(help="With --component: an x at which to compare. Repeatable.")] = None,
    folder: Annotated[Path, Option("--in", help="Folder to search for runs and, with --component, targets.")] = Path(
        "runs"
    ),
    reference: Annotated[
        str | None, Option(help="Target or run to compare the others with; default: the first.")
    ] = None,
    metric: Annotated[str | None, Option(help="Metric; default: the modelled one.")] = None,
    where: WhereOption = None,
    margin: Annotated[str, Option(help="Smallest difference that matters, such as 5% or 0.05.")] = "5%",
    output: Annotated[
        Path | None, Option("--output", "-o", help="Folder for data and plots; default: write nothing.")
    ] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Compare runs of the same experiments, or models of one component."""
    from p4perf import api

    if component is not None:
        from p4perf.experiment.subjects import curves_document

        refuse({"--where": where}, "for runs, without --component")
        curves = api.compare(runs, component=component, folder=folder, reference=reference, metric=metric, at=at or ())
        document = curves_document(curves)
        emit(fmt, document, tables=lambda: _print_component(curves, document))
        if output is not None:
            write_text_atomically(output / "curves.json", json_text(document.as_dict()))
            say(f"written: {output / 'curves.json'}")
        return
    if at:
        raise UsageError("--at goes with --component")
    from p4perf.experiment.compare import comparison_document, write_comparison
    from p4perf.specs.units import share

    smallest = share(margin, "--margin")
    found = api.compare(runs, folder=folder, reference=reference, metric=metric, margin=smallest, where=where or ())
    files: dict[str, Any] = {}
    if output is not None:
        files = dict(zip(("output", "plots"), write_comparison(found, output, datetime.now(UTC)), strict=True))
    for warning in found.warnings:
        say(f"warning: {warning}")
    emit(fmt, comparison_document(found, **files), tables=lambda: _print(found))
    say("-o FOLDER writes the data and the plots" if output is None else f"written: {files['output']}")


def _print(found: RunComparison) -> None:
    from p4perf.results.table import LEVEL

    for experiment in found.experiments:
        _say_machines(experiment)
        comparison = experiment.comparison
        title = f"{comparison.experiment}: {comparison.y.label()}, median with {100 * LEVEL:g} % interval"
        print_table(_point_rows(experiment), title=title)
        if any(subject.model is not None for subject in comparison.subjects):
            print_table(_model_rows(experiment), title=f"models over {comparison.x.label()}")
    print_table(_verdict_rows(found), title="verdicts")
    for experiment in found.experiments:
        for pair in experiment.comparison.pairs:
            say(f"{experiment.comparison.experiment}, {pair.run}: {pair.verdict.outcome}: {pair.verdict.reason}")
    if found.ranks:
        print_table(_rank_rows(found), title="order of the components")
        for ranks in found.ranks:
            say(f"{ranks.a} and {ranks.b}: {ranks.reason}; cost: {ranks.cost}")


def _say_machines(experiment: ComparedExperiment) -> None:
    """Which runs these are, and what differs between their machines."""
    reference = experiment.comparison.reference
    for run in experiment.runs:
        mark = " (reference)" if run.label == reference else ""
        flags = sorted({flag for point in run.points for flag in str(point["flags"]).split(",") if flag})
        say(f"{run.label}{mark}: {run.path}" + (f"; quality flags: {', '.join(flags)}" if flags else ""))
    machine = [d.text() for d in experiment.differences if d.kind == "machine"]
    imported = any(run.manifest.imported is not None for run in experiment.runs)
    same = "of imported runs the machine is not known" if imported else "no differences between the machines were found"
    for text in machine or [same]:
        say(f"  {text}")


def _point_rows(experiment: ComparedExperiment) -> list[dict[str, Any]]:
    comparison = experiment.comparison
    x_name = comparison.x.name
    cells = {
        run.label: {float(p[x_name]): measured_text(p["median"], p["low"], p["high"]) for p in run.points if p["n"]}
        for run in experiment.runs
    }
    for pair in comparison.pairs:
        cells[f"{pair.run} / {pair.reference}"] = {p.x: p.ratio.rounded() for p in pair.measured.points}
    shown = {float(p[x_name]): p[x_name] for run in experiment.runs for p in run.points}
    return [{x_name: shown[x], **{name: known.get(x, "") for name, known in cells.items()}} for x in sorted(shown)]


def _model_rows(experiment: ComparedExperiment) -> list[dict[str, Any]]:
    none = {"from": "", "to": "", "function": "no model", "error": ""}
    return [
        {"run": subject.label, **row}
        for subject in experiment.comparison.subjects
        for row in ([none] if subject.model is None else _segment_rows(subject.model))
    ]


def _verdict_rows(found: RunComparison) -> list[dict[str, Any]]:
    return [
        {
            "experiment": experiment.comparison.experiment,
            "run": pair.run,
            "reference": pair.reference,
            "verdict": str(pair.verdict.outcome),
            "ratio": "" if pair.verdict.ratio is None else pair.verdict.ratio.rounded(),
            "points": pair.verdict.points,
            "detectable": "" if pair.verdict.detectable is None else f"{100 * pair.verdict.detectable:.3g} %",
            "models cross at": _crossings(pair),
        }
        for experiment in found.experiments
        for pair in experiment.comparison.pairs
    ]


def _crossings(pair: ComparedPair) -> str:
    """Such as ``1200 (900 .. 1500); 2 unsure``; ``none`` if there are none."""
    if pair.crossings is None:
        return "no models to compare"
    sure = [c.x.rounded() for c in pair.crossings if c.sure]
    others = len(pair.crossings) - len(sure)
    return "; ".join([*sure, *([f"{others} unsure"] if others else [])]) or "none"


def _rank_rows(found: RunComparison) -> list[dict[str, Any]]:
    def text(value: Interval | None, p_value: float | None) -> str:
        if value is None or p_value is None:
            return ""
        return f"{with_interval(value.value, value.low, value.high)}, p = {p_value:.2g}"

    return [
        {
            "run": ranks.a,
            "other": ranks.b,
            "n": ranks.components,
            "Spearman's rho": text(ranks.spearman, ranks.spearman_p_value),
            "Kendall's tau": text(ranks.kendall, ranks.kendall_p_value),
            "verdict": ranks.verdict,
        }
        for ranks in found.ranks
    ]


class Only(StrEnum):
    ANALYTIC = "analytic"
    PUBLISHED = "published"
    MEASURED = "measured"


@app.command()
def reproduce(
    claims: Annotated[
        list[str] | None,
        Argument(
            metavar="[PAPER[:CLAIM]]...",
            help="Papers (scholz2021), their figures, tables and equations (scholz2021:fig2), single claims "
            "(scholz2021:fig2-four-parts), eivu, or a FILE.yaml of your own.",
            show_default=False,
        ),
    ] = None,
    every: Annotated[bool, Option("--all", help="Check the claims of all papers.")] = False,
    quick: Annotated[bool, Option("--quick", help="Measure few points; takes a few minutes.")] = False,
    only: Annotated[list[Only] | None, Option(help="Only claims of this kind. Repeatable.", show_default=False)] = None,
    show: Annotated[bool, Option("--list", help="List the claims without checking them.")] = False,
    data: Annotated[Path | None, Option(help="For eivu: folder with an eivu_results.csv of your own.")] = None,
    testbed: Annotated[str, Option(help="Testbed of the experiments, as in p4perf run.")] = "local",
    budget: Annotated[str | None, Option(help="Total time, such as 5m: claims that do not fit are not run.")] = None,
    output: Annotated[
        Path | None, Option("--output", "-o", help="Folder of a new or an earlier reproduction; default: a new one.")
    ] = None,
    quiet: QuietOption = False,
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Check claims of published papers by computing or measuring.

    Without a claim, --all or another choice, lists the papers and how long each takes. Exit code 1 if a verdict is not
    the expected one. Judges the claims of eivu, the study of virtual network I/O, from its data or your own. Skips
    claims that do not fit into --budget; the same command with the same --output continues.
    """
    from p4perf import api
    from p4perf.cli.progress import WholeProgress
    from p4perf.cli.vio import print_claims
    from p4perf.evaluation.papers import chosen_claims
    from p4perf.experiment import reproduction

    if claims == ["eivu"]:
        given = {"--quick": quick, "--only": only, "--list": show, "--output": output, "--budget": budget}
        refuse(given, "for papers, not for eivu")
        print_claims(data, fmt)
        return 0
    refuse({"--data": data}, "for eivu only")
    if show:
        if quick or output is not None or budget is not None:
            raise UsageError("--list checks nothing", hint="leave --quick, --budget and --output out")
        chosen = chosen_claims(claims or (), only or ())
        if fmt is Format.TABLE:
            rows = [(f"{p.key}:{c.id}", c, "" if c.check else f" ({c.reason})") for p, c in chosen]
            print_table([{"claim": key, "expected": c.expected, "what": c.claim + why} for key, c, why in rows])
        else:
            emit(fmt, reproduction.listed(chosen))
        return 0
    if not (claims or every or quick or only or output or budget):
        told_by(quiet=quiet)("planning what each paper would measure here, to estimate its time")
        emit(fmt, reproduction.papers(testbed))
        say("p4perf reproduce --all checks everything; with --quick, few points are measured")
        return 0
    try:
        with WholeProgress(quiet=quiet) as bar:
            found = api.reproduce(
                claims or (), all=every, quick=quick, only=only or (), testbed=testbed, budget=budget, output=output,
                watcher=bar,
            )  # fmt: skip
    except KeyboardInterrupt:
        folder = output or max(reproduction.PARENT.glob(f"{reproduction.KIND}--*"), default=reproduction.PARENT)
        say(f"\nstopped; everything finished is on disk. Continue with the same command and --output {folder}")
        raise
    findings, code = found.findings, found.code
    summary = reproduction.summary_record(findings, code)
    document = reproduction.ReproductionDocument.read(summary, output=found.path, quick=quick, rows=findings)
    table = [
        {
            "claim": f"{row.paper}:{row.claim}",
            "expected": row.paper_value,
            "here": row.our_value,
            "evidence": row.evidence or "",
            "verdict": row.verdict
            + ("" if row.as_expected else " (not expected)")
            + (f": {row.reason}" if row.verdict == "not possible here" else ""),
        }
        for row in document.rows
    ]
    emit(fmt, document, rows=table if fmt is Format.TABLE else None)
    _conclude(findings)
    for path in found.files:
        say(f"written: {path}")
    return int(code)


def _conclude(findings: tuple[Finding, ...]) -> None:
    for finding in findings:
        if finding.verdict == "not possible here" and finding.failure:
            say(f"not possible here: {finding.key}: {finding.reason}")
        elif not finding.as_expected:
            why = "; ".join((*finding.missed, *finding.drifted)) or finding.reason
            say(f"not as expected: {finding.key} is {finding.verdict}, not {finding.claim.expected}: {why}")
    verdicts = [finding.verdict for finding in findings]
    listed = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(sorted(verdicts)))
    unexpected = sum(not finding.as_expected for finding in findings)
    if unrun := sum(not finding.was_run for finding in findings):
        say(f"{counted(unrun, 'claim')} not run: a larger --budget or --quick, and the same --output, continues")
    said = (
        f"{counted(unexpected, 'verdict')} differ{'s' if unexpected == 1 else ''} from the"
        if unexpected
        else "these are the"
    )
    say(f"{counted(len(findings), 'claim')}: {listed}; {said} expected verdicts")
    positive = [finding for finding in findings if finding.verdict == finding.claim.positive]
    bases = Counter(finding.claim.basis for finding in positive)
    say(
        f"reproduced by independent evidence: {bases['independent']}; transcribed from the paper: "
        f"{bases['transcribed']}; resting on our own curves, bounds or reconstructions: {bases['own']}"
    )
    if ours := sum(bool(finding.claim.inference) for finding in findings):
        rest = "rests" if ours == 1 else "rest"
        say(f"{ours} of them {rest} in part on our reading of the paper, which the report states")
