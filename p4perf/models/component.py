"""The model of one component on one target: curve, domain, uncertainty and where it comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from p4perf.errors import UsageError
from p4perf.models.bases import FloatArray
from p4perf.models.fitting import PiecewiseFitting
from p4perf.models.templates import Template

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


@dataclass(frozen=True)
class ComponentModel:
    """What one component costs on one target.

    Args:
        name: what was measured, such as ``mat/exact-entries``.
        target: name of the target.
        x: the scaled variable.
        y: the metric.
        fitting: the curve.
        error: name of the error metric of the fitting, such as ``smape``.
        uncertainty: intervals, or None.
        provenance: further facts, as JSON values: profile, margins, machine, versions, hashes.
    """

    name: str
    target: str
    x: Quantity
    y: Quantity
    fitting: PiecewiseFitting
    error: str = "smape"
    uncertainty: Uncertainty | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that the intervals belong to the curve, and that the provenance can be stored."""
        if self.uncertainty is not None:
            sizes = [len(p) for p in self.uncertainty.parameters]
            if sizes != [len(p.parameters) for p in self.fitting.parts]:
                raise UsageError("the intervals of a model must match its parameters")
            if len(self.uncertainty.splits) != len(self.fitting.splits):
                raise UsageError("the intervals of a model must match its splits")
        try:
            json.dumps(dict(self.provenance), allow_nan=False)
        except (TypeError, ValueError) as exc:
            raise UsageError(f"the provenance of a model must consist of JSON values: {exc}") from exc

    @property
    def domain(self) -> tuple[float, float]:
        """Smallest and largest x that was measured."""
        return self.fitting.domain

    def evaluate(self, x: npt.ArrayLike) -> FloatArray:
        """The curve; outside of the domain its first or last part goes on."""
        return self.fitting.evaluate(x)

    def estimate(self, x: npt.ArrayLike) -> Estimate:
        """The curve with its band, and whether it had to be extrapolated.

        Between the abscissae of the band its distances from the curve are interpolated; outside of the domain the
        distances at the ends are kept, so the band says nothing about the risk of extrapolation.
        """
        at = np.asarray(x, dtype=np.float64)
        value = self.evaluate(at)
        low, high = np.full_like(value, np.nan), np.full_like(value, np.nan)
        if self.uncertainty is not None:
            grid = np.asarray(self.uncertainty.x)
            centre = self.evaluate(grid)
            low = value + np.interp(at, grid, np.asarray(self.uncertainty.low) - centre)
            high = value + np.interp(at, grid, np.asarray(self.uncertainty.high) - centre)
        first, last = self.domain
        return Estimate(value, low, high, np.asarray((at < first) | (at > last)))

    def formulas(self, digits: int = 4) -> tuple[str, ...]:
        """One formula per part."""
        return tuple(p.text(x=self.x.name, y=self.y.name, digits=digits) for p in self.fitting.parts)

    def to_json(self) -> str:
        """The model as JSON text; :meth:`from_json` reads exactly the same model back."""
        from p4perf.models.storage import model_to_json

        return model_to_json(self)

    @classmethod
    def from_json(
        cls, text: str, *, file: str = "<model>", templates: Sequence[Template] | None = None
    ) -> ComponentModel:
        """Read a model.

        Args:
            text: JSON text.
            file: name for messages.
            templates: known function templates; by default every registered set.

        Raises:
            DataError: the text is not a model of a known schema version; names the file and the key.
        """
        from p4perf.models.storage import model_from_json

        return model_from_json(text, file=file, templates=templates)
