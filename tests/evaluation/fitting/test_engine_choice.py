"""The choice that the engine makes early is the choice from all fits, whatever the samples are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fit_segments import noisy_series

from p4perf.errors import DataError
from p4perf.evaluation.fitting.derivation import FitOptions, derive
from p4perf.evaluation.fitting.engine import METRICS, chosen_templates, fitted_templates
from p4perf.evaluation.fitting.error_metrics import error_metric
from p4perf.evaluation.fitting.intervals import FitProblem, _choose_in_batches
from p4perf.evaluation.fitting.selection import ExactRule
from p4perf.models import standard_templates

TEMPLATES = standard_templates()
TINY, HUGE = 1e-300, 1e300


@pytest.mark.sampled(6)
@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("kappa", [1e-6, 0.005, 0.1])
@pytest.mark.parametrize("name", METRICS)
def test_choosing_early_is_choosing_from_all(name: str, kappa: float, robust: bool) -> None:
    metric, ranks = error_metric(name), tuple(t.rank for t in TEMPLATES)
    for x, y in noisy_series(4, 32)[:: 2 if robust else 1]:
        rule = ExactRule(kappa * metric.scale(y), kappa)
        starts, ends = np.triu_indices(len(x), k=2)
        errors, choice = chosen_templates(x, y, starts, ends, TEMPLATES, rule.choice(name), robust=robust)
        problem = FitProblem(x, y, TEMPLATES, ranks, metric, rule, robust=robust)
        all_errors, all_choice = _choose_in_batches(problem, starts, ends)
        assert (choice == all_choice).all()
        assert np.abs(errors - all_errors).max() <= 1e-9 * metric.scale(y)


@pytest.mark.parametrize("robust", [False, True])
def test_nothing_but_the_samples_decides(robust: bool) -> None:
    rng, choice = np.random.default_rng(3), ExactRule().choice("smape")
    for x, y in noisy_series(3, 40):
        starts, ends = np.triu_indices(len(x), k=1)
        errors, chosen = chosen_templates(x, y, starts, ends, TEMPLATES, choice, robust=robust, threads=1)
        for threads in (2, 3, 7):
            again = chosen_templates(x, y, starts, ends, TEMPLATES, choice, robust=robust, threads=threads)
            assert np.array_equal(again[0], errors)
            assert np.array_equal(again[1], chosen)
        mixed, some = rng.permutation(len(TEMPLATES)), rng.permutation(len(starts))[:300]
        shuffled = [TEMPLATES[k] for k in mixed]
        again = chosen_templates(x, y, starts[some], ends[some], shuffled, choice, robust=robust)
        assert np.array_equal(again[0], errors[some])
        assert np.array_equal(mixed[again[1]], chosen[some])


def test_fits_do_not_depend_on_threads() -> None:
    x, y = noisy_series(2, 50)[1]
    starts, ends = np.triu_indices(50)
    one, many = (fitted_templates(x, y, starts, ends, TEMPLATES, threads=threads) for threads in (1, 7))
    assert np.array_equal(one.parameters, many.parameters, equal_nan=True)
    assert np.array_equal(one.errors, many.errors)


FACTORS = st.sampled_from([1e-9, 1e-4, 0.7, 3.0, 1e5, 1e9])


@settings(max_examples=15)
@given(seed=st.integers(0, 7), name=st.sampled_from(list(METRICS)), of_x=FACTORS, of_y=FACTORS, negative=st.booleans())
def test_units_do_not_matter(seed: int, name: str, of_x: float, of_y: float, negative: bool) -> None:
    x, y = noisy_series(8, 40)[seed]
    factor = -of_y if negative else of_y
    one, other = (
        derive(x, y, FitOptions(max_segments=3, error=name)),
        derive(of_x * x, factor * y, FitOptions(max_segments=3, error=name)),
    )
    assert [f.breakpoints for f in one.fittings] == [f.breakpoints for f in other.fittings]
    assert [[p.template.name for p in f.segments] for f in one.fittings] == [
        [p.template.name for p in f.segments] for f in other.fittings
    ]
    scale = of_y if name == "rmse" else 1.0
    assert [f.error * scale for f in one.fittings] == pytest.approx([f.error for f in other.fittings], rel=1e-6)


# --- samples that nobody wants


GAPS = st.sampled_from([1e-12, 1e-6, 0.5, 1.0, 1.0, 1.0, 3.0, 1e6])
LEVELS = st.sampled_from([0.0, 1.0, -1.0, 2.0, 5.0, 1e-9, 1e9])
EXTREMES = st.sampled_from([0.0, TINY, -TINY, HUGE, -HUGE, 1e-308, 5e-324, 1.7e308, 1.0, -1.0])


@st.composite
def samples(draw, levels=LEVELS, gaps=GAPS):
    """Ascending abscissae (some negative, some far from zero) and ordinates of few values, or of many."""
    n = draw(st.integers(1, 16))
    x = draw(st.sampled_from([-3.0, 0.0, 1.0, 1e6])) + np.cumsum(draw(st.lists(gaps, min_size=n, max_size=n)))
    x = np.unique(x[np.isfinite(x)])
    noisy = draw(st.booleans())
    y = np.array(draw(st.lists(levels, min_size=len(x), max_size=len(x))))
    return x, y * np.random.default_rng(n).uniform(0.9, 1.0, len(x)) if noisy else y


def check_choices(x: np.ndarray, y: np.ndarray, name: str, robust: bool) -> None:
    starts, ends = np.triu_indices(len(x))
    errors, chosen = chosen_templates(x, y, starts, ends, TEMPLATES, ExactRule().choice(name), robust=robust)
    fits = fitted_templates(x, y, starts, ends, TEMPLATES, metric=name, robust=robust)
    assert not np.isnan(errors).any()
    assert (errors >= 0).all()
    assert np.array_equal(np.isfinite(errors), chosen >= 0)
    if name != "mape":
        assert (chosen >= 0).all()
    for row in np.flatnonzero(chosen >= 0):
        fit = fits.of(int(chosen[row]))
        segment = slice(starts[row], ends[row] + 1)
        values = TEMPLATES[chosen[row]].evaluate(x[segment], fit.parameters[row], fit.origin[row])
        assert np.isfinite(fit.parameters[row]).all()
        assert np.isfinite(values).all(), TEMPLATES[chosen[row]].name
        assert errors[row] == fits.errors[row, chosen[row]]


@settings(max_examples=80)
@given(samples(), st.sampled_from(list(METRICS)), st.booleans())
def test_odd_samples_are_described_by_finite_curves(sampled, name: str, robust: bool) -> None:
    check_choices(*sampled, name, robust)


@settings(max_examples=80)
@given(samples(EXTREMES, st.sampled_from([TINY, 1e-12, 1.0, 1e9, HUGE])), st.sampled_from(list(METRICS)), st.booleans())
def test_the_ends_of_the_number_line(sampled, name: str, robust: bool) -> None:
    check_choices(*sampled, name, robust)


@settings(max_examples=80)
@given(samples(), st.sampled_from(["smape", "rmse", "mape"]), st.sampled_from(["squares", "l1"]), st.integers(1, 4))
def test_odd_samples_are_derived_from_or_refused(sampled, name: str, loss: str, most: int) -> None:
    x, y = sampled
    twice = np.repeat(x, 2), np.repeat(y, 2)
    try:
        derivation = derive(*twice, FitOptions(error=name, loss=loss, max_segments=most))
    except DataError:
        assert name == "mape"
        assert (np.abs(y) < 1e-15 * np.abs(y).max()).any() or (y == 0).any()
        return
    for fitting in derivation.fittings:
        assert np.isfinite(fitting.error)
        assert np.isfinite(fitting.evaluate(x)).all()
        for segment in fitting.segments:
            inside = (x >= segment.start) & (x <= segment.end)
            if name != "rmse" and np.abs(y[inside]).min() < 1e-6 * np.abs(y).max():
                continue  # relative errors of samples that are next to nothing beside others are rounding
            stored = error_metric(name).at_least(derivation.floor)(y[inside], segment.evaluate(x[inside]))
            assert stored == pytest.approx(segment.error, rel=1e-4, abs=1e-6 * error_metric(name).scale(y))
        assert sum(p.points for p in fitting.segments) == len(x)


@pytest.mark.parametrize("n", range(1, 7))
@pytest.mark.parametrize("level", [0.0, 3.0, -7.0, TINY, -HUGE])
def test_constants_are_constants_however_few(n: int, level: float) -> None:
    best = derive(np.arange(n), np.full(n, level), FitOptions(max_segments=3)).best
    assert [p.template.name for p in best.segments] == ["const"]
    assert best.segments[0].parameters[0] == pytest.approx(level, rel=1e-12)
    assert best.error <= 1e-12
