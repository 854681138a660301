"""Queue models with units: service times and arrivals from what p4perf has, operating points, and what was measured."""

from p4perf.evaluation.queueing.laws import ARRIVALS, Law, choose_step_us, parse_time_us
from p4perf.evaluation.queueing.operating import OperatingPoint, System, operating_points
from p4perf.evaluation.queueing.sources import arrival_law, service_law

__all__ = [
    "ARRIVALS",
    "Law",
    "OperatingPoint",
    "System",
    "arrival_law",
    "choose_step_us",
    "operating_points",
    "parse_time_us",
    "service_law",
]
