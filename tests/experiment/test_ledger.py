"""The ledger: how often a point is tried, when it is given up, and in which order points are measured."""

import math
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.runs import make_run

from p4perf.errors import MeasurementError
from p4perf.experiment.evaluate import states_of
from p4perf.experiment.ledger import MAX_FAILURES, MOST_STARTS, MOVED, ORDINARY_SCATTER, Ledger, disagree, two_states
from p4perf.results import Run
from p4perf.results.table import STARTS_DISAGREE
from p4perf.specs.schema import TrialsSpec
from p4perf.targets.base import MetricValue, TrialSummary
from p4perf.targets.roles import Measures
from p4perf.targets.windows import Undisturbed

CHAIN = 12.0


class Judge(Measures):
    """Stands in for a target: a record says its value, whether it was good, and the gate ratio it saw."""

    def undisturbed(self, record):
        return Undisturbed(record["ratio"], record.get("chain", CHAIN)) if "ratio" in record else None

    def summarise(self, record, gate_ratio):
        if record.get("damaged"):
            raise MeasurementError("damaged")
        limit = record.get("seen", 0.0)
        accepted = record.get("good", True) and (gate_ratio is None or limit <= gate_ratio * 1.15)
        value = MetricValue("cost", record["value"], "cycles", record.get("error"))
        return TrialSummary((value,), accepted, ())


Judge.__abstractmethods__ = frozenset()  # nothing is planned or run


@dataclass(frozen=True)
class Planned:
    key: str


def ledger(**spec):
    return Ledger(Judge(), TrialsSpec.model_validate({"repetitions": 3, "max_attempts": 5, **spec}), "cost")


def trial(value=100.0, **more):
    return {"trial": {}, "record": {"value": value, **more}}


def failure(message="died", *, final=False):
    return {"trial": {}, "failure": {"message": message, "final": final, "exit_code": 4}}


def after(*entries, **spec):
    made = ledger(**spec)
    made.load("p", list(entries))
    return made.status("p")


def test_a_point_needs_its_repetitions():
    assert after().needed == 3
    assert after(trial()).needed == 2
    assert not after(trial(), trial(), trial()).open


def test_a_rejected_trial_is_repeated_up_to_the_limit():
    rejected = trial(good=False)
    assert after(rejected, trial(), trial()).needed == 1
    assert after(*[rejected] * 14).needed == 1
    status = after(*[rejected] * 15)
    assert (status.needed, status.accepted, status.failure, status.open) == (0, 0, None, False)


def test_starts_that_disagree_call_for_more():
    assert after(trial(100), trial(104), trial(109)).needed == 0
    assert after(trial(100), trial(100), trial(120)).needed == 3 * (MOST_STARTS - 1)
    assert after(trial(100), trial(100), trial(120), trial(100)).needed == 3 * (MOST_STARTS - 1) - 1
    assert after(*[trial(100)] * 5, trial(130)).needed == 0


def test_windows_decide_which_starts_disagree():
    values = (100, 100, 106)
    assert after(*[trial(v) for v in values]).needed == 0
    assert after(*[trial(v, error=5.0) for v in values]).needed == 0
    assert after(*[trial(v, error=0.5) for v in values]).needed == 3


def test_starts_that_disagree_have_a_flag():
    def flags(*values):
        made = ledger()
        made.load("p", [trial(v, error=0.5) for v in values] + [trial(500, good=False)])
        return [STARTS_DISAGREE in summary.flags for _, summary in made.trials("p")]

    assert flags(100, 100, 101) == [False] * 4
    assert flags(100, 100, 106) == [True] * 3 + [False]


def starts(generator, states, spread):
    """Medians of 40 windows each and their standard errors, with the ordinary scatter."""
    windows = generator.normal(1, spread, (len(states), 40)) * np.asarray(states, dtype=float)[:, None]
    quartiles = np.percentile(windows, [25, 75], axis=1)
    errors = 1.2533 * (quartiles[1] - quartiles[0]) / 1.349 / np.sqrt(40)
    medians = np.median(windows, axis=1)
    return medians, np.hypot(errors, ORDINARY_SCATTER * medians)


@pytest.mark.parametrize("spread", [0.005, 0.03, 0.06, 0.12])
@pytest.mark.parametrize("number", [3, 6])
def test_starts_of_one_state_seldom_disagree(number, spread):
    generator = np.random.default_rng(1)
    alarms = sum(disagree(*starts(generator, [100] * number, spread)) for _ in range(400))
    assert alarms <= 0.05 * 400


