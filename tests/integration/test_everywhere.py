"""One spec on every testbed, with a real target: runs that are of the same points, and that can be compared."""

import json
from pathlib import Path

import pytest
from support.command import p4perf
from support.pos import FakePos

from p4perf.testbeds.local import NetnsTestbed

pytestmark = [pytest.mark.dpdk, pytest.mark.usefixtures("dpdk")]

SPEC = ("mat/exact-entries", "--points", 6, "--set", "entries=[100, 1000]", "--set", "trials.repetitions=1")


def only(folder):
    (run,) = [p for p in folder.glob("[!.]*") if (p / "manifest.json").exists()]
    return run


def manifest(run):
    return json.loads((run / "manifest.json").read_text())


def records(run):
    lines = [line for path in run.glob("points/*/raw.jsonl") for line in path.read_text().splitlines()]
    return [json.loads(line)["record"] for line in lines]


@pytest.fixture
def addresses(tmp_path, new_node):
    """The testbeds of this machine: of two nodes one is the device under test, as on a testbed with both."""
    dut, sender = new_node("dut"), new_node("sender")
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text(f"nodes:\n{dut.entry(roles='[dut]')}{sender.entry(roles='[loadgen]')}")
    pos = FakePos(tmp_path / "pos")
    found = {"local": "local", "ssh": f"ssh:{nodes}", "pos": f"pos:{pos.site()}"}
    return found if NetnsTestbed(tmp_path / "cache").problems() else {**found, "netns": "netns"}


@pytest.mark.thorough  # each testbed has tests of its own
def test_one_spec_on_every_testbed(addresses, tmp_path):
    runs: dict[str, Path] = {}
    codes = set()
    for name, address in addresses.items():
        words = ("--target", "dpdk-c", "--quiet", "--testbed", address, "-o", tmp_path / "runs" / name)
        done = p4perf("run", *SPEC, *words, timeout=300)
        # A machine that others disturb may accept no trial.
        assert done.code in (0, 4), done.err
        codes.add(done.code)
        runs[name] = only(tmp_path / "runs" / name)
    for run in runs.values():
        assert (run / "spec.yaml").read_bytes() == (runs["local"] / "spec.yaml").read_bytes()
        assert manifest(run)["planned_points"] == manifest(runs["local"])["planned_points"]
        assert manifest(run)["calibrations"][0]["cpus"]
        assert len(records(run)) >= 2
        assert all(record["verified_packets"] > 1000 for record in records(run))
    assert manifest(runs["ssh"])["place"]["node"] == "dut"
    if codes == {0}:
        words = ("--format", "json", "--output", tmp_path / "comparison")
        compared = p4perf("compare", *runs.values(), *words)
        assert compared.code == 0, compared.err
        (experiment,) = json.loads(compared.out)["experiments"]
        assert [run["testbed"] for run in experiment["runs"]] == [manifest(run)["testbed"] for run in runs.values()]
        assert experiment["shared_points"] == [100, 1000]
