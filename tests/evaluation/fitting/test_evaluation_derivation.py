from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.fitting.derivation import FitOptions, derive
from p4perf.evaluation.fitting.error_metrics import error_metric
from p4perf.models.templates import find_template


@dataclass
class Score:
    """What was found in the cases of one kind, given the true number of segments."""

    sharp: list[bool] = field(default_factory=list)
    families: list[bool] = field(default_factory=list)
    segments: list[bool] = field(default_factory=list)
    excess: list[float] = field(default_factory=list)


def judge(fitcases, prefix: str) -> Score:
    """Sharp breakpoints to within a sample, families, the number of segments, and the error over that of the truth."""
    score = Score()
    for name in fitcases.names(prefix):
        truth, x, y = fitcases.load(name)
        segments = len(truth["segments"])
        derivation = derive(x, y, FitOptions(max_segments=6, segments=segments))
        best, lowest = derivation.best, np.argmin([c.l1_bic for c in derivation.criteria])
        breakpoints = zip(best.breakpoints, truth["splits"], truth["sharp"], strict=True)
        score.sharp += [abs(found - true) <= 1 for found, true, sharp in breakpoints if sharp]
        score.families += [
            fitcases.family(p.template.name) == s["family"]
            for p, s in zip(best.segments, truth["segments"], strict=True)
        ]
        score.segments.append(len(derivation.fittings[lowest].segments) == segments)
        score.excess.append(best.error / max(truth["floor_combined"], 1e-4))
    return score


def test_single_functions_are_recognised(fitcases) -> None:
    score = judge(fitcases, "c_")
    assert sum(score.families) >= 14
    assert sum(score.segments) >= 12
    assert max(score.excess) <= 1.2


def test_curves_of_two_to_four_segments(fitcases) -> None:
    score = judge(fitcases, "d60_")
    assert (len(score.sharp), len(score.families), len(score.segments)) == (48, 90, 30)
    assert sum(score.sharp) >= 47
    assert sum(score.families) >= 84
    assert sum(score.segments) >= 26
    assert np.median(score.excess) <= 0.97
    assert max(score.excess) <= 1.15


def test_curves_with_outliers_and_much_noise(fitcases) -> None:
    """Their noise is 5 to 15 %, so a margin of half a point of sMAPE alone lets curves follow it."""
    families = []
    for name in fitcases.names("g_"):
        truth, x, y = fitcases.load(name)
        best = derive(x, y).best
        assert len(best.segments) == len(truth["segments"]), name
        ends = np.searchsorted(x, best.breakpoint_x) - 1
        assert all(
            abs(end - true) <= 1
            for end, true, sharp in zip(ends, truth["splits"], truth["sharp"], strict=True)
            if sharp
        ), name
        families += [
            fitcases.family(p.template.name) == s["family"]
            for p, s in zip(best.segments, truth["segments"], strict=True)
        ]
    assert len(families) == 9
    assert sum(families) >= 7


@pytest.mark.parametrize("name", ["b_fig3_n10", "b_fig3_n100"])
def test_line_then_constant(fitcases, name: str) -> None:
    truth, x, y = fitcases.load(name)
    best = derive(x, y).best
    assert len(best.segments) == 2
    assert abs(best.breakpoints[0] - truth["splits"][0]) <= 1
    assert [p.template.name for p in best.segments] == ["poly1", "const"]


def test_steps(fitcases) -> None:
    for name in fitcases.names("f_"):
        truth, x, y = fitcases.load(name)
        if len(x) > 60:
            continue
        best = derive(x, y, FitOptions(max_segments=5)).best
        assert len(best.segments) == len(truth["segments"]), name
        assert np.abs(np.array(best.breakpoints) - truth["splits"]).max() <= 1, name
        assert all(p.template.name == "const" for p in best.segments), name


def test_curve_of_the_paper(fitcases) -> None:
    truth, x, y = fitcases.load("a0_fig2")
    derivation = derive(x, y, FitOptions(max_segments=5))
    best = derivation.of_segments(5)
    assert [p.template.name for p in best.segments] == ["poly1", "const", "log", "poly1", "const"]
    assert best.error <= 1.05 * truth["floor_combined"]
    sharp = [
        (s, t) for s, t, is_sharp in zip(best.breakpoints, truth["splits"], truth["sharp"], strict=True) if is_sharp
    ]
    assert all(abs(s - t) <= 1 for s, t in sharp)
    assert derivation.best is best


def test_constants(fitcases) -> None:
    for name in fitcases.names("e_"):
        _, x, y = fitcases.load(name)
        best = derive(x, y).best
        assert [p.template.name for p in best.segments] == ["const"], name
    assert best.error < 0.01


@pytest.mark.parametrize("profile", ["exact", "scholz2021"])
@pytest.mark.parametrize("value", [0.0, 157.2, -3.0])
def test_constant_data_give_a_constant(profile, value: float) -> None:
    best = derive(np.arange(20.0), np.full(20, value), FitOptions(profile=profile)).best
    assert [p.template.name for p in best.segments] == ["const"]
    assert best.error == pytest.approx(0.0, abs=1e-15)
    assert best.segments[0].parameters[0] == pytest.approx(value)


