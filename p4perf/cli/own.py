"""`p4perf measure`: your own P4 program on one or several targets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from p4perf.cli.app import Format, FormatOption, QuietOption, app, emit, say
from p4perf.cli.measure import DEFAULT_TARGET, resumable
from p4perf.errors import CapabilityError, ExitCode, UsageError
from p4perf.records import Document, Record, doc

if TYPE_CHECKING:
    import pandas as pd

METRICS = ("cycles_per_packet", "cost_cycles_per_packet", "packet_rate")


class _TargetRow(Record):
    target: str = doc("target")
    cycles_per_packet: float | None = doc("median over process starts", "cycles/packet")
    cycles_per_packet_low: float | None = doc("lower end of its 95 % interval", "cycles/packet")
    cycles_per_packet_high: float | None = doc("upper end", "cycles/packet")
    cost_cycles_per_packet: float | None = doc("median difference to the minimal program", "cycles/packet")
    packet_rate: float | None = doc("median packet rate", "Mpps")
    refused: str | None = doc("why the target does not run the program; null if it does")
    run: str | None = doc("path of the run directory; null if there is none")


class MeasureDocument(Document):
    """`p4perf measure PROGRAM`: one row for each target."""

    KIND = "measure"

    program: str = doc("path of the program")
    rows: tuple[_TargetRow, ...] = doc("")


@app.command()
def measure(
    program: Annotated[Path, typer.Argument(metavar="PROGRAM", help="JSON of p4c-bm2-ss, a .spec, or P4 with p4c.")],
    target: Annotated[
        list[str] | None, typer.Option("--target", "-t", help="Target to measure on; repeatable. Default: dpdk-c.")
    ] = None,
    entries: Annotated[
        Path | None, typer.Option("--entries", help="Entries: simple_switch_CLI commands, P4Runtime text, JSON, CSV.")
    ] = None,
    p4info: Annotated[
        Path | None, typer.Option("--p4info", help="P4Info as text, for entries that have numbers for names.")
    ] = None,
    fill: Annotated[
        list[str] | None,
        typer.Option("--fill", help="TABLE=N or TABLE=N:bgp|classbench: entries that are made up; repeatable."),
    ] = None,
    default_fill: Annotated[
        int, typer.Option("--default-fill", min=0, max=100_000, help="Made-up entries of tables that have none.")
    ] = 64,
    miss: Annotated[
        list[str] | None, typer.Option("--miss", help="SHARE or TABLE=SHARE of packets that find no entry; repeatable.")
    ] = None,
    zipf: Annotated[
        float, typer.Option("--zipf", min=0, max=10, help="Exponent of the popularity of entries; 0: all alike.")
    ] = 0.0,
    frame_size: Annotated[
        int, typer.Option("--frame-size", min=64, max=1518, help="Frame size in bytes, FCS included.")
    ] = 128,
    packets: Annotated[int, typer.Option("--packets", min=1, max=65536, help="Different packets, sent in turn.")] = 256,
    port: Annotated[int, typer.Option("--port", min=0, max=510, help="Port by which all packets come in.")] = 0,
    repetitions: Annotated[int, typer.Option("--repetitions", min=1, max=1000, help="Starts of the process.")] = 3,
    testbed: Annotated[str, typer.Option("--testbed", help="Where it runs: local, ssh:FILE.")] = "local",
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder that gets the run directories.")] = Path(
        "runs"
    ),
    quiet: QuietOption = False,
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Measure your own P4 program, verified packet by packet.

    Before a target is measured, what it does with packets that take all paths of the program is compared with the
    reference interpreter.
    """
    from p4perf.cli.progress import SweepProgress
    from p4perf.experiment import measure_run, new_run, open_target, open_testbed
    from p4perf.experiment.bench import refuse_batches
    from p4perf.experiment.own import own_experiment

    experiment = own_experiment(
        program,
        entries=entries,
        p4info=p4info,
        fill=fill or [],
        default_fill=default_fill,
        miss=miss or [],
        zipf=zipf,
        packets=packets,
        port=port,
        frame_size_bytes=frame_size,
        repetitions=repetitions,
    )
    place = open_testbed(testbed)
    refuse_batches(place, "a program is built before it is measured")
    rows = []
    worst = ExitCode.OK
    for label in dict.fromkeys(target or [DEFAULT_TARGET]):
        chosen = open_target(label)
        try:
            directory, plan = new_run(experiment, chosen, place, output)
        except CapabilityError as error:
            beside_spec = error.location if error.key is None and error.location != experiment.locate(None) else None
            reason = f"{beside_spec}: {error.message}" if beside_spec else error.message
            say(f"refused: {label}: {reason}")
            rows.append(_row(label, refused=reason))
            worst = max(worst, ExitCode.UNAVAILABLE)
            continue
        if not quiet:
            for note in plan.points[0].plan.workload.notes if not rows else ():
                say(note)
            say(f"{program} on {label} ({place.label}); run directory: {directory.path}")
        with SweepProgress(quiet=quiet) as progress, resumable(directory.path):
            outcome = measure_run(experiment, plan.points, chosen, place, directory, progress)
        for _, reason in outcome.failed:
            say(f"warning: {label} failed: {reason}")
        worst = max(worst, ExitCode(outcome.exit_code))
        rows.append(_row(label, directory.read_measurements(), run=str(directory.path)))
    if not any(row.run for row in rows):
        raise UsageError(f"no target runs {program}", hint="every reason is listed above")
    table = [_text_row(row) for row in rows] if fmt is Format.TABLE else None
    emit(fmt, MeasureDocument(program=str(program), rows=tuple(rows)), rows=table)
    if not quiet and sum(row.run is not None for row in rows) > 1:
        say(f"compare them: p4perf compare {' '.join(row.run for row in rows if row.run)}")
    return int(worst)


def _text_row(row: _TargetRow) -> dict[str, object]:
    values = row.as_dict()
    low, high = values["cycles_per_packet_low"], values["cycles_per_packet_high"]
    return {
        "target": row.target,
        "cycles/packet": row.cycles_per_packet,
        "95 % interval": "" if low is None else f"{low:.1f} .. {high:.1f}",
        "over the minimal program": row.cost_cycles_per_packet,
        "Mpps": row.packet_rate,
        "remark": f"refused: {row.refused}" if row.refused else "" if low is not None else "no accepted trial",
    }


def _row(
    label: str, measurements: pd.DataFrame | None = None, *, refused: str | None = None, run: str | None = None
) -> _TargetRow:
    from p4perf.results.table import median_interval

    found: dict[str, tuple[float | None, float | None, float | None]] = dict.fromkeys(METRICS, (None, None, None))
    if measurements is not None:
        for metric in METRICS:
            values = measurements[(measurements["metric"] == metric) & measurements["accepted"]]["value"]
            if len(values):
                found[metric] = median_interval(tuple(values))
    cycles, low, high = found["cycles_per_packet"]
    return _TargetRow(
        target=label,
        cycles_per_packet=cycles,
        cycles_per_packet_low=low,
        cycles_per_packet_high=high,
        cost_cycles_per_packet=found["cost_cycles_per_packet"][0],
        packet_rate=found["packet_rate"][0],
        refused=refused,
        run=run,
    )
