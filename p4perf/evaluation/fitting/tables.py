"""The parts of a model, and every number of parts that was considered, as rows of tables."""

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
class PartRow:
    """One part of a model.

    Args:
        part: number from 1.
        start: first x of the part.
        end: last x of the part.
        points: number of samples.
        template: name of the template.
        family: its coarser kind, such as ``poly``.
        formula: the function with its numbers.
        parameters: with intervals.
        error: error metric of the part.
        split_low: lower end of the interval of where the part begins, None for the first part or without uncertainty.
        split_high: upper end.
    """

    part: int
    start: float
    end: float
    points: int
    template: str
    family: str
    formula: str
    parameters: tuple[ParameterCell, ...]
    error: float
    split_low: float | None = None
    split_high: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def model_rows(model: ComponentModel) -> tuple[PartRow, ...]:
    """One row per part of the model, from left to right."""
    rows = []
    for index, part in enumerate(model.fitting.parts):
        known = model.uncertainty
        intervals = known.parameters[index] if known else (None,) * len(part.parameters)
        split = known.splits[index - 1] if known and index else None
        cells = tuple(
            ParameterCell(name, value, interval.low if interval else None, interval.high if interval else None)
            for name, value, interval in zip(part.template.parameter_names, part.parameters, intervals, strict=True)
        )
        rows.append(
            PartRow(
                part=index + 1,
                start=part.start,
                end=part.end,
                points=part.points,
                template=part.template.name,
                family=part.template.family,
                formula=part.text(x=model.x.name, y=model.y.name),
                parameters=cells,
                error=part.error,
                split_low=split.low if split else None,
                split_high=split.high if split else None,
            )
        )
    return tuple(rows)


@dataclass(frozen=True)
class CandidateRow:
    """One number of parts that a derivation considered.

    Args:
        parts: number of parts.
        error: combined error theta.
        rank: combined rank Phi.
        l1_bic: the criterion by which the number of parts is chosen; infinite where it is not defined.
        aic: Akaike's criterion; likewise.
        aicc: AIC corrected for few samples; likewise.
        bic: Schwarz's criterion; likewise.
        splits: index of the last sample of each part but the last.
        split_x: abscissa at which each part but the first begins.
        templates: template of each part.
        families: family of each template.
        chosen: whether this number was taken.
    """

    parts: int
    error: float
    rank: float
    l1_bic: float
    aic: float
    aicc: float
    bic: float
    splits: tuple[int, ...]
    split_x: tuple[float, ...]
    templates: tuple[str, ...]
    families: tuple[str, ...]
    chosen: bool

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; a criterion that is not defined is None."""
        row = asdict(self)
        return {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in row.items()}


def candidate_rows(derivation: Derivation) -> tuple[CandidateRow, ...]:
    """One row per number of parts that was derived, ascending."""
    return tuple(
        CandidateRow(
            parts=len(fitting.parts),
            error=fitting.error,
            rank=fitting.rank,
            **asdict(scores),
            splits=fitting.splits,
            split_x=fitting.split_x,
            templates=tuple(part.template.name for part in fitting.parts),
            families=tuple(part.template.family for part in fitting.parts),
            chosen=index == derivation.chosen,
        )
        for index, (fitting, scores) in enumerate(zip(derivation.fittings, derivation.criteria, strict=True))
    )
