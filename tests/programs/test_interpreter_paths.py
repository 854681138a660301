"""The reference interpreter: what the docstring of the program says of validity, state, passes and copies."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.parser_states import extracting

from p4perf.programs import ir
from p4perf.programs.interpreter import MAX_PASSES, RANDOM, Given, Interpreter, PacketOutcome, scattered, unknown, usual
from p4perf.targets.oracle import UNKNOWN_SUM, state_sum

H = ir.Header("h", (ir.Field("a", 8), ir.Field("b", 8)))
OPTION = ir.Header("option", (ir.Field("x", 8),))
ADDED = ir.Header("added", (ir.Field("x", 8), ir.Field("y", 8)))
A, B, M = ir.FieldRef("h", "a"), ir.FieldRef("h", "b"), ir.FieldRef(ir.METADATA, "m")
X = ir.FieldRef("option", "x")

SEND = ir.SetEgress(ir.Const(1))


def program(*control: object, actions: dict[str, tuple[ir.Statement, ...]] | None = None, **more: object) -> ir.Program:
    """``h``, and ``option`` where ``a`` is 1; each statement given as control is an action of its own."""
    bodies = dict(actions or {})
    nodes = []
    for n, node in enumerate(control):
        if isinstance(node, ir.CallAction | ir.If | ir.ApplyTable):
            nodes.append(node)
        else:
            bodies[f"do_{n}"] = (node,)  # type: ignore[assignment]
            nodes.append(ir.CallAction(f"do_{n}"))
    return ir.Program(
        name="small",
        headers=(H, OPTION, ADDED),
        metadata=(ir.Field("m", 8),),
        parser=(
            extracting("start", ("h",), ir.FieldRef("h", "a"), (ir.SelectCase.of_value(1, "more"),)),
            extracting("more", ("option",)),
        ),
        actions=tuple(ir.Action(name, body=body) for name, body in bodies.items()),
        tables=more.pop("tables", ()),  # type: ignore[arg-type]
        control=tuple(nodes),
        emit=("h", "option", "added"),
        **more,  # type: ignore[arg-type]
    )


def run(whole: ir.Program, data: str) -> PacketOutcome:
    return Interpreter(whole).run(bytes.fromhex(data))


def tracked(whole: ir.Program, data: str) -> PacketOutcome:
    """The same with unknown random numbers."""
    return Interpreter(whole, given=unknown).run(bytes.fromhex(data))


def sent(outcome: PacketOutcome) -> list[tuple[int, str]]:
    return [(s.port, s.data.hex()) for s in outcome.sent]


def test_a_field_of_a_header_that_is_not_there_reads_as_zero_and_what_is_written_is_lost() -> None:
    whole = program(SEND, ir.Assign(X, ir.Const(9)), ir.Assign(B, X))
    assert sent(run(whole, "0207aa")) == [(1, "0200aa")]
    assert sent(run(whole, "010777aa")) == [(1, "010909aa")]


def test_what_is_removed_is_not_sent_and_what_is_added_follows() -> None:
    add = ir.AddHeader("added", (("y", ir.BinaryOp("+", A, ir.Const(1))),))
    assert sent(run(program(SEND, ir.RemoveHeader("option"), add), "010755aa")) == [(1, "01070002aa")]
    assert sent(run(program(SEND, ir.RemoveHeader("h"), ir.RemoveHeader("option")), "010755aa")) == [(1, "aa")]
    twice = program(SEND, ir.AddHeader("added", (("x", ir.Const(5)),)), ir.RemoveHeader("added"), add)
    assert sent(run(twice, "02")) == []
    assert sent(run(twice, "0207")) == [(1, "02070003")]


def test_an_added_header_is_valid_and_may_be_one_that_was_parsed() -> None:
    again = program(
        SEND,
        ir.AddHeader("option", (("x", ir.Const(3)),)),
        ir.If(ir.IsValid("option"), (ir.CallAction("mark"),)),
        actions={"mark": (ir.Assign(B, X),)},
    )
    assert sent(run(again, "0200ff")) == [(1, "020303ff")]


@pytest.mark.parametrize(
    ("comparator", "holds"),
    [("==", "010"), ("!=", "101"), ("<", "100"), (">", "001"), ("<=", "110"), (">=", "011")],
)
def test_comparisons(comparator: ir.Comparator, holds: str) -> None:
    branch = ir.If(ir.Compare(comparator, A, ir.Const(100)), (ir.CallAction("yes"),), (ir.CallAction("no"),))
    whole = program(branch, actions={"yes": (ir.SetEgress(ir.Const(1)),), "no": (ir.SetEgress(ir.Const(0)),)})
    assert "".join(str(run(whole, f"{a:02x}00").port) for a in (99, 100, 101)) == holds


def test_comparisons_are_of_the_values_as_they_are() -> None:
    # 0xFF + 1 is not cut to eight bits before it is compared.
    branch = ir.If(ir.Compare(">", ir.BinaryOp("+", A, ir.Const(1)), ir.Const(255)), (ir.CallAction("yes"),))
    assert run(program(branch, actions={"yes": (SEND,)}), "ff00").port == 1


def test_conditionals_inside_of_conditionals() -> None:
    inner = ir.If(ir.Compare("==", B, ir.Const(2)), (ir.CallAction("both"),), (ir.CallAction("one"),))
    whole = program(
        ir.If(ir.Compare("==", A, ir.Const(9)), (ir.CallAction("one"), inner), ()),
        actions={"one": (SEND,), "both": (ir.SetEgress(ir.Const(2)),)},
    )
    assert [run(whole, data).port for data in ("0902", "0903", "0802")] == [2, 1, None]


def test_counters_and_registers_live_on_and_indices_wrap_around() -> None:
    whole = program(
        SEND,
        ir.CountPacket("c", A),
        ir.ReadRegister(B, "r", A),
        ir.WriteRegister("r", A, ir.BinaryOp("+", B, ir.Const(0x3F0))),
        counters=(ir.Counter("c", 4),),
        registers=(ir.Register("r", 2, 4),),
    )
    interpreter = Interpreter(whole)
    assert interpreter.stateful
    out = [interpreter.run(bytes.fromhex(data)).data.hex() for data in ("0500", "0300", "0500", "0400")]
    # r[1] becomes 0x3F0 cut to 4 bits: 0. Everything stays 0 but the counters: 5 and 5 in cell 1, 3 in 3, 4 in 0.
    assert out == ["0500", "0300", "0500", "0400"]
    assert interpreter.state("c") == {0: 1, 1: 2, 3: 1}
    assert interpreter.state("r") == {}
    with pytest.raises(KeyError):
        interpreter.state("no")


def test_a_register_is_cut_to_its_width_and_keeps_its_value() -> None:
    whole = program(
        SEND,
        ir.ReadRegister(B, "r", ir.Const(0)),
        ir.WriteRegister("r", ir.Const(0), A),
        registers=(ir.Register("r", 1, 4),),
    )
    interpreter = Interpreter(whole)
    assert [interpreter.run(bytes.fromhex(d)).data.hex() for d in ("ab00", "cd00", "ef00")] == ["ab00", "cd0b", "ef0d"]
    assert not Interpreter(program(SEND)).stateful


def test_meters_are_green() -> None:
    whole = program(SEND, ir.MeterPacket(B, "m1", A), meters=(ir.Meter("m1", 2),))
    assert sent(run(whole, "07ff")) == [(1, "0700")]


def test_hashes_take_the_bytes_of_their_fields_in_order() -> None:
    whole = program(SEND, ir.Hash(M, "crc16", (B, A)), ir.Assign(A, M))
    interpreter = Interpreter(whole, {"crc16": lambda data: data[0] + 256 * data[1]})  # type: ignore[dict-item]
    assert interpreter.run(bytes.fromhex("1234")).data.hex() == "3434"


def test_random_bits_are_masked_wherever_they_go() -> None:
    whole = program(SEND, ir.Random(M), ir.Assign(B, ir.BinaryOp("+", M, A)))
    outcome = tracked(whole, "0700ff")
    assert [s.known for s in outcome.sent] == [bytes.fromhex("ff00ff")]
    assert tracked(program(SEND, ir.Random(M), ir.Assign(B, M), ir.Assign(B, A)), "0700").sent[0].known is None
    hashed = tracked(program(SEND, ir.Random(M), ir.Hash(B, "crc16", (M,))), "0700")
    assert hashed.sent[0].known == bytes.fromhex("ff00")


@pytest.mark.parametrize(
    "node",
    [
        ir.If(ir.Compare("==", M, ir.Const(0)), ()),
        ir.ApplyTable("t"),
        ir.CountPacket("c", M),
        ir.WriteRegister("r", M, ir.Const(0)),
    ],
)
def test_nothing_may_be_decided_by_a_random_number(node: object) -> None:
    table = ir.Table("t", (ir.Key(M),), ("do_0",), "do_0", ir.EntrySet(1, "do_0"))
    whole = program(
        SEND, ir.Random(M), node, tables=(table,), counters=(ir.Counter("c", 1),), registers=(ir.Register("r", 1, 8),)
    )
    with pytest.raises(ValueError, match="random"):
        tracked(whole, "0700")


def test_registers_remember_that_a_number_is_random() -> None:
    cell = ir.Const(1)
    whole = program(
        SEND,
        ir.ReadRegister(B, "r", cell),
        ir.If(ir.Compare("==", A, ir.Const(2)), (ir.CallAction("random"),)),
        ir.If(ir.Compare("==", A, ir.Const(3)), (ir.CallAction("nine"),)),
        actions={
            "random": (ir.Random(M), ir.WriteRegister("r", cell, M)),
            "nine": (ir.WriteRegister("r", cell, ir.Const(9)),),
        },
        registers=(ir.Register("r", 2, 8),),
    )
    interpreter = Interpreter(whole, given=unknown)
    found = [interpreter.run(bytes([kind, 0])).sent[0] for kind in (0, 2, 0, 3, 0)]
    first = bytes.fromhex("ff00")
    assert [sent.known for sent in found] == [None, None, first, first, None]
    assert found[-1].data == bytes([0, 9])
    assert interpreter.state("r") == {1: 9}
    interpreter.run(bytes([2, 0]))
    assert interpreter.state("r") == {1: RANDOM}
    assert state_sum(interpreter.state("r")) == UNKNOWN_SUM


def test_a_random_number_is_looked_up_only_where_nothing_can_be_found() -> None:
    table = ir.Table("t", (ir.Key(M),), ("do_0",), "do_0", ir.EntryList(()))
    assert tracked(program(SEND, ir.Random(M), ir.ApplyTable("t"), tables=(table,)), "0700").misses == ("t",)


def test_checksums_are_verified_after_parsing_and_updated_before_sending() -> None:
    # Over the bytes of one header whose other field is 0x0203 the sum is 0xFDFC; over 0x0303 it is 0xFCFC.
    whole = ir.Program(
        name="summed",
        headers=(ir.Header("s", (ir.Field("value", 16), ir.Field("sum", 16))),),
        metadata=(),
        parser=(extracting("start", ("s",)),),
        actions=(ir.Action("go", body=(SEND, ir.Assign(ir.FieldRef("s", "value"), ir.Const(0x0303)))),),
        tables=(),
        control=(ir.CallAction("go"),),
        emit=("s",),
        verified=(ir.FieldRef("s", "sum"),),
        updated=(ir.FieldRef("s", "sum"),),
    )
    assert sent(run(whole, "0203fdfc")) == [(1, "0303fcfc")]
    assert sent(run(whole, "0203fdfd")) == []
    assert sent(run(whole, "0203")) == []


def test_checksums_of_headers_that_are_not_there_do_not_matter() -> None:
    option = ir.Header("option", (ir.Field("x", 8), ir.Field("sum", 16)))
    whole = program(SEND, verified=(ir.FieldRef("option", "sum"),), updated=(ir.FieldRef("option", "sum"),))
    whole = replace(whole, headers=(H, option, ADDED))
    assert sent(run(whole, "0200")) == [(1, "0200")]
    assert sent(run(whole, "0100aa0000")) == []
    assert sent(run(whole, "0100aa55ff")) == [(1, "0100aa55ff")]


FIRST_PASS: ir.Condition = ir.Compare("<", ir.PassNumber(), ir.Const(1))


def test_recirculation_takes_the_deparsed_packet_and_metadata_starts_anew() -> None:
    body = (
        ir.Assign(M, ir.BinaryOp("+", M, ir.Const(1))),
        ir.Assign(B, ir.BinaryOp("+", B, M)),
        ir.Assign(A, ir.Const(1)),
    )
    whole = program(
        SEND,
        ir.CallAction("count"),
        ir.If(FIRST_PASS, (ir.CallAction("again"),)),
        actions={"count": body, "again": (ir.Recirculate(),)},
    )
    # The second pass finds a = 1, so its parser extracts the option, too.
    assert sent(run(whole, "0200ff")) == [(1, "0102ff")]
    assert sent(run(whole, "0200")) == []


def test_random_bits_stay_random_when_a_packet_goes_round() -> None:
    again = ir.If(FIRST_PASS, (ir.CallAction("first"),))
    actions = {"first": (ir.Random(B), ir.Random(M), ir.Recirculate(keep=(M,))), "second": (ir.Assign(A, M),)}
    assert tracked(program(SEND, again, actions=actions), "0700ff").sent[0].known == bytes.fromhex("ff00ff")
    kept = ir.If(FIRST_PASS, (ir.CallAction("first"),), (ir.CallAction("second"),))
    assert tracked(program(SEND, kept, actions=actions), "0700ff").sent[0].known == bytes.fromhex("0000ff")
    decided = ir.If(ir.Compare("==", B, ir.Const(0)), ())
    with pytest.raises(ValueError, match="random"):
        tracked(program(SEND, again, ir.If(ir.Not(FIRST_PASS), (decided,)), actions=actions), "0700ff")


def test_what_is_given_decides() -> None:
    """A clock, and the bits of a number of any width; both stay the same when a packet goes round."""
    late = ir.If(ir.Compare(">", ir.Intrinsic("unknown"), ir.Const(99)), (ir.CallAction("late"),))
    again = ir.If(FIRST_PASS, (ir.CallAction("again"),))
    actions = {"late": (ir.Assign(A, ir.Const(3)),), "again": (ir.Random(B), ir.Recirculate(keep=(B,)))}
    whole = program(SEND, again, late, actions=actions)
    for clock, first in ((99, "07"), (100, "03")):
        interpreter = Interpreter(whole, given=lambda number, clock=clock: Given(clock, 0x1234 + number))
        assert interpreter.stateful
        found = [interpreter.run(bytes.fromhex("0700")) for _ in range(2)]
        assert [sent(outcome) for outcome in found] == [[(1, f"{first}34")], [(1, f"{first}35")]]
        assert all(outcome.sent[0].known is None for outcome in found)


def test_usually_packets_come_at_once_and_numbers_are_evenly_distributed() -> None:
    found = [usual(number) for number in range(1000)]
    assert len({each.clock for each in found}) == 1
    for shift in (0, 8, 32, 60):
        counts = [sum(each.drawn >> shift & 3 == n for each in found) for n in range(4)]
        assert min(counts) > 200
    assert 0 not in map(scattered, range(10_000))


def test_resubmission_takes_the_packet_as_it_came_and_wins() -> None:
    for order in ((ir.Recirculate(), ir.Resubmit()), (ir.Resubmit(), ir.Recirculate())):
        whole = program(
            SEND,
            ir.CallAction("count"),
            ir.If(FIRST_PASS, (ir.CallAction("again"),)),
            actions={"count": (ir.Assign(B, ir.BinaryOp("+", B, ir.Const(1))),), "again": order},
        )
        assert sent(run(whole, "0200")) == [(1, "0201")]


def test_a_dropped_packet_does_not_go_round() -> None:
    assert sent(run(program(SEND, ir.Recirculate(), ir.Drop()), "0200")) == []


def test_a_packet_that_never_leaves_is_an_error() -> None:
    with pytest.raises(RecursionError, match=str(MAX_PASSES)):
        run(program(SEND, ir.Recirculate()), "0200")


@settings(max_examples=10)
@given(times=st.integers(0, MAX_PASSES - 1))
def test_the_passes_are_counted(times: int) -> None:
    whole = program(
        ir.CallAction("port"),
        ir.If(ir.Compare("<", ir.PassNumber(), ir.Const(times)), (ir.CallAction("again"),)),
        actions={"port": (ir.SetEgress(ir.PassNumber()),), "again": (ir.Resubmit(),)},
    )
    assert run(whole, "0200").port == times


def test_clones_are_what_came_and_survive_a_drop() -> None:
    changed = ir.Assign(B, ir.Const(9))
    assert sent(run(program(SEND, changed, ir.Clone(3)), "0200")) == [(1, "0209"), (3, "0200")]
    assert sent(run(program(ir.Drop(), ir.Clone(3)), "0200")) == [(3, "0200")]
    assert sent(run(program(ir.Clone(3), ir.Drop()), "0200")) == [(3, "0200")]
    with pytest.raises(ValueError, match="several ports"):
        _ = run(program(SEND, ir.Clone(3)), "0200").port


def test_a_clone_of_a_second_pass_is_what_came_into_that() -> None:
    whole = program(
        SEND,
        ir.Assign(B, ir.BinaryOp("+", B, ir.Const(1))),
        ir.Clone(2),
        ir.If(FIRST_PASS, (ir.CallAction("again"),)),
        actions={"again": (ir.Recirculate(),)},
    )
    assert sorted(sent(run(whole, "0200"))) == [(1, "0202"), (2, "0200"), (2, "0201")]


def test_multicast_takes_the_place_of_the_port() -> None:
    whole = program(SEND, ir.Multicast((2, 5)), ir.Assign(B, ir.Const(7)))
    assert sent(run(whole, "0200")) == [(2, "0207"), (5, "0207")]
    assert sent(run(program(ir.Multicast((2, 5)), ir.Drop()), "0200")) == []


@given(key=st.integers(0, 0xFFFF))
def test_free_bits_match_anything(key: int) -> None:
    table = ir.Table("t", (ir.Key(A), ir.Key(B, "lpm")), ("hit", "miss"), "miss", ir.EntrySet(5, "hit", free_bits=4))
    whole = program(
        ir.ApplyTable("t"),
        tables=(table,),
        actions={"hit": (ir.SetEgress(ir.Const(1)),), "miss": (ir.SetEgress(ir.Const(2)),)},
    )
    outcome = run(whole, f"{key:04x}00")
    assert outcome.port == (1 if key < 5 * 16 else 2)
    assert (outcome.hits, outcome.misses) == ((("t",), ()) if key < 80 else ((), ("t",)))
