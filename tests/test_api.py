"""``import p4perf``: each of its functions does what its command does, and returns data that shows itself."""

import inspect
import json
import os
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from support.command import FAKES
from support.command import p4perf as command
from support.runs import make_run
from typer.main import get_command

import p4perf
from p4perf import api, plugins
from p4perf.api import LearntModel
from p4perf.cli import loaded
from p4perf.cli.app import COMMANDS, analyse_app, estimate_app
from p4perf.errors import DataError, P4PerfError, TargetUnavailableError, UsageError
from p4perf.evaluation.prediction.library import reference_model

SWITCH = Path(p4perf.__file__).parents[1] / "examples" / "programs" / "l2_switch" / "l2_switch.json"
COUNTERPARTS = {
    **{name: name for name in ("run", "measure", "resume", "learn", "fit", "predict", "compare", "gate", "report")},
    **{name: name for name in ("status", "export", "pack", "reproduce", "doctor", "check", "generate")},
    "list": "list_items list_runs",
    "show": "open_run load_model",
    "open": "open_page",
    "import": "import_results",
    "estimate": "estimate_eo estimate_place estimate_queue estimate_cesim",
    "analyse": "analyse_opq analyse_factors",
}
"""The functions of each command."""
OFFERED = sorted(" ".join(COUNTERPARTS.values()).split())
SPEC = "mat/exact-entries"


@pytest.fixture
def fakes(monkeypatch):
    """The fake targets are registered for the time of a test."""
    monkeypatch.setattr(sys, "path", [str(FAKES), *sys.path])
    plugins._found.cache_clear()
    yield
    plugins._found.cache_clear()
    sys.modules.pop("p4perf_fake", None)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Three runs of one experiment, one of them in a campaign, below the current directory; no gate was before."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    times = ("2026-11-21T10:15:00+00:00", "2026-11-22T10:15:00+00:00", "2026-11-23T10:15:00+00:00")
    places = (tmp_path / "runs", tmp_path / "runs", tmp_path / "runs" / "catalogue--20261123T101500" / "runs")
    found = []
    for number, (created, place) in enumerate(zip(times, places, strict=True)):
        run = make_run(place, lambda x, n=number: 60 + 10 * np.log10(max(x, 1)) * (n + 1), target=f"t{number}")
        manifest = json.loads((run / "manifest.json").read_text()) | {"created": created}
        (run / "manifest.json").write_text(json.dumps(manifest))
        found.append(run)
    return found


def test_what_is_offered():
    assert sorted(p4perf.__all__) == sorted([*OFFERED, "__version__"])
    assert set(OFFERED) <= set(dir(p4perf))
    with pytest.raises(AttributeError, match="no attribute 'derive'"):
        _ = p4perf.derive


@pytest.mark.parametrize("name", OFFERED)
def test_it_is_typed_and_described(name):
    function = getattr(p4perf, name)
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty
    assert all(p.annotation is not inspect.Parameter.empty for p in signature.parameters.values())
    assert inspect.getdoc(function).partition("\n")[0].endswith((".", ":"))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: p4perf.gate("latest"), r"gate\(\): the argument baseline is missing"),
        (lambda: p4perf.run(), r"run\(\): the argument specs is missing"),
        (lambda: p4perf.run(SPEC, "fake", "local"), r"run\(\): 'local' needs the name of its argument"),
        (lambda: p4perf.run(SPEC, pints=3), r"run\(\): there is no argument 'pints'"),
        (lambda: p4perf.run(SPEC, target="fake"), r"'target'\nhint: did you mean targets\?"),
        (lambda: p4perf.measure(SWITCH, targets="fake"), r"'targets'\nhint: did you mean target\?"),
        (lambda: p4perf.run(SPEC, settings={"entries": 3}), r"'settings'\nhint: did you mean set\?"),
        (lambda: p4perf.reproduce(), r"no claim is chosen\nhint: name papers \(.*scholz2021.*\), or choose all"),
        (lambda: p4perf.reproduce("scholz2021", all=True), "name claims or write all, not both"),
        (lambda: p4perf.run(SPEC, specs=SPEC), r"run\(\): multiple values for argument 'specs'"),
        (lambda: p4perf.compare(5), "runs: expected a run by its path or name, or several, got 5"),
        (lambda: p4perf.fit([1, 2], [1, 2], caches=5), "caches: expected a text or several"),
        (lambda: p4perf.predict(SPEC, traffic="yes"), "traffic: expected True or False"),
        (lambda: p4perf.reproduce(quick="yes"), "quick: expected True or False"),
        (lambda: api.fit_many(5), "data: expected a path or several"),
    ],
)
def test_mistakes_in_a_call_are_refused_with_the_name_of_the_argument(call, words):
    with pytest.raises(UsageError, match=words):
        call()


