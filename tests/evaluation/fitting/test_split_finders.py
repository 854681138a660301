"""Contract of all registered split finders, and what is common to them."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p4perf.errors import UsageError
from p4perf.evaluation.fitting.selection import ExactRule, PairwiseRule
from p4perf.evaluation.fitting.split_finders import (
    BruteForce,
    DynamicProgramming,
    SecondDerivative,
    SplitFinder,
    SplitProblem,
    open_split_finder,
    wanted_intervals,
)
from p4perf.evaluation.fitting.split_finders.base import GROUP
from p4perf.plugins import GROUPS, load_plugin, plugin_names

FINDERS = ["brute-force", "dynamic", "savitzky-golay", "second-derivative"]


def random_problem(seed: int, n: int, segments: int, min_points: int, rule, unknown: float = 0.0, **options):
    """Costs of the size of sMAPE and ranks of real templates; some segments unknown."""
    rng = np.random.default_rng(seed)
    points = np.arange(n)[None, :] - np.arange(n)[:, None] + 1
    cost = rng.uniform(0, 0.03, (n, n)) * points
    cost[rng.random((n, n)) < unknown] = np.inf
    cost[rng.random((n, n)) < unknown / 4] = np.nan
    ranks = np.where(np.isfinite(cost), rng.integers(2, 14, (n, n)) / 2, np.inf)
    return SplitProblem(np.arange(1.0, n + 1), rng.random(n), cost, ranks, segments, min_points, rule, **options)


def scores(problem: SplitProblem, breakpoints) -> tuple[float, float]:
    """Theta and Phi of one combination, infinite where it is not allowed."""
    n = problem.points
    theta = phi = 0.0
    for a, b in pairwise([-1, *breakpoints, n - 1]):
        if b - a < problem.min_points and b - a != n:
            return np.inf, np.inf
        theta += problem.cost[a + 1, b]
        phi += problem.ranks[a + 1, b] * (b - a)
    return (theta / n, phi / n) if np.isfinite(theta) else (np.inf, np.inf)


def all_scores(problem: SplitProblem, segments: int):
    return [(s, *scores(problem, s)) for s in combinations(range(problem.points - 1), segments - 1)]


def lowest_error(problem: SplitProblem, segments: int) -> float:
    return min((theta for _, theta, _ in all_scores(problem, segments)), default=np.inf)


def joint_optimum(problem: SplitProblem, segments: int) -> tuple[float, float]:
    """Phi and theta of the canonical rule."""
    lowest = lowest_error(problem, segments)
    if not np.isfinite(lowest):
        return np.inf, np.inf
    limit = lowest + max(problem.rule.kappa_rel * lowest, problem.rule.kappa)
    return min((phi, theta) for _, theta, phi in all_scores(problem, segments) if theta <= limit * (1 + 1e-12))


def pairwise_winner(problem: SplitProblem, segments: int):
    champion = None
    for breakpoints, theta, phi in all_scores(problem, segments):
        known = np.isfinite(theta)
        if known and (champion is None or problem.rule.challenger_wins(champion[1:], (theta, phi))):
            champion = breakpoints, theta, phi
    return champion and champion[0]


# --- registration


def test_all_are_registered() -> None:
    assert set(FINDERS) <= set(plugin_names(GROUP))
    assert GROUPS[GROUP] == "split finder"


@pytest.mark.parametrize("name", plugin_names(GROUP))
def test_classes_keep_the_contract(name: str) -> None:
    plugin = load_plugin(GROUP, name)
    assert issubclass(plugin, SplitFinder)
    assert is_dataclass(plugin)
    assert plugin.__dataclass_params__.frozen
    assert plugin.summary
    documented = " ".join(kind.__doc__ or "" for kind in plugin.__mro__)
    assert all(field.name in documented for field in fields(plugin))
    assert open_split_finder(name) == plugin()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("genetic", {}, "unknown split finder 'genetic'"),
        ("dynamic", {"bends": 3}, "no option 'bends'"),
        ("brute-force", {"max_combinations": 0}, "max_combinations must be at least 1"),
        ("second-derivative", {"bends": 0}, "bends must be at least 1"),
        ("second-derivative", {"neighbours": -1}, "must not be negative"),
        ("second-derivative", {"exhaustive_segments": -1}, "must not be negative"),
        ("second-derivative", {"window": 4}, "odd and 3 at least, not 4"),
        ("second-derivative", {"window": 1}, "odd and 3 at least, not 1"),
        ("second-derivative", {"smoothing": ("fourier",)}, "no smoothing 'fourier'"),
        ("savitzky-golay", {"windows": ()}, "at least one window"),
        ("savitzky-golay", {"windows": (3,)}, "odd and 4 at least, not 3"),
        ("savitzky-golay", {"degree": 1}, "degree must be at least 2"),
    ],
)
def test_bad_options(name: str, options, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_split_finder(name, **options)


# --- the contract of every finder


@pytest.mark.parametrize("name", plugin_names(GROUP))
@pytest.mark.parametrize("rule", [ExactRule(), PairwiseRule()])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("min_points", [1, 2, 5])
def test_few_samples(name: str, rule, n: int, min_points: int) -> None:
    finder, segments = open_split_finder(name), 4
    x, y = np.arange(1.0, n + 1), np.array([1.0, 1.0, 2.0, 5.0, 5.0, 1.0])[:n]
    allowed = finder.candidates(x, y, segments, log_x=False)
    assert len(allowed) == segments
    found = finder.find(random_problem(n, n, segments, min_points, rule, candidates=allowed))
    assert len(found) == segments
    assert found[0] == ()
    for k, breakpoints in enumerate(found, start=1):
        if breakpoints is not None:
            assert len(breakpoints) == k - 1
            assert k == 1 or min(np.diff([-1, *breakpoints, n - 1])) >= min_points
        elif allowed[k - 1] is None:
            assert k * min_points > n


@pytest.mark.parametrize("name", plugin_names(GROUP))
@pytest.mark.parametrize("rule", [ExactRule(), PairwiseRule()])
def test_unknown_segments_are_never_chosen(name: str, rule) -> None:
    finder = open_split_finder(name)
    for seed in range(30):
        x, y = np.arange(12.0), np.random.default_rng(seed).random(12)
        allowed = finder.candidates(x, y, 4, log_x=False)
        problem = random_problem(seed, 12, 4, 2, rule, unknown=0.6, candidates=allowed)
        for breakpoints in finder.find(problem):
            assert breakpoints is None or np.isfinite(scores(problem, breakpoints)).all()


@pytest.mark.parametrize("name", plugin_names(GROUP))
def test_nothing_known_gives_none(name: str) -> None:
    n, nothing = 8, np.full((8, 8), np.nan)
    problem = SplitProblem(np.arange(8.0), np.arange(8.0), nothing, nothing, 3, 1, ExactRule())
    assert open_split_finder(name).find(problem) == (None, None, None)
    assert n == problem.points


@pytest.mark.parametrize("name", plugin_names(GROUP))
def test_the_needed_costs_are_enough(name: str) -> None:
    """Costs of segments that were not wanted change nothing."""
    finder = open_split_finder(name)
    for rule in (ExactRule(), PairwiseRule()):
        full = random_problem(3, 14, 4, 2, rule)
        allowed = finder.candidates(full.x, full.y, 4, log_x=False)
        starts, ends = wanted_intervals(14, 2, allowed)
        cost = np.full((14, 14), np.nan)
        cost[starts, ends] = full.cost[starts, ends]
        problems = [
            SplitProblem(full.x, full.y, c, full.ranks, 4, 2, rule, candidates=allowed) for c in (full.cost, cost)
        ]
        assert finder.find(problems[0]) == finder.find(problems[1])


# --- exactness


@settings(max_examples=80)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 14),
    min_points=st.integers(1, 4),
    unknown=st.sampled_from([0.0, 0.3]),
    joint=st.booleans(),
    kappa=st.sampled_from([0.0, 0.005, 0.02]),
)
def test_dynamic_and_brute_force_equal_enumeration(seed, n, min_points, unknown, joint, kappa) -> None:
    problem = random_problem(seed, n, 4, min_points, ExactRule(kappa), unknown)
    found = [finder.find(problem) for finder in (DynamicProgramming(joint), BruteForce(joint))]
    for segments in range(1, 5):
        for breakpoints in (one[segments - 1] for one in found):
            theta, phi = (np.inf, np.inf) if breakpoints is None else scores(problem, breakpoints)
            if joint:
                assert (phi, theta) == pytest.approx(joint_optimum(problem, segments), abs=1e-12)
            else:
                assert theta == pytest.approx(lowest_error(problem, segments), abs=1e-12)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), min_points=st.integers(1, 3))
def test_brute_force_follows_the_pairwise_rule(seed: int, n: int, min_points: int) -> None:
    problem = random_problem(seed, n, 4, min_points, PairwiseRule(), unknown=0.1)
    assert list(BruteForce().find(problem)) == [pairwise_winner(problem, segments) for segments in range(1, 5)]


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    allowed=st.lists(st.none() | st.sets(st.integers(0, 11)), min_size=4, max_size=4),
    rule=st.sampled_from([ExactRule(), PairwiseRule()]),
)
def test_only_candidates_are_split(seed: int, allowed, rule) -> None:
    candidates = tuple(None if s is None else np.array(sorted(s), dtype=np.intp) for s in allowed)
    problem = random_problem(seed, 12, 4, 2, rule, candidates=candidates)
    for finder in (DynamicProgramming(joint=True), BruteForce(joint=True)):
        for segments, breakpoints in enumerate(finder.find(problem), start=1):
            inside = [
                (phi, theta)
                for s, theta, phi in all_scores(problem, segments)
                if np.isfinite(theta) and (allowed[segments - 1] is None or set(s) <= allowed[segments - 1])
            ]
            assert (breakpoints is None) == (not inside)
            if breakpoints is not None:
                lowest = min(theta for _, theta in inside)
                limit = lowest + max(rule.kappa_rel * lowest, rule.kappa)
                best = min((phi, theta) for phi, theta in inside if theta <= limit * (1 + 1e-12))
                assert scores(problem, breakpoints)[::-1] == pytest.approx(best, abs=1e-12)


def test_pairwise_rule_is_joint_for_the_dynamic_programme() -> None:
    for seed in range(20):
        found = DynamicProgramming().find(random_problem(seed, 12, 4, 2, PairwiseRule()))
        assert found == DynamicProgramming(joint=True).find(random_problem(seed, 12, 4, 2, ExactRule()))


def test_of_equal_errors_the_last_segment_begins_first() -> None:
    n = 6
    cost = np.ones((n, n))
    problem = SplitProblem(np.arange(6.0), np.ones(n), cost, cost, 3, 1, ExactRule())
    assert DynamicProgramming().find(problem) == ((), (0,), (0, 1))
    assert BruteForce().find(problem) == ((), (0,), (0, 1))


def test_heuristic_search_is_exact_among_its_candidates() -> None:
    finder = SecondDerivative(bends=4, exhaustive_segments=1, smoothing=())
    for rule in (ExactRule(), PairwiseRule()):
        for seed in range(10):
            free = random_problem(seed, 14, 4, 1, rule)
            allowed = finder.candidates(free.x, free.y, 4, log_x=False)
            problem = random_problem(seed, 14, 4, 1, rule, candidates=allowed)
            assert finder.find(problem) == BruteForce().find(problem)


# --- limits


def test_brute_force_has_a_limit() -> None:
    many = random_problem(0, 100, 5, 1, ExactRule())
    with pytest.raises(UsageError, match="5 segments with 99 possible breakpoints have 3764376 combinations"):
        BruteForce().find(many)
    with pytest.raises(UsageError, match="3 segments with 99 possible breakpoints have 4851"):
        BruteForce(max_combinations=4850).find(many)
    few = random_problem(0, 100, 5, 1, ExactRule(), candidates=(np.arange(0, 99, 10),) * 5)
    assert None not in BruteForce().find(few)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": np.ones(3)}, "need as many samples"),
        ({"cost": np.ones((3, 4))}, "need as many samples"),
        ({"segments": 0}, "must be at least 1"),
        ({"min_points": 0}, "must be at least 1"),
        ({"candidates": (None,)}, "as many sets of candidates"),
    ],
)
def test_bad_problems(changes, message: str) -> None:
    good = {"x": np.arange(4.0), "y": np.ones(4), "cost": np.ones((4, 4)), "ranks": np.ones((4, 4))}
    good |= {"segments": 2, "min_points": 1, "rule": ExactRule()}
    with pytest.raises(UsageError, match=message):
        SplitProblem(**{**good, **changes})


def test_candidates_must_be_samples() -> None:
    problem = random_problem(0, 5, 2, 1, ExactRule(), candidates=(None, np.array([1, 7])))
    with pytest.raises(UsageError, match="5 samples have no candidates 1 to 7"):
        DynamicProgramming().find(problem)


# --- which segments are wanted


def test_wanted_segments() -> None:
    def wanted(n: int, min_points: int, *candidates) -> set[tuple[int, int]]:
        starts, ends = wanted_intervals(n, min_points, candidates)
        pairs = list(zip(starts.tolist(), ends.tolist(), strict=True))
        assert len(set(pairs)) == len(pairs)
        return set(pairs)

    assert wanted(6, 2, None) == {(0, 5)}
    assert wanted(6, 2, None, None) == {(0, 5), (0, 1), (2, 5), (0, 2), (3, 5), (0, 3), (4, 5)}
    assert wanted(6, 2, None, None, None) == wanted(6, 2, None, None) | {(2, 3)}
    assert wanted(9, 2, None, np.array([4])) == {(0, 8), (0, 4), (5, 8)}
    assert wanted(9, 1, None, np.array([4]), np.array([2, 6])) == {
        *((0, 8), (0, 4), (5, 8)),
        *((0, 2), (3, 6), (7, 8), (0, 6), (3, 8)),
    }
    assert wanted(1, 5, None, None, None) == {(0, 0)}


@pytest.mark.parametrize("n", [1, 4, 9, 12])
@pytest.mark.parametrize("min_points", [1, 3])
def test_wanted_segments_are_just_those_of_combinations(n: int, min_points: int) -> None:
    starts, ends = wanted_intervals(n, min_points, (None,) * 3)
    used = set()
    for segments in (1, 2, 3):
        for breakpoints in combinations(range(n - 1), segments - 1):
            pairs = [(a + 1, b) for a, b in pairwise([-1, *breakpoints, n - 1])]
            if segments == 1 or min(b - a + 1 for a, b in pairs) >= min_points:
                used |= set(pairs)
    got = set(zip(starts.tolist(), ends.tolist(), strict=True))
    assert used <= got
    assert all(s == 0 or s >= min_points for s, _ in got)
    assert all(e == n - 1 or e < n - min_points for _, e in got)
