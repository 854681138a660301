"""All P4 dialects: every construct is in the text or refused, names are escaped, entries are those of the rule."""

import json
import re
import time
from dataclasses import replace

import pytest
from support.p4_programs import CONSTRUCTS, ETHERNET, EXTRA, NARROW, A, B, C, program, table, with_table, workload

from p4perf.errors import CapabilityError, SpecError
from p4perf.generators.p4.base import unshared
from p4perf.generators.p4.nfp import ports_of, with_ports
from p4perf.plugins import load_plugin
from p4perf.programs import ir
from p4perf.programs.capabilities import CONSTRUCTS as NAMES
from p4perf.programs.capabilities import constructs
from p4perf.programs.component import TrafficPlan

DIALECTS = ("v1model", "t4p4s", "nfp", "psa", "pna")

IN_TEXT = {
    "lpm": r": lpm;",
    "ternary": r": ternary;",
    "conditional": r"if \(.+\) \{",
    "added header": r"hdr\.extra\.setValid\(\);",
    "removed header": r"hdr\.narrow\.setInvalid\(\);",
    "counter": r"seen\.count\(",
    "register write": r"cells\.write\(",
    "register read": r"cells\.read\(",
    "meter": r"rate\.(dpdk_execute|execute_meter)\(",
    "hash crc32": r"(HashAlgorithm\.crc32,|get_hash\()",
    "hash crc16": r"HashAlgorithm\.crc16,",
    "hash checksum16": r"HashAlgorithm\.csum16,",
    "checksum verify": r"(verify_checksum\(|checksum_unit\.add\(hdr\.narrow\))",
    "checksum update": r"(update_checksum\(|hdr\.narrow\.sum = checksum_unit\.get\(\))",
    "random": r"random\(",
    "recirculate": r"recirculate(_preserving_field_list\(0\)|\(\));",
    "resubmit": r"resubmit_preserving_field_list\(0\);",
    "clone": r"clone\(CloneType\.I2E, 32w1\);",
    "multicast": r"standard_metadata\.mcast_grp = 16w1;",
}


def generated(dialect, program):
    files = load_plugin("p4perf.generators", dialect)().generate(workload(program), TrafficPlan(128))
    return {f.path: f for f in files}


def text(dialect, program):
    return generated(dialect, program)["program.p4"].text()


def code(dialect, program):
    return re.sub(r"//.*", "", text(dialect, program))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", CONSTRUCTS)
def test_every_construct_is_there_or_refused_with_its_reason(name, dialect):
    wanted = CONSTRUCTS[name]
    lacking = load_plugin("p4perf.generators", dialect).capabilities.missing
    missing = [c for c in constructs(wanted) if c in lacking]
    if missing:
        with pytest.raises(CapabilityError, match=re.escape(lacking[missing[0]])):
            text(dialect, wanted)
        return
    if dialect == "t4p4s" and name.endswith("at run time"):
        with pytest.raises(CapabilityError, match="1,024"):
            text(dialect, wanted)
        return
    found = code(dialect, wanted)
    for opening, closing in ("{}", "()"):
        assert found.count(opening) == found.count(closing)
    for construct in constructs(wanted):
        assert re.search(IN_TEXT.get(construct, ""), found), f"no {construct}"
    assert not re.search(r"~|[-+*/]=|\b0x[0-9a-f]+ ?[<>=!]=", found)


