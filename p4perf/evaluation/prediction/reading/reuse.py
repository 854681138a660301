"""How far from the processor what packets look up is: reuse distances of the lines of tables.

A line of a table is used again once its entry is found again. What the program touches in between is its reuse distance
(Mattson and others, IBM Systems Journal 9(2), 1970): caches with less room have lost it by then. So a table with few
entries in use stays near, whatever stands beside it, and one with many competes for the caches with all other tables,
and with the packets. Within :data:`NEAREST_BYTES` lines are in the nearest cache of any processor, and cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from p4perf.models.program.graph import Construct, construct

LINE_BYTES = 64
NEAREST_BYTES = 1 << 14

ROW_BYTES = 16
"""An entry of a list, value and mask."""

PREFIX_LINES = 2
"""What a prefix that is looked up uses: of the first level, and of its action data."""

NODE_BYTES, NODES_OF_A_PREFIX = 48, 2
"""Of a trie of the kernel: of a node besides key and data; and nodes of it for each prefix."""

Tables = Literal["dpdk", "swx", "kernel"]
"""Whose tables: rte_hash, rte_lpm and lists; those of SWX, with tries that have a node for each byte of a key; or hash
maps, tries that have one for each bit, and lists."""

BUCKET_BYTES, KEY_BYTES, POINTER_BYTES, ELEMENT_BYTES = 8, 16, 8, 48
"""Of an exact table: of a bucket for each entry; what keys are rounded up to; what is kept with a key and with action
data; and what stands before a key in a hash map of the kernel."""


def lines_of(keys: float, entries: float, entry_bytes: float) -> float:
    """Lines of an array in which that many of its entries are, drawn at random.

    The smaller entries are, the more share a line: ``L (1 - (1 - k/n)^m)`` of ``L`` lines with ``m`` of ``n`` entries.
    """
    together = max(1.0, LINE_BYTES / entry_bytes)
    unused: float = (1 - min(1.0, keys / entries)) ** together
    return math.ceil(entry_bytes / LINE_BYTES) * max(1.0, entries / together) * (1 - unused)


def exact_lines(what: Construct, keys: float, tables: Tables) -> float:
    """Lines of an exact table which that many keys use."""
    key_bytes, data_bytes = math.ceil(what.number("key_bits") / 8), what.number("action_data_bytes")
    arrays = [BUCKET_BYTES, ELEMENT_BYTES + key_bytes + data_bytes]
    if tables == "dpdk":
        rounded = KEY_BYTES * math.ceil((POINTER_BYTES + key_bytes) / KEY_BYTES)
        arrays = [BUCKET_BYTES, rounded, POINTER_BYTES + data_bytes]
    return sum(lines_of(keys, max(keys, what.number("entries")), size) for size in arrays)


def reuse(
    met: Sequence[tuple[Construct, float]],
    keys: Mapping[str, int],
    levels: Mapping[str, float],
    wrong: Mapping[str, float],
    packets: tuple[int, int],
    tables: Tables,
) -> tuple[tuple[Construct, float], ...]:
    """What packets meet of lines that are far away, one after another, and of branches that wait for them in vain.

    Args:
        met: what packets meet else.
        keys: by the places of lookups, how many keys packets look up there that differ.
        levels: beyond the first at which they search.
        wrong: how many branches are predicted wrong in a lookup.
        packets: how many there are that differ, and their size [bytes].

    Of a trie with a node for each bit, the nodes of one level are used twice as often as those of the next.
    """
    lookups, streamed_bytes = [], 0.0
    for what, times in met:
        if what.kind != "lookup" or times <= 0:
            continue
        if tables == "swx" or what.size("match_kind") in ("exact", "lpm"):
            lookups.append((what, times, keys.get(what.where, 1)))
        else:
            streamed_bytes += min(times, 1.0) * what.number("entries") * ROW_BYTES

    def lines(what: Construct, used: float) -> float:
        if what.size("match_kind") == "exact":
            return exact_lines(what, used, tables)
        if tables == "swx":
            return used * math.ceil(what.number("key_bits") / 8)
        if tables == "kernel":
            node_bytes = NODE_BYTES + what.number("key_bits") / 8 + what.number("action_data_bytes")
            return NODES_OF_A_PREFIX * used * max(1.0, node_bytes / LINE_BYTES)
        return used * (PREFIX_LINES + levels.get(what.where, 0.0))

    found: list[tuple[Construct, float]] = []
    for what, times, different in lookups:
        between = different / times
        touched = math.ceil(packets[1] / LINE_BYTES) * min(packets[0], between)
        touched += sum(lines(other, min(others, often * between)) for other, often, others in lookups)
        distance = float(round(LINE_BYTES * touched + streamed_bytes))
        if distance <= NEAREST_BYTES:
            continue
        distances, steps = [distance], 1.0 + levels.get(what.where, 0.0)
        while tables == "kernel" and what.size("match_kind") == "lpm" and (nearer := distances[-1] / 2) > NEAREST_BYTES:
            distances.append(nearer)
        found += [
            (construct("reuse", what.where, of=what.size("match_kind"), reuse_bytes=each), times * steps)
            for each in distances
        ]
        if wrong.get(what.where):
            found.append((construct("reuse", what.where, of="branch", reuse_bytes=distance), wrong[what.where]))
    return tuple(found)
