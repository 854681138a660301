"""Every option of ``fit``, on a CSV file and on a finished run: what was asked for is in the model."""

import csv
import io
import json
import math
from pathlib import Path

import pytest
from support.command import p4perf
from support.runs import make_run
from typer.main import get_command

from p4perf.cli import loaded
from p4perf.plugins import plugin_names

ENTRIES = [round(10 ** (k / 4)) for k in range(1, 25)]
NOISE = (0.3, -0.2, 0.1, -0.4, 0.2, 0.0, -0.1)


def cycles(entries, index):
    """Like the fake target: flat, then growing with the logarithm."""
    return 100 + 40 * max(0.0, math.log10(entries) - 3) + NOISE[index % len(NOISE)]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A CSV file with two repetitions of each point."""
    path = tmp_path_factory.mktemp("data") / "data.csv"
    rows = [f"{x},{cycles(x, 3 * k + r):.2f}\n" for k, x in enumerate(ENTRIES) for r in range(2)]
    path.write_text("entries,cycles\n" + "".join(rows))
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run of the fake target."""
    folder = tmp_path_factory.mktemp("runs")
    done = p4perf("run", "mat/exact-entries", "--points", 20, "--target", "fake", "-o", folder, "-q")
    assert done.code == 0, done.err
    (path,) = folder.iterdir()
    return path


def fitted(what, folder, *options):
    """What ``fit`` printed, and the model that it wrote."""
    options = (*options, "--format", "json")
    if what.is_dir():
        done, written = p4perf("fit", what, *options), what / "model.json"
    else:
        done = p4perf("fit", what, "--x", "entries", "--y", "cycles", "-o", folder, *options)
        written = folder / "model.json"
    assert done.code == 0, done.err
    assert "Traceback" not in done.err
    found, model = json.loads(done.out), json.loads(written.read_text())
    assert found["error"] == model["fitting"]["error"]
    assert found["breakpoint_x"] == model["fitting"]["breakpoint_x"]
    assert all(Path(plot).stat().st_size for plot in found["plots"])
    return found, model


def used(model, key):
    return model["provenance"]["derivation"][key]


def segments_are(number):
    return lambda found, model: (
        len(found["segments"]) == number and number in {c["segments"] for c in found["candidates"]}
    )


def two_segments_at_most(found, model):
    return {c["segments"] for c in found["candidates"]} <= {1, 2}


def eight_points(found, model):
    return used(model, "min_points") == 8 and all(segment["points"] >= 8 for segment in found["segments"])


def setting(key, value):
    return lambda found, model: used(model, key) == value


def published(found, model):
    return used(model, "profile") == "scholz2021" and used(model, "gamma") == 1e-5 and used(model, "min_points") == 1


def metric(name):
    return lambda found, model: found["error_metric"] == model["error_metric"] == name


def level(found, model):
    return model["uncertainty"]["level"] == 0.5


def every_figure(found, model):
    numbers = [c["segments"] for c in found["candidates"]]
    names = [Path(plot).name for plot in found["plots"]]
    return all(sum(f"-{n}-segments." in name for name in names) == 2 for n in numbers)


