"""p4perf measure: your own P4 program."""

import json
import random
import re
import shlex
import shutil
from pathlib import Path

import pandas as pd
import pytest
from support.captures import capture, ethernet
from support.command import p4perf

from p4perf.cli import own
from p4perf.cli.app import measured_text, planned_text
from p4perf.cli.measure import command_for
from p4perf.errors import CapabilityError, DataError
from p4perf.experiment import open_target
from p4perf.experiment.own import own_experiment
from p4perf.experiment.planning import point_workload
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.programs.own import packed, unpacked
from p4perf.results import Run
from p4perf.targets.base import NodeFacts

EXAMPLES = Path(__file__).parents[2] / "examples/programs"
SWITCH = EXAMPLES / "l2_switch/l2_switch.json"


@pytest.fixture
def entries(tmp_path):
    path = tmp_path / "rules.txt"
    path.write_text("table_add destinations forward 00:00:00:00:00:01 => 2\n")
    return path


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("absent.json", None, "cannot be read"),
        ("empty.json", "", "empty.json: the file is empty"),
        ("empty.spec", "\n", "empty.spec: the file is empty"),
        ("broken.json", '{"a": [1,\n}', "2:1"),
        ("other.json", '{"a": 1}', "no program for bmv2"),
        ("program.txt", "x", "is not a program"),
        ("program.spec", "apply {\n}\n", "program.spec:1: block 'apply' is empty"),
    ],
)
def test_files_that_are_no_program(tmp_path, name, text, words):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    done = p4perf("measure", path, "--output", tmp_path / "runs")
    assert done.code == 2, done.err
    assert words in done.err
    assert not (tmp_path / "runs").exists()


def test_p4_text_without_p4c_says_what_to_install(tmp_path):
    (tmp_path / "plain.p4").write_text("control c() { apply {} }")
    done = p4perf("measure", tmp_path / "plain.p4", "--output", tmp_path / "runs", PATH=str(tmp_path))
    assert done.code == 3, done.err
    assert "plain.p4 is P4, and p4c is not installed\nhint: install p4c: " in done.err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--fill", "nothing=3"], "there is no table 'nothing'"),
        (["--fill", "source=3"], "did you mean sources?"),
        (["--fill", "sources=3:bpg"], "unknown distribution"),
        (["--fill", "sources=3", "--fill", "sources=4"], "--fill sources: given more than once"),
        (["--miss", "sources=0.1", "--miss", "sources=20%"], "--miss sources: given more than once"),
        (["--miss", "0.1", "--miss", "0.2"], "--miss SHARE: given more than once"),
        (["--fill", "sources=3:bgp"], "longest prefix match"),
        (["--fill", "sources=9999999"], "at most 1000000"),
        (["--fill", "MainControl_sources"], "expected TABLE=N"),
        (["--fill", "MainControl_sources=-3"], "entries must be at least 0, got -3"),
        (["--frame-size", "20"], "--frame-size"),
        (["--entries", "absent.txt"], "absent.txt"),
        (["--target", "nothing"], "nothing"),
    ],
)
def test_options_that_say_nothing(tmp_path, options, words):
    done = p4perf("measure", SWITCH, *options, "--output", tmp_path / "runs")
    assert done.code == 2, done.err
    assert words in done.err


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("a.c", ["--fill", "t=3"], "--fill is for P4 programs"),
        ("a.c", ["--target", "xdp"], "--target is for P4 programs"),
        ("a.spec", ["--sizes", "64"], "--sizes is for operators in C"),
        ("a.json", ["-D", "X"], "-D is for P4 text"),
        ("a.p4", ["--std", "p4-12"], "no version 'p4-12' of P4"),
        ("a.p4", ["--arch", "tna"], "no compiler here for architecture 'tna'"),
        ("a.p4", ["-I", "nowhere"], "nowhere is no folder"),
        ("a.p4", ["-D", "1 2"], "'1 2' is no definition"),
    ],
)
def test_options_of_another_language(tmp_path, name, options, words):
    path = tmp_path / name
    path.write_text("#include <v1model.p4>\n")
    done = p4perf("measure", path, *options, "--output", tmp_path / "runs", cwd=tmp_path)
    assert done.code == 2, done.err
    assert words in done.err


