"""How far from the processor what packets look up is: reuse distances of the lines of tables.

A line of a table is used again once its entry is found again. What the program touches in between is its reuse distance
(Mattson and others, IBM Systems Journal 9(2), 1970): caches with less room have lost it by then. So a table with few
entries in use stays near, whatever stands beside it, and one with many competes for the caches with all other tables,
and with the packets. Within :data:`NEAREST_BYTES` lines are in the nearest cache of any processor, and cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from p4perf.models.program.graph import Construct, construct

LINE_BYTES = 64
NEAREST_BYTES = 1 << 15

ROW_BYTES = 16
"""An entry of a list, value and mask."""

EXACT_LINES, PREFIX_LINES = 3, 2
"""What a lookup uses: of a bucket or of the first level of prefixes, of a key, and of its action data."""


def reuse(
    met: Sequence[tuple[Construct, float]],
    keys: Mapping[str, int],
    levels: Mapping[str, float],
    wrong: Mapping[str, float],
    packets: tuple[int, int],
    *,
    tries: bool,
) -> tuple[tuple[Construct, float], ...]:
    """What packets meet of lines that are far away, one after another, and of branches that wait for them in vain.

    Args:
        met: what packets meet else.
        keys: by the places of lookups, how many keys packets look up there that differ.
        levels: beyond the first at which they search.
        wrong: how many branches are predicted wrong in a lookup.
        packets: how many there are that differ, and their size [bytes].
        tries: tables that are not exact are tries with a node for each byte of the key, else lists and rte_lpm.
    """
    used: list[tuple[float, float, int]] = [(1.0, math.ceil(packets[1] / LINE_BYTES), packets[0])]
    lookups, streamed_bytes = [], 0.0
    for what, times in met:
        if what.kind != "lookup" or times <= 0:
            continue
        kind, level = what.size("match_kind"), levels.get(what.where, 0.0)
        if kind == "exact":
            lines = float(EXACT_LINES)
        elif tries:
            lines = math.ceil(what.number("key_bits") / 8)
        elif kind == "lpm":
            lines = PREFIX_LINES + level
        else:
            streamed_bytes += min(times, 1.0) * what.number("entries") * ROW_BYTES
            continue
        used.append((times, lines, keys.get(what.where, 1)))
        lookups.append((what, times, keys.get(what.where, 1), 1.0 + level))
    found: list[tuple[Construct, float]] = []
    for what, times, different, steps in lookups:
        between = different / times
        lines = sum(n * min(others, often * between) for often, n, others in used)
        distance = float(round(LINE_BYTES * lines + streamed_bytes))
        if distance <= NEAREST_BYTES:
            continue
        kind = what.size("match_kind")
        found.append((construct("reuse", what.where, of=kind, reuse_bytes=distance), times * steps))
        if wrong.get(what.where):
            found.append((construct("reuse", what.where, of="branch", reuse_bytes=distance), wrong[what.where]))
    return tuple(found)
