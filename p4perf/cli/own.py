"""`p4perf measure`: your own P4 program on one or several targets, or your own operator in C."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from p4perf import errors
from p4perf.cli.app import (
    DefaultFillOption,
    DefinesOption,
    EntriesOption,
    Format,
    FormatOption,
    IncludesOption,
    MissOption,
    P4infoOption,
    PacketsOption,
    PortOption,
    QuietOption,
    StdOption,
    ZipfOption,
    app,
    emit,
    measured_text,
    once,
    say,
    say_environment,
    say_lacking,
)
from p4perf.cli.measure import command_for
from p4perf.plugins import DEFAULT_TARGET
from p4perf.records import Document, Interval, Record, counted, doc, interval

if TYPE_CHECKING:
    import pandas as pd

    from p4perf.evaluation.papers.ren2025.costs import OperatorCost
    from p4perf.experiment.planning import SweepPlan
    from p4perf.results import RunDirectory
    from p4perf.specs import Experiment
    from p4perf.targets.base import Target
    from p4perf.testbeds.base import Testbed

METRICS = ("cycles_per_packet", "cost_cycles_per_packet", "packet_rate")


class _TargetRow(Record):
    target: str = doc("target")
    cycles_per_packet: Interval | None = interval(
        "median over process starts, and its 95 % interval (ends are null with one accepted start)", "cycles/packet"
    )
    cost_cycles_per_packet: Interval | None = interval(
        "the same of the difference to the minimal program", "cycles/packet"
    )
    packet_rate: Interval | None = interval("the same of the packet rate", "Mpps")
    flags: tuple[str, ...] = doc("[flags](measuring.md#quality-flags) of the accepted trials")
    refused: str | None = doc("why the target does not run the program; null if it can")
    failed: str | None = doc("why it was not measured although the target can run it; null if it was")
    run: str | None = doc("path of the run directory; null if there is none")


class MeasureDocument(Document, kind="measure"):
    """`p4perf measure PROGRAM`: one row for each target."""

    program: str = doc("path of the program")
    rows: tuple[_TargetRow, ...] = doc("")


class _OperatorRow(Record):
    operator: str = doc("name of the operator")
    packet_size: int = doc("packet size", "B", of="packet_size_bytes")
    cost_cycles: float | None = doc("median cost over the baseline; null if below the resolution", "cycles/packet")
    low: float | None = doc("lower end of its 95 % interval", "cycles/packet")
    high: float | None = doc("upper end", "cycles/packet")
    cost_tsc_cycles: float | None = doc("the same in cycles of the time stamp counter", "TSC cycles/packet")
    resolution_cycles: float = doc("smallest cost that is distinguished from zero", "cycles/packet")
    below_resolution: bool = doc("whether the cost is below the resolution")
    baseline_cycles: float = doc("cost of the baseline program", "cycles/packet")
    starts: int = doc("accepted starts")


class OperatorDocument(Document, kind="operator"):
    """`p4perf measure FILE.c`: one row for each packet size."""

    run: str = doc("path of the run directory")
    rows: tuple[_OperatorRow, ...] = doc("")


def _packet_sizes(text: str) -> list[int]:
    """Sizes in bytes, from numbers joined by commas."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts):
        raise errors.UsageError(
            f"--sizes {text}: expected whole numbers joined by commas", hint="for example 64,128,256"
        )
    return [int(part) for part in parts]


