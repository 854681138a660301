"""The figures of a component model: medians, segments, breakpoints, cache sizes, residuals, numbers of segments."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import Bbox, blended_transform_factory

from p4perf.evaluation.fitting.derivation import Derivation
from p4perf.evaluation.fitting.error_metrics import error_text
from p4perf.evaluation.fitting.selection import Criteria
from p4perf.evaluation.fitting.working_set import CacheMark
from p4perf.evaluation.plots import style
from p4perf.evaluation.plots.style import PlotInfo
from p4perf.models import ComponentModel, Fitting, PiecewiseFitting
from p4perf.models.notation import number, size_text
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
    """Medians, with 95 % intervals where there are repetitions."""
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
    """Write the place of each breakpoint along its line, where it hides the least of what is drawn, shape (n, 2).

    To be called last: it looks at pixels, so limits and margins have to be final.
    """
    pixels = axes.transData.transform(drawn)
    taken: list[Bbox] = []
    for x in breakpoints:
        places = []
        for height, side in ((0.985, "right"), (0.985, "left"), (0.015, "right"), (0.015, "left")):
            text = style.write_along(axes, "breakpoint", x, height, side)
            box = text.get_window_extent().padded(CLEARANCE_PX)
            inside = (pixels >= box.min).all(axis=1) & (pixels <= box.max).all(axis=1)
            hidden = int(inside.sum()) + 1000 * sum(box.overlaps(other) for other in taken)
            places.append((hidden, text, box))
        best = min(places, key=lambda place: place[0])
        taken.append(best[2])
        for place in places:
            if place is not best:
                place[1].remove()


AXES_IN = 2.87
MARK = "#8B0000"


def model_figure(
    model: ComponentModel,
    samples: Samples | None = None,
    *,
    marks: Sequence[CacheMark] = (),
    baseline: float | None = None,
    info: PlotInfo = style.PLAIN,
) -> Figure:
    """Draw a model; ``baseline`` is the value of the baseline program in the unit of y, a thin horizontal line."""
    with style.panel(AXES_IN) as (figure, axes):
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
        _frame(figure, model, info, "", (error_text(model.error, model.fitting.error),))
        _draw_marks(axes, marks)
        label_breakpoints(axes, model.fitting.breakpoint_x, _drawn(model, samples))
    return figure


def _frame(
    figure: Figure,
    model: ComponentModel,
    info: PlotInfo,
    what: str,
    notes: Sequence[str] = (),
    *,
    left: float = style.LEFT,
) -> None:
    """Title and notes above a figure of a model; target, machine and date below."""
    title = f"{info.title or model.name or 'component model'}{what}"
    info = replace(info, title=title, note=" · ".join(text for text in (*notes, info.note) if text))
    style.frame(figure, info, title, source=f"target {model.target}" if model.target else "", left=left)


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
    drawn = [(dense(model, segment), segment) for segment in model.fitting.segments]
    curves = [np.column_stack([at, segment.evaluate(at)]) for at, segment in drawn]
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
            text = f"{mark.level}{' ' if raised else chr(10)}{size_text(mark.size_bytes)}"
            axes.text(
                mark.x, 1.1 if raised else 1.012, text, transform=place, ha="center", va="bottom", fontsize=7.5,
                color=MARK, linespacing=1.1,
            )  # fmt: skip


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


def residual_figure(model: ComponentModel, samples: Samples, *, info: PlotInfo = style.PLAIN) -> Figure:
    """Draw the relative residuals of a model: (median - curve) / |curve| in % over x, in the colour of their segment.

    Where there are repetitions, each residual has the 95 % interval of its median, and a grey band shows
    the typical half-width of these intervals in each segment (their median): a good model scatters within it, without a
    pattern. Outliers stand at the edge as triangles, with their value. Points where the curve is zero have no relative
    residual and are left out; the figure says so.
    """
    residuals = _Residuals.of(model, samples)
    reach = residuals.reach()
    with style.panel(_RESIDUAL_AXES_IN) as (figure, axes):
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
        note = [error_text(model.error, model.fitting.error)]
        note += [f"beyond the axis: {beyond}"] if beyond > MANY else []
        note += [f"left out where the curve is zero: {residuals.left_out}"] if residuals.left_out else []
        style.legend_below(figure, handles, axes_in=_RESIDUAL_AXES_IN, above_in=0.47)
        _frame(figure, model, info, ": residuals", note)
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
            text = style.minus(f"{number(size_percent, 3)} %")
            style.note(axes, text, (at, 0.95 * sign * reach), (5, 0), 7, va="center")
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


PANEL_IN = (3.2, 2.45)
CHOSEN = "#0072B2"


def segment_figures(
    model: ComponentModel,
    derivation: Derivation,
    samples: Samples | None = None,
    *,
    marks: Sequence[CacheMark] = (),
    baseline: float | None = None,
    info: PlotInfo = style.PLAIN,
) -> dict[int, Figure]:
    """The figure of :func:`model_figure` for every number of segments that was derived, by that number.

    Those that were not chosen are drawn without intervals.
    """
    title = info.title or model.name or "component model"
    figures = {}
    for index, (fitting, scores) in enumerate(zip(derivation.fittings, derivation.criteria, strict=True)):
        said = [info.note, f"L1-BIC {_score(scores)}", "chosen" if index == derivation.chosen else ""]
        own = replace(info, title=f"{title}: {_count(fitting)}", note=" · ".join(text for text in said if text))
        candidate = _candidate(model, fitting)
        figures[len(fitting.segments)] = model_figure(candidate, samples, marks=marks, baseline=baseline, info=own)
    return figures


def segments_overview(
    model: ComponentModel, derivation: Derivation, samples: Samples | None = None, *, info: PlotInfo = style.PLAIN
) -> Figure:
    """All numbers of segments side by side: a panel for each, with error, L1-BIC and kinds of functions.

    The chosen one has a blue frame. With two candidates or more, a last panel shows L1-BIC over the number of segments.
    """
    fittings = derivation.fittings
    panels = len(fittings) + (len(fittings) > 1)
    columns = {1: 1, 4: 2}.get(panels, 3)
    rows = math.ceil(panels / columns)
    width, height = max(columns, 1.6) * PANEL_IN[0], rows * PANEL_IN[1] + 0.75
    left = 0.62 / width
    with style.new_figure(width, height) as figure:
        grid = figure.add_gridspec(
            rows, columns, left=left, right=1 - 0.2 / width, top=1 - 0.98 / height, bottom=0.68 / height,
            wspace=0.2, hspace=0.68,
        )  # fmt: skip
        first: Axes | None = None
        for index, (fitting, scores) in enumerate(zip(fittings, derivation.criteria, strict=True)):
            row, column = divmod(index, columns)
            axes = figure.add_subplot(grid[row, column], sharex=first, sharey=first)
            first = first or axes
            _draw_panel(axes, _candidate(model, fitting), samples, info)
            _describe(axes, model, fitting, scores, chosen=index == derivation.chosen)
            below = index + columns < len(fittings)
            axes.set_xlabel("" if below else axes.get_xlabel())
            axes.set_ylabel("" if column else axes.get_ylabel())
            axes.tick_params(labelleft=column == 0)
        if first is not None:
            set_limits(first, model, samples)
        if len(fittings) > 1:
            _draw_criterion(figure.add_subplot(grid[divmod(panels - 1, columns)]), derivation)
        _frame(figure, model, info, ": every number of segments", left=left)
    return figure


def _candidate(model: ComponentModel, fitting: PiecewiseFitting) -> ComponentModel:
    """The model with another curve; intervals belong to the chosen one only."""
    return model if fitting == model.fitting else replace(model, fitting=fitting, uncertainty=None)


def _count(fitting: PiecewiseFitting) -> str:
    return "1 segment" if len(fitting.segments) == 1 else f"{len(fitting.segments)} segments"


def _score(scores: Criteria) -> str:
    return style.minus(f"{scores.l1_bic:.0f}") if math.isfinite(scores.l1_bic) else "not defined"


def _draw_panel(axes: Axes, model: ComponentModel, samples: Samples | None, info: PlotInfo) -> None:
    style.set_up_axes(axes, model, info)
    if samples is not None:
        draw_samples(axes, samples, size=0.62)
    for index in range(len(model.fitting.segments)):
        draw_segment(axes, model, index, width=1.5)
    breakpoint_lines(axes, model, width=0.7)
    axes.tick_params(labelsize=7.5)
    axes.xaxis.label.set_fontsize(8.5)
    axes.yaxis.label.set_fontsize(8.5)


def _describe(axes: Axes, model: ComponentModel, fitting: PiecewiseFitting, scores: Criteria, *, chosen: bool) -> None:
    """Three lines above a panel: how many segments, how good, and which functions."""
    colour = CHOSEN if chosen else style.INK
    score = f"{error_text(model.error, fitting.error)} · L1-BIC {_score(scores)}"
    kinds = " | ".join(segment.template.name for segment in fitting.segments)
    _above(axes, _count(fitting), 25, size=9.5, colour=colour, bold=True)
    _above(axes, score, 14.5, size=8, colour=style.INK)
    _above(axes, kinds, 4, size=7.5 if len(kinds) < 44 else 5.5, colour=style.GREY)
    if chosen:
        _above(axes, "chosen", 25, size=9.5, colour=CHOSEN, bold=True, right=True)
        axes.spines[:].set(visible=True, color=CHOSEN, linewidth=1.6)


def _draw_criterion(axes: Axes, derivation: Derivation) -> None:
    """L1-BIC over the number of segments, the lowest ringed."""
    segments = [len(f.segments) for f in derivation.fittings]
    scores = [c.l1_bic if math.isfinite(c.l1_bic) else math.nan for c in derivation.criteria]
    axes.plot(segments, scores, color=style.GREY, lw=1.0, marker="o", ms=4, mfc=style.GREY, mec=style.GREY, zorder=3)
    at = derivation.chosen
    axes.plot(segments[at], scores[at], ls="none", marker="o", ms=10, mfc="none", mec=CHOSEN, mew=1.6, zorder=4)
    axes.set_xticks(segments)
    axes.margins(x=0.12, y=0.18)
    axes.set_xlabel("segments", fontsize=8.5)
    axes.tick_params(labelsize=7.5)
    axes.yaxis.set_major_formatter(lambda value, _: style.minus(number(value)))
    style.set_grid(axes, "y")
    _above(axes, "L1-BIC: lowest is best", 4, size=9.5, colour=style.INK, bold=True)


def _above(
    axes: Axes, text: str, points: float, *, size: float, colour: str, bold: bool = False, right: bool = False
) -> None:
    """A line of text some points above the axes, at the left or right end."""
    style.note(
        axes, text, (float(right), 1.0), (0, points), size, xycoords="axes fraction", ha="right" if right else "left",
        va="bottom", color=colour, fontweight="bold" if bold else "normal", annotation_clip=False,
    )  # fmt: skip
