"""Folders appear all at once, under a name that is free, or not at all."""

from datetime import UTC, datetime

import pytest

from p4perf.errors import StorageError
from p4perf.results.folders import new_folder
from p4perf.results.naming import dated_name


def fill(folder):
    (folder / "a.txt").write_text("a")


def test_a_folder_appears_with_its_files(tmp_path):
    path = new_folder(tmp_path / "deep" / "er", fill)
    assert path == tmp_path / "deep" / "er"
    assert (path / "a.txt").read_text() == "a"
    assert [p.name for p in path.parent.iterdir()] == ["er"]


def test_what_is_there_is_left_alone(tmp_path):
    paths = [new_folder(tmp_path / "x", fill) for _ in range(3)]
    assert [p.name for p in paths] == ["x", "x-2", "x-3"]


def test_nothing_is_left_of_what_failed(tmp_path):
    def fail(folder):
        fill(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        new_folder(tmp_path / "x", fail)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        new_folder(tmp_path / "file" / "x", fill)


def test_names():
    assert dated_name(("mat/exact entries", "..a"), datetime(2026, 11, 21, 10, 15, tzinfo=UTC)) == (
        "mat-exact-entries--a--20261121T101500"
    )
