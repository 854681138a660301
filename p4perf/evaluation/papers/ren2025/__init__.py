"""Ren et al. 2025: operators, what they cost over packet size, their quadrants, and shifts between platforms."""

from p4perf.evaluation.papers.ren2025.analysis import OpqAnalysis as OpqAnalysis
from p4perf.evaluation.papers.ren2025.analysis import OpqOptions as OpqOptions
from p4perf.evaluation.papers.ren2025.analysis import analyse as analyse
from p4perf.evaluation.papers.ren2025.costs import load_platforms as load_platforms
from p4perf.evaluation.papers.ren2025.quadrants import Rule as Rule
from p4perf.evaluation.papers.ren2025.quadrants import Threshold as Threshold
