"""Figures of a factor analysis: the metric over cache use, as in the slides of Takeya 2024, and the best order."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator

from p4perf.errors import DataError
from p4perf.evaluation.papers.takeya2024.factors import FactorAnalysis
from p4perf.evaluation.plots import style
from p4perf.evaluation.plots.style import PlotInfo
from p4perf.models import Quantity
from p4perf.models.notation import number
from p4perf.records import counted

_HEIGHT_IN = 4.4
_BAR_IN = 0.3


def cache_figure(analysis: FactorAnalysis, *, info: PlotInfo = style.PLAIN) -> Figure:
    """Draw the metric of every cell over its cache use; the greedy ladder is a line through the cells that it visits.

    Colours are the number of factors that are there.

    Raises:
        DataError: there is no cache use above 0 of two cells at least.
    """
    factorial, rungs = analysis.factorial, analysis.ladder.rungs if analysis.ladder is not None else ()
    points = {
        present: (cell.cache, cell.median) for present, cell in factorial.cells.items() if cell.cache and cell.cache > 0
    }
    if len(points) < 2:
        raise DataError("there is no cache use to draw the metric over", hint="name its metric with --cache")
    with style.panel(_HEIGHT_IN) as (figure, axes):
        figure.subplots_adjust(left=0.1, right=0.8, top=1 - 0.5 / _HEIGHT_IN, bottom=0.75 / _HEIGHT_IN)
        counts = sorted({len(present) for present in points})
        for count in counts:
            some = [point for present, point in points.items() if len(present) == count]
            axes.plot(
                *zip(*some, strict=True), ls="none", marker="o", ms=5, mfc=_colour(count), mec=style.PAPER, mew=0.6
            )
        visited = [frozenset(rung.factor for rung in rungs[:count]) for count in range(len(rungs) + 1)]
        path = [points[present] for present in visited if present in points]
        axes.plot(*zip(*path, strict=True), color=style.GREY, lw=1.0, zorder=1.5)
        everything = frozenset(factorial.factors)
        for present in (frozenset[str](), *(frozenset((name,)) for name in factorial.factors), everything):
            if present in points:
                style.note(axes, "all" if present == everything else factorial.name(present), points[present], (5, 4))
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            style.plain_ticks(axis)
        style.set_grid(axes)
        axes.set_xlabel(info.x_label or factorial.cache.replace("_", " "))
        axes.set_ylabel(info.y_label or style.axis_label(Quantity(factorial.metric, factorial.unit)))
        marks = [
            Line2D([], [], ls="none", marker="o", ms=5, mfc=_colour(n), mec=style.PAPER, label=label)
            for n, label in ((n, counted(n, "factor") if n else "base") for n in counts)
        ]
        marks.append(Line2D([], [], color=style.GREY, lw=1.0, label="best order"))
        figure.legend(handles=marks, loc="center left", bbox_to_anchor=(0.81, 0.55), frameon=False, fontsize=8.5)
        style.frame(figure, info, "Factors over cache use")
    return figure


def ladder_figure(analysis: FactorAnalysis, *, info: PlotInfo = style.PLAIN) -> Figure:
    """Draw the best order as bars that each begin where the one before ends, with the gain of every step."""
    factorial, ladder = analysis.factorial, analysis.ladder
    if ladder is None or not ladder.rungs:
        raise DataError("there is no ladder: the base, or every factor alone, was not measured")
    height = _BAR_IN * (len(ladder.rungs) + 1) + 1.3
    with style.panel(height) as (figure, axes):
        figure.subplots_adjust(left=0.2, right=0.88, top=1 - 0.5 / height, bottom=0.75 / height)
        axes.barh(0, ladder.base, color=style.GREY, height=0.66, zorder=3)
        before = ladder.base
        names = ["base"]
        for at, rung in enumerate(ladder.rungs, start=1):
            axes.barh(at, rung.value - before, left=before, color=_colour(at), height=0.66, zorder=3)
            text = f"{style.minus(number(rung.value, 3))}  (×{style.minus(number(rung.gain, 3))})"
            style.note(axes, text, (max(rung.value, before), at), (4, 0), va="center")
            names.append(f"+ {rung.factor}")
            before = rung.value
        style.note(axes, style.minus(number(ladder.base, 3)), (ladder.base, 0), (4, 0), va="center")
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(0, 1.02 * max(ladder.base, *(rung.value for rung in ladder.rungs)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: style.tick(value)))
        axes.set_xlabel(info.y_label or style.axis_label(Quantity(factorial.metric, factorial.unit)))
        style.set_grid(axes, "x", hidden=("top", "right", "left"))
        style.frame(figure, info, "Best order of the factors", left=0.02)
    return figure


def _colour(count: int) -> str:
    return style.GREY if count == 0 else style.COLOURS[(count - 1) % len(style.COLOURS)]