def test_a_misplaced_argument_says_which_come_by_position_and_by_name():
    with pytest.raises(UsageError) as caught:
        p4perf.gate("new", "old", 0.05)
    assert caught.value.hint.startswith("by position: runs, baseline; by name: folder, metric")
    with pytest.raises(UsageError) as caught:
        p4perf.predict(SPEC, "dpdk-c", frame_sise=64)
    assert caught.value.hint == "did you mean frame_size?"


def test_each_command_has_its_functions():
    assert COUNTERPARTS.keys() == {name for group in COMMANDS.values() for name in group}
    loaded()
    for group, commands in (("estimate", estimate_app), ("analyse", analyse_app)):
        names = {f"{group}_{each.callback.__name__}" for each in commands.registered_commands}
        assert names == set(COUNTERPARTS[group].split())


ONLY_IN_PYTHON = {
    "progress", "told", "reached", "watcher",  # what hears of progress
    "folder", "beside", "language", "browser",  # --in, --with, --as and --no-browser
    "hierarchy", "options",  # names of their own
}  # fmt: skip


def test_arguments_have_the_names_of_options_and_the_plural_where_one_is_repeated():
    commands = dict(get_command(loaded()).commands)
    for group in ("estimate", "analyse"):
        commands |= {f"{group}_{name}": each for name, each in commands.pop(group).commands.items()}
    functions = {"list": "list_items", "open": "open_page", "import": "import_results"}
    for name, command_of in commands.items():
        options = set()
        for parameter in command_of.params:
            texts = [text[2:].replace("-", "_") for text in parameter.opts if text.startswith("--")]
            options |= {parameter.name, *texts, *(f"{text}s" for text in texts if parameter.multiple)}
        function = getattr(p4perf, functions.get(name, name), None)
        arguments = inspect.signature(function).parameters if function else {}
        assert (name, arguments.keys() - options - ONLY_IN_PYTHON - {"run"}) == (name, set())


