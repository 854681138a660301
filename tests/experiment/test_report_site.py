"""The site of runs: what is in its pages, and how it gets to disk."""

import json
import re
from dataclasses import asdict
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from support.runs import make_run

from p4perf.errors import DataError, UsageError
from p4perf.experiment.compare import compare_runs, comparison_document
from p4perf.experiment.evaluate import evaluate_run
from p4perf.experiment.report.site import Site, find_sources, write_site
from p4perf.experiment.sizing import Cell
from p4perf.results import Run
from p4perf.results.campaign import CampaignDirectory
from p4perf.results.files import strict_json
from p4perf.targets.t4p4s import T4P4STarget

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


class Page(HTMLParser):
    """The links, scripts, handlers and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.scripts: list[dict[str, str | None]] = []
        self.handlers: list[str] = []
        self.data: list[str] = []
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.links += [value for key in ("href", "src") if (value := values.get(key))]
        if tag == "script":
            self.scripts.append(values)
            self._inside = values.get("type") == "application/json"

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.data.append(data)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for target, step in (("dpdk-c", 1.0), ("xdp", 2.0)):
        path = make_run(
            folder,
            lambda x, step=step: 100 + step * x**0.3,
            target=target,
            rejected=(1e6,),
            node={"cpu_model": EVIL},
            manifest={
                "refused": [{"values": {"entries": 7}, "reason": EVIL}],
                "working_set": {"fixed_bytes": 0, "bytes_per_entry": 64},
                "environment": [{"check": "interrupts", "state": "warning", "value": EVIL, "advice": ""}],
            },
        )
        evaluate_run(Run.open(path), plots=False)
    return folder


@pytest.fixture(scope="module")
def site(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return write_site(find_sources([runs]), tmp_path_factory.mktemp("out") / "site")


def text_of(site: Site, pattern: str) -> str:
    (path,) = site.path.glob(pattern)
    return path.read_text()


def test_a_page_for_each_run_and_comparison(site: Site) -> None:
    assert site.pages == {"index": 1, "matrix": 0, "run": 2, "comparison": 1, "history": 0, "document": 0}
    assert site.notes == ()
    assert site.index.is_file()


def test_every_link_leads_to_a_file_of_the_site(site: Site) -> None:
    for path in site.path.rglob("*.html"):
        for link in Page(path.read_text()).links:
            if link.startswith(("#", "data:")):
                continue
            assert not re.match(r"[a-z]+:|//", link), f"{path.name}: {link} leads out of the site"
            assert (path.parent / link).is_file(), f"{path.name}: {link}"


def test_what_runs_say_is_text_and_never_markup(site: Site) -> None:
    for path in site.path.rglob("*.html"):
        text = path.read_text()
        page = Page(text)
        assert page.handlers == [], path.name
        assert EVIL not in text
        assert "<img" not in text
        sources = [s.get("src") for s in page.scripts if s.get("type") != "application/json"]
        assert {Path(str(source)).name for source in sources} <= {"tables.js", "figures.js"}, path.name
    assert "&lt;img src=x" in text_of(site, "runs/*xdp*.html")


def test_pages_allow_only_scripts_of_their_own(site: Site) -> None:
    for path in site.path.rglob("*.html"):
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', path.read_text())
        assert policy
        assert "default-src 'none'; script-src 'self' file:;" in policy[1]
        assert "http" not in policy[1]


def test_plotly_is_there_once_and_pages_are_small(site: Site) -> None:
    assert len(list(site.path.rglob("plotly.min.js"))) == 1
    assert all(path.stat().st_size < 120_000 for path in site.path.rglob("*.html"))


def test_the_figure_holds_repetitions_medians_segments_and_marks(site: Site) -> None:
    (data,) = Page(text_of(site, "runs/*dpdk-c*.html")).data
    figure = json.loads(data)
    assert figure["scale"] == "log"
    assert len(figure["trials"]) == 3 * 13
    assert [t[3] for t in figure["trials"] if t[0] == 1e6] == [0, 0, 0]
    (medians,) = figure["points"]
    assert len(medians["rows"]) == 12, "points without an accepted trial have no median"
    assert medians["rows"][0][1] == pytest.approx(101, rel=0.05)
    assert figure["lines"][0]["x"][0] == 1
    assert len(figure["lower"]["points"][0]["rows"]) == 12
    entries = {entry["key"] for entry in figure["legend"]}
    assert entries >= {line["key"] for line in figure["lines"]} | {"medians", "repetitions", "rejected"}


def test_a_still_drawing_has_the_same_marks(site: Site) -> None:
    text = text_of(site, "runs/*dpdk-c*.html")
    still = text.partition('<svg class="still"')[2].partition('<div class="live">')[0]
    assert len(re.findall(r'<use href="#m0" class="c0"', still)) == 2 * 12, "medians, and residuals below"
    assert still.count("<polyline") >= 1
    assert len(re.findall(r"h0", still)) == 3 * 13, "every repetition is a dot"


def test_the_tables_hold_the_numbers_without_a_script(site: Site) -> None:
    text = text_of(site, "runs/*dpdk-c*.html")
    assert "12 of 13" in text
    assert "no_accepted_rows" in text
    assert "few_windows" in text
    assert re.search(r"<th scope=\"row\" class=\"n\">1000000</th><td class=\"n\">–</td>", text)
    assert re.search(r"<th scope=\"row\" class=\"n\">1</th><td class=\"n\" data-v=\"10[\d.]+\">10[\d.]+</td>", text)


def test_the_comparison_says_the_verdict_and_the_ratios(site: Site) -> None:
    text = text_of(site, "experiments/*.html")
    assert "xdp: slower" in text
    (data,) = Page(text).data
    figure = json.loads(data)
    assert [group["key"] for group in figure["points"]] == ["dpdk-c", "xdp"]
    assert {line["key"] for line in figure["lines"]} == {"dpdk-c", "xdp"}
    assert figure["lower"]["points"][0]["rows"][-1][1] > 1
    for entry in figure["legend"]:
        assert re.match(rf"{entry['key']}: .*entries", entry["text"]), "the legend has the model"


def test_listings_are_marked_words(site: Site) -> None:
    text = text_of(site, "runs/*dpdk-c*.html")
    assert "Spec as resolved" in text
    assert "<i class=k>control</i>" in text
    assert "<i class=k>function</i>" in text.partition("Its load for MoonGen")[2]


def test_the_same_runs_give_the_same_bytes(site: Site, runs: Path, tmp_path: Path) -> None:
    again = write_site(find_sources([runs]), tmp_path / "again", processes=1)
    names = sorted(p.relative_to(site.path) for p in site.path.rglob("*") if p.is_file())
    assert names == sorted(p.relative_to(again.path) for p in again.path.rglob("*") if p.is_file())
    assert all((site.path / name).read_bytes() == (again.path / name).read_bytes() for name in names)


def test_a_site_is_replaced_and_a_foreign_folder_is_not(runs: Path, tmp_path: Path) -> None:
    run = next(runs.iterdir())
    folder = tmp_path / "site"
    write_site(find_sources([runs]), folder)
    write_site(find_sources([run]), folder)
    assert len(list((folder / "runs").iterdir())) == 1
    assert not (folder / "experiments").exists()
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="did not make"):
        write_site(find_sources([run]), foreign)
    assert [p.name for p in foreign.iterdir()] == ["thesis.tex"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["foreign", "site"], "nothing is left behind"


def test_a_stored_comparison_is_shown_with_its_runs(runs: Path, tmp_path: Path) -> None:
    record = comparison_document(compare_runs(sorted(runs.iterdir()))).as_dict()
    record["experiments"][0]["pairs"][0]["reason"] = "because it is written here"
    (tmp_path / "comparison.json").write_text(strict_json(record))
    site = write_site(find_sources([tmp_path]), tmp_path / "site")
    assert site.pages["run"] == 2
    assert "because it is written here" in text_of(site, "experiments/*.html")


def test_comparisons_with_t4p4s_say_where_its_cycles_go(tmp_path: Path) -> None:
    for target, overrides in (("dpdk-c", ()), ("t4p4s", ()), ("xdp", (("name", "my/other"),))):
        sweep = (("entries", "[1, 10, 100]"), *overrides)
        make_run(tmp_path / "runs", lambda x: 105 + x**0.3, target=target, overrides=sweep, starts=1)
    site = write_site(find_sources([tmp_path / "runs"]), tmp_path / "site")
    for page in ("matrix.html", "experiments/*.html"):
        assert text_of(site, page).count(T4P4STarget.caution) == 1
    assert T4P4STarget.caution not in text_of(site, "index.html")


def test_a_damaged_run_is_noted_beside_the_others(runs: Path, tmp_path: Path) -> None:
    good = make_run(tmp_path / "runs", lambda x: x + 10, target="dpdk-c", starts=1)
    bad = make_run(tmp_path / "runs", lambda x: x + 10, target="xdp", starts=1)
    (bad / "manifest.json").write_text("{")
    site = write_site(find_sources([tmp_path / "runs"]), tmp_path / "site")
    assert site.pages["run"] == 1
    assert bad.name in site.notes[0]
    assert "What could not be shown" in site.index.read_text()
    (good / "manifest.json").write_text("{")
    with pytest.raises(DataError, match="none of 2 runs"):
        write_site(find_sources([tmp_path / "runs"]), tmp_path / "site2")


def test_a_run_without_numbers_has_a_page_that_says_why(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", lambda x: x, starts=1)
    (run / "measurements.parquet").unlink()
    site = write_site(find_sources([run]), tmp_path / "site")
    assert "There are no numbers: the run has no measurements yet" in text_of(site, "runs/*.html")


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_paths_that_hold_nothing_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=name):
        find_sources([tmp_path / name])


@pytest.mark.parametrize("version", [1, 2])
def test_predictions_and_claims_have_pages(tmp_path: Path, version: int) -> None:
    cycles = {"value": 90.0, "low": 80.0, "high": 100.0}
    line = {"node": "a", "part": "parser", "construct": "extract", "where": "", "times": 2.0, "cycles": 40.0}
    line |= {"low": 30.0, "high": None, "basis": "measured", "source": "flat/extract"}
    unpriced = {**line, "construct": "hash", "basis": "unknown", "cycles": 0.0}
    prediction = {
        "program": EVIL, "values": {"n": 3}, "changes": [], "model": {"name": "m", "target": "flat", "machine": "b"},
        "cycles": cycles, "open_above": True, "sizes": [], "warnings": ["take care"],
        "mpps_per_core": {**cycles, "high": None},
        "memory_bytes": 4096.0, "memory": [
            {"what": f"table {EVIL}", "bytes": 4096.0, "basis": "formula", "source": "layout of DPDK"},
            {"what": "array a", "bytes": None, "basis": "unknown", "source": ""},
        ],
        "paths": [{"path": "expected", "cycles": cycles, "steps": [], "probability": None, "baseline_cycles": 20.0,
                   "interaction_cycles": 0.0, "breakdown": [line, line, unpriced]}],
    }  # fmt: skip
    document = {"schema_version": version, "kind": "predict", "path": "expected", "predictions": [prediction]}
    written = json.dumps(document)
    if version == 1:
        written = written.replace('"breakdown"', '"bill"').replace("interaction_cycles", "context_cycles")
    (tmp_path / "prediction.json").write_text(written)
    claim = {"paper": "who2020", "claim": "it-grows", "source": "figure 1", "text": "It grows.", "kind": "computed",
             "command": "p4perf fit", "paper_value": "2", "our_value": "1", "verdict": "not reproduced",
             "expected": "reproduced", "as_expected": False, "reason": EVIL, "run": "",
             "inference": "We take it so.", "evidence": "independent"}  # fmt: skip
    claims = {"kind": "reproduction", "created": "2026-01-02T03:04:05+00:00", "claims": {"who2020:it-grows": claim}}
    (tmp_path / "reproduction.json").write_text(json.dumps(claims))
    site = write_site(find_sources([tmp_path]), tmp_path / "site")
    assert site.pages["document"] == 2, site.notes
    predicted = text_of(site, "predictions/*.html")
    bars = predicted.partition('<table class="bars">')[2].partition("</table>")[0]
    assert re.findall(r'row">([^<]*)</th>.*?width: ([\d.]+)%', bars) == [
        ("extract (parser)", "100.0"),
        ("baseline", "25.0"),
    ]
    assert "<b " not in bars, "an open interval has no line"
    assert re.search(r"hash</th><td>parser</td><td class=\"n\" data-v=\"2\">2</td><td class=\"n\">–</td>", predicted), (
        "no price is not 0"
    )
    assert re.search(r"<dt>memory</dt><dd>4 KiB</dd>", predicted)
    assert "<td>formula</td><td>layout of DPDK</td>" in predicted
    assert '<th scope="row">array a</th><td class="n">unknown</td><td>unknown</td>' in predicted
    assert "take care" in predicted
    found = text_of(site, "claims/*.html")
    assert "expected: reproduced" in found
    assert "Our reading: We take it so." in found
    assert "evidence: independent" in found
    assert "0 reproduced by independent evidence. By evidence and verdict: 1 independent not reproduced." in found
    assert all(EVIL not in page for page in (predicted, found))


def test_a_document_of_another_version_is_noted(tmp_path: Path) -> None:
    (tmp_path / "prediction.json").write_text('{"kind": "predict", "predictions": [{}], "path": "expected"}')
    site = write_site(find_sources([tmp_path]), tmp_path / "site")
    assert "of another version of p4perf" in site.notes[0]


def test_a_damaged_comparison_is_noted(tmp_path: Path) -> None:
    (tmp_path / "comparison.json").write_text('{"kind": "comparison", "experiments": [{}]}')
    site = write_site(find_sources([tmp_path]), tmp_path / "site")
    assert "comparison.json is damaged" in site.notes[0]


@pytest.mark.parametrize(
    ("place", "value", "note"),
    [
        ((), [], "experiments is not array"),
        ((0, "runs", 0, "model", "formulas"), {"x": 1}, "formulas is not array"),
        ((0, "runs", 0, "label"), {"x": 1}, "experiments[0].runs[0].label is not string"),
        ((0, "runs", 1, "label"), "another", "experiments/mat-exact-entries.html is damaged"),
        ((0, "pairs", 0, "ratios", 0, "x"), "1", "experiments[0].pairs[0].ratios[0].x is not number"),
        ((0, "pairs", 0, "ratios", 0, "ratio"), int("9" * 400), "ratios[0].ratio is not number"),
        ((0, "unit"), "\ud800", ""),
        ((0, "runs", 0, "run"), "x" * 5000, ""),
    ],
)
def test_a_comparison_from_a_stranger(
    runs: Path, tmp_path: Path, place: tuple[str | int, ...], value: object, note: str
) -> None:
    content = comparison_document(compare_runs(sorted(runs.iterdir()))).as_dict()
    holder: Any = content["experiments"]
    for key in place[:-1]:
        holder = holder[key]
    if place:
        holder[place[-1]] = value
    else:
        content["experiments"] = {}
    (tmp_path / "comparison.json").write_text(json.dumps(content))
    site = write_site(find_sources([tmp_path]), tmp_path / "site")
    assert note in " ".join(site.notes)
    assert site.index.is_file()


def test_what_a_campaign_did_not_measure_stands_in_the_matrix_with_its_reason(tmp_path: Path) -> None:
    now = datetime(2026, 11, 21, tzinfo=UTC)
    request = {"experiments": ["a/b"], "sources": ["a/b"], "targets": ["t"], "testbed": "local", "budget_s": None,
               "overrides": [], "points": None}  # fmt: skip
    campaign = CampaignDirectory.create(tmp_path, "catalogue", request, now)
    run = make_run(campaign.runs, lambda x: 100 + x, starts=1)
    measured = Cell("mat/exact-entries", "dpdk-c", "measured", run=f"runs/{run.name}", points=13, accepted=13)
    refused = Cell("a/b", "t", "refused", reason=EVIL)
    campaign.update({"cells": [asdict(measured), asdict(refused)]})
    site = write_site(find_sources([campaign.path]), tmp_path / "site")
    assert site.pages["matrix"] == 1
    matrix = text_of(site, "matrix.html")
    assert "<summary>refused</summary><small>&lt;/script&gt;" in matrix
    assert re.search(r"runs/mat-exact-entries[^\"]*\">\S+ → \S+</a>", matrix)
    assert '<td>entries</td><td class="unit">cycles/packet in total</td>' in matrix, "the row says what its numbers are"


def test_all_numbers_of_a_row_have_one_base(tmp_path: Path) -> None:
    """Above the baseline only if every target gives that; the index has what the model is of."""
    for target, others in (("a", {"cost_cycles_per_packet": lambda x: 5 + x**0.3}), ("b", {})):
        make_run(tmp_path / "runs", lambda x: 105 + x**0.3, target=target, metrics=others, starts=1, noise=0)
    make_run(tmp_path / "runs", lambda x: 105 + x, spec="parser/headers", overrides=(), target="a", starts=1,
             metrics={"cost_cycles_per_packet": lambda x: 5 + x})  # fmt: skip
    site = write_site(find_sources([tmp_path / "runs"]), tmp_path / "site")
    rows = text_of(site, "matrix.html").partition("<tbody>")[2].split("<tr>")[1:]
    assert ["in total" in row for row in rows] == [True, False]
    assert ["above the baseline" in row for row in rows] == [False, True]
    assert rows[0].count(">106 → ") == 2
    assert "earlier runs" not in rows[0]
    index = text_of(site, "index.html")
    assert index.count("<td>cycles/packet in total</td>") == 3
    assert "above the baseline" not in index


def test_runs_of_one_machine_have_a_history_with_verdicts_of_the_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import support.runs

    for day, slower in enumerate((1.0, 1.0, 1.2, 1.0), 1):
        monkeypatch.setattr(support.runs, "NOW", datetime(2026, 11, day, tzinfo=UTC))
        commit = {"commit": f"{day}abcdef12345"} if day != 3 else {}
        make_run(tmp_path / "runs", lambda x, slower=slower: slower * (100 + x**0.3), seed=day, manifest=commit)
    make_run(tmp_path / "runs", lambda x: 100 + x**0.3, target="xdp")
    other = make_run(tmp_path / "runs", lambda _: 100, overrides=(("sweep", "{}"), ("model", "null"),
                                                                  ("program.parameters.entries", "5")))  # fmt: skip
    site = write_site(find_sources([tmp_path / "runs"]), tmp_path / "site")
    assert site.pages["history"] == 1, "a run that sweeps something else is no part of it"
    text = text_of(site, "history/*.html")
    assert other.name not in text
    assert re.findall(r"<strong>([^<]*)</strong>", text) == ["–", "same", "slower", "faster"]
    (data,) = Page(text).data
    figure = json.loads(data)
    names = ["2026-11-01 1abcdef", "2026-11-02 2abcdef", "2026-11-03 00:00", "2026-11-04 4abcdef"]
    assert [row[0] for row in figure["points"][0]["rows"]] == names
    assert [row[1] for row in figure["lower"]["points"][0]["rows"]] == pytest.approx([1, 1.2, 1 / 1.2], rel=0.02)
    assert "<td>faster</td>" in text_of(site, "index.html"), "the verdict of the newest"
    compared = text_of(site, "experiments/*.html")
    assert "dpdk-c, xdp</h1>" in compared, "of each target the newest run is compared"
    assert "2026-11-04 00:00" in compared


def test_runs_of_several_stored_comparisons_lead_each_to_its_own(tmp_path: Path) -> None:
    for name in ("a", "b"):
        runs = [make_run(tmp_path / name / "runs", lambda x: 100 + x**0.3, target=t, starts=1, manifest={"n": name})
                for t in (f"{name}1", f"{name}2")]  # fmt: skip
        (tmp_path / name / "comparison.json").write_text(strict_json(comparison_document(compare_runs(runs)).as_dict()))
    site = write_site(find_sources([tmp_path / "a", tmp_path / "b"]), tmp_path / "site")
    assert "experiments/mat-exact-entries.html" in text_of(site, "runs/*--a1--*.html")
    assert "experiments/mat-exact-entries-2.html" in text_of(site, "runs/*--b2--*.html")
