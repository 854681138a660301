"""Where base costs are split into low and high.

Ren et al. 2025 say "the dataset median" (section II-C) and "the global median" (III-C). What the data set is, they do
not say: with all twelve rows of their Table II the median is 57 cycles, and their text calls an operator of 49 cycles
high. So the rule is a choice here, with the median of all rows as the default; docs/opq.md has what each rule gives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np
import numpy.typing as npt

from p4perf.errors import NoVerdictError, UsageError
from p4perf.models.bases import FloatArray

Ties = Literal["high", "low"]


class Rule(StrEnum):
    """Rules for the threshold."""

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
        cycles: the number, for that rule.
        ties: what a base cost is that equals the threshold.
        without: operators that are not part of the median.
        of: only rows of this platform are part of the median.

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
                raise UsageError("a threshold has to be a positive number of cycles")
            if self.without or self.of is not None:
                raise UsageError("a threshold that is a number has no rows to choose")
        elif self.rule is Rule.PLATFORM_MEDIAN and self.of is not None:
            raise UsageError("the median of one platform is not a median for each platform")

    @classmethod
    def parse(cls, text: str, *, ties: Ties = "high", without: Sequence[str] = (), of: str | None = None) -> Threshold:
        """A threshold from the name of a rule, or from a number of cycles.

        Raises:
            UsageError: it is neither.
        """
        names = [rule.value for rule in Rule if rule is not Rule.NUMBER]
        if text in names:
            return cls(Rule(text), None, ties, tuple(without), of)
        try:
            return cls(Rule.NUMBER, float(text), ties, tuple(without), of)
        except ValueError:
            raise UsageError(
                f"{text!r} is no rule for a threshold", hint=f"write {', '.join(names)}, or a number of cycles"
            ) from None

    def of_rows(self, base_cycles: FloatArray, platforms: Sequence[str], operators: Sequence[str]) -> FloatArray:
        """The threshold of every row.

        Args:
            base_cycles: base costs, shape (..., rows); one that is below the resolution counts as that.
            platforms: of each row.
            operators: of each row.

        Returns:
            Cycles, shape (..., rows).

        Raises:
            NoVerdictError: no row is left for a median.
        """
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
        """Which base costs are high."""
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
