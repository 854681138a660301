"""What measurements say: the model, where its breakpoints may come from, and its plots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from p4perf.evaluation.fitting.component import DerivedModel
from p4perf.evaluation.fitting.working_set import CacheMark, Explanation
from p4perf.models.component import ComponentModel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from p4perf.evaluation.plots import PlotInfo


@dataclass(frozen=True)
class Evaluation:
    """A derived model, where its breakpoints may come from (empty if that is unknown), and the files of its plots."""

    derived: DerivedModel
    explanations: tuple[Explanation, ...]
    plots: tuple[Path, ...]

    @property
    def model(self) -> ComponentModel:
        return self.derived.model

    @property
    def missing(self) -> tuple[float, ...]:
        """Values of x without an accepted trial."""
        return self.derived.samples.missing


@dataclass(frozen=True)
class Picture:
    """What stands around the curve: cache marks, and the value of the baseline program in the unit of y."""

    marks: tuple[CacheMark, ...] = ()
    baseline: float | None = None
    info: PlotInfo | None = None


def draw(
    derived: DerivedModel, place: Callable[[str], Path], picture: Picture, *, every: bool = False
) -> tuple[Path, ...]:
    """Draw a model, its residuals and all numbers of segments side by side, as SVG and PNG.

    Args:
        place: where a file goes, by what distinguishes its name: ``.svg``, ``-residuals.svg``, ``-segments.png`` ...
        every: draw a figure of its own for every number of segments as well: ``-2-segments.svg``.
    """
    from p4perf.evaluation.plots import model_figure, residual_figure, segment_figures, segments_overview

    model, samples, info = derived.model, derived.samples, picture.info
    figures = {
        "": model_figure(model, samples, marks=picture.marks, info=info, baseline=picture.baseline),
        "-residuals": residual_figure(model, samples, info=info),
        "-segments": segments_overview(model, derived.derivation, samples, info=info),
    }
    if every:
        of_segments = segment_figures(
            model, derived.derivation, samples, marks=picture.marks, baseline=picture.baseline, info=info
        )
        figures |= {f"-{segments}-segments": figure for segments, figure in of_segments.items()}
    return tuple(path for name, figure in figures.items() for path in save(figure, place, name))


def save(figure: Figure, place: Callable[[str], Path], name: str) -> tuple[Path, ...]:
    """Write a figure as SVG and PNG; arguments as of :func:`draw`."""
    from p4perf.evaluation.plots import save_figure

    paths = tuple(place(f"{name}.{kind}") for kind in ("svg", "png"))
    for path in paths:
        save_figure(figure, path)
    return paths
