"""The chart of quadrants (Fig. 3 of Ren et al. 2025): base cost over exponent, with an arrow for every shift."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch
from matplotlib.ticker import FuncFormatter, NullFormatter

from p4perf.errors import NoVerdictError
from p4perf.evaluation.operators.analysis import OpqAnalysis
from p4perf.evaluation.operators.quadrants import Placement, Quadrant
from p4perf.evaluation.operators.shifts import Shift
from p4perf.evaluation.plots.comparison import MARKERS
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
from p4perf.models.operator import LINEAR

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


def quadrant_figure(found: OpqAnalysis, *, info: PlotInfo | None = None) -> Figure:
    """Draw operators by exponent and base cost (logarithmic), and where they go from platform to platform.

    Platforms differ in marker and colour; published ones are hollow. A solid arrow leads into another quadrant, a
    dashed one stays in its own. Operators without a point (below the resolution, or measured at one size) are named at
    the bottom.

    Args:
        found: the analysis.
        info: title and footer (machine and date).

    Raises:
        NoVerdictError: no operator has both a base cost and an exponent.
    """
    info = info or PlotInfo()
    drawn = [p for p in found.placements if _point(p) is not None]
    if not drawn:
        raise NoVerdictError("no operator has a base cost and an exponent: there is nothing to draw")
    numbers = {platform.name: index for index, platform in enumerate(found.platforms)}
    height = AXES_IN if len(drawn) <= MANY else TALL_IN
    with new_figure(WIDTH_IN, height) as figure:
        axes = figure.add_subplot()
        _set_up(axes, drawn)
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
            Line2D([], [], color=INK if changed else GREY, lw=1.0, ls=CHANGED if changed else SAME, label=label)
            for changed, label in ((True, "into another quadrant"), (False, "within its quadrant"))
            if any(bool(shift.changed) is changed for shift in arrows)
        ]
        handles.append(
            Line2D([], [], color=INK, lw=0.9, ls=(0, (6, 3)), label=f"split: {found.options.threshold.text()}")
        )
        legend_below(figure, handles, axes_in=height, above_in=0.47)
        header(figure, info.title or "Operator performance quadrants", info.note)
        small_print(figure, " · ".join(text for text in (_left_out(found, drawn), info.machine, info.date) if text))
        _label(figure, axes, drawn, arrows, numbers)
    return figure


def _point(placement: Placement) -> tuple[float, float] | None:
    base, exponent = placement.profile.base, placement.profile.exponent
    return None if base is None or exponent is None or base.value <= 0 else (exponent.value, base.value)


def _points(placements: Sequence[Placement]) -> list[tuple[float, float]]:
    return [point for p in placements if (point := _point(p)) is not None]


def _set_up(axes: Axes, drawn: Sequence[Placement]) -> None:
    points = _points(drawn)
    exponents = [x for x, _ in points]
    base = [y for _, y in points] + [p.threshold_cycles for p in drawn]
    axes.set_yscale("log")
    axes.set_xlim(min(*exponents, LINEAR - ROOM, 0.0) - ROOM, max(*exponents, LINEAR + ROOM) + ROOM)
    axes.set_ylim(min(base) / 2.5, max(base) * 3.5)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(color=FAINT, lw=0.5, zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_borders(axes: Axes, found: OpqAnalysis) -> None:
    """The exponent 1, the threshold or thresholds, and the names in the corners."""
    axes.axvline(LINEAR, color=INK, lw=0.9, zorder=1)
    splits: dict[float, list[str]] = {}
    for p in found.placements:
        names = splits.setdefault(p.threshold_cycles, []) if math.isfinite(p.threshold_cycles) else []
        if p.profile.platform not in names:
            names.append(p.profile.platform)
    for cycles, names in splits.items():
        axes.axhline(cycles, color=INK, lw=0.9, ls=(0, (6, 3)), zorder=1)
        whose = f" ({', '.join(names)})" if len(splits) > 1 else ""
        axes.annotate(
            f"{number(cycles, 3)} cycles{whose}", xy=(1, cycles), xycoords=("axes fraction", "data"), xytext=(-2, 2),
            textcoords="offset points", ha="right", va="bottom", fontsize=7, color=GREY,
        )  # fmt: skip
    corners = {
        Quadrant.HIGH_STARTUP: (0.01, 0.99, "left", "top"),
        Quadrant.LATENT_TRAP: (0.99, 0.99, "right", "top"),
        Quadrant.IDEAL: (0.01, 0.01, "left", "bottom"),
        Quadrant.EMERGENT: (0.99, 0.01, "right", "bottom"),
    }
    for quadrant, (x, y, ha, va) in corners.items():
        axes.text(
            x, y, quadrant.value.upper(), transform=axes.transAxes, ha=ha, va=va, fontsize=8, color=GREY,
            fontweight="bold", zorder=1,
        )  # fmt: skip


def _draw_arrow(axes: Axes, shift: Shift) -> None:
    start, end = _point(shift.start), _point(shift.end)
    if start is None or end is None:
        return
    changed = bool(shift.changed)
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=9,
            shrinkA=5,
            shrinkB=5,
            lw=1.0,
            zorder=2,
            color=INK if changed else GREY,
            ls=CHANGED if changed else SAME,
            label="shift" if changed else "stay",
        )
    )


def _draw_point(axes: Axes, placement: Placement, index: int) -> None:
    each = placement.profile
    if each.base is None or each.exponent is None:
        return
    colour = COLOURS[index % len(COLOURS)]
    x, y = each.exponent, each.base
    sideways = [
        [x.value - (x.low if x.low is not None else x.value)],
        [(x.high if x.high is not None else x.value) - x.value],
    ]
    low = max(y.low, y.value / 20) if y.low is not None else y.value
    upwards = [[y.value - low], [(y.high if y.high is not None else y.value) - y.value]]
    axes.errorbar(
        [x.value], [y.value], xerr=sideways, yerr=upwards, fmt="none", ecolor=colour, elinewidth=0.9, capsize=1.8,
        zorder=3,
    )  # fmt: skip
    axes.plot(
        [x.value], [y.value], ls="none", marker=MARKERS[index % len(MARKERS)], ms=6, mec=colour, mew=1.2, zorder=4,
        mfc=PAPER if each.published else colour, label=f"{each.platform}: {each.operator}",
    )  # fmt: skip


def _platform_handle(name: str, index: int, published: bool) -> Line2D:
    colour = COLOURS[index % len(COLOURS)]
    return Line2D(
        [], [], ls="none", marker=MARKERS[index % len(MARKERS)], ms=6, mec=colour, mew=1.2,
        mfc=PAPER if published else colour, label=f"{name}{' (published)' if published else ''}",
    )  # fmt: skip


def _left_out(found: OpqAnalysis, drawn: Sequence[Placement]) -> str:
    """Operators without a point, in words."""
    missing = [p.profile for p in found.placements if p not in drawn]
    said = [
        f"{p.operator}" + (f" (below {number(p.below_cycles, 2)} cycles)" if p.below_cycles is not None else "")
        for p in missing
    ]
    if len(said) > 4:
        said = [*said[:4], f"{len(said) - 4} more"]
    return f"not drawn: {', '.join(said)}" if said else ""


def _label(
    figure: Figure, axes: Axes, drawn: Sequence[Placement], arrows: Sequence[Shift], numbers: Mapping[str, int]
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
        colour = COLOURS[numbers[placement.profile.platform] % len(COLOURS)]
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
        axes.annotate(
            text, xy=_points([placement])[0], xytext=offsets[best], textcoords="offset points", fontsize=LABEL_PT,
            color=colour, ha="left", va="bottom", zorder=5,
            arrowprops=leader if best >= 8 else None,
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
