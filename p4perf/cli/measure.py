"""Commands that measure: run and resume."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p4perf.cli.app import app
from p4perf.cli.cluster import SchedulerOption, WorkersOption, check_cluster, crew_opener, opened_testbed, resuming
from p4perf.cli.options import PointsOption, SetOption, load
from p4perf.cli.output import Format, FormatOption, emit, say, say_environment
from p4perf.errors import MeasurementError, NoVerdictError, UsageError

if TYPE_CHECKING:
    from p4perf.experiment import Outcome
    from p4perf.results import RunDirectory
    from p4perf.testbeds.base import Testbed

DEFAULT_TARGET = "dpdk-c"

QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]

StrictOption = Annotated[
    bool, typer.Option("--strict", help="Derive no model from trials that carry quality flags: exit code 4.")
]


@app.command()
def run(
    specs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SPEC]...",
            help="Names of experiments of the catalogue, or paths of spec files.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            help="Device under test (p4perf list targets), with variants as in dpdk-swx:interpreter. Repeatable.",
            show_default=DEFAULT_TARGET,
        ),
    ] = None,
    testbed: Annotated[
        str,
        typer.Option(
            "--testbed", help="Where it runs (p4perf list testbeds): local, ssh:FILE, pos:FILE, manual:FOLDER."
        ),
    ] = "local",
    scheduler: SchedulerOption = None,
    workers: WorkersOption = None,
    every: Annotated[bool, typer.Option("--all", help="Measure every experiment of the catalogue.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="With --all: experiments that match, such as 'mat/*'. Repeatable."),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option("--budget", help="Time for everything, such as 30m: fewer points and repetitions to fit into it."),
    ] = None,
    program: Annotated[
        Path | None, typer.Option("--program", help="Measure this .spec of an SWX pipeline (target dpdk-swx) as it is.")
    ] = None,
    entries: Annotated[
        Path | None, typer.Option("--entries", help="With --program: entries of its tables, after lines 'table NAME'.")
    ] = None,
    frame: Annotated[
        str | None,
        typer.Option("--frame", help="With --program: the packet, as hexadecimal digits or a .pcap file."),
    ] = None,
    vary: Annotated[
        str | None,
        typer.Option("--vary", help="With --program: OFFSET:LENGTH:KEYS, bytes that change."),
    ] = None,
    expect: Annotated[
        Path | None, typer.Option("--expect", help="With --program: a file of packets and outcomes to check it with.")
    ] = None,
    repetitions: Annotated[
        int, typer.Option("--repetitions", min=1, max=1000, help="With --program: starts of the process.")
    ] = 3,
    sets: SetOption = None,
    points: PointsOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Plan and print the points, measure nothing.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder that gets the run directory.")] = Path("runs"),
    strict: StrictOption = False,
    quiet: QuietOption = False,
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Measure an experiment on a target, derive its model and plot it.

    Several experiments or targets, --all or --budget make a campaign: a folder with a run for each experiment and
    target and one report over all of them.
    """
    from p4perf.cli.campaign import campaign, chosen_experiments
    from p4perf.cli.program import run_program

    check_cluster(scheduler, workers)
    if program is not None:
        if specs or every or budget or sets or points or dry_run or strict or len(target or ()) > 1:
            raise UsageError("--program measures one program on one target", hint="name no experiments beside it")
        if scheduler is not None:
            raise UsageError("--program measures one program in one place", hint="leave --scheduler out")
        return run_program(
            program,
            (target or ["dpdk-swx"])[0],
            testbed,
            entries=entries,
            frame=frame,
            vary=vary,
            expect=expect,
            repetitions=repetitions,
            output=output,
            quiet=quiet,
            fmt=fmt,
        )
    if entries or frame or vary or expect:
        raise UsageError("--entries, --frame, --vary and --expect are for --program")
    targets = list(dict.fromkeys(target or [DEFAULT_TARGET]))
    names = chosen_experiments(specs or [], every=every, only=only or [])
    if every or budget is not None or len(names) > 1 or len(targets) > 1:
        if dry_run:
            raise UsageError("--dry-run is for one experiment on one target", hint="leave it out, or name only one")
        if strict:
            raise UsageError("--strict is for one experiment on one target", hint="leave it out, or name only one")
        return campaign(
            names,
            targets,
            testbed,
            (scheduler, workers),
            budget=budget,
            sets=sets,
            points=points,
            output=output,
            quiet=quiet,
            fmt=fmt,
        )
    with opened_testbed(testbed, scheduler, workers, quiet=quiet) as place:
        return _single(names[0], targets[0], place, scheduler, sets, points, dry_run, output, strict, quiet, fmt)


