"""The parts of a model as rows of a table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from p4perf.models.bases import number
from p4perf.models.component import ComponentModel


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
                formula=part.text(x=model.x.name, y=model.y.name),
                parameters=cells,
                error=part.error,
                split_low=split.low if split else None,
                split_high=split.high if split else None,
            )
        )
    return tuple(rows)