@app.command()
def measure(
    program: Annotated[
        Path, Argument(metavar="PROGRAM", help="JSON of p4c-bm2-ss, .spec of SWX, .p4 with p4c, or operator in C (.c).")
    ],
    target: Annotated[
        list[str] | None, Option("--target", "-t", help="Target to measure on; repeatable. Default: dpdk-c.")
    ] = None,
    entries: EntriesOption = None,
    p4info: P4infoOption = None,
    includes: IncludesOption = None,
    defines: DefinesOption = None,
    arch: Annotated[
        str | None,
        Option(help="For a .p4: v1model (p4c-bm2-ss), psa or pna (p4c-dpdk), ebpf_model; default: from its include."),
    ] = None,
    std: StdOption = None,
    fill: Annotated[
        list[str] | None, Option(help="Generate entries: TABLE=N or TABLE=N:bgp|classbench. Repeatable.")
    ] = None,
    default_fill: DefaultFillOption = None,
    miss: MissOption = None,
    zipf: ZipfOption = None,
    probabilities: Annotated[Path | None, Option(help="YAML file of branch probabilities and traffic shares.")] = None,
    frame_size: Annotated[
        int | None, Option(min=64, max=1518, show_default="128", help="Frame size in bytes, FCS included.")
    ] = None,
    packets: PacketsOption = None,
    capture: Annotated[Path | None, Option(help="Send the packets of this pcap file.")] = None,
    port: PortOption = None,
    sizes: Annotated[
        str | None, Option(help="For a .c: packet sizes in bytes. Default: 64,128,256,512,1024,1500.")
    ] = None,
    repetitions: Annotated[int, Option(min=1, max=1000, help="Process starts.")] = 3,
    testbed: Annotated[str, Option(help="Testbed: local or ssh:FILE.")] = "local",
    output: Annotated[Path, Option("--output", "-o", help="Folder for the run directories.")] = Path("runs"),
    quiet: QuietOption = False,
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Measure your own P4 program, or your own operator in C.

    For one program as it is; to vary a construct and derive a model of its cost, use p4perf run.

    First verifies each target: packets that take all paths of the program must give the results of the reference
    interpreter.
    """
    from p4perf.experiment import open_target, open_testbed
    from p4perf.experiment.own import own_experiment

    experiment = own_experiment(
        program, entries=entries, p4info=p4info, arch=arch, std=std, defines=defines or [], includes=includes or [],
        fill=fill or [], default_fill=default_fill, miss=miss or [], zipf=zipf, shares=probabilities, packets=packets,
        capture=capture, port=port, frame_size_bytes=frame_size, repetitions=repetitions,
        sizes=() if sizes is None else _packet_sizes(sizes),
    )  # fmt: skip
    place = open_testbed(testbed)
    targets = [open_target(label) for label in once(target or [DEFAULT_TARGET])]
    if program.suffix == ".c":
        return _measure_operator(program, experiment, targets[-1], place, output, quiet=quiet, fmt=fmt)
    rows: list[_TargetRow] = []
    worst = errors.ExitCode.OK
    for number, chosen in enumerate(targets, 1):
        try:
            row, code = _measured(program, experiment, chosen, place, output, quiet=quiet, first=not rows)
        except (errors.StorageError, errors.TestbedError):
            raise
        except KeyboardInterrupt:
            if left := [other.label for other in targets[number:]]:
                say(f"not begun: {command_for(sys.argv[1:], left)}")
            raise
        except errors.P4PerfError as error:
            if len(targets) == 1:
                raise
            refused = isinstance(error, errors.CapabilityError)
            reason = f"{error.location}: {error.message}" if error.location else error.message
            say(f"{'refused' if refused else 'warning'}: {chosen.label}: {reason}")
            row = _row(chosen.label, said={"refused" if refused else "failed": reason})
            code = error.exit_code
        rows.append(row)
        worst = max(worst, code)
    table = [_text_row(row) for row in rows] if fmt is Format.TABLE else None
    emit(fmt, MeasureDocument(program=str(program), rows=tuple(rows)), rows=table)
    runs = [row.run for row in rows if row.run is not None]
    if runs and not quiet:
        sent: dict[str, object] = {
            "entries": entries, "p4info": p4info, "include": includes, "define": defines, "arch": arch, "std": std,
            "fill": fill, "default-fill": default_fill, "miss": miss, "zipf": zipf, "probabilities": probabilities,
            "frame-size": frame_size, "packets": packets, "capture": capture, "port": port,
        }  # fmt: skip
        several = {name: value if isinstance(value, list) else [value] for name, value in sent.items()}
        words = [f"--{name}={each}" for name, values in several.items() for each in values if each is not None]
        command = shlex.join(["p4perf", "predict", str(program), "--traffic", *words])
        say(f"prediction for the same packets: {command}")
    if len(runs) > 1 and not quiet:
        say(f"compare them: p4perf compare {shlex.join(runs)}")
    return int(worst)


def _measured(
    program: Path, experiment: Experiment, target: Target, place: Testbed, output: Path, *, quiet: bool, first: bool
) -> tuple[_TargetRow, errors.ExitCode]:
    """Measure on one target: its row, and the exit code."""
    from p4perf.cli.progress import SweepProgress
    from p4perf.experiment.own import measure_own

    def begins(run: RunDirectory, plan: SweepPlan) -> None:
        if not quiet:
            for note in plan.points[0].plan.workload.notes if first else ():
                say(note)
            say(f"{program} on {target.label} ({place.label}); run directory: {run.path}")

    with SweepProgress(begins, quiet=quiet) as progress:
        directory, outcome = measure_own(program, experiment, target, place, output, progress)
    row = _row(target.label, directory.read_measurements(), said={"run": str(directory.path)})
    return row, errors.ExitCode(outcome.exit_code)


def _text_row(row: _TargetRow) -> dict[str, object]:
    def text(known: Interval | None) -> str:
        return "" if known is None else measured_text(known.value, known.low, known.high)

    return {
        "target": row.target,
        "cycles/packet (95 % interval)": text(row.cycles_per_packet),
        "over the minimal program": text(row.cost_cycles_per_packet),
        "Mpps": text(row.packet_rate),
        "remark": _remark(row),
    }


def _remark(row: _TargetRow) -> str:
    if row.run is None:
        return "refused" if row.refused else "failed"
    if row.cycles_per_packet is None:
        return "no accepted trial"
    return ", ".join([*(["one start only"] if row.cycles_per_packet.low is None else ()), *row.flags])


def _row(label: str, measurements: pd.DataFrame | None = None, *, said: dict[str, str]) -> _TargetRow:
    from p4perf.results.table import flags_in, interval_of

    flags: set[str] = set()
    found: dict[str, Any] = dict.fromkeys(METRICS)
    if measurements is not None:
        for metric in METRICS:
            rows = measurements[(measurements["metric"] == metric) & measurements["accepted"]]
            flags |= flags_in(rows)
            if len(rows):
                middle, *ends = interval_of(rows)
                low, high = ends if len(rows) > 1 else (None, None)
                found[metric] = Interval(value=middle, low=low, high=high)
    found |= {"refused": None, "failed": None, "run": None, **said}
    return _TargetRow(target=label, flags=tuple(sorted(flags)), **found)


def _measure_operator(
    source: Path, experiment: Experiment, target: Target, place: Testbed, output: Path, *, quiet: bool, fmt: Format
) -> int:
    """Measure what an operator, a function in C, costs for a packet; the exit code."""
    from p4perf.cli.progress import SweepProgress
    from p4perf.experiment.own import measure_own

    def begins(run: RunDirectory, plan: SweepPlan) -> None:
        if not quiet:
            say(f"{experiment.spec.name} on {target.label} ({place.label}): {counted(len(plan.points), 'packet size')}")
            say_environment(run.record())
            say("note: what the operator computes is not checked")
            say(f"run directory: {run.path}")

    with SweepProgress(begins, quiet=quiet) as progress:
        directory, outcome = measure_own(source, experiment, target, place, output, progress)
    say_lacking(outcome)
    if not outcome.complete:
        raise errors.MeasurementError(
            "no start was accepted: the machine was disturbed", hint=f"p4perf resume {directory.path}"
        )
    _emit_costs(directory.read_measurements(), fmt, run=str(directory.path))
    return int(outcome.exit_code)


def _emit_costs(measurements: Any, fmt: Format, *, run: str) -> None:
    """Print costs: what is below the resolution is said to be so, and has no number."""
    from p4perf.evaluation.papers.ren2025.costs import operator_costs

    costs = operator_costs(measurements)
    unresolved = dict.fromkeys(("cost_cycles", "low", "high", "cost_tsc_cycles"))
    rows = tuple(
        _OperatorRow.read(c, below_resolution=not c.resolved, **({} if c.resolved else unresolved)) for c in costs
    )
    table = [_cost_row(c) for c in costs] if fmt is Format.TABLE else None
    title = "cost in core cycles for a packet, over the baseline"
    emit(fmt, OperatorDocument(run=run, rows=rows), rows=table, title=title)


def _cost_row(c: OperatorCost) -> dict[str, Any]:
    return {
        "operator": c.operator,
        "packet_size": c.packet_size_bytes,
        "cost": c.text(),
        "95 % interval": f"{c.low:.1f} .. {c.high:.1f}" if c.resolved and c.low < c.high else "",
        "resolution": f"{c.resolution_cycles:.2f}",
        "TSC cycles": f"{c.cost_tsc_cycles:.1f}",
        "baseline": f"{c.baseline_cycles:.1f}",
        "starts": c.starts,
    }
