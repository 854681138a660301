"""The commands that derive models and carry them elsewhere: fit, export."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from p4perf.cli.app import app
from p4perf.cli.fit_options import (
    ErrorOption,
    LevelOption,
    LossOption,
    MaxPartsOption,
    MinPointsOption,
    PartsOption,
    ProfileOption,
    SplitFinderOption,
)
from p4perf.cli.model_output import emit_model
from p4perf.cli.options import check_choice
from p4perf.cli.output import Format, FormatOption, say, say_origin
from p4perf.errors import UsageError

if TYPE_CHECKING:
    from p4perf.evaluation.working_set import CacheMark
    from p4perf.models.component import ComponentModel


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
    parts: PartsOption = None,
    max_parts: MaxPartsOption = None,
    min_points: MinPointsOption = None,
    profile: ProfileOption = None,
    error: ErrorOption = None,
    loss: LossOption = None,
    split_finder: SplitFinderOption = None,
    search: Annotated[
        str | None, typer.Option("--search", help="exact, coarse, or auto: coarse for more than 1000 points.")
    ] = None,
    level: LevelOption = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Threads; all processors by default.")] = None,
    x_scale: Annotated[str | None, typer.Option("--x-scale", help="File: axis of the plots, linear or log.")] = None,
    working_set: Annotated[
        str | None,
        typer.Option(
            "--working-set",
            help="File: bytes that grow with x, as FIXED+PER_X, or scholz2021:KEY,ACTION_DATA (bytes of an exact "
            "table of t4p4s, Eq. 5). With --cache, splits are compared with it.",
        ),
    ] = None,
    cache: Annotated[
        list[str] | None, typer.Option("--cache", help="File: a cache, such as L2=256KiB. May be repeated.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File: folder for model.json and the plots.")
    ] = None,
    every_plot: Annotated[
        bool, typer.Option("--every-plot", help="Draw a figure of its own for every number of parts.")
    ] = False,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Derive a piecewise model from a run, a CSV file, or a file of Extra-P."""
    if not data.exists():
        raise UsageError(f"there is no run directory or file {data}")
    check_choice(x_scale, "--x-scale", ("linear", "log"))
    check_choice(profile, "--profile", ("exact", "scholz2021"))
    check_choice(loss, "--loss", ("squares", "l1"))
    check_choice(search, "--search", ("auto", "exact", "coarse"))
    changes: dict[str, Any] = {
        "parts": parts, "max_parts": max_parts, "min_points": min_points, "profile": profile, "error": error,
        "loss": loss, "split_finder": split_finder, "search": search, "level": level, "threads": threads,
    }  # fmt: skip
    changes = {name: value for name, value in changes.items() if value is not None}
    of_file = {
        "--x": x, "--y": y, "--region": region, "--x-scale": x_scale, "--working-set": working_set, "--cache": cache,
        "--output": output,
    }  # fmt: skip
    if data.is_dir():
        given = [name for name, value in of_file.items() if value]
        if given:
            raise UsageError(f"{', '.join(given)}: for files only; a run knows its variables and its place")
        _fit_run(data, changes, every_plot, fmt)
        return
    marks = _marks(working_set, cache or [])
    _fit_file(data, (x, y, region), x_scale or "linear", changes, marks, output, every_plot, fmt)


def _fit_run(data: Path, changes: Mapping[str, Any], every_plot: bool, fmt: Format) -> None:
    from p4perf.cli.progress import Share
    from p4perf.experiment.evaluate import evaluate_run
    from p4perf.results import RunDirectory

    directory = RunDirectory.open(data)
    say_origin(directory.manifest())
    with Share("deriving") as progress:
        evaluation = evaluate_run(directory, changes=changes, every_plot=every_plot, progress=progress)
    emit_model(evaluation, fmt, run=str(directory.path))
    for plot in evaluation.plots if evaluation is not None else ():
        say(f"plot: {plot}")


def _fit_file(
    data: Path,
    names: tuple[str | None, str | None, str | None],
    x_scale: str,
    changes: Mapping[str, Any],
    marks: tuple[CacheMark, ...],
    output: Path | None,
    every_plot: bool,
    fmt: Format,
) -> None:
    from p4perf.cli.progress import Share
    from p4perf.evaluation.component import derive_model
    from p4perf.evaluation.datafiles import read_series
    from p4perf.evaluation.options import FitOptions
    from p4perf.evaluation.outcome import Evaluation
    from p4perf.evaluation.working_set import explain

    samples = read_series(data, names[0], names[1], region=names[2])
    scale: Literal["linear", "log"] = "log" if x_scale == "log" else "linear"
    with Share("deriving") as progress:
        derived = derive_model(samples, name=data.stem, x_scale=scale, options=FitOptions(**changes), progress=progress)
    plots: tuple[Path, ...] = ()
    if output is not None:
        from p4perf.evaluation.outcome import Picture, draw
        from p4perf.evaluation.plots import PlotInfo
        from p4perf.results.files import write_text_atomically

        write_text_atomically(output / "model.json", derived.model.to_json())
        picture = Picture(marks, None, PlotInfo(title=data.name))
        plots = draw(derived, lambda name: output / f"{data.stem}{name}", picture, every=every_plot)
    explanations = explain(derived.model.fitting.split_x, marks) if marks else ()
    emit_model(Evaluation(derived, explanations, plots), fmt, run=None)
    for plot in plots:
        say(f"plot: {plot}")


def _marks(working_set: str | None, caches: list[str]) -> tuple[CacheMark, ...]:
    """Where the working set fills the caches.

    Raises:
        UsageError: one of both is missing, or cannot be read.
    """
    from p4perf.evaluation.working_set import cache_marks, parse_cache, parse_working_set

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
    from p4perf.results.files import write_text_atomically

    text = export_model(load_model(model), language.value)
    if output is None:
        typer.echo(text, nl=not text.endswith("\n"))
        return
    write_text_atomically(output, text if text.endswith("\n") else text + "\n")
    say(f"written: {output}")


def load_model(path: Path) -> ComponentModel:
    """The model of a file, or of a run directory.

    Raises:
        UsageError: there is no such file or directory.
        DataError: it is no model.
    """
    from p4perf.models.component import ComponentModel
    from p4perf.results import RunDirectory
    from p4perf.results.files import read_text

    if not path.exists():
        raise UsageError(f"there is no model or run directory {path}")
    if path.is_dir():
        run = RunDirectory.open(path)
        return ComponentModel.from_json(run.read_model(), file=str(run.path / "model.json"))
    return ComponentModel.from_json(read_text(path), file=str(path))
