"""The study's own numbers, and what they say of its claims. Expected values were published or computed elsewhere."""

import itertools
import json

import numpy as np
import pytest
import yaml
from support.command import p4perf

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.papers.takeya2024.cesim import CacheModel, fit_cache_model, log_error
from p4perf.evaluation.papers.takeya2024.eivu import SERVERS, best_split, read_study, study_findings
from p4perf.evaluation.papers.takeya2024.factors import analyse
from p4perf.plugins import load_plugin
from p4perf.specs import load_experiment
from p4perf.specs.items import FACTORS, items_of, items_spec, read_items


@pytest.fixture(scope="module")
def study():
    return read_study()


@pytest.fixture(scope="module")
def claims(study):
    return {claim.number: claim for claim in study_findings(study)}


# --- the measurements


def test_all_items_were_measured(study):
    assert [len(study.items(server)) for server in SERVERS] == [141, 141, 141, 139]
    assert len(study.table) == 4335
    assert [len(study.factorial(server).cells) for server in SERVERS] == [61] * 4


@pytest.mark.parametrize(
    ("server", "effects"),
    [
        ("S1", [1.47, 1.08, 2.32, 1.19, 1.38, 1.12]),
        ("S2", [1.59, 1.13, 2.27, 1.18, 1.63, 1.23]),
        ("S3", [1.85, 1.12, 1.74, 1.14, 1.50, 1.56]),
        ("S4", [1.08, 1.06, 1.94, 1.16, 1.37, 1.20]),
    ],
)
def test_main_effects(study, server, effects):
    found = analyse(study.factorial(server, "tx"))
    assert [e.ratio.value for e in found.main.effects] == pytest.approx(effects, abs=0.0051)
    assert found.main.r_squared == pytest.approx({"S3": 0.85}.get(server, 0.82), abs=0.0051)
    assert 0.925 <= found.pairs.r_squared <= 0.965


def test_strongest_interactions(study):
    pairs = {server: analyse(study.factorial(server, "tx")).pairs for server in SERVERS}
    found = {s: max((e for e in m.effects if len(e.factors) == 2), key=lambda e: e.strength) for s, m in pairs.items()}
    assert {s: e.factors for s, e in found.items()} == {
        "S1": ("c", "f"),
        "S2": ("c", "f"),
        "S3": ("c", "e"),
        "S4": ("c", "f"),
    }
    assert [e.ratio.value for e in found.values()] == pytest.approx([1.74, 1.74, 1.70, 1.63], abs=0.0051)


@pytest.mark.parametrize(
    ("server", "ratios", "full"),
    [
        ("S1", [1.86, 1.23, 3.53, 1.20, 1.54, 1.74], 6.13),
        ("S2", [2.47, 1.59, 3.97, 1.39, 1.95, 2.58], 10.44),
        ("S3", [2.87, 1.28, 2.82, 1.15, 2.10, 2.33], 9.58),
        ("S4", [1.04, 0.99, 2.78, 1.15, 1.46, 1.68], 3.84),
    ],
)
def test_leave_one_out(study, server, ratios, full):
    found = analyse(study.factorial(server))
    assert [gain.value for gain in found.last.values()] == pytest.approx(ratios, abs=0.0051)
    assert found.full.value == pytest.approx(full, abs=0.0051)


def test_the_best_order(study):
    ladder = analyse(study.factorial("S1")).ladder
    assert "".join(rung.factor for rung in ladder.rungs) == "acfebd"
    assert [rung.value for rung in ladder.rungs] == pytest.approx([37.3, 47.8, 72.0, 123.2, 143.3, 172.1], abs=0.051)
    assert ladder.untried[0] == ("d", "e", "f")


def test_single_gains(study):
    found = {server: analyse(study.factorial(server)) for server in SERVERS}
    single = {f: [found[s].single[f].value for s in SERVERS] for f in "abc"}
    assert single["a"] == pytest.approx([1.33, 1.68, 1.56, 0.98], abs=0.0051)
    assert single["b"] == pytest.approx([1.02, 1.07, 1.03, 1.06], abs=0.0051)
    assert single["c"] == pytest.approx([1.30, 1.20, 1.10, 1.37], abs=0.0051)
    assert found["S1"].without_single == ("d", "e", "f")
    assert found["S1"].additivity == "unknown"


