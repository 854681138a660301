"""What one kind of construct costs as a function of its sizes, and the bounds of what was not measured.

Every rule is a function with its reason in its docstring. What no rule covers has no price.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from p4perf.errors import UsageError
from p4perf.models.component import Reader, Scale
from p4perf.models.estimate import Estimate
from p4perf.models.program.costs import NOTHING, Basis
from p4perf.models.program.graph import KINDS, Construct, Kind, construct
from p4perf.models.program.hashes import astray, extended

LABELS: Mapping[Kind, str] = {
    "lookup": "match_kind",
    "hash": "algorithm",
    "compute": "operator",
    "write": "to",
    "overlap": "code",
    "mispredicted branch": "after",
    "reuse": "of",
    "kept header": "step",
    "unknown": "name",
}
"""The size of a kind that is a word, for each value of which there is a price of its own."""

SAME_WORDS: Mapping[str, str] = {"csum16": "checksum16"}
"""Other words for labels: the JSON of bmv2 calls the internet checksum ``csum16``."""

HIT = "hit"
"""The share of packets that find an entry. It is no axis of a price: hits and misses have a price each."""

TABLE_BYTES = "table_bytes"
"""Memory that the lookups in a table touch: its entries with key, action data and :data:`SLOT_BYTES`."""

DATA_BYTES = "data_bytes"
"""Memory of the action data of a table, which fewer packets find in a cache than what leads to them."""

FURTHER_BYTES = "further_bytes"
"""Memory of the lines of action data that are not the first of their entry: SWX prefetches no others."""

COMPARED = "compared_words"
"""What a search of a list compares, of ternary tables: see :func:`compared_words`."""

MASKS = "masks"
"""How diverse the masks of a ternary table are, see :data:`~p4perf.models.program.graph.OPTIONAL`. A trie of too many
becomes too large, so rte_acl searches several tries, one after another."""

NODES = "nodes"
"""How many nodes of a trie the search of a longest prefix visits; if unknown, as with prefixes of one length."""

ASTRAY = "astray"
"""Share of the packets for which a processor mispredicts where an entry is, see
:data:`~p4perf.models.program.graph.OPTIONAL`; if unknown, as many as with random keys."""

OF_PREFIXES = 0.5
"""That share with prefixes of different lengths."""

EXTENDED = "extended"
"""Extensions of buckets that a lookup on SWX goes through; if unknown, as many as with random keys."""

PLACES = frozenset({NODES, ASTRAY, EXTENDED, FURTHER_BYTES})
"""Sizes that lookups of some targets grow with: where their entries are."""

WORD_BITS = 64

LINE_BYTES, ACTION_BYTES = 64, 8
"""Of a line of a cache, and of what stands before the action data of an entry on SWX: the number of its action."""

SLOT_BYTES = 64
"""What a hash table keeps of an entry besides key and data (signature, index, pointer)."""

REUSE_BYTES = "reuse_bytes"
"""What is touched until a line is used again."""

CACHED: Mapping[str, float] = {
    "entries": 1000.0,
    TABLE_BYTES: float(1 << 17),
    DATA_BYTES: float(1 << 16),
    FURTHER_BYTES: float(1 << 16),
    COMPARED: 2000.0,
    REUSE_BYTES: float(1 << 18),
}
"""A table with so many entries, bytes or words is in the second-level cache of any processor."""

NEAR: Mapping[str, float] = {**CACHED, "cells": float(1 << 14)}
"""The same of a table or an array."""

SIMPLE_OPERATORS = ("+", "-", "&", "|", "^", "~", "<<", ">>", "==", "!=", "<", ">", "<=", ">=")
"""Operators that a processor has an instruction of one cycle for."""

MISPREDICTION = "mispredicted branch lookup"
"""Key of the price of a mispredicted branch behind a lookup: a processor learns late that it was wrong."""

TURN = "mispredicted branch turn"
MISPREDICTIONS = (MISPREDICTION, "mispredicted branch start", "mispredicted branch prefix", TURN)

LAYOUT = "other headers"
"""Key of what it costs once that a packet is sent with other headers than it came with, however many these are."""


def changes_layout(met: Sequence[tuple[Construct, float]]) -> float:
    """How often a packet that meets these constructs is sent with other headers than it came with: once at most."""
    changes = [times for what, times in met if what.kind in ("add header", "remove header")]
    return min(1.0, max(changes, default=0.0))


def surplus(met: Sequence[tuple[Construct, float]], many: Mapping[str, float]) -> list[float]:
    """For each construct that a packet meets: how many of its times exceed the limit of its price in a row.

    Constructs stand in a row until the packet comes to a table: what follows on a lookup waits for it anyway.
    """
    found, counts = [], dict.fromkeys(many, 0.0)
    for what, times in met:
        if what.kind == "lookup":
            counts = dict.fromkeys(many, 0.0)
        key = price_key(what) if what.kind not in ("component", "unknown") else what.kind
        if key not in many or times <= 0:
            found.append(0.0)
            continue
        before, counts[key] = counts[key], counts[key] + times
        found.append(max(0.0, counts[key] - many[key]) - max(0.0, before - many[key]))
    return found


def price_key(what: Construct) -> str:
    """Under which name a construct has its price: ``extract``, ``lookup exact``, ``hash crc32``.

    Operators that a processor has an instruction of one cycle for have one price, ``compute``.
    """
    label = LABELS.get(what.kind)
    if label is None:
        return what.kind
    word = str(what.size(label))
    if what.kind == "compute" and word in SIMPLE_OPERATORS:
        return "compute"
    if word == "header" and what.number("bits") % 8:
        return PART_OF_A_BYTE
    return f"{what.kind} {SAME_WORDS.get(word, word)}"


PART_OF_A_BYTE = "write header part"
"""Key of a write to a header field that does not fill its bytes, so that they are read and written back."""


def missed(what: Construct) -> tuple[str, Construct]:
    """Under which name a lookup has its price where no entry is found, and what it is then.

    A search of a ternary table that ends at an entry passes half of them on average: one that finds none is one among
    twice as many.
    """
    if what.size("match_kind") != "ternary":
        return f"{price_key(what)} miss", what
    return price_key(what), replace(what, sizes=tuple((n, 2 * v if n == "entries" else v) for n, v in what.sizes))


def numeric_sizes(what: Construct) -> dict[str, float]:
    """The sizes of a construct that a price may depend on, in the order of :data:`KINDS`; of a lookup its memory."""
    if what.kind in ("component", "unknown"):
        return {}
    skipped = {HIT, LABELS.get(what.kind)}
    found = {name: what.number(name) for name in KINDS[what.kind] if name not in skipped}
    if (words := "key_bits" if what.kind == "select" else "bits") in found:
        # A processor handles up to 64 bit at once.
        found[words] = max(1.0, math.ceil(found[words] / WORD_BITS)) * WORD_BITS
    if what.kind == "lookup":
        entry_bytes = math.ceil(found["key_bits"] / 8) + found["action_data_bytes"] + SLOT_BYTES
        found[TABLE_BYTES] = found["entries"] * entry_bytes
        found[DATA_BYTES] = found["entries"] * found["action_data_bytes"]
        if what.size("match_kind") == "ternary":
            found[COMPARED] = compared_words(found["entries"], found["key_bits"])
            found[MASKS] = float(dict(what.sizes).get(MASKS, 1.0))
        if what.size("match_kind") == "lpm":
            found[NODES] = float(dict(what.sizes).get(NODES, 1 + math.log2(max(found["entries"], 1.0))))
            found[ASTRAY] = float(dict(what.sizes).get(ASTRAY, OF_PREFIXES if found["entries"] > 1 else 0.0))
        if what.size("match_kind") == "exact":
            lines = math.ceil((ACTION_BYTES + found["action_data_bytes"]) / LINE_BYTES)
            found[FURTHER_BYTES] = found["entries"] * (lines - 1) * LINE_BYTES
            found[ASTRAY] = float(dict(what.sizes).get(ASTRAY, astray(found["entries"])))
            found[EXTENDED] = float(dict(what.sizes).get(EXTENDED, extended(found["entries"])))
    return found


def compared_words(entries: float, key_bits: float) -> float:
    """Words of values and masks that a search of a whole list compares.

    An entry of up to 32 bit is one word, value and mask together; of up to 64 bit it is two, and so it is of up to 128
    bit, as most entries differ in the first half; action data are read of the entry only that is found.
    """
    return entries * (1.0 if key_bits <= WORD_BITS / 2 else max(2.0, math.ceil(key_bits / WORD_BITS)))


def cached_sizes(sizes: Mapping[str, float]) -> dict[str, float]:
    """The same sizes, of a table or array that is in the caches."""
    return {name: min(size, NEAR.get(name, math.inf)) for name, size in sizes.items()}


def smallest_sizes(sizes: Mapping[str, float]) -> dict[str, float]:
    """The same sizes, of a table with one entry, or an array of one cell."""
    smallest = dict.fromkeys((*NEAR, NODES), 1.0) | {ASTRAY: 0.0, EXTENDED: 0.0}
    return {name: min(size, smallest.get(name, size)) for name, size in sizes.items()}


@dataclass(frozen=True, slots=True)
class Curve:
    """A piecewise-linear function of one size.

    Between two knots it is a straight line over the axis. Below the first knot it is constant, so that it is no lower
    than what was measured; above the last one it continues as steep as before. Over the width of a key it is there at
    least as steep as from end to end: keys are searched byte by byte, and if the last two widths that were measured
    cost the same by chance, wider ones do not.

    Args:
        scale: axis on which its parts are straight.
        knots: ascending sizes, two at least; above zero on a logarithmic axis.
    """

    size: str
    scale: Scale
    knots: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.knots) < 2 or len(self.knots) != len(self.values):
            raise UsageError(f"a curve over {self.size} has two knots at least, and a value for each")
        if any(b <= a for a, b in zip(self.knots, self.knots[1:], strict=False)):
            raise UsageError(f"the knots of a curve over {self.size} must ascend")
        if self.scale == "log" and self.knots[0] <= 0:
            raise UsageError(f"a curve over the logarithm of {self.size} has no knot at {self.knots[0]:g}")

    def at(self, x: float) -> float:
        if x <= self.knots[0]:
            return self.values[0]
        n = next((n for n, knot in enumerate(self.knots[1:-1]) if x <= knot), len(self.knots) - 2)
        steep = self._steep(n, n + 1)
        if self.size == "key_bits" and x > self.knots[-1]:
            n, steep = len(self.knots) - 1, max(steep, self._steep(0, -1))
        return self.values[n] + steep * (self.axis(x) - self.axis(self.knots[n]))

    def _steep(self, first: int, last: int) -> float:
        """How steep the line between two knots is."""
        rise = self.values[last] - self.values[first]
        return rise / (self.axis(self.knots[last]) - self.axis(self.knots[first]))

    def axis(self, x: float) -> float:
        return math.log(x) if self.scale == "log" else x


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of one size at which a price was measured, ascending."""

    size: str
    measured: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.measured or list(self.measured) != sorted(set(self.measured)):
            raise UsageError(f"the measured values of {self.size} must be sizes that ascend, one at least")

    @property
    def low(self) -> float:
        return self.measured[0]

    @property
    def high(self) -> float:
        return self.measured[-1]

    def holds(self, x: float) -> bool:
        return self.low <= x <= self.high


