"""``export``: a model as Python, C and LaTeX, from a file and from a run; it computes what the model computes."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from support.command import p4perf

from p4perf.models import ComponentModel

X = [0.5, 1, 3, 11.999, 12, 12.5, 24, 1000]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of two segments."""
    folder = tmp_path_factory.mktemp("model")
    data = folder / "data.csv"
    rows = [(n, 50 if n < 12 else 20 + 10 * np.log(n) + 0.1 * (n % 3)) for n in range(1, 25)]
    data.write_text("entries,cycles\n" + "".join(f"{x},{y:.3f}\n" for x, y in rows))
    done = p4perf("fit", data, "--x", "entries", "--y", "cycles", "--segments", "2", "-o", folder)
    assert done.code == 0, done.err
    return folder / "model.json"


def exported(*arguments):
    done = p4perf("export", *arguments)
    assert done.code == 0, done.err
    return done.out


def run_python(text, name):
    names = {}
    exec(text, names)  # noqa: S102
    return [names[name](x) for x in X]


def run_c(text, name, folder):
    main = "".join(f'\tprintf("%.17g\\n", {name}({x!r}));\n' for x in X)
    (folder / "model.c").write_text(f"{text}\n#include <stdio.h>\nint main(void)\n{{\n{main}\treturn 0;\n}}\n")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *flags, "model.c", "-o", "model", "-lm"], cwd=folder, check=True, timeout=60)
    done = subprocess.run([folder / "model"], capture_output=True, text=True, check=True, timeout=60)
    return [float(line) for line in done.stdout.split()]


def test_python_is_the_default(model):
    text = exported(model)
    assert text == exported(model, "--as", "python")
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_python_computes_the_same(model):
    text = exported(model)
    assert re.findall(r"^import .*", text, re.MULTILINE) == ["import math"]
    wanted = ComponentModel.from_json(model.read_text()).evaluate(X)
    assert run_python(text, "data_cycles") == pytest.approx(wanted, rel=1e-12)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs cc")
def test_c_computes_the_same(model, tmp_path):
    wanted = ComponentModel.from_json(model.read_text()).evaluate(X)
    assert run_c(exported(model, "--as", "c"), "data_cycles", tmp_path) == pytest.approx(wanted, rel=1e-12)


def test_latex(model):
    text = exported(model, "--as", "latex")
    assert r"\begin{cases}" in text
    assert r"\ln" in text
    assert text.count("&") == 2
    assert text.count("{") == text.count("}")


@pytest.mark.parametrize("language", ["python", "c", "latex"])
def test_to_a_file(model, tmp_path, language):
    path = tmp_path / "out.txt"
    done = p4perf("export", model, "--as", language, "--output", path)
    assert (done.code, done.out, done.err) == (0, "", f"written: {path}\n")
    assert path.read_text() == exported(model, "--as", language)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    done = p4perf("run", "mat/exact-entries", "--points", 12, "--target", "fake", "-o", folder, "-q")
    assert done.code == 0, done.err
    (path,) = folder.iterdir()
    return path


@pytest.mark.thorough
def test_of_a_run(run, tmp_path):
    text = exported(run)
    assert text == exported(run / "model.json")
    assert "on fake" in text
    wanted = ComponentModel.from_json((run / "model.json").read_text()).evaluate(X)
    assert run_python(text, "mat_exact_entries_cycles_per_packet") == pytest.approx(wanted, rel=1e-12)


def changed(model, **changes):
    record = json.loads(model.read_text())
    for path, value in changes.items():
        at = record
        *keys, last = (int(key) if key.isdigit() else key for key in path.split("__"))
        for key in keys:
            at = at[key]
        at[last] = value
    return json.dumps(record)


@pytest.mark.parametrize(
    ("damage", "wanted"),
    [
        (lambda model: "", "model.json:1:1: not JSON"),
        (lambda model: model.read_text()[:-20], "not JSON"),
        (lambda model: "[]", "must be an object"),
        (lambda model: "{}", "schema"),
        (lambda model: changed(model, schema="other"), "schema: must be 'p4perf/component-model'"),
        (lambda model: changed(model, schema_version=99), "schema_version: must be 2, not 99"),
        (lambda model: changed(model, fitting__segments__0__template="pol1"), "fitting.segments[0].template"),
        (lambda model: changed(model, fitting__segments__1__parameters={"a": 1}), "fitting.segments[1].parameters"),
        (lambda model: changed(model, fitting__segments__0__points="five"), "fitting.segments[0].points"),
        (lambda model: changed(model, fitting__breakpoints=[3]), "must follow each other and match its breakpoints"),
        (lambda model: model.read_text().replace("0.95", "NaN"), "uncertainty.level: must be a finite number"),
    ],
)
def test_a_broken_model(model, tmp_path, damage, wanted):
    path = tmp_path / "model.json"
    path.write_text(damage(model))
    done = p4perf("export", path, "-o", tmp_path / "out.py")
    assert done.code == 2, done.err
    assert done.out == ""
    assert str(path) in done.err
    assert wanted in done.err
    assert "Traceback" not in done.err
    assert done.err.count("error: ") == 1
    assert not (tmp_path / "out.py").exists()


def test_what_is_no_model(run, tmp_path):
    for path, wanted in (
        (tmp_path / "nothing.json", "there is no model or run directory"),
        (tmp_path, "is not a run directory"),
        (run / "manifest.json", "schema"),
    ):
        done = p4perf("export", path)
        assert done.code == 2, done.err
        assert wanted in done.err


def test_a_run_that_has_no_model(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / run.name)
    (copy / "model.json").unlink()
    done = p4perf("export", copy)
    assert done.code == 2, done.err
    assert "model" in done.err
    assert "Traceback" not in done.err


def test_a_language_that_does_not_exist(model):
    done = p4perf("export", model, "--as", "fortran")
    assert done.code == 2
    assert "python" in done.err


def test_a_file_that_cannot_be_written(model, tmp_path):
    (tmp_path / "file").write_text("")
    done = p4perf("export", model, "-o", tmp_path / "file" / "out.py")
    assert done.code == 3, done.err
    assert "cannot write" in done.err


def test_a_template_without_code(tmp_path):
    """A template of another package may have no form in a language: the message names it; LaTeX shows its name."""
    (tmp_path / "mine.py").write_text(
        "from p4perf.models import FunctionTemplate\n"
        "def templates():\n"
        "    return (FunctionTemplate('doubled', lambda x, c: 2 * c + 0 * x, ('c',), rank=0.5),)\n"
    )
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[p4perf.templates]\nmine = mine:templates\n")
    (tmp_path / "data.csv").write_text("x,y\n" + "".join(f"{n},7\n" for n in range(12)))
    done = p4perf("fit", "data.csv", "--x", "x", "--y", "y", "--max-segments", "1", "-o", "out", cwd=tmp_path)
    assert done.code == 0, done.err
    done = p4perf("export", "out/model.json", cwd=tmp_path)
    assert done.code == 2, done.err
    assert "doubled" in done.err
    done = p4perf("export", "out/model.json", "--as", "latex", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "doubled" in done.out
    assert p4perf("export", tmp_path / "out/model.json").code == 2, "the package is not on the path"
