import pickle
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from p4perf.errors import ExitCode, SpecError
from p4perf.specs import RateLoad, list_catalogue, load_experiment

SPEC = """\
name: a/b
title: A title
program:
  component: mat
  parameters: {entries: $entries, key_bits: 128}
sweep:
  entries: [1, 10, 100]
"""


@pytest.fixture
def load(tmp_path):
    def load(text, *overrides, points=None):
        path = tmp_path / "spec.yaml"
        path.write_text(text)
        return load_experiment(str(path), overrides=overrides, points=points)

    return load


LISTED = """\
name: a
program:
  component:
    - match_action_table: {entries: 1000}
    - match_action_table: {entries: $count}
    - match_action_table
  parameters: {match_action_table: {entries: 10, key_bits: 64}}
sweep: {count: [1, 5]}
"""


def test_a_component_several_times(load, tmp_path):
    experiment = load(LISTED)
    sizes = [[parameters["entries"] for _, parameters in point.components] for point in experiment.points]
    assert sizes == [[1000, 1, 10], [1000, 5, 10]]
    assert all(p["key_bits"] == 64 for point in experiment.points for _, p in point.components)
    assert_reloads(experiment, tmp_path / "resolved.yaml")


@pytest.fixture
def refused(load):
    def refused(text, *overrides, points=None):
        with pytest.raises(SpecError) as caught:
            load(text, *overrides, points=points)
        assert caught.value.exit_code == ExitCode.USAGE
        return caught.value

    return refused


def test_points(load):
    experiment = load(SPEC)
    assert [p.index for p in experiment.points] == [0, 1, 2]
    assert experiment.points[1].values == {"entries": 10}
    assert experiment.points[1].components == (("mat", {"entries": 10, "key_bits": 128}),)
    assert experiment.points[1].frame_size_bytes == 64
    assert experiment.points[1].traffic.offered_load == "max"


def test_no_sweep_is_one_point(load):
    experiment = load("name: a\nprogram: {component: l2fwd}\n")
    assert len(experiment.points) == 1
    assert experiment.points[0].values == {}


def test_points_can_be_sent_to_other_processes(load):
    points = load(SPEC).points
    assert pickle.loads(pickle.dumps(points)) == points  # noqa: S301


def test_traffic_is_resolved(load):
    experiment = load(
        "name: a\nprogram: {component: c}\n"
        "traffic: {frame_size: $size, offered_load: {rate_mpps: $rate}, flows: {distribution: $d, zipf_s: $s}}\n"
        "sweep: {size: [64, 128], rate: [0.5, 1], d: [uniform, zipf], s: [0.9, 1.2]}\n"
    )
    assert len(experiment.points) == 16
    last = experiment.points[-1]
    assert last.frame_size_bytes == last.traffic.frame_size == 128
    assert last.traffic.offered_load == RateLoad(rate_mpps=1.0)
    assert (last.traffic.flows.distribution, last.traffic.flows.zipf_s) == ("zipf", 1.2)
    assert experiment.points[0].traffic.flows.zipf_s is None


def test_zipf_has_a_default_exponent(load):
    experiment = load("name: a\nprogram: {component: c}\ntraffic: {flows: {distribution: zipf}}\n")
    assert experiment.points[0].traffic.flows.zipf_s == 1.0


def test_points_that_agree_in_traffic_share_it(load):
    points = load(SPEC).points
    assert points[0].traffic is points[2].traffic


def test_traffic_that_is_wrong_at_a_point(refused):
    error = refused("name: a\nprogram: {component: c}\ntraffic: {frame_size: $size}\nsweep: {size: [64, 10]}\n")
    assert error.message == "must be 64 to 9216 bytes (including the FCS), got 10"
    assert error.hint == "at the point size = 10"
    assert (error.location.line, error.location.column, error.key) == (3, 23, "traffic.frame_size")


def test_several_components(load):
    experiment = load(
        "name: a\nprogram:\n  component: [p, t]\n  parameters: {p: {headers: $h}, t: {entries: $e, width: $headers}}\n"
        "sweep: {h: [1, 2], e: [5, 6], zip: [h, e]}\n"
    )
    assert [p.components for p in experiment.points] == [
        (("p", {"headers": 1}), ("t", {"entries": 5, "width": 1})),
        (("p", {"headers": 2}), ("t", {"entries": 6, "width": 2})),
    ]


def test_filters_know_parameters(load):
    text = "name: a\nprogram: {component: c, parameters: {writes: $w, fields: 2}}\n"
    experiment = load(text + 'sweep: {w: {range: [0, 5]}, filter: ["$w <= $fields"]}\n')
    assert [p.values["w"] for p in experiment.points] == [0, 1, 2]


