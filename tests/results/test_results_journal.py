"""Trials: one line each, torn lines, damage, duplicates, strict JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4perf.errors import DataError, UsageError
from p4perf.results import RunDirectory
from p4perf.results.rundir import Journal

Make = Callable[..., dict[str, Any]]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def journal_path(run: RunDirectory, point: str = "aa") -> Path:
    return run.path / "points" / point / "raw.jsonl"


def test_a_trial_is_one_line_on_disk_when_append_returns(run: RunDirectory, trial: Make) -> None:
    for repetition in range(3):
        run.append_trial("aa", trial(repetition, cycles_per_packet=[1.5, 2.0], note="line\nbreak ü"))
        lines = journal_path(run).read_bytes().split(b"\n")
        assert lines[-1] == b""
        assert [json.loads(line)["trial"]["repetition"] for line in lines[:-1]] == list(range(repetition + 1))
    assert run.trials("aa") == [trial(i, cycles_per_packet=[1.5, 2.0], note="line\nbreak ü") for i in range(3)]
    assert RunDirectory.open(run.path).trials("aa") == run.trials("aa")


def test_points_do_not_mix(run: RunDirectory, trial: Make) -> None:
    run.append_trial("aa", trial(0, value=1))
    run.append_trial("bb", trial(0, value=2))
    assert run.trials("aa") == [trial(0, value=1)]
    assert run.trials("bb") == [trial(0, value=2)]
    assert run.trials("cc") == []
    assert run.points() == ["aa", "bb"]


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=4), max_size=5))
def test_any_json_record_comes_back_as_it_was(bodies: list[dict[str, Any]]) -> None:
    records = [body | {"trial": {"repetition": i, "attempt": 0}} for i, body in enumerate(bodies)]
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "raw.jsonl")
        for record in records:
            journal.append(record)
        assert journal.records() == records
        assert repr(Journal(journal.path).records()) == repr(records)  # types, signs of zero, order of keys


@given(st.binary(max_size=60).filter(lambda tail: b"\n" not in tail))
def test_whatever_stands_in_a_torn_last_line_is_ignored_and_then_removed(tail: bytes) -> None:
    first, second = ({"trial": {"repetition": i, "attempt": 0}} for i in range(2))
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "raw.jsonl")
        journal.append(first)
        with journal.path.open("ab") as file:
            file.write(tail)
        assert journal.records() == [first]
        journal.append(second)
        assert journal.records() == [first, second]
        assert journal.path.read_bytes().count(b"\n") == 2
        assert not tail or journal.path.read_bytes().count(b"\x00") == 0


def test_a_journal_cut_anywhere_keeps_the_lines_before_the_cut(run: RunDirectory, trial: Make) -> None:
    for repetition in range(3):
        run.append_trial("aa", trial(repetition, value=repetition / 3))
    data = journal_path(run).read_bytes()
    for cut in range(len(data) + 1):
        journal_path(run).write_bytes(data[:cut])
        whole = data[:cut].count(b"\n")
        reader = RunDirectory.open(run.path)
        assert reader.trials("aa") == [trial(i, value=i / 3) for i in range(whole)]
        reader.append_trial("aa", trial(99))
        assert [r["trial"]["repetition"] for r in reader.trials("aa")] == [*range(whole), 99]


def test_an_object_notices_what_another_one_appended(run: RunDirectory, trial: Make) -> None:
    other = RunDirectory.open(run.path)
    run.append_trial("aa", trial(0))
    other.append_trial("aa", trial(1))
    with pytest.raises(UsageError, match="already"):
        run.append_trial("aa", trial(1))
    run.append_trial("aa", trial(2))
    assert [r["trial"]["repetition"] for r in other.trials("aa")] == [0, 1, 2]


def test_the_same_trial_is_refused_and_another_attempt_is_not(run: RunDirectory, trial: Make) -> None:
    run.append_trial("aa", trial(0, 0, value=1))
    before = journal_path(run).read_bytes()
    with pytest.raises(UsageError, match=r"trial: trial .* is in .*raw\.jsonl already"):
        run.append_trial("aa", {"trial": {"attempt": 0, "repetition": 0}, "value": 2})
    assert journal_path(run).read_bytes() == before
    run.append_trial("aa", trial(0, 1))
    run.append_trial("aa", {"trial": {"repetition": 0, "attempt": 0, "role": "baseline"}})
    assert len(run.trials("aa")) == 3


@pytest.mark.parametrize(
    ("record", "key"),
    [
        ({}, "trial"),
        ({"trial": 3}, "trial"),
        ({"trial": {"repetition": 0}}, "trial.attempt"),
        ({"trial": {"repetition": -1, "attempt": 0}}, "trial.repetition"),
        ({"trial": {"repetition": True, "attempt": 0}}, "trial.repetition"),
        ({"trial": {"repetition": 1.0, "attempt": 0}}, "trial.repetition"),
    ],
)
def test_a_record_without_a_valid_trial_is_refused(run: RunDirectory, record: dict[str, Any], key: str) -> None:
    with pytest.raises(UsageError) as caught:
        run.append_trial("aa", record)
    assert caught.value.key == key
    assert run.trials("aa") == []


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (math.nan, "result.values[1]"),
        (math.inf, "result.values[1]"),
        (-math.inf, "result.values[1]"),
        (np.float32(1), "result.values[1]"),
        (np.int64(1), "result.values[1]"),
        (b"x", "result.values[1]"),
        ({1: 2}, "result.values[1]"),
        ({"deeper": math.nan}, "result.values[1].deeper"),
    ],
)
def test_what_json_cannot_hold_is_refused_and_named(run: RunDirectory, trial: Make, value: object, key: str) -> None:
    with pytest.raises(UsageError) as caught:
        run.append_trial("aa", trial(0, result={"values": [0, value]}))
    assert caught.value.key == key
    assert run.trials("aa") == []


def test_endless_records_are_refused(run: RunDirectory, trial: Make) -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(UsageError, match="JSON"):
        run.append_trial("aa", trial(0, loop=loop))


GOOD = '{"trial":{"repetition":%d,"attempt":0}}'


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (b'{"trial":{"repe', "is not valid JSON"),
        (b"\x00" * 40, "is not valid JSON"),
        (b"\xff\xfe", "is not valid JSON"),
        (b"", "is not valid JSON"),
        (b"[1]", "is not a JSON object"),
        (b"[" * 100_000, "is not valid JSON"),
        (b'{"trial":{"repetition":7,"attempt":0},"value":NaN}', "NaN is not a number that JSON has"),
        (b'{"trial":{"repetition":7}}', "trial.attempt: None is not a whole number from 0"),
        ((GOOD % 0).encode(), "trial: repeats the trial of line 1"),
    ],
)
def test_a_damaged_line_in_the_middle_is_named(run: RunDirectory, trial: Make, damage: bytes, message: str) -> None:
    run.append_trial("aa", trial(0))
    with journal_path(run).open("ab") as file:
        file.write(damage + b"\n" + (GOOD % 1).encode() + b"\n")
    before = journal_path(run).read_bytes()
    for use in (lambda: run.trials("aa"), lambda: run.append_trial("aa", trial(5)), lambda: run.state()):
        with pytest.raises(DataError, match=message) as caught:
            use()
        assert caught.value.location is not None
        assert (caught.value.location.file, caught.value.location.line) == (str(journal_path(run)), 2)
    assert journal_path(run).read_bytes() == before


def test_the_message_on_damage_shows_the_line_and_a_caret(run: RunDirectory, trial: Make) -> None:
    run.append_trial("aa", trial(0))
    with journal_path(run).open("ab") as file:
        file.write(b'{"trial": oops}\n')
    with pytest.raises(DataError) as caught:
        run.trials("aa")
    assert str(caught.value).splitlines() == [
        f"{journal_path(run)}:2:11: is not valid JSON: Expecting value",
        '  {"trial": oops}',
        "            ^",
    ]
