"""Synthetic records, and facts of a machine that does not exist."""

import pytest

from p4perf.targets.base import NodeFacts

FACTS = {
    "cc_version": "cc 12.2",
    "pkg_config_version": "1.8",
    "dpdk_version": "22.11",
    "cpu_model": "A CPU",
    "cpu_id": "6-1-1",
    "machine": "x86_64",
    "memory_available_bytes": str(16 << 30),
    "measuring_cpu": "1",
    "realtime": "yes",
    "hugepages_free": "1024",
    "hugepage_bytes": str(2 << 20),
    "tool_valgrind": "/usr/bin/valgrind",
    "cache_l1_bytes": str(48 << 10),
    "cache_l2_bytes": str(2 << 20),
    "cache_l3_bytes": str(105 << 20),
}


@pytest.fixture
def facts():
    """Makes facts; a keyword sets one, None removes it."""

    def make(**changes):
        return NodeFacts({k: v for k, v in {**FACTS, **changes}.items() if v is not None})

    return make


@pytest.fixture
def make_record():
    """Makes a record with ``windows`` undisturbed windows for each of two programs; ``change(window)`` may spoil them.

    An undisturbed core has a ratio of 0.25, and its clock is such that a TSC cycle is a core cycle.
    """

    def make(windows=40, change=None, costs=(100.0, 20.0), **more):
        columns = {"program": [], "cpu": [], "preemptions": [], "tsc_per_packet": []}
        columns |= {f"{loop}_{when}_tsc": [] for loop in ("chain", "mix") for when in ("before", "after")}
        for n in range(windows):
            for program, cost in enumerate(costs):
                window = {"program": program, "cpu": 1, "preemptions": 0, "tsc_per_packet": cost}
                window |= {"chain_before_tsc": 12.0, "chain_after_tsc": 12.0}
                window |= {"mix_before_tsc": 3.0, "mix_after_tsc": 3.0}
                if change is not None:
                    change(n, window)
                for key, value in window.items():
                    columns[key].append(value)
        return {
            "harness_version": 2,
            "programs": ["program", "baseline"],
            "tsc_hz": 2_000_000_000,
            "chain_core_cycles": 12,
            "gated": True,
            "gate_ratio": 0.25,
            "gate_tolerance": 0.15,
            "drift_tolerance": 0.05,
            "realtime": True,
            "hugepages": True,
            "timed_out": False,
            "hops": 0,
            "packets": 1000,
            "sent": 1000,
            "memory_bytes": 4096,
            "code_bytes": 300,
            "compile_ms": 150.5,
            "setup_ms": 0.25,
            "windows": {"n": windows * len(costs), **columns},
            **more,
        }

    return make
