"""What the fit engine fits, and where it says that it cannot."""

from __future__ import annotations

import numpy as np
import pytest
from support.fit_segments import noisy_series, random_segments, whole

from p4perf.errors import UsageError
from p4perf.evaluation.fitting import engine
from p4perf.evaluation.fitting.engine import chosen_templates, fitted_templates
from p4perf.evaluation.fitting.selection import ExactRule
from p4perf.models import FunctionTemplate, standard_templates
from p4perf.models.templates import BasisTemplate, Polynomial, find_template

TEMPLATES = standard_templates()
GRIDS = {
    "linear": np.arange(1.0, 41.0),
    "log": np.array([m * 10.0**k for k in range(8) for m in range(1, 10)][:65]),
    "far": np.linspace(1e6, 1e6 + 400, 30),
    "from_zero": np.arange(0.0, 30.0),
}
TRUTH = {
    "const": (3.0,),
    "poly1": (2.0, 1.5),
    "poly2": (2.0, 1.5, 4.0),
    "poly3": (2.0, 1.5, 4.0, 3.0),
    "poly4": (2.0, 1.5, 4.0, 3.0, 2.0),
    "poly5": (2.0, 1.5, 4.0, 3.0, 2.0, 1.0),
    "log": (50.0, 3.0),
    "log_shift": (50.0, 3.0, 2.0),
    "power": (3.0, 0.7),
    "exp": (20.0, 7.0, -3.0),
    "inv_poly1": (0.01, 0.04),
    "inv_poly2": (0.01, 0.04, 0.02),
    "inv_poly3": (0.01, 0.04, 0.02, 0.01),
    "inv_poly4": (0.01, 0.04, 0.02, 0.01, 0.02),
    "inv_poly5": (0.01, 0.04, 0.02, 0.01, 0.02, 0.03),
    "inv_log": (0.05, 0.02),
    "inv_log_shift": (0.05, 0.02, 2.0),
    "inv_exp": (0.05, 0.02, 1.5),
}
ABSOLUTE = ("log", "inv_log", "power")
"""Templates without an origin: they need x > 0 and cannot be moved."""


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("name", TRUTH)
def test_exact_data_are_recovered(name: str, grid: str, robust: bool) -> None:
    x, template = GRIDS[grid], find_template(name)
    if name in ABSOLUTE and x[0] <= 0:
        assert np.isnan(whole(x, x + 1, template)).all()
        return
    u = x if name in ABSOLUTE else (x - x[0]) / (x[-1] - x[0])
    if grid == "log" and name in ("exp", "log_shift", "inv_log_shift"):
        u = u * 2
    for sign in (1, -1):
        y = sign * template.evaluate(u, TRUTH[name])
        assert whole(x, y, template, robust=robust) == pytest.approx(y, rel=1e-5 if robust else 1e-7)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda t: t.name)
@pytest.mark.parametrize("n", range(1, 8))
def test_too_few_samples_are_left_out(template, n: int) -> None:
    x = np.arange(1.0, n + 1)
    values = whole(x, 5 + x**2, template)
    assert n >= engine.least_samples(template) or np.isnan(values).all()
    assert n < engine.least_samples(template) or np.isfinite(values).all()


@pytest.mark.parametrize("y", [[1.0, -1.0, 2.0, -3.0, 1.0], [0.0, 1.0, 2.0, 3.0, 4.0], [-1.0, -2.0, 0.0, -1.0, -1.0]])
def test_reciprocals_and_powers_need_one_sign(y: list[float]) -> None:
    for template in TEMPLATES:
        values = whole(np.arange(1.0, 6.0), np.array(y), template)
        needs = template.inverse or template.name == "power"
        assert np.isfinite(values).all() != (needs or len(template.parameter_names) > 4), template.name


def test_a_power_that_cannot_be_written_about_zero_is_no_fit() -> None:
    x = np.linspace(1e6, 1e6 + 400, 40)
    y = 100 * np.exp((x - 1e6) / 100)
    assert np.isnan(whole(x, y, find_template("power"))).all()
    starts, ends = np.array([0]), np.array([39])
    _, choice = chosen_templates(x, y, starts, ends, TEMPLATES, ExactRule().choice("smape"))
    assert TEMPLATES[choice[0]].name == "exp"
    assert whole(x / 1e6, y, find_template("power")) == pytest.approx(y, rel=1e-3)


def test_segments_do_not_influence_each_other() -> None:
    rng = np.random.default_rng(1)
    for x, y in noisy_series(4, 50):
        starts, ends = random_segments(rng, 50, 12, least=1)
        together = fitted_templates(x, y, starts, ends, TEMPLATES)
        errors, choice = chosen_templates(x, y, starts, ends, TEMPLATES, ExactRule().choice("mape"))
        for row in range(12):
            one = slice(row, row + 1)
            alone = fitted_templates(x, y, starts[one], ends[one], TEMPLATES)
            assert np.array_equal(alone.parameters, together.parameters[one], equal_nan=True)
            assert np.array_equal(alone.errors, together.errors[one])
            error, chosen = chosen_templates(x, y, starts[one], ends[one], TEMPLATES, ExactRule().choice("mape"))
            assert (error[0], chosen[0]) == (errors[row], choice[row])


