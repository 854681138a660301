"""From measured points to prices of primitives.

Every point says what the constructs of one program cost together. All points of one target are a linear system (see
:mod:`~p4perf.evaluation.prediction.learning.design`), which is solved in four steps:

1. Over each of its sizes a price gets the shape that has the least error at points that it was not learnt from; it
   rises with the number in a row, and prices of lookups become products, where that has less error.
2. The numbers are those with the least errors, none of them negative; points with large errors count less.
3. Where the points do not tell a price from others, it has a limit instead of an interval.
4. Intervals come from the points again, those of the ends of sweeps excepted, each predicted without it: 90 % of what
   was measured lies within, where every point counts by the share of its cost that is of that price. Added to that is
   what half of the points with it are off for each of their constructs, so that what costs next to nothing has an
   interval, too.

Whole programs are among the points; how far the sums are off for them is learnt as well
(:mod:`~p4perf.models.program.experience`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from p4perf.errors import NoVerdictError
from p4perf.evaluation.prediction.learning import design as designs
from p4perf.evaluation.prediction.reading.names import SWX, XDP
from p4perf.models.program.experience import Experience, KnownProgram, features
from p4perf.models.program.prices import ASTRAY, EXTENDED, FURTHER_BYTES, NODES, Domain, Price
from p4perf.models.program.primitives import LEVEL, Agreement, PrimitiveCosts
from p4perf.models.templates import FloatArray

SMALL_CYCLES = 2.0
"""What is added to costs before they are divided by each other."""

TOLD_CYCLES = 0.5
"""A price whose limit is no further away is known."""

WAITING, FEWEST_WAITING = 0.3, 5
"""Smallest share of its time that a program waits for memory, and fewest such programs, for starts to say how much
this scatters."""

WALKED = {"dpdk-c": (ASTRAY,), XDP: (NODES, ASTRAY), SWX: (EXTENDED, FURTHER_BYTES)}
"""Sizes by which lookups of a target grow beside their entries: where these are, in buckets and tries, and what of them
is not prefetched."""

FEWEST = 3.0
"""With fewer points that count, an interval is that of all prices together."""


def learn_prices(
    rows: Sequence[designs.PriceRow], target: str, *, baseline: float | None = None, remarks: Sequence[str] = ()
) -> PrimitiveCosts:
    """The prices of one target.

    Raises:
        NoVerdictError: no point has any construct.
    """
    repeated = [row for row in rows if _repeats(row)]
    notes = [
        f"{name}: lookups of one key in one table, again and again, were left out"
        for name in dict.fromkeys(row.experiment for row in repeated)
    ]
    told = [row for row in rows if row not in repeated and designs.parts_of(row)]
    if not told:
        raise NoVerdictError(f"no measured point of {target} has a construct beyond the baseline")
    problem = designs.PriceProblem.of(told)
    name = target.partition(":")[0]
    lists, walked = name != SWX, WALKED.get(name, ())
    design = designs.choose_products(
        designs.choose_many(designs.choose_axes(designs.Design.of(told), problem, lists=lists, walked=walked), problem),
        problem,
    )
    numbers = designs.solve(design, problem, rounds=designs.ROUNDS)
    unseen = designs.left_out(design, problem)
    like = [row for row in rows if row.whole] or rows
    cost = float(np.median([row.baseline for row in like])) if baseline is None else baseline
    prices = _prices(design, problem, numbers, unseen)
    agreement = agreement_of(told, design.matrix @ numbers)
    experience = Experience.learn(
        [known_program(row, cycles) for row, cycles in zip(told, unseen, strict=True) if row.whole]
    )
    found = PrimitiveCosts(target, cost, {p.key: p for p in prices}, agreement, (*remarks, *notes), experience)
    return scattering(found, rows)


def scattering(prices: PrimitiveCosts, rows: Sequence[designs.PriceRow]) -> PrimitiveCosts:
    """The same prices, with how far starts of programs that wait for memory are off; as before if too few do."""
    shares, points = [], 0
    for row in rows:
        waited = prices.waited(row.met)
        if waited > WAITING * (row.baseline + row.cycles) and len(row.starts) > 1:
            points += 1
            sums = prices.summed(tuple(prices.priced(row.met)), row.met, row.baseline).cycles.value - row.baseline
            shares += [(start - sums) / waited for start in row.starts]
    if points < FEWEST_WAITING:
        return prices
    low, high = np.quantile(shares, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return replace(prices, scatter=(max(-low, 0.0), max(high, 0.0)))


def known_program(row: designs.PriceRow, cycles: float) -> KnownProgram:
    """A whole program, and what prices say of it that were learnt without it [cycles over the baseline]."""
    predicted = max(row.baseline + cycles, 1.0)
    ratio = math.log(max(row.baseline + row.cycles, 1.0) / predicted)
    return KnownProgram(features(row.met, predicted), ratio)


def _repeats(row: designs.PriceRow) -> bool:
    """Whether packets look up the same key in the same table again: what they find is in the nearest cache then."""
    again = any(what.kind in ("recirculate", "resubmit") for what, _ in row.met)
    return not again and any(what.kind == "lookup" and times > 1 for what, times in row.met)


def _prices(
    design: designs.Design, problem: designs.PriceProblem, numbers: FloatArray, unseen: FloatArray
) -> list[Price]:
    sizes = designs.measured_sizes(design)
    matrix = design.matrix
    costs = {key: matrix[:, where] @ numbers[where] for key, where in design.columns.items()}
    total = np.maximum(sum(np.abs(c) for c in costs.values()), 1e-9)
    ratios = (np.maximum(problem.cycles, 0.0) + SMALL_CYCLES) / (np.maximum(unseen, 0.0) + SMALL_CYCLES)
    limits = _limits(design, problem, costs)
    count = np.array([sum(abs(times) for _, times in row.met) for row in problem.rows])
    each = np.abs(unseen - problem.cycles) / np.maximum(count, 1.0)
    found = []
    for key, where in design.columns.items():
        share = np.abs(costs[key]) / total
        low, high = _interval(ratios, share)
        met = np.array([key in parts for parts in design.parts])
        found.append(
            Price(
                key,
                constant=float(numbers[where][0]),
                curves=design.curves(key, numbers[where]),
                factors=design.factors.get(key, ()),
                domains=tuple(Domain(size, values) for (k, size), values in sizes.items() if k == key),
                low=low,
                high=high,
                spread=float(np.median(each[met])),
                points=int(met.sum()),
                sources=_sources(design, problem, key, share),
                limit=limits.get(key),
                many=design.many.get(key),
                more=float(numbers[where][1]) if key in design.many else 0.0,
            )
        )
    return found


def _sources(design: designs.Design, problem: designs.PriceProblem, key: str, share: FloatArray) -> tuple[str, ...]:
    """Experiments with a price, that of which it is the largest share first."""
    largest: dict[str, float] = {}
    for row, parts, part in zip(problem.rows, design.parts, share, strict=True):
        if key in parts:
            largest[row.experiment] = max(largest.get(row.experiment, 0.0), float(part))
    return tuple(sorted(largest, key=lambda name: -largest[name]))


def _limits(design: designs.Design, problem: designs.PriceProblem, costs: dict[str, FloatArray]) -> dict[str, float]:
    """Of prices that the points do not tell from others: what one such construct costs at most.

    Nothing costs less than nothing, so it costs at most what a point has beyond the cost of constructs whose prices are
    known, divided by how often it is met there.
    """
    unknown = _unknown(design, problem)
    sure = sum((cost for key, cost in costs.items() if key not in unknown), np.zeros(len(problem.rows)))
    found = {}
    for key in unknown:
        times = np.array([sum(item.times for item in parts.get(key, ())) for parts in design.parts])
        with_it = times > 0
        left = (problem.cycles - sure)[with_it] / times[with_it]
        highest = float((costs[key][with_it] / times[with_it]).max(initial=0.0))
        limit = max(float(left.min(initial=np.inf)), highest)
        if limit > highest + TOLD_CYCLES:
            found[key] = limit
    return found


def _unknown(design: designs.Design, problem: designs.PriceProblem) -> list[str]:
    """The prices that the points do not tell from others.

    Those of the structure are known together where points have nothing else. All others are known if no other price
    could take their place, once those of the structure are given.
    """
    columns = design.columns
    pure = {key for parts in design.parts if set(parts) <= designs.STRUCTURE for key in parts}
    matrix = design.matrix / problem.scale[:, None]
    kept = np.ones(matrix.shape[1], dtype=bool)
    for key in designs.STRUCTURE & set(columns):
        kept[columns[key]] = False
    places = np.cumsum(kept) - 1
    found = []
    for key, where in columns.items():
        first = int(places[where.start])
        inner = slice(first, first + where.stop - where.start)
        if key not in pure if key in designs.STRUCTURE else not designs.told_apart(matrix[:, kept], inner):
            found.append(key)
    return found


def _interval(ratios: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Ends of the interval as shares of the price; of all points alike where too few count."""
    if weights.sum() < FEWEST:
        weights = weights + 1e-2
    order = np.argsort(ratios)
    ascending, reached = ratios[order], np.cumsum(weights[order]) / weights.sum()
    tail = (1 - LEVEL) / 2
    low = float(ascending[int(np.searchsorted(reached, tail))])
    high = float(ascending[min(int(np.searchsorted(reached, 1 - tail)), len(ascending) - 1)])
    return min(low, 1.0), max(high, 1.0)


def agreement_of(rows: Sequence[designs.PriceRow], predicted: FloatArray) -> tuple[Agreement, ...]:
    """How well what prices say of points [cycles over the baseline] meets what was measured, by experiment."""
    found = []
    cycles = np.array([row.cycles for row in rows])
    for name in dict.fromkeys(row.experiment for row in rows):
        places = [n for n, row in enumerate(rows) if row.experiment == name]
        errors = predicted[places] - cycles[places]
        whole = np.array([rows[n].baseline + rows[n].cycles for n in places])
        relative = errors / np.maximum(whole, SMALL_CYCLES)
        increment = np.abs(errors) / np.maximum(np.abs(cycles[places]), SMALL_CYCLES)
        found.append(
            Agreement(
                name,
                points=len(places),
                median=float(np.median(np.abs(relative))),
                p90=float(np.quantile(np.abs(relative), LEVEL)),
                bias=float(np.mean(relative)),
                increment_median=float(np.median(increment)),
            )
        )
    return tuple(found)
