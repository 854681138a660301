"""Where lookups find entries: in buckets of hash tables of DPDK, and in tries of the kernel and of rte_acl.

A BPF_MAP_TYPE_LPM_TRIE is a binary trie with a node for each prefix, and one wherever two of them part (Morrison,
PATRICIA, Journal of the ACM 15(4), 1968). A lookup goes down from the root, bit by bit of its key, and ends at a whole
key, at a node that does not fit it any more, or where there is none. rte_acl, in which SWX looks up ternary keys, goes
down byte by byte; after the first byte, it sees at every fourth one whether an entry is left.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from p4perf.evaluation.prediction.reading.constructs import is_prefixes
from p4perf.evaluation.prediction.reading.reuse import Tables
from p4perf.models.program.graph import Construct, construct
from p4perf.models.program.hashes import BUCKET_ENTRIES, EXTENDED_ENTRIES, buckets_for, swx_buckets_for
from p4perf.programs.ir import Entry, Match, Program, Table
from p4perf.programs.operators import crc32c_raw

MOST_KEYS = 4096
"""Of a rule; of more, positions are taken to be equally frequent."""


READ_BYTES = 4
"""How many bytes of a key rte_acl reads at once, after the first."""


class Places:
    """Where the lookups of a program find entries.

    Args:
        tables: whose tables are looked up.
        drawn: whether it is a matter of chance which key comes next: else a processor foresees where it is found.
        hashed: of tables of SWX, by name: for how many entries they are made at least, and whether their keys are
            metadata, which are in the byte order of the processor.
    """

    def __init__(
        self,
        program: Program,
        tables: Tables = "dpdk",
        *,
        drawn: bool = True,
        hashed: Mapping[str, tuple[int, bool]] | None = None,
    ) -> None:
        self.tables, self._drawn, self._hashed = tables, drawn, hashed or {}
        self._program = program
        self._tries: dict[str, PrefixTrie] = {}
        self._masked: dict[str, MaskTrie] = {}
        self._filled: dict[str, list[int]] = {}

    def passed(self, table: Table, values: Sequence[int], entry: int | None) -> int | None:
        """How many nodes of a trie, bits, entries of a bucket or buckets a lookup passes; None if that is not known.

        Args:
            entry: the number of the entry that it finds, None if it finds none.
        """
        if self._in_trie(table):
            if table.name not in self._tries:
                prefixes = ((self._number([m.low for m in e.matches], table), prefix_bits(e)) for e in table.listing)
                self._tries[table.name] = PrefixTrie(prefixes, sum(self._widths(table)))
            return self._tries[table.name].visited(self._number(values, table))
        if self._in_masks(table):
            if table.name not in self._masked:
                widths, order = self._widths(table), self._byte_order(table)
                self._masked[table.name] = MaskTrie(table.listing, widths, order)
            return self._masked[table.name].read_bits(values, found=entry is not None)
        if entry is None or not self._in_hash(table):
            return None
        if table.name not in self._filled:
            self._filled[table.name] = self._fill(table)
        return self._filled[table.name][entry]

    def walked(self, what: Construct, table: Table, met: Mapping[int, int] | None) -> Construct:
        """A lookup with where its entries are.

        Args:
            met: how many packets passed each number of what :meth:`passed` counts; None: as entries of a rule do.
        """
        count, key_bytes = max(table.entries.count, 1), math.ceil(sum(self._widths(table)) / 8)
        if self._in_trie(table):
            visited = met or visited_of_rule(count)
            astray = 1 - max(visited.values()) / sum(visited.values())
            sizes = {"nodes": _mean(visited), "astray": self._drawn * astray}
        elif self._in_masks(table):
            if not met:
                return what
            sizes = {"key_bits": _mean(met)}
        elif not self._in_hash(table):
            return what
        elif self.tables == "swx":
            sizes = {"extended": _mean(met) if met else extensions_of_rule(count, key_bytes)}
        else:
            places = met or positions_of_rule(count, key_bytes)
            hit, first = what.number("hit"), max(places.values()) / sum(places.values())
            # Whether there is an entry is a branch of its own; of packets that find one, these go otherwise besides.
            others = max(hit, 1 - hit) - max(hit * first, 1 - hit)
            sizes = {"astray": self._drawn * others / hit if hit else 0.0}
        return construct("lookup", what.where, **dict(what.sizes) | sizes)

    def _in_trie(self, table: Table) -> bool:
        return self.tables == "kernel" and not table.selector and is_prefixes(self._program, table)

    def _in_masks(self, table: Table) -> bool:
        told = bool(table.listing) and not table.selector
        return self.tables == "swx" and told and self._program.match_kind(table) != "exact"

    def _in_hash(self, table: Table) -> bool:
        return self.tables != "kernel" and not table.selector and self._program.match_kind(table) == "exact"

    def _fill(self, table: Table) -> list[int]:
        """Of each entry, how many entries or buckets a lookup passes. The last ones of a list are added first."""
        keys = [self._key(entry, table) for entry in table.listing]
        if self.tables == "swx":
            return extensions(keys, max(self._hashed.get(table.name, (0, False))[0], len(keys)))
        return positions(keys[::-1])[::-1]

    def _key(self, entry: Entry, table: Table) -> bytes:
        """The key of an exact entry in memory."""
        values, widths = [match.low for match in entry.matches], self._widths(table)
        if self._byte_order(table) == "little":
            return _in_memory(values, widths, "little")
        return self._number(values, table).to_bytes(math.ceil(sum(widths) / 8), "big")

    def _byte_order(self, table: Table) -> Literal["little", "big"]:
        return "little" if self._hashed.get(table.name, (0, False))[1] else "big"

    def _number(self, values: Sequence[int], table: Table) -> int:
        """The fields of a key after one another as one number."""
        found = 0
        for value, bits in zip(values, self._widths(table), strict=True):
            found = found << bits | value
        return found

    def _widths(self, table: Table) -> list[int]:
        return [self._program.width_bits(key.field) for key in table.keys]


def _in_memory(values: Iterable[int], widths: Sequence[int], order: Literal["little", "big"]) -> bytes:
    return b"".join(v.to_bytes(math.ceil(bits / 8), order) for v, bits in zip(values, widths, strict=True))


def prefix_bits(entry: Entry) -> int:
    return sum(match.mask.bit_count() for match in entry.matches)


def _mean(counts: Mapping[int, int]) -> float:
    return sum(number * packets for number, packets in counts.items()) / sum(counts.values())


class PrefixTrie:
    """The nodes of prefixes of one width.

    Args:
        prefixes: their values, in as many bits as keys have, and their lengths [bit].
    """

    def __init__(self, prefixes: Iterable[tuple[int, int]], width_bits: int) -> None:
        self._width = width_bits
        self._prefixes = sorted(set(prefixes))
        self._nodes = {(length, value >> width_bits - length) for value, length in self._prefixes}
        for (one, first), (other, second) in pairwise(self._prefixes):
            shared = min(first, second, width_bits - (one ^ other).bit_length())
            self._nodes.add((shared, one >> width_bits - shared))
        self._lengths = sorted({length for length, _ in self._nodes})

    def visited(self, key: int) -> int:
        """How many nodes the lookup of a key visits."""
        fitting = [n for n in self._lengths if (n, key >> self._width - n) in self._nodes]
        below = fitting[-1] + 1 if fitting else 0
        return len(fitting) + (below <= self._width and self._continues(key, below))

    def _continues(self, key: int, length: int) -> bool:
        """Whether a prefix begins like a key."""
        left = self._width - length
        at = bisect_left(self._prefixes, (key >> left << left, length))
        return at < len(self._prefixes) and self._prefixes[at][0] >> left == key >> left


class MaskTrie:
    """A trie of rte_acl, by the entries that are left after each byte of a key.

    Args:
        listing: the entries; of ranges, the bits count that both ends begin with.
        order: of the bytes of each field in memory.
    """

    def __init__(self, listing: Sequence[Entry], widths: Sequence[int], order: Literal["little", "big"]) -> None:
        masks = [[_shared_mask(m, bits) for m, bits in zip(e.matches, widths, strict=True)] for e in listing]
        values = [
            [m.low & mask for m, mask in zip(e.matches, own, strict=True)]
            for e, own in zip(listing, masks, strict=True)
        ]
        self._widths, self._order = widths, order
        self._masks, self._values = self._bytes(masks), self._bytes(values)
        self._left = {b"": np.arange(len(listing))}

    def read_bits(self, key: Sequence[int], *, found: bool) -> int:
        """How many bits of a key a lookup reads, all of them if it finds an entry."""
        data = _in_memory(key, self._widths, self._order)
        read = (
            len(data)
            if found
            else next((n for n in range(1, len(data)) if not self._entries(data[:n]).size), len(data))
        )
        return 8 * min(1 + READ_BYTES * math.ceil((read - 1) / READ_BYTES), len(data))

    def _entries(self, data: bytes) -> npt.NDArray[np.intp]:
        """Which entries fit the first bytes of a key."""
        if data not in self._left:
            before, at = self._entries(data[:-1]), len(data) - 1
            fits = (data[at] & self._masks[before, at]) == self._values[before, at]
            self._left[data] = before[fits]
        return self._left[data]

    def _bytes(self, rows: Sequence[Sequence[int]]) -> npt.NDArray[np.uint8]:
        data = b"".join(_in_memory(row, self._widths, self._order) for row in rows)
        return np.frombuffer(data, dtype=np.uint8).reshape(len(rows), -1)


def _shared_mask(match: Match, width_bits: int) -> int:
    """The bits that a match compares; of a range, those that both ends begin with."""
    if match.low == match.high:
        return match.mask
    return (1 << width_bits) - (1 << (match.low ^ match.high).bit_length())


def visited_of_rule(count: int) -> Mapping[int, int]:
    """How many of the prefixes 0, 1, ..., ``count - 1`` of one length are found after each number of nodes."""
    if count == 1:
        return {1: 1}
    half = 1 << (count - 1).bit_length() - 1
    found = Counter({nodes + 1: number for nodes, number in visited_of_rule(half).items()})
    found.update({nodes + 1: number for nodes, number in visited_of_rule(count - half).items()})
    return found


def positions(keys: Sequence[bytes]) -> list[int]:
    """In which place of its buckets each key is found, by the order in which they are added."""
    count = buckets_for(len(keys))
    filled, found = [0] * count, []
    for key in keys:
        hashed = crc32c_raw(key)
        first = hashed & (count - 1)
        second = (first ^ hashed >> 16) & (count - 1)
        bucket = first if filled[first] < BUCKET_ENTRIES else second
        found.append(filled[bucket] + (BUCKET_ENTRIES if bucket != first else 0))
        filled[bucket] += 1
    return found


@cache
def positions_of_rule(count: int, key_bytes: int) -> Mapping[int, float]:
    """How many of the keys 0, 1, ..., ``count - 1`` are found in each place."""
    if count <= MOST_KEYS:
        return Counter(positions([key.to_bytes(key_bytes, "big") for key in range(count)]))
    full, rest = divmod(count, buckets_for(count))
    return {**dict.fromkeys(range(full), float(buckets_for(count))), **({full: float(rest)} if rest else {})}


def extensions(keys: Sequence[bytes], size: int) -> list[int]:
    """How many buckets a lookup in a table of SWX leaves behind it for each key, by the order in which they are added.

    Args:
        size: for how many entries the table is made.
    """
    count = swx_buckets_for(size)
    filled, found = [0] * count, []
    for key in keys:
        bucket = crc32c_raw(key) & (count - 1)
        found.append(filled[bucket] // EXTENDED_ENTRIES)
        filled[bucket] += 1
    return found


@cache
def extensions_of_rule(count: int, key_bytes: int) -> float:
    """How many that are on average for the keys 0, 1, ..., ``count - 1``; of more, none leaves its bucket."""
    if count > MOST_KEYS:
        return 0.0
    return sum(extensions([key.to_bytes(key_bytes, "big") for key in range(count)], count)) / max(count, 1)
