"""The entries of a table, many at a time: numbers as arrays, and text rows from a template.

The rule of :class:`~p4perf.programs.ir.EntrySet` is evaluated for a block of entries at once, so that a table of
millions of entries is written at the speed of memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from operator import and_

import numpy as np
import numpy.typing as npt

from p4perf.errors import CapabilityError
from p4perf.programs.analysis import masked_values
from p4perf.programs.ir import ENTRY_MULTIPLIER, Entry, Program, Table

BLOCK_ENTRIES = 16384
MAX_ENTRIES = 1 << 60
"""Largest number of entries whose keys fit the arithmetic."""

WORD_BITS = 64

Words = npt.NDArray[np.uint64]

RowTemplate = Callable[[Sequence[str], Sequence[str]], str]
"""Makes one row from the digits of its keys and of its action data, each number without its ``0x``."""

_DIGIT = "\0"
_DIGIT_BITS = 4
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


def check_entries(program: Program, table: Table) -> None:
    """Refuse a table with duplicate entries.

    Raises:
        CapabilityError: the table has no key, or its key has fewer values than the table has entries.
    """
    if not table.keys:
        raise CapabilityError(f"table {table.name} has entries but no key")
    bits, count, free = program.key_bits(table), table.entries.count, table.rule.free_bits
    if count > MAX_ENTRIES or free >= bits or count > 1 << (bits - free):
        open_bits = f" of which {free} are free" if free else ""
        raise CapabilityError(
            f"table {table.name}: {count} entries do not fit a key of {bits} bit{open_bits}",
            hint="use a wider key or fewer entries",
        )


MANY_MASKS = 32
"""With more combinations of masks than that, all entries are compared at once."""


class EntryIndex:
    """Finds the first entry of a list that fits, by one look-up for each combination of masks that its entries have."""

    def __init__(self, listing: Sequence[Entry]) -> None:
        self._listing = listing
        self._groups: dict[tuple[int, ...], dict[tuple[int, ...], list[int]]] = {}
        for number, entry in enumerate(listing):
            masks = tuple(m.mask if m.low == m.high else 0 for m in entry.matches)
            values = tuple(m.low if m.low == m.high else 0 for m in entry.matches)
            self._groups.setdefault(masks, {}).setdefault(values, []).append(number)
        self._columns = self._compared() if len(self._groups) > MANY_MASKS else []

    def _compared(self) -> list[tuple[int, Words, Words, Words]]:
        """Of each key of up to 64 bit: its number, and masks, lowest values and spans of all entries."""
        found = []
        for number, matches in enumerate(zip(*(entry.matches for entry in self._listing), strict=True)):
            if all(m.high < 1 << WORD_BITS and m.mask < 1 << WORD_BITS for m in matches):
                mask, low, high = np.array([(m.mask, m.low, m.high) for m in matches], np.uint64).T
                found.append((number, mask, low, high - low))
        return found

    def find(self, values: Sequence[int]) -> int | None:
        """The number of the entry; None if none fits."""
        if self._columns:
            return next((n for n in self._candidates(values) if self._listing[n].fits(values)), None)
        best = len(self._listing)
        for masks, entries in self._groups.items():
            for number in entries.get(tuple(map(and_, values, masks)), ()):
                if number >= best:
                    break
                if self._listing[number].fits(values):
                    best = number
        return best if best < len(self._listing) else None

    def _candidates(self, values: Sequence[int]) -> list[int]:
        """The entries whose keys of up to 64 bit fit, in order."""
        left = np.arange(len(self._listing))
        for number, mask, low, span in self._columns:
            value = np.uint64(values[number] & (1 << WORD_BITS) - 1)
            left = left[(value & mask[left]) - low[left] <= span[left]]
        return left.tolist()


@dataclass(frozen=True, slots=True)
class Row:
    """An entry as bytes: its key, its mask, and how many bits of the key it compares; and which entry it is."""

    key: bytes
    mask: bytes
    prefix_bits: int
    entry: int


MOST_ROWS = 1 << 17
"""Most rows of a table with ranges: one of a 16-bit port has up to 30 prefixes, two of an entry up to 900."""


def rows_of(program: Program, table: Table, align_bits: int = 1) -> tuple[Row, ...]:
    """The entries of a list, the first first; a range takes one row for each of its prefixes.

    The width of each key is rounded up to ``align_bits``; the bits before it are zeros that are compared.

    Raises:
        CapabilityError: ranges take more than :data:`MOST_ROWS` rows.
    """
    fields = [program.width_bits(key.field) for key in table.keys]
    widths = [-(-width // align_bits) * align_bits for width in fields]
    rest = -sum(widths) % 8
    found: list[Row] = []
    for number, entry in enumerate(table.listing):
        parts = [list(masked_values(match, width)) for match, width in zip(entry.matches, fields, strict=True)]
        if len(found) + math.prod(map(len, parts)) > max(MOST_ROWS, len(table.listing)):
            raise CapabilityError(f"the ranges of table {table.label or table.name} take more than {MOST_ROWS} rows")
        for chosen in product(*parts):
            value = mask = 0
            for (v, m), used, width in zip(chosen, fields, widths, strict=True):
                value, mask = value << width | v, mask << width | m | (1 << width) - (1 << used)
            size = (sum(widths) + rest) // 8
            key, masked = ((n << rest).to_bytes(size, "big") for n in (value, mask))
            found.append(Row(key, masked, mask.bit_count(), number))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class KeyMask:
    """Which bits of one key of a table matter: all of its ``width_bits`` but the lowest ``free_bits``."""

    width_bits: int
    free_bits: int

    @property
    def prefix_bits(self) -> int:
        return self.width_bits - self.free_bits

    @property
    def mask(self) -> int:
        return (1 << self.width_bits) - (1 << self.free_bits)


def key_masks(program: Program, table: Table) -> tuple[KeyMask, ...]:
    """The masks that the keys of every entry of a table have, in declared order."""
    return tuple(
        KeyMask(width, min(max(table.rule.free_bits - low, 0), width)) for width, low in _edges(program, table)
    )


def _edges(program: Program, table: Table) -> list[tuple[int, int]]:
    """Width of each key of a table, and the place of its lowest bit among all of the keys' bits."""
    found, low = [], 0
    for key in reversed(table.keys):
        width = program.width_bits(key.field)
        found.append((width, low))
        low += width
    return found[::-1]


