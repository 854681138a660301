"""An Agilio CX comes up, is watched and goes down through a testbed, with fakes of the tools of its SDK."""

import json
import os
import subprocess

import pytest
from support.command import p4perf
from support.netronome import FakeCard
from support.p4_programs import A, C, table, with_table
from support.p4_programs import program as make_program
from support.p4_programs import workload as of_program

from p4perf.errors import BuildError, MeasurementError
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.programs.ir import METADATA, ApplyTable, FieldRef
from p4perf.targets import nfp4000
from p4perf.targets.base import BuildPlan, NodeFacts
from p4perf.targets.nfp4000 import Nfp4000Target
from p4perf.testbeds.local import LocalTestbed
from p4perf.testbeds.serving import ServedDevice
from p4perf.testbeds.ssh.testbed import SshTestbed

TARGET = Nfp4000Target()


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(nfp4000, "SETTLE_S", 0.0)


@pytest.fixture
def card(tmp_path):
    return FakeCard(tmp_path / "sdk")


@pytest.fixture
def testbed(tmp_path):
    return LocalTestbed(tmp_path / "cache")


@pytest.fixture
def device(card, testbed, tmp_path):
    """Makes the device of a point."""
    (tmp_path / "point").mkdir()

    def make(workload=None, target=TARGET, bed=testbed, **facts):
        known = card.facts(**facts)
        plan = target.plan(workload or exact(), TrafficPlan(128), known)
        return ServedDevice(target, plan, bed, known, tmp_path / "point")

    return make


def exact(entries=20, **more):
    return build_workload([("match_action_table", {"entries": entries, **more})], frame_size_bytes=128)


def loads(card):
    return [call for call in card.calls("rtecli") if call[0] == "design-load"]


def test_it_comes_up_is_watched_and_goes_down(card, device):
    with device() as served:
        served.switch("program")
        (rules,) = card.state["rules"].values()
        assert rules == 20
        served.check()
        with served.watched() as seen:
            pass
        evidence = TARGET.evidence(seen)
        served.switch("program")
        assert len(loads(card)) == 1, "it runs already"
    assert card.state["loaded"] is None
    assert [call[0] for call in card.calls("rtecli")][-2:] == ["status", "design-unload"]
    assert evidence["counters"]["before"]["FAKE_PACKETS_IN"] == 0, "counters were cleared"
    assert evidence["drops"] == {"FAKE_INGRESS_DROPS": 100, "FAKE_ME_ERRORS": 0}
    firmware = evidence["firmware"]
    assert firmware["worker_mes"] == 27
    assert [t["max_entries"] for t in firmware["tables"].values()] == [21]
    overload = {"program": {"receive_rate_pps": 5e6, "evidence": evidence}, "baseline": {}}
    assert {m.metric for m in TARGET.served_metrics(overload, {})} == set(TARGET.metrics)


@pytest.mark.thorough
def test_program_and_baseline_take_turns_and_are_built_once(card, device):
    with device() as served:
        for program in ("program", "baseline", "program"):
            served.switch(program)
            assert bool(card.state["rules"]) == (program == "program")
    with device() as served:
        served.switch("program")
    assert len(loads(card)) == 4
    assert len(card.calls("nfp4build")) == 2


def test_design_and_firmware_are_kept_beside_each_other(card, device, testbed):
    plan = device()._plan
    folder = testbed.build(plan.build)
    assert (folder / "firmware.nffw").read_bytes().startswith(b"NFFW")
    assert json.loads((folder / "out" / "pif_design.json").read_text())["vendor"]["tables_info"]
    assert int((folder / "compile_ms").read_text()) >= 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["exact", "lpm", "ternary"])
def test_rules_of_every_kind_are_taken(card, device, kind):
    with device(of_program(with_table(kind, 30, free_bits=0 if kind == "exact" else 8))) as served:
        served.switch("program")
        assert card.state["rules"] == {"MainIngress::lookup": 30}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("metadata", ["bare", "prefixed"])
def test_keys_in_metadata_have_the_name_that_the_compiler_gave_them(card, device, metadata):
    card.behave(metadata=metadata)
    keys = (FieldRef(METADATA, "word"), A)
    program = make_program(tables=(table(keys=keys, count=9),), control=(ApplyTable("lookup"),))
    with device(of_program(program)) as served:
        served.switch("program")
        assert card.state["rules"] == {"MainIngress::lookup": 9}