@pytest.mark.parametrize("profile", ["exact", "scholz2021"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_few_samples(profile, n: int) -> None:
    x, y = np.arange(1.0, n + 1), np.array([5.0, 9.0, 2.0, 7.0, 1.0, 8.0])[:n]
    derivation = derive(x, y, FitOptions(max_segments=3, profile=profile))
    assert derivation.best.points == n
    for fitting in derivation.fittings:
        assert np.isfinite(fitting.evaluate(x)).all()
        assert np.isfinite(fitting.error)


def test_a_line_through_few_samples() -> None:
    best = derive([1, 2, 3, 4, 5, 6], [3.0, 5.0, 7.0, 9.0, 11.0, 13.0]).best
    assert [p.template.name for p in best.segments] == ["poly1"]
    assert best.segments[0].parameters == pytest.approx((1.0, 2.0))


def series(seed: int, n: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.arange(1.0, n + 1)
    y = np.where(x < 14, 100 + 2 * x, 40 + 50 * np.log(x)) * (1 + 0.005 * rng.standard_normal(n))
    return x, y


def test_more_segments_of_higher_error_only_on_demand() -> None:
    x, y = series(2)
    derived = [len(f.segments) for f in derive(x, y, FitOptions(max_segments=5)).fittings]
    left_out = ({2, 3, 4, 5} - set(derived)).pop()
    assert len(derive(x, y, FitOptions(segments=left_out)).best.segments) == left_out


def test_two_segments_are_the_same_with_and_without_more() -> None:
    x, y = series(1)
    assert (
        derive(x, y, FitOptions(max_segments=2)).of_segments(2).breakpoints
        == derive(x, y, FitOptions(max_segments=4)).of_segments(2).breakpoints
    )


def test_stored_curve_has_the_stored_error() -> None:
    x, y = series(2)
    for fitting in derive(x, y, FitOptions(max_segments=3)).fittings:
        for segment, a, b in zip(
            fitting.segments, [0, *(s + 1 for s in fitting.breakpoints)], [*fitting.breakpoints, 29], strict=True
        ):
            assert segment.error == pytest.approx(error_metric("smape")(y[a : b + 1], segment.evaluate(x[a : b + 1])))


def test_order_and_repetitions_of_samples() -> None:
    x, y = series(6)
    order = np.random.default_rng(1).permutation(len(x))
    assert derive(x[order], y[order]) == derive(x, y)
    thrice = derive(np.repeat(x, 3), np.repeat(y, 3) + np.tile([-1.0, 0.0, 5.0], len(x)))
    assert thrice.best == derive(x, y).best


def test_polynomials_do_not_bulge_between_samples() -> None:
    x = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20.0]) * 1e5
    y = np.array([205, 230, 252, 276, 305, 328, 347, 372, 388, 418, 412.0])
    best = derive(x, y, FitOptions(segments=1)).best
    assert best.evaluate(np.linspace(1e5, 2e6, 500)).max() < 1.25 * 418


def test_scholz2021_profile_caps_parameters() -> None:
    x = np.linspace(1, 1e6, 30)
    y = 100 + 4e-6 * x
    line = (find_template("poly1"),)
    exact = derive(x, y, FitOptions(templates=line, segments=1)).best
    paper = derive(x, y, FitOptions(templates=line, segments=1, profile="scholz2021")).best
    assert exact.segments[0].parameters[1] == pytest.approx(4e-6)
    assert paper.segments[0].parameters[1] == 1e-5
    assert paper.error > exact.error


def test_scholz2021_profile_on_a_knee() -> None:
    x = np.arange(1.0, 21.0)
    y = np.where(x <= 10, x, 10.0)
    best = derive(x, y, FitOptions(segments=2, profile="scholz2021")).best
    assert best.error < 0.01
    assert len(best.segments) == 2


@pytest.mark.parametrize("error", ["mape", "rmse"])
def test_other_metrics(error: str) -> None:
    x, y = series(8)
    best = derive(x, y, FitOptions(segments=2, error=error)).best
    assert abs(best.breakpoints[0] - 12) <= 1


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([], [], "no samples"),
        ([1.0], [1.0, 2.0], "same length"),
        ([1.0, np.nan], [1.0, 2.0], "sample 1: x is nan"),
        ([1.0, 2.0], [np.inf, 2.0], "sample 0: y is inf"),
        (["a"], [1.0], "must be numbers"),
        ([[1.0]], [[1.0]], "same length"),
    ],
)
def test_bad_samples(x, y, message: str) -> None:
    with pytest.raises(DataError, match=message):
        derive(x, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"error": "chi2"}, "unknown error metric 'chi2'"),
        ({"profile": "fast"}, "no profile"),
        ({"max_segments": 0}, "must be at least 1"),
        ({"segments": 5, "min_points": 5}, "cannot make 5 segments"),
        ({"templates": ()}, "at least one template"),
    ],
)
def test_bad_options(options, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        derive(np.arange(10.0), np.arange(10.0), FitOptions(**options))


def test_segments_that_were_not_derived() -> None:
    with pytest.raises(UsageError, match="no fitting of 7 segments"):
        derive(np.arange(10.0), np.arange(10.0)).of_segments(7)


@settings(max_examples=40)
@given(st.data())
def test_anything_finite_gives_a_finite_curve(data) -> None:
    n = data.draw(st.integers(1, 14))
    value = st.floats(-1e6, 1e6).map(lambda v: round(v, 3))
    x = data.draw(st.lists(value, min_size=n, max_size=n))
    y = data.draw(st.lists(value, min_size=n, max_size=n))
    derivation = derive(x, y, FitOptions(max_segments=3))
    for fitting in derivation.fittings:
        assert 0 <= fitting.error <= 1
        assert np.isfinite(fitting.evaluate(derivation.x)).all()
