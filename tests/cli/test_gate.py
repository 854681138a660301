"""``gate``: exit codes that stop a job, verdicts on runs, campaigns and models, and files for machines and people."""

import json
import math
import shutil
import xml.etree.ElementTree as ET

import pytest
from support.command import p4perf
from support.runs import make_run

from p4perf.errors import ExitCode
from p4perf.experiment.evaluate import BASELINE, evaluate_run
from p4perf.results import Run

POINTS = (("entries", "[1, 3, 10, 30, 100, 300, 1000, 3000]"),)


def rising(factor=1.0):
    return lambda x: factor * (20 + 10 * math.log10(x + 1))


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def gated(*arguments, code=0, cwd=None):
    done = p4perf("gate", *arguments, "--format", "json", cwd=cwd)
    assert done.code == code, done.err + done.out
    return json.loads(done.out), done.err


def refused(*arguments, code=ExitCode.USAGE, cwd=None):
    done = p4perf("gate", *arguments, cwd=cwd)
    assert (done.code, done.out) == (code, ""), done.err
    assert done.err.count("error: ") == 1
    assert "Traceback" not in done.err
    return done.err


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    base = {BASELINE: lambda _: 20.0}
    made = {
        "old": make_run(folder, rising(), overrides=POINTS, seed=1, metrics=base),
        "new": make_run(folder, rising(), overrides=POINTS, seed=2, metrics=base),
        "slow": make_run(folder, rising(1.08), overrides=POINTS, seed=3, metrics=base),
        "large": make_run(folder, lambda x: rising(1.2 if x > 200 else 1.0)(x), overrides=POINTS, seed=4, metrics=base),
        "loud": make_run(folder, rising(), overrides=POINTS, seed=5, noise=0.15, metrics=base),
        "moved": make_run(
            folder, rising(1.3), overrides=POINTS, seed=6, metrics={BASELINE: lambda _: 26.0},
            node={"cpu_model": "Other CPU"},
        ),
        "other": make_run(folder, rising(), overrides=POINTS, target="xdp"),
        "headers": make_run(folder, rising(), spec="parser/headers", overrides=()),
    }  # fmt: skip
    evaluate_run(Run.open(made["old"]), plots=False)
    return made


@pytest.fixture(scope="module")
def campaigns(runs, tmp_path_factory):
    """The baseline has two components and one that failed; the new one lacks the second."""
    folder = tmp_path_factory.mktemp("campaigns")
    cells = {"a": [("old", "measured"), ("other", "measured"), ("headers", "refused")], "b": [("new", "measured")]}
    for name, chosen in cells.items():
        (folder / name / "runs").mkdir(parents=True)
        entries = []
        for key, state in chosen:
            experiment, target = ("parser/headers", "dpdk-c") if key == "headers" else (
                "mat/exact-entries", "xdp" if key == "other" else "dpdk-c")  # fmt: skip
            entry = {"experiment": experiment, "target": target, "state": state, "run": "", "reason": "cannot"}
            if state == "measured":
                shutil.copytree(runs[key], folder / name / "runs" / key)
                entry |= {"run": f"runs/{key}", "reason": ""}
            entries.append(entry)
        content = {
            "schema_version": 1, "created": "2026-11-21T10:15:00+00:00", "experiments": [], "sources": [],
            "targets": [], "testbed": "local", "budget_s": None, "overrides": [], "points": None, "spent_s": 0.0,
            "left_s": None, "cells": entries,
        }  # fmt: skip
        (folder / name / "campaign.json").write_text(json.dumps(content))
    return folder


def test_the_same_passes(runs):
    said, _ = gated("--baseline", runs["old"], runs["new"])
    (row,) = said["rows"]
    assert (said["verdict"], said["exit_code"], row["verdict"], row["regression"]) == ("passed", 0, "same", False)
    assert row["detectable"] < said["margin"] == 0.05
    assert (row["points"], row["starts"], row["baseline_starts"]) == (8, 3, 3)
    assert row["baseline_program_ratio_low"] < 1 < row["baseline_program_ratio_high"]
    assert row["relative_ratio"] == pytest.approx(1.0)


def test_a_slowdown_fails(runs):
    said, err = gated("--baseline", runs["old"], runs["slow"], code=ExitCode.VERDICT_FAILED)
    (row,) = said["rows"]
    assert (said["verdict"], row["verdict"], row["regression"]) == ("failed", "slower", True)
    assert row["ratio_low"] < 1.08 < row["ratio_high"]
    assert err.endswith("failed: 1 component: 1 slower\n")
    faster, _ = gated("--baseline", runs["slow"], runs["old"])
    assert faster["rows"][0]["verdict"] == "faster"


