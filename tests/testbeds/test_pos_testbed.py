"""Batches on the fake of pos: both generations of its command line, every failure named, the node always freed."""

import os
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest
from support.pos import FakePos

from p4perf.errors import DataError, StorageError, TestbedError
from p4perf.targets.base import BuildPlan, Job
from p4perf.testbeds.batch.base import BatchJob
from p4perf.testbeds.pos.testbed import PosTestbed

LONG_S = 30.0


@pytest.fixture
def pos(tmp_path):
    return FakePos(tmp_path / "pos")


class Batch:
    """A batch of some jobs on a fake, as a conductor would run it."""

    def __init__(self, pos, folder, *scripts, **site):
        self.testbed = PosTestbed.at(str(pos.site(**site)))
        self.folder, self.notes = folder, []
        plan = BuildPlan({"a.sh": "cat"}, (("cp", "a.sh", "made"),), "made")
        jobs = [Job(("sh", "-c", script, "{build}"), LONG_S, plan, {"f": b"data"}) for script in scripts or ("cat f",)]
        self.jobs = [BatchJob(f"t{n}", job) for n, job in enumerate(jobs)]
        self.testbed.write_batch(self.jobs, folder, "a test")

    def run(self):
        return self.testbed.run_batch([job.name for job in self.jobs], self.folder, self.notes.append)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("generation", ["new", "old"])
def test_a_batch(pos, tmp_path, generation):
    pos.configure(generation=generation)
    more = 8 if generation == "new" else 1
    scripts = ("cat f", "echo err >&2; exit 3", "kill -SEGV $$", *["echo more"] * more)
    results = Batch(pos, tmp_path / "batch", *scripts, node={"boot_parameters": ["quiet"]}).run()
    assert results.missing == {}
    trials = {name: outcome.results["trial"] for name, outcome in results.outcomes.items()}
    seen = {name: (result.returncode, result.stdout, result.stderr) for name, result in trials.items()}
    assert seen == {"t0": (0, "data", ""), "t1": (3, "", "err\n"), "t2": (-signal.SIGSEGV, "", "")} | {
        f"t{n}": (0, "more\n", "") for n in range(3, 3 + more)
    }
    assert results.facts.number("cpus") == os.cpu_count()
    assert pos.freed
    verb = "set_variables" if generation == "new" else "variables"
    verbs = [" ".join(line.split()[:2]) for line in pos.log if not line.startswith("freed") and "--help" not in line]
    assert verbs == [
        "allocations allocate",
        *[f"allocations {verb}"] * 3,
        *("nodes image", "nodes bootparameter", "nodes reset", "nodes copy"),
        *("commands launch", "commands await") * 2,
        "allocations free",
    ]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", [{"python_loops": True}, {"raw_output": True}])
def test_old_ways_to_write_files(pos, tmp_path, how):
    pos.configure(**how)
    assert Batch(pos, tmp_path / "batch", "echo 1", "echo 2").run().missing == {}


@pytest.mark.thorough
def test_the_order_and_the_padding_of_runs_mean_nothing(pos, tmp_path):
    batch = Batch(pos, tmp_path / "batch", "echo 0", "echo 1")
    batch.run()
    (node,) = (tree / "cesis" for tree in pos.trees)
    for path in list(node.glob("*_run0*")):
        path.rename(path.with_name(path.name.replace("_run0", "_run0007")))
    results = batch.run()
    assert {name: o.results["trial"].stdout for name, o in results.outcomes.items()} == {"t0": "0\n", "t1": "1\n"}
    assert len(pos.trees) == 1, "a batch that has ended is read, not run again"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("config", "step", "message"),
    [
        ({"calendar": False}, "allocating", "there is no entry in the calendar .*no calendar event for nodes"),
        ({"nodes": []}, "allocating", "pos knows no such node"),
        ({"fail": {"allocate": "Maximum number of future entries is 2!"}}, "allocating", "too many entries"),
        ({"fail": {"allocate": "requests.ConnectionError: Max retries exceeded"}}, "allocating", "does not answer"),
        ({"fail": {"set_variables": "something new"}}, "setting variables", "status 1: something new"),
        ({"fail": {"image": "Image x does not exist"}}, "choosing the image", "pos has no such image"),
        ({"fail": {"reset": "IPMI: no answer"}}, "resetting", "status 1: IPMI: no answer"),
        ({"hang": "reset"}, "resetting", "did not finish within 1 s"),
        ({"fail": {"copy": "scp: No space left on device"}}, "copying files", "a disk is full"),
        ({"fail": {"launch": "Node cesis is not bootstrapped"}}, "setting up", "it is not booted"),
        ({"fail": {"await": "gone"}}, "setting up", "status 1: gone"),
    ],
)
def test_failures_name_node_and_step_and_free_the_node(pos, tmp_path, config, step, message):
    pos.configure(**config)
    batch = Batch(pos, tmp_path / "batch", reset_timeout_s=1)
    with pytest.raises(TestbedError, match=f"node cesis, {step}: .*{message}"):
        batch.run()
    assert not pos.state["allocations"]
    assert pos.freed or step == "allocating"


def test_a_node_that_somebody_else_has_is_not_touched(pos, tmp_path):
    batch = Batch(pos, tmp_path / "batch")
    subprocess.run([*pos.cli, "allocations", "allocate", "cesis"], check=True, capture_output=True)
    with pytest.raises(TestbedError, match="allocated already") as caught:
        batch.run()
    assert "pos allocations free" in caught.value.hint
    assert len(pos.state["allocations"]) == 1


