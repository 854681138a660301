"""fit of many series: a row for each, a file of models that can be resumed, and one message for every mistake."""

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from support.command import command, environment, p4perf
from typer.main import get_command

from p4perf.cli import loaded
from p4perf.errors import ExitCode, P4PerfError
from p4perf.models.component import ComponentModel

COLUMNS = ["points", "segments", "error", "error_metric", "families", "breakpoint_x", "formulas", "failure"]
EXTRAP = "PARAMETER n\nPOINTS 1 2 3 4 5\n" + "".join(
    f"REGION {region}\nMETRIC {metric}\n" + "".join(f"DATA {k * n}\n" for n in range(1, 6))
    for k, (region, metric) in enumerate([("main", "time"), ("main", "calls"), ("leaf", "time")], start=1)
)


def text(count, points=20, bad=()):
    """Long format: so many targets, two metrics each."""
    rows = [
        f"t{k},{m},{n},{'oops' if (k, m) in bad and n == 3 else 10 + k + (n if m == 'cycles' else 40) * (n > 9)}"
        for n in range(1, points + 1)
        for k in range(count)
        for m in ("cycles", "misses")
    ]
    return "\n".join(["target,metric,entries,value", *rows, ""])


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(text(3))
    return path


def of(path, *more, by="target,metric"):
    return ["fit", path, "--x", "entries", "--y", "value", "--by", by, "--resamples", 0, *more]


def call(capsys, *arguments):
    """Exit code, stdout and stderr, in this process."""
    code = get_command(loaded())(list(map(str, arguments)), standalone_mode=False)
    captured = capsys.readouterr()
    return int(code or 0), captured.out, captured.err


def printed(capsys, *arguments):
    code, out, err = call(capsys, *arguments, "--format", "json")
    return code, json.loads(out), err


def refused(*arguments):
    with pytest.raises(P4PerfError) as caught:
        get_command(loaded())(list(map(str, arguments)), standalone_mode=False)
    return caught.value.exit_code, caught.value.text()


class TestRows:
    def test_in_every_format(self, data, capsys):
        code, found, _ = printed(capsys, *of(data))
        assert (code, found["kind"], found["series"], found["kept"], found["failed"]) == (0, "models", 6, 0, 0)
        assert found["labels"] == ["file", "target", "metric"]
        assert [(row["target"], row["metric"]) for row in found["rows"]] == [
            (f"t{k}", m) for k in range(3) for m in ("cycles", "misses")
        ]
        row = found["rows"][1]
        assert list(row) == ["file", "target", "metric", *COLUMNS]
        assert (row["points"], row["segments"], row["families"], row["breakpoint_x"]) == (
            20,
            2,
            ["const", "const"],
            [10.0],
        )
        assert row["formulas"] == ["value = 10", "value = 50"]
        rows = list(csv.DictReader(io.StringIO(call(capsys, *of(data), "--format", "csv")[1])))
        assert [list(row) for row in rows] == [list(row) for row in found["rows"]]
        table = call(capsys, *of(data))[1]
        assert len([line for line in table.splitlines() if line.strip()]) == 7
        assert "value = 10; value = 50" in table
        assert "data.csv" not in table
        assert "failure" not in table

    def test_a_label_that_is_named_like_a_column(self, data, capsys):
        data.write_text(text(1).replace("metric", "segments"))
        _, found, _ = printed(capsys, *of(data, by="segments"))
        assert found["labels"] == ["file", "label_segments"]
        assert [row["label_segments"] for row in found["rows"]] == ["cycles", "misses"]

    def test_several_files_of_different_kinds(self, tmp_path, capsys):
        (tmp_path / "calls.txt").write_text(EXTRAP)
        (tmp_path / "one.csv").write_text("n,time,calls\n1,2,3\n2,3,4\n")
        files = [tmp_path / name for name in ("one.csv", "calls.txt")]
        code, found, _ = printed(capsys, "fit", *files, "--x", "n", "--y", "time", "--resamples", 0)
        assert (code, found["labels"]) == (0, ["file", "region", "metric"])
        assert [(row["file"], row.get("region")) for row in found["rows"]] == [
            (str(files[0]), None), (str(files[1]), "main"), (str(files[1]), "leaf"),
        ]  # fmt: skip
        assert "one.csv" in call(capsys, "fit", *files, "--x", "n", "--y", "time", "--resamples", 0)[1]

    def test_all_of_extrap_and_one_metric(self, tmp_path, capsys):
        (tmp_path / "calls.txt").write_text(EXTRAP)
        _, found, _ = printed(capsys, "fit", tmp_path / "calls.txt", "--by", "region,metric", "--resamples", 0)
        assert [(row["region"], row["metric"]) for row in found["rows"]] == [
            ("main", "time"), ("main", "calls"), ("leaf", "time"),
        ]  # fmt: skip
        _, found, _ = printed(
            capsys, "fit", tmp_path / "calls.txt", "--by", "region,metric", "--y", "time", "--resamples", 0
        )
        assert [row["region"] for row in found["rows"]] == ["main", "leaf"]

    def test_runs_are_derived_as_fit_does(self, tmp_path, capsys):
        options = ["--points", 12, "--target", "fake", "-o", tmp_path / "runs", "-q"]
        assert p4perf("run", "mat/exact-entries", *options).code == 0
        (run,) = (tmp_path / "runs").iterdir()
        runs = [run, shutil.copytree(run, tmp_path / "runs" / "copy")]
        _, found, _ = printed(capsys, "fit", *runs, "-o", tmp_path / "models")
        assert [row["file"] for row in found["rows"]] == list(map(str, runs))
        lines = (tmp_path / "models" / "models.jsonl").read_text().splitlines()
        for line, run in zip(lines, runs, strict=True):
            ours, theirs = ComponentModel.from_json(line), ComponentModel.from_json((run / "model.json").read_text())
            assert (ours.fitting, ours.uncertainty, ours.name, ours.target, ours.x, ours.y) == (
                theirs.fitting, theirs.uncertainty, theirs.name, theirs.target, theirs.x, theirs.y,
            )  # fmt: skip


