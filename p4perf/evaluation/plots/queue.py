"""Figures of queue models, as in Gebert et al. (2016): over the interarrival time, distributions, and measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from p4perf.errors import UsageError
from p4perf.evaluation.load.queueing import Measured, OperatingPoint, nearest
from p4perf.evaluation.plots import style
from p4perf.evaluation.plots.load import Handle
from p4perf.evaluation.plots.style import PlotInfo

AXES_IN = 3.2
DASHES = ("-", (0, (5, 2)), (0, (1, 1.3)), (0, (5, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
"""Styles of the kinds of arrivals."""
MOST_CURVES = 16
"""Most distributions of one figure."""
LEAST_LOSS = 1e-6
WIDE = 30.0
"""Distributions whose largest value is this multiple of the smallest are drawn on a logarithmic axis."""


def queue_figures(points: Sequence[OperatingPoint], measured: Sequence[Measured] = ()) -> dict[str, Figure]:
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


def over_interarrival_figure(
    points: Sequence[OperatingPoint], *, loss: bool = False, info: PlotInfo | None = None
) -> Figure:
    """Mean processing time, or loss, over the mean interarrival time: Fig. 8 and 9 of the paper.

    Colours are moderation intervals, styles of lines are kinds of arrivals.

    Args:
        loss: loss instead of the mean.
    """
    info = info or PlotInfo()
    solved = _solved(points)
    with style.new_figure(style.WIDTH_IN, AXES_IN) as figure:
        axes = figure.add_subplot()
        style.set_grid(axes)
        drawn: list[float] = []
        for interval, kind in _groups(solved):
            group = sorted(
                (p for p in solved if (p.moderation_us, _kind(p)) == (interval, kind)), key=lambda p: p.arrivals.mean_us
            )
            x = [p.arrivals.mean_us for p in group]
            y = [_loss(p) if loss else _mean_us(p) for p in group]
            drawn += y
            axes.plot(
                x, [max(v, LEAST_LOSS) if loss else v for v in y], color=_colour(solved, interval),
                ls=_dashes(solved, kind), lw=1.4, marker=style.marker_of(_index(solved, kind)), ms=3.6, zorder=3,
            )  # fmt: skip
        style.log_axis(axes.xaxis, min(p.arrivals.mean_us for p in solved), max(p.arrivals.mean_us for p in solved))
        if loss:
            style.log_axis(axes.yaxis, LEAST_LOSS, max([v for v in drawn if v > 0], default=1.0))
        else:
            style.log_axis(axes.yaxis, min(drawn), max(drawn))
        axes.set_xlabel(info.x_label or "mean interarrival time [µs]")
        axes.set_ylabel(info.y_label or ("loss ratio" if loss else "mean processing time [µs]"))
        handles = _group_handles(solved)
        if loss and any(v < LEAST_LOSS for v in drawn):
            handles.append(Line2D([], [], ls="none", label=f"at the lower edge: {LEAST_LOSS:g} or less"))
        _finish(
            figure, handles, info, "Loss over interarrival time" if loss else "Processing time over interarrival time"
        )
    return figure


def distribution_figure(points: Sequence[OperatingPoint], *, info: PlotInfo | None = None) -> Figure:
    """Distribution functions of the processing time: Fig. 10 of the paper. At most 16, the first ones."""
    info = info or PlotInfo()
    solved = _solved(points)[:MOST_CURVES]
    rates = list(dict.fromkeys(p.arrivals.mean_us for p in solved))
    with style.new_figure(style.WIDTH_IN, AXES_IN) as figure:
        axes = figure.add_subplot()
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
            dashes = _dashes(solved, _kind(point))
            axes.plot(x[shown], y[shown], drawstyle="steps-post", color=colour, ls=dashes, lw=1.3, zorder=3)
            handles.append(Line2D([], [], color=colour, ls=dashes, lw=1.3, label=_label(point)))
            _draw_simulated(axes, point, colour)
        if any(p.simulated is not None for p in solved):
            handles.append(Line2D([], [], color=style.GREY, ls="none", marker=".", ms=5, label="dots: simulation"))
        axes.set_ylim(0.0, 1.02)
        if max(drawn) > WIDE * min(drawn) > 0:
            style.log_axis(axes.xaxis, min(drawn), max(drawn))
        axes.set_xlabel(info.x_label or "processing time [µs]")
        axes.set_ylabel(info.y_label or "share of packets up to here")
        _finish(figure, handles, info, "Distribution of the processing time")
    return figure


def comparison_figure(
    points: Sequence[OperatingPoint], measured: Sequence[Measured], *, info: PlotInfo | None = None
) -> Figure:
    """Model as bars, measurements with 95 % intervals: Fig. 7 of the paper; latency above, loss below."""
    info = info or PlotInfo()
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
        bottom.set_xlabel(info.x_label or "offered load [Mpps]")
        handles: list[Handle] = [
            Line2D([], [], color=style.colour_of(0), lw=6, alpha=0.75, label="model"),
            Line2D(
                [], [], color=style.INK, marker="o", ms=4, ls="none", label="measured, 95 % interval over repetitions"
            ),
        ]
        style.legend_below(figure, handles, axes_in=1.6 * AXES_IN, above_in=0.47)
        style.frame(figure, info, "Model against measurement")
    return figure


def _finish(figure: Figure, handles: Sequence[Handle], info: PlotInfo, title: str) -> None:
    style.legend_below(figure, handles, axes_in=AXES_IN, above_in=0.47)
    style.frame(figure, info, title)


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


def _mean_us(point: OperatingPoint) -> float:
    return _statistic(point, "mean_us")


def _loss(point: OperatingPoint) -> float:
    return _statistic(point, "loss")


def _statistic(point: OperatingPoint, what: str) -> float:
    if point.result is None:
        return math.nan
    if what == "p50_us":
        return point.result.quantile_us(0.5)
    return point.result.loss if what == "loss" else point.result.mean_us


def _kind(point: OperatingPoint) -> str:
    return point.arrivals.text or point.arrivals.kind


def _kinds(points: Sequence[OperatingPoint]) -> list[str]:
    return list(dict.fromkeys(_kind(p) for p in points))


def _intervals(points: Sequence[OperatingPoint]) -> list[float | None]:
    return list(dict.fromkeys(p.moderation_us for p in points))


def _groups(points: Sequence[OperatingPoint]) -> list[tuple[float | None, str]]:
    return list(dict.fromkeys((p.moderation_us, _kind(p)) for p in points))


def _index(points: Sequence[OperatingPoint], kind: str) -> int:
    return _kinds(points).index(kind)


def _dashes(points: Sequence[OperatingPoint], kind: str) -> str | tuple[int, tuple[float, ...]]:
    return DASHES[_index(points, kind) % len(DASHES)]


def _colour(points: Sequence[OperatingPoint], interval: float | None) -> str:
    return style.colour_of(_intervals(points).index(interval))


def _group_handles(points: Sequence[OperatingPoint]) -> list[Handle]:
    handles: list[Handle] = [
        Line2D([], [], color=_colour(points, interval), lw=2.4, label=f"moderation {interval:g} µs")
        for interval in _intervals(points)
        if interval is not None
    ]
    handles += [
        Line2D(
            [], [], color=style.INK, lw=1.3, ls=_dashes(points, kind), marker=style.marker_of(_index(points, kind)),
            ms=3.6, label=f"arrivals {kind}",
        )
        for kind in _kinds(points)
    ]  # fmt: skip
    return handles


def _label(point: OperatingPoint) -> str:
    head = f"{_kind(point)}, {point.arrivals.mean_us:.4g} µs"
    return head if point.moderation_us is None else f"{head}, moderation {point.moderation_us:g} µs"
