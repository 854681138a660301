"""Commands that measure: run and resume, of one experiment and of campaigns."""

from __future__ import annotations

import fnmatch
import logging
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from p4perf.cli.app import (
    Format,
    FormatOption,
    PointsOption,
    QuietOption,
    RunArgument,
    SetOption,
    SkipOption,
    TlsOption,
    app,
    check_cluster,
    emit,
    once,
    planned_text,
    refuse,
    resuming,
    say,
    say_environment,
    say_lacking,
    say_stopped,
    told_by,
)
from p4perf.errors import ExitCode, MeasurementError, NoVerdictError, UsageError
from p4perf.plugins import DEFAULT_TARGET
from p4perf.records import Document, Record, Scalar, counted, doc, spread
from p4perf.results import Run
from p4perf.results.campaign import CampaignDirectory, campaign_of
from p4perf.results.names import siblings

if TYPE_CHECKING:
    from p4perf.experiment import Crew, SweepOutcome
    from p4perf.experiment.planning import SweepPlan
    from p4perf.experiment.sizing import Cell
    from p4perf.results import RunDirectory
    from p4perf.specs import Experiment
    from p4perf.targets.base import Target
    from p4perf.testbeds.base import Testbed


NOT_IN_A_CATALOGUE = ("demo/", "composition/")
"""Experiments of the catalogue that repeat others, for a quick look, and those that ``p4perf learn`` measures."""


def chosen_experiments(specs: Sequence[str], *, every: bool, only: Sequence[str]) -> list[str]:
    """The experiments that a command line names, in order."""
    from p4perf.specs import list_catalogue

    if only and not every:
        raise UsageError("--only chooses from the catalogue", hint="add --all")
    if every and specs:
        raise UsageError("name experiments or write --all, not both")
    if not every:
        if not specs:
            raise UsageError("no spec given", hint="p4perf list shows the catalogue; --all runs all of it")
        return list(dict.fromkeys(specs))
    names = [e.name for e in list_catalogue()]
    usual = [name for name in names if not name.startswith(NOT_IN_A_CATALOGUE)]
    chosen: set[str] = set()
    for pattern in only:
        found = fnmatch.filter(names if pattern.startswith(NOT_IN_A_CATALOGUE) else usual, pattern)
        if not found:
            raise UsageError(f"--only {pattern} matches no experiment of the catalogue", hint="p4perf list has them")
        chosen.update(found)
    return [name for name in names if name in chosen] if only else usual


def _measure(
    folder: CampaignDirectory, scheduler: str | None, tls: Path | None, workers: str | None, fmt: Format, *, quiet: bool
) -> int:
    """Measure what a campaign still needs and report on it; the exit code."""
    from p4perf.cli.inspect import emit_campaign
    from p4perf.cli.progress import WholeProgress
    from p4perf.experiment.campaign import measure_campaign

    told, content = told_by(quiet=quiet), folder.content()
    targets, budget_s = content["targets"], content["budget_s"]
    limit = "without a budget" if budget_s is None else f"within {budget_s / 60:.4g} minutes"
    number = len(content["experiments"])
    told(f"{counted(number * len(targets), 'run')}: {counted(number, 'experiment')} on {', '.join(targets)}, {limit}")
    told(f"campaign: {folder.path}")
    try:
        with crew_opener(scheduler, tls, workers, quiet=quiet) as crew, WholeProgress(quiet=quiet) as bar:
            cells, files, note = measure_campaign(folder, bar.told, crew, bar.reached)
    except KeyboardInterrupt:
        say_stopped(folder.path, scheduler, tls)
        raise
    document = emit_campaign(folder, fmt)
    if note:
        say(f"warning: {note}")
    told(f"{100 * document.accepted_share:.1f} % of the planned points have accepted trials")
    for path in files:
        told(f"report: {path}")
    if not all(c.complete for c in cells):
        say(f"not everything is measured; {resuming(folder.path, scheduler, tls)} continues it")
    return int(exit_code(cells))


def exit_code(cells: Sequence[Cell]) -> ExitCode:
    """0 if everything that a target can do is measured; 3 if a target cannot be used or all is refused; else 4."""
    from p4perf.experiment.sizing import REFUSED, UNAVAILABLE

    here = [c for c in cells if c.state != UNAVAILABLE]
    if not all(c.good for c in here):
        return ExitCode.INVALID_MEASUREMENT
    return ExitCode.OK if here == list(cells) and any(c.state != REFUSED for c in here) else ExitCode.UNAVAILABLE


SchedulerOption = Annotated[
    str | None,
    Option(
        "--scheduler", help="Measure on all devices of a Dask cluster: address of its scheduler, tcp://10.0.0.1:8786."
    ),
]

