"""Arguments of Python: what a parameter takes is refused by name if it is something else.

The annotation of a parameter says what it takes, to readers, type checkers and :func:`checked` alike.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from p4perf.errors import P4PerfError, UsageError
from p4perf.programs.component import component_parameters
from p4perf.results import Run
from p4perf.specs import Experiment, load_experiment, units
from p4perf.specs.messages import nearest, quoted

PathLike = str | Path
Paths = PathLike | Sequence[PathLike]
Runs = PathLike | Run | Sequence[PathLike | Run]
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
    signature = inspect.signature(function)
    every = [(name, p) for name, p in signature.parameters.items() if p.kind is not p.VAR_KEYWORD]
    kinds = {name: str(p.annotation).removesuffix(" | None") for name, p in every}

    @functools.wraps(function)
    def called(*given: P.args, **named: P.kwargs) -> T:
        try:
            arguments = signature.bind(*given, **named).arguments
        except TypeError as error:
            raise _misplaced(f"{function.__name__}()", signature, given, named, error) from None
        for name, value in arguments.items():
            allowed, what = _ALLOWED.get(kinds.get(name, ""), _ANYTHING)
            if value is not None and not allowed(value):
                raise UsageError(f"{name}: expected {what}, got {quoted(value)}")
        try:
            return function(*given, **named)
        except P4PerfError as error:
            error.arguments = list(signature.parameters)
            raise

    return called


def _misplaced(
    function: str, signature: inspect.Signature, given: Sequence[object], named: Mapping[str, object], error: TypeError
) -> UsageError:
    """What is wrong where the arguments of a call do not match its parameters."""
    parameters = signature.parameters.values()
    places = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    names = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
    if len(given) > len(places):
        if len(places) == 1 and str(places[0].annotation) in ("Paths", "Runs", "Texts"):
            return UsageError(
                f"{function}: {quoted(given[1])} is one argument too many",
                hint=f"give several {places[0].name} as a list",
            )
        hint = f"by position: {', '.join(p.name for p in places)}; by name: {', '.join(names[len(places) :])}"
        return UsageError(f"{function}: {quoted(given[len(places)])} needs the name of its argument", hint=hint)
    if missing := [p.name for p in places[len(given) :] if p.default is p.empty and p.name not in named]:
        return UsageError(f"{function}: the argument {missing[0]} is missing")
    if unknown := [name for name in named if name not in names]:
        hint = nearest(unknown[0], names, "arguments")
        return UsageError(f"{function}: there is no argument {unknown[0]!r}", hint=hint)
    return UsageError(f"{function}: {error}")


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
    "bool": (_of(bool), "True or False"),
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
    "Runs": (_one_or_several(str, Path, Run), "a run by its path or name, or several"),
    "Texts": (_one_or_several(str), "a text or several"),
    "Mapping[str, str]": (_of(Mapping), "a mapping"),
    "Changes": (
        lambda value: isinstance(value, Mapping) or _one_or_several(str)(value),
        "a mapping, a text such as 'entries=1000', or several",
    ),
}
"""What is allowed for each annotation, and how an error says it."""


def texts(given: Changes) -> list[str]:
    """Changes as texts, ``key=value``."""
    if not isinstance(given, Mapping):
        return listed(given)
    return [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in given.items()]


def pairs(
    given: Changes, name: str = "--set", form: str = "key=value", hint: str = "such as entries=1000"
) -> list[tuple[str, str]]:
    """Changes as pairs of a key and the text of its value; a UsageError if one is none, or a key is given twice."""
    found = []
    for text in texts(given):
        key, equals, value = text.partition("=")
        if not (equals and key.strip()):
            raise UsageError(f"{name} {text}: expected {form}", hint=hint)
        found.append((key.strip(), value.strip()))
    require_once([key for key, _ in found], name)
    return found


def require_once(keys: Sequence[str], name: str) -> None:
    """Refuse a key that is given twice: the first value would be lost."""
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise UsageError(f"{name} {twice}: given more than once", hint="give each key one value")


def overrides(changes: Changes, *, skip: bool) -> list[tuple[str, str]]:
    """Changes of a spec as pairs; ``skip`` leaves out what a target cannot do."""
    return [*pairs(changes), *([("sweep.skip_impossible", "true")] if skip else [])]


def experiment(
    spec: PathLike,
    changes: Changes,
    points: int | None,
    *,
    skip: bool = False,
    told: Callable[[str], object] = lambda text: None,
) -> Experiment:
    """The experiment with changes; ``skip`` leaves out what a target cannot do."""
    chosen = overrides(changes, skip=skip)
    found = load_experiment(str(spec), overrides=chosen, points=points, parameters_of=component_parameters)
    combined = found.spec.sweep.combined
    if points is not None and (names := [*combined.each_of, *combined.subsets_of]):
        told(f"note: --points leaves all combinations of {', '.join(names)} there; sweep.multiplex chooses among them")
    return found


def share(given: Share | None, name: str) -> float | None:
    return None if given is None else units.share(given, name)


def seconds(given: Duration | None) -> float | None:
    return units.seconds(given, "--budget") if isinstance(given, str) else given


def path(given: PathLike | None) -> Path | None:
    return None if given is None else Path(given)


def listed(given: Paths) -> list[str]:
    return [str(given)] if isinstance(given, str | Path) else list(map(str, given))


def runs(given: Runs) -> list[str]:
    """The paths of runs, and the names of those that are given by name."""
    several = [given] if isinstance(given, str | Path | Run) else given
    return [str(each.path) if isinstance(each, Run) else str(each) for each in several]
