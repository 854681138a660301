"""Figures of load: loss and latency over offered load, distributions of latency, throughput over frame size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator
from matplotlib.transforms import Bbox, blended_transform_factory

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.load import SUPPORT, LatencyHistogram
from p4perf.evaluation.plots import style
from p4perf.evaluation.plots.style import PlotInfo
from p4perf.models.eo.mapping import OVERHEAD_BYTES
from p4perf.models.notation import number
from p4perf.models.templates import FloatArray

LINE_RATES_GBIT_PER_S = (10.0, 25.0, 40.0, 100.0)


@dataclass(frozen=True, slots=True)
class OfferedLoad:
    """What became of one offered load, in all of its repetitions.

    Args:
        fraction: the load as a fraction of the maximum; None if that is unknown.
        rate_mpps: the load as a packet rate, mean over the repetitions.
        losses: loss ratio of each repetition: frames lost / frames sent (RFC 1242, section 3.6).
        frames: those sent in one repetition, the fewest: zero loss means less than one of them.
        flagged: whether it has quality flags; it is drawn hollow then.
        latencies: of the repetitions that have some.
        floor: the latencies of the link without a device: what generator and link add themselves.
    """

    fraction: float | None
    rate_mpps: float
    losses: tuple[float, ...]
    frames: int
    flagged: bool = False
    latencies: tuple[LatencyHistogram, ...] = ()
    floor: LatencyHistogram | None = None

    def __post_init__(self) -> None:
        if any(not 0 <= loss <= 1 for loss in self.losses):
            raise DataError(f"the loss at {self.label} is not between 0 and 1 everywhere")

    @property
    def label(self) -> str:
        rate = f"{self.rate_mpps:.3g} Mpps"
        return rate if self.fraction is None else f"{100 * self.fraction:g} % ({rate})"


@dataclass(frozen=True, slots=True)
class RateBound:
    """A rate that a search found, NDR or PDR, between the largest load known to pass and the smallest known to fail.

    It is the conditional throughput of draft-ietf-bmwg-mlrsearch (RFC 2544, section 26.1); ``loss`` is the loss ratio
    that the search tolerated, 0 to 1.
    """

    label: str
    value: float
    low: float
    high: float
    loss: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class ThroughputCurve:
    """Throughput over frame sizes with the FCS, ascending; a size with quality flags is drawn hollow."""

    label: str
    frame_size_bytes: FloatArray
    rate_mpps: FloatArray
    low_mpps: FloatArray
    high_mpps: FloatArray
    flagged: tuple[bool, ...]

    def __post_init__(self) -> None:
        within = (self.low_mpps <= self.rate_mpps) & (self.rate_mpps <= self.high_mpps)
        if not (within & (self.rate_mpps > 0) & np.isfinite(self.high_mpps)).all():
            raise DataError(f"the throughput {self.label!r} is not positive and within its intervals everywhere")


def line_rate_mpps(frame_size_bytes: float, gbit_per_s: float) -> float:
    """Frames per second that fill an Ethernet link [Mpps]: rate / (8 (frame + 20)).

    The 20 bytes are preamble, start delimiter and interframe gap (RFC 2544, appendix B; IEEE 802.3). For 64 bytes at
    10 Gbit/s it is 14.88 Mpps.
    """
    return 1e3 * gbit_per_s / (8 * (frame_size_bytes + OVERHEAD_BYTES))


FLOOR_DASHES = (0, (4, 2))
OWN_LINE, FLOOR_LINE = {"lw": 1.7, "ls": "-"}, {"lw": 1.2, "ls": FLOOR_DASHES}
Handle = Line2D | Patch


def _fractions(loads: Sequence[OfferedLoad]) -> FloatArray:
    return np.array([load.fraction for load in loads], dtype=np.float64)


def _offered_axis(axes: Axes, high: float, label: str) -> None:
    """The axis of offered load (RFC 2285, section 3.5.2), from zero: loads are not cut off at the left."""
    axes.set_xlabel(label or "offered load [fraction of the maximum]")
    axes.set_xlim(0.0, high * 1.04 if high > 0 else 1.0)
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: style.minus(f"{value:g}")))


def _draw_points(axes: Axes, x: FloatArray, y: FloatArray, flagged: Sequence[bool], index: int) -> None:
    """Markers, filled where a value has no quality flags and hollow where it has; NaN are not drawn."""
    hollow = np.asarray(flagged, dtype=bool)
    for wanted, fill in ((~hollow, style.colour_of(index)), (hollow, style.PAPER)):
        chosen = wanted & np.isfinite(y)
        if chosen.any():
            axes.plot(
                x[chosen], y[chosen], ls="none", marker=style.marker_of(index), ms=4.6, mfc=fill,
                mec=style.colour_of(index), mew=1.0, zorder=5,
            )  # fmt: skip


def _series_handle(index: int, label: str) -> Line2D:
    marks = style.marks(index, 4.6, 1.0, filled=True)
    return Line2D([], [], color=style.colour_of(index), lw=1.4, label=label, **marks)


def _flag_handles(flagged: Iterable[bool]) -> list[Handle]:
    """What a hollow marker means, if there are any."""
    if not any(flagged):
        return []
    label = "hollow: has quality flags"
    return [Line2D([], [], ls="none", marker="o", ms=4.6, mfc=style.PAPER, mec=style.INK, label=label)]


def _draw_bounds(panels: Sequence[Axes], bounds: Sequence[RateBound]) -> list[Handle]:
    """A vertical line for each rate and a band for its bounds, through all panels; handles for the legend.

    Names stand above the lines where they do not hide each other, rates and bounds in the legend. To be called when
    the limits of the axes are final.
    """
    handles: list[Handle] = []
    for index, bound in enumerate(bounds):
        dashes = style.LINES[1 + index % (len(style.LINES) - 1)]
        for axes in panels:
            axes.axvspan(bound.low, bound.high, color=style.INK, alpha=0.12, lw=0, zorder=0.5)
            axes.axvline(bound.value, color=style.INK, lw=1.0, ls=dashes, zorder=1.5)
        tolerated = "" if bound.loss == 0 or "%" in bound.label else f" ({number(100 * bound.loss)} % loss)"
        interval = f"{number(bound.low)} to {number(bound.high)}"
        label = f"{bound.label}{tolerated}: {number(bound.value)} (bounds {interval})"
        handles.append(Line2D([], [], color=style.INK, lw=1.0, ls=dashes, label=label))
    top = panels[0]
    place = blended_transform_factory(top.transData, top.transAxes)
    ordered = sorted(bounds, key=lambda bound: bound.value)
    taken: list[Bbox] = []
    for position, bound in enumerate(ordered):
        # The leftmost name stands left of its line and the others right: two close lines do not hide each other's.
        left = position == 0 and len(ordered) > 1
        name = style.note(
            top, bound.label, (bound.value, 1.0), (-2 if left else 2, 1.5), xycoords=place,
            ha="right" if left else "left", va="bottom", annotation_clip=False,
        )  # fmt: skip
        box = name.get_window_extent()
        if any(box.overlaps(other) for other in taken):
            name.remove()
        else:
            taken.append(box)
    return handles


def _repetitions_text(values: Sequence[Sequence[float]]) -> str:
    """Number of repetitions of points that have any: ``5``, or ``3 to 5``."""
    counts = [len(each) for each in values if len(each)] or [0]
    return f"{max(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def _need_some(what: str, given: Sequence[object]) -> None:
    if not given:
        raise UsageError(f"there is no {what} to draw")


PANELS_IN = (2.7, 0.34)
"""Heights of the loss above zero and of the band for zero."""
THROUGHPUT_IN = 3.3
WORST = 1.0
DEFAULT_BEST = 1e-6
"""Lower end of the axis of loss where nothing was lost at all."""
NEAR = 0.065
"""Labels of sizes that are nearer than this share of the axis hide each other."""


def loss_figure(
    loads: Sequence[OfferedLoad], *, bounds: Sequence[RateBound] = (), info: PlotInfo = style.PLAIN
) -> Figure:
    """Draw loss ratio over offered load: medians as markers, every repetition as a dot.

    A logarithmic axis has no zero, so loads without any loss stand in a band of their own below the broken axis.
    """
    _need_some("loss ratio", loads)
    losses = [load.losses for load in loads]
    if not any(losses):
        raise UsageError("there is no loss ratio to draw: no load has an accepted value")
    with style.new_figure(style.WIDTH_IN, sum(PANELS_IN)) as figure:
        grid = figure.add_gridspec(2, 1, height_ratios=PANELS_IN, hspace=0.05)
        top = figure.add_subplot(grid[0])
        zero = figure.add_subplot(grid[1], sharex=top)
        _set_up_loss(top, zero, [v for values in losses for v in values if v > 0])
        _draw_loss(top, zero, loads)
        top.set_ylabel(info.y_label or "loss ratio")
        top.yaxis.set_label_coords(-0.085, 0.45)
        _offered_axis(zero, max([*_fractions(loads), *(bound.high for bound in bounds)]), info.x_label)
        handles: list[Handle] = [_series_handle(0, "loss")]
        if max(map(len, losses)) > 1:
            label = f"median of {_repetitions_text(losses)} repetitions; each is a dot"
            handles.append(Line2D([], [], ls="none", marker=".", ms=4, color=style.GREY, label=label))
        handles += _flag_handles(load.flagged for load in loads)
        handles += [*_draw_bounds([top, zero], bounds), *_tolerated(top, bounds)]
        note = f"0: none of {min(load.frames for load in loads):,} frames or more".replace(",", "\u2009")
        above_in = 0.6 if bounds else 0.47
        style.finish(figure, handles, info, "Loss over load", axes_in=sum(PANELS_IN), above_in=above_in, note=note)
    return figure


def throughput_figure(curves: Sequence[ThroughputCurve], *, info: PlotInfo = style.PLAIN) -> Figure:
    """Draw throughput over frame size with its intervals, below the rates that fill links."""
    _need_some("throughput", curves)
    sizes = sorted({float(size) for curve in curves for size in curve.frame_size_bytes})
    with style.panel(THROUGHPUT_IN) as (figure, axes):
        style.set_grid(axes)
        ends = _set_up_sizes(axes, sizes)
        values = [float(v) for c in curves for v in (*c.rate_mpps, *c.high_mpps, *c.low_mpps[c.low_mpps > 0])]
        values += [line_rate_mpps(end, rate) for rate in LINE_RATES_GBIT_PER_S for end in (sizes[0], sizes[-1])]
        style.log_axis(axes.yaxis, min(values), max(values))
        for rate in LINE_RATES_GBIT_PER_S:
            _draw_line_rate(axes, ends, rate)
        for index, curve in enumerate(curves):
            _draw_throughput(axes, curve, index)
        axes.set_xlabel(info.x_label or "frame size with FCS [B]")
        axes.set_ylabel(info.y_label or "throughput [Mpps]")
        handles: list[Handle] = [_series_handle(index, f"{c.label} with interval") for index, c in enumerate(curves)]
        handles.append(Line2D([], [], color=style.GREY, lw=0.9, ls=(0, (1, 1.5)), label="line rate of a link"))
        handles += _flag_handles(flag for curve in curves for flag in curve.flagged)
        style.finish(figure, handles, info, "Throughput over frame size", axes_in=THROUGHPUT_IN)
    return figure


def _set_up_loss(top: Axes, zero: Axes, positive: Sequence[float]) -> None:
    """A logarithmic axis up to total loss, and below it, behind a break, a band for zero."""
    style.set_grid(top)
    best = 10.0 ** math.floor(math.log10(min(positive)) + 1e-9) if positive else DEFAULT_BEST
    style.log_axis(top.yaxis, min(best, 0.1), WORST, room=0.04)
    top.tick_params(labelbottom=False, bottom=False)
    top.spines["bottom"].set_visible(False)
    zero.spines[["top", "right"]].set_visible(False)
    zero.axhspan(-1, 1, color=style.INK, alpha=0.05, lw=0, zorder=0)
    zero.set_ylim(-1, 1)
    zero.set_yticks([0.0], ["0"])
    zero.grid(axis="x", color=style.PAPER, lw=0.6)
    zero.set_axisbelow(True)
    for axes, at in ((top, 0.0), (zero, 1.0)):
        axes.plot(
            [0], [at], transform=axes.transAxes, marker=[(-1, -0.5), (1, 0.5)], ms=7, ls="none", color=style.GREY,
            mec=style.GREY, mew=0.9, clip_on=False, zorder=8,
        )  # fmt: skip


def _draw_loss(top: Axes, zero: Axes, loads: Sequence[OfferedLoad]) -> None:
    colour, x, flagged = style.colour_of(0), _fractions(loads), [load.flagged for load in loads]
    middle = np.array([np.median(load.losses) if load.losses else np.nan for load in loads])
    some = np.where(middle > 0, middle, np.nan)
    top.plot(x, some, color=colour, lw=1.4, zorder=3)
    _draw_points(top, x, some, flagged, 0)
    _draw_points(zero, x, np.where(middle == 0, 0.0, np.nan), flagged, 0)
    dots = [(at, v) for at, load in zip(x, loads, strict=True) if len(load.losses) > 1 for v in load.losses]
    for axes, chosen in ((top, [d for d in dots if d[1] > 0]), (zero, [d for d in dots if d[1] == 0])):
        if chosen:
            axes.plot(*zip(*chosen, strict=True), ls="none", marker=".", ms=3, color=colour, alpha=0.6, zorder=4)


def _tolerated(top: Axes, bounds: Sequence[RateBound]) -> list[Handle]:
    """Horizontal lines at the loss that searches tolerated."""
    low = top.get_ylim()[0]
    found = sorted({bound.loss for bound in bounds if bound.loss > low})
    for loss in found:
        top.axhline(loss, color=style.GREY, lw=0.9, ls=(0, (1, 1.5)), zorder=1)
    if not found:
        return []
    said = ", ".join(style.plain(loss) for loss in found)
    return [Line2D([], [], color=style.GREY, lw=0.9, ls=(0, (1, 1.5)), label=f"tolerated loss: {said}")]


def _set_up_sizes(axes: Axes, sizes: Sequence[float]) -> tuple[float, float]:
    """Frame sizes on a logarithmic axis, with a tick at each; labels that would hide their neighbour are left out.

    At the left is room for the names of the links. Returns smallest and largest size.
    """
    low, high = sizes[0], sizes[-1]
    low, high = (low, high) if high > low else (max(low / 1.5, 64.0), high * 1.5)
    length = math.log(high / low)
    axes.set_xscale("log")
    axes.set_xlim(low / math.exp(0.12 * length), high * math.exp(0.04 * length))
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
    axes.plot(x, y, color=style.GREY, lw=0.9, ls=(0, (1, 1.5)), zorder=1.5)
    style.note(axes, f"{gbit_per_s:g} Gbit/s", (x[0], y[0]), (-5, 0), 7.5, color=style.GREY, ha="right", va="center")


def _draw_throughput(axes: Axes, curve: ThroughputCurve, index: int) -> None:
    colour, x, y = style.colour_of(index), curve.frame_size_bytes, curve.rate_mpps
    spread = np.stack([y - curve.low_mpps, curve.high_mpps - y])
    axes.errorbar(x, y, yerr=spread, fmt="none", ecolor=colour, elinewidth=1.0, capsize=2.4, zorder=4)
    axes.plot(x, y, color=colour, lw=1.4, zorder=3)
    _draw_points(axes, x, y, curve.flagged, index)


LATENCY_IN = 3.1
RESOLUTION_US = 1e-3
"""One nanosecond. A latency of zero is drawn here: a logarithmic axis has no zero."""
DRAWN = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99.9": 99.9}
"""Percentiles of the figure over load."""
TAIL_MARKS = {"p50": 0.5, "p90": 0.1, "p99": 0.01, "p99.9": 1e-3, "p99.99": 1e-4, "p99.999": 1e-5}


def latency_distribution_figure(
    loads: Sequence[OfferedLoad], *, complementary: bool = False, info: PlotInfo = style.PLAIN
) -> Figure:
    """Draw the distribution of latencies at several loads, and the noise floors of the same link dashed.

    ``complementary`` draws the share of samples above a latency, both axes logarithmic, so that the tail can be seen;
    it is thin where fewer than ten samples lie beyond and so mostly chance.
    """
    _need_some("latency distribution", loads)
    latencies = [load.latencies[0].merge(*load.latencies[1:]) for load in loads]
    floors = [load.floor for load in loads]
    every = latencies + [floor for floor in floors if floor is not None]
    with style.panel(LATENCY_IN) as (figure, axes):
        style.set_grid(axes)
        draw = _draw_tail if complementary else _draw_cumulative
        for index, (latency, floor) in enumerate(zip(latencies, floors, strict=True)):
            if floor is not None:
                draw(axes, floor, color=style.colour_of(index), **FLOOR_LINE)
            draw(axes, latency, color=style.colour_of(index), **OWN_LINE)
        values = [max(float(end), RESOLUTION_US) for each in every for end in each.cumulative()[0][[0, -1]]]
        style.log_axis(axes.xaxis, min(values), max(values))
        axes.set_xlabel(info.x_label or "latency [µs]")
        handles: list[Handle] = [
            Line2D([], [], color=style.colour_of(n), lw=1.6, label=f"{load.label} ({latency.samples} samples)")
            for n, (load, latency) in enumerate(zip(loads, latencies, strict=True))
        ]
        if len(every) > len(loads):
            handles.append(_floor_handle())
        if complementary:
            style.log_axis(axes.yaxis, min(float(_above(each)[1].min()) for each in every), 1.0, room=0.02)
            axes.set_ylabel(info.y_label or "share of samples above")
            _mark_percentiles(axes)
            label = f"thin: fewer than {SUPPORT} samples beyond"
            handles.append(Line2D([], [], color=style.GREY, lw=0.7, label=label))
        else:
            axes.set_ylim(0.0, 1.02)
            axes.set_ylabel(info.y_label or "share of samples up to here")
        style.finish(figure, handles, info, "Latency", axes_in=LATENCY_IN)
        if complementary:
            figure.subplots_adjust(right=style.RIGHT - 0.045)
    return figure


def latency_over_load_figure(loads: Sequence[OfferedLoad], *, info: PlotInfo = style.PLAIN) -> Figure:
    """Draw percentiles of the latency over offered load: medians over the repetitions, and bands from least to most.

    A gap is a load without a supported value. Points with quality flags are hollow; noise floors are dashed.
    """
    _need_some("latency", loads)
    lines = {name: [_supported(load.latencies, p) for load in loads] for name, p in DRAWN.items()}
    floors = {name: [_supported((load.floor,), p) for load in loads] for name, p in DRAWN.items()}
    every = [values for line in lines.values() for values in line]
    if not any(every):
        raise UsageError("there is no latency to draw: no load has an accepted value")
    with style.panel(LATENCY_IN) as (figure, axes):
        style.set_grid(axes)
        for index, name in enumerate(DRAWN):
            _draw_percentile(axes, loads, lines[name], floors[name], index)
        drawn = [v for found in (lines, floors) for line in found.values() for values in line for v in values]
        style.log_axis(axes.yaxis, min(drawn), max(drawn))
        axes.set_ylabel(info.y_label or "latency [µs]")
        _offered_axis(axes, max(_fractions(loads)), info.x_label)
        labels = [name if any(line) else f"{name}: no supported value" for name, line in lines.items()]
        handles: list[Handle] = [_series_handle(index, label) for index, label in enumerate(labels)]
        if max(map(len, every)) > 1:
            label = f"median and range of {_repetitions_text(every)} repetitions"
            handles.append(Patch(color=style.GREY, alpha=0.25, lw=0, label=label))
        if any(map(any, floors.values())):
            handles.append(_floor_handle())
        handles += _flag_handles(load.flagged for load in loads)
        style.finish(figure, handles, info, "Latency over load", axes_in=LATENCY_IN)
    return figure


def _supported(latencies: Sequence[LatencyHistogram | None], percentile: float) -> list[float]:
    """A percentile [µs] of the histograms that have enough samples for it."""
    values = [latency.percentiles((percentile,))[percentile] for latency in latencies if latency is not None]
    return [value for value in values if value is not None and value > 0]


def _floor_handle() -> Line2D:
    return Line2D([], [], color=style.GREY, lw=1.2, ls=FLOOR_DASHES, label="dashed: noise floor of the link, same load")


def _draw_cumulative(axes: Axes, latency: LatencyHistogram, **line: Any) -> None:
    """Steps from zero at the smallest latency to one."""
    value_us, share = latency.cumulative()
    x = np.maximum(value_us, RESOLUTION_US)
    x, y = np.concatenate([x[:1], x]), np.concatenate([[0.0], share])
    axes.plot(x, y, drawstyle="steps-post", zorder=3, **line)


def _above(latency: LatencyHistogram) -> tuple[FloatArray, FloatArray]:
    """Corners of the steps of the share above a latency. It is zero from the largest latency on: no point for that."""
    value_us, share = latency.cumulative()
    above = np.concatenate([[1.0], 1.0 - share[:-1]])
    # Rounding may leave a tail that is not there, or a negative one.
    known = above > 0.5 / latency.samples
    return np.maximum(value_us, RESOLUTION_US)[known], above[known]


def _draw_tail(axes: Axes, latency: LatencyHistogram, **line: Any) -> None:
    """Steps from one down to the share of the largest latency, thin where fewer than ten samples lie beyond."""
    x, y = _above(latency)
    # The share above changes at each latency: it is y[k] from x[k - 1] to x[k].
    sure = max(int(np.sum(y >= SUPPORT / latency.samples * (1 - 1e-9))), 1)
    axes.plot(x[:sure], y[:sure], drawstyle="steps-pre", zorder=3, **line)
    if sure < len(y):
        axes.plot(x[sure - 1 :], y[sure - 1 :], drawstyle="steps-pre", color=line["color"], lw=0.7, zorder=3)


def _mark_percentiles(axes: Axes) -> None:
    """Names of percentiles right of the axes, at their shares."""
    low, high = axes.get_ylim()
    place = blended_transform_factory(axes.transAxes, axes.transData)
    for name, share in TAIL_MARKS.items():
        if low < share < high:
            axes.text(1.008, share, name, transform=place, ha="left", va="center", fontsize=7.5, color=style.GREY)


def _draw_percentile(
    axes: Axes,
    loads: Sequence[OfferedLoad],
    values: Sequence[Sequence[float]],
    floors: Sequence[Sequence[float]],
    index: int,
) -> None:
    """A percentile over load, from the values of the repetitions of each load, and that of the noise floors."""
    colour, x = style.colour_of(index), _fractions(loads)
    known = [each or [np.nan] for each in values]
    middle = np.array([np.median(each) for each in known])
    axes.fill_between(x, [min(v) for v in known], [max(v) for v in known], color=colour, alpha=0.16, lw=0, zorder=1)
    axes.plot(x, middle, color=colour, lw=1.4, zorder=3)
    _draw_points(axes, x, middle, [load.flagged for load in loads], index)
    floor = [(at, each[0]) for at, each in zip(x, floors, strict=True) if each]
    if floor:
        axes.plot(*zip(*floor, strict=True), color=colour, lw=1.1, ls=FLOOR_DASHES, zorder=2)
