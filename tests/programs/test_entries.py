from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.parser_states import extracting

from p4perf.errors import CapabilityError
from p4perf.programs import ir
from p4perf.programs.entries import MOST_ROWS, RowTemplate, check_entries, entry_rows, key_masks, rows_of
from p4perf.programs.interpreter import entry_parameters


def program_with(key_bits: Sequence[int], parameter_bits: Sequence[int], count: int, port: int = 1) -> ir.Program:
    fields = tuple(ir.Field(f"k{n}", bits) for n, bits in enumerate(key_bits))
    action = ir.Action("act", tuple(ir.Field(f"p{n}", bits) for n, bits in enumerate(parameter_bits)))
    keys = tuple(ir.Key(ir.FieldRef("h", f.name)) for f in fields)
    table = ir.Table("t", keys, ("act", "miss"), "miss", ir.EntrySet(count, "act", port))
    return ir.Program(
        "p",
        (ir.Header("h", fields),),
        (),
        (extracting("start", ("h",)),),
        (action, ir.Action("miss")),
        (table,),
        (),
        ("h",),
    )


def row(keys: Sequence[str], parameters: Sequence[str]) -> str:
    return " ".join([*(f"0x{k}" for k in keys), ":", *(f"0x{p}" for p in parameters)]) + "\n"


def expected(program: ir.Program, index: int) -> list[int]:
    """The numbers of one entry, one by one and with Python's integers."""
    table, numbers, rest = program.tables[0], [], index
    for key in reversed(table.keys):
        width = program.width_bits(key.field)
        numbers.append(rest % 2**width)
        rest >>= width
    return [*reversed(numbers), *entry_parameters(table, program.action("act"), index).values()]


@settings(max_examples=60)
@given(
    key_bits=st.lists(st.integers(1, 100), min_size=1, max_size=3),
    parameter_bits=st.lists(st.integers(1, 70), max_size=4),
    count=st.integers(0, 300),
    port=st.integers(0, 600),
    block=st.integers(1, 100),
)
def test_rows_hold_what_the_rule_says(
    key_bits: list[int], parameter_bits: list[int], count: int, port: int, block: int
) -> None:
    program = program_with(key_bits, parameter_bits, min(count, 2 ** sum(key_bits)), port)
    table = program.tables[0]
    lines = "".join(entry_rows(program, table, row, block_entries=block)).splitlines()
    assert len(lines) == table.entries.count
    assert len({len(line) for line in lines}) <= 1
    for index, line in enumerate(lines):
        assert [int(word, 16) for word in line.replace(":", "").split()] == expected(program, index)


def test_blocks_cover_all_entries_in_order() -> None:
    program = program_with([32], [32, 32], 1000)
    blocks = [piece.splitlines() for piece in entry_rows(program, program.tables[0], row, block_entries=300)]
    assert [len(block) for block in blocks] == [300, 300, 300, 100]
    assert [int(block[0].split()[0], 16) for block in blocks] == [0, 300, 600, 900]


@pytest.mark.parametrize("key_bits", [[], [8], [4, 4]])
def test_more_entries_than_keys_are_refused(key_bits: list[int]) -> None:
    program = program_with(key_bits, [32], 257)
    with pytest.raises(CapabilityError, match="key"):
        check_entries(program, program.tables[0])


@pytest.mark.parametrize(
    "wrong",
    [lambda k, p: k[0], lambda k, p: row(k, p) + p[0], lambda k, p: row(k[::-1], p), lambda k, p: k[0] + k[1]],
    ids=["forgotten", "twice", "out of order", "glued"],
)
def test_a_row_has_to_use_every_number_once_and_in_order(wrong: RowTemplate) -> None:
    program = program_with([8, 16], [32], 2**20)
    with pytest.raises(ValueError, match="once and in order"):
        list(entry_rows(program, program.tables[0], wrong))


@pytest.mark.slow
def test_a_million_rows_with_64_bytes_of_data_take_seconds_at_most() -> None:
    program = program_with([128], [32] * 16, 10**6)
    start, size, last = time.perf_counter(), 0, ""
    for piece in entry_rows(program, program.tables[0], row):
        size += len(piece)
        last = piece
    assert time.perf_counter() - start < 6  # 0.9 s on an idle machine
    assert re.match(r"0xf423f : 0x1 0x5e65", last.splitlines()[-1])
    assert size > 10**8


@settings(max_examples=60)
@given(
    key_bits=st.lists(st.integers(1, 100), min_size=1, max_size=3),
    free_bits=st.integers(0, 120),
    count=st.integers(0, 300),
    block=st.integers(1, 100),
)
def test_free_bits_are_zero_and_below_the_index(key_bits: list[int], free_bits: int, count: int, block: int) -> None:
    free = min(free_bits, sum(key_bits) - 1)
    program = program_with(key_bits, [8], min(count, 2 ** (sum(key_bits) - free)))
    table = replace(program.tables[0], entries=replace(program.tables[0].entries, free_bits=free))
    lines = "".join(entry_rows(program, table, row, block_entries=block)).splitlines()
    masks = key_masks(program, table)
    assert sum(m.free_bits for m in masks) == free
    for index, line in enumerate(lines):
        keys = [int(word, 16) for word in line.partition(":")[0].split()]
        whole = mask = 0
        for key, known in zip(keys, masks, strict=True):
            whole, mask = whole << known.width_bits | key, mask << known.width_bits | known.mask
            assert key & known.mask == key < 1 << known.width_bits
            assert known.prefix_bits + known.free_bits == known.width_bits
        assert whole == index << free
        assert mask == (1 << sum(key_bits)) - (1 << free)


def test_more_entries_than_the_bits_that_are_not_free_are_refused() -> None:
    program = program_with([16], [32], 257)
    table = replace(program.tables[0], entries=replace(program.tables[0].entries, free_bits=8))
    with pytest.raises(CapabilityError, match="257 entries do not fit a key of 16 bit of which 8 are free"):
        check_entries(program, table)


def test_ranges_that_take_too_many_rows_are_refused() -> None:
    """A range from 1 to 2^16 - 2 has 30 prefixes: an entry with three takes 27,000 rows."""
    whole = program_with((16, 16, 16), (), 0)
    entry = ir.Entry((ir.Match(0xFFFF, 1, 0xFFFE),) * 3, "act", ())

    def rows(entries: int) -> int:
        listed = replace(whole.tables[0], entries=ir.EntryList((entry,) * entries))
        return len(rows_of(replace(whole, tables=(listed,)), listed))

    assert rows(4) == 4 * 30**3 <= MOST_ROWS
    with pytest.raises(CapabilityError, match=f"the ranges of table t take more than {MOST_ROWS} rows"):
        rows(1000)
