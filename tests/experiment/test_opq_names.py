"""What platforms are called: processors in short, unique."""

import pytest

from p4perf.experiment.opq import platform_names


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Intel(R) Xeon(R) Silver 4210 CPU @ 2.20GHz", "Intel Xeon Silver 4210"),
        ("AMD EPYC 7763 64-Core Processor", "AMD EPYC 7763"),
        ("Intel(R) Xeon(R) Processor", "Intel Xeon"),
        ("Neoverse-N1", "Neoverse-N1"),
        ("CPU", "CPU"),
        ("", "unknown processor"),
    ],
)
def test_processors_in_short(model, name):
    assert platform_names([(model, "dpdk-c")]) == [name]


def test_targets_and_numbers_tell_runs_of_one_processor_apart():
    assert platform_names([("A", "dpdk-c"), ("B", "dpdk-c")]) == ["A", "B"]
    assert platform_names([("A", "dpdk-c"), ("A", "dpdk-c")]) == ["A #1", "A #2"]
    several = [("A", "dpdk-c"), ("A", "dpdk-swx"), ("A", "dpdk-c")]
    assert platform_names(several) == ["A (dpdk-c) #1", "A (dpdk-swx)", "A (dpdk-c) #2"]
