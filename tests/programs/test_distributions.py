"""Entries that are distributed as in networks, and packets that hit them."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from support.parser_states import extracting

from p4perf.errors import CapabilityError, UsageError
from p4perf.programs import ir
from p4perf.programs.component import build_workload
from p4perf.programs.decisions import Decisions
from p4perf.programs.distributions import IPV4_LENGTHS, IPV6_LENGTHS, Shape, prefixes, rows
from p4perf.programs.entries import EntryIndex
from p4perf.programs.exercise import spread, traffic
from p4perf.programs.fill import Fill, filled
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.own import OwnParameters, own_workload
from p4perf.programs.reading.control_plane import parse_control_plane
from p4perf.programs.reading.text import parse_program, read_program
from p4perf.programs.reading.tree import parse_json
from p4perf.programs.reading.v1model import read_v1model

EXAMPLES = Path(__file__).parents[2] / "examples/programs"
FIVE_TUPLE = [
    Shape("src", "ternary", 32),
    Shape("dst", "lpm", 32),
    Shape("src_port", "range", 16),
    Shape("dst_port", "ternary", 16),
    Shape("protocol", "ternary", 8),
]


def text(name: str) -> str:
    return (EXAMPLES / name / f"{name}.json").read_text()


def program(name: str) -> ir.Program:
    return read_v1model(parse_json(text(name), name))


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("bits", "table", "nested"), [(32, IPV4_LENGTHS, 0.507), (128, IPV6_LENGTHS, 0.569)])
def test_prefixes_are_those_of_a_routing_table(bits, table, nested, seed):
    values, lengths = prefixes(5000, bits, seed)
    found = set(zip(values, lengths, strict=True))
    assert len(found) == 5000
    assert all(0 <= v < 1 << bits and v % (1 << bits - n) == 0 for v, n in found)
    assert all(a >= b for a, b in pairwise(lengths)), "the longest come first"
    shares, total = Counter(lengths), sum(table.values())
    assert all(abs(shares[n] / 5000 - count / total) < 0.001 for n, count in table.items())
    inside = sum(any((v >> bits - m << bits - m, m) in found for m in range(1, n)) for v, n in found)
    assert abs(inside / 5000 - nested) < 0.04
    paired = sum((v ^ 1 << bits - n, n) in found for v, n in found) / 5000
    assert 0.5 < paired < 0.8
    assert prefixes(5000, bits, seed) == (values, lengths) != prefixes(5000, bits, seed + 9)


def test_prefixes_of_other_widths_are_scaled_and_end_where_the_key_does():
    values, lengths = prefixes(1000, 16, 1)
    assert (len(set(zip(values, lengths, strict=True))), Counter(lengths).most_common(1)[0][0]) == (1000, 12)
    assert max(prefixes(100, 512, 1)[1]) <= 64
    narrow = prefixes(10_000, 4, 1)
    assert 16 <= len(narrow[0]) < 40
    assert len(set(zip(*narrow, strict=True))) == len(narrow[0])


@pytest.mark.parametrize("seed", [1, 2])
def test_filters_overlap_and_the_more_specific_come_first(seed):
    found = rows(FIVE_TUPLE, 800, "classbench", seed)
    assert len(set(found)) == len(found) == 800
    src, dst, src_port, dst_port, protocol = zip(*found, strict=True)
    protocols = Counter(m.low if m.mask else None for m in protocol)
    assert protocols.most_common(1)[0][0] == 6
    assert set(protocols) == {6, 17, 1, None}
    anything = ir.Match(0xFFFF, 0, 0xFFFF)
    assert {anything, ir.Match(0xFFFF, 1024, 0xFFFF)} <= set(src_port)
    assert sum(m == anything for m in src_port) > 550
    assert {443, 80} <= {m.low for m in dst_port if m.mask == 0xFFFF}
    assert len({m.mask for m in src}) > 4
    assert all((m.mask | (1 << 32 - m.mask.bit_count()) - 1) == 0xFFFFFFFF for m in (*src, *dst)), "prefixes"
    same = sum(a.low >> 16 == b.low >> 16 for a, b in zip(src, dst, strict=True) if min(a.mask, b.mask) >= 0xFFFF0000)
    assert same > 50, "pairs of source and destination are correlated"
    entries = [ir.Entry(row, "a") for row in found]
    index, rng = EntryIndex(entries), random.Random(seed)
    later = 0
    for entry in rng.sample(entries, 100):
        values = [rng.choice((m.low, m.high)) for m in entry.matches]
        first = next(n for n, e in enumerate(entries) if e.fits(values))
        assert index.find(values) == first
        later += any(e.fits(values) for e in entries[first + 1 :])
    assert later > 30, "filters overlap"
    assert index.find([0] * 5) == next((n for n, e in enumerate(entries) if e.fits([0] * 5)), None)


def test_a_distribution_needs_a_key_that_it_is_made_for():
    exact = [Shape("dst", "exact", 48)]
    for name in ("bgp", "classbench"):
        with pytest.raises(UsageError, match=f"distribution {name} needs a key"):
            rows(exact, 3, name, 1)
    assert len(rows(exact, 300, "uniform", 1)) == 300
    assert len(rows([Shape("x", "exact", 4)], 300, "uniform", 1)) == 16


def test_entries_are_as_many_as_asked_for_or_as_the_key_allows_without_being_asked():
    switch = program("l2_switch")
    fields = {key.field for table in switch.tables for key in table.keys}
    headers = tuple(
        replace(
            h,
            fields=tuple(
                replace(f, width_bits=8 if ir.FieldRef(h.name, f.name) in fields else f.width_bits) for f in h.fields
            ),
        )
        for h in switch.headers
    )
    small = replace(switch, headers=headers)
    assert [t.entries.count for t in filled(small, {}, default=300).tables if t.keys] == [256, 256]
    with pytest.raises(UsageError, match="its key of 8 bit has only 256 different ones"):
        filled(small, {"sources": Fill(257)})


def test_a_filled_routing_table_has_few_next_hops_and_keeps_what_it_had():
    router = program("ipv4_router")
    routes = router.table("MainControl_routes")
    kept = ir.Entry((ir.Match.masked(0x0A000000, 0xFF000000),), "MainControl_set_next_hop", (7,))
    given = ir.EntryList((kept,))
    tables = tuple(replace(t, entries=given) if t == routes else t for t in router.tables)
    whole = filled(replace(router, tables=tables), {"routes": Fill(500, "bgp")}, default=64)
    listing = whole.table("MainControl_routes").listing
    assert kept in listing
    assert len(listing) == 500
    assert len({entry.data for entry in listing}) <= 17


def shares(program: ir.Program, frames) -> dict[str, float]:
    interpreter = Interpreter(program)
    hits, met = Counter(), Counter()
    for frame in frames:
        outcome = interpreter.run(frame)
        hits.update(outcome.hits)
        met.update(outcome.hits + tuple(name for name in outcome.misses if program.table(name).keys))
    return {name: hits[name] / met[name] for name in met}


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*/*.json")))
def test_packets_hit_the_tables_that_they_come_to(name):
    whole = filled(program(name), {}, default=32)
    # A segment that is the own one has to have one segment left, which few packets have by chance.
    found = shares(whole, traffic(whole, 200 if name == "srv6_endpoint" else 40, size_bytes=124))
    assert set(found) == {t.name for t in whole.tables if t.keys}
    # The buckets of the load balancer are chosen by a hash.
    assert all(share >= 0.85 for table, share in found.items() if table != "MainControl_buckets")


@pytest.mark.parametrize("distribution", ["uniform", "bgp"])
def test_packets_hit_the_next_hops_of_a_router_with_many_routes(distribution):
    whole = filled(program("ipv4_router"), {"routes": Fill(2000, distribution)}, default=64)
    assert min(shares(whole, traffic(whole, 400)).values()) >= 0.95


def test_packets_miss_as_often_as_was_asked_for():
    whole = filled(program("acl_firewall"), {"access_list": Fill(100, "classbench")}, default=100)
    found = shares(whole, traffic(whole, 200, misses={"MainControl_destinations": 0.25}))
    assert found["MainControl_access_list"] > 0.95
    assert 0.6 < found["MainControl_destinations"] < 0.9


def test_made_up_entries_name_groups_that_are_configured():
    """Packets for others are not sent."""
    table = "MainControl_destinations"
    whole = filled(program("l2_switch"), {}, default=8)
    assert whole.table(table).listed == ("MainControl_forward",)
    parsed = parse_program(text("l2_switch"), "l2_switch.json")
    plane = parse_control_plane("mc_mgrp_create 1", "rules.txt", parsed)
    whole = filled(read_program(parsed, plane), {}, default=8)
    assert set(whole.table(table).listed) == {"MainControl_forward", "MainControl_flood"}


SHARES = """
tables:
  access_list: {hit: 0.75, entries: 50, actions: {permit: 0.75, deny: 0.25}}
