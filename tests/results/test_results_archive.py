"""Zips of results: the same bytes from the same folder, all or nothing, and nothing from outside of it."""

import json
import os
import shutil
import zipfile
from datetime import UTC, datetime

import pytest
from support.runs import make_run

from p4perf.errors import DataError, StorageError, UsageError
from p4perf.results import crate as module
from p4perf.results.crate import CrateOptions, pack

SMALL = (("entries", "[1, 10, 100]"),)
EPOCH = datetime(2030, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "runs", lambda x: 20 + x, overrides=SMALL)


def leftovers(root):
    """What an unfinished write would have left behind."""
    return [path for path in root.rglob("*") if path.name.startswith(".p4perf-")]


def refused(folder, archive, kind=DataError):
    """The message; there is no zip, and nothing else was left behind."""
    with pytest.raises(kind) as caught:
        pack(folder, archive)
    assert not archive.exists()
    assert leftovers(archive.parent) == []
    return str(caught.value)


def test_the_zip_holds_all_files_and_the_description(run, tmp_path):
    entries = pack(run, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as bundle:
        names = bundle.namelist()
        assert names == ["ro-crate-metadata.json", *(e.path for e in entries)]
        assert names[1:] == sorted(names[1:])
        assert all(bundle.read(e.path) == (run / e.path).read_bytes() for e in entries)
        told = {e["@id"] for e in json.loads(bundle.read(names[0]))["@graph"] if e["@type"] == "File"}
    assert told == {e.path for e in entries}


def test_same_folder_same_bytes(run, tmp_path):
    pack(run, tmp_path / "a.zip")
    copy = shutil.copytree(run, tmp_path / "copy")
    for path in copy.rglob("*"):
        os.utime(path, (1e9, 1e9))
        path.chmod(0o755)
    (copy / ".lock").write_text("process 7\n")
    pack(copy, tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_times_are_those_of_the_run_or_the_given_one(run, tmp_path):
    pack(run, tmp_path / "a.zip")
    pack(run, tmp_path / "b.zip", CrateOptions(published=EPOCH))
    times = [{i.date_time for i in zipfile.ZipFile(tmp_path / name).infolist()} for name in ("a.zip", "b.zip")]
    assert times == [{(2026, 11, 21, 10, 15, 0)}, {(2030, 5, 6, 7, 8, 8)}]


def test_a_packed_zip_is_packed_again_the_same(run, tmp_path):
    pack(run, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as bundle:
        bundle.extractall(tmp_path / "out")
    pack(tmp_path / "out", tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_foreign_folders_are_refused(run, tmp_path):
    (tmp_path / "other").mkdir()
    assert "neither a run directory" in refused(tmp_path / "other", tmp_path / "a.zip")
    assert "no such folder" in refused(tmp_path / "nothing", tmp_path / "a.zip")
    assert "no such folder" in refused(run / "manifest.json", tmp_path / "a.zip")
    (tmp_path / "other" / "comparison.json").write_text("{}")
    assert "comparison" in refused(tmp_path / "other", tmp_path / "a.zip")
    (tmp_path / "other" / "campaign.json").write_text("{}")
    assert "campaign.json" in refused(tmp_path / "other", tmp_path / "a.zip")


@pytest.mark.parametrize("inside", ["secret", "points"])
def test_links_are_refused(run, tmp_path, inside):
    (tmp_path / "secret").write_text("do not tell")
    place = tmp_path / inside if inside == "secret" else run / inside
    (run / "points" / "link").symlink_to(place)
    assert "is a link" in refused(run, tmp_path / "a.zip")


def test_pipes_are_refused(run, tmp_path):
    os.mkfifo(run / "pipe")
    assert "not a file that can be packed" in refused(run, tmp_path / "a.zip")


def test_names_that_are_no_text_are_refused(run, tmp_path):
    (run / "a\nb").write_text("")
    assert "not text" in refused(run, tmp_path / "a.zip")


def test_the_zip_does_not_go_into_the_folder_or_over_something_else(run, tmp_path):
    assert "lies in the folder" in refused(run, run / "a.zip", UsageError)
    assert "not called .zip" in refused(run, tmp_path / "a.tar", UsageError)
    (tmp_path / "b.zip").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        pack(run, tmp_path / "b.zip")


def test_a_file_that_changes_meanwhile_stops_it(run, tmp_path, monkeypatch):
    describe = module.describe

    def changing(folder, entries, options):
        (folder / "spec.yaml").write_text("other")
        return describe(folder, entries, options)

    (tmp_path / "a.zip").write_bytes(b"old")
    monkeypatch.setattr(module, "describe", changing)
    with pytest.raises(DataError, match="changed while it was packed"):
        pack(run, tmp_path / "a.zip")
    assert (tmp_path / "a.zip").read_bytes() == b"old"
    assert leftovers(tmp_path) == []


def test_a_place_that_cannot_be_written_is_a_storage_error(run, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        pack(run, tmp_path / "file" / "a.zip")
