"""``gate --interleaved``: two runs measured in turns, with what differs between the sides, and judged pair by pair."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support.command import command, environment, p4perf

from p4perf.errors import ExitCode
from p4perf.results import Run, RunDirectory

REPOSITORY = Path(__file__).parents[2]
SPEC = ("demo/exact-entries", "--points", 3)


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def gated(tmp_path, *arguments, code=0, **env):
    done = p4perf("gate", "--interleaved", *arguments, "-o", tmp_path / "runs", "--format", "json", "-q", **env)
    assert done.code == code, done.err + done.out
    return json.loads(done.out), done.err


def refused(*arguments):
    done = p4perf("gate", *arguments)
    assert (done.code, done.out) == (ExitCode.USAGE, ""), done.err
    assert done.err.count("error: ") == 1
    return done.err


def journal(path):
    run = RunDirectory.open(path)
    return [
        (entry["started"], entry["trial"]["attempt"], point) for point in run.points() for entry in run.trials(point)
    ]


def test_the_same_program_in_turns_is_the_same(tmp_path):
    said, err = gated(tmp_path, *SPEC, "-t", "fake", "--pairs", 4)
    (row,) = said["rows"]
    assert (said["verdict"], row["verdict"], row["points"], row["starts"]) == ("passed", "same", 3, 4)
    assert [drift["basis"] for drift in said["drifts"]] == ["pairs"]
    assert "no drift between runs" in err
    runs = sorted((tmp_path / "runs").iterdir())
    assert [Run.open(path).directory.state().complete for path in runs] == [True, True]
    for command_ in ("show", "compare"):
        assert p4perf(command_, *(runs if command_ == "compare" else runs[:1]), cwd=tmp_path).code == 0


def test_both_starts_of_a_pair_are_neighbours_and_take_turns(tmp_path):
    gated(tmp_path, *SPEC, "-t", "fake", "--pairs", 4)
    every = []
    for path in (tmp_path / "runs").iterdir():
        side = RunDirectory.open(path).manifest()["interleaved"]["side"]
        every += [(*each, side) for each in journal(path)]
    every.sort()
    assert len(every) == 2 * 3 * 4
    first = {}
    for one, other in zip(every[::2], every[1::2], strict=True):
        assert (one[1:3], {one[3], other[3]}) == (other[1:3], {"baseline", "new"})
        first.setdefault(one[2], []).append(one[3])
    assert all(sides in (["baseline", "new"] * 2, ["new", "baseline"] * 2) for sides in first.values())


def test_an_environment_of_the_baseline_is_another_side(tmp_path):
    sides = (*SPEC, "-t", "fake-environment")
    said, _ = gated(tmp_path, *sides, "--baseline-env", "P4PERF_FAKE_CYCLES=90", code=ExitCode.VERDICT_FAILED)
    (row,) = said["rows"]
    assert (row["verdict"], row["ratio"]) == ("slower", pytest.approx(100 / 90))
    said, _ = gated(tmp_path, *sides, "--baseline-env", "P4PERF_FAKE_CYCLES=110")
    assert said["rows"][0]["verdict"] == "faster"


def test_another_target_of_the_baseline_is_another_side(tmp_path):
    said, _ = gated(
        tmp_path, *SPEC, "-t", "fake", "--baseline-target", "fake-adding", code=ExitCode.VERDICT_FAILED
    )  # fmt: skip
    (row,) = said["rows"]
    assert (row["target"], row["verdict"], row["regression"]) == ("fake", "slower", True)
    runs = sorted((tmp_path / "runs").iterdir(), key=lambda path: "adding" not in path.name)
    again = p4perf("gate", "--baseline", *runs, "--format", "json")
    assert (again.code, json.loads(again.out)["rows"][0]["ratio"]) == (1, row["ratio"])


def test_changes_of_the_spec_are_a_side(tmp_path):
    said, err = gated(tmp_path, *SPEC, "-t", "fake", "--baseline-set", "traffic.frame_size=128", "--pairs", 2)
    assert said["rows"][0]["verdict"] == "same"
    assert "traffic.frame_size" in err


def test_another_tree_generates_the_baseline(tmp_path):
    said, _ = gated(tmp_path, *SPEC, "-t", "fake", "--baseline-tree", REPOSITORY, "--pairs", 2)
    assert said["rows"][0]["verdict"] == "same"
    assert "holds no p4perf" in refused("--interleaved", *SPEC, "-t", "fake", "--baseline-tree", tmp_path)


def test_without_a_verdict_there_are_more_pairs(tmp_path):
    """Of the default number, up to twice as many; of a number that was asked for, no more."""
    # Costs of the stand-in depend on the seed.
    narrow = (*SPEC, "-t", "fake", "--margin", "0.2%", "--baseline-set", "trials.seed=5")
    found, _ = gated(tmp_path / "default", *narrow, code=ExitCode.NO_VERDICT)
    assert (found["rows"][0]["starts"], found["rows"][0]["baseline_starts"]) == (12, 12)
    asked, _ = gated(tmp_path / "asked", *narrow, "--pairs", 6, code=ExitCode.NO_VERDICT)
    assert asked["rows"][0]["starts"] == 6
    assert found["rows"][0]["detectable"] < asked["rows"][0]["detectable"]
    plain, _ = gated(tmp_path / "plain", *SPEC, "-t", "fake")
    assert plain["rows"][0]["starts"] == 6


def test_an_interrupted_gate_is_resumed_in_turns(tmp_path):
    words = command("gate", "--interleaved", *SPEC, "-t", "fake", "--pairs", 5, "-o", tmp_path / "runs")
    process = subprocess.Popen(
        words, env=environment(P4PERF_FAKE_SLEEP_S="0.2"), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    until = time.monotonic() + 60
    while time.monotonic() < until and len(list((tmp_path / "runs").glob("*/points/*/raw.jsonl"))) < 4:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "Continue with: p4perf resume" in err
    runs = sorted((tmp_path / "runs").iterdir())
    assert not any(RunDirectory.open(path).state().complete for path in runs)
    done = p4perf("resume", runs[0])
    assert done.code == 0, done.err
    assert "judge them: p4perf gate --baseline" in done.err
    said = json.loads(p4perf("gate", "--baseline", *runs, "--format", "json").out)
    assert (said["rows"][0]["verdict"], said["drifts"][0]["basis"]) == ("same", "pairs")
    attempts = [{(attempt, point) for _, attempt, point in journal(path)} for path in runs]
    assert len(attempts[0] & attempts[1]) == 3 * 5


def _sides(path):
    return json.loads((path / "manifest.json").read_text())["interleaved"]


def test_environments_of_strangers_are_not_taken(tmp_path):
    sides = (*SPEC, "-t", "fake-environment", "--baseline-env", "P4PERF_FAKE_CYCLES=100", "--pairs", 2)
    gated(tmp_path, *sides)
    runs = list((tmp_path / "runs").iterdir())
    assert p4perf("resume", runs[0]).code == 0
    (manifest,) = [path / "manifest.json" for path in runs if _sides(path)["side"] == "baseline"]
    begun = manifest.read_text()
    for change in ({"environment": {"CC": "touch stranger"}}, {"tree": "evil"}, {"pair": "../evil"}):
        known = json.loads(begun)
        known["interleaved"] |= change
        manifest.write_text(json.dumps(known))
        done = p4perf("resume", manifest.parent, cwd=tmp_path)
        assert done.code != 0
        assert "was begun elsewhere" in done.err
    assert not (tmp_path / "stranger").exists()


def test_a_lost_partner_cannot_be_resumed(tmp_path):
    gated(tmp_path, *SPEC, "-t", "fake", "--pairs", 2)
    one, other = sorted((tmp_path / "runs").iterdir())
    other.rename(tmp_path / "elsewhere")
    done = p4perf("resume", one)
    assert done.code != 0
    assert "not beside it" in done.err


@pytest.mark.parametrize(("arguments", "message"), [
    (("--interleaved",), "nothing to compare"),
    (("--interleaved", "demo/exact-entries", "--drift", "1%"), "share their drift"),
    (("--interleaved", "demo/exact-entries", "--baseline-env", "CC"), "expected NAME=VALUE"),
    (("--interleaved", "a", "b", "--baseline", "c"), "one spec is measured in turns"),
    (("runs/a", "--baseline", "runs/b", "--pairs", "3"), "--pairs: only with --interleaved"),
    (("runs/a",), "there is no --baseline"),
    (("runs/a", "--baseline", "runs/b", "--drift", "3"), "expected a share"),
    (("runs/a", "--history"), "not with --history"),
])  # fmt: skip
def test_mistakes_are_told(arguments, message):
    assert message in refused(*arguments)


def test_sides_without_a_common_point_are_refused(tmp_path):
    err = refused(
        "--interleaved", "demo/exact-entries", "-t", "fake", "-o", tmp_path, "--set", "entries=[10, 20]",
        "--baseline-set", "entries=[30]",
    )  # fmt: skip
    assert "no point in common" in err
    assert list(tmp_path.glob("*exact*")) == []


def test_a_side_that_is_refused_leaves_nothing_behind(tmp_path):
    done = p4perf("gate", "--interleaved", *SPEC, "-t", "fake-absent", "--baseline-target", "fake", "-o", tmp_path)
    assert done.code == ExitCode.UNAVAILABLE
    assert "flux capacitor" in done.err
    assert list(tmp_path.glob("*exact*")) == []


def test_failures_are_told(tmp_path):
    done = p4perf("gate", "--interleaved", *SPEC, "-t", "fake-dying", "--baseline-target", "fake", "-o", tmp_path)
    assert done.code == ExitCode.INVALID_MEASUREMENT
    assert done.err.count("error: ") == 1


def test_starts_that_are_never_accepted_are_no_verdict(tmp_path):
    sides = ("-t", "fake-noisy", "--baseline-target", "fake", "--set", "trials.max_attempts=1", "--pairs", 2)
    said, err = gated(tmp_path, *SPEC, *sides, code=ExitCode.NO_VERDICT)
    assert "has no accepted trial" in said["rows"][0]["reason"]
    assert "has no accepted trial: " in err
