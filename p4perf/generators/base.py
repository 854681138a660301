"""The contract of a generator, the files that it makes, and text from templates.

There is one kind of Jinja environment for the generators of p4perf and of plug-ins. Templates may come from specs of
strangers only as data, never as code; still the environment is sandboxed, knows no attribute that starts with an
underscore, and an undefined name is an error instead of an empty string.
"""

from __future__ import annotations

import json
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from p4perf.errors import SpecError
from p4perf.plugins import folder_beside
from p4perf.programs.capabilities import OF_OWN_PROGRAMS
from p4perf.programs.component import TrafficPlan
from p4perf.programs.ir import Workload

if TYPE_CHECKING:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

OFFERED = frozenset(OF_OWN_PROGRAMS) - {
    "header of varying length",
    "metadata kept for another pass",
    "hash of the payload",
    "copies through egress",
}
"""What programs that are read may have where p4perf writes what runs."""


@dataclass(frozen=True, slots=True)
class GeneratedFile:
    """A file to write: its path below the output folder (POSIX, relative) and its text in pieces."""

    path: str
    pieces: Iterable[str]
    entries: int = 0
    """Entries of the largest table whose entries it holds; 0 for a file that is not one of table entries."""

    def text(self) -> str:
        """The whole text (do not ask for it where there are millions of entries)."""
        return "".join(self.pieces)


class Generator(ABC):
    """Makes files from a workload for one language and architecture."""

    name: ClassVar[str]
    summary: ClassVar[str]

    @abstractmethod
    def generate(self, workload: Workload, traffic: TrafficPlan) -> tuple[GeneratedFile, ...]:
        """The files for one sweep point.

        Raises:
            CapabilityError: this language or architecture cannot express the program; the message names the limit.
        """

    def render(self, template: str, **context: object) -> str:
        """Render a template of the folder ``templates`` beside the module of the generator, else of p4perf's own."""
        return environment(folder_beside(type(self), "templates")).get_template(template).render(**context)


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")


def identifier(name: str) -> str:
    """The name itself, if it is an identifier in P4, C and Lua."""
    if not _IDENTIFIER.fullmatch(name):
        raise SpecError(
            f"{name!r} is not an identifier", hint="use letters, digits and underscores, at most 255 of them"
        )
    return name


def octets(data: bytes) -> str:
    """Bytes within a C string."""
    return "".join(f"\\x{byte:02x}" for byte in data)


def comment(text: str) -> str:
    """Text that cannot end the comment it stands in, whether that is one of P4, C or Lua, of a line or of a block.

    Control characters become spaces; ``*/``, ``/*``, ``]]`` and a final backslash are taken apart.
    """
    line = "".join(c if c.isprintable() else " " for c in text)
    for token in ("*/", "/*", "]]", "]="):
        while token in line:
            line = line.replace(token, f"{token[0]} {token[1]}")
    return line + " ." if line.rstrip().endswith("\\") else line


def shell(word: str) -> str:
    """A word for a POSIX shell, which takes it as it is."""
    if "\0" in word:
        raise SpecError("a zero byte cannot be in a command")
    return shlex.quote(word)


def shell_command(words: Sequence[str], places: Mapping[str, str]) -> str:
    """Words of a command for a POSIX shell, every one quoted; ``{name}`` stands for a variable of ``places``."""
    names = "|".join(map(re.escape, places)) or "(?!)"  # what matches nothing
    pattern = re.compile(rf"\{{({names})\}}")
    return " ".join(_with_variables(pattern.split(word), places) for word in words)


def _with_variables(pieces: Sequence[str], places: Mapping[str, str]) -> str:
    """A word of pieces of text and, at odd places, names of variables."""
    parts = [f'"${{{identifier(places[p])}}}"' if n % 2 else shell(p) for n, p in enumerate(pieces) if p]
    return "".join(parts) or "''"


def yaml_scalar(value: str | int | float | bool) -> str:
    """A scalar of YAML that is read as that value; text in double quotes, as JSON writes it."""
    if isinstance(value, str) and any(ord(c) > 0xFFFF or 0xD800 <= ord(c) < 0xE000 for c in value):
        raise SpecError(f"{value!r:.60} cannot be written as YAML", hint="use characters of the basic plane")
    try:
        if not isinstance(value, str | int | float):
            raise TypeError(type(value))
        return json.dumps(value, allow_nan=False).replace("\x7f", "\\u007f")
    except (TypeError, ValueError) as error:
        raise SpecError(f"{value!r:.60} is no scalar of YAML") from error


@cache
def environment(folder: Path | None = None) -> ImmutableSandboxedEnvironment:
    """The environment: strict, sandboxed, without autoescape (the output is code, not HTML).

    Templates in the folder of a plug-in are looked up before those of p4perf.
    """
    from jinja2 import ChoiceLoader, FileSystemLoader, PackageLoader, StrictUndefined  # what only predicts needs none
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    safe: dict[tuple[type, str], bool] = {}

    class Environment(ImmutableSandboxedEnvironment):
        """The sandbox, which asks once for every attribute of every type: its answer depends on nothing else."""

        @override
        def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
            key = (type(obj), attr)
            if key not in safe:
                safe[key] = super().is_safe_attribute(obj, attr, value)
            return safe[key]

    own = PackageLoader("p4perf.generators", "templates")
    env = Environment(
        loader=own if folder is None else ChoiceLoader([FileSystemLoader(folder), own]),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        line_comment_prefix=None,
    )
    env.filters |= {"identifier": identifier, "comment": comment, "yaml": yaml_scalar}
    env.filters |= {"shell": shell, "shell_command": shell_command, "octets": octets}
    return env


def render(template: str, **context: object) -> str:
    return environment().get_template(template).render(**context)
