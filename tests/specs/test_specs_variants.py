import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command import p4perf

from p4perf.errors import SpecError
from p4perf.specs import active_variants, load_experiment
from p4perf.specs.schema import SweepSpec
from p4perf.specs.sweep import expand, sweep_axes, thinned, variable_names
from p4perf.specs.variants import MAX_INHERITS

BASE = """\
name: a/b
program: {component: match_action_table, parameters: {entries: 100, key_bits: 512, action_data_bytes: 64}}
"""

TABLE = "match_action_table: {entries: 10}"

PROGRAMS = """\
name: a/b
program: {component: [l2fwd]}
variants:
  one: {set: {program.component: [{match_action_table: {entries: 10}}, {hash: {size_bytes: 8}}]}}
  two: {set: {program.component: [{match_action_table: {entries: 10}}, {match_action_table: {entries: 20}}]}}
sweep: {multiplex: {each_of: [one, two]}}
"""

FACTORS = (
    BASE
    + """\
variants:
  k: {title: short key, set: {key_bits: 32}}
  d: {set: {program.parameters.action_data_bytes: 4}}
  t: {set: {traffic: {frame_size: 256, flows: {distribution: single}}}}
sweep:
  multiplex: [k, d, t]
"""
)


@pytest.fixture
def load(tmp_path):
    def load(text, **more):
        path = tmp_path / "spec.yaml"
        path.write_text(text)
        return load_experiment(str(path), **more)

    return load


@pytest.fixture
def refused(load):
    def refused(text, **more):
        with pytest.raises(SpecError) as caught:
            load(text, **more)
        return caught.value

    return refused


def seen(point):
    return (
        point.components[0][1]["key_bits"],
        point.components[0][1]["action_data_bytes"],
        point.frame_size_bytes,
        point.traffic.flows.distribution,
    )


# --- combining


def test_all_subsets_of_the_variants_become_points(load):
    points = load(FACTORS).points
    assert [dict(p.values) for p in points] == [
        {"k": 0, "d": 0, "t": 0},
        {"k": 1, "d": 0, "t": 0},
        {"k": 0, "d": 1, "t": 0},
        {"k": 0, "d": 0, "t": 1},
        {"k": 1, "d": 1, "t": 0},
        {"k": 1, "d": 0, "t": 1},
        {"k": 0, "d": 1, "t": 1},
        {"k": 1, "d": 1, "t": 1},
    ]
    assert seen(points[0]) == (512, 64, 64, "uniform")
    assert seen(points[1]) == (32, 64, 64, "uniform")
    assert seen(points[5]) == (32, 64, 256, "single")
    assert seen(points[7]) == (32, 4, 256, "single")


def test_six_factors_are_64_points(load):
    text = "name: a/b\nprogram: {component: c, parameters: {a: 0, b: 0, c: 0, d: 0, e: 0, f: 0}}\nvariants:\n"
    text += "".join(f"  {name}: {{set: {{{name}: 1}}}}\n" for name in "abcdef")
    experiment = load(text + "sweep: {multiplex: [a, b, c, d, e, f]}\n")
    assert len(experiment.points) == 64
    assert len({tuple(p.values.items()) for p in experiment.points}) == 64
    assert all(dict(p.values) == dict(p.components[0][1]) for p in experiment.points)


def test_other_variables_multiply_and_can_be_referred_to(load):
    text = FACTORS.replace("key_bits: 32", "key_bits: $bits").replace("sweep:\n", "sweep:\n  bits: [8, 16]\n")
    # Without k the variable would change nothing.
    points = load(text + '  filter: ["$k == 1"]\n').points
    assert len(points) == 8
    assert [seen(p)[0] for p in points] == [8, 8, 8, 8, 16, 16, 16, 16]
    assert points[0].values == {"bits": 8, "k": 1, "d": 0, "t": 0}


def test_sizes_choose_among_the_subsets(load):
    points = load(FACTORS.replace("[k, d, t]", "{subsets_of: [k, d, t], sizes: [3, 0, 1]}")).points
    assert [sum(p.values.values()) for p in points] == [0, 1, 1, 1, 3]


def test_each_of_them_one_after_another(load):
    text = FACTORS.replace("[k, d, t]", "{each_of: [t, k]}")
    points = load(text).points
    assert [p.values for p in points] == [{"variant": "t"}, {"variant": "k"}]
    assert seen(points[1]) == (32, 64, 64, "uniform")
    both = load(FACTORS.replace("[k, d, t]", "{each_of: [t, k], subsets_of: [d]}"))
    assert [p.values for p in both.points] == [
        {"variant": "t", "d": 0},
        {"variant": "t", "d": 1},
        {"variant": "k", "d": 0},
        {"variant": "k", "d": 1},
    ]
    assert active_variants(both.spec.sweep.combined, both.points[1].values) == ("t", "d")


