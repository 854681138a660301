"""P4 (PNA) of every component, compiled by the p4c-dpdk on the PATH, agrees with the oracle on DPDK's pipeline."""

import shutil

import pytest

from p4perf.errors import CapabilityError, UsageError
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.targets.base import TrialOptions
from p4perf.targets.dpdk_swx import DpdkSwxTarget

QUICK = TrialOptions(mode="plain", windows=1, window_us=200, timeout_ms=50, warmup_ms=0)

COMPONENTS = [
    ("parser_headers", {"headers": 12, "header_bits": 24}),
    ("parsed_fields", {"fields": 20, "field_bits": 64}),
    ("parser_branches", {"branches": 4, "depth": 3}),
    ("added_headers", {"headers": 5, "header_bytes": 7}),
    ("removed_headers", {"removed": 3, "kept": 2, "header_bytes": 4}),
    ("match_action_table", {"entries": 300}),
    ("match_action_table", {"entries": 100, "match_kind": "lpm"}),
    ("match_action_table", {"entries": 20, "tables": 3, "applications": 2}),
    ("match_action_table", {"entries": 50, "match_kind": "ternary"}),
    ("header_field_writes", {"writes": 4}),
    ("metadata_writes", {"writes": 9, "field_bits": 8, "operation": "set"}),
    ("arithmetic", {"operations": 5, "operator": "-", "width_bits": 48}),
    ("conditionals", {"conditionals": 9, "nested": True}),
    ("checksum", {"size_bytes": 20, "operation": "update"}),
    ("checksum", {"size_bytes": 40, "hit_ratio": 0.5}),
    ("counter", {"updates": 3, "size": 4}),
    ("meter", {"executions": 2}),
    ("register", {"accesses": 4, "width_bits": 8}),
    ("recirculate", {"times": 5}),
]


@pytest.mark.dpdk
@pytest.mark.usefixtures("dpdk")
@pytest.mark.parametrize(("name", "parameters"), COMPONENTS)
def test_compiled_programs_compute_what_the_oracle_says(name, parameters, testbed, facts, tmp_path):
    if shutil.which("p4c-dpdk") is None:
        pytest.skip("p4c-dpdk is not on the PATH")
    target = DpdkSwxTarget(("p4c",))
    if problems := [p.what for p in target.problems(facts) if p.fatal]:
        pytest.skip(problems[0])
    workload = build_workload([(name, parameters)], frame_size_bytes=512)
    plan = target.plan(workload, TrafficPlan(512), facts)
    record = target.parse(testbed.run(target.trial(plan, QUICK, facts), tmp_path))
    assert record["verified_packets"] == 2048


@pytest.mark.parametrize("algorithm", ["crc32", "crc16", "checksum16"])
def test_hashes_that_would_come_out_otherwise_are_refused(algorithm):
    workload = build_workload([("hash", {"size_bytes": 8, "algorithm": algorithm})], frame_size_bytes=64)
    with pytest.raises(CapabilityError, match=f"dpdk-swx has no hash {algorithm}"):
        DpdkSwxTarget(("p4c",)).capabilities.check(workload.program, workload.packets)


def test_what_is_compiled_is_not_interpreted():
    with pytest.raises(UsageError, match="exclude each other"):
        DpdkSwxTarget(("p4c", "interpreter"))
