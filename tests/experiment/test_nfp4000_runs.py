"""A run on an Agilio CX: the fakes of its tools on one node, the double of MoonGen on another."""

import json
import os

import pytest
from support.command import p4perf
from support.netronome import FakeCard

from p4perf.results import RunDirectory

double = pytest.importorskip("support.moongen", reason="there is no double of MoonGen to send load")
pytestmark = pytest.mark.skipif(double.why_not() is not None, reason=str(double.why_not()))

SPEC = ["mat/exact-entries", "--points", 1, "--set", "entries=[10]", "--set", "trials.repetitions=1"]
METRICS = ["--set", "metrics.collect=[packet_rate, compile_time]", "--set", "model.y=packet_rate"]


@pytest.mark.thorough
def test_a_run(new_node, tmp_path):
    card = FakeCard(tmp_path / "sdk")
    dut, sender = new_node("dut", f"SetEnv PATH={card.tools}:{os.environ['PATH']}"), new_node("sender")
    capacity = tmp_path / "capacity"
    capacity.write_text("500")
    tool = double.moongen(tmp_path / "MoonGen", capacity, link_mbit=1)
    interfaces = "{tx: '0000:04:00.0', rx: '0000:04:00.1'}"
    more = {"load_generator": "moongen", "tools": f"{{moongen: {tool}}}", "interfaces": interfaces}
    file = tmp_path / "nodes.yaml"
    file.write_text("nodes:\n" + dut.entry(roles="[dut]") + sender.entry(roles="[loadgen]", **more))
    words = ["--target", "nfp4000", "--testbed", f"ssh:{file}", "-o", tmp_path / "runs"]
    result = p4perf("run", *SPEC, *METRICS, *words)
    assert result.code == 0, result.err
    (folder,) = [path for path in (tmp_path / "runs").glob("[!.]*") if (path / "manifest.json").exists()]
    run = RunDirectory.open(folder)
    table = run.read_measurements()
    found = dict(zip(table["metric"], table["value"], strict=True))
    assert found["packet_rate"] == pytest.approx(500e-6, rel=0.02)
    assert found["compile_time"] >= 0
    (entry,) = map(json.loads, (folder / "points" / run.points()[0] / "raw.jsonl").read_text().splitlines())
    evidence = entry["load"]["overload"]["raw"]["evidence"]
    assert evidence["drops"] == {"FAKE_INGRESS_DROPS": 100, "FAKE_ME_ERRORS": 0}
    assert evidence["firmware"]["worker_mes"] == 27
    assert list(evidence["firmware"]["tables"]) == ["MainIngress::table_exact"]
    assert card.state["loaded"] is None, "the card was released"
    assert len(card.calls("nfp4build")) == 2, "program and baseline"