def test_single_items_and_halves_multiply_to_less_than_all_of_them(study):
    """d, e and f were never measured alone; their halves were."""
    for server in SERVERS:
        rows = study.items(server)["mpps"]
        halves = [item for _, items in FACTORS.values() for item in items]
        product = np.prod([rows[item] / rows["001"] for item in halves])
        assert product < rows["106"] / rows["001"]
        assert rows["073"] / rows["001"] == pytest.approx(
            {"S1": 0.68, "S2": 0.79, "S3": 1.15, "S4": 0.63}[server], abs=0.0051
        )


def test_how_well_the_cache_model_describes_the_items(study):
    rows = study.items("S1")
    r, mpps = rows["l1_hit_pct"].to_numpy() / 100, rows["mpps"].to_numpy()
    errors = [log_error(CacheModel(alpha), r, mpps) for alpha in (0.1, 0.5, 0.7, 0.9)]
    assert errors == pytest.approx([0.795, 0.566, 0.517, 0.979], abs=0.001)
    assert log_error(CacheModel(0.5, variant="simple"), r, mpps) == pytest.approx(1.71, abs=0.01)
    found = fit_cache_model(r, mpps, CacheModel())
    assert found.rms_log_error < 0.517


# --- the claims


def test_there_are_ten(claims):
    assert list(claims) == list(range(1, 11))
    assert {n: c.verdict for n, c in claims.items()} == {
        1: "supported",
        2: "not supported",
        3: "partly supported",
        4: "supported",
        5: "partly supported",
        6: "partly supported",
        7: "partly supported",
        8: "supported",
        9: "partly supported",
        10: "supported",
    }


def test_100_mpps_are_possible(claims):
    numbers = claims[1].numbers
    assert numbers["counts"] == [6, 3, 4, 13]
    assert numbers["items"]["S1"] == ["092", "094", "101", "103", "104", "106"]
    assert numbers["items"]["S2"] == ["103", "104", "106"]
    assert numbers["items"]["S3"] == ["094", "103", "104", "106"]


def test_a_hit_ratio_of_99_99_is_not_necessary(claims):
    numbers = claims[2].numbers
    assert numbers["lowest_hit_pct"] == pytest.approx([99.952, 99.942, 99.951, 97.34], abs=0.001)
    assert numbers["with_99_99"] == [2, 0, 1, 0]
    assert numbers["slow_in_spite_S1"]["086"] == pytest.approx(79.8, abs=0.05)
    assert numbers["tx_S1"]["106"] == pytest.approx([172.7, 99.911], abs=0.05)
    assert numbers["tx_S1"]["101"] == pytest.approx([112.5, 97.57], abs=0.05)
    assert numbers["second_i9"] == pytest.approx([53, 97.1, 99.94], abs=0.01)
    # What can be said instead, of the first three servers.
    assert min(numbers["lowest_hit_pct"][:3]) >= 99.94
    assert numbers["most_misses_pp"][:3] == pytest.approx([0.0695, 0.0480, 0.0462], abs=0.0001)


def test_the_tipping_point_of_the_measurements(claims):
    numbers = claims[3].numbers
    assert numbers["hit_split"]["S1"] == pytest.approx([99.934, 99.934], abs=0.001)
    assert 99.91 <= numbers["hit_split"]["S2"][0] <= numbers["hit_split"]["S2"][1] <= 99.92
    assert 99.93 <= numbers["hit_split"]["S3"][0] <= numbers["hit_split"]["S3"][1] <= 99.95
    assert [numbers["miss_split"][s][0] for s in ("S1", "S2", "S3")] == pytest.approx([0.18, 0.135, 0.155], abs=0.006)
    assert numbers["miss_split"]["S4"] == pytest.approx([2.6, 3.2], abs=0.02)
    levels = {s: [above, below] for s, (below, above) in numbers["miss_levels"].items()}
    below = {"S1": 60.6, "S2": 58.5, "S3": 44.0, "S4": 92.7}
    above = {"S1": 26.2, "S2": 18.0, "S3": 18.4, "S4": 41.3}
    assert {s: v[1] for s, v in levels.items()} == pytest.approx(below, abs=0.05)
    assert {s: v[0] for s, v in levels.items()} == pytest.approx(above, abs=0.05)
    assert all(0.455 <= numbers["miss_r_squared"][s] <= 0.56 for s in ("S1", "S2", "S3"))
    assert numbers["most_by_hit_bin_S1"] == pytest.approx([48.7, 88.3, 82.8, 102.8, 143.3, 172.1], abs=0.05)


