"""Campaigns: what becomes of every experiment on every target, and how they are gone on with."""

import json

import pytest
from support.campaigns import HEADERS, PREFIXES, TABLES, Listener, measure, new_campaign, specs

from p4perf.errors import DataError, SpecError, StorageError, UsageError
from p4perf.experiment import campaign as module
from p4perf.experiment import measure_run
from p4perf.experiment.campaign import Campaign
from p4perf.experiment.recorder import Silent
from p4perf.experiment.sizing import OPEN
from p4perf.results import RunDirectory
from p4perf.results.campaign import CampaignDirectory

pytestmark = pytest.mark.usefixtures("fakes")
FEW = (("trials.repetitions", "2"),)


def journals(campaign):
    """Trials on disk by run and point."""
    found = {}
    for path in campaign.runs.glob("*/points/*/raw.jsonl"):
        found[path.parts[-4], path.parts[-2]] = [json.loads(line)["trial"] for line in path.read_text().splitlines()]
    return found


def points_of(campaign, cell):
    return [p["values"] for p in RunDirectory.open(campaign.path / cell.run).manifest()["points"]]


@pytest.mark.thorough
def test_every_experiment_on_every_target(tmp_path):
    targets = ["fake", "fake-small:careful", "fake-partly", "fake-noisy"]
    campaign = new_campaign(tmp_path, specs(tmp_path, TABLES, PREFIXES), targets, overrides=FEW)
    listener = Listener()
    cells = measure(campaign, listener)
    assert list(cells) == [(e, t) for e in ("my/tables", "my/prefixes") for t in targets]

    whole = cells["my/tables", "fake"]
    assert (whole.state, whole.points, whole.accepted, whole.trials) == ("measured", 6, 6, 12)
    assert (whole.repetitions, whole.full_points, whole.error) == (2, 6, None)
    assert whole.complete
    assert not whole.thinned
    assert "fake" in RunDirectory.open(campaign.path / whole.run).read_text("model.json")

    small = cells["my/tables", "fake-small:careful"]
    assert (small.state, small.points, small.accepted, len(small.refused_points)) == ("measured", 3, 3, 3)
    assert small.refused_points[0].startswith("entries=1000: 1,000 exact entries are more than the 100 ")
    assert not small.thinned, "what is refused is not left out for lack of time"

    refused = cells["my/prefixes", "fake-small:careful"]
    assert (refused.state, refused.run, refused.complete) == ("refused", "", True)
    assert "fake-small has no lpm: it counts on its fingers" in refused.reason

    partly = cells["my/tables", "fake-partly"]
    assert (partly.state, partly.points, partly.accepted, len(partly.failed_points)) == ("measured", 6, 3, 3)
    assert "packet 7 differs at byte 30" in partly.failed_points[0]
    assert "generated files: points/" in partly.failed_points[0], "beside the report, wherever that is moved"
    assert "undeclared" in partly.failed_points[1]

    noisy = cells["my/tables", "fake-noisy"]
    assert (noisy.state, noisy.accepted, noisy.complete) == ("measured", 0, True)

    assert [text.partition("]")[0] for text in listener.told] == [f"[{number}/8" for number in range(1, 9)]
    assert "my/prefixes" in listener.told[0], "small experiments come first"


def test_what_is_left_is_estimated_before_and_shrinks(tmp_path):
    campaign = new_campaign(tmp_path, specs(tmp_path, HEADERS, TABLES), ["fake"], overrides=FEW)
    heard = []
    measure(campaign, reached=lambda what, left_s: heard.append((what, left_s)))
    assert heard[0][0] == "campaign"
    assert heard[0][1] > heard[-1][1] >= 0
    assert any(what.startswith("my/headers on fake, headers=") for what, _ in heard)


def test_within_a_budget_that_is_what_is_left_of_it(tmp_path):
    campaign = new_campaign(tmp_path, specs(tmp_path, HEADERS), ["fake"], budget_s=500, overrides=FEW)
    heard = []
    measure(campaign, reached=lambda what, left_s: heard.append(left_s))
    assert heard
    assert all(300 < left_s <= 500 for left_s in heard)


def test_a_run_that_fails_stops_nothing(tmp_path):
    campaign = new_campaign(tmp_path, specs(tmp_path, HEADERS), ["fake-wrong", "fake-defect", "fake"], overrides=FEW)
    cells = measure(campaign)
    wrong, defect = cells["my/headers", "fake-wrong"], cells["my/headers", "fake-defect"]
    assert (wrong.state, wrong.points, wrong.accepted) == ("failed", 3, 0)
    assert "packet 7 differs" in wrong.reason
    assert wrong.complete, "it would fail again"
    assert (defect.state, defect.complete) == ("failed", False)
    assert "this is a defect of p4perf: KeyError" in defect.reason
    assert cells["my/headers", "fake"].good


