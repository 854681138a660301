"""Verdicts of claims turn where what they are computed from changes: by a constant of the code, or by an argument."""

import re
from dataclasses import replace
from fractions import Fraction
from functools import partial

import pandas as pd
import pytest
from support.runs import make_run

from p4perf.errors import NoVerdictError
from p4perf.evaluation.fitting.derivation import FitOptions
from p4perf.evaluation.fitting.working_set import CacheMark
from p4perf.evaluation.papers import CHECKS, chosen_claims, judge, shapes
from p4perf.evaluation.papers.baldi2018 import checks as baldi2018
from p4perf.evaluation.papers.baldi2018 import load_hardware
from p4perf.evaluation.papers.gebert2016 import checks as gebert2016
from p4perf.evaluation.papers.scholz2021 import checks as scholz2021
from p4perf.evaluation.papers.shapes import MeasuredRun
from p4perf.evaluation.papers.takeya2024 import checks as takeya2024
from p4perf.evaluation.papers.takeya2024.cesim import CacheHierarchy
from p4perf.evaluation.papers.takeya2024.eivu import Study
from p4perf.models.eo import HardwareValue, mapping, parse_expression
from p4perf.results import RunDirectory


def _forget():
    for cached in (gebert2016._solved, takeya2024._findings, takeya2024._factors):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def _nothing_is_remembered():
    yield
    _forget()


def found(key, **arguments):
    """The finding of a claim, if some arguments of its check were others."""
    ((paper, claim),) = chosen_claims([key])
    return judge(paper.key, claim, CHECKS[claim.check.name](**{**claim.check.arguments, **arguments}))


PLACES = {
    "baldi2018": {"figure": {*range(3, 9), *range(10, 14)}, "table": {"1"}, "equation": set()},
    "gebert2016": {"figure": set(range(6, 11)), "table": set(), "equation": {1, *range(3, 15)}},
    "ren2025": {"figure": {1, 2, 3}, "table": {"I", "II"}, "equation": {3, 4}},
    "scholz2021": {"figure": {2, 3}, "table": set(), "equation": {1, 2, 3, 4, 5}},
}
"""What the papers have, but for diagrams without numbers and for definitions (docs/reproducing.md)."""


@pytest.mark.parametrize("key", PLACES)
def test_every_figure_table_and_equation_has_a_claim(key):
    sources = [claim.source for _, claim in chosen_claims([key])]
    assert {s.table for s in sources if s.table} == PLACES[key]["table"]
    for kind in ("figure", "equation"):
        named = (getattr(source, kind) for source in sources)
        assert {int(re.match(r"\d+", place)[0]) for place in named if place} == PLACES[key][kind]


