"""`p4perf gate`: did something become slower? Of runs that are there, or of two sides that it measures in turns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from p4perf.cli.app import Format, FormatOption, QuietOption, app, emit, load, pairs, refuse, say, share
from p4perf.cli.measure import DEFAULT_TARGET
from p4perf.errors import ExitCode, UsageError
from p4perf.records import counted
from p4perf.results import find_run
from p4perf.results.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable

    from p4perf.experiment.gate import GateDocument
    from p4perf.experiment.recorder import SweepOutcome
    from p4perf.specs import Experiment

PAIRS = 6
"""Pairs of starts of a point of an interleaved gate; without a verdict twice as many."""

_PROGRAMS = (".p4", ".json", ".spec")


@app.command()
def gate(
    runs: Annotated[
        list[str] | None,
        Argument(
            metavar="[RUN]...",
            help="New run directories or campaigns; with --interleaved, specs or P4 programs to measure.",
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        Option(
            help="A run directory, campaign or model.json, repeatable; with --interleaved, another spec or program."
        ),
    ] = None,
    margin: Annotated[str, Option(help="Smallest change that matters, such as 5% or 0.05.")] = "5%",
    drift: Annotated[
        str | None, Option(help="Assume this standard deviation between runs, such as 1%; default: measured.")
    ] = None,
    metric: Annotated[str | None, Option(help="Metric; default: the modelled one.")] = None,
    relative: Annotated[
        bool, Option("--relative", help="Compare in units of the baseline program, which each start measures.")
    ] = False,
    junit: Annotated[Path | None, Option(help="Write JUnit XML to this file.")] = None,
    summary: Annotated[Path | None, Option(help="Append a table in Markdown to this file.")] = None,
    history: Annotated[
        bool, Option("--history", help="Show how much runs on this machine differed; compare nothing.")
    ] = False,
    interleaved: Annotated[
        bool, Option("--interleaved", help="Measure both sides now, in alternating starts: drift cancels.")
    ] = False,
    target: Annotated[
        str | None,
        Option("--target", "-t", help="With --interleaved: target of both sides.", show_default=DEFAULT_TARGET),
    ] = None,
    baseline_target: Annotated[str | None, Option(help="With --interleaved: another target of the baseline.")] = None,
    sets: Annotated[
        list[str] | None, Option("--set", help="With --interleaved: change the spec of both sides. Repeatable.")
    ] = None,
    baseline_sets: Annotated[
        list[str] | None, Option("--baseline-set", help="With --interleaved: change only the spec of the baseline.")
    ] = None,
    baseline_environment: Annotated[
        list[str] | None,
        Option("--baseline-env", help="With --interleaved: environment variable of the baseline, such as CC=gcc-12."),
    ] = None,
    baseline_tree: Annotated[
        Path | None, Option(help="With --interleaved: checkout of p4perf that generates the baseline.")
    ] = None,
    points: Annotated[
        int | None, Option(min=1, help="With --interleaved: most values of every swept variable.")
    ] = None,
    number: Annotated[
        int | None,
        Option(
            "--pairs",
            min=2,
            help="With --interleaved: pairs of starts per point; default: 6, or 12 if 6 give no verdict.",
        ),
    ] = None,
    testbed: Annotated[str | None, Option(help="With --interleaved: where it runs; default: local.")] = None,
    output: Annotated[
        Path | None, Option("--output", "-o", help="With --interleaved: folder for the runs; default: runs.")
    ] = None,
    quiet: QuietOption = False,
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Compare new runs with a baseline, for continuous integration.

    Exit code 0 if nothing is slower, 1 if something is, 6 if the data are not conclusive.
    """
    least = share(margin, "--margin")
    given = None if drift is None else share(drift, "--drift")
    of_turns: dict[str, object] = {
        "--target": target,
        "--baseline-target": baseline_target,
        "--set": sets,
        "--baseline-set": baseline_sets,
        "--baseline-env": baseline_environment,
        "--baseline-tree": baseline_tree,
        "--points": points,
        "--pairs": number,
        "--testbed": testbed,
        "--output": output,
    }
    if history:
        from p4perf.experiment.gate_drift import history as read
        from p4perf.experiment.gate_drift import short_history

        refuse({"RUN": runs, "--baseline": baseline, "--interleaved": interleaved, **of_turns}, "not with --history")
        kept = read()
        title = f"standard deviation between runs: {kept.file}"
        emit(fmt, kept, title=title, rows=short_history(kept) if fmt is Format.TABLE else None)
        return 0
    if interleaved:
        refuse({"--drift": drift}, "starts in turns share their drift: leave it out")
    else:
        refuse(of_turns, "only with --interleaved")
    if not runs:
        raise UsageError("nothing to compare: no run is given", hint="run directories, or --interleaved with a spec")
    measured: list[_Turns] = []
    if interleaved:
        measured = _measured(
            runs, baseline or [], target or DEFAULT_TARGET, baseline_target, sets or [], baseline_sets or [],
            baseline_environment or [], baseline_tree, points, number or PAIRS, testbed or "local",
            output or Path("runs"), quiet=quiet,
        )  # fmt: skip
        before, after = [each.baseline for each in measured], [each.new for each in measured]
    elif not baseline:
        raise UsageError("there is no --baseline", hint="name a run directory, a campaign or a model.json")
    else:
        before, after = [find_run(path) for path in baseline], [find_run(path) for path in runs]
    from p4perf.experiment.gate import NO_VERDICT, gate_runs

    found = gate_runs(before, after, metric=metric, relative=relative, margin=least, drift=given)
    if interleaved and number is None and found.exit_code == ExitCode.NO_VERDICT:
        for each in measured:
            if any(row.verdict == NO_VERDICT and row.ratio and row.experiment == each.name for row in found.rows):
                _measured_on(each, 2 * PAIRS, quiet=quiet)
        found = gate_runs(before, after, metric=metric, relative=relative, margin=least)
    _write(found, junit, summary)
    return _conclude(found, f"against {', '.join(map(str, before))}, margin {100 * least:g} %", fmt)


