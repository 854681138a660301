"""Searches for the highest load that a device carries without loss, or with little; each is a plugin.

>>> def measure(load_pps, duration_s):  # a device that forwards 1 Mpps
...     sent = round(load_pps * duration_s)
...     return LoadTrial(load_pps, duration_s, sent, max(0, sent - round(1e6 * duration_s)), duration_s)
>>> result = MLRSearch().find(measure, ndr_and_pdr(), SearchLimits(1e3, 14.88e6))
>>> {name: f"{found.lower_pps:.0f} pps" for name, found in result.bounds.items()}
{'ndr': '998616 pps', 'pdr': '1003633 pps'}
"""

from p4perf.experiment.search.base import NDR as NDR
from p4perf.experiment.search.base import PDR as PDR
from p4perf.experiment.search.base import PDR_LOSS_RATIO as PDR_LOSS_RATIO
from p4perf.experiment.search.base import Bounds as Bounds
from p4perf.experiment.search.base import End as End
from p4perf.experiment.search.base import Flag as Flag
from p4perf.experiment.search.base import Goal as Goal
from p4perf.experiment.search.base import LoadTrial as LoadTrial
from p4perf.experiment.search.base import Search as Search
from p4perf.experiment.search.base import SearchLimits as SearchLimits
from p4perf.experiment.search.base import SearchResult as SearchResult
from p4perf.experiment.search.base import ndr_and_pdr as ndr_and_pdr
from p4perf.experiment.search.base import open_search as open_search
from p4perf.experiment.search.bisection import Bisection as Bisection
from p4perf.experiment.search.bisection import Overload as Overload
from p4perf.experiment.search.mlrsearch import MLRSearch as MLRSearch