TURNED_BY_ARGUMENTS = (
    ("baldi2018:parse-from-l2", {"level": "L1"}),
    ("baldi2018:parse-from-l2", {"field_bytes": 9}),
    ("baldi2018:parse-from-memory", {"in_cache": True}),
    ("baldi2018:increase-three-registers", {"operation": "increase(25)"}),
    ("baldi2018:ht-lookup-cached", {"operation": "ht_lookup(1, 12, 2M, 0)"}),
    ("baldi2018:lpm-is-array-accesses", {"operation": "lpm_lookup(3, 12)"}),
    ("baldi2018:figure3-odd-lengths", {"data_bytes": 22}),
    ("baldi2018:figure3-computes-the-checksum", {"words": (0x4500, 0x0073)}),
    ("baldi2018:basic-gbps-at-3-ghz", {"clock_ghz": 3.6}),
    ("baldi2018:access-headers", {"headers": (14, 4, 20, 20)}),
    ("baldi2018:core-headers", {"function": "bng/access"}),
    ("baldi2018:basic-and-mpls-by-formulas", {"functions": ("switch/mpls", "switch/basic")}),
    ("baldi2018:basic-about-17-mpps", {"function": "bng/access"}),
    ("baldi2018:basic-and-the-links", {"frame_bytes": (64, 120)}),
    ("baldi2018:basic-and-the-links", {"function": "switch/learning"}),
    ("baldi2018:one-core-mpps", {"clock_ghz": 3.6864}),
    ("baldi2018:one-core-gbps", {"clock_ghz": 3.0}),
    ("baldi2018:memory-rates", {"accesses": (1, 2, 6, 2)}),
    ("baldi2018:second-numbers", {"cycles": (211, 220)}),
    ("baldi2018:gateway-memory-rate", {"mpps": (23.74, 23.74)}),
    ("baldi2018:learning-140-cycles", {"entries": 2_000_000}),
    ("baldi2018:remote-constant", {"remote": 0.5}),
    ("baldi2018:gateway-is-bound-by-memory", {"cores": 1}),
    ("baldi2018:gateway-mean-of-directions", {"cores": 5}),
    ("baldi2018:platform-specific-estimate", {"large_bytes": 128}),
    ("gebert2016:eq3-end-of-the-interval", {"point": "det 50 101"}),
    ("gebert2016:eq4-recurrence-time-as-printed", {"profile": "exact"}),
    ("gebert2016:eq5-waiting-of-constant-arrivals", {"packet": 3}),
    ("gebert2016:eq1-14-printed-system", {"profile": "exact"}),
    ("gebert2016:conclusion-quantiles", {"profile": "printed"}),
    ("gebert2016:eq5-waiting-of-random-arrivals", {"packet": 1}),
    ("gebert2016:eq8-11-lose-too-little", {"profile": "exact"}),
    ("gebert2016:corrected-loss-in-overload", {"overhead": 0}),
    ("gebert2016:eq12-as-printed", {"profile": "exact"}),
    ("gebert2016:interrupts-raise-the-load", {"per_second": 200_000}),
    ("gebert2016:fig8-single-packets", {"arrivals": ("det", "geo")}),
    ("gebert2016:eq13-four-segments", {"profile": "exact"}),
    ("gebert2016:eq11-loss-as-printed", {"profile": "exact"}),
    ("gebert2016:fig8-break-even-of-the-interval", {"points": ("geo 30 20", "geo 30 100", "geo 30 500")}),
    ("gebert2016:fig8-bursts-wait-less", {"second": "pois 30 100"}),
    ("gebert2016:fig9-loss-at-7-us", {"moderations": (500,)}),
    ("gebert2016:fig9-loss-at-7-us-with-500-us", {"moderations": (200,)}),
    ("gebert2016:fig9-nbin-loses-at-8-us", {"means": (7,)}),
    ("gebert2016:fig9b-packets-per-batch", {"moderations": (1000, 2000, 3000)}),
    ("gebert2016:fig9-larger-batches-lose-more", {"second": "nbin 7 500"}),
    ("gebert2016:fig10b-further-decrease", {"points": ("geo 8 100", "geo 12 100", "geo 200 100")}),
    ("gebert2016:fig10c-geo-and-nbin-overlap", {"first": "geo 30 100", "second": "nbin 30 100"}),
    ("gebert2016:fig10c-pois-is-closer-to-det", {"means": (30, 20)}),
    ("gebert2016:fig10c-four-segments", {"point": "det 50 100"}),
    ("ren2025:table-ii-as-printed", {"operators": ("CRC", "Checksum", "hash", "htons", "rte_log", "printf")}),
    ("ren2025:crc-costs-more-per-byte", {"operator": "hash"}),
    ("ren2025:other-increases-diminish", {"operators": ("hash", "CRC")}),
    ("ren2025:printf-and-rte-log", {"cheap": "CRC"}),
    ("ren2025:hash-takes-fewer-cycles-on-x86", {"operator": "CRC"}),
    ("ren2025:crc-is-a-latent-trap", {"operators": ("hash",)}),
    ("ren2025:htons-and-checksum-on-arm-start-high", {"threshold": "lower-median"}),
    ("ren2025:shifts-from-arm-to-x86", {"threshold": "30"}),
    ("ren2025:shifts-with-a-threshold-of-30", {"threshold": "34.1"}),
    ("ren2025:crc-and-hash-shift-most", {"threshold": "800"}),
    ("scholz2021:eq3-relative-margin-of-small-errors", {"kappa_rel": 10.0}),
    ("scholz2021:eq3-absolute-margin-of-small-errors", {"kappa": 1e-4}),
    ("scholz2021:aic-is-simpler-in-some-scenarios", {"points": (65,), "noises": (0.005,), "series": 1}),
    ("scholz2021:heuristic-on-figure-2", {"neighbours": 4}),
    ("scholz2021:heuristic-with-neighbours", {"neighbours": 0}),
    ("scholz2021:mape-is-sensitive-to-outliers", {"factors": (0.01, 0.02)}),
    ("scholz2021:fig2-l3-explains-the-step", {"breakpoint": 1.4e5}),
    ("scholz2021:fig3-packet-rate-decides", {"frame_bytes": 160}),
    ("scholz2021:fig3-drops-grow-with-the-loss", {"last_gbps": 6.1}),
    ("scholz2021:fig3-large-frames-and-the-line", {"passes": 1}),
    ("takeya2024:programmatic-items", {"category": "configurational"}),
    ("takeya2024:factor-a-16-bytes", {"items": ("024",)}),
    ("takeya2024:factor-b-smaller-entries", {"items": ("009",)}),
    ("takeya2024:factor-c-128-bytes", {"factor": "d"}),
    ("takeya2024:factor-d-2-kilobytes", {"items": ("012",)}),
    ("takeya2024:factor-f-1024-packets", {"items": ("067", "072", "079")}),
    ("takeya2024:15-gbps-are-15-to-20-mpps", {"gbps": 12}),
    ("takeya2024:buffer-header-is-influential", {"factor": "d"}),
    ("takeya2024:prefetching-shares-falsely", {"servers": ("S2", "S3")}),
    ("takeya2024:larger-headers-cost", {"items": ("018",)}),
    ("takeya2024:zero-copy-is-marginal", {"items": ("044", "105")}),
    ("takeya2024:model-has-the-throughput-of-the-best-item", {"server": "S4"}),
    ("takeya2024:model-has-the-hit-ratios-of-the-best-item", {"item": "001"}),
    ("takeya2024:parallelised-model-fits-better", {"alpha": 0.999999}),
    ("takeya2024:parallelised-model-fits", {"server": "S2"}),
)


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("key", "arguments"), TURNED_BY_ARGUMENTS, ids=lambda value: str(value)[:60])
def test_another_argument_turns_the_verdict(key, arguments):
    assert found(key).as_expected
    assert not found(key, **arguments).as_expected


