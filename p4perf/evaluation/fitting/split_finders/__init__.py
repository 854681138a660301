"""Searches for the breakpoints of a piecewise curve over a table of costs; each is a plugin.

>>> import numpy as np
>>> from p4perf.evaluation.fitting.selection import ExactRule
>>> cost = np.array([[0.0, 0.1, 3.0, 5.0], [0.0, 0.0, 2.0, 4.0], [0.0, 0.0, 0.0, 0.2], [0.0, 0.0, 0.0, 0.0]])
>>> x, y, ranks = np.arange(4.0), np.array([1.0, 1.1, 5.0, 5.2]), np.ones((4, 4))
>>> problem = SplitProblem(x, y, cost, ranks, segments=2, min_points=2, rule=ExactRule())
>>> open_split_finder("dynamic").find(problem)
((), (1,))
"""

from p4perf.evaluation.fitting.split_finders.base import Breakpoints as Breakpoints
from p4perf.evaluation.fitting.split_finders.base import SplitFinder as SplitFinder
from p4perf.evaluation.fitting.split_finders.base import SplitProblem as SplitProblem
from p4perf.evaluation.fitting.split_finders.base import open_split_finder as open_split_finder
from p4perf.evaluation.fitting.split_finders.base import wanted_intervals as wanted_intervals
from p4perf.evaluation.fitting.split_finders.curvature import SavitzkyGolay as SavitzkyGolay
from p4perf.evaluation.fitting.split_finders.curvature import SecondDerivative as SecondDerivative
from p4perf.evaluation.fitting.split_finders.exact import BruteForce as BruteForce
from p4perf.evaluation.fitting.split_finders.exact import DynamicProgramming as DynamicProgramming