class TestFailures:
    def test_the_others_stay(self, data, tmp_path, capsys):
        data.write_text(text(3, bad={(1, "misses")}))
        code, found, err = printed(capsys, *of(data, "-o", tmp_path / "m.jsonl"))
        assert (code, found["failed"]) == (ExitCode.NO_VERDICT, 1)
        assert [bool(row["failure"]) for row in found["rows"]] == [False, False, False, True, False, False]
        assert f"failed: file={data}, target=t1, metric=misses: {data}:17: column 'value': 'oops' is not" in err
        assert "1 of 6 series have no model" in err
        assert (tmp_path / "m.jsonl").read_text().count("\n") == 5
        assert "oops" in call(capsys, *of(data, "-o", tmp_path / "m.jsonl"))[1], "the table has a column for failures"

    def test_many_failures_are_not_all_listed(self, data, capsys):
        data.write_text(text(30, points=3, bad={(k, "misses") for k in range(30)}))
        code, _, err = call(capsys, *of(data))
        assert code == ExitCode.NO_VERDICT
        assert err.count("failed: ") == 20
        assert "... and 10 more" in err

    def test_nothing_can_be_read(self, data):
        code, message = refused("fit", data, "--x", "entries", "--y", "metric", "--by", "target")
        assert code == ExitCode.USAGE
        assert ":2: column 'metric': 'cycles' is not a finite number" in message


