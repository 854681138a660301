"""The commands that derive models and carry them elsewhere: fit, export."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from p4perf.cli import options as shared
from p4perf.cli.app import app
from p4perf.cli.options import check_choice, given
from p4perf.cli.output import Format, FormatOption, emit, say, say_origin
from p4perf.errors import UsageError
from p4perf.evaluation.fitting.tables import CandidateRow, SegmentRow, candidate_rows, model_rows
from p4perf.records import Document, Record, doc
from p4perf.results import Run

if TYPE_CHECKING:
    from p4perf.evaluation.fitting.component import Evaluation
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


class ModelDocument(Document):
    """`p4perf run SPEC`, `p4perf resume RUN`, `p4perf fit DATA`.

    Of a run that has no model (the spec has no `model`, or sweeps several variables) the same keys are printed, null or
    empty, and `x`, `y` and `segments` have no inner keys.
    """

    KIND = "model"

    run: str | None = doc("path of the run directory; null for a file")
    name: str | None = doc("experiment, or name of the file without its ending")
    target: str | None = doc("target; empty for a file")
    x: _Axis | None = doc("")
    y: _Metric | None = doc("")
    domain: tuple[float, ...] | None = doc("first and last x that were measured", "of x")
    error_metric: str | None = doc("[error metric](derivation.md#error-metrics)")
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
    plots: tuple[str, ...] = doc("paths of the plots")


def emit_model(evaluation: Evaluation | None, fmt: Format, *, run: str | None) -> None:
    """Print the segments of a model: segment, domain, function, parameters with intervals, error."""
    from p4perf.evaluation.fitting.error_metrics import error_text
    from p4perf.models.notation import number

    if fmt is Format.JSON:
        emit(fmt, _document(evaluation, run))
    if evaluation is None:
        say("no model: the spec asks for none, or sweeps several variables; p4perf show prints the points")
    if evaluation is None or fmt is Format.JSON:
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
            parameters: ", ".join(p.text() for p in row.parameters),
            "error": error_text(model.error, row.error),
        }
        for row in model_rows(model)
    ]
    emit(fmt, _document(evaluation, run), rows=rows, title=f"{model.y.label()} over {model.x.label()}")
    if fmt is Format.TABLE:
        _say_rest(evaluation)


def _say_rest(evaluation: Evaluation) -> None:
    from p4perf.evaluation.fitting.error_metrics import error_text
    from p4perf.models.notation import number

    model = evaluation.model
    say(f"combined error: {error_text(model.error, model.fitting.error)}")
    candidates = candidate_rows(evaluation.derived.derivation)
    best = min(candidates, key=lambda row: math.inf if row.l1_bic is None else row.l1_bic)
    for row in candidates:
        mark = "" if not row.chosen else " (chosen)" if row is best else " (asked for)"
        breakpoints = ", ".join(f"{x:g}" for x in row.breakpoint_x)
        at = f" at {breakpoints}" if breakpoints else ""
        noun = "segment" if row.segments == 1 else "segments"
        score = number(row.l1_bic) if row.l1_bic is not None and math.isfinite(row.l1_bic) else "not defined"
        say(f"  {row.segments} {noun}{mark}: {error_text(model.error, row.error)}, L1-BIC {score}{at}")
    for explanation in evaluation.explanations:
        say(explanation.text(model.x.name))
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
        plots=evaluation.plots,
    )


class Language(StrEnum):
    """What a model can be written as."""

    PYTHON = "python"
    C = "c"
    LATEX = "latex"


@app.command()
def fit(
    data: Annotated[Path, typer.Argument(help="A run directory, a CSV file with a header line, or a file of Extra-P.")],
    x: Annotated[str | None, typer.Option("--x", help="File: column (Extra-P: parameter) of the variable.")] = None,
    y: Annotated[str | None, typer.Option("--y", help="File: column (Extra-P: metric) of what it costs.")] = None,
    region: Annotated[str | None, typer.Option("--region", help="Extra-P: region or callpath.")] = None,
    segments: shared.SegmentsOption = None,
    max_segments: shared.MaxSegmentsOption = None,
    min_points: shared.MinPointsOption = None,
    profile: shared.ProfileOption = None,
    error: shared.ErrorOption = None,
    loss: shared.LossOption = None,
    split_finder: shared.SplitFinderOption = None,
    search: Annotated[
        str | None, typer.Option("--search", help="exact, coarse, or auto: coarse for more than 1000 points.")
    ] = None,
    level: shared.LevelOption = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Threads; all processors by default.")] = None,
    x_scale: Annotated[str | None, typer.Option("--x-scale", help="File: axis of the plots, linear or log.")] = None,
    working_set: Annotated[
        str | None,
        typer.Option(
            "--working-set",
            help="File: bytes that grow with x, as FIXED+PER_X, or scholz2021:KEY,ACTION_DATA (bytes of an exact "
            "table of t4p4s, Eq. 5). With --cache, breakpoints are compared with it.",
        ),
    ] = None,
    cache: Annotated[list[str] | None, typer.Option("--cache", help="File: a cache: L2=256KiB. Repeatable.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File: folder of model.json and plots.")] = None,
    every_plot: Annotated[bool, typer.Option("--every-plot", help="Draw one figure per number of segments.")] = False,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Derive a piecewise model from a run, a CSV file, or a file of Extra-P."""
    from p4perf.cli.progress import Share

    if not data.exists():
        raise UsageError(f"there is no run directory or file {data}")
    check_choice(x_scale, "--x-scale", ("linear", "log"))
    check_choice(profile, "--profile", ("exact", "scholz2021"))
    check_choice(loss, "--loss", ("squares", "l1"))
    check_choice(search, "--search", ("auto", "exact", "coarse"))
    changes = given({
        "segments": segments, "max_segments": max_segments, "min_points": min_points, "profile": profile,
        "error": error, "loss": loss, "split_finder": split_finder, "search": search, "level": level,
        "threads": threads,
    })  # fmt: skip
    of_file = {
        "--x": x, "--y": y, "--region": region, "--x-scale": x_scale, "--working-set": working_set, "--cache": cache,
        "--output": output,
    }  # fmt: skip
    if data.is_dir():
        if wrong := [name for name, value in of_file.items() if value]:
            raise UsageError(f"{', '.join(wrong)}: for files only; a run knows its variables and its place")
        from p4perf.experiment.evaluate import evaluate_run

        run = Run.open(data)
        say_origin(run.identity)
        with Share("deriving") as progress:
            evaluation = evaluate_run(run, changes=changes, every_plot=every_plot, progress=progress)
        name = str(run.path)
    else:
        from p4perf.evaluation.fitting.datafiles import read_series

        marks, name = _marks(working_set, cache or []), None
        samples = read_series(data, x, y, region=region)
        scale: Literal["linear", "log"] = "log" if x_scale == "log" else "linear"
        evaluation = _fit_samples(samples, data, scale, changes, marks, output, every_plot=every_plot)
    emit_model(evaluation, fmt, run=name)
    for plot in evaluation.plots if evaluation is not None else ():
        say(f"plot: {plot}")


def _fit_samples(
    samples: Samples,
    data: Path,
    scale: Literal["linear", "log"],
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


@app.command()
def export(
    model: Annotated[Path, typer.Argument(help="A model.json, or a run directory that has one.")],
    language: Annotated[Language, typer.Option("--as", help="What to write.")] = Language.PYTHON,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file instead of the screen.")] = None,
) -> None:
    """Write a model as a function in Python or C, or as a formula in LaTeX."""
    from p4perf.models.export import export_model
    from p4perf.results import read_model
    from p4perf.results.files import write_text_atomically

    if not model.exists():
        raise UsageError(f"there is no model or run directory {model}")
    text = export_model(read_model(model), language.value)
    if output is None:
        typer.echo(text, nl=not text.endswith("\n"))
        return
    write_text_atomically(output, text if text.endswith("\n") else text + "\n")
    say(f"written: {output}")
