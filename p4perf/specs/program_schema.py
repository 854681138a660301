"""The part of an experiment spec that says what the program is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema, field_validator
from pydantic import model_validator as checked

from p4perf.specs.messages import fault, nearest, shown
from p4perf.specs.types import Strict, Word, check_parameter, check_word

Parameters = Mapping[str, Any]

_WORD: dict[str, Any] = {"type": "string", "pattern": r"^[a-z][a-z0-9_]*$"}
_PARAMETER: dict[str, Any] = {"type": ["boolean", "integer", "number", "string"]}
_PARAMETERS: dict[str, Any] = {"type": "object", "additionalProperties": _PARAMETER}
_ITEM: dict[str, Any] = {
    "anyOf": [
        _WORD,
        {"type": "object", "additionalProperties": _PARAMETERS, "minProperties": 1, "maxProperties": 1},
    ]
}

_ITEM_HINT = "write a name, or one name with its parameters: match_action_table: {entries: 1000}"


class ProgramSpec(Strict):
    """The generated program: the baseline and the component, or components, that are scaled.

    An item of a list of components is a name, or a mapping of one name to parameters of its own, so that a component
    can be there several times with different parameters. What all components of a name share is under ``parameters``.
    """

    baseline: Annotated[Word, Field(description="component of the minimal program that costs are compared to")] = (
        "l2fwd"
    )
    component: Annotated[
        Word | tuple[Word | dict[Word, dict[Word, Any]], ...],
        Field(
            description="the component, or the components in the order in which they are composed; in a list, a name "
            "or a mapping of one name to its own parameters"
        ),
        WithJsonSchema({"anyOf": [_WORD, {"type": "array", "items": _ITEM, "minItems": 1}]}),
    ]
    parameters: Annotated[
        dict[Word, Any],
        Field(description="parameters of the component; with a list of components, a mapping for each name"),
        WithJsonSchema({"type": "object", "additionalProperties": {"anyOf": [_PARAMETER, _PARAMETERS]}}),
    ] = Field(default_factory=dict)

    @field_validator("component", mode="wrap")
    @classmethod
    def _one_or_many(cls, value: Any, handler: Any) -> Any:
        # A union would give one error for each of its branches.
        if isinstance(value, str):
            return handler(check_word(value))
        if not isinstance(value, list | tuple):
            raise fault(f"expected the name of a component or a list of names, got {shown(value)}")
        if not value:
            raise fault("needs at least one component")
        return tuple(_item(item, index) for index, item in enumerate(value))

    @checked(mode="after")
    def _shape(self) -> ProgramSpec:
        several = not isinstance(self.component, str)
        names = {name for name, _ in _items(self.component)}
        for name, value in self.parameters.items():
            path: tuple[str, ...] = ("parameters", name)
            if several and name not in names:
                hint = nearest(name, names, "components")
                raise fault(f"there is no component {name!r} in this program", path=path, hint=hint, key=True)
            if several != isinstance(value, dict):
                raise fault(
                    f"expected a mapping of the parameters of {name}, got {shown(value)}"
                    if several
                    else "expected one value, got a mapping (which is for a list of components)",
                    path=path,
                )
            for inner, item in value.items() if several else ((None, value),):
                where = path if inner is None else (*path, inner)
                if inner is not None:
                    check_word(inner, where, key=True)
                check_parameter(item, where)
        return self

    @property
    def composed(self) -> tuple[tuple[str, Parameters], ...]:
        """Every component in order, with its parameters; its own ones come before those that all of its name share."""
        if isinstance(self.component, str):
            return ((self.component, self.parameters),)
        return tuple((name, {**self.parameters.get(name, {}), **own}) for name, own in _items(self.component))

    def parameter_keys(self) -> tuple[Mapping[str, str], ...]:
        """Of every component in order, the key in the spec of each of its parameters."""
        if isinstance(self.component, str):
            return ({name: f"program.parameters.{name}" for name in self.parameters},)
        keys = []
        for index, (name, own) in enumerate(_items(self.component)):
            shared = {p: f"program.parameters.{name}.{p}" for p in self.parameters.get(name, {})}
            keys.append(shared | {p: f"program.component.{index}.{name}.{p}" for p in own})
        return tuple(keys)


def _items(component: str | tuple[str | dict[str, dict[str, Any]], ...]) -> list[tuple[str, Parameters]]:
    """Names and own parameters."""
    if isinstance(component, str):
        return [(component, {})]
    return [(item, {}) if isinstance(item, str) else next(iter(item.items())) for item in component]


def _item(item: Any, index: int) -> str | dict[str, dict[str, Any]]:
    """One item of a list of components, checked."""
    if not isinstance(item, Mapping):
        name: str = check_word(item, (index,))
        return name
    if len(item) != 1:
        raise fault(f"expected one component, got a mapping of {len(item)} keys", path=(index,), hint=_ITEM_HINT)
    name, parameters = next(iter(item.items()))
    check_word(name, (index, name), key=True)
    if not isinstance(parameters, Mapping):
        raise fault(
            f"expected a mapping of the parameters of {name}, got {shown(parameters)}",
            path=(index, name),
            hint=_ITEM_HINT,
        )
    for key, value in parameters.items():
        check_word(key, (index, name, key), key=True)
        check_parameter(value, (index, name, key))
    return {name: dict(parameters)}
