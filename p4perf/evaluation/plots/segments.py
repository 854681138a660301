"""Figures of every number of segments that a derivation considered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from p4perf.evaluation.fitting.derivation import Derivation
from p4perf.evaluation.fitting.error_metrics import error_text
from p4perf.evaluation.fitting.selection import Criteria
from p4perf.evaluation.fitting.working_set import CacheMark
from p4perf.evaluation.plots import style
from p4perf.evaluation.plots.model import breakpoint_lines, draw_samples, draw_segment, model_figure, set_limits
from p4perf.evaluation.plots.style import PlotInfo
from p4perf.models import ComponentModel, PiecewiseFitting
from p4perf.models.notation import number
from p4perf.results.table import Samples

PANEL_IN = (3.2, 2.45)
CHOSEN = "#0072B2"


def segment_figures(
    model: ComponentModel,
    derivation: Derivation,
    samples: Samples | None = None,
    *,
    marks: Sequence[CacheMark] = (),
    baseline: float | None = None,
    info: PlotInfo | None = None,
) -> dict[int, Figure]:
    """The figure of :func:`model_figure` for every number of segments that was derived.

    Args:
        model: the chosen model; the others are drawn like it, without intervals.
        derivation: where it came from.
        baseline: value of the baseline program in the unit of y.

    Returns:
        Figures by number of segments.
    """
    info = info or PlotInfo()
    title = info.title or model.name or "component model"
    figures = {}
    for index, (fitting, scores) in enumerate(zip(derivation.fittings, derivation.criteria, strict=True)):
        said = [info.note, f"L1-BIC {_score(scores)}", "chosen" if index == derivation.chosen else ""]
        own = replace(info, title=f"{title}: {_count(fitting)}", note=" · ".join(text for text in said if text))
        candidate = _candidate(model, fitting)
        figures[len(fitting.segments)] = model_figure(candidate, samples, marks=marks, baseline=baseline, info=own)
    return figures


def segments_overview(
    model: ComponentModel, derivation: Derivation, samples: Samples | None = None, *, info: PlotInfo | None = None
) -> Figure:
    """All numbers of segments side by side: a panel for each, with error, L1-BIC and kinds of functions.

    The chosen one has a blue frame. With two candidates or more, a last panel shows L1-BIC over the number of segments.

    Args:
        derivation: where it came from.
    """
    info = info or PlotInfo()
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
        style.header(
            figure, f"{info.title or model.name or 'component model'}: every number of segments", info.note, left=left
        )
        style.footer(figure, model, info)
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
    axes.grid(axis="y", color="#d9d9d9", lw=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    _above(axes, "L1-BIC: lowest is best", 4, size=9.5, colour=style.INK, bold=True)


def _above(
    axes: Axes, text: str, points: float, *, size: float, colour: str, bold: bool = False, right: bool = False
) -> None:
    """A line of text some points above the axes, at the left or right end."""
    axes.annotate(
        text, (float(right), 1.0), xycoords="axes fraction", xytext=(0, points), textcoords="offset points",
        ha="right" if right else "left", va="bottom", fontsize=size, color=colour,
        fontweight="bold" if bold else "normal", annotation_clip=False,
    )  # fmt: skip