@dataclass(frozen=True, slots=True)
class Price:
    """The price of one kind of construct: ``(constant + sum of curves) * product of factors``, in cycles.

    Each one beyond ``many`` in a row costs ``more`` cycles more (see :func:`surplus`): of few, a processor does some
    beside other work; None if any number does.

    Args:
        key: its name, see :func:`price_key`.
        constant: in cycles; what the smallest construct costs that was measured, where there are curves.
        curves: in cycles, each zero at its first knot.
        factors: without unit, each one at the size where it was measured.
        domains: where it was measured, of every size.
        low, high: ends of the interval as shares of the price, at most 1 and at least 1.
        spread: cycles by which both ends are further away: what points are off for each of their constructs.
        points, sources: how many measured points it rests on, and their experiments, the one that says most first.
        limit: None, or where the points do not tell this construct from others: cycles that it costs at most.
    """

    key: str
    constant: float
    curves: tuple[Curve, ...] = ()
    factors: tuple[Curve, ...] = ()
    domains: tuple[Domain, ...] = ()
    low: float = 1.0
    high: float = 1.0
    spread: float = 0.0
    points: int = 0
    sources: tuple[str, ...] = ()
    limit: float | None = None
    many: float | None = None
    more: float = 0.0

    def at(self, sizes: Mapping[str, float]) -> float:
        """Cycles of one construct of these sizes."""
        total = self.constant + sum(curve.at(sizes[curve.size]) for curve in self.curves)
        for factor in self.factors:
            total *= factor.at(sizes[factor.size])
        return total

    def outside(self, sizes: Mapping[str, float]) -> list[Domain]:
        return [d for d in self.domains if not d.holds(sizes[d.size])]

    def was_measured(self, sizes: Mapping[str, float]) -> bool:
        return all(sizes[d.size] in d.measured for d in self.domains)


