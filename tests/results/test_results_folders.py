"""Folders appear all at once, under a name that is free, or not at all."""

import errno
from datetime import UTC, datetime
from pathlib import Path

import pytest

from p4perf.errors import StorageError, UsageError
from p4perf.results.files import dated_name, filled_folder, new_folder


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


class TestFilledFolder:
    """A folder that somebody named."""

    def test_one_that_is_not_there_appears_at_once(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

        def look(folder):
            assert not (tmp_path / "x").exists()
            fill(folder)

        assert filled_folder(Path("x"), look) == tmp_path / "x"
        assert (tmp_path / "x" / "a.txt").read_text() == "a"

    def test_in_one_that_is_there_only_files_of_the_same_names_are_replaced(self, tmp_path):
        for name in ("a.txt", "b.txt"):
            (tmp_path / name).write_text("old")
        assert filled_folder(tmp_path, fill) == tmp_path
        assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a.txt": "a", "b.txt": "old"}

    def test_one_that_cannot_be_written(self, tmp_path):
        def fail(folder):
            raise PermissionError(errno.EACCES, "no")

        with pytest.raises(StorageError, match="permission denied"):
            filled_folder(tmp_path, fail)

    def test_a_file_is_refused(self, tmp_path):
        (tmp_path / "x").write_text("mine")
        with pytest.raises(UsageError, match="is a file, not a folder"):
            filled_folder(tmp_path / "x", fill)
        assert (tmp_path / "x").read_text() == "mine"


def test_names():
    assert dated_name(("mat/exact entries", "..a"), datetime(2026, 11, 21, 10, 15, tzinfo=UTC)) == (
        "mat-exact-entries--a--20261121T101500"
    )
