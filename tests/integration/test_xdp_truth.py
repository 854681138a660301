"""eBPF programs compute in the kernel what the interpreter computes, short and malformed packets included."""

import json
import shutil
import statistics
import struct
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.filters import FILTER
from support.parser_states import extracting
from support.sampling import sampled

from p4perf.errors import CapabilityError, MeasurementError
from p4perf.experiment.own import own_experiment
from p4perf.experiment.planning import plan_sweep
from p4perf.plugins import plugin_names
from p4perf.programs import exercise, ir
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.targets.base import TrialOptions
from p4perf.targets.oracle import PACKETS
from p4perf.targets.xdp import COMPILE, XdpTarget
from p4perf.testbeds.local import LocalTestbed

PREFIX = "<" if sys.byteorder == "little" else ">"
QUICK = TrialOptions(mode="plain", windows=1, window_us=200, timeout_ms=200, warmup_ms=0)
TARGET = XdpTarget()


@pytest.fixture(scope="module")
def place(builds):
    """A testbed whose kernel runs eBPF programs for us; the test is skipped where there is none."""
    testbed = LocalTestbed(builds)
    if shutil.which("sh") is None:
        pytest.skip("no shell")
    if reasons := [p.what for p in TARGET.problems(testbed.facts()) if p.fatal]:
        pytest.skip(reasons[0])
    return testbed


@pytest.fixture(scope="module")
def trial(place, tmp_path_factory):
    """Runs one trial of a workload with more harness options, perhaps another verification file or changed sources."""
    facts = place.facts()

    def run(workload, *options, traffic=None, verification=None, change=None, how=QUICK):
        plan = TARGET.plan(workload, traffic or TrafficPlan(workload.packets.frame_size_bytes), facts)
        job = TARGET.trial(change(plan) if change else plan, how, facts)
        files = dict(job.files)
        if verification is not None:
            files["verify.bin"] = verification(files["verify.bin"])
        folder = tmp_path_factory.mktemp("trial")
        return place.run(replace(job, argv=(*job.argv, *options), files=files), folder)

    return run


@pytest.fixture(scope="module")
def agrees(trial):
    """Checks that program and oracle agree on every packet, without measuring anything."""

    def run(workload):
        result = trial(workload, "--verify-only")
        lines = [line for line in result.stdout.splitlines() if line.startswith("{")]
        assert lines, result
        record = json.loads(lines[-1])
        assert result.returncode == 0, record
        assert record["verified_packets"] + record["too_short_packets"] == PACKETS
        assert record["verified_packets"] > 0.9 * PACKETS
        return record

    return run


PARAMETERS = {
    "l2fwd": ({}, {}),
    "parser_headers": ({"headers": 1}, {"headers": 16, "header_bits": 72}),
    "parsed_fields": ({"fields": 3}, {"fields": 20, "field_bits": 48}),
    "parser_branches": ({"branches": 3}, {"branches": 20, "depth": 3}),
    "added_headers": ({"headers": 2}, {"headers": 6, "header_bytes": 33}),
    "removed_headers": ({"removed": 2}, {"removed": 5, "kept": 3, "header_bytes": 7}),
    "match_action_table": (
        {"match_kind": "exact", "entries": 300, "key_bits": 24},
        {"match_kind": "exact", "entries": 50, "tables": 3, "keys": 2, "key_bits": 64, "hit_ratio": 0.5},
    ),
    "header_field_writes": ({"writes": 2}, {"writes": 30, "fields": 40, "field_bits": 8, "operation": "increment"}),
    "metadata_writes": ({"writes": 2}, {"writes": 20, "field_bits": 16, "operation": "chain"}),
    "arithmetic": ({"operations": 2}, {"operations": 33, "operator": "-", "width_bits": 48}),
    "conditionals": ({"conditionals": 2}, {"conditionals": 12, "nested": True}),
    "hash": ({"size_bytes": 8}, {"size_bytes": 52, "algorithm": "crc16", "repetitions": 2}),
    "checksum": ({"size_bytes": 8, "operation": "update"}, {"size_bytes": 40, "operation": "verify"}),
    "counter": ({"updates": 2}, {"updates": 5, "size": 16}),
    "meter": ({"executions": 1}, {"executions": 3, "size": 4}),
    "register": (
        {"accesses": 1, "operation": "write", "width_bits": 8},
        {"accesses": 3, "operation": "read_write", "width_bits": 64, "size": 8},
    ),
    "random": ({"numbers": 2}, {"numbers": 5, "width_bits": 8}),
    "recirculate": ({"times": 2}, {"times": 40}),
    "resubmit": ({"times": 2}, {"times": 40}),
    "clone": ({"copies": 2}, {"copies": 1}),
    "multicast": ({"ports": 2}, {"ports": 1}),
    "operator": ({"operator": "htons"}, {"operator": "checksum"}),
    "l2fwd_result": ({}, {}),
    "l2fwd_serial": ({}, {}),
    "vio": ({}, {"batch": 64}),
}

