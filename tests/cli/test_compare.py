"""``compare``: runs side by side, their verdicts, files and plots, and one clear message for every mistake."""

import csv
import io
import json
import math
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from support.command import p4perf
from support.runs import make_run

from p4perf.errors import ExitCode
from p4perf.targets.t4p4s import T4P4STarget

SMALL = (("entries", "[1, 10, 100, 1000, 10000, 100000]"),)


def rising(level, slope):
    return lambda x: level + slope * math.log10(x + 1)


def compared(*arguments, cwd=None):
    done = p4perf("compare", *arguments, "--format", "json", cwd=cwd)
    assert done.code == 0, done.err
    return json.loads(done.out), done.err


def refused(*arguments, code=ExitCode.USAGE, cwd=None):
    """The one message of a comparison that has to fail, and leaves nothing behind."""
    done = p4perf("compare", *arguments, cwd=cwd)
    assert (done.code, done.out) == (code, ""), done.err
    assert "Traceback" not in done.err
    assert done.err.count("error: ") == 1
    return done.err


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A reference, one that is half as fast again, one that is the same, and one that crosses it at 999 entries."""
    folder = tmp_path_factory.mktemp("runs")
    curves = {
        "fast": rising(20, 10),
        "slow": lambda x: 1.5 * rising(20, 10)(x),
        "equal": rising(20, 10),
        "crossing": rising(35, 5),
    }
    return {
        name: make_run(folder, curve, target=name, seed=number) for number, (name, curve) in enumerate(curves.items())
    }


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Six experiments on two targets that agree in their order, except that one is turned round."""
    folder = tmp_path_factory.mktemp("several")
    paths = []
    for number in range(6):
        for target, factor in (("a", 1.0), ("b", 2.0)):
            cost = {"cost_cycles_per_packet": lambda _, n=number, f=factor: f * (10 + 5 * n)}
            more = (*SMALL, ("name", f"my/e{number}"))
            paths.append(make_run(folder, rising(20, 10), overrides=more, target=target, metrics=cost, seed=number))
    return paths


@pytest.fixture(scope="module")
def found(runs, tmp_path_factory):
    """All of them compared."""
    folder = tmp_path_factory.mktemp("out") / "made"
    return compared(*runs.values(), "-o", folder)[0]


def test_runs_that_sweep_nothing(tmp_path):
    """One point is enough for a verdict; there is no model, and nothing to say about it."""
    spec = tmp_path / "spec.yaml"
    spec.write_text("{spec_version: 1, extends: base/common, name: my/one, program: {component: l2fwd}}")
    paths = [
        make_run(tmp_path, lambda _, level=level: level, spec=str(spec), overrides=(), target=target, seed=n)
        for n, (target, level) in enumerate([("a", 100.0), ("b", 150.0), ("c", 100.0)])
    ]
    found, err = compared(*paths, "-o", tmp_path / "made")
    (experiment,) = found["experiments"]
    assert [pair["verdict"] for pair in experiment["pairs"]] == ["slower", "same"]
    assert experiment["pairs"][0]["ratio_low"] < 1.5 < experiment["pairs"][0]["ratio_high"]
    assert "no model" not in err
    assert [p.rpartition("/")[2] for p in found["plots"]] == ["overview.svg", "overview.png"]


