"""Sweeps with a load generator on the fake of pos: a device on one node, MoonGen on the other, nobody answers."""

import json
from dataclasses import replace

import pytest
from support.command import p4perf
from support.moongen import moongen, why_not
from support.pos import FakePos

from p4perf.experiment.bench import open_testbed
from p4perf.experiment.recorder import Silent
from p4perf.experiment.session import measure_run, new_run
from p4perf.results import RunDirectory
from p4perf.specs import load_experiment
from p4perf.testbeds.batch import folder as batch_folder
from p4perf.testbeds.loadgen import moongen as generator

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

SPEC = ["mat/exact-entries", "--points", 1, "--set", "trials.repetitions=1", "--target", "fake-served"]


class Lab:
    """Two nodes of pos: a device with a capacity of 500 packets per second, of 800 with the baseline, and MoonGen."""

    def __init__(self, folder):
        self.folder, self.pos, self.capacity = folder, FakePos(folder / "pos"), folder / "capacity"

    def address(self, *then, **options):
        """Of a MoonGen that is the double with these options, and then runs lines of a shell script."""
        path = moongen(self.folder / "double", self.capacity, **{"link_mbit": 1, **options})
        script = self.folder / "MoonGen"
        script.write_text("\n".join(["#!/bin/sh", f'"{path}" "$@"', "status=$?", *then, "exit $status", ""]))
        script.chmod(0o755)
        site = self.pos.loaded_site(script, cpu_ghz=2.0, tools={"fake_capacity": str(self.capacity)})
        return f"pos:{site}"

    def run(self, *words, **options):
        return p4perf("run", *SPEC, *words, "--testbed", self.address(**options), "-o", self.folder / "runs")

    @property
    def only(self):
        (run,) = [p for p in (self.folder / "runs").glob("[!.]*") if (p / "manifest.json").exists()]
        return RunDirectory.open(run)


@pytest.fixture
def lab(tmp_path):
    return Lab(tmp_path)


def medians(run):
    table = run.read_measurements()
    return table[table["accepted"]].groupby("metric")["value"].median()


def entries(run):
    return [entry for point in run.points() for entry in run.trials(point)]


@pytest.mark.thorough  # each way has tests of its own
def test_a_run_is_the_one_of_two_nodes_that_are_reached_by_ssh(lab, new_node):
    """The spec is the same to the byte, the points and what is kept are the same, and both can be compared."""
    assert lab.run().code == 0
    dut, sender = new_node("dut"), new_node("sender")
    file = lab.folder / "nodes.yaml"
    file.write_text(
        "nodes:\n"
        + dut.entry(roles="[dut]", cpu_ghz=2.0, tools=f"{{fake_capacity: {lab.capacity}}}")
        + sender.entry(
            roles="[loadgen]",
            load_generator="moongen",
            tools=f"{{moongen: {lab.folder}/MoonGen}}",
            interfaces="{tx: '0000:04:00.0', rx: '0000:04:00.1'}",
        )
    )
    done = p4perf("run", *SPEC, "--testbed", f"ssh:{file}", "-o", lab.folder / "other" / "runs")
    assert done.code == 0, done.err
    ours, theirs = lab.only, Lab(lab.folder / "other").only
    assert (ours.path / "spec.yaml").read_bytes() == (theirs.path / "spec.yaml").read_bytes()
    assert ours.manifest()["planned_points"] == theirs.manifest()["planned_points"]
    assert ours.manifest()["place"]["load_generator_node"] == "nida"
    (one,), (other,) = entries(ours), entries(theirs)
    assert shape(one) == shape(other)
    assert one["load"]["overload"]["raw"]["evidence"] == {"counting before": "500\n", "counting after": "500\n"}
    assert one["load"]["baseline"]["raw"]["evidence"] == {"counting before": "800\n", "counting after": "800\n"}
    assert medians(ours).to_dict() == pytest.approx(medians(theirs).to_dict(), rel=0.02)
    assert medians(ours)["cost_cycles_per_packet"] == pytest.approx(2e9 / 500 - 2e9 / 800, rel=0.05)
    words = ("--format", "json", "--output", lab.folder / "compared")
    compared = p4perf("compare", ours.path, theirs.path, *words)
    assert compared.code == 0, compared.err
    (experiment,) = json.loads(compared.out)["experiments"]
    assert len(experiment["shared_points"]) == 1

    assert not lab.capacity.exists(), "the device was released"
    assert lab.pos.freed
    (tree,) = lab.pos.trees
    names = {path.name for path in (tree / "nida").iterdir()}
    assert names >= {"load0-max-load-rx_run0.csv", "load1-max-load-tx_run0.csv", "steps_run0.txt"}
    names = {path.name for path in (tree / "cesis").iterdir()}
    assert names >= {"load0-before0_run0.stdout", "part0-main_run0.said", "steps_run0.txt"}


def shape(value):
    """The keys of all mappings in it."""
    return {key: shape(inner) for key, inner in value.items()} if isinstance(value, dict) else type(value)


@pytest.mark.thorough
def test_fixed_rates_in_a_sweep_with_latency(lab):
    sets = ["sweep={rate: [0.0002, 0.0004]}", "traffic.offered_load={rate_mpps: $rate}", "load.latency_ms=5000"]
    sets += ["program.parameters.entries=100", "metrics.collect=[packet_rate, latency, loss_ratio]", "model=null"]
    words = [word for text in [*sets, "trials.repetitions=1"] for word in ("--set", text)]
    words += ["--target", "fake-served", "--testbed", lab.address(link_mbit=10), "-o", lab.folder / "runs"]
    done = p4perf("run", "mat/exact-entries", *words)
    assert done.code == 0, done.err
    table = lab.only.read_measurements()
    offered = table[table["metric"] == "offered_rate"].set_index("rate")["value"]
    assert offered.to_dict() == pytest.approx({0.0002: 0.0002, 0.0004: 0.0004}, rel=0.06)
    assert medians(lab.only)["latency_p50"] == pytest.approx(5.03, abs=0.05)
    assert len(list(lab.only.path.glob("points/*/latency-0.hlog"))) == 2


