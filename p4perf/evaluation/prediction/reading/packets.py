"""The paths of packets through a program: what they decide, by the reference interpreter, and what they pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from p4perf.evaluation.prediction.reading.constructs import width_bits
from p4perf.evaluation.prediction.reading.names import DROPPED, PORT, RESUBMITTED, case_label, sites
from p4perf.models.program.graph import Construct, Node, ProgramGraph
from p4perf.programs import ir
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.reading.flow import Assigned, Decision, Fact, Flow, Step, base_name
from p4perf.programs.reading.tree import without_index
from p4perf.programs.reading.values import FALSE

Runner = Callable[[bytes], tuple[list[Decision], str]]
"""Runs one packet: its decisions in order, and why there are no more of them (empty: its path has ended)."""


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
        self._program = program
        self._sites = sites(program)
        self._interpreter = Interpreter(program, watch=self._watch)
        self.passes: list[list[Decision]] = []
        """What the last packet decided, by pass; also where it could not be run to the end."""
        self.reason = ""
        """Why its first pass is not known to the end; empty if it is."""
        self._place = ""
        self._hit = False

    def run(self, frame: bytes) -> list[list[Decision]]:
        """What a packet decides at parser states, tables, conditions and branches, in order, in each of its passes.

        Raises as :meth:`~p4perf.programs.interpreter.Interpreter.run` does.
        """
        self.passes, self.reason = [], ""
        self._interpreter.run(frame)
        return self.passes

    def _watch(self, met: object, outcome: str | bool | None) -> None:
        if isinstance(met, ir.ParserState):
            if met.name == "start":
                self.passes.append([])
            if outcome:
                self._made(without_index(met.label) or f"parser.{met.name}", _case(self._program, met, str(outcome)))
            elif not _always_fails(met):
                self.reason = self.reason or "packets that are too short for their headers, or fail a verify"
        elif isinstance(met, ir.ApplyTable):
            self._place, self._hit = self._sites[id(met)], bool(outcome)
            if self._program.table(met.table).keys:
                self._made(self._place, "hit" if outcome else "miss")
        elif isinstance(met, ir.CallAction):
            self._place = self._sites[id(met)]
        elif isinstance(met, ir.Action):
            if met.label:
                self._made(f"{self._place} hit" if self._hit else self._place, met.label)
                self._place = f"{self._place}:{met.label}"
        elif isinstance(met, ir.Branch):
            self._made(f"{self._place}{self._sites.get(id(met), '')}", "true" if outcome else "false")
        elif isinstance(met, ir.If):
            self._made(self._sites[id(met)], "true" if outcome else "false")

    def _made(self, name: str, label: str) -> None:
        if not self.reason or len(self.passes) > 1:
            self.passes[-1].append((name, label))


def _always_fails(state: ir.ParserState) -> bool:
    """Whether a state is one where a header stack is full."""
    return any(isinstance(s, ir.Verify) and s.condition == FALSE for s in state.body)


def _case(program: ir.Program, state: ir.ParserState, following: str) -> str:
    """Label of an edge from a state to another; of several cases that lead there the first."""
    if not state.selected:
        return ""
    widths = [width_bits(program, e) for e in state.selected]
    found = (case_label(c, widths) for c in state.cases if c.next_state == following)
    return next(found, "default") if following != state.default else "default"


def own_runner(program: ir.Program) -> Runner:
    """Runs packets through a program, with the reference interpreter: their first pass."""
    packets = OwnPackets(program)

    def run(frame: bytes) -> tuple[list[Decision], str]:
        reason = ""
        try:
            packets.run(frame)
        except (ValueError, RecursionError) as error:
            reason = str(error)
        return (packets.passes[0] if packets.passes else []), packets.reason or reason

    return run


def follow(graph: ProgramGraph, made: list[Decision], seen: dict[str, Counter[str]]) -> str:
    """Follow the decisions of one packet in the graph and count them; not empty if that is not possible."""
    left = iter(made)
    node: Node | None = graph.nodes[graph.start]
    while node is not None and node.edges:
        edge = node.edges[0]
        if len(node.edges) > 1:
            label = _next(left, node)
            found = next((e for e in node.edges if e.label == label), None)
            if found is None:
                what = "packets that end early" if label is None else f"{label}, which is not there"
                return f"{what} at {base_name(node.name)}"
            edge = found
            seen.setdefault(node.name, Counter())[edge.label] += 1
        node = graph.nodes.get(edge.to)
    return ""


def _next(made: Iterator[Decision], node: Node) -> str | None:
    """The next decision that was made at a node, without those at nodes that are not in the graph."""
    names = {base_name(node.name), without_index(base_name(node.name))}
    names |= {name.removesuffix(" on miss") for name in names} | {name.replace(" on miss@", "@") for name in names}
    return next((label for name, label in made if name in names), None)
