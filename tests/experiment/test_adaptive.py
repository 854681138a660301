"""Choosing the next trial: from the trials so far and the seed alone."""

import math
import random
from itertools import pairwise
from statistics import median

import pytest

from p4perf.experiment.adaptive import Chooser, GridPoint, Start, unrepeated, unsettled

GRID = [float(x) for x in range(1, 33)]


def places(grid=GRID, **marked):
    return [GridPoint(f"{x:g}", x, **marked) for x in grid]


def measure(curve, accuracy, *, grid=GRID, noise=0.0, starts=3, seed=0, marked=()):
    """Trials of a sweep until it is done, and the last judgement."""
    drawn = random.Random(seed)
    design = Chooser([GridPoint(f"{x:g}", x, marked=x in marked) for x in grid], accuracy=accuracy, seed=seed)
    trials = []
    while True:
        judgement = design.judge(trials)
        tried = [t.key for t in trials]
        key = judgement.choose({f"{x:g}" for x in grid if tried.count(f"{x:g}") < starts})
        if key is None:
            return trials, judgement
        trials.append(Start(key, curve(float(key)) * (1 + drawn.gauss(0, noise)), 0.5))


def largest_error(judgement, curve, grid=GRID):
    return max(abs(v / curve(x) - 1) for v, x in zip(judgement.values, grid, strict=True))


@pytest.mark.parametrize(
    "curve",
    [lambda x: 100.0, lambda x: 50 + 7 * x, lambda x: 80 + 30 * math.log(x), lambda x: 20 * x**1.7],
    ids=["constant", "linear", "logarithmic", "power"],
)
def test_a_plain_curve_needs_few_points(curve):
    trials, judgement = measure(curve, 0.03)
    assert len(trials) <= len(GRID) * 3 / 8
    assert largest_error(judgement, curve) <= judgement.error <= 0.03


@pytest.mark.parametrize("at", [2.5, 9.5, 16.5, 30.5])
def test_a_step_is_found_to_the_grid(at):
    def curve(x):
        return 100.0 if x < at else 160.0

    trials, judgement = measure(curve, 0.03)
    assert {at - 0.5, at + 0.5} <= {float(t.key) for t in trials}
    assert len({t.key for t in trials}) <= len(GRID) / 2
    assert largest_error(judgement, curve) <= 0.03


@pytest.mark.parametrize("seed", range(5))
def test_a_kink_is_found(seed):
    def curve(x):
        return 100 + 12 * max(0.0, x - 13)

    trials, judgement = measure(curve, 0.03, noise=0.003, seed=seed)
    assert largest_error(judgement, curve) <= judgement.error + 0.003
    assert len(trials) <= len(GRID) * 3 / 4


def test_noise_asks_for_more_starts():
    def trials(noise):
        return median(len(measure(lambda x: 100.0, 0.03, noise=noise, seed=seed)[0]) for seed in range(5))

    assert trials(0.04) > 2 * trials(0.001)


def test_what_cannot_be_reached_is_said():
    trials, judgement = measure(lambda x: 100.0, 0.001, noise=0.05)
    assert len(trials) == 3 * len(GRID)
    assert judgement.error > 0.001
    assert judgement.worst in judgement.keys


def test_the_choice_depends_on_the_trials_and_not_on_their_order():
    trials, _ = measure(lambda x: 100 + x**2, 0.02, noise=0.01)
    design, among = Chooser(places(), accuracy=0.02), {p.key for p in places()}
    for n in range(1, len(trials)):
        mixed = sorted(trials[:n], key=lambda t: t.key)
        assert design.judge(trials[:n]).choose(among) == design.judge(mixed).choose(among) == trials[n].key


