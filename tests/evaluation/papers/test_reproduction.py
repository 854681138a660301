"""Claims of papers: what a file may say, verdicts, that all come out as expected, and that they can go wrong."""

import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from support.claims import COMPUTED, PAPER
from support.operators import CURVES, make_operator_run
from support.runs import make_run

from p4perf.errors import DataError, ExitCode, NoVerdictError, UsageError
from p4perf.evaluation.fitting import working_set
from p4perf.evaluation.fitting.derivation import FitOptions
from p4perf.evaluation.papers import (
    CHECKS,
    SHAPES,
    chosen_claims,
    impossible,
    judge,
    parse_paper,
    shapes,
    shipped_papers,
)
from p4perf.evaluation.papers.baldi2018 import checks as baldi2018
from p4perf.evaluation.papers.claims import Expectation, meets
from p4perf.evaluation.papers.gebert2016 import checks as gebert2016
from p4perf.evaluation.papers.ren2025 import quadrants
from p4perf.evaluation.papers.scholz2021 import checks as scholz2021
from p4perf.evaluation.papers.shapes import MeasuredRun
from p4perf.evaluation.papers.takeya2024 import checks as takeya2024
from p4perf.evaluation.papers.takeya2024.cesim import CacheHierarchy
from p4perf.evaluation.papers.takeya2024.factors import Factorial, FactorialCell
from p4perf.models.eo import parse_expression
from p4perf.models.queue import moderated
from p4perf.results import RunDirectory
from p4perf.specs import list_catalogue, load_experiment

PAPERS = {paper.key: paper for paper in shipped_papers()}

FILE = PAPER + COMPUTED.replace("computed", "one").replace("{equation: 5}", "{section: 3, figure: 2}")
CHECK = "    check: {name: working-set-bytes, arguments: {key_bytes: 16, action_data_bytes: 64, entries: 1000}}\n"


@pytest.fixture(autouse=True)
def _nothing_is_remembered():
    yield
    for cached in (gebert2016._solved, takeya2024._findings, takeya2024._factors):
        cached.cache_clear()


def found(key):
    """The finding of a claim that is computed."""
    ((paper, claim),) = chosen_claims([key])
    if claim.check is None:
        return impossible(paper.key, claim, claim.reason)
    return judge(paper.key, claim, CHECKS[claim.check.name](**claim.check.arguments))


# --- the claims that ship


def test_the_five_papers():
    assert list(PAPERS) == ["baldi2018", "gebert2016", "ren2025", "scholz2021", "takeya2024"]
    assert sum(len(paper.claims) for paper in PAPERS.values()) > 250


@pytest.mark.parametrize("key", PAPERS)
def test_every_computed_claim_is_as_expected(key):
    computed = [c for c in PAPERS[key].claims if c.measure is None and c.kind != "re-measured by shape"]
    assert len(computed) >= 20
    findings = [found(f"{key}:{claim.id}") for claim in computed]
    assert [(f.key, f.verdict, f.missed, f.drifted) for f in findings if not f.as_expected] == []
    assert {f.verdict for f in findings} == {"reproduced", "not reproduced", "not possible here"} - (
        {"not possible here"}
        if key == "ren2025" and not any(f.verdict == "not possible here" for f in findings)
        else set()
    )


@pytest.mark.parametrize("key", PAPERS)
def test_every_paper_is_measured_again_too(key):
    measured = [claim for claim in PAPERS[key].claims if claim.measure is not None]
    assert measured
    assert all(claim.check.name in SHAPES for claim in measured)


def test_experiments_name_papers_that_have_claims():
    sources = [load_experiment(entry.name).spec.source for entry in list_catalogue()]
    assert {source.paper for source in sources if source is not None} <= PAPERS.keys()


@pytest.mark.parametrize("key", PAPERS)
def test_what_is_measured_is_in_the_catalogue(key):
    for claim in PAPERS[key].claims:
        if claim.measure is not None:
            for changes in (claim.measure.change, (*claim.measure.change, *claim.measure.quick)):
                pairs = [(k, v) for k, _, v in (text.partition("=") for text in changes)]
                assert load_experiment(claim.measure.experiment, overrides=pairs).points


def test_every_claim_has_a_source():
    assert all(claim.source.text() for paper in PAPERS.values() for claim in paper.claims)


