"""t4p4s on network interfaces, against a stand-in for its script and for perf."""

import os
import shutil
import time
from pathlib import Path

import pytest
from support.t4p4s import EGRESS, INGRESS, FakeT4P4S, tree, write

from p4perf.errors import BuildError, CapabilityError, ExitCode, MeasurementError
from p4perf.generators.p4.t4p4s import CAPABILITIES
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.targets.base import JobResult, NodeFacts
from p4perf.targets.counters import EVENTS, not_counted, perf_counts, perf_job
from p4perf.targets.roles import Serves, ServiceStep
from p4perf.targets.t4p4s_service import (
    CHECKING,
    COMPILE_CODES,
    COMPILING,
    COUNTING,
    RUN_CODES,
    STOPPING,
    CoreMap,
    ServedT4P4S,
    addresses,
    build_plan,
    checkout_of,
    core_map,
    meaning,
    script,
)
from p4perf.testbeds.local import LocalTestbed
from p4perf.testbeds.processes import run_command
from p4perf.testbeds.serving import ServedDevice
from p4perf.testbeds.ssh.testbed import SshTestbed


class Device(ServedT4P4S):
    """The mixin with what the contract asks for besides."""

    name = "t4p4s-test"
    summary = "for tests"
    metrics = ()

    def problems(self, facts):
        return self.served_problems(facts)

    def plan(self, workload, traffic, facts):
        return self.served_plan(workload, traffic, facts)


class Node(FakeT4P4S):
    """That machine with a testbed."""

    def __init__(self, folder, monkeypatch):
        super().__init__(folder, monkeypatch)
        self.testbed = LocalTestbed(folder / "cache")
        self.points = folder / "points"
        self.points.mkdir()

    def facts(self, **changes):
        values = {
            **self.known,
            "tool_perf": "/usr/bin/perf",
            "cores": "1,2,3",
            "interface_ingress": INGRESS,
            "interface_egress": EGRESS,
            "load_generator": "moongen",
            "cpu_model": "Intel(R) Xeon(R)",
        }
        return NodeFacts({k: v for k, v in {**values, **changes}.items() if v is not None})

    def device(self, lcores=1, **changes):
        made = type("Device", (Device,), {"lcores": lcores, "sysfs": str(self.folder / "sys")})()
        facts = self.facts(**changes)
        return ServedDevice(made, made.plan(WORKLOAD, TRAFFIC, facts), self.testbed, facts, self.points)


TRAFFIC = TrafficPlan(128)
WORKLOAD = build_workload([("match_action_table", {"entries": 4})], frame_size_bytes=128)


@pytest.fixture
def node(tmp_path, monkeypatch):
    monkeypatch.setattr("p4perf.targets.t4p4s_service.SETTLE_S", 0.0)
    monkeypatch.setattr("p4perf.targets.t4p4s_service.PERF_S", 0.2)
    return Node(tmp_path, monkeypatch)


