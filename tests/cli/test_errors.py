"""Every mistake gives one clear message and the documented exit code, and leaves nothing half-written behind."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.command import command, environment, p4perf
from support.sampling import sampled

from p4perf.errors import ExitCode

SPEC = "mat/exact-entries"
HEAD = "spec_version: 1\nextends: mat/exact-entries\nname: my/test\n"


def refused(code, *arguments, **more):
    """Runs a command that has to fail; its one message, without ``error: ``."""
    result = p4perf(*arguments, **more)
    assert result.code == code, (result.code, result.err)
    assert "Traceback" not in result.err
    assert result.out == ""
    messages = [line for line in result.err.splitlines() if line.startswith("error: ")]
    assert len(messages) == 1, result.err
    return result.err[result.err.index("error: ") + len("error: ") :]


def contents(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


@pytest.fixture
def work(tmp_path):
    """An empty working directory; the specs of tests are beside it."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def spec(tmp_path):
    def write(text, *, head=HEAD):
        path = tmp_path / "spec.yaml"
        path.write_text(head + text)
        return path

    return write


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A small finished run of the fake target."""
    folder = tmp_path_factory.mktemp("made")
    done = p4perf("run", SPEC, "--points", 3, "--target", "fake", "-o", folder, "-q")
    assert done.code == 0, done.err
    (run,) = folder.iterdir()
    return run


@pytest.fixture
def finished(made, work):
    """A copy of it, to damage."""
    return Path(shutil.copytree(made, work / made.name))


class TestSpecs:
    """A wrong spec is refused with its place, before anything is written."""

    def refused(self, work, path, *options):
        message = refused(ExitCode.USAGE, "run", path, "--target", "fake", "-o", work / "runs", *options)
        assert contents(work) == []
        return message

    def test_a_misspelt_key_is_shown_with_the_nearest_name(self, work, spec):
        path = spec("trafic:\n  frame_size: 64\n")
        lines = self.refused(work, path).splitlines()
        assert lines[0].startswith(f"{path}:4:1: trafic: ")
        assert lines[1:3] == ["  trafic:", "  ^"]
        assert lines[3] == "hint: did you mean traffic?"

    def test_a_misspelt_nested_key(self, work, spec):
        message = self.refused(work, spec("traffic:\n  flows:\n    distributon: zipf\n"))
        assert ":6:5: traffic.flows.distributon: " in message
        assert "did you mean distribution?" in message

    def test_a_misspelt_variable(self, work, spec):
        message = self.refused(work, spec("sweep:\n  entires: [1, 2]\n"))
        assert ":5:" in message
        assert "did you mean entries?" in message

    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("traffic:\n  frame_size: 64 Gbit/s\n", ["5:15", "traffic.frame_size", "data size"]),
            ("trials:\n  duration_ms: 20 parsecs\n", ["5:16", "trials.duration_ms", "parsecs"]),
            ("traffic:\n  frame_size: -64\n", ["5:15", "traffic.frame_size"]),
        ],
    )
    def test_a_wrong_unit(self, work, spec, text, wanted):
        message = self.refused(work, spec(text))
        assert all(part in message for part in wanted), message

    def test_an_empty_sweep(self, work, spec):
        message = self.refused(work, spec("sweep:\n  entries: []\n"))
        assert "sweep.entries" in message
        assert "empty" in message

    def test_a_filter_that_leaves_nothing(self, work, spec):
        assert "empty" in self.refused(work, spec('sweep:\n  filter: ["$entries < 0"]\n'))

    @pytest.mark.parametrize(
        "grid",
        ["{range: [1, 1000000000000]}", "{range: [0, 1.0e12], step: 1}", "{log: [1, 1e12], points_per_decade: 90000}"],
    )
    def test_a_sweep_of_a_million_million_points_is_refused_at_once(self, work, spec, grid):
        begun = time.monotonic()
        message = self.refused(work, spec(f"sweep:\n  entries: {grid}\n"))
        assert "sweep" in message
        assert time.monotonic() - begun < 5

    def test_two_long_variables_are_refused_at_once(self, work, spec):
        begun = time.monotonic()
        text = (
            "sweep:\n  entries: {range: [1, 1000000]}\n  size: {range: [64, 1000063]}\ntraffic:\n  frame_size: $size\n"
        )
        assert "1,000,000,000,000 points" in self.refused(work, spec(text))
        assert time.monotonic() - begun < 5

    def test_aliases_that_multiply(self, work, spec):
        lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
        for before, name in zip("abcdefghijkl", "bcdefghijklm", strict=True):
            lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]")
        begun = time.monotonic()
        assert "aliases" in self.refused(work, spec("\n".join(lines), head=""))
        assert time.monotonic() - begun < 5

    @pytest.mark.parametrize(
        "text", ["a: [", "\tname: x", "- 1\n- 2", "", "name: !!python/object/apply:os.system [true]", "a: 1\na: 2"]
    )
    def test_what_is_no_spec_at_all(self, work, spec, text):
        assert "spec.yaml" in self.refused(work, spec(text, head=""))

    def test_bytes_that_are_no_text(self, work, tmp_path):
        path = tmp_path / "spec.yaml"
        path.write_bytes(b"name: \xff\xfe\x00")
        assert "spec.yaml" in self.refused(work, path)

    @pytest.mark.parametrize(
        "name", ["{{ 7 * 7 }}", "{% raw %}", "../../escape", "/absolute", 'a"b', "a'b", "a\nb", "*/ int x;", "a;b", ""]
    )
    def test_a_name_that_could_break_out_of_where_it_is_put(self, work, spec, name):
        path = spec(f"name: {json.dumps(name)}\n", head="spec_version: 1\nextends: mat/exact-entries\n")
        message = self.refused(work, path)
        assert ":3:7: name: " in message
        assert len(message.splitlines()) <= 4, "the name itself adds no lines"

    def test_a_name_from_the_command_line(self, work):
        assert "name" in self.refused(work, SPEC, "--set", "name=../../escape")

    @pytest.mark.parametrize(
        ("option", "wanted"),
        [
            ("entries", "expected key=value"),
            ("=5", "expected key=value"),
            ("entires=5", "did you mean entries?"),
            ("trials.repetitons=5", "did you mean repetitions?"),
            ("trials.repetitions=0", "trials.repetitions"),
            ("trials.repetitions=[", "trials.repetitions"),
            ("metrics.collect=[cycles_per_paket]", "did you mean cycles_per_packet?"),
        ],
    )
    def test_a_wrong_change_on_the_command_line(self, work, option, wanted):
        assert wanted in self.refused(work, SPEC, "--set", option)

    @pytest.mark.parametrize("command", [("check",), ("run", "-t", "fake"), ("run", "-t", "fake", "-t", "fake-small")])
    def test_a_key_that_is_given_twice_is_named(self, work, command):
        said = refused(ExitCode.USAGE, *command, SPEC, "--set", "entries=10", "--set", "entries=20", cwd=work)
        assert "--set entries: given more than once" in said
        assert contents(work) == []

    def test_parameters_that_no_program_has(self, work):
        assert "key of 8 bit has 256 values, but 1000 are needed" in self.refused(
            work, SPEC, "--set", "key_bits=8", "--set", "entries=[1000]"
        )

    def test_headers_that_do_not_fit_into_the_frame(self, work):
        assert "a frame of 64 B" in refused(
            ExitCode.USAGE, "generate", "parser/headers", "--set", "headers=[60]", "-g", "moongen", "-o", work / "out"
        )


class TestNames:
    @pytest.mark.parametrize(
        ("arguments", "wanted"),
        [
            (["run", SPEC, "--target", "fakee"], "unknown target 'fakee'\nhint: did you mean fake?"),
            (["run", SPEC, "--target", "fake", "--testbed", "locl"], "testbed 'locl'\nhint: did you mean local?"),
            (["run", "mat/exact-entreis", "--target", "fake"], "did you mean mat/exact-entries?"),
            (["check", "mat/exact-entreis"], "did you mean mat/exact-entries?"),
            (["check", "nothing.yaml"], "nothing.yaml"),
            (["generate", SPEC, "-g", "v1modle"], "unknown generator 'v1modle'\nhint: did you mean v1model?"),
            (["doctor", "--testbed", "nowhere"], "unknown testbed 'nowhere'"),
            (["run", SPEC, "--bogus"], "--bogus"),
            (["run", SPEC, "--ponts", "3"], "--points"),
            (["run", SPEC, "--points", "0"], "--points"),
            (["run", SPEC, "--points", "few"], "--points"),
            (["run"], "spec"),
            (["list", "nonsense"], "experiments"),
            (["list", "--format", "xml"], "json"),
            (["frobnicate"], "frobnicate"),
            (["resume"], "RUN"),
        ],
        ids=lambda v: " ".join(v) if isinstance(v, list) else "",
    )
    def test_a_name_that_does_not_exist(self, work, arguments, wanted):
        assert wanted in refused(ExitCode.USAGE, *arguments, cwd=work)
        assert contents(work) == []

    def test_a_metric_that_was_not_measured(self, finished):
        message = refused(ExitCode.USAGE, "show", finished, "--metric", "cycles_per_paket")
        assert "did you mean cycles_per_packet?" in message

    def test_a_metric_that_the_target_does_not_give(self, work):
        message = refused(
            ExitCode.USAGE,
            "run",
            SPEC,
            "--set",
            "metrics.collect=[cycles_per_packet, latency]",
            "--target",
            "fake",
            "-o",
            work,
        )
        assert "target fake does not give latency" in message
        assert contents(work) == []


class TestWhatIsMissing:
    def refused(self, work, *options, code=ExitCode.UNAVAILABLE, **env):
        message = refused(code, "run", SPEC, "--points", 2, "--target", "dpdk-c", "-o", work / "runs", *options, **env)
        assert contents(work) == []
        return message

    @pytest.fixture
    def tools(self, tmp_path):
        """A PATH with what starts commands and what the probe of the machine calls, but no compiler."""
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in (
            "sh",
            "setpriv",
            "pkg-config",
            "sed",
            "head",
            "uname",
            "id",
            "cut",
            "getconf",
            "grep",
            "chrt",
            "true",
            "tr",
        ):
            if found := shutil.which(name):
                (folder / name).symlink_to(found)
        return folder

    def test_no_compiler(self, work, tools):
        message = self.refused(work, PATH=str(tools))
        assert "no C compiler (cc) on the PATH" in message
        assert "install gcc" in message

    @pytest.mark.skipif(shutil.which("cc") is None, reason="needs cc")
    def test_no_pkg_config(self, work, tools):
        (tools / "pkg-config").unlink(missing_ok=True)
        (tools / "cc").symlink_to(shutil.which("cc"))
        message = self.refused(work, PATH=str(tools))
        assert "no pkg-config on the PATH" in message
        assert "no C compiler" not in message

    @pytest.mark.skipif(not (shutil.which("cc") and shutil.which("pkg-config")), reason="needs cc and pkg-config")
    def test_no_dpdk(self, work, tmp_path):
        (tmp_path / "empty").mkdir()
        message = self.refused(work, PKG_CONFIG_LIBDIR=str(tmp_path / "empty"), PKG_CONFIG_PATH="")
        assert "pkg-config does not find libdpdk" in message
        assert "libdpdk-dev" in message

    @pytest.mark.dpdk
    def test_more_entries_than_fit_into_memory(self, work):
        message = self.refused(
            work, "--set", "entries=[100000000]", "--set", "action_data_bytes=1024", code=ExitCode.USAGE
        )
        assert "at entries=100000000: the tables take about" in message
        assert "GiB are available" in message

    @pytest.mark.dpdk
    def test_more_entries_than_the_target_takes(self, work):
        message = self.refused(work, "--set", "entries=[200000000]", code=ExitCode.USAGE)
        assert "200,000,000 exact entries are more than the 100,000,000 that dpdk-c takes" in message

    def test_a_target_that_cannot_be_used_here(self, work):
        message = refused(ExitCode.UNAVAILABLE, "run", SPEC, "--target", "fake-absent", "-o", work / "runs")
        assert message == (
            "target fake-absent cannot be used on local: no flux capacitor on the PATH\nhint: install one\n"
        )
        assert contents(work) == []


class TestStorage:
    @pytest.mark.sampled(1)
    @pytest.mark.parametrize("free", sampled(["0", "64k", "160k"], "0", "160k"))
    def test_a_full_disk(self, tmp_path, free):
        """The sweep stops with one message; what was finished can be resumed once there is space again."""
        disk, drawn = tmp_path / "disk", {"P4PERF_TEST_FIGURES": "1"}
        disk.mkdir()
        size = {"0": "4k", "64k": "64k", "160k": "160k"}[free]
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            pytest.skip("mounting a small file system needs privileges")
        try:
            message = refused(ExitCode.UNAVAILABLE, "run", SPEC, "--target", "fake", "-o", disk / "runs", "-q", **drawn)
            assert "cannot write" in message
            assert "the disk is full" in message
            assert not [p for p in contents(disk) if ".p4perf-" in p]
            runs = list((disk / "runs").glob("*")) if (disk / "runs").exists() else []
            if runs:
                larger = ["mount", "-o", "remount,size=32m", str(disk)]
                subprocess.run(larger, check=True, capture_output=True)
                resumed = p4perf("resume", runs[0], "-q", "--format", "json")
                assert resumed.code == 0, resumed.err
                status = json.loads(p4perf("status", runs[0], "--format", "json").out)["rows"][0]
                assert status["complete"]
                assert status["trials"] == 3 * status["points"]
        finally:
            subprocess.run(["umount", str(disk)], check=True)

    def test_a_limit_of_the_file_size(self, work):
        """Where no small disk can be had, a limit of the shell does as well."""
        limited = ["bash", "-c", 'ulimit -f 4; exec "$@"', "bash"]
        done = subprocess.run(
            [*limited, *command("run", SPEC, "--target", "fake", "-o", work, "-q")],
            capture_output=True, text=True, env=environment(PYTHONDONTWRITEBYTECODE="1"), check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == ExitCode.UNAVAILABLE, done.stderr
        assert done.stderr.count("error: ") == 1
        assert "larger than the limit" in done.stderr
        assert not [p for p in contents(work) if ".p4perf-" in p]

    def test_an_output_folder_that_is_a_file(self, work):
        (work / "runs").write_text("mine")
        message = refused(ExitCode.UNAVAILABLE, "run", SPEC, "--target", "fake", "-o", work / "runs")
        assert "cannot write" in message
        assert contents(work) == ["runs"]
        assert (work / "runs").read_text() == "mine"

    def test_an_output_folder_that_cannot_be_written(self, work):
        if os.geteuid() == 0:
            pytest.skip("root may write everywhere")
        work.chmod(0o500)
        try:
            message = refused(ExitCode.UNAVAILABLE, "run", SPEC, "--target", "fake", "-o", work / "runs")
        finally:
            work.chmod(0o700)
        assert "permission denied" in message

    def test_generating_into_a_file(self, work):
        (work / "out").write_text("mine")
        message = refused(ExitCode.USAGE, "generate", SPEC, "--points", 1, "-o", work / "out")
        assert "is a file, not a folder" in message


class TestRunDirectories:
    @pytest.mark.parametrize("name", ["resume", "status", "show", "fit"])
    def test_a_folder_that_is_no_run(self, work, name):
        message = refused(ExitCode.USAGE, name, work)
        assert f"{work}: is not a run directory" in message
        assert contents(work) == []

    @pytest.mark.parametrize("name", ["resume", "status", "show"])
    def test_a_folder_that_does_not_exist(self, work, name):
        assert "there is no such run directory" in refused(ExitCode.USAGE, name, work / "nothing")

    def test_the_folder_of_all_runs(self, finished):
        message = refused(ExitCode.USAGE, "resume", finished.parent)
        assert f"the last by name is {finished.name}" in message

    @pytest.mark.parametrize(
        ("damage", "wanted"),
        [
            (lambda text: "", "manifest.json:1:1: is not valid JSON"),
            (lambda text: text[:200], "manifest.json:7:"),
            (lambda text: "[]", "is not a JSON object"),
            (lambda text: text.replace('"schema_version": 1', '"schema_version": 99'), "install a newer p4perf"),
            (lambda text: text.replace('"target": "fake"', '"target": "nobody"'), "unknown target 'nobody'"),
            (lambda text: text.replace('"target"', '"tragte"'), "target: is missing"),
            (lambda text: text.replace('"planned_points"', '"points_planned"'), "planned_points: is missing"),
            (lambda text: text.replace('"node"', '"knot"'), "node: is missing"),
            (lambda text: text.replace('"hugepages"', '"pages"'), "hugepages: is missing"),
            (lambda text: text.replace('"versions"', '"revisions"'), "versions: is missing"),
            (lambda text: text.replace('"cpu_model": "', '"cpu_model": "Another '), "another machine"),
        ],
    )
    def test_a_damaged_manifest(self, finished, damage, wanted):
        path = finished / "manifest.json"
        path.write_text(damage(path.read_text()))
        before = path.read_text()
        assert wanted in refused(ExitCode.USAGE, "resume", finished)
        assert path.read_text() == before

    def test_a_damaged_journal_names_its_line(self, finished):
        path = next(finished.glob("points/*/raw.jsonl"))
        path.write_text("{ this is no trial }\n" + path.read_text())
        assert f"{path}:1" in refused(ExitCode.USAGE, "status", finished)

    def test_a_damaged_spec(self, finished):
        (finished / "spec.yaml").write_text("name: [")
        assert "spec.yaml:1" in refused(ExitCode.USAGE, "resume", finished)

    def test_a_damaged_table(self, finished):
        (finished / "measurements.parquet").write_bytes(b"PAR1 and nothing more")
        assert "is not a Parquet table" in refused(ExitCode.USAGE, "show", finished)

    def test_a_run_that_has_no_measurements_yet(self, finished):
        (finished / "measurements.parquet").unlink()
        assert "no measurements yet" in refused(ExitCode.USAGE, "fit", finished)


class TestFit:
    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("entries,cycles\n1,2\n2,3\n3,x7\n", "data.csv:4: column 'cycles': 'x7' is not a finite number"),
            ("entries,cycles\n1,2\n2\n", "data.csv:3: column 'cycles' is empty"),
            ("entries,cycles\n1,nan\n", "data.csv:2: column 'cycles': 'nan' is not a finite number"),
            ("entires,cycles\n1,2\n", "did you mean entires?"),
            ("a,b\n1,2\n", "columns: a, b"),
            ("entries,cycles\n", "has a header but no rows"),
            ("", "the file is empty"),
        ],
    )
    def test_a_bad_csv(self, work, text, wanted):
        (work / "data.csv").write_text(text)
        message = refused(
            ExitCode.USAGE, "fit", work / "data.csv", "--x", "entries", "--y", "cycles", "-o", work / "out"
        )
        assert wanted in message
        assert contents(work) == ["data.csv"]

    def test_a_csv_that_is_not_there(self, work):
        message = refused(ExitCode.USAGE, "fit", work / "data.csv", "--x", "a", "--y", "b")
        assert "data.csv" in message

    @pytest.mark.parametrize(
        ("options", "wanted"),
        [
            ([], "name the columns of x and y\nhint: --x COLUMN --y COLUMN; columns: a, b"),
            (["--x", "a", "--y", "b", "--x-scale", "cubic"], "'cubic' is not one of 'linear', 'log'"),
            (["--x", "a", "--y", "b", "--profile", "rough"], "is not one of 'exact', 'scholz2021'"),
            (["--x", "a", "--y", "b", "--segments", "9"], "segments"),
            (["--x", "a", "--y", "b", "--segments", "0"], "--segments"),
            (["--x", "a", "--y", "b", "--max-segments", "few"], "--max-segments"),
            (["--x", "a", "--y", "b", "--min-points", "0"], "--min-points"),
            (["--x", "a", "--y", "b", "--level", "1.5"], "--level"),
            (["--x", "a", "--y", "b", "--threads", "0"], "--threads"),
            (["--x", "a", "--y", "b", "--loss", "l3"], "is not one of 'auto', 'squares', 'l1'"),
            (["--x", "a", "--y", "b", "--search", "quick"], "is not one of 'auto', 'exact', 'coarse'"),
            (["--x", "a", "--y", "b", "--error", "smap"], "unknown error metric 'smap'\nhint: did you mean smape?"),
            (["--x", "a", "--y", "b", "--split-finder", "dynamc"], "finder 'dynamc'\nhint: did you mean dynamic?"),
            (["--x", "a", "--y", "b", "--every"], "--every-plot"),
            (["--x", "a", "--y", "b", "--working-set", "0+80"], "--working-set and --cache belong together"),
            (["--x", "a", "--y", "b", "--cache", "L2=1MiB"], "--working-set and --cache belong together"),
            (["--x", "a", "--y", "b", "--working-set", "80", "--cache", "L2=1MiB"], "'80' is not a working set"),
            (["--x", "a", "--y", "b", "--working-set", "scholz2021:16", "--cache", "L2=1MiB"], "is not a working set"),
            (["--x", "a", "--y", "b", "--working-set", "0+80", "--cache", "1MiB"], "'1MiB' is not a cache"),
            (["--x", "a", "--y", "b", "--working-set", "0+80", "--cache", "L2=1 GHz"], "cache L2"),
            (["--x", "a", "--y", "b", "--working-set", "0+80", "--cache", "L2=0 B"], "must be positive"),
        ],
        ids=lambda v: " ".join(v) if isinstance(v, list) else "",
    )
    def test_wrong_options(self, work, options, wanted):
        (work / "data.csv").write_text("a,b\n0,1\n1,2\n2,3\n3,4\n")
        assert wanted in refused(ExitCode.USAGE, "fit", work / "data.csv", "-o", work / "out", *options)
        assert contents(work) == ["data.csv"]

    @pytest.mark.parametrize(
        ("rows", "options", "wanted"),
        [
            ("0,1\n1,-2\n2,3\n", ["--error", "emd"], "a mass cannot be negative"),
            ("0,0\n1,0\n2,0\n", ["--error", "emd"], "has no distribution"),
            ("0,1\n1,2\n2,3\n", ["--x-scale", "log", "--split-finder", "second-derivative", "--max-segments", "5"], ""),
        ],
    )
    def test_samples_that_an_option_cannot_judge(self, work, rows, options, wanted):
        (work / "data.csv").write_text("a,b\n" + rows)
        done = p4perf("fit", work / "data.csv", "--x", "a", "--y", "b", *options)
        assert done.code == (ExitCode.USAGE if wanted else ExitCode.OK), done.err
        assert wanted in done.err
        assert "Traceback" not in done.err

    @pytest.mark.parametrize(
        "option",
        [
            ["--y", "cycles_per_packet"],
            ["--region", "main"],
            ["--x-scale", "log"],
            ["--working-set", "0+80"],
            ["--cache", "L2=1MiB"],
            ["--output", "out"],
        ],
        ids=lambda v: v[0],
    )
    def test_options_that_a_run_does_not_take(self, finished, option):
        before = (finished / "model.json").read_bytes()
        assert f"{option[0]}: for files" in refused(ExitCode.USAGE, "fit", finished, *option)
        assert (finished / "model.json").read_bytes() == before

    @pytest.mark.parametrize(
        ("option", "wanted"),
        [
            (["--profile", "rough"], "is not one of 'exact', 'scholz2021'"),
            (["--error", "rmsee"], "did you mean rmse?"),
            (["--split-finder", "brute_force"], "did you mean brute-force?"),
            (["--segments", "9"], "segments"),
        ],
        ids=lambda v: " ".join(v) if isinstance(v, list) else "",
    )
    def test_wrong_options_of_a_run(self, finished, option, wanted):
        before = (finished / "model.json").read_bytes()
        assert wanted in refused(ExitCode.USAGE, "fit", finished, *option)
        assert (finished / "model.json").read_bytes() == before

    @pytest.mark.parametrize(
        ("key", "value", "wanted"),
        [
            ("error", "smap", "did you mean smape?"),
            ("split_finder", "savitsky-golay", "did you mean savitzky-golay?"),
            ("profile", "scholz2012", "scholz2021"),
            ("loss", "l2", "l1"),
            ("min_points", "0", "model.min_points"),
        ],
    )
    def test_wrong_options_in_a_spec(self, work, spec, key, value, wanted):
        path = spec(f"model:\n  {key}: {value}\n")
        message = refused(ExitCode.USAGE, "check", path, cwd=work)
        assert f":5:{len(key) + 5}: model.{key}: " in message
        assert wanted in message
        assert wanted in refused(ExitCode.USAGE, "check", SPEC, "--set", f"model.{key}={value}")

    def test_a_folder_that_is_a_file(self, work):
        (work / "data.csv").write_text("a,b\n0,1\n1,2\n2,3\n3,4\n")
        message = refused(
            ExitCode.UNAVAILABLE, "fit", work / "data.csv", "--x", "a", "--y", "b", "-o", work / "data.csv"
        )
        assert "cannot write" in message


class TestDefects:
    def test_a_defect_is_told_as_one(self, work):
        """Exit code 5, one message, and the way to the traceback."""
        message = defect(work)
        assert message.code == ExitCode.INTERNAL
        assert message.err.startswith("error: this is a defect of p4perf: ZeroDivisionError")
        assert "Traceback" not in message.err

    def test_the_traceback_can_be_had(self, work):
        assert "Traceback" in defect(work, P4PERF_TRACEBACK="1").err


def defect(work, **env):
    code = "import p4perf.specs as s\ns.json_schema_text = lambda: 1 / 0\nfrom p4perf.cli import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", code, "check", "--schema"],
        capture_output=True,
        text=True,
        env=environment(**env),
        check=False,
    )
    return type("Done", (), {"code": done.returncode, "err": done.stderr})


class TestFormerWords:
    """Words of earlier versions are refused with the word of today."""

    def test_a_path(self):
        done = p4perf("predict", "any.spec", "--path", "worst")
        assert (done.code, done.err.splitlines()[-1]) == (2, "hint: worst is now highest-cost")

    @pytest.mark.parametrize(("key", "now"), [("parts", "segments"), ("max_parts", "max_segments")])
    def test_a_key_of_the_model(self, key, now):
        done = p4perf("check", "demo/exact-entries", "--set", f"model.{key}=2")
        assert (done.code, done.err.splitlines()[-1]) == (2, f"hint: it is now model.{now}")