def test_a_former_command_names_the_new_one():
    done = p4perf("operator", "a.c")
    assert done.code == 2
    assert "use p4perf measure FILE.c" in done.err


def test_entries_that_do_not_belong_to_the_program(tmp_path, entries):
    entries.write_text(entries.read_text() + "table_add nothing forward 1 => 2\n")
    done = p4perf("measure", SWITCH, "--entries", entries, "--output", tmp_path / "runs")
    assert done.code == 2
    assert "rules.txt:2" in done.err
    assert "nothing" in done.err


def test_duplicate_entries_are_refused_by_measure_and_predict(tmp_path, entries):
    entries.write_text(2 * entries.read_text())
    for command in (["measure", "--output", tmp_path / "runs"], ["predict"], ["predict", "--traffic"]):
        done = p4perf(*command, SWITCH, "--entries", entries)
        assert done.code == 2
        assert "rules.txt:2: duplicate entry of MainControl.destinations" in done.err


def test_more_entries_than_a_key_has_values_are_refused_by_measure_and_predict(tmp_path):
    text = (EXAMPLES.parent / "swx" / "router.spec").read_text()
    spec = tmp_path / "small.spec"
    spec.write_text(text.replace("\t\th.ipv4.src exact", "\t\th.ipv4.ttl exact"))
    for command in (["measure", "-q", "--output", tmp_path / "runs"], ["predict", "-q"], ["predict", "--traffic"]):
        done = p4perf(*command, spec, "--fill", "acl=257")
        assert done.code == 2, done.err
        assert "table acl cannot hold 257 entries: its key of 8 bit has only 256 different ones" in done.err
    assert "acl 256 entries" in p4perf("predict", spec, "-t", "xdp", "--traffic", "--fill", "acl=256").err


def test_runs_of_several_targets_know_of_each_other(tmp_path):
    """What an interruption left unbegun is named with its command."""
    options = ["--target", "dpdk-c", "-t", "xdp", "--repetitions", "1", "--output", tmp_path / "runs"]
    done = p4perf("measure", SWITCH, *options, P4PERF_TEST_STAND_INS="dpdk-c xdp")
    assert done.code == 0, done.err
    first, second = sorted((tmp_path / "runs").iterdir())
    shown = p4perf("show", second, P4PERF_TEST_STAND_INS="dpdk-c xdp")
    assert shown.out.startswith("program/l2-switch on xdp: cycles_per_packet [cycles/packet]")
    assert shown.err == f"the same command measured dpdk-c: p4perf show {first}\n"
    resumed = p4perf("resume", first, P4PERF_TEST_STAND_INS="dpdk-c xdp")
    assert f"{second}: finished" in resumed.err
    shutil.rmtree(second)
    resumed = p4perf("resume", first, P4PERF_TEST_STAND_INS="dpdk-c xdp")
    command = f"l2_switch.json --repetitions 1 --output {tmp_path / 'runs'} --target=xdp"
    assert "not begun, or refused: p4perf measure " in resumed.err
    assert f"{command}\n" in resumed.err


def test_the_last_line_is_the_command_that_predicts_the_same_packets(tmp_path, entries):
    given = ["--entries", entries, "--fill", "sources=70", "--miss", "0.25", "--zipf", "1.2", "--packets", "32"]
    given += ["--port", "3", "--default-fill", "9"]
    program = tmp_path / "a switch.json"
    shutil.copyfile(SWITCH, program)
    options = ["--repetitions", "1", "--output", tmp_path / "runs"]
    done = p4perf("measure", program, *given, *options, P4PERF_TEST_STAND_INS="dpdk-c")
    assert done.code == 0, done.err
    words = shlex.split(done.err.splitlines()[-1].partition("packets: ")[2])
    assert words[:4] == ["p4perf", "predict", str(program), "--traffic"]
    assert len(words) == 4 + len(given) / 2
    predicted = p4perf(*words[1:], "--target", "dpdk-c")
    assert predicted.code == 0, predicted.err
    (line,) = [line for line in done.err.splitlines() if line.startswith("tables: ")]
    assert line in predicted.err


