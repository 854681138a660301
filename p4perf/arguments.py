"""Arguments of Python: what a parameter takes is refused by name if it is something else.

The annotation of a parameter says what it takes, to readers, type checkers and :func:`checked` alike.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from p4perf.errors import UsageError
from p4perf.specs.messages import quoted

PathLike = str | Path
Paths = PathLike | Sequence[PathLike]
Texts = str | Sequence[str]
Changes = Mapping[str, object] | Texts
"""Keys with values, such as ``{"entries": 1000}``, ``"entries=1000"``, or several such texts."""
Count = int
"""A whole number of at least 1."""
Share = float | str
"""A share such as ``0.03`` or ``"3%"``."""
Duration = float | str
"""Seconds, or a time such as ``"30m"``."""

P = ParamSpec("P")
T = TypeVar("T")


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """The function, which refuses arguments that its annotations do not allow.

    It raises a UsageError that names the argument, what is expected and what was given.
    """
    parameters = inspect.signature(function).parameters
    kinds = {name: str(p.annotation).removesuffix(" | None") for name, p in parameters.items()}

    @functools.wraps(function)
    def called(*given: P.args, **named: P.kwargs) -> T:
        for name, value in (dict(zip(kinds, given, strict=False)) | named).items():
            allowed, what = _ALLOWED.get(kinds.get(name, ""), _ANYTHING)
            if value is not None and not allowed(value):
                raise UsageError(f"{name}: expected {what}, got {quoted(value)}")
        return function(*given, **named)

    return called


def _of(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _several(kinds: tuple[type, ...]) -> Callable[[Any], bool]:
    return lambda value: not isinstance(value, str) and all(isinstance(each, kinds) for each in _items(value))


def _items(value: Any) -> Sequence[Any]:
    """What a sequence holds; anything else holds nothing that is allowed."""
    return value if isinstance(value, Sequence) else [object()]


def _one_or_several(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds) or _several(kinds)(value)


_ANYTHING: tuple[Callable[[Any], bool], str] = (lambda value: True, "")
_ALLOWED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "int": (_of(Integral), "a whole number"),
    "Count": (lambda value: isinstance(value, Integral) and int(value) >= 1, "a whole number of at least 1"),
    "float": (_of(Real), "a number"),
    "Share": (_of(Real, str), "a share such as 0.03 or '3%'"),
    "Duration": (_of(Real, str), "seconds, or a time such as '30m'"),
    "Sequence[int]": (_several((Integral,)), "whole numbers"),
    "Sequence[float]": (_several((Real,)), "numbers"),
    "str": (_of(str), "a text"),
    "str | Testbed": (lambda value: isinstance(value, str) or hasattr(value, "facts"), "an address, or a testbed"),
    "PathLike": (_of(str, Path), "a path"),
    "Paths": (_one_or_several(str, Path), "a path or several"),
    "Kind | Sequence[Kind]": (_one_or_several(str), "a kind of claims or several"),
    "Texts": (_one_or_several(str), "a text or several"),
    "Changes": (
        lambda value: isinstance(value, Mapping) or _one_or_several(str)(value),
        "a mapping, a text such as 'entries=1000', or several",
    ),
}
"""What is allowed for each annotation, and how an error says it."""
