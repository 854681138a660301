"""Numbers and their intervals as JSON and CSV have them."""

from p4perf.results.files import csv_text


def test_what_is_not_known_is_an_empty_cell():
    assert csv_text([{"x": 1.0, "x_low": None, "x_high": None}]) == "x,x_low,x_high\n1.0,,\n"
