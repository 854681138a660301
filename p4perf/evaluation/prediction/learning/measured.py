"""Measured programs, and the errors of predictions relative to them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p4perf.errors import DataError, UsageError
from p4perf.models.program.graph import Construct, Size, construct

if TYPE_CHECKING:
    import pandas as pd

    from p4perf.specs import Point


def relative_error(predicted: float, measured: float) -> float:
    """``(predicted - measured) / measured``: positive where the prediction is too high."""
    return (predicted - measured) / measured


@dataclass(frozen=True, slots=True)
class PredictionErrors:
    """Errors of several predictions; shares, not per cent.

    Args:
        median: of the absolute relative errors.
        bias: mean of the signed errors; positive where predictions are too high.
        coverage: share of programs inside of their intervals; None without intervals.
    """

    programs: int
    median: float
    p90: float
    largest: float
    bias: float
    coverage: float | None = None


def prediction_errors(
    predicted: Sequence[float], measured: Sequence[float], intervals: Sequence[tuple[float, float]] | None = None
) -> PredictionErrors:
    """Summarise errors.

    Args:
        predicted: cycles per packet, or any other unit.

    Raises:
        UsageError: there are no programs, or the sequences have different lengths.
    """
    if not predicted or len(predicted) != len(measured):
        raise UsageError("errors of predictions need as many predictions as measurements, and one at least")
    errors = np.asarray([relative_error(p, m) for p, m in zip(predicted, measured, strict=True)])
    inside = None
    if intervals is not None:
        inside = float(np.mean([low <= m <= high for (low, high), m in zip(intervals, measured, strict=True)]))
    absolute = np.abs(errors)
    return PredictionErrors(
        programs=len(errors),
        median=float(np.median(absolute)),
        p90=float(np.percentile(absolute, 90)),
        largest=float(absolute.max()),
        bias=float(errors.mean()),
        coverage=inside,
    )


CYCLES = "cycles_per_packet"
BASELINE = "baseline_cycles_per_packet"
MEMORY, CODE = "memory_bytes", "code_bytes"

LEAST_ERROR = 0.004
"""Standard error of a median over starts, relative to it, below which few starts that happen to agree say nothing."""

MEDIAN_ERROR = math.sqrt(math.pi / 2)
"""Standard error of a median over that of a mean, of normally distributed values."""

Components = tuple[tuple[str, Mapping[str, Size]], ...]


@dataclass(frozen=True, slots=True)
class MeasuredProgram:
    """A program and its accepted starts.

    Args:
        starts: cycles per packet of every start.
        baselines: of the baseline beside it, in the same starts; empty where it was not measured.
        memory_bytes: of its tables and arrays, median over starts; None if it was not measured.
        code_bytes: of its machine code; None if it was not measured.
    """

    components: Components
    starts: tuple[float, ...]
    baselines: tuple[float, ...] = ()
    experiment: str = ""
    frame_bytes: int = 0
    memory_bytes: float | None = None
    code_bytes: float | None = None

    @property
    def cycles(self) -> float:
        return statistics.median(self.starts)

    @property
    def costs(self) -> tuple[float, ...]:
        """Cycles per packet over the baseline of the same start; over nothing where that was not measured."""
        if len(self.baselines) != len(self.starts):
            return self.starts
        return tuple(start - baseline for start, baseline in zip(self.starts, self.baselines, strict=True))

    @property
    def cost(self) -> float:
        """Cycles per packet over the baseline: the median over starts."""
        return statistics.median(self.costs)

    @property
    def error(self) -> float:
        least = LEAST_ERROR * self.cycles
        if len(self.starts) < 2:
            return 5 * least
        return max(MEDIAN_ERROR * statistics.stdev(self.costs) / math.sqrt(len(self.costs)), least)

    def over(self, baseline: float) -> float:
        """Cycles per packet on a given baseline.

        The packet source draws a key for every table, in the baseline beside a program too. What that takes is no part
        of the program, so programs are compared by what they cost over the baseline of their own start.
        """
        return baseline + self.cost if len(self.baselines) == len(self.starts) else self.cycles


def construct_of(name: str, parameters: Mapping[str, Size]) -> Construct:
    return construct("component", "", name=name, **parameters)


def measured_programs(
    table: pd.DataFrame, points: Sequence[Point], experiment: str = ""
) -> tuple[MeasuredProgram, ...]:
    """The programs of a tidy table of measurements, by point; those without an accepted start are out.

    Args:
        table: as in ``measurements.parquet`` of a run directory.

    Raises:
        DataError: the table has no cycles per packet.
    """
    rows = table[table["accepted"].astype(bool)]
    if not (rows["metric"] == CYCLES).any():
        raise DataError(f"the measurements have no accepted {CYCLES}", hint="p4perf show lists what there is")
    starts: dict[tuple[int, str], list[float]] = {}
    for index, metric, value in zip(rows["point_index"], rows["metric"], rows["value"], strict=True):
        if metric in (CYCLES, BASELINE, MEMORY, CODE):
            starts.setdefault((int(index), str(metric)), []).append(float(value))
    found = []
    for point in points:
        cycles = starts.get((point.index, CYCLES))
        if cycles:
            components = tuple((name, dict(parameters)) for name, parameters in point.components)
            baselines = tuple(starts.get((point.index, BASELINE), ()))
            sizes = (starts.get((point.index, metric)) for metric in (MEMORY, CODE))
            memory, code = (statistics.median(values) if values else None for values in sizes)
            found.append(
                MeasuredProgram(components, tuple(cycles), baselines, experiment, point.frame_size_bytes, memory, code)
            )
    return tuple(found)
