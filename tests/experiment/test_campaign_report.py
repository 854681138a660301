"""The report of a campaign: every cell with its numbers or its reason, and nothing of a spec that is not escaped."""

import csv
import json
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from support.campaigns import HEADERS, PREFIXES, Listener, new_campaign, specs

from p4perf.evaluation.report import number
from p4perf.experiment.campaign import Campaign
from p4perf.experiment.campaign_report import write_report
from p4perf.experiment.sizing import accepted_share
from p4perf.targets.t4p4s import T4P4STarget

EVIL = '</style><script>alert("1")</script> & <img src=x onerror=alert(2)>'
TABLES = f"""
name: my/tables
title: {json.dumps(EVIL)}
extends: mat/exact-entries
sweep: {{entries: [1, 10, 100, 10000, 1000000]}}
"""
TARGETS = ["fake", "fake-noisy", "fake-small", "fake-partly", "fake-absent"]
VOID = {"meta", "img", "br", "link", "hr"}


class Page(HTMLParser):
    """A page that is well-formed, as far as it was read."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.links, self.ids, self.words, self.rows = [], [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        for name, value in attributes:
            if name in ("href", "src"):
                self.links.append(value)
            if name == "id":
                self.ids.append(value)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    import sys

    from matplotlib.figure import Figure
    from support.command import FAKES, save_blank

    from p4perf import plugins

    folder = tmp_path_factory.mktemp("campaign")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(FAKES), *sys.path])
        patch.setattr(Figure, "savefig", save_blank)
        plugins._found.cache_clear()
        sources = [*specs(folder, TABLES, HEADERS, PREFIXES), "baseline/offered-load"]
        campaign = new_campaign(folder, sources, TARGETS, budget_s=600, overrides=[("trials.repetitions", "2")])
        cells = Campaign(campaign, Listener()).measure()
        report = write_report(campaign, cells)
        yield campaign, cells, report
        plugins._found.cache_clear()


@pytest.fixture(scope="module")
def page(reported):
    return Page((reported[0].path / "report.html").read_text())


@pytest.fixture(scope="module")
def records(reported):
    return json.loads((reported[0].path / "report.json").read_text())


def test_its_files(reported):
    campaign, _, (files, note) = reported
    assert [path.name for path in files] == ["report.html", "report.json", "report.csv"]
    assert all(path.parent == campaign.path and path.stat().st_size for path in files)
    assert note == ""


def test_json_and_csv_have_every_cell_with_numbers_or_a_reason(reported, records):
    campaign, cells, _ = reported
    assert [(r["experiment"], r["target"]) for r in records["cells"]] == [(c.experiment, c.target) for c in cells]
    assert len(cells) == 4 * len(TARGETS)
    for record, cell in zip(records["cells"], cells, strict=True):
        assert record["state"] == cell.state
        if cell.state == "measured" and cell.accepted:
            assert record["first_cost_cycles_per_packet"] > 0
            assert record["model"] or cell.accepted < 3
        else:
            assert record["first_cost_cycles_per_packet"] is None
            assert record["reason"] or cell.state == "measured"
    with (campaign.path / "report.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [list(row) for row in rows] == [list(record) for record in records["cells"]]
    assert [row["state"] for row in rows] == [cell.state for cell in cells]
    share = sum(c.accepted for c in cells) / sum(c.points for c in cells)
    assert records["accepted_share"] == accepted_share(cells) == pytest.approx(share)


def test_costs_are_those_of_the_first_and_the_last_point(records):
    (tables,) = [r for r in records["cells"] if (r["experiment"], r["target"]) == ("my/tables", "fake")]
    first, last = tables["first_cost_cycles_per_packet"], tables["last_cost_cycles_per_packet"]
    assert first == pytest.approx(90, abs=2)
    assert last == pytest.approx(90 + 3 * 40, abs=2)
    assert tables["slope_cycles_per_packet"] == pytest.approx((last - first) / (1e6 - 1))
    (partly,) = [r for r in records["cells"] if (r["experiment"], r["target"]) == ("my/tables", "fake-partly")]
    assert partly["last_cost_cycles_per_packet"] == pytest.approx(90, abs=2), "of the last point that was measured"


def test_the_page_is_well_formed_and_names_every_cell(page, reported):
    _, cells, _ = reported
    text = " ".join(" ".join(page.words).split())
    for cell in cells:
        assert cell.experiment in page.ids
        assert cell.target in text
        if cell.state in ("refused", "unavailable"):
            assert cell.reason in text
        for reason in (*cell.refused_points, *cell.failed_points):
            assert reason in text
    units = {row[0]: row[2] for row in page.rows if len(row) > 2}
    overview = {row[0]: row[3:] for row in page.rows if row and row[0] in {c.experiment for c in cells}}
    assert set(overview) == {c.experiment for c in cells}
    assert overview["baseline/offered-load"] == ["refused"] * 4 + ["unavailable"]
    row = overview["my/tables"]
    assert units["my/tables"] == "cycles/packet above the baseline"
    assert "→" in row[0]
    assert "slope" in row[0]
    assert row[1] == "no accepted point"
    assert "3 of 5 points" in row[3]
    assert row[-1] == "unavailable"


def test_the_page_says_how_much_was_measured(page, reported):
    _, cells, _ = reported
    text = " ".join(" ".join(page.words).split())
    accepted, planned = sum(c.accepted for c in cells), sum(c.points for c in cells)
    assert f"{accepted} of {planned} planned points ({number(100 * accepted_share(cells))} %)" in text
    states = [c.state for c in cells]
    assert f"Pairs of experiment and target: {len(cells)}; measured: {states.count('measured')}" in text
    assert f"refused by the target: {states.count('refused')}" in text
    assert "with a budget of 10 min" in text


def test_nothing_of_a_spec_is_taken_for_html(page):
    assert not [tag for tag, attributes in page.tags if "onerror" in attributes]
    assert [attributes for tag, attributes in page.tags if tag == "script"] == [{}], "that of the page itself"
    assert EVIL in page.words


def test_links_lead_somewhere(page, reported):
    campaign, cells, _ = reported
    assert len(page.ids) == len(set(page.ids))
    runs = {c.run for c in cells if c.run}
    for link in page.links:
        if link.startswith("#"):
            assert unquote(link[1:]) in page.ids
        else:
            assert not Path(link).is_absolute()
            assert (campaign.path / link).exists(), link
    assert {link.rstrip("/") for link in page.links} >= runs
    assert "comparison/overview.svg" in page.links


def test_what_was_not_reached_is_there_too(reported, tmp_path, fakes):
    campaign = new_campaign(tmp_path, specs(tmp_path, HEADERS), ["fake", "fake-small"], budget_s=60)
    campaign.update({"left_s": 0.0})
    cells = Campaign(campaign, Listener()).measure()
    write_report(campaign, cells)
    assert accepted_share(cells) == 0
    found = json.loads((campaign.path / "report.json").read_text())["cells"]
    assert [(r["state"], r["reason"]) for r in found] == [("open", "not reached")] * 2
    page = Page((campaign.path / "report.html").read_text())
    assert "Nothing was measured" in " ".join(page.words)
    assert "not reached, or stopped before the end: 2" in " ".join(page.words)


def test_what_is_compared_with_t4p4s_has_its_caution(tmp_path, fakes):
    campaign = new_campaign(tmp_path, specs(tmp_path, HEADERS), ["fake", "t4p4s"], budget_s=60)
    campaign.update({"left_s": 0.0})
    write_report(campaign, Campaign(campaign, Listener()).measure())
    assert (campaign.path / "report.html").read_text().count(T4P4STarget.caution) == 1


@pytest.mark.thorough
def test_one_target_of_several_variables(tmp_path, fakes):
    """There is no single curve: costs are those of the first and the last point, without a slope."""
    text = """
name: my/plane
extends: mat/exact-entries
model: null
sweep: {entries: [1, 100000], action_data_bytes: [4, 8]}
program: {parameters: {action_data_bytes: $action_data_bytes}}
"""
    sources = specs(tmp_path, text.replace("[4, 8]", "[4]"), HEADERS)
    campaign = new_campaign(tmp_path, sources, ["fake", "fake-small"], overrides=[("trials.repetitions", "1")])
    cells = Campaign(campaign, Listener()).measure()
    write_report(campaign, cells)
    first = json.loads((campaign.path / "report.json").read_text())["cells"][0]
    assert first["last_cost_cycles_per_packet"] > first["first_cost_cycles_per_packet"]
    assert first["slope_cycles_per_packet"] is None
    page = Page((campaign.path / "report.html").read_text())
    assert "my/plane" in page.ids
    assert "comparison/my-headers.svg" in page.links


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (float("nan"), "–"), (0.0, "0"), (-1.5, "−1.5"), (123456.0, "123500"), (1e-7, "1e−7")],
)
def test_numbers_for_people(value, text):
    assert number(value) == text
