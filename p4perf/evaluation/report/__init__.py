"""Pages for people: HTML from templates, with everything that stands in them escaped."""

from __future__ import annotations

from functools import cache

from jinja2 import PackageLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from p4perf.evaluation.report.flags import explanation


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        loader=PackageLoader("p4perf.evaluation.report", "."),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["number"] = number
    environment.globals["amount"] = amount
    environment.globals["explain_flag"] = explanation
    return environment


def number(value: float | None, digits: int = 4) -> str:
    """A number for people, to so many significant digits; a dash where there is none."""
    if value is None or value != value:
        return "–"
    text = f"{value:.{digits}g}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def amount(value: float | None, digits: int = 4) -> str:
    """As :func:`number`, but up to a thousand million without an exponent: 14890, not 1.489e+04."""
    if value is not None and 10 ** (digits - 1) <= abs(value) < 1e9:
        text = f"{float(f'{value:.{digits}g}'):.0f}"
        return text.replace("-", "−", 1)
    return number(value, digits)


def render_page(template: str, **context: object) -> str:
    """Render a template of this folder to HTML."""
    return _environment().get_template(template).render(**context)
