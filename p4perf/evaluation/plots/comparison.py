"""Figures of a comparison: the runs of one experiment with their ratio below, and all experiments at a glance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import blended_transform_factory

from p4perf.evaluation.comparison import ComparedPair, ComparedSamples, ExperimentComparison
from p4perf.evaluation.comparison.curves import CurveComparison
from p4perf.evaluation.comparison.ratios import Crossing
from p4perf.evaluation.plots import style
from p4perf.evaluation.plots.model import dense
from p4perf.evaluation.plots.style import PlotInfo
from p4perf.models.notation import number
from p4perf.results.table import LEVEL

PANELS_IN = (2.7, 1.7)
ROW_IN = 0.27
FEW = 6
"""Most crossings that are labelled."""
LABEL_LENGTH = 36
"""Characters of a label in a legend."""
APART = 20.0
"""Runs whose highest values differ by more than this factor are drawn on a logarithmic axis."""

FAR = 20.0
"""Intervals that reach further than this factor beyond the ratios do not stretch the axis."""


def comparison_figure(comparison: ExperimentComparison, *, margin: float, info: PlotInfo = style.PLAIN) -> Figure:
    """Draw the runs of an experiment: medians with intervals and curves, and below the ratios to the reference.

    Below are the ratios of the points with intervals, the ratios of the curves with bands, the borders of what counts
    as the same (grey), and the crossings: a dashed line and a bar, its interval, for a sure one, a dotted line for one
    that may be none.
    """
    every = [x for s in comparison.subjects for x in s.samples.x]
    domain = (min(every), max(every)) if every else (1.0, 2.0)
    numbers = {s.label: n for n, s in enumerate(comparison.subjects)}
    with style.new_figure(style.WIDTH_IN, sum(PANELS_IN)) as figure:
        grid = figure.add_gridspec(2, 1, height_ratios=PANELS_IN, hspace=0.09)
        top = figure.add_subplot(grid[0])
        below = figure.add_subplot(grid[1], sharex=top)
        for axes in (top, below):
            style.set_up_x(axes, comparison.x, domain)
        handles: list[Line2D | Patch] = [_draw_run(top, s, numbers[s.label]) for s in comparison.subjects]
        top.set_ylabel(info.y_label or style.axis_label(comparison.y))
        top.tick_params(labelbottom=False)
        top.margins(x=0.03)
        _scale_values(top, [[float(v) for v in s.samples.medians()] for s in comparison.subjects])
        below.set_xlabel(info.x_label or style.axis_label(comparison.x))
        below.set_ylabel(f"ratio to {comparison.reference}" if len(comparison.reference) < 16 else "ratio")
        if len(comparison.reference) >= 16:
            base = handles[numbers[comparison.reference]]
            base.set_label(f"{base.get_label()} (= 1)")
        below.axhspan(1 / (1 + margin), 1 + margin, color=style.INK, alpha=0.08, lw=0, zorder=0)
        below.axhline(1.0, color=style.INK, lw=0.9, zorder=2)
        handles.append(Patch(color=style.INK, alpha=0.08, lw=0, label=f"counts as the same: 1 ± {margin:g}"))
        for pair in comparison.pairs:
            _draw_ratio(below, pair, numbers[pair.run])
        _scale_ratios(below, comparison.pairs, margin)
        handles += _draw_crossings(top, below, comparison.pairs, numbers)
        title, name = comparison.title or comparison.experiment, comparison.experiment
        style.finish(figure, handles, info, title, axes_in=sum(PANELS_IN), note=_note(comparison), source=name)
    return figure


def curves_figure(found: CurveComparison, *, info: PlotInfo = style.PLAIN) -> Figure:
    """Draw the models of one component, each over its own domain, with bands; what has another unit is left out."""
    base = next(s.model.y for s in found.subjects if s.label == found.reference)
    drawn = [s for s in found.subjects if (s.model.y.name, s.model.y.unit) == (base.name, base.unit)]
    others = [s.label for s in found.subjects if s not in drawn]
    ends = [s.model.domain for s in drawn]
    with style.panel(PANELS_IN[0]) as (figure, axes):
        style.set_up_x(axes, found.x, (min(low for low, _ in ends), max(high for _, high in ends)))
        handles: list[Line2D | Patch] = []
        for index, subject in enumerate(drawn):
            colour = style.colour_of(index)
            x = np.concatenate([dense(subject.model, segment) for segment in subject.model.segments])
            curve = subject.model.estimate(x)
            handles += axes.plot(x, curve.value, color=colour, ls=style.line_of(index), label=subject.label)
            axes.fill_between(x, curve.low, curve.high, color=colour, alpha=0.15, lw=0)
        axes.set_xlabel(style.axis_label(found.x))
        axes.set_ylabel(style.axis_label(base))
        note = f"in another unit: {', '.join(others)}" if others else ""
        style.finish(figure, handles, info, found.component, axes_in=PANELS_IN[0], note=note)
    return figure


def overview_figure(
    comparisons: Sequence[ExperimentComparison], *, margin: float, info: PlotInfo = style.PLAIN
) -> Figure:
    """Draw the ratios of all experiments below each other: geometric means with intervals, and the verdicts."""
    rows = [(c.experiment, pair) for c in comparisons for pair in c.pairs]
    runs = list(dict.fromkeys(pair.run for _, pair in rows))
    numbers = {label: n for n, label in enumerate(dict.fromkeys(s.label for c in comparisons for s in c.subjects))}
    several = len(runs) > 1
    columns = max(1, min(len(runs), 100 // max(10, *(len(_short(run)) + 5 for run in runs))))
    below_in = 0.8 + 0.2 * several * math.ceil(len(runs) / columns)
    height = ROW_IN * len(rows) + below_in + 0.5
    with style.panel(height) as (figure, axes):
        figure.subplots_adjust(left=0.3, right=0.82, top=1 - 0.5 / height, bottom=below_in / height)
        axes.axvspan(1 / (1 + margin), 1 + margin, color=style.INK, alpha=0.08, lw=0, zorder=0)
        axes.axvline(1.0, color=style.INK, lw=0.9, zorder=2)
        beside = blended_transform_factory(axes.transAxes, axes.transData)
        for at, (_, pair) in enumerate(rows):
            ratio, index = pair.verdict.ratio, numbers[pair.run]
            if ratio is not None:
                axes.plot(
                    ratio.drawn_ends, [at, at], color=style.colour_of(index), lw=1.6, solid_capstyle="butt", zorder=3
                )
                axes.plot(ratio.value, at, zorder=4, **style.marks(index, 5.5, 1.2))
            said = str(pair.verdict.outcome)
            value = f"{style.minus(number(ratio.value, 3))}  " if ratio is not None else ""
            axes.text(1.015, at, f"{value}{said}", transform=beside, va="center", fontsize=8, color=style.INK)
        names = [name if at == 0 or rows[at - 1][0] != name else "" for at, (name, _) in enumerate(rows)]
        axes.set_yticks(range(len(rows)), names)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        ends = [r for _, pair in rows if pair.verdict.ratio is not None for r in pair.verdict.ratio.drawn_ends]
        style.log_axis(axes.xaxis, min([*ends, 1 / (1 + margin)]), max([*ends, 1 + margin]), room=0.06)
        base, what = " or ".join(dict.fromkeys(c.reference for c in comparisons)), "run" if several else runs[0]
        if len(base + what) > 30:
            base, what = "the reference", "run"
        axes.set_xlabel(f"ratio of {what} to {base}: geometric mean over shared points, {100 * LEVEL:g} % interval")
        axes.xaxis.label.set_fontsize(8.5)
        style.set_grid(axes, "x", hidden=("top", "right", "left"))
        if several:
            marks = [
                Line2D([], [], lw=1.6, color=style.colour_of(n), label=_short(run), **style.marks(n, 5.5, 1.2))
                for run, n in numbers.items()
                if run in runs
            ]
            figure.legend(
                handles=marks, loc="lower center", ncols=columns, frameon=False, fontsize=8.5,
                bbox_to_anchor=(0.5, 0.16 / height),
            )  # fmt: skip
        style.frame(figure, info, "Comparison", left=0.02)
    return figure


def _draw_run(axes: Axes, subject: ComparedSamples, index: int) -> Line2D:
    """Medians with intervals and the curve; the handle for the legend has marker and line."""
    samples, colour = subject.samples, style.colour_of(index)
    x, median = np.asarray(samples.x), samples.medians()
    if len(x):
        style.draw_intervals(axes, x, median, samples.intervals(), index)
        axes.plot(x, median, ls="none", zorder=4.5, **style.marks(index, 4.2))
    line = style.line_of(index) if subject.model is not None else "none"
    for segment in subject.model.fitting.segments if subject.model is not None else ():
        at = dense(subject.model, segment) if subject.model is not None else x
        axes.plot(at, segment.evaluate(at), color=colour, lw=1.5, ls=line, zorder=3)
    return Line2D([], [], color=colour, lw=1.5, ls=line, label=_short(subject.label), **style.marks(index, 4.2))


def _short(label: str) -> str:
    """A label that fits into a legend of two columns: of a long one, both ends."""
    return label if len(label) <= LABEL_LENGTH else f"{label[: LABEL_LENGTH // 2 - 1]}…{label[-LABEL_LENGTH // 2 :]}"


def _draw_ratio(axes: Axes, pair: ComparedPair, index: int) -> None:
    colour = style.colour_of(index)
    points = pair.measured.points
    x, value = [p.x for p in points], np.array([p.ratio.value for p in points])
    if len(x):
        style.draw_intervals(axes, x, value, np.array([p.ratio.drawn_ends for p in points]), index)
        axes.plot(x, value, ls="none", zorder=4.5, **style.marks(index, 3.6))
    if pair.curve is not None:
        curve = pair.curve
        known = np.isfinite(curve.low) & np.isfinite(curve.high)
        axes.fill_between(curve.x, curve.low, curve.high, where=known, color=colour, alpha=0.16, lw=0, zorder=1)
        axes.plot(curve.x, curve.value, color=colour, lw=1.3, ls=style.line_of(index), zorder=3)


def _draw_crossings(top: Axes, below: Axes, pairs: Sequence[ComparedPair], numbers: Mapping[str, int]) -> list[Line2D]:
    """Lines through both panels, a cross and a bar, the interval, where the curves' ratio is 1; handles of a legend."""
    found = [(c, style.colour_of(numbers[pair.run])) for pair in pairs for c in pair.crossings or ()]
    left, right = below.get_xlim()
    for crossing, colour in found:
        for axes in (top, below):
            axes.axvline(crossing.x.value, color=colour, lw=0.9, ls=_line(crossing.sure), zorder=1)
        ends = max(left, crossing.x.low), min(right, crossing.x.high)
        if crossing.sure:
            below.plot(ends, (1.0, 1.0), color=colour, lw=4, alpha=0.5, solid_capstyle="butt", zorder=2.5)
        below.plot(crossing.x.value, 1.0, marker="x", ms=7, mew=1.6, color=style.INK, zorder=6)
    below.set_xlim(left, right)
    every = [c for c, _ in found]
    for crossing in every if len(every) <= FEW else [c for c in every if c.sure][:FEW]:
        style.write_along(top, "crossing", crossing.x.value)
    return [_crossing_handle(sure, every) for sure in (True, False) if any(c.sure == sure for c in every)]


