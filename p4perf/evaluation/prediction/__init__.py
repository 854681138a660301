"""From measured programs to the cost model of a machine, and how well such models predict other programs.

* :mod:`~p4perf.evaluation.prediction.measured`: what was measured, as lists of components with their starts;
* :mod:`~p4perf.evaluation.prediction.learning`: the cost model that follows from it;
* :mod:`~p4perf.evaluation.prediction.errors`: the errors of predictions;
* :mod:`~p4perf.evaluation.prediction.primitives`: prices of headers, lookups and statements, from what components cost.
"""

from p4perf.evaluation.prediction.errors import PredictionErrors, prediction_errors, relative_error
from p4perf.evaluation.prediction.learning import learn
from p4perf.evaluation.prediction.measured import MeasuredProgram, construct_of, measured_programs

__all__ = [
    "MeasuredProgram",
    "PredictionErrors",
    "construct_of",
    "learn",
    "measured_programs",
    "prediction_errors",
    "relative_error",
]
