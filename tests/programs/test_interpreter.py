"""The reference interpreter, against bytes worked out by hand and against properties."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.parser_states import extracting

from p4perf.programs import ir
from p4perf.programs.component import build_workload
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.packets import frame

ETHERNET = "02000000000202000000000188b5"
BASELINE = Interpreter(build_workload([], frame_size_bytes=64).program)


def run(component: str, parameters: dict[str, object], data: str) -> tuple[int | None, str]:
    outcome = Interpreter(build_workload([(component, parameters)], frame_size_bytes=1518).program).run(
        bytes.fromhex(data)
    )
    return outcome.port, outcome.data.hex()


@given(st.binary(max_size=100))
def test_baseline_forwards_any_frame_with_an_ethernet_header_unchanged(data: bytes) -> None:
    outcome = BASELINE.run(data)
    assert (outcome.port, outcome.data) == ((1, data) if len(data) >= 14 else (None, b""))


def test_a_hit_sets_the_port_and_writes_the_exclusive_or_of_the_data() -> None:
    # Entry 2 holds port 1 and the words 2 * 0x9E3779B1 + 1 and + 2, modulo 2**32: 0x3C6EF363 and 0x3C6EF364.
    # 0x3C6EF363 ^ 0x3C6EF364 = 0x00000007, and 0x11223344 ^ 7 = 0x11223343.
    port, data = run(
        "match_action_table",
        {"entries": 3, "key_bits": 16, "action_data_bytes": 12},
        ETHERNET + "0002" + "11223344" + "ffee",
    )
    assert (port, data) == (1, ETHERNET + "0002" + "11223343" + "ffee")


def test_a_miss_drops() -> None:
    assert run("match_action_table", {"entries": 3, "key_bits": 16}, ETHERNET + "0003" + "11223344") == (None, "")


@given(drawn=st.integers(0, 199))
def test_hits_and_misses_follow_the_index(drawn: int) -> None:
    workload = build_workload(
        [("match_action_table", {"entries": 100, "key_bits": 32, "action_data_bytes": 4})], frame_size_bytes=64
    )
    sent = frame(workload.program, workload.packets, drawn)
    outcome = Interpreter(workload.program).run(sent)
    assert (outcome.port, outcome.data) == ((1, sent) if drawn < 100 else (None, b""))
    assert (len(outcome.hits), len(outcome.misses)) == ((1, 0) if drawn < 100 else (0, 1))


def test_increments_wrap_around_at_the_width_of_the_field() -> None:
    parameters = {"writes": 2, "fields": 3, "field_bits": 8}
    port, data = run("header_field_writes", parameters, ETHERNET + "00ff10" + "99")
    assert (port, data) == (1, ETHERNET + "010010" + "99")


def test_sets_write_255() -> None:
    parameters = {"writes": 1, "fields": 2, "field_bits": 16, "operation": "set"}
    assert run("header_field_writes", parameters, ETHERNET + "12345678") == (1, ETHERNET + "00ff5678")


@pytest.mark.parametrize(
    ("chain", "port"),
    [("01aa01bb00cc", 1), ("00aa", 1), ("01aa", None), ("01aa01", None), ("", None)],
    ids=["whole chain", "ends early", "second header is missing", "second header is cut", "first header is missing"],
)
def test_the_parser_follows_the_chain(chain: str, port: int | None) -> None:
    sent = ETHERNET + chain if port is not None else ""
    assert run("parser_headers", {"headers": 3, "header_bits": 16}, ETHERNET + chain) == (port, sent)


EVERYTHING: list[tuple[str, dict[str, object]]] = [
    ("match_action_table", {"entries": 10, "key_bits": 16, "match_kind": "ternary", "tables": 2}),
    ("header_field_writes", {"writes": 3, "fields": 4, "field_bits": 8}),
    ("removed_headers", {"removed": 2}),
    ("added_headers", {"headers": 2, "header_bytes": 3}),
    ("metadata_writes", {"writes": 3}),
    ("arithmetic", {"operations": 3}),
    ("conditionals", {"conditionals": 3}),
    ("hash", {"size_bytes": 8}),
    ("counter", {"updates": 2, "size": 4}),
    ("meter", {"executions": 1}),
    ("register", {"accesses": 1, "operation": "read_write", "size": 4}),
    ("random", {"numbers": 1, "fields": 1}),
    ("clone", {"copies": 1}),
    ("recirculate", {"times": 2}),
    ("checksum", {"size_bytes": 8, "operation": "update"}),
    ("multicast", {"ports": 2}),
    ("parser_branches", {"branches": 3}),
]
WHOLE = build_workload(EVERYTHING, frame_size_bytes=1518).program


@settings(max_examples=60)
@given(st.binary(max_size=220), st.integers(0, 14))
def test_no_frame_breaks_the_interpreter(data: bytes, announced: int) -> None:
    frame_bytes = data[:announced] + bytes.fromhex(ETHERNET)[announced:] + data[announced:]
    outcome = Interpreter(WHOLE).run(frame_bytes)
    assert all(sent.known is None or len(sent.known) == len(sent.data) for sent in outcome.sent)


def one_header(
    actions: tuple[ir.Action, ...], control: tuple[object, ...], tables: tuple[ir.Table, ...] = ()
) -> ir.Program:
    return ir.Program(
        name="small",
        headers=(ir.Header("h", (ir.Field("a", 4), ir.Field("b", 12))),),
        metadata=(ir.Field("m", 8),),
        parser=(extracting("start", ("h",)),),
        actions=actions,
        tables=tables,
        control=control,  # type: ignore[arg-type]
        emit=("h",),
    )


def test_a_drop_is_final_and_a_port_that_is_never_set_is_a_drop() -> None:
    drop, send = ir.Action("drop", body=(ir.Drop(),)), ir.Action("send", body=(ir.SetEgress(ir.Const(2)),))
    for order, port in ((("drop", "send"), None), (("send", "drop"), None), (("send",), 2), ((), None)):
        program = one_header((drop, send), tuple(ir.CallAction(name) for name in order))
        assert Interpreter(program).run(bytes(2)).port == port


def test_fields_that_are_no_bytes_and_metadata() -> None:
    # a = 0xF, b = 0x123: m = a + b = 0x132, cut to 0x32; a = m - 1 = 0x31, cut to 0x1; b = m | 0x100 = 0x132.
    a, b, m = ir.FieldRef("h", "a"), ir.FieldRef("h", "b"), ir.FieldRef(ir.METADATA, "m")
    body = (
        ir.Assign(m, ir.BinaryOp("+", a, b)),
        ir.Assign(a, ir.BinaryOp("-", m, ir.Const(1))),
        ir.Assign(b, ir.BinaryOp("|", m, ir.Const(0x100))),
        ir.SetEgress(m),
    )
    outcome = Interpreter(one_header((ir.Action("act", body=body),), (ir.CallAction("act"),))).run(
        bytes.fromhex("f123")
    )
    assert (outcome.port, outcome.data.hex()) == (0x32, "1132")


def test_two_keys_make_one_number_and_parameters_are_cut_to_their_width() -> None:
    # Keys a = 0x1 and b = 0x002 make entry 0x1002 = 4098; its word 1 ends in (0x02 * 0xB1 + 1) mod 256 = 0x63.
    hit = ir.Action(
        "hit",
        (ir.Field("port", 32), ir.Field("low", 8)),
        (ir.SetEgress(ir.ParameterRef("port")), ir.Assign(ir.FieldRef("h", "b"), ir.ParameterRef("low"))),
    )
    miss = ir.Action("miss", body=(ir.Drop(),))
    keys = (ir.Key(ir.FieldRef("h", "a")), ir.Key(ir.FieldRef("h", "b")))
    table = ir.Table("t", keys, ("hit", "miss"), "miss", ir.EntrySet(0x1003, "hit", port=7))
    interpreter = Interpreter(one_header((hit, miss), (ir.ApplyTable("t"),), (table,)))
    outcome = interpreter.run(bytes.fromhex("1002"))
    assert (outcome.port, outcome.data.hex(), outcome.hits) == (7, "1063", ("t",))
    assert interpreter.run(bytes.fromhex("1003")).misses == ("t",)