def left_of(node):
    """Processes that still work somewhere below the folder of the node."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(node.folder):
                found.append((process / "cmdline").read_bytes())
        except OSError:
            continue
    return found


def wait_for(device):
    """Until it is down, for ten seconds."""
    for _ in range(100):
        device.check()
        time.sleep(0.1)


PORTS = "-- lcoreid=0 portid=1 rxqueueid=0"
"""A line that the switch prints after the one that says that it is ready."""


def wait_for_ports(node, switches):
    """Until the logs of so many switches tell their ports, for ten seconds."""
    for _ in range(100):
        logs = [log.read_text() for log in (node.folder / "cache/builds").glob("*/build/last/log/last.lit.txt")]
        if sum(PORTS in log for log in logs) == switches:
            return
        time.sleep(0.1)


def test_a_switch_comes_up_is_counted_and_goes_down(node):
    before = tree(node.checkout)
    with node.device() as device:
        device.switch("program")
        device.check()
        wait_for_ports(node, 1)
        with device.watched() as results:
            pass
        assert sum(words.startswith(b"sleep") for words in left_of(node)) == 1
        assert set(perf_counts(results[COUNTING].stderr)) == set(EVENTS)
        device.switch("baseline")
        device.check()
        wait_for_ports(node, 2)
        copies = {p.parent.name: p.parent for p in (node.folder / "cache/builds").glob("*/compiled.log")}
        assert len(copies) == 2
    assert left_of(node) == []
    assert tree(node.checkout) == before, "the checkout is only read"
    logs = [copy / "build/last/log/last.lit.txt" for copy in copies.values()]
    assert all("P4_FWD: entering main loop on lcore 0\n" in log.read_text() for log in logs)
    assert all(PORTS in log.read_text() for log in logs)


@pytest.mark.thorough
def test_the_same_on_a_node_that_is_reached_by_ssh(node, new_node):
    remote = new_node("dut", f"SetEnv PATH={os.environ['PATH']}")
    node.testbed = SshTestbed.at(str(remote.node_file()))
    try:
        with node.device() as device:
            device.switch("program")
            with device.watched() as results:
                pass
            assert set(perf_counts(results[COUNTING].stderr)) == set(EVENTS)
            device.check()
            (running,) = [words for words in left_of(node) if words.startswith(b"sleep")]
            assert running == b"sleep\x001000\x00"
        node.fakes("slice")
        with node.device(t4p4s_commit="1") as device, pytest.raises(MeasurementError, match="leaves out") as caught:
            device.switch("program")
        assert caught.value.key == "refused"
    finally:
        node.testbed.close()
    assert not [words for words in left_of(node) if words.startswith(b"sleep")]


def test_what_the_switch_is_told(node):
    with node.device(lcores=2) as device:
        device.switch("program")
        called = next(words for words in left_of(node) if b"./t4p4s.sh" in words)
    words = called.decode().rstrip("\0").split("\0")
    assert words[words.index("./t4p4s.sh") :] == [
        "./t4p4s.sh", "program.p4", "model=v1model", "ctr=off", "hugepages=keep", "bw", "light=0",
        "cores=2", "ports=2x2", "run",
    ]  # fmt: skip
    (options,) = (node.folder / "cache/builds").glob("*/opts_p4perf.cfg")
    kept = options.read_text().splitlines()
    assert "variant=std -> include-hdrs += dpdk_nicon.h" in kept
    assert [line.partition(" -> ")[2] for line in kept if line.startswith(("cores=", "ports="))] == [
        f"ealopts += --lcores 0@1,1@2 -n 4 -a {INGRESS} -a {EGRESS} --file-prefix p4perf --huge-unlink",
        "cmdopts += -p 0x3 --config (0,0,0),(0,1,1),(1,0,0),(1,1,1)",
    ]


def test_an_equal_program_is_compiled_once(node):
    for _ in range(2):
        with node.device() as device:
            device.switch("baseline")
    (log,) = (node.folder / "cache/builds").glob("*/compiled.log")
    assert not (log.parent / "src").exists(), "sources are not kept for every program"
    assert len(list(log.parent.glob("build/last/log/2*_*.txt"))) <= 2, "nor are the logs of every start"
    node.fakes("ninja")
    with node.device() as device:
        device.switch("baseline")
    with node.device(t4p4s_commit="another") as device, pytest.raises(MeasurementError, match="too few arguments"):
        device.switch("baseline")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("fake", "key", "message"),
    [
        (
            "slice",
            "refused",
            "leaves out a part of the program: Warning: while Compiling assignment: Assignment to slice",
        ),
        ("underscore", "refused", "Underscore entry for const entry for table t_0 not supported yet"),
        ("p4-error", "refused", "refuses the program: Error: while formatting statement"),
        ("traceback", "refused", "refuses the program: TypeError: 'float' object"),
        ("meson", None, 'meson failed, and t4p4s went on: .* ERROR: Dependency "libdpdk" not found'),
        ("ninja", "refused", "its C does not compile: .* too few arguments"),
        ("link", "refused", "its C does not compile: ld.lld: error: undefined symbol: externimpl_resubmit"),
        ("disk", None, "the disk of the node is full"),
        ("no-switch", None, r"it made no switch \(status 0\)"),
    ],
)
def test_what_goes_wrong_when_it_is_compiled(node, fake, key, message):
    node.fakes(fake)
    with node.device() as device, pytest.raises(MeasurementError, match=message) as caught:
        device.switch("program")
    assert caught.value.key == key
    assert caught.value.message.startswith(f"{COMPILING}: ")
    assert left_of(node) == []


@pytest.mark.parametrize(
    ("fake", "message"),
    [
        ("mbuf", "Cause: Cannot init mbuf pool on socket 0"),
        ("segfault", r"t4p4s: the switch had a segmentation fault \(status 139\)"),
        ("ends", r"t4p4s: the switch ended by itself, or was never started \(status 0\)"),
    ],
)
def test_what_goes_wrong_when_it_starts(node, fake, message):
    def come_up():
        device.switch("program")
        wait_for(device)

    node.fakes(fake)
    with node.device() as device, pytest.raises(MeasurementError, match=message):
        come_up()
    assert left_of(node) == []


def test_a_switch_that_is_never_ready(node, monkeypatch):
    monkeypatch.setattr("p4perf.targets.t4p4s_service.READY_S", 1.0)
    node.fakes("silent")
    with node.device() as device, pytest.raises(MeasurementError, match="not ready within 1 s"):
        device.switch("program")
    assert left_of(node) == []


def test_a_switch_that_dies_under_load(node):
    node.fakes("dies")
    with node.device() as device:
        device.switch("program")
        with pytest.raises(MeasurementError, match=r"is down: .*segmentation fault \(status 139\)"):
            wait_for(device)
    assert left_of(node) == []


def test_a_compiler_that_hangs(node, monkeypatch):
    monkeypatch.setattr("p4perf.targets.t4p4s_service.COMPILE_S", 1.0)
    node.fakes("compile-hangs")
    with node.device() as device, pytest.raises(MeasurementError, match="was stopped after 1 s"):
        device.switch("program")
    assert left_of(node) == []


def remove(path):
    def do(node):
        shutil.rmtree(node.folder / path) if (node.folder / path).is_dir() else (node.folder / path).unlink()

    return do


def unbind(node):
    link = node.folder / "sys/bus/pci/devices" / EGRESS / "driver"
    link.unlink()
    link.symlink_to("../../drivers/ixgbe")


def spend(node):
    write(node.folder / "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "3\n")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (remove("t4p4s/src/hlir16"), "a submodule of t4p4s: git submodule update --init"),
        (remove("t4p4s/opts_dpdk.cfg"), "opts_dpdk.cfg, of the checkout of t4p4s"),
        (remove("p4c/build/p4test"), "the compiler that t4p4s calls"),
        (remove(f"sys/bus/pci/devices/{INGRESS}"), f"a network interface at {INGRESS}"),
        (unbind, f"a driver for DPDK at {EGRESS}, which has ixgbe"),
        (spend, "512 MiB in free hugepages, there are 6 MiB"),
    ],
)
def test_what_the_node_lacks(node, spoil, message):
    spoil(node)
    with node.device() as device, pytest.raises(MeasurementError) as caught:
        device.switch("program")
    assert caught.value.message.startswith(f"{CHECKING}: it lacks ")
    assert message in caught.value.message
    assert not (node.folder / "cache/builds").exists(), "nothing was copied"


def test_a_folder_that_the_script_would_not_quote(node):
    node.testbed = LocalTestbed(node.folder / "my cache")
    with node.device() as device, pytest.raises(BuildError, match="does not quote paths"):
        device.switch("program")


def test_the_environment_of_the_login_shell_is_nothing_to_it(node, monkeypatch):
    elsewhere = node.folder / "elsewhere"
    for name in ("T4P4S_BUILD_DIR", "T4P4S_LOG_DIR", "T4P4S_COMPILE_DIR", "EXAMPLES_CONFIG_FILE", "CFGFILES"):
        monkeypatch.setenv(name, str(elsewhere))
    with node.device() as device:
        device.switch("program")
    assert not elsewhere.exists()


def test_perf_without_access(node, monkeypatch):
    monkeypatch.setenv("FAKE_PERF", "forbidden")
    with node.device() as device:
        device.switch("baseline")
        with pytest.raises(MeasurementError, match="operations is limited") as caught, device.watched():
            pass
    assert "perf_event_paranoid" in caught.value.hint


# What the stand-in is: the script itself, as a user calls it.


@pytest.mark.parametrize(
    ("words", "environment", "code", "said"),
    [
        (["prog.p4"], {}, 10, "Cannot find model"),
        (["prog.p4", "model=v1model"], {"P4C": ""}, 0, "Error: $P4C not defined"),
        (["prog.p4", "model=v1model"], {"RTE_SDK": ""}, 0, "Error: $RTE_SDK not defined"),
        (["model=v1model"], {}, 0, "Error: No example to run"),
        ([":absent"], {}, 0, "Could not find P4 file for absent"),
        (["prog.p4", "model=v1model", "ctr=off", "cores=1", "ports=1x2"], {}, 1, "Cause: check_port_config failed"),
        (["prog.p4", "model=v1model", "ctr=off", "cores=1"], {}, 0, "lcore 0 has nothing to do"),
        (["prog.p4", "model=v1model", "ctr=l2fwd"], {}, 2, "Controller compilation failed"),
        ([":prog", "model=v1model", "p4"], {"P4_SRC_DIR": "."}, 0, "[COMPILE  P4-16] ./prog.p4@std"),
        (["prog.p4", "model=v1model", "what ever", "p4"], {}, 0, "Cannot parse option what ever"),
    ],
)
def test_the_stand_in_ends_as_the_script_does(node, words, environment, code, said):
    write(node.checkout / "prog.p4", "")
    p4c = {"P4C": str(node.folder / "p4c"), "RTE_SDK": "/usr"}
    values = {k: v for k, v in {**os.environ, **p4c, **environment}.items() if v}
    argv = ("env", "-i", *(f"{k}={v}" for k, v in values.items()), "./t4p4s.sh", *words)
    result = run_command(argv, 20.0, node.checkout)
    text = (result.stdout + result.stderr).replace("\x1b[0m", "")
    assert (result.returncode, said in text) == (code, True), text


# Maps and facts.


def test_maps_of_cores_and_ports():
    one, two = CoreMap((5,)), CoreMap((2, 7))
    assert (one.eal_lcores, one.port_mask, one.triples) == ("0@5", "0x3", "(0,0,0),(1,0,0)")
    assert one.options == ("cores=1", "ports=1x2")
    assert (two.eal_lcores, two.triples) == ("0@2,1@7", "(0,0,0),(0,1,1),(1,0,0),(1,1,1)")
    eight = CoreMap(tuple(range(8, 16)))
    assert len(set(eight.queues)) == 16
    assert {lcore for _, _, lcore in eight.queues} == set(range(8)), "transmit queues are those of lcores 0 to 7"
    assert all(sum(port == p for port, _, _ in eight.queues) == 8 for p in (0, 1))


@pytest.mark.parametrize(
    ("cores", "lcores", "message"),
    [
        ("1", 2, "needs 2 cores of its own, and the node file names 1"),
        ("", 1, "needs 1 core of its own, and the node file names none"),
        ("1,x", 1, "is no list of CPUs"),
        ("1,1", 2, "is no list of CPUs"),
        (",".join(map(str, range(200))), 200, "reads no map of 200 cores"),
    ],
)
def test_cores_that_are_not_there(cores, lcores, message):
    with pytest.raises(CapabilityError, match=message) as caught:
        core_map(NodeFacts({"cores": cores}), lcores)
    assert caught.value.key == "cores"


@pytest.mark.parametrize(
    ("ingress", "egress", "message"),
    [
        (None, EGRESS, "the node file names no interface ingress"),
        (INGRESS, "eth0; reboot", "is no PCI address"),
        (EGRESS, INGRESS, "must come before egress"),
        (INGRESS, INGRESS, "must come before egress"),
    ],
)
def test_interfaces_that_are_not_there(ingress, egress, message):
    named = {"interface_ingress": ingress, "interface_egress": egress}
    with pytest.raises(CapabilityError, match=message):
        addresses(NodeFacts({k: v for k, v in named.items() if v is not None}))


@pytest.mark.parametrize("path", ["", "t4p4s", "/opt/t4 p4s", "/opt/../t4p4s", "/opt/$(reboot)", "/opt/t;p"])
def test_paths_that_are_not_taken(path):
    with pytest.raises(CapabilityError) as caught:
        checkout_of(NodeFacts({"tool_t4p4s": path}))
    assert caught.value.key == "tool_t4p4s"


def test_facts_that_change_a_switch_change_its_build(node):
    def key(**changes):
        return build_plan("program", "// P4", node.facts(**changes), 1).key

    assert key() == key(cpu_ghz="2.0")
    different = [
        {"t4p4s_commit": "1"},
        {"cores": "2,3"},
        {"dpdk_version": "22.03"},
        {"interface_egress": "0000:04:00.0"},
    ]
    assert len({key(), *(key(**change) for change in different)}) == 5


def test_problems_tell_what_the_facts_lack(node):
    assert Device().problems(node.facts()) == ()
    (problem,) = Device().problems(node.facts(tool_perf=None))
    assert (problem.fatal, "perf" in problem.what) == (False, True)
    assert Device().problems(node.facts(tool_perf=None, cpu_ghz="2.0")) == ()
    found = Device().problems(NodeFacts({"tool_perf": "/usr/bin/perf"}))
    assert [problem.fatal for problem in found] == [True] * 4
    assert all(problem.hint for problem in found)


def test_it_is_served_from_outside_only(node):
    assert Device().is_served(node.facts())
    assert not Device().is_served(node.facts(load_generator=None))
    assert not Device().is_served(node.facts(load_generator="native"))


def test_plans(node):
    plan = Device().plan(WORKLOAD, TRAFFIC, node.facts())
    assert plan.build.files["program.p4"].count("egress_port") >= 1
    assert Device().plan(WORKLOAD, TRAFFIC, node.facts(t4p4s_commit="1")).key != plan.key
    with pytest.raises(CapabilityError, match="at most 1518 B"):
        Device().plan(WORKLOAD, TrafficPlan(4000), node.facts())
    big = build_workload([("match_action_table", {"entries": 1025})], frame_size_bytes=128)
    with pytest.raises(CapabilityError, match="1,025 exact entries are more than the 1,024"):
        Device().plan(big, TRAFFIC, node.facts())


def test_without_perf_nothing_is_counted(node):
    device = Device()
    service = device.service(device.plan(WORKLOAD, TRAFFIC, node.facts()), "program", node.facts(tool_perf=None))
    assert service.during == ()
    assert [step.what for step in service.prepare] == [CHECKING, STOPPING, COMPILING]
    assert service.release[0].job.build is None, "going down needs nothing that could fail"


# Exit codes and messages.


def test_every_exit_code_means_something():
    for codes in (COMPILE_CODES, RUN_CODES):
        assert all(meaning(status, codes) for status in range(256))
    assert meaning(139, RUN_CODES) == "the switch had a segmentation fault"
    assert meaning(139, COMPILE_CODES) == "it died of signal 11 (SIGSEGV)"
    assert all(f"{code}) meaning='{text}'" in script("run.sh") for code, text in RUN_CODES.items())


@pytest.mark.parametrize(
    ("status", "said", "key", "message"),
    [
        (0, "[COMPILE SWITCH]\np4perf: there is a switch\n", "", ""),
        (0, "a.p4: warning: not supported\n[COMPILE SWITCH]\nnot implemented\np4perf: there is a switch\n", "", ""),
        (0, "Error: $P4C not defined\n", None, r"it made no switch \(status 0\): Error: \$P4C not defined"),
        (3, "a.p4(7): [--Werror=type-error] error: no such field\n", "refused", r"refuses the program: a.p4\(7\)"),
        (3, "Killed\n", None, r"the compiler from P4 to C failed \(status 3\): Killed"),
        (3, "ModuleNotFoundError: No module named 'x'\nError: P4 to C compilation failed\n", None,
            r"failed \(status 3\): ModuleNotFoundError: No module"),
        (10, "Error: Cannot find model\n", None, r"architecture model \(status 10\): Error: Cannot find"),
        (254, "Interrupted, exiting...\n", None, r"it was interrupted \(status 254\)"),
        (1, "[COMPILE SWITCH]\np4perf: the end of 20_meson.txt\nNo module named mesonbuild\n"
            "p4perf: the end of 22_ninja.txt\nninja: error: loading 'build.ninja': No such file\n", None,
            "meson failed, and t4p4s went on: No module named mesonbuild"),
        (1, "", None, r"ninja failed, or meson did and t4p4s went on \(status 1\): it said nothing"),
    ],
)  # fmt: skip
def test_outcomes_of_compiling(status, said, key, message):
    step = ServiceStep(COMPILING, perf_job([1], 1.0))
    result = JobResult(status, said, "", 1.0)
    if key == "":
        return Device().check_step(step, result)
    with pytest.raises(MeasurementError, match=message) as caught:
        Device().check_step(step, result)
    assert caught.value.key == key
    assert caught.value.exit_code == ExitCode.INVALID_MEASUREMENT
    return None


# perf and what is calculated of it.

PRINTED = """# started on Mon