def test_programs_of_the_tests_have_every_construct():
    used = {c for p in CONSTRUCTS.values() for c in constructs(p)}
    assert used == {*IN_TEXT, "exact", "repeated table"}
    assert used <= set(NAMES)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_same_input_gives_the_same_bytes(dialect):
    assert text(dialect, CONSTRUCTS["two tables"]) == text(dialect, CONSTRUCTS["two tables"])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_names_that_mean_something_in_p4_are_escaped(dialect):
    header = ir.Header("apply", (ir.Field("key", 32), ir.Field("meter", 32)))
    key = ir.FieldRef("apply", "key")
    act = ir.Action("table", body=(ir.Assign(key, ir.BinaryOp("+", ir.FieldRef("apply", "meter"), ir.Const(1))),))
    changed = program(headers=(ETHERNET, NARROW, EXTRA, header), emit=("ethernet", "narrow", "extra", "apply"))
    changed = replace(
        changed, actions=(*changed.actions, act), control=(ir.CallAction("forward"), ir.CallAction("table"))
    )
    found = code(dialect, changed)
    assert "hdr.apply_.key_ = hdr.apply_.meter_ + 32w1;" in found
    assert "action table_() {" in found
    evil = replace(changed, actions=(*changed.actions, ir.Action("x(); }")))
    with pytest.raises(SpecError, match="identifier"):
        text(dialect, evil)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_titles_cannot_leave_their_comment(dialect):
    lines = text(dialect, program(name="evil */\n{{ 7 * 7 }}")).splitlines()
    assert [line for line in lines if "evil" in line or "49" in line] == [lines[0]]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            program(headers=(ETHERNET, ir.Header("narrow", (*NARROW.fields, ir.Field("odd", 4))), EXTRA)),
            "not whole bytes",
        ),
        (program(ir.SetEgress(ir.Const(70000))), "port 70000 does not exist"),
        (
            program(ir.RemoveHeader("narrow"), ir.Assign(ir.FieldRef("meta", "word"), C)),
            "read after the header was removed",
        ),
        (program(ir.AddHeader("extra", (("x", ir.FieldRef("extra", "y")),))), "values from its own fields"),
        (program(updated=(ir.FieldRef("narrow", "c"),)), "(has not 16 bit|checksum update)"),
        (program(actions=(*program().actions, ir.Action("work"))), "used twice: work"),
    ],
)
def test_what_no_dialect_can_say_is_refused(dialect, changed, message):
    with pytest.raises(CapabilityError, match=message):
        text(dialect, changed)


# Entries --------------------------------------------------------------------------------------------------------------

ENTRY_FILES = {
    "v1model": ("commands.txt", r"table_add MainIngress\.lookup MainIngress\.hit (\S+) => 0x(\w+) 0x(\w+)"),
    "nfp": ("program.p4cfg", r'"name": "entry_\w+".* "match": \{"narrow\.c": \{"value": "([^"]+)".*"p(\w)".*"0x(\w+)"'),
    "psa": ("entries-lookup.txt", r"match (\S+) action hit port 0x(\w+) data 0x(\w+)"),
    "pna": ("entries-lookup.txt", r"match (\S+) action hit port 0x(\w+) data 0x(\w+)"),
}
FORMS = {
    ("v1model", "exact"): "0x{0:x}",
    ("v1model", "lpm"): "0x{1:x}/24",
    ("v1model", "ternary"): "0x{1:x}&&&0xffffff00",
    ("nfp", "exact"): "0x{0:x}",
    ("nfp", "lpm"): "0x{1:x}/24",
    ("nfp", "ternary"): "0x{1:x}",
    ("psa", "exact"): "0x{0:x}",
    ("psa", "lpm"): "0x{1:x}/0xffffff00",
    ("psa", "ternary"): "0x{1:x}/0xffffff00",
}


@pytest.mark.parametrize("dialect", ENTRY_FILES)
@pytest.mark.parametrize("kind", ["exact", "lpm", "ternary"])
def test_entries_at_run_time_are_those_of_the_rule(dialect, kind):
    files = generated(dialect, with_table(kind, 2000, free_bits=0 if kind == "exact" else 8))
    path, pattern = ENTRY_FILES[dialect]
    assert files[path].entries == 2000
    whole = files[path].text()
    assert whole == files[path].text(), "a file can be written twice"
    rows = re.findall(pattern, whole)
    assert len(rows) == 2000
    form = FORMS["psa" if dialect == "pna" else dialect, kind]
    for i, (key, port, data) in enumerate(rows):
        wanted = form.format(i, i << 8)
        assert re.sub(r"^0x0+(?=\w)", "0x", key) == wanted
        assert (int(port, 16), int(data, 16)) == (1, ir.entry_data_word(i, 1))
    if dialect == "nfp":
        rules = json.loads(whole)["tables"]["MainIngress::lookup"]["rules"]
        assert len({rule["name"] for rule in rules}) == 2000
        assert all(("mask" in rule["match"]["narrow.c"]) == (kind == "ternary") for rule in rules)
        assert {rule.get("priority") for rule in rules} == ({1} if kind == "ternary" else {None})


