"""Costs of operators over packet size (Fig. 1 of Ren et al. 2025), and two operators beside each other (Fig. 2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from p4perf.errors import NoVerdictError
from p4perf.evaluation.operators.analysis import OpqAnalysis
from p4perf.evaluation.operators.costs import Platform
from p4perf.evaluation.operators.profiles import OperatorProfile, SizeCost
from p4perf.evaluation.operators.shifts import Contrast
from p4perf.evaluation.operators.spread import Known
from p4perf.evaluation.plots.comparison import LINES, MARKERS
from p4perf.evaluation.plots.style import (
    COLOURS,
    FAINT,
    GREY,
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
from p4perf.models.notation import number

PANEL_IN = 3.0
IN_A_ROW = 3
BAR = 0.36
HATCHES = ("", "////")
"""Of the dear and of the cheap operator: bars are told apart without colour."""


def cost_figure(found: OpqAnalysis, *, info: PlotInfo | None = None) -> Figure:
    """Draw cost over size with a logarithmic axis of cycles, a panel for each platform.

    Medians with intervals and the better law; costs of published platforms are those that their law says (hollow).
    A triangle that points down stands for a cost below the resolution, which is where it is drawn.

    Args:
        found: the analysis.
        info: title and footer (machine and date).
    """
    info = info or PlotInfo()
    styles = _styles(found.platforms)
    columns = min(IN_A_ROW, len(found.platforms))
    lines = math.ceil(len(found.platforms) / columns)
    height = PANEL_IN * lines
    with new_figure(WIDTH_IN, height) as figure:
        panels = figure.subplots(lines, columns, sharey=True, squeeze=False)
        figure.subplots_adjust(wspace=0.08, hspace=0.42)
        every = [s.size_bytes for p in found.placements for s in p.profile.sizes]
        for axes, platform in zip(panels.flat, found.platforms, strict=False):
            _set_up(axes, platform, [s.size_bytes for p in found.of(platform.name) for s in p.profile.sizes] or every)
            for placement in found.of(platform.name):
                _draw_operator(axes, placement.profile, styles[_key(platform, placement.profile.operator)][0])
        for axes in list(panels.flat)[len(found.platforms) :]:
            axes.set_visible(False)
        for axes in panels[:, 0]:
            axes.set_ylabel(info.y_label or "cost [cycles/packet]")
        handles = [_handle(index, label) for index, label in styles.values()]
        if any(s.cycles is None for p in found.placements for s in p.profile.sizes):
            handles.append(
                Line2D([], [], ls="none", marker="v", ms=5, mfc="none", mec=GREY, label="below the resolution")
            )
        legend_below(figure, handles, axes_in=height, above_in=0.62)
        header(figure, info.title or "Costs over packet size", info.note)
        small_print(figure, " · ".join(text for text in (info.machine, info.date) if text))
    return figure


def _key(platform: Platform, operator: str) -> str:
    """One name for what is the same operator everywhere."""
    (row,) = [each for each in platform.operators if each.operator == operator]
    return row.same_as[0] if row.same_as else operator


def _styles(platforms: Sequence[Platform]) -> Mapping[str, tuple[int, str]]:
    """A number and a label for each operator, the same on all platforms."""
    names: dict[str, list[str]] = {}
    for platform in platforms:
        for row in platform.operators:
            known = names.setdefault(_key(platform, row.operator), [])
            if row.operator not in known:
                known.append(row.operator)
    return {key: (index, " / ".join(known)) for index, (key, known) in enumerate(names.items())}


def _set_up(axes: Axes, platform: Platform, sizes: Sequence[int]) -> None:
    axes.set_title(f"{platform.name}{' (published)' if platform.published else ''}", fontsize=9, loc="left")
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = sorted(set(sizes))
    near = [a for a, b in pairwise(ticks) if b < 1.6 * a]
    axes.xaxis.set_major_locator(FixedLocator([size for size in ticks if size not in near]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("packet size [B]")
    axes.grid(axis="y", color=FAINT, lw=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_operator(axes: Axes, each: OperatorProfile, index: int) -> None:
    colour, marker = _colour(index), MARKERS[index % len(MARKERS)]
    seen = [(s.size_bytes, s.cycles) for s in each.sizes if s.cycles is not None]
    if seen:
        x, y = [size for size, _ in seen], np.array([known.value for _, known in seen])
        ends = np.array([_ends(known) for _, known in seen]).T
        axes.errorbar(x, y, yerr=np.abs(ends - y), fmt="none", ecolor=colour, elinewidth=0.8, capsize=1.5, zorder=3)
        axes.plot(
            x, y, ls="none", marker=marker, ms=4.4, mec=colour, mew=0.9, mfc=PAPER if each.published else colour,
            zorder=4, label=each.operator,
        )  # fmt: skip
    if each.power is not None:
        at = np.geomspace(*each.model.sizes_bytes, 60)
        curve = each.model.evaluate(at)
        line = LINES[index % len(LINES)]
        axes.plot(at, np.where(curve > 0, curve, np.nan), color=colour, lw=1.1, ls=line, zorder=2)
    below: list[SizeCost] = [s for s in each.sizes if s.below_cycles]
    if below:
        axes.plot(
            [s.size_bytes for s in below], [float(s.below_cycles or 0) for s in below], ls="none", marker="v", ms=5,
            mfc="none", mec=colour, zorder=4, label=f"{each.operator} below",
        )  # fmt: skip


def _ends(known: Known) -> tuple[float, float]:
    """The interval as far as a logarithmic axis shows it."""
    low = known.value if known.low is None else max(known.low, known.value / 20)
    return low, known.value if known.high is None else known.high


def _colour(index: int) -> str:
    """When all markers are taken, they come again in other colours."""
    return COLOURS[(index + 3 * (index // len(MARKERS))) % len(COLOURS)]


def _handle(index: int, label: str) -> Line2D:
    colour = _colour(index)
    return Line2D(
        [], [], color=colour, lw=1.1, ls=LINES[index % len(LINES)], marker=MARKERS[index % len(MARKERS)], ms=4.4,
        mfc=PAPER, mec=colour, mew=0.9, label=label,
    )  # fmt: skip


def contrast_figure(found: OpqAnalysis, *, info: PlotInfo | None = None) -> Figure:
    """Draw base costs of two operators beside each other, with their ratio above, a group for each platform.

    Args:
        found: the analysis.
        info: title and footer (machine and date).

    Raises:
        NoVerdictError: no platform has two such operators.
    """
    if not found.contrasts:
        raise NoVerdictError("no platform has two operators to set beside each other")
    info = info or PlotInfo()
    with new_figure(WIDTH_IN, PANEL_IN) as figure:
        axes = figure.add_subplot()
        axes.set_yscale("log")
        for at, each in enumerate(found.contrasts):
            _draw_bars(axes, at, each)
        costs = [c for each in found.contrasts for p in (each.dear, each.cheap) if (c := p.rank_cycles)]
        axes.set_ylim(min(1.0, min(costs) / 2), max(costs) * 8)
        names = [f"{c.platform}\n{c.dear.operator}, {c.cheap.operator}" for c in found.contrasts]
        axes.set_xticks(range(len(names)), names, fontsize=8 if len(names) <= 4 else 6)
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_ylabel(info.y_label or "base cost: cycles for 64 B")
        axes.grid(axis="y", color=FAINT, lw=0.6, zorder=0)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        handles = [
            Patch(fc=COLOURS[n], ec=INK, lw=0.8, hatch=HATCHES[n], label=label)
            for n, label in enumerate(("first operator", "second operator"))
        ]
        legend_below(figure, handles, axes_in=PANEL_IN, above_in=0.47)
        header(figure, info.title or "Base costs side by side", info.note)
        small_print(figure, " · ".join(text for text in (info.machine, info.date) if text))
    return figure


def _draw_bars(axes: Axes, at: int, each: Contrast) -> None:
    for n, (side, profile) in enumerate(((-0.5, each.dear), (0.5, each.cheap))):
        x = at + side * (BAR + 0.04)
        height = profile.rank_cycles or 0.0
        unseen = profile.base is None
        axes.bar(
            x, height, BAR, fc=PAPER if unseen else COLOURS[n], ec=INK, lw=0.8, hatch=HATCHES[n], zorder=2,
            ls=(0, (3, 2)) if unseen else "-",
        )  # fmt: skip
        if profile.base is not None and profile.base.low is not None:
            low, high = _ends(profile.base)
            axes.errorbar(
                [x], [height], yerr=[[height - low], [high - height]], fmt="none", ecolor=INK, elinewidth=0.9,
                capsize=2, zorder=3,
            )  # fmt: skip
        text = f"{'below ' if unseen else ''}{number(height, 3)}"
        axes.annotate(
            text, xy=(x, height), xytext=(0, 3), textcoords="offset points", ha="center", va="bottom", fontsize=7,
            color=GREY,
        )  # fmt: skip
    axes.annotate(
        ratio_text(each), xy=(at, each.dear.rank_cycles or 1.0), xytext=(0, 15), textcoords="offset points",
        ha="center", va="bottom", fontsize=9, fontweight="bold", color=INK,
    )  # fmt: skip


def ratio_text(each: Contrast) -> str:
    """Such as ``111 x`` or ``more than 40 x``."""
    if each.ratio is not None:
        return f"{number(each.ratio.value, 3)} ×"
    return f"more than {number(each.at_least, 3)} ×" if each.at_least is not None else ""
