"""Factor analysis: what each of several design choices, switched on and off in all combinations, does to a metric."""

from p4perf.evaluation.factors.analysis import FactorAnalysis, analyse
from p4perf.evaluation.factors.cells import Cell, Factorial, factorial_from_csv, factorial_from_table
from p4perf.evaluation.factors.effects import Effect, EffectModel, fit_effects
from p4perf.evaluation.factors.ladder import Gain, Ladder, Rung, greedy_ladder

__all__ = [
    "Cell",
    "Effect",
    "EffectModel",
    "FactorAnalysis",
    "Factorial",
    "Gain",
    "Ladder",
    "Rung",
    "analyse",
    "factorial_from_csv",
    "factorial_from_table",
    "fit_effects",
    "greedy_ladder",
]
