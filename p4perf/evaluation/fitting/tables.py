"""The segments of a model, and every number of segments that was considered, as rows of tables."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from p4perf.evaluation.fitting.derivation import Derivation
from p4perf.models.component import ComponentModel
from p4perf.models.notation import number


@dataclass(frozen=True)
class ParameterCell:
    """One parameter; the interval is None if the model has no uncertainty."""

    name: str
    value: float
    low: float | None
    high: float | None

    def text(self, digits: int = 4) -> str:
        """Such as ``c1 = 0.072 [0.069, 0.075]``."""
        body = f"{self.name} = {number(self.value, digits)}"
        if self.low is None or self.high is None:
            return body
        return f"{body} [{number(self.low, digits)}, {number(self.high, digits)}]"


@dataclass(frozen=True)
class SegmentRow:
    """One segment of a model.

    Args:
        segment: number from 1.
        family: its coarser kind, such as ``poly``.
        breakpoint_low: lower end of the interval of where the segment begins, None for the first segment or without
        uncertainty.
        breakpoint_high: upper end.
    """

    segment: int
    start: float
    end: float
    points: int
    template: str
    family: str
    formula: str
    parameters: tuple[ParameterCell, ...]
    error: float
    breakpoint_low: float | None = None
    breakpoint_high: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def model_rows(model: ComponentModel) -> tuple[SegmentRow, ...]:
    rows = []
    for index, segment in enumerate(model.fitting.segments):
        known = model.uncertainty
        intervals = known.parameters[index] if known else (None,) * len(segment.parameters)
        breakpoint = known.breakpoints[index - 1] if known and index else None
        cells = tuple(
            ParameterCell(name, value, interval.low if interval else None, interval.high if interval else None)
            for name, value, interval in zip(
                segment.template.parameter_names, segment.parameters, intervals, strict=True
            )
        )
        rows.append(
            SegmentRow(
                segment=index + 1,
                start=segment.start,
                end=segment.end,
                points=segment.points,
                template=segment.template.name,
                family=segment.template.family,
                formula=segment.text(x=model.x.name, y=model.y.name),
                parameters=cells,
                error=segment.error,
                breakpoint_low=breakpoint.low if breakpoint else None,
                breakpoint_high=breakpoint.high if breakpoint else None,
            )
        )
    return tuple(rows)


@dataclass(frozen=True)
class CandidateRow:
    """One number of segments that a derivation considered.

    Args:
        l1_bic: the criterion by which the number of segments is chosen; infinite where it is not defined.
        aic: Akaike's criterion; likewise.
        aicc: AIC corrected for few samples; likewise.
        bic: Schwarz's criterion; likewise.
        breakpoints: index of the last sample of each segment but the last.
        breakpoint_x: abscissa at which each segment but the first begins.
    """

    segments: int
    error: float
    rank: float
    l1_bic: float
    aic: float
    aicc: float
    bic: float
    breakpoints: tuple[int, ...]
    breakpoint_x: tuple[float, ...]
    templates: tuple[str, ...]
    families: tuple[str, ...]
    chosen: bool

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; a criterion that is not defined is None."""
        row = asdict(self)
        return {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in row.items()}


def candidate_rows(derivation: Derivation) -> tuple[CandidateRow, ...]:
    return tuple(
        CandidateRow(
            segments=len(fitting.segments),
            error=fitting.error,
            rank=fitting.rank,
            **asdict(scores),
            breakpoints=fitting.breakpoints,
            breakpoint_x=fitting.breakpoint_x,
            templates=tuple(segment.template.name for segment in fitting.segments),
            families=tuple(segment.template.family for segment in fitting.segments),
            chosen=index == derivation.chosen,
        )
        for index, (fitting, scores) in enumerate(zip(derivation.fittings, derivation.criteria, strict=True))
    )