def _write(found: GateDocument, junit: Path | None, summary: Path | None) -> None:
    from p4perf.experiment.gate import append_summary, junit_xml

    if junit is not None:
        write_atomically(junit, (junit_xml(found),))
    if summary is not None:
        append_summary(found, summary)


def _conclude(found: GateDocument, title: str, fmt: Format) -> int:
    from p4perf.experiment.gate import counts, short_rows

    for warning in found.warnings:
        say(f"warning: {warning}")
    emit(fmt, found, title=title, rows=short_rows(found) if fmt is Format.TABLE else None)
    for each in found.drifts:
        say(f"drift of {each.text()}")
    say(f"{found.verdict}: {counts(found)}")
    return found.exit_code


@dataclass(frozen=True)
class _Turns:
    """Runs that were measured in turns, and the experiment of the new one."""

    experiment: Experiment
    baseline: Path
    new: Path

    @property
    def name(self) -> str:
        return self.experiment.spec.name


def _measured(
    specs: list[str],
    baseline: list[str],
    target: str,
    baseline_target: str | None,
    sets: list[str],
    baseline_sets: list[str],
    environment: list[str],
    tree: Path | None,
    points: int | None,
    number: int,
    testbed: str,
    output: Path,
    *,
    quiet: bool,
) -> list[_Turns]:
    """Measure every spec in turns with its baseline."""
    from p4perf.cli.progress import SweepProgress
    from p4perf.experiment import open_target, open_testbed
    from p4perf.experiment.interleaved import GatedSide, measure_in_turns, new_pair

    if len(baseline) > 1 or (baseline and len(specs) > 1):
        raise UsageError("one spec is measured in turns with one --baseline", hint="or name several specs without it")
    variables = dict(pairs(environment, "--baseline-env", "NAME=VALUE", "for example --baseline-env CC=gcc-12"))
    place = open_testbed(testbed)
    of_both = [*sets, f"trials.repetitions={number}"]
    measured = []
    chosen = [(_experiment(spec, of_both, points, number), spec) for spec in dict.fromkeys(specs)]
    for experiment, spec in chosen:
        other = experiment
        if baseline or baseline_sets:
            other = _experiment(baseline[0] if baseline else spec, [*of_both, *baseline_sets], points, number)
        old = GatedSide(other, open_target(baseline_target or target), variables, tree)
        new = GatedSide(experiment, open_target(target))
        with SweepProgress(quiet=quiet) as progress:
            sides = new_pair(old, new, place, output, progress)
            if not quiet:
                say(f"{spec} on {target}, in turns with its baseline: {counted(number, 'pair')} of starts a point")
                for side, words in zip(sides, ("baseline", "new run"), strict=True):
                    say(f"{words}: {side.run.path}")
            progress.path = sides[1].run.path
            _warn(measure_in_turns(*sides, experiment))
        measured.append(_Turns(experiment, *(side.run.path for side in sides)))
    return measured


def _measured_on(turns: _Turns, number: int, *, quiet: bool) -> None:
    """Measure more pairs, until each point has that number."""
    from p4perf.cli.progress import SweepProgress
    from p4perf.experiment.interleaved import measure_in_turns, reopened_pair

    if not quiet:
        say(f"{turns.name}: no verdict yet, {counted(number, 'pair')} of starts a point")
    with SweepProgress(quiet=quiet) as progress:
        sides = reopened_pair(turns.new, progress)
        progress.path = turns.new
        _warn(measure_in_turns(*sides, turns.experiment, number))


def _warn(outcomes: Iterable[SweepOutcome]) -> None:
    known = list(outcomes)
    for label in dict.fromkeys(label for outcome in known for label in outcome.starved):
        say(f"warning: {label} has no accepted start (p4perf doctor reports how quiet the machine is)")
    for label, reason in dict.fromkeys(failed for outcome in known for failed in outcome.failed):
        say(f"warning: {label} failed: {reason}")


def _experiment(spec: str, sets: list[str], points: int | None, number: int) -> Experiment:
    """The experiment of a spec, or of a P4 program that is measured as it is."""
    if Path(spec).suffix not in _PROGRAMS:
        return load(spec, sets, points)
    from p4perf.experiment.own import own_experiment

    if len(sets) > 1 or points is not None:
        raise UsageError(f"--set and --points change specs, and {spec} is a program", hint="leave them out")
    return own_experiment(Path(spec), repetitions=number)
