"""What platforms are called: processors in short, unique."""

import pytest

from p4perf.experiment.opq import platform_names


def manifest(cpu, target="dpdk-c"):
    return {"node": {"cpu_model": cpu} if cpu else {}, "target": target}


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Intel(R) Xeon(R) Silver 4210 CPU @ 2.20GHz", "Intel Xeon Silver 4210"),
        ("AMD EPYC 7763 64-Core Processor", "AMD EPYC 7763"),
        ("Intel(R) Xeon(R) Processor", "Intel Xeon"),
        ("Neoverse-N1", "Neoverse-N1"),
        ("CPU", "CPU"),
        (None, "unknown processor"),
    ],
)
def test_processors_in_short(model, name):
    assert platform_names([manifest(model)]) == [name]


def test_targets_and_numbers_tell_runs_of_one_processor_apart():
    assert platform_names([manifest("A"), manifest("B")]) == ["A", "B"]
    assert platform_names([manifest("A"), manifest("A")]) == ["A #1", "A #2"]
    several = [manifest("A"), manifest("A", "dpdk-swx"), manifest("A")]
    assert platform_names(several) == ["A (dpdk-c) #1", "A (dpdk-swx)", "A (dpdk-c) #2"]