def test_the_variant_can_be_referred_to(load):
    experiment = load(
        "name: a\nprogram: {component: c, parameters: {kind: $variant, k: $k}}\n"
        "sweep: {multiplex: {exact: {k: 1}, lpm: {k: [2, 3]}}}\n"
    )
    assert [p.components[0][1] for p in experiment.points] == [
        {"kind": "exact", "k": 1},
        {"kind": "lpm", "k": 2},
        {"kind": "lpm", "k": 3},
    ]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (SPEC + "  extra: [1]\n", (8, 10), "the swept variable extra is never used"),
        (SPEC + "  fitler: [a]\n", (8, 11), "did you mean filter?"),
        (SPEC.replace("entries: $entries", "entries: 5"), (7, 12), "write entries: $entries in program.parameters"),
        (SPEC.replace("$entries", "$entires"), (5, 25), "did you mean entries?"),
        (SPEC.replace("$entries", "$key_bit"), (5, 25), "did you mean key_bits?"),
        (SPEC.replace("128", "$key_bits"), (5, 45), "$key_bits refers to itself"),
        (SPEC + '  filter: ["$entires > 1"]\n', (8, 12), "$entires refers to no swept variable or parameter"),
        (SPEC + '  filter: ["1 > $key_bits"]\n', (8, 11), "leaves none of the 3 points"),
        (SPEC + "traffic: {flows: {over: entires}}\n", (8, 25), "did you mean entries?"),
        (SPEC + "model: {x: entires}\n", (8, 12), "did you mean entries?"),
        (SPEC.replace("[1, 10, 100]", "{range: [1, 1e12]}"), (7, 12), "has 1,000,000,000,000 points"),
        (SPEC.replace("[1, 10, 100]", "[]"), (7, 12), "the sweep is empty"),
        (SPEC.replace("[1, 10, 100]", "[0, 1]") + "model: {x_scale: log}\n", (8, 18), "no entries = 0"),
        (SPEC.replace("[1, 10, 100]", "[a, b]") + "model: {x: entries}\n", (8, 12), "needs numbers"),
    ],
)
def test_errors_have_places(refused, text, place, message):
    error = refused(text)
    assert message in str(error)
    assert (error.location.line, error.location.column) == place
    assert str(error).splitlines()[2].endswith("^")


def test_a_whole_error(refused, tmp_path):
    error = refused(SPEC.replace("$entries", "$entires"))
    assert str(error) == (
        f"{tmp_path}/spec.yaml:5:25: program.parameters.entries: $entires refers to no swept variable or parameter\n"
        "    parameters: {entries: $entires, key_bits: 128}\n"
        "                          ^\n"
        "hint: did you mean entries?"
    )


def test_x_is_the_only_variable(load, refused):
    assert load(SPEC + "model: {}\n").spec.model.x == "entries"
    two = SPEC.replace("128", "$k") + "  k: [8, 16]\nmodel: {}\n"
    assert "say which swept variable is x" in refused(two).message
    assert load("name: a\nprogram: {component: c}\nmodel: {}\n").spec.model.x is None


def test_overrides(load):
    experiment = load(SPEC, ("trials.repetitions", "5"), ("entries", "1000"), ("key_bits", "64"))
    assert experiment.spec.trials.repetitions == 5
    assert [p.components[0][1] for p in experiment.points] == [{"entries": 1000, "key_bits": 64}]


def test_later_overrides_win(load):
    assert load(SPEC, ("entries", "1000"), ("entries", "[2, 3]")).points[1].values == {"entries": 3}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("trials.repetitons", "5", "unknown key 'repetitons'\nhint: did you mean repetitions?"),
        ("trials.repetitions", "0", "must be at least 1"),
        ("entires", "5", "did you mean entries?"),
        ("sweep.e", "[1]", "the swept variable e is never used"),
        ("entries", "{range: [5, 1]}", "the sweep is empty"),
        ("entries", "{range: [1, 1e12]}", "has 1,000,000,000,000 points"),
        ("name", "../x", "is not a name of an experiment"),
    ],
)
def test_errors_in_overrides_say_so(refused, key, value, message):
    error = refused(SPEC, (key, value))
    assert str(error).startswith(f"--set {key}: ")
    assert message in str(error)


def test_thinning(load, refused):
    many = SPEC.replace("[1, 10, 100]", "{range: [0, 1e15]}")
    assert [p.values["entries"] for p in load(many, points=3).points] == [0, 5 * 10**14, 10**15]
    assert len(load(SPEC, points=50).points) == 3
    assert "at least 1" in refused(SPEC, points=0).message


