"""Finds a spec, in the catalogue that ships with p4perf or in a file, and adds what it extends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from p4perf.errors import SpecError
from p4perf.specs.messages import nearest, quoted
from p4perf.specs.overlay import merge
from p4perf.specs.source import MAX_BYTES, SourceNode, parse_bytes, read_bytes

BASE = "base/"
"""Specs under this name are there to be extended; they are no experiments."""

_SUFFIX = ".yaml"


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """An experiment of the catalogue: its name and what it is, in one line."""

    name: str
    title: str


def list_catalogue() -> tuple[CatalogueEntry, ...]:
    found = []
    for name in catalogue_names():
        if not name.startswith(BASE):
            title = read_catalogue(name).at(("title",))
            text = title.content if title is not None else None
            found.append(CatalogueEntry(name, text if isinstance(text, str) else ""))
    return tuple(found)


def catalogue_names() -> tuple[str, ...]:
    """Every name of the catalogue, those of specs that are there to be extended too."""
    return tuple(sorted(name for name, _ in _walk(_root(), "")))


def read_catalogue(name: str) -> SourceNode:
    """The spec of that name as it is written, before what it extends is added."""
    for found, file in _walk(_root(), ""):
        if found == name:
            return parse_bytes(file.read_bytes()[: MAX_BYTES + 1], str(file))
    raise unknown_name(name)


def unknown_name(name: str) -> SpecError:
    hint = nearest(name, [n for n in catalogue_names() if not n.startswith(BASE)], "the catalogue has")
    shown = name if name.isprintable() else ascii(name)
    return SpecError(f"unknown experiment {shown}: neither in the catalogue nor a file", hint=hint)


def _root() -> Traversable:
    return files("p4perf.specs").joinpath("catalogue")


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _walk(item, f"{prefix}{item.name}/")
        elif item.name.endswith(_SUFFIX):
            yield prefix + item.name.removesuffix(_SUFFIX), item


MAX_EXTENDS = 8
"""Most specs in a chain of ``extends``."""

_SUFFIXES = (".yaml", ".yml")


_Origin = str | Path
"""Where a spec stands: a name of the catalogue, or a file."""


def _read(origin: _Origin) -> SourceNode:
    if isinstance(origin, str):
        return read_catalogue(origin)
    return _current(parse_bytes(read_bytes(origin), str(origin)))


def _identity(origin: _Origin) -> str:
    return origin if isinstance(origin, str) else str(origin.resolve())


_FORMER = {"parts": "segments", "max_parts": "max_segments"}
"""Keys of ``model`` as they were called before, and now."""


def _current(root: SourceNode) -> SourceNode:
    """A spec with the former keys of its model renamed, as in the runs that were recorded with them."""
    model = root.child("model")
    if model is None or not isinstance(model.content, Mapping) or not _FORMER.keys() & model.content.keys():
        return root
    renamed = {_FORMER.get(str(key), key): child for key, child in model.content.items()}
    content = {**root.content, "model": replace(model, content=renamed)} if isinstance(root.content, Mapping) else {}
    return replace(root, content=content)


def load_tree(source: str) -> SourceNode:
    """The spec with all that it extends, before it is validated."""
    if source in catalogue_names():
        if source.startswith(BASE):
            raise SpecError(f"{source} is no experiment", hint=f"it is there for others: write extends: {source}")
        return _load(source, ())
    path = Path(source)
    try:
        exists = bool(source) and path.exists()
    except (OSError, ValueError):
        exists = False
    if not exists and not source.endswith(_SUFFIXES):
        raise unknown_name(source)
    return _load(path, ())


def _load(origin: _Origin, trail: tuple[str, ...]) -> SourceNode:
    root = _read(origin)
    extends = root.child("extends")
    if extends is None or not isinstance(root.content, Mapping):
        return root
    trail = (*trail, _identity(origin))
    base = _base(origin, extends)
    if _identity(base) in trail:
        raise SpecError("a spec cannot extend itself, not even by way of others", location=extends.place, key="extends")
    if len(trail) >= MAX_EXTENDS:
        raise SpecError(f"more than {MAX_EXTENDS} specs extend each other", location=extends.place, key="extends")
    own = {key: child for key, child in root.content.items() if key != "extends"}
    return merge(_load(base, trail), SourceNode(own, root.place, root.key_place))


def _base(origin: _Origin, extends: SourceNode) -> _Origin:
    name = extends.content
    if not isinstance(name, str) or not name:
        raise SpecError(
            f"expected the name of a spec, got {quoted(extends.plain())}", location=extends.place, key="extends"
        )
    if name in catalogue_names():
        return name
    if not name.endswith(_SUFFIXES):
        hint = nearest(name, catalogue_names(), "the catalogue has")
        raise SpecError(
            f"there is no {quoted(name)} in the catalogue", location=extends.place, key="extends", hint=hint
        )
    if isinstance(origin, str):
        raise SpecError("a spec of the catalogue extends only others of it", location=extends.place, key="extends")
    folder = origin.resolve().parent
    try:
        path = (folder / name).resolve()
        inside = not Path(name).is_absolute() and path.is_relative_to(folder)
        found = inside and path.is_file()
    except (OSError, ValueError, RuntimeError):
        inside = found = False
    if not inside:
        raise SpecError(
            f"{quoted(name)} is outside of the folder of this spec",
            location=extends.place,
            key="extends",
            hint="extend a file of the same folder or below it, or a name of the catalogue",
        )
    if not found:
        raise SpecError(f"there is no file {quoted(name)} beside this spec", location=extends.place, key="extends")
    return origin.parent / name
