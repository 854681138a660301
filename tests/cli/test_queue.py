"""p4perf estimate queue: what it prints, and how it refuses."""

import json

import pytest
from support.command import p4perf

BASE = ("estimate", "queue", "--service", "det:7us")


def printed(*arguments):
    done = p4perf(*arguments, "--format", "json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_poisson_is_a_poisson_process():
    """Small letters in the rate, and the name of the process by its interarrival time, mean the same."""
    options = ("--moderation", "100us", "--overhead", "4us")
    (row,) = printed(*BASE, "--arrivals", "poisson", "--rate", "0.1mpps", *options)["rows"]
    (same,) = printed(*BASE, "--arrivals", "exponential", "--rate", "100 kpps", *options)["rows"]
    (pmf,) = printed(*BASE, "--arrivals", "poisson-pmf", "--rate", "0.1Mpps", *options)["rows"]
    assert row["mean_us"] == same["mean_us"]
    assert row["std_us"] > 1.2 * pmf["std_us"]
    assert row["interarrival_us"] == pytest.approx(10)
    assert row["load"] == pytest.approx(0.7 + 4 / 110, rel=1e-3)


def test_profile_and_check():
    options = ("--arrivals", "det", "--rate", "33.333333kpps", "--buffer", "743", "--overhead", "4us", "--check")
    found = printed(*BASE, *options)
    assert found["buffer_us"] == 743 * 7
    assert found["rows"][0]["second_method"] < 1e-9
    assert found["rows"][0]["mean_us"] == pytest.approx(76.5, abs=0.1)
    literal = printed(*BASE, *options[:-1], "--profile", "printed")
    assert literal["rows"][0]["mean_us"] < 0.85 * found["rows"][0]["mean_us"]


def test_all_combinations():
    found = printed(
        *BASE, *("--arrivals", "det", "--arrivals", "nbin", "--rate", "50kpps", "--rate", "100kpps"),
        *("--moderation", "50us", "--moderation", "100us"),
    )  # fmt: skip
    assert len({(r["arrivals"], r["rate_mpps"], r["moderation_us"]) for r in found["rows"]}) == 8


def test_tuning(tmp_path):
    options = ("--rate", "0.1Mpps", "--overhead", "4us", "--buffer", "500us", "--moderation", "60us")
    (row,) = printed(*BASE, *options, "--tune", "mean", "--max-loss", "1e-6")["rows"]
    (fixed,) = printed(*BASE, *options)["rows"]
    assert row["mean_us"] < fixed["mean_us"]
    assert row["loss"] <= 1e-6
    overloaded = p4perf(*BASE, "--rate", "0.2Mpps", "--buffer", "500us", "--tune", "mean")
    assert overloaded.code == 6
    assert "keeps the loss" in overloaded.err


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--rate", "0.2Mpps"), "grows for ever"),
        (("--rate", "0.2Mpps"), "--buffer"),
        ((), "how many packets"),
        (("--rate", "5"), "--rate"),
        (("--rate", "0pps"), "not more than zero"),
        (("--rate", "0.1Mpps", "--moderation", "-5us"), "negative"),
        (("--rate", "0.1Mpps", "--moderation", "1.3us", "--lattice", "1us"), "too coarse"),
        (("--rate", "0.1Mpps", "--lattice", "50us"), "too coarse"),
        (("--rate", "0.1Mpps", "--lattice", "0us"), "longer than zero"),
        (("--rate", "0.1Mpps", "--mode", "poll", "--moderation", "5us"), "--moderation has no meaning"),
        (("--rate", "0.1Mpps", "--mode", "poll", "--tune", "mean"), "leave it out, or give --mode moderated"),
        (("--rate", "0.1Mpps", "--ring", "1024"), "--ring has no meaning with --mode moderated"),
        (("--rate", "0.1Mpps", "--batch-cost", "1us"), "leave it out, or give --mode poll"),
        (("--rate", "0.1Mpps", "--arrivals", "nowhere.csv"), "unknown arrivals"),
        (("--rate", "0.1Mpps", "--tune", "largest"), "neither mean nor a percentile"),
        (("--rate", "0.1Mpps", "--profile", "printed"), "need a limit"),
        (("--measured", "nowhere"), "there is no run"),
    ],
)
def test_refusals(options, what):
    done = p4perf(*BASE, *options)
    assert done.code == 2, done.err
    assert what in done.err
    assert not done.out
