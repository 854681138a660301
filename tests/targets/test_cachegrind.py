"""Simulated counts: cache shapes, the jobs, and what their output means."""

import json

import pytest

from p4perf.errors import MeasurementError
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.specs.metrics import METRICS
from p4perf.targets.base import JobResult, TrialOptions
from p4perf.targets.counters import MAX_WAYS, MIN_WAYS, geometry, packet_counts, simulated_metrics
from p4perf.targets.dpdk_c import DpdkCTarget

TARGET = DpdkCTarget()


def workload(entries=1000):
    return build_workload([("match_action_table", {"entries": entries})], frame_size_bytes=64)


def jobs(facts, entries=1000, **changes):
    node = facts(**changes)
    return TARGET.simulation(TARGET.plan(workload(entries), TrafficPlan(64), node), TrialOptions(), node)


@pytest.mark.parametrize(
    ("size", "shape"),
    [(32 << 10, "32768,8,64"), (48 << 10, "49152,12,64"), (2 << 20, "2097152,8,64"), (480 << 20, "503316480,15,64")],
)
def test_shapes(size, shape):
    assert geometry(size) == shape


@pytest.mark.parametrize("size", [1 << 10, 105 << 20, 33 << 20, 36_700_160, 12345678, 1_000_000_007])
def test_shapes_are_what_cachegrind_takes(size):
    total, ways, line = map(int, geometry(size).split(","))
    sets = total // ways // line
    assert total == ways * sets * line
    assert sets & (sets - 1) == 0
    assert MIN_WAYS <= ways <= MAX_WAYS
    assert 0.98 * size < total <= size


def test_four_jobs_of_a_build_without_avx_512(facts):
    made = jobs(facts)
    assert len(made) == 4
    texts = [" ".join(job.argv) for job in made]
    assert ["--LL=2097152" in text for text in texts] == [True, True, False, False]
    assert [job.argv[-1] for job in made] == [str(n) for n in packet_counts(1000)] * 2
    assert all("--force-max-simd-bitwidth=256" in text and "--verify" not in text for text in texts)
    assert all("x86-64-v3" in job.build.commands[0] for job in made)
    assert len({job.build.key for job in made}) == 1


def test_the_first_packets_go_to_all_of_the_table():
    assert packet_counts(10)[0] >= 20
    assert packet_counts(100_000)[0] >= 200_000
    assert packet_counts(10**8)[0] < 10**7


@pytest.mark.parametrize("changes", [{"tool_valgrind": None}, {"cache_l3_bytes": None}, {"machine": "aarch64"}])
def test_nothing_where_it_cannot_be_simulated(facts, changes):
    assert jobs(facts, **changes) == ()
    assert TARGET.simulated(()) == ()


def result(packets, instructions=0, l1=0, ll=0, code=0, err=None):
    summary = (
        f"==7== I   refs:      {instructions:,}\n==7== I1  misses:    {l1:,}\n==7== LLi misses:    1\n"
        f"==7== D   refs:      9,999  (1 rd   + 2 wr)\n==7== D1  misses:    {l1:,}  (1 rd   + 2 wr)\n"
        f"==7== LL misses:     {ll:,}  (1 rd   +  2 wr)\n"
    )
    return JobResult(code, json.dumps({"packets": packets}) + "\n", summary if err is None else err, 1.0)


def test_counts_are_slopes():
    counted = simulated_metrics(
        (
            result(1000, 5_000_000, 2000, 500),
            result(3000, 5_400_000, 5000, 1500),
            result(1000, ll=70),
            result(3000, ll=70),
        )
    )
    assert {m.metric: m.value for m in counted} == {
        "simulated_instructions": 200,
        "simulated_l1_misses": 3,
        "simulated_l2_misses": 0.5,
        "simulated_llc_misses": 0,
    }
    assert tuple(m.metric for m in counted) == TARGET.simulates
    assert all(METRICS[m.metric].unit == m.unit for m in counted)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (JobResult(1, '{"error": "no memory"}\n', "", 1.0), "no memory"),
        (JobResult(-9, "", "", 1.0, timed_out=True), "no output"),
        (result(1000, err="==7== I   refs:  5\n"), "printed no"),
    ],
)
def test_failures(bad, message):
    with pytest.raises(MeasurementError, match=message):
        simulated_metrics((bad,) * 4)
