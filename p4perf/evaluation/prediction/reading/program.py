"""From any program to its graph, and the branch probabilities that a capture gives it.

Every packet makes decisions: which case of a select, hit or miss, which action, whether a condition holds. They are
followed in the graph of the program, so that what happens after different paths is counted apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from p4perf.errors import CapabilityError, DataError, Location, UsageError
from p4perf.evaluation.prediction.reading.own import PACKET_BYTES, read_own
from p4perf.evaluation.prediction.reading.packets import Runner, count_shares, own_runner, raked
from p4perf.evaluation.prediction.reading.points import component_graph, load_point, point_program
from p4perf.evaluation.prediction.reading.swx import renamed, swx_flow
from p4perf.evaluation.prediction.reading.swx_packets import SwxMachine, generated_runner
from p4perf.formats.pcap import read_capture
from p4perf.formats.plain import bounded
from p4perf.formats.swx_spec import read_specification
from p4perf.generators.swx.spec import Pipeline
from p4perf.models.program.graph import ProgramGraph
from p4perf.programs.decisions import Branches, called
from p4perf.programs.exercise import traffic
from p4perf.programs.fill import filled
from p4perf.programs.ir import Program
from p4perf.programs.own import taken_actions
from p4perf.programs.packets import FCS_BYTES
from p4perf.programs.reading.commands import ControlPlane
from p4perf.programs.reading.control_plane import read_control_plane
from p4perf.programs.reading.flow import FULL, Flow, resolve
from p4perf.programs.reading.p4c import compile_p4
from p4perf.programs.reading.psa import is_psa
from p4perf.programs.reading.shares import Shares, read_shares
from p4perf.programs.reading.text import check_bmv2
from p4perf.programs.reading.text import read_program as read_text_program
from p4perf.programs.reading.tree import match_name, parse_json, read_text

Format = Literal["bmv2", "swx", "p4", "p4perf"]

SUFFIXES: Mapping[str, Format] = {".json": "bmv2", ".spec": "swx", ".p4": "p4", ".yaml": "p4perf", ".yml": "p4perf"}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What else is known of a program.

    Args:
        form: what the file is; None: by its suffix and content.
        arch: architecture of a P4 program: ``v1model``, ``psa`` or ``pna``; None: by its ``#include``.
        std: its version, ``p4-14`` or ``p4-16``; None: the latter.
        defines: of the preprocessor, ``NAME`` or ``NAME=VALUE``.
        entries: how many entries tables hold, by their names; of those not named it is how many they may hold.
        commands: a file whose entries count, in any format of :mod:`~p4perf.programs.reading.control_plane`; tables
            that it does not list hold as many as without it.
        p4info: of entries with numeric ids.
        point: of a p4perf spec with a sweep: swept variables and their values; None: its only point.
        constructs: of a p4perf spec: constructs of its components, or of the program that is generated for it.
        frame_bytes: frame size with FCS, which clones are counted with; None: that of the program, or 64.
        apart: of JSON of bmv2: whether headers are kept apart from the packet, as on ``xdp``.
    """

    form: Format | None = None
    arch: str | None = None
    std: str | None = None
    defines: tuple[str, ...] = ()
    includes: tuple[Path, ...] = ()
    entries: Mapping[str, int] = field(default_factory=dict)
    commands: Path | None = None
    p4info: Path | None = None
    point: Mapping[str, str] | None = None
    constructs: Literal["components", "primitives"] = "components"
    frame_bytes: int | None = None
    apart: bool = False


@bounded()
def read_program(path: Path | str, options: ReadOptions | None = None) -> ProgramGraph:
    """Read a program.

    Raises:
        DataError: the file cannot be read, or is not what it should be: truncated, empty, of another kind, with a loop
            that never ends; the message names the key (as a JSON pointer) or line.
        SpecError: a p4perf spec is wrong, or has several points and none was chosen.
        UsageError: an option does not belong to the program.
        TargetUnavailableError: the program is in P4 and there is no p4c.
        BuildError: p4c does not take it.
    """
    options = options or ReadOptions()
    form = options.form or guess_form(Path(path))
    if form == "p4perf" and options.constructs == "components":
        graph = component_graph(*load_point(str(path), options.point))
    else:
        graph = resolve(_opened(path, form, options).flow, str(path))
    return replace(graph, frame_bytes=options.frame_bytes or graph.frame_bytes)


