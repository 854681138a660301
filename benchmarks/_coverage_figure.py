"""The figure of a coverage study: for every group, what the intervals hold, beside what they aim at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from _coverage_summary import Row, Share
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from p4perf.evaluation.plots.style import COLOURS, FAINT, GREY, INK, header, new_figure

SHOWN: tuple[tuple[str, Callable[[Row], Share]], ...] = (
    ("band of the curve", lambda row: row.band),
    ("parameters", lambda row: row.parameters),
    ("sharp breakpoints", lambda row: row.sharp),
)
ROW_IN, GAP = 0.215, 0.55
WIDTH_IN, ABOVE_IN, BELOW_IN = 7.2, 0.72, 0.72
LEFT, RIGHT = 0.275, 0.975


def coverage_figure(rows: Sequence[Row], *, level: float, accepted: tuple[float, float]) -> Figure:
    """Coverage with two standard errors to either side, for the band, the parameters and the sharp breakpoints.

    Args:
        rows: groups.
        level: what the intervals aim at.
        accepted: lowest and highest coverage of the band, in percent, that is called good.
    """
    places = _places(rows)
    height = ABOVE_IN + BELOW_IN + ROW_IN * (places[-1] + 1)
    lowest = min(80.0, *(get(row).percent - 2 * get(row).error for row in rows for _, get in SHOWN if get(row).count))
    with new_figure(WIDTH_IN, height) as figure:
        grid = figure.add_gridspec(
            1, len(SHOWN), left=LEFT, right=RIGHT, top=1 - ABOVE_IN / height, bottom=BELOW_IN / height, wspace=0.07
        )
        for index, (title, get) in enumerate(SHOWN):
            axes = figure.add_subplot(grid[0, index])
            _panel(axes, rows, places, get, colour=COLOURS[index])
            axes.set_title(title, fontsize=9.5, fontweight="bold", color=COLOURS[index], pad=5)
            axes.axvline(100 * level, color=INK, lw=0.9, zorder=1)
            if index == 0:
                axes.axvspan(*accepted, color=COLOURS[0], alpha=0.12, lw=0, zorder=0)
            axes.set_xlim(5 * (lowest // 5), 101)
            axes.set_ylim(places[-1] + 0.6, -0.6)
            axes.set_yticks(places, [f"{row.group}  ({row.series})" for row in rows] if index == 0 else [])
            for label, row in zip(axes.get_yticklabels(), rows, strict=False):
                label.set_fontweight("normal" if row.factor else "bold")
        header(figure, f"How often {100 * level:g} % intervals hold the truth", f"{rows[0].series} series", left=0.025)
        note = (
            f"bars: two standard errors to either side; black line: the level; shaded: accepted, {accepted[0]:g} to "
            f"{accepted[1]:g} %; in brackets: number of series"
        )
        figure.text(0.025, 0.1 / height, note, fontsize=7, color=GREY, va="bottom")
        figure.text((LEFT + RIGHT) / 2, 0.28 / height, "coverage [%]", fontsize=9, color=INK, ha="center", va="bottom")
    return figure


def _places(rows: Sequence[Row]) -> list[float]:
    """Heights of the rows, with room between factors."""
    places = [0.0]
    for before, row in pairwise(rows):
        places.append(places[-1] + 1 + GAP * (row.factor != before.factor))
    return places


def _panel(
    axes: Axes, rows: Sequence[Row], places: Sequence[float], get: Callable[[Row], Share], *, colour: str
) -> None:
    known = [(place, get(row), row) for place, row in zip(places, rows, strict=True) if get(row).count]
    for place, share, row in known:
        ends = max(share.percent - 2 * share.error, 0.0), min(share.percent + 2 * share.error, 100.0)
        axes.plot(ends, (place, place), color=colour, lw=1.6, alpha=0.55, solid_capstyle="butt", zorder=2)
        axes.plot(share.percent, place, ls="none", marker="o", ms=5 if row.factor else 6.5, color=colour, zorder=3)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=FAINT, lw=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