def test_a_slowdown_of_some_points_fails(runs):
    said, _ = gated("--baseline", runs["old"], runs["large"], code=ExitCode.VERDICT_FAILED)
    (row,) = said["rows"]
    assert row["local_first"] in ("entries=300", "entries=1000")
    assert row["local_last"] == "entries=3000"
    assert row["local_ratio_low"] < 1.2 < row["local_ratio_high"]


def test_noise_is_never_green(runs):
    said, _ = gated("--baseline", runs["old"], runs["loud"], code=ExitCode.NO_VERDICT)
    (row,) = said["rows"]
    assert (said["verdict"], row["verdict"]) == ("no verdict", "no verdict")
    assert row["detectable"] > 0.05
    assert "could have been missed" in row["reason"]
    gated("--baseline", runs["old"], runs["loud"], "--margin", "60%")


def test_a_model_is_a_baseline(runs):
    model = runs["old"] / "model.json"
    said, _ = gated("--baseline", model, runs["new"])
    assert (said["rows"][0]["against"], said["rows"][0]["verdict"]) == ("model", "same")
    gated("--baseline", model, runs["slow"], code=ExitCode.VERDICT_FAILED)
    assert "only the baseline may be a model" in refused("--baseline", runs["old"], model)
    failed, _ = gated("--baseline", model, runs["new"], "--metric", BASELINE, code=ExitCode.NO_VERDICT)
    assert "the model is one of cycles_per_packet" in failed["rows"][0]["reason"]


def test_a_moved_baseline_program_and_another_machine_are_told(runs):
    said, err = gated("--baseline", runs["old"], runs["moved"], code=ExitCode.VERDICT_FAILED)
    assert "the baseline program moved, too" in err
    assert "the machines differ: cpu_model is Some CPU (baseline), Other CPU (new)" in err
    assert said["rows"][0]["baseline_program_ratio"] == pytest.approx(1.3, abs=0.02)
    assert said["rows"][0]["relative_ratio"] == pytest.approx(1.0, abs=0.01)
    relative, _ = gated("--baseline", runs["old"], runs["moved"], "--relative")
    assert (relative["relative"], relative["rows"][0]["verdict"]) == (True, "same")


def test_several_runs_are_taken_together(runs):
    said, _ = gated("--baseline", runs["old"], runs["new"], runs["slow"], code=ExitCode.NO_VERDICT)
    assert said["rows"][0]["starts"] == 6
    said, _ = gated("--baseline", runs["old"], "--baseline", runs["other"], runs["new"])
    assert len(said["rows"]) == 1


@pytest.fixture(scope="module")
def drifting(tmp_path_factory):
    """Six runs of the same program whose levels are 2 % apart (standard deviation), the last is the new one."""
    levels = (1.0, 1.02, 0.98, 1.03, 0.99, 1.045)
    folder = tmp_path_factory.mktemp("drift")
    return [
        make_run(folder, rising(level), overrides=POINTS, seed=10 + n, noise=0.002) for n, level in enumerate(levels)
    ]


def of_baselines(runs):
    return [word for run in runs for word in ("--baseline", run)]


def test_one_run_assumes_its_drift_and_says_so(drifting):
    said, err = gated("--baseline", drifting[0], drifting[-1], code=ExitCode.VERDICT_FAILED)
    (drift,) = said["drifts"]
    assert (drift["basis"], drift["own"], drift["freedom"]) == ("assumed", 0.005, None)
    assert "assumes that runs differ by 0.5 % (standard deviation), not measured" in err
    said, err = gated("--baseline", drifting[0], drifting[-1], "--drift", "2%", code=ExitCode.NO_VERDICT)
    assert (said["drifts"][0]["basis"], said["drifts"][0]["own"]) == ("given", 0.02)
    assert said["rows"][0]["detectable"] > 0.05


def test_several_runs_show_their_drift(drifting):
    said, err = gated(*of_baselines(drifting[:3]), drifting[-1], code=ExitCode.NO_VERDICT)
    (drift,) = said["drifts"]
    assert (drift["basis"], drift["freedom"]) == ("runs", 2)
    assert drift["shared"] == pytest.approx(0.02, rel=0.1)
    assert "runs differ by 2 % (standard deviation from their runs; 2 degrees of freedom)" in err


