"""The figures of a component model: measured medians, fitted segments, breakpoints, cache sizes, residuals."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.transforms import Bbox, blended_transform_factory

from p4perf.evaluation.fitting.error_metrics import error_text
from p4perf.evaluation.fitting.working_set import CacheMark, size_text
from p4perf.evaluation.plots import style
from p4perf.evaluation.plots.style import PlotInfo
from p4perf.models import ComponentModel, Fitting
from p4perf.models.notation import number
from p4perf.models.templates import FloatArray
from p4perf.results.table import Samples

DASHES = (0, (5, 3))
LABEL_LENGTH = 88
"""Characters in a line of a legend."""
CLEARANCE_PX = 12
"""What a label keeps away from points: the radius of a marker, and the gap between label and line."""


def trials_text(samples: Samples) -> str:
    fewest, most = min(map(len, samples.values)), max(map(len, samples.values))
    return f"{most}" if fewest == most else f"{fewest} to {most}"


def repeated(samples: Samples) -> bool:
    return max(map(len, samples.values)) > 1


def draw_samples(axes: Axes, samples: Samples, *, size: float = 1.0) -> Line2D:
    """Medians, with 95 % bootstrap intervals where there are repetitions."""
    x, median = np.asarray(samples.x), samples.medians()
    label = "measured"
    if repeated(samples):
        label = f"median of {trials_text(samples)} trials, 95 % interval"
        ends = samples.intervals()
        spread = np.abs(np.stack([median - ends[:, 0], ends[:, 1] - median]))
        axes.errorbar(
            x, median, yerr=spread, fmt="none", ecolor="#8a8a8a", elinewidth=0.9 * size, capsize=1.8 * size,
            capthick=0.8 * size, zorder=4,
        )  # fmt: skip
    few = len(x) <= 80
    (line,) = axes.plot(
        x, median, ls="none", marker="o", ms=(4.2 if few else 2.8) * size, mfc=style.PAPER,
        mec=style.INK if few else style.GREY, mew=(0.7 if few else 0.45) * size, zorder=4.5, label=label,
    )  # fmt: skip
    return line


def draw_segment(axes: Axes, model: ComponentModel, index: int, *, width: float = 1.8) -> Line2D:
    """The curve of one segment, with its band if it has one. A segment of one sample becomes a short dash."""
    segment = model.fitting.segments[index]
    colour = style.colour_of(index)
    x = dense(model, segment)
    estimate = model.estimate(x)
    if np.isfinite(estimate.low).all():
        axes.fill_between(x, estimate.low, estimate.high, color=colour, alpha=0.16, lw=0, zorder=2)
    (line,) = axes.plot(
        x, segment.evaluate(x), color=colour, lw=width, solid_capstyle="round", zorder=5,
        label=segment_label(model, index), marker="_" if segment.start == segment.end else "", ms=5.0, mew=width,
    )  # fmt: skip
    return line


def segment_label(model: ComponentModel, index: int) -> str:
    """Where a segment is and what its function is: ``1 to 100: 150 + 0.08 entries``.

    Where formulas are long, the variable is called x in all of them; one that is still too long takes several lines.
    """
    segments = model.fitting.segments
    ranges = [""] if len(segments) == 1 else [f"{range_text(segment)}:  " for segment in segments]

    def label(at: int, name: str) -> str:
        return ranges[at] + style.pretty(segments[at].text(x=name, y="y").removeprefix("y = "))

    long = any(len(label(at, model.x.name)) > LABEL_LENGTH for at in range(len(segments)))
    text = label(index, "x" if long else model.x.name)
    return textwrap.fill(text, LABEL_LENGTH, subsequent_indent="      ", break_long_words=False)


def range_text(segment: Fitting) -> str:
    """The abscissae of a segment, ``1 to 100``."""
    ends = [style.tick(float(f"{x:.4g}")) for x in (segment.start, segment.end)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def dense(model: ComponentModel, segment: Fitting) -> FloatArray:
    """Abscissae of a segment that are close enough for a smooth line."""
    if model.x.scale == "log" and segment.start > 0:
        inner = np.geomspace(segment.start, segment.end, 200)
        return np.clip(inner, segment.start, segment.end)
    return np.linspace(segment.start, segment.end, 200)


def breakpoint_lines(axes: Axes, model: ComponentModel, *, width: float = 0.9) -> None:
    for x in model.fitting.breakpoint_x:
        axes.axvline(x, color=style.INK, lw=width, ls=DASHES, zorder=1)


def breakpoint_intervals(axes: Axes, model: ComponentModel) -> None:
    """A grey band for the interval of each breakpoint, if the model has them."""
    if model.uncertainty is not None:
        for known in model.uncertainty.breakpoints:
            axes.axvspan(known.low, known.high, color=style.INK, alpha=0.06, lw=0, zorder=0)


def label_breakpoints(axes: Axes, breakpoints: Sequence[float], drawn: FloatArray) -> None:
    """Write the place of each breakpoint along its line, where it hides the least of what is drawn.

    To be called last: it looks at pixels, so limits and margins have to be final.

    Args:
        drawn: points that should stay visible, shape (n, 2), in units of the axes.
    """
    pixels = axes.transData.transform(drawn)
    place = blended_transform_factory(axes.transData, axes.transAxes)
    taken: list[Bbox] = []
    for x in breakpoints:
        best: tuple[int, Text | None, Bbox | None] = (0, None, None)
        for height, side in ((0.985, "right"), (0.985, "left"), (0.015, "right"), (0.015, "left")):
            text = axes.annotate(
                f"breakpoint at {style.tick(float(f'{x:.3g}'))}",
                xy=(x, height), xycoords=place, xytext=(-2 if side == "right" else 2, 0), textcoords="offset points",
                rotation=90, ha=side, va="top" if height > 0.5 else "bottom", fontsize=8, color=style.INK,
                bbox={"boxstyle": "round,pad=0.15", "fc": style.PAPER, "ec": "none", "alpha": 0.85}, zorder=7,
            )  # fmt: skip
            box = text.get_window_extent().padded(CLEARANCE_PX)
            inside = (pixels >= box.min).all(axis=1) & (pixels <= box.max).all(axis=1)
            hidden = int(inside.sum()) + 1000 * sum(box.overlaps(other) for other in taken)
            if best[1] is None or hidden < best[0]:
                if best[1] is not None:
                    best[1].remove()
                best = (hidden, text, box)
            else:
                text.remove()
            if best[0] == 0:
                break
        if best[2] is not None:
            taken.append(best[2])


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
        samples: what was measured: medians with 95 % bootstrap intervals.
        baseline: value of the baseline program in the unit of y, a thin horizontal line.
    """
    info = info or PlotInfo()
    with style.new_figure(style.WIDTH_IN, AXES_IN) as figure:
        axes = figure.add_subplot()
        style.set_up_axes(axes, model, info)
        handles: list[Line2D] = []
        if samples is not None:
            handles.append(draw_samples(axes, samples))
        handles += [draw_segment(axes, model, index) for index in range(len(model.fitting.segments))]
        if baseline is not None:
            line = axes.axhline(baseline, color=style.GREY, lw=1.0, ls=(0, (1, 1.5)), zorder=1)
            line.set_label(f"baseline: {style.minus(number(baseline))}")
            handles.append(line)
        set_limits(axes, model, samples, baseline)
        breakpoint_intervals(axes, model)
        breakpoint_lines(axes, model)
        style.legend_below(figure, handles, axes_in=AXES_IN, above_in=0.75 if marks else 0.47)
        style.header(figure, info.title or model.name or "component model", _note(model, info))
        style.footer(figure, model, info)
        _draw_marks(axes, marks)
        label_breakpoints(axes, model.fitting.breakpoint_x, _drawn(model, samples))
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
    values += [float(v) for p in model.fitting.segments for v in p.evaluate([p.start, p.end])]
    values += [] if baseline is None else [baseline]
    if min(values) >= 0 and (min(values) < 0.5 * max(values) or max(values) == 0):
        low = 0.0
    span = high - low if high > low else 1.0
    axes.set_ylim(low, high + 0.06 * span)


