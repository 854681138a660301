"""A number with the interval that holds it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval, both in one unit; an end that is unknown or open is infinite."""

    value: float
    low: float = -math.inf
    high: float = math.inf

    @property
    def bounded(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """Both ends for records and tables, None where infinite."""
        return None if math.isinf(self.low) else self.low, None if math.isinf(self.high) else self.high

    @property
    def drawn_ends(self) -> tuple[float, float]:
        """Both ends for figures; the value itself where an end is infinite."""
        low, high = self.ends
        return self.value if low is None else low, self.value if high is None else high

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.value + other.value, self.low + other.low, self.high + other.high)

    def __sub__(self, other: Estimate) -> Estimate:
        return Estimate(self.value - other.value, self.low - other.high, self.high - other.low)

    def __mul__(self, factor: float) -> Estimate:
        return self.map(lambda x: x * factor)

    def __truediv__(self, divisor: float) -> Estimate:
        return self * (1 / divisor)

    def map(self, function: Callable[[float], float]) -> Estimate:
        """A monotone function of the estimate."""
        ends = function(self.low), function(self.high)
        return Estimate(function(self.value), min(ends), max(ends))

    def side_of(self, low: float, high: float) -> int:
        """1 if the whole interval lies above ``high``, -1 if it lies below ``low``, else 0."""
        return int(self.low > high) - int(self.high < low)

    def text(self, number: Callable[[float], str] = "{:.4g}".format) -> str:
        """Such as ``1.05 [1.02, 1.08]``; the value alone if an end is unknown, or there is no width."""
        value = number(self.value)
        return f"{value} [{number(self.low)}, {number(self.high)}]" if self.bounded and self.low < self.high else value

    def rounded(self) -> str:
        """Such as ``221 (204 .. 240)``, with as many digits as the interval supports; the value alone without one."""
        if self._half <= 0:
            return self.alike(self.value)
        return f"{self.alike(self.value)} ({self.alike(self.low)} .. {self.alike(self.high)})"

    def alike(self, value: float) -> str:
        """Another number with as many digits as the interval supports."""
        if self._half <= 0:
            return f"{value:.4g}"
        digits = -math.floor(math.log10(self._half / 2))
        return f"{round(value, digits) + 0.0:.{max(digits, 0)}f}"

    @property
    def _half(self) -> float:
        if not self.bounded:
            return 0.0
        narrow, wide = sorted((self.high - self.value, self.value - self.low))
        if wide <= abs(self.value) or self.low < 0 < self.high:
            return wide
        return max(narrow, wide / 10)  # one end is far off, which says nothing of the value


def exactly(value: float) -> Estimate:
    return Estimate(value, value, value)
