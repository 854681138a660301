import pytest

from p4perf.errors import SpecError
from p4perf.specs.loader import merge, set_value
from p4perf.specs.source import parse_text

SPEC = """
name: a/b
traffic: {offered_load: max}
program: {component: mat, parameters: {entries: $entries, key_bits: 128}}
sweep:
  entries: {log: [1, 100], points_per_decade: 9}
  filter: []
  multiplex: {v: {size: 1}}
trials: {repetitions: 3}
"""


def merged(base, over):
    return merge(parse_text(base, "base.yaml"), parse_text(over, "over.yaml"))


def changed(key, text, spec=SPEC):
    return set_value(parse_text(spec, "spec.yaml"), key, text)


def refused(key, text, spec=SPEC):
    with pytest.raises(SpecError) as caught:
        changed(key, text, spec)
    assert str(caught.value).startswith(f"--set {key}: ")
    return caught.value


def test_mappings_are_merged_and_lists_are_replaced():
    assert merged("a: {b: 1, c: [1, 2]}\nd: 4", "a: {c: [3], e: 5}\nf: 6").plain() == {
        "a": {"b": 1, "c": [3], "e": 5},
        "d": 4,
        "f": 6,
    }


def test_null_removes_what_is_inherited():
    assert merged("a: {b: 1, c: 2}", "a: {b: null}").plain() == {"a": {"c": 2}}


def test_values_that_exclude_each_other_are_replaced_whole():
    assert merged("sweep: {n: {log: [1, 10]}}", "sweep: {n: {range: [1, 5]}}").plain() == {
        "sweep": {"n": {"range": [1, 5]}}
    }
    load = merged("traffic: {offered_load: {rate_mpps: 1}}", "traffic: {offered_load: {fraction_of_max: [1]}}")
    assert load.plain() == {"traffic": {"offered_load": {"fraction_of_max": [1]}}}


def test_places_follow_the_values():
    node = merged("a: {b: 1}", "a: {c: 2}")
    assert node.locate(("a", "b")).file == "base.yaml"
    assert node.locate(("a", "c")).file == "over.yaml"


@pytest.mark.parametrize(
    ("key", "text", "path", "value"),
    [
        ("trials.repetitions", "5", ("trials", "repetitions"), 5),
        ("trials.order", "sequential", ("trials", "order"), "sequential"),
        ("metrics.collect", "[latency]", ("metrics", "collect"), ["latency"]),
        ("model.x", "entries", ("model", "x"), "entries"),
        ("entries", "1000", ("sweep", "entries"), [1000]),
        ("entries", "1e3", ("sweep", "entries"), [1000]),
        ("entries", "[1, 10]", ("sweep", "entries"), [1, 10]),
        ("sweep.entries", "7", ("sweep", "entries"), [7]),
        ("sweep.entries", "{log: [1, 10]}", ("sweep", "entries"), {"log": [1, 10]}),
        ("sweep.entries.points_per_decade", "3", ("sweep", "entries"), {"log": [1, 100], "points_per_decade": 3}),
        ("key_bits", "64", ("program", "parameters", "key_bits"), 64),
        ("program.parameters.hit_ratio", "0.5", ("program", "parameters", "hit_ratio"), 0.5),
        ("traffic.offered_load.rate_mpps", "500 kpps", ("traffic", "offered_load"), {"rate_mpps": "500 kpps"}),
        ("title", "a title, with a comma", ("title",), "a title, with a comma"),
        ("sweep.multiplex.v.size", "3", ("sweep", "multiplex", "v", "size"), 3),
    ],
)
def test_overrides(key, text, path, value):
    root = changed(key, text)
    assert root.at(path).plain() == value
    assert str(root.locate(key.split(".") if "." in key else path)) == f"--set {key}"


def test_null_removes():
    assert changed("sweep.filter", "null").at(("sweep", "filter")) is None


def test_the_rest_stays():
    plain = changed("trials.seed", "7").plain()
    assert plain["trials"] == {"repetitions": 3, "seed": 7}
    assert plain["name"] == "a/b"


def test_unknown_names_have_the_nearest():
    assert "did you mean entries?" in str(refused("entires", "5"))
    assert "did you mean trials?" in str(refused("trails.repetitions", "5"))
    assert "unknown swept variable, parameter or section 'zzz'" in str(refused("zzz", "5"))


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("entries", "[1, 2", "this is not YAML"),
        ("entries", "yes", "ambiguous"),
        ("entries", "!!python/name:os.system", "not allowed"),
        ("extends", "mat/exact-entries", "extends cannot be set"),
        ("a..b", "1", "expected a dotted path"),
        (".", "1", "expected a dotted path"),
        ("sweep.filter.x", "1", "a list has no key 'x'"),
        ("size", "5", "assigned by the variants"),
    ],
)
def test_overrides_that_are_wrong(key, text, message):
    assert message in str(refused(key, text))


def test_a_parameter_of_several_components():
    spec = "program: {component: [a, b], parameters: {a: {x: 1, y: 2}, b: {x: 1}}}"
    error = refused("x", "5", spec)
    assert error.hint == "set program.parameters.a.x or program.parameters.b.x"
    assert changed("y", "5", spec).at(("program", "parameters", "a", "y")).content == 5
