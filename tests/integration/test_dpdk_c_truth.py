"""Compiled programs compute what the interpreter computes, and an oracle that disagrees is noticed.

Programs that differ in their entries or traffic only share a build.
"""

import json
import random
import struct
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support.many_programs import check_many
from support.parser_states import extracting
from support.random_programs import random_workload

from p4perf.errors import MeasurementError
from p4perf.generators.c.dpdk import VARIANTS
from p4perf.plugins import plugin_names
from p4perf.programs import ir
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.targets.base import NodeFacts, TrialOptions
from p4perf.targets.dpdk_c import table_bytes
from p4perf.targets.oracle import PACKETS

pytestmark = [pytest.mark.dpdk, pytest.mark.usefixtures("dpdk")]

PREFIX = "<" if sys.byteorder == "little" else ">"
QUICK = TrialOptions(mode="plain", windows=1, window_us=200, timeout_ms=200, warmup_ms=0)


@pytest.fixture
def trial(target, testbed, facts, tmp_path):
    """Runs one trial of a workload with more harness options and perhaps another verification file."""

    def run(workload, *options, traffic=None, verification=None):
        plan = target.plan(workload, traffic or TrafficPlan(workload.packets.frame_size_bytes), facts)
        job = target.trial(plan, QUICK, facts)
        files = dict(job.files)
        if verification is not None:
            files["verify.bin"] = verification(files["verify.bin"])
        return testbed.run(replace(job, argv=(*job.argv, *options), files=files), tmp_path)

    return run


@pytest.fixture
def verify(trial):
    """The number of packets on which program and oracle agree, without measuring anything."""

    def run(workload):
        result = trial(workload, "--verify-only")
        lines = [line for line in result.stdout.splitlines() if line.startswith("{")]
        assert lines, result
        record = json.loads(lines[-1])
        assert result.returncode == 0, record
        return record["verified_packets"]

    return run


def table(frame_size=64, **parameters):
    components = [("match_action_table", {"entries": 1000, **parameters})]
    return build_workload(components, frame_size_bytes=frame_size)


def special():
    """What no component makes: odd widths, metadata, two keys, two tables, a select with two cases."""
    program = ir.Program(
        name="special",
        headers=(
            ir.Header("a", (ir.Field("kind", 8), ir.Field("nibble", 4), ir.Field("rest", 12), ir.Field("wide", 64))),
            ir.Header("b", (ir.Field("left", 3), ir.Field("right", 13))),
        ),
        metadata=(ir.Field("tmp", 9),),
        parser=(
            extracting(
                "start",
                ("a",),
                ir.FieldRef("a", "kind"),
                (ir.SelectCase.of_value(1, "more"), ir.SelectCase.of_value(2, "accept")),
                "more",
            ),
            extracting("more", ("b",)),
        ),
        actions=(
            ir.Action(
                "mix",
                (ir.Field("port", 9), ir.Field("word", 33)),
                (
                    ir.SetEgress(ir.ParameterRef("port")),
                    ir.Assign(
                        ir.FieldRef(ir.METADATA, "tmp"), ir.BinaryOp("+", ir.FieldRef("a", "nibble"), ir.Const(0x1FF))
                    ),
                    ir.Assign(
                        ir.FieldRef("a", "rest"),
                        ir.BinaryOp("^", ir.FieldRef(ir.METADATA, "tmp"), ir.ParameterRef("word")),
                    ),
                    ir.Assign(ir.FieldRef("a", "nibble"), ir.BinaryOp("-", ir.FieldRef("a", "nibble"), ir.Const(1))),
                ),
            ),
            ir.Action("nothing"),
            ir.Action("flag", body=(ir.SetEgress(ir.Const(3)),)),
        ),
        tables=(
            ir.Table(
                "first", (ir.Key(ir.FieldRef("a", "wide")),), ("mix", "nothing"), "nothing", ir.EntrySet(50, "mix")
            ),
            ir.Table(
                "second",
                (ir.Key(ir.FieldRef("a", "kind")), ir.Key(ir.FieldRef("a", "wide"))),
                ("flag", "nothing"),
                "nothing",
                ir.EntrySet(20, "flag"),
            ),
        ),
        control=(ir.ApplyTable("first"), ir.ApplyTable("second"), ir.CallAction("nothing")),
        emit=("a", "b"),
    )
    baseline = replace(program, name="baseline", tables=(), control=(ir.CallAction("flag"),))
    packets = ir.PacketSpec(
        (ir.HeaderValues("a", (("nibble", 5), ("rest", 0xABC))), ir.HeaderValues("b", (("left", 5),))),
        (ir.VaryingField(ir.FieldRef("a", "wide"), 50),),
        64,
    )
    return ir.Workload(program, baseline, packets)


