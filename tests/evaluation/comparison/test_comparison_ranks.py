"""Rank correlation of component costs: known values, and nothing said of few components."""

import numpy as np
import pytest
from scipy import stats

from p4perf.evaluation.comparison import ComparedSamples, compare_subjects, rank_pairs
from p4perf.evaluation.comparison.subjects import component_costs, rank_correlation
from p4perf.models.component import Quantity
from p4perf.results.table import Samples


def test_the_same_order():
    found = rank_correlation([1, 2, 3, 4, 5, 6], [10, 20, 30, 40, 50, 1000])
    assert (found.components, found.verdict) == (6, "same order")
    assert found.spearman.value.value == found.kendall.value.value == 1.0
    assert not found.spearman.value.bounded, "where all ranks agree there is no interval"
    assert found.spearman.p_value == pytest.approx(2 / 720)
    assert rank_correlation([1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1]).verdict == "opposite order"


def test_known_values():
    a, b = [1, 2, 3, 4, 5, 6, 7], [2, 1, 4, 3, 7, 5, 6]
    found = rank_correlation(a, b)
    assert found.spearman.value.value == pytest.approx(stats.spearmanr(a, b).statistic)
    assert found.kendall.value.value == pytest.approx(stats.kendalltau(a, b).statistic)
    assert found.kendall.p_value == pytest.approx(stats.kendalltau(a, b).pvalue)
    for one in (found.spearman, found.kendall):
        assert -1 < one.value.low < one.value.value < one.value.high < 1
    exact = stats.permutation_test(
        (a,), lambda x: stats.spearmanr(x, b).statistic, permutation_type="pairings", n_resamples=np.inf
    )
    assert found.spearman.p_value == pytest.approx(exact.pvalue)


def test_ties():
    a, b = [1, 1, 2, 3, 4], [1, 2, 2, 3, 5]
    found = rank_correlation(a, b)
    assert found.spearman.value.value == pytest.approx(stats.spearmanr(a, b).statistic)
    assert found.kendall.value.value == pytest.approx(stats.kendalltau(a, b).statistic)


def test_many_components():
    generator = np.random.default_rng(3)
    a = generator.normal(size=40)
    found = rank_correlation(a.tolist(), (a + generator.normal(size=40)).tolist())
    assert found.verdict == "same order"
    assert 0 < found.spearman.value.low < found.spearman.value.value < found.spearman.value.high < 1


def test_what_has_no_relation():
    assert rank_correlation([1, 2, 3, 4, 5, 6], [3, 6, 1, 5, 2, 4]).verdict == "no relation shown"


@pytest.mark.parametrize(("a", "b"), [([1, 2, 3, 4], [1, 2, 3, 4]), ([], []), ([1, 1, 1, 1, 1], [1, 2, 3, 4, 5])])
def test_no_verdict(a, b):
    found = rank_correlation(a, b)
    assert (found.verdict, found.spearman, found.kendall) == ("no verdict", None, None)
    assert found.components == len(a)


def samples(*values, first=1, metric="cycles_per_packet"):
    x = np.arange(float(first), first + len(values))
    return Samples(tuple(x), tuple((v, v) for v in values), "x", metric, "cycles/packet")


def test_costs_come_from_shared_points():
    a, b = samples(10.0, 20.0, 40.0, 80.0), samples(5.0, 6.0, 7.0, first=2)
    assert component_costs(a, b, increase=True) == (60.0, 2.0)
    assert component_costs(a, b, increase=False) == (40.0, 6.0)
    assert component_costs(a, samples(1.0, first=4), increase=True) is None
    assert component_costs(a, samples(1.0, first=4), increase=False) == (80.0, 1.0)
    assert component_costs(a, samples(1.0, first=9), increase=False) is None


def experiment(number, *, cost=True, metric="cycles_per_packet", labels=("a", "b")):
    subjects = [
        ComparedSamples(
            label, samples(50.0, 50.0 + slope * number, metric=metric), cost=samples(slope * number) if cost else None
        )
        for label, slope in zip(labels, (1.0, 3.0), strict=True)
    ]
    return compare_subjects(f"e{number}", subjects, reference=labels[0], x=Quantity("x"))


def test_pairs_of_labels_over_experiments():
    (found,) = rank_pairs([experiment(n) for n in range(1, 7)])
    assert (found.a, found.b) == ("a", "b")
    assert [cost.experiment for cost in found.costs] == [f"e{n}" for n in range(1, 7)]
    assert found.cost == "median of cost_cycles_per_packet over the shared points"
    assert [cost.b for cost in found.costs] == [3.0, 6.0, 9.0, 12.0, 15.0, 18.0]
    assert found.verdict == "same order"


def test_one_definition_holds_for_all_experiments():
    (found,) = rank_pairs([experiment(n, cost=n != 3) for n in range(1, 7)])
    assert found.cost == "increase of cycles_per_packet from the first to the last shared point"
    assert [cost.a for cost in found.costs] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_increases_of_several_metrics_cannot_be_ranked():
    mixed = [experiment(n, cost=False, metric="latency" if n == 3 else "cycles_per_packet") for n in range(1, 7)]
    (found,) = rank_pairs(mixed)
    assert found.verdict == "no verdict"
    assert "latency" in found.reason


def test_only_experiments_of_both_count():
    every = [experiment(n) for n in range(1, 6)] + [experiment(6, labels=("a", "c"))]
    found = {(r.a, r.b): r for r in rank_pairs(every)}
    assert set(found) == {("a", "b"), ("a", "c"), ("b", "c")}
    assert found["a", "b"].components == 5
    assert found["b", "c"].components == 0