@pytest.mark.thorough
def test_names_that_are_reserved_are_the_same_in_program_and_rules(card, device):
    program = make_program(tables=(table(name="apply", keys=(C,), count=3),), control=(ApplyTable("apply"),))
    with device(of_program(program)) as served:
        served.switch("program")
        assert card.state["rules"] == {"MainIngress::apply_": 3}


@pytest.mark.thorough
def test_variants_reach_the_compiler(card, device):
    with device(target=Nfp4000Target(["flowcache", "reduced-threads"])) as served:
        served.switch("program")
        with served.watched() as seen:
            pass
    evidence = TARGET.evidence(seen)
    (words,) = card.calls("nfp4build")
    assert "flowcache" not in " ".join(words)
    assert evidence["firmware"]["reduced_thread_usage"] is True


@pytest.mark.thorough
def test_output_of_an_older_rtecli(card, device):
    card.behave(print="python2")
    with device() as served:
        served.switch("program")
        with served.watched() as seen:
            pass
        assert TARGET.evidence(seen)["counters"]["difference"]["FAKE_PACKETS_OUT"] == 900
        card.behave(print="damaged")
        with served.watched() as seen:
            pass
        assert "unread" in TARGET.evidence(seen)["counters"]["before"]


# Failures -------------------------------------------------------------------------------------------------------------


def failing(served, kind=MeasurementError):
    with served, pytest.raises(kind) as caught:
        served.switch("program")
    return caught.value


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("how", "message", "key"),
    [
        ({"runtime": "down"}, "asking the runtime of the card (rtecli status): the runtime does not answer", None),
        ({"load": "busy"}, "somebody else is loading a design", None),
        ({"load": "fails"}, "ended with status 1: error: firmware load failed", "refused"),
        ({"ports": [0, 4]}, "unknown port p1", "refused"),
    ],
)
def test_what_goes_wrong_is_told_once_and_well(card, device, how, message, key):
    card.behave(**how)
    failure = failing(device())
    assert message in failure.message
    assert failure.key == key
    assert failure.hint
    assert card.state["loaded"] is None


@pytest.mark.thorough
def test_a_port_of_the_program_that_the_card_lacks(card, device):
    """The baseline has no rules that the runtime would refuse."""
    card.behave(ports=[0, 4])
    served = device()
    with served, pytest.raises(MeasurementError, match="sends by port p1, and the card has p0 p4") as caught:
        served.switch("baseline")
    assert caught.value.key == "refused"
    assert card.state["loaded"] is None


def test_a_runtime_that_is_silent(card, device, monkeypatch):
    short = nfp4000.script_text().replace(b"ANSWER_S=30", b"ANSWER_S=1")
    monkeypatch.setattr(nfp4000, "script_text", lambda: short)
    card.behave(runtime="silent")
    failure = failing(device())
    assert "the runtime does not answer" in failure.message
    assert "systemctl start nfp-sdk6-rte" in failure.hint


@pytest.mark.thorough
def test_firmware_of_another_kind_and_how_it_is_unloaded(card, device, monkeypatch, tmp_path):
    log = tmp_path / "rte.log"
    log.write_text("old\n" * 20 + "Incompatible firmware detected, use 'nfp-nffw unload -n 0 ' to unload firmware\n")
    monkeypatch.setattr(nfp4000, "LOG", str(log))
    card.behave(runtime="incompatible")
    failure = failing(device())
    assert "holds a firmware that the runtime does not know" in failure.message
    assert failure.hint.startswith("unload it with nfp-nffw unload -n 0")
    subprocess.run([str(card.tools / "nfp-nffw"), "unload", "-n", "0"], check=True)
    with device() as served:
        served.switch("program")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("fails", "nfcc: error: code does not fit into the code store"),
        ("empty", "error: nfp4build left no firmware.nffw"),
        ("no-design", "error: nfp4build left no out/pif_design.json"),
        ("dies", "Killed|no message"),
    ],
)
def test_a_build_that_fails_leaves_nothing_and_is_tried_again(card, device, testbed, tmp_path, how, message):
    card.behave(build=how)
    failure = failing(device(), BuildError)
    assert any(word in failure.message for word in message.split("|"))
    assert not list((tmp_path / "cache" / "builds").iterdir())
    card.behave()
    assert (testbed.build(device()._plan.build) / "firmware.nffw").exists()


