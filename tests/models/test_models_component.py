from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from p4perf.errors import DataError, UsageError
from p4perf.models import ComponentModel, Fitting, PiecewiseFitting, Quantity
from p4perf.models.component import ConfidenceInterval, Uncertainty
from p4perf.models.templates import BasisTemplate, Polynomial, find_template


@pytest.fixture
def model() -> ComponentModel:
    left = Fitting(find_template("log"), (0.1 + 0.2, 1 / 3), 1.0, 90.0, 0.001, 3)
    right = Fitting(find_template("exp"), (1.0, 1e-300, -2.5e-7), 1e6, 2e7, 0.002, 2, origin=1e6)
    uncertainty = Uncertainty(
        level=0.95,
        parameters=(
            (ConfidenceInterval(0.2, 0.4), ConfidenceInterval(0.3, 0.4)),
            (ConfidenceInterval(0.9, 1.1), ConfidenceInterval(0.0, 1e-3), ConfidenceInterval(-3e-7, -2e-7)),
        ),
        breakpoints=(ConfidenceInterval(90.0, 1e6),),
        x=(1.0, 30.0, 90.0, 1e6, 2e7),
        low=(0.2, 1.2, 1.5, 0.9, 0.9),
        high=(0.4, 1.6, 2.0, 1.1, 1.1),
        resamples=200,
        seed=1,
    )
    return ComponentModel(
        name="mat/exact-entries",
        target="dpdk-c",
        x=Quantity("entries", "", "log"),
        y=Quantity("cycles_per_packet", "cycles"),
        fitting=PiecewiseFitting.join((left, right)),
        uncertainty=uncertainty,
        provenance={"machine": {"caches": {"L1": 32768}}, "profile": "exact"},
    )


def test_round_trip_is_exact(model: ComponentModel) -> None:
    assert ComponentModel.from_json(model.to_json()) == model
    plain = replace(model, uncertainty=None)
    assert ComponentModel.from_json(plain.to_json()) == plain
    assert json.loads(model.to_json())["schema_version"] == 2


def test_version_1_is_read(model: ComponentModel) -> None:
    """With its former keys: parts, splits, split_x."""
    record = json.loads(model.to_json())
    record["schema_version"] = 1
    fitting, known = record["fitting"], record["uncertainty"]
    for now, former in (("segments", "parts"), ("breakpoints", "splits"), ("breakpoint_x", "split_x")):
        fitting[former] = fitting.pop(now)
    known["splits"] = known.pop("breakpoints")
    former_candidate = {"parts": 1, "error": 0.1, "splits": [], "split_x": []}
    record["provenance"]["derivation"] = {"profile": "exact", "candidates": [former_candidate]}
    found = ComponentModel.from_json(json.dumps(record))
    candidate = {"segments": 1, "error": 0.1, "breakpoints": [], "breakpoint_x": []}
    provenance = {**model.provenance, "derivation": {"profile": "exact", "candidates": [candidate]}}
    assert found == replace(model, provenance=provenance)


def test_estimate(model: ComponentModel) -> None:
    estimate = model.estimate([0.5, 1.0, 500.0, 2e7, 3e7])
    assert estimate.extrapolated.tolist() == [True, False, False, False, True]
    assert estimate.value[1] == pytest.approx(0.3)
    assert estimate.low[1] == pytest.approx(0.2)
    assert (estimate.low[1:4] <= estimate.high[1:4]).all()
    assert np.isnan(replace(model, uncertainty=None).estimate([1.0]).low).all()


def test_between_segments_the_band_includes_both(model: ComponentModel) -> None:
    """The first one ends at 90 with 0.3 + log(90) / 3 = 1.8, the second begins at a million with 1."""
    estimate = model.estimate([90.0, 5000.0, 1e6])
    assert (estimate.low <= estimate.value).all()
    assert (estimate.value <= estimate.high).all()
    assert estimate.value[1] == pytest.approx(0.3 + np.log(90.0) / 3)
    assert estimate.low[1] == pytest.approx(1.0)
    assert estimate.high[0] < 2.1
    assert estimate.low[2] == pytest.approx(0.9)


def test_marginal_cost(model: ComponentModel) -> None:
    assert model.derivative([0.5, 30.0]) == pytest.approx([2 / 3, 1 / 90])
    assert float(model.derivative(2e6)) == pytest.approx(-2.5e-307 * np.exp(-0.25))