CHECKS = {
    "--segments 3": segments_are(3),
    "--max-segments 2": two_segments_at_most,
    "--min-points 8": eight_points,
    "--profile scholz2021": published,
    **{f"--error {name}": metric(name) for name in plugin_names("p4perf.error_metrics")},
    "--loss l1": setting("loss", "l1"),
    "--template poly1": lambda found, model: {segment["template"] for segment in found["segments"]} == {"poly1"},
    **{f"--split-finder {name}": setting("split_finder", name) for name in plugin_names("p4perf.split_finders")},
    "--search coarse": setting("search", "coarse"),
    "--level 0.5": level,
    "--threads 1": lambda found, model: found["segments"],
    "--every-plot": every_figure,
}
TOGETHER = [
    ["--segments 3", "--error smape_pooled", "--loss l1", "--level 0.5"],
    ["--max-segments 2", "--min-points 8", "--error smape", "--split-finder brute-force", "--every-plot"],
    ["--profile scholz2021", "--error mape", "--threads 1"],
    ["--search coarse", "--error rmse", "--template poly1"],
    ["--error emd", "--split-finder savitzky-golay"],
    ["--split-finder dynamic", "--loss l1"],
    ["--split-finder second-derivative", "--max-segments 2"],
]
"""Options that are given together, so that each is given once at least."""
OF_FILES = {
    "--x-scale log": lambda found, model: found["x"]["scale"] == model["x"]["scale"] == "log",
    "--working-set 0+100 --cache L2=100KiB --cache L3=1GiB": lambda found, model: (
        len(found["explanations"]) == len(found["breakpoint_x"]) >= 1
        and "explained, L2 full" in found["explanations"][0]
    ),
    "--working-set scholz2021:16,64 --cache L1=1kB": lambda found, model: (
        found["explanations"] and all("unexplained" in text for text in found["explanations"])
    ),
}


def words(options):
    return [word for option in options for word in option.split()]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", TOGETHER, ids=" ".join)
def test_of_a_csv_file(data, tmp_path, options):
    found, model = fitted(data, tmp_path / "out", *words(options))
    assert [option for option in options if not CHECKS[option](found, model)] == []
    assert (found["run"], found["name"], found["target"]) == (None, "data", "")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("options", TOGETHER, ids=" ".join)
def test_of_a_run(run, options):
    found, model = fitted(run, None, *words(options))
    assert [option for option in options if not CHECKS[option](found, model)] == []
    assert (found["run"], found["target"]) == (str(run), "fake")


@pytest.mark.parametrize("options", OF_FILES)
def test_options_of_files(data, tmp_path, options):
    assert OF_FILES[options](*fitted(data, tmp_path, *options.split()))


def test_no_option_is_left_out():
    real = {option for parameter in get_command(loaded()).commands["fit"].params for option in parameter.opts}
    tried = {word for word in words([*CHECKS, *OF_FILES]) if word.startswith("--")}
    tried |= {"--x", "--y", "--output", "--format", "--region"}
    tried |= {"--where"}  # test_compare.py
    tried |= {"--by", "--resamples", "--processes", "--scheduler", "--tls", "--restart"}  # test_fit_many.py
    assert tried == {option for option in real if option.startswith("--") and option != "--help"}
    assert {option for options in TOGETHER for option in options} == set(CHECKS)


@pytest.mark.thorough
def test_the_model_does_not_depend_on_threads(data, tmp_path):
    models = [fitted(data, tmp_path / n, "--threads", n)[1] for n in ("1", "2", "7")]
    assert models[0] == models[1] == models[2]


def test_the_axis_of_the_figures_does_not_change_the_fit(data, tmp_path):
    models = [fitted(data, tmp_path / scale, "--x-scale", scale)[1] for scale in ("linear", "log")]
    assert models[0]["fitting"] == models[1]["fitting"]


def test_a_lower_level_has_narrower_intervals(data, tmp_path):
    narrow, wide = (fitted(data, tmp_path / n, "--level", n)[1]["uncertainty"] for n in ("0.5", "0.99"))
    widths = [sum(high - low for low, high in zip(u["low"], u["high"], strict=True)) for u in (narrow, wide)]
    assert widths[0] < widths[1]
    assert all(a["low"] >= b["low"] for a, b in zip(narrow["breakpoints"], wide["breakpoints"], strict=True))


