"""Target vio on this machine: what is handed over arrives, and a broken build is noticed."""

import os
import shutil
from dataclasses import replace

import pytest

from p4perf.errors import MeasurementError
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.targets.base import JobResult, TrialOptions
from p4perf.targets.vio import VioTarget
from p4perf.testbeds.local import LocalTestbed

TARGET = VioTarget()
SMALL = {"buffers": 1024}
ALL_FACTORS = {
    **SMALL,
    "virtio_header_bytes": 0,
    "descriptor_bytes": 4,
    "header_bytes": 0,
    "headroom_bytes": 0,
    "data_room_bytes": 64,
    "rx_copy": "none",
    "tx_copy": "none",
    "batch": 128,
    "queue": 256,
}
QUICK = TrialOptions(mode="plain", windows=1, timeout_ms=1, warmup_ms=1)


@pytest.fixture(scope="module")
def testbed(builds):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("host and network function need a CPU each")
    return LocalTestbed(builds)


@pytest.fixture(scope="module")
def facts(testbed):
    return testbed.facts()


def plan(facts, frame_size=64, **parameters):
    workload = build_workload([("vio", {**SMALL, **parameters})], frame_size_bytes=frame_size)
    return TARGET.plan(workload, TrafficPlan(frame_size), facts)


def changed(planned, files):
    """A build of other sources, compiled in less time."""
    commands = tuple(tuple(word.replace("-O3", "-O1") for word in command) for command in planned.build.commands)
    return replace(planned, build=replace(planned.build, files=files, commands=commands))


def run(testbed, facts, tmp_path, planned, options=QUICK):
    return TARGET.parse(testbed.run(TARGET.trial(planned, options, facts), tmp_path))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        ALL_FACTORS,
        {"descriptor_bytes": 8, "rx_copy": "none", "body_read_bytes": 8, "body_write_bytes": 4},
        {"rx_batch": 16, "function_batch": 64, "tx_batch": 128, "function_cache_order": "fifo", "host_cache": 0},
        {"frame_size": 1518, "rx_copy": "stream", "tx_copy": "simd", "function_shuffled": True, "header_bytes": 1024},
        {"rx_hint": "flush", "tx_hint": "demote", "function_header_access": "read", "rx_header_access": "write"},
    ],
    ids=str,
)
def test_all_packets_arrive_whole_and_in_order(testbed, facts, tmp_path, parameters):
    if "stream" in parameters.values() and facts.text("machine") != "x86_64":
        pytest.skip("these copies are of x86-64")
    planned = plan(facts, **parameters)
    record = run(testbed, facts, tmp_path, planned)
    assert record["verified_packets"] >= 2000, "before the windows, and after them"
    assert record["packets"] >= record["window_packets"]
    assert 0.8 * planned.memory_bytes < record["memory_bytes"] <= planned.memory_bytes
    assert record["host_cpu"] != record["function_cpu"]


BROKEN = {
    "a copy is left out": ("vio_host.c", "copy_packet(own, packet, TX_COPY);", "", "packet"),
    "two packets are swapped": ("vio_function.c", "= f->batch[i];", "= f->batch[i ^ 1];", "packet 1 came back"),
    "another length": ("vio_function.c", "= f->lengths[i];", "= f->lengths[i] - 1;", "length of 59 B"),
    "a virtio header is not read": ("vio_function.c", "f->witness += words[i];", "(void)words;", "virtio headers"),
    "a body is not read": ("vio_function.c", "f->body_witness += words[i];", "(void)words;", "read other packets"),
    "a byte is written": (
        "vio_function.c",
        "f->lengths[number] = length;",
        "f->lengths[number] = length; packet[59] = 1;",
        "byte 43",
    ),
    "a packet is kept": ("vio_function.c", "f->batches++;", "f->batches++; for (;;) idle(f);", "did not come back"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_build_is_noticed(testbed, facts, tmp_path, broken):
    name, right, wrong, said = BROKEN[broken]
    planned = plan(facts, body_read_bytes=8)
    files = dict(planned.build.files)
    assert files[name].count(right) == 1
    files[name] = files[name].replace(right, wrong)
    files["vio_host.c"] = files["vio_host.c"].replace("#define PATIENCE_S 10", "#define PATIENCE_S 1")
    with pytest.raises(MeasurementError, match=said) as caught:
        run(testbed, facts, tmp_path, changed(planned, files))
    assert caught.value.key == "verify"


def test_a_function_that_dies_is_told(testbed, facts, tmp_path):
    planned = plan(facts)
    files = dict(planned.build.files)
    files["vio_function.c"] = files["vio_function.c"].replace("f->batches++;", "__builtin_trap();")
    with pytest.raises(MeasurementError, match="function was killed"):
        run(testbed, facts, tmp_path, changed(planned, files))


def test_one_cpu_is_refused(testbed, facts, tmp_path):
    job = TARGET.trial(plan(facts), QUICK, facts)
    cpu = str(min(os.sched_getaffinity(0)))
    alone = replace(job, argv=(job.argv[0], "--host-cpu", cpu, "--function-cpu", cpu))
    with pytest.raises(MeasurementError, match="need a CPU each") as caught:
        TARGET.parse(testbed.run(alone, tmp_path))
    assert caught.value.key == "refused"


def test_hugepages_that_are_not_there_are_refused(testbed, facts, tmp_path):
    if facts.number("hugepages_free"):
        pytest.skip("there are some")
    with pytest.raises(MeasurementError, match=r"no shared memory of .* in hugepages") as caught:
        run(testbed, facts, tmp_path, plan(facts), replace(QUICK, hugepages=True))
    assert caught.value.key == "refused"


@pytest.mark.thorough
def test_lines_that_go_from_core_to_core(testbed, facts, tmp_path):
    """Counted by hand, for the base and without headers."""
    counted = {}
    for name, parameters in (("base", {}), ("no headers", {"virtio_header_bytes": 0, "header_bytes": 0})):
        jobs = TARGET.simulation(plan(facts, **parameters), QUICK, facts)[:2]
        results: list[JobResult] = [testbed.run(job, tmp_path) for job in jobs]
        counted[name] = {m.metric: m.value for m in TARGET.simulated(results)}
    base, bare = counted["base"], counted["no headers"]
    # Four descriptors of a line. The function reads RX, then writes it, and writes TX; the host writes both.
    assert bare["simulated_function_line_requests"] == pytest.approx(3 / 4, abs=0.1)
    assert bare["simulated_host_line_requests"] == pytest.approx(2 / 4, abs=0.1)
    # The virtio header, which one writes and the other reads. Only the function touches buffer headers, and the host
    # the payload.
    for side in ("host", "function"):
        of = f"simulated_{side}_line_requests"
        assert base[of] - bare[of] == pytest.approx(1, abs=0.02)


def test_all_factors_together_are_faster_than_none(testbed, facts, tmp_path):
    """Three times is what must be; a loaded machine shows it in the best of a few short starts."""
    options = TrialOptions(windows=20, timeout_ms=400, warmup_ms=5)
    best = {}
    for name, parameters in (("base", {}), ("all", ALL_FACTORS)):
        planned = plan(facts, **parameters)
        starts = [run(testbed, facts, tmp_path, planned, options) for _ in range(2)]
        best[name] = min(min(record["windows"]["tsc_per_packet"]) for record in starts)
    assert best["base"] > 1.5 * best["all"]