def test_the_command_for_other_targets():
    words = ["measure", "a b.json", "-t", "xdp", "--target=dpdk-c", "--target", "dpdk-swx", "--miss", "0.1"]
    assert command_for(words, ["xdp"]) == "p4perf measure 'a b.json' --miss 0.1 --target=xdp"


@pytest.mark.dpdk
def test_a_compiler_error_is_printed_once(tmp_path):
    compiler = tmp_path / "cc"
    compiler.write_text(
        '#!/bin/sh\nfor a in "$@"; do [ "$a" = program.c ] && echo no reason >&2 && exit 1; done; cc "$@"\n'
    )
    compiler.chmod(0o755)
    # A number of entries that nothing else has: what was compiled before is not compiled again.
    given = ("--default-fill", "61", "--output", tmp_path / "runs")
    done = p4perf("measure", SWITCH, "-t", "dpdk-c", "-t", "t4p4s", *given, CC=str(compiler))
    assert done.code in (2, 3)
    assert (done.out + done.err).count("no reason") == 1


def test_targets_that_refuse_a_program(tmp_path):
    done = p4perf("measure", SWITCH, "--target", "t4p4s", "--output", tmp_path / "runs")
    assert done.code in (2, 3)
    assert "t4p4s" in done.err


def test_a_program_of_your_own_stands_alone():
    components = [("p4", {"program": SWITCH.read_text()}), ("hash", {})]
    with pytest.raises(CapabilityError, match="stands alone"):
        build_workload(components, frame_size_bytes=128)


@pytest.mark.parametrize("target", ["dpdk-c", "dpdk-swx", "xdp"])
def test_other_entries_or_packets_are_another_point(target):
    (point,) = own_experiment(SWITCH, default_fill=4, packets=8).points
    name, parameters = point.components[0]
    keys = set()
    for change in ({}, {"seed": 2}, {"packets": 9}, {"entries": "table_add destinations forward 1 => 2"}):
        workload = build_workload([(name, {**parameters, **change})], frame_size_bytes=128)
        keys.add(open_target(target).plan(workload, TrafficPlan(128), NodeFacts({})).key)
    assert len(keys) == 4


@pytest.mark.dpdk
def test_a_program_is_measured_resumed_and_shown(tmp_path, entries):
    runs = tmp_path / "runs"
    options = ["--entries", entries, "--repetitions", "1", "--output", runs, "--format", "json"]
    done = p4perf("measure", SWITCH, *options)
    assert done.code in (0, 4), done.err  # 4: the machine was disturbed
    (row,) = json.loads(done.out)["rows"]
    assert row["target"] == "dpdk-c"
    assert row["refused"] is None
    run = Run.open(Path(row["run"]))
    assert run.spec.program.component == "p4"
    if done.code == 0:
        assert row["cycles_per_packet"] > 5
        assert row["cycles_per_packet_low"] is row["cycles_per_packet_high"] is None
    again = p4perf("resume", row["run"])
    assert again.code in (0, 4), again.err
    assert p4perf("show", row["run"]).code == 0


@pytest.mark.dpdk
def test_a_routing_table_as_in_networks_is_measured(tmp_path):
    """Its routes are those of a routing table, and some packets miss them."""
    router = EXAMPLES / "ipv4_router/ipv4_router.json"
    options = ["--fill", "routes=2000:bgp", "--miss", "routes=0.2", "--zipf", "1", "--repetitions", "1"]
    done = p4perf("measure", router, *options, "--output", tmp_path / "runs", "--format", "json")
    assert done.code in (0, 4), done.err  # 4: the machine was disturbed
    (row,) = json.loads(done.out)["rows"]
    run = Run.open(Path(row["run"]))
    parameters = run.spec.program.parameters
    assert (parameters["fill"], parameters["miss"], parameters["zipf"]) == ("routes=2000:bgp", "routes=0.2", 1.0)
    share = re.search(r"tables: MainControl.routes 2000 entries, ([0-9.]+) % hits; ", done.err)
    assert 65 < float(share[1]) < 95


