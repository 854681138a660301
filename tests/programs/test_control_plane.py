"""Entries of tables from commands, JSON, CSV and text of P4Runtime."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from p4perf.errors import DataError
from p4perf.formats.swx_spec import read_specification
from p4perf.programs.reading.commands import ControlPlane
from p4perf.programs.reading.control_plane import parse_control_plane
from p4perf.programs.reading.tree import parse_json
from p4perf.programs.reading.v1model import read_v1model

EXAMPLES = Path(__file__).parents[2] / "examples/programs"


def tree(name: str):
    return parse_json((EXAMPLES / name / f"{name}.json").read_text(), f"{name}.json")


FIREWALL, ROUTER = tree("acl_firewall"), tree("ipv4_router")

P4INFO = """
tables {
  preamble { id: 33554433 name: "MainControl.routes" alias: "routes" }
  match_fields { id: 4 name: "hdr.ipv4.dst" bitwidth: 32 match_type: LPM }
  action_refs { id: 0x1000001 }
}
actions { preamble { id: 16777217 name: "MainControl.set_next_hop" } params { id: 9 name: "next_hop" bitwidth: 32 } }
"""

ROUTES = {
    "commands": """
# the same in every format
table_add MainControl.routes set_next_hop 10.0.0.0/8 => 7
table_add routes MainControl.set_next_hop 10.1.0.0/16 => 0x8
table_set_default routes no_route
mc_mgrp_create 5
mc_node_create 1 2 3
mc_node_associate 5 0
mirroring_add 9 4
""",
    "json": """{"target": "bmv2", "table_entries": [
  {"table": "MainControl.routes", "match": {"hdr.ipv4.dst": ["10.0.0.0", 8]},
   "action_name": "MainControl.set_next_hop", "action_params": {"next_hop": 7}},
  {"table": "routes", "match": {"dst": "10.1.0.0/16"}, "action_name": "set_next_hop",
   "action_params": {"next_hop": "8"}},
  {"table": "routes", "default_action": true, "action_name": "no_route", "action_params": {}}],
 "multicast_group_entries": [{"multicast_group_id": 5,
   "replicas": [{"egress_port": 2, "instance": 1}, {"egress_port": 3, "instance": 1}]}],
 "clone_session_entries": [{"clone_session_id": 9, "replicas": [{"egress_port": 4, "instance": 1}]}]}
""",
    "csv": """# routes
table, hdr.ipv4.dst, action, next_hop
MainControl.routes, 10.0.0.0/8, set_next_hop, 7

routes, 10.1.0.0/16, set_next_hop, 8
routes, default, no_route,
""",
    "p4runtime": r"""
device_id: 1
updates { type: INSERT entity { table_entry {
  table_id: 33554433
  match { field_id: 4 lpm { value: "\n\000\x00" '\0' prefix_len: 8 } }
  action { action { action_id: 16777217 params { param_id: 9 value: "\a" } } }
} } }
updates: [{ type: INSERT, entity { table_entry <
  table_id: 0x2000001;
  match { field_id: 4 lpm { value: "\012\001\000\000" prefix_len: 16 } }  # the longer one
  action { action { action_id: 16777217 params { param_id: 9 value: "\010" } } }
> } }]
updates { type: MODIFY entity { table_entry {
  table_id: "routes" is_default_action: true action { action { action_id: "no_route" } } } } }
updates { type: INSERT entity { packet_replication_engine_entry {
  multicast_group_entry { multicast_group_id: 5
    replicas { egress_port: 2 instance: 1 } replicas { egress_port: 3 instance: 1 } } } } }
updates { type: INSERT entity { packet_replication_engine_entry {
  clone_session_entry { session_id: 9 replicas { egress_port: 4 } } } } }
""",
}

FILTERS = {
    "commands": "table_add access_list permit 10.0.0.0&&&0xff000000 0&&&0 0&&&0 80&&&0xffff 6&&&0xff => 3 1\n"
    "table_add access_list deny 0&&&0 0&&&0 0&&&0 0&&&0 0&&&0 => 4 2\n",
    "json": """[{"table": "access_list", "priority": 2, "action_name": "permit", "action_params": {"rule": 3},
    "match": {"meta.src": ["10.0.0.0", "0xff000000"], "dst_port": [80, 65535], "protocol": [6, 255]}},
   {"table": "access_list", "priority": 1, "action_name": "deny", "action_params": {"rule": 4}}]""",
    "csv": "table,meta.src,dst_port,protocol,action,rule,priority\n"
    "access_list,10.0.0.0&&&0xff000000,80&&&0xffff,6,permit,3,2\naccess_list,,,,deny,4,1\n",
    "p4runtime": r"""
