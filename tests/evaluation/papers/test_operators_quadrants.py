"""Quadrants: borders and ties, thresholds, probabilities, shifts between platforms, ratios."""

import numpy as np
import pytest
from support.operators import made_costs, made_platform, power

from p4perf.errors import NoVerdictError, UsageError
from p4perf.evaluation.papers.ren2025 import OpqOptions, Threshold, analyse
from p4perf.evaluation.papers.ren2025.costs import OperatorCosts, Platform, StatedLaw, same_operator
from p4perf.evaluation.papers.ren2025.profiles import profile
from p4perf.evaluation.papers.ren2025.quadrants import AVOID, STRATEGIES, Quadrant, place, quadrant_of
from p4perf.models.operator import PowerLaw


def stated(name, base, exponent, platform="here", same_as=()):
    return StatedLaw(name, platform, PowerLaw(base, exponent), None, (64, 128, 256), same_as)


def placed(*rows, threshold="global-median", **more):
    return place([profile(row) for row in rows], Threshold.parse(threshold, **more))


class TestBorders:
    def test_the_four_quadrants(self):
        assert quadrant_of(1.3, True) is Quadrant.LATENT_TRAP
        assert quadrant_of(0.3, True) is Quadrant.HIGH_STARTUP
        assert quadrant_of(0.3, False) is Quadrant.IDEAL
        assert quadrant_of(1.3, False) is Quadrant.EMERGENT

    def test_an_exponent_of_one_does_not_accelerate(self):
        assert quadrant_of(1.0, True) is Quadrant.HIGH_STARTUP
        assert quadrant_of(1.0, False) is Quadrant.IDEAL

    def test_every_quadrant_has_a_strategy(self):
        assert set(STRATEGIES) == set(Quadrant)
        dear, cheap = placed(stated("a", 5000, 0.1), stated("b", 20, 0.1), threshold="49")
        assert dear.strategy == AVOID
        assert cheap.strategy == STRATEGIES[Quadrant.IDEAL]


class TestThresholds:
    @pytest.mark.parametrize(("ties", "said"), [("high", Quadrant.HIGH_STARTUP), ("low", Quadrant.IDEAL)])
    @pytest.mark.parametrize("rule", ["global-median", "lower-median", "platform-median", "30"])
    def test_ties(self, rule, ties, said):
        rows = [stated(name, base, 0.5) for name, base in (("a", 10), ("b", 30), ("c", 90))]
        assert [p.quadrant for p in placed(*rows, threshold=rule, ties=ties)] == [
            Quadrant.IDEAL, said, Quadrant.HIGH_STARTUP,
        ]  # fmt: skip

    def test_each_platform_has_its_own_median(self):
        rows = [stated("a", 10, 0.5, "p"), stated("b", 20, 0.5, "p"), stated("a", 100, 0.5, "q")]
        assert [p.threshold_cycles for p in placed(*rows, threshold="platform-median")] == [15, 15, 100]

    def test_rows_that_are_no_part_of_the_median(self):
        rows = [stated("a", 10, 0.5, "p"), stated("b", 20, 0.5, "p"), stated("a", 100, 0.5, "q")]
        assert {p.threshold_cycles for p in placed(*rows, threshold="global-median", without=["a"])} == {20}
        assert {p.threshold_cycles for p in placed(*rows, threshold="lower-median", of="p")} == {10}
        with pytest.raises(NoVerdictError, match="no base cost to take a median of"):
            placed(*rows, without=["a", "b"])

    def test_what_is_below_the_resolution_counts_as_that_and_is_low(self):
        unseen = made_costs("tiny", lambda s: 0.01 * s, noise=0, resolution=2.0)
        for ties in ("high", "low"):
            low, _, high = placed(unseen, stated("b", 20, 0.5), stated("c", 90, 0.5), ties=ties)
            assert low.threshold_cycles == 20
            assert (low.quadrant, high.quadrant) == (Quadrant.IDEAL, Quadrant.HIGH_STARTUP)
        (alone,) = placed(unseen)
        assert (alone.threshold_cycles, alone.quadrant) == (2.0, Quadrant.IDEAL)

    @pytest.mark.parametrize("text", ["median", "0", "-3", "nan", "inf", ""])
    def test_what_is_no_rule(self, text):
        with pytest.raises(UsageError, match="threshold"):
            Threshold.parse(text)

    def test_rows_cannot_be_chosen_for_a_number(self):
        for more in ({"without": ["a"]}, {"of": "x86"}):
            with pytest.raises(UsageError, match="no rows to choose"):
                Threshold.parse("38", **more)
        with pytest.raises(UsageError, match="not a median for each platform"):
            Threshold.parse("platform-median", of="x86")


