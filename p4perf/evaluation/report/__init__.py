"""Pages for people: HTML from templates, with everything that stands in them escaped, and Markdown."""

from __future__ import annotations

from functools import cache

from jinja2 import PackageLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment


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
    environment.globals["number"] = number
    environment.filters["cell"] = _cell
    return environment


def number(value: float | None, digits: int = 4) -> str:
    """A number for people, to so many significant digits; a dash where there is none."""
    if value is None or value != value:
        return "–"
    text = f"{value:.{digits}g}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def render_page(template: str, **context: object) -> str:
    """Render a template of this folder to HTML."""
    return _environment().get_template(template).render(**context)


def render_text(template: str, **context: object) -> str:
    """Render a template of this folder to Markdown, in which nothing is escaped but what goes through ``cell``."""
    return _environment(escape=False).get_template(template).render(**context)


def _cell(text: str) -> str:
    """Text for one cell of a table in Markdown: on one line, without bars and tags."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")
