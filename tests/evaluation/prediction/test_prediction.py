import pandas as pd
import pytest
from _drawn_programs import FRAME_BYTES, draw_programs

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.prediction.learning import (
    MeasuredProgram,
    construct_of,
    learn,
    measured_programs,
    prediction_errors,
    relative_error,
)
from p4perf.programs.component import build_workload
from p4perf.specs import load_experiment

CACHES = {"L1": 48 << 10, "L2": 2 << 20}
ALONE = {
    "match_action_table": lambda p: {10: 60, 100: 64, 1000: 70, 10_000: 80, 100_000: 180, 500_000: 300}[p["entries"]],
    "parser_headers": lambda p: 1.5 * p["headers"],
    "header_field_writes": lambda p: 2.0 * p["writes"],
    "hash": lambda p: 5 + p["size_bytes"] / 8,
}


def alone(components):
    return sum(ALONE[name](p) for name, p in components)


def program(components, cycles, experiment="composition/components", baseline=20.0):
    starts = tuple(cycles * (1 + n / 500) for n in (-1, 0, 1))
    return MeasuredProgram(tuple(components), starts, (baseline,) * 3, experiment, FRAME_BYTES)


def fixtures(total=lambda components, alone: 20 + alone):
    """All components alone, and drawn programs whose cost some rule says."""
    singles = [("parser_headers", {"headers": n}) for n in (0, 1, 4, 10)]
    singles += [("header_field_writes", {"writes": n}) for n in (1, 12)]
    singles += [("hash", {"size_bytes": n}) for n in (32, 128)]
    singles += [("match_action_table", {"entries": n}) for n in (10, 100, 1000, 10_000, 100_000, 500_000)]
    found = [program([c], 20 + alone([c])) for c in singles]
    drawn = draw_programs(5, 24)
    return [*found, *(program(c, total(c, alone(c)), "composition/programs") for c in drawn)]


def predicted(model, components):
    return model.breakdown([(construct_of(*component), 1.0) for component in components])


class TestLearning:
    def test_programs_that_add_up_are_sums(self):
        model = learn(fixtures(), target="t", cache_bytes=CACHES)
        assert model.form.name == "sum"
        assert (model.baseline, model.frame_bytes) == (20, FRAME_BYTES)
        for components in draw_programs(6, 10):
            breakdown = predicted(model, components)
            assert breakdown.cycles.value == pytest.approx(20 + alone(components), rel=1e-6)
        assert model.calibration.cached < 0.001

    def test_what_programs_cost_beside_one_another_is_learnt(self):
        def later(components, alone):
            tables = sum(name == "match_action_table" for name, _ in components)
            return 20 + 1.1 * alone + 15 * max(tables - 1, 0)

        model = learn(fixtures(later), target="t", cache_bytes=CACHES)
        assert model.form.name != "sum"
        errors = [relative_error(predicted(model, c).cycles.value, later(c, alone(c))) for c in draw_programs(6, 20)]
        assert max(map(abs, errors)) < 0.05
        plain = learn(fixtures(later), target="t", cache_bytes=CACHES, form="sum")
        assert plain.calibration.cached > 3 * model.calibration.cached

    def test_intervals_cover_what_is_drawn_from_the_same(self):
        noise = iter([0.07, -0.05, 0.02, -0.09, 0.0, 0.04, -0.03, 0.1, -0.01, 0.06, -0.08, 0.03] * 10)
        model = learn(fixtures(lambda c, a: (20 + a) * (1 + next(noise))), target="t", cache_bytes=CACHES)
        inside = []
        for components in draw_programs(7, 48):
            breakdown = predicted(model, components)
            truth = (20 + alone(components)) * (1 + next(noise))
            inside.append(breakdown.low <= truth <= breakdown.high)
        assert 0.8 <= sum(inside) / len(inside) <= 1.0

    def test_the_source_of_packets_is_no_part_of_a_program(self):
        programs = [p for p in fixtures() if len(p.components) == 1]
        busy = MeasuredProgram((("hash", {"size_bytes": 64}),), (40.0, 41.0), (27.0, 28.0), "", FRAME_BYTES)
        model = learn([*programs, busy], target="t")
        assert model.charge(construct_of("hash", {"size_bytes": 64})).cycles.value == pytest.approx(13)

    def test_defaults_need_not_be_named(self):
        model = learn(fixtures(), target="t", cache_bytes=CACHES)
        named = {"entries": 1000, "match_kind": "exact", "key_bits": 128, "action_data_bytes": 64}
        assert model.charge(construct_of("match_action_table", named)).cycles.value == pytest.approx(70)

    def test_frames_of_several_sizes_are_refused(self):
        other = MeasuredProgram((("hash", {"size_bytes": 4}),), (1.0,), (), "", 64)
        with pytest.raises(DataError, match="64, 1024 B"):
            learn([*fixtures(), other], target="t")

    def test_something_has_to_be_measured(self):
        with pytest.raises(DataError, match="neither the empty program"):
            learn([], target="t")
        with pytest.raises(DataError, match="no component was measured alone"):
            learn([program([("l2fwd", {})], 20.0)], target="t")


def test_programs_of_a_table_of_measurements():
    experiment = load_experiment("composition/components")
    rows = []
    for index, cycles in ((0, 20.0), (1, 90.0)):
        for attempt in range(3):
            values = {"cycles_per_packet": cycles + attempt, "baseline_cycles_per_packet": 20.0, "packet_rate": 1.0}
            rows += [(index, attempt, metric, value, attempt < 2) for metric, value in values.items()]
    table = pd.DataFrame(rows, columns=["point_index", "attempt", "metric", "value", "accepted"])
    found = measured_programs(table, experiment.points, "x")
    assert [p.components for p in found] == [tuple(point.components) for point in experiment.points[:2]]
    assert found[1].starts == (90, 91)
    assert found[1].cost == 70.5
    assert found[1].frame_bytes == FRAME_BYTES
    with pytest.raises(DataError, match="no accepted cycles_per_packet"):
        measured_programs(table[table["metric"] == "packet_rate"], experiment.points)


def test_errors_of_predictions():
    errors = prediction_errors([110.0, 90.0, 100.0, 120.0], [100.0] * 4, [(90, 115), (80, 95), (99, 101), (100, 140)])
    assert errors.median == pytest.approx(0.1)
    assert (errors.largest, errors.bias) == (pytest.approx(0.2), pytest.approx(0.05))
    assert errors.coverage == 0.75
    with pytest.raises(UsageError):
        prediction_errors([], [])


def test_drawn_programs_repeat_themselves_and_fit():
    programs = draw_programs(3, 50)
    assert programs == draw_programs(3, 50)
    assert programs != draw_programs(4, 50)
    assert len({repr(p) for p in programs}) == 50
    assert {len(p) for p in programs} == set(range(3, 9))
    for components in programs[:5]:
        build_workload(components, frame_size_bytes=FRAME_BYTES)
    kinds = [name for p in programs for name, _ in p]
    assert 0.4 < kinds.count("match_action_table") / len(kinds) < 0.6
