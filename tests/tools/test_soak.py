"""Kills at random moments: some here, by fixed seeds; as many as wanted with make soak."""

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KINDS = ["sweep", "campaign", "reproduce", "report", "pack", "import", "generate"]


@pytest.fixture(scope="module")
def soak():
    path = ROOT / "tools" / "soak.py"
    spec = importlib.util.spec_from_file_location("soak", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["soak"] = module
    spec.loader.exec_module(module)
    return module


def kinds(names):
    return [word for name in names for word in ("--kind", name)]


@pytest.mark.thorough
def test_nothing_is_lost_doubled_or_left(soak, tmp_path, capsys):
    record = tmp_path / "soak.jsonl"
    arguments = ["4", *kinds(KINDS), "--begin", "11", "--record", str(record)]
    code = soak.main(arguments)
    report = capsys.readouterr().out
    assert code == 0, report
    rows = {line[:16].strip(): line[16:].split() for line in report.splitlines()[1:]}
    assert set(rows) == set(KINDS)
    assert all(int(row[1]) >= 1 for row in rows.values()), report
    assert int(rows["sweep"][1]) >= 4
    assert soak.main(arguments) == 0, "what is on record is not repeated"
    assert capsys.readouterr().out == report


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["learn", "dask client", "dask worker", "dask scheduler", "netns"])
@pytest.mark.parametrize("seed", [1, 2])
def test_of_kinds_that_take_longer(soak, kind, seed, capsys):
    if kind.startswith("dask"):
        pytest.importorskip("distributed")
    if kind == "netns" and os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    assert soak.main(["20", "--kind", kind, "--begin", str(seed)]) == 0, capsys.readouterr().out


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["ssh connection", "ssh process", "ssh node"])
def test_of_a_node(soak, kind, capsys):
    if reason := soak.why_not():
        pytest.skip(reason)
    assert soak.main(["20", "--kind", kind]) == 0, capsys.readouterr().out


class TestJudgement:
    """What is lost, there twice, different or left is found."""

    TRIALS = tuple(({"repetition": n, "attempt": n}, {"cycles": 7 + n}, None) for n in range(3))

    @pytest.fixture
    def judged(self, soak):
        whole = soak.Result(
            {"out/r--20260101T000000/points/a/raw.jsonl": list(self.TRIALS)}, {"out/r/model.json": "1", "out/r/m": ""}
        )

        def judge(**changes):
            episode = soak.Episode("sweep", 1)
            soak.judge(episode, soak.KINDS["sweep"], whole, dataclasses.replace(whole, **changes))
            return set(episode.findings())

        return judge

    def test_the_same_is_good(self, judged):
        path = "out/r--20270202T000000/points/a/raw.jsonl"
        assert judged(trials={path: list(self.TRIALS)}, files={"out/r/model.json": "1", "out/r/m": "2"}) == set()

    def test_a_trial_twice(self, judged):
        path = "out/r--20260101T000000/points/a/raw.jsonl"
        assert judged(trials={path: [*self.TRIALS, self.TRIALS[1]]}) == {"doubled", "different"}

    def test_another_record(self, judged):
        trial, record, _ = self.TRIALS[2]
        changed = [*self.TRIALS[:2], (trial, {**record, "cycles": 1}, None)]
        assert judged(trials={"out/r--20260101T000000/points/a/raw.jsonl": changed}) == {"different"}

    def test_files(self, judged):
        assert judged(files={"out/r/m": "1"}) == {"lost"}
        assert judged(files={"out/r/model.json": "1", "out/r/m": "1", "out/r (2)/m": "1"}) == {"doubled"}
        assert judged(files={"out/r/model.json": "2", "out/r/m": "1"}) == {"different"}

    def test_trials_of_before_a_kill(self, soak):
        episode = soak.Episode("sweep", 1)
        soak._still(episode, {"raw.jsonl": list(self.TRIALS)}, {"raw.jsonl": list(self.TRIALS[:2])})
        assert set(episode.findings()) == {"lost"}

    def test_what_is_left(self, soak, tmp_path, monkeypatch):
        monkeypatch.setattr(soak, "GRACE_S", 0.1)
        for folder in ("out/run", "tmp", "cache/p4perf/builds/.key.abc"):
            (tmp_path / folder).mkdir(parents=True)
        (tmp_path / "out/run/.p4perf-1-0123abcd.tmp").touch()
        (tmp_path / "out/run/.lock").write_text("process 1")
        (tmp_path / "tmp/p4perf-x").touch()
        with subprocess.Popen(["sleep", "60"], env={**os.environ, "TMPDIR": str(tmp_path / "tmp")}) as process:
            try:
                found = soak.leftovers(tmp_path, soak.World(tmp_path), [], None)
            finally:
                process.kill()
        assert found == [
            "out/run/.p4perf-1-0123abcd.tmp",
            "tmp/p4perf-x",
            "cache/p4perf/builds/.key.abc",
            "out/run/.lock names a holder",
            f"process {process.pid}: sleep 60 ",
        ]


def test_the_same_seed_kills_at_the_same_moments(soak, tmp_path, monkeypatch):
    moments = []

    class Command:
        pid, exitcode = 0, None

        def join(self, seconds=None):
            moments.append(seconds)
            if len(moments) % 20 == 0:
                self.exitcode = 0

        def kill(self):
            self.exitcode = -9

    monkeypatch.setattr(soak, "forked", lambda *_, **__: Command())
    monkeypatch.setattr(soak, "finish", lambda command: 0)
    reference = soak.Result({}, {}, 10.0)
    for _ in range(2):
        soak.run_episode("pack", soak.KINDS["pack"], 5, soak.World(tmp_path), reference)
        moments.append("end")
    half = len(moments) // 2
    assert moments[:half] == moments[half:]
    assert any(moments[:-1])


def test_a_moment_is_a_time_or_a_share_of_the_processor(soak):
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as process:
        process.exitcode = None
        process.join = time.sleep
        try:
            soak.reach(process, 0.2, of_processor=True)
            used = soak.used(process)
        finally:
            process.kill()
    assert used >= 0.2


def test_what_fails_while_the_machine_stands_still_is_tried_again(soak, monkeypatch):
    clock = soak.Clock()
    monkeypatch.setattr(soak, "CLOCK", clock)
    episodes = [soak.Episode("sweep", 1, lost=["x"]), soak.Episode("sweep", 1, kills=3)]

    def act():
        clock.pauses += len(episodes) - 1
        return episodes.pop(0)

    found, stopped = soak.without_pause(act)
    assert (found.kills, stopped) == (3, 1)
    kept = soak.Episode("sweep", 1, lost=["x"])
    assert soak.without_pause(lambda: kept) == (kept, 0)


def test_kills_in_the_middle_are_counted(soak):
    rows = soak.table([soak.Episode("sweep", 3, kills=3, trials=[0, 4, 9]), soak.Episode("sweep", 4, 1, trials=[9])])
    assert rows.splitlines()[1].split()[:4] == ["sweep", "3..4", "4", "1"]


def test_an_episode_on_record_is_json(soak):
    episode = soak.Episode("sweep", 3, kills=2, lost=["x"])
    assert soak.Episode(**json.loads(json.dumps(dataclasses.asdict(episode)))) == episode
