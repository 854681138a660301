"""What the figures of loss, latency and throughput share: logarithmic axes, marks, bounds of rates, legends."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from matplotlib.transforms import Bbox, blended_transform_factory

from p4perf.evaluation.plots.comparison import LINES, MARKERS
from p4perf.evaluation.plots.load_data import Offered, RateBound
from p4perf.evaluation.plots.style import COLOURS, FAINT, INK, PAPER, minus
from p4perf.models.notation import number

FLOOR_DASHES = (0, (4, 2))
NARROW, WIDE = 4.0, 200.0
"""Ranges of a logarithmic axis, largest over smallest: with even ticks below, with powers of ten only above."""
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Handle = Line2D | Patch


def colour_of(index: int) -> str:
    """Colour of a series."""
    return COLOURS[index % len(COLOURS)]


def marker_of(index: int) -> str:
    """Marker of a series."""
    return MARKERS[index % len(MARKERS)]


def set_grid(axes: Axes, which: str = "both") -> None:
    """A faint grid behind, no frame at the top and right."""
    axes.grid(which="major", axis=which, color=FAINT, lw=0.6, zorder=0)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def log_axis(axis: Axis, low: float, high: float, *, room: float = 0.05) -> None:
    """A logarithmic axis from low to high and a little more, with plain numbers.

    Args:
        axis: which axis.
        low: smallest value, positive.
        high: largest value.
        room: what is added at each end, as a share of the length of the axis.
    """
    axes = axis.axes
    low, high = (low, high) if high > low else (low / 2, high * 2)
    more = (high / low) ** room
    (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
    (axes.set_xlim if axis is axes.xaxis else axes.set_ylim)(low / more, high * more)
    if high < NARROW * low:
        axis.set_major_locator(MaxNLocator(6))
    else:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < WIDE * low else (1.0,), numticks=12))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))


def plain(value: float) -> str:
    """A number on a logarithmic axis: as it is while it is short, else ``10⁻⁶`` or ``2·10⁻⁶``."""
    if value <= 0 or 1e-3 <= value < 1e6:
        return minus(f"{value:g}")
    exponent = math.floor(math.log10(value) + 1e-9)
    mantissa = number(value / 10.0**exponent, 3)
    power = f"10{str(exponent).translate(_RAISED)}"
    return power if mantissa == "1" else f"{mantissa}·{power}"


def offered_axis(axes: Axes, unit: Offered, loads: Sequence[float], label: str) -> None:
    """The axis of offered load, from zero: loads are not cut off at the left."""
    axes.set_xlabel(label or unit.label)
    high = max(loads)
    axes.set_xlim(0.0, high * 1.04 if high > 0 else 1.0)
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: minus(f"{value:g}")))


def draw_points(
    axes: Axes, x: Sequence[float], y: Sequence[float], flagged: Sequence[bool], index: int, *, size: float = 4.6
) -> None:
    """Markers, filled where a value has no quality flags and hollow where it has; NaN are not drawn."""
    at, values, hollow = np.asarray(x), np.asarray(y), np.asarray(flagged, dtype=bool)
    for wanted, fill in ((~hollow, colour_of(index)), (hollow, PAPER)):
        chosen = wanted & np.isfinite(values)
        if chosen.any():
            axes.plot(
                at[chosen], values[chosen], ls="none", marker=marker_of(index), ms=size, mfc=fill, mec=colour_of(index),
                mew=1.0, zorder=5,
            )  # fmt: skip


def series_handle(index: int, label: str, *, joined: bool = True) -> Line2D:
    """A series in a legend: line and filled marker."""
    return Line2D(
        [], [], color=colour_of(index), lw=1.4, ls="-" if joined else "none", marker=marker_of(index), ms=4.6,
        mfc=colour_of(index), mec=colour_of(index), label=label,
    )  # fmt: skip


def flag_handle() -> Line2D:
    """What a hollow marker means."""
    return Line2D([], [], ls="none", marker="o", ms=4.6, mfc=PAPER, mec=INK, label="hollow: has quality flags")


def draw_bounds(panels: Sequence[Axes], bounds: Sequence[RateBound]) -> list[Handle]:
    """A vertical line for each rate and a band for its bounds, through all panels; handles for the legend.

    Names stand above the lines where they do not hide each other, rates and bounds in the legend. To be called when
    the limits of the axes are final.
    """
    handles: list[Handle] = []
    for index, bound in enumerate(bounds):
        style = LINES[1 + index % (len(LINES) - 1)]
        for axes in panels:
            axes.axvspan(bound.low, bound.high, color=INK, alpha=0.12, lw=0, zorder=0.5)
            axes.axvline(bound.value, color=INK, lw=1.0, ls=style, zorder=1.5)
        interval = f"{number(bound.low)} to {number(bound.high)}"
        label = f"{_bound_name(bound)}: {number(bound.value)} (bounds {interval})"
        handles.append(Line2D([], [], color=INK, lw=1.0, ls=style, label=label))
    top = panels[0]
    place = blended_transform_factory(top.transData, top.transAxes)
    ordered = sorted(bounds, key=lambda bound: bound.value)
    taken: list[Bbox] = []
    for position, bound in enumerate(ordered):
        # The leftmost name stands left of its line and the others right: two close lines do not hide each other's.
        left = position == 0 and len(ordered) > 1
        name = top.annotate(
            bound.label, xy=(bound.value, 1.0), xycoords=place, xytext=(-2 if left else 2, 1.5),
            textcoords="offset points", ha="right" if left else "left", va="bottom", fontsize=8, color=INK,
            annotation_clip=False,
        )  # fmt: skip
        box = name.get_window_extent()
        if any(box.overlaps(other) for other in taken):
            name.remove()
        else:
            taken.append(box)
    return handles


def _bound_name(bound: RateBound) -> str:
    if bound.loss == 0 or "%" in bound.label:
        return bound.label
    return f"{bound.label} ({number(100 * bound.loss)} % loss)"


def repetitions_text(values: Sequence[Sequence[float]]) -> str:
    """Number of repetitions of points that have any: ``5``, or ``3 to 5``."""
    counts = [len(each) for each in values if len(each)] or [0]
    return f"{max(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