def test_wide_keys_of_dpdk_have_all_of_their_digits():
    wide = ir.Header("narrow", (*NARROW.fields, ir.Field("wide", 128), ir.Field("pad", 8)))
    key = ir.FieldRef("narrow", "wide")
    changed = replace(with_table("lpm", 300, keys=(C, key), free_bits=64), headers=(ETHERNET, wide, EXTRA))
    line = generated("psa", changed)["entries-lookup.txt"].text().splitlines()[299]
    wanted = f"0x{299 << 64:032x}/0x{'f' * 16}{'0' * 16}"
    assert re.fullmatch(rf"match 0x0 {wanted} action hit port 0x1 data 0x\w+", line)


@pytest.mark.parametrize("dialect", ["v1model", "t4p4s"])
@pytest.mark.parametrize("kind", ["exact", "lpm"])
def test_few_entries_stand_in_the_text(dialect, kind):
    found = code(dialect, with_table(kind, 10, free_bits=0 if kind == "exact" else 8))
    rows = re.findall(r"^ {12}(0x\w+)( &&& 0xffffff00)?: hit\(0x1, 0x(\w+)\);$", found, re.MULTILINE)
    shift = 0 if kind == "exact" else 8
    assert [(int(k, 16), int(d, 16)) for k, _, d in rows] == [(i << shift, ir.entry_data_word(i, 1)) for i in range(10)]
    assert all(bool(mask) == (kind == "lpm") for _, mask, _ in rows)
    assert ("size = 10;" in found) == (dialect == "t4p4s")


@pytest.mark.parametrize("dialect", ["psa", "pna", "nfp"])
def test_no_entries_stand_in_the_text(dialect):
    assert "const entries" not in text(dialect, with_table(count=10))


def test_actions_of_several_tables_are_copied_for_each():
    before = CONSTRUCTS["two tables"]
    after = unshared(before)
    names = [t.rule.action for t in after.tables]
    assert names[0] == "hit"
    assert len(set(names)) == 2
    assert after.action(names[1]) == replace(before.action("hit"), name=names[1])
    assert all(t.rule.action in t.actions for t in after.tables)
    assert unshared(with_table()) == with_table()
    files = generated("psa", before)
    assert {f"entries-{t.name}.txt" for t in after.tables} <= set(files)
    assert f" action {names[1]} " in files["entries-second.txt"].text()


@pytest.mark.parametrize("dialect", ENTRY_FILES)
def test_a_million_entries_are_written_at_the_speed_of_memory(dialect):
    path, _ = ENTRY_FILES[dialect]
    file = generated(dialect, with_table(count=200_000))[path]
    begin = time.process_time()
    size = sum(len(piece) for piece in file.pieces)
    fast = time.process_time() - begin
    begin = time.process_time()
    slow = sum(
        len(f"match 0x{i:x} action hit port 0x1 data 0x{ir.entry_data_word(i, 1):08x}\n") for i in range(200_000)
    )
    assert fast < 2 * (time.process_time() - begin) * size / slow, "slower than one string after the other"


# Specials of the dialects ---------------------------------------------------------------------------------------------


