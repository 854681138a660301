"""The kinds of value that stand in a spec: names, references, quantities, and the checks that give plain errors."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, model_validator

from p4perf.errors import DataError, SpecError
from p4perf.specs.messages import explain, nearest, quoted, validation_error
from p4perf.specs.source import SourceNode, parse_bytes, read_bytes
from p4perf.specs.units import Dimension, parse_quantity

NAME_PATTERN = r"^[a-z0-9]+(-[a-z0-9]+)*(/[a-z0-9]+(-[a-z0-9]+)*)*$"
"""Names of experiments: words of small letters and digits, joined by hyphens and slashes."""

WORD_PATTERN = r"^[a-z][a-z0-9_]*$"
"""Names of variables, parameters and components."""

REFERENCE_PATTERN = r"^\$[a-z][a-z0-9_]*$"
"""``$name`` of a swept variable or of a parameter."""

_NAME = re.compile(NAME_PATTERN[:-1])
_REFERENCE = re.compile(REFERENCE_PATTERN[:-1])
_WORD = re.compile(WORD_PATTERN[:-1])
MAX_INTEGER = 10**18
"""Largest magnitude of a whole number in a spec."""

MAX_NAME = 100
"""Longest name of an experiment, in characters."""


class Strict(BaseModel):
    """Base of every part of a spec: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, dict) and cls.model_config.get("extra") == "forbid":
            for key in data:
                if key not in cls.model_fields:
                    hint = nearest(str(key), cls.model_fields, "known keys")
                    raise validation_error(f"unknown key {key!r}", hint=hint, path=(key,), key=True)
        return data


Model = TypeVar("Model", bound=BaseModel)


def read_strictly(file: Path, model: type[Model], what: str) -> tuple[Model, SourceNode]:
    """The content of a YAML file that is no spec but read as strictly, and its tree with the places of all values.

    Args:
        what: its kind, for messages: ``node file``.

    Raises:
        DataError: it cannot be read or is wrong; with the place.
    """
    return _validated(lambda: parse_bytes(read_bytes(file, what), str(file)), model)


def parse_strictly(data: bytes, file: str, model: type[Model]) -> tuple[Model, SourceNode]:
    """As :func:`read_strictly`, for the bytes of a file."""
    return _validated(lambda: parse_bytes(data, file), model)


def _validated(read: Callable[[], SourceNode], model: type[Model]) -> tuple[Model, SourceNode]:
    try:
        root = read()
        try:
            return model.model_validate(root.plain()), root
        except ValidationError as error:
            raise explain(error, root) from error
    except SpecError as error:
        message = error.message.replace("the spec", "the file").replace("for a spec", "for it")
        raise DataError(message, location=error.location, key=error.key, hint=error.hint) from error


def reference_name(value: object) -> str | None:
    """The name that ``$name`` refers to; None if the value is no reference."""
    return value[1:] if isinstance(value, str) and value.startswith("$") else None


def _is_reference(value: object, path: Sequence[str | int] = ()) -> bool:
    if reference_name(value) is None:
        return False
    if not _REFERENCE.fullmatch(str(value)):
        message = f"{quoted(value)} is not a reference; write $name (small letters, digits, underscores)"
        raise validation_error(message, path=path)
    return True


def _scalar(value: Any, path: Sequence[str | int] = ()) -> Any:
    if not isinstance(value, bool | int | float | str):
        raise validation_error(f"expected a number, a word or a truth value, got {quoted(value)}", path=path)
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise validation_error(f"must be at most {MAX_INTEGER} in magnitude, got {quoted(value)}", path=path)
    if isinstance(value, float) and not math.isfinite(value):
        raise validation_error("must be a finite number", path=path)
    return value


def _value(value: Any) -> Any:
    value = _scalar(value)
    if reference_name(value) is not None:
        raise validation_error(f"a swept value cannot be a reference, got {quoted(value)}")
    return value