def read_price(reader: Reader) -> Price:
    """The price of an object with a key for each of its fields."""
    found = reader.read(Price)
    if not 0 <= found.low <= 1 <= found.high:
        reader.fail("low", f"low and high must hold 1 between them, not {found.low:g} and {found.high:g}")
    for name in ("constant", "spread", "more"):
        if (value := getattr(found, name)) < 0:
            reader.fail(name, f"must not be negative: {value:g}")
    known = set(_sizes_of(found.key))
    used = {c.size for c in (*found.curves, *found.factors)} | {d.size for d in found.domains}
    if strange := sorted(used - known):
        reader.fail("key", f"{found.key} has no size {strange[0]}")
    return found


def _sizes_of(key: str) -> tuple[str, ...]:
    kinds = [kind for kind in KINDS if key == kind or key.startswith(f"{kind} ")]
    return (*KINDS[max(kinds, key=len)], TABLE_BYTES, DATA_BYTES, COMPARED, MASKS, *PLACES) if kinds else ()


TAIL = 8.0
"""How far the end of a curve over entries reaches: to that share of the most entries."""

WIDER = 2.0
"""Factor by which an interval is wider beyond what was measured."""

_OF_HEADERS = ("extract", "emit", "add header", "remove header")
"""Kinds that cost as much with more bytes than were measured: what bytes cost is in the statements that write them."""