class TestVerdicts:
    def pair(self, found, run):
        (experiment,) = found["experiments"]
        (pair,) = [p for p in experiment["pairs"] if p["run"] == run]
        return pair

    def test_a_known_ratio_is_recovered(self, found):
        pair = self.pair(found, "slow")
        assert (pair["verdict"], pair["reference"], pair["points"]) == ("slower", "fast", 13)
        assert pair["ratio_low"] < 1.5 < pair["ratio_high"]
        assert pair["crossings"] == []
        model = pair["model_ratios"]
        assert (model[0]["x"], model[-1]["x"]) == (1.0, 1e6)
        assert all(abs(m["ratio"] - 1.5) < 0.05 and m["ratio_low"] < 1.5 < m["ratio_high"] for m in model[5:-5])

    def test_equal_curves_are_the_same(self, found):
        pair = self.pair(found, "equal")
        assert pair["verdict"] == "same"
        assert pair["ratio_low"] < 1 < pair["ratio_high"]
        assert pair["detectable"] == 0.05
        assert not any(c["sure"] for c in pair["crossings"])

    def test_a_crossing_is_found_where_it_is(self, found):
        (crossing,) = [c for c in self.pair(found, "crossing")["crossings"] if c["sure"]]
        assert crossing["low"] < 999 < crossing["high"]
        assert crossing["low"] < crossing["x"] < crossing["high"]
        assert crossing["above"] is False

    def test_rows_have_all_points_of_all_runs(self, found, runs):
        assert len(found["rows"]) == 13 * len(runs)
        assert {row["run"] for row in found["rows"]} == set(runs)
        for row in found["rows"]:
            assert row["low"] <= row["median"] <= row["high"]
            assert (row["ratio"] is None) == (row["run"] == "fast")

    def test_the_files_are_the_same_data(self, found):
        folder = Path(found["output"])
        stored = json.loads((folder / "comparison.json").read_text())
        assert stored == {key: value for key, value in found.items() if key not in ("output", "plots")}
        rows = list(csv.DictReader(io.StringIO((folder / "comparison.csv").read_text())))
        assert [float(row["median"]) for row in rows] == [row["median"] for row in found["rows"]]
        for plot in found["plots"]:
            if plot.endswith(".svg"):
                ET.parse(plot)  # noqa: S314 - our own file
        assert [p.rpartition("/")[2] for p in found["plots"]] == ["mat-exact-entries.svg", "mat-exact-entries.png"]

    def test_runs_are_described(self, found):
        (experiment,) = found["experiments"]
        assert [r["label"] for r in experiment["runs"]] == ["fast", "slow", "equal", "crossing"]
        assert experiment["metric"] == "cycles_per_packet"
        assert all(r["planned_points"] == r["accepted_points"] == 13 for r in experiment["runs"])
        assert all(r["model"]["formulas"] for r in experiment["runs"])
        assert (experiment["differences"], found["warnings"]) == ([], [])

    def test_another_reference(self, runs, tmp_path):
        for wanted in ("slow", str(runs["slow"])):
            found, _ = compared(runs["fast"], runs["slow"], "--reference", wanted, "-o", tmp_path / "out")
            (pair,) = found["experiments"][0]["pairs"]
            assert (pair["run"], pair["reference"], pair["verdict"]) == ("fast", "slow", "faster")

    def test_the_margin(self, runs, tmp_path):
        found, _ = compared(runs["fast"], runs["slow"], "--margin", "70%", "-o", tmp_path)
        assert found["experiments"][0]["pairs"][0]["verdict"] == "same"


class TestPrinting:
    def test_help(self):
        done = p4perf("compare", "--help")
        assert (done.code, done.err) == (0, "")
        assert all(option in done.out for option in ("--reference", "--metric", "--margin", "--output", "--format"))

    def test_tables(self, runs, tmp_path):
        done = p4perf("compare", runs["fast"], runs["crossing"], cwd=tmp_path)
        assert done.code == 0, done.err
        for text in ("median with 95 % interval", "crossing / fast", "verdicts", "models cross at", "cycles/packet"):
            assert text in done.out
        assert "fast (reference): " in done.err
        assert "-o FOLDER writes the data and the plots" in done.err
        assert list(tmp_path.iterdir()) == []

    def test_csv_has_the_rows(self, runs, tmp_path):
        done = p4perf("compare", runs["fast"], runs["slow"], "-o", tmp_path / "x", "--format", "csv")
        assert len(list(csv.DictReader(io.StringIO(done.out)))) == 26

    def test_where_the_cycles_of_t4p4s_go_is_said_once(self, runs, several, tmp_path):
        for name in ("my/e0", "my/e1"):
            make_run(tmp_path, rising(400, 10), target="t4p4s", overrides=(*SMALL, ("name", name)))
        done = p4perf("compare", *several[:4], *sorted(tmp_path.iterdir()))
        assert done.code == 0, done.err
        assert done.err.count("link-time optimisation") == 1
        assert f"warning: {T4P4STarget.caution}\n" in done.err
        assert T4P4STarget.caution not in p4perf("compare", runs["fast"], runs["slow"]).err

    def test_no_crossing_is_said(self, runs, tmp_path):
        done = p4perf("compare", runs["fast"], runs["slow"], "-o", tmp_path / "x")
        assert [line for line in done.out.splitlines() if line.rstrip().endswith(" none")]

    def test_a_folder_that_is_there_is_filled(self, runs, tmp_path):
        for _ in range(2):
            compared(runs["fast"], runs["slow"], "-o", tmp_path)
        assert len(list(tmp_path.iterdir())) == 4


