"""Where hash tables of DPDK find keys.

A lookup in rte_hash compares the signatures of a bucket one after another: keys at different positions leave that loop
at different branches, which no processor foresees where packets are drawn. A bucket of SWX holds four keys; more are in
extensions, each of which is a step more. Both hash by CRC-32C, linear in the key: keys that follow each other fill
buckets evenly.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

BUCKET_ENTRIES = 8
LEAST_ENTRIES, SPARE = 64, 4
"""For how many entries tables are made: of one quarter more than there are, and not of fewer than that."""

EXTENDED_ENTRIES, MOST_EXTENSIONS = 4, 16
"""Entries of a bucket of SWX, and of each of its extensions; more extensions of one bucket are not expected."""

CASTAGNOLI = 0x82F63B78
MOST_KEYS = 4096
"""Of a rule; of more, positions are taken to be equally frequent."""


def buckets_for(count: int) -> int:
    """How many buckets rte_hash has for a number of entries."""
    return (1 << (max(count + count // SPARE, LEAST_ENTRIES) - 1).bit_length()) // BUCKET_ENTRIES


def astray(count: float) -> float:
    """The share of keys that are expected behind the first one of their buckets."""
    buckets = buckets_for(int(count))
    first: float = buckets * -math.expm1(count * math.log1p(-1 / buckets))
    return max(0.0, 1 - first / max(count, 1.0))


def positions(keys: Sequence[bytes]) -> list[int]:
    """In which place of its buckets each key is found, by the order in which they are added."""
    count = buckets_for(len(keys))
    filled, found = [0] * count, []
    for key in keys:
        hashed = crc32c(key)
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


def swx_buckets_for(size: int) -> int:
    """How many buckets SWX has for a number of entries (rte_swx_table_em.c)."""
    return 1 << (max(-(-size // EXTENDED_ENTRIES), 1) - 1).bit_length()


def extensions(keys: Sequence[bytes], size: int) -> list[int]:
    """How many buckets a lookup in a table of SWX leaves behind it for each key, by the order in which they are added.

    Args:
        size: for how many entries the table is made.
    """
    count = swx_buckets_for(size)
    filled, found = [0] * count, []
    for key in keys:
        bucket = crc32c(key) & (count - 1)
        found.append(filled[bucket] // EXTENDED_ENTRIES)
        filled[bucket] += 1
    return found


@cache
def extensions_of_rule(count: int, key_bytes: int) -> float:
    """How many that are on average for the keys 0, 1, ..., ``count - 1``; of more, none leaves its bucket."""
    if count > MOST_KEYS:
        return 0.0
    return sum(extensions([key.to_bytes(key_bytes, "big") for key in range(count)], count)) / max(count, 1)


@cache
def extended(count: float) -> float:
    """How many that are on average for as many keys with any values, which fill buckets as a Poisson process does."""
    load = count / swx_buckets_for(int(count))
    places = range(EXTENDED_ENTRIES * MOST_EXTENSIONS)
    filled = np.cumsum([math.exp(-load) * load**place / math.factorial(place) for place in places])
    return float(np.dot([place // EXTENDED_ENTRIES for place in places], 1 - filled)) / max(load, 1e-9)


def crc32c(data: bytes) -> int:
    """The remainder that the instruction of x86 computes: without a start value, and not inverted."""
    found = 0
    for byte in data:
        found = found >> 8 ^ _remainders()[(found ^ byte) & 0xFF]
    return found


@cache
def _remainders() -> tuple[int, ...]:
    found = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (CASTAGNOLI if byte & 1 else 0)
        found.append(byte)
    return tuple(found)
