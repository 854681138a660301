"""Prices of one machine from those of another and a few points that were measured here.

Every price gets a factor, a lookup two: for tables in the caches (of a list: its first entry), and for what more
entries cost. With ``A`` the cycles that the reference charges a point for each price, ``y`` its measured cycles over
the baseline, and ``w`` one over the cost of the whole packet, the factors are the non-negative ``f`` with the least

    sum over the points of (w (A f - y))^2  +  RIDGE^2 (sum over the prices of (f - c)^2  +  sum of (c - 1)^2),

where single constructs count half (:data:`SINGLE`). Prices of one group (lookups, what more entries cost, mispredicted
branches, all others) have the ``c`` in common, which is found with them. So a price that no point has changes as those
like it do, and many points tell each price by itself. Whole programs cost more or less than the sum of their prices on
the other machine, too, and ``y`` is without that (:mod:`~p4perf.models.program.experience`).

What whole programs say of sums on the other machine is kept: with those of this machine among them, to which they are
less alike by :data:`~p4perf.models.program.experience.UNLIKE`, or with wider intervals, by what nine of ten points are
off. How far each of this machine is off is found with prices that were moved without it. How wide intervals are is
judged by programs that people wrote and that do not wait for memory, which scatters; if there are too few, by composed
ones, too. Many programs of this machine tell the shape of the prices of lookups anew: what those with few keys and with
wider keys cost beside others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from p4perf.errors import NoVerdictError
from p4perf.evaluation.prediction.learning.design import PriceRow, parts_of
from p4perf.evaluation.prediction.learning.primitives import agreement_of, known_program, scattering
from p4perf.models.program.experience import JUDGES, NORMAL_90, Experience, features
from p4perf.models.program.prices import (
    MISPREDICTION,
    MISPREDICTIONS,
    NEAR,
    REUSE,
    REUSE_BYTES,
    TURN,
    Curve,
    Price,
    cached_sizes,
    smallest_sizes,
    surplus,
)
from p4perf.models.program.primitives import LEVEL, PrimitiveCosts
from p4perf.models.templates import FloatArray

RIDGE = 0.3
"""How much a factor that is off by one counts, where a program that is off by its whole cost counts one."""

CONSTRUCTS, SINGLE = "composition/constructs", 0.5
"""Constructs one by one, and how much each of them counts beside a program: alone, it hides behind the next packet."""

FEWEST = 5
"""Fewest points that say how much faster or slower a machine is."""

FOLDS = 4
"""Parts of the programs of a machine; what prices say of each part is learnt from the others."""

GUESS, GUESSES = "write header", {TURN: MISPREDICTION, "condition": "select"}
"""Keys of the prices that others are taken to have at first, of which the reference knows nothing."""

ENOUGH = 60
"""Whole programs of this machine which tell the shape of prices."""

HOLDING = 0.8
"""Share of the programs of a machine that a reference of the same processor holds, of whose prices all stay."""

FEWEST_OF_ONE = 8
"""Fewest points that say what such a price is."""

LIST = "lookup ternary"
"""Key of the price whose growth is that of a list, in the caches, too."""

SHAPED: Mapping[str, tuple[str, ...]] = {
    "lookup exact": ("entries", "key_bits"),
    "lookup lpm": ("entries",),
    LIST: ("entries", "key_bits"),
    **dict.fromkeys(REUSE, (REUSE_BYTES,)),
}
"""Keys of the prices whose shape programs of this machine tell, and over which sizes."""

STEPS: Mapping[str, tuple[float, ...]] = {
    "entries": (2.0, 4.0, 12.0, 24.0, 100.0, 400.0, 2000.0, 8000.0),
    "key_bits": (32.0, 33.0, 64.0, 65.0, 128.0, 129.0, 4096.0),
    REUSE_BYTES: tuple(float(1 << 18) * 2**n for n in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)),
}
"""Knots between which such a price is another share of what it was: every second one begins a step up or down. One key,
found again and again, is in the fastest places and predicted; keys are compared in words."""

STIFF = 1.0
"""How much such a share that is off by one counts, as :data:`RIDGE`."""

LEAST = 0.4
"""Least share of a price."""

OUTLIER = 0.5
"""Residuals count as this share of the whole packet at most, where shapes are told."""

Part = tuple[str, bool]
"""A price, and whether it is the part that more entries cost than fit into the caches, or more of them in a row."""


def holds(reference: PrimitiveCosts, rows: Sequence[PriceRow]) -> bool:
    """Whether the intervals of a reference hold the whole programs of a machine nearly as often as they should."""
    inside = []
    for row in rows:
        if row.whole:
            said = reference.summed(tuple(reference.priced(row.met)), row.met, row.baseline).cycles
            inside.append(said.low <= row.baseline + row.cycles <= said.high)
    return len(inside) >= JUDGES and float(np.mean(inside)) >= HOLDING


def joined(reference: PrimitiveCosts, rows: Sequence[PriceRow], baseline: float) -> PrimitiveCosts:
    """The prices of the same processor, with what whole programs say on this machine as well.

    Args:
        baseline: cycles of the baseline of a whole program there.
    """
    sums = [sum(_charged(reference, row).values()) for row in rows]
    experience = reference.experience
    if experience is not None:
        told = [(row, charged) for row, charged in zip(rows, sums, strict=True) if row.whole]
        experience = experience.joined([replace(known_program(*each), source=_source(each[0])) for each in told])
    said = [
        (row.baseline + charged) * _beyond(reference, row, charged) - row.baseline
        for row, charged in zip(rows, sums, strict=True)
    ]
    agreement = agreement_of(rows, np.array(said))
    return scattering(replace(reference, baseline=baseline, agreement=agreement, experience=experience), rows)


def transferred(reference: PrimitiveCosts, rows: Sequence[PriceRow], baseline: float) -> PrimitiveCosts:
    """The prices of another processor, on which some points were measured.

    Args:
        baseline: cycles of the baseline of a whole program there.

    Raises:
        NoVerdictError: there are too few points with a construct that the reference has a price of.
    """
    guessed = _guessed(reference, rows)
    reference, fit = _moved(guessed, rows)
    agreement = agreement_of(fit.rows, (fit.base + fit.sums) * fit.beyond - fit.base)
    prices, experience = fit.scaled(reference.prices), _known(guessed, fit, rows)
    return scattering(
        replace(reference, baseline=baseline, prices=prices, agreement=agreement, experience=experience), rows
    )


def _known(reference: PrimitiveCosts, fit: _Fit, rows: Sequence[PriceRow]) -> Experience | None:
    """What whole programs say, of the other machine and of this one."""
    experience = reference.experience
    if experience is None:
        return None
    told = [row for row in fit.rows if row.whole]
    if len(told) < JUDGES:
        whole = np.maximum(fit.cycles + fit.base, 1.0)
        off = np.abs(np.log(np.maximum(whole + fit.sums - fit.cycles, 1.0) / whole))
        noise = float(np.quantile(off, LEVEL)) / NORMAL_90
        return replace(experience, noise=math.hypot(experience.noise, noise))
    at_once = [row for row in told if reference.waited(row.met) == 0]
    written = [row for row in at_once if row.source]
    judges = next((group for group in (written, at_once) if len(group) >= JUDGES), told)
    judging = {id(row) for row in judges}
    local = [
        replace(known_program(row, charged), source=_source(row), judges=id(row) in judging)
        for row, charged in zip(told, _unseen(reference, rows, told), strict=True)
    ]
    return Experience.learn([*experience.elsewhere(), *local]) or experience


def _moved(reference: PrimitiveCosts, rows: Sequence[PriceRow]) -> tuple[PrimitiveCosts, _Fit]:
    """The reference, with the shapes that the rows tell if they are enough, and the factors of its prices."""
    fit = _fitted(reference, rows)
    if sum(row.whole for row in rows) < ENOUGH:
        return reference, fit
    reference = _shaped(reference, fit)
    return reference, _fitted(reference, rows)


def _unseen(reference: PrimitiveCosts, rows: Sequence[PriceRow], told: Sequence[PriceRow]) -> list[float]:
    """What prices charge each of some rows that were moved without it, and without others of the same program."""
    number = {source: n % FOLDS for n, source in enumerate(dict.fromkeys(map(_source, told)))}
    charged: dict[int, float] = {}
    for fold in range(FOLDS):
        known, fit = _moved(reference, [row for row in rows if number.get(_source(row)) != fold])
        prices = replace(known, prices=fit.scaled(known.prices))
        charged |= {id(row): sum(_charged(prices, row).values()) for row in told if number[_source(row)] == fold}
    return [charged[id(row)] for row in told]


def _source(row: PriceRow) -> str:
    return row.source or f"{row.experiment} {row.point}"


@dataclass(frozen=True)
class _Fit:
    """Points of this machine, and the factors of the prices with which a reference says what they cost.

    Args:
        rows: the points that have a construct of which the reference has a price.
        matrix: what it charges each of them for every part of a price [cycles].
        found: the factor of each part.
        base: cycles of their baselines.
        beyond: how many times the sum of its prices a whole program costs.
        shared: the factor that the parts of a group have in common.
    """

    rows: Sequence[PriceRow]
    names: Sequence[Part]
    matrix: FloatArray
    found: FloatArray
    base: FloatArray
    beyond: FloatArray
    shared: Mapping[str, float]

    @property
    def sums(self) -> FloatArray:
        """The sum of its prices for each point."""
        return np.asarray(self.matrix @ self.found)

    @property
    def cycles(self) -> FloatArray:
        """What the sum of its prices should be for each point."""
        measured = self.base + np.array([row.cycles for row in self.rows])
        return np.asarray(measured / self.beyond - self.base)

    def scaled(self, prices: Mapping[str, Price]) -> dict[str, Price]:
        factors: dict[Part, float] = dict(zip(self.names, self.found.tolist(), strict=True))

        def factor(part: Part) -> float:
            return factors.get(part, self.shared.get(_group(part), 1.0))

        return {key: scaled(p, factor((key, False)), factor((key, True))) for key, p in prices.items()}


def _fitted(reference: PrimitiveCosts, rows: Sequence[PriceRow]) -> _Fit:
    charged = [(row, parts) for row in rows if any((parts := _charged(reference, row)).values())]
    if len(charged) < FEWEST:
        raise NoVerdictError(f"{len(charged)} points say too little of another machine, of which {FEWEST} are needed")
    told = [row for row, _ in charged]
    names = sorted({part for _, parts in charged for part in parts})
    matrix = np.array([[parts.get(name, 0.0) for name in names] for _, parts in charged])
    base = np.array([row.baseline for row in told])
    beyond = np.array([_beyond(reference, row, sum(parts.values())) for row, parts in charged])
    groups = sorted({_group(part) for part in names} | {_group((key, False)) for key in reference.prices})
    fit = _Fit(told, names, matrix, np.zeros(len(names)), base, beyond, {})
    counted = np.array([SINGLE if row.experiment == CONSTRUCTS else 1.0 for row in told])
    weights = counted / np.maximum(fit.cycles + base, 1.0)
    common = np.array([[float(_group(part) == group) for group in groups] for part in names])
    system = np.block(
        [
            [matrix * weights[:, None], np.zeros((len(told), len(groups)))],
            [RIDGE * np.eye(len(names)), -RIDGE * common],
            [np.zeros((len(groups), len(names))), RIDGE * np.eye(len(groups))],
        ]
    )
    wanted = np.concatenate([fit.cycles * weights, np.zeros(len(names)), np.full(len(groups), RIDGE)])
    solved, _ = nnls(system, wanted)
    shared = dict(zip(groups, solved[len(names) :].tolist(), strict=True))
    return replace(fit, found=solved[: len(names)], shared=shared)


def _shaped(reference: PrimitiveCosts, fit: _Fit) -> PrimitiveCosts:
    """The reference with other shares of some prices, by the sizes that lookups have.

    The shares ``1 + s`` have the least ``sum over the points of (w (r - B s))^2 + STIFF^2 sum of d^2``, where ``r`` is
    what the factors leave, ``B`` is what they charge for lookups of each step, and ``d`` are the first three steps over
    a size, and what every other adds to the one before it: a lookup of one key says little of any other.
    """
    prices = fit.scaled({key: price for key, price in reference.prices.items() if key in SHAPED})
    steps = [(key, size, n) for key in prices for size in SHAPED[key] for n in range(len(STEPS[size]) // 2 + 1)]
    charged = np.zeros((len(fit.rows), len(steps)))
    for at, row in enumerate(fit.rows):
        for key, items in parts_of(row).items():
            for item in items if key in prices else ():
                cycles = item.times * prices[key].at(item.sizes)
                for size in SHAPED[key]:
                    step = sum(item.sizes[size] > knot for knot in STEPS[size][:-1:2])
                    charged[at, steps.index((key, size, step))] += cycles
    weights = 1.0 / np.maximum(fit.cycles + fit.base, 1.0)
    left = np.clip(weights * (fit.cycles - fit.sums), -OUTLIER, OUTLIER)
    system = weights[:, None] * charged
    stiff = np.eye(len(steps))
    for at, (key, size, step) in enumerate(steps):
        if step > 2:
            stiff[at, steps.index((key, size, step - 1))] = -1.0
    found = np.linalg.solve(system.T @ system + STIFF**2 * stiff.T @ stiff, system.T @ left)
    share = dict(zip(steps, (1.0 + found).tolist(), strict=True))
    return replace(reference, prices={**reference.prices, **{k: _stepped(reference.prices[k], share) for k in prices}})


def _stepped(price: Price, share: Mapping[tuple[str, str, int], float]) -> Price:
    factors = list(price.factors)
    for size in SHAPED[price.key]:
        knots = STEPS[size]
        shares = [max(share[price.key, size, n], LEAST) for n in range(len(knots) // 2 + 1)]
        if size != "key_bits":  # more of them never cost less
            shares = np.minimum.accumulate(shares[::-1])[::-1].tolist()
        values = tuple(shares[(n + 1) // 2] for n in range(len(knots)))
        known = next((c for c in factors if c.size == size and c.knots == knots), None)
        if known is not None:
            factors.remove(known)
            values = tuple(a * b for a, b in zip(values, known.values, strict=True))
        factors.append(Curve(size, "linear" if size == "key_bits" else "log", knots, values))
    return replace(price, factors=tuple(factors))


def _guessed(reference: PrimitiveCosts, rows: Sequence[PriceRow]) -> PrimitiveCosts:
    """The reference with a first guess for what points have and it charges nothing for: a write to a header field."""
    met = Counter(key for row in rows for key, parts in parts_of(row).items() if any(part.times > 0 for part in parts))
    found = {}
    for key in (key for key, points in met.items() if points >= FEWEST_OF_ONE and not key.startswith("lookup ")):
        if key in REUSE and key not in reference.prices:
            found[key] = REUSE[key]
            continue
        price = reference.prices.get(key, Price(key, 0.0, sources=("programs",)))
        guess = reference.prices.get(GUESSES.get(key, GUESS))
        if guess is not None and not price.constant and not price.curves:
            found[key] = replace(price, constant=guess.constant, limit=None)
    return replace(reference, prices={**reference.prices, **found})


def _group(part: Part) -> str:
    """The prices that a part is like."""
    key, more = part
    if key in MISPREDICTIONS:
        return "mispredicted branches"
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
        if key in many and (more := price.more * sum(surplus(row.met, {key: many[key]}))):
            found[key, True] = found.get((key, True), 0.0) + more
    return found


def _near(key: str, sizes: Mapping[str, float]) -> Mapping[str, float]:
    """The same lookup in a table that is in the caches; in a list of one entry."""
    return smallest_sizes(sizes) if key == LIST else cached_sizes(sizes)


def scaled(price: Price, near: float, far: float) -> Price:
    """A price with other cycles: ``near`` times those in the caches and of few in a row, ``far`` times the others."""
    curves = tuple(_scaled(curve, near, far, price.key == LIST) for curve in price.curves)
    limit = None if price.limit is None else near * price.limit
    return replace(
        price,
        constant=near * price.constant,
        curves=curves,
        spread=near * price.spread,
        limit=limit,
        more=far * price.more,
    )


def _scaled(curve: Curve, near: float, far: float, of_list: bool) -> Curve:
    if curve.size not in NEAR:
        return replace(curve, values=tuple(near * value for value in curve.values))
    last = curve.knots[0] if of_list else NEAR[curve.size]
    known = [*curve.knots]
    if curve.knots[0] < last < curve.knots[-1]:
        known = sorted({*known, last})
    edge = curve.at(last)
    values = tuple(near * min(curve.at(x), edge) + far * max(curve.at(x) - edge, 0.0) for x in known)
    return replace(curve, knots=tuple(known), values=values)
