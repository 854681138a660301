"""Entries of tables as networks have them: prefixes of a routing table, filter sets, and uniform keys.

**bgp**: prefixes as in the global routing tables. Lengths are those of a full table of an Internet router, which the
repository gaissmai/bart publishes (``testdata/prefixes.txt.gz``, of 2024-01-27; 901,899 prefixes of IPv4 and 160,147 of
IPv6), counted for this module. Of them 50.7 % (IPv4) and 56.9 % (IPv6) lie inside of another one, and the other half of
the next shorter prefix is there as well for 70.1 % and 57.5 %; so it is here. (The BGP table reports of potaroo.net say
57.0 % of IPv6 for 2024-07-27.) Keys of up to 64 bit have the lengths of IPv4, scaled to their width; longer ones those
of IPv6 in their first 128 bits. Lengths beyond 64 count as 64.

**classbench**: filter sets in the manner of ClassBench (Taylor and Turner, IEEE/ACM Transactions on Networking 15(3),
2007): source and destination come as correlated pairs of prefixes from few networks, protocols have a mix, and ports
are pairs of the classes wildcard (WC), high (HI, 1024..65535), low (LO, 0..1023), arbitrary range (AR) and exact value
(EM). The shares below are those of an access list that p4perf makes up, not of a seed file of ClassBench. Where a key
cannot take a range, it takes one of the prefixes of it. More specific filters come first.

**uniform**: keys that are as likely as all others; prefixes of half to all bits; masks of several kinds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from p4perf.errors import UsageError
from p4perf.programs.analysis import masked_values
from p4perf.programs.ir import Match, MatchKind

T = TypeVar("T")

Distribution = Literal["uniform", "bgp", "classbench"]
DISTRIBUTIONS: tuple[Distribution, ...] = ("uniform", "bgp", "classbench")

MAX_ENTRIES = 1_000_000

_V4 = "16 13 38 103 299 581 1203 2100 13490 8235 13798 24870 42611 50750 108623 96510 537698 20 3 11 18 17 3 3 886"
IPV4_LENGTHS = dict(enumerate(map(int, _V4.split()), 8))
"""Prefixes of IPv4 by their length."""

_V6 = (
    "1 0 0 1 16 3 7 8 30 8 15 20 193 4371 650 284 22548 2926 2603 1043 5996 880 1617 1377 13418 903 2301 1001 "
    "14365 1553 3039 3153 75488 11 3 0 1 0 0 1 24 0 20 0 2 0 0 0 267 "
)
IPV6_LENGTHS = dict(enumerate(map(int, _V6.split()), 16))
"""Prefixes of IPv6 by their length; the last are those of 64 bits and more."""

_V6_BLOCKS = 60
"""Prefixes of 16 bits that those of IPv6 lie in."""

_ATTEMPTS = 20

Words = npt.NDArray[np.uint64]

Row = tuple[Match, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """A key of a table: its name, kind of match and width."""

    name: str
    kind: MatchKind
    bits: int


def rows(
    shapes: Sequence[Shape],
    count: int,
    distribution: Distribution,
    seed: int,
    observed: Iterable[tuple[int, ...]] = (),
    taken: Iterable[Row] = (),
) -> list[Row]:
    """That many different entries, in the order of their priority; fewer if the keys do not have so many.

    Args:
        observed: keys with which packets come to the table; what the distribution leaves open is taken from these.
        taken: entries that are there already.

    Raises:
        UsageError: the table has no key that the distribution is made for.
    """
    rng, known, seen = random.Random(seed), list(observed), set(taken)  # noqa: S311
    lpm = next((n for n, s in enumerate(shapes) if s.kind == "lpm"), None)
    masked = any(s.kind in ("ternary", "range") for s in shapes)
    if (distribution == "bgp" and lpm is None) or (distribution == "classbench" and not masked):
        wanted = "longest prefix" if distribution == "bgp" else "ternary or range"
        raise UsageError(f"distribution {distribution} needs a key with {wanted} match", hint="use uniform")
    if distribution == "bgp" and lpm is not None:
        made = _routes(shapes, lpm, prefixes(count + len(seen), shapes[lpm].bits, seed), known, rng)
    elif distribution == "classbench":
        networks = [rng.getrandbits(128) for _ in range(max(math.isqrt(count), 2))]
        made = (_filter(shapes, networks, rng) for _ in range(_ATTEMPTS * count))
    else:
        made = _uniform_rows(shapes, known, _ATTEMPTS * count, rng)
    found: dict[Row, None] = {}
    for row in made:
        if len(found) == count:
            break
        if row not in seen:
            found[row] = None
    if distribution == "uniform":
        return list(found)
    return sorted(found, key=lambda row: -sum(map(_specific_bits, row, shapes)))


def _specific_bits(match: Match, shape: Shape) -> int:
    """How many bits of a key an entry compares; of a range those of its size."""
    if match.low != match.high:
        return shape.bits - (match.high - match.low).bit_length()
    return (match.mask & ((1 << shape.bits) - 1)).bit_count()


# uniform


def _uniform_rows(
    shapes: Sequence[Shape], known: Sequence[Sequence[int]], most: int, rng: random.Random
) -> Iterator[Row]:
    """Entries for the keys of packets, then for random ones."""
    for n in range(most):
        values = known[n] if n < len(known) else [rng.getrandbits(s.bits) for s in shapes]
        yield tuple(_uniform(s, value, rng) for s, value in zip(shapes, values, strict=True))


def _uniform(shape: Shape, value: int, rng: random.Random) -> Match:
    """A match that takes a value."""
    ones = (1 << shape.bits) - 1
    value &= ones
    if shape.kind == "lpm":
        return Match.prefix(value, rng.randint(-(-shape.bits // 2), shape.bits), shape.bits)
    if shape.kind == "ternary":
        return Match.masked(value, rng.choice((ones, ones, ones & ~0xFF, rng.getrandbits(shape.bits))))
    if shape.kind == "optional":
        return Match.masked(value, rng.choice((ones, 0)))
    if shape.kind == "range":
        return Match(ones, rng.randint(0, value), rng.randint(value, ones))
    return Match.masked(value, ones)


# bgp


def prefixes(count: int, bits: int, seed: int) -> tuple[list[int], list[int]]:
    """Values and lengths of different prefixes of a key, distributed as in a routing table.

    The longest come first. There are fewer where the key is too narrow.
    """
    rng = np.random.default_rng(seed)
    space = min(bits, 64)
    v6 = bits > 64
    nested, paired = (0.569, 0.575) if v6 else (0.507, 0.701)
    blocks = rng.integers(0, 1 << 13, _V6_BLOCKS, dtype=np.uint64) | np.uint64(0x2000)
    pool, lengths = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    for length, wanted in _per_length(count, bits).items():
        found = np.zeros(0, np.uint64)
        for attempt in range(_ATTEMPTS):
            missing = (wanted - len(found)) * (1 + attempt)
            if missing <= 0:
                break
            fresh = rng.integers(0, 1 << space, missing - int(missing * paired / 2) + 1, np.uint64)
            if v6:
                fresh = fresh & np.uint64((1 << 48) - 1) | rng.choice(blocks, len(fresh)) << np.uint64(48)
            elif space >= 8:
                first = rng.integers(1, 224, len(fresh), np.uint64) << np.uint64(space - 8)
                fresh = fresh & np.uint64((1 << space - 8) - 1) | first
            if len(pool):
                parents = rng.integers(0, len(pool), len(fresh))
                inside = pool[parents] | (fresh & _ones(np.uint64(space) - lengths[parents]))
                fresh = np.where(rng.random(len(fresh)) < nested, inside, fresh)
            fresh >>= np.uint64(space - length)
            found = np.unique(np.concatenate([found, fresh, fresh[: int(missing * paired / 2)] ^ np.uint64(1)]))
        found = rng.permutation(found)[:wanted] << np.uint64(space - length) if length else found[:wanted]
        pool = np.concatenate([found, pool])
        lengths = np.concatenate([np.full(len(found), length, np.uint64), lengths])
    return [value << bits - space for value in pool.tolist()], lengths.tolist()


def _ones(bits: Words) -> Words:
    """Numbers of that many ones, below 64."""
    return (np.uint64(1) << bits) - np.uint64(1)


def _per_length(count: int, bits: int) -> dict[int, int]:
    """How many prefixes there are of each length, the shortest first; what has no room becomes longer."""
    counts, base = (IPV6_LENGTHS, 128) if bits > 64 else (IPV4_LENGTHS, 32)
    scaled: dict[int, int] = {}
    for length, n in counts.items():
        at = length if bits > base else round(length * bits / base)
        scaled[at] = scaled.get(at, 0) + n
    total, before, given, found = sum(scaled.values()), 0, 0, {}
    longest = max(scaled)
    for length in range(min(scaled), min(bits, 64) + 1):
        before += scaled.get(length, 0)
        # What is left over by rounding, or has no room, goes to the next length.
        wanted = round(count * before / total) - given
        room = (3 << length) // 4 if length < min(bits, 64) else 1 << length
        found[length] = min(wanted, room)
        given += found[length]
        if length >= longest and given == count:
            break
    return found


def _routes(
    shapes: Sequence[Shape],
    lpm: int,
    drawn: tuple[list[int], list[int]],
    known: Sequence[Sequence[int]],
    rng: random.Random,
) -> Iterator[Row]:
    """Entries with these prefixes; other keys are those of packets, or random."""
    for n, (value, length) in enumerate(zip(*drawn, strict=True)):
        if len(shapes) == 1:
            yield (Match.prefix(value, length, shapes[0].bits),)
            continue
        others = known[n % len(known)] if known else [rng.getrandbits(s.bits) for s in shapes]
        yield tuple(
            Match.prefix(value, length, s.bits) if at == lpm else _uniform(s, other, rng)
            for at, (s, other) in enumerate(zip(shapes, others, strict=True))
        )


# classbench

_SOURCE_LENGTHS = {0: 20, 8: 2, 16: 12, 20: 5, 24: 26, 28: 5, 32: 30}
_DESTINATION_LENGTHS = {0: 8, 8: 2, 16: 10, 20: 5, 24: 30, 28: 5, 32: 40}
"""Shares of lengths of prefixes, in percent of the filters, for addresses of 32 bits; others are scaled."""

_CORRELATED = 0.3
"""Share of the filters whose destination is in the network of the source."""

_PROTOCOLS = {6: 60, 17: 25, 1: 5, None: 10}
"""TCP, UDP, ICMP, any."""

_PORT_PAIRS = {"WC EM": 45, "WC WC": 25, "WC AR": 9, "WC HI": 6, "HI EM": 5, "EM WC": 4, "EM EM": 3, "WC LO": 2}
_SERVICES = {443: 25, 80: 22, 53: 12, 22: 8, 25: 7, 123: 5, 179: 4, 3306: 4, 8080: 5, 5060: 3, 161: 3, 389: 2}

_MOST_RARE = 0.3
"""A service that is none of the frequent ones has this share of exact ports."""


def _drawn(shares: Mapping[T, int], rng: random.Random) -> T:
    return rng.choices(tuple(shares), tuple(shares.values()))[0]


def _filter(shapes: Sequence[Shape], networks: Sequence[int], rng: random.Random) -> Row:
    """A filter: the first two keys of 32 bits or more are source and destination, the first two of 16 bits ports.

    ``networks`` are 128 random bits each; the addresses in one have its first half in common.
    """
    protocol = _drawn(_PROTOCOLS, rng)
    ports = _drawn(_PORT_PAIRS, rng).split() if protocol != 1 else ["WC", "WC"]
    source = int(len(networks) * rng.random() ** 2)
    other = source if rng.random() < _CORRELATED else int(len(networks) * rng.random() ** 2)
    ends: list[tuple[int, Mapping[int, int]]] = [
        (networks[source], _SOURCE_LENGTHS),
        (networks[other], _DESTINATION_LENGTHS),
    ]
    if "dst" in next((s.name.lower() for s in shapes if s.bits >= 32), ""):
        ends.reverse()
    return tuple(_filter_key(shape, protocol, ports, ends, rng) for shape in shapes)


def _filter_key(
    shape: Shape, protocol: int | None, ports: list[str], ends: list[tuple[int, Mapping[int, int]]], rng: random.Random
) -> Match:
    """One key of a filter; takes from ``ports`` and ``ends`` what it uses."""
    ones = (1 << shape.bits) - 1
    if shape.bits >= 32:
        network, lengths = ends.pop(0) if ends else (rng.getrandbits(128), _DESTINATION_LENGTHS)
        length = round(_drawn(lengths, rng) * shape.bits / 32)
        common = shape.bits // 2
        value = network >> max(128 - shape.bits, 0) & ones
        value = value >> common << common | rng.getrandbits(common) & rng.getrandbits(common)
        low, high = value, value
    elif shape.bits == 16 and ports:
        low, high = _port_range(ports.pop(0), rng)
        length = 16
    elif shape.bits == 8 and protocol is not None:
        low, high, length = protocol, protocol, 8
    else:
        low = high = rng.getrandbits(shape.bits)
        length = 0 if shape.bits in (8, 16) or rng.random() < 0.5 else shape.bits
    if shape.kind in ("exact", "optional"):
        return Match.masked(low, ones if shape.kind == "exact" or length else 0)
    if shape.kind == "range":
        low = low >> shape.bits - length << shape.bits - length
        return Match(ones, low, max(high, low | (1 << shape.bits - length) - 1))
    if low == high:
        return Match.prefix(low, length, shape.bits)
    value, mask = rng.choice(list(masked_values(Match(ones, low, high), shape.bits)))
    return Match.masked(value, mask)


def _port_range(kind: str, rng: random.Random) -> tuple[int, int]:
    if kind == "EM":
        port = rng.randrange(1 << 16) if rng.random() < _MOST_RARE else _drawn(_SERVICES, rng)
        return port, port
    if kind == "AR":
        low = rng.randrange(1 << 16)
        return low, min(low + rng.randrange(1, 4096), (1 << 16) - 1)
    return {"WC": (0, 65535), "HI": (1024, 65535), "LO": (0, 1023)}[kind]
