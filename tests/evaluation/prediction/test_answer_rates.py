"""Rates, lines and the spread of costs against numbers that are worked out by hand."""

import math

import numpy as np
import pytest
from support.pricing import router

from p4perf.errors import UsageError
from p4perf.evaluation.prediction.answer import (
    Offered,
    latency_at,
    line_mpps,
    line_rate_from_bytes,
    per_core,
    size_rate,
)
from p4perf.evaluation.prediction.breakdown import BINS, CostSpread, cost_spread
from p4perf.models.estimate import Estimate
from p4perf.models.program import Edge, Node, ProgramGraph, construct


def test_a_core_of_2_ghz_does_10_mpps_at_200_cycles():
    band = per_core(Estimate(200, 100, 400), 2e9)
    assert (band.value, band.low, band.high) == (10, 5, 20)


def test_a_cost_that_may_be_nothing_gives_no_upper_end():
    assert per_core(Estimate(200, 0, 400), 2e9).high == math.inf


def test_ten_gigabit_carry_14_88_million_smallest_frames():
    assert line_mpps(10e9, 64) == pytest.approx(14.880952)
    assert line_mpps(10e9, 1518) == pytest.approx(0.812744, rel=1e-5)


def test_the_line_limits_small_frames_of_fast_programs():
    rate = size_rate(Estimate(10, 8, 12), 2, 10e9, 64)
    assert rate.bound == "line"
    assert rate.mpps.value == pytest.approx(14.880952)
    assert rate.gbps.value == pytest.approx(10)
    slow = size_rate(Estimate(1, 0.8, 1.2), 2, 10e9, 64)
    assert slow.bound == "cpu"
    assert slow.gbps.value == pytest.approx(2 * 84 * 8 / 1e3)


@pytest.mark.parametrize(("mpps", "size"), [(14.9, 64), (14.0, 70), (1.0, 1230), (0.5, None), (math.inf, 64)])
def test_the_smallest_frame_that_fills_the_line(mpps, size):
    assert line_rate_from_bytes(mpps, 10e9) == size
    if size not in (None, 64):
        assert line_mpps(10e9, size) <= mpps < line_mpps(10e9, size - 1)


def costs(node, edge):
    """1.5 cycles for every construct."""
    return 1.5 * len(node.constructs)


def test_the_spread_has_every_way_with_its_share():
    spread = cost_spread(router(), costs, 7.5)
    assert spread.mean == pytest.approx(0.8 * 7.5 + 0.2 * 4.5)
    low = spread.weights[spread.cycles < 6].sum()
    assert low == pytest.approx(0.2)


def test_the_mean_is_exact_for_many_steps_off_the_lattice():
    """300 tables, each with a cost of 1/3 or nothing: a binomial distribution."""
    what = construct("set egress")
    nodes = {}
    for n in range(300):
        after = f"t{n + 1}" if n < 299 else "end"
        nodes[f"t{n}"] = Node(f"t{n}", "table", (), (Edge("a", f"a{n}", 0.25), Edge("b", after, 0.75)))
        nodes[f"a{n}"] = Node(f"a{n}", "action", (what,), (Edge("", after),))
    nodes["end"] = Node("end", "end")
    spread = cost_spread(ProgramGraph("chain", nodes, "t0", "test"), lambda n, e: len(n.constructs) / 3, 100.0)
    assert spread.cycles.size <= BINS + len(nodes) + 2
    assert spread.mean == pytest.approx(25, rel=1e-9)
    deviation = math.sqrt(float(((spread.cycles - 25) ** 2) @ spread.weights))
    assert deviation == pytest.approx(math.sqrt(300 * 0.25 * 0.75) / 3, rel=0.01)


def one(cycles):
    return CostSpread(np.array([cycles]), np.array([1.0]))


def test_latency_grows_with_the_load_and_nothing_is_lost_below_saturation():
    band = Estimate(200, 180, 220)
    light, heavy = (latency_at(one(200.0), band, 2e9, 1, Offered(load), 10.0) for load in (0.3, 0.9))
    assert light.rate_mpps == pytest.approx(3)
    assert light.load.value == pytest.approx(0.3)
    for name in ("p50_us", "p99_us"):
        small, large = dict(light.quantiles_us)[name], dict(heavy.quantiles_us)[name]
        assert 0.1 <= small.value < large.value
        assert large.low <= large.value <= large.high
    assert light.loss.value == heavy.loss.value == 0
    assert not light.overloaded


def test_an_overloaded_core_loses_what_is_too_much():
    found = latency_at(one(200.0), Estimate(200, 180, 220), 2e9, 2, Offered(None, 25.0), 20.0)
    assert found.overloaded
    assert found.loss.value == pytest.approx(1 - 20 / 25, rel=1e-3)
    assert found.loss.low < found.loss.value < found.loss.high


def test_ways_of_different_cost_spread_the_latency():
    """Same mean: packets that differ wait longer (the waiting time grows with the second moment of the service)."""
    band = Estimate(200, 200, 200)
    mixed = CostSpread(np.array([50.0, 650.0]), np.array([0.75, 0.25]))
    same, spread = (latency_at(s, band, 2e9, 1, Offered(0.7), 10.0) for s in (one(200.0), mixed))
    assert spread.mean_us.value > 1.5 * same.mean_us.value


def test_a_way_that_costs_next_to_nothing_does_not_stop_the_queue():
    rare = CostSpread(np.array([1.0, 1000.0]), np.array([0.001, 0.999]))
    found = latency_at(rare, Estimate(999, 999, 999), 2e9, 1, Offered(0.5), 2.0)
    assert 0.5 <= dict(found.quantiles_us)["p50_us"].value < 1.0


@pytest.mark.parametrize("load", [0, -1, 1.6])
def test_loads_are_refused_that_say_nothing(load):
    with pytest.raises(UsageError, match="load"):
        Offered(load)


def test_a_rate_beyond_everything_is_refused():
    with pytest.raises(UsageError, match="times what one core"):
        latency_at(one(200.0), Estimate(200, 180, 220), 2e9, 1, Offered(None, 100.0), 10.0)
