"""What one operator costs over the size of a packet: a power law, and a straight line beside it.

The power law is Eq. 4 of Ren et al. 2025, ``C(s) = a s^k``, written with the cost of the smallest packet in place of
``a``: ``C(s) = C(64) (s / 64)^k``. ``k > 1`` is called accelerating (super-linear), ``k < 1`` decelerating
(sub-linear).

The line ``C(s) = c0 + c1 s`` is there because a power law has no fixed cost. An operator that works through the packet
at a constant pace, but whose first bytes an out-of-order core hides behind the work of the baseline, has ``c0 < 0``:
the exponent of a power law at that size, ``c1 s / (c0 + c1 s)``, is above 1 for small packets and falls to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from p4perf.errors import NoVerdictError
from p4perf.models.notation import number
from p4perf.models.templates import FloatArray

BASE_SIZE_BYTES = 64
"""Size of the packets whose cost is the base cost: the smallest of Ethernet."""

LINEAR = 1.0
"""The exponent that separates accelerating from decelerating costs."""

Better = Literal["power", "affine", "undecided"]


@dataclass(frozen=True)
class PowerLaw:
    """``C(s) = C(64) (s / 64)^k`` in cycles per packet (Ren et al. 2025, Eq. 4); ``k`` is the exponent."""

    base_cycles: float
    exponent: float

    def evaluate(self, size_bytes: npt.ArrayLike) -> FloatArray:
        sizes = np.asarray(size_bytes, dtype=np.float64)
        return np.asarray(self.base_cycles * (sizes / BASE_SIZE_BYTES) ** self.exponent, dtype=np.float64)

    def text(self) -> str:
        """Such as ``823 (s / 64)^1.37``."""
        return f"{number(self.base_cycles)} (s / {BASE_SIZE_BYTES})^{number(self.exponent)}"


@dataclass(frozen=True)
class AffineLaw:
    """``C(s) = c0 + c1 s``; ``c0`` (fixed) is negative where the baseline hides some of the work."""

    fixed_cycles: float
    cycles_per_byte: float

    def evaluate(self, size_bytes: npt.ArrayLike) -> FloatArray:
        sizes = np.asarray(size_bytes, dtype=np.float64)
        return np.asarray(self.fixed_cycles + self.cycles_per_byte * sizes, dtype=np.float64)

    def text(self) -> str:
        sign = "-" if self.cycles_per_byte < 0 else "+"
        return f"{number(self.fixed_cycles)} {sign} {number(abs(self.cycles_per_byte))} s"


@dataclass(frozen=True)
class OperatorModel:
    """One operator on one platform.

    Args:
        sizes_bytes: smallest and largest size that the laws were fitted to.
        affine: the line; None where nothing was fitted, or only a power law is known.
        below_cycles: the resolution, if the operator costs less than that at every size; then there are no laws.
    """

    operator: str
    platform: str
    sizes_bytes: tuple[float, float]
    power: PowerLaw | None
    affine: AffineLaw | None = None
    better: Better = "undecided"
    below_cycles: float | None = None

    def evaluate(self, size_bytes: npt.ArrayLike) -> FloatArray:
        """Cycles per packet, by the better law; by the power law where neither is better.

        Raises:
            NoVerdictError: the operator has no law: it costs less than can be measured, or was measured at one size.
        """
        law = self.affine if self.better == "affine" and self.affine is not None else self.power
        if law is None:
            why = "too few sizes" if self.below_cycles is None else f"it costs less than {self.below_cycles:.3g} cycles"
            raise NoVerdictError(f"{self.operator} on {self.platform} has no model: {why}")
        return law.evaluate(size_bytes)