def test_filters_compare_what_a_variant_set(load):
    points = load(FACTORS + '  filter: ["$key_bits < 100"]\n').points
    assert [p.values["k"] for p in points] == [1, 1, 1, 1]


def test_frequencies_and_composed_programs(load):
    text = """\
name: a/b
program:
  component: [parsed_headers, match_action_table]
  parameters: {parsed_headers: {headers: 1}, match_action_table: {entries: 10, key_bits: 32}}
variants:
  slow: {set: {device.cpu_frequency: 1.5 GHz}}
  wide: {set: {key_bits: 64, program.parameters.parsed_headers.headers: 4}}
sweep: {multiplex: [slow, wide]}
"""
    points = load(text).points
    assert [p.cpu_frequency_ghz for p in points] == [None, 1.5, None, 1.5]
    assert [(p.components[0][1]["headers"], p.components[1][1]["key_bits"]) for p in points[1:3]] == [(1, 32), (4, 64)]


def test_null_removes_a_parameter(load):
    points = load(FACTORS.replace("set: {key_bits: 32}", "set: {key_bits: null}")).points
    assert "key_bits" in points[0].components[0][1]
    assert "key_bits" not in points[1].components[0][1]


# --- inheritance

FAMILY = (
    BASE
    + """\
variants:
  k: {set: {key_bits: 32, action_data_bytes: 8}}
  d: {set: {action_data_bytes: 4}}
  kd: {inherits: [k, d]}
  dk: {inherits: [d, k]}
  own: {inherits: kd, set: {action_data_bytes: 16, entries: 5}}
sweep: {multiplex: {each_of: [kd, dk, own]}}
"""
)


def test_the_order_of_parents_decides_and_own_settings_win(load):
    kd, dk, own = (dict(p.components[0][1]) for p in load(FAMILY.replace("dk, own", "dk, own")).points)
    assert kd == {"entries": 100, "key_bits": 32, "action_data_bytes": 4}
    assert dk == {"entries": 100, "key_bits": 32, "action_data_bytes": 8}
    assert own == {"entries": 5, "key_bits": 32, "action_data_bytes": 16}


def test_a_spec_inherits_the_variants_of_the_spec_that_it_extends(load, tmp_path):
    (tmp_path / "base.yaml").write_text(FACTORS)
    experiment = load("name: a/c\nextends: base.yaml\nvariants: {k: {set: {key_bits: 16}}, t: null}\n"
                      "sweep: {multiplex: [k, d]}\n")  # fmt: skip
    assert [seen(p)[:2] for p in experiment.points] == [(512, 64), (16, 64), (512, 4), (16, 4)]
    assert set(experiment.spec.variants) == {"k", "d"}


def chain(length):
    links = "".join(f"  v{i}: {{inherits: v{i - 1}}}\n" for i in range(1, length))
    return BASE + "variants:\n  v0: {set: {key_bits: 8}}\n" + links + f"sweep: {{multiplex: [v{length - 1}]}}\n"


def test_the_depth_is_bounded(load, refused):
    assert len(load(chain(MAX_INHERITS)).points) == 2
    assert f"more than {MAX_INHERITS} variants inherit from each other" in str(refused(chain(MAX_INHERITS + 1)))
    assert "more than" in str(refused(chain(3000)))


