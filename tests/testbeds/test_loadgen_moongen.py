"""MoonGen as a load generator: its scripts under the test double, a device between the links, and what can fail."""

from dataclasses import replace

import pytest
from support.moongen import moongen, why_not

from p4perf.errors import CapabilityError, MeasurementError, TestbedError
from p4perf.evaluation.load import LatencyHistogram
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.targets.base import BuildPlan, NodeFacts, PointPlan
from p4perf.targets.link import LinkPlan
from p4perf.targets.roles import Serves, Service
from p4perf.testbeds.loadgen.base import Load, Spacing
from p4perf.testbeds.loadgen.moongen import MoonGenGenerator
from p4perf.testbeds.local import LocalTestbed

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

LINK = LinkPlan("interfaces")
LINE_MPPS = 1e6 / (84 * 8) / 1e6
"""A link of 1 Mbit/s with frames of 64 B, preamble and gap included."""


class Patch(Serves):
    """A device that forwards by itself."""

    name = "patch"

    def service(self, plan, program, facts):
        return Service()


Patch.__abstractmethods__ = frozenset()  # what is not served is not asked


class Bench(LocalTestbed):
    """This machine, with a MoonGen."""

    def __init__(self, folder, **more):
        super().__init__(folder / "cache")
        self.more = more

    def facts(self):
        return NodeFacts({**super().facts().values, **self.more})


@pytest.fixture
def plan():
    workload = build_workload((("match_action_table", {"entries": 30}),), frame_size_bytes=64, baseline="l2fwd")
    return PointPlan("key", BuildPlan({}, (), ""), workload, TrafficPlan(64), 0)


@pytest.fixture
def offer(tmp_path, plan):
    """Opens MoonGen with options of the double, and offers loads."""

    def offered(*loads, capacity_pps=None, facts=None, plan=plan, link=LINK, **options):
        capacity = tmp_path / "capacity"
        if capacity_pps is not None:
            capacity.write_text(str(capacity_pps))
        path = moongen(tmp_path / "MoonGen", capacity if capacity_pps else None, **{"link_mbit": 1, **options})
        bench = Bench(tmp_path, **{"tool_moongen": str(path), **(facts or {})})
        folder = tmp_path / "point"
        folder.mkdir(exist_ok=True)
        with MoonGenGenerator().open(Patch(), plan, link, bench, bench.facts(), folder) as session:
            return [session.offer(load) for load in loads]

    return offered


def test_an_overload_of_nothing_but_wire(offer):
    (account,) = offer(Load(None, 0.2))
    assert account.rate_pps == pytest.approx(1e6 * LINE_MPPS, rel=1e-3)
    assert account.receive_rate_pps == pytest.approx(account.rate_pps, rel=1e-3)
    assert account.lost == account.duplicated == 0
    # The warm-up is not counted; four queues finish the 63 frames that they have begun with.
    assert 5 * account.rate_pps - 1 <= account.sent <= 5 * account.rate_pps + 4 * 63
    assert account.flags == ()
    assert account.raw["files"]["max-load-tx.csv"].startswith("Time,Device,Direction")


def test_an_overload_of_a_device(offer):
    (account,) = offer(Load(None, 0.2), capacity_pps=500)
    assert account.receive_rate_pps == pytest.approx(500, rel=0.01)
    assert account.lost == account.sent - account.received > 0
    assert account.loss_ratio == pytest.approx(1 - 500 / (1e6 * LINE_MPPS), rel=0.05)


def test_latency_at_a_load(offer):
    (account,) = offer(Load(300.0, 0.2, latency=True), lose_probe=50, link_mbit=10)
    assert account.rate_pps == pytest.approx(300, rel=0.02)
    histogram = LatencyHistogram.from_record(account.histogram)
    assert 5.0 <= histogram.min_us <= histogram.max_us <= 5.1
    assert histogram.samples == account.raw["probes_sent"] - account.raw["probes_lost"]
    assert account.raw["probes_lost"] > 0
    assert account.flags == ("probes_lost",)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("spacing", [Spacing("poisson"), Spacing("burst", 8, None, 0.0), Spacing("burst", 4, 20000.0)])
def test_patterns(offer, spacing):
    (account,) = offer(Load(200.0, 0.2, spacing))
    expected = 200.0 if spacing.burst_gap_us is None else 4 / (0.02 + 4 * 84 * 8e-6)
    assert account.rate_pps == pytest.approx(expected, rel=0.15)
    assert account.lost == 0
    assert "rate_off_target" not in account.flags


def test_a_rate_that_is_ignored_is_flagged(offer):
    (account,) = offer(Load(200.0, 0.2), ignore_rate=True)
    assert account.flags == ("rate_off_target",)


def test_ports_are_numbered_as_dpdk_does(offer, tmp_path):
    facts = {"interface_tx": "0000:04:00.1", "interface_rx": "0000:04:00.0", "cores": "2,3,4,5"}
    (account,) = offer(Load(None, 0.2), facts=facts)
    assert account.sent > 0
    assert "Device: id=1,TX" in account.raw["files"]["max-load-tx.csv"]
    configuration = (tmp_path / "point" / "dpdk-conf.lua").read_text()
    assert "cores = { 2, 3, 4, 5 }" in configuration
    assert configuration.index("04:00.0") < configuration.index("04:00.1")


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"tool_moongen": ""}, "local, load generator: MoonGen is missing"),
        ({"interface_a": "0000:04:00.1", "interface_b": "0000:04:00.0"}, "interfaces of the load generator are a, b"),
    ],
)
def test_what_is_missing(offer, facts, message):
    with pytest.raises(TestbedError, match=message):
        offer(Load(None, 0.2), facts=facts)


def test_a_task_that_dies_is_told_though_moongen_ends_with_0(offer):
    with pytest.raises(MeasurementError, match=r"local, latency.lua: MoonGen failed: \[FATAL\] .* cannot timestamp"):
        offer(Load(200.0, 0.2, latency=True), no_timestamps=True)


def test_nothing_of_an_earlier_run_is_taken_for_this_one(offer, tmp_path):
    offer(Load(None, 0.2))
    assert (tmp_path / "point" / "max-load-rx.csv").exists()
    with pytest.raises(MeasurementError, match="MoonGen failed"):
        offer(Load(None, 0.2), devices=1)
    assert not (tmp_path / "point" / "max-load-rx.csv").exists()


def test_no_core_is_left(offer):
    with pytest.raises(MeasurementError, match="Not enough cores"):
        offer(Load(None, 0.2), facts={"cores": "1,2"})


def test_what_its_scripts_cannot_send(offer, plan):
    with pytest.raises(CapabilityError, match="frames of one size"):
        offer(Load(None, 0.2), link=replace(LINK, sizes_bytes=(64, 128)))
    with pytest.raises(CapabilityError, match="no pattern recorded"):
        offer(Load(100.0, 0.2, Spacing("recorded")))
    with pytest.raises(MeasurementError, match="no device null"):
        offer(Load(None, 0.2, device="null"))


def test_it_hangs(offer, tmp_path, monkeypatch):
    monkeypatch.setattr("p4perf.testbeds.loadgen.moongen.START_S", -5.0)
    hanging = tmp_path / "hanging"
    hanging.write_text("#!/bin/sh\nexec sleep 100\n")
    hanging.chmod(0o755)
    with pytest.raises(MeasurementError, match=r"max-load.lua: MoonGen was stopped after 1 s without an end"):
        offer(Load(None, 0.2), facts={"tool_moongen": str(hanging)})
