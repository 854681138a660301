"""Figures of latency: its distribution at several loads, and its percentiles over offered load."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import blended_transform_factory
from matplotlib.typing import LineStyleType

from p4perf.errors import UsageError
from p4perf.evaluation.load import SUPPORT
from p4perf.evaluation.plots.load_data import (
    FLOOR_DASHES,
    Handle,
    LatencyCurve,
    LatencyLine,
    Offered,
    RateBound,
    colour_of,
    draw_bounds,
    draw_points,
    flag_handle,
    log_axis,
    need_some,
    offered_axis,
    repetitions_text,
    series_handle,
    set_grid,
)
from p4perf.evaluation.plots.style import (
    GREY,
    RIGHT,
    WIDTH_IN,
    PlotInfo,
    header,
    legend_below,
    new_figure,
    small_print,
)
from p4perf.models.templates import FloatArray

AXES_IN = 3.1
RESOLUTION_US = 1e-3
"""One nanosecond. A latency of zero is drawn here: a logarithmic axis has no zero."""
TAIL_MARKS = {"p50": 0.5, "p90": 0.1, "p99": 0.01, "p99.9": 1e-3, "p99.99": 1e-4, "p99.999": 1e-5}


def latency_distribution_figure(
    curves: Sequence[LatencyCurve], *, complementary: bool = False, info: PlotInfo | None = None
) -> Figure:
    """Draw the distribution of latencies at several loads, and the noise floors of the same link dashed.

    Args:
        curves: one for each load, in the order of the legend.
        complementary: the share of samples above a latency instead, both axes logarithmic, so that the tail can be
            seen; it is thin where fewer than ten samples lie beyond and so mostly chance.

    Raises:
        UsageError: there is no curve.
    """
    need_some("latency distribution", curves)
    info = info or PlotInfo()
    every = [*curves, *(curve.floor for curve in curves if curve.floor is not None)]
    with new_figure(WIDTH_IN, AXES_IN) as figure:
        axes = figure.add_subplot()
        set_grid(axes)
        for index, curve in enumerate(curves):
            draw = _draw_tail if complementary else _draw_cumulative
            if curve.floor is not None:
                draw(axes, curve.floor, colour_of(index), FLOOR_DASHES)
            draw(axes, curve, colour_of(index), "-")
        values = [max(float(v), RESOLUTION_US) for c in every for v in (c.value_us[0], c.value_us[-1])]
        log_axis(axes.xaxis, min(values), max(values))
        axes.set_xlabel(info.x_label or "latency [µs]")
        if complementary:
            log_axis(axes.yaxis, min(_smallest(c) for c in every), 1.0, room=0.02)
            axes.set_ylabel(info.y_label or "share of samples above")
            _mark_percentiles(axes)
        else:
            axes.set_ylim(0.0, 1.02)
            axes.set_ylabel(info.y_label or "share of samples up to here")
        handles: list[Handle] = [
            Line2D([], [], color=colour_of(index), lw=1.6, label=_curve_label(curve))
            for index, curve in enumerate(curves)
        ]
        if len(every) > len(curves):
            label = "dashed: noise floor of the link, same load"
            handles.append(Line2D([], [], color=GREY, lw=1.2, ls=FLOOR_DASHES, label=label))
        if complementary and any(_uncertain(c) is not None for c in every):
            label = f"thin: fewer than {SUPPORT} samples beyond"
            handles.append(Line2D([], [], color=GREY, lw=0.7, label=label))
        _finish(figure, handles, info, "Latency")
        if complementary:
            figure.subplots_adjust(right=RIGHT - 0.045)
    return figure


def latency_over_load_figure(
    lines: Sequence[LatencyLine],
    *,
    unit: Offered = Offered.SHARE,
    bounds: Sequence[RateBound] = (),
    info: PlotInfo | None = None,
) -> Figure:
    """Draw percentiles of the latency over offered load: medians over the repetitions, and bands from least to most.

    A gap is a load without a supported value. Points with quality flags are hollow; noise floors are dashed.

    Args:
        lines: one for each percentile, in the order of the legend.

    Raises:
        UsageError: there is no line, or not a single value on any.
    """
    need_some("latency", lines)
    if not any(values for line in lines for values in line.values_us):
        raise UsageError("there is no latency to draw: no load has an accepted value")
    info = info or PlotInfo()
    with new_figure(WIDTH_IN, AXES_IN) as figure:
        axes = figure.add_subplot()
        set_grid(axes)
        for index, line in enumerate(lines):
            _draw_line(axes, line, index)
        drawn = [v for line in lines for values in line.values_us for v in values]
        drawn += [float(v) for line in lines for v in _floor(line) if np.isfinite(v)]
        log_axis(axes.yaxis, min(drawn), max(drawn))
        axes.set_ylabel(info.y_label or "latency [µs]")
        loads = [float(x) for line in lines for x in line.offered] + [bound.high for bound in bounds]
        offered_axis(axes, unit, loads, info.x_label)
        handles: list[Handle] = [
            series_handle(index, _line_label(line), joined=line.joined) for index, line in enumerate(lines)
        ]
        every = [values for line in lines for values in line.values_us]
        if max(map(len, every)) > 1:
            label = f"median and range of {repetitions_text(every)} repetitions"
            handles.append(Patch(color=GREY, alpha=0.25, lw=0, label=label))
        if any(np.isfinite(_floor(line)).any() for line in lines):
            label = "dashed: noise floor of the link, same load"
            handles.append(Line2D([], [], color=GREY, lw=1.2, ls=FLOOR_DASHES, label=label))
        if any(line.flagged and any(line.flagged) for line in lines):
            handles.append(flag_handle())
        handles += draw_bounds([axes], bounds)
        _finish(figure, handles, info, "Latency over load", above_in=0.6 if bounds else 0.47)
    return figure


def _finish(figure: Figure, handles: Sequence[Handle], info: PlotInfo, title: str, *, above_in: float = 0.47) -> None:
    legend_below(figure, handles, axes_in=AXES_IN, above_in=above_in)
    header(figure, info.title or title, info.note)
    small_print(figure, " · ".join(text for text in (info.machine, info.date) if text))


def _line_label(line: LatencyLine) -> str:
    return line.label if any(line.values_us) else f"{line.label}: no supported value"


def _curve_label(curve: LatencyCurve) -> str:
    return curve.label if curve.samples is None else f"{curve.label} ({curve.samples} samples)"


def _draw_cumulative(axes: Axes, curve: LatencyCurve, colour: str, style: LineStyleType) -> None:
    """Steps from zero at the smallest latency to one."""
    x = np.maximum(curve.value_us, RESOLUTION_US)
    x, y = np.concatenate([x[:1], x]), np.concatenate([[0.0], curve.share])
    axes.plot(x, y, drawstyle="steps-post", color=colour, lw=_width(style), ls=style, zorder=3)


def _above(curve: LatencyCurve) -> tuple[FloatArray, FloatArray]:
    """Corners of the steps of the share above a latency. It is zero from the largest latency on: no point for that."""
    x = np.maximum(curve.value_us, RESOLUTION_US)
    above = np.concatenate([[1.0], 1.0 - curve.share[:-1]])
    # Rounding may leave a tail that is not there, or a negative one.
    known = above > (0.5 / curve.samples if curve.samples else 1e-15)
    return x[known], above[known]


def _smallest(curve: LatencyCurve) -> float:
    return float(_above(curve)[1].min())


def _uncertain(curve: LatencyCurve) -> float | None:
    """The share below which fewer than ten samples lie beyond; None if that is not known."""
    return None if curve.samples is None else SUPPORT / curve.samples


def _draw_tail(axes: Axes, curve: LatencyCurve, colour: str, style: LineStyleType) -> None:
    """Steps from one down to the share of the largest latency, thin where chance rules."""
    x, y = _above(curve)
    # The share above changes at each latency: it is y[k] from x[k - 1] to x[k].
    border = _uncertain(curve)
    sure = len(y) if border is None else max(int(np.sum(y >= border * (1 - 1e-9))), 1)
    axes.plot(x[:sure], y[:sure], drawstyle="steps-pre", color=colour, lw=_width(style), ls=style, zorder=3)
    if sure < len(y):
        axes.plot(x[sure - 1 :], y[sure - 1 :], drawstyle="steps-pre", color=colour, lw=0.7, zorder=3)


def _width(style: LineStyleType) -> float:
    return 1.7 if style == "-" else 1.2


def _mark_percentiles(axes: Axes) -> None:
    """Names of percentiles right of the axes, at their shares."""
    low, high = axes.get_ylim()
    place = blended_transform_factory(axes.transAxes, axes.transData)
    for name, share in TAIL_MARKS.items():
        if low < share < high:
            axes.text(1.008, share, name, transform=place, ha="left", va="center", fontsize=7.5, color=GREY)


def _floor(line: LatencyLine) -> FloatArray:
    return np.empty(0) if line.floor_us is None else line.floor_us


def _draw_line(axes: Axes, line: LatencyLine, index: int) -> None:
    colour = colour_of(index)
    nothing = float("nan")
    middle = np.array([float(np.median(v)) if v else nothing for v in line.values_us])
    least = np.array([min(v) if v else nothing for v in line.values_us])
    most = np.array([max(v) if v else nothing for v in line.values_us])
    if line.joined:
        axes.fill_between(line.offered, least, most, color=colour, alpha=0.16, lw=0, zorder=1)
        axes.plot(line.offered, middle, color=colour, lw=1.4, zorder=3)
    else:
        spread = np.stack([middle - least, most - middle])
        axes.errorbar(line.offered, middle, yerr=spread, fmt="none", ecolor=colour, elinewidth=0.9, capsize=1.8)
    draw_points(axes, line.offered.tolist(), middle.tolist(), line.flagged or [False] * len(middle), index)
    if line.floor_us is not None:
        known = np.isfinite(line.floor_us)
        axes.plot(line.offered[known], line.floor_us[known], color=colour, lw=1.1, ls=FLOOR_DASHES, zorder=2)
