from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4perf.errors import DataError, P4PerfError, UsageError
from p4perf.evaluation.fitting.extrap import parse_extrap, read_extrap, select_series
from p4perf.results.table import Samples

TEXT = """\
# made by hand
PARAMETER entries

POINTS ( 10 ) ( 20 )
POINTS (4e1)
METRIC  cycles
REGION main
DATA 5.0 5.5\t6
DATA 7
DATA -1.5e-3 2
REGION main->lookup
DATA 1
DATA 2
DATA 3

METRIC packets per second
DATA 9
DATA 8
DATA 7
"""
NESTED = {
    "parameters": ["entries"],
    "measurements": {
        "main": {"cycles": [{"point": [20], "values": [7]}, {"point": [10], "values": [5.0, 5.5, 6]}]},
        "main->lookup": {"cycles": [{"point": [10], "values": [1]}], "misses": [{"point": [10], "values": [2]}]},
    },
}
NUMBERED = {
    "parameters": [{"id": 7, "name": "size"}, {"id": 3, "name": "entries"}],
    "callpaths": [{"id": 1, "name": "main"}],
    "metrics": [{"id": 9, "name": "cycles"}],
    "coordinates": [
        {
            "id": at,
            "parameter_value_pairs": [
                {"parameter_id": 7, "parameter_value": 64},
                {"parameter_id": 3, "parameter_value": 10 * at},
            ],
        }
        for at in (1, 2)
    ],
    "measurements": [
        {"id": i, "coordinate_id": at, "callpath_id": 1, "metric_id": 9, "value": value}
        for i, (at, value) in enumerate([(1, 5.0), (2, 7), (1, 5.5)])
    ],
}
LINES = """\
{"params": {"entries": 10, "size": 64}, "metric": "cycles", "callpath": "main", "value": 5.0}
{"params": {"size": 64, "entries": 20}, "metric": "cycles", "callpath": "main", "value": [7, 8]}

{"params": {"entries": 10, "size": 64}, "metric": "cycles", "callpath": "main", "value": 5.5}
"""


def write(tmp_path: Path, text: str | dict) -> Path:
    path = tmp_path / "data.txt"
    path.write_text(text if isinstance(text, str) else json.dumps(text, indent=1))
    return path


# --- what is there


def test_text(tmp_path: Path) -> None:
    series = read_extrap(write(tmp_path, TEXT))
    assert [(s.region, s.metric) for s in series] == [
        ("main", "cycles"), ("main->lookup", "cycles"), ("main->lookup", "packets per second"),
    ]  # fmt: skip
    assert series[0].samples == Samples(
        (10.0, 20.0, 40.0), ((5.0, 5.5, 6.0), (7.0,), (-0.0015, 2.0)), "entries", "cycles"
    )
    assert series[2].samples.values == ((9.0,), (8.0,), (7.0,))
    assert series[0].constants == ()


@pytest.mark.parametrize(
    "points",
    ["POINTS (1) (2)", "POINTS 1 2", "POINTS\t( 1 )(2 )", "POINTS ((1)) ((2))", "POINTS (1)\r\nPOINTS (2)"],
)
def test_ways_to_write_points(points: str) -> None:
    (series,) = parse_extrap(f"PARAMETER p\r\n{points}\r\nREGION r\r\nDATA 3\r\nDATA 4\r\n", "f")
    assert (series.samples.x, series.samples.values) == ((1.0, 2.0), ((3.0,), (4.0,)))
    assert (series.metric, series.samples.y_name) == ("", "value")


@pytest.mark.parametrize("points", ["POINTS (1 64) (2 64)", "POINTS ((1) (64)) ((2) (64))", "POINTS ( 1 64)((2) 64 )"])
@pytest.mark.parametrize("parameters", ["PARAMETER p size", "PARAMETER p\nPARAMETER size"])
def test_what_does_not_vary_is_said(points: str, parameters: str) -> None:
    (series,) = parse_extrap(f"{parameters}\n{points}\nREGION r\nDATA 3\nDATA 4\n", "f")
    assert series.samples.x_name == "p"
    assert series.constants == (("size", 64.0),)


