"""Still drawings: places of values, ticks, and what has no place."""

import math

import pytest

from p4perf.evaluation.report.drawing import MOST_NAMES, drawing, thumbnail
from p4perf.evaluation.report.figures import DrawnSeries, lower_panel, series_figure

LABELS = {"x": "entries", "y": "cycles", "title": "a figure"}


def rows(*values):
    return [{"x": x, "median": y, "low": y - 1, "high": y + 1, "n": 3} for x, y in values]


def panels(*values, scale="linear", lines=(), lower=None):
    return drawing(series_figure([DrawnSeries("a", "", rows(*values), lines)], lower, labels=LABELS, scale=scale))


def test_places_grow_to_the_right_and_up_in_proportion():
    (panel,) = panels((0, 10), (5, 20), (10, 30))
    first, middle, last = panel.marks
    assert first.x < middle.x < last.x
    assert first.y > middle.y > last.y, "from the top"
    assert middle.x == pytest.approx(50, abs=0.1)
    assert middle.y == pytest.approx(50, abs=0.1)
    assert first.low > first.y > first.high
    assert all(0 <= place <= 100 for mark in panel.marks for place in (mark.x, mark.y, mark.low, mark.high))


def test_a_logarithmic_axis_has_equal_steps_for_decades_and_no_place_for_zero():
    (panel,) = panels((0, 1), (1, 1), (10, 1), (100, 1), scale="log")
    one, ten, hundred = (mark.x for mark in panel.marks)
    assert hundred - ten == pytest.approx(ten - one, abs=0.1)
    assert [tick.text for tick in panel.x_ticks] == ["1", "10", "100"]


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("high", [1.001, 3, 50, 2e4, 5e7])
def test_there_are_some_ticks_and_not_too_many(scale, high):
    (panel,) = panels((1, 1), (high, high), scale=scale)
    for ticks in (panel.x_ticks, panel.y_ticks):
        assert 2 <= len(ticks) <= 9
        assert all(0 <= tick.at <= 100 for tick in ticks)
        assert len({tick.text for tick in ticks}) == len(ticks)


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1e300, 1e308])
def test_numbers_at_the_ends_of_floating_point_have_a_place(size):
    (panel,) = panels((size, 1), (size / 2, 1), scale="log")
    assert all(0 <= mark.x <= 100 for mark in panel.marks)


def test_large_numbers_are_short():
    (panel,) = panels((0, 0), (4e6, 1))
    assert [tick.text for tick in panel.x_ticks] == ["0", "1M", "2M", "3M", "4M"]


def test_words_have_even_places_and_of_many_only_some_are_written():
    (panel,) = panels(*((f"w{n}", n) for n in range(3 * MOST_NAMES)), scale="category")
    gaps = {round(b.x - a.x, 1) for a, b in zip(panel.marks, panel.marks[1:], strict=False)}
    assert len(gaps) == 1
    assert len(panel.x_ticks) == MOST_NAMES


def test_lines_have_bands_and_single_places_none():
    curve = {"x": [1, 2], "y": [10, 20], "low": [9, 19], "high": [11, 21]}
    single = {"x": [2], "y": [20], "low": [19], "high": [21]}
    (panel,) = panels((1, 10), (2, 20), lines=(curve, single))
    assert len(panel.lines[0].band) == 4
    assert panel.lines[1].dash is None


def test_a_lower_panel_has_its_own_scale_and_its_base():
    upper, lower = panels((1, 10), (2, 20), lower=lower_panel("ratio", 1, [("a", [[1, 1.1, 1.0, 1.2]])]))
    assert upper.height + lower.height < 100
    assert lower.top + lower.height == 100
    assert 0 < lower.base <= 100
    assert lower.marks[0].y < lower.base
    assert math.isclose(lower.marks[0].x, upper.marks[0].x)


def test_a_thumbnail_keeps_every_median_and_the_ends_of_lines():
    curve = {"x": list(range(1, 100)), "y": list(range(1, 100)), "low": None, "high": None}
    values = [(x, float(x)) for x in range(1, 100, 10)]
    figure = series_figure([DrawnSeries("a", "", rows(*values), (curve,))], None, labels=LABELS, scale="linear")
    whole, small = drawing(figure)[0], thumbnail(figure)
    assert len(small.dots[0]) == len(values)
    assert 5 < len(small.lines[0].places) < 20
    for end in (0, -1):
        assert small.lines[0].places[end] == pytest.approx(whole.lines[0].places[end], abs=0.1)


def test_equal_values_have_a_place():
    (panel,) = panels((5, 7))
    assert panel.marks[0].x == pytest.approx(50, abs=0.1)
