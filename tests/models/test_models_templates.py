from __future__ import annotations

import numpy as np
import pytest

from p4perf.errors import UsageError
from p4perf.models import standard_templates
from p4perf.models.notation import number
from p4perf.models.templates import SCHOLZ2021_RANKS, Logarithm, Power, find_template, scholz2021_templates
from p4perf.plugins import load_plugin


def test_the_set_is_that_of_the_paper() -> None:
    names = [t.name for t in scholz2021_templates()]
    assert len(names) == len(set(names)) == 17
    assert {f"inv_{n}" for n in names if n != "const" and not n.startswith("inv_")} <= set(names)
    assert load_plugin("p4perf.templates", "standard")() == standard_templates()


def test_the_standard_set_has_one_more() -> None:
    names = [t.name for t in standard_templates()]
    assert names.pop(names.index("power")) == "power"
    assert names == [t.name for t in scholz2021_templates()]
    assert find_template("power").rank == 2.25


def test_ranks_as_published_count_every_parameter_that_is_written() -> None:
    assert set(SCHOLZ2021_RANKS) == {t.name for t in scholz2021_templates()}
    written = {"const": 1, "poly": 1, "log": 3, "log_shift": 4, "exp": 5}
    for template in scholz2021_templates():
        kind = template.name.removeprefix("inv_")
        degree = int(kind.removeprefix("poly")) if kind.startswith("poly") else 0
        expected = written["poly" if degree else kind] + degree + template.inverse
        assert SCHOLZ2021_RANKS[template.name] == expected


@pytest.mark.parametrize(
    ("name", "parameters", "text", "at_two"),
    [
        ("const", (3.0,), "y = 3", 3.0),
        ("poly1", (150.0, -0.072), "y = 150 - 0.072 x", 149.856),
        ("poly2", (0.0, 1.0, 2.0), "y = 0 + 1 x + 2 x^2", 10.0),
        ("log", (95.2, 12.1), "y = 95.2 + 12.1 ln x", 95.2 + 12.1 * np.log(2)),
        ("log_shift", (1.0, 2.0, 3.0), "y = 1 + 2 ln(x + 3)", 1 + 2 * np.log(5)),
        ("power", (3.0, -0.5), "y = 3 x^(-0.5)", 3 / np.sqrt(2)),
        ("exp", (20.0, 1.8, 0.07), "y = 20 + 1.8 exp(0.07 x)", 20 + 1.8 * np.exp(0.14)),
        ("inv_poly1", (0.004, 0.01), "y = 1 / (0.004 + 0.01 x)", 1 / 0.024),
        ("inv_log", (1.0, 2.0), "y = 1 / (1 + 2 ln x)", 1 / (1 + 2 * np.log(2))),
        ("inv_exp", (1.0, 2.0, -3.0), "y = 1 / (1 + 2 exp(-3 x))", 1 / (1 + 2 * np.exp(-6))),
    ],
)
def test_value_and_text(name: str, parameters: tuple[float, ...], text: str, at_two: float) -> None:
    template = find_template(name)
    assert template.text(parameters) == text
    assert float(template.evaluate(2.0, parameters)) == pytest.approx(at_two, rel=1e-14)
    assert template.evaluate([1.0, 2.0], parameters)[1] == pytest.approx(at_two, rel=1e-14)
    assert template.rank == len(template.parameter_names) + (0.25 if name == "power" else 0.5 * template.inverse)


def test_text_about_an_origin() -> None:
    assert find_template("poly1").text((1.0, 2.0), 1e6, x="entries", y="cycles") == "cycles = 1 + 2 (entries - 1000000)"
    assert find_template("exp").text((0.0, 1.0, 0.5), 3.0) == "y = 0 + 1 exp(0.5 (x - 3))"


@pytest.mark.parametrize("template", standard_templates(), ids=lambda t: t.name)
def test_another_origin_is_the_same_function(template) -> None:
    parameters = np.array([[0.5, 0.3, 0.2, 0.1, 0.05, 0.02][: len(template.parameter_names)]])
    x = np.linspace(4.0, 9.0, 7)
    if isinstance(template.basis, Logarithm | Power):
        assert template.basis.about(parameters, np.zeros(1), 0.0) is parameters
        return
    moved = template.basis.about(parameters, np.array([3.0]), 0.0)
    expected = template.evaluate(x, parameters[0], 3.0)
    assert template.evaluate(x, moved[0], 0.0) == pytest.approx(expected, rel=1e-12)


def test_undefined_values_are_not_finite_and_silent() -> None:
    assert not np.isfinite(find_template("log").evaluate([0.0, -1.0], (1.0, 1.0))).any()
    assert not np.isfinite(find_template("inv_poly1").evaluate([0.0], (0.0, 1.0))).any()
    for name in ("log", "inv_log", "log_shift"):
        template = find_template(name)
        parameters = (1.0,) * len(template.parameter_names)
        assert not np.isfinite(template.derivative([-1.0, -2.0], parameters)).any()
    assert not np.isfinite(find_template("power").evaluate([-1.0], (1.0, 0.5))).any()
    assert not np.isfinite(find_template("exp").evaluate([1e9], (0.0, 1.0, 1.0))).any()


def test_unknown_template() -> None:
    with pytest.raises(UsageError, match="no function template 'cubic'"):
        find_template("cubic")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1e-7, "1e-7"), (123456.0, "123456"), (1.5e10, "1.5e10"), (0.072, "0.072"), (2455.884, "2456")],
)
def test_number(value: float, text: str) -> None:
    assert number(value) == text
