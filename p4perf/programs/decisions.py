"""What packets decide on their path through a program, under the names that the program has for it.

A decision is the case of a select, hit or miss, the action that an entry has, or whether a condition holds. Traffic
shares (:mod:`p4perf.programs.reading.shares`) are stated, counted and made by these names.
"""

from __future__ import annotations

from collections.abc import Sequence

from p4perf.models.program.graph import Edge, Node, NodeKind, ProgramGraph
from p4perf.programs import ir
from p4perf.programs.analysis import control_nodes, flattened, subexpressions
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.reading.tree import without_index
from p4perf.programs.reading.v1model import UPDATE_CHECKSUMS, VERIFY_CHECKSUMS
from p4perf.programs.reading.values import FALSE

Decision = tuple[str, str]
"""Name of a place, and label of what is decided there."""

INDEX_BITS = 32


def called(what: ir.Table | ir.Action | ir.ParserState) -> str:
    return what.label or what.name


FAILED = "failed"
"""The decision at a parser state that extracts more than there is, or verifies what does not hold."""


def was_read(program: ir.Program) -> bool:
    """Whether a program was read, and not made of components: then its reader added what has no label."""
    return any(state.label for state in program.parser)


CHECKSUMS = {VERIFY_CHECKSUMS: "verify", UPDATE_CHECKSUMS: "update"}


def sites(program: ir.Program) -> dict[int, str]:
    """Names of the places of tables, conditions and calls of actions, and of the branches in actions.

    They are those of the program; conditions without a name are numbered. Keys are the identities of the objects.
    """
    found: dict[int, str] = {}
    taken: dict[str, int] = {}
    added = was_read(program)
    conditions = 0
    for pipeline, nodes in (("ingress", program.control), ("egress", program.egress)):
        for node in control_nodes(nodes):
            if id(node) in found or isinstance(node, ir.Block):
                continue
            if isinstance(node, ir.ApplyTable):
                name = called(program.table(node.table))
            elif isinstance(node, ir.CallAction):
                name = CHECKSUMS.get(node.action, called(program.action(node.action)).removeprefix("own_"))
            elif node.label:
                name = node.label
            else:
                conditions += 1
                name = f"{pipeline} end" if added else f"if@{conditions}"
            taken[name] = taken.get(name, 0) + 1
            found[id(node)] = name if taken[name] == 1 else f"{name}@{taken[name]}"
    for action in program.actions:
        branches = (s for s in flattened(action.body) if isinstance(s, ir.Branch))
        found |= {id(branch): f"@{n}" for n, branch in enumerate(branches, 1)}
    return found


def case_label(case: ir.SelectCase, widths: Sequence[int]) -> str:
    """A case of a select as P4 writes it; values of several fields with commas, masks behind ``&&&``."""
    parts = []
    for match, width in zip(case.matches, widths, strict=True):
        ones = (1 << width) - 1
        mask = match.mask & ones
        part = f"0x{match.low & ones:x}"
        if match.low > match.high:
            part = "value set"
        elif match.low != match.high:
            part += f"..0x{match.high:x}"
        elif mask == 0:
            part = "_"
        elif mask != ones:
            part += f"&&&0x{mask:x}"
        parts.append(part)
    return ",".join(parts)


def located(text: str, place: str) -> str:
    """What something is, with its place in the program behind it if that is known."""
    return ", ".join(part for part in (text, place) if part)


class Decisions:
    """Runs packets through a program with the reference interpreter, whose counters and registers live as long."""

    def __init__(self, program: ir.Program, kind: type[Interpreter] = Interpreter) -> None:
        self._program = program
        self._sites = sites(program)
        self.interpreter = kind(program, watch=self._watch)
        self.passes: list[list[Decision]] = []
        """What the last packet decided, by pass; also where it could not be run to the end."""
        self.whole: list[list[Decision]] = []
        """The same, also behind a parser state in which its first pass failed."""
        self.met: dict[str, bool] = {}
        """The tables with keys that it met, and whether it hit them the first time."""
        self.reason = ""
        """Why its first pass is not known to the end; empty if it is."""
        self._place = ""
        self._hit = False
        self._taken: ir.SelectCase | None = None

    def run(self, frame: bytes) -> list[list[Decision]]:
        """What a packet decides at parser states, tables, conditions and branches, in order, in each of its passes.

        Raises as :meth:`~p4perf.programs.interpreter.Interpreter.run` does.
        """
        self.passes, self.whole, self.met, self.reason = [], [], {}, ""
        self.interpreter.run(frame)
        for passes in (self.passes, self.whole):
            for decisions in passes:
                decisions.sort(key=_at_the_end)
        return self.passes

    def _watch(self, met: object, outcome: str | bool | None) -> None:
        if isinstance(met, ir.SelectCase):
            self._taken = met
        elif isinstance(met, ir.ParserState):
            taken, self._taken = self._taken, None
            if met.name == "start":
                self.passes.append([])
                self.whole.append([])
            if outcome:
                self._made(state_name(met), state_label(self._program, met, taken))
            elif not _always_fails(met):
                self.whole[-1].append((state_name(met), FAILED))
                self.reason = self.reason or "packets that are too short for their headers, or fail a verify"
        elif isinstance(met, ir.ApplyTable):
            self._place, self._hit = self._sites[id(met)], bool(outcome)
            if self._program.table(met.table).keys:
                self.met.setdefault(met.table, self._hit)
                self._made(self._place, "hit" if outcome else "miss")
        elif isinstance(met, ir.CallAction):
            self._place = self._sites[id(met)]
        elif isinstance(met, ir.Action):
            if met.label:
                self._made(f"{self._place} hit" if self._hit else self._place, met.label)
                self._place = f"{self._place}:{met.label}"
        elif isinstance(met, ir.Branch) and id(met) in self._sites:  # those of the parser are no decisions
            self._made(f"{self._place}{self._sites[id(met)]}", "true" if outcome else "false")
        elif isinstance(met, ir.If):
            self._made(self._sites[id(met)], "true" if outcome else "false")

    def _made(self, name: str, label: str) -> None:
        self.whole[-1].append((name, label))
        if not self.reason or len(self.passes) > 1:
            self.passes[-1].append((name, label))


