"""What stays when the process is killed, the disk is full, or somebody else writes."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from p4perf.errors import DataError, ExitCode, StorageError
from p4perf.results import RunDirectory

Make = Callable[..., RunDirectory]
Trial = Callable[..., dict[str, Any]]

PREAMBLE = (
    "import os, resource, sys\nfrom pathlib import Path\nfrom p4perf.errors import *\nfrom p4perf.results import *\n"
)


def python(code: str, *arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    script = PREAMBLE + textwrap.dedent(code)
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, **options)


def temporary_files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.name.startswith(".p4perf-")]


# --- kill -9

APPEND_FOR_EVER = """
    run = RunDirectory.open(Path(sys.argv[1]))
    with run.lock():
        number = len(run.trials("aa"))
        sys.stdout.write("ready\\n")
        sys.stdout.flush()
        while True:
            run.append_trial("aa", {"trial": {"repetition": number, "attempt": 0}, "raw": "x" * (number % 3000)})
            os.write(1, b"%d\\n" % number)  # the acknowledgement
            if number % 5 == 0:
                run.update_manifest({"last": number, "padding": "y" * 5000})
            number += 1
"""


def test_kill_9_loses_no_acknowledged_trial_and_doubles_none(run: RunDirectory) -> None:
    chance = random.Random(1)
    acknowledged: list[int] = []
    for _ in range(20):
        with python(APPEND_FOR_EVER, run.path) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(chance.uniform(0, 0.03))
            process.send_signal(signal.SIGKILL)
            acknowledged += [int(line) for line in process.stdout.read().split(b"\n")[:-1]]
        assert process.returncode == -signal.SIGKILL
        survivor = RunDirectory.open(run.path)  # the manifest is whole
        assert survivor.manifest().get("last", 0) in range(len(acknowledged) + 20)
        numbers = [record["trial"]["repetition"] for record in survivor.trials("aa")]
        assert numbers == list(range(len(numbers)))
        assert set(acknowledged) <= set(numbers)
        assert all(record["raw"] == "x" * (number % 3000) for number, record in enumerate(survivor.trials("aa")))
    assert len(acknowledged) > 20, "the rounds were too short to show anything"
    assert len(acknowledged) == len(set(acknowledged))
    with run.lock():
        pass  # free again, and what the killed ones left behind is swept (see the fixture)


def test_the_lock_sweeps_what_dead_processes_left_and_nothing_else(run: RunDirectory) -> None:
    with python("print('bye')") as process:
        pass
    dead = run.point_directory("aa") / f".p4perf-{process.pid}-0123abcd.tmp"
    alive = run.path / f".p4perf-{os.getpid()}-0123abcd.tmp"
    other = run.path / ".p4perf-notes.tmp"
    for path in (dead, alive, other):
        path.touch()
    with run.lock():
        assert [path.exists() for path in (dead, alive, other)] == [False, True, True]
    alive.unlink()
    other.unlink()


# --- several processes

HOLD = """
    with RunDirectory.open(Path(sys.argv[1])).lock():
        print("held", flush=True)
        sys.stdin.read()
