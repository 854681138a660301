"""What a spec says of variants: what each one sets, what it inherits, and which of them are combined to points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema, field_validator
from pydantic import model_validator as checked

from p4perf.specs.grids import AssignedSpec
from p4perf.specs.messages import fault
from p4perf.specs.types import Strict, Whole, Word

_WORD: dict[str, Any] = {"type": "string", "pattern": r"^[a-z][a-z0-9_]*$"}


class VariantSpec(Strict):
    """A named set of changes to a spec: what it inherits, in order, and then what it sets itself."""

    title: Annotated[str, Field(description="one line for people")] = ""
    inherits: Annotated[
        tuple[Word, ...],
        Field(description="variant, or variants in order, of which it has all settings; later ones win"),
        WithJsonSchema({"anyOf": [_WORD, {"type": "array", "items": _WORD}]}),
    ] = ()
    set: Annotated[
        dict[str, Any],
        Field(description="what differs, by key as for --set: components, their parameters, traffic, device"),
        WithJsonSchema({"type": "object"}),
    ] = Field(default_factory=dict)

    @field_validator("inherits", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


class CombinedSpec(Strict):
    """Which variants are measured: all subsets of some, each of others, and both as a product."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    subsets_of: Annotated[
        tuple[Word, ...], Field(description="variants of which every subset is measured; each is a variable, 0 or 1")
    ] = ()
    sizes: Annotated[
        tuple[Annotated[Whole, Field(ge=0)], ...] | None,
        Field(description="how many variants at once; without it from none to all of subsets_of"),
    ] = None
    each_of: Annotated[
        tuple[Word, ...], Field(description="variants that are measured one after another; the variable is variant")
    ] = ()

    @checked(mode="after")
    def _some(self) -> CombinedSpec:
        if not self.subsets_of and not self.each_of:
            raise fault("names no variant", hint="write [a, b], {subsets_of: [a, b], sizes: [0, 1]} or {each_of: [a]}")
        named: set[str] = set()
        for part in ("subsets_of", "each_of"):
            for index, name in enumerate(getattr(self, part)):
                if name in named:
                    raise fault(f"the variant {name} is there twice", path=(part, index))
                named.add(name)
        most = len(self.subsets_of)
        for index, size in enumerate(self.sizes or ()):
            if size > most:
                raise fault(f"there are {most} variants, so no subset has {size}", path=("sizes", index))
            if size in (self.sizes or ())[:index]:
                raise fault(f"the size {size} is there twice", path=("sizes", index))
        if self.sizes is not None and not self.sizes:
            raise fault("the list has no sizes, so the sweep is empty", path=("sizes",))
        return self

    @property
    def subset_sizes(self) -> tuple[int, ...]:
        """How many variants the subsets have, ascending."""
        return tuple(range(len(self.subsets_of) + 1)) if self.sizes is None else tuple(sorted(self.sizes))


def _form(value: Any) -> str | None:
    match value:
        case list() | tuple():
            return "<list>"
        case CombinedSpec():
            return "<combined>"
        case Mapping():
            own = [name for name in CombinedSpec.model_fields if name in value]
            return "<combined>" if any(not isinstance(value[name], Mapping) for name in own) else "<assigned>"
        case _:
            return None


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise fault(f"the variant {name} is there twice", path=(index,))
    return names


MultiplexSpec = Annotated[
    Annotated[tuple[Word, ...], Field(min_length=1), AfterValidator(_once), Tag("<list>")]
    | Annotated[CombinedSpec, Tag("<combined>")]
    | Annotated[dict[Word, dict[Word, AssignedSpec]], Tag("<assigned>")],
    Discriminator(
        _form,
        custom_error_type="p4perf_form",
        custom_error_message="expected a list of variants, {subsets_of: [a, b]}, {each_of: [a, b]} or "
        "a mapping of variants to what they assign",
    ),
]
"""How a sweep says which variants are measured."""