def entry_rows(
    program: Program, table: Table, row: RowTemplate, *, block_entries: int = BLOCK_ENTRIES, numbered: bool = False
) -> Iterator[str]:
    """All entries of a table as text, one piece a block; numbers are hexadecimal, of constant length for the table.

    Args:
        row: renders one row; it is called once, and its digits are replaced for every entry. Zeros that stand at the
            end of a key in every entry, because its lowest bits are free, are there already.
        numbered: whether the row also gets the number of the entry, as a first key.

    Raises:
        CapabilityError: see :func:`check_entries`.
        ValueError: the row template used a number twice, in another order, or not at all.
    """
    check_entries(program, table)
    plans = _plans(program, table)
    if numbered:
        last = max(table.entries.count - 1, 0)
        plans.insert(0, _Plan(0, WORD_BITS, max(1, (last.bit_length() + 3) // _DIGIT_BITS), 0))
    widths = [p.width_bits for p in program.action(table.rule.action).parameters]
    port = table.rule.port
    lengths = [max(1, (min(w, port.bit_length() if j == 0 else 32) + 3) // 4) for j, w in enumerate(widths)]
    text = row([_DIGIT * p.digits + "0" * p.zeros for p in plans], [_DIGIT * n for n in lengths])
    runs = [match.span() for match in re.finditer(f"{_DIGIT}+", text)]
    if [end - start for start, end in runs] != [*(p.digits for p in plans), *lengths]:
        raise ValueError("a row template must use every number once and in order")
    line = np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    size = max(1, min(block_entries, table.entries.count))
    sheet = np.tile(line, (size, 1))
    if widths:
        _write_hex(sheet[:, slice(*runs[len(plans)])], _parameter(np.zeros(size, dtype=np.uint64), port, 0, widths[0]))
    for first in range(0, table.entries.count, size):
        index = np.arange(first, min(first + size, table.entries.count), dtype=np.uint64)
        rows = sheet[: len(index)]
        for (start, end), plan in zip(runs, plans, strict=False):
            _write_hex(rows[:, start:end], _bits(index, plan.shift, plan.width_bits))
        for j, (start, end) in enumerate(runs[len(plans) + 1 :], 1):
            _write_hex(rows[:, start:end], _parameter(index, port, j, widths[j]))
        yield rows.tobytes().decode("ascii")


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a key is written: bits of the index from ``shift`` on, in a number of digits, and constant zeros."""

    shift: int
    width_bits: int
    digits: int
    zeros: int


def _plans(program: Program, table: Table) -> list[_Plan]:
    plans, last, free = [], max(table.entries.count - 1, 0), table.rule.free_bits
    for width, low in _edges(program, table):
        zeros = min(max(free - low, 0), width - 1) // _DIGIT_BITS
        shift, kept = low - free + zeros * _DIGIT_BITS, width - zeros * _DIGIT_BITS
        largest = min(last >> shift if shift >= 0 else last << -shift, (1 << kept) - 1)
        plans.append(_Plan(shift, kept, max(1, (largest.bit_length() + 3) // _DIGIT_BITS), zeros))
    return plans


def _bits(index: Words, shift: int, width: int) -> Words:
    """``width`` bits of every index from bit ``shift`` on; below bit 0 there are zeros."""
    if abs(shift) >= WORD_BITS:
        return np.zeros_like(index)
    return _cut(index >> np.uint64(shift) if shift >= 0 else index << np.uint64(-shift), width)


def _cut(numbers: Words, width: int) -> Words:
    return numbers if width >= WORD_BITS else numbers & np.uint64((1 << width) - 1)


def _parameter(index: Words, port: int, j: int, width: int) -> Words:
    """Action data parameter ``j`` of the entries: see :class:`~p4perf.programs.ir.EntrySet`."""
    if j == 0:
        return _cut(np.full_like(index, port), width)
    return _cut((index * np.uint64(ENTRY_MULTIPLIER) + np.uint64(j)) & np.uint64(0xFFFFFFFF), width)


def _write_hex(cells: npt.NDArray[np.uint8], numbers: Words) -> None:
    """Write each number into its row of cells, most significant digit first."""
    for column in range(cells.shape[1]):
        shift = np.uint64(_DIGIT_BITS * (cells.shape[1] - 1 - column))
        cells[:, column] = _HEX[(numbers >> shift) & np.uint64(15)]
