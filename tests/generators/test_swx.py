"""Specifications of SWX: golden text, what is refused, and what instructions are not written."""

import re
from dataclasses import replace

import pytest
from support.parser_states import extracting

from p4perf.errors import CapabilityError
from p4perf.generators.swx.code import Assembler
from p4perf.generators.swx.spec import Pipeline, Swx
from p4perf.programs import ir
from p4perf.programs.component import TrafficPlan, build_workload

ETHERNET = ir.Header("ethernet", (ir.Field("dst", 48), ir.Field("src", 48), ir.Field("kind", 16)))
OPTION = ir.Header("option", (ir.Field("kind", 3), ir.Field("size", 13), ir.Field("word", 32), ir.Field("long", 128)))
KIND = ir.FieldRef("ethernet", "kind")
WORD = ir.FieldRef("option", "word")
SEND = ir.Action("send", body=(ir.SetEgress(ir.Const(3)),))


def program(control, actions, **more):
    parser = (
        extracting("start", ("ethernet",), KIND, (ir.SelectCase.of_value(0x88B5, "more"),)),
        extracting("more", ("option",)),
    )
    base = ir.Program("p", (ETHERNET, OPTION), (), parser, (SEND, *actions), (), control, ("ethernet", "option"))
    return replace(base, **more)


def body(*statements, parameters=()):
    return program((ir.CallAction("send"), ir.CallAction("a")), (ir.Action("a", parameters, statements),))


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
    count = ir.FieldRef(ir.METADATA, "count")
    read = body(
        ir.Assign(count, ir.BinaryOp("+", count, ir.Const(1))), ir.Assign(ir.FieldRef("ethernet", "src"), count)
    )
    written = body(ir.Assign(count, ir.Const(1)), ir.Assign(ir.FieldRef("ethernet", "src"), count))
    assert "mov m.count 0x0" in instructions(replace(read, metadata=(ir.Field("count", 32),)))
    assert "mov m.count 0x0" not in instructions(replace(written, metadata=(ir.Field("count", 32),)))


def test_a_header_that_may_not_be_there_costs_nothing_where_it_is():
    lines = instructions(body(ir.Assign(ir.FieldRef("ethernet", "dst"), WORD)))
    end = lines.index("tx m.swx_port_out")
    assert "mov h.option.word 0x0" not in lines[:end]
    assert lines[end + 1 :] == ["validate h.option", "mov h.option.word 0x0", "invalidate h.option", "jmp L_ACCEPT_3"]


def test_a_header_that_is_asked_for_first_needs_nothing():
    write = ir.Action("a", body=(ir.Assign(ir.FieldRef("ethernet", "dst"), WORD),))
    lines = instructions(program((ir.CallAction("send"), ir.If(ir.IsValid("option"), (ir.CallAction("a"),))), (write,)))
    assert "validate h.option" not in lines


def test_writes_are_guarded_only_where_what_is_lost_would_be_read():
    once = body(ir.Assign(WORD, ir.Const(1)), ir.Assign(ir.FieldRef("option", "size"), ir.Const(2)))
    twice = body(
        ir.Assign(WORD, ir.BinaryOp("+", WORD, ir.Const(1))), ir.Assign(WORD, ir.BinaryOp("^", WORD, ir.Const(3)))
    )
    assert not any(line.startswith("jmpnv") for line in instructions(once))
    assert sum(line.startswith("jmpnv") for line in instructions(twice)) == 1


def test_drop_ends_a_packet_only_where_nothing_shows_later():
    toss = ir.Action("toss", body=(ir.Drop(),))
    seen = ir.Action("count", body=(ir.CountPacket("seen", ir.Const(0)),))
    last = program((ir.CallAction("send"), ir.CallAction("toss")), (toss,))
    first = program((ir.CallAction("toss"), ir.CallAction("count")), (toss, seen), counters=(ir.Counter("seen", 1),))
    assert "drop" in instructions(last)
    assert "mov m.swx_dropped 0x1" in instructions(first)
    assert instructions(first).index("drop") > instructions(first).index("tx m.swx_port_out")


def test_recirculation_waits_for_a_drop():
    again = ir.Action("again", body=(ir.Recirculate(),))
    toss = ir.Action("toss", body=(ir.Drop(),))
    once = program((ir.CallAction("send"), ir.CallAction("again")), (again,))
    both = program(
        (ir.CallAction("again"), ir.If(ir.Compare("==", KIND, ir.Const(1)), (ir.CallAction("toss"),))), (again, toss)
    )
    assert "mov m.swx_again 0x1" not in instructions(once)
    assert "mov m.swx_again 0x1" in instructions(both)


def test_what_was_read_is_computed_where_it_is_as_well():
    less = ir.Cast(ir.BinaryOp("-", WORD, ir.Const(1)), 32)
    read = body(ir.Branch(ir.Compare("==", WORD, ir.Const(0)), (ir.Drop(),), (ir.Assign(WORD, less),)))
    text = text_of(read)
    assert re.search(r"jmpneq \S+ h\.option\.word 0x0\n", text)
    assert re.search(r"sub h\.option\.word 0x1\n", text)
    assert "swx_temporary" not in text


def test_fields_between_bytes_share_one():
    text = text_of(
        body(ir.Assign(ir.FieldRef("option", "kind"), ir.Const(5)), ir.Assign(ir.FieldRef("option", "size"), WORD))
    )
    assert "bit<16> kind_to_size" in text
    assert "and h.option.kind_to_size 0x1fff" in text
    assert "or h.option.kind_to_size 0xa000" in text


