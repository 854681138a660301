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

from p4perf.api.measuring import learn as learn
from p4perf.api.measuring import learn_operations as learn_operations
from p4perf.api.measuring import measure as measure
from p4perf.api.measuring import measure_sides as measure_sides
from p4perf.api.measuring import reproduce as reproduce
from p4perf.api.measuring import run as run
from p4perf.api.modelling import compare as compare
from p4perf.api.modelling import fit as fit
from p4perf.api.modelling import fit_many as fit_many
from p4perf.api.modelling import gate as gate
from p4perf.api.modelling import predict as predict
from p4perf.api.views import LearntModel as LearntModel
from p4perf.api.views import LoadedModel as LoadedModel
from p4perf.api.views import OpenRun as OpenRun
from p4perf.api.views import Reproduced as Reproduced
from p4perf.api.views import RunList as RunList
from p4perf.api.views import list_runs as list_runs
from p4perf.api.views import load_model as load_model
from p4perf.api.views import open_run as open_run

if TYPE_CHECKING:
    from p4perf.evaluation.fitting.component import DerivedModel as DerivedModel
    from p4perf.evaluation.fitting.derivation import FitOptions as FitOptions
    from p4perf.evaluation.fitting.derivation import derive as derive
    from p4perf.evaluation.fitting.error_metrics import ErrorMetric as ErrorMetric
    from p4perf.evaluation.plots.style import save_figure as save_figure
    from p4perf.results.table import Samples as Samples

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