def test_ends_and_marks_come_first():
    trials, _ = measure(lambda x: 100.0, 0.03, marked=(7.0, 23.0))
    assert {"1", "32", "7", "23"} <= {t.key for t in trials[:9]}
    assert len({t.key for t in trials[:9]}) == 9, "each place once before one is measured twice"
    assert [t.key for t in trials].count("1") >= 2, "nothing else shows that the first start of an end is bad"


def test_an_end_without_a_value_is_tried_again_at_once_but_not_for_ever():
    design, among = Chooser(places(), accuracy=0.03), {p.key for p in places()}
    trials = [Start("1", 100.0, 0.5)]
    tried = []
    for _ in range(5):
        tried.append(design.judge(trials).choose(among))
        trials.append(Start(tried[-1], None, 0.5))
    assert tried[:2] == ["32", "32"], "with it there is a model"
    assert set(tried) > {"32"}, "it may never have one"


def test_two_starts_that_are_apart_ask_for_a_third():
    design = Chooser(places(), accuracy=0.03)
    trials = [Start(f"{x:g}", 100.0, 0.5) for x in GRID for _ in range(2)]
    trials[20] = Start(trials[20].key, 130.0, 0.5)
    judgement = design.judge(trials)
    assert judgement.worst == trials[20].key == judgement.choose({p.key for p in places()})
    assert judgement.error > 0.1


def test_one_outlier_of_three_starts_says_little():
    design = Chooser(places(), accuracy=0.03)
    trials = [Start(f"{x:g}", 100.0 + number, 0.5) for x in GRID for number in range(3)]
    without = design.judge(trials)
    trials[20] = Start(trials[20].key, 160.0, 0.5)
    assert design.judge(trials).error < 1.5 * without.error
    assert design.judge(trials).values == pytest.approx(without.values, rel=0.01)


def test_starts_that_scatter_in_one_stretch_are_no_outliers():
    def wider(seed):
        drawn = random.Random(seed)
        trials = [
            Start(f"{x:g}", 100 * (1 + drawn.gauss(0, 0.15 if 18 < x < 28 else 0.002)), 0.5)
            for x in GRID
            for _ in "abc"
        ]
        bounds = Chooser(places(), accuracy=0.03).judge(trials).bounds
        return max(bounds[18:27]) / max(bounds[:14])

    assert median(wider(seed) for seed in range(8)) > 4


def test_every_stretch_has_a_second_start_before_a_sweep_is_done():
    design = Chooser(places(), accuracy=0.2)
    trials = [Start(f"{x:g}", 100.0, 0.5) for x in (1.0, *GRID, 32.0)]
    assert design.judge(trials).error <= 0.2
    more = []
    while (key := design.judge(trials).choose({p.key for p in places()})) is not None:
        more.append(float(key))
        trials.append(Start(key, 100.0, 0.5))
    assert 16 <= more[0] <= 17, "the middle is furthest from the ends"
    assert max(b - a for a, b in pairwise(sorted([1.0, *more, 32.0]))) <= 7
    assert len(more) == len(set(more)) <= 8


def test_the_place_furthest_from_a_second_start_is_next():
    once, twice, none = (1.0,), (1.0, 1.0), ()
    assert unrepeated([twice, *[once] * 3, twice]) is None
    assert unrepeated([twice, *[once] * 7, twice]) == 4
    assert unrepeated([twice, once, none, once, once, none, once]) == 6
    assert unrepeated([none, none]) is None


def test_an_expensive_end_is_not_started_twice_without_need():
    grid = [GridPoint(f"{x:g}", x, setup_s=20.0 if x == 32 else 0.0) for x in GRID]
    design = Chooser(grid, accuracy=0.03)
    first = [Start(o.key, 100.0, 20.5 if o.key == "32" else 0.5) for o in design.judge([]).options]
    assert [o.key for o in design.judge(first).due({p.key for p in grid})] == ["1"]


