"""The forward analysis of a program: what is known, on every path, before each thing that a packet meets.

Parser, control flow and actions are followed once, with every action that a table may run and both sides of every
condition; where paths meet, what is known is joined. Backends derive from it which guards, flags and copies their text
needs, so that a program gets only those. Compared with the reference interpreter, which follows one packet:

* a header in :attr:`PathState.valid` is valid there in every packet, and one that is not in
  :attr:`PathState.maybe_valid` in none;
* metadata in :attr:`PathState.assigned` was written in every packet, and :data:`PORT` stands for the egress port;
* a packet was dropped only by an action in :attr:`PathState.droppers`, passes again only where
  :attr:`PathState.passes_again`, and met at most :attr:`PathState.clones` actions that clone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from p4perf.programs import ir
from p4perf.programs.analysis import condition_operands, destination, flattened, operands, statements, subexpressions

PORT = ir.FieldRef(ir.METADATA, "")
"""Stands for the egress port among the fields that are assigned."""


@dataclass(frozen=True, slots=True)
class PathState:
    """What is known at one place of a program, whatever packet gets there."""

    valid: frozenset[str] = frozenset()
    maybe_valid: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    """Headers that an action may have removed, and none has added since."""
    assigned: frozenset[ir.FieldRef] = frozenset()
    """Metadata that was written in this pass; :data:`PORT` where an action set the egress port."""
    lost_writes: frozenset[ir.FieldRef] = frozenset()
    """Fields that may have been written while their header was not valid."""
    decided: bool = False
    """It was said what becomes of the packet: an egress port, multicast, or a drop."""
    droppers: frozenset[str] = frozenset()
    """Actions that may have dropped the packet."""
    passes_again: bool = False
    """The packet may be recirculated or resubmitted."""
    clones: int = 0
    """The most actions with clones that a packet has met."""

    def with_header(self, name: str) -> PathState:
        """The same where that header is valid."""
        return replace(self, valid=self.valid | {name}, maybe_valid=self.maybe_valid | {name})

    def without_header(self, name: str) -> PathState:
        """The same where that header is not valid."""
        return replace(self, valid=self.valid - {name}, maybe_valid=self.maybe_valid - {name})

    def joined(self, other: PathState) -> PathState:
        """What is known where two paths meet."""
        if self == other:
            return self
        return PathState(
            self.valid & other.valid,
            self.maybe_valid | other.maybe_valid,
            self.removed | other.removed,
            self.assigned & other.assigned,
            self.lost_writes | other.lost_writes,
            self.decided and other.decided,
            self.droppers | other.droppers,
            self.passes_again or other.passes_again,
            max(self.clones, other.clones),
        )


def join(states: Iterable[PathState | None]) -> PathState | None:
    """What is known where paths meet; None if no packet gets there."""
    found: PathState | None = None
    for state in states:
        if state is not None:
            found = state if found is None else found.joined(state)
    return found


@dataclass(frozen=True, slots=True)
class Access:
    """A field that is read or written, what is known before, and the action that does it (None: control or parser)."""

    field: ir.FieldRef
    state: PathState
    action: str | None


@dataclass(frozen=True, slots=True)
class DataflowStep:
    """A statement or a node of the control flow, what is known before, and the action that a statement stands in."""

    what: ir.Statement | ir.ControlNode
    state: PathState
    action: str | None


@dataclass(slots=True)
class Dataflow:
    """What :func:`follow` found, in the order in which packets meet it."""

    edges: dict[tuple[str, str], PathState] = field(default_factory=dict)
    """What is known when the parser goes from one state to another one."""
    parsed: PathState = PathState()
    """What is known of a packet that the parser accepts."""
    end: PathState | None = None
    """What is known after the control flow; None if no packet gets there."""
    parser_reads: list[Access] = field(default_factory=list)
    """What the parser reads, by statements and selects."""
    parser_writes: list[Access] = field(default_factory=list)
    selects: dict[str, Access] = field(default_factory=dict)
    """What the states of the parser select on, by their names."""
    reads: list[Access] = field(default_factory=list)
    writes: list[Access] = field(default_factory=list)
    steps: list[DataflowStep] = field(default_factory=list)


def successors(state: ir.ParserState) -> tuple[str, ...]:
    """The parser states that may follow, each once."""
    cases = (case.next_state for case in state.cases) if state.selected else ()
    return tuple(dict.fromkeys((*cases, state.default)))


def follow(program: ir.Program, *, drop_ends: Callable[[str], bool] | None = None) -> Dataflow:
    """Follow all paths of a program; without ``drop_ends`` once for each program, and callers must not change it.

    Args:
        drop_ends: whether a drop in the action of that name ends the packet at once, as instructions of SWX can. What
            a Program means is that it does not: statements behind a drop still count, clone and write registers. SWX
            does not notice either that a packet is too short for what it extracts.
    """
    if drop_ends is not None:
        return _Walk(program, drop_ends, short=False).run()
    return _followed(program)


@ir.once
def _followed(program: ir.Program) -> Dataflow:
    return _Walk(program, lambda action: False).run()


def read_early(program: ir.Program) -> frozenset[str]:
    """Metadata fields that a pass may read before it writes them, so that they have to begin with zero.

    What is kept for another pass, or for a copy, is read.
    """
    found = follow(program)
    reads = (*found.parser_reads, *found.reads, *found.selects.values())
    early = {read.field for read in reads if read.field not in read.state.assigned}
    kept = {
        ref for s in statements(program) if isinstance(s, ir.Recirculate | ir.Resubmit | ir.Clone) for ref in s.keep
    }
    return frozenset(ref.field for ref in early | kept if ref.header == ir.METADATA)


def assumed(condition: ir.Condition, known: PathState) -> tuple[PathState, PathState]:
    """What is known where a condition holds, and where it does not."""
    match condition:
        case ir.IsValid(name):
            return replace(known, valid=known.valid | {name}), known.without_header(name)
        case ir.Not(inner):
            held, other = assumed(inner, known)
            return other, held
        case ir.And(left, right):
            return assumed(right, assumed(left, known)[0])[0], known
        case ir.Or(left, right):
            return known, assumed(right, assumed(left, known)[1])[1]
        case ir.Compare():
            return known, known


def _takes(statement: ir.ParserStatement) -> bool:
    """Whether a packet may be too short for a statement of the parser."""
    return not isinstance(statement, ir.Assign) or _looks_ahead(operands(statement))


def _looks_ahead(expressions: Iterable[ir.Expression]) -> bool:
    return any(isinstance(inner, ir.Lookahead) for each in expressions for inner in subexpressions(each))


class _Walk:
    def __init__(self, program: ir.Program, drop_ends: Callable[[str], bool], *, short: bool = True) -> None:
        self._program = program
        self._short = short
        self._drop_ends = drop_ends
        self._found = Dataflow()
        self._exits: list[PathState] = []
        self._cloned = False

    def run(self) -> Dataflow:
        found = self._found
        found.parsed = self._parse()
        found.end = self._block(self._program.control, found.parsed)
        if self._program.egress and found.end is not None:
            copied = found.parsed if found.end.clones else None
            self._block(self._program.egress, join((found.end, copied)))
        return found

    def _block(self, nodes: ir.Nodes, known: PathState | None) -> PathState | None:
        """A control flow to its end, or to an exit."""
        outer, self._exits = self._exits, []
        known = join((self._nodes(nodes, known), *self._exits))
        self._exits = outer
        return known

    def _parse(self) -> PathState:
        """Follow the parser until nothing changes; it may have loops."""
        arrivals: dict[str, PathState] = {
            "start": PathState(assigned=frozenset(a.destination for a in self._program.initial))
        }
        failed: list[PathState] = []
        pending = ["start"]
        while pending:
            name = pending.pop()
            if name == ir.ACCEPT:
                continue
            state, known = self._program.state(name), arrivals[name]
            for statement in state.body:
                if isinstance(statement, ir.Verify) or (self._short and _takes(statement)):
                    failed.append(known)
                known = self._parsed(statement, known)
            if self._short and _looks_ahead(state.selected):
                failed.append(known)
            for successor in successors(state):
                self._found.edges[name, successor] = known
                before = arrivals.get(successor)
                after = known if before is None else before.joined(known)
                if after != before:
                    arrivals[successor] = after
                    pending.append(successor)
        for name, known in arrivals.items():
            if name == ir.ACCEPT:
                continue
            state = self._program.state(name)
            for statement in state.body:
                self._touched(statement, known)
                known = self._parsed(statement, known)
            self._found.parser_reads += _accesses(state.selected, known)
        for (name, _), known in self._found.edges.items():
            if (selected := self._program.state(name).select) is not None:
                self._found.selects[name] = Access(selected, known, None)
        noted = failed if self._program.parser_error is not None else ()
        return join((arrivals.get(ir.ACCEPT), *noted)) or PathState()

    def _touched(self, statement: ir.ParserStatement, known: PathState) -> None:
        """Note what a statement of the parser reads and writes."""
        for inner in flattened((statement,)):
            if isinstance(inner, ir.RemoveHeader):
                known = known.without_header(inner.header)
            self._found.parser_reads += _accesses(operands(inner), known)
            if (ref := destination(inner)) is not None:
                self._found.parser_writes.append(Access(ref, known, None))

    def _parsed(self, statement: ir.ParserStatement | ir.Statement, known: PathState) -> PathState:
        match statement:
            case ir.Extract(name) | ir.AddHeader(name):
                return known.with_header(name)
            case ir.RemoveHeader(name):
                return known.without_header(name)
            case ir.Assign(ref) if ref.header == ir.METADATA:
                return replace(known, assigned=known.assigned | {ref})
            case ir.Branch(condition, then, otherwise):
                held, other = assumed(condition, known)
                for inner in then:
                    held = self._parsed(inner, held)
                for inner in otherwise:
                    other = self._parsed(inner, other)
                return held.joined(other)
            case _:
                return known

    def _nodes(self, nodes: ir.Nodes, known: PathState | None) -> PathState | None:
        for node in nodes:
            if known is None:
                return None
            self._found.steps.append(DataflowStep(node, known, None))
            if isinstance(node, ir.CallAction):
                known = self._action(node.action, known)
            elif isinstance(node, ir.Block):
                known = self._block(node.body, known)
            elif isinstance(node, ir.ApplyTable):
                table = self._program.table(node.table)
                self._found.reads += _accesses([key.field for key in table.keys], known)
                known = self._applied(node, table, {name: self._action(name, known) for name in table.taken})
            else:
                self._found.reads += _accesses(condition_operands(node.condition), known)
                held, other = assumed(node.condition, known)
                known = join((self._nodes(node.then, held), self._nodes(node.otherwise, other)))
        return known

    def _applied(self, node: ir.ApplyTable, table: ir.Table, after: Mapping[str, PathState | None]) -> PathState | None:
        """What follows the lookup in a table; ``after`` is what is known behind each of its actions."""
        if not any(node.branches):
            return join(after.values())
        cases = dict(node.cases)
        followed = {name: self._nodes(cases[name], known) if name in cases else known for name, known in after.items()}
        found = join(known for name, known in followed.items() if name != table.default_action or name in table.listed)
        return join((self._nodes(node.hit, found), self._nodes(node.miss, followed[table.default_action])))

    def _action(self, name: str, known: PathState) -> PathState | None:
        action = self._program.action(name)
        self._cloned = False
        after = self._statements(action.body, action, known)
        return replace(after, clones=known.clones + 1) if self._cloned and after is not None else after

    def _statements(self, body: ir.Statements, action: ir.Action, known: PathState) -> PathState | None:
        for statement in body:
            self._found.steps.append(DataflowStep(statement, known, action.name))
            self._found.reads += _accesses(operands(statement), known, action.name)
            match statement:
                case ir.AddHeader(name):
                    lost = frozenset(ref for ref in known.lost_writes if ref.header != name)
                    known = replace(known.with_header(name), removed=known.removed - {name}, lost_writes=lost)
                case ir.RemoveHeader(name):
                    known = replace(known.without_header(name), removed=known.removed | {name})
                case ir.SetEgress():
                    known = replace(known, assigned=known.assigned | {PORT}, decided=True)
                case ir.Multicast(ports) if ports:
                    known = replace(known, decided=True)
                case ir.Branch(condition, then, otherwise):
                    held, other = assumed(condition, known)
                    after = join((self._statements(then, action, held), self._statements(otherwise, action, other)))
                    if after is None:
                        return None
                    known = after
                case ir.Clone():
                    self._cloned = True
                case ir.Exit():
                    self._exits.append(known)
                    return None
                case ir.Recirculate() | ir.Resubmit():
                    known = replace(known, passes_again=True)
                case ir.Drop():
                    if self._drop_ends(action.name):
                        return None
                    known = replace(known, droppers=known.droppers | {action.name}, decided=True)
                case _:
                    if (ref := destination(statement)) is not None:
                        known = self._write(ref, known, action.name)
        return known

    def _write(self, ref: ir.FieldRef, known: PathState, action: str) -> PathState:
        self._found.writes.append(Access(ref, known, action))
        if ref.header == ir.METADATA:
            return known if ref in known.assigned else replace(known, assigned=known.assigned | {ref})
        if ref.header in known.valid or ref in known.lost_writes:
            return known
        return replace(known, lost_writes=known.lost_writes | {ref})


def _accesses(expressions: Iterable[ir.Expression], known: PathState, action: str | None = None) -> list[Access]:
    parts = (part for expression in expressions for part in subexpressions(expression))
    return [Access(part, known, action) for part in parts if isinstance(part, ir.FieldRef)]
