"""Records of a load generator as metrics, flags and logs of latencies."""

import copy
import json
import math
from dataclasses import replace

import pytest
from support.load_session import READY, FakeSession, histogram

from p4perf.errors import MeasurementError
from p4perf.evaluation.load import LatencyHistogram
from p4perf.evaluation.load.histogram import parse_hlog
from p4perf.evaluation.load.records import GENERATOR_BOUND_SHARE, latency_log, summarise_load
from p4perf.experiment.load import LoadMeasurement, LoadPlan
from p4perf.specs.metrics import LOAD_METRICS, PERCENTILES, metric_named
from p4perf.targets.link import LinkPlan
from p4perf.testbeds.loadgen.base import Spacing

EXTREMES = ("min", "max", "mean", "stddev")
PLAN = LoadPlan(
    *("fake", LinkPlan(), Spacing(), LOAD_METRICS, None, (0.1, 0.5, 0.7), False),
    *("bisection", 0.005, 0.005, 0.0, 1, 300, 0.2, 0.4),
)
SINGLE = replace(PLAN, metrics=("latency", "loss_ratio"), rate_pps=1e6, fractions=(), single=True)


def record(plan=PLAN, **device):
    made = LoadMeasurement(FakeSession(**device), plan, 1, 0.25).measure()
    return json.loads(json.dumps(made))  # as it comes back from a journal


def summary(plan=PLAN, made=None, **device):
    return summarise_load(made or record(plan, **device), plan.metrics, single=plan.single)


def values(plan=PLAN, made=None, **device):
    found = summary(plan, made, **device).metrics
    names = [m.metric for m in found]
    assert len(set(names)) == len(names)
    return {m.metric: m.value for m in found}


class TestMetrics:
    def test_several_loads_say_which(self):
        found = values()
        expected = {"generator_rate", "receive_rate", "search_trials"}
        expected |= {f"throughput_{goal}{bound}" for goal in ("ndr", "pdr") for bound in ("", "_upper")}
        for percent in (10, 50, 70):
            expected |= {f"{name}_at_{percent}" for name in ("offered_rate", "loss_ratio")}
            for part in ("latency", "latency_floor"):
                expected |= {f"{part}_{s}_at_{percent}" for s in (*PERCENTILES, *EXTREMES, "samples")}
        # A hundred thousand packets at a tenth of 2 Mpps for 0.4 s: ten in ten thousand need 100,000 samples.
        assert expected - set(found) <= {f"latency{f}_p9999_at_10" for f in ("", "_floor")}
        assert set(found) <= expected

    def test_one_load_need_not(self):
        found = values(SINGLE)
        assert {"packet_rate", "offered_rate", "loss_ratio", "latency_p50", "latency_floor_p99"} <= set(found)
        assert not [name for name in found if "_at_" in name]
        assert (found["packet_rate"], found["offered_rate"], found["loss_ratio"]) == (1.0, 1.0, 0.0)
        assert found["latency_samples"] == 400_000

    def test_a_single_fraction_need_not_either(self):
        plan = replace(PLAN, metrics=("latency",), fractions=(0.5,), single=True)
        found = values(plan)
        assert found["offered_rate"] == pytest.approx(1.0, rel=0.01)
        assert not [name for name in found if "_at_" in name]

    def test_the_numbers(self):
        found = values()
        assert found["throughput_ndr"] == pytest.approx(2.0, rel=0.005)
        assert found["throughput_ndr"] <= found["throughput_ndr_upper"]
        assert found["throughput_ndr"] < found["throughput_pdr"]
        assert (found["receive_rate"], found["generator_rate"]) == (2.0, 10.0)
        for percent in (10, 50, 70):
            assert found[f"offered_rate_at_{percent}"] == pytest.approx(percent / 100 * found["throughput_ndr"])
            assert found[f"loss_ratio_at_{percent}"] == 0
            assert found[f"latency_p50_at_{percent}"] == pytest.approx(10.0, rel=0.002)
            assert found[f"latency_floor_p50_at_{percent}"] == pytest.approx(5.0, rel=0.002)
            assert found[f"latency_max_at_{percent}"] == pytest.approx(20.0, rel=0.002)

    def test_loss_is_relative_to_what_was_sent(self):
        plan = replace(SINGLE, rate_pps=4e6)
        assert values(plan)["loss_ratio"] == 0.5

    def test_only_what_is_asked_for(self):
        found = values(replace(PLAN, metrics=("throughput_pdr",), fractions=()))
        assert set(found) == {"throughput_pdr", "throughput_pdr_upper", "generator_rate", "search_trials"}
        assert "receive_rate" not in values(replace(PLAN, metrics=("latency",)))

    def test_every_metric_of_a_spec_has_its_unit(self):
        for plan in (PLAN, SINGLE):
            for metric in summary(plan).metrics:
                known = metric_named(metric.metric)
                if known is not None:
                    assert metric.unit == known.unit, metric.metric

    def test_what_is_searched_can_be_modelled(self):
        """Statistics of latency and loss have names that a model may have."""
        for name in values():
            if name.startswith(("latency", "loss_ratio")) and "samples" not in name:
                assert metric_named(name) is not None, name

    def test_all_numbers_are_numbers(self):
        for plan in (PLAN, SINGLE):
            assert all(math.isfinite(value) for value in values(plan).values())


