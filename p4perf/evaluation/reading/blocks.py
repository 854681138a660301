"""Lists of instructions with jumps, such as the actions of bmv2 and all code of SWX, as steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from p4perf.evaluation.reading.flow import Effect, Fact, Step
from p4perf.evaluation.reading.swx_text import Line
from p4perf.models.program.constructs import Construct
from p4perf.models.program.graph import Edge, NodeKind


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    Args:
        constructs: what a packet meets.
        effects: facts that it settles.
        jumps: label of the edge and where it goes: the number of an instruction, the name of a step, or nowhere.
        falls: label of the edge to the instruction after it; None if it is never reached from here.
        test: the fact that decides between edges ``true`` and ``false``.
        inverted: whether the fact holds on the edge ``false``.
        present: constructs that are only met where a fact holds.
        kind: of the node that it becomes, if it is one of its own.
        name: of that node; empty: by its number.
        where: for people.
        code: lines of a specification of SWX that it stands for.
    """

    constructs: tuple[Construct, ...] = ()
    effects: tuple[Effect, ...] = ()
    jumps: tuple[tuple[str, int | str], ...] = ()
    falls: str | None = ""
    test: Fact | None = None
    inverted: bool = False
    present: tuple[tuple[Fact, Construct], ...] = ()
    kind: NodeKind | None = None
    name: str = ""
    where: str = ""
    code: tuple[Line, ...] = ()

    @property
    def alone(self) -> bool:
        """Whether it becomes a node of its own."""
        return self.kind is not None or bool(self.jumps) or self.falls != ""


def steps_of(
    name: str,
    instructions: Sequence[Instruction],
    end: str,
    *,
    kind: NodeKind = "action",
    where: str = "",
    taken: Mapping[str, Step] | None = None,
) -> list[Step]:
    """Steps of a list of instructions, the first one first.

    Args:
        name: of the first step; the others are this, ``@`` and the number of their first instruction.
        instructions: in order.
        end: name of the step after the last instruction; empty: there is none.
        kind: of steps without one of their own.
        where: of these steps, for people.
        taken: steps whose names must not be used again.
    """
    if not instructions:
        return [Step(name, kind, edges=(Edge("", end),), where=where)]
    starts = _starts(instructions)
    names: dict[int, str] = {}
    used = set(taken or ())
    for start in starts:
        wanted = instructions[start].name or (name if start == 0 else f"{name}@{start}")
        unique, n = wanted, 1
        while unique in used:
            n += 1
            unique = f"{wanted}@{start}" if n == 2 else f"{wanted}@{start}.{n}"
        used.add(unique)
        names[start] = unique
    found = []
    for start, stop in zip(starts, [*starts[1:], len(instructions)], strict=True):
        part = instructions[start:stop]
        last = part[-1]
        edges = [Edge(label, to if isinstance(to, str) else names.get(to, end)) for label, to in last.jumps]
        if last.falls is not None:
            edges.append(Edge(last.falls, names.get(stop, end)))
        found.append(
            Step(
                names[start],
                part[0].kind or ("condition" if len(edges) > 1 else kind),
                tuple(c for i in part for c in i.constructs),
                tuple(edges),
                part[0].where or where,
                tuple(e for i in part for e in i.effects),
                last.test,
                last.inverted,
                tuple(p for i in part for p in i.present),
                tuple(line for i in part for line in i.code),
            )
        )
    return found


def _starts(instructions: Sequence[Instruction]) -> list[int]:
    """Numbers of the instructions with which steps begin."""
    found = {0}
    for n, instruction in enumerate(instructions):
        found |= {to for _, to in instruction.jumps if isinstance(to, int) and to < len(instructions)}
        if instruction.alone:
            if len(instruction.jumps) + (instruction.falls is not None) > 1 or instruction.kind is not None:
                found.add(n)
            if n + 1 < len(instructions):
                found.add(n + 1)
    return sorted(found)
