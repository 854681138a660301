"""Figures of queue models, as in Gebert et al. (2016): over the interarrival time, distributions, and measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from p4perf.errors import UsageError
from p4perf.evaluation.load.queueing import MeasuredLoad, OperatingPoint, nearest
from p4perf.evaluation.plots import style
from p4perf.evaluation.plots.load import Handle

AXES_IN = 3.2
DASHES = ("-", (0, (5, 2)), (0, (1, 1.3)), (0, (5, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
"""Styles of the kinds of arrivals."""
MOST_CURVES = 16
"""Most distributions of one figure."""
LEAST_LOSS = 1e-6
WIDE = 30.0
"""Distributions whose largest value is this multiple of the smallest are drawn on a logarithmic axis."""


def queue_figures(points: Sequence[OperatingPoint], measured: Sequence[MeasuredLoad] = ()) -> dict[str, Figure]:
    """All figures that the points allow, by name.

    ``delay`` and ``loss`` over the mean interarrival time need several rates, ``measured`` needs measurements at rates
    of the points; ``cdf`` is there always.
    """
    if not points:
        raise UsageError("there is no operating point to draw")
    found = {"cdf": distribution_figure(points)}
    if len({p.arrivals.mean_us for p in points}) > 1:
        found["delay"] = over_interarrival_figure(points)
        found["loss"] = over_interarrival_figure(points, loss=True)
    if any(nearest(measured, p.rate_mpps) for p in points):
        found["measured"] = comparison_figure(points, measured)
    return found


def over_interarrival_figure(points: Sequence[OperatingPoint], *, loss: bool = False) -> Figure:
    """Mean processing time, or loss, over the mean interarrival time: Fig. 8 and 9 of the paper.

    Colours are moderation intervals, styles of lines are kinds of arrivals.
    """
    solved = _solved(points)
    colours, looks = _colours(solved), _looks(solved)
    with style.panel(AXES_IN) as (figure, axes):
        style.set_grid(axes)
        drawn: list[float] = []
        for interval, kind in dict.fromkeys((p.moderation_us, _kind(p)) for p in solved):
            group = sorted(
                (p for p in solved if (p.moderation_us, _kind(p)) == (interval, kind)), key=lambda p: p.arrivals.mean_us
            )
            x = [p.arrivals.mean_us for p in group]
            y = [_statistic(p, "loss" if loss else "mean_us") for p in group]
            drawn += y
            axes.plot(
                x, [max(v, LEAST_LOSS) if loss else v for v in y], color=colours[interval], lw=1.4, ms=3.6, zorder=3,
                **looks[kind],
            )  # fmt: skip
        style.log_axis(axes.xaxis, min(p.arrivals.mean_us for p in solved), max(p.arrivals.mean_us for p in solved))
        if loss:
            style.log_axis(axes.yaxis, LEAST_LOSS, max([v for v in drawn if v > 0], default=1.0))
        else:
            style.log_axis(axes.yaxis, min(drawn), max(drawn))
        axes.set_xlabel("mean interarrival time [µs]")
        axes.set_ylabel("loss ratio" if loss else "mean processing time [µs]")
        handles: list[Handle] = [
            Line2D([], [], color=colour, lw=2.4, label=f"moderation {interval:g} µs")
            for interval, colour in colours.items()
            if interval is not None
        ]
        for kind, look in looks.items():
            handles.append(Line2D([], [], color=style.INK, lw=1.3, ms=3.6, label=f"arrivals {kind}", **look))
        if loss and any(v < LEAST_LOSS for v in drawn):
            handles.append(Line2D([], [], ls="none", label=f"at the lower edge: {LEAST_LOSS:g} or less"))
        title = f"{'Loss' if loss else 'Processing time'} over interarrival time"
        style.finish(figure, handles, style.PLAIN, title, axes_in=AXES_IN)
    return figure


def distribution_figure(points: Sequence[OperatingPoint]) -> Figure:
    """Distribution functions of the processing time: Fig. 10 of the paper. At most 16, the first ones."""
    solved = _solved(points)[:MOST_CURVES]
    looks = _looks(solved)
    rates = list(dict.fromkeys(p.arrivals.mean_us for p in solved))
    with style.panel(AXES_IN) as (figure, axes):
        style.set_grid(axes)
        handles: list[Handle] = []
        drawn: list[float] = []
        for point in solved:
            result = point.result
            if result is None:
                continue
            x, y = result.cdf()
            ends = np.searchsorted(y, (1e-6, 1 - 1e-6))
            shown = slice(max(int(ends[0]) - 1, 0), int(ends[1]) + 1)
            drawn += [float(x[shown][0]), float(x[shown][-1])]
            colour = style.colour_of(rates.index(point.arrivals.mean_us))
            dashes = looks[_kind(point)]["ls"]
            axes.plot(x[shown], y[shown], drawstyle="steps-post", color=colour, ls=dashes, lw=1.3, zorder=3)
            handles.append(Line2D([], [], color=colour, ls=dashes, lw=1.3, label=_label(point)))
            _draw_simulated(axes, point, colour)
        if any(p.simulated is not None for p in solved):
            handles.append(Line2D([], [], color=style.GREY, ls="none", marker=".", ms=5, label="dots: simulation"))
        axes.set_ylim(0.0, 1.02)
        if max(drawn) > WIDE * min(drawn) > 0:
            style.log_axis(axes.xaxis, min(drawn), max(drawn))
        axes.set_xlabel("processing time [µs]")
        axes.set_ylabel("share of packets up to here")
        style.finish(figure, handles, style.PLAIN, "Distribution of the processing time", axes_in=AXES_IN)
    return figure


def comparison_figure(points: Sequence[OperatingPoint], measured: Sequence[MeasuredLoad]) -> Figure:
    """Model as bars, measurements with 95 % intervals: Fig. 7 of the paper; latency above, loss below."""
    pairs = [(p, m) for p in _solved(points) if (m := nearest(measured, p.rate_mpps)) is not None]
    if not pairs:
        raise UsageError("there is no measurement at the load of any point")
    name = "mean_us" if all("mean_us" in m.values for _, m in pairs) else "p50_us"
    with style.new_figure(style.WIDTH_IN, 1.6 * AXES_IN) as figure:
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        at = np.arange(len(pairs))
        for axes, what in ((top, name), (bottom, "loss")):
            style.set_grid(axes, "y")
            model = [_statistic(p, what) for p, _ in pairs]
            axes.bar(at, model, width=0.6, color=style.colour_of(0), alpha=0.75, zorder=2)
            known = [(k, m.values[what]) for k, (_, m) in enumerate(pairs) if what in m.values]
            widths = [e.half_width if math.isfinite(e.half_width) else 0.0 for _, e in known]
            axes.errorbar(
                [k for k, _ in known], [e.value for _, e in known], yerr=widths, fmt="o", ms=4, color=style.INK,
                capsize=3, lw=1.1, zorder=4,
            )  # fmt: skip
        top.set_ylabel("mean processing time [µs]" if name == "mean_us" else "median processing time [µs]")
        bottom.set_ylabel("loss ratio")
        bottom.set_ylim(bottom=0.0)
        bottom.set_xticks(at, [f"{p.rate_mpps:.4g}" for p, _ in pairs])
        bottom.set_xlabel("offered load [Mpps]")
        handles: list[Handle] = [
            Line2D([], [], color=style.colour_of(0), lw=6, alpha=0.75, label="model"),
            Line2D(
                [], [], color=style.INK, marker="o", ms=4, ls="none", label="measured, 95 % interval over repetitions"
            ),
        ]
        style.finish(figure, handles, style.PLAIN, "Model against measurement", axes_in=1.6 * AXES_IN)
    return figure


def _draw_simulated(axes: Axes, point: OperatingPoint, colour: str) -> None:
    if point.simulated is None:
        return
    delay = point.simulated.delay
    shares = np.linspace(0.02, 0.98, 25)
    x = [delay.quantile(float(s)) * point.simulated.step_us for s in shares]
    y = [float(delay.cumulative[min(int(v / point.simulated.step_us + 0.5) - delay.first, delay.cumulative.size - 1)])
         for v in x]  # fmt: skip
    axes.plot(x, y, ls="none", marker=".", ms=4, color=colour, zorder=4)


def _solved(points: Sequence[OperatingPoint]) -> list[OperatingPoint]:
    found = [p for p in points if p.result is not None]
    if not found:
        raise UsageError("there is no operating point to draw")
    return found


def _statistic(point: OperatingPoint, what: str) -> float:
    if point.result is None:
        return math.nan
    if what == "p50_us":
        return point.result.quantile_us(0.5)
    return point.result.loss if what == "loss" else point.result.mean_us


def _kind(point: OperatingPoint) -> str:
    return point.arrivals.text or point.arrivals.kind


def _colours(points: Sequence[OperatingPoint]) -> dict[float | None, str]:
    """A colour for each moderation interval."""
    intervals = dict.fromkeys(p.moderation_us for p in points)
    return {interval: style.colour_of(n) for n, interval in enumerate(intervals)}


def _looks(points: Sequence[OperatingPoint]) -> dict[str, dict[str, Any]]:
    """Line and marker for each kind of arrivals, as arguments of matplotlib."""
    kinds = dict.fromkeys(map(_kind, points))
    return {kind: {"ls": DASHES[n % len(DASHES)], "marker": style.marker_of(n)} for n, kind in enumerate(kinds)}


def _label(point: OperatingPoint) -> str:
    head = f"{_kind(point)}, {point.arrivals.mean_us:.4g} µs"
    return head if point.moderation_us is None else f"{head}, moderation {point.moderation_us:g} µs"