def _drawn(model: ComponentModel, samples: Samples | None) -> FloatArray:
    curves = [
        np.column_stack([at, segment.evaluate(at)])
        for segment in model.fitting.segments
        for at in [dense(model, segment)]
    ]
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
                f"{mark.level}{' ' if raised else chr(10)}{size_text(mark.size_bytes)}",
                transform=place,
                ha="center",
                va="bottom",
                fontsize=7.5,
                color=MARK,
                linespacing=1.1,
            )


IndexArray = npt.NDArray[np.intp]
NOISE = "#e6e6e6"
_RESIDUAL_AXES_IN = 2.07
"""Lower than the figure of a model: it shows scatter, not a shape."""
SILENCE = 1e-9
"""A curve below this fraction of the largest sample is zero; there is no relative residual."""
FAR = 5.0
"""Residuals beyond this multiple of the 90 % quantile of all are drawn at the edge, with their value."""
FLOOR_PERCENT = 1e-3
"""The smallest residual that is shown as one."""
MANY = 8


@dataclass(frozen=True)
class _Residuals:
    """Residuals of medians and of the ends of their intervals, in % of the curve, where that is not zero."""

    x: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    segment: IndexArray
    repeated: npt.NDArray[np.bool_]
    left_out: int

    @classmethod
    def of(cls, model: ComponentModel, samples: Samples) -> _Residuals:
        x, curve, median = np.asarray(samples.x), model.evaluate(samples.x), samples.medians()
        kept = np.abs(curve) > SILENCE * np.abs(median).max()
        values = np.column_stack([median, samples.intervals()])[kept].T
        value, low, high = 100 * (values - curve[kept]) / np.abs(curve[kept])
        many = np.array([len(v) > 1 for v in samples.values])
        return cls(x[kept], value, low, high, model.fitting.segment_of(x[kept]), many[kept], int((~kept).sum()))

    def reach(self) -> float:
        """Where the axis ends: beyond what is not far, with its intervals."""
        size = np.abs(self.value)
        far = FAR * float(np.quantile(size, 0.9)) if size.size else 0.0
        near = size <= max(far, FLOOR_PERCENT)
        ends = np.abs(np.concatenate([self.low[near], self.high[near]])).max(initial=0.0)
        return 1.12 * float(max(size[near].max(initial=0.0), min(ends, far), FLOOR_PERCENT))


