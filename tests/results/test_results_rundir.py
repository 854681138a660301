"""The run directory: creating, opening, the manifest, files, state, measurements."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from p4perf.errors import DataError, ExitCode, UsageError
from p4perf.formats import plain
from p4perf.results import RunDirectory, read_model
from p4perf.results.manifest import SCHEMA_VERSION, RunState

Make = Callable[..., RunDirectory]
NAME = "mat-exact-entries--dpdk-c--local--20261121T101500"


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


# --- create


def test_create_lays_out_the_folder(tmp_path: Path, make_run: Make) -> None:
    run = make_run(tmp_path / "deep" / "runs")
    assert run.path == tmp_path / "deep" / "runs" / NAME
    assert names(run.path) == ["manifest.json", "points", "spec.yaml"]
    assert run.spec() == (run.path / "spec.yaml").read_text() == "spec_version: 1\nname: mat/exact-entries\n"
    assert json.loads((run.path / "manifest.json").read_text()) == {
        "schema_version": SCHEMA_VERSION,
        "experiment": "mat/exact-entries",
        "target": "dpdk-c",
        "testbed": "local",
        "created": "2026-11-21T10:15:00+00:00",
        "machine": {"cpu": "α"},
        "planned_points": ["aa", "bb", "cc"],
    }
    assert names(run.path.parent) == [NAME]


def test_a_taken_name_gets_a_number(tmp_path: Path, make_run: Make) -> None:
    (tmp_path / NAME).mkdir()  # somebody's empty folder is not taken over
    (tmp_path / f"{NAME}-3").symlink_to("nowhere")
    assert [make_run(tmp_path).path.name for _ in range(3)] == [f"{NAME}-2", f"{NAME}-4", f"{NAME}-5"]
    assert names(tmp_path / NAME) == []


def test_runs_created_at_the_same_time_do_not_share_a_folder(tmp_path: Path, make_run: Make) -> None:
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: make_run(tmp_path), range(24)))
    assert len({run.path for run in runs}) == 24
    assert names(tmp_path) == sorted([NAME, *(f"{NAME}-{i}" for i in range(2, 25))])


@pytest.mark.parametrize(
    ("experiment", "folder"),
    [("a/b/c", "a-b-c"), ("../x", "-x"), ("..", "-"), ("a b\0c", "a-b-c"), ("", "-"), ("Größe", "Gr-e")],
)
def test_no_name_leads_out_of_the_parent(tmp_path: Path, make_run: Make, experiment: str, folder: str) -> None:
    run = make_run(tmp_path, experiment_name=experiment)
    assert run.path == tmp_path / f"{folder}--dpdk-c--local--20261121T101500"
    assert RunDirectory.open(run.path).manifest()["experiment"] == experiment


def test_the_folder_name_has_the_given_time_and_the_manifest_utc(tmp_path: Path, make_run: Make) -> None:
    run = make_run(tmp_path, now=datetime(2026, 11, 21, 0, 30, tzinfo=timezone(timedelta(hours=1))))
    assert run.path.name.endswith("--20261121T003000")
    assert run.manifest()["created"] == "2026-11-20T23:30:00+00:00"
    naive = make_run(tmp_path, now=datetime(2026, 5, 4, 12))
    assert datetime.fromisoformat(naive.manifest()["created"]) == datetime(2026, 5, 4, 12).astimezone(UTC)


@pytest.mark.parametrize("key", ["schema_version", "experiment", "target", "testbed", "created"])
def test_the_identity_cannot_be_set(run: RunDirectory, make_run: Make, tmp_path: Path, key: str) -> None:
    with pytest.raises(UsageError, match=key):
        make_run(tmp_path / "other", manifest={key: "x"})
    assert not (tmp_path / "other").exists()
    with pytest.raises(UsageError, match=key):
        run.update_manifest({key: "x"})


def test_files_obey_the_umask(tmp_path: Path, make_run: Make) -> None:
    old = os.umask(0o027)
    try:
        run = make_run(tmp_path)
        written = run.write_text("points/aa/main.c", "x")
    finally:
        os.umask(old)
    assert stat.S_IMODE(run.path.stat().st_mode) == 0o750
    assert stat.S_IMODE(written.stat().st_mode) == 0o640


def test_the_working_directory_may_change(tmp_path: Path, make_run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = make_run(Path("runs"))
    opened = RunDirectory.open(Path("runs") / NAME)
    monkeypatch.chdir("/")
    for run in (made, opened):
        assert run.path == tmp_path / "runs" / NAME
        assert run.point_directory("aa").is_absolute()
        run.write_model("{}")


# --- open


def test_open_finds_what_create_made(run: RunDirectory) -> None:
    again = RunDirectory.open(run.path)
    assert again.path == run.path
    assert again.manifest() == run.manifest()
    assert again.spec() == run.spec()


def test_open_says_what_is_wrong_with_the_folder(tmp_path: Path, make_run: Make) -> None:
    with pytest.raises(DataError, match=f"{tmp_path}/none: there is no such run directory") as caught:
        RunDirectory.open(tmp_path / "none")
    assert caught.value.exit_code is ExitCode.USAGE
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="no such run directory"):
        RunDirectory.open(tmp_path / "file")
    with pytest.raises(DataError, match=r"not a run directory: it has no manifest\.json$"):
        RunDirectory.open(tmp_path)
    make_run(tmp_path)
    with pytest.raises(DataError, match=f"contains 1 run directories; the last by name is {NAME}"):
        RunDirectory.open(tmp_path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("", "manifest.json:1:1: is not valid JSON"),
        ('{"schema_version": 1,\n "target": }', "manifest.json:2:12: is not valid JSON"),
        ("[]", "manifest.json: is not a JSON object"),
        ('{"schema_version": Infinity}', "manifest.json: is not valid JSON: Infinity"),
        ("{}", "manifest.json: schema_version: is missing"),
        ('{"schema_version": "1"}', "manifest.json: schema_version: '1' is not a schema version"),
        ('{"schema_version": true}', "manifest.json: schema_version: True is not a schema version"),
        ('{"schema_version": 0}', "manifest.json: schema_version: 0 is not a schema version"),
        ('{"schema_version": 99}', "manifest.json: schema_version: is 99, but this p4perf knows versions up to 1"),
        ('{"schema_version": 1, "experiment": "e"}', "manifest.json: target: is missing or not a string"),
    ],
)
def test_open_says_where_the_manifest_is_damaged(run: RunDirectory, damage: str, message: str) -> None:
    (run.path / "manifest.json").write_text(damage)
    with pytest.raises(DataError) as caught:
        RunDirectory.open(run.path)
    assert message in str(caught.value)


def test_open_says_that_the_spec_is_missing_empty_or_not_text(run: RunDirectory) -> None:
    spec = run.path / "spec.yaml"
    spec.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(DataError, match=r"spec\.yaml:2: is not text in UTF-8"):
        RunDirectory.open(run.path)
    spec.write_text(" \n")
    with pytest.raises(DataError, match=r"spec\.yaml: the file is empty"):
        RunDirectory.open(run.path)
    spec.unlink()
    with pytest.raises(DataError, match=r"spec\.yaml: cannot be read: there is no such file"):
        RunDirectory.open(run.path)


# --- manifest


def test_update_manifest_keeps_the_other_keys_and_their_order(run: RunDirectory) -> None:
    before = list(run.manifest())
    run.update_manifest({"machine": {"cpu": "b"}, "finished": "2026"})
    run.update_manifest({"host": None})
    manifest = RunDirectory.open(run.path).manifest()
    assert list(manifest) == [*before, "finished", "host"]
    assert manifest["machine"] == {"cpu": "b"}
    assert manifest["planned_points"] == ["aa", "bb", "cc"]


def test_update_manifest_refuses_nan_and_changes_nothing(run: RunDirectory) -> None:
    before = (run.path / "manifest.json").read_bytes()
    with pytest.raises(UsageError, match=r"machine\.ghz: nan"):
        run.update_manifest({"machine": {"ghz": float("nan")}})
    assert (run.path / "manifest.json").read_bytes() == before


# --- any file


def test_files_are_written_whole_or_in_pieces(run: RunDirectory) -> None:
    assert run.write_text("points/aa/src/main.p4", "ä\r\nb\n") == run.path / "points/aa/src/main.p4"
    assert (run.path / "points/aa/src/main.p4").read_bytes() == "ä\r\nb\n".encode()
    assert run.read_text("points/aa/src/main.p4") == "ä\r\nb\n"
    run.write_text("points/aa/entries.txt", (f"{i}\n" for i in range(1000)))
    assert run.read_text("points/aa/entries.txt").splitlines() == [str(i) for i in range(1000)]
    run.write_bytes("points/aa/x.pcap", b"\0\1")
    run.write_bytes("points/aa/x.pcap", iter([b"\2", b"\3"]))
    assert (run.path / "points/aa/x.pcap").read_bytes() == b"\2\3"


def test_a_write_that_fails_in_the_middle_leaves_the_old_file(run: RunDirectory) -> None:
    run.write_text("model.json", "old")

    def pieces() -> Iterator[str]:
        yield "new" * 100_000
        msg = "the template broke"
        raise RuntimeError(msg)

    with pytest.raises(RuntimeError, match="the template broke"):
        run.write_text("model.json", pieces())
    assert run.read_text("model.json") == "old"
    with pytest.raises(UsageError, match="UTF-8"):
        run.write_text("model.json", "half a pair: \ud800")
    assert run.read_text("model.json") == "old"


@pytest.mark.parametrize("bad", ["", ".", "/etc/x", "../x", "points/../../x", "a\0b", "link/x", "out"])
def test_no_path_leads_out_of_the_run(run: RunDirectory, tmp_path: Path, bad: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (run.path / "link").symlink_to(outside)
    (run.path / "out").symlink_to(outside / "file")
    for use in (
        run.locate,
        run.read_text,
        lambda path: run.write_text(path, "x"),
        lambda path: run.write_bytes(path, b""),
    ):
        with pytest.raises(UsageError, match="is not a path inside the run directory"):
            use(bad)
    assert names(outside) == []


@pytest.mark.parametrize("bad", ["", ".", "..", "a/b", "/a", ".hidden", "a\n", "a" * 129])
def test_no_point_hash_leads_out_of_the_points(run: RunDirectory, bad: str) -> None:
    uses: list[Callable[[str], Any]] = [
        run.point_directory,
        run.trials,
        run.outcome,
        lambda point: run.finish_point(point, {}),
        lambda point: run.append_trial(point, {"trial": {"repetition": 0, "attempt": 0}}),
    ]
    for use in uses:
        with pytest.raises(UsageError, match="is not a point hash"):
            use(bad)
    assert run.points() == []


def test_a_missing_file_is_named(run: RunDirectory) -> None:
    with pytest.raises(DataError, match=r"points/aa/build\.log: cannot be read: there is no such file"):
        run.read_text("points/aa/build.log")


def test_point_directory_is_made_once(run: RunDirectory) -> None:
    folder = run.point_directory("aa")
    assert folder == run.path / "points" / "aa"
    (folder / "kept").touch()
    assert names(run.point_directory("aa")) == ["kept"]


def test_plot_path(run: RunDirectory) -> None:
    assert run.plot_path("cost.svg") == run.path / "plots" / "cost.svg"
    assert (run.path / "plots").is_dir()
    for bad in ("", "a/b.svg", "../manifest.json"):
        with pytest.raises(UsageError):
            run.plot_path(bad)


# --- state


def test_state_follows_the_sweep(run: RunDirectory, trial: Callable[..., dict[str, Any]]) -> None:
    assert run.state() == RunState(("aa", "bb", "cc"), (), 0)
    run.append_trial("bb", trial(0))
    run.append_trial("bb", trial(1))
    run.append_trial("aa", trial(0))
    assert run.state() == RunState(("aa", "bb", "cc"), (), 3)
    assert run.outcome("bb") is None
    run.finish_point("bb", {"verdict": "valid", "repetitions": 2})
    state = RunDirectory.open(run.path).state()
    assert state == RunState(("aa", "bb", "cc"), ("bb",), 3)
    assert state.missing == ("aa", "cc")
    assert not state.complete
    assert run.outcome("bb") == {"verdict": "valid", "repetitions": 2}
    for point in ("aa", "cc"):
        run.finish_point(point, {})
    assert run.state().complete
    assert run.state().missing == ()


def test_state_of_another_plan(run: RunDirectory, trial: Callable[..., dict[str, Any]]) -> None:
    run.append_trial("aa", trial(0))
    assert run.state(["zz"]) == RunState(("zz",), (), 0)
    assert not run.state([]).complete


@pytest.mark.parametrize("planned", [None, "aa", [1]])
def test_state_without_a_plan_is_an_error(run: RunDirectory, planned: object) -> None:
    run.update_manifest({"planned_points": planned})
    with pytest.raises(DataError, match=r"manifest\.json: planned_points: is missing or not a list of hashes"):
        run.state()


# --- measurements and model


def test_measurements_come_back_as_they_were(run: RunDirectory) -> None:
    table = pd.DataFrame(
        {
            "point": ["aa", "bb"],
            "repetition": [0, 1],
            "entries": [1.0, float("nan")],
            "metric": pd.Categorical(["cycles_per_packet", "packet_rate"]),
            "value": [101.25, 2.5e6],
            "valid": [True, False],
        }
    )
    assert run.write_measurements(table) == run.path / "measurements.parquet"
    pd.testing.assert_frame_equal(RunDirectory.open(run.path).read_measurements(), table)
    run.write_measurements(table.iloc[1:])
    pd.testing.assert_frame_equal(run.read_measurements(), table.iloc[1:].reset_index(drop=True))


THREADS = """
import os, sys
from pathlib import Path
import pyarrow.parquet
from p4perf.results import RunDirectory

