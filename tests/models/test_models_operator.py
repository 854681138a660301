"""The laws of operators: Eq. 4 of Ren et al. 2025 written with C(64), and the line."""

import pytest

from p4perf.errors import NoVerdictError
from p4perf.models.operator import AffineLaw, OperatorModel, PowerLaw


def test_a_power_law_written_with_the_base_cost():
    law = PowerLaw(823, 1.37)
    assert law.evaluate([64, 128, 256]) == pytest.approx([823, 2127.2, 5498.2], abs=0.1)
    assert law.text() == "823 (s / 64)^1.37"


def test_the_text_of_a_line():
    assert AffineLaw(-8, 0.375).text() == "-8 + 0.375 s"
    assert AffineLaw(8, -0.5).text() == "8 - 0.5 s"


def test_the_better_law_predicts():
    power, line = PowerLaw(10, 1), AffineLaw(5, 0.1)
    for better, expected in (("power", 20), ("affine", 17.8), ("undecided", 20)):
        assert OperatorModel("op", "here", (64, 256), power, line, better).evaluate(128) == pytest.approx(expected)


def test_what_cannot_be_seen_has_no_model():
    with pytest.raises(NoVerdictError, match=r"htons on here has no model: it costs less than 1\.2 cycles"):
        OperatorModel("htons", "here", (64, 256), None, below_cycles=1.2).evaluate(64)
    with pytest.raises(NoVerdictError, match="too few sizes"):
        OperatorModel("htons", "here", (64, 64), None).evaluate(64)
