"""Numbers, words and parts of a JSON file, by their paths, with clear errors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p4perf.evaluation.imports.base import Place


@dataclass(frozen=True, slots=True)
class Node:
    """An object of a JSON file, and its path in it."""

    content: Mapping[str, Any]
    path: Path
    key: str = ""

    def place(self, *names: str) -> Place:
        """Where something below this object stands."""
        return Place(self.path, None, ".".join([self.key, *names] if self.key else names))

    def get(self, name: str) -> Any:
        """What stands under a name; None if nothing does."""
        return self.content.get(name)

    def child(self, name: str) -> Node:
        """An object below.

        Raises:
            DataError: there is none.
        """
        found = self.content.get(name)
        if not isinstance(found, Mapping):
            raise self.place(name).error("is missing" if found is None else "is not an object")
        return Node(found, self.path, ".".join([self.key, name] if self.key else [name]))

    def maybe(self, name: str) -> Node | None:
        """An object below; None if there is nothing.

        Raises:
            DataError: it is something else.
        """
        return None if self.content.get(name) is None else self.child(name)

    def number(self, name: str) -> float:
        """A number, zero at least.

        Raises:
            DataError: it is missing, not a number, not finite or negative.
        """
        return checked_number(self.content.get(name), self.place(name))

    def text(self, name: str) -> str:
        """A text.

        Raises:
            DataError: it is missing or something else.
        """
        found = self.content.get(name)
        if not isinstance(found, str):
            raise self.place(name).error("is missing" if found is None else "is not a text")
        return found


def checked_number(value: Any, place: Place) -> float:
    """A number, zero at least.

    Raises:
        DataError: it is missing, not a number, not finite or negative.
    """
    if value is None:
        raise place.error("is missing")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise place.error(f"is not a number: {value!r:.60}")
    try:
        number = float(value)
    except OverflowError as error:
        raise place.error("is larger than any number") from error
    if not math.isfinite(number) or number < 0:
        raise place.error(f"is {number}: expected a finite number, zero at least")
    return number