before = len(os.listdir("/proc/self/task"))
run = RunDirectory.open(Path(sys.argv[1]))
run.write_measurements(run.read_measurements())
assert len(os.listdir("/proc/self/task")) == before
"""


def test_no_thread_is_left_to_abort_the_process_at_its_end(run: RunDirectory) -> None:
    rows = range(10_000)
    run.write_measurements(pd.DataFrame({"value": rows, "metric": [f"{n % 7}" for n in rows]}))
    done = subprocess.run([sys.executable, "-c", THREADS, run.path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_mixed_columns_are_refused_and_the_old_table_stays(run: RunDirectory) -> None:
    run.write_measurements(pd.DataFrame({"value": [1]}))
    with pytest.raises(UsageError, match="Parquet"):
        run.write_measurements(pd.DataFrame({"value": [1, "a", object()]}))
    assert run.read_measurements()["value"].tolist() == [1]


def test_missing_and_damaged_measurements_are_named(run: RunDirectory) -> None:
    with pytest.raises(DataError, match=r"measurements\.parquet: the run has no measurements yet"):
        run.read_measurements()
    path = run.write_measurements(pd.DataFrame({"value": range(1000)}))
    data = path.read_bytes()
    for damage in (
        b"",
        b"PAR1",
        data[: len(data) // 2],
        b"x" * len(data),
        b"PAR1" + data[4:-8] + b"\xff" * 4 + b"PAR1",
    ):
        path.write_bytes(damage)
        with pytest.raises(DataError, match=r"measurements\.parquet: is not a Parquet table"):
            run.read_measurements()


def test_damaged_text_in_measurements(run: RunDirectory) -> None:
    path = run.path / "measurements.parquet"
    pq.write_table(pa.table({"flags": ["steal_time"]}), path, compression="none", use_dictionary=False)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"steal_time", b"steal\xfftime"))
    with pytest.raises(DataError, match=r"measurements\.parquet: is not a Parquet table: .*UTF8"):
        run.read_measurements()


def test_a_small_file_that_holds_a_large_table(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "MAX_MEMORY_BYTES", 128 << 20)
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 5000, pa.int32()), pa.array(["x" * 100_000]))
    path = run.path / "measurements.parquet"
    pq.write_table(pa.table({"flags": column}), path, store_schema=False)
    assert path.stat().st_size < 100_000
    with pytest.raises(DataError, match=r"measurements\.parquet: reading takes more than 128 MiB of memory"):
        run.read_measurements()


def test_a_file_of_json_that_holds_many_values(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "MAX_MEMORY_BYTES", 64 << 20)
    run.model_file.write_text('{"x": [' + "[]," * 6_000_000 + "0]}")
    with pytest.raises(DataError, match=r"model\.json: reading takes more than 64 MiB of memory"):
        read_model(run.model_file)


def test_the_model_is_text(run: RunDirectory) -> None:
    with pytest.raises(DataError, match=r"model\.json: cannot be read: there is no such file"):
        run.read_text("model.json")
    assert run.write_model('{"parts": []}\n') == run.path / "model.json"
    assert run.read_text("model.json") == '{"parts": []}\n'


def test_what_fills_a_run_is_there_when_it_appears(tmp_path: Path, make_run: Make) -> None:
    def fill(run: RunDirectory) -> None:
        assert run.path.name.startswith(".")
        run.write_text("source/a.csv", "a\n")

    assert make_run(tmp_path, fill=fill).read_text("source/a.csv") == "a\n"


def test_nothing_is_left_of_a_run_that_could_not_be_filled(tmp_path: Path, make_run: Make) -> None:
    def fill(run: RunDirectory) -> None:
        run.write_text("source/a.csv", "a\n")
        raise DataError("the source is damaged")

    with pytest.raises(DataError, match="damaged"):
        make_run(tmp_path, fill=fill)
    assert list(tmp_path.iterdir()) == []


def test_texts_of_a_point_are_written_all_or_said_to_be_missing(run: RunDirectory) -> None:
    texts = {f"part{number}.h": f"int n = {number};\n" * number for number in range(20)}
    run.write_point_texts("aa", texts)
    assert dict(run.point_texts("aa", lambda name: True)) == texts
    run.write_point_texts("bb", {})
    with pytest.raises(UsageError, match="not a path inside the run directory"):
        run.write_point_texts("aa", {**texts, "../../../x.h": "int x;"})