def test_long_fields_are_split_only_where_they_have_to_be():
    long = ir.FieldRef("option", "long")
    assert "bit<128> long" in text_of(body(ir.RemoveHeader("option")))
    assert "bit<64> long_w1" in text_of(body(ir.Assign(long, ir.Const(1 << 100))))
    assert "mov h.option.long_w1 0x1000000000" in text_of(body(ir.Assign(long, ir.Const(1 << 100))))


def test_keys_of_several_headers_are_copied_side_by_side():
    table = ir.Table(
        "t", (ir.Key(ir.FieldRef("ethernet", "src")), ir.Key(WORD)), ("send",), "send", ir.EntrySet(2, "send")
    )
    lines = instructions(program((ir.ApplyTable("t"),), (), tables=(table,)))
    at = lines.index("table t")
    assert lines[at - 2 : at] == ["mov m.swx_key_t_0 h.ethernet.src", "mov m.swx_key_t_1 h.option.word"]


def test_a_specification_that_hashes_by_crc16_says_whose_function_that_is():
    texts = {name: text_of(body(ir.Hash(KIND, name, (WORD,)))) for name in ("crc16", "crc32")}
    for name, text in texts.items():
        assert f"\thash {name} m.swx_hash h.option.word h.option.word\n\tmov h.ethernet.kind m.swx_hash\n" in text
    assert "; DPDK 22.11 has no hash function crc16: p4perf registers it" in texts["crc16"]
    assert "crc16" not in texts["crc32"]


def test_comparisons_that_swx_would_cut_are_decided():
    impossible = ir.If(ir.Compare("==", KIND, ir.Const(1 << 20)), (ir.CallAction("a"),))
    write = ir.Action("a", body=(ir.Assign(KIND, ir.Const(0)),))
    assert not any("0x100000" in line for line in instructions(program((ir.CallAction("send"), impossible), (write,))))


@pytest.mark.parametrize("comparator", ["==", "!=", "<", ">", "<=", ">="])
def test_every_comparison_has_a_jump(comparator):
    node = ir.If(ir.Compare(comparator, ir.Const(7), KIND), (ir.CallAction("a"),), (ir.CallAction("send"),))
    lines = instructions(
        program((ir.CallAction("send"), node), (ir.Action("a", body=(ir.Assign(KIND, ir.Const(0)),)),))
    )
    assert sum(line.startswith("jmp") and "h.ethernet.kind" in line and "0x7" in line for line in lines) == 1


LOOP = (extracting("start", ("ethernet",), KIND, (ir.SelectCase.of_value(1, "start"),)),)
REFUSED = {
    "loops of parser states": replace(body(), parser=LOOP),
    "calculates a port": body(ir.SetEgress(WORD)),
    "clones a packet as it is sent": body(ir.Clone(1), ir.Assign(KIND, ir.Const(1))),
    "computes with up to 64": body(ir.Assign(ir.FieldRef("option", "long"), ir.BinaryOp("+", WORD, ir.Const(1)))),
    "offsets in one byte": program(
        (ir.ApplyTable("t"),),
        (ir.Action("wide", tuple(ir.Field(f"p{n}", 64) for n in range(34)), (ir.SetEgress(ir.ParameterRef("p0")),)),),
        tables=(ir.Table("t", (ir.Key(KIND),), ("wide",), "send", ir.EntrySet(1, "wide")),),
    ),
    "up to 63 characters": replace(body(), headers=(ETHERNET, OPTION, ir.Header("x" * 62, (ir.Field("f", 8),)))),
}


def test_parsers_may_have_thousands_of_states():
    ends = {1500: ir.ACCEPT}
    chain = [extracting(f"s{n}", default=ends.get(n, f"s{n + 1}")) for n in range(1501)]
    parser = (extracting("start", ("ethernet",), default="s0"), *chain)
    lines = instructions(replace(body(), parser=parser))
    assert [line for line in lines if line.startswith("extract")] == ["extract h.ethernet"]


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
        ([("added_headers", {"headers": 1, "header_bytes": 256})], "header bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_limits_name_their_source(components, reason):
    with pytest.raises(CapabilityError, match=rf"{reason}.*DPDK 22\.11"):
        Swx().generate(workload(*components, frame_size=1518), TrafficPlan(1518))


@pytest.mark.parametrize(("port", "refused"), [(511, False), (512, True)])
def test_ports_of_listed_entries_are_known(port, refused):
    """A parameter of 32 bit may hold ports that SWX has not; what counts is those of the entries."""
    to = ir.Action("to", (ir.Field("out", 32),), (ir.SetEgress(ir.ParameterRef("out")),))
    entries = ir.EntryList(
        tuple(ir.Entry((ir.Match.masked(n, 0xFFFF),), "to", (out,)) for n, out in ((1, 3), (2, port)))
    )
    p = program((ir.ApplyTable("t"),), (to,), tables=(ir.Table("t", (ir.Key(KIND),), ("to",), "send", entries),))
    if refused:
        with pytest.raises(CapabilityError, match="ports up to 511"):
            text_of(p)
    else:
        assert "t.out" in text_of(p)


def test_long_arithmetic_is_refused():
    p = body(ir.Assign(ir.FieldRef("option", "long"), ir.BinaryOp("+", ir.FieldRef("option", "long"), ir.Const(1))))
    with pytest.raises(CapabilityError, match="computes with up to 64 bit"):
        Swx().generate(replace(GOLDEN["l2fwd"], program=p), TrafficPlan(256))


def test_an_added_header_has_all_of_its_fields_set():
    added = (ir.AddHeader("option", (("size", WORD), ("kind", ir.Const(2)))),)
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
