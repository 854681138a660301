"""From the control flow as a program states it to one without the decisions that are already made.

Front ends describe a program as :class:`Step` s: what a packet meets there, what follows, and which facts the
step settles or asks for. A fact is whether a header is valid, or whether a field has a certain value. :func:`resolve`
follows the facts along all paths: ``if (hdr.ipv4.isValid())`` has one successor for the packets of which the parser has
extracted IPv4 and another one for the others, and a deparser emits what is there. So no path is left that contradicts
itself in these facts. A step that is met with different facts that still matter becomes several nodes; the second has
the name of the first and `` #2`` behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from p4perf.errors import DataError, Location, UsageError
from p4perf.formats.swx_spec import SpecLine
from p4perf.models.program.graph import Construct, Edge, LoopError, Node, NodeKind, NowhereError, ProgramGraph, in_order
from p4perf.programs import ir

MAX_NODES = 20_000
"""Facts are followed as long as the graph stays below this."""

COPY = " #"
"""Stands before the number of a copy of a node."""

FULL = "tables without a stated number of entries are counted as full"
"""What a reader of a program should know of its lookups."""

OVERSIZED = "exceed its declared size"
"""A remark of a table that has more entries than the program says that it may hold."""


def oversized(table: str, entries: float, size: float) -> str:
    return f"{table}: {entries:.0f} entries {OVERSIZED} of {size:.0f}; p4perf treats it as large enough"


def too_many(table: str, entries: int, key_bits: int, most: int) -> UsageError:
    """The error of a table that is to hold more entries than its key tells apart."""
    return UsageError(
        f"table {table} cannot hold {entries} entries: its key of {key_bits} bit has only {most} different ones",
        hint=f"--fill {table}={most}",
    )


def oversized_tables(program: ir.Program) -> tuple[str, ...]:
    """The remark for each table of a program that was read."""
    found = (t for t in program.tables if 0 < t.size < t.entries.count)
    return tuple(oversized(t.label or t.name, t.entries.count, t.size) for t in found)


OTHERS = "unless stated, entries are assumed to run other actions than the default action of their table"
"""What a reader of a program should know of its actions."""

Fact = str | tuple[str, int]
"""A header (is it valid?), or a field and a value (has it that value?)."""


@dataclass(frozen=True, slots=True)
class Valid:
    """A header is valid from now on, or not, or as another one is (its name), or unknown (None)."""

    header: str
    now: bool | str | None


@dataclass(frozen=True, slots=True)
class Assigned:
    """A field has this value from now on; None: unknown."""

    field: str
    value: int | None


Effect = Valid | Assigned


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a program.

    Args:
        name: unique in the program.
        constructs: what every packet meets there.
        where: for people.
        effects: facts that it settles, in order, before anything is asked.
        test: the fact that decides between its edges ``true`` and ``false``, if one does.
        inverted: whether the fact holds on the edge ``false``.
        present: constructs that are only met by packets for which a fact holds.
        code: lines of a specification of SWX that it stands for.
    """

    name: str
    kind: NodeKind
    constructs: tuple[Construct, ...] = ()
    edges: tuple[Edge, ...] = ()
    where: str = ""
    effects: tuple[Effect, ...] = ()
    test: Fact | None = None
    inverted: bool = False
    present: tuple[tuple[Fact, Construct], ...] = ()
    code: tuple[SpecLine, ...] = ()


@dataclass(frozen=True)
class Flow:
    """A whole program in steps. Headers are not valid at the start, values of fields are not known.

    Args:
        failed: the step at which packets go on whose parser failed.
    """

    name: str
    steps: Mapping[str, Step]
    start: str
    source: str
    remarks: tuple[str, ...] = ()
    frame_bytes: int | None = None
    failed: str = ""


def base_name(name: str) -> str:
    """The name of a node without the number of its copy."""
    head, mark, number = name.rpartition(COPY)
    return head if mark and number.isdigit() else name


def resolve(flow: Flow, file: str) -> ProgramGraph:
    """The graph of a program.

    Raises:
        DataError: the program has a loop, or leads to a step that is not there.
    """
    order = _sorted(flow, file)
    asked = {s.test for s in order if s.test is not None}
    present = {fact for s in order for fact, _ in s.present}
    remark = f"{flow.name} has too many combinations of headers to follow: "
    independent = "conditions on them count as independent, the deparser as if all were there"
    tries: list[tuple[set[Fact], tuple[str, ...]]] = [
        (asked | present, ()),
        (asked, (remark + "the deparser is counted as if all were there",)),
        ({f for f in asked if isinstance(f, tuple)}, (remark + independent,)),
        (set(), (remark + independent,)),
    ]
    for facts, more in tries:
        nodes = _Product(flow, order, facts).run()
        if nodes is not None:
            remarks = (*flow.remarks, *more)
            if any(c.kind in ("recirculate", "resubmit") for node in nodes.values() for c in node.constructs):
                remarks += ("packets that go through the program again are counted for their first pass only",)
            return ProgramGraph(flow.name, nodes, next(iter(nodes)), flow.source, remarks, flow.frame_bytes)
    raise DataError(f"has more than {MAX_NODES} steps", location=Location(file))


def _sorted(flow: Flow, file: str) -> list[Step]:
    """The steps that can be reached, each before those it leads to."""
    try:
        return in_order(flow.start, flow.steps)
    except LoopError as error:
        raise DataError(
            f"has a loop: {error}",
            location=Location(file),
            hint="only loops that fill header stacks have an end that is known",
        ) from error
    except NowhereError as error:
        what = f"{error.source} leads to" if error.source else "it begins at"
        raise DataError(f"{what} {error.name!r}, which is not there", location=Location(file)) from error


