"""Any CSV file: columns by name, units at the border; and how trials become points."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.imports import ImportedValue, ImportOptions, LeftOut, Named, Place, Reading, assemble
from p4perf.evaluation.imports.base import ImportedTrial, convert, fact, name_facts, needs_unit
from p4perf.evaluation.imports.table import CsvImporter
from p4perf.specs.metrics import METRICS

READER = CsvImporter()

WIDE = """Rules;Rate [kpps];Cycles;run
1;2000;50.5;1
1;2100;51.5;2
10;1000;;1
"""
LONG = """size,what,number,unit
64,rate,10,Mpps
64,rate,11,Mpps
64,loss,2,%
128,rate,5000,kpps
128,wonder,3,x
"""


def imported(tmp_path, text, *, variables=("size",), metrics=(), **options):
    path = tmp_path / "table.csv"
    path.write_text(text)
    names = {"variables": tuple(map(Named.parse, variables)), "metrics": tuple(map(Named.parse, metrics))}
    chosen = ImportOptions(**names, **options)
    return assemble([READER.read(path, chosen)], chosen)


def values(made):
    return {
        (*point.values.values(), result.repetition, metric): value.value
        for point in made.points
        for result in point.results
        for metric, value in result.values.items()
    }


def test_wide(tmp_path):
    made = imported(
        tmp_path,
        WIDE,
        variables=["rules=Rules"],
        metrics=["packet_rate=Rate [kpps]", "cycles_per_packet=Cycles"],
        repetition="run",
    )
    assert values(made) == {
        (1, 1, "packet_rate"): 2.0,
        (1, 1, "cycles_per_packet"): 50.5,
        (1, 2, "packet_rate"): 2.1,
        (1, 2, "cycles_per_packet"): 51.5,
        (10, 1, "packet_rate"): 1.0,
    }
    assert [item.place for item in made.left_out] == [f"{tmp_path / 'table.csv'}:4: Cycles"]


def test_long(tmp_path):
    made = imported(
        tmp_path, LONG, metrics=["packet_rate=rate", "loss_ratio=loss"], value="number", metric_column="what",
        unit_column="unit",
    )  # fmt: skip
    assert values(made) == {
        (64, 0, "packet_rate"): 10,
        (64, 1, "packet_rate"): 11,
        (64, 0, "loss_ratio"): 0.02,
        (128, 0, "packet_rate"): 5,
    }
    assert "is not a metric" in made.left_out[0].reason


def test_columns_with_names_of_metrics_need_no_naming(tmp_path):
    made = imported(tmp_path, "size,cycles_per_packet,comment\n1,2,a\n")
    assert values(made) == {(1, 0, "cycles_per_packet"): 2}


def test_one_metric_in_one_column(tmp_path):
    made = imported(tmp_path, "size,n\n1,2\n", metrics=["latency_p99"], value="n", units={"": "ms"})
    assert values(made) == {(1, 0, "latency_p99"): 2000}


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("size,cycles_per_packet\n1,2\n2,nan\n", 3, "cycles_per_packet"),
        ("size,cycles_per_packet\n1,inf\n", 2, "cycles_per_packet"),
        ("size,cycles_per_packet\n1,fast\n", 2, "cycles_per_packet"),
        ("size,cycles_per_packet\nnan,1\n", 2, "size"),
        ("size,cycles_per_packet\n,1\n", 2, "size"),
        ("size,cycles_per_packet\n1,2,3\n", 2, None),
        ("size,cycles_per_packet\n1\n", 2, None),
        ('size,cycles_per_packet\n1,"2\n', 2, None),
        ("size,cycles_per_packet\n", None, None),
        ("\n\n", None, None),
        ('""\n', None, None),
        ("size,cycles_per_packet\n1,2\n1,\0\n", 3, None),
    ],
)
def test_damage_names_line_and_column(tmp_path, text, line, key):
    with pytest.raises(DataError) as caught:
        imported(tmp_path, text)
    assert (caught.value.location.line, caught.value.key) == (line, key)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"variables": ()}, "name the column of the variable"),
        ({"variables": ("sise",)}, "no column 'sise'"),
        ({"metrics": ("packet_rate=rate",)}, "in which unit is packet_rate"),
        ({"metrics": ("packet_rate=rate",), "units": {"": "ms"}}, "ms is a time, but packet_rate is a packet rate"),
        ({"metrics": ("packet_rate=rate",), "units": {"": "frames"}}, "no unit 'frames'"),
        ({"metrics": ("speed=rate",)}, "unknown metric 'speed'"),
        ({"metrics": ("packet_rate=rat",)}, "no column 'rat'"),
        ({}, "no column with the name of a metric"),
        ({"value": "rate"}, "say which metric"),
        ({"metrics": ("latency=rate",), "units": {"": "us"}}, "which statistic of the latency"),
        ({"metrics": ("packet_rate",), "value": "rat"}, "no column 'rat'"),
        ({"variables": ("Size=size",)}, "not a name of a variable"),
        ({"variables": ("point=size",)}, "column of the tables of results"),
        ({"variables": ("size", "size")}, "given twice"),
        ({"metrics": ("packet_rate=rate", "receive_rate=rate")}, "given twice"),
        ({"metrics": ("packet_rate=rate",), "units": {"": "kpps"}, "only": {"size": 65}}, "--only size=65"),
        ({"metrics": ("packet_rate=rate",), "units": {"": "kpps"}, "settings": {"size": 1}}, "given twice"),
        ({"metrics": ("packet_rate=rate",), "units": {"": "kpps"}, "repetition": "rate"}, "not a whole number"),
    ],
)
def test_what_the_user_got_wrong(tmp_path, options, said):
    with pytest.raises((UsageError, DataError), match=said):
        imported(tmp_path, "size,rate\n64,1.5\n", **options)


def test_a_repetition_that_is_there_twice(tmp_path):
    text = "size,cycles_per_packet,run\n1,2,0\n1,3,0\n"
    with pytest.raises(DataError, match=r"duplicate .* of repetition 0, first at .*:2") as caught:
        imported(tmp_path, text, repetition="run")
    assert caught.value.location.line == 3


@given(st.floats(1e-6, 1e12), st.sampled_from(["pps", "kpps", "Mpps", "Gpps"]))
def test_rates_are_the_same_in_every_unit(value, unit):
    factor = {"pps": 1, "kpps": 1e3, "Mpps": 1e6, "Gpps": 1e9}[unit]
    assert convert(value, unit, "packet_rate") == pytest.approx(value * factor / 1e6, rel=1e-12)


def test_units_of_metrics():
    assert convert(1500, "usec", "latency_p50") == 1500
    assert convert(1500, "ns", "latency_max") == 1.5
    assert convert(3, "%", "loss_ratio_at_50") == 0.03
    assert convert(3, "cycles/packet", "cycles_per_packet") == 3
    for name, metric in METRICS.items():
        assert convert(2.5, metric.unit, name) == 2.5
        assert convert(2.5, "", name) == 2.5
    with pytest.raises(UsageError, match="is in cycles/packet"):
        convert(3, "cycles", "cycles_per_packet")
    assert [m for m in METRICS if needs_unit(m)] == [
        "packet_rate", "baseline_packet_rate", "throughput_ndr", "throughput_pdr", "receive_rate", "latency",
        "core_frequency", "tsc_frequency", "compile_time", "load_time",
    ]  # fmt: skip


def test_numbers_of_names():
    assert name_facts("{frame_size}b-{cores}c", "tests.64b-2c-ip4")[0] == {"frame_size": 64, "cores": 2}
    assert name_facts("scale{entries}-", "ip4scale20k-a") == ({"entries": 20_000}, "ip4scale{entries}-a")
    assert name_facts("scale{entries}-", "ip4scale2m-a")[0] == {"entries": 2_000_000}
    assert name_facts("rx-{load}.csv", "rx-0.5.csv")[0] == {"load": 0.5}
    assert name_facts("rx-{load}.csv", "tx-0.5.csv") is None
    for wrong in ("rx", "{a}{a}", "{", "{Big}"):
        with pytest.raises(UsageError):
            name_facts(wrong, "x")


@pytest.mark.parametrize(("text", "value"), [(" 12 ", 12), ("1e3", 1000), ("0.5", 0.5), ("a b", "a b"), ("nan", "nan")])
def test_facts(text, value):
    assert fact(text) == value
    assert type(fact(text)) is type(value)


# --- assembly


def trial(number, repetition=None, name="cycles_per_packet", flags=(), **facts):
    place = Place("file", int(number))
    return ImportedTrial(facts, (ImportedValue(name, float(number), "", place, name),), place, repetition, flags)


def assembled(*trials, **options):
    return assemble([Reading(trials)], ImportOptions(**options))


def test_what_varies_is_a_variable_and_the_rest_is_constant():
    made = assembled(trial(1, a=1, b="x", c=5), trial(2, a=2, b="x", c=5), trial(3, a=2, b="y", c=5))
    assert made.variables == ("a", "b")
    assert made.constants == {"c": 5}
    assert [tuple(p.values.values()) for p in made.points] == [(1, "x"), (2, "x"), (2, "y")]


def test_the_abscissa_comes_first_and_is_there_though_it_does_not_vary():
    made = assembled(trial(1, a=1, b=2), trial(2, a=2, b=2), variables=(Named("size", "b"),))
    assert made.variables == ("size", "a")


def test_repetitions_are_counted_and_fill_up():
    made = assembled(trial(1, a=1), trial(2, a=1), trial(3, repetition=1, a=1), trial(4, name="cache_misses", a=1))
    (point,) = made.points
    assert [(r.repetition, {m: v.value for m, v in r.values.items()}) for r in point.results] == [
        (0, {"cycles_per_packet": 1, "cache_misses": 4}),
        (1, {"cycles_per_packet": 3}),
        (2, {"cycles_per_packet": 2}),
    ]


def test_settings_and_only():
    made = assembled(trial(1, a=1), trial(2, a=2), settings={"b": 7}, only={"a": 2})
    assert (made.variables, made.constants) == ((), {"a": 2, "b": 7})
    assert [item.reason for item in made.left_out] == ["is not among --only"]


@pytest.mark.parametrize(
    ("trials", "options", "said"),
    [
        ((trial(1, a=1), trial(2, b=1)), {}, "is not known here, but it is elsewhere"),
        ((trial(1, a=1), trial(2, a="x")), {}, "a number elsewhere"),
        ((trial(1, a="x"), trial(2, a="$x")), {}, "cannot be a value"),
        ((trial(1, a="x"), trial(2, a="x\x85y")), {}, "cannot be a value"),
        ((trial(1, **{"a b": 1}), trial(2, **{"a b": 2})), {}, "not a name of a variable"),
        ((trial(1, a=1),), {"settings": {"a": 2}}, "file:1 says 1"),
        ((trial(1, a=1),), {"variables": (Named("b"),)}, "does not state 'b'"),
        ((trial(1, a=1),), {"repetition": "b"}, "does not state 'b'"),
        ((trial(1, a=0.5),), {"repetition": "a"}, "not a whole number"),
        ((trial(1, a=1),), {"metrics": (Named("cache_misses"),)}, "nothing to import|no such values"),
        ((), {}, "there is nothing to import"),
        (tuple(trial(n, a=n, b=n) for n in range(400)), {}, "160,000 combinations"),
    ],
)
def test_what_cannot_be_put_together(trials, options, said):
    with pytest.raises((UsageError, DataError), match=said):
        assembled(*trials, **options)


def test_nothing_to_import_says_why():
    left = tuple(LeftOut(f"file {n}", "is empty") for n in range(5))
    with pytest.raises(DataError, match=r"file 0 is empty; file 1 is empty; file 2 is empty \(and 2 more\)"):
        assemble([Reading((), left)], ImportOptions())
