"""Prices of primitives: curves, bounds, sums, and their records."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.prediction.library import open_models
from p4perf.models.program import Construct, Pricing, construct
from p4perf.models.program.costs import CostModel
from p4perf.models.program.experience import _inverse_triangle
from p4perf.models.program.graph import mispredicted_branch
from p4perf.models.program.prices import Curve, Domain, Price, price_key, surplus
from p4perf.models.program.primitives import Agreement, PrimitiveCosts, beyond_forwarding

ENTRIES = Curve("entries", "log", (1.0, 1000.0, 1e6), (0.0, 10.0, 200.0))
KEY = Curve("key_bits", "linear", (32.0, 128.0), (1.0, 2.0))
SIZES = (Domain("entries", (1.0, 1000.0, 1e6)), Domain("key_bits", (32.0, 128.0)), Domain("action_data_bytes", (4.0,)))


def lookup(kind: str = "exact", entries: int = 1000, bits: int = 32, data: int = 4, hit: float = 1.0) -> Construct:
    return construct("lookup", match_kind=kind, entries=entries, key_bits=bits, action_data_bytes=data, hit=hit)


def priced(*prices: Price) -> PrimitiveCosts:
    return PrimitiveCosts("dpdk-c", 50.0, {p.key: p for p in prices})


@pytest.fixture
def costs() -> PrimitiveCosts:
    bytes_ = (Domain("bytes", (4.0, 64.0)),)
    return PrimitiveCosts(
        "dpdk-c",
        50.0,
        {
            p.key: p
            for p in (
                Price(
                    "extract", 2.0, (Curve("bytes", "linear", (4.0, 64.0), (0.0, 6.0)),), (), bytes_, 0.5, 2.0, points=9
                ),
                Price("emit", 1.0, (), (), bytes_),
                Price("set egress", 3.0),
                Price(
                    "lookup exact", 30.0, (ENTRIES,), (KEY,), SIZES, 0.9, 1.2, points=20, sources=("mat/exact-entries",)
                ),
                Price("lookup exact miss", 25.0, (), (), (Domain("entries", (1000.0,)),)),
                Price("lookup exact either", 20.0),
                Price("lookup ternary", 40.0, (), (), SIZES),
                Price("write header", 5.0, (), (), (Domain("bits", (32.0,)),), many=2.0, more=10.0),
                Price("compute", 1.0, (), (), (Domain("bits", (32.0,)),)),
                Price("meter", 80.0, (), (), (Domain("cells", (1024.0,)),)),
                Price("clone", 60.0, (), (), (Domain("bytes", (60.0,)),)),
                Price("add header", 4.0, (), (), bytes_),
                Price("other headers", 15.0),
                Price("hash checksum16", 7.0, (), (), bytes_),
                Price("mispredicted branch lookup", 20.0),
            )
        },
        (Agreement("mat/exact-entries", 9, 0.01, 0.05, -0.002, 0.02),),
        ("mat/locality says nothing",),
    )


def test_a_curve_is_straight_between_knots_constant_below_and_goes_on_above() -> None:
    assert [ENTRIES.at(x) for x in (0.5, 1, 1000, 1e6)] == pytest.approx([0, 0, 10, 200])
    assert ENTRIES.at(1000**0.5) == pytest.approx(5)
    assert ENTRIES.at(1e9) == pytest.approx(390)
    with pytest.raises(UsageError, match="must ascend"):
        Curve("bytes", "linear", (4.0, 4.0), (0.0, 1.0))
    with pytest.raises(UsageError, match="no knot at 0"):
        Curve("bytes", "log", (0.0, 4.0), (0.0, 1.0))


def test_it_is_a_pricing(costs: PrimitiveCosts) -> None:
    pricing: Pricing = costs
    assert pricing.target == "dpdk-c"


def test_a_price_says_how_it_is_known(costs: PrimitiveCosts) -> None:
    measured = costs.charge(lookup())
    assert (measured.cycles.value, measured.basis, measured.source) == (40.0, "measured", "mat/exact-entries")
    assert (measured.cycles.low, measured.cycles.high) == pytest.approx((36, 48))
    between = costs.charge(lookup(entries=30, bits=80), 2.0)
    assert between.basis == "interpolated"
    assert between.cycles.value == pytest.approx(2 * 1.5 * (30 + ENTRIES.at(30)))
    beyond = costs.charge(lookup(entries=10**7))
    assert beyond.basis == "extrapolated"
    assert "measured with entries 1 to 1e+06" in beyond.remark


def test_more_entries_than_were_measured(costs: PrimitiveCosts) -> None:
    end = costs.charge(lookup(entries=10**6)).cycles
    power = math.log(end.value / (30 + ENTRIES.at(1e6 / 8))) / math.log(8)
    found = [costs.charge(lookup(entries=n)).cycles for n in (2 * 10**6, 10**7, 10**8)]
    assert [c.value for c in found] == pytest.approx([end.value * n**power for n in (2, 10, 100)])
    assert all(c.low >= end.low for c in found)
    assert [(c.high - c.low) / c.value for c in (end, *found)] == sorted(
        (c.high - c.low) / c.value for c in (end, *found)
    )
    listed = Curve("entries", "log", (1.0, 100.0, 1000.0), (0.0, 99.0, 999.0))
    searched = priced(
        Price("lookup ternary", 1.0, (listed,), (), (Domain("entries", (1.0, 100.0, 1000.0)), *SIZES[1:]))
    )
    assert searched.charge(lookup("ternary", 100_000)).cycles.high == pytest.approx(100_000)
    single = priced(Price("lookup lpm", 20.0, (), (), (Domain("entries", (100.0,)), *SIZES[1:])))
    many, few = (single.charge(lookup("lpm", n)) for n in (10_000, 10))
    assert (many.basis, many.cycles.value, few.basis, few.cycles.low) == ("unknown", 20.0, "bounded", 0.0)
    assert "at least" in many.remark


def test_hits_and_misses_mix_and_what_cannot_be_known_costs(costs: PrimitiveCosts) -> None:
    half = costs.charge(lookup(hit=0.5))
    assert half.cycles.value == pytest.approx(0.5 * 40 + 0.5 * 25 + 0.5 * 20)
    never = costs.charge(lookup(hit=0.0, entries=10**6))
    assert never.basis == "bounded"
    assert never.cycles.value == 25
    assert never.cycles.high > never.cycles.value
    dear = costs.charge(lookup("ternary", hit=0.0))
    assert (dear.cycles.value, dear.basis) == (40.0, "interpolated"), "as a hit among twice as many"


def test_a_lookup_that_waits_for_memory_says_so(costs: PrimitiveCosts) -> None:
    assert "beside it" in costs.charge(lookup(entries=10**6)).remark
    assert costs.charge(lookup(entries=1)).remark == ""


def test_constructs_without_data_are_bounded_or_unknown(costs: PrimitiveCosts) -> None:
    lpm = costs.charge(lookup("lpm"))
    assert (lpm.cycles.value, lpm.cycles.low, lpm.basis) == (40.0, 0.0, "bounded")
    assert costs.charge(lookup("range")).cycles.high >= lpm.cycles.high
    assert costs.charge(construct("compute", operator="<<", bits=16)).basis == "interpolated"
    assert costs.charge(construct("compute", operator="/", bits=16)).basis == "unknown"
    assert costs.charge(construct("drop")).cycles.value == 0.0
    for what in (
        construct("multicast", ports=2),
        construct("unknown", name="digest"),
        construct("component", name="x"),
    ):
        charge = costs.charge(what, 3.0)
        assert (charge.cycles.value, charge.basis) == (0.0, "unknown")
    assert priced().charge(lookup("lpm")).basis == "unknown"


def test_sizes_that_were_never_varied(costs: PrimitiveCosts) -> None:
    few, same, many = (costs.charge(construct("meter", cells=n)) for n in (16, 1024, 10**6))
    assert (few.cycles.value, few.cycles.low, few.basis, same.basis) == (80, 0, "bounded", "measured")
    assert many.basis == "bounded"
    assert many.cycles.high == pytest.approx(80 + 200 - ENTRIES.at(1024))
    narrow, wide = (costs.charge(construct("compute", operator="+", bits=n)) for n in (9, 128))
    assert (narrow.cycles.value, narrow.basis, narrow.remark) == (1.0, "interpolated", "")
    assert (wide.cycles.value, wide.basis) == (2.0, "extrapolated")
    assert costs.charge(construct("clone", bytes=1500)).cycles.high == pytest.approx(60 * 1500 / 60)


def test_what_the_points_do_not_tell_apart_has_a_limit() -> None:
    charge = priced(Price("set egress", 3.0, limit=12.0)).charge(construct("set egress"), 2.0)
    assert (charge.cycles.value, charge.cycles.low, charge.cycles.high, charge.basis) == (6.0, 0.0, 24.0, "bounded")


def test_what_costs_nothing_has_an_interval_too() -> None:
    charge = priced(Price("condition", 0.0, spread=0.25)).charge(construct("condition", bits=1), 4.0)
    assert (charge.cycles.value, charge.cycles.low, charge.cycles.high) == (0.0, 0.0, 1.0)


def test_many_in_a_row_cost_more_until_the_next_table(costs: PrimitiveCosts) -> None:
    write = construct("write", bits=32, to="header")
    met = [(write, 1.0), (construct("condition", bits=1), 1.0), (write, 2.0), (lookup(), 1.0), (write, 2.0)]
    assert surplus(met, {"write header": 2.0}) == [0, 0, 1, 0, 0]
    assert [c.cycles.value for c in costs.priced(met)] == [5.0, 0.0, 20.0, 40.0, 10.0]
    assert costs.charge(write, 4.0).cycles.value == 40.0


def test_a_breakdown_takes_off_what_the_baseline_paid_and_adds_what_other_headers_cost_once(
    costs: PrimitiveCosts,
) -> None:
    added = construct("add header", bytes=4)
    met = [
        (construct("extract", bytes=14), 1.0),
        (construct("extract", bytes=64), 2.0),
        (added, 1.0),
        (added, 0.5),
        (construct("set egress"), 1.0),
        (construct("emit", bytes=14), 1.0),
    ]
    assert [times for _, times in beyond_forwarding(met)] == [0, 2, 1, 0.5, 0, 0]
    breakdown = costs.breakdown(met)
    assert [c.cycles.value for c in breakdown.charges] == [0.0, 16.0, 19.0, 2.0, 0.0, 0.0]
    assert [c.times for c in breakdown.charges] == [times for _, times in met]
    assert breakdown.charges[0].remark == "the baseline pays for one"
    assert breakdown.cycles.value == pytest.approx(50 + 37)
    assert breakdown.low == pytest.approx(87 - math.hypot(8, 8.7))
    assert breakdown.high == pytest.approx(87 + math.hypot(16, 8.7))
    assert breakdown.warnings == ()
    assert costs.breakdown(met[:-2]).cycles.value == pytest.approx(87 - 3 - 1), "a packet that is not sent saves that"
    assert (mistaken := costs.mispredicted(0.5)) is not None
    assert mistaken.cycles.value == 10


def test_the_same_construct_is_priced_once(costs: PrimitiveCosts, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Construct] = []
    price = PrimitiveCosts._charge
    monkeypatch.setattr(PrimitiveCosts, "_charge", lambda *a: asked.append(a[1]) or price(*a))
    met = [(Construct(w.kind, w.sizes, f"table {n}"), 1.0) for n in range(50) for w in (lookup(), lookup(entries=10))]
    charges = costs.priced(met)
    assert len(asked) == 2
    assert [charge.what for charge in charges] == [what for what, _ in met]
    assert [charge.cycles.value for charge in charges] == [costs.charge(what).cycles.value for what, _ in met]


def test_a_breakdown_warns_of_what_its_sum_leaves_out(costs: PrimitiveCosts) -> None:
    breakdown = costs.breakdown([(lookup(entries=10**6), 1.0), (construct("multicast", ports=2), 1.0)])
    assert len(breakdown.warnings) == 2
    assert "no price of multicast" in breakdown.warnings[1]


def test_words_of_other_languages() -> None:
    assert price_key(construct("hash", algorithm="csum16", bytes=20)) == "hash checksum16"


def test_records_come_back_exactly(costs: PrimitiveCosts) -> None:
    text = json.dumps(costs.record())
    again = PrimitiveCosts.from_record(json.loads(text))
    assert again == costs
    assert json.dumps(again.record()) == text


def damaged(record: dict, path: str, value: object) -> dict:
    place: object = record
    *keys, last = [int(k) if k.isdigit() else k for k in path.split("/")]
    for key in keys:
        place = place[key]  # type: ignore[index]
    if value is None:
        del place[last]  # type: ignore[attr-defined]
    else:
        place[last] = value  # type: ignore[index]
    return record


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        ("version", 99, "primitives.version"),
        ("prices", {}, "primitives.prices"),
        ("baseline", "50", "primitives.baseline"),
        ("prices/0/constant", -1.0, r"primitives.prices\[0\].constant"),
        ("prices/0/constant", None, r"primitives.prices\[0\].constant"),
        ("prices/0/spread", -1.0, r"primitives.prices\[0\].spread"),
        ("prices/0/low", 1.5, r"primitives.prices\[0\].low"),
        ("prices/0/curves/0/knots", [4, 4], r"primitives.prices\[0\].curves\[0\]: the knots of a curve"),
        ("prices/0/curves/0/scale", "cubic", "scale"),
        ("prices/0/curves/0/size", "colour", r"prices\[0\].key"),
        ("prices/0/domains/0/measured", [], "measured"),
        ("prices/0/sources", [1], r"sources\[0\]"),
        ("prices/1/key", "extract", r"prices\[1\].key"),
        ("agreement/0/median", True, "median"),
        ("remarks", [None], r"remarks\[0\]"),
    ],
)
def test_damage_is_told_by_file_and_key(costs: PrimitiveCosts, path: str, value: object, key: str) -> None:
    record = damaged(json.loads(json.dumps(costs.record())), path, value)
    with pytest.raises(DataError, match=key) as caught:
        PrimitiveCosts.from_record(record, file="lab.json")
    assert "lab.json" in str(caught.value)


def test_no_record_at_all() -> None:
    with pytest.raises(DataError, match="must be an object"):
        PrimitiveCosts.from_record([1])


def test_prices_stand_under_their_names() -> None:
    with pytest.raises(UsageError, match="stands under"):
        PrimitiveCosts("xdp", 1.0, {"emit": Price("extract", 1.0)})


@pytest.mark.parametrize("after", ["start", "lookup", "prefix"])
def test_a_model_with_one_price_of_mispredictions_bounds_all(after: Any) -> None:
    charge = priced(Price("mispredicted branch", 20.0)).charge(mispredicted_branch(after))
    assert (charge.cycles.value, charge.cycles.low, charge.basis) == (20.0, 0.0, "bounded")


def test_a_list_of_long_keys_costs_more_than_one_of_short_keys_and_action_data_do_not_count() -> None:
    words = Curve("compared_words", "linear", (1.0, 10_000.0), (0.0, 9_999.0))
    costs = priced(Price("lookup ternary", 1.0, (words,)))
    found = {bits: costs.charge(lookup("ternary", 1000, bits)).cycles.value for bits in (8, 32, 33, 64, 104, 128, 256)}
    assert found == {8: 1000, 32: 1000, 33: 2000, 64: 2000, 104: 2000, 128: 2000, 256: 4000}
    assert costs.charge(lookup("ternary", 1000, 32, data=64)).cycles.value == 1000
    assert costs.charge(lookup("ternary", 1000, 32, hit=0.0)).cycles.value == 2000


def test_a_table_that_stands_in_for_a_list_is_priced_by_the_words_as_well() -> None:
    words = Curve("compared_words", "linear", (1.0, 1e6), (0.0, 999_999.0))
    costs = priced(Price("lookup ternary", 1.0, (words,)))
    assert costs.charge(lookup("exact", 100, 64)).cycles.value == 200
    ranged = costs.charge(lookup("range", 100, 32)).cycles
    assert (ranged.value, ranged.high) == (100, 100 * 62)


@pytest.mark.parametrize("target", ["dpdk-c", "xdp"])
def test_the_models_that_ship_know_what_lists_cost_per_entry(target: str) -> None:
    """Cycles measured per entry that is passed, with keys of 32 and 104 bit: mat/ternary-entries on an EPYC (Turin)."""
    (model,) = (m.pricing for m in open_models([f"{target}@turin"]))
    assert isinstance(model, CostModel)
    assert model.parts is not None
    many, few = ({b: model.parts.charge(lookup("ternary", n, b)).cycles.value for b in (32, 104)} for n in (4000, 2000))
    per_entry = {bits: (many[bits] - few[bits]) / 1000 for bits in many}  # half of the entries are passed
    short, long = {"dpdk-c": (1.09, 1.67), "xdp": (38.6, 39.2)}[target]
    assert per_entry == pytest.approx({32: short, 104: long}, rel=0.15)


@pytest.mark.parametrize("size", [1, 40, 63, 64, 131])
def test_the_inverse_of_a_triangle(size: int) -> None:
    lower = np.tril(np.random.default_rng(size).normal(size=(size, size)), -1) / size + np.eye(size)
    assert _inverse_triangle(lower) @ lower == pytest.approx(np.eye(size), abs=1e-12)
