from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from matplotlib.mathtext import MathTextParser

from p4perf.errors import UsageError
from p4perf.models import ComponentModel, Fitting, FunctionTemplate, PiecewiseFitting, Quantity, standard_templates
from p4perf.models.export import export_model, function_name
from p4perf.models.notation import Latex, latex_name
from p4perf.models.templates import BasisTemplate, find_template

TEMPLATES = standard_templates()
PARAMETERS = (0.3, 0.7, 0.11, 0.013, 0.0017, 0.00019)
WAVE = FunctionTemplate(
    "wave", lambda x, a, b: a * np.sin(b * x), ("a", "b"), python="{a} * math.sin({b} * {x})", c="{a} * sin({b} * {x})"
)
ODD = 'naïve 1"\\ ??/\n#{µ}*/ % $x_1^2~&\u2028\u202e'
X = np.linspace(0.25, 40.0, 1201)


def fitting(template, start: float, end: float, origin: float = 0.0) -> Fitting:
    return Fitting(template, PARAMETERS[: len(template.parameter_names)], start, end, 0.0, 9, origin)


def model(*segments: Fitting, name: str = "mat/exact-entries", x: str = "entries") -> ComponentModel:
    y = Quantity("cycles_per_packet", "cycles")
    return ComponentModel(name, "dpdk-c", Quantity(x), y, PiecewiseFitting.join(segments))


def models() -> list[ComponentModel]:
    """Every template alone, every template about an origin, and all of them in one model."""
    alone = [model(fitting(t, 1, 9), name=t.name) for t in TEMPLATES]
    about = [model(fitting(t, 1, 9, -2.5), name=f"{t.name}/about") for t in TEMPLATES]
    segments = [fitting(t, 1.0 + 2 * i, 2.5 + 2 * i) for i, t in enumerate((*TEMPLATES, WAVE))]
    return [*alone, *about, model(*segments), model(fitting(TEMPLATES[0], 1, 2), fitting(WAVE, 3, 4), name=ODD, x=ODD)]


MODELS = pytest.mark.parametrize("case", models(), ids=lambda m: ascii(m.name))


@MODELS
def test_python(case: ComponentModel) -> None:
    scope: dict[str, object] = {}
    exec(export_model(case, "python"), scope)  # noqa: S102
    function = scope[function_name(case)]
    assert [function(x) for x in X.tolist()] == pytest.approx(case.evaluate(X), rel=1e-12, abs=0)  # type: ignore[operator]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    folder = tmp_path_factory.mktemp("export")
    text = ""
    for index, case in enumerate(models()):
        text += export_model(case, "c") + f"\ndouble case_{index}(double x);\n"
        text += f"double case_{index}(double x)\n{{\n    return {function_name(case)}(x);\n}}\n\n"
    (folder / "models.c").write_text(text)
    options = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-fPIC", "-shared"]
    subprocess.run(["gcc", *options, "models.c", "-o", "models.so", "-lm"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "models.so"))


@pytest.mark.parametrize(("index", "case"), list(enumerate(models())), ids=lambda v: ascii(getattr(v, "name", v)))
def test_c(index: int, case: ComponentModel, library: ctypes.CDLL) -> None:
    function = library[f"case_{index}"]
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
    assert [function(x) for x in X.tolist()] == pytest.approx(case.evaluate(X), rel=1e-12, abs=0)


def test_a_split_belongs_to_the_right_segment() -> None:
    case = model(fitting(find_template("const"), 1, 2), fitting(find_template("log"), 3, 4))
    scope: dict[str, object] = {}
    exec(export_model(case, "python"), scope)  # noqa: S102
    function = scope["mat_exact_entries_cycles_per_packet"]
    assert function(math.nextafter(3, 0)) == 0.3  # type: ignore[operator]
    assert function(3.0) == pytest.approx(float(case.evaluate(3.0)))  # type: ignore[operator]


