"""What SWX leaves to the program: headers that are read while they are not there, metadata that nobody wrote, drops.

A header of SWX that was not extracted points to wherever it was last, metadata keeps what the packet before left, and
``drop`` ends a packet at once. What a :class:`~p4perf.programs.ir.Program` means is what the instructions make
of that; here is found out where they are needed, so that no others are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from p4perf.errors import CapabilityError
from p4perf.programs import ir
from p4perf.programs.analysis import (
    condition_operands,
    control_nodes,
    destination,
    operands,
    statements,
    subexpressions,
)

EGRESS = ir.FieldRef(ir.METADATA, "")
"""Stands for the output port among the fields that are assigned."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known at one place: headers that are surely valid, that may be, and metadata that surely was written."""

    surely: frozenset[str] = frozenset()
    possibly: frozenset[str] = frozenset()
    assigned: frozenset[ir.FieldRef] = frozenset()
    lost: frozenset[ir.FieldRef] = frozenset()
    """Fields that may have been written while their header was not valid."""

    def joined(self, other: Knowledge | None) -> Knowledge:
        """What is known where two paths meet."""
        if other is None:
            return self
        return Knowledge(
            self.surely & other.surely,
            self.possibly | other.possibly,
            self.assigned & other.assigned,
            self.lost | other.lost,
        )


def join(paths: Iterable[Knowledge | None]) -> Knowledge | None:
    """What is known where paths meet; None if none of them gets there."""
    found: Knowledge | None = None
    for path in paths:
        found = path if found is None else found.joined(path)
    return found


@dataclass(slots=True)
class Findings:
    """What the instructions have to take care of."""

    unset: set[ir.FieldRef] = field(default_factory=set)
    """Metadata that may be read before it was written; :data:`EGRESS` if no port may have been set."""
    loose: set[str] = field(default_factory=set)
    """Headers that may be read or written while they are not valid."""
    loose_reads: set[ir.FieldRef] = field(default_factory=set)
    """Fields that may be read while their header is not valid."""
    loose_writes: set[tuple[str, ir.FieldRef]] = field(default_factory=set)
    """Actions and fields that they may write while the header is not valid."""
    read_again: set[ir.FieldRef] = field(default_factory=set)
    """Fields that may be read after they were written, all while their header is not valid."""
    flagged_drops: set[str] = field(default_factory=set)
    """Actions that drop a packet after which something is still to be seen, so that they may not end it."""
    edges: dict[tuple[str, str], Knowledge] = field(default_factory=dict)
    """What is known when the parser goes from a state to another one."""


def parser_order(program: ir.Program) -> list[ir.ParserState]:
    """The states that can be reached, each after all those that lead to it.

    Raises:
        CapabilityError: the parser has a loop.
    """
    order: list[str] = []
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise CapabilityError(f"dpdk-swx has no loops of parser states, and {name} is in one")
        if name == ir.ACCEPT or name in done:
            return
        state = program.state(name)
        # The last successor is visited first, so that a state stands right before its default or only case.
        for successor in (*reversed([c.next_state for c in state.cases]), state.default):
            visit(successor, (*path, name))
        done.add(name)
        order.append(name)

    visit("start", ())
    return [program.state(name) for name in reversed(order)]


def successors(state: ir.ParserState) -> tuple[str, ...]:
    """The states that may follow, each once."""
    return tuple(dict.fromkeys((*(c.next_state for c in state.cases), state.default)))


