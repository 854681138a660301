"""Prices of one machine from those of another and a few points that were measured here.

Every price gets a factor, a lookup two: for tables in the caches (of a list: its first entry), and for what more
entries cost. With ``A`` the cycles that the reference charges a point for each price, ``y`` its measured cycles over
the baseline, and ``w`` one over the cost of the whole packet, the factors are the non-negative ``f`` with the least

    sum over the points of (w (A f - y))^2  +  RIDGE^2 (sum over the prices of (f - c)^2  +  sum of (c - 1)^2),

where prices of one group (lookups, what more entries cost, all others) have the ``c`` in common, which is found with
them. So a price that no point has changes as those like it do, and many points tell each price by itself. Whole
programs cost more or less than the sum of their prices on the other machine, too, and ``y`` is without that
(:mod:`~p4perf.models.program.experience`).

What whole programs say of sums on the other machine is kept: with all points of this machine among them, or with wider
intervals, by what nine of ten points are off. With many programs of this machine it is left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import nnls

from p4perf.errors import NoVerdictError
from p4perf.evaluation.prediction.learning.design import PriceRow, parts_of
from p4perf.evaluation.prediction.learning.primitives import agreement_of, known_program
from p4perf.models.program.experience import FEWEST as FEWEST_PROGRAMS
from p4perf.models.program.experience import NORMAL_90, Experience, features
from p4perf.models.program.prices import CACHED, Curve, Price, cached_sizes, surplus
from p4perf.models.program.primitives import LEVEL, PrimitiveCosts

RIDGE = 0.3
"""How much a factor that is off by one counts, where a program that is off by its whole cost counts one."""

FEWEST = 5
"""Fewest points that say how much faster or slower a machine is."""

WIDER = 1.8
"""Intervals of a moved model are wider by this over the root of the number of points of this machine: the fewer, the
more they leave out. With the 50 points of ``learn --quick`` they held 85 to 92 % of 160 programs on each target."""

GUESS = "write header"
"""Key of the price that others are taken to have at first, of which the reference knows nothing."""

ENOUGH = 60
"""Whole programs of this machine which say what the other machine's would."""

FEWEST_OF_ONE = 8
"""Fewest points that say what such a price is."""

LIST = "lookup ternary"
"""Key of the price whose growth is that of a list, in the caches, too."""

Part = tuple[str, bool]
"""A price, and whether it is the part that more entries cost than fit into the caches."""


def transferred(reference: PrimitiveCosts, rows: Sequence[PriceRow], baseline: float) -> PrimitiveCosts:
    """The prices of the machine on which some points were measured.

    Args:
        baseline: cycles of the baseline of a whole program there.

    Raises:
        NoVerdictError: there are too few points with a construct that the reference has a price of.
    """
    reference = _guessed(reference, rows)
    known = reference.experience
    if known is not None and sum(row.whole for row in rows) >= ENOUGH:
        known, reference = replace(known, programs=()), replace(reference, experience=None)
    charged = [_charged(reference, row) for row in rows]
    told = [n for n, parts in enumerate(charged) if any(parts.values())]
    if len(told) < FEWEST:
        raise NoVerdictError(f"{len(told)} points say too little of another machine, of which {FEWEST} are needed")
    names = sorted({part for n in told for part in charged[n]})
    matrix = np.array([[charged[n].get(name, 0.0) for name in names] for n in told])
    base = np.array([rows[n].baseline for n in told])
    beyond = np.array([_beyond(reference, rows[n], sum(charged[n].values())) for n in told])
    cycles = (base + [rows[n].cycles for n in told]) / beyond - base
    whole = np.maximum(cycles + base, 1.0)
    weights = 1.0 / whole
    groups = sorted({_group(part) for part in names} | {_group((key, False)) for key in reference.prices})
    common = np.array([[float(_group(part) == group) for group in groups] for part in names])
    rest = np.zeros((len(told), len(groups)))
    system = np.block(
        [
            [matrix * weights[:, None], rest],
            [RIDGE * np.eye(len(names)), -RIDGE * common],
            [np.zeros((len(groups), len(names))), RIDGE * np.eye(len(groups))],
        ]
    )
    wanted = np.concatenate([cycles * weights, np.zeros(len(names)), np.full(len(groups), RIDGE)])
    solved, _ = nnls(system, wanted)
    found = solved[: len(names)]
    shared: dict[str, float] = dict(zip(groups, solved[len(names) :].tolist(), strict=True))
    factors: dict[Part, float] = dict(zip(names, found.tolist(), strict=True))

    def factor(part: Part) -> float:
        return factors.get(part, shared.get(_group(part), 1.0))

    prices = {key: scaled(p, factor((key, False)), factor((key, True))) for key, p in reference.prices.items()}
    experience = known
    local = [known_program(rows[n], sums) for n, sums in zip(told, matrix @ found, strict=True)]
    if experience is not None and len(local) >= FEWEST_PROGRAMS:
        moved = bool(experience.programs)
        experience = Experience.learn([*experience.programs, *local], len(local)) or experience
        wider = 1 + WIDER / math.sqrt(len(local)) if moved else 1.0
        experience = replace(experience, widths=(wider * experience.widths[0], wider * experience.widths[1]))
    elif experience is not None:
        off = np.abs(np.log(np.maximum(whole + matrix @ found - cycles, 1.0) / whole))
        noise = float(np.quantile(off, LEVEL)) / NORMAL_90
        experience = replace(experience, noise=math.hypot(experience.noise, noise))
    agreement = agreement_of([rows[n] for n in told], (base + matrix @ found) * beyond - base)
    return replace(reference, baseline=baseline, prices=prices, agreement=agreement, experience=experience)


