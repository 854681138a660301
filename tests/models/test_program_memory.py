"""Memory of programs: measured tables, and what lies between them."""

import math

import pytest

from p4perf.models.program.memory import (
    MeasuredTable,
    MemoryItem,
    ProgramMemory,
    measured_entries,
    measured_table,
    scale_of,
)

DEFAULTS = {"match_kind": "exact", "key_bits": 128, "action_data_bytes": 64, "tables": 1, "applications": 1, "keys": 1}


def table(memory, **parameters):
    return MeasuredTable({**DEFAULTS, **parameters}, memory)


TABLES = (
    table(2_000.0, entries=10),
    table(120_000.0, entries=1000),
    table(99.0, entries=1000, key_bits=32),
    table(77.0, entries=1000, tables=4),
)


def sizes(entries, **more):
    return {"match_kind": "exact", "entries": entries, "key_bits": 128, "action_data_bytes": 64, **more}


def test_a_measured_table_is_itself():
    assert measured_table(TABLES, sizes(1000)).memory_bytes == 120_000
    assert measured_table(TABLES, sizes(1000, key_bits=32)).memory_bytes == 99
    for other in (sizes(2000), sizes(100_000), sizes(1000, match_kind="lpm"), sizes(1000, key_bits=64)):
        assert measured_table(TABLES, other) is None
    assert measured_table((), sizes(1000)) is None


def test_between_measured_tables_a_formula_is_scaled():
    assert measured_entries(TABLES, sizes(5)) == (10, 1000)
    formula = {10: 1000.0, 1000: 100_000.0}
    assert scale_of(TABLES, sizes(10), formula) == pytest.approx(2.0)
    assert scale_of(TABLES, sizes(1000), formula) == pytest.approx(1.2)
    assert scale_of(TABLES, sizes(100), formula) == pytest.approx(1.6)
    middle = math.log(300 / 10) / math.log(100)
    assert scale_of(TABLES, sizes(300), formula) == pytest.approx(2.0 - 0.8 * middle)


def test_outside_of_what_was_measured_there_is_no_scale():
    formula = {10: 1000.0, 1000: 100_000.0}
    for other in (sizes(5), sizes(2000), sizes(100, key_bits=64)):
        assert scale_of(TABLES, other, formula) is None
    assert scale_of(TABLES, sizes(100), {}) is None


def test_a_sum_leaves_out_what_nobody_knows_and_says_so():
    known, unknown = MemoryItem("table a", 100.0, "measured"), MemoryItem("table b", None, "unknown")
    whole = ProgramMemory((known, unknown), ("something",))
    assert whole.size_bytes == 100
    assert whole.unknown == ("table b",)
    assert whole.warnings[0] == "something"
    assert "table b" in whole.warnings[1]
    assert ProgramMemory((unknown,)).size_bytes is None
    assert ProgramMemory(()).size_bytes == 0
    assert ProgramMemory((known,)).warnings == ()
