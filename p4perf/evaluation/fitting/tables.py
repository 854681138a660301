"""The segments of a model, and every number of segments that was considered, as rows of tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from p4perf.records import Record, doc

if TYPE_CHECKING:
    import pandas as pd

    from p4perf.evaluation.fitting.derivation import Derivation
    from p4perf.models.component import ComponentModel


AT_BOUND = 1e-8
"""Distance of a parameter from a bound at which it is said to be there, relative above one."""


class ParameterCell(Record):
    """One parameter; the interval is None if the model has no uncertainty."""

    name: str = doc("name of the parameter")
    value: float = doc("its value; about an `origin` that is in `model.json`")
    low: float | None = doc("lower end of its 95 % interval")
    high: float | None = doc("upper end")
    at_bound: bool = doc("whether it ended at a bound of its template or its search: the data do not determine it")

    def text(self, digits: int = 4) -> str:
        """Such as ``c1 = 0.072 [0.069, 0.075]``; the value alone if both ends read like it."""
        from p4perf.models.notation import number  # here, because models are slow to load

        value = number(self.value, digits)
        if self.at_bound:
            return f"{self.name} = {value} (at its bound)"
        ends = [number(end, digits) for end in (self.low, self.high) if end is not None]
        return f"{self.name} = {value}" + ("" if {*ends} <= {value} else f" [{', '.join(ends)}]")


class SegmentRow(Record):
    """One segment of a model."""

    segment: int = doc("number of the segment, from 1")
    start: float = doc("first x of the segment", "of x")
    end: float = doc("last x of the segment", "of x")
    points: int = doc("points of the segment")
    template: str = doc("[template](methods.md#templates)", of="template.name")
    family: str = doc("family of the template, such as `poly` or `log`", of="template.family")
    formula: str = doc("the function with rounded numbers, for people")
    parameters: tuple[ParameterCell, ...] = doc("")
    error: float = doc("error of the segment", "of the metric")
    breakpoint_low: float | None = doc("lower end of the interval of its first x; null for the first segment", "of x")
    breakpoint_high: float | None = doc("upper end", "of x")


def _is_single(low: float | None, high: float | None) -> bool:
    """Whether all resamples gave the same value."""
    return low is None or high is None or math.isclose(low, high, rel_tol=1e-12)


def model_rows(model: ComponentModel) -> tuple[SegmentRow, ...]:
    rows = []
    known = model.uncertainty
    for index, segment in enumerate(model.fitting.segments):
        values = dict(zip(segment.template.parameter_names, segment.parameters, strict=True))
        ends = [(i.low, i.high) for i in known.parameters[index]] if known else [(None, None)] * len(values)
        bounds = getattr(segment.template, "bounds", None) or ((),) * len(values)
        # A shape that all resamples have in common, where others of their parameters differ, is an end of the search.
        differs = known is not None and not all(_is_single(*pair) for pair in ends)
        searched = getattr(getattr(segment.template, "basis", None), "shape_name", None) if differs else None
        breakpoint = known.breakpoints[index - 1] if known and index else None
        rows.append(
            SegmentRow.read(
                segment,
                segment=index + 1,
                formula=segment.text(x=model.x.name, y=model.y.name),
                parameters=tuple(
                    ParameterCell(
                        name=name,
                        value=value,
                        low=low,
                        high=high,
                        at_bound=any(math.isclose(value, end, rel_tol=AT_BOUND, abs_tol=AT_BOUND) for end in of)
                        or (name == searched and _is_single(low, high)),
                    )
                    for (name, value), (low, high), of in zip(values.items(), ends, bounds, strict=True)
                ),
                breakpoint_low=breakpoint.low if breakpoint else None,
                breakpoint_high=breakpoint.high if breakpoint else None,
            )
        )
    return tuple(rows)


def model_frame(model: ComponentModel) -> pd.DataFrame:
    """A row for each segment: its ends, its function, and its parameters with their intervals as text."""
    import pandas as pd

    rows = [row.as_dict() | {"parameters": ", ".join(p.text() for p in row.parameters)} for row in model_rows(model)]
    columns = ["segment", "start", "end", "points", "formula", "parameters", "error"]
    return pd.DataFrame(rows, columns=columns).rename(columns={"error": model.error})


def model_html(model: ComponentModel) -> str:
    """The segments as a table of HTML, for notebooks."""
    import pandas as pd

    from p4perf.evaluation.fitting.error_metrics import error_text

    rows = [
        {
            model.x.name: f"{row.start:g} .. {row.end:g}",
            "function": row.formula,
            "parameters": ", ".join(p.text() for p in row.parameters),
            "error": error_text(model.error, row.error),
        }
        for row in model_rows(model)
    ]
    return pd.DataFrame(rows).to_html(index=False)


class CandidateRow(Record):
    """One number of segments that a derivation considered; a criterion that is not defined is infinite."""

    segments: int = doc("a number of segments that was considered")
    error: float = doc("its combined error", "of the metric")
    rank: float = doc("its combined rank")
    l1_bic: float | None = doc(
        "the [criterion](methods.md#number-of-segments); the lowest is chosen; null where the samples are too few"
    )
    aic: float | None = doc("Akaike's criterion")
    aicc: float | None = doc("AIC corrected for few samples")
    bic: float | None = doc("Schwarz's criterion")
    breakpoints: tuple[int, ...] = doc("index, from 0, of the last point of each segment but the last")
    breakpoint_x: tuple[float, ...] = doc("first x of each segment but the first", "of x")
    templates: tuple[str, ...] = doc("template of each segment")
    families: tuple[str, ...] = doc("family of each template")
    chosen: bool = doc("whether this number of segments was chosen")


def candidate_rows(derivation: Derivation) -> tuple[CandidateRow, ...]:
    return tuple(
        CandidateRow.read(
            fitting,
            segments=len(fitting.segments),
            **vars(scores),
            templates=tuple(segment.template.name for segment in fitting.segments),
            families=tuple(segment.template.family for segment in fitting.segments),
            chosen=index == derivation.chosen,
        )
        for index, (fitting, scores) in enumerate(zip(derivation.fittings, derivation.criteria, strict=True))
    )
