"""The diagnosis of a machine, from facts and calibrations that are made up."""

import pytest

from p4perf.results.manifest import NodeFacts, cpu_list
from p4perf.testbeds.health import TOOLS, environment_checks, noise_checks, setting_checks, tool_checks

GOOD = {
    "realtime": "yes",
    "hugepages_free": "10",
    "hugepages_total": "20",
    "hugepage_bytes": str(2 << 20),
    "autogroup": "0",
    "governor": "performance",
    "turbo_off": "1",
    "smt": "off",
    "user": "0",
    "isolated_cpus": "3",
}


def by_name(checks):
    return {c.check: c for c in checks}


def calibration(cpu=0, slow=0, clock=12.0, drift=0.0, floor=0.25):
    """101 quantiles of which the ``slow`` uppermost are disturbed."""
    ratio = [floor] * (101 - slow) + [2 * floor] * slow
    chain = [clock] * 50 + [clock * (1 + drift)] * 51
    return {"cpu": cpu, "gate_ratio": ratio, "chain_tsc": chain, "tsc_hz": 2e9, "longest_sample_us": 33.3}


def test_a_quiet_machine_has_no_warnings():
    checks = [*setting_checks(NodeFacts(GOOD)), *noise_checks([calibration()], 0.0)]
    assert {c.state for c in checks} <= {"ok", "info"}
    assert all(not c.advice for c in checks if c.state == "ok")


@pytest.mark.parametrize(
    ("fact", "value", "check"),
    [
        ("realtime", "no", "real-time scheduling"),
        ("hugepages_free", "0", "hugepages"),
        ("autogroup", "1", "scheduler autogroup"),
        ("governor", "powersave", "frequency governor"),
        ("turbo_off", "0", "turbo"),
        ("smt", "on", "hyperthreading"),
        ("user", "1000", "user"),
    ],
)
def test_a_setting_that_disturbs_is_a_warning_with_advice(fact, value, check):
    found = by_name(setting_checks(NodeFacts({**GOOD, fact: value})))
    assert found[check].state == "warning"
    assert found[check].advice
    assert [c.check for c in found.values() if c.state == "warning"] == [check]


def test_unknown_facts_are_no_defects():
    checks = setting_checks(NodeFacts({}))
    assert all(c.value for c in checks)
    assert by_name(checks)["frequency governor"].state == "ok"


def test_tools():
    checks = tool_checks(NodeFacts({"cc_version": "cc 12"}))
    assert len(checks) == len(TOOLS) + 1
    found = by_name(checks)
    assert (found["C compiler"].state, found["C compiler"].value) == ("ok", "cc 12")
    assert found["DPDK"].state == "missing"
    assert found["DPDK"].advice.startswith("apt")
    assert checks[0].value == "p4c missing; JSON of p4c-bm2-ss works without it"
    assert "p4lang-p4c" in checks[0].advice


def test_a_neighbour_on_the_core_is_told_for_each_cpu():
    found = by_name(noise_checks([calibration(0), calibration(1, slow=60)], None))
    assert found["CPU 0: share of undisturbed samples"].state == "ok"
    disturbed = found["CPU 1: share of undisturbed samples"]
    assert (disturbed.state, disturbed.value) == ("warning", "41 %")


def test_a_cpu_that_is_never_undisturbed_is_judged_by_the_others():
    found = by_name(noise_checks([calibration(0), calibration(1, floor=0.5)], None))
    assert found["CPU 1: share of undisturbed samples"].value == "0 %"


def test_the_core_clock():
    found = by_name(noise_checks([calibration(0, clock=8.0), calibration(1, drift=0.2)], None))
    assert found["CPU 0: core clock"].state == "ok"
    assert found["CPU 0: core clock"].value.startswith("3.00 GHz")
    assert found["CPU 1: core clock"].state == "warning"


@pytest.mark.parametrize(("steal", "state"), [(0.0, "ok"), (0.2, "warning")])
def test_stolen_time(steal, state):
    assert by_name(noise_checks([], steal))["stolen CPU time"].state == state


def test_unknown_steal_is_left_out():
    assert noise_checks([], None) == []


CONTROLLED = {**GOOD, "measuring_cpu": "3", "irqs": "40", "irqs_there": "0"}


def test_a_controlled_environment():
    checks = environment_checks(NodeFacts(CONTROLLED))
    assert [(c.check, c.state, c.advice) for c in checks] == [
        ("dedicated core", "ok", ""),
        ("interrupts", "ok", ""),
        ("constant frequency", "ok", ""),
    ]


@pytest.mark.parametrize(
    ("fact", "value", "check", "said"),
    [
        ("isolated_cpus", "0-2", "dedicated core", "bound to CPU 3, shared with other processes"),
        ("irqs_there", "2", "interrupts", "2 of 40 interrupts go to CPU 3"),
        ("governor", "powersave", "constant frequency", "governor powersave, turbo off"),
        ("turbo_off", "0", "constant frequency", "governor performance, turbo on"),
    ],
)
def test_a_control_that_is_not_there(fact, value, check, said):
    checks = environment_checks(NodeFacts({**CONTROLLED, fact: value}))
    (found,) = [c for c in checks if c.state == "warning"]
    assert (found.check, found.value) == (check, said)
    assert found.advice


def test_a_machine_that_does_not_let_one_look():
    assert {(c.state, c.value) for c in environment_checks(NodeFacts({}))} == {
        ("info", "not under control of this system")
    }


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("", []), ("3", [3]), ("0,2-4", [0, 2, 3, 4]), ("x,1-,5-4", [1]), ("-", []), ("0-99999999999,²,1-²,7", [7])],
)
def test_lists_of_cpus(text, cpus):
    assert cpu_list(text) == cpus


@pytest.mark.parametrize(("text", "number"), [("12", 12), ("-3", -3), ("²", None), ("9" * 5000, None), ("--3", None)])
def test_numbers(text, number):
    assert NodeFacts({"cpus": text}).number("cpus") == number
