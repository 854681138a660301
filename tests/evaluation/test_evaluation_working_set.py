from __future__ import annotations

import pytest

from p4perf.errors import UsageError
from p4perf.evaluation import CacheMark, WorkingSet, cache_marks, explain, scholz2021_exact_table


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
    assert "1.2 times where the working set fills L1" in near.text()
    assert between.mark == marks[1]
    assert far.mark is None
    assert "not explained" in far.text()
    assert explain([250.0], marks, factor=1.1)[0].mark is None
    assert explain([0.0], marks)[0].mark is None
    assert explain([5.0], ())[0].mark is None
    with pytest.raises(UsageError, match="factor"):
        explain([1.0], marks, factor=0.5)