def test_correlations_with_l1(claims):
    numbers = claims[4].numbers
    assert numbers["misses"] == pytest.approx([-0.63, -0.49, -0.35, -0.55], abs=0.0051)
    assert numbers["hit_ratio"] == pytest.approx([0.47, 0.12, 0.00, 0.40], abs=0.0051)
    assert numbers["fills_S1_S2"] == pytest.approx([-0.63, -0.56], abs=0.0051)
    assert numbers["rx_fills_S1_S2"] == pytest.approx([-0.74, -0.74], abs=0.0051)


def test_correlations_with_l2_and_l3(claims):
    numbers = claims[5].numbers
    assert list(numbers["l2"].values()) == pytest.approx([-0.18, 0.08, -0.16], abs=0.0051)
    assert list(numbers["l3"].values()) == pytest.approx([-0.10, -0.13, -0.31], abs=0.0051)
    assert numbers["llc_references"] == pytest.approx([-0.63, -0.48, -0.52, -0.60], abs=0.0051)
    slow, fast = numbers["memory_3200_5200_mpps"]
    assert [slow, fast] == pytest.approx([96.1, 97.4], abs=0.05)
    assert fast / slow - 1 == pytest.approx(0.014, abs=0.001)


def test_invalidations(claims):
    numbers = claims[6].numbers
    assert numbers["misses"] == pytest.approx([0.73, 0.62], abs=0.0051)
    assert numbers["fills"] == pytest.approx([0.82, 0.68], abs=0.0051)
    assert numbers["most_rfo_of_fast"] == pytest.approx([0.099, 0.075], abs=0.0005)
    assert numbers["most_mpps_with_many_rfo"] == pytest.approx([48.7, 26.0], abs=0.05)
    assert numbers["rfo_fall"] == pytest.approx([72, 57], abs=0.6)
    assert numbers["second_rfo_i9"] == pytest.approx(-0.09, abs=0.0051)
    assert numbers["second_fills"] == pytest.approx([-0.76, -0.71], abs=0.0051)


def test_the_buffer_header(claims):
    numbers = claims[7].numbers
    assert numbers["best_without_c"] == pytest.approx([51.1, 41.9, 53.6, 61.5], abs=0.051)
    for measure in ("leave_one_out", "main_effects_tx"):
        first = {s: max(values, key=values.get) for s, values in numbers[measure].items()}
        assert first == {"S1": "c", "S2": "c", "S3": "a", "S4": "c"}


def test_zero_copy(claims):
    numbers = claims[8].numbers
    values = [value for pair in numbers["alone"].values() for value in pair]
    assert [min(values), max(values)] == pytest.approx([-0.19, 0.25], abs=0.0051)
    assert numbers["with_c_S1"] == pytest.approx([36.6, 62.3], abs=0.051)


def test_the_base_and_dpdk(claims):
    numbers = claims[9].numbers
    assert numbers["ratios"] == pytest.approx([1.56, 0.90, 0.96, 2.2], abs=0.0051)
    assert numbers["misses_pp"][0] == pytest.approx([0.28, 1.6], abs=0.01)


def test_the_model(claims):
    numbers = claims[10].numbers
    assert numbers["slope_ratios"] == pytest.approx([99, 322, 8123], abs=0.5)
    assert numbers["half_miss_ratios"] == pytest.approx([8.97e-4, 4.98e-4, 9.9e-5], rel=2e-3)
    assert min(numbers["simple_at_99"]) >= 154


def test_verdicts_follow_from_the_numbers(study):
    """With other measurements the claims come out otherwise."""
    table = study.table.copy()
    fast = (table["campaign"] == "v1") & (table["process"] == "nf") & (table["mpps"] >= 100)
    table.loc[fast, "l1_hit_pct"] = 99.995
    table.loc[table["item"] == "044", "mpps"] *= 2
    again = {claim.number: claim for claim in study_findings(type(study)(table))}
    assert again[2].verdict == "supported"
    assert again[8].verdict == "not supported"


def test_data_of_ones_own(tmp_path, study):
    with pytest.raises(DataError, match="cannot be read"):
        read_study(tmp_path)
    study.table.to_csv(tmp_path / "eivu_results.csv", index=False)
    assert len(read_study(tmp_path).table) == len(study.table)
    study.table.drop(columns=["rfo_pp"]).to_csv(tmp_path / "eivu_results.csv", index=False)
    with pytest.raises(DataError, match="has no column 'rfo_pp'"):
        read_study(tmp_path)
    study.table[study.table["campaign"] == "v2"].to_csv(tmp_path / "eivu_results.csv", index=False)
    with pytest.raises(DataError, match="has no rows of S1"):
        read_study(tmp_path)


