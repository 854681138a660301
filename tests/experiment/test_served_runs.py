"""Sweeps on two nodes: a device on one, MoonGen on the other, the same spec as everywhere."""

import json

import pytest
from support.command import p4perf
from support.moongen import moongen, why_not

from p4perf.results import RunDirectory

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

SPEC = ["mat/exact-entries", "--points", 2, "--set", "trials.repetitions=1", "--target", "fake-served"]


@pytest.fixture
def nodes(new_node, tmp_path):
    """A node file: the device has a capacity of 500 packets per second, of 800 with the baseline."""
    dut, sender = new_node("dut"), new_node("sender")
    capacity = tmp_path / "capacity"

    def written(**options):
        path = moongen(tmp_path / "MoonGen", capacity, **{"link_mbit": 1, **options})
        file = tmp_path / "nodes.yaml"
        file.write_text(
            "nodes:\n"
            + dut.entry(roles="[dut]", cpu_ghz=2.0, tools=f"{{fake_capacity: {capacity}}}")
            + sender.entry(
                roles="[loadgen]",
                load_generator="moongen",
                tools=f"{{moongen: {path}}}",
                interfaces="{tx: '0000:04:00.0', rx: '0000:04:00.1'}",
            )
        )
        return f"ssh:{file}"

    written.dut, written.sender, written.capacity = dut, sender, capacity
    return written


def only(folder):
    (run,) = [p for p in folder.glob("[!.]*") if (p / "manifest.json").exists()]
    return RunDirectory.open(run)


def medians(run):
    table = run.read_measurements()
    return table[table["accepted"]].groupby("metric")["value"].median()


def test_a_sweep(nodes, tmp_path):
    result = p4perf("run", *SPEC, "--testbed", nodes(), "-o", tmp_path / "runs")
    assert result.code == 0, result.err
    run = only(tmp_path / "runs")
    found = medians(run)
    assert found["packet_rate"] == pytest.approx(500e-6, rel=0.02)
    assert found["receive_rate"] == found["packet_rate"]
    assert found["cycles_per_packet"] == pytest.approx(2e9 / 500, rel=0.02)
    assert found["cost_cycles_per_packet"] == pytest.approx(2e9 / 500 - 2e9 / 800, rel=0.05)
    manifest = run.manifest()
    assert manifest["place"]["load_generator_node"] == "sender"
    entry = json.loads((run.path / "points" / run.points()[0] / "raw.jsonl").read_text().splitlines()[0])
    assert entry["load"]["generator"] == "moongen"
    assert entry["load"]["overload"]["raw"]["evidence"] == {"counting before": "500\n", "counting after": "500\n"}
    assert entry["load"]["baseline"]["raw"]["evidence"] == {"counting before": "800\n", "counting after": "800\n"}
    assert not nodes.capacity.exists(), "the device was released"


@pytest.mark.thorough  # runs with a load generator of our own measure latency, too
def test_latency(nodes, tmp_path):
    sets = ["--set", "metrics.collect=[packet_rate, cycles_per_packet, latency]", "--set", "traffic.latency_at=[0.5]"]
    sets += ["--set", "load.search=overload"]
    address = nodes(link_mbit=10)  # probes and load do not wait for each other there
    result = p4perf("run", *SPEC, *sets, "--points", 1, "--testbed", address, "-o", tmp_path / "runs")
    assert result.code == 0, result.err
    found = medians(only(tmp_path / "runs"))
    assert found["latency_p50_at_50"] == pytest.approx(5.03, abs=0.05)
    assert found["offered_rate_at_50"] == pytest.approx(250e-6, rel=0.05)
    assert "latency_floor_p50_at_50" not in found


@pytest.mark.thorough
def test_what_fails_names_the_node_and_goes_on(nodes, tmp_path):
    address = nodes(no_timestamps=True)
    sets = ["--set", "metrics.collect=[packet_rate, cycles_per_packet, latency]", "--set", "load.search=overload"]
    sets += ["--set", "trials.max_attempts=1"]
    words = ["run", *SPEC, *sets, "--points", 1, "--testbed", address, "-o", tmp_path / "runs"]
    failed = p4perf(*words)
    assert failed.code == 4, failed.err
    assert "ssh:sender, latency.lua: MoonGen failed" in failed.err
    assert not nodes.capacity.exists(), "the device was released"


@pytest.mark.thorough
def test_the_sender_cannot_be_reached(nodes, tmp_path):
    address = nodes()
    nodes.sender.stop()
    failed = p4perf("run", *SPEC, "--testbed", address, "-o", tmp_path / "runs")
    assert failed.code == 3
    assert "error: node sender, connecting: nothing listens" in failed.err
    nodes.sender.start()
    resumed = p4perf("resume", only(tmp_path / "runs").path)
    assert resumed.code == 0, resumed.err
