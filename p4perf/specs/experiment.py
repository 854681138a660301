"""An experiment, put together: the validated spec, its points, and its hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from p4perf.errors import DataError, SpecError
from p4perf.specs.captures import Capture, read_capture
from p4perf.specs.loader import load_tree
from p4perf.specs.messages import explain, located, nearest, shown
from p4perf.specs.overlay import override
from p4perf.specs.references import Condition, Scope, parse_condition
from p4perf.specs.scalars import MAX_EXPONENT_INTEGER, Scalar, needs_quotes
from p4perf.specs.schema import VARIANT, DeviceSpec, ExperimentSpec, SweepSpec, TrafficSpec
from p4perf.specs.source import Node
from p4perf.specs.sweep import expand, thinned, variable_names

COSMETIC = ("title", "description", "source", "extends")
"""Parts of a spec that influence nothing, and are not in its hash."""


@dataclass(frozen=True, slots=True)
class Point:
    """One assignment of the swept variables, with everything that refers to them replaced by values.

    ``frame_size_bytes`` includes the FCS (RFC 2544); of a mix it is the largest. ``cpu_frequency_ghz`` is None where
    the frequency is left as it is. ``components`` are names and parameters, in order.
    """

    index: int
    values: Mapping[str, Scalar]
    frame_size_bytes: int
    traffic: TrafficSpec
    cpu_frequency_ghz: float | None
    components: tuple[tuple[str, Mapping[str, Scalar]], ...]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A validated spec and the points of its sweep.

    ``source`` is where it was loaded from; ``spec_hash`` is the SHA-256 of what the spec means (64 hexadecimal digits).
    """

    spec: ExperimentSpec
    points: tuple[Point, ...]
    source: str
    spec_hash: str
    capture: Capture | None = None
    """The capture that is replayed, if one is."""

    def resolved_yaml(self) -> str:
        """The spec with everything inherited, overridden and defaulted; it loads back to the same experiment."""
        head = f"# {self.spec.name}, as resolved; sha256 {self.spec_hash}\n"
        return head + spec_yaml(_dump(self.spec))


def spec_yaml(content: Mapping[str, Any]) -> str:
    """The content of a spec as YAML that reads back as the same values."""
    plain = dict(content)
    return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None)


def load_experiment(source: str, *, overrides: Sequence[tuple[str, str]] = (), points: int | None = None) -> Experiment:
    """Load, resolve and validate a spec, and expand its sweep.

    Args:
        source: name of the catalogue (``mat/exact-entries``), or path of a YAML file.
        overrides: ``(key, value)`` of every ``--set key=value``, applied in order: a dotted path, or the bare name of a
            swept variable or parameter; the value is YAML.
        points: at most so many values of every swept variable, evenly chosen; the first and last stay.

    Raises:
        SpecError: whatever is wrong with the spec or the overrides, with its place.
    """
    root = load_tree(str(source))
    for key, value in overrides:
        root = override(root, key, value)
    try:
        spec = ExperimentSpec.model_validate(root.plain())
    except ValidationError as error:
        raise explain(error, root) from error
    try:
        if points is not None:
            spec = spec.model_copy(update={"sweep": thinned(spec.sweep, points)})
        spec = _with_x(spec)
        spec, capture = _with_capture(spec, Path(source))
        return Experiment(spec, _points(spec, root), str(source), spec_hash(spec), capture)
    except SpecError as error:
        raise located(error, root) from error.__cause__


