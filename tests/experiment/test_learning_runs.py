"""The fixtures of ``p4perf learn``, measured on a fake target."""

import math
import time

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


def test_the_time_that_is_left_of_a_quick_session_falls(measured):
    left_s = []
    measured(limit_s=learning.QUICK_S, reached=lambda what, s: left_s.append(s))
    assert len(left_s) >= 2 * PROGRAMS
    assert left_s[0] < learning.QUICK_S
    assert left_s == sorted(left_s, reverse=True)


def test_a_session_does_not_continue_a_quick_one(measured):
    quick, _ = measured(limit_s=learning.QUICK_S)
    full, told = measured(resume=True)
    assert "continuing" not in told
    assert "to continue: a new one begins" in told
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


def test_what_an_earlier_session_measured_is_not_continued(tmp_path, monkeypatch, fakes):
    """Both sets were measured, then the first one again: the second is not of that session."""
    fakes("fake-adding")
    told = []
    for sets in ((FIXTURE, "composition/components"), (FIXTURE,), (FIXTURE, "composition/components")):
        monkeypatch.setattr(learning, "FIXTURES", sets)
        runs = learning.measure_fixtures(
            "fake-adding", "local", tmp_path, resume=len(told) == 2, told=lambda text: None
        )
        told.append([run.path for run in runs])
    (first, second), (again,), found = told
    assert again != first
    assert found[0] == again
    assert found[1] not in (first, second)


def test_a_set_without_a_trial_does_not_end_a_session(measured):
    """The time of the first set may be over before its first trial, where everything has to be built."""
    empty, _ = measured(limit_s=0.0)
    full, _ = measured()
    assert empty.table.empty
    reference = learning.learn_from_runs([full])
    assert (
        learning.learn_from_runs([empty, full], reference=reference).primitives
        == learning.learn_from_runs([full], reference=reference).primitives
    )


def test_the_first_set_has_time_to_be_built(measured, monkeypatch):
    """Its share would be less: another set has more programs."""
    limits = []
    monkeypatch.setattr(learning, "FIXTURES", (FIXTURE, "composition/components"))
    monkeypatch.setattr(learning, "measure_run", lambda *_, limit, **__: limits.append(limit.until_s) or BROKEN)
    began_s = time.monotonic()
    with pytest.raises(AttributeError):
        measured(limit_s=2 * learning.SET_UP_S)
    assert limits[0] >= began_s + learning.SET_UP_S


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
