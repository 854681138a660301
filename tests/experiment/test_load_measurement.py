"""One repetition of a point with a load generator: what is asked of it, and what is kept of its answers."""

from dataclasses import replace

import pytest
from support.load_session import FakeSession

from p4perf.errors import MeasurementError
from p4perf.experiment.load import ATTEMPTS, GENERATOR_SHARE, LOWEST_PACKETS, WARMUP_S, LoadMeasurement, LoadPlan
from p4perf.specs.metrics import LOAD_METRICS
from p4perf.targets.link import LinkPlan
from p4perf.testbeds.loadgen.base import Counted, Spacing

PLAN = LoadPlan(
    generator="fake",
    link=LinkPlan("ring", 512),
    spacing=Spacing(),
    metrics=("latency",),
    rate_pps=1e6,
    fractions=(),
    single=True,
    search="bisection",
    width=0.005,
    pdr_loss_ratio=0.005,
    exceed_ratio=0.0,
    trials_per_load=1,
    max_trials=300,
    trial_s=0.2,
    latency_s=0.4,
)
SEARCHED = replace(PLAN, metrics=("throughput_ndr", "throughput_pdr"), rate_pps=None, single=False)


def measured(plan=PLAN, session=None, found=None, gate_ratio=0.25):
    session = session or FakeSession()
    return LoadMeasurement(session, plan, 1000, gate_ratio, found).measure(), session


class TestWhatIsAsked:
    def test_a_rate_with_latency(self):
        record, session = measured()
        seen = [(load.rate_pps, load.duration_s, load.device, load.latency) for load in session.asked]
        assert seen == [
            (None, WARMUP_S, "program", False),
            (None, 0.2, "null", False),
            (1e6, 0.4, "program", True),
            (1e6, 0.4, "null", True),
        ]
        assert set(record) == {"record_version", "generator", "link", "ready", "alone", "offered"}
        assert (record["generator"], record["link"]) == ("fake", {"kind": "ring", "slots": 512})
        assert record["ready"] == session.ready

    def test_only_loss_needs_no_latency(self):
        record, session = measured(replace(PLAN, metrics=("loss_ratio",)))
        assert not session.offered(latency=True)
        (offered,) = record["offered"]
        assert "floor" not in offered
        assert "histogram" not in offered["program"]["raw"]

    def test_only_a_search(self):
        record, session = measured(SEARCHED)
        assert record["offered"] == []
        assert "search" in record
        assert "overload" not in record
        assert not session.offered(latency=True)

    def test_an_overload(self):
        record, session = measured(replace(SEARCHED, metrics=("receive_rate",)))
        assert len(session.asked) == 3
        assert session.asked[2].rate_pps is None
        assert session.asked[2].device == "program"
        assert record["overload"]["receive_rate_pps"] == session.capacity_pps
        assert record["alone"]["receive_rate_pps"] == session.generator_pps
        assert "search" not in record

    def test_every_trial_has_a_seed_of_its_own_and_the_gate_ratio(self):
        _, session = measured(SEARCHED, gate_ratio=0.31)
        seeds = [load.seed for load in session.asked]
        assert len(set(seeds)) == len(seeds)
        assert set(session.gate_ratios) == {0.31}
        assert [load.seed for load in measured(SEARCHED)[1].asked] == seeds

    def test_the_spacing_is_that_of_the_plan(self):
        spacing = Spacing("burst", 8, None, 67.2)
        assert {load.spacing for load in measured(replace(PLAN, spacing=spacing))[1].asked} == {spacing}


