"""Fast targets for tests of the stream: a shell prints what a data plane would have measured.

They live in a distribution of their own, found through PYTHONPATH, so that tests go through the entry points as other
people's plug-ins do.
"""

import hashlib
import json
import math
from dataclasses import replace
from typing import ClassVar

from p4perf.errors import MeasurementError
from p4perf.programs.capabilities import Capabilities, Limit
from p4perf.targets.base import BuildPlan, Job, MetricValue, PointPlan, Problem, TrialSummary
from p4perf.targets.process import harness_record
from p4perf.targets.roles import Measures, Serves, Service, ServiceStep


class FakeTarget(Measures):
    """Costs 100 cycles, and 40 more for every factor of ten of entries beyond 1000."""

    name = "fake"
    summary = "prints made-up numbers, for tests only"
    metrics = ("cycles_per_packet", "cost_cycles_per_packet", "packet_rate", "memory_bytes")
    capabilities = Capabilities("fake")
    accepted = True
    script = 'sleep "${P4PERF_FAKE_SLEEP_S:-0}"; printf \'%s\\n\' "$1"'

    def problems(self, facts):
        return ()

    def plan(self, workload, traffic, facts):
        entries = sum(t.entries.count for t in workload.program.tables)
        headers = len(workload.program.headers)
        writes = sum(len(a.body) for a in workload.program.actions)
        key = f"fake-{entries}-{headers}-{writes}-{traffic.frame_size_bytes}"
        return PointPlan(key, BuildPlan({}, (), ""), workload, traffic, entries)

    def trial(self, plan, options, facts):
        cycles = 100 + 40 * max(0.0, math.log10(max(plan.memory_bytes, 1)) - 3) + (options.seed * 7919 % 11) / 10
        record = {"cycles": cycles, "seed": options.seed, "memory": plan.memory_bytes}
        return Job(("sh", "-c", self.script, "sh", json.dumps(record)), 10.0)

    def parse(self, result):
        if not result.stdout.startswith("{"):
            raise MeasurementError(f"the program ended with status {result.returncode} and no result")
        return json.loads(result.stdout)

    def summarise(self, record, gate_ratio):
        cycles = record["cycles"]
        values = (
            MetricValue("cycles_per_packet", cycles, "cycles/packet"),
            MetricValue("cost_cycles_per_packet", cycles - 10, "cycles/packet"),
            MetricValue("packet_rate", 2000 / cycles, "Mpps"),
            MetricValue("memory_bytes", record["memory"], "B"),
        )
        return TrialSummary(values, self.accepted, () if self.accepted else ("few_windows",))


class ExclusiveTarget(FakeTarget):
    """Refuses to run twice at once on a device, which is the file that the environment of its testbed names."""

    name = "fake-exclusive"
    script = 'exec 9>"$P4PERF_FAKE_DEVICE"; flock -n 9 || exit 77; ' + FakeTarget.script


class WrongTarget(FakeTarget):
    """Forwards the wrong bytes."""

    name = "fake-wrong"

    def parse(self, result):
        raise MeasurementError("packet 7 differs at byte 30: 00, expected 17", key="verify")


class HarnessOfFake(FakeTarget):
    """Prints what a harness would, or what the environment says instead."""

    name = "fake-harness"
    script = 'eval "${P4PERF_FAKE_SCRIPT:-echo}"'

    def trial(self, plan, options, facts):
        return replace(super().trial(plan, options, facts), timeout_s=2.0)

    def parse(self, result):
        return harness_record(result, 1)


class HugepagesOfFake(HarnessOfFake):
    """Needs hugepages, if there were any when the run began."""

    name = "fake-hugepages"
    script = "grep -q 'HugePages_Free: *[1-9]' /proc/meminfo || exit 1; " + FakeTarget.script

    def use_hugepages(self, memory_bytes, facts):
        return bool(facts.number("hugepages_free"))

    def parse(self, result):
        return FakeTarget.parse(self, result)


class BuiltTarget(FakeTarget):
    """Its program is compiled."""

    name = "fake-built"
    script = '"$2" && ' + FakeTarget.script

    def plan(self, workload, traffic, facts):
        plan = super().plan(workload, traffic, facts)
        text = "int main(void) { return 0; }"
        build = BuildPlan({"a.c": text}, (("cc", "a.c", "-o", "a"),), "a", timeout_s=2.0)
        return replace(plan, build=build)

    def trial(self, plan, options, facts):
        job = super().trial(plan, options, facts)
        return replace(job, argv=(*job.argv, "{build}/a"), build=plan.build)


class NoisyTarget(FakeTarget):
    """Never has an accepted trial."""

    name = "fake-noisy"
    accepted = False


class DyingTarget(FakeTarget):
    """Dies at once."""

    name = "fake-dying"
    script = "echo out of luck >&2; exit 139"


class AbsentTarget(FakeTarget):
    """Needs what no machine has."""

    name = "fake-absent"

    def problems(self, facts):
        return (Problem("no flux capacitor on the PATH", "install one"),)


class UnbuildableTarget(FakeTarget):
    """Its program does not compile."""

    name = "fake-unbuildable"

    def trial(self, plan, options, facts):
        build = BuildPlan({"a.c": "int main(void) { return x; }"}, (("cc", "a.c", "-o", "a"),), "a")
        return Job(("{build}/a",), 10.0, build)


