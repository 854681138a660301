"""How the cost of a packet is spread over all ways through a program.

The ways are not enumerated. Forward over the nodes in topological order, with ``d(n)`` the distribution of the cost of
what came before a node, ``p(e)`` the share of an edge and ``c(n, e)`` the cost of a node that is left by it,

    d(m) = sum over the edges e from n to m of p(e) * d(n), moved by c(n, e)

on a lattice. A cost between two points of the lattice is shared between them so that the mean stays exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from p4perf.models.bases import FloatArray
from p4perf.models.program.graph import Edge, Node, ProgramGraph
from p4perf.models.program.paths import shares, sorted_nodes

BINS = 2048
"""Points of the lattice up to the worst way; each step may spread the costs over one more beyond."""
_SMALL = 1e-12


@dataclass(frozen=True, eq=False)
class CostSpread:
    """A distribution of the cost of a packet.

    Args:
        cycles: costs, rising.
        weights: their shares, which sum to one.
    """

    cycles: FloatArray
    weights: FloatArray

    @property
    def mean(self) -> float:
        """Mean cost [cycles]."""
        return float(self.cycles @ self.weights)

    def moved_to(self, mean: float, floor: float = 0.0) -> CostSpread:
        """The same distribution with another mean: moved, and nothing below a floor."""
        return CostSpread(np.maximum(self.cycles + (mean - self.mean), floor), self.weights)

    def scaled(self, factor: float) -> CostSpread:
        """Every cost multiplied."""
        return CostSpread(self.cycles * factor, self.weights)


def cost_spread(graph: ProgramGraph, cost: Callable[[Node, Edge | None], float], worst: float) -> CostSpread:
    """The distribution of the sum of the costs of the nodes that a packet meets.

    Args:
        graph: the program.
        cost: of a node that is left by an edge, zero or more.
        worst: cost of the most expensive way.

    Raises:
        UsageError: as for :func:`~p4perf.models.program.paths.analyse`.
    """
    nodes = sorted_nodes(graph)
    step = max(worst / BINS, 1e-9)
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
