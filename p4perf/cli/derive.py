"""The command that derives models: fit, of one series or of many."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from p4perf.cli.app import (
    Format,
    FormatOption,
    Scale,
    TlsOption,
    WhereOption,
    app,
    check_cluster,
    emit,
    refuse,
    resuming,
    say,
    say_origin,
)
from p4perf.errors import ExitCode, UsageError
from p4perf.evaluation.fitting.tables import CandidateRow, SegmentRow, candidate_rows, model_rows
from p4perf.formats.plain import near_path
from p4perf.records import Document, Record, counted, doc
from p4perf.results import all_run_folders, find_run, is_run

if TYPE_CHECKING:
    from p4perf.evaluation.fitting.component import DerivedModel
    from p4perf.experiment.many import FittedSeries, ModelsRow
    from p4perf.results import Run


class _Axis(Record):
    name: str = doc("scaled variable")
    unit: str = doc("its unit; empty for a count")
    scale: str = doc("`linear` or `log`: axis of the plot")


class _Metric(Record):
    name: str = doc("metric")
    unit: str = doc("its unit")


class ModelDocument(Document, kind="model"):
    """`p4perf run SPEC`, `p4perf resume RUN`, `p4perf fit DATA`.

    For a run without a model (the spec has no `model`, or sweeps several variables), the same keys are printed, but
    null or empty; `x`, `y` and `segments` then have no inner keys.
    """

    run: str | None = doc("path of the run directory; null for a file")
    name: str | None = doc("experiment, or name of the file without its ending")
    target: str | None = doc("target; empty for a file")
    x: _Axis | None = doc("")
    y: _Metric | None = doc("")
    domain: tuple[float, ...] | None = doc("first and last x that were measured", "of x")
    error_metric: str | None = doc("[error metric](methods.md#error-metrics)")
    error: float | None = doc("combined error of the segments; of a ratio, 0.01 is 1 %", "of the metric")
    segments: tuple[SegmentRow, ...] = doc("")
    breakpoints: tuple[int, ...] = doc("index, from 0, of the last point of each segment but the last")
    breakpoint_x: tuple[float, ...] = doc("first x of each segment but the first", "of x")
    breakpoint_intervals: tuple[tuple[float, ...], ...] = doc("lower and upper end for each breakpoint", "of x")
    candidates: tuple[CandidateRow, ...] = doc("")
    explanations: tuple[str, ...] = doc(
        "possible reason of each breakpoint (for people); empty if cache marks do not apply"
    )
    points_without_accepted_trials: tuple[float, ...] = doc("x that are not in the model", "of x")
    outliers: tuple[float, ...] = doc("x of points left out as outliers", "of x")
    remarks: tuple[str, ...] = doc("doubts about the model, and what to do (for people)")
    plots: tuple[str, ...] = doc("paths of the plots")


LISTED_PARAMETERS = 6
"""Parameters that a table lists; splines have many. JSON has them all."""


def emit_model(derived: DerivedModel | None, fmt: Format, *, run: Run | None) -> None:
    """Print the segments of a model: segment, domain, function, parameters with intervals, error."""
    from p4perf.evaluation.fitting.error_metrics import error_text
    from p4perf.models.notation import number

    document = _document(derived, None if run is None else str(run.path))
    if derived is None:
        if fmt is Format.JSON:
            emit(fmt, document)
        say(f"no model: {run.unmodelled if run else 'there are no points'}; p4perf show prints the points")
        return
    model = derived.model
    level = f" with {number(100 * model.uncertainty.level)} % intervals" if model.uncertainty else ""
    parameters = f"parameters{level}"
    rows: list[dict[str, Any]] = [
        {
            "segment": row.segment,
            model.x.name: f"{row.start:g} .. {row.end:g}",
            "points": row.points,
            "function": row.formula.removeprefix(f"{model.y.name} = "),
            parameters: ", ".join(p.text() for p in row.parameters[:LISTED_PARAMETERS])
            + (f" ... ({len(row.parameters)})" if len(row.parameters) > LISTED_PARAMETERS else ""),
            "error": error_text(model.error, row.error),
        }
        for row in document.segments
    ]
    at = f" at {', '.join(map('='.join, run.where))}" if run is not None and run.where else ""
    emit(fmt, document, rows=rows, title=f"{model.y.label()} over {model.x.label()}{at}")
    if fmt is not Format.TABLE:
        return
    say(f"combined error: {error_text(model.error, model.fitting.error)}")
    best = min(document.candidates, key=lambda row: math.inf if row.l1_bic is None else row.l1_bic)
    for row in document.candidates:
        mark = " (lowest L1-BIC)" if row is best else ""
        mark = (" (chosen)" if row is best else " (fixed)") if row.chosen else mark
        breakpoints = ", ".join(f"{x:g}" for x in row.breakpoint_x)
        at = f", breakpoint{'s' if len(row.breakpoint_x) > 1 else ''} at {breakpoints}" if breakpoints else ""
        score = "not defined (too few points for its parameters)"
        if row.l1_bic is not None and math.isfinite(row.l1_bic):
            score = number(row.l1_bic)
        say(f"  {counted(row.segments, 'segment')}{mark}: {error_text(model.error, row.error)}, L1-BIC {score}{at}")
    if not best.chosen:
        by = "--segments; without it, the L1-BIC chooses"
        if run is not None:
            most = len(document.candidates)
            by = f"the spec or --segments; p4perf fit {run.path} --max-segments {most} lets the L1-BIC choose"
        say(f"the number of segments is fixed by {by}")
    for explanation in document.explanations:
        say(explanation)
    for remark in document.remarks:
        say(f"note: {remark}")
    if derived.missing:
        say(f"warning: no accepted trial at {model.x.name} = {', '.join(f'{v:g}' for v in derived.missing)}")


def _document(derived: DerivedModel | None, run: str | None) -> ModelDocument:
    """The model as the commands print it; of a run that has none the same keys, null or empty."""
    if derived is None:
        nothing: dict[str, Any] = dict.fromkeys(("name", "target", "x", "y", "domain", "error_metric", "error"))
        return ModelDocument.read({}, **{**dict.fromkeys(ModelDocument.KEYS, ()), **nothing, "run": run})
    model = derived.model
    uncertainty = model.uncertainty
    return ModelDocument.read(
        model,
        run=run,
        error_metric=model.error,
        error=model.fitting.error,
        segments=model_rows(model),
        breakpoints=model.fitting.breakpoints,
        breakpoint_x=model.fitting.breakpoint_x,
        breakpoint_intervals=tuple((i.low, i.high) for i in uncertainty.breakpoints) if uncertainty else (),
        candidates=candidate_rows(derived.derivation),
        explanations=tuple(e.text(model.x.name) for e in derived.explanations),
        points_without_accepted_trials=derived.missing,
        outliers=derived.derivation.outliers,
        remarks=derived.remarks,
        plots=derived.plots,
    )


@app.command()
def fit(
    data: Annotated[
        list[Path],
        Argument(
            metavar="DATA...",
            parser=find_run,
            help="Runs, folders of runs, CSV files with a header line, files of Extra-P; - is the standard input.",
        ),
    ],
    x: Annotated[str | None, Option(help="Variable of a run; column of a file (Extra-P: parameter).")] = None,
    where: WhereOption = None,
    y: Annotated[str | None, Option(help="File: column of the cost (Extra-P: metric).")] = None,
    by: Annotated[
        list[str] | None, Option(help="Many series: columns that distinguish them, separated by commas. Repeatable.")
    ] = None,
    region: Annotated[str | None, Option(help="Extra-P: region or callpath.")] = None,
    segments: Annotated[int | None, Option(min=1, help="Fix the number of segments.")] = None,
    max_segments: Annotated[int | None, Option(min=1, help="Largest number of segments; files: 5.")] = None,
    min_points: Annotated[int | None, Option(min=1, help="Smallest number of points in a segment.")] = None,
    profile: Annotated[
        Literal["exact", "scholz2021"] | None, Option(help="exact, or scholz2021 for the rules of that paper.")
    ] = None,
    error: Annotated[
        str | None, Option(help="Error metric: smape, smape_pooled, mape, rmse, emd, or a plug-in.")
    ] = None,
    loss: Annotated[
        Literal["auto", "squares", "l1"] | None,
        Option(help="auto: squares, but l1 where samples are outliers or near zero; l1: relative, robust."),
    ] = None,
    template: Annotated[
        list[str] | None, Option(help="Allow this function, such as power or spline. Repeatable.")
    ] = None,
    split_finder: Annotated[
        str | None, Option(help="dynamic, brute-force, second-derivative, savitzky-golay, or a plug-in.")
    ] = None,
    search: Annotated[
        Literal["auto", "exact", "coarse"] | None, Option(help="auto: coarse for more than 1000 points.")
    ] = None,
    level: Annotated[float | None, Option(min=0.5, max=0.999, help="Intended coverage of intervals.")] = None,
    resamples: Annotated[
        int | None, Option(min=0, max=100_000, help="Bootstrap resamples; 0: no intervals, faster.")
    ] = None,
    threads: Annotated[
        int | None, Option(min=1, max=1024, help="One series: threads; default: one per processor.")
    ] = None,
    processes: Annotated[
        int | None, Option(min=1, max=1024, help="Many series: processes; default: one per processor.")
    ] = None,
    scheduler: Annotated[
        str | None, Option(help="Many series: address of a Dask cluster: tcp://10.0.0.1:8786.")
    ] = None,
    tls: TlsOption = None,
    x_scale: Annotated[Scale | None, Option(help="File: axis of the plots.")] = None,
    working_set: Annotated[
        str | None,
        Option(
            help="File: bytes that grow with x, as FIXED+PER_X, or scholz2021:KEY,ACTION_DATA (bytes of an exact "
            "table of t4p4s, Eq. 5). With --cache, breakpoints are compared with it."
        ),
    ] = None,
    cache: Annotated[list[str] | None, Option(help="File: a cache: L2=256KiB. Repeatable.")] = None,
    output: Annotated[
        Path | None,
        Option(
            "--output",
            "-o",
            help="File, or run with --where or --x: folder of model.json and plots. Many series: FILE.jsonl, a line "
            "for each model, or a folder for models.jsonl; models already there are kept.",
        ),
    ] = None,
    restart: Annotated[bool, Option("--restart", help="Many series: overwrite the file of models.")] = False,
    every_plot: Annotated[bool, Option("--every-plot", help="Draw one figure per number of segments.")] = False,
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Derive piecewise models from runs or files of measurements.

    With --by, with several DATA, or with FILE.jsonl as output, fits many series on all processors or on a Dask cluster:
    one for each combination of the --by columns, each region and metric of Extra-P, or each run.
    """
    from p4perf.api import fit as fit_series
    from p4perf.api import fit_many, open_run
    from p4perf.api.arguments import pairs
    from p4perf.cli.progress import SeriesProgress, Share
    from p4perf.experiment.evaluate import evaluate_run

    given = {
        "segments": segments, "max_segments": max_segments, "min_points": min_points, "profile": profile,
        "error": error, "loss": loss, "split_finder": split_finder, "search": search, "level": level,
        "resamples": resamples, "threads": threads,
    }  # fmt: skip
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if template:
        from p4perf.models.spline import find_function

        options["templates"] = tuple(dict.fromkeys(find_function(name) for name in template))
    of_file: dict[str, object] = {"--working-set": working_set, "--cache": cache, "--region": region}
    check_cluster(scheduler, tls)
    columns = _columns(by or [])
    many = by or processes or scheduler or restart or len(data) > 1 or (output and output.suffix == ".jsonl")
    if many or (data[0].is_dir() and not is_run(data[0]) and all_run_folders(data[0])):
        refuse({**of_file, "--where": where, "--threads": threads, "--every-plot": every_plot}, "for one series")
        if restart and output is None:
            raise UsageError("--restart is for a file of models: name it with --output")
        if processes is not None and scheduler is not None:
            raise UsageError("--processes is for this machine: leave it out with --scheduler")
        if scheduler is not None:
            logging.disable(logging.CRITICAL)  # that of Dask: what matters is said by our own errors
        found = fit_many(
            data, y, x=x, by=columns, x_scale=x_scale, output=output, options=options, restart=restart,
            processes=processes, scheduler=scheduler, tls=tls, keep=False, told=say, bar=SeriesProgress,
        )  # fmt: skip
        return _print_many(found, fmt, one=len(data) == 1)
    run = None
    if data[0].is_dir():
        of_file |= {"--y": y, "--x-scale": x_scale}
        refuse(of_file, "for files only; a run has its own variables and directory")
        run = open_run(data[0]).at(dict(pairs(where or (), "--where")), x)
        if run.is_whole:
            refuse({"--output": output}, "for files, and for runs with --where or --x; a run has its own directory")
        say_origin(run.identity)
        state = run.directory.state()
        if state.missing and not state.done:
            measured = f"{len(state.finished)} of {counted(len(state.planned), 'point')} complete"
            say(f"note: {measured}; {resuming(run.path)} continues")
    with Share("deriving") as progress:
        if run is not None:
            derived = evaluate_run(run, changes=options, every_plot=every_plot, output=output, progress=progress)
        elif data[0].exists() or str(data[0]) == "-":
            refuse({"--where": where}, "for runs only")
            derived = fit_series(
                data[0], y, x=x, region=region, x_scale=x_scale or "linear", working_set=working_set,
                caches=cache or (), output=output, every_plot=every_plot, progress=progress, **options,
            )  # fmt: skip
        else:
            raise UsageError(f"there is no run directory or file {data[0]}", hint=near_path(data[0]))
    emit_model(derived, fmt, run=run)
    for plot in derived.plots if derived is not None else ():
        say(f"plot: {plot}")
    return ExitCode.OK


