"""Micro-benchmarks of elementary operations on whatever machine this is: structure and order, never numbers."""

import json

import pytest
from support.command import p4perf

from p4perf.errors import UsageError
from p4perf.evaluation.papers.baldi2018.calibration import read_chase
from p4perf.experiment.operations import calibrate
from p4perf.targets.base import TrialOptions
from p4perf.targets.dpdk import HARNESS_VERSION
from p4perf.targets.eo_bench import case_job, cases, chase_job
from p4perf.targets.process import harness_record
from p4perf.targets.windows import window_statistics
from p4perf.testbeds.manual import ManualTestbed

OPTIONS = TrialOptions(mode="plain", windows=20, window_us=100, warmup_ms=1)


@pytest.mark.dpdk
def test_pointer_chase(testbed, facts, tmp_path):
    result = testbed.run(chase_job([16 << 10, 64 << 20], facts), tmp_path)
    assert result.returncode == 0, result.stderr
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    small, small_many, large, large_many = read_chase(lines)
    assert [c.chains for c in (small, small_many, large, large_many)] == [1, 16, 1, 16]
    assert 1 < small.cycles.value < large.cycles.value
    assert large_many.cycles.value < large.cycles.value  # accesses in flight


@pytest.mark.thorough
@pytest.mark.dpdk
def test_micro_benchmarks(testbed, facts, tmp_path):
    known = {case.name: case for case in cases(facts.cache_bytes, 1 << 30)}
    costs = {}
    for name in ("crc32_16", "crc32_1024", "hash", "list_32_8", "clone_64"):
        record = harness_record(testbed.run(case_job(known[name], OPTIONS, facts), tmp_path), HARNESS_VERSION)
        program, baseline = window_statistics(record).values()
        assert record["sent"] == record["packets"] * (2 if name == "clone_64" else 1)  # every lookup hits
        costs[name] = program.raw_core_cycles - baseline.raw_core_cycles
    assert costs["crc32_16"] < costs["crc32_1024"]
    assert min(costs["hash"], costs["clone_64"]) > 0


def test_every_case_has_a_program_of_its_own(facts):
    plans = {case.name: case_job(case, OPTIONS, facts) for case in cases({"L1": 1 << 15, "L2": 1 << 20}, 1 << 32)}
    sources = {name: job.build.files["program.c"] for name, job in plans.items()}
    assert "rte_hash" not in sources["parse"]
    assert sources["parse"] != sources["parse_8"]
    baselines = {job.build.parts["baseline"].key for job in plans.values()}
    assert len(baselines) == 1  # built once


def test_more_memory_than_there_is_is_not_asked_for(facts):
    for case in cases({"L1": 1 << 15, "L2": 1 << 20, "L3": 1 << 30}, 1 << 30):
        assert case.memory_bytes < 1 << 30


def test_batches_cannot_calibrate():
    with pytest.raises(UsageError, match="a calibration needs answers"):
        calibrate(ManualTestbed.__new__(ManualTestbed))


def test_a_machine_without_dpdk_is_told(tmp_path):
    (tmp_path / "bin").mkdir()
    done = p4perf(
        "learn", "--operations", PATH=f"{tmp_path}/bin:/bin", PKG_CONFIG_PATH="/none", PKG_CONFIG_LIBDIR="/none"
    )
    assert done.code == 3
    assert "cannot be used" in done.err
