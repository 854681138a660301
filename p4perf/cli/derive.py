"""The command that derives models: fit, of one series or of many."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from p4perf.cli.app import Format, FormatOption, Scale, TlsOption, app, check_cluster, emit, refuse, say, say_origin
from p4perf.errors import ExitCode, P4PerfError, UsageError
from p4perf.evaluation.fitting.tables import CandidateRow, SegmentRow, candidate_rows, model_rows
from p4perf.records import Document, Record, counted, doc, spread
from p4perf.results import Run

if TYPE_CHECKING:
    from p4perf.evaluation.fitting.component import Evaluation
    from p4perf.evaluation.fitting.many import SeriesResult
    from p4perf.evaluation.fitting.working_set import CacheMark
    from p4perf.models.component import ComponentModel
    from p4perf.results.table import Samples


class _Axis(Record):
    name: str = doc("scaled variable")
    unit: str = doc("its unit; empty for a count")
    scale: str = doc("`linear` or `log`: axis of the plot")


class _Metric(Record):
    name: str = doc("metric")
    unit: str = doc("its unit")


class ModelDocument(Document, kind="model"):
    """`p4perf run SPEC`, `p4perf resume RUN`, `p4perf fit DATA`.

    Of a run that has no model (the spec has no `model`, or sweeps several variables) the same keys are printed, null or
    empty, and `x`, `y` and `segments` have no inner keys.
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
        "for each breakpoint, where it may come from (for people); empty if cache marks do not apply"
    )
    points_without_accepted_trials: tuple[float, ...] = doc("x that are not in the model", "of x")
    outliers: tuple[float, ...] = doc("x of points that were left out as outliers", "of x")
    remarks: tuple[str, ...] = doc("what to know before using the model, and what to do (for people)")
    plots: tuple[str, ...] = doc("paths of the plots")


LISTED_PARAMETERS = 6
"""Parameters that a table lists; splines have many. JSON has them all."""


def emit_model(evaluation: Evaluation | None, fmt: Format, *, run: str | None) -> None:
    """Print the segments of a model: segment, domain, function, parameters with intervals, error."""
    from p4perf.evaluation.fitting.error_metrics import error_text
    from p4perf.models.notation import number

    document = _document(evaluation, run)
    if evaluation is None:
        if fmt is Format.JSON:
            emit(fmt, document)
        say("no model: the spec asks for none, or sweeps several variables; p4perf show prints the points")
        return
    model = evaluation.model
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
    emit(fmt, document, rows=rows, title=f"{model.y.label()} over {model.x.label()}")
    if fmt is not Format.TABLE:
        return
    say(f"combined error: {error_text(model.error, model.fitting.error)}")
    best = min(document.candidates, key=lambda row: math.inf if row.l1_bic is None else row.l1_bic)
    for row in document.candidates:
        mark = "" if not row.chosen else " (chosen)" if row is best else " (asked for)"
        breakpoints = ", ".join(f"{x:g}" for x in row.breakpoint_x)
        at = f", breakpoint{'s' if len(row.breakpoint_x) > 1 else ''} at {breakpoints}" if breakpoints else ""
        score = "not defined (too few points for its parameters)"
        if row.l1_bic is not None and math.isfinite(row.l1_bic):
            score = number(row.l1_bic)
        say(f"  {counted(row.segments, 'segment')}{mark}: {error_text(model.error, row.error)}, L1-BIC {score}{at}")
    for explanation in document.explanations:
        say(explanation)
    for remark in document.remarks:
        say(f"note: {remark}")
    if evaluation.missing:
        say(f"warning: no accepted trial at {model.x.name} = {', '.join(f'{v:g}' for v in evaluation.missing)}")


def _document(evaluation: Evaluation | None, run: str | None) -> ModelDocument:
    """The model as the commands print it; of a run that has none the same keys, null or empty."""
    if evaluation is None:
        nothing: dict[str, Any] = dict.fromkeys(("name", "target", "x", "y", "domain", "error_metric", "error"))
        return ModelDocument.read({}, **{**dict.fromkeys(ModelDocument.KEYS, ()), **nothing, "run": run})
    model: ComponentModel = evaluation.model
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
        candidates=candidate_rows(evaluation.derived.derivation),
        explanations=tuple(e.text(model.x.name) for e in evaluation.explanations),
        points_without_accepted_trials=evaluation.missing,
        outliers=evaluation.derived.derivation.outliers,
        remarks=evaluation.derived.remarks,
        plots=evaluation.plots,
    )


