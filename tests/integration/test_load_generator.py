"""The native load generator with real programs behind real links: exact accounts, rates, and devices that misbehave."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from support.captures import capture
from support.command import command, environment

from p4perf.errors import MeasurementError
from p4perf.evaluation.load import LatencyHistogram, read_hlog
from p4perf.experiment import open_target
from p4perf.experiment.load import without_load
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.results import RunDirectory
from p4perf.targets.link import LinkPlan
from p4perf.testbeds.loadgen.base import Load, Spacing
from p4perf.testbeds.loadgen.native import NativeGenerator

pytestmark = pytest.mark.usefixtures("dpdk")

FRAME = 128
SPEC = """\
name: my/load
program: {component: match_action_table, parameters: {entries: $entries}}
metrics: {collect: [throughput_ndr, latency], optional: [loss_ratio]}
traffic: {frame_size: 128}
sweep: {entries: [10, 1000]}
load: {trial_ms: 50, latency_ms: 50, trials_per_load: 1, exceed_ratio: 0, width: 0.1}
trials: {repetitions: 1}
"""
REPLAY = """\
name: my/replay
program: {component: l2fwd}
metrics: {collect: [latency, loss_ratio]}
traffic: {replay: {pcap: mixed.pcap, timing: recorded}}
load: {latency_ms: 50}
trials: {repetitions: 1}
"""


def needs(link):
    """Skip what cannot be had here."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("generator and device need a CPU each")
    if link == "af-packet" and (os.geteuid() != 0 or shutil.which("ip") is None):
        pytest.skip("network namespaces need root, and links iproute2")
    if link == "af-packet" and subprocess.run(["unshare", "-n", "true"], check=False, capture_output=True).returncode:
        pytest.skip("there are no network namespaces here")


@pytest.fixture(scope="module")
def opened(testbed, facts, tmp_path_factory):
    """Opens a session of a target with a table of a thousand entries behind a link."""

    def opened(link="ring", label="dpdk-c", component="match_action_table", slots=1024, **parameters):
        needs(link)
        chosen = open_target(label)
        if any(p.fatal for p in chosen.problems(facts)):
            pytest.skip(f"{label} cannot be used here")
        if component == "match_action_table":
            parameters = {"entries": 1000, **parameters}
        workload = build_workload([(component, parameters)], frame_size_bytes=FRAME)
        plan = chosen.plan(workload, without_load(TrafficPlan(FRAME)), facts)
        folder = tmp_path_factory.mktemp("load")
        return NativeGenerator().open(chosen, plan, LinkPlan(link, slots), testbed, facts, folder)

    return opened


def total(account, name):
    return sum(account.raw[name])


@pytest.mark.parametrize("link", ["ring", "memif", "af-packet"])
def test_what_is_injected_is_what_is_counted(opened, link):
    rate_pps = 1e5 if link == "af-packet" else 1e6
    bursts = Spacing("burst", 32)  # only packets of one burst are swapped
    with opened(link) as session:
        account = session.offer(Load(rate_pps, 0.4, bursts, device="faulty", faults=(499, 1009, 307)))
    injected = {name: total(account, f"injected_{name}") for name in ("losses", "duplicates", "swaps")}
    reached = account.sent - total(account, "link_full")
    assert injected["losses"] == reached // 499 >= 70
    assert injected["duplicates"] == sum(n % 499 != 0 for n in range(1009, reached + 1, 1009))
    assert injected["swaps"] >= 15
    on_the_way = total(account, "link_full") + total(account, "device_tx_full")
    assert account.sent == total(account, "sent")
    assert account.lost == injected["losses"] + on_the_way
    late = total(account, "device_tx_full")  # a duplicate or a swapped packet may be among them
    assert injected["duplicates"] - late <= account.duplicated <= injected["duplicates"]
    assert injected["swaps"] - late <= account.reordered <= injected["swaps"]


