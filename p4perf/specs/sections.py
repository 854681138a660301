"""The sections of an experiment spec: traffic, program and variants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema, field_validator
from pydantic import model_validator as checked

from p4perf.specs import types as kinds
from p4perf.specs.grids import AssignedSpec
from p4perf.specs.messages import nearest, quoted, validation_error
from p4perf.specs.types import Strict, Whole, Word, check_once, check_parameter, check_word


class FlowsSpec(Strict):
    """How packets are spread over the keys of a table."""

    distribution: kinds.DistributionName = Field("uniform", description="which keys the packets carry")
    zipf_s: kinds.ZipfExponent | None = Field(None, description="exponent of the Zipf distribution (default 1)")
    over: Word | None = Field(None, description="variable or parameter that is the number of keys")

    @checked(mode="after")
    def _zipf_only(self) -> FlowsSpec:
        if self.zipf_s is not None and self.distribution != "zipf" and not self.distribution.startswith("$"):
            raise validation_error(
                "zipf_s needs the distribution zipf", path=("zipf_s",), hint="write distribution: zipf"
            )
        return self


class RateLoad(Strict):
    """A fixed offered load."""

    rate_mpps: kinds.RateMpps = Field(description="offered load in million packets per second")


class FractionLoad(Strict):
    """Offered loads as fractions of the highest rate that the device takes."""

    fraction_of_max: kinds.Fractions = Field(
        min_length=1, description="offered loads, as fractions of the maximum: one, $name, or a list"
    )


class BurstSpec(Strict):
    """Packets in groups: ``length`` back to back, then a pause."""

    length: kinds.BurstLength = Field(32, description="packets in a burst")
    gap_us: kinds.BurstGap | None = Field(
        None, description="pause after a burst in us; default: set by the offered load"
    )
    spacing_ns: float = Field(0.0, ge=0, le=1e9, description="time between packets of a burst in ns")


class ReplaySpec(Strict):
    """Frames of a capture instead of generated ones. The last 16 bytes of each are the stamp of the load generator."""

    pcap: kinds.CaptureName = Field(description="libpcap capture, in the folder of the spec or below")
    timing: Literal["recorded", "offered"] = Field(
        "offered", description="recorded: the gaps of the capture; offered: the pattern and offered load of the traffic"
    )
    sha256: str | None = Field(
        None, pattern=r"^[0-9a-f]{64}$", description="hash of the capture; filled in if it is absent"
    )


def _load(value: Any) -> str | None:
    match value:
        case "max":
            return "<max>"
        case {"rate_mpps": _} | RateLoad():
            return "<rate>"
        case {"fraction_of_max": _} | FractionLoad():
            return "<fraction>"
        case _:
            return None


OfferedLoad = Annotated[
    Annotated[Literal["max"], Tag("<max>")]
    | Annotated[RateLoad, Tag("<rate>")]
    | Annotated[FractionLoad, Tag("<fraction>")],
    Discriminator(
        _load,
        custom_error_type="p4perf_form",
        custom_error_message="expected max, {rate_mpps: 1.0} or {fraction_of_max: [0.1, 0.5]}",
    ),
]


class TrafficSpec(Strict):
    """What the load generator sends."""

    pattern: kinds.PatternName = Field("cbr", description="how the packets are spaced")
    burst: BurstSpec | None = Field(None, description="bursts of the pattern burst")
    frame_size: kinds.FrameSize = Field(64, description="frame size in bytes including the FCS (RFC 2544)")
    mix: kinds.Mix | None = Field(
        None, description="frame sizes and their weights instead of one size, or imix (7:4:1 of 64, 594, 1518 B)"
    )
    fields: dict[kinds.FieldName, kinds.FieldNumber] = Field(
        {}, description="constant values of header fields that the components do not vary, such as ethernet.src"
    )
    payload: kinds.HexBytes = Field(
        "00", description="bytes after the headers, in hexadecimal digits, repeated to the end"
    )
    offered_load: OfferedLoad = Field("max", description="packets offered per second")
    flows: FlowsSpec = Field(FlowsSpec(), description="distribution of the packets over keys")
    replay: ReplaySpec | None = Field(None, description="a capture to send instead of generated frames")
    latency_at: tuple[kinds.Fraction, ...] = Field(
        (), description="loads at which latency is measured, as fractions of the maximum"
    )

    @checked(mode="after")
    def _one_source(self) -> TrafficSpec:
        if self.replay is not None and self.mix is not None:
            raise validation_error(
                "a capture has the sizes of its frames", path=("mix",), hint="leave out mix or replay"
            )
        if self.replay is not None and self.replay.timing == "recorded" and self.offered_load != "max":
            hint = "leave out offered_load, or write timing: offered"
            raise validation_error(
                "a capture with its recorded gaps has its own rate", path=("offered_load",), hint=hint
            )
        return self


Parameters = Mapping[str, Any]

_PARAMETER: dict[str, Any] = {"type": ["boolean", "integer", "number", "string"]}
_PARAMETERS: dict[str, Any] = {"type": "object", "additionalProperties": _PARAMETER}
_ITEM: dict[str, Any] = {
    "anyOf": [
        kinds.WORD_SCHEMA,
        {"type": "object", "additionalProperties": _PARAMETERS, "minProperties": 1, "maxProperties": 1},
    ]
}

_ITEM_HINT = "write a name, or one name with its parameters: match_action_table: {entries: 1000}"


class ProgramSpec(Strict):
    """The generated program: the baseline and the component, or components, that are scaled.

    An item of a list of components is a name, or a mapping of one name to parameters of its own, so that a component
    can be there several times with different parameters. What all components of a name share is under ``parameters``.
    """

    baseline: Word = Field("l2fwd", description="component of the minimal program that costs are compared to")
    component: Annotated[
        Word | tuple[Word | dict[Word, dict[Word, Any]], ...],
        WithJsonSchema({"anyOf": [kinds.WORD_SCHEMA, {"type": "array", "items": _ITEM, "minItems": 1}]}),
    ] = Field(
        description="the component, or the components in the order in which they are composed; in a list, a name "
        "or a mapping of one name to its own parameters"
    )
    parameters: Annotated[
        dict[Word, Any],
        WithJsonSchema({"type": "object", "additionalProperties": {"anyOf": [_PARAMETER, _PARAMETERS]}}),
    ] = Field(
        default_factory=dict,
        description="parameters of the component; with a list of components, a mapping for each name",
    )

    @field_validator("component", mode="wrap")
    @classmethod
    def _one_or_many(cls, value: Any, handler: Any) -> Any:
        # A union would give one error for each of its branches.
        if isinstance(value, str):
            return handler(check_word(value))
        if not isinstance(value, list | tuple):
            raise validation_error(f"expected the name of a component or a list of names, got {quoted(value)}")
        if not value:
            raise validation_error("needs at least one component")
        return tuple(_item(item, index) for index, item in enumerate(value))

    @checked(mode="after")
    def _shape(self) -> ProgramSpec:
        several = not isinstance(self.component, str)
        names = {name for name, _ in _items(self.component)}
        for name, value in self.parameters.items():
            path: tuple[str, ...] = ("parameters", name)
            if several and name not in names:
                hint = nearest(name, names, "components")
                raise validation_error(
                    f"unknown component {name!r} in program.parameters", path=path, hint=hint, key=True
                )
            if several != isinstance(value, dict):
                raise validation_error(
                    f"expected a mapping of the parameters of {name}, got {quoted(value)}"
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

    def component_keys(self) -> tuple[str, ...]:
        if isinstance(self.component, str):
            return ("program.component",)
        return tuple(
            f"program.component.{index}" if isinstance(item, str) else f"program.component.{index}.{next(iter(item))}"
            for index, item in enumerate(self.component)
        )

    def parameter_keys(self) -> tuple[Mapping[str, str], ...]:
        """Of every component in order, the key in the spec of each of its parameters."""
        if isinstance(self.component, str):
            return ({name: f"program.parameters.{name}" for name in self.parameters},)
        keys = []
        for index, (name, own) in enumerate(_items(self.component)):
            shared = {p: f"program.parameters.{name}.{p}" for p in self.parameters.get(name, {})}
            keys.append(shared | {p: f"program.component.{index}.{name}.{p}" for p in own})
        return tuple(keys)

    def parameter_key(self, index: int, parameter: str) -> str:
        """The key of a parameter of a component, whether it is given or not."""
        above = "program.parameters" if isinstance(self.component, str) else self.component_keys()[index]
        return self.parameter_keys()[index].get(parameter, f"{above}.{parameter}")


def _items(component: str | tuple[str | dict[str, dict[str, Any]], ...]) -> list[tuple[str, Parameters]]:
    if isinstance(component, str):
        return [(component, {})]
    return [(item, {}) if isinstance(item, str) else next(iter(item.items())) for item in component]


def _item(item: Any, index: int) -> str | dict[str, dict[str, Any]]:
    if not isinstance(item, Mapping):
        name: str = check_word(item, (index,))
        return name
    if len(item) != 1:
        raise validation_error(
            f"expected one component, got a mapping of {len(item)} keys", path=(index,), hint=_ITEM_HINT
        )
    name, parameters = next(iter(item.items()))
    check_word(name, (index, name), key=True)
    if not isinstance(parameters, Mapping):
        raise validation_error(
            f"expected a mapping of the parameters of {name}, got {quoted(parameters)}",
            path=(index, name),
            hint=_ITEM_HINT,
        )
    for key, value in parameters.items():
        check_word(key, (index, name, key), key=True)
        check_parameter(value, (index, name, key))
    return {name: dict(parameters)}


class VariantSpec(Strict):
    """A named set of changes to a spec: what it inherits, in order, and then what it sets itself."""

    title: str = Field("", description="one line for people")
    inherits: Annotated[
        tuple[Word, ...], WithJsonSchema({"anyOf": [kinds.WORD_SCHEMA, {"type": "array", "items": kinds.WORD_SCHEMA}]})
    ] = Field((), description="variant, or variants in order, of which it has all settings; later ones win")
    set: Annotated[dict[str, Any], WithJsonSchema({"type": "object"})] = Field(
        default_factory=dict,
        description="what differs, by key as for --set: components, their parameters, traffic, device",
    )

    @field_validator("inherits", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


class CombinedSpec(Strict):
    """Which variants are measured: all subsets of some, each of others, and both as a product."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    subsets_of: tuple[Word, ...] = Field(
        (), description="variants of which every subset is measured; each is a variable, 0 or 1"
    )
    sizes: tuple[Annotated[Whole, Field(ge=0)], ...] | None = Field(
        None, description="how many variants at once; without it from none to all of subsets_of"
    )
    each_of: tuple[Word, ...] = Field(
        (), description="variants that are measured one after another; the variable is variant"
    )

    @checked(mode="after")
    def _some(self) -> CombinedSpec:
        if not self.subsets_of and not self.each_of:
            raise validation_error(
                "names no variant", hint="write [a, b], {subsets_of: [a, b], sizes: [0, 1]} or {each_of: [a]}"
            )
        check_once("variant", {("subsets_of",): self.subsets_of, ("each_of",): self.each_of})
        most = len(self.subsets_of)
        for index, size in enumerate(self.sizes or ()):
            if size > most:
                raise validation_error(f"there are {most} variants, so no subset has {size}", path=("sizes", index))
            if size in (self.sizes or ())[:index]:
                raise validation_error(f"duplicate size {size}", path=("sizes", index))
        if self.sizes is not None and not self.sizes:
            raise validation_error("the list has no sizes, so the sweep is empty", path=("sizes",))
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
    check_once("variant", {(): names})
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