@pytest.mark.thorough
def test_a_target_that_becomes_available_is_measured_by_a_resume(tmp_path, fakes, monkeypatch):
    campaign = new_campaign(tmp_path, specs(tmp_path, HEADERS), ["fake", "fake-absent"], overrides=FEW)
    before = measure(campaign)
    absent = before["my/headers", "fake-absent"]
    assert (absent.state, absent.complete, absent.points) == ("unavailable", False, 0)
    assert "no flux capacitor on the PATH (install one)" in absent.reason
    monkeypatch.setattr(fakes("fake-absent"), "problems", lambda *_: ())
    listener = Listener()
    after = measure(campaign, listener)
    assert after["my/headers", "fake-absent"].accepted == 3
    assert after["my/headers", "fake"] == before["my/headers", "fake"]
    assert len(listener.told) == 1


@pytest.mark.thorough
def test_a_target_that_has_gone_does_not_take_its_run_along(tmp_path, fakes, monkeypatch):
    campaign = new_campaign(tmp_path, specs(tmp_path, HEADERS), ["fake"], overrides=FEW)
    (cell,) = measure(campaign).values()
    entry = {**campaign.content()["cells"][0], "complete": False}
    campaign.update({"cells": [entry]})
    with monkeypatch.context() as patch:
        patch.setattr(fakes("fake"), "problems", fakes("fake-absent").problems)
        (kept,) = measure(campaign).values()
    assert (kept.state, kept.run, kept.accepted) == ("measured", cell.run, cell.accepted)


def test_a_complete_campaign_is_left_as_it_is(tmp_path):
    campaign = new_campaign(tmp_path, specs(tmp_path, HEADERS), ["fake"], budget_s=60, overrides=FEW)
    cells = measure(campaign)
    content, trials = campaign.content(), journals(campaign)
    listener = Listener()
    assert measure(campaign, listener) == cells
    assert (campaign.content(), journals(campaign), listener.told) == (content, trials, [])


@pytest.mark.thorough
def test_an_interrupted_campaign_goes_on_and_all_targets_choose_from_the_same_points(tmp_path):
    sources = specs(tmp_path, TABLES, HEADERS)
    campaign = new_campaign(tmp_path, sources, ["fake", "fake-noisy"], budget_s=3600, overrides=FEW)
    with pytest.raises(KeyboardInterrupt):
        measure(campaign, Listener(interrupt_after=3))
    before = campaign.content()
    assert len(before["cells"]) == 3
    assert 0 < before["spent_s"] < 3600
    assert before["left_s"] == pytest.approx(3600 - before["spent_s"], abs=0.1)
    trials = journals(campaign)
    cells = measure(campaign)
    first, second = cells["my/tables", "fake"], cells["my/tables", "fake-noisy"]
    assert points_of(campaign, first) == points_of(campaign, second)
    assert {key: journals(campaign)[key][: len(t)] for key, t in trials.items()} == trials, "nothing is measured twice"
    assert len(list(campaign.runs.iterdir())) == 4


@pytest.mark.thorough
def test_an_interrupt_amid_a_run(tmp_path, monkeypatch):
    """The run is on record before its first trial."""
    campaign = new_campaign(tmp_path, specs(tmp_path, HEADERS), ["fake"], overrides=FEW)

    class Impatient(Silent):
        trials = 0

        def trial(self, *_):
            Impatient.trials += 1
            if Impatient.trials == 4:
                raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "measure_run", lambda *given, **more: measure_run(*given[:-1], Impatient(), **more))
        with pytest.raises(KeyboardInterrupt):
            measure(campaign)
    (entry,) = campaign.content()["cells"]
    assert (entry["state"], entry["complete"], entry["points"]) == (OPEN, False, 3)
    (run,) = campaign.runs.iterdir()
    assert entry["run"] == f"runs/{run.name}"
    assert sum(map(len, journals(campaign).values())) == 4
    (cell,) = measure(campaign).values()
    assert (cell.state, cell.accepted, cell.trials, cell.complete) == ("measured", 3, 6, True)
    assert [t["attempt"] for trials in journals(campaign).values() for t in trials] == [0, 1] * 3
    assert list(campaign.runs.iterdir()) == [run]


