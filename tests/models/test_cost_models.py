import json
import math
from dataclasses import replace

import pytest

from p4perf.errors import DataError, UsageError
from p4perf.models.estimate import exactly
from p4perf.models.program.costs import Calibration, CheckedProgram, CostBreakdown, CostModel, TableCache
from p4perf.models.program.costs_storage import cost_model_json, read_cost_model
from p4perf.models.program.curves import ComponentCosts, CostPoint
from p4perf.models.program.graph import construct
from p4perf.models.program.interactions import (
    Composition,
    Form,
    TableUse,
    characteristic_time,
    fit_form,
    growth,
    missed_lookups,
)

TABLE_DEFAULTS = {"match_kind": "exact", "key_bits": 128, "action_data_bytes": 64, "tables": 1, "applications": 1}
CURVE = {10: 70.0, 1000: 80.0, 10_000: 90.0, 100_000: 200.0, 1_000_000: 300.0}


def table_point(cycles, **parameters):
    return CostPoint({**TABLE_DEFAULTS, **parameters}, cycles, 0.5)


TABLES = ComponentCosts(
    "match_action_table",
    TABLE_DEFAULTS,
    (
        *(table_point(cycles, entries=entries) for entries, cycles in CURVE.items()),
        table_point(88.0, entries=1000, key_bits=512),
        table_point(220.0, entries=100_000, key_bits=512),
    ),
)
WRITES = ComponentCosts(
    "header_field_writes",
    {"fields": 16},
    tuple(CostPoint({"fields": 16, "writes": n}, 2.0 * n, 0.1) for n in (0, 4, 8, 16)),
)
MODEL = CostModel(
    target="dpdk-c",
    baseline=20.0,
    baseline_error=0.2,
    components={c.name: c for c in (TABLES, WRITES)},
    cache=TableCache(2.0 * (1 << 20), 1e4, 1e5, 48.0 * 1024),
    frame_bytes=1024,
    machine={"cpu_model": "a"},
    provenance={"runs": ["x"], "n": 1.5},
)


def component(name, **parameters):
    return construct("component", "", name=name, **parameters)


def table(entries, **parameters):
    return component("match_action_table", entries=entries, **parameters)


class TestCurves:
    def test_measured_points_are_what_was_measured(self):
        for entries, cycles in CURVE.items():
            charge = MODEL.charge(table(entries))
            assert charge.cycles.value == cycles
            assert charge.basis == "measured"

    def test_between_points_the_logarithm_of_entries_counts(self):
        charge = MODEL.charge(table(round(10**4.5)))
        assert charge.cycles.value == pytest.approx(145, abs=0.1)
        assert charge.basis == "interpolated"
        assert (
            charge.cycles.high - charge.cycles.low
            > MODEL.charge(table(10_000)).cycles.high - MODEL.charge(table(10_000)).cycles.low
        )

    def test_few_values_are_linear(self):
        assert MODEL.charge(component("header_field_writes", writes=6)).cycles.value == pytest.approx(12)

    def test_beyond_the_last_point_the_line_goes_on_and_says_so(self):
        charge = MODEL.charge(table(10_000_000))
        assert charge.cycles.value == pytest.approx(400)
        assert charge.basis == "extrapolated"
        assert "above 1e+06" in charge.remark
        assert charge.cycles.high - charge.cycles.low > 300

    def test_below_the_first_point_nothing_changes(self):
        charge = MODEL.charge(table(1))
        assert (charge.cycles.value, charge.basis) == (70, "extrapolated")

    def test_other_parameters_are_factors_where_that_agrees_better(self):
        assert MODEL.charge(table(1000, key_bits=512)).cycles.value == pytest.approx(88, rel=0.01)
        assert MODEL.charge(table(10_000, key_bits=512)).cycles.value == pytest.approx(99, rel=0.01)

    def test_other_parameters_are_terms_where_that_agrees_better(self):
        points = [CostPoint({"a": a, "b": b}, 10.0 * a + b, 0.1) for a, b in ((1, 0), (2, 0), (3, 0), (1, 7), (3, 7))]
        costs = ComponentCosts("x", {}, tuple(points))
        assert costs.price({"a": 2, "b": 7}).cycles == pytest.approx(27)

    def test_words_have_to_match(self):
        charge = MODEL.charge(table(1000, match_kind="lpm"))
        assert (charge.basis, charge.cycles.value) == ("unknown", 0)
        assert MODEL.charge(component("meter", cells=1)).basis == "unknown"

    def test_several_tables_are_several_lookups(self):
        assert MODEL.charge(table(1000, tables=3, applications=2), 0.5).cycles.value == pytest.approx(0.5 * 6 * 80)