class TestFlags:
    def test_none_if_nothing_is_wrong(self):
        assert summary().flags == ()
        assert summary().accepted
        assert summary(SINGLE).flags == ()

    def test_flags_of_the_trials_that_count(self):
        found = summary(SINGLE, flags=lambda n, load: ("no_realtime", "foreign_packets"))
        assert found.flags == ("foreign_packets", "no_realtime")
        assert found.accepted

    def test_flags_of_the_floor_and_of_the_warmup_do_not_count(self):
        def flags(n, load):
            return ("preempted",) if load.device == "null" or n == 0 else ()

        assert summary(SINGLE, flags=flags).flags == ()

    @pytest.mark.parametrize(("key", "flag"), [("hugepages", "no_hugepages"), ("invariant_tsc", "clock_unknown")])
    def test_what_the_machine_lacks(self, key, flag):
        assert summary(SINGLE, ready={**READY, key: False}).flags == (flag,)
        assert summary(SINGLE, ready={k: v for k, v in READY.items() if k != key}).flags == (flag,)

    def test_too_few_samples_for_the_99th_percentile(self):
        made = record(SINGLE)
        raw = made["offered"][0]["program"]["raw"]
        raw["histogram"] = histogram(5.0, 900)
        assert summary(SINGLE, made).flags == ("few_samples",)
        raw["histogram"] = histogram(5.0, 1000)
        assert summary(SINGLE, made).flags == ()
        loss = replace(SINGLE, metrics=("loss_ratio",))
        assert summary(loss).flags == ()

    def test_loss_at_an_offered_load(self):
        assert summary(replace(SINGLE, rate_pps=2.1e6)).flags == ("lost_at_offered_load",)

    def test_latencies_above_the_histogram(self):
        made = record(SINGLE)
        made["offered"][0]["program"]["raw"]["histogram"]["overflow"] = 3
        assert summary(SINGLE, made).flags == ("latency_overflow",)

    def test_a_throughput_near_that_of_the_generator(self):
        plan = replace(PLAN, metrics=("throughput_ndr",), fractions=())
        assert "generator_bound" in summary(plan, capacity_pps=1.01 * GENERATOR_BOUND_SHARE * 10e6).flags
        assert "generator_bound" not in summary(plan, capacity_pps=0.98 * GENERATOR_BOUND_SHARE * 10e6).flags

    def test_a_throughput_that_only_the_generator_limits(self):
        plan = replace(PLAN, metrics=("throughput_ndr",), fractions=())
        found = summary(plan, capacity_pps=20e6)
        assert {"at_maximum", "generator_bound"} <= set(found.flags)
        assert "throughput_ndr_upper" not in {m.metric for m in found.metrics}

    def test_a_receive_rate_near_that_of_the_generator(self):
        plan = replace(PLAN, metrics=("receive_rate",), fractions=())
        assert summary(plan, capacity_pps=9e6).flags == ("generator_bound",)
        assert summary(plan, capacity_pps=8e6).flags == ()

    def test_a_search_that_found_nothing_is_not_accepted(self):
        def spoil(n, load, account):
            lost = account.sent if load.rate_pps else account.lost
            return replace(account, lost=lost, received=account.sent - lost)

        found = summary(spoil=spoil)
        assert not found.accepted
        assert "below_minimum" in found.flags
        assert not {m.metric for m in found.metrics} & {"throughput_ndr", "throughput_pdr"}

    def test_flags_are_sorted(self):
        found = summary(
            replace(SINGLE, rate_pps=3e6),
            flags=lambda n, load: ("preempted", "drift"),
            ready={**READY, "hugepages": False},
        )
        assert found.flags == tuple(sorted(found.flags))
        assert set(found.flags) == {"preempted", "drift", "no_hugepages", "lost_at_offered_load"}


