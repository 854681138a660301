"""Testbed netns: what jobs see of the network, and which link load generators take."""

import subprocess

import pytest

from p4perf.experiment import open_target, open_testbed
from p4perf.experiment.planning import plan_sweep
from p4perf.specs import load_experiment
from p4perf.targets.base import Job, NodeFacts
from p4perf.testbeds.local import LINK, NetnsTestbed


@pytest.fixture
def testbed(tmp_path):
    found = NetnsTestbed(tmp_path / "cache")
    if problems := found.problems():
        pytest.skip(problems[0].what)
    return found


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def test_it_is_registered():
    assert isinstance(open_testbed("netns"), NetnsTestbed)


def test_a_job_sees_no_interface_but_its_own(testbed, folder):
    result = testbed.run(Job(("ip", "-o", "link"), 10.0), folder)
    assert result.returncode == 0
    assert [line.split(": ")[1] for line in result.stdout.splitlines()] == ["lo"]


def test_what_a_job_makes_goes_with_it(testbed, folder):
    job = Job(("sh", "-c", "ip link add p4perf0 type veth peer name p4perf1 && ip -o link | wc -l"), 10.0)
    for _ in range(2):
        assert testbed.run(job, folder).stdout.split() == ["3"]
    mine = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    assert "p4perf0" not in mine


def test_a_conversation_is_in_a_namespace_as_well(testbed, folder):
    job = Job(("sh", "-c", 'while read -r line; do printf \'{"n": %s}\\n\' "$(ip -o link | wc -l)"; done'), 10.0)
    with testbed.converse(job, folder) as conversation:
        assert conversation.ask("how many", 5.0) == '{"n": 1}'


def test_without_the_tools_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr("shutil.which", lambda name: None if name in ("unshare", "ip") else "/bin/" + name)
    assert [p.hint for p in NetnsTestbed(tmp_path).problems()] == [
        "install the package util-linux",
        "install the package iproute2",
    ]


@pytest.mark.parametrize(
    ("facts", "overrides", "link"),
    [
        ({}, (), "ring"),
        ({"link": LINK}, (), "af-packet"),
        ({"link": LINK}, (("load.link", "memif"),), "memif"),
        ({"link": "no link of that target"}, (), "ring"),
    ],
)
def test_the_link_of_load_generators(facts, overrides, link):
    experiment = load_experiment("load/rate", points=2, overrides=overrides)
    known = NodeFacts({"cpus_allowed": "0-1", "cpus": "2", **facts})
    assert {p.load.link.kind for p in plan_sweep(experiment, open_target("dpdk-c"), known).points} == {link}
