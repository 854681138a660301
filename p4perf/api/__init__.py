"""THE DOOR for Python: what the commands do, as functions that return data.

>>> import p4perf
>>> fit = p4perf.fit([1, 2, 3, 4], [5.0, 7.0, 9.0, 11.0], y_name="cycles")
>>> fit
<DerivedModel cycles: 1 segment>
>>> fit.segments[0].text()
'y = 3 + 2 x'

Everything is imported when it is used, so that ``import p4perf`` takes no time.
"""

import importlib
from typing import TYPE_CHECKING, Any

from p4perf.api.arguments import checked
from p4perf.api.measuring import learn, learn_operations, measure, measure_sides, reproduce, resume, run
from p4perf.api.modelling import compare, fit, fit_many, gate, predict
from p4perf.api.views import LearntModel, LoadedModel, OpenRun, Reproduced, RunList, list_runs, load_model, open_run

if TYPE_CHECKING:
    from p4perf.api.listing import list_items
    from p4perf.api.papers import (
        analyse_factors,
        analyse_opq,
        estimate_cesim,
        estimate_eo,
        estimate_place,
        estimate_queue,
    )
    from p4perf.api.setup import check, generate, status
    from p4perf.api.sharing import export, import_results, open_page, pack, report
    from p4perf.evaluation.fitting.component import DerivedModel
    from p4perf.evaluation.fitting.derivation import FitOptions, derive
    from p4perf.evaluation.fitting.error_metrics import ErrorMetric
    from p4perf.evaluation.plots.style import save_figure
    from p4perf.experiment.doctor import doctor
    from p4perf.results.table import Samples

__all__ = [
    "DerivedModel", "ErrorMetric", "FitOptions", "LearntModel", "LoadedModel", "OpenRun", "Reproduced", "RunList",
    "Samples", "analyse_factors", "analyse_opq", "check", "compare", "derive", "doctor", "estimate_cesim",
    "estimate_eo", "estimate_place", "estimate_queue", "export", "fit", "fit_many", "gate", "generate",
    "import_results", "learn", "learn_operations", "list_items", "list_runs", "load_model", "measure", "measure_sides",
    "open_page", "open_run", "pack", "predict", "report", "reproduce", "resume", "run", "save_figure", "status",
]  # fmt: skip

_PAPERS = ("analyse_factors", "analyse_opq", "estimate_cesim", "estimate_eo", "estimate_place", "estimate_queue")
_MORE = {
    "list_items": "p4perf.api.listing",
    **dict.fromkeys(_PAPERS, "p4perf.api.papers"),
    **dict.fromkeys(("check", "generate", "status"), "p4perf.api.setup"),
    **dict.fromkeys(("export", "import_results", "open_page", "pack", "report"), "p4perf.api.sharing"),
    "doctor": "p4perf.experiment.doctor",
    "FitOptions": "p4perf.evaluation.fitting.derivation",
    "derive": "p4perf.evaluation.fitting.derivation",
    "ErrorMetric": "p4perf.evaluation.fitting.error_metrics",
    "DerivedModel": "p4perf.evaluation.fitting.component",
    "Samples": "p4perf.results.table",
    "save_figure": "p4perf.evaluation.plots.style",
}
"""What is imported when it is used, and where it is."""


def __getattr__(name: str) -> Any:
    if name in _MORE:
        found = getattr(importlib.import_module(_MORE[name]), name)
        return checked(found) if name == "doctor" else found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
