"""Claims of papers as their files state them, and the verdict on what a check finds.

A file has one paper and every figure and number of it that can be computed or measured again. A claim without a source
or a check, or with an unknown key, is an error with file and line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from p4perf.errors import ExitCode
from p4perf.specs.messages import validation_error
from p4perf.specs.types import Strict

Kind = Literal["analytic", "published data", "re-measured by shape"]
"""How a claim is checked: computed from equations and rules, from data that were published, or measured again here,
where order, ratios and functions have to be the same but no absolute number."""

Evidence = Literal["independent", "transcribed", "own"]
"""What the verdict on a claim rests on: a computation or measurement of ours, or what printed numbers make of other
printed ones, from inputs without the answer; a table of the paper, or its formula for numbers of ours, as it is, or
numbers that come out as they went in; or curves, bounds and reconstructions of our own. Only the first counts as
reproduced."""

VerdictName = Literal["reproduced", "shape reproduced", "not reproduced", "not possible here"]
Outcome = Literal[VerdictName, "not run"]
"""What becomes of a claim: a verdict, or none where the time was over."""

ID_PATTERN = r"^[a-z0-9]+(-[a-z0-9]+)*$"
WORD = r"^[a-z][a-z0-9_]{0,59}$"

Value = bool | int | float | str
"""One quantity."""

Quantity = Value | tuple[Value, ...]
"""What a check finds under one name: a value or an ordered list of them."""


def number_of(found: Mapping[str, Quantity], name: str) -> float:
    """A quantity that is a number."""
    value = found[name]
    assert isinstance(value, int | float)  # noqa: S101 - the check that found it says so
    return float(value)


def _place(value: Any) -> Any:
    """Numbers of figures and equations may be written without quotes."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Place = Annotated[str, BeforeValidator(_place), Field(min_length=1, max_length=80)]
Scalar = Annotated[bool | int | float | str, Field(union_mode="smart")]
Word = Annotated[str, Field(pattern=WORD)]


class Source(Strict):
    """Where in the paper the claim stands; one place at least."""

    section: Place | None = Field(None, description="section, such as 3 or II-C")
    figure: Place | None = Field(None, description="figure")
    table: Place | None = Field(None, description="table")
    equation: Place | None = Field(None, description="equation")
    slide: Place | None = Field(None, description="slide, by its title")
    page: Place | None = Field(None, description="page")

    @model_validator(mode="after")
    def _somewhere(self) -> Source:
        if not self.text():
            hint = "name a section, figure, table, equation or slide"
            raise validation_error("a claim needs a place in its paper", hint=hint)
        return self

    def text(self) -> str:
        """For people, such as ``section 3, equation 5``."""
        words = ((word, getattr(self, word)) for word in ("section", "figure", "table", "equation", "slide", "page"))
        return ", ".join(f"{word} {value}" for word, value in words if value)


class Expectation(Strict):
    value: Scalar | tuple[Scalar, ...] | None = Field(None, description="the value, or the values in order")
    absolute: Annotated[float, Field(ge=0)] | None = Field(None, description="how far a number may be off")
    relative: Annotated[float, Field(ge=0)] | None = Field(None, description="the same as a share of the value")
    at_least: float | None = Field(None, description="lower bound")
    at_most: float | None = Field(None, description="upper bound")
    one_of: tuple[Scalar, ...] | None = Field(None, min_length=1, description="words of which it is one")
    unit: str = Field("", max_length=40, description="unit, for people")

    @model_validator(mode="after")
    def _something(self) -> Expectation:
        bounds = self.at_least is not None or self.at_most is not None
        if sum((self.value is not None, bounds, self.one_of is not None)) != 1:
            raise validation_error("an expectation has a value, or bounds, or one_of", hint="write one of the three")
        if (self.absolute is not None or self.relative is not None) and self.value is None:
            raise validation_error("a tolerance belongs to a value")
        for number in (self.at_least, self.at_most):
            if number is not None and not math.isfinite(number):
                raise validation_error("a bound must be a finite number")
        return self

    def text(self) -> str:
        """For people, such as ``17.31 Mpps`` or ``>= 2``."""
        if self.value is not None:
            said = shown(self.value)
        elif self.one_of is not None:
            said = " or ".join(shown(word) for word in self.one_of)
        elif self.at_least is not None and self.at_most is not None:
            said = f"{shown(self.at_least)} to {shown(self.at_most)}"
        else:
            said = f">= {shown(self.at_least)}" if self.at_least is not None else f"<= {shown(self.at_most)}"
        return f"{said} {self.unit}".strip()


class CheckCall(Strict):
    name: Annotated[str, Field(pattern=ID_PATTERN)] = Field(description="name of the check")
    arguments: dict[Word, Scalar | tuple[Scalar, ...]] = Field(default_factory=dict, description="its arguments")