def test_every_word_is_measured():
    words = [GridPoint(name, None) for name in "abc"]
    design, trials = Chooser(words, accuracy=0.03), []
    while (key := design.judge(trials).choose({"a", "b", "c"} - {t.key for t in trials})) is not None:
        trials.append(Start(key, {"a": 1.0, "b": 50.0, "c": 7.0}[key], 0.5))
    assert sorted(t.key for t in trials) == ["a", "b", "c"]
    assert design.judge(trials).values == (1.0, 50.0, 7.0)


def test_a_place_that_cannot_be_measured_holds_nothing_up():
    design = Chooser(places(), accuracy=0.05)
    trials = [Start(f"{x:g}", 100.0, 0.5) for x in GRID if x != 1.0 for _ in range(2)]
    assert math.isinf(design.judge(trials).error)
    assert design.judge(trials, closed=["1"]).error < 0.05


def test_what_is_built_already_comes_before_what_takes_a_build():
    def chosen(built):
        grid = [GridPoint(f"{x:g}", x, program="shared" if (x > 17) == built else f"p{x:g}") for x in GRID]
        drawn = random.Random(1)
        first = [o.key for o in Chooser(grid, accuracy=0.01).judge([]).options] + ["1", "32"]
        trials = [Start(key, 100 * (1 + drawn.gauss(0, 0.03)), 0.5, 60.0) for key in first]
        return float(Chooser(grid, accuracy=0.01).judge(trials).choose({p.key for p in grid} - set(first)))

    assert chosen(True) > 17
    assert chosen(False) <= 17


def test_the_ends_of_the_grid_come_first():
    design, keys = Chooser(places(), accuracy=0.03), {p.key for p in places()}
    assert design.judge([]).open_ends == {"1", "32"}
    assert design.judge([]).choose(keys) in {"1", "32"}
    assert design.judge([Start("1", 100.0, 0.5), Start("32", None, 0.5)]).open_ends == {"32"}
    assert design.judge([], closed=["32"]).open_ends == {"1", "31"}
    words = Chooser([GridPoint(name, None) for name in "abcd"], accuracy=0.03)
    assert words.judge([]).open_ends == {"a", "d"}


def test_a_model_that_too_few_points_allow_asks_for_more():
    x = tuple(float(n) for n in range(0, 68, 4))
    curve = [24.0 if v < 10 else 24.0 + 2 * (v - 10) ** 1.02 for v in x]

    def judged(places):
        return unsettled(x, tuple((curve[n],) if n in places else () for n in range(len(x))))

    few = {0, 1, 2, 3, 4, 5, 8, 11, 13, 16}
    assert judged(few) in set(range(len(x))) - few
    assert judged(range(len(x))) is None


def test_the_gap_of_a_breakpoint_is_closed_to_one_step_of_the_grid():
    x = tuple(float(n) for n in range(40))
    steps = [100.0 if v < 17 else 160.0 for v in x]
    measured = {*range(0, 15, 2), *range(20, 40, 2)}
    while (place := unsettled(x, tuple((steps[n],) if n in measured else () for n in range(len(x))))) is not None:
        assert 14 < place < 20
        measured.add(place)
    assert {16, 17} <= measured
    assert len(measured) < 25


def test_a_plain_line_is_settled():
    x = tuple(float(n) for n in range(40))
    assert unsettled(x, tuple((50 + 7 * v,) if v % 3 == 0 else () for v in x)) is None


def test_a_breakpoint_asks_for_a_trial_however_low_the_bounds_are():
    design = Chooser(places(), accuracy=0.9)
    first = [o.key for o in design.judge([]).options]
    trials = [Start(key, 100.0 if float(key) < 13 else 160.0, 0.5) for key in (*first, "1", "32")]
    judgement = design.judge(trials)
    assert judgement.error <= 0.9
    left, right = max(float(k) for k in first if float(k) < 13), min(float(k) for k in first if float(k) >= 13)
    chosen = judgement.choose({p.key for p in places()} - set(first))
    assert left < float(chosen) < right
    assert judgement.left == 1
