"""What a spec says of load: bursts, mixes of sizes, offered loads, searches, and models of latency and loss."""

import pytest

from p4perf.errors import SpecError
from p4perf.specs import FractionLoad, RateLoad, load_experiment
from p4perf.specs.metrics import LOAD_METRICS, PERCENTILES, at_load, metric_named

HEAD = "name: my/load\nprogram: {component: l2fwd}\n"


@pytest.fixture
def load(tmp_path):
    def load(text, *overrides):
        path = tmp_path / "spec.yaml"
        path.write_text(HEAD + text)
        return load_experiment(str(path), overrides=overrides)

    return load


@pytest.fixture
def refused(load):
    """The failure of a spec; its line is counted from the first one after the head."""

    def refused(text, *overrides):
        with pytest.raises(SpecError) as caught:
            load(text, *overrides)
        error = caught.value
        line = None if error.location is None else error.location.line - HEAD.count("\n")
        return error.message, error.key, line

    return refused


class TestOffering:
    def test_the_defaults(self, load):
        found = load("").spec.load
        assert (found.generator, found.link, found.slots, found.search) == (None, None, 1024, "mlrsearch")
        assert (found.trial_ms, found.latency_ms, found.width) == (200.0, 400.0, 0.005)
        assert (found.pdr_loss_ratio, found.exceed_ratio, found.trials_per_load) == (0.005, 0.75, 12)

    def test_durations_are_quantities(self, load):
        found = load("load: {trial_ms: 1 s, latency_ms: '0.05 s'}\n").spec.load
        assert (found.trial_ms, found.latency_ms) == (1000.0, 50.0)

    @pytest.mark.parametrize(
        ("key", "value", "message"),
        [
            ("link", "wire", "ring"),
            ("slots", "31", "must be at least 32, got 31"),
            ("slots", "32769", "must be at most 32768, got 32769"),
            ("slots", "100.5", "expected a whole number, got 100.5"),
            ("trial_ms", "0.9", "must be at least 1.0, got"),
            ("latency_ms", "0", "must be at least 1.0, got"),
            ("latency_ms", "-1", "0 to 3.6e+06 ms"),
            ("trial_ms", "$t", "references are not possible here"),
            ("width", "0", "must be more than 0.0, got 0"),
            ("width", "0.6", "must be at most 0.5, got 0.6"),
            ("pdr_loss_ratio", "1", "must be less than 1.0, got 1"),
            ("exceed_ratio", "-0.1", "must be at least 0.0, got -0.1"),
            ("trials_per_load", "0", "must be at least 1, got 0"),
            ("max_trials", "3", "must be at least 4, got 3"),
            ("speed", "1", "unknown key 'speed'"),
        ],
    )
    def test_what_is_wrong_is_named_with_key_and_line(self, refused, key, value, message):
        found, where, line = refused(f"title: x\nload:\n  {key}: {value}\n")
        assert message in found
        assert where == f"load.{key}"
        assert line == 3