def guess_form(path: Path) -> Format:
    """What a file is, by its suffix, or else by how it begins."""
    known = SUFFIXES.get(path.suffix.lower())
    if known is not None:
        return known
    if not path.exists() and not path.suffix:
        return "p4perf"  # a name of the catalogue
    text = read_text(path)
    if text.lstrip().startswith("{"):
        return "bmv2"
    if "\napply {" in text:
        return "swx"
    if "#include" in text:
        return "p4"
    raise DataError(
        "is not a program in a supported form",
        location=Location(str(path)),
        hint="supported: a .p4, the .json of p4c-bm2-ss, the .spec of p4c-dpdk, or a p4perf spec (.yaml)",
    )


@dataclass(frozen=True, slots=True)
class _Opened:
    """A program in steps, what makes its runner, and remarks on what that does not execute.

    Args:
        program: the same as it was read, unless it is of instructions.
        entries: how many its tables hold, as far as that is stated.
    """

    flow: Flow
    runner: Callable[[], Runner]
    remarks: tuple[str, ...] = ()
    program: Program | None = None
    entries: Mapping[str, int] = field(default_factory=dict)


def _opened(path: Path | str, form: Format, options: ReadOptions) -> _Opened:
    if form == "p4perf":
        experiment, point = load_point(str(path), options.point)
        program = point_program(experiment, point)
        flow = read_own(program, experiment.spec.name, point.frame_size_bytes)
        return _Opened(flow, lambda: own_runner(program), program=program)
    if form == "p4":
        form, text, _ = compile_p4(Path(path), options.arch, options.defines, options.includes, options.std)
    else:
        text = read_text(Path(path))
        if not text.strip():
            raise DataError("the file is empty", location=Location(str(path)))
    return (_opened_swx if form == "swx" else _opened_bmv2)(text, Path(path), options, options.frame_bytes)


def _opened_swx(text: str, path: Path, options: ReadOptions, frame_bytes: int | None) -> _Opened:
    packet_bytes = None if frame_bytes is None else frame_bytes - FCS_BYTES
    spec = read_specification(text, str(path))
    plane, counts = ControlPlane(), dict[str, int]()
    if options.commands is not None:
        plane = read_control_plane(options.commands, spec, options.p4info)
        counts = {table: len(entries) for table, entries in plane.tables.items()}
    used = {table: frozenset(entry.action for entry in entries) for table, entries in plane.tables.items()}
    flow = swx_flow(spec, str(path), path.stem, {**counts, **options.entries}, packet_bytes, used)
    remarks = _left_out(plane)
    if spec.tables and not any(plane.tables.values()):
        remarks += ("all tables are empty: give the rules that fill them",)
    if spec.meters:
        remarks += ("all packets are green to meters",)
    return _Opened(flow, lambda: SwxMachine(spec, flow, plane).decisions, remarks)


def _opened_bmv2(text: str, path: Path, options: ReadOptions, frame_bytes: int | None) -> _Opened:
    root = parse_json(text, str(path))
    check_bmv2(root)
    plane = ControlPlane()
    if options.commands is not None:
        plane = read_control_plane(options.commands, root, options.p4info)
    program = read_text_program(root, replace(plane, sessions={}, unknown=True), path.stem)
    tables = {table.label: table for table in program.tables}
    keyed = [name for name, table in tables.items() if table.keys]
    given = {match_name(name, keyed, "table", Location(str(path))): n for name, n in options.entries.items()}
    counts = {}
    if options.commands is not None:
        counts = {name: count for name in keyed if (count := tables[name].entries.count)}
    entries = {**counts, **given}
    flow = read_own(program, path.stem, frame_bytes, source="bmv2", entries=entries, apart=options.apart)
    if is_psa(root):
        flow = replace(
            flow, remarks=(*flow.remarks, "the deparser of ingress and the parser of egress are not counted")
        )
    remarks = _left_out(plane)
    if plane.sessions:
        remarks += ("clones are counted, but not followed",)
    if not any(plane.tables.values()):
        remarks += ("tables without constant entries are empty: give runtime commands that fill them",)
    return _Opened(flow, lambda: own_runner(program), remarks, program, entries)


WRITTEN = "the instructions of SWX are those that p4perf writes; p4c-dpdk makes more: its .spec has them"
"""What a reader has to know of a program that is priced by generated instructions."""