def test_earlier_gates_are_on_record_and_count(drifting, tmp_path):
    first, _ = gated(*of_baselines(drifting[:3]), drifting[-1], code=ExitCode.NO_VERDICT)
    again, _ = gated(*of_baselines(drifting[:3]), drifting[-1], code=ExitCode.NO_VERDICT)
    assert again["drifts"] == first["drifts"], "the same runs count once"
    later, err = gated("--baseline", drifting[3], drifting[-1], code=ExitCode.NO_VERDICT)
    (drift,) = later["drifts"]
    assert (drift["basis"], drift["freedom"]) == ("history", 2)
    assert "from their runs and earlier gates" in err
    kept = json.loads(p4perf("gate", "--history", "--format", "json").out)
    (entry,) = kept["rows"]
    assert (entry["components"], len(entry["runs"]), entry["freedom"]) == (1, 3, 2)
    assert "2 %" in p4perf("gate", "--history").out
    assert kept["file"] == str(tmp_path / "state" / "p4perf" / "gate-history.json")


def test_several_components_show_what_each_drifts_on_its_own(drifting, tmp_path):
    """The drift of a second component is half of that of the first, the other way."""
    levels = (1.0, 0.99, 1.01, 1.0)
    other = [
        make_run(tmp_path, rising(level), overrides=POINTS, seed=30 + n, noise=0.002, target="xdp")
        for n, level in enumerate(levels)
    ]
    said, err = gated(
        *of_baselines([*drifting[:3], *other[:3]]), drifting[3], other[3], code=ExitCode.NO_VERDICT
    )  # fmt: skip
    (drift,) = said["drifts"]
    assert (drift["freedom"], drift["own_freedom"]) == (2, 2)
    assert drift["shared"] == pytest.approx(0.005, rel=0.2)
    assert drift["own"] == pytest.approx(0.015 * math.sqrt(2), rel=0.2)
    assert "together and by" in err


def test_a_baseline_of_another_time_is_a_warning(drifting, tmp_path):
    new = shutil.copytree(drifting[-1], tmp_path / "new")
    text = (new / "manifest.json").read_text()
    (new / "manifest.json").write_text(text.replace("2026-11-21T10:15:00", "2026-11-23T10:15:00"))
    _, err = gated(*of_baselines(drifting[:3]), new, code=ExitCode.NO_VERDICT)
    assert "the baseline runs were made close together, the new one much later" in err


def test_other_machines_and_metrics_have_a_drift_of_their_own(drifting, runs):
    gated(*of_baselines(drifting[:3]), drifting[-1], code=ExitCode.NO_VERDICT)
    said, _ = gated("--baseline", runs["old"], runs["moved"], code=ExitCode.VERDICT_FAILED)
    assert said["drifts"][0]["basis"] == "assumed"
    said, _ = gated("--baseline", runs["old"], runs["new"], "--metric", BASELINE)
    assert said["drifts"][0]["basis"] == "assumed"


def test_a_damaged_history_is_an_error_with_its_place(runs, tmp_path):
    folder = tmp_path / "state" / "p4perf"
    folder.mkdir(parents=True)
    for text in ("{", "{}", '{"rows": [{}]}', '{"rows": [1]}'):
        (folder / "gate-history.json").write_text(text)
        done = p4perf("gate", "--baseline", runs["old"], runs["new"])
        assert done.code == ExitCode.USAGE
        assert "gate-history.json" in done.err
        assert "Traceback" not in done.err


def test_a_history_that_cannot_be_kept_is_a_warning(drifting, tmp_path):
    (tmp_path / "state").write_text("no folder")
    said, err = gated(*of_baselines(drifting[:3]), drifting[-1], code=ExitCode.NO_VERDICT)
    assert "the history of gates is not kept" in err
    assert said["drifts"][0]["basis"] == "runs"


def test_what_a_new_campaign_lacks_has_no_verdict(campaigns):
    said, err = gated("--baseline", campaigns / "a", campaigns / "b", code=ExitCode.NO_VERDICT)
    assert [(r["target"], r["verdict"]) for r in said["rows"]] == [("dpdk-c", "same"), ("xdp", "no verdict")]
    assert said["rows"][1]["reason"] == "not in the new campaign"
    said, err = gated("--baseline", campaigns / "b", campaigns / "a")
    assert "mat/exact-entries on xdp is new: the baseline does not have it" in err


def test_a_run_of_a_campaign_that_lies_elsewhere_is_refused(campaigns, tmp_path):
    folder = shutil.copytree(campaigns / "a", tmp_path / "a")
    text = (folder / "campaign.json").read_text()
    (folder / "campaign.json").write_text(text.replace("runs/old", "../../../runs/old"))
    assert "leads out of the campaign" in refused("--baseline", folder, campaigns / "b")


