"""Variants: named changes of a spec that inherit from each other, and what a combination of them makes of it.

A variant is to a spec what ``--set`` is: the same keys, the same tree, the same places in errors. Variants that inherit
have an order, so later settings win; variants that are combined have none, so they may not contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from p4perf.errors import SpecError
from p4perf.specs.loader import bare_path, set_at
from p4perf.specs.messages import explain, nearest, quoted
from p4perf.specs.schema import VARIANT, DeviceSpec, ExperimentSpec
from p4perf.specs.sections import CombinedSpec, ProgramSpec, TrafficSpec
from p4perf.specs.source import KeyPath, Scalar, SourceNode
from p4perf.specs.types import Strict

MAX_INHERITS = 8
"""Most variants that inherit from each other in a chain."""

PARAMETERS = ("program", "parameters")

_WHOLE = (("traffic", "offered_load"), ("traffic", "mix"))
"""Mappings that are one value."""

_GROUPS = (("traffic", "burst"), ("traffic", "flows"), ("traffic", "fields"))
"""Mappings of several values, which can be removed one by one."""

_COMMON = ("replay", "latency_at")
"""Keys of traffic that are the same at all points."""

COMPONENTS = ("program", "component")

_CAN = "a variant can set the list of components of the program, their parameters, traffic and device"

Path = tuple[str, ...]

_Part = TypeVar("_Part", bound=Strict)


@dataclass(frozen=True, slots=True)
class Setting:
    """What a variant sets: the value, the variant, and its place in the spec."""

    value: SourceNode
    variant: str
    source: KeyPath


Settings = Mapping[Path, Setting]


def active_variants(combined: CombinedSpec, values: Mapping[str, Scalar]) -> tuple[str, ...]:
    """The variants of the section ``variants`` that a point has, in the order of the sweep."""
    one = (str(values[VARIANT]),) if combined.each_of else ()
    return (*one, *(name for name in combined.subsets_of if values[name]))


def describe_variants(spec: ExperimentSpec) -> list[str]:
    """The variants that are measured, a line each: ``a: no header (header_bytes=0)``."""
    combined = spec.sweep.combined
    lines = []
    for name in (*combined.each_of, *combined.subsets_of):
        variant = spec.variants[name]
        inherited = [f"inherits {', '.join(variant.inherits)}"] if variant.inherits else []
        own = [f"{key}={quoted(value)}" for key, value in variant.set.items()]
        what = "; ".join([*inherited, *([", ".join(own)] if own else [])]) or "changes nothing"
        lines.append(f"{name}: {variant.title} ({what})" if variant.title else f"{name}: {what}")
    return lines


class VariantTable:
    """The variants of a spec, with all that they inherit."""

    def __init__(self, spec: ExperimentSpec, root: SourceNode) -> None:
        self._spec, self._root = spec, root
        self._settings: dict[str, Settings] = {}
        self._levels: dict[str, int] = {}
        for name in spec.variants:
            self._resolve(name, ())
        listed = isinstance(spec.sweep.multiplex, tuple)
        for part in ("subsets_of", "each_of"):
            for index, name in enumerate(getattr(spec.sweep.combined, part)):
                if name not in spec.variants:
                    at: KeyPath = ("sweep", "multiplex", *((index,) if listed else (part, index)))
                    hint = nearest(name, spec.variants, "variants")
                    raise self._error(f"there is no variant {name}", at, hint=hint)

    def applied(self, names: Sequence[str]) -> tuple[ExperimentSpec, SourceNode]:
        """The spec with a combination of variants, and its tree, in which settings keep their places."""
        root, spec = self._root, self._spec
        merged: dict[Path, Setting] = {}
        for name in names:
            for path, setting in self._settings[name].items():
                self._check_conflict(path, setting, merged, name)
                merged[path] = setting
        for path, setting in merged.items():
            root = set_at(root, path, setting.value, setting.value.place)
        parts = {path[0] for path in merged}
        kinds: dict[str, type[Strict]] = {"program": ProgramSpec, "device": DeviceSpec}
        update = {part: self._valid(kind, part, root) for part, kind in kinds.items() if part in parts}
        if "traffic" in parts:
            update["traffic"] = self._traffic(root)
        return spec.model_copy(update=update), root

    def _traffic(self, root: SourceNode) -> TrafficSpec:
        base = self._spec.traffic
        traffic = self._valid(TrafficSpec, "traffic", root)
        if (traffic.offered_load == "max") != (base.offered_load == "max"):
            raise self._error(
                "a variant cannot turn a maximum load into an offered one, or back",
                ("traffic", "offered_load"),
                root=root,
                hint="give the spec an offered load that is no maximum, and let the variant set another",
            )
        # What was found out of the capture stays known.
        return traffic.model_copy(update={"replay": base.replay})

    def _valid(self, kind: type[_Part], part: str, root: SourceNode) -> _Part:
        found = root.child(part)
        try:
            return kind.model_validate(found.plain() if found is not None else {})
        except ValidationError as error:
            raise explain(error, root, (part,)) from error

    def _check_conflict(self, path: Path, setting: Setting, merged: Settings, name: str) -> None:
        for other_path in [path[:length] for length in range(1, len(path) + 1)]:
            other = merged.get(other_path)
            if other is None or _same(other.value, setting.value):
                continue
            key = ".".join(path)
            raise self._error(
                f"{other.variant} and {setting.variant} are combined, but set {key} to "
                f"{quoted(other.value.plain())} and {quoted(setting.value.plain())}",
                setting.source,
                hint="variants that are combined have no order; let one inherit from the other, or filter them apart",
            )

    def _resolve(self, name: str, trail: tuple[str, ...]) -> Settings:
        if name in self._settings:
            return self._settings[name]
        variant = self._spec.variants[name]
        inherits: KeyPath = ("variants", name, "inherits")
        if len(trail) >= MAX_INHERITS:
            raise self._error(f"more than {MAX_INHERITS} variants inherit from each other", inherits)
        merged: dict[Path, Setting] = {}
        level = 0
        for parent in variant.inherits:
            if parent not in self._spec.variants:
                hint = nearest(parent, self._spec.variants, "variants")
                raise self._error(f"there is no variant {parent} to inherit from", inherits, hint=hint)
            if parent == name or parent in trail:
                chain = " -> ".join([*trail[trail.index(parent) if parent in trail else len(trail) :], name, parent])
                raise self._error(f"a variant cannot inherit from itself: {chain}", inherits)
            merged |= self._resolve(parent, (*trail, name))
            level = max(level, self._levels[parent])
        if level + 1 > MAX_INHERITS:
            raise self._error(f"more than {MAX_INHERITS} variants inherit from each other", inherits)
        merged |= self._own(name)
        self._settings[name], self._levels[name] = merged, level + 1
        return merged

    def _own(self, name: str) -> Settings:
        node = self._root.at(("variants", name, "set"))
        content = node.content if node is not None else None
        found: dict[Path, Setting] = {}
        for key, value in content.items() if isinstance(content, Mapping) else ():
            source: KeyPath = ("variants", name, "set", key)
            path = tuple(key.split(".")) if "." in key else self._bare(key, source)
            if not key or not all(path):
                raise self._error("expected a key such as traffic.frame_size", source)
            for leaf, leaf_value, leaf_source in _leaves(path, value, source):
                self._check_path(leaf, leaf_value, leaf_source)
                if leaf in found:
                    raise self._error(f"{'.'.join(leaf)} is set twice", leaf_source)
                found[leaf] = Setting(leaf_value, name, leaf_source)
        return found

    def _bare(self, key: str, source: KeyPath) -> Path:
        try:
            return bare_path(self._root, key, self._root.locate(source, key=True))
        except SpecError as error:
            error.key = ".".join(map(str, source))
            if "did you mean" not in (error.hint or ""):
                error.hint = f"write program.parameters.{key} for a parameter that the spec leaves at its default"
            raise

    def _check_path(self, path: Path, value: SourceNode, source: KeyPath) -> None:
        if path[0] == "sweep":
            raise self._error(
                f"{path[-1]} is swept, so a variant cannot set it",
                source,
                hint=f"write program.parameters.{path[-1]} for a parameter of that name",
            )
        if path[0] == "traffic" and len(path) > 1 and path[1] in _COMMON:
            raise self._error(f"traffic.{path[1]} is the same at all points", source, hint=_CAN)
        several = not isinstance(self._spec.program.component, str)
        parameter = path[:2] == PARAMETERS and len(path) == (4 if several else 3)
        listed = path == COMPONENTS and isinstance(value.content, tuple)
        if not parameter and not listed and (path[0] not in ("traffic", "device") or len(path) < 2):
            raise self._error(f"a variant cannot set {'.'.join(path)}", source, hint=_CAN)
        if not isinstance(value.content, Mapping) and path in _GROUPS:
            raise self._error(
                f"expected a mapping, got {quoted(value.plain())}", source, hint="set its keys one by one"
            )

    def _error(
        self, message: str, path: KeyPath, *, root: SourceNode | None = None, hint: str | None = None
    ) -> SpecError:
        tree = root or self._root
        return SpecError(message, location=tree.locate(path), key=".".join(map(str, path)), hint=hint)


def _leaves(path: Path, value: SourceNode, source: KeyPath) -> Iterator[tuple[Path, SourceNode, KeyPath]]:
    """The single values below a path, with their paths in the spec and where they are written."""
    for whole in _WHOLE:
        if path[: len(whole)] == whole:
            for part in reversed(path[len(whole) :]):
                value = SourceNode({part: value}, value.place, value.key_place)
            yield whole, value, source
            return
    if isinstance(value.content, Mapping):
        for key, child in value.content.items():
            yield from _leaves((*path, key), child, (*source, key))
    else:
        yield path, value, source


def _same(one: SourceNode, other: SourceNode) -> bool:
    left, right = one.plain(), other.plain()
    return type(left) is type(right) and bool(left == right)
