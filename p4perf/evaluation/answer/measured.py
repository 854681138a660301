"""A prediction beside a measurement of the same program: both are shown, and how far they are apart."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p4perf.evaluation.answer.prediction import Prediction
from p4perf.evaluation.answer.rates import Band


@dataclass(frozen=True)
class Measured:
    """A prediction, and what was measured of the same program.

    Args:
        prediction: what the model said.
        cycles: median of the accepted starts with its 95 % interval.
        starts: accepted starts.
        flags: quality flags of these.
        folder: where the raw records are.
    """

    prediction: Prediction
    cycles: Band
    starts: int
    flags: tuple[str, ...]
    folder: Path

    @property
    def error(self) -> float:
        """Predicted less measured, relative to measured; positive where the prediction is too high."""
        return self.prediction.cycles().value / self.cycles.value - 1

    @property
    def holds(self) -> bool:
        """Whether the interval of the prediction holds the measured median."""
        band = self.prediction.cycles()
        return band.low <= self.cycles.value <= band.high

    def row(self) -> dict[str, Any]:
        """Plain values for tables and JSON."""
        band = self.prediction.cycles()
        return {
            "program": self.prediction.graph.name,
            "change": "; ".join(self.prediction.changes),
            **self.prediction.values,
            "target": self.prediction.model.target,
            "machine": self.prediction.model.machine,
            "predicted_cycles": band.value,
            "predicted_low": band.low,
            "predicted_high": band.high,
            "measured_cycles": self.cycles.value,
            "measured_low": self.cycles.low,
            "measured_high": self.cycles.high,
            "error": self.error,
            "interval_holds": self.holds,
            "starts": self.starts,
            "flags": list(self.flags),
            "folder": str(self.folder),
        }