LACKING = {
    "clone": "clone",
    "multicast": "multicast",
    "operator": "operator",
    "l2fwd_serial": "fence",
    "vio": "virtual I/O",
}
"""Components that are refused, and the construct that is missing."""


def test_no_component_is_left_out():
    assert set(PARAMETERS) == {name for name in plugin_names("p4perf.components") if name != "fake"}


@pytest.mark.sampled(17)
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_every_component_agrees_with_the_oracle_or_is_refused(agrees, name, which):
    workload = build_workload([(name, PARAMETERS[name][which])], frame_size_bytes=512)
    if reason := TARGET.capabilities.refusal(workload.program, workload.packets):
        assert f"xdp has no {LACKING[name]}: " in reason
        with pytest.raises(CapabilityError, match=f"xdp has no {LACKING[name]}"):
            agrees(workload)
        return
    assert name not in LACKING
    agrees(workload)


@pytest.mark.parametrize("kind", ["lpm", "ternary"])
@pytest.mark.parametrize(
    "parameters", [{"entries": 40}, {"entries": 300, "key_bits": 40, "free_bits": 8, "tables": 2, "hit_ratio": 0.7}]
)
def test_tables_with_parts_that_match_anything(agrees, kind, parameters):
    agrees(build_workload([("match_action_table", {"match_kind": kind, **parameters})], frame_size_bytes=512))


@pytest.mark.parametrize("algorithm", ["crc16", "crc32", "checksum16"])
@pytest.mark.parametrize("size", sampled([4, 12, 100], 12))
def test_hashes(agrees, algorithm, size):
    agrees(build_workload([("hash", {"algorithm": algorithm, "size_bytes": size})], frame_size_bytes=512))


@pytest.mark.parametrize("algorithm", ["crc16", "crc32", "checksum16"])
@pytest.mark.parametrize("parameters", sampled([(516, 1), (900, 1), (1480, 1), (300, 3)], (300, 3)), ids=str)
def test_hashes_of_more_than_the_stack_holds(agrees, algorithm, parameters):
    size, repetitions = parameters
    component = ("hash", {"algorithm": algorithm, "size_bytes": size, "repetitions": repetitions})
    agrees(build_workload([component], frame_size_bytes=1518))


@pytest.mark.parametrize("operation", ["verify", "update"])
@pytest.mark.parametrize("size", sampled([516, 1000, 1480], 1000))
def test_checksums_of_more_than_the_stack_holds(agrees, operation, size):
    component = ("checksum", {"operation": operation, "size_bytes": size})
    agrees(build_workload([component], frame_size_bytes=1518))


@pytest.mark.parametrize("kind", ["exact", "ternary"])
@pytest.mark.parametrize("key", sampled([(33, 64, 2), (235, 16, 1), (333, 24, 1)], (33, 64, 2)), ids=str)
def test_keys_that_are_too_long_for_the_stack(agrees, kind, key):
    keys, key_bits, tables = key
    more = {"entries": 40, "keys": keys, "key_bits": key_bits, "tables": tables, "hit_ratio": 0.6}
    agrees(build_workload([("match_action_table", {"match_kind": kind, **more})], frame_size_bytes=1518))


@pytest.mark.thorough
@pytest.mark.parametrize("lookups", sampled([600, 1024], 600))
def test_more_lookups_than_one_function_holds(agrees, lookups):
    component = ("match_action_table", {"entries": 40, "applications": lookups, "hit_ratio": 0.6})
    agrees(build_workload([component], frame_size_bytes=512))


FORWARD = ir.Action("forward", body=(ir.SetEgress(ir.Const(3)),))
A = ir.Header("a", (ir.Field("x", 3), ir.Field("y", 13), ir.Field("z", 48), ir.Field("w", 128), ir.Field("kind", 16)))
B = ir.Header("b", (ir.Field("p", 7), ir.Field("q", 64), ir.Field("r", 1), ir.Field("sum", 16), ir.Field("s", 24)))
C = ir.Header("c", (ir.Field("t", 40),))