PYTHON = """\
import math


def mat_exact_entries_cycles_per_packet(x: float) -> float:
    # cycles_per_packet [cycles] of mat/exact-entries on dpdk-c.
    # x: entries, measured from 1 to 20000; beyond it the first or the last segment is extended.
    if x <= 10.0:
        return 0.3 + 0.7 * math.log(x)
    if x < 90.0:
        return min(1.911809565095832, max(0.5330097585886556, 0.3 + 0.7 * math.log(x)))
    return 0.3 + 0.7 * math.exp(0.11 * (x - 100.0))
"""
C = """\
#include <math.h>

// cycles_per_packet [cycles] of mat/exact-entries on dpdk-c.
// x: entries, measured from 1 to 20000; beyond it the first or the last segment is extended.
static double mat_exact_entries_cycles_per_packet(double x)
{
    if (x <= 10.0)
        return 0.3 + 0.7 * log(x);
    if (x < 90.0)
        return fmin(1.911809565095832, fmax(0.5330097585886556, 0.3 + 0.7 * log(x)));
    return 0.3 + 0.7 * exp(0.11 * (x - 100.0));
}
"""
LATEX = r"""% cycles_per_packet [cycles] of mat/exact-entries on dpdk-c.
% x: entries, measured from 1 to 20000; beyond it the first or the last segment is extended.
% Between two segments, the left one is limited to the span of the values at both ends of the gap.
\text{cycles\_per\_packet} =
\begin{cases}
0.3 + 0.7\,\ln \text{entries} & \text{entries} < 90 \\
0.3 + 0.7\,e^{0.11\,(\text{entries} - 100)} & 90 \leq \text{entries} < 1234567 \\
0.3 & \text{entries} \geq 1234567
\end{cases}
"""


def test_whole_texts() -> None:
    log, exp = fitting(find_template("log"), 1, 10), fitting(find_template("exp"), 90, 20_000, 100.0)
    case = model(log, exp)
    assert export_model(case, "python") == PYTHON
    assert export_model(case, "c") == C
    last = fitting(find_template("const"), 1_234_567, 2_000_000)
    assert export_model(model(log, exp, last), "latex") == LATEX.replace("20000;", "2000000;")
    assert export_model(model(last), "latex").splitlines()[-1] == r"\text{cycles\_per\_packet} = 0.3"


@pytest.mark.parametrize(
    ("name", "parameters", "origin", "latex"),
    [
        ("const", (-3.5,), 0, "y = -3.5"),
        ("poly1", (150, -0.072), 0, r"y = 150 - 0.072\,x"),
        ("poly2", (1, 2, 3), 1e6, r"y = 1 + 2\,(x - 1000000) + 3\,(x - 1000000)^{2}"),
        ("poly3", (1, 2, 3, 4), 0, r"y = 1 + 2\,x + 3\,x^{2} + 4\,x^{3}"),
        ("poly4", (1, 2, 3, 4, 5), 0, r"y = 1 + 2\,x + 3\,x^{2} + 4\,x^{3} + 5\,x^{4}"),
        ("poly5", (1, 2, 3, 4, 5, 6), 0, r"y = 1 + 2\,x + 3\,x^{2} + 4\,x^{3} + 5\,x^{4} + 6\,x^{5}"),
        ("log", (95.2, 12.1), 0, r"y = 95.2 + 12.1\,\ln x"),
        ("log_shift", (1, 2, 3), 0, r"y = 1 + 2\,\ln(x + 3)"),
        ("log_shift", (1, 2, 3), 5, r"y = 1 + 2\,\ln(x - 2)"),
        ("power", (3, -0.5), 0, r"y = 3\,x^{-0.5}"),
        ("exp", (20, 1.8e-7, 0.07), -3, r"y = 20 + 1.8 \times 10^{-7}\,e^{0.07\,(x + 3)}"),
        ("inv_poly1", (0.004, 0.01), 0, r"y = \frac{1}{0.004 + 0.01\,x}"),
        ("inv_poly2", (1, 2, 3), 0, r"y = \frac{1}{1 + 2\,x + 3\,x^{2}}"),
        ("inv_poly3", (1, 2, 3, 4), 0, r"y = \frac{1}{1 + 2\,x + 3\,x^{2} + 4\,x^{3}}"),
        ("inv_poly4", (1, 2, 3, 4, 5), 0, r"y = \frac{1}{1 + 2\,x + 3\,x^{2} + 4\,x^{3} + 5\,x^{4}}"),
        ("inv_poly5", (1, 2, 3, 4, 5, 6), 0, r"y = \frac{1}{1 + 2\,x + 3\,x^{2} + 4\,x^{3} + 5\,x^{4} + 6\,x^{5}}"),
        ("inv_log", (1, 2), 0, r"y = \frac{1}{1 + 2\,\ln x}"),
        ("inv_log_shift", (1, 2, 3), 0, r"y = \frac{1}{1 + 2\,\ln(x + 3)}"),
        ("inv_exp", (1, 2, -3), 0, r"y = \frac{1}{1 + 2\,e^{-3\,x}}"),
    ],
)
def test_latex_of_templates(name: str, parameters: tuple[float, ...], origin: float, latex: str) -> None:
    assert "y = " + find_template(name).formula(parameters, origin, Latex()) == latex