def _experiment_name(value: Any) -> Any:
    if not isinstance(value, str) or len(value) > MAX_NAME or not _NAME.fullmatch(value):
        hint = f"write small letters, digits, hyphens and slashes (at most {MAX_NAME}), such as mat/exact-entries"
        raise validation_error(f"{quoted(value)} is not a name of an experiment", hint=hint)
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise validation_error(f"expected a number, got {quoted(value)}")
    return _scalar(value)


def check_word(value: Any, path: Sequence[str | int] = (), *, key: bool = False) -> Any:
    """Refuse what is no name of a variable, parameter or component; ``path`` and ``key`` as in ``validation_error``."""
    if not isinstance(value, str) or not _WORD.fullmatch(value):
        message = f"{quoted(value)} is not a name (small letters, digits and underscores, a letter first)"
        raise validation_error(message, path=path, key=key)
    return value


def check_parameter(value: Any, path: Sequence[str | int]) -> None:
    """Check that a value is a scalar or a reference; ``path`` as in ``validation_error``."""
    if isinstance(value, list | tuple) or value is None:
        name = path[-1] if path else "variable"
        hint = f"write {name}: ${name} and list the values under sweep" if value else None
        raise validation_error(f"expected one value, got {quoted(value)}", path=path, hint=hint)
    if not _is_reference(value, path):
        _scalar(value, path)


def check_once(noun: str, groups: Mapping[tuple[str, ...], Sequence[str]]) -> None:
    """Refuse a name that is there twice; groups of names come behind their paths, as in ``validation_error``."""
    seen: set[str] = set()
    for path, n, name in ((path, n, name) for path, names in groups.items() for n, name in enumerate(names)):
        if name in seen:
            raise validation_error(f"duplicate {noun} {name}", path=(*path, n))
        seen.add(name)


def _or_reference(check: Callable[[Any], Any]) -> BeforeValidator:
    """Take references as they are, and what a check gives for everything else."""
    return BeforeValidator(lambda value: value if _is_reference(value) else check(value))


def _limited(
    dimension: Dimension, unit: str, low: float, high: float, *, whole: bool = False, what: str = ""
) -> BeforeValidator:
    """Turn quantities and plain numbers within limits into floating point numbers of a unit, or ``whole`` ones."""
    number_type: type[int] | type[float] = int if whole else float

    def check(value: Any) -> Any:
        if isinstance(value, str):
            try:
                exact = parse_quantity(value, dimension, unit)
            except SpecError as error:
                raise validation_error(error.message, hint=error.hint) from error
            if whole and exact.denominator != 1:
                raise validation_error(f"{quoted(value)} is not a whole number of {unit}")
            return _within(number_type(exact), low, high, what or unit)
        number = _number(value)
        if whole and not isinstance(number, int):
            raise validation_error(f"expected a whole number of {unit}, got {quoted(value)}")
        return _within(number_type(number), low, high, what or unit)

    return _or_reference(check)


def _within(number: float, low: float, high: float, what: str) -> float:
    if not low <= number <= high:
        raise validation_error(f"must be {low:g} to {high:g} {what}, got {quoted(number)}")
    return number


def _fraction(value: Any, path: Sequence[str | int] = ()) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise validation_error(f"must be a fraction above 0 and up to 1, got {quoted(value)}", path=path)
    return float(value)


def _no_reference(value: Any) -> Any:
    if _is_reference(value):
        raise validation_error(f"{quoted(value)}: references are not possible here")
    return value


def _one_of(*words: str) -> BeforeValidator:
    def check(value: Any) -> Any:
        if value not in words:
            close = difflib.get_close_matches(value, words, n=1) if isinstance(value, str) else ()
            hint = f"did you mean {close[0]}?" if close else None
            raise validation_error(f"{quoted(value)} is not one of {', '.join(words)}", hint=hint)
        return value

    return _or_reference(check)


