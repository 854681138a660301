"""p4perf's own specs: as their components, or as the program that is generated for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from p4perf.errors import SpecError
from p4perf.evaluation.reading.blocks import Instruction, steps_of
from p4perf.evaluation.reading.flow import Assigned, Effect, Fact, Flow, Step, Valid
from p4perf.evaluation.reading.own_constructs import of_condition, of_lookup, of_statement
from p4perf.generators.analysis import control_nodes, destination, statements
from p4perf.generators.packets import FCS_BYTES
from p4perf.generators.program import (
    ACCEPT,
    METADATA,
    Action,
    AddHeader,
    ApplyTable,
    Assign,
    CallAction,
    Compare,
    Const,
    ControlNode,
    Drop,
    FieldRef,
    If,
    IsValid,
    Multicast,
    Program,
    Recirculate,
    RemoveHeader,
    Resubmit,
    SetEgress,
    Statement,
)
from p4perf.generators.workload import build_workload
from p4perf.models.program.constructs import construct
from p4perf.models.program.graph import Edge, Node, ProgramGraph
from p4perf.specs import Experiment, Point, load_experiment

SENT, LOST = "sent", "dropped"

DROPPED, PORT, RESUBMITTED = "$dropped", "$port", "$resubmitted"
"""Fields in which is remembered whether a packet was dropped, whether it is deparsed because it has a port by which to
leave or goes through the program again, and whether it comes again as it came."""


def load_point(source: str, wanted: Mapping[str, str] | None) -> tuple[Experiment, Point]:
    """A spec and one of its points.

    Args:
        source: name of the catalogue, or path of a YAML file.
        wanted: swept variables and the values of the point, as texts; None: the only point.

    Raises:
        SpecError: the spec is wrong, has several points and none was chosen, or has no such point.
    """
    experiment = load_experiment(source)
    points = experiment.points
    if wanted:
        for name in wanted:
            if points and name not in points[0].values:
                known = ", ".join(points[0].values) or "none"
                raise SpecError(f"{name} is not a swept variable", hint=f"swept variables: {known}")
        points = tuple(p for p in points if all(str(p.values[n]) == value for n, value in wanted.items()))
    if len(points) != 1:
        first = experiment.points[0]
        example = ", ".join(f"{n}={v}" for n, v in first.values.items())
        raise SpecError(
            f"{source} has {len(points)} such points" if wanted else f"{source} has {len(points)} points",
            hint=f"choose one, such as {example}",
        )
    return experiment, points[0]


def component_graph(experiment: Experiment, point: Point) -> ProgramGraph:
    """One node for each component of a point, in their order."""
    nodes: dict[str, Node] = {}
    names = [name for name, _ in point.components]
    keys = [name if names.count(name) == 1 else f"{name}@{n}" for n, name in enumerate(names)]
    for n, (name, parameters) in enumerate(point.components):
        what = construct("component", f"component {keys[n]}", **{"name": name, **parameters})
        to = keys[n + 1] if n + 1 < len(keys) else SENT
        nodes[keys[n]] = Node(keys[n], "block", (what,), (Edge("", to),), f"component {keys[n]}")
    nodes[SENT] = Node(SENT, "end")
    start = keys[0] if keys else SENT
    return ProgramGraph(experiment.spec.name, nodes, start, "p4perf", (), point.frame_size_bytes)


def point_program(experiment: Experiment, point: Point) -> Program:
    """The program that is generated for a point.

    Raises:
        SpecError: a component does not know a parameter, or its value is out of bounds.
        CapabilityError: no such program exists.
    """
    baseline = experiment.spec.program.baseline
    return build_workload(point.components, frame_size_bytes=point.frame_size_bytes, baseline=baseline).program


def read_own(program: Program, name: str, frame_bytes: int) -> Flow:
    """The steps of one of p4perf's own programs."""
    return _Reader(program, name, frame_bytes).read()


def condition_names(program: Program) -> dict[int, str]:
    """Names of the conditions of a program by the identity of their objects: they are numbered in its order."""
    found: dict[int, str] = {}
    for node in control_nodes(program.control):
        if isinstance(node, If):
            found.setdefault(id(node), f"if@{len(found) + 1}")
    return found


