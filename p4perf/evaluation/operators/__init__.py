"""Operators: what they cost over packet size, which quadrant they are in, and how that shifts between platforms.

Take what is needed from the modules:

* :mod:`~p4perf.evaluation.operators.costs`: measured costs and published laws;
* :mod:`~p4perf.evaluation.operators.laws`: fits of the power law and of the line;
* :mod:`~p4perf.evaluation.operators.profiles`: base cost, exponent, intervals;
* :mod:`~p4perf.evaluation.operators.thresholds`: where base costs are split, and what ties are;
* :mod:`~p4perf.evaluation.operators.quadrants`: quadrants, their probabilities, strategies;
* :mod:`~p4perf.evaluation.operators.shifts`: quadrant shifts, ratios of two operators;
* :mod:`~p4perf.evaluation.operators.interactions`: two operators together;
* :mod:`~p4perf.evaluation.operators.agreement`: whether two runs agree;
* :mod:`~p4perf.evaluation.operators.platforms`: platforms as data;
* :mod:`~p4perf.evaluation.operators.analysis`: all of that at once.
"""

from p4perf.evaluation.operators.analysis import OpqAnalysis, OpqOptions, analyse
from p4perf.evaluation.operators.costs import OperatorCosts, Platform, StatedLaw
from p4perf.evaluation.operators.platforms import load_platforms, shipped_platforms
from p4perf.evaluation.operators.thresholds import Rule, Threshold

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
