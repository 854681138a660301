"""Prices are recovered from points whose true costs are known; without data they are bounded or unknown."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from p4perf.errors import NoVerdictError
from p4perf.evaluation.prediction.learning.constructs import PacketPath, workload_increment
from p4perf.evaluation.prediction.learning.design import PriceRow
from p4perf.evaluation.prediction.learning.primitives import learn_prices
from p4perf.evaluation.prediction.learning.transfer import holds, joined, transferred
from p4perf.models.program import Construct, construct
from p4perf.models.program.experience import JUDGES, MANY, NORMAL_90, Experience, KnownProgram, features
from p4perf.models.program.graph import mispredicted_branch
from p4perf.models.program.prices import Curve, Domain, Price
from p4perf.models.program.primitives import PrimitiveCosts
from p4perf.programs.component import TrafficPlan, build_workload

FRAME_BYTES = 512
NOISE = 0.01

TABLE: Mapping[str, Any] = {"key_bits": 32, "action_data_bytes": 4}
SWEEPS: Mapping[str, tuple[str, str, Sequence[float], Mapping[str, Any]]] = {
    "parser/headers": ("parser_headers", "headers", range(6), {}),
    "parser/header-size": ("parser_headers", "header_bits", (32, 128, 256, 512, 1024), {"headers": 1}),
    "deparser/headers-added": ("added_headers", "headers", (1, 2, 4, 6, 8), {"header_bytes": 4}),
    "deparser/headers-removed": ("removed_headers", "removed", (1, 2, 4, 6, 8), {"header_bytes": 4}),
    "action/writes": ("header_field_writes", "writes", (0, 1, 2, 3, 5, 7), {"operation": "set"}),
    "action/increments": ("header_field_writes", "writes", (0, 1, 2, 4, 6), {}),
    "mat/entries": (
        "match_action_table",
        "entries",
        (1, 10, 100, 1000, 10**4, 10**5, 10**6),
        dict(TABLE, key_bits=128),
    ),
    "mat/keys": ("match_action_table", "key_bits", (16, 64, 128, 256, 512), dict(TABLE, entries=1000)),
    "mat/keys-large": ("match_action_table", "key_bits", (32, 64, 256, 512), dict(TABLE, entries=10**5)),
    "mat/tables": ("match_action_table", "tables", (1, 2, 3, 4, 6), dict(TABLE, entries=1)),
    "extern/hash": ("hash", "size_bytes", (8, 16, 32, 48, 64, 80, 96, 112), {}),
}


@cache
def points(name: str) -> tuple[tuple[str, PacketPath], ...]:
    component, swept, values, others = SWEEPS[name]
    found = []
    for value in values:
        workload = build_workload([(component, {**others, swept: value})], frame_size_bytes=FRAME_BYTES)
        found.append((f"{swept}={value}", workload_increment("dpdk-c", workload, TrafficPlan(FRAME_BYTES))))
    return tuple(found)


Truth = Callable[[Construct], float]


def additive(what: Construct) -> float:
    match what.kind:
        case "extract":
            return 3 + 0.05 * what.number("bytes")
        case "lookup":
            entries, bits = what.number("entries"), what.number("key_bits")
            return 30 + 4 * math.log10(entries) + max(0.0, 60 * math.log10(entries / 1e4)) + 0.1 * bits
        case "hash":
            return 10 + 0.5 * what.number("bytes")
        case kind:
            return {"select": 1.0, "emit": 2.0, "write": 5.0, "compute": 3.0, "add header": 6.0}.get(kind, 0.0)


def product(what: Construct) -> float:
    if what.kind != "lookup":
        return additive(what)
    return (30 + 20 * math.log10(what.number("entries"))) * (1 + what.number("key_bits") / 256)


def stepped(what: Construct) -> float:
    return additive(what) + 40 * (what.kind == "hash" and what.number("bytes") > 64)


def rows(truth: Truth, names: Sequence[str] = tuple(SWEEPS), noise: float = NOISE) -> list[PriceRow]:
    random = np.random.default_rng(1)
    found = []
    for name in names:
        for label, path in points(name):
            cycles = sum(times * truth(what) for what, times in path)
            starts = tuple(cycles * (1 + noise * random.standard_normal()) for _ in range(3))
            found.append(PriceRow(name, label, path, float(np.median(starts)), starts, 50.0))
    return found


@cache
def learnt(truth: Truth) -> PrimitiveCosts:
    return learn_prices(rows(truth), "dpdk-c")


def lookup(entries: float, bits: int = 32, kind: str = "exact") -> Construct:
    return construct("lookup", match_kind=kind, entries=entries, key_bits=bits, action_data_bytes=4, hit=1.0)


def header(size: int) -> list[tuple[Construct, float]]:
    return [
        (construct("extract", bytes=size), 1.0),
        (construct("select", cases=1, key_bits=16), 1.0),
        (construct("emit", bytes=size), 1.0),
    ]


def total(costs: PrimitiveCosts, met: Sequence[tuple[Construct, float]]) -> float:
    return sum(charge.cycles.value for charge in costs.priced(met))


def test_constructed_prices_are_recovered() -> None:
    costs = learnt(additive)
    assert costs.target == "dpdk-c"
    assert costs.baseline == 50
    for size in (4, 16, 100):
        met = header(size)
        assert total(costs, met) == pytest.approx(sum(additive(w) for w, _ in met), rel=0.1, abs=0.5)
    for what in (
        lookup(1000),
        lookup(1000, 512),
        lookup(10**5, 128),
        lookup(3 * 10**5, 128),
        construct("hash", algorithm="crc32", bytes=60),
        construct("write", bits=32, to="header"),
        construct("compute", operator="+", bits=32),
    ):
        charge = costs.charge(what)
        assert charge.cycles.value == pytest.approx(additive(what), rel=0.15), what
        assert charge.cycles.low <= charge.cycles.value <= charge.cycles.high
        assert charge.basis in ("measured", "interpolated")


def test_points_are_reproduced_and_so_are_programs_that_were_not_learnt() -> None:
    costs = learnt(additive)
    assert {a.experiment for a in costs.agreement} == set(SWEEPS)
    assert max(a.p90 for a in costs.agreement) < 0.1
    parts: list[tuple[str, Any]] = [
        ("parser_headers", {"headers": 3}),
        ("match_action_table", dict(TABLE, entries=100)),
        ("header_field_writes", {"writes": 2}),
    ]
    path = workload_increment("dpdk-c", build_workload(parts, frame_size_bytes=FRAME_BYTES), TrafficPlan(FRAME_BYTES))
    cycles = sum(times * additive(what) for what, times in path)
    charges = (*costs.priced(path), costs.changed_layout(path))
    predicted = sum(charge.cycles.value for charge in charges if charge is not None)
    assert abs(predicted - cycles) / (50 + cycles) < 0.05


def test_a_product_is_told_from_a_sum() -> None:
    price = learnt(product).prices["lookup exact"]
    assert [factor.size for factor in price.factors] == ["key_bits"]
    assert not learnt(additive).prices["lookup exact"].factors
    for what in (lookup(10**5, 512), lookup(100, 128), lookup(1000, 16)):
        assert learnt(product).charge(what).cycles.value == pytest.approx(product(what), rel=0.15)


def test_a_step_is_found_where_it_is() -> None:
    costs = learnt(stepped)
    below, above = (costs.charge(construct("hash", algorithm="crc32", bytes=n)).cycles.value for n in (64, 80))
    assert above - below == pytest.approx(48, rel=0.25)


@pytest.mark.parametrize("target", ["dpdk-c", "xdp"])
def test_lists_grow_in_proportion_between_measured_sizes(target: str) -> None:
    """These targets search ternary tables entry by entry."""

    def cycles(entries: float) -> float:
        return 20 + 0.5 * entries

    sizes = (1, 3, 10, 100, 1000, 10_000)
    given = [
        PriceRow("mat/list", f"entries={n}", ((lookup(n, kind="ternary"), 1.0),), cycles(n), (cycles(n),), 10.0)
        for n in sizes
    ]
    costs = learn_prices(given, target)
    for entries in (30, 300, 3000, 6000):
        found = costs.charge(lookup(entries, kind="ternary")).cycles.value
        assert found == pytest.approx(cycles(entries), rel=0.02), entries


def test_what_is_paid_once_and_what_rises_in_a_row() -> None:
    def truth(row: PriceRow) -> float:
        cycles = sum(times * additive(what) for what, times in row.met)
        changed = any(what.kind in ("add header", "remove header") for what, _ in row.met)
        writes = sum(times for what, times in row.met if what.kind == "write")
        return cycles + 15 * changed + 20 * max(0.0, writes - 2) * ("tables" not in row.point)

    given = [PriceRow(r.experiment, r.point, r.met, truth(r), (), 50.0) for r in rows(additive, noise=0)]
    costs = learn_prices(given, "dpdk-swx")
    price = costs.prices["write header"]
    assert (price.many, price.more) == (2.0, pytest.approx(20, rel=0.1))
    assert (once := costs.changed_layout([(construct("add header", bytes=4), 3.0)])) is not None
    assert once.cycles.value == pytest.approx(15, rel=0.1)


def test_one_garbled_point_decides_nothing() -> None:
    given = rows(additive)
    wrong = given[len(given) // 2]
    given[len(given) // 2] = PriceRow(wrong.experiment, wrong.point, wrong.met, 10 * wrong.cycles, (), 50.0)
    costs = learn_prices(given, "dpdk-c")
    assert costs.charge(lookup(1000, 128)).cycles.value == pytest.approx(additive(lookup(1000, 128)), rel=0.2)


def test_one_experiment_alone_leaves_limits_not_prices() -> None:
    costs = learn_prices(rows(additive, ["mat/entries"]), "dpdk-c")
    cheapest = min(row.cycles for row in rows(additive, ["mat/entries"]))
    charge = costs.charge(construct("extract", bytes=20))
    assert charge.basis == "bounded"
    assert charge.cycles.low == 0
    assert charge.cycles.high <= 1.01 * cheapest
    grown = costs.charge(lookup(10**6, 128)).cycles.value - costs.charge(lookup(1, 128)).cycles.value
    assert grown == pytest.approx(additive(lookup(10**6, 128)) - additive(lookup(1, 128)), rel=0.15)


def test_kinds_that_were_not_measured_have_no_price() -> None:
    costs = learnt(additive)
    assert costs.charge(construct("meter", cells=16)).basis == "unknown"
    assert costs.charge(lookup(1000, kind="lpm")).basis == "unknown"
    assert costs.charge(construct("compute", operator="|", bits=32)).basis == "measured"
    assert costs.charge(lookup(10**8)).basis == "extrapolated"


def test_no_price_has_more_numbers_than_points() -> None:
    for price in (*learnt(additive).prices.values(), *learn_prices(rows(additive, ["mat/keys"]), "x").prices.values()):
        numbers = 1 + sum(len(c.knots) - 1 for c in (*price.curves, *price.factors))
        assert numbers <= price.points, price.key


def test_a_price_of_one_unknown_construct_is_not_that_of_another() -> None:
    digest, other = (construct("unknown", name=name) for name in ("digest", "extrct"))
    costs = learnt(additive)
    known = replace(costs, prices={**costs.prices, "unknown digest": Price("unknown digest", constant=2.0)})
    assert (known.charge(digest).cycles.value, known.charge(digest).basis) == (2.0, "measured")
    assert known.charge(other).basis == costs.charge(digest).basis == "unknown"


def test_repeated_lookups_of_one_key_are_left_out() -> None:
    what = lookup(1000)
    again = PriceRow("mat/same-table", "applications=8", ((what, 8.0),), 80.0, (), 50.0)
    costs = learn_prices([*rows(additive, ["parser/headers"]), again], "dpdk-c")
    assert "lookup exact" not in costs.prices
    assert any("mat/same-table" in remark for remark in costs.remarks)


def test_mispredicted_branches_move_by_a_factor_of_their_own() -> None:
    kinds = ("mispredicted branch lookup", "mispredicted branch start")
    costs = learnt(additive)
    costs = replace(costs, prices={**costs.prices, **{key: Price(key, 20.0, points=9) for key in kinds}})
    points = rows(lambda what: 2 * additive(what), ["mat/entries", "parser/headers", "action/writes"])
    wrong = mispredicted_branch("lookup")
    there = [replace(p, met=(*p.met, (wrong, 1.0)), cycles=p.cycles + 10.0, whole=True) for p in points * 3]
    moved = transferred(costs, there, costs.baseline)
    measured, like_it = (moved.prices[key].constant for key in kinds)
    assert measured == pytest.approx(10.0, rel=0.35)
    assert measured < like_it < 18
    header = construct("extract", bytes=20)
    assert moved.charge(header).cycles.value > costs.charge(header).cycles.value


def test_prices_move_to_a_machine_where_a_few_points_were_measured() -> None:
    costs = learnt(additive)
    points = rows(lambda what: 2 * additive(what), ["mat/entries", "parser/headers", "action/writes"])
    there = [replace(point, whole=True) for point in points * 3]
    moved = transferred(costs, there, costs.baseline + 10)
    assert moved.baseline == costs.baseline + 10
    for what in (lookup(1000, 128), lookup(10**6, 128)):
        assert moved.charge(what).cycles.value == pytest.approx(2 * costs.charge(what).cycles.value, rel=0.15)
    hashed = construct("hash", algorithm="crc32", bytes=60)  # not among the points: it moves as those like it
    assert 1.4 < moved.charge(hashed).cycles.value / costs.charge(hashed).cycles.value <= 2.0
    with pytest.raises(NoVerdictError, match="of which 5 are needed"):
        transferred(costs, there[:2], 10.0)


def test_the_growth_of_a_list_moves_apart_from_its_first_entry() -> None:
    """An entry of a list costs a third there, in the caches, too, and a lookup in a list of one entry as much."""
    price = Price(
        "lookup ternary",
        constant=30.0,
        curves=(Curve("compared_words", "linear", (1.0, 1000.0), (0.0, 2997.0)),),
        domains=(Domain("entries", (1.0, 1000.0)),),
        points=9,
    )
    costs = replace(learnt(additive), prices={"lookup ternary": price})
    there = [
        PriceRow("mat/ternary", str(n), ((lookup(n, 32, kind="ternary"), 1.0),), 29.0 + n, (), 20.0, whole=True)
        for n in (1, 4, 16, 64, 256)
    ]
    moved = transferred(costs, there * 2, 20.0)
    for entries in (1, 100, 500):
        cycles = moved.charge(lookup(entries, 32, kind="ternary")).cycles.value
        assert cycles == pytest.approx(29 + entries, rel=0.2)


def test_what_programs_cost_beyond_their_prices_moves_no_price() -> None:
    """Whole programs cost half more than the sum of their prices, here and there; so prices are the same."""
    costs = learnt(additive)
    like = rows(additive, ["mat/entries", "parser/headers", "action/writes"])
    here = [replace(r, whole=True, baseline=20.0, cycles=1.5 * (20.0 + r.cycles) - 20.0) for r in like]
    known = [KnownProgram(features(r.met, 20.0 + r.cycles), math.log(1.5)) for r in like]
    reference = replace(costs, experience=Experience(tuple(known * 3), length=4.0, amplitude=0.2, noise=0.03))
    for what in (lookup(1000, 128), lookup(10**6, 128)):
        alone = costs.charge(what).cycles.value
        assert transferred(reference, here, 20.0).charge(what).cycles.value == pytest.approx(alone, rel=0.15)
        assert transferred(costs, here, 20.0).charge(what).cycles.value > 1.3 * alone


def test_programs_of_this_machine_say_more_of_others_than_those_of_another_machine() -> None:
    """Programs cost half more than their prices on the other machine, and a tenth more here."""
    like = rows(additive, ["mat/entries", "parser/headers", "action/writes"])
    elsewhere = [KnownProgram(features(r.met, 20.0 + r.cycles), math.log(1.5)) for r in like]
    here = [KnownProgram(p.features, math.log(1.1)) for p in elsewhere[::2]]
    elsewhere = [replace(p, judges=False) for p in elsewhere]
    far = [replace(p, features={**p.features, "elsewhere": 1.0}) for p in elsewhere]
    asked = elsewhere[1].features
    found = [Experience.learn([*known, *here]) for known in (elsewhere, far)]
    alike, apart = (math.exp(each.error(asked)[0]) for each in found if each is not None)
    assert 1.0 < apart < alike < 1.5
    assert apart == pytest.approx(1.1, rel=0.1)


def test_turns_cost_as_much_as_a_misprediction_until_programs_tell() -> None:
    """A reference that knows no turns is taken to charge a misprediction behind a lookup for each at first."""
    wrong = Price("mispredicted branch lookup", 50.0)
    costs = replace(learnt(additive), prices={**learnt(additive).prices, wrong.key: wrong})
    like = rows(additive, ["mat/entries", "parser/headers", "action/writes"])
    turns = [
        replace(r, met=(*r.met, (mispredicted_branch("turn"), 3.0)), cycles=r.cycles + 120.0, baseline=20.0, whole=True)
        for r in like[::2]
    ]
    known = transferred(costs, [*like, *turns], 20.0)
    assert known.charge(mispredicted_branch("turn")).cycles.value == pytest.approx(40, rel=0.15)
    assert transferred(costs, like, 20.0).charge(mispredicted_branch("turn")).cycles.value == 0


def test_programs_that_wait_for_memory_do_not_say_how_wide_intervals_are() -> None:
    costs, like = learnt(additive), rows(additive, ["mat/entries", "parser/headers", "action/writes"])
    known = [KnownProgram(features(r.met, 20.0 + r.cycles), 0.01 * (n % 3)) for n, r in enumerate(like)]
    reference = replace(costs, experience=Experience(tuple(known), length=4.0, amplitude=0.2, noise=0.03))
    here = [replace(r, whole=True, baseline=20.0) for r in like * 4]
    waiting = [n for n, r in enumerate(here) if reference.waited(r.met)]
    assert 0 < len(waiting) < len(here) - MANY

    def widest(rows_here: list[PriceRow]) -> float:
        experience = transferred(reference, rows_here, 20.0).experience
        assert experience is not None
        return max(experience.widths)

    assert widest(here) < 1, "they cost what their prices say"
    assert widest(here[: len(like)]) == 1, "so few may be more alike than others are"
    off = [replace(r, cycles=r.cycles * (0.6 if n % 2 else 1.5)) if n in waiting else r for n, r in enumerate(here)]
    assert widest(off) < 1
    near = [n for n in range(len(here)) if n not in waiting]
    off = [replace(r, cycles=r.cycles * (0.6 if n % 2 else 1.5)) if n in near else r for n, r in enumerate(here)]
    assert widest(off) > 1


def test_intervals_are_as_wide_as_programs_that_people_wrote_need() -> None:
    """What is composed for measuring is a third off; a dozen programs that people wrote cost what their prices say."""
    costs, like = learnt(additive), rows(additive, ["parser/headers", "action/writes"])
    known = [KnownProgram(features(r.met, 20.0 + r.cycles), 0.01 * (n % 3)) for n, r in enumerate(like)]
    reference = replace(costs, experience=Experience(tuple(known), length=4.0, amplitude=0.2, noise=0.03))
    composed = [
        replace(r, whole=True, baseline=20.0, cycles=r.cycles * (1.33 if n % 2 else 0.75))
        for n, r in enumerate(like * 2)
    ]

    apart = rows(additive, ["extern/hash", "mat/keys"])

    def widest(written: int) -> float:
        others = [replace(r, whole=True, baseline=20.0, source=f"program {n}") for n, r in enumerate(apart[:written])]
        experience = transferred(reference, [*composed, *others], 20.0).experience
        assert experience is not None
        return max(experience.widths)

    assert widest(JUDGES) < 0.7 * widest(JUDGES - 1)


def test_on_the_same_processor_prices_stay_and_programs_are_added_while_its_intervals_hold() -> None:
    costs, like = learnt(additive), rows(additive, ["parser/headers", "action/writes"])
    known = [KnownProgram(features(r.met, 20.0 + r.cycles), 0.01 * (n % 3)) for n, r in enumerate(like)]
    reference = replace(costs, experience=Experience(tuple(known), length=4.0, amplitude=0.2, noise=0.03))
    here = [replace(r, whole=True, baseline=20.0) for r in like]
    assert holds(reference, here)
    assert not holds(reference, [replace(r, cycles=2 * r.cycles + 20.0) for r in here])
    assert not holds(reference, here[: JUDGES - 1])
    more = joined(reference, here, 21.0)
    assert (more.prices, more.baseline) == (reference.prices, 21.0)
    assert more.experience is not None
    assert len(more.experience.programs) == len(known) + len(here)
    assert more.experience.widths == reference.experience.widths


def test_a_program_is_judged_without_itself_and_others_of_its_source() -> None:
    rng = random.Random(2)
    alone = [KnownProgram({"extract": n % 5, "select": n / 7}, rng.gauss(0, 0.1)) for n in range(24)]
    known = [replace(p, source=str(n // 3) if n < 12 else "") for n, p in enumerate(alone)]
    whole = Experience(tuple(known), length=2.0, amplitude=0.1, noise=0.05)
    mean, spread = whole.left_out()
    for place, program in enumerate(known):
        kept = tuple(p for p in known if p is not program and (not p.source or p.source != program.source))
        error, half = replace(whole, programs=kept).error(program.features)
        assert (mean[place], NORMAL_90 * spread[place]) == (pytest.approx(error), pytest.approx(half))
    assert not np.allclose(mean, replace(whole, programs=tuple(alone)).left_out()[0])


def test_what_many_in_a_row_cost_is_another_thing_here() -> None:
    """Where the reference was made, every select beyond two in a row costs 20 cycles more; here, it does not."""

    def truth(row: PriceRow, more: float) -> float:
        return row.cycles + more * max(0.0, sum(times for what, times in row.met if what.kind == "select") - 2)

    like = rows(additive)
    price = Price("select", 1.0, many=2.0, more=20.0)
    reference = replace(learnt(additive), prices={**learnt(additive).prices, "select": price})
    for more in (0.0, 20.0):
        here = [replace(r, whole=True, baseline=20.0, cycles=truth(r, more)) for r in like]
        moved = transferred(reference, here, 20.0).prices["select"]
        assert moved.more == pytest.approx(more, abs=2.0)
        assert moved.constant == pytest.approx(1.0, abs=0.3)


def test_many_programs_of_this_machine_do_not_replace_those_of_another() -> None:
    costs = learnt(additive)
    like = rows(additive, ["mat/entries", "parser/headers", "action/writes"])
    known = [KnownProgram(features(r.met, 20.0 + r.cycles), 0.0) for r in like]
    reference = replace(costs, experience=Experience(tuple(known), length=4.0, amplitude=0.2, noise=0.03))
    here = [replace(r, whole=True, baseline=20.0) for r in like * 4]
    assert len(here) > 60
    moved = transferred(reference, here, 20.0).experience
    assert moved is not None
    far = ["elsewhere" in p.features for p in moved.programs]
    assert (sum(far), all(far[: len(known)])) == (len(known), True)
    assert len(far) - len(known) > 60


def test_more_entries_never_cost_less() -> None:
    """Programs with larger tables cost less than their prices, as much as those with smaller ones cost more."""
    costs, like = learnt(additive), rows(additive, ["mat/entries"])
    ratios = (0.35, 0.3, 0.2, 0.0, -0.2, -0.3, -0.35)
    known = [KnownProgram(features(r.met, 50.0 + r.cycles), x) for r, x in zip(like, ratios, strict=True)]
    experience = Experience(tuple(known), length=1.0, amplitude=0.2, noise=0.03)
    doubtful = replace(costs, experience=experience)
    sums = [50.0 + sum(charge.cycles.value for charge in costs.priced(r.met)) for r in like]
    one_by_one = [x * math.exp(experience.error(features(r.met, x))[0]) for r, x in zip(like, sums, strict=True)]
    assert one_by_one != sorted(one_by_one)
    found = [doubtful.summed(tuple(costs.priced(r.met)), r.met, 50.0).cycles for r in like]
    for ends in ("low", "value", "high"):
        cycles = [getattr(each, ends) for each in found]
        assert all(more > 0.995 * less for less, more in pairwise(cycles)), ends


def resized(path: PacketPath, entries: float) -> PacketPath:
    """The same path, with that number of entries in its tables."""
    return tuple(
        (replace(what, sizes=tuple({**dict(what.sizes), "entries": entries}.items())), times)
        if what.kind == "lookup"
        else (what, times)
        for what, times in path
    )


def test_programs_that_disagree_a_little_make_others_cost_neither_more_nor_less() -> None:
    """Known programs cost more and less than their prices, by turns; what is right on average is asked for."""
    costs, (first, *_) = learnt(additive), rows(additive, ["mat/entries"])
    paths = [resized(first.met, 10 * 1.2**n) for n in range(60)]
    sums = [50.0 + sum(charge.cycles.value for charge in costs.priced(path)) for path in paths]
    assert sums[-1] > 1.2 * sums[0]
    ratios = [0.15 * math.sin(n / 3) for n in range(len(paths))]
    known = [KnownProgram(features(path, x), ratio) for path, x, ratio in zip(paths, sums, ratios, strict=True)]
    doubtful = replace(costs, experience=Experience(tuple(known), length=1.0, amplitude=0.3, noise=0.02))
    found = [doubtful.summed(tuple(costs.priced(path)), path, 50.0).cycles.value for path in paths]
    errors = [math.log(each / x) for each, x in zip(found, sums, strict=True)]
    assert abs(sum(errors) / len(errors)) < 0.02
    assert max(map(abs, errors)) > 0.03


def test_tables_beyond_the_caches_have_intervals_as_wide_as_starts_scatter() -> None:
    """Every third start waits twice as long for memory as others: what others do in a shared cache."""
    costs = replace(learnt(additive), scatter=(0.0, 0.0))
    waits = [r for r in rows(additive, ["mat/entries"]) if costs.waited(r.met) > 0.3 * (20.0 + r.cycles)]
    assert waits
    calm = [replace(r, whole=True, baseline=20.0, starts=()) for r in rows(additive, [*SWEEPS]) for _ in range(3)]
    known = Experience.learn([KnownProgram(features(r.met, 20.0 + r.cycles), 0.0) for r in calm])
    reference = replace(costs, experience=known)
    shaken = [
        replace(r, whole=True, baseline=20.0, starts=(r.cycles, r.cycles, r.cycles + costs.waited(r.met)))
        for r in waits * 5
    ]
    moved = [transferred(reference, here, 20.0) for here in (calm, [*calm, *shaken], [*calm, *shaken[:2]])]
    assert moved[0].scatter == moved[2].scatter == (0.0, 0.0), "two points are too few"
    again = PrimitiveCosts.from_record(moved[1].record())
    assert again.scatter == moved[1].scatter == pytest.approx((0.0, 1.0), abs=0.1)
    small, large = (
        [each.breakdown([(lookup(entries, 128), 1.0)]).cycles for each in moved[:2]] for entries in (100, 10**6)
    )
    assert small[1].high == pytest.approx(small[0].high, rel=0.01)
    waited = costs.waited([(lookup(10**6, 128), 1.0)])
    wide, narrow = (each.high - each.value for each in (large[1], large[0]))
    assert wide == pytest.approx(waited, rel=0.2)
    assert wide > 5 * narrow


def test_what_the_reference_has_no_price_of_gets_one_here() -> None:
    """Calls cost 12 cycles here, and the reference was made when nobody counted them."""
    costs = learnt(additive)
    like = rows(additive, ["mat/entries", "parser/headers", "action/writes"])
    call = construct("call")
    assert costs.charge(call).cycles.value == 0
    here = [
        replace(r, met=(*r.met, (call, float(n % 4))), cycles=r.cycles + 12 * (n % 4), whole=True)
        for n, r in enumerate(like * 3)
    ]
    assert transferred(costs, here, costs.baseline).charge(call).cycles.value == pytest.approx(12, rel=0.15)
    few = [r for r in here if not r.met[-1][1]] + [r for r in here if r.met[-1][1]][:5]
    assert transferred(costs, few, costs.baseline).charge(call).cycles.value == 0, "five points are too few"


def test_intervals_are_as_wide_as_programs_of_this_machine_need() -> None:
    """Elsewhere programs cost what their prices say, to a percent, and here to a fifth."""
    rng = random.Random(1)
    known = [
        KnownProgram({"extract": math.log1p(n % 7), "write header": n / 60}, rng.gauss(0, 0.01)) for n in range(60)
    ]
    local = [replace(p, ratio=rng.gauss(0, 0.1)) for p in known[:40]]
    others = [replace(p, judges=False) for p in known]
    whole, here = (Experience.learn([*known, *local]), Experience.learn([*others, *local]))
    assert whole is not None
    assert here is not None
    assert here.widths[0] > 1.3 * whole.widths[0]
    assert Experience.learn([*others, *local[:5]]) == Experience.learn([*known, *local[:5]]), "five say nothing"


def test_wider_keys_than_were_measured_cost_more_where_the_last_two_widths_did_not() -> None:
    curve = Curve("key_bits", "linear", (32.0, 96.0, 128.0), (0.0, 96.0, 96.0))
    assert (curve.at(64.0), curve.at(112.0), curve.at(128.0)) == (48.0, 96.0, 96.0)
    assert curve.at(224.0) == 192.0
    assert Curve("bytes", "linear", curve.knots, curve.values).at(224.0) == 96.0


def test_longer_headers_than_were_measured_cost_as_much() -> None:
    """Of 1 to 16 bytes a header costs a cycle more for every byte; nothing says that 470 cost 454 more."""
    curve = Curve("bytes", "linear", (1.0, 16.0), (0.0, 15.0))
    price = Price("add header", constant=2.0, curves=(curve,), domains=(Domain("bytes", (1.0, 16.0)),), points=9)
    costs = replace(learnt(additive), prices={"add header": price})
    longest, longer = (costs.charge(construct("add header", bytes=n)) for n in (16, 470))
    assert (longest.basis, longer.basis) == ("measured", "extrapolated")
    assert longer.cycles.value == longest.cycles.value == 17


def test_nothing_to_learn_from() -> None:
    with pytest.raises(NoVerdictError, match="no measured point of xdp"):
        learn_prices([PriceRow("baseline/l2fwd", "", (), 0.1, (), 20.0)], "xdp")


def test_records_hold_all_that_was_learnt() -> None:
    costs = learnt(product)
    assert PrimitiveCosts.from_record(costs.record()) == costs


def test_many_programs_tell_that_lookups_with_few_keys_cost_less_here() -> None:
    """A lookup of one key costs 20 cycles here and any other 60; the reference prices all that are cached alike."""
    costs = learnt(additive)
    sizes = (1, 2, 20, 50, 100, 500)
    here = [
        PriceRow(
            "programs", f"{n}, {entries}", ((lookup(entries), 1.0),), 20.0 if entries < 3 else 60.0, (), 50.0, True
        )
        for n in range(15)
        for entries in sizes
    ]
    moved, few = transferred(costs, here, 50.0), transferred(costs, here[:18], 50.0)
    found = [moved.charge(lookup(entries)).cycles.value for entries in sizes]
    assert found == pytest.approx([20, 20, 60, 60, 60, 60], rel=0.2)
    assert found == sorted(found)
    assert few.charge(lookup(1)).cycles.value > 30, "18 programs tell no shape"
    again = transferred(moved, here, 50.0)
    assert len(again.prices["lookup exact"].factors) == len(moved.prices["lookup exact"].factors)


def test_a_table_without_action_data_is_no_smaller_one() -> None:
    """Its entries were measured, with some; that none are left to read is no matter of how large a table is."""
    parts = {"match_kind": "exact", "entries": 1000, "key_bits": 128, "hit": 1.0}
    (without, some) = (
        learnt(additive).priced([(construct("lookup", action_data_bytes=n, **parts), 1.0)])[0] for n in (0, 4)
    )
    assert without.cycles.value == some.cycles.value
    assert without.cycles.low == pytest.approx(some.cycles.low, rel=0.05)
    assert without.cycles.low > 0.5 * some.cycles.value