def test_repeated_points_and_regions_are_repetitions() -> None:
    (series,) = parse_extrap("PARAMETER p\nPOINTS 1 1\nREGION r\nDATA 3\nDATA 4\nREGION r\nDATA 5\nDATA 6\n", "f")
    assert series.samples.values == ((3.0, 4.0, 5.0, 6.0),)


def test_a_single_point_has_an_abscissa_too() -> None:
    (series,) = parse_extrap("PARAMETER p q\nPOINTS (1 2)\nDATA 3\n", "f")
    assert (series.samples.x_name, series.samples.x, series.constants) == ("p", (1.0,), (("q", 2.0),))
    (series,) = parse_extrap("PARAMETER p q\nPOINTS (1 2)\nDATA 3\n", "f", x="q")
    assert (series.samples.x_name, series.samples.x, series.constants) == ("q", (2.0,), (("p", 1.0),))


def test_nested_json(tmp_path: Path) -> None:
    series = read_extrap(write(tmp_path, NESTED))
    assert [s.label() for s in series] == [
        "region 'main', metric 'cycles'",
        "region 'main->lookup', metric 'cycles'",
        "region 'main->lookup', metric 'misses'",
    ]
    assert series[0].samples == Samples((10.0, 20.0), ((5.0, 5.5, 6.0), (7.0,)), "entries", "cycles")


@pytest.mark.parametrize("indent", [None, 2])
def test_numbered_json(indent: int | None) -> None:
    (series,) = parse_extrap("\n\n" + json.dumps(NUMBERED, indent=indent), "f")
    assert series.samples == Samples((10.0, 20.0), ((5.0, 5.5), (7.0,)), "entries", "cycles")
    assert series.constants == (("size", 64.0),)


def test_json_lines(tmp_path: Path) -> None:
    (series,) = read_extrap(write(tmp_path, LINES))
    assert series.samples == Samples((10.0, 20.0), ((5.0, 5.5), (7.0, 8.0)), "entries", "cycles")
    assert series.constants == (("size", 64.0),)


@pytest.mark.parametrize("text", ['{"params": {"p": 1}, "value": 2}', '{"params":{"p":1},"value":[2]}\r\n\r\n'])
def test_one_line(text: str) -> None:
    (series,) = parse_extrap(text, "f")
    assert (series.label(), series.samples.values) == ("the only series", ((2.0,),))


# --- choosing


def test_selection() -> None:
    series = parse_extrap(TEXT, "f")
    assert select_series(series, region="main") is series[0]
    assert select_series(series, metric="packets per second") is series[2]
    assert select_series(series, region="main->lookup", metric="cycles") is series[1]
    assert select_series(series[:1]) is series[0]
    for wanted, message in [
        ({}, "there are 3 series: name region and metric\nhint: regions: 'main', 'main->lookup'; metrics: 'cycles'"),
        ({"metric": "cycles"}, "there are 2 series: name region\nhint: regions: 'main', 'main->lookup'"),
        ({"region": "main->lookup"}, "there are 2 series: name metric\nhint: metrics: 'cycles', 'packets per second'"),
        ({"metric": "cycels"}, "there is no metric 'cycels'\nhint: did you mean cycles?"),
        ({"region": "zzz"}, "there is no region 'zzz'\nhint: regions: main, main->lookup"),
    ]:
        with pytest.raises(UsageError, match=re.escape(message)):
            select_series(series, **wanted)


