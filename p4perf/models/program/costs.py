"""The cost model of one target on one machine: baseline, components, interactions, intervals.

What :mod:`p4perf.evaluation.prediction.learning` learns from measured runs. It prices constructs of the kind
``component``
(:class:`~p4perf.models.program.costs.Pricing`); the other kinds are priced by ``parts``, where there are any.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from p4perf.models.estimate import Estimate, exactly
from p4perf.models.program.curves import ComponentCosts, InterpolatedCost
from p4perf.models.program.graph import Construct, Size
from p4perf.models.program.interactions import CACHED, Composition, Form, Layout, TableUse, growth, missed_lookups

NOTHING = exactly(0.0)

Basis = Literal["measured", "interpolated", "extrapolated", "bounded", "unknown"]


@dataclass(frozen=True, slots=True)
class Charge:
    """The price of one construct.

    Args:
        times: how often a packet meets it, on average.
        cycles: of all these times together, per packet, with their interval.
        source: the component model that says so, such as ``mat/exact-entries``; empty if there is none.
        basis: how it is known. ``extrapolated``: outside of what was measured; ``bounded``: no model, but a bound;
            ``unknown``: neither, and ``cycles`` are 0.
        remark: for people, such as what was outside of which domain.
    """

    what: Construct
    times: float
    cycles: Estimate
    source: str = ""
    basis: Basis = "measured"
    remark: str = ""


@dataclass(frozen=True, slots=True)
class CostBreakdown:
    """The price of a path through a program, in cycles per packet.

    Args:
        baseline: what a program that only forwards costs.
        interaction: what constructs cost together beyond their sum (negative if less).
        low, high: ends of the interval of the sum.
        level: coverage that the interval aims at.
    """

    baseline: float
    charges: tuple[Charge, ...]
    interaction: float
    low: float
    high: float
    level: float = 0.9
    warnings: tuple[str, ...] = field(default=())

    @property
    def cycles(self) -> Estimate:
        """Cycles per packet."""
        value = self.baseline + sum(charge.cycles.value for charge in self.charges) + self.interaction
        return Estimate(value, self.low, self.high)


class Pricing(Protocol):
    """What says the price of constructs on one target of one machine."""

    @property
    def target(self) -> str: ...

    def charge(self, what: Construct, times: float = 1.0) -> Charge:
        """The price of one construct alone."""
        ...

    def breakdown(self, met: Sequence[tuple[Construct, float]]) -> CostBreakdown:
        """The price of all constructs that a packet meets, in the order in which it meets them, and how often."""
        ...


LEVEL = 0.9
NORMAL_90 = 1.645
"""Half the width of a 90 % interval in standard errors, of normally distributed values."""

TABLE = "match_action_table"
REPEATED = ("tables", "applications")
"""Parameters of a table that say how many lookups there are."""

CHAIN, HEADERS = "parser_headers", "headers"
"""The component that is a chain of headers, and the parameter that says how many."""

SLACK = 1.25
"""Programs may exceed the largest calibrated ones by this factor before a cost breakdown warns of it."""

LARGE = 1e6
"""Entries of a table whose size is a matter of its entries only."""


class PartPricing(Pricing, Protocol):
    """What prices constructs that are no components."""

    @property
    def knows_programs(self) -> bool:
        """Whether what constructs cost together is in its breakdowns, from programs that were measured."""
        ...

    def charges(self, met: Sequence[tuple[Construct, float]]) -> Sequence[Charge]:
        """One charge for each of several constructs, in order; what the baseline has paid for costs nothing."""
        ...

    def component(self, what: Construct, times: float = 1.0) -> Charge | None:
        """The price of a component as that of what it is made of; None if something of it has no price."""
        ...


@dataclass(frozen=True, slots=True)
class TableCache:
    """The cache in which tables cost little, and what distinguishes a table in it from one beyond it.

    Args:
        size_bytes, near_bytes: of the second-level cache, and of the first-level data cache.
        inside: entries of a usual table that fits into it well.
        beyond: entries of one most of whose lookups miss it.
    """

    size_bytes: float
    inside: float
    beyond: float
    near_bytes: float
    layout: Layout = "rte_hash"


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far composed programs were measured, and how well they were predicted by a model without them.

    Args:
        components: most of them in a program.
        tables, misses, cycles: most lookups, lookups that miss, and cycles of a packet.
        cached, beyond: relative half width of the 90 % interval of programs with all tables in the cache, and others.
    """

    programs: int
    components: int
    tables: float
    misses: float
    cycles: float
    cached: float
    beyond: float


