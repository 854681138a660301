"""White-box models: the cost of functions on described machines, and where they run; estimate eo, estimate place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from p4perf.cli.app import (
    Format,
    FormatOption,
    PointsOption,
    SetOption,
    emit,
    estimate_app,
    load,
    pairs,
    print_table,
    say,
)
from p4perf.errors import ExitCode, UsageError
from p4perf.records import Document, Interval, Record, Scalar, as_rows, doc, interval, spread

if TYPE_CHECKING:
    from p4perf.models.eo import Demand, Hardware, Host, NetworkFunction, Printed, RateEstimate
    from p4perf.specs import Experiment


ProfileOption = Annotated[str | None, Option("--profile", help="Profile of the description; default: the first.")]
FrameOption = Annotated[
    int | None, Option("--frame-size", help="Frame size in bytes, with FCS; by default what the function says.")
]
RemoteOption = Annotated[
    float, Option("--remote", help="Share of packets that the NIC places in another socket's cache.")
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


class _Need(Record):
    function: str = doc("a function, or several joined by `+`", of="demand.name")
    load_mpps: float = doc("its load", "Mpps", of="demand.load_mpps")
    mpps_per_core: float = doc("rate of one core", "Mpps", of="estimate.mpps_per_core")
    cores: float = doc("cores that it takes")
    cycles: float = doc("core cycles", "cycles/packet", of="estimate.breakdown.cycles.value")
    dram_accesses: float = doc("accesses missing all caches", "accesses/packet", of="estimate.breakdown.dram_accesses")


class _PlaceRow(Record):
    host: str = doc("the host as it was given", of="host.name")
    possible: bool = doc("whether it can run everything at once")
    bound: str = doc(
        "the resource that is taken most: `cpu`, `memory`, `link` or `capacity` (of memory); `unknown` if an operation "
        "has no rule there"
    )
    cores: int = doc("free cores", of="host.cores")
    cores_needed: float | None = doc("cores that it takes; null if that is not known")
    use: dict[str, Any] = doc("share of each resource that is taken", "ratio")
    reason: str = doc("why it cannot, for people; empty if it can")
    needs: tuple[_Need, ...] = doc("")


class PlaceDocument(Document, kind="place"):
    """`p4perf estimate place FUNCTION=LOAD...`: one row for each host."""

    share_cores: bool = doc("whether a core may run several functions")
    rows: tuple[_PlaceRow, ...] = doc("")


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
    symbols: Annotated[list[str] | None, Option("--symbol", help="A symbol: ps=1000. Repeatable.")] = None,
    keep_io: Annotated[bool, Option("--keep-io", help="Several functions: each receives and sends.")] = False,
    sets: SetOption = None,
    points: PointsOption = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Estimate a network function from its elementary operations.

    FUNCTION is a name (switch/basic), a file, or an experiment, every point of which is estimated.
    """
    from p4perf.evaluation.papers.baldi2018 import load_hardware
    from p4perf.models.eo import estimate, parse_expression

    machine = load_hardware(hardware, profile)
    given = pairs(symbols, "--symbol", "name=number", "for example --symbol ps=1000")
    values = {name: parse_expression(value).value({}) for name, value in given}
    options: dict[str, Any] = {"cores": cores, "remote": remote, "keep_io": keep_io, "symbols": values}
    found = _functions(functions, bool(sets) or points is not None)
    if found is None:
        _sweep(load(functions[0], sets, points), machine, frame_size, options, fmt)
        return
    _show(estimate(found, machine, frame_bytes=frame_size, **options), found, fmt)