_ORDER: tuple[Basis, ...] = ("measured", "interpolated", "extrapolated", "bounded", "unknown")


@dataclass(frozen=True, slots=True)
class Quote:
    """What one construct costs, met once."""

    cycles: Estimate
    basis: Basis
    sources: tuple[str, ...] = ()
    remark: str = ""

    def within(self, low: float, high: float) -> Quote:
        return replace(self, cycles=Estimate(self.cycles.value, low, high))

    def noted(self, basis: Basis, remark: str) -> Quote:
        """The same, known no better than that, with one remark more."""
        remarks = "; ".join(r for r in (self.remark, remark) if r)
        return replace(self, basis=weaker(self.basis, basis), remark=remarks)


UNKNOWN = Quote(NOTHING, "unknown")


def weaker(one: Basis, other: Basis) -> Basis:
    return max(one, other, key=_ORDER.index)


def quoted(price: Price, what: Construct, prices: Mapping[str, Price]) -> Quote:
    """A construct of a kind that was measured, whatever its sizes are."""
    sizes = numeric_sizes(what)
    outside = price.outside(sizes)
    held = {d.size: d.high for d in outside if what.kind in _OF_HEADERS and sizes[d.size] > d.high}
    cycles = price.at({**sizes, **held})
    basis: Basis = "measured" if price.was_measured(sizes) else "interpolated"
    low, high = max(0.0, cycles * price.low - price.spread), cycles * price.high + price.spread
    quote = Quote(Estimate(cycles, low, high), basis, price.sources)
    if price.limit is not None:
        quote = quote.within(0.0, max(price.limit, high)).noted("bounded", "not separated from its neighbours")
    curves = {c.size for c in (*price.curves, *price.factors)}
    for domain in outside:
        if domain.size in CACHED:
            continue
        # Where only one size was measured, the price is taken to be the same for others.
        rule = (
            _beyond
            if domain.size in curves and domain.size != "cells"
            else _RULES.get((what.kind, domain.size), _beyond)
        )
        quote = rule(quote, domain, sizes[domain.size], prices)
    searched = [d for d in outside if d.size in curves & set(CACHED)] or [d for d in outside if d.size in CACHED][:1]
    return _searched(quote, searched, sizes, price) if searched else quote