class SmallTarget(FakeTarget):
    """Takes few entries, one kind of match, and can do it in two ways."""

    name = "fake-small"
    variants: ClassVar = {"careful": "takes twice as long to think", "bold": "does not think"}
    capabilities = Capabilities(
        "fake-small",
        missing={"lpm": "it counts on its fingers"},
        limits={"exact entries": Limit(100, "number of drawers")},
    )


class PartlyTarget(FakeTarget):
    """Computes nonsense beyond 100 entries, and does not even compile beyond 1000."""

    name = "fake-partly"

    def plan(self, workload, traffic, facts):
        plan = super().plan(workload, traffic, facts)
        text = "int main(void) { return x; }" if plan.memory_bytes > 1000 else "int main(void) { return 0; }"
        build = BuildPlan({"a.c": text}, (("cc", "a.c", "-o", "a"),), "a")
        return PointPlan(plan.key, build, workload, traffic, plan.memory_bytes)

    def trial(self, plan, options, facts):
        job = super().trial(plan, options, facts)
        return Job(job.argv, job.timeout_s, plan.build)

    def parse(self, result):
        record = super().parse(result)
        if record["memory"] > 100:
            raise MeasurementError("packet 7 differs at byte 30: 00, expected 17", key="verify")
        return record


class EnvironmentTarget(FakeTarget):
    """Costs what the environment says."""

    name = "fake-environment"
    script = 'printf \'{"cycles": %s, "seed": 1, "memory": 1}\\n\' "${P4PERF_FAKE_CYCLES:-100}"'


class DefectTarget(FakeTarget):
    """Has a defect."""

    name = "fake-defect"

    def parse(self, result):
        return {}["cycles"]


class ServedTarget(FakeTarget, Serves):
    """Is loaded from outside. How fast it is it writes to the file that the tool ``fake_capacity`` of its node names.

    A capacity of 500 packets per second, of the baseline 800.
    """

    name = "fake-served"
    served_gives: ClassVar = (
        "cycles_per_packet",
        "baseline_cycles_per_packet",
        "cost_cycles_per_packet",
        "packet_rate",
    )
    forwards = 'echo "$1" >"$2"; echo "now forwarding"; exec sleep 1000'

    def problems(self, facts):
        return () if "tool_fake_capacity" in facts.values else (Problem("no tool fake_capacity", "name one"),)

    def service(self, plan, program, facts):
        capacity = facts.values["tool_fake_capacity"]
        words = ("sh", "-c", self.forwards, "sh", {"program": "500", "baseline": "800"}[program], capacity)
        look = Job(("cat", capacity), 10.0)
        return Service(
            prepare=(ServiceStep("making room", Job(("rm", "-f", capacity), 10.0)),),
            main=Job(words, 10.0),
            ready="^now forwarding$",
            broken="^error:",
            ready_timeout_s=10.0,
            before=(ServiceStep("counting before", look),),
            after=(ServiceStep("counting after", look),),
            release=(ServiceStep("clearing up", Job(("rm", capacity), 10.0)),),
        )

    def served_metrics(self, overload, facts):
        hz = 1e9 * float(facts["cpu_ghz"])
        cycles, baseline = (hz / overload[name]["receive_rate_pps"] for name in ("program", "baseline"))
        return (
            MetricValue("cycles_per_packet", cycles, "cycles/packet"),
            MetricValue("baseline_cycles_per_packet", baseline, "cycles/packet"),
            MetricValue("cost_cycles_per_packet", cycles - baseline, "cycles/packet"),
            MetricValue("packet_rate", overload["program"]["receive_rate_pps"] / 1e6, "Mpps"),
        )


class AddingTarget(FakeTarget):
    """Tables cost 40 cycles each and headers 3, and what is beside a table costs a tenth more."""

    name = "fake-adding"
    metrics = ("cycles_per_packet", "baseline_cycles_per_packet", "cost_cycles_per_packet", "packet_rate")

    def plan(self, workload, traffic, facts):
        plan = super().plan(workload, traffic, facts)
        key = hashlib.sha256(repr(workload.program).encode()).hexdigest()[:16]
        return PointPlan(key, plan.build, workload, traffic, plan.memory_bytes)

    def trial(self, plan, options, facts):
        program = plan.workload.program
        tables, statements = len(program.tables), sum(len(action.body) for action in program.actions)
        cycles = 20 + (40 * tables + 3 * (len(program.headers) - 1) + statements - 1) * (1.1 if tables > 1 else 1.0)
        record = {"cycles": cycles + (options.seed % 3) / 100, "seed": options.seed, "memory": plan.memory_bytes}
        return Job(("sh", "-c", self.script, "sh", json.dumps(record)), 10.0)

    def summarise(self, record, gate_ratio):
        cycles = record["cycles"]
        values = (
            MetricValue("cycles_per_packet", cycles, "cycles/packet"),
            MetricValue("baseline_cycles_per_packet", 20.0, "cycles/packet"),
            MetricValue("cost_cycles_per_packet", cycles - 20.0, "cycles/packet"),
            MetricValue("packet_rate", 2000 / cycles, "Mpps"),
        )
        return TrialSummary(values, True, ())
