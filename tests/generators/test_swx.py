"""Specifications of SWX: golden text, what is refused, and what instructions are not written."""

import re
from dataclasses import replace

import pytest

from p4perf.errors import CapabilityError
from p4perf.generators.swx.code import Assembler
from p4perf.generators.swx.spec import Pipeline, Swx
from p4perf.programs.component import TrafficPlan
from p4perf.programs.ir import (
    METADATA,
    Action,
    AddHeader,
    ApplyTable,
    Assign,
    BinaryOp,
    CallAction,
    Clone,
    Compare,
    Const,
    Counter,
    CountPacket,
    Drop,
    EntrySet,
    Field,
    FieldRef,
    Header,
    If,
    IsValid,
    Key,
    ParameterRef,
    ParserState,
    Program,
    Recirculate,
    RemoveHeader,
    SelectCase,
    SetEgress,
    Table,
)
from p4perf.programs.workload import build_workload

ETHERNET = Header("ethernet", (Field("dst", 48), Field("src", 48), Field("kind", 16)))
OPTION = Header("option", (Field("kind", 3), Field("size", 13), Field("word", 32), Field("long", 128)))
KIND = FieldRef("ethernet", "kind")
WORD = FieldRef("option", "word")
SEND = Action("send", body=(SetEgress(Const(3)),))


def program(control, actions, **more):
    parser = (
        ParserState("start", ("ethernet",), KIND, (SelectCase(0x88B5, "more"),)),
        ParserState("more", ("option",)),
    )
    base = Program("p", (ETHERNET, OPTION), (), parser, (SEND, *actions), (), control, ("ethernet", "option"))
    return replace(base, **more)


def body(*statements, parameters=()):
    return program((CallAction("send"), CallAction("a")), (Action("a", parameters, statements),))


def text_of(p):
    return Pipeline(p, "program", 60).specification()


def instructions(p):
    """The instructions of the pipeline without their labels."""
    lines = text_of(p).split("apply {")[1].split("}")[0].strip().splitlines()
    return [line.split(" : ")[-1].strip() for line in lines]


def workload(*components, frame_size=256):
    return build_workload(components, frame_size_bytes=frame_size)


