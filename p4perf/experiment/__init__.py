"""THE CONDUCTOR: walks the stream for a whole sweep, from the spec to tidy measurements on disk."""

from p4perf.experiment.conductor import Conductor
from p4perf.experiment.crew import Crew, open_crew
from p4perf.experiment.planning import PlannedPoint, RefusedPoint, SweepPlan, plan_sweep, point_workload, traffic_plan
from p4perf.experiment.progress import Progress, Silent
from p4perf.experiment.record import open_target, open_testbed
from p4perf.experiment.recorder import Outcome
from p4perf.experiment.session import measure_run, new_run, require_usable, resume_run

__all__ = [
    "Conductor",
    "Crew",
    "Outcome",
    "PlannedPoint",
    "Progress",
    "RefusedPoint",
    "Silent",
    "SweepPlan",
    "measure_run",
    "new_run",
    "open_crew",
    "open_target",
    "open_testbed",
    "plan_sweep",
    "point_workload",
    "require_usable",
    "resume_run",
    "traffic_plan",
]
