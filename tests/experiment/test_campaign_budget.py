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
"""Of 11, 65 and 6 points; every one begins with its 2 ends."""


class Clock:
    """Time passes when somebody works."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def world(monkeypatch):
    """A clock, and a log of all runs.

    By experiment: ``first`` seconds for the first points, ``error`` after them, halved in ``half`` seconds; a cell is
    complete below an error of 1 %. Those with ``model`` seconds have only their ends first, and no error before these.
    """
    clock, log = Clock(), []
    first, error, half, model = {}, {}, {}, {}

    def run(self, cell, earlier, planned, device, limit):
        name = cell.experiment
        begun = earlier is None or earlier.error is None
        allowed_s = limit.until_s - clock.now
        log.append((name, device.label, "first" if begun else "more", allowed_s))
        points = len(planned.plans[device.label].points)
        done = replace(
            cell, state=MEASURED, run="runs/one", points=points, accepted=points, complete=math.isinf(allowed_s)
        )
        if begun:
            needed_s = first.get(name, 1.0)
            clock.now += min(needed_s, allowed_s)
            if needed_s > allowed_s:
                return replace(done, error=None)
            if name in model and earlier is None:
                first[name] = model[name]
                return replace(done, trials=1, error=None, wall_s=needed_s)
            done = earlier = replace(done, trials=1, error=error.get(name, 0.5))
            if name not in model:
                return done
            allowed_s -= needed_s
        steps = max(0.0, math.log2(earlier.error / max(limit.error, 0.01)))
        used_s = min(allowed_s, steps * half.get(name, 1.0))
        clock.now += used_s
        left = earlier.error / 2 ** (used_s / half.get(name, 1.0))
        return replace(done, trials=earlier.trials + 1, error=left, complete=left <= 0.0101)

    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(module, "require_usable", lambda target, testbed: NodeFacts({}))
    monkeypatch.setattr(Campaign, "_run", run)
    planned = Campaign._planned
    monkeypatch.setattr(Campaign, "_planned", lambda self, name: planned(_unbegun(self), name))
    return SimpleNamespace(clock=clock, log=log, first=first, error=error, half=half, model=model)


def _unbegun(campaign):
    """The campaign, whose runs exist on paper only."""
    return SimpleNamespace(
        _cells={}, _devices=campaign._devices, _load=campaign._load, _waits=campaign._waits, _folder=campaign._folder
    )


def test_every_cell_gets_its_first_points_before_one_gets_more(tmp_path, world):
    cells = measure(new_campaign(tmp_path, NAMES, ["fake", "fake-noisy"], budget_s=100))
    kinds = [kind for _, _, kind, _ in world.log]
    assert kinds[:6] == ["first"] * 6
    assert set(kinds[6:]) == {"more"}
    assert world.log[0][0] == "baseline/l2fwd", "small experiments come first"
    assert [label for _, label, _, _ in world.log[:6]] == ["fake", "fake-noisy"] * 3
    assert list(cells) == [(name, target) for name in NAMES for target in ("fake", "fake-noisy")], (
        "as they were asked for"
    )
    assert all(c.complete for c in cells.values())


def test_no_cell_takes_the_time_of_the_others(tmp_path, world):
    world.first.update(dict.fromkeys(NAMES, 1e6))
    begun = world.clock.now
    campaign = new_campaign(tmp_path, NAMES, ["fake"], budget_s=1000)
    measure(campaign)
    time_s = 1000 * (1 - RESERVE_SHARE)
    assert world.log[0][3] == pytest.approx(OVERTIME * time_s / 3)
    assert world.clock.now - begun <= time_s + 1e-6
    assert campaign.content()["spent_s"] <= 1000


def test_the_largest_error_gets_the_time(tmp_path, world):
    world.error.update({"baseline/l2fwd": 0.02, "parser/headers": 0.04, "mat/exact-entries": 0.64})
    world.half.update(dict.fromkeys(NAMES, 2.0))
    cells = measure(new_campaign(tmp_path, NAMES, ["fake"], budget_s=20))
    more = [name for name, _, kind, _ in world.log if kind == "more"]
    assert more[:2] == ["mat/exact-entries", "parser/headers"], "each until another one is the largest"
    errors = [c.error for c in cells.values()]
    assert max(errors) < 0.02
    assert max(errors) < 2.1 * min(errors)


def test_a_cell_that_came_to_no_model_is_tried_first(tmp_path, world):
    world.first["baseline/l2fwd"] = 30.0
    measure(new_campaign(tmp_path, NAMES, ["fake"], budget_s=100 / 6))
    more = [name for name, _, kind, _ in world.log[3:]]
    assert more[0] == "baseline/l2fwd"


def test_every_sweep_has_a_model_before_one_gets_more(tmp_path, world):
    """The first one would take all of the time for an error that those without a model do not have."""
    world.model.update(dict.fromkeys(NAMES, 2.0))
    world.first["baseline/l2fwd"] = 1.5
    world.half.update(dict.fromkeys(NAMES, 50.0))
    begun = world.clock.now
    cells = measure(new_campaign(tmp_path, NAMES, ["fake"], budget_s=14))
    second = [name for name, _, _, _ in world.log[3:6]]
    assert second == ["parser/headers", "mat/exact-entries", "baseline/l2fwd"], "the cheapest first"
    assert all(c.error is not None for c in cells.values())
    assert world.clock.now - begun == pytest.approx(14 * (1 - RESERVE_SHARE)), "nothing is left over"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("after", range(1, 12))
def test_an_interrupted_campaign_decides_as_one_that_was_not(tmp_path, world, after):
    world.error.update({"baseline/l2fwd": 0.02, "parser/headers": 0.04, "mat/exact-entries": 0.64})
    world.half.update(dict.fromkeys(NAMES, 2.0))
    whole = measure(new_campaign(tmp_path / "whole", NAMES, ["fake", "fake-noisy"], budget_s=40))
    wanted, world.log[:] = list(world.log), []
    campaign = new_campaign(tmp_path / "interrupted", NAMES, ["fake", "fake-noisy"], budget_s=40)
    with pytest.raises(KeyboardInterrupt):
        measure(campaign, Listener(interrupt_after=after))
    assert len(world.log) == after
    assert measure(campaign) == whole
    assert [entry[:3] for entry in world.log] == [entry[:3] for entry in wanted]
    assert [entry[3] for entry in world.log] == pytest.approx([entry[3] for entry in wanted], abs=0.01)


def test_what_is_left_continues_with_the_budget_once_more(tmp_path, world):
    world.half.update(dict.fromkeys(NAMES, 50.0))
    campaign = new_campaign(tmp_path, NAMES, ["fake"], budget_s=60)
    before = measure(campaign)
    assert not any(c.complete for c in before.values())
    assert campaign.content()["left_s"] == 60
    spent_s = campaign.content()["spent_s"]
    assert spent_s <= 60
    after = measure(campaign)
    assert all(after[key].error <= before[key].error for key in before)
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
    campaign = new_campaign(tmp_path, NAMES, ["fake"])
    cells = measure(campaign, Listener())
    assert [c.points for c in cells.values()] == [11, 65, 6]
    assert all(c.complete and c.repetitions == 3 for c in cells.values())
    assert campaign.content()["left_s"] is None


def test_points_of_the_command_line_are_the_whole_sweep(tmp_path, world):
    (cell,) = measure(new_campaign(tmp_path, ["mat/exact-entries"], ["fake"], points=5)).values()
    assert (cell.points, cell.full_points, cell.thinned) == (5, 5, False)


@pytest.mark.parametrize(("budget_s", "trial_ms"), [(None, 200.0), (5.0, 50.0), (600.0, 100.0)])
def test_with_little_time_throughput_is_searched_with_shorter_trials(tmp_path, budget_s, trial_ms):
    names = ["load/rate", "baseline/l2fwd"]
    campaign = Campaign(new_campaign(tmp_path, names, ["fake"], budget_s=budget_s), Listener())
    assert campaign._load("load/rate").spec.load.trial_ms == trial_ms
