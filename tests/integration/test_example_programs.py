"""The example programs compile for both architectures, and do what their data say on bmv2 and on DPDK's pipeline."""

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import yaml
from support.examples import FOLDER, run_switch, tool, with_entries
from support.swx_programs import own_specification

from p4perf.experiment import open_target
from p4perf.formats.pcap import read_capture
from p4perf.programs.component import TrafficPlan
from p4perf.programs.interpreter import Interpreter
from p4perf.targets.base import TrialOptions
from p4perf.targets.dpdk_swx import HASHES

MAKE = tool()
NAMES = MAKE.names()
FILLING = 1100
QUICK = TrialOptions(mode="plain", windows=1, window_us=200, timeout_ms=50, warmup_ms=0)
every = pytest.mark.parametrize("name", NAMES)


def needed(name):
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not on the PATH")
    return path


def committed(name):
    return json.loads((FOLDER / name / f"{name}.json").read_text())


def ingress(name):
    (found,) = [p for p in committed(name)["pipelines"] if p["name"] == "ingress"]
    return found


def test_there_are_enough_programs_and_nothing_is_left_out():
    assert len(NAMES) >= 10
    assert set(NAMES) == {p.parent.name for p in FOLDER.glob("*/*.p4")} - {"include"}


@every
def test_the_data_are_about_the_program(name):
    """Names of tables, actions, parser states and conditions are those of the committed JSON."""
    data = MAKE.load(name)
    tables = {t["name"].rpartition(".")[2]: t for t in ingress(name)["tables"] if t["name"].startswith("MainControl.")}
    assert set(data["tables"]) == set(tables)
    for table, said in data["tables"].items():
        known = tables[table]
        assert [k["match_type"] for k in known["key"]] == [k.partition("/")[0] for k in said["keys"]]
        rows = list(MAKE.rows(said))
        assert len({tuple(match) for match, _, _ in rows}) == len(rows) <= known["max_size"]
        assert {f"MainControl.{action}" for _, action, _ in rows} <= set(known["actions"])
    shares = yaml.safe_load((FOLDER / name / "shares.yaml").read_text())
    assert {t: s["entries"] for t, s in shares["tables"].items()} == {
        t: sum(1 for _ in MAKE.rows(s)) for t, s in data["tables"].items()
    }
    states = {s["name"]: s["transitions"] for s in committed(name)["parsers"][0]["parse_states"]}
    for state, cases in shares.get("parser", {}).items():
        assert set(cases) == {int(t["value"], 16) for t in states[state] if t["type"] == "hexstr"}
        assert sum(cases.values()) <= 1
    assert set(shares.get("conditions", {})) == {c["name"] for c in ingress(name)["conditionals"]}


@every
def test_what_changes_is_a_number_of_the_packet(name):
    data = MAKE.load(name)
    offset, length, keys = (int(part) for part in data["vary"].split(":"))
    frame = bytes.fromhex(data["frame"])
    assert offset + length <= len(frame)
    assert int.from_bytes(frame[offset : offset + length], "big") < keys <= 1 << 8 * length


@every
def test_the_json_is_that_of_p4c(name):
    needed("p4c-bm2-ss")
    mine, today = committed(name), json.loads(MAKE.bmv2_json(name))
    if (ours := mine["__meta__"]["compiler"]) != (theirs := today["__meta__"]["compiler"]):
        pytest.skip(f"the JSON is of {ours}, here is {theirs}")
    assert mine == today


@every
def test_no_path_of_a_machine_is_in_the_json(name):
    text = (FOLDER / name / f"{name}.json").read_text()
    assert text.count("\n") == 1, "compact"
    files = set(re.findall(r'"filename": ?"([^"]*)"', text)) | {json.loads(text)["program"]}
    assert all(not Path(file).is_absolute() for file in files if "p4include" not in file)
    assert not re.search(r"/(home|tmp|opt|root|work)/", text)


@every
def test_bmv2_does_what_is_said(name):
    switch = needed("simple_switch")
    data = MAKE.load(name)
    program = with_entries(committed(name), data, lambda table: MAKE.rows(table, FILLING))
    with tempfile.TemporaryDirectory() as folder:  # a short path: that of a socket has a limit
        found = run_switch(switch, program, MAKE.capture(data), Path(folder), 20)
    port, frame = MAKE.outcome(data, "v1model")
    assert found == {port: frame}


