"""A whole model as a function in Python or C, or as a LaTeX formula.

By Eq. 4 of Scholz et al. 2021, segment ``i`` holds from the breakpoint before it (included) to the breakpoint after it
(excluded); between its last x and that breakpoint it is limited as by :meth:`PiecewiseFitting.evaluate`. Outside of the
domain that was measured the first or the last segment is extended; a comment says what the domain is. Where a formula
is not defined, the C function returns what C's arithmetic gives, and the Python function raises ``ValueError`` or
``ArithmeticError``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Literal

from p4perf.errors import UsageError
from p4perf.models.component import ComponentModel
from p4perf.models.notation import CCode, Latex, Notation, PythonCode, latex_name, number, one_line

ExportLanguage = Literal["python", "c", "latex"]

_PYTHON = """\
import math


def {name}(x: float) -> float:
{comments}
{branches}    return {last}
"""
_C = """\
#include <math.h>

{comments}
static double {name}(double x)
{{
{unused}{branches}    return {last};
}}
"""
_CODE: Mapping[str, tuple[Notation, str, str, str, str]] = {
    "python": (PythonCode(), _PYTHON, "    if x {} {}:\n        return {}\n", "min({2}, max({1}, {0}))", "    # "),
    "c": (CCode(), _C, "    if (x {} {})\n        return {};\n", "fmin({2}, fmax({1}, {0}))", "// "),
}
"""Of each language its notation, a function, a branch of it, a limited value, and what comments begin with."""

_LATEX = """\
{comments}
{y} = {body}
"""
_LATEX_CASES = """\
{comments}
{y} =
\\begin{{cases}}
{rows}
\\end{{cases}}
"""


def export_model(model: ComponentModel, language: ExportLanguage, *, digits: int = 4) -> str:
    """A model as text for another program.

    Args:
        language: ``python`` (a function that needs the standard library only), ``c`` (a C99 function,
            ``static double name(double x)``; needs libm), or ``latex`` (for mathematical mode; needs amsmath).
        digits: significant digits of LaTeX; code has full precision.

    Returns:
        Text that ends with a newline. Functions are called as :func:`function_name` says.

    Raises:
        UsageError: the language is unknown, a parameter is not finite, or a template of the model cannot be written in
            this language.
    """
    if language == "latex":
        return _latex(model, digits)
    if language not in _CODE:
        raise UsageError(f"models cannot be exported to {language!r}", hint="known: python, c, latex")
    return _code(model, language)


def function_name(model: ComponentModel) -> str:
    """What the exported function is called: component and metric, such as ``mat_exact_entries_cycles_per_packet``."""
    return f"{_identifier(model.name, 'component')}_{_identifier(model.y.name, 'metric')}"


def _identifier(text: str, fallback: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")
    return f"{fallback}_{plain}".strip("_") if not plain or plain[0].isdigit() else plain


def _comments(model: ComponentModel, lead: str, *further: str) -> str:
    first, last = (number(end, 12) for end in model.domain)
    lines = (
        f"{model.y.label()} of {model.name or 'a component'}{f' on {model.target}' if model.target else ''}.",
        f"x: {model.x.label()}, measured from {first} to {last}; beyond it the first or the last segment is extended.",
    )
    imported = model.provenance.get("imported")
    more = (f"Its measurements are {imported}.",) if isinstance(imported, str) else ()
    return "\n".join(lead + one_line(line) for line in (*lines, *more, *further))


def _code(model: ComponentModel, language: str) -> str:
    notation, template, branch, limited, lead = _CODE[language]
    *others, last = (segment.formula(notation) for segment in model.fitting.segments)
    branches = ""
    for gap, body in zip(model.fitting.gaps, others, strict=True):
        between = body
        if re.search(r"\bx\b", body):
            branches += branch.format("<=", notation.number(gap.start), body)
            between = limited.format(body, notation.number(gap.low), notation.number(gap.high))
        branches += branch.format("<", notation.number(gap.end), between)
    unused = "" if re.search(r"\bx\b", branches + last) else "    (void)x;\n"
    comments = _comments(model, lead)
    return template.format(name=function_name(model), comments=comments, branches=branches, last=last, unused=unused)


def _latex(model: ComponentModel, digits: int) -> str:
    notation = Latex(latex_name(model.x.name), digits)
    bodies = [segment.formula(notation) for segment in model.fitting.segments]
    limits = ("Between two segments, the left one is limited to the span of the values at both ends of the gap.",)
    comments = _comments(model, "% ", *(limits if model.fitting.gaps else ()))
    head = {"comments": comments, "y": latex_name(model.y.name)}
    if len(bodies) == 1:
        return _LATEX.format(**head, body=bodies[0])
    x, breakpoints = notation.x, [notation.position(s) for s in model.fitting.breakpoint_x]
    between = (rf"{low} \leq {x} < {high}" for low, high in pairwise(breakpoints))
    conditions = (f"{x} < {breakpoints[0]}", *between, rf"{x} \geq {breakpoints[-1]}")
    rows = (f"{body} & {condition}" for body, condition in zip(bodies, conditions, strict=True))
    return _LATEX_CASES.format(**head, rows=" \\\\\n".join(rows))
