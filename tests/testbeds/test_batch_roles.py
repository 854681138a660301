"""The scripts of the two roles of a trial, run on this machine: what they do, what they quote, what they leave."""

import signal
import subprocess
import time
from dataclasses import replace

import pytest

from p4perf.errors import TestbedError
from p4perf.targets.base import BuildPlan, Job
from p4perf.targets.roles import Service, ServiceStep
from p4perf.testbeds.batch import folder
from p4perf.testbeds.batch.base import BatchJob, LoadPart
from p4perf.testbeds.batch.folder import ROLES, node_files, trial_limits_s, write_folder
from p4perf.testbeds.batch.outcomes import Missing, read_trial, together
from p4perf.testbeds.loadgen.base import Offer

BARRIER = """#!/bin/sh
mkdir -p ../met/"$1"
: >../met/"$1/$(basename "$PWD")"
while [ "$(ls ../met/"$1" | wc -l)" -lt 2 ]; do sleep 0.05; done
"""
HOSTILE = ["$(touch harm)", "`touch harm`", "a'b", 'a"b', "a\\b", "; touch harm", "a\nb", " ", "", "-n", "*", "é"]


def sh(script, *words, limit_s=5.0, **more):
    return Job(("sh", "-c", script, "sh", *words), limit_s, **more)


def step(what, script, *words, **more):
    return ServiceStep(what, sh(script, *words, **more))


DEVICE = Service(
    prepare=(step("looking", "cat f", build=None),),
    main=sh("echo it is up; exec sleep 100"),
    ready="^it is up$",
    ready_timeout_s=5.0,
    before=(step("counting before", "echo 1"),),
    during=(step("counting", "echo 2 >&2"),),
    after=(step("counting after", "echo 3"),),
    release=(step("clearing up", "echo 4"),),
)
DEVICE = replace(DEVICE, prepare=(ServiceStep("looking", replace(DEVICE.prepare[0].job, files={"f": b"data"})),))
OFFER = Offer(sh("echo sent; echo 1,2 >a.csv; exit 3"), ("a.csv", "b.csv"))


class Nodes:
    """Two nodes that get folders and run their scripts."""

    def __init__(self, folder):
        self.folder = folder

    def write(self, *jobs):
        for role in ROLES:
            files = {**node_files(jobs, role), "barrier.sh": BARRIER.encode()}
            write_folder(self.folder / role, files)
            (self.folder / role / "built").mkdir(exist_ok=True)

    def begin(self, name, role):
        return subprocess.Popen(
            ["sh", f"trials/{name}.sh", f"out/{name}"],
            cwd=self.folder / role,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, name="t0", *names):
        running = [self.begin(name, role) for role in names or ROLES]
        said = [process.communicate(timeout=60)[0] for process in running]
        assert [process.returncode for process in running] == [0] * len(running)
        assert set(said) <= {"", "Killed\n"}, "a shell may say how its command died"

    def record(self, role, name="t0"):
        files = {path.name: path for path in (self.folder / role / "out" / name).iterdir() if path.stat().st_size}
        return read_trial(name, role, files)

    def outcome(self, name="t0"):
        return together({role: self.record(role, name) for role in ROLES}, ROLES)


@pytest.fixture
def nodes(tmp_path):
    return Nodes(tmp_path)


def job(*services, name="t0", offer=OFFER):
    return BatchJob(name, None, "a=1", tuple(LoadPart(service, (offer,)) for service in services))


def test_a_trial(nodes):
    nodes.write(job(DEVICE, DEVICE))
    nodes.run()
    outcome = nodes.outcome()
    said = {name: (r.returncode, r.stdout, r.stderr) for name, r in outcome.results.items()}
    parts = [{f"part{n}-prepare0": (0, "data", ""), f"part{n}-release0": (0, "4\n", "")} for n in (0, 1)]
    loads = [
        {
            f"load{n}": (3, "sent\n", ""),
            f"load{n}-before0": (0, "1\n", ""),
            f"load{n}-during0": (0, "", "2\n"),
            f"load{n}-after0": (0, "3\n", ""),
        }
        for n in (0, 1)
    ]
    assert said == parts[0] | parts[1] | loads[0] | loads[1]
    assert [len(lines) for lines in outcome.said.values()] == [3, 3], "up, up still, down"
    assert outcome.left == {("load0", "a.csv"): "1,2\n", ("load1", "a.csv"): "1,2\n"}
    assert outcome.nodes == {"dut": "dut", "loadgen": "loadgen"}
    assert (nodes.folder / "dut" / "out" / "t0" / "part0-main.log").read_text() == "it is up\n"
    for role in ROLES:
        assert trial_limits_s(nodes.folder / role)["t0"] > 600


