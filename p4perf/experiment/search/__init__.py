"""Searches for the highest load that a device carries without loss, or with little; each is a plugin.

>>> def measure(load_pps, duration_s):  # a device that forwards 1 Mpps
...     sent = round(load_pps * duration_s)
...     return Trial(load_pps, duration_s, sent, max(0, sent - round(1e6 * duration_s)), duration_s)
>>> result = MLRSearch().find(measure, ndr_and_pdr(), SearchLimits(1e3, 14.88e6))
>>> {name: f"{found.lower_pps:.0f} pps" for name, found in result.bounds.items()}
{'ndr': '998616 pps', 'pdr': '1003633 pps'}
"""

from p4perf.experiment.search.base import (
    GROUP,
    NDR,
    PDR,
    PDR_LOSS_RATIO,
    Bounds,
    End,
    Flag,
    Goal,
    Measure,
    Search,
    SearchLimits,
    SearchResult,
    Trial,
    ndr_and_pdr,
    open_search,
)
from p4perf.experiment.search.bisection import Bisection, Overload
from p4perf.experiment.search.mlrsearch import MLRSearch

__all__ = [
    "GROUP",
    "NDR",
    "PDR",
    "PDR_LOSS_RATIO",
    "Bisection",
    "Bounds",
    "End",
    "Flag",
    "Goal",
    "MLRSearch",
    "Measure",
    "Overload",
    "Search",
    "SearchLimits",
    "SearchResult",
    "Trial",
    "ndr_and_pdr",
    "open_search",
]