def test_many_entries_fit_into_a_spec(tmp_path):
    rng = random.Random(1)
    lines = [f"table_add destinations forward {rng.getrandbits(47):#014x} => 2\n" for _ in range(40_000)]
    path = tmp_path / "rules.txt"
    path.write_text("".join(lines))
    assert path.stat().st_size > 1 << 20
    (point,) = own_experiment(SWITCH, entries=path, packets=2).points
    ((_, parameters),) = point.components
    assert unpacked(parameters["entries"]) == path.read_text()
    with pytest.raises(DataError, match="damaged"):
        unpacked(parameters["entries"][:1000])
    with pytest.raises(DataError, match="too long"):
        packed(rng.randbytes(900_000).hex(), "rules.txt")


def test_a_large_program_fits_into_a_spec(tmp_path):
    text = SWITCH.read_text() + "\n" * 2**20
    path = tmp_path / "large.json"
    path.write_text(text)
    ((_, parameters),) = own_experiment(path, packets=2).points[0].components
    assert unpacked(parameters["program"]) == text


def test_shares_are_those_of_predict(tmp_path):
    """They are read before anything else, and kept in the run directory."""
    shares = tmp_path / "shares.yaml"
    shares.write_text("tables: {sources: {hit: 0.5}}\n")
    options = ["--probabilities", shares, "--repetitions", "1", "--packets", "8", "--output", tmp_path / "runs"]
    done = p4perf("measure", SWITCH, *options, "--format", "json", P4PERF_TEST_STAND_INS="dpdk-c")
    assert done.code == 0, done.err
    assert "tables: MainControl.sources 64 entries, 50 % hits" in done.err
    (row,) = json.loads(done.out)["rows"]
    assert Run.open(Path(row["run"])).spec.program.parameters["shares"] == shares.read_text()
    assert p4perf("predict", SWITCH, "--target", "dpdk-c", "--probabilities", shares).code == 0
    shares.write_text("tables:\n  surces: {hit: 0.5}\n")
    done = p4perf("measure", SWITCH, *options)
    assert done.code == 2
    assert "shares.yaml:2" in done.err
    assert "did you mean sources?" in done.err


def test_packets_of_a_capture_are_replayed_and_kept(tmp_path):
    frames = [ethernet(0x1234, bytes([n]) * 30 * n) for n in range(1, 5)]
    experiment = own_experiment(SWITCH, capture=capture(tmp_path / "some.pcap", frames), packets=3, frame_size_bytes=64)
    (point,) = experiment.points
    workload, _ = point_workload(experiment, point)
    assert workload.frames == tuple(frame[:60].ljust(60, b"\0") for frame in frames[:3])
    assert experiment.spec.traffic.replay.pcap == "packets.pcap"
    (tmp_path / "some.pcap").write_bytes(b"nothing")
    done = p4perf("measure", SWITCH, "--capture", tmp_path / "some.pcap", "--output", tmp_path / "runs")
    assert done.code == 2
    assert "some.pcap" in done.err


def test_cycles_are_rounded_as_in_a_comparison_and_flags_are_shown():
    names = ("point", "attempt", "metric", "value", "accepted", "flags")
    metrics = {"cycles_per_packet": 200, "cost_cycles_per_packet": 100}
    rows = [("p", n, m, v + 7 * n, True, "few_windows" if n else "") for n in range(3) for m, v in metrics.items()]
    row = own._row("fake", pd.DataFrame(rows, columns=list(names)), said={"run": "runs/x"})
    text = own._text_row(row)
    ends = row.as_dict()
    for metric, column in (
        ("cycles_per_packet", "cycles/packet (95 % interval)"),
        ("cost_cycles_per_packet", "over the minimal program"),
    ):
        assert text[column] == measured_text(*(ends[f"{metric}{end}"] for end in ("", "_low", "_high")))
    assert (text["over the minimal program"], text["Mpps"]) == ("110 (90 .. 130)", "")
    assert (row.flags, text["remark"]) == (("few_windows",), "few_windows")


def test_more_trials_than_planned_are_explained():
    assert planned_text(24, 24) == "24 planned"
    assert planned_text(24, 27) == "24 planned, 3 more where starts disagree"
