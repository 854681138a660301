"""From measured programs to the cost model of a machine, and how well such models predict other programs.

* :mod:`~p4perf.evaluation.prediction.learning.measured`: what was measured, as lists of components with their starts;
* :mod:`~p4perf.evaluation.prediction.learning.model`: the cost model that follows from it;
* :mod:`~p4perf.evaluation.prediction.learning.measured`: the errors of predictions;
* :mod:`~p4perf.evaluation.prediction.learning.primitives`: prices of headers, lookups and statements, from what
components cost.
"""

from p4perf.evaluation.prediction.learning.measured import MeasuredProgram as MeasuredProgram
from p4perf.evaluation.prediction.learning.measured import PredictionErrors as PredictionErrors
from p4perf.evaluation.prediction.learning.measured import construct_of as construct_of
from p4perf.evaluation.prediction.learning.measured import measured_programs as measured_programs
from p4perf.evaluation.prediction.learning.measured import prediction_errors as prediction_errors
from p4perf.evaluation.prediction.learning.measured import relative_error as relative_error
from p4perf.evaluation.prediction.learning.model import learn as learn