class TestRefused:
    """What must be answered between trials; nothing is allocated for it."""

    @pytest.mark.parametrize(
        "sets",
        [
            ["metrics.collect=[packet_rate, cycles_per_packet, throughput_ndr]"],
            ["metrics.collect=[packet_rate, cycles_per_packet, latency]", "load.search=overload"],
        ],
    )
    def test_searches(self, lab, sets):
        refused = lab.run(*(word for text in sets for word in ("--set", text)))
        assert refused.code == 2, refused.err
        assert "testbed pos:cesis cannot search a throughput" in refused.err
        assert "sweep fixed rates (traffic.offered_load: {rate_mpps: ...})" in refused.err
        assert lab.pos.log == []
        assert not (lab.folder / "runs").exists()

    @pytest.mark.parametrize("place", ["pos", "manual"])
    def test_no_load_generator(self, lab, place):
        address = f"pos:{lab.pos.known_site()}" if place == "pos" else f"manual:{lab.folder / 'carried'}"
        refused = p4perf("run", *SPEC, "--testbed", address, "-o", lab.folder / "runs")
        assert refused.code == 2, refused.err
        assert "target fake-served is loaded from outside, and testbed " in refused.err
        assert lab.pos.log == []

    def test_one_that_answers_between_trials(self, lab):
        refused = lab.run("--set", "load.generator=native")
        assert refused.code == 2, refused.err
        assert "load generator native answers between trials" in refused.err
        assert lab.pos.log == []


FAULTS = """
spec_version: 1
extends: mat/exact-entries
name: lab/faults
metrics: {collect: [packet_rate]}
sweep: {entries: [1, 2, 3, 4, 5, 6, 7]}
trials: {repetitions: 1, max_attempts: 1, order: sequential}
model: null
"""


class Notes(Silent):
    def __init__(self):
        self.text = ""

    def note(self, text):
        self.text += f"{text}\n"


def soon(service, dies):
    """The service with short time limits, of a device that may die at once."""

    def quick(steps):
        return tuple(replace(step, job=replace(step.job, timeout_s=2.0)) for step in steps)

    main = replace(service.main, argv=("sh", "-c", "echo out of luck; exit 3")) if dies else service.main
    changed = {when: quick(getattr(service, when)) for when in ("prepare", "before", "after", "release")}
    return replace(service, main=main, ready_timeout_s=5.0, **changed)


@pytest.mark.thorough
def test_every_fault_is_named_and_costs_its_trial_only(lab, fakes, monkeypatch):
    """MoonGen fails and ends with 0, leaves an empty file, is killed with its script; a run is lost; a device dies."""
    device = fakes("fake-served")
    monkeypatch.setattr(batch_folder, "MEET_S", 3.0)
    monkeypatch.setattr(batch_folder, "ANSWER_S", 1.0)
    monkeypatch.setattr(generator, "START_S", 5.0)

    class Soon(device):
        def service(self, plan, program, facts):
            (table,) = plan.workload.program.tables
            return soon(super().service(plan, program, facts), table.entries.count == 7)

    role = "$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$PPID/status)"
    spoil = [
        f'echo run >>"{lab.folder}/runs"',
        f'case $(wc -l <"{lab.folder}/runs") in',  # a trial has two of them
        "1) echo '[FATAL] Lua error in task: out of luck' ;;",
        "3) : >max-load-rx.csv ;;",
        f"5) kill -KILL {role} ;;",
        "esac",
    ]
    lab.pos.configure(sync_timeout_s=60.0, lost_runs=[4])
    testbed, target, notes = open_testbed(lab.address(*spoil)), Soon(), Notes()
    (lab.folder / "faults.yaml").write_text(FAULTS)
    experiment = load_experiment(str(lab.folder / "faults.yaml"))
    run, plan = new_run(experiment, target, testbed, lab.folder / "runs-of-faults")
    outcome = measure_run(experiment, plan.points, target, testbed, run, notes)

    failures = [e["failure"]["message"] for p in plan.points for e in run.trials(p.key) if "failure" in e]
    assert failures == [
        "node nida, max-load.lua: MoonGen failed: [FATAL] Lua error in task: out of luck",
        "node nida, max-load.lua: max-load-rx.csv is empty: MoonGen ended before its first row",
        "node cesis: fake-served failed to start: it ended with status 3: out of luck",
    ]
    text = notes.text
    assert "2 of 7 trials have no result; the first, p002-a0: node nida, measuring, run 2: it ended as 'error'" in text
    assert "; node cesis waited in vain at load0-end; they are measured again" in text
    assert outcome.complete == 4
    assert outcome.trials == 7
    lost = json.loads((run.path / "batches" / "002" / "batch.json").read_text())["trials"]
    assert [trial["point"] for trial in lost] == [2, 4]
    assert not lab.capacity.exists(), "the device was released"
    assert lab.pos.freed


@pytest.mark.thorough
def test_a_batch_of_which_a_node_has_nothing(lab):
    lab.pos.configure(lost_runs=[0], sync_timeout_s=1.0)
    failed = lab.run("--set", "model=null")
    assert failed.code == 3, failed.err
    text = " ".join(failed.err.split())
    why = "measuring: the node with the role dut has no run of it; node nida waited in vain at load0-begin"
    assert f"1 of 1 trials have no result; the first, p000-a0: {why}" in text
    assert lab.pos.freed
    assert p4perf("resume", lab.only.path).code == 0
