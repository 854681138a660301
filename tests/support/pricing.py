"""A small pricing whose numbers can be checked by hand, and a program with three ways."""

from dataclasses import dataclass, field

from p4perf.models.estimate import Estimate, exactly
from p4perf.models.program import Charge, CostBreakdown, Edge, Node, ProgramGraph, construct
from p4perf.models.program.paths import constructs_on

PRICES = {
    "mispredicted branch": 0.0,
    "extract": 2.0,
    "lookup": 50.0,
    "write": 3.0,
    "emit": 4.0,
    "condition": 1.0,
    "component": 100.0,
    "drop": 0.0,
}


@dataclass(frozen=True)
class FlatPricing:
    """Every construct of a kind costs the same, lookups 10 more for every entry times 1000; 10 % to either side.

    A hash has no price but a bound of 0 to 40; kinds that are not named have no price at all.
    """

    target: str = "flat"
    baseline: float = 20.0
    interaction: float = 0.0
    prices: dict = field(default_factory=lambda: dict(PRICES))

    def charge(self, what, times=1.0):
        if what.kind == "hash":
            return Charge(what, times, Estimate(20.0, 0.0, 40.0) * times, basis="bounded", remark="by its bytes")
        if what.kind not in self.prices:
            return Charge(what, times, exactly(0.0), basis="unknown")
        cycles = self.prices[what.kind]
        basis = "measured"
        if what.kind == "lookup":
            cycles += what.number("entries") / 100
            basis = "extrapolated" if what.number("entries") > 1e6 else "measured"
        cycles *= times
        return Charge(what, times, Estimate(cycles, 0.9 * cycles, 1.1 * cycles), f"flat/{what.kind}", basis)

    def breakdown(self, met):
        charges = tuple(self.charge(what, times) for what, times in met)
        total = self.baseline + sum(c.cycles.value for c in charges) + self.interaction
        low = self.baseline + sum(c.cycles.low for c in charges) + self.interaction
        high = self.baseline + sum(c.cycles.high for c in charges) + self.interaction
        return CostBreakdown(self.baseline, charges, self.interaction, min(low, total), max(high, total))


def lookup(entries=1000, **more):
    """A lookup in an exact table."""
    sizes = {"match_kind": "exact", "entries": entries, "key_bits": 32, "action_data_bytes": 8, "hit": 1.0, **more}
    return construct("lookup", "table fib", **sizes)


def router(hit=0.8, frame_bytes=None):
    """A parser state, a table that forwards on a hit and drops on a miss, and a deparser.

    With :class:`FlatPricing`: hit 20 + 2 + 60 + 6 + 4 = 92 cycles, miss 20 + 2 + 60 = 82 cycles.
    """
    write = construct("write", "action forward", bits=48, to="header")
    nodes = (
        Node("start", "parser state", (construct("extract", "header ethernet", bytes=14),), (Edge("", "ingress.fib"),)),
        Node("ingress.fib", "table", (lookup(hit=hit),), (Edge("hit", "forward", hit), Edge("miss", "drop", 1 - hit))),
        Node("forward", "action", (write, write), (Edge("", "deparser"),)),
        Node("drop", "action", (construct("drop", "action drop"),), ()),
        Node("deparser", "deparser", (construct("emit", "header ethernet", bytes=14),), ()),
    )
    return ProgramGraph("router", {n.name: n for n in nodes}, "start", "test", frame_bytes=frame_bytes)


def met_on(graph, path):
    """All constructs that a packet meets on one path, in order, once each."""
    found = []
    for step in path.steps:
        node = graph.nodes[step.node]
        edge = next((e for e in node.edges if e.label == step.label), None)
        found += [(what, 1.0) for what in constructs_on(node, edge)]
    return tuple(found)
