"""Bounds on shapes fail on series without the effect of their claim, and pass with it (benchmarks/null_claims.py)."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from p4perf.evaluation.papers import shipped_papers

FOLDER = Path(__file__).resolve().parents[3]


def _loaded():
    spec = importlib.util.spec_from_file_location("null_claims", FOLDER / "benchmarks" / "null_claims.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["null_claims"] = module
    spec.loader.exec_module(module)
    return module


null_claims = _loaded()
BOUND = {
    f"{paper.key}:{claim.id}": claim
    for paper in shipped_papers()
    for claim in paper.claims
    if claim.measure is not None or null_claims.is_ranked(claim)
}
DRAWS = 6
SLOW = {key for key, claim in BOUND.items() if claim.check.name in null_claims.FITTED}


def test_every_bound_on_a_shape_has_a_null_test():
    assert set(null_claims.TESTS) == set(BOUND)
    assert all(test.without for test in null_claims.TESTS.values())


@pytest.mark.parametrize("key", sorted(set(BOUND) - SLOW))
def test_few_draws(key):
    """Of a good bound more than two of six draws without the effect pass once in 400 times, fewer than three with it
    once in 60; draws are the same in every run."""
    found = null_claims.shares([key], DRAWS, (True,))
    assert max(share for (_, kind, _), share in found.items() if kind) <= 2 / DRAWS
    assert found[key, "", True] >= 3 / DRAWS


def test_few_draws_of_the_curves_that_take_long():
    keys = sorted(SLOW)
    found = null_claims.shares(keys, 2, (True,))
    for key in keys:
        passed = [share for (name, kind, _), share in found.items() if name == key and kind]
        assert np.mean(passed) <= 0.2
        assert found[key, "", True] >= 0.5


def test_the_page_has_the_bounds_of_the_claims_and_good_rates():
    text = null_claims.PAGE.read_text().split(null_claims.BEGIN)[1].split(null_claims.END)[0]
    rows = re.findall(
        r"^\| `([^`]+)` \| (.+?) \| .+? \| (.+?) \| .+? \| (.+?) \| \d+ <!-- (\w+) --> \|$", text, re.MULTILINE
    )
    assert [key for key, *_ in rows] == list(null_claims.TESTS)
    for key, bound, without, with_it, code in rows:
        file = null_claims.code_of(key)
        assert code == null_claims.code_digest(file), (
            f"{file.name} changed: run benchmarks/null_claims.py --write {key}"
        )
        assert bound == null_claims._escaped(BOUND[key].paper_text())
        assert max(map(float, re.findall(r"[\d.]+", without))) <= 100 * null_claims.MOST_WITHOUT, key
        assert min(map(float, re.findall(r"[\d.]+", with_it))) >= 100 * null_claims.LEAST_WITH, key


def test_the_digest_is_that_of_the_code_and_not_of_its_texts(tmp_path):
    digests = []
    for text in ('"""A."""\nN = 1\n', '"""B."""\n# C\nN = 1\n"""D."""\n', "N = 2\n"):
        file = tmp_path / f"{len(digests)}.py"
        file.write_text(text)
        digests.append(null_claims.code_digest(file))
    assert digests[0] == digests[1] != digests[2]