def together():
    return build_workload(
        [
            ("parser_headers", {"headers": 2}),
            ("match_action_table", {"entries": 300, "key_bits": 48, "action_data_bytes": 12}),
            ("header_field_writes", {"writes": 5, "fields": 5, "field_bits": 16}),
        ],
        frame_size_bytes=256,
    )


MAT = "match_action_table"
CATALOGUE = {
    MAT: [
        {"entries": 1},
        {"entries": 256, "key_bits": 8},
        {"entries": 1000, "key_bits": 24},
        {"entries": 1000, "key_bits": 72, "action_data_bytes": 4},
        {"entries": 1000, "key_bits": 512, "action_data_bytes": 256},
        {"entries": 10, "tables": 40},
        {"entries": 100, "keys": 100, "key_bits": 8, "applications": 3},
        {"match_kind": "lpm", "entries": 5000, "key_bits": 32, "free_bits": 8},
        {"match_kind": "lpm", "entries": 1000, "key_bits": 32, "free_bits": 0},
        {"match_kind": "lpm", "entries": 1000, "key_bits": 128, "free_bits": 64},
        {"match_kind": "lpm", "entries": 3000, "key_bits": 128, "free_bits": 0},
        {"match_kind": "ternary", "entries": 300, "key_bits": 32, "free_bits": 8},
        {"match_kind": "ternary", "entries": 300, "key_bits": 64},
        {"match_kind": "ternary", "entries": 100, "key_bits": 128, "tables": 3},
        {"match_kind": "ternary", "entries": 200, "distribution": "classbench"},
        {"match_kind": "ternary", "entries": 100, "key_bits": 8, "keys": 50, "free_bits": 0},
    ],
    "l2fwd": [{}],
    "parser_headers": [{"headers": 0}, {"headers": 10}, {"headers": 3, "header_bits": 1024}],
    "parsed_fields": [{"fields": 0}, {"fields": 100}, {"fields": 20, "field_bits": 48}],
    "parser_branches": [{"branches": 4, "depth": 3}, {"branches": 256}],
    "added_headers": [{"headers": 0}, {"headers": 3, "header_bytes": 21}, {"headers": 2, "header_bytes": 256}],
    "removed_headers": [{"removed": 3, "kept": 2}, {"removed": 1, "header_bytes": 40}, {"removed": 0}],
    "header_field_writes": [
        {"writes": 0},
        {"writes": 9, "field_bits": 8},
        {"writes": 9, "field_bits": 16, "operation": "set"},
        {"writes": 16},
    ],
    "metadata_writes": [{"writes": 9}, {"writes": 64, "operation": "set", "field_bits": 8}],
    "arithmetic": [
        {"operations": 17, "operator": o, "width_bits": w} for o, w in zip("+-&|^", (8, 16, 32, 48, 64), strict=True)
    ],
    "conditionals": [{"conditionals": 9}, {"conditionals": 64, "nested": True}, {"conditionals": 30, "taken": 1.0}],
    "hash": [
        {"algorithm": a, "size_bytes": size, "repetitions": 2}
        for a in ("crc16", "crc32", "checksum16")
        for size in (4, 20, 1024)
    ],
    "checksum": [
        {"operation": "verify", "size_bytes": 20, "hit_ratio": 0.5},
        {"operation": "update", "size_bytes": 20},
        {"operation": "update", "size_bytes": 100},
    ],
    "counter": [{"updates": 4}, {"updates": 3, "size": 1}],
    "meter": [{"executions": 3}],
    "register": [{"accesses": 5, "operation": o, "width_bits": w} for o, w in (("read", 8), ("write", 64))],
    "random": [{"numbers": 7}, {"numbers": 2, "width_bits": 8}],
    "recirculate": [{"times": 0}, {"times": 3}, {"times": 255}],
    "resubmit": [{"times": 0}, {"times": 3}],
    "clone": [{"copies": 1, "marked": True}, {"copies": 32}],
    "multicast": [{"ports": 0}, {"ports": 1}, {"ports": 32}],
}
"""Every component with parameters that take other paths through the generator."""

