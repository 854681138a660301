"""Numbers: from tidy measurements to medians, derived models, tables and plots.

>>> from p4perf.evaluation import derive, derive_model
>>> derive([1, 2, 3, 4], [5.0, 7.0, 9.0, 11.0]).best.parts[0].text()
'y = 3 + 2 x'
"""

from p4perf.evaluation.component import derive_model
from p4perf.evaluation.csvdata import read_csv
from p4perf.evaluation.derivation import Derivation, derive
from p4perf.evaluation.error_metrics import ErrorMetric, error_metric, registered_metrics
from p4perf.evaluation.plots import PlotInfo, model_figure, save_figure
from p4perf.evaluation.statistics import Samples, median_interval, summarise
from p4perf.evaluation.tables import PartRow, model_rows
from p4perf.evaluation.uncertainty import bootstrap
from p4perf.evaluation.working_set import (
    CacheMark,
    Explanation,
    WorkingSet,
    cache_marks,
    explain,
    scholz2021_exact_table,
)

__all__ = [
    "CacheMark",
    "Derivation",
    "ErrorMetric",
    "Explanation",
    "PartRow",
    "PlotInfo",
    "Samples",
    "WorkingSet",
    "bootstrap",
    "cache_marks",
    "derive",
    "derive_model",
    "error_metric",
    "explain",
    "median_interval",
    "model_figure",
    "model_rows",
    "read_csv",
    "registered_metrics",
    "save_figure",
    "scholz2021_exact_table",
    "summarise",
]
