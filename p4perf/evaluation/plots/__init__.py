"""Figures of component models: the curve, its residuals, and every number of segments that was considered.

Figures are built without pyplot, so nothing global changes, and the same data give the same bytes, as SVG and as PNG.
"""

from p4perf.evaluation.plots.model import model_figure as model_figure
from p4perf.evaluation.plots.model import residual_figure as residual_figure
from p4perf.evaluation.plots.model import segment_figures as segment_figures
from p4perf.evaluation.plots.model import segments_overview as segments_overview
from p4perf.evaluation.plots.style import PlotInfo as PlotInfo
from p4perf.evaluation.plots.style import save as save
