"""The operator performance quadrant (Ren et al. 2025, section II-C): four kinds of operators by base cost and exponent.

Ren et al. 2025 say "the dataset median" (section II-C) and "the global median" (III-C). What the data set is, they do
not say: with all twelve rows of their Table II the median is 57 cycles, and their text calls an operator of 49 cycles
high. So the rule is a choice here, with the median of all rows as the default; docs/operators.md has what each gives.

The exponent splits at 1, the base cost at a threshold (:mod:`p4perf.evaluation.papers.ren2025.quadrants`). An
exponent of exactly 1 counts as not accelerating. The names are those of the paper.

How sure a quadrant is, the repetitions say: base cost, exponent, and a threshold that is a median of base costs are
calculated from redrawn repetitions again and again; the probability of a quadrant is the share of those in which the
operator lies there. Published rows have no repetitions, and so no probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np
import numpy.typing as npt

from p4perf.errors import NoVerdictError, UsageError
from p4perf.evaluation.fitting.engine import IndexArray
from p4perf.evaluation.papers.ren2025.profiles import OperatorProfile
from p4perf.models.operator import LINEAR
from p4perf.models.templates import FloatArray

Ties = Literal["high", "low"]


class Rule(StrEnum):
    GLOBAL_MEDIAN = "global-median"
    LOWER_MEDIAN = "lower-median"
    PLATFORM_MEDIAN = "platform-median"
    NUMBER = "number"


@dataclass(frozen=True)
class Threshold:
    """How base costs are split.

    Args:
        rule: the median of all rows; its lower median (one of the values, also of an even number of them); of each
            platform the median of its own rows; or a number.
        ties: what a base cost is that equals the threshold.

    Raises:
        UsageError: the number is missing or not positive, or the choice of rows makes no sense with the rule.
    """

    rule: Rule = Rule.GLOBAL_MEDIAN
    cycles: float | None = None
    ties: Ties = "high"
    without: tuple[str, ...] = ()
    of: str | None = None

    def __post_init__(self) -> None:
        if self.rule is Rule.NUMBER:
            if self.cycles is None or not math.isfinite(self.cycles) or self.cycles <= 0:
                raise UsageError("a threshold must be a positive number of cycles")
            if self.without or self.of is not None:
                raise UsageError("a threshold that is a number has no rows to choose")
        elif self.rule is Rule.PLATFORM_MEDIAN and self.of is not None:
            raise UsageError("the median of one platform is not a median for each platform")

    @classmethod
    def parse(cls, text: str, *, ties: Ties = "high", without: Sequence[str] = (), of: str | None = None) -> Threshold:
        """A threshold from the name of a rule, or from a number of cycles."""
        names = [rule.value for rule in Rule if rule is not Rule.NUMBER]
        if text in names:
            return cls(Rule(text), None, ties, tuple(without), of)
        try:
            return cls(Rule.NUMBER, float(text), ties, tuple(without), of)
        except ValueError:
            hint = f"write {', '.join(names)}, or a number of cycles"
            raise UsageError(f"unknown rule for a threshold {text!r}", hint=hint) from None

    def of_rows(self, base_cycles: FloatArray, platforms: Sequence[str], operators: Sequence[str]) -> FloatArray:
        """The threshold of every row [cycles], like the base costs of shape (..., rows)."""
        values = np.asarray(base_cycles, dtype=np.float64)
        if self.rule is Rule.NUMBER:
            return np.full_like(values, self.cycles or 0.0)
        out = np.empty_like(values)
        groups = dict.fromkeys(platforms) if self.rule is Rule.PLATFORM_MEDIAN else (None,)
        for group in groups:
            chosen = [
                index
                for index, (platform, operator) in enumerate(zip(platforms, operators, strict=True))
                if operator not in self.without and platform in (self.of or platform,) and group in (None, platform)
            ]
            if not chosen:
                where = f" of {group or self.of}" if group or self.of else ""
                raise NoVerdictError(f"there is no base cost{where} to take a median of")
            rows = [index for index, platform in enumerate(platforms) if group in (None, platform)]
            out[..., rows] = self._median(values[..., chosen])[..., None]
        return out

    def _median(self, values: FloatArray) -> FloatArray:
        if self.rule is Rule.LOWER_MEDIAN:
            return np.asarray(np.sort(values, axis=-1)[..., (values.shape[-1] - 1) // 2])
        return np.asarray(np.median(values, axis=-1))

    def high(self, base_cycles: FloatArray, threshold_cycles: FloatArray) -> npt.NDArray[np.bool_]:
        return base_cycles >= threshold_cycles if self.ties == "high" else base_cycles > threshold_cycles

    def text(self) -> str:
        """For people, such as ``median of all rows``."""
        if self.rule is Rule.NUMBER:
            return f"{self.cycles:g} cycles, as given"
        words = {
            Rule.GLOBAL_MEDIAN: f"median of all rows{f' of {self.of}' if self.of else ''}",
            Rule.LOWER_MEDIAN: f"lower median of all rows{f' of {self.of}' if self.of else ''}",
            Rule.PLATFORM_MEDIAN: "median of each platform",
        }
        return words[self.rule] + (f" without {', '.join(self.without)}" if self.without else "")


EXTREME = 100.0
"""An operator whose base cost is this multiple of the threshold does not belong in a data path."""


class Quadrant(StrEnum):
    LATENT_TRAP = "latent trap"
    HIGH_STARTUP = "high startup cost"
    IDEAL = "ideal operator"
    EMERGENT = "emergent bottleneck"


_ORDER = tuple(Quadrant)

STRATEGIES: Mapping[Quadrant, str] = {
    Quadrant.LATENT_TRAP: "replace the algorithm or move it into hardware: a faster machine does not cure the growth",
    Quadrant.HIGH_STARTUP: "pay the fixed price less often: handle packets in batches or vectors",
    Quadrant.IDEAL: "leave it as it is: look for cycles elsewhere",
    Quadrant.EMERGENT: "cheap for small packets only: use another algorithm from some size on",
}
AVOID = "keep it out of the data path: at this price no batch is large enough"


def quadrant_of(exponent: float, high: bool) -> Quadrant:
    if exponent > LINEAR:
        return Quadrant.LATENT_TRAP if high else Quadrant.EMERGENT
    return Quadrant.HIGH_STARTUP if high else Quadrant.IDEAL


@dataclass(frozen=True, eq=False)
class Placement:
    """Where an operator lies: nowhere without base cost or exponent, without probabilities if nothing was repeated.

    ``draws`` is the quadrant in each replicate, as an index into :class:`Quadrant`.
    """

    profile: OperatorProfile
    threshold_cycles: float
    quadrant: Quadrant | None
    probabilities: Mapping[Quadrant, float] | None
    draws: IndexArray | None = None

    @property
    def probability(self) -> float | None:
        if self.quadrant is None or self.probabilities is None:
            return None
        return self.probabilities[self.quadrant]

    @property
    def strategy(self) -> str:
        """What to do about such an operator; empty without a quadrant."""
        base = self.profile.base
        if self.quadrant is Quadrant.HIGH_STARTUP and base is not None and base.value > EXTREME * self.threshold_cycles:
            return AVOID
        return STRATEGIES[self.quadrant] if self.quadrant is not None else ""


def place(profiles: Sequence[OperatorProfile], threshold: Threshold) -> tuple[Placement, ...]:
    """Place operators in the quadrants of one threshold."""
    ranked = [p for p in profiles if p.rank_cycles is not None]
    names = [p.platform for p in ranked], [p.operator for p in ranked]
    base = np.array([p.rank_cycles for p in ranked], dtype=np.float64)
    splits = threshold.of_rows(base, *names)
    drawn = _drawn(ranked, base)
    drawn_breakpoints = threshold.of_rows(drawn, *names) if drawn is not None else None
    found: dict[int, Placement] = {}
    for index, each in enumerate(ranked):
        # A cost below the resolution is not above a threshold, whatever the rule for ties.
        high = each.base is not None and bool(threshold.high(base[index], splits[index]))
        exponent = each.exponent.value if each.exponent is not None else None
        quadrant = quadrant_of(exponent, high) if exponent is not None else None
        draws, shares = None, None
        if quadrant is not None and each.replicates is not None and drawn is not None and drawn_breakpoints is not None:
            highs = threshold.high(drawn[:, index], drawn_breakpoints[:, index]) & (each.base is not None)
            exponents = each.replicates[: len(highs), 1]
            draws = np.array([_ORDER.index(quadrant_of(k, h)) for k, h in zip(exponents, highs, strict=True)])
            shares = {kind: float(np.mean(draws == at)) for at, kind in enumerate(Quadrant)}
        found[id(each)] = Placement(each, float(splits[index]), quadrant, shares, draws)
    return tuple(found.get(id(p)) or Placement(p, float("nan"), None, None) for p in profiles)


def _drawn(profiles: Sequence[OperatorProfile], base: FloatArray) -> FloatArray | None:
    """Replicates of all base costs, shape (resamples, rows); rows without repetitions stay where they are."""
    lengths = {len(p.replicates) for p in profiles if p.replicates is not None}
    if not lengths:
        return None
    columns = [
        p.replicates[: min(lengths), 0] if p.replicates is not None else np.full(min(lengths), value)
        for p, value in zip(profiles, base, strict=True)
    ]
    return np.stack(columns, axis=1)