_FAR = (float(1 << 15), float(1 << 18), float(1 << 20), float(1 << 22), float(1 << 25))
_OF_TABLES = Curve(REUSE_BYTES, "log", _FAR, (0.0, 4.0, 20.0, 200.0, 350.0))
_OF_BRANCHES = Curve(REUSE_BYTES, "log", _FAR, (0.0, 25.0, 120.0, 200.0, 300.0))

REUSE: Mapping[str, Price] = {
    key: Price(key, 0.0, (_OF_BRANCHES if key == "reuse branch" else _OF_TABLES,), sources=("programs",))
    for key in ("reuse exact", "reuse lpm", "reuse ternary", "reuse branch")
}
"""What lines that are far away cost compiled programs, as measured on an AMD EPYC 9004; where nothing else is known."""


# --- sizes at which nothing was measured

_Rule = Callable[[Quote, Domain, float, Mapping[str, Price]], Quote]


def _text(domain: Domain) -> str:
    if domain.low == domain.high:
        return f"{domain.size} {domain.low:g}"
    return f"{domain.size} {domain.low:g} to {domain.high:g}"


def _beyond(quote: Quote, domain: Domain, x: float, prices: Mapping[str, Price]) -> Quote:
    """Where a curve was measured it continues as steep as at its end; the interval is wider."""
    cycles = quote.cycles
    low = max(0.0, cycles.value - WIDER * (cycles.value - cycles.low))
    high = cycles.value + WIDER * (cycles.high - cycles.value)
    return quote.within(low, high).noted("extrapolated", f"measured with {_text(domain)}, not {x:g}")


def _searched(quote: Quote, domains: Sequence[Domain], sizes: Mapping[str, float], price: Price) -> Quote:
    """A lookup in a larger table than was measured, or a smaller one.

    The cost grows with a power of the size: with that by which it grew at the end of what was measured, none for a
    table in a cache, the first for a list; half of it at least, and twice of it and a tenth at most. A list is the
    worst: twice as many entries cost at most twice as much. What one size costs says of larger ones only that they cost
    at least that.
    """
    domain = max(domains, key=lambda d: sizes[d.size] / d.high)
    remark = f"measured with {_text(domain)}, not {sizes[domain.size]:g}"
    if sizes[domain.size] < domain.low:
        return quote.within(0.0, quote.cycles.high).noted("bounded", remark)
    if domain.low == domain.high:
        return quote.noted("unknown", f"{remark}: it costs at least that")
    larger, reach = sizes[domain.size] / domain.high, min(TAIL, domain.high / max(domain.low, 1.0))

    def smaller(factor: float) -> float:
        """The price of a table that is smaller by a factor: its entries, and with them its bytes."""
        return price.at({n: size / factor if n in CACHED else size for n, size in sizes.items()})

    end, earlier = smaller(larger), smaller(larger * reach)
    power = math.log(end / earlier) / math.log(reach) if end > earlier > 0 else 0.0
    power = min(power, 1.0)
    value, low, high = (larger**p for p in (power, power / 2, min(2 * power + 0.1, 1.0)))
    share = end / quote.cycles.value if quote.cycles.value > 0 else 1.0
    found = (quote.cycles.value * value, quote.cycles.low * low, quote.cycles.high * high)
    return replace(quote, cycles=Estimate(*(share * cycles for cycles in found))).noted("extrapolated", remark)


