"""Operators: what they cost over packet size, which quadrant they are in, and how that shifts between platforms.

Take what is needed from the modules:

* :mod:`~p4perf.evaluation.papers.ren2025.costs`: measured costs and published laws;
* :mod:`~p4perf.evaluation.papers.ren2025.profiles`: fits of the power law and of the line;
* :mod:`~p4perf.evaluation.papers.ren2025.profiles`: base cost, exponent, intervals;
* :mod:`~p4perf.evaluation.papers.ren2025.quadrants`: where base costs are split, and what ties are;
* :mod:`~p4perf.evaluation.papers.ren2025.quadrants`: quadrants, their probabilities, strategies;
* :mod:`~p4perf.evaluation.papers.ren2025.shifts`: quadrant shifts, ratios of two operators;
* :mod:`~p4perf.evaluation.papers.ren2025.shifts`: two operators together;
* :mod:`~p4perf.evaluation.papers.ren2025.shifts`: whether two runs agree;
* :mod:`~p4perf.evaluation.papers.ren2025.platforms`: platforms as data;
* :mod:`~p4perf.evaluation.papers.ren2025.analysis`: all of that at once.
"""

from p4perf.evaluation.papers.ren2025.analysis import OpqAnalysis, OpqOptions, analyse
from p4perf.evaluation.papers.ren2025.costs import OperatorCosts, Platform, StatedLaw
from p4perf.evaluation.papers.ren2025.platforms import load_platforms, shipped_platforms
from p4perf.evaluation.papers.ren2025.quadrants import Rule, Threshold

__all__ = [
    "OperatorCosts",
    "OpqAnalysis",
    "OpqOptions",
    "Platform",
    "Rule",
    "StatedLaw",
    "Threshold",
    "analyse",
    "load_platforms",
    "shipped_platforms",
]