def _at_the_end(decision: Decision) -> bool:
    """Whether it is one of the checksums that are updated: targets do that when all else is done."""
    return decision[0].startswith(f"{CHECKSUMS[UPDATE_CHECKSUMS]}@")


def _always_fails(state: ir.ParserState) -> bool:
    """Whether a state is one where a header stack is full."""
    return any(isinstance(s, ir.Verify) and s.condition == FALSE for s in state.body)


def state_name(state: ir.ParserState) -> str:
    return without_index(state.label) or f"parser.{state.name}"


def state_label(program: ir.Program, state: ir.ParserState, case: ir.SelectCase | None) -> str:
    """The decision at a parser state: a case of its select, or none of them."""
    if not state.selected:
        return ""
    return "default" if case is None else case_label(case, [width_bits(program, e) for e in state.selected])


def width_bits(program: ir.Program, expression: ir.Expression) -> int:
    """Width of the widest thing in a value; 0 of a constant, which is as wide as what it is compared with."""
    return max(_width_bits(program, e) for e in subexpressions(expression))


def _width_bits(program: ir.Program, expression: ir.Expression) -> int:
    match expression:
        case ir.FieldRef():
            return program.width_bits(expression)
        case ir.Lookahead(_, bits):
            return bits
        case ir.Truth():
            return 1
        case ir.PassNumber() | ir.Intrinsic():
            return INDEX_BITS
    return 0


class Branches:
    """All places of a program where packets decide; as a graph, whose edges lead nowhere, shares are read for it."""

    def __init__(self, program: ir.Program) -> None:
        self._nodes: dict[str, Node] = {}
        self.conditions: dict[str, ir.Condition] = {}
        self.tables: dict[str, str] = {}
        """Tables by the names of the places where they are applied."""
        self._program, self._sites = program, sites(program)
        for state in program.parser:
            labels = [state_label(program, state, case) for case in (*state.cases, None)]
            self._add(state_name(state), "parser state", labels, located(f"parser state {state.name}", state.place))
        for node in control_nodes(program.control + program.egress):
            name = self._sites.get(id(node), "")
            if isinstance(node, ir.ApplyTable):
                self._table(name, program.table(node.table))
            elif isinstance(node, ir.CallAction):
                self._action(name, program.action(node.action))
            elif isinstance(node, ir.If):
                self._condition(name, node.condition, located(f"condition {node.text or name}", node.place))

    def graph(self) -> ProgramGraph:
        return ProgramGraph(self._program.name, self._nodes, "", "p4perf")

    def _add(self, name: str, kind: NodeKind, labels: Sequence[str], where: str) -> None:
        known = self._nodes[name].edges if name in self._nodes else ()
        edges = {edge.label: edge for edge in (*known, *(Edge(label, "") for label in labels))}
        self._nodes[name] = Node(name, kind, edges=tuple(edges.values()), where=where)

    def _condition(self, name: str, condition: ir.Condition, where: str) -> None:
        self.conditions[name] = condition
        self._add(name, "condition", ("true", "false"), where)

    def _table(self, name: str, table: ir.Table) -> None:
        self.tables[name] = table.name
        where, actions = located(f"table {name}", table.place), [self._program.action(a) for a in table.actions]
        labels = [a.label for a in actions if a.label]
        self._add(name, "table", ("hit", "miss") if table.keys else labels, where)
        if table.keys:
            self.tables[f"{name} hit"] = table.name
            self._add(f"{name} hit", "block", labels, f"actions of {where}")
        for action in actions:
            self._action(name, action)

    def _action(self, name: str, action: ir.Action) -> None:
        whole = f"{name}:{action.label}" if action.label else name
        for s in flattened(action.body):
            if isinstance(s, ir.Branch):
                where = located(f"condition of action {called(action)}", action.place)
                self._condition(whole + self._sites[id(s)], s.condition, where)
