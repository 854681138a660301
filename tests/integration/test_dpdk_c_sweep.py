"""A real sweep through the command, on whatever machine this is: structure and order, never absolute numbers."""

import json
import os
import random
import signal
import subprocess
import time
from statistics import median

import pandas as pd
import pytest
from support.command import command, environment, p4perf

from p4perf.models import ComponentModel
from p4perf.targets.dpdk_c import DpdkCTarget

pytestmark = [pytest.mark.dpdk, pytest.mark.usefixtures("dpdk")]

ENTRIES = [1, 100, 1000, 10_000, 100_000]
SPEC = ["mat/exact-entries", "--set", f"entries={ENTRIES}", "--target", "dpdk-c"]


def only(folder):
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture(scope="module")
def measured(dpdk, cache, tmp_path_factory):
    """One sweep of five points, the command's result and the run directory."""
    folder = tmp_path_factory.mktemp("runs")
    figures = {"P4PERF_TEST_FIGURES": "1"}
    arguments = ("run", *SPEC, "--set", "trials.repetitions=2", "-o", folder, "--format", "json")
    result = p4perf(*arguments, **cache, **figures)
    assert result.code in (0, 4), result.err
    assert "Traceback" not in result.err
    return result, only(folder)


@pytest.fixture(scope="module")
def table(measured):
    return pd.read_parquet(measured[1] / "measurements.parquet")


@pytest.fixture
def complete(measured):
    """Skips what needs accepted trials of every point, where the machine was too disturbed to get them."""
    if measured[0].code != 0:
        pytest.skip("the machine was disturbed: not every point has an accepted trial")
    return measured


def test_the_name_of_the_run(measured):
    assert measured[1].name.startswith("mat-exact-entries--dpdk-c--local--")


def test_what_is_in_the_run_directory(measured):
    _, run = measured
    assert {"spec.yaml", "manifest.json", "measurements.parquet", "points"} <= {p.name for p in run.iterdir()}
    manifest = json.loads((run / "manifest.json").read_text())
    assert set(manifest["planned_points"]) == {p.name for p in (run / "points").iterdir()}
    for point in (run / "points").iterdir():
        assert {"program.c", "verify.bin", "raw.jsonl", "finished.json"} <= {p.name for p in point.iterdir()}
    assert not list(run.rglob("*.tmp"))


def test_the_manifest_says_what_was_true(measured):
    manifest = json.loads((measured[1] / "manifest.json").read_text())
    assert manifest["schema_version"] == 1
    assert (manifest["experiment"], manifest["target"], manifest["testbed"]) == ("mat/exact-entries", "dpdk-c", "local")
    for key in (
        "created",
        "spec_hash",
        "node",
        "versions",
        "trials",
        "sessions",
        "command",
        "hugepages",
        "working_set",
    ):
        assert key in manifest, key
    assert [p["values"]["entries"] for p in manifest["points"]] == ENTRIES
    assert {"cpu_model", "kernel", "cc_version", "dpdk_version"} <= set(manifest["node"])
    assert {"p4perf", "python", "numpy"} <= set(manifest["versions"])
    assert len(manifest["calibrations"]) == len(manifest["sessions"]) == 1
    assert manifest["gate_ratio"] > 0
    session = manifest["sessions"][0]
    assert 0 < session["measured_s"] <= session["wall_s"]


