"""THE DOOR for Python: what notebooks and programs use of p4perf.

>>> from p4perf.api import derive
>>> derive([1, 2, 3, 4], [5.0, 7.0, 9.0, 11.0]).best.segments[0].text()
'y = 3 + 2 x'
"""

from p4perf.evaluation.fitting.component import DerivedModel as DerivedModel
from p4perf.evaluation.fitting.component import derive_model as derive_model
from p4perf.evaluation.fitting.component import fit as fit
from p4perf.evaluation.fitting.datafiles import read_csv as read_csv
from p4perf.evaluation.fitting.datafiles import read_series as read_series
from p4perf.evaluation.fitting.derivation import Derivation as Derivation
from p4perf.evaluation.fitting.derivation import FitOptions as FitOptions
from p4perf.evaluation.fitting.derivation import derive as derive
from p4perf.evaluation.fitting.error_metrics import ErrorMetric as ErrorMetric
from p4perf.evaluation.fitting.error_metrics import error_metric as error_metric
from p4perf.evaluation.fitting.error_metrics import registered_metrics as registered_metrics
from p4perf.evaluation.fitting.extrap import ExtrapSeries as ExtrapSeries
from p4perf.evaluation.fitting.extrap import read_extrap as read_extrap
from p4perf.evaluation.fitting.extrap import write_extrap_text as write_extrap_text
from p4perf.evaluation.fitting.tables import CandidateRow as CandidateRow
from p4perf.evaluation.fitting.tables import SegmentRow as SegmentRow
from p4perf.evaluation.fitting.tables import candidate_rows as candidate_rows
from p4perf.evaluation.fitting.tables import model_rows as model_rows
from p4perf.evaluation.fitting.uncertainty import bootstrap as bootstrap
from p4perf.evaluation.fitting.working_set import CacheMark as CacheMark
from p4perf.evaluation.fitting.working_set import Explanation as Explanation
from p4perf.evaluation.fitting.working_set import WorkingSet as WorkingSet
from p4perf.evaluation.fitting.working_set import cache_marks as cache_marks
from p4perf.evaluation.fitting.working_set import explain as explain
from p4perf.evaluation.fitting.working_set import scholz2021_exact_table as scholz2021_exact_table
from p4perf.evaluation.plots.model import model_figure as model_figure
from p4perf.evaluation.plots.model import residual_figure as residual_figure
from p4perf.evaluation.plots.model import segment_figures as segment_figures
from p4perf.evaluation.plots.model import segments_overview as segments_overview
from p4perf.evaluation.plots.style import PlotInfo as PlotInfo
from p4perf.evaluation.plots.style import save_figure as save_figure
from p4perf.results.table import Samples as Samples
from p4perf.results.table import median_interval as median_interval
from p4perf.results.table import summarise as summarise
