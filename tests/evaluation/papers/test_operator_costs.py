"""Costs of operators from a table that is made up."""

import math

import pandas as pd
import pytest

from p4perf.errors import DataError
from p4perf.evaluation.papers.ren2025.costs import COST, RESOLUTION, cost_cycles, operator_costs
from p4perf.results.table import median_interval


def table(costs, resolution=0.5, size=64, accepted=True):
    """Rows of operators, each with the costs of its starts."""
    rows = []
    for index, (name, values) in enumerate(costs.items()):
        for n, value in enumerate(values):
            for metric, number in ((COST, value), (RESOLUTION, resolution)):
                rows.append((index, name, size, n, metric, number, accepted))
    return pd.DataFrame(
        rows, columns=["point_index", "operator", "packet_size", "repetition", "metric", "value", "accepted"]
    )


def test_equation_3():
    """Rates of a baseline of 20 cycles and an operator of 80 at 2 GHz."""
    assert cost_cycles(2e9, 2e9 / 100, 2e9 / 20) == pytest.approx(80)


def test_costs_are_medians_over_starts():
    (b, a) = operator_costs(table({"b": [10, 12, 11], "a": [5, 5, 5]}))
    assert (b.operator, b.starts) == ("b", 3)
    assert (b.cost_cycles, b.low, b.high) == median_interval([10, 12, 11])
    assert b.resolution_cycles == 1.0, "half the range of the starts"
    assert a.resolution_cycles == 0.5, "what the windows say"
    assert a.resolved
    assert math.isnan(a.baseline_cycles)


@pytest.mark.parametrize(("cost", "text"), [(0.4, "below 0.5 cycles"), (-3.0, "below 0.5 cycles"), (0.6, "0.6")])
def test_below_the_resolution_there_is_no_number(cost, text):
    (found,) = operator_costs(table({"a": [cost]}))
    assert found.text() == text


def test_rejected_starts_do_not_count():
    good, bad = table({"a": [5]}), table({"a": [500]}, accepted=False)
    (found,) = operator_costs(pd.concat([good, bad]))
    assert (found.cost_cycles, found.starts) == (5, 1)
    with pytest.raises(DataError, match="no accepted"):
        operator_costs(bad)


@pytest.mark.parametrize("column", ["operator", "packet_size"])
def test_other_runs_have_no_costs_of_operators(column):
    with pytest.raises(DataError, match=column):
        operator_costs(table({"a": [1]}).drop(columns=column))
