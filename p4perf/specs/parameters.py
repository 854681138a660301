"""Parameters of components, checked against what each component takes while the places of a spec are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import BaseModel, ValidationError

from p4perf.errors import SpecError, UsageError
from p4perf.specs.messages import describe, nearest, quoted
from p4perf.specs.schema import IMPORTED
from p4perf.specs.sections import ProgramSpec
from p4perf.specs.source import KeyPath, Scalar, SourceNode
from p4perf.specs.types import reference_name

ParametersOf = Callable[[str], type[BaseModel]]
"""Gives the parameters that a component takes, by its name; raises ``UsageError`` for an unknown component."""


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
            message, hint = describe(details)
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
        path: KeyPath = tuple(int(part) if part.isdigit() else part for part in key.split("."))
        return SpecError(message, location=self._root.locate(path, key=blame_key), key=key, hint=hint)