def test_every_template_has_a_latex_test() -> None:
    (mark,) = (m for m in test_latex_of_templates.pytestmark if m.name == "parametrize")
    assert {case[0] for case in mark.args[1]} == {t.name for t in TEMPLATES}


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda t: t.name)
@pytest.mark.parametrize("origin", [0.0, 2.5e8])
def test_latex_can_be_drawn(template: BasisTemplate, origin: float) -> None:
    parameters = (-1.5e-9, *PARAMETERS[1:])[: len(template.parameter_names)]
    formula = template.formula(parameters, origin, Latex(latex_name("entries")))
    MathTextParser("path").parse(f"${latex_name('cycles_per_packet')} = {formula}$")


@MODELS
def test_latex_of_models(case: ComponentModel) -> None:
    lines = export_model(case, "latex").splitlines()
    several = len(case.fitting.segments) > 1
    comments = 3 if several else 2
    assert all(line.startswith("%") == (i < comments) for i, line in enumerate(lines))
    body = "\n".join(lines[comments:]).replace(r"\{", "").replace(r"\}", "")
    assert body.count("{") == body.count("}")
    rows = lines[comments + 2 : -1]
    if several:
        assert (lines[comments + 1], lines[-1], len(rows)) == (
            r"\begin{cases}",
            r"\end{cases}",
            len(case.fitting.segments),
        )
        assert [row.endswith(r" \\") for row in rows] == [True] * (len(rows) - 1) + [False]
    if case.name != ODD:
        for row in rows:
            MathTextParser("path").parse(f"${row.removesuffix(' ' + 2 * chr(92)).replace(' & ', ' ')}$")


@pytest.mark.parametrize(
    ("name", "y", "function"),
    [
        ("mat/exact-entries", "rate", "mat_exact_entries_rate"),
        ("9 lives", "", "component_9_lives_metric"),
        ("", "µs!", "component_s"),
        ("_Bool", "int", "Bool_int"),
    ],
)
def test_identifiers(name: str, y: str, function: str) -> None:
    case = ComponentModel(name, "t", Quantity("x"), Quantity(y), PiecewiseFitting.join((fitting(WAVE, 0, 1),)))
    assert function_name(case) == function
    assert f"def {function}(x" in export_model(case, "python")


def test_what_cannot_be_exported() -> None:
    with pytest.raises(UsageError, match=r"cannot be exported to 'rust'\nhint: known: python, c, latex"):
        export_model(model(fitting(WAVE, 0, 1)), "rust")  # type: ignore[arg-type]
    mine = FunctionTemplate("mine", lambda x, a: a * x, ("a",))
    with pytest.raises(UsageError, match="'mine' has no expression in c"):
        export_model(model(fitting(mine, 0, 1)), "c")
    assert r"\text{mine}(\text{entries};\, a = 0.3)" in export_model(model(fitting(mine, 0, 1)), "latex")
    endless = Fitting(find_template("const"), (math.inf,), 0.0, 1.0, 0.0, 2)
    with pytest.raises(UsageError, match="cannot be written as code"):
        export_model(model(endless), "python")


def test_exports_are_readable_files(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(export_model(models()[-1], "python"), encoding="utf-8")
    compile(path.read_bytes(), str(path), "exec")