class _Product:
    """Steps times the facts that are known and still matter. Facts are bits: ``known`` ones, and their ``value``."""

    def __init__(self, flow: Flow, order: Sequence[Step], facts: set[Fact]) -> None:
        self._flow, self._order = flow, order
        wanted = _with_sources(order, facts)
        self._bits = {fact: 1 << n for n, fact in enumerate(sorted(wanted, key=str))}
        self._of_field: dict[str, list[tuple[int, int]]] = {}
        for fact, bit in self._bits.items():
            if isinstance(fact, tuple):
                self._of_field.setdefault(fact[0], []).append((fact[1], bit))
        self._live = self._liveness()
        self._names: dict[tuple[str, int, int], str] = {}
        self._copies: dict[str, int] = {}

    def run(self) -> dict[str, Node] | None:
        """The nodes, the first one first; None if there are too many."""
        headers = sum(bit for fact, bit in self._bits.items() if isinstance(fact, str))
        start = self._enter(self._flow.start, headers, 0)
        found: dict[str, Node] = {}
        todo = [start]
        while todo:
            at = todo.pop()
            if (name := self._name(at)) in found:
                continue
            if len(found) >= MAX_NODES:
                return None
            node, after = self._node(name, *at)
            found[name] = node
            todo += after
        rank = {step.name: n for n, step in enumerate(self._order)}
        first = self._name(start)
        return dict(sorted(found.items(), key=lambda item: (item[0] != first, rank[base_name(item[0])])))

    def _name(self, at: tuple[str, int, int]) -> str:
        if at not in self._names:
            number = self._copies[at[0]] = self._copies.get(at[0], 0) + 1
            self._names[at] = at[0] if number == 1 else f"{at[0]}{COPY}{number}"
        return self._names[at]

    def _node(self, name: str, step_name: str, known: int, value: int) -> tuple[Node, list[tuple[str, int, int]]]:
        step = self._flow.steps[step_name]
        known, value = self._after(step, known, value)
        here = (what for fact, what in step.present if self._holds(fact, known, value) is not False)
        edges, after = [], []
        for edge in self._open(step, known, value):
            if not edge.to:
                edges.append(edge)
                continue
            at = self._enter(edge.to, known, value)
            after.append(at)
            edges.append(replace(edge, to=self._name(at)))
        return Node(name, step.kind, (*step.constructs, *here), tuple(edges), step.where), after

    def _enter(self, name: str, known: int, value: int) -> tuple[str, int, int]:
        """The step at which something happens next to a packet that is sent to a step."""
        while True:
            step = self._flow.steps[name]
            live = self._live[name]
            known, value = known & live, value & live
            if step.constructs or step.present or step.kind not in ("block", "condition", "action"):
                return name, known, value
            passed, result = self._after(step, known, value)
            edges = self._open(step, passed, result)
            if len(edges) != 1 or not edges[0].to:
                return name, known, value
            name, known, value = edges[0].to, passed, result

    def _open(self, step: Step, known: int, value: int) -> tuple[Edge, ...]:
        holds = None if step.test is None else self._holds(step.test, known, value)
        if holds is None:
            return step.edges
        label = "true" if holds != step.inverted else "false"
        return tuple(replace(e, probability=None) for e in step.edges if e.label == label)

    def _holds(self, fact: Fact, known: int, value: int) -> bool | None:
        bit = self._bits.get(fact, 0)
        return bool(value & bit) if known & bit else None

    def _after(self, step: Step, known: int, value: int) -> tuple[int, int]:
        for effect in step.effects:
            for bit, holds in self._settled(effect, known, value):
                known = known & ~bit if holds is None else known | bit
                value = value | bit if holds else value & ~bit
        return known, value

    def _settled(self, effect: Effect, known: int, value: int) -> Iterator[tuple[int, bool | None]]:
        if isinstance(effect, Assigned):
            for asked, bit in self._of_field.get(effect.field, ()):
                yield bit, None if effect.value is None else effect.value == asked
        elif bit := self._bits.get(effect.header, 0):
            yield bit, self._holds(effect.now, known, value) if isinstance(effect.now, str) else effect.now

    def _liveness(self) -> dict[str, int]:
        """Facts that still matter when a step begins."""
        live: dict[str, int] = {}
        for step in reversed(self._order):
            bits = 0 if step.test is None else self._bits.get(step.test, 0)
            for fact, _ in step.present:
                bits |= self._bits.get(fact, 0)
            for edge in step.edges:
                bits |= live[edge.to] if edge.to else 0
            for effect in reversed(step.effects):
                if isinstance(effect, Assigned):
                    for _, bit in self._of_field.get(effect.field, ()):
                        bits &= ~bit
                    continue
                bit = self._bits.get(effect.header, 0)
                if bits & bit:
                    bits &= ~bit
                    bits |= self._bits.get(effect.now, 0) if isinstance(effect.now, str) else 0
            live[step.name] = bits
        return live


def _with_sources(order: Sequence[Step], facts: set[Fact]) -> set[Fact]:
    """Facts, and the headers whose validity they may become."""
    copies = [(e.header, e.now) for s in order for e in s.effects if isinstance(e, Valid) and isinstance(e.now, str)]
    wanted, before = set(facts), -1
    while len(wanted) > before:
        before = len(wanted)
        wanted |= {source for header, source in copies if header in wanted}
    return wanted


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; what it has in common with a :class:`Step` means the same.

    Args:
        jumps: label of the edge and where it goes: the number of an instruction, the name of a step, or nowhere.
        falls: label of the edge to the instruction after it; None if it is never reached from here.
        kind: of the node that it becomes, if it is one of its own.
        name: of that node; empty: by its number.
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
    code: tuple[SpecLine, ...] = ()

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
        end: name of the step after the last instruction; empty: there is none.
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
