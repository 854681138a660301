"""The cache model against the values that CESim printed, and against what follows from its equations."""

import csv
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.papers.takeya2024.cesim import (
    REVISIONS,
    VARIANTS,
    CacheHierarchy,
    CacheModel,
    fit_cache_model,
    log_error,
)

ROWS = list(csv.DictReader(Path(__file__).with_name("cesim_reference.csv").read_text().splitlines()))
REVISION = {"f06ac39_2024-12-08": "fixed", "6dc794f_2023-02-14": "pre-fix"}
ALPHAS = (0.1, 0.5, 0.9)


def test_every_reference_row():
    assert len(ROWS) == 882
    for row in ROWS:
        model = CacheModel(float(row["alpha"]), variant=row["model"], revision=REVISION[row["revision"]])
        found = float(model.throughput_mpps(float(row["l1_hit_ratio"])))
        assert found == pytest.approx(float(row["throughput_mpps"]), abs=1e-4), row
        beta = 1.0 if model.variant == "beta1" else model.beta
        assert beta == pytest.approx(float(row["beta"]), abs=1e-5)
        assert model.serial_accesses == pytest.approx(float(row["N"]), abs=1e-5)


def test_the_latencies():
    caches = CacheHierarchy()
    assert [caches.l1_ns, caches.l2_ns, caches.l3_ns] == pytest.approx([1.142857, 4.0, 19.428571], abs=1e-6)
    assert caches.memory_total_ns == pytest.approx(72.571429, abs=1e-6)
    assert caches.beyond_l1_ns() == pytest.approx(14.400571, abs=1e-6)
    assert caches.beyond_l1_ns("pre-fix") == pytest.approx(11.977, abs=1e-3)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_all_hits_give_the_best_and_more_hits_are_never_worse(alpha, revision, variant):
    model = CacheModel(alpha, variant=variant, revision=revision)
    assert float(model.throughput_mpps(1.0)) == pytest.approx(172, rel=1e-12)
    curve = model.throughput_mpps(1 - np.logspace(-7, 0, 400)[::-1])
    assert np.all(np.diff(curve) > 0)


@settings(max_examples=60)
@given(
    st.floats(0, 0.99), st.floats(1, 500), st.floats(1, 5), st.floats(0, 1), st.floats(0, 1),
    st.sampled_from(VARIANTS), st.sampled_from(REVISIONS), st.floats(0.01, 1),
)  # fmt: skip
def test_the_inverse_is_the_inverse(alpha, best, clock, r2, r3, variant, revision, share):
    caches = CacheHierarchy(clock_ghz=clock, l2_hit_ratio=r2, l3_hit_ratio=r3)
    serial = (1 - alpha) * 1000 / best / caches.l1_ns
    model = CacheModel(alpha, best, 1.0 + 20 * serial, caches, variant, revision)
    wanted = share * best
    ratio = model.hit_ratio_for(wanted)
    assert 0 <= ratio <= 1
    reached = float(model.throughput_mpps(ratio))
    assert reached == pytest.approx(wanted, rel=1e-6) or (ratio == 0 and reached >= wanted)


@pytest.mark.parametrize(
    ("alpha", "for_100", "for_half", "for_90_percent"),
    [(0.1, 0.999355, 0.999103, 0.999901), (0.5, 0.999642, 0.999502, 0.999945), (0.9, 0.999929, 0.999901, 0.999989)],
)
def test_which_hit_ratio_a_throughput_needs(alpha, for_100, for_half, for_90_percent):
    model = CacheModel(alpha)
    for wanted, ratio in ((100, for_100), (86, for_half), (154.8, for_90_percent)):
        assert model.hit_ratio_for(wanted) == pytest.approx(ratio, abs=6e-7)
    simple = model.with_variant("simple").hit_ratio_for(100)
    assert simple == pytest.approx({0.1: 0.9365, 0.5: 0.8857}.get(alpha, simple), abs=1e-4)
    assert simple < 0.94 if alpha < 0.9 else simple < 0.5


@pytest.mark.parametrize(
    ("alpha", "slope", "simple_slope", "half"),
    [(0.1, 192641, 1951, 8.97e-4), (0.5, 348735, 1084, 4.98e-4), (0.9, 1760518, 216.73, 9.9e-5)],
)
def test_the_tipping_point(alpha, slope, simple_slope, half):
    model = CacheModel(alpha)
    point = model.tipping_point()
    assert point.slope_mpps == pytest.approx(slope, rel=1e-5)
    assert model.with_variant("simple").tipping_point().slope_mpps == pytest.approx(simple_slope, rel=1e-3)
    assert point.half_miss_ratio == pytest.approx(half, rel=2e-3)
    assert point.analytic_miss_ratio == pytest.approx((1 - alpha) / 1026.6, rel=1e-4)
    assert point.analytic_miss_ratio == pytest.approx(point.half_miss_ratio, rel=0.03)
    assert point.knee_miss_ratio == pytest.approx(point.half_miss_ratio, rel=0.2)
    assert point.half_miss_ratio < point.serial_miss_ratio


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("revision", REVISIONS)
def test_the_slope_is_that_of_the_curve(variant, revision):
    model = CacheModel(0.5, variant=variant, revision=revision)
    step = 1e-9
    measured = (172 - float(model.throughput_mpps(1 - step))) / step
    assert model.tipping_point().slope_mpps == pytest.approx(measured, rel=1e-2)