entities { table_entry { table_name: "access_list" priority: 2
  match { field_id: 1 ternary { value: "\n\0\0\0" mask: "\377\0\0\0" } }
  match { field_name: "dst_port" ternary { value: "P" mask: "\xff\xff" } }
  match { field_id: 5 ternary { value: "\x06" mask: "\xff" } }
  action { action { action_name: "permit" params { param_id: 1 value: "\3" } } } } }
entities { table_entry { table_name: "access_list" priority: 1
  action { action { action_name: "deny" params { param_name: "rule" value: "\4" } } } } }
""",
}


def read(text: str, root=ROUTER) -> ControlPlane:
    return parse_control_plane(text, "rules", root, (P4INFO, "info"))


@pytest.mark.parametrize("kind", ROUTES)
def test_every_format_gives_the_same_routes(kind):
    plane, wanted = read(ROUTES[kind]), read(ROUTES["commands"])
    assert (plane.tables, plane.defaults) == (wanted.tables, wanted.defaults)
    (first, second) = plane.tables["MainControl.routes"]
    assert (first.keys[0].low, first.keys[0].mask, first.data) == (0x0A000000, 0xFF000000, (7,))
    assert second.prefix == 16
    assert plane.defaults == {"MainControl.routes": ("MainControl.no_route", ())}
    if kind != "csv":
        assert (plane.groups, plane.sessions) == ({5: ((2, 1), (3, 1))}, {9: 4})


@pytest.mark.parametrize("kind", FILTERS)
def test_every_format_gives_the_same_filters_in_the_same_order(kind):
    tables = [read_v1model(FIREWALL, read(text, FIREWALL)).tables for text in (FILTERS[kind], FILTERS["commands"])]
    found, wanted = (next(t for t in each if t.name == "MainControl_access_list") for each in tables)
    assert found.entries == wanted.entries
    assert [e.action for e in found.listing] == ["MainControl_permit", "MainControl_deny"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"table_entries": [{"table": "rotes"}]}', ("/table_entries/0", "no table 'rotes'", "did you mean routes?")),
        ('{"table_entries": 3}', ("/table_entries", "is not an array")),
        ('[{"table": "routes", "action_name": "no_route", "match": {"dts": 1}}]', ("/0", "key", "did you mean dst?")),
        ('[{"table": "routes", "action_name": "no_route"}]', ()),
        (
            '[{"table": "routes", "action_name": "no_route", "match": {"dst": [1, 2, 3]}}]',
            ("/0/match/dst", "has 3 values"),
        ),
        ("table,dst\nroutes,1", ("rules:1", "needs a column 'action'")),
        ("table,dst,action\nroutes,1", ("rules:2", "2 cells for 3 columns")),
        ("table,dst,action\n\nroutes,10.0.0.999/8,no_route", ("rules:3", "MainControl.routes: hdr.ipv4.dst")),
        ("table,dst,action,next_hop\nroutes,10.0.0.0/8,set_next_hop,", ("rules:2", "needs next_hop")),
        ("table,dst,action,priority\nroutes,10.0.0.0/8,no_route,x", ("rules:2", "priority 'x'")),
        (
            "table_entry {\n table_id: 5\n action { action { action_id: 1 } } }",
            ("rules:1", "nothing is known of number 5"),
        ),
        ("updates {\n type: DELETE }", ("rules:1", "not deleted")),
        ('table_id: "routes"\nmatch { field_id: 1 }', ("rules:1", "no action")),
        ('updates {\n\n entity: "x" }', ("rules:3", "entity is no message")),
        ("updates {\n  entity {", ("rules:2", "ends within a message")),
        ("updates { " + "a { " * 300, ("nested more than",)),
        ('table_id: "routes\n"', ("rules:1", "no text of protocol buffers")),
        ("table_add routes set_next_hop 10.0.0.0/8 7", ("rules:1", "needs =>")),
        (f"table_add routes set_next_hop 10.0.0.0/{'9' * 5000} => 7", ("rules:1", "no prefix of at most 32 bit")),
        (f"table,dst,action,priority\nroutes,10.0.0.0/8,no_route,{'9' * 5000}", ("rules:2", "below 10**9")),
        ('table_id: "r\\8"', ("rules:1", "no table 'r8'")),
        ("\nmc_node_associate 1 0", ("rules:2", "no such multicast group")),
        ("mirroring_add 1", ("rules:1", "needs 2 numbers")),
        (
            "table_add routes set_next_hop 10.0.0.0/8 => 7\n\ntable_add routes set_next_hop 10.1.0.0/8 => 8",
            ("rules:3", "duplicate entry of MainControl.routes: line 1 has the same key"),
        ),
        (
            "table,dst,action\nroutes,10.0.0.0/8,no_route\nroutes,10.0.0.0/9,no_route\nroutes,10.0.0.0/8,no_route",
            ("rules:4", "line 2 has the same key"),
        ),
        (
            '[{"table": "routes", "action_name": "no_route"}, {"table": "routes", "action_name": "no_route"}]',
            ("rules: /1", "duplicate entry of MainControl.routes"),
        ),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(text, words):
    if not words:
        assert [e.prefix for e in read(text).tables["MainControl.routes"]] == [0]
        return
    with pytest.raises(DataError) as caught:
        parse_control_plane(text, "rules", ROUTER)
    shown = f"{caught.value.location}: {caught.value.key}: {caught.value.message} {caught.value.hint}"
    for word in words:
        assert word in shown


@pytest.mark.parametrize("kind", ROUTES)
@pytest.mark.parametrize("given", ["routes", "filters"])
def test_damaged_files_are_read_or_refused_with_their_place(kind, given):
    text, root = (ROUTES[kind], ROUTER) if given == "routes" else (FILTERS[kind], FIREWALL)
    rng = random.Random(f"{kind} {given}")
    refused = 0
    for _ in range(300):
        at, length = rng.randrange(len(text)), rng.choice((1, 1, 4, 30))
        damaged = text[:at] + rng.choice(("", "{", '"', "-1", "\\x", ",", "0x1" * 20, "\n")) + text[at + length :]
        try:
            read(damaged, root)
        except DataError as error:
            refused += 1
            assert error.location, damaged  # noqa: PT017
    assert refused > 60


def test_a_p4info_that_is_none_is_refused():
    for text, words in (("a: 1", "is not P4Info"), ("tables { preamble { id: 1 } }", "no name or id")):
        with pytest.raises(DataError, match=words):
            parse_control_plane("table_id: 1", "rules", ROUTER, (text, "info"))


def test_entries_of_a_ternary_table_may_be_equal():
    text = "table,meta.src,action,rule,priority\naccess_list,1,permit,3,1\naccess_list,1,deny,4,2\n"
    program = read_v1model(FIREWALL, read(text, FIREWALL))
    (table,) = (t for t in program.tables if t.label == "MainControl.access_list")
    assert [entry.data for entry in table.listing] == [(4,), (3,)]


SPECIFICATION = read_specification((EXAMPLES.parent / "swx" / "router.spec").read_text(), "router.spec")


def test_an_entry_of_a_specification_has_an_action_of_its_table():
    for action, code in (("pass", 0), ("send", 2), ("sned", 2)):
        text = f"table acl\nmatch 10.0.0.1 action {action}\n"
        if not code:
            assert len(read(text, SPECIFICATION).tables["acl"]) == 1
            continue
        with pytest.raises(DataError, match=f"no action of acl '{action}'") as error:
            read(text, SPECIFICATION)
        assert str(error.value.location) == "rules:2"
        assert "known: drop, pass" in str(error.value.hint)


def test_equal_keys_of_a_specification_are_refused():
    with pytest.raises(DataError, match="duplicate entry of acl: line 2 has the same key") as error:
        read("table acl\nmatch 1 action pass\nmatch 2 action pass\nmatch 1 action drop\n", SPECIFICATION)
    assert str(error.value.location) == "rules:4"


def test_a_prefix_is_a_ternary_match():
    with_prefix, with_mask = (
        parse_control_plane(f"table, meta.src, action, rule\naccess_list, {word}, permit, 1\n", "a.csv", FIREWALL)
        for word in ("10.0.0.0/8", "10.0.0.0&&&0xff000000")
    )
    assert with_prefix == with_mask
    with pytest.raises(DataError, match="no prefix of at most 32 bit") as error:
        parse_control_plane("table,src,action,rule\naccess_list,10.0.0.0/255.0.0.0,permit,1\n", "a.csv", FIREWALL)
    assert "VALUE&&&MASK" in str(error.value.hint)


@pytest.mark.parametrize(
    ("columns", "words"),
    [("table, meta.sorce, action, rule", "meta.src"), ("table, meta.src, action, ruel", "did you mean rule")],
)
def test_columns_without_cells_have_to_exist(columns, words):
    with pytest.raises(DataError, match=words) as error:
        parse_control_plane(f"\n{columns}\naccess_list, , permit, 1\n", "a.csv", FIREWALL)
    assert str(error.value.location) == "a.csv:2"