# --- what is wrong


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f: has no measurements"),
        ("PARAMETER p\n", "f: has no measurements"),
        ("PARAMETERS p\n", "f:1:1: unknown section 'PARAMETERS'"),
        ("PARAMETERS p\n", "hint: did you mean PARAMETER?"),
        ("PARAMETER\n", "f:1: PARAMETER: is empty"),
        ("PARAMETER p q p\n", "f:1: PARAMETER: duplicate 'p'"),
        ("POINTS (1)\n", "f:1: POINTS: there must be a PARAMETER above"),
        ("PARAMETER p\nPOINTS 1\nPARAMETER q\n", "f:3: PARAMETER: must stand before all POINTS"),
        ("PARAMETER p\nDATA 1\n", "f:2: DATA: there must be POINTS above"),
        ("PARAMETER p\nPOINTS 1\nDATA 1\nPOINTS 2\n", "f:4: POINTS: must stand before all DATA"),
        ("PARAMETER p\nPOINTS (1) (x)\n", "f:2:13: POINTS: 'x' is not a finite number"),
        ("PARAMETER p\nPOINTS (1) (x)\n", "POINTS (1) (x)\n              ^"),
        ("PARAMETER p\nPOINTS (1 2)\n", "f:2:12: POINTS: a point has one coordinate for each parameter (p), not 2"),
        ("PARAMETER p q\nPOINTS (1 2) (3)\n", "f:2:16: POINTS: a point has one coordinate for each"),
        ("PARAMETER p q\nPOINTS 1 2\n", "for each parameter (p, q), not 1"),
        ("PARAMETER p\nPOINTS ()\n", "for each parameter (p), not 0"),
        ("PARAMETER p\nPOINTS (1) (2\n", "f:2: POINTS: a bracket is not closed"),
        ("PARAMETER p\nPOINTS (1)) (2)\n", "f:2:11: POINTS: a bracket is closed that was not opened"),
        ("PARAMETER p\nPOINTS (((1)))\n", "f:2:10: POINTS: brackets are nested too deeply"),
        ("PARAMETER p\nPOINTS 1\nREGION r\nDATA 1 two\n", "f:4:8: DATA: 'two' is not a finite number"),
        ("PARAMETER p\nPOINTS 1\nREGION r\nDATA nan\n", "f:4:6: DATA: 'nan' is not a finite number"),
        ("PARAMETER p\nPOINTS 1\nREGION r\nDATA\n", "f:4: DATA: is empty"),
        ("PARAMETER p\nPOINTS 1\nREGION r\nDATA 1\nDATA 2\n", "f:5: DATA: there are more DATA lines than points (1)"),
        ("PARAMETER p\nPOINTS 1 2\nREGION r\nMETRIC m\nDATA 1\n", "f:4: r m: 1 DATA lines for 2 points"),
        ("PARAMETER p\nPOINTS 1 2\nREGION r\nDATA 1\nREGION s\nDATA 1\nDATA 1", "f:3: r: 1 DATA lines for 2 points"),
        ("PARAMETER p\nPOINTS 1 2\nDATA 1\n", "f:4: 1 DATA lines for 2 points"),
    ],
)  # fmt: skip
def test_broken_text(text: str, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        parse_extrap(text, "f")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": []}, "f: parameters: needs at least 1, has 0"),
        ({"parameters": ["p", "p"]}, "f: parameters: duplicate 'p'"),
        ({"parameters": None}, "f: the key 'parameters' is missing"),
        ({"measurements": []}, "f: measurements: expected a mapping (key: value), got a list"),
        ({"measurements": {}}, "f: has no measurements"),
        ({"measurements": {"r": {"m": [{"point": [1]}]}}}, "f: measurements.r.m[0]: the key 'values' is missing"),
        ({"measurements": {"r": {"m": [{"point": [1], "values": []}]}}}, "values: needs at least 1, has 0"),
        ({"measurements": {"r": {"m": [{"point": [1], "values": ["2"]}]}}}, "values[0]: expected a number, got '2'"),
        ({"measurements": {"r": {"m": [{"point": [True], "values": [2]}]}}}, "point[0]: expected a number, got true"),
        (
            {"measurements": {"r": {"m": [{"point": [1, 2], "values": [2]}]}}},
            "f: measurements.r.m[0].point: must have one coordinate for each parameter (entries), not 2",
        ),
    ],
)
def test_broken_nested_json(changes: dict, message: str) -> None:
    data = {key: value for key, value in (NESTED | changes).items() if value is not None}
    with pytest.raises(DataError, match=re.escape(message)):
        parse_extrap(json.dumps(data, indent=1), "f")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metrics": []}, "f: measurements[0].metric_id: there is none with the id 9"),
        ({"callpaths": [{"id": 2, "name": "x"}]}, "f: measurements[0].callpath_id: there is none with the id 1"),
        ({"coordinates": []}, "f: measurements[0].coordinate_id: there is none with the id 1"),
        ({"parameters": [{"id": 1}]}, "f: parameters[0]: the key 'name' is missing"),
        ({"parameters": [{"id": 3, "name": "p"}]}, "coordinates[0].parameter_value_pairs: must give a value"),
        ({"metrics": [{"id": "9", "name": "m"}]}, "f: metrics[0].id: expected a whole number, got '9'"),
    ],
)  # fmt: skip
def test_broken_numbered_json(changes: dict, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        parse_extrap(json.dumps(NUMBERED | changes), "f")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"params": {"p": 1}, "value": 1}\n\n{"params": {"p": 2}}\n', "f:3: the key 'value' is missing"),
        ('{"params": {"p": 1}, "value": 1}\n{"params": {"p": 2} "value": 1}\n', "f:2:21: is not valid JSON"),
        ('{"params": {"p": 1}, "value": 1}\n{"params": {"q": 2}, "value": 1}\n', "f:2: params: names q where the"),
        ('{"params": {"p": 1}, "value": 1}\n[1]\n', "f:2: is not a JSON object"),
        ('{"params": {"p": 1}, "value": NaN}\n', "f:1:1: is not valid JSON"),
        ('{"params": {}, "value": 1}\n', "f:1: params: needs at least 1, has 0"),
        ('{"params": {"p": "1"}, "value": 1}\n', "f:1: params.p: expected a number, got '1'"),
        ('{"params": {"p": 1}, "value": 1e999}\n', "f:1: value[0]: expected a finite number, got inf"),
        ('{"params": {"p": 1}, "value": 1}\n{"params": {"p": 2}, "value": 1, "metric": 3}', "2: metric: expected a"),
        ('{"schema": "something else"}\n', "f: is not an experiment of Extra-P: there are no measurements"),
        ("{", "f:1:2: is not valid JSON"),
    ],
)  # fmt: skip
def test_broken_json_lines(text: str, message: str) -> None:
    if "NaN" in text:
        message = "is not valid JSON: NaN is not a number"
    with pytest.raises(DataError, match=re.escape(message)):
        parse_extrap(text, "f")


def test_several_parameters_are_named() -> None:
    text = "PARAMETER p q s\nPOINTS (1 5 8) (2 6 8)\nREGION r\nMETRIC m\nDATA 1\nDATA 2\n"
    for x in (None, "q"):
        with pytest.raises(DataError, match=r"f: r\.m: several parameters vary: (p, q|q, p); one curve describes one"):
            parse_extrap(text, "f", x=x)
    with pytest.raises(DataError, match="several parameters vary: s, p, q"):
        parse_extrap(text, "f", x="s")
    with pytest.raises(UsageError, match=r"f has no parameter 'pp'\nhint: did you mean p\?"):
        parse_extrap(text, "f", x="pp")


WORDS = st.sampled_from(
    ["PARAMETER", "POINTS", "METRIC", "REGION", "DATA", "#", "(", ")", " ", "\n", "\r\n", "\t", "1", "2.5", "p", "->",
     "{", "}", "[", "]", '"params"', '"value"', ":", ","]
)  # fmt: skip


@given(st.one_of(st.text(), st.lists(WORDS).map("".join), st.lists(WORDS).map(" ".join)))
def test_whatever_the_text_the_error_is_ours(text: str) -> None:
    with contextlib.suppress(P4PerfError):
        parse_extrap(text, "f")
