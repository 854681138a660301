"""C for DPDK: golden text, what is refused, and whether a compiler likes it."""

import re
import shutil
import subprocess
from dataclasses import replace
from importlib.resources import files

import pytest
from support.parser_states import extracting

from p4perf.errors import CapabilityError
from p4perf.generators.c.dpdk import MAX_ACL_ENTRIES, MAX_LPM_ENTRIES, VARIANTS, DpdkC, render_program
from p4perf.generators.c.dpdk_text import c_type, emits_as_extracted, first_table, layout
from p4perf.generators.c.writer import mask
from p4perf.programs import ir
from p4perf.programs.component import TrafficPlan, build_workload

SPECIAL = ir.Program(
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
                    ir.FieldRef(ir.METADATA, "tmp"), ir.BinaryOp("+", ir.FieldRef("a", "nibble"), ir.Const(1 << 40))
                ),
                ir.Assign(
                    ir.FieldRef("a", "rest"), ir.BinaryOp("^", ir.FieldRef(ir.METADATA, "tmp"), ir.ParameterRef("word"))
                ),
                ir.Assign(ir.FieldRef("a", "wide"), ir.BinaryOp("-", ir.FieldRef("a", "wide"), ir.Const(1))),
            ),
        ),
        ir.Action("nothing"),
        ir.Action("flag", body=(ir.SetEgress(ir.Const(3)),)),
    ),
    tables=(
        ir.Table(
            "first",
            (ir.Key(ir.FieldRef("a", "kind")), ir.Key(ir.FieldRef("a", "wide"))),
            ("mix",),
            "nothing",
            ir.EntrySet(5, "mix"),
        ),
        ir.Table("second", (ir.Key(ir.FieldRef("a", "kind")),), ("flag",), "nothing", ir.EntrySet(2, "flag")),
    ),
    control=(ir.ApplyTable("first"), ir.ApplyTable("second"), ir.CallAction("nothing")),
    emit=("a", "b"),
)


def program(*components, frame_size=256):
    return build_workload(components, frame_size_bytes=frame_size).program


