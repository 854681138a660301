"""p4perf's own specs: as their components, or as the program that is generated for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from p4perf.errors import SpecError
from p4perf.models.program.graph import Construct, Edge, Node, ProgramGraph, construct
from p4perf.programs import ir
from p4perf.programs.analysis import (
    condition_operands,
    control_nodes,
    destination,
    operands,
    statements,
    subexpressions,
)
from p4perf.programs.component import build_workload, component_parameters
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.packets import FCS_BYTES
from p4perf.programs.reading.bmv2_run import Decision
from p4perf.programs.reading.flow import Assigned, Effect, Fact, Flow, Instruction, Step, Valid, steps_of
from p4perf.specs import Experiment, Point, load_experiment

INDEX_BITS = 32
"""Width in which indices, ports and passes are computed."""


def of_statement(program: ir.Program, statement: ir.Statement, where: str, packet_bytes: int) -> tuple[Construct, ...]:
    """What a packet meets at one statement, what it computes first.

    The writing of a result belongs to externs, and that of its fields to adding a header. A fence costs nothing that
    anybody asks for.
    """
    bits = program.width_bits(statement.destination) if isinstance(statement, ir.Assign) else INDEX_BITS
    computed = tuple(c for o in operands(statement) for c in _computed(o, bits, where))
    own = _itself(program, statement, where, packet_bytes)
    return computed if own is None else (*computed, own)


def _computed(expression: ir.Expression, bits: int, where: str) -> tuple[Construct, ...]:
    found = [e for e in subexpressions(expression) if isinstance(e, ir.BinaryOp)]
    return tuple(construct("compute", where, operator=e.operator, bits=bits) for e in found)


def _itself(program: ir.Program, statement: ir.Statement, where: str, packet_bytes: int) -> Construct | None:
    match statement:
        case ir.Assign(ref):
            to = "metadata" if ref.header == ir.METADATA else "header"
            return construct("write", where, bits=program.width_bits(ref), to=to)
        case ir.SetEgress():
            return construct("set egress", where)
        case ir.Drop():
            return construct("drop", where)
        case ir.AddHeader(header):
            return construct("add header", where, bytes=program.header(header).size_bytes)
        case ir.RemoveHeader(header):
            return construct("remove header", where, bytes=program.header(header).size_bytes)
        case ir.Hash(_, algorithm, fields):
            size = sum(program.width_bits(f) for f in fields) // 8
            return construct("hash", where, algorithm=algorithm, bytes=size)
        case ir.CountPacket(name):
            return construct("counter", where, cells=program.counter(name).size)
        case ir.MeterPacket(_, name):
            return construct("meter", where, cells=program.meter(name).size)
        case ir.ReadRegister(_, name):
            register = program.register(name)
            return construct("register read", where, cells=register.size, bits=register.width_bits)
        case ir.WriteRegister(name):
            register = program.register(name)
            return construct("register write", where, cells=register.size, bits=register.width_bits)
        case ir.Random(ref):
            return construct("random", where, bits=program.width_bits(ref))
        case ir.Recirculate():
            return construct("recirculate", where)
        case ir.Resubmit():
            return construct("resubmit", where)
        case ir.Clone():
            return construct("clone", where, bytes=packet_bytes)
        case ir.Multicast(ports):
            return construct("multicast", where, ports=len(ports))
        case ir.RunOperator(_, operator):
            return construct("unknown", where, name=f"operator {operator.name}")
        case ir.Fence() | ir.Branch() | ir.Exit() | ir.Digest() | ir.Truncate():
            return None


def of_condition(program: ir.Program, condition: ir.Condition, where: str) -> tuple[Construct, ...]:
    """What a packet meets at a condition, what it computes first; whether a header is valid is one bit."""
    sides = condition_operands(condition)
    widths = [w for side in sides for e in subexpressions(side) if (w := _width_bits(program, e))]
    bits = max(widths, default=INDEX_BITS if sides else 1)
    computed = tuple(c for side in sides for c in _computed(side, bits, where))
    return (*computed, construct("condition", where, bits=bits))


def _width_bits(program: ir.Program, expression: ir.Expression) -> int:
    """Width of a field or a number of passes; 0 of all else, which is as wide as what it is compared with."""
    match expression:
        case ir.FieldRef():
            return program.width_bits(expression)
        case ir.PassNumber():
            return INDEX_BITS
    return 0


def of_lookup(program: ir.Program, table: ir.Table, where: str) -> Construct:
    """What a packet meets at a table, before its action."""
    return construct(
        "lookup",
        where,
        match_kind=program.match_kind(table),
        entries=table.entries.count,
        key_bits=program.key_bits(table),
        action_data_bytes=program.action(table.rule.action).data_bits // 8,
        hit=0.5,
    )


SENT, LOST = "sent", "dropped"

DROPPED, PORT, RESUBMITTED = "$dropped", "$port", "$resubmitted"
"""Fields in which is remembered whether a packet was dropped, whether it is deparsed because it has a port by which to
leave or goes through the program again, and whether it comes again as it came."""


def load_point(source: str, wanted: Mapping[str, str] | None) -> tuple[Experiment, Point]:
    """A spec, and the point with these values (as texts) of its swept variables; without any its only point."""
    experiment = load_experiment(source, parameters_of=component_parameters)
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


def point_program(experiment: Experiment, point: Point) -> ir.Program:
    baseline = experiment.spec.program.baseline
    return build_workload(point.components, frame_size_bytes=point.frame_size_bytes, baseline=baseline).program


def read_own(program: ir.Program, name: str, frame_bytes: int) -> Flow:
    return _Reader(program, name, frame_bytes).read()


def condition_names(program: ir.Program) -> dict[int, str]:
    """Names of the conditions of a program by the identity of their objects: they are numbered in its order."""
    found: dict[int, str] = {}
    for node in control_nodes(program.control):
        if isinstance(node, ir.If):
            found.setdefault(id(node), f"if@{len(found) + 1}")
    return found


@dataclass
class _Reader:
    program: ir.Program
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
        if again := any(isinstance(s, ir.Resubmit) for s in statements(self.program)):
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
        effects += tuple(Assigned(f"{ir.METADATA}.{f.name}", 0) for f in self.program.metadata)
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
            edges = tuple(
                Edge(label, accept if to == ir.ACCEPT else f"parser.{to}") for label, to in dict(cases).items()
            )
            effects = tuple(Valid(h, True) for h in state.extracts)
            self._add(Step(f"parser.{state.name}", "parser state", constructs, edges, where, effects))

    def _control(self, nodes: Sequence[ir.ControlNode], after: str) -> str:
        for node in reversed(nodes):
            if isinstance(node, ir.ApplyTable):
                after = self._table(node.table, after)
            elif isinstance(node, ir.CallAction):
                after = self._action(self.program.action(node.action), node.action, after)
            elif isinstance(node, ir.Block):
                after = self._control(node.body, after)
            else:
                after = self._condition(node, after)
        return after

    def _table(self, name: str, after: str) -> str:
        table = self.program.table(name)
        where = f"table {name}"
        site = self._unique(name)
        hit = self._action(self.program.action(table.rule.action), f"{site}:{table.rule.action}", after)
        miss = self._action(self.program.action(table.default_action), f"{site}:{table.default_action}", after)
        edges = (Edge("hit", hit), Edge("miss", miss))
        return self._add(Step(site, "table", (of_lookup(self.program, table, where),), edges, where))

    def _condition(self, node: ir.If, after: str) -> str:
        name = self._unique(self.conditions[id(node)])
        self._add(Step(name, "condition"))
        then, otherwise = self._control(node.then, after), self._control(node.otherwise, after)
        test, inverted = _fact(node)
        edges = (Edge("true", then), Edge("false", otherwise))
        constructs = of_condition(self.program, node.condition, f"condition {name}")
        return self._add(Step(name, "condition", constructs, edges, f"condition {name}", (), test, inverted))

    def _action(self, action: ir.Action, name: str, after: str) -> str:
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

    def _effects(self, statement: ir.Statement) -> list[Effect]:
        match statement:
            case ir.Drop():
                return [Assigned(DROPPED, 1)]
            case ir.SetEgress() | ir.Multicast() | ir.Recirculate():
                return [Assigned(PORT, 1)]
            case ir.Resubmit():
                return [Assigned(RESUBMITTED, 1)]
            case ir.AddHeader(header):
                return [Valid(header, True)]
            case ir.RemoveHeader(header):
                return [Valid(header, False)]
            case ir.Assign(ref, ir.Const(value)):
                return [Assigned(f"{ref.header}.{ref.field}", value & ((1 << self.program.width_bits(ref)) - 1))]
        written = destination(statement)
        return [] if written is None else [Assigned(f"{written.header}.{written.field}", None)]


def _fact(node: ir.If) -> tuple[Fact | None, bool]:
    match node.condition:
        case ir.IsValid(header):
            return header, False
        case ir.Compare(comparator, ir.FieldRef(header, name), ir.Const(value)) if comparator in ("==", "!="):
            return (f"{header}.{name}", value), comparator == "!="
    return None, False


@dataclass(frozen=True, slots=True)
class Passed:
    """A step that a packet passes.

    Args:
        label: of the edge by which it leaves; empty where there is nothing to decide.
        decided: whether the program decides something there; that a packet was dropped or not is none of it.
    """

    step: Step
    constructs: tuple[Construct, ...]
    label: str
    decided: bool


def passed_steps(flow: Flow, decisions: Iterable[Decision]) -> Iterator[Passed]:
    """The steps that a packet passes on one path through a program.

    Args:
        decisions: of one pass. Where there are no more of them although the next step asks for one, the path ends: the
            packet was too short for what the parser extracts.
    """
    facts: dict[str, int | bool | None] = {}
    left = iter(decisions)
    step = flow.steps[flow.start]
    while True:
        for effect in step.effects:
            if isinstance(effect, Assigned):
                facts[effect.field] = effect.value
            else:
                facts[effect.header] = facts.get(effect.now, False) if isinstance(effect.now, str) else effect.now
        label, decided = "", False
        if step.test is not None and step.test[0] in (DROPPED, PORT, RESUBMITTED):
            label = "true" if _holds(step.test, facts) else "false"
        elif step.kind in ("parser state", "table", "condition"):
            made = next(left, None)
            if made is None:
                return
            label, decided = made[1], True
        met = (what for fact, what in step.present if _holds(fact, facts))
        yield Passed(step, (*step.constructs, *met), label, decided)
        if not step.edges:
            return
        step = flow.steps[next(edge.to for edge in step.edges if edge.label == label)]


def _holds(fact: Fact, facts: dict[str, int | bool | None]) -> bool:
    return bool(facts.get(fact)) if isinstance(fact, str) else facts.get(fact[0]) == fact[1]


class OwnPackets:
    """Runs packets through a program with the reference interpreter, whose counters and registers live as long."""

    def __init__(self, program: ir.Program) -> None:
        self._names = condition_names(program)
        self._interpreter = Interpreter(program, watch=self._watch)
        self.passes: list[list[Decision]] = []
        """What the last packet decided, by pass; also where it could not be run to the end."""

    def run(self, frame: bytes) -> list[list[Decision]]:
        """What a packet decides at parser states, tables and conditions, in order, in each of its passes.

        Raises as :meth:`~p4perf.programs.interpreter.Interpreter.run` does.
        """
        self.passes = []
        self._interpreter.run(frame)
        return self.passes

    def _watch(self, met: object, outcome: str | bool | None) -> None:
        if isinstance(met, ir.ParserState):
            if met.name == "start":
                self.passes.append([])
            self.passes[-1].append((f"parser.{met.name}", _case(met, str(outcome))))
        elif isinstance(met, ir.ApplyTable):
            self.passes[-1].append((met.table, "hit" if outcome else "miss"))
        elif isinstance(met, ir.If):
            self.passes[-1].append((self._names[id(met)], "true" if outcome else "false"))


def _case(state: ir.ParserState, following: str) -> str:
    """Label of an edge from a state to another; of several cases that lead there the first."""
    if state.select is None:
        return ""
    found = (f"0x{c.value:x}" for c in state.cases if c.next_state == following)
    return next(found, "default") if following != state.default else "default"
