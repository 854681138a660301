"""What is said to the native load generator, what its answers mean, and what is wrong with them."""

import json
from contextlib import contextmanager

import pytest
from support.load_session import READY, columns, histogram

from p4perf.errors import CapabilityError, MeasurementError
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.targets.base import NodeFacts
from p4perf.targets.dpdk_c import DpdkCTarget
from p4perf.targets.link import LinkPlan
from p4perf.testbeds.loadgen.base import Counted, Load, Spacing
from p4perf.testbeds.loadgen.native import (
    LONGEST_SEGMENT_MS,
    QUEUE_SHARE,
    SEGMENT_MS,
    NativeGenerator,
    Segments,
    account,
)

TWO = NodeFacts({"cpus_allowed": "0-1"})
SLOTS = 1024
AT_1M = Load(1e6, 0.2)


class Scripted:
    """A testbed whose only program answers as told."""

    def __init__(self, *answers):
        self.answers, self.asked, self.timeouts, self.jobs, self.ended = list(answers), [], [], [], 0

    def node(self, role):
        return self

    @contextmanager
    def converse(self, job, folder):
        self.jobs.append(job)
        try:
            yield self
        finally:
            self.ended += 1

    def answer(self, timeout_s):
        self.timeouts.append(timeout_s)
        answer = self.answers.pop(0)
        return answer if isinstance(answer, str) else json.dumps(answer)

    def ask(self, line, timeout_s):
        self.asked.append(line)
        return self.answer(timeout_s)


@pytest.fixture
def opened(tmp_path):
    """Opens a session with a program that answers as told, the ready line first unless it is given."""

    @contextmanager
    def opened(*answers, ready=READY, link=None, facts=TWO, frame_size=64):
        testbed, target = Scripted(ready, *answers), DpdkCTarget()
        workload = build_workload([("l2fwd", {})], frame_size_bytes=frame_size)
        plan = target.plan(workload, TrafficPlan(frame_size), facts)
        with NativeGenerator().open(target, plan, link or LinkPlan(), testbed, facts, tmp_path) as session:
            yield session, testbed

    return opened


@pytest.fixture
def words(opened):
    """The words of an offer, by key."""

    def words(load, slots=SLOTS):
        with opened(columns(), link=LinkPlan(slots=slots)) as (session, testbed):
            session.offer(load)
        (line,) = testbed.asked
        order, *pairs = line.split(" ")
        assert order == "offer"
        found = dict(pair.split("=") for pair in pairs)
        assert len(found) == len(pairs), "a word is there twice"
        return found

    return words


class TestWords:
    def test_a_constant_rate(self, words):
        found = words(Load(1e6, 0.25, seed=7))
        numbers = {key: float(found.pop(key)) for key in ("rate_pps", "duration_ms", "seed", "latency")}
        assert numbers == {"rate_pps": 1e6, "duration_ms": 250.0, "seed": 7, "latency": 0}
        assert (found["device"], found["pattern"]) == ("program", "cbr")
        assert "burst" not in found

    @pytest.mark.parametrize("device", ["program", "baseline", "null"])
    def test_the_device(self, words, device):
        found = words(Load(1e6, 0.25, device=device, latency=True))
        assert (found["device"], found["latency"]) == (device, "1")
        assert "lose" not in found

    def test_faults(self, words):
        found = words(Load(1e6, 0.25, device="faulty", faults=(1_000_000, 20, 0)))
        assert [found[k] for k in ("device", "lose", "duplicate", "swap")] == ["faulty", "1000000", "20", "0"]

    def test_rates_are_told_to_the_millionth(self, words):
        assert float(words(Load(123456.789012, 0.2))["rate_pps"]) == pytest.approx(123456.789012, abs=1e-6)
        assert float(words(Load(0.5, 0.2))["rate_pps"]) == 0.5

    def test_as_much_as_possible_has_no_pattern(self, words):
        """Nothing can be spaced without a rate, so an overload is without pauses, whatever the point says."""
        found = words(Load(None, 0.2, Spacing("poisson")))
        assert float(found["rate_pps"]) == 0
        assert "pattern" not in found
        assert "pattern" not in words(Load(None, 0.2, Spacing("burst", 16)))

    def test_bursts_with_what_the_rate_leaves(self, words):
        found = words(Load(1e6, 0.2, Spacing("burst", 64, None, 67.2)))
        assert (found["pattern"], found["burst"]) == ("burst", "64")
        assert (float(found["burst_spacing_ns"]), float(found["burst_gap_us"])) == (67.2, 0)

    def test_bursts_with_a_gap_need_no_rate(self, words):
        found = words(Load(None, 0.2, Spacing("burst", 8, 12.5)))
        assert (found["pattern"], found["burst"], float(found["burst_gap_us"])) == ("burst", "8", 12.5)

    def test_poisson(self, words):
        assert words(Load(1e6, 0.2, Spacing("poisson")))["pattern"] == "poisson"