# --- errors


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "message"),
    [
        ("[k, d, t]", "[k, dd]", 8, "sweep.multiplex.1", "there is no variant dd"),
        ("[k, d, t]", "{each_of: [x]}", 8, "sweep.multiplex.each_of.0", "there is no variant x"),
        ("[k, d, t]", "[k, k]", 8, "sweep.multiplex.1", "duplicate variant k"),
        ("[k, d, t]", "[]", 8, "sweep.multiplex", "needs at least 1"),
        ("[k, d, t]", "k", 8, "sweep.multiplex", "expected a list of variants"),
        ("[k, d, t]", "{subsets_of: [k], sizes: [2]}", 8, "sweep.multiplex.sizes.0", "no subset has 2"),
        ("[k, d, t]", "{subsets_of: [k], sizes: []}", 8, "sweep.multiplex.sizes", "the sweep is empty"),
        ("[k, d, t]", "{subsets_of: [k], size: 1}", 8, "sweep.multiplex.size", "unknown key 'size'"),
        ("{set: {program", "{inherits: e, set: {program", 5, "variants.d.inherits", "no variant e to inherit from"),
        ("{set: {program", "{inherits: d, set: {program", 5, "variants.d.inherits", "from itself: d -> d"),
        ("{title: short key,", "{title: short key, inherits: d,", 8, None, "k and k + d are the same program"),
        ("key_bits: 32", "key_bit: 32", 4, "variants.k.set.key_bit", "did you mean key_bits?"),
        ("key_bits: 32", "zz: 32", 4, "variants.k.set.zz", "write program.parameters.zz for a parameter"),
        ("key_bits: 32", "trials.seed: 3", 4, "variants.k.set.trials.seed", "a variant cannot set trials.seed"),
        ("key_bits: 32", "program.component: x", 4, None, "a variant cannot set program.component"),
        ("key_bits: 32", "program.parameters: null", 4, None, "a variant cannot set program.parameters"),
        ("key_bits: 32", "traffic.latency_at: [0.5]", 4, None, "is the same at all points"),
        ("key_bits: 32", "traffic.offered_load: {rate_mpps: 1}", 4, "traffic.offered_load", "a maximum load"),
        ("key_bits: 32", "traffic.burst: null", 4, None, "expected a mapping, got nothing"),
        ("key_bits: 32", "traffic.frame_size: 5", 4, "traffic.frame_size", "must be 64 to 9216"),
        ("key_bits: 32", "traffic.frame_sise: 64", 4, "traffic.frame_sise", "did you mean frame_size?"),
        ("key_bits: 32", "key_bits: [1, 2]", 4, "program.parameters.key_bits", "expected one value"),
        ("key_bits: 32", "key_bits: $nothing", 4, "program.parameters.key_bits", "$nothing refers to no swept"),
        ("key_bits: 32", "key_bits: 512", 8, "sweep.multiplex", "no variant and k are the same program and traffic"),
        ("key_bits: 32", "action_data_bytes: 8", 4, None, "k and d are combined, but set program.parameters.action"),
        ("key_bits: 32", "key_bits: 8, program.parameters.key_bits: 9", 4, None, "key_bits is set twice"),
        ("key_bits: 32", "a..b: 8", 4, None, "expected a key such as"),
        ("{set: {program", "{sets: {program", 5, "variants.d.sets", "unknown key 'sets'"),
        ("  d: {", "  D: {", 5, "variants.D", "'D' is not a name"),
    ],
)  # fmt: skip
def test_errors_say_where(refused, old, new, line, key, message):
    assert old in FACTORS
    text = FACTORS.replace(old, new, 1)
    error = refused(text)
    assert message in str(error), str(error)
    assert error.location.file.endswith("spec.yaml")
    if "are combined" in message:
        assert error.location.line in (4, 5)
    else:
        assert error.location.line == line, str(error)
    if key is not None:
        assert error.key == key


def test_circles(refused):
    text = BASE + "variants:\n  a: {inherits: b}\n  b: {inherits: [c]}\n  c: {inherits: a}\n"
    error = refused(text)
    assert "a variant cannot inherit from itself: a -> b -> c -> a" in str(error)
    assert (error.location.line, error.key) == (6, "variants.c.inherits")


def test_variants_are_not_named_like_variables_or_columns(refused):
    text = FACTORS.replace("sweep:\n", "sweep:\n  k: [1, 2]\n").replace("entries: 100", "entries: $k")
    assert "k is swept already" in str(refused(text))
    assert "column of the tables" in str(refused(FACTORS.replace("k:", "value:", 1).replace("[k,", "[value,")))


def test_a_variant_cannot_set_what_is_swept(refused):
    text = FACTORS.replace("entries: 100", "entries: $entries").replace("sweep:\n", "sweep:\n  entries: [1, 2]\n")
    error = refused(text.replace("{key_bits: 32}", "{entries: 5}"))
    assert "entries is swept, so a variant cannot set it" in str(error)
    assert "the same program" in str(refused(text.replace("{key_bits: 32}", "{program.parameters.entries: 5}")))


def test_a_conflict_that_is_filtered_apart_is_none(load, refused):
    text = FACTORS.replace("key_bits: 32", "action_data_bytes: 8")
    assert "are combined" in str(refused(text))
    apart = text.replace("[k, d, t]", "{subsets_of: [k, d, t], sizes: [0, 1]}")
    assert len(load(apart).points) == 4


def test_a_variable_that_no_combination_uses(refused):
    assert "the swept variable m is never used" in str(refused(FACTORS.replace("sweep:\n", "sweep:\n  m: [1]\n")))


# --- limits, thinning, --set, identity


def test_huge_combinations_are_refused_at_once(refused):
    names = [f"v{i}" for i in range(300)]
    text = BASE + "variants:\n" + "".join(f"  {name}: {{}}\n" for name in names)
    error = refused(text + f"sweep: {{multiplex: [{', '.join(names)}]}}\n")
    assert "the sweep has about 10^90 points, more than the limit of 100,000" in str(error)
    few = refused(text + f"sweep: {{multiplex: {{subsets_of: [{', '.join(names)}], sizes: [3]}}}}\n")
    assert "4,455,100 points" in str(few)