def test_every_trial_was_verified_and_is_on_disk(measured):
    for path in (measured[1] / "points").glob("*/raw.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert len(lines) >= 2
        for entry in lines:
            assert entry["record"]["verified_packets"] == 2048
            assert entry["record"]["sent"] == entry["record"]["packets"] > 0


def test_the_rate_of_the_tsc_is_that_of_the_calibration(measured):
    manifest = json.loads((measured[1] / "manifest.json").read_text())
    rates = [cpu["tsc_hz"] for cpu in manifest["calibrations"][0]["cpus"]]
    for path in (measured[1] / "points").glob("*/raw.jsonl"):
        for line in path.read_text().splitlines():
            assert json.loads(line)["record"]["tsc_hz"] == pytest.approx(median(rates), rel=0.01)


def test_the_tidy_table(measured, table):
    columns = [
        "point",
        "point_index",
        "repetition",
        "attempt",
        "testbed",
        "entries",
        "metric",
        "value",
        "unit",
        "accepted",
        "flags",
    ]
    assert list(table.columns) == columns
    assert not table.duplicated(["point", "attempt", "metric"]).any()
    for _, trial in table[table["accepted"]].groupby(["point", "attempt"]):
        assert set(DpdkCTarget.metrics) <= set(trial["metric"])
    assert (table["value"][table["metric"] != "cost_cycles_per_packet"] >= 0).all()


def test_values_of_a_trial_agree_with_each_other(table):
    for _, trial in table.groupby(["point", "attempt"]):
        values = dict(zip(trial["metric"], trial["value"], strict=True))
        difference = values["cycles_per_packet"] - values["baseline_cycles_per_packet"]
        assert values["cost_cycles_per_packet"] == pytest.approx(difference)


def test_flags_tell_the_circumstances(measured, table):
    flags = {flag for text in table["flags"] for flag in text.split(",") if flag}
    manifest = json.loads((measured[1] / "manifest.json").read_text())
    assert ("no_hugepages" in flags) == (not manifest["hugepages"])
    assert ("no_realtime" in flags) == (manifest["node"]["realtime"] != "yes")
    assert "ungated" not in flags


def test_memory_grows_with_the_entries(complete, table):
    rows = table[(table["metric"] == "memory_bytes") & table["accepted"]]
    medians = rows.groupby("entries")["value"].median()
    assert list(medians.index) == ENTRIES
    assert medians.is_monotonic_increasing
    assert medians[100_000] > 100_000 * 96


def test_a_large_table_costs_more_than_the_baseline(complete, table):
    rows = table[(table["entries"] == 100_000) & (table["metric"] == "cost_cycles_per_packet") & table["accepted"]]
    assert rows["value"].median() > 0


def test_the_model_loads_and_the_plots_are_there(complete):
    result, run = complete
    model = ComponentModel.from_json((run / "model.json").read_text())
    assert model.domain == (1, 100_000)
    printed = json.loads(result.out)
    assert (printed["schema_version"], printed["kind"]) == (2, "model")
    assert printed["segments"]
    assert {"cycles_per_packet.svg", "cycles_per_packet.png"} <= {p.name for p in (run / "plots").iterdir()}
    assert all(p.stat().st_size > 1000 for p in (run / "plots").iterdir())


def test_status_show_and_fit(complete):
    _, run = complete
    for arguments, kind in ((["status"], "status"), (["show"], "show"), (["fit", "--max-segments", 1], "model")):
        result = p4perf(arguments[0], run, *arguments[1:], "--format", "json")
        assert result.code == 0, result.err
        data = json.loads(result.out)
        assert (data["schema_version"], data["kind"]) == (2, kind)
    status = json.loads(p4perf("status", run, "--format", "json").out)["rows"][0]
    assert (status["points"], status["finished"], status["complete"]) == (5, 5, True)
    shown = json.loads(p4perf("show", run, "--format", "json", "--metric", "memory_bytes").out)
    assert [row["entries"] for row in shown["rows"]] == ENTRIES
    assert shown["unit"] == "B"


@pytest.mark.thorough
def test_plain_mode_and_small_pages_are_flagged(dpdk, cache, tmp_path):
    """More memory than there are hugepages would go to small pages; plain mode takes every window."""
    options = ["--set", "entries=[10, 20]", "--set", "trials.repetitions=1", "--set", "trials.mode=plain"]
    result = p4perf("run", "mat/exact-entries", *options, "--target", "dpdk-c", "-o", tmp_path, "-q", **cache)
    assert result.code in (0, 4), result.err
    flags = pd.read_parquet(only(tmp_path) / "measurements.parquet")["flags"]
    assert all("ungated" in text.split(",") for text in flags)


@pytest.mark.thorough
def test_a_sweep_survives_being_killed(dpdk, cache, tmp_path):
    """kill -9 of the whole process group, three times, then a resume: every point once, no attempt twice."""
    rng = random.Random(7)
    options = ["--set", "trials.repetitions=1", "-o", tmp_path, "-q"]
    arguments = ["run", *SPEC, *options]
    run = None
    for _ in range(3):
        process = subprocess.Popen(
            command(*arguments),
            env=environment(**cache),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + 60
        while run is None and process.poll() is None and time.monotonic() < deadline:
            run = next((p for p in tmp_path.glob("[!.]*") if (p / "manifest.json").exists()), None)
            time.sleep(0.01)
        assert run is not None
        arguments = ["resume", run, "-q"]
        time.sleep(rng.uniform(0.3, 2.0))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    last = p4perf(*arguments, "--format", "json", **cache)
    assert last.code in (0, 4), last.err
    manifest = json.loads((run / "manifest.json").read_text())
    assert {p.name for p in (run / "points").iterdir()} == set(manifest["planned_points"])
    for point in (run / "points").iterdir():
        attempts = [json.loads(line)["trial"]["attempt"] for line in (point / "raw.jsonl").read_text().splitlines()]
        assert attempts == list(range(len(attempts))), point
        assert 1 <= len(attempts) <= 5
        assert (point / "finished.json").exists()
    table = pd.read_parquet(run / "measurements.parquet")
    assert not table.duplicated(["point", "attempt", "metric"]).any()
    assert sorted(set(table["entries"])) == ENTRIES
