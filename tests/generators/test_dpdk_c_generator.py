"""C for DPDK: golden text, what is refused, and whether a compiler likes it."""

import re
import shutil
import subprocess
from dataclasses import replace
from importlib.resources import files

import pytest

from p4perf.errors import CapabilityError
from p4perf.generators.base import TrafficPlan
from p4perf.generators.dpdk_c import DpdkC, c_type, mask, render_program
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
    Key,
    ParameterRef,
    ParserState,
    Program,
    SelectCase,
    SetEgress,
    Table,
)
from p4perf.generators.workload import build_workload

SPECIAL = Program(
    name="special",
    headers=(
        Header("a", (Field("kind", 8), Field("nibble", 4), Field("rest", 12), Field("wide", 64))),
        Header("b", (Field("left", 3), Field("right", 13))),
    ),
    metadata=(Field("tmp", 9),),
    parser=(
        ParserState("start", ("a",), FieldRef("a", "kind"), (SelectCase(1, "more"), SelectCase(2, "accept")), "more"),
        ParserState("more", ("b",)),
    ),
    actions=(
        Action(
            "mix",
            (Field("port", 9), Field("word", 33)),
            (
                SetEgress(ParameterRef("port")),
                Assign(FieldRef(METADATA, "tmp"), BinaryOp("+", FieldRef("a", "nibble"), Const(1 << 40))),
                Assign(FieldRef("a", "rest"), BinaryOp("^", FieldRef(METADATA, "tmp"), ParameterRef("word"))),
                Assign(FieldRef("a", "wide"), BinaryOp("-", FieldRef("a", "wide"), Const(1))),
            ),
        ),
        Action("nothing"),
        Action("flag", body=(SetEgress(Const(3)),)),
    ),
    tables=(
        Table(
            "first", (Key(FieldRef("a", "kind")), Key(FieldRef("a", "wide"))), ("mix",), "nothing", EntrySet(5, "mix")
        ),
        Table("second", (Key(FieldRef("a", "kind")),), ("flag",), "nothing", EntrySet(2, "flag")),
    ),
    control=(ApplyTable("first"), ApplyTable("second"), CallAction("nothing")),
    emit=("a", "b"),
)


def program(*components, frame_size=256):
    return build_workload(components, frame_size_bytes=frame_size).program


PROGRAMS = {
    "l2fwd": program(),
    "headers": program(("parser_headers", {"headers": 3})),
    "table": program(("match_action_table", {"entries": 10, "key_bits": 48, "action_data_bytes": 8})),
    "writes": program(("header_field_writes", {"writes": 2, "fields": 3, "operation": "set"})),
    "together": program(
        ("parser_headers", {"headers": 2}),
        ("match_action_table", {"entries": 10}),
        ("match_action_table", {"entries": 20, "key_bits": 8, "action_data_bytes": 4}),
        ("header_field_writes", {"writes": 4, "fields": 4, "field_bits": 8}),
    ),
    "special": SPECIAL,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_golden(golden, name):
    text = render_program(PROGRAMS[name], "under_test")
    golden(f"dpdk_c/{name}.c", re.sub(r"p4perf \S+:", "p4perf VERSION:", text, count=1))


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


def test_writing_what_the_parser_selects_on_is_refused():
    action = Action("spoil", body=(Assign(FieldRef("a", "kind"), Const(1)),))
    with pytest.raises(CapabilityError, match=r"spoil writes a\.kind, on which the parser selects"):
        render_program(replace(SPECIAL, actions=(*SPECIAL.actions, action)), "under_test")


@pytest.mark.parametrize(
    "statement",
    [
        Assign(FieldRef("a", "wide"), Const(1)),
        Assign(FieldRef("b", "left"), BinaryOp("+", Const(1), FieldRef("a", "wide"))),
    ],
    ids=["written", "read"],
)
def test_computing_with_more_than_64_bits_is_refused(statement):
    header = Header("a", (Field("kind", 8), Field("nibble", 4), Field("rest", 12), Field("wide", 72)))
    add = Action("add", body=(statement,))
    wide = replace(SPECIAL, headers=(header, SPECIAL.headers[1]), actions=(add,), tables=(), control=())
    with pytest.raises(CapabilityError, match=r"a\.wide has 72 bit; dpdk-c computes with up to 64 bit"):
        render_program(wide, "under_test")


def test_an_order_of_emission_that_is_not_that_of_extraction_is_refused():
    for emit in (("b", "a"), ("a",)):
        with pytest.raises(CapabilityError, match="order of extraction"):
            render_program(replace(SPECIAL, emit=emit), "under_test")


@pytest.mark.parametrize("ref", [FieldRef("a", "nibble"), FieldRef("a", "rest"), FieldRef(METADATA, "tmp")])
def test_a_key_that_is_not_whole_bytes_is_refused(ref):
    table = replace(SPECIAL.tables[0], keys=(Key(ref),))
    with pytest.raises(CapabilityError, match="not made of whole bytes"):
        render_program(replace(SPECIAL, tables=(table,)), "under_test")


@pytest.mark.parametrize(("bits", "kind"), [(1, 8), (8, 8), (9, 16), (17, 32), (32, 32), (33, 64), (64, 64)])
def test_c_types_hold_their_width(bits, kind):
    assert c_type(bits) == f"uint{kind}_t"
    assert int(mask(bits).rstrip("ul"), 16) == (1 << bits) - 1


def dpdk_flags():
    if shutil.which("cc") is None or shutil.which("pkg-config") is None:
        return None
    done = subprocess.run(["pkg-config", "--cflags", "libdpdk"], capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else None


@pytest.mark.dpdk
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_compiler_finds_nothing_to_complain_about(tmp_path, name):
    flags = dpdk_flags()
    if flags is None:
        pytest.skip("needs cc, pkg-config and libdpdk")
    (tmp_path / "program.c").write_text(render_program(PROGRAMS[name], "under_test"))
    harness = str(files("p4perf.targets") / "harness")
    command = ["cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-D_GNU_SOURCE", *flags]
    command += ["-I", harness, "program.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
