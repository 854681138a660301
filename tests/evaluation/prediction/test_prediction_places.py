"""Where lookups find entries: nodes of tries of the kernel, and places in buckets of rte_hash."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from p4perf.evaluation.prediction.learning.constructs import workload_path
from p4perf.evaluation.prediction.library import open_models
from p4perf.evaluation.prediction.reading.places import (
    MaskTrie,
    PrefixTrie,
    extensions,
    extensions_of_rule,
    positions,
    positions_of_rule,
    visited_of_rule,
)
from p4perf.models.program.graph import Kind, construct
from p4perf.models.program.hashes import BUCKET_ENTRIES, astray, buckets_for, extended
from p4perf.models.program.prices import ASTRAY, EXTENDED, FURTHER_BYTES, NODES, numeric_sizes
from p4perf.programs.component import OWN, TrafficPlan, build_workload
from p4perf.programs.ir import Entry, Match
from p4perf.programs.operators import crc32c_raw
from p4perf.programs.own import packed

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "programs"

WIDTH_BITS = 16


@dataclass
class Node:
    value: int
    length: int
    children: list[Node | None] = field(default_factory=lambda: [None, None])


def shared_bits(node: Node, value: int, length: int) -> int:
    return min(node.length, length, WIDTH_BITS - (node.value ^ value).bit_length())


def bit(value: int, place: int) -> int:
    return value >> (WIDTH_BITS - 1 - place) & 1


def inserted(root: Node | None, value: int, length: int) -> Node:
    """A trie with a prefix more, as the map of the kernel has it: nodes with one child only where prefixes end."""
    if root is None:
        return Node(value, length)
    shared = shared_bits(root, value, length)
    if shared == root.length == length:
        return root
    if shared == root.length:
        side = bit(value, shared)
        root.children[side] = inserted(root.children[side], value, length)
        return root
    above = Node(value, shared)
    above.children[bit(root.value, shared)] = root
    if shared < length:
        above.children[bit(value, shared)] = Node(value, length)
    return above


def visited(root: Node | None, key: int) -> int:
    number = 0
    while root is not None:
        number += 1
        shared = shared_bits(root, key, WIDTH_BITS)
        if shared == WIDTH_BITS or shared < root.length:
            break
        root = root.children[bit(key, root.length)]
    return number


@pytest.mark.parametrize("seed", range(20))
def test_lookups_visit_the_nodes_that_a_trie_has_on_their_way(seed: int) -> None:
    drawn = random.Random(seed)
    lengths = [drawn.randint(0, WIDTH_BITS) for _ in range(drawn.randint(1, 60))]
    prefixes = [(drawn.getrandbits(WIDTH_BITS) >> WIDTH_BITS - n << WIDTH_BITS - n, n) for n in lengths]
    root: Node | None = None
    for value, length in prefixes:
        root = inserted(root, value, length)
    trie = PrefixTrie(prefixes, WIDTH_BITS)
    keys = [drawn.getrandbits(WIDTH_BITS) for _ in range(100)] + [value for value, _ in prefixes]
    assert [trie.visited(key) for key in keys] == [visited(root, key) for key in keys]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 37, 100, 256])
def test_prefixes_of_a_rule_are_found_where_a_trie_of_them_has_them(count: int) -> None:
    trie = PrefixTrie([(n << 4, 12) for n in range(count)], WIDTH_BITS)
    assert visited_of_rule(count) == Counter(trie.visited((n << 4) + 3) for n in range(count))


def test_the_hash_is_that_of_the_instruction() -> None:
    # RFC 3720, B.4: of 32 bytes of zeroes, with a start value of ones and inverted; the start is one of four bytes.
    assert crc32c_raw(b"\x00" * 32) == 0, "without a start value"
    assert crc32c_raw(bytes([*b"\xff" * 4, *b"\x00" * 28])) ^ 0xFFFFFFFF == 0x8A9136AA


def test_keys_fill_buckets_one_place_after_another() -> None:
    # Few keys that follow each other are in four of eight buckets (CRC is linear): the fifth is behind another one.
    assert positions_of_rule(4, 16) == {0: 4}
    assert positions_of_rule(5, 16) == {0: 4, 1: 1}
    assert positions_of_rule(32, 6) == dict.fromkeys(range(8), 4)
    many = positions_of_rule(100_000, 16)
    assert sum(many.values()) == 100_000
    assert max(many.values()) == buckets_for(100_000)
    # Where a bucket is full, keys go to another one, behind its eight.
    drawn = random.Random(1)
    places = Counter(positions([drawn.randbytes(6) for _ in range(410)]))
    assert sum(places.values()) == 410
    assert 0 < sum(n for place, n in places.items() if place >= BUCKET_ENTRIES) < 82
    assert astray(410) == pytest.approx(1 - places[0] / 410, abs=0.03)


def test_buckets_of_swx_are_extended_after_four_keys() -> None:
    # CRC is linear: 16 keys that follow each other are in two of four buckets, eight in each.
    assert [extensions_of_rule(count, 16) for count in (1, 8, 16, 48, 100_000)] == [0.0, 0.0, 0.5, 0.0, 0.0]
    # With one bucket, the tenth key is behind two.
    assert extensions([bytes([n]) for n in range(10)], 4) == [0] * 4 + [1] * 4 + [2] * 2
    # A table that is made for more entries than it has keeps them in more buckets.
    assert extensions([bytes([n]) for n in range(16)], 1024) == [0] * 16


@pytest.mark.parametrize("count", [100, 700, 1024, 2900])
def test_random_keys_are_in_as_many_extensions_as_expected(count: int) -> None:
    drawn, tables = random.Random(count), 20_000 // count
    found = [sum(extensions([drawn.randbytes(6) for _ in range(count)], count)) for _ in range(tables)]
    assert sum(found) / (count * tables) == pytest.approx(extended(count), abs=0.015)


def test_a_table_of_swx_costs_more_where_its_buckets_are_extended() -> None:
    (model,) = open_models(["dpdk-swx@genoa"])
    costs, sizes = [], []
    for entries, data in ((8, 4), (16, 4), (200_000, 16), (200_000, 64)):
        given = {"match_kind": "exact", "entries": entries, "key_bits": 128, "action_data_bytes": data}
        workload = build_workload([("match_action_table", given)], frame_size_bytes=64)
        (what,) = (w for w, _ in workload_path("dpdk-swx", workload, TrafficPlan(64)) if w.kind == "lookup")
        sizes.append((numeric_sizes(what)[EXTENDED], numeric_sizes(what)[FURTHER_BYTES]))
        costs.append(model.pricing.charge(what).cycles.value)
    assert sizes == [(0.0, 0.0), (0.5, 0.0), (0.0, 0.0), (0.0, 200_000 * 64.0)]
    assert costs[1] > costs[0] + 40
    assert costs[3] > costs[2] + 200


@pytest.mark.parametrize(
    ("target", "kind", "size", "few", "many"),
    [("dpdk-c", "exact", ASTRAY, (4, 0.0), (32, 0.875)), ("xdp", "lpm", NODES, (1, 1.0), (256, 9.0))],
)
def test_lookups_know_where_their_entries_are(
    target: str, kind: str, size: str, few: tuple[int, float], many: tuple[int, float]
) -> None:
    (model,) = open_models([f"{target}@genoa"])
    costs = []
    for entries, expected in (few, many):
        given = {"match_kind": kind, "entries": entries, "key_bits": 32}
        workload = build_workload([("match_action_table", given)], frame_size_bytes=64)
        (what,) = (w for w, _ in workload_path(target, workload, TrafficPlan(64)) if w.kind == "lookup")
        assert numeric_sizes(what)[size] == expected
        costs.append(model.pricing.charge(what).cycles.value)
        foreseen = workload_path(target, workload, TrafficPlan(64, distribution="sequential"))
        assert [numeric_sizes(w)[ASTRAY] for w, _ in foreseen if w.kind == "lookup"] == [0.0]
    assert costs[1] > 1.5 * costs[0]


@pytest.mark.parametrize("target", ["dpdk-c", "xdp"])
def test_tables_without_entries_are_looked_up_in_vain(target: str) -> None:
    file = EXAMPLES / "ipv4_router" / "ipv4_router.json"
    given = {"program": packed(file.read_text(), str(file)), "fill": "routes=0", "packets": 16, "seed": 1}
    workload = build_workload([(OWN, given)], frame_size_bytes=128)
    (model,) = open_models([f"{target}@genoa"])
    path = workload_path(target, workload, TrafficPlan(128))
    (routes,) = (what for what, _ in path if what.kind == "lookup" and "routes" in what.where)
    assert routes.number("hit") == 0
    assert model.pricing.breakdown(path).cycles.value > 0


def test_rte_acl_reads_a_key_until_no_entry_is_left() -> None:
    def listed(*fields: tuple[int, int]) -> Entry:
        return Entry(tuple(Match.masked(value, mask) for value, mask in fields), "a")

    listing = [listed((0x0A010000, 0xFFFF0000), (80, 0xFFFF)), listed((0, 0), (443, 0xFFFF))]
    big, little = (MaskTrie(listing, [32, 16], order) for order in ("big", "little"))
    assert big.read_bits((0x0A010203, 80), found=True) == 48
    assert big.read_bits((0x0B010203, 80), found=False) == 40, "entries with any address go on to the fifth byte"
    assert MaskTrie(listing[:1], [32, 16], "big").read_bits((0x0B010203, 80), found=False) == 8
    assert MaskTrie(listing[:1], [32, 16], "little").read_bits((0x0B010203, 80), found=False) == 40
    assert little.read_bits((0x0A010203, 443), found=True) == 48


def test_lookups_in_vain_cost_less_on_swx_where_they_end_early() -> None:
    file = EXAMPLES / "acl_firewall" / "acl_firewall.json"
    (model,) = open_models(["dpdk-swx@genoa"])
    costs, bits = [], []
    for missed in (0.0, 1.0):
        given = {"program": packed(file.read_text(), str(file)), "fill": "access_list=16", "packets": 64, "seed": 1}
        given["miss"] = f"access_list={missed:g}"
        path = workload_path("dpdk-swx", build_workload([(OWN, given)], frame_size_bytes=128), TrafficPlan(128))
        (acl,) = (what for what, _ in path if what.kind == "lookup" and "access_list" in what.where)
        bits.append(acl.number("key_bits"))
        costs.append(model.pricing.charge(acl).cycles.value)
    assert bits[1] < 0.8 * bits[0]
    assert costs[1] < costs[0]


@pytest.mark.parametrize("target", ["dpdk-c", "dpdk-swx"])
def test_few_packets_touch_few_cells_of_an_array(target: str) -> None:
    file = EXAMPLES / "count_min_sketch" / "count_min_sketch.json"
    cells = []
    for packets in (16, 64):
        given = {"program": packed(file.read_text(), str(file)), "packets": packets, "seed": 1}
        path = workload_path(target, build_workload([(OWN, given)], frame_size_bytes=128), TrafficPlan(128))
        cells += [what.number("cells") for what, _ in path if what.kind == "register read"][:1]
    assert cells == [16 * 16, 16 * 64], "of 16,384 cells"


@pytest.mark.parametrize("target", ["dpdk-c", "dpdk-swx", "xdp"])
@pytest.mark.parametrize("kind", ["register read", "register write", "counter", "meter"])
def test_arrays_beyond_the_caches_cost_more(target: str, kind: Kind) -> None:
    (model,) = open_models([f"{target}@genoa"])
    sizes = {"bits": 32} if kind.startswith("register") else {}
    near, far = (construct(kind, cells=cells, **sizes) for cells in (1024, 1 << 20))
    assert model.pricing.charge(far).cycles.value > model.pricing.charge(near).cycles.value + 5
    assert model.pricing.parts.waited([(near, 1.0)]) == 0
    assert model.pricing.parts.waited([(far, 2.0)]) > 10


def test_keys_in_metadata_are_hashed_in_the_byte_order_of_the_processor() -> None:
    file = EXAMPLES / "ipv4_router" / "ipv4_router.json"
    given = {"program": packed(file.read_text(), str(file)), "fill": "routes=64", "packets": 256, "seed": 1}
    path = workload_path("dpdk-swx", build_workload([(OWN, given)], frame_size_bytes=128), TrafficPlan(128))
    (hops,) = (numeric_sizes(what) for what, _ in path if what.kind == "lookup" and "next_hops" in what.where)
    assert (hops["entries"], hops[EXTENDED]) == (15.0, 0.0), "of 16 next hops, routes lead to 15"
    assert sum(extensions([n.to_bytes(4, "big") for n in range(16)], 16)) == 8
    assert sum(extensions([n.to_bytes(4, "little") for n in range(16)], 16)) == 0
