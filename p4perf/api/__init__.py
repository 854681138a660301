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

from p4perf.api.measuring import learn, learn_operations, measure, measure_sides, reproduce, run
from p4perf.api.modelling import compare, fit, fit_many, gate, predict
from p4perf.api.views import LearntModel, LoadedModel, OpenRun, Reproduced, RunList, list_runs, load_model, open_run

if TYPE_CHECKING:
    from p4perf.evaluation.fitting.component import DerivedModel
    from p4perf.evaluation.fitting.derivation import FitOptions, derive
    from p4perf.evaluation.fitting.error_metrics import ErrorMetric
    from p4perf.evaluation.plots.style import save_figure
    from p4perf.results.table import Samples

__all__ = [
    "DerivedModel", "ErrorMetric", "FitOptions", "LearntModel", "LoadedModel", "OpenRun", "Reproduced", "RunList",
    "Samples", "compare", "derive", "fit", "fit_many", "gate", "learn", "learn_operations", "list_runs", "load_model",
    "measure", "measure_sides", "open_run", "predict", "reproduce", "run", "save_figure",
]  # fmt: skip

_MORE = {
    "FitOptions": "p4perf.evaluation.fitting.derivation",
    "derive": "p4perf.evaluation.fitting.derivation",
    "ErrorMetric": "p4perf.evaluation.fitting.error_metrics",
    "DerivedModel": "p4perf.evaluation.fitting.component",
    "Samples": "p4perf.results.table",
    "save_figure": "p4perf.evaluation.plots.style",
}
"""What programs that extend the derivation need besides, and where it is."""


def __getattr__(name: str) -> Any:
    if name in _MORE:
        return getattr(importlib.import_module(_MORE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