def test_v1model_groups_and_sessions():
    commands = generated("v1model", CONSTRUCTS["multicast"])["commands.txt"].text().splitlines()
    assert commands == ["mc_mgrp_create 1", "mc_node_create 0 1 2 3", "mc_node_associate 1 0"]
    assert generated("v1model", CONSTRUCTS["clone"])["commands.txt"].text() == "mirroring_add 1 2\n"
    several = generated("v1model", CONSTRUCTS["clones"])
    assert several["commands.txt"].text().splitlines() == [
        *("mc_mgrp_create 1", "mc_node_create 0 2 3", "mc_node_associate 1 0"),
        *("mc_node_create 1 2", "mc_node_associate 1 1", "mirroring_add_mc 1 1"),
    ]
    assert several["program.p4"].text().count("clone(") == 1


def test_v1model_passes_wait_for_the_end_of_ingress():
    found = code("v1model", CONSTRUCTS["recirculate"])
    assert "@field_list(0) bit<32> passes;" in found
    assert re.search(r"if \(standard_metadata\.instance_type == 0\) \{\s+meta\.passes = 0;", found)
    egress = found[found.index("control AfterIngress") :]
    assert re.search(r"meta\.passes = meta\.passes \+ 32w1;\s+recirculate_preserving_field_list\(0\);", egress)
    dropped = code("v1model", CONSTRUCTS["drop and again"])
    assert "meta.dropped = 1;" in dropped
    again = code("v1model", CONSTRUCTS["resubmit"])
    assert again.index("meta.resubmitted = 1;") < again.index("resubmit_preserving_field_list(0);")


def test_v1model_clones_are_alone_and_leave_as_they_came():
    twice = program(*CONSTRUCTS["clone"].action("work").body)
    control = (ir.CallAction("forward"), ir.CallAction("work"), ir.CallAction("work"))
    with pytest.raises(CapabilityError, match="one session of clones"):
        text("v1model", replace(twice, control=control))
    with pytest.raises(CapabilityError, match="updates the checksums of clones"):
        text("v1model", replace(twice, updated=(ir.FieldRef("narrow", "sum"),)))
    with pytest.raises(CapabilityError, match="this deparser would change them"):
        text("v1model", replace(twice, emit=("narrow", "ethernet")))


def test_t4p4s_port_field_and_metadata():
    found = code("t4p4s", program(ir.Assign(C, ir.Const(1))))
    assert "standard_metadata.egress_port = 9w1;" in found
    assert "egress_spec" not in found
    assert "meta.word = 0;" in found, "even if nobody reads it"
    assert "parser_error" not in found


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            program(
                ir.Assign(ir.FieldRef("ethernet", "dst"), ir.BinaryOp("+", ir.FieldRef("ethernet", "src"), ir.Const(1)))
            ),
            "48",
        ),
        (
            program(
                control=(
                    ir.If(ir.Compare("<", ir.FieldRef("ethernet", "dst"), ir.Const(9)), (ir.CallAction("forward"),)),
                )
            ),
            "32 bit",
        ),
        (with_table(count=1025), "1,025 exact entries are more than the 1,024"),
        (with_table("lpm", 1000, free_bits=7), "500 tbl8 groups"),
        (program(ir.Random(C)), "31 bit"),
    ],
    ids=["sum", "comparison", "exact entries", "prefixes", "random"],
)
def test_t4p4s_limits(changed, message):
    with pytest.raises(CapabilityError, match=message):
        text("t4p4s", changed)


def test_t4p4s_takes_what_is_next_to_its_limits():
    ethernet = ir.FieldRef("ethernet", "dst")
    text("t4p4s", program(ir.Assign(ethernet, ir.BinaryOp("^", ir.FieldRef("ethernet", "src"), ir.Const(1)))))
    text("t4p4s", program(control=(ir.If(ir.Compare("==", ethernet, ir.Const(9)), (ir.CallAction("forward"),)),)))
    text("t4p4s", with_table(count=1024))
    text("t4p4s", with_table("lpm", 512, free_bits=7))