class TestDifferences:
    def test_machines(self, runs, tmp_path):
        other = make_run(
            tmp_path, rising(20, 10), target="fast", seed=9, node={"cpu_model": "Other CPU"}, hugepages=False
        )
        found, _ = compared(runs["fast"], other, "-o", tmp_path / "out")
        (experiment,) = found["experiments"]
        assert [r["label"] for r in experiment["runs"]] == ["fast on Some CPU", "fast on Other CPU"]
        assert {d["key"]: list(d["values"].values()) for d in experiment["differences"]} == {
            "cpu_model": ["Some CPU", "Other CPU"],
            "hugepages": ["yes", "no"],
        }
        done = p4perf("compare", runs["fast"], other, "-o", tmp_path / "out")
        assert "cpu_model is Some CPU (fast on Some CPU), Other CPU (fast on Other CPU): ratios compare the" in done.err
        assert "no (fast on Other CPU): without them, lookups in large tables cost more\n" in done.err

    def test_two_runs_on_one_machine_get_numbers(self, runs, tmp_path):
        again = make_run(tmp_path, rising(20, 10), target="fast", seed=11)
        found, _ = compared(runs["fast"], again, "-o", tmp_path / "out")
        assert [r["label"] for r in found["experiments"][0]["runs"]] == ["fast #1", "fast #2"]

    def test_testbeds(self, runs, tmp_path):
        other = make_run(tmp_path, rising(20, 10), target="fast", testbed="far", seed=9)
        found, _ = compared(runs["fast"], other, "-o", tmp_path / "out")
        assert [r["label"] for r in found["experiments"][0]["runs"]] == ["fast@local", "fast@far"]

    def test_specs(self, runs, tmp_path):
        other = make_run(
            tmp_path, rising(20, 10), target="other", seed=9, overrides=(*SMALL, ("trials.repetitions", "5"))
        )
        found, err = compared(runs["fast"], other, "-o", tmp_path / "out")
        assert "warning: mat/exact-entries: the specs of the runs differ: " in err
        assert "trials.repetitions is 3 (fast), 5 (other)" in err
        keys = {d["key"] for d in found["experiments"][0]["differences"]}
        assert "trials.repetitions" in keys
        assert any(key.startswith("sweep.entries") for key in keys)
        (experiment,) = found["experiments"]
        assert experiment["shared_points"] == [1, 10, 100, 1000, 10000, 100000]
        assert experiment["pairs"][0]["points"] == 6

    def test_points_that_a_target_cannot_do(self, runs, tmp_path):
        beyond = {"refused": [{"values": {"entries": 10**9}, "reason": "too many"}]}
        other = make_run(tmp_path, rising(20, 10), target="other", overrides=SMALL, manifest=beyond)
        _, err = compared(runs["fast"], other, "-o", tmp_path / "out")
        assert "other cannot do 1 point" in err

    def test_a_model_that_was_fitted_anew_is_the_one_that_counts(self, tmp_path):
        a, b = (make_run(tmp_path, rising(20, 10), target=t, seed=n, overrides=SMALL) for n, t in enumerate("ab"))
        assert p4perf("fit", a, "--segments", 1).code == 0
        stored = json.loads((a / "model.json").read_text())["fitting"]["segments"]
        found, _ = compared(a, b, "-o", tmp_path / "out")
        assert found["experiments"][0]["runs"][0]["model"]["formulas"] == [part["formula"] for part in stored]


class TestNoVerdict:
    def verdict(self, tmp_path, run, other):
        found, err = compared(run, other, "-o", tmp_path / "out")
        pair = found["experiments"][0]["pairs"][0]
        return pair["verdict"], pair["reason"], err

    def test_noise(self, runs, tmp_path):
        other = make_run(tmp_path, rising(21, 10), target="noisy", noise=0.5, overrides=SMALL)
        assert self.verdict(tmp_path, runs["fast"], other)[0] == "no verdict"

    def test_one_start(self, runs, tmp_path):
        other = make_run(tmp_path, rising(90, 10), target="once", starts=1)
        verdict, reason, _ = self.verdict(tmp_path, runs["fast"], other)
        assert verdict == "no verdict"
        assert "13 have one start on a side" in reason

    def test_too_few_points_were_accepted(self, runs, tmp_path):
        other = make_run(tmp_path, rising(90, 10), target="rejected", overrides=SMALL, rejected=(1, 100, 1000, 10000))
        verdict, reason, err = self.verdict(tmp_path, runs["fast"], other)
        assert verdict == "no verdict"
        assert "2 shared points" in reason
        assert "4 of 6 points have no accepted start" in err

    def test_nothing_was_accepted(self, runs, tmp_path):
        values = tuple(int(10**n) for n in range(6))
        other = make_run(tmp_path, rising(90, 10), target="rejected", overrides=SMALL, rejected=values)
        assert self.verdict(tmp_path, runs["fast"], other)[0] == "no verdict"

    def test_no_shared_points(self, runs, tmp_path):
        other = make_run(tmp_path, rising(90, 10), target="far", overrides=(("entries", "[2, 20, 200, 2000, 20000]"),))
        verdict, reason, _ = self.verdict(tmp_path, runs["fast"], other)
        assert verdict == "no verdict"
        assert "0 shared points" in reason


