"""p4perf predict and what it is given: captures, P4 by way of a compiler, and programs that are none."""

import json
import shutil
import struct
from collections import Counter
from pathlib import Path

import pytest
from support.bmv2_json import chain_of_tables
from support.captures import capture, ethernet, ipv4, udp
from support.command import p4perf
from support.cost_models import write_model

TESTS = Path(__file__).parents[1]
PROGRAMS = TESTS / "evaluation" / "prediction" / "programs"
P4C = TESTS / "fakes" / "p4c"

FRAMES = [
    *[ethernet(0x0800, ipv4("192.0.2.1", "10.3.0.1", rest=udp(80)))] * 4,  # next hop 1
    ethernet(0x0800, ipv4("192.0.2.1", "10.1.0.1", protocol=6)),  # next hop 2
    ethernet(0x0800, ipv4("192.0.2.1", "10.2.0.1", protocol=6)),  # dropped by an entry
    ethernet(0x0800, ipv4("192.0.2.1", "172.16.0.1", protocol=6)),  # no route
    ethernet(0x0800, ipv4("10.0.0.1", "10.1.0.1", rest=udp(53))),  # denied
    *[ethernet(0x86DD, bytes(40))] * 2,
]
SPEC = (PROGRAMS / "tunnel.spec").read_text()
HEAD = SPEC[: SPEC.index("apply {")]
LINES = HEAD.count("\n")
META = "struct meta_t {\n\tbit<32> port\n}\nmetadata instanceof meta_t\n"
BARE = chain_of_tables(0)
BARE["parsers"][0]["parse_states"][0]["parser_ops"] = []
BARE["deparsers"][0]["order"] = []


@pytest.fixture
def here(tmp_path):
    (tmp_path / "models").mkdir()
    write_model(tmp_path / "models" / "fake.json")
    for name in ("router.json", "router.p4", "router.commands"):
        shutil.copyfile(PROGRAMS / name, tmp_path / name)
    return tmp_path


def predicted(here, *arguments, **env):
    done = p4perf("predict", *arguments, "--format", "json", cwd=here, **env)
    assert done.code == 0, done.err
    (found,) = json.loads(done.out)["predictions"]
    return found


def refused(here, *arguments, code=2, **env):
    """What is said on stderr: one error, and a hint at most."""
    done = p4perf("predict", *arguments, cwd=here, **env)
    assert done.code == code, done.out + done.err
    assert done.out == ""
    assert "Traceback" not in done.err
    assert done.err.count("error:") == 1
    return done.err


def times(prediction, construct):
    """How often the packets meet a construct, by the node without the number of its copy."""
    found = Counter()
    for line in prediction["paths"][0]["breakdown"]:
        if line["construct"] == construct:
            found[line["node"].partition(" #")[0]] += line["times"]
    return found