class TestSegments:
    @pytest.mark.parametrize(
        ("rate_pps", "slots"), [(1e3, 32), (1e4, 1024), (1e6, 1024), (2e6, 1024), (5e6, 32), (1e6, 32768), (1e7, 4096)]
    )
    def test_the_link_holds_a_small_share_of_a_segment_unless_that_takes_too_long(self, words, rate_pps, slots):
        segment_ms = float(words(Load(rate_pps, 1.0), slots)["segment_ms"])
        assert SEGMENT_MS <= segment_ms <= LONGEST_SEGMENT_MS
        packets = 1e-3 * segment_ms * rate_pps
        assert slots <= 1.0001 * QUEUE_SHARE * packets or segment_ms == LONGEST_SEGMENT_MS
        if segment_ms > SEGMENT_MS:
            assert slots >= 0.9999 * QUEUE_SHARE * packets, "longer than it needs to be"

    def test_an_overload_has_the_shortest(self, words):
        assert float(words(Load(None, 1.0))["segment_ms"]) == SEGMENT_MS


class TestSession:
    def test_it_waits_for_the_program_and_the_time_of_the_trial(self, opened):
        with opened(columns(), columns()) as (session, testbed):
            session.offer(Load(1e6, 0.2))
            session.offer(Load(1e6, 20.0))
        start, short, long = testbed.timeouts
        assert start == testbed.jobs[0].timeout_s
        assert short > 0.2
        assert long > 20 + short - 0.2
        assert testbed.ended == 1

    def test_what_a_pipeline_says_of_itself_is_skipped(self, opened):
        with opened(READY, ready='{"pipeline": {"instructions": 12}}') as (session, _):
            assert session.ready == READY

    def test_the_program_ends_with_the_body(self, opened):
        with pytest.raises(KeyError, match="body"), opened() as (_, testbed):
            raise KeyError("body")
        assert testbed.ended == 1

    def test_one_cpu_is_too_few(self, opened):
        (problem,) = NativeGenerator().problems(NodeFacts({"cpus_allowed": "1"}))
        assert "a CPU each" in problem.what
        assert NativeGenerator().problems(TWO) == ()
        with pytest.raises(CapabilityError, match="a CPU each"), opened(facts=NodeFacts({"cpus_allowed": "1"})):
            pass

    def test_frames_without_room_are_refused_before_anything_starts(self, opened):
        with pytest.raises(CapabilityError, match="stamp"), opened(link=LinkPlan(sizes_bytes=(30, 64))):
            pass

    @pytest.mark.parametrize(
        ("line", "message", "key"),
        [
            ({"error": "no memory for the packet pool", "kind": "memory"}, "no memory for the packet pool", None),
            ({"error": "packet 3 differs at byte 7", "kind": "verify"}, "packet 3 differs at byte 7", "verify"),
            ({**READY, "load_version": 2}, "another version", None),
            ({"ready": True}, "another version", None),
            ({"load_version": 1}, "another version", None),
            ('{"load_version": 1, "rea', "damaged JSON", None),
        ],
    )
    def test_a_bad_start(self, opened, line, message, key):
        with pytest.raises(MeasurementError, match=message) as caught, opened(ready=line):
            pass
        assert caught.value.key == key

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ({"error": "the device under test hangs", "kind": "device"}, "the device under test hangs"),
            (READY, "another version"),
            ('{"segments": ', "damaged JSON"),
            ("{1: 2}", "damaged JSON"),
        ],
    )
    def test_a_bad_answer(self, opened, line, message):
        with opened(line) as (session, _), pytest.raises(MeasurementError, match=message):
            session.offer(AT_1M)


