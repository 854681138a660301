"""Commands that measure: run and resume."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p4perf.cli.app import app
from p4perf.cli.options import PointsOption, SetOption, SpecArgument, load
from p4perf.cli.output import Format, FormatOption, emit, say
from p4perf.errors import MeasurementError, NoVerdictError

if TYPE_CHECKING:
    from p4perf.experiment import Outcome
    from p4perf.results import RunDirectory

QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]


@app.command()
def run(
    spec: SpecArgument,
    target: Annotated[str, typer.Option("--target", "-t", help="Device under test (p4perf list targets).")] = "dpdk-c",
    testbed: Annotated[str, typer.Option("--testbed", help="Where it runs (p4perf list testbeds).")] = "local",
    sets: SetOption = None,
    points: PointsOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Plan and print the points, measure nothing.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder that gets the run directory.")] = Path("runs"),
    quiet: QuietOption = False,
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Measure an experiment on a target, derive its model and plot it."""
    from p4perf.cli.progress import SweepProgress
    from p4perf.experiment import Conductor, new_run, open_target, open_testbed, plan_points, require_usable

    experiment = load(spec, sets, points)
    chosen, place = open_target(target), open_testbed(testbed)
    if dry_run:
        planned = plan_points(experiment, chosen, require_usable(chosen, place))
        rows = [
            {"index": p.point.index, **p.point.values, "memory_bytes": p.plan.memory_bytes, "point": p.key}
            for p in planned
        ]
        emit(fmt, "plan", rows, trials=len(rows) * experiment.spec.trials.repetitions)
        return 0
    directory, planned = new_run(experiment, chosen, place, output)
    if not quiet:
        pages = "" if directory.manifest()["hugepages"] else ", 4 KiB pages (p4perf doctor --fix reserves hugepages)"
        say(f"{experiment.spec.name} on {target} ({testbed}): {len(planned)} points{pages}")
        say(f"run directory: {directory.path}")
    with SweepProgress(quiet=quiet) as progress, _resumable(directory):
        outcome = Conductor(experiment, planned, chosen, place, directory, progress).measure()
    return _conclude(directory, outcome, fmt, quiet=quiet)


@app.command()
def resume(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    quiet: QuietOption = False,
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Go on with a run that was interrupted; what is finished is not measured again."""
    from p4perf.cli.progress import SweepProgress
    from p4perf.experiment import resume_run
    from p4perf.results import RunDirectory

    with SweepProgress(quiet=quiet) as progress, _resumable(RunDirectory.open(run)):
        directory, outcome = resume_run(run, progress)
    return _conclude(directory, outcome, fmt, quiet=quiet)


class _resumable:  # noqa: N801 - reads as a word in a with statement
    """On an interruption, say how to go on."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, value: Any, tb: Any) -> None:
        if kind is KeyboardInterrupt:
            say(f"\nstopped; everything finished is on disk. Go on with: p4perf resume {self._directory.path}")


def _conclude(directory: RunDirectory, outcome: Outcome, fmt: Format, *, quiet: bool) -> int:
    """Derive the model, print its table, say what happened."""
    from p4perf.cli.model_output import emit_model
    from p4perf.experiment.evaluate import evaluate_run, flag_counts

    if not quiet:
        rest_s = outcome.wall_s - outcome.measured_s - outcome.built_s
        say(
            f"{outcome.trials} trials in {outcome.wall_s:.1f} s ({outcome.measured_s:.1f} s measuring, "
            f"{outcome.built_s:.1f} s preparing and compiling, {max(rest_s, 0):.1f} s p4perf itself); "
            f"{outcome.complete} of {outcome.points} points have accepted trials"
        )
        flags = ", ".join(f"{flag} ({n})" for flag, n in flag_counts(directory).items())
        say(f"quality flags of the accepted trials: {flags or 'none'}")
    for label, reason in outcome.failed:
        say(f"warning: {label} failed: {reason}")
    for label in outcome.starved:
        say(f"warning: {label} has no accepted trial: the machine was disturbed (p4perf doctor tells more)")
    try:
        evaluation = evaluate_run(directory)
    except NoVerdictError as error:
        raise MeasurementError(error.message, hint=error.hint) from error
    emit_model(evaluation, fmt, run=str(directory.path))
    if evaluation is not None and not quiet:
        for plot in evaluation.plots:
            say(f"plot: {plot}")
    return int(outcome.exit_code)