class TestSearch:
    @pytest.mark.parametrize("search", ["bisection", "mlrsearch"])
    @pytest.mark.parametrize("capacity_pps", [50e3, 2e6, 7e6])
    def test_it_finds_the_capacity(self, search, capacity_pps):
        plan = replace(SEARCHED, search=search, trials_per_load=12, exceed_ratio=0.75)
        record, _ = measured(plan, FakeSession(capacity_pps))
        ndr, pdr = record["search"]["bounds"]["ndr"], record["search"]["bounds"]["pdr"]
        assert ndr["lower_pps"] == pytest.approx(capacity_pps, rel=plan.width)
        assert ndr["lower_pps"] <= capacity_pps * (1 + 1e-4) <= ndr["upper_pps"] * (1 + 2e-4)
        # Of more than is forwarded 0.5 % may be lost.
        assert pdr["lower_pps"] == pytest.approx(capacity_pps / 0.995, rel=2 * plan.width)
        assert record["search"]["end"] == "converged"
        assert record["search"]["method"] == search

    def test_it_stays_below_what_the_generator_does_alone(self):
        record, session = measured(SEARCHED, FakeSession(8e6, generator_pps=4e6))
        rates = [load.rate_pps for load in session.asked if load.rate_pps]
        assert max(rates) == pytest.approx(GENERATOR_SHARE * 4e6)
        assert record["search"]["bounds"]["ndr"]["flags"] == ["at_maximum"]

    def test_every_trial_is_in_the_record(self):
        record, session = measured(SEARCHED)
        searched = [load for load in session.asked if load.rate_pps]
        trials = record["search"]["trials"]
        assert [t[:2] for t in trials] == [[load.rate_pps, load.duration_s] for load in searched]
        for load_pps, duration_s, sent, lost, valid, counted, counted_s in trials:
            assert sent == round(load_pps * duration_s)
            assert lost == max(0, sent - round(2e6 * duration_s))
            assert (valid, counted, counted_s) == (1, 1, None)

    def test_packets_that_could_not_be_sent_are_lost(self):
        def spoil(n, load, account):
            short = load.rate_pps and load.rate_pps > 1e6
            return (
                replace(account, sent=account.sent // 2, received=account.received // 2, lost=0) if short else account
            )

        record, _ = measured(SEARCHED, FakeSession(spoil=spoil))
        assert record["search"]["bounds"]["ndr"]["lower_pps"] == pytest.approx(1e6, rel=0.005)

    @pytest.mark.parametrize("flag", ["preempted", "disturbed_core"])
    def test_loss_of_disturbed_trials_is_not_held_against_the_device(self, flag):
        """Every third trial is disturbed and loses much."""

        def flags(n, load):
            return (flag,) if n % 3 == 0 and load.rate_pps else ()

        def spoil(n, load, account):
            if n % 3 or not load.rate_pps:
                return account
            return replace(account, lost=account.sent // 10, received=account.sent - account.sent // 10)

        record, _ = measured(SEARCHED, FakeSession(flags=flags, spoil=spoil))
        found = record["search"]
        assert found["bounds"]["ndr"]["lower_pps"] == pytest.approx(2e6, rel=0.005)
        disturbed = [trial for trial in found["trials"] if not trial[4]]
        assert disturbed
        assert any(not trial[5] for trial in disturbed)
        assert all(trial[5] for trial in found["trials"] if trial[4])

    @pytest.mark.parametrize(("share", "trusted"), [(0.4, True), (0.39, False)])
    def test_what_is_undisturbed_is_judged_if_it_is_enough(self, share, trusted):
        """All loss is in the other part of each trial."""

        def spoil(n, load, account):
            if not load.rate_pps:
                return account
            kept = round(share * account.sent)
            lost = max(0, account.lost - account.sent + kept, round(share * account.lost))
            whole = replace(account, lost=min(account.sent, account.lost + account.sent // 3), flags=("preempted",))
            return replace(whole, counted=Counted(share, kept, kept, lost))

        record, _ = measured(SEARCHED, FakeSession(spoil=spoil))
        ndr = record["search"]["bounds"]["ndr"]
        if trusted:
            assert ndr["lower_pps"] == pytest.approx(2e6, rel=0.005)
            assert ndr["flags"] == []
            assert all(trial[6] == pytest.approx(0.4 * trial[1]) for trial in record["search"]["trials"])
        else:
            assert "disturbed" in ndr["flags"]

    def test_packets_that_could_not_be_sent_in_the_undisturbed_part_are_lost(self):
        def spoil(n, load, account):
            short = load.rate_pps and load.rate_pps > 1e6
            kept = account.sent // 2
            return replace(account, counted=Counted(0.5, kept, kept // 2 if short else kept, 0))

        record, _ = measured(SEARCHED, FakeSession(spoil=spoil))
        assert record["search"]["bounds"]["ndr"]["lower_pps"] == pytest.approx(1e6, rel=0.005)

    def test_shares_of_the_receive_rate_under_overload(self):
        plan = replace(PLAN, rate_pps=None, fractions=(0.5,), search="overload", trials_per_load=3)
        record, session = measured(plan)
        assert list(record["search"]["bounds"]) == ["overload"]
        (offered,) = record["offered"]
        assert offered["rate_pps"] == pytest.approx(0.5 * session.capacity_pps, rel=1e-6)

    @pytest.mark.parametrize("flag", ["no_realtime", "drift", "rate_off_target"])
    def test_other_flags_do_not_excuse_loss(self, flag):
        record, _ = measured(SEARCHED, FakeSession(flags=lambda n, load: (flag,)))
        assert all(trial[4] for trial in record["search"]["trials"])

    def test_what_was_found_is_not_searched_again(self):
        plan = replace(SEARCHED, metrics=("throughput_ndr", "latency"), fractions=(0.5,))
        found = measured(plan)[0]["search"]
        found = {**found, "searched_at": "another point"}
        record, session = measured(plan, FakeSession(capacity_pps=1e6), found)
        assert record["search"] == found
        assert {load.rate_pps for load in session.asked} == {None, 0.5 * found["bounds"]["ndr"]["lower_pps"]}

    def test_a_device_that_dies_ends_it(self):
        def spoil(n, load, account):
            if n == 7:
                raise MeasurementError("the device under test died (signal 11)")
            return account

        with pytest.raises(MeasurementError, match="signal 11"):
            measured(SEARCHED, FakeSession(spoil=spoil))


class TestFractions:
    PLAN = replace(SEARCHED, metrics=("latency", "loss_ratio"), fractions=(0.1, 0.5, 1.0))

    def test_they_are_of_the_rate_without_loss(self):
        record, session = measured(self.PLAN)
        ndr = record["search"]["bounds"]["ndr"]["lower_pps"]
        assert [(o["fraction"], o["rate_pps"]) for o in record["offered"]] == [(f, f * ndr) for f in (0.1, 0.5, 1.0)]
        programs = [load.rate_pps for load in session.offered(latency=True, device="program")]
        floors = [load.rate_pps for load in session.offered(latency=True, device="null")]
        assert programs == floors == [f * ndr for f in (0.1, 0.5, 1.0)]
        assert all(o["program"]["lost"] == 0 for o in record["offered"])

    def test_of_the_rate_with_little_loss_where_there_is_none_without(self):
        """One packet of every trial is lost: of the lowest load, where a trial has the fewest, no more than allowed."""
        allowed = 1.1 / LOWEST_PACKETS
        record, _ = measured(replace(self.PLAN, pdr_loss_ratio=allowed), FakeSession(always_lost=1))
        bounds = record["search"]["bounds"]
        assert bounds["ndr"]["lower_pps"] == 0
        assert bounds["pdr"]["lower_pps"] == pytest.approx(2e6 / (1 - allowed), rel=0.01)
        assert [o["rate_pps"] for o in record["offered"]] == [f * bounds["pdr"]["lower_pps"] for f in (0.1, 0.5, 1.0)]

    def test_of_nothing_where_every_load_loses_much(self):
        def spoil(n, load, account):
            if load.device == "null":
                return account
            return replace(account, lost=account.sent // 2 + 1, received=account.sent - account.sent // 2 - 1)

        record, session = measured(self.PLAN, FakeSession(spoil=spoil))
        assert record["offered"] == []
        assert not session.offered(latency=True)
        assert {"below_minimum"} <= set(record["search"]["bounds"]["pdr"]["flags"])


class TestDisturbance:
    def attempts(self, *flags_of_attempts):
        """The flags that the trials of the offered load have, one after the other; the last ones stay."""
        seen = []

        def flags(n, load):
            if not load.latency or load.device == "null":
                return ()
            seen.append(n)
            return flags_of_attempts[min(len(seen), len(flags_of_attempts)) - 1]

        record, session = measured(session=FakeSession(flags=flags))
        (offered,) = record["offered"]
        return offered["program"], seen, session

    @pytest.mark.parametrize("flag", ["preempted", "disturbed_core", "rate_off_target", "drift"])
    def test_a_disturbed_trial_is_repeated(self, flag):
        kept, seen, _ = self.attempts((flag,), ())
        assert len(seen) == 2
        assert (kept["flags"], kept["raw"]["number"]) == ([], seen[1])

    def test_the_least_disturbed_one_is_kept(self):
        kept, seen, _ = self.attempts(
            ("preempted", "drift", "disturbed_core"), ("preempted",), ("preempted", "drift"), ("drift",)
        )
        assert len(seen) == ATTEMPTS
        assert (kept["flags"], kept["raw"]["number"]) == (["preempted"], seen[1])

    @pytest.mark.parametrize("flag", ["no_realtime", "foreign_packets"])
    def test_what_another_attempt_would_meet_again_is_not_repeated(self, flag):
        kept, seen, _ = self.attempts((flag,))
        assert len(seen) == 1
        assert kept["flags"] == [flag]

    def test_loss_is_no_reason_to_repeat(self):
        record, session = measured(replace(PLAN, rate_pps=3e6))
        assert len(session.offered(latency=True, device="program")) == 1
        assert record["offered"][0]["program"]["lost"] == 400_000

    def test_the_generator_alone_and_the_overload_are_repeated_too(self):
        plan = replace(SEARCHED, metrics=("receive_rate",))
        session = FakeSession(flags=lambda n, load: ("preempted",) if n in (1, 3) else ())
        record, _ = measured(plan, session)
        assert [load.device for load in session.asked] == ["program", "null", "null", "program", "program"]
        assert (record["alone"]["raw"]["number"], record["overload"]["raw"]["number"]) == (2, 4)


class TestPlan:
    def test_what_decides_on_the_throughput(self):
        """Points that differ in their offered loads only share a search; nothing else may differ."""
        same = [
            replace(PLAN, rate_pps=None, fractions=(0.1,), metrics=("latency", "loss_ratio")),
            replace(PLAN, rate_pps=None, fractions=(0.2, 0.3), single=False, latency_s=1.0),
            replace(PLAN, metrics=LOAD_METRICS),
        ]
        assert {plan.of_search for plan in same} == {PLAN.of_search}
        others = {
            "link": LinkPlan("memif", 512),
            "spacing": Spacing("poisson"),
            "generator": "other",
            "search": "mlrsearch",
            "width": 0.01,
            "pdr_loss_ratio": 0.01,
            "exceed_ratio": 0.5,
            "trials_per_load": 2,
            "max_trials": 10,
            "trial_s": 0.3,
        }
        for key, value in others.items():
            assert replace(PLAN, **{key: value}).of_search != PLAN.of_search, key

    def test_more_to_do_is_expected_to_take_longer(self):
        plans = [
            PLAN,
            replace(PLAN, metrics=("latency", "receive_rate")),
            replace(SEARCHED, fractions=(0.5,)),
            replace(SEARCHED, fractions=(0.5, 0.7)),
        ]
        times = [plan.expected_s for plan in plans]
        assert times == sorted(set(times))
        assert times[2] > 10 * PLAN.trial_s + 2 * PLAN.latency_s