class TestMistakes:
    @pytest.mark.parametrize(
        ("more", "message"),
        [
            (["--by", "metrik"], "there is no column 'metrik' (--by)\nhint: did you mean metric?"),
            (["--by", "target,,metric"], "a name of a column is missing"),
            (["--by", "target", "--by", "target"], "duplicate column target"),
            (["--by", "entries"], "cannot distinguish series"),
            (["--error", "smap"], "smap"),
            (["--split-finder", "dynamo"], "did you mean dynamic?"),
            (["--restart"], "name it with --output"),
            (["--processes", "2", "--scheduler", "tcp://127.0.0.1:1"], "leave it out with --scheduler"),
            (["--scheduler", "nonsense"], "invalid address of a scheduler"),
            (["-o", "{folder}/data.csv"], "is a file whose name does not end with .jsonl"),
            (["{folder}/nothing.csv"], "there is no run directory or file"),
            (["{folder}/../{name}/data.csv"], "is named twice"),
            (["{folder}"], "is not a run directory"),
            (["--threads", "2"], "--threads: for one series"),
            (["--working-set", "1+2", "--cache", "L2=1MiB"], "--working-set, --cache: for one series"),
            (["{folder}/e.txt"], "e.txt is a file of Extra-P: its series are its regions and metrics"),
        ],
    )
    def test_one_message(self, data, more, message):
        (data.parent / "e.txt").write_text(EXTRAP)
        more = [str(m).format(folder=data.parent, name=data.parent.name) for m in more]
        by = [] if "--by" in more else ["--by", "target,metric"]
        code, text = refused("fit", data, "--x", "entries", "--y", "value", *by, *more)
        assert (code, message in text) == (ExitCode.USAGE, True), text

    @pytest.mark.parametrize(("option", "word"), [("--profile", "paper"), ("--loss", "l2"), ("--x-scale", "cubic")])
    def test_a_choice_that_there_is_not(self, data, option, word):
        done = p4perf(*of(data, option, word))
        assert (done.code, done.out) == (ExitCode.USAGE, "")
        assert f"'{word}' is not one of" in done.err

    def test_csv_needs_columns(self, data, tmp_path):
        (tmp_path / "e.txt").write_text(EXTRAP)
        for files in ([data], [tmp_path / "e.txt", data]):
            code, message = refused("fit", *files)
            assert code == ExitCode.USAGE
            assert "data.csv is a CSV file: name the columns of x and y" in message

    def test_a_scheduler_that_is_not_there(self, data, monkeypatch):
        monkeypatch.setattr("p4perf.evaluation.fitting.cluster.ANSWER_S", 0.3)
        code, message = refused(*of(data, "--scheduler", "tcp://127.0.0.1:1"))
        assert (code, "no answer from a Dask scheduler" in message) == (ExitCode.UNAVAILABLE, True)

    def test_other_options_than_before(self, data, tmp_path, capsys):
        call(capsys, *of(data, "-o", tmp_path / "m.jsonl"))
        before = (tmp_path / "m.jsonl").read_bytes()
        code, message = refused(*of(data, "-o", tmp_path / "m.jsonl", "--max-segments", 1))
        assert (code, "with other options" in message, "--restart" in message) == (ExitCode.USAGE, True, True)
        assert (tmp_path / "m.jsonl").read_bytes() == before
        call(capsys, *of(data, "-o", tmp_path / "m.jsonl", "--max-segments", 1, "--restart"))
        assert (tmp_path / "m.jsonl").read_bytes() != before


class TestGoingOn:
    def test_only_what_is_missing_is_fitted(self, data, tmp_path, capsys):
        output = tmp_path / "m.jsonl"
        _, whole, _ = printed(capsys, *of(data, "-o", output))
        lines = output.read_bytes().splitlines(keepends=True)
        output.write_bytes(b"".join(lines[:3]) + lines[3][:100])
        _, found, err = printed(capsys, *of(data, "-o", output))
        assert "3 of 6 series are in" in err
        assert (found["kept"], found["rows"]) == (3, whole["rows"])
        assert output.read_bytes() == b"".join(lines)
        data.write_text(text(4))
        _, found, _ = printed(capsys, *of(data, "-o", output))
        assert (found["kept"], found["series"]) == (6, 8)

    @pytest.mark.sampled(1)
    @pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
    def test_after_an_end_with_violence(self, tmp_path, how, capsys):
        data = tmp_path / "data.csv"
        data.write_text(text(20))
        arguments = ["fit", data, "--x", "entries", "--y", "value", "--by", "target,metric", "--resamples", 100]
        process = subprocess.Popen(
            command(*arguments, "--processes", 2, "-o", tmp_path / "a.jsonl"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            start_new_session=True,
        )
        deadline = time.monotonic() + 60
        while not (tmp_path / "a.jsonl").exists() or (tmp_path / "a.jsonl").read_bytes().count(b"\n") < 5:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.005)
        os.killpg(process.pid, how)
        out, err = process.communicate(timeout=30)
        assert out == ""
        if how == signal.SIGINT:
            assert process.returncode == ExitCode.INTERRUPTED
            assert "Traceback" not in err
            assert f"models are in {tmp_path}/a.jsonl; the same command fits the rest" in err
        deadline = time.monotonic() + 5
        while left_over(process.pid):
            assert time.monotonic() < deadline, "a process is left behind"
            time.sleep(0.02)
        there = (tmp_path / "a.jsonl").read_bytes().count(b"\n")
        assert 5 <= there < 40
        if how == signal.SIGINT:
            return
        code, found, _ = printed(capsys, *arguments, "--processes", 2, "-o", tmp_path / "a.jsonl")
        assert (code, found["kept"]) == (0, there)
        assert call(capsys, *arguments, "--processes", 1, "-o", tmp_path / "b.jsonl")[0] == 0
        assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def left_over(session):
    """Processes of a session."""
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return False
    return True


def test_help():
    result = p4perf("fit", "--help")
    assert result.code == 0
    assert "--by" in result.out
    assert result.err == ""
