"""Compiled programs compute what the interpreter computes, and an oracle that disagrees is noticed.

Programs that differ in their entries or traffic only share a build.
"""

import json
import struct
import sys
from dataclasses import replace

import pytest

from p4perf.errors import MeasurementError
from p4perf.generators.base import TrafficPlan
from p4perf.generators.program import (
    METADATA,
    Action,
    ApplyTable,
    Assign,
    BinaryOp,
    CallAction,
    Const,
    EntrySet,
    Field,
    FieldRef,
    Header,
    HeaderValues,
    Key,
    PacketSpec,
    ParameterRef,
    ParserState,
    Program,
    SelectCase,
    SetEgress,
    Table,
    VaryingField,
    Workload,
)
from p4perf.generators.workload import build_workload
from p4perf.targets.base import TrialOptions
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
    program = Program(
        name="special",
        headers=(
            Header("a", (Field("kind", 8), Field("nibble", 4), Field("rest", 12), Field("wide", 64))),
            Header("b", (Field("left", 3), Field("right", 13))),
        ),
        metadata=(Field("tmp", 9),),
        parser=(
            ParserState(
                "start", ("a",), FieldRef("a", "kind"), (SelectCase(1, "more"), SelectCase(2, "accept")), "more"
            ),
            ParserState("more", ("b",)),
        ),
        actions=(
            Action(
                "mix",
                (Field("port", 9), Field("word", 33)),
                (
                    SetEgress(ParameterRef("port")),
                    Assign(FieldRef(METADATA, "tmp"), BinaryOp("+", FieldRef("a", "nibble"), Const(0x1FF))),
                    Assign(FieldRef("a", "rest"), BinaryOp("^", FieldRef(METADATA, "tmp"), ParameterRef("word"))),
                    Assign(FieldRef("a", "nibble"), BinaryOp("-", FieldRef("a", "nibble"), Const(1))),
                ),
            ),
            Action("nothing"),
            Action("flag", body=(SetEgress(Const(3)),)),
        ),
        tables=(
            Table("first", (Key(FieldRef("a", "wide")),), ("mix", "nothing"), "nothing", EntrySet(50, "mix")),
            Table(
                "second",
                (Key(FieldRef("a", "kind")), Key(FieldRef("a", "wide"))),
                ("flag", "nothing"),
                "nothing",
                EntrySet(20, "flag"),
            ),
        ),
        control=(ApplyTable("first"), ApplyTable("second"), CallAction("nothing")),
        emit=("a", "b"),
    )
    baseline = replace(program, name="baseline", tables=(), control=(CallAction("flag"),))
    packets = PacketSpec(
        (HeaderValues("a", (("nibble", 5), ("rest", 0xABC))), HeaderValues("b", (("left", 5),))),
        (VaryingField(FieldRef("a", "wide"), 50),),
        64,
    )
    return Workload(program, baseline, packets)


def together():
    return build_workload(
        [
            ("parser_headers", {"headers": 2}),
            ("match_action_table", {"entries": 300, "key_bits": 48, "action_data_bytes": 12}),
            ("header_field_writes", {"writes": 5, "fields": 5, "field_bits": 16}),
        ],
        frame_size_bytes=256,
    )


PROGRAMS = {
    "baseline": lambda: build_workload([], frame_size_bytes=64),
    "baseline, largest frame": lambda: build_workload([], frame_size_bytes=2048),
    "no headers": lambda: build_workload([("parser_headers", {"headers": 0})], frame_size_bytes=64),
    "one header": lambda: build_workload([("parser_headers", {"headers": 1})], frame_size_bytes=64),
    "ten headers": lambda: build_workload([("parser_headers", {"headers": 10})], frame_size_bytes=64),
    "wide headers": lambda: build_workload(
        [("parser_headers", {"headers": 3, "header_bits": 1024})], frame_size_bytes=512
    ),
    "odd headers": lambda: build_workload(
        [("parser_headers", {"headers": 4, "header_bits": 88})], frame_size_bytes=128
    ),
    "no writes": lambda: build_workload([("header_field_writes", {"writes": 0})], frame_size_bytes=128),
    "writes of bytes": lambda: writes(9, 8, "increment"),
    "writes of two bytes": lambda: writes(9, 16, "increment"),
    "writes of words": lambda: writes(16, 32, "increment"),
    "writes of constants": lambda: writes(16, 32, "set"),
    "special": special,
    "together": together,
    "key of 1 byte": lambda: table(key_bits=8, entries=256),
    "key of 3 bytes": lambda: table(key_bits=24),
    "key of 8 bytes": lambda: table(key_bits=64),
    "key of 9 bytes": lambda: table(key_bits=72),
    "key of 16 bytes, one entry": lambda: table(entries=1),
    "key of 16 bytes, 1000 entries": table,
    "key of 16 bytes, 100000 entries": lambda: table(entries=100_000),
    "key of 64 bytes": lambda: table(128, key_bits=512),
    "no data but the port": lambda: table(action_data_bytes=4),
    "much data": lambda: table(action_data_bytes=256),
    "half of all misses": lambda: table(hit_ratio=0.5),
}