1000000,,r08d1,2000000000,100.00,,
<not counted>,,r10d1,0,100.00,,
400000,,r20d1,1000000000,50.00,,
4000000000,,cycles,2000000000,100.00,,
17,,branches,2000000000,100.00,,
nonsense,,cycles:u,x,100.00,,
"""


def test_counts_of_perf():
    assert perf_counts(PRINTED) == {
        "r08d1": (1_000_000, 2.0), "r20d1": (400_000, 2.0), "cycles": (4_000_000_000, 2.0)
    }  # fmt: skip
    assert not_counted(PRINTED) == ("r10d1",)
    assert perf_counts("") == {}
    for damaged in (
        "-5,,cycles,20,100.00,,",
        "5,,cycles,0,100.00,,",
        "5,,cycles,20,nan,,",
        "5,,cycles,20,0.00,,",
        "5,,cycles",
    ):
        assert perf_counts(damaged) == {}


def test_the_command_of_perf():
    words = perf_job([1, 2], 2.0).argv
    assert words[2:] == ("perf", "stat", "-C", "1,2", "-x,", "-e", "r08d1,r10d1,r20d1,cycles", "--", "sleep", "2")


def evidence(cycles=4e9, misses=400_000, seconds=2.0):
    return {"perf": {"lcores": 1, "counts": {"cycles": [cycles, seconds], "r20d1": [misses, seconds]}}}


def side(rate_mpps, *, lost_mpps=1.0, **more):
    return {"receive_rate_pps": rate_mpps * 1e6, "rate_pps": (rate_mpps + lost_mpps) * 1e6, **more}


def metrics(program, baseline=None, lcores=1, **facts):
    made = type("Device", (Device,), {"lcores": lcores})()
    overload = {"program": program, **({} if baseline is None else {"baseline": baseline})}
    found = made.served_metrics(overload, {"cpu_model": "Intel(R) Xeon(R)", **facts})
    return {m.metric: m.value for m in found}


def test_cycles_per_packet_are_those_that_were_counted():
    found = metrics(side(5.0, evidence=evidence()), side(10.0, evidence=evidence()))
    assert found == pytest.approx({
        "packet_rate": 5.0, "cycles_per_packet": 400.0, "baseline_cycles_per_packet": 200.0,
        "cost_cycles_per_packet": 200.0, "cache_misses": 0.04, "core_frequency": 2.0,
    })  # fmt: skip


def test_cycles_per_packet_by_the_fixed_frequency():
    """Scholz et al. 2021: frequency in GHz, times 1000, times cores, over Mpps."""
    found = metrics(side(5.0), side(8.0), lcores=2, cpu_ghz="2.0")
    assert found == pytest.approx({
        "packet_rate": 5.0, "cycles_per_packet": 2.0 * 1000 * 2 / 5.0, "baseline_cycles_per_packet": 500.0,
        "cost_cycles_per_packet": 300.0,
    })  # fmt: skip
    assert "cycles_per_packet" not in metrics(side(5.0), side(8.0))
    assert "cycles_per_packet" not in metrics(side(5.0), side(8.0), cpu_ghz="fast")


def test_a_switch_that_was_not_saturated_has_no_cycles_per_packet():
    full = side(5.0, evidence=evidence())
    assert "cost_cycles_per_packet" not in metrics(full, side(14.8, lost_mpps=0.1, evidence=evidence()))
    assert "cycles_per_packet" in metrics(full, side(14.8, lost_mpps=0.1, evidence=evidence()))
    idle = metrics(side(5.0, lost_mpps=0.05, evidence=evidence()), full)
    assert set(idle) == {"packet_rate", "baseline_cycles_per_packet", "cache_misses", "core_frequency"}
    assert metrics({"receive_rate_pps": 0.0, "rate_pps": 1e6}, full) == {
        "baseline_cycles_per_packet": pytest.approx(400.0)
    }
    assert metrics({}) == {}


def test_raw_events_of_caches_are_those_of_intel():
    assert "cache_misses" not in metrics(side(5.0, evidence=evidence()), cpu_model="AMD EPYC")


@pytest.mark.parametrize("mode", ["", "shared", "virtual"])
def test_evidence_becomes_metrics(node, monkeypatch, mode):
    monkeypatch.setenv("FAKE_PERF", mode)
    device = type("Device", (Device,), {"lcores": 2})()
    facts = node.facts()
    (step,) = device.service(device.plan(WORKLOAD, TRAFFIC, facts), "program", facts).during
    told = device.evidence({COUNTING: node.testbed.run(step.job, node.points)})
    found = device.served_metrics({"program": side(5.0, evidence=told)}, facts.values)
    values = {m.metric: m.value for m in found}
    if mode == "virtual":
        assert told["perf"]["not_counted"] == list(EVENTS)
        assert set(values) == {"packet_rate"}
    else:
        assert values["core_frequency"] == pytest.approx(2.0, rel=1e-3)
        assert values["cycles_per_packet"] == pytest.approx(800.0, rel=1e-3)
        assert values["cache_misses"] == pytest.approx(0.4, rel=1e-3)
    assert device.evidence({}) == {}


def test_other_steps_are_judged_by_their_exit_code():
    step = ServiceStep(STOPPING, perf_job([1], 1.0))
    Serves.check_step(Device(), step, JobResult(0, "", "", 0.1))
    with pytest.raises(MeasurementError, match="ended with status 2"):
        Device().check_step(step, JobResult(2, "", "", 0.1))


# What the facts say of t4p4s stands in the table of its generator.


def test_the_table_of_capabilities_has_the_facts():
    assert CAPABILITIES.limits["exact entries"].most == 1024
    assert CAPABILITIES.limits["ternary entries"].most == 255
    assert CAPABILITIES.limits["bytes of all headers"].most == 1024
    assert CAPABILITIES.limits["bytes of added headers"].most == 120
    assert CAPABILITIES.limits["lpm key bits"].most == 128
    missing = {
        "ternary",
        "checksum update",
        "checksum verify",
        "meter",
        "clone",
        "recirculate",
        "resubmit",
        "multicast",
    }
    assert missing <= set(CAPABILITIES.missing)
