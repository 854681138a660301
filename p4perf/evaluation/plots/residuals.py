"""The figure of what a model leaves unexplained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from p4perf.evaluation.error_metrics import error_text
from p4perf.evaluation.plots.curves import range_text, split_lines, trials_text
from p4perf.evaluation.plots.style import (
    COLOURS,
    INK,
    PAPER,
    WIDTH_IN,
    PlotInfo,
    footer,
    header,
    legend_below,
    minus,
    new_figure,
    set_up_axes,
)
from p4perf.evaluation.statistics import Samples
from p4perf.models import ComponentModel
from p4perf.models.bases import FloatArray
from p4perf.models.notation import number

IndexArray = npt.NDArray[np.intp]
NOISE = "#e6e6e6"
AXES_IN = 2.07
"""Less than a model: there is no shape to see, only scatter."""
SILENCE = 1e-9
"""A curve below this fraction of the largest sample is zero; there is no relative residual."""
FAR = 5.0
"""Residuals beyond so many times the 90 % quantile of all are drawn at the edge, with their value."""
FLOOR_PERCENT = 1e-3
"""The smallest residual that is shown as one."""
MANY = 8


@dataclass(frozen=True)
class _Residuals:
    """Residuals of the points that have one, in % of the curve.

    Args:
        x: abscissae.
        value: of the medians.
        low: of the lower ends of their intervals.
        high: of the upper ends.
        part: index of their part.
        repeated: where there are repetitions.
        left_out: number of points where the curve is zero.
    """

    x: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    part: IndexArray
    repeated: npt.NDArray[np.bool_]
    left_out: int

    @classmethod
    def of(cls, model: ComponentModel, samples: Samples) -> _Residuals:
        x, curve, median = np.asarray(samples.x), model.evaluate(samples.x), samples.medians()
        kept = np.abs(curve) > SILENCE * np.abs(median).max()
        values = np.column_stack([median, samples.intervals()])[kept].T
        value, low, high = 100 * (values - curve[kept]) / np.abs(curve[kept])
        many = np.array([len(v) > 1 for v in samples.values])
        return cls(x[kept], value, low, high, model.fitting.part_of(x[kept]), many[kept], int((~kept).sum()))

    def reach(self) -> float:
        """Where the axis ends: beyond what is not far, with its intervals."""
        size = np.abs(self.value)
        far = FAR * float(np.quantile(size, 0.9)) if size.size else 0.0
        near = size <= max(far, FLOOR_PERCENT)
        ends = np.abs(np.concatenate([self.low[near], self.high[near]])).max(initial=0.0)
        return 1.12 * float(max(size[near].max(initial=0.0), min(ends, far), FLOOR_PERCENT))


def residual_figure(model: ComponentModel, samples: Samples, *, info: PlotInfo | None = None) -> Figure:
    """Draw the relative residuals of a model: (median - curve) / |curve| in % over x, in the colour of their part.

    Where there are repetitions, each residual has the 95 % bootstrap interval of its median, and a grey band shows
    the typical half-width of these intervals in each part (their median): a good model scatters within it, without a
    pattern. Outliers stand at the edge as triangles, with their value. Points where the curve is zero have no relative
    residual and are left out; the figure says so.

    Args:
        model: the curve.
        samples: what was measured.
        info: title, label of x and footer.

    Raises:
        UsageError: the model has a logarithmic x axis but not a single positive abscissa.
    """
    info = info or PlotInfo()
    residuals = _Residuals.of(model, samples)
    reach = residuals.reach()
    with new_figure(WIDTH_IN, AXES_IN) as figure:
        axes = figure.add_subplot()
        set_up_axes(axes, model, info)
        axes.set_ylabel("residual [% of the curve]")
        axes.axhline(0.0, color=INK, lw=0.9, zorder=2)
        parts = range(len(model.fitting.parts))
        handles: list[Line2D | Patch] = [_draw_part(axes, model, index, residuals, reach) for index in parts]
        if residuals.repeated.any():
            handles.append(_draw_noise(axes, model, samples, residuals))
        axes.margins(x=0.03)
        axes.set_ylim(-reach, reach)
        split_lines(axes, model)
        beyond = int((np.abs(residuals.value) > reach).sum())
        note = [error_text(model.error, model.fitting.error), info.note]
        note += [f"beyond the axis: {beyond}"] if beyond > MANY else []
        note += [f"left out where the curve is zero: {residuals.left_out}"] if residuals.left_out else []
        legend_below(figure, handles, axes_in=AXES_IN, above_in=0.47)
        header(figure, f"{info.title or model.name or 'component model'}: residuals", " · ".join(n for n in note if n))
        footer(figure, model, info)
    return figure


def _draw_part(axes: Axes, model: ComponentModel, index: int, residuals: _Residuals, reach: float) -> Line2D:
    mine = residuals.part == index
    x, value, colour = residuals.x[mine], residuals.value[mine], COLOURS[index % len(COLOURS)]
    axes.vlines(x, residuals.low[mine], residuals.high[mine], color=colour, lw=1.0, alpha=0.45, zorder=3)
    part = model.fitting.parts[index]
    size = 3.8 if len(residuals.x) <= 80 else 2.6
    (points,) = axes.plot(
        x, value, ls="none", marker="o", ms=size, mfc=colour, mec=PAPER, mew=0.4, zorder=4,
        label=f"{range_text(part)}:  {error_text(model.error, part.error)}",
    )  # fmt: skip
    far = np.abs(value) > reach
    for at, size_percent in zip(x[far], value[far], strict=True):
        sign = 1 if size_percent > 0 else -1
        axes.plot(at, 0.95 * sign * reach, marker="^" if sign > 0 else "v", ms=5, color=colour, mec=PAPER, mew=0.4)
        if (np.abs(residuals.value) > reach).sum() <= MANY:
            axes.annotate(
                minus(f"{number(size_percent, 3)} %"), (at, 0.95 * sign * reach), xytext=(5, 0), va="center",
                textcoords="offset points", fontsize=7, color=INK,
            )  # fmt: skip
    return points


def _draw_noise(axes: Axes, model: ComponentModel, samples: Samples, residuals: _Residuals) -> Patch:
    """A band for each part, as high as the median of the half-widths of its points with repetitions."""
    starts = [fitting.start for fitting in model.fitting.parts]
    for index, (start, end) in enumerate(zip(starts, [*starts[1:], model.domain[1]], strict=True)):
        mine = residuals.repeated & (residuals.part == index)
        if mine.any():
            noise = float(np.median(residuals.high[mine] - residuals.low[mine])) / 2
            axes.fill_between([start, end], -noise, noise, color=NOISE, lw=0, zorder=1)
    return Patch(color=NOISE, lw=0, label=f"typical 95 % interval, median of {trials_text(samples)} trials")
