"""The commands that look at specs, runs and machines: list, check, status, show, doctor."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from p4perf.cli.app import (
    Format,
    FormatOption,
    PointsOption,
    RunArgument,
    SetOption,
    SkipOption,
    app,
    emit,
    measured_text,
    near,
    once,
    refuse,
    resuming,
    say,
    say_origin,
    with_interval,
)
from p4perf.errors import ExitCode, UsageError
from p4perf.records import Document, Record, Scalar, as_rows, counted, doc, json_schema, spread
from p4perf.results import Run, find_run
from p4perf.results.campaign import CampaignDirectory, campaign_of
from p4perf.results.names import RunSummary, siblings

if TYPE_CHECKING:
    from p4perf.api.setup import CampaignDocument
    from p4perf.experiment.campaign_report import CellRecord
    from p4perf.experiment.doctor import DoctorDocument


Plugins = Literal["targets", "testbeds", "components", "generators", "load-generators", "searches", "importers"]
Papers = Literal["functions", "hardware", "operations", "published-models", "eivu", "eivu-cells"]
What = Literal[Plugins, Papers, "experiments", "metrics", "models", "runs"]


class _ShowRow(Record):
    values: dict[str, Scalar] = spread("variable", "value of a swept variable; `point_index` if there are none")
    median: float | None = doc("median of the accepted trials; null without any", "of the metric")
    low: float | None = doc("lower end of its 95 % interval", "of the metric")
    high: float | None = doc("upper end", "of the metric")
    unit: str = doc("unit of the metric")
    n: int = doc("accepted trials")
    rejected: int = doc("rejected trials that ran to their end")
    flags: str = doc("[flags](measuring.md#quality-flags) of the accepted trials, separated by commas")


class ShowDocument(Document, kind="show"):
    """`p4perf show RUN`: one row for each point."""

    metric: str = doc("metric that is shown")
    unit: str = doc("its unit")
    run: str = doc("path of the run directory, as it was given")
    rows: tuple[_ShowRow, ...] = doc("")


@app.command("list")
def list_(
    what: Annotated[What, Argument(help="What to list.")] = "experiments",
    place: Annotated[
        Path | None, Argument(metavar="[FOLDER]", help="For runs: their folder.", show_default="runs")
    ] = None,
    folder: Annotated[Path | None, Option("--in", help="The same as FOLDER.")] = None,
    components: Annotated[
        bool, Option("--components", help="For targets or generators: show which experiments they support.")
    ] = False,
    limits: Annotated[
        bool, Option("--limits", help="For targets or generators: show missing constructs and limits.")
    ] = False,
    item: Annotated[list[str] | None, Option(help="For eivu: only these items, such as 014. Repeatable.")] = None,
    as_spec: Annotated[bool, Option("--spec", help="For eivu: print a spec that measures the items.")] = False,
    data: Annotated[Path | None, Option(help="For eivu-cells: folder with an eivu_results.csv of your own.")] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """List experiments, runs, targets, metrics, models and more."""
    from p4perf.api.listing import list_items
    from p4perf.cli.vio import print_items

    if what != "runs":
        refuse({"FOLDER": place, "--in": folder}, "for runs only")
    if what not in ("targets", "generators"):
        refuse({"--components": components, "--limits": limits}, "for targets and generators only")
    if what != "eivu":
        refuse({"--item": item, "--spec": as_spec}, "for eivu only")
    if what != "eivu-cells":
        refuse({"--data": data}, "for eivu-cells only")
    if what == "eivu":
        print_items(item, fmt, as_spec=as_spec)
    elif what == "eivu-cells":
        emit(fmt, list_items(what, data=data))
    elif components or limits:
        emit(fmt, list_items(what, components=components, limits=limits))
    elif what == "runs":
        from p4perf.api import list_runs

        rows = tuple(
            map(RunSummary.of, list_runs(place or folder or Path("runs"), told=lambda text: say(f"note: {text}")))
        )
        document = Document.KINDS["list.runs"].read(None, rows=rows)
        emit(fmt, document, rows=_short(rows) if fmt is Format.TABLE else None)
    else:
        document = list_items(what)
        emit(fmt, document, rows=_dated(document) if what == "models" and fmt is Format.TABLE else None)


def _dated(models: Document) -> list[dict[str, Any]]:
    """Cost models with the day on which they were made; those that ship have no file."""
    from p4perf.evaluation.prediction.library import REFERENCE

    rows = models.as_dict()["rows"]
    return [
        {
            **row,
            "made": row["made"][:10],
            "file": "ships with p4perf" if row["file"] == REFERENCE else row["file"],
        }
        for row in rows
    ]


def _short(rows: Sequence[RunSummary]) -> list[dict[str, Any]]:
    """What people want to know of runs; the experiment and the place are in the name."""
    chosen = any(row.accuracy is not None for row in rows)
    return [
        {
            "run": row.run,
            "began": row.created[:16].replace("T", " "),
            "complete points": f"{row.finished} of {row.points}",
            "trials": row.trials,
            "planned": None if row.accuracy else row.wanted,
            **({"error": "" if row.error is None else f"{100 * row.error:.3g} %"} if chosen else {}),
            "state": row.state,
        }
        for row in rows
    ]


@app.command()
def check(
    spec: Annotated[
        str | None,
        Argument(
            help="Experiment of the catalogue, or path of a spec file; with --schema, kind of a JSON document.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        bool, Option("--schema", help="Print the JSON Schema of specs, or of a kind of document.")
    ] = False,
    target: Annotated[
        list[str] | None, Option("--target", "-t", help="Also check that this target can measure it here. Repeatable.")
    ] = None,
    testbed: Annotated[str, Option(help="Testbed of the target.")] = "local",
    sets: SetOption = None,
    points: PointsOption = None,
    skip_impossible: SkipOption = False,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Check a spec, and with --target whether the target can measure it.

    With --schema, prints the JSON Schema of specs, for editors, or of a document that a command prints, named by its
    kind, such as comparison or list.runs.
    """
    from p4perf.api import setup

    if schema:
        refuse({"--target": target, "--set": sets, "--points": points}, "a schema is of all specs")
        _print_schema(spec)
        return
    if spec is None:
        raise UsageError("no spec given", hint="p4perf list shows the catalogue")
    found = setup.check(
        spec,
        once(target),
        testbed=testbed,
        set=sets or (),
        points=points,
        skip_impossible=skip_impossible,
        told=say,
    )
    emit(fmt, found)


