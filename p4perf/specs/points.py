"""The points of an experiment: one for each assignment of the swept variables, all references replaced."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from p4perf.errors import SpecError, UsageError
from p4perf.specs.messages import describe, explain, key_path, nearest, placed, quoted
from p4perf.specs.schema import IMPORTED, VARIANT, DeviceSpec, ExperimentSpec, SweepSpec
from p4perf.specs.sections import ProgramSpec, TrafficSpec
from p4perf.specs.source import Scalar, SourceNode
from p4perf.specs.sweep import Scope, Values, expand, parse_condition, variable_names
from p4perf.specs.types import reference_name
from p4perf.specs.variants import VariantTable, active_variants

ParametersOf = Callable[[str], type[BaseModel]]
"""Gives the parameters that a component takes, by its name; raises ``UsageError`` for an unknown component."""


@dataclass(frozen=True, slots=True)
class Point:
    """One assignment of the swept variables, with everything that refers to them replaced by values.

    ``frame_size_bytes`` includes the FCS (RFC 2544); of a mix it is the largest. ``cpu_frequency_ghz`` is None where
    the frequency is left as it is. ``components`` are names and parameters, in order.
    """

    index: int
    values: Values
    frame_size_bytes: int
    traffic: TrafficSpec
    cpu_frequency_ghz: float | None
    components: tuple[tuple[str, Mapping[str, Scalar]], ...]


def make_points(spec: ExperimentSpec, root: SourceNode, parameters_of: ParametersOf | None = None) -> tuple[Point, ...]:
    """All points of a spec, in the order of its sweep."""
    table = VariantTable(spec, root)
    base = _Form(spec, root, parameters_of)
    conditions = tuple(parse_condition(text, f"sweep.filter.{i}") for i, text in enumerate(spec.sweep.filter))
    used = base.references()
    for condition in conditions:  # what they refer to has to be there, but is no use of a variable
        for operand in (condition.left, condition.right):
            list(base.scope.variables_of(operand, {}, condition.key))
    combined = spec.sweep.combined
    varied = bool(combined.subsets_of or combined.each_of)
    if not varied:
        _check_used(spec, base.scope, used)
    forms: dict[tuple[str, ...], _Form] = {(): base}

    def form_at(values: Values) -> _Form:
        names = active_variants(combined, values) if varied else ()
        if names not in forms:
            forms[names] = _Form(*table.applied(names), parameters_of, base=base)
            used.update(forms[names].references())
        return forms[names]

    scope_at: Callable[[Values], Scope] | None = (lambda values: form_at(values).scope) if varied else None
    assignments = expand(spec.sweep, base.scope, conditions, scope_at=scope_at)
    points = tuple(form_at(values).point(index, values) for index, values in enumerate(assignments))
    _check_x(spec, assignments)
    if varied:
        _check_used(spec, base.scope, used)
        _check_different(spec, points)
    return points


class _Form:
    """What a combination of variants makes of a spec, and the points that are of it.

    Args:
        base: the form without variants, to share what is the same.
    """

    def __init__(
        self, spec: ExperimentSpec, root: SourceNode, parameters_of: ParametersOf | None, base: _Form | None = None
    ) -> None:
        self.spec, self.root, self._base = spec, root, base
        variables = frozenset(variable_names(spec.sweep)) if base is None else base.scope.variables
        self.scope: Scope = Scope(variables, spec.program.composed)
        self._keys = spec.program.parameter_keys()
        self._check = None if parameters_of is None else ParameterCheck(parameters_of, spec.program, root)
        shared = base.traffics if base is not None and base.spec.traffic is spec.traffic else None
        self.traffics: _Traffics = (
            shared if shared is not None and not shared.refers else _Traffics(spec.traffic, self.scope, root)
        )

    def references(self) -> set[str]:
        """The swept variables that anything refers to."""
        if self._check is not None:
            self._check.names()
        with placed(self.root):
            return {*self._of_program(), *self._of_settings()}

    def _of_program(self) -> Iterator[str]:
        for keys, (_, parameters) in zip(self._keys, self.scope.components, strict=True):
            for parameter, value in parameters.items():
                yield from self.scope.variables_of(value, parameters, keys[parameter])

    def _of_settings(self) -> Iterator[str]:
        for part in ("traffic", "device"):
            content: BaseModel = getattr(self.spec, part)
            if self._base is not None and content is getattr(self._base.spec, part) and not self.traffics.refers:
                continue
            for key, value in _leaves(content.model_dump(), part):
                yield from self.scope.variables_of(value, {}, key)
        over = self.spec.traffic.flows.over
        if over is not None and over not in self.scope.names():
            hint = nearest(over, self.scope.names(), "swept variables and parameters")
            raise SpecError(f"{over} is no swept variable or parameter", key="traffic.flows.over", hint=hint)

    def point(self, index: int, values: Values) -> Point:
        """The point with these values of the swept variables."""
        with placed(self.root):
            return self._point(index, values)

    def _point(self, index: int, values: Values) -> Point:
        scope = self.scope
        traffic = self.traffics.at(values)
        components = tuple(
            (name, {k: scope.resolve(v, parameters, values, keys[k]) for k, v in parameters.items()})
            for keys, (name, parameters) in zip(self._keys, scope.components, strict=True)
        )
        if self._check is not None:
            for place, (_, parameters) in enumerate(components):
                self._check.values(place, parameters, values)
        frequency = scope.resolve(self.spec.device.cpu_frequency, {}, values, "device.cpu_frequency")
        size = max(size for size, _ in traffic.mix) if traffic.mix else int(traffic.frame_size)
        return Point(index, values, size, traffic, _frequency(frequency), components)


class ParameterCheck:
    """Checks the components of a program: their names first, then their values at every point."""

    def __init__(self, parameters_of: ParametersOf, program: ProgramSpec, root: SourceNode) -> None:
        self._root, self._composed = root, program.composed
        self._keys = program.parameter_keys()
        self._places = program.component_keys()
        self._valid: set[tuple[int, tuple[tuple[str, type, Scalar], ...]]] = set()
        if program.component == IMPORTED:
            self._composed = ()
        else:
            self._model(program.baseline, "program.baseline", parameters_of)
        self._models = [
            self._model(name, place, parameters_of)
            for (name, _), place in zip(self._composed, self._places, strict=False)
        ]

    def names(self) -> None:
        """Check which parameters are given.

        Raises:
            SpecError: a component has no such parameter, or a parameter is missing; with its place.
        """
        for index, (name, parameters) in enumerate(self._composed):
            fields = self._models[index].model_fields
            for parameter in parameters:
                if parameter not in fields:
                    raise self._error(
                        f"component {name} has no parameter {parameter!r}",
                        self._keys[index][parameter],
                        hint=nearest(parameter, fields, f"parameters of {name}"),
                        blame_key=True,
                    )
            missing = [f for f, field in fields.items() if field.is_required() and f not in parameters]
            if missing:
                hint = f"parameters of {name}: {', '.join(fields)}"
                raise self._error(
                    f"component {name} needs {', '.join(missing)}",
                    self._places[index],
                    hint=hint,
                    blame_key=self._places[index].endswith(f".{name}"),
                )

    def values(self, index: int, resolved: Mapping[str, Scalar], swept: Mapping[str, Scalar]) -> None:
        """Check the values of one component at a point.

        Raises:
            SpecError: a value that the component does not take; with the place of the parameter.
        """
        mark = index, tuple((name, type(value), value) for name, value in resolved.items())
        if index >= len(self._models) or mark in self._valid:
            return
        try:
            self._models[index](**resolved)
        except ValidationError as error:
            name, written = self._composed[index]
            details = error.errors(include_url=False)[0]
            message, hint = describe(details, self._models[index].model_fields)
            parameter = str(details["loc"][0]) if details["loc"] else ""
            key = self._keys[index].get(parameter, self._places[index])
            if reference_name(written.get(parameter)) is not None:
                at = ", ".join(f"{variable} = {quoted(value)}" for variable, value in swept.items())
                hint = hint or (f"at the point {at}" if at else None)
            raise self._error(f"component {name}: {message}", key, hint=hint) from error
        self._valid.add(mark)

    def _model(self, name: str, key: str, parameters_of: ParametersOf) -> type[BaseModel]:
        try:
            return parameters_of(name)
        except UsageError as error:
            last = key.rpartition(".")[2]
            raise self._error(error.message, key, hint=error.hint, blame_key=last == name) from error

    def _error(self, message: str, key: str, *, hint: str | None, blame_key: bool = False) -> SpecError:
        return SpecError(message, location=self._root.locate(key_path(key), key=blame_key), key=key, hint=hint)


def _frequency(value: object) -> float | None:
    if value is None:
        return None
    try:
        resolved = DeviceSpec.model_validate({"cpu_frequency": value}).cpu_frequency
    except ValidationError as error:
        raise SpecError(f"{quoted(value)} is no frequency", key="device.cpu_frequency") from error
    return None if resolved is None else float(resolved)


def _check_used(spec: ExperimentSpec, scope: Scope, used: set[str]) -> None:
    used = {*used, VARIANT, *spec.sweep.combined.subsets_of}
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


def _check_x(spec: ExperimentSpec, assignments: Sequence[Values]) -> None:
    if spec.model is None or (x := spec.model.x) is None:
        return
    for values in assignments:
        value = values[x]
        if isinstance(value, bool | str):
            raise SpecError(f"a model over {x} needs numbers, but {x} is {quoted(value)} at a point", key="model.x")
        if spec.model.x_scale == "log" and value <= 0:
            raise SpecError(f"a logarithmic axis has no {x} = {value}", key="model.x_scale", hint="write linear")


def _check_different(spec: ExperimentSpec, points: Sequence[Point]) -> None:
    """Refuse points that are the same although their variants differ: an effect of nothing would be measured."""
    found: dict[str, Point] = {}
    traffics: dict[int, str] = {}
    for point in points:
        if id(point.traffic) not in traffics:
            traffics[id(point.traffic)] = point.traffic.model_dump_json()
        mark = json.dumps([point.components, traffics[id(point.traffic)], point.cpu_frequency_ghz], sort_keys=True)
        if mark not in found:
            found[mark] = point
            continue
        one, other = (_named(spec.sweep, p.values) for p in (found[mark], point))
        raise SpecError(
            f"{one} and {other} are the same program and traffic",
            key="sweep.multiplex",
            hint="every variant has to change something, and nothing of what is swept; filter what need not be there",
        )


def _named(sweep: SweepSpec, values: Values) -> str:
    named = " + ".join(active_variants(sweep.combined, values)) or "no variant"
    rest = [f"{name} = {quoted(values[name])}" for name in sweep.variables]
    return f"{named} ({', '.join(rest)})" if rest else named


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

    def __init__(self, spec: TrafficSpec, scope: Scope, root: SourceNode) -> None:
        self._scope, self._root = scope, root
        self._content = spec.model_dump(exclude_none=True)
        leaves = list(_leaves(self._content, "traffic"))
        self.refers = any(reference_name(value) is not None for _, value in leaves)
        """Whether anything in it refers to a variable or parameter."""
        self._names = sorted({name for key, value in leaves for name in scope.variables_of(value, {}, key)})
        self._known: dict[tuple[tuple[type, Scalar], ...], TrafficSpec] = {}

    def at(self, values: Values) -> TrafficSpec:
        mark = tuple((type(values[name]), values[name]) for name in self._names)
        if mark not in self._known:
            self._known[mark] = self._resolved(values)
        return self._known[mark]

    def _resolved(self, values: Values) -> TrafficSpec:
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
            at = ", ".join(f"{name} = {quoted(values[name])}" for name in self._names)
            failure.hint = failure.hint or f"at the point {at}"
            raise failure from error

    def _replaced(self, value: Any, values: Values, key: str) -> Any:
        if isinstance(value, dict):
            return {name: self._replaced(child, values, f"{key}.{name}") for name, child in value.items()}
        if isinstance(value, list | tuple):
            return [self._replaced(child, values, f"{key}.{index}") for index, child in enumerate(value)]
        return self._scope.resolve(value, {}, values, key)