class TestBursts:
    def test_the_defaults(self, load):
        (point,) = load("traffic: {pattern: burst, burst: {}}\n").points
        assert (point.traffic.burst.length, point.traffic.burst.gap_us, point.traffic.burst.spacing_ns) == (32, None, 0)
        assert load("").points[0].traffic.burst is None

    def test_lengths_and_gaps_are_swept(self, load):
        points = load(
            "traffic: {pattern: burst, burst: {length: $size, gap_us: $gap, spacing_ns: 100}}\n"
            "sweep: {size: [1, 64], gap: [10, 0.5]}\n"
        ).points
        found = [(p.traffic.burst.length, p.traffic.burst.gap_us, p.traffic.burst.spacing_ns) for p in points]
        assert found == [(1, 10.0, 100.0), (1, 0.5, 100.0), (64, 10.0, 100.0), (64, 0.5, 100.0)]

    def test_a_gap_is_a_quantity(self, load):
        assert load("traffic: {burst: {gap_us: 2 ms}}\n").points[0].traffic.burst.gap_us == 2000.0

    @pytest.mark.parametrize(
        ("key", "value", "message"),
        [
            ("length", "0", "a whole number from 1 to 1000000 packets, got 0"),
            ("length", "1.5", "a whole number from 1 to 1000000 packets, got 1.5"),
            ("length", "yes please", "a whole number from 1 to 1000000 packets"),
            ("length", "true", "a whole number from 1 to 1000000 packets"),
            ("gap_us", "0", "must be 0.001 to 1e+07 us, got 0"),
            ("gap_us", "10 B", "'10 B' is a data size, not a time"),
            ("spacing_ns", "-1", "must be at least 0.0, got -1"),
        ],
    )
    def test_what_is_wrong_is_named_with_key_and_line(self, refused, key, value, message):
        found, where, line = refused(f"traffic:\n  pattern: burst\n  burst:\n    {key}: {value}\n")
        assert message in found
        assert where == f"traffic.burst.{key}"
        assert line == 4

    def test_a_swept_value_that_is_wrong_is_found_before_anything_runs(self, refused):
        message, where, _ = refused("traffic: {pattern: burst, burst: {length: $size}}\nsweep: {size: [1, 0]}\n")
        assert "a whole number from 1 to 1000000 packets, got 0" in message
        assert where == "traffic.burst.length"


class TestMix:
    IMIX = ((64, 7), (594, 4), (1518, 1))

    @pytest.mark.parametrize(
        "text",
        [
            "imix",
            "[[64, 7], [594, 4], [1518, 1]]",
            "[[1518, 1], [594, 4], [64, 7]]",
            "{64: 7, 594: 4, 1518: 1}",
            "{1518: 1, 64: 7, 594: 4}",
        ],
    )
    def test_a_mix_is_a_name_a_mapping_or_a_list(self, load, text):
        experiment = load(f"traffic: {{mix: {text}}}\n")
        assert experiment.points[0].traffic.mix == self.IMIX
        assert experiment.points[0].frame_size_bytes == 1518

    def test_equal_mixes_have_equal_hashes(self, load):
        first = load("traffic: {mix: imix}\n").spec_hash
        assert load("traffic: {mix: [[1518, 1], [64, 7], [594, 4]]}\n").spec_hash == first
        assert load("traffic: {mix: [[1518, 2], [64, 7], [594, 4]]}\n").spec_hash != first
        assert load("").spec_hash != first

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("jumbo", "expected imix or a mapping of frame sizes to weights"),
            ("{}", "expected imix or a mapping of frame sizes to weights"),
            ("5", "expected imix or a mapping of frame sizes to weights, got 5"),
            ("[[63, 1]]", "frame sizes must be 64 to 9216 bytes (including the FCS), got 63"),
            ("[[9217, 1]]", "frame sizes must be 64 to 9216 bytes (including the FCS), got 9217"),
            ("[[64, 0]]", "weights must be 1 to 1000, got 0"),
            ("[[64, 1001]]", "weights must be 1 to 1000, got 1001"),
            ("[[64, 0.5]]", "expected a frame size and a weight, both whole numbers"),
            ("[[64, true]]", "expected a frame size and a weight, both whole numbers"),
            ("{small: 1}", "expected a frame size and a weight, both whole numbers"),
            ("[[64, 1, 2]]", "expected a frame size and a weight, both whole numbers"),
            ("[64, 128]", "expected a frame size and a weight, both whole numbers, got 64"),
            ("{64: 0}", "weights must be 1 to 1000, got 0"),
            (str([[64 + n, 1] for n in range(65)]), "has more than 64 frame sizes"),
        ],
    )
    def test_what_is_wrong_is_named_with_key_and_line(self, refused, text, message):
        found, where, line = refused(f"traffic:\n  pattern: cbr\n  mix: {text}\n")
        assert message in found
        assert where.startswith("traffic.mix")
        assert line == 3