@pytest.mark.thorough
def test_options_of_the_command_come_before_those_of_the_spec(tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "name: mine/fit\nextends: mat/exact-entries\n"
        "model: {error: mape, loss: l1, min_points: 4, split_finder: savitzky-golay, segments: 2}\n"
    )
    assert p4perf("run", spec, "--points", 16, "--target", "fake", "-o", tmp_path / "runs", "-q").code == 0
    (run,) = (tmp_path / "runs").iterdir()
    found, model = fitted(run, None)
    settings = (found["error_metric"], *(used(model, key) for key in ("loss", "min_points", "split_finder")))
    assert settings == ("mape", "l1", 4, "savitzky-golay")
    assert len(found["segments"]) == 2
    found, model = fitted(run, None, "--error", "rmse", "--loss", "squares", "--max-segments", "1")
    assert (found["error_metric"], used(model, "loss"), used(model, "min_points")) == ("rmse", "squares", 4)
    assert len(found["segments"]) == 1


def test_the_last_call_is_what_a_run_keeps(run):
    fitted(run, None, "--segments", "2")
    fitted(run, None, "--segments", "1")
    assert len(json.loads((run / "model.json").read_text())["fitting"]["segments"]) == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("what", ["data", "run"])
def test_formats(what, request):
    path = request.getfixturevalue(what)
    names = ("--x", "entries", "--y", "cycles") if what == "data" else ()
    printed = {fmt: p4perf("fit", path, *names, "--segments", "2", "--format", fmt) for fmt in ("table", "csv", "json")}
    assert {done.code for done in printed.values()} == {0}
    rows = list(csv.DictReader(io.StringIO(printed["csv"].out)))
    assert [row["segment"] for row in rows] == ["1", "2"]
    assert list(rows[0]) == ["segment", "entries", "points", "function", "parameters with 95 % intervals", "error"]
    assert all(row["function"] in printed["table"].out for row in rows)
    assert len(json.loads(printed["json"].out)["segments"]) == 2
    assert "2 segments (chosen)" in printed["table"].err
    assert "combined error" not in printed["csv"].err + printed["json"].err


def test_a_number_of_segments_that_was_asked_for_is_not_called_chosen(data):
    said = {n: p4perf("fit", data, "--x", "entries", "--y", "cycles", *n).err for n in ((), ("--segments", "1"))}
    assert "(chosen)" in said[()]
    assert "fixed" not in said[()]
    fixed = said["--segments", "1"]
    assert "  1 segment (fixed): " in fixed
    assert "  2 segments (lowest L1-BIC): " in fixed
    assert "fixed by --segments; without it, the L1-BIC chooses" in fixed
    assert "(chosen)" not in fixed


def test_the_hint_for_a_run_is_a_command(tmp_path):
    run = make_run(tmp_path, lambda x: 100 + 0.1 * x, noise=0)
    said = p4perf("fit", run, "--segments", "2").err
    assert f"fixed by the spec or --segments; p4perf fit {run} --max-segments " in said


def test_a_file_without_a_folder_leaves_nothing_behind(data, tmp_path):
    done = p4perf("fit", data, "--x", "entries", "--y", "cycles", "--format", "json", cwd=tmp_path)
    assert json.loads(done.out)["plots"] == []
    assert list(tmp_path.iterdir()) == []


def test_names_of_the_plots(data, tmp_path):
    found, _ = fitted(data, tmp_path, "--every-plot", "--max-segments", "2")
    assert {Path(plot).stem for plot in found["plots"]} == {
        "data", "data-residuals", "data-segments", *(f"data-{c['segments']}-segments" for c in found["candidates"]),
    }  # fmt: skip
    assert {p.name for p in tmp_path.iterdir()} == {"model.json", *(Path(plot).name for plot in found["plots"])}


def test_a_run_without_a_model(tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text("name: mine/none\nextends: mat/exact-entries\nmodel: null\n")
    assert p4perf("run", spec, "--points", 3, "--target", "fake", "-o", tmp_path / "runs", "-q").code == 0
    (run,) = (tmp_path / "runs").iterdir()
    done = p4perf("fit", run, "--format", "json")
    assert done.code == 0
    assert "no model" in done.err
    found = json.loads(done.out)
    assert (found["x"], found["segments"], found["candidates"]) == (None, [], [])
    assert not (run / "model.json").exists()
