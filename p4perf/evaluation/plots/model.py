"""The figure of a component model: measured medians, fitted parts, splits and cache sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import blended_transform_factory

from p4perf.evaluation.error_metrics import error_text
from p4perf.evaluation.plots.curves import dense, draw_part, draw_samples, label_splits, split_intervals, split_lines
from p4perf.evaluation.plots.style import (
    GREY,
    WIDTH_IN,
    PlotInfo,
    footer,
    header,
    legend_below,
    minus,
    new_figure,
    set_up_axes,
)
from p4perf.evaluation.statistics import Samples
from p4perf.evaluation.working_set import CacheMark
from p4perf.models import ComponentModel
from p4perf.models.bases import FloatArray
from p4perf.models.notation import number

AXES_IN = 2.87
MARK = "#8B0000"


def model_figure(
    model: ComponentModel,
    samples: Samples | None = None,
    *,
    marks: Sequence[CacheMark] = (),
    baseline: float | None = None,
    info: PlotInfo | None = None,
) -> Figure:
    """Draw a model.

    Args:
        model: the curve.
        samples: what was measured: medians with 95 % bootstrap intervals.
        marks: cache sizes, drawn at the top.
        baseline: value of the baseline program in the unit of y, a thin horizontal line.
        info: title, labels and footer.

    Raises:
        UsageError: the model has a logarithmic x axis but not a single positive abscissa.
    """
    info = info or PlotInfo()
    with new_figure(WIDTH_IN, AXES_IN) as figure:
        axes = figure.add_subplot()
        set_up_axes(axes, model, info)
        handles: list[Line2D] = []
        if samples is not None:
            handles.append(draw_samples(axes, samples))
        handles += [draw_part(axes, model, index) for index in range(len(model.fitting.parts))]
        if baseline is not None:
            line = axes.axhline(baseline, color=GREY, lw=1.0, ls=(0, (1, 1.5)), zorder=1)
            line.set_label(f"baseline: {minus(number(baseline))}")
            handles.append(line)
        set_limits(axes, model, samples, baseline)
        split_intervals(axes, model)
        split_lines(axes, model)
        legend_below(figure, handles, axes_in=AXES_IN, above_in=0.75 if marks else 0.47)
        header(figure, info.title or model.name or "component model", _note(model, info))
        footer(figure, model, info)
        _draw_marks(axes, marks)
        label_splits(axes, model.fitting.split_x, _drawn(model, samples))
    return figure


def _note(model: ComponentModel, info: PlotInfo) -> str:
    return " · ".join(text for text in (error_text(model.error, model.fitting.error), info.note) if text)


def set_limits(
    axes: Axes, model: ComponentModel, samples: Samples | None = None, baseline: float | None = None
) -> None:
    """Limits of both axes. Zero belongs to the picture unless the data would become a flat line."""
    axes.margins(x=0.03)
    low, high = axes.get_ylim()
    values = [] if samples is None else samples.medians().tolist()
    values += [float(v) for p in model.fitting.parts for v in p.evaluate([p.start, p.end])]
    values += [] if baseline is None else [baseline]
    if min(values) >= 0 and (min(values) < 0.5 * max(values) or max(values) == 0):
        low = 0.0
    span = high - low if high > low else 1.0
    axes.set_ylim(low, high + 0.06 * span)


def _drawn(model: ComponentModel, samples: Samples | None) -> FloatArray:
    curves = [np.column_stack([at, part.evaluate(at)]) for part in model.fitting.parts for at in [dense(model, part)]]
    points = [] if samples is None else [np.column_stack([samples.x, samples.medians()])]
    return np.concatenate([*curves, *points])


def _draw_marks(axes: Axes, marks: Sequence[CacheMark]) -> None:
    left, right = axes.get_xlim()
    place = blended_transform_factory(axes.transData, axes.transAxes)
    last = -1.0
    for mark in sorted(marks, key=lambda m: m.x):
        if left <= mark.x <= right:
            at = float(axes.transAxes.inverted().transform(axes.transData.transform((mark.x, 0.0)))[0])
            raised = at - last < 0.075
            last = -1.0 if raised else at
            axes.axvline(mark.x, color=MARK, lw=1.0, ls=(0, (1, 1.8)), zorder=1)
            axes.text(
                mark.x,
                1.1 if raised else 1.012,
                f"{mark.level}{' ' if raised else chr(10)}{_bytes(mark.size_bytes)}",
                transform=place,
                ha="center",
                va="bottom",
                fontsize=7.5,
                color=MARK,
                linespacing=1.1,
            )


def _bytes(size: float) -> str:
    for unit, step in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= step:
            return f"{size / step:.3g} {unit}"
    return f"{size:.0f} B"