class TestProbabilities:
    def test_far_from_the_borders_it_is_sure(self):
        rows = [made_costs("a", power(1000, 0.2)), made_costs("b", power(10, 0.2), seed=1)]
        for placement in placed(*rows, threshold="100"):
            assert placement.probability == 1.0
            assert sum(placement.probabilities.values()) == pytest.approx(1)

    def test_on_the_border_it_is_a_coin(self):
        shares = [
            placed(made_costs("a", power(100, 1.0), starts=7, noise=0.05, seed=seed), threshold="1")[0].probabilities
            for seed in range(60)
        ]
        traps = np.array([share[Quadrant.LATENT_TRAP] for share in shares])
        assert traps.mean() == pytest.approx(0.5, abs=0.15)
        assert traps.std() > 0.2

    def test_a_threshold_that_is_a_median_moves_with_the_rows(self):
        """The middle one of three noisy rows is its own threshold: a tie in almost every replicate, and so high."""
        rows = [
            made_costs(n, power(b, 0.2), noise=0.02, seed=s)
            for s, (n, b) in enumerate({"a": 10, "b": 50, "c": 900}.items())
        ]
        middle = placed(*rows)[1]
        assert middle.probabilities[Quadrant.HIGH_STARTUP] == 1.0
        fixed = placed(*rows, threshold=str(middle.threshold_cycles))[1]
        assert 0.2 < fixed.probabilities[Quadrant.HIGH_STARTUP] < 0.8

    def test_none_without_repetitions(self):
        single = made_costs("a", starts=1)
        assert [p.probability for p in placed(single, stated("b", 1, 1), threshold="50")] == [None, None]

    def test_one_size_has_no_quadrant(self):
        (placement,) = placed(made_costs("a", sizes=(64,)))
        assert (placement.quadrant, placement.probability, placement.strategy) == (None, None, "")
        assert placement.threshold_cycles == pytest.approx(100, rel=0.05)


class TestShifts:
    def platforms(self):
        first = Platform(
            "p", "p", "a paper", True, (stated("CRC", 900, 1.3, "p", ("rte_crc",)), stated("log", 90, 0.1, "p"))
        )
        second = Platform("q", "q", "a paper", True, (stated("CRC", 700, 1.2, "q", ("rte_crc",)),))
        here = made_platform(
            made_costs("rte_crc", power(20, 1.1)),
            made_costs("log", power(20, 0.1), seed=1),
            made_costs("other", seed=2),
        )
        return first, second, here

    def test_arrows_lead_to_the_next_platform_that_has_the_operator(self):
        found = analyse(self.platforms(), OpqOptions(threshold=Threshold.parse("50"), contrasts=(("CRC", "log"),)))
        rows = [
            (s.start.profile.platform, s.start.profile.operator, s.end.profile.platform, s.changed)
            for s in found.shifts
        ]
        assert rows == [("p", "CRC", "q", False), ("p", "log", "here", True), ("q", "CRC", "here", True)]
        assert [s.probability for s in found.shifts] == [None, 1.0, 1.0]
        assert found.shifts[0].base_ratio == pytest.approx(7 / 9)

    def test_a_shift_to_where_nothing_is_seen_is_not_known(self):
        here = made_platform(made_costs("log", lambda s: 0.1))
        (shift,) = analyse([self.platforms()[0], here]).shifts
        assert (shift.changed, shift.probability, shift.base_ratio) == (None, None, None)

    def test_names_elsewhere_take_the_place_of_the_own_name(self):
        a, b = stated("rte_log", 1, 1, same_as=("suppressed",)), stated("rte_log", 1, 1)
        assert not same_operator(a, b)
        assert same_operator(a, stated("suppressed", 1, 1))
        assert same_operator(a, stated("log", 1, 1, same_as=("suppressed",)))


class TestContrasts:
    def test_the_ratio_of_two_with_its_interval(self):
        held = 0
        for seed in range(100):
            here = made_platform(
                made_costs("dear", power(900, 0.1), noise=0.05, seed=seed),
                made_costs("cheap", power(30, 0.1), noise=0.05, seed=1000 + seed),
            )
            (each,) = analyse([here], OpqOptions(contrasts=(("dear", "cheap"),), resamples=300)).contrasts
            held += 30.0 in each.ratio
        assert 88 <= held <= 100

    def test_a_cheap_one_that_cannot_be_seen(self):
        here = made_platform(
            made_costs("dear", power(900, 0.1), noise=0), made_costs("cheap", lambda s: 0.3, resolution=2)
        )
        (each,) = analyse([here], OpqOptions(contrasts=(("dear", "cheap"),))).contrasts
        assert (each.ratio, each.at_least) == (None, pytest.approx(450))

    def test_what_no_platform_has(self):
        with pytest.raises(UsageError, match="no platform has both dear and cheap"):
            analyse([made_platform(made_costs("dear"))], OpqOptions(contrasts=(("dear", "cheap"),)))
        assert analyse([made_platform(made_costs("dear"))]).contrasts == ()


class TestAnalysis:
    def test_platforms_have_names_of_their_own(self):
        with pytest.raises(UsageError, match="two platforms are called here"):
            analyse([made_platform(made_costs()), made_platform(made_costs())])
        with pytest.raises(UsageError, match="no platform to analyse"):
            analyse([])

    def test_a_threshold_names_what_is_there(self):
        for threshold, said in ((Threshold(without=("x",)), "no operator x"), (Threshold(of="y"), "no platform y")):
            with pytest.raises(UsageError, match=said):
                analyse([made_platform(made_costs())], OpqOptions(threshold=threshold))

    def test_a_resolution_above_the_threshold_is_told(self):
        here = made_platform(made_costs("tiny", lambda s: 0.1 * s, resolution=60), made_costs("op", noise=0))
        assert "low is not sure" in analyse([here], OpqOptions(threshold=Threshold.parse("50"))).warnings[0]
        assert analyse([here], OpqOptions(threshold=Threshold.parse("70"))).warnings == ()

    def test_nothing_that_can_be_split(self):
        with pytest.raises(NoVerdictError):
            analyse([made_platform(OperatorCosts("op", "here", (128,), ((5.0,),), (0.0,)))])
