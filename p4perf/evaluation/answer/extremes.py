"""The cheapest and the dearest way of a packet through a program, and what the processor guesses on them.

Where a share ``h`` of the packets finds an entry, a lookup costs them ``h hit + (1 - h) miss + min(h, 1 - h) g`` on
average: the processor guesses that all go the way of most, and ``g`` is what a wrong guess costs. A packet on the
cheapest way is guessed right everywhere; one on the dearest way is guessed wrong at every lookup that packets pass both
ways. Since ``min(h, 1 - h) g <= g``, the average packet is between both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from p4perf.evaluation.answer.lines import Itemised, Line, Met, itemise
from p4perf.models.program import Construct, Pricing, ProgramGraph
from p4perf.models.program.paths import Analysis, Cost, Way, analyse, constructs_on, shares, sorted_nodes
from p4perf.models.program.prices import HIT

CANDIDATES = 2
"""So many of the most probable, of the cheapest and of the dearest ways are considered."""

WRONG = "guessed wrong"
"""What the remark of a lookup ends with that has a wrong guess in it."""


@dataclass(frozen=True, slots=True)
class Guess:
    """What it costs that the processor takes a hit for a miss or the other way round [cycles]."""

    cycles: float
    low: float
    high: float


def extremes(
    graph: ProgramGraph, pricing: Pricing, cost: Cost, analysis: Analysis
) -> tuple[tuple[Way, Itemised], tuple[Way, Itemised]]:
    """The cheapest and the dearest way with their bills.

    Sums of prices find the candidates. Bills may order them differently: the baseline has paid for some of it, and
    constructs cost something beside one another.
    """
    guesses = wrong_guesses(graph, pricing)
    wrong = {name: guess.cycles for name, guess in guesses.items()}
    cheap = analyse(graph, lambda node, edge: -cost(node, edge), k=CANDIDATES)
    dear = analyse(graph, lambda node, edge: cost(node, edge) + wrong.get(node.name, 0.0), k=CANDIDATES)
    likely = (*cheap.most_expensive, *dear.most_expensive, *analysis.most_probable[:CANDIDATES])
    ways = {way.steps: way for way in likely}.values()
    right = [(way, itemise(pricing, met_along(graph, way))) for way in ways]
    return (
        min(right, key=lambda each: each[1].bill.cycles),
        max(((way, guessed_wrong(bill, guesses)) for way, bill in right), key=lambda each: each[1].bill.cycles),
    )


def met_along(graph: ProgramGraph, way: Way) -> list[Met]:
    """What a packet meets on one way."""
    found = []
    for step in way.steps:
        node = graph.nodes[step.node]
        edge = next((e for e in node.edges if e.label == step.label), None)
        found += [Met(node.name, node.kind, what, 1.0) for what in constructs_on(node, edge)]
    return found


def wrong_guesses(graph: ProgramGraph, pricing: Pricing) -> Mapping[str, Guess]:
    """What a wrong guess costs at the nodes whose lookup packets pass both ways, by their names."""
    found = {}
    for node in sorted_nodes(graph):
        taken = {edge.label for edge, share in zip(node.edges, shares(node), strict=True) if share > 0}
        lookup = next((what for what in node.constructs if what.kind == "lookup"), None)
        if lookup is not None and {"hit", "miss"} <= taken:
            found[node.name] = _guess(lookup, pricing)
    return found


def _guess(lookup: Construct, pricing: Pricing) -> Guess:
    """Half of it is what lookups cost of which half find an entry, beyond the mean of hit and miss."""
    miss, half, hit = (
        pricing.charge(replace(lookup, sizes=tuple((n, share if n == HIT else v) for n, v in lookup.sizes)))
        for share in (0.0, 0.5, 1.0)
    )
    return Guess(*(max(2 * getattr(half, n) - getattr(hit, n) - getattr(miss, n), 0.0) for n in Guess.__slots__))


def guessed_wrong(found: Itemised, guesses: Mapping[str, Guess]) -> Itemised:
    """The bill of a packet for which every guess is wrong. Its interval has what is not known of the guesses in it."""
    lines = tuple(_with_guess(line, guesses) for line in found.lines)
    pairs = list(zip(found.lines, lines, strict=True))
    low, high = (sum(getattr(b.charge, n) - getattr(a.charge, n) for a, b in pairs) for n in ("low", "high"))
    charges = tuple(line.charge for line in lines)
    return Itemised(replace(found.bill, charges=charges, low=found.bill.low + low, high=found.bill.high + high), lines)


def _with_guess(line: Line, guesses: Mapping[str, Guess]) -> Line:
    guess, charge = guesses.get(line.node), line.charge
    if guess is None or charge.what.kind != "lookup" or not guess.cycles:
        return line
    sums = {n: getattr(charge, n) + getattr(guess, n) for n in Guess.__slots__}
    return replace(line, charge=replace(charge, **sums, remark="; ".join(r for r in (charge.remark, WRONG) if r)))
