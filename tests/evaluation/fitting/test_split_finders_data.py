"""Split finders on real tables and on series with known breakpoints: exactness, candidates, time."""

from __future__ import annotations

import time

import numpy as np
import pytest

from p4perf.errors import UsageError
from p4perf.evaluation.fitting.error_metrics import SMAPE
from p4perf.evaluation.fitting.intervals import FitProblem, interval_table
from p4perf.evaluation.fitting.selection import ExactRule, PairwiseRule
from p4perf.evaluation.fitting.split_finders import (
    BruteForce,
    DynamicProgramming,
    SavitzkyGolay,
    SecondDerivative,
    SplitProblem,
    wanted_intervals,
)
from p4perf.evaluation.fitting.split_finders.curvature import CurvatureFinder
from p4perf.evaluation.fitting.synthetic import piecewise_series
from p4perf.models.templates import scholz2021_templates


def real_problem(x, y, segments: int, min_points: int = 5, rule=None) -> SplitProblem:
    rule = rule or ExactRule()
    templates = scholz2021_templates()[:4]
    fitted = FitProblem(x, y, templates, tuple(t.rank for t in templates), SMAPE, rule)
    table = interval_table(fitted, wanted_intervals(len(x), min_points, (None,) * segments))
    return SplitProblem(x, y, table.cost(), table.ranks(), segments, min_points, rule)


def totals(problem: SplitProblem, breakpoints) -> tuple[float, float]:
    starts, ends = [0, *(s + 1 for s in breakpoints)], [*breakpoints, problem.points - 1]
    points = np.array(ends) - starts + 1
    return problem.cost[starts, ends].sum(), (problem.ranks[starts, ends] * points).sum()


@pytest.mark.parametrize("joint", [False, True])
def test_dynamic_equals_brute_force_on_a_real_table(joint: bool) -> None:
    series = piecewise_series(4, 50, 4, families=["const", "poly1", "poly2"])
    problem = real_problem(series.x, series.y, 4)
    dynamic, brute = (finder(joint=joint).find(problem) for finder in (DynamicProgramming, BruteForce))
    for one, other in zip(dynamic, brute, strict=True):
        assert one is not None
        assert other is not None
        assert totals(problem, one) == pytest.approx(totals(problem, other), abs=1e-12)


def test_true_breakpoints_have_the_lowest_error() -> None:
    series = piecewise_series(5, 40, 3, families=["const", "poly1"], noise=0.001)
    assert series.sharp == (True, True)
    found = DynamicProgramming().find(real_problem(series.x, series.y, 3))[2]
    assert np.abs(np.array(found) - series.breakpoints).max() <= 1


def test_joint_rule_prefers_simple_segments(fitcases) -> None:
    _, x, y = fitcases.load("a0_fig2")
    problem = real_problem(x, y, 5)
    for plain, joint in zip(
        DynamicProgramming().find(problem), DynamicProgramming(joint=True).find(problem), strict=True
    ):
        (cost, rank), (joint_cost, joint_rank) = totals(problem, plain), totals(problem, joint)
        assert joint_rank <= rank
        assert cost <= joint_cost <= problem.points * problem.margin(cost / problem.points) * (1 + 1e-12)


# --- candidates of the heuristics


def coverage(finder: CurvatureFinder, fitcases, prefix: str) -> tuple[float, float]:
    """Fractions of sharp and of all true breakpoints that have a candidate within one sample."""
    near, sharp = [], []
    for name in fitcases.names(prefix):
        truth, x, y = fitcases.load(name)
        bends = finder.strongest_bends(x, y, log_x=truth["x_scale"] == "log")
        near += [np.abs(bends - breakpoint).min() <= 1 for breakpoint in truth["splits"]]
        sharp += truth["sharp"]
    return float(np.mean(np.array(near)[sharp])), float(np.mean(near))


@pytest.mark.parametrize(
    ("finder", "rates"),
    [
        (SecondDerivative(), {"a": (1, 7 / 8), "b": (1, 1), "d60": (46 / 48, 52 / 60), "f": (1, 1), "g": (1, 1)}),
        (SecondDerivative(neighbours=1), {"a": (1, 7 / 8), "d60": (46 / 48, 55 / 60), "d500": (9 / 10, 15 / 19)}),
        (SecondDerivative(smoothing=()), {"d60": (44 / 48, 43 / 60), "d500": (8 / 10, 6 / 19)}),
        (SavitzkyGolay(), {"a": (1, 1), "b": (1, 1), "d60": (47 / 48, 55 / 60), "d500": (1, 18 / 19), "f": (1, 1)}),
        (SavitzkyGolay(neighbours=1), {"d60": (1, 59 / 60), "d500": (1, 1)}),
    ],
    ids=["paper", "paper-neighbours", "paper-raw", "savitzky-golay", "savitzky-golay-neighbours"],
)
def test_candidates_contain_the_true_breakpoints(fitcases, finder: CurvatureFinder, rates) -> None:
    for prefix, (sharp, every) in rates.items():
        got = coverage(finder, fitcases, prefix)
        assert got[0] >= sharp - 1e-9, (prefix, got)
        assert got[1] >= every - 1e-9, (prefix, got)


