"""The match-action table, against entries and bytes worked out here."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.component_runs import ETHERNET, generated, program_of, sent, through, workload_of

from p4perf.errors import CapabilityError
from p4perf.programs.interpreter import Interpreter

few = settings(max_examples=40)


def words(entry: int, size_bytes: int) -> list[int]:
    """Action data after the port: word j of entry i is i * 0x9E3779B1 + j, modulo 2**32."""
    return [(entry * 2654435761 + j) % 2**32 for j in range(1, size_bytes // 4)]


def result_of(entry: int, size_bytes: int, lookups: int, start: int) -> int:
    value = start
    for _ in range(lookups):
        for word in words(entry, size_bytes):
            value ^= word
        if lookups > 1:
            value = (value + 1) % 2**32
    return value


@few
@given(
    kind=st.sampled_from(["exact", "lpm", "ternary"]),
    entries=st.integers(1, 100),
    keys=st.integers(1, 4),
    tables=st.integers(1, 4),
    applications=st.integers(1, 3),
    size=st.sampled_from([4, 8, 12, 64, 68, 72, 200]),
    draw=st.data(),
)
def test_hits_show_all_data_and_misses_drop(
    kind: str, entries: int, keys: int, tables: int, applications: int, size: int, draw: st.DataObject
) -> None:
    parameters: dict[str, Any] = {
        "match_kind": kind, "entries": entries, "keys": keys, "tables": tables, "applications": applications,
        "action_data_bytes": size, "key_bits": 16,
    }  # fmt: skip
    program = program_of("match_action_table", **parameters)
    free = 0 if kind == "exact" else 8
    value = draw.draw(st.integers(0, min(2 * entries, 255)).map(lambda i: i << free))
    value |= draw.draw(st.integers(0, (1 << free) - 1))
    before = draw.draw(st.sampled_from([0, 0, 0, 1, 0x0100]))
    start = draw.draw(st.integers(0, 2**32 - 1))
    key = b"".join(before.to_bytes(2, "big") for _ in range(keys - 1)) + value.to_bytes(2, "big")
    outcome = Interpreter(program).run(ETHERNET + key + start.to_bytes(4, "big") + b"rest")
    lookups = tables * applications
    names = [t.name for t in program.tables] * applications
    if value >> free < entries and (keys == 1 or before == 0):
        result = result_of(value >> free, size, lookups, start)
        assert sent(outcome) == [(1, key + result.to_bytes(4, "big") + b"rest")]
        assert list(outcome.hits) == names
    else:
        assert outcome.sent == ()
        assert list(outcome.misses) == names


@few
@given(
    kind=st.sampled_from(["exact", "lpm", "ternary"]),
    keys=st.integers(1, 3),
    key_bits=st.sampled_from([16, 32, 128]),
    drawn=st.integers(0, 19),
)
def test_packets_hit_below_the_entries_and_miss_above(kind: str, keys: int, key_bits: int, drawn: int) -> None:
    workload = workload_of("match_action_table", entries=10, match_kind=kind, keys=keys, key_bits=key_bits)
    data = generated(workload, drawn)
    key = int.from_bytes(data[: keys * key_bits // 8], "big")
    assert key == (drawn if kind == "exact" else drawn << 8 | 0xFF)
    outcome = Interpreter(workload.program).run(ETHERNET + data)
    assert bool(outcome.sent) == (drawn < 10)


@pytest.mark.parametrize(
    ("kind", "kinds"),
    [("exact", ["exact"] * 3), ("lpm", ["exact", "exact", "lpm"]), ("ternary", ["ternary"] * 3)],
)
def test_only_the_last_key_is_a_prefix(kind: str, kinds: list[str]) -> None:
    table = program_of("match_action_table", entries=2, match_kind=kind, keys=3).tables[0]
    assert [key.match_kind for key in table.keys] == kinds


@pytest.mark.parametrize("size", [4, 8, 64, 1024, 4096])
def test_a_table_has_the_action_data_that_was_asked_for(size: int) -> None:
    program = program_of("match_action_table", entries=5, action_data_bytes=size)
    table = program.tables[0]
    assert program.action(table.rule.action).data_bits == size * 8
    assert (table.entries.count, program.key_bits(table)) == (5, 128)
    assert through("match_action_table", bytes(15) + b"\4" + bytes(4), entries=5, action_data_bytes=size).port == 1


@pytest.mark.parametrize("free", [0, 8, 16])
def test_free_bits_are_those_that_match_anything(free: int) -> None:
    workload = workload_of("match_action_table", entries=3, match_kind="ternary", key_bits=24, free_bits=free)
    key = (2 << free) + (1 << free) - 1
    assert generated(workload, 2)[:3] == key.to_bytes(3, "big")
    interpreter = Interpreter(workload.program)
    assert interpreter.run(ETHERNET + key.to_bytes(3, "big") + bytes(4)).port == 1
    assert interpreter.run(ETHERNET + (key + 1).to_bytes(3, "big") + bytes(4)).port is None


@pytest.mark.parametrize(
    ("parameters", "key", "message"),
    [
        ({"entries": 257, "key_bits": 8}, "key_bits", "8 bit has 256 values, but 257 are needed"),
        ({"entries": 129, "key_bits": 8, "hit_ratio": 0.5}, "key_bits", "258 are needed"),
        ({"entries": 257, "key_bits": 16, "match_kind": "lpm"}, "key_bits", "16 bit, 8 of them free, has 256 values"),
        ({"entries": 257, "key_bits": 8, "keys": 3}, "key_bits", "256 values"),
        ({"entries": 1, "key_bits": 8, "match_kind": "lpm"}, "free_bits", "leave nothing of a key of 8 bit"),
        ({"entries": 1, "key_bits": 32, "free_bits": 8}, "free_bits", "exact key has no free bits"),
        ({"entries": 1, "tables": 1024, "applications": 5}, "applications", "5120 lookups"),
    ],
)
def test_tables_that_cannot_be(parameters: dict[str, Any], key: str, message: str) -> None:
    with pytest.raises(CapabilityError, match=message) as refused:
        program_of("match_action_table", **parameters)
    assert refused.value.key == f"program.parameters.{key}"
    assert refused.value.hint


@pytest.mark.parametrize(
    "parameters",
    [
        {"entries": 256, "key_bits": 8},
        {"entries": 128, "key_bits": 8, "hit_ratio": 0.5},
        {"entries": 256, "key_bits": 16, "match_kind": "lpm"},
        {"entries": 256, "key_bits": 8, "match_kind": "lpm", "free_bits": 0},
        {"entries": 1, "free_bits": 0},
        {"entries": 1, "tables": 1024, "applications": 4},
    ],
)
def test_tables_that_just_can(parameters: dict[str, Any]) -> None:
    program_of("match_action_table", **parameters)


def test_two_tables_in_one_program_have_names_of_their_own() -> None:
    program = program_of("match_action_table", entries=2, tables=2)
    assert [t.name for t in program.tables] == ["table_exact", "table_exact_1"]
    assert [h.name for h in program.headers] == ["ethernet", "bench"]
