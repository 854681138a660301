"""Batches and stolen time of a device, from records such as the native load generator prints."""

import pytest

from p4perf.errors import NoVerdictError
from p4perf.evaluation.load import LatencyHistogram
from p4perf.evaluation.load.batches import BatchCost, StolenTime, latency, slower_behind_stolen

SIZES = range(33)


def record(batch=0.1, packet=0.05, idle=0.04, empty=0.012, count=1000, stalls=(), device_stalls=()):
    """What a generator says of batches that cost exactly this [us]; stalls as (bit, number, us together)."""

    def cells(more, looks):
        times = [(looks, looks * empty), *((count, count * (batch + n * packet + more)) for n in SIZES[1:])]
        return [list(cell) for cell in times]

    def stood(given):
        return [next(([n, us] for bit, n, us in given if bit == k), [0, 0.0]) for k in range(40)]

    return {
        "batches_after_work": cells(0, 0),
        "batches_after_idle": cells(idle, 1_000_000),
        "sending_us": [50_000.0, 50_000.0],
        "stalls": stood(stalls),
        "device_stalls": stood(device_stalls),
    }


def test_the_line_is_found():
    found = BatchCost.of([record()])
    assert (found.batch_us, found.packet_us, found.idle_us) == pytest.approx((0.1, 0.05, 0.04))
    assert found.empty_us == pytest.approx(0.012)


def test_few_batches_say_nothing():
    with pytest.raises(NoVerdictError, match="too few"):
        BatchCost.of([record(count=5)])


def test_sizes_that_were_hardly_seen_do_not_count():
    odd = record()
    odd["batches_after_work"][20] = [5, 500.0]
    assert BatchCost.of([odd]).packet_us == pytest.approx(0.05)


def test_stolen_time_is_a_share_of_the_time_in_which_it_is_seen():
    found = StolenTime.of([record(stalls=[(14, 10, 200.0)], device_stalls=[(14, 6, 120.0)])])
    assert found.generator == ((0.002, 20.0),)
    assert found.device == ((0.01, 20.0),)
    assert found.share == pytest.approx(0.012)


@pytest.mark.parametrize("load", [0.1, 0.5])
def test_stolen_time_delays_what_comes_until_it_is_worked_off(load):
    delay = StolenTime(device=((0.01, 20.0),), generator=((0.02, 10.0),)).delay(load, 0.01)
    device, generator = 0.01 / (1 - load) * 20 / 2, 0.02 / (1 - load) * 10 * load / 2
    assert delay.mean * 0.01 == pytest.approx(device + generator, rel=0.01)
    assert delay.last * 0.01 == pytest.approx(20, rel=0.01)


def test_nothing_is_stolen():
    assert StolenTime((), ()).delay(0.5, 0.01).mean == 0


FLOOR = LatencyHistogram.from_record(
    {"lowest": 1, "highest": 10**10, "digits": 3, "min_ns": 300, "max_ns": 300, "overflow": 0, "counts": [[300, 99]]}
)


def test_latency_of_single_packets_is_link_and_batch():
    """At a low rate all batches are one packet: what is beyond a device that does nothing is what the program does."""
    nothing, program = BatchCost(0.1, 0.0, 0.0, 0.01), BatchCost(0.15, 0.2, 0.05, 0.01)
    found = latency(program, nothing, FLOOR, StolenTime((), ()), rate_pps=1e4, most_pps=1e7, ring=1024, step_us=0.005)
    assert found.mean * 0.005 == pytest.approx(0.3 + (0.15 + 0.2 + 0.05) - 0.1, abs=0.01)


@pytest.mark.parametrize("factor", [1.0, 1.5, 2.5])
def test_slower_work_behind_stolen_time_is_found_by_the_latency(factor):
    nothing, program = BatchCost(0.1, 0.0, 0.0, 0.01), BatchCost(0.15, 0.2, 0.05, 0.01)
    stolen = StolenTime((), ((0.05, 20.0),))

    def at(slower):
        return latency(
            program, nothing, FLOOR, stolen, rate_pps=1e6, most_pps=3e6, ring=64, step_us=0.005, slower=slower
        )

    assert slower_behind_stolen(at(factor).quantile(0.99) * 0.005, at, 0.005) == factor
    assert slower_behind_stolen(1e6, at, 0.005) == 3.0
