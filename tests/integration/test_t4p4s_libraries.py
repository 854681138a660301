"""Libraries in the harness of target t4p4s: of our own, of a stand-in for t4p4s.sh, and of the real one where it is."""

import dataclasses

import pytest
from support.t4p4s import Checkouts, tree

from p4perf.errors import BuildError, MeasurementError
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.programs.packets import headers_size_bytes
from p4perf.targets.base import BuildPlan, NodeFacts, TrialOptions
from p4perf.targets.builds import COMPILE_TIME_FILE, harness_text
from p4perf.targets.oracle import PACKETS
from p4perf.targets.t4p4s import T4P4STarget, measured_plan

pytestmark = [pytest.mark.dpdk, pytest.mark.usefixtures("dpdk")]

QUICK = TrialOptions(mode="plain", windows=3, window_us=200, timeout_ms=300, warmup_ms=0)
TARGET = T4P4STarget()


def workload(headers=0):
    return build_workload([("parser_headers", {"headers": headers})], frame_size_bytes=64)


# --- A library of our own: what the harness makes of one.

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

const struct p4perf_library {name} = {{setup, run}};
"""
"""What the program of no headers does: forward what is long enough."""

COMPILE = f'echo 12500000 >{COMPILE_TIME_FILE}; cc -O2 -shared -fPIC $(pkg-config --cflags libdpdk) -o "$1.so" "$1.c"'


@pytest.fixture
def trial(testbed, facts, tmp_path):
    """One trial with a library for program and baseline, changed by keywords for the program."""

    def run(**changes):
        plan = TARGET.plan(workload(), TrafficPlan(64), facts)
        size = headers_size_bytes(plan.workload.program, plan.workload.packets)
        plain = {"setup": "0", "headers": size, "port": 1, "name": "p4perf_library"}
        libraries = {
            role: BuildPlan(
                {f"{role}.c": LIBRARY.format(**{**plain, **changed}), **harness_text(("library.h",))},
                (("sh", "-c", COMPILE, "sh", role),),
                f"{role}.so",
            )
            for role, changed in (("program", changes), ("baseline", {}))
        }
        plan = dataclasses.replace(plan, build=measured_plan(libraries, facts))
        return testbed.run(TARGET.trial(plan, QUICK, facts), tmp_path)

    return run


@pytest.mark.thorough
def test_a_library_is_measured_beside_its_baseline(trial):
    record = TARGET.parse(trial())
    assert record["verified_packets"] == PACKETS
    assert record["sent"] == record["packets"] > 0
    assert 50 < record["code_bytes"] < 10_000
    values = {m.metric: m.value for m in TARGET.summarise(record, None).metrics}
    assert set(TARGET.metrics) <= set(values)
    assert values["compile_time"] == 12.5
    assert abs(values["cost_cycles_per_packet"]) < 0.5 * values["cycles_per_packet"], "the same code twice"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        ({"port": 2}, "verify", "packet 0 left by port 2, expected 1"),
        ({"headers": 0}, "verify", r"packet \d+ left 1 times, expected 0"),
        ({"setup": "missing()"}, "library", "library of the program cannot be loaded: .*undefined symbol: missing"),
        ({"name": "other"}, "library", "library of the program has no symbol p4perf_library"),
        ({"setup": "-12"}, "memory", "could not be created or filled"),
    ],
    ids=["port", "drop", "undefined", "symbol", "setup"],
)
def test_a_library_that_is_wrong_is_refused(trial, changes, key, message):
    with pytest.raises(MeasurementError, match=message) as caught:
        TARGET.parse(trial(**changes))
    assert caught.value.key == key


# --- The stand-in for t4p4s.sh, which compiles what is in the place of network interfaces.


def test_what_t4p4s_sh_compiles_is_measured(testbed, facts, tmp_path, monkeypatch):
    """By its means: options, and the variable for the compiler. The checkout is only read."""
    checkouts = Checkouts(tmp_path, monkeypatch)
    before = tree(checkouts.checkout)
    known = NodeFacts({**facts.values, **checkouts.known})
    plan = TARGET.plan(workload(2), TrafficPlan(64), known)
    folder = tmp_path / "trial"
    folder.mkdir()
    record = TARGET.parse(testbed.run(TARGET.trial(plan, QUICK, known), folder))
    assert record["verified_packets"] == PACKETS
    assert record["sent"] == record["packets"] > 0
    assert record["compile_ms"] > 10
    assert 500 < record["code_bytes"] < 100_000
    assert tree(checkouts.checkout) == before
    library = testbed.build(plan.build.parts["program"])
    told = (library / "build.log").read_text()
    assert "COMPILE SWITCH" in told
    assert not (library / "src").exists(), "sources are not kept for every program"
    made = (library / "program.so").stat().st_mtime_ns
    checkouts.fakes("ninja")
    again = testbed.build(TARGET.plan(workload(2), TrafficPlan(64), known).build.parts["program"])
    assert (again / "program.so").stat().st_mtime_ns == made, "equal programs are built once"


# --- The real one.


@pytest.fixture(scope="module")
def node(facts):
    """The facts of a node that t4p4s works on."""
    if reasons := [p.what for p in TARGET.problems(facts) if p.fatal]:
        pytest.skip("; ".join(reasons))
    return facts


@pytest.mark.parametrize(
    "components",
    [[("parser_headers", {"headers": 2})], [("match_action_table", {"entries": 8})]],
    ids=["headers", "table"],
)
def test_t4p4s_computes_what_the_interpreter_computes(node, testbed, tmp_path, components):
    plan = TARGET.plan(build_workload(components, frame_size_bytes=128), TrafficPlan(128), node)
    record = TARGET.parse(testbed.run(TARGET.trial(plan, QUICK, node), tmp_path))
    assert record["verified_packets"] == PACKETS
    assert record["sent"] == record["packets"] > 0


def test_what_its_compiler_leaves_out_is_refused(node, testbed):
    """An assignment to a slice is left out with a warning and status 0."""
    part = TARGET.plan(workload(), TrafficPlan(64), node).build.parts["program"]
    text = part.files["program.p4"]
    call = "        forward();\n"
    assert text.count(call) == 1
    changed = {**part.files, "program.p4": text.replace(call, f"        hdr.ethernet.dst[7:0] = 1;\n{call}")}
    with pytest.raises(BuildError, match=r"does not take this program: .*slice"):
        testbed.build(dataclasses.replace(part, files=changed))
