from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from p4perf.results import RunDirectory

NOW = datetime(2026, 11, 21, 10, 15, tzinfo=UTC)


@pytest.fixture
def make_run() -> Callable[..., RunDirectory]:
    def make(parent: Path, **changes: Any) -> RunDirectory:
        arguments: dict[str, Any] = {
            "experiment_name": "mat/exact-entries",
            "target": "dpdk-c",
            "testbed": "local",
            "resolved_spec": "spec_version: 1\nname: mat/exact-entries\n",
            "manifest": {"machine": {"cpu": "α"}, "planned_points": ["aa", "bb", "cc"]},
            "now": NOW,
        }
        return RunDirectory.create(parent, **arguments | changes)

    return make


@pytest.fixture
def run(tmp_path: Path, make_run: Callable[..., RunDirectory]) -> Iterator[RunDirectory]:
    made = make_run(tmp_path / "runs")
    yield made
    assert leftovers(made.path.parent) == []


def leftovers(root: Path) -> list[Path]:
    """What an unfinished write would have left behind."""
    return [path for path in root.rglob("*") if path.name.startswith(".p4perf-")]


@pytest.fixture
def trial() -> Callable[..., dict[str, Any]]:
    def make(repetition: int, attempt: int = 0, **fields: Any) -> dict[str, Any]:
        return {"trial": {"repetition": repetition, "attempt": attempt}, **fields}

    return make