def _line(sure: bool) -> tuple[int, tuple[int, int]]:
    return (0, (5, 3) if sure else (1, 2))


def _crossing_handle(sure: bool, found: Sequence[Crossing]) -> Line2D:
    count = sum(c.sure == sure for c in found)
    label = "crossing of the models, its interval" if sure else "crossing of the models, within their bands"
    label += f" ({count})" if count > 1 else ""
    return Line2D([], [], color=style.INK, lw=0.9, ls=_line(sure), marker="x", ms=6, label=label)


def _scale_ratios(axes: Axes, pairs: Sequence[ComparedPair], margin: float) -> None:
    values = [p.ratio.value for pair in pairs for p in pair.measured.points]
    values += [float(v) for pair in pairs if pair.curve is not None for v in pair.curve.value if math.isfinite(v)]
    ends = [end for pair in pairs for p in pair.measured.points for end in p.ratio.drawn_ends]
    near = [end for end in ends if not values or min(values) / FAR < end < max(values) * FAR]
    shown = [*values, *near, 1 / (1 + margin), 1 + margin]
    style.log_axis(axes.yaxis, min(shown), max(shown), room=0.06)


def _scale_values(axes: Axes, runs: Sequence[Sequence[float]]) -> None:
    """A logarithmic axis where one run would be a flat line at the bottom beside another; else one from zero.

    Zero belongs to the picture unless the data would become a flat line.
    """
    values = [v for run in runs for v in run]
    highest = [max(run) for run in runs if run]
    if highest and min(values) > 0 and max(highest) > APART * min(highest):
        axes.set_yscale("log")
        style.plain_ticks(axes.yaxis)
    elif values and 0 <= min(values) < 0.5 * max(values):
        axes.set_ylim(0.0, axes.get_ylim()[1])


def _note(comparison: ExperimentComparison) -> str:
    said = [f"{pair.run}: {pair.verdict.outcome}" for pair in comparison.pairs]
    return " · ".join(said) if len(said) <= 2 else ""
