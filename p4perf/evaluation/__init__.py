"""Numbers: from tidy measurements to medians, derived models, tables and plots.

>>> from p4perf.evaluation import derive
>>> derive([1, 2, 3, 4], [5.0, 7.0, 9.0, 11.0]).best.parts[0].text()
'y = 3 + 2 x'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from p4perf.evaluation.component import DerivedModel, derive_model, fit
    from p4perf.evaluation.csvdata import read_csv
    from p4perf.evaluation.datafiles import read_series
    from p4perf.evaluation.derivation import Derivation, derive
    from p4perf.evaluation.error_metrics import ErrorMetric, error_metric, registered_metrics
    from p4perf.evaluation.extrap import ExtrapSeries, read_extrap, write_extrap_text
    from p4perf.evaluation.options import FitOptions
    from p4perf.evaluation.plots import (
        PlotInfo,
        model_figure,
        parts_figures,
        parts_overview,
        residual_figure,
        save_figure,
    )
    from p4perf.evaluation.statistics import Samples, median_interval, summarise
    from p4perf.evaluation.tables import CandidateRow, PartRow, candidate_rows, model_rows
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
    "CandidateRow",
    "Derivation",
    "DerivedModel",
    "ErrorMetric",
    "Explanation",
    "ExtrapSeries",
    "FitOptions",
    "PartRow",
    "PlotInfo",
    "Samples",
    "WorkingSet",
    "bootstrap",
    "cache_marks",
    "candidate_rows",
    "derive",
    "derive_model",
    "error_metric",
    "explain",
    "fit",
    "median_interval",
    "model_figure",
    "model_rows",
    "parts_figures",
    "parts_overview",
    "read_csv",
    "read_extrap",
    "read_series",
    "registered_metrics",
    "residual_figure",
    "save_figure",
    "scholz2021_exact_table",
    "summarise",
    "write_extrap_text",
]

_HOME = {
    "CacheMark": "working_set",
    "CandidateRow": "tables",
    "Derivation": "derivation",
    "DerivedModel": "component",
    "ErrorMetric": "error_metrics",
    "Explanation": "working_set",
    "ExtrapSeries": "extrap",
    "FitOptions": "options",
    "PartRow": "tables",
    "PlotInfo": "plots",
    "Samples": "statistics",
    "WorkingSet": "working_set",
    "bootstrap": "uncertainty",
    "cache_marks": "working_set",
    "candidate_rows": "tables",
    "derive": "derivation",
    "derive_model": "component",
    "error_metric": "error_metrics",
    "explain": "working_set",
    "fit": "component",
    "median_interval": "statistics",
    "model_figure": "plots",
    "model_rows": "tables",
    "parts_figures": "plots",
    "parts_overview": "plots",
    "read_csv": "csvdata",
    "read_extrap": "extrap",
    "read_series": "datafiles",
    "registered_metrics": "error_metrics",
    "residual_figure": "plots",
    "save_figure": "plots",
    "scholz2021_exact_table": "working_set",
    "summarise": "statistics",
    "write_extrap_text": "extrap",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for only then: plots need matplotlib, tables pandas, and many callers neither."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
