"""Sweeps on nodes that are reached by ssh: the same as on this machine, resumed after any loss, without secrets."""

import json
import os
import shutil
import signal
import subprocess

import pytest
from support.command import command, environment, p4perf
from support.sampling import sampled
from support.sshd import key, wait_until

SPEC = ["mat/exact-entries", "--set", "entries={log: [1, 10000], points_per_decade: 3}", "--target", "fake"]
LONG = ["mat/exact-entries", "--set", "entries={log: [1, 10000], points_per_decade: 9}", "--target", "fake"]
POINTS, REPETITIONS = 13, 3


def journal(run):
    """Records and trials by point; without what depends on time."""
    found = {}
    for path in sorted(run.glob("points/*/raw.jsonl")):
        lines = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1] if line]
        found[path.parent.name] = [(line["trial"], line.get("record"), line.get("failure")) for line in lines]
    return found


def only(folder):
    (run,) = [p for p in folder.glob("[!.]*") if (p / "manifest.json").exists()]
    return run


def test_a_sweep_is_the_one_of_this_machine(node, tmp_path):
    address = f"ssh:{node.node_file()}"
    there = p4perf("run", *SPEC, "--testbed", address, "-o", tmp_path / "there")
    assert there.code == 0, there.err
    here = p4perf("run", *SPEC, "-o", tmp_path / "here")
    run = only(tmp_path / "there")
    assert journal(run) == journal(only(tmp_path / "here"))
    assert len(journal(run)) == POINTS
    assert "ssh-dut" in run.name
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["testbed"] == "ssh:dut"
    assert manifest["place"] == {"address": f"{address}:dut", "node": "dut", "host": "127.0.0.1"}
    assert there.out == here.out, "the models are the same"


def test_no_secret_is_in_a_run(node, tmp_path):
    address = f"ssh:{node.node_file()}"
    assert p4perf("run", *SPEC, "--points", 2, "--testbed", address, "-o", tmp_path).code == 0
    secret = node.identity.read_text().splitlines()[2]
    for path in only(tmp_path).rglob("*"):
        if path.is_file():
            text = path.read_bytes()
            assert secret.encode() not in text
            assert str(node.identity).encode() not in text, path


@pytest.mark.thorough
@pytest.mark.parametrize("how", sampled(["node", "killed"], "killed"))
def test_a_run_goes_on_after_a_loss(new_node, tmp_path, how):
    """The node is cut off, or p4perf is killed, in the middle of a sweep."""
    node = new_node()
    words = command("run", *LONG, "--testbed", f"ssh:{node.node_file()}", "-o", tmp_path / "runs")
    with subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: begun(tmp_path / "runs"))
            if how == "node":
                node.stop()
            else:
                process.send_signal(signal.SIGKILL)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
    run = only(tmp_path / "runs")
    before = journal(run)
    if how == "node":
        assert process.returncode == 3, err
        assert err.splitlines()[-2].startswith("error: node dut, "), err
        refused = p4perf("resume", run)
        assert refused.code == 3
        assert "testbed ssh:dut cannot be used: node dut, connecting: nothing listens" in refused.err
        node.start()
    assert not list(run.rglob("*.tmp"))
    assert all(failure is None for trials in before.values() for _, _, failure in trials)
    (tmp_path / "elsewhere").mkdir()
    done = p4perf("resume", run, "--format", "json", cwd=tmp_path / "elsewhere")
    assert done.code == 0, done.err
    after = journal(run)
    assert len(after) == 37
    for point, trials in after.items():
        assert [t["attempt"] for t, _, _ in trials] == list(range(REPETITIONS)), point
        assert trials[: len(before.get(point, []))] == before.get(point, [])
    wait_until(lambda: not list((node.work / "sessions").iterdir()), what="the removal of what was half done")


def begun(runs):
    return any(len(path.read_bytes()) for path in runs.glob("[!.]*/points/*/raw.jsonl"))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("target", "code", "message"),
    [
        ("fake-dying", 4, "no point could be measured on ssh:dut"),
        ("fake-absent", 3, "target fake-absent cannot be used on ssh:dut"),
        ("fake-unbuildable", 3, "the build on node dut failed: a.c:1"),
        ("fake-wrong", 4, "packet 7 differs"),
    ],
)
def test_failures_of_targets(node, tmp_path, target, code, message):
    words = ("mat/exact-entries", "--points", 1, "--target", target, "--testbed", f"ssh:{node.node_file()}")
    done = p4perf("run", *words, "-o", tmp_path)
    assert (done.code, message in done.err) == (code, True), done.err


