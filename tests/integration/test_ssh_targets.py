"""Real targets on a node that is reached by ssh: one tiny sweep, and one conversation with the load generator."""

import json
import os

import pytest
from support.command import p4perf

pytestmark = pytest.mark.usefixtures("dpdk")

LOAD = """\
name: my/load
program: {component: match_action_table, parameters: {entries: $entries}}
metrics: {collect: [throughput_ndr, latency], optional: [loss_ratio]}
traffic: {frame_size: 128}
sweep: {entries: [10]}
load: {trial_ms: 50, latency_ms: 50, trials_per_load: 1, exceed_ratio: 0, width: 0.1}
trials: {repetitions: 1}
"""


def records(folder):
    (run,) = folder.iterdir()
    texts = [path.read_text() for path in run.glob("points/*/raw.jsonl")]
    return run, [json.loads(line) for text in texts for line in text.splitlines()]


@pytest.mark.thorough
def test_dpdk_c(node, tmp_path):
    spec = ("mat/exact-entries", "--set", "entries=[100, 1000]", "--set", "trials.repetitions=1")
    words = ("--target", "dpdk-c", "--testbed", f"ssh:{node.node_file()}", "-o", tmp_path / "runs", "--quiet")
    done = p4perf("run", *spec, *words, timeout=300)
    # A machine that others disturb may accept no trial.
    assert done.code in (0, 4), done.err
    run, entries = records(tmp_path / "runs")
    assert len(entries) >= 2
    assert all(entry["record"]["verified_packets"] > 1000 for entry in entries)
    assert all((run / "points" / p["hash"] / "verify.bin").exists() for p in manifest(run)["points"])
    assert manifest(run)["testbed"] == "ssh:dut"
    assert list((node.work / "builds").glob("*/dpdk-c"))


@pytest.mark.thorough
def test_load_generator(node, tmp_path):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("generator and device need a CPU each")
    (tmp_path / "spec.yaml").write_text(LOAD)
    words = ("--target", "dpdk-c", "--testbed", f"ssh:{node.node_file()}", "-o", tmp_path / "runs", "--quiet")
    done = p4perf("run", tmp_path / "spec.yaml", *words, timeout=300)
    assert done.code in (0, 4), done.err
    _, entries = records(tmp_path / "runs")
    assert entries
    assert all({"search", "offered", "alone"} <= set(entry["load"]) for entry in entries)
    assert all(entry["load"]["ready"]["verified_packets"] > 1000 for entry in entries)


def manifest(run):
    return json.loads((run / "manifest.json").read_text())