def test_every_checked_claim_has_its_evidence():
    checked = [claim for paper in PAPERS.values() for claim in paper.claims if claim.check is not None]
    assert all(claim.evidence for claim in checked)
    assert {claim.evidence for claim in checked} == {"independent", "transcribed", "own"}


def test_what_is_ours_does_not_blame_a_paper():
    """Reconstructions and curves of our own say so, and what is wrong with them does not count against the paper."""
    for key in ("baldi2018:access-by-formulas", "baldi2018:core-by-formulas", "scholz2021:aic-is-too-aggressive",
                "takeya2024:dpdk-s1", "takeya2024:dpdk-s4", "takeya2024:tipping-points",
                "takeya2024:multiplexing-61", "ren2025:crc-and-hash-shift-most"):  # fmt: skip
        finding = found(key)
        assert (finding.verdict, finding.claim.basis) == ("not reproduced", "own")
        assert "says nothing against" in finding.claim.inference


PRINTED_BOUNDS = {"takeya2024:hit-ratio-of-99-99-is-necessary", "ren2025:printf-costs-110-times-as-much-here"}


@pytest.mark.parametrize("key", ["baldi2018", "ren2025", "takeya2024"])
def test_bounds_and_readings_of_ours_say_so(key):
    silent = [claim for claim in PAPERS[key].claims if not claim.inference]
    assert [claim.id for claim in silent if claim.basis == "own"] == []
    bounded = {
        f"{key}:{claim.id}"
        for claim in silent
        if claim.basis == "independent"
        and any(each.at_least is not None or each.at_most is not None for each in claim.expect.values())
    }
    assert bounded <= PRINTED_BOUNDS


def test_one_kind_of_queues_for_all_claims():
    calls = [claim.check.arguments for claim in PAPERS["takeya2024"].claims if claim.check is not None]
    named = {value for arguments in calls for value in arguments.values() if str(value).startswith("dpdk")}
    assert named == {"dpdk_split"}


def test_one_reading_of_rates_for_all_claims_about_figure_3():
    """Frames of 134 B cannot reach 10 Gbit/s without what is between them; all claims count the passes alike."""
    claims = [c for c in PAPERS["scholz2021"].claims if c.check is not None and c.source.figure == "3"]
    rates = [c for c in claims if c.check.name in ("passes-on-the-line", "lossless-frame-bytes")]
    assert len(rates) == 4
    assert all("count preamble and gap" in " ".join(claim.inference.split()) for claim in rates)
    assert {name for c in rates for name in c.expect} == {"gbps", "lowest_bytes", "highest_bytes"}


OF_BOUNDS = ("gebert2016", "scholz2021")


@pytest.mark.parametrize("key", OF_BOUNDS)
def test_bounds_and_negative_verdicts_of_ours_are_explained(key):
    """Bounds that no paper prints, and verdicts that rest on curves or readings of ours, say so."""
    for claim in PAPERS[key].claims:
        bounds = any(each.at_least is not None or each.at_most is not None for each in claim.expect.values())
        if claim.basis == "independent" and bounds:
            assert claim.inference, claim.id
        if claim.basis == "own":
            assert claim.inference or claim.check.name == "curve-line", claim.id


def test_commands_of_queues_show_the_points_of_their_checks():
    """Arrivals, rate and interval of the command are those of an operating point of the check, and it prints what the
    check finds, of which there are no intervals between batches, peaks, or ratios of two points."""
    names = {"det": "det", "pois": "poisson-pmf", "geo": "geometric", "nbin": "nbin"}
    printed = {"mean_batch", "mean_us", "loss_percent", "falls_first", "rises_last"}
    seen = 0
    for claim in PAPERS["gebert2016"].claims:
        arguments = claim.check.arguments if claim.check is not None else {}
        given = [arguments.get(name, ()) for name in ("point", "points", "first", "second")]
        points = [p for each in given for p in ((each,) if isinstance(each, str) else each) if p.count(" ") == 2]
        words = claim.command.split()
        if claim.check is not None and words[1] != "reproduce" and claim.check.name != "batch-over-share":
            assert points or claim.measure is not None, claim.id
        if points and words[1] != "reproduce":
            kind, rate = (words[words.index(option) + 1] for option in ("--arrivals", "--rate"))
            intervals = [words[i + 1] for i, word in enumerate(words) if word == "--moderation"]
            shown = {(kind, rate, interval) for interval in intervals}
            known = {(names[p.split()[0]], f"{1e6 / float(p.split()[1]):.0f}pps", f"{p.split()[2]}us") for p in points}
            assert shown == known, claim.id
            assert set(claim.expect) <= printed, claim.id
            assert ("printed" in claim.command) == (arguments.get("profile") == "printed"), claim.id
            seen += 1
    assert seen >= 5


