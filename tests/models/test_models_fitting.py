from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from p4perf.errors import UsageError
from p4perf.models import Fitting, PiecewiseFitting
from p4perf.models.templates import find_template

LINE, CONST = find_template("poly1"), find_template("const")


def segments() -> tuple[Fitting, Fitting]:
    return Fitting(LINE, (0.0, 1.0), 1.0, 5.0, 0.01, 5), Fitting(CONST, (4.9,), 6.0, 10.0, 0.03, 15)


def test_eq_4_and_the_gap_belongs_to_the_left_segment() -> None:
    fitting = PiecewiseFitting.join(segments())
    assert fitting.breakpoints == (4,)
    assert fitting.breakpoint_x == (6.0,)
    assert fitting.evaluate([1.0, 5.0, 5.999, 6.0, 10.0, 99.0]) == pytest.approx([1.0, 5.0, 5.0, 4.9, 4.9, 4.9])
    assert float(fitting.evaluate(0.5)) == pytest.approx(0.5)


def test_error_and_rank_are_weighted_by_points() -> None:
    fitting = PiecewiseFitting.join(segments())
    assert fitting.error == pytest.approx(0.025)
    assert fitting.rank == pytest.approx(1.25)
    assert (fitting.points, fitting.free_parameters, fitting.domain) == (20, 3, (1.0, 10.0))


def test_what_does_not_belong_together_is_refused() -> None:
    left, right = segments()
    with pytest.raises(UsageError, match="takes 2 parameters"):
        Fitting(LINE, (1.0,), 0.0, 1.0, 0.0, 2)
    with pytest.raises(UsageError, match="need 1 breakpoints"):
        PiecewiseFitting((left, right), (), 0.0, 1.0)
    with pytest.raises(UsageError, match="follow each other"):
        PiecewiseFitting.join((right, left))
    with pytest.raises(UsageError, match="match its breakpoints"):
        PiecewiseFitting((left, right), (3,), 0.0, 1.0)


def test_shape_is_kept() -> None:
    assert PiecewiseFitting.join(segments()).evaluate(np.ones((2, 3))).shape == (2, 3)


def test_slopes_by_eq_4() -> None:
    fitting = PiecewiseFitting.join(segments())
    assert fitting.derivative([[0.0, 5.0], [5.999, 6.0]]).tolist() == [[1.0, 1.0], [0.0, 0.0]]
    rising = PiecewiseFitting.join((segments()[0], replace(segments()[1], parameters=(5.5,))))
    assert rising.derivative([5.4, 5.6]).tolist() == [1.0, 0.0]
    assert rising.evaluate([5.4, 5.6]).tolist() == [5.4, 5.5]


def test_a_pole_between_segments_is_no_value() -> None:
    """1 / (0.2 - 0.012 x) is 50 at 15 and endless at 16.67; the next segment begins at 18 with 79."""
    left = Fitting(find_template("inv_poly1"), (0.2, -0.012), 1.0, 15.0, 0.01, 15)
    fitting = PiecewiseFitting.join((left, Fitting(CONST, (79.0,), 18.0, 30.0, 0.01, 13)))
    assert fitting.evaluate([15.0, 15.5, 16.6, 17.0, 18.0]) == pytest.approx([50, 71.43, 79, 50, 79], rel=1e-4)


def test_ranks_can_be_given() -> None:
    left, right = segments()
    assert (left.rank, replace(left, rank=7.0).rank) == (2.0, 7.0)
    assert PiecewiseFitting.join((replace(left, rank=7.0), right)).rank == pytest.approx((7 * 5 + 15) / 20)