class TestSharing:
    def test_what_fits_stays(self):
        assert math.isinf(characteristic_time([TableUse(1000), TableUse(1000)], 2 << 20))
        assert growth([TableUse(1000), TableUse(1000)], 2 << 20) == (None, None)

    def test_a_full_cache_is_full(self):
        tables = [TableUse(100_000), TableUse(30_000)]
        packets = characteristic_time(tables, 2 << 20)
        lines = sum(-n * math.expm1(-rate * packets) for t in tables for n, rate in t.lines())
        assert 64 * lines == pytest.approx(2 << 20, rel=1e-6)

    def test_tables_of_one_kind_count_once_however_many_there_are(self, monkeypatch):
        asked = []
        monkeypatch.setattr(math, "expm1", lambda x, exact=math.expm1: asked.append(x) or exact(x))
        alone = characteristic_time([TableUse(100_000)], 2 << 20)
        once = len(asked)
        assert once > 0
        assert characteristic_time([TableUse(100_000)] * 64, 64 * (2 << 20)) == pytest.approx(alone, rel=1e-12)
        assert len(asked) <= 2 * once

    def test_tables_beside_each_other_are_as_good_as_larger_ones(self):
        alone, beside = growth([TableUse(100_000)], 2 << 20), growth([TableUse(100_000)] * 2, 2 << 20)
        assert alone == (None,)
        assert beside[0] == beside[1]
        assert beside[0].start == 100_000
        assert 180_000 < beside[0].end < 260_000

    def test_a_small_table_keeps_its_lines_beside_a_large_one(self):
        small, large = growth([TableUse(100), TableUse(1_000_000)], 2 << 20)
        assert small is None or small.end < 1.05 * small.start
        assert large is None or large.end < 1.01 * large.start

    def test_lookups_that_leave_a_cache(self):
        assert missed_lookups([TableUse(10)], 48 << 10) == 0
        assert missed_lookups([TableUse(100_000, times=0.5)], 48 << 10) == pytest.approx(0.5, abs=0.01)


def compositions(count=24):
    found = []
    for n in range(count):
        tables, others = n % 5, 10.0 * (n % 7) + 5
        misses = float(n % 3 == 0 and tables > 0)
        missing = 200.0 * misses
        lookups = 80.0 * max(tables - misses, 0) + missing
        found.append(Composition(20.0, lookups, others, 0.0, tables, 0.5 * tables, misses, misses, missing, missing))
    return found