READ_FROM_MEDIANS = ("curve-ratio", "cell-ratio", "operator-ratio", "operator-dearest", "cost-per-step")
"""Checks whose result is a quotient of two medians, which ``p4perf run`` prints."""


def test_commands_of_measured_claims_show_what_is_checked():
    for key, paper in PAPERS.items():
        for claim in (claim for claim in paper.claims if claim.measure is not None):
            expected = f"p4perf reproduce {key}:{claim.id}"
            if claim.check.name in READ_FROM_MEDIANS:
                expected = f"p4perf run {claim.measure.experiment}"
            assert claim.command.startswith(expected), claim.id


NEIGHBOUR = re.compile(
    r"^(?:It|They|That|These|Those|Both|Here|Beyond that)\b(?! is the)|\b(?:it back|[Tt]he three|the lookup)\b"
)


def test_every_claim_can_be_read_alone():
    """Rows of a list or of a report stand without the ones above."""
    found = [
        f"{key}:{claim.id}" for key, paper in PAPERS.items() for claim in paper.claims if NEIGHBOUR.search(claim.claim)
    ]
    assert found == []


def test_commands_of_checked_claims_can_be_run_as_they_are():
    """None needs a file or a run that only the user has; ``reproduce`` names the claim itself."""
    for key, paper in PAPERS.items():
        for claim in paper.claims:
            words = claim.command.split()
            if claim.check is not None:
                assert not {"data.csv", "RUN", "RESULTS", "FILE.csv"} & set(words), claim.id
            if words[1] == "reproduce":
                assert words[2:] in ([f"{key}:{claim.id}"], ["eivu"]), claim.id


def test_claims_that_are_a_reading_of_ours_say_so():
    """Curves that are made up, and conclusions that the paper does not draw."""
    read = {f"{key}:{claim.id}" for key, paper in PAPERS.items() for claim in paper.claims if claim.inference}
    made_up = {
        f"{key}:{claim.id}"
        for key, paper in PAPERS.items()
        for claim in paper.claims
        if claim.check is not None
        and (
            claim.check.name
            in ("derived-segments", "overfitting", "outlier-sensitivity", "passes-on-the-line", "over-simulation")
            or claim.check.name
            in ("aic-and-margin", "heuristic-breakpoints", "heuristic-on-figure-2", "drops-over-loss")
            or (key == "baldi2018" and claim.id.endswith("-total"))
        )
    }
    assert len(made_up) > 10
    assert made_up <= read
    assert "scholz2021:fig2-l2-full-at-100-entries" in read


# --- what can go wrong: one constant of each paper


def breaks(key, expected="reproduced"):
    finding = found(key)
    return finding.verdict == "not reproduced" and finding.claim.expected == expected and not finding.as_expected


def test_scholz2021_needs_the_72_bytes_of_equation_5(monkeypatch):
    key = "scholz2021:fig2-entries-that-fill-l3"
    assert found(key).verdict == "reproduced"
    monkeypatch.setattr(working_set, "SCHOLZ2021_BYTES_PER_ENTRY", 70.0)
    assert breaks(key)


def test_scholz2021_needs_the_ranks_of_its_functions(monkeypatch):
    key = "scholz2021:smape-alone-overfits"
    assert found(key).verdict == "reproduced"
    monkeypatch.setattr(scholz2021, "SCHOLZ2021_RANKS", {"poly1": 6.0, "poly5": 2.0})
    assert breaks(key)


def test_scholz2021_needs_the_bytes_between_frames(monkeypatch):
    key = "scholz2021:fig3-onset"
    assert found(key).as_expected
    monkeypatch.setattr(scholz2021, "OVERHEAD_BYTES", 0)
    assert found(key).drifted


