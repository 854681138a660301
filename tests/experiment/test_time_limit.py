"""A run that has no more time: the first trial of every point is still begun, unless it is far too late."""

import time

import pytest
from support.campaigns import HEADERS, Listener, new_campaign, specs

from p4perf.experiment import campaign as module
from p4perf.experiment import new_run, open_testbed
from p4perf.experiment.campaign import Campaign
from p4perf.experiment.conductor import Conductor, TimeLimit
from p4perf.specs import load_experiment


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("left_s", "trials"), [(1e6, 9), (-1, 0)])
def test_trials_of_a_run(tmp_path, fakes, left_s, trials):
    experiment = load_experiment(*specs(tmp_path, HEADERS))
    target, testbed = fakes("fake")(), open_testbed("local")
    run, plan = new_run(experiment, target, testbed, tmp_path / "runs")
    limit = TimeLimit(time.monotonic() + left_s)
    outcome = Conductor(experiment, plan.points, target, testbed, run, limit=limit).measure()
    assert outcome.trials == trials
    assert [len(run.trials(p.key)) for p in plan.points] == [trials / 3] * 3
    assert run.state().complete == (trials == 9)


def test_without_a_limit_everything_is_measured():
    assert not TimeLimit().over(None)


@pytest.mark.thorough
@pytest.mark.usefixtures("fakes")
def test_a_run_that_came_to_no_trial_stays_open(tmp_path, monkeypatch):
    campaign = new_campaign(tmp_path, specs(tmp_path, HEADERS), ["fake"], budget_s=3600)
    concluded = []
    monkeypatch.setattr(module, "evaluate_run", lambda run, plots: concluded.append(run))
    with monkeypatch.context() as patch:
        patch.setattr(module, "TimeLimit", lambda *_, **__: TimeLimit(0.0))
        (cell,) = Campaign(campaign, Listener()).measure()
    assert (cell.state, cell.complete, cell.accepted) == ("open", False, 0)
    assert cell.reason == "stopped before its end"
    assert concluded == [], "there is nothing to derive a model from"
    (after,) = Campaign(campaign, Listener()).measure()
    assert (after.state, after.complete, after.run) == ("measured", True, cell.run)
    assert len(concluded) == 1
