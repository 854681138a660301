"""The command that derives models: fit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p4perf.cli.app import app
from p4perf.cli.output import SCHEMA_VERSION, Format, FormatOption, emit, print_json, say
from p4perf.errors import UsageError

if TYPE_CHECKING:
    from p4perf.experiment.evaluate import Evaluation
    from p4perf.models.component import ComponentModel


@app.command()
def fit(
    data: Annotated[Path, typer.Argument(help="A run directory, or a CSV file with a header line.")],
    x: Annotated[str | None, typer.Option("--x", help="CSV: column of the scaled variable.")] = None,
    y: Annotated[str | None, typer.Option("--y", help="CSV: column of the metric.")] = None,
    parts: Annotated[int | None, typer.Option("--parts", min=1, help="Exactly so many parts.")] = None,
    max_parts: Annotated[int | None, typer.Option("--max-parts", min=1, help="At most so many parts.")] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", help="exact, or scholz2021: the rules of the paper to the letter.")
    ] = None,
    x_scale: Annotated[str, typer.Option("--x-scale", help="CSV: axis of the plot, linear or log.")] = "linear",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV: folder for model.json and the plot.")
    ] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Derive a piecewise model from a run or from any CSV file."""
    from p4perf.experiment.evaluate import evaluate_run
    from p4perf.results import RunDirectory

    if not data.exists():
        raise UsageError(f"there is no run directory or CSV file {data}")
    if not data.is_dir():
        _fit_csv(data, x, y, parts, max_parts, profile, x_scale, output, fmt)
        return
    if x or y or output:
        raise UsageError("--x, --y and --output are for CSV files: a run knows its variables and its place")
    directory = RunDirectory.open(data)
    evaluation = evaluate_run(directory, parts=parts, max_parts=max_parts, profile=profile)
    emit_model(evaluation, fmt, run=str(directory.path))
    if evaluation is not None:
        for plot in evaluation.plots:
            say(f"plot: {plot}")


def _fit_csv(
    data: Path,
    x: str | None,
    y: str | None,
    parts: int | None,
    max_parts: int | None,
    profile: str | None,
    x_scale: str,
    output: Path | None,
    fmt: Format,
) -> None:
    from p4perf.evaluation.component import derive_model
    from p4perf.evaluation.csvdata import read_csv
    from p4perf.evaluation.plots import PlotInfo, model_figure, save_figure
    from p4perf.experiment.evaluate import Evaluation
    from p4perf.results.files import write_text_atomically

    if x is None or y is None:
        raise UsageError("a CSV file needs --x COLUMN and --y COLUMN")
    if x_scale not in ("linear", "log"):
        raise UsageError(f"--x-scale {x_scale}: expected linear or log")
    if profile not in (None, "exact", "scholz2021"):
        raise UsageError(f"--profile {profile}: expected exact or scholz2021")
    samples = read_csv(data, x, y)
    model = derive_model(
        samples,
        name=data.stem,
        x_scale="log" if x_scale == "log" else "linear",
        max_parts=max_parts or 5,
        parts=parts,
        profile="scholz2021" if profile == "scholz2021" else "exact",
    )
    plots: tuple[Path, ...] = ()
    if output is not None:
        write_text_atomically(output / "model.json", model.to_json())
        plots = tuple(output / f"{data.stem}.{kind}" for kind in ("svg", "png"))
        figure = model_figure(model, samples, info=PlotInfo(title=data.name))
        for plot in plots:
            save_figure(figure, plot)
    emit_model(Evaluation(model, (), plots, samples.missing), fmt, run=None)
    for plot in plots:
        say(f"plot: {plot}")


def emit_model(evaluation: Evaluation | None, fmt: Format, *, run: str | None) -> None:
    """Print the parts of a model: part, domain, function, parameters with intervals, error."""
    from p4perf.evaluation.tables import model_rows

    if fmt is Format.JSON:
        print_json({"schema_version": SCHEMA_VERSION, "kind": "model", "run": run, **model_json(evaluation)})
    if evaluation is None:
        say("no model: the spec asks for none, or sweeps several variables; p4perf show prints the points")
    if evaluation is None or fmt is Format.JSON:
        return
    model = evaluation.model
    rows: list[dict[str, Any]] = [
        {
            "part": row.part,
            model.x.name: f"{row.start:g} .. {row.end:g}",
            "points": row.points,
            "function": row.formula.removeprefix(f"{model.y.name} = "),
            "parameters with 95 % intervals": ", ".join(p.text() for p in row.parameters),
            "sMAPE" if model.error == "smape" else model.error: f"{100 * row.error:.2f} %",
        }
        for row in model_rows(model)
    ]
    emit(fmt, "model", rows, title=f"{model.y.label()} over {model.x.label()}")
    if fmt is Format.TABLE:
        _say_rest(evaluation)


def _say_rest(evaluation: Evaluation) -> None:
    model = evaluation.model
    say(f"combined error ({model.error}): {100 * model.fitting.error:.2f} %")
    for explanation in evaluation.explanations:
        say(explanation.text())
    if evaluation.missing:
        say(f"warning: no accepted trial at {model.x.name} = {', '.join(f'{v:g}' for v in evaluation.missing)}")


NO_MODEL: Mapping[str, Any] = {
    **dict.fromkeys(("name", "target", "x", "y", "domain", "error_metric", "error")),
    **{key: [] for key in ("parts", "splits", "split_x", "split_intervals", "explanations")},
    **{key: [] for key in ("points_without_accepted_trials", "plots")},
}
"""What is printed of a run that has no model: the same keys, null or empty."""


def model_json(evaluation: Evaluation | None) -> Mapping[str, Any]:
    """The model as the commands print it: axes, parts, splits, error, explanations and plots."""
    from p4perf.evaluation.tables import model_rows

    if evaluation is None:
        return NO_MODEL
    model: ComponentModel = evaluation.model
    uncertainty = model.uncertainty
    return {
        "name": model.name,
        "target": model.target,
        "x": {"name": model.x.name, "unit": model.x.unit, "scale": model.x.scale},
        "y": {"name": model.y.name, "unit": model.y.unit},
        "domain": list(model.domain),
        "error_metric": model.error,
        "error": model.fitting.error,
        "parts": [row.as_dict() for row in model_rows(model)],
        "splits": list(model.fitting.splits),
        "split_x": list(model.fitting.split_x),
        "split_intervals": [[i.low, i.high] for i in uncertainty.splits] if uncertainty else [],
        "explanations": [e.text() for e in evaluation.explanations],
        "points_without_accepted_trials": list(evaluation.missing),
        "plots": [str(p) for p in evaluation.plots],
    }
