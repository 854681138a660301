"""White-box models: the cost of functions on described machines, and where they run; estimate eo, estimate place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from p4perf.cli.app import (
    Format,
    FormatOption,
    PointsOption,
    SetOption,
    emit,
    estimate_app,
    print_table,
    say,
    share_option,
)
from p4perf.errors import ExitCode
from p4perf.records import Document, Interval, Record, Scalar, as_rows, doc, interval, spread

if TYPE_CHECKING:
    from p4perf.models.eo import Hardware, NetworkFunction, Printed, RateEstimate


ProfileOption = Annotated[str | None, Option("--profile", help="Profile of the description; default: the first.")]
FrameOption = Annotated[
    int | None, Option("--frame-size", help="Frame size in bytes, with FCS; default: that of the function.")
]
RemoteOption = Annotated[
    float, share_option("--remote", help="Share of packets that the NIC places in another socket's cache.")
]


class _Numbers(Record):
    cycles: Interval = interval("core cycles", "cycles/packet", of="breakdown.cycles")
    dram_accesses: float = doc(
        "accesses that miss all caches that may hold tables", "accesses/packet", of="breakdown.dram_accesses"
    )
    mpps_per_core: float = doc("rate of one core if nothing but cycles counted", "Mpps")
    mpps: float = doc("rate of all cores, with what binds", "Mpps")
    gbps: float = doc("the same on the wire", "Gbit/s")
    bound: str = doc("what binds: `cpu`, `memory` or `link`")


class _Printed(Record):
    cycles: float | None = doc("core cycles", "cycles/packet")
    dram_accesses: float | None = doc("accesses to memory", "accesses/packet")
    mpps: float | None = doc("rate", "Mpps")
    gbps: float | None = doc("rate on the wire", "Gbit/s")


class _OperationLine(Record):
    function: str = doc("function that the operation belongs to")
    operation: str = doc("the operation with its arguments", of="call")
    times: float = doc("average number of times that a packet meets it")
    cycles: Interval = interval("cycles of all these times", "cycles/packet")
    accesses: dict[str, Any] = doc("accesses by level", "accesses/packet")
    table_bytes: float = doc("size of the table that it uses; 0 without one", "B")


class _Setting(Record):
    functions: tuple[str, ...] = doc("names, in the order in which packets meet them")
    hardware: str = doc("name of the machine", of="hardware.name")
    profile: str | None = doc("profile of its description; null if it has none")
    frame_bytes: int = doc("frame size with the FCS", "B")
    wire_bytes: int = doc("the same with preamble and gap: what `gbps` counts", "B")
    cores: int = doc("cores that run the functions")
    remote: float = doc("packets in the cache of another socket", "ratio")


class EoDocument(Document, _Numbers, _Setting, kind="eo"):
    """`p4perf estimate eo FUNCTION...`, and of an experiment with one point.

    See [elementary operations](estimates.md#elementary-operations).
    """

    accesses: dict[str, Any] = doc("accesses by the level where they hit", "accesses/packet", of="breakdown.accesses")
    table_bytes: float = doc("tables together", "B", of="breakdown.table_bytes")
    limits: dict[str, Any] = doc("what each of them allows", "Mpps")
    printed: _Printed | None = doc("what a publication prints; null if there is none")
    breakdown: tuple[_OperationLine, ...] = doc("", of="breakdown.lines")


class _SweptPoint(Record):
    point: int = doc("number of the point, from 0")
    values: dict[str, Scalar] = spread("variable", "value of a swept variable")


class _EoSweepRow(_Numbers, _SweptPoint):
    pass


class EoSweepDocument(Document, kind="eo.sweep"):
    """`p4perf estimate eo SPEC`: one row for each point."""

    hardware: str = doc("name of the machine")
    profile: str | None = doc("profile of its description; null if it has none")
    experiment: str = doc("name of the experiment")
    rows: tuple[_EoSweepRow, ...] = doc("")


@estimate_app.command()
def eo(
    functions: Annotated[
        list[str], Argument(metavar="FUNCTION...", help="Functions (name or file) in sequence, or one experiment.")
    ],
    hardware: Annotated[str, Option(help="Machine: a name of the catalogue, or a file.")],
    profile: ProfileOption = None,
    frame_size: FrameOption = None,
    cores: Annotated[int, Option(help="Cores that run the functions.")] = 1,
    remote: RemoteOption = 0.0,
    symbols: Annotated[list[str] | None, Option("--symbol", help="Set a symbol, such as ps=1000. Repeatable.")] = None,
    keep_io: Annotated[bool, Option("--keep-io", help="Several functions: each receives and sends.")] = False,
    sets: SetOption = None,
    points: PointsOption = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Estimate a network function from its elementary operations.

    FUNCTION is a name (switch/basic), a file, or an experiment. Estimates every point of an experiment.
    """
    from p4perf.api.papers import estimate_eo

    found = estimate_eo(
        functions, hardware, profile=profile, frame_size=frame_size, cores=cores, remote=remote,
        symbols=symbols or (), keep_io=keep_io, set=sets or (), points=points,
    )  # fmt: skip
    if found.experiment is None or len(found.estimates) == 1:
        _show(found.estimates[0], found.functions, fmt)
        return
    rows = zip(found.experiment.points, found.estimates, strict=True)
    machine, name = found.machine, found.experiment.spec.name
    document = EoSweepDocument(
        hardware=machine.name,
        profile=machine.profile or None,
        experiment=name,
        rows=tuple(_EoSweepRow.read(e, point=point.index, values=point.values) for point, e in rows),
    )
    emit(fmt, document, title=f"{name} on {_machine(machine)}")


def _machine(machine: Hardware) -> str:
    return f"{machine.name}, profile {machine.profile}" if machine.profile else machine.name


def _show(e: RateEstimate, functions: Sequence[NetworkFunction], fmt: Format) -> None:
    printed = functions[0].printed if len(functions) == 1 else None
    document = EoDocument.read(e, profile=e.hardware.profile or None, printed=printed)
    rows = as_rows(document.breakdown)
    if fmt is not Format.TABLE:
        emit(fmt, document, rows=rows)
        return
    print_table([_Numbers.read(e).as_dict()], title=f"{' + '.join(e.functions)} on {_machine(e.hardware)}")
    intervals = any(row["cycles_low"] != row["cycles_high"] for row in rows)
    left_out = {"table_bytes"} | (set() if len(functions) > 1 else {"function"})
    left_out |= set() if intervals else {"cycles_low", "cycles_high"}
    print_table([{k: v for k, v in row.items() if k not in left_out} for row in rows], title="breakdown")
    limits = ", ".join(f"{resource} {value:.4g}" for resource, value in e.limits.items())
    say(f"limits in Mpps: {limits}; {e.bound} binds")
    say(f"Gbit/s count {e.wire_bytes} B for a frame of {e.frame_bytes} B: preamble 8, gap 12")
    if printed is not None:
        say(_compared(printed, functions[0].source))
    for remark in functions[0].remarks:
        say(f"note: {remark}")


def _compared(printed: Printed, source: str) -> str:
    parts = [
        f"{value:g} {unit}"
        for value, unit in (
            (printed.cycles, "cycles"),
            (printed.dram_accesses, "DRAM accesses"),
            (printed.mpps, "Mpps"),
            (printed.gbps, "Gbit/s"),
        )
        if value is not None
    ]
    return f"printed in {source}: {', '.join(parts)}; its Mpps are too high by a factor of 1.024 (docs/estimates.md)"


@estimate_app.command()
def place(
    demands: Annotated[
        list[str],
        Argument(metavar="FUNCTION=LOAD...", help="Functions and loads: switch/basic=5Mpps; chains: a+b=2Mpps."),
    ],
    host: Annotated[list[str], Option(help="Hardware (name or file) and free cores: NAME:4. Repeatable.")],
    profile: ProfileOption = None,
    frame_size: FrameOption = None,
    remote: RemoteOption = 0.0,
    share_cores: Annotated[
        bool, Option("--share-cores", help="Let functions share cores; default: each has its own.")
    ] = False,
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Find the hosts that can run all functions together at given loads.

    Exit code 0 if at least one host can, otherwise 1.
    """
    from p4perf.api.papers import estimate_place

    document = estimate_place(
        demands, host, profile=profile, frame_size=frame_size, remote=remote, share_cores=share_cores
    )
    flat = [{k: v for k, v in row.items() if k != "needs"} for row in as_rows(document.rows)]
    emit(fmt, document, rows=flat)
    if fmt is Format.TABLE:
        for need in (n for row in document.rows for n in row.needs):
            say(f"{need.function}: {need.mpps_per_core:.4g} Mpps a core, {need.cores:.4g} cores")
    return int(ExitCode.OK if any(row.possible for row in document.rows) else ExitCode.VERDICT_FAILED)