_REFERENCE_SCHEMA = {"type": "string", "pattern": REFERENCE_PATTERN}
_QUANTITY_SCHEMA = {"type": "string", "pattern": r"^[0-9][0-9_.eE+-]*\s*[A-Za-zµμ/]+$"}
_POSITIVE = WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _REFERENCE_SCHEMA, _QUANTITY_SCHEMA]})

WORD_SCHEMA: dict[str, Any] = {"type": "string", "pattern": WORD_PATTERN}

Word = Annotated[str, BeforeValidator(check_word), WithJsonSchema(WORD_SCHEMA)]
"""Name of a variable, parameter or component."""

SweptValue = Annotated[
    bool | int | float | str,
    BeforeValidator(_value),
    WithJsonSchema({"type": ["boolean", "integer", "number", "string"]}),
]
"""One value of a swept variable."""

ExperimentName = Annotated[
    str,
    BeforeValidator(_experiment_name),
    WithJsonSchema({"type": "string", "pattern": NAME_PATTERN, "maxLength": MAX_NAME}),
]
"""Name of an experiment. It becomes part of file names, so it is neither absolute nor leads upwards."""

Number = Annotated[int | float, BeforeValidator(_number), WithJsonSchema({"type": "number"})]
"""A finite number; whole numbers stay whole."""

Whole = Annotated[int, Field(strict=True, ge=-MAX_INTEGER, le=MAX_INTEGER)]
"""A whole number; neither truth values nor strings are."""

FrameSize = Annotated[
    int | str,
    _limited("data size", "B", 64, 9216, whole=True, what="bytes (including the FCS)"),
    WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 64, "maximum": 9216}, _REFERENCE_SCHEMA, _QUANTITY_SCHEMA]}
    ),
]
"""Frame size in bytes including the FCS (RFC 2544), a quantity, or ``$name``."""

RateMpps = Annotated[float | str, _limited("packet rate", "Mpps", 1e-6, 1e6), _POSITIVE]
"""Packet rate in million packets per second, a quantity, or ``$name``."""

FrequencyGhz = Annotated[float | str, _limited("frequency", "GHz", 0.01, 100), _POSITIVE]
"""Frequency of a processor core in GHz, a quantity, or ``$name``."""

DurationMs = Annotated[
    float,
    _limited("time", "ms", 0, 3_600_000),
    BeforeValidator(_no_reference),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, _QUANTITY_SCHEMA]}),
]
"""A duration in milliseconds, or a quantity."""

ZipfExponent = Annotated[
    float | str,
    _or_reference(lambda value: _within(float(_number(value)), 1e-6, 100, "as exponent")),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _REFERENCE_SCHEMA]}),
]
"""Exponent of a Zipf distribution, or ``$name``."""

_FRACTION_SCHEMA: dict[str, Any] = {
    "anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 1}, {"type": "string", "pattern": "^[0-9.]+%$"}]
}

Fraction = Annotated[float, BeforeValidator(_fraction), WithJsonSchema(_FRACTION_SCHEMA)]
"""A fraction, more than 0 and at most 1."""


def _fractions(value: Any) -> Any:
    """One fraction or reference becomes a list of one."""
    placed = {(n,): item for n, item in enumerate(value)} if isinstance(value, list | tuple) else {(): value}
    return tuple(item if _is_reference(item, path) else _fraction(item, path) for path, item in placed.items())


_ONE_FRACTION = {"anyOf": [*_FRACTION_SCHEMA["anyOf"], _REFERENCE_SCHEMA]}

Fractions = Annotated[
    tuple[float | str, ...],
    BeforeValidator(_fractions),
    WithJsonSchema({"anyOf": [*_ONE_FRACTION["anyOf"], {"type": "array", "minItems": 1, "items": _ONE_FRACTION}]}),
]
"""Fractions, more than 0 and at most 1: one, a list, or references."""