class TestDamage:
    @pytest.fixture
    def campaign(self, tmp_path):
        made = new_campaign(tmp_path, specs(tmp_path, HEADERS), ["fake"], overrides=FEW)
        cell = {"experiment": "my/headers", "target": "fake", "state": "open", "complete": False}
        made.update({"cells": [cell]})
        return made

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("experiments", None),
            ("experiments", []),
            ("sources", "x"),
            ("targets", 3),
            ("testbed", None),
            ("budget_s", "long"),
            ("overrides", [["a"]]),
            ("points", "4"),
            ("spent_s", None),
            ("left_s", "x"),
            ("cells", {}),
            ("cells", [3]),
            ("cells", [{"experiment": "a"}]),
            ("cells", [{"experiment": "a", "target": "b", "state": "measured", "points": "many"}]),
            ("cells", [{"experiment": "a", "target": "b", "state": "open", "refused_points": "abc"}]),
            ("created", 1),
            ("schema_version", 99),
        ],
    )
    def test_of_campaign_json_is_one_clear_error(self, campaign, key, value):
        path = campaign.path / "campaign.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
        with pytest.raises(DataError) as caught:
            measure(CampaignDirectory.open(campaign.path))
        assert str(path) in str(caught.value)

    @pytest.mark.parametrize("text", ["", "{", "[]", "\xff"])
    def test_of_the_whole_file(self, campaign, text):
        (campaign.path / "campaign.json").write_text(text, encoding="latin-1")
        with pytest.raises(DataError):
            CampaignDirectory.open(campaign.path)

    def test_a_target_or_spec_that_is_gone(self, campaign, tmp_path):
        campaign.update({"targets": ["gone"]})
        with pytest.raises(UsageError, match="unknown target 'gone'"):
            measure(campaign)
        campaign.update({"targets": ["fake"]})
        (tmp_path / "0.yaml").unlink()
        with pytest.raises(SpecError, match=r"0\.yaml"):
            measure(campaign)

    def test_unknown_keys_of_a_newer_version_are_no_damage(self, campaign):
        (entry,) = campaign.content()["cells"]
        campaign.update({"cells": [{**entry, "mood": "good"}], "weather": "fine"})
        (cell,) = measure(campaign).values()
        assert cell.good

    def test_a_folder_that_is_none(self, tmp_path):
        assert not CampaignDirectory.is_one(tmp_path)
        with pytest.raises(DataError):
            CampaignDirectory.open(tmp_path)


def test_two_at_once_are_refused(tmp_path):
    campaign = new_campaign(tmp_path, specs(tmp_path, HEADERS), ["fake"], overrides=FEW)
    with campaign.lock(), pytest.raises(StorageError, match="is being written by process"):
        measure(campaign)
    assert measure(campaign)["my/headers", "fake"].good


def test_what_another_process_finished_meanwhile_is_seen(tmp_path):
    campaign = new_campaign(tmp_path, specs(tmp_path, HEADERS), ["fake"], overrides=FEW)
    late = Campaign(campaign, Listener())
    measure(campaign)
    trials = journals(campaign)
    (cell,) = late.measure()
    assert cell.good
    assert journals(campaign) == trials


WIDE = "{name: my/wide-tables, extends: mat/exact-entries, sweep: {entries: [1, 10, 50, 100]}}"


def lines(campaign, cell):
    """All lines of the journals of a run, by point and number of the trial."""
    paths = (campaign.path / cell.run).glob("points/*/raw.jsonl")
    found = [(path.parts[-2], json.loads(line)) for path in paths for line in path.read_text().splitlines()]
    return {(point, entry["trial"]["attempt"]): entry for point, entry in found}


def test_points_that_two_experiments_share_are_measured_once(tmp_path):
    campaign = new_campaign(tmp_path, specs(tmp_path, TABLES, WIDE), ["fake", "fake-noisy"], overrides=FEW)
    cells = measure(campaign)
    wide, tables = (lines(campaign, cells[name, "fake"]) for name in ("my/wide-tables", "my/tables"))
    assert len(wide) == 8, "the smaller experiment comes first and measures all of its points"
    assert not any("shared" in entry for entry in wide.values())
    run = cells["my/wide-tables", "fake"].run.rpartition("/")[2]
    copies = {key: entry for key, entry in tables.items() if "shared" in entry}
    assert copies == {key: {**entry, "shared": run} for key, entry in wide.items() if key in tables}
    assert {point for point, _ in copies} == {p for p, _ in wide} & {p for p, _ in tables}
    assert (len(tables), len(copies)) == (12, 6)
    assert cells["my/tables", "fake"].accepted == 6


@pytest.mark.parametrize(("key", "value"), [("duration_ms", "40"), ("seed", "2"), ("warmup_ms", "30")])
def test_only_trials_with_the_same_options_are_shared(tmp_path, key, value):
    other = WIDE.replace("}}", f"}}, trials: {{{key}: {value}}}}}")
    campaign = new_campaign(tmp_path, specs(tmp_path, TABLES, other), ["fake"])
    cells = measure(campaign)
    assert not any("shared" in entry for cell in cells.values() for entry in lines(campaign, cell).values())


def test_an_interrupted_campaign_shares_the_same_trials(tmp_path):
    def shared(campaign, cells):
        found = lines(campaign, cells["my/tables", "fake"])
        return {key: "shared" in entry for key, entry in found.items()}

    sources = specs(tmp_path, TABLES, WIDE)
    whole = new_campaign(tmp_path, sources, ["fake"], overrides=FEW)
    wanted = shared(whole, measure(whole))
    assert sum(wanted.values()) == 6
    halved = new_campaign(tmp_path, sources, ["fake"], overrides=FEW)
    with pytest.raises(KeyboardInterrupt):
        measure(halved, Listener(interrupt_after=1))
    assert shared(halved, measure(halved)) == wanted