def test_baldi2018_needs_its_rules(monkeypatch):
    load = baldi2018.load_hardware

    def other(name, profile=None):
        machine = load(name, profile)
        lookup = replace(machine.rules["ht_lookup"], cycles=parse_expression("4 * N + 105 + L1 * ceil(HE / 8) + 5"))
        return replace(machine, rules={**machine.rules, "ht_lookup": lookup})

    assert found("baldi2018:basic-total").verdict == "reproduced"
    monkeypatch.setattr(baldi2018, "load_hardware", other)
    assert breaks("baldi2018:basic-total")
    assert breaks("baldi2018:ht-lookup-12")


def test_baldi2018_needs_the_bytes_between_frames(monkeypatch):
    assert found("baldi2018:one-core-gbps").verdict == "reproduced"
    monkeypatch.setattr(baldi2018, "OVERHEAD_BYTES", 24)
    assert breaks("baldi2018:one-core-gbps")


def test_gebert2016_needs_the_end_of_the_interval(monkeypatch):
    """A packet at the end of an interval belongs to the next one."""
    collect = moderated.collect
    assert found("gebert2016:fig10c-one-packet").verdict == "reproduced"
    gebert2016._solved.cache_clear()
    monkeypatch.setattr(moderated, "collect", lambda arrival, tau: collect(arrival, tau.shifted(1)))
    assert breaks("gebert2016:fig10c-one-packet")


def test_ren2025_needs_the_exponent_that_splits(monkeypatch):
    assert found("ren2025:crc-alone-accelerates").verdict == "reproduced"
    monkeypatch.setattr(quadrants, "LINEAR", 1.3)
    assert breaks("ren2025:crc-alone-accelerates")
    assert found("ren2025:crc-alone-accelerates").quantities == {"arm": ("CRC",), "x86": ()}


def test_takeya2024_needs_the_latencies_of_the_model(monkeypatch):
    assert found("takeya2024:model-latencies").verdict == "reproduced"
    beyond = CacheHierarchy.beyond_l1_ns
    monkeypatch.setattr(CacheHierarchy, "beyond_l1_ns", lambda self, revision="fixed": beyond(self, "pre-fix"))
    assert breaks("takeya2024:model-latencies")
    assert breaks("takeya2024:model-at-99-9")


def test_what_is_found_instead_is_watched(monkeypatch):
    """A claim that is known not to come out is noticed when something else comes out instead."""
    key = "scholz2021:fig2-l2-full-at-100-entries"
    assert found(key).as_expected
    monkeypatch.setattr(working_set, "SCHOLZ2021_BYTES_PER_ENTRY", 70.0)
    assert found(key).verdict == "not reproduced"
    assert not found(key).as_expected
    assert "bytes is 15128" in found(key).drifted[0]


# --- files


def test_a_file():
    paper = parse_paper(FILE.encode(), "mine.yaml")
    (claim,) = paper.claims
    assert (claim.expected, claim.source.text()) == ("reproduced", "section 3, figure 2")
    assert claim.paper_text() == "152128 B"


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("    source: {section: 3, figure: 2}\n", "", 7, "the key 'source' is missing"),
        ("{section: 3, figure: 2}", "{}", 8, "needs a place in its paper"),
        ("{section: 3, figure: 2}", "{chapter: 3}", 8, "unknown key 'chapter'"),
        ("kind: analytic", "kind: guessed", 10, "is not one of"),
        ("kind: analytic", "colour: red\n    kind: analytic", 10, "unknown key 'colour'"),
        ("command: p4perf list", "command: rm -r", 11, "does not match the pattern"),
        ("name: working-set-bytes", "name: working-set-byte", 12, "there is no check 'working-set-byte'"),
        ("entries: 1000}", "entry: 1000}", 12, "cannot be called like this"),
        (CHECK, "", 7, "has a check, unless it is not possible here"),
        ("kind: analytic", "kind: analytic\n    evidence: good", 11, "is not one of"),
        ("{value: 152128, unit: B}", "{value: 152128, at_least: 3}", 13, "has a value, or bounds, or one_of"),
        ("{value: 152128, unit: B}", "{at_least: 3, absolute: 1}", 13, "a tolerance belongs to a value"),
        ("unit: B}}", "unit: B}}\n    verdict: not reproduced", 14, "needs a reason"),
        ("unit: B}}", "unit: B}}\n    verdict: not reproduced\n    reason: so", 7, "needs what is found instead"),
        ("unit: B}}", "unit: B}}\n    verdict: shape reproduced", 14, "can be reproduced, not shape reproduced"),
        ("unit: B}}", "unit: B}}\n    reason: because", 14, "a reason belongs to"),
        (
            "unit: B}}",
            "unit: B}}\n    measure: {experiment: mat/exact-entries}",
            14,
            "measured again have an experiment",
        ),
        ("reproduction_version: 1", "reproduction_version: 2", 1, "is not 1"),
        ("paper: mine2026", "paper: my paper", 2, "does not match the pattern"),
    ],
)
def test_mistakes_are_told_with_their_place(old, new, line, message):
    assert old in FILE
    with pytest.raises(DataError) as failure:
        parse_paper(FILE.replace(old, new, 1).encode(), "mine.yaml")
    assert message in failure.value.message
    assert (failure.value.location.file, failure.value.location.line) == ("mine.yaml", line)