def _guessed(reference: PrimitiveCosts, rows: Sequence[PriceRow]) -> PrimitiveCosts:
    """The reference with a first guess for what points have and it charges nothing for: a write to a header field."""
    guess = reference.prices.get(GUESS)
    met = Counter(key for row in rows for key, parts in parts_of(row).items() if any(part.times > 0 for part in parts))
    if guess is None:
        return reference
    found = {}
    for key in (key for key, points in met.items() if points >= FEWEST_OF_ONE and not key.startswith("lookup ")):
        price = reference.prices.get(key, Price(key, 0.0, sources=("programs",)))
        if not price.constant and not price.curves:
            found[key] = replace(price, constant=guess.constant, limit=None)
    return replace(reference, prices={**reference.prices, **found})


def _group(part: Part) -> str:
    """The prices that a part is like."""
    key, more = part
    return "more entries" if more else "lookups" if key.startswith("lookup ") else "statements"


def _beyond(reference: PrimitiveCosts, row: PriceRow, charged: float) -> float:
    """How many times the sum of its prices a whole program costs, by the reference."""
    if not row.whole or reference.experience is None:
        return 1.0
    return math.exp(reference.experience.error(features(row.met, max(row.baseline + charged, 1.0)))[0])


def _charged(reference: PrimitiveCosts, row: PriceRow) -> dict[Part, float]:
    """What the reference charges a point for each price [cycles]; constructs without one are left out."""
    found: dict[Part, float] = {}
    many = {key: price.many for key, price in reference.prices.items() if price.many is not None}
    for key, items in parts_of(row).items():
        price = reference.prices.get(key)
        if price is None:
            continue
        for item in items:
            cycles, near = price.at(item.sizes), price.at(_near(key, item.sizes))
            found[key, False] = found.get((key, False), 0.0) + item.times * near
            if cycles > near:
                found[key, True] = found.get((key, True), 0.0) + item.times * (cycles - near)
        if key in many:
            found[key, False] += price.more * sum(surplus(row.met, {key: many[key]}))
    return found


def _near(key: str, sizes: Mapping[str, float]) -> Mapping[str, float]:
    """The same lookup in a table that is in the caches; in a list of one entry."""
    return {n: 1.0 if n in CACHED else size for n, size in sizes.items()} if key == LIST else cached_sizes(sizes)


def scaled(price: Price, near: float, far: float) -> Price:
    """A price with other cycles: ``near`` times those of tables in the caches, ``far`` times what more entries cost."""
    curves = tuple(_scaled(curve, near, far, price.key == LIST) for curve in price.curves)
    limit = None if price.limit is None else near * price.limit
    return replace(
        price,
        constant=near * price.constant,
        curves=curves,
        spread=near * price.spread,
        limit=limit,
        more=near * price.more,
    )


def _scaled(curve: Curve, near: float, far: float, of_list: bool) -> Curve:
    if curve.size not in CACHED:
        return replace(curve, values=tuple(near * value for value in curve.values))
    last = curve.knots[0] if of_list else CACHED[curve.size]
    known = [*curve.knots]
    if curve.knots[0] < last < curve.knots[-1]:
        known = sorted({*known, last})
    edge = curve.at(last)
    values = tuple(near * min(curve.at(x), edge) + far * max(curve.at(x) - edge, 0.0) for x in known)
    return replace(curve, knots=tuple(known), values=values)