def writes(number, bits, operation):
    parameters = {"writes": number, "fields": 16, "field_bits": bits, "operation": operation}
    return build_workload([("header_field_writes", parameters)], frame_size_bytes=128)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_compiled_program_computes_what_the_interpreter_computes(verify, name):
    assert verify(PROGRAMS[name]()) == PACKETS


# --- An oracle that disagrees is noticed. The verification file is changed; the program is right.


def packet_at(content, wanted):
    """Where packet number ``wanted`` starts in a verification file, and its three numbers."""
    at = 16
    for _ in range(wanted):
        length_in, length_out, _ = struct.unpack_from(PREFIX + "HHi", content, at)
        at += 8 + length_in + length_out
    return at, *struct.unpack_from(PREFIX + "HHi", content, at)


def flip(number, byte):
    def change(content):
        at, length_in, _, _ = packet_at(content, number)
        place = at + 8 + length_in + byte
        return content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :]

    return change


def other_port(content):
    at, length_in, length_out, port = packet_at(content, 1)
    return content[:at] + struct.pack(PREFIX + "HHi", length_in, length_out, port + 4) + content[at + 8 :]


def other_length(content):
    at, length_in, length_out, port = packet_at(content, 1)
    end = at + 8 + length_in + length_out
    head = struct.pack(PREFIX + "HHi", length_in, length_out - 1, port)
    return content[:at] + head + content[at + 8 : end - 1] + content[end:]


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
        (more_hits, r"table table_exact counted \d+ hits, expected \d+"),
        (lambda content: content[:-1], "ends early or is damaged"),
        (lambda content: content[:500], "ends early or is damaged"),
        (lambda content: b"no such file at all", "not a verification file"),
        (lambda content: content[:12] + struct.pack(PREFIX + "I", 2) + content[16:], "not a verification file"),
        (lambda content: b"", "not a verification file"),
    ],
    ids=["byte", "last byte", "port", "length", "hits", "cut by a byte", "cut", "other file", "other tables", "empty"],
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
    with pytest.raises(MeasurementError, match=r"packet \d+ left by port -1, expected 1"):
        target.parse(trial(small, verification=lambda _: oracle))


# --- What the measuring loop sends.


@pytest.mark.parametrize("traffic", ["uniform", "sequential", "single", "zipf"])
@pytest.mark.parametrize("hit_ratio", [1.0, 0.5, 0.0])
def test_as_many_packets_are_sent_as_shall_hit(trial, target, traffic, hit_ratio):
    plan = TrafficPlan(64, distribution=traffic, zipf_s=1.2, hit_ratio=hit_ratio)
    record = target.parse(trial(table(), traffic=plan))
    assert record["packets"] > 1000
    share = record["sent"] / record["packets"]
    if hit_ratio in (0.0, 1.0):
        assert share == hit_ratio
    else:
        assert 0.4 < share < 0.6


@pytest.mark.parametrize(("bits", "entries"), [(8, 255), (8, 1), (48, 999), (64, 1000), (512, 1000)])
def test_every_key_that_is_drawn_is_in_the_table(trial, target, bits, entries):
    size = 128 if bits == 512 else 64
    record = target.parse(trial(table(size, key_bits=bits, entries=entries)))
    assert record["sent"] == record["packets"] > 1000


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