def test_a_model_that_never_falls_to_half_has_no_such_point():
    caches = CacheHierarchy(l2_cycles=4, l3_cycles=4, memory_cycles=4, memory_ns=0, l2_hit_ratio=1)
    point = CacheModel(0.9, hierarchy=caches, variant="simple").tipping_point()
    assert point.half_miss_ratio is None
    assert point.knee_miss_ratio is None
    assert point.analytic_miss_ratio is None


def test_l2_and_l3_matter_only_far_below_the_tipping_point():
    found = {0.999: [], 0.9999: [], 0.9: []}
    for r2 in (0, 0.7, 1):
        for r3 in (0, 0.79, 1):
            model = CacheModel(hierarchy=CacheHierarchy(l2_hit_ratio=r2, l3_hit_ratio=r3))
            for ratio, values in found.items():
                values.append(float(model.throughput_mpps(ratio)))
    limits = {ratio: (round(min(values), 2), round(max(values), 2)) for ratio, values in found.items()}
    assert limits[0.999] == pytest.approx((54.3, 58.0), abs=0.06)
    assert limits[0.9999] == pytest.approx((142.5, 143.1), abs=0.06)
    assert limits[0.9] == pytest.approx((0.57, 3.94), abs=0.01)


def test_fewer_accesses_move_the_tipping_point():
    points = {n: 1 - CacheModel(accesses_per_packet=n).tipping_point().half_miss_ratio for n in (15, 30, 60)}
    assert points == pytest.approx({15: 0.961, 30: 0.9868, 60: 0.9963}, abs=5e-4)
    assert CacheModel(accesses_per_packet=30).beta == pytest.approx(11.8, abs=0.05)


# --- fit


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", ["beta1", "parallelised"])
@pytest.mark.parametrize(("alpha", "beta"), [(0.2, 12.0), (0.5, 64.0), (0.8, 200.0)])
def test_a_fit_finds_what_made_the_data(variant, alpha, beta):
    truth = CacheModel(alpha, variant=variant)
    truth = replace(truth, accesses_per_packet=beta * truth.serial_accesses)
    r = 1 - np.logspace(-6, -0.7, 60)
    found = fit_cache_model(r, truth.throughput_mpps(r), CacheModel(variant=variant))
    assert found.model.alpha == pytest.approx(alpha, abs=5e-3)
    assert found.beta == pytest.approx(beta, rel=0.02)
    assert found.rms_log_error < 1e-3
    assert found.at_bounds == ()


def test_a_fit_is_no_worse_than_what_it_starts_from():
    generator = np.random.default_rng(3)
    r = 1 - np.logspace(-5, -2, 40)
    noisy = CacheModel(0.4).throughput_mpps(r) * np.exp(generator.normal(0, 0.2, r.size))
    found = fit_cache_model(r, noisy, CacheModel(0.4))
    assert found.rms_log_error <= log_error(CacheModel(0.4), r, noisy)
    assert found.factor == pytest.approx(math.exp(found.rms_log_error))
    assert found.n == 40


@pytest.mark.parametrize(
    ("r", "mpps", "message"),
    [
        ([0.9, 1.0], [1, 2], "three pairs"),
        ([0.9, 0.9, 0.9], [1, 2, 3], "two hit ratios"),
        ([0.9, 1.0, 99.0], [1, 2, 3], "hit ratios must be 0 to 1"),
        ([0.9, 1.0, 0.5], [1, 2, 0], "above 0"),
        ([0.9, 1.0, 0.5], [1, 2], "as many"),
    ],
)
def test_data_that_cannot_be_fitted(r, mpps, message):
    with pytest.raises(DataError, match=message):
        fit_cache_model(r, mpps, CacheModel())


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"alpha": 1.0}, "alpha"),
        ({"alpha": -0.1}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"best_mpps": 0}, "best_mpps"),
        ({"best_mpps": math.inf}, "best_mpps"),
        ({"accesses_per_packet": 1.0}, "accesses_per_packet"),
        ({"variant": "other"}, "variant"),
        ({"revision": "other"}, "revision"),
    ],
)
def test_parameters_out_of_bounds(change, key):
    with pytest.raises(UsageError) as caught:
        CacheModel(**change)
    assert caught.value.key == key


@pytest.mark.parametrize("change", [{"clock_ghz": 0}, {"l1_cycles": -1}, {"l2_hit_ratio": 1.1}, {"l2_cycles": 100}])
def test_hierarchies_that_are_none(change):
    with pytest.raises(UsageError):
        CacheHierarchy(**change)


def test_questions_without_an_answer():
    with pytest.raises(UsageError, match="172 Mpps of a hit ratio of 1"):
        CacheModel().hit_ratio_for(173)
    with pytest.raises(UsageError, match=r"99\.9 % is 0\.999"):
        CacheModel().throughput_mpps(99.9)
