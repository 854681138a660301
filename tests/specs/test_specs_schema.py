import pytest
from pydantic import ValidationError

from p4perf.specs.schema import ExperimentSpec, MetricsSpec, ProgramSpec, SweepSpec, TrialsSpec
from p4perf.specs.sections import FlowsSpec, TrafficSpec

MINIMAL = {"name": "a/b", "program": {"component": "l2fwd"}}


def wrong(kind, data):
    with pytest.raises(ValidationError) as caught:
        kind.model_validate(data)
    errors = caught.value.errors()
    assert len(errors) == 1
    return errors[0]["msg"]


def test_the_defaults():
    spec = ExperimentSpec.model_validate(MINIMAL)
    assert spec.metrics.collect == ("cycles_per_packet", "packet_rate")
    assert spec.traffic.frame_size == 64
    assert spec.traffic.offered_load == "max"
    assert spec.program.baseline == "l2fwd"
    assert (spec.trials.repetitions, spec.trials.order, spec.trials.seed) == (3, "random", 1)
    assert (spec.trials.duration_ms, spec.trials.warmup_ms, spec.trials.mode) == (20.0, 10.0, "gated")
    assert spec.model is None
    assert not spec.sweep.variables


def test_a_spec_is_frozen():
    spec = ExperimentSpec.model_validate(MINIMAL)
    with pytest.raises(ValidationError):
        spec.name = "c"


def test_a_metric_is_asked_for_once():
    message = wrong(MetricsSpec, {"collect": ["latency"], "optional": ["latency"]})
    assert message == "duplicate metric latency"


def test_the_modelled_metric_is_measured():
    spec = MINIMAL | {"metrics": {"collect": ["latency"]}, "model": {"y": "memory_bytes"}}
    assert wrong(ExperimentSpec, spec) == "memory_bytes is modelled but not measured"


def test_the_cost_is_derived_from_the_cycles():
    spec = ExperimentSpec.model_validate(MINIMAL | {"model": {"y": "cost_cycles_per_packet"}})
    assert spec.model.y == "cost_cycles_per_packet"


def test_the_number_of_segments_is_chosen_or_given():
    assert ExperimentSpec.model_validate(MINIMAL | {"model": {}}).model.segments is None
    assert ExperimentSpec.model_validate(MINIMAL | {"model": {"segments": 3}}).model.segments == 3
    assert "less than or equal to 6" in wrong(ExperimentSpec, MINIMAL | {"model": {"segments": 7}})


def test_the_zipf_exponent_belongs_to_zipf():
    assert wrong(FlowsSpec, {"zipf_s": 1.1}) == "zipf_s needs the distribution zipf"
    assert FlowsSpec.model_validate({"distribution": "zipf", "zipf_s": 1.1}).zipf_s == 1.1
    assert FlowsSpec.model_validate({"distribution": "$d", "zipf_s": 1.1}).zipf_s == 1.1


def test_offered_loads():
    assert TrafficSpec.model_validate({"offered_load": {"rate_mpps": "500 kpps"}}).offered_load.rate_mpps == 0.5
    fractions = TrafficSpec.model_validate({"offered_load": {"fraction_of_max": [0.1, 1]}}).offered_load
    assert fractions.fraction_of_max == (0.1, 1.0)
    assert "expected max, {rate_mpps: 1.0}" in wrong(TrafficSpec, {"offered_load": 5})
    assert "unknown key 'rate'" in wrong(TrafficSpec, {"offered_load": {"rate_mpps": 1, "rate": 2}})


def test_durations_have_units():
    assert TrialsSpec.model_validate({"duration_ms": "0.2 s"}).duration_ms == 200.0
    assert wrong(TrialsSpec, {"duration_ms": 0}) == "Input should be greater than 0"
    assert TrialsSpec.model_validate({"warmup_ms": 0}).warmup_ms == 0


def test_one_component():
    program = ProgramSpec.model_validate({"component": "mat", "parameters": {"entries": "$n", "kind": "exact"}})
    assert program.composed == (("mat", {"entries": "$n", "kind": "exact"}),)


def test_several_components():
    program = ProgramSpec.model_validate({"component": ["b", "a", "b"], "parameters": {"a": {"x": 1}}})
    assert program.composed == (("b", {}), ("a", {"x": 1}), ("b", {}))


