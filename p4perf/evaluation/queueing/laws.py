"""Times as people give them (a name with a mean, data, a run, a model), and how they come on a lattice."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from p4perf.errors import SpecError, UsageError
from p4perf.models.queue import Lattice, shapes
from p4perf.specs.units import parse_quantity

STEPS_OF_SERVICE = 7
"""A step is chosen so that the mean service time has at least so many."""
_SELECTOR = re.compile(r"(.*?)\[([^\[\]]*)\]", re.DOTALL)

_SHAPES: Mapping[str, Callable[[float], Lattice]] = MappingProxyType(
    {
        "det": shapes.deterministic,
        "exponential": shapes.exponential,
        "poisson-pmf": shapes.poisson_pmf,
        "geometric": shapes.geometric,
        "nbin": shapes.negative_binomial,
    }
)

ARRIVALS: Mapping[str, str] = MappingProxyType(
    {
        "poisson": "exponential",
        "exponential": "exponential",
        "det": "det",
        "cbr": "det",
        "geometric": "geometric",
        "nbin": "nbin",
        "poisson-pmf": "poisson-pmf",
    }
)
"""Names of arrivals, and the distribution of the interarrival time. ``poisson`` is a Poisson process."""


@dataclass(frozen=True)
class Law:
    """The distribution of a time, before a lattice is chosen.

    Args:
        kind: ``det``, ``exponential``, ``poisson-pmf``, ``geometric``, ``nbin``, ``gamma`` or ``data``.
        mean_us: its mean [us].
        cv: coefficient of variation of ``gamma``.
        values_us: times of ``data`` [us].
        weights: how often each of them comes.
        text: what the user gave, for messages.
        origin: where the number comes from, for people; empty if the text says it.
        ordered: whether ``data`` is a trace, in the order of time.
    """

    kind: str
    mean_us: float
    cv: float = 0.0
    values_us: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()
    text: str = ""
    origin: str = ""
    ordered: bool = False

    def on_lattice(self, step_us: float) -> Lattice:
        """The distribution in steps; the mean stays exact.

        Raises:
            UsageError: the lattice does not fit.
        """
        mean = self.mean_us / step_us
        if self.kind == "gamma":
            return shapes.gamma(mean, self.cv)
        if self.kind == "data":
            return shapes.from_samples([v / step_us for v in self.values_us], self.weights or None)
        if self.kind == "det" and mean == 0:
            return shapes.from_samples([0.0])
        return _SHAPES[self.kind](mean)

    def scaled(self, mean_us: float) -> Law:
        """The same distribution with another mean; of data, all times by the same factor."""
        factor = mean_us / self.mean_us
        return replace(self, mean_us=mean_us, values_us=tuple(v * factor for v in self.values_us))


def data_law(values_us: list[float], weights: list[float] | None, text: str, *, ordered: bool = False) -> Law:
    """The law of data.

    Raises:
        UsageError: there is no time, one is negative, or all are zero.
    """
    counts = weights if weights is not None else [1.0] * len(values_us)
    total = sum(counts)
    if not values_us or not total > 0:
        raise UsageError(f"{text}: there is no time in it")
    if min(values_us) < 0:
        raise UsageError(f"{text}: a time is negative: {min(values_us):g} us")
    mean = sum(v * c for v, c in zip(values_us, counts, strict=True)) / total
    if not mean > 0:
        raise UsageError(f"{text}: all times are zero")
    return Law("data", mean, values_us=tuple(values_us), weights=tuple(weights or ()), text=text, ordered=ordered)


def parse_time_us(text: str, what: str) -> float:
    """A time with a unit, in us.

    Raises:
        UsageError: it is none, or negative.
    """
    try:
        value = float(parse_quantity(text, "time", "us"))
    except SpecError as error:
        raise UsageError(f"{what}: {error.message}", hint=error.hint) from error
    if value < 0:
        raise UsageError(f"{what}: a time is negative: {text}")
    return value


def named_law(text: str) -> Law | None:
    """The law that a text such as ``det:7us``, ``exponential:7 us`` or ``gamma:7us,0.4`` names; None if it names none.

    Raises:
        UsageError: its numbers cannot be read.
    """
    kind, colon, rest = text.partition(":")
    if not colon or (kind not in _SHAPES and kind not in ("gamma", "exp")):
        return None
    mean_text, _, cv_text = rest.partition(",")
    mean_us = parse_time_us(mean_text.strip(), text)
    if kind != "gamma":
        if cv_text:
            raise UsageError(f"{text}: only gamma has a coefficient of variation")
        if kind != "det" and mean_us == 0:
            raise UsageError(f"{text}: the mean is zero")
        return Law("exponential" if kind == "exp" else kind, mean_us, text=text)
    try:
        cv = float(cv_text)
    except ValueError:
        cv = -1.0
    if not 0 <= cv < 100 or mean_us == 0:
        raise UsageError(f"{text}: expected mean and coefficient of variation, such as gamma:7us,0.4")
    return Law("gamma", mean_us, cv=cv, text=text)


def split_selector(text: str) -> tuple[str, dict[str, str]]:
    """``run:DIR[a=1,b=2]`` as ``run:DIR`` and a mapping; without brackets the mapping is empty.

    Raises:
        UsageError: something in the brackets is not ``name=value``.
    """
    match = _SELECTOR.fullmatch(text)
    if match is None or Path(text).exists():
        return text, {}
    chosen: dict[str, str] = {}
    for part in filter(None, (p.strip() for p in match[2].split(","))):
        name, equals, value = part.partition("=")
        if not equals:
            raise UsageError(f"{text}: expected name=value in the brackets, not {part!r}")
        chosen[name.strip()] = value.strip()
    return match[1], chosen


def choose_step_us(service: Law, others_us: tuple[float, ...] = (), longest_us: float = 0.0) -> float:
    """A step for a lattice: 1, 2 or 5 times a power of ten us.

    The mean service time has at least :data:`STEPS_OF_SERVICE` steps; a coarser step is taken where the buffer or a
    moderation interval would have more than 20 000 of them. A step that divides constant times is preferred.

    Args:
        service: service time.
        others_us: constant times that come beside it: moderation, overhead.
        longest_us: length of the buffer.
    """
    longest_us = max(longest_us, *others_us, 0.0)
    candidates = [m * 10.0**e for e in range(-4, 4) for m in (1.0, 2.0, 5.0)]
    fine = [c for c in candidates if c <= service.mean_us / STEPS_OF_SERVICE] or candidates[:1]
    coarse = [c for c in fine if longest_us / c <= 20_000]
    if not coarse:
        return next((c for c in candidates if longest_us / c <= 20_000 and c <= service.mean_us), fine[-1])
    for step in reversed(coarse[-3:]):
        if all(abs(t / step - round(t / step)) < 1e-9 for t in others_us):
            return step
    return coarse[-1]