LISTED = 20
"""Failures that are listed on stderr; the rows have them all."""


def _columns(by: Sequence[str]) -> tuple[str, ...]:
    names = [name.strip() for text in by for name in text.split(",")]
    if "" in names:
        raise UsageError(f"--by {','.join(by)}: a name of a column is missing")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"--by {','.join(by)}: duplicate column {twice}")
    return tuple(names)


def _print_many(found: FittedSeries, fmt: Format, *, one: bool) -> int:
    """Print the rows, and list failures; the exit code."""
    from p4perf.evaluation.fitting.many import label_text

    document = found.document
    hidden = {"error_metric"} | ({"file"} if one and len(document.labels) > 1 else set())
    hidden |= set() if found.failed else {"failure"}
    emit(fmt, document, rows=[_for_people(row, hidden) for row in document.rows] if fmt is Format.TABLE else None)
    if document.output is not None:
        say(f"models: {document.output}")
    failed = found.failed
    for result in failed[:LISTED]:
        say(f"failed: {label_text(result.labels)}: {result.failure}")
    if len(failed) > LISTED:
        say(f"... and {len(failed) - LISTED} more; --format json or csv has them all")
    if not failed:
        return ExitCode.OK
    say(f"{len(failed)} of {document.series} series have no model")
    codes = {result.exit_code for result in failed}
    return next((c for c in (ExitCode.INTERNAL, ExitCode.UNAVAILABLE) if c in codes), ExitCode.NO_VERDICT)


def _for_people(row: ModelsRow, hidden: set[str]) -> dict[str, Any]:
    from p4perf.evaluation.fitting.error_metrics import error_text

    error = None if row.error is None or row.error_metric is None else error_text(row.error_metric, row.error)
    shown = {**row.as_dict(), "error": error, "formulas": "; ".join(row.formulas)}
    return {key: value for key, value in shown.items() if key not in hidden}
