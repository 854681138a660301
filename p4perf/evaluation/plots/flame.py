"""The bill of a program as a flame graph: widths are cycles, levels are program, part, node and construct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from p4perf.errors import NoVerdictError
from p4perf.evaluation.answer.lines import ORDER, Itemised, describe
from p4perf.evaluation.answer.prediction import PathName, Prediction
from p4perf.evaluation.plots.style import (
    COLOURS,
    GREY,
    INK,
    LEFT,
    RIGHT,
    WIDTH_IN,
    PlotInfo,
    header,
    minus,
    new_figure,
    small_print,
)
from p4perf.evaluation.reading.flow import base_name
from p4perf.models.notation import number

LEVELS = ("program", "part", "node", "construct")
ROW_IN = 0.42
HATCHES = {"bounded": "////", "unknown": "xxxx", "extrapolated": "...."}
"""Of constructs whose price is not of a measurement at their sizes; everything else is plain."""
_TINT = 0.22
_CHAR_IN = 0.068


@dataclass(frozen=True)
class Box:
    """A rectangle: from where to where on the axis of cycles, on which level, and what it says."""

    start: float
    width: float
    level: int
    text: str
    colour: int
    hatch: str = ""


def flame_boxes(found: Itemised, program: str) -> tuple[Box, ...]:
    """The rectangles of a bill, each below the one that it belongs to.

    What constructs cost beside one another is a part of its own if it adds cycles; if it saves some it is not drawn.
    """
    bill = found.bill
    total = bill.baseline + sum(line.charge.cycles for line in found.lines) + max(bill.context, 0.0)
    boxes = [Box(0.0, total, 0, f"{program}: {_cycles(bill.cycles)} cycles", 0)]
    at = 0.0
    if bill.baseline > 0:
        boxes.append(Box(at, bill.baseline, 1, f"baseline {_cycles(bill.baseline)}", 7))
        at += bill.baseline
    for part in ORDER:
        lines = [line for line in found.lines if line.part == part]
        width = sum(line.charge.cycles for line in lines)
        if width <= 0:
            continue
        colour = ORDER.index(part) % len(COLOURS)
        boxes.append(Box(at, width, 1, f"{part} {_cycles(width)}", colour))
        for node in dict.fromkeys(base_name(line.node) for line in lines):
            own = [line for line in lines if base_name(line.node) == node]
            node_width = sum(line.charge.cycles for line in own)
            if node_width <= 0:
                continue
            boxes.append(Box(at, node_width, 2, f"{node} {_cycles(node_width)}", colour))
            for line in own:
                charge = line.charge
                if charge.cycles <= 0:
                    continue
                hatch = HATCHES.get(charge.basis, "")
                boxes.append(
                    Box(at, charge.cycles, 3, f"{describe(charge.what)} {_cycles(charge.cycles)}", colour, hatch)
                )
                at += charge.cycles
    if bill.context > 0:
        boxes.append(Box(at, bill.context, 1, f"beside one another {_cycles(bill.context)}", 6))
    return tuple(boxes)


def flame_figure(found: Prediction, path: PathName = "expected", *, info: PlotInfo | None = None) -> Figure:
    """Draw the bill of a way.

    Args:
        found: the prediction.
        path: which way.
        info: title, note and footer.

    Raises:
        NoVerdictError: nothing costs anything.
    """
    boxes = flame_boxes(found.bills[path], found.graph.name)
    if not boxes[0].width > 0:
        raise NoVerdictError(f"nothing of {found.graph.name} costs anything: there is nothing to draw")
    info = info or PlotInfo()
    band = found.cycles(path)
    note = f"{path} way · {_cycles(band.low)} to {_cycles(band.high)} cycles"
    hatched = [basis for basis, hatch in HATCHES.items() if any(box.hatch == hatch for box in boxes)]
    height = 0.45 + ROW_IN * len(LEVELS) + 0.62
    with new_figure(WIDTH_IN, height) as figure:
        axes = figure.add_axes((LEFT, 0.62 / height, RIGHT - LEFT, ROW_IN * len(LEVELS) / height))
        _set_up(axes, boxes[0].width)
        inch = WIDTH_IN * (RIGHT - LEFT) / boxes[0].width
        for box in boxes:
            _draw(axes, box, inch)
        header(figure, info.title or f"{found.graph.name} on {found.model.name}", info.note or note)
        marks = ", ".join(f"{basis} {_MARKS[basis]}" for basis in hatched)
        texts = (marks, *_small(found, info))
        small_print(figure, " · ".join(text for text in texts if text))
    return figure


_MARKS = {"bounded": "hatched", "unknown": "crossed", "extrapolated": "dotted"}


def _small(found: Prediction, info: PlotInfo) -> Sequence[str]:
    return (f"target {found.model.target}", info.machine or found.model.machine, info.date)


def _set_up(axes: Axes, total: float) -> None:
    axes.set_xlim(0, total)
    axes.set_ylim(len(LEVELS), 0)
    axes.set_xlabel("cycles per packet")
    axes.set_yticks([n + 0.5 for n in range(len(LEVELS))], list(LEVELS))
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.xaxis.set_major_formatter(lambda value, _: minus(number(value)))


def _draw(axes: Axes, box: Box, inch: float) -> None:
    """A rectangle with as much of its text as it has room for."""
    face = _tinted(COLOURS[box.colour], _TINT if box.level else 0.08)
    axes.add_patch(
        Rectangle((box.start, box.level), box.width, 1, fc=face, ec=INK, lw=0.5, hatch=box.hatch or None, zorder=2)
    )
    text = shortened(box.text, int(box.width * inch / _CHAR_IN))
    if text:
        axes.text(
            box.start + box.width / 2, box.level + 0.5, text, ha="center", va="center", fontsize=7,
            color=INK if box.level else GREY, zorder=3, clip_on=True,
        )  # fmt: skip


def shortened(text: str, room: int) -> str:
    """As much of a text as so many letters have room for: nothing if that is fewer than four."""
    if len(text) <= room:
        return text
    return text[: room - 1] + "…" if room >= 4 else ""


def _tinted(colour: str, strength: float) -> tuple[float, float, float]:
    """A colour mixed with white."""
    red, green, blue = (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
    return (1 - strength * (1 - red), 1 - strength * (1 - green), 1 - strength * (1 - blue))


def _cycles(value: float) -> str:
    return minus(number(value, 3 if abs(value) < 1000 else 4))
