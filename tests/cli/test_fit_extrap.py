"""Files of Extra-P: text, JSON in both forms, JSON Lines; what a file is, its content tells."""

import json

import pytest
from support.command import p4perf

POINTS = [1, 2, 4, 8, 16, 32, 64]


def value(p, factor, repetition):
    return round(20 + factor * p + 0.1 * repetition, 3)


def text(regions=("main",), metrics=("cycles",)):
    lines = ["# made by a test", "PARAMETER p", "POINTS " + " ".join(f"({p})" for p in POINTS)]
    for factor, (region, metric) in enumerate(((r, m) for m in metrics for r in regions), start=3):
        lines += [f"METRIC {metric}", f"REGION {region}"]
        lines += ["DATA " + " ".join(str(value(p, factor, r)) for r in range(3)) for p in POINTS]
    return "\n".join(lines) + "\n"


NESTED = {
    "parameters": ["p"],
    "measurements": {
        "main": {"cycles": [{"point": [p], "values": [value(p, 3, r) for r in range(3)]} for p in POINTS]}
    },
}
NUMBERED = {
    "parameters": [{"id": 1, "name": "p"}],
    "metrics": [{"id": 1, "name": "cycles"}],
    "callpaths": [{"id": 1, "name": "main"}],
    "coordinates": [
        {"id": k, "parameter_value_pairs": [{"parameter_id": 1, "parameter_value": p}]} for k, p in enumerate(POINTS)
    ],
    "measurements": [
        {"coordinate_id": k, "callpath_id": 1, "metric_id": 1, "value": value(p, 3, r)}
        for k, p in enumerate(POINTS)
        for r in range(3)
    ],
}
LINES = "".join(
    json.dumps(
        {"params": {"p": p}, "callpath": "main", "metric": "cycles", "value": [value(p, 3, r) for r in range(3)]}
    )
    + "\n"
    for p in POINTS
)
FORMS = {"text": text(), "nested": json.dumps(NESTED), "numbered": json.dumps(NUMBERED), "lines": LINES}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["data.txt", "data.csv"])
def test_every_form(tmp_path, form, name):
    path = tmp_path / name
    path.write_text(FORMS[form])
    done = p4perf("fit", path, "-o", tmp_path / "out", "--format", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert (found["x"]["name"], found["y"]["name"], found["domain"]) == ("p", "cycles", [1, 64])
    (segment,) = found["segments"]
    assert segment["template"] == "poly1"
    assert [p["value"] for p in segment["parameters"]] == pytest.approx([20.1, 3], rel=1e-6)
    derivation = json.loads((tmp_path / "out" / "model.json").read_text())["provenance"]["derivation"]
    assert derivation["repetitions"] == [3, 3]


def test_one_of_several_series(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text(text(regions=("parse", "match"), metrics=("cycles", "misses")))
    done = p4perf("fit", path, "--region", "match", "--y", "misses", "--x", "p", "--format", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["y"]["name"] == "misses"
    assert found["segments"][0]["parameters"][1]["value"] == pytest.approx(6)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (
            [],
            "there are 4 series: name region and metric\nhint: regions: 'parse', 'match'; metrics: 'cycles', 'misses'",
        ),
        (["--region", "match"], "there are 2 series: name metric"),
        (["--region", "mtach", "--y", "cycles"], "there is no region 'mtach'\nhint: did you mean match?"),
        (["--region", "match", "--y", "cycle"], "there is no metric 'cycle'\nhint: did you mean cycles?"),
        (["--x", "q"], "has no parameter 'q'"),
    ],
)
def test_names_that_do_not_choose_one(tmp_path, options, wanted):
    path = tmp_path / "data.txt"
    path.write_text(text(regions=("parse", "match"), metrics=("cycles", "misses")))
    done = p4perf("fit", path, *options)
    assert done.code == 2
    assert done.out == ""
    assert wanted in done.err
    assert done.err.count("error: ") == 1


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (text().replace("DATA 23.0", "DATA 23,0"), "data.txt:6:"),
        (text().replace("REGION", "REGON"), "unknown section 'REGON'"),
        (text().replace("POINTS (1)", "POINTS (1"), "data.txt:3"),
        (text().rsplit("DATA", 1)[0], "data.txt"),
        ("PARAMETER p q\nPOINTS (1 1) (2 2)\nREGION main\nMETRIC t\nDATA 1\nDATA 2\n", "several parameters vary: p, q"),
        ("PARAMETER p\n", "has no measurements"),
        (json.dumps(NESTED)[:-5], "data.txt:1"),
        (json.dumps({"parameters": ["p"], "measurements": {}}), "has no measurements"),
        (json.dumps({"parameters": ["p"]}), "measurements"),
        (LINES + '{"params": {"p": "x"}, "value": 1}\n', "data.txt:8"),
    ],
)
def test_a_broken_file_is_refused_with_its_place(tmp_path, content, wanted):
    path = tmp_path / "data.txt"
    path.write_text(content)
    done = p4perf("fit", path, "-o", tmp_path / "out")
    assert done.code == 2, done.err
    assert done.out == ""
    assert wanted in done.err
    assert "Traceback" not in done.err
    assert done.err.count("error: ") == 1
    assert not (tmp_path / "out").exists()


def test_a_csv_file_has_no_regions(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,b\n1,2\n2,3\n")
    done = p4perf("fit", path, "--x", "a", "--y", "b", "--region", "main")
    assert done.code == 2
    assert "has no regions" in done.err
