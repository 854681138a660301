"""The study of coverage: what it draws, how it judges, and the corrections of the bootstrap that it led to."""

from __future__ import annotations

import importlib
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from p4perf.evaluation.fitting.derivation import FitOptions, derive
from p4perf.evaluation.fitting.synthetic import piecewise_series
from p4perf.evaluation.fitting.uncertainty import expanded_tail, resampled
from p4perf.models.component import ConfidenceInterval, Uncertainty
from p4perf.results.table import MEDIAN_FACTORS, Samples, median_factor

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    """A module of the folder benchmarks by its name."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    for name in ("_coverage_study", "_coverage_summary", "_coverage_figure", "fitting_coverage"):
        sys.modules.pop(name, None)


@pytest.fixture
def study(benchmark):
    return benchmark("_coverage_study")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("repetitions", [2, 3, 5, 8, 21, 60])
def test_factors_of_medians(repetitions: int) -> None:
    rng = np.random.default_rng(repetitions)
    values = rng.standard_normal((3000, repetitions))
    drawn = np.take_along_axis(values[:, None], rng.integers(0, repetitions, (3000, 150, repetitions)), axis=2)
    bootstrap = np.sqrt(np.median(drawn, axis=2).var(axis=1, ddof=1).mean())
    assert median_factor(repetitions) == pytest.approx(np.median(values, axis=1).std() / bootstrap, rel=0.05)


def test_there_is_a_factor_for_any_number() -> None:
    assert median_factor(1) == 1
    assert [median_factor(n) for n in range(1, len(MEDIAN_FACTORS) + 1)] == list(MEDIAN_FACTORS)
    assert median_factor(1000) < 1


def test_replicates_lie_about_the_medians() -> None:
    samples = Samples((1.0, 2.0, 3.0), ((10.0, 11.0, 19.0), (20.0,), (30.0, 34.0)))
    curve = derive(samples.x, samples.medians(), FitOptions(segments=1)).best
    drawn = resampled(samples, curve, 4000, np.random.default_rng(1))
    assert drawn[:, [0, 2]].mean(axis=0) == pytest.approx([11.0, 32.0], rel=1e-9)
    assert drawn[:, 1].mean() == pytest.approx(20.0, abs=0.5)


def test_replicates_of_starts_that_disagree_are_of_single_starts() -> None:
    values = (100.0, 100.0, 100.0, 106.0, 106.0, 106.0)
    samples = Samples((1.0, 2.0, 3.0), (values,) * 3, disagreeing=(2.0,))
    curve = derive(samples.x, samples.medians(), FitOptions(segments=1)).best
    spread = resampled(samples, curve, 4000, np.random.default_rng(1)).std(axis=0)
    assert spread[1] == pytest.approx(np.std(values, ddof=1), rel=0.05)
    assert spread[1] > 1.3 * spread[[0, 2]].max()


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("freedom", [3, 10, 100])
def test_tails_are_those_of_t(level: float, freedom: int) -> None:
    tail = (1 - level) / 2
    wanted = stats.t.ppf(tail, freedom)
    assert stats.norm.ppf(expanded_tail(tail, freedom)) == pytest.approx(wanted, rel=0.05 if freedom < 10 else 0.001)


def test_every_combination_in_turn(study) -> None:
    design = study.Design()
    cases = design.cases(108, first_seed=5)
    assert len({replace(case, seed=0) for case in cases}) == 108
    assert design.cases(3, first_seed=113) == [replace(case, seed=case.seed + 108) for case in cases[:3]]


def test_noise_and_repetitions(study) -> None:
    design = study.Design(noisy_segment=3.0)
    drawn = study.draw(study.Case(3, 0.01, 400, 2, 40, "lin"), design)
    values = np.array(drawn.samples.values)
    assert values.shape == (40, 400)
    assert sorted(set(drawn.scatter)) == pytest.approx([0.01, 0.03])
    assert values.std(axis=1) / drawn.series.truth == pytest.approx(drawn.scatter, rel=0.2)


def test_a_split_is_covered_if_the_interval_overlaps_its_gap(study) -> None:
    series = piecewise_series(1, 60, 3)
    assert series.breakpoints == (
        21,
        37,
    )  # x counts from 1: the boundaries lie between 22 and 23, and between 38 and 39

    def covered(*intervals: tuple[float, float]) -> list[tuple[bool, int | None]]:
        known = Uncertainty(0.9, (), tuple(ConfidenceInterval(*i) for i in intervals), (), (), (), 1, 1)
        return [(s.covered, s.width) for s in study.true_breakpoints(series, (21, 30), known)]

    assert covered((22, 23), (38, 39)) == [(True, 1), (True, 1)]
    assert covered((23, 24), (30, 38)) == [(False, 1), (False, 8)]
    assert covered((20, 23), (38, 45)) == [(True, 3), (True, 7)]
    assert covered((30, 40)) == [(False, None), (True, None)]
    assert [s.found for s in study.true_breakpoints(series, (21, 30), Uncertainty(0.9, (), (), (), (), (), 1, 1))] == [
        1,
        0,
    ]


@pytest.mark.parametrize("repetitions", [1, 3])
def test_oracle_of_constants_and_lines(study, repetitions: int) -> None:
    design = study.Design(families=("const",))
    drawn = study.draw(study.Case(1, 0.02, repetitions, 1, 50, "lin"), design)
    sigma = 0.02 * drawn.series.truth[0] * {1: 1.0, 3: 0.67}[repetitions]
    assert study.oracle_widths(drawn, repetitions, 0.9) == pytest.approx(2 * 1.645 * sigma / math.sqrt(50), rel=0.01)
    drawn = study.draw(study.Case(1, 0.02, 1, 1, 50, "lin"), study.Design(families=("poly1",)))
    x, weight = drawn.series.x, 1 / (0.02 * drawn.series.truth) ** 2
    design_matrix = np.stack([np.ones_like(x), x], axis=1)
    best = np.sqrt(np.diag(design_matrix @ np.linalg.inv(design_matrix.T * weight @ design_matrix) @ design_matrix.T))
    assert (study.oracle_widths(drawn, 1, 0.9) >= 2 * 1.644 * best).all()
    assert study.oracle_widths(drawn, 1, 0.9) == pytest.approx(2 * 1.645 * best, rel=0.25)


def test_shares(benchmark) -> None:
    share = benchmark("_coverage_summary").Share
    all_or_nothing = share.of([(5, 5), (0, 5), (5, 5), (0, 5), (0, 0)])
    assert (all_or_nothing.percent, all_or_nothing.count) == (50, 20)
    assert all_or_nothing.error == pytest.approx(100 * math.sqrt(0.25 / 3))
    assert share.of([(1, 2), (2, 4)]).error == 0
    assert share.of([]).text() == "-"


@pytest.mark.thorough
def test_a_small_study(benchmark, tmp_path, monkeypatch, capsys) -> None:
    main = benchmark("fitting_coverage").main
    outputs = []
    for name in ("a", "b"):
        plot, record = tmp_path / f"{name}.svg", tmp_path / f"{name}.json"
        command = ["fitting_coverage", "--series", "9", "--points", "20", "--segments", "1,2", "--processes", "1"]
        monkeypatch.setattr(sys, "argv", [*command, "--plot", str(plot), "--json", str(record)])
        main()
        outputs.append((plot.read_bytes(), record.read_bytes()))
    assert outputs[0] == outputs[1]
    said = capsys.readouterr().out
    assert "all series" in said
    assert "sharp breakpoints:" in said
    assert b"sharp breakpoints" in outputs[0][0]
