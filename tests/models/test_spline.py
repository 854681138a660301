"""The interpolating template."""

from __future__ import annotations

import numpy as np
import pytest

import p4perf
from p4perf.errors import UsageError
from p4perf.models.component import ComponentModel
from p4perf.models.export import export_model
from p4perf.models.spline import MAX_KNOTS, SplineTemplate, find_function, find_spline

X = np.array([1.0, 2, 4, 8, 16, 32, 64])
Y = np.array([30.0, 31, 31, 60, 140, 90, 95])


def test_it_is_the_monotone_interpolation_of_fritsch_and_butland() -> None:
    from scipy.interpolate import PchipInterpolator

    spline = SplineTemplate(len(X))
    at = np.linspace(2, 32, 301)  # scipy has other slopes at the ends
    assert spline.evaluate(at, spline.through(X, Y)) == pytest.approx(PchipInterpolator(X, Y)(at), rel=1e-9)
    assert spline.evaluate(X, spline.through(X, Y)) == pytest.approx(Y)


def test_it_does_not_leave_what_is_between_two_knots() -> None:
    spline = SplineTemplate(len(X))
    for a, b, left, right in zip(X, X[1:], Y, Y[1:], strict=False):
        values = spline.evaluate(np.linspace(a, b, 50), spline.through(X, Y))
        assert values.min() >= min(left, right) - 1e-9
        assert values.max() <= max(left, right) + 1e-9


def test_slopes_are_those_of_the_curve() -> None:
    spline, step = SplineTemplate(len(X)), 1e-6
    parameters = spline.through(X, Y)
    at = np.array([0.5, 1.5, 3.3, 10, 50, 70])
    slope = (spline.evaluate(at + step, parameters) - spline.evaluate(at - step, parameters)) / (2 * step)
    assert spline.derivative(at, parameters) == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_many_at_once() -> None:
    spline = SplineTemplate(len(X))
    one, other = spline.through(X, Y), spline.through(X, 2 * Y)
    at = np.array([[1.5, 3.0], [5.0, 9.0]])
    both = spline.evaluate(at, np.stack([one, other])[:, None, :], np.zeros((2, 1)))
    assert both[0] == pytest.approx(spline.evaluate(at[0], one))
    assert both[1] == pytest.approx(2 * spline.evaluate(at[1], one))


def test_names() -> None:
    assert find_spline("spline12") == find_function("spline12") == SplineTemplate(12)
    assert find_spline("spline") == SplineTemplate()
    for name in ("spline0", "splines", "spline-1", "poly1"):
        assert find_spline(name) is None


def test_models_with_a_spline() -> None:
    fit = p4perf.fit(X, Y, templates=(find_function("spline"),), resamples=20)
    assert fit.model.fitting.error == 0
    assert ComponentModel.from_json(fit.model.to_json()) == fit.model
    assert fit.model.formulas() == (f"y = spline of {len(X)} points",)
    with pytest.raises(UsageError, match="no formula"):
        export_model(fit.model, "c")
    x = np.arange(200.0)
    long = p4perf.fit(x, 5 + x**2, templates=(find_function("spline"),), resamples=0)
    assert long.model.fitting.segments[0].template == SplineTemplate(MAX_KNOTS)
    assert long.model.fitting.error < 0.005
    assert len(p4perf.fit([3], [5.0], templates=(find_function("spline"),)).model.fitting.segments) == 1