def spec_hash(spec: ExperimentSpec) -> str:
    """SHA-256 of the canonical JSON of a spec, without what is cosmetic; the order of variables counts."""
    content = {key: value for key, value in _dump(spec).items() if key not in COSMETIC}
    order = [*variable_names(spec.sweep), *spec.sweep.multiplex]
    text = json.dumps([content, order], sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _with_capture(spec: ExperimentSpec, source: Path) -> tuple[ExperimentSpec, Capture | None]:
    """The spec with the digest of the capture that it replays, and the capture."""
    replay = spec.traffic.replay
    if replay is None:
        return spec, None
    folder = source.resolve().parent
    path = (folder / replay.pcap).resolve()
    if not source.is_file() or not path.is_relative_to(folder):
        raise SpecError(f"{replay.pcap} is outside of the folder of this spec", key="traffic.replay.pcap")
    try:
        capture = read_capture(path)
    except DataError as error:
        raise SpecError(f"{replay.pcap} {error.message}", key="traffic.replay.pcap", hint=error.hint) from error
    if replay.sha256 not in (None, capture.sha256):
        raise SpecError(f"{replay.pcap} is another capture than this", key="traffic.replay.sha256")
    if replay.timing == "recorded" and capture.rate_pps is None:
        raise SpecError(f"all frames of {replay.pcap} came at once", key="traffic.replay.timing", hint="write offered")
    known = replay.model_copy(update={"sha256": capture.sha256})
    return spec.model_copy(update={"traffic": spec.traffic.model_copy(update={"replay": known})}), capture


def _with_x(spec: ExperimentSpec) -> ExperimentSpec:
    """The spec with the variable that the model is over, which need not be named if there is only one."""
    names = variable_names(spec.sweep)
    if spec.model is None:
        return spec
    if spec.model.x is None:
        if len(names) > 1:
            raise SpecError("say which swept variable is x", key="model", hint=f"swept variables: {', '.join(names)}")
        return spec.model_copy(update={"model": spec.model.model_copy(update={"x": names[0]})}) if names else spec
    if spec.model.x not in names:
        hint = nearest(spec.model.x, names, "swept variables")
        raise SpecError(f"{spec.model.x} is not a swept variable", key="model.x", hint=hint)
    return spec


def _points(spec: ExperimentSpec, root: Node) -> tuple[Point, ...]:
    scope = Scope(frozenset(variable_names(spec.sweep)), spec.program.composed)
    conditions = tuple(parse_condition(text, f"sweep.filter.{i}") for i, text in enumerate(spec.sweep.filter))
    _check_references(spec, scope, conditions)
    assignments = expand(spec.sweep, scope, conditions)
    _check_x(spec, assignments)
    traffics = _Traffics(spec.traffic, scope, root)
    keys = [_component_key(spec, name) for name, _ in scope.components]
    points = []
    for index, values in enumerate(assignments):
        traffic = traffics.at(values)
        components = tuple(
            (name, {k: scope.resolve(v, parameters, values, f"{key}.{k}") for k, v in parameters.items()})
            for key, (name, parameters) in zip(keys, scope.components, strict=True)
        )
        frequency = scope.resolve(spec.device.cpu_frequency, {}, values, "device.cpu_frequency")
        points.append(Point(index, values, _frame_size_bytes(traffic), traffic, _frequency(frequency), components))
    return tuple(points)


def _frame_size_bytes(traffic: TrafficSpec) -> int:
    """The size of the frames, of a mix that of the largest."""
    return max(size for size, _ in traffic.mix) if traffic.mix else int(traffic.frame_size)


def _frequency(value: object) -> float | None:
    """The frequency of a point in GHz."""
    if value is None:
        return None
    try:
        resolved = DeviceSpec.model_validate({"cpu_frequency": value}).cpu_frequency
    except ValidationError as error:
        raise SpecError(f"{shown(value)} is no frequency", key="device.cpu_frequency") from error
    return None if resolved is None else float(resolved)


def _component_key(spec: ExperimentSpec, name: str) -> str:
    return "program.parameters" if isinstance(spec.program.component, str) else f"program.parameters.{name}"


def _check_references(spec: ExperimentSpec, scope: Scope, conditions: Sequence[Condition]) -> None:
    used: set[str] = {VARIANT}
    for name, parameters in scope.components:
        for parameter, value in parameters.items():
            used.update(scope.variables_of(value, parameters, f"{_component_key(spec, name)}.{parameter}"))
    for part, content in (("traffic", spec.traffic.model_dump()), ("device", spec.device.model_dump())):
        for key, value in _leaves(content, part):
            used.update(scope.variables_of(value, {}, key))
    for condition in conditions:
        for operand in (condition.left, condition.right):
            list(scope.variables_of(operand, {}, condition.key))
    over = spec.traffic.flows.over
    if over is not None and over not in scope.names():
        hint = nearest(over, scope.names(), "swept variables and parameters")
        raise SpecError(f"{over} is no swept variable or parameter", key="traffic.flows.over", hint=hint)
    for name in variable_names(spec.sweep):
        if name not in used:
            raise _unused(spec, scope, name)


def _unused(spec: ExperimentSpec, scope: Scope, name: str) -> SpecError:
    key = f"sweep.{name}" if name in spec.sweep.variables else "sweep.multiplex"
    if any(name in parameters for _, parameters in scope.components):
        hint = f"write {name}: ${name} in program.parameters"
    else:
        hint = nearest(name, {*SweepSpec.model_fields, *scope.names()} - {name})
        if not hint.startswith("did"):
            hint = f"write ${name} in program.parameters or traffic"
    return SpecError(f"the swept variable {name} is never used", key=key, hint=hint)


def _check_x(spec: ExperimentSpec, assignments: Sequence[Mapping[str, Scalar]]) -> None:
    if spec.model is None or (x := spec.model.x) is None:
        return
    for values in assignments:
        value = values[x]
        if isinstance(value, bool | str):
            raise SpecError(f"a model over {x} needs numbers, but {x} is {shown(value)} at a point", key="model.x")
        if spec.model.x_scale == "log" and value <= 0:
            raise SpecError(f"a logarithmic axis has no {x} = {value}", key="model.x_scale", hint="write linear")


def _leaves(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, child in value.items():
            yield from _leaves(child, f"{key}.{name}")
    elif isinstance(value, list | tuple):
        for index, child in enumerate(value):
            yield from _leaves(child, f"{key}.{index}")
    else:
        yield key, value


class _Traffics:
    """The traffic of points; points that differ in nothing that traffic refers to share one."""

    def __init__(self, spec: TrafficSpec, scope: Scope, root: Node) -> None:
        self._scope, self._root = scope, root
        self._content = spec.model_dump(exclude_none=True)
        leaves = _leaves(self._content, "traffic")
        self._names = sorted({name for key, value in leaves for name in scope.variables_of(value, {}, key)})
        self._known: dict[tuple[tuple[type, Scalar], ...], TrafficSpec] = {}

    def at(self, values: Mapping[str, Scalar]) -> TrafficSpec:
        mark = tuple((type(values[name]), values[name]) for name in self._names)
        if mark not in self._known:
            self._known[mark] = self._resolved(values)
        return self._known[mark]

    def _resolved(self, values: Mapping[str, Scalar]) -> TrafficSpec:
        content = self._replaced(self._content, values, "traffic")
        flows = content["flows"]
        if flows["distribution"] == "zipf":
            flows.setdefault("zipf_s", 1.0)
        else:
            flows.pop("zipf_s", None)
        try:
            return TrafficSpec.model_validate(content)
        except ValidationError as error:
            failure = explain(error, self._root, ("traffic",))
            at = ", ".join(f"{name} = {shown(values[name])}" for name in self._names)
            failure.hint = failure.hint or f"at the point {at}"
            raise failure from error

    def _replaced(self, value: Any, values: Mapping[str, Scalar], key: str) -> Any:
        if isinstance(value, dict):
            return {name: self._replaced(child, values, f"{key}.{name}") for name, child in value.items()}
        if isinstance(value, list | tuple):
            return [self._replaced(child, values, f"{key}.{index}") for index, child in enumerate(value)]
        return self._scope.resolve(value, {}, values, key)


def _dump(spec: ExperimentSpec) -> dict[str, Any]:
    content = spec.model_dump(mode="json", exclude_none=True, exclude={"extends"})
    if not content["device"]:
        del content["device"]
    if not spec.asks_load:
        del content["load"]
    content["sweep"] = {name: value for name, value in content["sweep"].items() if value not in ([], {})}
    return content


class _Dumper(yaml.SafeDumper):
    """Writes what :mod:`p4perf.specs.source` reads back as the same value: no aliases, quotes where words need them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_str(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if needs_quotes(text) else None)


def _represent_float(dumper: yaml.SafeDumper, value: float) -> yaml.Node:
    # A whole number with an exponent would be read as an integer.
    whole = value.is_integer() and abs(value) <= MAX_EXPONENT_INTEGER
    text = f"{value:.1f}" if whole else repr(value)
    return dumper.represent_scalar("tag:yaml.org,2002:float", text if "." in text else text.replace("e", ".0e", 1))


_Dumper.add_representer(str, _represent_str)
_Dumper.add_representer(float, _represent_float)