class _Flow:
    def __init__(self, program: ir.Program) -> None:
        self._program = program
        self.findings = Findings()

    def run(self) -> None:
        known = self._parse()
        end = self._nodes(self._program.control, known)
        if end is not None and EGRESS not in end.assigned:
            self.findings.unset.add(EGRESS)

    def _parse(self) -> Knowledge:
        arrivals: dict[str, list[Knowledge]] = {"start": [Knowledge()]}
        for state in parser_order(self._program):
            known = join(arrivals[state.name]) or Knowledge()
            found = frozenset(state.extracts)
            known = replace(known, surely=known.surely | found, possibly=known.possibly | found)
            selected = state.select
            if selected is not None and selected.header not in known.surely and selected.header != ir.METADATA:
                raise CapabilityError(
                    f"parser state {state.name} selects on {selected.header}.{selected.field}, which may not be there"
                )
            if selected is not None and selected.header == ir.METADATA:
                self.findings.unset.add(selected)
            for successor in successors(state):
                self.findings.edges[state.name, successor] = known
                arrivals.setdefault(successor, []).append(known)
        return join(arrivals.get(ir.ACCEPT, [])) or Knowledge()

    def _nodes(self, nodes: Sequence[ir.ControlNode], known: Knowledge | None) -> Knowledge | None:
        for node in nodes:
            if known is None:
                return None
            if isinstance(node, ir.CallAction):
                known = self._action(self._program.action(node.action), known)
            elif isinstance(node, ir.ApplyTable):
                known = self._table(node.table, known)
            else:
                known = self._branches(node, known)
        return known

    def _branches(self, node: ir.If, known: Knowledge) -> Knowledge | None:
        held = other = known
        if isinstance(node.condition, ir.IsValid):
            header = frozenset({node.condition.header})
            held = replace(known, surely=known.surely | header)
            other = replace(known, surely=known.surely - header, possibly=known.possibly - header)
        for expression in condition_operands(node.condition):
            self._read(expression, known)
        return join((self._nodes(node.then, held), self._nodes(node.otherwise, other)))

    def _table(self, name: str, known: Knowledge) -> Knowledge | None:
        table = self._program.table(name)
        for key in table.keys:
            self._read(key.field, known)
        names = (table.entries.action, table.default_action)
        return join(self._action(self._program.action(action), known) for action in dict.fromkeys(names))

    def _action(self, action: ir.Action, known: Knowledge) -> Knowledge | None:
        for statement in action.body:
            for expression in operands(statement):
                self._read(expression, known)
            if isinstance(statement, ir.AddHeader):
                header = frozenset({statement.header})
                lost = frozenset(ref for ref in known.lost if ref.header != statement.header)
                known = replace(known, surely=known.surely | header, possibly=known.possibly | header, lost=lost)
            elif isinstance(statement, ir.RemoveHeader):
                header = frozenset({statement.header})
                known = replace(known, surely=known.surely - header, possibly=known.possibly - header)
            elif isinstance(statement, ir.SetEgress):
                known = replace(known, assigned=known.assigned | {EGRESS})
            elif isinstance(statement, ir.Drop) and action.name not in self.findings.flagged_drops:
                return None
            elif (ref := destination(statement)) is not None:
                known = self._write(ref, known, action.name)
        return known

    def _read(self, expression: ir.Expression, known: Knowledge) -> None:
        for ref in (e for e in subexpressions(expression) if isinstance(e, ir.FieldRef)):
            if ref.header == ir.METADATA:
                if ref not in known.assigned:
                    self.findings.unset.add(ref)
            elif ref.header not in known.surely:
                self.findings.loose.add(ref.header)
                self.findings.loose_reads.add(ref)
                if ref in known.lost:
                    self.findings.read_again.add(ref)

    def _write(self, ref: ir.FieldRef, known: Knowledge, context: str) -> Knowledge:
        if ref.header == ir.METADATA:
            return replace(known, assigned=known.assigned | {ref})
        if ref.header not in known.surely:
            self.findings.loose.add(ref.header)
            self.findings.loose_writes.add((context, ref))
            return replace(known, lost=known.lost | {ref})
        return known


def _shows(statement: ir.Statement) -> bool:
    """Whether a statement can be noticed although the packet is dropped."""
    return isinstance(statement, ir.CountPacket | ir.WriteRegister | ir.Clone)


def _body_shows(program: ir.Program, names: Iterable[str]) -> bool:
    return any(_shows(s) for name in names for s in program.action(name).body)


def _nodes_show(program: ir.Program, nodes: tuple[ir.ControlNode, ...]) -> bool:
    """Whether anything of these nodes can be noticed although the packet is dropped; tables count their hits."""
    return any(
        isinstance(n, ir.ApplyTable) or (isinstance(n, ir.CallAction) and _body_shows(program, (n.action,)))
        for n in control_nodes(nodes)
    )


def _flagged_drops(program: ir.Program) -> set[str]:
    """Actions with a drop after which something can still be noticed, wherever they are run."""
    if any(isinstance(s, ir.Clone) for s in statements(program)):
        return {a.name for a in program.actions if any(isinstance(s, ir.Drop) for s in a.body)}
    found: set[str] = set()

    def run(name: str, later: bool) -> None:
        body = program.action(name).body
        at = next((n for n, s in enumerate(body) if isinstance(s, ir.Drop)), None)
        if at is not None and (later or any(_shows(s) for s in body[at + 1 :])):
            found.add(name)

    def walk(nodes: tuple[ir.ControlNode, ...], later: bool) -> None:
        for n, node in enumerate(nodes):
            after = later or _nodes_show(program, nodes[n + 1 :])
            if isinstance(node, ir.CallAction):
                run(node.action, after)
            elif isinstance(node, ir.ApplyTable):
                table = program.table(node.table)
                for name in (table.entries.action, table.default_action):
                    run(name, after)
            else:
                walk(node.then, after)
                walk(node.otherwise, after)

    walk(program.control, False)
    return found


def examine(program: ir.Program) -> Findings:
    """What the instructions of a program have to take care of.

    Raises:
        CapabilityError: the parser has a loop, or selects on a field that may not be there.
    """
    flow = _Flow(program)
    flow.findings.flagged_drops = _flagged_drops(program)
    flow.run()
    return flow.findings


def uses(program: ir.Program, kind: type) -> bool:
    """Whether a statement of that kind can run."""
    return any(isinstance(s, kind) for s in statements(program))


def recirculates_by_flag(program: ir.Program) -> bool:
    """Whether recirculation has to wait for the end: SWX would take the next packet for one that comes back."""
    return uses(program, ir.Recirculate) and uses(program, ir.Drop)