def _print_schema(document: str | None) -> None:
    from p4perf.specs import json_schema_text
    from p4perf.specs.messages import nearest

    if document is None:
        sys.stdout.write(json_schema_text())
        return
    known = documents()
    if document not in known:
        raise UsageError(f"unknown document {document!r}", hint=nearest(document, list(known), "documents"))
    sys.stdout.write(json.dumps(json_schema(known[document]), indent=2, ensure_ascii=False) + "\n")


ELSEWHERE = (
    "p4perf.api.listing",
    "p4perf.api.papers",
    "p4perf.api.setup",
    "p4perf.api.sharing",
    "p4perf.evaluation.papers.takeya2024.eivu",
    "p4perf.evaluation.prediction.record",
    "p4perf.experiment.compare",
    "p4perf.experiment.doctor",
    "p4perf.experiment.factors",
    "p4perf.experiment.gate",
    "p4perf.experiment.many",
    "p4perf.experiment.opq",
    "p4perf.experiment.reproduction",
    "p4perf.experiment.subjects",
)
"""Modules with documents that no module of the command line imports at its start."""


def documents() -> dict[str, type[Document]]:
    """All documents that commands print, by kind."""
    from p4perf.cli import loaded

    loaded()
    for module in ELSEWHERE:
        importlib.import_module(module)
    return dict(sorted(Document.KINDS.items()))


