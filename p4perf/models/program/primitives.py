"""Prices of the primitives of programs on one target: what a header, a lookup or a field write costs, with intervals.

A packet that meets constructs c, each n_c times, costs ``baseline + sum n_c price(c)`` cycles (the model of components
that add up, Scholz 2021, section 3, for finer things). What constructs cost beside one another beyond that sum is not
known here: lookups in tables that are larger than the caches cost more in long programs than alone.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

import numpy as np

from p4perf.errors import UsageError
from p4perf.models.component import Reader
from p4perf.models.estimate import Estimate
from p4perf.models.program import prices as pricing
from p4perf.models.program.composition import Composition, LoneCost, composed_features, nearby, side_by_side
from p4perf.models.program.costs import NOTHING, Basis, Charge, CostBreakdown
from p4perf.models.program.experience import Experience, Features, features
from p4perf.models.program.graph import Construct, construct
from p4perf.models.program.prices import Price, Quote
from p4perf.models.templates import FloatArray

Path = Sequence[tuple[Construct, float]]
"""What a packet meets, and how often."""

VERSION = 1
LEVEL = 0.9
TOGETHER = 0.1
"""Of 45 composed programs whose tables fit into the caches, nine of ten cost the sum of their parts within so large a
share (dpdk-c, dpdk-swx compiled and interpreted; 15 programs each, none of which prices were learnt from)."""

WAITS = "waits for memory"
"""What the remark of a lookup begins with whose price depends on what stands beside it."""

LARGE = 1.5
"""A lookup waits for memory if it costs this factor more than in a table that is in the caches. Searches of ternary
tables are left out, whose time may be that of a list."""

FAR: tuple[Basis, ...] = ("extrapolated", "bounded")
"""Bases of prices whose intervals are added to those of whole programs."""

FINER, FURTHER = 1.05, 3.0
"""Steps in which smaller and larger tables are looked at, and how much more these cost at most."""

PAID = "the baseline pays for one"

FORWARDING = (construct("extract", bytes=14), construct("emit", bytes=14), construct("set egress"))
"""What a program that only forwards meets: the baseline has paid for it."""

WAIT = construct("overlap", code="compiled", earlier=0.0, swaps=0.0)
"""What it meets besides where reads that wait for writes have a price."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well the sums of prices meet what was measured in one experiment.

    Args:
        median: of the errors, relative to the cost of the whole packet, baseline included.
        p90: their 90 % quantile.
        bias: mean of the signed errors; positive where the sum is too high.
        increment_median: of the errors relative to the cost over the baseline.
    """

    experiment: str
    points: int
    median: float
    p90: float
    bias: float
    increment_median: float


@dataclass(frozen=True)
class PrimitiveCosts:
    """The prices of one target on one machine [cycles/packet]; a :class:`~p4perf.models.program.costs.Pricing`.

    Args:
        composition: what measured components say of others, and of programs of them.
        scatter: shares of what tables beyond the caches cost, by which nine of ten starts cost less or more: last-level
            caches are shared with others.
    """

    target: str
    baseline: float
    prices: Mapping[str, Price]
    agreement: tuple[Agreement, ...] = ()
    remarks: tuple[str, ...] = field(default=())
    experience: Experience | None = None
    scatter: tuple[float, float] = (0.0, 0.0)
    composition: Composition | None = None

    def __post_init__(self) -> None:
        if wrong := [key for key, price in self.prices.items() if key != price.key]:
            raise UsageError(f"the price of {self.prices[wrong[0]].key} stands under {wrong[0]}")

    def charge(self, what: Construct, times: float = 1.0) -> Charge:
        """The price of one construct alone, met so often; ``low`` and ``high`` hold 90 % of what was measured."""
        return self._charge(what, times, pricing.surplus([(what, times)], self._many)[0])

    def _charge(self, what: Construct, times: float, beyond: float) -> Charge:
        """The price, with what those cost in addition that are too many in a row."""
        quote = self._lookup(what) if what.kind == "lookup" else self._quote(pricing.price_key(what), what)
        more, low, high = 0.0, times * quote.cycles.low, times * quote.cycles.high
        if beyond:
            price = self.prices[pricing.price_key(what)]
            more = beyond * price.more
            low, high = low + more * price.low, high + more * price.high
        source = ", ".join(quote.sources[:2])
        cycles = Estimate(times * quote.cycles.value + more, min(low, high), max(low, high))
        return Charge(what, times, cycles, source, quote.basis, quote.remark)

    @property
    def _many(self) -> dict[str, float]:
        return {key: price.many for key, price in self.prices.items() if price.many is not None}

    def charges(self, met: Sequence[tuple[Construct, float]]) -> tuple[Charge, ...]:
        """The prices of all that a packet meets, one charge for each, in order.

        What the baseline has paid for costs nothing. What it costs once that a packet is sent with other headers is
        charged with the first header that is added or removed.
        """
        found = []
        for (what, times), charge in zip(met, self.priced(beyond_forwarding(met, self._paid)), strict=True):
            if charge.times == times:
                found.append(charge)
            elif not charge.times:
                found.append(Charge(what, times, NOTHING, remark=PAID))
            else:
                remark = "; ".join(r for r in (charge.remark, PAID) if r)
                found.append(replace(charge, times=times, remark=remark))
        changed = self.changed_layout(met)
        first = next((n for n, c in enumerate(found) if c.what.kind in ("add header", "remove header")), None)
        if changed is not None and first is not None:
            one = found[first]
            remark = "; ".join(r for r in (one.remark, "with what other headers cost once") if r)
            found[first] = replace(one, cycles=one.cycles + changed.cycles, remark=remark)
        return tuple(found)

    @property
    def _paid(self) -> tuple[Construct, ...]:
        """What the baseline has paid for."""
        return (*FORWARDING, WAIT) if pricing.price_key(WAIT) in self.prices else FORWARDING

    def priced(self, met: Sequence[tuple[Construct, float]]) -> list[Charge]:
        """The prices of constructs that a packet meets one after another, nothing taken off."""
        known: dict[tuple[object, ...], Charge] = {}  # programs have the same constructs again and again
        found = []
        for (what, times), beyond in zip(met, pricing.surplus(met, self._many), strict=True):
            key = (what.kind, what.sizes, times, beyond)
            if key not in known:
                known[key] = self._charge(what, times, beyond)
            found.append(replace(known[key], what=what))
        return found

    def mispredicted(self, share: float) -> Charge | None:
        """What branches cost that are predicted wrong, that share of a packet on average; None if it is not known."""
        return self._extra(pricing.MISPREDICTION, share)

    def changed_layout(self, met: Sequence[tuple[Construct, float]]) -> Charge | None:
        """What it costs once that these constructs change the headers of a packet; None if it is not known."""
        return self._extra(pricing.LAYOUT, pricing.changes_layout(met))

    def _extra(self, key: str, share: float) -> Charge | None:
        price = self.prices.get(key)
        if price is None:
            return None
        what = Construct("unknown", (("name", key),))
        low = 0.0 if price.limit is not None else max(0.0, price.low * price.constant - price.spread)
        high = max(price.high * price.constant + price.spread, price.limit or 0.0)
        basis: Basis = "measured" if price.limit is None else "bounded"
        source = ", ".join(price.sources[:2])
        cycles = Estimate(share * price.constant, share * low, share * high)
        return Charge(what, share, cycles, source, basis)

    def breakdown(self, met: Sequence[tuple[Construct, float]]) -> CostBreakdown:
        """The sum, for a packet that meets these constructs; what the baseline has paid for is charged once.

        Where whole programs were measured, they say how far the sum is off, and how wide the interval is; beyond what
        was measured that of the price is added, and beyond the caches by how much starts scatter. Else errors of
        constructs with one price are taken to be the same, those of different prices to be independent, and so is what
        constructs cost beside one another, :data:`TOGETHER` of the sum.
        """
        # What a packet meets less what it meets in a program that only forwards, as points of measurements have it.
        increment = [*met, *((what, -1.0) for what in self._paid)]
        return self.summed(self.charges(met), increment, saved=self._saved(met))

    def _saved(self, met: Sequence[tuple[Construct, float]]) -> float:
        """What the baseline has paid for and these constructs have not [cycles]: packets that are dropped, say."""
        there: dict[str, float] = defaultdict(float)
        for what, times in met:
            there[pricing.price_key(what)] += times
        left = [(what, 1 - there[pricing.price_key(what)]) for what in self._paid]
        return sum(charge.cycles.value for charge in self.priced([each for each in left if each[1] > 0]))

    def summed(
        self,
        charges: tuple[Charge, ...],
        increment: Sequence[tuple[Construct, float]],
        baseline: float | None = None,
        saved: float = 0.0,
    ) -> CostBreakdown:
        """The sum of charges.

        Args:
            increment: what a packet meets beyond the baseline.
            baseline: cycles per packet; None: that of whole programs.
            saved: cycles of the baseline that the program has not.
        """
        base = self.baseline if baseline is None else baseline
        if self.experience is not None:
            return self._experienced(increment, charges, base, self.experience, saved=saved)
        below: dict[str, float] = defaultdict(float)
        above: dict[str, float] = defaultdict(float)
        for charge in charges:
            key = pricing.price_key(charge.what) if charge.basis != "unknown" else ""
            below[key] += charge.cycles.value - charge.cycles.low
            above[key] += charge.cycles.high - charge.cycles.value
        breakdown = CostBreakdown(base, charges, 0.0, 0.0, 0.0, LEVEL, warnings=_warnings(charges))
        breakdown = replace(breakdown, interaction=-min(saved, breakdown.cycles.value / 2))
        total = breakdown.cycles.value
        beside = TOGETHER * total if len(charges) > 1 else 0.0
        low = max(0.0, total - math.hypot(beside, *below.values()))
        return replace(breakdown, low=low, high=total + math.hypot(beside, *above.values()))

    def _experienced(
        self,
        increment: Sequence[tuple[Construct, float]],
        charges: tuple[Charge, ...],
        baseline: float,
        experience: Experience,
        described: Callable[[float], Features] | None = None,
        saved: float = 0.0,
        apart: Sequence[tuple[float, float]] = (),
    ) -> CostBreakdown:
        """The sum, and how far it is off.

        Args:
            described: the features of such a program with another sum.
            apart: how far the ends of further intervals are away, which are no matter of known programs.
        """
        told = described or (lambda cycles: features(increment, cycles))
        total = baseline + sum(charge.cycles.value for charge in charges)
        whole = max(total - saved, total / 2)
        grown = [times * (cycles - one) for times, cycles, one in self._lookups(increment, pricing.smallest_sizes)]
        sums, here = _sums_around(whole, whole - sum(grown)) if grown else (np.array([whole]), 0)
        means, halves = experience.errors([told(each) for each in sums.tolist()])
        low, value, high = (_rising(sums * np.exp(each), here) for each in (means - halves, means, means + halves))
        far = [charge.cycles for charge in charges if charge.basis in FAR]
        shares = (0.0, 0.0) if experience.scatters else self.scatter
        less, more = (share * self.waited(increment) for share in shares)
        ends = [*apart, (less, more), *((c.value - c.low, c.high - c.value) for c in far)]
        low = value - math.hypot(value - low, *(end for end, _ in ends))
        high = value + math.hypot(high - value, *(end for _, end in ends))
        warnings = _warnings(charges)
        return CostBreakdown(baseline, charges, value - total, max(0.0, low), high, LEVEL, warnings=warnings)

    def alone(self, path: Path) -> Estimate:
        """What a component costs beyond the baseline, a packet of which meets these constructs."""
        if self.composition is None:
            return self.added(path)
        base = self.composition.baseline
        found = self._experienced(path, self._charged(path), base, self.composition.alone).cycles
        return found.map(lambda x: max(x - base, 0.0))

    def added(self, path: Path) -> Estimate:
        """The prices of constructs, nothing taken off and nothing learnt from components."""
        return sum((charge.cycles for charge in self._charged(path)), NOTHING).map(lambda x: max(x, 0.0))

    def _charged(self, path: Path) -> tuple[Charge, ...]:
        more = self.changed_layout(path)
        return (*self.priced(path), *(() if more is None else (more,)))

    def beside(
        self,
        components: Sequence[tuple[str, Path]],
        whole: Path,
        charges: tuple[Charge, ...],
        composition: Composition,
    ) -> CostBreakdown:
        """The price of a program of components.

        Its interval has those of components that are unlike measured ones.

        Args:
            components: their names, and what a packet meets in each alone.
            whole: what it meets in all of them together.
            charges: what each costs alone.
        """
        if len(components) == 1:
            cycles = charges[0].cycles.map(lambda x: composition.baseline + x)
            warnings = _warnings(charges)
            return CostBreakdown(composition.baseline, charges, 0.0, cycles.low, cycles.high, LEVEL, warnings=warnings)
        names, paths = zip(*components, strict=True)
        top = side_by_side(composition.baseline, *self.apart(paths, whole), composition.window)
        saved = composition.baseline + sum(charge.cycles.value for charge in charges) - top
        waited = max(self.waited(whole), 1.0)

        def described(cycles: float) -> Features:  # what costs less has smaller tables
            return composed_features(names, whole, max(1 - (top - cycles) / waited, 0.0), cycles, self.target)

        apart = [
            composition.unlike(path, charge.cycles)
            for path, charge in zip(paths, charges, strict=True)
            if charge.basis not in FAR  # those are apart anyway
        ]
        return self._experienced(whole, charges, composition.baseline, composition.together, described, saved, apart)

    def apart(self, paths: Sequence[Path], whole: Path) -> tuple[list[LoneCost], float]:
        """What components cost alone, how much of it the wait for large tables is, and what they cost less together.

        Args:
            paths: what a packet meets in each alone.
            whole: what it meets in all of them together.
        """
        parts = []
        for path in paths:
            near, misses = nearby(path)
            cycles = self.alone(path).value
            less = min(self.alone(near).value, cycles) if misses else cycles
            parts.append(LoneCost(less, cycles - less, misses))
        return parts, sum(self.added(path).value for path in paths) - self.added(whole).value

    def _quote(self, key: str, what: Construct) -> Quote:
        price = self.prices.get(key)
        return pricing.stand_in(what, self.prices) if price is None else pricing.quoted(price, what, self.prices)

    def _lookup(self, what: Construct) -> Quote:
        """Hits and misses in their shares, and what it costs that a processor takes one for the other."""
        share = what.number(pricing.HIT)
        found = self._quote(pricing.price_key(what), what)
        if found == pricing.UNKNOWN:
            return found
        if self._waits(what, found.cycles.value):
            found = found.noted(found.basis, f"{WAITS}: its price depends on what stands beside it")
        if share >= 1:
            return found
        missed = self._missed(what, found)
        wrong = self.mispredicted(min(share, 1 - share))
        mixed = found.cycles * share + missed.cycles * (1 - share) + (NOTHING if wrong is None else wrong.cycles)
        sources = tuple(dict.fromkeys((*found.sources[:1], *missed.sources)))
        joined = replace(found, cycles=mixed, sources=sources)
        return joined.noted(pricing.weaker(found.basis, missed.basis), missed.remark)

    def _waits(self, what: Construct, cycles: float) -> bool:
        price = self.prices.get(pricing.price_key(what))
        if price is None or what.size("match_kind") == "ternary":
            return False
        return cycles > LARGE * price.at(pricing.cached_sizes(pricing.numeric_sizes(what)))

    def waited(self, met: Sequence[tuple[Construct, float]]) -> float:
        """What lookups in tables, and arrays, beyond the caches cost more than in others [cycles/packet]."""
        searched = [
            (what, times) for what, times in met if what.kind != "lookup" or what.size("match_kind") != "ternary"
        ]
        found = self._lookups(searched, pricing.cached_sizes)
        return sum(times * (cycles - near) for times, cycles, near in found if cycles > LARGE * near)

    def _lookups(
        self, met: Sequence[tuple[Construct, float]], resized: Callable[[Mapping[str, float]], Mapping[str, float]]
    ) -> Iterator[tuple[float, float, float]]:
        """How often each lookup with a price hits, what it costs then, and would cost with other sizes; arrays, too."""
        for what, times in met:
            known = dict(what.sizes)
            price = self.prices.get(pricing.price_key(what)) if known.keys() & {pricing.HIT, "cells"} else None
            if price is not None:
                sizes = pricing.numeric_sizes(what)
                yield times * float(known.get(pricing.HIT, 1.0)), price.at(sizes), price.at(resized(sizes))

    def _missed(self, what: Construct, found: Quote) -> Quote:
        """A lookup that finds nothing.

        It reads no action data and runs no action with any, so where it has no price it costs at most as much as one
        that finds an entry.
        """
        key, missed = pricing.missed(what)
        price = self.prices.get(key)
        known = found if price is None else pricing.quoted(price, missed, self.prices)
        if price is not None and known.basis != "unknown":
            return known
        value = min(known.cycles.value, found.cycles.value)
        bound = Quote(Estimate(value, 0.0, max(found.cycles.high, value)), "bounded", known.sources)
        return replace(bound, remark="of misses only a bound is known")

    def record(self) -> dict[str, Any]:
        """The prices as JSON values; :meth:`from_record` reads exactly the same back."""
        record = {
            "version": VERSION,
            "target": self.target,
            "baseline": self.baseline,
            "prices": [asdict(price) for price in self.prices.values()],
            "agreement": [asdict(each) for each in self.agreement],
            "remarks": self.remarks,
            "experience": None if self.experience is None else self.experience.record(),
            "scatter": self.scatter,
            "composition": None if self.composition is None else self.composition.record(),
        }
        found: dict[str, Any] = json.loads(json.dumps(record))  # lists in the place of tuples
        return found

    @classmethod
    def from_record(cls, record: object, *, file: str = "<model>") -> Self:
        """Read prices.

        Raises:
            DataError: the record is damaged, or of another version; names the file and the key.
        """
        root = Reader(record, file, "primitives.")
        if (version := root.raw("version")) != VERSION:
            root.fail("version", f"must be {VERSION}, not {version!r}", "upgrade p4perf to read newer models")
        prices: dict[str, Price] = {}
        for reader in root.children("prices"):
            price = pricing.read_price(reader)
            if price.key in prices:
                reader.fail("key", f"there are two prices of {price.key}")
            prices[price.key] = price
        told = root.data.get("experience") is not None
        experience = Experience.from_reader(root.child("experience")) if told else None
        told = root.data.get("composition") is not None
        composition = Composition.from_reader(root.child("composition")) if told else None
        return root.read(cls, "scatter", prices=prices, experience=experience, composition=composition)


def _sums_around(whole: float, least: float) -> tuple[FloatArray, int]:
    """Sums of prices, each :data:`FINER` times the one before it, from the least one on; where the whole one is."""
    steps = np.arange(math.ceil(math.log(FURTHER * whole / max(least, 1.0)) / math.log(FINER)))
    sums = max(least, 1.0) * FINER**steps
    here = int(np.searchsorted(sums, whole))
    return np.insert(sums, here, whole), here


def _rising(costs: FloatArray, here: int) -> float:
    """One of the costs of a program with tables of rising size, such that more entries never cost less.

    It is halfway between the most that smaller tables cost and the least that larger ones do: neither alone, which
    would be too high, or too low, wherever known programs disagree a little.
    """
    return float(np.max(costs[: here + 1]) + np.min(costs[here:])) / 2


def _warnings(charges: Sequence[Charge]) -> tuple[str, ...]:
    """What a cost breakdown has to say of sums that may be wrong."""
    found = []
    if any(WAITS in charge.remark for charge in charges):
        found.append("tables beyond the caches cost more beside other constructs than alone: the sum may be too low")
    if nameless := sorted({charge.what.kind for charge in charges if charge.basis == "unknown"}):
        found.append(f"there is no price of {', '.join(nameless)}: the sum is too low")
    return tuple(found)


def beyond_forwarding(
    met: Sequence[tuple[Construct, float]], forwarding: Sequence[Construct] = FORWARDING
) -> list[tuple[Construct, float]]:
    """What a packet meets beyond a program that only forwards: without its first Ethernet header and its port.

    One of each is taken off how often a construct is met, whatever its size is.
    """
    paid = {pricing.price_key(what): 1.0 for what in forwarding}
    left = []
    for what, times in met:
        key = pricing.price_key(what)
        less = min(paid.get(key, 0.0), max(times, 0.0))
        if less:
            paid[key] -= less
        left.append((what, times - less))
    return left
