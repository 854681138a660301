"""A device that is up for a load generator: it comes up, is looked after, and goes down, whatever happens."""

import os
import signal

import pytest
from support.sshd import alive, wait_until

from p4perf.errors import MeasurementError, TestbedError
from p4perf.targets.base import BuildPlan, Job, NodeFacts, PointPlan
from p4perf.targets.roles import Serves, Service, ServiceStep
from p4perf.testbeds.local import LocalTestbed
from p4perf.testbeds.serving import ServedDevice
from p4perf.testbeds.ssh.testbed import SshTestbed

FACTS = NodeFacts({})


class Served(Serves):
    """Does what it is told."""

    name = "served"

    def __init__(self, **services):
        super().__init__()
        self.services = services

    def service(self, plan, program, facts):
        return self.services[program]


Served.__abstractmethods__ = frozenset()  # what is not served is not asked


def step(what, script, *words):
    return ServiceStep(what, Job(("sh", "-c", script, "sh", *map(str, words)), 10.0))


def main(script, *words, ready="^up$", **more):
    return Service(main=Job(("sh", "-c", script, "sh", *map(str, words)), 10.0), ready=ready, **more)


@pytest.fixture(scope="module", params=["local", "ssh"])
def testbed(request, tmp_path_factory):
    if request.param == "local":
        yield LocalTestbed(tmp_path_factory.mktemp("cache"))
        return
    opened = SshTestbed.at(str(request.getfixturevalue("node").node_file()))
    yield opened
    opened.close()


@pytest.fixture
def device(testbed, tmp_path):
    plan = PointPlan("key", BuildPlan({}, (), ""), None, None, 0)
    return lambda **services: ServedDevice(Served(**services), plan, testbed, FACTS, tmp_path)


UP = 'echo $$ >"$1"; echo starting; echo up; exec sleep 1000'


def test_up_and_down(device, tmp_path):
    pid = tmp_path / "pid"
    log = tmp_path / "log"
    service = main(
        UP,
        pid,
        prepare=(step("first", 'echo first >>"$1"', log), step("second", 'echo second >>"$1"', log)),
        before=(step("counting before", "echo 1"),),
        during=(step("watching", "echo 2"),),
        after=(step("counting after", "echo 3"),),
        release=(step("clearing", 'echo cleared >>"$1"', log),),
    )
    with device(program=service) as served:
        served.switch("program")
        number = int(pid.read_text())
        assert alive(number)
        assert log.read_text() == "first\nsecond\n"
        served.switch("program")
        assert int(pid.read_text()) == number, "it is up already"
        with served.watched() as seen:
            assert {what: result.stdout for what, result in seen.items()} == {"counting before": "1\n"}
        assert (seen["watching"].stdout, seen["counting after"].stdout) == ("2\n", "3\n")
        assert "cleared" not in log.read_text()
    assert not alive(number)
    assert log.read_text() == "first\nsecond\ncleared\n"


def test_another_program_is_another_process(device, tmp_path):
    pids = [tmp_path / "program", tmp_path / "baseline"]
    with device(program=main(UP, pids[0]), baseline=main(UP, pids[1])) as served:
        served.switch("program")
        served.switch("baseline")
        assert not alive(int(pids[0].read_text()))
        assert alive(int(pids[1].read_text()))
        served.check()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("script", "more", "message"),
    [
        ("echo no model; exit 10", {}, "served failed to start: it ended with status 10: no model"),
        ("echo; kill -SEGV $$", {}, r"served failed to start: it died of signal 11 \(SIGSEGV\)"),
        (
            "echo error: no port; sleep 100",
            {"broken": "^error:"},
            "it says that it will not forward packets: error: no",
        ),
        ("echo waiting; sleep 100", {"ready_timeout_s": 1.0}, "it was not ready within 1 s: waiting"),
    ],
)
def test_what_does_not_come_up_is_released(device, tmp_path, script, more, message):
    log = tmp_path / "log"
    service = main(script, release=(step("clearing", 'echo cleared >"$1"', log),), **more)
    with device(program=service) as served, pytest.raises(MeasurementError, match=message):
        served.switch("program")
    assert log.read_text() == "cleared\n"


def test_it_dies_while_it_is_loaded(device, tmp_path):
    pid, log = tmp_path / "pid", tmp_path / "log"
    with device(program=main(UP, pid, release=(step("clearing", 'echo cleared >"$1"', log),))) as served:
        served.switch("program")
        os.kill(int(pid.read_text()), signal.SIGSEGV)
        wait_until(lambda: not alive(int(pid.read_text())))
        with pytest.raises(MeasurementError, match=r"served is down: it died of signal 11 \(SIGSEGV\): starting / up"):
            served.check()
    assert log.read_text() == "cleared\n"


def test_a_step_that_fails_is_named(device, tmp_path):
    log = tmp_path / "log"
    service = Service(
        prepare=(step("loading the firmware", "echo incompatible >&2; exit 3"),),
        release=(step("clearing", 'echo cleared >"$1"', log),),
    )
    message = "loading the firmware: the command ended with status 3: incompatible"
    with device(program=service) as served, pytest.raises(MeasurementError, match=message):
        served.switch("program")
    assert log.read_text() == "cleared\n"


def test_a_command_that_there_is_not(device):
    service = Service(prepare=(ServiceStep("loading", Job(("no-such-command",), 10.0)),))
    with device(program=service) as served, pytest.raises(TestbedError, match="cannot start no-such-command"):
        served.switch("program")


def test_a_device_without_a_process(device, tmp_path):
    log = tmp_path / "log"
    service = Service(
        prepare=(step("loading", 'echo loaded >"$1"', log),), release=(step("unloading", 'rm "$1"', log),)
    )
    with device(program=service) as served:
        served.switch("program")
        served.check()
        assert log.exists()
    assert not log.exists()


def test_all_is_released_though_one_step_fails(device, tmp_path):
    log = tmp_path / "log"
    release = (step("stopping", "exit 1"), step("clearing", 'echo cleared >"$1"', log))
    served = device(program=Service(release=release))
    served.switch("program")
    with pytest.raises(MeasurementError, match="stopping: the command ended with status 1"):
        served.__exit__(None, None, None)
    assert log.read_text() == "cleared\n"


def test_a_failure_is_not_hidden_by_one_of_the_release(device, tmp_path):
    log = tmp_path / "log"
    release = (step("stopping", "exit 1"), step("clearing", 'echo cleared >"$1"', log))
    served = device(program=Service(release=release))
    served.switch("program")
    with pytest.raises(MeasurementError, match="no packet"), served:
        raise MeasurementError("no packet came back")
    assert log.read_text() == "cleared\n"


def test_expressions_are_not_commands(device, tmp_path):
    """What a target looks for is data to the script."""
    odd = tmp_path / "odd"
    service = main(
        "echo 'a $(touch here) b'; exec sleep 100", ready=r"a \$\(touch here\) b", broken=f"$(touch {odd})|x'"
    )
    with device(program=service) as served:
        served.switch("program")
        served.check()
    assert not odd.exists()