@pytest.mark.thorough
def test_one_in_a_million(opened):
    with opened() as session:
        account = session.offer(Load(8e6, 0.8, device="faulty", faults=(1_000_000, 0, 0)))
    reached = account.sent - total(account, "link_full")
    assert total(account, "injected_losses") == reached // 1_000_000 > 0
    on_the_way = total(account, "link_full") + total(account, "device_tx_full")
    assert account.lost == total(account, "injected_losses") + on_the_way
    assert account.duplicated == account.reordered == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("link", "label"),
    [("ring", "dpdk-c"), ("ring", "dpdk-swx"), ("memif", "dpdk-swx:interpreter"), ("af-packet", "xdp")],
)
def test_a_program_forwards_what_it_should(opened, link, label):
    with opened(link, label) as session:
        assert session.ready["verified_packets"] > 1000
        account = session.offer(Load(2e4, 0.3, latency=True))
        null = session.offer(Load(2e4, 0.3, device="null"))
    assert account.sent == pytest.approx(6000, abs=2)
    assert account.received + total(account, "link_full") + total(account, "device_tx_full") == account.sent
    assert total(account, "device_received") == account.sent - total(account, "link_full")
    assert (account.duplicated, account.reordered, account.dropped) == (0, 0, 0)
    histogram = LatencyHistogram.from_record(account.histogram)
    assert histogram.samples == account.received
    assert 0 < histogram.percentile_us(50) <= histogram.percentile_us(99) <= histogram.max_us
    assert null.received + total(null, "link_full") + total(null, "device_tx_full") == null.sent


def test_packets_that_the_program_drops_are_not_lost(testbed, facts, tmp_path):
    needs("ring")
    target = open_target("dpdk-c")
    workload = build_workload([("match_action_table", {"entries": 1000, "hit_ratio": 0.5})], frame_size_bytes=FRAME)
    plan = target.plan(workload, TrafficPlan(FRAME, hit_ratio=0.5), facts)
    with NativeGenerator().open(target, plan, LinkPlan(), testbed, facts, tmp_path) as session:
        account = session.offer(Load(1e5, 0.2))
    assert 0.4 < account.dropped / account.sent < 0.6
    assert account.lost == total(account, "link_full") + total(account, "device_tx_full")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("pattern", ["cbr", "poisson", "burst"])
def test_the_rate_is_the_one_that_was_asked_for(opened, pattern):
    with opened() as session:
        for rate_pps in (1e3, 1e5, 2e6):
            account = session.offer(Load(rate_pps, 0.4, Spacing(pattern, burst_length=10), device="null"))
            sent = round(rate_pps * 0.4)
            if pattern == "poisson":
                assert abs(account.sent - sent) < 6 * sent**0.5
            else:
                assert abs(account.sent - sent) <= 10 * len(account.raw["sent"])
            if pattern == "cbr" and "preempted" not in account.flags:
                assert account.rate_pps == pytest.approx(rate_pps, rel=1e-3)


def stopped_by(session, action, **more):
    """Offer load, do something to the device after a moment, and return the error and how long it took to see it."""
    load = Load(1e5, 20.0, **more)
    begun = time.monotonic()
    timer = threading.Timer(0.5, action)
    timer.start()
    with pytest.raises(MeasurementError) as caught:
        session.offer(load)
    timer.join()
    return str(caught.value), time.monotonic() - begun


