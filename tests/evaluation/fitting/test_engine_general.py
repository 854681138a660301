"""What the engine does not know: functions of other people, higher degrees, other metrics; scipy fits these."""

from __future__ import annotations

import numpy as np
import pytest
from support.fit_segments import noisy_series

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.fitting.derivation import FitOptions, derive
from p4perf.evaluation.fitting.engine import SegmentBatch, fitted_templates
from p4perf.evaluation.fitting.error_metrics import error_metric
from p4perf.evaluation.fitting.intervals import fit_general
from p4perf.models import FunctionTemplate, standard_templates
from p4perf.models.templates import BasisTemplate, Polynomial, find_template

CONST, LINE = find_template("const"), find_template("poly1")
SATURATION = FunctionTemplate("saturation", lambda x, a, b: a * x / (b + x), ("a", "b"))
SIXTH = BasisTemplate("poly6", "poly", 7.0, Polynomial(6))


def saturating(noise: float = 0.002) -> tuple[np.ndarray, np.ndarray]:
    """``500 x / (7 + x)`` up to x = 20, then 120."""
    x = np.arange(1.0, 41.0)
    truth = np.where(x <= 20, 500 * x / (7 + x), 120.0)
    return x, truth * (1 + noise * np.random.default_rng(0).standard_normal(40))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "options", [{}, {"profile": "scholz2021"}, {"error": "emd"}, {"error": "rmse", "min_points": 8}]
)
def test_a_function_beside_templates_of_the_engine(options) -> None:
    x, y = saturating()
    best = derive(x, y, FitOptions(segments=2, templates=(CONST, LINE, SATURATION), **options)).best
    assert [p.template.name for p in best.segments] == ["saturation", "const"]
    assert best.breakpoints == (19,)
    assert best.segments[0].parameters == pytest.approx((500, 7), rel=0.02)
    assert best.segments[0].error == pytest.approx(
        error_metric(options.get("error", "smape"))(y[:20], best.segments[0].evaluate(x[:20])), rel=1e-9
    )


@pytest.mark.thorough
def test_relative_distances_instead_of_squares() -> None:
    x, y = saturating()
    y[[4, 11]] *= 5
    led = FunctionTemplate("saturation", SATURATION.function, ("a", "b"), start=lambda x, y: (np.median(y), x[4]))
    squares, robust = (
        derive(x, y, FitOptions(segments=2, templates=(CONST, led), loss=loss)).best for loss in ("squares", "l1")
    )
    assert [p.template.name for p in robust.segments] == ["saturation", "const"]
    assert robust.segments[0].parameters == pytest.approx((500, 7), rel=0.03)
    assert squares.segments[0].parameters != pytest.approx((500, 7), rel=0.2)


def test_the_general_solver_agrees_with_the_engine() -> None:
    x, y = noisy_series(1, 40)[0]
    starts, ends = np.array([0, 5, 20]), np.array([39, 24, 39])
    batch = SegmentBatch.of_segments(x, y, starts, ends)
    for name in ("const", "poly1", "poly2", "log", "power"):
        template = find_template(name)
        ours = fitted_templates(x, y, starts, ends, [template]).of(0).values(template, batch.x)
        assert fit_general(batch, template).values(template, batch.x) == pytest.approx(ours, rel=1e-4)


@pytest.mark.thorough
def test_where_fitting_starts() -> None:
    x = np.linspace(0, 1e6, 40)
    y = 5 + 90 * np.exp(-(((x - 4e5) / 8e4) ** 2))

    def bell(x, base, height, place, width):
        return base + height * np.exp(-(((x - place) / width) ** 2))

    names = ("base", "height", "place", "width")
    lost = FunctionTemplate("bell", bell, names)
    led = FunctionTemplate("bell", bell, names, start=lambda x, y: (y.min(), np.ptp(y), x[y.argmax()], np.ptp(x) / 9))
    assert derive(x, y, FitOptions(segments=1, templates=(CONST, led))).best.error < 1e-6
    assert derive(x, y, FitOptions(segments=1, templates=(CONST, lost))).best.error > 0.1


def test_bounds() -> None:
    x, y = saturating()
    narrow = FunctionTemplate(
        "saturation", SATURATION.function, ("a", "b"), start=lambda x, y: (1e9, 1e9), bounds=((0, 450), (0, np.inf))
    )
    segment = derive(x[:20], y[:20], FitOptions(segments=1, templates=(narrow,))).best.segments[0]
    assert segment.parameters[0] == pytest.approx(450, rel=1e-3)
    assert segment.parameters[0] <= 450
    assert segment.error > derive(x[:20], y[:20], FitOptions(segments=1, templates=(SATURATION,))).best.error


