"""Lookups of packets that do not look up all entries of a table equally often."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from p4perf.evaluation.prediction.reading.packets import resized
from p4perf.models.program.graph import Construct
from p4perf.models.templates import FloatArray
from p4perf.programs.component import TrafficPlan

STEP = 1.1
"""Ratio of the first rank of a group to that of the group before."""

FEWER = 1 - math.exp(-1)
"""Share of the entries of a table that as many lookups meet, all of them equally likely."""


def spread_lookups(
    path: Sequence[tuple[Construct, float]], traffic: TrafficPlan
) -> tuple[tuple[Construct, float], ...]:
    """A path whose lookups are those of such packets: popular keys are looked up as in smaller tables.

    Until a key with the share p of the packets comes again, 1 / p packets pass on average, which look up
    ``D = sum (1 - (1 - p_i)^(1/p))`` entries; of n entries that are equally likely these are ``n (1 - 1/e)``. What is
    looked up in between says in which cache an entry still is (Denning's working set, CACM 11(5), 1968), so a key costs
    what it does in a table of ``D / (1 - 1/e)`` entries.
    """
    if traffic.distribution not in ("zipf", "single"):
        return tuple(path)
    found: list[tuple[Construct, float]] = []
    for what, times in path:
        hit = what.number("hit") if what.kind == "lookup" else 0.0
        if not hit:
            found.append((what, times))
            continue
        for entries, share in tables_like(str(what.size("match_kind")), what.number("entries"), traffic).items():
            found.append((resized(what, entries=entries, hit=1.0), times * hit * share))
        if hit < 1:
            found.append((resized(what, hit=0.0), times * (1 - hit)))
    return tuple(found)


def tables_like(kind: str, count: float, traffic: TrafficPlan) -> dict[float, float]:
    """The numbers of equally likely entries of which tables cost as much, with the share of packets of each."""
    if traffic.distribution == "single":
        return {1.0: 1.0}
    ranks, shares = zipf_groups(int(count), traffic.zipf_s)
    if kind == "ternary":  # a list: popular entries are its first ones
        middle = ranks + (np.append(ranks[1:], count + 1) - ranks - 1) / 2
        return {min(max(1.0, round(2 * float(shares @ middle) - 1.0)), count): 1.0}
    found: dict[float, float] = {}
    for entries, share in zip(working_sets(ranks, shares, count), shares, strict=True):
        # A search of prefixes becomes longer by those, too, that no packet looks up.
        like = math.sqrt(count * entries) if kind == "lpm" else entries
        size = min(float(2 ** round(math.log2(like))), count)
        found[size] = found.get(size, 0.0) + float(share)
    return found


def zipf_groups(count: int, exponent: float) -> tuple[FloatArray, FloatArray]:
    """First ranks of groups of keys with about the same share of the packets, and the shares of the groups."""
    edges = [1]
    while edges[-1] <= count:
        edges.append(min(max(edges[-1] + 1, int(edges[-1] * STEP)), count + 1))
    first = np.array(edges[:-1], dtype=float)
    last = np.array(edges[1:], dtype=float) - 1
    middle = np.sqrt(first * last)
    weights = (last - first + 1) * middle**-exponent
    return first, weights / weights.sum()


def working_sets(ranks: FloatArray, shares: FloatArray, count: float) -> FloatArray:
    """For each group of keys, the number of equally likely keys between which one comes again after as many others."""
    keys = np.append(ranks[1:], count + 1) - ranks
    each = np.minimum(shares / keys, 1.0)
    met = -np.expm1(np.log1p(-np.minimum(each, 1 - 1e-12)) / each[:, None])
    found: FloatArray = np.clip(met @ keys / FEWER, 1.0, count)
    return found