@pytest.mark.parametrize("spread", [0.01, 0.02, 0.04])
@pytest.mark.parametrize("number", [4, 6, 12])
def test_two_states_are_told_from_each_other_and_one_is_left_whole(number: int, spread: float) -> None:
    generator = np.random.default_rng(7)
    slow = np.where(np.arange(number) < number // 2, 1.0, math.exp(12 * spread))
    drawn = [100 * np.exp(generator.normal(0, spread, number)) for _ in range(400)]
    assert sum(two_states(one.tolist()) is not None for one in drawn) <= 0.06 * len(drawn)
    found = [two_states((one * slow).tolist()) for one in drawn]
    right = [each is not None and each[1].size == number - number // 2 for each in found]
    assert sum(right) >= 0.7 * len(drawn)


def test_few_starts_have_no_states() -> None:
    assert two_states([100, 100, 130]) is None
    assert two_states([0.0, 1.0, 2.0, 3.0]) is None


@pytest.mark.parametrize("spread", [0.005, 0.03, 0.05])
@pytest.mark.parametrize("states", [(100, 100, 106), (100, 106, 106), (100, 100, 100, 106, 106, 106)])
def test_starts_of_two_states_disagree(states, spread):
    generator = np.random.default_rng(2)
    alarms = sum(disagree(*starts(generator, states, spread)) for _ in range(400))
    assert alarms >= 0.8 * 400


def test_values_without_errors_say_nothing():
    assert not disagree([1.0], [0.1])
    assert not disagree([1.0, 2.0], [0.0, 0.0])
    assert not disagree([1.0, float("nan")], [0.1, 0.1])


def test_a_wrong_program_is_given_up_at_once():
    status = after(failure("packet 3 differs", final=True))
    assert (status.failure, status.open) == ("packet 3 differs", False)


def test_a_program_that_dies_is_tried_again_and_then_given_up():
    assert after(*[failure()] * MAX_FAILURES).open
    status = after(*[failure()] * (MAX_FAILURES + 1))
    assert (status.failure, status.open) == ("died", False)


def test_a_damaged_record_counts_as_an_attempt_without_a_result():
    status = after(trial(damaged=True))
    assert (status.attempts, status.accepted, status.needed) == (1, 0, 3)


def test_a_less_disturbed_core_makes_earlier_trials_be_judged_again():
    made = ledger()
    made.load("a", [trial(seen=0.4, ratio=0.4)])
    assert made.status("a").accepted == 1
    made.load("b", [])
    made.add("b", trial(seen=0.25, ratio=0.25))
    assert made.gate_ratio() == 0.25
    assert made.status("a").accepted == 0
    assert made.status("b").accepted == 1


def test_the_gate_ratio_is_the_lowest_level():
    made = ledger()
    for ratio in (0.3, 0.5, 0.28):
        made.observe(Undisturbed(ratio, CHAIN))
    made.observe(None)
    assert made.gate_ratio() == 0.28


def test_an_undisturbed_core_is_not_forgotten_beside_a_neighbour():
    made = ledger()
    for n in range(400):
        made.observe(Undisturbed(0.264 if n < 20 else 0.29 * 1.002**n, CHAIN))
    assert made.gate_ratio() == 0.264


def test_a_trial_whose_chains_were_disturbed_is_no_level():
    made = ledger()
    made.load("a", [trial(seen=0.264 + n * 1e-4, ratio=0.264) for n in range(8)])
    made.add("a", trial(seen=0.238, ratio=0.238))
    assert made.gate_ratio() == 0.264
    assert made.status("a").accepted == 9
    made.add("a", trial(seen=0.2385, ratio=0.238))
    assert made.gate_ratio() == 0.238, "seen again and again"


def test_a_gate_ratio_counts_at_the_clock_at_which_it_was_seen():
    """A machine that was slower for a second had another ratio, that no trial reaches when it is as fast as before."""
    made = ledger()
    usual, slower = {"seen": 0.264, "ratio": 0.264, "chain": 9.24}, {"seen": 0.229, "ratio": 0.229, "chain": 10.26}
    made.load("a", [trial(**usual), trial(**slower), trial(**usual)])
    assert made.status("a").accepted == 3
    assert made.gate_ratio() == 0.264
    made.load("b", [trial(**usual | {"seen": 0.31})])
    assert made.status("b").accepted == 0


def order(points, spec, trials=100):
    """The keys in the order in which a ledger asks for them, all accepted."""
    made = ledger(**spec)
    for point in points:
        made.load(point.key, [])
    found = []
    while (point := made.next_trial(points)) is not None and len(found) < trials:
        found.append(point.key)
        made.add(point.key, trial())
    return found


POINTS = [Planned(str(n)) for n in range(10)]


def test_every_point_has_one_trial_before_any_has_two():
    found = order(POINTS, {})
    assert len(found) == 30
    for start in (0, 10, 20):
        assert sorted(found[start : start + 10]) == sorted(p.key for p in POINTS)
    assert found[:10] != found[10:20], "every round has an order of its own"


def test_sequential_order():
    assert order(POINTS, {"order": "sequential"}) == [p.key for p in POINTS] * 3


@pytest.mark.parametrize("order_name", ["random", "sequential"])
@given(cut=st.integers(0, 30), seed=st.integers(0, 1000))
def test_a_resume_goes_on_in_the_same_order(order_name, cut, seed):
    spec = {"seed": seed, "order": order_name}
    whole = order(POINTS, spec)
    made = ledger(**spec)
    for point in POINTS:
        made.load(point.key, [trial()] * whole[:cut].count(point.key))
    found = []
    while (point := made.next_trial(POINTS)) is not None:
        found.append(point.key)
        made.add(point.key, trial())
    assert whole[:cut] + found == whole


def on(testbed, entry):
    return {**entry, "testbed": testbed}


def test_a_point_that_moved_leaves_its_trials_behind():
    made = ledger()
    made.load("p", [on("a", trial(100)), on("a", failure()), on("a", trial(200)), on("b", trial(300))])
    status = made.status("p")
    assert (status.attempts, status.accepted, status.needed, made.testbed("p")) == (1, 1, 2, "b")
    assert [(s.accepted, s.flags) for _, s in made.trials("p") if s] == [(False, (MOVED,))] * 2 + [(True, ())]
    assert made.flags("p") == (MOVED,)
    # It has all its attempts there, and failures of elsewhere do not count.
    made.load("p", [*[on("a", failure())] * MAX_FAILURES, on("b", failure())])
    assert made.status("p").open


def test_a_point_may_return_to_a_testbed():
    made = ledger()
    made.load("p", [on("a", trial()), on("b", trial()), on("a", trial())])
    assert made.status("p").accepted == 2


def test_trials_without_a_testbed_are_of_the_own_one():
    made = Ledger(Judge(), TrialsSpec.model_validate({"repetitions": 3}), "cost", own="a")
    made.load("p", [trial(), on("a", trial())])
    assert (made.status("p").accepted, made.testbed("p")) == (2, "a")


def test_every_testbed_has_a_gate_ratio_of_its_own():
    made = ledger()
    made.load("p", [on("a", trial(seen=0.30, ratio=0.30))])
    made.load("q", [on("b", trial(seen=0.20, ratio=0.20))])
    assert (made.gate_ratio("a"), made.gate_ratio("b"), made.gate_ratio()) == (0.30, 0.20, None)
    assert made.status("p").accepted == made.status("q").accepted == 1
    made.observe(Undisturbed(0.25, CHAIN), "a")
    assert (made.status("p").accepted, made.status("q").accepted) == (0, 1)


def test_all_trials_that_are_needed_at_once():
    """A point as often as it needs some; one round after the other, each in the order of single trials."""
    made = ledger(seed=7)
    points = [Planned(key) for key in "abcd"]
    for point in points:
        made.load(point.key, [])
    together = [p.key for p in made.next_trials(points)]
    alone = []
    while (planned := made.next_trial(points)) is not None:
        alone.append(planned.key)
        made.add(planned.key, trial())
    assert together == alone
    assert made.next_trials(points) == []


def test_only_what_is_open_is_needed_again():
    made = ledger(order="sequential")
    made.load("a", [trial(), trial(), trial(good=False)])
    made.load("b", [trial(), trial(), trial()])
    made.load("c", [failure(final=True)])
    made.load("d", [])
    assert [p.key for p in made.next_trials([Planned(key) for key in "abcd"])] == ["a", "d", "d", "d"]


def test_attempts_have_numbers_of_their_own():
    made = ledger()
    made.load("p", [{**trial(), "trial": {"attempt": number}} for number in (0, 3)])
    assert made.next_attempt("p") == 4
    assert [made.has_attempt("p", number) for number in range(5)] == [True, False, False, True, False]
    made.load("q", [])
    assert made.next_attempt("q") == 0


def test_a_run_names_the_states_of_its_points(tmp_path) -> None:
    path = make_run(tmp_path, lambda entries: 100.0, overrides=(("entries", "[1, 10]"),), starts=6, noise=0.001)
    table = pd.read_parquet(path / "measurements.parquet")
    table.loc[table["repetition"] >= 3, "value"] *= 1.1
    table.loc[table["entries"] == 10, "flags"] = STARTS_DISAGREE
    table.to_parquet(path / "measurements.parquet")
    (said,) = states_of(Run.open(path), "cycles_per_packet")
    assert re.fullmatch(r"entries=10: two states of \w+: (99|100)\S* \(3 starts\) and (109|110)\S* \(3 starts\)", said)
