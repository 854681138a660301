"""The fake of pos is as pos is known to be; scripts of a user work with it."""

import json
import re
import subprocess

import pytest
import yaml
from support.pos import FakePos

from p4perf.evaluation.imports.moongen import scan_tree

SCRIPT = """#!/bin/sh
echo "run $(pos_get_variable -l pkt_sz)"
echo word >throughput.log
pos_upload --loop throughput.log
pos_upload --loop throughput.log --outfile histogram-0.1.csv
"""


class Site:
    """An allocation of both nodes of a fake, booted."""

    def __init__(self, folder, loop, **config):
        self.pos = FakePos(folder / "pos", **config)
        self.folder = folder
        self.results = self.cli("allocations", "allocate", "cesis", "nida", "--result-folder", "mine").split()[-1]
        (folder / "loop.yml").write_text(yaml.safe_dump(loop))
        (folder / "own.yml").write_text("port: {rx: 1}\nname: it's\n")
        self.cli("allocations", "set_variables", "-l", "nida", str(folder / "loop.yml"))
        self.cli("allocations", "set_variables", "cesis", str(folder / "own.yml"))
        for node in ("cesis", "nida"):
            self.cli("nodes", "image", node, "debian-buster")
            self.cli("nodes", "reset", node)

    def cli(self, *words, code=0):
        done = subprocess.run([*self.pos.cli, *words], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    def launch(self, node, text, *words):
        (self.folder / "script.sh").write_text(text)
        return self.cli(
            "commands", "launch", "--infile", str(self.folder / "script.sh"), "--queued", *words, node
        ).strip()

    def files(self, node="cesis"):
        return {p.name: p.read_text() for p in (self.pos.folder / self.results / node).iterdir()}


def test_the_tree(tmp_path):
    site = Site(tmp_path, {"pkt_rate": [1, 2], "cpu_frequency": [800, 1200, 1600], "pkt_sz": [64, 1518]})
    command = site.launch("cesis", SCRIPT, "--loop", "--name", "measurement")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d{6}_measurement", command)
    site.cli("commands", "await", command)
    files = site.files()
    loops = [json.loads(files[f"{command}_run{n:02}.loop"]) for n in range(12)]
    expected = [(s, r, f) for s in (64, 1518) for r in (1, 2) for f in (800, 1200, 1600)]
    assert [(x["pkt_sz"], x["pkt_rate"], x["cpu_frequency"]) for x in loops] == expected
    assert list(loops[0]) == ["pkt_sz", "pkt_rate", "cpu_frequency"]
    assert files[f"{command}_run07.stdout"] == r"b'run 1518\n'"
    assert files[f"{command}_run07.stderr"] == "b''"
    assert files[f"{command}_run07.status"] == "finished"
    assert files[f"{command}_run07.file"] == SCRIPT
    assert files["throughput_run07.log"] == files["histogram-0.1_run07.csv"] == "word\n"
    allocation = json.loads((site.pos.folder / site.results / "config" / "allocation.json").read_text())
    assert list(allocation["variables"]["loop"]) == ["pkt_sz", "pkt_rate", "cpu_frequency"]
    assert allocation["token"]
    assert len(scan_tree(site.pos.folder / site.results)[0]) == 12, "the importer reads it"


def test_a_command_without_a_name_that_fails(tmp_path):
    site = Site(tmp_path, {"a": 1})
    command = site.launch("cesis", "#!/bin/sh\npos_get_variable no/such\n")
    site.cli("commands", "await", command)
    assert command.endswith("_unknown")
    assert site.files()[f"{command}.status"] == "error"
    assert site.files()[f"{command}.stderr"] == r"b'variable no/such unknown\n'"
    said = json.loads(site.cli("commands", "await", command, "--verbose", "true"))
    assert (said["exit_status"], said["node"]) == (1, "cesis")


def test_variables_that_are_set_after_the_reset_are_not_on_the_node(tmp_path):
    site = Site(tmp_path, {"a": 1})
    (tmp_path / "late.yml").write_text("late: 1\n")
    site.cli("allocations", "set_variables", "cesis", str(tmp_path / "late.yml"))
    script = "#!/bin/sh\npos_get_variable port/rx; pos_get_variable name; pos_get_variable late\n"
    command = site.launch("cesis", script)
    site.cli("commands", "await", command)
    assert site.files()[f"{command}.stdout"] == '''b"1\\nit's\\n"'''
    assert "late unknown" in site.files()[f"{command}.stderr"]


def test_scripts_of_two_nodes_in_step(tmp_path):
    """A barrier, a process in the background that is ended, and one that waits in vain."""
    site = Site(tmp_path, {"a": [1, 2]}, sync_timeout_s=10)
    log = tmp_path / "log"
    device = f"#!/bin/sh\nset -e\nsleep 0.3; echo dut >>{log}\npos_sync --loop --tag up\npos_sync --loop -t down\n"
    load = f"""#!/bin/sh
set -e
pos_sync --loop --tag up
echo load >>{log}
pos_run loadgen --loop -- sh -c 'trap "echo done; exit" TERM; echo begun; while :; do sleep 0.05; done'
sleep 0.3
pos_kill --loop loadgen
pos_wait --loop loadgen --timeout 10
pos_sync --loop -t down
"""
    commands = [site.launch("cesis", device, "--loop"), site.launch("nida", load, "--loop")]
    for command in commands:
        site.cli("commands", "await", command)
    assert log.read_text().split() == ["dut", "load"] * 2
    files = site.files("nida")
    assert files["loadgen_run0.stdout"] == files["loadgen_run1.stdout"] == "begun\ndone\n"
    assert files["loadgen_run0"].startswith("['sh', '-c', ")
    assert [files[f"{commands[1]}_run{n}.status"] for n in (0, 1)] == ["finished"] * 2


def test_a_barrier_that_nobody_else_reaches(tmp_path):
    site = Site(tmp_path, {"a": 1}, sync_timeout_s=0.3)
    command = site.launch("cesis", "#!/bin/sh\npos_sync -t alone\n")
    site.cli("commands", "await", command)
    assert site.files()[f"{command}.status"] == "error"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("allocations", "allocate", "cesis"), "Nodes are already allocated: cesis"),
        (("allocations", "free", "nobody"), "Resource is neither allocation nor node"),
        (("nodes", "image", "other", "x"), "not allocated"),
    ],
)
def test_refusals(tmp_path, words, said):
    site = Site(tmp_path, {"a": 1})
    assert said in site.cli(*words, code=1)


def test_a_script_needs_a_shebang(tmp_path):
    site = Site(tmp_path, {"a": 1})
    (tmp_path / "script.sh").write_text("echo x\n")
    words = ("commands", "launch", "--infile", str(tmp_path / "script.sh"), "cesis")
    assert "Exec format error" in site.cli(*words, code=1)
    assert list((site.pos.folder / site.results / "cesis").iterdir())