@app.command()
def fit(
    data: Annotated[
        list[Path], typer.Argument(help="Run directories, CSV files with a header line, files of Extra-P.")
    ],
    x: Annotated[str | None, typer.Option("--x", help="File: column (Extra-P: parameter) of the variable.")] = None,
    y: Annotated[str | None, typer.Option("--y", help="File: column (Extra-P: metric) of what it costs.")] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", help="Many series: columns that tell them apart, separated by commas. Repeatable."),
    ] = None,
    region: Annotated[str | None, typer.Option("--region", help="Extra-P: region or callpath.")] = None,
    segments: Annotated[int | None, typer.Option("--segments", min=1, help="Fix the number of segments.")] = None,
    max_segments: Annotated[int | None, typer.Option("--max-segments", min=1, help="Most segments; files: 5.")] = None,
    min_points: Annotated[int | None, typer.Option("--min-points", min=1, help="Fewest points of a segment.")] = None,
    profile: Annotated[
        Literal["exact", "scholz2021"] | None, typer.Option("--profile", help="scholz2021: the rules of the paper.")
    ] = None,
    error: Annotated[
        str | None, typer.Option("--error", help="Error metric: smape, smape_pooled, mape, rmse, emd, or a plug-in.")
    ] = None,
    loss: Annotated[
        Literal["auto", "squares", "l1"] | None,
        typer.Option("--loss", help="auto: squares, l1 where samples are outliers or near zero; l1: relative, robust."),
    ] = None,
    template: Annotated[
        list[str] | None,
        typer.Option("--template", help="Function that may be taken, such as power, or spline. Repeatable."),
    ] = None,
    split_finder: Annotated[
        str | None,
        typer.Option("--split-finder", help="dynamic, brute-force, second-derivative, savitzky-golay, or a plug-in."),
    ] = None,
    search: Annotated[
        Literal["auto", "exact", "coarse"] | None,
        typer.Option("--search", help="auto: coarse for more than 1000 points."),
    ] = None,
    level: Annotated[float | None, typer.Option("--level", min=0.5, max=0.999, help="Coverage of intervals.")] = None,
    resamples: Annotated[
        int | None,
        typer.Option("--resamples", min=0, max=100_000, help="Bootstrap resamples; 0: no intervals, faster."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, max=1024, help="Threads, one series; default: all processors.")
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option("--processes", min=1, max=1024, help="Many series: processes; default: all processors."),
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="Many series: address of a Dask cluster: tcp://10.0.0.1:8786.")
    ] = None,
    tls: TlsOption = None,
    x_scale: Annotated[Scale | None, typer.Option("--x-scale", help="File: axis of the plots.")] = None,
    working_set: Annotated[
        str | None,
        typer.Option(
            "--working-set",
            help="File: bytes that grow with x, as FIXED+PER_X, or scholz2021:KEY,ACTION_DATA (bytes of an exact "
            "table of t4p4s, Eq. 5). With --cache, breakpoints are compared with it.",
        ),
    ] = None,
    cache: Annotated[list[str] | None, typer.Option("--cache", help="File: a cache: L2=256KiB. Repeatable.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File: folder of model.json and plots. Many series: FILE.jsonl, a line for each model, or a folder "
            "for models.jsonl; what is there already is not fitted again.",
        ),
    ] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Many series: begin the file of models anew.")] = False,
    every_plot: Annotated[bool, typer.Option("--every-plot", help="Draw one figure per number of segments.")] = False,
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Derive piecewise models from runs or files of measurements.

    With --by, several DATA or FILE.jsonl as output, it derives the models of many series, on all processors or on a
    Dask cluster: each combination of the columns of --by, each region and metric of Extra-P, each run.
    """
    options = {
        "segments": segments, "max_segments": max_segments, "min_points": min_points, "profile": profile,
        "error": error, "loss": loss, "split_finder": split_finder, "search": search, "level": level,
        "resamples": resamples, "threads": threads,
    }  # fmt: skip
    changes: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if template:
        from p4perf.models.spline import find_function

        changes["templates"] = tuple(dict.fromkeys(find_function(name) for name in template))
    check_cluster(scheduler, tls)
    many = by or processes or scheduler or restart or len(data) > 1 or (output and output.suffix == ".jsonl")
    of_file: dict[str, object] = {"--working-set": working_set, "--cache": cache, "--region": region}
    if many:
        refuse({**of_file, "--threads": threads, "--every-plot": every_plot}, "for one series")
        if restart and output is None:
            raise UsageError("--restart is for a file of models: name it with --output")
        if processes is not None and scheduler is not None:
            raise UsageError("--processes is for this machine: leave it out with --scheduler")
        names = (x, y, _columns(by or []), x_scale)
        where = {"processes": processes, "scheduler": scheduler, "tls": tls}
        return _fit_many(data, names, changes, output, fmt, restart=restart, where=where)
    if not data[0].exists():
        raise UsageError(f"there is no run directory or file {data[0]}")
    if data[0].is_dir():
        of_file |= {"--x": x, "--y": y, "--x-scale": x_scale, "--output": output}
        refuse(of_file, "for files only; a run knows its variables and its place")
        evaluation, name = _fit_run(data[0], changes, every_plot=every_plot)
    else:
        from p4perf.evaluation.fitting.datafiles import read_series

        marks, name = _marks(working_set, cache or []), None
        samples = read_series(data[0], x, y, region=region)
        evaluation = _fit_samples(samples, data[0], x_scale or "linear", changes, marks, output, every_plot=every_plot)
    emit_model(evaluation, fmt, run=name)
    for plot in evaluation.plots if evaluation is not None else ():
        say(f"plot: {plot}")
    return ExitCode.OK


def _fit_run(path: Path, changes: Mapping[str, Any], *, every_plot: bool) -> tuple[Evaluation | None, str]:
    """Derive the model of a run, with its plots; and its path."""
    from p4perf.cli.progress import Share
    from p4perf.experiment.evaluate import evaluate_run

    run = Run.open(path)
    say_origin(run.identity)
    with Share("deriving") as progress:
        return evaluate_run(run, changes=changes, every_plot=every_plot, progress=progress), str(run.path)


def _fit_samples(
    samples: Samples,
    data: Path,
    scale: Scale,
    changes: Mapping[str, Any],
    marks: tuple[CacheMark, ...],
    output: Path | None,
    *,
    every_plot: bool,
) -> Evaluation:
    """Derive the model of a file, and write it and its plots if a folder is named."""
    from p4perf.cli.progress import Share
    from p4perf.evaluation.fitting.component import Evaluation, derive_model
    from p4perf.evaluation.fitting.derivation import FitOptions
    from p4perf.evaluation.fitting.working_set import explain

    with Share("deriving") as progress:
        derived = derive_model(samples, name=data.stem, x_scale=scale, options=FitOptions(**changes), progress=progress)
    plots: tuple[Path, ...] = ()
    if output is not None:
        from p4perf.evaluation.plots import PlotInfo
        from p4perf.results.files import write_text_atomically

        write_text_atomically(output / "model.json", derived.model.to_json())
        info = PlotInfo(title=data.name)
        plots = derived.draw(output.joinpath, data.stem, info, marks=marks, every=every_plot)
    explanations = explain(derived.model.fitting.breakpoint_x, marks) if marks else ()
    return Evaluation(derived, explanations, plots)


def _marks(working_set: str | None, caches: list[str]) -> tuple[CacheMark, ...]:
    """Where the working set fills the caches."""
    from p4perf.evaluation.fitting.working_set import cache_marks, parse_cache, parse_working_set

    if working_set is None and not caches:
        return ()
    if working_set is None or not caches:
        raise UsageError(
            "--working-set and --cache belong together", hint="such as --working-set 128+80 --cache L2=256KiB"
        )
    return cache_marks(parse_working_set(working_set), dict(parse_cache(text) for text in caches))


class _ModelsRow(Record):
    values: dict[str, str] = spread(
        "label", "value of a label, such as `file`; a label with the name of another key has `label_` before it"
    )
    points: int | None = doc("points of the series")
    segments: int | None = doc("segments of its model; null without one")
    error: float | None = doc("combined error", "of the metric")
    error_metric: str | None = doc("[error metric](methods.md#error-metrics)")
    families: tuple[str, ...] = doc("families of the templates")
    breakpoint_x: tuple[float, ...] = doc("first x of each segment but the first", "of x")
    formulas: tuple[str, ...] = doc("functions of the segments, for people")
    failure: str | None = doc("why there is no model")


class ModelsDocument(Document, kind="models"):
    """`p4perf fit DATA...` of many series: one row for each."""

    labels: tuple[str, ...] = doc("names of the labels that tell series apart")
    output: str | None = doc("path of the file of models")
    series: int = doc("number of series")
    kept: int = doc("series that were in the file of models already")
    failed: int = doc("series without a model")
    rows: tuple[_ModelsRow, ...] = doc("")


LISTED = 20
"""Failures that are listed on stderr; the rows have them all."""
COLUMNS = tuple(_ModelsRow.KEYS)[1:]
"""Columns of a row besides the labels of the series."""


def _fit_many(
    data: Sequence[Path],
    names: tuple[str | None, str | None, tuple[str, ...], Scale | None],
    changes: Mapping[str, Any],
    output: Path | None,
    fmt: Format,
    *,
    restart: bool,
    where: Mapping[str, Any],
) -> int:
    """Derive the models of many series; the exit code.

    Args:
        names: the columns x, y and by, and the scale of x.
        where: processes, scheduler and tls, as of :func:`~p4perf.evaluation.fitting.many.fit_many`.
    """
    from p4perf.cli.progress import SeriesProgress
    from p4perf.evaluation.fitting.derivation import FitOptions
    from p4perf.experiment.many import fit_rest, kept_models, open_lines, open_sources

    if where["scheduler"] is not None:
        logging.disable(logging.CRITICAL)  # that of Dask: what matters is said by our own errors
    options = FitOptions(**changes)
    options.check()
    sources = open_sources(data, *names, changes)
    failed: list[SeriesResult] = []
    with contextlib.ExitStack() as stack:
        lines = None if output is None else stack.enter_context(open_lines(output, restart=restart))
        file = None if lines is None else str(lines.path)
        rows = [None if kept is None else _row(*kept, "") for kept in kept_models(sources, options, lines)]
        if kept := len(rows) - rows.count(None):
            say(f"{kept} of {len(rows)} series are in {file} already")
        with SeriesProgress(rows.count(None)) as bar:
            results = fit_rest(sources, rows, options, lines, where=where, progress=bar.finished)
            try:
                for index, result in stack.enter_context(contextlib.closing(results)):
                    if result.model is None:
                        failed.append(result)
                    rows[index] = _row(result.labels, result.model, result.failure)
            except (KeyboardInterrupt, P4PerfError):
                if lines is not None and len(lines):
                    say(f"\n{len(lines)} models are in {lines.path}; the same command fits the rest")
                raise
    done = tuple(row for row in rows if row is not None)
    labels = tuple(dict.fromkeys(key for row in done for key in row.values))
    document = ModelsDocument(labels=labels, output=file, series=len(done), kept=kept, failed=len(failed), rows=done)
    hidden = {"error_metric"} | ({"file"} if len(data) == 1 and len(labels) > 1 else set())
    hidden |= set() if failed else {"failure"}
    emit(fmt, document, rows=[_for_people(row, hidden) for row in done] if fmt is Format.TABLE else None)
    if file is not None:
        say(f"models: {file}")
    return _conclude(failed, len(done))


def _columns(by: Sequence[str]) -> tuple[str, ...]:
    names = [name.strip() for text in by for name in text.split(",")]
    if "" in names:
        raise UsageError(f"--by {','.join(by)}: a name of a column is missing")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"--by {','.join(by)}: duplicate column {twice}")
    return tuple(names)


def _conclude(failed: Sequence[SeriesResult], total: int) -> int:
    """List failures; the exit code."""
    from p4perf.evaluation.fitting.many import label_text

    for result in failed[:LISTED]:
        say(f"failed: {label_text(result.labels)}: {result.failure}")
    if len(failed) > LISTED:
        say(f"... and {len(failed) - LISTED} more; --format json or csv has them all")
    if not failed:
        return ExitCode.OK
    say(f"{len(failed)} of {total} series have no model")
    codes = {result.exit_code for result in failed}
    return next((c for c in (ExitCode.INTERNAL, ExitCode.UNAVAILABLE) if c in codes), ExitCode.NO_VERDICT)


def _row(labels: Mapping[str, str], model: ComponentModel | None, failure: str) -> _ModelsRow:
    """One series. A label that is named as one of the columns gets a longer name."""
    values = {f"label_{name}" if name in COLUMNS else name: value for name, value in labels.items()}
    if model is None:
        empty = dict.fromkeys(("points", "segments", "error", "error_metric"))
        return _ModelsRow(values=values, **empty, families=(), breakpoint_x=(), formulas=(), failure=failure)
    fitting = model.fitting
    return _ModelsRow(
        values=values,
        points=fitting.points,
        segments=len(fitting.segments),
        error=fitting.error,
        error_metric=model.error,
        families=tuple(segment.template.family for segment in fitting.segments),
        breakpoint_x=fitting.breakpoint_x,
        formulas=model.formulas(),
        failure=None,
    )


def _for_people(row: _ModelsRow, hidden: set[str]) -> dict[str, Any]:
    from p4perf.evaluation.fitting.error_metrics import error_text

    error = None if row.error is None or row.error_metric is None else error_text(row.error_metric, row.error)
    shown = {**row.as_dict(), "error": error, "formulas": "; ".join(row.formulas)}
    return {key: value for key, value in shown.items() if key not in hidden}