def _burst_length(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1_000_000:
        raise validation_error(f"must be a whole number from 1 to 1000000 packets, got {quoted(value)}")
    return value


BurstLength = Annotated[
    int | str,
    _or_reference(_burst_length),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1, "maximum": 1_000_000}, _REFERENCE_SCHEMA]}),
]
"""Packets of a burst, or ``$name``."""

BurstGap = Annotated[float | str, _limited("time", "us", 0.001, 1e7), _POSITIVE]
"""A pause in microseconds, a quantity, or ``$name``."""

IMIX = ((64, 7), (594, 4), (1518, 1))
"""Simple Internet mix: frame sizes in bytes with FCS, and their weights."""


def _capture_name(value: Any) -> Any:
    parts = value.split("/") if isinstance(value, str) else []
    if not parts or any(part in ("", ".", "..") or "\0" in part for part in parts) or not value.endswith(".pcap"):
        hint = "write a path below the folder of the spec that ends in .pcap"
        raise validation_error(f"{quoted(value)} is no capture beside this spec", hint=hint)
    return value


CaptureName = Annotated[
    str, BeforeValidator(_capture_name), WithJsonSchema({"type": "string", "pattern": r"^[^/\\0][^\\0]*\.pcap$"})
]
"""Path of a capture, relative to the folder of the spec and not out of it."""


FieldName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$", max_length=128)]
"""A field of a header, such as ``ethernet.src``."""

FieldNumber = Annotated[int, Field(strict=True, ge=0, lt=2**128)]
"""What a field of a header can hold, more or less."""

HexBytes = Annotated[str, Field(strict=True, pattern=r"^([0-9a-fA-F]{2})+$", max_length=2 * 1024)]
"""Bytes as pairs of hexadecimal digits."""


def _mix(value: Any) -> Any:
    if value == "imix":
        return IMIX
    if not isinstance(value, dict | list | tuple) or not value:
        raise validation_error(f"expected imix or a mapping of frame sizes to weights, got {quoted(value)}")
    if isinstance(value, dict):
        pairs = [(int(size) if str(size).isdecimal() else size, weight) for size, weight in value.items()]
    else:
        pairs = [tuple(pair) if isinstance(pair, list | tuple) else (pair,) for pair in value]
    if len(pairs) > 64:
        raise validation_error("has more than 64 frame sizes")
    for pair in pairs:
        if len(pair) != 2 or any(isinstance(n, bool) or not isinstance(n, int) for n in pair):
            got = quoted(list(pair) if len(pair) > 1 else pair[0])
            raise validation_error(f"expected a frame size and a weight, both whole numbers, got {got}")
        if not 64 <= pair[0] <= 9216:
            raise validation_error(f"frame sizes must be 64 to 9216 bytes (including the FCS), got {pair[0]}")
        if not 1 <= pair[1] <= 1000:
            raise validation_error(f"weights must be 1 to 1000, got {pair[1]}")
    return tuple(sorted(pairs))


Mix = Annotated[
    tuple[tuple[int, int], ...],
    BeforeValidator(_mix),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": "imix"},
                {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1, "maximum": 1000}},
                {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
            ]
        }
    ),
]
"""Frame sizes in bytes with FCS and their weights."""

PATTERNS = ("cbr", "poisson", "burst")
DISTRIBUTIONS = ("uniform", "sequential", "single", "zipf")

PatternName = Annotated[
    str, _one_of(*PATTERNS), WithJsonSchema({"anyOf": [{"enum": list(PATTERNS)}, _REFERENCE_SCHEMA]})
]
"""How packets are spaced, or ``$name``."""

DistributionName = Annotated[
    str, _one_of(*DISTRIBUTIONS), WithJsonSchema({"anyOf": [{"enum": list(DISTRIBUTIONS)}, _REFERENCE_SCHEMA]})
]
"""How packets are spread over flows, or ``$name``."""