class TestOfferedLoads:
    @pytest.mark.parametrize(
        ("text", "found"), [("0.5", (0.5,)), ("[0.1, 1]", (0.1, 1.0)), ("1", (1.0,)), ("[70%, 1]", (0.7, 1.0))]
    )
    def test_fractions_are_one_or_a_list(self, load, text, found):
        (point,) = load(f"traffic: {{offered_load: {{fraction_of_max: {text}}}}}\n").points
        assert point.traffic.offered_load == FractionLoad(fraction_of_max=found)
        assert point.traffic.offered_load.fraction_of_max == found

    def test_a_fraction_is_swept(self, load):
        points = load("traffic: {offered_load: {fraction_of_max: $load}}\nsweep: {load: [0.25, 1]}\n").points
        assert [p.traffic.offered_load.fraction_of_max for p in points] == [(0.25,), (1.0,)]

    def test_references_stand_in_a_list_too(self, load):
        points = load("traffic: {offered_load: {fraction_of_max: [0.1, $load]}}\nsweep: {load: [0.5, 0.7]}\n").points
        assert [p.traffic.offered_load.fraction_of_max for p in points] == [(0.1, 0.5), (0.1, 0.7)]

    def test_a_rate_is_swept(self, load):
        points = load("traffic: {offered_load: {rate_mpps: $rate}}\nsweep: {rate: [0.5, 2]}\n").points
        assert [p.traffic.offered_load for p in points] == [RateLoad(rate_mpps=0.5), RateLoad(rate_mpps=2.0)]

    @pytest.mark.parametrize(
        ("text", "where"),
        [
            ("0", "fraction_of_max"),
            ("1.01", "fraction_of_max"),
            ("-0.5", "fraction_of_max"),
            ("true", "fraction_of_max"),
            ("half", "fraction_of_max"),
            ("[0.5, 2]", "fraction_of_max.1"),
        ],
    )
    def test_what_is_no_fraction(self, refused, text, where):
        message, key, line = refused(f"traffic:\n  offered_load:\n    fraction_of_max: {text}\n")
        assert "must be a fraction above 0 and up to 1, got" in message
        assert key == f"traffic.offered_load.{where}"
        assert line == 3

    def test_no_fraction_at_all(self, refused):
        message, key, _ = refused("traffic: {offered_load: {fraction_of_max: []}}\n")
        assert message == "needs at least 1, has 0"
        assert key == "traffic.offered_load.fraction_of_max"

    def test_a_swept_value_that_is_no_fraction_is_found_before_anything_runs(self, refused):
        message, key, _ = refused("traffic: {offered_load: {fraction_of_max: $x}}\nsweep: {x: [0.5, 1.5]}\n")
        assert "must be a fraction above 0 and up to 1, got 1.5" in message
        assert key.startswith("traffic.offered_load.fraction_of_max")

    def test_an_unknown_reference(self, refused):
        message, _, _ = refused("traffic: {offered_load: {fraction_of_max: $nothing}}\n")
        assert "nothing" in message


