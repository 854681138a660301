"""kill -9 at any moment: after a resume every point is there once, no trial is lost and none is there twice."""

import json
import os
import random
import signal
import subprocess
import time

import pytest
from support.command import command, environment, p4perf
from support.sampling import sampled

SPEC = [
    "mat/exact-entries",
    "--set",
    "entries={log: [1, 10000], points_per_decade: 9}",
    "--set",
    "trials.repetitions=3",
]
POINTS, REPETITIONS = 37, 3


def journal_lines(run):
    """All trials on disk by point; a cut-off last line does not count."""
    trials = {}
    for path in sorted(run.glob("points/*/raw.jsonl")):
        lines = [line for line in path.read_bytes().split(b"\n")[:-1] if line]
        trials[path.parent.name] = [json.loads(line)["trial"] for line in lines]
    return trials


def start(*arguments):
    return subprocess.Popen(
        command(*arguments),
        env=environment(P4PERF_FAKE_SLEEP_S="0.02"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


@pytest.mark.parametrize("most", sampled([2, 20], 2))
def test_a_sweep_survives_being_killed(tmp_path, most):
    rng = random.Random(20260101)
    process = start("run", *SPEC, "--target", "fake", "-o", tmp_path)
    deadline = time.monotonic() + 60
    while not (found := [p for p in tmp_path.glob("[!.]*") if (p / "manifest.json").exists()]):
        assert time.monotonic() < deadline, "no run directory appeared"
        time.sleep(0.01)
    (run,) = found
    kills, before = 0, {}
    for _ in range(most):
        time.sleep(rng.uniform(0.0, 0.05))
        # Wait until this process has begun to measure, so that every kill hits a sweep at work.
        seen = sum(map(len, journal_lines(run).values()))
        waited = time.monotonic() + 20
        while process.poll() is None and sum(map(len, journal_lines(run).values())) == seen:
            assert time.monotonic() < waited, "the sweep does not advance"
            time.sleep(0.002)
        if process.poll() is not None:
            break
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
        now = journal_lines(run)
        for point, trials in before.items():
            assert now[point][: len(trials)] == trials, "an acknowledged trial was lost or changed"
        before = now
        process = start("resume", run)
    process.wait(timeout=120)
    assert kills >= most
    final = p4perf("resume", run, "--format", "json")
    assert final.code == 0, final.err
    trials = journal_lines(run)
    assert len(trials) == POINTS
    for point, entries in trials.items():
        assert [t["attempt"] for t in entries] == list(range(len(entries))), point
        assert len(entries) == REPETITIONS, point
    assert all((run / "points" / point / "finished.json").exists() for point in trials)
    import pandas as pd

    table = pd.read_parquet(run / "measurements.parquet")
    cycles = table[table["metric"] == "cycles_per_packet"]
    assert len(cycles) == POINTS * REPETITIONS
    assert not cycles.duplicated(["point", "attempt"]).any()


@pytest.mark.thorough
def test_a_complete_run_is_not_measured_again(tmp_path):
    done = p4perf("run", *SPEC, "--points", 5, "--target", "fake", "-o", tmp_path, "--quiet")
    assert done.code == 0, done.err
    (run,) = tmp_path.iterdir()
    before = {p: p.read_bytes() for p in run.glob("points/*/raw.jsonl")}
    again = p4perf("resume", run)
    assert again.code == 0
    assert "0 trials" in again.err
    assert {p: p.read_bytes() for p in run.glob("points/*/raw.jsonl")} == before


@pytest.mark.thorough
def test_the_order_of_points_is_random_and_the_same_for_the_same_seed(tmp_path):
    orders = []
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        options = ["--points", 12, "--set", f"trials.seed={seed}", "--target", "fake", "-o", tmp_path / folder, "-q"]
        assert p4perf("run", *SPEC, *options).code == 0
        (run,) = (tmp_path / folder).iterdir()
        started = []
        for path in run.glob("points/*/raw.jsonl"):
            started += [(json.loads(line)["started"], path.parent.name) for line in path.read_text().splitlines()]
        orders.append([name for _, name in sorted(started)])
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert orders[0][:12] != sorted(orders[0][:12], key=lambda name: int(name.split("-")[1]))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("target", ["fake-noisy", "fake-dying", "fake-wrong", "fake-unbuildable"])
def test_a_sweep_that_cannot_succeed_ends_with_one_message(tmp_path, target):
    result = p4perf("run", *SPEC, "--points", 3, "--target", target, "-o", tmp_path)
    expected = {
        "fake-noisy": (4, "no accepted trial"),
        "fake-dying": (4, "status 139"),
        "fake-wrong": (4, "packet 7 differs at byte 30"),
        "fake-unbuildable": (3, "undeclared"),
    }[target]
    assert result.code == expected[0], result.err
    assert expected[1] in result.err
    assert "Traceback" not in result.err