@pytest.fixture(scope="module")
def specification(tmp_path_factory):
    """Compiles a program once."""
    folder, made = tmp_path_factory.mktemp("specs"), {}

    def specification(name):
        compiler = needed("p4c-dpdk")
        if name not in made:
            path = folder / f"{name}.spec"
            source = str(FOLDER / name / f"{name}.p4")
            done = subprocess.run(
                [compiler, "--arch", "pna", "-DPNA", "-o", str(path), source],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            made[name] = path.read_text()
        return made[name]

    return specification


def run(target, testbed, facts, text, data, folder):
    """The record of a trial; before, the interpreter says of the main path what the data say."""
    if problems := [p.what for p in target.problems(facts) if p.fatal]:
        pytest.skip(problems[0])
    keys = int(data["vary"].rpartition(":")[2])
    frames = [bytes.fromhex(data["frame"]), *(MAKE.varied(data, n) for n in (0, min(keys, FILLING) - 1))]
    frames = [frame.ljust(60, b"\0") for frame in frames]
    workload = own_specification(text, MAKE.swx_entries(data, FILLING), frames=frames)
    port, sent = MAKE.outcome(data, "pna")
    for n, frame in enumerate(frames):
        outcome = Interpreter(workload.program, dict(HASHES)).run(frame)
        labels = {table.name: table.label for table in workload.program.tables}
        assert {labels[name] for name in outcome.hits} == {
            name for name, table in data["tables"].items() if table["hit"]
        }
        assert outcome.port == port
        assert n or outcome.data[: len(sent)] == sent
    plan = target.plan(workload, TrafficPlan(len(frames[0]) + 4), facts)
    return target.parse(testbed.run(target.trial(plan, QUICK, facts), folder))


@pytest.mark.dpdk
@pytest.mark.usefixtures("dpdk")
@every
def test_the_pipeline_of_dpdk_does_what_is_said(name, specification, testbed, facts, tmp_path):
    """The frame comes out as expected, and the tables of the main path, and no others, were hit."""
    target, data = open_target("dpdk-swx:interpreter"), MAKE.load(name)
    record = run(target, testbed, facts, specification(name), data, tmp_path)
    assert record["verified_packets"] > 500


@pytest.mark.dpdk
@pytest.mark.usefixtures("dpdk")
@pytest.mark.parametrize("name", ["nat", "vxlan_gateway"])
def test_the_compiled_pipeline_as_well(name, specification, testbed, facts, tmp_path):
    target, data = open_target("dpdk-swx"), MAKE.load(name)
    record = run(target, testbed, facts, specification(name), data, tmp_path)
    assert record["verified_packets"] > 500


class TestFiles:
    """What ``make.py`` writes."""

    def test_all_files(self, tmp_path):
        MAKE.write("nat", tmp_path)
        assert {p.name for p in tmp_path.iterdir()} == {f"nat.{s}" for s in ("entries", "commands", "pcap")}
        assert read_capture(tmp_path / "nat.pcap").frames[0].hex() == MAKE.load("nat")["frame"]
        assert len((tmp_path / "nat.entries").read_text().splitlines()) == 10_000 + 100 + 2
        assert len((tmp_path / "nat.commands").read_text().splitlines()) == 10_000 + 100

    def test_entries(self):
        data = MAKE.load("acl_firewall")
        lines = MAKE.swx_entries(data, 1).splitlines()
        first = "match 0x0a010200/0xffffff00 0x00000000/0x00000000 0x0/0x0 0x19/0xffff 0x6/0xff"
        assert lines[:2] == ["table access_list", f"{first} priority 0 action deny rule 0x1"]
        routes = MAKE.swx_entries(MAKE.load("ipv4_router"), 2).splitlines()
        assert routes[1:4] == [
            "match 0x00000000/0x00000000 action set_next_hop next_hop 0x1",
            "match 0x14000000/0xffffff00 action set_next_hop next_hop 0x7",
            "match 0x14000100/0xffffff00 action set_next_hop next_hop 0x7",
        ]
        labels = MAKE.swx_entries(MAKE.load("mpls_router"), 2).splitlines()
        assert labels[2:4] == [f"match {n} action swap label 0x7d2 next_hop 0x7" for n in ("0x9", "0x19")]
        limits = MAKE.swx_entries(MAKE.load("rate_limiter"), 2).splitlines()
        assert limits[2] == "match 0xa010001 action set_subscriber subscriber 0x1"

    def test_commands(self):
        lines = MAKE.bmv2_commands(MAKE.load("ipv4_router"), 1).splitlines()
        assert lines[1] == "table_add MainControl.routes MainControl.set_next_hop 0x14000000/24 => 0x7"

    def test_a_program_that_is_not_there(self):
        done = subprocess.run(
            ["python3", str(FOLDER / "make.py"), "nothing"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert "there are acl_firewall" in done.stderr
