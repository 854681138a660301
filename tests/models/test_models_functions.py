from __future__ import annotations

import math

import numpy as np
import pytest

from p4perf.errors import UsageError
from p4perf.models import FunctionTemplate
from p4perf.models.notation import CCode, Latex, PythonCode


def saturation(x, a, b):
    return a * x / (b + x)


@pytest.fixture
def template() -> FunctionTemplate:
    return FunctionTemplate(
        "saturation",
        saturation,
        ("a", "b"),
        python="{a} * {x} / ({b} + {x})",
        c="{a} * {x} / ({b} + {x})",
        latex_form=r"\frac{{a} {x}}{{b} + {x}}",
    )


def test_what_is_left_out() -> None:
    plain = FunctionTemplate("saturation", saturation, ["a", "b"])  # type: ignore[arg-type]
    assert (plain.parameter_names, plain.family, plain.rank) == (("a", "b"), "saturation", 2.0)
    assert plain.start_values(np.ones(3), np.ones(3)) == (1.0, 1.0)
    other = FunctionTemplate("s", saturation, ("a", "b"), family="f", rank=1.5, start=lambda x, y: (y.max(), 2))
    assert (other.family, other.rank, other.start_values(np.ones(3), np.arange(3.0))) == ("f", 1.5, (2.0, 2.0))
    assert hash(plain) == hash(FunctionTemplate("saturation", saturation, ("a", "b")))


def test_many_functions_at_once(template: FunctionTemplate) -> None:
    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    parameters = np.array([[1.0, 2.0], [3.0, 4.0]])
    values = template.evaluate(x, parameters[:, None, :], np.array([0.0, 1.0])[:, None])
    assert values[1].tolist() == [3 * 3 / 7, 3 * 4 / 8, 3 * 5 / 9]
    assert template.derivative(x, parameters[:, None, :]).shape == x.shape
    flat = FunctionTemplate("flat", lambda x, a: a, ("a",))
    assert flat.evaluate([1.0, 2.0], (3.0,)).tolist() == [3.0, 3.0]
    assert flat.evaluate(1.0, (3.0,)).shape == ()


def test_slopes(template: FunctionTemplate) -> None:
    x = np.array([-0.5, 0.0, 1e-3, 1.0, 1e6])
    assert template.derivative(x, (3.0, 2.0)) == pytest.approx(6 / (2 + x) ** 2, rel=1e-6)
    assert template.derivative(x, (3.0, 2.0), 0.5) == pytest.approx(6 / (1.5 + x) ** 2, rel=1e-6)


def test_slopes_where_the_function_ends() -> None:
    right = FunctionTemplate("right", lambda x, a: a * np.sqrt(x) ** 3, ("a",))
    left = FunctionTemplate("left", lambda x, a: a * np.sqrt(-x) ** 3, ("a",))
    assert abs(float(right.derivative(0.0, (1.0,)))) < 0.01
    assert abs(float(left.derivative(0.0, (1.0,)))) < 0.01
    assert math.isnan(float(right.derivative(-1.0, (1.0,))))


def test_forms(template: FunctionTemplate) -> None:
    assert template.text((1.25, -3), x="n", y="t") == "t = saturation(n; a = 1.25, b = -3)"
    assert template.formula((1.25, -3), 0.0, Latex()) == r"\frac{{1.25} {x}}{{-3} + {x}}"
    assert template.formula((1.25, -3), 0.5, PythonCode()) == "1.25 * (x - 0.5) / ((-3.0) + (x - 0.5))"
    assert template.formula((1e-300, 0.1), 0.0, CCode("n")) == "1e-300 * n / (0.1 + n)"


def test_without_forms() -> None:
    template = FunctionTemplate("my_fit", saturation, ("a", "k_2"))
    assert template.text((1, 2), 3.0) == "y = my_fit(x - 3; a = 1, k_2 = 2)"
    assert template.formula((1, 2e-9), 0.0, Latex()) == r"\text{my\_fit}(x;\, a = 1,\, \text{k\_2} = 2 \times 10^{-9})"
    with pytest.raises(UsageError, match=r"'my_fit' has no expression in c\nhint: .*c='...' with {x}, {a}, {k_2}"):
        template.formula((1, 2), 0.0, CCode())


@pytest.mark.parametrize(
    ("names", "others", "message"),
    [
        ((), {}, "needs parameters"),
        (("a", "a"), {}, "different names"),
        (("a", "x"), {}, "none of them x"),
        (("a", "2b"), {}, "needs parameters"),
        (("a", "b"), {"bounds": ((0, 1),)}, "one pair of bounds"),
        (("a", "b"), {"bounds": ((0, 1), (1, 1))}, "the smaller one first"),
        (("a", "b"), {"python": "{a} + {q}"}, "no parameter 'q'"),
    ],
)
def test_what_does_not_fit_together(names, others, message) -> None:
    with pytest.raises(UsageError, match=message):
        FunctionTemplate("mine", saturation, names, **others)


def test_what_fails_is_told() -> None:
    with pytest.raises(UsageError, match=r"'mine' cannot be evaluated: .*\nhint: .* works on arrays"):
        FunctionTemplate("mine", lambda x, a: a * math.exp(x), ("a",)).evaluate([1.0, 2.0], (1.0,))
    with pytest.raises(UsageError, match="cannot be evaluated"):
        FunctionTemplate("mine", lambda x, a: np.ones(7), ("a",)).evaluate([1.0, 2.0], (1.0,))
    with pytest.raises(UsageError, match="needs 1 start values, not 2"):
        FunctionTemplate("mine", saturation, ("a",), start=lambda x, y: (1, 2)).start_values(np.ones(2), np.ones(2))
    with pytest.raises(UsageError, match="cannot say where to start"):
        FunctionTemplate("mine", saturation, ("a",), start=lambda x, y: y[7:8] + y[9]).start_values(
            np.ones(2), np.ones(2)
        )
