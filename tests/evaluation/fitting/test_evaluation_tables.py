from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from p4perf.evaluation.fitting.derivation import Derivation, FitOptions, derive
from p4perf.evaluation.fitting.selection import Criteria
from p4perf.evaluation.fitting.tables import candidate_rows

X = np.arange(1.0, 31.0)


@pytest.fixture(scope="module")
def derivation() -> Derivation:
    noise = 1 + 0.01 * np.random.default_rng(1).standard_normal(30)
    return derive(X, np.where(X < 16, 100.0, 40 + 6 * X) * noise, FitOptions(max_segments=3))


def test_every_number_of_segments(derivation: Derivation) -> None:
    rows = candidate_rows(derivation)
    assert [row.segments for row in rows] == [1, 2, 3]
    assert [row.chosen for row in rows] == [False, True, False]
    two, fitting = rows[1], derivation.of_segments(2)
    assert (two.error, two.rank, two.breakpoints, two.breakpoint_x) == (fitting.error, fitting.rank, (14,), (16.0,))
    assert two.templates == ("const", "poly1")
    assert two.families == ("const", "poly")
    assert (two.l1_bic, two.aic, two.aicc, two.bic) == tuple(vars(derivation.criteria[1]).values())


def test_json(derivation: Derivation) -> None:
    none = Criteria(math.inf, 1.0, math.inf, 2.0)
    rows = candidate_rows(replace(derivation, criteria=(none, *derivation.criteria[1:])))
    data = json.loads(json.dumps([row.as_dict() for row in rows], allow_nan=False))
    assert (data[0]["l1_bic"], data[0]["aic"], data[0]["aicc"], data[0]["bic"]) == (None, 1.0, None, 2.0)
    assert data[1]["breakpoint_x"] == [16.0]