def test_the_best_split_is_between_different_values():
    found = best_split([1, 1, 2, 3], [10, 10, 10, 1000])
    assert (found.low, found.high, found.middle) == (2, 3, 2.5)
    assert (found.below, found.above, found.r_squared) == pytest.approx((10, 1000, 1))
    with pytest.raises(DataError, match="nothing to split"):
        best_split([1, 1], [1, 2])


# --- the items


def test_141_items():
    items = read_items()
    assert [item.number for item in items] == [f"{n:03}" for n in range(1, 142)]
    counts = {c: sum(i.category == c for i in items) for c in {i.category for i in items}}
    assert counts == {"base": 1, "programmatic": 44, "configurational": 39, "combinational": 57}
    assert [i.number for i in items if not i.runs] == [
        "002",
        "003",
        "004",
        "005",
        "006",
        "011",
        "021",
        "049",
        "083",
        "084",
    ]
    assert all(item.runs or not item.settings for item in items)


def test_the_combinations_are_whole_factors_and_all_of_them():
    combined = [item for item in read_items() if item.category == "combinational"]
    for item in combined:
        parts = [part for factor in item.factors for part in FACTORS[factor][1]]
        assert sorted(item.parents) == sorted(parts)
    found = {item.factors for item in combined}
    expected = {"".join(c) for size in range(2, 7) for c in itertools.combinations("abcdef", size)}
    assert found == expected


def test_items_are_variants_that_inherit(tmp_path):
    path = tmp_path / "items.yaml"
    path.write_text(p4perf("list", "eivu", "--spec", cwd=tmp_path).out)
    items = load_experiment(str(path))
    assert len(items.points) == 131
    point = {str(p.values["variant"]): dict(p.components[0][1]) for p in items.points}
    assert point["item_001"] == {}
    assert point["item_014"] == {"header_bytes": 0}
    assert point["item_110"] == {"header_bytes": 0, "rx_copy": "none", "tx_copy": "none"}
    cells = load_experiment(str(path), overrides=[("sweep.multiplex", "[a, b, c, d, e, f]")])
    assert len(cells.points) == 64
    assert dict(cells.points[-1].components[0][1]) == point["item_106"]


def test_some_items(tmp_path):
    spec = yaml.safe_load(p4perf("list", "eivu", "--spec", "--item", "001", "--item", "106", cwd=tmp_path).out)
    assert spec["sweep"] == {"multiplex": {"each_of": ["item_001", "item_106"]}}
    with pytest.raises(UsageError, match="there is no item '142'"):
        items_of(["142"])
    with pytest.raises(UsageError, match=r"item 083 .* cannot be run: a setting of the BIOS"):
        items_spec(items_of(["083"]))


def test_component_vio_takes_the_settings():
    parameters = load_plugin("p4perf.components", "vio").Parameters
    for item in read_items():
        parameters.model_validate(dict(item.settings))


@pytest.mark.thorough
def test_the_command(tmp_path):
    items = json.loads(p4perf("list", "eivu", "--format", "json", cwd=tmp_path).out)
    assert len(items["rows"]) == 141
    one = json.loads(p4perf("list", "eivu", "--item", "014", "--format", "json", cwd=tmp_path).out)
    assert one["rows"][0]["settings"] == ["header_bytes=0"]
    claims = json.loads(p4perf("reproduce", "eivu", "--format", "json", cwd=tmp_path).out)
    assert [row["verdict"] for row in claims["rows"]].count("not supported") == 1
    (tmp_path / "cells.csv").write_text(p4perf("list", "eivu-cells", "--format", "csv", cwd=tmp_path).out)
    done = p4perf("analyse", "factors", "cells.csv", "--metric", "S1_mpps", "--format", "json", cwd=tmp_path)
    answer = json.loads(done.out)
    assert [answer["cells"], answer["all_cells"]] == [61, 64]
    assert [row["order"] for row in answer["rows"]] == [1, 5, 2, 6, 4, 3]
    for arguments in (
        ["list", "eivu-cells", "--item", "001"],
        ["list", "eivu", "--data", "."],
        ["reproduce", "eivu", "--data", "nowhere"],
        ["reproduce", "eivu", "--quick"],
        ["reproduce", "--data", "."],
    ):
        wrong = p4perf(*arguments, cwd=tmp_path)
        assert wrong.code == 2
        assert "Traceback" not in wrong.err