DRAWN = 256
"""Packets by which shares are told, as many as are sent when a program is measured."""


def read_instructions(
    path: Path | str, options: ReadOptions, shares: Path | None = None, capture: Path | None = None
) -> ProgramGraph:
    """The graph of the specification of SWX that p4perf generates for a program, with the names of its tables.

    Args:
        shares: a file of shares; they become those of packets that have them, as they are made for measuring.
        capture: packets, instead.

    Raises:
        CapabilityError: SWX cannot express it, or shares are stated and what becomes of a packet is not known.
        otherwise as of :func:`read_program`.
    """
    opened = _opened(path, options.form or guess_form(Path(path)), options)
    program, stated, given = opened.program, dict(opened.entries), Shares({})
    assert program is not None  # noqa: S101 - specifications of SWX are instructions themselves
    branches = Branches(program)
    if shares is not None:
        given = read_shares(shares, branches.graph())
        stated = {**stated, **given.entries, **options.entries}
    held = {t.name: stated.get(called(t), t.entries.count or t.size) for t in program.tables if t.keys}
    frames = () if capture is None else read_capture(capture).frames
    if not frames:
        program = _with_entries(program, taken_actions(program, branches, given) if shares else None)
    packet_bytes = PACKET_BYTES if options.frame_bytes is None else options.frame_bytes - FCS_BYTES
    if given.edges:
        try:
            frames = traffic(program, DRAWN, size_bytes=packet_bytes, shares=given.edges, exact=False)
        except (ValueError, RecursionError) as error:
            raise CapabilityError(f"what becomes of a packet is not known: {error}") from error
    pipeline = Pipeline(program, "program", packet_bytes)
    spec = read_specification(pipeline.specification(), str(path))
    flow = swx_flow(spec, str(path), opened.flow.name, {t: held[t] for t in held if t in spec.tables}, packet_bytes)
    flow = renamed(flow, {t.name: called(t) for t in program.tables})
    known = all(called(t) in stated for t in program.tables if t.keys)
    said = (remark for remark in opened.flow.remarks if remark != FULL or not known)
    graph = resolve(replace(flow, remarks=(*said, WRITTEN)), str(path))
    weights = raked(frames, own_runner(program), given.edges)
    found, remarks = count_shares(graph, generated_runner(spec, flow, program, pipeline), frames, weights)
    weighted = found.apply(graph)
    return replace(
        weighted,
        remarks=(*weighted.remarks, *remarks),
        frame_bytes=options.frame_bytes or opened.flow.frame_bytes or graph.frame_bytes,
    )


def _with_entries(program: Program, actions: Mapping[str, Collection[str]] | None) -> Program:
    """The program with entries in tables that have none: a specification has only the actions that entries run.

    Args:
        actions: of tables, by their names; None: all actions of each.
    """
    most = max((len(table.actions) for table in program.tables), default=0)
    count = most if actions is None else DRAWN // 4
    every = {t.name: t.actions for t in program.tables}
    try:
        return filled(program, {}, default=count, actions=every if actions is None else actions)
    except (ValueError, RecursionError):  # what becomes of a packet is not known
        return program


def _left_out(plane: ControlPlane) -> tuple[str, ...]:
    return (f"commands {', '.join(plane.left_out)} were left out",) if plane.left_out else ()


def shares_of_trace(
    path: Path | str, capture: Path, options: ReadOptions | None = None
) -> tuple[Shares, tuple[str, ...]]:
    """Run the packets of a capture through a program and count the branches that they take.

    Programs in the JSON of bmv2, specifications of SWX, what p4c makes of P4 for v1model, PSA and PNA, and p4perf's own
    (with ``constructs`` of ``primitives``) can be run.

    Args:
        capture: packets in the classic format of libpcap.
        options: as for the program; ``commands`` fills its tables.

    Returns:
        The shares, and remarks on what could not be executed.
    """
    options = options or ReadOptions()
    form = options.form or guess_form(Path(path))
    if form == "p4perf" and options.constructs != "primitives":
        raise UsageError(
            "a capture says nothing of components: they have no paths", hint="ask for the program that is generated"
        )
    opened = _opened(path, form, options)
    found, remarks = count_shares(resolve(opened.flow, str(path)), opened.runner(), read_capture(capture).frames)
    return found, (*opened.remarks, *remarks)
