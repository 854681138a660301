"""A target that runs sums and estimates their energy."""

import hashlib
import json

from energy.sums import Sums, constants

from p4perf.errors import MeasurementError
from p4perf.plugins import files_beside
from p4perf.programs.capabilities import Capabilities
from p4perf.targets.base import BuildPlan, Job, MetricValue, PointPlan, Problem, TrialSummary
from p4perf.targets.roles import Measures

WATTS = 5.0


class Meter(Measures):
    name = "meter"
    summary = "sums on this machine, with their energy"
    metrics = ("joules_per_packet",)
    capabilities = Capabilities("meter")

    def problems(self, facts):
        return () if facts.text("cc_version") else (Problem("no C compiler (cc) on the PATH", "install gcc"),)

    def plan(self, workload, traffic, facts):
        files = dict(files_beside(Meter, "harness"))
        files |= {file.path: file.text() for file in Sums().generate(workload, traffic)}
        commands = (("cc", "-O2", "-o", "meter", "meter.c", "program.c", "baseline.c"),)
        build = BuildPlan(files, commands, "meter", {"cc": facts.text("cc_version")})
        key = hashlib.sha256(f"{build.key} {traffic!r}".encode()).hexdigest()[:16]
        return PointPlan(key, build, workload, traffic, memory_bytes=0)

    def trial(self, plan, options, facts):
        expected = sum(constants(plan.workload.program))
        return Job(("{build}/meter", "100000", str(expected)), 60.0, plan.build)

    def parse(self, result):
        if result.returncode != 0:
            raise MeasurementError(result.stderr.strip() or f"meter ended with status {result.returncode}")
        return json.loads(result.stdout)

    def summarise(self, record, gate_ratio):
        joules = WATTS * record["program_s"] / record["packets"]
        return TrialSummary((MetricValue("joules_per_packet", joules, "J/packet"),), accepted=True, flags=())