@pytest.mark.parametrize("finder", [SecondDerivative(), SavitzkyGolay()])
def test_candidates_of_synthetic_series(finder: CurvatureFinder) -> None:
    near = []
    for seed in range(40):
        series = piecewise_series(seed, 60, 4)
        bends = finder.strongest_bends(series.x, series.y, log_x=False)
        near += [
            np.abs(bends - s).min() <= 1 for s, sharp in zip(series.breakpoints, series.sharp, strict=True) if sharp
        ]
    assert np.mean(near) >= 0.9


STEP = np.array([1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 5.0, 5.0])
KINK = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 3.0, 2.0, 1.0, 0.0])


@pytest.mark.parametrize(
    ("y", "bends"),
    [(STEP, [3, 4]), (KINK, [4]), (np.ones(9), []), (np.arange(9.0), []), (STEP[:3], []), (STEP[:1], [])],
    ids=["step", "kink", "constant", "line", "three", "one"],
)
def test_bends_of_simple_shapes(y, bends: list[int]) -> None:
    """Above all, there are none near the ends of curves that have none."""
    assert SecondDerivative(smoothing=()).strongest_bends(np.arange(1.0, len(y) + 1), y, log_x=False).tolist() == bends


def test_bends_may_lie_beside_the_ends() -> None:
    y = np.array([9.0, 9.0, 1.0, 1.0, 1.0, 1.0, 4.0, 4.0])
    assert SecondDerivative(smoothing=()).strongest_bends(np.arange(8.0), y, log_x=False).tolist() == [1, 2, 5, 6]


def test_neighbours_stay_inside() -> None:
    finder = SecondDerivative(smoothing=(), bends=1, neighbours=20)
    assert finder.strongest_bends(np.arange(9.0), STEP, log_x=False).tolist() == list(range(8))


def test_bends_on_a_logarithmic_axis() -> None:
    x = np.geomspace(1, 1e6, 25)
    y = np.log10(x) + np.where(x > 1e3, 2 * np.log10(x / 1e3), 0)
    finder = SecondDerivative(smoothing=(), bends=1)
    assert finder.strongest_bends(x, y, log_x=True).tolist() == [12]
    assert finder.strongest_bends(x, y, log_x=False).tolist() != [12]


@pytest.mark.parametrize("x", [[0.0, 1.0, 2.0], [-1.0, 1.0, 2.0]])
def test_a_logarithmic_axis_needs_positive_x(x) -> None:
    finder = SecondDerivative(exhaustive_segments=1)
    with pytest.raises(UsageError, match="no place on a logarithmic axis"):
        finder.candidates(np.array(x), np.arange(3.0), 2, log_x=True)


def test_smoothing_removes_outliers_and_noise() -> None:
    rng = np.random.default_rng(0)
    x = np.arange(200.0)
    y = np.where(x <= 90, 100 + x, 190 - 2 * (x - 90)) + rng.normal(0, 1, 200)
    y[rng.choice(200, 10, replace=False)] += 80
    assert np.abs(SecondDerivative(smoothing=(), bends=5).strongest_bends(x, y, log_x=False) - 90).min() > 3
    smooth = SecondDerivative(bends=5, window=15).strongest_bends(x, y, log_x=False)
    assert np.abs(smooth - 90).min() <= 3


def test_smoothing_keeps_lines() -> None:
    x = np.sort(np.random.default_rng(0).uniform(0, 1e7, 50))
    rough, smooth = SecondDerivative(smoothing=("linear",)).curvatures(x, 3 + 2e-3 * x, log_x=False)
    assert np.abs(rough).max() < 1e-15
    assert np.abs(smooth).max() < 1e-12


def test_number_of_segments_decides_what_is_exhaustive() -> None:
    x, y = np.arange(30.0), np.random.default_rng(0).random(30)
    finder = SecondDerivative()
    assert finder.candidates(x, y, 3, log_x=False) == (None, None, None)
    allowed = finder.candidates(x, y, 5, log_x=False)
    assert allowed[:3] == (None, None, None)
    assert 10 <= len(allowed[3]) <= 30
    assert allowed[4] is allowed[3]
    assert finder.strongest_bends(x, y, log_x=False).tolist() == allowed[3].tolist()


# --- time


def seconds(finder, problem: SplitProblem) -> float:
    began = time.process_time()
    finder.find(problem)
    return time.process_time() - began


def test_time() -> None:
    series = piecewise_series(1, 65, 4)
    problem = real_problem(series.x, series.y, 6)
    assert seconds(DynamicProgramming(), problem) < 0.1
    assert seconds(DynamicProgramming(joint=True), problem) < 0.5
    four = SplitProblem(problem.x, problem.y, problem.cost, problem.ranks, 4, 1, ExactRule())
    assert seconds(BruteForce(), four) < 1
    paper = SplitProblem(problem.x, problem.y, problem.cost, problem.ranks, 4, 1, PairwiseRule())
    assert seconds(BruteForce(), paper) < 2


def test_time_of_many_samples() -> None:
    rng = np.random.default_rng(0)
    for n, joint, limit in ((2000, False, 3.0), (200, True, 3.0)):
        points = np.arange(n)[None, :] - np.arange(n)[:, None] + 1.0
        cost, ranks = rng.uniform(0, 0.02, (n, n)) * points, rng.integers(2, 14, (n, n)) / 2
        x = np.arange(1.0, n + 1)
        assert seconds(DynamicProgramming(joint), SplitProblem(x, x, cost, ranks, 6, 5, ExactRule())) < limit
