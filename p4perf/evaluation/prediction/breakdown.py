"""The cost breakdown of a program by line, its lowest-cost and highest-cost paths, and the spread over all paths.

Where a share ``h`` of the packets finds an entry, a lookup costs them ``h hit + (1 - h) miss + min(h, 1 - h) g`` on
average: the processor predicts that all take the branch of most, and ``g`` is the cost of a branch misprediction. A
packet on the lowest-cost path is predicted right everywhere; one on the highest-cost path is mispredicted at every
lookup that some packets hit and others miss. Since ``min(h, 1 - h) g <= g``, the average packet is between both.

The paths are not enumerated. Forward over the nodes in topological order, with ``d(n)`` the distribution of the cost of
what came before a node, ``p(e)`` the share of an edge and ``c(n, e)`` the cost of a node that is left by it,

    d(m) = sum over the edges e from n to m of p(e) * d(n), moved by c(n, e)

on a lattice. A cost between two points of the lattice is shared between them so that the mean stays exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from p4perf.models.estimate import Estimate
from p4perf.models.program import Charge, Construct, CostBreakdown, NodeKind, Pricing
from p4perf.models.program.costs import NOTHING
from p4perf.models.program.graph import Edge, Node, ProgramGraph, mispredicted_branch
from p4perf.models.program.paths import (
    Analysis,
    Cost,
    ProgramPath,
    analyse,
    constructs_on,
    shares,
    sorted_nodes,
    taken,
)
from p4perf.models.program.prices import HIT
from p4perf.models.templates import FloatArray
from p4perf.programs.reading.flow import base_name

PARTS: Mapping[NodeKind, str] = MappingProxyType(
    {
        "parser state": "parser",
        "table": "tables",
        "action": "actions",
        "condition": "conditions",
        "block": "blocks",
        "deparser": "deparser",
        "end": "end",
    }
)
"""The part of a program that a node belongs to, in the order of breakdowns."""

ORDER = (*PARTS.values(), "others")
"""All parts; ``others`` is what a model charges besides the constructs of a program."""


@dataclass(frozen=True, slots=True)
class Met:
    """A construct with the node that it stands in, and how often a packet meets it."""

    node: str
    kind: NodeKind
    what: Construct
    times: float


@dataclass(frozen=True, slots=True)
class CostLine:
    """A line of a cost breakdown."""

    node: str
    part: str
    charge: Charge

    @property
    def label(self) -> str:
        """The construct for people: ``lookup exact, 1000 entries, 32 bit key``."""
        return describe(self.charge.what)

    @property
    def item(self) -> tuple[str, str]:
        """Part and name of what a user knows of it: a table, the actions of one, a component, or a part as a whole."""
        name = base_name(self.node)
        table, of_table, _ = name.partition(":")
        if self.charge.what.kind == "component":
            return "components", name
        if self.charge.what.kind == "mispredicted branch":
            return "mispredictions", ""
        if of_table or self.part == "tables":
            return "actions" if of_table else self.part, table.partition("@")[0]
        return "control" if self.part in ("actions", "conditions", "blocks") else self.part, ""


@dataclass(frozen=True)
class Itemised:
    """A cost breakdown whose charges know their nodes."""

    breakdown: CostBreakdown
    lines: tuple[CostLine, ...]

    def by_node(self) -> tuple[NodeSum, ...]:
        """Sums of the nodes, the most expensive first within a part, parts in the order of a program."""
        found: dict[tuple[str, str], list[CostLine]] = {}
        for line in self.lines:
            found.setdefault((line.part, base_name(line.node)), []).append(line)
        sums = []
        for (part, node), lines in found.items():
            met: dict[str, float] = {}
            for line in lines:
                met[line.node] = max(met.get(line.node, 0.0), line.charge.times)
            sums.append(NodeSum(part, node, sum(met.values()), sum((line.charge.cycles for line in lines), NOTHING)))
        return tuple(sorted(sums, key=lambda s: (ORDER.index(s.part), -s.cycles.value)))

    def by_item(self) -> dict[tuple[str, str], Estimate]:
        """Sums of what a user knows, which have the same names on all targets."""
        found: dict[tuple[str, str], Estimate] = {}
        for line in self.lines:
            found[line.item] = found.get(line.item, NOTHING) + line.charge.cycles
        return found


@dataclass(frozen=True, slots=True)
class NodeSum:
    """What all copies of a node cost altogether, and how often one of them is met."""

    part: str
    node: str
    times: float
    cycles: Estimate


def itemise(pricing: Pricing, met: Sequence[Met]) -> Itemised:
    breakdown = pricing.breakdown([(each.what, each.times) for each in met])
    return Itemised(breakdown, tuple(_lines(breakdown.charges, met)))


def _lines(charges: Sequence[Charge], met: Sequence[Met]) -> Iterable[CostLine]:
    # A model may leave out what its baseline has paid for, and add what is no construct of the program.
    waiting: dict[Construct, list[Met]] = {}
    for each in met:
        waiting.setdefault(each.what, []).append(each)
    for charge in charges:
        left = waiting.get(charge.what)
        if not left:
            yield CostLine(charge.what.where, "others", charge)
            continue
        found = left.pop(0) if len(left) > 1 else left[0]
        yield CostLine(found.node, PARTS[found.kind], charge)


def describe(what: Construct) -> str:
    size = dict(what.sizes)
    if what.kind == "component":
        rest = ", ".join(f"{name}={value}" for name, value in what.sizes[1:])
        return f"{size.get('name', '')} {rest}".strip()
    if what.kind in _TEXTS:
        return _TEXTS[what.kind](size)
    rest = ", ".join(f"{name} {_plain(value)}" for name, value in what.sizes)
    return f"{what.kind} {rest}".strip()


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _lookup(size: Mapping[str, object]) -> str:
    entries, bits, hit = (size.get(n) for n in ("entries", "key_bits", "hit"))
    text = f"lookup {size.get('match_kind')}, {_plain(entries)} entries, {_plain(bits)} bit key"
    return text if hit in (1, True) else f"{text}, hit {_plain(hit)}"


_MISPREDICTED = {"lookup": " after a lookup", "turn": ": packets look up different numbers of tables"}

_REUSED = {"branch": "mispredicted branch after lines"}

_TEXTS: Mapping[str, Callable[[Mapping[str, object]], str]] = MappingProxyType(
    {
        "lookup": _lookup,
        "extract": lambda s: f"extract {_plain(s.get('bytes'))} B",
        "emit": lambda s: f"emit {_plain(s.get('bytes'))} B",
        "select": lambda s: f"select {_plain(s.get('cases'))} cases, {_plain(s.get('key_bits'))} bit",
        "write": lambda s: f"write {_plain(s.get('bits'))} bit to {s.get('to')}",
        "compute": lambda s: f"compute {s.get('operator')}, {_plain(s.get('bits'))} bit",
        "condition": lambda s: f"condition, {_plain(s.get('bits'))} bit",
        "hash": lambda s: f"hash {s.get('algorithm')}, {_plain(s.get('bytes'))} B",
        "mispredicted branch": lambda s: "mispredicted branch" + _MISPREDICTED.get(str(s.get("after")), ""),
        "reuse": lambda s: f"{_REUSED.get(str(s.get('of')), 'lines')} beyond the nearest cache",
        "unknown": lambda s: f"unknown: {s.get('name')}",
    }
)

CANDIDATES = 2
"""Paths that are considered of the most probable, the lowest-cost and the highest-cost ones each."""


def behind_lookups(graph: ProgramGraph) -> frozenset[str]:
    """The nodes that packets may reach by a lookup."""
    found: set[str] = set()
    for node in sorted_nodes(graph):
        if node.name in found or any(what.kind == "lookup" for what in node.constructs):
            found |= {edge.to for edge in node.edges}
    return frozenset(found)


WITH_MISPREDICTION = "mispredicted"
"""What the remark of a lookup ends with that includes a branch misprediction."""


def extremes(
    graph: ProgramGraph, pricing: Pricing, cost: Cost, analysis: Analysis
) -> tuple[tuple[ProgramPath, Itemised], tuple[ProgramPath, Itemised]]:
    """The lowest-cost and the highest-cost path with their cost breakdowns.

    Sums of prices find the candidates. Cost breakdowns may order them differently: the baseline has paid for some of
    it. What constructs cost together is not counted: paths are compared by what is known of each construct.
    """
    penalties = misprediction_penalties(graph, pricing)
    extra = {name: penalty.value for name, penalty in penalties.items()}
    lowest = analyse(graph, lambda node, edge: -cost(node, edge), k=CANDIDATES)
    highest = analyse(graph, lambda node, edge: cost(node, edge) + extra.get(node.name, 0.0), k=CANDIDATES)
    likely = (*lowest.most_expensive, *highest.most_expensive, *analysis.most_probable[:CANDIDATES])
    paths = {path.steps: path for path in likely}.values()
    low = [(path, itemise(pricing, met_along(graph, path))) for path in paths]
    high = [(path, mispredicted(itemise(pricing, met_along(graph, path, wrong=True)), penalties)) for path in paths]

    def total(each: tuple[ProgramPath, Itemised]) -> float:
        return sum(line.charge.cycles.value for line in each[1].lines)

    return min(low, key=total), max(high, key=total)


def guessed(node: Node) -> bool:
    """Whether packets take different edges of a select or a condition, or run different actions of a table."""
    return node.kind in ("parser state", "condition", "block") and sum(share > 0 for share in taken(node).values()) > 1


def met_along(graph: ProgramGraph, path: ProgramPath, *, wrong: bool = False) -> list[Met]:
    """What a packet of a path meets; ``wrong``: the processor mispredicts every select and condition of it."""
    found: list[Met] = []
    for step in path.steps:
        node = graph.nodes[step.node]
        edge = next((e for e in node.edges if e.label == step.label), None)
        found += [Met(node.name, node.kind, what, 1.0) for what in constructs_on(node, edge)]
        if wrong and guessed(node):
            late = any(each.what.kind == "lookup" for each in found)
            found.append(Met(node.name, node.kind, mispredicted_branch("lookup" if late else "start"), 1.0))
    return found


def misprediction_penalties(graph: ProgramGraph, pricing: Pricing) -> Mapping[str, Estimate]:
    """Cost of a branch misprediction at the lookups that packets both hit and miss, by node."""
    found = {}
    for node in sorted_nodes(graph):
        labels = {edge.label for edge, share in zip(node.edges, shares(node), strict=True) if share > 0}
        lookup = next((what for what in node.constructs if what.kind == "lookup"), None)
        if lookup is not None and {"hit", "miss"} <= labels:
            found[node.name] = _penalty(lookup, pricing)
    return found


def _penalty(lookup: Construct, pricing: Pricing) -> Estimate:
    """Half of it is what lookups cost of which half find an entry, beyond the mean of hit and miss."""
    miss, half, hit = (
        pricing.charge(replace(lookup, sizes=tuple((n, share if n == HIT else v) for n, v in lookup.sizes))).cycles
        for share in (0.0, 0.5, 1.0)
    )
    return Estimate(
        *(max(2 * getattr(half, n) - getattr(hit, n) - getattr(miss, n), 0.0) for n in ("value", "low", "high"))
    )


def mispredicted(found: Itemised, penalties: Mapping[str, Estimate]) -> Itemised:
    """The cost breakdown of a packet for which every branch is mispredicted, with the intervals of the penalties."""
    lines = tuple(_with_penalty(line, penalties) for line in found.lines)
    pairs = [(a.charge.cycles, b.charge.cycles) for a, b in zip(found.lines, lines, strict=True)]
    low = found.breakdown.low + sum(b.low - a.low for a, b in pairs)
    high = found.breakdown.high + sum(b.high - a.high for a, b in pairs)
    charges = tuple(line.charge for line in lines)
    return Itemised(replace(found.breakdown, charges=charges, low=low, high=high), lines)


def _with_penalty(line: CostLine, penalties: Mapping[str, Estimate]) -> CostLine:
    penalty, charge = penalties.get(line.node), line.charge
    if penalty is None or charge.what.kind != "lookup" or not penalty.value:
        return line
    remark = "; ".join(r for r in (charge.remark, WITH_MISPREDICTION) if r)
    return replace(line, charge=replace(charge, cycles=charge.cycles + penalty, remark=remark))


BINS = 2048
"""Points of the lattice up to the highest cost of a path; each step may spread the costs over one more beyond."""
_SMALL = 1e-12


@dataclass(frozen=True, eq=False)
class CostSpread:
    """A distribution of the cost of a packet."""

    cycles: FloatArray
    weights: FloatArray

    @property
    def mean(self) -> float:
        return float(self.cycles @ self.weights)

    def moved_to(self, mean: float, floor: float = 0.0) -> CostSpread:
        """The same distribution with another mean: moved, and nothing below a floor."""
        return CostSpread(np.maximum(self.cycles + (mean - self.mean), floor), self.weights)

    def scaled(self, factor: float) -> CostSpread:
        return CostSpread(self.cycles * factor, self.weights)


def cost_spread(graph: ProgramGraph, cost: Callable[[Node, Edge | None], float], highest: float) -> CostSpread:
    """The distribution of the sum of the costs, each zero or more, of the nodes that a packet meets."""
    nodes = sorted_nodes(graph)
    step = max(highest / BINS, 1e-9)
    bins = BINS + len(nodes) + 2
    at = {graph.start: np.zeros(bins)}
    at[graph.start][0] = 1.0
    end = np.zeros(bins)
    for node in nodes:
        here = at.pop(node.name, None)
        if here is None:
            continue
        outs = [(e, p) for e, p in zip(node.edges, shares(node), strict=True)] if node.edges else [(None, 1.0)]
        for edge, share in outs:
            if share <= 0:
                continue
            to = edge.to if edge is not None else ""
            goal = end if not to else at.setdefault(to, np.zeros(bins))
            _add_moved(goal, here, share, cost(node, edge) / step)
    kept = np.flatnonzero(end > _SMALL)
    weights = end[kept]
    return CostSpread(np.asarray(kept * step, dtype=np.float64), weights / weights.sum())


def _add_moved(goal: FloatArray, here: FloatArray, share: float, steps: float) -> None:
    whole = math.floor(steps + 1e-9)
    rest = max(steps - whole, 0.0)
    for offset, weight in ((whole, share * (1 - rest)), (whole + 1, share * rest)):
        if weight <= 0:
            continue
        offset = min(max(offset, 0), here.size - 1)
        goal[offset:] += weight * here[: here.size - offset]
        if offset:
            goal[-1] += weight * float(here[here.size - offset :].sum())
