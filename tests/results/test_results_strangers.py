"""Folders from strangers: what is written into them stays there, and only files of bounded size are read."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from p4perf.errors import DataError, P4PerfError, StorageError, UsageError
from p4perf.formats.pcap import read_capture
from p4perf.formats.plain import read_bytes
from p4perf.programs.reading.tree import read_text as read_program
from p4perf.results import RunDirectory
from p4perf.results.campaign import CampaignDirectory
from p4perf.results.files import new_folder, temporary_sibling, write_text_atomically
from p4perf.testbeds.batch.folder import write_folder

PRECIOUS = "no line end: what is cut back to the last line is emptied"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of the user with a file, elsewhere."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "precious").write_text(PRECIOUS)
    return folder


def unchanged(outside: Path) -> bool:
    return [p.name for p in outside.iterdir()] == ["precious"] and (outside / "precious").read_text() == PRECIOUS


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize("name", [".lock", "points/aa/raw.jsonl"])
def test_a_link_is_neither_emptied_nor_appended_to(
    run: RunDirectory, trial: Callable[..., dict[str, Any]], outside: Path, name: str, link: Callable[..., None]
) -> None:
    run.point_directory("aa")
    link(outside / "precious", run.path / name)
    with pytest.raises(P4PerfError), run.lock():  # as a trial is measured
        run.append_trial("aa", trial(0))
    if name != ".lock":
        with pytest.raises(P4PerfError):
            run.append_trial("aa", trial(0))
    assert unchanged(outside)


@pytest.mark.parametrize("name", ["points", "points/aa", "plots", "batches", "batches/001"])
def test_nothing_is_written_behind_a_link_to_a_folder(
    run: RunDirectory, trial: Callable[..., dict[str, Any]], outside: Path, name: str
) -> None:
    link = run.path / name
    if link.is_dir():
        link.rmdir()
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside)
    with pytest.raises(StorageError, match=r"is a symbolic link.*\nhint: copy the folder with cp -rL"), run.lock():
        pass
    acts = [
        lambda: run.append_trial("aa", trial(0)),
        lambda: run.finish_point("aa", {}),
        lambda: run.write_point_file("aa", "x", "x"),
        lambda: run.plot_path("cost.svg").write_text(""),
        lambda: run.write_text("batches/001/batch.json", ""),
    ]
    for act in acts:
        with contextlib.suppress(UsageError):
            act()
    assert unchanged(outside)


def test_a_campaign_names_no_run_elsewhere(tmp_path: Path) -> None:
    request = {"experiments": [], "sources": [], "targets": [], "testbed": "local", "budget_s": None}
    campaign = CampaignDirectory.create(tmp_path, "c", {**request, "overrides": [], "points": None}, datetime.now(UTC))
    for bad in ("/etc", "../x", "runs/../../x", "", "a\0b"):
        with pytest.raises(DataError, match="leads out of the campaign"):
            campaign.run(bad)
    assert campaign.run("runs/x") == campaign.path / "runs" / "x"
    (campaign.path / "runs" / "x").symlink_to(tmp_path)
    with pytest.raises(DataError, match="leads out of the campaign"):
        campaign.run("runs/x")
    with pytest.raises(StorageError, match="is a symbolic link"), campaign.lock():
        pass


def test_an_experiment_folder_is_written_without_links(tmp_path: Path, outside: Path) -> None:
    folder = tmp_path / "experiment"
    folder.mkdir()
    (folder / "dut").symlink_to(outside)
    (outside / "sources").mkdir()
    (outside / "sources" / "mine.c").write_text("")
    with pytest.raises(StorageError, match="is a symbolic link"):
        write_folder(folder, {"dut/sources/x.c": b""})
    assert (outside / "sources" / "mine.c").exists()
    (folder / "dut").unlink()
    (folder / "run.sh").symlink_to(outside / "precious")
    write_folder(folder, {"run.sh": b"new"})
    assert (folder / "run.sh").read_bytes() == b"new"
    assert (outside / "precious").read_text() == PRECIOUS


def test_texts_behind_links_are_not_shown(run: RunDirectory, outside: Path) -> None:
    run.write_point_file("aa", "program.c", "int x;")
    (run.path / "points" / "aa" / "secret.c").symlink_to(outside / "precious")
    assert dict(run.point_texts("aa", lambda name: name.endswith(".c"))) == {"program.c": "int x;"}
    assert dict(run.point_texts("1" * 300, lambda name: True)) == {}, "no name of a folder"


@pytest.fixture
def dead() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_what_a_killed_process_left_is_removed_by_the_next_that_writes_there(tmp_path: Path, dead: int) -> None:
    for name in ("file", "folder"):
        (tmp_path / name).mkdir()
    left = [tmp_path / where / f".p4perf-{dead}-0123abcd.tmp" for where in ("file", "folder")]
    left[0].write_text("half")
    (left[1] / "deep").mkdir(parents=True)
    write_text_atomically(tmp_path / "file" / "x", "x")
    new_folder(tmp_path / "folder" / "x", lambda folder: None)
    assert [path.exists() for path in left] == [False, False]


def test_what_is_still_written_stays(tmp_path: Path, dead: int) -> None:
    mine = temporary_sibling(tmp_path / "x")
    mine.write_text("")
    # The number means nothing where another machine writes, but its lock does.
    with (tmp_path / f".p4perf-{dead}-0123abcd.tmp").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        write_text_atomically(tmp_path / "y", "y")
        assert mine.exists()
        assert Path(other.name).exists()


READERS = [read_bytes, read_capture, read_program]


@pytest.mark.parametrize("reader", READERS)
def test_only_files_are_read(tmp_path: Path, reader: Callable[[Path], object]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(DataError, match="cannot be read: it is not a regular file"):
            reader(path)
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        reader(tmp_path)
    for name in ("x" * 5000, "a\0b"):
        with pytest.raises(DataError, match="cannot be read") as caught:
            reader(tmp_path / name)
        assert len(str(caught.value)) < 1000


def test_a_file_beyond_the_limit(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(3 << 20)
    assert len(read_bytes(tmp_path / "large", 3 << 20)) == 3 << 20
    with pytest.raises(DataError, match="is larger than 2 MiB"):
        read_bytes(tmp_path / "large", 2 << 20)


def test_a_pipe_that_a_shell_fills_is_read() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"x,y\n")
    os.close(writing)
    try:
        assert read_bytes(Path(f"/dev/fd/{reading}")) == b"x,y\n"
    finally:
        os.close(reading)


def test_the_message_says_that_it_is_a_link(run: RunDirectory) -> None:
    (run.path / ".lock").symlink_to("nowhere")
    with pytest.raises(StorageError, match=r"cannot write .*\.lock: it is a symbolic link"), run.lock():
        pass