class TestSamples:
    def with_samples(self, n):
        made = record(SINGLE)
        for part in ("program", "floor"):
            made["offered"][0][part]["raw"]["histogram"] = histogram(5.0, n)
        return made

    @pytest.mark.parametrize("part", ["program", "floor"])
    def test_none_is_an_error_and_no_number(self, part):
        made = record(SINGLE)
        made["offered"][0][part]["raw"]["histogram"]["counts"] = []
        with pytest.raises(MeasurementError, match="no latency sample"):
            summary(SINGLE, made)
        made["offered"][0][part]["raw"]["histogram"]["counts"] = [[5, 0]]
        with pytest.raises(MeasurementError, match="no latency sample"):
            summary(SINGLE, made)

    def test_no_histogram_at_all_is_an_error(self):
        made = record(SINGLE)
        del made["offered"][0]["program"]["raw"]["histogram"]
        with pytest.raises(MeasurementError):
            summary(SINGLE, made)

    @pytest.mark.parametrize(
        ("samples", "told"),
        [
            (10, set()),
            (20, {"p50"}),
            (100, {"p50", "p75", "p90"}),
            (1000, {"p50", "p75", "p90", "p95", "p99"}),
            (10_000, {"p50", "p75", "p90", "p95", "p99", "p999"}),
            (100_000, set(PERCENTILES)),
        ],
    )
    def test_percentiles_that_they_do_not_support_are_left_out(self, samples, told):
        found = values(SINGLE, self.with_samples(samples))
        for part in ("latency", "latency_floor"):
            assert {p for p in PERCENTILES if f"{part}_{p}" in found} == told
            assert found[f"{part}_samples"] == samples
            assert {f"{part}_{e}" for e in EXTREMES} <= set(found)

    def test_percentiles_ascend(self):
        found = values(SINGLE, self.with_samples(100_000))
        some = [found[f"latency_{p}"] for p in PERCENTILES]
        assert some == sorted(some)
        assert found["latency_min"] <= some[0]
        assert some[-1] <= found["latency_max"]


class TestDamage:
    @pytest.mark.parametrize("key", ["alone", "ready", "offered"])
    def test_a_part_is_missing(self, key):
        made = record()
        del made[key]
        with pytest.raises(MeasurementError, match=f"missing or invalid field .*'{key}'"):
            summary(made=made)

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (("alone",), "nothing"),
            (("alone", "flags"), 3),
            (("search", "bounds"), []),
            (("search", "bounds", "ndr", "lower_pps"), None),
            (("overload", "receive_rate_pps"), "fast"),
            (("offered",), 5),
            (("offered", 0), "load"),
            (("offered", 0, "fraction"), None),
            (("offered", 0, "program", "lost"), None),
            (("offered", 0, "program", "raw"), None),
            (("offered", 0, "floor"), None),
            (("offered", 0, "program", "sent"), 0),
        ],
    )
    def test_a_part_is_garbled(self, path, value):
        made = record()
        part = made
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = value
        with pytest.raises(MeasurementError):
            summary(made=made)


class TestLog:
    START = 1_795_000_000.25

    def test_it_is_read_back_as_it_was(self):
        made = record()
        text = latency_log(made, self.START)
        logged = parse_hlog(text, "latency-0.hlog")
        assert [one.tag for one in logged] == [f"{t}-{f:g}" for f in (0.1, 0.5, 0.7) for t in ("load", "floor")]
        originals = [o[part]["raw"]["histogram"] for o in made["offered"] for part in ("program", "floor")]
        assert [one.histogram for one in logged] == [LatencyHistogram.from_record(o) for o in originals]
        assert {one.start_s for one in logged} == {self.START}
        assert {one.duration_s for one in logged} == {0.4}

    def test_one_rate_has_no_fraction(self):
        logged = parse_hlog(latency_log(record(SINGLE), self.START), "x")
        assert [one.tag for one in logged] == ["load", "floor"]

    def test_without_latencies_there_is_none(self):
        assert latency_log(record(replace(SINGLE, metrics=("loss_ratio",))), self.START) is None
        assert latency_log(record(replace(PLAN, fractions=())), self.START) is None

    def test_a_damaged_histogram(self):
        made = copy.deepcopy(record(SINGLE))
        made["offered"][0]["program"]["raw"]["histogram"]["counts"] = []
        with pytest.raises(MeasurementError, match="no latency sample"):
            latency_log(made, self.START)
