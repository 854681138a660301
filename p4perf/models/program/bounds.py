"""What is said of the price of constructs that were not measured: sizes beyond what was, and kinds without any data.

Every rule is a function with its reason in its docstring. What no rule covers has no price.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from p4perf.models.program.bill import Basis
from p4perf.models.program.constructs import Construct, Kind, construct
from p4perf.models.program.prices import Domain, Price, numeric_sizes, price_key

WORD_BITS = 64
WIDER = 2.0
"""Beyond what was measured an interval is so many times as wide."""

_ORDER: tuple[Basis, ...] = ("measured", "interpolated", "extrapolated", "bounded", "unknown")


@dataclass(frozen=True, slots=True)
class Quote:
    """What one construct costs, met once.

    Args:
        cycles: the price.
        low: lower end of its interval.
        high: upper end.
        basis: how it is known.
        sources: experiments that it comes from.
        remark: for people.
    """

    cycles: float
    low: float
    high: float
    basis: Basis
    sources: tuple[str, ...] = ()
    remark: str = ""

    def noted(self, basis: Basis, remark: str) -> Quote:
        """The same, known no better than that, with one remark more."""
        remarks = "; ".join(r for r in (self.remark, remark) if r)
        return replace(self, basis=weaker(self.basis, basis), remark=remarks)


UNKNOWN = Quote(0.0, 0.0, 0.0, "unknown")


def weaker(one: Basis, other: Basis) -> Basis:
    """Which of two says less."""
    return max(one, other, key=_ORDER.index)


def quoted(price: Price, what: Construct, prices: Mapping[str, Price]) -> Quote:
    """A construct of a kind that was measured, whatever its sizes are."""
    sizes = numeric_sizes(what)
    cycles = price.at(sizes)
    basis: Basis = "measured" if price.was_measured(sizes) else "interpolated"
    low, high = max(0.0, cycles * price.low - price.spread), cycles * price.high + price.spread
    quote = Quote(cycles, low, high, basis, price.sources)
    if price.limit is not None:
        high = max(price.limit, quote.high)
        quote = replace(quote, low=0.0, high=high).noted("bounded", "not told from what it was measured with")
    for domain in price.outside(sizes):
        curves = {c.size for c in (*price.curves, *price.factors)}
        rule = _beyond if domain.size in curves else _RULES.get((what.kind, domain.size), _elsewhere)
        quote = rule(quote, domain, sizes[domain.size], prices)
    return quote


# --- sizes at which nothing was measured

_Rule = Callable[[Quote, Domain, float, Mapping[str, Price]], Quote]


def _text(domain: Domain) -> str:
    if domain.low == domain.high:
        return f"{domain.size} {domain.low:g}"
    return f"{domain.size} {domain.low:g} to {domain.high:g}"


def _beyond(quote: Quote, domain: Domain, x: float, prices: Mapping[str, Price]) -> Quote:
    """Where a curve was measured it goes on as steep as at its end; the interval is wider."""
    low = max(0.0, quote.cycles - WIDER * (quote.cycles - quote.low))
    high = quote.cycles + WIDER * (quote.high - quote.cycles)
    return replace(quote, low=low, high=high).noted("extrapolated", f"measured with {_text(domain)}, not {x:g}")


def _elsewhere(quote: Quote, domain: Domain, x: float, prices: Mapping[str, Price]) -> Quote:
    """Where only one size was measured, the price is taken to be the same for others."""
    return _beyond(quote, domain, x, prices)


def _words(quote: Quote, domain: Domain, x: float, prices: Mapping[str, Price]) -> Quote:
    """A processor handles up to 64 bit at once: within so many words the width does not matter, beyond it by words."""
    words, known = math.ceil(x / WORD_BITS) or 1, math.ceil(domain.high / WORD_BITS) or 1
    if words <= known:
        return quote.noted("interpolated", "")
    times = words / known
    wider = replace(quote, cycles=times * quote.cycles, low=quote.low, high=times * quote.high)
    return wider.noted("extrapolated", f"measured with {_text(domain)}; {x:g} bit are {words} words")


def _cells(quote: Quote, domain: Domain, x: float, prices: Mapping[str, Price]) -> Quote:
    """Fewer cells are in nearer caches, so they cost at most as much; more of them cost at least as much.

    With more cells, the price grows at most as that of an exact table between as many entries does: a cell takes no
    more memory than an entry, and an access to it touches one place, a lookup two at least.
    """
    if x < domain.low:
        return replace(quote, low=0.0).noted("bounded", f"at most what {_text(domain)} cost")
    table = prices.get("lookup exact")
    growth = 0.0
    if table is not None and any(c.size == "entries" for c in table.curves):
        others = {d.size: d.low for d in table.domains}
        growth = max(0.0, table.at(others | {"entries": x}) - table.at(others | {"entries": domain.high}))
    remark = f"at least what {_text(domain)} cost, at most with the memory of a table of as many entries"
    return replace(quote, high=quote.high + growth).noted("bounded", remark)


def _copied(quote: Quote, domain: Domain, x: float, prices: Mapping[str, Price]) -> Quote:
    """A copy of a larger frame costs at least what that of a smaller one does, and at most in proportion."""
    if x <= domain.low:
        return replace(quote, low=0.0).noted("bounded", f"at most what {_text(domain)} cost")
    high = quote.high * x / domain.high
    return replace(quote, high=high).noted("bounded", f"between the price of {_text(domain)} and one in proportion")


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

SIMPLE_OPERATORS = ("+", "-", "&", "|", "^", "~", "<<", ">>", "==", "!=", "<", ">", "<=", ">=")
"""Operators that a processor has an instruction of one cycle for."""


def stand_in(what: Construct, prices: Mapping[str, Price]) -> Quote:
    """A bound for a construct of a kind that was not measured; nothing where there is no sensible one."""
    rule = _STAND_INS.get(what.kind)
    return UNKNOWN if rule is None else rule(what, prices)


def _at_most(what: Construct, keys: list[str], prices: Mapping[str, Price], why: str) -> Quote:
    """At most the highest of some prices."""
    found = [quoted(prices[key], what, prices) for key in keys if key in prices]
    if not found:
        return UNKNOWN
    top = max(found, key=lambda q: q.cycles)
    return replace(top, low=0.0, remark="").noted("bounded", why)


def _table(what: Construct, prices: Mapping[str, Price]) -> Quote:
    """Exact, lpm and optional keys are taken to cost at most what ternary ones do, which can say the same.

    A range of w bits is at most 2 w - 2 prefixes (Srinivasan and others 1998), so a table of ranges costs at most
    what a ternary one with so many times its entries does.
    """
    ternary = prices.get("lookup ternary")
    if ternary is None or price_key(what) == ternary.key:
        return UNKNOWN
    found = _at_most(what, [ternary.key], prices, "at most what the same ternary table costs")
    if what.size("match_kind") != "range":
        return found
    sizes = numeric_sizes(what)
    many = sizes | {"entries": sizes["entries"] * max(1.0, 2 * sizes["key_bits"] - 2)}
    remark = "as a ternary table of as many entries, at most as one of all prefixes of its ranges"
    return replace(found, high=ternary.at(many) * ternary.high, remark=remark)


def _operator(what: Construct, prices: Mapping[str, Price]) -> Quote:
    """An operator that takes a processor one instruction costs at most as much as the dearest that was measured."""
    if what.size("operator") not in SIMPLE_OPERATORS:
        return UNKNOWN
    keys = [key for key in prices if key.startswith("compute ")]
    return _at_most(what, keys, prices, "at most what the dearest measured operator costs")


def _written(what: Construct, prices: Mapping[str, Price]) -> Quote:
    """Header fields are stored in the packet and in its order of bytes: writing metadata costs at most as much."""
    if what.size("to") == "header":
        return UNKNOWN
    return _at_most(what, ["write header"], prices, "at most what writing a header field costs")


def _dropped(what: Construct, prices: Mapping[str, Price]) -> Quote:
    """A packet is marked as dropped by writing one field, as its port is; it may save what sending costs."""
    return _at_most(what, ["set egress"], prices, "at most what setting the port costs")


def _verified(what: Construct, prices: Mapping[str, Price]) -> Quote:
    """Verifying a checksum is the sum of an update and a comparison instead of a write."""
    other = "checksum update" if what.kind == "checksum verify" else "checksum verify"
    return _at_most(what, [other], prices, f"taken from {other}")


def _read(what: Construct, prices: Mapping[str, Price]) -> Quote:
    """Reading and writing a cell touch the same memory."""
    other = "register write" if what.kind == "register read" else "register read"
    return _at_most(what, [other], prices, f"taken from {other}")


def _jumped(what: Construct, prices: Mapping[str, Price]) -> Quote:
    """A jump costs at most what a comparison and a jump do."""
    like = construct("condition", bits=1)
    return _at_most(like, ["condition"], prices, "at most what a condition costs")


def _overlapped(what: Construct, prices: Mapping[str, Price]) -> Quote:
    """A wait for an earlier write costs at most what writing a header field does, where that has such waits in it.

    Code is compiled or interpreted: a target with a price of the one has no waits of the other.
    """
    if any(key.startswith("overlap ") for key in prices):
        return Quote(0.0, 0.0, 0.0, "measured")
    like = construct("write", bits=WORD_BITS, to="header")
    found = _at_most(like, ["write header"], prices, "in the prices of writes, where it has none of its own")
    return found if found.basis == "unknown" else replace(found, cycles=0.0)


_STAND_INS: Mapping[Kind, Callable[[Construct, Mapping[str, Price]], Quote]] = {
    "lookup": _table,
    "compute": _operator,
    "write": _written,
    "drop": _dropped,
    "jump": _jumped,
    "overlap": _overlapped,
    "checksum verify": _verified,
    "checksum update": _verified,
    "register read": _read,
    "register write": _read,
}
