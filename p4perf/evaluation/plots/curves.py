"""What is drawn into axes: medians, fitted parts, splits."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox, blended_transform_factory

from p4perf.evaluation.plots.style import COLOURS, GREY, INK, PAPER, pretty, tick
from p4perf.evaluation.statistics import Samples
from p4perf.models import ComponentModel, Fitting
from p4perf.models.bases import FloatArray

DASHES = (0, (5, 3))
LABEL_LENGTH = 88
"""Characters in a line of a legend."""
CLEARANCE_PX = 12
"""What a label keeps away from points: the radius of a marker, and the gap between label and line."""


def trials_text(samples: Samples) -> str:
    """Number of repetitions: ``5``, or ``3 to 5``."""
    fewest, most = min(map(len, samples.values)), max(map(len, samples.values))
    return f"{most}" if fewest == most else f"{fewest} to {most}"


def repeated(samples: Samples) -> bool:
    """Whether there are repetitions at all."""
    return max(map(len, samples.values)) > 1


def draw_samples(axes: Axes, samples: Samples, *, size: float = 1.0) -> Line2D:
    """Medians, with 95 % bootstrap intervals where there are repetitions."""
    x, median = np.asarray(samples.x), samples.medians()
    label = "measured"
    if repeated(samples):
        label = f"median of {trials_text(samples)} trials, 95 % interval"
        ends = samples.intervals()
        spread = np.abs(np.stack([median - ends[:, 0], ends[:, 1] - median]))
        axes.errorbar(
            x, median, yerr=spread, fmt="none", ecolor="#8a8a8a", elinewidth=0.9 * size, capsize=1.8 * size,
            capthick=0.8 * size, zorder=4,
        )  # fmt: skip
    few = len(x) <= 80
    (line,) = axes.plot(
        x, median, ls="none", marker="o", ms=(4.2 if few else 2.8) * size, mfc=PAPER, mec=INK if few else GREY,
        mew=(0.7 if few else 0.45) * size, zorder=4.5, label=label,
    )  # fmt: skip
    return line


def draw_part(axes: Axes, model: ComponentModel, index: int, *, width: float = 1.8) -> Line2D:
    """The curve of one part, with its band if it has one. A part of one sample becomes a short dash."""
    part = model.fitting.parts[index]
    colour = COLOURS[index % len(COLOURS)]
    x = dense(model, part)
    estimate = model.estimate(x)
    if np.isfinite(estimate.low).all():
        axes.fill_between(x, estimate.low, estimate.high, color=colour, alpha=0.16, lw=0, zorder=2)
    (line,) = axes.plot(
        x, part.evaluate(x), color=colour, lw=width, solid_capstyle="round", zorder=5, label=part_label(model, index),
        marker="_" if part.start == part.end else "", ms=5.0, mew=width,
    )  # fmt: skip
    return line


def part_label(model: ComponentModel, index: int) -> str:
    """Where a part is and what its function is: ``1 to 100: 150 + 0.08 entries``.

    Where formulas are long, the variable is called x in all of them; one that is still too long takes several lines.
    """
    parts = model.fitting.parts
    ranges = [""] if len(parts) == 1 else [f"{range_text(part)}:  " for part in parts]

    def label(at: int, name: str) -> str:
        return ranges[at] + pretty(parts[at].text(x=name, y="y").removeprefix("y = "))

    long = any(len(label(at, model.x.name)) > LABEL_LENGTH for at in range(len(parts)))
    text = label(index, "x" if long else model.x.name)
    return textwrap.fill(text, LABEL_LENGTH, subsequent_indent="      ", break_long_words=False)


def range_text(part: Fitting) -> str:
    """The abscissae of a part, ``1 to 100``."""
    ends = [tick(float(f"{x:.4g}")) for x in (part.start, part.end)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def dense(model: ComponentModel, part: Fitting) -> FloatArray:
    """Abscissae of a part that are close enough for a smooth line."""
    if model.x.scale == "log" and part.start > 0:
        inner = np.geomspace(part.start, part.end, 200)
        return np.clip(inner, part.start, part.end)
    return np.linspace(part.start, part.end, 200)


def split_lines(axes: Axes, model: ComponentModel, *, width: float = 0.9) -> None:
    """A dashed line where each part but the first begins."""
    for x in model.fitting.split_x:
        axes.axvline(x, color=INK, lw=width, ls=DASHES, zorder=1)


def split_intervals(axes: Axes, model: ComponentModel) -> None:
    """A grey band for the interval of each split, if the model has them."""
    if model.uncertainty is not None:
        for known in model.uncertainty.splits:
            axes.axvspan(known.low, known.high, color=INK, alpha=0.06, lw=0, zorder=0)


def label_splits(axes: Axes, splits: Sequence[float], drawn: FloatArray) -> None:
    """Write the place of each split along its line, where it hides the least of what is drawn.

    To be called last: it looks at pixels, so limits and margins have to be final.

    Args:
        axes: where the splits are.
        splits: abscissae.
        drawn: points that should stay visible, shape (n, 2), in units of the axes.
    """
    pixels = axes.transData.transform(drawn)
    place = blended_transform_factory(axes.transData, axes.transAxes)
    taken: list[Bbox] = []
    for x in splits:
        best: tuple[int, Text | None, Bbox | None] = (0, None, None)
        for height, side in ((0.985, "right"), (0.985, "left"), (0.015, "right"), (0.015, "left")):
            text = axes.annotate(
                f"split at {tick(float(f'{x:.3g}'))}",
                xy=(x, height), xycoords=place, xytext=(-2 if side == "right" else 2, 0), textcoords="offset points",
                rotation=90, ha=side, va="top" if height > 0.5 else "bottom", fontsize=8, color=INK,
                bbox={"boxstyle": "round,pad=0.15", "fc": PAPER, "ec": "none", "alpha": 0.85}, zorder=7,
            )  # fmt: skip
            box = text.get_window_extent().padded(CLEARANCE_PX)
            inside = (pixels >= box.min).all(axis=1) & (pixels <= box.max).all(axis=1)
            hidden = int(inside.sum()) + 1000 * sum(box.overlaps(other) for other in taken)
            if best[1] is None or hidden < best[0]:
                if best[1] is not None:
                    best[1].remove()
                best = (hidden, text, box)
            else:
                text.remove()
            if best[0] == 0:
                break
        if best[2] is not None:
            taken.append(best[2])
