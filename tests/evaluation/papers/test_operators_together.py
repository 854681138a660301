"""Two operators together, and two measurements of the same."""

import pytest
from support.operators import SIZES, made_costs, made_platform, power

from p4perf.errors import NoVerdictError
from p4perf.evaluation.papers.ren2025 import OpqOptions, Threshold, analyse
from p4perf.evaluation.papers.ren2025.analysis import agreement, interactions

A, B = power(80, 0.2), power(30, 0.6)


def pair(extra=lambda s: 0.0, **more):
    curve = lambda s: A(s) + B(s) + extra(s)  # noqa: E731
    return made_costs("a+b", curve, seed=9, **more), (made_costs("a", A, **more), made_costs("b", B, seed=5, **more))


class TestInteractions:
    def test_what_adds_up_is_additive(self):
        together, alone = pair(noise=0.003)
        found = interactions([together], alone)
        assert [each.size_bytes for each in found] == list(SIZES)
        assert sum(each.additive for each in found) >= len(SIZES) - 1

    def test_an_overlap_is_found_with_its_size(self):
        together, alone = pair(lambda s: -25.0, noise=0.003)
        for each in interactions([together], alone):
            assert each.extra.low < -25 < each.extra.high or abs(each.extra.value + 25) < 3
            assert not each.additive
            assert each.extra.value == pytest.approx(each.together.value - each.alone.value)

    def test_intervals_cover(self):
        held = total = 0
        for seed in range(150):
            alone = made_costs("a", A, noise=0.03, seed=seed), made_costs("b", B, noise=0.03, seed=1000 + seed)
            together = made_costs("a+b", lambda s: A(s) + B(s) - 12, noise=0.03, seed=2000 + seed, sizes=(64,))
            (each,) = interactions([together], alone, resamples=300)
            held += -12.0 in each.extra
            total += 1
        assert held / total == pytest.approx(0.95, abs=0.05)

    def test_what_is_below_the_resolution_is_no_interaction(self):
        together, alone = pair(lambda s: 2.0, noise=0, resolution=3.0)
        assert all(each.additive and each.resolution_cycles == 3.0 for each in interactions([together], alone))
        together, alone = pair(lambda s: 4.0, noise=0, resolution=3.0)
        assert not any(each.additive for each in interactions([together], alone))

    def test_single_repetitions_have_no_interval(self):
        together, alone = pair(starts=1)
        assert not any(each.extra.bounded for each in interactions([together], alone))

    def test_only_what_was_measured_alone_as_well(self):
        together, alone = pair()
        assert interactions([together], alone[:1]) == ()
        some = made_costs("b", B, sizes=(64, 1500))
        assert [each.size_bytes for each in interactions([together], [alone[0], some])] == [64, 1500]

    def test_they_are_part_of_an_analysis_and_no_operators(self):
        together, alone = pair(lambda s: -25.0)
        found = analyse([made_platform(*alone, pairs=[together])], OpqOptions(threshold=Threshold.parse("50")))
        assert [p.profile.operator for p in found.placements] == ["a", "b"]
        assert {(each.first, each.second) for each in found.interactions} == {("a", "b")}


class TestAgreement:
    def judged(self, first, second):
        (each,) = agreement(
            made_platform(made_costs("a", lambda s: first, sizes=(64,), noise=0)),
            made_platform(made_costs("a", lambda s: second, sizes=(64,), noise=0)),
        )
        return each.compared, each.agrees

    @pytest.mark.parametrize(
        ("first", "second", "compared", "agrees"),
        [
            (100, 109.9, True, True),
            (100, 110.1, True, False),
            (110.1, 100, True, False),
            (10, 12, True, True),
            (10, 12.1, True, False),
            (4.9, 1.0, False, True),
            (5.0, 5.0, False, True),
            (5.1, 3.2, True, True),
            (5.1, 3.0, True, False),
            (-3.0, 9.0, True, False),
        ],
    )
    def test_within_ten_percent_or_two_cycles(self, first, second, compared, agrees):
        assert self.judged(first, second) == (compared, agrees)

    def test_pairs_are_compared_and_what_is_missing_is_not(self):
        together, alone = pair()
        first = made_platform(*alone, pairs=[together])
        second = made_platform(alone[0], made_costs("c"), pairs=[together])
        assert [each.operator for each in agreement(first, second)] == ["a"] * 6 + ["a+b"] * 6

    def test_nothing_in_common(self):
        first, second = made_platform(made_costs("a")), made_platform(made_costs("b"), name="there")
        with pytest.raises(NoVerdictError, match="share no operator"):
            analyse([first, second], agree=(first, second))
