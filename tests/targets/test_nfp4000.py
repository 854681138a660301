"""Target nfp4000 without anything run: cards, flags, plans, steps, and what failures mean."""

import json

import pytest
from support.netronome import FakeCard
from support.p4_programs import CONSTRUCTS
from support.p4_programs import workload as of_program

from p4perf.errors import CapabilityError, MeasurementError
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.targets import nfp4000 as steps
from p4perf.targets.base import Job, JobResult, NodeFacts
from p4perf.targets.nfp4000 import BUILD_TIMEOUT_S, MAX_ENTRIES, Nfp4000Target, card_of
from p4perf.targets.roles import ServiceStep, is_served, measuring

TARGET = Nfp4000Target()


@pytest.fixture
def facts(tmp_path):
    return FakeCard(tmp_path).facts


def table(**parameters):
    return build_workload([("match_action_table", {"entries": 100, **parameters})], frame_size_bytes=128)


def plan(facts, workload=None, traffic=None, target=TARGET, **more):
    return target.plan(workload or table(), traffic or TrafficPlan(128), facts(**more))


def flags(planned):
    (command,) = planned.build.commands
    return command[command.index("sh", 1) + 1 :]


# The card -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "platform", "stride"),
    [
        ("lithium", "lithium", 1),
        ("beryllium", "beryllium", 4),
        ("starfighter1.0", "starfighter1", 1),
        ("AMDA0096-0001", "lithium", 1),
        ("AMDA0081-0001-07", "hydrogen", 4),
    ],
)
def test_the_platform_of_a_card(model, platform, stride):
    card = card_of(NodeFacts({"nfp_model": model}))
    assert (card.platform, card.port_stride) == (platform, stride)
    assert card.flags[-2:] == ("-l", platform)
    assert ("--sku" in card.flags) == model.startswith("AMDA")


def test_a_card_that_is_not_known(facts):
    assert plan(facts, nfp_model=None, nfp_partno="AMDA0096-0001").build.key != plan(facts).build.key
    with pytest.raises(CapabilityError, match=r"unknown card 'Alveo' .*supported: lithium, "):
        plan(facts, nfp_model="Alveo")
    (problem,) = TARGET.problems(facts(nfp_model="Alveo"))
    assert problem.fatal


def test_what_is_missing(facts):
    assert TARGET.problems(facts()) == ()
    found = TARGET.problems(NodeFacts({}))
    assert [p.what.split(":")[0] for p in found] == ["no nfp4build", "no rtecli", "no Agilio CX"]
    assert all(p.fatal and p.hint for p in found)


# The build ------------------------------------------------------------------------------------------------------------


def test_the_command_of_a_build(facts):
    planned = plan(facts)
    words = " ".join(flags(planned))
    tool = facts().text("tool_nfp4build")
    assert words.startswith(f"{tool} -o firmware.nffw -p out -4 program.p4 -l lithium --nfp4c_p4_version 16 ")
    assert "--nfp4c_p4_compiler p4c-nfp --no-debug-info" in words
    assert "--no-reduced-thread-usage --no-shared-codestore" in words
    sdk = tool.removesuffix("/bin/nfp4build")
    include = f"{sdk}/components/flowcache/me/lib/flowcache"
    assert words.endswith(f"--disable-component flowcache -D PIF_GLOBAL_FLOWCACHE_DISABLED -I {include}")
    assert planned.build.product == "firmware.nffw"
    assert planned.build.timeout_s == BUILD_TIMEOUT_S > 300


@pytest.mark.parametrize(
    ("variant", "there", "gone"),
    [
        ("flowcache", "", "flowcache"),
        ("reduced-threads", "--reduced-thread-usage", "--no-reduced-thread-usage"),
        ("shared-codestore", "--shared-codestore", "--no-shared-codestore"),
    ],
)
def test_variants_are_other_builds_and_other_points(facts, variant, there, gone):
    plain, other = plan(facts), plan(facts, target=Nfp4000Target([variant]))
    assert there in ("", *flags(other))
    assert gone in " ".join(flags(plain))
    assert gone not in " ".join(flags(other)).replace(there or "\0", "").split()
    assert "flowcache" not in " ".join(flags(other)) or variant != "flowcache"
    assert (other.key, other.build.key) != (plain.key, plain.build.key)
    assert other.key != plain.key


def test_equal_programs_share_a_build_and_others_do_not(facts):
    first = plan(facts)
    assert plan(facts).key == first.key
    assert first.build.files["program.p4"].startswith("#include <core.p4>"), "names and versions change no firmware"
    same = plan(facts, traffic=TrafficPlan(128, hit_ratio=0.5))
    assert same.key != first.key
    assert same.build.key == first.build.key
    assert plan(facts, table(entries=200)).build.key != first.build.key, "the size of a table is part of the firmware"
    for change in ({"nfp_model": "carbon"}, {"nfp4build_checksum": "3-4"}, {"nfp_sdk_version": "6.2"}):
        assert plan(facts, **change).build.key != first.build.key
        assert plan(facts, **change).key != first.key


def test_limits_name_their_source(facts):
    with pytest.raises(CapabilityError, match="262,145 exact entries are more than the 262,144 that nfp4000 takes"):
        plan(facts, table(entries=MAX_ENTRIES + 1))
    with pytest.raises(CapabilityError, match="nfp4000 has no multicast: its standard_metadata has no mcast_grp"):
        plan(facts, of_program(CONSTRUCTS["multicast"]))


