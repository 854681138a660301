"""Finds a spec, in the catalogue that ships with p4perf or in a file, adds what it extends, and applies ``--set``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from p4perf.errors import Location, SpecError
from p4perf.formats.plain import real
from p4perf.specs.messages import nearest, quoted
from p4perf.specs.schema import ExperimentSpec, SweepSpec
from p4perf.specs.source import MAX_BYTES, KeyPath, SourceNode, parse_bytes, parse_text, read_bytes

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
    return tuple(sorted(_catalogue()))


def read_catalogue(name: str) -> SourceNode:
    """The spec of that name as it is written, before what it extends is added."""
    file = _catalogue().get(name)
    if file is None:
        raise unknown_name(name)
    return parse_bytes(file.read_bytes()[: MAX_BYTES + 1], str(file))


def unknown_name(name: str) -> SpecError:
    hint = nearest(name, [n for n in catalogue_names() if not n.startswith(BASE)], "the catalogue has")
    shown = name if name.isprintable() else ascii(name)
    return SpecError(f"unknown experiment {shown}: neither in the catalogue nor a file", hint=hint)


@cache
def _catalogue() -> Mapping[str, Traversable]:
    return dict(yaml_files(files("p4perf.specs").joinpath("catalogue")))


def yaml_files(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, Traversable]]:
    """The YAML files below a folder of the package, by their paths in it without the suffix."""
    for item in folder.iterdir():
        if item.is_dir():
            yield from yaml_files(item, f"{prefix}{item.name}/")
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
    return origin if isinstance(origin, str) else str(real(origin))


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
        raise _refused(extends, "a spec cannot extend itself, not even by way of others")
    if len(trail) >= MAX_EXTENDS:
        raise _refused(extends, f"more than {MAX_EXTENDS} specs extend each other")
    own = {key: child for key, child in root.content.items() if key != "extends"}
    return merge(_load(base, trail), SourceNode(own, root.place, root.key_place))


def _refused(extends: SourceNode, message: str, hint: str | None = None) -> SpecError:
    return SpecError(message, location=extends.place, key="extends", hint=hint)


def _base(origin: _Origin, extends: SourceNode) -> _Origin:
    name = extends.content
    if not isinstance(name, str) or not name:
        raise _refused(extends, f"expected the name of a spec, got {quoted(extends.plain())}")
    if name in catalogue_names():
        return name
    if not name.endswith(_SUFFIXES):
        hint = nearest(name, catalogue_names(), "the catalogue has")
        raise _refused(extends, f"there is no {quoted(name)} in the catalogue", hint)
    if isinstance(origin, str):
        raise _refused(extends, "a spec of the catalogue extends only others of it")
    folder = real(origin).parent
    try:
        path = real(folder / name)
        inside = not Path(name).is_absolute() and path.is_relative_to(folder)
        found = inside and path.is_file()
    except (OSError, ValueError):
        inside = found = False
    if not inside:
        hint = "extend a file of the same folder or below it, or a name of the catalogue"
        raise _refused(extends, f"{quoted(name)} is outside of the folder of this spec", hint)
    if not found:
        raise _refused(extends, f"there is no file {quoted(name)} beside this spec")
    return origin.parent / name


def merge(base: SourceNode, over: SourceNode, path: KeyPath = ()) -> SourceNode:
    """``over`` on top of ``base``.

    Mappings are merged key by key; everything else, lists too, is replaced. A key that is null in ``over`` removes the
    inherited one. A swept variable and the offered load are replaced whole, since their keys exclude each other.
    """
    whole = (len(path) == 2 and path[0] == "sweep") or path == ("traffic", "offered_load")
    if whole or not isinstance(base.content, Mapping) or not isinstance(over.content, Mapping):
        return over
    merged = dict(base.content)
    for key, child in over.content.items():
        if key not in merged:
            merged[key] = child
        elif child.content is None:
            del merged[key]
        else:
            merged[key] = merge(merged[key], child, (*path, key))
    return SourceNode(merged, over.place, over.key_place)


def set_value(root: SourceNode, key: str, text: str) -> SourceNode:
    """Apply one ``--set key=text``.

    Args:
        key: a dotted path (``trials.repetitions``), or the bare name of a swept variable, of a parameter of the program
            or of a part of the spec, looked up in this order. A swept variable set to one value is fixed to it, and so
            is a variant that is combined, to 0 or 1.
        text: the new value as YAML; null removes the key.
    """
    place = Location(f"--set {key if key.isprintable() else ascii(key)}")
    if not text.strip():
        raise SpecError("there is no value", location=place, hint="null removes the key")
    try:
        value = parse_text(text, place.file).moved(place)
    except SpecError as error:
        raise SpecError(error.message, location=place, hint=error.hint) from error
    if not isinstance(root.content, Mapping):
        return root  # the schema says what is wrong with it
    if key in _combined(root):
        return _fixed(root, key, value, place)
    path = tuple(key.split(".")) if "." in key else bare_path(root, key, place)
    if not all(path) or not key:
        raise SpecError("expected a dotted path such as trials.repetitions", location=place)
    if path[0] == "extends":
        raise SpecError("extends cannot be set from outside", location=place, hint="write a spec that extends another")
    if path[0] not in ExperimentSpec.model_fields:
        hint = nearest(path[0], ExperimentSpec.model_fields, "known keys")
        raise SpecError(f"unknown key {path[0]!r}", location=place, hint=hint)
    if path[0] == "model" and path[-1] in _FORMER:
        raise SpecError(f"unknown key {path[-1]!r}", location=place, hint=f"it is now model.{_FORMER[path[-1]]}")
    scalar = value.content is not None and not isinstance(value.content, Mapping | tuple)
    if scalar and len(path) == 2 and path[0] == "sweep" and path[1] not in SweepSpec.model_fields:
        value = SourceNode((value,), place, place)
    return set_at(root, path, value, place)


def _combined(root: SourceNode) -> tuple[str, ...]:
    found = root.at(("sweep", "multiplex", "subsets_of")) or root.at(("sweep", "multiplex"))
    content = found.content if found is not None else None
    return tuple(str(name.content) for name in content) if isinstance(content, tuple) else ()


def _fixed(root: SourceNode, name: str, value: SourceNode, place: Location) -> SourceNode:
    """The spec with a combined variant always there (1) or never (0)."""
    wanted = value.content
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted not in (0, 1):
        other = [".".join(path) for path in _parameter_paths(root) if path[-1] == name]
        hint = f"the parameter of that name is {other[0]}" if other else f"--set {name}=1 leaves what has the variant"
        raise SpecError(f"{name} is a combined variant, which is 0 or 1", location=place, hint=hint)
    before = root.at(("sweep", "filter"))
    kept = before.content if before is not None and isinstance(before.content, tuple) else ()
    condition = SourceNode(f"${name} == {wanted}", place, place)
    return set_at(root, ("sweep", "filter"), SourceNode((*kept, condition), place, place), place)


def set_at(node: SourceNode, path: tuple[str, ...], value: SourceNode, place: Location) -> SourceNode:
    """The tree with a value at a path; a value of null removes the key."""
    if not path:
        return value
    if isinstance(node.content, tuple):
        raise SpecError(f"a list has no key {path[0]!r}", location=place, hint="set the whole list")
    content = dict(node.content) if isinstance(node.content, Mapping) else {}
    if len(path) == 1 and value.content is None:
        content.pop(path[0], None)
    else:
        content[path[0]] = set_at(content.get(path[0]) or SourceNode({}, place, place), path[1:], value, place)
    return SourceNode(content, node.place, node.key_place)


def bare_path(root: SourceNode, name: str, place: Location) -> tuple[str, ...]:
    """The path of a swept variable, of a parameter of the program or of a part of the spec, looked up in this order."""
    variables = _keys(root, "sweep") - {*SweepSpec.model_fields}
    if name in variables:
        return ("sweep", name)
    for variant in sorted(_keys(root, "sweep", "multiplex")):
        if name in _keys(root, "sweep", "multiplex", variant):
            hint = f"set it in each variant, such as --set sweep.multiplex.{variant}.{name}=..."
            raise SpecError(f"{name} is assigned by the variants of the sweep", location=place, hint=hint)
    parameters = _parameter_paths(root)
    found = [path for path in parameters if path[-1] == name]
    if len(found) > 1:
        hint = "set " + " or ".join(".".join(path) for path in found)
        raise SpecError(f"several components have a parameter {name}", location=place, hint=hint)
    if found:
        return found[0]
    if name in ExperimentSpec.model_fields:
        return (name,)
    known = {*variables, *(path[-1] for path in parameters), *ExperimentSpec.model_fields}
    raise SpecError(f"unknown swept variable, parameter or section {name!r}", location=place, hint=nearest(name, known))


def _keys(root: SourceNode, *path: str) -> set[str]:
    node = root.at(path)
    return set(node.content) if node is not None and isinstance(node.content, Mapping) else set()


def _parameter_paths(root: SourceNode) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name in sorted(_keys(root, "program", "parameters")):
        inner = _keys(root, "program", "parameters", name)
        found += [("program", "parameters", name, key) for key in sorted(inner)] or [("program", "parameters", name)]
    return found