@pytest.mark.parametrize("fault", ["port", "host key", "identity"])
def test_a_node_that_cannot_be_used_leaves_no_run(node, tmp_path, fault):
    changes = {
        "port": lambda: {"port": 1},
        "host key": lambda: {"known_hosts": shutil.copy("/dev/null", tmp_path / "known_hosts")},
        "identity": lambda: {"identity": key(tmp_path / "other")},
    }
    file = node.node_file(tmp_path / "nodes.yaml", **changes[fault]())
    done = p4perf("run", *SPEC, "--testbed", f"ssh:{file}", "-o", tmp_path / "runs")
    assert done.code == 3
    assert done.err.startswith("error: testbed ssh:dut cannot be used: node dut, connecting: "), done.err
    assert done.err.count("\n") == 2, "one error and a hint"
    assert not (tmp_path / "runs").exists()


def test_mistakes_on_the_command_line(node, tmp_path):
    (tmp_path / "nodes.yaml").write_text("nodes: {a: {hots: x}}")
    for address, message in (
        ("ssh", "needs a node file"),
        ("ssh:missing.yaml", "there is no such node file"),
        ("ssh:nodes.yaml", "nodes.yaml:1:"),
        ("sssh:nodes.yaml", "did you mean ssh?"),
    ):
        done = p4perf("run", *SPEC, "--testbed", address, cwd=tmp_path)
        assert (done.code, message in done.err) == (2, True), done.err


@pytest.mark.thorough
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_full_disk_ends_a_run_that_can_be_resumed(new_node, tmp_path):
    node = new_node()
    node.work.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(node.work)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    node.restart()  # in a namespace that has the mount
    try:
        blocker = node.work / "blocker"
        blocker.write_bytes(bytes(108 << 10))
        words = (*SPEC[:-1], "fake-partly", "--set", "entries=[10, 20]", "--testbed", f"ssh:{node.node_file()}")
        done = p4perf("run", *words, "-o", tmp_path / "runs")
        assert (done.code, "disk is full" in done.err) == (3, True), done.err
        blocker.unlink()
        subprocess.run(["mount", "-o", "remount,size=8m", str(node.work)], check=True)
        again = p4perf("resume", only(tmp_path / "runs"))
        assert again.code == 0, again.err
    finally:
        node.stop()
        subprocess.run(["umount", "-l", str(node.work)], check=True)


@pytest.mark.thorough
def test_a_campaign(node, tmp_path):
    node.node_file(tmp_path / "nodes.yaml")
    words = ("mat/exact-entries", "--set", "entries=[10, 500, 2000]", "-t", "fake", "-t", "fake-small")
    done = p4perf("run", *words, "--testbed", "ssh:nodes.yaml", "-o", "runs", "--format", "json", cwd=tmp_path)
    folder = tmp_path / json.loads(done.out)["campaign"]
    assert {c["state"] for c in json.loads((folder / "campaign.json").read_text())["cells"]} <= {"measured", "partial"}
    again = p4perf("resume", folder, cwd=tmp_path / "runs")
    assert again.code == done.code, again.err


class TestDoctor:
    def test_a_node(self, node):
        done = p4perf("doctor", "--testbed", f"ssh:{node.node_file()}", "--format", "json")
        rows = json.loads(done.out)["rows"]
        assert not [r for r in rows if r["area"] == "testbed"]
        assert {r["area"] for r in rows} >= {"target", "tool", "setting"}

    def test_what_is_missing(self, node, tmp_path):
        file = node.node_file(tmp_path / "nodes.yaml", port=1)
        done = p4perf("doctor", "--testbed", f"ssh:{file}", "--format", "json")
        (row,) = json.loads(done.out)["rows"]
        assert done.code == 3
        assert (row["area"], row["check"], row["state"]) == ("testbed", "ssh:dut", "missing")
        assert "nothing listens" in row["value"]
        assert row["advice"]

    def test_settings_are_not_made_from_afar(self, node):
        done = p4perf("doctor", "--fix", "--testbed", f"ssh:{node.node_file()}")
        assert (done.code, "change this machine" in done.err) == (2, True)