def test_there_are_no_trials(facts):
    with pytest.raises(CapabilityError, match="by a load generator outside only"):
        measuring(TARGET)
    assert is_served(TARGET, facts())


# The service ----------------------------------------------------------------------------------------------------------


def service(facts, workload=None, program="program", **more):
    return TARGET.service(plan(facts, workload, **more), program, facts(**more))


def words_of(step):
    return list(step.job.argv[2:] if step.job.argv[0] == "sh" else step.job.argv)


def test_the_steps(facts):
    rtecli = facts().text("tool_rtecli")
    found = service(facts)
    assert found.main is None
    assert [words_of(step) for step in found.prepare] == [
        ["status", rtecli, "/var/log/nfp-sdk6-rte.log"],
        ["unload", rtecli],
        ["load", rtecli, "{build}", "{folder}/rules.p4cfg"],
        ["ports", rtecli, "p1"],
        [rtecli, "counters", "clear-all-system"],
    ]
    assert [words_of(step)[1:] for step in found.before] == [["{build}"], ["counters", "list-system"]]
    assert [words_of(step)[1:] for step in found.after] == [["counters", "list-system"]]
    assert [words_of(step) for step in found.release] == [["unload", rtecli]]
    rules = json.loads(found.prepare[2].job.files["rules.p4cfg"])
    ((name, content),) = rules["tables"].items()
    assert name.startswith("MainIngress::")
    assert len(content["rules"]) == 100
    assert (rules["registers"], rules["meters"], rules["multicast"]) == ({"configs": []}, {"configs": []}, {})


def test_a_baseline_without_tables_has_no_rules(facts):
    found = service(facts, program="baseline")
    load = found.prepare[2]
    assert words_of(load)[0] == "load"
    assert words_of(load)[-1] == "{build}"
    assert "rules.p4cfg" not in load.job.files
    assert load.job.build.key != service(facts).prepare[2].job.build.key


def test_more_rules_may_take_longer(facts):
    few, many = (service(facts, table(entries=n)).prepare[2].job.timeout_s for n in (10, 100_000))
    assert many >= few + 900


def test_ports_of_40_gigabit_are_four_channels_apart(facts):
    found = service(facts, nfp_model="beryllium")
    assert words_of(found.prepare[3])[-1] == "p4"
    rules = json.loads(found.prepare[2].job.files["rules.p4cfg"])
    ((_, content),) = rules["tables"].items()
    assert all(rule["action"]["data"]["port"]["value"] == "p4" for rule in content["rules"])
    baseline = TARGET.service(plan(facts, nfp_model="beryllium"), "baseline", facts(nfp_model="beryllium"))
    assert "egress_spec = (nfp_port_t)16w4;" in baseline.prepare[2].job.build.files["program.p4"]


def test_interfaces_of_the_node_file_are_watched(facts):
    named = {"interface_left": "0000:03:00.0", "interface_evil": "; reboot", "interface_-x": "0000:03:00.1"}
    found = service(facts, **named)
    assert [words_of(step) for step in found.after][1] == ["interfaces", "/sys", "left=0000:03:00.0"]
    assert found.before[1].what != found.after[1].what
    assert words_of(found.before[-1]) == words_of(found.after[0]), "counters are what is read next to the trial"


# Failures -------------------------------------------------------------------------------------------------------------


def judged(what, returncode=1, stderr="", **more):
    with pytest.raises(MeasurementError) as caught:
        TARGET.check_step(ServiceStep(what, Job(("x",), 1.0)), JobResult(returncode, "", stderr, 3.0, **more))
    return caught.value


@pytest.mark.parametrize(
    ("what", "result", "message", "hint", "key"),
    [
        (
            steps.REACHING,
            {"stderr": "error: x\n[E] Incompatible firmware detected, use 'nfp-nffw unload -n 0 ' to unload"},
            "holds a firmware that the runtime does not know",
            "nfp-nffw unload -n 0",
            None,
        ),
        (
            steps.LOADING,
            {"stderr": "error: design load in progress"},
            "somebody else is loading",
            "rtecli status",
            None,
        ),
        (
            steps.REACHING,
            {"stderr": "error: Could not connect to localhost:20206"},
            "the runtime does not answer",
            "systemctl start nfp-sdk6-rte",
            None,
        ),
        (steps.REACHING, {"returncode": 124}, "the runtime does not answer", "systemctl start", None),
        (steps.LOADING, {"timed_out": True, "returncode": -9}, "was stopped after 3 s", "systemctl start", None),
        (
            steps.LOADING,
            {"stderr": "error: table MainIngress::x not found in design"},
            "ended with status 1: error: table MainIngress::x not found",
            "nfp-sdk6-rte.log",
            "refused",
        ),
        (steps.PORTS, {"stderr": "error: the program sends by port p1, and the card has p0"}, "p1", "", "refused"),
        (steps.CLEARING, {"stderr": "error: no design loaded"}, "no design loaded", None, None),
        (steps.BUILT, {"timed_out": True, "returncode": -9}, "was stopped after 3 s", None, None),
        (steps.CLEARING, {"returncode": 0, "stderr": "error: no"}, "it complained: error: no", None, None),
    ],
)
def test_what_failures_mean(what, result, message, hint, key):
    failure = judged(what, **result)
    assert failure.message.startswith(f"{what}: ")
    assert message in failure.message
    assert hint is None or hint in failure.hint
    assert failure.key == key


def test_a_step_that_went_well():
    TARGET.check_step(ServiceStep(steps.LOADING, Job(("x",), 1.0)), JobResult(0, "loaded", "warning: errors: 0", 1.0))
