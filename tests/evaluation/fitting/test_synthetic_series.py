from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p4perf.evaluation.fitting.derivation import FitOptions, derive
from p4perf.evaluation.fitting.synthetic import FAMILIES, MIN_POINTS, piecewise_series


@settings(max_examples=100)
@given(
    seed=st.integers(0, 10**9),
    segments=st.integers(1, 6),
    more=st.integers(0, 60),
    noise=st.sampled_from([0.0, 0.01, 0.1]),
    x_scale=st.sampled_from(["lin", "log"]),
)
def test_every_series_is_what_it_says(seed: int, segments: int, more: int, noise: float, x_scale) -> None:
    n = segments * MIN_POINTS + more
    series = piecewise_series(seed, n, segments, noise=noise, x_scale=x_scale)
    assert series.x.shape == series.y.shape == series.truth.shape == (n,)
    assert (np.diff(series.x) > 0).all()
    assert np.isfinite(series.y).all()
    assert series.truth.min() > 1
    assert series.truth.max() < 5000
    assert len(series.families) == segments
    assert len(series.breakpoints) == len(series.sharp) == segments - 1
    assert min(np.diff([-1, *series.breakpoints, n - 1])) >= MIN_POINTS
    assert np.abs(series.y / series.truth - 1).max() <= 6 * noise + 1e-12


def test_the_seed_decides() -> None:
    one, same, other = (piecewise_series(seed, 60, 3) for seed in (1, 1, 2))
    assert one.y.tolist() == same.y.tolist()
    assert one.y.tolist() != other.y.tolist()


@pytest.mark.parametrize("family", FAMILIES)
def test_segments_are_of_their_family(family: str) -> None:
    series = piecewise_series(3, 40, 1, noise=0.0, families=[family])
    best = derive(series.x, series.y, FitOptions(segments=1, kappa=1e-6, kappa_rel=0.0)).best
    assert best.segments[0].template.name == family


def test_sharp_breakpoints_are_found() -> None:
    found = []
    for seed in range(20):
        series = piecewise_series(seed, 40, 2, families=["const", "poly1"], noise=0.005)
        if series.sharp[0]:
            breakpoints = derive(series.x, series.y, FitOptions(segments=2)).best.breakpoints
            found.append(abs(breakpoints[0] - series.breakpoints[0]) <= 1)
    assert len(found) >= 10
    assert np.mean(found) >= 0.9


def test_noise_makes_breakpoints_soft() -> None:
    sharp = [sum(sum(piecewise_series(s, 60, 4, noise=noise).sharp) for s in range(40)) for noise in (0.001, 0.01, 0.1)]
    assert sharp == sorted(sharp, reverse=True)
    assert sharp[0] > 90
    assert sharp[2] < 60
