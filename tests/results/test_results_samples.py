from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from p4perf.errors import DataError, NoVerdictError, UsageError
from p4perf.results.table import NO_ACCEPTED, STARTS_DISAGREE, Samples, median_interval, summarise


def table(**changes: object) -> pd.DataFrame:
    rows = [
        {
            "point": f"h{entries}",
            "point_index": index,
            "repetition": repetition,
            "attempt": 0,
            "entries": entries,
            "metric": metric,
            "value": 100.0 + entries + repetition,
            "unit": "cycles" if metric == "cycles_per_packet" else "bytes",
            "accepted": True,
            "flags": "",
        }
        for index, entries in enumerate([10, 1, 100])
        for repetition in range(5)
        for metric in ("cycles_per_packet", "memory_bytes")
    ]
    return pd.DataFrame(rows).assign(**changes)


def test_median_interval() -> None:
    values = np.random.default_rng(1).normal(100, 1, 51)
    median, low, high = median_interval(values)
    assert median == np.median(values)
    assert values.min() < low < median < high < values.max()
    assert median_interval(values) == (median, low, high)
    assert median_interval(values, resamples=20, seed=2) != median_interval(values, resamples=20)
    assert median_interval([7.0]) == (7.0, 7.0, 7.0)


@pytest.mark.parametrize("starts", [3, 6, 15])
def test_median_interval_covers(starts) -> None:
    rng = np.random.default_rng(5)
    inside = 0
    for seed in range(500):
        _, low, high = median_interval(rng.normal(0, 1, starts), resamples=400, seed=seed)
        inside += low <= 0 <= high
    assert 0.91 <= inside / 500 <= 0.98


@pytest.mark.parametrize("slow", range(1, 6))
def test_the_interval_of_starts_that_disagree_holds_all_of_them(slow) -> None:
    values = [100.0] * (6 - slow) + [106.0] * slow
    _, low, high = median_interval(values, disagree=True)
    assert low <= 100
    assert high >= 106
    narrow = median_interval([*values, *values], disagree=False)
    wide = median_interval([*values, *values], disagree=True)
    assert wide[2] - wide[1] > narrow[2] - narrow[1]


def test_the_flag_widens_every_interval() -> None:
    data = table()
    data.loc[data["entries"] == 10, "flags"] = f"no_hugepages,{STARTS_DISAGREE}"
    for out, plain in zip(
        summarise(data, "cycles_per_packet", ["entries"]).to_dict("records"),
        summarise(table(), "cycles_per_packet", ["entries"]).to_dict("records"),
        strict=True,
    ):
        assert (out["low"] < plain["low"]) == (out["entries"] == 10)
        assert (out["high"] > plain["high"]) == (out["entries"] == 10)
    samples = Samples.from_measurements(data, "cycles_per_packet", "entries")
    assert samples.disagreeing == (10.0,)
    rows = summarise(data, "cycles_per_packet", ["entries"])
    assert samples.intervals().tolist() == rows[["low", "high"]].to_numpy().tolist()


@pytest.mark.parametrize("values", [[], [np.nan], [1.0, np.inf]])
def test_median_interval_refuses(values) -> None:
    with pytest.raises(DataError, match="median"):
        median_interval(values)


def test_summarise() -> None:
    out = summarise(table(), "cycles_per_packet", ["entries"])
    assert out["entries"].tolist() == [1, 10, 100]
    assert out["median"].tolist() == [103.0, 112.0, 202.0]
    assert (out["low"] <= out["median"]).all()
    assert (out["median"] <= out["high"]).all()
    assert out["n"].tolist() == [5, 5, 5]
    assert set(out["unit"]) == {"cycles"}


def test_only_accepted_rows_count_and_points_without_are_reported() -> None:
    data = table()
    data.loc[data["entries"] == 10, ["accepted", "flags"]] = [False, "steal,unstable"]
    data.loc[(data["entries"] == 1) & (data["repetition"] > 2), "accepted"] = False
    data.loc[(data["entries"] == 1) & (data["repetition"] == 0), "flags"] = "no_hugepages"
    out = summarise(data, "cycles_per_packet", ["entries"]).set_index("entries")
    assert out.loc[1, "median"] == 102.0
    assert (out.loc[1, "n"], out.loc[1, "rejected"], out.loc[1, "flags"]) == (3, 2, "no_hugepages")
    assert np.isnan(out.loc[10, "median"])
    assert (out.loc[10, "n"], out.loc[10, "flags"]) == (0, f"{NO_ACCEPTED},steal,unstable")
    samples = Samples.from_measurements(data, "cycles_per_packet", "entries")
    assert samples.x == (1.0, 100.0)
    assert samples.missing == (10.0,)
    assert (samples.x_name, samples.y_name, samples.y_unit) == ("entries", "cycles_per_packet", "cycles")


def test_nothing_accepted() -> None:
    with pytest.raises(NoVerdictError, match="was accepted"):
        Samples.from_measurements(table(accepted=False), "cycles_per_packet", "entries")


def test_wrong_names_get_the_nearest() -> None:
    with pytest.raises(DataError, match="did you mean entries"):
        summarise(table(), "cycles_per_packet", ["entires"])
    with pytest.raises(DataError, match="did you mean cycles_per_packet"):
        summarise(table(), "cycle_per_packet", ["entries"])


def test_two_variables_make_no_curve() -> None:
    data = table()
    data["key_bits"] = data["repetition"] % 2
    with pytest.raises(UsageError, match="key_bits varies"):
        Samples.from_measurements(data, "cycles_per_packet", "entries")
    data["key_bits"] = 128
    assert len(Samples.from_measurements(data, "cycles_per_packet", "entries").x) == 3


def test_a_variable_of_names_makes_no_curve() -> None:
    data = table()
    data["entries"] = "many"
    with pytest.raises(DataError, match="is not numeric"):
        Samples.from_measurements(data, "cycles_per_packet", "entries")


def test_mixed_units() -> None:
    data = table()
    data.loc[0, "unit"] = "ns"
    with pytest.raises(DataError, match="several units"):
        summarise(data, "cycles_per_packet", ["entries"])


def test_samples_from_arrays() -> None:
    samples = Samples.from_arrays([2, 1, 2], [5.0, 1.0, 7.0])
    assert samples.x == (1.0, 2.0)
    assert samples.values == ((1.0,), (5.0, 7.0))
    assert samples.medians().tolist() == [1.0, 6.0]
    assert samples.intervals().shape == (2, 2)
    with pytest.raises(DataError, match="same number"):
        Samples.from_arrays([1.0], [])
    with pytest.raises(DataError, match="finite"):
        Samples.from_arrays([1.0], [np.nan])
