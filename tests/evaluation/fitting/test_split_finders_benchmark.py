"""The comparison with other people's packages: its cases, its judgement, and that our side of it runs."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    """A module of the folder benchmarks by its name."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    for name in ("fitting_peers", "_fitting_cases", "_fitting_worker", "_peers"):
        sys.modules.pop(name, None)


@pytest.fixture
def synthetic(benchmark, monkeypatch, tmp_path):
    """Cases as they are drawn where the reference cases are not there."""
    module = benchmark("_fitting_cases")
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    return module.cases()


def test_reference_cases_are_what_they_say(benchmark, fitcases) -> None:
    module = benchmark("_fitting_cases")
    series = module.cases()
    assert {c.group for c in series} == set(module.GROUPS)
    for case in series:
        about, _, _ = fitcases.load(case.name)
        if not about["outliers"]:
            assert case.floor == pytest.approx(about["floor_combined"], rel=0.11, abs=1e-12)


def test_synthetic_cases_stand_in(synthetic) -> None:
    assert len({c.name for c in synthetic}) == len(synthetic) == 64
    assert all(0.001 < c.floor < 0.01 for c in synthetic)


def test_truth_is_judged_right(benchmark, synthetic) -> None:
    module = benchmark("fitting_peers")
    three = [c for c in synthetic if c.group == "n60-k3"]
    answers = {
        c.name: {"breakpoints": c.breakpoints, "families": c.families, "values": c.truth, "cpu_s": 1.0 + k}
        for k, c in enumerate(three)
    }
    row = module.judge("n60-k3", "p4perf-auto", three, answers)
    sharp = sum(sum(c.sharp) for c in three)
    assert (row.segments, row.sharp, row.breakpoints, row.families) == ((8, 8), (sharp, sharp), (16, 16), (24, 24))
    assert (row.error_median, row.error_max, row.cpu_s, row.failed) == (1, 1, 4.5, 0)


def test_wrong_answers_are_judged_wrong(benchmark, synthetic) -> None:
    module = benchmark("fitting_peers")
    three = [c for c in synthetic if c.group == "n60-k3"][:3]
    first, second, third = three
    off_by_two = [s + 2 for s in first.breakpoints]
    answers = {
        first.name: {"breakpoints": off_by_two, "families": ["other"] * 3, "values": 1.1 * first.truth, "cpu_s": 1.0},
        second.name: {
            "breakpoints": second.breakpoints[:1],
            "families": second.families[:2],
            "values": second.truth,
            "cpu_s": 3.0,
        },
        third.name: {"error": "ValueError: no"},
    }
    row = module.judge("n60-k3", "extrap-segmented", three, answers)
    assert (row.segments, row.breakpoints, row.families, row.failed) == ((1, 2), (1, 4), (0, 6), 1)
    assert row.error_median == (row.error_max + 1) / 2 > 3
    blind = module.judge("n60-k3", "extrap", three, answers)
    assert blind.breakpoints == blind.families == (0, 0)
    assert (blind.error_median, blind.cpu_s) == (None, 2.0)


def test_our_side_runs(benchmark, synthetic, capsys) -> None:
    module = benchmark("fitting_peers")
    two = [c for c in synthetic if c.group == "n60-k2"][:2]
    rows = [module.judge("n60-k2", m, two, module.fit(m, two)["results"]) for m in ("p4perf", "p4perf-auto")]
    assert all(row.failed == 0 and 0 < row.cpu_s < 5 and row.error_max < 2 for row in rows)
    module.print_table(rows)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines if line] == ["group", "n60-k2", "n60-k2"]


@pytest.mark.thorough
def test_peers_that_cannot_be_installed_are_said(benchmark, monkeypatch, tmp_path) -> None:
    module = benchmark("_peers")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(module, "PEERS", ("p4perf-no-such-peer==1.0",))
    with pytest.raises(SystemExit, match=r"skipped: the peers cannot be installed: .*no-such-peer"):
        module.peer_python()
    assert not list(tmp_path.rglob("installed.txt"))


def test_installed_peers_are_used_again(benchmark, monkeypatch, tmp_path) -> None:
    module = benchmark("_peers")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    calls = []
    monkeypatch.setattr(module.subprocess, "run", lambda command, **_: calls.append(command) or _Done(tmp_path))
    python = module.peer_python()
    assert [c[1:3] for c in calls] == [("-m", "venv"), ("-m", "pip")]
    assert module.peer_python() == python
    assert len(calls) == 2
    monkeypatch.setattr(module, "PEERS", (*module.PEERS, "another==1"))
    module.peer_python()
    assert len(calls) == 4


class _Done:
    """A command that worked; a virtual environment is a folder."""

    returncode = 0

    def __init__(self, cache: Path) -> None:
        (cache / "p4perf" / "bench-peers").mkdir(parents=True, exist_ok=True)


def test_error_of_nothing(benchmark) -> None:
    module = benchmark("_fitting_cases")
    assert module.smape(np.zeros(3), np.zeros(3)) == 0
    assert module.smape(np.array([1.0, 0.0]), np.array([3.0, 0.0])) == 0.25