class TestAccount:
    def test_nothing_is_wrong(self):
        found = account(columns(), AT_1M, SLOTS, 0.25)
        assert (found.planned, found.sent, found.received) == (200_000, 200_000, 200_000)
        assert (found.lost, found.duplicated, found.reordered, found.dropped) == (0, 0, 0, 0)
        assert found.loss_ratio == 0
        assert found.flags == ()
        assert found.histogram is None
        assert found.raw == columns()

    def test_segments_are_added_up(self):
        record = columns(3, sent=[10, 20, 30], planned=[10, 20, 31], received=[9, 18, 27], reordered=[1, 0, 2])
        found = account(record, AT_1M, SLOTS, None)
        assert (found.planned, found.sent, found.received, found.lost, found.reordered) == (61, 60, 54, 6, 3)
        assert found.loss_ratio == 0.1

    def test_what_the_program_drops_is_not_lost(self):
        found = account(columns(received=60_000, device_dropped=39_990), AT_1M, SLOTS, None)
        assert (found.dropped, found.lost) == (79_980, 20)

    def test_lost_in_front_of_the_device_is_lost(self):
        found = account(columns(received=99_900, link_full=60, device_tx_full=40), AT_1M, SLOTS, None)
        assert found.lost == 200

    def test_copies_of_the_program_are_no_duplicates(self):
        assert account(columns(duplicated=100_003, device_copies=100_000), AT_1M, SLOTS, None).duplicated == 6
        # A copy may be lost, which makes fewer duplicates than copies and no negative number of them.
        assert account(columns(duplicated=90_000, device_copies=100_000), AT_1M, SLOTS, None).duplicated == 0

    def test_a_rate_is_intervals_over_time(self):
        """11 packets that take 1 ms from the first to the last come every 100 us, whatever the number of segments."""
        for segments in (1, 4):
            record = columns(segments, sent=11, planned=11, received=11, sending_us=1000.0)
            assert account(record, Load(1e4, 0.1), SLOTS, None).rate_pps == pytest.approx(1e4, rel=1e-12)

    def test_what_came_back_while_sending_makes_the_receive_rate(self):
        found = account(columns(received_while_sending=50_000, received=70_000), AT_1M, SLOTS, None)
        assert found.receive_rate_pps == pytest.approx(100_000 / 0.199998)

    def test_one_packet_has_no_rate(self):
        found = account(columns(1, sent=1, planned=1, received=1, sending_us=0.0), Load(10, 0.1), SLOTS, None)
        assert (found.rate_pps, found.receive_rate_pps, found.flags) == (0.0, 0.0, ())

    def test_what_is_not_planned_was_planned_as_sent(self):
        assert account(columns(planned=0), Load(None, 0.2), SLOTS, None).planned == 200_000

    def test_latencies_are_handed_on(self):
        some = histogram(3.0, 1000)
        assert account({**columns(), "histogram": some}, AT_1M, SLOTS, None).histogram == some


COLUMNS = [key for key, value in columns().items() if isinstance(value, list)]


class TestDamage:
    @pytest.mark.parametrize("key", COLUMNS)
    def test_a_column_is_missing(self, key):
        record = columns()
        del record[key]
        with pytest.raises(MeasurementError, match=key):
            account(record, AT_1M, SLOTS, 0.25)

    @pytest.mark.parametrize("key", COLUMNS)
    def test_a_column_is_too_short(self, key):
        with pytest.raises(MeasurementError, match="different lengths"):
            account(columns(2, **{key: [columns()[key][0]]}), AT_1M, SLOTS, 0.25)

    @pytest.mark.parametrize("value", ["12", None, True, [1]])
    def test_a_number_is_none(self, value):
        with pytest.raises(MeasurementError, match="missing or invalid field"):
            account(columns(2, sent=[100_000, value]), AT_1M, SLOTS, 0.25)

    def test_a_column_is_no_list(self):
        with pytest.raises(MeasurementError, match="missing or invalid field"):
            account({**columns(), "sent": 5}, AT_1M, SLOTS, 0.25)

    def test_there_is_no_segment(self):
        with pytest.raises(MeasurementError, match="different lengths"):
            Segments.of(columns(0))


class TestCounted:
    def test_the_whole_trial(self):
        found = account(columns(4, received=[100_000, 99_000, 100_000, 98_000]), Load(1e6, 0.4), SLOTS, None)
        assert found.counted == Counted(1.0, 400_000, 400_000, 3000)
        assert found.lost == 3000

    def test_without_what_was_disturbed(self):
        record = columns(4, received=[100_000, 99_000, 100_000, 98_000], switches=[0, 0, 0, 1])
        found = account(record, Load(1e6, 0.4), SLOTS, None)
        assert found.counted == Counted(0.75, 300_000, 300_000, 1000)
        assert (found.lost, found.flags) == (3000, ("preempted",))

    def test_what_the_program_drops_is_not_lost(self):
        found = account(columns(2, received=60_000, device_dropped=30_000), Load(1e6, 0.2), SLOTS, None)
        assert found.counted == Counted(1.0, 200_000, 200_000, 20_000)

    def test_nothing_is_left(self):
        found = account(columns(2, device_switches=1), Load(1e6, 0.2), SLOTS, None)
        assert found.counted == Counted(0.0, 0, 0, 0)