def _words(quote: Quote, domain: Domain, x: float, prices: Mapping[str, Price]) -> Quote:
    """A processor handles up to 64 bit at once: only the number of such words matters."""
    words, known = math.ceil(x / WORD_BITS) or 1, math.ceil(domain.high / WORD_BITS) or 1
    if words <= known:
        return quote.noted("interpolated", "")
    times = words / known
    wider = replace(quote, cycles=Estimate(times * quote.cycles.value, quote.cycles.low, times * quote.cycles.high))
    return wider.noted("extrapolated", f"measured with {_text(domain)}; {x:g} bit are {words} words")


def _cells(quote: Quote, domain: Domain, x: float, prices: Mapping[str, Price]) -> Quote:
    """Fewer cells are in nearer caches, so they cost at most as much; more of them cost at least as much.

    With more cells, the price grows at most as that of an exact table between as many entries does: a cell takes no
    more memory than an entry, and an access to it touches one place, a lookup two at least.
    """
    if x < domain.low:
        return quote.within(0.0, quote.cycles.high).noted("bounded", f"at most what {_text(domain)} cost")
    table = prices.get("lookup exact")
    growth = 0.0
    if table is not None and (axis := next((c for c in table.curves if c.size in CACHED), None)) is not None:
        others = {c.size: 0.0 for c in table.curves} | {d.size: d.low for d in table.domains}
        unit = 1.0 if axis.size == "entries" else SLOT_BYTES
        growth = max(0.0, table.at(others | {axis.size: unit * x}) - table.at(others | {axis.size: unit * domain.high}))
    remark = f"at least what {_text(domain)} cost, at most with the memory of a table of as many entries"
    return quote.within(quote.cycles.low, quote.cycles.high + growth).noted("bounded", remark)


def _copied(quote: Quote, domain: Domain, x: float, prices: Mapping[str, Price]) -> Quote:
    """A copy of a larger frame costs at least what that of a smaller one does, and at most in proportion."""
    if x <= domain.low:
        return quote.within(0.0, quote.cycles.high).noted("bounded", f"at most what {_text(domain)} cost")
    high = quote.cycles.high * x / domain.high
    return quote.within(quote.cycles.low, high).noted(
        "bounded", f"between the price of {_text(domain)} and one in proportion"
    )


_RULES: Mapping[tuple[Kind, str], _Rule] = {
    ("write", "bits"): _words,
    ("compute", "bits"): _words,
    ("condition", "bits"): _words,
    ("random", "bits"): _words,
    ("select", "key_bits"): _words,
    ("register read", "bits"): _words,
    ("register write", "bits"): _words,
    ("counter", "cells"): _cells,
    ("meter", "cells"): _cells,
    ("register read", "cells"): _cells,
    ("register write", "cells"): _cells,
    ("clone", "bytes"): _copied,
}


# --- kinds without data


def stand_in(what: Construct, prices: Mapping[str, Price]) -> Quote:
    """A bound for a construct of a kind that was not measured; nothing where there is no sensible one."""
    if what.kind in ("drop", "call", "level", "kept header") or price_key(what) == TURN:
        return Quote(NOTHING, "measured")  # a mark, saved anyway; in the errors of whole programs
    if what.kind in _ALIKE:
        key, why = _ALIKE[what.kind]
        like = construct("condition", bits=1) if what.kind == "jump" else what
        return _at_most(like, [key, what.kind], prices, why)  # models of before have one price of mispredictions
    rule = _STAND_INS.get(what.kind)
    return UNKNOWN if rule is None else rule(what, prices)


def _at_most(what: Construct, keys: list[str], prices: Mapping[str, Price], why: str) -> Quote:
    """At most the highest of some prices."""
    found = [quoted(prices[key], what, prices) for key in keys if key in prices]
    if not found:
        return UNKNOWN
    top = max(found, key=lambda q: q.cycles.value)
    return replace(top.within(0.0, top.cycles.high), remark="").noted("bounded", why)