class Remeasured(Strict):
    experiment: str = Field(min_length=1, max_length=100, description="an experiment of the catalogue")
    target: str = Field("dpdk-c", max_length=100, description="the target")
    change: tuple[str, ...] = Field((), description="changes of the spec, as --set takes them")
    quick: tuple[str, ...] = Field((), description="further changes with --quick")


class Claim(Strict):
    """One statement of a paper, and how it is checked."""

    id: Annotated[str, Field(pattern=ID_PATTERN, max_length=60)] = Field(description="its name within the paper")
    source: Source = Field(description="where it stands")
    claim: str = Field(min_length=10, max_length=400, description="what is claimed, in our words")
    kind: Kind = Field(description="how it is checked")
    evidence: Evidence | None = Field(None, description="what the verdict rests on; own where nothing is said")
    command: str = Field(pattern=r"^p4perf \S.*$", max_length=300, description="the command that shows it to a user")
    check: CheckCall | None = Field(None, description="what computes it; none where it is not possible here")
    measure: Remeasured | None = Field(None, description="what is measured for it")
    expect: dict[Word, Expectation] = Field(min_length=1, description="what the paper says, by quantity of the check")
    verdict: VerdictName | None = Field(None, description="the verdict that is expected; default: it is reproduced")
    inference: str = Field(
        "",
        max_length=600,
        description="what of the expectation is our reading and not what the paper says; empty if none",
    )
    reason: str = Field("", max_length=600, description="why it is not reproduced, or not possible here")
    instead: dict[Word, Expectation] = Field(
        default_factory=dict, description="what is found instead of what the paper says"
    )

    @model_validator(mode="after")
    def _whole(self) -> Claim:
        negative = self.expected in ("not reproduced", "not possible here")
        if negative and not self.reason:
            raise validation_error(f"a claim that is {self.expected} needs a reason", path=("verdict",), key=True)
        if self.reason and not negative:
            raise validation_error("a reason belongs to a claim that is not reproduced", path=("reason",), key=True)
        if (self.check is None) != (self.expected == "not possible here"):
            hint = "write check, or verdict and reason"
            raise validation_error("a claim has a check, unless it is not possible here", hint=hint)
        if self.evidence is not None and self.check is None:
            raise validation_error("a claim without a check has no evidence", path=("evidence",), key=True)
        if self.measure is not None and self.kind != "re-measured by shape":
            message = "only claims that are measured again have an experiment"
            raise validation_error(message, path=("measure",), key=True)
        if self.instead and self.expected != "not reproduced":
            raise validation_error("instead belongs to a claim that is not reproduced", path=("instead",), key=True)
        if self.expected == "not reproduced" and self.kind != "re-measured by shape" and not self.instead:
            raise validation_error("a claim that is not reproduced needs what is found instead", hint="write instead")
        if not negative and self.expected != self.positive:
            message = f"a claim that is {self.kind} can be {self.positive}, not {self.expected}"
            raise validation_error(message, path=("verdict",))
        return self

    @property
    def positive(self) -> VerdictName:
        return "shape reproduced" if self.kind == "re-measured by shape" else "reproduced"

    @property
    def basis(self) -> Evidence | None:
        """What the verdict rests on; None where nothing is checked."""
        return None if self.check is None else self.evidence or "own"

    @property
    def expected(self) -> VerdictName:
        return self.verdict or self.positive

    def paper_text(self) -> str:
        if len(self.expect) == 1:
            return next(iter(self.expect.values())).text()
        return ", ".join(named(name, each.text(), each.unit) for name, each in self.expect.items())


class PaperClaims(Strict):
    """A paper and its claims, in the order of the file."""

    reproduction_version: Literal[1] = Field(description="version of this format")
    paper: Annotated[str, Field(pattern=r"^[a-z]+[0-9]{4}$")] = Field(description="key of the paper, as specs name it")
    title: str = Field(min_length=1, max_length=200, description="title of the paper")
    authors: str = Field(min_length=1, max_length=200, description="its authors")
    published: str = Field(min_length=1, max_length=200, description="where, and when")
    claims: tuple[Claim, ...] = Field(min_length=1, max_length=300, description="all that can be checked")

    @model_validator(mode="after")
    def _names(self) -> PaperClaims:
        seen: set[str] = set()
        for index, claim in enumerate(self.claims):
            if claim.id in seen:
                raise validation_error(f"duplicate claim {claim.id}", path=("claims", index, "id"))
            seen.add(claim.id)
        return self

    @property
    def key(self) -> str:
        return self.paper


_WORDS = {"left_out_gain": "error of one segment / error of the model, at points left out"}
"""Quantities whose names do not say what they are."""


