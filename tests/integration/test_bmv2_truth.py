"""simple_switch computes what the interpreter computes, and is a device whose packets are accounted for."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from p4perf.errors import MeasurementError
from p4perf.evaluation.load import LatencyHistogram
from p4perf.experiment.load import without_load
from p4perf.plugins import plugin_names
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.targets.base import NodeFacts, TrialOptions
from p4perf.targets.bmv2 import Bmv2Target
from p4perf.targets.link import LinkPlan
from p4perf.targets.oracle import PACKETS
from p4perf.testbeds.loadgen.base import Load
from p4perf.testbeds.loadgen.native import NativeGenerator
from p4perf.testbeds.local import LocalTestbed

TARGET = Bmv2Target()
EXAMPLES = Path(__file__).parents[2] / "examples/programs"
FRAME = 512
LINK = LinkPlan("af-packet")

GROUPS = {
    "parser and actions": [
        ("parser_headers", {"headers": 5, "header_bits": 72}),
        ("parsed_fields", {"fields": 6, "field_bits": 48}),
        ("header_field_writes", {"writes": 6, "fields": 8, "field_bits": 8, "operation": "increment"}),
        ("metadata_writes", {"writes": 5, "field_bits": 16, "operation": "chain"}),
        ("arithmetic", {"operations": 7, "operator": "-", "width_bits": 48}),
        ("conditionals", {"conditionals": 5, "nested": True}),
    ],
    "branches": [("parser_branches", {"branches": 9, "depth": 3})],
    "headers": [("added_headers", {"headers": 3, "header_bytes": 33})],
    "fewer headers": [("removed_headers", {"removed": 3, "kept": 3, "header_bytes": 7})],
    "externs": [
        ("hash", {"size_bytes": 52, "algorithm": "crc16", "repetitions": 2}),
        ("hash", {"size_bytes": 12, "algorithm": "crc32"}),
        ("hash", {"size_bytes": 8, "algorithm": "checksum16"}),
        ("counter", {"updates": 3, "size": 16}),
        ("meter", {"executions": 2, "size": 4}),
        ("register", {"accesses": 3, "operation": "read_write", "width_bits": 64, "size": 8}),
        ("random", {"numbers": 3, "width_bits": 8}),
    ],
    "checksum": [("checksum", {"size_bytes": 40, "operation": "update"})],
    "wrong checksum": [("checksum", {"size_bytes": 40, "operation": "verify"})],
    "recirculation": [("recirculate", {"times": 3})],
    "resubmission": [("resubmit", {"times": 3})],
    "clones": [("clone", {"copies": 2, "marked": True})],
    "multicast": [("multicast", {"ports": 3})],
    "exact": [("match_action_table", {"entries": 3000, "keys": 2, "key_bits": 64, "tables": 2, "hit_ratio": 0.5})],
    "lpm": [("match_action_table", {"match_kind": "lpm", "entries": 1500, "key_bits": 40, "free_bits": 8})],
    "ternary": [
        (
            "match_action_table",
            {"match_kind": "ternary", "entries": 1200, "key_bits": 40, "free_bits": 8, "hit_ratio": 0.7},
        )
    ],
    "a wide lpm key": [("match_action_table", {"match_kind": "lpm", "entries": 40})],
}


@pytest.fixture(scope="module")
def place(builds):
    """A testbed with a switch, an empty cache shared by all tests; the test is skipped where there is none."""
    testbed = LocalTestbed(builds)
    if shutil.which("simple_switch") is None:
        pytest.skip("simple_switch is not on the PATH")
    if reasons := [p.what for p in TARGET.problems(testbed.facts()) if p.fatal]:
        pytest.skip(reasons[0])
    return testbed


@pytest.fixture(scope="module")
def facts(place):
    return place.facts()


@pytest.fixture(scope="module")
def opened(place, facts, tmp_path_factory):
    """Opens a session of a workload."""

    def opened(workload, hit_ratio=1.0, **other_facts):
        known = NodeFacts({**facts.values, **other_facts})
        traffic = without_load(TrafficPlan(workload.packets.frame_size_bytes, hit_ratio=hit_ratio))
        plan = TARGET.plan(workload, traffic, known)
        return NativeGenerator().open(TARGET, plan, LINK, place, known, tmp_path_factory.mktemp("load"))

    return opened


def table(**parameters):
    return build_workload([("match_action_table", {"entries": 2000, **parameters})], frame_size_bytes=FRAME)


def total(account, name):
    return sum(account.raw[name])


def lossless(session, load):
    """The account of a small load, tried again if something else takes a core for so long that packets are lost."""
    for _ in range(5):
        account = session.offer(load)
        if not account.lost and not total(account, "foreign"):
            break
    return account


def test_no_component_is_left_out():
    used = {name for group in GROUPS.values() for name, _ in group}
    baselines, refused = {"l2fwd", "l2fwd_result"}, {"operator", "l2fwd_serial", "vio"}
    assert used == set(plugin_names("p4perf.components")) - {"fake"} - baselines - refused


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPS)
def test_the_switch_agrees_with_the_oracle(opened, name):
    with opened(build_workload(GROUPS[name], frame_size_bytes=1024)) as session:
        assert 0.9 * PACKETS < session.ready["verified_packets"] <= PACKETS


def test_every_packet_comes_back(opened):
    with opened(table()) as session:
        account = lossless(session, Load(2000, 0.4, latency=True))
        baseline = lossless(session, Load(2000, 0.2, device="baseline"))
        null = lossless(session, Load(2000, 0.2, device="null", latency=True))
        again = lossless(session, Load(2000, 0.2))
    for each in (account, baseline, null, again):
        assert each.sent == pytest.approx(round(2000 * (0.4 if each is account else 0.2)), abs=2)
        assert (each.received, each.lost, each.duplicated, each.reordered) == (each.sent, 0, 0, 0)
        assert total(each, "foreign") == 0
    assert total(account, "device_received") == total(account, "device_sent") == account.sent
    assert total(account, "device_busy_us") > total(null, "device_busy_us") == 0
    floor, through = (LatencyHistogram.from_record(each.histogram) for each in (null, account))
    assert floor.percentile_us(50) < through.percentile_us(50)


def test_overload_is_lost_in_front_of_the_switch(opened):
    with opened(table(entries=100)) as session:
        account = session.offer(Load(None, 0.2))
    assert account.lost > 0
    assert account.duplicated == account.reordered == 0
    assert account.received == total(account, "device_sent")


def test_what_the_program_drops_is_not_lost(opened):
    with opened(table(hit_ratio=0.5), hit_ratio=0.5) as session:
        account = lossless(session, Load(2000, 0.4))
    assert account.lost == 0
    assert 0.4 < account.dropped / account.sent < 0.6
    assert account.received + account.dropped == account.sent


def test_copies_leave_by_other_ports(opened):
    with opened(build_workload(GROUPS["multicast"], frame_size_bytes=FRAME)) as session:
        account = lossless(session, Load(1000, 0.2))
    assert (account.received, account.duplicated) == (account.sent, 0)
    assert total(account, "device_copies") == 2 * account.sent


def test_a_trial_measures_program_and_baseline(place, facts, tmp_path):
    plan = TARGET.plan(table(entries=100), TrafficPlan(FRAME), facts)
    job = TARGET.trial(plan, TrialOptions(windows=20), facts)
    record = TARGET.parse(place.run(job, tmp_path))
    found = TARGET.summarise(record, None)
    values = {m.metric: m.value for m in found.metrics}
    if found.metrics:  # on a busy machine no window may count
        assert values["cycles_per_packet"] > values["baseline_cycles_per_packet"] > 0
        assert values["load_time"] > 0
        assert values["compile_time"] > 0
    assert record["windows"]["n"] == 40


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("cat >/dev/null; echo 'RuntimeCmd: Invalid table operation (TABLE_FULL)'", r"says: Invalid table operation"),
        ("cat >/dev/null; echo 'RuntimeCmd: *** Unknown syntax: table_ad'", r"says: \*\*\* Unknown syntax"),
        ("cat >/dev/null; echo 'RuntimeCmd: 1999'", "has 1999 entries instead of 2000"),
        ("cat >/dev/null", "does not report table"),
        ("cat >/dev/null; echo no thrift; exit 3", "ended with status 3: no thrift"),
    ],
    ids=["full", "unknown", "one less", "silent", "dead"],
)
def test_entries_that_are_not_there(opened, tmp_path, answer, message):
    cli = script(tmp_path / "cli", answer)
    with pytest.raises(MeasurementError, match=message), opened(table(), tool_simple_switch_cli=cli):
        pass


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("echo no such option >&2; exit 1", "ended with status 1: no such option"),
        ("kill -SEGV $$", "died of signal 11"),
    ],
    ids=["refuses", "crashes"],
)
def test_a_switch_that_does_not_start(opened, tmp_path, text, message):
    with (
        pytest.raises(MeasurementError, match=message),
        opened(table(entries=10), tool_simple_switch=script(tmp_path / "switch", text)),
    ):
        pass


def own(name, **parameters):
    text = (EXAMPLES / name / f"{name}.json").read_text()
    return build_workload([("p4", {"program": text, "default_fill": 16, **parameters})], frame_size_bytes=128)


@pytest.mark.parametrize(
    "name",
    [
        "acl_firewall",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("count_min_sketch", "load_balancer", "nat")),
    ],
)
def test_a_program_of_a_user_agrees_with_the_oracle(place, facts, tmp_path, name):
    plan = TARGET.plan(own(name), TrafficPlan(128), facts)
    record = TARGET.parse(place.run(TARGET.trial(plan, TrialOptions(windows=2), facts), tmp_path))
    assert record["verified_packets"] == PACKETS
    assert min(record["windows"]["packets"]) > 0


def test_a_counter_that_is_not_as_expected_is_noticed(place, facts, tmp_path):
    workload = own("acl_firewall")
    root = json.loads(workload.source.text)
    for action in root["actions"]:
        action["primitives"] = [p for p in action["primitives"] if p["op"] != "count"]
    spoilt = replace(workload, source=replace(workload.source, text=json.dumps(root)))
    plan = TARGET.plan(spoilt, TrafficPlan(128), facts)
    job = TARGET.trial(plan, TrialOptions(windows=2), facts)
    with pytest.raises(MeasurementError, match=r"MainControl\.rules has other contents than expected"):
        TARGET.parse(place.run(job, tmp_path))


def switches():
    """The processes of simple_switch below this one."""
    parents, names = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        number = int(text.split(" ", 1)[0])
        names[number] = text[text.index("(") + 1 : text.rindex(")")]
        parents[number] = int(text.rsplit(") ", 1)[1].split()[1])

    def below(number):
        while number in parents and number != os.getpid():
            number = parents[number]
        return number == os.getpid()

    return sorted(number for number, name in names.items() if name.startswith("simple_switch") and below(number))


def test_a_switch_that_dies_is_noticed(opened):
    with opened(table(entries=10)) as session:
        for number in switches():
            os.kill(number, signal.SIGKILL)
        with pytest.raises(MeasurementError, match=r"simple_switch with the program (died of signal 9|has died)"):
            session.offer(Load(1000, 0.2))


def test_nothing_is_left_behind(opened):
    with opened(table(entries=10)) as session:
        session.offer(Load(1000, 0.1))
        started = switches()
        assert len(started) == 2
    deadline = time.monotonic() + 5
    while any(Path(f"/proc/{number}").exists() for number in started) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [number for number in started if Path(f"/proc/{number}").exists()]


def test_the_version_is_that_of_the_switch(facts):
    said = subprocess.run(["simple_switch", "--version"], capture_output=True, text=True, check=True).stdout
    assert facts.text("bmv2_version") == said.splitlines()[0]
    assert re.match(r"\d+\.\d+", facts.text("bmv2_version"))
