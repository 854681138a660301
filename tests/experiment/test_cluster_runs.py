"""Runs on several devices at once, workers of a Dask scheduler: the same as on one, whatever becomes of the workers."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from itertools import pairwise

import pytest
from support.command import p4perf
from support.dask_cluster import certificates, dask_cluster

from p4perf.errors import MeasurementError, TestbedError, UsageError
from p4perf.evaluation.fitting import cluster as connection
from p4perf.experiment import cluster as conductors
from p4perf.experiment import measure_run, new_run, open_crew, open_target, open_testbed, resume_run
from p4perf.experiment.crew import DeviceOfCrew, run_trial
from p4perf.experiment.ledger import MOVED
from p4perf.experiment.recorder import Silent
from p4perf.results import RunDirectory
from p4perf.specs import load_experiment

pytest.importorskip("distributed")

POINTS, REPETITIONS = 8, 3
SETS = [("trials.repetitions", str(REPETITIONS))]


class After(Silent):
    """Does something after so many trials."""

    def __init__(self, trials, action):
        self.left, self.action, self.notes = trials, action, []

    def trial(self, label, accepted, remaining, remaining_s):
        self.left -= 1
        if self.left == 0:
            self.action()

    def note(self, text):
        self.notes.append(text)


def interrupt():
    raise KeyboardInterrupt


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    pytest.importorskip("distributed")
    with dask_cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture(scope="module")
def pair(cluster):
    """Two workers that no test harms."""
    cluster.worker("pair-a")
    cluster.worker("pair-b")
    return "pair-*"


@contextlib.contextmanager
def crew_of(cluster, pattern, count, address="local"):
    """So many devices; workers take some time to start."""
    deadline = time.monotonic() + 60
    while True:
        with contextlib.suppress(TestbedError):
            crew = open_crew(cluster.address, address, pattern)
            if len(crew.devices) == count:
                break
            crew.close()
        assert time.monotonic() < deadline, "the workers do not start"
        time.sleep(0.1)
    try:
        yield crew
    finally:
        crew.close()


@pytest.fixture
def start(fakes, tmp_path, monkeypatch):
    """Begins a run on a testbed."""
    monkeypatch.setenv("P4PERF_FAKE_DEVICE", str(tmp_path / "here"))

    def begin(place, progress=None, folder="runs", points=POINTS, notes=None):
        experiment = load_experiment("mat/exact-entries", overrides=SETS, points=points)
        target = open_target("fake-exclusive")
        run, plan = new_run(experiment, target, place, tmp_path / folder, notes=notes)
        try:
            return run, measure_run(experiment, plan.points, target, place, run, progress)
        except (KeyboardInterrupt, TestbedError) as error:
            return run, error

    return begin


def resumed(run, crew, progress=None):
    return resume_run(run.path, progress, crew=None if crew is None else lambda address: crew)[1]


def journals(run):
    """The trials of every point."""
    paths = sorted((run.path / "points").glob("*/raw.jsonl"))
    return {p.parent.name: [json.loads(line) for line in p.read_text().splitlines()] for p in paths}


def records(run):
    return {(key, e["trial"]["attempt"]): e["record"] for key, entries in journals(run).items() for e in entries}


def cycles(run):
    table = run.read_measurements()
    return table[table["metric"] == "cycles_per_packet"]


def finished(run):
    """Every point has its accepted trials, on one device; none failed, as it would if two shared a device."""
    table = cycles(run)
    accepted = table[table["accepted"]]
    assert (accepted.groupby("point").size() == REPETITIONS).all()
    assert (accepted.groupby("point")["testbed"].nunique() == 1).all()
    assert accepted["point"].nunique() == POINTS
    assert not any("failure" in e for entries in journals(run).values() for e in entries)
    assert run.state().complete
    return accepted


def test_several_points_are_chosen_at_once(cluster, pair, start):
    """Each of the free devices gets a point of its own, also after an interruption."""
    accuracy = 0.005
    with crew_of(cluster, pair, 2) as crew:
        run, stopped = start(crew, After(9, interrupt), points=None, notes={"design": {"accuracy": accuracy}})
        assert isinstance(stopped, KeyboardInterrupt)
        outcome = resumed(run, crew)
    assert outcome.judgement.error <= accuracy
    found = journals(run)
    trials = [
        (datetime.fromisoformat(e["started"]).timestamp(), e["duration_s"], key, e["testbed"])
        for key, entries in found.items()
        for e in entries
    ]
    assert 9 < len(trials) < REPETITIONS * len(run.record().points) / 2
    assert all(len({e["testbed"] for e in entries}) == 1 for entries in found.values())
    trials.sort()
    together = [(one, other) for one, other in pairwise(trials) if other[0] < one[0] + one[1] and one[3] != other[3]]
    assert len(together) > len(trials) / 4
    assert all(one[2] != other[2] for one, other in together)


def test_the_same_run_as_without_a_cluster(cluster, pair, start, tmp_path):
    with crew_of(cluster, pair, 2) as crew:
        run, stopped = start(crew, After(5, interrupt))
    assert isinstance(stopped, KeyboardInterrupt)
    assert len(records(run)) == 5
    with crew_of(cluster, pair, 2) as crew:
        outcome = resumed(run, crew)
        assert (outcome.trials, outcome.complete, int(outcome.exit_code)) == (POINTS * REPETITIONS - 5, POINTS, 0)
        assert set(finished(run)["testbed"]) == {"pair-a", "pair-b"}
        before = journals(run)
        assert resumed(run, crew).trials == 0
        assert journals(run) == before
    alone, _ = start(open_testbed("local"), folder="alone")
    assert records(run) == records(alone)
    assert set(finished(alone)["testbed"]) == {"local"}
    places = run.manifest()["places"]
    assert set(places) == {"pair-a", "pair-b"}
    assert places["pair-a"]["facts"]["machine"] == alone.manifest()["node"]["machine"]
    assert {e["testbed"] for entries in before.values() for e in entries} == {"pair-a", "pair-b"}
    # All points are measured once before one is measured again, as far as devices are free.
    order = sorted((e["started"], e["trial"]["attempt"]) for entries in before.values() for e in entries)
    assert [attempt for _, attempt in order][: POINTS - 2] == [0] * (POINTS - 2)


@pytest.mark.thorough
def test_two_runs_at_once_take_turns(cluster, pair, start):
    def measure(folder):
        with crew_of(cluster, pair, 2) as crew:
            return start(crew, folder=folder)

    with ThreadPoolExecutor(2) as pool:
        for run, outcome in pool.map(measure, ("one", "two")):
            assert outcome.trials == POINTS * REPETITIONS
            finished(run)


class Doomed:
    """Stands in for a crew whose only worker dies of every trial, and starts again at once."""

    label = "local"

    def __init__(self, testbed):
        self.device = DeviceOfCrew("doomed", "here", "local", testbed.record, testbed.facts(), "tcp://here", "local")
        self.devices, self.alone_s, self.trials = {"doomed": self.device}, 0.0, []

    def look(self):
        if self.devices and self.trials and not self.trials[-1].cancelled():
            self.devices = {}
            return {"doomed"}
        self.devices = {"doomed": self.device}
        return set()

    def send(self, device, errand):
        future = Future()
        if errand.func is run_trial:
            self.trials.append(future)
        else:
            future.set_result(({}, None))
        return connection.Task(future, future.cancel)

    def answer(self, task):
        return task.future.result()


def test_a_point_that_workers_die_of_is_given_up(fakes, tmp_path, monkeypatch):
    monkeypatch.setattr(conductors, "LOOK_S", 0.01)
    target, place = open_target("fake"), open_testbed("local")
    experiment = load_experiment("mat/exact-entries", points=2)
    run, plan = new_run(experiment, target, place, tmp_path)
    crew = Doomed(place)
    with pytest.raises(MeasurementError, match=r"no point could be measured .* 3 died while they measured it"):
        conductors.ClusterConductor(experiment, plan.points, target, crew, run).measure()
    assert len(crew.trials) == 2 * conductors.DEATHS
    assert [e["failure"]["final"] for entries in journals(run).values() for e in entries] == [True] * 2


@pytest.mark.thorough
def test_the_points_of_a_worker_that_died_begin_anew_elsewhere(cluster, pair, start, monkeypatch):
    monkeypatch.setattr(conductors, "AWAY_S", 0.5)
    cluster.worker("lost-a")
    victim = cluster.worker("lost-b")
    progress = After(POINTS + 3, lambda: (victim.kill(), victim.wait()))
    with crew_of(cluster, "lost-*", 2) as crew:
        run, outcome = start(crew, progress)
    assert outcome.complete == POINTS
    assert any("the worker of lost-b has gone" in note for note in progress.notes)
    kept = finished(run)
    table = cycles(run)
    left = table[~table["accepted"]]
    assert set(left["testbed"]) == {"lost-b"}
    assert set(left["flags"]) == {MOVED}
    assert set(kept[kept["point"].isin(left["point"])]["testbed"]) == {"lost-a"}


@pytest.mark.thorough
def test_all_workers_die_and_one_comes_back(cluster, start, monkeypatch):
    monkeypatch.setattr(connection, "ALONE_S", 1.0)
    victim = cluster.worker("back")
    with crew_of(cluster, "back", 1) as crew:
        run, error = start(crew, After(4, lambda: (victim.kill(), victim.wait())))
    assert isinstance(error, TestbedError)
    assert f"all workers of the Dask scheduler at {cluster.address} have gone" in error.message
    assert f"p4perf resume {run.path} --scheduler {cluster.address}" in error.hint
    begun = records(run)
    assert len(begun) == 4
    cluster.worker("back")
    with crew_of(cluster, "back", 1) as crew:
        progress = After(4, interrupt)
        with pytest.raises(KeyboardInterrupt):
            resumed(run, crew, progress)
    # The machine of the worker is this one, and it goes on alone, in the name of the worker.
    outcome = resumed(run, None)
    assert outcome.trials == POINTS * REPETITIONS - 8
    assert set(finished(run)["testbed"]) == {"back"}
    assert begun.items() <= records(run).items()


@pytest.mark.thorough
def test_a_run_that_was_begun_without_a_cluster(cluster, pair, start):
    run, stopped = start(open_testbed("local"), After(POINTS + 2, interrupt))
    assert isinstance(stopped, KeyboardInterrupt)
    with crew_of(cluster, "pair-a", 1) as crew:
        assert resumed(run, crew, After(3, lambda: None)).trials == POINTS * REPETITIONS - POINTS - 2
    assert set(finished(run)["testbed"]) == {"pair-a"}
    assert run.manifest()["place"]["name"] == "pair-a"
    assert {e.get("testbed") for entries in journals(run).values() for e in entries} == {None, "pair-a"}


@pytest.mark.thorough
def test_it_cannot_be_told_which_worker_is_this_machine(cluster, pair, start):
    run, _ = start(open_testbed("local"), After(2, interrupt))
    with crew_of(cluster, pair, 2) as crew:
        assert resumed(run, crew).trials == POINTS * REPETITIONS
    finished(run)
    table = cycles(run)
    assert list(table[~table["accepted"]]["testbed"]) == ["local"] * 2


@pytest.mark.thorough
def test_different_machines_are_refused(cluster, pair, fakes, tmp_path):
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho another compiler\n")
    compiler.chmod(0o755)
    worker = cluster.worker("other=local", CC=str(compiler))
    with crew_of(cluster, "other*", 1, address="netns") as crew:
        assert list(crew.devices) == ["other"]
        assert crew.label == "local"
        assert crew.devices["other"].place["address"] == "local"
    with crew_of(cluster, pair, 2):
        pass
    with pytest.raises(
        TestbedError, match=r"other and pair-a are different machines.*cc_version is 'another"
    ) as caught:
        open_crew(cluster.address, "local", "[op]*")
    assert "--workers PATTERN" in caught.value.hint
    worker.kill()
    worker.wait()
    cluster.worker("two", dut=2)
    with pytest.raises(UsageError, match="worker two has 2 of the resource dut"), crew_of(cluster, "two", 1):
        pass


@pytest.mark.thorough
def test_the_command(cluster, pair, tmp_path):
    with crew_of(cluster, pair, 2):
        pass
    sweep = ["mat/exact-entries", "--points", 4, "--set", "trials.repetitions=1", "--target", "fake-exclusive"]
    options = ["--scheduler", cluster.address, "--workers", pair]
    done = p4perf("run", *sweep, *options, "-o", tmp_path)
    assert done.code == 0, done.err
    (run,) = tmp_path.iterdir()
    assert set(RunDirectory.open(run).manifest()["places"]) == {"pair-a", "pair-b"}
    again = p4perf("resume", run, *options)
    assert again.code == 0, again.err
    assert "0 trials in" in again.err
    several = [*sweep, "baseline/l2fwd", *options, "-o", tmp_path / "campaigns", "--quiet"]
    campaign = p4perf("run", *several)
    assert campaign.code == 0, campaign.err
    runs = list(tmp_path.glob("campaigns/*/runs/*"))
    assert len(runs) == 2
    assert all(set(RunDirectory.open(r).manifest()["places"]) == {"pair-a", "pair-b"} for r in runs)
    none = p4perf("run", *sweep, "--scheduler", cluster.address, "--workers", "nobody", "-o", tmp_path)
    assert none.code == 3
    assert "has the resource dut and matches 'nobody'" in none.err
    assert f"dask worker {cluster.address} --nthreads 1 --resources dut=1" in none.err


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_tls_keeps_others_out(tmp_path):
    own, other = certificates(tmp_path / "own"), certificates(tmp_path / "other")
    (tmp_path / "bad").mkdir()
    for name in ("ca", "cert", "key"):
        (tmp_path / "bad" / f"{name}.pem").write_text("no certificate")
    words = ["run", "mat/exact-entries", "--points", 2, "--set", "trials.repetitions=1", "--target", "fake"]
    with dask_cluster(tmp_path, own) as cluster:
        cluster.worker("a")
        assert cluster.address.startswith("tls://")
        words += ["--scheduler", cluster.address, "-o", tmp_path / "runs"]
        for folder, code, said in (
            (other, 3, "there is no answer from a Dask scheduler at tls://"),
            (tmp_path / "bad", 2, "cannot be used: "),
            (
                tmp_path / "none",
                2,
                f"{tmp_path}/none/ca.pem, {tmp_path}/none/cert.pem, {tmp_path}/none/key.pem: there is",
            ),
        ):
            refused = p4perf(*words, "--tls", folder)
            assert (refused.code, said in refused.err) == (code, True), refused.err
            assert not (tmp_path / "runs").exists()
        done = p4perf(*words, "--tls", own)
        assert done.code == 0, done.err
        assert "warning" not in done.err
        data = tmp_path / "many.csv"
        data.write_text("g,x,y\n" + "".join(f"{g},{x},{x}\n" for g in "ab" for x in range(1, 9)))
        options = ["--by", "g", "--x", "x", "--y", "y", "--scheduler", cluster.address, "--tls", own]
        fitted = p4perf("fit", data, *options)
        assert fitted.code == 0, fitted.err


def test_a_scheduler_without_tls_is_warned_of(tmp_path):
    done = p4perf("run", "mat/exact-entries", "--target", "fake", "--scheduler", "tcp://127.0.0.1:1", "-o", tmp_path)
    assert done.code == 3
    assert done.err.startswith("warning: whoever reaches tcp://127.0.0.1:1 runs code as its users; --tls and tls://")
    for option in ("--scheduler", "tcp://127.0.0.1:1", "--tls", tmp_path), ("--tls", tmp_path):
        refused = p4perf("run", "mat/exact-entries", "--target", "fake", *option, "-o", tmp_path)
        assert refused.code == 2, refused.err
    assert "--tls has the certificates of a cluster" in refused.err


@pytest.mark.thorough
def test_workers_that_reach_their_device_by_ssh(cluster, fakes, node, tmp_path):
    for name in ("far", "again"):
        cluster.worker(f"{name}=ssh:{node.node_file()}")
    sweep = load_experiment("mat/exact-entries", overrides=[("trials.repetitions", "1")], points=3)
    with crew_of(cluster, "far=*", 1) as crew:
        run, plan = new_run(sweep, open_target("fake"), crew, tmp_path)
        assert measure_run(sweep, plan.points, open_target("fake"), crew, run).complete == 3
    manifest = run.manifest()
    assert manifest["testbed"] == "ssh:dut"
    assert (manifest["places"]["far"]["node"], manifest["places"]["far"]["host"]) == ("dut", "127.0.0.1")
    with crew_of(cluster, "again=*", 1):
        pass
    with pytest.raises(UsageError, match=r"again and far both measure on node dut at 127\.0\.0\.1"):
        open_crew(cluster.address, "local", "*=ssh*")


def test_workers_without_a_scheduler(tmp_path):
    refused = p4perf("run", "mat/exact-entries", "--target", "fake", "--workers", "x", "-o", tmp_path)
    assert refused.code == 2
    assert "name it with --scheduler" in refused.err


def test_the_package_is_missing(monkeypatch):
    monkeypatch.setattr(connection, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="a cluster needs the package distributed"):
        open_crew("tcp://127.0.0.1:1", "local")
