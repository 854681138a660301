"""P4_16 for v1model: golden files, structure, and the compiler where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.parser_states import extracting

import p4perf
from p4perf.errors import CapabilityError, SpecError
from p4perf.generators.base import GeneratedFile
from p4perf.generators.p4.v1model import MAX_CONST_BYTES, MAX_CONST_ENTRIES, RuntimeV1Model, V1Model
from p4perf.generators.p4.writer import analyse, expression_text, p4_name, parameter_scope, program_scope
from p4perf.programs import ir
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.programs.interpreter import Interpreter

POINTS: dict[str, list[tuple[str, dict[str, object]]]] = {
    "l2fwd": [],
    "parser_headers_1": [("parser_headers", {"headers": 1})],
    "parser_headers_3_wide": [("parser_headers", {"headers": 3, "header_bits": 96})],
    "match_action_table_1": [("match_action_table", {"entries": 1, "action_data_bytes": 4})],
    "match_action_table_5": [("match_action_table", {"entries": 5, "key_bits": 32, "action_data_bytes": 16})],
    "match_action_table_2000": [("match_action_table", {"entries": 2000, "action_data_bytes": 8})],
    "header_field_writes_0": [("header_field_writes", {"writes": 0, "fields": 2})],
    "header_field_writes_2": [("header_field_writes", {"writes": 2, "fields": 3, "field_bits": 16})],
    "header_field_writes_2_set": [("header_field_writes", {"writes": 2, "fields": 3, "operation": "set"})],
    "all_together": [
        ("parser_headers", {"headers": 2}),
        ("match_action_table", {"entries": 3, "key_bits": 64, "action_data_bytes": 8}),
        ("header_field_writes", {"writes": 1, "fields": 1}),
    ],
}


def generated(components: list[tuple[str, dict[str, object]]], size: int = 1024) -> dict[str, GeneratedFile]:
    workload = build_workload(components, frame_size_bytes=size)
    return {f.path: f for f in V1Model().generate(workload, TrafficPlan(size))}


def special() -> ir.Program:
    """A program that needs everything that v1model must be told: see the assertions on its golden file."""
    key, next_field, seen = ir.FieldRef("key", "apply"), ir.FieldRef("key", "next"), ir.FieldRef(ir.METADATA, "seen")
    hit = ir.Action(
        "hit",
        (ir.Field("hdr", 16), ir.Field("value", 4)),
        (
            ir.SetEgress(ir.ParameterRef("hdr")),
            ir.Assign(seen, ir.BinaryOp("+", seen, ir.BinaryOp("^", ir.ParameterRef("value"), key))),
            ir.Assign(
                next_field,
                ir.BinaryOp("-", ir.BinaryOp("&", seen, ir.Const(0x1FF)), ir.BinaryOp("-", next_field, ir.Const(1))),
            ),
        ),
    )
    table = ir.Table(
        "lookup",
        (ir.Key(key), ir.Key(next_field)),
        ("hit", "table"),
        "table",
        ir.EntrySet(3, "hit", port=5),
    )
    return ir.Program(
        name="special */ {{ 7 * 7 }}\n// evil",
        headers=(
            ir.Header("key", (ir.Field("apply", 3), ir.Field("next", 5))),
            ir.Header("tail", (ir.Field("rest", 8),)),
        ),
        metadata=(ir.Field("seen", 12), ir.Field("dropped", 1)),
        parser=(
            extracting(
                "start", ("key",), next_field, (ir.SelectCase.of_value(1, "more"), ir.SelectCase.of_value(30, "more"))
            ),
            extracting("more", ("tail",)),
        ),
        actions=(hit, ir.Action("table", body=(ir.Drop(),)), ir.Action("late", body=(ir.SetEgress(ir.Const(3)),))),
        tables=(table,),
        control=(ir.ApplyTable("lookup"), ir.CallAction("late")),
        emit=("key", "tail"),
    )


def special_workload() -> ir.Workload:
    workload = build_workload([], frame_size_bytes=64)
    return ir.Workload(special(), workload.baseline, workload.packets, notes=("a note\nwith a second line",))


@pytest.mark.parametrize("name", POINTS)
def test_golden_programs(name: str, golden: Callable[[str, str], None]) -> None:
    files = generated(POINTS[name])
    golden(f"v1model/{name}.p4", files["program.p4"].text().replace(p4perf.__version__, "VERSION"))
    if "commands.txt" in files:
        golden(f"v1model/{name}.commands.txt", "".join(files["commands.txt"].text().splitlines(True)[:20]))


def test_golden_special_program(golden: Callable[[str, str], None]) -> None:
    text = V1Model().generate(special_workload(), TrafficPlan(64))[0].text()
    golden("v1model/special.p4", text.replace(p4perf.__version__, "VERSION"))


@pytest.mark.parametrize("name", POINTS)
def test_structure(name: str) -> None:
    for path, file in generated(POINTS[name]).items():
        if not path.endswith(".p4"):
            continue
        text = re.sub(r"//.*", "", file.text())
        for opening, closing in ("{}", "()", "<>"):
            assert text.count(opening) == text.count(closing)
        assert len(re.findall(r"^(?:parser|control) ", text, re.M)) == 6
        for field in set(re.findall(r"hdr\.(\w+\.\w+)", text)) - {""}:
            header, member = field.split(".")
            declared = re.search(rf"header header_{header}_t \{{(.*?)\}}", text, re.S)
            assert declared is not None
            assert re.search(rf"> {member};", declared[1])
        assert len(re.findall(r"default: accept;\n        \}\n", text)) == text.count("transition select")


def test_few_entries_stand_in_the_program_and_many_in_a_command_file() -> None:
    few = generated([("match_action_table", {"entries": MAX_CONST_ENTRIES, "action_data_bytes": 8})])
    assert set(few) == {"program.p4", "baseline.p4"}
    text = few["program.p4"].text()
    assert len(re.findall(r"0x[0-9a-f]+: set_data\(", text)) == MAX_CONST_ENTRIES
    assert "size =" not in text
    many = generated([("match_action_table", {"entries": MAX_CONST_ENTRIES + 1, "action_data_bytes": 8})])
    assert set(many) == {"program.p4", "baseline.p4", "commands.txt"}
    assert "const entries" not in many["program.p4"].text()
    assert f"size = {MAX_CONST_ENTRIES + 1};" in many["program.p4"].text()
    lines = many["commands.txt"].text().splitlines()
    assert lines[1] == "table_add MainIngress.table_exact MainIngress.set_data 0x001 => 0x1 0x9e3779b2"
    assert len(lines) == MAX_CONST_ENTRIES + 1
    assert many["commands.txt"].text().splitlines() == lines, "a file can be written twice"


def test_entries_with_much_action_data_stand_in_a_command_file() -> None:
    data_bytes = MAX_CONST_BYTES // 256
    assert set(generated([("match_action_table", {"entries": 256, "action_data_bytes": data_bytes})])) == {
        "program.p4",
        "baseline.p4",
    }
    much = generated([("match_action_table", {"entries": 256, "action_data_bytes": data_bytes + 4})])
    assert "const entries" not in much["program.p4"].text()
    assert len(much["commands.txt"].text().splitlines()) == 256


def test_for_a_target_all_entries_are_commands() -> None:
    workload = build_workload([("match_action_table", {"entries": 3, "action_data_bytes": 8})], frame_size_bytes=128)
    files = {f.path: f for f in RuntimeV1Model().generate(workload, TrafficPlan(128))}
    assert "const entries" not in files["program.p4"].text()
    assert "size = 3;" in files["program.p4"].text()
    assert files["commands.txt"].text().count("table_add MainIngress.table_exact MainIngress.set_data ") == 3
    assert files["commands.txt"].entries == 3


def test_entries_in_the_text_are_those_of_the_rule() -> None:
    files = generated([("match_action_table", {"entries": 50, "key_bits": 16, "action_data_bytes": 12})])
    rows = re.findall(r"0x(\w+): set_data\(0x(\w+), 0x(\w+), 0x(\w+)\)", files["program.p4"].text())
    numbers = [tuple(int(word, 16) for word in row) for row in rows]
    assert numbers == [(i, 1, (i * 0x9E3779B1 + 1) % 2**32, (i * 0x9E3779B1 + 2) % 2**32) for i in range(50)]


# The egress port ------------------------------------------------------------------------------------------------------

DROP, SEND, NOTHING = (
    ir.Action("drop", body=(ir.Drop(),)),
    ir.Action("send", body=(ir.SetEgress(ir.Const(1)),)),
    ir.Action("nothing"),
)
BOTH = ir.Action("both", body=(ir.Drop(), ir.SetEgress(ir.Const(1))))


def with_control(*control: str, tables: tuple[tuple[str, str], ...] = ()) -> ir.Program:
    key = (ir.Key(ir.FieldRef("h", "k")),)
    return ir.Program(
        "flow",
        (ir.Header("h", (ir.Field("k", 8),)),),
        (),
        (extracting("start", ("h",)),),
        (DROP, SEND, NOTHING, BOTH),
        tuple(ir.Table(f"{a}_{b}", key, (a, b), b, ir.EntrySet(1, a)) for a, b in tables),
        tuple(ir.ApplyTable(c) if "_" in c else ir.CallAction(c) for c in control),
        ("h",),
    )


@pytest.mark.parametrize(
    ("control", "may_lack_port", "needs_flag"),
    [
        ((), True, False),
        (("send",), False, False),
        (("send", "drop"), False, False),
        (("drop", "send"), False, True),
        (("both",), False, True),
        (("nothing",), True, False),
        (("send_nothing",), True, False),
        (("send_drop",), False, False),
        (("nothing", "send_drop", "nothing"), False, False),
        (("send_drop", "send"), False, True),
        (("send", "nothing_drop", "nothing"), False, False),
    ],
    ids=str,
)
def test_only_what_the_control_flow_needs_is_generated(
    control: tuple[str, ...], may_lack_port: bool, needs_flag: bool
) -> None:
    tables = tuple((a, b) for a, b in (c.split("_") for c in control if "_" in c))
    program = with_control(*control, tables=tables)
    flow = analyse(program)
    assert (flow.may_lack_port, flow.revived) == (may_lack_port, needs_flag)
    text = V1Model().files("program", program)[0].text()
    for data in (b"\0", b"\1"):
        assert emulated(text, program, data) == Interpreter(program).run(data).port


def emulated(text: str, program: ir.Program, data: bytes) -> int | None:
    """What v1model makes of the egress port, by literal reading of the ingress control of the text."""
    bodies = {
        m[1]: [line.strip() for line in m[2].splitlines() if line.strip()]
        for m in re.finditer(r"^    action (\w+)\(\) \{\n(.*?)^    \}", text, re.M | re.S)
    }
    body = text[text.index("} else {") : text.index("control NoEgress")]
    port, flag, armed = 0, 0, True
    for line in (line.strip() for line in body.splitlines()):
        if found := re.fullmatch(r"(\w+)\.apply\(\);", line):
            table = program.table(found[1])
            lines = bodies[table.rule.action if data == b"\0" else table.default_action]
        elif found := re.fullmatch(r"(\w+)\(\);", line):
            lines = bodies[found[1]]
        elif line.startswith("if (meta.dropped == 1)"):
            armed, lines = flag == 1, []
        else:
            lines = [line]
        for statement in lines:
            if statement == "mark_to_drop(standard_metadata);":
                port = 511 if armed else port
            elif found := re.fullmatch(r"standard_metadata\.egress_spec = 9w(\d+);", statement):
                port = int(found[1])
            elif found := re.fullmatch(r"meta\.dropped = ([01]);", statement):
                flag = int(found[1])
    return None if port == 511 else port


# Expressions ----------------------------------------------------------------------------------------------------------

WIDTHS = {"a": 4, "b": 8, "c": 12, "d": 40}
OPERANDS = st.one_of(
    st.integers(0, 2**45).map(ir.Const),
    st.sampled_from(list(WIDTHS)).map(lambda name: ir.FieldRef("h", name)),
    st.sampled_from(["p", "q"]).map(ir.ParameterRef),
)
EXPRESSIONS: st.SearchStrategy[ir.Expression] = st.recursive(
    OPERANDS, lambda inner: st.builds(ir.BinaryOp, st.sampled_from("+-&|^"), inner, inner), max_leaves=12
)


@given(
    expression=EXPRESSIONS,
    destination=st.sampled_from(list(WIDTHS)),
    values=st.lists(st.integers(0, 2**40 - 1), min_size=6, max_size=6),
)
def test_expressions_mean_in_p4_what_they_mean_in_a_program(
    expression: ir.Expression, destination: str, values: list[int]
) -> None:
    fields = dict(zip(WIDTHS, values, strict=False))
    fields = {name: value % 2 ** WIDTHS[name] for name, value in fields.items()}
    parameters = {"p": values[4] % 2**8, "q": values[5] % 2**32}
    action = ir.Action(
        "act", (ir.Field("p", 8), ir.Field("q", 32)), (ir.Assign(ir.FieldRef("h", destination), expression),)
    )
    program = ir.Program(
        "e",
        (ir.Header("h", tuple(ir.Field(n, w) for n, w in WIDTHS.items())),),
        (),
        (),
        (action,),
        (),
        (),
        ("h",),
    )
    width = WIDTHS[destination]
    text = expression_text(program_scope(program) | parameter_scope(action), expression, width)
    for typed in re.findall(r"(?<![<\w])(\d+)w", text) + re.findall(r"bit<(\d+)>", text):
        assert int(typed) == width, "all operands have the width of the destination"
    python = re.sub(r"\b\d+w(0x[0-9a-f]+|\d+)", r"\1", text)
    python = re.sub(r"\(bit<(\d+)>\)([\w.]+)", r"(\2 % 2**\1)", python)
    python = re.sub(r"\bhdr\.h\.(\w)", r"\1", python)
    result = eval(python, {}, fields | parameters) % 2**width  # noqa: S307 - our own text
    assert result == reference(expression, fields, parameters) % 2**width


def reference(expression: ir.Expression, fields: dict[str, int], parameters: dict[str, int]) -> int:
    if isinstance(expression, ir.Const):
        return expression.value
    if isinstance(expression, ir.FieldRef):
        return fields[expression.field]
    if isinstance(expression, ir.ParameterRef):
        return parameters[expression.name]
    left = reference(expression.left, fields, parameters)
    right = reference(expression.right, fields, parameters)
    return {"+": left + right, "-": left - right, "&": left & right, "|": left | right, "^": left ^ right}[
        expression.operator
    ]


def test_long_chains_need_no_recursion() -> None:
    files = generated([("match_action_table", {"entries": 1, "action_data_bytes": 1024})])
    assert "^ data_254 ^ data_255;" in files["program.p4"].text()


# Names and limits -----------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(["key", "key_", "key__", "hdr", "hdr_", "x", "x_", "apply"]), unique=True))
def test_names_stay_different(names: list[str]) -> None:
    renamed = [p4_name(name) for name in names]
    assert len(set(renamed)) == len(names)
    assert not {"key", "hdr", "apply"} & set(renamed)


def variant(**changes: object) -> ir.Workload:
    workload = build_workload([("match_action_table", {"entries": 3, "key_bits": 8})], frame_size_bytes=64)
    return replace(workload, program=replace(workload.program, **changes))  # type: ignore[arg-type]


BASE = variant().program
HIT = BASE.action("set_data")


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (variant(headers=(*BASE.headers, ir.Header("odd", (ir.Field("x", 12),)))), "12 bit, which is not whole bytes"),
        (variant(headers=(*BASE.headers, ir.Header("none", ()))), "0 bit"),
        (variant(headers=(*BASE.headers, ir.Header("wide", (ir.Field("x", 4096),)))), "bit<2048>"),
        (variant(metadata=(ir.Field("m", 0),)), "0 bit"),
        (variant(control=(*BASE.control, BASE.control[-1])), "twice"),
        (variant(control=(*BASE.control, ir.CallAction("set_data"))), "takes parameters"),
        (variant(actions=(*BASE.actions, ir.Action("far", body=(ir.SetEgress(ir.Const(511)),)))), "port 511"),
        (variant(actions=(*BASE.actions, ir.Action("table_exact"))), "used twice: table_exact"),
        (variant(tables=(replace(BASE.tables[0], entries=ir.EntrySet(3, "set_data", port=511)),)), "port 511"),
        (variant(tables=(replace(BASE.tables[0], entries=ir.EntrySet(257, "set_data")),)), "257 entries"),
        (variant(tables=(replace(BASE.tables[0], keys=()),)), "no key"),
        (variant(tables=(replace(BASE.tables[0], actions=("set_data",)),)), "does not list its action miss"),
        (variant(headers=(*BASE.headers, ir.Header(ir.METADATA, (ir.Field("x", 8),)))), "cannot be called meta"),
        (variant(parser=(extracting("accept"),)), "state start"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_v1model_cannot_do_is_refused(workload: ir.Workload, message: str) -> None:
    with pytest.raises(CapabilityError, match=re.escape(message)):
        V1Model().generate(workload, TrafficPlan(64))


@pytest.mark.parametrize("name", ["a b", "x; }", "", "x" * 256])
def test_names_from_a_spec_are_checked(name: str) -> None:
    with pytest.raises(SpecError, match="identifier"):
        V1Model().generate(variant(actions=(*BASE.actions, ir.Action(name))), TrafficPlan(64))


def test_titles_and_notes_stay_in_their_comments() -> None:
    files = V1Model().generate(special_workload(), TrafficPlan(64))
    code = [line for line in files[0].text().splitlines() if not line.startswith("//")]
    assert not any("evil" in line or "second line" in line or "49" in line for line in code)


# The compiler ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiler", ["p4test", "p4c-bm2-ss"])
@pytest.mark.parametrize("name", [*POINTS, "special"])
def test_p4c_accepts_every_program(name: str, compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    workload = special_workload() if name == "special" else build_workload(POINTS[name], frame_size_bytes=1024)
    for file in V1Model().generate(workload, TrafficPlan(1024)):
        if file.path.endswith(".p4"):
            (tmp_path / file.path).write_text(file.text())
            done = subprocess.run([compiler, tmp_path / file.path], cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
