"""How a campaign spends its budget, by a clock that only work moves."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.campaigns import Listener, measure, new_campaign

from p4perf.experiment import campaign as module
from p4perf.experiment.campaign import OVERTIME, RESERVE_SHARE, Campaign
from p4perf.experiment.sizing import MEASURED
from p4perf.targets.base import NodeFacts

pytestmark = pytest.mark.usefixtures("fakes")

NAMES = ["parser/headers", "mat/exact-entries", "baseline/l2fwd"]
"""Of 11, 65 and 6 points."""

WEIGHTS = {"baseline/l2fwd": math.sqrt(6), "parser/headers": math.sqrt(11), "mat/exact-entries": math.sqrt(65)}
"""Shares go by the square root of the trials; all three have the same number of repetitions."""


class Clock:
    """Time passes when somebody works."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def world(monkeypatch):
    """A clock, what a run takes by experiment, the log of all runs, and the shares of the experiments."""
    clock, takes, log = Clock(), {}, []

    def run(self, cell, earlier, sized, device, limit):
        assert limit.soft_s <= limit.hard_s
        allowed_s = limit.soft_s - clock.now
        used_s = min(takes.get(cell.experiment, allowed_s), allowed_s)
        clock.now += used_s
        log.append((cell.experiment, device.label, allowed_s, cell.repetitions))
        points = len(sized.plans[device.label].points)
        done = used_s >= takes.get(cell.experiment, 0.0)
        return replace(cell, state=MEASURED, points=points, accepted=points, complete=done)

    shares = {}

    def fit(share_s, load, devices, real=module.sizing.fit_into):
        experiment = load(None, None)
        shares[experiment.spec.name] = share_s
        return real(share_s, load, devices)

    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(module.sizing, "fit_into", fit)
    monkeypatch.setattr(module.sizing, "try_out", lambda *_: None)
    monkeypatch.setattr(module, "require_usable", lambda target, testbed: NodeFacts({}))
    monkeypatch.setattr(Campaign, "_run", run)
    return SimpleNamespace(clock=clock, takes=takes, log=log, shares=shares)


def test_small_experiments_come_first_and_leave_what_they_do_not_need(tmp_path, world):
    world.takes.update({"baseline/l2fwd": 10.0, "parser/headers": 20.0, "mat/exact-entries": 30.0})
    campaign = new_campaign(tmp_path, NAMES, ["fake"], budget_s=1000)
    cells = measure(campaign)
    assert [name for name, *_ in world.log] == ["baseline/l2fwd", "parser/headers", "mat/exact-entries"]
    time_s = 1000 * (1 - RESERVE_SHARE)
    first, second, third = WEIGHTS.values()
    assert world.shares["baseline/l2fwd"] == pytest.approx(time_s * first / (first + second + third))
    assert world.shares["parser/headers"] == pytest.approx((time_s - 10) * second / (second + third))
    assert world.shares["mat/exact-entries"] == pytest.approx(time_s - 30)
    assert list(cells) == [(name, "fake") for name in NAMES], "told in the order in which they were asked for"
    assert all(c.complete for c in cells.values())
    assert campaign.content()["spent_s"] == pytest.approx(60)


def test_a_run_may_overrun_its_share_but_never_the_budget(tmp_path, world):
    world.takes.update(dict.fromkeys(NAMES, 1e6))
    begun = world.clock.now
    measure(new_campaign(tmp_path, NAMES, ["fake"], budget_s=1000))
    time_s = 1000 * (1 - RESERVE_SHARE)
    assert world.log[0][2] == pytest.approx(OVERTIME * time_s * WEIGHTS["baseline/l2fwd"] / sum(WEIGHTS.values()))
    assert world.clock.now - begun <= time_s + 1e-6


def test_the_targets_of_an_experiment_share_its_time(tmp_path, world):
    world.takes["baseline/l2fwd"] = 1e6
    measure(new_campaign(tmp_path, ["baseline/l2fwd"], ["fake", "fake-noisy", "fake-wrong"], budget_s=900))
    allowed = [allowed_s for _, _, allowed_s, _ in world.log]
    assert allowed == pytest.approx([900 * (1 - RESERVE_SHARE) / 3] * 3), "the first does not take the time of the last"


def test_what_is_not_reached_is_said_and_a_resume_gets_the_budget_once_more(tmp_path, world):
    world.takes.update({"baseline/l2fwd": 500.0, "parser/headers": 500.0, "mat/exact-entries": 400.0})
    campaign = new_campaign(tmp_path, NAMES, ["fake"], budget_s=600)
    cells = {experiment: cell for (experiment, _), cell in measure(campaign).items()}
    assert cells["baseline/l2fwd"].state == "measured"
    assert not cells["baseline/l2fwd"].complete, "stopped when it had taken its share"
    assert cells["mat/exact-entries"].reason == "not reached" or not cells["mat/exact-entries"].complete
    spent_s = campaign.content()["spent_s"]
    assert spent_s <= 600
    assert campaign.content()["left_s"] == 600
    world.takes.clear()
    world.takes.update(dict.fromkeys(NAMES, 10.0))
    again = measure(campaign)
    assert all(c.good and c.complete for c in again.values())
    assert campaign.content()["spent_s"] > spent_s, "the time of both is told"


def test_nothing_is_begun_without_time(tmp_path, world):
    campaign = new_campaign(tmp_path, NAMES, ["fake", "fake-small"], budget_s=600)
    campaign.update({"left_s": 0.0})
    cells = measure(campaign)
    assert world.log == []
    assert {c.state for c in cells.values()} == {"open"}
    assert {c.reason for c in cells.values()} == {"not reached"}
    assert campaign.content()["left_s"] == 600, "the next resume gets it again"


def test_refusals_take_no_time_and_are_told_without_any(tmp_path, world):
    campaign = new_campaign(tmp_path, ["mat/lpm-tables", "baseline/l2fwd"], ["fake-small"], budget_s=600)
    campaign.update({"left_s": 0.0})
    cells = measure(campaign)
    assert cells["mat/lpm-tables", "fake-small"].state == "refused"
    assert cells["baseline/l2fwd", "fake-small"].state == "open"


def test_without_a_budget_nothing_is_left_out(tmp_path, world):
    world.takes.update(dict.fromkeys(NAMES, 1e7))
    campaign = new_campaign(tmp_path, NAMES, ["fake"])
    cells = measure(campaign, Listener())
    assert [c.points for c in cells.values()] == [11, 65, 6]
    assert all(c.complete and c.repetitions == c.full_repetitions for c in cells.values())
    assert campaign.content()["left_s"] is None


def test_points_of_the_command_line_are_the_whole_sweep(tmp_path, world):
    world.takes["mat/exact-entries"] = 1.0
    (cell,) = measure(new_campaign(tmp_path, ["mat/exact-entries"], ["fake"], points=5)).values()
    assert (cell.points, cell.full_points, cell.thinned) == (5, 5, False)
