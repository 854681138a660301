"""The figure of a component model: measured medians, fitted parts, splits and cache sizes.

Figures are built without pyplot, so nothing global changes, and SVG files are the same bytes for the same data.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter
from matplotlib.transforms import blended_transform_factory

from p4perf.errors import StorageError, UsageError
from p4perf.evaluation.error_metrics import error_text
from p4perf.evaluation.statistics import Samples
from p4perf.evaluation.working_set import CacheMark
from p4perf.models.bases import FloatArray, number
from p4perf.models.component import ComponentModel
from p4perf.models.fitting import Fitting

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F5AA2", "#8C6D31")
"""Distinguishable with any colour vision (Okabe and Ito 2008), two added."""
INK, GREY, FAINT = "#222222", "#6b6b6b", "#d9d9d9"
STYLE: dict[str, object] = {
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
    "svg.hashsalt": "p4perf",
}
UNITS = {"cycles": "cycles", "pps": "packets/s", "bytes": "B"}


@dataclass(frozen=True)
class PlotInfo:
    """What stands around the curve.

    Args:
        title: heading; by default the name of the model.
        machine: for the footer, such as the name of the processor.
        date: for the footer, as text.
        x_label: label of the x axis; by default name and unit.
        y_label: label of the y axis; by default name and unit.
    """

    title: str = ""
    machine: str = ""
    date: str = ""
    x_label: str = ""
    y_label: str = ""


def model_figure(
    model: ComponentModel,
    samples: Samples | None = None,
    *,
    marks: Sequence[CacheMark] = (),
    baseline: float | None = None,
    info: PlotInfo | None = None,
) -> Figure:
    """Draw a model.

    Args:
        model: the curve.
        samples: what was measured: medians with 95 % bootstrap intervals.
        marks: cache sizes, drawn at the top.
        baseline: value of the baseline program in the unit of y, a thin horizontal line.
        info: title, labels and footer.

    Raises:
        UsageError: the model has a logarithmic x axis but not a single positive abscissa.
    """
    info = info or PlotInfo()
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=(7.2, 4.7), dpi=200)
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        _draw_axes(axes, model, info)
        handles = []
        if samples is not None:
            handles.append(_draw_samples(axes, model, samples))
        handles += [_draw_part(axes, model, index) for index in range(len(model.fitting.parts))]
        if baseline is not None:
            line = axes.axhline(baseline, color=GREY, lw=1.0, ls=(0, (1, 1.5)), zorder=1)
            line.set_label(f"baseline: {number(baseline)}")
            handles.append(line)
        _set_limits(axes, model, samples, baseline)
        _draw_splits(axes, model)
        _draw_marks(axes, marks)
        _finish(figure, axes, model, info, handles, lifted=bool(marks))
    return figure


def _draw_axes(axes: Axes, model: ComponentModel, info: PlotInfo) -> None:
    if model.x.scale == "log":
        if model.domain[1] <= 0:
            raise UsageError("a logarithmic axis needs a positive x", hint="use the x scale linear")
        axes.set_xscale("log" if model.domain[0] > 0 else "symlog")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    axes.set_xlabel(info.x_label or _axis_label(model.x.name, model.x.unit))
    axes.set_ylabel(info.y_label or _axis_label(model.y.name, model.y.unit))
    axes.grid(axis="y", color=FAINT, lw=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _axis_label(name: str, unit: str) -> str:
    words = name.replace("_", " ")
    unit = UNITS.get(unit, unit)
    return f"{words} [{unit}]" if unit else words


def _tick(value: float) -> str:
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size * (10 if suffix == "k" else 1):
            return f"{value / size:g} {suffix}"
    return f"{value:g}"


def _draw_samples(axes: Axes, model: ComponentModel, samples: Samples) -> Line2D:
    x, median = np.asarray(samples.x), samples.medians()
    ends = samples.intervals()
    spread = np.abs(np.stack([median - ends[:, 0], ends[:, 1] - median]))
    fewest, repetitions = min(map(len, samples.values)), max(map(len, samples.values))
    trials = f"{repetitions}" if fewest == repetitions else f"{fewest} to {repetitions}"
    label = "measured" if repetitions == 1 else f"median of {trials} trials, 95 % interval"
    if repetitions > 1:
        axes.errorbar(
            x, median, yerr=spread, fmt="none", ecolor="#8a8a8a", elinewidth=0.9, capsize=1.8, capthick=0.8, zorder=5.5
        )
    size = 3.6 if len(x) <= 80 else 2.4
    (line,) = axes.plot(x, median, ls="none", marker="o", ms=size, mfc="white", mec=INK, mew=0.7, zorder=6, label=label)
    return line


def _draw_part(axes: Axes, model: ComponentModel, index: int) -> Line2D:
    part = model.fitting.parts[index]
    colour = COLOURS[index % len(COLOURS)]
    x = _dense(model, part)
    estimate = model.estimate(x)
    if np.isfinite(estimate.low).all():
        axes.fill_between(x, estimate.low, estimate.high, color=colour, alpha=0.16, lw=0, zorder=2)
    label = part.text(x=model.x.name, y="y").removeprefix("y = ")
    (line,) = axes.plot(x, part.evaluate(x), color=colour, lw=2.0, solid_capstyle="round", zorder=5, label=label)
    return line


def _dense(model: ComponentModel, part: Fitting) -> FloatArray:
    if model.x.scale == "log" and part.start > 0:
        inner = np.geomspace(part.start, part.end, 200)
        return np.clip(inner, part.start, part.end)
    return np.linspace(part.start, part.end, 200)


def _set_limits(axes: Axes, model: ComponentModel, samples: Samples | None, baseline: float | None) -> None:
    axes.margins(x=0.03)
    low, high = axes.get_ylim()
    values = [] if samples is None else samples.medians().tolist()
    values += [float(v) for p in model.fitting.parts for v in p.evaluate([p.start, p.end])]
    values += [] if baseline is None else [baseline]
    if min(values) >= 0:
        # Zero belongs to the picture unless the data would become a flat line.
        near = min(values) < 0.5 * max(values) or max(values) == 0
        low = 0.0 if near else low
    span = high - low if high > low else 1.0
    axes.set_ylim(low, high + 0.06 * span)


def _draw_splits(axes: Axes, model: ComponentModel) -> None:
    place = blended_transform_factory(axes.transData, axes.transAxes)
    for index, x in enumerate(model.fitting.split_x):
        axes.axvline(x, color=INK, lw=0.9, ls=(0, (5, 3)), zorder=1)
        if model.uncertainty is not None:
            known = model.uncertainty.splits[index]
            axes.axvspan(known.low, known.high, color=INK, alpha=0.06, lw=0, zorder=0)
        axes.annotate(
            f"split at {_tick(float(f'{x:.3g}'))}",
            xy=(x, 0.985),
            xycoords=place,
            xytext=(-2, 0),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="top",
            fontsize=8,
            color=INK,
            bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.85},
            zorder=7,
        )


def _draw_marks(axes: Axes, marks: Sequence[CacheMark]) -> None:
    left, right = axes.get_xlim()
    place = blended_transform_factory(axes.transData, axes.transAxes)
    last = -1.0
    for mark in sorted(marks, key=lambda m: m.x):
        if left <= mark.x <= right:
            at = float(axes.transAxes.inverted().transform(axes.transData.transform((mark.x, 0.0)))[0])
            raised = at - last < 0.075
            last = -1.0 if raised else at
            axes.axvline(mark.x, color="#8B0000", lw=1.0, ls=(0, (1, 1.8)), zorder=1)
            axes.text(
                mark.x,
                1.1 if raised else 1.012,
                f"{mark.level}{' ' if raised else chr(10)}{_bytes(mark.size_bytes)}",
                transform=place,
                ha="center",
                va="bottom",
                fontsize=7.5,
                color="#8B0000",
                linespacing=1.1,
            )


def _bytes(size: float) -> str:
    for unit, step in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= step:
            return f"{size / step:.3g} {unit}"
    return f"{size:.0f} B"


def _finish(
    figure: Figure, axes: Axes, model: ComponentModel, info: PlotInfo, handles: Sequence[Line2D], *, lifted: bool
) -> None:
    error = error_text(model.error, model.fitting.error)
    longest = max(len(str(handle.get_label())) for handle in handles)
    columns = 2 if longest <= 44 else 1
    rows = -(-len(handles) // columns)
    figure.subplots_adjust(left=0.1, right=0.975, top=0.84 if lifted else 0.9, bottom=0.175 + 0.038 * rows)
    figure.text(
        0.1, 0.945, info.title or model.name or "component model", fontsize=11.5, fontweight="bold", va="bottom"
    )
    figure.text(0.975, 0.945, error, fontsize=8.5, color=GREY, ha="right", va="bottom")
    figure.legend(
        handles=list(handles), loc="lower center", ncols=columns,
        fontsize=8.5 if longest <= 88 else 6.5, frameon=False, bbox_to_anchor=(0.5375, 0.045),
        handlelength=1.8, columnspacing=2.2, labelspacing=0.45,
    )  # fmt: skip
    footer = [t for t in (f"target {model.target}" if model.target else "", info.machine, info.date) if t]
    figure.text(0.975, 0.014, " · ".join(footer), fontsize=7, color=GREY, ha="right", va="bottom")


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
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as stream:
            temporary = Path(stream.name)
            with mpl.rc_context(STYLE):  # type: ignore[arg-type]
                figure.savefig(stream, format=kind, metadata=metadata)
        temporary.chmod(0o644)
        os.replace(temporary, path)  # noqa: PTH105 - the atomic one, by its name
    except OSError as exc:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise StorageError(f"cannot write {path}: {exc.strerror}") from exc
