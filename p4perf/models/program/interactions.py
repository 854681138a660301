"""Interactions of components: cost beyond their sum, and tables that share a cache.

Of a program with baseline ``b``, costs of its parts alone ``f_i`` with the sum ``S``, ``t`` table lookups, of which
``l`` leave the first-level cache and ``m`` the second, and ``o`` cycles of parts that are no tables:

* ``sum``: ``b + S + h``, with ``h`` what the headers of all parts cost in one chain more than in chains of their own,
  where the cost of a header depends on how many there are: a program has one parser;
* all others have that, times ``1 + a4``;
* ``scaled``: ``b + S + h + a0 min(t, 1) + a1 S + a2 max(t - 1, 0) + a3 m min(1, r / R)``: later tables cost something
  else than the first, and misses hide less beside long programs, whose other parts cost ``r``;
* ``overlap``: ``b + S + h + a0 min(t, 1) + a1 min(o, H max(t, 1)) + a2 max(t - 1, 0) + a3 l (1 - 1/t)``: other work
  hides in the latency of lookups, or in that of other work, and lines that come from the second-level cache no longer
  hide behind the next packet;
* ``spacing``: ``overlap``, fitted to programs without misses, with tables that share the second-level cache
  (:mod:`~p4perf.models.program.interactions`), and ``m X(w / max(1, m))``: every miss costs ``X`` more than alone.
  The more
  work ``w`` there is from one miss to the next, the fewer misses a processor has in flight at once. ``X`` is measured,
  and rises. In ``w`` the work of other parts counts ``D`` times that of lookups, and
  ``l - m`` lookups ``N`` cycles more;
* ``spacing, scaled``: ``X`` as well, on ``scaled`` without ``a3``.

``a0`` is there where tables have company, and paid by the packets that come to one; a program of one part is the sum.
Errors are relative, so coefficients minimise relative squares, drawn towards zero a little.

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

import numpy as np
import numpy.typing as npt

FormName = Literal["sum", "scaled", "overlap", "spacing", "spacing, scaled"]
FORMS: tuple[FormName, ...] = get_args(FormName)

COEFFICIENTS = 5

LONG_CYCLES = 170.0
"""``R``: what a program costs beside its misses when they hide nothing any more, in cycles per packet."""

HIDDEN_CYCLES = 80.0
"""``H``: most cycles of other work that hide in one lookup, or beside one another where there is none."""

DENSITY = 2.0
"""``D``: what limits the misses in flight is a number of instructions, of which other parts have more in a cycle than
lookups."""

WAITING_DENSITY = 1.0
"""``D`` where parts wait for one another, too."""

DENSITIES = (DENSITY, WAITING_DENSITY)
"""Which of them is right for a target is decided as between forms."""

NEAR_CYCLES = 150.0
"""A lookup that is found in the second-level cache counts as so much more work between misses."""

RIDGE = 0.03
"""How much coefficients are drawn towards zero, as a share of what the programs say of them."""

FEW_MISSES = 0.2
"""Programs with fewer misses per packet say nothing about what a miss costs."""

CACHED = 0.05
"""A program with fewer misses per packet has all its tables in the cache."""

ENOUGH = 4
"""Fewest programs without misses for a fit of what does not depend on misses."""

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Composition:
    """What the forms see of a program. Cycles are per packet.

    Args:
        tables_alone, others: sums of the costs of its lookups, each as if alone, and of all other parts.
        shared: what lookups cost more since tables share the second-level cache.
        tables: lookups per packet.
        near_misses: lookups that leave the first-level cache.
        misses: lookups that miss the second-level cache, in units of one whose table is far beyond it, as if alone.
        missing: cost of the lookups that miss, as if alone.
        shared_misses, shared_missing: the same with tables that share the cache.
        pooled: what the headers of all parts cost in one chain more than in chains of their own.
        parts: how many parts there are; one part has no company.
    """

    baseline: float
    tables_alone: float
    others: float
    shared: float = 0.0
    tables: float = 0.0
    near_misses: float = 0.0
    misses: float = 0.0
    shared_misses: float = 0.0
    missing: float = 0.0
    shared_missing: float = 0.0
    pooled: float = 0.0
    parts: int = 2

    @property
    def alone(self) -> float:
        return self.tables_alone + self.others

    def spacing(self, density: float) -> float:
        """Work from one miss to the next, in cycles of lookups; that of other parts counts ``density`` times.

        Lookups that leave the first-level cache take places for lines in flight, which is work of a kind as well.
        """
        hits = max(self.tables_alone + self.shared - self.shared_missing, 0.0)
        near = NEAR_CYCLES * max(self.near_misses - self.shared_misses, 0.0)
        return (hits + near + density * self.others) / max(1.0, self.shared_misses)


@dataclass(frozen=True)
class Form:
    """A fitted form.

    Args:
        coefficients: ``a0`` to ``a4``; empty without.
        spacings, excess: where ``X`` is known, ascending, and ``X`` there, rising.
        density: ``D``.
    """

    name: FormName = "sum"
    coefficients: tuple[float, ...] = ()
    spacings: tuple[float, ...] = ()
    excess: tuple[float, ...] = ()
    density: float = DENSITY

    def total(self, program: Composition) -> float:
        """Cycles per packet of a program; never less than the baseline."""
        total = program.baseline + program.alone + program.pooled
        if self.name.startswith("spacing"):
            total += program.shared
        if self.coefficients:
            total += float(np.dot(_features(self.name, program), self.coefficients))
        if self.spacings:
            total += program.shared_misses * float(np.interp(program.spacing(self.density), self.spacings, self.excess))
        return max(total, program.baseline)


def fit_form(
    name: FormName, programs: Sequence[Composition], measured: Sequence[float], density: float = DENSITY
) -> Form:
    """Fit one form to measured programs, in cycles per packet."""
    if name == "sum":
        return Form()
    chosen = list(range(len(programs)))
    if name == "spacing":
        chosen = [n for n in chosen if programs[n].shared_misses < CACHED]
    spaced = name.startswith("spacing")
    form = Form(name, density=density)
    if name == "spacing, scaled":
        form = _with_rising(form, programs, measured)
    if len(chosen) >= ENOUGH:
        coefficients = _linear(form, [programs[n] for n in chosen], [measured[n] for n in chosen])
        form = replace(form, coefficients=coefficients)
    return _with_rising(replace(form, spacings=(), excess=()), programs, measured) if spaced else form


def _linear(form: Form, programs: Sequence[Composition], measured: Sequence[float]) -> tuple[float, ...]:
    """Coefficients that take away most of what a form leaves."""
    rest = np.asarray(measured) - np.asarray([form.total(p) for p in programs])
    weights = 1 / np.asarray(measured)
    design = np.asarray([_features(form.name, p) for p in programs]) * weights[:, None]
    scales = np.sqrt(np.sum(design**2, axis=0))
    scales[scales == 0] = 1.0
    scaled = design / scales
    square = scaled.T @ scaled + RIDGE * np.eye(design.shape[1])
    found = np.linalg.solve(square, scaled.T @ (rest * weights)) / scales
    return tuple(float(c) for c in found)


def _features(name: FormName, program: Composition) -> FloatArray:
    company = 1.0 if program.parts > 1 else 0.0
    some, later = company * min(program.tables, 1.0), max(program.tables - 1.0, 0.0)
    if name in ("overlap", "spacing"):
        beside = later / program.tables if program.tables > 1 else 0.0
        hidden = company * min(program.others, HIDDEN_CYCLES * max(program.tables, 1.0))
        return np.asarray([some, hidden, later, program.near_misses * beside, program.pooled])
    rest = max(program.alone - program.missing, 0.0)
    missed = 0.0 if name == "spacing, scaled" else program.misses * min(1.0, rest / LONG_CYCLES)
    return np.asarray([some, company * program.alone, later, company * missed, program.pooled])


def _with_rising(form: Form, programs: Sequence[Composition], measured: Sequence[float]) -> Form:
    """With ``X``: the rising function of spacing nearest to what misses cost in excess (pool adjacent violators)."""
    # A table that misses alone costs what it costs alone.
    points = [(0.0, 0.0, 1e3)]
    for program, cycles in zip(programs, measured, strict=True):
        if program.shared_misses >= FEW_MISSES:
            missing = (cycles - form.total(program)) / program.shared_misses
            points.append(
                (max(program.spacing(form.density), 0.0), missing, (100 * program.shared_misses / cycles) ** 2)
            )
    points.sort()
    blocks: list[list[float]] = []  # weighted sums of spacing and excess, and weights
    for spacing, excess, weight in points:
        blocks.append([spacing * weight, excess * weight, weight])
        while len(blocks) > 1 and _belong_together(blocks[-2], blocks[-1]):
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    found = [tuple(block[n] / block[2] for block in blocks) for n in (0, 1)]
    return replace(form, spacings=found[0], excess=found[1])


def _belong_together(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether two blocks are at one spacing, or fall."""
    apart = after[0] / after[2] - before[0] / before[2]
    return apart < 1.0 or before[1] / before[2] >= after[1] / after[2]


LINE_BYTES = 64

Layout = Literal["rte_hash", "bpf_map"]
"""How tables lie in memory: those of DPDK (rte_hash, rte_lpm), or the kernel's maps (hashtab.c, lpm_trie.c)."""

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
    """An exact table that packets look up, or one of prefixes; all its entries are equally likely."""

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
        return LINE_BYTES * sum(count for count, _ in self.lines())


def characteristic_time(tables: Sequence[TableUse], cache_bytes: float) -> float:
    """Packets after which a line that was not asked for is gone; infinite if everything fits."""
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
