"""Programs that are read compute on every target what the interpreter computes, or are refused with their place."""

import json
import re
from pathlib import Path

import pytest
from support.large_program import large_program
from support.own_samples import SAMPLES, TARGETS, verdict, verdicts

from p4perf.generators.c import xdp, xdp_layout
from p4perf.plugins import load_plugin
from p4perf.targets import oracle
from p4perf.testbeds.local import LocalTestbed

pytestmark = [pytest.mark.dpdk, pytest.mark.usefixtures("dpdk")]

EXAMPLES = sorted((Path(__file__).parents[2] / "examples/programs").glob("*/*.json"))

PLACE = re.compile(r"[\w.-]+\.p4(:\d+)?: ")


@pytest.fixture
def runs(builds):
    """Skips a test of a target that does not run here."""

    def check(name):
        target = load_plugin("p4perf.targets", name.partition(":")[0])()
        if reasons := [p.what for p in target.problems(LocalTestbed(builds).facts()) if p.fatal]:
            pytest.skip(reasons[0])
        return name

    return check


@pytest.mark.skipif(not SAMPLES.exists(), reason="../shared/data/p4c_samples is not here")
@pytest.mark.parametrize("target", TARGETS[1:])
def test_a_few_samples(runs, target, builds):
    paths = sorted(SAMPLES.glob("*.json"))[5::110]
    found = [verdict(path, runs(target), builds) for path in paths]
    assert [each for each in found if each.kind == "differs"] == []
    assert sum(each.packets >= 1000 for each in found) >= len(paths) - 1


@pytest.mark.parametrize("target", TARGETS[1:])
def test_the_examples_of_the_repository(runs, target, builds, monkeypatch):
    """None of them is refused; ``test_own_programs.py`` has them on dpdk-c. Most of the time is the interpreter's."""
    monkeypatch.setitem(oracle.verification_file.__wrapped__.__kwdefaults__, "packets", 512)
    found = list(verdicts(EXAMPLES, runs(target), 2, builds))
    assert len(found) == 14
    assert [each for each in found if each.kind != "equal" or each.packets < 500] == []


@pytest.mark.parametrize(
    ("known", "kind", "why"),
    [(10, "equal", ""), pytest.param(14, "refused", "too many paths for xdp", marks=pytest.mark.thorough)],
)
def test_headers_that_may_all_be_absent(runs, builds, tmp_path, monkeypatch, known, kind, why):
    """The verifier walks the deparser once for each set of valid headers, unless it is made to forget them."""
    path = tmp_path / "chain.json"
    path.write_text(json.dumps(large_program(tables=1, headers=14)))
    monkeypatch.setattr(xdp_layout, "MAX_MAYBE_VALID", known)
    found = verdict(path, runs("xdp"), builds)
    assert found.kind == kind
    assert why in found.why


def test_statements_that_clang_does_not_get_through(monkeypatch):
    monkeypatch.setattr(xdp, "MAX_READ_FIELDS", 0)
    refused = verdict(EXAMPLES[0], "xdp")
    assert refused.kind == "refused"
    assert PLACE.match(refused.why)
    assert "fields is more than the 0 that xdp takes" in refused.why


@pytest.mark.thorough
@pytest.mark.skipif(not SAMPLES.exists(), reason="../shared/data/p4c_samples is not here")
@pytest.mark.parametrize("target", TARGETS)
def test_all_samples(runs, target, builds):
    found = [v for v in verdicts(sorted(SAMPLES.glob("*.json")), runs(target), 2, builds) if v.kind != "not read"]
    assert [each for each in found if each.kind == "differs"] == []
    refused = [each for each in found if each.kind == "refused"]
    assert [each for each in refused if not PLACE.match(each.why)] == []
    assert sum(each.kind == "equal" and each.packets >= 1000 for each in found) >= 0.85 * len(found)
