from __future__ import annotations

import pytest

from p4perf.errors import UsageError
from p4perf.evaluation.fitting.working_set import (
    CacheMark,
    WorkingSet,
    cache_marks,
    explain,
    parse_cache,
    parse_working_set,
    scholz2021_exact_table,
)


def test_figures_of_the_paper() -> None:
    table = scholz2021_exact_table(key_bytes=16, action_data_bytes=64)
    assert table.size_bytes(1000) == 128 + 1000 * 152
    assert table.x_at(20e6) == pytest.approx(1.32e5, rel=0.005)
    assert table.x_at(256e3) == pytest.approx(1.68e3, rel=0.005)


def test_marks_are_ascending_and_only_what_can_be_reached() -> None:
    marks = cache_marks(WorkingSet(40_000, 100), {"L3": 2**25, "L1": 32768, "L2": 2**20})
    assert [m.level for m in marks] == ["L2", "L3"]
    assert marks[0].x == pytest.approx((2**20 - 40_000) / 100)
    assert cache_marks(WorkingSet(0, 0), {"L1": 32768}) == ()
    with pytest.raises(UsageError, match="L1 must be positive"):
        cache_marks(WorkingSet(0, 1), {"L1": 0})


def test_explanations() -> None:
    marks = (CacheMark("L1", 32768, 200.0), CacheMark("L2", 2**20, 1000.0))
    near, between, far = explain([250.0, 700.0, 50_000.0], marks)
    assert near.mark == marks[0]
    assert near.ratio == pytest.approx(1.25)
    assert near.text("entries") == "breakpoint at 250: explained, L1 full at 200 entries (ratio 1.2)"
    assert between.mark == marks[1]
    assert far.mark is None
    assert "unexplained" in far.text()
    assert explain([0.0], marks)[0].mark is None
    assert explain([5.0], ())[0].mark is None


@pytest.mark.parametrize(
    ("text", "fixed", "each"),
    [("128+80", 128, 80), (" 64 + 16.5 ", 64, 16.5), ("scholz2021:16,64", 128, 152)],
)
def test_working_sets_are_read(text: str, fixed: float, each: float) -> None:
    assert parse_working_set(text) == WorkingSet(fixed, each)


@pytest.mark.parametrize("text", ["", "80", "128+", "-1+80", "scholz2021:16", "t4p4s:1,2"])
def test_other_texts_are_no_working_sets(text: str) -> None:
    with pytest.raises(UsageError, match="is not a working set"):
        parse_working_set(text)


def test_caches_are_read() -> None:
    assert parse_cache("L2=256KiB") == ("L2", 262144.0)
    assert parse_cache("L3 = 20 MB") == ("L3", 2e7)
    for text, message in (
        ("L2", "is not a cache"),
        ("=1MB", "is not a cache"),
        ("L2=much", "cache L2"),
        ("L2=1 GHz", "cache L2"),
    ):
        with pytest.raises(UsageError, match=message):
            parse_cache(text)