def test_templates_do_not_influence_each_other() -> None:
    x, y = noisy_series(1, 50)[0]
    starts, ends = random_segments(np.random.default_rng(2), 50, 12, least=1)
    together = fitted_templates(x, y, starts, ends, TEMPLATES)
    for column, template in enumerate(TEMPLATES):
        alone, same = fitted_templates(x, y, starts, ends, [template]).of(0), together.of(column)
        assert np.array_equal(alone.parameters, same.parameters, equal_nan=True)
        assert np.array_equal(alone.origin, same.origin)


def test_several_series_over_the_same_abscissae() -> None:
    x, first = noisy_series(1, 40)[0]
    rows = np.stack([first, -1e6 * first[::-1], np.round(first)])
    starts, ends = np.array([0, 5, 0, 20]), np.array([39, 30, 19, 39])
    row = np.array([2, 0, 1, 1])
    together = fitted_templates(x, rows, starts, ends, TEMPLATES, row=row, metric="rmse")
    errors, choice = chosen_templates(x, rows, starts, ends, TEMPLATES, ExactRule(0.1).choice("rmse"), row=row)
    for k, series in enumerate(row):
        one = slice(k, k + 1)
        alone = fitted_templates(x, rows[series], starts[one], ends[one], TEMPLATES, metric="rmse")
        assert np.array_equal(alone.errors, together.errors[one])
        error, chosen = chosen_templates(
            x, rows[series], starts[one], ends[one], TEMPLATES, ExactRule(0.1).choice("rmse")
        )
        assert (error[0], chosen[0]) == (errors[k], choice[k])


def test_stored_errors_are_those_of_the_stored_parameters() -> None:
    x, y = noisy_series(2, 50)[1]
    starts, ends = random_segments(np.random.default_rng(3), 50, 20)
    fits = fitted_templates(x, y, starts, ends, TEMPLATES, metric="rmse")
    for column, template in enumerate(TEMPLATES):
        fit = fits.of(column)
        for row in np.flatnonzero(np.isfinite(fits.errors[:, column])):
            segment = slice(starts[row], ends[row] + 1)
            off = template.evaluate(x[segment], fit.parameters[row], fit.origin[row]) - y[segment]
            assert fits.errors[row, column] == pytest.approx(np.sqrt(np.mean(off**2)), rel=1e-8)


def test_what_the_engine_knows() -> None:
    assert all(engine.knows(t) for t in TEMPLATES)
    unknown = (
        BasisTemplate("poly6", "poly", 7.0, Polynomial(6)),
        BasisTemplate("inv_const", "const", 1.5, Polynomial(0), True),
        FunctionTemplate("flat", lambda x, a: a, ("a",)),
    )
    one = np.array([0])
    for template in unknown:
        assert not engine.knows(template)
        with pytest.raises(UsageError, match=f"does not know the template {template.name}"):
            fitted_templates(np.arange(3.0), np.arange(3.0), one, one + 2, [template])


@pytest.mark.parametrize(
    ("x", "y", "start", "end", "message"),
    [
        ([1.0, 1.0], [1.0, 2.0], 0, 1, "ascending x"),
        ([2.0, 1.0], [1.0, 2.0], 0, 1, "ascending x"),
        ([1.0, 2.0], [1.0], 0, 1, "as many y"),
        ([], [], 0, 0, "ascending x"),
        ([1.0, np.inf], [1.0, 2.0], 0, 1, "finite"),
        ([1.0, 2.0], [1.0, np.nan], 0, 1, "finite"),
        ([1.0, 2.0], [1.0, 2.0], -1, 1, "within the samples"),
        ([1.0, 2.0], [1.0, 2.0], 0, 2, "within the samples"),
        ([1.0, 2.0], [1.0, 2.0], 1, 0, "within the samples"),
    ],
)
def test_wrong_arguments(x, y, start: int, end: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fitted_templates(np.array(x), np.array(y), np.array([start]), np.array([end]), TEMPLATES)


def test_a_segment_of_a_series_that_is_not_there() -> None:
    one = np.array([0])
    with pytest.raises(UsageError, match="one of the series"):
        fitted_templates(np.arange(3.0), np.ones((2, 3)), one, one + 2, TEMPLATES, row=one + 2)


def test_no_segments() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert fitted_templates(np.arange(3.0), np.ones(3), none, none, TEMPLATES).errors.shape == (0, len(TEMPLATES))
    errors, choice = chosen_templates(np.arange(3.0), np.ones(3), none, none, TEMPLATES, ExactRule().choice("smape"))
    assert (len(errors), len(choice)) == (0, 0)