class TestForms:
    @pytest.mark.parametrize("name", ["sum", "scaled", "overlap", "spacing", "spacing, scaled"])
    def test_sums_are_learnt_by_every_form(self, name):
        programs = compositions()
        form = fit_form(name, programs, [p.baseline + p.alone for p in programs])
        for program in programs:
            assert form.total(program) == pytest.approx(program.baseline + program.alone, rel=1e-6)

    def test_later_tables_that_cost_more(self):
        programs = compositions()
        measured = [p.baseline + p.alone + 12 * max(p.tables - 1, 0) for p in programs]
        form = fit_form("scaled", programs, measured)
        errors = [abs(form.total(p) / m - 1) for p, m in zip(programs, measured, strict=True)]
        assert max(errors) < 0.03

    def test_misses_that_no_longer_overlap(self):
        programs = compositions()
        measured = [p.baseline + p.alone + p.misses * min(p.spacing(2.0), 150) for p in programs]
        form = fit_form("spacing", programs, measured)
        errors = [abs(form.total(p) / m - 1) for p, m in zip(programs, measured, strict=True)]
        assert max(errors) < 0.06
        assert all(a <= b for a, b in zip(form.excess, form.excess[1:], strict=False))

    @pytest.mark.parametrize("name", ["scaled", "overlap"])
    def test_packets_that_come_to_no_table_have_no_company_of_one(self, name):
        """What is there for a table alone is paid by the packets that look it up."""
        form = Form(name, (-8.0, 0.0, 0.0, 0.0, 0.0))
        totals = [form.total(Composition(20.0, 80.0 * t, 30.0, tables=t)) for t in (0.0, 0.25, 1.0, 3.0)]
        assert totals == pytest.approx([50, 50 + 20 - 2, 50 + 80 - 8, 50 + 240 - 8])

    def test_no_program_is_cheaper_than_the_baseline(self):
        assert Form("scaled", (-1e3, 0, 0, 0, 0)).total(Composition(20.0, 5.0, 0.0, tables=1.0)) == 20


class Tables:
    """Lookups cost what tables of so many entries do."""

    knows_programs = False

    def charge(self, what, times=1.0):
        return MODEL.charge(table(what.number("entries")), times)

    def charges(self, met):
        return [self.charge(*each) for each in met]

    def breakdown(self, met):
        return CostBreakdown(0.0, tuple(self.charges(met)), 0.0, 0.0, 0.0)


class TestBreakdowns:
    def test_a_breakdown_is_baseline_charges_and_interaction(self):
        breakdown = MODEL.breakdown([(table(1000), 1.0), (component("header_field_writes", writes=4), 0.5)])
        assert breakdown.cycles.value == pytest.approx(20 + 80 + 4)
        assert breakdown.interaction == pytest.approx(0)
        assert breakdown.low < breakdown.cycles.value < breakdown.high
        assert any("no composed programs" in text for text in breakdown.warnings)

    def test_large_tables_beside_each_other_cost_more_where_caches_are_shared(self):
        model = replace(MODEL, form=Form("spacing", (0.0,) * 5, (0.0,), (0.0,)))
        alone = model.breakdown([(table(100_000), 1.0)])
        both = model.breakdown([(table(100_000), 1.0), (table(100_000), 1.0)])
        assert alone.interaction == pytest.approx(0)
        assert both.interaction > 20

    def test_copies_of_a_step_are_lookups_in_one_table(self):
        """Half of the packets meet a table on one way, half on another: it takes its memory once."""

        def lookup(where):
            sizes = {"entries": 100_000, "key_bits": 128, "action_data_bytes": 64, "hit": 1.0}
            return construct("lookup", where, match_kind="exact", **sizes)

        model = replace(MODEL, parts=Tables(), form=Form("spacing", (0.0,) * 5, (0.0,), (0.0,)))
        alone = model.breakdown([(lookup("table fib"), 1.0)])
        copies = model.breakdown([(lookup("table fib"), 0.5), (lookup("table fib"), 0.5)])
        others = model.breakdown([(lookup("table fib"), 0.5), (lookup("table nat"), 0.5)])
        assert alone.interaction == pytest.approx(0)
        assert copies.cycles.value == pytest.approx(alone.cycles.value)
        assert others.interaction > 20
        nameless = model.breakdown([(lookup(""), 0.5), (lookup(""), 0.5)])
        assert nameless.cycles.value == pytest.approx(others.cycles.value)

    def test_intervals_are_those_of_calibration(self):
        known = Calibration(30, 8, 6.0, 2.0, 900.0, cached=0.05, beyond=0.2)
        model = replace(MODEL, calibration=known)
        cached, beyond = (model.breakdown([(table(n), 1.0)]) for n in (1000, 100_000))
        assert cached.high == pytest.approx(cached.cycles.value / 0.95)
        assert beyond.low == pytest.approx(beyond.cycles.value / 1.2)

    def test_what_was_not_calibrated_is_said(self):
        model = replace(MODEL, calibration=Calibration(30, 8, 3.0, 2.0, 900.0, 0.05, 0.2))
        breakdown = model.breakdown([(table(1000), 1.0)] * 5)
        assert any("lookups per packet" in text for text in breakdown.warnings)
        assert model.breakdown([(table(1000), 1.0)] * 2).warnings == ()
        unknown = model.breakdown([(construct("hash", algorithm="crc32", bytes=4), 1.0)])
        assert any("no price" in text for text in unknown.warnings)

    def test_headers_of_all_components_are_one_chain(self):
        points = tuple(CostPoint({"headers": n}, n**2, 0.1) for n in range(13))
        chain = ComponentCosts("parser_headers", {}, points)
        model = replace(MODEL, components={**MODEL.components, "parser_headers": chain})
        met = [(component("parser_headers", headers=5), 1.0), (table(1000), 1.0), (table(10), 1.0)]
        program = model.composition(met, [model.charge(what) for what, _ in met])
        assert program.pooled == pytest.approx(49 - 25 - 1 - 1)
        assert MODEL.composition(met[1:], [MODEL.charge(what) for what, _ in met[1:]]).pooled == 0

    def test_other_constructs_are_priced_by_segments(self):
        lookup = construct("lookup", match_kind="exact", entries=1000, key_bits=128, action_data_bytes=64, hit=1.0)
        breakdown = replace(MODEL, parts=Tables()).breakdown([(lookup, 1.0)])
        assert breakdown.cycles.value == pytest.approx(100)


