"""How far from the processor tables are, counted by hand, and what that costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4perf.evaluation.prediction.learning.constructs import workload_path
from p4perf.evaluation.prediction.library import open_models
from p4perf.evaluation.prediction.reading.reuse import LINE_BYTES, NEAREST_BYTES, exact_lines, lines_of, reuse
from p4perf.models.program import Construct, construct
from p4perf.models.program.prices import REUSE, REUSE_BYTES
from p4perf.programs.component import OWN, TrafficPlan, build_workload
from p4perf.programs.ir import Workload
from p4perf.programs.own import packed

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "programs"
FRAME_BYTES = 128


def lookup(where: str, kind: str = "exact", entries: int = 100_000, key_bits: int = 32) -> Construct:
    sizes = {"match_kind": kind, "entries": entries, "key_bits": key_bits, "action_data_bytes": 8, "hit": 1.0}
    return construct("lookup", where, **sizes)


def distances(found: tuple[tuple[Construct, float], ...]) -> dict[tuple[str, str], tuple[float, float]]:
    return {(w.where, str(w.size("of"))): (w.number(REUSE_BYTES) / LINE_BYTES, times) for w, times in found}


def test_a_table_competes_with_the_packets_and_with_what_else_is_in_use() -> None:
    met = [(lookup("large"), 1.0), (lookup("half"), 0.5), (lookup("small"), 1.0)]
    keys = {"large": 4096, "half": 1000, "small": 16}
    found = distances(reuse(met, keys, {}, {}, (4096, FRAME_BYTES), "dpdk"))
    # Frames of two lines; nearly three lines for each of few keys of a large table: of a bucket, the key, its data.
    large = 2 * 4096 + 3 * (4096 + 1000 + 16)
    # An entry of the second comes again after 2000 packets, half of which look it up.
    half = 2 * 2000 + 3 * (2000 + 1000 + 16)
    assert found == {
        ("large", "exact"): (pytest.approx(large, rel=0.05), 1.0),
        ("half", "exact"): (pytest.approx(half, rel=0.05), 0.5),
    }
    assert found["large", "exact"][0] < large
    assert NEAREST_BYTES / LINE_BYTES > 2 * 16 + 3 * (16 + 8 + 16), "the small one stays in the nearest cache"


def test_small_entries_share_lines() -> None:
    # Of 1024 entries of 16 bytes, four share each of 256 lines; drawn at random, most lines are in use soon.
    assert lines_of(1024, 1024, 16) == 256
    assert lines_of(1, 1024, 16) == pytest.approx(1, rel=0.01)
    assert 128 < lines_of(256, 1024, 16) < 256
    assert lines_of(256, 1024, 64) == 256
    assert lines_of(256, 1024, 100) == 512
    # 4096 keys of 4 bytes with data of 8: of buckets of 8 bytes, keys of 16, and data of 16.
    in_use = exact_lines(lookup("full", entries=4096), 4096, "dpdk")
    assert in_use == 4096 * (8 + 16 + 16) / LINE_BYTES
    # In maps of the kernel, of places of 8 bytes and elements of 60.
    assert exact_lines(lookup("full", entries=4096), 4096, "kernel") == pytest.approx(4096 * (8 + 60) / LINE_BYTES)
    # Four thousand of a million entries are apart from each other.
    assert exact_lines(lookup("large", entries=1_000_000), 4096, "dpdk") == pytest.approx(3 * 4096, rel=0.02)


def test_prefixes_take_steps_and_lists_pass_through_the_caches() -> None:
    met = [(lookup("routes", "lpm"), 1.0), (lookup("list", "ternary", 1000), 1.0)]
    found = distances(reuse(met, {"routes": 2000}, {"routes": 0.5}, {"routes": 0.4}, (256, 128), "dpdk"))
    lines = 2 * 256 + 2.5 * 2000 + 1000 * 16 / LINE_BYTES
    assert found == {("routes", "lpm"): (lines, 1.5), ("routes", "branch"): (lines, 0.4)}
    tries = distances(reuse(met, {"routes": 2000, "list": 300}, {}, {}, (256, 128), "swx"))
    assert tries["list", "ternary"] == (2 * 256 + 4 * 300 + 4 * 300, 1.0), "a node for each byte of the key"
    nodes = [w.number(REUSE_BYTES) for w, _ in reuse(met[:1], {"routes": 2000}, {}, {}, (256, 128), "kernel")]
    assert nodes[0] / LINE_BYTES == 2 * 256 + 2 * 2000, "two nodes of one line for each prefix"
    assert nodes == [nodes[0] / 2**n for n in range(5)], "each level is used twice as often as the next"
    assert nodes[-1] > NEAREST_BYTES > nodes[-1] / 2


def router(routes: int, packets: int) -> Workload:
    file = EXAMPLES / "ipv4_router" / "ipv4_router.json"
    given = {"program": packed(file.read_text(), str(file)), "fill": f"routes={routes}", "packets": packets, "seed": 5}
    return build_workload([(OWN, given)], frame_size_bytes=FRAME_BYTES)


@pytest.mark.parametrize("target", ["dpdk-c", "dpdk-swx"])
def test_a_router_costs_more_the_more_of_its_routes_are_in_use(target: str) -> None:
    (model,) = open_models([f"{target}@turin"])  # which has no price of its own
    for packets in (32, 1024):
        path = workload_path(target, router(2000, packets), TrafficPlan(FRAME_BYTES))
        far = [what for what, _ in path if what.kind == "reuse"]
        assert bool(far) == (packets == 1024)
        near = tuple(part for part in path if part[0].kind != "reuse")
        more = model.pricing.breakdown(path).cycles.value - model.pricing.breakdown(near).cycles.value
        assert (more > 3) == (packets == 1024)
        assert all(model.pricing.charge(what).basis == "bounded" for what in far)


def test_what_is_further_away_costs_more() -> None:
    for price in REUSE.values():
        costs = [price.at({REUSE_BYTES: float(NEAREST_BYTES << n)}) for n in range(12)]
        assert costs[0] == 0
        assert costs == sorted(costs)
