"""What all figures share: colours, type, axes, header and footer, and files."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from matplotlib.transforms import blended_transform_factory

from p4perf.errors import UsageError
from p4perf.models import ComponentModel, Quantity
from p4perf.models.notation import number
from p4perf.models.templates import FloatArray
from p4perf.results.files import filled_folder, new_folder, write_atomically, write_text_atomically

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F5AA2", "#8C6D31")
"""Distinguishable with any colour vision (Okabe and Ito 2008), two added."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", (0, (6, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (10, 3)), (0, (3, 1.5, 1, 1.5, 1, 1.5)))
"""Series differ in colour, marker and line: each alone distinguishes them."""
INK, GREY, FAINT, PAPER = "#222222", "#6b6b6b", "#d9d9d9", "#ffffff"
WIDTH_IN = 7.2
LEFT, RIGHT = 0.1, 0.975
"""Edges of the axes, as fractions of the figure."""
UNITS = {"cycles": "cycles", "pps": "packets/s", "bytes": "B", "us": "µs"}
_STYLE: dict[str, object] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.labelsize": 9.5,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.fontsize": 8.5,
    "svg.fonttype": "none",
    "text.parse_math": False,  # names of data are no formulas
    "svg.hashsalt": "p4perf",
}
NARROW, WIDE = 4.0, 200.0
"""Ranges of a logarithmic axis, largest over smallest: with even ticks below, with powers of ten only above."""
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class PlotInfo:
    """What stands around the curve."""

    title: str = ""
    machine: str = ""
    date: str = ""
    x_label: str = ""
    y_label: str = ""
    note: str = ""


PLAIN = PlotInfo()


@contextmanager
def new_figure(width_in: float, height_in: float) -> Iterator[Figure]:
    """An empty figure, to be drawn in our style within the context."""
    with mpl.rc_context(_STYLE), warnings.catch_warnings():  # type: ignore[arg-type]
        warnings.filterwarnings("ignore", "Glyph .* missing")  # names of data may have any character
        figure = Figure(figsize=(width_in, height_in), dpi=200)
        FigureCanvasAgg(figure)
        yield figure


@contextmanager
def panel(height_in: float) -> Iterator[tuple[Figure, Axes]]:
    """A figure as wide as all, and its only axes."""
    with new_figure(WIDTH_IN, height_in) as figure:
        yield figure, figure.add_subplot()


def line_of(index: int) -> str | tuple[float, tuple[float, ...]]:
    return LINES[index % len(LINES)]


def set_up_axes(axes: Axes, model: ComponentModel, info: PlotInfo) -> None:
    set_up_x(axes, model.x, model.domain)
    axes.set_xlabel(info.x_label or axis_label(model.x))
    axes.set_ylabel(info.y_label or axis_label(model.y))


def set_up_x(axes: Axes, x: Quantity, domain: tuple[float, float]) -> None:
    """Scale and ticks of x for abscissae of that domain, and the grid."""
    first, last = domain
    if x.scale == "log":
        if last <= 0:
            raise UsageError("a logarithmic axis needs a positive x", hint="use the x scale linear")
        axes.set_xscale("log" if first > 0 else "symlog")
        if first > 0 and last <= 100 * first:
            axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    set_grid(axes, "y")