def _table(what: Construct, prices: Mapping[str, Price]) -> Quote:
    """Exact, lpm and optional keys are taken to cost at most what ternary ones do, which can say the same.

    A range of w bits is at most 2 w - 2 prefixes (Srinivasan and others 1998), so a table of ranges costs at most
    what a ternary one with that multiple of its entries does.
    """
    ternary = prices.get("lookup ternary")
    if ternary is None or price_key(what) == ternary.key:
        return UNKNOWN
    like = replace(what, sizes=tuple((n, "ternary" if n == "match_kind" else size) for n, size in what.sizes))
    found = _at_most(like, [ternary.key], prices, "at most what the same ternary table costs")
    if what.size("match_kind") != "range":
        return found
    sizes = numeric_sizes(like)
    prefixes = max(1.0, 2 * sizes["key_bits"] - 2)
    many = {name: size * prefixes if name in CACHED else size for name, size in sizes.items()}
    many[COMPARED] = compared_words(many["entries"], many["key_bits"])
    remark = "as a ternary table of as many entries, at most as one of all prefixes of its ranges"
    return replace(found.within(found.cycles.low, ternary.at(many) * ternary.high), remark=remark)


def _operator(what: Construct, prices: Mapping[str, Price]) -> Quote:
    """An operator of one instruction costs at most as much as the most expensive one that was measured."""
    if what.size("operator") not in SIMPLE_OPERATORS:
        return UNKNOWN
    keys = [key for key in prices if key.startswith("compute")]
    return _at_most(what, keys, prices, "at most what the most expensive measured operator costs")


def _written(what: Construct, prices: Mapping[str, Price]) -> Quote:
    """Header fields are stored in the packet and in its order of bytes: writing metadata costs at most as much.

    Of a field that does not fill its bytes, too, nothing better is known than what another one costs.
    """
    if price_key(what) == "write header":
        return UNKNOWN
    return _at_most(what, ["write header"], prices, "at most what writing a header field costs")


def _overlapped(what: Construct, prices: Mapping[str, Price]) -> Quote:
    """A wait for an earlier write costs at most what writing a header field does, where that has such waits in it.

    Code is compiled or interpreted: a target with a price of the one has no waits of the other.
    """
    if any(key.startswith("overlap ") for key in prices):
        return Quote(NOTHING, "measured")
    like = construct("write", bits=WORD_BITS, to="header")
    found = _at_most(like, ["write header"], prices, "in the prices of writes, where it has none of its own")
    return found if found.basis == "unknown" else replace(found, cycles=replace(found.cycles, value=0.0))


def _reused(what: Construct, prices: Mapping[str, Price]) -> Quote:
    """What it costs elsewhere that lines are far away: that is of the same order on all processors."""
    price = REUSE.get(price_key(what), REUSE["reuse ternary"])
    cycles = price.at(numeric_sizes(what))
    return Quote(Estimate(cycles, 0.0, 2 * cycles), "bounded", (), "as on another processor")


_STAND_INS: Mapping[Kind, Callable[[Construct, Mapping[str, Price]], Quote]] = {
    "lookup": _table,
    "compute": _operator,
    "write": _written,
    "overlap": _overlapped,
    "reuse": _reused,
}

_ALIKE: Mapping[Kind, tuple[str, str]] = {
    "jump": ("condition", "at most what a condition costs"),
    # The sooner a processor knows that it was wrong, the less of its work is lost.
    "mispredicted branch": (MISPREDICTION, "at most what one behind a lookup costs"),
    # Verifying is the sum of an update and a comparison instead of a write.
    "checksum verify": ("checksum update", "taken from checksum update"),
    "checksum update": ("checksum verify", "taken from checksum verify"),
    # Both touch the same memory.
    "register read": ("register write", "taken from register write"),
    "register write": ("register read", "taken from register read"),
}
"""The price that bounds another kind, and the remark."""
