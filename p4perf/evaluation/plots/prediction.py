"""Figures of a prediction: packet rates over frame sizes, and the cost breakdown as a flame graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, NullLocator

from p4perf.errors import NoVerdictError
from p4perf.evaluation.plots import style
from p4perf.evaluation.plots.style import PlotInfo
from p4perf.evaluation.prediction.answer import PathName, Prediction, line_mpps
from p4perf.evaluation.prediction.breakdown import ORDER, Itemised, describe
from p4perf.models.notation import number
from p4perf.programs.reading.flow import base_name

LEVELS = ("program", "part", "node", "construct")
ROW_IN = 0.42
HATCHES = {"bounded": "////", "unknown": "xxxx", "extrapolated": "...."}
"""Of constructs whose price is not of a measurement at their sizes; everything else is plain."""
_TINT = 0.22
_CHAR_IN = 0.068


@dataclass(frozen=True)
class Box:
    """A rectangle: its range on the axis of cycles, its level and its label."""

    start: float
    width: float
    level: int
    text: str
    colour: int
    hatch: str = ""


def flame_boxes(found: Itemised, program: str) -> tuple[Box, ...]:
    """The rectangles of a cost breakdown, each below the one that it belongs to.

    What constructs cost beside one another is a part of its own if it adds cycles; if it saves some it is not drawn.
    """
    breakdown = found.breakdown
    total = breakdown.baseline + sum(line.charge.cycles.value for line in found.lines) + max(breakdown.interaction, 0.0)
    boxes = [Box(0.0, total, 0, f"{program}: {_cycles(breakdown.cycles.value)} cycles", 0)]
    at = 0.0
    if breakdown.baseline > 0:
        boxes.append(Box(at, breakdown.baseline, 1, f"baseline {_cycles(breakdown.baseline)}", 7))
        at += breakdown.baseline
    for part in ORDER:
        lines = [line for line in found.lines if line.part == part]
        width = sum(line.charge.cycles.value for line in lines)
        if width <= 0:
            continue
        colour = ORDER.index(part) % len(style.COLOURS)
        boxes.append(Box(at, width, 1, f"{part} {_cycles(width)}", colour))
        for node in dict.fromkeys(base_name(line.node) for line in lines):
            charges = [line.charge for line in lines if base_name(line.node) == node and line.charge.cycles.value > 0]
            node_width = sum(charge.cycles.value for charge in charges)
            if charges:
                boxes.append(Box(at, node_width, 2, f"{node} {_cycles(node_width)}", colour))
            for charge in charges:
                cycles, hatch = charge.cycles.value, HATCHES.get(charge.basis, "")
                boxes.append(Box(at, cycles, 3, f"{describe(charge.what)} {_cycles(cycles)}", colour, hatch))
                at += cycles
    if breakdown.interaction > 0:
        boxes.append(Box(at, breakdown.interaction, 1, f"interaction {_cycles(breakdown.interaction)}", 6))
    return tuple(boxes)


def flame_figure(found: Prediction, path: PathName = "expected", *, info: PlotInfo = style.PLAIN) -> Figure:
    boxes = flame_boxes(found.breakdowns[path], found.graph.name)
    if not boxes[0].width > 0:
        raise NoVerdictError(f"nothing of {found.graph.name} costs anything: there is nothing to draw")
    band = found.cycles(path)
    note = f"{path} path · {_cycles(band.low)} to {_cycles(band.high)} cycles"
    hatched = [basis for basis, hatch in HATCHES.items() if any(box.hatch == hatch for box in boxes)]
    height = 0.45 + ROW_IN * len(LEVELS) + 0.62
    with style.new_figure(style.WIDTH_IN, height) as figure:
        axes = figure.add_axes((style.LEFT, 0.62 / height, style.RIGHT - style.LEFT, ROW_IN * len(LEVELS) / height))
        _set_up(axes, boxes[0].width)
        inch = style.WIDTH_IN * (style.RIGHT - style.LEFT) / boxes[0].width
        for box in boxes:
            _draw(axes, box, inch)
        marks = ", ".join(f"{basis} {_MARKS[basis]}" for basis in hatched)
        source = " · ".join(text for text in (marks, f"target {found.model.target}") if text)
        info = replace(info, machine=info.machine or found.model.machine)
        style.frame(figure, info, f"{found.graph.name} on {found.model.name}", note=note, source=source)
    return figure


_MARKS = {"bounded": "hatched", "unknown": "crossed", "extrapolated": "dotted"}


def _set_up(axes: Axes, total: float) -> None:
    axes.set_xlim(0, total)
    axes.set_ylim(len(LEVELS), 0)
    axes.set_xlabel("cycles per packet")
    axes.set_yticks([n + 0.5 for n in range(len(LEVELS))], list(LEVELS))
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.xaxis.set_major_formatter(lambda value, _: style.minus(number(value)))


def _draw(axes: Axes, box: Box, inch: float) -> None:
    face = _tinted(style.COLOURS[box.colour], _TINT if box.level else 0.08)
    axes.add_patch(
        Rectangle(
            (box.start, box.level), box.width, 1, fc=face, ec=style.INK, lw=0.5, hatch=box.hatch or None, zorder=2
        )
    )
    text = shortened(box.text, int(box.width * inch / _CHAR_IN))
    if text:
        axes.text(
            box.start + box.width / 2, box.level + 0.5, text, ha="center", va="center", fontsize=7,
            color=style.INK if box.level else style.GREY, zorder=3, clip_on=True,
        )  # fmt: skip


def shortened(text: str, room: int) -> str:
    """A text cut to a number of letters; empty below four."""
    if len(text) <= room:
        return text
    return text[: room - 1] + "…" if room >= 4 else ""


def _tinted(colour: str, strength: float) -> tuple[float, float, float]:
    red, green, blue = (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
    return (1 - strength * (1 - red), 1 - strength * (1 - green), 1 - strength * (1 - blue))


def _cycles(value: float) -> str:
    return style.minus(number(value, 3 if abs(value) < 1000 else 4))


AXES_IN = 2.7


def rate_figure(found: Sequence[Prediction], *, info: PlotInfo = style.PLAIN) -> Figure:
    """Draw packet rates [Mpps] with intervals over frame size; dashed, the line of the first prediction."""
    first = found[0]
    with style.panel(AXES_IN) as (figure, axes):
        handles: list[Artist] = [_draw_line(axes, first)]
        for index, each in enumerate(found):
            handles.append(_draw_rates(axes, each, index, _label(each, found)))
        ticks = [size.frame_bytes for size in first.sizes]
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator([t for t in ticks if t != 1280]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_major_formatter(lambda value, _: style.tick(value))
        axes.set_ylim(bottom=0)
        axes.set_xlabel(info.x_label or "frame size with FCS [B]")
        axes.set_ylabel(info.y_label or "packet rate [Mpps]")
        style.set_grid(axes, "y")
        note = f"{100 * first.expected.breakdown.level:g} % intervals"
        machines = ", ".join(dict.fromkeys(each.model.machine for each in found))
        info = replace(info, machine=info.machine or machines)
        style.finish(figure, handles, info, f"{first.graph.name}: packet rate", axes_in=AXES_IN, note=note)
    return figure


def _draw_line(axes: Axes, first: Prediction) -> Line2D:
    at = np.geomspace(first.sizes[0].frame_bytes, first.sizes[-1].frame_bytes, 80)
    rate = first.conditions.line_rate_bps
    (line,) = axes.plot(
        at, [line_mpps(rate, round(size)) for size in at], color=style.INK, lw=1.0, ls=(0, (4, 3)),
        label=f"line, {rate / 1e9:g} Gbit/s",
    )  # fmt: skip
    return line


def _draw_rates(axes: Axes, each: Prediction, index: int, label: str) -> Artist:
    colour, marker, line = style.colour_of(index), style.marker_of(index), style.line_of(index)
    at = np.geomspace(each.sizes[0].frame_bytes, each.sizes[-1].frame_bytes, 80)
    sizes = [each.rate_at(round(size)) for size in at]
    low = [s.mpps.low for s in sizes]
    high = [s.mpps.high if math.isfinite(s.mpps.high) else s.line_mpps for s in sizes]
    axes.fill_between(at, low, high, color=colour, alpha=0.18, lw=0, zorder=1)
    axes.plot(at, [s.mpps.value for s in sizes], color=colour, lw=1.3, ls=line, zorder=2)
    x, y = [s.frame_bytes for s in each.sizes], [s.mpps.value for s in each.sizes]
    axes.plot(x, y, ls="none", marker=marker, ms=4.6, mfc=style.PAPER, mec=colour, zorder=3)
    return Line2D(
        [], [], color=colour, lw=1.3, ls=line, marker=marker, ms=4.6, mfc=style.PAPER, mec=colour, label=label
    )


def _label(each: Prediction, every: Sequence[Prediction]) -> str:
    """What distinguishes a prediction from the others."""
    parts = [each.model.target]
    if len({p.model.machine for p in every}) > 1:
        parts[0] = each.model.name
    if len({p.graph.name for p in every}) > 1:
        parts.append(each.graph.name)
    if each.values and len({tuple(p.values.items()) for p in every}) > 1:
        parts.append(", ".join(f"{k}={v}" for k, v in each.values.items()))
    if any(p.changes for p in every):
        parts.append("; ".join(each.changes) or "unchanged")
    cores = each.conditions.cores
    parts.append("one core" if cores == 1 else f"{cores} cores")
    return ", ".join(parts)
