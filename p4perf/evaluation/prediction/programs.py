"""Which programs are predicted: the points of an experiment, or a program that somebody wrote, with changes.

``NAME.SIZE=VALUE`` gives the constructs of a node another size (``ipv4_lpm.entries=1e6``, ``acl.match_kind=exact``,
``ipv4_lpm.hit=0.5``). A node is left out by its name: packets go on where all paths from it meet again, and what stands
between costs nothing any more, such as the actions of a table.

Breakdowns before and after a change come of the same prices, so what is the same in both cancels, with its errors: a
price that is too high is too high in both. The errors of lines that differ count as independent of one another: half
widths are added as squares. Where a price has only bounds, what another size costs is not known, and nothing is said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path

from typing_extensions import override

from p4perf.errors import CapabilityError, SpecError, UsageError
from p4perf.evaluation.prediction.answer import PathName, Prediction
from p4perf.evaluation.prediction.breakdown import CostLine
from p4perf.evaluation.prediction.learning.constructs import PacketPath, workload_graph, workload_path
from p4perf.evaluation.prediction.reading import (
    ReadOptions,
    read_instructions,
    read_program,
    read_shares,
    shares_of_trace,
)
from p4perf.evaluation.prediction.reading.names import LOST, SWX, XDP
from p4perf.evaluation.prediction.reading.points import component_graph
from p4perf.evaluation.prediction.reading.swx_packets import UnknownDecisionError
from p4perf.models.estimate import Estimate
from p4perf.models.program import KINDS, Charge, Construct, Node, ProgramGraph
from p4perf.models.program.costs import NOTHING
from p4perf.models.program.graph import Edge, Size
from p4perf.models.program.paths import shares, sorted_nodes, weigh
from p4perf.models.program.prices import HIT
from p4perf.programs.component import TrafficPlan, component_parameters
from p4perf.programs.ir import Workload
from p4perf.programs.reading.flow import base_name
from p4perf.specs import Experiment, Point, load_experiment
from p4perf.specs.loader import catalogue_names
from p4perf.specs.messages import nearest
from p4perf.specs.units import ratio

MATCH_KINDS = ("exact", "lpm", "ternary", "range", "optional", "selector")
_ASSIGNMENT = re.compile(r"\s*(?P<node>[^=]+)\.(?P<size>\w+)\s*=\s*(?P<value>.+?)\s*")
MISS = "miss"
_END = ""
_LAST = Edge("", _END)


@dataclass(frozen=True, slots=True)
class Change:
    """One change, as it was given: a size of a node, or a node that is left out (``size`` is empty)."""

    node: str
    size: str = ""
    value: Size = 0.0

    @override
    def __str__(self) -> str:
        if not self.size:
            return f"without {self.node}"
        value = f"{self.value:g}" if isinstance(self.value, float) else self.value
        return f"{self.node}.{self.size}={value}"


def parse_change(text: str) -> Change:
    """A change such as ``ipv4_lpm.entries=1e6``."""
    match = _ASSIGNMENT.fullmatch(text)
    if match is None:
        raise UsageError(f"--set {text}: expected NAME.SIZE=VALUE", hint="for example --set ipv4_lpm.entries=1e6")
    node, size, value = match["node"].strip(), match["size"], match["value"]
    sizes = sorted({name for names in KINDS.values() for name in names} - {"name"})
    if size not in sizes:
        raise UsageError(f"--set {text}: no construct has a size {size!r}", hint=nearest(size, sizes, "there are"))
    return Change(node, size, _value(size, value, text))


def _value(size: str, value: str, text: str) -> Size:
    if size == "match_kind":
        if value not in MATCH_KINDS:
            raise UsageError(f"--set {text}: there is no match kind {value!r}", hint=", ".join(MATCH_KINDS))
        return value
    if size in ("to", "operator", "algorithm"):
        return value
    try:
        number = ratio(value) if size == "hit" else float(value.replace("_", ""))
    except ValueError:
        raise UsageError(f"--set {text}: {value!r} is not a number") from None
    most = 1.0 if size == "hit" else 1e15
    if not 0 <= number <= most:
        bound = f"at most {most:g}" if number > most else "at least 0"
        raise UsageError(f"--set {text}: {size} must be {bound}, got {value}")
    return number


def changed(graph: ProgramGraph, changes: Sequence[Change]) -> ProgramGraph:
    """The program with all changes, in order."""
    for change in changes:
        for name in find_nodes(graph, change.node, change.size):
            # Leaving out a copy of a table may leave no path to another one.
            if name in graph.nodes:
                graph = _resized(graph, graph.nodes[name], change) if change.size else without(graph, name)
    return graph


def find_nodes(graph: ProgramGraph, name: str, size: str = "") -> tuple[str, ...]:
    """A node by its name, with its copies; leading parts may be left out (``ipv4_lpm`` of ``MyIngress.ipv4_lpm``).

    If there is none, the error names those that have that size.
    """
    copies: dict[str, list[str]] = {}
    for node in graph.nodes:
        copies.setdefault(base_name(node), []).append(node)
    if name in copies:
        return tuple(copies[name])
    found = [n for n in copies if re.search(rf"[./: ]{re.escape(name)}$", n)]
    tables = [n for n in found if graph.nodes[copies[n][0]].kind == "table"]
    chosen = found if len(found) == 1 else tables
    if len(chosen) == 1:
        return tuple(copies[chosen[0]])
    if found:
        raise UsageError(f"{name} can be {', '.join(found[:5])} in {graph.name}", hint="give the whole name")
    sized = {n: node for n, node in graph.nodes.items() if any(size in dict(what.sizes) for what in node.constructs)}
    named = [base_name(n) for n, node in (sized or graph.nodes).items() if node.constructs]
    raise UsageError(f"the program {graph.name} has no {name}", hint=nearest(name, named, "it has"))


def _resized(graph: ProgramGraph, node: Node, change: Change) -> ProgramGraph:
    labels = {edge.label for edge in node.edges}
    if change.size == "hit" and isinstance(change.value, float) and labels & {"hit", "miss"}:
        label, share = ("hit", change.value) if "hit" in labels else ("miss", 1 - change.value)
        return weigh(graph, {node.name: {label: share}})
    held = sorted({n for what in node.constructs for n, _ in what.sizes if n != "name"})
    if change.size not in held:
        raise UsageError(
            f"{node.name} has no {change.size}", hint=nearest(change.size, held, "it has") if held else None
        )
    sized = (
        replace(what, sizes=tuple((n, change.value if n == change.size else v) for n, v in what.sizes))
        for what in node.constructs
    )
    resized = _with(graph, replace(node, constructs=tuple(sized)))
    emptied = change.size == "entries" and not change.value and MISS in labels
    return weigh(resized, {node.name: {MISS: 1.0}}) if emptied else resized


def without(graph: ProgramGraph, name: str) -> ProgramGraph:
    """The program without a node.

    Of a table its actions go as well: packets go on where all paths through it meet again that are not the end of a
    packet. Anything else stays as a step that costs nothing, and its edges stay as they are.
    """
    node = graph.nodes[name]
    if node.kind != "table":
        return _with(graph, replace(node, constructs=()))
    to = _meeting_point(graph, name)
    edges = (replace(node.edges[0], label="", to=to, probability=1.0),) if node.edges and to != _END else ()
    shorter = _with(graph, replace(node, constructs=(), edges=edges))
    reached = {n.name for n in sorted_nodes(shorter)}
    return replace(shorter, nodes={n: v for n, v in shorter.nodes.items() if n in reached})


def _with(graph: ProgramGraph, node: Node) -> ProgramGraph:
    return replace(graph, nodes={**graph.nodes, node.name: node})


def _meeting_point(graph: ProgramGraph, name: str) -> str:
    """The first node behind a table and its actions that all paths come to on which a packet is not dropped.

    That is an immediate postdominator in the graph without the paths that can only end in a drop; empty if it is the
    end. Copies of a node are the same place: what an action has set may make some of them. Of these, the one behind no
    action is meant.
    """
    after: dict[str, str] = {_END: _END}
    lost: dict[str, bool] = {}
    for node in reversed(sorted_nodes(graph)):
        goals = [edge.to for edge in node.edges] or [_END]
        lost[node.name] = all(_drops(node) if goal == _END else lost[goal] for goal in goals)
        kept = [goal for goal in goals if goal == _END or not lost[goal]] or goals
        kept.sort(key=lambda goal: goal != _END and graph.nodes[goal].kind == "action")
        first, *others = (_chain(goal, after) for goal in dict.fromkeys(kept))
        shared = set(map(base_name, first)).intersection(*(map(base_name, chain) for chain in others))
        after[node.name] = next(behind for behind in first if base_name(behind) in shared)
        if node.name == name:
            # Past the actions of the table, and what decides between them.
            common, own = after[name], (f"{base_name(name)}:", f"{base_name(name)} ")
            while common != _END and (graph.nodes[common].kind == "action" or base_name(common).startswith(own)):
                common = after[common]
            return common
    raise UsageError(f"packets never come to {name}")


def _chain(name: str, after: Mapping[str, str]) -> list[str]:
    """A node and all that every path from it comes to, in order, with the end."""
    found = [name]
    while found[-1] != _END:
        found.append(after[found[-1]])
    return found


def _drops(node: Node) -> bool:
    return any(what.kind == "drop" for what in node.constructs) or base_name(node.name) == LOST


@dataclass(frozen=True, slots=True)
class LineDifference:
    """One line that differs: what it was, what it is, None where it is not there."""

    node: str
    part: str
    before: Charge | None
    after: Charge | None

    @property
    def what(self) -> Construct:
        charge = self.after or self.before
        assert charge is not None  # noqa: S101 - one of both is there
        return charge.what

    @property
    def is_known(self) -> bool:
        """False where something has no price, or a bound for one that does not depend on what was changed."""
        charges = [charge for charge in (self.before, self.after) if charge is not None]
        bases = {charge.basis for charge in charges}
        same = len(charges) == 2 and charges[0].cycles.value == charges[1].cycles.value
        return "unknown" not in bases and not (same and bases == {"bounded"})

    @property
    def cycles(self) -> Estimate:
        """After less before [cycles]. Both ends come of the same draw: what one price is off, it is off in both."""
        old, new = (NOTHING if charge is None else charge.cycles for charge in (self.before, self.after))
        value, *ends = (getattr(new, end) - getattr(old, end) for end in ("value", "low", "high"))
        return Estimate(value, min(value, *ends), max(value, *ends))


@dataclass(frozen=True)
class CostDifference:
    """Two predictions of the same target: after less before [cycles], and what differs, the largest first.

    Args:
        cycles, mpps: None where the difference of a line is not known.
    """

    before: Prediction
    after: Prediction
    cycles: Estimate | None
    mpps: Estimate | None
    lines: tuple[LineDifference, ...]
    interaction: float

    @property
    def unknown(self) -> tuple[str, ...]:
        """The nodes of whose difference nothing is known."""
        return tuple(dict.fromkeys(line.node for line in self.lines if not line.is_known))


def difference(before: Prediction, after: Prediction, path: PathName = "expected") -> CostDifference:
    old, new = before.breakdowns[path], after.breakdowns[path]
    lines = _differing(_grouped(old.lines), _grouped(new.lines))
    interaction = new.breakdown.interaction - old.breakdown.interaction
    if not all(line.is_known for line in lines):
        return CostDifference(before, after, None, None, lines, interaction)
    value = new.breakdown.cycles.value - old.breakdown.cycles.value
    bands = [line.cycles for line in lines]
    down = math.sqrt(sum((b.value - b.low) ** 2 for b in bands))
    up = math.sqrt(sum((b.high - b.value) ** 2 for b in bands))
    cycles = Estimate(value, value - down, value + up)
    rates = _rates(before, cycles, path, max(new.breakdown.baseline, new.breakdown.low, 1e-9))
    return CostDifference(before, after, cycles, rates, lines, interaction)


def _rates(before: Prediction, cycles: Estimate, path: PathName, least: float) -> Estimate:
    """The difference of the rate of one core [Mpps], from the unchanged cost to a changed one of ``least`` or more."""
    old, mhz = before.cycles(path).value, before.clock_hz / 1e6
    ends = [mhz / max(old + d, least) - mhz / old for d in (cycles.value, cycles.high, cycles.low)]
    return Estimate(*ends)


_Key = tuple[str, str, str, int]


def _grouped(lines: tuple[CostLine, ...]) -> Mapping[_Key, Charge]:
    """Charges by node, part, kind of construct, and their number among these; the copies of a node are one."""
    found: dict[_Key, Charge] = {}
    numbers: dict[tuple[str, str], int] = {}
    for line in lines:
        kind = line.charge.what.kind
        number = numbers.get((line.node, kind), 0)
        numbers[line.node, kind] = number + 1
        key = (base_name(line.node), line.part, kind, number)
        one, other = line.charge, found.get(key)
        if other is not None:  # in two copies of a node: errors are the same, too
            one = replace(other, times=other.times + one.times, cycles=other.cycles + one.cycles)
        found[key] = one
    return found


def _differing(old: Mapping[_Key, Charge], new: Mapping[_Key, Charge]) -> tuple[LineDifference, ...]:
    pairs = {key: (old.get(key), new.get(key)) for key in dict.fromkeys([*old, *new])}
    found = [
        LineDifference(node, part, a, b)
        for (node, part, *_), (a, b) in pairs.items()
        if a is None or b is None or (a.what.sizes, a.times, a.cycles) != (b.what.sizes, b.times, b.cycles)
    ]
    return tuple(sorted(found, key=lambda line: -abs(line.cycles.value)))


SPEC_SUFFIXES = (".yaml", ".yml")
UNIFORM = "uniform"


def fill_counts(texts: Sequence[str]) -> dict[str, int]:
    """Tables and how many entries they hold, from texts such as ``ipv4_lpm=1000``."""
    found = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        try:
            number = float(value.replace("_", ""))
        except ValueError:
            number = math.nan
        if name.strip() and number < 0:
            raise UsageError(f"--fill {text}: entries must be at least 0, got {value}")
        if not name.strip() or not 0 <= number < 1e12 or number != int(number):
            raise UsageError(f"--fill {text}: expected TABLE=N", hint="for example --fill ipv4_lpm=1000")
        found[name.strip()] = int(number)
    return found


@dataclass(frozen=True)
class Wanted:
    """What a user asks for, besides models and conditions.

    Args:
        program: name of the catalogue, or path.
        probabilities: a file of shares, or ``uniform``.
        points: most values of each swept variable.
    """

    program: str
    sets: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    entries: Mapping[str, int] = field(default_factory=dict)
    probabilities: str | None = None
    capture: Path | None = None
    points: int | None = None
    read: ReadOptions = field(default_factory=ReadOptions)

    @property
    def is_experiment(self) -> bool:
        name = self.program
        return name in catalogue_names() or (Path(name).suffix in SPEC_SUFFIXES)


@dataclass(frozen=True)
class ProgramSubject:
    """One program.

    Args:
        experiment: the experiment that it is a point of, with its changes.
        instructions: reads the program in the instructions of SWX that are generated for it; None if it cannot be.
        apart: reads the program with headers that are kept apart from the packet, as on xdp.
        workload: the program with the packets that it is asked for, as they are sent when it is measured.
    """

    graph: ProgramGraph
    changes: tuple[str, ...] = ()
    values: Mapping[str, object] = field(default_factory=dict)
    experiment: Experiment | None = None
    point: Point | None = None
    file: Path | None = None
    instructions: Callable[[], ProgramGraph] | None = field(default=None, compare=False)
    apart: Callable[[], ProgramGraph] | None = field(default=None, compare=False)
    workload: Workload | None = field(default=None, compare=False)

    def graph_for(self, target: str) -> ProgramGraph:
        """The program in the constructs that are priced for a target.

        Raises:
            CapabilityError: p4perf does not generate it for SWX.
        """
        read = {SWX: self.instructions, XDP: self.apart}.get(target.partition(":")[0])
        return self.graph if read is None else read()

    def path_for(self, target: str) -> PacketPath | None:
        """What an average one of its packets meets; None if it is not asked for packets that are known one by one.

        Raises:
            CapabilityError: p4perf does not generate it for SWX, or a packet cannot be followed to its end.
        """
        if self.workload is None:
            return None
        try:
            return workload_path(target, self.workload, TrafficPlan(self.workload.packets.frame_size_bytes))
        except UnknownDecisionError as error:
            raise CapabilityError(f"what becomes of a packet is not known: it depends on {error}") from error


def sent_program(experiment: Experiment, workload: Workload, file: Path) -> ProgramSubject:
    """A program that was read with the packets that ``p4perf measure`` sends.

    Args:
        experiment: the experiment of one point that measures it.
        workload: the program of that point, with its packets.
    """
    (point,) = experiment.points
    own = replace(usual(workload_graph("", workload)), name=file.stem)

    def instructions() -> ProgramGraph:
        return replace(usual(workload_graph(SWX, workload)), name=file.stem)

    return ProgramSubject(
        own, experiment=experiment, point=point, file=file, instructions=cache(instructions), workload=workload
    )


@dataclass(frozen=True)
class Pair:
    """A program, and what it was before the changes, if that can be compared."""

    subject: ProgramSubject
    before: ProgramSubject | None = None


def open_subjects(wanted: Wanted) -> tuple[Pair, ...]:
    """All programs, each with what it was before its changes.

    Raises:
        UsageError: there is no such program, or options do not go together.
        SpecError: a spec, or a change of one, is wrong.
        DataError: a file cannot be read as what it should be.
    """
    if wanted.is_experiment:
        return _experiment(wanted)
    path = Path(wanted.program)
    if not path.exists() and not path.suffix:
        raise SpecError(
            f"there is no experiment {wanted.program} in the catalogue, and no such file",
            hint=nearest(wanted.program, catalogue_names(), "the catalogue has"),
        )
    if wanted.points is not None:
        raise UsageError("--points is for experiments")
    graph = _weighted(_read(path, wanted), path, wanted)
    changes = (*map(parse_change, wanted.sets), *map(Change, wanted.without))
    plain = ProgramSubject(graph, file=path)
    if graph.source != "swx":
        plain = replace(plain, instructions=cache(partial(_in_instructions, path, wanted)))
    if graph.source == "bmv2":
        kept = replace(wanted, read=replace(wanted.read, apart=True))
        plain = replace(plain, apart=cache(lambda: _weighted(_read(path, kept), path, kept)))
    if not changes:
        return (Pair(plain),)
    subject = replace(plain, graph=changed(graph, changes), changes=_words(changes))
    if plain.instructions is not None:
        subject = replace(subject, instructions=partial(_changed_instructions, plain.instructions, changes))
    if (apart := plain.apart) is not None:
        subject = replace(subject, apart=lambda: changed(apart(), changes))
    return (Pair(subject, plain),)


def _in_instructions(path: Path, wanted: Wanted) -> ProgramGraph:
    options = replace(wanted.read, entries={**wanted.read.entries, **wanted.entries})
    shares = None if wanted.probabilities in (None, UNIFORM) else Path(wanted.probabilities)
    graph = read_instructions(path, options, shares, wanted.capture)
    return uniform(graph) if wanted.probabilities == UNIFORM else usual(graph)


def _changed_instructions(read: Callable[[], ProgramGraph], changes: Sequence[Change]) -> ProgramGraph:
    try:
        return changed(read(), changes)
    except UsageError as error:
        raise CapabilityError(f"in the instructions of SWX, {error.message}", hint=error.hint) from error


def _words(changes: Sequence[Change]) -> tuple[str, ...]:
    return tuple(str(change) for change in changes)


def _read(path: Path, wanted: Wanted) -> ProgramGraph:
    return read_program(path, replace(wanted.read, entries={**wanted.read.entries, **wanted.entries}))


def _weighted(graph: ProgramGraph, path: Path, wanted: Wanted) -> ProgramGraph:
    if wanted.capture is not None:
        if wanted.probabilities is not None:
            raise UsageError("--probabilities and --capture both state branch probabilities", hint="give one of them")
        found, remarks = shares_of_trace(path, wanted.capture, wanted.read)
        weighted = found.apply(graph)
        return replace(weighted, remarks=(*weighted.remarks, *remarks))
    if wanted.probabilities == UNIFORM:
        return uniform(graph)
    if wanted.probabilities is not None:
        found = read_shares(Path(wanted.probabilities), graph)
        # --fill wins over the file.
        entries = {name: wanted.entries.get(base_name(name), count) for name, count in found.entries.items()}
        graph = replace(found, entries=entries).apply(graph)
    return usual(graph)


def usual(graph: ProgramGraph) -> ProgramGraph:
    """The program with the usual path where branch probabilities are unknown: tables hit, and packets are sent.

    At a table they take the edge of a hit, unless all packets that do are dropped or it is empty; elsewhere the edge
    behind which most tables hit on the way to where packets are sent, the first of several. What a node has stated
    shares for keeps them.
    """
    sent: dict[str, bool] = {_END: True}
    hits: dict[str, int] = {_END: 0}
    nodes = dict(graph.nodes)
    for node in reversed(sorted_nodes(graph)):
        taken = [e for e in node.edges if e.probability is None or e.probability > 0] or [_LAST]
        ways = [e for e in taken if e.probability is None] or taken
        empty = any(what.kind == "lookup" and what.size("entries") == 0 for what in node.constructs)
        ways = [e for e in ways if (e.label == MISS if empty else sent[e.to])] or ways
        best = max([e for e in ways if e.label == HIT] or ways, key=lambda e: hits[e.to])
        sent[node.name] = any(sent[e.to] for e in taken) and not _drops(node)
        hits[node.name] = hits[best.to] + (best.label == HIT)
        if any(e.probability is None for e in node.edges):
            rest = 1 - math.fsum(e.probability or 0.0 for e in node.edges)
            edges = (replace(e, probability=rest if e is best else e.probability or 0.0) for e in node.edges)
            nodes[node.name] = replace(node, edges=tuple(edges))
    assumed = tuple(name for name, node in nodes.items() if node is not graph.nodes[name] and len(node.edges) > 1)
    return replace(graph, nodes=nodes, assumed=assumed)


def uniform(graph: ProgramGraph) -> ProgramGraph:
    """The program with equal shares at all edges whose branch probabilities are unknown."""
    nodes = {
        name: replace(
            node, edges=tuple(replace(e, probability=p) for e, p in zip(node.edges, shares(node), strict=True))
        )
        if node.edges
        else node
        for name, node in graph.nodes.items()
    }
    return replace(graph, nodes=nodes)


def _experiment(wanted: Wanted) -> tuple[Pair, ...]:
    """The points of an experiment; beside each, the point with the same values in the unchanged experiment."""
    for given, option in ((wanted.probabilities, "--probabilities"), (wanted.capture, "--capture")):
        if given is not None and given != UNIFORM:
            raise UsageError(f"{option} is for programs that branch", hint="what packets of an experiment do is known")
    if wanted.entries:
        raise UsageError("--fill is for programs of your own", hint="--set changes the parameters of an experiment")
    overrides = []
    for text in wanted.sets:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {text}: expected key=value", hint="for example --set entries=1000")
        overrides.append((key.strip(), value.strip()))
    experiment = load_experiment(
        wanted.program, overrides=overrides, points=wanted.points, parameters_of=component_parameters
    )
    plain = (
        load_experiment(wanted.program, points=wanted.points, parameters_of=component_parameters)
        if overrides
        else experiment
    )
    known = {tuple(point.values.items()): point for point in plain.points}
    without = tuple(Change(name) for name in wanted.without)
    pairs = []
    for point in experiment.points:
        subject = _subject(experiment, point)
        old = known.get(tuple(point.values.items()))
        before = None if old is None else _subject(plain, old)
        if before is not None and before.graph == subject.graph:
            before = None
        if without:
            before = before or subject
            subject = replace(subject, graph=changed(subject.graph, without))
        if before is not None:
            subject = replace(subject, changes=(*wanted.sets, *_words(without)))
        pairs.append(Pair(subject, before))
    return tuple(pairs)


def _subject(experiment: Experiment, point: Point) -> ProgramSubject:
    return ProgramSubject(
        component_graph(experiment, point), values=dict(point.values), experiment=experiment, point=point
    )
