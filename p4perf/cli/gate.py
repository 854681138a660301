"""`p4perf gate`: did something become slower? Of runs that are there, or of two sides that it measures in turns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from p4perf.cli.app import Format, FormatOption, QuietOption, app, emit, refuse, say, say_lacking
from p4perf.errors import ExitCode, UsageError
from p4perf.plugins import DEFAULT_TARGET
from p4perf.results import find_run
from p4perf.results.files import write_atomically

if TYPE_CHECKING:
    from p4perf.experiment.gate import GateDocument


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
        int | None, Option(min=1, help="With --interleaved: keep at most N values of every swept variable.")
    ] = None,
    number: Annotated[
        int | None,
        Option(
            "--pairs",
            min=2,
            help="With --interleaved: pairs of starts per point; default: 6, or 12 if 6 give no verdict.",
        ),
    ] = None,
    testbed: Annotated[str | None, Option(help="With --interleaved: testbed of both sides; default: local.")] = None,
    output: Annotated[
        Path | None, Option("--output", "-o", help="With --interleaved: folder for the runs; default: runs.")
    ] = None,
    quiet: QuietOption = False,
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Compare new runs with a baseline, for continuous integration.

    Exit code 0 if nothing is slower, 1 if something is, 6 if the data are not conclusive.
    """
    from p4perf import api
    from p4perf.experiment import open_testbed
    from p4perf.experiment.interleaved import PAIRS
    from p4perf.specs.units import share

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
        refuse({"--drift": drift}, "alternating starts share their drift: leave it out")
    else:
        refuse(of_turns, "only with --interleaved")
    if not runs:
        raise UsageError("nothing to compare: no run is given", hint="run directories, or --interleaved with a spec")
    smallest, assumed = share(margin, "--margin"), None if drift is None else share(drift, "--drift")
    if interleaved:
        if len(baseline or ()) > 1 or (baseline and len(runs) > 1):
            raise UsageError("one spec is measured in turns with one --baseline", hint="or name several without it")
        from p4perf.api import arguments as given

        hint = "for example --baseline-env CC=gcc-12"
        options = {
            "baseline": baseline[0] if baseline else None, "target": target or DEFAULT_TARGET,
            "baseline_target": baseline_target, "testbed": open_testbed(testbed or "local"),
            "parent": output or Path("runs"), "overrides": given.pairs(sets or ()),
            "baseline_overrides": given.pairs(baseline_sets or (), "--baseline-set"),
            "baseline_environment": dict(given.pairs(baseline_environment or (), "--baseline-env", "NAME=VALUE", hint)),
            "baseline_tree": baseline_tree, "points": points, "pairs": number or PAIRS,
        }  # fmt: skip
        sides = [_measured(spec, quiet=quiet, **options) for spec in dict.fromkeys(runs)]
        before, after = [side[0] for side in sides], [side[1] for side in sides]
    elif not baseline:
        raise UsageError("there is no --baseline", hint="name a run directory, a campaign or a model.json")
    else:
        before, after = [find_run(path) for path in baseline], [find_run(path) for path in runs]
    found = api.gate(after, before, metric=metric, relative=relative, margin=smallest, drift=assumed)
    if interleaved and number is None and (undecided := _undecided(found, after)):
        for run in undecided:
            _measure_more(run, quiet=quiet)
        found = api.gate(after, before, metric=metric, relative=relative, margin=smallest)
    _write(found, junit, summary)
    return _conclude(found, f"against {', '.join(map(str, before))}, margin {100 * found.margin:g} %", fmt)


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


def _measured(spec: str, *, quiet: bool, **options: Any) -> tuple[Path, Path]:
    """Measure a spec in turns with its baseline; the runs of the baseline and the new side."""
    from p4perf.cli.progress import SweepProgress
    from p4perf.experiment.interleaved import measure_sides

    with SweepProgress(quiet=quiet) as progress:

        def begun(old: Path, new: Path) -> None:
            progress.path = new
            if not quiet:
                how = f"in turns with its baseline: {options['pairs']} pairs of starts a point"
                say(f"{spec} on {options['target']}, {how}\nbaseline: {old}\nnew run: {new}")

        sides = measure_sides(spec, progress=progress, begun=begun, **options)
    say_lacking(*(outcome for _, outcome in sides))
    return sides[0][0].path, sides[1][0].path


def _undecided(found: GateDocument, runs: list[Path]) -> list[Path]:
    """The runs whose experiments have no verdict, where nothing is slower."""
    from p4perf.experiment.gate import NO_VERDICT
    from p4perf.results import Run

    if found.exit_code != ExitCode.NO_VERDICT:
        return []
    names = {row.experiment for row in found.rows if row.verdict == NO_VERDICT and row.ratio}
    return [run for run in runs if Run.open(run).manifest.experiment in names]


def _measure_more(run: Path, *, quiet: bool) -> None:
    from p4perf.cli.progress import SweepProgress
    from p4perf.experiment.interleaved import PAIRS, resume_pair

    if not quiet:
        say(f"{run}: no verdict yet, {2 * PAIRS} pairs of starts a point")
    with SweepProgress(quiet=quiet) as progress:
        progress.path = run
        (_, before), (_, after) = resume_pair(run, progress, 2 * PAIRS)
    say_lacking(before, after)
