"""Damaged files and the readers: 3,000 inputs here, as many as wanted with make fuzz."""

import importlib.util
import json
import random
import sys
from pathlib import Path

import pytest

COUNT = 3000
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def fuzz():
    path = ROOT / "tools" / "fuzz.py"
    spec = importlib.util.spec_from_file_location("fuzz", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz"] = module
    spec.loader.exec_module(module)
    return module


def test_whole_files_are_read(fuzz):
    incomplete = {path.name for path in (ROOT / "p4perf/specs/catalogue/base").iterdir()}
    refused = {
        (name, file)
        for name, reader in fuzz.readers().items()
        for file, data in reader.sources
        if file not in incomplete and fuzz.verdict_of(reader, file, data) != "read"
    }
    assert refused == set()
    assert all(reader.sources for reader in fuzz.readers().values())


def test_no_reader_fails(fuzz, tmp_path, capsys):
    code = fuzz.main([str(COUNT), "--keep", str(tmp_path / "failures")])
    report = capsys.readouterr().out
    assert code == 0, report
    rows = {line[:18].strip(): [int(word) for word in line[18:].split()[:4]] for line in report.splitlines()[1:]}
    assert set(rows) == set(fuzz.readers())
    assert sum(row[0] for row in rows.values()) == COUNT
    assert all(row[1] and row[2] for row in rows.values()), report
    assert not (tmp_path / "failures").exists()


def test_the_same_seed_makes_the_same_input(fuzz):
    whole, other = b'{"a": 1, "b": [2, 3]}' * 9, b"x: 1\n" * 9
    inputs = [[fuzz.damaged(whole, other, random.Random(seed)) for seed in range(50)] for _ in range(2)]
    assert inputs[0] == inputs[1]
    assert len(set(inputs[0])) > 40


def test_values_of_json_and_yaml_are_exchanged(fuzz):
    whole = {"a": {"b": [1, {"c": "x"}]}, "d": None}
    changed = [json.loads(fuzz.restructured(json.dumps(whole).encode(), random.Random(seed))) for seed in range(60)]
    assert sum(each != whole for each in changed) > 50
    assert any("d" not in each for each in changed), "keys are removed"
    lines = b'{"a": 1}\n{"a": 2}\n'
    assert all(fuzz.restructured(lines, random.Random(seed)).count(b"\n") == 2 for seed in range(20))
    assert fuzz.restructured(b"a: [", random.Random(1)) == b"a: [", "what is damaged already stays as it is"
    assert json.loads(fuzz.restructured(b"a: {b: 1}", random.Random(1))) != {"a": {"b": 1}}


def test_what_was_tried_is_not_tried_again(fuzz, tmp_path, monkeypatch, capsys):
    tried = []
    reader = fuzz.Reader(lambda path: tried.append(path.read_bytes()), [("n.txt", b"1234567" * 40)])
    monkeypatch.setattr(fuzz, "readers", lambda: {"numbers": reader})
    monkeypatch.setattr(fuzz, "CHUNK", 4)
    arguments = ["6", "--record", str(tmp_path / "fuzz.jsonl")]
    assert fuzz.main(["4", *arguments[1:]]) == 0
    assert "4 of 4 inputs, 0 failed" in capsys.readouterr().err
    assert fuzz.main(arguments) == fuzz.main(arguments) == 0
    assert len(tried) == 6
    report = capsys.readouterr().out
    assert report.splitlines()[1].split()[:4] == ["numbers", "6", "6", "0"]


def test_a_failure_is_found_made_smaller_and_kept(fuzz, tmp_path, monkeypatch, capsys):
    def fail(path):
        if b"7" in path.read_bytes():
            raise KeyError(path.name)

    reader = fuzz.Reader(fail, [("n.txt", b"1234567" * 40)])
    monkeypatch.setattr(fuzz, "readers", lambda: {"numbers": reader})
    assert fuzz.main(["5", "--keep", str(tmp_path)]) == 1
    assert "numbers, seed 0: KeyError: 'n.txt'" in capsys.readouterr().out
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {b"7"}


def test_an_input_that_takes_too_long_is_a_failure(fuzz, monkeypatch):
    monkeypatch.setattr(fuzz, "LONGEST_S", 0.2)

    def turn(path):
        while True:
            pass

    assert fuzz.verdict_of(fuzz.Reader(turn, []), "x", b"") == "too slow"
