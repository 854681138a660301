"""What components cost alone and beside one another, where measured ones say it."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product

import pytest

from p4perf.errors import DataError
from p4perf.evaluation.prediction.learning.composition import composing
from p4perf.evaluation.prediction.learning.constructs import workload_increment
from p4perf.evaluation.prediction.learning.design import PriceRow
from p4perf.evaluation.prediction.library import ProgramParts
from p4perf.models.component import Reader
from p4perf.models.estimate import Estimate
from p4perf.models.program.composition import LoneCost, composed_features, side_by_side
from p4perf.models.program.experience import MEMORY, TAIL, Experience, KnownProgram
from p4perf.models.program.graph import Construct, construct
from p4perf.models.program.prices import Curve, Price
from p4perf.programs.component import TrafficPlan, build_workload

BASELINE = 10.0
FRAME_BYTES = 1024

Parts = Sequence[tuple[str, Mapping[str, int]]]

SINGLES = [
    *(("parser_headers", {"headers": n}) for n in range(1, 9)),
    *(("header_field_writes", {"writes": n}) for n in range(1, 9)),
    *(("match_action_table", {"entries": n}) for n in (1, 10, 100, 1000, 10_000, 100_000)),
    *(("hash", {"size_bytes": n}) for n in (32, 64, 96, 128)),
]
TWOS = [[one, other] for one, other in product(SINGLES[::3], SINGLES[1::3])]
THREES = [[one, other, SINGLES[20]] for one, other in TWOS[::4]]


def guessed() -> ProgramParts:
    """Prices that are off."""
    prices = (
        Price("lookup exact", 50.0, curves=(Curve("entries", "log", (1.0, 1000.0, 100_000.0), (0.0, 0.0, 50.0)),)),
        Price("write header", 3.0),
        Price("extract", 2.0),
        Price("emit", 1.0),
        Price("hash crc32", 20.0, curves=(Curve("bytes", "linear", (32.0, 128.0), (0.0, 10.0)),)),
    )
    return ProgramParts("dpdk-c", 20.0, {price.key: price for price in prices})


def truth(parts: Parts) -> float:
    """A component costs what it costs alone, but for 2 cycles that only the first one pays [cycles over baseline]."""
    cycles = {
        "parser_headers": lambda headers: 2 + 5.0 * headers,
        "header_field_writes": lambda writes: 2 + 2.0 * writes,
        "match_action_table": lambda entries: 70.0 + 0.001 * entries,
        "hash": lambda size_bytes: 5 + 0.3 * size_bytes,
    }
    return sum(cycles[name](**sizes) for name, sizes in parts) - 2.0 * (len(parts) - 1)


def path(parts: Parts) -> tuple[tuple[Construct, float], ...]:
    workload = build_workload([(name, dict(sizes)) for name, sizes in parts], frame_size_bytes=FRAME_BYTES)
    return workload_increment("dpdk-c", workload, TrafficPlan(FRAME_BYTES))


def row(parts: Parts) -> PriceRow:
    alone = tuple((name, path([(name, sizes)])) for name, sizes in parts)
    return PriceRow("composition/some", "", path(parts), truth(parts), baseline=BASELINE, components=alone)


@pytest.fixture(scope="module")
def learnt() -> ProgramParts:
    return composing(guessed(), [row(p) for p in ([[one] for one in SINGLES] + TWOS + THREES)], BASELINE)


def price(model: ProgramParts, parts: Parts) -> float:
    met = [(construct("component", "", name=name, **sizes), 1.0) for name, sizes in parts]
    return model.composed(met, BASELINE).cycles.value


def test_measured_components_cost_what_they_cost_alone(learnt):
    for one in SINGLES:
        assert learnt.alone(path([one])).value == pytest.approx(truth([one]), rel=0.1, abs=2.0), one
    before = [abs(guessed().alone(path([one])).value - truth([one])) for one in SINGLES]
    after = [abs(learnt.alone(path([one])).value - truth([one])) for one in SINGLES]
    assert sum(after) < sum(before) / 5


def test_programs_of_components_cost_less_than_these_alone_if_known_ones_do(learnt):
    unseen = [[SINGLES[n], SINGLES[n + 5], SINGLES[n + 9]] for n in range(12)]
    errors = [price(learnt, parts) / (BASELINE + truth(parts)) - 1 for parts in unseen]
    off = [price(guessed(), parts) / (BASELINE + truth(parts)) - 1 for parts in unseen]
    assert sum(map(abs, errors)) < sum(map(abs, off)) / 2
    assert max(map(abs, errors)) < 0.12


def test_more_entries_never_cost_less(learnt):
    sizes = (1, 5, 10, 100, 500, 1000, 3000, 10_000, 30_000, 100_000, 300_000)
    costs = [price(learnt, [SINGLES[2], ("match_action_table", {"entries": n})]) for n in sizes]
    assert all(after > 0.995 * before for before, after in pairwise(costs)), costs


def asked(model: ProgramParts, parts: Parts) -> Estimate:
    return model.composed(
        [(construct("component", "", name=name, **sizes), 1.0) for name, sizes in parts], BASELINE
    ).cycles


def test_a_program_of_one_component_costs_what_this_costs_alone(learnt):
    for one in (*SINGLES[::4], ("counter", {"updates": 4})):
        alone = learnt.alone(path([one]))
        assert asked(learnt, [one]) == alone.map(lambda x: BASELINE + x)


def test_intervals_have_those_of_components_that_no_known_program_has(learnt):
    new = ("arithmetic", {"operations": 40})
    half = (learnt.alone(path([new])).high - learnt.alone(path([new])).low) / 2
    for parts in ([SINGLES[2], SINGLES[20]], [SINGLES[9], SINGLES[21]]):
        known, more = asked(learnt, parts), asked(learnt, [*parts, new])
        assert more.high - more.low > known.high - known.low
        assert more.high - more.low > 1.9 * half


def test_components_of_another_machine_say_what_those_of_this_one_do_not(learnt):
    assert learnt.composition is not None
    moved = composing(guessed(), [], BASELINE, learnt.composition)
    few = composing(guessed(), [row([one]) for one in SINGLES[::3]], BASELINE, learnt.composition)
    unseen = SINGLES[4]
    for model in (moved, few):
        assert asked(model, [unseen]).value == pytest.approx(BASELINE + truth([unseen]), rel=0.15)
    width = [asked(model, [unseen]).high - asked(model, [unseen]).low for model in (learnt, few, moved)]
    assert width == sorted(width)
    assert width[0] < width[2]


def test_the_record_says_all(learnt):
    record = json.loads(json.dumps(learnt.record()))
    assert ProgramParts.from_record(record).composition is not None
    assert ProgramParts.from_record(record).record() == learnt.record()
    record["composition"]["alone"]["length"] = 0
    with pytest.raises(DataError, match="above zero"):
        ProgramParts.from_record(record)
    assert ProgramParts.from_record({k: v for k, v in record.items() if k != "composition"}).composition is None
    wrong = json.loads(json.dumps(learnt.record()))
    wrong["composition"]["window"] = -1.0
    with pytest.raises(DataError, match="must not be below 0"):
        ProgramParts.from_record(wrong)


@pytest.mark.parametrize("kept", [[[one] for one in SINGLES], TWOS, [[one] for one in SINGLES[:9]] + TWOS])
def test_too_few_components_or_programs_say_nothing_nor_do_those_of_another_machine(kept, learnt):
    assert composing(learnt, [row(parts) for parts in kept], BASELINE) == guessed()


def test_noises_that_are_tried_out():
    programs = [KnownProgram({"sum": n / 10}, 0.1 * (n % 2)) for n in range(30)]
    found = Experience.learn(programs, noises=(0.07,))
    assert found is not None
    assert found.noise == 0.07
    assert replace(found, noise=0.05) != found


def test_what_tables_cost_beside_others_is_learnt_however_far_from_alone(learnt):
    def beside(parts: Parts) -> PriceRow:
        """What a large table costs more than one in the caches is thrice as much beside others."""
        more = 2 * sum(0.001 * one[1].get("entries", 0) for one in parts)
        return replace(row(parts), cycles=truth(parts) + more)

    large = [[*parts, SINGLES[20 + n % 2]] for n, parts in enumerate(TWOS[::2])]
    known = [row(p) for p in ([[one] for one in SINGLES] + TWOS)] + [beside(parts) for parts in large]
    model = composing(guessed(), known, BASELINE)
    unseen = [[*parts, SINGLES[20 + n % 2]] for n, parts in enumerate(TWOS[1::4])]
    errors = [price(model, parts) / (BASELINE + beside(parts).cycles) - 1 for parts in unseen]
    assert max(map(abs, errors)) < 0.15, errors
    assert abs(sum(errors)) / len(errors) < 0.04, "neither too low nor too high"


def test_a_crc_over_no_whole_vectors_is_unlike_others():
    sizes = [8, 12, 24, 28, 32, 48, 52, 60, 64, 80, 96, 100, 112, 116, 128, 132, 144, 152, 160, 172, 176, 180, 192, 200]
    hashes = [("hash", {"size_bytes": n}) for n in sizes]
    rows = [replace(row([one]), cycles=10.0 + (40.0 if one[1]["size_bytes"] % 16 else 0.0)) for one in hashes]
    others = [row([one]) for one in SINGLES if one[0] != "hash"]
    model = composing(guessed(), [*rows, *others, *map(row, TWOS)], BASELINE)
    assert asked(model, [("hash", {"size_bytes": 208})]).value == pytest.approx(BASELINE + 10.0, rel=0.25)
    assert asked(model, [("hash", {"size_bytes": 204})]).value == pytest.approx(BASELINE + 50.0, rel=0.25)


def test_a_process_that_knows_no_tail_is_not_told_of_one():
    known = Experience.learn([KnownProgram({"sum": n / 10}, 0.1 * (n % 2)) for n in range(30)])
    assert known is not None
    assert known.error({"sum": 1.0, TAIL: 0.7}) == known.error({"sum": 1.0})
    assert known.error({"sum": 1.0, "other": 0.7}) != known.error({"sum": 1.0})


def scattering() -> Experience:
    """Programs with little memory start alike, and those with much do not."""
    draw = random.Random(5)
    known = []
    for n in range(80):
        memory, scatter = (0.2, 0.005) if n % 2 else (4.0, 0.15)
        several = {"sum": 5 + n / 40, MEMORY: memory + 0.01 * n}
        known.append(KnownProgram(several, (0.5 if memory > 1 else 0.0) + draw.gauss(0, scatter), scatter))
    found = Experience.learn(known, noises=(0.005, 0.01), beyonds=(0.3,), farthest=math.inf)
    assert found is not None
    return found


def test_intervals_are_as_wide_as_starts_scatter_with_so_large_tables():
    found = scattering()
    (little, much), (narrow, wide) = found.errors([{"sum": 6.0, MEMORY: 0.5}, {"sum": 6.0, MEMORY: 4.5}])
    assert little == pytest.approx(0.0, abs=0.02)
    assert much == pytest.approx(0.5, abs=0.1)
    assert narrow < 0.05 < 0.2 < wide
    assert found.scatters


def test_the_record_of_programs_that_scatter():
    found = scattering()
    record = json.loads(json.dumps(found.record()))
    read = Experience.from_reader(Reader(record, "model.json"))
    assert read.record() == record
    assert read.errors([{"sum": 6.0, MEMORY: 4.5}])[1] == pytest.approx(found.errors([{"sum": 6.0, MEMORY: 4.5}])[1])
    old = {key: value for key, value in record.items() if key != "beyond"}
    assert Experience.from_reader(Reader(old, "model.json")).beyond == 0
    record["programs"][3]["scatter"] = -0.1
    with pytest.raises(DataError, match="scatter of programs"):
        Experience.from_reader(Reader(record, "model.json"))


def order(target: str, *parts: tuple[str, dict[str, int]]) -> float:
    """The feature of the order of tables; zero: it says nothing."""
    found = composed_features([name for name, _ in parts], path(parts), 1.0, 1000.0, target)
    return found.get("order", 0.0)


WINDOW = 200.0

LONE = LoneCost(40.0, 100.0, 1)
"""Half a window of work with the baseline: a lone miss is waited for in 200 cycles."""

WORK = LoneCost(150.0)


@pytest.mark.parametrize(
    ("parts", "waits"),
    [
        ([LONE], 100.0),
        ([LONE, LoneCost(50.0)], 150.0),
        ([LONE, LoneCost(100.0)], 200.0),
        ([LONE, LoneCost(500.0)], 200.0),
        ([LoneCost(500.0), LONE, LoneCost(500.0)], 200.0),
        ([LONE, LONE], 140.0),
        ([LONE, LONE, WORK, WORK], 240.0),
        ([LONE, WORK, WORK, LONE, WORK], 400.0),
        ([LoneCost(140.0, 200.0, 2)], 200.0),
    ],
)
def test_misses_within_a_window_of_work_overlap(parts, waits):
    baseline, work = 60.0, sum(part.cycles for part in parts)
    assert side_by_side(baseline, parts, 0.0, WINDOW) == pytest.approx(baseline + work + waits)
    added = sum(part.waits for part in parts)
    assert side_by_side(baseline, parts, 0.0, 0.0) == pytest.approx(baseline + work + added)


def test_without_large_tables_there_is_nothing_to_overlap():
    for window in (0.0, WINDOW):
        assert side_by_side(60.0, [WORK, LoneCost(10.0)], 15.0, window) == pytest.approx(205.0)


def test_what_is_saved_is_no_work_between_misses():
    assert side_by_side(60.0, [LONE, LoneCost(100.0)], 100.0, WINDOW) == pytest.approx(100.0 + 100.0)


@pytest.mark.parametrize("window", [0.0, 110.0, 250.0])
def test_the_window_is_learnt_from_programs_with_large_tables(window):
    large = ("match_action_table", {"entries": 100_000})

    def measured(parts: Parts) -> PriceRow:
        near = [
            (name, {**sizes, "entries": min(sizes["entries"], 1000)} if "entries" in sizes else sizes)
            for name, sizes in parts
        ]
        each = [
            LoneCost(truth([one]) - waits, waits, int(waits > 0))
            for one, waits in ((one, truth([one]) - truth([other])) for one, other in zip(parts, near, strict=True))
        ]
        saved = sum(truth([one]) for one in parts) - truth(parts)
        return replace(row(parts), cycles=side_by_side(BASELINE, each, saved, window) - BASELINE)

    programs = [[large, *parts] for parts in TWOS[::2]] + [[*parts, large, SINGLES[2], large] for parts in TWOS[1::3]]
    known = [row([one]) for one in SINGLES] + [measured(parts) for parts in programs]
    model = composing(guessed(), known, BASELINE)
    assert model.composition is not None
    assert model.composition.window == pytest.approx(window, abs=60.0)
    record = json.loads(json.dumps(model.record()))
    assert ProgramParts.from_record(record).record() == model.record()
    unseen = [measured([*parts, large]) for parts in TWOS[::5]]
    errors = [
        price(model, [*parts, large]) / (BASELINE + r.cycles) - 1 for parts, r in zip(TWOS[::5], unseen, strict=True)
    ]
    assert sum(map(abs, errors)) / len(errors) < 0.1, errors


def test_a_large_table_is_eased_by_others_on_dpdk_swx():
    large, many, few = (("match_action_table", {"entries": n}) for n in (100_000, 33, 32))
    eased = [
        (many, large),
        (large, few),
        (few, many, large),
        (large, many, few),
        (many, large, many),
        (few, large, few),
    ]
    others = [(few, large), (large, many), (few, few, large), (large, few, many), (few, large, many)]
    assert min(order("dpdk-swx", *parts) for parts in eased) > 1
    assert max(order("dpdk-swx", *parts) for parts in others) < -1
    assert order("dpdk-swx:interpreter", many, large) == order("dpdk-swx", many, large)
