"""THE CONDUCTOR: walks the stream for a whole sweep, from the spec to tidy measurements on disk."""

from p4perf.experiment.conductor import Conductor
from p4perf.experiment.planning import PlannedPoint, RefusedPoint, SweepPlan, plan_sweep, point_workload, traffic_plan
from p4perf.experiment.progress import Progress, Silent
from p4perf.experiment.recorder import Outcome
from p4perf.experiment.session import measure_run, new_run, open_target, open_testbed, require_usable, resume_run

__all__ = [
    "Conductor",
    "Outcome",
    "PlannedPoint",
    "Progress",
    "RefusedPoint",
    "Silent",
    "SweepPlan",
    "measure_run",
    "new_run",
    "open_target",
    "open_testbed",
    "plan_sweep",
    "point_workload",
    "require_usable",
    "resume_run",
    "traffic_plan",
]