def test_a_single_run_is_judged_without_the_rest_of_the_baseline(campaigns, runs):
    said, err = gated("--baseline", campaigns / "a", runs["new"])
    assert len(said["rows"]) == 1
    assert "1 components of the baseline are in none of the runs" in err


def test_junit_and_summary_are_written(runs, campaigns, tmp_path):
    files = ("--junit", tmp_path / "new" / "gate.xml", "--summary", tmp_path / "summary.md")
    gated("--baseline", runs["old"], runs["slow"], *files, code=ExitCode.VERDICT_FAILED)
    root = ET.parse(files[1]).getroot()  # noqa: S314 - our own file
    assert root.tag == "testsuites"
    (suite,) = root
    assert {k: suite.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
        "tests": "1", "failures": "1", "errors": "0", "skipped": "0",
    }  # fmt: skip
    (case,) = suite.iter("testcase")
    assert (case.get("classname"), case.get("name")) == ("dpdk-c", "mat/exact-entries")
    assert case.find("failure").get("type") == "slower"
    gated("--baseline", campaigns / "a", campaigns / "b", *files, code=ExitCode.NO_VERDICT)
    (suite,) = ET.parse(files[1]).getroot()  # noqa: S314 - our own file
    assert suite.get("skipped") == "1"
    assert [[child.tag for child in case] for case in suite.iter("testcase")] == [["system-out"], ["skipped"]]
    text = files[3].read_text()
    assert text.count("### p4perf gate: ") == 2
    assert "| mat/exact-entries | dpdk-c | slower | 1.0" in text


def test_table_and_csv_have_a_row_for_each_component(runs):
    done = p4perf("gate", "--baseline", runs["old"], runs["new"], "--margin", "0.05")
    assert done.code == 0
    assert "margin 5 %" in done.out
    assert "mat/exact-entries" in done.out
    done = p4perf("gate", "--baseline", runs["old"], runs["new"], "--format", "csv")
    assert done.out.splitlines()[0].startswith("experiment,target,metric,unit,verdict,regression,ratio,")
    assert len(done.out.splitlines()) == 2


@pytest.mark.parametrize("margin", ["5", "0", "-5%", "100%", "five", "nan", "", "inf"])
def test_a_margin_that_is_no_share_is_refused(runs, margin):
    assert "expected a share" in refused("--baseline", runs["old"], runs["new"], "--margin", margin)


def test_other_mistakes_are_told(runs, tmp_path):
    said = refused("--baseline", runs["old"], runs["other"])
    assert "p4perf gate --interleaved SPEC --target xdp --baseline-target dpdk-c measures both targets" in said
    assert "nothing of the runs is in the baseline" in refused("--baseline", runs["old"], runs["headers"])
    for own in (runs["old"], runs["old"] / "model.json"):
        assert "is its own baseline" in refused("--baseline", own, runs["old"])
    assert "is its own baseline" in refused("--baseline", runs["old"], "--baseline", runs["new"], runs["new"])
    assert "given twice" in refused("--baseline", runs["old"], runs["new"], runs["new"])
    assert "no such run directory" in refused("--baseline", tmp_path / "nothing", runs["new"])
    (tmp_path / "model.json").write_text("{}")
    assert "schema: is missing" in refused("--baseline", tmp_path / "model.json", runs["new"])
    said, _ = gated("--baseline", runs["old"], runs["new"], "--metric", "cycels_per_packet", code=ExitCode.NO_VERDICT)
    assert "there are no measurements of 'cycels_per_packet'" in said["rows"][0]["reason"]


@pytest.mark.parametrize("number", [1e6, 1e308])
def test_a_model_with_impossible_numbers_lets_nothing_pass(runs, tmp_path, number):
    content = json.loads((runs["old"] / "model.json").read_text())
    for segment in content["fitting"]["segments"]:
        segment["parameters"] = dict.fromkeys(segment["parameters"], number)
    (tmp_path / "model.json").write_text(json.dumps(content))
    found, _ = gated("--baseline", tmp_path / "model.json", runs["slow"], code=ExitCode.NO_VERDICT)
    assert "lies nowhere within its intervals" in found["rows"][0]["reason"]


@pytest.mark.parametrize(("key", "value"), [("level", 7.0), ("low", 1e300)])
def test_a_model_with_impossible_intervals_is_refused(runs, tmp_path, key, value):
    content = json.loads((runs["old"] / "model.json").read_text())
    known = content["uncertainty"][key]
    content["uncertainty"][key] = value if key == "level" else [value] * len(known)
    (tmp_path / "model.json").write_text(json.dumps(content))
    assert "uncertainty" in refused("--baseline", tmp_path / "model.json", runs["slow"])