PROGRAMS = {
    "l2fwd": program(),
    "headers": program(("parser_headers", {"headers": 3})),
    "table": program(("match_action_table", {"entries": 10, "key_bits": 48, "action_data_bytes": 8})),
    "lpm": program(("match_action_table", {"match_kind": "lpm", "entries": 10, "key_bits": 32})),
    "ternary": program(("match_action_table", {"match_kind": "ternary", "entries": 10, "key_bits": 32, "keys": 2})),
    "writes": program(("header_field_writes", {"writes": 2, "fields": 3, "operation": "set"})),
    "together": program(
        ("parser_headers", {"headers": 2}),
        ("match_action_table", {"entries": 10}),
        ("match_action_table", {"entries": 20, "key_bits": 8, "action_data_bytes": 4}),
        ("header_field_writes", {"writes": 4, "fields": 4, "field_bits": 8}),
    ),
    "added": program(("added_headers", {"headers": 1, "header_bytes": 4})),
    "externs": program(
        ("hash", {"size_bytes": 8}),
        ("counter", {"updates": 1}),
        ("register", {"accesses": 1}),
        ("meter", {"executions": 1}),
    ),
    "checksum": program(("checksum", {"size_bytes": 20})),
    "paths": program(("clone", {"copies": 1, "marked": True}), ("multicast", {"ports": 2})),
    "resubmit": program(("resubmit", {"times": 1})),
    "special": SPECIAL,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_golden(golden, name):
    text = render_program(PROGRAMS[name], "under_test")
    golden(f"dpdk_c/{name}.c", re.sub(r"p4perf \S+:", "p4perf VERSION:", text, count=1))


def test_golden_of_variants(golden):
    text = render_program(PROGRAMS["ternary"], "under_test", ("acl",))
    golden("dpdk_c/acl.c", re.sub(r"p4perf \S+:", "p4perf VERSION:", text, count=1))


def test_program_and_baseline_are_two_files_with_two_names():
    workload = build_workload([("match_action_table", {"entries": 10})], frame_size_bytes=64)
    made = {f.path: f.text() for f in DpdkC().generate(workload, TrafficPlan(64))}
    assert list(made) == ["program.c", "baseline.c"]
    assert "const struct program program_under_test" in made["program.c"]
    assert "const struct program program_baseline" in made["baseline.c"]
    assert "rte_hash_lookup" not in made["baseline.c"]


def test_the_number_of_entries_is_not_part_of_the_text():
    texts = {render_program(program(("match_action_table", {"entries": n})), "under_test") for n in (1, 1000, 10**6)}
    assert len(texts) == 1


WIDE = ir.Header("a", (ir.Field("kind", 8), ir.Field("nibble", 4), ir.Field("rest", 12), ir.Field("wide", 72)))


@pytest.mark.parametrize(
    ("statement", "control"),
    [
        (ir.Assign(ir.FieldRef("a", "wide"), ir.BinaryOp("+", ir.FieldRef("a", "wide"), ir.Const(1))), ()),
        (ir.SetEgress(ir.Const(1)), (ir.If(ir.Compare("<", ir.FieldRef("a", "wide"), ir.Const(1)), ()),)),
    ],
    ids=["written", "compared"],
)
def test_computing_with_more_than_64_bits_is_refused(statement, control):
    add = ir.Action("add", body=(statement,), place="a.p4:1", places=("a.p4:2",))
    control = tuple(replace(node, place="a.p4:2") for node in control)
    wide = replace(
        SPECIAL, headers=(WIDE, SPECIAL.headers[1]), actions=(add,), tables=(), control=(ir.CallAction("add"), *control)
    )
    with pytest.raises(CapabilityError, match=r"a\.p4:2: dpdk-c computes with up to 64 bit"):
        render_program(wide, "under_test")


def test_selecting_on_more_than_64_bits_is_refused():
    parser = (extracting("start", ("a",), ir.FieldRef("a", "wide")),)
    wide = replace(SPECIAL, headers=(WIDE, SPECIAL.headers[1]), parser=parser, actions=(), tables=(), control=())
    with pytest.raises(CapabilityError, match=r"selects on a\.wide, which has 72 bit"):
        render_program(wide, "under_test")


def test_a_range_takes_its_values_and_an_empty_value_set_none():
    cases = tuple(ir.SelectCase((match,), "more") for match in (ir.Match(-1, 2, 5), ir.Match.never()))
    states = (replace(SPECIAL.parser[0], cases=cases, default=ir.ACCEPT), *SPECIAL.parser[1:])
    text = render_program(replace(SPECIAL, parser=states), "under_test")
    parts = re.findall(r"if \((.*)\)\n\t\tgoto state_more;", text)
    kind = "load_bytes(p->h_a, 1)"
    assert parts == [
        f"({kind} & 0xffull) >= 2ull && ({kind} & 0xffull) <= 5ull",
        f"({kind} & 0ull) >= 1ull && ({kind} & 0ull) <= 0ull",
    ]


def with_table(key, free_bits, count=1, kind="lpm"):
    table = replace(
        SPECIAL.tables[0],
        keys=(ir.Key(key, kind),),
        entries=replace(SPECIAL.tables[0].entries, free_bits=free_bits, count=count),
    )
    return replace(SPECIAL, tables=(table,), control=(ir.ApplyTable("first"),))


@pytest.mark.parametrize(
    ("program", "variants", "message"),
    [
        (with_table(ir.FieldRef("a", "rest"), 12), (), "prefixes of no bits"),
        (with_table(ir.FieldRef("a", "rest"), 4, kind="exact"), (), "matches exactly, but 4 bits of its key are free"),
        (with_table(ir.FieldRef("a", "rest"), 0, MAX_LPM_ENTRIES + 1), (), "rte_lpm_add searches all rules"),
        (with_table(ir.FieldRef("a", "rest"), 0, MAX_ACL_ENTRIES + 1, "ternary"), ("acl",), "rte_acl_build"),
    ],
    ids=["no prefix", "exact", "lpm", "acl"],
)
def test_tables_beyond_a_limit_are_refused(program, variants, message):
    with pytest.raises(CapabilityError, match=message):
        render_program(program, "under_test", variants)


def test_more_entries_than_rte_lpm_takes_in_time_are_for_the_variant():
    render_program(with_table(ir.FieldRef("a", "rest"), 0, MAX_LPM_ENTRIES + 1), "under_test", ("fib",))


class TestLayout:
    def program(self, *statements, emit=("a", "b")):
        actions = (ir.Action("do", body=statements),)
        return replace(SPECIAL, actions=actions, tables=(), control=(ir.CallAction("do"),), emit=emit)

    def test_packets_that_keep_their_layout_are_not_deparsed(self):
        assert not layout(SPECIAL).deparses
        assert "deparse" not in render_program(SPECIAL, "under_test")

    @pytest.mark.parametrize("emit", [("b", "a"), ("a",)])
    def test_another_order_of_emission_is_deparsed(self, emit):
        program = self.program(emit=emit)
        assert layout(program).deparses
        assert not emits_as_extracted(program)

    def test_a_header_that_is_extracted_twice_is_deparsed(self):
        again = extracting("more", ("b",), ir.FieldRef("b", "left"), (ir.SelectCase.of_value(1, "more"),))
        program = replace(SPECIAL, parser=(SPECIAL.parser[0], again))
        assert not emits_as_extracted(program)

    @pytest.mark.parametrize("statement", [ir.AddHeader("b"), ir.RemoveHeader("b")])
    def test_headers_that_come_and_go_are_deparsed(self, statement):
        assert layout(self.program(statement)).deparses

    def test_headers_of_the_first_state_are_always_there_unless_removed(self):
        assert layout(SPECIAL).always_valid == {"a"}
        assert layout(self.program(ir.RemoveHeader("a"))).always_valid == set()

    def test_headers_are_kept_only_if_they_are_written_and_needed_again(self):
        write = ir.Assign(ir.FieldRef("a", "rest"), ir.Const(1))
        assert not layout(self.program(write)).keeps_original
        assert not layout(self.program(ir.Clone(1))).keeps_original
        assert layout(self.program(write, ir.Clone(1))).keeps_original
        assert layout(self.program(write, ir.Resubmit())).keeps_original

    def test_the_first_table_is_one_whose_key_nothing_changed_before(self):
        assert first_table(SPECIAL) == "first"
        early = replace(SPECIAL, control=(ir.CallAction("flag"), *SPECIAL.control))
        assert first_table(early) == "first"
        write = ir.Action("write", body=(ir.Assign(ir.FieldRef("a", "kind"), ir.Const(1)),))
        late = replace(SPECIAL, actions=(*SPECIAL.actions, write), control=(ir.CallAction("write"), *SPECIAL.control))
        assert first_table(late) is None
        assert first_table(replace(SPECIAL, control=(ir.If(ir.Compare("==", ir.Const(1), ir.Const(1)), ()),))) is None


@pytest.mark.parametrize(("bits", "kind"), [(1, 8), (8, 8), (9, 16), (17, 32), (32, 32), (33, 64), (64, 64)])
def test_c_types_hold_their_width(bits, kind):
    assert c_type(bits) == f"uint{kind}_t"
    assert int(mask(bits).rstrip("ul"), 16) == (1 << bits) - 1


def dpdk_flags():
    if shutil.which("cc") is None or shutil.which("pkg-config") is None:
        return None
    done = subprocess.run(["pkg-config", "--cflags", "libdpdk"], capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else None


@pytest.mark.sampled(1)
@pytest.mark.dpdk
@pytest.mark.parametrize("variants", [(), tuple(VARIANTS)], ids=["default", "variants"])
def test_a_compiler_finds_nothing_to_complain_about(tmp_path, variants):
    flags = dpdk_flags()
    if flags is None:
        pytest.skip("needs cc, pkg-config and libdpdk")
    for name, drawn in PROGRAMS.items():
        (tmp_path / f"{name}.c").write_text(render_program(drawn, "under_test", variants))
    harness = files("p4perf.targets") / "harness"
    command = ["cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-D_GNU_SOURCE", *flags]
    command += ["-I", str(harness / "common"), "-I", str(harness / "dpdk"), *(f"{name}.c" for name in PROGRAMS)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