parser:
  start: {0x800: 0.9}
  ipv4: {0x6: 0.5, 0x11: 0.25}
conditions:
  node_9: 0.5
"""


def decided(name: str, shares: str, packets: int) -> dict[str, tuple[int, Counter[str]]]:
    """How many packets come to a place, and what they decide there."""
    given = OwnParameters(program=text(name), shares=shares, packets=packets, default_fill=20)
    workload = own_workload(given, build_workload([], frame_size_bytes=128).program, 128)
    found: dict[str, Counter[str]] = {}
    decisions = Decisions(workload.program)
    for each in workload.frames:
        for place, label in decisions.run(each)[0]:
            found.setdefault(place, Counter())[label] += 1
    return {place: (counts.total(), counts) for place, counts in found.items()}


def test_shares_of_branches_hold_as_numbers_of_packets():
    """Of a table the default action counts beside hits and misses."""
    found = decided("acl_firewall", SHARES, 60)
    for place, label, share in (
        ("parser.start", "0x800", 0.9),
        ("parser.ipv4", "0x6", 0.5),
        ("parser.ipv4", "0x11", 0.25),
        ("MainControl.access_list hit", "MainControl.permit", 0.75),
        ("node_9", "true", 0.5),
    ):
        met, counts = found[place]
        assert met > 20
        assert abs(counts[label] - share * met) <= 1, place
    _, counts = found["MainControl.access_list"]
    assert abs(counts["hit"] - 0.75 * (counts["hit"] + counts["miss"])) <= 1


@pytest.mark.parametrize(
    "shares",
    [
        "tables: {access_list: {hit: 0.3}}\nconditions: {node_9: 0.9}",
        "parser: {ipv4: {0x6: 0, 0x11: 0}}\nconditions: {node_5: 1}",
    ],
)
def test_shares_that_exclude_each_other_name_their_branch(shares):
    branch = r"(table|condition|parser state) .*: (no packet was found that takes|\d+ of \d+ packets take) "
    with pytest.raises(UsageError, match=branch):
        decided("acl_firewall", shares, 40)


def test_popular_entries_are_hit_more_often():
    whole = filled(program("l2_switch"), {}, default=200)
    popular, alike = (Counter(f[:6] for f in traffic(whole, 400, size_bytes=60, zipf=z)) for z in (1.2, 0.0))
    assert popular.most_common(1)[0][1] > 50 > 15 > alike.most_common(1)[0][1]


def test_checksums_that_a_program_verifies_are_right():
    ref, scratch = ir.FieldRef("h", "sum"), ir.FieldRef(ir.METADATA, "scratch")
    wrong = ir.Branch(ir.Compare("!=", scratch, ref), (ir.Drop(),))
    action = ir.Action("verify", body=(ir.Hash(scratch, "checksum16", (ir.FieldRef("h", "a"),)), wrong))
    send = ir.Action("send", body=(ir.SetEgress(ir.Const(1)),))
    header = ir.Header("h", (ir.Field("a", 32), ir.Field("sum", 16)))
    checked = ir.Program(
        "checked", (header,), (ir.Field("scratch", 16),), (extracting("start", ("h",)),), (action, send),
        (), (ir.CallAction("verify"), ir.CallAction("send")), ("h",)
    )  # fmt: skip
    run = Interpreter(checked).run
    assert all(run(frame).sent for frame in traffic(checked, 30, size_bytes=60))


@pytest.mark.parametrize(
    ("distribution", "kind", "keys"), [("bgp", "lpm", {"key_bits": 32}), ("classbench", "ternary", {})]
)
def test_components_have_entries_of_a_distribution(distribution, kind, keys):
    parameters = {"match_kind": kind, "entries": 300, "distribution": distribution, "action_data_bytes": 12} | keys
    workload = build_workload([("match_action_table", parameters)], frame_size_bytes=128)
    (table,) = workload.program.tables
    assert len({entry.matches for entry in table.listing}) == 300
    assert [entry.data[:2] for entry in table.listing[:2]] == [(1, ir.entry_data_word(n, 1)) for n in range(2)]
    frames = spread(workload.program, workload.packets, "zipf", hit_ratio=0.75)
    assert {len(frame) for frame in frames} == {124}
    found = shares(workload.program, frames[:600])
    # Most keys hit an entry of a filter set, however they are drawn.
    assert (0.7 if distribution == "bgp" else 0.75) < found[table.name] < (0.8 if distribution == "bgp" else 1.01)
    with pytest.raises(CapabilityError, match="follow no rule"):
        _ = table.rule


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"match_kind": "exact"}, "is for match_kind lpm"),
        ({"distribution": "classbench"}, "is for match_kind ternary"),
        ({"entries": 100_001}, "at most 100000 entries"),
        ({"key_bits": 8}, "different entries of this distribution"),
    ],
)
def test_components_that_have_no_such_entries(changes, words):
    parameters = {"match_kind": "lpm", "entries": 3000, "distribution": "bgp", "key_bits": 32} | changes
    with pytest.raises(CapabilityError, match=words):
        build_workload([("match_action_table", parameters)], frame_size_bytes=128)


def test_what_was_asked_for_is_said():
    base = build_workload([], frame_size_bytes=64).program
    given = OwnParameters(program=text("ipv4_router"), fill="routes=100:bgp", miss="0.5,next_hops=0", packets=30)
    (note,) = own_workload(given, base, 64).notes
    assert note.startswith("tables: MainControl.routes 100 entries, ")
    assert "MainControl.next_hops 64 entries, " in note
    for miss in ("2", "x", "routes=-1", "routes="):
        with pytest.raises(UsageError, match="expected SHARE"):
            own_workload(given.model_copy(update={"miss": miss}), base, 64)
