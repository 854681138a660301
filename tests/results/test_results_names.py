"""Runs by name: the newest ones, and beginnings of names and times, in folders of runs and in campaigns."""

import json

import pytest
from support.runs import make_run

from p4perf.errors import UsageError
from p4perf.results import all_run_folders, find_run


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A current directory with two runs, and a third in a campaign; they began in the order old, new, middle."""
    monkeypatch.chdir(tmp_path)
    campaign = tmp_path / "runs" / "catalogue--20261122T101500"
    for target, parent, created in (
        ("old", tmp_path / "runs", "2026-11-20T10:00:00+00:00"),
        ("new", tmp_path / "runs", "2026-11-24T10:00:00+00:00"),
        ("middle", campaign / "runs", "2026-11-22T10:00:00+00:00"),
    ):
        run = make_run(parent, lambda x: 50.0, spec="baseline/l2fwd", overrides=[("frame_size", "[64]")], target=target)
        content = json.loads((run / "manifest.json").read_text()) | {"created": created}
        (run / "manifest.json").write_text(json.dumps(content))
        stamp = created[:19].replace("-", "").replace(":", "")
        run.rename(run.with_name(f"baseline-l2fwd--{target}--local--{stamp}"))
    return tmp_path


def target_of(path):
    return path.name.split("--")[1]


def test_all_runs_of_a_folder(place):
    assert [target_of(path) for path in all_run_folders(place / "runs")] == ["new", "old", "middle"]
    assert [target_of(path) for path in all_run_folders(place)] == ["new", "old"]
    assert [target_of(p) for p in all_run_folders(place / "runs" / "catalogue--20261122T101500")] == ["middle"]
    assert all_run_folders(place / "nothing") == []


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("latest", "new"),
        ("latest~0", "new"),
        ("latest~1", "middle"),
        ("latest~2", "old"),
        ("baseline-l2fwd--mid", "middle"),
        ("20261124", "new"),
        ("runs/baseline-l2fwd--old", "old"),
    ],
)
def test_names(place, name, target):
    found = find_run(name)
    assert target_of(found) == target
    assert not found.is_absolute(), "it can be pasted"
    assert found.is_dir()


def test_within_the_folder_of_the_runs(place, monkeypatch):
    monkeypatch.chdir(place / "runs")
    assert target_of(find_run("latest")) == "new"
    assert target_of(find_run("baseline-l2fwd--old")) == "old"


def test_in_another_folder(place, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert target_of(find_run("latest~1", place / "runs")) == "middle"
    with pytest.raises(UsageError, match="latest: there are no runs in runs"):
        find_run("latest")


def test_a_campaign(place):
    assert find_run("catalogue").name == "catalogue--20261122T101500"


def test_what_is_there_is_taken_as_it_is(place):
    (place / "latest").mkdir()
    assert find_run("latest") == (place / "latest").relative_to(place)


def test_what_fits_several_is_refused_and_what_fits_none_is_left_to_others(place):
    with pytest.raises(UsageError, match="3 runs have names or times that begin with baseline: runs/base") as caught:
        find_run("baseline")
    assert "latest" in caught.value.hint
    assert str(find_run("nothing-of-the-kind")) == "nothing-of-the-kind"


def test_damaged_runs_are_not_the_latest(place):
    (find_run("latest") / "manifest.json").write_text("{")
    assert target_of(find_run("latest")) == "middle"