def workload(actions, *, control=None, headers=(A, B, C), emit=("a", "b", "c"), key_count=1, **more):
    """A program over three headers, of which the second is optional and the third is never in the packets."""
    program = ir.Program(
        name="truth",
        headers=headers,
        metadata=(ir.Field("m", 9), ir.Field("n", 64)),
        parser=(
            extracting("start", ("a",), ir.FieldRef("a", "kind"), (ir.SelectCase.of_value(0x1234, "more"),)),
            extracting("more", ("b",)),
        ),
        actions=(FORWARD, *actions),
        tables=more.pop("tables", ()),
        control=(ir.CallAction("forward"), *(control or [ir.CallAction(a.name) for a in actions if not a.parameters])),
        emit=emit,
        **more,
    )
    values = (
        ir.HeaderValues(
            "a", (("x", 5), ("y", 0x1ABC), ("z", 0x010203040506), ("w", (0xDEAD << 100) + 77), ("kind", 0x1234))
        ),
        ir.HeaderValues("b", (("p", 3), ("q", 0xFEDCBA9876543210), ("r", 1), ("sum", 0xBEEF), ("s", 0x00A1B2))),
    )
    packets = ir.PacketSpec(values, (ir.VaryingField(ir.FieldRef("a", "z"), key_count),), 128)
    baseline = replace(
        program, name="baseline", actions=(FORWARD,), tables=(), control=(ir.CallAction("forward"),), emit=("a", "b"),
        counters=(), registers=(), meters=(), verified=(), updated=(), headers=headers[:2],
    )  # fmt: skip
    return ir.Workload(program, baseline, packets)


def ref(text):
    return ir.FieldRef(*text.split("."))


def op(operator, left, right):
    return ir.BinaryOp(operator, left, right)


