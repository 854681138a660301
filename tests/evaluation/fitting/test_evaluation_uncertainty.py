from __future__ import annotations

import time

import numpy as np
import pytest

from p4perf.evaluation.fitting.component import derive_model
from p4perf.evaluation.fitting.derivation import FitOptions, derive
from p4perf.evaluation.fitting.tables import model_rows
from p4perf.evaluation.fitting.uncertainty import bootstrap
from p4perf.models import ComponentModel
from p4perf.results.table import Samples


def knee(seed: int, repetitions: int, n: int = 40) -> Samples:
    rng = np.random.default_rng(seed)
    x = np.repeat(np.arange(1.0, n + 1), repetitions)
    truth = np.where(x <= 20, 100.0 + 2.0 * x, 160.0)
    return Samples.from_arrays(x, truth * (1 + 0.01 * rng.standard_normal(len(x))))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("repetitions", "least"), [(9, 85), (1, 80)])
def test_intervals_cover_the_truth(repetitions: int, least: int) -> None:
    inside = tried = 0
    for seed in range(40):
        samples = knee(seed, repetitions)
        fitting = derive(samples.x, samples.medians(), FitOptions(segments=2)).best
        if [p.template.name for p in fitting.segments] != ["poly1", "const"]:
            continue
        found = bootstrap(samples, fitting, seed=seed)
        offset, slope = found.parameters[0]
        tried += 3
        inside += (100.0 in offset) + (2.0 in slope) + (160.0 in found.parameters[1][0])
        assert found.breakpoints[0].low <= fitting.breakpoint_x[0] <= found.breakpoints[0].high
    assert tried >= 60
    assert 100 * inside / tried >= least


def test_seeded_and_fast() -> None:
    samples = knee(1, 10, n=65)
    fitting = derive(samples.x, samples.medians()).best
    began = time.process_time()
    found = bootstrap(samples, fitting)
    assert time.process_time() - began < 4
    assert found == bootstrap(samples, fitting)
    assert found != bootstrap(samples, fitting, seed=2)
    assert len(found.x) == len(found.low) == len(found.high) == 65
    assert (np.array(found.low) <= np.array(found.high)).all()


def test_wider_scatter_wider_intervals() -> None:
    rng = np.random.default_rng(3)
    x = np.repeat(np.arange(1.0, 21.0), 8)
    noise = rng.standard_normal(len(x))
    widths = []
    for scatter in (0.1, 1.0):
        model = derive_model(Samples.from_arrays(x, 50 + 3 * x + scatter * noise), options=FitOptions(segments=1)).model
        assert model.uncertainty is not None
        widths.append(model.uncertainty.parameters[0][1].high - model.uncertainty.parameters[0][1].low)
    assert widths[1] > 5 * widths[0]


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_points(n: int) -> None:
    model = derive_model(Samples.from_arrays(np.arange(1.0, n + 1), np.arange(1.0, n + 1) ** 2 + 5)).model
    assert model.uncertainty is not None
    assert np.isfinite(model.uncertainty.low).all()
    assert ComponentModel.from_json(model.to_json()) == model


def test_all_zero() -> None:
    model = derive_model(Samples.from_arrays(np.arange(10.0), np.zeros(10))).model
    assert model.fitting.segments[0].parameters == (0.0,)
    assert model.estimate([3.0]).high.tolist() == [0.0]


def test_all_templates_can_be_resampled(fitcases) -> None:
    for name in [*fitcases.names("c_"), "d60_27_k2", "d60_00_k2"]:
        _, x, y = fitcases.load(name)
        model = derive_model(Samples.from_arrays(x, y), options=FitOptions(resamples=50)).model
        known = model.uncertainty
        assert known is not None
        for segment, intervals in zip(model.fitting.segments, known.parameters, strict=True):
            assert all(np.isfinite([i.low, i.high]).all() for i in intervals), name
            assert len(intervals) == len(segment.parameters)
        assert ComponentModel.from_json(model.to_json()) == model


def test_table_of_a_model() -> None:
    model = derive_model(knee(2, 5), name="knee", target="t", options=FitOptions(segments=2)).model
    first, second = model_rows(model)
    assert (first.segment, first.start, second.end, first.points + second.points) == (1, 1.0, 40.0, 40)
    assert first.template == "poly1"
    assert first.formula.startswith("y = ")
    assert first.parameters[1].name == "c1"
    assert first.parameters[1].low is not None
    assert "[" in first.parameters[1].text()
    assert first.breakpoint_low is None
    assert second.breakpoint_low is not None
    plain = derive_model(knee(2, 5), options=FitOptions(resamples=0)).model
    assert "[" not in model_rows(plain)[0].parameters[0].text()
    assert model_rows(plain)[0].as_dict()["parameters"][0]["high"] is None
