"""Numbers and their intervals as JSON and CSV have them."""

from dataclasses import dataclass

import pytest

from p4perf.results.files import csv_text, interval_columns


@dataclass(frozen=True)
class Found:
    value: float
    low: float | None = None
    high: float | None = None


@pytest.mark.parametrize(
    ("found", "values"),
    [
        (Found(2.0, 1.5, 2.5), (2.0, 1.5, 2.5)),
        (Found(2.0), (2.0, None, None)),
        (Found(2.0, 1.5, float("inf")), (2.0, 1.5, None)),
        (Found(float("nan"), 1.0, 2.0), (None, 1.0, 2.0)),
        (None, (None, None, None)),
    ],
)
def test_a_number_and_its_interval(found, values):
    columns = interval_columns("ratio", found)
    assert tuple(columns) == ("ratio", "ratio_low", "ratio_high")
    assert tuple(columns.values()) == values


def test_what_is_not_known_is_an_empty_cell():
    assert csv_text([interval_columns("x", Found(1.0))]) == "x,x_low,x_high\n1.0,,\n"
