"""A static site of runs, comparisons, predictions and claims."""

from p4perf.experiment.report.site import Site, write_site
from p4perf.experiment.report.sources import Sources, find_sources

__all__ = ["Site", "Sources", "find_sources", "write_site"]