def set_grid(
    axes: Axes, which: Literal["both", "x", "y"] = "both", *, hidden: Sequence[str] = ("top", "right")
) -> None:
    """A faint grid behind the data, and a frame without the hidden sides."""
    axes.grid(axis=which, color=FAINT, lw=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.spines[list(hidden)].set_visible(False)


def plain_ticks(axis: Axis) -> None:
    """Numbers at the major ticks only, as :func:`tick` writes them."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    axis.set_minor_formatter(NullFormatter())


def colour_of(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def marker_of(index: int) -> str:
    return MARKERS[index % len(MARKERS)]


def marks(index: int, size: float, width: float = 0.9, *, filled: bool = False) -> dict[str, Any]:
    """The marker of a series, as arguments of matplotlib; hollow unless it is filled."""
    colour = colour_of(index)
    return {"marker": marker_of(index), "ms": size, "mfc": colour if filled else PAPER, "mec": colour, "mew": width}


def draw_intervals(axes: Axes, x: npt.ArrayLike, y: FloatArray, ends: FloatArray, index: int) -> None:
    """Intervals of the points of a series; the ends have the shape (points, 2)."""
    spread = np.abs(np.stack([y - ends[:, 0], ends[:, 1] - y]))
    axes.errorbar(x, y, yerr=spread, fmt="none", ecolor=colour_of(index), elinewidth=0.9, capsize=1.8, zorder=4)


def note(
    axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], size: float = 8, **how: Any
) -> Annotation:
    """Text some points away from a place."""
    how = {"color": INK, "textcoords": "offset points"} | how
    return axes.annotate(text, at, xytext=offset, fontsize=size, **how)


def write_along(axes: Axes, what: str, x: float, height: float = 0.985, side: str = "right") -> Annotation:
    """Along a vertical line, on a plate beside it, what it is and where: ``breakpoint at 2 k``."""
    plate = {"boxstyle": "round,pad=0.15", "fc": PAPER, "ec": "none", "alpha": 0.85}
    place = blended_transform_factory(axes.transData, axes.transAxes)
    return note(
        axes, f"{what} at {tick(float(f'{x:.3g}'))}", (x, height), (-2 if side == "right" else 2, 0), xycoords=place,
        rotation=90, ha=side, va="top" if height > 0.5 else "bottom", bbox=plate, zorder=7,
    )  # fmt: skip


def log_axis(axis: Axis, low: float, high: float, *, room: float = 0.05) -> None:
    """A logarithmic axis from low to high and a share of its length more at each end, with plain numbers."""
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


def axis_label(quantity: Quantity) -> str:
    """Name and unit as people write them."""
    words = quantity.name.replace("_", " ")
    unit = UNITS.get(quantity.unit, quantity.unit)
    return f"{words} [{unit}]" if unit else words


def tick(value: float) -> str:
    """A number on an axis, such as ``20 k``."""
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size * (10 if suffix == "k" else 1):
            return minus(f"{value / size:g} {suffix}")
    return minus(f"{value:g}")


def minus(text: str) -> str:
    return text.replace("-", "\u2212")


def pretty(formula: str) -> str:
    """A formula with raised exponents and real minus signs: ``3 - 2 x^2`` as ``3 − 2 x²``."""
    raised = re.sub(r"\^(\d+)\b(?!\.)", lambda m: m[1].translate(_SUPERSCRIPTS), formula)
    return re.sub(r"(^|[ (])-(?=[ \d(])", "\\1\u2212", raised)


def header(figure: Figure, title: str, note: str, *, left: float = LEFT) -> None:
    """Title on the left, in smaller type if it is long, and note on the right; a fixed distance from the top edge."""
    at = 1 - 0.26 / figure.get_figheight()
    heading = figure.text(left, at, title, fontsize=11.5, fontweight="bold", va="bottom")
    edge = figure.text(RIGHT, at, note, fontsize=8.5, color=GREY, ha="right", va="bottom").get_window_extent().x0
    box = heading.get_window_extent()
    if box.x1 > edge - 20:
        heading.set_fontsize(max(5.5, 11.5 * (edge - 20 - box.x0) / box.width))


def small_print(figure: Figure, text: str) -> None:
    at = 0.066 / figure.get_figheight()
    figure.text(RIGHT, at, text, fontsize=7, color=GREY, ha="right", va="bottom")


def frame(figure: Figure, info: PlotInfo, title: str, *, note: str = "", source: str = "", left: float = LEFT) -> None:
    """Header, and at the bottom source, machine and date; what ``info`` has stands instead of title and note."""
    header(figure, info.title or title, info.note or note, left=left)
    small_print(figure, " · ".join(text for text in (source, info.machine, info.date) if text))


def finish(
    figure: Figure,
    handles: Sequence[Artist],
    info: PlotInfo,
    title: str,
    *,
    axes_in: float,
    above_in: float = 0.47,
    note: str = "",
    source: str = "",
) -> None:
    """The legend below axes of that height, and the frame around."""
    legend_below(figure, handles, axes_in=axes_in, above_in=above_in)
    frame(figure, info, title, note=note, source=source)


def legend_below(figure: Figure, handles: Sequence[Artist], *, axes_in: float, above_in: float) -> None:
    """A legend below the axes. The figure becomes as high as axes of that height, what is above them and it need.

    To be called before what is placed by the height of the figure.
    """
    labels = [str(handle.get_label()) for handle in handles]
    columns = 2 if max(len(line) for label in labels for line in label.split("\n")) <= 50 else 1
    each = math.ceil(len(labels) / columns)
    lines = max("\n".join(labels[at : at + each]).count("\n") + 1 for at in range(0, len(labels), each))
    below_in = 0.82 + 0.18 * lines
    height = above_in + axes_in + below_in
    figure.set_figheight(height)
    figure.subplots_adjust(left=LEFT, right=RIGHT, top=1 - above_in / height, bottom=below_in / height)
    figure.legend(
        handles=list(handles), loc="lower center", ncols=columns, frameon=False, fontsize=8.5,
        bbox_to_anchor=((LEFT + RIGHT) / 2, 0.2 / height), handlelength=1.8, columnspacing=2.2, labelspacing=0.45,
    )  # fmt: skip


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as SVG or PNG, by the suffix, at once or not at all. The same figure gives the same bytes.

    Raises:
        UsageError: the suffix is another one.
        StorageError: the file cannot be written.
    """
    kind = path.suffix.lower().lstrip(".")
    if kind not in ("svg", "png"):
        raise UsageError(f"a plot is written as .svg or .png, not {path.suffix!r}")
    metadata = {"Date": None, "Creator": "p4perf"} if kind == "svg" else {"Software": "p4perf"}
    buffer = io.BytesIO()
    for text in figure.findobj(Text):
        text.set_text("".join(c if c.isprintable() or c == "\n" else "?" for c in text.get_text()))
    with mpl.rc_context(_STYLE), warnings.catch_warnings():  # type: ignore[arg-type]
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure.savefig(buffer, format=kind, metadata=metadata)
    write_atomically(path, [buffer.getvalue()])


def picture(figure: Figure) -> str:
    """A figure as an SVG element, for notebooks."""
    stream = io.BytesIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue().decode()
    return text[text.index("<svg") :]


_KINDS = ("svg", "png")


def save(figure: Figure, place: Callable[[str], Path], name: str) -> tuple[Path, ...]:
    """Write a figure as SVG and PNG; ``place`` says where a file goes, by its name."""
    paths = tuple(place(f"{name}.{kind}") for kind in _KINDS)
    for path in paths:
        save_figure(figure, path)
    return paths


def write_outputs(
    texts: Mapping[str, str], figures: Mapping[str, Figure], folder: Path | None, default: Path
) -> tuple[Path, tuple[Path, ...]]:
    """Write texts by file name, and figures by name as SVG and as PNG.

    Args:
        folder: one that is not there yet appears all at once; in one that is there, files of the same names are
            replaced. None makes a new one.
        default: the place of a new one, or that with a number behind it if it is taken.

    Returns:
        The folder, and the files of the figures.

    Raises:
        StorageError: it cannot be written.
        UsageError: ``folder`` is a file.
    """

    def fill(place: Path) -> None:
        for name, text in texts.items():
            write_text_atomically(place / name, text)
        for name, figure in figures.items():
            save(figure, place.joinpath, name)

    where = new_folder(default, fill) if folder is None else filled_folder(folder, fill)
    return where, tuple(where / f"{name}.{kind}" for name in figures for kind in _KINDS)
