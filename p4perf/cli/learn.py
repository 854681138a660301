"""The command that learns what programs cost on a machine: it measures fixtures and writes a cost model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p4perf.cli.app import app
from p4perf.cli.options import QuietOption, SetOption, overrides_of
from p4perf.cli.output import Format, FormatOption, emit, say
from p4perf.errors import UsageError
from p4perf.records import Document, Record, doc
from p4perf.results import Run

if TYPE_CHECKING:
    from p4perf.models.program.costs import CostModel


class _LearntRow(Record):
    what: str = doc("a component, or all composed programs, each predicted without itself")
    points: int = doc("points of the component, or programs")
    least: float = doc("lowest cost of its points", "cycles/packet", optional=True)
    most: float = doc("highest cost of its points", "cycles/packet", optional=True)
    median_error: float = doc("median of the relative errors of the predictions", "ratio", optional=True)
    p90_error: float = doc("90 % quantile of these", "ratio", optional=True)
    bias: float = doc("mean of the signed errors", "ratio", optional=True)


class CostModelDocument(Document):
    """`p4perf learn -o FILE`: one row for each component, and one for the check with composed programs."""

    KIND = "cost-model"

    file: str = doc("path of the cost model")
    rows: tuple[_LearntRow, ...] = doc("")


@app.command()
def learn(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN]...",
            help="Run directories to learn from; without them fixtures are measured.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Device to measure, with variants as in dpdk-swx:interpreter.")
    ] = None,
    testbed: Annotated[str, typer.Option("--testbed", help="Where it is measured (p4perf list testbeds).")] = "local",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for the cost model (JSON); without it the screen.")
    ] = None,
    folder: Annotated[Path, typer.Option("--runs", help="Folder for the runs of the fixtures.")] = Path("runs"),
    resume: Annotated[bool, typer.Option("--resume", help="Continue the newest runs in that folder.")] = False,
    catalogue: Annotated[
        Path | None,
        typer.Option("--catalogue", help="Folder with runs of the catalogue on that target: prices of primitives."),
    ] = None,
    form: Annotated[
        str | None, typer.Option("--form", help="Interaction of components: sum, scaled, spacing, 'spacing, scaled'.")
    ] = None,
    sets: SetOption = None,
    quiet: QuietOption = False,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Learn what programs cost on a target of this machine: measure fixtures, and write a cost model.

    A few minutes; --resume continues an interrupted session. With RUN... nothing is measured.
    """
    from p4perf.experiment.learning import learn_from_runs, with_primitives
    from p4perf.models.program.costs_storage import cost_model_json
    from p4perf.models.program.interactions import FORMS
    from p4perf.results.files import write_text_atomically

    chosen = next((f for f in FORMS if f == form), None)
    if form is not None and chosen is None:
        raise UsageError(f"there is no form {form!r}", hint=f"there are {', '.join(map(repr, FORMS))}")
    if bool(runs) == bool(target):
        raise UsageError("name run directories, or --target to measure fixtures; one of both")
    if runs and (resume or sets):
        raise UsageError("--resume and --set are for --target: the runs are measured already")
    measured = [Run.open(path) for path in runs or ()] or _measured(str(target), testbed, folder, resume, sets, quiet)
    model = learn_from_runs(measured, form=chosen)
    if catalogue is not None:
        model = with_primitives(model, catalogue)
    text = cost_model_json(model)
    if output is None:
        sys.stdout.write(text)
        return
    write_text_atomically(output, text)
    if not quiet:
        _tell(model)
    emit(fmt, CostModelDocument.read(None, file=output, rows=_rows(model)))


def _measured(target: str, testbed: str, folder: Path, resume: bool, sets: list[str] | None, quiet: bool) -> list[Any]:
    from p4perf.cli.progress import SweepProgress
    from p4perf.experiment.learning import FIXTURES, measure_fixtures

    told: Callable[[str], None] = (lambda line: None) if quiet else say
    found: list[Any] = []
    try:
        for name in FIXTURES:
            with SweepProgress(quiet=quiet) as progress:
                found += measure_fixtures(
                    target,
                    testbed,
                    folder,
                    [name],
                    resume=resume,
                    overrides=overrides_of(sets),
                    progress=progress,
                    told=told,
                )
    except KeyboardInterrupt:
        say("\nstopped; everything finished is on disk")
        say(f"continue with: p4perf learn --target {target} --runs {folder} --resume")
        raise
    return found


def _tell(model: CostModel) -> None:
    say(f"baseline {model.baseline:.1f} cycles/packet, {len(model.components)} components")
    say(f"what components cost beside one another: {model.form.name}")
    if model.calibration is None:
        say("no composed programs were measured: intervals are those of the components alone")
        return
    known = model.calibration
    say(
        f"{known.programs} composed programs; 90 % intervals: {100 * known.cached:.1f} % where all tables are in the "
        f"cache, {100 * known.beyond:.1f} % beyond it"
    )


def _rows(model: CostModel) -> list[dict[str, Any]]:
    from p4perf.evaluation.prediction.learning import prediction_errors

    rows: list[dict[str, Any]] = []
    for name, costs in model.components.items():
        cycles = [point.cycles for point in costs.points]
        rows.append({"what": f"component {name}", "points": len(cycles), "least": min(cycles), "most": max(cycles)})
    if model.checked:
        errors = prediction_errors([c.predicted for c in model.checked], [c.measured for c in model.checked])
        rows.append(
            {
                "what": "programs, each predicted without itself",
                "points": errors.programs,
                "median_error": errors.median,
                "p90_error": errors.p90,
                "bias": errors.bias,
            }
        )
    return rows
