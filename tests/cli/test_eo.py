"""p4perf estimate eo, place and calibrate as users call them."""

import json

import pytest
from support.command import p4perf

XEON = ("--hardware", "xeon-e5-2690v2")


@pytest.mark.parametrize(
    ("profile", "name", "cycles", "accesses"),
    [
        *(
            ("formula", "switch/basic", 211, 1),
            ("formula", "switch/learning", 377, 3),
            ("formula", "switch/mpls", 222, 1),
        ),
        *(("paper", "switch/basic", 213, 1), ("paper", "switch/learning", 352, 2), ("paper", "switch/mpls", 224, 1)),
        *(("paper", "bng/access", 717, 6), ("paper", "bng/core", 274, 1)),
    ],
)
def test_functions_of_the_paper(profile, name, cycles, accesses):
    done = p4perf("estimate", "eo", name, *XEON, "--profile", profile, "--format", "json")
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert (answer["cycles"], answer["dram_accesses"]) == (cycles, accesses)
    assert sum(line["cycles"] for line in answer["breakdown"]) == cycles
    if profile == "paper":
        assert round(answer["gbps"], 2) == answer["printed"]["gbps"]


def test_the_table_has_the_breakdown_and_what_binds():
    done = p4perf("estimate", "eo", "switch/basic", *XEON)
    assert "ht_lookup(1, 12, 2M)" in done.out
    assert "cpu binds" in done.err
    assert "1.024" in done.err


def test_csv_is_the_breakdown():
    done = p4perf("estimate", "eo", "switch/mpls", *XEON, "--format", "csv")
    assert done.out.splitlines()[0].startswith("function,operation,times,cycles")
    assert len(done.out.splitlines()) == 1 + 7


def test_options_change_the_estimate():
    one, ten = (
        json.loads(p4perf("estimate", "eo", "switch/basic", *XEON, *more, "--format", "json").out)
        for more in ((), ("--cores", "10", "--frame-size", "1518", "--remote", "0.5"))
    )
    assert ten["bound"] == "link"
    assert ten["wire_bytes"] == 1538
    assert ten["dram_accesses"] > one["dram_accesses"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("switch/basik", *XEON), "did you mean switch/basic?"),
        (("switch/basic", "--hardware", "xeon"), "there is no hardware 'xeon'"),
        (("switch/basic", *XEON, "--symbol", "ps=0-3"), "data is -3 B, which cannot be negative"),
        (("switch/basic", *XEON, "--symbol", "ps"), "expected key=value"),
        (("switch/basic", *XEON, "--symbol", "px=3"), "has no symbol 'px'"),
        (("switch/basic", *XEON, "--set", "a=1"), "--set and --points are for experiments"),
        (("switch/basic", *XEON, "--cores", "21"), "xeon-e5-2690v2 has 20"),
        (("switch/basic", "none.yaml", *XEON), "there is no such function"),
        (("mat/exact-entries", *XEON, "--set", "entries=[1000000000]"), "but the memory of xeon-e5-2690v2 has 64 GiB"),
        (("mat/exact-entries", *XEON, "--symbol", "ps=1"), "an experiment has no symbols"),
        (("mat/exact-entries", *XEON, "--frame-size", "128"), "an experiment has frame sizes of its own"),
        (("switch/basic",), "--hardware"),
    ],
)
def test_mistakes_are_told(arguments, message):
    done = p4perf("estimate", "eo", *arguments)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


def test_mistakes_in_files_are_told_with_line_and_key(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("eo_version: 1\nname: mine\noperations:\n  - parse(6)\n  - ht_lokup(1, 2, 3)\n")
    done = p4perf("estimate", "eo", path, *XEON)
    assert done.code == 2
    assert f"{path}:5:5: operations.1.do: there is no elementary operation 'ht_lokup'" in done.err


def test_a_missing_latency_is_told(tmp_path):
    path = tmp_path / "machine.yaml"
    path.write_text(
        "eo_version: 1\nname: m\nclock: 1 GHz\nmemory: {size: 1 GiB}\noperations:\n"
        "  parse: {cycles: L1 * b}\n  I/O_mem: {cycles: 1}\n"
    )
    function = tmp_path / "function.yaml"
    function.write_text("eo_version: 1\nname: f\noperations: [parse(6)]\n")
    done = p4perf("estimate", "eo", function, "--hardware", path)
    assert done.code == 2
    assert "hardware m gives no latency of L1, which parse needs" in done.err


def test_experiments_are_functions_too():
    answer = json.loads(p4perf("estimate", "eo", "mat/exact-entries", *XEON, "--points", "3", "--format", "json").out)
    assert answer["kind"] == "eo.sweep"
    cycles = [row["cycles"] for row in answer["rows"]]
    assert cycles == sorted(cycles)
    assert cycles[0] < cycles[-1]


def test_which_hosts_can_run_it():
    arguments = ("estimate", "place", "switch/basic=20Mpps", "bng/access=4Mpps", "--host", "xeon-e5-2690v2", "--host")
    done = p4perf(*arguments, "xeon-e5-2690v2:2", "--format", "json")
    assert done.code == 0
    many, few = json.loads(done.out)["rows"]
    assert (many["possible"], few["possible"], few["bound"]) == (True, False, "cpu")
    assert [need["cores"] for need in many["needs"]] == [2, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("switch/basic", "--host", "xeon-e5-2690v2"), "expected FUNCTION=LOAD"),
        (("switch/basic=5", "--host", "xeon-e5-2690v2"), "not a number with a unit"),
        (("switch/basic=5GHz", "--host", "xeon-e5-2690v2"), "is a frequency, not a packet rate"),
        (("switch/basic=0Mpps", "--host", "xeon-e5-2690v2"), "a load of 0 Mpps is none"),
        (("switch/basic=1Mpps", "--host", "xeon-e5-2690v2:99"), "has 20 cores, not 99"),
        (("switch/none=1Mpps", "--host", "xeon-e5-2690v2"), "there is no function 'switch/none'"),
    ],
)
def test_mistakes_in_placing_are_told(arguments, message):
    done = p4perf("estimate", "place", *arguments)
    assert done.code == 2
    assert message in done.err


def test_no_host_is_a_verdict():
    assert p4perf("estimate", "place", "bng/access=90Mpps", "--host", "xeon-e5-2690v2:1").code == 1
