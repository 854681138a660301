"""What the user says about an import: which names of the source mean what."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from p4perf.errors import UsageError
from p4perf.specs.messages import nearest
from p4perf.specs.metrics import METRICS, metric_named
from p4perf.specs.schema import RESERVED
from p4perf.specs.types import WORD_PATTERN

Fact = int | float | str
"""Value of a condition: a whole number is an int, whatever the source writes."""

_FIELD = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:[km](?![a-z0-9]))?"
_SCALES = {"k": 1000, "m": 1_000_000}
REPETITION = "repetition"


@dataclass(frozen=True, slots=True)
class Named:
    """A name of p4perf, and what the source calls it; empty if it is the same."""

    name: str
    source: str = ""

    @classmethod
    def parse(cls, text: str) -> Named:
        """``entries=Number of entries``, or only ``entries``."""
        name, _, source = text.partition("=")
        return cls(name.strip(), source.strip())

    @property
    def wanted(self) -> str:
        """The name in the source."""
        return self.source or self.name


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the user said.

    Args:
        variables: swept variables; the first is the abscissa of the model.
        metrics: metrics to import, with their names in the source; empty: all that are certain.
        units: unit by metric; under the empty name for all.
        settings: facts that the source does not tell.
        only: keep trials with these facts (names of the source or of p4perf).
        repetition: name of the fact, or column, that numbers repetitions.
        pattern: how names of files or tests tell facts: ``rx-{frame_size}-{repetition}.csv``.
        value: CSV in long format: column of the values.
        metric_column: CSV in long format: column of the names of metrics.
        unit_column: CSV: column of the units.
        device: device of MoonGen whose counters count; needed where a file has several.
        skip_damaged: leave damaged files out instead of stopping.

    Raises:
        UsageError: a name is not one for a variable or metric, or there twice.
    """

    variables: tuple[Named, ...] = ()
    metrics: tuple[Named, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Fact] = field(default_factory=dict)
    only: Mapping[str, Fact] = field(default_factory=dict)
    repetition: str = ""
    pattern: str = ""
    value: str = ""
    metric_column: str = ""
    unit_column: str = ""
    device: str = ""
    skip_damaged: bool = False

    def __post_init__(self) -> None:
        for named in self.variables:
            check_variable(named.name, "--x")
        for name in self.settings:
            check_variable(name, "--set")
        for named in self.metrics:
            check_metric(named.name)
        for name in self.units:
            if name:
                check_metric(name)
        names = [named.name for named in self.variables] + list(self.settings)
        if twice := [name for name in names if names.count(name) > 1]:
            raise UsageError(f"the variable {twice[0]} is given twice")
        sources = [named.wanted for named in self.variables]
        if twice := [name for name in sources if sources.count(name) > 1]:
            raise UsageError(f"{twice[0]} of the source is given twice")
        metrics = [named.source for named in self.metrics if named.source]
        metrics += [named.name for named in self.metrics if not named.source]
        if twice := [name for name in metrics if metrics.count(name) > 1]:
            raise UsageError(f"--metric: {twice[0]} is given twice")
        if self.pattern:
            name_facts(self.pattern, "")

    def facts_of(self, name: str) -> tuple[dict[str, Fact], int | None, str]:
        """What the name of a file or test tells.

        Returns:
            The facts, the repetition if the pattern has one, and the name with the numbers replaced by their fields.

        Raises:
            UsageError: the name does not fit the pattern.
        """
        if not self.pattern:
            return {}, None, name
        found = name_facts(self.pattern, name)
        if found is None:
            raise UsageError(
                f"{name} does not fit --name {self.pattern}",
                hint="a field in braces stands for a number: rx-{size}.csv",
            )
        facts, rest = found
        number = facts.pop(REPETITION, None)
        if number is not None and not isinstance(number, int):
            raise UsageError(f"{name}: the repetition {number} is not a whole number")
        return facts, number, rest


def name_facts(pattern: str, name: str) -> tuple[dict[str, Fact], str] | None:
    """The numbers that stand in a name where a pattern has fields; None if it does not fit.

    ``k`` and ``m`` after a number, at the end of a word, are factors of a thousand and of a million.

    Raises:
        UsageError: the pattern has no field, the same twice, or one that is not a name.
    """
    fields = _FIELD.findall(pattern)
    if not fields or len(set(fields)) < len(fields) or "{" in _FIELD.sub("", pattern):
        hint = "such as rx-{frame_size}-{repetition}.csv; small letters, digits and underscores"
        raise UsageError(f"--name {pattern}: expected a name with different fields in braces", hint=hint)
    for wanted in fields:
        if wanted != REPETITION:
            check_variable(wanted, "--name")
    parts = [re.escape(text) if at % 2 == 0 else f"({_NUMBER})" for at, text in enumerate(_FIELD.split(pattern))]
    match = re.search(f"(?<![0-9])(?<![0-9][.]){''.join(parts)}" if pattern.startswith("{") else "".join(parts), name)
    if match is None:
        return None
    facts = {wanted: _scaled(text) for wanted, text in zip(fields, match.groups(), strict=True)}
    return facts, name[: match.start()] + pattern + name[match.end() :]


def _scaled(text: str) -> Fact:
    factor = _SCALES.get(text[-1], 1)
    return tidy_number(float(text[:-1]) * factor) if factor > 1 else fact(text)


def fact(text: str) -> Fact:
    """A number if the text is one, else the text."""
    stripped = text.strip()
    try:
        return int(stripped)
    except ValueError:
        pass
    try:
        number = float(stripped)
    except ValueError:
        return stripped
    return tidy_number(number) if number - number == 0 else stripped


def tidy_number(number: float) -> Fact:
    """The number, as an int if it is whole."""
    return int(number) if float(number).is_integer() and abs(number) <= 1e18 else number


def check_variable(name: str, where: str) -> None:
    """Check that a name can be that of a swept variable.

    Raises:
        UsageError: it cannot.
    """
    if not re.fullmatch(WORD_PATTERN[1:-1], name):
        plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "variable"
        raise UsageError(
            f"{where}: {name!r} is not a name of a variable (small letters, digits and underscores, a letter first)",
            hint=f"rename it: --x {plain}={name!r}" if plain[0].isalpha() else "rename it with --x NAME=THEIR_NAME",
        )
    if name in RESERVED:
        raise UsageError(
            f"{where}: {name} is a column of the tables of results", hint=f"rename it: --x the_{name}={name}"
        )


def check_metric(name: str) -> None:
    """Check that a metric exists.

    Raises:
        UsageError: it does not; names the nearest.
    """
    if metric_named(name) is None:
        raise UsageError(f"there is no metric {name!r}", hint=nearest(name, METRICS, "metrics"))
