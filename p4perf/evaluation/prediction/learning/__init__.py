"""From measured programs to the cost model of a machine, and how well such models predict other programs."""

from p4perf.evaluation.prediction.learning.model import MeasuredProgram as MeasuredProgram
from p4perf.evaluation.prediction.learning.model import PredictionErrors as PredictionErrors
from p4perf.evaluation.prediction.learning.model import construct_of as construct_of
from p4perf.evaluation.prediction.learning.model import learn as learn
from p4perf.evaluation.prediction.learning.model import measured_programs as measured_programs
from p4perf.evaluation.prediction.learning.model import prediction_errors as prediction_errors
from p4perf.evaluation.prediction.learning.model import relative_error as relative_error
