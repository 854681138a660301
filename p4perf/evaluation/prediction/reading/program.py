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
from p4perf.formats.swx_spec import Specification, read_specification
from p4perf.models.program.graph import Node, ProgramGraph
from p4perf.programs.ir import Program
from p4perf.programs.packets import FCS_BYTES
from p4perf.programs.reading.bmv2 import is_bmv2, read_bmv2
from p4perf.programs.reading.bmv2_run import Decision, Machine, standard_port
from p4perf.programs.reading.commands import Entries, read_commands
from p4perf.programs.reading.flow import Flow, base_name, resolve
from p4perf.programs.reading.p4c import compile_p4
from p4perf.programs.reading.tree import Tree, parse_json, read_text, without_index

Format = Literal["bmv2", "swx", "p4", "p4perf"]

SUFFIXES: Mapping[str, Format] = {
    ".json": "bmv2",
    ".spec": "swx",
    ".p4": "p4",
    ".yaml": "p4perf",
    ".yml": "p4perf",
}


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
    if form == "p4perf":
        graph = _read_own(str(path), options)
    else:
        text, form = load_text(Path(path), form, options)
        if form == "swx":
            graph = _swx_graph(text, path, options)
        else:
            graph = bmv2_graph(parse_json(text, str(path)), Path(path).stem, options)
    return replace(graph, frame_bytes=options.frame_bytes or graph.frame_bytes)


def _swx_graph(text: str, path: Path | str, options: ReadOptions) -> ProgramGraph:
    spec = read_specification(text, str(path))
    entries = None if options.commands is None else read_swx_entries(options.commands, spec)
    return resolve(flow_of_swx(spec, path, entries, options), str(path))


def flow_of_swx(spec: Specification, path: Path | str, entries: Entries | None, options: ReadOptions) -> Flow:
    """The steps of a specification of SWX with its entries, if they are known."""
    given, used = dict(options.entries), {}
    if entries is not None:
        used = entries.used
        for table in spec.tables:
            given.setdefault(table, len(entries.tables.get(table, ())))
    return swx_flow(spec, str(path), Path(path).stem, given, packet_bytes(options), used)


def bmv2_graph(root: Tree, name: str, options: ReadOptions) -> ProgramGraph:
    given = dict(options.entries)
    if options.commands is not None:
        for table, entries in counted(root, options.commands).items():
            given.setdefault(table, entries)
    return resolve(read_bmv2(root, name, given, packet_bytes(options)), root.file)


def counted(root: Tree, commands: Path) -> dict[str, int]:
    """How many entries commands add to the tables of a program, all tables with a key."""
    if not is_bmv2(root):
        return {}
    added = read_commands(commands, root).tables
    names = [t.text("name") for p in root.each("pipelines") for t in p.each("tables") if list(t.each("key"))]
    constant = {t.text("name") for p in root.each("pipelines") for t in p.each("tables") if list(t.each("entries"))}
    return {name: len(added.get(name, ())) for name in names if name not in constant}


def load_text(path: Path, form: Format, options: ReadOptions) -> tuple[str, Literal["bmv2", "swx"]]:
    """The text of a program for bmv2 or SWX; programs in P4 are compiled."""
    if form == "p4":
        compiled = compile_p4(path, options.arch, options.defines, options.includes)
        return compiled.text, compiled.form
    text = read_text(path)
    if not text.strip():
        raise DataError("is empty", location=Location(str(path)))
    return text, "swx" if form == "swx" else "bmv2"


def packet_bytes(options: ReadOptions) -> int | None:
    """Bytes of packets in memory, without FCS; None if unknown."""
    return None if options.frame_bytes is None else options.frame_bytes - FCS_BYTES


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


def _read_own(source: str, options: ReadOptions) -> ProgramGraph:
    experiment, point = load_point(source, options.point)
    if options.constructs == "components":
        return component_graph(experiment, point)
    program = point_program(experiment, point)
    return resolve(read_own(program, experiment.spec.name, point.frame_size_bytes), source)


Runner = Callable[[bytes], tuple[list[Decision], str]]
"""Runs one packet: its decisions in order, and why there are no more of them (empty: its path has ended)."""


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
    graph, run, remarks = _prepared(path, options)
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
    remarks += [
        f"{count} of {len(frames)} packets were not followed to the end: it depends on {reason}"
        for reason, count in reasons.most_common()
    ]
    return Shares(edges), tuple(remarks)


def _prepared(path: Path | str, options: ReadOptions) -> tuple[ProgramGraph, Runner, list[str]]:
    form = options.form or guess_form(Path(path))
    if form == "p4perf":
        if options.constructs != "primitives":
            raise UsageError(
                "a capture says nothing of components: they have no paths", hint="ask for the program that is generated"
            )
        experiment, point = load_point(str(path), options.point)
        program = point_program(experiment, point)
        graph = resolve(read_own(program, experiment.spec.name, point.frame_size_bytes), str(path))
        return graph, own_runner(program), []
    text, form = load_text(Path(path), form, options)
    if form == "swx":
        return _prepared_swx(text, path, options)
    root = parse_json(text, str(path))
    graph = bmv2_graph(root, Path(path).stem, options)
    if not standard_port(root):
        raise UsageError(f"{path} is not for v1model, the only architecture whose programs can be run")
    commands = read_commands(options.commands, root) if options.commands is not None else Entries()
    remarks = [f"commands {', '.join(commands.left_out)} were left out"] if commands.left_out else []
    if not any(commands.tables.values()):
        remarks.append("tables without constant entries are empty: give runtime commands that fill them")
    return graph, Machine(root, commands).run, remarks


def _prepared_swx(text: str, path: Path | str, options: ReadOptions) -> tuple[ProgramGraph, Runner, list[str]]:
    spec = read_specification(text, str(path))
    entries = read_swx_entries(options.commands, spec) if options.commands is not None else Entries()
    flow = flow_of_swx(spec, path, None if options.commands is None else entries, options)
    remarks = [f"commands {', '.join(entries.left_out)} were left out"] if entries.left_out else []
    if spec.tables and not any(entries.tables.values()):
        remarks.append("all tables are empty: give the rules that fill them")
    if spec.meters:
        remarks.append("all packets are green to meters")
    return resolve(flow, str(path)), SwxMachine(spec, flow, entries).run, remarks


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
