"""Numbers with the range over the starts that they were measured in; arithmetic on them widens the range."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A median, and the lowest and highest of what it is the median of."""

    value: float
    low: float
    high: float

    def __add__(self, other: Span) -> Span:
        return Span(self.value + other.value, self.low + other.low, self.high + other.high)

    def __sub__(self, other: Span) -> Span:
        return Span(self.value - other.value, self.low - other.high, self.high - other.low)

    def __mul__(self, factor: float) -> Span:
        ends = (self.low * factor, self.high * factor)
        return Span(self.value * factor, min(ends), max(ends))

    def __truediv__(self, divisor: float) -> Span:
        return self * (1 / divisor)

    def positive(self) -> Span:
        """Nothing below zero: no operation gives cycles back."""
        return Span(max(self.value, 0.0), max(self.low, 0.0), max(self.high, 0.0))


def span(values: Sequence[float]) -> Span:
    """Median and range of some values; at least one."""
    return Span(statistics.median(values), min(values), max(values))
