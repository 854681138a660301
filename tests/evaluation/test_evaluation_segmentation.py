from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from p4perf.errors import UsageError
from p4perf.evaluation.error_metrics import SMAPE
from p4perf.evaluation.intervals import all_intervals, interval_table, prefixes_and_suffixes
from p4perf.evaluation.segmentation import lowest_error_splits, pairwise_splits
from p4perf.evaluation.selection import ExactRule, PairwiseRule
from p4perf.models import scholz2021_templates


def enumerate_best(cost: np.ndarray, parts: int, min_points: int) -> float:
    n, best = len(cost), np.inf
    for splits in combinations(range(n - 1), parts - 1):
        bounds = [-1, *splits, n - 1]
        pairs = list(pairwise(bounds))
        if all(b - a >= min_points for a, b in pairs):
            best = min(best, sum(cost[a + 1, b] for a, b in pairs))
    return best


def total(cost: np.ndarray, splits: tuple[int, ...]) -> float:
    bounds = [-1, *splits, len(cost) - 1]
    return sum(cost[a + 1, b] for a, b in pairwise(bounds))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("min_points", [1, 3])
def test_equals_enumeration_on_random_costs(seed: int, min_points: int) -> None:
    cost = np.random.default_rng(seed).uniform(0, 1, (14, 14))
    found = lowest_error_splits(cost, 4, min_points)
    for parts, splits in enumerate(found, start=1):
        assert splits is not None
        assert total(cost, splits) == pytest.approx(enumerate_best(cost, parts, min_points), abs=1e-12)


def test_equals_enumeration_on_a_real_table() -> None:
    rng = np.random.default_rng(7)
    x = np.arange(1.0, 41.0)
    y = np.where(x < 15, 100 + x, np.where(x < 28, 200.0, 50 + 60 * np.log(x))) * (1 + 0.005 * rng.standard_normal(40))
    table = interval_table(x, y, all_intervals(40, 5), scholz2021_templates(), SMAPE, ExactRule())
    cost = table.cost()
    found = lowest_error_splits(cost, 4, 5)
    best = [total(cost, splits) for splits in found if splits is not None]
    assert best == pytest.approx([enumerate_best(cost, k, 5) for k in (1, 2, 3, 4)], abs=1e-9)
    assert found[2] is not None
    assert np.abs(np.array(found[2]) - [13, 26]).max() <= 1


def test_prefixes_and_suffixes_are_all_that_two_parts_need() -> None:
    starts, ends = prefixes_and_suffixes(20, 5)
    pairs = set(zip(starts.tolist(), ends.tolist(), strict=True))
    assert (0, 19) in pairs
    assert {(0, s) for s in range(4, 15)} | {(s + 1, 19) for s in range(4, 15)} <= pairs
    assert len(pairs) == len(starts) == 23


def test_too_few_samples_give_none() -> None:
    assert lowest_error_splits(np.ones((4, 4)), 3, 3) == [(), None, None]


def test_pairwise_rule_is_order_dependent_as_in_the_paper() -> None:
    rule = PairwiseRule(kappa=0.005, kappa_rel=0.0)
    errors = np.array([[0.0, 0.004, 0.008]])
    assert rule.choose(errors, np.array([5.0, 3.0, 1.0])).tolist() == [2]
    turned = errors[:, ::-1]
    assert turned[0, rule.choose(turned, np.array([1.0, 3.0, 5.0]))] == [0.0]


def test_exact_rule_has_no_order() -> None:
    rng = np.random.default_rng(1)
    rule = ExactRule()
    errors, ranks = rng.uniform(0, 0.02, (50, 9)), np.arange(9.0) // 2
    errors[:, 4] = np.nan
    chosen = rule.choose(errors, ranks)
    assert np.isfinite(errors[np.arange(50), chosen]).all()
    for _ in range(5):
        order = rng.permutation(9)
        again = order[rule.choose(errors[:, order], ranks[order])]
        assert (again == chosen).all()


def test_pairwise_never_chooses_nan() -> None:
    errors = np.array([[np.nan, 0.5, np.inf], [np.nan, np.nan, 0.1], [0.2, np.nan, 0.9]])
    assert PairwiseRule().choose(errors, np.array([1.0, 2.0, 3.0])).tolist() == [1, 2, 0]


def test_pairwise_search_prefers_simple_combinations() -> None:
    n = 6
    cost = np.full((n, n), 0.004) * (np.arange(n)[None, :] - np.arange(n)[:, None] + 1)
    ranks = np.full((n, n), 3.0)
    ranks[0, 2] = ranks[3, 5] = 1.0
    assert pairwise_splits(cost, ranks, 2, 1, PairwiseRule()) == [(), (2,)]


def test_pairwise_search_has_a_limit() -> None:
    with pytest.raises(UsageError, match="too many to compare"):
        pairwise_splits(np.ones((200, 200)), np.ones((200, 200)), 5, 1, PairwiseRule())