class TestModels:
    SPEC = (
        "metrics: {{collect: [{metrics}]}}\ntraffic: {{offered_load: {{fraction_of_max: $load}}}}\n"
        "sweep: {{load: [0.1, 0.2]}}\nmodel: {{x: load, y: {y}}}\n"
    )

    @pytest.mark.parametrize(
        ("y", "metrics"),
        [
            ("latency_p50", "latency"),
            ("latency_p99_at_70", "latency"),
            ("latency_p999_at_0_5", "latency"),
            ("latency_floor_p9999_at_100", "latency"),
            ("latency_floor_mean", "latency"),
            ("loss_ratio_at_10", "loss_ratio"),
            ("throughput_ndr", "throughput_ndr"),
            ("receive_rate", "receive_rate"),
        ],
    )
    def test_parts_of_what_is_measured_are_modelled(self, load, y, metrics):
        assert load(self.SPEC.format(y=y, metrics=metrics)).spec.model.y == y
        assert metric_named(y).unit

    @pytest.mark.parametrize(
        "y", ["latency_p98", "latency_p50_at", "latency_p50_at_7000", "latency_p50_at_70%", "loss_ratio_at_", "speed"]
    )
    def test_an_unknown_name_is_one_clear_error(self, refused, y):
        message, key, line = refused(self.SPEC.format(y=f'"{y}"', metrics="latency"))
        assert message.startswith("unknown metric")
        assert y in message
        assert (key, line) == ("model.y", 4)

    def test_what_is_modelled_has_to_be_measured(self, refused):
        message, key, _ = refused(self.SPEC.format(y="latency_p99_at_70", metrics="loss_ratio"))
        assert message == "latency_p99_at_70 is modelled but not measured"
        assert key == "model.y"

    @pytest.mark.parametrize("fraction", [0.1, 0.5, 0.7, 1.0, 0.125, 0.005, 0.0001, 0.999])
    def test_the_names_of_loads_are_names_of_metrics(self, fraction):
        """Everything that a measurement of a load can be called can be modelled."""
        for name in ("loss_ratio", *(f"latency_{p}" for p in PERCENTILES), "latency_floor_max"):
            assert metric_named(at_load(name, fraction)) is not None, at_load(name, fraction)

    def test_different_loads_have_different_names(self):
        fractions = [n / 1000 for n in range(1, 1001)]
        assert len({at_load("loss_ratio", f) for f in fractions}) == len(fractions)
        assert at_load("latency_p50", 0.7) == "latency_p50_at_70"
        assert at_load("latency_p50", 0.005) == "latency_p50_at_0_5"
        assert at_load("latency_p50", 1.0) == "latency_p50_at_100"


class TestWhetherLoadIsAskedFor:
    @pytest.mark.parametrize("metric", LOAD_METRICS)
    @pytest.mark.parametrize("part", ["collect: [packet_rate], optional", "collect"])
    def test_metrics_ask_for_it(self, load, metric, part):
        assert load(f"metrics: {{{part}: [{metric}]}}\n").spec.asks_load

    def test_offered_loads_ask_for_it(self, load):
        assert load("traffic: {offered_load: {rate_mpps: 1}}\n").spec.asks_load
        assert load("traffic: {offered_load: {fraction_of_max: 0.5}}\n").spec.asks_load

    def test_nothing_else_does(self, load):
        assert not load("").spec.asks_load
        assert not load("metrics: {collect: [packet_rate, cycles_per_packet]}\n").spec.asks_load
        assert not load("traffic: {offered_load: max}\n").spec.asks_load


class TestResolved:
    FULL = (
        "metrics: {collect: [latency, throughput_ndr], optional: [loss_ratio]}\n"
        "traffic:\n  pattern: burst\n  burst: {length: $size, gap_us: 12.5, spacing_ns: 67.2}\n  mix: imix\n"
        "  offered_load: {fraction_of_max: [0.1, 0.7]}\n"
        "load: {link: memif, slots: 512, search: bisection, trial_ms: 50, width: 0.01}\n"
        "sweep: {size: [1, 8]}\nmodel: {x: size, y: latency_p99_at_70}\n"
    )

    def test_it_loads_back_to_the_same_experiment(self, load, tmp_path):
        first = load(self.FULL)
        path = tmp_path / "resolved.yaml"
        path.write_text(first.resolved_yaml())
        again = load_experiment(str(path))
        assert again.spec_hash == first.spec_hash
        assert again.spec.load == first.spec.load
        assert again.points == first.points
        assert again.resolved_yaml() == first.resolved_yaml()

    def test_options_of_load_count_where_load_is_asked_for(self, load):
        hashes = {
            load(self.FULL, *overrides).spec_hash
            for overrides in (
                (),
                (("load.slots", "256"),),
                (("load.search", "mlrsearch"),),
                (("load.trial_ms", "60"),),
                (("traffic.mix", "[[64, 1]]"),),
                (("traffic.burst.gap_us", "13"),),
                (("traffic.offered_load.fraction_of_max", "[0.1, 0.8]"),),
            )
        }
        assert len(hashes) == 7

    def test_options_of_load_do_not_count_where_it_is_not(self, load):
        plain = load("")
        assert load("load: {slots: 256}\n").spec_hash == plain.spec_hash
        assert "slots" not in plain.resolved_yaml()
