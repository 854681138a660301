"""Points that fail name their generated files, and the sweep goes on."""

import pytest
from support.campaigns import specs

from p4perf.errors import BuildError, MeasurementError
from p4perf.experiment import new_run, open_testbed, resume_run
from p4perf.experiment.conductor import Conductor
from p4perf.specs import load_experiment

SPEC = "{name: my/tables, extends: mat/exact-entries, sweep: {entries: [10, 500, 5000]}, trials: {repetitions: 2}}"


@pytest.fixture
def swept(tmp_path, fakes):
    """A run of the target that computes nonsense at 500 entries and does not compile at 5000."""
    (path,) = specs(tmp_path, SPEC)
    target, testbed = fakes("fake-partly")(), open_testbed("local")
    experiment = load_experiment(path)
    run, plan = new_run(experiment, target, testbed, tmp_path / "runs")
    return run, plan, Conductor(experiment, plan.points, target, testbed, run).measure()


def test_the_sweep_goes_on(swept):
    run, plan, outcome = swept
    assert (outcome.points, outcome.complete, outcome.starved) == (3, 1, ())
    assert [label for label, _ in outcome.failed] == ["entries=500", "entries=5000"]
    assert run.state().complete, "a resume would not try again"
    attempts = {p.label: len(run.trials(p.key)) for p in plan.points}
    assert attempts == {"entries=10": 2, "entries=500": 1, "entries=5000": 1}


def test_a_failure_names_files_that_are_there(swept):
    run, plan, outcome = swept
    for planned, (_, reason) in zip(plan.points[1:], outcome.failed, strict=True):
        folder = run.path / "points" / planned.key
        assert f"(generated files: {folder})" in reason
        assert (folder / "a.c").read_text() == planned.plan.build.files["a.c"]
    (_, wrong), (_, unbuilt) = outcome.failed
    assert wrong.startswith("verify: packet 7 differs at byte 30")
    assert unbuilt.startswith("the build failed: ")


def test_what_the_compiler_said_is_beside_them(swept):
    run, plan, _ = swept
    log = (run.path / "points" / plan.points[2].key / "build.log").read_text()
    assert log.startswith("$ cc a.c -o a\n")
    assert "undeclared" in log
    assert not (run.path / "points" / plan.points[1].key / "build.log").exists()


@pytest.mark.thorough
def test_a_resume_tells_the_same(swept):
    run, _, outcome = swept
    _, again = resume_run(run.path)
    assert (again.trials, again.failed) == (0, outcome.failed)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("entries", "kind", "said"),
    [("[500, 600]", MeasurementError, "packet 7 differs"), ("[5000, 6000]", BuildError, "undeclared")],
)
def test_nothing_that_can_be_measured_is_an_error_that_names_the_files(tmp_path, fakes, entries, kind, said):
    (path,) = specs(tmp_path, SPEC.replace("[10, 500, 5000]", entries))
    target, testbed = fakes("fake-partly")(), open_testbed("local")
    experiment = load_experiment(path)
    run, plan = new_run(experiment, target, testbed, tmp_path / "runs")
    with pytest.raises(kind, match=said) as caught:
        Conductor(experiment, plan.points, target, testbed, run).measure()
    assert str(run.path / "points" / plan.points[0].key) in caught.value.message


def test_refused_points_are_in_the_manifest(tmp_path, fakes):
    (path,) = specs(tmp_path, SPEC)
    run, plan = new_run(load_experiment(path), fakes("fake-small")(), open_testbed("local"), tmp_path / "runs")
    manifest = run.manifest()
    assert manifest["refused"] == [{"values": dict(r.point.values), "reason": r.reason} for r in plan.refused]
    assert [r["values"] for r in manifest["refused"]] == [{"entries": 500}, {"entries": 5000}]
    assert manifest["planned_points"] == [plan.points[0].key]
