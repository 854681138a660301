"""The model of one component on one target: curve, domain, uncertainty and where it comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from p4perf.errors import DataError, Location, UsageError
from p4perf.models.bases import FloatArray
from p4perf.models.fitting import PiecewiseFitting
from p4perf.models.quantities import Estimate, Interval, Quantity, Scale, Uncertainty
from p4perf.models.storage import Reader, fitting_record, read_fitting, read_quantity, read_uncertainty
from p4perf.models.templates import Template

__all__ = ["ComponentModel", "Estimate", "Interval", "Quantity", "Scale", "Uncertainty"]

SCHEMA = "p4perf/component-model"
SCHEMA_VERSION = 1


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

    def derivative(self, x: npt.ArrayLike) -> FloatArray:
        """Marginal cost, in units of y per unit of x; see :meth:`PiecewiseFitting.derivative`."""
        return self.fitting.derivative(x)

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
        """The model as JSON text, numbers in full precision; :meth:`from_json` reads exactly the same model back.

        Raises:
            UsageError: a number of the model is not finite.
        """
        record: dict[str, Any] = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "name": self.name,
            "target": self.target,
            "x": asdict(self.x),
            "y": asdict(self.y),
            "error_metric": self.error,
            "fitting": fitting_record(self.fitting, self.x.name, self.y.name),
            "uncertainty": asdict(self.uncertainty) if self.uncertainty else None,
            "provenance": dict(self.provenance),
        }
        try:
            return json.dumps(record, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
        except ValueError as exc:
            raise UsageError(f"the model {self.name!r} cannot be stored: a number in it is not finite") from exc

    @classmethod
    def from_json(
        cls, text: str, *, file: str = "<model>", templates: Sequence[Template] | None = None
    ) -> ComponentModel:
        """Read a model.

        Args:
            text: JSON text.
            file: name for messages.
            templates: known function templates; by default every registered set and the standard one.

        Raises:
            DataError: the text is not a model of a known schema version; names the file and the key.
        """
        root = Reader.of_text(text, file)
        if root.raw("schema") != SCHEMA:
            root.fail("schema", f"must be {SCHEMA!r}: this is no component model")
        version = root.raw("schema_version")
        if version != SCHEMA_VERSION:
            hint = "upgrade p4perf to read newer models"
            root.fail("schema_version", f"must be {SCHEMA_VERSION}, not {version!r}", hint)
        try:
            return cls(
                name=root.string("name"),
                target=root.string("target"),
                x=read_quantity(root.child("x")),
                y=read_quantity(root.child("y")),
                fitting=read_fitting(root.child("fitting"), templates),
                error=root.string("error_metric"),
                uncertainty=None if root.raw("uncertainty") is None else read_uncertainty(root.child("uncertainty")),
                provenance=root.child("provenance").data,
            )
        except UsageError as exc:
            raise DataError(exc.message, location=Location(file)) from exc
