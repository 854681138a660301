"""What the commands do when all is well: data on stdout, talk on stderr, exit code 0."""

import csv
import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.command import command, environment, p4perf
from typer.main import get_command

import p4perf as package
from p4perf.cli import loaded
from p4perf.cli.app import COMMANDS as HEADINGS
from p4perf.specs.schema import json_schema_text

SPEC = "mat/exact-entries"
COMMANDS = ["list", "check", "generate", "run", "resume", "status", "show", "fit", "export", "doctor"]
KINDS = [
    *(
        "experiments",
        "targets",
        "testbeds",
        "components",
        "generators",
        "load-generators",
        "searches",
        "metrics",
        "models",
        "runs",
    )
]


def ok(*arguments, **more):
    result = p4perf(*arguments, **more)
    assert result.code == 0, (result.out, result.err)
    return result


def data(*arguments, **more):
    """The JSON that a command prints."""
    found = json.loads(ok(*arguments, "--format", "json", **more).out)
    assert found["schema_version"] == 2
    return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The result of a small sweep of the fake target, and its run directory. It is only looked at."""
    folder = tmp_path_factory.mktemp("runs")
    result = ok("run", SPEC, "--points", 9, "--target", "fake", "-o", folder, "--format", "json")
    (run,) = folder.iterdir()
    return result, run


def commands(group, path=""):
    """Every command, those of groups too."""
    for name, each in group.commands.items():
        if hasattr(each, "commands"):
            yield from commands(each, f"{path} {name}")
        else:
            yield f"{path} {name}", each


class TestHelp:
    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_command_explains_itself(self, name):
        result = ok(name, "--help")
        assert f"p4perf {name}" in result.out
        assert result.err == ""

    def test_the_command_lists_its_commands(self):
        text = ok("--help").out
        assert all(f"\n  {name} " in text for name in COMMANDS)
        assert len(text.splitlines()) <= 40

    @pytest.mark.parametrize(("name", "other"), [("run", "measure"), ("measure", "run")])
    def test_commands_that_measure_name_each_other(self, name, other):
        assert f"use p4perf {other}." in " ".join(ok(name, "--help").out.split())

    def test_every_command_stands_below_a_heading(self):
        listed = [name for names in HEADINGS.values() for name in names]
        assert sorted(listed) == sorted(get_command(loaded()).commands)
        text = ok("--help").out
        assert all(f"\n{heading}:\n" in text for heading in HEADINGS)

    @pytest.mark.parametrize(
        ("name", "now"),
        [("fit-many", "fit --by"), ("eo", "estimate eo"), ("factors", "analyse factors"), ("schema", "check --schema")],
    )
    def test_a_former_command_names_the_new_one(self, name, now):
        result = p4perf(name, "--help")
        assert (result.code, result.err.splitlines()[-1]) == (2, f"hint: use p4perf {now}")

    def test_a_choice_is_suggested(self):
        result = p4perf("list", "target")
        assert result.code == 2
        assert result.err.startswith("error: invalid value for 'what': 'target' is not one of 'targets'")
        assert result.err.endswith("hint: did you mean targets?\n")

    def test_short_options_mean_the_same_everywhere(self):
        meanings = {}
        for path, each in commands(get_command(loaded())):
            for option in each.params:
                for short in (name for name in option.opts if len(name) == 2):
                    meanings.setdefault(short, {}).setdefault(max(option.opts, key=len), []).append(path)
                if {"--output", "--target", "--quiet", "--format"} & {*option.opts}:
                    assert any(len(name) == 2 for name in option.opts), (path, option.opts)
        assert {short: longs for short, longs in meanings.items() if len(longs) > 1} == {}

    def test_without_arguments_there_is_help(self):
        result = p4perf()
        assert "Usage" in result.out + result.err
        assert "defect" not in result.err

    def test_version(self):
        assert ok("--version").out == f"p4perf {package.__version__}\n"

    def test_a_command_is_in_its_modules(self):
        app, found = loaded(), {}
        for info in app.registered_commands:
            found[info.name or info.callback.__name__] = {info.callback.__module__}
        for group in app.registered_groups:
            found[group.name] = {info.callback.__module__ for info in group.typer_instance.registered_commands}
        named = {name: modules for names in HEADINGS.values() for name, modules in names.items()}
        assert found == {name: {f"p4perf.cli.{m}" for m in modules.split()} for name, modules in named.items()}

    def test_the_door_opens_without_the_heavy_libraries(self):
        heavy = ("pandas", "matplotlib", "scipy")
        code = f"import sys; from p4perf.cli import loaded; loaded(); print([m for m in {heavy} if m in sys.modules])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "[]\n"

    @pytest.mark.parametrize("arguments", [["check", "--schema"], ["list", "experiments"]])
    def test_a_reader_that_leaves_early_is_no_failure(self, arguments):
        process = subprocess.Popen(
            command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        )
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        assert process.wait(timeout=60) == 0
        assert err == ""


class TestList:
    @pytest.mark.parametrize("what", KINDS)
    def test_in_every_format(self, what, finished):
        options = ["--in", finished[1].parent] if what == "runs" else []
        found = data("list", what, *options)
        assert found["kind"] == f"list.{what}"
        assert found["rows"]
        rows = list(csv.DictReader(io.StringIO(ok("list", what, *options, "--format", "csv").out)))
        assert [list(row) for row in rows] == [list(row) for row in found["rows"]]
        table = ok("list", what, *options).out
        first = next(iter(found["rows"][0].values()))
        assert str(first)[:40] in table, "long ones are folded"

    def test_the_fake_targets_of_another_distribution_are_there(self):
        names = [row["name"] for row in data("list", "targets")["rows"]]
        assert {"dpdk-c", "fake"} <= set(names)

    def test_no_runs(self, tmp_path):
        assert data("list", "runs", "--in", tmp_path)["rows"] == []
        assert "there is no folder" in p4perf("list", "runs", "--in", tmp_path / "nothing").err

    def test_a_damaged_run_does_not_hide_the_others(self, finished, tmp_path):
        (tmp_path / "damaged").mkdir()
        (tmp_path / "damaged" / "manifest.json").write_text("{")
        (tmp_path / "good").symlink_to(finished[1])
        result = ok("list", "runs", "--in", tmp_path, "--format", "json")
        assert len(json.loads(result.out)["rows"]) == 1
        assert "damaged" in result.err


class TestCheck:
    @pytest.mark.parametrize(
        "name", ["mat/exact-entries", "parser/headers", "action/header-field-writes", "baseline/l2fwd"]
    )
    def test_the_catalogue(self, name):
        (row,) = data("check", name)["rows"]
        assert row["experiment"] == name
        assert row["trials"] >= row["points"] > 1

    def test_against_a_target(self):
        (row,) = data("check", SPEC, "--target", "fake", "--points", 4)["rows"]
        assert (row["points"], row["targets"]) == (4, ["fake"])

    def test_the_same_spec_has_the_same_hash(self):
        hashes = [data("check", SPEC, *more)["rows"][0]["spec_hash"] for more in ([], [], ["--set", "trials.seed=9"])]
        assert hashes[0] == hashes[1] != hashes[2]


def test_the_schema_is_the_one_that_ships():
    assert ok("check", "--schema").out == json_schema_text()


class TestGenerate:
    def files(self, folder):
        return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    def test_files_for_all_generators(self, tmp_path):
        found = data("generate", SPEC, "--set", "entries=[1, 10, 1000]", "-o", tmp_path)
        files = self.files(tmp_path)
        for generator in ("dpdk-c", "moongen", "v1model"):
            for point in ("0", "1", "2"):
                inside = [name for name in files if name.startswith(f"{generator}/{point}/")]
                assert len(inside) >= 2, generator
                described = json.loads(files[f"{generator}/{point}/point.json"])
                assert described["values"] == {"entries": [1, 10, 1000][int(point)]}
        assert all(files.values()), "no file is empty"
        assert {Path(row["file"]).resolve() for row in found["rows"]} <= {
            p.resolve() for p in tmp_path.rglob("*") if p.is_file()
        }

    def test_twice_the_same(self, tmp_path):
        for name in ("a", "b"):
            ok("generate", "parser/headers", "--points", 3, "-o", tmp_path / name)
        assert self.files(tmp_path / "a") == self.files(tmp_path / "b")

    def test_only_what_was_asked_for(self, tmp_path):
        ok("generate", SPEC, "--points", 1, "-g", "dpdk-c", "-o", tmp_path)
        assert [p.name for p in tmp_path.iterdir()] == ["dpdk-c"]

    def test_long_lists_of_entries_are_left_out(self, tmp_path):
        options = ["--set", "entries=[2000, 5000]", "-g", "v1model", "--max-entries", 3000, "-o", tmp_path]
        result = ok("generate", SPEC, *options, "--format", "json")
        assert json.loads(result.out)["left_out"] > 0
        assert "--max-entries" in result.err
        assert list(tmp_path.glob("v1model/0/commands*"))
        assert not list(tmp_path.glob("v1model/1/commands*"))


class TestRun:
    def test_a_dry_run_plans_and_writes_nothing(self, tmp_path):
        found = data("run", SPEC, "--points", 5, "--target", "fake", "--dry-run", "-o", tmp_path / "runs", cwd=tmp_path)
        assert found["kind"] == "plan"
        assert found["trials"] == 15
        assert found["rows"][0]["entries"] == 1
        assert list(tmp_path.iterdir()) == []

    def test_stdout_is_data_and_stderr_is_talk(self, finished):
        result, run = finished
        found = json.loads(result.out)
        assert (found["kind"], found["run"]) == ("model", str(run))
        assert "9 points" in result.err
        assert str(run) in result.err
        assert "trials planned" in result.err
        assert "9 of 9 points have accepted trials" in result.err

    def test_quiet(self, tmp_path):
        result = ok("run", SPEC, "--points", 2, "--target", "fake", "-o", tmp_path, "-q", "--format", "json")
        assert json.loads(result.out)["kind"] == "model"
        assert "planned" not in result.err

    @pytest.mark.parametrize("fmt", ["table", "csv"])
    def test_tables_hold_nothing_but_rows(self, finished, fmt):
        result = ok("show", finished[1], "--format", fmt)
        lines = [line for line in result.out.splitlines() if line.strip()]
        assert len(lines) == 9 + (2 if fmt == "table" else 1)

    @pytest.mark.thorough
    def test_two_runs_in_the_same_second_are_two_directories(self, tmp_path):
        arguments = command("run", SPEC, "--points", 2, "--target", "fake", "-o", tmp_path, "-q")
        both = [subprocess.Popen(arguments, stdout=subprocess.DEVNULL, env=environment()) for _ in range(2)]
        assert [process.wait(timeout=120) for process in both] == [0, 0]
        assert len(list(tmp_path.iterdir())) == 2

    def test_a_spec_file(self, tmp_path):
        path = tmp_path / "mine.yaml"
        path.write_text("spec_version: 1\nextends: mat/exact-entries\nname: my/own\nsweep:\n  entries: [1, 10]\n")
        ok("run", path, "--target", "fake", "-o", tmp_path / "runs", "-q")
        (run,) = (tmp_path / "runs").iterdir()
        assert run.name.startswith("my-own--fake--local--")
        assert data("status", run)["rows"][0]["complete"]


class TestLooking:
    def test_status(self, finished):
        (row,) = data("status", finished[1])["rows"]
        assert (row["experiment"], row["target"], row["points"], row["trials"]) == (SPEC, "fake", 9, 27)
        assert row["complete"] is True

    def test_show(self, finished):
        found = data("show", finished[1], "--metric", "packet_rate")
        assert (found["metric"], found["unit"]) == ("packet_rate", "Mpps")
        assert len(found["rows"]) == 9
        assert all(row["n"] == 3 and row["low"] <= row["median"] <= row["high"] for row in found["rows"])

    def test_fit_again_with_other_parts(self, finished):
        assert len(data("fit", finished[1], "--segments", 1)["segments"]) == 1
        assert len(data("fit", finished[1], "--segments", 2)["segments"]) == 2

    def test_fit_a_csv_file(self, tmp_path):
        path = tmp_path / "data.csv"
        path.write_text("x,y\n" + "".join(f"{n},{3 * n + 5}\n" for n in range(1, 20)))
        found = data("fit", path, "--x", "x", "--y", "y", "-o", tmp_path / "out")
        assert found["domain"] == [1, 19]
        assert found["error"] < 1e-6
        assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
            *("data-residuals.png", "data-residuals.svg", "data-segments.png", "data-segments.svg"),
            *("data.png", "data.svg", "model.json"),
        ]

    def test_doctor(self):
        result = p4perf("doctor", "--format", "json")
        assert result.code == 0, "the fake target is usable everywhere"
        found = json.loads(result.out)
        assert found["kind"] == "doctor"
        assert "fake" in found["usable_targets"]
        assert "fake-absent" not in found["usable_targets"]
        assert {"target", "metric", "tool", "setting"} <= {row["area"] for row in found["rows"]}


def wait_for_trials(process, folder, number):
    """The run directory of a sweep under way, as soon as so many of its trials are on the disk."""
    deadline = time.monotonic() + 60
    while True:
        journals = list(folder.glob("mat*/points/*/raw.jsonl"))
        if sum(path.read_text().count("\n") for path in journals) >= number:
            return journals[0].parents[2]
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)


class TestInterruption:
    @pytest.fixture
    def sweep(self, tmp_path):
        """A long sweep at work, and its run directory."""
        options = ["--set", "trials.repetitions=200", "--target", "fake", "-o", tmp_path]
        process = subprocess.Popen(
            command("run", SPEC, *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        )
        yield process, wait_for_trials(process, tmp_path, 5)
        if process.poll() is None:
            process.kill()
        process.communicate()

    def test_an_interrupt_says_how_to_go_on(self, sweep):
        process, run = sweep
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert out == ""
        assert "Traceback" not in err
        assert f"p4perf resume {run}" in err
        row = data("status", run)["rows"][0]
        assert not row["complete"]
        assert row["trials"] > 0
        assert data("show", run)["rows"], "what was finished is in the table"

    @pytest.mark.thorough
    def test_what_was_interrupted_can_be_resumed(self, tmp_path):
        process = subprocess.Popen(
            command("run", SPEC, "--set", "trials.repetitions=10", "--points", 20, "--target", "fake", "-o", tmp_path),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )
        run = wait_for_trials(process, tmp_path, 5)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        known = data("status", run)["rows"][0]
        before = known["trials"]
        assert known["wanted"] == 200
        assert 5 <= before < 200
        ok("resume", run, "-q")
        row = data("status", run)["rows"][0]
        assert (row["complete"], row["trials"]) == (True, 200)

    def test_a_second_process_is_turned_away(self, sweep):
        process, run = sweep
        second = p4perf("resume", run)
        assert second.code == 3, second.err
        assert f"is being written by process {process.pid}" in second.err
        assert second.err.count("error: ") == 1
        assert process.poll() is None, "the first goes on"

    @pytest.mark.thorough
    def test_looking_while_it_is_measured(self, sweep):
        _, run = sweep
        assert data("status", run)["rows"][0]["complete"] is False
        assert data("list", "runs", "--in", run.parent)["rows"]
