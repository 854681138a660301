"""Target bmv2 without a switch: planning, limits, ports, the jobs of trials and loads, and what their output means."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from p4perf.errors import CapabilityError, MeasurementError
from p4perf.programs import ir
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.reading.commands import ControlPlane
from p4perf.targets.base import JobResult, NodeFacts, TrialOptions
from p4perf.targets.bmv2 import MAX_TERNARY_ENTRIES, Bmv2Target, Ports, ports_of
from p4perf.targets.link import LinkPlan

TARGET = Bmv2Target()
BMV2_FACTS = {
    "tool_simple_switch": "/opt/switch/simple_switch",
    "tool_simple_switch_cli": "/opt/switch/simple_switch_CLI",
    "tool_p4c_bm2_ss": "/opt/p4c/p4c-bm2-ss",
    "tool_ip": "/sbin/ip",
    "bmv2_version": "1.15.0-1234",
    "p4c_bm2_version": "1.2.3.7",
    "namespaces": "yes",
    "cpus_allowed": "0-3",
    "kernel": "6.1.0-1-amd64",
}


def table(**parameters):
    return build_workload([("match_action_table", {"entries": 1000, **parameters})], frame_size_bytes=128)


@pytest.fixture
def bmv2_facts(facts):
    return lambda **more: facts(**{**BMV2_FACTS, **more})


@pytest.fixture
def plan(bmv2_facts):
    def make(workload=None, traffic=None, **more):
        return TARGET.plan(workload or table(), traffic or TrafficPlan(128), bmv2_facts(**more))

    return make


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tool_simple_switch": None}, "no simple_switch on"),
        ({"tool_simple_switch_cli": None}, "no simple_switch_CLI on"),
        ({"bmv2_version": None}, "does not report its version"),
        ({"tool_p4c_bm2_ss": None}, "no p4c-bm2-ss"),
        ({"cc_version": None}, "no C compiler"),
        ({"dpdk_version": None}, "no DPDK for"),
        ({"tool_ip": None}, "no ip on"),
        ({"namespaces": None}, "no right to make network namespaces"),
        ({"cpus_allowed": "3"}, "need a CPU each"),
    ],
    ids=str,
)
def test_what_is_missing_is_fatal(bmv2_facts, change, words):
    problems = TARGET.problems(bmv2_facts(**change))
    assert [words in p.what for p in problems if p.fatal] == [True]


def test_no_problem_where_all_is_there(bmv2_facts):
    assert TARGET.problems(bmv2_facts()) == ()
    (problem,) = TARGET.problems(bmv2_facts(realtime="no"))
    assert not problem.fatal


@pytest.mark.parametrize("fact", ["bmv2_version", "p4c_bm2_version", "tool_p4c_bm2_ss", "cpu_model", "kernel"])
def test_versions_of_the_tools_name_the_point(plan, fact):
    assert plan(**{fact: "another"}).key != plan().key
    assert plan().key == plan().key


def test_versions_of_the_tools_are_in_the_context_of_the_build(plan):
    assert plan().build.context == {"bmv2_version": "1.15.0-1234", "p4c_version": "1.2.3.7"}


def test_the_baseline_is_compiled_once(plan):
    first, second = plan(table(entries=10)), plan(table(entries=20))
    assert first.build.key != second.build.key
    assert {n: p.key for n, p in first.build.parts.items()} == {n: p.key for n, p in second.build.parts.items()}


@pytest.mark.parametrize("traffic", [TrafficPlan(128, pattern="poisson"), TrafficPlan(128, offered_load_mpps=1.0)])
def test_trials_have_no_offered_load(plan, traffic):
    with pytest.raises(CapabilityError, match="as much as the load generator can"):
        plan(traffic=traffic)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"entries": 200_000}, "simple_switch_CLI adds one at a time"),
        ({"entries": MAX_TERNARY_ENTRIES + 1, "match_kind": "ternary"}, "a list that is searched to its end"),
    ],
)
def test_limits_name_their_source(plan, parameters, words):
    with pytest.raises(CapabilityError, match=words):
        plan(table(**parameters))


def test_frames_of_trials_need_no_room_for_a_stamp(plan, bmv2_facts):
    small = plan(build_workload([("parser_headers", {"headers": 10})], frame_size_bytes=64), TrafficPlan(64))
    assert "stamped=0" in TARGET.trial(small, TrialOptions(), bmv2_facts()).argv
    assert "stamped=0" not in TARGET.load(plan(), LinkPlan("af-packet"), bmv2_facts()).argv


def words_after(argv, option):
    return [argv[n + 1] for n, word in enumerate(argv) if word == option]


def test_the_job_of_a_load(plan, bmv2_facts):
    job = TARGET.load(plan(table(entries=5000)), LinkPlan("af-packet"), bmv2_facts())
    assert job.argv[:2] == ("{build}/load", "load")
    device = job.argv[job.argv.index("--") + 1 :]
    device = device[: device.index("--")]
    assert device[0] == "{build}/bmv2"
    assert words_after(device, "--switch") == ["/opt/switch/simple_switch"]
    assert words_after(device, "--cli") == ["/opt/switch/simple_switch_CLI"]
    (entries,) = words_after(device, "--table")
    assert entries.startswith("MainIngress.")
    assert entries.endswith("=5000")
    assert words_after(device, "--commands") == ["{folder}/commands.txt"]
    assert words_after(device, "--port") == ["1"]
    assert "--drops" not in device
    assert "--cpu" in device
    assert job.files["commands.txt"].count(b"table_add ") == 5000
    assert job.files["verify.bin"].startswith(b"P4PVRFY2")
    assert any(word.startswith("start_ms=") for word in job.argv)


def test_all_entries_come_by_commands(plan, bmv2_facts):
    few = plan(table(entries=100))
    assert "const entries" not in few.build.files["program.p4"]
    assert TARGET.load(few, LinkPlan("af-packet"), bmv2_facts()).files["commands.txt"].count(b"table_add ") == 100


def test_a_program_without_tables_needs_no_commands(plan, bmv2_facts):
    job = TARGET.load(plan(build_workload([("l2fwd", {})], frame_size_bytes=128)), LinkPlan("af-packet"), bmv2_facts())
    assert "--commands" not in job.argv
    assert set(job.files) == {"verify.bin"}


def test_packets_that_miss_are_dropped_by_the_program(plan, bmv2_facts):
    traffic = TrafficPlan(128, hit_ratio=0.5)
    assert "--drops" in TARGET.load(plan(traffic=traffic), LinkPlan("af-packet"), bmv2_facts()).argv


@pytest.mark.parametrize("link", [LinkPlan("ring"), LinkPlan("af-packet", sizes_bytes=(64, 2000))])
def test_links_that_bmv2_does_not_have(plan, bmv2_facts, link):
    with pytest.raises(CapabilityError, match=r"no port for the link ring|at most 1522 B"):
        TARGET.load(plan(), link, bmv2_facts())


def test_the_job_of_a_trial(plan, bmv2_facts):
    job = TARGET.trial(plan(), TrialOptions(windows=25, gate_ratio=0.26, seed=7), bmv2_facts())
    orders = job.files["orders.txt"].decode().splitlines()
    assert len(orders) == 2 * 25 + 2
    assert all(order.startswith("offer rate_pps=0 duration_ms=") for order in orders)
    assert [order.rpartition("device=")[2] for order in orders[:4]] == ["program", "baseline"] * 2
    head = json.loads(job.argv[4])["trial"]
    assert head == {"orders": 52, "warmup": 2, "gated": True, "gate_ratio": 0.26}
    assert job.argv[5:7] == ("{build}", "{folder}/orders.txt")


def test_a_trial_can_be_written_down_without_a_node(plan):
    assert TARGET.trial(plan(), TrialOptions(), NodeFacts({})).argv[0] == "sh"


# Ports --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("component", "parameters", "ports"),
    [
        ("l2fwd", {}, Ports(1)),
        ("match_action_table", {"entries": 3}, Ports(1)),
        ("multicast", {"ports": 3}, Ports(1, (2, 3))),
        ("clone", {"copies": 2}, Ports(1, (2, 3))),
    ],
)
def test_ports_of_components(component, parameters, ports):
    assert ports_of(build_workload([(component, parameters)], frame_size_bytes=128)) == ports


def sending_by(port):
    """The baseline, and a program whose entries send by another port."""
    workload = build_workload([("l2fwd", {})], frame_size_bytes=128)
    key = ir.FieldRef("ethernet", "dst")
    actions = (ir.Action("to", (ir.Field("port", 9),), (ir.SetEgress(ir.ParameterRef("port")),)), ir.Action("none"))
    lookup = ir.Table("t", (ir.Key(key),), ("to", "none"), "none", ir.EntrySet(4, "to", port))
    program = replace(
        workload.program,
        actions=(*workload.program.actions, *actions),
        tables=(lookup,),
        control=(*workload.program.control, ir.ApplyTable("t")),
    )
    return replace(workload, program=program)


def test_packets_that_leave_by_another_port_would_not_come_back():
    assert ports_of(sending_by(1)) == Ports(1)
    with pytest.raises(CapabilityError, match="packets would leave by 2"):
        ports_of(sending_by(2))


def test_an_action_that_nothing_runs_sends_nowhere():
    workload = build_workload([("l2fwd", {})], frame_size_bytes=128)
    idle = ir.Action("idle", body=(ir.SetEgress(ir.Const(7)),))
    program = replace(workload.program, actions=(*workload.program.actions, idle))
    assert ports_of(replace(workload, program=program)) == Ports(1)
    called = replace(program, control=(*program.control, ir.CallAction("idle")))
    with pytest.raises(CapabilityError):
        ports_of(replace(workload, program=called))


# Programs of users --------------------------------------------------------------------------------------------------

EXAMPLES = Path(__file__).parents[2] / "examples/programs"


def own(name="l2_switch", **parameters):
    text = (EXAMPLES / name / f"{name}.json").read_text()
    return build_workload([("p4", {"program": text, "default_fill": 8, **parameters})], frame_size_bytes=128)


@pytest.fixture
def own_job(plan, bmv2_facts):
    def make(*words, **parameters):
        planned = plan(own(*words, **parameters))
        return planned, TARGET.trial(planned, TrialOptions(windows=2), bmv2_facts())

    return make


def test_json_runs_as_it_is_and_only_the_baseline_is_compiled(own_job):
    planned, job = own_job()
    assert planned.build.files["program.json"] == (EXAMPLES / "l2_switch/l2_switch.json").read_text()
    assert not any("program" in command for command in planned.build.commands)
    assert "baseline.p4" in planned.build.parts["baseline"].files
    assert words_after(job.argv, "--baseline-port") == ["1"]
    assert words_after(job.argv, "--port") == ["0"]
    assert json.loads(job.argv[4])["trial"]["own"] is True
    assert len(job.files["source.bin"]) == 256 * 124


def test_entries_come_by_commands_and_tables_are_counted(own_job):
    _, job = own_job()
    commands = job.files["commands.txt"].decode().splitlines()
    tables = dict(word.split("=") for word in words_after(job.argv, "--table"))
    for name in ("MainControl.sources", "MainControl.destinations"):
        assert sum(line.startswith(f"table_add {name} ") for line in commands) == int(tables[name]) == 8


def test_every_port_of_a_packet_has_an_interface(own_job):
    planned, job = own_job()
    sent = {s.port for f in planned.workload.frames for s in Interpreter(planned.workload.program).run(f).sent}
    assert sent - {0} <= {int(port) for port in words_after(job.argv, "--sink")}


def test_groups_sessions_and_members_are_made_first():
    plane = ControlPlane(sessions={7: 3}, groups={1: ((2, 0), (4, 9))})
    assert list(plane.commands()) == [
        "mirroring_add 7 3",
        "mc_mgrp_create 1",
        *("mc_node_create 0 2", "mc_node_associate 1 0", "mc_node_create 9 4", "mc_node_associate 1 1"),
    ]


def test_arrays_that_the_switch_cannot_show_have_no_cells(own_job):
    _, job = own_job("count_min_sketch")
    asked = dict(word.split("=") for word in words_after(job.argv, "--register"))
    assert asked
    assert all(int(cells) > 0 for cells in asked.values())
    assert job.argv.index("--register") < job.argv.index("--commands")


def test_made_up_entries_stay_within_their_arrays():
    program = own("acl_firewall", default_fill=64).program
    (size,) = (counter.size for counter in program.counters)
    rules = [e.data[0] for e in program.table("MainControl_access_list").listing]
    assert len(rules) == 64
    assert max(rules) < size


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fill": "MainControl.instructions=17"}, "the size of its text, 16"),
        ({"fill": "MainControl.instructions=16"}, None),
    ],
)
def test_more_entries_than_a_table_takes_in_the_switch(plan, changes, words):
    workload = own("int_transit", **changes)
    if words is None:
        assert plan(workload).memory_bytes > 0
    else:
        with pytest.raises(CapabilityError, match=words):
            plan(workload)


def test_other_languages_are_refused(plan):
    workload = own()
    with pytest.raises(CapabilityError, match="is a specification of SWX"):
        plan(replace(workload, source=ir.ProgramText("swx", "")))
    root = json.loads((EXAMPLES / "l2_switch/l2_switch.json").read_text())
    root["headers"].append({**root["headers"][0], "name": "psa_ingress_output_metadata"})
    with pytest.raises(CapabilityError, match="is for psa_switch"):
        plan(replace(workload, source=ir.ProgramText("bmv2", json.dumps(root))))


def test_what_came_in_was_finished_of_a_user_s_program():
    program, baseline = answer(finished=10, device_received=1000), answer(finished=990, device_received=5)
    marked = lambda lines: [{"trial": {**lines[0]["trial"], "own": True}}, *lines[1:]]  # noqa: E731
    record = TARGET.parse(output(program, baseline, change=marked))
    assert record["windows"]["packets"][:4] == [1000, 990, 1000, 990]


# Output -------------------------------------------------------------------------------------------------------------


def answer(busy_us=20_000.0, finished=1000, copies=0, dropped=0, **more):
    columns = {
        "sent": 20_000,
        "received": finished,
        "sending_us": 20_000.0,
        "draining_us": 100.0,
        "switches": 0,
        "device_switches": 0,
        "device_busy_us": busy_us,
        "device_sent": finished + copies,
        "device_copies": copies,
        "device_dropped": dropped,
        "realtime": True,
        "device_chain_before_tsc": 12.0,
        "device_chain_after_tsc": 12.0,
        "device_mix_before_tsc": 3.0,
        "device_mix_after_tsc": 3.0,
        **more,
    }
    return {"load_version": 1, "segments": 1, **{key: [value] for key, value in columns.items()}}


def output(program=None, baseline=None, windows=25, gate_ratio=None, change=lambda lines: lines):
    """What a trial prints: 20 us a packet of the program and 10 us one of the baseline, at 2 GHz."""
    program, baseline = program or answer(finished=1000), baseline or answer(finished=2000)
    trial = {"orders": 2 * windows + 2, "warmup": 2, "gated": True, "gate_ratio": gate_ratio}
    lines = [{"trial": trial}, {"compile_ns": 1_500_000_000}]
    lines += [
        {"pipeline": name, "load_ms": 300.0, "resident_bytes": resident << 20, "path_threads": 4}
        for name, resident in (("program", 7), ("baseline", 5))
    ]
    lines.append({"load_version": 1, "ready": True, "tsc_hz": 2_000_000_000, "verified_packets": 2040})
    lines += [program, baseline] * (windows + 1)
    return JobResult(0, "".join(json.dumps(line) + "\n" for line in change(lines)), "", 9.0)


def summary(*arguments, **keywords):
    record = TARGET.parse(output(*arguments, **keywords))
    found = TARGET.summarise(record, None)
    return found, {m.metric: m.value for m in found.metrics}


def test_what_a_trial_says():
    found, values = summary()
    assert found.accepted
    assert found.flags == ()
    assert values["cycles_per_packet"] == pytest.approx(40_000)
    assert values["baseline_cycles_per_packet"] == pytest.approx(20_000)
    assert values["cost_cycles_per_packet"] == pytest.approx(20_000)
    assert values["packet_rate"] == pytest.approx(0.05)
    assert values["compile_time"] == pytest.approx(1500)
    assert values["load_time"] == pytest.approx(300)
    assert values["memory_bytes"] == 2 << 20
    assert set(TARGET.metrics) <= set(values)


def test_a_core_with_another_clock():
    slow = {
        f"device_{loop}_{when}_tsc": tsc
        for loop, tsc in (("chain", 24.0), ("mix", 6.0))
        for when in ("before", "after")
    }
    _, values = summary(answer(finished=1000, **slow), answer(finished=2000, **slow))
    assert values["tsc_cycles_per_packet"] == pytest.approx(40_000)
    assert values["cycles_per_packet"] == pytest.approx(20_000)


def test_copies_are_work_of_the_packet_and_dropped_packets_are_packets():
    _, values = summary(answer(finished=500, copies=1500, dropped=500))
    assert values["cycles_per_packet"] == pytest.approx(40_000)


@pytest.mark.parametrize(
    "change", [{"switches": 1}, {"device_switches": 2}, {"busy_us": 15_000.0}, {"device_mix_after_tsc": 4.0}], ids=str
)
def test_windows_that_do_not_count(change):
    found, _ = summary(answer(finished=1000, **change))
    assert not found.accepted
    assert {"few_windows", "low_acceptance"} <= set(found.flags)


def test_a_trial_without_real_time_says_so():
    found, _ = summary(answer(realtime=False))
    assert "no_realtime" in found.flags


def test_the_gate_ratio_is_that_of_the_windows():
    assert TARGET.undisturbed(TARGET.parse(output())).gate_ratio == pytest.approx(0.25)
    assert TARGET.undisturbed(TARGET.parse(output(gate_ratio=0.2))).gate_ratio == pytest.approx(0.25)


@pytest.mark.parametrize("kind", ["verify", "refused", "memory", "device"])
def test_errors_of_the_harness(kind):
    result = JobResult(1, json.dumps({"error": "table t has 9 entries instead of 10", "kind": kind}) + "\n", "", 1.0)
    with pytest.raises(MeasurementError, match="9 entries instead of 10") as caught:
        TARGET.parse(result)
    assert caught.value.key == kind


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[:-1],
        lambda lines: lines[1:],
        lambda lines: [line for line in lines if "ready" not in line],
        lambda lines: [line for line in lines if "pipeline" not in line],
        lambda lines: [{k: v for k, v in line.items() if k != "device_busy_us"} for line in lines],
        lambda lines: [{**line, "load_version": 9} for line in lines],
        lambda lines: [],
    ],
    ids=["an answer less", "no head", "no ready", "no pipelines", "no busy time", "another version", "nothing"],
)
def test_output_that_is_no_record(change):
    with pytest.raises(MeasurementError):
        TARGET.parse(output(change=change))


def test_a_trial_that_was_stopped():
    with pytest.raises(MeasurementError, match="stopped after 9 s"):
        TARGET.parse(replace(output(change=lambda lines: []), timed_out=True))


def test_a_window_without_packets():
    with pytest.raises(MeasurementError, match="none of 20000 packets was finished"):
        TARGET.parse(output(answer(finished=0)))
