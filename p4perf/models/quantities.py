"""What belongs to a curve: the quantities of its axes, its intervals, and what it says of some abscissae."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from p4perf.models.bases import FloatArray

Scale = Literal["linear", "log"]


@dataclass(frozen=True)
class Quantity:
    """What an axis shows.

    Args:
        name: name of the variable or metric.
        unit: unit, empty for a count.
        scale: how the axis is drawn and sampled; it does not influence the fit.
    """

    name: str
    unit: str = ""
    scale: Scale = "linear"

    def label(self) -> str:
        """Name and unit for an axis: ``entries`` or ``memory [B]``."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name


@dataclass(frozen=True)
class Interval:
    """A closed interval; both ends have the unit of what it belongs to."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Uncertainty:
    """Bootstrap intervals of a model.

    Args:
        level: coverage that the intervals aim at, such as 0.95.
        parameters: per part, per parameter.
        splits: per split, from the last sample that may belong to the left part to the first of the right one.
        x: abscissae of the band.
        low: lower end of the band of the curve, like x.
        high: upper end of the band.
        resamples: number of bootstrap resamples.
        seed: seed of the generator.
    """

    level: float
    parameters: tuple[tuple[Interval, ...], ...]
    splits: tuple[Interval, ...]
    x: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    resamples: int
    seed: int


@dataclass(frozen=True)
class Estimate:
    """Values of a model at some abscissae; arrays of one shape.

    Args:
        value: the curve.
        low: lower end of the band, NaN if the model has none.
        high: upper end of the band, NaN if the model has none.
        extrapolated: true where x lies outside of the domain that was measured.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    extrapolated: npt.NDArray[np.bool_]
