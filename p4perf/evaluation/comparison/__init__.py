"""Comparing runs of the same experiment: ratios, crossings, verdicts, and the order of components."""

from p4perf.evaluation.comparison.subjects import ComparedPair as ComparedPair
from p4perf.evaluation.comparison.subjects import ComparedSamples as ComparedSamples
from p4perf.evaluation.comparison.subjects import ExperimentComparison as ExperimentComparison
from p4perf.evaluation.comparison.subjects import RankPair as RankPair
from p4perf.evaluation.comparison.subjects import compare_subjects as compare_subjects
from p4perf.evaluation.comparison.subjects import rank_pairs as rank_pairs