class TestSeveralExperiments:
    @pytest.mark.thorough
    def test_the_order_of_components(self, several, tmp_path):
        found, _ = compared(*several, "-o", tmp_path / "out")
        assert [e["experiment"] for e in found["experiments"]] == [f"my/e{n}" for n in range(6)]
        (ranks,) = found["rank_correlations"]
        assert (ranks["a"], ranks["b"], ranks["components"], ranks["verdict"]) == ("a", "b", 6, "same order")
        assert ranks["cost"] == "median of cost_cycles_per_packet over the shared points"
        assert ranks["spearman"] == ranks["kendall"] == 1.0
        assert [c["a"] for c in ranks["costs"]] == pytest.approx([10, 15, 20, 25, 30, 35], rel=0.05)
        names = {p.name for p in (tmp_path / "out").iterdir()}
        assert {"overview.svg", "overview.png", "my-e0.svg", "my-e5.png"} <= names

    def test_of_few_components_nothing_is_said(self, several, tmp_path):
        found, _ = compared(*several[:8], "-o", tmp_path / "out")
        (ranks,) = found["rank_correlations"]
        assert (ranks["components"], ranks["verdict"], ranks["spearman"]) == (4, "no verdict", None)
        assert "5 are needed" in ranks["reason"]

    def test_a_reference_that_an_experiment_does_not_have(self, several, tmp_path):
        c, d = (make_run(tmp_path, rising(20, 10), target=target, overrides=SMALL) for target in ("c", "d"))
        found, err = compared(*several[:2], c, d, "-o", tmp_path / "out")
        assert [e["reference"] for e in found["experiments"]] == ["a", "c"]
        assert "warning: mat/exact-entries has no run of a: the reference is c" in err


class TestMetrics:
    def test_another_metric(self, tmp_path):
        rate = {"packet_rate": lambda x: 2000 / rising(20, 10)(x)}
        double = {"packet_rate": lambda x: 4000 / rising(20, 10)(x)}
        a, b = (
            make_run(tmp_path, rising(20, 10), target=target, metrics=metrics, overrides=SMALL)
            for target, metrics in (("a", rate), ("b", double))
        )
        found, _ = compared(a, b, "--metric", "packet_rate", "-o", tmp_path / "out")
        (experiment,) = found["experiments"]
        assert (experiment["metric"], experiment["unit"]) == ("packet_rate", "Mpps")
        assert experiment["pairs"][0]["verdict"] == "faster"
        assert experiment["runs"][0]["model"] is not None

    def test_a_run_that_has_not_got_it(self, runs, tmp_path):
        only_rate = make_run(tmp_path, rising(20, 10), target="b", metric="packet_rate", overrides=SMALL)
        message = refused(runs["fast"], only_rate, cwd=tmp_path)
        assert f"{only_rate.name} has no measurements of 'cycles_per_packet'" in message
        assert "metrics of all of them, for --metric: none" in message
        assert "has no measurements of 'latency'" in refused(
            runs["fast"], runs["slow"], "--metric", "latency", cwd=tmp_path
        )

    def test_models_of_different_metrics(self, tmp_path):
        rate = {"packet_rate": lambda x: 2000 / rising(20, 10)(x)}
        a = make_run(tmp_path, rising(20, 10), target="a", metrics=rate, overrides=SMALL)
        b = make_run(tmp_path, rising(20, 10), target="b", metrics=rate, overrides=(*SMALL, ("model.y", "packet_rate")))
        message = refused(a, b, cwd=tmp_path)
        assert "model different metrics" in message
        assert "for --metric: cycles_per_packet, packet_rate" in message
        assert compared(a, b, "--metric", "packet_rate", "-o", tmp_path / "out")


