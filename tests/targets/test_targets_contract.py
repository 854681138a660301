"""What every registered target owes to the others: names, sources, and one truth about what it can do."""

import json
from functools import cache
from typing import get_args

import pytest
from support.sampling import sampled

from p4perf.errors import CapabilityError, MeasurementError
from p4perf.experiment import open_target, open_testbed, point_workload
from p4perf.experiment.load import without_load
from p4perf.plugins import load_plugin, plugin_names
from p4perf.programs.capabilities import CONSTRUCTS, OF_OWN_PROGRAMS, Capabilities, Quantity
from p4perf.programs.component import OWN
from p4perf.specs import METRICS, list_catalogue, load_experiment
from p4perf.targets import roles
from p4perf.targets.base import JobResult, NodeFacts, Problem, Target, TrialOptions
from p4perf.targets.link import LinkPlan

NAMES = plugin_names("p4perf.targets")
LABELS = [
    label for name in NAMES for label in (name, *(f"{name}:{v}" for v in load_plugin("p4perf.targets", name).variants))
]

SERVED = {
    "load_generator": "moongen",
    "cores": "2,3",
    "interface_ingress": "0000:03:00.0",
    "interface_egress": "0000:03:00.1",
    "tool_t4p4s": "/opt/t4p4s",
    "tool_p4c": "/opt/p4c",
}
"""Facts of a node whose load comes from another one."""


@pytest.fixture(scope="module")
def facts():
    """Facts of this machine, with memory for everything: how much there is belongs to no table."""
    return NodeFacts({**open_testbed("local").facts().values, "memory_available_bytes": str(2**50)})


@pytest.mark.parametrize("name", NAMES)
def test_a_target_says_what_it_is(name):
    kind = load_plugin("p4perf.targets", name)
    assert issubclass(kind, Target)
    assert kind.name == name
    assert kind.summary
    assert len(kind.summary) <= 120
    assert set(kind.metrics) <= set(METRICS), "a metric that specs do not know cannot be asked for"
    assert len(kind.metrics) == len(set(kind.metrics))
    assert all(kind.variants.values()), "a variant has a summary"


@pytest.mark.parametrize("label", LABELS)
def test_a_label_leads_back_to_its_target(label):
    target = open_target(label)
    assert target.label == label
    assert open_target(target.label).label == label


@pytest.mark.parametrize("label", LABELS)
def test_capabilities_have_an_owner_and_sources(label):
    target = open_target(label)
    capabilities = target.capabilities
    assert isinstance(capabilities, Capabilities)
    assert capabilities.owner.startswith(target.name), "messages name the target"
    assert set(capabilities.missing) <= set(CONSTRUCTS)
    assert set(capabilities.limits) <= set(get_args(Quantity))
    assert all(len(reason) > 10 for reason in capabilities.missing.values())
    for quantity, limit in capabilities.limits.items():
        assert limit.most >= 0, quantity
        assert len(limit.source) > 5, quantity


@pytest.mark.parametrize("label", LABELS)
def test_problems_run_nothing_and_say_what_to_do(label, facts):
    for known in (facts, NodeFacts({})):
        for problem in open_target(label).problems(known):
            assert isinstance(problem, Problem)
            assert problem.what
            assert problem.hint


@cache
def workloads(points):
    """Experiment, values of the point, workload and traffic of that many points of every experiment on components."""
    experiments = [load_experiment(entry.name, points=points) for entry in list_catalogue()]
    of_components = [(e, p) for e in experiments for p in e.points if OWN not in dict(p.components)]
    return [(e.spec.name, dict(p.values), *point_workload(e, p)) for e, p in of_components]


@pytest.mark.parametrize("points", sampled([2, 4, 12], 2))
@pytest.mark.parametrize("label", LABELS)
def test_the_table_and_the_plan_agree(label, points, facts):
    target = open_target(label)
    differences = {}
    for name, values, workload, offered in workloads(points):
        traffic = without_load(offered) if roles.links_of(target) else offered
        table = target.capabilities.refusal(workload.program, workload.packets, traffic)
        try:
            target.plan(workload, traffic, facts)
            plan = None
        except CapabilityError as error:
            plan = error.message
        if (table is None) != (plan is None):
            differences.setdefault(name, f"{values}: table {table!r}, plan {plan!r}")
    assert differences == {}


def job_files(target, plan, facts):
    """Files that run a point: those of a trial, or of the steps by which a device comes up that is loaded outside."""
    if not roles.is_served(target, facts):
        return target.trial(plan, TrialOptions(), facts).files
    service = target.service(plan, "program", facts)
    jobs = [step.job for step in service.prepare] + ([service.main] if service.main else [])
    return {name: data for job in jobs for name, data in job.files.items()}


def labels_of(*wanted):
    """Labels of the targets that have these roles, and run what components make."""
    found = [label for label in LABELS if issubclass(load_plugin("p4perf.targets", label.partition(":")[0]), wanted)]
    return [label for label in found if not set(open_target(label).capabilities.requires) & set(OF_OWN_PROGRAMS)]


def planned(label, facts):
    """A target, and its plan of a point that it can do."""
    target = open_target(label)
    return target, target.plan(*point_workload(*first_point(target)), facts)


