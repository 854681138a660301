"""Published models hold the numbers that their papers print, and nothing that was read off a plot."""

import numpy as np
import pytest

from p4perf.errors import UsageError
from p4perf.models.component import ComponentModel
from p4perf.models.published import find_published, is_published, papers, published_models, subject_of


def found(component, subject, metric=None):
    return find_published(component, subject, metric)


@pytest.mark.parametrize("model", published_models(), ids=lambda m: f"{subject_of(m)}-{m.name}-{m.y.name}")
def test_every_model_says_where_it_is_from(model):
    known = model.provenance
    assert is_published(model)
    assert known["paper"] in {p.key for p in papers()}
    assert known["section"]
    assert ("figure" in known) != ("equation" in known)
    assert known["remarks"]
    assert known["machine"]
    assert known["derived"] in (True, False)
    assert model.uncertainty is None
    assert ComponentModel.from_json(model.to_json()) == model


def test_the_exact_table_of_t4p4s():
    model = found("mat/exact-entries", "t4p4s@scholz2021")
    assert model.provenance["figure"] == 2
    assert model.provenance["increase_of"] == "cycles_per_packet"
    assert model.evaluate([1, 101]).tolist() == [0.0, pytest.approx(0.072 * 100)]
    assert model.derivative(50.0) == pytest.approx(0.072)
    assert model.domain == (1, 1000)
    segments = model.provenance["segments"]
    assert [p["function"] for p in segments] == ["linear", "logarithm", "linear", "constant"]
    assert [p["from"] for p in segments[:3]] == ["1", "circa 1e3", "circa 1e5"]
    assert len(model.fitting.segments) == 1
    assert model.provenance["printed"]["combined_error"] == 0.0073
    assert model.provenance["machine"]["cpu_model"] == "Intel Xeon E5-2640 v2"


def test_the_memory_of_equation_5():
    model = found("mat/exact-entries", "t4p4s@scholz2021", "memory_bytes")
    assert model.provenance["equation"] == 5
    assert model.evaluate(0.0) == 128
    assert model.evaluate(1.0) == 128 + 16 + 64 + 72
    # The paper solves it for 20 MB and 256 kB, and prints three digits.
    for capacity_bytes, entries in ((20e6, 1.32e5), (256e3, 1.68e3)):
        assert (capacity_bytes - 128) / 152 == pytest.approx(entries, rel=0.005)
        assert model.evaluate(entries) == pytest.approx(capacity_bytes, rel=0.005)


def test_the_load_of_the_card():
    model = found("path/recirculate-load-134B", "nfp4000@scholz2021")
    assert model.evaluate([1.0, 3.0, 5.7, 5.8, 10.0]).tolist() == [1.0, 3.0, 5.7, 4.9, 4.9]
    assert model.fitting.error == 0.0023
    large = found("path/recirculate-load-1500B", "nfp4000@scholz2021")
    assert large.evaluate([1.0, 10.0]).tolist() == [1.0, 10.0]


def test_the_capacity_of_the_card_follows_from_what_is_printed():
    model = found("path/recirculate", "nfp4000@scholz2021")
    assert model.provenance["derived"]
    once_mpps = 4.9e9 / (134 * 8) / 1e6
    assert model.evaluate(1.0) == pytest.approx(once_mpps)
    assert model.evaluate([3.0, 9.0]) == pytest.approx([2 * once_mpps / 4, 2 * once_mpps / 10])
    # Another printed number says the same: no loss of 275 B at line rate.
    assert model.evaluate(1.0) == pytest.approx(10e9 / (275 * 8) / 1e6, rel=0.01)
    assert model.domain == (1, 1)
    assert model.estimate(np.array([1.0, 2.0])).extrapolated.tolist() == [False, True]


@pytest.mark.parametrize(
    ("component", "subject", "metric", "message"),
    [
        ("mat/exact-entries", "t4p4s@nobody2020", None, "no published model t4p4s@nobody2020"),
        ("mat/lpm-entries", "t4p4s@scholz2021", None, "no curve of mat/lpm-entries"),
        ("mat/exact-entries", "nfp4000@scholz2021", None, "prints no number"),
        ("mat/exact-entries", "t4p4s@scholz2021", "latency", "has no latency"),
    ],
)
def test_what_is_not_published(component, subject, metric, message):
    with pytest.raises(UsageError, match=message) as caught:
        find_published(component, subject, metric)
    assert "known" in caught.value.hint or "published" in caught.value.hint
