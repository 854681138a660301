"""Specs on top of specs: what a spec that extends another inherits, and what ``--set`` changes."""

from __future__ import annotations

from collections.abc import Mapping

from p4perf.errors import Location, SpecError
from p4perf.specs.messages import nearest
from p4perf.specs.schema import ExperimentSpec, SweepSpec
from p4perf.specs.source import KeyPath, SourceNode, parse_text


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
