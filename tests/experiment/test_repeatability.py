"""The recorder of benchmarks/repeatability.py: measurements are kept, and what they say is counted right."""

import importlib
import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def repeatability(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("repeatability")


def entry(value, half):
    return {"estimates": {"cost": [value, value - half, value + half]}}


def test_a_line_that_was_cut_off_is_left_out_and_the_next_one_is_whole(repeatability, tmp_path):
    file = tmp_path / "measurements.jsonl"
    assert repeatability.recorded(file) == []
    repeatability.append(file, entry(1, 0))
    file.write_text(file.read_text() + json.dumps(entry(2, 0))[:-9])
    repeatability.append(file, entry(3, 0))
    assert repeatability.recorded(file) == [entry(1, 0), entry(3, 0)]


def test_intervals_that_hold_the_median_of_all_are_counted(repeatability):
    text = repeatability.judged("cost", [entry(100, 3), entry(101, 1), entry(102, 1), entry(108, 2), entry(90, 1)])
    assert "median 101.00" in text
    assert "3 of 5 intervals hold the median (60 %" in text
    assert "mean width 3.2 %" in text


def test_a_single_measurement_says_nothing(repeatability):
    assert repeatability.judged("cost", [entry(100, 3)]) == "cost: 1 measurement"