def test_nfp_is_called_unverified_and_uses_no_later_names():
    found = text("nfp", CONSTRUCTS["counter"])
    assert "// Note: counter: unverified on an NFP" in found
    assert "mark_to_drop();" in text("nfp", CONSTRUCTS["exact"])
    with pytest.raises(CapabilityError, match="its standard_metadata has no mcast_grp"):
        text("nfp", CONSTRUCTS["multicast"])
    assert not re.search(r"parser_error|mcast_grp|_preserving_", text("nfp", CONSTRUCTS["exact"]))


def test_nfp_has_ports_of_16_bit_and_the_same_text_compiles_with_9():
    found = code("nfp", with_table())
    assert "#define PORT_BITS 16" in found
    assert "action hit(bit<16> port, bit<32> data)" in found
    assert "standard_metadata.egress_spec = (nfp_port_t)port;" in found
    assert "standard_metadata.egress_spec = (nfp_port_t)16w1;" in code("nfp", program())
    computed = code("nfp", program(ir.SetEgress(ir.BinaryOp("+", C, ir.Const(1)))))
    assert re.search(r"egress_spec = \(nfp_port_t\)\(.+\);", computed)


def test_nfp_drops_packets_whose_checksum_is_wrong():
    found = code("nfp", CONSTRUCTS["checksum verify"])
    assert re.search(r"if \(standard_metadata\.checksum_error == 1\) \{\s+mark_to_drop\(\);\s+\} else \{", found)
    assert "checksum_error" not in code("nfp", with_table())


def test_nfp_keys_in_metadata_and_reserved_names():
    keys = (ir.FieldRef("meta", "word"), C)
    changed = program(tables=(table(keys=keys, name="apply"),), control=(ir.ApplyTable("apply"),))
    config = json.loads(generated("nfp", changed)["program.p4cfg"].text())
    (rule, *_) = config["tables"]["MainIngress::apply_"]["rules"]
    assert list(rule["match"]) == ["MainIngress::scalars.metadata_t@word", "narrow.c"]
    assert "struct metadata_t {" in text("nfp", changed)
    assert (config["registers"], config["meters"], config["multicast"]) == ({"configs": []}, {"configs": []}, {})


def test_nfp_ports_of_a_card():
    changed = with_ports(replace(with_table(), control=(ir.CallAction("forward"), ir.ApplyTable("lookup"))), 4)
    assert ports_of(changed) == [4]
    files = generated("nfp", changed)
    assert "(nfp_port_t)16w4;" in files["program.p4"].text()
    assert '"p4"' in files["program.p4cfg"].text()
    assert with_ports(with_table(), 1) == with_table()
    with pytest.raises(CapabilityError, match="cannot be mapped to the ports of this card"):
        with_ports(program(ir.SetEgress(C)), 4)
    with pytest.raises(CapabilityError, match="port 12 does not exist in nfp"):
        text("nfp", with_ports(program(ir.SetEgress(ir.Const(3))), 4))


@pytest.mark.parametrize("dialect", ["psa", "pna"])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            program(
                ir.Assign(ir.FieldRef("narrow", "lower"), ir.Const(1)),
                headers=(
                    ETHERNET,
                    ir.Header("narrow", (*NARROW.fields, ir.Field("upper", 4), ir.Field("lower", 4))),
                    EXTRA,
                ),
            ),
            "wrong bits",
        ),
        (
            program(
                ir.Assign(ir.FieldRef("extra", "w"), ir.Const(1)),
                headers=(ETHERNET, NARROW, ir.Header("extra", (*EXTRA.fields, ir.Field("w", 128)))),
            ),
            "refuses constants for extra.w",
        ),
        (program(metadata=(ir.Field("word", 128),)), "metadata of at most 64 bit"),
        (program(updated=(ir.FieldRef("narrow", "sum"),)), "16-bit words"),
        (
            program(headers=(ETHERNET, NARROW, EXTRA, *(ir.Header(f"h{n}", (ir.Field("x", 8),)) for n in range(62)))),
            "65 headers",
        ),
        (
            replace(
                with_table(),
                actions=(
                    *program().actions[:3],
                    ir.Action("hit", (ir.Field("port", 32), *(ir.Field(f"d{n}", 32) for n in range(126)))),
                ),
            ),
            "258 words",
        ),
    ],
    ids=["bits of a byte", "wide constant", "wide metadata", "odd checksum", "headers", "words of a row"],
)
def test_limits_of_dpdk(dialect, changed, message):
    with pytest.raises(CapabilityError, match=message):
        text(dialect, changed)


