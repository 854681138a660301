"""The paths that packets take through a program: how many there are, how often each step is met, what they cost.

A :class:`~p4perf.models.program.graph.ProgramGraph` has no cycles, so everything here is dynamic programming over its
nodes in topological order. The paths themselves are never enumerated: two hundred tables with two actions each have
2**200 of them. With ``p(e)`` the share of the packets at a node that leave it by edge ``e`` and ``c(n, e)`` the cost of
a node that is left by that edge,

    visits(start) = 1,   visits(n) = sum of visits(m) p(e) over all edges e from m to n
    expected(n)   = sum of p(e) (c(n, e) + expected(to(e))) over the edges e of n
    highest(n)    = max of c(n, e) + highest(to(e))

and likewise for the lowest-cost path, for the ``k`` paths of highest cost or probability, and for the second moment of
the cost.
Decisions count as independent of one another; what depends on an earlier decision is a node of its own.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from p4perf.errors import UsageError
from p4perf.models.program.graph import Construct, Edge, LoopError, Node, NowhereError, ProgramGraph, in_order

Cost = Callable[[Node, Edge | None], float]
"""Cost of passing a node and leaving it by an edge, in whatever is counted; None: the path ends at the node."""

TOLERANCE = 1e-6
"""Shares of one node that add up to 1 within this are taken."""


@dataclass(frozen=True, slots=True)
class PathStep:
    """A node on a path, and the label of the edge by which it is left (empty at the end)."""

    node: str
    label: str


@dataclass(frozen=True, slots=True)
class ProgramPath:
    """One path through a program; its natural ``log_probability`` is ``-inf`` if it cannot happen."""

    steps: tuple[PathStep, ...]
    log_probability: float
    cost: float

    @property
    def probability(self) -> float:
        return math.exp(self.log_probability)


@dataclass(frozen=True)
class Analysis:
    """Statistics of all paths through a program.

    Args:
        visits: how many times a packet meets each node on average, by its name.
        most_expensive, most_probable: paths of falling cost and of falling probability.
        assumed: names of the nodes for which the branch probabilities are unknown, so that all edges have the same.
    """

    paths: int
    visits: Mapping[str, float]
    expected: float
    deviation: float
    lowest_cost: ProgramPath
    highest_cost: ProgramPath
    most_expensive: tuple[ProgramPath, ...]
    most_probable: tuple[ProgramPath, ...]
    assumed: tuple[str, ...]


def analyse(graph: ProgramGraph, cost: Cost, *, k: int = 5, taken_only: bool = False) -> Analysis:
    """Everything at once.

    Args:
        graph: the program; edges without a probability share equally what the others of their node leave.
        cost: of a node that is left by an edge; it is asked once for each edge.
        k: how many of the most expensive and of the most probable paths.
        taken_only: leave out edges of probability 0 in :attr:`Analysis.paths`, :attr:`Analysis.lowest_cost`,
            :attr:`Analysis.highest_cost` and :attr:`Analysis.most_expensive`.

    Raises:
        UsageError: the graph has a cycle, or an edge to a node that is not there; shares of a node are below 0 or do
            not add up to 1.
    """
    nodes = sorted_nodes(graph)
    outs = {node.name: _outs(node, cost) for node in nodes}
    kept = {name: tuple(o for o in found if o.share > 0 or not taken_only) for name, found in outs.items()}
    mean, second = _moments(nodes, outs)
    highest = _top_paths(graph, nodes, kept, max(k, 1), lambda out: out.cost)
    lowest = _top_paths(graph, nodes, kept, 1, lambda out: -out.cost)
    probable = _top_paths(graph, nodes, outs, k, lambda out: out.log_share) if k > 0 else ()
    return Analysis(
        paths=_count(nodes, kept),
        visits=_visits(graph, nodes, outs),
        expected=mean,
        deviation=math.sqrt(max(second - mean * mean, 0.0)),
        lowest_cost=lowest[0],
        highest_cost=highest[0],
        most_expensive=highest[: max(k, 0)],
        most_probable=tuple(path for path in probable if path.log_probability > -math.inf),
        assumed=assumed_nodes(graph),
    )


def sorted_nodes(graph: ProgramGraph) -> tuple[Node, ...]:
    """The nodes that can be reached from the start, each before those that its edges lead to."""
    try:
        return tuple(in_order(graph.start, graph.nodes))
    except LoopError as error:
        raise UsageError(f"{graph.name} has a cycle: {error}") from error
    except NowhereError as error:
        what = f"an edge of {error.source}" if error.source else "the start"
        raise UsageError(_not_there(graph, error.name, what)) from error


def taken(node: Node) -> Mapping[str, float]:
    """Share of the packets at a node that go on at each node behind it."""
    found: dict[str, float] = {}
    for edge, share in zip(node.edges, shares(node), strict=True):
        found[edge.to] = found.get(edge.to, 0.0) + share
    return found


def shares(node: Node) -> tuple[float, ...]:
    """Share of the packets at a node that leave it by each of its edges, in their order.

    Edges without a probability share equally what the others leave.

    Raises:
        UsageError: a probability is below 0 or not a number, or they do not add up to 1.
    """
    given = [edge.probability for edge in node.edges]
    known = [p for p in given if p is not None]
    total = math.fsum(known)
    if not all(p >= 0 and math.isfinite(p) for p in known) or total > 1 + TOLERANCE:
        raise UsageError(f"probabilities at {node.name} are below 0 or add up to more than 1")
    if len(known) == len(given):
        if given and abs(total - 1) > TOLERANCE:
            raise UsageError(f"probabilities at {node.name} add up to {total:g}, not to 1")
        return tuple(p / total for p in known)
    rest = max(1 - total, 0.0) / (len(given) - len(known))
    return tuple(rest if p is None else p for p in given)


def assumed_nodes(graph: ProgramGraph) -> tuple[str, ...]:
    """Names of the nodes with unknown branch probabilities: two edges or more share what is left."""
    return tuple(n.name for n in graph.nodes.values() if sum(e.probability is None for e in n.edges) > 1)


def weigh(graph: ProgramGraph, given: Mapping[str, Mapping[str, float]]) -> ProgramGraph:
    """The graph with these shares at its edges, by the names of nodes and the labels of their edges.

    Edges of a node that are not named keep what they have if nothing is said of their node at all; otherwise they share
    equally what the named ones leave. The ``hit`` of lookups becomes that of the edges of their node.

    Raises:
        UsageError: there is no such node or label, or the shares are below 0 or add up to more than 1.
    """
    nodes = dict(graph.nodes)
    for name, labels in given.items():
        if name not in graph.nodes:
            raise UsageError(_not_there(graph, name, "a share"))
        node = graph.nodes[name]
        unknown = set(labels) - {edge.label for edge in node.edges}
        if unknown:
            raise UsageError(f"{name} has no edge {', '.join(sorted(unknown))}")
        node = replace(node, edges=tuple(replace(e, probability=labels.get(e.label)) for e in node.edges))
        nodes[name] = replace(node, constructs=constructs_on(node, None))
    return replace(graph, nodes=nodes)


def constructs_on(node: Node, edge: Edge | None) -> tuple[Construct, ...]:
    """What a packet meets at a node that it leaves by an edge: where that says so, lookups hit or miss for certain."""
    labels = [e.label for e in node.edges]
    if not any(c.kind == "lookup" for c in node.constructs) or not {"hit", "miss"} & set(labels):
        return node.constructs
    if edge is not None:
        hit = float(edge.label == "hit")
    else:
        hit = sum(share for label, share in zip(labels, shares(node), strict=True) if label == "hit")
    return tuple(
        replace(c, sizes=tuple((n, hit if n == "hit" else v) for n, v in c.sizes)) if c.kind == "lookup" else c
        for c in node.constructs
    )


def met(graph: ProgramGraph) -> tuple[tuple[Construct, float], ...]:
    """All constructs that packets may meet and how often on average, each before those that come after it."""
    nodes = sorted_nodes(graph)
    visits = _visits(graph, nodes, {node.name: _outs(node, lambda _node, _edge: 0.0) for node in nodes})
    return tuple((what, visits[node.name]) for node in nodes for what in constructs_on(node, None))


@dataclass(frozen=True, slots=True)
class _Out:
    """An edge with all that is needed of it; the end of a path is one that leads nowhere."""

    label: str
    to: str
    share: float
    cost: float

    @property
    def log_share(self) -> float:
        return math.log(self.share) if self.share > 0 else -math.inf


def _not_there(graph: ProgramGraph, name: str, what: str) -> str:
    return f"{what} of {graph.name} names {name!r}, which is not there"


def _outs(node: Node, cost: Cost) -> tuple[_Out, ...]:
    if not node.edges:
        return (_Out("", "", 1.0, cost(node, None)),)
    return tuple(_Out(e.label, e.to, p, cost(node, e)) for e, p in zip(node.edges, shares(node), strict=True))


def _count(nodes: tuple[Node, ...], outs: Mapping[str, tuple[_Out, ...]]) -> int:
    counts: dict[str, int] = {"": 1}
    for node in reversed(nodes):
        counts[node.name] = sum(counts[out.to] for out in outs[node.name])
    return counts[nodes[0].name]


def _visits(graph: ProgramGraph, nodes: tuple[Node, ...], outs: Mapping[str, tuple[_Out, ...]]) -> dict[str, float]:
    found = dict.fromkeys(graph.nodes, 0.0)
    found[graph.start] = 1.0
    for node in nodes:
        for out in outs[node.name]:
            if out.to:
                found[out.to] += found[node.name] * out.share
    return found


def _moments(nodes: tuple[Node, ...], outs: Mapping[str, tuple[_Out, ...]]) -> tuple[float, float]:
    moments: dict[str, tuple[float, float]] = {"": (0.0, 0.0)}
    for node in reversed(nodes):
        mean = second = 0.0
        for out in outs[node.name]:
            after, square = moments[out.to]
            mean += out.share * (out.cost + after)
            second += out.share * (out.cost * out.cost + 2 * out.cost * after + square)
        moments[node.name] = (mean, second)
    return moments[nodes[0].name]


def _top_paths(
    graph: ProgramGraph,
    nodes: tuple[Node, ...],
    outs: Mapping[str, tuple[_Out, ...]],
    k: int,
    value: Callable[[_Out], float],
) -> tuple[ProgramPath, ...]:
    """The ``k`` paths with the highest sum of values, the best first; of equals the first one in the graph."""
    best: dict[str, list[tuple[float, int, int]]] = {"": [(0.0, -1, -1)]}  # sum, edge, rank at its end
    for node in reversed(nodes):
        candidates = (
            (value(out) + after[0], number, rank)
            for number, out in enumerate(outs[node.name])
            for rank, after in enumerate(best[out.to])
        )
        best[node.name] = heapq.nsmallest(k, candidates, key=lambda c: (-c[0], c[1], c[2]))
    found = []
    for rank in range(len(best[graph.start])):
        steps, name, at = [], graph.start, rank
        log_probability = cost = 0.0
        while name:
            _, number, at = best[name][at]
            out = outs[name][number]
            steps.append(PathStep(name, out.label))
            log_probability, cost, name = log_probability + out.log_share, cost + out.cost, out.to
        found.append(ProgramPath(tuple(steps), log_probability, cost))
    return tuple(found)