NOWHERE = [
    FunctionTemplate("nan", lambda x, a: np.full(np.shape(x), np.nan) * a, ("a",)),
    FunctionTemplate("infinite", lambda x, a: a / np.zeros_like(x), ("a",)),
    FunctionTemplate("idle", lambda x, a, b: a * x + 0 * b, ("a", "b")),
    FunctionTemplate("lost", lambda x, a: a * x, ("a",), start=lambda x, y: (np.nan,)),
]


@pytest.mark.parametrize("template", NOWHERE, ids=lambda t: t.name)
def test_what_cannot_be_fitted_is_not_chosen(template) -> None:
    x, y = saturating()
    best = derive(x, y, FitOptions(max_segments=2, templates=(template, CONST))).best
    assert {p.template.name for p in best.segments} == {"const"}
    with pytest.raises(DataError, match="no template fits the samples"):
        derive(x, y, FitOptions(templates=(template,)))


def broken(x, a):
    raise ValueError("out of order")


FAILING = [
    (FunctionTemplate("broken", broken, ("a",)), "cannot be evaluated: out of order"),
    (FunctionTemplate("shape", lambda x, a: np.ones(3) * a, ("a",)), "cannot be evaluated"),
    (FunctionTemplate("text", lambda x, a: "x", ("a",)), "cannot be evaluated"),
    (FunctionTemplate("start", lambda x, a: a * x, ("a",), start=lambda x, y: 1 / 0), "cannot say where to start"),
]


@pytest.mark.parametrize(("template", "message"), FAILING, ids=lambda t: getattr(t, "name", ""))
def test_functions_that_fail_are_reported(template, message: str) -> None:
    x, y = saturating()
    with pytest.raises(UsageError, match=f"the function template '{template.name}' {message}"):
        derive(x, y, FitOptions(max_segments=2, templates=(CONST, template)))


@pytest.mark.thorough
@pytest.mark.parametrize("x", [np.linspace(-1, 1, 60), np.linspace(7e5, 1.3e6, 60), np.linspace(1.0, 2e7, 60)])
def test_a_higher_degree_is_the_least_squares_solution(x: np.ndarray) -> None:
    u = np.linspace(-1, 1, 60)
    curve = 3 + 40 * (u - 0.9) * (u - 0.5) * (u - 0.1) * (u + 0.3) * (u + 0.6) * (u + 0.95)
    y = curve + 0.5 * np.random.default_rng(1).standard_normal(60)
    found = derive(
        x, y, FitOptions(segments=1, templates=(*standard_templates(), SIXTH), error="rmse", kappa=0.001)
    ).best
    design = np.polynomial.legendre.legvander(u, 6)
    best = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    assert found.segments[0].template.name == "poly6"
    assert found.error == pytest.approx(float(np.sqrt(np.mean((best - y) ** 2))), rel=1e-6)


def test_histograms_are_derived_by_the_distance_that_earth_is_moved() -> None:
    bins = np.arange(1.0, 61.0)
    counts = np.where(bins <= 30, 1000 * np.exp(-bins / 8), 400 * np.exp(-(bins - 30) / 4))
    derivation = derive(bins, counts, FitOptions(max_segments=2, error="emd"))
    best = derivation.of_segments(2)
    assert abs(best.breakpoints[0] - 29) <= 1
    assert [p.template.name for p in best.segments] == ["exp", "exp"]
    assert best.error < 1e-6 < derivation.of_segments(1).error
    with pytest.raises(DataError, match="cannot be negative"):
        derive(bins, counts - 1, FitOptions(error="emd"))


@pytest.mark.parametrize("n", range(1, 7))
@pytest.mark.parametrize("options", [{"error": "emd"}, {"templates": (CONST, SATURATION)}])
def test_few_samples(n: int, options) -> None:
    derivation = derive(np.arange(1.0, n + 1), np.arange(5.0, n + 5) ** 2, FitOptions(max_segments=3, **options))
    for fitting in derivation.fittings:
        assert fitting.points == n
        assert np.isfinite(fitting.error)


def test_progress_of_the_general_path_ends_at_one() -> None:
    x, y = noisy_series(1, 40)[0]
    shares: list[float] = []
    derive(x, y, FitOptions(max_segments=2, error="emd"), progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert len(set(shares)) == len(shares)
