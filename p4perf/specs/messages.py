"""Short, plain sentences for what is wrong with a spec, with its place and the nearest thing that is right."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from p4perf.errors import Location, SpecError
from p4perf.specs.source import KeyPath, SourceNode

_CUSTOM = "p4perf"
_MANY = 12

_TYPES = {
    **dict.fromkeys(("int_type", "int_from_float", "int_parsing"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    "finite_number": "a finite number",
    "string_type": "a word",
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "a mapping (key: value)"),
}
_MESSAGES = {
    **{kind: f"expected {what}, got {{value}}" for kind, what in _TYPES.items()},
    "greater_than": "must be more than {gt}, got {value}",
    "greater_than_equal": "must be at least {ge}, got {value}",
    "less_than": "must be less than {lt}, got {value}",
    "less_than_equal": "must be at most {le}, got {value}",
    "multiple_of": "must be a multiple of {multiple_of}{bounds}, got {value}",
    "p4perf_form": "{msg}; got {value}",
    "too_short": "needs at least {min_length}, has {actual_length}",
    "too_long": "takes at most {max_length}, has {actual_length}",
    "string_pattern_mismatch": "{value} does not match the pattern {pattern}",
    "string_too_long": "must be at most {max_length} characters long",
    "string_too_short": "must be at least {min_length} characters long",
}
"""By the kinds of pydantic; the names in braces are those of its context."""


def nearest(name: str, known: Iterable[str], noun: str = "known") -> str:
    """A hint for a name that does not exist: the nearest that does, or the ones there are, near ones first."""
    names = sorted({*known})
    if same := [each for each in names if each.lower() == name.lower()]:
        return f"did you mean {same[0]}?"
    ends = {re.split("[./]", each)[-1]: each for each in reversed(names)}
    for known_as in (dict(zip(names, names, strict=True)), ends):
        if close := difflib.get_close_matches(name, known_as, n=1, cutoff=0.5):
            return f"did you mean {known_as[close[0]]}?"
    if not names:
        return f"{noun}: none"
    stem = name.rstrip("*/")
    names = [each for each in names if stem and each.startswith(stem)] or names
    if stem and len(names) == 1 and names[0].startswith(stem):
        return f"did you mean {names[0]}?"
    names.sort(key=lambda each: -difflib.SequenceMatcher(None, name, re.split("[./]", each)[-1]).ratio())
    return f"{noun}: {', '.join(names[:_MANY])}{', ...' if len(names) > _MANY else ''}"


def quoted(value: object) -> str:
    """A value of a spec as an error quotes it: on one line, without control characters, not long."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def validation_error(
    message: str, *, hint: str | None = None, path: Sequence[str | int] = (), key: bool = False
) -> Exception:
    """An error for validators to raise; pydantic collects it and :func:`explain` gives it its place.

    Args:
        path: where it is, below the value that the validator checks.
        key: blame the key, not its value.
    """
    return PydanticCustomError(
        _CUSTOM, "{message}", {"message": message, "hint": hint, "path": tuple(path), "key": key}
    )


@contextmanager
def placed(root: SourceNode) -> Iterator[None]:
    """Give an error that names a key the place of that key's value, if it has no place yet."""
    try:
        yield
    except SpecError as error:
        if error.location is None:
            error.location = root.locate(key_path(error.key)) if error.key else Location(root.place.file)
        raise


def key_path(key: str) -> KeyPath:
    """The path of a key as messages write it, ``sweep.filter.0``."""
    return tuple(int(part) if re.fullmatch("[0-9]{1,9}", part) else part for part in key.split("."))


def explain(error: ValidationError, root: SourceNode, prefix: KeyPath = ()) -> SpecError:
    """One error for all that pydantic found: the first in the file, and how many others there are.

    Args:
        prefix: path of the part of the spec that was validated.
    """
    all_of_them = error.errors(include_url=False)
    above = {details["loc"][:length] for details in all_of_them for length in range(len(details["loc"]))}
    found = [
        _explain(details, root, prefix)
        for details in all_of_them
        # A list whose only value is wrong is not too short as well.
        if details["type"] != "too_short" or details["loc"] not in above
    ]
    first = min(found, key=_order)
    if len(found) > 1:
        first.message += f" (and {len(found) - 1} more error{'s' if len(found) > 2 else ''})"
        first.args = (first.message,)
    return first


def _order(error: SpecError) -> tuple[bool, int, int]:
    place = error.location
    line, column = (place.line, place.column) if place else (None, None)
    return ("is missing" in error.message, line or 0, column or 0)


def _explain(details: ErrorDetails, root: SourceNode, prefix: KeyPath) -> SpecError:
    context: dict[str, Any] = details.get("ctx", {})
    path: KeyPath = (*prefix, *(part for part in details["loc"] if not _is_tag(part)))
    on_key = bool(path) and path[-1] == "[key]"
    if on_key:
        path = path[:-1]
    message, hint = describe(details)
    location = None
    if details["type"] == _CUSTOM:
        path, on_key = (*path, *context["path"]), on_key or context["key"]
    elif details["type"] == "missing":
        location, path = root.locate(path), path[:-1]
    location = location or root.locate(path, key=on_key)
    return SpecError(message, location=location, key=".".join(map(str, path)) or None, hint=hint)


def describe(details: ErrorDetails, fields: Mapping[str, FieldInfo] | None = None) -> tuple[str, str | None]:
    """One error of pydantic as a plain sentence, and a hint if there is one.

    Args:
        fields: of the model, whose bounds are named where a value is not a multiple, which pydantic checks first.
    """
    context: dict[str, Any] = details.get("ctx", {})
    kind, value = details["type"], details.get("input")
    if kind == _CUSTOM:
        return context["message"], context["hint"]
    if kind == "missing":
        name = details["loc"][-1]
        return f"the key {name!r} is missing" if isinstance(name, str) else "needs two values, has fewer", None
    if kind in ("literal_error", "enum"):
        allowed = _allowed(context)
        close = difflib.get_close_matches(value, allowed, n=1) if isinstance(value, str) else ()
        message = f"{quoted(value)} is not {'one of ' if len(allowed) > 1 else ''}{', '.join(allowed)}"
        return message, f"did you mean {close[0]}?" if close else None
    if context.get("actual_length", 0) is None:
        context = {**context, "actual_length": "more"}
    field = (fields or {}).get(str(details["loc"][0])) if details["loc"] else None
    told = {**context, "msg": details["msg"], "value": quoted(value), "bounds": _bounds(field)}
    return _MESSAGES.get(kind, "is not valid: {value}").format_map(told), None


def _bounds(field: FieldInfo | None) -> str:
    ends = {
        end: getattr(each, end)
        for each in (field.metadata if field else ())
        for end in ("ge", "le")
        if hasattr(each, end)
    }
    return " from {ge} to {le}".format_map(ends) if len(ends) == 2 else ""


def _allowed(context: dict[str, Any]) -> list[str]:
    # pydantic gives "'a', 'b' or 'c'"
    text = str(context.get("expected", ""))
    return [word.strip().strip("'") for word in text.replace(" or ", ", ").split(",")]


def _is_tag(part: str | int) -> bool:
    """Whether a part of a place is pydantic's name for a branch of a union (ours are in angle brackets)."""
    return isinstance(part, str) and part.startswith("<")