def test_a_build_takes_its_time_but_not_for_ever(card, device, monkeypatch):
    monkeypatch.setattr(nfp4000, "BUILD_TIMEOUT_S", 0.5)
    card.behave(build="slow")
    assert "took too long" in failing(device(), BuildError).message


def test_a_plan_says_how_long_its_commands_may_take(testbed):
    slow = BuildPlan({}, (("sleep", "5"),), "made", timeout_s=0.2)
    with pytest.raises(BuildError, match="took too long"):
        testbed.build(slow)
    assert slow.key == BuildPlan({}, (("sleep", "5"),), "made").key, "the product is the same"


# The tools ------------------------------------------------------------------------------------------------------------


def test_the_fake_compiler_refuses_what_the_real_one_does(card, tmp_path):
    tool = str(card.tools / "nfp4build")
    source = tmp_path / "program.p4"
    workload = of_program(with_table())
    good = TARGET.plan(workload, TrafficPlan(128), card.facts()).build.files["program.p4"]

    def run(text, *words):
        source.write_text(text)
        return subprocess.run(
            [tool, "-o", "f.nffw", "-p", "out", "-4", "program.p4", "-l", "lithium", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )

    assert run(good).returncode == 0
    assert run(good, "--reduced-threads").returncode == 2
    assert run(good.replace("mark_to_drop()", "mark_to_drop(standard_metadata)")).returncode == 1
    assert "egress_spec" in run(good.replace("PORT_BITS 16", "PORT_BITS 9")).stdout
    assert run(good[:-40]).returncode == 1


def test_the_probe_finds_tools_and_card(card, testbed, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{card.tools}:{os.environ['PATH']}")
    facts = testbed.facts()
    assert facts.text("tool_nfp4build") == str(card.tools / "nfp4build")
    assert facts.text("tool_rtecli") == str(card.tools / "rtecli")
    assert (facts.text("nfp_model"), facts.text("nfp_partno")) == ("lithium", "AMDA0096-0001")
    assert facts.text("nfp4build_checksum")
    assert TARGET.problems(facts) == ()
    card.behave(model="")
    assert LocalTestbed(tmp_path / "cache").facts().text("nfp_model") == ""


def test_doctor_tells_what_is_there(card):
    done = p4perf("doctor", "--format", "json", PATH=f"{card.tools}:{os.environ['PATH']}")
    rows = {(row["area"], row["check"]): row for row in json.loads(done.out)["rows"]}
    assert rows["target", "nfp4000"]["value"] == "usable"
    assert rows["tool", "nfp4build, compiles for the NFP-4000"]["value"] == str(card.tools / "nfp4build")
    assert rows["tool", "Agilio CX (NFP-4000)"]["value"] == "lithium"


def test_interfaces_in_netdev_mode(tmp_path, card):
    """The driver's counters, by a device that the PCI address leads to."""
    (tmp_path / "sys/bus/pci/devices/0000:03:00.0/net/enp3s0").mkdir(parents=True)
    ethtool = tmp_path / "bin" / "ethtool"
    ethtool.parent.mkdir()
    ethtool.write_text('#!/bin/sh\nprintf "NIC statistics:\\n     rx_drop_events: 5\\n     %s: 1\\n" "$2"\n')
    ethtool.chmod(0o755)
    script = tmp_path / nfp4000.SCRIPT
    script.write_bytes(nfp4000.script_text())
    words = ["left=0000:03:00.0", "right=0000:04:00.0"]
    done = subprocess.run(
        ["sh", str(script), "interfaces", str(tmp_path / "sys"), *words],
        env={"PATH": f"{ethtool.parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "interface left enp3s0\nNIC statistics:\n     rx_drop_events: 5\n     enp3s0: 1\n"


@pytest.mark.thorough
def test_a_card_of_another_machine(card, device, node):
    bed = SshTestbed.at(str(node.node_file()))
    try:
        with device(bed=bed) as served:
            served.switch("program")
            assert list(card.state["rules"].values()) == [20]
            with served.watched() as seen:
                pass
        evidence = TARGET.evidence(seen)
        assert evidence["counters"]["difference"]["FAKE_PACKETS_IN"] == 1000
        assert card.state["loaded"] is None
    finally:
        bed.close()


def test_facts_without_tools_use_their_names(tmp_path):
    plan = TARGET.plan(exact(), TrafficPlan(128), NodeFacts({}))
    ((*_, tool), *_) = [plan.build.commands[0][:5]]
    assert tool == "nfp4build"
