"""From any program to its graph, and the branch probabilities that a capture gives it.

Every packet makes decisions: which case of a select, hit or miss, which action, whether a condition holds. They are
followed in the graph of the program, so that what happens after different paths is counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from p4perf.errors import DataError, Location, UsageError
from p4perf.evaluation.prediction.reading.own import OwnPackets, component_graph, load_point, point_program, read_own
from p4perf.evaluation.prediction.reading.shares import Shares
from p4perf.evaluation.prediction.reading.swx import swx_flow
from p4perf.evaluation.prediction.reading.swx_run import SwxMachine, read_swx_entries
from p4perf.formats.pcap import read_capture
from p4perf.formats.swx_spec import read_specification
from p4perf.models.program.graph import Node, ProgramGraph
from p4perf.programs.ir import Program
from p4perf.programs.packets import FCS_BYTES
from p4perf.programs.reading.bmv2 import is_bmv2, read_bmv2
from p4perf.programs.reading.bmv2_run import Decision, Machine, standard_port
from p4perf.programs.reading.commands import Entries
from p4perf.programs.reading.control_plane import read_control_plane
from p4perf.programs.reading.flow import Flow, base_name, resolve
from p4perf.programs.reading.p4c import compile_p4
from p4perf.programs.reading.tree import parse_json, read_text, without_index

Format = Literal["bmv2", "swx", "p4", "p4perf"]

SUFFIXES: Mapping[str, Format] = {".json": "bmv2", ".spec": "swx", ".p4": "p4", ".yaml": "p4perf", ".yml": "p4perf"}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What else is known of a program.

    Args:
        form: what the file is; None: by its suffix and content.
        arch: architecture of a P4 program: ``v1model``, ``psa`` or ``pna``; None: by its ``#include``.
        defines: of the preprocessor, ``NAME`` or ``NAME=VALUE``.
        entries: how many entries tables hold, by their names; of those not named it is how many they may hold.
        commands: a file whose entries count: runtime commands of bmv2 (``table_add ...``); of a specification of SWX
            also entries in the format of DPDK.
        point: of a p4perf spec with a sweep: swept variables and their values; None: its only point.
        constructs: of a p4perf spec: constructs of its components, or of the program that is generated for it.
        frame_bytes: frame size with FCS, which clones are counted with; None: that of the program, or 64.
    """

    form: Format | None = None
    arch: str | None = None
    defines: tuple[str, ...] = ()
    includes: tuple[Path, ...] = ()
    entries: Mapping[str, int] = field(default_factory=dict)
    commands: Path | None = None
    point: Mapping[str, str] | None = None
    constructs: Literal["components", "primitives"] = "components"
    frame_bytes: int | None = None


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
        "is nothing that p4perf knows",
        location=Location(str(path)),
        hint="give a .p4, the .json of p4c-bm2-ss, the .spec of p4c-dpdk, or a p4perf spec (.yaml)",
    )


Runner = Callable[[bytes], tuple[list[Decision], str]]
"""Runs one packet: its decisions in order, and why there are no more of them (empty: its path has ended)."""


@dataclass(frozen=True, slots=True)
class _Opened:
    """A program in steps, what makes its runner, and remarks on what that does not execute."""

    flow: Flow
    runner: Callable[[], Runner]
    remarks: tuple[str, ...] = ()


def _opened(path: Path | str, form: Format, options: ReadOptions) -> _Opened:
    if form == "p4perf":
        experiment, point = load_point(str(path), options.point)
        program = point_program(experiment, point)
        flow = read_own(program, experiment.spec.name, point.frame_size_bytes)
        return _Opened(flow, lambda: own_runner(program))
    if form == "p4":
        form, text = compile_p4(Path(path), options.arch, options.defines, options.includes)
    else:
        text = read_text(Path(path))
        if not text.strip():
            raise DataError("is empty", location=Location(str(path)))
    packet_bytes = None if options.frame_bytes is None else options.frame_bytes - FCS_BYTES
    return (_opened_swx if form == "swx" else _opened_bmv2)(text, Path(path), options, packet_bytes)