def _functions(names: Sequence[str], as_spec: bool) -> list[NetworkFunction] | None:
    """The functions of these names; None if there is one, which is an experiment."""
    from p4perf.evaluation.papers.baldi2018 import function_names, load_function
    from p4perf.evaluation.papers.baldi2018.files import SUFFIXES, is_function_file
    from p4perf.specs.loader import catalogue_names
    from p4perf.specs.messages import nearest

    known = function_names()
    if len(names) == 1 and names[0] not in known:
        name = names[0]
        if name in catalogue_names():
            return None
        if not name.endswith(SUFFIXES):
            hint = nearest(name, [*known, *catalogue_names()], "functions")
            raise UsageError(f"there is no function and no experiment {name!r}", hint=hint)
        if Path(name).is_file() and not is_function_file(Path(name)):
            return None
    if as_spec:
        raise UsageError("--set and --points are for experiments", hint="--symbol changes a symbol of a function")
    return [load_function(name) for name in names]


def _sweep(
    experiment: Experiment, machine: Hardware, frame_size: int | None, options: Mapping[str, Any], fmt: Format
) -> None:
    """Estimates of all points of an experiment; with its cost breakdown if there is but one."""
    from p4perf.evaluation.prediction.operations import derive
    from p4perf.experiment import point_workload
    from p4perf.models.eo import estimate

    if options["symbols"]:
        raise UsageError("an experiment has no symbols", hint="--set changes its parameters")
    if frame_size is not None:
        raise UsageError("an experiment has frame sizes of its own", hint=f"--set traffic.frame_size={frame_size}")
    rows = []
    for point in experiment.points:
        workload, traffic = point_workload(experiment, point)
        function = derive(workload, traffic, name=experiment.spec.name)
        found = estimate([function], machine, **options)
        if len(experiment.points) == 1:
            _show(found, [function], fmt)
            return
        rows.append(_EoSweepRow.read(found, point=point.index, values=point.values))
    document = EoSweepDocument(
        hardware=machine.name, profile=machine.profile or None, experiment=experiment.spec.name, rows=tuple(rows)
    )
    emit(fmt, document, title=f"{experiment.spec.name} on {_machine(machine)}")


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
    """Find out which hosts can run all functions at once at a given load.

    Exit code 0 if at least one host can, otherwise 1.
    """
    from p4perf.models.eo import place as judge

    wanted = [_demand(text, frame_size, remote) for text in demands]
    verdicts = judge([_host(text, profile) for text in host], wanted, share_cores=share_cores)
    document = PlaceDocument(
        share_cores=share_cores,
        rows=tuple(
            _PlaceRow.read(v, cores_needed=sum(need.cores for need in v.needs) if v.needs else None) for v in verdicts
        ),
    )
    flat = [{k: v for k, v in row.items() if k != "needs"} for row in as_rows(document.rows)]
    emit(fmt, document, rows=flat)
    if fmt is Format.TABLE:
        for need in (n for v in verdicts for n in v.needs):
            say(f"{need.demand.name}: {need.estimate.mpps_per_core:.4g} Mpps a core, {need.cores:.4g} cores")
    return int(ExitCode.OK if any(v.possible for v in verdicts) else ExitCode.VERDICT_FAILED)


def _demand(text: str, frame_size: int | None, remote: float) -> Demand:
    from p4perf.evaluation.papers.baldi2018 import load_function
    from p4perf.models.eo import Demand
    from p4perf.specs.units import parse_quantity

    names, equals, amount = text.rpartition("=")
    if not equals:
        raise UsageError(f"{text}: expected FUNCTION=LOAD", hint="for example switch/basic=5Mpps")
    functions = tuple(load_function(name.strip()) for name in names.split("+"))
    return Demand(names, functions, float(parse_quantity(amount, "packet rate")) / 1e6, frame_size, remote)


def _host(text: str, profile: str | None) -> Host:
    from p4perf.evaluation.papers.baldi2018 import load_hardware
    from p4perf.models.eo import Host

    name, colon, amount = text.rpartition(":")
    if not colon or not re.fullmatch("[0-9]{1,9}", amount):
        name, amount = text, ""
    machine = load_hardware(name, profile)
    cores = int(amount) if amount else machine.total_cores
    if not 1 <= cores <= machine.total_cores:
        raise UsageError(f"--host {text}: {machine.name} has {machine.total_cores} cores, not {cores}")
    return Host(text, machine, cores)