class TestStorage:
    full = replace(
        MODEL,
        form=Form("spacing", (1.0, 0.1, -2.0, 3.0, 0.5), (0.0, 90.5), (0.0, 1 / 3)),
        calibration=Calibration(30, 8, 6.0, 2.0, 900.0, 0.05, 0.2),
        checked=(CheckedProgram((("hash", {"size_bytes": 4}),), 40.0, 41.5),),
        primitives={"version": 1, "prices": [1.5]},
    )

    @pytest.mark.parametrize("model", [MODEL, full])
    def test_models_load_back_exactly(self, model):
        text = cost_model_json(model)
        again = read_cost_model(text)
        assert again == model
        assert cost_model_json(again) == text
        met = [(table(31_000), 1.0), (table(100_000, key_bits=512), 1.0)]
        assert again.breakdown(met) == model.breakdown(met)

    @pytest.mark.parametrize(
        ("path", "value", "key"),
        [
            (("schema",), "p4perf/component-model", "schema"),
            (("schema_version",), 2, "schema_version"),
            (("baseline", "cycles"), -1, "baseline.cycles"),
            (("components", 0, "points"), [], "components[0].points"),
            (("components", 0, "points", 1, "cycles"), "x", "components[0].points[1].cycles"),
            (("components", 0, "points", 1, "parameters"), {}, "components[0].points[1].parameters"),
            (("composition", "form"), "magic", "composition.form"),
            (("composition", "coefficients"), [1], "composition.coefficients"),
            (("composition", "excess"), [1, 2, 3], "composition.excess"),
            (("calibration", "programs"), 1.5, "calibration.programs"),
            (("checked", 0, "components"), [{}], "checked[0].components[0]"),
        ],
    )
    def test_damage_is_named(self, path, value, key):
        record = json.loads(cost_model_json(self.full))
        inner = record
        for part in path[:-1]:
            inner = inner[part]
        inner[path[-1]] = value
        with pytest.raises(DataError) as failure:
            read_cost_model(json.dumps(record), file="m.json")
        assert failure.value.location.file == "m.json"
        assert failure.value.key == key

    def test_what_is_no_json_is_said(self):
        with pytest.raises(DataError, match="not JSON"):
            read_cost_model("{", file="m.json")

    def test_infinity_is_not_stored(self):
        with pytest.raises(UsageError, match="not finite"):
            cost_model_json(replace(MODEL, baseline_error=math.inf))