def _single(
    spec: str,
    target: str,
    place: Testbed,
    scheduler: str | None,
    sets: list[str] | None,
    points: int | None,
    dry_run: bool,
    output: Path,
    strict: bool,
    quiet: bool,
    fmt: Format,
) -> int:
    from p4perf.cli.progress import SweepProgress
    from p4perf.experiment import Crew, measure_run, new_run, open_target, plan_sweep, require_usable
    from p4perf.testbeds.batch.base import BatchTestbed

    experiment = load(spec, sets, points)
    chosen = open_target(target)
    if dry_run:
        plan = plan_sweep(experiment, chosen, require_usable(chosen, place))
        rows = [
            {"index": p.point.index, **p.point.values, "memory_bytes": p.plan.memory_bytes, "point": p.key}
            for p in plan.points
        ]
        refused = [{"values": dict(r.point.values), "reason": r.reason} for r in plan.refused]
        emit(fmt, "plan", rows, trials=len(rows) * experiment.spec.trials.repetitions, refused=refused)
        _say_refused(plan.refused)
        return 0
    directory, plan = new_run(experiment, chosen, place, output)
    if not quiet:
        advice = "" if isinstance(place, BatchTestbed) else " (p4perf doctor --fix reserves hugepages)"
        pages = "" if directory.manifest()["hugepages"] else f", 4 KiB pages{advice}"
        say(f"{experiment.spec.name} on {target} ({place.label}): {len(plan.points)} points{pages}")
        if isinstance(place, Crew):
            say(f"devices: {', '.join(place.devices)}")
        say(f"run directory: {directory.path}")
        if any(name == "operator" for name, _ in experiment.spec.program.composed):
            say_environment(directory.manifest())
    _say_refused(plan.refused)
    with SweepProgress(quiet=quiet) as progress, resumable(directory.path, scheduler):
        outcome = measure_run(experiment, plan.points, chosen, place, directory, progress)
    return _conclude(directory, outcome, fmt, strict=strict, quiet=quiet)


def _say_refused(refused: Any) -> None:
    for point in refused:
        say(f"warning: {point.label} is left out: {point.reason}")


@app.command()
def resume(
    run: Annotated[Path, typer.Argument(help="A run directory, or the folder of a campaign.")],
    scheduler: SchedulerOption = None,
    workers: WorkersOption = None,
    strict: StrictOption = False,
    quiet: QuietOption = False,
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Go on with a run or a campaign that was interrupted; what is finished is not measured again."""
    return go_on(run, scheduler, workers, strict=strict, quiet=quiet, fmt=fmt)


def go_on(
    run: Path,
    scheduler: str | None = None,
    workers: str | None = None,
    *,
    strict: bool,
    quiet: bool,
    fmt: Format,
) -> int:
    """Go on with a run or a campaign; the exit code."""
    from p4perf.cli.campaign import resume_campaign
    from p4perf.cli.progress import SweepProgress
    from p4perf.experiment import resume_run
    from p4perf.results import RunDirectory
    from p4perf.results.campaign import CampaignDirectory

    if CampaignDirectory.is_one(run):
        if strict:
            raise UsageError("--strict is for runs, and this is a campaign")
        return resume_campaign(run, (scheduler, workers), fmt, quiet=quiet)
    with (
        crew_opener(scheduler, workers, quiet=quiet) as crew,
        SweepProgress(quiet=quiet) as progress,
        resumable(RunDirectory.open(run).path, scheduler),
    ):
        directory, outcome = resume_run(run, progress, crew=crew)
    return _conclude(directory, outcome, fmt, strict=strict, quiet=quiet)


class resumable:  # noqa: N801 - reads as a word in a with statement
    """On an interruption, say how to go on."""

    def __init__(self, path: Path, scheduler: str | None = None) -> None:
        self._command = resuming(path, scheduler)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, value: Any, tb: Any) -> None:
        if kind is KeyboardInterrupt:
            say(f"\nstopped; everything finished is on disk. Go on with: {self._command}")


def _conclude(directory: RunDirectory, outcome: Outcome, fmt: Format, *, strict: bool, quiet: bool) -> int:
    """Derive the model, print its table, say what happened. A run that waits for results has no model yet."""
    from p4perf.cli.model_output import emit_model
    from p4perf.experiment.evaluate import evaluate_run

    if outcome.waiting:
        say(f"waiting: {outcome.waiting}")
        say(f"then go on with: p4perf resume {directory.path}")
        return int(outcome.exit_code)
    if not quiet:
        rest_s = outcome.wall_s - outcome.measured_s - outcome.built_s
        say(
            f"{outcome.trials} trials in {outcome.wall_s:.1f} s ({outcome.measured_s:.1f} s measuring, "
            f"{outcome.built_s:.1f} s preparing and compiling, {max(rest_s, 0):.1f} s p4perf itself); "
            f"{outcome.complete} of {outcome.points} points have accepted trials"
        )
        say(f"quality flags of the accepted trials: {_flags(directory) or 'none'}")
    for label, reason in outcome.failed:
        say(f"warning: {label} failed: {reason}")
    for label, found in zip(outcome.starved, outcome.starved_flags, strict=True):
        said = f"its trials have the flags {', '.join(found)}" if found else "it was not reached"
        say(f"warning: {label} has no accepted trial: {said} (p4perf doctor tells how quiet the machine is)")
    if strict and (flags := _flags(directory)):
        raise MeasurementError(
            f"accepted trials carry quality flags, and --strict refuses these: {flags}",
            hint=f"the trials are kept; p4perf fit {directory.path} makes a model of them all the same",
        )
    try:
        evaluation = evaluate_run(directory)
    except NoVerdictError as error:
        raise MeasurementError(error.message, hint=error.hint) from error
    emit_model(evaluation, fmt, run=str(directory.path))
    if evaluation is not None and not quiet:
        for plot in evaluation.plots:
            say(f"plot: {plot}")
    return int(outcome.exit_code)


def _flags(directory: RunDirectory) -> str:
    """Quality flags of the accepted trials and how many have them."""
    from p4perf.experiment.evaluate import flag_counts

    return ", ".join(f"{flag} ({n})" for flag, n in flag_counts(directory).items())
