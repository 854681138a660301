"""``compare --component``: models beside each other, published ones too."""

import json
import math

import pytest
from support.command import p4perf
from support.runs import make_run

from p4perf.errors import ExitCode
from p4perf.evaluation.comparison.curves import increase
from p4perf.models.component import ComponentModel
from p4perf.targets.t4p4s import T4P4STarget

EXACT = ("--component", "mat/exact-entries")
T4P4S = "t4p4s@scholz2021"
NFP = "nfp4000@scholz2021"


def compared(*arguments, cwd=None):
    done = p4perf("compare", *arguments, "--format", "json", cwd=cwd)
    assert done.code == 0, done.err
    return json.loads(done.out)


def refused(*arguments, code=ExitCode.USAGE, cwd=None):
    done = p4perf("compare", *arguments, cwd=cwd)
    assert (done.code, done.out) == (code, ""), done.err
    assert done.err.count("error: ") == 1
    return done.err


def values(found, subject, key="value"):
    return {row["x"]: row[key] for row in found["rows"] if row["subject"] == subject}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with runs: two of dpdk-c, the newer one dearer, and one of xdp without a model."""
    folder = tmp_path_factory.mktemp("place")

    def line(level, slope):
        return lambda x: level + slope * x

    for number, curve in enumerate((line(100, 0.144), line(90, 0.05))):
        run = make_run(folder / f"{number}", curve, noise=0)
        assert p4perf("fit", run, "--segments", 1).code == 0
        manifest = json.loads((run / "manifest.json").read_text())
        manifest["created"] = f"202{6 - number}-01-01T00:00:00+00:00"
        (run / "manifest.json").write_text(json.dumps(manifest))
        (folder / "runs").mkdir(exist_ok=True)
        run.rename(folder / "runs" / f"run-{number}")
    new = folder / "runs" / "run-0"
    make_run(folder / "runs", line(50, 0.1), target="xdp")
    (folder / "new-run").symlink_to(new)
    return folder


def test_a_target_beside_a_paper(place):
    found = compared(*EXACT, "dpdk-c", T4P4S, "--reference", T4P4S, cwd=place)
    assert [s["published"] for s in found["subjects"]] == [False, True]
    (pair,) = found["pairs"]
    assert (pair["subject"], pair["reference"], pair["domain"]) == ("dpdk-c", T4P4S, [1, 1000])
    assert (pair["compared"], pair["increase_from"]) == ("increase_of_cycles_per_packet", 1)
    ratios = values(found, "dpdk-c", "ratio")
    assert ratios[100] == pytest.approx(0.144 / 0.072, rel=0.01)  # the slopes; the newest run is the one
    assert ratios[1] is None
    beyond = values(found, "dpdk-c", "ratio_extrapolated")
    assert (beyond[1000], beyond[10000]) == (False, True)
    assert {d["key"] for d in found["differences"]} >= {"processor", "year", "metric"}
    assert any("different processors" in c for c in found["cautions"])
    assert any("the paper prints none" in c for c in found["cautions"])


def test_the_tables(place):
    done = p4perf("compare", *EXACT, "dpdk-c", T4P4S, cwd=place)
    assert done.code == 0, done.err
    for text in ("0.072", "logarithm: the kind of function", "not printed: the level", "values; * is extrapolated"):
        assert text in done.out
    assert "published: A Framework for Reproducible Data Plane Performance Modeling" in done.err
    assert "processor is Some CPU (dpdk-c), Intel Xeon E5-2640 v2 (t4p4s@scholz2021)" in done.err
    assert f"note: {T4P4STarget.caution}\n" in done.err
    assert done.err.count("link-time optimisation") == 1
    assert "no absolute cycles are printed" in done.err


def test_files_and_runs(place):
    found = compared(*EXACT, "new-run", place / "new-run" / "model.json", "dpdk-c", cwd=place)
    assert [s["label"] for s in found["subjects"]] == ["new-run", str(place / "new-run" / "model.json"), "dpdk-c"]
    for subject in ("dpdk-c", str(place / "new-run" / "model.json")):
        assert all(r == pytest.approx(1) for r in values(found, subject, "ratio").values())
    assert all(pair["crossings"] == [] for pair in found["pairs"])


def test_the_record_is_written(place, tmp_path):
    found = compared(*EXACT, "new-run", T4P4S, "-o", tmp_path / "out", cwd=place)
    assert json.loads((tmp_path / "out" / "curves.json").read_text()) == found


def test_published_cards_without_hardware(tmp_path):
    names = ("nfp4000@scholz2021", T4P4S)
    assert "no curve of path/recirculate" in refused("--component", "path/recirculate", *names)
    capacity = tmp_path / "own.json"
    model = ComponentModel.from_json(p4perf_model(times=0.2))
    capacity.write_text(model.to_json())
    found = compared("--component", "path/recirculate", capacity, NFP, "--at", 0, "--at", 1, "--at", 4)
    rates = values(found, NFP)
    assert rates[1] == pytest.approx(4.571, abs=0.001)
    assert rates[4] == pytest.approx(2 * 4.571 / 5, abs=0.001)
    assert values(found, NFP, "extrapolated") == {0: True, 1: False, 4: True}
    assert values(found, NFP, "ratio")[1] == pytest.approx(4.571 / 1.8, abs=0.001)
    (pair,) = found["pairs"]
    assert "share no domain" in pair["reason"]


def p4perf_model(times):
    """A model of recirculation in Mpps: 2 less 0.2 for each."""
    part = {
        "template": "poly1",
        "parameters": {"c0": 2.0, "c1": -times},
        "origin": 0.0,
        "start": 0.0,
        "end": 10.0,
        "points": 11,
        "error": 0.01,
        "rank": 2.0,
    }
    return json.dumps(
        {
            "schema": "p4perf/component-model",
            "schema_version": 2,
            "name": "path/recirculate",
            "target": "own",
            "x": {"name": "times", "unit": "", "scale": "linear"},
            "y": {"name": "packet_rate", "unit": "Mpps", "scale": "linear"},
            "error_metric": "smape",
            "fitting": {"error": 0.01, "rank": 2.0, "breakpoints": [], "breakpoint_x": [], "segments": [part]},
            "uncertainty": None,
            "provenance": {},
        }
    )


def test_units_that_differ_are_said(place):
    found = compared(*EXACT, "dpdk-c", T4P4S, "--at", 10, cwd=place)
    assert found["pairs"][0]["reason"] == ""
    memory = find_memory_file(place)
    found = compared(*EXACT, "dpdk-c", memory, "--at", 10, cwd=place)
    assert "memory_bytes" in found["pairs"][0]["reason"]
    assert values(found, T4P4S, "ratio") == {10: None}


def find_memory_file(place):
    from p4perf.models.published import find_published

    path = place / "memory.json"
    path.write_text(find_published("mat/exact-entries", T4P4S, "memory_bytes").to_json())
    return path


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((*EXACT, T4P4S), ExitCode.USAGE, "two subjects"),
        ((*EXACT, T4P4S, T4P4S), ExitCode.USAGE, "given twice\nhint: name each subject once\n"),
        ((*EXACT, "dpdk-c", "t4p4s@me2020"), ExitCode.USAGE, "no published model t4p4s@me2020"),
        ((*EXACT, "xdp", T4P4S), ExitCode.NO_VERDICT, "have no model"),
        ((*EXACT, "bmv2", T4P4S), ExitCode.NO_VERDICT, "bmv2 has no run of mat/exact-entries"),
        (("--component", "mat/lpm-entries", "new-run", T4P4S), ExitCode.USAGE, "a model of mat/exact-entries"),
        ((*EXACT, "dpdk-c", T4P4S, "--reference", "xdp"), ExitCode.USAGE, "not one of the subjects"),
        (
            (*EXACT, "dpdk-c", T4P4S, "--metric", "memory_bytes"),
            ExitCode.USAGE,
            "not of memory_bytes\nhint: without --component",
        ),
        (("new-run", "new-run", "--at", "3"), ExitCode.USAGE, "--at goes with --component"),
    ],
)
def test_mistakes(place, arguments, code, message):
    assert message in refused(*arguments, code=code, cwd=place)


def test_a_model_that_is_none(place, tmp_path):
    (tmp_path / "m.json").write_text("{}")
    assert "m.json" in refused(*EXACT, tmp_path / "m.json", T4P4S, cwd=place)


def test_the_increase_of_a_curve(place):
    model = ComponentModel.from_json((place / "new-run" / "model.json").read_text())
    less = increase(model, 10.0, "more")
    at = [1.0, 10.0, 500.0]
    assert less.evaluate(at) == pytest.approx(model.evaluate(at) - model.evaluate(10.0))
    assert less.estimate(10.0).value == pytest.approx(0)
    band, own = less.estimate(500.0), model.estimate(500.0)
    assert float(band.high - band.low) == pytest.approx(float(own.high - own.low))
    assert math.isclose(float(less.derivative(500.0)), float(model.derivative(500.0)), rel_tol=1e-3)


def test_published_models_are_listed():
    done = p4perf("list", "published-models", "--format", "json")
    rows = json.loads(done.out)["rows"]
    assert {(row["subject"], row["component"], row["metric"]) for row in rows} >= {
        (T4P4S, "mat/exact-entries", "increase_of_cycles_per_packet"),
        (T4P4S, "mat/exact-entries", "memory_bytes"),
        (NFP, "path/recirculate", "packet_rate"),
    }
