"""``p4perf.fit``: what the command does, in three lines of Python."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import p4perf
from p4perf.errors import DataError, UsageError
from p4perf.evaluation.fitting.split_finders import SecondDerivative
from p4perf.evaluation.fitting.tables import model_rows
from p4perf.models import ComponentModel, FunctionTemplate, registered_templates

X = np.arange(1, 41)
Y = np.where(X <= 15, 40.0, 40.0 + 2.0 * (X - 15))


@pytest.fixture(scope="module")
def fit():
    return p4perf.fit(X, Y, x_name="entries", y_name="cycles", y_unit="cycles", name="a table")


def test_as_text(fit):
    first, second = str(fit).splitlines()
    assert first.startswith("1 .. 15: cycles = 40 (sMAPE ")
    assert second.startswith("16 .. 40: cycles = 10 + 2 entries (sMAPE ")


def test_as_html(fit):
    html = fit._repr_html_()
    assert html.startswith("<svg")
    assert html.count("<table") == 1
    assert "10 + 2 entries" in html
    assert "c1 = 2" in html
    assert "1 .. 15" in html
    assert "Traceback" not in html


def test_as_a_function(fit):
    assert fit([3, 20]).tolist() == pytest.approx([40, 50])
    assert fit(20) == pytest.approx(50)


def test_figures(fit):
    for figure in (fit.plot(), fit.plot_residuals(), fit.plot_segments()):
        assert figure.get_axes()


def test_what_it_was_derived_from(fit):
    assert [len(f.segments) for f in fit.derivation.fittings][:2] == [1, 2]
    assert fit.samples.medians().tolist() == Y.tolist()
    assert ComponentModel.from_json(fit.model.to_json()) == fit.model
    assert (fit.model.name, fit.model.y.unit) == ("a table", "cycles")


@pytest.mark.parametrize(
    ("x", "y"),
    [(X.tolist(), Y.tolist()), (pd.Series(X), pd.Series(Y)), (tuple(X), tuple(Y)), (X[::-1], Y[::-1])],
    ids=["lists", "series", "tuples", "descending"],
)
def test_any_columns_of_numbers(x, y):
    found = p4perf.fit(x, y, max_segments=2, resamples=0)
    assert found.model.fitting.breakpoint_x == (16.0,)
    assert found.model.uncertainty is None


def test_repetitions(fit):
    found = p4perf.fit(np.repeat(X, 3), np.repeat(Y, 3) + np.tile([-1, 0, 5], len(X)), max_segments=2, resamples=20)
    assert found.model.fitting.breakpoint_x == (16.0,)
    assert found.samples.medians().tolist() == Y.tolist()


def test_options_reach_the_derivation():
    finder = SecondDerivative(bends=4)
    found = p4perf.fit(
        X,
        Y,
        segments=2,
        error="mape",
        loss="l1",
        min_points=3,
        split_finder=finder,
        kappa=0.01,
        level=0.8,
        resamples=20,
    )
    settings = dict(found.derivation.settings)
    assert (found.derivation.error, settings["loss"], settings["min_points"]) == ("mape", "l1", 3)
    assert (settings["kappa"], settings["split_finder"]) == (0.01, repr(finder))
    assert found.model.uncertainty.level == 0.8
    assert found.model.uncertainty.resamples == 20


def test_a_function_of_ones_own():
    stairs = FunctionTemplate(
        "stairs",
        lambda x, c0, c1: c0 + c1 * np.ceil(x / 8),
        ("c0", "c1"),
        start=lambda x, y: (y.min(), 1.0),
        bounds=((0, np.inf), (0, np.inf)),
    )
    y = 30 + 4 * np.ceil(X / 8)
    found = p4perf.fit(X, y, templates=(stairs,), max_segments=1, resamples=20)
    assert str(found).startswith("1 .. 40: y = stairs(x; c0 = 30, c1 = 4) (sMAPE ")
    assert "stairs" in found._repr_html_()
    found = p4perf.fit(X, y, templates=(*registered_templates(), stairs), max_segments=1, resamples=0)
    assert found.model.fitting.segments[0].template is stairs
    with pytest.raises(DataError, match="stairs"):
        ComponentModel.from_json(found.model.to_json())
    again = ComponentModel.from_json(found.model.to_json(), templates=(stairs,))
    assert again.evaluate([9, 17]).tolist() == pytest.approx([38, 42])


def test_a_parameter_at_its_bound_does_not_look_exact():
    flat = FunctionTemplate("flat", lambda x, a, b: a * x**b, ("a", "b"), bounds=((0, np.inf), (0, 0.3)))
    html = p4perf.fit(X, 7 * np.sqrt(X), templates=(flat,), max_segments=1, resamples=20)._repr_html_()
    assert "b = 0.3 (at its bound)" in html
    assert html.count("at its bound") == 1


def test_a_parameter_without_a_width_prints_no_interval():
    noise = np.random.default_rng(1).normal(0, 0.3, (len(X), 3))
    y = 40 + 3 * np.exp(0.05 * X[:, None]) + noise
    rows = model_rows(p4perf.fit(np.repeat(X, 3), y.ravel(), templates="log_shift", max_segments=1).model)
    texts = [p.text() for p in rows[0].parameters]
    assert [text.partition(" ")[0] for text in texts if "[" in text] == ["a", "b"]
    assert texts[2].endswith("(at its bound)"), "the shift is as large as any that is tried"
    exact = model_rows(p4perf.fit(X, 40 + 3 * np.exp(0.05 * X), templates="exp", max_segments=1).model)
    assert [p.text() for p in exact[0].parameters] == ["c = 40", "a = 3", "k = 0.05"]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"max_segment": 3}, "there is no option 'max_segment'\nhint: did you mean max_segments\\?"),
        ({"error": "smap"}, "unknown error metric 'smap'"),
        ({"split_finder": "dynamc"}, "unknown split finder 'dynamc'"),
        ({"profile": "rough"}, "there is no profile 'rough'"),
        ({"loss": "l2"}, "there is no loss 'l2'"),
        ({"search": "fast"}, "there is no search 'fast'"),
        ({"segments": 0}, "must be at least 1"),
        ({"max_segments": 0}, "must be at least 1"),
        ({"segments": 20}, "cannot make 20 segments"),
        ({"templates": ()}, "at least one template"),
    ],
)
def test_wrong_options(options, wanted):
    with pytest.raises(UsageError, match=wanted):
        p4perf.fit(X, Y, **options)


@pytest.mark.parametrize(
    ("x", "y"),
    [([], []), ([1, 2], [1]), ([1, 2], [1, float("nan")]), ([1, float("inf")], [1, 2])],
    ids=["empty", "of different lengths", "not a number", "infinite"],
)
def test_wrong_samples(x, y):
    with pytest.raises(DataError):
        p4perf.fit(x, y)


def test_functions_have_names():
    x = np.arange(1.0, 20)
    for templates in ("power", ["power"]):
        assert p4perf.fit(x, 3 * x**1.5, templates=templates).segments[0].template.name == "power"
    with pytest.raises(UsageError, match="no function template 'powr'"):
        p4perf.fit(x, x, templates=["powr"])


def test_the_package_opens_without_the_heavy_libraries():
    code = "import sys, p4perf; print([m for m in ('numpy', 'pandas', 'scipy', 'matplotlib') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_what_the_package_does_not_have():
    with pytest.raises(AttributeError, match="fitt"):
        _ = p4perf.fitt
