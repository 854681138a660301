"""``p4perf operator``: what a C function of the user costs for a packet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p4perf.cli.app import app
from p4perf.cli.measure import DEFAULT_TARGET, QuietOption, resumable
from p4perf.cli.output import Format, FormatOption, emit, say, say_environment
from p4perf.errors import MeasurementError, UsageError

if TYPE_CHECKING:
    from p4perf.evaluation.operator_costs import OperatorCost

_SIZES = "64,128,256,512,1024,1500"


def packet_sizes(text: str) -> list[int]:
    """Sizes in bytes, from numbers joined by commas.

    Raises:
        UsageError: it is something else.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts):
        raise UsageError(f"--sizes {text}: expected whole numbers joined by commas", hint="for example 64,128,256")
    return [int(part) for part in parts]


@app.command()
def operator(
    source: Annotated[Path, typer.Argument(metavar="FILE.c", help="C text that defines operate (docs/operators.md).")],
    sizes: Annotated[str, typer.Option("--sizes", help="Packet sizes in bytes, joined by commas.")] = _SIZES,
    repetitions: Annotated[int, typer.Option("--repetitions", min=1, max=1000, help="Starts of the process.")] = 3,
    testbed: Annotated[str, typer.Option("--testbed", help="Where it runs: local, ssh:FILE.")] = "local",
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder that gets the run directory.")] = Path("runs"),
    quiet: QuietOption = False,
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Measure what an operator of your own, a function in C, costs for a packet."""
    from p4perf.cli.progress import SweepProgress
    from p4perf.experiment import measure_run, new_run, open_target, open_testbed, plan_sweep, require_usable
    from p4perf.experiment.operator import build_operator, operator_experiment
    from p4perf.testbeds.batch.base import BatchTestbed

    experiment = operator_experiment(source, packet_sizes(sizes), repetitions)
    target, place = open_target(DEFAULT_TARGET), open_testbed(testbed)
    if isinstance(place, BatchTestbed):
        raise UsageError(f"testbed {place.label} works in batches", hint="use local or ssh")
    facts = require_usable(target, place)
    build_operator(source, plan_sweep(experiment, target, facts).points[0].plan.build, place)
    directory, plan = new_run(experiment, target, place, output)
    if not quiet:
        say(f"{experiment.spec.name} on {target.label} ({place.label}): {len(plan.points)} packet sizes")
        say_environment(directory.manifest())
        say("note: what the operator computes is not checked")
        say(f"run directory: {directory.path}")
    with SweepProgress(quiet=quiet) as progress, resumable(directory.path):
        outcome = measure_run(experiment, plan.points, target, place, directory, progress)
    for label, reason in outcome.failed:
        say(f"warning: {label} failed: {reason}")
    for label in outcome.starved:
        say(f"warning: {label} has no accepted trial (p4perf doctor tells how quiet the machine is)")
    if not outcome.complete:
        raise MeasurementError(
            "no start was accepted: the machine was disturbed", hint=f"p4perf resume {directory.path}"
        )
    emit_costs(directory.read_measurements(), fmt, run=str(directory.path))
    return int(outcome.exit_code)


def emit_costs(measurements: Any, fmt: Format, *, run: str) -> None:
    """Print costs: what is below the resolution is said to be so, and has no number."""
    from p4perf.evaluation.operator_costs import operator_costs

    costs = operator_costs(measurements)
    rows = [_row(c, table=fmt is Format.TABLE) for c in costs]
    emit(fmt, "operator", rows, title="cost in core cycles for a packet, over the baseline", run=run)


def _row(c: OperatorCost, *, table: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"operator": c.operator, "packet_size": c.packet_size_bytes}
    if table:
        interval = f"{c.low:.1f} .. {c.high:.1f}" if c.resolved else ""
        row |= {"cost": c.text(), "95 % interval": interval, "resolution": f"{c.resolution_cycles:.2f}"}
        return row | {
            "TSC cycles": f"{c.cost_tsc_cycles:.1f}",
            "baseline": f"{c.baseline_cycles:.1f}",
            "starts": c.starts,
        }
    known = {"cost_cycles": c.cost_cycles, "low": c.low, "high": c.high, "cost_tsc_cycles": c.cost_tsc_cycles}
    return {
        **row,
        **{key: value if c.resolved else None for key, value in known.items()},
        "resolution_cycles": c.resolution_cycles,
        "below_resolution": not c.resolved,
        "baseline_cycles": c.baseline_cycles,
        "starts": c.starts,
    }
