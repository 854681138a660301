"""Table II of Ren et al. 2025, recomputed: costs, medians, quadrants under each rule, ratios."""

import pytest

from p4perf.evaluation.papers.ren2025 import OpqOptions, Threshold, analyse, load_platforms
from p4perf.evaluation.papers.ren2025.quadrants import AVOID, Quadrant

COSTS = {
    ("Arm", "CRC"): (823, 2127.2, 5498.2),
    ("x86", "CRC"): (747, 1801.4, 4343.9),
    ("Arm", "Checksum"): (65, 72.8, 81.5),
    ("x86", "Checksum"): (27, 30.1, 33.5),
    ("Arm", "hash"): (34, 40.7, 48.8),
    ("x86", "hash"): (9, 10.0, 11.2),
    ("Arm", "htons"): (49, 56.5, 65.3),
    ("x86", "htons"): (1.5, 1.57, 1.64),
    ("Arm", "printf"): (12006, 12984, 14042),
    ("x86", "printf"): (29129, 33979, 39637),
    ("Arm", "rte_log"): (108, 127.8, 151.2),
    ("x86", "rte_log"): (49, 54.4, 60.4),
}
R_SQUARED = {"CRC": (0.9976, 0.9997), "Checksum": (0.9981, 0.9995), "hash": (0.9762, 0.9988)}
R_SQUARED |= {"htons": (0.9993, 0.9634), "printf": (0.9358, 0.9561), "rte_log": (0.9327, 0.9653)}

SIX = ("htons", "Checksum", "hash", "rte_log")
# rule: threshold of Arm and of x86, then quadrants of Arm htons, Checksum, hash, rte_log and of the same on x86;
# H: high startup cost, I: ideal operator.
RULES = {
    Threshold.parse("platform-median"): ((86.5, 38), "IIIH", "IIIH"),
    Threshold.parse("global-median"): ((57, 57), "IHIH", "IIII"),
    Threshold.parse("lower-median"): ((49, 49), "HHIH", "IIIH"),
    Threshold.parse("lower-median", ties="low"): ((49, 49), "IHIH", "IIII"),
    Threshold.parse("global-median", without=["printf", "rte_log"]): ((41.5, 41.5), "HHIH", "IIIH"),
    Threshold.parse("global-median", of="x86"): ((38, 38), "HHIH", "IIIH"),
    Threshold.parse("38"): ((38, 38), "HHIH", "IIIH"),
    Threshold.parse("27", ties="low"): ((27, 27), "HHHH", "IIIH"),
    Threshold.parse("27"): ((27, 27), "HHHH", "IHIH"),
    Threshold.parse("33.9", ties="low"): ((33.9, 33.9), "HHHH", "IIIH"),
    Threshold.parse("48.9"): ((48.9, 48.9), "HHIH", "IIIH"),
}


def analysed(threshold=None):
    found = analyse(load_platforms("ren2025"), OpqOptions(threshold=threshold or Threshold()))
    return found, {(p.profile.platform, p.profile.operator): p for p in found.placements}


def test_the_table_is_the_published_one():
    platforms = load_platforms("ren2025")
    assert [p.name for p in platforms] == ["Arm", "x86"]
    assert all(p.published and "Table II" in p.source for p in platforms)
    for platform, at in zip(platforms, (0, 1), strict=True):
        assert {row.operator: row.r_squared for row in platform.operators} == {k: v[at] for k, v in R_SQUARED.items()}


def test_costs_at_other_sizes():
    _, rows = analysed()
    assert rows.keys() == COSTS.keys()
    for key, cycles in COSTS.items():
        said = [size.cycles.value for size in rows[key].profile.sizes]
        assert said == [pytest.approx(c, abs=0.5 if c > 10000 else 0.051 if c > 2 else 0.0051) for c in cycles], key
        assert [size.size_bytes for size in rows[key].profile.sizes] == [64, 128, 256]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.text()}, ties {rule.ties}")
def test_quadrants_under_each_rule(rule):
    thresholds, arm, x86 = RULES[rule]
    _, rows = analysed(rule)
    names = {"H": Quadrant.HIGH_STARTUP, "I": Quadrant.IDEAL}
    for platform, threshold, said in (("Arm", thresholds[0], arm), ("x86", thresholds[1], x86)):
        assert rows[platform, "CRC"].threshold_cycles == threshold
        assert [rows[platform, name].quadrant for name in SIX] == [names[letter] for letter in said]
        assert rows[platform, "CRC"].quadrant is Quadrant.LATENT_TRAP
        assert rows[platform, "printf"].quadrant is Quadrant.HIGH_STARTUP
        assert rows[platform, "printf"].strategy == AVOID


def test_published_rows_have_no_probabilities():
    _, rows = analysed()
    assert all(p.probabilities is None and p.probability is None for p in rows.values())
    assert not any(p.profile.exponent.bounded for p in rows.values())


def test_printf_is_so_many_times_as_dear_as_a_log_call():
    found, _ = analysed()
    assert {c.platform: round(c.ratio.value, 1) for c in found.contrasts} == {"Arm": 111.2, "x86": 594.5}


def test_shifts_of_the_default_rule():
    found, _ = analysed()
    assert {(s.start.profile.platform, s.end.profile.platform) for s in found.shifts} == {("Arm", "x86")}
    changed = {s.start.profile.operator for s in found.shifts if s.changed}
    assert changed == {"Checksum", "rte_log"}
    assert all(s.probability is None for s in found.shifts)


def test_the_shifts_that_the_text_tells_need_a_lower_threshold():
    """htons, hash and Checksum from high to ideal: for thresholds of 27 cycles or more, below 34."""
    for text, expected in (("27", True), ("33.9", True), ("34", False), ("26.9", False)):
        found, _ = analysed(Threshold.parse(text, ties="low"))
        changed = {s.start.profile.operator for s in found.shifts if s.changed}
        assert (changed == {"htons", "hash", "Checksum"}) is expected, text
