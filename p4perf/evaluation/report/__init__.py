"""Pages for people: HTML and Markdown from templates, with all content escaped."""

from __future__ import annotations

from functools import cache

from jinja2 import PackageLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from p4perf.evaluation.report.figures import explanation


@cache
def _environment(escape: bool = True) -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        loader=PackageLoader("p4perf.evaluation.report", "."),
        undefined=StrictUndefined,
        autoescape=escape,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.update(number=number, amount=amount, explain_flag=explanation)
    environment.filters["cell"] = markdown_cell
    return environment


def number(value: float | None, digits: int = 4) -> str:
    """A number for people with that many significant digits; a dash for None or NaN."""
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
    return _environment().get_template(template).render(**context)


def markdown_cell(value: object) -> str:
    """Text for a cell of a Markdown table: one line, and nothing in it is markup."""
    text = " ".join(str(value).split())
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~" else c for c in text)


def render_markdown(template: str, **context: object) -> str:
    """Render a template of this folder to Markdown; it escapes with the filter ``cell``."""
    return _environment(escape=False).get_template(template).render(**context)
