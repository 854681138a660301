"""What people meet at the door: runs by name, paths to paste, pages that open, and words that are understood."""

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import command, environment, p4perf
from support.runs import make_run

from p4perf.cli import progress
from p4perf.cli.app import measured_text

LINES = "x,y\n" + "".join(f"{n},{3 * n + 5}\n" for n in range(1, 20))


@pytest.fixture
def place(tmp_path):
    """A folder with two runs of one experiment."""
    for number, target in enumerate(("dpdk-c", "dpdk-swx:interpreter")):
        make_run(tmp_path / "runs", lambda x, n=number: 60.0 + 20 * n, target=target)
    return tmp_path


def ok(*arguments, cwd, **variables):
    done = p4perf(*arguments, cwd=cwd, **variables)
    assert done.code == 0, done.err
    return done


def paths_in(text):
    return re.findall(r"\S*runs/\S+", text)


def on_a_terminal(*arguments, cwd, columns):
    """What a command prints on a terminal of that width."""
    reader, writer = os.openpty()
    variables = environment(COLUMNS=str(columns), TERM="dumb")
    done = subprocess.Popen(command(*arguments), cwd=cwd, stdout=writer, stderr=subprocess.DEVNULL, env=variables)
    os.close(writer)
    said = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while piece := os.read(reader, 4096):
            said += piece
    assert done.wait() == 0
    return said.decode().replace("\r\n", "\n")


class TestPaths:
    def test_printed_paths_are_relative_and_whole(self, place):
        out = ok("list", "runs", cwd=place).out
        assert len(paths_in(out)) == 2
        assert all((place / path).is_dir() and not Path(path).is_absolute() for path in paths_in(out))
        shown = ok("show", paths_in(out)[1], cwd=place)
        assert shown.out

    @pytest.mark.parametrize("columns", [40, 80, 200])
    def test_a_terminal_of_any_width_folds_no_path_and_loses_no_column(self, place, columns):
        said = on_a_terminal("list", "runs", cwd=place, columns=columns)
        paths = paths_in(said)
        assert len(paths) == 2
        assert all((place / path).is_dir() for path in paths)
        rows = json.loads(ok("list", "runs", "--format", "json", cwd=place).out)["rows"]
        assert [row["created"] for row in rows] == sorted(row["created"] for row in rows)
        for row in rows:
            assert f"{row['finished']} of {row['points']} " in said
        assert all(word in said for word in ("began", "points", "trials", "planned", "state"))

    def test_lines_end_where_their_text_ends(self, place):
        lines = ok("list", "runs", cwd=place).out.splitlines()
        assert lines == [line.rstrip() for line in lines]

    def test_names(self, place):
        for name in ("latest", "latest~1", "mat-exact-entries--dpdk-c"):
            assert json.loads(ok("status", name, "--format", "json", cwd=place).out)["rows"]
        failed = p4perf("show", "latest~9", cwd=place)
        assert (failed.code, "only 2 runs in runs" in failed.err) == (2, True)


class TestComparing:
    def test_nothing_is_written_unless_a_folder_is_named(self, place):
        before = set(place.rglob("*"))
        done = ok("compare", "latest", "latest~1", cwd=place)
        assert set(place.rglob("*")) == before
        assert "-o FOLDER" in done.err
        assert "output" not in json.loads(ok("compare", "latest", "latest~1", "-f", "json", cwd=place).out)
        ok("compare", "latest", "latest~1", "-o", "out", cwd=place)
        assert (place / "out" / "comparison.json").is_file()


class TestOpening:
    def test_the_page_of_a_run_is_made_and_its_path_printed(self, place):
        nowhere = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": "", "XDG_CACHE_HOME": str(place / "cache")}
        done = ok("open", "latest", cwd=place, **nowhere)
        page = place / done.out.strip()
        assert page.parent.name == "runs"
        assert "mat/exact-entries" in page.read_text()
        assert not Path(done.out.strip()).is_absolute()

    def test_a_browser_gets_it(self, place):
        script = place / "browser"
        script.write_text(f'#!/bin/sh\necho "$1" > {place}/opened\n')
        script.chmod(0o755)
        ok("open", cwd=place, BROWSER=f"{script} %s", XDG_CACHE_HOME=str(place / "cache"))
        assert (place / "opened").read_text().startswith("file:///")
        (place / "opened").unlink()
        ok("open", "--no-browser", cwd=place, BROWSER=f"{script} %s", XDG_CACHE_HOME=str(place / "cache"))
        assert not (place / "opened").exists()


