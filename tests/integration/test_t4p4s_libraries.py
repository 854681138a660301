"""Libraries in the harness of target t4p4s: a small one of our own, and those of t4p4s where a node has them."""

import subprocess

import pytest

from p4perf.errors import BuildError, MeasurementError
from p4perf.generators.base import TrafficPlan
from p4perf.generators.packets import headers_size_bytes
from p4perf.generators.workload import build_workload
from p4perf.targets.base import NodeFacts, TrialOptions
from p4perf.targets.dpdk_c_build import harness_text
from p4perf.targets.oracle import PACKETS
from p4perf.targets.t4p4s import T4P4STarget
from p4perf.targets.t4p4s_build import built_libraries, library_name

pytestmark = [pytest.mark.dpdk, pytest.mark.usefixtures("dpdk")]

QUICK = TrialOptions(mode="plain", windows=3, window_us=200, timeout_ms=300, warmup_ms=0)
TARGET = T4P4STarget()

LIBRARY = """
#include <rte_mbuf.h>
#include "library.h"

int missing(void);

static int setup(void) {{ return {setup}; }}

static void run(struct rte_mbuf **packets, unsigned int n)
{{
	for (unsigned int i = 0; i < n; i++)
		packets[i]->port = packets[i]->data_len < {headers} ? P4PERF_LIBRARY_DROP : {port};
}}

const struct p4perf_library {name} = {{{interface}, 12.5, "a \\"test\\"", setup, run}};
"""
"""What the program of no headers does: forward what is long enough."""


def workload():
    return build_workload([("parser_headers", {"headers": 0})], frame_size_bytes=64)


@pytest.fixture
def trial(testbed, facts, tmp_path):
    """One trial with a library for program and baseline, changed by keywords for the program; the plan comes along."""

    def run(**changes):
        folder = tmp_path / "libraries"
        folder.mkdir()
        there = NodeFacts({**facts.values, "t4p4s_libraries": str(folder), "tool_t4p4s": "", "tool_p4c": ""})
        plan = TARGET.plan(workload(), TrafficPlan(64), there)
        (tmp_path / "library.h").write_text(harness_text(("library.h",))["library.h"])
        size = headers_size_bytes(plan.workload.program, plan.workload.packets)
        plain = {"setup": "0", "headers": size, "port": 1, "interface": 1, "name": "p4perf_library"}
        for role, changed in (("program", changes), ("baseline", {})):
            source = tmp_path / f"{role}.c"
            source.write_text(LIBRARY.format(**{**plain, **changed}))
            library = folder / library_name(plan.build.parts[role].files[f"{role}.p4"])
            flags = subprocess.run(["pkg-config", "--cflags", "libdpdk"], capture_output=True, text=True, check=True)
            command = ["cc", "-O2", "-shared", "-fPIC", *flags.stdout.split(), "-o", str(library), str(source)]
            subprocess.run(command, check=True, capture_output=True)
        return testbed.run(TARGET.trial(plan, QUICK, there), tmp_path)

    return run


def test_a_library_is_measured_beside_its_baseline(trial):
    record = TARGET.parse(trial())
    assert record["verified_packets"] == PACKETS
    assert record["sent"] == record["packets"] > 0
    assert record["libraries"]["program"]["made_by"] == "a 'test'"
    assert 50 < record["code_bytes"] < 10_000
    values = {m.metric: m.value for m in TARGET.summarise(record, None).metrics}
    assert set(TARGET.metrics) <= set(values)
    assert values["compile_time"] == 12.5
    assert abs(values["cost_cycles_per_packet"]) < 0.5 * values["cycles_per_packet"], "the same code twice"


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        ({"port": 2}, "verify", "packet 0 left by port 2, expected 1"),
        ({"headers": 0}, "verify", r"packet \d+ left 1 times, expected 0"),
        ({"setup": "missing()"}, "library", "library of the program cannot be loaded: .*undefined symbol: missing"),
        ({"interface": 9}, "library", "library of the program has interface 9, expected 1"),
        ({"name": "other"}, "library", "library of the program has no symbol p4perf_library"),
        ({"setup": "-12"}, "memory", "could not be created or filled"),
    ],
    ids=["port", "drop", "undefined", "interface", "symbol", "setup"],
)
def test_a_library_that_is_wrong_is_refused(trial, changes, key, message):
    with pytest.raises(MeasurementError, match=message) as caught:
        TARGET.parse(trial(**changes))
    assert caught.value.key == key


# --- Real ones.


@pytest.fixture(scope="module")
def node(facts):
    """The facts of a node with libraries of t4p4s."""
    if not facts.text("t4p4s_libraries"):
        pytest.skip("T4P4S_LIBRARIES names no folder of libraries")
    return facts


@pytest.mark.parametrize(
    "components",
    [
        [("parser_headers", {"headers": 2})],
        [("match_action_table", {"entries": 100})],
        [("header_field_writes", {"writes": 4})],
    ],
    ids=["headers", "table", "writes"],
)
def test_libraries_of_t4p4s_compute_what_the_interpreter_computes(node, testbed, tmp_path, components):
    plan = TARGET.plan(build_workload(components, frame_size_bytes=128), TrafficPlan(128), node)
    texts = [plan.build.parts[role].files[f"{role}.p4"] for role in ("program", "baseline")]
    if absent := {library_name(text) for text in texts} - built_libraries(node).keys():
        pytest.skip(f"the folder of libraries has no {', '.join(sorted(absent))}")
    record = TARGET.parse(testbed.run(TARGET.trial(plan, QUICK, node), tmp_path))
    assert record["verified_packets"] == PACKETS
    assert record["sent"] == record["packets"] > 0


@pytest.mark.parametrize(
    ("line", "taken"),
    [("hdr.ethernet.dst = 1;", True), ("hdr.ethernet.dst[7:0] = 1;", False)],
    ids=["a field", "a slice"],
)
def test_the_compiler_of_a_checkout_is_asked(facts, testbed, tmp_path, line, taken):
    """An assignment to a slice is left out with a warning and status 0."""
    if not (facts.text("tool_t4p4s") and facts.text("tool_p4c")):
        pytest.skip("T4P4S and P4C name no checkouts")
    there = NodeFacts({**facts.values, "t4p4s_libraries": str(tmp_path)})
    part = TARGET.plan(workload(), TrafficPlan(64), there).build.parts["program"]
    text = part.files["program.p4"]
    call = "        forward();\n"
    assert text.count(call) == 1
    changed = {"program.p4": text.replace(call, f"        {line}\n{call}")}
    part = type(part)(changed, part.commands, part.product, part.context)
    with pytest.raises(BuildError, match="there is no library" if taken else "does not take this program: .*slice"):
        testbed.build(part)
