"""Campaigns and refused points on the command line: arguments, output, exit codes, kills and interrupts."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support.campaigns import HEADERS, PREFIXES, TABLES, specs
from support.command import command, environment, p4perf
from support.sampling import sampled

from p4perf.cli.measure import chosen_experiments, exit_code
from p4perf.errors import ExitCode, UsageError
from p4perf.experiment.sizing import Cell
from p4perf.specs import list_catalogue
from p4perf.specs.units import seconds


class TestArguments:
    @pytest.mark.parametrize(
        ("text", "wanted_s"),
        [
            ("90s", 90),
            ("30m", 1800),
            ("30 min", 1800),
            ("1h30m", 5400),
            ("2 h", 7200),
            ("1h 1m 1s", 3661),
            (" 0.5h ", 1800),
        ],
    )
    def test_budgets(self, text, wanted_s):
        assert seconds(text, "--budget") == wanted_s

    @pytest.mark.parametrize("text", ["", "0", "0s", "30", "-5m", "m", "1d", "5m1h", "1e3s", "soon", "inf h"])
    def test_budgets_that_are_none(self, text):
        with pytest.raises(UsageError, match="expected a time"):
            seconds(text, "--budget")

    def test_everything(self):
        names = chosen_experiments([], every=True, only=[])
        assert "mat/exact-entries" in names
        assert not [name for name in names if name.startswith("demo/")], "demos repeat others"
        assert set(names) <= {e.name for e in list_catalogue()}

    def test_some(self):
        names = chosen_experiments([], every=True, only=["parser/*", "baseline/l2fwd"])
        assert "baseline/l2fwd" in names
        assert {name.split("/")[0] for name in names} == {"parser", "baseline"}

    def test_those_beside_it_that_are_named(self):
        names = chosen_experiments([], every=True, only=["demo/*", "mat/hit-*"])
        assert names == ["demo/exact-entries", "mat/hit-ratio"]

    def test_named_ones_are_measured_once(self):
        assert chosen_experiments(["b", "a", "b"], every=False, only=[]) == ["b", "a"]

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (([], False, []), "no spec given"),
            ((["a"], True, []), "name experiments or write --all, not both"),
            ((["a"], False, ["mat/*"]), "--only chooses from the catalogue"),
            (([], True, ["mat/*", "nothing/*"]), "--only nothing/* matches no experiment"),
        ],
    )
    def test_what_does_not_go_together(self, given, message):
        names, every, only = given
        with pytest.raises(UsageError) as caught:
            chosen_experiments(names, every=every, only=only)
        assert message in caught.value.message

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "no spec given"),
            (["parser/headers", "--only", "mat/*"], "--only chooses"),
            (["parser/headers", "--budget", "30"], "--budget 30: expected a time"),
            (["parser/headers", "baseline/l2fwd", "--dry-run"], "--dry-run is for one experiment on one target"),
            (["parser/headers", "-t", "fake", "-t", "fake-smal"], "unknown target 'fake-smal'"),
            (["parser/headers", "nothing/here", "-t", "fake"], "nothing/here"),
            (["parser/headers", "-t", "fake", "-t", "fake-noisy", "--testbed", "moon"], "unknown testbed 'moon'"),
        ],
    )
    def test_a_wrong_command_line_writes_nothing(self, tmp_path, arguments, message):
        done = p4perf("run", *arguments, cwd=tmp_path)
        assert done.code == ExitCode.USAGE
        assert message in done.err
        assert done.err.count("error: ") == 1
        assert done.out == ""
        assert list(tmp_path.iterdir()) == []

    def test_two_specs_of_one_name(self, tmp_path):
        sources = specs(tmp_path, HEADERS, HEADERS)
        done = p4perf("run", *sources, "-t", "fake", "-o", tmp_path / "runs")
        assert done.code == ExitCode.USAGE
        assert "are both called my/headers" in done.err
        assert not (tmp_path / "runs").exists()


def cell(state, accepted=4, **more):
    return Cell("a", "b", state, points=4, accepted=accepted, **more)


@pytest.mark.parametrize(
    ("cells", "code"),
    [
        ([cell("measured")], ExitCode.OK),
        ([cell("measured"), cell("refused", 0)], ExitCode.OK),
        ([cell("refused", 0)], ExitCode.UNAVAILABLE),
        ([cell("measured"), cell("unavailable", 0)], ExitCode.UNAVAILABLE),
        ([cell("unavailable", 0)], ExitCode.UNAVAILABLE),
        ([cell("measured", 3)], ExitCode.INVALID_MEASUREMENT),
        ([cell("measured"), cell("failed", 0)], ExitCode.INVALID_MEASUREMENT),
        ([cell("measured"), cell("open", 0)], ExitCode.INVALID_MEASUREMENT),
        ([cell("unavailable", 0), cell("failed", 0)], ExitCode.INVALID_MEASUREMENT),
    ],
)
def test_exit_codes(cells, code):
    assert exit_code(cells) == code


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """A small campaign, what it printed, and its folder. It is only looked at."""
    folder = tmp_path_factory.mktemp("campaign")
    sources = specs(folder, TABLES, PREFIXES)
    options = ["-t", "fake", "-t", "fake-small:bold", "--budget", "10m", "--set", "trials.repetitions=3"]
    done = p4perf("run", *sources, *options, "-o", folder / "runs", "--format", "json")
    assert done.code == 0, done.err
    (path,) = (folder / "runs").iterdir()
    return done, path


class TestOutput:
    def test_a_row_for_every_experiment_and_target(self, campaign):
        done, path = campaign
        found = json.loads(done.out)
        assert (found["kind"], found["campaign"], found["accepted_share"]) == ("campaign", str(path), 1.0)
        assert [(r["experiment"], r["target"], r["state"]) for r in found["rows"]] == [
            ("my/tables", "fake", "measured"),
            ("my/tables", "fake-small:bold", "measured"),
            ("my/prefixes", "fake", "measured"),
            ("my/prefixes", "fake-small:bold", "refused"),
        ]
        assert path.name.startswith("catalogue--")
        assert all((path / row["run"]).is_dir() for row in found["rows"])

    def test_talk(self, campaign):
        done, path = campaign
        assert "4 runs: 2 experiments on fake, fake-small:bold, within 10 minutes" in done.err
        assert "[1/4] my/prefixes on fake-small:bold: refused: " in done.err, "what cannot be done is known first"
        assert "/4] my/prefixes on fake: 2 of 2 points accepted" in done.err
        assert f"report: {path / 'report.html'}" in done.err
        assert "100.0 % of the planned points have accepted trials" in done.err
        assert "resume" not in done.err

    def test_status(self, campaign):
        done, path = campaign
        shown = json.loads(p4perf("status", path, "--format", "json").out)
        assert p4perf("show", path, "--format", "json").out == p4perf("status", path, "--format", "json").out
        assert shown == json.loads(done.out)

    def test_people_see_values_of_every_target(self, campaign):
        done, path = campaign
        rows = json.loads(done.out)["rows"]
        first, second = p4perf("show", path).out.splitlines()[2:4]
        assert rows[1]["verdict"] in ("slower", "faster", "same", "no verdict")
        assert "entries=1: " in first
        assert f"entries={rows[0]['last_at'].removeprefix('entries=')}: " in first
        assert "reference" in first
        assert f"{rows[1]['ratio']:.2g}" in second
        assert rows[1]["verdict"] in second
        assert rows[3]["first"] is rows[3]["ratio"] is None
        assert rows[3]["what"] in p4perf("show", path).out

    def test_models_of_few_points_are_named(self, campaign):
        shown = p4perf("show", campaign[1])
        (note,) = [line for line in shown.err.splitlines() if "few points" in line]
        assert note.startswith("note: models of few points, of which 10 are needed for the shape of a curve: my/")
        assert "my/prefixes on fake (2)" in note

    def test_a_damaged_run_hides_no_other(self, campaign, tmp_path):
        copy = Path(shutil.copytree(campaign[1], tmp_path / "copy"))
        next(copy.glob("runs/my-tables--fake--*/measurements.parquet")).unlink()
        shown = p4perf("show", copy)
        assert shown.code == 0
        assert "the run has no measurements yet" in shown.out
        assert shown.out.count("entries=1: ") == 1

    def test_its_targets_are_compared(self, campaign):
        done, path = campaign
        found = json.loads(p4perf("compare", path, "--format", "json").out)
        assert [e["experiment"] for e in found["experiments"]] == ["my/tables"], "only one target has the other"
        (pair,) = found["experiments"][0]["pairs"]
        row = json.loads(done.out)["rows"][1]
        assert (pair["run"], pair["verdict"], pair["ratio"]) == (row["target"], row["verdict"], row["ratio"])
        assert f"p4perf compare {path}" in p4perf("show", path).err

    def test_a_campaign_of_one_target_is_compared_with_another(self, campaign, tmp_path):
        (source,) = specs(tmp_path, TABLES)
        options = ["--set", "trials.repetitions=1", "--points", "3", "-o", tmp_path / "runs", "-q"]
        assert p4perf("run", source, "-t", "fake", "--budget", "5m", *options).code == 0
        (path,) = (tmp_path / "runs").iterdir()
        alone = p4perf("compare", path)
        assert alone.code == ExitCode.USAGE
        assert f"no experiment of {path} was measured twice" in alone.err
        (run,) = (path / "runs").iterdir()
        assert f"hint: p4perf compare {path}/ compares" in p4perf("compare", run).err
        both = json.loads(p4perf("compare", campaign[1], path, "--format", "json").out)
        assert len(both["experiments"][0]["runs"]) == 3

    def test_a_finished_campaign_is_not_measured_again(self, campaign):
        done, path = campaign
        before = {p: p.read_bytes() for p in path.glob("runs/*/points/*/raw.jsonl")}
        again = p4perf("resume", path, "--format", "json", "-q")
        assert (again.code, again.err) == (0, "")
        assert json.loads(again.out) == json.loads(done.out)
        assert {p: p.read_bytes() for p in path.glob("runs/*/points/*/raw.jsonl")} == before

    def test_its_runs_are_ordinary_runs(self, campaign):
        _, path = campaign
        rows = json.loads(p4perf("list", "runs", "--in", path / "runs", "--format", "json").out)["rows"]
        assert len(rows) == 3
        assert p4perf("show", rows[0]["run"]).code == 0
        assert f"part of a campaign: p4perf resume {path} continues" in p4perf("resume", rows[0]["run"]).err

    def test_a_damaged_campaign_is_one_clear_error(self, campaign, tmp_path):
        (tmp_path / "campaign.json").write_text('{"cells": 1}')
        for name in ("resume", "status"):
            done = p4perf(name, tmp_path)
            assert done.code == ExitCode.USAGE
            assert done.err.count("error: ") == 1
            assert "campaign.json" in done.err

    @pytest.mark.thorough
    def test_one_target_and_a_budget(self, tmp_path):
        (source,) = specs(tmp_path, HEADERS)
        done = p4perf("run", source, "-t", "fake", "--budget", "5m", "-o", tmp_path / "runs", "-q")
        assert done.code == 0, done.err
        (path,) = (tmp_path / "runs").iterdir()
        assert path.name.startswith("my-headers--")
        assert list(path.glob("runs/*/plots/*.svg")), "without a comparison, a run has plots of its own"

    @pytest.mark.thorough
    def test_a_target_that_cannot_be_used(self, tmp_path):
        (source,) = specs(tmp_path, HEADERS)
        options = ["--set", "trials.repetitions=1", "-o", tmp_path / "runs", "-q"]
        done = p4perf("run", source, "-t", "fake", "-t", "fake-absent", *options)
        assert done.code == ExitCode.UNAVAILABLE
        assert "no flux capacitor" in done.out
        assert "resume" in done.err


def wait_for(process, condition):
    deadline = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)
    return found


def trials(runs):
    """All trials on disk by run and point; a cut-off last line does not count."""
    found = {}
    for path in runs.glob("*/runs/*/points/*/raw.jsonl"):
        lines = [line for line in path.read_bytes().split(b"\n")[:-1] if line]
        found[path.parts[-4], path.parts[-2]] = [json.loads(line)["trial"] for line in lines]
    return found


class TestInterruption:
    @pytest.fixture
    def start(self, tmp_path):
        """Begins a campaign and waits until so many trials are on disk."""
        begun = []

        def start(number):
            sources = specs(tmp_path, TABLES, HEADERS)
            options = ["-t", "fake", "-t", "fake-noisy", "--set", "trials.max_attempts=2", "-o", tmp_path / "runs"]
            process = subprocess.Popen(
                command("run", *sources, *options),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment(P4PERF_FAKE_SLEEP_S="0.02"),
                start_new_session=True,
            )
            begun.append(process)
            wait_for(process, lambda: sum(map(len, trials(tmp_path / "runs").values())) >= number)
            (path,) = (tmp_path / "runs").glob("[!.]*")
            return process, path

        yield start
        for process in begun:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def finished(self, path):
        done = p4perf("resume", path, "--format", "json")
        assert done.code == ExitCode.INVALID_MEASUREMENT, "one target never has an accepted trial"
        cells = json.loads(done.out)["rows"]
        assert [(c["target"], c["accepted"]) for c in cells] == [
            *(("fake", 6), ("fake-noisy", 0)),
            *(("fake", 3), ("fake-noisy", 0)),
        ]
        assert len(list((path / "runs").iterdir())) == 4, "one run for every experiment and target"
        found = trials(path.parent)
        for (run, point), entries in found.items():
            assert len(entries) == (6 if "noisy" in run else 3), (run, point)
            assert [t["attempt"] for t in entries] == list(range(len(entries)))
        assert len(found) == 2 * (6 + 3)

    @pytest.mark.parametrize("number", sampled([4, 20, 40], 4))
    def test_a_killed_campaign_goes_on_and_measures_nothing_twice(self, start, number):
        process, path = start(number)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        before = trials(path.parent)
        self.finished(path)
        after = trials(path.parent)
        assert all(after[key][: len(entries)] == entries for key, entries in before.items())

    @pytest.mark.thorough
    def test_an_interrupt_says_how_to_go_on(self, start):
        process, path = start(5)
        second = p4perf("resume", path)
        assert second.code == ExitCode.UNAVAILABLE, "two processes at once"
        assert f"is being written by process {process.pid}" in second.err
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == ExitCode.INTERRUPTED
        assert out == ""
        assert f"Continue with: p4perf resume {path}" in err
        assert "Traceback" not in err
        shown = json.loads(p4perf("status", path, "--format", "json").out)
        assert "open" in {row["state"] for row in shown["rows"]}
        self.finished(path)


class TestRefusedPoints:
    OPTIONS = ("mat/exact-entries", "--set", "entries=[10, 100, 1000]", "--target", "fake-small")

    def test_a_run_warns_and_measures_the_others(self, tmp_path):
        done = p4perf("run", *self.OPTIONS, "-o", tmp_path, "-q", "--format", "json")
        assert done.code == 0, done.err
        assert "warning: entries=1000 is left out: 1,000 exact entries are more than the 100" in done.err
        assert json.loads(done.out)["domain"] == [10, 100]

    def test_a_dry_run_lists_them(self, tmp_path):
        done = p4perf("run", *self.OPTIONS, "--dry-run", "--format", "json", cwd=tmp_path)
        found = json.loads(done.out)
        assert [row["entries"] for row in found["rows"]] == [10, 100]
        assert [r["values"] for r in found["refused"]] == [{"entries": 1000}]
        assert "number of drawers" in found["refused"][0]["reason"]
        assert found["trials"] == 6

    def test_a_check_refuses_the_spec(self):
        done = p4perf("check", *self.OPTIONS)
        assert done.code == ExitCode.USAGE
        assert "mat/exact-entries at entries=1000: 1,000 exact entries are more than the 100" in done.err
        assert p4perf("check", *self.OPTIONS[:2], "entries=[10, 100]", *self.OPTIONS[3:]).code == 0
        several = p4perf("check", *self.OPTIONS[:2], "entries=[10, 100]", "-t", "nosuch", *self.OPTIONS[3:])
        assert several.code == ExitCode.USAGE
        assert "nosuch" in several.err

    def test_a_sweep_of_which_nothing_is_left(self, tmp_path):
        done = p4perf("run", "mat/lpm-tables", "--target", "fake-small", "-o", tmp_path / "runs")
        assert done.code == ExitCode.USAGE
        assert "it counts on its fingers" in done.err
        assert not (tmp_path / "runs").exists()


class TestCapabilities:
    @pytest.mark.thorough
    def test_experiments_of_targets(self):
        found = json.loads(p4perf("list", "targets", "--components", "--format", "json").out)
        assert found["kind"] == "list.targets.components"
        rows = {row["experiment"]: row for row in found["rows"]}
        assert rows["mat/lpm-tables"]["fake-small"].startswith("no: fake-small has no lpm: ")
        assert rows["mat/exact-entries"]["fake-small"].split(":")[0].endswith("of 65")
        assert rows["parser/headers"]["fake"] == "all 11"

    def test_limits_of_targets(self):
        found = json.loads(p4perf("list", "targets", "--limits", "--format", "json").out)
        assert found["kind"] == "list.targets.limits"
        small = [row for row in found["rows"] if row["of"] == "fake-small"]
        assert small == [
            {"of": "fake-small", "what": "lpm", "most": 0, "source": "it counts on its fingers"},
            {"of": "fake-small", "what": "exact entries", "most": 100, "source": "number of drawers"},
        ]

    def test_variants_are_listed(self):
        rows = json.loads(p4perf("list", "targets", "--format", "json").out)["rows"]
        assert {row["name"]: row["variants"] for row in rows}["fake-small"] == ["careful", "bold"]

    @pytest.mark.parametrize("option", ["--components", "--limits"])
    def test_only_of_targets_and_generators(self, option):
        done = p4perf("list", "runs", option)
        assert done.code == ExitCode.USAGE
        assert "for targets and generators only" in done.err
