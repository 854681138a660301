"""Figures of component models: the curve, its residuals, and every number of segments that was considered.

Figures are built without pyplot, so nothing global changes, and the same data give the same bytes, as SVG and as PNG.
"""

from p4perf.evaluation.plots.model import model_figure, residual_figure
from p4perf.evaluation.plots.segments import segment_figures, segments_overview
from p4perf.evaluation.plots.style import PlotInfo, save_figure

__all__ = ["PlotInfo", "model_figure", "residual_figure", "save_figure", "segment_figures", "segments_overview"]
