"""The fixtures of ``p4perf learn``, measured on a fake target."""

import math

import pytest

from p4perf.experiment import learning
from p4perf.results.names import RunSummary

FIXTURE, PROGRAMS, STARTS = "composition/context", 14, 5
BROKEN = None
"""A plan with which nothing is measured."""


@pytest.fixture
def measured(tmp_path, monkeypatch, fakes):
    """Measures one fixture; the run, and what is said."""
    fakes("fake-adding")
    monkeypatch.setattr(learning, "FIXTURES", (FIXTURE,))

    def measure(**options):
        told = []
        (run,) = learning.measure_fixtures("fake-adding", "local", tmp_path, told=told.append, **options)
        return run, "\n".join(told)

    return measure


def test_a_quick_session_starts_a_program_until_its_cost_is_known(measured):
    quick, _ = measured(limit_s=learning.QUICK_S)
    assert quick.directory.state().complete
    assert len(quick.directory.state().finished) == PROGRAMS
    assert RunSummary.of(quick).state == "finished to 2 %"
    assert quick.directory.state().trials == 2 * PROGRAMS, "all starts agree to a hundredth of a cycle"


def test_a_session_does_not_continue_a_quick_one(measured):
    quick, _ = measured(limit_s=learning.QUICK_S)
    full, told = measured(resume=True)
    assert "continuing" not in told
    assert full.path != quick.path
    assert full.directory.state().trials == STARTS * PROGRAMS
    again, told = measured(limit_s=learning.QUICK_S, resume=True)
    assert "continuing" in told
    assert again.path == full.path, "it has what a quick one needs"


def test_a_quick_session_ends_in_time_and_can_be_continued(measured):
    late, told = measured(limit_s=0.0)
    assert late.directory.state().trials == 0
    assert "its time was over before all programs were known to 2%" in told
    again, told = measured(limit_s=learning.QUICK_S, resume=True)
    assert again.path == late.path
    assert again.directory.state().complete
    assert "its time was over" not in told


def test_less_time_leaves_out_composed_programs(measured, monkeypatch):
    chosen = []
    monkeypatch.setattr(learning, "FIXTURES", ("composition/functions", "composition/constructs", FIXTURE))
    monkeypatch.setattr(learning, "SHORT", 1)
    monkeypatch.setattr(learning, "QUICK", 2)
    monkeypatch.setattr(learning, "plan_sweep", lambda experiment, *_: chosen.append(experiment.spec.name) or BROKEN)
    for limit_s in (1.0, learning.QUICK_S, math.inf):
        with pytest.raises(AttributeError):
            measured(limit_s=limit_s)
        chosen.append("end")
    assert chosen == [
        *("composition/functions", "end"),
        *("composition/functions", "composition/constructs", "end"),
        *("composition/functions", "composition/constructs", FIXTURE, "end"),
    ]