def test_the_hash_knows_what_matters(load):
    reference = load(SPEC).spec_hash
    assert len(reference) == 64
    same = [
        SPEC.replace("A title", "Another"),
        SPEC + "description: words\nsource: {paper: x}\n",
        SPEC.replace("[1, 10, 100]", "[1, 1e1, 1e2]"),
        SPEC.replace("{entries: $entries, key_bits: 128}", "{key_bits: 128, entries: $entries}"),
        SPEC + 'trials: {duration_ms: "0.02 s"}\ntraffic: {frame_size: 64 B}\n',
    ]
    assert {load(text).spec_hash for text in same} == {reference}
    other = [
        SPEC.replace("128", "64"),
        SPEC.replace("100]", "101]"),
        SPEC.replace("a/b", "a/c"),
        SPEC + "trials: {seed: 2}\n",
    ]
    assert reference not in {load(text).spec_hash for text in other}


def test_the_hash_knows_the_order_of_variables(load):
    text = "name: a\nprogram: {component: c, parameters: {a: $a, b: $b}}\n"
    one, other = load(text + "sweep: {a: [1], b: [2]}\n"), load(text + "sweep: {b: [2], a: [1]}\n")
    assert one.spec_hash != other.spec_hash


@pytest.mark.parametrize(
    ("new", "key", "message"),
    [
        (
            "match_action_table: {entries: $m}",
            "program.component.1.match_action_table.entries",
            "$m refers to no swept variable or parameter",
        ),
        ("match_action_table: {entries: [1]}", "program.component.1.match_action_table.entries", "expected one value"),
        ("{match_action_table: {}, hash: {}}", "program.component.1", "expected one component"),
        ("match_action_table: 5", "program.component.1.match_action_table", "a mapping of the parameters"),
    ],
)
def test_what_is_wrong_with_one_of_several_is_found(refused, new, key, message):
    error = refused(LISTED.replace("match_action_table: {entries: $count}", new))
    assert message in str(error)
    assert (error.key, error.location.line) == (key, 5)


def assert_reloads(experiment, path: Path):
    path.write_text(experiment.resolved_yaml())
    again = load_experiment(str(path))
    assert again.spec == experiment.spec
    assert again.points == experiment.points
    assert again.spec_hash == experiment.spec_hash
    assert again.resolved_yaml() == experiment.resolved_yaml()


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", [entry.name for entry in list_catalogue()])
def test_resolved_specs_load_back(name, tmp_path):
    assert_reloads(load_experiment(name), tmp_path / "resolved.yaml")
    assert_reloads(load_experiment(name, points=4), tmp_path / "resolved.yaml")


def test_everything_loads_back(load, tmp_path):
    experiment = load(
        "name: a\ntitle: 'yes'\ndescription: \"two\\nlines: #1\"\nprogram:\n  component: [p, t]\n"
        "  parameters: {p: {a: $a, b: '1e6', c: 1e17, d: 1.0, e: 100000000000000000.0, f: true, g: 'on'}, t: {k: $k}}\n"
        "traffic: {pattern: poisson, frame_size: $b, offered_load: {fraction_of_max: [0.1]}, latency_at: [0.5, 1]}\n"
        "sweep: {a: {linear: [0.0, 1.0], step: 0.25}, b: [64, 128, 256, 512, 1024], zip: [a, b], "
        'filter: ["$a < 0.9"], multiplex: {v: {k: 1}, w: {k: {log: [1, 10]}}}}\n'
        "model: {x: a, max_segments: 1}\n"
    )
    assert len(experiment.points) == 44
    assert_reloads(experiment, tmp_path / "resolved.yaml")


SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(10**18), 10**18),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20).filter(lambda s: not s.startswith("$")),
)


@settings(max_examples=60)
@example(values=["\x85", "a\u2028b", "\u2029"], other="\x85")
@given(values=st.lists(SCALARS, min_size=1, max_size=4, unique_by=lambda v: (isinstance(v, bool), v)), other=SCALARS)
def test_all_scalars_load_back(tmp_path, values, other):
    path = tmp_path / "spec.yaml"
    path.write_text("name: a\nprogram: {component: c, parameters: {x: $x, y: 0}}\nsweep: {x: [0]}\n")
    overrides = [("x", _yaml(values)), ("y", _yaml(other))]
    experiment = load_experiment(str(path), overrides=overrides)
    assert [p.values["x"] for p in experiment.points] == values
    assert [type(p.values["x"]) for p in experiment.points] == [type(v) for v in values]
    assert_reloads(experiment, tmp_path / "resolved.yaml")


def _yaml(value):
    from p4perf.specs.experiment import _Dumper

    return yaml.dump(value, Dumper=_Dumper, width=10**6, default_flow_style=True)


def test_an_unknown_experiment():
    with pytest.raises(SpecError, match="did you mean parser/headers"):
        load_experiment("parser/heads")