@pytest.mark.parametrize("label", LABELS)
def test_a_target_measures_or_serves(label):
    target = open_target(label)
    assert isinstance(target, roles.Measures | roles.Serves)
    asked = {
        roles.measuring: (roles.Measures, "is measured by a load generator outside only"),
        roles.connected: (roles.Connects, "has no port for a load generator"),
        roles.serving: (roles.Serves, "has no ports for a load generator on another machine"),
    }
    for ask, (role, refusal) in asked.items():
        if isinstance(target, role):
            assert ask(target) is target
        else:
            with pytest.raises(CapabilityError) as caught:
                ask(target)
            assert caught.value.message == f"target {label} {refusal}"


@pytest.mark.parametrize("label", labels_of(roles.Measures))
def test_a_target_that_measures_has_trials_and_judges_them(label, facts):
    target, plan = planned(label, facts)
    for options in (TrialOptions(), TrialOptions(mode="plain", hugepages=True), TrialOptions(gate_ratio=0.25)):
        job = target.trial(plan, options, facts)
        assert job.argv
        assert 0 < job.timeout_s < float("inf")
        assert job.build == plan.build
    for result in (JobResult(0, "", "", 1.0), JobResult(1, "{", "", 1.0), JobResult(-9, "", "", 1.0, timed_out=True)):
        with pytest.raises(MeasurementError):
            target.parse(result)
    assert target.use_hugepages(1 << 60, facts) is False


@pytest.mark.parametrize("label", labels_of(roles.Calibrates))
def test_a_target_that_calibrates_has_a_command_for_it(label):
    job = open_target(label).calibration()
    assert job.argv
    assert job.build is not None


@pytest.mark.parametrize("label", labels_of(roles.Connects))
def test_a_target_that_connects_refuses_other_links(label, facts):
    target, plan = planned(label, facts)
    two = NodeFacts({**facts.values, "cpus_allowed": "0-1", "dpdk_version": "22.11"})
    assert target.links
    for kind in target.links:
        assert "load" in target.load(plan, LinkPlan(kind), two).argv
    with pytest.raises(CapabilityError, match="has no port for the link wire"):
        target.load(plan, LinkPlan("wire"), two)


@pytest.mark.parametrize("label", labels_of(roles.Simulates))
def test_a_target_that_simulates_has_metrics_of_it(label, facts):
    target, plan = planned(label, facts)
    assert set(target.simulates) <= set(METRICS)
    assert target.simulated(()) == ()
    for job in target.simulation(plan, TrialOptions(), facts):
        assert job.argv
        assert job.build is not None


@pytest.mark.parametrize("label", labels_of(roles.SizesMemory))
def test_a_target_that_sizes_memory_names_layout_and_tables(label, facts):
    target, plan = planned(label, facts)
    program = plan.workload.program
    assert target.layout
    assert {t.name for t in program.tables} <= set(target.memory(program))
    assert all(size >= 0 for size in target.memory(program).values())


@pytest.mark.parametrize("label", labels_of(roles.Serves))
def test_a_device_that_is_loaded_outside_comes_up_and_goes_down(label, facts):
    """Its steps have words that tell them apart and what they are."""
    target = open_target(label)
    facts = NodeFacts({**facts.values, **SERVED})
    assert roles.is_served(target, facts)
    assert set(target.served_gives) <= set(METRICS)
    plan = target.plan(*point_workload(*first_point(target)), facts)
    for program in ("program", "baseline"):
        service = target.service(plan, program, facts)
        assert service.prepare or service.main
        assert (service.main is None) == (service.ready == "")
        watched = [step.what for step in (*service.before, *service.during, *service.after)]
        assert len(set(watched)) == len(watched), "evidence is by these words"
        for step in (*service.prepare, *service.before, *service.during, *service.after, *service.release):
            assert step.what
            assert step.job.argv
            assert 0 < step.job.timeout_s < float("inf")
            with pytest.raises(MeasurementError):
                target.check_step(step, JobResult(0, "", "", 1.0, timed_out=True))
    json.dumps(target.evidence({}))
    overload = {"receive_rate_pps": 2e6, "sent": 9, "received": 5, "duration_s": 1.0, "evidence": {}}
    for metric in target.served_metrics({"program": overload, "baseline": overload}, facts.values):
        assert metric.metric in target.served_gives
        assert metric.unit == METRICS[metric.metric].unit


def first_point(target):
    """A point that the target can do."""
    name = "vio/base" if "virtual I/O" in target.capabilities.requires else "mat/exact-entries"
    experiment = load_experiment(name, points=2)
    return experiment, experiment.points[0]


@pytest.mark.parametrize("label", labels_of(roles.Measures, roles.Serves))
def test_plans_are_the_same_twice_and_differ_between_points(label, facts):
    """Keys are the same twice and name one point each; a program that differs is built anew or is a file of the job."""
    for name in ("parser/headers", "action/header-field-writes", "vio/header-size"):
        experiment = load_experiment(name, points=4)
        keys, builds = [], []
        for point in experiment.points:
            workload, traffic = point_workload(experiment, point)
            if open_target(label).capabilities.refusal(workload.program, workload.packets, traffic) is not None:
                continue
            first, second = (open_target(label).plan(workload, traffic, facts) for _ in range(2))
            assert (first.key, first.build.key) == (second.key, second.build.key)
            assert first.memory_bytes >= 0
            keys.append(first.key)
            files = job_files(open_target(label), first, facts)
            interpreted = tuple((name, data) for name, data in files.items() if name != "verify.bin")
            builds.append((first.build.key, interpreted))
        assert len(set(keys)) == len(keys)
        assert len(set(builds)) == len(builds)
