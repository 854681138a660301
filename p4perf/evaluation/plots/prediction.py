"""Predicted packet rates over frame sizes, several targets or programs in one figure, and the line rate."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from p4perf.evaluation.answer.prediction import Prediction
from p4perf.evaluation.answer.rates import line_mpps
from p4perf.evaluation.plots.comparison import LINES, MARKERS
from p4perf.evaluation.plots.style import (
    COLOURS,
    FAINT,
    INK,
    PAPER,
    WIDTH_IN,
    PlotInfo,
    header,
    legend_below,
    new_figure,
    small_print,
    tick,
)

AXES_IN = 2.7


def rate_figure(found: Sequence[Prediction], *, info: PlotInfo | None = None) -> Figure:
    """Draw million packets a second over frame size: values with intervals, dashed what the line carries.

    Args:
        found: at least one prediction; the line is that of the first.
        info: title and footer.
    """
    info = info or PlotInfo()
    first = found[0]
    with new_figure(WIDTH_IN, AXES_IN) as figure:
        axes = figure.add_subplot()
        handles: list[Artist] = [_draw_line(axes, first)]
        for index, each in enumerate(found):
            handles.append(_draw(axes, each, index, _label(each, found)))
        ticks = [size.frame_bytes for size in first.sizes]
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator([t for t in ticks if t != 1280]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_major_formatter(lambda value, _: tick(value))
        axes.set_ylim(bottom=0)
        axes.set_xlabel(info.x_label or "frame size with FCS [B]")
        axes.set_ylabel(info.y_label or "packet rate [Mpps]")
        axes.grid(axis="y", color=FAINT, lw=0.6, zorder=0)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        legend_below(figure, handles, axes_in=AXES_IN, above_in=0.47)
        note = f"{100 * first.expected.bill.level:g} % intervals"
        header(figure, info.title or f"{first.graph.name}: packet rate", info.note or note)
        machines = dict.fromkeys(each.model.machine for each in found)
        small_print(figure, " · ".join(text for text in (info.machine or ", ".join(machines), info.date) if text))
    return figure


def _draw_line(axes: Axes, first: Prediction) -> Line2D:
    at = np.geomspace(first.sizes[0].frame_bytes, first.sizes[-1].frame_bytes, 80)
    rate = first.conditions.line_rate_bps
    (line,) = axes.plot(
        at, [line_mpps(rate, round(size)) for size in at], color=INK, lw=1.0, ls=(0, (4, 3)),
        label=f"line, {rate / 1e9:g} Gbit/s",
    )  # fmt: skip
    return line


def _draw(axes: Axes, each: Prediction, index: int, label: str) -> Artist:
    colour, marker, line = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)], LINES[index % len(LINES)]
    at = np.geomspace(each.sizes[0].frame_bytes, each.sizes[-1].frame_bytes, 80)
    sizes = [each.rate_at(round(size)) for size in at]
    low = [s.mpps.low for s in sizes]
    high = [s.mpps.high if math.isfinite(s.mpps.high) else s.line_mpps for s in sizes]
    axes.fill_between(at, low, high, color=colour, alpha=0.18, lw=0, zorder=1)
    axes.plot(at, [s.mpps.value for s in sizes], color=colour, lw=1.3, ls=line, zorder=2)
    x, y = [s.frame_bytes for s in each.sizes], [s.mpps.value for s in each.sizes]
    axes.plot(x, y, ls="none", marker=marker, ms=4.6, mfc=PAPER, mec=colour, zorder=3)
    return Line2D([], [], color=colour, lw=1.3, ls=line, marker=marker, ms=4.6, mfc=PAPER, mec=colour, label=label)


def _label(each: Prediction, every: Sequence[Prediction]) -> str:
    """What tells a prediction from the others."""
    parts = [each.model.target]
    if len({p.model.machine for p in every}) > 1:
        parts[0] = each.model.name
    if len({p.graph.name for p in every}) > 1:
        parts.append(each.graph.name)
    if each.values and len({tuple(p.values.items()) for p in every}) > 1:
        parts.append(", ".join(f"{k}={v}" for k, v in each.values.items()))
    if any(p.changes for p in every):
        parts.append("; ".join(each.changes) or "unchanged")
    cores = each.conditions.cores
    parts.append("one core" if cores == 1 else f"{cores} cores")
    return ", ".join(parts)
