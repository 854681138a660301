"""A run that an earlier version recorded stays readable: by status, show, fit, compare and report."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.command import p4perf

from p4perf.errors import DataError
from p4perf.results import Run, RunDirectory

ARCHIVE = Path(__file__).parents[1] / "data" / "exact-entries-schema-1.tar.xz"
MEDIANS = [
    53.68124554658955,
    81.44378465527134,
    96.61732357816271,
    98.85861772060949,
    144.8190441297375,
    441.6327822267339,
]
"""Cycles per packet, as the version that recorded the run reported them."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    shutil.unpack_archive(ARCHIVE, folder)
    return folder / "exact-entries-schema-1"


@pytest.fixture
def run(recorded: Path, tmp_path: Path) -> Path:
    return shutil.copytree(recorded, tmp_path / "run")


def rows(*arguments: object) -> list[dict]:
    done = p4perf(*arguments, "--format", "json")
    assert done.code == 0, done.err
    return json.loads(done.out)["rows"]


def test_the_view(run):
    opened = Run.open(run)
    assert (opened.variable, opened.headline, opened.columns) == ("entries", "cycles_per_packet", ["entries"])
    assert (opened.identity.experiment, opened.identity.target) == ("small/exact-entries", "dpdk-c")
    assert [point.values["entries"] for point in opened.manifest.points] == list(opened.samples().x)
    assert opened.manifest.working_set == {"fixed_bytes": 0.0, "bytes_per_entry": 112.0}
    assert opened.node.text("cpu_model") == "AMD EPYC"
    assert opened.model.name == opened.spec.name == "small/exact-entries"


def test_status_and_show(run):
    (row,) = rows("status", run)
    assert (row["points"], row["finished"], row["trials"], row["complete"]) == (6, 6, 22, True)
    assert [row["median"] for row in rows("show", run)] == MEDIANS


def test_fit_of_an_interrupted_run_says_so(run):
    assert "complete" not in p4perf("fit", run).err
    next(run.glob("points/*/finished.json")).unlink()
    done = p4perf("fit", run)
    assert (done.code, f"note: 5 of 6 points complete; p4perf resume {run} continues\n" in done.err) == (0, True)


def test_status_of_the_latest_run_says_whether_it_is_in_progress(run, tmp_path):
    next(run.glob("points/*/finished.json")).unlink()
    (run / "measurements.parquet").unlink()
    assert "p4perf resume run continues it" in p4perf("status", cwd=tmp_path).err
    assert "hint: p4perf resume continues it" in p4perf("show", "latest", cwd=tmp_path).err
    with RunDirectory.open(run).lock():
        done = p4perf("status", cwd=tmp_path)
        assert re.search(r"5 of 6 .* in progress, about \d+ s left$", done.out, re.MULTILINE)
        assert "resume" not in done.err
        assert "it is being measured" in p4perf("show", "latest", cwd=tmp_path).err
    (row,) = rows("status", run)
    assert not row["in_progress"]
    assert row["left_s"] > 0


def test_fit_describes_the_run_nearly_as_well_as_the_model_that_was_recorded(run):
    """Six points do not determine a shape: which of those that are similarly good is taken may change."""
    before = Run.open(run).model
    done = p4perf("fit", run, "--format", "json")
    assert done.code == 0, done.err
    after = Run.open(run).model
    assert after.fitting.breakpoint_x == before.fitting.breakpoint_x == ()
    x = np.array(Run.open(run).samples().x, dtype=float)
    errors = [np.abs(model.evaluate(x) / MEDIANS - 1).mean() for model in (before, after)]
    assert errors[1] < 1.3 * errors[0]
    assert before.fitting.segments[0].template.name in done.err + done.out, "it is named as similarly good"


def test_compare_and_report(recorded, run, tmp_path):
    compared = rows("compare", recorded, run, "-o", tmp_path / "comparison")
    assert {row["ratio"] for row in compared} == {None, 1.0}
    done = p4perf("report", recorded, tmp_path / "comparison", "-o", tmp_path / "site")
    assert done.code == 0, done.err
    assert "small/exact-entries" in (tmp_path / "site" / "index.html").read_text()


@pytest.mark.parametrize("key", ["planned_points", "points", "node", "hugepages", "versions"])
def test_a_manifest_without_a_key_is_refused_by_what_needs_it(run, key):
    path = run / "manifest.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({name: value for name, value in content.items() if name != key}))
    done = p4perf("fit", run)
    assert done.code == 2
    assert f"manifest.json: {key}: is missing or not a" in done.err
    assert p4perf("status", run).code == (2 if key == "planned_points" else 0)


def test_a_damaged_working_set_is_named(run):
    path = run / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "working_set": {"fixed_bytes": 1}}))
    with pytest.raises(DataError, match=r"working_set\.bytes_per_entry"):
        _ = Run.open(run).manifest