@dataclass(frozen=True, slots=True)
class CheckedProgram:
    """A measured program and what the model says that was made without it. Cycles are per packet."""

    components: tuple[tuple[str, Mapping[str, Size]], ...]
    measured: float
    predicted: float


@dataclass(frozen=True)
class CostModel:
    """What programs cost on one target of one machine.

    Args:
        baseline: cycles per packet of the program that only forwards.
        cache: None where the size of the second-level cache is not known, or no table was measured.
        calibration: None if no composed program was measured.
        frame_bytes: frame size of all programs, with FCS.
        provenance: runs, versions and dates, as JSON values.
        primitives: prices of constructs that are no components, as JSON values; ``parts``, not stored, has them.
        translated: of a target whose programs are read as its own instructions: the prices of constructs of P4, for
            programs that p4perf translates, as JSON values.
        baseline_code_bytes: machine code of the program that only forwards; None if it was not measured.
    """

    target: str
    baseline: float
    baseline_error: float
    components: Mapping[str, ComponentCosts]
    form: Form = field(default_factory=Form)
    cache: TableCache | None = None
    calibration: Calibration | None = None
    checked: tuple[CheckedProgram, ...] = ()
    frame_bytes: int = 0
    machine: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    primitives: Mapping[str, Any] | None = None
    translated: Mapping[str, Any] | None = None
    baseline_code_bytes: float | None = None
    parts: PartPricing | None = field(default=None, compare=False, repr=False)

    def charge(self, what: Construct, times: float = 1.0) -> Charge:
        if what.kind != "component":
            if self.parts is not None:
                return self.parts.charge(what, times)
            return Charge(what, times, NOTHING, basis="unknown", remark=f"{what.kind} has no price here")
        name, parameters = _component(what)
        if name == "l2fwd":
            return Charge(what, times, NOTHING, "baseline")
        costs = self.components.get(name)
        lookups = 1.0
        if costs is not None and name == TABLE:
            lookups, parameters = self._single(costs, parameters)
        price = costs.price(parameters) if costs is not None else None
        if price is None:
            made = None if self.parts is None else self.parts.component(what, times)
            remark = f"component {name} was not measured so"
            return made or Charge(what, times, NOTHING, basis="unknown", remark=remark)
        return _charge(what, times, price, lookups, name)

    def breakdown(self, met: Sequence[tuple[Construct, float]]) -> CostBreakdown:
        """The price of what a packet meets.

        Programs of primitives have the charges of these, and what tables cost beside one another by this model; the
        interval is the wider one of both, relative to the sum.
        """
        beside = self._breakdown(met)
        if self.parts is None or any(what.kind == "component" for what, _ in met):
            return beside
        alone = self.parts.breakdown(met)
        if self.parts.knows_programs and self.composition(met, alone.charges).shared_misses < CACHED:
            return alone
        found = replace(alone, baseline=self.baseline, interaction=beside.interaction)
        sums = (alone.cycles, beside.cycles)
        down = max((cycles.value - cycles.low) / cycles.value for cycles in sums)
        up = max((cycles.high - cycles.value) / cycles.value for cycles in sums)
        return replace(
            found,
            low=max(found.cycles.value * (1 - down), 0.0),
            high=found.cycles.value * (1 + up),
            warnings=tuple(dict.fromkeys((*alone.warnings, *beside.warnings))),
        )

    def _breakdown(self, met: Sequence[tuple[Construct, float]]) -> CostBreakdown:
        charges = self._charges(met)
        program = self.composition(met, charges)
        total = self.form.total(program)
        alone = self.baseline + sum(c.cycles.value for c in charges)
        warnings = self._warnings(met, charges, program)
        # What a start differs from the next is in the residuals of calibration programs already.
        own = math.hypot(*(_half(c) for c in charges if c.basis != "measured"), 0.0)
        if self.calibration is None:
            share = 0.0
            own = math.hypot(NORMAL_90 * self.baseline_error, *(_half(c) for c in charges))
        else:
            share = self.calibration.cached if program.shared_misses < CACHED else self.calibration.beyond
        low, high = total / (1 + share), total / max(1 - share, 0.1)
        return CostBreakdown(
            baseline=self.baseline,
            charges=charges,
            interaction=total - alone,
            low=total - math.hypot(total - low, own),
            high=total + math.hypot(high - total, own),
            level=LEVEL,
            warnings=warnings,
        )

    def _charges(self, met: Sequence[tuple[Construct, float]]) -> tuple[Charge, ...]:
        if self.parts is None:
            return tuple(self.charge(what, times) for what, times in met)
        others = iter(self.parts.charges([each for each in met if each[0].kind != "component"]))
        return tuple(self.charge(w, times) if w.kind == "component" else next(others) for w, times in met)

    def composition(self, met: Sequence[tuple[Construct, float]], charges: Sequence[Charge]) -> Composition:
        uses = [self._use(what, times) for what, times in met]
        tables = [use for use in uses if use is not None and use.times > 0]
        parts = sum(charge.cycles.value > 0 for charge in charges)
        lookups = sum(use.times for use in tables)
        lookup_cycles = sum(c.cycles.value for c, use in zip(charges, uses, strict=True) if use is not None)
        others = sum(c.cycles.value for c in charges) - lookup_cycles
        apart = Composition(self.baseline, lookup_cycles, others, tables=lookups, pooled=self._pooled(met), parts=parts)
        if self.cache is None or not tables:
            return apart
        places = _places(met, uses)
        once = _once(places, uses)
        rises = dict(zip(once, growth(tuple(once.values()), self.cache.size_bytes), strict=True))
        shared, misses, shared_misses, missing, shared_missing = 0.0, 0.0, 0.0, 0.0, 0.0
        known: dict[tuple[object, ...], float] = {}

        def share(what: Construct, use: TableUse, entries: float) -> float:
            key = (what.kind, what.sizes, entries)
            if key not in known:
                known[key] = self._share(what, use, entries)
            return known[key]

        for (what, times), charge, use, place in zip(met, charges, uses, places, strict=True):
            if use is None or use.times <= 0:
                continue
            own = beside = share(what, use, use.entries)
            more = 0.0
            if (rise := rises[place]) is not None:
                ends = [self.charge(_resized(what, each), times).cycles.value for each in (rise.start, rise.end)]
                more = max(ends[1] - ends[0], 0.0)
                beside = min(own + share(what, use, rise.end) - share(what, use, rise.start), 1.0)
            shared += more
            misses, shared_misses = misses + use.times * own, shared_misses + use.times * beside
            missing += charge.cycles.value * own
            shared_missing += (charge.cycles.value + more) * beside
        return replace(
            apart,
            shared=shared,
            near_misses=missed_lookups(tuple(once.values()), self.cache.near_bytes),
            misses=misses,
            shared_misses=shared_misses,
            missing=missing,
            shared_missing=shared_missing,
        )

    def _pooled(self, met: Sequence[tuple[Construct, float]]) -> float:
        """What the headers of all parts cost in one chain more than in chains of their own."""
        costs = self.components.get(CHAIN)
        chains = [times * count for what, times in met if (count := _headers(what)) > 0]
        if costs is None or len(chains) < 2 or not costs.varies(HEADERS):
            return 0.0
        prices = [costs.price({HEADERS: count}) for count in (sum(chains), *chains)]
        cycles = [0.0 if price is None else price.cycles for price in prices]
        return cycles[0] - sum(cycles[1:])

    def _single(self, costs: ComponentCosts, parameters: Mapping[str, Size]) -> tuple[float, dict[str, Size]]:
        """How many lookups a component of tables has, and the parameters of one of them."""
        whole, lookups = dict(parameters), 1.0
        for name in REPEATED:
            if not costs.varies(name) and name in whole:
                lookups *= float(whole.pop(name))
        return lookups, whole

    def _use(self, what: Construct, times: float) -> TableUse | None:
        """A construct as a table in the cache; None if it is none, or one that is searched."""
        if what.kind == "lookup":
            sizes = (what.number("entries"), what.number("key_bits") / 8, what.number("action_data_bytes"))
            return self._table_use(str(what.size("match_kind")), *sizes, times)
        if what.kind != "component" or what.size("name") != TABLE or TABLE not in self.components:
            return None
        lookups, single = self._single(self.components[TABLE], _component(what)[1])
        whole = {**self.components[TABLE].defaults, **single}
        key_bytes = float(whole.get("key_bits", 128)) * float(whole.get("keys", 1)) / 8
        entries, data_bytes = float(whole.get("entries", 1)), float(whole.get("action_data_bytes", 64))
        return self._table_use(str(whole.get("match_kind", "exact")), entries, key_bytes, data_bytes, times * lookups)

    def _table_use(
        self, kind: str, entries: float, key_bytes: float, data_bytes: float, times: float
    ) -> TableUse | None:
        if kind not in ("exact", "lpm"):
            return None
        layout = "rte_hash" if self.cache is None else self.cache.layout
        return TableUse(max(entries, 1.0), key_bytes, data_bytes, times, kind == "lpm", layout)

    def _share(self, what: Construct, use: TableUse, entries: float) -> float:
        """Share of lookups that miss, as far as it shows: how far the cost has risen from inside to beyond."""
        if self.cache is None:
            return 0.0
        scale = TableUse(LARGE, layout=use.layout).size_bytes / replace(use, entries=LARGE).size_bytes
        if entries <= scale * self.cache.inside:
            return 0.0
        at, inside, beyond = (
            self.charge(_resized(what, e)).cycles.value
            for e in (entries, scale * self.cache.inside, scale * self.cache.beyond)
        )
        return min(max((at - inside) / (beyond - inside), 0.0), 1.0) if beyond > 1.05 * inside else 0.0

    def _warnings(
        self, met: Sequence[tuple[Construct, float]], charges: Sequence[Charge], program: Composition
    ) -> tuple[str, ...]:
        found = [f"no price is known for {_named(c)}: {c.remark}" for c in charges if c.basis == "unknown"]
        found += [
            f"{_named(c)} is outside of what was measured: {c.remark}" for c in charges if c.basis == "extrapolated"
        ]
        if self.calibration is None:
            if len(met) > 1:
                found.append("no composed programs were measured: the interval is that of the components alone")
            return tuple(dict.fromkeys(found))
        known = self.calibration
        sizes = (
            ("cycles per packet", self.form.total(program), known.cycles),
            ("lookups per packet", program.tables, known.tables),
            ("lookups per packet that miss the cache", program.shared_misses, max(known.misses, 1.0)),
        )
        found += [
            f"the program has {value:.3g} {what}; programs of up to {most:.3g} were measured"
            for what, value, most in sizes
            if value > SLACK * most
        ]
        return tuple(dict.fromkeys(found))