class TestUnderstanding:
    @pytest.mark.parametrize(
        ("ends", "said"),
        [
            ((200.0, -100.0, 500.0), "unknown, at most 500 (median 200)"),
            ((200.0, 100.0, 300.0), "200 (100 .. 300)"),
            ((0.0, 0.0, 0.0), "0"),
        ],
    )
    def test_a_cost_whose_interval_crosses_zero_is_unknown(self, ends, said):
        assert measured_text(*ends) == said

    def test_columns_between_spaces_are_told_from_a_wrong_name(self, tmp_path):
        (tmp_path / "data.csv").write_text(LINES.replace(",", " "))
        said = p4perf("fit", "data.csv", "--x", "x", "--y", "y", cwd=tmp_path).err
        assert "there is no column 'x'" in said
        assert "separate columns by commas, semicolons or tabs" in said

    def test_a_series_comes_from_the_standard_input(self, tmp_path):
        done = subprocess.run(
            command("fit", "-", "--x", "x", "--y", "y", "--format", "json"),
            input=LINES, capture_output=True, text=True, cwd=tmp_path, env=environment(), check=True,
        )  # fmt: skip
        found = json.loads(done.stdout)
        assert (found["name"], found["domain"]) == ("stdin", [1, 19])

    def test_a_folder_of_runs_is_fitted(self, place):
        found = json.loads(ok("fit", "runs", "--resamples", "0", "--format", "json", cwd=place).out)
        assert (found["kind"], found["series"], found["failed"]) == ("models", 2, 0)

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["list", "target"], "did you mean targets?"),
            (["frobnicate"], "error: unknown command frobnicate\nhint: p4perf --help lists the commands\n"),
            (["shwo"], "error: unknown command shwo\nhint: did you mean show?\n"),
            (["run", "--targt", "x"], "error: unknown option --targt\nhint: did you mean --target?\n"),
            (["show", "lates"], "hint: did you mean latest?\n"),
            (["check", "mat/exact-entries", "--set", "traffic.pattern=x"], "'x' is not one of cbr, poisson, burst\n"),
            (["fit", "data.csv", "--x", "x", "--y", "Y"], "did you mean y?"),
            (["pack", "latest", "--licence", "CC-BY-5.0"], "unknown licence 'CC-BY-5.0'"),
            (["predict", "baseline/l2fwd", "--line-rate", "100Gps"], "there is no unit 'Gps'"),
        ],
    )
    def test_what_is_wrong_is_named_with_what_is_near(self, place, arguments, said):
        (place / "data.csv").write_text(LINES)
        failed = p4perf(*arguments, cwd=place)
        assert failed.code == 2
        assert said in failed.err
        assert failed.err.endswith(said) or not said.endswith("\n")

    def test_a_run_whose_name_is_misspelt(self, place):
        run = paths_in(ok("list", "runs", cwd=place).out)[0]
        failed = p4perf("show", run[:10] + "_" + run[11:-3], cwd=place)
        assert f"hint: did you mean {run[:12]}" in failed.err

    def test_gbps(self, tmp_path):
        options = ("baseline/l2fwd", "--set", "frame_size=[64]", "-t", "dpdk-c", "-f", "json")
        for rate in ("100Gbps", "100 Gbit/s", "100Gbit/s"):
            (row,) = json.loads(ok("predict", *options, "--line-rate", rate, cwd=tmp_path).out)["rows"]
            assert row["mpps"] > 14.9, "more than 10 Gbit/s carry"

    def test_generators_by_the_names_of_targets(self, tmp_path):
        ok("generate", "baseline/l2fwd", "-t", "bmv2", "--points", "1", "-o", "out", cwd=tmp_path)
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["v1model"]

    def test_what_is_wrong_with_a_spec_is_said_in_our_words(self, tmp_path):
        for number, text in enumerate(
            (
                "name: a/b\nprogram: {component: l2fwd}\ntrials: {repetitions: many}\n",
                "name: a/b\nprogram: {component: l2fwd}\nsweep: {frame_size: 64}\n",
                "name: a/b\nprogram: 7\n",
                "name: a/b\nprogram: {component: l2fwd}\nmetrics: {collect: 5}\n",
                "name: a/b\nprogram: {component: match_action_table, parameters: {entries: -1}}\n",
                "name: [1]\nprogram: {component: l2fwd, parameters: 3}\n",
            )
        ):
            path = tmp_path / f"{number}.yaml"
            path.write_text(text)
            failed = p4perf("check", path, cwd=tmp_path)
            assert failed.code == 2
            assert not re.search(r"pydantic|Input should|type=|validation error|Value error", failed.err), failed.err
            assert f"{number}.yaml:" in failed.err