class TestCaptures:
    def test_shares_are_those_of_the_packets(self, here):
        capture(here / "trace.pcap", FRAMES)
        found = predicted(here, "router.json", "--capture", "trace.pcap", "--entries", "router.commands")
        assert times(found, "lookup")["Route.denied"] == pytest.approx(0.5)  # UDP
        assert times(found, "lookup")["Route.routes"] == pytest.approx(0.7)  # IPv4 that is not denied
        assert times(found, "extract")["parser.udp"] == pytest.approx(0.5)
        assert sum(times(found, "drop").values()) == pytest.approx(0.5)
        assert not any("nobody said which share" in warning for warning in found["warnings"])

    def test_what_could_not_be_followed_is_said(self, here):
        capture(here / "trace.pcap", [FRAMES[0][:30], FRAMES[-1]])
        found = predicted(here, "router.json", "--capture", "trace.pcap", "--entries", "router.commands")
        assert any("1 of 2 packets were not followed to the end" in warning for warning in found["warnings"])

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (lambda data: data[:-10], "ends within packet 10"),
            (lambda data: data[:30], "ends within the head of packet 1"),
            (lambda data: data[:10], "ends within its head"),
            (lambda data: data[:24], "holds no frame"),
            (lambda data: b"", "is not a pcap file, it is empty"),
            (lambda data: data[:20] + struct.pack("<I", 113) + data[24:], "no Ethernet frames (link type 113)"),
            (lambda data: data[:32] + struct.pack("<I", 20) + data[36:], "packet 1 was cut to 20 of"),
            (lambda data: struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28), "but pcapng"),
            (lambda data: b"#!/bin/sh\n" + data, "is not a pcap file"),
        ],
    )
    def test_a_capture_that_is_none(self, here, change, said):
        path = capture(here / "trace.pcap", FRAMES)
        path.write_bytes(change(path.read_bytes()))
        err = refused(here, "router.json", "--capture", "trace.pcap")
        assert err.startswith("error: trace.pcap: ")
        assert said in err
        assert ("editcap" in err) == ("pcapng" in said)

    def test_a_capture_that_is_not_there(self, here):
        assert "nowhere.pcap: cannot be read" in refused(here, "router.json", "--capture", "nowhere.pcap")

    def test_one_of_both_says_which_way_packets_go(self, here):
        capture(here / "trace.pcap", FRAMES)
        arguments = ("router.json", "--capture", "trace.pcap", "--probabilities", "uniform")
        assert "--probabilities and --capture" in refused(here, *arguments)

    def test_numbers_with_a_unit_are_refused_in_plain_words(self, here):
        assert "expected a whole number without a unit" in refused(here, "router.json", "--frame-size", "128B")
        assert "expected a share such as 0.7 or 70%" in refused(here, "router.json", "--load", "70 percent")

    def test_specifications_are_run(self, here):
        capture(here / "trace.pcap", FRAMES)
        (here / "tunnel.spec").write_text(SPEC)
        found = predicted(here, "tunnel.spec", "--capture", "trace.pcap")
        assert sum(times(found, "drop").values()) == pytest.approx(1.0)  # the tables are empty
        assert any("all tables are empty" in warning for warning in found["warnings"])


def entries_in(prediction):
    """How many entries the tables hold."""
    lines = (line for line in prediction["paths"][0]["breakdown"] if line["construct"] == "lookup")
    return {line["node"].partition(" #")[0].partition("@")[0]: line["sizes"]["entries"] for line in lines}


@pytest.mark.parametrize(
    ("program", "target", "command", "other"),
    [
        ("programs/l2_switch/l2_switch.json", "dpdk-swx", "destinations forward {} => 2", "MainControl.sources"),
        ("swx/router.spec", "dpdk-c", "routes send {}/32 => 2 3", "acl"),
    ],
)
def test_tables_that_a_file_of_entries_does_not_list_are_filled_as_without_it(here, program, target, command, other):
    path = TESTS.parent / "examples" / program
    (here / "two").write_text("".join(f"table_add {command.format(n)}\n" for n in (1, 2)))
    plain = entries_in(predicted(here, path, "-t", target))
    listed = entries_in(predicted(here, path, "-t", target, "--entries", "two"))
    assert sorted(listed.values()) == [2, plain[other]]
    assert listed[other] == plain[other]
    sent = predicted(here, path, "-t", target, "--entries", "two", "--traffic")["packets"]
    assert f"{other} 64 entries" in sent


class TestP4:
    def test_without_a_compiler_its_name_is_told(self, here):
        err = refused(here, "router.p4", code=3, PATH=str(here))
        assert "router.p4 is P4 for v1model, and p4c-bm2-ss is not installed" in err
        assert "install p4c" in err

    def test_without_a_compiler_the_architecture_does_not_matter(self, here):
        (here / "plain.p4").write_text("control c() { apply {} }\n")
        assert "plain.p4 is P4, and p4c is not installed" in refused(here, "plain.p4", code=3, PATH=str(here))

    @pytest.mark.thorough
    def test_what_the_compiler_makes_is_priced(self, here):
        env = {"PATH": f"{P4C}:/bin:/usr/bin", "RESULT": str(here / "router.json")}
        capture(here / "trace.pcap", FRAMES)
        for more in ((), ("--capture", "trace.pcap", "--entries", "router.commands")):
            ours, theirs = predicted(here, "router.p4", *more, **env), predicted(here, "router.json", *more)
            assert ours["cycles"] == theirs["cycles"]
            assert ours["paths"][0]["breakdown"] == theirs["paths"][0]["breakdown"]

    def test_a_compiler_that_fails_or_makes_rubbish(self, here):
        env = {"PATH": f"{P4C}:/bin:/usr/bin"}
        err = refused(here, "router.p4", code=3, RESULT=str(here / "nowhere.json"), **env)
        assert "p4c-bm2-ss does not take router.p4" in err
        (here / "half.json").write_text((here / "router.json").read_text()[:5000])
        err = refused(here, "router.p4", RESULT=str(here / "half.json"), **env)
        assert err.startswith("error: router.p4:")
        assert "ends too early" in err