COMBINATIONS = {
    "special": special,
    "together": together,
    "headers that move around a table": lambda: build_workload(
        [
            ("removed_headers", {"removed": 2}),
            ("added_headers", {"headers": 2, "header_bytes": 30}),
            (MAT, {"entries": 50}),
        ],
        frame_size_bytes=256,
    ),
    "copies of written packets": lambda: build_workload(
        [("header_field_writes", {"writes": 4}), ("clone", {"copies": 2}), ("multicast", {"ports": 3})],
        frame_size_bytes=256,
    ),
    "written and resubmitted": lambda: build_workload(
        [("header_field_writes", {"writes": 4}), ("resubmit", {"times": 2})], frame_size_bytes=256
    ),
}


def catalogue():
    """Workloads by name: what the components make, then combinations."""
    made = {}
    for component, sets in CATALOGUE.items():
        for parameters in sets:
            made[f"{component} {parameters}"] = build_workload([(component, parameters)], frame_size_bytes=2048)
    return made | {name: make() for name, make in COMBINATIONS.items()}


def test_every_component_is_in_the_list():
    operators = {"operator", "l2fwd_result", "l2fwd_serial"}
    """Which are compared with their reference in a file of their own."""
    assert {*CATALOGUE, *operators} == set(plugin_names("p4perf.components")) - {"vio"}


def wrong(workloads, folder, variants=()):
    verdicts = check_many(list(workloads.values()), folder, variants)
    return {name: verdict for name, verdict in zip(workloads, verdicts, strict=True) if verdict}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("third", range(3))
def test_every_component_computes_what_the_interpreter_computes(tmp_path, third):
    assert wrong(dict(list(catalogue().items())[third::3]), tmp_path) == {}


@pytest.mark.thorough
def test_variants_compute_what_the_interpreter_computes(tmp_path):
    tables = {name: workload for name, workload in catalogue().items() if "lpm" in name or "ternary" in name}
    assert len(tables) >= 8
    assert wrong(tables, tmp_path, tuple(VARIANTS)) == {}


