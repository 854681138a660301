"""Costs of operators over packet size (Fig. 1 of Ren et al. 2025), and the chart of quadrants (Fig. 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from p4perf.errors import NoVerdictError
from p4perf.evaluation.papers.ren2025.analysis import Contrast, OpqAnalysis, QuadrantShift
from p4perf.evaluation.papers.ren2025.costs import Platform
from p4perf.evaluation.papers.ren2025.profiles import OperatorProfile, SizeCost
from p4perf.evaluation.papers.ren2025.quadrants import Placement, Quadrant
from p4perf.evaluation.plots import style
from p4perf.evaluation.plots.style import PlotInfo
from p4perf.models.estimate import Estimate
from p4perf.models.notation import number
from p4perf.models.operator import LINEAR

PANEL_IN = 3.0
IN_A_ROW = 3
BAR = 0.36
HATCHES = ("", "////")
"""Of the dear and of the cheap operator: bars differ without colour."""


def cost_figure(found: OpqAnalysis, *, info: PlotInfo = style.PLAIN) -> Figure:
    """Draw cost over size with a logarithmic axis of cycles, a panel for each platform.

    Medians with intervals and the better law; costs of published platforms are values of their law (hollow).
    A triangle that points down stands for a cost below the resolution, which is where it is drawn.
    """
    styles = _styles(found.platforms)
    columns = min(IN_A_ROW, len(found.platforms))
    lines = math.ceil(len(found.platforms) / columns)
    height = PANEL_IN * lines
    with style.new_figure(style.WIDTH_IN, height) as figure:
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
                Line2D([], [], ls="none", marker="v", ms=5, mfc="none", mec=style.GREY, label="below the resolution")
            )
        style.finish(figure, handles, info, "Costs over packet size", axes_in=height, above_in=0.62)
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
    style.plain_ticks(axes.yaxis)
    axes.set_xlabel("packet size [B]")
    style.set_grid(axes, "y")


def _draw_operator(axes: Axes, each: OperatorProfile, index: int) -> None:
    colour, marker = _colour(index), style.marker_of(index)
    seen = [(s.size_bytes, s.cycles) for s in each.sizes if s.cycles is not None]
    if seen:
        x, y = [size for size, _ in seen], np.array([known.value for _, known in seen])
        ends = np.array([_ends(known) for _, known in seen]).T
        axes.errorbar(x, y, yerr=np.abs(ends - y), fmt="none", ecolor=colour, elinewidth=0.8, capsize=1.5, zorder=3)
        axes.plot(
            x, y, ls="none", marker=marker, ms=4.4, mec=colour, mew=0.9, mfc=style.PAPER if each.published else colour,
            zorder=4, label=each.operator,
        )  # fmt: skip
    if each.power is not None:
        at = np.geomspace(*each.model.sizes_bytes, 60)
        curve = each.model.evaluate(at)
        line = style.line_of(index)
        axes.plot(at, np.where(curve > 0, curve, np.nan), color=colour, lw=1.1, ls=line, zorder=2)
    below: list[SizeCost] = [s for s in each.sizes if s.below_cycles]
    if below:
        axes.plot(
            [s.size_bytes for s in below], [float(s.below_cycles or 0) for s in below], ls="none", marker="v", ms=5,
            mfc="none", mec=colour, zorder=4, label=f"{each.operator} below",
        )  # fmt: skip


def _ends(cost: Estimate) -> tuple[float, float]:
    """The interval as far as a logarithmic axis shows it."""
    low, high = cost.drawn_ends
    return max(low, cost.value / 20), high


def _colour(index: int) -> str:
    """When all markers are taken, they come again in other colours."""
    return style.COLOURS[(index + 3 * (index // len(style.MARKERS))) % len(style.COLOURS)]


def _handle(index: int, label: str) -> Line2D:
    colour = _colour(index)
    return Line2D(
        [], [], color=colour, lw=1.1, ls=style.line_of(index), marker=style.marker_of(index), ms=4.4,
        mfc=style.PAPER, mec=colour, mew=0.9, label=label,
    )  # fmt: skip


def contrast_figure(found: OpqAnalysis, *, info: PlotInfo = style.PLAIN) -> Figure:
    """Draw base costs of two operators beside each other, with their ratio above, a group for each platform."""
    if not found.contrasts:
        raise NoVerdictError("no platform has two operators to set beside each other")
    with style.panel(PANEL_IN) as (figure, axes):
        axes.set_yscale("log")
        for at, each in enumerate(found.contrasts):
            _draw_bars(axes, at, each)
        costs = [c for each in found.contrasts for p in (each.dear, each.cheap) if (c := p.rank_cycles)]
        axes.set_ylim(min(1.0, min(costs) / 2), max(costs) * 8)
        names = [f"{c.platform}\n{c.dear.operator}, {c.cheap.operator}" for c in found.contrasts]
        axes.set_xticks(range(len(names)), names, fontsize=8 if len(names) <= 4 else 6)
        axes.set_xlim(-0.6, len(names) - 0.4)
        style.plain_ticks(axes.yaxis)
        axes.set_ylabel(info.y_label or "base cost: cycles for 64 B")
        style.set_grid(axes, "y")
        handles = [
            Patch(fc=style.COLOURS[n], ec=style.INK, lw=0.8, hatch=HATCHES[n], label=label)
            for n, label in enumerate(("first operator", "second operator"))
        ]
        style.finish(figure, handles, info, "Base costs side by side", axes_in=PANEL_IN)
    return figure


def _draw_bars(axes: Axes, at: int, each: Contrast) -> None:
    for n, (side, profile) in enumerate(((-0.5, each.dear), (0.5, each.cheap))):
        x = at + side * (BAR + 0.04)
        height = profile.rank_cycles or 0.0
        unseen = profile.base is None
        axes.bar(
            x, height, BAR, fc=style.PAPER if unseen else style.COLOURS[n], ec=style.INK, lw=0.8, hatch=HATCHES[n],
            zorder=2, ls=(0, (3, 2)) if unseen else "-",
        )  # fmt: skip
        if profile.base is not None and profile.base.bounded:
            low, high = _ends(profile.base)
            axes.errorbar(
                [x], [height], yerr=[[height - low], [high - height]], fmt="none", ecolor=style.INK, elinewidth=0.9,
                capsize=2, zorder=3,
            )  # fmt: skip
        text = f"{'below ' if unseen else ''}{number(height, 3)}"
        style.note(axes, text, (x, height), (0, 3), 7, ha="center", va="bottom", color=style.GREY)
    above = (at, each.dear.rank_cycles or 1.0)
    style.note(axes, ratio_text(each), above, (0, 15), 9, ha="center", va="bottom", fontweight="bold")


def ratio_text(each: Contrast) -> str:
    """Such as ``111 x`` or ``more than 40 x``."""
    if each.ratio is not None:
        return f"{number(each.ratio.value, 3)} ×"
    return f"more than {number(each.at_least, 3)} ×" if each.at_least is not None else ""


AXES_IN, TALL_IN = 4.6, 6.0
"""Height of the chart, and of one with more than :data:`MANY` points."""
MANY = 14
LABEL_PT = 7.5
RINGS = (1.0, 2.2, 3.6, 5.5)
"""Distances at which a label is tried."""
ROOM = 0.18
"""Least distance of an exponent to the edge of the chart."""
CHANGED, SAME = "-", (0, (2, 2))
"""Lines of arrows: into another quadrant, within one."""

Box = tuple[float, float, float, float]


def quadrant_figure(found: OpqAnalysis, *, info: PlotInfo = style.PLAIN) -> Figure:
    """Draw operators by exponent and base cost (logarithmic), and where they go from platform to platform.

    Platforms differ in marker and colour; published ones are hollow. A solid arrow leads into another quadrant, a
    dashed one stays in its own. Operators without a point (below the resolution, or measured at one size) are named at
    the bottom.

    Raises:
        NoVerdictError: no operator has both a base cost and an exponent.
    """
    drawn = [p for p in found.placements if _point(p) is not None]
    if not drawn:
        raise NoVerdictError("no operator has a base cost and an exponent: there is nothing to draw")
    numbers = {platform.name: index for index, platform in enumerate(found.platforms)}
    height = AXES_IN if len(drawn) <= MANY else TALL_IN
    with style.panel(height) as (figure, axes):
        _set_up_chart(axes, drawn)
        _draw_borders(axes, found)
        arrows = [shift for shift in found.shifts if shift.start in drawn and shift.end in drawn]
        for shift in arrows:
            _draw_arrow(axes, shift)
        for placement in drawn:
            _draw_point(axes, placement, numbers[placement.profile.platform])
        axes.set_xlabel(info.x_label or "exponent k of the cost over packet size")
        axes.set_ylabel(info.y_label or "base cost: cycles for 64 B")
        handles: list[Line2D] = [
            _platform_handle(p.name, numbers[p.name], p.published)
            for p in found.platforms
            if any(d.profile.platform == p.name for d in drawn)
        ]
        handles += [
            Line2D(
                [], [], color=style.INK if changed else style.GREY, lw=1.0, ls=CHANGED if changed else SAME, label=label
            )
            for changed, label in ((True, "into another quadrant"), (False, "within its quadrant"))
            if any(bool(shift.changed) is changed for shift in arrows)
        ]
        handles.append(
            Line2D([], [], color=style.INK, lw=0.9, ls=(0, (6, 3)), label=f"split: {found.options.threshold.text()}")
        )
        style.finish(
            figure, handles, info, "Operator performance quadrants", axes_in=height, source=_left_out(found, drawn)
        )
        _label(figure, axes, drawn, arrows, numbers)
    return figure


def _point(placement: Placement) -> tuple[float, float] | None:
    base, exponent = placement.profile.base, placement.profile.exponent
    return None if base is None or exponent is None or base.value <= 0 else (exponent.value, base.value)


def _points(placements: Sequence[Placement]) -> list[tuple[float, float]]:
    return [point for p in placements if (point := _point(p)) is not None]


def _set_up_chart(axes: Axes, drawn: Sequence[Placement]) -> None:
    points = _points(drawn)
    exponents = [x for x, _ in points]
    base = [y for _, y in points] + [p.threshold_cycles for p in drawn]
    axes.set_yscale("log")
    axes.set_xlim(min(*exponents, LINEAR - ROOM, 0.0) - ROOM, max(*exponents, LINEAR + ROOM) + ROOM)
    axes.set_ylim(min(base) / 2.5, max(base) * 3.5)
    style.plain_ticks(axes.yaxis)
    style.set_grid(axes)


def _draw_borders(axes: Axes, found: OpqAnalysis) -> None:
    """The exponent 1, the threshold or thresholds, and the names in the corners."""
    axes.axvline(LINEAR, color=style.INK, lw=0.9, zorder=1)
    splits: dict[float, list[str]] = {}
    for p in found.placements:
        names = splits.setdefault(p.threshold_cycles, []) if math.isfinite(p.threshold_cycles) else []
        if p.profile.platform not in names:
            names.append(p.profile.platform)
    for cycles, names in splits.items():
        axes.axhline(cycles, color=style.INK, lw=0.9, ls=(0, (6, 3)), zorder=1)
        whose = f" ({', '.join(names)})" if len(splits) > 1 else ""
        style.note(
            axes, f"{number(cycles, 3)} cycles{whose}", (1, cycles), (-2, 2), 7, xycoords=("axes fraction", "data"),
            ha="right", va="bottom", color=style.GREY,
        )  # fmt: skip
    corners = {
        Quadrant.HIGH_STARTUP: (0.01, 0.99, "left", "top"),
        Quadrant.LATENT_TRAP: (0.99, 0.99, "right", "top"),
        Quadrant.IDEAL: (0.01, 0.01, "left", "bottom"),
        Quadrant.EMERGENT: (0.99, 0.01, "right", "bottom"),
    }
    for quadrant, (x, y, ha, va) in corners.items():
        axes.text(
            x, y, quadrant.value.upper(), transform=axes.transAxes, ha=ha, va=va, fontsize=8, color=style.GREY,
            fontweight="bold", zorder=1,
        )  # fmt: skip


def _draw_arrow(axes: Axes, shift: QuadrantShift) -> None:
    start, end = _point(shift.start), _point(shift.end)
    if start is None or end is None:
        return
    changed = bool(shift.changed)
    axes.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=9, shrinkA=5, shrinkB=5, lw=1.0, zorder=2,
            color=style.INK if changed else style.GREY, ls=CHANGED if changed else SAME,
            label="shift" if changed else "stay",
        )
    )  # fmt: skip


def _draw_point(axes: Axes, placement: Placement, index: int) -> None:
    each = placement.profile
    if each.base is None or each.exponent is None:
        return
    colour = style.colour_of(index)
    x, y = each.exponent, each.base
    left, right = x.drawn_ends
    sideways = [[x.value - left], [right - x.value]]
    bottom, top = _ends(y)
    upwards = [[y.value - bottom], [top - y.value]]
    axes.errorbar(
        [x.value], [y.value], xerr=sideways, yerr=upwards, fmt="none", ecolor=colour, elinewidth=0.9, capsize=1.8,
        zorder=3,
    )  # fmt: skip
    axes.plot(
        [x.value], [y.value], ls="none", label=f"{each.platform}: {each.operator}", zorder=4,
        **style.marks(index, 6, 1.2, filled=not each.published),
    )  # fmt: skip


def _platform_handle(name: str, index: int, published: bool) -> Line2D:
    label = f"{name}{' (published)' if published else ''}"
    return Line2D([], [], ls="none", label=label, **style.marks(index, 6, 1.2, filled=not published))


def _left_out(found: OpqAnalysis, drawn: Sequence[Placement]) -> str:
    missing = [p.profile for p in found.placements if p not in drawn]
    said = [
        f"{p.operator}" + (f" (below {number(p.below_cycles, 2)} cycles)" if p.below_cycles is not None else "")
        for p in missing
    ]
    if len(said) > 4:
        said = [*said[:4], f"{len(said) - 4} more"]
    return f"not drawn: {', '.join(said)}" if said else ""


def _label(
    figure: Figure, axes: Axes, drawn: Sequence[Placement], arrows: Sequence[QuadrantShift], numbers: Mapping[str, int]
) -> None:
    """Names beside the points, each where it covers least of what is there already; far ones with a line to it."""
    figure.canvas.draw()
    pixels = figure.dpi / 72
    at = axes.transData.transform(np.array(_points(drawn)))
    frame = axes.get_window_extent()
    taken: list[Box] = [(x - 4 * pixels, y - 4 * pixels, x + 4 * pixels, y + 4 * pixels) for x, y in at]
    for shift in arrows:
        ends = axes.transData.transform(np.array(_points([shift.start, shift.end])))
        along = np.linspace(ends[0], ends[1], 2 + int(np.hypot(*(ends[1] - ends[0])) / (6 * pixels)))
        taken += [(x - pixels, y - pixels, x + pixels, y + pixels) for x, y in along]
    for placement, (x, y) in zip(drawn, at, strict=True):
        text = placement.profile.operator
        colour = style.colour_of(numbers[placement.profile.platform])
        width, height = 0.6 * LABEL_PT * len(text) * pixels, 1.2 * LABEL_PT * pixels
        offsets = [offset for far in RINGS for offset in _around(far, width / pixels)]
        boxes = [
            (x + dx * pixels, y + dy * pixels, x + dx * pixels + width, y + dy * pixels + height) for dx, dy in offsets
        ]
        edges = (frame.x0, frame.y0, frame.x1, frame.y1)
        # A little dearer with every ring: near is better where both are free.
        costs = [
            sum(_overlap(box, other) for other in taken) + 50 * _outside(box, edges) + 2 * pixels**2 * (n // 8)
            for n, box in enumerate(boxes)
        ]
        best = int(np.argmin(costs))
        leader = {"arrowstyle": "-", "lw": 0.5, "color": colour, "shrinkA": 0, "shrinkB": 3}
        taken.append(boxes[best])
        style.note(
            axes, text, _points([placement])[0], offsets[best], LABEL_PT, color=colour, ha="left", va="bottom",
            arrowprops=leader if best >= 8 else None, zorder=5,
        )  # fmt: skip


def _around(far: float, width: float) -> list[tuple[float, float]]:
    """Eight places around a point for the lower left corner of a label, in points."""
    left, middle = -width, -width / 2
    return [
        (7 * far, -0.4 * LABEL_PT), (left - 7 * far, -0.4 * LABEL_PT), (middle, 6 * far), (middle, -6 * far - LABEL_PT),
        (5 * far, 5 * far), (5 * far, -5 * far - LABEL_PT),
        (left - 5 * far, 5 * far), (left - 5 * far, -5 * far - LABEL_PT),
    ]  # fmt: skip


def _overlap(a: Box, b: Box) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _outside(box: Box, frame: Box) -> float:
    return sum(max(0.0, d) for d in (frame[0] - box[0], frame[1] - box[1], box[2] - frame[2], box[3] - frame[3]))
