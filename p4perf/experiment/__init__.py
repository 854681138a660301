"""THE CONDUCTOR: walks the stream for a whole sweep, from the spec to tidy measurements on disk."""

from p4perf.experiment.bench import open_target as open_target
from p4perf.experiment.bench import open_testbed as open_testbed
from p4perf.experiment.crew import Crew as Crew
from p4perf.experiment.crew import open_crew as open_crew
from p4perf.experiment.planning import plan_sweep as plan_sweep
from p4perf.experiment.planning import point_workload as point_workload
from p4perf.experiment.recorder import SweepOutcome as SweepOutcome
from p4perf.experiment.session import measure_anew as measure_anew
from p4perf.experiment.session import measure_run as measure_run
from p4perf.experiment.session import new_run as new_run
from p4perf.experiment.session import require_usable as require_usable
from p4perf.experiment.session import resume_run as resume_run