class TestLayouts:
    """What tables of other kinds touch."""

    def test_prefixes_have_an_index_and_action_data(self):
        lines = TableUse(16_000, 4.0, 64.0, prefixes=True).lines()
        assert [count for count, _ in lines] == [1000, 16_000]
        assert [count * rate for count, rate in lines] == pytest.approx([1, 1])

    def test_maps_have_buckets_and_elements(self):
        buckets, elements = TableUse(30_000, 16.0, 64.0, layout="bpf_map").lines()
        assert buckets[0] == pytest.approx(10_000)
        assert elements[0] == pytest.approx(30_000 * (48 + 16 + 64) / 64)
        assert elements[0] * elements[1] > 2, "a bucket may hold others"

    def test_a_trie_is_asked_once_in_every_level(self):
        lines = TableUse(1 << 10, 4.0, 64.0, layout="bpf_map", prefixes=True).lines()
        assert len(lines) == 12
        assert [count * rate for count, rate in lines[:-1]] == pytest.approx([1.0] * 11)

    def test_a_table_of_prefixes_takes_of_the_cache(self):
        model = replace(MODEL, components={TABLES.name: replace(TABLES, points=(*TABLES.points, *_prefixes()))})
        small, large = (
            model.breakdown([(table(100_000), 1.0), (table(n, match_kind="lpm", key_bits=32), 1.0)])
            for n in (10, 100_000)
        )
        assert large.interaction == small.interaction == 0, "the form is a sum"
        composed = [
            model.composition([(what, 1.0) for what in whats], [model.charge(what) for what in whats])
            for whats in (
                (table(100_000), table(10, match_kind="lpm", key_bits=32)),
                (table(100_000), table(100_000, match_kind="lpm", key_bits=32)),
            )
        ]
        assert composed[1].shared > composed[0].shared + 10
        assert composed[0].tables == 2

    def test_the_layout_is_stored(self):
        model = replace(MODEL, cache=replace(MODEL.cache, layout="bpf_map"))
        assert read_cost_model(cost_model_json(model)) == model
        record = json.loads(cost_model_json(model))
        record["cache"]["layout"] = "paper"
        with pytest.raises(DataError, match=r"cache\.layout"):
            read_cost_model(json.dumps(record))
        del record["cache"]["layout"]
        assert read_cost_model(json.dumps(record)).cache.layout == "rte_hash"


def _prefixes():
    return [
        table_point(cycles, entries=entries, match_kind="lpm", key_bits=32)
        for entries, cycles in ((10, 18.0), (10_000, 26.0), (100_000, 90.0))
    ]


def test_sizes_are_stored_where_they_were_measured():
    points = (replace(TABLES.points[0], memory_bytes=1234.5, code_bytes=210.0), *TABLES.points[1:])
    model = replace(MODEL, components={TABLES.name: replace(TABLES, points=points)}, baseline_code_bytes=63.0)
    text = cost_model_json(model)
    assert read_cost_model(text) == model
    assert text.count("memory_bytes") == 1
    assert "code_bytes" not in cost_model_json(MODEL)


class _Parts:
    """Prices what components are made of: lpm tables only."""

    def charge(self, what, times=1.0):
        raise AssertionError("only components are asked for")

    charges = charge

    def component(self, what, times=1.0):
        if dict(what.sizes).get("match_kind") != "lpm":
            return None
        return replace(
            MODEL.charge(table(1000)), what=what, times=times, cycles=exactly(7.0 * times), basis="interpolated"
        )


def test_a_component_that_was_not_measured_so_costs_what_it_is_made_of():
    model = replace(MODEL, parts=_Parts())
    found = model.charge(table(1000, match_kind="lpm"), 2.0)
    assert (found.cycles.value, found.basis) == (14.0, "interpolated")
    assert model.charge(table(1000, match_kind="ternary")).basis == "unknown"
    assert MODEL.charge(table(1000, match_kind="lpm")).basis == "unknown"
    assert model.charge(table(1000)).cycles.value == CURVE[1000], "its own curve comes first"