@app.command()
def status(
    run: Annotated[
        Path, Argument(metavar="[RUN]", parser=find_run, help="A run directory, or the folder of a campaign.")
    ] = Path("latest"),
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Show the progress of a run or campaign."""
    from p4perf.api import setup

    found = setup.status(run)
    if isinstance(found, setup.CampaignDocument):
        emit(fmt, found, rows=_progress(found) if fmt is Format.TABLE else None)
        return
    row = RunSummary.of(Run.open(run))
    say_origin(Run.open(run).identity)
    emit(fmt, found, rows=_short([row]) if fmt is Format.TABLE else None)
    if fmt is Format.TABLE and not row.complete and not row.in_progress:
        say(f"{counted(row.trials, 'trial')} on disk; {resuming(campaign_of(run) or run)} continues it")


def _progress(campaign: CampaignDocument) -> list[dict[str, Any]]:
    keys = ("experiment", "target", "state", "points", "accepted", "repetitions", "wall_s", "what", "run")
    return [{key: getattr(row, key) for key in keys} for row in campaign.rows]


def emit_campaign(folder: CampaignDirectory, fmt: Format) -> CampaignDocument:
    """Print what each experiment of a campaign costs on each target, and say how to see more; the document."""
    from p4perf.api.setup import campaign_document

    document = campaign_document(folder)
    metrics = {f"{row.metric} [{row.unit}]" for row in document.rows if row.metric}
    one = metrics.pop() if len(metrics) == 1 else ""
    title = f"{one}{', ' if one else ''}median (95 % interval) at the first and the last point"
    rows = [_values(row, one) for row in document.rows] if fmt is Format.TABLE else None
    emit(fmt, document, rows=rows, title=title)
    if fmt is Format.TABLE:
        _say_models(document.rows)
    if fmt is Format.TABLE and any(row.verdict not in ("", "reference") for row in document.rows):
        say(f"every point of every target: p4perf compare {near(str(folder.path))}")
    return document


def _say_models(rows: Sequence[CellRecord]) -> None:
    """Name what was measured and has no model, or one of few points."""
    from p4perf.evaluation.fitting.noise import FEW_POINTS

    measured = [(f"{row.experiment} on {row.target}", row) for row in rows if row.accepted]
    if none := [name for name, row in measured if not row.model]:
        say(f"note: no model (p4perf fit RUN says why): {', '.join(none)}")
    if few := [f"{name} ({row.accepted})" for name, row in measured if row.model and row.accepted < FEW_POINTS]:
        say(f"note: models of few points, of which {FEW_POINTS} are needed for the shape of a curve: {', '.join(few)}")


def _values(row: CellRecord, metric: str) -> dict[str, Any]:
    """The ends of a sweep on a target, and the ratio to the reference; of what was not measured, why."""
    ends = []
    for at, value in ((row.first_at, row.first), (row.last_at, row.last)):
        text = "" if value is None else measured_text(value.value, value.low, value.high)
        ends.append(f"{at}: {text}" if at and text else text)
    ratio = "" if row.ratio is None else f"{with_interval(row.ratio.value, row.ratio.low, row.ratio.high)}, "
    return {
        "experiment": row.experiment,
        "target": row.target,
        "points": f"{row.accepted} of {row.points}" if row.points else "",
        **({} if metric else {"metric": f"{row.metric} [{row.unit}]" if row.metric else ""}),
        "first": ends[0],
        "last": ends[1] if row.last_at != row.first_at else "",
        "ratio": f"{ratio}{row.verdict}" if row.first is not None else row.what,
        "run": row.run,
    }


@app.command()
def show(
    run: RunArgument,
    metric: Annotated[str | None, Option(help="Metric to show; default: the modelled one.")] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Show the measured points of a run.

    Prints the median over the starts, its 95 % interval, accepted starts and flags. For a campaign, prints the first
    and last point of each experiment on each target, and their ratio.
    """
    if CampaignDirectory.is_one(run):
        refuse({"--metric": metric}, f"{run} is a campaign; show one of its runs")
        emit_campaign(CampaignDirectory.open(run), fmt)
        return
    from p4perf.experiment.evaluate import point_rows, states_of

    opened = Run.open(run)
    rows, chosen, unit = point_rows(opened, metric)
    say_origin(opened.identity)
    fixed = _ShowRow.KEYS
    found = (_ShowRow.read(row, values={k: v for k, v in row.items() if k not in fixed}) for row in rows)
    document = ShowDocument(metric=chosen, unit=unit, run=str(opened.path), rows=tuple(found))
    table = [_rounded(row) for row in document.rows] if fmt is Format.TABLE else None
    what = f"{opened.identity.experiment} on {opened.identity.target}"
    emit(fmt, document, rows=table, title=f"{what}: {chosen} [{unit}], median (95 % interval)")
    for other in siblings(opened) if fmt is Format.TABLE else ():
        say(f"the same command measured {other.identity.target}: p4perf show {other.path}")
    for text in states_of(opened, chosen):
        say(text)


def _rounded(row: _ShowRow) -> dict[str, Any]:
    """A point with as many digits as its interval supports."""
    rest = {"n": row.n, "rejected": row.rejected, "flags": row.flags}
    return {**row.values, "median": measured_text(row.median, row.low, row.high), **rest}


@app.command()
def doctor(
    fix: Annotated[bool, Option("--fix", help="Apply reversible settings: hugepages, autogroup (root).")] = False,
    undo: Annotated[bool, Option("--undo", help="Restore what --fix changed (root).")] = False,
    testbed: Annotated[str, Option(help="Testbed to check: local, or ssh:FILE:NODE.")] = "local",
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Report what is usable here, and how well it can measure.

    Checks targets, load generators, metrics and tools. Changes nothing without --fix or --undo. Exit code 0 if a target
    is usable, else 3.
    """
    from p4perf.experiment.doctor import doctor as diagnose

    document = diagnose(testbed, fix=fix, undo=undo, told=say)
    if fmt is Format.TABLE:
        typer.echo("\n".join(document.summary))
    emit(fmt, document, rows=_short_checks(document) if fmt is Format.TABLE else None)
    return int(ExitCode.OK if document.good else ExitCode.UNAVAILABLE)


def _short_checks(document: DoctorDocument) -> list[dict[str, str]]:
    """The checks with the metrics that are there in one row."""
    checks = as_rows(document.rows)
    there = [row for row in checks if row["area"] == "metric" and row["state"] == "ok"]
    all_there = {"check": counted(len(there), "metric"), "value": "all of p4perf list metrics but those missing here"}
    return [row | (all_there if row in there else {}) for row in checks if row not in there[1:]]
