"""The devices that pos loads from another node, with stand-ins for their tools: the same run as on this machine."""

import pytest
from support.moongen import moongen, why_not
from support.netronome import FakeCard
from support.pos import FakePos
from support.t4p4s import EGRESS, INGRESS, FakeT4P4S

from p4perf.errors import MeasurementError
from p4perf.experiment.bench import open_target
from p4perf.experiment.session import measure_run, new_run
from p4perf.results import RunDirectory
from p4perf.specs import load_experiment
from p4perf.targets import nfp4000, t4p4s_service
from p4perf.targets.t4p4s_service import ServedT4P4S
from p4perf.testbeds.pos.testbed import PosTestbed

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

SPEC = """
spec_version: 1
extends: mat/exact-entries
name: lab/exact-entries
metrics: {collect: [packet_rate]}
program: {component: match_action_table, parameters: {match_kind: exact, entries: $entries, key_bits: 32}}
sweep: {entries: [4]}
trials: {repetitions: 1}
model: null
"""


class Lab:
    def __init__(self, folder, monkeypatch):
        self.folder, self.pos = folder, FakePos(folder / "pos")
        (folder / "spec.yaml").write_text(SPEC)
        (folder / "capacity").write_text("500")
        self.moongen = moongen(folder / "MoonGen", folder / "capacity", link_mbit=1)
        monkeypatch.setattr(ServedT4P4S, "sysfs", str(folder / "sys"))
        monkeypatch.setattr(t4p4s_service, "SETTLE_S", 0.0)
        monkeypatch.setattr(t4p4s_service, "PERF_S", 0.1)
        monkeypatch.setattr(t4p4s_service, "MIN_LOSS_PPS", 100.0)
        monkeypatch.setattr(nfp4000, "SETTLE_S", 0.0)

    def run(self, target, sets=(), **node):
        testbed = PosTestbed.at(str(self.pos.loaded_site(self.moongen, **node)))
        overrides = [(key, value) for key, _, value in (text.partition("=") for text in sets)]
        experiment = load_experiment(str(self.folder / "spec.yaml"), overrides=overrides)
        device = open_target(target)
        run, plan = new_run(experiment, device, testbed, self.folder / "runs")
        return run, measure_run(experiment, plan.points, device, testbed, run)


@pytest.fixture
def lab(tmp_path, monkeypatch):
    return Lab(tmp_path, monkeypatch)


@pytest.fixture
def t4p4s(lab, monkeypatch):
    return FakeT4P4S(lab.folder, monkeypatch)


def served_by_t4p4s(lab, t4p4s, *words, **sets):
    t4p4s.fakes(*words)
    tools = {"t4p4s": str(t4p4s.checkout), "p4c": str(t4p4s.folder / "p4c"), "perf": "/usr/bin/perf"}
    interfaces = {"ingress": INGRESS, "egress": EGRESS}
    return lab.run("t4p4s", cores=[1, 2, 3], interfaces=interfaces, tools=tools, **sets)


def loads(run):
    return [entry["load"] for point in run.points() for entry in run.trials(point)]


@pytest.mark.thorough
def test_t4p4s(lab, t4p4s):
    run, outcome = served_by_t4p4s(lab, t4p4s)
    assert (outcome.failed, outcome.starved, outcome.complete) == ((), (), 1)
    for load in loads(run):
        assert load["overload"]["receive_rate_pps"] == pytest.approx(500, rel=0.02)
        assert load["overload"]["raw"]["evidence"]["perf"]["counts"]["cycles"]
        served = {name: value for name, value, _ in load["served"]}
        assert served["cycles_per_packet"] == pytest.approx(2e9 / 500, rel=0.05)
        assert load["ready"] == {"generator": "moongen", "node": "pos:nida"}
    folder = run.path / "batches" / "001"
    assert (folder / "dut" / "setup.sh").exists()
    assert (folder / "loadgen" / "measurement.sh").exists()
    (tree,) = lab.pos.trees
    assert "P4_FWD: entering main loop" in next((tree / "cesis").glob("part0-main_run*.log")).read_text()


@pytest.mark.thorough
def test_t4p4s_that_does_not_come_up(lab, t4p4s):
    with pytest.raises(MeasurementError, match="no point could be measured on pos:cesis"):
        served_by_t4p4s(lab, t4p4s, "segfault", sets=("trials.max_attempts=1",))
    (run,) = map(RunDirectory.open, (lab.folder / "runs").iterdir())
    (entry,) = [entry for point in run.points() for entry in run.trials(point)]
    assert entry["failure"]["message"].startswith("node cesis: t4p4s failed to start: ")
    assert "segmentation fault" in entry["failure"]["message"]
    assert lab.pos.freed


def test_an_agilio_card(lab, monkeypatch):
    card = FakeCard(lab.folder / "sdk")
    lab.pos.more_facts = {"nfp_model": "lithium", "nfp4build_checksum": "1-2"}
    tools = {name: str(card.tools / name) for name in ("nfp4build", "rtecli")}
    run, outcome = lab.run("nfp4000", tools=tools)
    assert (outcome.failed, outcome.starved, outcome.complete) == ((), (), 1)
    for load in loads(run):
        assert load["overload"]["raw"]["evidence"]["drops"] == {"FAKE_INGRESS_DROPS": 100, "FAKE_ME_ERRORS": 0}
        assert load["overload"]["receive_rate_pps"] == pytest.approx(500, rel=0.02)
    assert card.state["loaded"] is None