@pytest.mark.thorough
def test_free_before(pos, tmp_path):
    subprocess.run([*pos.cli, "allocations", "allocate", "cesis"], check=True, capture_output=True)
    assert Batch(pos, tmp_path / "batch", free_before=True).run().missing == {}
    assert pos.freed


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("setup", "error", "message"),
    [
        ([["sh", "-c", "echo out; echo no apt >&2; exit 4"]], TestbedError, "script ended as 'error': no apt"),
        ([["no-such-command"]], TestbedError, "no-such-command"),
        ([["sh", "-c", "echo 'x: No space left on device' >&2; exit 1"]], StorageError, "No space left on device"),
    ],
)
def test_a_setup_that_fails(pos, tmp_path, setup, error, message):
    batch = Batch(pos, tmp_path / "batch", node={"setup": setup})
    with pytest.raises(error, match=f"node cesis, setting up: .*{message}"):
        batch.run()
    assert pos.freed


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"lost_runs": [1]}, "no run in .* is of it"),
        ({"silent_runs": [1]}, "node cesis, measuring, run 1: it has no status: the command did not end"),
        ({"full_runs": [1]}, "node cesis, measuring, run 1: it ended as 'error': OSError: .*No space left on device"),
    ],
)
def test_runs_without_results(pos, tmp_path, config, why):
    pos.configure(**config)
    results = Batch(pos, tmp_path / "batch", "echo 0", "echo 1", "echo 2").run()
    assert sorted(results.outcomes) == ["t0", "t2"]
    assert list(results.missing) == ["t1"]
    assert re.search(why, results.missing["t1"]), results.missing


@pytest.mark.thorough
def test_the_disk_of_the_node_is_full(pos, tmp_path):
    pos.configure(full_runs=[0])
    with pytest.raises(StorageError, match=r"node cesis, measuring, run 0: .*No space left"):
        Batch(pos, tmp_path / "batch").run()
    assert pos.freed


@pytest.mark.thorough
def test_an_output_that_was_cut_off(pos, tmp_path):
    batch = Batch(pos, tmp_path / "batch", "echo 0", "echo 1")
    batch.run()
    (path,) = pos.trees[0].glob("cesis/trial_run1.stdout")
    path.write_text("")
    assert batch.run().missing == {"t1": "node cesis, measuring, run 1: its trial.stdout is cut off"}


@pytest.mark.thorough
def test_results_that_are_gone(pos, tmp_path):
    batch = Batch(pos, tmp_path / "batch")
    batch.run()
    shutil.rmtree(pos.folder / "results")
    with pytest.raises(TestbedError, match="node cesis, reading results: there is no result folder"):
        batch.run()


@pytest.mark.thorough
def test_a_node_that_hangs(pos, tmp_path, monkeypatch):
    """The loop of a node that is dead never ends; the node is freed, and what it did is read."""
    monkeypatch.setattr("p4perf.testbeds.pos.testbed.STALL_S", -LONG_S + 3)
    monkeypatch.setattr("p4perf.testbeds.pos.testbed.SLICE_S", 0.3)
    batch = Batch(pos, tmp_path / "batch", "echo 0", "sleep 600")
    with pytest.raises(TestbedError, match="node cesis, measuring: no run has ended for 3 s"):
        batch.run()
    assert pos.freed
    assert "did not end" in batch.run().missing["t1"]


def test_an_interrupt_frees_the_node_and_what_was_measured_is_read(pos, tmp_path):
    batch = Batch(pos, tmp_path / "batch", "echo 0", "sleep 60", "echo 2")

    def interrupt():
        deadline = time.monotonic() + LONG_S
        while not list(pos.folder.glob("results/**/*_run0.status")) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        batch.run()
    thread.join()
    assert pos.freed
    results = batch.run()
    assert {name: o.results["trial"].stdout for name, o in results.outcomes.items()} == {"t0": "0\n"}
    assert "did not end" in results.missing["t1"]
    assert len(pos.trees) == 1


class TestFacts:
    def test_of_a_node_that_is_booted_for_it(self, pos):
        testbed = PosTestbed.at(str(pos.site()))
        assert testbed.facts() == testbed.facts()
        assert testbed.facts().number("cpus") == os.cpu_count()
        assert len(pos.trees) == 1
        assert pos.freed

    def test_of_a_file(self, pos, tmp_path):
        (pos.folder / "facts.txt").write_text("machine=x86_64\ncpus=64\n")
        assert PosTestbed.at(str(pos.site(facts="facts.txt"))).facts().number("cpus") == 64
        (pos.folder / "facts.txt").write_text("hello\n")
        with pytest.raises(DataError, match=r"not what probe\.sh prints"):
            PosTestbed.at(str(pos.site(facts="facts.txt"))).facts()
        assert pos.log == []

    @pytest.mark.thorough
    def test_the_entry_in_the_calendar_is_kept(self, pos, tmp_path):
        pos.configure(calendar="one entry")
        batch = Batch(pos, tmp_path / "batch")
        batch.testbed.facts()
        assert batch.run().missing == {}
        given_back = Batch(pos, tmp_path / "other", keep_calendar=False)
        given_back.testbed.facts()
        with pytest.raises(TestbedError, match="no entry in the calendar"):
            given_back.run()


def test_what_a_batch_cannot_do(pos, tmp_path):
    testbed = PosTestbed.at(str(pos.site()))
    for call in (
        lambda: testbed.build(BuildPlan({}, (), "")),
        lambda: testbed.run(Job(("true",), 1.0), tmp_path),
        lambda: testbed.converse(Job(("true",), 1.0), tmp_path),
    ):
        with pytest.raises(TestbedError, match=r"works in batches|cannot converse"):
            call()
    assert pos.log == []
