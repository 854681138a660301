"""The entries of a table, many at a time: numbers as arrays, and text rows from a template.

The rule of :class:`~p4perf.generators.program.EntrySet` is evaluated for a block of entries at once, so that a table of
millions of entries is written at the speed of memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from p4perf.errors import CapabilityError
from p4perf.generators.program import ENTRY_MULTIPLIER, Program, Table

BLOCK_ENTRIES = 16384
"""Entries that are computed together."""

MAX_ENTRIES = 1 << 62
"""Largest number of entries whose keys fit the arithmetic."""

WORD_BITS = 64

Words = npt.NDArray[np.uint64]

RowTemplate = Callable[[Sequence[str], Sequence[str]], str]
"""Makes one row from the digits of its keys and of its action data, each number without its ``0x``."""

_DIGIT = "\0"
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class EntryBlock:
    """Consecutive entries: ``keys`` and ``parameters`` hold one array a key and a parameter, in declared order."""

    first: int
    keys: tuple[Words, ...]
    parameters: tuple[Words, ...]

    @property
    def count(self) -> int:
        """Number of entries in the block."""
        return len(self.keys[0])


def check_entries(program: Program, table: Table) -> None:
    """Refuse a table whose entries cannot all be told apart.

    Raises:
        CapabilityError: the table has no key, or its key has fewer values than the table has entries.
    """
    if not table.keys:
        raise CapabilityError(f"table {table.name} has entries but no key")
    bits, count = program.key_bits(table), table.entries.count
    if count > MAX_ENTRIES or count > 1 << bits:
        raise CapabilityError(
            f"table {table.name}: {count} entries do not fit a key of {bits} bit",
            hint="use a wider key or fewer entries",
        )


def entry_blocks(program: Program, table: Table, *, block_entries: int = BLOCK_ENTRIES) -> Iterator[EntryBlock]:
    """All entries of a table, in ascending order, in blocks of at most ``block_entries``.

    Raises:
        CapabilityError: see :func:`check_entries`.
    """
    check_entries(program, table)
    widths = [program.width_bits(key.field) for key in table.keys]
    shifts = [sum(widths[n + 1 :]) for n in range(len(widths))]
    parameters = program.action(table.entries.action).parameters
    for first in range(0, table.entries.count, block_entries):
        index = np.arange(first, min(first + block_entries, table.entries.count), dtype=np.uint64)
        yield EntryBlock(
            first,
            tuple(_bits(index, shift, width) for shift, width in zip(shifts, widths, strict=True)),
            tuple(_parameter(index, table.entries.port, j, p.width_bits) for j, p in enumerate(parameters)),
        )


def entry_rows(
    program: Program, table: Table, row: RowTemplate, *, block_entries: int = BLOCK_ENTRIES
) -> Iterator[str]:
    """All entries of a table as text, one piece a block; numbers are hexadecimal, of constant length for the table.

    Args:
        program: the program that holds the table.
        table: the table.
        row: renders one row; it is called once, and its digits are replaced for every entry.
        block_entries: entries in one piece.

    Raises:
        CapabilityError: see :func:`check_entries`.
        ValueError: the row template used a number twice, in another order, or not at all.
    """
    check_entries(program, table)
    key_digits, parameter_digits = _digits(program, table)
    text = row([_DIGIT * n for n in key_digits], [_DIGIT * n for n in parameter_digits])
    runs = [match.span() for match in re.finditer(f"{_DIGIT}+", text)]
    digits = [*key_digits, *parameter_digits]
    if [end - start for start, end in runs] != digits:
        raise ValueError("a row template has to use every number once and in order")
    line = np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    sheet = np.tile(line, (min(block_entries, table.entries.count), 1))
    for block in entry_blocks(program, table, block_entries=block_entries):
        rows = sheet[: block.count]
        for (start, end), numbers in zip(runs, (*block.keys, *block.parameters), strict=True):
            _write_hex(rows[:, start:end], numbers)
        yield rows.tobytes().decode("ascii")


def _bits(index: Words, shift: int, width: int) -> Words:
    """``width`` bits of every index from bit ``shift`` on."""
    if shift >= WORD_BITS:
        return np.zeros_like(index)
    return _cut(index >> np.uint64(shift), width)


def _cut(numbers: Words, width: int) -> Words:
    return numbers if width >= WORD_BITS else numbers & np.uint64((1 << width) - 1)


def _parameter(index: Words, port: int, j: int, width: int) -> Words:
    """Action data parameter ``j`` of the entries: see :class:`~p4perf.generators.program.EntrySet`."""
    if j == 0:
        return _cut(np.full_like(index, port), width)
    return _cut((index * np.uint64(ENTRY_MULTIPLIER) + np.uint64(j)) & np.uint64(0xFFFFFFFF), width)


def _digits(program: Program, table: Table) -> tuple[list[int], list[int]]:
    """Hexadecimal digits that hold every value of each key and of each parameter."""
    last, keys = max(table.entries.count - 1, 0), []
    edges = [sum(program.width_bits(k.field) for k in table.keys[n:]) for n in range(len(table.keys) + 1)]
    for high, low in pairwise(edges):
        largest = min(last >> low, (1 << (high - low)) - 1)
        keys.append(max(1, (largest.bit_length() + 3) // 4))
    parameters = program.action(table.entries.action).parameters
    words = [
        max(1, (min(p.width_bits, table.entries.port.bit_length() if j == 0 else 32) + 3) // 4)
        for j, p in enumerate(parameters)
    ]
    return keys, words


def _write_hex(cells: npt.NDArray[np.uint8], numbers: Words) -> None:
    """Write each number into its row of cells, most significant digit first."""
    for column in range(cells.shape[1]):
        shift = np.uint64(4 * (cells.shape[1] - 1 - column))
        cells[:, column] = _HEX[(numbers >> shift) & np.uint64(15)]
