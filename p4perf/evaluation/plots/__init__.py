"""Figures of component models: the curve, its residuals, and every number of parts that was considered.

Figures are built without pyplot, so nothing global changes, and the same data give the same bytes, as SVG and as PNG.
"""

from p4perf.evaluation.plots.model import model_figure, residual_figure
from p4perf.evaluation.plots.parts import parts_figures, parts_overview
from p4perf.evaluation.plots.style import PlotInfo, save_figure

__all__ = ["PlotInfo", "model_figure", "parts_figures", "parts_overview", "residual_figure", "save_figure"]