def test_thinning_leaves_combinations_whole(load):
    text = FACTORS.replace("entries: 100", "entries: $m").replace("sweep:\n", "sweep:\n  m: {range: [1, 50]}\n")
    assert len(load(text).points) == 400
    assert len(load(text, points=3).points) == 24
    assert len(load(text, points=1).points) == 8
    sweep = load(text).spec.sweep
    assert thinned(sweep, 2).multiplex == sweep.multiplex


@pytest.mark.thorough
def test_thinning_says_so(tmp_path):
    (tmp_path / "spec.yaml").write_text(FACTORS)
    done = p4perf(
        "check", "spec.yaml", "--points", "2", "--set", "traffic.frame_size=128", "--format", "json", cwd=tmp_path
    )
    assert json.loads(done.out)["rows"][0]["points"] == 8
    assert "--points leaves all combinations of k, d, t there" in done.err
    assert "k: short key (key_bits=32)" in done.err


@pytest.mark.parametrize(("value", "expected"), [("0", {0}), ("1", {1})])
def test_set_fixes_a_combined_variant(load, value, expected):
    points = load(FACTORS, overrides=[("d", value), ("t", "0")]).points
    assert len(points) == 2
    assert {p.values["d"] for p in points} == expected
    assert {p.values["t"] for p in points} == {0}


def test_set_changes_what_a_variant_sets(load, refused):
    points = load(FACTORS, overrides=[("variants.k.set.key_bits", "48")]).points
    assert seen(points[1])[0] == 48
    assert "is 0 or 1" in str(refused(FACTORS, overrides=[("d", "2")]))
    assert "is 0 or 1" in str(refused(FACTORS, overrides=[("d", "true")]))
    assert len(load(FACTORS, overrides=[("sweep.multiplex", "[k]")]).points) == 2


def test_what_is_resolved_loads_back(load, tmp_path):
    for text in (FACTORS, FAMILY, FACTORS.replace("set: {key_bits: 32}", "set: {key_bits: null}")):
        experiment = load(text)
        path = tmp_path / "resolved.yaml"
        path.write_text(experiment.resolved_yaml())
        again = load_experiment(str(path))
        assert again.spec == experiment.spec
        assert again.points == experiment.points
        assert again.spec_hash == experiment.spec_hash


def test_the_hash_is_of_what_is_measured(load):
    plain = load(FACTORS).spec_hash
    assert load(FACTORS.replace("title: short key", "title: other")).spec_hash == plain
    assert load(FACTORS.replace("[k, d, t]", "{subsets_of: [k, d, t]}")).spec_hash == plain
    assert load(FACTORS.replace("variants:\n", "variants:\n  unused: {set: {entries: 3}}\n")).spec_hash == plain
    assert load(FACTORS.replace("key_bits: 32", "key_bits: 33")).spec_hash != plain
    assert load(FACTORS.replace("[k, d, t]", "[d, k, t]")).spec_hash != plain
    assert load(BASE).spec_hash == load(BASE + "variants: {unused: {set: {entries: 3}}}\n").spec_hash


def test_the_names_of_the_variables():
    sweep = SweepSpec.model_validate({"e": [1], "multiplex": {"each_of": ["x"], "subsets_of": ["a", "b"]}})
    assert variable_names(sweep) == ("e", "variant", "a", "b")


@settings(max_examples=30)
@given(st.integers(1, 6), st.data())
def test_the_number_of_subsets_is_known_before(length, data):
    sizes = data.draw(st.lists(st.integers(0, length), min_size=1, unique=True))
    names = [f"v{i}" for i in range(length)]
    sweep = SweepSpec.model_validate({"multiplex": {"subsets_of": names, "sizes": sizes}})
    from p4perf.specs.sweep import Scope

    points = expand(sweep, Scope(frozenset(names), ()))
    assert len(points) == sweep_axes(sweep)[0].size == sum(math.comb(length, size) for size in sizes)
    assert len({tuple(p.items()) for p in points}) == len(points)


def test_variants_are_programs_of_several_components(load, refused):
    experiment = load(PROGRAMS)
    assert [point.components for point in experiment.points] == [
        (("match_action_table", {"entries": 10}), ("hash", {"size_bytes": 8})),
        (("match_action_table", {"entries": 10}), ("match_action_table", {"entries": 20})),
    ]
    assert [dict(point.values) for point in experiment.points] == [{"variant": "one"}, {"variant": "two"}]
    error = refused(PROGRAMS.replace("{entries: 20}", "{entries: $m}"))
    assert "$m refers to no swept variable or parameter" in str(error)
    assert error.location.line == 5
    error = refused(PROGRAMS.replace("{match_action_table: {entries: 20}}", "5"))
    assert "5 is not a name" in str(error)
    assert error.location.line == 5
    error = refused(PROGRAMS.replace("entries: 20", "entries: 10").replace("hash: {size_bytes: 8}", TABLE))
    assert "are the same program and traffic" in str(error)