WorkersOption = Annotated[
    str | None, Option("--workers", help="With --scheduler: only workers whose names match, such as 'xeon-*'.")
]


@contextmanager
def crew_opener(
    scheduler: str | None, tls: Path | None, workers: str | None, *, quiet: bool
) -> Iterator[Callable[[str], Crew] | None]:
    """Open the devices of a cluster for the address of a testbed, once; close them at the end. None without one."""
    from p4perf.experiment import open_crew

    if scheduler is None:
        yield None
        return
    with ExitStack() as stack:

        def open_once(address: str) -> Crew:
            # What the client of Dask says of lost connections, p4perf says, too.
            logging.getLogger("distributed").setLevel(logging.CRITICAL)
            crew = open_crew(scheduler, address, workers, lambda text: None if quiet else say(f"note: {text}"), tls)
            stack.callback(crew.close)
            return crew

        yield open_once


def load(spec: str, sets: list[str] | None, points: int | None, *, skip: bool) -> Experiment:
    """The experiment with the changes of the command line; ``skip`` is that of --skip-impossible."""
    from p4perf.api.arguments import experiment

    return experiment(spec, sets or (), points, skip=skip, told=say)


StrictOption = Annotated[bool, Option("--strict", help="Derive no model from flagged trials; exit with code 4.")]