_Place = tuple[str | int, TableUse | None]
"""What distinguishes a table from others: where it stands, or for want of that its number, and what it is."""


def _places(met: Sequence[tuple[Construct, float]], uses: Sequence[TableUse | None]) -> list[_Place]:
    """The table of each construct. Copies of a step, for packets of other paths, share one table."""
    return [
        ((what.kind == "lookup" and what.where) or n, use and replace(use, times=0.0))
        for n, ((what, _), use) in enumerate(zip(met, uses, strict=True))
    ]


def _once(places: Sequence[_Place], uses: Sequence[TableUse | None]) -> dict[_Place, TableUse]:
    found: dict[_Place, TableUse] = {}
    for place, use in zip(places, uses, strict=True):
        if use is not None and use.times > 0:
            found[place] = replace(use, times=use.times + (found[place].times if place in found else 0.0))
    return found


def _headers(what: Construct) -> float:
    """How many headers the parser extracts for a construct; a component has one unless it is a chain of them."""
    if what.kind != "component" or what.size("name") == "l2fwd":
        return 0.0
    return what.number(HEADERS) if what.size("name") == CHAIN else 1.0


def _component(what: Construct) -> tuple[str, dict[str, Size]]:
    parameters = dict(what.sizes)
    return str(parameters.pop("name")), parameters


def _resized(what: Construct, entries: float) -> Construct:
    sizes = {**dict(what.sizes), "entries": entries}
    return replace(what, sizes=tuple(sizes.items()))


def _charge(what: Construct, times: float, price: InterpolatedCost, lookups: float, source: str) -> Charge:
    value, half = times * lookups * price.cycles, NORMAL_90 * times * lookups * price.error
    cycles = Estimate(value, value - half, value + half)
    if price.outside:
        return Charge(what, times, cycles, source, "extrapolated", "; ".join(price.outside))
    return Charge(what, times, cycles, source, "measured" if price.on_grid else "interpolated")


def _half(charge: Charge) -> float:
    return (charge.cycles.high - charge.cycles.low) / 2


def _named(charge: Charge) -> str:
    what = charge.what
    if what.where:
        return what.where
    return str(what.size("name")) if what.kind == "component" else what.kind