def test_nothing_leaves_its_quotes(nodes):
    words = ("printf", "%s|", *HOSTILE)
    service = Service(prepare=(ServiceStep("a\n; touch harm\\", Job(words, 5.0)),))
    nodes.write(replace(job(service, offer=Offer(Job(words, 5.0))), about="$(touch harm)\ntouch harm"))
    nodes.run()
    results = nodes.outcome().results
    assert results["part0-prepare0"].stdout == results["load0"].stdout == "".join(f"{word}|" for word in HOSTILE)
    assert not list(nodes.folder.rglob("harm"))
    with pytest.raises(TestbedError, match="is no name for a file"):
        nodes.write(job(service, offer=Offer(Job(words, 5.0), ("../a",))))
    with pytest.raises(TestbedError, match="is no name for a trial"):
        nodes.write(job(service, name="a; b"))


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"prepare": (step("looking", "exit 4"),)}, {"load0-before0", "load0-after0"}),
        ({"main": sh("echo no; exit 1")}, {"load0-before0", "load0-after0"}),
        ({"before": (step("counting", "sleep 60", limit_s=0.2),)}, {"load0-during0", "load0-after0"}),
    ],
)
def test_a_device_that_fails_keeps_its_meetings_and_is_released(nodes, change, missing):
    nodes.write(job(replace(DEVICE, **change)))
    nodes.run()
    outcome = nodes.outcome()
    assert not missing & outcome.results.keys()
    assert {"load0", "part0-release0"} <= outcome.results.keys()
    assert outcome.results.get("load0-before0") is None or outcome.results["load0-before0"].timed_out


def test_a_part_that_was_never_begun_is_not_released(nodes):
    nodes.write(job(replace(DEVICE, prepare=(step("looking", "exit 4"),)), DEVICE))
    nodes.run()
    assert {"part0-release0", "part1-release0"} & nodes.outcome().results.keys() == {"part0-release0"}


def test_a_program_that_was_not_built(nodes):
    plan = BuildPlan({"a.sh": "x"}, (("false",),), "made")
    nodes.write(job(replace(DEVICE, prepare=(ServiceStep("looking", sh("cat {build}/a", build=plan)),))))
    (nodes.folder / "dut" / "built" / f"{plan.key}.log").write_text("x.c: error: no\n")
    nodes.run()
    assert nodes.outcome().build_log == "x.c: error: no\n"


def test_a_node_that_waits_in_vain(nodes, monkeypatch):
    """It gives up, what it began is released, and it waits longer where the one before was lost."""
    monkeypatch.setattr(folder, "_wait_s", lambda job: 1.0)
    nodes.write(job(DEVICE), job(DEVICE, name="t1"))
    nodes.run("t0", "dut")
    record = nodes.record("dut")
    assert record.lost == "load0-begin"
    assert "part0-release0" in record.results
    with pytest.raises(Missing) as caught:
        together({"cesis": replace(record, nodes={"dut": "cesis"})}, ROLES)
    why = "measuring: the node with the role loadgen has no run of it; node cesis waited in vain at load0-begin"
    assert str(caught.value) == why
    # The load generator has lost its part of t0: it is there before the device has given up.
    begun = time.monotonic()
    waiting = nodes.begin("t1", "loadgen")
    time.sleep(1.3)
    nodes.run("t1", "dut")
    waiting.communicate(timeout=60)
    assert time.monotonic() - begun > 1.3
    assert nodes.outcome("t1").results["load0"].stdout == "sent\n"


def test_a_script_that_is_ended_brings_the_device_down(nodes):
    marked = nodes.folder / "pid"
    nodes.write(job(replace(DEVICE, main=sh(f"echo $$ >{marked}; echo it is up; exec sleep 100"))))
    process = nodes.begin("t0", "dut")
    try:
        while not marked.exists() or not (nodes.folder / "met").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        other = nodes.begin("t0", "loadgen")  # the meeting comes to an end
        process.communicate(timeout=60)
        other.kill()
        for place in (nodes.folder / "met").iterdir():
            (place / "dut").touch()  # so that nobody waits there any more
        other.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 143
    with pytest.raises(Missing):
        nodes.record("dut")
    assert subprocess.run(["kill", "-0", marked.read_text().strip()], capture_output=True, check=False).returncode != 0


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("step load0-before0", "step ../a"), "is damaged"),
        (("trial t0", "trial t1"), "is not of it"),
        ((" 0 no ", " 0 maybe "), "is damaged"),
        (("ended", "# ended"), "is damaged"),
        (("role dut", "role boss"), "is damaged"),
        (("step part0-prepare0 0 no", "step part0-prepare0 0 no 1 9 0\nstep x 0 no"), "is cut off"),
    ],
)
def test_what_is_left_is_not_believed(nodes, change, why):
    out = nodes.folder / "out"
    out.mkdir()
    lines = ["trial t0", "role dut", "started 2026-06-06T12:00:00+00:00", "step part0-prepare0 0 no 12 4 0"]
    lines += ["step load0-before0 0 no 1 0 0", "met load0-begin 0", "ended 5"]
    (out / "part0-prepare0.stdout").write_text("data")
    (out / "steps.txt").write_text("\n".join(lines))
    files = {path.name: path for path in out.iterdir()}
    assert read_trial("t0", "cesis", files).results["part0-prepare0"].stdout == "data"
    (out / "steps.txt").write_text("\n".join(lines).replace(*change))
    with pytest.raises(Missing, match=why):
        read_trial("t0", "cesis", files)
