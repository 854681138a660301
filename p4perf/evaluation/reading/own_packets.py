"""Packets on their way through p4perf's own programs: what they decide, and the steps that they pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from p4perf.evaluation.reading.bmv2_run import Decision
from p4perf.evaluation.reading.flow import Assigned, Fact, Flow, Step
from p4perf.evaluation.reading.own import DROPPED, PORT, RESUBMITTED, condition_names
from p4perf.generators.interpreter import Interpreter
from p4perf.generators.program import ApplyTable, If, ParserState, Program
from p4perf.models.program.constructs import Construct


@dataclass(frozen=True, slots=True)
class Passed:
    """A step that a packet passes.

    Args:
        step: the step.
        constructs: what the packet meets there.
        label: of the edge by which it leaves; empty where there is nothing to decide.
        decided: whether the program decides something there; that a packet was dropped or not is none of it.
    """

    step: Step
    constructs: tuple[Construct, ...]
    label: str
    decided: bool


def passed_steps(flow: Flow, decisions: Iterable[Decision]) -> Iterator[Passed]:
    """The steps that a packet passes on one way through a program.

    Args:
        flow: of :func:`~p4perf.evaluation.reading.own.read_own`.
        decisions: of one pass. Where there are no more of them although the next step asks for one, the way ends: the
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

    def __init__(self, program: Program) -> None:
        self._names = condition_names(program)
        self._interpreter = Interpreter(program, watch=self._watch)
        self.passes: list[list[Decision]] = []
        """What the last packet decided, by pass; also where it could not be run to the end."""

    def run(self, frame: bytes) -> list[list[Decision]]:
        """What a packet decides at parser states, tables and conditions, in order, in each of its passes.

        Raises:
            RecursionError: the program sends it round for ever.
            ValueError: a decision depends on a random number.
        """
        self.passes = []
        self._interpreter.run(frame)
        return self.passes

    def _watch(self, met: object, outcome: str | bool | None) -> None:
        if isinstance(met, ParserState):
            if met.name == "start":
                self.passes.append([])
            self.passes[-1].append((f"parser.{met.name}", _case(met, str(outcome))))
        elif isinstance(met, ApplyTable):
            self.passes[-1].append((met.table, "hit" if outcome else "miss"))
        elif isinstance(met, If):
            self.passes[-1].append((self._names[id(met)], "true" if outcome else "false"))


def _case(state: ParserState, following: str) -> str:
    """Label of a way from a state to another; of several cases that lead there the first."""
    if state.select is None:
        return ""
    found = (f"0x{c.value:x}" for c in state.cases if c.next_state == following)
    return next(found, "default") if following != state.default else "default"
