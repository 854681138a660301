"""Runs that choose their points: on disk, killed, resumed and completed."""

import json
import os
import random
import signal
import subprocess
import time
from datetime import UTC, datetime

import pytest
from support.command import command, environment, p4perf
from support.sampling import sampled

from p4perf.experiment import open_target
from p4perf.experiment.planning import plan_sweep
from p4perf.experiment.recorder import Recorder, Silent
from p4perf.results import Run, RunDirectory

SPEC = ["mat/exact-entries", "--accuracy", "0.5%", "-t", "fake", "-q"]
POINTS = 65
ASKED = {"accuracy": 0.005}
IDENTITY = ("schema_version", "experiment", "target", "testbed", "created")
IDENTITY_TIME = datetime(2026, 11, 27, tzinfo=UTC)


def trials(run):
    """All trials on disk in the order in which they began, without what a clock says: point and number."""
    found = []
    for path in run.glob("points/*/raw.jsonl"):
        lines = [line for line in path.read_bytes().split(b"\n")[:-1] if line]
        found += [(entry["started"], path.parent.name, entry["trial"]["attempt"]) for entry in map(json.loads, lines)]
    return [(point, attempt) for _, point, attempt in sorted(found)]


def the_run(folder):
    (run,) = [p for p in folder.glob("[!.]*") if (p / "manifest.json").exists()]
    return run


def design(run):
    return json.loads((run / "manifest.json").read_text())["design"]


def status(run):
    (row,) = json.loads(p4perf("status", run, "--format", "json").out)["rows"]
    return row


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    done = p4perf("run", *SPEC, "-o", folder)
    assert done.code == 0, done.err
    return the_run(folder)


def test_it_measures_few_points_and_says_how_accurate_they_are(undisturbed):
    row = status(undisturbed)
    assert row["complete"]
    assert row["trials"] == len(trials(undisturbed)) < 3 * POINTS
    assert 0 < row["error"] <= row["accuracy"] == 0.005
    assert row["left_s"] == 0
    again = p4perf("resume", undisturbed)
    assert again.code == 0
    assert "0 trials" in again.err
    assert "--all-points completes the sweep" in again.err


def kill_at_a_random_moment(process, folder, rng):
    """Kill a process whatever it does, or soon after it made a trial; False if it was done before that."""

    def made():
        return sum(len(trials(run)) for run in folder.glob("[!.]*"))

    before, looks = made(), 0
    if before and rng.random() < 0.5:
        time.sleep(rng.uniform(0.0, 1.0))
    else:
        while process.poll() is None and made() == before:
            assert (looks := looks + 1) < 12_000, "the sweep does not advance"
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.1))
    if process.poll() is not None:
        return False
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return True


@pytest.mark.parametrize("most", sampled([5, 50], 5))
def test_killed_at_random_moments_it_measures_the_same(tmp_path, undisturbed, most):
    rng, arguments, cut_off = random.Random(most), ["run", *SPEC, "-o", tmp_path], set()
    for _ in range(most):
        process = subprocess.Popen(
            command(*arguments),
            env=environment(P4PERF_FAKE_SLEEP_S="0.2"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert kill_at_a_random_moment(process, tmp_path, rng), "the sweep was done before it was killed often enough"
        arguments = ["resume", the_run(tmp_path), "-q"]
        cut_off.add(len(trials(the_run(tmp_path))))
    assert len(cut_off) > most / 4, "kills came at different places of the sweep"
    run = the_run(tmp_path)
    final = p4perf("resume", run, "-q")
    assert final.code == 0, final.err
    assert trials(run) == trials(undisturbed)
    models = [json.loads((r / "model.json").read_text())["fitting"] for r in (run, undisturbed)]
    assert models[0] == models[1]
    ours, theirs = design(run), design(undisturbed)
    assert (ours["error"], ours["worst"], ours["done"]) == (theirs["error"], theirs["worst"], True)


def test_every_trial_is_the_one_that_those_before_it_call_for(undisturbed, tmp_path, fakes):
    run = Run.open(undisturbed)
    points = plan_sweep(run.experiment, open_target("fake"), run.node).points
    entries = {(p.key, e["trial"]["attempt"]): e for p in points for e in run.directory.trials(p.key)}
    order = trials(undisturbed)
    new = RunDirectory.create(
        tmp_path,
        experiment_name=run.spec.name,
        target="fake",
        testbed="local",
        resolved_spec=run.experiment.resolved_yaml(),
        manifest={**{k: v for k, v in run.directory.manifest().items() if k not in IDENTITY}, "design": ASKED},
        now=IDENTITY_TIME,
    )
    record = Recorder(run.experiment, points, open_target("fake"), new, Silent())
    for key, attempt in order:
        chosen = record.ledger.next_trial(points)
        assert chosen is not None
        assert chosen.key == key
        record.ledger.add(key, entries[key, attempt])
    assert record.ledger.next_trial(points) is None


def test_the_whole_sweep_can_be_completed(tmp_path):
    spec = ["mat/exact-entries", "--points", "12", "--accuracy", "5%", "-t", "fake", "-o", tmp_path, "-q"]
    assert p4perf("run", *spec).code == 0
    run = the_run(tmp_path)
    chosen = trials(run)
    assert len({point for point, _ in chosen}) < 12
    assert p4perf("resume", run, "--all-points", "-q").code == 0
    complete = trials(run)
    assert complete[: len(chosen)] == chosen
    assert sorted(complete) == sorted((point, n) for point in {p for p, _ in complete} for n in range(3))
    assert len(complete) == 36
    row = status(run)
    assert (row["finished"], row["accuracy"], row["error"]) == (12, None, None)


def test_what_is_no_accuracy_is_refused(tmp_path):
    for text in ("3 percent", "0", "150%", "-1%"):
        result = p4perf("run", "mat/exact-entries", f"--accuracy={text}", "-t", "fake", "-o", tmp_path)
        assert result.code == 2
        assert "for example 5%" in result.err