def test_nothing_is_imported_before_it_is_used():
    asked = (
        "import sys, p4perf; print([m for m in ('numpy', 'pandas', 'typer', 'scipy', 'pydantic') if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"


class TestFit:
    DATA = pd.DataFrame(
        {"entries": range(1, 41), "cycles": [40 if n <= 15 else 40 + 2 * (n - 15) for n in range(1, 41)]}
    )

    def check(self, found):
        assert found.breakpoints == (16.0,)
        assert [segment.text() for segment in found.segments] == ["y = 40", "y = 10 + 2 x"]
        assert list(found.to_frame()["start"]) == [1, 16]
        assert "breakpoints 16" in repr(found)
        assert len(repr(found)) < 100
        assert isinstance(found.plot(), Figure)
        assert "10 + 2 entries" in found._repr_html_()

    def test_of_columns_of_a_table(self):
        self.check(p4perf.fit(self.DATA, "cycles", x="entries"))

    def test_of_a_file(self, tmp_path):
        self.DATA.to_csv(tmp_path / "data.csv", index=False)
        found = p4perf.fit(tmp_path / "data.csv", "cycles", x="entries", output=tmp_path / "out")
        self.check(found)
        assert {path.suffix for path in found.plots} == {".svg", ".png"}
        self.check(p4perf.load_model(tmp_path / "out" / "model.json"))

    def test_of_a_run(self, runs):
        found = p4perf.fit(runs[0], resamples=0)
        assert found.model.name == SPEC
        assert p4perf.open_run(runs[0]).model.fitting == found.model.fitting

    def test_a_wrong_column_is_named_with_the_nearest_one(self):
        with pytest.raises(UsageError, match="no column 'cycels'") as caught:
            p4perf.fit(self.DATA, "cycels", x="entries")
        assert "cycles" in caught.value.hint
        with pytest.raises(UsageError, match="no option 'segmentz'"):
            p4perf.fit([1, 2], [1, 2], segmentz=1)

    @pytest.mark.parametrize(
        ("given", "options", "words"),
        [
            (([1, 2], [1, 2]), {"x_scale": "cubic"}, "unknown scale 'cubic'"),
            (([1, 2], [1, 2]), {"max_segments": "two"}, "max_segments: expected a whole number, got 'two'"),
            (([1, 2], ["one", "two"]), {}, "must be numbers"),
            (([1, 2],), {}, "there are no samples"),
        ],
    )
    def test_what_is_wrong_is_said(self, given, options, words):
        with pytest.raises(P4PerfError, match=words):
            p4perf.fit(*given, **options)

    def test_a_model_is_a_function(self, tmp_path):
        found = p4perf.fit([1, 2, 3], [1.0, 2.0, 3.0])
        (tmp_path / "model.json").write_text(found.model.to_json())
        assert p4perf.load_model(tmp_path / "model.json")(2) == pytest.approx(found(2)) == pytest.approx(2)

    def test_of_a_folder_of_runs(self, runs, tmp_path):
        found = api.fit_many([tmp_path / "runs"], options={"resamples": 0}, processes=1)
        assert len(found.to_frame()) == 3
        assert [model.target for model in found.models] == ["t0", "t1", "t2"]
        assert repr(found) == "<FittedSeries: 3 series, 0 without a model>"


class TestRuns:
    def test_names(self, runs):
        assert p4perf.open_run().path == runs[2].absolute()
        assert p4perf.open_run("latest~2").path == runs[0].absolute()
        assert p4perf.open_run("mat-exact-entries--t1").path == runs[1].absolute()
        assert p4perf.open_run(runs[1]).path == runs[1].absolute()
        with pytest.raises(UsageError, match="latest~3: there are only 3 runs"):
            p4perf.open_run("latest~3")
        with pytest.raises(UsageError, match="3 runs have names or times that begin with mat"):
            p4perf.open_run("mat")
        with pytest.raises(DataError, match="nothing: there is no such run directory"):
            p4perf.open_run("nothing")

    def test_a_list(self, runs):
        found = p4perf.list_runs()
        assert [run.manifest.target for run in found] == ["t0", "t1", "t2"]
        assert repr(found).startswith("<RunList of 3: mat-exact-entries--t0--")
        assert list(found.to_frame()["target"]) == ["t0", "t1", "t2"]
        assert found._repr_html_().count("<tr") == 4
        (runs[0] / "manifest.json").write_text("{")
        with pytest.warns(UserWarning, match="manifest"):
            assert len(p4perf.list_runs()) == 2

    def test_data(self, runs):
        p4perf.fit(runs[0], resamples=0)
        run = p4perf.open_run(runs[0])
        assert {"metric", "value", "unit", "accepted"} <= set(run.to_frame().columns)
        assert {"entries", "median", "low", "high", "n"} <= set(run.points().columns)
        assert run.breakpoints == run.model.breakpoints
        assert len(run.segments) == len(run.breakpoints) + 1
        assert repr(run).startswith("<OpenRun mat-exact-entries--t0--local")
        assert isinstance(run.plot(), Figure)
        assert "<svg" in run._repr_html_()
        assert "<svg" not in p4perf.open_run(runs[1])._repr_html_()
        with pytest.raises(DataError):
            p4perf.open_run(runs[1]).plot()

    def test_comparison(self, runs):
        found = p4perf.compare(["latest~2", runs[1]], margin=0.1)
        assert "t1: " in repr(found)
        assert len(found.to_frame()) == 2 * len(p4perf.open_run(runs[0]).points())
        assert isinstance(found.plot(), Figure)
        assert "verdict" in found._repr_html_()
        assert not (runs[0].parents[1] / "comparisons").exists()

    def test_comparisons_of_too_little(self, runs):
        with pytest.raises(UsageError, match="no run is named"):
            p4perf.compare([])
        with pytest.raises(UsageError, match="the only run of mat/exact-entries"):
            p4perf.compare("latest")

    def test_comparison_of_models(self, runs):
        p4perf.fit(runs[0], resamples=20)
        found = p4perf.compare(["t4p4s@scholz2021", "latest~2"], component=SPEC, at=[10, 100])
        assert list(found.to_frame()["x"].unique()) == [10, 100]
        assert found.to_frame()["ratio"].notna().any()
        assert isinstance(found.plot(), Figure)
        assert "<svg" in found._repr_html_()

    def test_the_gate(self, runs):
        for run in runs:
            manifest = json.loads((run / "manifest.json").read_text()) | {"target": "t"}
            (run / "manifest.json").write_text(json.dumps(manifest))
        found = p4perf.gate("latest", "latest~2", margin="5%")
        assert (found.margin, found.verdict, found.exit_code) == (0.05, "failed", 1)
        assert list(found.to_frame()["verdict"]) == ["slower"]
        assert repr(found) == "<GateDocument: failed, 1 component: 1 slower>"
        assert "slower" in found._repr_html_()
        with pytest.raises(UsageError, match="is its own baseline"):
            p4perf.gate(runs[0], [p4perf.open_run(runs[1]), p4perf.open_run(runs[0])])
        with pytest.raises(UsageError, match=r"^baseline: names nothing"):
            p4perf.gate(runs[0], [])
        with pytest.raises(UsageError, match=r"^margin 7: expected a share below 1"):
            p4perf.gate("latest", "latest~2", margin=7)


class TestMeasuring:
    def test_an_experiment(self, fakes, tmp_path):
        run = p4perf.run(SPEC, "fake", set={"entries": [1, 10, 100, 1000]}, output=tmp_path)
        assert list(run.points()["entries"]) == [1, 10, 100, 1000]
        assert run.segments
        assert p4perf.list_runs(tmp_path)[0].path == run.path

    def test_a_campaign(self, fakes, tmp_path):
        found = p4perf.run([SPEC], ["fake", "fake-small"], points=2, output=tmp_path)
        assert {run.manifest.target for run in found} == {"fake", "fake-small"}
        assert len(p4perf.list_runs(tmp_path)) == 2

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ((SPEC, "fake", {"accuracy": 3}), "^accuracy 3: expected a share below 1"),
            (([], "fake", {}), "takes an experiment, a target and some time"),
            (([SPEC], [], {}), "takes an experiment, a target and some time"),
            ((SPEC, "fake", {"budget": 0}), "takes an experiment, a target and some time"),
            ((SPEC, "fake", {"set": {"entrys": 3}}), "entrys"),
        ],
    )
    def test_what_cannot_be_measured_is_refused_before(self, fakes, tmp_path, given, words):
        spec, target, options = given
        with pytest.raises(P4PerfError, match=words):
            p4perf.run(spec, target, output=tmp_path / "runs", **options)
        assert not (tmp_path / "runs").exists()

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"points": "x"}, "points: expected a whole number of at least 1, got 'x'"),
            ({"points": 0}, "points: expected a whole number of at least 1, got 0"),
            ({"accuracy": "x"}, "accuracy x: expected a share below 1"),
            ({"budget": "x"}, "budget x: expected a time"),
            ({"set": 5}, "set: expected a mapping"),
            ({"set": "entries"}, "set entries: expected key=value"),
            ({"testbed": 5}, "testbed: expected an address"),
            ({"output": 5}, "output: expected a path, got 5"),
        ],
    )
    def test_what_an_option_does_not_take_is_refused_by_name(self, options, words):
        with pytest.raises(UsageError, match=words):
            p4perf.run(SPEC, **options)

    def test_hints_name_what_python_calls(self, tmp_path):
        with pytest.raises(P4PerfError, match=r"hint: p4perf\.list_runs\(\) shows the runs"):
            p4perf.open_run(tmp_path / "runs")

    def test_texts_of_the_command_line_are_understood(self, fakes, tmp_path):
        run = p4perf.run(SPEC, "fake", accuracy="20%", output=tmp_path)
        assert run.manifest.design["accuracy"] == 0.2
        assert len(p4perf.run(SPEC, "fake", points=2, budget="1m", output=tmp_path)) == 1

    def test_both_sides_of_a_gate_in_turns(self, fakes, tmp_path):
        old, new = api.measure_sides(SPEC, target="fake", points=3, pairs=2, output=tmp_path)
        found = p4perf.gate(new, old)
        assert [row.verdict for row in found.rows] == ["same"]
        assert old.points()["n"].tolist() == [2, 2, 2]

    def test_settings_are_texts_or_a_mapping(self, fakes, tmp_path):
        ways = ({"entries": [1, 10], "trials.repetitions": 1}, ["entries=[1, 10]", "trials.repetitions=1"])
        hashes = {p4perf.run(SPEC, "fake", set=way, output=tmp_path).manifest.spec_hash for way in ways}
        assert len(hashes) == 1

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"frame_size": 32}, "l2_switch.json: traffic.frame_size: must be 64 to 9216 bytes"),
            ({"packets": "many"}, "packets: expected a whole number of at least 1, got 'many'"),
            ({"entries": 3}, "entries: expected a path, got 3"),
            ({"sizes": "64"}, "sizes: expected whole numbers, got '64'"),
        ],
    )
    def test_what_a_program_does_not_take_is_refused_by_name(self, options, words):
        with pytest.raises(P4PerfError, match=words) as caught:
            p4perf.measure(SWITCH, **options)
        assert ".p4perf-" not in str(caught.value)

    def test_options_of_programs_are_refused_for_operators(self, tmp_path):
        (tmp_path / "a.c").write_text("")
        with pytest.raises(UsageError, match=r"fill is for P4 programs, and .*a\.c is none"):
            p4perf.measure(tmp_path / "a.c", fill={"fib": 3})
        with pytest.raises(UsageError, match="sizes is for operators in C"):
            p4perf.measure(SWITCH, sizes=[64])

    def test_points_that_are_left_out_are_said(self, fakes, tmp_path):
        with pytest.warns(UserWarning, match="entries=5000 is left out: 5,000 exact entries are more than the 100"):
            p4perf.run(SPEC, "fake-small", set={"entries": [1, 10, 5000]}, output=tmp_path)

    def test_a_program(self, tmp_path):
        script = (
            "import sys; from support import stand_ins; stand_ins.install(['dpdk-c']); import p4perf\n"
            "run = p4perf.measure(sys.argv[1], repetitions=2, output='runs')\n"
            "print(list(run.points()['n']), run.manifest.experiment)"
        )
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        said = subprocess.run(
            [sys.executable, "-c", script, SWITCH],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert said.split() == ["[2]", "program/l2-switch"]


def test_learning(fakes, tmp_path):
    with pytest.raises(UsageError, match="name either run directories, or target"):
        p4perf.learn()
    with pytest.raises(UsageError, match="unknown target 'fakes'"):
        p4perf.learn(target="fakes", quick=True)
    with pytest.raises(TargetUnavailableError, match="no cost model for target fake ships"):
        p4perf.learn(target="fake", quick=True)
    known = LearntModel.of(reference_model("dpdk-c"))
    known.save(tmp_path / "model.json")
    found = p4perf.predict(SPEC, models=tmp_path / "model.json", points=1)
    assert found.to_frame()["target"].tolist() == ["dpdk-c"]
    assert repr(known).startswith("<LearntModel of dpdk-c: baseline ")
    assert {"what", "points", "median_error"} <= set(known.to_frame().columns)
    assert "median_error" in known._repr_html_()


def test_prediction():
    with pytest.raises(UsageError, match="unknown target 'dpdk'") as caught:
        p4perf.predict(SWITCH, "dpdk")
    assert caught.value.hint == "did you mean dpdk-c?"
    found = p4perf.predict(SWITCH, "dpdk-c", line_rate="100Gbps")
    (row,) = found.to_frame().to_dict("records")
    assert row["cycles_low"] <= row["cycles"] <= row["cycles_high"]
    assert repr(found).startswith("<Answers: ")
    changed = p4perf.predict("mat/exact-entries", "dpdk-c", set={"entries": [100]}, without="match_action_table")
    assert "mat/exact-entries (entries=[100]; without match_action_table) on dpdk-c" in repr(changed)
    assert "<th>change</th>" in changed._repr_html_()
    assert isinstance(found.plot(), Figure)
    assert "<svg" in found._repr_html_()
    with pytest.raises(UsageError, match=r"^load and rate"):
        p4perf.predict(SPEC, load=0.5, rate="1Mpps")
    with pytest.raises(UsageError, match="there is no path 'best'"):
        p4perf.predict(SPEC, "dpdk-c", path="best")


def test_numbers_stand_for_quantities_and_mappings_for_changes():
    texts = p4perf.predict(SPEC, "dpdk-c", line_rate="1Gbit/s", frequency="2GHz", set="entries=5")
    numbers = p4perf.predict(SPEC, "dpdk-c", line_rate=1e9, frequency=2e9, set={"entries": 5})
    assert texts.to_frame().equals(numbers.to_frame())
    assert len(texts.to_frame()) == 1


def test_reproduction(tmp_path):
    found = p4perf.reproduce("gebert2016", only=["analytic"], output=tmp_path / "out")
    assert len(found.to_frame()) == len(found.findings) > 0
    assert found.path == (tmp_path / "out").absolute()
    assert all(path.is_file() for path in found.files)
    assert "claims, " in repr(found)
    assert "verdict" in found._repr_html_()
    with pytest.raises(UsageError, match="no kind 'analytical' of claims"):
        p4perf.reproduce("gebert2016", only="analytical")


def test_types_of_results_can_be_named():
    assert typing.get_type_hints(api.open_run)["return"] is api.OpenRun
    assert api.derive([1, 2], [1.0, 2.0], api.FitOptions()).best.segments
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = api.nothing


def test_the_command_is_a_face_of_it(runs, tmp_path):
    rows = json.loads(command("list", "runs", "--format", "json", cwd=tmp_path).out)["rows"]
    assert [row["run"] for row in rows] == [str(path) for path in p4perf.list_runs().to_frame()["run"]]


def test_runs_are_shown_and_handed_on(runs, tmp_path):
    p4perf.fit(runs[0], resamples=0)
    state = p4perf.status("latest~2")
    assert state.rows[0].points == len(p4perf.open_run(runs[0]).points())
    assert repr(state).startswith("<StatusDocument: run ")
    assert len(repr(state)) <= 120
    assert list(state.to_frame()["run"]) == [str(p4perf.open_run("latest~2").path)]
    site = p4perf.report([runs[0], "latest~1"], tmp_path / "site")
    assert dict(site.to_frame()[["kind", "pages"]].itertuples(index=False))["run"] == 2
    assert site.path.is_file()
    assert "index.html, size_bytes " in repr(site)
    assert "def " in p4perf.export(runs[0])
    assert p4perf.export(runs[0], "c", tmp_path / "f.c") == (tmp_path / "f.c").read_text()
    zipped = p4perf.pack(runs[0], tmp_path / "a.zip", authors="Jane Doe", licence="CC-BY-4.0")
    assert zipped.rows[0].packed_bytes == zipped.path.stat().st_size
    assert zipped.path == tmp_path / "a.zip"
    assert p4perf.open_page(runs[0], browser=False).parent.name == "runs"


def test_results_of_other_tools(tmp_path):
    (tmp_path / "rates.csv").write_text("size,rate\n64,10\n128,9\n256,8\n")
    options = {"x": {"frame_size": "size"}, "metrics": {"packet_rate": "rate"}, "units": "Mpps"}
    found = p4perf.import_results(tmp_path / "rates.csv", output=tmp_path / "runs", target="switch", **options)
    assert found.points()["median"].tolist() == [10, 9, 8]
    with pytest.raises(UsageError, match="there is no argument 'traget'"):
        p4perf.import_results(tmp_path / "rates.csv", traget="switch")


def test_what_is_known_before_measuring(fakes, tmp_path):
    assert "dpdk-c" in set(p4perf.list_items("targets").to_frame()["name"])
    with pytest.raises(UsageError, match="there is no list of 'target'") as caught:
        p4perf.list_items("target")
    assert caught.value.hint == "did you mean targets?"
    checked = p4perf.check(SPEC, "fake", points=3, set={"trials.repetitions": 2})
    assert (checked.rows[0].points, checked.rows[0].trials) == (3, 6)
    said = []
    p4perf.check(SPEC, "fake-small", set={"entries": [1, 5000]}, skip_impossible=True, told=said.append)
    assert said[0].startswith("left out: entries=5000: ")
    written = p4perf.generate(SPEC, "bmv2", output=tmp_path / "out", points=1).written
    assert {each.generator for each in written} == {"v1model"}
    again = p4perf.generate(SPEC, targets="bmv2", output=tmp_path / "again", points=1)
    assert len(again.to_frame()) == len(again.written) == len(written)
    assert repr(again) == f"<Generated: {len(written)} files, 0 refused points>"
    assert all(each.path.is_file() for each in written)


def test_methods_of_papers():
    (row,) = p4perf.estimate_eo("switch/basic", "xeon-e5-2690v2").to_frame().to_dict("records")
    assert row["mpps_per_core"] == pytest.approx(3600 / row["cycles"])
    placed = p4perf.estimate_place({"switch/basic": "5Mpps"}, ["xeon-e5-2690v2:1", "xeon-e5-2690v2:4"])
    assert placed.to_frame()["cores"].tolist() == [1, 4]
    queued = p4perf.estimate_queue("det:7us", rates=["0.05Mpps", "0.1Mpps"]).to_frame()
    assert queued["mean_us"].is_monotonic_increasing
    (best,) = p4perf.estimate_queue("det:7us", rates="0.05Mpps", tune="mean").to_frame().to_dict("records")
    assert best["objective_us"] == pytest.approx(best["mean_us"])
    slow, fast = (p4perf.estimate_cesim([0.99], variants=["simple"], clock_ghz=g).rows[0].mpps for g in (2.0, 4.0))
    assert slow != fast
    assert set(p4perf.analyse_opq(beside="ren2025").to_frame()["platform"]) == {"Arm", "x86"}
    assert len(repr(p4perf.analyse_opq(beside="ren2025"))) < 100


def test_factors_of_a_file(tmp_path):
    lines = [f"{a},{b},{10 * (1 + a) * (1 + 2 * b)}" for a in (0, 1) for b in (0, 1)]
    (tmp_path / "cells.csv").write_text("\n".join(["a,b,rate", *lines]))
    found = p4perf.analyse_factors(tmp_path / "cells.csv", "rate", factors=["a", "b"]).to_frame()
    assert found.set_index("factor")["effect"].round(6).to_dict() == {"a": 2, "b": 3}


def test_messages_name_arguments_of_functions_and_options_of_commands(tmp_path):
    with pytest.raises(UsageError) as caught:
        p4perf.doctor(fix=True, undo=True)
    assert str(caught.value) == "fix and undo are opposites"
    assert "--fix and --undo are opposites" in command("doctor", "--fix", "--undo", cwd=tmp_path).err


def test_hints_in_python_are_calls():
    error = UsageError("no", hint="p4perf compare my/runs/ compares them; p4perf resume continues; p4perf run --quick")
    assert "p4perf compare my/runs/ compares" in str(error)
    error.arguments = ["quick"]
    assert str(error).endswith(
        'p4perf.compare("my/runs/") compares them; p4perf.resume() continues; p4perf run --quick'
    )


def test_documentation_names_every_function():
    text = (Path(p4perf.__file__).parents[1] / "docs" / "index.md").read_text()
    assert [name for name in OFFERED if f"`{name}`" not in text and name not in COUNTERPARTS] == []