def cyclic():
    program = chain_of_tables(2)
    last = program["pipelines"][0]["tables"][1]
    last["next_tables"] = dict.fromkeys(last["next_tables"], "ingress.t0")
    last["base_default_next"] = "ingress.t0"
    return json.dumps(program)


class TestProgramsThatAreNone:
    """Every error begins with the file, and the line where there is one."""

    @pytest.mark.parametrize(
        ("name", "text", "place", "said"),
        [
            ("cut.json", (PROGRAMS / "router.json").read_text()[:5000], "cut.json:", "ends too early"),
            ("empty.json", "", "empty.json:", "is empty"),
            ("nothing.json", "{}", "nothing.json:", "no program for bmv2"),
            ("loop.json", cyclic(), "loop.json:", "has a loop: ingress.t0"),
            ("cut.spec", HEAD + "apply {\n\trx m.port", f"cut.spec:{LINES + 2}", "ends before the brace"),
            ("empty.spec", " \n", "empty.spec:", "is empty"),
            ("headless.spec", HEAD, "headless.spec:", "no block 'apply'"),
            ("hollow.spec", HEAD + "apply {\n}\n", f"hollow.spec:{LINES + 1}", "is empty"),
            ("loop.spec", META + "apply {\n\trx m.port\n\tA :\tfrobnicate\n\tjmp A\n}\n", "loop.spec:", "has a loop"),
            ("cut.yaml", "name: a\nsweep: {entries: [1, 2\n", "cut.yaml:2:", "this is not YAML"),
            ("empty.yaml", "", "empty.yaml:1:1:", "expected a mapping"),
            ("loop.yaml", "extends: loop.yaml\n", "loop.yaml:1:10:", "cannot extend itself"),
            ("odd.yaml", "extends: mat/exact-entries\nname: o\nprogram: {component: tabel}\n", "odd.yaml:", "'tabel'"),
        ],
    )
    def test_the_place_is_told(self, here, name, text, place, said):
        (here / name).write_text(text)
        err = refused(here, name)
        assert err.startswith(f"error: {place}"), err
        assert said in err

    def test_a_program_that_does_nothing_costs_less_than_the_baseline(self, here):
        (here / "bare.json").write_text(json.dumps(BARE))
        (here / "bare.spec").write_text(META + "apply {\n\trx m.port\n\ttx m.port\n}\n")
        for name in ("bare.json", "bare.spec"):
            done = p4perf("predict", name, "--format", "json", cwd=here)
            assert done.code == 0, done.err
            (each,) = json.loads(done.out)["predictions"]
            # The baseline extracts and emits a header, and sets the port.
            assert each["cycles"]["value"] == each["paths"][0]["baseline_cycles"] - 7 > 0

    def test_what_a_model_does_not_know_is_named_and_left_out(self, here):
        program = chain_of_tables(1)
        program["actions"][0]["primitives"].append({"op": "frobnicate", "parameters": []})
        (here / "extern.json").write_text(json.dumps(program))
        (here / "extern.spec").write_text(META + "apply {\n\trx m.port\n\tfrobnicate h.a\n\ttx m.port\n}\n")
        for name in ("extern.json", "extern.spec"):
            done = p4perf("predict", name, "--probabilities", "uniform", cwd=here)
            assert done.code == 0, done.err
            assert "no price and no bound is known" in done.err
            assert "frobnicate" in done.err
            assert ">=" in done.out