GOLDEN = {
    "l2fwd": workload(),
    "headers": workload(("parser_headers", {"headers": 3})),
    "table": workload(("match_action_table", {"entries": 10, "key_bits": 48, "action_data_bytes": 8})),
    "writes": workload(("header_field_writes", {"writes": 2, "fields": 3, "operation": "set"})),
    "externs": workload(
        ("hash", {"size_bytes": 8}),
        ("counter", {"updates": 1}),
        ("register", {"accesses": 1}),
        ("meter", {"executions": 1}),
        ("checksum", {"size_bytes": 20}),
    ),
    "paths": workload(
        ("removed_headers", {"removed": 1}),
        ("added_headers", {"headers": 1}),
        ("recirculate", {"times": 1}),
        ("multicast", {"ports": 2}),
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(golden, name):
    text = Swx().generate(GOLDEN[name], TrafficPlan(256))[0].text()
    golden(f"swx/{name}.spec", re.sub(r"p4perf \S+:", "p4perf VERSION:", text, count=1))


def test_program_and_baseline_are_two_files():
    made = {f.path: f.text() for f in Swx().generate(GOLDEN["table"], TrafficPlan(256))}
    assert list(made) == ["program.spec", "baseline.spec"]
    assert "table " in made["program.spec"]
    assert "table " not in made["baseline.spec"].split("apply")[1]


def test_the_baseline_is_as_short_as_it_can_be():
    assert instructions(GOLDEN["l2fwd"].baseline) == [
        "rx m.swx_port_in",
        "extract h.ethernet",
        "mov m.swx_port_out 0x1",
        "emit h.ethernet",
        "tx m.swx_port_out",
    ]


def test_metadata_is_cleared_only_where_it_is_read_before_it_is_written():
    count = FieldRef(METADATA, "count")
    read = body(Assign(count, BinaryOp("+", count, Const(1))), Assign(FieldRef("ethernet", "src"), count))
    written = body(Assign(count, Const(1)), Assign(FieldRef("ethernet", "src"), count))
    assert "mov m.count 0x0" in instructions(replace(read, metadata=(Field("count", 32),)))
    assert "mov m.count 0x0" not in instructions(replace(written, metadata=(Field("count", 32),)))


def test_a_header_that_may_not_be_there_costs_nothing_where_it_is():
    lines = instructions(body(Assign(FieldRef("ethernet", "dst"), WORD)))
    end = lines.index("tx m.swx_port_out")
    assert "mov h.option.word 0x0" not in lines[:end]
    assert lines[end + 1 :] == ["validate h.option", "mov h.option.word 0x0", "invalidate h.option", "jmp L_ACCEPT_3"]


def test_a_header_that_is_asked_for_first_needs_nothing():
    write = Action("a", body=(Assign(FieldRef("ethernet", "dst"), WORD),))
    lines = instructions(program((CallAction("send"), If(IsValid("option"), (CallAction("a"),))), (write,)))
    assert "validate h.option" not in lines


def test_writes_are_guarded_only_where_what_is_lost_would_be_read():
    once = body(Assign(WORD, Const(1)), Assign(FieldRef("option", "size"), Const(2)))
    twice = body(Assign(WORD, BinaryOp("+", WORD, Const(1))), Assign(WORD, BinaryOp("^", WORD, Const(3))))
    assert not any(line.startswith("jmpnv") for line in instructions(once))
    assert sum(line.startswith("jmpnv") for line in instructions(twice)) == 1


def test_drop_ends_a_packet_only_where_nothing_shows_later():
    toss = Action("toss", body=(Drop(),))
    seen = Action("count", body=(CountPacket("seen", Const(0)),))
    last = program((CallAction("send"), CallAction("toss")), (toss,))
    first = program((CallAction("toss"), CallAction("count")), (toss, seen), counters=(Counter("seen", 1),))
    assert "drop" in instructions(last)
    assert "mov m.swx_dropped 0x1" in instructions(first)
    assert instructions(first).index("drop") > instructions(first).index("tx m.swx_port_out")


def test_recirculation_waits_for_a_drop():
    again = Action("again", body=(Recirculate(),))
    toss = Action("toss", body=(Drop(),))
    once = program((CallAction("send"), CallAction("again")), (again,))
    both = program((CallAction("again"), If(Compare("==", KIND, Const(1)), (CallAction("toss"),))), (again, toss))
    assert "mov m.swx_again 0x1" not in instructions(once)
    assert "mov m.swx_again 0x1" in instructions(both)


def test_fields_between_bytes_share_one():
    text = text_of(body(Assign(FieldRef("option", "kind"), Const(5)), Assign(FieldRef("option", "size"), WORD)))
    assert "bit<16> kind_to_size" in text
    assert "and h.option.kind_to_size 0x1fff" in text
    assert "or h.option.kind_to_size 0xa000" in text


def test_long_fields_are_split_only_where_they_have_to_be():
    long = FieldRef("option", "long")
    assert "bit<128> long" in text_of(body(RemoveHeader("option")))
    assert "bit<64> long_w1" in text_of(body(Assign(long, Const(1 << 100))))
    assert "mov h.option.long_w1 0x1000000000" in text_of(body(Assign(long, Const(1 << 100))))


def test_keys_of_several_headers_are_copied_side_by_side():
    table = Table("t", (Key(FieldRef("ethernet", "src")), Key(WORD)), ("send",), "send", EntrySet(2, "send"))
    lines = instructions(program((ApplyTable("t"),), (), tables=(table,)))
    at = lines.index("table t")
    assert lines[at - 2 : at] == ["mov m.swx_key_t_0 h.ethernet.src", "mov m.swx_key_t_1 h.option.word"]


def test_comparisons_that_swx_would_cut_are_decided():
    impossible = If(Compare("==", KIND, Const(1 << 20)), (CallAction("a"),))
    write = Action("a", body=(Assign(KIND, Const(0)),))
    assert not any("0x100000" in line for line in instructions(program((CallAction("send"), impossible), (write,))))


@pytest.mark.parametrize("comparator", ["==", "!=", "<", ">", "<=", ">="])
def test_every_comparison_has_a_jump(comparator):
    node = If(Compare(comparator, Const(7), KIND), (CallAction("a"),), (CallAction("send"),))
    lines = instructions(program((CallAction("send"), node), (Action("a", body=(Assign(KIND, Const(0)),)),)))
    assert sum(line.startswith("jmp") and "h.ethernet.kind" in line and "0x7" in line for line in lines) == 1


LOOP = (ParserState("start", ("ethernet",), KIND, (SelectCase(1, "start"),)),)
REFUSED = {
    "loops of parser states": replace(body(), parser=LOOP),
    "calculates a port": body(SetEgress(WORD)),
    "clones a packet as it is sent": body(Clone(1), Assign(KIND, Const(1))),
    "computes with up to 64": body(Assign(FieldRef("option", "long"), BinaryOp("+", WORD, Const(1)))),
    "offsets in one byte": program(
        (ApplyTable("t"),),
        (Action("wide", tuple(Field(f"p{n}", 64) for n in range(34)), (SetEgress(ParameterRef("p0")),)),),
        tables=(Table("t", (Key(KIND),), ("wide",), "send", EntrySet(1, "wide")),),
    ),
    "up to 63 characters": replace(body(), headers=(ETHERNET, OPTION, Header("x" * 62, (Field("f", 8),)))),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_swx_cannot_do_is_refused(reason):
    with pytest.raises(CapabilityError, match=reason):
        Pipeline(REFUSED[reason], "program", 60)


@pytest.mark.parametrize(
    ("components", "reason"),
    [
        ([("parser_headers", {"headers": 64})], "65 headers are more than the 64"),
        ([("random", {"numbers": 1})], "no random"),
        ([("resubmit", {"times": 1})], "no resubmit"),
        ([("hash", {"size_bytes": 8, "algorithm": "crc16"})], "no hash crc16"),
        ([("added_headers", {"headers": 1, "header_bytes": 256})], "header bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_limits_name_their_source(components, reason):
    with pytest.raises(CapabilityError, match=rf"{reason}.*DPDK 22\.11"):
        Swx().generate(workload(*components, frame_size=1518), TrafficPlan(1518))


def test_long_arithmetic_is_refused_by_the_table():
    p = body(Assign(FieldRef("option", "long"), BinaryOp("+", FieldRef("option", "long"), Const(1))))
    with pytest.raises(CapabilityError, match="128 computed field bits"):
        Swx().generate(replace(GOLDEN["l2fwd"], program=p), TrafficPlan(256))


def test_an_added_header_has_all_of_its_fields_set():
    added = (AddHeader("option", (("size", WORD), ("kind", Const(2)))),)
    text = text_of(body(*added))
    assert "validate h.option\n\tmov h.option.kind_to_size 0x4000\n" in text
    assert "mov h.option.word 0x0" in text


class TestAssembler:
    def test_a_jump_to_the_next_instruction_is_left_out(self):
        code = Assembler("X")
        label = code.label("next")
        code.op("jmp", label)
        code.place(label)
        code.op("return")
        assert code.lines() == ["return"]

    def test_two_labels_of_one_instruction_are_one(self):
        code = Assembler("X")
        first, second = code.label("a"), code.label("b")
        code.op("jmpeq", first, "m.a", "0x1")
        code.op("jmpeq", second, "m.a", "0x2")
        code.op("drop")
        code.place(first)
        code.place(second)
        code.op("return")
        assert code.lines() == ["jmpeq X_A_1 m.a 0x1", "jmpeq X_A_1 m.a 0x2", "drop", "X_A_1 : return"]

    def test_a_label_at_the_end_names_nothing(self):
        code = Assembler("X")
        code.place(code.label("end"))
        with pytest.raises(ValueError, match="X_END_1"):
            code.lines()
