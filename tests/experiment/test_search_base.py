"""Trials, goals and limits are checked; searches are opened by name."""

import pytest

from p4perf.errors import MeasurementError, UsageError
from p4perf.experiment.search import (
    PDR_LOSS_RATIO,
    Bounds,
    Flag,
    Goal,
    LoadTrial,
    Search,
    SearchLimits,
    ndr_and_pdr,
    open_search,
)
from p4perf.experiment.search.bisection import Bisection, Overload
from p4perf.experiment.search.mlrsearch import MLRSearch

NAN = float("nan")


def test_packets_that_could_not_be_sent_are_lost():
    trial = LoadTrial(1e6, 0.1, sent=60_000, lost=50_000, duration_s=0.2)
    assert (trial.intended, trial.received, trial.loss_ratio) == (100_000, 50_000, 0.5)
    assert trial.receive_rate_pps == pytest.approx(500_000)


def test_a_generator_may_send_whole_bursts():
    assert LoadTrial(1e6, 0.1, sent=100_032, lost=0, duration_s=0.2).received == 100_032
    assert LoadTrial(1e6, 0.1, sent=99_968, lost=0, duration_s=0.2).loss_ratio == 0
    assert LoadTrial(1e3, 0.1, sent=96, lost=0, duration_s=0.2).loss_ratio == 0


@pytest.mark.parametrize(
    "numbers",
    [
        (1e6, 0.1, 0, 0, 0.1),
        (1e6, 0.1, 100_000, 100_001, 0.1),
        (1e6, 0.1, 100_000, -1, 0.1),
        (1e6, 0.1, -1, 0, 0.1),
        (1e6, 0.1, 100_000, 0, NAN),
        (1e6, 0.1, 100_000, 0, -1),
        (NAN, 0.1, 100_000, 0, 0.1),
        (0, 0.1, 100_000, 0, 0.1),
        (1e6, 0, 100_000, 0, 0.1),
        (1, 0.1, 0, 0, 0.1),
        (1e6, 0.1, 60_000, 39_000, 0.1),
    ],
)
def test_numbers_that_are_none_of_a_trial(numbers):
    with pytest.raises(MeasurementError):
        LoadTrial(*numbers)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"loss_ratio": 1},
        {"loss_ratio": NAN},
        {"exceed_ratio": -0.1},
        {"exceed_ratio": 1},
        {"width": 0},
        {"width": 1},
        {"initial_trial_duration_s": 0},
        {"initial_trial_duration_s": 0.3},
        {"duration_sum_s": 0.1},
        {"duration_sum_s": NAN},
        {"final_trial_duration_s": float("inf"), "duration_sum_s": float("inf")},
    ],
)
def test_goals_that_cannot_be(wrong):
    with pytest.raises(UsageError):
        Goal(**{"name": "ndr", **wrong})


@pytest.mark.parametrize(
    "wrong",
    [{"min_load_pps": 0}, {"min_load_pps": 1e6}, {"max_load_pps": NAN}, {"max_trials": 0}, {"max_duration_s": 0}],
)
def test_limits_that_cannot_be(wrong):
    with pytest.raises(UsageError):
        SearchLimits(**{"min_load_pps": 1, "max_load_pps": 1e6, **wrong})


def test_the_usual_goals():
    ndr, pdr = ndr_and_pdr(0.5, trials_per_load=4, exceed_ratio=0.25, width=0.01)
    assert ndr == Goal("ndr", 0.0, 0.25, 0.01, 0.5, 2.0, 0.5)
    assert pdr == Goal("pdr", PDR_LOSS_RATIO, 0.25, 0.01, 0.5, 2.0, 0.5)
    with pytest.raises(UsageError, match="one trial"):
        ndr_and_pdr(trials_per_load=0)


def test_width_of_bounds():
    assert Bounds("ndr", 99.0, 100.0, 99.0).width == pytest.approx(0.01)
    assert Bounds("ndr", 99.0, None, 99.0, (Flag.AT_MAXIMUM,)).width is None
    assert Bounds("overload", 0.0, 0.0, 0.0).width == 0


@pytest.fixture
def registered(monkeypatch):
    known = {search.name: search for search in (MLRSearch, Bisection, Overload)}
    monkeypatch.setattr("p4perf.plugins.load_plugin", lambda group, name: known[name])


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("search", [MLRSearch, Bisection, Overload])
def test_searches_are_opened_by_name(search):
    assert open_search(search.name) == search()
    assert isinstance(search(), Search)
    assert search.summary


@pytest.mark.usefixtures("registered")
def test_options():
    assert open_search("bisection", midpoint="arithmetic") == Bisection("arithmetic")
    assert open_search("mlrsearch", expansion=2) == MLRSearch(expansion=2)
    with pytest.raises(UsageError, match="no option 'speed'"):
        open_search("mlrsearch", speed=3)
    with pytest.raises(UsageError, match="it has no options"):
        open_search("overload", speed=3)
    with pytest.raises(UsageError, match="midpoint"):
        Bisection(midpoint="harmonic")
    for wrong in ({"preceding_targets": 0}, {"expansion": 1}):
        with pytest.raises(UsageError):
            MLRSearch(**wrong)
