"""What the derivation promises exactly: the optimum, the choice, and what they must not depend on."""

from __future__ import annotations

import numpy as np
import pytest

from p4perf.errors import DataError
from p4perf.evaluation.fitting.derivation import Derivation, FitOptions, derive
from p4perf.evaluation.fitting.error_metrics import error_metric
from p4perf.evaluation.fitting.intervals import FitProblem, _choose_in_batches, interval_table
from p4perf.evaluation.fitting.selection import ExactRule
from p4perf.evaluation.fitting.split_finders import BruteForce, DynamicProgramming
from p4perf.evaluation.fitting.synthetic import SyntheticSeries, piecewise_series
from p4perf.models import standard_templates

SERIES = [
    piecewise_series(1, 45, 3, noise=0.01),
    piecewise_series(2, 40, 2, noise=0.003, x_scale="log"),
    piecewise_series(3, 50, 4, noise=0.02),
]


def curves(derivation: Derivation) -> list[tuple[tuple[int, ...], list[str]]]:
    return [(f.breakpoints, [p.template.name for p in f.segments]) for f in derivation.fittings]


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_is_that_of_full_enumeration(seed: int) -> None:
    series = piecewise_series(seed + 10, 65 if seed == 0 else 40, 3, noise=0.01, x_scale=("lin", "log")[seed % 2])
    found = derive(series.x, series.y, FitOptions(max_segments=4, segments=4))
    enumerated = derive(series.x, series.y, FitOptions(max_segments=4, segments=4, split_finder=BruteForce()))
    assert [len(f.segments) for f in found.fittings] == [len(f.segments) for f in enumerated.fittings]
    for one, other in zip(found.fittings, enumerated.fittings, strict=True):
        assert one.breakpoints == other.breakpoints
        assert one.error == pytest.approx(other.error, abs=1e-9)


@pytest.mark.parametrize("series", SERIES)
@pytest.mark.parametrize("name", ["smape", "smape_pooled", "mape", "rmse"])
def test_the_compiled_choice_is_the_choice_from_all_fits(series: SyntheticSeries, name: str) -> None:
    metric, templates = error_metric(name), standard_templates()
    margin = 0.005 * metric.scale(series.y)
    problem = FitProblem(series.x, series.y, templates, tuple(t.rank for t in templates), metric, ExactRule(margin))
    starts, ends = np.triu_indices(len(series.x), k=4)
    table = interval_table(problem, (starts, ends))
    assert problem.compiled
    error, choice = _choose_in_batches(problem, starts, ends)
    assert (table.choice == choice).all()
    assert table.error == pytest.approx(error, rel=1e-9, abs=1e-12)
    assert np.isfinite(table.error).all()


def test_the_error_never_rises_with_the_number_of_segments() -> None:
    for seed in range(8):
        series = piecewise_series(seed, 60, 1 + seed % 4, noise=0.02)
        errors = [f.error for f in derive(series.x, series.y, FitOptions(max_segments=6)).fittings]
        assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize("series", SERIES)
def test_neither_threads_nor_the_order_of_templates_matter(series: SyntheticSeries) -> None:
    one = derive(series.x, series.y, FitOptions(max_segments=4, threads=1))
    for threads in (2, 3, 7):
        assert derive(series.x, series.y, FitOptions(max_segments=4, threads=threads)) == one
    shuffled = list(standard_templates())
    np.random.default_rng(1).shuffle(shuffled)  # type: ignore[arg-type]
    assert derive(series.x, series.y, FitOptions(max_segments=4, templates=shuffled)) == one


@pytest.mark.parametrize("series", SERIES)
@pytest.mark.parametrize(("x_factor", "y_factor"), [(1e-9, 1.0), (1e7, 1.0), (1.0, 1e-9), (1.0, 1e9), (1.0, -3.0)])
def test_units_do_not_matter(series: SyntheticSeries, x_factor: float, y_factor: float) -> None:
    one = derive(series.x, series.y, FitOptions(max_segments=4))
    other = derive(x_factor * series.x, y_factor * series.y, FitOptions(max_segments=4))
    assert curves(one) == curves(other)
    assert one.chosen == other.chosen


@pytest.mark.thorough
def test_coarse_to_fine_is_about_as_good_as_exact() -> None:
    for seed in (1, 2):
        series = piecewise_series(seed, 360, 4, noise=0.02)
        exact = derive(series.x, series.y, FitOptions(max_segments=5, search="exact"))
        coarse = derive(series.x, series.y, FitOptions(max_segments=5, search="coarse"))
        for fitting in exact.fittings:
            assert coarse.of_segments(len(fitting.segments)).error <= 1.02 * fitting.error


def test_series_that_no_memory_holds_are_refused() -> None:
    with pytest.raises(DataError, match="7000 different x are more than"):
        derive(np.arange(7000.0), np.ones(7000))


@pytest.mark.parametrize("family", ["const", "poly"])
def test_l1_is_not_led_astray_by_outliers(family: str) -> None:
    rng = np.random.default_rng(4)
    x = np.arange(1.0, 41.0)
    truth = np.full(40, 120.0) if family == "const" else 100 + 3 * x
    y = truth * (1 + 0.003 * rng.standard_normal(40))
    y[[5, 17, 29, 36]] *= 4
    squares = derive(x, y, FitOptions(segments=1, loss="squares")).best.evaluate(x)
    robust = derive(x, y, FitOptions(segments=1, loss="l1")).best.evaluate(x)
    assert np.abs(robust / truth - 1).max() < 0.02
    assert np.abs(squares / truth - 1).max() > 0.1


@pytest.mark.parametrize(
    ("name", "error", "breakpoints"), [("a0_fig2", 0.0062427, (34, 52)), ("d60_01_k3", 0.0047705, (16, 18))]
)
def test_the_rules_of_the_paper_give_what_its_code_returns(fitcases, name: str, error: float, breakpoints) -> None:
    """The published code, searching three segments exhaustively, was seen to return these numbers."""
    _, x, y = fitcases.load(name)
    published = {"profile": "scholz2021", "error": "smape_pooled", "split_finder": DynamicProgramming()}
    found = derive(x, y, FitOptions(segments=3, max_segments=3, **published)).best
    assert (found.breakpoints, found.error) == (breakpoints, pytest.approx(error, abs=5e-8))
    assert derive(x, y, FitOptions(segments=3, max_segments=3, error="smape_pooled")).best.error < 0.75 * error


def test_the_lowest_error_that_the_published_code_has_seen_is_found(fitcases) -> None:
    _, x, y = fitcases.load("a0_fig2")
    found = derive(x, y, FitOptions(segments=3, max_segments=3, error="smape_pooled")).best
    assert found.breakpoints == (41, 54)
    assert found.error <= 0.0035306
