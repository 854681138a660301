"""Third-party JSON, read without trust: every value knows its JSON pointer (RFC 6901), every error names it."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p4perf.errors import DataError, Location
from p4perf.formats import plain
from p4perf.specs.messages import nearest

MAX_BYTES = 256 << 20
"""Largest program that is read."""

MAX_DEPTH = 200
"""Expressions nested more deeply than this are refused."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A value of a JSON document and where it stands. Values of another kind than asked for are a ``DataError``."""

    value: Any
    pointer: str
    file: str

    def error(self, message: str, hint: str | None = None) -> DataError:
        return DataError(message, location=Location(self.file), key=self.pointer or "/", hint=hint)

    def has(self, key: str) -> bool:
        """Whether this object has a member that is not null."""
        return self._object().get(key) is not None

    def names(self, key: str) -> bool:
        """Whether this object has a member, which may be null."""
        return key in self._object()

    def at(self, key: str) -> Tree:
        """A member of this object, None if it is null."""
        members = self._object()
        if key not in members:
            raise self.error(f"has no {key!r}")
        return Tree(members[key], f"{self.pointer}/{key.replace('~', '~0').replace('/', '~1')}", self.file)

    def each(self, key: str | None = None) -> Iterator[Tree]:
        """The items of this array, or of a member that is one (none if it is missing or null)."""
        if key is not None:
            if self.has(key):
                yield from self.at(key).each()
            return
        if not isinstance(self.value, list):
            raise self.error("is not an array")
        for n, item in enumerate(self.value):
            yield Tree(item, f"{self.pointer}/{n}", self.file)

    def members(self, key: str) -> Iterator[tuple[str, Tree]]:
        """Names and values of a member that is an object (none if it is missing or null)."""
        if self.has(key):
            yield from ((name, self.at(key).at(name)) for name in self.at(key)._object())

    def named(self, key: str, name: str) -> Tree | None:
        """The item of a member that is an array whose ``name`` is this, None if there is none."""
        return next((each for each in self.each(key) if each.text("name") == name), None)

    def item(self, n: int) -> Tree:
        if not isinstance(self.value, list) or len(self.value) <= n:
            raise self.error(f"is not an array of at least {n + 1}")
        return Tree(self.value[n], f"{self.pointer}/{n}", self.file)

    def text(self, key: str | None = None) -> str:
        """This value or a member, a string."""
        if key is not None:
            return self.at(key).text()
        if not isinstance(self.value, str):
            raise self.error("is not a string")
        return self.value

    def optional(self, key: str) -> str | None:
        """A member that is a string, missing or null."""
        return self.text(key) if self.has(key) else None

    def whole(self, key: str | None = None) -> int:
        """This value or a member, a number from 0."""
        if key is not None:
            return self.at(key).whole()
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < 0:
            raise self.error("is not a whole number from 0")
        return self.value

    def number(self) -> int:
        """This value, hexadecimal digits in a string."""
        try:
            return int(self.text(), 16)
        except ValueError:
            raise self.error("is not a hexadecimal number") from None

    def flag(self, key: str, default: bool = False) -> bool:
        """A member that is true or false; ``default`` if it is missing or null."""
        if not self.has(key):
            return default
        found = self.at(key)
        if not isinstance(found.value, bool):
            raise found.error("is neither true nor false")
        return found.value

    def _object(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self.error("is not an object")
        return self.value


def read_text(path: Path) -> str:
    """A file of text; errors as :func:`p4perf.formats.plain.read_text`."""
    return plain.read_text(path, MAX_BYTES)


def parse_json(text: str, file: str) -> Tree:
    """A JSON document.

    Raises:
        DataError: it is none; with line and column.
    """
    try:
        return Tree(json.loads(text, strict=False), "", file)
    except json.JSONDecodeError as error:
        what = "ends too early" if error.pos >= len(text.rstrip()) else "is not JSON"
        where = Location(file, error.lineno, error.colno)
        raise DataError(f"{what}: {error.msg}", location=where) from error
    except (RecursionError, ValueError) as error:
        raise DataError(
            "is not JSON of a program: nested too deeply, or with endless numbers", location=Location(file)
        ) from error


_UNROLLED = re.compile(r"\[[\d,+]+\]$")


def without_index(name: str) -> str:
    """The name of a parser state that was unrolled, as the program has it."""
    return _UNROLLED.sub("", name)


def match_name(wanted: str, known: Iterable[str], noun: str, where: Location | None) -> str:
    """The one of the names that is meant: that name, or the only one that ends with it behind a dot or slash.

    Raises:
        DataError: none is, or several are; the message names the nearest.
    """
    names = list(dict.fromkeys(known))
    if wanted in names:
        return wanted
    ends = [name for name in names if name.endswith((f".{wanted}", f"/{wanted}"))]
    if len(ends) == 1:
        return ends[0]
    if ends:
        listed = ", ".join(ends[:4])
        raise DataError(f"{wanted!r} could be several of {noun}", location=where, hint=f"one of {listed}")
    near = difflib.get_close_matches(
        wanted, [*names, *(name.replace("/", ".").rpartition(".")[2] for name in names)], n=1
    )
    hint = f"did you mean {near[0]}?" if near else nearest(wanted, names, "known") if names else "the program has none"
    raise DataError(f"there is no {noun} {wanted!r}", location=where, hint=hint)
