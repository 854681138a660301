"""What the control flow of a program can do on any of its paths: only what a program needs of this is generated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from p4perf.errors import CapabilityError
from p4perf.programs import ir
from p4perf.programs.analysis import operands, statements, subexpressions

_LASTING = (ir.CountPacket, ir.MeterPacket, ir.WriteRegister, ir.Clone)
"""Statements that leave something behind even if the packet is dropped."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What can happen on the paths of a program."""

    may_lack_port: bool
    """A packet can pass without any egress port set and without a drop."""
    revived: bool
    """Something after a drop can set the port."""
    drops: bool
    """A packet can be dropped."""
    lasting_after_drop: bool
    """Something after a drop can leave something behind: a count, a register, a clone."""
    recirculates: bool
    resubmits: bool
    """A packet can go through the program again."""
    drop_after_again: bool
    """A packet that is to go through again can be dropped after that was said."""
    cloning_actions: int
    """The most actions with clones that one packet can meet."""
    counts_passes: bool
    """The number of the pass is asked for."""

    @property
    def again(self) -> bool:
        """Whether a packet can go through the program again."""
        return self.recirculates or self.resubmits


@dataclass(frozen=True, slots=True)
class _State:
    """What is known at one point of the control flow."""

    decided: bool = False
    dropped: bool = False
    again: bool = False
    clones: int = 0
    removed: frozenset[str] = frozenset()

    def joined(self, other: _State) -> _State:
        return _State(
            self.decided and other.decided,
            self.dropped or other.dropped,
            self.again or other.again,
            max(self.clones, other.clones),
            self.removed | other.removed,
        )


@dataclass(slots=True)
class _Walk:
    """One walk over all paths."""

    program: ir.Program
    revived: bool = False
    lasting: bool = False
    late_drop: bool = False
    effects: dict[str, ir.Action] = field(default_factory=dict)

    def nodes(self, nodes: tuple[ir.ControlNode, ...], state: _State) -> _State:
        for node in nodes:
            if isinstance(node, ir.If):
                self.reads(_compared(node.condition), state)
                state = self.nodes(node.then, state).joined(self.nodes(node.otherwise, state))
                continue
            if isinstance(node, ir.ApplyTable):
                self.reads((key.field for key in self.program.table(node.table).keys), state)
            ends = [self.action(action, state) for action in self.possible(node)]
            state = ends[0]
            for end in ends[1:]:
                state = state.joined(end)
        return state

    def possible(self, node: ir.ApplyTable | ir.CallAction) -> list[ir.Action]:
        if isinstance(node, ir.CallAction):
            return [self.known(node.action)]
        return [self.known(name) for name in self.program.table(node.table).actions]

    def known(self, name: str) -> ir.Action:
        if name not in self.effects:
            self.effects[name] = self.program.action(name)
        return self.effects[name]

    def action(self, action: ir.Action, state: _State) -> _State:
        decided, dropped, again, removed = state.decided, state.dropped, state.again, state.removed
        clones = False
        for s in action.body:
            if removed:
                self.reads(_expressions(s), _State(removed=removed))
            if isinstance(s, ir.Drop):
                self.late_drop |= again
                decided = dropped = True
            elif isinstance(s, ir.SetEgress) or (isinstance(s, ir.Multicast) and s.ports):
                self.revived |= dropped
                decided = True
            elif isinstance(s, ir.Recirculate | ir.Resubmit):
                again = True
            elif isinstance(s, ir.RemoveHeader):
                removed |= {s.header}
            elif isinstance(s, ir.AddHeader):
                removed -= {s.header}
            clones |= isinstance(s, ir.Clone)
            self.lasting |= dropped and isinstance(s, _LASTING)
        return _State(decided, dropped, again, state.clones + clones, removed)

    def reads(self, expressions: Iterator[ir.Expression], state: _State) -> None:
        if not state.removed:
            return
        for whole in expressions:
            for e in subexpressions(whole):
                if isinstance(e, ir.FieldRef) and e.header != ir.METADATA and e.header in state.removed:
                    raise CapabilityError(
                        f"field {e.field} of header {e.header} is read after the header was removed, "
                        "which P4_16 leaves undefined"
                    )