@app.command()
def run(
    specs: Annotated[
        list[str] | None,
        Argument(
            metavar="[SPEC]...",
            help="Names of experiments of the catalogue, or paths of spec files.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        Option(
            "--target",
            "-t",
            help="Device under test (p4perf list targets), with variants as in dpdk-swx:interpreter. Repeatable.",
            show_default=DEFAULT_TARGET,
        ),
    ] = None,
    testbed: Annotated[str, Option(help="Testbed: local, netns, ssh:FILE, pos:FILE or manual:FOLDER.")] = "local",
    scheduler: SchedulerOption = None,
    tls: TlsOption = None,
    workers: WorkersOption = None,
    every: Annotated[bool, Option("--all", help="Measure the catalogue, except demo/* and composition/*.")] = False,
    only: Annotated[
        list[str] | None, Option(help="With --all: only experiments that match, such as 'mat/*'. Repeatable.")
    ] = None,
    budget: Annotated[
        str | None, Option(help="Total time, such as 30m: measure the points that reduce errors most.")
    ] = None,
    accuracy: Annotated[
        str | None, Option(help="Measure only the points needed to reach this largest error, such as 3%.")
    ] = None,
    sets: SetOption = None,
    points: PointsOption = None,
    skip_impossible: SkipOption = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Plan and print the points without measuring.")] = False,
    output: Annotated[Path, Option("--output", "-o", help="Folder for the run directory.")] = Path("runs"),
    strict: StrictOption = False,
    quiet: QuietOption = False,
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Measure an experiment on a target, derive its model and plot it.

    For experiments of the catalogue and specs; to measure a program of your own, use p4perf measure.

    Several experiments or targets, --all or --budget make a campaign: a folder with a run for each experiment and
    target and one report over all of them.
    """
    from p4perf.api.arguments import overrides
    from p4perf.cli.progress import SweepProgress
    from p4perf.experiment import measure_anew, open_target, open_testbed
    from p4perf.specs.units import seconds, share

    check_cluster(scheduler, tls, workers)
    targets = once(target or [DEFAULT_TARGET])
    names = chosen_experiments(specs or [], every=every, only=only or [])
    wanted = None if accuracy is None else share(accuracy, "--accuracy")
    if every or budget is not None or len(names) > 1 or len(targets) > 1:
        if dry_run or strict:
            option = "--dry-run" if dry_run else "--strict"
            raise UsageError(f"{option} is for one experiment on one target", hint="leave it out, or name only one")
        from p4perf.experiment.campaign import new_campaign

        folder = new_campaign(
            names,
            targets,
            testbed,
            output,
            overrides=overrides(sets or (), skip=skip_impossible),
            points=points,
            budget_s=None if budget is None else seconds(budget, "--budget"),
            accuracy=wanted,
            cluster=scheduler is not None,
        )
        return _measure(folder, scheduler, tls, workers, fmt, quiet=quiet)
    with crew_opener(scheduler, tls, workers, quiet=quiet) as crew:
        place = open_testbed(testbed) if crew is None else crew(testbed)
        experiment, chosen = load(names[0], sets, points, skip=skip_impossible), open_target(targets[0])
        if dry_run:
            _show_plan(experiment, chosen, place, fmt)
            return 0

        def begins(run: RunDirectory, plan: SweepPlan) -> None:
            if not quiet:
                _say_beginning(experiment, chosen, place, run, len(plan.points))
            _say_refused(plan.refused)

        with SweepProgress(begins, cluster=(scheduler, tls), quiet=quiet) as progress:
            directory, _, outcome = measure_anew(experiment, chosen, place, output, progress, accuracy=wanted)
    return _conclude(Run(directory), outcome, fmt, strict=strict, quiet=quiet)


class _Refused(Record):
    values: dict[str, Any] = doc("swept values of a point that is beyond a limit of the target", of="point.values")
    reason: str = doc("the limit, and where it comes from")


class _PlanRow(Record):
    index: int = doc("number of the point, from 0", of="point.index")
    values: dict[str, Scalar] = spread("variable", "value of a swept variable", of="point.values")
    memory_bytes: int = doc("memory that tables and buffers will take, estimated", "B", of="plan.memory_bytes")
    point: str = doc("hash of the point: folder in the run directory", of="key")


class PlanDocument(Document, kind="plan"):
    """`p4perf run SPEC --dry-run`: one row for each point."""

    trials: int = doc("accepted trials that are wanted")
    refused: tuple[_Refused, ...] = doc("")
    rows: tuple[_PlanRow, ...] = doc("", of="points")


def _show_plan(experiment: Experiment, target: Target, place: Testbed, fmt: Format) -> None:
    from p4perf.experiment import plan_sweep, require_usable

    plan = plan_sweep(experiment, target, require_usable(target, place))
    emit(fmt, PlanDocument.read(plan, trials=len(plan.points) * experiment.spec.trials.repetitions))
    _say_refused(plan.refused)


def _say_beginning(experiment: Experiment, target: Target, place: Testbed, run: RunDirectory, points: int) -> None:
    from p4perf.experiment import Crew
    from p4perf.targets.roles import knows_hugepages
    from p4perf.testbeds.batch.base import BatchTestbed

    advice = "" if isinstance(place, BatchTestbed) else " (p4perf doctor --fix reserves hugepages)"
    pages = f", 4 KiB pages{advice}" if knows_hugepages(target) and not run.record().hugepages else ""
    say(f"{experiment.spec.name} on {target.label} ({place.label}): {counted(points, 'point')}{pages}")
    if isinstance(place, Crew):
        say(f"devices: {', '.join(place.devices)}")
    say(f"run directory: {run.path}")
    if any(name == "operator" for name, _ in experiment.spec.program.composed):
        say_environment(run.record())


def _say_refused(refused: Any) -> None:
    for point in refused:
        say(f"warning: {point.label} is left out: {point.reason}")


@app.command()
def resume(
    run: RunArgument,
    scheduler: SchedulerOption = None,
    tls: TlsOption = None,
    workers: WorkersOption = None,
    all_points: Annotated[
        bool, Option("--all-points", help="Complete the sweep of a run that chose its points.")
    ] = False,
    strict: StrictOption = False,
    quiet: QuietOption = False,
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Continue an interrupted run or campaign."""
    from p4perf.cli.progress import SweepProgress
    from p4perf.experiment import resume_run
    from p4perf.experiment.interleaved import pair_of

    check_cluster(scheduler, tls, workers)
    if CampaignDirectory.is_one(run):
        refuse({"--strict": strict, "--all-points": all_points}, f"{run} is a campaign")
        return _measure(CampaignDirectory.open(run), scheduler, tls, workers, fmt, quiet=quiet)
    if pair_of(Run.open(run).directory.manifest())[0]:
        refuse({"--scheduler": scheduler, "--strict": strict}, f"{run} was measured in turns with another run")
        return _resume_pair(run, quiet=quiet)
    path = Run.open(run).path
    with (
        crew_opener(scheduler, tls, workers, quiet=quiet) as crew,
        SweepProgress(path=path, cluster=(scheduler, tls), quiet=quiet) as progress,
    ):
        directory, outcome = resume_run(run, progress, crew=crew, all_points=all_points)
    if not quiet:
        _say_other_runs(Run(directory))
    if campaign := campaign_of(path):
        say(f"this run is part of a campaign: {resuming(campaign)} continues the others")
    return _conclude(Run(directory), outcome, fmt, strict=strict, quiet=quiet)


def _resume_pair(path: Path, *, quiet: bool) -> int:
    """Continue two runs that are measured in turns."""
    from p4perf.cli.progress import SweepProgress
    from p4perf.experiment.interleaved import resume_pair

    with SweepProgress(path=path, quiet=quiet) as progress:
        (baseline, first), (new, second) = resume_pair(path, progress)
    say(f"both runs are finished; judge them: p4perf gate --baseline {baseline.path} {new.path}")
    return max(int(first.exit_code), int(second.exit_code))


def command_for(command: Sequence[str], targets: Sequence[str]) -> str:
    """A command, given without its first word, for other targets."""
    words, kept = iter(command), ["p4perf"]
    for word in words:
        if word in _TARGET_OPTIONS:
            next(words, None)
        elif not word.startswith("--target="):
            kept.append(word)
    return shlex.join([*kept, *(f"--target={target}" for target in targets)])


_TARGET_OPTIONS = ("-t", "--target")


def _say_other_runs(run: Run) -> None:
    """Name the runs that `p4perf measure` began with this one, and the targets that it did not come to."""
    command = run.manifest.command or ()
    pairs = pairwise(command)
    asked = [name for option, name in pairs if option in _TARGET_OPTIONS]
    asked += [word.removeprefix("--target=") for word in command if word.startswith("--target=")]
    if command[:1] != ("measure",) or len(set(asked)) < 2:
        return
    others = siblings(run)
    for other in others:
        state = "finished" if other.directory.state().complete else f"not finished: p4perf resume {other.path}"
        say(f"{other.path}: {state}")
    found = {each.manifest.target for each in (run, *others)}
    if left := [name for name in dict.fromkeys(asked) if name not in found]:
        say(f"not begun, or refused: {command_for(command, left)}")


def _conclude(run: Run, outcome: SweepOutcome, fmt: Format, *, strict: bool, quiet: bool) -> int:
    """Derive the model, print its table, say what happened. A run that waits for results has no model yet."""
    from p4perf.cli.derive import emit_model
    from p4perf.experiment.evaluate import evaluate_run

    if outcome.waiting:
        say(f"waiting: {outcome.waiting}")
        say(f"then continue with: p4perf resume {run.path}")
        return int(outcome.exit_code)
    if not quiet:
        rest_s = outcome.wall_s - outcome.measured_s - outcome.built_s
        say(
            f"{counted(outcome.trials, 'trial')} in {outcome.wall_s:.1f} s ({outcome.measured_s:.1f} s measuring, "
            f"{outcome.built_s:.1f} s preparing and compiling, {max(rest_s, 0):.1f} s p4perf itself); "
            f"{outcome.complete} of {outcome.points} points have accepted trials"
        )
        trials = run.table.groupby(["point", "attempt"])["accepted"].any()
        accepted, wanted = int(trials.sum()), outcome.points * run.spec.trials.repetitions
        planned = f" of {wanted} planned" if accepted <= wanted else f" ({planned_text(wanted, accepted)})"
        say(
            f"{accepted} accepted trials{'' if run.manifest.design else planned}, {int((~trials).sum())} rejected; "
            f"quality flags of the accepted trials: {_flags(run) or 'none'}"
        )
        say(_accuracy(run))
    say_lacking(outcome)
    if strict and (flags := _flags(run)):
        raise MeasurementError(
            f"accepted trials carry quality flags, and --strict refuses these: {flags}",
            hint=f"the trials are kept; p4perf fit {run.path} makes a model of them all the same",
        )
    try:
        evaluation = evaluate_run(run)
    except KeyboardInterrupt:
        say(f"\nstopped; all trials are on disk: p4perf fit {run.path} derives the model")
        raise
    except NoVerdictError as error:
        raise MeasurementError(error.message, hint=error.hint) from error
    emit_model(evaluation, fmt, run=run)
    if evaluation is not None and not quiet:
        for plot in evaluation.plots:
            say(f"plot: {plot}")
    return int(outcome.exit_code)


def _accuracy(run: Run) -> str:
    """How accurate a run is that chose its points, or that there is such a way."""
    design = Run.open(run.path).manifest.design
    if design is None:
        return "every point was measured; --accuracy 3% measures only those that are needed for that"
    error, wanted = design.get("error"), float(design["accuracy"])
    if error is None:
        return f"the error is not known yet; {resuming(run.path)} continues"
    reached = f"error at most {100 * error:.1f} % (90 %), largest at {design['worst']}"
    if error <= wanted:
        return f"{reached}; p4perf resume {run.path} --all-points completes the sweep"
    missing = (
        "starts scatter too much, and there are no more of them" if design.get("done") else "there is more to measure"
    )
    return f"{reached}, not the {100 * wanted:.3g} % that were asked for: {missing}" if wanted else reached


def _flags(run: Run) -> str:
    return ", ".join(f"{flag} ({n})" for flag, n in run.flag_counts.items())