BODIES = {
    "fields of odd widths": (
        ir.Assign(ref("a.x"), op("+", ref("a.x"), ir.Const(6))),
        ir.Assign(ref("a.y"), op("-", ref("a.y"), ref("a.z"))),
        ir.Assign(ref("b.p"), op("^", ref("b.q"), ir.Const(0x55))),
        ir.Assign(ref("b.r"), op("&", ref("b.r"), ref("a.x"))),
        ir.Assign(ref("b.q"), op("|", ref("b.q"), ref("a.z"))),
    ),
    "wide fields": (
        ir.Assign(ref("a.w"), ref("a.w")),
        ir.Assign(ref("a.z"), ref("a.w")),
        ir.Assign(ref("a.w"), ref("b.q")),
    ),
    "a wide constant": (ir.Assign(ref("a.w"), ir.Const((1 << 127) + 5)),),
    "metadata": (
        ir.Assign(ref("meta.m"), op("+", ref("a.z"), ir.Const(500))),
        ir.Assign(ref("meta.n"), op("-", ref("meta.m"), ir.Const(501))),
        ir.Assign(ref("b.q"), ref("meta.n")),
        ir.Assign(ref("a.y"), ref("meta.m")),
    ),
    "drop": (ir.Drop(), ir.SetEgress(ir.Const(4))),
    "an added header": (
        ir.AddHeader("c", (("t", ref("a.z")),)),
        ir.Assign(ref("c.t"), op("+", ref("c.t"), ir.Const(1))),
    ),
    "a removed header": (ir.RemoveHeader("b"), ir.Assign(ref("a.z"), ref("b.q"))),
    "removed and added again": (ir.RemoveHeader("a"), ir.AddHeader("a", (("w", ref("a.w")), ("z", ref("b.q"))))),
    "a header that is not there": (ir.Assign(ref("c.t"), ir.Const(7)), ir.Assign(ref("a.y"), ref("c.t"))),
    "hash of bits": (ir.Hash(ref("b.s"), "crc32", (ref("a.x"), ref("a.y"), ref("b.s"), ref("a.w"))),),
    "hash in a wide field across nine bytes": (ir.Hash(ref("b.q"), "crc32", (ref("a.z"), ref("b.s"), ref("b.q"))),),
    "hash of metadata": (
        ir.Assign(ref("meta.n"), ref("a.z")),
        ir.Hash(ref("a.y"), "crc16", (ref("meta.n"), ref("b.sum"))),
    ),
    "checksum of odd bytes": (ir.Hash(ref("b.sum"), "checksum16", (ref("a.z"), ref("b.s"), ref("a.w"))),),
    "random": (ir.Random(ref("b.q")), ir.Random(ref("a.x"))),
    "decided by random bits and by the time": (
        ir.Random(ref("a.x")),
        ir.Branch(ir.Compare("<", ref("a.x"), ir.Const(4)), (ir.Assign(ref("b.p"), ir.Const(1)),), (ir.Drop(),)),
        ir.Assign(ref("b.q"), ir.Intrinsic("unknown")),
        ir.Branch(ir.Compare("<", ref("b.q"), ir.Const(1 << 63)), (ir.Assign(ref("b.r"), ir.Const(1)),)),
    ),
    "counted": (ir.CountPacket("count", op("+", ref("a.z"), ir.Const(1))),),
    "registers": (
        ir.ReadRegister(ref("a.y"), "cells", ref("a.z")),
        ir.WriteRegister("cells", ref("a.z"), op("+", ref("a.y"), ir.Const(3))),
        ir.WriteRegister("cells", ir.Const(2), ref("b.q")),
    ),
    "metered": (ir.Assign(ref("a.x"), ir.Const(7)), ir.MeterPacket(ref("a.x"), "meter", ref("a.z"))),
}
STATES = {
    "counters": (ir.Counter("count", 8),),
    "registers": (ir.Register("cells", 4, 13),),
    "meters": (ir.Meter("meter", 4),),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", sorted(BODIES))
def test_statements(agrees, name):
    agrees(workload([ir.Action("act", body=BODIES[name])], key_count=20, **STATES))


@pytest.mark.parametrize("emit", [("b", "a", "c"), ("c", "a", "b"), ("b",), ("a",)], ids="".join)
def test_headers_in_another_order(agrees, emit):
    added = ir.Action(
        "act", body=(ir.AddHeader("c", (("t", ir.Const(0x1122334455)),)), ir.Assign(ref("b.s"), ir.Const(9)))
    )
    agrees(workload([added], emit=emit))


@pytest.mark.parametrize("field", ["verified", "updated"])
def test_checksums(agrees, field):
    body = (ir.Assign(ref("b.q"), op("+", ref("b.q"), ref("a.z"))),)
    header = ir.Header(
        "b", (ir.Field("p", 8), ir.Field("q", 64), ir.Field("r", 8), ir.Field("sum", 16), ir.Field("s", 24))
    )
    agrees(workload([ir.Action("act", body=body)], headers=(A, header, C), **{field: (ir.FieldRef("b", "sum"),)}))


BIG = ir.Header(
    "b",
    (
        ir.Field("p", 7),
        ir.Field("q", 64),
        ir.Field("big", 5000),
        ir.Field("r", 1),
        ir.Field("sum", 16),
        ir.Field("s", 24),
    ),
)
"""A header in packets with a field of 625 bytes, which begins within a byte."""
LONG = ir.Header("c", (ir.Field("t", 40), ir.Field("long", 5000)))
LARGE = {
    "bits": (ref("a.y"), ref("a.x"), ref("b.big")),
    "a header and others around it": (ref("a.w"), *(ir.FieldRef("b", f.name) for f in BIG.fields), ref("meta.n")),
    "a header that is not there": (ref("b.s"), ref("c.long")),
    "two headers": (ref("b.big"), ref("a.z"), ref("c.long")),
}


def large(actions, **more):
    made = workload(actions, headers=(A, BIG, LONG if more.pop("long", True) else C), key_count=20, **more)
    return replace(made, packets=replace(made.packets, frame_size_bytes=1400))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("algorithm", ["crc16", "crc32", "checksum16"])
@pytest.mark.parametrize("name", sampled(sorted(LARGE), "a header and others around it", "two headers"))
def test_large_hashes_of_headers_that_may_be_absent(agrees, name, algorithm):
    agrees(large([ir.Action("act", body=(ir.Hash(ref("a.y"), algorithm, LARGE[name]),))]))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("algorithm", ["crc16", "crc32", "checksum16"])
@pytest.mark.parametrize(
    "last",
    [ir.AddHeader("c", (("t", ref("a.y")),)), ir.RemoveHeader("b"), ir.Resubmit(), ir.Recirculate()],
    ids=lambda s: str(s)[:9],
)
def test_large_hashes_of_headers_that_move(agrees, last, algorithm):
    act = ir.Action("act", body=(ir.Hash(ref("a.y"), algorithm, (ref("a.y"), ref("a.x"), ref("b.big"))),))
    control = (
        ir.CallAction("forward"),
        ir.CallAction("act"),
        ir.If(ir.Compare("<", ir.PassNumber(), ir.Const(2)), (ir.CallAction("last"),)),
    )
    agrees(large([act, ir.Action("last", body=(last,))], control=control, long=False))


@pytest.mark.parametrize("field", ["verified", "updated"])
def test_large_checksums_of_headers_that_may_be_absent(agrees, field):
    body = (ir.Assign(ref("b.q"), op("+", ref("b.q"), ref("a.z"))),)
    agrees(large([ir.Action("act", body=body)], **{field: (ir.FieldRef("b", "sum"),)}))


def condition(left, comparator, right):
    return ir.Compare(comparator, left, right)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("comparator", ["==", "!=", "<", ">", "<=", ">="])
def test_conditions(agrees, comparator):
    marks = [ir.Action(f"mark{n}", body=(ir.Assign(ref("a.x"), ir.Const(n)),)) for n in range(4)]
    inner = ir.If(ir.IsValid("b"), (ir.CallAction("mark0"),), (ir.CallAction("mark1"),))
    control = (
        ir.CallAction("forward"),
        ir.If(condition(ref("a.z"), comparator, ir.Const(10)), (inner,), (ir.CallAction("mark2"),)),
        ir.If(condition(ref("b.q"), comparator, ref("b.s")), (ir.CallAction("mark3"),)),
    )
    agrees(workload(marks, control=control, key_count=20))


@pytest.mark.parametrize("again", [ir.Recirculate(), ir.Resubmit()], ids=lambda s: type(s).__name__)
def test_packets_that_go_through_again(agrees, again):
    act = ir.Action(
        "act",
        body=(
            ir.Assign(ref("a.y"), op("+", ref("a.y"), ir.Const(3))),
            ir.Assign(ref("b.s"), op("+", ref("b.s"), ir.PassNumber())),
            ir.CountPacket("count", ir.PassNumber()),
        ),
    )
    control = (
        ir.CallAction("forward"),
        ir.CallAction("act"),
        ir.If(condition(ir.PassNumber(), "<", ir.Const(5)), (ir.CallAction("again"),)),
    )
    agrees(workload([act, ir.Action("again", body=(again,))], control=control, **STATES))


def test_a_header_that_is_pushed_in_every_pass(agrees):
    push = ir.Action("push", body=(ir.RemoveHeader("b"), ir.AddHeader("c", (("t", ref("a.z")),)), ir.Recirculate()))
    control = (
        ir.CallAction("forward"),
        ir.If(condition(ir.PassNumber(), "<", ir.Const(1)), (ir.CallAction("push"),)),
    )
    agrees(workload([push], control=control))


KEYS = {
    "exact": ((ir.Key(ref("a.z")),), 0),
    "exact of odd bits": ((ir.Key(ref("a.y")), ir.Key(ref("b.p")), ir.Key(ref("a.z"))), 0),
    "exact of metadata": ((ir.Key(ref("meta.m")), ir.Key(ref("a.z"))), 0),
    "exact, wide": ((ir.Key(ref("b.r")), ir.Key(ref("a.w")), ir.Key(ref("a.z"))), 0),
    "lpm": ((ir.Key(ref("a.z"), "lpm"),), 2),
    "lpm of odd bits": ((ir.Key(ref("a.x")), ir.Key(ref("a.z"), "lpm")), 3),
    "ternary": ((ir.Key(ref("a.z"), "ternary"),), 1),
    "ternary of odd bits": (
        (ir.Key(ref("b.p"), "ternary"), ir.Key(ref("a.z"), "ternary"), ir.Key(ref("a.y"), "ternary")),
        13,
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", sorted(KEYS))
@pytest.mark.parametrize("count", sampled([1, 57], 57))
def test_tables(agrees, name, count):
    keys, free_bits = KEYS[name]
    parameters = (ir.Field("port", 9), ir.Field("v", 24), ir.Field("u", 64), ir.Field("t", 5))
    data = op("^", op("+", ir.ParameterRef("v"), ir.ParameterRef("u")), ir.ParameterRef("t"))
    found = ir.Action("found", parameters, (ir.SetEgress(ir.ParameterRef("port")), ir.Assign(ref("b.q"), data)))
    clear = ir.Action("clear", body=tuple(ir.Assign(k.field, ir.Const(0)) for k in keys if k.field != ref("a.z")))
    missed = ir.Action("missed", body=(ir.Drop(),))
    table = ir.Table("table", keys, ("found",), "missed", ir.EntrySet(count, "found", 300, free_bits))
    control = (ir.CallAction("forward"), ir.CallAction("clear"), ir.ApplyTable("table"))
    agrees(workload([clear, found, missed], control=control, tables=(table,), key_count=max(2 * count, 8)))


def test_an_empty_table_has_no_hits(agrees):
    found = ir.Action("found", (ir.Field("port", 16),), (ir.SetEgress(ir.ParameterRef("port")),))
    missed = ir.Action("missed", body=(ir.Drop(),))
    tables = tuple(
        ir.Table(f"table_{kind}", (ir.Key(ref("a.z"), kind),), ("found",), "missed", ir.EntrySet(0, "found"))
        for kind in ("exact", "lpm", "ternary")
    )
    control = tuple(ir.ApplyTable(t.name) for t in tables)
    agrees(workload([found, missed], control=control, tables=tables, key_count=4))


FIELDS = [ref(text) for text in ("a.x", "a.y", "a.z", "b.p", "b.q", "b.r", "b.s", "c.t", "meta.m", "meta.n")]
values = st.recursive(
    st.sampled_from(FIELDS) | st.integers(0, 2**20).map(ir.Const),
    lambda inner: st.builds(ir.BinaryOp, st.sampled_from(["+", "-", "&", "|", "^"]), inner, inner),
    max_leaves=4,
)
steps = st.one_of(
    st.builds(ir.Assign, st.sampled_from(FIELDS), values),
    st.builds(ir.AddHeader, st.just("c"), st.tuples(st.tuples(st.just("t"), values))),
    st.builds(ir.RemoveHeader, st.sampled_from(["b", "c"])),
    st.builds(ir.WriteRegister, st.just("cells"), values, values),
    st.builds(ir.ReadRegister, st.sampled_from(FIELDS), st.just("cells"), values),
    st.builds(ir.CountPacket, st.just("count"), values),
    st.builds(ir.Hash, st.sampled_from(FIELDS), st.just("crc32"), st.just((ref("a.z"), ref("b.s"), ref("b.q")))),
)


@settings(max_examples=12)
@given(
    st.lists(st.lists(steps, min_size=1, max_size=6), min_size=2, max_size=3),
    st.sampled_from(["<", "==", ">="]),
    st.sampled_from(FIELDS),
)
def test_programs_of_chance(agrees, bodies, comparator, field):
    actions = [ir.Action(f"act{n}", body=tuple(body)) for n, body in enumerate(bodies)]
    control = (
        ir.CallAction("forward"),
        ir.CallAction("act0"),
        ir.If(ir.Compare(comparator, field, ir.Const(700)), tuple(ir.CallAction(a.name) for a in actions[1:])),
    )
    agrees(workload(actions, control=control, key_count=40, **STATES))


def test_an_oracle_that_disagrees_is_noticed(trial):
    def spoil(data):
        length, outputs = struct.unpack_from(PREFIX + "HH", data, 24)
        assert outputs == 1
        return data[: 24 + 4 + length + 4] + bytes([data[24 + 4 + length + 4] ^ 1]) + data[24 + 4 + length + 5 :]

    result = trial(build_workload([("parser_headers", {"headers": 1})], frame_size_bytes=64), verification=spoil)
    with pytest.raises(MeasurementError, match="packet 0 differs at byte 0") as caught:
        TARGET.parse(result)
    assert caught.value.key == "verify"


def test_what_the_verifier_refuses_fails_with_its_words(trial):
    """A program without the bounds check of its first header; the message names the file that was loaded."""

    def spoil(plan):
        source = plan.build.files["program.bpf.c"].replace("if (cursor + 14 > end)", "if (cursor == end)")
        return replace(plan, build=replace(plan.build, files={**plan.build.files, "program.bpf.c": source}))

    result = trial(build_workload([("parser_headers", {"headers": 1})], frame_size_bytes=64), change=spoil)
    with pytest.raises(MeasurementError, match=r"verifier.*program\.o: .*invalid access to packet") as caught:
        TARGET.parse(result)
    assert caught.value.key == "verify"
    assert len(str(caught.value)) < 1000


def test_a_measurement_of_a_short_program(trial):
    gated = TrialOptions(windows=20, window_us=200)
    record = TARGET.parse(
        trial(build_workload([("match_action_table", {"entries": 100})], frame_size_bytes=64), how=gated)
    )
    assert record["stream_sent"] == record["stream_packets"] == 256
    assert 0 < record["program_instructions"] < 1000
    assert record["code_bytes"] > 0
    assert record["load_ms"] > 0
    assert record["compile_ms"] > 0
    summary = TARGET.summarise(record, None)
    metrics = {m.metric: m.value for m in summary.metrics}
    if not summary.accepted:
        pytest.skip(f"the machine was disturbed: {summary.flags}")
    assert set(TARGET.metrics) <= set(metrics)
    assert metrics["cycles_per_packet"] > metrics["baseline_cycles_per_packet"] > 0


def test_a_program_with_a_large_table_does_not_pass_for_a_neighbour(trial):
    """The calibrators are as fast behind a program that displaces their code from the caches as behind the baseline."""
    large = build_workload([("match_action_table", {"entries": 300_000})], frame_size_bytes=128)
    result = trial(large, how=replace(QUICK, windows=40, timeout_ms=5000))
    windows = json.loads(result.stdout.splitlines()[-1])["windows"]
    ratios = {0: [], 1: []}
    for program, mix, chain in zip(
        windows["program"], windows["mix_after_tsc"], windows["chain_after_tsc"], strict=True
    ):
        ratios[program].append(mix / chain)
    least = {program: statistics.quantiles(found, n=10)[0] for program, found in ratios.items()}
    assert least[0] < 1.1 * least[1]


@pytest.mark.parametrize("hit_ratio", [0.0, 0.5])
def test_the_stream_hits_as_often_as_asked(trial, hit_ratio):
    workload = build_workload([("match_action_table", {"entries": 100, "hit_ratio": hit_ratio})], frame_size_bytes=64)
    record = TARGET.parse(trial(workload, traffic=TrafficPlan(64, hit_ratio=hit_ratio)))
    assert abs(record["stream_sent"] / record["stream_packets"] - hit_ratio) < 0.15


def test_tables_have_keys_of_their_own_range(trial):
    tables = [("match_action_table", {"entries": n}) for n in (100, 7, 3000)]
    record = TARGET.parse(trial(build_workload(tables, frame_size_bytes=128)))
    assert record["stream_sent"] == record["stream_packets"] == 256


@pytest.mark.parametrize("sizes", [(100, 100), (100, 3000)])
def test_tables_have_keys_that_are_independent(trial, sizes):
    """Half of the packets hit each table: a quarter hits both. With one key for both it would be half."""
    tables = [("match_action_table", {"entries": n, "hit_ratio": 0.5}) for n in sizes]
    record = TARGET.parse(trial(build_workload(tables, frame_size_bytes=128), traffic=TrafficPlan(128, hit_ratio=0.5)))
    assert abs(record["stream_sent"] / record["stream_packets"] - 0.25) < 0.12


@pytest.mark.parametrize("name", ["added_headers", "removed_headers", "recirculate", "resubmit", "checksum"])
def test_streams_of_programs_that_change_their_packets(trial, name):
    workload = build_workload([(name, PARAMETERS[name][0])], frame_size_bytes=128)
    record = TARGET.parse(trial(workload))
    assert record["stream_sent"] == record["stream_packets"]


def one_entry(name, *matches, data=()):
    return ir.Entry(matches, name, data)


def own_program():
    """A program with what only those have that are read."""
    meta = lambda name: ir.FieldRef(ir.METADATA, name)  # noqa: E731
    ones, kind, mark = (1 << 48) - 1, ref("eth.type"), meta("mark")
    exact, prefix = ir.Key(ref("eth.src"), "exact"), ir.Key(ref("eth.dst"), "lpm")
    port, size = (ir.Field("port", 9),), (ir.Field("size", 16),)
    entries = {
        "exact": [one_entry("out", ir.Match.masked(n, ones), data=(n + 1,)) for n in range(3)]
        + [one_entry("leave", ir.Match.masked(3, ones))],
        "lpm": [one_entry("out", ir.Match.masked(0, ones - 1), data=(7,)), one_entry("add", ir.Match.masked(0, 0))],
        "range": [one_entry("cut", ir.Match(-1, 1, 6), data=(40,)), one_entry("add", ir.Match(-1, 2, 300))],
    }
    keys = {"exact": (exact,), "lpm": (prefix,), "range": (ir.Key(kind, "range"),)}
    tables = [
        ir.Table(n, keys[n], ("out", "add", "cut", "leave"), "add", ir.EntryList(tuple(entries[n]))) for n in keys
    ]
    tables.append(ir.Table("none", (), ("out",), "out", ir.EntryList(), (5,)))
    add = ir.BinaryOp("+", mark, ir.Const(3))
    return ir.Program(
        name="own",
        headers=(
            ir.Header("eth", (ir.Field("dst", 48), ir.Field("src", 48), ir.Field("type", 16))),
            ir.Header("tag", (ir.Field("wide", 80), ir.Field("low", 16))),
        ),
        metadata=(ir.Field("mark", 8), ir.Field("error", 8), ir.Field("big", 80)),
        parser=(
            ir.ParserState("start", (ir.Extract("eth"),), (kind, ir.Lookahead(3, 5)), (
                ir.SelectCase((ir.Match(0xFF00, 0, 0), ir.Match(-1, 0, 9)), "tag"),
                ir.SelectCase((ir.Match(0, 0, 0), ir.Match.masked(3, 3)), "skip"),
            )),
            ir.ParserState("skip", (ir.Advance(ir.Cast(ir.BinaryOp("<<", kind, ir.Const(3)), 6)),), default="tag"),
            ir.ParserState("tag", (
                ir.Extract("tag"), ir.Assign(meta("big"), ref("tag.wide")),
                ir.Verify(ir.Compare("!=", ref("tag.low"), ir.Const(3)), 9),
            )),
        ),
        actions=(
            ir.Action("out", port, (ir.SetEgress(ir.ParameterRef("port")),)),
            ir.Action("add", body=(ir.Assign(mark, ir.Cast(add, 8, saturating=True)),)),
            ir.Action("cut", size, (ir.Truncate(ir.ParameterRef("size")),)),
            ir.Action("leave", body=(ir.Exit(),)),
            ir.Action("tagged", body=(ir.Branch(
                ir.And(ir.IsValid("tag"), ir.Not(ir.Compare("==", meta("error"), ir.Const(9)))),
                (ir.Assign(ref("tag.low"), ir.Cast(meta("big"), 12)),),
                (ir.AddHeader("tag", (("low", mark),)),),
            ),)),
            ir.Action("untag", body=(ir.RemoveHeader("tag"), ir.CountPacket("bytes", ir.Intrinsic("egress_port")))),
        ),
        tables=tuple(tables),
        control=(
            ir.Block((
                ir.ApplyTable("none"),
                ir.ApplyTable("exact", hit=(ir.CallAction("tagged"),), cases=(("out", (ir.ApplyTable("lpm"),)),)),
                ir.ApplyTable("range", miss=(ir.CallAction("tagged"),)),
            )),
            ir.CallAction("add"),
        ),
        egress=(ir.If(ir.Compare(">", mark, ir.Const(5)), (ir.CallAction("untag"),)),),
        emit=("eth", "tag"),
        counters=(ir.Counter("bytes", 5, of_bytes=True),),
        parser_error=meta("error"),
    )  # fmt: skip


def test_a_program_that_meters_packets_of_which_it_reads_nothing(agrees):
    colour = ir.FieldRef(ir.METADATA, "colour")
    program = ir.Program(
        name="metered",
        headers=(ir.Header("eth", (ir.Field("dst", 48), ir.Field("src", 48), ir.Field("type", 16))),),
        metadata=(ir.Field("colour", 32),),
        parser=(ir.ParserState("start", ()),),
        actions=(
            ir.Action("meter", body=(ir.MeterPacket(colour, "meter", ir.Const(0)),)),
            ir.Action("out", body=(ir.SetEgress(ir.Const(1)),)),
        ),
        tables=(ir.Table("metered", (ir.Key(colour, "exact"),), ("meter",), "meter", ir.EntryList()),),
        control=(ir.ApplyTable("metered"), ir.CallAction("out")),
        emit=("eth",),
        meters=(ir.Meter("meter", 4),),
    )
    agrees(ir.Workload(program, program, ir.PacketSpec((), (), 64), frames=tuple(bytes(60) for _ in range(PACKETS))))


def test_a_program_that_was_read(agrees):
    program = own_program()
    frames = tuple(data[:60].ljust(60, b"\1") for data in exercise.frames(program, PACKETS))
    agrees(ir.Workload(program, program, ir.PacketSpec((), (), 64), frames=frames))


@pytest.fixture(scope="module")
def filtering(place, tmp_path_factory):
    """A point of target xdp:p4c, and what runs it; the test is skipped where a compiler of p4c is missing."""
    if missing := [tool for tool in ("p4c-ebpf", "p4c-bm2-ss") if shutil.which(tool) is None]:
        pytest.skip(f"no {missing[0]} on the PATH")
    target, facts = XdpTarget(("p4c",)), place.facts()
    path = tmp_path_factory.mktemp("filter") / "filter.p4"
    path.write_text(FILTER)
    (point,) = plan_sweep(own_experiment(path, default_fill=16), target, facts).points

    def run(plan):
        place.build(plan.build)
        return target.parse(place.run(target.trial(plan, QUICK, facts), tmp_path_factory.mktemp("trial")))

    return point.plan, run


def test_a_filter_of_p4c_computes_what_the_interpreter_computes(filtering):
    plan, run = filtering
    assert run(plan)["verified_packets"] == PACKETS


def test_a_filter_with_another_entry_is_noticed(filtering):
    plan, run = filtering
    layout = plan.build.files["layout.c"].replace("ROUTES_ACT_PIPE_CHECK", "ROUTES_ACT_PIPE_PASS")
    spoilt = replace(plan, build=replace(plan.build, files={**plan.build.files, "layout.c": layout}))
    with pytest.raises(MeasurementError, match="packet"):
        run(spoilt)


def test_many_stores_of_zeros_are_compiled(place, tmp_path):
    """LLVM makes a call of memset of them, and there is none for eBPF."""
    stores = "\n".join(f"\tp->f[{n}] = 0;" for n in range(256))
    (tmp_path / "zeros.bpf.c").write_text(
        "struct s { unsigned long long f[256]; };\n"
        f'void zero(struct s *p) __attribute__((section("xdp")));\nvoid\nzero(struct s *p)\n{{\n{stores}\n}}\n'
    )
    done = subprocess.run(["sh", "-c", COMPILE, "sh", "zeros"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "zeros.o").exists()
    assert int((tmp_path / "compile_ns").read_text()) > 0
