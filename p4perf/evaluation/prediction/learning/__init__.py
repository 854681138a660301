"""From measured programs to the cost model of a machine, and how well such models predict other programs.

* :mod:`~p4perf.evaluation.prediction.learning.measured`: what was measured, as lists of components with their starts;
* :mod:`~p4perf.evaluation.prediction.learning.model`: the cost model that follows from it;
* :mod:`~p4perf.evaluation.prediction.learning.measured`: the errors of predictions;
* :mod:`~p4perf.evaluation.prediction.learning.primitives`: prices of headers, lookups and statements, from what
components cost.
"""

from p4perf.evaluation.prediction.learning.measured import (
    MeasuredProgram,
    PredictionErrors,
    construct_of,
    measured_programs,
    prediction_errors,
    relative_error,
)
from p4perf.evaluation.prediction.learning.model import learn

__all__ = [
    "MeasuredProgram",
    "PredictionErrors",
    "construct_of",
    "learn",
    "measured_programs",
    "prediction_errors",
    "relative_error",
]