"""


def test_two_processes_never_hold_a_run(run: RunDirectory) -> None:
    with python(HOLD, run.path, stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(StorageError) as caught, run.lock():
            pytest.fail("the lock was given twice")
        assert f"{run.path} is being written by process {process.pid} on " in str(caught.value)
        assert caught.value.exit_code is ExitCode.UNAVAILABLE
        process.kill()
    again = pytest.raises(StorageError, match=f"process {os.getpid()} ")
    with run.lock(), again, RunDirectory.open(run.path).lock():
        pytest.fail("the lock was given twice")
    with run.lock():
        pass


def test_the_lock_is_released_when_the_body_fails(run: RunDirectory) -> None:
    with pytest.raises(ZeroDivisionError), run.lock():
        raise ZeroDivisionError
    with run.lock():
        pass


def test_only_one_of_many_processes_gets_the_lock(run: RunDirectory) -> None:
    code = """
        sys.stdin.readline()
        try:
            with RunDirectory.open(Path(sys.argv[1])).lock():
                print("won", flush=True)
                sys.stdin.read()
        except StorageError:
            print("lost", flush=True)
    """
    processes = [python(code, run.path, stdin=subprocess.PIPE) for _ in range(6)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    answers = [process.stdout.readline() for process in processes if process.stdout]
    for process in processes:
        process.communicate()
    assert sorted(answers) == [b"lost\n"] * 5 + [b"won\n"]


def test_appends_of_several_processes_to_one_journal_do_not_tear(run: RunDirectory) -> None:
    code = """
        run = RunDirectory.open(Path(sys.argv[1]))
        for number in range(50):
            run.append_trial("aa", {"trial": {"repetition": number, "attempt": int(sys.argv[2])}, "raw": "x" * 9000})
    """
    processes = [python(code, run.path, attempt) for attempt in range(4)]
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    seen = sorted((r["trial"]["attempt"], r["trial"]["repetition"]) for r in run.trials("aa"))
    assert seen == [(attempt, number) for attempt in range(4) for number in range(50)]


def test_readers_never_see_half_a_manifest(run: RunDirectory) -> None:
    def write() -> None:
        for number in range(200):
            run.update_manifest({"number": number, "padding": "x" * (number * 50)})

    def read() -> int:
        reads = 0
        while not writing.done():
            manifest = RunDirectory.open(run.path).manifest()
            assert len(manifest.get("padding", "")) == manifest.get("number", 0) * 50
            reads += 1
        return reads

    with ThreadPoolExecutor(3) as pool:
        writing = pool.submit(write)
        assert sum(reader.result() for reader in [pool.submit(read), pool.submit(read)]) > 0
        writing.result()


# --- no room


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    where = tmp_path / "disk"
    where.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(where)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system needs root; the limit for files is tested instead")
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)


def test_a_full_disk_stops_the_run_and_harms_nothing(small_disk: Path, make_run: Make, trial: Trial) -> None:
    run = make_run(small_disk / "runs")
    ballast = run.write_bytes("ballast", b"x" * 16_000)
    run.write_measurements(pd.DataFrame({"value": [1.0]}))
    acknowledged = []

    def fill() -> None:
        for number in range(1000):
            run.append_trial("aa", trial(number, raw="x" * 999))
            acknowledged.append(number)

    with pytest.raises(StorageError) as caught:
        fill()
    written = len(acknowledged)
    journal = run.path / "points" / "aa" / "raw.jsonl"
    assert f"cannot write {journal}: the disk is full" in str(caught.value)
    assert "free some space" in str(caught.value)
    assert caught.value.exit_code is ExitCode.UNAVAILABLE
    assert written > 10
    expected = [trial(i, raw="x" * 999) for i in range(written)]
    assert run.trials("aa") == expected
    assert journal.read_bytes().endswith(b"\n"), "the line that did not fit was taken away again"

    manifest = run.manifest()
    writers: list[Callable[[], object]] = [
        lambda: run.update_manifest({"padding": "x" * 20_000}),
        lambda: run.write_text("points/bb/main.c", "x" * 20_000),
        lambda: run.write_text("points/bb/main.c", ("x" * 10 for _ in range(2000))),
        lambda: run.write_measurements(pd.DataFrame({"value": [os.urandom(20_000)]})),
        lambda: run.write_model("x" * 20_000),
        lambda: run.finish_point("aa", {"x": "x" * 20_000}),
        lambda: make_run(small_disk / "runs", resolved_spec="x" * 20_000),
    ]
    for write in writers:
        with pytest.raises(StorageError, match="the disk is full"):
            write()
    assert run.manifest() == manifest
    assert run.read_measurements()["value"].tolist() == [1.0]
    assert run.outcome("aa") is None
    assert not (run.path / "model.json").exists()
    assert [path.name for path in run.path.parent.iterdir()] == [run.path.name]
    assert temporary_files(small_disk) == []

    ballast.unlink()
    resumed = RunDirectory.open(run.path)
    resumed.append_trial("aa", trial(written, raw="x" * 999))
    assert resumed.trials("aa") == [*expected, trial(written, raw="x" * 999)]


def test_a_file_over_the_size_limit_is_taken_back(run: RunDirectory) -> None:
    code = """
        run = RunDirectory.open(Path(sys.argv[1]))
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
        written = 0
        try:
            while True:
                run.append_trial("aa", {"trial": {"repetition": written, "attempt": 0}, "raw": "x" * 999})
                written += 1
        except StorageError as error:
            print(written, error.message, sep="|")
        try:
            run.write_text("points/bb/main.c", "x" * 9000)
        except StorageError as error:
            print(error.message)
    """
    with python(code, run.path) as process:
        out, _ = process.communicate()
    assert process.returncode == 0
    first, second = out.decode().splitlines()
    written, message = first.split("|")
    assert message.endswith("points/aa/raw.jsonl: the file would be larger than the limit for files")
    assert second.endswith("points/bb/main.c: the file would be larger than the limit for files")
    assert [r["trial"]["repetition"] for r in run.trials("aa")] == list(range(int(written)))
    assert int(written) == 7
    assert (run.path / "points" / "aa" / "raw.jsonl").read_bytes().endswith(b"\n")
    assert not (run.path / "points" / "bb" / "main.c").exists()


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the disk quota is used up"),
        (errno.EFBIG, "the file would be larger than the limit for files"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EACCES, "permission denied"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_a_failing_fsync_is_reported_and_the_line_taken_back(
    run: RunDirectory, trial: Trial, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    run.append_trial("aa", trial(0))
    run.write_text("model.json", "old")
    manifest = run.manifest()

    def fail(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(StorageError, match=rf"cannot write .*raw\.jsonl: {words}"):
            run.append_trial("aa", trial(1))
        with pytest.raises(StorageError, match=rf"cannot write .*model\.json: {words}"):
            run.write_model("new")
        with pytest.raises(StorageError, match=rf"cannot write .*manifest\.json: {words}"):
            run.update_manifest({"a": 1})
    assert run.trials("aa") == [trial(0)]
    assert run.read_text("model.json") == "old"
    assert run.manifest() == manifest
    run.append_trial("aa", trial(1))
    assert run.trials("aa") == [trial(0), trial(1)]


def test_a_short_write_is_continued(run: RunDirectory, trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, bytes(data[:7])))
    run.append_trial("aa", trial(0, raw="x" * 100))
    assert run.trials("aa") == [trial(0, raw="x" * 100)]


def test_an_interrupt_before_the_acknowledgement_leaves_a_usable_journal(
    run: RunDirectory, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.append_trial("aa", trial(0))
    write = os.write

    def interrupted(handle: int, data: memoryview) -> int:
        write(handle, bytes(data[:9]))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run.append_trial("aa", trial(1))
    run.append_trial("aa", trial(1))
    assert run.trials("aa") == [trial(0), trial(1)]


def test_a_read_only_or_foreign_folder_is_a_storage_error(tmp_path: Path, make_run: Make, trial: Trial) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"cannot write .*: Not a directory"):
        make_run(tmp_path / "file" / "runs")
    with pytest.raises(StorageError, match="File name too long"):
        make_run(tmp_path, experiment_name="x" * 300)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    run = make_run(tmp_path)
    (run.path / "points" / "aa").touch()
    with pytest.raises(StorageError, match="File exists"):
        run.append_trial("aa", trial(0))


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming nobody needs root")
def test_no_permission(make_run: Make) -> None:
    code = """
        os.setgid(65534)
        os.setuid(65534)
        run = RunDirectory.open(Path(sys.argv[1]))
        def lock():
            with run.lock():
                print("locked")
        record = {"trial": {"repetition": 0, "attempt": 0}}
        for use in (lambda: run.append_trial("aa", record), lambda: run.update_manifest({}), lock,
                    lambda: RunDirectory.open(run.path / "secret" / "run")):
            try:
                use()
            except P4PerfError as error:
                print(type(error).__name__, error.message.split(": ", 1)[1])
    """
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to others
        Path(folder).chmod(0o755)
        run = make_run(Path(folder))
        (run.path / "secret").mkdir(mode=0o700)
        with python(code, run.path) as process:
            out, _ = process.communicate()
    assert out.decode().splitlines() == [
        "StorageError permission denied",
        "StorageError permission denied",
        "StorageError permission denied",
        "DataError Permission denied",
    ]


def test_a_lost_run_directory_is_a_clear_error(run: RunDirectory, trial: Trial) -> None:
    run.append_trial("aa", trial(0))
    for path in sorted(run.path.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    run.path.rmdir()
    with pytest.raises(StorageError, match="No such file or directory"), run.lock():
        pytest.fail("locked what is not there")
    with pytest.raises(DataError, match="there is no such file"):
        run.update_manifest({"a": 1})
