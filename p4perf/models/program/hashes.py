"""Where hash tables of DPDK find keys whose values are not known.

A lookup in rte_hash compares the signatures of a bucket one after another: keys at different positions leave that loop
at different branches, which no processor foresees where packets are drawn. A bucket of SWX holds four keys; more are in
extensions, each of which is a step more. Both hash by CRC-32C, linear in the key: keys that follow each other fill
buckets evenly.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

BUCKET_ENTRIES = 8
LEAST_ENTRIES, SPARE = 64, 4
"""For how many entries tables are made: of one quarter more than there are, and not of fewer than that."""

EXTENDED_ENTRIES, MOST_EXTENSIONS = 4, 16
"""Entries of a bucket of SWX, and of each of its extensions; more extensions of one bucket are not expected."""


def buckets_for(count: int) -> int:
    """How many buckets rte_hash has for a number of entries."""
    return (1 << (max(count + count // SPARE, LEAST_ENTRIES) - 1).bit_length()) // BUCKET_ENTRIES


def astray(count: float) -> float:
    """The share of keys that are expected behind the first one of their buckets."""
    buckets = buckets_for(int(count))
    first: float = buckets * -math.expm1(count * math.log1p(-1 / buckets))
    return max(0.0, 1 - first / max(count, 1.0))


def swx_buckets_for(size: int) -> int:
    """How many buckets SWX has for a number of entries (rte_swx_table_em.c)."""
    return 1 << (max(-(-size // EXTENDED_ENTRIES), 1) - 1).bit_length()


@cache
def extended(count: float) -> float:
    """Behind how many extensions of its bucket a key is on average, of as many with any values.

    They fill buckets as a Poisson process does.
    """
    load = count / swx_buckets_for(int(count))
    places = range(EXTENDED_ENTRIES * MOST_EXTENSIONS)
    filled = np.cumsum([math.exp(-load) * load**place / math.factorial(place) for place in places])
    return float(np.dot([place // EXTENDED_ENTRIES for place in places], 1 - filled)) / max(load, 1e-9)
