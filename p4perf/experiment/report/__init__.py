"""A static site of runs, comparisons, predictions and claims."""

from p4perf.experiment.report.site import Site as Site
from p4perf.experiment.report.site import find_sources as find_sources
from p4perf.experiment.report.site import write_site as write_site
