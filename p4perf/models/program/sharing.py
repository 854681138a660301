"""Tables that share a cache: how large a table alone would be that misses as often.

Che's approximation of a cache that replaces what was used least recently (Che, Tung and Wang 2002): whatever is asked
for at rate ``r`` is found if it was asked for within the last ``T`` packets, with probability ``1 - exp(-r T)``, and
the characteristic time ``T`` is the one at which the cache is just full. Keys are uniform, so every line of a table has
the same rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

LINE_BYTES = 64

Layout = Literal["rte_hash", "bpf_map"]
"""How tables lie in memory: those of DPDK (rte_hash, rte_lpm), or the kernel's maps (hashtab.c, lpm_trie.c)."""

LAYOUTS: tuple[Layout, ...] = get_args(Layout)
_BUCKET_ENTRIES = 6.4
"""Entries of a bucket of one line: eight places, filled to four fifths (rte_hash_crc tables of 1.25 slots an entry)."""

_LINE_PREFIXES = 16
"""Prefixes of 24 bit in a line of the first stage of rte_lpm, which has four bytes for each."""

_MAP_HEAD_BYTES = 48
"""An element of a hash map of the kernel, or a node of its trie, before its key."""

_LINE_BUCKETS = 3.0
"""Entries of a line of buckets of 16 B; their number is a power of two, so that three of four have an entry."""

_CHAIN = 0.4
"""Other elements that a lookup passes in a bucket, of which it reads the first line."""

_KEY_OVERHEAD_BYTES = 8
_KEY_UNIT_BYTES = 16


@dataclass(frozen=True, slots=True)
class TableUse:
    """An exact table that packets look up, or one of prefixes.

    Args:
        entries: in it, all equally likely.
        key_bytes: size of a key.
        data_bytes: action data of an entry.
        times: lookups per packet.
        prefixes: an lpm table.
        layout: what it is made of, see :data:`Layout`.
    """

    entries: float
    key_bytes: float = 16.0
    data_bytes: float = 64.0
    times: float = 1.0
    prefixes: bool = False
    layout: Layout = "rte_hash"

    def lines(self) -> tuple[tuple[float, float], ...]:
        """Lines of buckets, keys and action data, and how often a packet asks for one of them."""
        groups = self._maps() if self.layout == "bpf_map" else self._arrays()
        return tuple((count, self.times * touched / count) for count, touched in groups)

    def _maps(self) -> tuple[tuple[float, float], ...]:
        """Lines and how many of them a lookup touches: buckets and elements, or the levels of a trie."""
        entries = max(self.entries, 1.0)
        data = 8 * math.ceil(self.data_bytes / 8)
        if self.prefixes:
            levels = int(math.log2(entries)) + 1
            leaves = max((_MAP_HEAD_BYTES + data) / LINE_BYTES, 1.0)
            return (*((2.0**level, 1.0) for level in range(levels)), (entries * leaves, leaves))
        element = (_MAP_HEAD_BYTES + 8 * math.ceil(self.key_bytes / 8) + data) / LINE_BYTES
        return ((max(entries / _LINE_BUCKETS, 1.0), 1.0), (max(entries * element, 1.0), max(element, 1.0) + _CHAIN))

    def _arrays(self) -> tuple[tuple[float, float], ...]:
        """The same of rte_hash, and of rte_lpm, whose neighbouring prefixes are neighbours in an array."""
        key = _KEY_UNIT_BYTES * math.ceil((_KEY_OVERHEAD_BYTES + self.key_bytes) / _KEY_UNIT_BYTES)
        search: tuple[tuple[float, float], ...] = (
            (max(self.entries / _BUCKET_ENTRIES, 1.0), 1.0),
            (max(self.entries * key / LINE_BYTES, 1.0), max(key / LINE_BYTES, 1.0)),
        )
        if self.prefixes:
            search = ((max(self.entries / _LINE_PREFIXES, 1.0), 1.0),)
        data = max(math.ceil(self.data_bytes / LINE_BYTES), 1)
        return (*search, (max(self.entries, 1.0) * data, float(data)))

    @property
    def size_bytes(self) -> float:
        """All its lines."""
        return LINE_BYTES * sum(count for count, _ in self.lines())


def characteristic_time(tables: Sequence[TableUse], cache_bytes: float) -> float:
    """Packets after which a line that nobody asked for is gone; infinite if everything fits."""
    groups: dict[float, float] = {}  # lines that are asked for equally often, however many tables they are of
    for count, rate in (group for table in tables for group in table.lines()):
        if rate > 0:
            groups[rate] = groups.get(rate, 0.0) + count
    room = cache_bytes / LINE_BYTES
    if sum(groups.values()) <= room:
        return math.inf

    def filled(packets: float) -> float:
        return sum(-count * math.expm1(-rate * packets) for rate, count in groups.items())

    low, high = 0.0, 1.0
    while filled(high) < room:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if filled(middle) < room else (low, middle)
    return (low + high) / 2


@dataclass(frozen=True, slots=True)
class Growth:
    """From one number of entries to another: a table that shares the cache costs what a table alone costs more there.

    Of a table that is beyond the cache already, ``start`` is its own size; of a smaller one it is the size that just
    fills the cache, since below that nothing of a table alone is missed.
    """

    start: float
    end: float


def growth(tables: Sequence[TableUse], cache_bytes: float) -> tuple[Growth | None, ...]:
    """Of every table, up to where it would have to grow to miss as often alone as it does beside the others.

    None where it does not miss more often than alone.
    """
    together = characteristic_time(tables, cache_bytes)
    if math.isinf(together) or len(tables) < 2:
        return tuple(None for _ in tables)
    found: dict[TableUse, Growth | None] = {}
    for table in tables:
        if table not in found:
            filling = table.entries * cache_bytes / table.size_bytes
            start = max(table.entries, filling)
            end = _alone(table, start, together * table.times / table.entries, cache_bytes)
            found[table] = Growth(start, end) if end > 1.0001 * start else None
    return tuple(found[table] for table in tables)


def missed_lookups(tables: Sequence[TableUse], cache_bytes: float) -> float:
    """Lookups per packet whose action data are not in a cache that all tables share."""
    packets = characteristic_time(tables, cache_bytes)
    return sum(t.times * math.exp(-packets * t.times / max(t.entries, 1.0)) for t in tables if t.times > 0)


def _alone(table: TableUse, least: float, reached: float, cache_bytes: float) -> float:
    """Entries of a table alone that reaches the same ratio of characteristic time and entries."""
    low, high = math.log(least), math.log(least) + 12.0
    for _ in range(40):
        middle = (low + high) / 2
        alone = replace(table, entries=math.exp(middle), times=1.0)
        ratio = characteristic_time([alone], cache_bytes) / alone.entries
        low, high = (middle, high) if ratio > reached else (low, middle)
    return math.exp((low + high) / 2)
