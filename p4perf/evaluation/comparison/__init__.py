"""Comparing runs of the same experiment: ratios, crossings, verdicts, and the order of components.

Take what is needed from the modules:

* :mod:`~p4perf.evaluation.comparison.ratios`: ratios of points and of models, with intervals;
* :mod:`~p4perf.evaluation.comparison.ratios`: where two curves cross;
* :mod:`~p4perf.evaluation.comparison.verdicts`: faster, slower, same or no verdict, and the rule;
* :mod:`~p4perf.evaluation.comparison.subjects`: rank correlation of component costs;
* :mod:`~p4perf.evaluation.comparison.subjects`: all of that for the runs of an experiment;
* :mod:`~p4perf.evaluation.comparison.shifts`: shifts of all points and of stretches of them, and what could be found;
* :mod:`~p4perf.evaluation.comparison.gate`: whether any of many components became slower.
"""

from p4perf.evaluation.comparison.subjects import (
    ComparisonOptions,
    ExperimentComparison,
    Pair,
    RankPair,
    Subject,
    compare_subjects,
    rank_pairs,
)

__all__ = [
    "ComparisonOptions",
    "ExperimentComparison",
    "Pair",
    "RankPair",
    "Subject",
    "compare_subjects",
    "rank_pairs",
]