@pytest.mark.parametrize(
    "variants", [(), pytest.param(tuple(VARIANTS), marks=pytest.mark.thorough)], ids=["default", "variants"]
)
@settings(max_examples=1, derandomize=True, database=None, phases=[Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_programs_drawn_at_random_compute_what_the_interpreter_computes(variants, seed):
    """Nine programs in one build; a failure names the seed of the program."""
    drawn = {}
    for n in range(9):
        drawn[seed + n] = random_workload(random.Random(seed + n), ("copies", "again", "random")[n % 3])
    with TemporaryDirectory() as folder:
        assert wrong(drawn, Path(folder), variants) == {}


def test_the_whole_harness_agrees_too(verify):
    assert verify(special()) == PACKETS


def test_a_checksum_goes_over_what_was_not_parsed(verify):
    """Over a field of two bytes and the payload, of which packets that were cut short have an odd number of bytes."""
    whole, fields = special(), (ir.FieldRef("b", "left"), ir.FieldRef("b", "right"))
    body = (ir.SetEgress(ir.Const(3)), ir.Hash(ir.FieldRef("a", "wide"), "checksum16", fields, payload=True))
    program = replace(
        whole.program,
        actions=(*whole.program.actions, ir.Action("sum", body=body)),
        control=(*whole.program.control, ir.CallAction("sum")),
    )
    packets = replace(whole.packets, payload=b"\x12\x34\x56")
    assert verify(replace(whole, program=program, packets=packets)) == PACKETS


@pytest.mark.thorough
def test_as_many_tables_as_the_harness_takes(trial, target):
    """Entries of 1024 tables on the command line."""
    workload = build_workload([(MAT, {"entries": 1, "tables": 1024, "action_data_bytes": 4})], frame_size_bytes=64)
    record = target.parse(trial(workload))
    assert record["verified_packets"] == PACKETS
    assert record["sent"] == record["packets"] > 0
    assert record["code_bytes"] > 1024 * 32


def test_fields_vary_for_themselves(trial, target):
    """Two tables, each with a field of its own: all hit, and without hits of one nothing is sent."""
    components = [(MAT, {"entries": 10, "key_bits": 32}), (MAT, {"entries": 1000, "key_bits": 72})]
    workload = build_workload(components, frame_size_bytes=128)
    for traffic in ("uniform", "sequential", "zipf"):
        record = target.parse(trial(workload, traffic=TrafficPlan(128, distribution=traffic)))
        assert record["sent"] == record["packets"] > 100
    record = target.parse(trial(workload, traffic=TrafficPlan(128, hit_ratio=0.5)))
    assert 0.15 < record["sent"] / record["packets"] < 0.35, "a miss of either table drops the packet"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("component", "parameters", "copies"),
    [
        ("added_headers", {"headers": 2, "header_bytes": 30}, 1),
        ("removed_headers", {"removed": 3}, 1),
        ("clone", {"copies": 2}, 3),
        ("multicast", {"ports": 4}, 4),
        ("recirculate", {"times": 2}, 1),
        ("resubmit", {"times": 2}, 1),
    ],
)
def test_packets_are_restored_before_they_are_used_again(trial, target, component, parameters, copies):
    """No buffer is lost, and every packet of the measuring loop is treated as the first one was."""
    record = target.parse(trial(build_workload([(component, parameters)], frame_size_bytes=256)))
    assert record["sent"] == copies * record["packets"] > 100


def test_sizes_and_times_are_told(trial, target):
    record = target.parse(trial(table()))
    assert 100 < record["code_bytes"] < 10_000
    assert record["compile_ms"] > 10
    assert record["setup_ms"] > 0
    assert target.parse(trial(table()))["compile_ms"] == record["compile_ms"], "of the build, not of the start"


def test_packets_without_windows(trial, target):
    result = trial(table(), "--packets", "1000")
    record = json.loads(result.stdout.splitlines()[-1])
    assert result.returncode == 0
    assert record["packets"] == 992, "whole bursts"
    assert record["sent"] == 992
    assert record["windows"]["n"] == 0


@pytest.mark.thorough
def test_simulated_misses_of_a_table_beyond_a_cache(target, testbed, facts, tmp_path):
    if not facts.text("tool_valgrind"):
        pytest.skip("needs valgrind")
    small = NodeFacts(
        {**facts.values, "cache_l1_bytes": "16384", "cache_l2_bytes": "65536", "cache_l3_bytes": "8388608"}
    )
    plan = target.plan(table(entries=4000), TrafficPlan(64), small)
    jobs = target.simulation(plan, QUICK, small)
    values = {m.metric: m.value for m in target.simulated([testbed.run(job, tmp_path) for job in jobs])}
    assert 100 < values["simulated_instructions"] < 1000
    assert values["simulated_l1_misses"] >= values["simulated_l2_misses"] > 1
    assert values["simulated_llc_misses"] < 0.1


# --- An oracle that disagrees is noticed. The verification file is changed; the program is right.


HEAD = 24
"""Bytes before the first packet."""


def packet_at(content, wanted):
    """Where packet number ``wanted`` starts in a verification file, its length, and that of its only output."""
    at = HEAD
    for _ in range(wanted + 1):
        start = at
        length_in, outputs = struct.unpack_from(PREFIX + "HH", content, at)
        at += 4 + length_in
        for _ in range(outputs):
            at += 4 + struct.unpack_from(PREFIX + "HH", content, at)[1]
    return start, length_in


def output_of(content, number):
    """Where the only output of a packet starts, its port and its length."""
    start, length_in = packet_at(content, number)
    return start + 4 + length_in, *struct.unpack_from(PREFIX + "HH", content, start + 4 + length_in)


def flip(number, byte):
    def change(content):
        place = output_of(content, number)[0] + 4 + byte
        return content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :]

    return change


def other_port(content):
    at, port, length = output_of(content, 1)
    return content[:at] + struct.pack(PREFIX + "HH", port + 4, length) + content[at + 4 :]


def other_length(content):
    at, port, length = output_of(content, 1)
    head = struct.pack(PREFIX + "HH", port, length - 1)
    return content[:at] + head + content[at + 4 : at + 3 + length] + content[at + 4 + length :]


def another_output(content):
    start, length_in = packet_at(content, 1)
    at, port, length = output_of(content, 1)
    again = struct.pack(PREFIX + "HH", port + 1, length) + content[at + 4 : at + 4 + length]
    head = struct.pack(PREFIX + "HH", length_in, 2)
    return content[:start] + head + content[start + 4 : at + 4 + length] + again + content[at + 4 + length :]


