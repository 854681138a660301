"""Figures of load: loss over offered load, throughput over frame size, and those of latency."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter, NullLocator

from p4perf.errors import UsageError
from p4perf.evaluation.plots.latency import latency_distribution_figure, latency_over_load_figure
from p4perf.evaluation.plots.load_data import (
    LINE_RATES_GBIT_PER_S,
    Handle,
    LatencyCurve,
    LatencyLine,
    LossCurve,
    Offered,
    RateBound,
    ThroughputCurve,
    array,
    colour_of,
    draw_bounds,
    draw_points,
    flag_handle,
    line_rate_mpps,
    log_axis,
    need_some,
    offered_axis,
    plain,
    repetitions,
    repetitions_text,
    series_handle,
    set_grid,
)
from p4perf.evaluation.plots.style import (
    GREY,
    INK,
    PAPER,
    WIDTH_IN,
    PlotInfo,
    header,
    legend_below,
    new_figure,
    small_print,
)

__all__ = [
    "LatencyCurve",
    "LatencyLine",
    "LossCurve",
    "Offered",
    "RateBound",
    "ThroughputCurve",
    "array",
    "latency_distribution_figure",
    "latency_over_load_figure",
    "line_rate_mpps",
    "loss_figure",
    "repetitions",
    "throughput_figure",
]

PANELS_IN = (2.7, 0.34)
"""Heights of the loss above zero and of the band for zero."""
AXES_IN = 3.3
WORST = 1.0
DEFAULT_BEST = 1e-6
"""Lower end of the axis of loss where nothing was lost at all."""
NEAR = 0.065
"""Labels of sizes that are nearer than this share of the axis hide each other."""


def loss_figure(
    curves: Sequence[LossCurve],
    *,
    unit: Offered = Offered.SHARE,
    bounds: Sequence[RateBound] = (),
    info: PlotInfo | None = None,
) -> Figure:
    """Draw loss ratio over offered load: medians as markers, every repetition as a dot.

    A logarithmic axis has no zero, so loads without any loss stand in a band of their own below the broken axis.

    Args:
        curves: one for each device or frame size.

    Raises:
        UsageError: there is no curve, or not a single value on any.
    """
    need_some("loss ratio", curves)
    every = [values for curve in curves for values in curve.loss]
    if not any(every):
        raise UsageError("there is no loss ratio to draw: no load has an accepted value")
    info = info or PlotInfo()
    with new_figure(WIDTH_IN, sum(PANELS_IN)) as figure:
        grid = figure.add_gridspec(2, 1, height_ratios=PANELS_IN, hspace=0.05)
        top = figure.add_subplot(grid[0])
        zero = figure.add_subplot(grid[1], sharex=top)
        _set_up_loss(top, zero, [v for values in every for v in values if v > 0])
        for index, curve in enumerate(curves):
            _draw_loss(top, zero, curve, index)
        top.set_ylabel(info.y_label or "loss ratio")
        top.yaxis.set_label_coords(-0.085, 0.45)
        loads = [float(x) for curve in curves for x in curve.offered] + [bound.high for bound in bounds]
        offered_axis(zero, unit, loads, info.x_label)
        handles: list[Handle] = [series_handle(index, curve.label) for index, curve in enumerate(curves)]
        if max(map(len, every)) > 1:
            label = f"median of {repetitions_text(every)} repetitions; each is a dot"
            handles.append(Line2D([], [], ls="none", marker=".", ms=4, color=GREY, label=label))
        if any(curve.flagged and any(curve.flagged) for curve in curves):
            handles.append(flag_handle())
        handles += draw_bounds([top, zero], bounds)
        handles += _tolerated(top, bounds)
        legend_below(figure, handles, axes_in=sum(PANELS_IN), above_in=0.6 if bounds else 0.47)
        header(figure, info.title or "Loss over load", info.note or _frames_note(curves))
        small_print(figure, " · ".join(text for text in (info.machine, info.date) if text))
    return figure


def throughput_figure(
    curves: Sequence[ThroughputCurve],
    *,
    line_rates_gbit_per_s: Sequence[float] = LINE_RATES_GBIT_PER_S,
    info: PlotInfo | None = None,
) -> Figure:
    """Draw throughput over frame size with its intervals, below the rates that fill links.

    Args:
        line_rates_gbit_per_s: links whose line rates are drawn [Gbit/s].

    Raises:
        UsageError: there is no curve, or a line rate is not positive.
    """
    need_some("throughput", curves)
    info = info or PlotInfo()
    sizes = sorted({float(size) for curve in curves for size in curve.frame_size_bytes})
    with new_figure(WIDTH_IN, AXES_IN) as figure:
        axes = figure.add_subplot()
        set_grid(axes)
        ends = _set_up_sizes(axes, sizes, room=0.12 if line_rates_gbit_per_s else 0.04)
        values = [float(v) for c in curves for v in (*c.rate_mpps, *c.high_mpps, *c.low_mpps[c.low_mpps > 0])]
        values += [line_rate_mpps(end, rate) for rate in line_rates_gbit_per_s for end in (sizes[0], sizes[-1])]
        log_axis(axes.yaxis, min(values), max(values))
        for rate in line_rates_gbit_per_s:
            _draw_line_rate(axes, ends, rate)
        for index, curve in enumerate(curves):
            _draw_throughput(axes, curve, index)
        axes.set_xlabel(info.x_label or "frame size with FCS [B]")
        axes.set_ylabel(info.y_label or "throughput [Mpps]")
        handles: list[Handle] = [series_handle(index, f"{c.label} with interval") for index, c in enumerate(curves)]
        if line_rates_gbit_per_s:
            handles.append(Line2D([], [], color=GREY, lw=0.9, ls=(0, (1, 1.5)), label="line rate of a link"))
        if any(curve.flagged and any(curve.flagged) for curve in curves):
            handles.append(flag_handle())
        legend_below(figure, handles, axes_in=AXES_IN, above_in=0.47)
        header(figure, info.title or "Throughput over frame size", info.note)
        small_print(figure, " · ".join(text for text in (info.machine, info.date) if text))
    return figure


def _set_up_loss(top: Axes, zero: Axes, positive: Sequence[float]) -> None:
    """A logarithmic axis up to total loss, and below it, behind a break, a band for zero."""
    set_grid(top)
    best = 10.0 ** math.floor(math.log10(min(positive)) + 1e-9) if positive else DEFAULT_BEST
    log_axis(top.yaxis, min(best, 0.1), WORST, room=0.04)
    top.tick_params(labelbottom=False, bottom=False)
    top.spines["bottom"].set_visible(False)
    zero.spines[["top", "right"]].set_visible(False)
    zero.axhspan(-1, 1, color=INK, alpha=0.05, lw=0, zorder=0)
    zero.set_ylim(-1, 1)
    zero.set_yticks([0.0], ["0"])
    zero.grid(axis="x", color=PAPER, lw=0.6)
    zero.set_axisbelow(True)
    for axes, at in ((top, 0.0), (zero, 1.0)):
        axes.plot(
            [0], [at], transform=axes.transAxes, marker=[(-1, -0.5), (1, 0.5)], ms=7, ls="none", color=GREY, mec=GREY,
            mew=0.9, clip_on=False, zorder=8,
        )  # fmt: skip


def _draw_loss(top: Axes, zero: Axes, curve: LossCurve, index: int) -> None:
    colour, x = colour_of(index), curve.offered
    nothing = float("nan")
    middle = np.array([float(np.median(v)) if v else nothing for v in curve.loss])
    flagged = curve.flagged or (False,) * len(middle)
    top.plot(x, np.where(middle > 0, middle, nothing), color=colour, lw=1.4, zorder=3)
    draw_points(top, x.tolist(), np.where(middle > 0, middle, nothing).tolist(), flagged, index)
    draw_points(zero, x.tolist(), np.where(middle == 0, 0.0, nothing).tolist(), flagged, index)
    dots = [(float(at), v) for at, values in zip(x, curve.loss, strict=True) if len(values) > 1 for v in values]
    for axes, chosen in ((top, [d for d in dots if d[1] > 0]), (zero, [d for d in dots if d[1] == 0])):
        if chosen:
            axes.plot(*zip(*chosen, strict=True), ls="none", marker=".", ms=3, color=colour, alpha=0.6, zorder=4)


def _tolerated(top: Axes, bounds: Sequence[RateBound]) -> list[Handle]:
    """Horizontal lines at the loss that searches tolerated."""
    low = top.get_ylim()[0]
    found = sorted({bound.loss for bound in bounds if bound.loss > low})
    for loss in found:
        top.axhline(loss, color=GREY, lw=0.9, ls=(0, (1, 1.5)), zorder=1)
    if not found:
        return []
    said = ", ".join(plain(loss) for loss in found)
    return [Line2D([], [], color=GREY, lw=0.9, ls=(0, (1, 1.5)), label=f"tolerated loss: {said}")]


def _frames_note(curves: Sequence[LossCurve]) -> str:
    known = [curve.frames for curve in curves if curve.frames is not None]
    return f"0: none of {min(known):,} frames or more".replace(",", "\u2009") if len(known) == len(curves) else ""


def _set_up_sizes(axes: Axes, sizes: Sequence[float], *, room: float) -> tuple[float, float]:
    """Frame sizes on a logarithmic axis, with a tick at each; labels that would hide their neighbour are left out.

    At the left is room for the names of the links, a share of the range of sizes. Returns smallest and largest size.
    """
    low, high = sizes[0], sizes[-1]
    low, high = (low, high) if high > low else (max(low / 1.5, 64.0), high * 1.5)
    length = math.log(high / low)
    axes.set_xscale("log")
    axes.set_xlim(low / math.exp(room * length), high * math.exp(0.04 * length))
    labels: list[str] = []
    last = math.inf
    for size in reversed(sizes):
        at = math.log(size / low) / length
        near = last - at < NEAR
        labels.append("" if near else f"{size:g}")
        last = last if near else at
    axes.xaxis.set_major_locator(FixedLocator(list(sizes)))
    axes.xaxis.set_major_formatter(FixedFormatter(labels[::-1]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    return low, high


def _draw_line_rate(axes: Axes, ends: tuple[float, float], gbit_per_s: float) -> None:
    x = np.geomspace(*ends, 100)
    y = [line_rate_mpps(float(size), gbit_per_s) for size in x]
    axes.plot(x, y, color=GREY, lw=0.9, ls=(0, (1, 1.5)), zorder=1.5)
    axes.annotate(
        f"{gbit_per_s:g} Gbit/s", xy=(x[0], y[0]), xytext=(-5, 0), textcoords="offset points", fontsize=7.5,
        color=GREY, ha="right", va="center",
    )  # fmt: skip


def _draw_throughput(axes: Axes, curve: ThroughputCurve, index: int) -> None:
    colour, x, y = colour_of(index), curve.frame_size_bytes, curve.rate_mpps
    spread = np.stack([y - curve.low_mpps, curve.high_mpps - y])
    axes.errorbar(x, y, yerr=spread, fmt="none", ecolor=colour, elinewidth=1.0, capsize=2.4, zorder=4)
    axes.plot(x, y, color=colour, lw=1.4, zorder=3)
    draw_points(axes, x.tolist(), y.tolist(), curve.flagged or [False] * y.size, index)
