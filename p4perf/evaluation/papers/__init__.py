"""The claims of published papers, and whether they come out again.

* :mod:`~p4perf.evaluation.papers.claims`: what a file of claims may say;
* :mod:`~p4perf.evaluation.papers.loading`: the files that ship with p4perf, in ``claims/``;
* :mod:`~p4perf.evaluation.papers.checks`: what computes a claim;
* :mod:`~p4perf.evaluation.papers.verdicts`: whether that is what the paper says.
"""

from p4perf.evaluation.papers.claims import Claim, Expectation, Kind, Quantity, VerdictName
from p4perf.evaluation.papers.loading import Paper, chosen_claims, parse_paper, read_paper, shipped_papers
from p4perf.evaluation.papers.verdicts import Finding, impossible, judge

__all__ = [
    "Claim",
    "Expectation",
    "Finding",
    "Kind",
    "Paper",
    "Quantity",
    "VerdictName",
    "chosen_claims",
    "impossible",
    "judge",
    "parse_paper",
    "read_paper",
    "shipped_papers",
]