def processes_of(parent, name):
    """The children of a process, oldest first, whose command is so called."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        number, rest = int(text.split(" ", 1)[0]), text.rsplit(") ", 1)[1].split()
        if int(rest[1]) == parent and text[text.index("(") + 1 : text.rindex(")")].startswith(name):
            found.append(number)
    return sorted(found)


def generator_and_device():
    """The processes of the session that is open in this process."""
    (generator,) = processes_of(os.getpid(), "dpdk-c")
    return generator, processes_of(generator, "dpdk-c")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("number", "message"), [(signal.SIGKILL, "died"), (signal.SIGSTOP, "hangs|does not start")])
def test_a_device_that_dies_or_hangs_is_noticed_at_once(opened, number, message):
    with opened("memif") as session:
        _, (device,) = generator_and_device()
        said, took_s = stopped_by(session, lambda: os.kill(device, number))
    assert re.search(message, said)
    assert took_s < 8
    assert (
        not Path(f"/proc/{device}").exists() or "Z" in Path(f"/proc/{device}/stat").read_text().rsplit(") ", 1)[1][:1]
    )


def test_a_generator_that_dies_is_noticed_and_takes_its_device_along(opened):
    with opened("memif") as session:
        generator, (device,) = generator_and_device()
        said, took_s = stopped_by(session, lambda: os.kill(generator, signal.SIGSEGV))
        assert "signal 11" in said
        assert took_s < 5
        deadline = time.monotonic() + 5
        while Path(f"/proc/{device}").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
    assert not Path(f"/proc/{device}").exists()


def test_a_device_that_loses_all_packets_is_an_error(opened):
    lost = r"none of \d+ packets came back from the device under test"
    with opened() as session, pytest.raises(MeasurementError, match=lost):
        session.offer(Load(1e5, 0.1, device="faulty", faults=(1, 0, 0), latency=True))


@pytest.fixture
def sweep(tmp_path):
    """Starts p4perf as a user would, and returns the process and where the runs are."""

    def sweep(*arguments, text=SPEC):
        (tmp_path / "spec.yaml").write_text(text)
        words = command("run", tmp_path / "spec.yaml", "--target", "dpdk-c", "-o", tmp_path / "runs", *arguments)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(words, cwd=tmp_path, env=environment(), text=True, **pipes)

    return sweep


@pytest.mark.thorough
def test_an_interrupt_leaves_a_run_that_can_be_resumed(sweep, tmp_path):
    needs("ring")
    process = sweep()
    raw = wait_for(lambda: list((tmp_path / "runs").glob("*/points/*/raw.jsonl")))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, (out, err)
    assert "resume" in err
    (run,) = (tmp_path / "runs").iterdir()
    before = {path.parent.name: path.read_text() for path in raw}
    assert not list(run.rglob("*.tmp"))
    words = command("resume", run)
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    state = RunDirectory.open(run).state()
    assert state.complete
    for point, text in before.items():
        assert (run / "points" / point / "raw.jsonl").read_text().startswith(text)
    for path in run.glob("points/*/raw.jsonl"):
        for line in path.read_text().splitlines():
            load = json.loads(line)["load"]
            assert {"search", "offered", "alone"} <= set(load)
        assert len(list(path.parent.glob("latency-*.hlog"))) == len(path.read_text().splitlines())
        for log in path.parent.glob("latency-*.hlog"):
            assert all(entry.histogram.samples > 0 for entry in read_hlog(log))


@pytest.mark.thorough
def test_a_device_that_always_dies_ends_the_run(sweep, tmp_path):
    needs("memif")
    process = sweep("--set", "load.link=memif", "--set", "entries=[10]")
    killed, begun = 0, time.monotonic()
    while process.poll() is None and time.monotonic() < begun + 60:
        for generator in processes_of(process.pid, "dpdk-c"):
            for device in processes_of(generator, "dpdk-c"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(device, signal.SIGKILL)
                    killed += 1
        time.sleep(0.1)
    out, err = process.communicate(timeout=30)
    assert killed
    assert process.returncode in (3, 4), (out, err)
    assert "the device under test died (signal 9)" in err
    (raw,) = (tmp_path / "runs").glob("*/points/*/raw.jsonl")
    failures = [json.loads(line)["failure"]["message"] for line in raw.read_text().splitlines()]
    assert set(failures) == {"the device under test died (signal 9)"}


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.05)
    return found


@pytest.mark.thorough
def test_a_capture_is_replayed(sweep, tmp_path):
    needs("ring")
    head = bytes.fromhex("02000000000202000000000188b5")
    frames = [head + bytes([n]) * (50 + 10 * n) for n in range(100)]
    capture(tmp_path / "mixed.pcap", frames, times_us=range(0, 2000, 20))
    process = sweep(text=REPLAY)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, (out, err)
    (run,) = (tmp_path / "runs").iterdir()
    (raw,) = run.glob("points/*/raw.jsonl")
    (offered,) = json.loads(raw.read_text().splitlines()[0])["load"]["offered"]
    assert offered["program"]["sent"] == pytest.approx(0.05 * 50_000, rel=0.02)
    assert offered["program"]["lost"] == sum(offered["program"]["raw"]["link_full"])
    assert (run / "mixed.pcap").read_bytes() == (tmp_path / "mixed.pcap").read_bytes()
