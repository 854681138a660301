"""Target xdp without a kernel: planning, limits, the job of a trial, and what its output means."""

import json
import statistics
from dataclasses import replace

import pytest
from support.filters import FILTER

from p4perf.errors import CapabilityError, MeasurementError
from p4perf.generators.c.xdp_filter import filter_files
from p4perf.programs import ir
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.targets.base import JobResult, TrialOptions
from p4perf.targets.windows import Undisturbed
from p4perf.targets.xdp import HARNESS_VERSION, XdpTarget, table_bytes

TARGET = XdpTarget()
XDP_FACTS = {
    "clang_version": "clang 14",
    "libbpf_version": "1.1.2",
    "kernel": "6.1.0-1-amd64",
    "bpf_jit": "1",
    "bpf_allowed": "yes",
}


def table(**parameters):
    return build_workload([("match_action_table", {"entries": 1000, **parameters})], frame_size_bytes=128)


@pytest.fixture
def plan(facts):
    def make(workload=None, traffic=None, **more):
        return TARGET.plan(workload or table(), traffic or TrafficPlan(128), facts(**{**XDP_FACTS, **more}))

    return make


@pytest.fixture
def record(make_record):
    def make(**more):
        sizes = {"program_instructions": 75, "code_bytes": 289, "load_ms": 0.05, "compile_ms": 80.0}
        return {**make_record(**more), "harness_version": HARNESS_VERSION, **sizes}

    return make


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"clang_version": None}, "no clang"),
        ({"libbpf_version": None}, "no libbpf"),
        ({"kernel": "5.15.0"}, "kernel 5.15.0 is too old"),
        ({"bpf_jit": "0"}, "JIT"),
        ({"bpf_allowed": "no"}, "no right to load"),
    ],
    ids=str,
)
def test_what_is_missing_is_fatal(facts, change, words):
    problems = TARGET.problems(facts(**{**XDP_FACTS, **change}))
    assert [words in p.what for p in problems if p.fatal] == [True]


def test_no_problem_where_all_is_there(facts):
    assert TARGET.problems(facts(**XDP_FACTS)) == ()
    (problem,) = TARGET.problems(facts(**{**XDP_FACTS, "realtime": "no"}))
    assert not problem.fatal


def test_entries_and_traffic_make_another_point_of_the_same_build(plan):
    first = plan()
    for other in (plan(table(entries=2000)), plan(traffic=TrafficPlan(128, hit_ratio=0.5))):
        assert other.key != first.key
        assert other.build.key == first.build.key
    assert plan().key == first.key


def test_the_kernel_names_the_point(plan):
    assert plan(kernel="6.2.0").key != plan().key
    assert plan(clang_version="clang 15").build.key != plan().build.key


@pytest.mark.parametrize("traffic", [TrafficPlan(128, pattern="poisson"), TrafficPlan(128, offered_load_mpps=1.0)])
def test_there_is_no_offered_load(plan, traffic):
    with pytest.raises(CapabilityError, match="no offered load"):
        plan(traffic=traffic)


def test_maps_that_do_not_fit_into_memory(plan):
    with pytest.raises(CapabilityError, match=r"about \d.* GiB, but 0\.1 GiB are available"):
        plan(table(entries=10_000_000), memory_available_bytes=str(100 << 20))


@pytest.mark.parametrize(("kind", "about"), [("exact", 16 * 1024 + 1000 * 128), ("ternary", 1000 * 96)])
def test_memory_of_a_map(kind, about):
    program = table(match_kind=kind).program
    assert table_bytes(program, program.tables[0]) == pytest.approx(about, rel=0.05)


def test_the_job_of_a_trial(plan, facts):
    job = TARGET.trial(plan(), TrialOptions(gate_ratio=0.26, seed=7), facts(**XDP_FACTS))
    text = " ".join(job.argv)
    assert text.startswith("{build}/xdp --folder {build} --frame ")
    for part in ("--keys 1000", "--entries 1000", "--verify {folder}/verify.bin", "--gate-ratio 0.26000", "--seed 7"):
        assert part in text
    assert set(job.files) == {"verify.bin"}


def test_every_field_that_varies_has_its_own_range(plan, facts):
    several = build_workload([("match_action_table", {"entries": n}) for n in (1000, 7, 1000)], frame_size_bytes=128)
    argv = TARGET.trial(plan(several), TrialOptions(), facts(**XDP_FACTS)).argv
    assert [argv[n + 1] for n, word in enumerate(argv) if word == "--keys"] == ["1000", "7", "1000"]
    assert argv.count("--hit-ratio") == argv.count("--distribution") == 1