def _other_machine(**changes):
    """The machine of Baldi 2018 with other rules; keys are operations."""
    load = baldi2018.load_hardware

    def other(name, profile=None):
        machine = load(name, profile)
        rules = {name: replace(machine.rules[name], **fields) for name, fields in changes.items()}
        return replace(machine, rules={**machine.rules, **rules})

    return other


def _slower_l2(name, profile=None):
    """The same with an L2 nearly as slow as its L3."""
    machine = load_hardware(name, profile)
    slower = (replace(c, latency=HardwareValue(Fraction(30))) if c.level == "L2" else c for c in machine.caches)
    return replace(machine, caches=tuple(slower))


def _other_study(change):
    """The study with its table changed."""
    study = takeya2024.eivu.read_study()
    return lambda: Study(change(study.table.copy()))


def _without(item):
    return _other_study(lambda table: table[table["item"] != item])


def _faster(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(mpps=2 * table["mpps"])


def _slower(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(mpps=0.6 * table["mpps"])


def _more_misses(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(l1_hit_pct=table["l1_hit_pct"] - 2)


TURNED_BY_CONSTANTS = (
    ("baldi2018:parse-from-memory", baldi2018, "LINES", "2 * ceil(b / 64)"),
    ("baldi2018:figure3-instructions", baldi2018, "FIGURE_3_LOOP", ("load", "add", "jump")),
    (
        "baldi2018:figure3-instructions",
        baldi2018,
        "load_hardware",
        _other_machine(checksum={"cycles": parse_expression("6 * ceil(b / 2) + 8")}),
    ),
    (
        "baldi2018:basic-about-17-mpps",
        baldi2018,
        "load_hardware",
        _other_machine(**{"I/O_mem": {"cycles": parse_expression("L3 + 5 * ceil((hdr + data) / 64)")}}),
    ),
    ("baldi2018:basic-and-the-links", mapping, "OVERHEAD_BYTES", 0),
    ("baldi2018:basic-gbps-at-3-ghz", mapping, "OVERHEAD_BYTES", 24),
    ("baldi2018:one-core-gbps", baldi2018, "OVERHEAD_BYTES", 24),
    ("baldi2018:platform-specific-estimate", baldi2018, "SOCKET_REMOTE_SHARE", 0.1),
    ("baldi2018:gateway-mean-of-directions", baldi2018, "GATEWAY", ("bng/core", "bng/core")),
    ("gebert2016:two-and-twenty-million-packets", gebert2016, "OVERHEAD_BYTES", 0),
    ("gebert2016:interrupts-raise-the-load", gebert2016, "OVERHEAD_US", 6),
    ("gebert2016:fig8-overhead-takes-most-of-the-time", gebert2016, "OVERHEAD_US", 8),
    ("scholz2021:aic-is-too-aggressive", scholz2021, "PairwiseRule", partial(scholz2021.PairwiseRule, 0.0, 0.0)),
    ("scholz2021:heuristic-on-figure-2", scholz2021, "SecondDerivative", partial(scholz2021.SecondDerivative, 1)),
    ("scholz2021:fig3-drops-grow-with-the-loss", scholz2021, "FIG_3_SATURATED_GBPS", 5.2),
    ("baldi2018:latencies-of-caches", baldi2018, "load_hardware", _slower_l2),
    ("takeya2024:items-on-every-server", takeya2024, "_study", _without("012")),
    ("takeya2024:configurational-items", takeya2024, "read_items", tuple),
    ("takeya2024:copies-do-15-gbps", takeya2024, "OVERHEAD_BYTES", 40),
    ("takeya2024:best-item-has-all-factors", takeya2024, "_study", _without("104")),
    ("takeya2024:possible-100-mpps", takeya2024, "_study", _other_study(_slower)),
    ("takeya2024:l2-and-l3-are-seldom-reached", takeya2024, "_study", _other_study(_more_misses)),
    ("takeya2024:hit-ratio-of-99-99-is-necessary", takeya2024, "_study", _other_study(_more_misses)),
    ("takeya2024:nothing-is-fast-with-the-header", takeya2024, "_study", _other_study(_faster)),
    ("takeya2024:model-has-the-clock-of-s1", takeya2024, "CacheHierarchy", partial(CacheHierarchy, clock_ghz=3.8)),
)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("key", "module", "name", "value"), TURNED_BY_CONSTANTS, ids=[f"{row[0]}-{row[2]}" for row in TURNED_BY_CONSTANTS]
)
def test_another_constant_turns_the_verdict(monkeypatch, key, module, name, value):
    assert found(key).as_expected
    _forget()
    monkeypatch.setattr(module, name, value)
    assert not found(key).as_expected


def test_figure_3_and_the_checksum_of_a_header():
    """The complement of what figure 3 stores is the checksum; carries are folded in twice at most."""
    assert baldi2018.figure_3_sum((0xFFFF, 0xFFFF)) == {"stored": 0xFFFF, "checksum": 0, "complement": 0}
    assert [baldi2018.figure_3_words(size)["words"] for size in (2, 3, 4, 20)] == [1, 1, 2, 10]


def curve(path, cost, l1_full_at=400.0, most="1e6", **more):
    """What a check of shapes gets of a run over numbers of entries."""
    sweep = (("entries", f"{{log: [1, {most}], points_per_decade: 6}}"),)
    table = RunDirectory.open(make_run(path, cost, overrides=sweep)).read_measurements()
    marks = (CacheMark("L1", 48e3, l1_full_at), CacheMark("L2", 2e6, 18_000.0), CacheMark("L3", 3e7, 216_000.0))
    return MeasuredRun(table, "entries", FitOptions(max_segments=5, resamples=0), log_x=True, marks=marks, **more)


def test_shapes_at_the_first_caches(tmp_path):
    small, large = (
        curve(tmp_path / name, lambda x, at=at: 80.0 if x < at else 200.0)
        for name, at in (("small", 400.0), ("large", 18_000.0))
    )
    assert [shapes.curve_segments(run)["l1_detected"] for run in (small, large)] == [True, False]
    assert "l1_detected" not in shapes.curve_segments(replace(large, marks=large.marks[1:]))
    assert shapes.growth_at_caches(small, 8)["l1_over_l2"] == pytest.approx(2.5, rel=0.05)
    assert shapes.growth_at_caches(large, 8)["l1_over_l2"] == pytest.approx(0.4, rel=0.05)
    with pytest.raises(NoVerdictError, match="fills L1, L2 and L3"):
        shapes.growth_at_caches(replace(large, marks=large.marks[1:]), 8)


def test_shapes_at_the_caches_beyond(tmp_path):
    """Breakpoints where the table fills L2 and L3 fit as no others do; where it turns elsewhere, others fit better."""

    def cost(x, at):
        return 80.0 + 30 * (x > at) + 90 * (x > 12 * at)

    there, elsewhere = (curve(tmp_path / str(at), lambda x, at=at: cost(x, at), most="1e7") for at in (18_000, 100))
    assert shapes.breaks_at_caches(there)["share_as_good"] < 0.01
    assert shapes.breaks_at_caches(elsewhere)["share_as_good"] > 0.1
    assert shapes.breaks_at_caches(there)["left_out_gain"] > 1.5


@pytest.mark.parametrize(
    ("key", "worse"),
    [
        ("scholz2021:fig2-l1-is-not-detected", {"l1_detected": True}),
        ("scholz2021:fig2-l1-costs-less-than-l2", {"l1_over_l2": 1.1}),
        ("scholz2021:fig2-l1-costs-less-than-l2", {"l2_over_l3": 1.0}),
        ("scholz2021:fig2-l1-is-not-detected", {"left_out_gain": 1.0}),
    ],
)
def test_shapes_turn_the_verdict(key, worse):
    ((paper, claim),) = chosen_claims([key])
    better = {"l1_detected": False, "l1_over_l2": 0.5, "l2_over_l3": 0.5, "left_out_gain": 2.0}
    assert judge(paper.key, claim, better).verdict == "shape reproduced"
    assert judge(paper.key, claim, {**better, **worse}).verdict == "not reproduced"