def more_hits(content):
    (hits,) = struct.unpack_from(PREFIX + "Q", content, len(content) - 8)
    return content[:-8] + struct.pack(PREFIX + "Q", hits + 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (flip(0, 0), "packet 0 differs at byte 0"),
        (flip(1, 33), "packet 1 differs at byte 33"),
        (other_port, r"packet 1 left by port 1, expected 5"),
        (other_length, "packet 1 has 60 bytes, expected 59"),
        (another_output, "packet 1 left 1 times, expected 2"),
        (more_hits, r"table table_exact counted \d+ hits, expected \d+"),
        (lambda content: content[:-1], "ends early or is damaged"),
        (lambda content: content[:500], "ends early or is damaged"),
        (lambda content: b"no such file at all", "not a verification file"),
        (lambda content: content[:12] + struct.pack(PREFIX + "I", 2) + content[16:], "not a verification file"),
        (lambda content: b"", "not a verification file"),
    ],
    ids=[
        "byte",
        "last byte",
        "port",
        "length",
        "outputs",
        "hits",
        "cut by a byte",
        "cut",
        "other file",
        "other tables",
        "empty",
    ],
)
def test_an_oracle_that_disagrees_is_noticed(trial, target, change, message):
    result = trial(table(), verification=change)
    with pytest.raises(MeasurementError, match=message) as caught:
        target.parse(result)
    assert caught.value.key == "verify"
    assert result.returncode == 1


def test_a_missing_entry_is_noticed(trial, target, facts):
    """Tables of two sizes share a build: the oracle of the larger one expects hits that the smaller one lacks."""
    small, large = table(entries=1000), table(entries=2000)
    oracle = target.trial(target.plan(large, TrafficPlan(64), facts), QUICK, facts).files["verify.bin"]
    with pytest.raises(MeasurementError, match=r"packet \d+ left 0 times, expected 1"):
        target.parse(trial(small, verification=lambda _: oracle))


# --- What the measuring loop sends.


@pytest.mark.parametrize("traffic", ["uniform", "sequential", "single", "zipf"])
@pytest.mark.parametrize("hit_ratio", [1.0, 0.5, 0.0])
def test_as_many_packets_are_sent_as_shall_hit(trial, target, traffic, hit_ratio):
    plan = TrafficPlan(64, distribution=traffic, zipf_s=1.2, hit_ratio=hit_ratio)
    record = target.parse(trial(table(), traffic=plan))
    assert record["packets"] > 100
    share = record["sent"] / record["packets"]
    if hit_ratio in (0.0, 1.0):
        assert share == hit_ratio
    else:
        assert 0.4 < share < 0.6


@pytest.mark.parametrize(("bits", "entries"), [(8, 255), (8, 1), (48, 999), (64, 1000), (512, 1000)])
def test_every_key_that_is_drawn_is_in_the_table(trial, target, bits, entries):
    size = 128 if bits == 512 else 64
    record = target.parse(trial(table(size, key_bits=bits, entries=entries)))
    assert record["sent"] == record["packets"] > 100


def test_programs_without_tables_send_everything(trial, target):
    record = target.parse(trial(build_workload([("parser_headers", {"headers": 10})], frame_size_bytes=64)))
    assert record["sent"] == record["packets"]
    assert record["verified_packets"] == PACKETS
    assert record["memory_bytes"] == 0


@pytest.mark.parametrize("parameters", [{}, {"entries": 100_000}, {"entries": 3000, "action_data_bytes": 256}], ids=str)
def test_the_estimate_of_the_memory_is_near_what_the_tables_take(trial, target, parameters):
    workload = table(**parameters)
    taken = target.parse(trial(workload))["memory_bytes"]
    assert taken / 1.3 < table_bytes(workload.program, workload.program.tables[0]) < taken * 1.3 + 65536


def test_programs_of_a_record_are_in_turn(trial, target):
    record = target.parse(trial(table(), "--windows", "5"))
    order = record["windows"]["program"]
    assert order == [n % 2 for n in range(len(order))]
    assert len(order) >= 10
    assert record["programs"] == ["program", "baseline"]
    assert all(value > 0 for value in record["windows"]["tsc_per_packet"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--frame", "zz"], "not hexadecimal"),
        (["--hit-ratio", "1.5"], "not a number from 0 to 1"),
        (["--distribution", "normal"], "normal is not uniform"),
        (["--entries", "5"], "2 times --entries for 1 tables"),
        (["--windows", "many"], "many is not a number"),
        (["--keys", "3000000000"], "is not a number from 1 to"),
        (["stray"], "unexpected argument stray"),
    ],
)
def test_the_harness_refuses_wrong_options(trial, target, options, message):
    with pytest.raises(MeasurementError, match=message) as caught:
        target.parse(trial(table(), *options))
    assert caught.value.key == "usage"
