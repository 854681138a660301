"""What holds for every template and any numbers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from p4perf.models import (
    ComponentModel,
    Fitting,
    FunctionTemplate,
    PiecewiseFitting,
    Quantity,
    Template,
    standard_templates,
)
from p4perf.models.notation import CCode, Latex, PythonCode, latex_name
from p4perf.models.templates import BasisTemplate

MINE = FunctionTemplate(
    "mine", lambda x, a, b: a * x / (b + x), ("a", "b"), python="{a} / {b}", c="{a} / {b}", latex_form=r"\frac{a}{b}"
)
TEMPLATES: tuple[Template, ...] = (*standard_templates(), MINE)
BASIS_TEMPLATES = st.sampled_from(standard_templates())
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def moderate(count: int) -> st.SearchStrategy[list[float]]:
    magnitude = st.floats(0.1, 3.0)
    return st.lists(st.one_of(magnitude, magnitude.map(lambda v: -v)), min_size=count, max_size=count)


@given(st.data(), BASIS_TEMPLATES, st.floats(0.5, 5.0), st.sampled_from([0.0, -1.5, 0.25]))
def test_slopes_are_those_of_the_curve(data: st.DataObject, template: BasisTemplate, x: float, origin: float) -> None:
    parameters = data.draw(moderate(len(template.parameter_names)))
    step = 1e-5 * x
    low, middle, high = (float(template.evaluate(at, parameters, origin)) for at in (x - step, x, x + step))
    assume(np.isfinite([low, middle, high]).all() and abs(high - low) <= 1e-3 * abs(middle))
    shape = parameters[-1] if template.basis.shape_name else 0.0
    columns = template.basis.columns(np.asarray(x), shape, origin)
    size = sum(abs(p * float(c)) for p, c in zip(parameters, columns, strict=False))
    slope = float(template.derivative(x, parameters, origin))
    room = 1e-5 * (abs(slope) + (size * middle**2 if template.inverse else size))
    assert abs(slope - (high - low) / (2 * step)) <= room


@given(st.data(), BASIS_TEMPLATES)
def test_slopes_of_many_functions_at_once(data: st.DataObject, template: BasisTemplate) -> None:
    rows = np.array([data.draw(moderate(len(template.parameter_names))) for _ in range(2)])
    x, origin = np.array([[1.0, 2.0, 3.0], [2.5, 3.5, 4.5]]), np.array([0.5, -0.5])
    for method in (template.evaluate, template.derivative):
        both = method(x, rows[:, None, :], origin[:, None])
        for row in range(2):
            np.testing.assert_array_equal(both[row], method(x[row], rows[row], origin[row]))


@given(st.data(), st.sampled_from(TEMPLATES), FINITE)
def test_formulas_can_always_be_written(data: st.DataObject, template: Template, origin: float) -> None:
    parameters = data.draw(st.lists(FINITE, min_size=(n := len(template.parameter_names)), max_size=n))
    assert template.text(parameters, origin).startswith("y = ")
    latex = template.formula(parameters, origin, Latex(latex_name("a_b")))
    assert latex.count("{") == latex.count("}")
    compile(template.formula(parameters, origin, PythonCode()), "expression", "eval")
    assert template.formula(parameters, origin, CCode()).count("math.") == 0


@given(st.data(), st.sampled_from(TEMPLATES))
def test_models_are_read_as_they_were_written(data: st.DataObject, template: Template) -> None:
    count, segments = len(template.parameter_names), []
    ends = data.draw(st.lists(FINITE, min_size=4, max_size=4, unique=True).map(sorted))
    for start, end in (ends[:2], ends[2:]):
        parameters = tuple(data.draw(st.lists(FINITE, min_size=count, max_size=count)))
        numbers = data.draw(st.tuples(FINITE, st.integers(1, 10**6), FINITE, st.none() | st.floats(0, 10)))
        error, points, origin, rank = numbers
        segments.append(Fitting(template, parameters, start, end, error, points, origin, rank))  # type: ignore[arg-type]
    curve = PiecewiseFitting(tuple(segments), (segments[0].points - 1,), 0.5, 1.5)
    model = ComponentModel("c", "t", Quantity("x"), Quantity("y"), curve)
    assert ComponentModel.from_json(model.to_json(), templates=TEMPLATES) == model


@given(st.data(), st.lists(BASIS_TEMPLATES, min_size=2, max_size=4), st.floats(0.01, 3.0))
def test_values_between_segments_lie_between_those_at_the_ends_of_the_gap(
    data: st.DataObject, templates: list[BasisTemplate], width: float
) -> None:
    segments = []
    for number, template in enumerate(templates):
        start = 1.0 + number * (1 + width)
        segments.append(
            Fitting(template, tuple(data.draw(moderate(len(template.parameter_names)))), start, start + 1, 0.0, 2)
        )
    curve = PiecewiseFitting.join(tuple(segments))
    for left, right in pairwise(segments):
        ends = np.array([left.evaluate(left.end), right.evaluate(right.start)])
        assume(np.isfinite(ends).all())
        inner = curve.evaluate(np.linspace(left.end, right.start, 50)[1:-1])
        assert ((inner >= ends.min()) & (inner <= ends.max())).all()