def test_the_clock_is_that_of_the_chain(record):
    given = record()
    metrics = {m.metric: m for m in TARGET.summarise(given, None).metrics}
    chain = statistics.median(given["windows"]["chain_before_tsc"])
    expected = given["tsc_hz"] * given["chain_core_cycles"] / chain / 1e9
    assert metrics["core_frequency"].unit == "GHz"
    assert metrics["core_frequency"].value == pytest.approx(expected, rel=0.05)


def result(**record):
    return JobResult(1 if "error" in record else 0, json.dumps(record) + "\n", "", 1.0)


@pytest.mark.parametrize(("kind", "key"), [("verifier", "verify"), ("verify", "verify"), ("memory", "memory")])
def test_what_will_never_work_is_not_tried_again(kind, key):
    with pytest.raises(MeasurementError, match="no") as caught:
        TARGET.parse(result(error="no", kind=kind))
    assert caught.value.key == key


@pytest.mark.parametrize("output", ["", "{", '{"harness_version": 0}'], ids=repr)
def test_output_that_is_none(output):
    with pytest.raises(MeasurementError):
        TARGET.parse(JobResult(0, output, "", 1.0))
    with pytest.raises(MeasurementError, match="stopped after 9 s"):
        TARGET.parse(JobResult(0, output, "", 9.0, timed_out=True))


def test_the_metrics_of_a_record(record):
    data = TARGET.parse(result(**record()))
    summary = TARGET.summarise(data, None)
    values = {m.metric: m.value for m in summary.metrics}
    assert summary.accepted
    assert set(TARGET.metrics) <= set(values)
    assert values["cost_cycles_per_packet"] == pytest.approx(80)
    assert (values["program_instructions"], values["code_bytes"]) == (75, 289)
    assert (values["load_time"], values["compile_time"]) == (0.05, 80.0)
    assert TARGET.undisturbed(data) == Undisturbed(0.25, 12.0)


# Filters that p4c-ebpf compiles ---------------------------------------------------------------------------------------


def filter_workload(kinds=("exact", "exact"), entries=None):
    """A program as it is read of a filter: one table with an entry, an action of the filter and one of the language."""
    workload = build_workload([("l2fwd", {})], frame_size_bytes=64)
    keys = tuple(ir.Key(ir.FieldRef("ethernet", name), kind) for name, kind in zip(("dst", "src"), kinds, strict=False))
    actions = (
        ir.Action("check", (ir.Field("ttl", 8),), label="P4perfIngress.filter.Check"),
        ir.Action("NoAction", label="NoAction"),
    )
    found = entries or (ir.Entry(tuple(ir.Match.masked(n + 5, -1) for n in range(len(keys))), "check", (9,)),)
    lookup = ir.Table(
        "senders", keys, ("check",), "NoAction", ir.EntryList(found), label="P4perfIngress.filter.senders"
    )
    program = replace(workload.program, actions=(*workload.program.actions, *actions), tables=(lookup,))
    frames = (bytes(60), bytes([1] * 60))
    return replace(workload, program=program, frames=frames, source=ir.ProgramText("bmv2", "{}", p4=FILTER))


def test_maps_of_a_filter_are_filled_by_names_of_p4c():
    files = filter_files(filter_workload())
    layout = files["layout.c"]
    assert "static const struct pipe_senders_key keys_pipe_senders[]" in layout
    assert "{.field0 = 0x5, .field1 = 0x6}" in layout
    assert "{.action = PIPE_SENDERS_ACT_PIPE_CHECK, .u = {.pipe_Check = {0x9}}}" in layout
    assert '.map = "pipe_senders_defaultAction"' in layout
    assert "{.action = 0}" in layout
    assert files["filter.p4"] == FILTER
    assert '#include "filter.c"' in files["program.bpf.c"]


@pytest.mark.parametrize("kinds", [("ternary",), ("exact", "lpm"), ("lpm",)])
def test_keys_that_a_filter_has_no_entries_for(kinds):
    with pytest.raises(CapabilityError, match="one lpm key of 32"):
        filter_files(filter_workload(kinds))


def test_what_is_no_filter_is_refused(facts):
    with pytest.raises(CapabilityError, match="runs packet filters"):
        XdpTarget(("p4c",)).plan(table(), TrafficPlan(128), facts(**XDP_FACTS))


def test_the_compiler_of_filters_is_needed(facts):
    (problem,) = XdpTarget(("p4c",)).problems(facts(**XDP_FACTS))
    assert problem.what == "no p4c-ebpf on the PATH"
    assert not XdpTarget(("p4c",)).problems(facts(**XDP_FACTS, tool_p4c_ebpf="/bin/p4c-ebpf"))
