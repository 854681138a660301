"""Text from templates: the one Jinja environment of the project.

Templates may come from specs of strangers only as data, never as code; still the environment is sandboxed, knows no
attribute that starts with an underscore, and an undefined name is an error instead of an empty string.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from jinja2 import PackageLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from p4perf.errors import SpecError

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def identifier(name: str) -> str:
    """The name itself, if it is an identifier in P4, C and Lua.

    Raises:
        SpecError: it is not.
    """
    if not _IDENTIFIER.fullmatch(name):
        raise SpecError(
            f"{name!r} is not an identifier", hint="use letters, digits and underscores, at most 64 of them"
        )
    return name


def comment(text: str) -> str:
    """Text that cannot end the comment it stands in, whether that is one of P4, C or Lua, of a line or of a block.

    Control characters become spaces; ``*/``, ``/*``, ``]]`` and a final backslash are taken apart.
    """
    line = "".join(c if c.isprintable() else " " for c in text)
    for token in ("*/", "/*", "]]", "]="):
        while token in line:
            line = line.replace(token, f"{token[0]} {token[1]}")
    return line + " ." if line.rstrip().endswith("\\") else line


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox, which asks once for every attribute of every type: its answer depends on nothing else."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._safe: dict[tuple[type, str], bool] = {}

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may read an attribute."""
        key = (type(obj), attr)
        if key not in self._safe:
            self._safe[key] = super().is_safe_attribute(obj, attr, value)
        return self._safe[key]


@cache
def environment() -> ImmutableSandboxedEnvironment:
    """The environment: strict, sandboxed, without autoescape (the output is code, not HTML)."""
    env = _Environment(
        loader=PackageLoader("p4perf.generators", "templates"),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        line_comment_prefix=None,
    )
    env.filters["identifier"] = identifier
    env.filters["comment"] = comment
    return env


def render(template: str, **context: object) -> str:
    """Render ``templates/<template>`` with the given names."""
    return environment().get_template(template).render(**context)
