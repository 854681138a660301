"""JSON as older compilers wrote it: without fields of the standard metadata, with names of P4_14, unions in stacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.bmv2_json import FIELDS

from p4perf.errors import DataError
from p4perf.generators.swx.spec import Pipeline
from p4perf.programs import ir
from p4perf.programs.analysis import statements
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.reading.commands import RuntimeEntry
from p4perf.programs.reading.tree import parse_json
from p4perf.programs.reading.v1model import ControlPlane, read_v1model

STANDARD = [["ingress_port", 9], ["packet_length", 32], ["egress_spec", 9], ["egress_port", 9], ["instance_type", 32]]


def extract(kind: str, value: object) -> dict[str, Any]:
    return {"op": "extract", "parameters": [{"type": kind, "value": value}]}


def state(name: str, ops: list[dict[str, Any]], key: object = (), *to: tuple[str | None, str | None]) -> dict[str, Any]:
    transitions = [
        {"type": "hexstr" if value else "default", "value": value, "mask": None, "next_state": after}
        for value, after in to
    ]
    return {"name": name, "id": 0, "parser_ops": ops, "transition_key": key, "transitions": transitions}


def whole(**parts: Any) -> dict[str, Any]:
    """A program that does nothing but parse Ethernet, but for these parts."""
    nothing = {"tables": [], "conditionals": [], "action_profiles": []}
    types = [("ethernet_t", FIELDS), ("standard_metadata_t", STANDARD), ("intrinsic_t", [["mcast_grp", 4]])]
    headers = [("ethernet", "ethernet_t"), ("standard_metadata", "standard_metadata_t")]
    headers += [("intrinsic_metadata", "intrinsic_t")]
    return {
        "header_types": [{"name": name, "id": n, "fields": fields} for n, (name, fields) in enumerate(types)],
        "headers": [
            {"name": name, "id": n, "header_type": kind, "metadata": "metadata" in name}
            for n, (name, kind) in enumerate(headers)
        ],
        "parsers": [{"name": "p", "init_state": "s", "parse_states": [state("s", [extract("regular", "ethernet")])]}],
        "actions": [],
        "pipelines": [{"name": name, "init_table": None, **nothing} for name in ("ingress", "egress")],
        "deparsers": [{"order": ["ethernet"]}],
        **parts,
    }


def read(document: dict[str, Any], plane: ControlPlane | None = None) -> ir.Program:
    return read_v1model(parse_json(json.dumps(document), "old.json"), plane)


def test_a_packet_too_short_is_no_crash_where_the_parser_error_is_not_declared():
    (sent,) = Interpreter(read(whole())).run(b"\1\2\3").sent
    assert sent.data == b"\1\2\3"


def test_the_multicast_group_may_be_called_as_in_p4_14():
    call = {"op": "modify_field", "parameters": [{"type": "field", "value": ["intrinsic_metadata", "mcast_grp"]}]}
    call["parameters"].append({"type": "hexstr", "value": "0x2"})
    table = {"name": "t", "key": [], "match_type": "exact", "action_ids": [0], "actions": ["a"], "next_tables": {}}
    table |= {"next_tables": {"a": None}, "default_entry": {"action_id": 0, "action_data": []}}
    document = whole(actions=[{"name": "a", "id": 0, "runtime_data": [], "primitives": [call]}])
    document["pipelines"][0] |= {"init_table": "t", "tables": [table]}
    program = read(document, ControlPlane(groups={2: ((5, 0), (7, 1))}))
    assert [sent.port for sent in Interpreter(program).run(bytes(14)).sent] == [5, 7]


def unions(member: str = "short") -> dict[str, Any]:
    """Options, each of one byte or of two, up to one that begins with 1."""
    document = whole()
    for kind, bits in (("byte_t", 8), ("short_t", 16)):
        document["header_types"].append(
            {"name": kind, "id": bits, "fields": [["kind", 8], ["rest", bits - 8]][: bits // 8]}
        )
    for n in range(2):
        for kind in ("byte", "short"):
            number = len(document["headers"])
            document["headers"].append({"name": f"{kind}_{n}", "id": number, "header_type": f"{kind}_t"})
    document["header_union_types"] = [{"name": "option", "id": 0, "headers": [["byte", "byte_t"], [member, "short_t"]]}]
    document["header_unions"] = [
        {"name": f"option_{n}", "id": n, "union_type": "option", "header_ids": [3 + 2 * n, 4 + 2 * n]} for n in (0, 1)
    ]
    document["header_union_stacks"] = [{"name": "options", "id": 0, "union_type": "option", "header_union_ids": [0, 1]}]
    ahead = [{"type": "lookahead", "value": [0, 8]}]
    last = [{"type": "union_stack_field", "value": ["options", "short", "rest"]}]
    document["parsers"][0]["parse_states"] = [
        state("s", [], ahead, ("0x01", "b"), (None, "c")),
        state("b", [extract("union_stack", ["options", "byte"])]),
        state("c", [extract("union_stack", ["options", "short"])], last, ("0x05", "s"), (None, None)),
    ]
    document["deparsers"] = [{"order": ["short_1", "byte_1"]}]
    return document


@pytest.mark.parametrize(("data", "emitted"), [("02050304ff", "0304ff"), ("020501ff", "01ff"), ("0206aa", "aa")])
def test_members_of_unions_in_a_stack_are_those_of_the_type_of_the_union(data, emitted):
    (sent,) = Interpreter(read(unions())).run(bytes.fromhex(data)).sent
    assert sent.data.hex() == emitted


def test_a_member_that_a_union_does_not_have_is_an_error():
    with pytest.raises(DataError, match="no member 'short'"):
        read(unions("other"))


def test_a_header_that_is_no_whole_number_of_bytes_is_an_error():
    document = whole()
    document["header_types"][0] = {"name": "ethernet_t", "id": 0, "fields": [["dst", 47]]}
    with pytest.raises(DataError, match="/headers/0: is not a whole number of bytes"):
        read(document)


def test_a_field_wider_than_any_is_an_error():
    document = whole()
    document["header_types"][0]["fields"] = [["dst", 8 * 10**30]]
    with pytest.raises(DataError, match="/header_types/0/fields/0: is wider"):
        read(document)


def test_metadata_cannot_be_extracted():
    document = whole()
    document["parsers"][0]["parse_states"] = [state("s", [extract("regular", "intrinsic_metadata")])]
    with pytest.raises(DataError, match="is metadata"):
        read(document)


def test_what_has_another_type_is_not_copied():
    names = [{"type": "header", "value": name} for name in ("byte_0", "short_0")]
    call = {"op": "assign_header", "parameters": names}
    document = unions()
    document["parsers"][0]["parse_states"][1]["parser_ops"] = [{"op": "primitive", "parameters": [call]}]
    with pytest.raises(DataError, match="copies what has another type"):
        read(document)


@pytest.mark.parametrize("copied_back", [False, True])
def test_a_copy_of_the_standard_metadata_is_marked_to_drop(copied_back):
    document = whole()
    document["headers"].append({"name": "smeta", "id": 3, "header_type": "standard_metadata_t", "metadata": True})
    fields = [{"type": "field", "value": [header, "egress_spec"]} for header in ("standard_metadata", "smeta")]
    calls = [{"op": "mark_to_drop", "parameters": [{"type": "header", "value": "smeta"}]}]
    calls += [{"op": "assign", "parameters": fields}] if copied_back else []
    document["actions"] = [{"name": "a", "id": 0, "runtime_data": [], "primitives": calls}]
    document["pipelines"][0] |= {"init_table": "c", "action_calls": [{"name": "c", "action_id": 0, "next_node": None}]}
    assert bool(Interpreter(read(document)).run(bytes(14)).sent) is not copied_back


@pytest.mark.parametrize(("type_", "emitted"), [(0x0800, ""), (0x0801, "aabb")])
def test_a_transition_has_a_value_where_older_json_says_no_type(type_, emitted):
    key = [{"type": "field", "value": ["ethernet", "type"]}]
    first = state("s", [extract("regular", "ethernet")], key, ("0x0800", "t"), (None, None))
    first["transitions"][0].pop("type")
    first["transitions"][1] = {"value": "default", "mask": None, "next_state": None}
    skip = {"op": "shift", "parameters": [2]}
    document = whole()
    document["parsers"][0]["parse_states"] = [first, state("t", [skip])]
    frame = bytes(12) + type_.to_bytes(2, "big") + b"\xaa\xbb"
    (sent,) = Interpreter(read(document)).run(frame).sent
    assert sent.data[14:].hex() == emitted


def test_a_table_lists_its_actions_by_their_names_in_older_json():
    """Of two actions that add to a field and take from it, a packet takes that of its entry."""
    target, datum = {"type": "field", "value": ["ethernet", "type"]}, {"type": "runtime_data", "value": 0}
    names = {"add": "add_to_field", "take": "subtract_from_field"}
    document = whole(
        actions=[
            {"name": name, "id": n, "runtime_data": [{"name": "by", "bitwidth": 16}]}
            | {"primitives": [{"op": op, "parameters": [target, datum]}]}
            for n, (name, op) in enumerate(names.items())
        ]
    )
    table = {"name": "t", "key": [{"match_type": "exact", "target": ["ethernet", "type"]}], "match_type": "exact"}
    table |= {"actions": list(names), "next_tables": dict.fromkeys(names)}
    document["pipelines"][0] |= {"init_table": "t", "tables": [table]}
    entries = [RuntimeEntry((ir.Match.masked(n, 0xFFFF),), name, (3,)) for n, name in enumerate(names, 5)]
    program = read(document, ControlPlane({"t": entries}))
    assert program.table("t").actions[:2] == ("add", "take")
    sent = [Interpreter(program).run(bytes(12) + bytes([0, n])).data[13] for n in (5, 6, 7)]
    assert sent == [8, 3, 7]


def test_a_table_to_which_two_branches_come_is_one_table():
    """Of two conditions both sides apply one of two tables: these are declared once."""
    port = {"type": "field", "value": ["standard_metadata", "ingress_port"]}

    def above(name: str, bound: int, then: str, otherwise: str) -> dict[str, Any]:
        value = {"op": ">", "left": port, "right": {"type": "hexstr", "value": hex(bound)}}
        return {
            "name": name,
            "expression": {"type": "expression", "value": value},
            "true_next": then,
            "false_next": otherwise,
        }

    document = whole()
    action = {"name": "a", "id": 0, "runtime_data": [], "primitives": []}
    tables = [
        {"name": name, "key": [], "match_type": "exact", "action_ids": [0], "next_tables": {"a": None}}
        for name in ("one", "two")
    ]
    conditions = [above("x", 10, "y", "z"), above("y", 15, "one", "two"), above("z", 5, "one", "two")]
    document |= {"actions": [action]}
    document["pipelines"][0] |= {"init_table": "x", "tables": tables, "conditionals": conditions}
    program = read(document)
    assert sorted(t.name for t in program.tables) == ["one", "two"]
    misses = {port: Interpreter(program).run(bytes(14), port).misses for port in (3, 7, 12, 20)}
    assert misses == {3: ("two",), 7: ("one",), 12: ("two",), 20: ("one",)}


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(("size", "number"), [(14, 0), (13, 1), (15, 7)])
def test_errors_have_the_numbers_that_the_json_gives_them(first, size, number):
    """The error goes to a register; one of the program comes of a packet that is longer than Ethernet."""
    error = {"type": "field", "value": ["standard_metadata", "parser_error"]}
    zero, length = (
        {"type": "hexstr", "value": "0x0"},
        {"type": "field", "value": ["standard_metadata", "packet_length"]},
    )
    longer = {"op": "<", "left": length, "right": {"type": "hexstr", "value": "0xf"}}
    verify = {"op": "verify", "parameters": [{"type": "expression", "value": longer}]}
    verify["parameters"].append({"type": "hexstr", "value": hex(7 + first)})
    document = whole(register_arrays=[{"name": "r", "id": 0, "size": 1, "bitwidth": 32}])
    document["errors"] = [["NoError", first], ["PacketTooShort", 1 + first]]
    document["parsers"][0]["parse_states"] = [state("s", [extract("regular", "ethernet"), verify])]
    kept = {"op": "register_write", "parameters": [{"type": "register_array", "value": "r"}, zero, error]}
    document["actions"] = [{"name": "a", "id": 0, "runtime_data": [], "primitives": [kept]}]
    document["pipelines"][0] |= {"init_table": "c", "action_calls": [{"name": "c", "action_id": 0, "next_node": None}]}
    interpreter = Interpreter(read(document))
    interpreter.run(bytes(size))
    assert interpreter.state("r").get(0, 0) == number + first


def test_queues_are_empty():
    depth = {"type": "field", "value": ["standard_metadata", "deq_qdepth"]}
    call = {"op": "assign", "parameters": [{"type": "field", "value": ["ethernet", "type"]}, depth]}
    document = whole(actions=[{"name": "a", "id": 0, "runtime_data": [], "primitives": [call]}])
    document["pipelines"][1] |= {"init_table": "c", "action_calls": [{"name": "c", "action_id": 0, "next_node": None}]}
    (sent,) = Interpreter(read(document)).run(b"\1" * 14).sent
    assert (sent.data, sent.known) == (b"\1" * 12 + bytes(2), None)


def test_a_hash_over_nothing_is_a_constant():
    router = Path(__file__).parents[1] / "evaluation" / "prediction" / "programs" / "router.json"
    document = json.loads(router.read_text(encoding="utf-8"))
    (hashed,) = (c for c in document["calculations"] if c["algo"] == "crc32")
    assert any(isinstance(s, ir.Hash) and s.algorithm == "crc32" for s in statements(read(document)))
    hashed["input"] = []
    program = read(document)
    assert not any(isinstance(s, ir.Hash) and s.algorithm == "crc32" for s in statements(program))
    Pipeline(program, "program", 124).specification()  # SWX has no hash of nothing


def drawn_types(low: dict[str, Any], high: dict[str, Any]) -> list[int]:
    """What is drawn between bounds into the type of 200 packets, from addresses 3 and 7."""
    to = {"type": "field", "value": ["ethernet", "type"]}
    call = {"op": "modify_field_rng_uniform", "parameters": [to, low, high]}
    document = whole(actions=[{"name": "a", "id": 0, "runtime_data": [], "primitives": [call]}])
    document["pipelines"][1] |= {"init_table": "c", "action_calls": [{"name": "c", "action_id": 0, "next_node": None}]}
    interpreter = Interpreter(read(document))
    packet = (3).to_bytes(6, "big") + (7).to_bytes(6, "big") + bytes(2)
    return [int.from_bytes(interpreter.run(packet).sent[0].data[12:14], "big") for _ in range(200)]


def test_random_numbers_are_within_bounds_which_may_be_fields():
    dst, src = ({"type": "field", "value": ["ethernet", name]} for name in ("dst", "src"))
    three, five = ({"type": "hexstr", "value": value} for value in ("0x3", "0x5"))
    assert set(drawn_types(three, five)) == {3, 4, 5}
    assert set(drawn_types(dst, src)) == {3, 4, 5, 6, 7}
    assert set(drawn_types(five, src)) == {5, 6, 7}
    assert set(drawn_types(src, src)) == {7}
    with pytest.raises(DataError, match="no random number from 5 to 3"):
        drawn_types(five, three)