def _opened_swx(text: str, path: Path, options: ReadOptions, packet_bytes: int | None) -> _Opened:
    spec = read_specification(text, str(path))
    entries, counts = Entries(), dict[str, int]()
    if options.commands is not None:
        entries = read_swx_entries(options.commands, spec)
        counts = {table: len(entries.tables.get(table, ())) for table in spec.tables}
    flow = swx_flow(spec, str(path), path.stem, {**counts, **options.entries}, packet_bytes, entries.used)
    remarks = _left_out(entries)
    if spec.tables and not any(entries.tables.values()):
        remarks += ("all tables are empty: give the rules that fill them",)
    if spec.meters:
        remarks += ("all packets are green to meters",)
    return _Opened(flow, lambda: SwxMachine(spec, flow, entries).run, remarks)


def _opened_bmv2(text: str, path: Path, options: ReadOptions, packet_bytes: int | None) -> _Opened:
    root = parse_json(text, str(path))
    entries, counts = Entries(), dict[str, int]()
    if options.commands is not None and is_bmv2(root):
        entries = read_control_plane(options.commands, root).entries
        tables = [t for p in root.each("pipelines") for t in p.each("tables")]
        counts = {
            t.text("name"): len(entries.tables.get(t.text("name"), ()))
            for t in tables
            if list(t.each("key")) and not list(t.each("entries"))
        }
    flow = read_bmv2(root, path.stem, {**counts, **options.entries}, packet_bytes)
    remarks = _left_out(entries)
    if not any(entries.tables.values()):
        remarks += ("tables without constant entries are empty: give runtime commands that fill them",)

    def runner() -> Runner:
        if not standard_port(root):
            raise UsageError(f"{path} is not for v1model, the only architecture whose programs can be run")
        return Machine(root, entries).run

    return _Opened(flow, runner, remarks)


def _left_out(entries: Entries) -> tuple[str, ...]:
    return (f"commands {', '.join(entries.left_out)} were left out",) if entries.left_out else ()


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
    graph, run = resolve(opened.flow, str(path)), opened.runner()
    frames = read_capture(capture).frames
    seen: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    for frame in frames:
        made, reason = run(frame)
        ended = _follow(graph, made, seen)
        reason = reason or ended
        if reason:
            reasons[reason] += 1
    edges = {}
    for name, counts in seen.items():
        labels = [edge.label for edge in graph.nodes[name].edges]
        total = sum(counts.values())
        if len(labels) > 1 and total:
            edges[name] = {label: counts[label] / total for label in labels}
    unfollowed = (
        f"{count} of {len(frames)} packets were not followed to the end: it depends on {reason}"
        for reason, count in reasons.most_common()
    )
    return Shares(edges), (*opened.remarks, *unfollowed)


def own_runner(program: Program) -> Runner:
    """Runs packets through one of p4perf's own programs, with the reference interpreter: their first pass."""
    packets = OwnPackets(program)

    def run(frame: bytes) -> tuple[list[Decision], str]:
        reason = ""
        try:
            packets.run(frame)
        except (ValueError, RecursionError) as error:
            reason = str(error)
        return (packets.passes[0] if packets.passes else []), reason

    return run


def _follow(graph: ProgramGraph, made: list[Decision], seen: dict[str, Counter[str]]) -> str:
    """Follow the decisions of one packet in the graph and count them; not empty if that is not possible."""
    left = iter(made)
    node: Node | None = graph.nodes[graph.start]
    while node is not None and node.edges:
        edge = node.edges[0]
        if len(node.edges) > 1:
            label = _next(left, node, graph.source)
            found = next((e for e in node.edges if e.label == label), None)
            if found is None:
                what = "packets that end early" if label is None else f"{label}, which is not there"
                return f"{what} at {base_name(node.name)}"
            edge = found
            seen.setdefault(node.name, Counter())[edge.label] += 1
        node = graph.nodes.get(edge.to)
    return ""


def _next(made: Iterator[Decision], node: Node, source: str) -> str | None:
    """The next decision that was made at a node, without those at nodes that are not in the graph."""
    names = {base_name(node.name), without_index(base_name(node.name))}
    names |= {name.removesuffix(" on miss") for name in names} | {name.replace(" on miss@", "@") for name in names}
    if source == "p4perf" and node.kind == "table":
        names = {base_name(node.name).partition("@")[0]}  # of a table that is applied in several places
    return next((label for name, label in made if name in names), None)
