"""The paths of packets through a program: what they decide, by the reference interpreter, and what they pass."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice, repeat
from typing import Any

import numpy as np
from typing_extensions import override

from p4perf.evaluation.prediction.reading.constructs import is_prefixes
from p4perf.evaluation.prediction.reading.names import DROPPED, PORT, RESUBMITTED, STACK_FULL
from p4perf.evaluation.prediction.reading.places import Places, prefix_bits
from p4perf.evaluation.prediction.reading.reuse import reuse
from p4perf.generators.swx.spec import Pipeline
from p4perf.models.program.graph import Construct, Node, ProgramGraph, construct, mispredicted_branch
from p4perf.programs import ir
from p4perf.programs.analysis import masked_values
from p4perf.programs.decisions import FAILED, Decision, Decisions, called
from p4perf.programs.interpreter import Interpreter, PacketOutcome
from p4perf.programs.ir import Action, Program, Table
from p4perf.programs.packet_state import PacketState
from p4perf.programs.reading.flow import Assigned, Fact, Flow, Step, base_name
from p4perf.programs.reading.shares import Shares
from p4perf.programs.reading.tree import without_index

Found = tuple[str, tuple[int, ...]] | None
"""Action and data of the entry that a lookup finds."""

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


COPIED = construct("overlap", code="copied", earlier=0.0, swaps=0.0)


def passed_steps(flow: Flow, decisions: Iterable[Decision], *, apart: bool = False) -> Iterator[Passed]:
    """The steps that a packet passes on one path through a program.

    Args:
        apart: whether headers are kept apart from the packet, copied to each other field by field, and written back for
            every packet, and not only where one was added or removed.
        decisions: of one pass. Where there are no more of them although the next step asks for one, the path ends: the
            packet was too short for what the parser extracts.
    """
    facts: dict[str, int | bool | None] = {}
    left = iter(decisions)
    step = flow.steps[flow.start]
    written: set[str] = set()  # headers with fields that were written one by one
    sent = {fact for step in flow.steps.values() if step.kind == "deparser" for fact, _ in step.present}
    moved = apart
    while True:
        asked = step.kind == "parser state" and [edge.label for edge in step.edges] != [STACK_FULL]
        found = _next(left, step.name) if asked else ""
        if found is None:
            return
        if found == FAILED:  # what it extracts is not there
            yield Passed(step, (), FAILED, flow.failed, True)
            step = flow.steps[flow.failed]
            continue
        waits, lost, before = 0, 0, frozenset(written)  # what one step writes and copies, compilers keep in registers
        for effect in step.effects:
            if isinstance(effect, Assigned):
                facts[effect.field] = effect.value
                written.add(effect.field.rpartition(".")[0])
                continue
            source = effect.now if isinstance(effect.now, str) else ""
            now = facts.get(source, False) if source else bool(effect.now)
            was = facts.get(effect.header, False)
            lost += bool(source and was and not now)
            if source or now != was:
                waits += bool(now and source and source in before and not apart)
                moved = moved or (step.kind != "parser state" and effect.header in sent and bool(now or was))
                if not (source and apart):
                    written.discard(effect.header)
            facts[effect.header] = now
        label, decided = "", False
        if step.test is not None and step.test[0] in (DROPPED, PORT, RESUBMITTED):
            label = "true" if _holds(step.test, facts) else "false"
        elif asked:
            label, decided = found, True
        elif step.kind != "parser state" and len(step.edges) > 1:
            found = _next(left, step.name)
            if found is None:
                return
            label, decided = found, True
        elif step.edges:
            label = step.edges[0].label
        met = [what for fact, what in step.present if _holds(fact, facts)]
        absent = (what for fact, what in step.present if not _holds(fact, facts) and what.kind == "add header")
        met += [replace(what, kind="remove header") for what in islice(absent, lost)]
        if step.kind == "deparser" and moved:
            waits = sum(w.kind == "emit" and f in written and _holds(f, facts) for f, w in step.present)
        to = next((edge.to for edge in step.edges if edge.label == label), "")
        yield Passed(step, (*step.constructs, *met, *(COPIED,) * waits), label, to, decided)
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


def follow(graph: ProgramGraph, made: list[Decision], seen: dict[str, dict[str, float]], weight: float) -> str:
    """Follow the decisions of one packet in the graph and count them with its weight.

    Returns:
        Why that is not possible to the end; empty if it is.
    """
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
            counts = seen.setdefault(node.name, {})
            counts[edge.label] = counts.get(edge.label, 0.0) + weight
        node = graph.nodes.get(edge.to)
    return ""


def count_shares(
    graph: ProgramGraph, run: Runner, frames: Sequence[bytes], weights: Sequence[float] = ()
) -> tuple[Shares, tuple[str, ...]]:
    """The shares of packets at the edges of a graph, and remarks on packets that could not be followed."""
    seen: dict[str, dict[str, float]] = {}
    reasons: Counter[str] = Counter()
    for frame, weight in zip(frames, weights or repeat(1.0), strict=False):
        made, reason = run(frame)
        ended = follow(graph, made, seen, weight)
        reason = reason or ended
        if reason:
            reasons[reason] += 1
    edges = {}
    for name, counts in seen.items():
        labels = [edge.label for edge in graph.nodes[name].edges]
        total = sum(counts.values())
        if len(labels) > 1 and total:
            edges[name] = {label: counts.get(label, 0.0) / total for label in labels}
    unfollowed = tuple(
        f"{count} of {len(frames)} packets were not followed to the end: it depends on {reason}"
        for reason, count in reasons.most_common()
    )
    return Shares(edges), unfollowed


RAKES = 100
"""Rounds in which the weights of packets come near to stated shares."""


def raked(frames: Sequence[bytes], run: Runner, shares: Mapping[str, Mapping[str, float]]) -> tuple[float, ...]:
    """Weights of packets with which stated shares hold, as far as there are packets for them.

    The shares of one place after another are made to hold, again and again (Deming and Stephan, Annals of Mathematical
    Statistics 11(4), 1940).

    Args:
        shares: by the names of places and the labels of their decisions; empty: all packets count the same.
    """
    made = [set(run(frame)[0]) for frame in frames] if shares else []
    weights = np.ones(len(frames))
    takers: dict[str, dict[str, np.ndarray]] = {}
    for name, given in shares.items():
        labels = {*given, *(label for each in made for place, label in each if place == name)}
        takers[name] = {label: np.array([(name, label) in each for each in made], bool) for label in labels}
    for _ in range(RAKES if made else 0):
        for name, given in shares.items():
            met = np.logical_or.reduce(list(takers[name].values()))
            left = 1 - sum(given.values())
            others = met & ~np.logical_or.reduce([takers[name][label] for label in given])
            parts = [(takers[name][label], share) for label, share in given.items()] + [(others, max(left, 0.0))]
            there = [(part, share) for part, share in parts if weights[part].sum() > 0]
            total, stated = weights[met].sum(), sum(share for _, share in there)
            for part, share in there if stated > 0 else ():
                weights[part] *= share / stated * total / weights[part].sum()
    return tuple(float(weight) for weight in weights)


def _next(made: Iterator[Decision], node: str) -> str | None:
    """The next decision that was made at a node, without those at nodes that are not in the graph."""
    names = {base_name(node), without_index(base_name(node))}
    names |= {name.removesuffix(" on miss") for name in names} | {name.replace(" on miss@", "@") for name in names}
    return next((label for name, label in made if name in names), None)


MISS = -1
"""Where searches end that find no entry."""

FIRST_LEVEL_BITS = 24
"""Prefixes up to that length are found at the first level of rte_lpm, longer ones a level of 8 bits each further."""


CELLS_OF_A_LINE = 16.0
"""Cells of 32 bits of an array, in which it was measured what memory costs."""


def resized(what: Construct, **sizes: float) -> Construct:
    return replace(what, sizes=tuple((name, sizes.get(name, size)) for name, size in what.sizes))


def _rows_before(program: Program, table: Table) -> list[float]:
    """How many rows are before each entry of a list, and how many there are: one for each prefix of a range."""
    widths = [program.width_bits(key.field) for key in table.keys]
    rows = (
        math.prod(sum(1 for _ in masked_values(*each)) for each in zip(entry.matches, widths, strict=True))
        for entry in table.listing
    )
    return [float(row) for row in accumulate(rows, initial=0)]


def table_of(what: Construct) -> str:
    return what.where.removeprefix("table ").partition(",")[0]


class Lookups(Interpreter):
    """Runs packets, and keeps what their lookups find."""

    def __init__(self, program: Program, **given: Any) -> None:
        super().__init__(program, **given)
        self.places = Places(program)
        self._made: list[tuple[Table, Action, Mapping[str, int], bool]] = []
        self._rows: dict[str, list[float]] = {}
        self.forget()

    def forget(self) -> None:
        """Forget what the lookups so far have found."""
        self._frames: set[bytes] = set()
        self._keys: dict[str, set[tuple[int, ...]]] = {}
        self._ends: dict[str, Counter[int]] = {}
        self._passed: dict[str, Counter[int]] = {}

    @override
    def run(self, frame: bytes, port: int | None = None) -> PacketOutcome:
        self._made = []
        self._frames.add(frame)
        return super().run(frame, port)

    @override
    def _looked_up(
        self, table: Table, values: list[int], packet: PacketState
    ) -> tuple[Action, Mapping[str, int], bool]:
        found = super()._looked_up(table, values, packet)
        self._made.append((table, *found))
        for name in {table.name, called(table)}:
            self._keys.setdefault(name, set()).add(tuple(values))
        return found

    @override
    def _found(self, table: Table, values: list[int]) -> int | None:
        position = super()._found(table, values)
        for name in {table.name, called(table)}:
            if name not in self._rows:
                self._rows[name] = _rows_before(self._program, table)
            self._ends.setdefault(name, Counter())[MISS if position is None else position] += 1
        levels = self.places.passed(table, values, position)
        if levels is None and position is not None:
            entry = table.listing[position]
            levels = len(entry.choices) if table.selector else -(-max(prefix_bits(entry) - FIRST_LEVEL_BITS, 0) // 8)
        if levels is not None:
            for name in {table.name, called(table)}:
                self._passed.setdefault(name, Counter())[levels] += 1
        return position

    def walked(self, what: Construct) -> Construct:
        """A lookup with where its entries are."""
        table = self._table(what) if what.kind == "lookup" else None
        return what if table is None else self.places.walked(what, table, self._passed.get(table_of(what)))

    def within(self, what: Construct, times: float) -> tuple[tuple[Construct, float], ...]:
        """What lookups in a table do beyond a lookup: levels of its longest prefixes, and branches mispredicted in it.

        A branch is mispredicted where a prefix is found at another level than most are, or an entry of a table with a
        selector has another number of choices.
        """
        levels = self._passed.get(table_of(what))
        table = self._table(what)
        if what.kind != "lookup" or not levels or table is None:
            return ()
        others = (1 - max(levels.values()) / levels.total()) * times
        parts: tuple[tuple[Construct, float], ...] = ()
        if table.selector:
            parts = ((mispredicted_branch("lookup"), others),)
        elif self.places.tables != "kernel" and is_prefixes(self._program, table):
            mean = sum(level * packets for level, packets in levels.items()) / levels.total()
            parts = ((mispredicted_branch("prefix"), others), (construct("level"), mean * times))
        return tuple(part for part in parts if part[1])

    def reused(
        self, met: Sequence[tuple[Construct, float]], packets: tuple[int, int]
    ) -> tuple[tuple[Construct, float], ...]:
        """What packets meet of tables that are far away; ``packets``: how many there are, and their size [bytes]."""
        keys: dict[str, int] = {}
        levels: dict[str, float] = {}
        wrong: dict[str, float] = {}
        for what, times in met:
            if what.kind != "lookup":
                continue
            keys[what.where] = self._places(
                what, trie=self.places.tables == "swx" and what.size("match_kind") != "exact"
            )
            for part, number in () if self.places.tables == "swx" else self.within(what, times):
                if part.kind == "level":
                    levels[what.where] = number / times
                else:
                    wrong[what.where] = number
        return reuse(met, keys, levels, wrong, packets, self.places.tables)

    def _table(self, what: Construct) -> Table | None:
        name = table_of(what)
        return next((table for table in self._program.tables if name in (table.name, called(table))), None)

    def _places(self, what: Construct, *, trie: bool) -> int:
        """How many places of a table packets look up: keys of exact ones, entries of others, paths of a trie.

        Each entry of a trie may divide the paths of the others at every key after the first.
        """
        name, table = table_of(what), self._table(what)
        keys, entries = len(self._keys.get(name, ())), len(self._ends.get(name, ()))
        if table is None or all(key.match_kind == "exact" for key in table.keys):
            return max(keys, 1)
        return max(min(keys, entries << len(table.keys) - 1) if trie else entries, 1)

    def searched(self, what: Construct, times: float) -> tuple[tuple[Construct, float], ...]:
        """The same where ternary tables are lists that are searched from their beginning: hits and misses apart."""
        ended = self._ends.get(table_of(what))
        if what.kind != "lookup" or what.size("match_kind") not in ("ternary", "range") or not ended:
            return ((self.seen(what), times),)
        what = replace(what, sizes=tuple((n, "ternary" if n == "match_kind" else size) for n, size in what.sizes))
        before = self._rows[table_of(what)]
        share, count, hits = what.number("hit"), before[-1], ended.total() - ended[MISS]
        rows = ((before[at] + before[at + 1] - 1) / 2 * packets for at, packets in ended.items() if at != MISS)
        mean = sum(rows) / max(hits, 1)
        ends = max(min(count, 2.0 * mean + 1.0), 1.0)
        # Prices are those of searches that end elsewhere for every packet.
        usual = share * (1 - 1 / ends) + (1 - share) * (1 - 1 / max(2 * count, 1.0))
        wrong = 1 - max(ended.values()) / ended.total() - usual
        parts: tuple[tuple[Construct, float], ...] = (
            (resized(what, entries=ends, hit=1.0), share * times),
            (resized(what, entries=count, hit=0.0), (1 - share) * times),
            (mispredicted_branch("lookup"), wrong * times),
        )
        return tuple(part for part in parts if part[1])

    def seen(self, what: Construct) -> Construct:
        """A lookup or an access in the part of its table or array that packets touch: a few keys are as few entries.

        More prefixes make a search longer whichever of them are found: for them it is the mean of both on a
        logarithmic scale. Of an array each packet touches a line, with the cells beside the one that it chooses.
        """
        if (cells := dict(what.sizes).get("cells")) is not None:
            return resized(what, cells=min(float(cells), CELLS_OF_A_LINE * max(len(self._frames), 1.0)))
        if what.kind != "lookup" or what.size("match_kind") not in ("exact", "lpm"):
            return self._masked(what)
        entries = what.number("entries")
        touched = min(entries, float(len(self._keys.get(table_of(what), ())) or 1))
        if what.size("match_kind") == "lpm" and self.places.tables != "kernel":  # whose nodes are counted
            touched = round(math.sqrt(entries * touched))
        return resized(what, entries=touched)

    def _masked(self, what: Construct) -> Construct:
        """A lookup with the masks of the entries that are listed."""
        table = self._table(what) if what.kind == "lookup" else None
        if table is None or not table.listing:
            return what
        counts = Counter(tuple(match.mask for match in entry.matches) for entry in table.listing)
        masks = len(table.listing) ** 2 / sum(count**2 for count in counts.values())
        return construct("lookup", what.where, **dict(what.sizes) | {"masks": masks})

    def next(self, name: str, pipeline: Pipeline | None) -> Found:
        """Action and data of the next lookup in a table, None if it finds nothing."""
        at = next((n for n, (t, *_) in enumerate(self._made) if (t.name if pipeline else called(t)) == name), None)
        if at is None:
            return None
        _, action, arguments, hit = self._made.pop(at)
        data = tuple(arguments[p.name] for p in action.parameters)
        if not hit:
            return None
        if pipeline is None:
            return called(action), data
        return action.name, pipeline.data_values(action.name, data)
