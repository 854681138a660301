"""The package of examples/energy, installed outside of the tree: a component, a metric, a generator and a target."""

import csv
import io
import json
import os
import shutil
import subprocess
import sys

import pytest
from docs_pages import ROOT


@pytest.fixture(scope="module")
def p4perf(tmp_path_factory):
    """Runs p4perf in a process of its own that finds the package, which pip has built and installed."""
    folder, site = tmp_path_factory.mktemp("package") / "energy", tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "examples" / "energy", folder)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(site), str(folder)], check=True)
    (folder / "energy").rename(folder / "sources")  # only what is installed counts

    def run(*words):
        variables = {**os.environ, "PYTHONPATH": str(site), "NO_COLOR": "1", "COLUMNS": "200"}
        command = [sys.executable, "-m", "p4perf", *words]
        return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)

    run.folder = folder
    return run


def rows(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rows"]


@pytest.mark.parametrize(
    ("what", "name"),
    [("components", "additions"), ("metrics", "joules_per_packet"), ("generators", "sums"), ("targets", "meter")],
)
def test_it_is_listed(p4perf, what, name):
    assert name in {row["name"] for row in rows(p4perf("list", what, "--format", "json"))}


def test_its_parameters_and_metric_are_checked(p4perf):
    assert rows(p4perf("check", "energy.yaml", "--target", "meter", "--format", "json"))[0]["points"] == 3
    text = (p4perf.folder / "energy.yaml").read_text()
    for wrong, place, hint in (
        (text.replace("count:", "cuont:", 1), ":2:46: program.parameters.cuont: ", "did you mean count?"),
        (text.replace("joules", "jules"), ":3:21: metrics.collect.0: ", "did you mean joules_per_packet?"),
        (text.replace("10000", "10001"), ":2:53: program.parameters.count: ", "at the point count = 10001"),
    ):
        (p4perf.folder / "wrong.yaml").write_text(wrong)
        done = p4perf("check", "wrong.yaml")
        assert done.returncode == 2
        assert place in done.stderr
        assert hint in done.stderr
        assert "^" in done.stderr


def test_its_template_becomes_files(p4perf):
    done = p4perf("generate", "energy.yaml", "-g", "sums", "-o", "generated", "--set", "count=2")
    assert done.returncode == 0, done.stderr
    (program,) = (p4perf.folder / "generated").rglob("program.c")
    assert (
        "unsigned program(volatile unsigned *total)\n{\n    *total += 1u;\n    *total += 2u;\n" in program.read_text()
    )


def test_its_target_is_built_and_measures(p4perf):
    done = p4perf("run", "energy.yaml", "--target", "meter", "-o", "runs")
    assert done.returncode == 0, done.stderr
    shown = p4perf("show", *[str(path) for path in (p4perf.folder / "runs").iterdir()], "--format", "csv")
    assert shown.returncode == 0, shown.stderr
    table = list(csv.DictReader(io.StringIO(shown.stdout)))
    joules = [float(row["median"]) for row in table]
    assert len(joules) == 3
    assert 0 < joules[0] < joules[1] < joules[2]