def test_a_claim_that_is_there_twice_is_refused():
    with pytest.raises(DataError, match="duplicate claim one"):
        parse_paper((FILE + FILE[FILE.index("  - id") :]).encode(), "mine.yaml")


def test_choosing(tmp_path):
    assert len(chosen_claims(["ren2025"])) == len(PAPERS["ren2025"].claims)
    assert [claim.id for _, claim in chosen_claims(["baldi2018:basic-total", "baldi2018:one-core-mpps"])] == [
        "basic-total",
        "one-core-mpps",
    ]
    assert all(c.kind == "analytic" for _, c in chosen_claims([], ["analytic"]))
    for key, words in (
        ("scholz2021:fig2", {"2"}),
        ("gebert2016:fig10", {"10a", "10b", "10c"}),
        ("gebert2016:fig9b", {"9b"}),
    ):
        assert {claim.source.figure for _, claim in chosen_claims([key])} == words
    assert {claim.source.equation for _, claim in chosen_claims(["scholz2021:eq5"])} == {"5"}
    assert {claim.source.table for _, claim in chosen_claims(["ren2025:tableII"])} == {"II"}
    path = tmp_path / "mine.yaml"
    path.write_text(FILE)
    assert [claim.id for _, claim in chosen_claims([str(path)])] == ["one"]
    for names, message in ((["scholz"], "there is no paper"), (["ren2025:crc"], "there is no claim 'crc' of ren2025")):
        with pytest.raises(UsageError, match=message):
            chosen_claims(names)
    with pytest.raises(UsageError, match="no claim is left"):
        chosen_claims(["baldi2018:basic-total"], ["published"])


# --- verdicts


@pytest.mark.parametrize(
    ("quantity", "wanted", "good"),
    [
        (10.4, {"value": 10, "absolute": 0.5}, True),
        (10.6, {"value": 10, "absolute": 0.5}, False),
        (10.6, {"value": 10, "relative": 0.1}, True),
        (0.1 + 0.2, {"value": 0.3}, True),
        (213, {"value": 213.0}, True),
        (214, {"value": 213.0}, False),
        (True, {"value": 1}, False),
        (True, {"value": True}, True),
        ("a", {"value": "a"}, True),
        ("a", {"value": 1}, False),
        ("b", {"one_of": ("a", "b")}, True),
        ((1.0, 2.0), {"value": (1, 2)}, True),
        ((1.0, 2.1), {"value": (1, 2), "absolute": 0.05}, False),
        ((1.0,), {"value": (1, 2)}, False),
        ((3, 4), {"at_least": 3}, True),
        ((3, 4), {"at_least": 3.5}, False),
        (float("nan"), {"at_least": 0}, False),
        ("a", {"at_most": 3}, False),
        (Fraction(1, 2), {"value": 0.5}, False),
    ],
)
def test_what_meets_an_expectation(quantity, wanted, good):
    assert meets(quantity, Expectation.model_validate(wanted)) is good


def test_a_measurement_may_come_out_better():
    ((paper, claim),) = chosen_claims(["ren2025:printf-costs-110-times-as-much-here"])
    worse, better = (judge(paper.key, claim, {"ratio": ratio}) for ratio in (40.0, 400.0))
    assert (worse.verdict, worse.as_expected) == ("not reproduced", True)
    assert (better.verdict, better.as_expected) == ("shape reproduced", True)
    assert impossible(paper.key, claim, "no DPDK", ExitCode.UNAVAILABLE).as_expected is False