def test_progress_keeps_the_planned_number_beside_one_that_grows(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    with progress.SweepProgress() as shown:
        shown.planned(4, 1)
        for accepted, remaining in ((True, 2), (False, 2), (True, 3)):
            shown.trial("entries=1", accepted, remaining, 9.0)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "4 trials planned, 1 of them finished before",
        "2 of 4 trials accepted, about 9 s left",
        "2 of 4 trials accepted, 1 rejected, about 9 s left",
        "3 of 6 trials (4 planned, 2 more where starts disagree) accepted, 1 rejected, about 9 s left",
    ]


class TestDoctor:
    def test_what_works_comes_first(self):
        done = p4perf("doctor")
        first, *others = done.out.splitlines()
        assert first.startswith("You can measure on ")
        assert "fake" in first
        assert len([line for line in others if line.startswith("metric ")]) < 20

    def test_rows_fit_the_terminal(self, tmp_path):
        said = on_a_terminal("doctor", cwd=tmp_path, columns=100)
        first, *rows = said.splitlines()
        assert first.startswith("You can measure on ")
        advice = json.loads(p4perf("doctor", "--format", "json").out)["rows"][0]["advice"]
        assert all(word in said for word in advice.split() if len(word) <= 12), "the last column is whole"
        assert max(len(row) for row in rows if not row.startswith("To measure P4 ")) <= 100

    def test_metrics_do_not_contradict_tools(self):
        found = json.loads(p4perf("doctor", "--format", "json").out)
        states = {row["check"]: row for row in found["rows"] if row["area"] == "metric"}
        simulated = {name: row["state"] for name, row in states.items() if name.startswith("simulated_")}
        valgrind = next(row["state"] for row in found["rows"] if row["check"].startswith("valgrind"))
        if valgrind == "ok" and "vio" in found["usable_targets"] and "dpdk-c" in found["usable_targets"]:
            assert set(simulated.values()) == {"ok"}
        assert all(row["advice"] for row in states.values() if row["state"] == "missing")
        assert all(row["advice"].count("build") <= 1 for row in found["rows"] if row["check"] == "bmv2")


def test_the_help_fits_a_screen_and_loads_little():
    done = p4perf("--help")
    assert len(done.out.splitlines()) <= 40
    heavy = ("numpy", "pandas", "scipy", "pydantic")
    asked = f"import sys; from p4perf.cli import loaded; loaded(); print([m for m in {heavy} if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"


class TestWhatNewcomersType:
    def test_the_papers_are_listed_before_anything_is_measured(self, tmp_path):
        found = json.loads(ok("reproduce", "--format", "json", cwd=tmp_path).out)
        assert (found["kind"], len(found["rows"])) == ("reproduction.papers", 5)
        assert all(row["command"] == f"p4perf reproduce {row['paper']}" and row["time"] for row in found["rows"])
        assert list(tmp_path.iterdir()) == []
        done = p4perf("reproduce", "gebert2016", "--all", cwd=tmp_path)
        assert (done.code, "name claims or write --all" in done.err) == (2, True)

    def test_a_folder_of_runs_by_place(self, place):
        assert ok("list", "runs", "runs", cwd=place).out == ok("list", "runs", "--in", "runs", cwd=place).out
        assert "for runs only" in p4perf("list", "targets", "runs", cwd=place).err

    def test_fit_without_data_names_the_standard_input(self, tmp_path):
        assert "p4perf fit - reads columns from standard input" in p4perf("fit", cwd=tmp_path).err

    @pytest.mark.parametrize("text", ['title: "tables\ntrials: {}\n', "sweep: {entries: [1, 2\ntrials: {}\n"])
    def test_what_has_no_end_is_reported_where_it_begins(self, tmp_path, text):
        (tmp_path / "spec.yaml").write_text(f"name: a/b\n{text}")
        assert "spec.yaml:2:" in p4perf("check", "spec.yaml", cwd=tmp_path).err
