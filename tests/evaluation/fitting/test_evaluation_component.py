from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from p4perf.errors import UsageError
from p4perf.evaluation.fitting.component import derive_model
from p4perf.evaluation.fitting.derivation import FitOptions
from p4perf.models import ComponentModel
from p4perf.results.table import Samples


def sweep() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    rows = []
    for index, x in enumerate(range(20)):
        for repetition in range(6):
            common = {"point": str(x), "point_index": index, "repetition": repetition, "attempt": 0, "headers": x}
            common |= {"accepted": True, "flags": ""}
            baseline = 40 + rng.normal(0, 0.1)
            cost = 6.0 * x + rng.normal(0, 0.2)
            for metric, value in (("cycles_per_packet", baseline + cost), ("cost_cycles_per_packet", cost)):
                rows.append(common | {"metric": metric, "value": value, "unit": "cycles"})
    return pd.DataFrame(rows)


def test_sweep_to_model() -> None:
    model = derive_model(sweep(), x="headers", name="parser/headers", target="dpdk-c", provenance={"run": "r1"}).model
    assert len(model.fitting.segments) == 1
    assert model.fitting.segments[0].template.name == "poly1"
    assert model.fitting.segments[0].parameters == pytest.approx((40.0, 6.0), rel=0.01)
    assert model.uncertainty is not None
    assert 6.0 in model.uncertainty.parameters[0][1]
    assert (model.x.name, model.y.name, model.y.unit, model.domain) == (
        "headers",
        "cycles_per_packet",
        "cycles",
        (0.0, 19.0),
    )
    facts = model.provenance["derivation"]
    assert model.provenance["run"] == "r1"
    assert facts["profile"] == "exact"
    assert facts["points"] == 20
    assert facts["repetitions"] == [6, 6]
    assert ComponentModel.from_json(model.to_json()) == model


def test_cost_over_the_baseline() -> None:
    model = derive_model(
        sweep(), x="headers", y="cost_cycles_per_packet", options=FitOptions(segments=1, error="rmse")
    ).model
    assert model.fitting.segments[0].parameters == pytest.approx((0.0, 6.0), abs=0.1)


def test_a_table_needs_x() -> None:
    with pytest.raises(UsageError, match="needs the name"):
        derive_model(sweep())


def test_samples_bring_their_names() -> None:
    samples = Samples.from_arrays([1, 2, 3], [1.0, 1.0, 1.0], x_name="writes", y_name="cycles", y_unit="cycles")
    model = derive_model(samples, options=FitOptions(resamples=0)).model
    assert model.formulas() == ("cycles = 1",)
    assert model.uncertainty is None
