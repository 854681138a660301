"""From what a check finds and what a paper says to a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from p4perf.errors import ExitCode
from p4perf.evaluation.papers.claims import Claim, Expectation, Kind, Quantity, VerdictName, named, shown

EXACT = 1e-9
"""Relative tolerance of numbers for which none is given: rounding of floating point."""


@dataclass(frozen=True)
class Finding:
    """What became of one claim.

    Args:
        paper: key of the paper.
        claim: the claim.
        verdict: what was found.
        quantities: what the check computed, by name; empty where it could not.
        missed: what is not as the paper says, for people.
        reason: why it is not reproduced or not possible, for people.
        failure: exit code of what kept it from being checked, else OK.
        run: folder of the run that was measured for it, relative to that of the report; empty without one.
        quick: whether it was measured with few points.
        duration_s: time that it took, in seconds.
    """

    paper: str
    claim: Claim
    verdict: VerdictName
    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    missed: tuple[str, ...] = ()
    reason: str = ""
    failure: ExitCode = ExitCode.OK
    run: str = ""
    quick: bool = False
    duration_s: float = 0.0

    @property
    def key(self) -> str:
        """``paper:claim``."""
        return f"{self.paper}:{self.claim.id}"

    @property
    def kind(self) -> Kind:
        """How it was checked."""
        return self.claim.kind

    @property
    def drifted(self) -> tuple[str, ...]:
        """What is neither as the paper says nor as it was found before, for people."""
        if self.verdict != "not reproduced":
            return ()
        return compare(self.claim.instead, self.quantities)

    @property
    def as_expected(self) -> bool:
        """Whether verdict and, where it is not reproduced, what is found instead are those of the file.

        A measurement may come out better than it did where the file was written: machines differ.
        """
        better = self.verdict == "shape reproduced" and self.claim.expected == "not reproduced"
        return better or (self.verdict == self.claim.expected and not self.drifted)

    def ours_text(self) -> str:
        """What we find, for people."""
        known = [(n, each) for n, each in self.claim.expect.items() if n in self.quantities]
        if len(known) == 1:
            name, each = known[0]
            return f"{shown(self.quantities[name])} {each.unit}".strip()
        return ", ".join(named(n, f"{shown(self.quantities[n])} {each.unit}".strip(), each.unit) for n, each in known)


def judge(paper: str, claim: Claim, quantities: Mapping[str, Quantity]) -> Finding:
    """The verdict on a claim whose check found these quantities."""
    missed = compare(claim.expect, quantities)
    verdict: VerdictName = "not reproduced"
    if not missed:
        verdict = "shape reproduced" if claim.kind == "re-measured by shape" else "reproduced"
    reason = ""
    if missed:
        reason = claim.reason if claim.expected == "not reproduced" else "; ".join(missed)
    return Finding(paper, claim, verdict, dict(quantities), missed, reason)


def impossible(paper: str, claim: Claim, reason: str, failure: ExitCode = ExitCode.OK) -> Finding:
    """A claim that cannot be checked here."""
    return Finding(paper, claim, "not possible here", reason=reason, failure=failure)


def compare(wanted: Mapping[str, Expectation], found: Mapping[str, Quantity]) -> tuple[str, ...]:
    """What is not as expected, for people; empty if all is."""
    missed = []
    for name, expectation in wanted.items():
        if name not in found:
            missed.append(f"{name.replace('_', ' ')} was not found")
        elif not meets(found[name], expectation):
            said = f"{shown(found[name])} {expectation.unit}".strip()
            missed.append(f"{name.replace('_', ' ')} is {said}, not {expectation.text()}")
    return tuple(missed)


def meets(found: Quantity, wanted: Expectation) -> bool:
    """Whether a quantity is what is expected."""
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
