"""p4perf learn: fixtures are measured or runs are read, and a cost model is written."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import p4perf

from p4perf import api
from p4perf.cli.predict import learn
from p4perf.models.program.costs_storage import read_cost_model
from p4perf.models.program.primitives import PrimitiveCosts

SETS = [
    f"composition/{name}"
    for name in ("constructs", "programs", "components", "more-components", "context", "more-programs")
]
FEW = ("--set", "trials.repetitions=1")


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learn")
    done = p4perf("learn", "--target", "fake-adding", *FEW, "--runs", folder / "runs", "-o", folder / "model.json")
    assert done.code == 0, done.err
    return folder, done


def test_fixtures_are_measured_and_a_model_is_written(session):
    folder, done = session
    counts = ((52, "components"), (88, "more-components"), (32, "programs"), (14, "context"))
    for count, name in (*counts, (60, "more-programs")):
        assert f"composition/{name}: {count} programs, run directory " in done.err
    total = re.search(r"^(\d+) programs in 6 runs on fake-adding \(local\): about \d", done.err, re.MULTILINE)
    assert int(total[1]) > 52 + 88 + 32 + 14 + 60
    assert done.err.index(total[0]) < done.err.index("run directory"), "the estimate comes first"
    model = read_cost_model((folder / "model.json").read_text())
    assert model.target == "fake-adding"
    assert model.baseline == pytest.approx(20, abs=0.1)
    prices = PrimitiveCosts.from_record(dict(model.primitives))
    assert {"lookup exact", "lookup lpm", "write header", "extract", "hash crc32"} <= set(prices.prices)
    assert prices.experience is not None
    assert prices.composition is not None
    assert [a.experiment for a in prices.agreement] == SETS
    assert len(model.provenance["runs"]) == 6
    title, head, row = done.out.splitlines()[:3]
    assert title.startswith("error of the predicted cycles of a packet, for the programs that the model")
    assert head.split("  ")[0] == "learnt from"
    assert re.search(r" 17 +\d+\.\d % +\d+\.\d % +[+-]\d+\.\d %$", row)


def test_runs_that_are_there_are_read(session, tmp_path):
    folder, _ = session
    runs = sorted((folder / "runs").iterdir())
    done = p4perf("learn", *runs, "-o", tmp_path / "again.json", "--format", "json")
    assert done.code == 0, done.err
    rows = json.loads(done.out)["rows"]
    assert [row["what"] for row in rows] == sorted(SETS)
    assert all(0 <= row["median_error"] <= row["p90_error"] for row in rows)
    assert read_cost_model((tmp_path / "again.json").read_text()).baseline == pytest.approx(20, abs=0.1)


def test_sweeps_of_the_catalogue_say_what_components_cost_whatever_their_frames_are(session, tmp_path):
    folder, _ = session
    sweep = p4perf("run", "parser/parsed-fields", "--target", "fake-adding", *FEW, "--output", tmp_path / "sweep")
    assert sweep.code == 0, sweep.err
    runs = [*(folder / "runs").iterdir(), *(tmp_path / "sweep").iterdir()]
    done = p4perf("learn", *runs, "-o", tmp_path / "more.json")
    assert done.code == 0, done.err
    known = [read_cost_model(file.read_text()) for file in (folder / "model.json", tmp_path / "more.json")]
    components = [len(model.primitives["composition"]["alone"]["programs"]) for model in known]
    assert components[1] == components[0] + 25
    assert known[1].frame_bytes == known[0].frame_bytes == 1024


@pytest.mark.thorough
def test_a_session_goes_on(session, tmp_path):
    folder, _ = session
    again = ("learn", "--target", "fake-adding", *FEW, "--runs", folder / "runs", "--resume", "-o", tmp_path / "m.json")
    done = p4perf(*again)
    assert done.code == 0, done.err
    assert done.err.count("continuing") == 6
    assert len(list((folder / "runs").iterdir())) == 6


def test_a_cost_model_does_not_fill_a_terminal(tmp_path):
    leader, terminal = os.openpty()
    command = [sys.executable, "-m", "p4perf", "learn", "--quick", "--target", "dpdk-c"]
    done = subprocess.run(command, stdout=terminal, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False)
    os.close(leader), os.close(terminal)
    assert done.returncode == 2
    assert "hint: write it to a file: -o models/dpdk-c.json" in done.stderr
    assert not list(tmp_path.iterdir())


def test_after_an_interruption_the_same_command_goes_on(tmp_path, monkeypatch, capfd):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learn(target="dpdk-c", budget="1 m", folder=tmp_path, output=Path("my model.json"), sets=["a=b c"])
    (line,) = (line for line in capfd.readouterr().err.splitlines() if "continue with" in line)
    assert shlex.split(line.partition(": ")[2]) == [
        *("p4perf", "learn", "--budget=1 m", "--target=dpdk-c", f"--runs={tmp_path}", "--output=my model.json"),
        *("--set=a=b c", "--resume"),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name either run directories"),
        (("--target", "fake-adding", "run"), "name either run directories"),
        (("run", "--resume"), "measured already"),
        (("run", "--budget", "1m"), "measured already"),
        (("run", "--quick", "--catalogue", "runs"), "both say where prices come from"),
        (("--target", "dpdk-c", "--budget", "1s", "-o", "m.json"), "give 20s or more"),
        (("--target", "dpdk-c", "-o", "."), "a folder"),
    ],
)
def test_what_does_not_go_together(arguments, words):
    done = p4perf("learn", *arguments)
    assert done.code == 2
    assert words in done.err


def test_runs_of_several_targets_are_refused(session, tmp_path):
    folder, _ = session
    other = p4perf("run", "demo/exact-entries", "--points", 3, "--target", "fake", "-o", tmp_path)
    assert other.code == 0, other.err
    done = p4perf("learn", next((folder / "runs").iterdir()), next(tmp_path.iterdir()))
    assert done.code == 2
    assert "a cost model is of one target" in done.err