def test_a_component_several_times_with_parameters_of_its_own():
    program = ProgramSpec.model_validate(
        {"component": [{"mat": {"n": 1}}, "mat", {"mat": {"n": "$n", "k": 3}}], "parameters": {"mat": {"k": 2, "n": 9}}}
    )
    assert program.composed == (("mat", {"k": 2, "n": 1}), ("mat", {"k": 2, "n": 9}), ("mat", {"k": 3, "n": "$n"}))
    assert program.parameter_keys()[2] == {"k": "program.component.2.mat.k", "n": "program.component.2.mat.n"}
    assert program.parameter_keys()[0]["k"] == "program.parameters.mat.k"
    assert ProgramSpec.model_validate(program.model_dump(mode="json")) == program


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"component": [{}]}, "expected one component, got a mapping of 0 keys"),
        ({"component": ["a", {"a": {}, "b": {}}]}, "expected one component, got a mapping of 2 keys"),
        ({"component": [{"A": {}}]}, "'A' is not a name"),
        ({"component": [{"a": None}]}, "expected a mapping of the parameters of a, got nothing"),
        ({"component": [{"a": 5}]}, "expected a mapping of the parameters of a, got 5"),
        ({"component": [{"a": {"X": 1}}]}, "'X' is not a name"),
        ({"component": [{"a": {"x": [1]}}]}, "expected one value, got a list"),
        ({"component": [{"a": {}}], "parameters": {"b": {}}}, "unknown component 'b' in program.parameters"),
        ({"component": []}, "at least one component"),
        ({"component": 5}, "expected the name of a component"),
        ({"component": "A"}, "'A' is not a name"),
        ({"component": ["a", 5]}, "5 is not a name"),
        ({"component": "a", "parameters": {"X": 1}}, "'X' is not a name"),
        ({"component": "a", "parameters": {"x": [1]}}, "expected one value, got a list"),
        ({"component": "a", "parameters": {"x": None}}, "expected one value, got nothing"),
        ({"component": "a", "parameters": {"x": {"y": 1}}}, "which is for a list of components"),
        ({"component": "a", "parameters": {"x": "$X"}}, "is not a reference"),
        ({"component": ["a"], "parameters": {"x": 1}}, "unknown component 'x' in program.parameters"),
        ({"component": ["a"], "parameters": {"a": 1}}, "expected a mapping of the parameters of a"),
        ({"component": ["a"], "parameters": {"a": {"X": 1}}}, "'X' is not a name"),
        ({"component": ["a"], "parameters": {"a": {"x": [1]}}}, "expected one value"),
    ],
)
def test_programs_that_are_wrong(data, message):
    assert message in wrong(ProgramSpec, data)


def test_variables_keep_the_order_of_the_spec():
    sweep = SweepSpec.model_validate({"b": [1], "zip": ["b", "a"], "a": [2]})
    assert list(sweep.variables) == ["b", "a"]
    assert sweep.zip == (("b", "a"),)


def test_groups_of_zipped_variables():
    assert SweepSpec.model_validate({"zip": [["a", "b"], ["c", "d"]]}).zip == (("a", "b"), ("c", "d"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": 5}, "expected a list of values, got 5"),
        ({"a": None}, "expected a list of values, {log"),
        ({"A": [1]}, "'A' is not a name"),
        ({"variant": [1]}, "variant is the name of the variant of multiplex"),
        ({"zip": "a"}, "tuple"),
        ({"multiplex": {"V": {}}}, "'V' is not a name"),
        ({"multiplex": {"v": {"a": None}}}, "expected a list of values"),
    ],
)
def test_sweeps_that_are_wrong(data, message):
    assert message in wrong(SweepSpec, data)


def test_variants_assign_one_value_or_several():
    sweep = SweepSpec.model_validate({"multiplex": {"v": {"a": 1, "b": [1, 2]}}})
    assert sweep.multiplex == {"v": {"a": 1, "b": (1, 2)}}


@pytest.mark.parametrize("name", ["point", "value", "flags", "n", "median"])
def test_variables_are_not_named_like_columns_of_results(name: str) -> None:
    assert "column of the tables of results" in wrong(SweepSpec, {name: [1, 2]})