def residual_figure(model: ComponentModel, samples: Samples, *, info: PlotInfo | None = None) -> Figure:
    """Draw the relative residuals of a model: (median - curve) / |curve| in % over x, in the colour of their segment.

    Where there are repetitions, each residual has the 95 % bootstrap interval of its median, and a grey band shows
    the typical half-width of these intervals in each segment (their median): a good model scatters within it, without a
    pattern. Outliers stand at the edge as triangles, with their value. Points where the curve is zero have no relative
    residual and are left out; the figure says so.
    """
    info = info or PlotInfo()
    residuals = _Residuals.of(model, samples)
    reach = residuals.reach()
    with style.new_figure(style.WIDTH_IN, _RESIDUAL_AXES_IN) as figure:
        axes = figure.add_subplot()
        style.set_up_axes(axes, model, info)
        axes.set_ylabel("residual [% of the curve]")
        axes.axhline(0.0, color=style.INK, lw=0.9, zorder=2)
        segments = range(len(model.fitting.segments))
        handles: list[Line2D | Patch] = [_draw_segment(axes, model, index, residuals, reach) for index in segments]
        if residuals.repeated.any():
            handles.append(_draw_noise(axes, model, samples, residuals))
        axes.margins(x=0.03)
        axes.set_ylim(-reach, reach)
        breakpoint_lines(axes, model)
        beyond = int((np.abs(residuals.value) > reach).sum())
        note = [error_text(model.error, model.fitting.error), info.note]
        note += [f"beyond the axis: {beyond}"] if beyond > MANY else []
        note += [f"left out where the curve is zero: {residuals.left_out}"] if residuals.left_out else []
        style.legend_below(figure, handles, axes_in=_RESIDUAL_AXES_IN, above_in=0.47)
        style.header(
            figure, f"{info.title or model.name or 'component model'}: residuals", " · ".join(n for n in note if n)
        )
        style.footer(figure, model, info)
    return figure


def _draw_segment(axes: Axes, model: ComponentModel, index: int, residuals: _Residuals, reach: float) -> Line2D:
    mine = residuals.segment == index
    x, value, colour = residuals.x[mine], residuals.value[mine], style.colour_of(index)
    axes.vlines(x, residuals.low[mine], residuals.high[mine], color=colour, lw=1.0, alpha=0.45, zorder=3)
    segment = model.fitting.segments[index]
    size = 3.8 if len(residuals.x) <= 80 else 2.6
    (points,) = axes.plot(
        x, value, ls="none", marker="o", ms=size, mfc=colour, mec=style.PAPER, mew=0.4, zorder=4,
        label=f"{range_text(segment)}:  {error_text(model.error, segment.error)}",
    )  # fmt: skip
    far = np.abs(value) > reach
    for at, size_percent in zip(x[far], value[far], strict=True):
        sign = 1 if size_percent > 0 else -1
        axes.plot(
            at, 0.95 * sign * reach, marker="^" if sign > 0 else "v", ms=5, color=colour, mec=style.PAPER, mew=0.4
        )
        if (np.abs(residuals.value) > reach).sum() <= MANY:
            axes.annotate(
                style.minus(f"{number(size_percent, 3)} %"), (at, 0.95 * sign * reach), xytext=(5, 0), va="center",
                textcoords="offset points", fontsize=7, color=style.INK,
            )  # fmt: skip
    return points


def _draw_noise(axes: Axes, model: ComponentModel, samples: Samples, residuals: _Residuals) -> Patch:
    """A band for each segment, as high as the median of the half-widths of its points with repetitions."""
    starts = [fitting.start for fitting in model.fitting.segments]
    for index, (start, end) in enumerate(zip(starts, [*starts[1:], model.domain[1]], strict=True)):
        mine = residuals.repeated & (residuals.segment == index)
        if mine.any():
            noise = float(np.median(residuals.high[mine] - residuals.low[mine])) / 2
            axes.fill_between([start, end], -noise, noise, color=NOISE, lw=0, zorder=1)
    return Patch(color=NOISE, lw=0, label=f"typical 95 % interval, median of {trials_text(samples)} trials")