# --- shapes


def measured(path, **more):
    table = RunDirectory.open(path).read_measurements()
    return MeasuredRun(table, "entries", FitOptions(max_segments=5, resamples=0), log_x=True, **more)


def test_shapes_of_a_curve(tmp_path):
    sweep = (("entries", "{log: [1, 1e6], points_per_decade: 6}"),)
    steps = measured(make_run(tmp_path, lambda x: 80.0 if x < 1000 else 200.0, overrides=sweep))
    segments = shapes.curve_segments(steps)
    assert (segments["segments"], segments["families"]) == (2, ("const", "const"))
    assert segments["left_out_gain"] > 3
    assert shapes.curve_ratio(steps, 10, 1e5)["ratio"] == pytest.approx(2.5, rel=0.05)
    flat = measured(make_run(tmp_path, lambda x: 80.0, overrides=sweep))
    assert shapes.curve_segments(flat)["segments"] == 1
    assert shapes.curve_segments(flat)["left_out_gain"] == 1
    with pytest.raises(NoVerdictError, match="too few points before"):
        shapes.breaks_at_caches(flat)
    assert shapes.curve_ratio(flat, 10, 1e5)["ratio"] == pytest.approx(1, abs=0.05)


def test_a_line_and_its_order(tmp_path):
    sweep = (("entries", "[1, 2, 4, 6, 8, 10]"),)
    line = replace(measured(make_run(tmp_path, lambda x: 20 + 3 * x, overrides=sweep, noise=0)), log_x=False)
    assert shapes.curve_line(line) == pytest.approx(
        {"r_squared": 1, "slope": 3, "growth": 27 / 23, "off_line": 0, "best": "line"}, abs=1e-9
    )
    assert shapes.curve_order(line)["rank_correlation"] == pytest.approx(1)
    assert shapes.cost_per_step(line, "cycles_per_packet", end=8)["ratio"] == pytest.approx(44 / 8 / 23)
    with pytest.raises(NoVerdictError, match="fewer than three points"):
        shapes.curve_line(line, end=2)
    with pytest.raises(NoVerdictError, match="several variables"):
        shapes.curve_line(replace(line, variable=None))


def test_shapes_of_operators(tmp_path):
    path = make_operator_run(tmp_path, {**CURVES, "grows": lambda s: 2.0 * s**1.2, "flat": lambda s: 50.0})
    run = replace(measured(path), variable=None)
    law = shapes.operator_law(run, "grows")
    assert law["exponent"] == pytest.approx(1.2, abs=0.1)
    assert law["r_squared"] > 0.98
    exponents = shapes.operator_exponents(run, ("grows", "flat"))
    assert exponents["highest"] > 1 > exponents["lowest"]
    assert shapes.operator_ratio(run, "grows", "flat")["ratio"] == pytest.approx(2 * 64**1.2 / 50, rel=0.1)
    with pytest.raises(NoVerdictError):
        shapes.operator_law(run, "nothing")


def test_shapes_of_cells():
    rates = {"": 10, "a": 20, "b": 12, "ab": 60}
    cells = {frozenset(name): FactorialCell((float(rate),)) for name, rate in rates.items()}
    run = MeasuredRun(pd.DataFrame(), None, FitOptions(), factorial=Factorial(("a", "b"), cells, "packet_rate", "Mpps"))
    assert shapes.cell_ratio(run, "ab", "base") == {"ratio": 6.0}
    assert shapes.cell_synergy(run, "ab")["synergy"] == pytest.approx(2.5)
    assert shapes.largest_loss_of(run, "ab", "ab")["first"] == "a"
    with pytest.raises(NoVerdictError, match="combination c"):
        shapes.cell_ratio(run, "c", "base")


def test_the_curves_of_the_paper_have_what_the_text_says():
    x, y = CHECKS["derived-segments"].__globals__["_fig2_curve"]()
    assert len(x) == 65
    assert y[np.searchsorted(x, 100)] - y[0] == pytest.approx(0.072 * 99)
    assert y[-1] / y[x == 9e4][0] == pytest.approx(2)