def test_ranks_are_stored_and_optional(model: ComponentModel) -> None:
    left, right = model.fitting.segments
    other = replace(model, fitting=PiecewiseFitting.join((replace(left, rank=3.0), right)))
    data = json.loads(other.to_json())
    assert [segment["rank"] for segment in data["fitting"]["segments"]] == [3.0, 3.0]
    del data["fitting"]["segments"][0]["rank"]
    assert [segment.rank for segment in ComponentModel.from_json(json.dumps(data)).fitting.segments] == [2.0, 3.0]


def test_numbers_that_are_not_finite_are_not_stored(model: ComponentModel) -> None:
    endless = PiecewiseFitting.join((Fitting(find_template("const"), (np.inf,), 0.0, 1.0, 0.0, 2),))
    with pytest.raises(UsageError, match="'mat/exact-entries' cannot be stored"):
        replace(model, fitting=endless, uncertainty=None).to_json()


def test_formulas_name_the_quantities(model: ComponentModel) -> None:
    assert model.formulas()[0] == "cycles_per_packet = 0.3 + 0.3333 ln entries"


def test_templates_of_others(model: ComponentModel) -> None:
    mine = BasisTemplate("mine", "poly", 7, Polynomial(6))
    fitting = PiecewiseFitting.join((Fitting(mine, (1.0,) * 7, 0.0, 1.0, 0.0, 9),))
    other = replace(model, fitting=fitting, uncertainty=None)
    assert ComponentModel.from_json(other.to_json(), templates=[mine]) == other
    with pytest.raises(DataError, match="no function template 'mine'"):
        ComponentModel.from_json(other.to_json())


def _set(data: Any, path: str, value: object) -> None:
    *route, last = path.split("/")
    for key in route:
        data = data[int(key) if key.isdigit() else key]
    if value is ...:
        del data[last]
    else:
        data[int(last) if last.isdigit() else last] = value


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("schema", "other", "m.json: schema: must be"),
        ("schema_version", 3, "m.json: schema_version: must be 2, not 3"),
        ("name", ..., "m.json: name: is missing"),
        ("target", 3, "m.json: target: must be text"),
        ("target", "\ud800", "m.json: target: holds half a character"),
        ("x/scale", "cubic", "m.json: x.scale: must be linear or log"),
        ("fitting", [], "m.json: fitting: must be an object"),
        ("fitting/segments", {}, "m.json: fitting.segments: must be a list"),
        (
            "fitting/segments/0/parameters/b",
            "1",
            r"m.json: fitting.segments\[0\].parameters.b: must be a finite number",
        ),
        ("fitting/segments/0/parameters/b", 10**400, "parameters.b: must be a finite number"),
        ("fitting/segments/0/rank", "2", r"fitting.segments\[0\].rank: must be a finite number"),
        (
            "fitting/segments/0/parameters/q",
            1,
            r"m.json: fitting.segments\[0\].parameters.q: is not a parameter of log",
        ),
        ("fitting/segments/0/template", "cubic", r"fitting.segments\[0\].template: there is no function template"),
        ("fitting/segments/1/points", 2.5, r"fitting.segments\[1\].points: must be a whole number"),
        ("fitting/breakpoints/0", True, r"fitting.breakpoints\[0\]: must be a whole number"),
        ("fitting/breakpoints/0", 7, "m.json: fitting: the segments of a piecewise fitting"),
        ("uncertainty/parameters/0", 3, r"uncertainty.parameters\[0\]: must be a list"),
        ("uncertainty/parameters/0/1", ..., "m.json: the intervals of a model must match its parameters"),
        ("uncertainty/low", [], "uncertainty: x must be as long"),
        ("provenance", [], "m.json: provenance: must be an object"),
    ],
)
def test_bad_files_are_told_by_file_and_key(model: ComponentModel, path: str, value: object, message: str) -> None:
    data = json.loads(model.to_json())
    if path == "uncertainty/parameters/0/1":
        data["uncertainty"]["parameters"][0].pop()
    else:
        _set(data, path, value)
    with pytest.raises(DataError, match=message):
        ComponentModel.from_json(json.dumps(data), file="m.json")


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "9" * 5000, "[" * 100_000])
def test_what_is_no_model(text: str) -> None:
    with pytest.raises(DataError, match=r"m\.json"):
        ComponentModel.from_json(text, file="m.json")


def test_provenance_must_be_storable(model: ComponentModel) -> None:
    with pytest.raises(UsageError, match="JSON"):
        replace(model, provenance={"when": object()})


def test_models_need_numpy_only() -> None:
    heavy = ("scipy", "pandas", "matplotlib", "pydantic")
    code = f"import sys, p4perf.models; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