def named(name: str, text: str, unit: str) -> str:
    """A quantity with its name, for people; a name that is the unit is left out."""
    words = _WORDS.get(name, name.replace("_", " "))
    return text if words == unit else f"{words} {text}"


def shown(value: object) -> str:
    """A quantity for people: six digits of a number, words as they are."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple | list):
        return ", ".join(shown(item) for item in value) or "none"
    return str(value)


EXACT = 1e-9
"""Relative tolerance of numbers for which none is given: rounding of floating point."""


@dataclass(frozen=True)
class Finding:
    """What became of one claim; ``missed`` are differences from the paper, for people.

    ``failure`` is the exit code of what kept it from being checked, ``run`` the folder of the run that was measured for
    it, relative to that of the report.
    """

    paper: str
    claim: Claim
    verdict: Outcome
    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    missed: tuple[str, ...] = ()
    reason: str = ""
    failure: ExitCode = ExitCode.OK
    run: str = ""
    quick: bool = False
    duration_s: float = 0.0

    @property
    def key(self) -> str:
        return f"{self.paper}:{self.claim.id}"

    @property
    def drifted(self) -> tuple[str, ...]:
        """Differences both from the paper and from what the file records instead, for people."""
        if self.verdict != "not reproduced":
            return ()
        return compare(self.claim.instead, self.quantities)

    @property
    def as_expected(self) -> bool:
        """Whether verdict and, where it is not reproduced, what is found instead are those of the file.

        A measurement may come out better than it did where the file was written: machines differ. What was not run is
        no surprise.
        """
        better = self.verdict == "shape reproduced" and self.claim.expected == "not reproduced"
        return better or not self.was_run or (self.verdict == self.claim.expected and not self.drifted)

    @property
    def was_run(self) -> bool:
        return self.verdict != "not run"

    def ours_text(self) -> str:
        known = [(n, each) for n, each in self.claim.expect.items() if n in self.quantities]
        if len(known) == 1:
            name, each = known[0]
            return f"{shown(self.quantities[name])} {each.unit}".strip()
        return ", ".join(named(n, f"{shown(self.quantities[n])} {each.unit}".strip(), each.unit) for n, each in known)


def judge(paper: str, claim: Claim, quantities: Mapping[str, Quantity]) -> Finding:
    missed = compare(claim.expect, quantities)
    if not missed:
        return Finding(paper, claim, claim.positive, dict(quantities))
    reason = claim.reason if claim.expected == "not reproduced" else "; ".join(missed)
    return Finding(paper, claim, "not reproduced", dict(quantities), missed, reason)


def impossible(paper: str, claim: Claim, reason: str, failure: ExitCode = ExitCode.OK) -> Finding:
    return Finding(paper, claim, "not possible here", reason=reason, failure=failure)


def compare(wanted: Mapping[str, Expectation], found: Mapping[str, Quantity]) -> tuple[str, ...]:
    """Differences from what is expected, for people."""
    missed = []
    for name, expectation in wanted.items():
        if name not in found:
            missed.append(f"{name.replace('_', ' ')} was not found")
        elif not meets(found[name], expectation):
            said = f"{shown(found[name])} {expectation.unit}".strip()
            missed.append(f"{name.replace('_', ' ')} is {said}, not {expectation.text()}")
    return tuple(missed)


def meets(found: Quantity, wanted: Expectation) -> bool:
    if wanted.one_of is not None:
        return found in wanted.one_of
    if wanted.value is None:
        values = found if isinstance(found, tuple) else (found,)
        return all(_between(value, wanted.at_least, wanted.at_most) for value in values)
    target = wanted.value
    if isinstance(target, tuple) != isinstance(found, tuple):
        return False
    if isinstance(target, tuple) and isinstance(found, tuple):
        return len(target) == len(found) and all(_same(a, b, wanted) for a, b in zip(found, target, strict=True))
    return _same(found, target, wanted)


def _between(value: object, low: float | None, high: float | None) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        return False
    return (low is None or value >= low) and (high is None or value <= high)


def _same(found: object, wanted: object, rule: Expectation) -> bool:
    numbers = [isinstance(v, int | float) and not isinstance(v, bool) for v in (found, wanted)]
    if not all(numbers):
        return type(found) is type(wanted) and found == wanted
    assert isinstance(found, int | float) and isinstance(wanted, int | float)  # noqa: S101, PT018 - asked above
    room = max(rule.absolute or 0.0, (rule.relative or 0.0) * abs(wanted))
    if rule.absolute is None and rule.relative is None:
        room = EXACT * max(abs(wanted), 1e-300)
    return abs(found - wanted) <= room * (1 + EXACT)