@dataclass
class _Reader:
    program: Program
    name: str
    frame_bytes: int
    steps: dict[str, Step] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.conditions = condition_names(self.program)

    def read(self) -> Flow:
        for name in (SENT, LOST):
            self._add(Step(name, "end"))
        emitted = tuple((h, construct("emit", f"deparser, {h}", bytes=self._size(h))) for h in self.program.emit)
        start = self._add(Step("deparser", "deparser", (), (Edge("", SENT),), "deparser", present=emitted))
        for n, checksum in enumerate(self.program.updated):
            what = construct("checksum update", f"checksum of {checksum.header}", bytes=self._size(checksum.header))
            present = ((checksum.header, what),)
            start = self._add(Step(f"update {n}", "block", (), (Edge("", start),), what.where, present=present))
        leaves = Step("port?", "condition", (), (Edge("true", start), Edge("false", LOST)), test=(PORT, 1))
        start = self._add(leaves)
        if again := any(isinstance(s, Resubmit) for s in statements(self.program)):
            edges = (Edge("true", SENT), Edge("false", start))
            start = self._add(Step("resubmitted?", "condition", (), edges, test=(RESUBMITTED, 1)))
        kept = Step("dropped?", "condition", (), (Edge("true", LOST), Edge("false", start)), test=(DROPPED, 1))
        start = self._control(self.program.control, self._add(kept))
        for n, checksum in enumerate(self.program.verified):
            what = construct("checksum verify", f"checksum of {checksum.header}", bytes=self._size(checksum.header))
            present = ((checksum.header, what),)
            start = self._add(Step(f"verify {n}", "block", (), (Edge("", start),), what.where, present=present))
        self._parser(start)
        effects: tuple[Effect, ...] = (Assigned(DROPPED, 0), Assigned(PORT, 0))
        effects += (Assigned(RESUBMITTED, 0),) if again else ()
        effects += tuple(Assigned(f"{METADATA}.{f.name}", 0) for f in self.program.metadata)
        self._add(Step("begin", "block", (), (Edge("", "parser.start"),), effects=effects))
        return Flow(self.name, self.steps, "begin", "p4perf", (), self.frame_bytes)

    def _size(self, header: str) -> int:
        return self.program.header(header).size_bytes

    def _add(self, step: Step) -> str:
        self.steps[step.name] = step
        return step.name

    def _unique(self, name: str) -> str:
        n, found = 1, name
        while found in self.steps:
            n += 1
            found = f"{name}@{n}"
        return found

    def _parser(self, accept: str) -> None:
        for state in self.program.parser:
            where = f"parser state {state.name}"
            constructs = tuple(construct("extract", where, bytes=self._size(h)) for h in state.extracts)
            cases = [(f"0x{c.value:x}", c.next_state) for c in state.cases] if state.select is not None else []
            if state.select is not None:
                bits = self.program.width_bits(state.select)
                constructs += (construct("select", where, cases=len(cases), key_bits=bits),)
            cases.append(("default" if state.select is not None else "", state.default))
            edges = tuple(Edge(label, accept if to == ACCEPT else f"parser.{to}") for label, to in dict(cases).items())
            effects = tuple(Valid(h, True) for h in state.extracts)
            self._add(Step(f"parser.{state.name}", "parser state", constructs, edges, where, effects))

    def _control(self, nodes: Sequence[ControlNode], after: str) -> str:
        for node in reversed(nodes):
            if isinstance(node, ApplyTable):
                after = self._table(node.table, after)
            elif isinstance(node, CallAction):
                after = self._action(self.program.action(node.action), node.action, after)
            else:
                after = self._condition(node, after)
        return after

    def _table(self, name: str, after: str) -> str:
        table = self.program.table(name)
        where = f"table {name}"
        site = self._unique(name)
        hit = self._action(self.program.action(table.entries.action), f"{site}:{table.entries.action}", after)
        miss = self._action(self.program.action(table.default_action), f"{site}:{table.default_action}", after)
        edges = (Edge("hit", hit), Edge("miss", miss))
        return self._add(Step(site, "table", (of_lookup(self.program, table, where),), edges, where))

    def _condition(self, node: If, after: str) -> str:
        name = self._unique(self.conditions[id(node)])
        self._add(Step(name, "condition"))
        then, otherwise = self._control(node.then, after), self._control(node.otherwise, after)
        test, inverted = _fact(node)
        edges = (Edge("true", then), Edge("false", otherwise))
        constructs = of_condition(self.program, node.condition, f"condition {name}")
        return self._add(Step(name, "condition", constructs, edges, f"condition {name}", (), test, inverted))

    def _action(self, action: Action, name: str, after: str) -> str:
        where = f"action {action.name}"
        name = self._unique(name)
        body = [
            Instruction(
                of_statement(self.program, s, where, self.frame_bytes - FCS_BYTES), tuple(self._effects(s)), where=where
            )
            for s in action.body
        ]
        (step,) = steps_of(name, body, after, where=where)
        return self._add(replace(step, name=name))

    def _effects(self, statement: Statement) -> list[Effect]:
        match statement:
            case Drop():
                return [Assigned(DROPPED, 1)]
            case SetEgress() | Multicast() | Recirculate():
                return [Assigned(PORT, 1)]
            case Resubmit():
                return [Assigned(RESUBMITTED, 1)]
            case AddHeader(header):
                return [Valid(header, True)]
            case RemoveHeader(header):
                return [Valid(header, False)]
            case Assign(ref, Const(value)):
                return [Assigned(f"{ref.header}.{ref.field}", value & ((1 << self.program.width_bits(ref)) - 1))]
        written = destination(statement)
        return [] if written is None else [Assigned(f"{written.header}.{written.field}", None)]


def _fact(node: If) -> tuple[Fact | None, bool]:
    match node.condition:
        case IsValid(header):
            return header, False
        case Compare(comparator, FieldRef(header, name), Const(value)) if comparator in ("==", "!="):
            return (f"{header}.{name}", value), comparator == "!="
    return None, False
