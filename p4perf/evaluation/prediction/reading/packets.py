"""The paths of packets through a program: what they decide, by the reference interpreter, and what they pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from p4perf.evaluation.prediction.reading.names import DROPPED, PORT, RESUBMITTED
from p4perf.models.program.graph import Construct, Node, ProgramGraph
from p4perf.programs import ir
from p4perf.programs.decisions import Decision, Decisions
from p4perf.programs.reading.flow import Assigned, Fact, Flow, Step, base_name
from p4perf.programs.reading.tree import without_index

Runner = Callable[[bytes], tuple[list[Decision], str]]
"""Runs one packet: its decisions in order, and why there are no more of them (empty: its path has ended)."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A step that a packet passes.

    Args:
        label: of the edge by which it leaves; empty where there is nothing to decide.
        to: the step to which that leads; empty at the end.
        decided: whether the program decides something there; that a packet was dropped or not is none of it.
    """

    step: Step
    constructs: tuple[Construct, ...]
    label: str
    to: str
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
        elif step.kind == "parser state" or len(step.edges) > 1:
            found = _next(left, step.name)
            if found is None:
                return
            label, decided = found, True
        elif step.edges:
            label = step.edges[0].label
        met = (what for fact, what in step.present if _holds(fact, facts))
        to = next((edge.to for edge in step.edges if edge.label == label), "")
        yield Passed(step, (*step.constructs, *met), label, to, decided)
        if not step.edges:
            return
        step = flow.steps[to]


def _holds(fact: Fact, facts: dict[str, int | bool | None]) -> bool:
    return bool(facts.get(fact)) if isinstance(fact, str) else facts.get(fact[0]) == fact[1]


def own_runner(program: ir.Program) -> Runner:
    """Runs packets through a program, with the reference interpreter: their first pass."""
    packets = Decisions(program)

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
            label = _next(left, node.name)
            found = next((e for e in node.edges if e.label == label), None)
            if found is None:
                what = "packets that end early" if label is None else f"{label}, which is not there"
                return f"{what} at {base_name(node.name)}"
            edge = found
            seen.setdefault(node.name, Counter())[edge.label] += 1
        node = graph.nodes.get(edge.to)
    return ""


def _next(made: Iterator[Decision], node: str) -> str | None:
    """The next decision that was made at a node, without those at nodes that are not in the graph."""
    names = {base_name(node), without_index(base_name(node))}
    names |= {name.removesuffix(" on miss") for name in names} | {name.replace(" on miss@", "@") for name in names}
    return next((label for name, label in made if name in names), None)
