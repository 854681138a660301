"""The experiments that ship with p4perf."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from p4perf.errors import SpecError
from p4perf.specs.messages import nearest
from p4perf.specs.source import MAX_BYTES, Node, parse_bytes

BASE = "base/"
"""Specs under this name are there to be extended; they are no experiments."""

_SUFFIX = ".yaml"


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """An experiment of the catalogue: its name and what it is, in one line."""

    name: str
    title: str


def list_catalogue() -> tuple[CatalogueEntry, ...]:
    """The experiments of the catalogue, by name."""
    return tuple(
        CatalogueEntry(name, title if isinstance(title, str) else "")
        for name in catalogue_names()
        if not name.startswith(BASE)
        for title in [_title(read_catalogue(name))]
    )


def catalogue_names() -> tuple[str, ...]:
    """Every name of the catalogue, those of specs that are there to be extended too."""
    return tuple(sorted(name for name, _ in _walk(_root(), "")))


def read_catalogue(name: str) -> Node:
    """The spec of that name as it is written, before what it extends is added.

    Raises:
        SpecError: there is none of that name; the message names the nearest.
    """
    for found, file in _walk(_root(), ""):
        if found == name:
            return parse_bytes(file.read_bytes()[: MAX_BYTES + 1], str(file))
    raise unknown_name(name)


def unknown_name(name: str) -> SpecError:
    """The error for a name that the catalogue does not have."""
    hint = nearest(name, [n for n in catalogue_names() if not n.startswith(BASE)], "the catalogue has")
    shown = name if name.isprintable() else ascii(name)
    return SpecError(f"there is no experiment {shown} in the catalogue, and no such file", hint=hint)


def _root() -> Traversable:
    return files("p4perf.specs").joinpath("catalogue")


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _walk(item, f"{prefix}{item.name}/")
        elif item.name.endswith(_SUFFIX):
            yield prefix + item.name.removesuffix(_SUFFIX), item


def _title(root: Node) -> object:
    title = root.child("title")
    return title.content if title is not None else None
