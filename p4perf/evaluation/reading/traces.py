"""Shares of packets counted in a capture, which is run through the meaning of a program.

Every packet makes decisions: which case of a select, hit or miss, which action, whether a condition holds. They are
followed in the graph of the program, so that what happens after different ways is counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from p4perf.errors import UsageError
from p4perf.evaluation.reading.bmv2_run import Decision, Machine, standard_port
from p4perf.evaluation.reading.commands import Commands, read_commands
from p4perf.evaluation.reading.flow import base_name, resolve
from p4perf.evaluation.reading.names import without_index
from p4perf.evaluation.reading.own import load_point, point_program, read_own
from p4perf.evaluation.reading.own_packets import OwnPackets
from p4perf.evaluation.reading.program import ReadOptions, bmv2_graph, flow_of_swx, guess_form, load_text
from p4perf.evaluation.reading.shares import Shares
from p4perf.evaluation.reading.swx_entries import SwxEntries, read_swx_entries
from p4perf.evaluation.reading.swx_run import SwxMachine
from p4perf.evaluation.reading.swx_text import read_specification
from p4perf.evaluation.reading.tree import parse_json
from p4perf.generators.program import Program
from p4perf.models.program.graph import Node, ProgramGraph
from p4perf.specs.captures import read_capture

Runner = Callable[[bytes], tuple[list[Decision], str]]
"""Runs one packet: its decisions in order, and why there are no more of them (empty: its way has ended)."""


def shares_of_trace(
    path: Path | str, capture: Path, options: ReadOptions | None = None
) -> tuple[Shares, tuple[str, ...]]:
    """Run the packets of a capture through a program and count which way they take.

    Programs in the JSON of bmv2, specifications of SWX, what p4c makes of P4 for v1model, PSA and PNA, and p4perf's own
    (with ``ways`` of ``primitives``) can be run.

    Args:
        path: the program, as for :func:`~p4perf.evaluation.reading.program.read_program`.
        capture: packets in the classic format of libpcap.
        options: as for the program; ``commands`` fills its tables.

    Returns:
        The shares, and remarks on what could not be executed.

    Raises:
        DataError: the program or the capture cannot be read.
        UsageError: programs of this kind cannot be run.
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
        if options.ways != "primitives":
            raise UsageError(
                "a capture says nothing of components: they have no ways", hint="ask for the program that is generated"
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
    commands = read_commands(options.commands, root) if options.commands is not None else Commands()
    remarks = [f"commands {', '.join(commands.left_out)} were left out"] if commands.left_out else []
    if not any(commands.entries.values()):
        remarks.append("tables without constant entries are empty: give runtime commands that fill them")
    return graph, Machine(root, commands).run, remarks


def _prepared_swx(text: str, path: Path | str, options: ReadOptions) -> tuple[ProgramGraph, Runner, list[str]]:
    spec = read_specification(text, str(path))
    entries = read_swx_entries(options.commands, spec) if options.commands is not None else SwxEntries()
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