class TestRefusals:
    def test_a_single_run(self, runs, tmp_path):
        assert "is the only run of mat/exact-entries" in refused(runs["fast"], cwd=tmp_path)

    def test_experiments_that_do_not_match(self, runs, tmp_path):
        other = make_run(tmp_path, lambda x: 20 + x, spec="parser/headers", overrides=(), target="slow")
        message = refused(runs["fast"], other, cwd=tmp_path)
        assert "nothing to compare it with" in message
        assert "the other runs are of parser/headers" in message

    def test_the_same_run_twice(self, runs, tmp_path):
        assert "is given twice\nhint: name each run once\n" in refused(runs["fast"], runs["fast"], cwd=tmp_path)

    def test_another_variable(self, runs, tmp_path):
        other = make_run(
            tmp_path,
            lambda x: 20 + x,
            target="other",
            spec="parser/headers",
            overrides=(("name", "mat/exact-entries"),),
        )
        message = refused(runs["fast"], other, cwd=tmp_path)
        assert "sweep different variables" in message
        assert "over headers" in message

    def test_a_reference_that_is_none(self, runs, tmp_path):
        message = refused(runs["fast"], runs["slow"], "--reference", "quick", cwd=tmp_path)
        assert "--reference quick is not one of the runs" in message
        assert "there are fast, slow" in message

    def test_what_is_no_run(self, runs, tmp_path):
        assert "no such run directory" in refused(runs["fast"], tmp_path / "nothing", cwd=tmp_path)
        assert "not a run directory" in refused(runs["fast"], tmp_path, cwd=tmp_path)

    def test_a_file_as_the_output(self, runs, tmp_path):
        (tmp_path / "file").write_text("")
        assert "is a file" in refused(runs["fast"], runs["slow"], "-o", tmp_path / "file", cwd=tmp_path)

    @pytest.mark.parametrize("margin", ["0", "1", "-0.1", "much"])
    def test_a_margin_that_makes_no_sense(self, runs, tmp_path, margin):
        assert "--margin" in refused(runs["fast"], runs["slow"], "--margin", margin, cwd=tmp_path)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    more = (("entries", "[1, 10, 100, 1000]"), ("sweep.frame", "[64, 256]"), ("traffic.frame_size", "$frame"))
    curves = {"a": lambda x, frame: frame + x, "b": lambda x, frame: frame + (2 if frame > 64 else 1) * x}
    return [make_run(folder, curve, target=name, overrides=more, noise=0.001) for name, curve in curves.items()]


class TestSeveralVariables:
    """One variable is compared, or fitted, at chosen values of the others."""

    def test_what_to_type_is_said(self, pair):
        assert "sweeps entries, frame" not in refused(*pair)
        assert "hint: choose values: --where frame=64\n" in refused(*pair)
        done = p4perf("fit", pair[0])
        assert f"(p4perf fit {pair[0]} --where frame=64 derives one)" in done.err

    def test_compare(self, pair, tmp_path):
        for frame, verdict in (("64", "same"), ("256", "slower")):
            found, _ = compared(*pair, "--where", f"frame={frame}", "-o", tmp_path / frame)
            (experiment,) = found["experiments"]
            assert (experiment["experiment"], experiment["variable"]) == (
                f"mat/exact-entries at frame={frame}",
                "entries",
            )
            assert [run["planned_points"] for run in experiment["runs"]] == [4, 4]
            assert experiment["pairs"][0]["verdict"] == verdict
        over_frames, _ = compared(*pair, "--where", "entries=1000")
        assert over_frames["experiments"][0]["shared_points"] == [64, 256]

    def test_wrong_values(self, pair):
        assert "hint: values of frame: 64, 256\n" in refused(*pair, "--where", "frame=65")
        assert "hint: did you mean frame?\n" in refused(*pair, "--where", "fram=64")

    def test_fit(self, pair, tmp_path):
        options = ("--where", "frame=256", "--x", "entries", "--segments", "1", "-o", tmp_path / "out")
        done = p4perf("fit", pair[0], *options, "--format", "json")
        assert done.code == 0, done.err
        found = json.loads(done.out)
        assert (found["x"]["name"], found["name"]) == ("entries", "mat/exact-entries at frame=256")
        assert (tmp_path / "out" / "model.json").is_file()
        assert not (pair[0] / "model.json").exists()
        assert "with --where or --x" in p4perf("fit", pair[0], "-o", tmp_path / "out").err