def _expressions(statement: ir.Statement) -> Iterator[ir.Expression]:
    return iter(operands(statement))


def _compared(condition: ir.Condition) -> Iterator[ir.Expression]:
    return iter((condition.left, condition.right) if isinstance(condition, ir.Compare) else ())


def analyse(program: ir.Program) -> Flow:
    """Follow the control flow, with every action that a table may run.

    Raises:
        CapabilityError: a field is read of a header that may have been removed; no P4 dialect says what that gives.
    """
    walk = _Walk(program)
    end = walk.nodes(program.control, _State())
    kinds = {type(s) for s in statements(program)}
    return Flow(
        may_lack_port=not end.decided,
        revived=walk.revived,
        drops=end.dropped,
        lasting_after_drop=walk.lasting,
        recirculates=ir.Recirculate in kinds,
        resubmits=ir.Resubmit in kinds,
        drop_after_again=walk.late_drop,
        cloning_actions=end.clones,
        counts_passes=_counts_passes(program),
    )


def _counts_passes(program: ir.Program) -> bool:
    for statement in statements(program):
        if any(isinstance(e, ir.PassNumber) for whole in operands(statement) for e in subexpressions(whole)):
            return True
    return any(isinstance(e, ir.PassNumber) for c in _conditions(program.control) for e in _compared(c))


def _conditions(nodes: tuple[ir.ControlNode, ...]) -> Iterator[ir.Condition]:
    for node in nodes:
        if isinstance(node, ir.If):
            yield node.condition
            yield from _conditions(node.then)
            yield from _conditions(node.otherwise)


def possibly_absent(program: ir.Program) -> frozenset[str]:
    """Headers that some packets come without, although the program asks for their fields without a test.

    P4_16 leaves undefined what their fields read as; a Program says zero.
    """
    sure = _surely_extracted(program)
    declared = {name for state in program.parser for name in state.extracts}
    wanted: set[str] = set()
    guarded: set[str] = set()
    for node in program.control:
        if isinstance(node, ir.If) and isinstance(node.condition, ir.IsValid):
            guarded.add(node.condition.header)
        if isinstance(node, ir.ApplyTable):
            wanted |= {key.field.header for key in program.table(node.table).keys}
    for statement in statements(program):
        wanted |= {
            e.header for whole in operands(statement) for e in subexpressions(whole) if isinstance(e, ir.FieldRef)
        }
    for condition in _conditions(program.control):
        wanted |= {e.header for e in _compared(condition) if isinstance(e, ir.FieldRef)}
    return frozenset((wanted & declared) - sure - guarded)


def _surely_extracted(program: ir.Program) -> frozenset[str]:
    """Headers that every packet has which the parser accepts."""
    states = {state.name: state for state in program.parser}
    memory: dict[str, frozenset[str]] = {}
    order: list[str] = []
    seen: set[str] = set()
    pending = ["start"]
    while pending:
        name = pending.pop()
        if name in seen or name not in states:
            continue
        seen.add(name)
        order.append(name)
        pending += [states[name].default, *(case.next_state for case in states[name].cases)]
    everything = frozenset(h.name for h in program.headers)
    changed = True
    while changed:
        changed = False
        for name in reversed(order):
            state = states[name]
            successors = {state.default, *(case.next_state for case in state.cases if state.select is not None)}
            after = everything
            for follower in successors:
                after &= memory.get(follower, everything) if follower in states else frozenset()
            found = frozenset(state.extracts) | after
            if memory.get(name) != found:
                memory[name] = found
                changed = True
    return memory.get("start", frozenset())