def test_pna_ports_passes_and_drops():
    with pytest.raises(CapabilityError, match="not to one that is computed"):
        text("pna", program(ir.SetEgress(C)))
    assert "send_to_port(ostd, (PortId_t)(PortIdUint_t)hdr.narrow.c);" in text("psa", program(ir.SetEgress(C)))
    beyond = ir.If(ir.Compare("<", ir.PassNumber(), ir.Const(9)), (ir.CallAction("forward"),))
    with pytest.raises(CapabilityError, match="3 bit, and 9 is more"):
        text("pna", program(control=(beyond,)))
    found = code("pna", with_table())
    assert "action hit(PortId_t port, bit<32> data)" in found
    assert "drop_packet();" in found
    assert "meta.dropped" not in found, "a drop ends the packet, and nothing after it leaves anything behind"
    assert "meta.dropped = 1;" in code("pna", CONSTRUCTS["drop and count"])
    assert "if (meta.forwarded == 0) {" in code("pna", CONSTRUCTS["no port"])
    assert "meta.recirculated = 1;" in code("pna", CONSTRUCTS["drop and again"])
    assert "meta.recirculated" not in code("pna", CONSTRUCTS["recirculate"])
    both = program(ir.Assign(C, ir.Const(0)))
    hit = replace(
        with_table().action("hit"),
        body=(*with_table().action("hit").body, ir.Assign(C, with_table().action("hit").body[0].port)),
    )
    both = replace(with_table(), actions=(*both.actions[:3], hit))
    assert "hdr.narrow.c = (PortIdUint_t)port;" in code("pna", both)


def test_psa_drops_are_kept_where_a_port_would_take_them_back():
    assert "meta.dropped = 1;" in code("psa", CONSTRUCTS["late port"])
    assert "meta.dropped" not in code("psa", with_table())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_comparisons_have_their_constant_on_the_right_and_in_their_width(dialect):
    conditions = [
        ir.Compare("==", ir.Const(3), A),
        ir.Compare("<", ir.Const(3), A),
        ir.Compare("<", A, ir.Const(300)),
        ir.Compare(">=", A, B),
        ir.Compare("<", ir.Const(1), ir.Const(2)),
    ]
    control = tuple(ir.If(c, (ir.CallAction("forward"),), (ir.CallAction("work"),)) for c in conditions)
    found = code(dialect, program(control=control))
    assert re.findall(r"if \((.*)\) \{\n +forward", found) == [
        "hdr.narrow.a == 8w3",
        "hdr.narrow.a > 8w3",
        "(bit<16>)hdr.narrow.a >= hdr.narrow.b",
    ]


def test_indices_are_masked_where_the_target_does_not():
    wanted = program(
        ir.CountPacket("seen", C),
        ir.CountPacket("seen", A),
        ir.CountPacket("seen", ir.Const(260)),
        counters=(ir.Counter("seen", 256),),
    )
    found = code("v1model", wanted)
    assert re.findall(r"seen\.count\((.*)\);", found) == ["hdr.narrow.c & 32w0xff", "(bit<32>)hdr.narrow.a", "32w4"]
    assert "seen.count(hdr.narrow.c);" in code("psa", wanted)


def test_tables_listed_but_never_filled_need_no_entry_file():
    empty = replace(with_table(), tables=(table(count=0),))
    assert not [f for f in generated("psa", empty).values() if f.entries]
